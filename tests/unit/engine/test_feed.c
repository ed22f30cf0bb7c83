/* SPDX-License-Identifier: Apache-2.0 */
/* test_feed.c - batches of one engine as a relation of another.
 * labels: threads */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "unit/engine/support.h"

/* A source of batches: a stream, cut into slices of `cut` rows when that is not 0. */
typedef struct Source {
    KnStream *stream;
    size_t cut;
    KnBatch *rest;
    int fail_after; /* batches; -1 = never */
} Source;

static KnCode source_next(void *arg, KnBatch **ret, KnErr *err)
{
    Source *src = arg;
    if (src->fail_after >= 0 && src->fail_after-- == 0)
        return kn_err_set(err, KN_E_CONFLICT, "the source lost a race\nand says so twice");
    if (!src->rest)
        KN_TRY(kn_stream_next(src->stream, &src->rest, err));
    if (!src->rest) {
        *ret = NULL;
        return KN_OK;
    }
    size_t rows = kn_batch_rows(src->rest);
    size_t take = src->cut && src->cut < rows ? src->cut : rows;
    *ret = kn_batch_slice(src->rest, 0, take);
    KnBatch *rest = take < rows ? kn_batch_slice(src->rest, take, rows - take) : NULL;
    kn_batch_unref(src->rest);
    src->rest = rest;
    return KN_OK;
}

/* A second engine that is fed from the bench's. */
typedef struct Target {
    KnEngine *eng;
    KnSession *ses;
} Target;

static Target target_open(Bench *b)
{
    Target t = {0};
    const KnEngineOptions opts = {
        .threads = 2, .memory_limit = (uint64_t)128 << 20, .any_order = true};
    assert_ok(b, kn_engine_open(&opts, &t.eng, &b->err));
    assert_ok(b, kn_session_open(t.eng, &t.ses, &b->err));
    return t;
}

static void target_close(Target *t)
{
    kn_session_close(t->ses);
    kn_engine_close(t->eng);
}

static const char *const names[] = {"id", "txt", "l", "s", "m"};
static const char *const types[] = {"BIGINT", "VARCHAR", "BIGINT[]",
                                    "STRUCT(a BIGINT, b STRUCT(c VARCHAR))",
                                    "MAP(VARCHAR, INTEGER[])"};
enum { N_COLUMNS = 5, N_ROWS = 60000 };

#define ROWS                                                                                       \
    "SELECT i AS id, CASE WHEN i % 3 = 0 THEN NULL ELSE 'text of more than twelve ' || i END AS "  \
    "txt, CASE WHEN i % 5 = 0 THEN NULL ELSE [x + i FOR x IN range(i % 4)] END AS l, "             \
    "CASE WHEN i % 7 = 0 THEN NULL ELSE {'a': i, 'b': {'c': CASE WHEN i % 2 = 0 THEN NULL ELSE "   \
    "'inner text number ' || i END}} END AS s, MAP {'k' || i: [i::INTEGER, NULL]} AS m "           \
    "FROM range(60000) t(i)"

static KnFeed *feed_open(Bench *b, Target *t, Source *src)
{
    const KnFeedOptions opts = {.name = "rows",
                                .column_names = names,
                                .column_types = types,
                                .n_columns = N_COLUMNS,
                                .next = source_next,
                                .arg = src};
    KnFeed *feed = NULL;
    assert_ok(b, kn_feed_open(t->eng, &opts, &feed, &b->err));
    return feed;
}

#define DIGEST "bit_xor(hash(id, txt, l, s, m)) || ' ' || count(*) || ' ' || sum(id)"

static void feed_round_trip(Bench *b, size_t cut)
{
    char want[128];
    (void)snprintf(want, sizeof(want), "%s",
                   bench_text(b, "%s", "SELECT " DIGEST " FROM (" ROWS ")"));
    Target t = target_open(b);
    Source src = {.stream = bench_query(b, "%s", ROWS), .cut = cut, .fail_after = -1};
    KnFeed *feed = feed_open(b, &t, &src);
    int64_t changed = 0;
    assert_ok(b, kn_session_exec(t.ses, "CREATE TABLE t AS SELECT * FROM kn_feed('rows')", &changed,
                                 &b->err));
    kn_feed_close(feed);
    kn_stream_close(src.stream);
    KN_BUF_AUTO got;
    kn_buf_init(&got, 1000);
    assert_ok(b, kn_session_query_text(t.ses, "SELECT " DIGEST " FROM t", &got, &b->err));
    assert_string_equal(got.data, want);
    target_close(&t);
}

static void whole_batches_arrive_unchanged(void **state)
{
    feed_round_trip(*state, 0);
}

static void slices_arrive_unchanged(void **state)
{
    feed_round_trip(*state, 700);
    feed_round_trip(*state, 1);
}

