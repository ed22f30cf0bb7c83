/* SPDX-License-Identifier: Apache-2.0 */
/*
 * epoch.c - one epoch of a flow, from what the source has to the target's commit.
 *
 * Its number, its offsets and what it adds to what is kept are durable before the target gets its
 * rows. A run that ends in between leaves a checkpoint that is ahead of its target; the next run
 * sees that and goes on with the one before. Nothing of an epoch outlives it but what the flow
 * keeps: its texts are in an arena of its own.
 */
#include <inttypes.h>
#include <string.h>

#include "base/fault.h"
#include "pipeline/native/stream/stream.h"

enum { MANY_PARTS = 32 };

static KnStreamLimit limit_of(const KnStreamFlow *f)
{
    static const int64_t files = 1000, rows = 5000000;
    const KnutPairs *settings = &f->run->pipeline->properties;
    KnStreamLimit limit = {.all = !f->endless};
    for (size_t i = 0; i < settings->len; i++) {
        int64_t n = 0;
        if (!kn_str_to_i64(kn_str(settings->items[i].value), &n))
            continue;
        if (!strcmp(settings->items[i].key, KN_STREAM_MAX_FILES))
            limit.files = n;
        if (!strcmp(settings->items[i].key, KN_STREAM_MAX_ROWS))
            limit.rows = n;
    }
    if (!limit.all) {
        limit.files = limit.files ? limit.files : files;
        limit.rows = limit.rows ? limit.rows : rows;
    }
    return limit;
}

static KnStreamHow how_of(const KnStreamFlow *f)
{
    if (f->fresh || f->spec->output_mode == KNUT_MODE_COMPLETE)
        return KN_STREAM_REPLACE;
    return f->spec->output_mode == KNUT_MODE_UPDATE && f->node->dataset->keys.len
               ? KN_STREAM_UPSERT
               : KN_STREAM_APPEND;
}

static KnCode add_log(KnStreamFlow *f, int64_t epoch, KnErr *err)
{
    int64_t rows = 0;
    if (f->log.parts.len >= MANY_PARTS) { /* all of it in one part */
        f->log.parts.len = 0;
        f->log_rows = 0;
    }
    const char *count = kn_arena_printf(f->run->arena, "SELECT count(*) FROM %s", f->log.table);
    KN_TRY(kn_session_query_i64(f->run->session, count, &rows, err));
    KN_TRY(
        kn_state_add(f->state, &f->log, epoch,
                     kn_arena_printf(f->run->arena, "SELECT item FROM %s WHERE rowid >= %" PRId64,
                                     f->log.table, f->log_rows),
                     err));
    f->log_rows = rows;
    return KN_OK;
}

static KnCode add_parts(KnStreamEpoch *e, KnErr *err)
{
    KnStreamFlow *f = e->f;
    KnArena *arena = f->run->arena;
    KN_BUF_AUTO seen = {.max = 1 << 20};
    if (kn_stream_keeps(f)) {
        const char *from = e->kept_anew ? f->kept.table : kn_stream_table_name(f, "delta");
        KN_TRY(kn_state_add(f->state, &f->kept, e->number,
                            kn_arena_printf(arena, "SELECT * FROM %s", from), err));
    }
    if (f->seen.table) {
        if (e->seen_anew)
            kn_buf_printf(&seen, "SELECT * FROM %s", f->seen.table);
        else
            kn_stream_seen_sql(f, &seen);
        KN_TRY(kn_state_add(f->state, &f->seen, e->number, seen.data, err));
    }
    return f->log.table ? add_log(f, e->number, err) : KN_OK;
}

static KnCode save(KnStreamEpoch *e, const KnStreamPoint *point, KnErr *err)
{
    KnStreamFlow *f = e->f;
    KnStreamTable *tables[3];
    size_t n = 0;
    if (!f->state)
        return KN_OK;
    KN_TRY(add_parts(e, err));
    if (kn_stream_keeps(f))
        tables[n++] = &f->kept;
    if (f->seen.table)
        tables[n++] = &f->seen;
    if (f->log.table)
        tables[n++] = &f->log;
    return kn_state_save(f->state, point, f->plan, tables, n, err);
}

static void tell(const KnStreamEpoch *e, int64_t written)
{
    const KnStreamFlow *f = e->f;
    char watermark[40] = "";
    KnRunMetrics metrics = {.rows = written};
    KnRunEvent event = {
        .element = f->node->dataset->name, .phase = KN_PHASE_RUNNING, .metrics = &metrics};
    if (e->now > INT64_MIN)
        (void)snprintf(watermark, sizeof(watermark), ", watermark %" PRId64, e->now);
    kn_native_tell(f->run, &event,
                   "flow `%s` (streaming): epoch %" PRId64 ": %" PRId64 " row(s) in, %" PRId64
                   " out, %" PRId64 " late row(s) dropped, %" PRId64 " without event time%s",
                   f->flow->name, e->number, e->rows, written, e->late, e->timeless, watermark);
}

