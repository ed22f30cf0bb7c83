/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * plan.h - which files hold a snapshot's rows, and which delete files apply to each (spec: "Scan
 * Planning").
 *
 * Only manifests are read; one at a time. Pruned by manifest summaries, partition tuples and column
 * bounds. Delete files are matched by sequence number (equality: strictly newer than the data;
 * position: newer or equal), partition and spec (an unpartitioned spec's equality deletes are
 * global), referenced data file and path bounds.
 */
#include "iceberg/expr/expr.h"
#include "iceberg/table.h"

typedef struct KnScanTask {
    const KnManifestEntry *data;
    size_t n_deletes;
    const KnManifestEntry *const *deletes; /* in order of sequence number */
} KnScanTask;

/* A view of tasks, borrowed. */
typedef struct KnScanTasks {
    const KnScanTask *items;
    size_t n;
} KnScanTasks;

typedef struct KnPlanOptions {
    const KnSnapshot *snapshot;
    const KnSchema *schema; /* names and types of the filter; NULL = the snapshot's */
    const KnExpr *filter;   /* bound to schema; NULL = all rows */
} KnPlanOptions;

typedef struct KnPlan {
    const KnTable *tbl;
    const KnSnapshot *snapshot;
    const KnExpr *filter;
    size_t n_tasks;
    KnScanTask *tasks;       /* in manifest order */
    int64_t n_rows, n_bytes; /* of the data files, before deletes */
    int64_t n_delete_files, delete_bytes;
    int64_t manifests_read, manifests_skipped, files_skipped;
    KnArena *arena; /* owns all of it */
} KnPlan;

KN_NODISCARD KnCode kn_plan_scan(const KnTable *tbl, const KnPlanOptions *opts, KnPlan **ret,
                                 KnErr *err);
KnPlan *kn_plan_free(KnPlan *plan);
