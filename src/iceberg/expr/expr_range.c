/* SPDX-License-Identifier: Apache-2.0 */
/*
 * expr_range.c - predicates against ranges of values.
 *
 * The tables of Java's InclusiveMetricsEvaluator, StrictMetricsEvaluator and ManifestEvaluator in
 * one place, with two differences that SQL's semantics ask for: NaN counts as a great number (Java
 * prunes it), and NULL never satisfies <> or NOT IN.
 */
#include "iceberg/expr/expr_range.h"

#include <math.h>
#include <string.h>

/* ---- comparing ---- */

static KnTypeKind family(KnTypeKind kind)
{
    switch (kind) {
    case KN_TYPE_LONG:
    case KN_TYPE_DATE: /* day() is an int or a date, by writer */
        return KN_TYPE_INT;
    case KN_TYPE_FLOAT:
        return KN_TYPE_DOUBLE;
    default:
        return kind;
    }
}

static int sign_of(int64_t a, int64_t b)
{
    return a < b ? -1 : a > b;
}

static int compare_bytes(KnStr a, KnStr b)
{
    size_t n = a.len < b.len ? a.len : b.len;
    int c = n ? memcmp(a.ptr, b.ptr, n) : 0;
    return c ? (c < 0 ? -1 : 1) : (a.len < b.len ? -1 : a.len > b.len);
}

static bool compare_uuid(KnStr a, KnStr b, int *ret)
{
    *ret = compare_bytes(a, b);
    return a.len == b.len && a.len == 16 && !((a.ptr[0] ^ b.ptr[0]) & 0x80) &&
           !((a.ptr[8] ^ b.ptr[8]) & 0x80);
}

bool kn_range_compare(const KnValue *a, const KnValue *b, int *ret)
{
    if (family(a->kind) != family(b->kind))
        return false;
    switch (family(a->kind)) {
    case KN_TYPE_BOOLEAN:
        *ret = sign_of(a->b, b->b);
        return true;
    case KN_TYPE_DOUBLE:
        *ret = isnan(a->d) || isnan(b->d) ? sign_of(isnan(a->d), isnan(b->d))
                                          : (a->d < b->d ? -1 : a->d > b->d);
        return true;
    case KN_TYPE_DECIMAL:
        *ret = a->dec < b->dec ? -1 : a->dec > b->dec;
        return a->scale == b->scale;
    case KN_TYPE_UUID:
        return compare_uuid(a->bytes, b->bytes, ret);
    case KN_TYPE_STRING:
    case KN_TYPE_FIXED:
    case KN_TYPE_BINARY:
        *ret = compare_bytes(a->bytes, b->bytes);
        return true;
    case KN_TYPE_INT:
    case KN_TYPE_TIME:
    case KN_TYPE_TIMESTAMP:
    case KN_TYPE_TIMESTAMPTZ:
    case KN_TYPE_TIMESTAMP_NS:
    case KN_TYPE_TIMESTAMPTZ_NS:
        *ret = sign_of(a->i, b->i);
        return true;
    default:
        return false;
    }
}

static bool is_nan(const KnValue *v)
{
    return family(v->kind) == KN_TYPE_DOUBLE && isnan(v->d);
}

/* ---- making ---- */

static int64_t find_count(const KnIdCount *counts, size_t n, int32_t id)
{
    for (size_t i = 0; i < n; i++)
        if (counts[i].id == id)
            return counts[i].count;
    return -1;
}

static bool decode_bound(const KnType *type, KnStr bytes, KnValue *ret)
{
    return bytes.ptr && kn_value_decode(type, bytes, ret, NULL) == KN_OK && !ret->null &&
           !is_nan(ret);
}

static bool find_bound(const KnIdBound *bounds, size_t n, const KnField *field, KnValue *ret)
{
    for (size_t i = 0; i < n; i++)
        if (bounds[i].id == field->id)
            return decode_bound(field->type, bounds[i].bytes, ret);
    return false;
}

KnRange kn_range_of_file(const KnDataFile *file, const KnField *field)
{
    int64_t values = find_count(file->value_counts, file->n_value_counts, field->id);
    int64_t nulls = find_count(file->null_counts, file->n_null_counts, field->id);
    int64_t nans = find_count(file->nan_counts, file->n_nan_counts, field->id);
    bool floating = family(field->type->kind) == KN_TYPE_DOUBLE;
    KnRange range = {
        .may_null = nulls != 0,
        .all_null = values > 0 && nulls == values,
        .may_nan = floating && nans != 0,
        .all_nan = floating && values > 0 && nulls >= 0 && nans > 0 && nans == values - nulls,
    };
    if (kn_type_is_nested(field->type))
        return range;
    range.has_lower = find_bound(file->lower, file->n_lower, field, &range.lower);
    range.has_upper = find_bound(file->upper, file->n_upper, field, &range.upper);
    return range;
}