static KnCode commit(KnStreamEpoch *e, json_t *to, int64_t rows, KnErr *err)
{
    KnStreamFlow *f = e->f;
    KnStreamWrite write = {.how = how_of(f)};
    KnStreamPoint point = f->point;
    int64_t written = 0;
    bool gives = rows > 0 || write.how == KN_STREAM_REPLACE;
    point.mark.epoch = e->number;
    point.sink_epoch = gives ? e->number : f->point.sink_epoch;
    point.offsets = to;
    point.watermark = f->mark.value;
    point.inputs = kn_watermark_json(&f->mark);
    point.rows += e->rows;
    point.late += e->late;
    point.timeless += e->timeless;
    KnCode rc = save(e, &point, err);
    if (rc == KN_OK && gives) {
        write.mark = point.mark;
        write.select =
            kn_arena_printf(f->run->arena, "SELECT * FROM %s", kn_stream_table_name(f, "out"));
        rc = f->sink->ops->commit(f->sink, &write, &written, err);
    }
    if (rc != KN_OK) {
        json_decref(point.inputs);
        return rc;
    }
    if (written < 0) { /* the mark stayed where it was */
        point.sink_epoch = f->point.sink_epoch;
        written = 0;
    }
    (void)json_incref(to);
    kn_stream_point_done(&f->point);
    f->point = point;
    f->fresh = false;
    atomic_fetch_add(&f->node->rows_in, e->rows);
    atomic_fetch_add(&f->node->epochs, 1);
    atomic_store(&f->node->watermark_ms, e->now);
    tell(e, written);
    return KN_OK;
}

static KnCode compute(KnStreamEpoch *e, const char *rows, int64_t *ret_out, KnErr *err)
{
    KnStreamFlow *f = e->f;
    KN_TRY(kn_stream_take(e, rows, err));
    KN_TRY(kn_stream_keep(e, err));
    KN_TRY(kn_stream_emit(e, ret_out, err));
    KN_TRY(kn_stream_compact(e, err));
    return kn_native_going_on(f->run, err);
}

static KnCode epoch(KnStreamFlow *f, KnArena *whole_run, json_t *to, KnErr *err)
{
    const char *rows = NULL;
    int64_t out = 0;
    bool counts = f->spec->output_mode != KNUT_MODE_COMPLETE;
    KnStreamEpoch e = {.f = f,
                       .number = f->point.mark.epoch + 1,
                       .before = counts ? f->mark.value : INT64_MIN,
                       .now = f->mark.value};
    KN_TRY(f->source->ops->rows(f->source, f->point.offsets, to, &rows, err));
    if (!f->bound) {
        KnArena *own = f->run->arena;
        f->run->arena = whole_run;
        KnCode rc = kn_stream_bind(f, rows, err);
        f->run->arena = own;
        KN_TRY(rc);
    }
    KN_TRY(compute(&e, rows, &out, err));
    f->source->ops->release(f->source);
    KN_FAULT("stream-computed", err);
    KN_TRY(commit(&e, to, out, err));
    KN_FAULT("stream-committed", err);
    f->epochs++;
    if (f->source->ops->committed && f->source->ops->committed(f->source, to, NULL) != KN_OK)
        kn_native_tell(f->run, &(KnRunEvent){.element = f->node->dataset->name},
                       "flow `%s`: the source was not told how far its rows are read",
                       f->flow->name);
    if (f->state)
        kn_state_tidy(f->state);
    return kn_stream_hide(f, err);
}

KnCode kn_stream_step(KnStreamFlow *f, bool *ret_did, KnErr *err)
{
    KnNativeRun *run = f->run;
    KnArena *whole_run = run->arena;
    size_t n_checks = run->checks.len;
    KnStreamLimit limit = limit_of(f);
    json_t *to = NULL;
    run->arena = kn_arena_new(0);
    KnCode rc = f->source->ops->latest(f->source, f->point.offsets, &limit, &to, err);
    *ret_did = rc == KN_OK && to;
    if (*ret_did)
        rc = epoch(f, whole_run, to, err);
    json_decref(to);
    if (rc != KN_OK)
        kn_native_unstage(run); /* its names are the epoch's */
    run->checks.len = n_checks;
    run->arena = kn_arena_free(run->arena);
    run->arena = whole_run;
    return rc == KN_OK ? KN_OK : kn_err_wrap(err, rc, "flow %s", f->flow->name);
}
