/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * sink.h - a place to which changes are delivered: one `const struct` of functions, one folder
 * under sinks/, one line in sinks/registry.c.
 *
 * Order of calls on a sink: open, then any number of windows, then close. Each window is
 *
 *     probe(window)  begin(window)  { find(label) | load(chunk) }*  { commit_held(label) }*
 *
 * begin() is the sink's half of the proof that source, journal and destination speak of the same
 * history: it refuses when the destination lacks a load that the journal has proven, or has loads
 * that the journal does not know of. load() writes the rows of a chunk and its label in one
 * transaction where the destination has transactions; find() asks the destination about a label
 * whose fate is not known. Nothing else decides whether a chunk has arrived. A sink may hold the
 * rows of chunks back (HELD) until all chunks of the window are there: then the caller, who has
 * written down what is held, has them committed one after another, in the order of the chunks.
 *
 * Threads: calls come from one thread at a time, except load() of a sink whose max_parallel_loads
 * is above 1.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "engine/batch.h"
#include "iceberg/schema/type.h"

typedef enum KnSinkMode {
    KN_SINK_UPSERT, /* keys: the last row of a key stays; no keys: inserts append, deletes remove */
    KN_SINK_APPEND, /* inserts only: a delete refuses the window */
} KnSinkMode;
/** "upsert", "append". */
const char *kn_sink_mode_name(KnSinkMode mode);
KN_NODISCARD KnCode kn_sink_mode_parse(KnStr text, KnSinkMode *ret, KnErr *err);

typedef enum KnChunkOp { KN_CHUNK_DELETE = 0, KN_CHUNK_INSERT = 1 } KnChunkOp;
const char *kn_chunk_op_name(KnChunkOp op); /* "delete", "insert" */

typedef enum KnVerdictKind {
    KN_VERDICT_LOADED,    /* rows and label are durable */
    KN_VERDICT_DUPLICATE, /* the label was there before; rows as recorded with it */
    KN_VERDICT_UNKNOWN,   /* may have arrived: ask find() */
    KN_VERDICT_FAILED,    /* nothing of the chunk has arrived; err says why */
    KN_VERDICT_WRONG,     /* something else than the chunk has arrived, for good; err says what */
    KN_VERDICT_HELD,      /* the destination has the rows and shows them to nobody: see `hold` */
} KnVerdictKind;
typedef struct KnVerdict {
    KnVerdictKind kind;
    int64_t rows;
    int64_t hold; /* HELD: by what the destination knows them; never negative */
} KnVerdict;
/* What became of rows that were held. */
typedef enum KnHeld {
    KN_HELD_WAITING, /* still held */
    KN_HELD_LANDED,  /* committed */
    KN_HELD_GONE,    /* nothing of them is there */
} KnHeld;
const char *kn_verdict_name(KnVerdictKind kind);

typedef struct KnSinkOptions {
    const char *place;    /* the spec's text after "kind:", e.g. a file */
    const char *target;   /* "t" or "schema.t" */
    const char *delivery; /* the delivery's key: recorded beside its loads */
    int threads;          /* 0 = number of processors */
    uint64_t memory_limit;
    const char *spill_dir; /* or NULL */
} KnSinkOptions;

/* How many loads a destination remembers at least, counted back from the one proven last. None but
 * that one and what came after it is asked for: the rest is for people. It may remember up to
 * KN_SINK_LOADS_SLACK more, so that not every window forgets one. */
enum { KN_SINK_LOADS_KEPT = 1000, KN_SINK_LOADS_SLACK = 100 };

/* One window as the sink must know it before rows come. */
typedef struct KnSinkWindow {
    bool first;     /* of its epoch */
    bool untouched; /* none of its chunks has been sent yet */
    bool deletes;   /* some of its chunks are deletes */
    const char *id; /* covers delivery, epoch, snapshots and plan */
    const char
        *claim_label; /* first window of an epoch: recorded when the target is taken; else NULL */
    bool clear;       /* first window after a reload: the target's rows go, with the claim */
    const char
        *expect_label;      /* the last load that the journal has proven; NULL in a first window */
    int64_t sequence;       /* of the snapshot delivered; 0 in v1 tables */
    int64_t planned_ms;     /* when it was written down; 0 = not yet */
    const KnSchema *schema; /* the columns delivered, matched to the target's by field id */
    KnSinkMode mode;
    const char *const *keys; /* top-level column names; n_keys 0 = whole rows */
    size_t n_keys;
} KnSinkWindow;

/* Rows of a chunk, pulled by the sink until *ret is NULL. Columns are the window's schema; with
 * positions, two more follow: _task BIGINT and _pos BIGINT, which order the rows of the window. */
typedef struct KnRowSource {
    KnCode (*next)(void *arg, KnBatch **ret, KnErr *err); /* the caller owns the reference */
    void *arg;
    bool positions;
    int64_t *encode_us; /* a sink that makes bytes of rows adds the time that took; or NULL */
} KnRowSource;

static inline void kn_row_source_encoded(const KnRowSource *rows, int64_t micros)
{
    if (rows->encode_us)
        *rows->encode_us += micros;
}

