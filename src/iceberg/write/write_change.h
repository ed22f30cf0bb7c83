/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * write_change.h - an operation that takes rows away, from the files at hand to its commit: what
 * delete, overwrite and upsert share.
 *
 * The caller plans, says which rows go, and gets files sorted out: those that go whole, and those
 * some of whose rows go. The latter are written anew (copy-on-write) or get deletes
 * (merge-on-read). Everything lives in the writer's arena but the plan, the read and the lists,
 * which kn_change_done() frees.
 */
#include "iceberg/scan/read.h"
#include "iceberg/write/write_internal.h"

typedef KN_VEC(KnScanTask) KnTaskVec;

typedef struct KnChange {
    KnWriter *w;
    int32_t format_version; /* when the operation began */
    const KnExpr *filter;   /* no row that goes, and none that would have to, is outside of it */
    const char *what;       /* "rows that the filter may match", for messages */
    bool merge_on_read;
    bool deletes_only; /* no row comes in the place of one that goes */
    KnPlan *plan;
    KnTaskVec tasks;      /* that may hold rows that go */
    KnRead *read;         /* open on tasks while rows_sql is run; or NULL */
    const char *rows_sql; /* SELECT of task, position: the rows of tasks that go */
    KnTaskVec partial;    /* some of their rows go */
    KnEntryVec removed;   /* data files that go */
    KnEntryVec removed_deletes;
    int64_t removed_rows;
} KnChange;

/** The mode of an operation: what was asked for, or what the table's property key says. */
KN_NODISCARD KnCode kn_change_mode(const KnWriter *w, const char *key, bool *ret_merge_on_read,
                                   KnErr *err);
/** Counts rows_sql by file, into removed (all live rows go) and partial. The read must be open. */
KN_NODISCARD KnCode kn_change_sort_out(KnChange *change, KnErr *err);
/** Merge-on-read: deletes for the rows of partial. The read must be open, with keep_positions. */
KN_NODISCARD KnCode kn_change_write_deletes(KnChange *change, KnErr *err);
/** SELECT of (number within partial, position): the rows that go, for KnReadOptions.except_sql. */
KN_NODISCARD KnCode kn_change_except_sql(const KnChange *change, KnBuf *buf, KnErr *err);
/** One snapshot, unless nothing changed (*ret_id is left alone then). */
KN_NODISCARD KnCode kn_change_commit(KnChange *change, const char *operation, int64_t *ret_id,
                                     KnErr *err);
void kn_change_done(KnChange *change);

/** KN_E_CONFLICT when the change does not hold on a newer head (write_conflict.c). */
KN_NODISCARD KnCode kn_change_check_base(const KnChange *change, const KnSnapshot *base,
                                         const KnSnapshot *head, KnErr *err);
/** Puts " FROM (<read>) AS r(c0, c1, ...<more>)". */
void kn_change_put_source(KnBuf *buf, const KnRead *read, const KnSchema *schema, const char *more);
