/* SPDX-License-Identifier: Apache-2.0 */
/*
 * expr_prune.c - filters against files, partition tuples and manifests.
 *
 * A predicate on a column is carried through the spec's transform to a predicate on the partition
 * value (spec: "Scan Planning", inclusive and strict projection), then put to the value's range.
 * Partition values of time transforms below zero may be one too great: old writers rounded towards
 * zero, so projections allow for it as Java's fixInclusiveTimeProjection does.
 */
#include <stdint.h>

#include "iceberg/expr/expr_range.h"

typedef struct Projected {
    const KnExpr *pred;
    const KnTransform *transform;
    const KnRange *part; /* of the partition values */
    KnArena *arena;
} Projected;

/* ---- helpers of projection ---- */

static bool transformed(const Projected *p, const KnValue *lit, KnValue *ret)
{
    return kn_transform_apply(p->arena, p->transform, p->pred->field->type, lit, ret, NULL) ==
               KN_OK &&
           !ret->null;
}

/* The neighbour of a discrete literal; false when there is none or the type is not discrete. */
static bool stepped(const KnValue *lit, int by, KnValue *ret)
{
    *ret = *lit;
    switch (lit->kind) {
    case KN_TYPE_DECIMAL:
        ret->dec += by;
        return true;
    case KN_TYPE_INT:
        ret->i += by;
        return ret->i >= INT32_MIN && ret->i <= INT32_MAX;
    case KN_TYPE_LONG:
    case KN_TYPE_DATE:
    case KN_TYPE_TIMESTAMP:
    case KN_TYPE_TIMESTAMPTZ:
    case KN_TYPE_TIMESTAMP_NS:
    case KN_TYPE_TIMESTAMPTZ_NS:
        return !__builtin_add_overflow(lit->i, (int64_t)by, &ret->i);
    default:
        return false;
    }
}

static bool part_may(const Projected *p, KnExprOp op, const KnValue *value)
{
    return kn_range_may_match(p->part, op, value, 1);
}

static bool part_must(const Projected *p, KnExprOp op, const KnValue *value)
{
    return kn_range_must_match(p->part, op, value, 1);
}

static bool is_time_transform(KnTransformKind kind)
{
    return kind == KN_TRANSFORM_YEAR || kind == KN_TRANSFORM_MONTH || kind == KN_TRANSFORM_DAY ||
           kind == KN_TRANSFORM_HOUR;
}

/* Truncating the least integers wraps round to the greatest values: a partition up there may hold
 * either. */
static bool may_have_wrapped(const Projected *p, const KnValue *lit)
{
    if (p->transform->kind != KN_TRANSFORM_TRUNCATE ||
        (lit->kind != KN_TYPE_INT && lit->kind != KN_TYPE_LONG))
        return false;
    int64_t most = lit->kind == KN_TYPE_INT ? INT32_MAX : INT64_MAX;
    return !p->part->has_upper || p->part->upper.i > most - p->transform->param;
}

static bool has_wrapped(const Projected *p, const KnValue *from, const KnValue *to)
{
    return p->transform->kind == KN_TRANSFORM_TRUNCATE &&
           (from->kind == KN_TYPE_INT || from->kind == KN_TYPE_LONG) && to->i > from->i;
}

/* ---- inclusive ---- */

static bool may_equal(const Projected *p, const KnValue *lit)
{
    KnValue t;
    if (!transformed(p, lit, &t) || part_may(p, KN_EXPR_EQ, &t))
        return true;
    if (!is_time_transform(p->transform->kind) || t.i >= 0)
        return false;
    t.i++;
    return part_may(p, KN_EXPR_EQ, &t);
}

static bool may_be_ordered(const Projected *p, KnExprOp op, const KnValue *lit)
{
    bool less = op == KN_EXPR_LT || op == KN_EXPR_LE;
    KnValue v = *lit;
    KnValue t;
    if (less && may_have_wrapped(p, lit))
        return true;
    if (op == KN_EXPR_LT || op == KN_EXPR_GT) {
        bool text = lit->kind == KN_TYPE_STRING || lit->kind == KN_TYPE_BINARY;
        if (!text && !stepped(lit, less ? -1 : 1, &v))
            return true;
    }
    if (!transformed(p, &v, &t) || has_wrapped(p, &v, &t))
        return true;
    if (less && is_time_transform(p->transform->kind) && t.i < 0)
        t.i++;
    return part_may(p, less ? KN_EXPR_LE : KN_EXPR_GE, &t);
}

/* How the prefix's length in characters compares with truncate's width. */
static int prefix_width(const Projected *p)
{
    KnStr prefix = p->pred->literals->bytes;
    int64_t chars = 0;
    for (size_t i = 0; i < prefix.len; i++)
        chars += ((unsigned char)prefix.ptr[i] & 0xC0) != 0x80;
    return chars < p->transform->param ? -1 : chars > p->transform->param;
}

