/* SPDX-License-Identifier: Apache-2.0 */
/* test_native_stream.c - streams from memory into a folder: windows, lateness, modes, state. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fault.h"
#include "pipeline/native/stream/query.h"
#include "unit/pipeline/stream_bench.h"

static int set_up(void **state)
{
    *state = stream_new("ts BIGINT, id BIGINT");
    return 0;
}

static int tear_down(void **state)
{
    stream_free(*state);
    return 0;
}

static void is(StreamBench *s, const char *want)
{
    assert_string_equal(stream_rows(s), want);
}

/* ---- windows ---- */

static void a_tumbling_window_closes_when_the_watermark_reaches_its_end(void **state)
{
    StreamBench *s = *state;
    stream_values(s, "(10, 1), (20, 2)");
    stream_values(s, "(149, 3), (110, 4)"); /* W = 99 */
    stream_run(s);
    is(s, "");
    stream_values(s, "(150, 5)"); /* W = 100: not 2 x lateness */
    stream_run(s);
    is(s, "0|100|2");
    stream_values(s, "(500, 6)");
    stream_run(s);
    is(s, "0|100|2;100|200|3");
    stream_run(s);
    is(s, "0|100|2;100|200|3"); /* the open window stays in the state */
}

static void a_row_is_late_by_its_window_and_counted(void **state)
{
    StreamBench *s = *state;
    stream_values(s, "(10, 1), (260, 2)"); /* W = 210: closes [0, 100) */
    stream_values(s, "(20, 3), (205, 4), (NULL, 5)");
    stream_values(s, "(1000, 6)");
    stream_run(s);
    assert_true(stream_told(s, "1 late row(s) dropped, 1 without event time"));
    is(s, "0|100|1;200|300|2"); /* 205 is below W, but its window is open */
}

static void the_watermark_of_before_the_epoch_decides(void **state)
{
    StreamBench *s = *state;
    stream_values(s, "(1000, 1), (10, 2)");
    stream_run(s);
    is(s, "0|100|1");
    assert_true(stream_told(s, " 0 late row(s)"));
}

static void windows_before_1970_are_where_they_belong(void **state)
{
    StreamBench *s = *state;
    stream_values(s, "(-1, 1), (-100, 2), (-101, 3), (0, 4), (1000, 5)");
    stream_run(s);
    is(s, "-100|0|2;-200|-100|1;0|100|1");
}

static void each_window_that_hops_over_a_row_has_it(void **state)
{
    StreamBench *s = *state;
    s->window = (KnutWindow){.tag = KNUT_WINDOW_HOPPING, .hopping = {200, 100}};
    stream_values(s, "(10, 1), (110, 2), (210, 3), (220, 4), (310, 5)");
    stream_values(s, "(1000, 6)");
    stream_run(s);
    is(s, "-100|100|1;0|200|2;100|300|3;200|400|3;300|500|1");
}

static void a_session_ends_after_a_gap(void **state)
{
    StreamBench *s = *state;
    s->window = (KnutWindow){.tag = KNUT_WINDOW_SESSION, .session = {50}};
    stream_values(s, "(10, 1), (100, 2)");
    stream_values(s, "(40, 1), (130, 2)");
    stream_values(s, "(1000, 3)");
    stream_run(s);
    is(s, "100|180|2;10|90|2");
}

static void sessions_are_of_the_groups_of_the_query(void **state)
{
    StreamBench *s = *state;
    s->flow.query = "SELECT id, count(*) AS n, max(ts) AS last FROM ev GROUP BY id";
    s->window = (KnutWindow){.tag = KNUT_WINDOW_SESSION, .session = {50}};
    stream_values(s, "(10, 1), (30, 2)");
    stream_values(s, "(60, 1), (200, 2), (110, 1)"); /* gap 50: the bound joins */
    stream_values(s, "(1000, 3)");
    stream_run(s);
    is(s, "10|160|1|3|110;200|250|2|1|200;30|80|2|1|30");
}

