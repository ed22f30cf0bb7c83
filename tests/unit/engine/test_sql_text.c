/* SPDX-License-Identifier: Apache-2.0 */
/* test_sql_text.c - quoting, checked by the engine itself. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/parquet.h"
#include "unit/engine/support.h"

static void texts_come_back_as_they_went_in(void **state)
{
    static const char *const texts[] = {"",           "plain",          "it's",
                                        "''",         "back\\slash\\n", "a\nb\tc",
                                        "\"double\"", "%s $1 ? ; --",   "z\xc3\xbcrich"};
    KN_BUF_AUTO sql;
    kn_buf_init(&sql, 4096);
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        kn_buf_reset(&sql);
        kn_buf_text(&sql, "SELECT ");
        kn_sql_text(&sql, kn_str(texts[i]));
        assert_string_equal(bench_text(*state, "%s", sql.data), texts[i]);
    }
}

static void names_come_back_as_they_went_in(void **state)
{
    static const char *const names[] = {"a b", "quo\"te", "\"\"", "select", "it's", "dot.ted"};
    KN_BUF_AUTO sql;
    kn_buf_init(&sql, 4096);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        kn_buf_reset(&sql);
        kn_buf_text(&sql, "SELECT 1 AS ");
        kn_sql_ident(&sql, kn_str(names[i]));
        KnStream *stream = bench_query(*state, "%s", sql.data);
        assert_string_equal(kn_stream_column_name(stream, 0), names[i]);
        kn_stream_close(stream);
    }
}

static void every_byte_fits_a_blob(void **state)
{
    char bytes[256];
    for (int i = 0; i < 256; i++)
        bytes[i] = (char)i;
    KN_BUF_AUTO sql;
    kn_buf_init(&sql, 4096);
    kn_buf_text(&sql, "SELECT ");
    kn_sql_blob(&sql, (KnStr){bytes, sizeof(bytes)});
    KnStream *stream = bench_query(*state, "%s", sql.data);
    KN_BATCH_AUTO batch = NULL;
    KnErr err;
    assert_int_equal(kn_stream_next(stream, &batch, &err), KN_OK);
    KnVector vec = kn_batch_vector(batch, 0);
    KnStr got = kn_vector_str(&vec, 0);
    assert_int_equal(got.len, sizeof(bytes));
    assert_memory_equal(got.ptr, bytes, sizeof(bytes));
    kn_stream_close(stream);
}

/* Files whose names are patterns of one another: each is read alone. */
static const char *const odd_names[] = {
    "a b[1]*?.parquet",     "a b1xx.parquet",        "it's \"q\".parquet",
    "back\\slash.parquet",  "back\\sl[a]sh.parquet", "back[sl[a]sh.parquet",
    "back]sl[a]sh.parquet", "backXsl[a]sh.parquet",  "star*.parquet",
    "starry.parquet",       "[!x].parquet",          "y.parquet",
    "**.parquet",           "k=v.parquet",           "]x[.parquet",
};
enum { N_ODD = sizeof(odd_names) / sizeof(odd_names[0]) };

static const char *odd_path(const Bench *b, size_t i)
{
    static char path[N_ODD][128];
    (void)snprintf(path[i], sizeof(path[i]), "%s/%s", b->dir, odd_names[i]);
    return path[i];
}

static void write_odd_files(Bench *b)
{
    KN_BUF_AUTO sql;
    kn_buf_init(&sql, 4096);
    for (size_t i = 0; i < N_ODD; i++) {
        kn_buf_reset(&sql);
        kn_buf_printf(&sql, "COPY (SELECT %zu AS n) TO ", i);
        kn_sql_text(&sql, kn_str(odd_path(b, i)));
        kn_buf_text(&sql, " (FORMAT parquet)");
        bench_exec(b, "%s", sql.data);
    }
}

