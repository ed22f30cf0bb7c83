/* SPDX-License-Identifier: Apache-2.0 */
/* time.c - see time.h. */
#include "pipeline/native/stream/time.h"

#include <inttypes.h>
#include <string.h>

KnCode kn_time_kind(const KnNativeShape *shape, const char *column, KnTimeKind *ret, KnErr *err)
{
    static const struct {
        const char *type;
        KnTimeKind kind;
    } kinds[] = {{"BIGINT", KN_TIME_INTEGER},     {"INTEGER", KN_TIME_INTEGER},
                 {"UINTEGER", KN_TIME_INTEGER},   {"SMALLINT", KN_TIME_INTEGER},
                 {"DATE", KN_TIME_STAMP},         {"TIMESTAMP", KN_TIME_STAMP},
                 {"TIMESTAMP_S", KN_TIME_STAMP},  {"TIMESTAMP_MS", KN_TIME_STAMP},
                 {"TIMESTAMP_NS", KN_TIME_STAMP}, {"TIMESTAMP WITH TIME ZONE", KN_TIME_STAMP_TZ}};
    for (size_t i = 0; i < shape->len; i++) {
        if (!kn_str_eq_nocase(kn_str(shape->items[i].name), kn_str(column)))
            continue;
        for (size_t j = 0; j < sizeof(kinds) / sizeof(kinds[0]); j++)
            if (!strcmp(shape->items[i].type, kinds[j].type)) {
                *ret = kinds[j].kind;
                return KN_OK;
            }
        return kn_err_set(err, KN_E_INVAL,
                          "event time column %s is %s: it is an integer (milliseconds), a date or "
                          "a timestamp",
                          column, shape->items[i].type);
    }
    return kn_err_set(err, KN_E_INVAL, "event time column %s is not in the stream", column);
}

void kn_time_sql(KnBuf *sql, KnTimeKind kind, const char *column)
{
    KN_BUF_AUTO name = {.max = 1 << 16};
    kn_sql_ident(&name, kn_str(column));
    if (kind == KN_TIME_INTEGER)
        kn_buf_printf(sql, "CAST(%s AS BIGINT)", name.data);
    else
        kn_buf_printf(sql,
                      "CASE WHEN isfinite(%s) THEN (epoch_us(CAST(%s AS TIMESTAMP)) - "
                      "((epoch_us(CAST(%s AS TIMESTAMP)) %% 1000) + 1000) %% 1000) // 1000 END",
                      name.data, name.data, name.data);
}

void kn_time_bound_sql(KnBuf *sql, KnTimeKind kind, const char *ms)
{
    static const char *const forms[] = {"%s", "make_timestamp_ms(%s)",
                                        "CAST(make_timestamp_ms(%s) AS TIMESTAMPTZ)"};
    const char *form = forms[kind], *at = strstr(form, "%s");
    kn_buf_append(sql, form, (size_t)(at - form));
    kn_buf_text(sql, ms);
    kn_buf_text(sql, at + 2);
}

const char *kn_window_text(KnArena *arena, const KnutWindow *window)
{
    if (!window)
        return "none";
    switch (window->tag) {
    case KNUT_WINDOW_TUMBLING:
        return kn_arena_printf(arena, "tumbling(%" PRIu64 ")", window->tumbling.size_ms);
    case KNUT_WINDOW_HOPPING:
        return kn_arena_printf(arena, "hopping(%" PRIu64 ", %" PRIu64 ")", window->hopping.size_ms,
                               window->hopping.slide_ms);
    case KNUT_WINDOW_SESSION:
        return kn_arena_printf(arena, "session(%" PRIu64 ")", window->session.gap_ms);
    }
    return "none";
}

/* The greatest multiple of step that is not above kn_et. */
static void floor_sql(KnBuf *sql, uint64_t step)
{
    kn_buf_printf(sql, "(kn_et - ((kn_et %% %" PRIu64 ") + %" PRIu64 ") %% %" PRIu64 ")", step,
                  step, step);
}

void kn_window_last_end_sql(KnBuf *sql, const KnutWindow *window)
{
    switch (window->tag) {
    case KNUT_WINDOW_TUMBLING:
        floor_sql(sql, window->tumbling.size_ms);
        kn_buf_printf(sql, " + %" PRIu64, window->tumbling.size_ms);
        return;
    case KNUT_WINDOW_HOPPING:
        floor_sql(sql, window->hopping.slide_ms);
        kn_buf_printf(sql, " + %" PRIu64, window->hopping.size_ms);
        return;
    case KNUT_WINDOW_SESSION:
        kn_buf_printf(sql, "kn_et + %" PRIu64, window->session.gap_ms);
        return;
    }
}

/* Each multiple of slide from which a window reaches over kn_et. */
static void hopping_sql(KnBuf *sql, const KnutWindow *window, const char *from)
{
    uint64_t size = window->hopping.size_ms, slide = window->hopping.slide_ms;
    kn_buf_text(sql, "SELECT * EXCLUDE (kn_et, kn_hop), ");
    floor_sql(sql, slide);
    kn_buf_printf(sql, " - kn_hop * %" PRIu64 " AS kn_ws, ", slide);
    floor_sql(sql, slide);
    kn_buf_printf(sql,
                  " - kn_hop * %" PRIu64 " + %" PRIu64 " AS kn_we FROM %s, range(%" PRIu64
                  ") hops(kn_hop) WHERE kn_et IS NOT NULL AND ",
                  slide, size, from, (size + slide - 1) / slide);
    floor_sql(sql, slide);
    kn_buf_printf(sql, " - kn_hop * %" PRIu64 " + %" PRIu64 " > kn_et", slide, size);
}

