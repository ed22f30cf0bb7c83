/* SPDX-License-Identifier: Apache-2.0 */
/* test_theta.c - the hash against published answers, the estimate against the truth, the bytes
 * against those of DataSketches (made by its Java library 6.2). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "codec/theta.h"

static void the_hash_is_murmur3_x64_128(void **state)
{
    static const struct {
        const char *text;
        uint64_t seed, first, second;
    } cases[] = {
        {"", 0, 0, 0},
        {"The quick brown fox jumps over the lazy dog", 0, 0xe34bbc7bbc071b6cULL,
         0x7a433ca9c49a9347ULL},
        {"The quick brown fox jumps over the lazy eog", 0, 0x362108102c62d1c9ULL,
         0x3285cd100292b305ULL},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        uint64_t got[2];
        kn_murmur3_128(cases[i].text, strlen(cases[i].text), cases[i].seed, got);
        assert_int_equal(got[0], cases[i].first);
        assert_int_equal(got[1], cases[i].second);
    }
}

static void add_numbers(KnTheta *theta, int64_t from, int64_t to)
{
    for (int64_t i = from; i < to; i++)
        kn_theta_add(theta, (KnStr){(const char *)&i, sizeof(i)});
}

static void few_values_are_counted_exactly(void **state)
{
    KnTheta *theta = kn_theta_new();
    (void)state;

    assert_true(kn_theta_estimate(theta) == 0);
    add_numbers(theta, 0, KN_THETA_NOMINAL);
    add_numbers(theta, 0, KN_THETA_NOMINAL);
    kn_theta_add(theta, (KnStr){"", 0});
    assert_true(kn_theta_is_exact(theta));
    assert_true(kn_theta_estimate(theta) == KN_THETA_NOMINAL);
    add_numbers(theta, KN_THETA_NOMINAL, KN_THETA_NOMINAL + 1);
    assert_false(kn_theta_is_exact(theta));
    kn_theta_free(theta);
}

static void many_values_are_estimated_within_five_percent(void **state)
{
    (void)state;
    for (int64_t n = 5000; n < 2000000; n *= 3) {
        KnTheta *theta = kn_theta_new();
        add_numbers(theta, -n, 0);
        add_numbers(theta, -n / 2, 0);
        double estimate = kn_theta_estimate(theta);
        assert_true(estimate > 0.95 * (double)n && estimate < 1.05 * (double)n);
        kn_theta_free(theta);
    }
}

static void the_order_of_values_does_not_matter(void **state)
{
    KnTheta *up = kn_theta_new(), *down = kn_theta_new();
    KN_BUF_AUTO a = {0};
    KN_BUF_AUTO b = {0};
    (void)state;

    kn_buf_init(&a, 1 << 20);
    kn_buf_init(&b, 1 << 20);
    add_numbers(up, 0, 100000);
    for (int64_t i = 100000; i-- > 0;)
        add_numbers(down, i, i + 1);
    kn_theta_encode(up, &a);
    kn_theta_encode(down, &b);
    assert_int_equal(a.len, 24 + 8 * KN_THETA_NOMINAL);
    assert_int_equal(a.len, b.len);
    assert_memory_equal(a.data, b.data, a.len);
    kn_theta_free(up);
    kn_theta_free(down);
}

static void check_hex(KnTheta *theta, const char *want)
{
    KN_BUF_AUTO buf = {0};
    char text[256] = "";

    kn_buf_init(&buf, 1 << 20);
    kn_theta_encode(theta, &buf);
    for (size_t i = 0; i < buf.len && i < 100; i++)
        (void)snprintf(text + 2 * i, 3, "%02x", (uint8_t)buf.data[i]);
    assert_string_equal(text, want);
}

static void the_bytes_are_those_of_datasketches(void **state)
{
    KnTheta *theta = kn_theta_new();
    (void)state;

    check_hex(theta, "01030300001e0000");
    add_numbers(theta, 1, 2);
    check_hex(theta, "01030300003acc93"
                     "15f97dcbbd86a105");
    kn_theta_add(theta, (KnStr){"abc", 3});
    check_hex(theta, "02030300001acc93020000000000803f"
                     "15f97dcbbd86a105"
                     "90c643ec3689ab65");
    kn_theta_free(theta);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_hash_is_murmur3_x64_128),
        cmocka_unit_test(few_values_are_counted_exactly),
        cmocka_unit_test(many_values_are_estimated_within_five_percent),
        cmocka_unit_test(the_order_of_values_does_not_matter),
        cmocka_unit_test(the_bytes_are_those_of_datasketches),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
