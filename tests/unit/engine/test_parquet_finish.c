/* SPDX-License-Identifier: Apache-2.0 */
/* test_parquet_finish.c - files written with types that the engine's writer does not have. */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "engine/parquet.h"
#include "engine/parquet_meta.h"
#include "unit/engine/support.h"

enum { N_ROWS = 5000 };

static const char *path_of(const Bench *b, const char *name)
{
    static char path[128];
    (void)snprintf(path, sizeof(path), "%s/%s", b->dir, name);
    return path;
}

#define ROWS                                                                                       \
    "SELECT i::BIGINT AS id, CASE WHEN i %% 3 = 0 THEN NULL ELSE unhex(printf('%%08x', "           \
    "(i %% 9)::INTEGER)) END AS few, unhex(md5(i::VARCHAR)) AS many, "                             \
    "[unhex(printf('%%04x', (i %% 256)::INTEGER)), NULL] AS li, {'ns': i - 7} AS st, "             \
    "CASE WHEN i = 0 THEN -9223372036854775807 - 1 ELSE i END AS tz FROM range(%d) t(i)"
#define IDS                                                                                        \
    "{id: 1, few: 2, many: 3, li: {__duckdb_field_id: 4, element: 5}, "                            \
    "st: {__duckdb_field_id: 6, ns: 7}, tz: 8}"

static const KnPqColumnType types[] = {{2, KN_PQ_AS_FIXED, 4},
                                       {3, KN_PQ_AS_FIXED, 16},
                                       {5, KN_PQ_AS_FIXED, 2},
                                       {7, KN_PQ_AS_NANOS, 0},
                                       {8, KN_PQ_AS_NANOS_UTC, 0}};

typedef struct Columns {
    const KnPqColumnType *items;
    size_t n;
} Columns;

static const Columns no_types = {0};
static const Columns all_types = {types, 5};
static const Columns nanos_only = {&types[3], 2};

static KnCode write_rows(Bench *b, KnArena *arena, const char *codec, Columns of, KnPqWritten **ret)
{
    KnPqWriteOptions opts = {
        .select_sql = kn_arena_printf(arena, ROWS, N_ROWS),
        .target = path_of(b, codec),
        .field_ids_sql = IDS,
        .codec = codec,
        .row_group_rows = 2048,
        .types = of.items,
        .n_types = of.n,
    };
    size_t n = 0;
    KnCode rc = kn_parquet_write(b->ses, arena, &opts, ret, &n, &b->err);
    if (rc == KN_OK)
        assert_int_equal(n, 1);
    return rc;
}

static void check_sizes(const KnPqWritten *file)
{
    struct stat st;
    assert_int_equal(stat(file->path, &st), 0);
    assert_int_equal(file->size_bytes, st.st_size);
    assert_int_equal(file->n_groups, 3);
    assert_int_equal(file->group_offsets[0], 4);
    for (size_t i = 1; i < file->n_groups; i++)
        assert_true(file->group_offsets[i] > file->group_offsets[i - 1]);
    assert_true(file->group_offsets[file->n_groups - 1] < file->size_bytes);
    assert_int_equal(file->n_resized, 3);
    for (size_t i = 0; i < file->n_resized; i++)
        assert_true(file->resized[i].size_bytes > 0 &&
                    file->resized[i].size_bytes < file->size_bytes);
}

static void check_leaves(Bench *b, KnArena *arena, const char *path)
{
    static const char *const wanted[] = {"id INT64 NULL NULL",
                                         "few FIXED_LEN_BYTE_ARRAY 4 NULL",
                                         "many FIXED_LEN_BYTE_ARRAY 16 NULL",
                                         "element FIXED_LEN_BYTE_ARRAY 2 NULL",
                                         "ns INT64 NULL TIMESTAMP_NS",
                                         "tz INT64 NULL TIMESTAMP WITH TIME ZONE"};
    const char *text = bench_text(
        b,
        "SELECT string_agg(concat_ws(' ', name, type, coalesce(type_length, 'NULL'), CASE WHEN "
        "duckdb_type LIKE 'TIMESTAMP%%' THEN duckdb_type ELSE 'NULL' END), '|') "
        "FROM parquet_schema('%s') WHERE type IS NOT NULL",
        path);
    KnStr rest = kn_str(text);
    for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++)
        assert_non_null(strstr(rest.ptr, wanted[i]));
    KnPqFile *file = NULL;
    assert_ok(b, kn_parquet_footers(b->ses, arena, &path, 1, &file, &b->err));
    assert_true(file->root.children[5].nanos_utc);
    assert_int_equal(file->root.children[3].children[0].field_id, 5);
}