static void a_row_of_a_session_that_was_given_is_late(void **state)
{
    StreamBench *s = *state;
    s->window = (KnutWindow){.tag = KNUT_WINDOW_SESSION, .session = {50}};
    stream_values(s, "(10, 1), (40, 1), (145, 2)"); /* W = 95: (10, 90) is given */
    stream_values(s, "(80, 1)");                    /* (80, 130) is open, but touches it */
    stream_values(s, "(1000, 3)");
    stream_run(s);
    assert_true(stream_told(s, "1 late row(s) dropped"));
    is(s, "10|90|2;145|195|1");
}

static void timestamps_are_event_times(void **state)
{
    (void)state;
    static const char *const types[] = {"ts TIMESTAMP, id BIGINT",
                                        "ts TIMESTAMP WITH TIME ZONE, id BIGINT"};
    static const char *const want[] = {
        "'1969-12-31 23:59:59.9'|'1970-01-01 00:00:00'|1;'1970-01-01 00:00:00'|'1970-01-01 "
        "00:00:00.1'|2",
        "'1969-12-31 23:59:59.9+00'|'1970-01-01 00:00:00+00'|1;'1970-01-01 "
        "00:00:00+00'|'1970-01-01 00:00:00.1+00'|2"};
    for (size_t i = 0; i < 2; i++) {
        StreamBench *s = stream_new(types[i]);
        stream_values(s, "('1969-12-31 23:59:59.999999', 1), ('1970-01-01 00:00:00', 2), "
                         "('1970-01-01 00:00:00.099999', 3), ('infinity', 4)");
        stream_values(s, "('1970-01-01 00:00:01', 5)");
        stream_run(s);
        assert_true(stream_told(s, "1 without event time"));
        is(s, want[i]);
        stream_free(s);
    }
}

/* ---- queries ---- */

static void aggregates_are_put_together_from_parts(void **state)
{
    StreamBench *s = *state;
    s->flow.query =
        "SELECT e.id % 2 AS odd, count(*) AS n, CAST(sum(id) + 1 AS BIGINT) AS s, min(id) lo, "
        "max(e.id) hi, "
        "avg(id) "
        "AS mean, count(*) FILTER (WHERE id > 2) AS big FROM ev AS e WHERE id < 100 GROUP BY odd "
        "HAVING count(*) > 1;";
    stream_values(s, "(1, 1), (2, 2), (3, 100)");
    stream_values(s, "(4, 3), (5, 4), (6, 5), (101, 6)");
    stream_values(s, "(1000, 8)");
    stream_run(s);
    is(s, "0|100|0|2|7|2|4|3.0|1;0|100|1|3|10|1|5|3.0|2");
}

static void the_list_of_aggregates_is_the_engines(void **state)
{
    const StreamBench *s = *state;
    KN_BUF_AUTO ours = {.max = 1 << 16};
    for (size_t i = 0; i < kn_stream_n_aggregates; i++)
        kn_buf_printf(&ours, "%s%s", i ? " " : "", kn_stream_aggregates[i]);
    assert_string_equal(ours.data,
                        bench_value(&s->b,
                                    "SELECT string_agg(DISTINCT lower(function_name), ' ' ORDER BY "
                                    "lower(function_name)) FROM duckdb_functions() WHERE "
                                    "function_type = 'aggregate'"));
}

static void other_aggregates_keep_the_rows_of_open_windows(void **state)
{
    StreamBench *s = *state;
    s->flow.query = "SELECT id % 2, median(id) AS m, count(DISTINCT id) AS d FROM ev WHERE id < 9 "
                    "GROUP BY 1 HAVING count(*) > 0";
    stream_values(s, "(1, 1), (2, 3)");
    stream_values(s, "(3, 5), (4, 2), (5, 5), (6, 9)");
    stream_values(s, "(1000, 8)");
    stream_run(s);
    is(s, "0|100|0|2.0|1;0|100|1|4.0|3");
}

static void any_query_sees_one_window_at_a_time(void **state)
{
    StreamBench *s = *state;
    s->flow.query = "WITH e AS (SELECT id FROM ev) SELECT id, row_number() OVER (ORDER BY id) AS r "
                    "FROM e ORDER BY id LIMIT 2";
    stream_values(s, "(1, 7), (2, 3)");
    stream_values(s, "(3, 5), (110, 9)");
    stream_values(s, "(1000, 8)");
    stream_run(s);
    is(s, "0|100|3|1;0|100|5|2;100|200|9|1");
}

