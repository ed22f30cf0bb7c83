/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * rest_filter.h - the specification's JSON predicates (schema Predicate, old and new forms) as
 * filters for planning.
 *
 * A filter for planning may let through too much, as clients filter rows themselves, and never too
 * little: what this server does not evaluate on files (transforms, functions, comparisons of two
 * columns) lets everything through. Not thread-safe on one arena.
 */
#include "base/json.h"
#include "iceberg/expr/expr.h"

typedef struct KnRestFilter {
    KnArena *arena;
    const KnSchema *schema;
    bool ignore_case; /* of column names */
} KnRestFilter;

/** *ret NULL: everything. KN_E_INVAL: not a predicate, or of a column that is not there. */
KN_NODISCARD KnCode kn_rest_filter_parse(const KnRestFilter *ctx, const json_t *json,
                                         const KnExpr **ret, KnErr *err);
/** The field of a name as requests write it ("a.b.element.c"); NULL = none. */
const KnField *kn_rest_field_find(const KnRestFilter *ctx, const char *name);
