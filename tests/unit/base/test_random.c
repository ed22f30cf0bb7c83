/* SPDX-License-Identifier: Apache-2.0 */
/* test_random.c - the form of ids, and the repeatable generator. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/random.h"

static void ids_are_positive_and_differ(void **state)
{
    (void)state;
    int64_t last = 0;
    for (int i = 0; i < 1000; ++i) {
        int64_t id = kn_random_id();
        assert_true(id > 0);
        assert_true(id != last);
        last = id;
    }
}

static bool is_uuid(const char *text, char version)
{
    if (strlen(text) != 36 || text[14] != version || !strchr("89ab", text[19]))
        return false;
    for (int i = 0; i < 36; ++i) {
        bool dash = i == 8 || i == 13 || i == 18 || i == 23;
        if (dash ? text[i] != '-' : !strchr("0123456789abcdef", text[i]))
            return false;
    }
    return true;
}

static void uuids_have_their_version_and_variant(void **state)
{
    (void)state;
    char a[37], b[37];
    for (int i = 0; i < 100; ++i) {
        assert_true(is_uuid(kn_random_uuid4(a), '4'));
        assert_true(is_uuid(kn_random_uuid7(b), '7'));
        char again[37];
        assert_string_not_equal(kn_random_uuid4(again), a);
    }
}

static void version_7_starts_with_the_time(void **state)
{
    (void)state;
    char text[37];
    int64_t before = kn_clock_wall_ms();
    (void)kn_random_uuid7(text);
    int64_t after = kn_clock_wall_ms();
    int64_t ms = 0;
    for (int i = 0; i < 13; ++i)
        if (text[i] != '-')
            ms = ms * 16 + (strchr("0123456789abcdef", text[i]) - "0123456789abcdef");
    assert_true(ms >= before && ms <= after);
}

static void the_generator_is_splitmix64(void **state)
{
    (void)state;
    KnRng rng = {1234567};
    /* the reference values of the public-domain splitmix64.c */
    assert_true(kn_rng_next(&rng) == 6457827717110365317U);
    assert_true(kn_rng_next(&rng) == 3203168211198807973U);
    assert_true(kn_rng_next(&rng) == 9817491932198370423U);
}

static void draws_stay_in_their_bounds(void **state)
{
    (void)state;
    KnRng rng = {7};
    bool seen[10] = {0};
    for (int i = 0; i < 1000; ++i) {
        uint64_t v = kn_rng_below(&rng, 10);
        assert_true(v < 10);
        seen[v] = true;
        double u = kn_rng_unit(&rng);
        assert_true(u >= 0 && u < 1);
    }
    for (int i = 0; i < 10; ++i)
        assert_true(seen[i]);
    assert_int_equal(kn_rng_below(&rng, 0), 0);
    assert_int_equal(kn_rng_below(&rng, 1), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ids_are_positive_and_differ),
        cmocka_unit_test(uuids_have_their_version_and_variant),
        cmocka_unit_test(version_7_starts_with_the_time),
        cmocka_unit_test(the_generator_is_splitmix64),
        cmocka_unit_test(draws_stay_in_their_bounds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