KnRange kn_range_of_value(const KnValue *value)
{
    if (value->null)
        return (KnRange){.may_null = true, .all_null = true};
    if (is_nan(value))
        return (KnRange){.may_nan = true, .all_nan = true};
    return (KnRange){.has_lower = true, .has_upper = true, .lower = *value, .upper = *value};
}

KnRange kn_range_of_summary(const KnFieldSummary *summary, const KnType *type)
{
    bool may_nan = family(type->kind) == KN_TYPE_DOUBLE && summary->contains_nan != 0;
    bool bare = !summary->lower.ptr && !summary->upper.ptr;
    KnRange range = {
        .may_null = summary->contains_null,
        .all_null = summary->contains_null && bare && !may_nan,
        .may_nan = may_nan,
        .all_nan = may_nan && summary->contains_nan == 1 && bare,
    };
    range.has_lower = decode_bound(type, summary->lower, &range.lower);
    range.has_upper = decode_bound(type, summary->upper, &range.upper);
    return range;
}

/* ---- lists ---- */

typedef bool (*Compare)(const KnRange *r, KnExprOp op, const KnValue *lit);

static bool in(Compare compare, const KnRange *r, const KnValue *lits, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (compare(r, KN_EXPR_EQ, &lits[i]))
            return true;
    return false;
}

static bool not_in(Compare compare, const KnRange *r, const KnValue *lits, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!compare(r, KN_EXPR_NE, &lits[i]))
            return false;
    return true;
}

/* ---- may match ---- */

/* Known to be below (above) every value that is neither NULL nor NaN. */
static bool below_all(const KnRange *r, const KnValue *lit, bool or_equal)
{
    int c;
    return r->has_lower && kn_range_compare(lit, &r->lower, &c) && (c < 0 || (or_equal && c == 0));
}

static bool above_all(const KnRange *r, const KnValue *lit, bool or_equal)
{
    int c;
    return r->has_upper && kn_range_compare(lit, &r->upper, &c) && (c > 0 || (or_equal && c == 0));
}

static bool all_equal(const KnRange *r, const KnValue *lit)
{
    int low;
    int high;
    return r->has_lower && r->has_upper && kn_range_compare(lit, &r->lower, &low) &&
           kn_range_compare(lit, &r->upper, &high) && low == 0 && high == 0;
}

static bool may_match_nan(const KnRange *r, KnExprOp op)
{
    switch (op) {
    case KN_EXPR_LT:
    case KN_EXPR_NE:
        return !r->all_nan;
    case KN_EXPR_LE:
        return true;
    case KN_EXPR_EQ:
    case KN_EXPR_GE:
        return r->may_nan;
    default:
        return false; /* nothing is greater than NaN */
    }
}

static bool may_compare(const KnRange *r, KnExprOp op, const KnValue *lit)
{
    if (is_nan(lit))
        return may_match_nan(r, op);
    switch (op) {
    case KN_EXPR_LT:
        return !r->all_nan && !below_all(r, lit, true);
    case KN_EXPR_LE:
        return !r->all_nan && !below_all(r, lit, false);
    case KN_EXPR_GT:
        return r->may_nan || !above_all(r, lit, true);
    case KN_EXPR_GE:
        return r->may_nan || !above_all(r, lit, false);
    case KN_EXPR_EQ:
        return !r->all_nan && !below_all(r, lit, false) && !above_all(r, lit, false);
    default: /* NE */
        return r->may_nan || !all_equal(r, lit);
    }
}

/* A partition tuple's kind is the manifest's word: it need not be the column's. */
static bool has_bytes(bool has, const KnValue *bound)
{
    return has && (bound->kind == KN_TYPE_STRING || bound->kind == KN_TYPE_BINARY ||
                   bound->kind == KN_TYPE_FIXED);
}

static int compare_prefix(KnStr bound, KnStr prefix)
{
    if (bound.len > prefix.len)
        bound.len = prefix.len;
    prefix.len = bound.len;
    return compare_bytes(bound, prefix);
}

