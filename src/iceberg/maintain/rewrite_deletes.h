/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * rewrite_deletes.h - files of position deletes written anew, without a change of rows (Iceberg's
 * rewrite_position_delete_files; Java's BinPackRewritePositionDeletePlanner).
 *
 * In format 2 small and oversized files of a partition are packed into files of the wanted size. In
 * format 3 all files of position deletes become deletion vectors, one for each data file. Positions
 * in data files that are not live any more are left out, and so are files with no others. New
 * entries keep the highest data sequence number of those that they replace. The snapshot has the
 * operation `replace`.
 */
#include "base/progress.h"
#include "iceberg/maintain/rewrite_sizes.h"
#include "iceberg/scan/plan.h"
#include "iceberg/write/write.h"

typedef struct KnRewriteDeletesOptions {
    KnWriteOptions write;
    const KnExpr *filter;    /* partitions that may hold matching rows; NULL = all */
    KnRewriteSizes sizes;    /* target: write.delete.target-file-size-bytes */
    KnProgressMode progress; /* of bytes, on standard error */
} KnRewriteDeletesOptions;

KnRewriteDeletesOptions kn_rewrite_deletes_defaults(void);

/* Delete files of one partition that are rewritten together. */
typedef struct KnDeleteGroup {
    int32_t spec_id;
    size_t n_partition;
    const KnValue *partition;
    size_t n_files;
    const KnManifestEntry *const *files;
    int64_t bytes, positions;
    size_t n_data_files; /* live ones that they are about */
    const KnScanTask *const *data_files;
} KnDeleteGroup;

typedef struct KnDeletesPlan {
    const KnSnapshot *snapshot; /* NULL = none */
    bool vectors;               /* become deletion vectors */
    size_t n_groups;
    KnDeleteGroup *groups;
    size_t n_dangling; /* files about no live data file: they go, whatever their size */
    const KnManifestEntry *const *dangling;
    KnPlan *scan;
    KnArena *arena;
} KnDeletesPlan;

/** From manifests alone. KN_E_INVAL names the option that is wrong. */
KN_NODISCARD KnCode kn_rewrite_deletes_plan(const KnTable *tbl, const KnRewriteDeletesOptions *opts,
                                            KnDeletesPlan **ret, KnErr *err);
KnDeletesPlan *kn_rewrite_deletes_plan_free(KnDeletesPlan *plan);

typedef struct KnRewriteDeletesResult {
    int64_t snapshot_id; /* -1 = nothing to do */
    int64_t removed_files, removed_bytes;
    int64_t added_files, added_bytes; /* of deletion vectors: the vectors and their bytes */
    int64_t dropped_positions;        /* that were about no live data file, or repeated */
} KnRewriteDeletesResult;

/** KN_E_CONFLICT: another writer replaced one of the files, or, where vectors are made, deleted
 * rows of a data file that gets one: run it again. */
KN_NODISCARD KnCode kn_write_rewrite_deletes(KnTable *tbl, KnSession *ses,
                                             const KnRewriteDeletesOptions *opts,
                                             KnRewriteDeletesResult *ret, KnErr *err);