static void fixed_lengths_and_nanoseconds_are_written_in_every_codec(void **state)
{
    static const char *const codecs[] = {"zstd", "snappy", "gzip", "lz4_raw", "uncompressed"};
    Bench *b = *state;
    for (size_t i = 0; i < sizeof(codecs) / sizeof(codecs[0]); i++) {
        KN_ARENA_AUTO arena = kn_arena_new(4096);
        KnPqWritten *file = NULL;
        assert_ok(b, write_rows(b, arena, codecs[i], all_types, &file));
        check_sizes(file);
        check_leaves(b, arena, file->path);
        const char *same = bench_text(
            b,
            "WITH r AS (%s), f AS (SELECT id, few, many, li, {'ns': epoch_ns(st.ns)} AS st FROM "
            "read_parquet('%s')) SELECT (SELECT count(*) FROM f) || ' ' || (SELECT count(*) FROM "
            "(FROM f EXCEPT ALL SELECT id, few, many, li, st FROM r))",
            kn_arena_printf(arena, ROWS, N_ROWS), file->path);
        assert_string_equal(same, "5000 0");
    }
}

static void the_first_nanosecond_has_a_bound(void **state)
{
    Bench *b = *state;
    KN_ARENA_AUTO arena = kn_arena_new(4096);
    KnPqWritten *file = NULL;
    assert_ok(b, write_rows(b, arena, "zstd", all_types, &file));
    for (size_t i = 0; i < file->n_columns; i++) {
        if (strcmp(file->columns[i].path, "tz") == 0)
            assert_string_equal(file->columns[i].min, "-9223372036854775808");
    }
}

static void files_without_such_columns_stay_as_they_are(void **state)
{
    Bench *b = *state;
    KN_ARENA_AUTO arena = kn_arena_new(4096);
    KnPqWritten *file = NULL;
    assert_ok(b, write_rows(b, arena, "zstd", no_types, &file));
    assert_int_equal(file->n_groups, 3);
    assert_int_equal(file->n_resized, 0);
    assert_string_equal(bench_text(b,
                                   "SELECT count(bloom_filter_offset) > 0 FROM "
                                   "parquet_metadata('%s')",
                                   file->path),
                        "true");
    /* Nor does a footer that is replaced forget where the Bloom filters are. */
    assert_ok(b, write_rows(b, arena, "zstd", nanos_only, &file));
    assert_string_equal(bench_text(b,
                                   "SELECT count(bloom_filter_offset) > 0 FROM "
                                   "parquet_metadata('%s')",
                                   file->path),
                        "true");
}

static void a_value_of_another_length_is_told(void **state)
{
    Bench *b = *state;
    KN_ARENA_AUTO arena = kn_arena_new(4096);
    KnPqWritten *file = NULL;
    const KnPqColumnType wrong[] = {{3, KN_PQ_AS_FIXED, 15}};
    assert_int_equal(write_rows(b, arena, "zstd", (Columns){wrong, 1}, &file), KN_E_CORRUPT);
    assert_non_null(strstr(b->err.msg, "a value of 16 bytes in a column of 15"));
    const KnPqColumnType other[] = {{1, KN_PQ_AS_FIXED, 8}};
    assert_int_equal(write_rows(b, arena, "zstd", (Columns){other, 1}, &file), KN_E_CORRUPT);
    assert_non_null(strstr(b->err.msg, "field 1 was written as Parquet type 2"));
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, bench_setup, bench_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(fixed_lengths_and_nanoseconds_are_written_in_every_codec),
        CASE(the_first_nanosecond_has_a_bound),
        CASE(files_without_such_columns_stay_as_they_are),
        CASE(a_value_of_another_length_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
