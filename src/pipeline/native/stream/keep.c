/* SPDX-License-Identifier: Apache-2.0 */
/*
 * keep.c - what is kept from epoch to epoch.
 *
 * An epoch adds rows: a part of every aggregate for each window and group that it met (FOLD), or
 * the rows themselves with their windows. Nothing is looked up and nothing changed: the parts of a
 * group are put together when its window closes, and now and then, when there are many of them, all
 * at once. Rows of windows that are over are left out where they are read.
 *
 * Sessions are the exception. Their bounds follow from their rows, so after each epoch what is kept
 * is put together into sessions; those that are closed stay for the length of a gap: a row that
 * comes then and would have belonged to one is late.
 */
#include <inttypes.h>

#include "pipeline/native/stream/stream.h"

enum { FEW_ROWS = 1 << 17, MANY_PARTS = 32 };

static bool has_sessions(const KnStreamFlow *f)
{
    return f->spec->window && f->spec->window->tag == KNUT_WINDOW_SESSION;
}

/* GROUP BY the windows and the kept groups. */
static void group_by_sql(const KnStreamFlow *f, KnBuf *sql)
{
    size_t n = 0;
    if (f->spec->window)
        n += 1;
    if (n)
        kn_buf_text(sql, has_sessions(f) ? " GROUP BY kn_ws, kn_we" : " GROUP BY kn_ws");
    for (size_t i = 0; i < f->query.n_groups; i++)
        kn_buf_printf(sql, "%skn_g%zu", n++ ? ", " : " GROUP BY ", i);
}

/* The windows in front of a list of columns; how many columns that is. */
static size_t window_columns_sql(const KnStreamFlow *f, KnBuf *sql)
{
    if (!f->spec->window)
        return 0;
    kn_buf_printf(sql, "kn_ws, %s AS kn_we", kn_window_end(f->run->arena, f->spec->window));
    return 2;
}

static void fold_sql(const KnStreamFlow *f, KnBuf *sql)
{
    const KnStreamQuery *q = &f->query;
    KN_BUF_AUTO by = {.max = 1 << 16};
    kn_buf_text(sql, "SELECT ");
    size_t n = window_columns_sql(f, sql);
    if (n)
        kn_buf_text(&by, has_sessions(f) ? " GROUP BY kn_ws, kn_we" : " GROUP BY kn_ws");
    for (size_t i = 0; i < q->n_groups; i++) {
        kn_buf_printf(sql, "%s(%s) AS kn_g%zu", n++ ? ", " : "", q->groups[i], i);
        kn_buf_printf(&by, "%s%zu", by.len ? ", " : " GROUP BY ", n);
    }
    for (size_t i = 0; i < q->n_partials; i++)
        kn_buf_printf(sql, "%s%s AS kn_p%zu", n++ ? ", " : "", q->partials[i].sql, i);
    if (has_sessions(f) || !n) /* of a session: how many rows are late with it */
        kn_buf_printf(sql, "%scount(*) AS kn_n", n ? ", " : "");
    kn_buf_printf(sql, " FROM %s", q->from);
    if (q->where)
        kn_buf_printf(sql, " WHERE %s", q->where);
    kn_buf_text(sql, by.len ? by.data : " HAVING count(*) > 0");
}

void kn_stream_delta_sql(const KnStreamFlow *f, KnBuf *sql)
{
    const KnStreamQuery *q = &f->query;
    if (q->strategy == KN_STREAM_FOLD) {
        fold_sql(f, sql);
        return;
    }
    kn_buf_text(sql, "SELECT *");
    for (size_t i = 0; i < q->n_groups; i++)
        kn_buf_printf(sql, ", (%s) AS kn_g%zu", q->groups[i], i);
    kn_buf_text(sql, " FROM ");
    if (q->from)
        kn_buf_text(sql, q->from);
    else
        kn_native_name_sql(sql, f->source->name);
    if (q->where)
        kn_buf_printf(sql, " WHERE %s", q->where);
}

