/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rows.c - the rows of an epoch: taken in, looked at by their event time, shown to the query.
 *
 * The watermark of before the epoch says what is late: with windows a row all of whose windows are
 * over (a row with one window left counts in that one), without them a row below the watermark. A
 * row without event time lies in no window; without windows it counts.
 */
#include <inttypes.h>

#include "pipeline/native/stream/stream.h"

KnCode kn_stream_take_in(const KnStreamFlow *f, const char *kind, const char *rows, KnErr *err)
{
    const KnutWatermark *mark = f->spec->watermark;
    KN_BUF_AUTO sql = {.max = 256 << 20};
    kn_buf_text(&sql, "SELECT *");
    if (mark) {
        kn_buf_text(&sql, ", ");
        kn_time_sql(&sql, f->time, mark->event_time_column);
        kn_buf_text(&sql, " AS kn_et");
    }
    kn_buf_printf(&sql, " FROM (%s\n)", rows);
    KN_TRY(kn_buf_check(&sql, err));
    return kn_stream_create(f, kind, kn_stream_table_name(f, "rows"), sql.data, err);
}

/* TRUE for a row that counts no more, of kn_et. */
static void late_sql(const KnStreamEpoch *e, KnBuf *sql)
{
    const KnStreamFlow *f = e->f;
    if (e->before == INT64_MIN) {
        kn_buf_text(sql, "false");
        return;
    }
    kn_buf_text(sql, "coalesce(");
    if (f->spec->window) {
        kn_window_last_end_sql(sql, f->spec->window);
        kn_buf_printf(sql, " <= %" PRId64 ", false)", e->before);
    } else {
        kn_buf_printf(sql, "kn_et < %" PRId64 ", false)", e->before);
    }
}

typedef struct Numbers {
    int64_t rows, timeless, late, max_time;
} Numbers;

static KnCode take_numbers(void *arg, KnBatch *batch, KnErr *err)
{
    (void)err;
    Numbers *n = arg;
    int64_t *out[] = {&n->rows, &n->timeless, &n->late, &n->max_time};
    for (size_t i = 0; i < 4; i++) {
        KnVector value = kn_batch_vector(batch, i);
        *out[i] = kn_vector_is_null(&value, 0) ? INT64_MIN : ((const int64_t *)value.data)[0];
    }
    return KN_OK;
}

static KnCode look_at(KnStreamEpoch *e, KnErr *err)
{
    KnStreamFlow *f = e->f;
    Numbers n = {0};
    KN_BUF_AUTO sql = {.max = 1 << 20};
    const char *rows = kn_stream_table_name(f, "rows");
    if (!f->spec->watermark) {
        kn_buf_printf(&sql, "SELECT count(*) FROM %s", rows);
        return kn_session_query_i64(f->run->session, sql.data, &e->rows, err);
    }
    kn_buf_text(&sql, "SELECT count(*), count(*) FILTER (kn_et IS NULL), count(*) FILTER (");
    late_sql(e, &sql);
    kn_buf_printf(&sql, "), max(kn_et) FROM %s", rows);
    KN_TRY(kn_buf_check(&sql, err));
    KN_TRY(kn_session_visit(f->run->session, sql.data, take_numbers, &n, err));
    e->rows = n.rows;
    e->timeless = n.timeless;
    e->late = n.late;
    int64_t now = kn_native_now(f->run);
    if (n.max_time > INT64_MIN)
        kn_watermark_see(&f->input, n.max_time, now);
    kn_watermark_advance(&f->mark, now);
    e->now = f->mark.value;
    return KN_OK;
}

void kn_stream_view_sql(const KnStreamFlow *f, const char *from, int64_t watermark, KnBuf *sql)
{
    if (f->spec->window)
        kn_window_rows_sql(sql, f->spec->window, from, watermark);
    else if (f->spec->watermark)
        kn_buf_printf(sql, "SELECT * EXCLUDE (kn_et) FROM %s", from);
    else
        kn_buf_printf(sql, "SELECT * FROM %s", from);
    if (!f->spec->window && f->spec->watermark && watermark > INT64_MIN)
        kn_buf_printf(sql, " WHERE (kn_et < %" PRId64 ") IS NOT TRUE", watermark);
}

/* ---- deduplicate ---- */

