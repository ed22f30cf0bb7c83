/* SPDX-License-Identifier: Apache-2.0 */
/*
 * expr_literal.c - literals in a column's type, and predicates whose literal the type cannot hold.
 *
 * For whole numbers and decimals every literal is brought to the type's step by rounding down, and
 * the predicate is changed so that it means the same: `i < 1.5` is `i <= 1`, `i = 1.5` is FALSE,
 * `i <> 3000000000` is `i IS NOT NULL` for an int.
 */
#include <float.h>
#include <math.h>
#include <string.h>

#include "iceberg/expr/expr_internal.h"

enum { MAX_DIGITS = 400 };

/* ---- decimal text, rounded down ---- */

typedef struct Digits {
    bool negative;
    int n; /* digits before and after the point, leading zeros cut */
    char digits[MAX_DIGITS];
    int64_t scale; /* digits behind the point */
} Digits;

static bool digits_exponent(KnStr text, size_t pos, Digits *d)
{
    int64_t exponent = 0;
    KnStr rest = {text.ptr + pos + 1, text.len - pos - 1};
    if (rest.len > 1 && rest.ptr[0] == '+')
        rest = (KnStr){rest.ptr + 1, rest.len - 1};
    if (!kn_str_to_i64(rest, &exponent) || exponent > 100000 || exponent < -100000)
        return false;
    d->scale -= exponent;
    return true;
}

static bool digits_parse(KnStr text, Digits *d)
{
    *d = (Digits){0};
    size_t i = 0;
    if (text.len > 0 && (text.ptr[0] == '-' || text.ptr[0] == '+'))
        d->negative = text.ptr[i++] == '-';
    bool point = false;
    bool any = false;
    for (; i < text.len; i++) {
        char c = text.ptr[i];
        if (c == '.' && !point) {
            point = true;
        } else if (c >= '0' && c <= '9') {
            any = true;
            d->scale += point;
            if (d->n == 0 && c == '0')
                continue;
            if (d->n == MAX_DIGITS)
                return false;
            d->digits[d->n++] = c;
        } else if ((c == 'e' || c == 'E') && any) {
            return digits_exponent(text, i, d);
        } else {
            return false;
        }
    }
    return any;
}

/* Largest unscaled value of `scale` digits behind the point that is not above the number. */
static KnFit digits_round_down(const Digits *d, int32_t scale, __int128 limit, __int128 *ret)
{
    int64_t whole = d->n - d->scale + scale; /* digits kept; may be beyond either end */
    __int128 value = 0;
    bool exact = true;
    for (int64_t i = 0; i < whole && d->n > 0; i++) {
        bool beyond = value > (limit + 1) / 10;
        if (!beyond)
            value = value * 10 + (i < d->n ? d->digits[i] - '0' : 0);
        if (beyond || value > limit + 1) {
            *ret = d->negative ? -limit - 1 : limit;
            return d->negative ? KN_FIT_BELOW : KN_FIT_ABOVE;
        }
    }
    for (int64_t i = whole < 0 ? 0 : whole; i < d->n; i++)
        exact = exact && d->digits[i] == '0';
    *ret = d->negative ? -value - !exact : value;
    return exact ? KN_FIT_EXACT : KN_FIT_BETWEEN;
}

static void fit_range(__int128 low, __int128 high, KnFit *fit, __int128 *value)
{
    if (*value < low) {
        *fit = KN_FIT_BELOW;
        *value = low;
    } else if (*value > high) {
        *fit = KN_FIT_ABOVE;
        *value = high;
    }
}

/* ---- by type ---- */

static KnCode literal_error(const KnField *field, const KnWord *word, const char *expected,
                            KnErr *err)
{
    KN_BUF_AUTO type;
    kn_buf_init(&type, 1 << 16);
    kn_type_format(&type, field->type);
    return kn_err_set(
        err, KN_E_INVAL, "filter, byte %zu: column '%s' is %s: expected %s, found '" KN_STR_FMT "'",
        word->at, field->name, type.data ? type.data : "?", expected, KN_STR_ARG(word->text));
}

static KnCode literal_number(const KnField *field, const KnWord *word, KnLiteral *ret, KnErr *err)
{
    Digits d;
    if ((word->kind != KN_WORD_NUMBER && word->kind != KN_WORD_TEXT) ||
        !digits_parse(word->text, &d))
        return literal_error(field, word, "a number", err);
    const KnType *type = field->type;
    __int128 high = type->kind == KN_TYPE_INT ? INT32_MAX : INT64_MAX;
    __int128 low = type->kind == KN_TYPE_INT ? INT32_MIN : INT64_MIN;
    if (type->kind == KN_TYPE_DECIMAL) {
        high = 1;
        for (int i = 0; i < type->precision; i++)
            high *= 10;
        low = -(--high);
    }
    __int128 value = 0;
    KnLiteral lit = {.value = {.kind = type->kind, .scale = type->scale}};
    lit.fit = digits_round_down(&d, type->kind == KN_TYPE_DECIMAL ? type->scale : 0, high, &value);
    fit_range(low, high, &lit.fit, &value);
    if (type->kind == KN_TYPE_DECIMAL)
        lit.value.dec = value;
    else
        lit.value.i = (int64_t)value;
    *ret = lit;
    return KN_OK;
}

