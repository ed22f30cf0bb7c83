/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * sink.h - where the rows of a stream go: one const struct of functions for each kind of target,
 * one line in sink.c.
 *
 * Rows and the mark of their epoch become visible in one step, or neither. A mark is the stream's
 * id, made anew with its state, and the number of the epoch. The state of an epoch is durable
 * before its commit() is called; on start mark() tells which state the target belongs to. An epoch
 * without rows is not committed, unless it replaces what is there.
 *
 * One thread. Order of calls: open, mark, commit for each epoch, close.
 */
#include "pipeline/native/native.h"

typedef struct KnStreamSink KnStreamSink;

typedef enum KnStreamHow {
    KN_STREAM_APPEND,
    KN_STREAM_UPSERT,  /* rows take the place of those with the same dataset->keys */
    KN_STREAM_REPLACE, /* rows take the place of all that is there */
} KnStreamHow;

typedef struct KnStreamMark {
    char stream[37];
    int64_t epoch; /* from 0; -1 = the target has no mark of this flow */
} KnStreamMark;

typedef struct KnStreamWrite {
    KnStreamMark mark;
    KnStreamHow how;
    const char *select; /* the rows, on the run's session; may be run once only */
} KnStreamWrite;

typedef struct KnStreamSinkOps {
    const char *kind;
    bool upserts; /* knows KN_STREAM_UPSERT */
    bool passing; /* gone with the run: starts at nothing, nothing is kept */
    KnCode (*open)(KnStreamSink *sink, KnErr *err);
    /** The last mark of this pipeline's flow. A target that is not there has none. */
    KnCode (*mark)(KnStreamSink *sink, KnStreamMark *ret, KnErr *err);
    /** *ret_rows -1: there was nothing to change, and so the mark is the one of before.
     * KN_E_UNKNOWN: it may have happened; the run ends, and the next one asks for the mark. */
    KnCode (*commit)(KnStreamSink *sink, const KnStreamWrite *write, int64_t *ret_rows, KnErr *err);
    /** A SELECT of all rows of the target, for those flows of the run that read it. */
    KnCode (*rows)(KnStreamSink *sink, const char **ret_sql, KnErr *err);
    void (*close)(KnStreamSink *sink); /* also after a failed open */
} KnStreamSinkOps;

struct KnStreamSink {
    const KnStreamSinkOps *ops;
    KnNativeRun *run;
    KnNativeNode *node; /* the target: dataset, path, format */
    const KnutFlow *flow;
    const char *state_beside; /* set by open(): where state goes when nobody says; NULL = nowhere */
    void *own;
};

extern const KnStreamSinkOps kn_stream_folder, kn_stream_table, kn_stream_nowhere;

KN_NODISCARD KnCode kn_stream_sink_open(KnNativeRun *run, KnNativeNode *node, const KnutFlow *flow,
                                        KnStreamSink **ret, KnErr *err);
KnStreamSink *kn_stream_sink_close(KnStreamSink *sink); /* accepts NULL, returns NULL */
