/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_native_stream_random.c - a stream gives what a batch gives over the rows that were not late.
 *
 * Random rows, orders, lateness, windows, queries and cuts into runs; runs fail at random points
 * and are run again. What is late is found by a simulation that knows nothing of the engine: it has
 * each row's windows, and of sessions all rows so far. KNUT_TEST_SEED repeats a run,
 * KNUT_TEST_STEPS says how many there are.
 */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/fault.h"
#include "unit/pipeline/stream_bench.h"

enum { N_BATCHES = 7, MAX_ROWS = 12, MAX_ALL = N_BATCHES * MAX_ROWS };

typedef struct Row {
    int64_t ts, id, v;
    bool null;
} Row;

typedef struct Model {
    uint64_t random;
    Row rows[N_BATCHES][MAX_ROWS];
    size_t n_rows[N_BATCHES];
    int64_t lateness, size, slide; /* slide 0 = tumbling; size 0 = session of gap slide */
    size_t query;
    Row kept[MAX_ALL]; /* not late; of windows: in order of coming */
    int64_t from[MAX_ALL * 4], to[MAX_ALL * 4];
    size_t of[MAX_ALL * 4], n_kept, n_pairs;
    int64_t late;
} Model;

/* What the flow asks, and what a batch asks of acc (ws, we, ts, id, v). */
static const struct {
    const char *stream, *batch;
    bool grouped;
} queries[] = {
    {"SELECT id, count(*) AS n, CAST(sum(v) AS BIGINT) AS s, avg(v) AS a, min(v) FILTER (WHERE v > "
     "4) AS m "
     "FROM ev WHERE v <> 3 GROUP BY id HAVING count(*) < 9",
     "SELECT ws, we, id, count(*) AS n, CAST(sum(v) AS BIGINT) AS s, avg(v) AS a, min(v) FILTER "
     "(WHERE v > "
     "4) AS m FROM acc WHERE v <> 3 GROUP BY ws, we, id HAVING count(*) < 9",
     true},
    {"SELECT id, count(DISTINCT v) AS n, median(v) AS m FROM ev GROUP BY 1",
     "SELECT ws, we, id, count(DISTINCT v) AS n, median(v) AS m FROM acc GROUP BY ws, we, id",
     true},
    {"SELECT count(*) AS n FROM (SELECT v FROM ev WHERE v > 0)",
     "SELECT ws, we, count(*) FILTER (WHERE v > 0) AS n FROM acc GROUP BY ws, we", false},
};

static uint64_t draw(Model *m, uint64_t below)
{
    m->random = m->random * 6364136223846793005U + 1442695040888963407U;
    return (m->random >> 33) % below;
}

static void make(Model *m)
{
    static const int64_t sizes[] = {100, 70, 0}, slides[] = {0, 30, 40};
    size_t kind = draw(m, 3);
    m->size = sizes[kind];
    m->slide = slides[kind];
    m->lateness = (int64_t)draw(m, 4) * 30;
    m->query = draw(m, 3);
    for (size_t b = 0; b < N_BATCHES; b++) {
        m->n_rows[b] = b + 1 == N_BATCHES ? 1 : draw(m, MAX_ROWS);
        for (size_t i = 0; i < m->n_rows[b]; i++) {
            Row *row = &m->rows[b][i];
            *row = (Row){.ts = (int64_t)b * 60 - 150 + (int64_t)draw(m, 200),
                         .id = (int64_t)draw(m, 3),
                         .v = (int64_t)draw(m, 9),
                         .null = draw(m, 20) == 0};
        }
    }
    m->rows[N_BATCHES - 1][0] = (Row){.ts = 1000000, .id = 9, .v = 9};
}

static int64_t floor_to(int64_t ts, int64_t step)
{
    return ts - ((ts % step) + step) % step;
}

