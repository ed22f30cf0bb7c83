/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bind.c - a flow's query over the columns that its source turns out to have, and the tables that
 * remember for it.
 *
 * The plan, which the checkpoint has too, is what decides whether what was kept can be gone on
 * with: the query as it is written, the source, the windows, the mode, and the columns of what is
 * kept. Lateness, triggers and expectations may change from run to run.
 */
#include <string.h>

#include "pipeline/native/stream/stream.h"

const char *kn_stream_table_name(const KnStreamFlow *f, const char *what)
{
    return kn_arena_printf(f->run->arena, "kn_%s_%zu", what, f->at);
}

KnCode kn_stream_create(const KnStreamFlow *f, const char *kind, const char *name,
                        const char *select, KnErr *err)
{
    KN_BUF_AUTO sql = {.max = 256 << 20};
    kn_buf_printf(&sql, "CREATE OR REPLACE %s %s AS %s", kind, name, select);
    KN_TRY(kn_buf_check(&sql, err));
    return kn_session_exec(f->run->session, sql.data, NULL, err);
}

/* A name of several parts lies in a schema, where nothing can hide it. */
static const char *view_kind(const KnStreamFlow *f)
{
    return strchr(f->source->name, '.') ? "VIEW" : "TEMP VIEW";
}

KnCode kn_stream_show(const KnStreamFlow *f, const char *select, KnErr *err)
{
    const char *kind = kn_arena_printf(f->run->arena, "OR REPLACE %s", view_kind(f));
    return kn_native_create(f->run, kind, f->source->name, select, err);
}

KnCode kn_stream_hide(const KnStreamFlow *f, KnErr *err)
{
    KN_BUF_AUTO sql = {.max = 1 << 16};
    kn_buf_text(&sql, "DROP VIEW IF EXISTS ");
    kn_buf_text(&sql, strchr(f->source->name, '.') ? "" : "temp.");
    kn_native_name_sql(&sql, f->source->name);
    return kn_session_exec(f->run->session, sql.data, NULL, err);
}

static KnCode bind_time(KnStreamFlow *f, KnErr *err)
{
    const KnutWatermark *mark = f->spec->watermark;
    if (!mark)
        return KN_OK;
    return kn_time_kind(&f->shape, mark->event_time_column, &f->time, err);
}

static KnCode check_keys(const KnStreamFlow *f, KnErr *err)
{
    const KnutNames *keys = &f->spec->deduplicate;
    for (size_t i = 0; i < keys->len; i++) {
        bool found = false;
        for (size_t j = 0; j < f->shape.len && !found; j++)
            found = kn_str_eq_nocase(kn_str(f->shape.items[j].name), kn_str(keys->items[i]));
        if (!found)
            return kn_err_set(err, KN_E_INVAL, "deduplicate: column %s is not in the stream",
                              keys->items[i]);
    }
    return KN_OK;
}

/* What the mode would get wrong. */
static KnCode check_mode(const KnStreamFlow *f, KnErr *err)
{
    const KnutStreaming *s = f->spec;
    const char *wrong = f->query.wrong;
    if (s->output_mode == KNUT_MODE_APPEND && !s->window && wrong)
        return kn_err_set(err, KN_E_UNSUPPORTED,
                          "its query has %s, and rows that are appended never change again: give "
                          "it a watermark and a window, or output mode update or complete%s",
                          wrong,
                          strcmp(wrong, "DISTINCT") == 0 ? ", or `deduplicate` instead" : "");
    if (s->output_mode == KNUT_MODE_COMPLETE && !s->window && !wrong)
        return kn_err_set(err, KN_E_UNSUPPORTED,
                          "output mode complete is for queries that aggregate: its result would "
                          "be all rows that ever came");
    return KN_OK;
}

static const char *until_of(const KnStreamFlow *f)
{
    const KnutStreaming *s = f->spec;
    bool ends = s->window && s->watermark && s->output_mode != KNUT_MODE_COMPLETE &&
                s->window->tag != KNUT_WINDOW_SESSION;
    return ends ? "kn_we" : NULL;
}

static KnCode shape_of(KnStreamFlow *f, KnBuf *select, KnStreamTable *table, KnErr *err)
{
    KN_TRY(kn_buf_check(select, err));
    return kn_native_describe(f->run, select->data, &table->shape, err);
}

static KnCode restore(KnStreamFlow *f, KnStreamTable *table, KnErr *err)
{
    return f->state ? kn_state_restore(f->state, table, f->mark.value, err)
                    : kn_state_make(f->run, table, err);
}

static KnCode bind_kept(KnStreamFlow *f, KnErr *err)
{
    KN_BUF_AUTO sql = {.max = 16 << 20};
    if (!kn_stream_keeps(f))
        return KN_OK;
    f->kept.name = "kept";
    f->kept.table = kn_stream_table_name(f, "kept");
    f->kept.until = until_of(f);
    kn_stream_delta_sql(f, &sql);
    return shape_of(f, &sql, &f->kept, err);
}

