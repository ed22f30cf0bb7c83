/* SPDX-License-Identifier: Apache-2.0 */
/*
 * emit.c - what an epoch gives.
 *
 *     append     windows that the watermark has passed in this epoch; without windows, the new rows
 *     update     windows and groups that this epoch has changed
 *     complete   all of them
 */
#include <inttypes.h>
#include <string.h>

#include "pipeline/native/stream/stream.h"

/* Which of what is kept is given, as a relation. */
static void chosen_sql(const KnStreamEpoch *e, KnBuf *sql)
{
    const KnStreamFlow *f = e->f;
    if (f->spec->output_mode == KNUT_MODE_COMPLETE) {
        kn_buf_text(sql, f->kept.table);
        return;
    }
    if (f->spec->output_mode == KNUT_MODE_APPEND) {
        kn_buf_printf(sql, "(SELECT * FROM %s WHERE kn_we <= %" PRId64, f->kept.table, e->now);
        if (e->before > INT64_MIN)
            kn_buf_printf(sql, " AND kn_we > %" PRId64, e->before);
        kn_buf_char(sql, ')');
        return;
    }
    kn_buf_printf(sql, "(SELECT * FROM %s old WHERE EXISTS (SELECT 1 FROM %s new WHERE true",
                  f->kept.table, kn_stream_table_name(f, "delta"));
    if (f->spec->window)
        kn_buf_text(sql, " AND old.kn_ws = new.kn_ws");
    for (size_t i = 0; i < f->query.n_groups; i++)
        kn_buf_printf(sql, " AND old.kn_g%zu IS NOT DISTINCT FROM new.kn_g%zu", i, i);
    kn_buf_text(sql, "))");
}

static void bounds_sql(const KnStreamFlow *f, KnBuf *sql, const char *start, const char *end)
{
    if (!f->spec->window)
        return;
    kn_time_bound_sql(sql, f->time, start);
    kn_buf_text(sql, " AS window_start, ");
    kn_time_bound_sql(sql, f->time, end);
    kn_buf_text(sql, " AS window_end, ");
}

static void items_sql(const KnStreamFlow *f, KnBuf *sql)
{
    for (size_t i = 0; i < f->query.n_items; i++) {
        kn_buf_printf(sql, "%s%s AS ", i ? ", " : "", f->query.items[i].sql);
        kn_sql_ident(sql, kn_str(f->query.items[i].name));
    }
}

/* Parts become aggregates, and these the query's columns. */
static void folded_sql(const KnStreamEpoch *e, KnBuf *sql)
{
    const KnStreamFlow *f = e->f;
    const KnStreamQuery *q = &f->query;
    KN_BUF_AUTO keys = {.max = 1 << 20};
    size_t n = 0;
    const char *end = f->spec->window ? kn_window_end(f->run->arena, f->spec->window) : "";
    if (f->spec->window) {
        kn_buf_text(&keys, strcmp(end, "kn_we") == 0 ? "kn_ws, kn_we" : "kn_ws");
        n = 1;
    }
    for (size_t i = 0; i < q->n_groups; i++)
        kn_buf_printf(&keys, "%skn_g%zu", n++ ? ", " : "", i);
    kn_buf_text(sql, "SELECT ");
    bounds_sql(f, sql, "kn_ws", end);
    items_sql(f, sql);
    kn_buf_printf(sql, " FROM (SELECT %s", n ? keys.data : "");
    for (size_t i = 0; i < q->n_aggregates; i++)
        kn_buf_printf(sql, "%s%s AS kn_a%zu", n++ ? ", " : "", q->aggregates[i], i);
    kn_buf_text(sql, n ? " FROM " : "1 FROM ");
    chosen_sql(e, sql);
    if (keys.len)
        kn_buf_printf(sql, " GROUP BY %s)", keys.data);
    else
        kn_buf_text(sql, " HAVING count(*) > 0)");
    if (q->having)
        kn_buf_printf(sql, " WHERE %s", q->having);
}

static void grouped_sql(const KnStreamEpoch *e, KnBuf *sql)
{
    const KnStreamFlow *f = e->f;
    const KnStreamQuery *q = &f->query;
    size_t n = 0;
    kn_buf_text(sql, "SELECT ");
    bounds_sql(f, sql, "kn_ws", "kn_we");
    items_sql(f, sql);
    kn_buf_text(sql, " FROM (SELECT * FROM ");
    chosen_sql(e, sql);
    kn_buf_text(sql, ") AS ");
    kn_sql_ident(sql, kn_str(q->alias));
    if (f->spec->window) {
        kn_buf_text(sql, " GROUP BY kn_ws, kn_we");
        n = 2;
    }
    for (size_t i = 0; i < q->n_groups; i++)
        kn_buf_printf(sql, "%s%s", n++ ? ", " : " GROUP BY ", q->groups[i]);
    if (q->having)
        kn_buf_printf(sql, " HAVING %s", q->having);
}

/* ---- any query: window by window ---- */

typedef struct Bound {
    int64_t start, end;
} Bound;
typedef KN_VEC(Bound) Bounds;

static KnCode add_bounds(void *arg, KnBatch *batch, KnErr *err)
{
    (void)err;
    KnVector starts = kn_batch_vector(batch, 0), ends = kn_batch_vector(batch, 1);
    for (size_t i = 0; i < kn_batch_rows(batch); i++)
        *kn_vec_push((Bounds *)arg) =
            (Bound){((const int64_t *)starts.data)[i], ((const int64_t *)ends.data)[i]};
    return KN_OK;
}

