/* SPDX-License-Identifier: Apache-2.0 */
/* test_native_cdc.c - changes applied to a target, in any order, over any number of runs. */
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
#include "base/random.h"
#include "pipeline/backend.h"
#include "unit/pipeline/native_bench.h"

typedef struct Case {
    Bench bench;
    KnutCdc cdc;
} Case;

static int set_up(void **state)
{
    Case *b = calloc(1, sizeof(*b));
    assert_non_null(b);
    bench_open(&b->bench);
    static const char *const keys[] = {"id"};
    b->cdc = (KnutCdc){.keys = {keys, 1}, .sequence_by = "seq"};
    *state = b;
    return 0;
}

static int tear_down(void **state)
{
    Case *b = *state;
    bench_close(&b->bench);
    free(b);
    return 0;
}

/* One run with these rows of (id, seq, val, gone, _change_type) as its changes. */
static KnCode apply_with(const Case *b, const char *target, const char *values, KnErr *err)
{
    KnutFlow flow = {
        .name = "f_cdc", .target = "dim", .kind = {.tag = KNUT_FLOW_CDC, .cdc = b->cdc}};
    flow.query = kn_arena_printf(
        b->bench.arena, "SELECT * FROM (VALUES %s) t(id, seq, val, gone, _change_type)", values);
    KnutDataset dim = {.name = "dim", .output_type = KNUT_OUTPUT_TABLE};
    dim.path = kn_arena_printf(b->bench.arena, "%s/%s.parquet", b->bench.dir, target);
    KnPipeline pipeline = {.name = "cdc", .datasets = {&dim, 1}, .flows = {&flow, 1}};
    return kn_backend_native.run(&pipeline, &(KnRunOptions){.engine = {.threads = 1}}, err);
}

static void apply(const Case *b, const char *target, const char *values)
{
    KnErr err = {0};
    if (apply_with(b, target, values, &err) != KN_OK)
        fail_msg("%s", err.msg);
}

static const char *rows(const Case *b, const char *target, const char *row)
{
    return bench_value(&b->bench,
                       "SELECT coalesce(string_agg(%s, ' ' ORDER BY %s), '') FROM '%s/%s.parquet'",
                       row, row, b->bench.dir, target);
}

#define NOW      "id || val || seq"
#define HISTORY  "id || val || ':' || __start_at || '-' || coalesce(__end_at::VARCHAR, '')"
#define ROW1     "(1, 1, 'a', 0, 'INSERT')"
#define ROW2     "(2, 2, 'b', 0, 'INSERT')"
#define ROW1B    "(1, 3, 'c', 0, 'UPDATE_AFTER')"
#define BEFORE1B "(1, 3, 'a', 0, 'UPDATE_BEFORE')"
#define GONE2    "(2, 5, 'b', 0, 'DELETE')"
#define ROW3     "(3, 4, 'd', 0, 'INSERT')"

static void type_1_keeps_the_last_row_of_each_key(void **state)
{
    const Case *b = *state;
    apply(b, "one", ROW1 ", " ROW2);
    assert_string_equal(rows(b, "one", NOW), "1a1 2b2");
    apply(b, "one", ROW1B ", " BEFORE1B ", " GONE2 ", " ROW3);
    assert_string_equal(rows(b, "one", NOW), "1c3 3d4");
    apply(b, "one", ROW1 ", " ROW2); /* late, and said before */
    assert_string_equal(rows(b, "one", NOW), "1c3 3d4");
    apply(b, "one", "(2, 6, 'e', 0, 'INSERT')");
    assert_string_equal(rows(b, "one", NOW), "1c3 2e6 3d4");
}

static void type_2_keeps_the_history_of_each_key(void **state)
{
    Case *b = *state;
    b->cdc.scd_type = KNUT_SCD_TYPE2;
    apply(b, "two", ROW1B ", " ROW2);
    assert_string_equal(rows(b, "two", HISTORY), "1c:3- 2b:2-");
    apply(b, "two", ROW1 ", " GONE2 ", " ROW3); /* the first came late */
    assert_string_equal(rows(b, "two", HISTORY), "1a:1-3 1c:3- 2b:2-5 3d:4-");
    apply(b, "two", "(3, 6, '', 0, 'DELETE')");
    apply(b, "two", "(3, 5, 'x', 0, 'INSERT')");
    assert_string_equal(rows(b, "two", HISTORY), "1a:1-3 1c:3- 2b:2-5 3d:4-5 3x:5-6");
}