static bool may_prefix(const Projected *p)
{
    const KnValue *lit = p->pred->literals;
    int width = prefix_width(p);
    if (p->pred->op == KN_EXPR_STARTS_WITH)
        return width < 0 ? part_may(p, KN_EXPR_STARTS_WITH, lit) : may_equal(p, lit);
    if (width > 0)
        return true;
    return part_may(p, width < 0 ? KN_EXPR_NOT_STARTS_WITH : KN_EXPR_NE, lit);
}

static bool may_through_transform(const Projected *p)
{
    const KnExpr *pred = p->pred;
    bool bucket = p->transform->kind == KN_TRANSFORM_BUCKET;
    switch (pred->op) {
    case KN_EXPR_IS_NULL:
    case KN_EXPR_NOT_NULL:
        return kn_range_may_match(p->part, pred->op, NULL, 0);
    case KN_EXPR_EQ:
        return may_equal(p, pred->literals);
    case KN_EXPR_IN:
        for (size_t i = 0; i < pred->n_literals; i++)
            if (may_equal(p, &pred->literals[i]))
                return true;
        return false;
    case KN_EXPR_LT:
    case KN_EXPR_LE:
    case KN_EXPR_GT:
    case KN_EXPR_GE:
        return bucket || may_be_ordered(p, pred->op, pred->literals);
    case KN_EXPR_STARTS_WITH:
    case KN_EXPR_NOT_STARTS_WITH:
        return p->transform->kind != KN_TRANSFORM_TRUNCATE || may_prefix(p);
    default:
        return true;
    }
}

static bool may_project(const Projected *p)
{
    switch (p->transform->kind) {
    case KN_TRANSFORM_IDENTITY:
        return kn_range_may_match(p->part, p->pred->op, p->pred->literals, p->pred->n_literals);
    case KN_TRANSFORM_VOID:
    case KN_TRANSFORM_UNKNOWN:
        return true;
    default:
        return may_through_transform(p);
    }
}

/* ---- strict ---- */

static bool must_differ(const Projected *p, const KnValue *lit)
{
    KnValue t;
    if (!transformed(p, lit, &t) || !part_must(p, KN_EXPR_NE, &t))
        return false;
    if (!is_time_transform(p->transform->kind) || t.i >= 0)
        return true;
    t.i++;
    return part_must(p, KN_EXPR_NE, &t);
}

static bool must_be_ordered(const Projected *p, KnExprOp op, const KnValue *lit)
{
    bool less = op == KN_EXPR_LT || op == KN_EXPR_LE;
    KnValue v = *lit;
    KnValue t;
    if (!less && may_have_wrapped(p, lit))
        return false;
    if (op == KN_EXPR_LE || op == KN_EXPR_GE) {
        if (!stepped(lit, less ? 1 : -1, &v))
            return false;
    } else if (lit->kind == KN_TYPE_STRING || lit->kind == KN_TYPE_BINARY) {
        return false;
    }
    if (!transformed(p, &v, &t) || has_wrapped(p, &v, &t))
        return false;
    if (!less && is_time_transform(p->transform->kind) && t.i < 0)
        t.i++;
    return part_must(p, less ? KN_EXPR_LT : KN_EXPR_GT, &t);
}

static bool must_through_transform(const Projected *p)
{
    const KnExpr *pred = p->pred;
    bool bucket = p->transform->kind == KN_TRANSFORM_BUCKET;
    switch (pred->op) {
    case KN_EXPR_IS_NULL:
    case KN_EXPR_NOT_NULL:
        return kn_range_must_match(p->part, pred->op, NULL, 0);
    case KN_EXPR_NE:
        return must_differ(p, pred->literals);
    case KN_EXPR_NOT_IN:
        for (size_t i = 0; i < pred->n_literals; i++)
            if (!must_differ(p, &pred->literals[i]))
                return false;
        return true;
    case KN_EXPR_LT:
    case KN_EXPR_LE:
    case KN_EXPR_GT:
    case KN_EXPR_GE:
        return !bucket && must_be_ordered(p, pred->op, pred->literals);
    case KN_EXPR_STARTS_WITH:
        return p->transform->kind == KN_TRANSFORM_TRUNCATE && prefix_width(p) <= 0 &&
               part_must(p, KN_EXPR_STARTS_WITH, pred->literals);
    default:
        return false;
    }
}

static bool must_project(const Projected *p)
{
    switch (p->transform->kind) {
    case KN_TRANSFORM_IDENTITY:
        return kn_range_must_match(p->part, p->pred->op, p->pred->literals, p->pred->n_literals);
    case KN_TRANSFORM_VOID:
    case KN_TRANSFORM_UNKNOWN:
        return false;
    default:
        return must_through_transform(p);
    }
}

/* ---- trees ---- */

typedef struct Subject {
    const KnPartitionSpec *spec;
    const KnDataFile *file; /* or */
    const KnManifestFile *mf;
    KnArena *arena;
} Subject;

typedef bool (*PredicateFn)(const KnExpr *pred, const Subject *subject);