typedef struct KnSinkChunk {
    int64_t number; /* from 0 in the window */
    const char *label;
    KnChunkOp op;
    int64_t rows; /* planned; never -1 */
    bool resent;  /* an earlier process may have sent it */
} KnSinkChunk;

typedef struct KnSink KnSink;

/* Every callback is required unless it says otherwise. */
typedef struct KnSinkOps {
    const char *kind; /* "duckdb": the spec is "duckdb:PLACE" */
    int max_parallel_loads;
    /** One open sink of an identity at a time in this process: the destination's own lock does not
     * tell two of one process apart. */
    bool exclusive;
    /** The stable half of a sink's identity, without secrets; in arena. Touches nothing. */
    KnCode (*identify)(const KnSinkOptions *opts, KnArena *arena, const char **ret, KnErr *err);
    KnCode (*open)(const KnSinkOptions *opts, KnSink **ret, KnErr *err);
    /** May this window's schema be delivered? Changes nothing; the window's labels are not set yet
     * (first: the target may be absent). KN_E_REFUSED lists the differences, in one line: "column
     * a: BIGINT in the source, VARCHAR in the target; ...". */
    KnCode (*probe)(KnSink *sink, const KnSinkWindow *win, KnErr *err);
    /** Takes, creates, clears or evolves the target for this window; see the head of this file.
     * Doing it again after a crash is harmless. KN_E_REFUSED: the histories differ. */
    KnCode (*begin)(KnSink *sink, const KnSinkWindow *win, KnErr *err);
    /** Loads one chunk. The return code is KN_OK for LOADED and DUPLICATE; otherwise ret->kind says
     * UNKNOWN, FAILED or WRONG (ret is always written). */
    KnCode (*load)(KnSink *sink, const KnSinkChunk *chunk, const KnRowSource *rows, KnVerdict *ret,
                   KnErr *err);
    /** Is label there? With the rows recorded beside it; -1 where the destination keeps no number
     * and takes a chunk whole or not at all. */
    KnCode (*find)(KnSink *sink, const char *label, bool *ret_found, int64_t *ret_rows, KnErr *err);
    void (*close)(KnSink *sink);
    /** Optional, all three or none: of rows that a load() answered HELD for. find_held() may drop
     * them (GONE) when the sink's settings are others now. commit_held(): KN_OK only when the rows
     * are there for good; otherwise find_held() will tell. drop_held() does what it can. */
    KnCode (*find_held)(KnSink *sink, const char *label, int64_t hold, KnHeld *ret, KnErr *err);
    KnCode (*commit_held)(KnSink *sink, const char *label, int64_t hold, KnErr *err);
    void (*drop_held)(KnSink *sink, const char *label, int64_t hold);
    /** Optional: the statement that makes the target of this window, without its ';'. Asks nobody.
     */
    KnCode (*ddl)(const KnSinkOptions *opts, const KnSinkWindow *win, KnBuf *out, KnErr *err);
} KnSinkOps;

/** First member of every implementation's struct. */
struct KnSink {
    const KnSinkOps *ops;
};

/** "duckdb:PATH" -> its ops and PATH. KN_E_INVAL lists the kinds there are. */
KN_NODISCARD KnCode kn_sink_find(const char *spec, const KnSinkOps **ret, const char **ret_place,
                                 KnErr *err);
/** For sinks: the window's keys, in arena. */
const char *const *kn_sink_copy_keys(KnArena *arena, const KnSinkWindow *win);
/** For probe(): one more difference of a column, in the words of all sinks with SQL. */
void kn_sink_add_difference(KnBuf *out, const char *column, const char *here, const char *there);
/** Of a place with settings: the text before the next separator (or the end), decoded by nobody;
 * rest is what stands behind it. */
KnStr kn_sink_next_part(KnStr *rest, char separator);
/** KN_E_INVAL, with the nearest of the names that are known. */
KnCode kn_sink_unknown_setting(const char *kind, KnStr name, const char *const *known, size_t n,
                               KnErr *err);
/** "t" -> {"main", "t"}; "s.t" -> {"s", "t"}; quoted parts may hold dots. In arena. */
KN_NODISCARD KnCode kn_sink_target_parse(KnArena *arena, const char *target,
                                         const char **ret_schema, const char **ret_table,
                                         KnErr *err);

static inline KnCode kn_sink_probe(KnSink *sink, const KnSinkWindow *win, KnErr *err)
{
    return sink->ops->probe(sink, win, err);
}
static inline KnCode kn_sink_begin(KnSink *sink, const KnSinkWindow *win, KnErr *err)
{
    return sink->ops->begin(sink, win, err);
}
static inline KnCode kn_sink_load(KnSink *sink, const KnSinkChunk *chunk, const KnRowSource *rows,
                                  KnVerdict *ret, KnErr *err)
{
    return sink->ops->load(sink, chunk, rows, ret, err);
}
KnSink *kn_sink_close(KnSink *sink); /* accepts NULL, returns NULL */

extern const KnSinkOps kn_sink_null;     /* sinks/null */
extern const KnSinkOps kn_sink_doris;    /* sinks/doris */
extern const KnSinkOps kn_sink_duckdb;   /* sinks/duckdb */
extern const KnSinkOps kn_sink_parquet;  /* sinks/parquet */
extern const KnSinkOps kn_sink_postgres; /* sinks/postgres */
