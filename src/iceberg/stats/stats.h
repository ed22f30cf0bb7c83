/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * stats.h - statistics files of a snapshot (spec: "Table Statistics", "Partition Statistics"):
 * computed, written below the table's metadata folder, and set in its metadata. As Java's
 * ComputeTableStats and PartitionStatsHandler. One thread.
 */
#include "engine/engine.h"
#include "iceberg/table.h"

typedef struct KnStatsOptions {
    const KnSnapshot *snapshot;
    size_t n_columns;
    const char *const *columns; /* dotted names inside structs; none = all of the top level */
    bool (*cancelled)(void);    /* or NULL; asked between batches */
    KnArena *arena;             /* for the result */
} KnStatsOptions;

typedef struct KnColumnNdv {
    const char *column;
    int32_t field_id;
    int64_t ndv; /* distinct values, NULL, '' and empty bytes left out */
    bool exact;  /* not an estimate */
} KnColumnNdv;

/* Lives in the options' arena. */
typedef struct KnStatsFile {
    const char *path;
    int64_t bytes;
    size_t n_columns;
    const KnColumnNdv *columns; /* of table statistics */
    int64_t n_partitions;       /* of partition statistics */
} KnStatsFile;

/** A Puffin file with a sketch (apache-datasketches-theta-v1) for each column, by reading the
 * snapshot's rows. KN_E_INVAL for a column that does not exist or holds no single values. The file
 * is removed when it does not become part of the table. */
KN_NODISCARD KnCode kn_stats_compute(KnTable *tbl, KnSession *ses, const KnStatsOptions *opts,
                                     KnStatsFile *ret, KnErr *err);
/** A Parquet file with a row for each partition of each spec, from manifests alone.
 * total_record_count is given where only deletion vectors delete. KN_E_INVAL for a table that is
 * not partitioned. */
KN_NODISCARD KnCode kn_partition_stats_compute(KnTable *tbl, KnSession *ses,
                                               const KnStatsOptions *opts, KnStatsFile *ret,
                                               KnErr *err);
/** Sets what a statistics file's object says (KN_UPDATE_SET_STATISTICS or
 * KN_UPDATE_SET_PARTITION_STATISTICS). */
KN_NODISCARD KnCode kn_stats_commit(KnTable *tbl, KnUpdateKind kind, const json_t *obj, KnErr *err);
