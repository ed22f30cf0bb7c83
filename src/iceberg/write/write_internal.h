/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * write_internal.h - what the writer's files share.
 *
 * The order of things: rows are bound to the schema (write_columns.c), written as data files with
 * metrics (write_data.c, write_metrics.c), and a KnSnapshotDraft of added and removed files becomes
 * a snapshot, again at each attempt (snapshot_producer.c, snapshot_manifests.c,
 * snapshot_summary.c). Every file made is noted in the writer, so that a failure can remove it.
 */
#include "base/vec.h"
#include "iceberg/scan/plan.h"
#include "iceberg/scan/read.h"
#include "iceberg/write/commit_retry.h"
#include "iceberg/write/file_shape.h"
#include "iceberg/write/write.h"

typedef KN_VEC(const char *) KnPathVec;
typedef KN_VEC(const KnManifestEntry *) KnEntryVec;

/* One operation, from its first file to its end. */
typedef struct KnWriter {
    KnTable *tbl;
    KnSession *ses;
    const KnWriteOptions *opts;
    KnArena *arena;
    const KnSchema *schema;      /* current when the operation began */
    const KnPartitionSpec *spec; /* default then */
    const KnType *partition_type;
    const KnSortOrder *sort_order; /* NULL = unsorted */
    int64_t target_bytes;          /* of a data file; 0 = write.target-file-size-bytes */
    int64_t group_rows;            /* of a row group; 0 = the engine's */
    int64_t data_sequence;         /* of data files to come; -1 = the new snapshot's */
    int64_t delete_sequence;       /* of delete files to come; -1 = the new snapshot's */
    char uuid[37];                 /* of this operation: part of every name */
    int64_t n_commands;            /* COPY commands so far, for names */
    KnPathVec data_files;          /* locations made so far */
    KnPathVec meta_files;
    KnEntryVec added;            /* entries of the data files made */
    KnEntryVec added_deletes;    /* of the delete files and deletion vectors made */
    KnEntryVec replaced_deletes; /* live ones that these take the place of */
} KnWriter;

KN_NODISCARD KnCode kn_writer_init(KnWriter *w, KnTable *tbl, KnSession *ses,
                                   const KnWriteOptions *opts, KnErr *err);
/** Removes what was made, unless keep. */
void kn_writer_done(KnWriter *w, bool keep);
/** Sums up the files made into *ret; rows of the first n_rewritten files do not count. */
void kn_write_count(const KnWriter *w, size_t n_rewritten, KnWriteResult *ret);
/** The head that the operation builds on: the branch's, or the current snapshot. */
const KnSnapshot *kn_writer_head(const KnWriter *w);
/** The head of a branch that must be there (NULL = main, which may have none yet: NULL).
 * KN_E_INVAL: there is no such branch, or it is a tag. */
KN_NODISCARD KnCode kn_branch_find(const KnTable *tbl, const char *branch, const KnSnapshot **ret,
                                   KnErr *err);
const char *kn_writer_branch(const KnWriter *w);
KN_NODISCARD KnCode kn_writer_check_cancelled(const KnWriter *w, KnErr *err);

/* ---- rows ---- */

/** SELECT of the table's columns, named c0, c1, ... in the order of the schema, in its types: from
 * select_sql by name. Casts never cut, wrap or round; what does not fit fails when it is run. */
KN_NODISCARD KnCode kn_write_columns_sql(KnWriter *w, const char *select_sql, KnBuf *ret,
                                         KnErr *err);
/** The same, and which columns the rows have (ret_given has room for all). A required column that
 * they lack, without a default, is NULL then. */
KN_NODISCARD KnCode kn_write_given_columns_sql(KnWriter *w, const char *select_sql, bool *ret_given,
                                               KnBuf *ret, KnErr *err);
/** Writes rows (columns c0, ... and, with lineage, _row_id and _last_updated_sequence_number) as
 * data files and adds their entries to w->added. */
KN_NODISCARD KnCode kn_write_data(KnWriter *w, const char *rows_sql, bool lineage, KnErr *err);
/** The same for rows that are known to be of one partition, by its tuple (NULL: the spec has no
 * fields). rows_sql may be run twice: nothing is kept between. */
KN_NODISCARD KnCode kn_write_partition(KnWriter *w, const char *rows_sql, bool lineage,
                                       const KnValue *tuple, KnErr *err);

/** The file's metrics by the table's write.metadata.metrics properties. engine_path: the file as
 * the engine opens it, to count NaN. */
struct KnPqWritten;
KN_NODISCARD KnCode kn_write_metrics(KnWriter *w, const struct KnPqWritten *file,
                                     const char *engine_path, KnDataFile *ret, KnErr *err);
