/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * parquet.h - Parquet footers in, Parquet files with field ids and statistics out.
 *
 * Footers are read by the engine (parquet_schema / parquet_file_metadata) for many files in one
 * query; written files come back with the statistics that Iceberg's data_file needs.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "engine/engine.h"

/* A node of a file's schema tree. Leaves have sql_type; groups have children. LIST and MAP groups
 * are normalised: kind says so, and children are element, or key and value (the repeated group is
 * skipped). */
typedef enum KnPqKind { KN_PQ_LEAF, KN_PQ_STRUCT, KN_PQ_LIST, KN_PQ_MAP } KnPqKind;
typedef struct KnPqNode {
    const char *name;     /* as in the file */
    const char *sql_name; /* as read_parquet names it: differs when siblings differ in case only */
    int32_t field_id;     /* -1 = none in the file */
    KnPqKind kind;
    const char *sql_type; /* leaf: what read_parquet yields, e.g. "DECIMAL(9,2)", "TIMESTAMP WITH
                             TIME ZONE" */
    bool nanos_utc;       /* leaf: INT64 nanoseconds adjusted to UTC (the engine would cut to
                             microseconds) */
    size_t n_children;
    const struct KnPqNode *children;
} KnPqNode;

typedef struct KnPqFile {
    const char *path;
    KnPqNode root; /* KN_PQ_STRUCT of the columns */
    int64_t n_rows;
    int64_t n_row_groups;
    const char *shape;  /* canonical text of root: equal text = equal physical schema */
    bool has_field_ids; /* any node has one */
    bool hadoop_lz4;    /* codec LZ4: to be read from a copy (parquet_fix.h) */
} KnPqFile;

/** Footers of n paths (engine paths), in their order, in arena. A file that is missing, truncated
 * or not Parquet is reported by its path (KN_E_NOTFOUND / KN_E_CORRUPT), likewise one with a codec
 * that cannot be read (KN_E_UNSUPPORTED). */
KN_NODISCARD KnCode kn_parquet_footers(KnSession *ses, KnArena *arena, const char *const *paths,
                                       size_t n, KnPqFile **ret, KnErr *err);

/* Statistics of one leaf column of a written file. Text forms are the engine's casts to VARCHAR. */
typedef struct KnPqColumnStats {
    const char
        *path; /* leaf path, parts joined by '\x1f': "st\x1fa", "li\x1felement", "mp\x1fkey" */
    int64_t size_bytes;
    int64_t value_count;
    int64_t null_count; /* -1 = not known */
    bool has_nan;
    const char *min; /* NULL = none; NaN excluded; binary as hex text without prefix */
    const char *max;
} KnPqColumnStats;

/* What the engine's writer cannot say: the leaf with this field id is written as BLOB or BIGINT,
 * and called so in the file (parquet_finish.h). */
typedef enum KnPqAs {
    KN_PQ_AS_IT_IS,
    KN_PQ_AS_FIXED,     /* FIXED_LEN_BYTE_ARRAY(length), of BLOB */
    KN_PQ_AS_NANOS,     /* TIMESTAMP(NANOS, false), of BIGINT */
    KN_PQ_AS_NANOS_UTC, /* TIMESTAMP(NANOS, true), of BIGINT */
} KnPqAs;
typedef struct KnPqColumnType {
    int32_t field_id;
    KnPqAs as;
    int32_t length;
} KnPqColumnType;

/* The true size of a column whose statistics tell what it was before it was finished. */
typedef struct KnPqResized {
    int32_t field_id;
    int64_t size_bytes;
} KnPqResized;

typedef struct KnPqWritten {
    const char *path;
    int64_t n_rows;
    int64_t size_bytes;
    size_t n_groups; /* row groups, and where each begins */
    const int64_t *group_offsets;
    size_t n_resized;
    const KnPqResized *resized;
    size_t n_columns;
    const KnPqColumnStats *columns;
    size_t n_partition_keys; /* PARTITION_BY column values, in order; NULL = null */
    const char *const *partition_values;
} KnPqWritten;

typedef struct KnPqWriteOptions {
    const char *select_sql; /* rows to write */
    const char *target; /* engine path of the file, or of the folder when target_bytes or partitions
                           are given */
    const char *field_ids_sql; /* value of FIELD_IDS: "{id: 1, ...}" */
    const char *codec;      /* "zstd", "snappy", "gzip", "lz4_raw", "uncompressed"; NULL = zstd */
    int codec_level;        /* 0 = the codec's default */
    int64_t row_group_rows; /* 0 = 122880 */
    uint64_t target_bytes;  /* 0 = one file; else new files at about this size */
    const char *const
        *partition_columns; /* columns of select_sql that name the folder and are NOT written */
    size_t n_partition_columns;
    const char *file_pattern; /* "00000-<uuid>-{i}" for folder targets */
    /* The engine's dictionaries take 0.0 and -0.0 for one value and write whichever came first: set
     * where rows have -0.0. */
    bool no_dictionary;
    const KnPqColumnType *types; /* columns whose type the engine cannot write; by field id */
    size_t n_types;
} KnPqWriteOptions;

/** Runs COPY … RETURN_STATS. No rows = no files. On failure files already made are left: the caller
 * knows its target and removes them. */
KN_NODISCARD KnCode kn_parquet_write(KnSession *ses, KnArena *arena, const KnPqWriteOptions *opts,
                                     KnPqWritten **ret, size_t *ret_n, KnErr *err);
