/* SPDX-License-Identifier: Apache-2.0 */
/* test_str.c - numbers, sizes, UTF-8, distance, at their edges. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/str.h"

static void comparison_is_by_bytes(void **state)
{
    (void)state;
    assert_true(kn_str_eq(kn_str("ab"), kn_str("ab")));
    assert_false(kn_str_eq(kn_str("ab"), kn_str("abc")));
    assert_true(kn_str_eq(kn_str(NULL), kn_str("")));
    assert_true(kn_str_eq_nocase(kn_str("AbZ"), kn_str("aBz")));
    assert_false(kn_str_eq_nocase(kn_str("@"), kn_str("`")));
    assert_true(kn_str_starts_with(kn_str("abc"), kn_str("ab")));
    assert_false(kn_str_starts_with(kn_str("a"), kn_str("ab")));
    assert_true(kn_str_ends_with(kn_str("abc"), kn_str("bc")));
    assert_true(kn_str_ends_with(kn_str(NULL), kn_str("")));
    assert_false(kn_str_ends_with(kn_str("c"), kn_str("bc")));
}

static void whole_numbers_are_read_whole_or_not_at_all(void **state)
{
    (void)state;
    int64_t v = 7;
    assert_true(kn_str_to_i64(kn_str("9223372036854775807"), &v) && v == INT64_MAX);
    assert_true(kn_str_to_i64(kn_str("-9223372036854775808"), &v) && v == INT64_MIN);
    assert_true(kn_str_to_i64(kn_str("-0"), &v) && v == 0);
    v = 7;
    static const char *const wrong[] = {"",
                                        "-",
                                        "+1",
                                        " 1",
                                        "1 ",
                                        "1.0",
                                        "x",
                                        "--1",
                                        "9223372036854775808",
                                        "-9223372036854775809",
                                        "99999999999999999999999"};
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); ++i)
        assert_false(kn_str_to_i64(kn_str(wrong[i]), &v));
    assert_int_equal(v, 7);
}

static void doubles_are_decimal_and_finite(void **state)
{
    (void)state;
    double v = 7;
    assert_true(kn_str_to_double(kn_str("-1.5e3"), &v) && v == -1500);
    assert_true(kn_str_to_double((KnStr){"2.55", 3}, &v) && v == 2.5);
    v = 7;
    static const char *const wrong[] = {"",      "nan",   "inf", "0x10", " 1",
                                        "1e999", "1.5.2", "e",   "1,5"};
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); ++i)
        assert_false(kn_str_to_double(kn_str(wrong[i]), &v));
    assert_false(kn_str_to_double((KnStr){"1\0", 2}, &v));
    assert_true(v == 7);
}

static void sizes_have_binary_units(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        uint64_t bytes;
    } right[] = {{"64", 64},
                 {"0", 0},
                 {"64k", 65536},
                 {"64MiB", 64U << 20},
                 {"1.5GB", 3ULL << 29},
                 {"1 kb", 1024},
                 {"12B", 12},
                 {"2T", 2ULL << 40},
                 {"0.5k", 512},
                 {"15e", 15ULL << 60},
                 {"15.999999999999999E", UINT64_MAX - 1152}};
    for (size_t i = 0; i < sizeof(right) / sizeof(right[0]); ++i) {
        uint64_t v = 0;
        assert_true(kn_str_to_bytes(kn_str(right[i].text), &v));
        assert_true(v == right[i].bytes || i == 10); /* the last only has to fit */
    }
    static const char *const wrong[] = {"",   "k",   "-1",    "1x",  "1kk",
                                        "1.", ".5k", "1kiB ", "16E", "9999999999999999999"};
    uint64_t v = 7;
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); ++i)
        assert_false(kn_str_to_bytes(kn_str(wrong[i]), &v));
    assert_int_equal(v, 7);
}

static void utf8_is_checked_by_the_table_of_well_formed_sequences(void **state)
{
    (void)state;
    assert_true(kn_str_is_utf8(kn_str("")));
    assert_true(kn_str_is_utf8(kn_str("a\xc2\x80\xdf\xbf\xe0\xa0\x80\xed\x9f\xbf\xee\x80\x80"
                                      "\xf0\x90\x80\x80\xf4\x8f\xbf\xbf")));
    static const char *const wrong[] = {"\x80",
                                        "\xc0\x80",
                                        "\xc1\xbf",
                                        "\xc2",
                                        "\xe0\x9f\xbf",
                                        "\xed\xa0\x80",
                                        "\xe2\x82",
                                        "\xf0\x8f\xbf\xbf",
                                        "\xf4\x90\x80\x80",
                                        "\xf5\x80\x80\x80",
                                        "\xff",
                                        "\xe2\x82\x41"};
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); ++i)
        assert_false(kn_str_is_utf8(kn_str(wrong[i])));
    assert_int_equal(kn_str_utf8_len(kn_str("\xe2\x82\xac"
                                            "a")),
                     3);
    assert_int_equal(kn_str_utf8_len(kn_str("\xe2\x82")), 0);
    assert_int_equal(kn_str_utf8_len(kn_str("")), 0);
}

static void distance_counts_edits_and_swaps(void **state)
{
    (void)state;
    assert_int_equal(kn_str_distance(kn_str(""), kn_str("")), 0);
    assert_int_equal(kn_str_distance(kn_str("abc"), kn_str("")), 3);
    assert_int_equal(kn_str_distance(kn_str("kitten"), kn_str("sitting")), 3);
    assert_int_equal(kn_str_distance(kn_str("tabel"), kn_str("table")), 1);
    assert_int_equal(kn_str_distance(kn_str("ca"), kn_str("ac")), 1);
    char long_text[65];
    memset(long_text, 'a', sizeof(long_text));
    assert_true(kn_str_distance((KnStr){long_text, 65}, kn_str("a")) == SIZE_MAX);
    assert_int_equal(kn_str_distance((KnStr){long_text, 64}, kn_str("a")), 63);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(comparison_is_by_bytes),
        cmocka_unit_test(whole_numbers_are_read_whole_or_not_at_all),
        cmocka_unit_test(doubles_are_decimal_and_finite),
        cmocka_unit_test(sizes_have_binary_units),
        cmocka_unit_test(utf8_is_checked_by_the_table_of_well_formed_sequences),
        cmocka_unit_test(distance_counts_edits_and_swaps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
