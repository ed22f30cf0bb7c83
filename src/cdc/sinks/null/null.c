/* SPDX-License-Identifier: Apache-2.0 */
/*
 * null.c - the sink that keeps nothing: it takes every row, checks it against plan and schema, and
 * forgets it. For measuring how fast a table can be read and handed over, and for trying out a
 * delivery (with a state file of its own) before a destination exists.
 *
 * It remembers no labels, so what a killed process had sent is sent again: nothing was kept.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "base/fault.h"
#include "cdc/sink.h"

typedef struct Null {
    KnSink base;
    KnArena *arena; /* of the current window's types */
    size_t n_columns;
    KnTypeKind *kinds;
} Null;

static KnCode identify(const KnSinkOptions *opts, KnArena *arena, const char **ret, KnErr *err)
{
    (void)err;
    *ret = kn_arena_printf(arena, "null:%s", opts->place);
    return KN_OK;
}

static KnCode open_sink(const KnSinkOptions *opts, KnSink **ret, KnErr *err)
{
    (void)opts;
    (void)err;
    Null *sink = calloc(1, sizeof(*sink));
    if (!sink)
        abort();
    sink->base.ops = &kn_sink_null;
    *ret = &sink->base;
    return KN_OK;
}

static KnCode probe(KnSink *base, const KnSinkWindow *win, KnErr *err)
{
    (void)base;
    const KnSchema *schema = win->schema;
    KN_BUF_AUTO sql;
    kn_buf_init(&sql, (size_t)1 << 20);
    for (size_t i = 0; i < schema->root.n_fields; ++i)
        KN_TRY(kn_type_sql(&sql, schema->root.fields[i].type, err));
    return KN_OK;
}

static KnCode begin(KnSink *base, const KnSinkWindow *win, KnErr *err)
{
    Null *sink = (Null *)base;
    (void)err;
    sink->arena = kn_arena_free(sink->arena);
    sink->arena = kn_arena_new(4096);
    sink->n_columns = win->schema->root.n_fields;
    sink->kinds = kn_arena_zalloc(sink->arena, (sink->n_columns + 1) * sizeof(*sink->kinds));
    for (size_t i = 0; i < sink->n_columns; ++i)
        sink->kinds[i] = win->schema->root.fields[i].type->kind;
    return KN_OK;
}

static KnCode check_types(const Null *sink, const KnSinkChunk *chunk, const KnBatch *batch,
                          bool positions, KnErr *err)
{
    size_t expected = sink->n_columns + (positions ? 2 : 0);
    if (kn_batch_n_columns(batch) != expected)
        return kn_err_set(err, KN_E_CORRUPT, "chunk %" PRId64 ": rows have %zu columns, not %zu",
                          chunk->number, kn_batch_n_columns(batch), expected);
    for (size_t i = 0; i < sink->n_columns; ++i) {
        KnVector vec = kn_batch_vector(batch, i);
        if (vec.type->kind != kn_type_column_kind(sink->kinds[i]))
            return kn_err_set(err, KN_E_CORRUPT, "chunk %" PRId64 ": column %zu has another type",
                              chunk->number, i);
    }
    return KN_OK;
}

/* The place of the row before, while a chunk's rows pass. */
typedef struct Place {
    int64_t task, pos;
} Place;

static KnCode check_order(const KnSinkChunk *chunk, const KnBatch *batch, Place *at, KnErr *err)
{
    size_t cols = kn_batch_n_columns(batch);
    KnVector task_vec = kn_batch_vector(batch, cols - 2),
             pos_vec = kn_batch_vector(batch, cols - 1);
    const int64_t *task = task_vec.data, *pos = pos_vec.data;
    for (size_t i = 0; i < kn_batch_rows(batch); ++i) {
        if (task[i] < at->task || (task[i] == at->task && pos[i] <= at->pos))
            return kn_err_set(err, KN_E_CORRUPT, "chunk %" PRId64 ": rows are out of order",
                              chunk->number);
        *at = (Place){task[i], pos[i]};
    }
    return KN_OK;
}

static KnCode take_rows(const Null *sink, const KnSinkChunk *chunk, const KnRowSource *rows,
                        int64_t *ret_rows, KnErr *err)
{
    Place at = {-1, -1};
    bool checked = false;
    for (*ret_rows = 0;;) {
        KN_BATCH_AUTO batch = NULL;
        KN_TRY(rows->next(rows->arg, &batch, err));
        if (!batch)
            return KN_OK;
        if (!checked)
            KN_TRY(check_types(sink, chunk, batch, rows->positions, err));
        checked = true;
        if (rows->positions)
            KN_TRY(check_order(chunk, batch, &at, err));
        *ret_rows += (int64_t)kn_batch_rows(batch);
    }
}

static KnCode load(KnSink *base, const KnSinkChunk *chunk, const KnRowSource *rows, KnVerdict *ret,
                   KnErr *err)
{
    const Null *sink = (const Null *)base;
    *ret = (KnVerdict){.kind = KN_VERDICT_FAILED};
    int64_t n;
    KN_TRY(take_rows(sink, chunk, rows, &n, err));
    if (n != chunk->rows)
        return kn_err_set(err, KN_E_CORRUPT,
                          "chunk %" PRId64 ": %" PRId64 " rows came, %" PRId64 " were planned",
                          chunk->number, n, chunk->rows);
    KN_FAULT("sink-before-commit", err);
    *ret = (KnVerdict){.kind = KN_VERDICT_LOADED, .rows = n};
    return KN_OK;
}

static KnCode find(KnSink *base, const char *label, bool *ret_found, int64_t *ret_rows, KnErr *err)
{
    (void)base;
    (void)label;
    (void)err;
    *ret_found = false;
    *ret_rows = 0;
    return KN_OK;
}

static void close_sink(KnSink *base)
{
    Null *sink = (Null *)base;
    (void)kn_arena_free(sink->arena);
    free(sink);
}

const KnSinkOps kn_sink_null = {
    .kind = "null",
    .max_parallel_loads = 64,
    .identify = identify,
    .open = open_sink,
    .probe = probe,
    .begin = begin,
    .load = load,
    .find = find,
    .close = close_sink,
};
