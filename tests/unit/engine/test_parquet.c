/* SPDX-License-Identifier: Apache-2.0 */
/* test_parquet.c - files written with ids and statistics, and their footers read back. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/parquet.h"
#include "engine/parquet_nanos.h"
#include "unit/engine/support.h"

static const char *path_of(const Bench *b, const char *name)
{
    static char paths[8][128];
    static int next;
    char *path = paths[next++ % 8];
    (void)snprintf(path, sizeof(paths[0]), "%s/%s", b->dir, name);
    return path;
}

static const KnPqColumnStats *stats_of(const KnPqWritten *file, const char *path)
{
    for (size_t i = 0; i < file->n_columns; i++) {
        if (strcmp(file->columns[i].path, path) == 0)
            return &file->columns[i];
    }
    fail_msg("no statistics of %s", path);
    return NULL;
}

#define NESTED                                                                                     \
    "SELECT i::BIGINT AS id, CASE WHEN i % 4 = 0 THEN NULL ELSE 'n' || i END AS name, "            \
    "{'a': i::INTEGER, 'b.c\"d': 'x'} AS st, [i, i + 1] AS li, MAP {'k': i} AS mp, "               \
    "CASE WHEN i = 3 THEN 'NaN'::DOUBLE ELSE i / 2 END AS d, '\\xAB\\x00'::BLOB AS bl "            \
    "FROM range(100) t(i)"

static void written_files_report_ids_and_statistics(void **state)
{
    Bench *b = *state;
    KN_ARENA_AUTO arena = kn_arena_new(4096);
    const KnPqWriteOptions opts = {
        .select_sql = NESTED,
        .target = path_of(b, "one.parquet"),
        .field_ids_sql = "{id: 1, name: 2, st: {__duckdb_field_id: 3, a: 4, 'b.c\"d': 5}, "
                         "li: {__duckdb_field_id: 6, element: 7}, "
                         "mp: {__duckdb_field_id: 8, key: 9, value: 10}, d: 11, bl: 12}",
        .codec_level = 3,
    };
    KnPqWritten *files = NULL;
    size_t n = 0;
    assert_ok(b, kn_parquet_write(b->ses, arena, &opts, &files, &n, &b->err));
    assert_int_equal(n, 1);
    assert_string_equal(files[0].path, opts.target);
    assert_int_equal(files[0].n_rows, 100);
    assert_true(files[0].size_bytes > 500);
    assert_int_equal(files[0].n_columns, 9);
    const KnPqColumnStats *id = stats_of(&files[0], "id");
    assert_string_equal(id->min, "0");
    assert_string_equal(id->max, "99");
    assert_int_equal(id->null_count, 0);
    assert_int_equal(id->value_count, 100);
    assert_int_equal(stats_of(&files[0], "name")->null_count, 25);
    assert_string_equal(stats_of(&files[0], "st\x1f"
                                            "b.c\"d")
                            ->max,
                        "x");
    assert_int_equal(stats_of(&files[0], "li\x1f"
                                         "element")
                         ->value_count,
                     200);
    assert_string_equal(stats_of(&files[0], "mp\x1fkey")->min, "k");
    assert_true(stats_of(&files[0], "d")->has_nan);
    assert_false(id->has_nan);
    assert_string_equal(stats_of(&files[0], "d")->max, "49.5");
    assert_string_equal(stats_of(&files[0], "bl")->min, "AB00");
    assert_true(stats_of(&files[0], "bl")->size_bytes > 0);

    KnPqFile *footer = NULL;
    assert_ok(b, kn_parquet_footers(b->ses, arena, &opts.target, 1, &footer, &b->err));
    assert_int_equal(footer->n_rows, 100);
    assert_int_equal(footer->n_row_groups, 1);
    assert_true(footer->has_field_ids);
    assert_string_equal(footer->shape,
                        "s-1:0:{.1:2:id=BIGINT;.2:4:name=VARCHAR;s3:2:st{.4:1:a=INTEGER;"
                        ".5:5:b.c\"d=VARCHAR;}l6:2:li{.7:7:element=BIGINT;}"
                        "m8:2:mp{.9:3:key=VARCHAR;.10:5:value=BIGINT;}.11:1:d=DOUBLE;.12:2:bl=BLOB;"
                        "}");
}

static void footers_come_in_the_order_of_the_paths(void **state)
{
    Bench *b = *state;
    KN_ARENA_AUTO arena = kn_arena_new(4096);
    const char *paths[60];
    char names[60][128];
    for (int i = 0; i < 30; i++) {
        (void)snprintf(names[i], sizeof(names[i]), "%s/%d.parquet", b->dir, i * 7 % 30);
        bench_exec(b, "COPY (SELECT 1 AS c%d FROM range(%d)) TO '%s' (FORMAT parquet)", i, i + 1,
                   names[i]);
        paths[i] = paths[59 - i] = names[i];
    }
    KnPqFile *files = NULL;
    assert_ok(b, kn_parquet_footers(b->ses, arena, paths, 60, &files, &b->err));
    for (int i = 0; i < 60; i++) {
        int made = i < 30 ? i : 59 - i;
        char column[16];
        (void)snprintf(column, sizeof(column), "c%d", made);
        assert_string_equal(files[i].path, paths[i]);
        assert_int_equal(files[i].n_rows, made + 1);
        assert_int_equal(files[i].root.n_children, 1);
        assert_string_equal(files[i].root.children[0].name, column);
        assert_int_equal(files[i].root.children[0].field_id, -1);
        assert_false(files[i].has_field_ids);
    }
    assert_string_equal(files[0].shape, files[59].shape);
    assert_string_not_equal(files[0].shape, files[1].shape);
    assert_ok(b, kn_parquet_footers(b->ses, arena, NULL, 0, &files, &b->err));
}

static void every_physical_type_says_what_it_reads_as(void **state)
{
    Bench *b = *state;
    KN_ARENA_AUTO arena = kn_arena_new(4096);
    const char *path = path_of(b, "types.parquet");
    static const char *const types[] = {
        "BOOLEAN",
        "TINYINT",
        "SMALLINT",
        "INTEGER",
        "BIGINT",
        "UTINYINT",
        "USMALLINT",
        "UINTEGER",
        "UBIGINT",
        "FLOAT",
        "DOUBLE",
        "DECIMAL(4,2)",
        "DECIMAL(9,2)",
        "DECIMAL(18,4)",
        "DECIMAL(38,10)",
        "DATE",
        "TIME",
        "TIMESTAMP",
        "TIMESTAMP WITH TIME ZONE",
        "TIMESTAMP_NS",
        "VARCHAR",
        "BLOB",
        "UUID",
        "JSON",
    };
    KN_BUF_AUTO sql;
    kn_buf_init(&sql, 1 << 16);
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
        kn_buf_printf(&sql, "%s NULL::%s AS c%zu", i ? "," : "SELECT", types[i], i);
    bench_exec(b, "COPY (%s) TO '%s' (FORMAT parquet)", sql.data, path);
    KnPqFile *file = NULL;
    assert_ok(b, kn_parquet_footers(b->ses, arena, &path, 1, &file, &b->err));
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
        assert_string_equal(file->root.children[i].sql_type, types[i]);
}

static void variants_are_leaves_and_lookalikes_are_not(void **state)
{
    Bench *b = *state;
    KN_ARENA_AUTO arena = kn_arena_new(4096);
    const char *path = path_of(b, "variant.parquet");
    bench_exec(b,
               "COPY (SELECT 1::VARIANT AS v, {'metadata': '\\x01'::BLOB, 'value': "
               "'\\x02'::BLOB} AS plain) TO '%s' (FORMAT parquet)",
               path);
    KnPqFile *file = NULL;
    assert_ok(b, kn_parquet_footers(b->ses, arena, &path, 1, &file, &b->err));
    assert_string_equal(file->root.children[0].sql_type, "VARIANT");
    assert_int_equal(file->root.children[0].n_children, 0);
    assert_int_equal(file->root.children[1].kind, KN_PQ_STRUCT);
}

static void a_bad_file_in_a_list_is_named(void **state)
{
    Bench *b = *state;
    KN_ARENA_AUTO arena = kn_arena_new(4096);
    const char *good = path_of(b, "good.parquet");
    const char *bad = path_of(b, "bad.parquet");
    const char *list[] = {good, good, good, bad, good};
    KnPqFile *files = NULL;
    bench_exec(b, "COPY (SELECT 1 AS a) TO '%s' (FORMAT parquet)", good);
    assert_code(b, kn_parquet_footers(b->ses, arena, list, 5, &files, &b->err), KN_E_NOTFOUND);
    assert_non_null(strstr(b->err.msg, bad));
    bench_exec(b, "COPY (SELECT 'not parquet at all, but some text') TO '%s' (FORMAT csv)", bad);
    assert_code(b, kn_parquet_footers(b->ses, arena, list, 5, &files, &b->err), KN_E_CORRUPT);
    assert_non_null(strstr(b->err.msg, bad));
    bench_exec(b, "COPY (SELECT 1 AS a) TO '%s' (FORMAT parquet)", bad);
    assert_int_equal(truncate(bad, 100), 0);
    assert_code(b, kn_parquet_footers(b->ses, arena, list, 5, &files, &b->err), KN_E_CORRUPT);
    assert_non_null(strstr(b->err.msg, bad));
    assert_null(files);
}

static void a_target_size_makes_several_files(void **state)
{
    Bench *b = *state;
    KN_ARENA_AUTO arena = kn_arena_new(4096);
    const KnPqWriteOptions opts = {
        .select_sql = "SELECT i, hash(i) h FROM range(200000) t(i)",
        .target = path_of(b, "data"),
        .codec = "snappy",
        .row_group_rows = 10240,
        .target_bytes = 500000,
        .file_pattern = "00000-abc-{i}",
    };
    for (int round = 0; round < 2; round++) { /* the second time the folder is not empty */
        KnPqWritten *files = NULL;
        size_t n = 0;
        int64_t rows = 0;
        assert_ok(b, kn_parquet_write(b->ses, arena, &opts, &files, &n, &b->err));
        assert_in_range(n, 3, 8);
        for (size_t i = 0; i < n; i++) {
            rows += files[i].n_rows;
            assert_in_range(files[i].size_bytes, 1000, 700000);
            assert_non_null(strstr(files[i].path, "/data/00000-abc-"));
        }
        assert_int_equal(rows, 200000);
    }
}