/* Parts of one window and group as one. The types of the parts stay. */
static void together_sql(const KnStreamFlow *f, const char *from, KnBuf *sql)
{
    if (f->query.strategy != KN_STREAM_FOLD) {
        kn_buf_printf(sql, "SELECT * FROM %s", from);
        return;
    }
    kn_buf_text(sql, "SELECT ");
    size_t n = window_columns_sql(f, sql);
    for (size_t i = 0; i < f->query.n_groups; i++)
        kn_buf_printf(sql, "%skn_g%zu", n++ ? ", " : "", i);
    for (size_t i = n; i < f->kept.shape.len; i++) {
        const KnNativeColumn *column = &f->kept.shape.items[i];
        bool part = i - n < f->query.n_partials;
        kn_buf_printf(sql, "%sCAST(%s(%s) AS %s) AS %s", i ? ", " : "",
                      part ? f->query.partials[i - n].merge : "sum", column->name, column->type,
                      column->name);
    }
    kn_buf_printf(sql, " FROM %s", from);
    group_by_sql(f, sql);
}

/* ---- sessions ---- */

/* Rows of the delta that lie in a session that is closed: they are late. */
static KnCode leave_out_late(KnStreamEpoch *e, KnErr *err)
{
    const KnStreamFlow *f = e->f;
    int64_t late = 0;
    KN_BUF_AUTO cond = {.max = 1 << 20}, sql = {.max = 1 << 20};
    const char *delta = kn_stream_table_name(f, "delta");
    if (e->before == INT64_MIN)
        return KN_OK;
    kn_buf_printf(&cond,
                  "EXISTS (SELECT 1 FROM %s old WHERE old.kn_we <= %" PRId64
                  " AND new.kn_ws <= old.kn_we AND new.kn_we >= old.kn_ws",
                  f->kept.table, e->before);
    for (size_t i = 0; i < f->query.n_groups; i++)
        kn_buf_printf(&cond, " AND old.kn_g%zu IS NOT DISTINCT FROM new.kn_g%zu", i, i);
    kn_buf_char(&cond, ')');
    kn_buf_printf(&sql, "SELECT CAST(coalesce(sum(%s), 0) AS BIGINT) FROM %s new WHERE %s",
                  f->query.strategy == KN_STREAM_FOLD ? "kn_n" : "1", delta, cond.data);
    KN_TRY(kn_buf_check(&sql, err));
    KN_TRY(kn_session_query_i64(f->run->session, sql.data, &late, err));
    e->late += late;
    if (!late)
        return KN_OK;
    kn_buf_reset(&sql);
    kn_buf_printf(&sql, "SELECT * FROM %s new WHERE NOT %s", delta, cond.data);
    KN_TRY(kn_buf_check(&sql, err));
    return kn_stream_create(f, "TEMP TABLE", delta, sql.data, err);
}

static void sessions_sql(const KnStreamFlow *f, const char *from, KnBuf *sql)
{
    KN_BUF_AUTO islands = {.max = 16 << 20};
    kn_buf_char(&islands, '(');
    kn_session_sql(&islands, from, f->query.n_groups);
    kn_buf_char(&islands, ')');
    together_sql(f, islands.data, sql);
}

/* What is kept, and more, as sessions; those that nobody can ask for any more are left out. */
static KnCode into_sessions(const KnStreamFlow *f, const char *from, int64_t watermark, KnErr *err)
{
    KN_BUF_AUTO sql = {.max = 16 << 20};
    int64_t over = 0;
    bool goes = f->spec->output_mode != KNUT_MODE_COMPLETE && watermark > INT64_MIN &&
                !__builtin_sub_overflow(watermark, kn_window_memory(f->spec->window), &over);
    kn_buf_text(&sql, goes ? "SELECT * FROM (" : "");
    sessions_sql(f, from, &sql);
    if (goes)
        kn_buf_printf(&sql, ") WHERE kn_we > %" PRId64, over);
    KN_TRY(kn_buf_check(&sql, err));
    return kn_stream_create(f, "TABLE", f->kept.table, sql.data, err);
}