/* NOT is never in a parsed tree; one made by hand is not looked into. */
static bool may_tree(const KnExpr *expr, PredicateFn fn, const Subject *subject)
{
    switch (expr->op) {
    case KN_EXPR_FALSE:
        return false;
    case KN_EXPR_TRUE:
    case KN_EXPR_NOT:
        return true;
    case KN_EXPR_AND:
        for (size_t i = 0; i < expr->n_children; i++)
            if (!may_tree(expr->children[i], fn, subject))
                return false;
        return true;
    case KN_EXPR_OR:
        for (size_t i = 0; i < expr->n_children; i++)
            if (may_tree(expr->children[i], fn, subject))
                return true;
        return false;
    default:
        return fn(expr, subject);
    }
}

static bool must_tree(const KnExpr *expr, PredicateFn fn, const Subject *subject)
{
    switch (expr->op) {
    case KN_EXPR_TRUE:
        return true;
    case KN_EXPR_FALSE:
    case KN_EXPR_NOT:
        return false;
    case KN_EXPR_AND:
        for (size_t i = 0; i < expr->n_children; i++)
            if (!must_tree(expr->children[i], fn, subject))
                return false;
        return true;
    case KN_EXPR_OR:
        for (size_t i = 0; i < expr->n_children; i++)
            if (must_tree(expr->children[i], fn, subject))
                return true;
        return false;
    default:
        return fn(expr, subject);
    }
}

static bool may_predicate_file(const KnExpr *pred, const Subject *subject)
{
    KnRange range = kn_range_of_file(subject->file, pred->field);
    return kn_range_may_match(&range, pred->op, pred->literals, pred->n_literals);
}

static bool may_predicate_tuple(const KnExpr *pred, const Subject *s)
{
    for (size_t i = 0; i < s->spec->n_fields && i < s->file->n_partition; i++) {
        if (s->spec->fields[i].source_id != pred->field->id)
            continue;
        KnRange part = kn_range_of_value(&s->file->partition[i]);
        Projected p = {pred, &s->spec->fields[i].transform, &part, s->arena};
        if (!may_project(&p))
            return false;
    }
    return true;
}

static const KnType *partition_value_type(const KnTransform *transform, const KnType *source)
{
    static const KnType int_type = {.kind = KN_TYPE_INT};
    return transform->kind == KN_TRANSFORM_IDENTITY || transform->kind == KN_TRANSFORM_TRUNCATE
               ? source
               : &int_type;
}

static bool may_predicate_summary(const KnExpr *pred, const Subject *s)
{
    for (size_t i = 0; i < s->spec->n_fields && i < s->mf->n_partitions; i++) {
        const KnPartitionField *field = &s->spec->fields[i];
        if (field->source_id != pred->field->id)
            continue;
        KnRange part = kn_range_of_summary(
            &s->mf->partitions[i], partition_value_type(&field->transform, pred->field->type));
        Projected p = {pred, &field->transform, &part, s->arena};
        if (!may_project(&p))
            return false;
    }
    return true;
}

static bool must_predicate(const KnExpr *pred, const Subject *s)
{
    KnRange range = kn_range_of_file(s->file, pred->field);
    if (kn_range_must_match(&range, pred->op, pred->literals, pred->n_literals))
        return true;
    for (size_t i = 0; i < s->spec->n_fields && i < s->file->n_partition; i++) {
        if (s->spec->fields[i].source_id != pred->field->id)
            continue;
        KnRange part = kn_range_of_value(&s->file->partition[i]);
        Projected p = {pred, &s->spec->fields[i].transform, &part, s->arena};
        if (must_project(&p))
            return true;
    }
    return false;
}

bool kn_expr_may_match_file(const KnExpr *expr, const KnDataFile *file)
{
    Subject subject = {.file = file};
    return file->record_count != 0 && may_tree(expr, may_predicate_file, &subject);
}

bool kn_expr_may_match_partition(const KnExpr *expr, const KnPartitionSpec *spec,
                                 const KnSchema *schema, const KnDataFile *file)
{
    (void)schema; /* predicates are bound: they carry the source's type */
    if (spec->n_fields == 0)
        return may_tree(expr, may_predicate_tuple, &(Subject){.spec = spec, .file = file});
    KN_ARENA_AUTO arena = kn_arena_new(0);
    Subject subject = {.spec = spec, .file = file, .arena = arena};
    return may_tree(expr, may_predicate_tuple, &subject);
}

bool kn_expr_may_match_manifest(const KnExpr *expr, const KnPartitionSpec *spec,
                                const KnSchema *schema, const KnManifestFile *mf)
{
    (void)schema;
    KN_ARENA_AUTO arena = kn_arena_new(0);
    Subject subject = {.spec = spec, .mf = mf, .arena = arena};
    return may_tree(expr, may_predicate_summary, &subject);
}

bool kn_expr_must_match_file(const KnExpr *expr, const KnPartitionSpec *spec,
                             const KnSchema *schema, const KnDataFile *file)
{
    (void)schema;
    KN_ARENA_AUTO arena = kn_arena_new(0);
    Subject subject = {.spec = spec, .file = file, .arena = arena};
    return must_tree(expr, must_predicate, &subject);
}