static void partition_columns_name_folders_and_are_not_written(void **state)
{
    Bench *b = *state;
    KN_ARENA_AUTO arena = kn_arena_new(4096);
    static const char *const by[] = {"p q", "s"};
    const KnPqWriteOptions opts = {
        .select_sql = "SELECT i AS id, i % 2 AS \"p q\", CASE WHEN i % 3 = 0 THEN NULL ELSE "
                      "'a/b=c' END AS s FROM range(60) t(i)",
        .target = path_of(b, "parts"),
        .field_ids_sql = "{id: 1}",
        .partition_columns = by,
        .n_partition_columns = 2,
        .file_pattern = "f-{i}",
    };
    KnPqWritten *files = NULL;
    size_t n = 0;
    int64_t rows = 0;
    int nulls = 0;
    assert_ok(b, kn_parquet_write(b->ses, arena, &opts, &files, &n, &b->err));
    assert_int_equal(n, 4);
    for (size_t i = 0; i < n; i++) {
        rows += files[i].n_rows;
        assert_int_equal(files[i].n_columns, 1);
        assert_int_equal(files[i].n_partition_keys, 2);
        assert_int_equal(strlen(files[i].partition_values[0]), 1);
        if (files[i].partition_values[1])
            assert_string_equal(files[i].partition_values[1], "a/b=c");
        else
            nulls++;
        KnPqFile *footer = NULL;
        const char *path = files[i].path;
        assert_ok(b, kn_parquet_footers(b->ses, arena, &path, 1, &footer, &b->err));
        assert_int_equal(footer->root.n_children, 1);
        assert_int_equal(footer->n_rows, files[i].n_rows);
    }
    assert_int_equal(rows, 60);
    assert_int_equal(nulls, 2);
}