static void a_table_stands_beside_the_stream(void **state)
{
    StreamBench *s = *state;
    bench_exec(&s->b, kn_arena_printf(s->b.arena,
                                      "COPY (SELECT * FROM (VALUES (1, 'one'), (2, 'two')) t(id, "
                                      "name)) TO '%s'",
                                      bench_path(&s->b, "names.parquet")));
    s->table = (KnutInput){.name = "names", .path = bench_path(&s->b, "names.parquet")};
    s->flow.reads = KNUT_NAMES("names");
    s->flow.query = "SELECT name, count(*) AS n FROM ev JOIN names USING (id) GROUP BY name";
    stream_values(s, "(1, 1), (2, 2), (3, 3)");
    stream_values(s, "(4, 1), (1000, 2)");
    stream_run(s);
    is(s, "0|100|one|2;0|100|two|1");
}

/* ---- modes ---- */

static void without_windows(StreamBench *s, KnutOutputMode mode)
{
    s->flow.kind.streaming.window = NULL;
    s->flow.kind.streaming.watermark = NULL;
    s->flow.kind.streaming.output_mode = mode;
}

static void append_gives_each_row_once(void **state)
{
    StreamBench *s = *state;
    without_windows(s, KNUT_MODE_APPEND);
    s->flow.query = "SELECT id + 1 AS i FROM ev WHERE ts > 0";
    stream_values(s, "(1, 1), (0, 9)");
    stream_values(s, "(1, 2)");
    stream_run(s);
    stream_values(s, "(1, 3)");
    stream_run(s);
    stream_run(s);
    is(s, "2;3;4");
}

static void append_refuses_what_would_be_wrong(void **state)
{
    StreamBench *s = *state;
    static const char *const queries[] = {"SELECT count(*) FROM ev",
                                          "SELECT DISTINCT id FROM ev",
                                          "SELECT id FROM ev LIMIT 1",
                                          "WITH e AS (SELECT * FROM ev) SELECT max(id) FROM e",
                                          "SELECT row_number() OVER () FROM ev",
                                          "SELECT id FROM ev UNION SELECT id FROM ev"};
    without_windows(s, KNUT_MODE_APPEND);
    stream_values(s, "(1, 1)");
    for (size_t i = 0; i < sizeof(queries) / sizeof(queries[0]); i++) {
        s->flow.query = queries[i];
        stream_fails(s, KN_E_UNSUPPORTED, "rows that are appended never change again");
        assert_int_not_equal(access(stream_out(s), F_OK), 0);
    }
}

static void rows_below_the_watermark_are_late_without_windows_too(void **state)
{
    StreamBench *s = *state;
    s->flow.kind.streaming.window = NULL;
    s->flow.query = "SELECT id FROM ev";
    stream_values(s, "(100, 1), (110, 2)");
    stream_values(s, "(200, 3), (210, 4)");
    stream_values(s, "(120, 5), (300, 6), (160, 7), (NULL, 8)");
    stream_run(s);
    assert_true(stream_told(s, "1 late row(s) dropped, 1 without event time"));
    is(s, "1;2;3;4;6;7;8");
}

static void update_gives_what_has_changed(void **state)
{
    StreamBench *s = *state;
    without_windows(s, KNUT_MODE_UPDATE);
    s->flow.query = "SELECT id, sum(ts)::BIGINT AS t FROM ev GROUP BY id";
    stream_values(s, "(1, 1), (2, 2)");
    stream_run(s);
    is(s, "1|1;2|2");
    stream_values(s, "(5, 2), (7, 3)");
    stream_run(s);
    is(s, "1|1;2|2;2|7;3|7");
    s->flow.query = "SELECT id, median(ts) AS t FROM ev GROUP BY id";
    s->opts.full_refresh = KNUT_NAMES("out");
    stream_run(s);
    is(s, "1|1.0;2|2.0;2|3.5;3|7.0");
}

static void complete_gives_all_and_replaces(void **state)
{
    StreamBench *s = *state;
    without_windows(s, KNUT_MODE_COMPLETE);
    s->flow.query = "SELECT id, count(*) AS n FROM ev GROUP BY id";
    stream_values(s, "(1, 1), (2, 2)");
    stream_run(s);
    stream_values(s, "(5, 2), (7, 3)");
    stream_run(s);
    is(s, "1|1;2|2;3|1");
    s->flow.query = "SELECT id FROM ev";
    stream_fails(s, KN_E_REFUSED, "its state was made with another query");
    s->opts.full_refresh = KNUT_NAMES("out");
    stream_fails(s, KN_E_UNSUPPORTED, "complete is for queries that aggregate");
}

