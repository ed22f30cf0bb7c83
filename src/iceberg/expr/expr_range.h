/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * expr_range.h - what is known about the values of a column in some set of rows, and what a
 * predicate makes of it.
 *
 * One shape serves a file's column metrics, a partition value and a manifest's partition summary.
 * "May" answers err towards true, "must" towards false. Row semantics are those of the SQL that
 * kn_expr_sql() writes: a NULL matches nothing but IS NULL, NaN is greater than every number and
 * equal to itself, 0.0 equals -0.0. Values without allocation; bytes are borrowed. Thread-safe.
 */
#include "iceberg/expr/expr.h"

typedef struct KnRange {
    bool may_null, all_null;
    bool may_nan, all_nan;     /* of the values that are not NULL: some, every */
    bool has_lower, has_upper; /* bounds of the values that are neither NULL nor NaN */
    KnValue lower, upper;
} KnRange;

KnRange kn_range_of_file(const KnDataFile *file, const KnField *field);
KnRange kn_range_of_value(const KnValue *value);
KnRange kn_range_of_summary(const KnFieldSummary *summary, const KnType *type);

bool kn_range_may_match(const KnRange *range, KnExprOp op, const KnValue *lits, size_t n);
bool kn_range_must_match(const KnRange *range, KnExprOp op, const KnValue *lits, size_t n);
/** Whether a value of a may equal one of b, NULL being equal to NULL. */
bool kn_range_may_overlap(const KnRange *a, const KnRange *b);
/** False when the order of the two is not known: different families of types, or UUIDs that signed
 * and unsigned comparison (both are found in writers) order differently. */
bool kn_range_compare(const KnValue *a, const KnValue *b, int *ret);