static void a_path_names_its_file_and_no_other(void **state)
{
    Bench *b = *state;
    write_odd_files(b);
    KN_BUF_AUTO sql;
    kn_buf_init(&sql, 4096);
    for (size_t i = 0; i < N_ODD; i++) {
        const char *path = odd_path(b, i);
        kn_buf_reset(&sql);
        kn_buf_text(&sql, "SELECT string_agg(n::VARCHAR || filename) FROM ");
        kn_parquet_scan_sql(&sql, &path, 1);
        char want[160];
        (void)snprintf(want, sizeof(want), "%zu%s", i, path);
        assert_string_equal(bench_text(b, "%s", sql.data), want);
    }
}

static void folders_with_glob_characters_and_equals_signs_are_plain_folders(void **state)
{
    Bench *b = *state;
    KnErr err;
    bench_exec(b,
               "COPY (SELECT 5 AS p, 7 AS v) TO '%s/k[1]=x' (FORMAT parquet, PARTITION_BY (p), "
               "FILENAME_PATTERN 'f{i}')",
               b->dir);
    char path[128];
    (void)snprintf(path, sizeof(path), "%s/k[1]=x/p=5/f0.parquet", b->dir);
    const char *paths[] = {path, path};
    KN_BUF_AUTO sql;
    kn_buf_init(&sql, 4096);
    kn_buf_text(&sql, "SELECT * FROM ");
    kn_parquet_scan_sql(&sql, paths, 2);
    KnStream *stream = bench_query(b, "%s", sql.data);
    assert_int_equal(kn_stream_n_columns(stream), 1);
    KN_BATCH_AUTO batch = NULL;
    assert_int_equal(kn_stream_next(stream, &batch, &err), KN_OK);
    assert_non_null(batch);
    kn_stream_close(stream);
}

static void scans_keep_the_order_of_files_and_rows(void **state)
{
    Bench *b = *state;
    char paths[3][128];
    const char *list[3];
    for (int i = 0; i < 3; i++) {
        (void)snprintf(paths[i], sizeof(paths[i]), "%s/%d.parquet", b->dir, i);
        list[2 - i] = paths[i];
        bench_exec(b,
                   "COPY (SELECT r FROM range(300000) t(r)) TO '%s' (FORMAT parquet, "
                   "ROW_GROUP_SIZE 20480)",
                   paths[i]);
    }
    KN_BUF_AUTO sql;
    kn_buf_init(&sql, 4096);
    kn_buf_text(&sql, "SELECT file_index, file_row_number, r FROM ");
    kn_parquet_scan_sql(&sql, list, 3);
    kn_buf_text(&sql, " WHERE r % 3 <> 1");
    KnStream *stream = bench_query(b, "%s", sql.data);
    __int128 last = -1;
    for (;;) {
        KN_BATCH_AUTO batch = NULL;
        assert_ok(b, kn_stream_next(stream, &batch, &b->err));
        if (!batch)
            break;
        KnVector file = kn_batch_vector(batch, 0);
        KnVector pos = kn_batch_vector(batch, 1);
        KnVector value = kn_batch_vector(batch, 2);
        for (size_t i = 0; i < kn_batch_rows(batch); i++) {
            __int128 at = kn_vector_int128(&file, i) * 300000 + kn_vector_int128(&pos, i);
            assert_true(at > last);
            assert_true(kn_vector_int128(&pos, i) == kn_vector_int128(&value, i));
            last = at;
        }
    }
    assert_true(last == 3 * 300000 - 1);
    kn_stream_close(stream);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, bench_setup, bench_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(texts_come_back_as_they_went_in),
        CASE(names_come_back_as_they_went_in),
        CASE(every_byte_fits_a_blob),
        CASE(a_path_names_its_file_and_no_other),
        CASE(folders_with_glob_characters_and_equals_signs_are_plain_folders),
        CASE(scans_keep_the_order_of_files_and_rows),
    };
    return cmocka_run_group_tests_name("engine.sql_text", tests, NULL, NULL);
}