void kn_window_rows_sql(KnBuf *sql, const KnutWindow *window, const char *from, int64_t watermark)
{
    bool bounded = watermark > INT64_MIN;
    kn_buf_text(sql, bounded ? "SELECT * FROM (" : "");
    if (window->tag == KNUT_WINDOW_HOPPING) {
        hopping_sql(sql, window, from);
    } else {
        kn_buf_text(sql, "SELECT * EXCLUDE (kn_et), ");
        if (window->tag == KNUT_WINDOW_TUMBLING)
            floor_sql(sql, window->tumbling.size_ms);
        else
            kn_buf_text(sql, "kn_et");
        kn_buf_text(sql, " AS kn_ws, ");
        kn_window_last_end_sql(sql, window);
        kn_buf_printf(sql, " AS kn_we FROM %s WHERE kn_et IS NOT NULL", from);
    }
    if (bounded)
        kn_buf_printf(sql, ") WHERE kn_we > %" PRId64, watermark);
}

const char *kn_window_end(KnArena *arena, const KnutWindow *window)
{
    uint64_t size =
        window->tag == KNUT_WINDOW_TUMBLING ? window->tumbling.size_ms : window->hopping.size_ms;
    return window->tag == KNUT_WINDOW_SESSION ? "kn_we"
                                              : kn_arena_printf(arena, "kn_ws + %" PRIu64, size);
}

int64_t kn_window_memory(const KnutWindow *window)
{
    return window && window->tag == KNUT_WINDOW_SESSION ? (int64_t)window->session.gap_ms : 0;
}

static void partition(KnBuf *sql, size_t n_groups, const char *last)
{
    for (size_t i = 0; i < n_groups; i++)
        kn_buf_printf(sql, "%skn_g%zu", i ? ", " : "PARTITION BY ", i);
    if (last)
        kn_buf_printf(sql, "%s%s", n_groups ? ", " : "PARTITION BY ", last);
}

void kn_session_sql(KnBuf *sql, const char *from, size_t n_groups)
{
    kn_buf_text(sql, "SELECT * EXCLUDE (kn_new, kn_island) REPLACE (min(kn_ws) OVER island AS "
                     "kn_ws, max(kn_we) OVER island AS kn_we) FROM (SELECT *, sum(kn_new) OVER (");
    partition(sql, n_groups, NULL);
    kn_buf_text(sql, " ORDER BY kn_ws, kn_we ROWS UNBOUNDED PRECEDING) AS kn_island FROM (SELECT "
                     "*, CASE WHEN kn_ws <= max(kn_we) OVER (");
    partition(sql, n_groups, NULL);
    kn_buf_printf(sql,
                  " ORDER BY kn_ws, kn_we ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) THEN "
                  "0 ELSE 1 END AS kn_new FROM %s)) WINDOW island AS (",
                  from);
    partition(sql, n_groups, "kn_island");
    kn_buf_char(sql, ')');
}

/* ---- watermark ---- */

void kn_watermark_see(KnWatermarkInput *input, int64_t max_time, int64_t now_ms)
{
    if (max_time > input->max_time)
        input->max_time = max_time;
    input->seen_ms = now_ms;
}

static bool is_idle(const KnWatermarkInput *input, int64_t now_ms)
{
    return input->idle_ms > 0 && now_ms - input->seen_ms >= input->idle_ms;
}

void kn_watermark_advance(KnStreamWatermark *mark, int64_t now_ms)
{
    int64_t least = INT64_MAX;
    bool any = false;
    for (size_t i = 0; i < mark->n; i++) {
        const KnWatermarkInput *input = &mark->inputs[i];
        if (is_idle(input, now_ms))
            continue;
        if (input->max_time == INT64_MIN)
            return; /* it may be as late as it likes */
        int64_t come = 0;
        if (__builtin_sub_overflow(input->max_time, input->lateness_ms, &come))
            return;
        least = come < least ? come : least;
        any = true;
    }
    if (any && least > mark->value)
        mark->value = least;
}

json_t *kn_watermark_json(const KnStreamWatermark *mark)
{
    json_t *out = json_object();
    for (size_t i = 0; i < mark->n; i++)
        (void)json_object_set_new(out, mark->inputs[i].name,
                                  json_integer((json_int_t)mark->inputs[i].max_time));
    return out;
}

void kn_watermark_load(KnStreamWatermark *mark, const json_t *inputs, int64_t now_ms)
{
    for (size_t i = 0; i < mark->n; i++) {
        const json_t *max = json_object_get(inputs, mark->inputs[i].name);
        if (json_is_integer(max))
            mark->inputs[i].max_time = json_integer_value(max);
        mark->inputs[i].seen_ms = now_ms;
    }
}
