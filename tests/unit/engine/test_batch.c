/* SPDX-License-Identifier: Apache-2.0 */
/* test_batch.c - columns, nested columns and slices of them against values computed apart. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "unit/engine/support.h"

static KnBatch *one_batch(Bench *b, const char *sql)
{
    KnStream *stream = bench_query(b, "%s", sql);
    KnBatch *batch = NULL;
    assert_ok(b, kn_stream_next(stream, &batch, &b->err));
    assert_non_null(batch);
    kn_stream_close(stream);
    return batch;
}

static void assert_batch_text(KnBatch *batch, const char *want)
{
    KN_BUF_AUTO buf;
    kn_buf_init(&buf, 1 << 20);
    batch_text(&buf, batch);
    assert_string_equal(buf.data, want);
}

static void every_scalar_type_reads_as_declared(void **state)
{
    Bench *b = *state;
    KN_BATCH_AUTO batch = one_batch(
        b, "SELECT true, -8::TINYINT, -16::SMALLINT, -32::INTEGER, -64::BIGINT, 8::UTINYINT, "
           "16::USMALLINT, 32::UINTEGER, 18446744073709551615::UBIGINT, "
           "(-170141183460469231731687303715884105728)::HUGEINT, 1.5::FLOAT, -2.25::DOUBLE, "
           "1.25::DECIMAL(4,2), -12345.67::DECIMAL(9,2), 123456789012.345::DECIMAL(18,3), "
           "-1234567890123456789012345678.5::DECIMAL(38,1), DATE '1970-01-02', TIME '00:00:01', "
           "TIMESTAMP '1970-01-01 00:00:00.000002', TIMESTAMPTZ '1970-01-01 00:00:01+00', "
           "TIMESTAMP_NS '1970-01-01 00:00:00.000000003', 'short', "
           "'longer than twelve bytes', '\\x00\\xFF'::BLOB, "
           "'01234567-89ab-cdef-0123-456789abcdef'::UUID, NULL");
    assert_batch_text(
        batch, "1|-8|-16|-32|-64|8|16|32|18446744073709551615|"
               "-170141183460469231731687303715884105728|1.5|-2.25|125|-1234567|123456789012345|"
               "-12345678901234567890123456785|1|1000000|2|1000000|3|short|"
               "longer than twelve bytes|00ff|0123456789abcdef0123456789abcdef|NULL\n");
}

#define NESTED                                                                                     \
    "SELECT CASE WHEN i % 5 = 0 THEN NULL ELSE {'a': CASE WHEN i % 3 = 0 THEN NULL ELSE i END, "   \
    "'b': {'c': 'text number ' || i, 'k': 42}} END AS s, "                                         \
    "CASE WHEN i % 4 = 0 THEN NULL ELSE [x FOR x IN range(i % 3)] END AS l, "                      \
    "CASE WHEN i % 7 = 0 THEN NULL ELSE MAP {'k' || i: [NULL, {'v': i}]} END AS m "                \
    "FROM range(100) t(i)"

static void nested_row(KnBuf *buf, int i)
{
    if (i % 5 == 0)
        kn_buf_text(buf, "NULL|");
    else if (i % 3 == 0)
        kn_buf_printf(buf, "{a=NULL,b={c=text number %d,k=42}}|", i);
    else
        kn_buf_printf(buf, "{a=%d,b={c=text number %d,k=42}}|", i, i);
    static const char *const lists[] = {"[]", "[0]", "[0,1]"};
    kn_buf_printf(buf, "%s|", i % 4 == 0 ? "NULL" : lists[i % 3]);
    if (i % 7 == 0)
        kn_buf_text(buf, "NULL\n");
    else
        kn_buf_printf(buf, "[{key=k%d,value=[NULL,{v=%d}]}]\n", i, i);
}

static void assert_nested_rows(KnBatch *batch, int first, int count)
{
    KN_BUF_AUTO want;
    kn_buf_init(&want, 1 << 20);
    for (int i = first; i < first + count; i++)
        nested_row(&want, i);
    assert_int_equal(kn_batch_rows(batch), count);
    assert_batch_text(batch, want.data);
}

static void slices_of_nested_columns_show_their_own_rows(void **state)
{
    KN_BATCH_AUTO batch = one_batch(*state, NESTED);
    assert_nested_rows(batch, 0, 100);
    for (size_t first = 0; first < 100; first += 9) {
        size_t count = 100 - first < 13 ? 100 - first : 13;
        KN_BATCH_AUTO slice = kn_batch_slice(batch, first, count);
        assert_nested_rows(slice, (int)first, (int)count);
        KN_BATCH_AUTO inner = kn_batch_slice(slice, count / 2, count - count / 2);
        assert_nested_rows(inner, (int)(first + count / 2), (int)(count - count / 2));
    }
    KN_BATCH_AUTO empty = kn_batch_slice(batch, 100, 0);
    assert_int_equal(kn_batch_rows(empty), 0);
}

static void a_slice_outlives_batch_and_stream(void **state)
{
    KnBatch *batch = one_batch(*state, NESTED);
    KN_BATCH_AUTO slice = kn_batch_slice(batch, 50, 20);
    kn_batch_unref(batch);
    bench_exec(*state, "SELECT count(*) FROM range(100000)");
    assert_nested_rows(slice, 50, 20);
}

static void projection_keeps_the_first_columns(void **state)
{
    KN_BATCH_AUTO batch = one_batch(*state, "SELECT i, i * 2, i * 3 FROM range(4) t(i)");
    KN_BATCH_AUTO slice = kn_batch_slice(batch, 1, 3);
    KN_BATCH_AUTO two = kn_batch_project(slice, 2);
    assert_int_equal(kn_batch_n_columns(two), 2);
    assert_batch_text(two, "1|2\n2|4\n3|6\n");
    KN_BATCH_AUTO ref = kn_batch_ref(two);
    assert_ptr_equal(ref, two);
}

static void bytes_count_the_values_of_the_window_only(void **state)
{
    KN_BATCH_AUTO batch =
        one_batch(*state, "SELECT i::INTEGER, repeat('x', i::INTEGER), [i, i] FROM range(10) t(i)");
    KN_BATCH_AUTO slice = kn_batch_slice(batch, 4, 2);
    /* two integers, texts of 4 and 5 bytes, two list heads of 16 with two numbers of 8 each */
    assert_int_equal(kn_batch_bytes(slice), 2 * 4 + 9 + 2 * (16 + 16));
}

