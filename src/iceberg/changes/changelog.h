/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * changelog.h - what one snapshot changed: planned from manifests, computed exactly.
 *
 * The files decide, not the operation word; only `replace` is believed, after its row counts were
 * checked. The exact meaning of a window is the multiset difference between the rows live at the
 * parent and the rows live at the snapshot; it is computed over the affected files only: DIRECT
 * only data files were added (or the first window: all live rows without deletes to apply... any
 * scan): inserts are the files' rows, streamed by position, nothing computed. COMPUTED  files were
 * removed or rewritten, or deletes were added: rows before and after of the affected files are
 *             compared (deletes = before EXCEPT ALL after, inserts = after EXCEPT ALL before),
 * spooled, and cut by hash. EMPTY     replace, or nothing changed.
 */
#include "engine/engine.h"
#include "iceberg/scan/plan.h"
#include "iceberg/scan/read.h"

typedef enum KnWindowKind { KN_WINDOW_EMPTY, KN_WINDOW_DIRECT, KN_WINDOW_COMPUTED } KnWindowKind;

typedef struct KnWindow {
    const KnTable *tbl;
    const KnSnapshot *from; /* the parent; NULL = first window: live rows of `to` */
    const KnSnapshot *to;
    const char *operation; /* the snapshot's word; "initial" for the first window */
    KnWindowKind kind;
    size_t n_added;
    KnScanTask *added; /* files that are new at `to`, with the deletes that apply to them there */
    size_t n_removed;
    KnScanTask *removed; /* files gone at `to`, with the deletes that applied at `from` */
    size_t n_touched;
    KnScanTask *touched;       /* files in both whose delete set grew: deletes as at `from` */
    KnScanTask *touched_after; /* the same files, deletes as at `to` */
    int64_t read_files, read_bytes, read_rows; /* cost: what must be read, deletes included */
    int64_t rewrite_bytes; /* of that: bytes of removed and touched files and of files added beside
                              them */
    int64_t upserts,
        deletes; /* exact for EMPTY and DIRECT without deletes, else -1 until spooled */
    KnArena *arena;
} KnWindow;

/** From manifests alone. Refuses (KN_E_REFUSED / KN_E_UNSUPPORTED, naming snapshot and reason): a
 * `replace` whose row counts do not balance, a parent whose manifests are gone, features that
 * cannot be read exactly. */
KN_NODISCARD KnCode kn_window_plan(const KnTable *tbl, const KnSnapshot *from, const KnSnapshot *to,
                                   KnWindow **ret, KnErr *err);
KnWindow *kn_window_free(KnWindow *win);

/* In the arena that was given. */
typedef struct KnLineage {
    const KnSnapshot *const *items; /* oldest first */
    size_t n;
} KnLineage;

/** The snapshots to deliver after cursor (exclusive; -1 = none: the first window) up to the head of
 * ref ("main"), oldest first. KN_E_REFUSED: the cursor's snapshot has expired, or was rolled back
 * (is not an ancestor of the head): says which, and to run `knut cdc reload`. */
KN_NODISCARD KnCode kn_window_lineage(const KnTable *tbl, int64_t cursor, const char *ref,
                                      KnArena *arena, KnLineage *ret, KnErr *err);

/* ---- computed windows ---- */
typedef struct KnSpool KnSpool;
typedef struct KnSpoolOptions {
    const KnSchema *schema;  /* the columns delivered */
    const char *const *keys; /* top-level column names; n_keys 0 = the whole row */
    size_t n_keys;
    uint32_t n_buckets; /* >= 1 */
    bool raw;           /* keep rows that were deleted and inserted unchanged (carry-over) */
    size_t max_buckets; /* memory of the comparison, 16 bytes each (sieve.h); 0 = 2^20 */
} KnSpoolOptions;
typedef enum KnChangeOp { KN_CHANGE_DELETE = 0, KN_CHANGE_INSERT = 1 } KnChangeOp;

/** Computes and keeps the window's changes in a temporary table of ses (spilled to disk by the
 * engine as needed). With keys, a delete whose key is also inserted is dropped (the insert is then
 * an upsert), and the last of several inserts of a key (by task, then position) stays.
 * Deterministic: same window and options, same buckets and order. */
KN_NODISCARD KnCode kn_spool_open(const KnWindow *win, KnSession *ses, const KnSpoolOptions *opts,
                                  KnSpool **ret, KnErr *err);
int64_t kn_spool_rows(const KnSpool *spool, KnChangeOp op, uint32_t bucket);
/** SELECT of a bucket's rows of one op, in its fixed order; columns = schema. Runs on the spool's
 * session. The text lives until the next call on this spool. */
const char *kn_spool_sql(KnSpool *spool, KnChangeOp op, uint32_t bucket);
KnSpool *kn_spool_close(KnSpool *spool);

/* ---- change rows for people and programs (`knut table changes`) ---- */
typedef struct KnChangeRows KnChangeRows;
typedef struct KnChangeRowsOptions {
    const KnSchema *schema;
    const char *const *keys; /* top-level column names; needed by images */
    size_t n_keys;
    bool raw;           /* keep rows that were deleted and inserted unchanged */
    bool images;        /* a delete and an insert of one key become update_before, update_after */
    int64_t ordinal;    /* of the snapshot in the range asked for */
    size_t max_buckets; /* as of a spool */
} KnChangeRowsOptions;

/** The window's changes as rows: the schema's columns, then _change_type VARCHAR ("delete",
 * "insert", "update_before", "update_after"), _commit_snapshot_id BIGINT (to), _change_ordinal
 * BIGINT. Order is fixed: deletes, then pairs of images side by side (by the place of the row
 * after), then inserts, each by file and position. A window may span several snapshots (from need
 * not be the parent of to): then the changes are the net over all of them. KN_E_INVAL: images
 * without keys. The temporary tables of ses are dropped by close. */
KN_NODISCARD KnCode kn_window_change_rows(const KnWindow *win, KnSession *ses,
                                          const KnChangeRowsOptions *opts, KnChangeRows **ret,
                                          KnErr *err);
const char *kn_change_rows_sql(const KnChangeRows *rows);
KnChangeRows *kn_change_rows_close(KnChangeRows *rows);