/* Windows of a row that are open at the watermark; false = none: it is late. */
static bool add_windows(Model *m, const Row *row, int64_t watermark)
{
    bool any = false;
    int64_t slide = m->slide ? m->slide : m->size;
    for (int64_t start = floor_to(row->ts, slide); start + m->size > row->ts; start -= slide) {
        if (start + m->size <= watermark)
            continue;
        any = true;
        m->from[m->n_pairs] = start;
        m->to[m->n_pairs] = start + m->size;
        m->of[m->n_pairs++] = m->n_kept;
    }
    return any;
}

/* The session of kept row at, by joining rows until no more join. */
static void session_of(const Model *m, size_t n, size_t at, int64_t *ret_from, int64_t *ret_to)
{
    int64_t from = m->kept[at].ts, to = from + m->slide;
    for (bool grown = true; grown;) {
        grown = false;
        for (size_t i = 0; i < n; i++) {
            int64_t ts = m->kept[i].ts;
            bool same = !queries[m->query].grouped || m->kept[i].id == m->kept[at].id;
            if (!same || ts > to || ts + m->slide < from || (ts >= from && ts + m->slide <= to))
                continue;
            from = ts < from ? ts : from;
            to = ts + m->slide > to ? ts + m->slide : to;
            grown = true;
        }
    }
    *ret_from = from;
    *ret_to = to;
}

/* n: the rows that were kept before this batch. */
static bool joins_late(const Model *m, const Row *row, size_t n, int64_t watermark)
{
    if (row->ts + m->slide <= watermark)
        return true;
    for (size_t i = 0; i < n; i++) {
        int64_t from = 0, to = 0;
        if (queries[m->query].grouped && m->kept[i].id != row->id)
            continue;
        session_of(m, n, i, &from, &to);
        if (to <= watermark && row->ts <= to && row->ts + m->slide >= from)
            return true;
    }
    return false;
}

static void simulate(Model *m)
{
    int64_t watermark = INT64_MIN, max = INT64_MIN;
    for (size_t b = 0; b < N_BATCHES; b++) {
        size_t before = m->n_kept;
        for (size_t i = 0; i < m->n_rows[b]; i++) {
            const Row *row = &m->rows[b][i];
            if (row->null)
                continue;
            /* What WHERE leaves out is in no session. */
            bool counts = m->query != 0 || row->v != 3;
            max = row->ts > max ? row->ts : max;
            bool late = m->size ? !add_windows(m, row, watermark)
                                : (row->ts + m->slide <= watermark ||
                                   (counts && joins_late(m, row, before, watermark)));
            if (late)
                m->late++;
            else if (m->size || counts)
                m->kept[m->n_kept++] = *row;
        }
        watermark = max == INT64_MIN ? watermark : max - m->lateness;
    }
    for (size_t i = 0; !m->size && i < m->n_kept; i++) {
        session_of(m, m->n_kept, i, &m->from[i], &m->to[i]);
        m->of[i] = i;
        m->n_pairs = m->n_kept;
    }
}

static void feed_all(StreamBench *s, const Model *m)
{
    for (size_t b = 0; b < N_BATCHES; b++) {
        KN_BUF_AUTO text = {.max = 1 << 20};
        for (size_t i = 0; i < m->n_rows[b]; i++) {
            const Row *row = &m->rows[b][i];
            kn_buf_text(&text, i ? ", (" : "(");
            if (row->null)
                kn_buf_text(&text, "NULL");
            else
                kn_buf_printf(&text, "%" PRId64, row->ts);
            kn_buf_printf(&text, ", %" PRId64 ", %" PRId64 ")", row->id, row->v);
        }
        if (text.len)
            stream_values(s, text.data);
        else
            stream_feed(s, "SELECT 1::BIGINT AS ts, 1::BIGINT AS id, 1::BIGINT AS v WHERE false");
    }
}

