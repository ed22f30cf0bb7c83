/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * stream_bench.h - a pipeline of one stream, "ev", fed from memory: each micro-batch is a SELECT of
 * the bench's engine. The target is the folder "out" of Parquet, or nothing.
 */
#include "base/vec.h"
#include "pipeline/backend.h"
#include "unit/pipeline/native_bench.h"

enum { MAX_MICRO_BATCHES = 64 };

typedef struct StreamBench {
    Bench b;
    KN_VEC(KnBatch *) batches[MAX_MICRO_BATCHES];
    size_t n_batches; /* that there are */
    size_t n_shown;   /* that the run sees */
    const char *columns[8], *types[8];
    size_t n_columns;
    KnutFlow flow;       /* of "ev" into "out"; change at will */
    KnutDataset dataset; /* "out" */
    KnutDataset second;  /* and its flow, where it has a name */
    KnutFlow second_flow;
    KnutInput table; /* beside it, where it has a name */
    KnRunOptions opts;
    KnBuf events;            /* their texts, a line each */
    KnutWatermark watermark; /* of column "ts" */
    KnutWindow window;
} StreamBench;

/** columns: "ts BIGINT, id BIGINT". The flow counts ts by tumbling windows of 100 ms, lateness 50
 * ms.
 */
StreamBench *stream_new(const char *columns);
void stream_free(StreamBench *s);
/** One more micro-batch. */
void stream_feed(StreamBench *s, const char *select);
/** Values of the columns as VALUES has them: "(1, 2), (3, 4)". */
void stream_values(StreamBench *s, const char *values);
/** A run over all micro-batches, one epoch each. */
KnCode stream_try(StreamBench *s, KnErr *err);
void stream_run(StreamBench *s);
/** A run that fails so. */
void stream_fails(StreamBench *s, KnCode code, const char *words);
/** The target's rows: "1|2;3|4", sorted; "" = none. */
const char *stream_rows(StreamBench *s);
const char *stream_out(const StreamBench *s); /* the folder */
const char *stream_state(const StreamBench *s);
/** True when an event of the last run has these words. */
bool stream_told(const StreamBench *s, const char *words);
