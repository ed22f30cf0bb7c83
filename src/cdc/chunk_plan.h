/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * chunk_plan.h - how a window is cut, fixed before anything is sent.
 *
 * A DIRECT window is cut by row ranges of its data files, packed to a byte budget by the files'
 * bytes per row. A COMPUTED window is cut into the buckets of its spool: deletes first, then
 * inserts, only buckets that hold rows. A plan is a value: the same window and options give the
 * same plan, its text goes to the journal before the first byte leaves, and a replay uses what the
 * journal has, whatever the configuration says by then. Immutable once made; lives in an arena.
 */
#include "base/arena.h"
#include "base/buf.h"
#include "cdc/sink.h"
#include "iceberg/changes/changelog.h"

#define KN_CHUNK_PLAN_VERSION 1

typedef struct KnChunkRange {
    size_t file;       /* index in the plan's files */
    int64_t first_row; /* in the file */
    int64_t n_rows;    /* of the file, deleted ones included */
    int64_t live_rows; /* of these, rows that are delivered */
} KnChunkRange;

typedef struct KnPlanFile {
    const char *path; /* as the manifest has it */
    int64_t rows;     /* record count */
} KnPlanFile;

typedef struct KnChunk {
    int64_t number;
    KnChunkOp op;
    int64_t rows; /* to be delivered */
    size_t n_ranges;
    KnChunkRange *ranges; /* DIRECT: ascending by (file, first row) */
    uint32_t bucket;      /* COMPUTED */
} KnChunk;

typedef struct KnChunkPlan {
    int32_t version;
    KnWindowKind kind;
    int64_t from, to; /* snapshot ids; from -1 = first window */
    const char *operation;
    int32_t schema_id;
    KnSinkMode mode;
    size_t n_keys;
    const char **keys;
    uint32_t n_buckets;       /* COMPUTED */
    const char *hash_version; /* COMPUTED: of the spool's hash (KN_ROW_HASH_VERSION), else "" */
    int64_t upserts, deletes;
    int64_t read_bytes;
    size_t n_files;
    KnPlanFile *files; /* DIRECT, in the window's task order */
    size_t n_chunks;
    KnChunk *chunks;
} KnChunkPlan;

typedef struct KnChunkPlanOptions {
    uint64_t chunk_bytes; /* at least 1 */
    KnSinkMode mode;
    const char *const *keys;
    size_t n_keys;
    int32_t schema_id;
} KnChunkPlanOptions;

/** DIRECT and EMPTY. live_rows of every range are its n_rows; where tasks carry deletes, count them
 * and call kn_chunk_plan_settle(). */
KnChunkPlan *kn_chunk_plan_direct(KnArena *arena, const KnWindow *win,
                                  const KnChunkPlanOptions *opts);
/** After live_rows were set: chunks' rows and the totals follow; empty chunks go. */
void kn_chunk_plan_settle(KnChunkPlan *plan);
/** COMPUTED: buckets by the window's cost. */
uint32_t kn_chunk_plan_buckets(const KnWindow *win, uint64_t chunk_bytes);
KnChunkPlan *kn_chunk_plan_computed(KnArena *arena, const KnWindow *win, const KnSpool *spool,
                                    uint32_t n_buckets, const KnChunkPlanOptions *opts);

/** JSON text, versioned, in a fixed order: its hash is the plan's digest. */
void kn_chunk_plan_format(KnBuf *buf, const KnChunkPlan *plan);
uint64_t kn_chunk_plan_digest(KnStr text);
/** Checks everything that a plan must fulfil (ranges inside files, ascending, not overlapping,
 * covering; rows adding up; deletes before inserts): KN_E_CORRUPT says what does not hold. A
 * version newer than ours is KN_E_UNSUPPORTED. */
KN_NODISCARD KnCode kn_chunk_plan_parse(KnArena *arena, KnStr text, KnChunkPlan **ret, KnErr *err);
