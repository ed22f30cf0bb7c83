/* SPDX-License-Identifier: Apache-2.0 */
/* test_fingerprint.c - fingerprints of rows: the same for the same rows, different for others. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/fingerprint.h"
#include "unit/engine/support.h"

enum { MAX_COLUMNS = 16, MAX_ROWS = 2048 };

static KnFingerprint prints[MAX_ROWS];

/* Of all rows of a query, into prints. */
static size_t print_rows(Bench *b, uint64_t seed, const char *sql)
{
    KnStream *stream = bench_query(b, "%s", sql);
    KnBatch *batch = NULL;
    size_t total = 0;
    for (;;) {
        assert_ok(b, kn_stream_next(stream, &batch, &b->err));
        if (!batch)
            break;
        KnVector columns[MAX_COLUMNS];
        size_t n = kn_batch_n_columns(batch);
        assert_in_range(n, 1, MAX_COLUMNS);
        assert_in_range(total + kn_batch_rows(batch), 1, MAX_ROWS);
        for (size_t c = 0; c < n; c++)
            columns[c] = kn_batch_vector(batch, c);
        assert_ok(b, kn_fingerprint_rows(columns, n, kn_batch_rows(batch), seed, prints + total,
                                         &b->err));
        total += kn_batch_rows(batch);
        batch = kn_batch_unref(batch);
    }
    kn_stream_close(stream);
    return total;
}

static bool same(size_t i, size_t j)
{
    return prints[i].a == prints[j].a && prints[i].b == prints[j].b;
}

/* No half of a fingerprint is that of another row. */
static void assert_all_differ(size_t n)
{
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < i; j++)
            if (prints[i].a == prints[j].a || prints[i].b == prints[j].b)
                fail_msg("rows %zu and %zu are %016" PRIx64 " %016" PRIx64, j, i, prints[i].a,
                         prints[i].b);
}

static void numbers_that_differ_have_other_fingerprints(void **state)
{
    static const char *const types[] = {
        "TINYINT",   "SMALLINT",     "INTEGER",       "BIGINT",        "HUGEINT", "UTINYINT",
        "USMALLINT", "UINTEGER",     "UBIGINT",       "FLOAT",         "DOUBLE",  "DECIMAL(4,1)",
        "DATE",      "DECIMAL(9,1)", "DECIMAL(18,1)", "DECIMAL(38,1)", NULL};
    for (size_t i = 0; types[i]; i++) {
        char sql[256];
        const char *from = strcmp(types[i], "DATE") == 0 ? "DATE '2020-01-01' + i" : "i";
        assert_in_range(snprintf(sql, sizeof(sql),
                                 "SELECT CASE WHEN i = 100 THEN NULL ELSE (%s)::%s END FROM "
                                 "(SELECT range::INT AS i FROM range(101))",
                                 from, types[i]),
                        1, sizeof(sql) - 1);
        assert_int_equal(print_rows(*state, 1, sql), 101);
        assert_all_differ(101);
    }
}

static void both_words_of_wide_values_count(void **state)
{
    assert_int_equal(print_rows(*state, 1,
                                "SELECT * FROM (VALUES (1::HUGEINT), (18446744073709551617), "
                                "(18446744073709551616), (0), (-1), (NULL)) t(h)"),
                     6);
    assert_all_differ(6);
    assert_int_equal(print_rows(*state, 1,
                                "SELECT * FROM (VALUES "
                                "('00000000-0000-0000-0000-000000000001'::UUID), "
                                "('10000000-0000-0000-0000-000000000000'::UUID), (NULL)) t(u)"),
                     3);
    assert_all_differ(3);
}

static void texts_of_all_lengths_differ(void **state)
{
    /* Each text, the same with its last byte changed, and one with zero bytes instead of letters.
     */
    assert_int_equal(print_rows(*state, 1,
                                "SELECT repeat('x', i::INT) FROM range(60) t(i) UNION ALL "
                                "SELECT repeat('x', i::INT) || 'y' FROM range(59) t(i) UNION ALL "
                                "SELECT repeat(chr(0), 1 + i::INT) FROM range(59) t(i) UNION ALL "
                                "SELECT NULL"),
                     60 + 59 + 59 + 1);
    assert_all_differ(60 + 59 + 59 + 1);
}

