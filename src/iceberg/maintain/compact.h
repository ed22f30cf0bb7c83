/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * compact.h - data files written anew without a change of rows: fewer, of the wanted size, sorted,
 * without their deletes (Iceberg's rewrite_data_files; Java's BinPackRewriteFilePlanner and
 * RewriteDataFilesCommitManager).
 *
 * A plan is a list of groups: files of one partition (files of a spec other than the one written
 * are one partition), packed up to a size, each rewritten as a whole. Snapshots have the operation
 * `replace`. New files keep the data sequence number of the snapshot that was planned, so that
 * equality deletes which others add meanwhile still apply to them; new position deletes and
 * deletion vectors of a file that goes are a conflict, and so are equality deletes where that
 * number cannot be kept: rows that move to another spec. v3 rows keep their row id and the sequence
 * number of their last change.
 */
#include "base/progress.h"
#include "iceberg/maintain/rewrite_sizes.h"
#include "iceberg/scan/plan.h"
#include "iceberg/write/write.h"

typedef struct KnCompactOptions {
    KnWriteOptions write;
    const KnExpr *filter;          /* files that may hold matching rows; NULL = all */
    bool sort;                     /* strategy sort; else files are joined as they are */
    const KnSortOrder *sort_order; /* of strategy sort; NULL = the table's */
    KnRewriteSizes sizes;          /* target: write.target-file-size-bytes */
    int64_t delete_file_threshold; /* files with so many delete files are rewritten; -1 = never */
    double delete_ratio_threshold; /* deleted rows of a file, in (0, 1]; 0 = 0.3 */
    bool new_sequence_number;      /* use-starting-sequence-number = false */
    bool remove_dangling_deletes;  /* in a snapshot of its own, after the others */
    int32_t output_spec_id;        /* -1 = the default spec */
    bool partial_progress;         /* commit groups as they are done */
    int64_t max_commits;           /* with partial progress; 0 = 10 */
    int64_t max_failed_commits;    /* with partial progress; -1 = max_commits */
    KnProgressMode progress;       /* of rows and bytes, on standard error */
} KnCompactOptions;

/** What Iceberg's procedures have where nothing is said. */
KnCompactOptions kn_compact_defaults(void);

typedef struct KnCompactGroup {
    int32_t spec_id;          /* of the files */
    bool one_partition;       /* they have the output spec, and this tuple */
    const KnValue *partition; /* NULL: no fields, or files of another spec */
    size_t n_tasks;
    const KnScanTask **tasks; /* in manifest order */
    int64_t bytes, rows;      /* of the files, before deletes */
    int64_t n_deletes;        /* delete files that apply, counted for each file */
    int64_t file_bytes;       /* aimed at for the files written */
} KnCompactGroup;

typedef struct KnCompactPlan {
    const KnSnapshot *snapshot; /* of scan->tbl's metadata when it was planned; NULL = none */
    const KnPartitionSpec *spec;
    size_t n_groups;
    KnCompactGroup *groups; /* in the order in which they are rewritten */
    int64_t n_files, bytes, rows;
    KnPlan *scan;   /* NULL without a snapshot */
    KnArena *arena; /* owns all of it, and a reference to the metadata */
} KnCompactPlan;

/** From manifests alone. KN_E_INVAL names the option that is wrong. */
KN_NODISCARD KnCode kn_compact_plan(const KnTable *tbl, const KnCompactOptions *opts,
                                    KnCompactPlan **ret, KnErr *err);
KnCompactPlan *kn_compact_plan_free(KnCompactPlan *plan);

typedef struct KnCompactResult {
    int64_t snapshot_id; /* of the last commit; -1 = nothing was done */
    int64_t n_groups;    /* rewritten and committed */
    int64_t n_commits, n_failed_commits;
    int64_t removed_files, removed_bytes; /* data files */
    int64_t added_files, added_bytes, added_rows;
    int64_t removed_delete_files;
} KnCompactResult;

/** Plans, rewrites and commits. On a failure with partial progress what was committed stays, and
 * *ret tells it; without, nothing stays. KN_E_CONFLICT: run it again. */
KN_NODISCARD KnCode kn_write_compact(KnTable *tbl, KnSession *ses, const KnCompactOptions *opts,
                                     KnCompactResult *ret, KnErr *err);

/** Removes the delete files that cannot apply to any live data file of the branch any more, by
 * sequence number, partition and reference (Java's RemoveDanglingDeletesSparkAction), as one
 * snapshot; *ret_snapshot_id -1 = there are none. */
KN_NODISCARD KnCode kn_write_remove_dangling(KnTable *tbl, const KnWriteOptions *opts,
                                             int64_t *ret_snapshot_id, int64_t *ret_files,
                                             KnErr *err);
