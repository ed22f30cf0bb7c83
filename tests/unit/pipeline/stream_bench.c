/* SPDX-License-Identifier: Apache-2.0 */
/* stream_bench.c - see stream_bench.h. */
#include "unit/pipeline/stream_bench.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static void set_columns(StreamBench *s, const char *columns)
{
    char *save = NULL;
    char *text = kn_arena_strdup(s->b.arena, columns);
    for (char *at = strtok_r(text, ",", &save); at; at = strtok_r(NULL, ",", &save)) {
        at += strspn(at, " ");
        char *space = strchr(at, ' ');
        assert_non_null(space);
        *space = '\0';
        s->columns[s->n_columns] = at;
        s->types[s->n_columns++] = space + 1;
    }
}

StreamBench *stream_new(const char *columns)
{
    StreamBench *s = calloc(1, sizeof(*s));
    assert_non_null(s);
    bench_open(&s->b);
    set_columns(s, columns);
    s->events.max = 1 << 20;
    s->watermark = (KnutWatermark){.event_time_column = "ts", .allowed_lateness_ms = 50};
    s->window = (KnutWindow){.tag = KNUT_WINDOW_TUMBLING, .tumbling = {100}};
    s->dataset = (KnutDataset){.name = "out",
                               .output_type = KNUT_OUTPUT_TABLE,
                               .format = "parquet",
                               .path = stream_out(s)};
    s->flow = (KnutFlow){.name = "f",
                         .target = "out",
                         .query = "SELECT count(*) AS n FROM ev",
                         .kind = {.tag = KNUT_FLOW_STREAMING,
                                  .streaming = {.source = {.tag = KNUT_SOURCE_CDC, .cdc = {"ev"}},
                                                .watermark = &s->watermark,
                                                .window = &s->window}}};
    return s;
}

void stream_free(StreamBench *s)
{
    for (size_t i = 0; i < s->n_batches; i++) {
        kn_vec_foreach (&s->batches[i], batch) {
            kn_batch_unref(*batch);
        }
        kn_vec_done(&s->batches[i]);
    }
    kn_buf_done(&s->events);
    bench_close(&s->b);
    free(s);
}

typedef struct Keep {
    StreamBench *s;
} Keep;

static KnCode keep_batch(void *arg, KnBatch *batch, KnErr *err)
{
    (void)err;
    StreamBench *s = ((Keep *)arg)->s;
    *kn_vec_push(&s->batches[s->n_batches]) = kn_batch_ref(batch);
    return KN_OK;
}

void stream_feed(StreamBench *s, const char *select)
{
    KnErr err = {0};
    assert_true(s->n_batches < MAX_MICRO_BATCHES);
    if (kn_session_visit(s->b.session, select, keep_batch, &(Keep){s}, &err) != KN_OK)
        fail_msg("%s: %s", select, err.msg);
    s->n_shown = ++s->n_batches;
}

void stream_values(StreamBench *s, const char *values)
{
    KN_BUF_AUTO sql = {.max = 1 << 20};
    kn_buf_text(&sql, "SELECT ");
    for (size_t i = 0; i < s->n_columns; i++)
        kn_buf_printf(&sql, "%sCAST(c%zu AS %s) AS %s", i ? ", " : "", i, s->types[i],
                      s->columns[i]);
    kn_buf_printf(&sql, " FROM (VALUES %s) v(", values);
    for (size_t i = 0; i < s->n_columns; i++)
        kn_buf_printf(&sql, "%sc%zu", i ? ", " : "", i);
    kn_buf_char(&sql, ')');
    stream_feed(s, sql.data);
}

static uint64_t count(void *arg, bool *ret_ended)
{
    *ret_ended = true;
    return ((const StreamBench *)arg)->n_shown;
}

static KnCode next(void *arg, uint64_t batch, uint64_t nth, KnBatch **ret, KnErr *err)
{
    (void)err;
    const StreamBench *s = arg;
    bool there = nth < s->batches[batch].len;
    *ret = there ? kn_batch_ref(s->batches[batch].items[nth]) : NULL;
    return KN_OK;
}

static void on_event(void *arg, const KnRunEvent *event)
{
    kn_buf_printf(arg, "%s\n", event->message);
}

KnCode stream_try(StreamBench *s, KnErr *err)
{
    const KnRunStream stream = {.name = "ev",
                                .column_names = s->columns,
                                .column_types = s->types,
                                .n_columns = s->n_columns,
                                .count = count,
                                .next = next,
                                .arg = s};
    const KnutDataset datasets[] = {s->dataset, s->second};
    const KnutFlow flows[] = {s->flow, s->second_flow};
    size_t n = s->second.name ? 2 : 1;
    KnPipeline p = {.name = "p", .datasets = {datasets, n}, .flows = {flows, n}};
    p.inputs = (KnutInputs){&s->table, s->table.name ? 1 : 0};
    KnRunOptions opts = s->opts;
    opts.engine.threads = 1;
    opts.streams = &stream;
    opts.n_streams = 1;
    opts.on_event = on_event;
    opts.event_arg = &s->events;
    kn_buf_reset(&s->events);
    return kn_backend_native.run(&p, &opts, err);
}

void stream_run(StreamBench *s)
{
    KnErr err = {0};
    if (stream_try(s, &err) != KN_OK)
        fail_msg("%s", err.msg);
}

void stream_fails(StreamBench *s, KnCode code, const char *words)
{
    KnErr err = {0};
    assert_int_equal(stream_try(s, &err), code);
    if (!strstr(err.msg, words))
        fail_msg("'%s' is not in: %s", words, err.msg);
}

const char *stream_out(const StreamBench *s)
{
    return bench_path(&s->b, "out");
}

const char *stream_state(const StreamBench *s)
{
    return bench_path(&s->b, ".out.stream/f");
}

const char *stream_rows(StreamBench *s)
{
    if (access(stream_out(s), F_OK) != 0)
        return "";
    return bench_value(
        &s->b,
        "SELECT coalesce(string_agg(t, ';' ORDER BY t), '') FROM (SELECT "
        "replace(trim(CAST(row(*COLUMNS(*)) AS VARCHAR), '()'), ', ', '|') AS t FROM "
        "read_parquet('%s/*.parquet'))",
        stream_out(s));
}

bool stream_told(const StreamBench *s, const char *words)
{
    return s->events.data && strstr(s->events.data, words);
}
