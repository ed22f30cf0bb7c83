/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * manifest.h - manifest lists and manifests: read one at a time, written by our Avro codec
 * (spec: "Manifests", "Manifest Lists"; resolution by field id, facts of v1/v2/v3 differences in
 * manifest.c).
 */
#include "iceberg/metadata/metadata.h"
#include "iceberg/schema/value.h"
#include "storage/file_io.h"

typedef enum KnContent {
    KN_CONTENT_DATA = 0,
    KN_CONTENT_POSITION_DELETES = 1,
    KN_CONTENT_EQUALITY_DELETES = 2
} KnContent;
typedef enum KnEntryStatus {
    KN_ENTRY_EXISTING = 0,
    KN_ENTRY_ADDED = 1,
    KN_ENTRY_DELETED = 2
} KnEntryStatus;
typedef enum KnFileFormat {
    KN_FORMAT_PARQUET,
    KN_FORMAT_AVRO,
    KN_FORMAT_ORC,
    KN_FORMAT_PUFFIN
} KnFileFormat;

typedef struct KnFieldSummary {
    bool contains_null;
    int8_t contains_nan; /* -1 = unknown */
    KnStr lower, upper;  /* ptr NULL = absent */
} KnFieldSummary;

typedef struct KnManifestFile { /* a line of the manifest list */
    const char *path;
    int64_t length;
    int32_t spec_id;
    bool deletes; /* content */
    int64_t sequence_number, min_sequence_number;
    int64_t added_snapshot_id;
    int64_t added_files, existing_files, deleted_files; /* -1 = absent (v1) */
    int64_t added_rows, existing_rows, deleted_rows;
    size_t n_partitions;
    const KnFieldSummary *partitions;
    KnStr key_metadata;
    int64_t first_row_id; /* v3; -1 = null */
} KnManifestFile;

/** No file of it is live. Counts that are absent (v1) tell nothing. */
static inline bool kn_manifest_file_is_dead(const KnManifestFile *mf)
{
    return mf->added_files == 0 && mf->existing_files == 0;
}

typedef struct KnIdCount {
    int32_t id;
    int64_t count;
} KnIdCount;
typedef struct KnIdBound {
    int32_t id;
    KnStr bytes;
} KnIdBound;

typedef struct KnDataFile {
    KnContent content;
    const char *path; /* as written: never normalised (position deletes compare raw) */
    KnFileFormat format;
    int32_t spec_id;
    size_t n_partition;
    const KnValue *partition; /* in the order of the spec's fields */
    int64_t record_count, size_bytes;
    size_t n_column_sizes;
    const KnIdCount *column_sizes;
    size_t n_value_counts;
    const KnIdCount *value_counts;
    size_t n_null_counts;
    const KnIdCount *null_counts;
    size_t n_nan_counts;
    const KnIdCount *nan_counts;
    size_t n_lower;
    const KnIdBound *lower;
    size_t n_upper;
    const KnIdBound *upper;
    KnStr key_metadata;
    size_t n_split_offsets;
    const int64_t *split_offsets;
    size_t n_equality_ids;
    const int32_t *equality_ids;
    int32_t sort_order_id;                /* -1 = null */
    int64_t first_row_id;                 /* after inheritance; -1 = none */
    const char *referenced_data_file;     /* or NULL */
    int64_t content_offset, content_size; /* deletion vectors; -1 = none */
} KnDataFile;

typedef struct KnManifestEntry {
    KnEntryStatus status;
    int64_t snapshot_id;          /* after inheritance */
    int64_t sequence_number;      /* data sequence number, after inheritance */
    int64_t file_sequence_number; /* after inheritance; -1 = none */
    KnDataFile file;
} KnManifestEntry;

/** All manifests of a snapshot, in list order (v1's embedded list too). Memory in arena. */
KN_NODISCARD KnCode kn_manifest_list_read(KnFileIO *io, KnArena *arena, const KnSnapshot *snap,
                                          KnManifestFile **ret, size_t *ret_n, KnErr *err);

typedef struct KnManifestReadOptions {
    bool with_metrics; /* counts and bounds; off = skipped, cheaper */
    bool with_deleted; /* entries of status DELETED too */
} KnManifestReadOptions;
/** Called for each entry; entry and what it points to live until the call returns: keep with
 * kn_data_file_copy(). */
typedef KnCode (*KnManifestFn)(void *arg, const KnManifestEntry *entry, KnErr *err);
typedef struct KnManifestVisit {
    KnManifestReadOptions opts;
    KnManifestFn fn;
    void *arg;
} KnManifestVisit;
/** A manifest's entries in order; inherits snapshot id, sequence numbers, first_row_id from mf. */
KN_NODISCARD KnCode kn_manifest_read(KnFileIO *io, const KnMetadata *md, const KnManifestFile *mf,
                                     const KnManifestVisit *visit, KnErr *err);
/** Adds a count or size of an entry: they come from outside, and a sum that cannot be stays at its
 * end. */
static inline void kn_count_add(int64_t *total, int64_t count)
{
    if (__builtin_add_overflow(*total, count, total))
        *total = INT64_MAX;
}
/** What tells one live listing of a file from others of a snapshot, for maps: its data sequence
 * number, its blob and its path. Fills buf anew; the text is buf's. */
KnStr kn_manifest_entry_key(KnBuf *buf, const KnManifestEntry *entry);
/** Deep copies into arena. */
KnManifestEntry *kn_manifest_entry_copy(KnArena *arena, const KnManifestEntry *entry);

/* ---- writing ---- */
typedef struct KnManifestWrite {
    int32_t format_version;
    const KnSchema *schema;
    const KnPartitionSpec *spec;
    const KnType *partition_type;
    bool deletes;
    int64_t snapshot_id;
    const KnManifestEntry *const
        *entries; /* ADDED: numbers are left to inheritance; others explicit */
    size_t n_entries;
    const char *path;  /* to create */
    const char *codec; /* write.avro.compression-codec; NULL = "gzip" (deflate) */
} KnManifestWrite;
/** Writes the file (create-if-absent, durable) and gives its line for the list (sequence numbers -1
 * = to be assigned by the list writer). */
KN_NODISCARD KnCode kn_manifest_write(KnFileIO *io, KnArena *arena, const KnManifestWrite *w,
                                      KnManifestFile *ret, KnErr *err);
typedef struct KnManifestListWrite {
    int32_t format_version;
    int64_t snapshot_id, parent_id, sequence_number;
    int64_t first_row_id; /* v3: the snapshot's */
    const KnManifestFile *manifests;
    size_t n_manifests;
    const char *path;
} KnManifestListWrite;
/** Assigns sequence numbers (-1) and v3 first_row_ids; *ret_next_row_id = first unassigned after
 * it. */
KN_NODISCARD KnCode kn_manifest_list_write(KnFileIO *io, const KnManifestListWrite *w,
                                           int64_t *ret_next_row_id, KnErr *err);