static void no_rows_make_no_files(void **state)
{
    Bench *b = *state;
    KN_ARENA_AUTO arena = kn_arena_new(4096);
    static const char *const by[] = {"p"};
    KnPqWriteOptions opts = {.select_sql = "SELECT 1 AS a, 2 AS p WHERE false",
                             .target = path_of(b, "none.parquet")};
    KnPqWritten *files = NULL;
    size_t n = 9;
    assert_ok(b, kn_parquet_write(b->ses, arena, &opts, &files, &n, &b->err));
    assert_int_equal(n, 0);
    assert_int_equal(access(opts.target, F_OK), -1);
    opts.target = path_of(b, "none");
    opts.partition_columns = by;
    opts.n_partition_columns = 1;
    assert_ok(b, kn_parquet_write(b->ses, arena, &opts, &files, &n, &b->err));
    assert_int_equal(n, 0);
}

static void write_failures_name_the_target(void **state)
{
    Bench *b = *state;
    KN_ARENA_AUTO arena = kn_arena_new(4096);
    KnPqWriteOptions opts = {.select_sql = "SELECT 1 AS a", .target = "/nowhere/at/all.parquet"};
    KnPqWritten *files = NULL;
    size_t n = 0;
    assert_true(kn_parquet_write(b->ses, arena, &opts, &files, &n, &b->err) != KN_OK);
    assert_non_null(strstr(b->err.msg, "/nowhere/at/all.parquet"));
    opts.target = path_of(b, "x.parquet");
    opts.field_ids_sql = "{nope: 1}";
    assert_code(b, kn_parquet_write(b->ses, arena, &opts, &files, &n, &b->err), KN_E_INVAL);
    opts.field_ids_sql = NULL;
    opts.codec = "no'such";
    assert_code(b, kn_parquet_write(b->ses, arena, &opts, &files, &n, &b->err), KN_E_INVAL);
    assert_null(files);
}