static void rows_outlive_the_batches_and_the_engine_they_came_from(void **state)
{
    Bench *b = *state;
    Target t = target_open(b);
    KnEngine *eng = NULL;
    KnSession *ses = NULL;
    const KnEngineOptions opts = {.threads = 1};
    assert_ok(b, kn_engine_open(&opts, &eng, &b->err));
    assert_ok(b, kn_session_open(eng, &ses, &b->err));
    Source src = {.cut = 300, .fail_after = -1};
    assert_ok(b, kn_session_query(ses, ROWS, &src.stream, &b->err));
    KnFeed *feed = feed_open(b, &t, &src);
    /* The sort holds every row until the source has ended and its engine is gone. */
    KnStream *sorted = NULL;
    assert_ok(b, kn_session_query(t.ses, "SELECT * FROM kn_feed('rows') ORDER BY id DESC", &sorted,
                                  &b->err));
    KN_BATCH_AUTO batch = NULL;
    assert_ok(b, kn_stream_next(sorted, &batch, &b->err));
    kn_stream_close(src.stream);
    kn_session_close(ses);
    kn_engine_close(eng);
    KnVector vec = kn_batch_vector(batch, 0);
    assert_true(kn_vector_int128(&vec, 0) == N_ROWS - 1);
    kn_stream_close(sorted);
    kn_feed_close(feed);
    batch = kn_batch_unref(batch);
    target_close(&t);
}

static void an_error_of_the_source_comes_out_with_its_code(void **state)
{
    Bench *b = *state;
    Target t = target_open(b);
    Source src = {.stream = bench_query(b, "%s", ROWS), .fail_after = 3};
    KnFeed *feed = feed_open(b, &t, &src);
    assert_code(
        b, kn_session_exec(t.ses, "CREATE TABLE t AS SELECT * FROM kn_feed('rows')", NULL, &b->err),
        KN_E_CONFLICT);
    assert_string_equal(b->err.msg, "the source lost a race and says so twice");
    kn_feed_close(feed);
    kn_stream_close(src.stream);
    kn_batch_unref(src.rest);
    target_close(&t);
}

static void a_batch_of_other_types_is_refused(void **state)
{
    Bench *b = *state;
    Target t = target_open(b);
    Source src = {.stream = bench_query(b, "SELECT i, i, [i], {'a': i, 'b': {'c': 'x'}}, "
                                           "MAP {'k': [1]} FROM range(10) t(i)"),
                  .fail_after = -1};
    KnFeed *feed = feed_open(b, &t, &src);
    assert_code(b, kn_session_exec(t.ses, "SELECT * FROM kn_feed('rows')", NULL, &b->err),
                KN_E_INVAL);
    assert_non_null(strstr(b->err.msg, "column txt is BIGINT"));
    kn_feed_close(feed);
    kn_stream_close(src.stream);
    target_close(&t);
}

static void names_are_unique_while_open_and_gone_afterwards(void **state)
{
    Bench *b = *state;
    Target t = target_open(b);
    Source src = {.stream = bench_query(b, "%s", ROWS), .fail_after = -1};
    KnFeed *feed = feed_open(b, &t, &src);
    KnFeed *second = NULL;
    KnFeedOptions opts = {.name = "rows",
                          .column_names = names,
                          .column_types = types,
                          .n_columns = N_COLUMNS,
                          .next = source_next,
                          .arg = &src};
    assert_code(b, kn_feed_open(t.eng, &opts, &second, &b->err), KN_E_EXISTS);
    assert_null(kn_feed_close(feed));
    assert_true(kn_session_exec(t.ses, "SELECT * FROM kn_feed('rows')", NULL, &b->err) != KN_OK);
    assert_non_null(strstr(b->err.msg, "rows"));
    static const char *const bad[] = {"BIGINT", "NO_SUCH_TYPE", "INT", "INT", "INT"};
    opts.column_types = bad;
    assert_code(b, kn_feed_open(t.eng, &opts, &second, &b->err), KN_E_INVAL);
    assert_null(second);
    assert_null(kn_feed_close(NULL));
    kn_stream_close(src.stream);
    target_close(&t);
}

static void projections_and_filters_over_a_feed_are_right(void **state)
{
    Bench *b = *state;
    Target t = target_open(b);
    Source src = {.stream = bench_query(b, "%s", ROWS), .cut = 900, .fail_after = -1};
    KnFeed *feed = feed_open(b, &t, &src);
    int64_t sum = 0;
    assert_ok(b, kn_session_query_i64(
                     t.ses, "SELECT sum(s.a)::BIGINT FROM kn_feed('rows') WHERE id % 10 = 1", &sum,
                     &b->err));
    int64_t want = 0;
    for (int64_t i = 1; i < N_ROWS; i += 10)
        want += i % 7 ? i : 0;
    assert_int_equal(sum, want);
    kn_feed_close(feed);
    kn_stream_close(src.stream);
    target_close(&t);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, bench_setup, bench_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(whole_batches_arrive_unchanged),
        CASE(slices_arrive_unchanged),
        CASE(rows_outlive_the_batches_and_the_engine_they_came_from),
        CASE(an_error_of_the_source_comes_out_with_its_code),
        CASE(a_batch_of_other_types_is_refused),
        CASE(names_are_unique_while_open_and_gone_afterwards),
        CASE(projections_and_filters_over_a_feed_are_right),
    };
    return cmocka_run_group_tests_name("engine.feed", tests, NULL, NULL);
}