static void keys_sql(const KnStreamFlow *f, KnBuf *sql)
{
    for (size_t i = 0; i < f->spec->deduplicate.len; i++) {
        kn_buf_text(sql, i ? ", " : "");
        kn_sql_ident(sql, kn_str(f->spec->deduplicate.items[i]));
    }
}

/* Rows that count and whose key neither an earlier epoch has seen, nor this one before. */
static void unseen_sql(const KnStreamEpoch *e, KnBuf *sql)
{
    const KnStreamFlow *f = e->f;
    kn_buf_printf(sql, "SELECT * FROM (SELECT * FROM %s WHERE NOT ",
                  kn_stream_table_name(f, "rows"));
    if (f->spec->watermark)
        late_sql(e, sql);
    else
        kn_buf_text(sql, "false");
    kn_buf_text(sql, " QUALIFY row_number() OVER (PARTITION BY ");
    keys_sql(f, sql);
    kn_buf_text(sql, f->spec->watermark ? " ORDER BY kn_et NULLS LAST" : "");
    kn_buf_printf(sql, ") = 1) new WHERE NOT EXISTS (SELECT 1 FROM %s old WHERE ", f->seen.table);
    for (size_t i = 0; i < f->spec->deduplicate.len; i++) {
        kn_buf_text(sql, i ? " AND old." : "old.");
        kn_sql_ident(sql, kn_str(f->spec->deduplicate.items[i]));
        kn_buf_text(sql, " IS NOT DISTINCT FROM new.");
        kn_sql_ident(sql, kn_str(f->spec->deduplicate.items[i]));
    }
    if (f->seen.until)
        kn_buf_printf(sql, " AND old.%s > %" PRId64, f->seen.until, e->before);
    kn_buf_char(sql, ')');
}

static bool dedupes_by_time(const KnStreamFlow *f)
{
    for (size_t i = 0; i < f->spec->deduplicate.len; i++)
        if (kn_str_eq_nocase(kn_str(f->spec->deduplicate.items[i]),
                             kn_str(f->spec->watermark->event_time_column)))
            return true;
    return false;
}

void kn_stream_seen_sql(const KnStreamFlow *f, KnBuf *sql)
{
    const KnutWatermark *mark = f->spec->watermark;
    kn_buf_text(sql, "SELECT ");
    if (mark) {
        uint64_t more = dedupes_by_time(f) ? 0 : mark->allowed_lateness_ms;
        kn_buf_text(sql, "coalesce(");
        if (f->spec->window)
            kn_window_last_end_sql(sql, f->spec->window);
        else
            kn_buf_text(sql, "kn_et + 1");
        kn_buf_printf(sql, " + %" PRIu64 ", %" PRId64 ") AS kn_until, ", more, INT64_MAX);
    }
    keys_sql(f, sql);
    kn_buf_printf(sql, " FROM %s", kn_stream_table_name(f, "once"));
}

static KnCode dedupe(const KnStreamEpoch *e, KnErr *err)
{
    const KnStreamFlow *f = e->f;
    KN_BUF_AUTO sql = {.max = 1 << 20};
    KN_BUF_AUTO insert = {.max = 1 << 20};
    unseen_sql(e, &sql);
    KN_TRY(kn_buf_check(&sql, err));
    KN_TRY(kn_stream_create(f, "TEMP TABLE", kn_stream_table_name(f, "once"), sql.data, err));
    kn_buf_printf(&insert, "INSERT INTO %s ", f->seen.table);
    kn_stream_seen_sql(f, &insert);
    KN_TRY(kn_buf_check(&insert, err));
    return kn_session_exec(f->run->session, insert.data, NULL, err);
}

KnCode kn_stream_take(KnStreamEpoch *e, const char *rows, KnErr *err)
{
    const KnStreamFlow *f = e->f;
    const char *from = kn_stream_table_name(f, "rows");
    KN_BUF_AUTO view = {.max = 1 << 20};
    const char *kind = f->source->ops->once ? "TEMP TABLE" : "TEMP VIEW";
    KN_TRY(kn_stream_take_in(f, kind, rows, err));
    KN_TRY(look_at(e, err));
    if (f->spec->deduplicate.len) {
        KN_TRY(dedupe(e, err));
        from = kn_stream_table_name(f, "once");
    }
    kn_stream_view_sql(f, from, e->before, &view);
    KN_TRY(kn_buf_check(&view, err));
    return kn_stream_show(f, view.data, err);
}