static void the_same_text_is_the_same_wherever_it_lies(void **state)
{
    size_t n = print_rows(*state, 1,
                          "SELECT repeat('ab', i::INT) FROM range(40) t(i) UNION ALL "
                          "SELECT left(repeat('ab', i::INT) || 'tail', 2 * i::INT) FROM range(40) "
                          "t(i)");
    assert_int_equal(n, 80);
    for (size_t i = 0; i < 40; i++)
        assert_true(same(i, i + 40));
}

static void columns_do_not_run_together(void **state)
{
    assert_int_equal(print_rows(*state, 1,
                                "SELECT * FROM (VALUES ('a', 'bc'), ('ab', 'c'), ('abc', ''), "
                                "('', 'abc'), (NULL, 'abc'), ('abc', NULL), (NULL, NULL), "
                                "('bc', 'a'), ('abcdefghabcdefgh', 'i'), "
                                "('abcdefgh', 'abcdefghi')) t(x, y)"),
                     10);
    assert_all_differ(10);
}

static void nan_is_one_value_and_zeros_are_two(void **state)
{
    assert_int_equal(
        print_rows(*state, 1,
                   "SELECT * FROM (VALUES ('nan'::DOUBLE, 'nan'::FLOAT), (-'nan'::DOUBLE, "
                   "-'nan'::FLOAT), (0.0, 0.0), (-0.0::DOUBLE, 0.0), (0.0, -0.0::FLOAT), "
                   "('inf', '-inf'), (NULL, NULL)) t(d, f)"),
        7);
    assert_true(same(0, 1));
    prints[0] = (KnFingerprint){7, 7};
    assert_all_differ(7);
}

static void seeds_give_other_fingerprints(void **state)
{
    static const char sql[] = "SELECT i, 'text ' || i FROM range(50) t(i) UNION ALL SELECT NULL, "
                              "NULL";
    KnFingerprint first[51];
    assert_int_equal(print_rows(*state, 1, sql), 51);
    memcpy(first, prints, sizeof(first));
    assert_int_equal(print_rows(*state, 1, sql), 51);
    assert_memory_equal(first, prints, sizeof(first));
    assert_int_equal(print_rows(*state, 2, sql), 51);
    for (size_t i = 0; i < 51; i++)
        assert_true(first[i].a != prints[i].a && first[i].b != prints[i].b);
}

static void bits_are_evenly_spread(void **state)
{
    assert_int_equal(print_rows(*state, 1, "SELECT i FROM range(2000) t(i)"), 2000);
    for (int bit = 0; bit < 64; bit++) {
        int a = 0;
        int b = 0;
        for (size_t i = 0; i < 2000; i++) {
            a += (int)(prints[i].a >> bit & 1);
            b += (int)(prints[i].b >> bit & 1);
        }
        assert_in_range(a, 850, 1150); /* 6 standard deviations */
        assert_in_range(b, 850, 1150);
    }
}

static void nested_columns_are_refused(void **state)
{
    Bench *b = *state;
    KnStream *stream = bench_query(b, "SELECT [1, 2] AS l");
    KnBatch *batch = NULL;
    assert_ok(b, kn_stream_next(stream, &batch, &b->err));
    KnVector column = kn_batch_vector(batch, 0);
    assert_code(b, kn_fingerprint_rows(&column, 1, 1, 0, prints, &b->err), KN_E_UNSUPPORTED);
    kn_batch_unref(batch);
    kn_stream_close(stream);
}

#define CASE(fn) cmocka_unit_test_setup_teardown(fn, bench_setup, bench_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(numbers_that_differ_have_other_fingerprints),
        CASE(both_words_of_wide_values_count),
        CASE(texts_of_all_lengths_differ),
        CASE(the_same_text_is_the_same_wherever_it_lies),
        CASE(columns_do_not_run_together),
        CASE(nan_is_one_value_and_zeros_are_two),
        CASE(seeds_give_other_fingerprints),
        CASE(bits_are_evenly_spread),
        CASE(nested_columns_are_refused),
    };
    return cmocka_run_group_tests_name("engine.fingerprint", tests, NULL, NULL);
}
