/* SPDX-License-Identifier: Apache-2.0 */
/* test_native_parting.c - targets parted by transforms: folders as Iceberg names them, rows back.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "pipeline/backend.h"
#include "unit/pipeline/native_bench.h"

static KnCode copy_rows(const Bench *b, const char *query, KnutNames parts, KnErr *err)
{
    const KnPipeline p = {
        .name = "parted",
        .datasets = {KNUT_LIST(KnutDataset, {.name = "out",
                                             .output_type = KNUT_OUTPUT_SINK,
                                             .format = "parquet",
                                             .path = bench_path(b, "out"),
                                             .write_mode = KNUT_WRITE_OVERWRITE,
                                             .partition_cols = parts})},
        .flows = {KNUT_LIST(KnutFlow, {.name = "f", .target = "out", .query = query})},
    };
    return kn_backend_native.run(&p, &(KnRunOptions){.engine = {.threads = 1}}, err);
}

static void parts(const Bench *b, const char *query, KnutNames names)
{
    KnErr err = {0};
    if (copy_rows(b, query, names, &err) != KN_OK)
        fail_msg("%s", err.msg);
}

/* The folders that hold files, sorted. */
static const char *folders(const Bench *b)
{
    return bench_value(b,
                       "SELECT string_agg(DISTINCT regexp_extract(file, '/out/(.*)/[^/]*$', 1), "
                       "' ' ORDER BY regexp_extract(file, '/out/(.*)/[^/]*$', 1)) "
                       "FROM glob('%s/**/*.parquet')",
                       bench_path(b, "out"));
}

#define ROW(ts, id, name) "(TIMESTAMP '" ts "', " id ", '" name "')"
#define ROWS                                                                                       \
    "SELECT * FROM (VALUES " ROW("2024-01-31 07:08:09", "34", "iceberg") ", " ROW(                 \
        "1969-12-31 23:59:59.999999", "-1", "ab") ") t(ts, id, name)"

static void folders_are_named_as_iceberg_names_them(void **state)
{
    const Bench *b = *state;
    static const struct {
        const char *part, *want;
    } cases[] = {
        {"years(ts)", "ts_year=1969 ts_year=2024"},
        {"month(ts)", "ts_month=1969-12 ts_month=2024-01"},
        {"days(ts)", "ts_day=1969-12-31 ts_day=2024-01-31"},
        {"HOURS( ts )", "ts_hour=1969-12-31-23 ts_hour=2024-01-31-07"},
        {"truncate(10, id)", "id_trunc=-10 id_trunc=30"},
        {"truncate(name, 3)", "name_trunc=ab name_trunc=ice"},
        {"identity(name)", "name=ab name=iceberg"},
        {"\"name\"", "name=ab name=iceberg"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        parts(b, ROWS, KNUT_NAMES(cases[i].part));
        assert_string_equal(folders(b), cases[i].want);
    }
}

/* Appendix B of the specification has the hashes: 34 and "iceberg". */
static void buckets_are_those_of_the_specification(void **state)
{
    const Bench *b = *state;
    const char *row = "SELECT 34 AS i, 34::BIGINT AS l, 14.20::DECIMAL(9,2) AS d, 'iceberg' AS s, "
                      "DATE '2017-11-16' AS day";
    parts(b, row,
          KNUT_NAMES("bucket(1000, i)", "bucket(1000, l)", "bucket(1000, d)", "bucket(1000, s)",
                     "bucket(1000, day)"));
    /* (hash & 0x7fffffff) % 1000 of 2017239379, -500754589, 1210000089, -653330422 */
    assert_string_equal(folders(b), "i_bucket=379/l_bucket=379/d_bucket=59/s_bucket=89/day_bucket="
                                    "226");
}

static void rows_come_back_without_the_columns_of_folders(void **state)
{
    const Bench *b = *state;
    parts(b, ROWS " UNION ALL SELECT NULL, 7, NULL",
          KNUT_NAMES("days(ts)", "name", "bucket(4, id)"));
    assert_string_equal(
        bench_value(b, "SELECT count(*) FROM glob('%s/ts_day=__HIVE_DEFAULT_PARTITION__/*/*/*')",
                    bench_path(b, "out")),
        "1");
    const KnPipeline back = {
        .name = "back",
        .inputs = {KNUT_LIST(KnutInput,
                             {.name = "parted",
                              .path = bench_path(b, "out"),
                              .format = "parquet",
                              .partition_cols = KNUT_NAMES("days(ts)", "name", "bucket(4, id)")})},
        .datasets = {KNUT_LIST(
            KnutDataset,
            {.name = "csv", .output_type = KNUT_OUTPUT_SINK, .path = bench_path(b, "back.csv")})},
        .flows = {KNUT_LIST(KnutFlow, {.name = "f",
                                       .target = "csv",
                                       .query = "SELECT * FROM parted ORDER BY id",
                                       .reads = KNUT_NAMES("parted")})},
    };
    KnErr err = {0};
    if (kn_backend_native.run(&back, &(KnRunOptions){.engine = {.threads = 1}}, &err) != KN_OK)
        fail_msg("%s", err.msg);
    assert_string_equal(
        bench_value(b, "SELECT content FROM read_text('%s')", bench_path(b, "back.csv")),
        "ts,id,name\n1969-12-31 23:59:59.999999,-1,ab\n,7,\n2024-01-31 07:08:09,34,iceberg\n");
}

static void what_cannot_part_is_refused_and_writes_nothing(void **state)
{
    const Bench *b = *state;
    static const struct {
        const char *query;
        const char *part;
        const char *words;
    } cases[] = {
        {"SELECT 1 AS id", "days(id)", "partition `days(id)`"},
        {"SELECT 1.5::DOUBLE AS x", "bucket(4, x)", "not of a column of type DOUBLE"},
        {"SELECT 1 AS id", "days(ts)", "partition column `ts` not in output schema"},
        {"SELECT now() AS ts, 1 AS ts_day", "days(ts)", "a column of that name"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        KnErr err = {0};
        assert_int_equal(copy_rows(b, cases[i].query, KNUT_NAMES(cases[i].part), &err), KN_E_INVAL);
        if (!strstr(err.msg, cases[i].words))
            fail_msg("'%s' is not in: %s", cases[i].words, err.msg);
        assert_int_not_equal(access(bench_path(b, "out"), F_OK), 0);
    }
    KnErr err = {0};
    assert_int_equal(
        copy_rows(b, "SELECT 1 AS id", KNUT_NAMES("bucket(4, id)", "bucket(8, id)"), &err),
        KN_E_INVAL);
    assert_non_null(strstr(err.msg, "would both be folders id_bucket="));
}

#define CASE(test) cmocka_unit_test_setup_teardown(test, bench_set_up, bench_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(folders_are_named_as_iceberg_names_them),
        CASE(buckets_are_those_of_the_specification),
        CASE(rows_come_back_without_the_columns_of_folders),
        CASE(what_cannot_part_is_refused_and_writes_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