static void windows_are_updated_until_they_close(void **state)
{
    StreamBench *s = *state;
    s->flow.kind.streaming.output_mode = KNUT_MODE_UPDATE;
    stream_values(s, "(10, 1), (110, 1)");
    stream_values(s, "(20, 1), (300, 2)"); /* W = 250 */
    stream_values(s, "(30, 1), (310, 2)");
    stream_run(s);
    is(s, "0|100|1;0|100|2;100|200|1;300|400|1;300|400|2");
}

static void duplicates_count_once(void **state)
{
    StreamBench *s = *state;
    s->flow.kind.streaming.window = NULL;
    s->flow.kind.streaming.deduplicate = KNUT_NAMES("id");
    s->flow.query = "SELECT ts, id FROM ev";
    stream_values(s, "(10, 1), (11, 1), (12, 2)");
    stream_values(s, "(13, 2), (14, 3), (60, 1), (NULL, 4)");
    stream_run(s);
    is(s, "10|1;12|2;14|3;NULL|4");
    stream_values(s, "(15, 3), (200, 5), (16, 4)");
    stream_values(s, "(190, 5), (210, 1)"); /* 1 is forgotten by then: W = 150 */
    stream_run(s);
    is(s, "10|1;12|2;14|3;200|5;210|1;NULL|4");
}

/* ---- state ---- */

static void a_changed_plan_is_refused_with_the_way_out(void **state)
{
    StreamBench *s = *state;
    stream_values(s, "(10, 1), (1000, 2)");
    stream_run(s);
    s->window.tumbling.size_ms = 200;
    stream_values(s, "(2000, 2)");
    stream_fails(s, KN_E_REFUSED,
                 "its state was made with another window ('tumbling(100)', now "
                 "'tumbling(200)'): --full-refresh out starts anew");
    is(s, "0|100|1");
    s->opts.full_refresh = KNUT_NAMES("out");
    stream_run(s);
    is(s, "0|200|1;1000|1200|1");
    s->opts.full_refresh = (KnutNames){0};
    s->watermark.allowed_lateness_ms = 0; /* may change */
    stream_run(s);
}

static void a_target_without_its_state_is_not_gone_on_with(void **state)
{
    StreamBench *s = *state;
    stream_values(s, "(10, 1), (1000, 2)");
    stream_run(s);
    s->opts.state = bench_path(&s->b, "elsewhere");
    stream_fails(s, KN_E_REFUSED, "there is no state of it");
    s->opts.state = NULL;
    stream_run(s);
    is(s, "0|100|1");
}

/* The newest file of the state with these words in its name. */
static const char *newest(StreamBench *s, const char *words)
{
    return bench_value(&s->b, "SELECT max(file) FROM glob('%s/*') WHERE file LIKE '%%%s%%'",
                       stream_state(s), words);
}

static void cut_short(const char *file)
{
    assert_int_equal(truncate(file, 40), 0);
}

/* Epochs 0 to 2; the target got rows in 0, has none of 1 and 2. */
static void three_epochs(StreamBench *s)
{
    stream_values(s, "(10, 1), (200, 2)");
    stream_values(s, "(210, 3)");
    stream_values(s, "(220, 4)");
    stream_run(s);
    is(s, "0|100|1");
}

static void a_torn_checkpoint_falls_back_to_the_one_before(void **state)
{
    static const char *const files[] = {"2.json", "2-kept"};
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        StreamBench *s = stream_new("ts BIGINT, id BIGINT");
        three_epochs(s);
        cut_short(newest(s, files[i]));
        stream_values(s, "(1000, 5)");
        stream_run(s);
        assert_true(stream_told(s, "a damaged checkpoint was left aside"));
        assert_true(stream_told(s, "goes on behind epoch 1"));
        is(s, "0|100|1;200|300|3");
        stream_free(s);
    }
}

