/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sink_nowhere.c - a dataset without a place: a table of the engine for those who read it, batches
 * for the caller, and numbers. It goes with the run, so that the next one starts anew.
 */
#include <string.h>

#include "pipeline/native/stream/sink.h"

typedef struct Nowhere {
    bool made;
} Nowhere;

static KnCode nowhere_open(KnStreamSink *sink, KnErr *err)
{
    (void)err;
    sink->own = kn_arena_zalloc(sink->run->arena, sizeof(Nowhere));
    return KN_OK;
}

static KnCode nowhere_mark(KnStreamSink *sink, KnStreamMark *ret, KnErr *err)
{
    (void)sink;
    (void)err;
    *ret = (KnStreamMark){.epoch = -1};
    return KN_OK;
}

typedef struct Giving {
    const KnStreamSink *sink;
    int64_t rows;
} Giving;

static KnCode give(void *arg, KnBatch *batch, KnErr *err)
{
    Giving *g = arg;
    const KnRunOptions *opts = g->sink->run->opts;
    g->rows += (int64_t)kn_batch_rows(batch);
    return opts->on_rows ? opts->on_rows(opts->rows_arg, g->sink->node->dataset->name,
                                         g->sink->run->session, batch, err)
                         : KN_OK;
}

static KnCode keep(KnStreamSink *sink, const KnStreamWrite *write, KnErr *err)
{
    Nowhere *own = sink->own;
    KnNativeRun *run = sink->run;
    KN_BUF_AUTO sql = {.max = 1 << 16};
    if (!own->made || write->how == KN_STREAM_REPLACE) {
        own->made = true;
        return kn_native_create(run, "OR REPLACE TABLE", sink->node->dataset->name, write->select,
                                err);
    }
    kn_buf_text(&sql, "INSERT INTO ");
    kn_native_name_sql(&sql, sink->node->dataset->name);
    kn_buf_printf(&sql, " %s", write->select);
    return kn_session_exec(run->session, sql.data, NULL, err);
}

static KnCode nowhere_commit(KnStreamSink *sink, const KnStreamWrite *write, int64_t *ret_rows,
                             KnErr *err)
{
    Giving giving = {.sink = sink};
    if (sink->node->readers)
        KN_TRY(keep(sink, write, err));
    KN_TRY(kn_session_visit(sink->run->session, write->select, give, &giving, err));
    sink->node->rows = (sink->node->rows < 0 ? 0 : sink->node->rows) + giving.rows;
    *ret_rows = giving.rows;
    return KN_OK;
}

static KnCode nowhere_rows(KnStreamSink *sink, const char **ret_sql, KnErr *err)
{
    (void)sink;
    (void)err;
    *ret_sql = NULL; /* it has the name already */
    return KN_OK;
}

static void nowhere_close(KnStreamSink *sink)
{
    (void)sink;
}

const KnStreamSinkOps kn_stream_nowhere = {.kind = "nowhere",
                                           .passing = true,
                                           .open = nowhere_open,
                                           .mark = nowhere_mark,
                                           .commit = nowhere_commit,
                                           .rows = nowhere_rows,
                                           .close = nowhere_close};