/* A partition tuple in its spec; values NULL = none. */
typedef struct KnWritePartition {
    const KnPartitionSpec *spec;
    const KnType *type; /* of the spec's tuples */
    const KnValue *values;
} KnWritePartition;
/* Where files of a COPY command go, and what their names begin with. */
typedef struct KnWritePlace {
    const char *folder;
    const char *name_prefix; /* "" or more, in front of the names */
} KnWritePlace;
/** The place for files of a partition, of which name is one, by the table's write.*.path and
 * write.object-storage properties. */
KN_NODISCARD KnCode kn_write_place(const KnWriter *w, const KnWritePartition *part,
                                   const char *name, KnWritePlace *ret, KnErr *err);
/** Notes what a COPY that failed has left in folder under names that begin with prefix. */
void kn_write_note_leftovers(KnWriter *w, const char *folder, const char *prefix);
/** write.parquet.compression-codec, unless the table has own_key (or NULL), as the engine calls it.
 */
const char *kn_write_parquet_codec(const KnMetadata *md, const char *own_key);

/* ---- rows that go, as deletes (merge-on-read) ---- */

typedef struct KnDoomed {
    const KnRead *read;   /* open on tasks, with keep_positions */
    KnScanTasks tasks;    /* files of the head, with the deletes that apply to them */
    const char *rows_sql; /* SELECT of task BIGINT, position BIGINT: rows of them that go */
} KnDoomed;
/** Writes position delete files (v2) or deletion vectors (v3) into w->added_deletes. A vector takes
 * the place of all that deleted rows of its file by position: what belongs to that file alone goes
 * to w->replaced_deletes. */
KN_NODISCARD KnCode kn_write_deletes(KnWriter *w, const KnDoomed *doomed, KnErr *err);
/** The part of it that writes vectors. */
KN_NODISCARD KnCode kn_write_vectors(KnWriter *w, const KnDoomed *doomed, KnErr *err);
/** An entry for deletes of rows of data, to be filled in further. */
KnManifestEntry *kn_write_delete_entry(KnWriter *w, const KnDataFile *data, const char *location);

/* ---- snapshots ---- */
struct KnManifestSet;
typedef struct KnSnapshotDraft {
    const char *operation;
    size_t n_added; /* data files */
    const KnManifestEntry *const *added;
    size_t n_added_deletes; /* delete files and deletion vectors */
    const KnManifestEntry *const *added_deletes;
    size_t n_removed; /* live data files that go */
    const KnManifestEntry *const *removed;
    size_t n_removed_deletes; /* live delete files that go with them, or are replaced */
    const KnManifestEntry *const *removed_deletes;
    int64_t source_id; /* a snapshot that must be there still when this is committed; 0 = none */
    /* Asked before an attempt on a newer base than the one the draft was made for: KN_E_CONFLICT
     * when the draft is void there. NULL = it is never void. */
    KnCode (*validate)(void *arg, const KnSnapshot *base, const KnSnapshot *head, KnErr *err);
    /* In place of kn_snapshot_manifests(), for snapshots that are about manifests only. NULL = no.
     */
    KnCode (*manifests)(void *arg, const KnSnapshot *parent, int64_t snapshot_id,
                        struct KnManifestSet *ret, KnErr *err);
    void *arg;
} KnSnapshotDraft;

/** Commits draft as the new head of the branch, rebasing as often as commit.retry.* allows. On
 * KN_OK or KN_E_UNKNOWN the files of the attempt that counts are not to be removed. */
KN_NODISCARD KnCode kn_snapshot_produce(KnWriter *w, const KnSnapshotDraft *draft, int64_t *ret_id,
                                        KnErr *err);

/* The manifests of one attempt. */
typedef struct KnManifestSet {
    size_t n;
    KnManifestFile *files; /* of the new snapshot, new ones first */
    int64_t n_created, n_kept, n_replaced;
    int64_t n_entries; /* written to other manifests; for snapshots that are about manifests only */
} KnManifestSet;
KN_NODISCARD KnCode kn_snapshot_manifests(KnWriter *w, const KnSnapshotDraft *draft,
                                          const KnSnapshot *parent, int64_t snapshot_id,
                                          KnManifestSet *ret, KnErr *err);
/** The summary as a new object: operation, counts, totals carried on from parent, extra pairs. */
json_t *kn_snapshot_summary(const KnWriter *w, const KnSnapshotDraft *draft,
                            const KnSnapshot *parent, const KnManifestSet *manifests);
/** Location of a new file of metadata, noted in w->meta_files. */
const char *kn_writer_meta_path(KnWriter *w, const char *name);
