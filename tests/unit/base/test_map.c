/* SPDX-License-Identifier: Apache-2.0 */
/* test_map.c - finding, growth, order, odd keys. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/map.h"

static void keys_are_found_after_much_growth_in_order_of_insertion(void **state)
{
    (void)state;
    KN_MAP_AUTO map = kn_map_new();
    static int values[10000];
    char key[16];
    bool is_new;
    for (int i = 0; i < 10000; ++i) {
        int n = snprintf(key, sizeof(key), "k%d", i);
        void **slot = kn_map_get_or_add(map, (KnStr){key, (size_t)n}, &is_new);
        assert_true(is_new);
        assert_null(*slot);
        *slot = &values[i];
    }
    assert_int_equal(kn_map_count(map), 10000);
    for (int i = 0; i < 10000; ++i) {
        (void)snprintf(key, sizeof(key), "k%d", i);
        assert_ptr_equal(kn_map_find(map, kn_str(key)), &values[i]);
        KnStr found;
        void *value;
        assert_true(kn_map_entry(map, (size_t)i, &found, &value));
        assert_true(kn_str_eq(found, kn_str(key)));
        assert_ptr_equal(value, &values[i]);
    }
    assert_false(kn_map_entry(map, 10000, NULL, NULL));
    assert_null(kn_map_find(map, kn_str("k10000")));
}

static char x[] = "x", zero[] = "zero", short_one[] = "short", empty[] = "empty";

static void a_known_key_gives_its_slot_again(void **state)
{
    (void)state;
    KN_MAP_AUTO map = kn_map_new();
    bool is_new;
    *kn_map_get_or_add(map, kn_str("a"), &is_new) = x;
    assert_string_equal(*kn_map_get_or_add(map, kn_str("a"), &is_new), "x");
    assert_false(is_new);
    assert_int_equal(kn_map_count(map), 1);
    assert_string_equal(*kn_map_get_or_add(map, kn_str("a"), NULL), "x");
}

static void keys_are_bytes_and_are_copied(void **state)
{
    (void)state;
    KN_MAP_AUTO map = kn_map_new();
    char key[] = {'a', '\0', 'b'};
    *kn_map_get_or_add(map, (KnStr){key, 3}, NULL) = zero;
    *kn_map_get_or_add(map, (KnStr){key, 1}, NULL) = short_one;
    *kn_map_get_or_add(map, (KnStr){NULL, 0}, NULL) = empty;
    key[0] = 'z';
    assert_string_equal(kn_map_find(map, (KnStr){"a\0b", 3}), "zero");
    assert_string_equal(kn_map_find(map, kn_str("a")), "short");
    assert_string_equal(kn_map_find(map, kn_str("")), "empty");
    assert_null(kn_map_find(map, (KnStr){key, 3}));
    assert_null(kn_map_free(NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keys_are_found_after_much_growth_in_order_of_insertion),
        cmocka_unit_test(a_known_key_gives_its_slot_again),
        cmocka_unit_test(keys_are_bytes_and_are_copied),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
