/* SPDX-License-Identifier: Apache-2.0 */
/* test_native_places.c - where rows come from and go to: folders of values in any format, and what
 * nobody writes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "pipeline/backend.h"
#include "unit/pipeline/native_bench.h"

static void runs(const KnPipeline *p)
{
    KnErr err = {0};
    if (kn_backend_native.run(p, &(KnRunOptions){.engine = {.threads = 1}}, &err) != KN_OK)
        fail_msg("%s", err.msg);
}

/* Rows go into folders of a region each, and come back with the region from the folder's name. */
static void comes_back(const Bench *b, const char *format)
{
    static const char *const region[] = {"region"}, *const reads[] = {"parted"};
    const char *folder = bench_path(b, format);
    const char *back = bench_path(b, kn_arena_printf(b->arena, "back-%s.csv", format));
    const KnPipeline out = {
        .name = "out",
        .datasets = {KNUT_LIST(KnutDataset, {.name = "o",
                                             .output_type = KNUT_OUTPUT_SINK,
                                             .format = format,
                                             .path = folder,
                                             .partition_cols = {region, 1}})},
        .flows = {KNUT_LIST(KnutFlow, {.name = "f",
                                       .target = "o",
                                       .query = "SELECT * FROM (VALUES ('US', 1), ('EU', 2), "
                                                "('US', 3), ('a/b=c', 4)) t(region, n)"})},
    };
    const KnPipeline in = {
        .name = "in",
        .inputs = {KNUT_LIST(
            KnutInput,
            {.name = "parted", .path = folder, .format = format, .partition_cols = {region, 1}})},
        .datasets = {KNUT_LIST(KnutDataset,
                               {.name = "o", .output_type = KNUT_OUTPUT_SINK, .path = back})},
        .flows = {KNUT_LIST(KnutFlow, {.name = "f",
                                       .target = "o",
                                       .reads = {reads, 1},
                                       .query = "SELECT region, sum(n) AS s FROM parted GROUP BY "
                                                "region"})},
    };
    runs(&out);
    runs(&in);
    assert_string_equal(
        bench_value(b, "SELECT string_agg(region || s, ' ' ORDER BY region) FROM '%s'", back),
        "EU2 US4 a/b=c4");
}

static void folders_of_values_come_back(void **state)
{
    comes_back(*state, "parquet");
    comes_back(*state, "csv");
}

static void folders_that_the_engine_does_not_write_are_refused(void **state)
{
    const Bench *b = *state;
    static const char *const region[] = {"region"};
    const KnPipeline p = {
        .name = "p",
        .datasets = {KNUT_LIST(KnutDataset, {.name = "a",
                                             .format = "json",
                                             .path = bench_path(b, "folder"),
                                             .partition_cols = {region, 1}})},
        .flows = {KNUT_LIST(KnutFlow,
                            {.name = "f", .target = "a", .query = "SELECT 1 AS x, 'r' AS region"})},
    };
    KN_NOTES_AUTO notes = {.arena = b->arena};
    kn_backend_native.check(&p, NULL, &notes);
    assert_int_equal(notes.list.len, 1);
    assert_string_equal(notes.list.items[0].text,
                        "dataset a: folders of partitions are written as parquet or csv");
}

static void what_no_flow_makes_is_not_written(void **state)
{
    const Bench *b = *state;
    const char *nothing = bench_path(b, "nothing.csv"), *one = bench_path(b, "one.csv");
    const KnPipeline p = {
        .name = "p",
        .datasets = {KNUT_LIST(KnutDataset,
                               {.name = "a", .output_type = KNUT_OUTPUT_SINK, .path = nothing},
                               {.name = "b", .output_type = KNUT_OUTPUT_SINK, .path = one})},
        .flows = {KNUT_LIST(KnutFlow, {.name = "f", .target = "b", .query = "SELECT 1 AS x"})},
    };
    runs(&p);
    assert_int_not_equal(access(nothing, F_OK), 0);
    assert_int_equal(access(one, F_OK), 0);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, bench_set_up, bench_tear_down)
int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(folders_of_values_come_back),
        CASE(folders_that_the_engine_does_not_write_are_refused),
        CASE(what_no_flow_makes_is_not_written),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
