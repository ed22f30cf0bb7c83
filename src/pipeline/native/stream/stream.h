/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * stream.h - flows that read as their sources grow: what the files of this folder share.
 *
 * A flow goes on in epochs. Each takes rows from the source, leaves out those that come too late by
 * the watermark of before, brings them into what is kept, makes rows of what is complete by the
 * watermark of now, makes the checkpoint durable, and hands the rows and the epoch's number to the
 * target in one step (epoch.c). The tables of a flow in the engine:
 *
 *     kn_rows_N    the epoch's rows, with their event time kn_et
 *     kn_once_N    the same without those seen before (deduplicate)
 *     kn_delta_N   what the epoch adds to what is kept
 *     kn_kept_N    what is kept: parts of aggregates, or rows, with their windows (kn_ws, kn_we)
 *     kn_out_N     what the epoch gives, as the target gets it
 */
#include "pipeline/native/stream/query.h"
#include "pipeline/native/stream/sink.h"
#include "pipeline/native/stream/source.h"
#include "pipeline/native/stream/state.h"
#include "pipeline/native/stream/time.h"

/* Properties of the pipeline: how much an epoch takes at most. */
#define KN_STREAM_MAX_FILES "knut.stream.max-files-per-epoch"
#define KN_STREAM_MAX_ROWS  "knut.stream.max-rows-per-epoch"

typedef struct KnStreamFlow {
    KnNativeRun *run;
    KnNativeNode *node;
    const KnutFlow *flow;
    const KnutStreaming *spec;
    size_t at; /* its number, N in names */
    KnStreamSource *source;
    KnStreamSink *sink;
    KnStreamState *state; /* NULL = gone with the run */
    KnStreamPoint point;  /* after the last epoch */
    KnStreamWatermark mark;
    KnWatermarkInput input;
    bool fresh;     /* the next epoch makes the target anew */
    bool endless;   /* goes on until it is told to end */
    bool done;      /* nothing will come, or all that was there has been read */
    int64_t due_ms; /* when the next epoch may begin, by the run's clock */
    int64_t epochs; /* of this run */
    /* known once there are rows (bind.c) */
    bool bound;
    KnNativeShape shape; /* of the source's rows */
    KnTimeKind time;     /* of the event time, where there is a watermark */
    KnStreamQuery query;
    json_t *plan;
    KnStreamTable kept, seen, log;
    int64_t kept_base, seen_base; /* rows when they were last put together */
    int64_t log_rows;
} KnStreamFlow;

/* What an epoch is about. */
typedef struct KnStreamEpoch {
    KnStreamFlow *f;
    int64_t number;
    int64_t before, now; /* watermarks: INT64_MIN = none */
    int64_t rows, late, timeless;
    bool kept_anew, seen_anew; /* put together: the checkpoint has all of it, not what was added */
} KnStreamEpoch;

static inline bool kn_stream_windowed(const KnStreamFlow *f)
{
    return f->spec->window != NULL;
}
/** Does the flow keep rows or parts of aggregates? */
static inline bool kn_stream_keeps(const KnStreamFlow *f)
{
    return f->query.strategy != KN_STREAM_ROWWISE;
}
/** "kn_rows_3". */
const char *kn_stream_table_name(const KnStreamFlow *f, const char *what);
/** CREATE OR REPLACE kind name AS select. */
KN_NODISCARD KnCode kn_stream_create(const KnStreamFlow *f, const char *kind, const char *name,
                                     const char *select, KnErr *err);
/** The stream's name, for a query, means the rows of this SELECT from here on; it hides what else
 * has the name. */
KN_NODISCARD KnCode kn_stream_show(const KnStreamFlow *f, const char *select, KnErr *err);
KN_NODISCARD KnCode kn_stream_hide(const KnStreamFlow *f, KnErr *err);

/** What the flow is, as far as its document says it: a new reference. */
json_t *kn_stream_plan(const KnStreamFlow *f);
/** Reads the query, and makes the tables, by the columns of the rows that the SELECT has (bind.c).
 */
KN_NODISCARD KnCode kn_stream_bind(KnStreamFlow *f, const char *rows, KnErr *err);

/* ---- the epoch's rows (rows.c) ---- */
/** kn_rows_N as a relation of this kind: the rows, with their event time. */
KN_NODISCARD KnCode kn_stream_take_in(const KnStreamFlow *f, const char *kind, const char *rows,
                                      KnErr *err);
/** Takes them in, counts what is late, moves the watermark, and shows the query what counts. */
KN_NODISCARD KnCode kn_stream_take(KnStreamEpoch *e, const char *rows, KnErr *err);
/** SELECT of the rows that the query reads: with windows, where it has windows. */
void kn_stream_view_sql(const KnStreamFlow *f, const char *from, int64_t watermark, KnBuf *sql);

/** SELECT of what is remembered of kn_once_N, so that it is known when it comes again. */
void kn_stream_seen_sql(const KnStreamFlow *f, KnBuf *sql);

/* ---- what is kept (keep.c) ---- */
/** SELECT of what an epoch adds to it. */
void kn_stream_delta_sql(const KnStreamFlow *f, KnBuf *sql);
KN_NODISCARD KnCode kn_stream_keep(KnStreamEpoch *e, KnErr *err);
/** Puts together what the checkpoint had. */
KN_NODISCARD KnCode kn_stream_restored(KnStreamFlow *f, KnErr *err);
/** What is kept is put together where that is due. */
KN_NODISCARD KnCode kn_stream_compact(KnStreamEpoch *e, KnErr *err);

/* ---- what an epoch gives (emit.c) ---- */
/** kn_out_N, checked and as declared; *ret = its rows. */
KN_NODISCARD KnCode kn_stream_emit(KnStreamEpoch *e, int64_t *ret, KnErr *err);

/** One epoch, when there is something to read; *ret_did = there was (epoch.c). */
KN_NODISCARD KnCode kn_stream_step(KnStreamFlow *f, bool *ret_did, KnErr *err);

/** Sink, state, source, and where the stream stands (open.c). */
KN_NODISCARD KnCode kn_stream_flow_open(KnNativeRun *run, KnNativeNode *node, const KnutFlow *flow,
                                        KnStreamFlow **ret, KnErr *err);
KnStreamFlow *kn_stream_flow_close(KnStreamFlow *f); /* accepts NULL, returns NULL */