/* The engine writes nanoseconds unadjusted only; setting the bit makes the other kind. */
static void set_adjusted(const char *path)
{
    FILE *f = fopen(path, "r+be");
    assert_non_null(f);
    static char bytes[1 << 16];
    size_t len = fread(bytes, 1, sizeof(bytes), f);
    /* TimestampType: field 1 is false (0x12), field 2 a union (0x1c) with field 3 (0x3c), ends */
    static const char from[] = {0x12, 0x1c, 0x3c, 0x00, 0x00, 0x00};
    char *at = memmem(bytes, len, from, sizeof(from));
    assert_non_null(at);
    assert_int_equal(fseek(f, at - bytes, SEEK_SET), 0);
    assert_int_equal(fputc(0x11, f), 0x11);
    assert_int_equal(fclose(f), 0);
}

static void nanoseconds_in_utc_are_exact_in_a_patched_copy(void **state)
{
    Bench *b = *state;
    KN_ARENA_AUTO arena = kn_arena_new(4096);
    const char *path = path_of(b, "ns.parquet");
    const char *copy = path_of(b, "copy.parquet");
    bench_exec(b,
               "COPY (SELECT i AS id, make_timestamp_ns(1700000000123456789 + i) AS t, "
               "TIMESTAMPTZ '2024-01-01' AS us FROM range(5) t(i)) TO '%s' (FORMAT parquet)",
               path);
    set_adjusted(path);
    KnPqFile *file = NULL;
    assert_ok(b, kn_parquet_footers(b->ses, arena, &path, 1, &file, &b->err));
    assert_true(file->root.children[1].nanos_utc);
    assert_false(file->root.children[2].nanos_utc);
    assert_string_equal(file->root.children[1].sql_type, "TIMESTAMP WITH TIME ZONE");
    assert_string_equal(bench_text(b, "SELECT min(epoch_ns(t)) FROM read_parquet('%s')", path),
                        "1700000000123456000");
    size_t patched = 0;
    assert_ok(b, kn_parquet_nanos_copy(path, copy, &patched, &b->err));
    assert_int_equal(patched, 1);
    assert_string_equal(bench_text(b,
                                   "SELECT typeof(t) || ' ' || epoch_ns(t) || ' ' || id || ' ' || "
                                   "typeof(us) FROM read_parquet('%s') "
                                   "WHERE epoch_ns(t) = 1700000000123456791",
                                   copy),
                        "TIMESTAMP_NS 1700000000123456791 2 TIMESTAMP WITH TIME ZONE");
    assert_code(b, kn_parquet_nanos_copy("/nowhere/x", copy, &patched, &b->err), KN_E_NOTFOUND);
    bench_exec(b, "COPY (SELECT 'some text that is not parquet') TO '%s' (FORMAT csv)", path);
    assert_code(b, kn_parquet_nanos_copy(path, copy, &patched, &b->err), KN_E_CORRUPT);
    assert_int_equal(access(copy, F_OK), -1);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, bench_setup, bench_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(written_files_report_ids_and_statistics),
        CASE(footers_come_in_the_order_of_the_paths),
        CASE(every_physical_type_says_what_it_reads_as),
        CASE(variants_are_leaves_and_lookalikes_are_not),
        CASE(a_bad_file_in_a_list_is_named),
        CASE(a_target_size_makes_several_files),
        CASE(partition_columns_name_folders_and_are_not_written),
        CASE(no_rows_make_no_files),
        CASE(write_failures_name_the_target),
        CASE(nanoseconds_in_utc_are_exact_in_a_patched_copy),
    };
    return cmocka_run_group_tests_name("engine.parquet", tests, NULL, NULL);
}