static bool starts_with(bool has, const KnValue *bound, KnStr prefix)
{
    return has_bytes(has, bound) && bound->bytes.len >= prefix.len &&
           compare_prefix(bound->bytes, prefix) == 0;
}

static bool may_start_with(const KnRange *r, KnStr prefix)
{
    return !(has_bytes(r->has_lower, &r->lower) && compare_prefix(r->lower.bytes, prefix) > 0) &&
           !(has_bytes(r->has_upper, &r->upper) && compare_prefix(r->upper.bytes, prefix) < 0);
}

static bool all_start_with(const KnRange *r, KnStr prefix)
{
    return starts_with(r->has_lower, &r->lower, prefix) &&
           starts_with(r->has_upper, &r->upper, prefix);
}

bool kn_range_may_match(const KnRange *range, KnExprOp op, const KnValue *lits, size_t n)
{
    if (op == KN_EXPR_IS_NULL)
        return range->may_null;
    if (range->all_null)
        return false;
    switch (op) {
    case KN_EXPR_IS_NAN:
        return range->may_nan;
    case KN_EXPR_NOT_NAN:
        return !range->all_nan;
    case KN_EXPR_IN:
        return in(may_compare, range, lits, n);
    case KN_EXPR_NOT_IN:
        return not_in(may_compare, range, lits, n);
    case KN_EXPR_STARTS_WITH:
        return may_start_with(range, lits->bytes);
    case KN_EXPR_NOT_STARTS_WITH:
        return !all_start_with(range, lits->bytes);
    case KN_EXPR_EQ:
    case KN_EXPR_NE:
    case KN_EXPR_LT:
    case KN_EXPR_LE:
    case KN_EXPR_GT:
    case KN_EXPR_GE:
        return may_compare(range, op, lits);
    default:
        return true;
    }
}

/* ---- must match ---- */

static bool must_match_nan(const KnRange *r, KnExprOp op)
{
    switch (op) {
    case KN_EXPR_LE:
        return true;
    case KN_EXPR_LT:
    case KN_EXPR_NE:
        return !r->may_nan;
    case KN_EXPR_EQ:
    case KN_EXPR_GE:
        return r->all_nan;
    default:
        return false;
    }
}

static bool must_compare(const KnRange *r, KnExprOp op, const KnValue *lit)
{
    if (is_nan(lit))
        return must_match_nan(r, op);
    switch (op) {
    case KN_EXPR_LT:
        return !r->may_nan && above_all(r, lit, false);
    case KN_EXPR_LE:
        return !r->may_nan && above_all(r, lit, true);
    case KN_EXPR_GT:
        return r->all_nan || below_all(r, lit, false);
    case KN_EXPR_GE:
        return r->all_nan || below_all(r, lit, true);
    case KN_EXPR_EQ:
        return !r->may_nan && all_equal(r, lit);
    default: /* NE */
        return r->all_nan || below_all(r, lit, false) || above_all(r, lit, false);
    }
}

bool kn_range_must_match(const KnRange *range, KnExprOp op, const KnValue *lits, size_t n)
{
    if (op == KN_EXPR_IS_NULL)
        return range->all_null;
    if (range->may_null)
        return false;
    switch (op) {
    case KN_EXPR_NOT_NULL:
        return true;
    case KN_EXPR_IS_NAN:
        return range->all_nan;
    case KN_EXPR_NOT_NAN:
        return !range->may_nan;
    case KN_EXPR_IN:
        return in(must_compare, range, lits, n);
    case KN_EXPR_NOT_IN:
        return not_in(must_compare, range, lits, n);
    case KN_EXPR_STARTS_WITH:
        return all_start_with(range, lits->bytes);
    case KN_EXPR_NOT_STARTS_WITH:
        return !may_start_with(range, lits->bytes);
    case KN_EXPR_EQ:
    case KN_EXPR_NE:
    case KN_EXPR_LT:
    case KN_EXPR_LE:
    case KN_EXPR_GT:
    case KN_EXPR_GE:
        return must_compare(range, op, lits);
    default:
        return false;
    }
}

bool kn_range_may_overlap(const KnRange *a, const KnRange *b)
{
    if ((a->may_null && b->may_null) || (a->may_nan && b->may_nan))
        return true;
    if (a->all_null || b->all_null)
        return false;
    return !(b->has_upper && below_all(a, &b->upper, false)) &&
           !(b->has_lower && above_all(a, &b->lower, false));
}