static KnCode literal_float(KnArena *arena, const KnField *field, const KnWord *word,
                            KnLiteral *ret, KnErr *err)
{
    KnLiteral lit = {.fit = KN_FIT_EXACT, .value = {.kind = field->type->kind}};
    double d;
    if ((word->kind == KN_WORD_NUMBER || word->kind == KN_WORD_TEXT) &&
        kn_str_to_double(word->text, &d)) {
        double most = field->type->kind == KN_TYPE_FLOAT ? (double)FLT_MAX : DBL_MAX;
        lit.value.d = field->type->kind == KN_TYPE_FLOAT ? (double)(float)d : d;
        if (isinf(lit.value.d)) {
            lit.fit = d < 0 ? KN_FIT_BELOW : KN_FIT_ABOVE;
            lit.value.d = d < 0 ? -most : most;
        }
        *ret = lit;
        return KN_OK;
    }
    if (word->kind != KN_WORD_TEXT ||
        kn_value_parse(arena, field->type, word->text, &lit.value, NULL) != KN_OK)
        return literal_error(field, word, "a number, 'NaN' or 'Infinity'", err);
    *ret = lit;
    return KN_OK;
}

static bool is_timestamp(KnTypeKind kind)
{
    return kind == KN_TYPE_TIMESTAMP || kind == KN_TYPE_TIMESTAMPTZ ||
           kind == KN_TYPE_TIMESTAMP_NS || kind == KN_TYPE_TIMESTAMPTZ_NS;
}

/* A date, and a time without zone for a timestamptz, are taken as UTC. */
static bool parse_timestamp(KnArena *arena, const KnType *type, KnStr text, KnValue *ret)
{
    static const char *const tails[] = {"T00:00:00", "+00:00", "T00:00:00+00:00"};
    if (text.len > 64)
        return false;
    for (size_t i = 0; i < sizeof(tails) / sizeof(*tails); i++) {
        char *longer = kn_arena_printf(arena, "%.*s%s", (int)text.len, text.ptr, tails[i]);
        if (kn_value_parse(arena, type, kn_str(longer), ret, NULL) == KN_OK)
            return true;
    }
    return false;
}

static const char *expected_text(KnTypeKind kind)
{
    switch (kind) {
    case KN_TYPE_DATE:
        return "a date such as '2026-01-31'";
    case KN_TYPE_TIME:
        return "a time such as '12:30:00'";
    case KN_TYPE_UUID:
        return "a uuid in quotes";
    case KN_TYPE_FIXED:
    case KN_TYPE_BINARY:
        return "bytes such as '0x00ff'";
    case KN_TYPE_STRING:
        return "text in single quotes";
    default:
        return "a time such as '2026-01-31T12:30:00'";
    }
}

static KnCode literal_text(KnArena *arena, const KnField *field, const KnWord *word, KnLiteral *ret,
                           KnErr *err)
{
    const KnType *type = field->type;
    KnLiteral lit = {.fit = KN_FIT_EXACT};
    bool ok = word->kind == KN_WORD_TEXT;
    if (ok && type->kind == KN_TYPE_STRING)
        lit.value = (KnValue){.kind = KN_TYPE_STRING, .bytes = word->text};
    else if (ok)
        ok = kn_value_parse(arena, type, word->text, &lit.value, NULL) == KN_OK ||
             (is_timestamp(type->kind) && parse_timestamp(arena, type, word->text, &lit.value));
    if (!ok || (type->kind == KN_TYPE_STRING && !kn_str_is_utf8(word->text)))
        return literal_error(field, word, expected_text(type->kind), err);
    *ret = lit;
    return KN_OK;
}

static KnCode literal_boolean(const KnField *field, const KnWord *word, KnLiteral *ret, KnErr *err)
{
    bool yes = kn_str_eq_nocase(word->text, KN_STR_LIT("true"));
    bool word_kind = word->kind == KN_WORD_NAME || word->kind == KN_WORD_TEXT;
    if (!word_kind || (!yes && !kn_str_eq_nocase(word->text, KN_STR_LIT("false"))))
        return literal_error(field, word, "TRUE or FALSE", err);
    *ret = (KnLiteral){.fit = KN_FIT_EXACT, .value = {.kind = KN_TYPE_BOOLEAN, .b = yes}};
    return KN_OK;
}