static KnCode bind_seen(KnStreamFlow *f, KnErr *err)
{
    KN_BUF_AUTO sql = {.max = 16 << 20}, rows = {.max = 1 << 20};
    if (!f->spec->deduplicate.len)
        return KN_OK;
    f->seen.name = "seen";
    f->seen.table = kn_stream_table_name(f, "seen");
    f->seen.until = f->spec->watermark ? "kn_until" : NULL;
    kn_buf_printf(&rows, "SELECT * FROM %s", kn_stream_table_name(f, "rows"));
    KN_TRY(kn_stream_create(f, "TEMP VIEW", kn_stream_table_name(f, "once"), rows.data, err));
    kn_stream_seen_sql(f, &sql);
    KN_TRY(shape_of(f, &sql, &f->seen, err));
    return kn_session_exec(
        f->run->session,
        kn_arena_printf(f->run->arena, "DROP VIEW %s", kn_stream_table_name(f, "once")), NULL, err);
}

static void columns_text(const KnStreamTable *table, KnBuf *out)
{
    for (size_t i = 0; i < table->shape.len; i++)
        kn_buf_printf(out, "%s%s %s", i ? ", " : "", table->shape.items[i].name,
                      table->shape.items[i].type);
}

json_t *kn_stream_plan(const KnStreamFlow *f)
{
    static const char *const modes[] = {"append", "update", "complete"};
    KN_BUF_AUTO keys = {.max = 1 << 16}, source = {.max = 1 << 16};
    for (size_t i = 0; i < f->spec->deduplicate.len; i++)
        kn_buf_printf(&keys, "%s%s", i ? ", " : "", f->spec->deduplicate.items[i]);
    kn_buf_printf(&source, "%s %s", f->source->ops->kind, f->source->identity);
    const KnutWatermark *mark = f->spec->watermark;
    return json_pack("{s:s,s:s,s:s,s:s,s:s,s:s}", "source", source.data, "query",
                     f->flow->query ? f->flow->query : "", "window",
                     kn_window_text(f->run->arena, f->spec->window), "event time",
                     mark ? mark->event_time_column : "none", "output mode",
                     modes[f->spec->output_mode], "deduplicate", keys.len ? keys.data : "");
}

static void complete_plan(KnStreamFlow *f)
{
    static const char *const strategies[] = {"row by row", "parts", "rows of groups", "rows"};
    KN_BUF_AUTO kept = {.max = 1 << 20};
    columns_text(&f->kept, &kept);
    (void)json_object_set_new(f->plan, "strategy", json_string(strategies[f->query.strategy]));
    (void)json_object_set_new(f->plan, "kept columns", json_string(kept.len ? kept.data : ""));
}

static KnCode restore_all(KnStreamFlow *f, KnErr *err)
{
    if (f->state)
        KN_TRY(kn_state_check_plan(f->state, f->plan, err));
    if (kn_stream_keeps(f)) {
        KN_TRY(restore(f, &f->kept, err));
        KN_TRY(kn_stream_restored(f, err));
    }
    return f->seen.table ? restore(f, &f->seen, err) : KN_OK;
}

static KnCode read_query(KnStreamFlow *f, const char *rows, KnErr *err)
{
    const char *text = kn_native_query_text(f->run, f->flow);
    KN_TRY(kn_native_describe(f->run, rows, &f->shape, err));
    KN_TRY(bind_time(f, err));
    KN_TRY(check_keys(f, err));
    KN_TRY(kn_stream_show(f, rows, err));
    f->query.windowed = f->spec->window != NULL;
    KN_TRY(kn_stream_query(f->run, text, f->source->name, &f->query, err));
    if (f->spec->window && f->query.strategy == KN_STREAM_ROWWISE)
        f->query.strategy = KN_STREAM_OPAQUE; /* its rows wait for their windows' end */
    return check_mode(f, err);
}

/* The epoch's rows with no row in them, so that the tables' columns can be asked for. */
static KnCode bind_rows(KnStreamFlow *f, const char *rows, KnErr *err)
{
    KN_BUF_AUTO view = {.max = 1 << 20};
    KN_TRY(kn_stream_take_in(f, "TEMP VIEW", rows, err));
    kn_stream_view_sql(f, kn_stream_table_name(f, "rows"), INT64_MIN, &view);
    return kn_stream_show(f, view.data, err);
}

KnCode kn_stream_bind(KnStreamFlow *f, const char *rows, KnErr *err)
{
    KN_TRY(read_query(f, rows, err));
    KN_TRY(bind_rows(f, rows, err));
    KN_TRY(bind_kept(f, err));
    KN_TRY(bind_seen(f, err));
    KN_TRY(kn_session_exec(
        f->run->session,
        kn_arena_printf(f->run->arena, "DROP VIEW %s", kn_stream_table_name(f, "rows")), NULL,
        err));
    complete_plan(f);
    KN_TRY(restore_all(f, err));
    f->bound = true;
    return KN_OK;
}
