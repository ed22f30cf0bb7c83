/* SPDX-License-Identifier: Apache-2.0 */
/* test_clock.c - times as text, both ways. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"

static void milliseconds_are_written_as_iso_8601(void **state)
{
    (void)state;
    static const struct {
        int64_t ms;
        const char *text;
    } cases[] = {
        {0, "1970-01-01T00:00:00.000Z"},
        {-1, "1969-12-31T23:59:59.999Z"},
        {1769860800123, "2026-01-31T12:00:00.123Z"},
        {951782400000, "2000-02-29T00:00:00.000Z"},
        {-62135596800000, "0001-01-01T00:00:00.000Z"},
        {-62167219200001, "-0001-12-31T23:59:59.999Z"},
        {253402300800000, "+10000-01-01T00:00:00.000Z"},
        {INT64_MAX, "+292278994-08-17T07:12:55.807Z"},
        {INT64_MIN, "-292275055-05-16T16:47:04.192Z"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i) {
        char out[32];
        assert_string_equal(kn_clock_format_ms(cases[i].ms, out), cases[i].text);
    }
}

static void times_are_read_in_every_documented_form(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t ms;
    } cases[] = {
        {"2026-01-31", 1769817600000},
        {"2026-01-31T12:00:00.123Z", 1769860800123},
        {"2026-01-31 12:00:00.123456", 1769860800123},
        {"2026-01-31T12:00", 1769860800000},
        {"2026-01-31t12:00:00z", 1769860800000},
        {"2026-01-31T12:00:00+01:30", 1769855400000},
        {"2026-01-31T12:00:00-05:00", 1769878800000},
        {"2026-01-31T12:00:00.5Z", 1769860800500},
        {"1769860800123", 1769860800123},
        {"-1", -1},
        {"2000-02-29", 951782400000},
        {"0000-01-01", -62167219200000},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i) {
        int64_t ms = 0;
        assert_int_equal(kn_clock_parse_ms(cases[i].text, &ms, NULL), KN_OK);
        assert_true(ms == cases[i].ms);
    }
}

static void what_is_no_time_is_refused(void **state)
{
    (void)state;
    static const char *const wrong[] = {"",
                                        "yesterday",
                                        "2026-1-31",
                                        "2026-02-29",
                                        "2026-13-01",
                                        "2026-00-10",
                                        "2026-01-00",
                                        "2026-01-31T",
                                        "2026-01-31T24:00",
                                        "2026-01-31T12:60",
                                        "2026-01-31T12:00:60",
                                        "2026-01-31T12:00:00.",
                                        "2026-01-31T12:00:00+1",
                                        "2026-01-31T12:00:00Zx",
                                        "2026-01-31x",
                                        "99999999999999999999"};
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); ++i) {
        int64_t ms = 7;
        KnErr err = {0};
        assert_int_equal(kn_clock_parse_ms(wrong[i], &ms, &err), KN_E_INVAL);
        assert_int_equal(ms, 7);
        assert_non_null(strstr(err.msg, "is not a time: give"));
    }
}

static void text_and_milliseconds_agree_over_four_centuries(void **state)
{
    (void)state;
    for (int64_t day = -80000; day < 80000; day += 13) {
        char out[32];
        int64_t ms = day * 86400000 + 12345678, back = 0;
        assert_int_equal(kn_clock_parse_ms(kn_clock_format_ms(ms, out), &back, NULL), KN_OK);
        assert_true(ms == back);
    }
}

static void both_clocks_go_forward(void **state)
{
    (void)state;
    int64_t a = kn_clock_mono_us();
    assert_true(kn_clock_mono_us() >= a);
    assert_true(kn_clock_wall_ms() > INT64_C(1700000000000));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(milliseconds_are_written_as_iso_8601),
        cmocka_unit_test(times_are_read_in_every_documented_form),
        cmocka_unit_test(what_is_no_time_is_refused),
        cmocka_unit_test(text_and_milliseconds_agree_over_four_centuries),
        cmocka_unit_test(both_clocks_go_forward),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