static void nulls_across_validity_words_are_found_in_slices(void **state)
{
    KN_BATCH_AUTO batch =
        one_batch(*state, "SELECT CASE WHEN i % 61 = 0 THEN NULL ELSE i END FROM range(2000) t(i)");
    for (size_t first = 0; first < 2000; first += 37) {
        KN_BATCH_AUTO slice = kn_batch_slice(batch, first, 2000 - first);
        KnVector vec = kn_batch_vector(slice, 0);
        for (size_t row = 0; row < kn_batch_rows(slice); row++) {
            size_t i = first + row;
            assert_int_equal(kn_vector_is_null(&vec, row), i % 61 == 0);
            if (i % 61)
                assert_true(kn_vector_int128(&vec, row) == (__int128)i);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(every_scalar_type_reads_as_declared, bench_setup,
                                        bench_teardown),
        cmocka_unit_test_setup_teardown(slices_of_nested_columns_show_their_own_rows, bench_setup,
                                        bench_teardown),
        cmocka_unit_test_setup_teardown(a_slice_outlives_batch_and_stream, bench_setup,
                                        bench_teardown),
        cmocka_unit_test_setup_teardown(projection_keeps_the_first_columns, bench_setup,
                                        bench_teardown),
        cmocka_unit_test_setup_teardown(bytes_count_the_values_of_the_window_only, bench_setup,
                                        bench_teardown),
        cmocka_unit_test_setup_teardown(nulls_across_validity_words_are_found_in_slices,
                                        bench_setup, bench_teardown),
    };
    return cmocka_run_group_tests_name("engine.batch", tests, NULL, NULL);
}