static const char *batch_answer(StreamBench *s, const Model *m)
{
    KN_BUF_AUTO sql = {.max = 1 << 20};
    bench_exec(
        &s->b,
        "CREATE OR REPLACE TABLE acc (ws BIGINT, we BIGINT, ts BIGINT, id BIGINT, v BIGINT)");
    kn_buf_text(&sql, "INSERT INTO acc VALUES ");
    for (size_t i = 0; i < m->n_pairs; i++) {
        const Row *row = &m->kept[m->of[i]];
        kn_buf_printf(&sql, "%s(%" PRId64 ", %" PRId64 ", %" PRId64 ", %" PRId64 ", %" PRId64 ")",
                      i ? ", " : "", m->from[i], m->to[i], row->ts, row->id, row->v);
    }
    bench_exec(&s->b, sql.data);
    return bench_value(
        &s->b,
        "SELECT coalesce(string_agg(t, ';' ORDER BY t), '') FROM (SELECT "
        "replace(trim(CAST(row(*COLUMNS(*)) AS VARCHAR), '()'), ', ', '|') AS t FROM "
        "(%s) WHERE we < 900000)",
        queries[m->query].batch);
}

/* A run that fails at a point, and so leaves what a killed one leaves, or one that does not. */
static void run_somehow(StreamBench *s, Model *m)
{
    static const char *const points[] = {
        "stream-part",     "stream-parts",     "stream-saved",
        "stream-computed", "stream-committed", "pipeline-computed",
        "pipeline-staged", "pipeline-publish", "pipeline-published"};
    for (size_t tries = draw(m, 3); tries > 0; tries--) {
        char fault[64];
        KnErr err = {0};
        (void)snprintf(fault, sizeof(fault), "%s:%d:fail", points[draw(m, 9)], (int)draw(m, 3) + 1);
        assert_int_equal(kn_fault_set(fault, NULL, NULL), KN_OK);
        KnCode rc = stream_try(s, &err);
        assert_int_equal(kn_fault_set(NULL, NULL, NULL), KN_OK);
        if (rc != KN_OK && rc != KN_E_IO)
            fail_msg("%s: %s", fault, err.msg);
    }
    stream_run(s);
}

static void one(uint64_t seed)
{
    Model *m = calloc(1, sizeof(*m));
    StreamBench *s = stream_new("ts BIGINT, id BIGINT, v BIGINT");
    assert_non_null(m);
    m->random = seed;
    make(m);
    simulate(m);
    feed_all(s, m);
    s->flow.query = queries[m->query].stream;
    s->watermark.allowed_lateness_ms = (uint64_t)m->lateness;
    if (!m->size)
        s->window = (KnutWindow){.tag = KNUT_WINDOW_SESSION, .session = {(uint64_t)m->slide}};
    else if (m->slide)
        s->window = (KnutWindow){.tag = KNUT_WINDOW_HOPPING,
                                 .hopping = {(uint64_t)m->size, (uint64_t)m->slide}};
    for (s->n_shown = 0; s->n_shown < N_BATCHES;) {
        size_t more = 1 + draw(m, 4);
        s->n_shown = s->n_shown + more > N_BATCHES ? N_BATCHES : s->n_shown + more;
        run_somehow(s, m);
    }
    const char *want = batch_answer(s, m), *got = stream_rows(s);
    if (strcmp(want, got) != 0)
        fail_msg("seed %" PRIu64 ": window %" PRId64 "/%" PRId64 ", lateness %" PRId64
                 ", query %zu: %s where a batch has %s",
                 seed, m->size, m->slide, m->lateness, m->query, got, want);
    stream_free(s);
    free(m);
}

static void a_stream_gives_what_a_batch_gives(void **state)
{
    (void)state;
    const char *text = getenv("KNUT_TEST_SEED"), *steps = getenv("KNUT_TEST_STEPS");
    uint64_t seed = text ? strtoull(text, NULL, 10) : 20261130;
    uint64_t n = text ? 1 : steps ? strtoull(steps, NULL, 10) : 2;
    for (uint64_t i = 0; i < n; i++) {
        print_message("seed %" PRIu64 "\n", seed + i);
        one(seed + i);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_stream_gives_what_a_batch_gives)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