static KnCode keep_sessions(KnStreamEpoch *e, KnErr *err)
{
    const KnStreamFlow *f = e->f;
    KN_TRY(leave_out_late(e, err));
    return into_sessions(f,
                         kn_arena_printf(f->run->arena,
                                         "(SELECT * FROM %s UNION ALL SELECT * FROM %s)",
                                         f->kept.table, kn_stream_table_name(f, "delta")),
                         e->before, err);
}

KnCode kn_stream_restored(KnStreamFlow *f, KnErr *err)
{
    kn_vec_foreach (&f->kept.parts, part) {
        f->kept_base += part->rows;
    }
    return has_sessions(f) ? into_sessions(f, f->kept.table, f->mark.value, err) : KN_OK;
}

/* ---- an epoch ---- */

KnCode kn_stream_keep(KnStreamEpoch *e, KnErr *err)
{
    const KnStreamFlow *f = e->f;
    KN_BUF_AUTO sql = {.max = 16 << 20};
    if (!kn_stream_keeps(f))
        return KN_OK;
    kn_stream_delta_sql(f, &sql);
    KN_TRY(kn_buf_check(&sql, err));
    KN_TRY(kn_stream_create(f, "TEMP TABLE", kn_stream_table_name(f, "delta"), sql.data, err));
    if (has_sessions(f))
        return keep_sessions(e, err);
    return kn_session_exec(f->run->session,
                           kn_arena_printf(f->run->arena, "INSERT INTO %s SELECT * FROM %s",
                                           f->kept.table, kn_stream_table_name(f, "delta")),
                           NULL, err);
}

/* Are there so many parts, or so many rows that were kept since, that they are put together? */
static bool is_due(const KnStreamTable *table, int64_t base)
{
    int64_t rows = 0;
    kn_vec_foreach (&table->parts, part) {
        rows += part->rows;
    }
    return table->parts.len >= MANY_PARTS || rows > 2 * base + FEW_ROWS;
}

static KnCode anew(const KnStreamFlow *f, KnStreamTable *table, const char *select,
                   int64_t *ret_rows, KnErr *err)
{
    KN_TRY(kn_stream_create(f, "TABLE", table->table, select, err));
    table->parts.len = 0;
    return kn_session_query_i64(
        f->run->session, kn_arena_printf(f->run->arena, "SELECT count(*) FROM %s", table->table),
        ret_rows, err);
}

static const char *what_counts(const KnStreamFlow *f, const KnStreamTable *table, int64_t now)
{
    return table->until && now > INT64_MIN
               ? kn_arena_printf(f->run->arena, "(SELECT * FROM %s WHERE %s > %" PRId64 ")",
                                 table->table, table->until, now)
               : table->table;
}

KnCode kn_stream_compact(KnStreamEpoch *e, KnErr *err)
{
    KnStreamFlow *f = e->f;
    KN_BUF_AUTO sql = {.max = 16 << 20};
    if (kn_stream_keeps(f) && is_due(&f->kept, f->kept_base)) {
        if (has_sessions(f))
            kn_buf_printf(&sql, "SELECT * FROM %s", f->kept.table);
        else
            together_sql(f, what_counts(f, &f->kept, e->now), &sql);
        KN_TRY(kn_buf_check(&sql, err));
        KN_TRY(anew(f, &f->kept, sql.data, &f->kept_base, err));
        e->kept_anew = true;
    }
    if (f->seen.table && is_due(&f->seen, f->seen_base)) {
        const char *select =
            kn_arena_printf(f->run->arena, "SELECT * FROM %s", what_counts(f, &f->seen, e->now));
        KN_TRY(anew(f, &f->seen, select, &f->seen_base, err));
        e->seen_anew = true;
    }
    return KN_OK;
}