KnCode kn_expr_literal(KnArena *arena, const KnField *field, const KnWord *word, KnLiteral *ret,
                       KnErr *err)
{
    if (word->kind == KN_WORD_NAME && kn_str_eq_nocase(word->text, KN_STR_LIT("null")))
        return kn_err_set(err, KN_E_INVAL,
                          "filter, byte %zu: nothing equals NULL: write IS NULL or IS NOT NULL",
                          word->at);
    switch (field->type->kind) {
    case KN_TYPE_BOOLEAN:
        return literal_boolean(field, word, ret, err);
    case KN_TYPE_INT:
    case KN_TYPE_LONG:
    case KN_TYPE_DECIMAL:
        return literal_number(field, word, ret, err);
    case KN_TYPE_FLOAT:
    case KN_TYPE_DOUBLE:
        return literal_float(arena, field, word, ret, err);
    case KN_TYPE_DATE:
    case KN_TYPE_TIME:
    case KN_TYPE_TIMESTAMP:
    case KN_TYPE_TIMESTAMPTZ:
    case KN_TYPE_TIMESTAMP_NS:
    case KN_TYPE_TIMESTAMPTZ_NS:
    case KN_TYPE_STRING:
    case KN_TYPE_UUID:
    case KN_TYPE_FIXED:
    case KN_TYPE_BINARY:
        return literal_text(arena, field, word, ret, err);
    default:
        return literal_error(field, word, "IS NULL or IS NOT NULL only", err);
    }
}

/* ---- predicates ---- */

static const KnExpr *predicate(KnArena *arena, const KnExpr *column, KnExprOp op,
                               const KnValue *literal)
{
    KnExpr *expr = kn_arena_alloc(arena, sizeof(*expr));
    *expr = *column;
    expr->op = op;
    if (literal) {
        KnValue *copy = kn_arena_alloc(arena, sizeof(*copy));
        *copy = *literal;
        expr->literals = copy;
        expr->n_literals = 1;
    }
    return expr;
}

static bool is_floating(const KnExpr *column)
{
    return column->field->type->kind == KN_TYPE_FLOAT ||
           column->field->type->kind == KN_TYPE_DOUBLE;
}

/* Outside the finite values lie the infinities and NaN: they are asked about by the nearest finite
 * value; other types hold nothing there. */
static const KnExpr *compare_outside(KnArena *arena, const KnExpr *column, KnExprOp op,
                                     const KnLiteral *lit)
{
    bool less = op == KN_EXPR_LT || op == KN_EXPR_LE;
    bool above = lit->fit == KN_FIT_ABOVE;
    if (op == KN_EXPR_EQ)
        return predicate(arena, column, KN_EXPR_FALSE, NULL);
    if (op == KN_EXPR_NE)
        return predicate(arena, column, KN_EXPR_NOT_NULL, NULL);
    if (is_floating(column)) {
        KnExprOp inside = above ? KN_EXPR_LE : KN_EXPR_GE;
        KnExprOp outside = above ? KN_EXPR_GT : KN_EXPR_LT;
        return predicate(arena, column, less == above ? inside : outside, &lit->value);
    }
    return predicate(arena, column, less == above ? KN_EXPR_NOT_NULL : KN_EXPR_FALSE, NULL);
}

const KnExpr *kn_expr_compare(KnArena *arena, const KnExpr *column, KnExprOp op,
                              const KnLiteral *lit)
{
    if (lit->fit == KN_FIT_EXACT)
        return predicate(arena, column, op, &lit->value);
    if (lit->fit != KN_FIT_BETWEEN)
        return compare_outside(arena, column, op, lit);
    switch (op) {
    case KN_EXPR_EQ:
        return predicate(arena, column, KN_EXPR_FALSE, NULL);
    case KN_EXPR_NE:
        return predicate(arena, column, KN_EXPR_NOT_NULL, NULL);
    case KN_EXPR_LT:
    case KN_EXPR_LE:
        return predicate(arena, column, KN_EXPR_LE, &lit->value);
    default:
        return predicate(arena, column, KN_EXPR_GT, &lit->value);
    }
}

const KnExpr *kn_expr_among(KnArena *arena, const KnExpr *column, KnExprOp op,
                            const KnLiteral *lits, size_t n)
{
    bool in = op == KN_EXPR_IN;
    KnValue *values = kn_arena_alloc(arena, (n + 1) * sizeof(*values));
    size_t kept = 0;
    for (size_t i = 0; i < n; i++)
        if (lits[i].fit == KN_FIT_EXACT)
            values[kept++] = lits[i].value;
    if (kept == 0)
        return predicate(arena, column, in ? KN_EXPR_FALSE : KN_EXPR_NOT_NULL, NULL);
    if (kept == 1)
        return predicate(arena, column, in ? KN_EXPR_EQ : KN_EXPR_NE, values);
    KnExpr *expr = kn_arena_alloc(arena, sizeof(*expr));
    *expr = *column;
    expr->op = op;
    expr->literals = values;
    expr->n_literals = kept;
    return expr;
}