static void a_truncate_deletes_every_key_at_its_place(void **state)
{
    Case *b = *state;
    b->cdc.apply_as_truncates = "_change_type = 'TRUNCATE'";
    apply(b, "one", ROW1 ", " ROW2);
    apply(b, "one", "(4, 4, 'z', 0, 'INSERT'), (NULL, 3, NULL, 0, 'TRUNCATE')");
    assert_string_equal(rows(b, "one", NOW), "4z4");
    apply(b, "one", ROW2 ", (1, 3, 'q', 0, 'INSERT'), (5, 2, 'x', 0, 'INSERT')"); /* late */
    assert_string_equal(rows(b, "one", NOW), "4z4");
    apply(b, "one", "(6, 6, 'y', 0, 'INSERT'), (NULL, 1, NULL, 0, 'TRUNCATE')"); /* an older one */
    assert_string_equal(rows(b, "one", NOW), "4z4 6y6");
    apply(b, "one", "(7, 7, 'w', 0, 'INSERT'), (NULL, 6, NULL, 0, 'TRUNCATE')");
    assert_string_equal(rows(b, "one", NOW), "7w7");
}

static void a_delete_that_comes_before_its_row_is_remembered(void **state)
{
    Case *b = *state;
    apply(b, "one", GONE2);
    apply(b, "one", ROW2);
    assert_string_equal(rows(b, "one", NOW), "");
    b->cdc.scd_type = KNUT_SCD_TYPE2;
    apply(b, "two", GONE2);
    apply(b, "two", ROW2);
    assert_string_equal(rows(b, "two", HISTORY), "2b:2-5");
}

static void a_condition_deletes_and_columns_are_chosen(void **state)
{
    Case *b = *state;
    static const char *const except[] = {"gone"};
    b->cdc.apply_as_deletes = "gone = 1";
    b->cdc.except_columns = (KnutNames){except, 1};
    apply(b, "one", ROW1 ", " ROW2 ", (2, 9, 'b', 1, 'INSERT')");
    assert_string_equal(rows(b, "one", NOW), "1a1");
    KN_BUF_AUTO out = {.max = 1 << 16};
    const char *query = kn_arena_printf(
        b->bench.arena, "SELECT string_agg(column_name, ' ') FROM (DESCRIBE FROM '%s/one.parquet')",
        b->bench.dir);
    assert_int_equal(kn_session_query_text(b->bench.session, query, &out, NULL), KN_OK);
    assert_string_equal(out.data, "id seq val");
}

static void at_one_place_a_delete_counts_and_then_the_greater_values(void **state)
{
    const Case *b = *state;
    apply(b, "one",
          "(1, 1, 'a', 0, 'INSERT'), (1, 1, 'z', 0, 'INSERT'), (2, 1, 'b', 0, 'DELETE'), "
          "(2, 1, 'c', 0, 'INSERT')");
    assert_string_equal(rows(b, "one", NOW), "1z1");
    apply(b, "one", "(1, 1, 'b', 0, 'INSERT')"); /* a new event before an old one */
    assert_string_equal(rows(b, "one", NOW), "1b1");
}

static void changes_without_place_or_key_end_the_run(void **state)
{
    Case *b = *state;
    KnErr err = {0};
    apply(b, "one", ROW1);
    assert_int_equal(apply_with(b, "one", "(1, NULL, 'x', 0, 'INSERT'), " ROW2, &err),
                     KN_E_REFUSED);
    assert_non_null(strstr(err.msg, "keys and sequence are not NULL"));
    assert_string_equal(rows(b, "one", NOW), "1a1");
    b->cdc.sequence_by = "sqe";
    assert_int_equal(apply_with(b, "one", ROW2, &err), KN_E_INVAL);
    assert_non_null(strstr(err.msg, "sequence_by `sqe` is not in its changes"));
    b->cdc.sequence_by = "seq";
    b->cdc.ignore_null_updates = true;
    assert_int_equal(apply_with(b, "one", ROW2, &err), KN_E_UNSUPPORTED);
}