static KnCode list_windows(const KnStreamEpoch *e, Bounds *ret, KnErr *err)
{
    KN_BUF_AUTO sql = {.max = 1 << 20};
    kn_buf_text(&sql, "SELECT DISTINCT kn_ws, kn_we FROM ");
    chosen_sql(e, &sql);
    kn_buf_text(&sql, " ORDER BY kn_ws, kn_we");
    KN_TRY(kn_buf_check(&sql, err));
    return kn_session_visit(e->f->run->session, sql.data, add_bounds, ret, err);
}

/* The query reads the rows of one window (none: NULL) and its result is one more part. */
static KnCode one_window(const KnStreamEpoch *e, const Bound *bound, bool first, KnErr *err)
{
    const KnStreamFlow *f = e->f;
    char start[24], end[24];
    KN_BUF_AUTO view = {.max = 1 << 20}, sql = {.max = 64 << 20};
    (void)snprintf(start, sizeof(start), "%" PRId64, bound ? bound->start : 0);
    (void)snprintf(end, sizeof(end), "%" PRId64, bound ? bound->end : 0);
    kn_buf_printf(&view, "SELECT * EXCLUDE (kn_ws, kn_we) FROM %s WHERE ", f->kept.table);
    kn_buf_printf(&view, bound ? "kn_ws = %s AND kn_we = %s" : "false", start, end);
    KN_TRY(kn_buf_check(&view, err));
    KN_TRY(kn_stream_show(f, view.data, err));
    kn_buf_text(&sql, "SELECT ");
    bounds_sql(f, &sql, start, end);
    kn_buf_printf(&sql, "* FROM (%s\n)%s", f->query.text, bound ? "" : " LIMIT 0");
    KN_TRY(kn_buf_check(&sql, err));
    const char *name = kn_stream_table_name(f, "result");
    if (first)
        return kn_stream_create(f, "TEMP TABLE", name, sql.data, err);
    return kn_session_exec(f->run->session,
                           kn_arena_printf(f->run->arena, "INSERT INTO %s %s", name, sql.data),
                           NULL, err);
}

static KnCode windows(const KnStreamEpoch *e, KnErr *err)
{
    Bounds bounds = {0};
    KnCode rc = list_windows(e, &bounds, err);
    if (rc == KN_OK)
        rc = one_window(e, NULL, true, err);
    for (size_t i = 0; rc == KN_OK && i < bounds.len; i++)
        rc = one_window(e, &bounds.items[i], false, err);
    kn_vec_done(&bounds);
    return rc;
}

/* A query that aggregates in a way of its own, over all rows that are kept; of an update, what was
 * not there the last time. */
static KnCode whole(const KnStreamEpoch *e, KnBuf *sql, KnErr *err)
{
    const KnStreamFlow *f = e->f;
    const char *text = f->query.text;
    const char *all = kn_arena_printf(f->run->arena, "SELECT * FROM %s", f->kept.table);
    const char *old = kn_arena_printf(f->run->arena, "%s EXCEPT ALL SELECT * FROM %s", all,
                                      kn_stream_table_name(f, "delta"));
    if (f->spec->output_mode == KNUT_MODE_UPDATE) {
        KN_TRY(kn_stream_show(f, old, err));
        KN_TRY(kn_stream_create(f, "TEMP TABLE", kn_stream_table_name(f, "before"), text, err));
    }
    KN_TRY(kn_stream_show(f, all, err));
    kn_buf_printf(sql, "SELECT * FROM (%s\n)", text);
    if (f->spec->output_mode == KNUT_MODE_UPDATE)
        kn_buf_printf(sql, " EXCEPT ALL SELECT * FROM %s", kn_stream_table_name(f, "before"));
    return KN_OK;
}

static KnCode result_sql(const KnStreamEpoch *e, KnBuf *sql, KnErr *err)
{
    const KnStreamFlow *f = e->f;
    switch (f->query.strategy) {
    case KN_STREAM_ROWWISE:
        kn_buf_text(sql, f->query.text);
        break;
    case KN_STREAM_FOLD:
        folded_sql(e, sql);
        break;
    case KN_STREAM_GROUPED:
        grouped_sql(e, sql);
        break;
    case KN_STREAM_OPAQUE:
        if (!f->spec->window) {
            KN_TRY(whole(e, sql, err));
            break;
        }
        KN_TRY(windows(e, err));
        kn_buf_printf(sql, "SELECT * FROM %s", kn_stream_table_name(f, "result"));
        break;
    }
    return kn_buf_check(sql, err);
}

KnCode kn_stream_emit(KnStreamEpoch *e, int64_t *ret, KnErr *err)
{
    const KnStreamFlow *f = e->f;
    KN_BUF_AUTO result = {.max = 64 << 20}, around = {.max = 64 << 20};
    const char *sql = NULL, *out = kn_stream_table_name(f, "out");
    KnNativeWanted wanted = {f->flow->target, &f->flow->expectations, NULL};
    KN_TRY(result_sql(e, &result, err));
    bool bounds = f->spec->window && f->flow->projection.len;
    kn_native_around_sql(&around, f->flow, bounds ? "window_start, window_end" : "",
                         kn_arena_printf(f->run->arena, "(%s\n)", result.data));
    KN_TRY(kn_buf_check(&around, err));
    KN_TRY(kn_native_checked(f->run, &wanted, around.data, &sql, err));
    KN_TRY(kn_native_as_declared(f->run, f->node->dataset, sql, &sql, err));
    KN_TRY(kn_stream_create(f, "TEMP TABLE", out, sql, err));
    KN_TRY(kn_native_report_checks(f->run, f->node->dataset->name, err));
    return kn_session_query_i64(
        f->run->session, kn_arena_printf(f->run->arena, "SELECT count(*) FROM %s", out), ret, err);
}
