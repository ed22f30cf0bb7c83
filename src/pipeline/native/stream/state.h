/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * state.h - what a stream remembers from epoch to epoch, and where it is kept.
 *
 * In the engine, what is remembered are tables to which rows are added and from which rows are
 * never taken: a row with a column of the name in `until` counts until the watermark reaches that
 * value. Now and then the flow puts a table's rows together (KnStreamTable.rebased).
 *
 * A checkpoint is a manifest, EPOCH.json, and the parts that it names, Parquet files: those of the
 * epochs before, and one for each table to which this epoch added rows. A manifest has the hash of
 * every part and, in its last line, its own; it is written after its parts, whole. A part is
 * removed when no manifest of the last epochs names it.
 *
 *     LOCATION/000000000042.json                   the manifest of epoch 42
 *     LOCATION/000000000042-kept-1f0c9a3b.parquet  rows that epoch 42 added to `kept`
 *
 * One thread; one run at a time (a local folder is locked).
 */
#include "base/json.h"
#include "pipeline/native/native.h"
#include "pipeline/native/stream/sink.h"

typedef struct KnStreamState KnStreamState;

typedef struct KnStreamPart {
    const char *file; /* below the location */
    int64_t rows, bytes;
    int64_t until; /* no row of it counts from then on; INT64_MAX = for ever */
    uint64_t hash;
} KnStreamPart;

typedef struct KnStreamTable {
    const char *name;  /* of its parts */
    const char *table; /* of the engine */
    const char *until; /* column; NULL = rows count for ever */
    KnNativeShape shape;
    KN_VEC(KnStreamPart) parts;
} KnStreamTable;

/* Where a stream stands after an epoch. */
typedef struct KnStreamPoint {
    KnStreamMark mark;            /* epoch -1: at the beginning */
    int64_t sink_epoch;           /* the last one that gave the target rows; -1 = none */
    json_t *offsets;              /* of the source; owned; NULL = at its beginning */
    int64_t watermark;            /* INT64_MIN = none yet */
    json_t *inputs;               /* of the watermark; owned */
    int64_t rows, late, timeless; /* all told */
} KnStreamPoint;
void kn_stream_point_done(KnStreamPoint *point);

/** Makes the location and locks it. */
KN_NODISCARD KnCode kn_state_open(KnNativeRun *run, const KnutFlow *flow, const char *location,
                                  KnStreamState **ret, KnErr *err);
KnStreamState *kn_state_close(KnStreamState *state); /* accepts NULL, returns NULL */
/** Removes all of it: the stream starts anew. */
KN_NODISCARD KnCode kn_state_clear(KnStreamState *state, KnErr *err);

/** The newest whole checkpoint that the target, at mark, can be continued from; ret->mark.epoch -1
 * = the target has nothing and so the stream starts. repeats: the target takes epochs again without
 * harm. Newer checkpoints and damaged ones are removed; those are told in *ret_note (NULL = there
 * were none). KN_E_CORRUPT, KN_E_REFUSED: there is none. */
KN_NODISCARD KnCode kn_state_recover(KnStreamState *state, const KnStreamMark *mark, bool repeats,
                                     KnStreamPoint *ret, const char **ret_note, KnErr *err);
/** KN_E_REFUSED unless the plan is the one with which the state was made. plan: an object of texts.
 */
KN_NODISCARD KnCode kn_state_check_plan(const KnStreamState *state, const json_t *plan, KnErr *err);
/** Makes the engine's table, with the rows that the checkpoint has. Parts that are over by the
 * watermark are left out. */
KN_NODISCARD KnCode kn_state_restore(KnStreamState *state, KnStreamTable *table, int64_t watermark,
                                     KnErr *err);

/** The engine's table, empty. */
KN_NODISCARD KnCode kn_state_make(KnNativeRun *run, const KnStreamTable *table, KnErr *err);

/** A part of the rows of a SELECT; none where there are no rows. */
KN_NODISCARD KnCode kn_state_add(KnStreamState *state, KnStreamTable *table, int64_t epoch,
                                 const char *select, KnErr *err);
/** The manifest of point: from here on the epoch is durable. */
KN_NODISCARD KnCode kn_state_save(KnStreamState *state, const KnStreamPoint *point,
                                  const json_t *plan, KnStreamTable *const *tables, size_t n,
                                  KnErr *err);
/** Removes what only epochs before the last few need. A failure is of no weight. */
void kn_state_tidy(KnStreamState *state);