static void what_cannot_be_gone_on_with_is_one_clear_error(void **state)
{
    StreamBench *s = *state;
    stream_values(s, "(10, 1), (200, 2)");
    stream_values(s, "(400, 3)");
    stream_run(s); /* both epochs gave rows */
    cut_short(newest(s, "1.json"));
    stream_fails(s, KN_E_CORRUPT, "its state is damaged");
    s->opts.full_refresh = KNUT_NAMES("out");
    stream_run(s);
    is(s, "0|100|1;200|300|1");
}

static void a_checkpoint_without_its_commit_is_discarded(void **state)
{
    StreamBench *s = *state;
    stream_values(s, "(10, 1), (200, 2)");
    assert_int_equal(kn_fault_set("stream-saved:1:fail", NULL, NULL), KN_OK);
    stream_fails(s, KN_E_IO, "stream-saved");
    assert_int_equal(kn_fault_set(NULL, NULL, NULL), KN_OK);
    is(s, "");
    stream_run(s);
    assert_true(stream_told(s, "epoch 0 was not committed"));
    is(s, "0|100|1");
}

static void old_checkpoints_go_and_many_parts_become_one(void **state)
{
    StreamBench *s = *state;
    for (int i = 0; i < 40; i++)
        stream_values(s, kn_arena_printf(s->b.arena, "(%d, 1)", 1000 + i));
    stream_run(s);
    assert_string_equal(
        bench_value(&s->b, "SELECT count(*) FROM glob('%s/*.json')", stream_state(s)), "3");
    assert_string_equal(
        bench_value(&s->b, "SELECT count(*) < 36 FROM glob('%s/*.parquet')", stream_state(s)),
        "true");
    stream_values(s, "(5000, 1)");
    stream_run(s);
    is(s, "1000|1100|40");
}

static void an_expectation_that_fails_leaves_the_epoch_out(void **state)
{
    StreamBench *s = *state;
    s->flow.expectations =
        (KnutExpectations){KNUT_LIST(KnutExpectation, {"few", "n < 2", KNUT_ON_VIOLATION_FAIL})};
    stream_values(s, "(10, 1), (150, 2)");
    stream_values(s, "(160, 1), (1000, 2)");
    stream_fails(s, KN_E_REFUSED, "expectation `few` FAILED");
    is(s, "0|100|1");
    s->flow.expectations =
        (KnutExpectations){KNUT_LIST(KnutExpectation, {"few", "n < 2", KNUT_ON_VIOLATION_DROP})};
    stream_run(s);
    is(s, "0|100|1");
    assert_true(stream_told(s, "dropped 1 row(s)"));
}

#define test(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
int main(void)
{
    const struct CMUnitTest tests[] = {
        test(a_tumbling_window_closes_when_the_watermark_reaches_its_end),
        test(a_row_is_late_by_its_window_and_counted),
        test(the_watermark_of_before_the_epoch_decides),
        test(windows_before_1970_are_where_they_belong),
        test(each_window_that_hops_over_a_row_has_it),
        test(a_session_ends_after_a_gap),
        test(sessions_are_of_the_groups_of_the_query),
        test(a_row_of_a_session_that_was_given_is_late),
        cmocka_unit_test(timestamps_are_event_times),
        test(aggregates_are_put_together_from_parts),
        test(the_list_of_aggregates_is_the_engines),
        test(other_aggregates_keep_the_rows_of_open_windows),
        test(any_query_sees_one_window_at_a_time),
        test(a_table_stands_beside_the_stream),
        test(append_gives_each_row_once),
        test(append_refuses_what_would_be_wrong),
        test(rows_below_the_watermark_are_late_without_windows_too),
        test(update_gives_what_has_changed),
        test(complete_gives_all_and_replaces),
        test(windows_are_updated_until_they_close),
        test(duplicates_count_once),
        test(a_changed_plan_is_refused_with_the_way_out),
        test(a_target_without_its_state_is_not_gone_on_with),
        cmocka_unit_test(a_torn_checkpoint_falls_back_to_the_one_before),
        test(what_cannot_be_gone_on_with_is_one_clear_error),
        test(a_checkpoint_without_its_commit_is_discarded),
        test(old_checkpoints_go_and_many_parts_become_one),
        test(an_expectation_that_fails_leaves_the_epoch_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