static void a_run_that_ends_anywhere_can_be_repeated(void **state)
{
    const Case *b = *state;
    static const char *const points[] = {"pipeline-computed:1:fail", "pipeline-publish:1:fail",
                                         "pipeline-publish:2:fail", "pipeline-published:2:fail"};
    for (size_t i = 0; i < 4; i++) {
        const char *target = kn_arena_printf(b->bench.arena, "t%zu", i);
        apply(b, target, ROW1 ", " ROW2);
        assert_int_equal(kn_fault_set(points[i], NULL, NULL), KN_OK);
        assert_int_equal(apply_with(b, target, ROW1B ", " GONE2, NULL), KN_E_IO);
        assert_int_equal(kn_fault_set(NULL, NULL, NULL), KN_OK);
        assert_string_equal(rows(b, target, NOW), i == 3 ? "1c3" : "1a1 2b2");
        apply(b, target, ROW1B ", " GONE2);
        assert_string_equal(rows(b, target, NOW), "1c3");
    }
}

/* ---- any events, in any order, in any number of runs, come to the same ---- */

enum { EVENTS = 24, SPLITS = 3 };

static const char *event_of(const Case *b, uint64_t n, KnRng *rng)
{
    return kn_arena_printf(b->bench.arena, "(%d, %d, 'v%d', 0, '%s')", (int)kn_rng_below(rng, 4),
                           (int)n, (int)n, kn_rng_below(rng, 4) ? "INSERT" : "DELETE");
}

static const char *joined(const Case *b, const char *const *events, size_t n)
{
    const char *text = events[0];
    for (size_t i = 1; i < n; i++)
        text = kn_arena_printf(b->bench.arena, "%s, %s", text, events[i]);
    return text;
}

static void shuffled_and_split(const Case *b, const char **events, KnRng *rng)
{
    for (size_t i = EVENTS - 1; i > 0; i--) {
        size_t j = kn_rng_below(rng, i + 1);
        const char *kept = events[i];
        events[i] = events[j];
        events[j] = kept;
    }
    for (size_t at = 0; at < EVENTS; at += EVENTS / SPLITS)
        apply(b, "split", joined(b, events + at, EVENTS / SPLITS));
}

static void order_and_runs_do_not_matter(void **state)
{
    Case *b = *state;
    uint64_t seed = (uint64_t)kn_random_id();
    const char *given = getenv("KNUT_TEST_SEED");
    if (given)
        seed = strtoull(given, NULL, 10);
    printf("KNUT_TEST_SEED=%llu\n", (unsigned long long)seed);
    KnRng rng = {seed};
    for (int type = 0; type < 2; type++) {
        const char *events[EVENTS];
        b->cdc.scd_type = (KnutScdType)type;
        for (size_t i = 0; i < EVENTS; i++)
            events[i] = event_of(b, i, &rng);
        apply(b, "whole", joined(b, events, EVENTS));
        const char *want = rows(b, "whole", type ? HISTORY : NOW);
        shuffled_and_split(b, events, &rng);
        assert_string_equal(rows(b, "split", type ? HISTORY : NOW), want);
        for (size_t i = 0; i < 4; i++) {
            static const char *const files[] = {"whole.parquet", ".whole.parquet.deletes.parquet",
                                                "split.parquet", ".split.parquet.deletes.parquet"};
            assert_int_equal(
                unlink(kn_arena_printf(b->bench.arena, "%s/%s", b->bench.dir, files[i])), 0);
        }
    }
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(type_1_keeps_the_last_row_of_each_key),
        CASE(type_2_keeps_the_history_of_each_key),
        CASE(a_truncate_deletes_every_key_at_its_place),
        CASE(a_delete_that_comes_before_its_row_is_remembered),
        CASE(a_condition_deletes_and_columns_are_chosen),
        CASE(at_one_place_a_delete_counts_and_then_the_greater_values),
        CASE(changes_without_place_or_key_end_the_run),
        CASE(a_run_that_ends_anywhere_can_be_repeated),
        CASE(order_and_runs_do_not_matter),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
