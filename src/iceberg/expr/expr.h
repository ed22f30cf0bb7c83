/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * expr.h - row filters: text -> tree -> bound to a schema -> pruning of files, and SQL for rows.
 *
 * The text is SQL's: `a = 1 AND (b IN ('x','y') OR c IS NOT NULL) AND NOT d LIKE 'ab%' AND ts >=
 * '2026-01-01'`, with = <> != < <= > >= IN, NOT IN, BETWEEN, IS [NOT] NULL, IS [NOT] NAN, LIKE
 * 'prefix%', TRUE, FALSE, quoted "names", dotted struct fields. Errors carry the column (byte
 * offset) and what was expected. Immutable after binding.
 */
#include "iceberg/manifest/manifest.h"

typedef enum KnExprOp {
    KN_EXPR_TRUE,
    KN_EXPR_FALSE,
    KN_EXPR_AND,
    KN_EXPR_OR,
    KN_EXPR_NOT,
    KN_EXPR_EQ,
    KN_EXPR_NE,
    KN_EXPR_LT,
    KN_EXPR_LE,
    KN_EXPR_GT,
    KN_EXPR_GE,
    KN_EXPR_IN,
    KN_EXPR_NOT_IN,
    KN_EXPR_IS_NULL,
    KN_EXPR_NOT_NULL,
    KN_EXPR_IS_NAN,
    KN_EXPR_NOT_NAN,
    KN_EXPR_STARTS_WITH,
    KN_EXPR_NOT_STARTS_WITH,
} KnExprOp;

typedef struct KnExpr {
    KnExprOp op;
    size_t n_children;
    const struct KnExpr *const *children; /* AND, OR, NOT */
    const char *name;                     /* predicates: the dotted name as given */
    const KnField *field;                 /* bound */
    size_t n_path;                        /* from the top-level column down to field */
    const KnField *const *path;
    size_t n_literals;
    const KnValue *literals; /* bound: in the field's type */
} KnExpr;

/** Parse and bind to schema. NOT is pushed down to the predicates: no NOT is left in the tree, so
 * that a predicate which can never be TRUE may stand as FALSE. Literals out of the type's range
 * make the predicate TRUE or FALSE as logic asks. */
KN_NODISCARD KnCode kn_expr_parse(KnArena *arena, KnStr text, const KnSchema *schema,
                                  const KnExpr **ret, KnErr *err);
/** SQL with SQL's three-valued logic over columns named as in the schema. */
KN_NODISCARD KnCode kn_expr_sql(KnBuf *buf, const KnExpr *expr, KnErr *err);
/** The same over other names: column_fn writes the SQL of a top-level column. */
typedef void (*KnExprColumnFn)(void *arg, KnBuf *buf, const KnField *column);
KN_NODISCARD KnCode kn_expr_sql_with(KnBuf *buf, const KnExpr *expr, KnExprColumnFn column_fn,
                                     void *arg, KnErr *err);
/** Calls fn for the top-level column of every predicate (columns may repeat). */
void kn_expr_columns(const KnExpr *expr, void (*fn)(void *arg, const KnField *column), void *arg);

/* Pruning. "may" = false only when no row can match (never a false negative; NULLs, NaN, absent or
 * truncated bounds, dropped or promoted columns handled). */
bool kn_expr_may_match_file(const KnExpr *expr, const KnDataFile *file);
/** Inclusive projection through the spec's transforms on a file's partition tuple. */
bool kn_expr_may_match_partition(const KnExpr *expr, const KnPartitionSpec *spec,
                                 const KnSchema *schema, const KnDataFile *file);
/** The same on a manifest's partition summaries. */
bool kn_expr_may_match_manifest(const KnExpr *expr, const KnPartitionSpec *spec,
                                const KnSchema *schema, const KnManifestFile *mf);
/** True when every row of the file must match (for deletes of whole files without reading them). */
bool kn_expr_must_match_file(const KnExpr *expr, const KnPartitionSpec *spec,
                             const KnSchema *schema, const KnDataFile *file);
