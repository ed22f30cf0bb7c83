/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * write.h - new snapshots: append, delete by filter, overwrite by filter, upsert by key.
 *
 * Operations that take rows away do it copy-on-write (files are written anew without the rows) or
 * merge-on-read (position delete files in v2, deletion vectors in v3). Files all of whose rows go
 * are removed in both.
 *
 * Data files are written by the engine with field ids, partitioned by the default spec, at about
 * write.target-file-size-bytes; then manifests, manifest list, and a commit through the catalog: on
 * KN_E_CONFLICT the operation is rebased on the newest metadata (append: always; delete/overwrite:
 * when no conflicting file appeared) up to commit.retry.num-retries times; on KN_E_UNKNOWN nothing
 * is removed; on other failures the files of this attempt are removed.
 */
#include "engine/engine.h"
#include "iceberg/expr/expr.h"
#include "iceberg/table.h"

typedef enum KnRowMode {
    KN_ROW_MODE_TABLE, /* as write.delete.mode (delete), write.update.mode (overwrite) or
                          write.merge.mode (upsert) says; copy-on-write when it is not set */
    KN_ROW_MODE_COPY_ON_WRITE,
    KN_ROW_MODE_MERGE_ON_READ,
} KnRowMode;

typedef struct KnWriteOptions {
    const char *branch;         /* NULL = main */
    const char *wap_id;         /* the snapshot is staged under this id (write, audit, publish): no
                                   branch moves; needs write.wap.enabled=true. NULL = not */
    const char *const *summary; /* pairs of key, value to add to the snapshot summary */
    size_t n_summary;           /* number of pairs */
    bool (*cancelled)(void);    /* or NULL; asked between files */
    KnRowMode mode;
} KnWriteOptions;

typedef struct KnWriteResult {
    int64_t snapshot_id;                 /* -1: nothing to do, no snapshot was made */
    int64_t added_files, added_bytes;    /* of all new files, rewritten ones included */
    int64_t added_rows;                  /* rows of the SELECT; rewritten rows do not count */
    int64_t removed_files, removed_rows; /* rows that matched; of files dropped unread: as stored */
    int64_t delete_files;                /* added: position delete files, or deletion vectors */
    int64_t updated_rows, inserted_rows; /* upsert */
} KnWriteResult;

/** select_sql: rows on ses; columns are matched to the table's by name (missing optional columns
 * take their write default or NULL; unknown names, missing or NULL required values, values that do
 * not fit are KN_E_INVAL naming the column). */
KN_NODISCARD KnCode kn_write_append(KnTable *tbl, KnSession *ses, const char *select_sql,
                                    const KnWriteOptions *opts, KnWriteResult *ret, KnErr *err);
/** Rows for which the filter is TRUE go. Whole files are dropped without being read where bounds
 * prove it. */
KN_NODISCARD KnCode kn_write_delete(KnTable *tbl, KnSession *ses, const KnExpr *filter,
                                    const KnWriteOptions *opts, KnWriteResult *ret, KnErr *err);
typedef struct KnOverwrite {
    const KnExpr *filter;   /* rows that go, as for kn_write_delete() */
    const char *select_sql; /* rows that come, as for kn_write_append() */
} KnOverwrite;

/** Delete by filter and append, as one snapshot of operation overwrite. */
KN_NODISCARD KnCode kn_write_overwrite(KnTable *tbl, KnSession *ses, const KnOverwrite *change,
                                       const KnWriteOptions *opts, KnWriteResult *ret, KnErr *err);

typedef struct KnUpsert {
    const char *select_sql; /* rows, as for kn_write_append() */
    size_t n_keys;
    const char *const *keys; /* columns; none = the table's identifier fields */
    bool no_update;          /* rows whose key is in the table are left out */
    bool no_insert;          /* rows whose key is not in the table are left out */
} KnUpsert;

/** Merges rows by key, as one snapshot. A row whose key is in the table takes the place of the row
 * (or rows) there, unless that is equal to it; others are inserted. Columns that the rows do not
 * have keep their values in rows that are updated. In v3 an updated row keeps its row id. A key
 * that is NULL or comes twice is KN_E_INVAL, naming it. KN_E_CONFLICT also when another writer
 * added files that may hold one of the keys. */
KN_NODISCARD KnCode kn_write_upsert(KnTable *tbl, KnSession *ses, const KnUpsert *upsert,
                                    const KnWriteOptions *opts, KnWriteResult *ret, KnErr *err);
