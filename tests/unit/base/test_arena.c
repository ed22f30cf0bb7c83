/* SPDX-License-Identifier: Apache-2.0 */
/* test_arena.c - alignment, growth, limits, deferred calls. */
#include <setjmp.h>
#include <stdalign.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/arena.h"

static void memory_is_aligned_apart_and_writable(void **state)
{
    (void)state;
    KN_ARENA_AUTO arena = kn_arena_new(0);
    char *last = NULL;
    for (size_t size = 0; size < 300; ++size) {
        char *p = kn_arena_alloc(arena, size);
        assert_int_equal((uintptr_t)p % alignof(max_align_t), 0);
        assert_true(size < 2 || p > last || p + size < last);
        memset(p, 0xab, size);
        last = p;
    }
}

static void a_large_request_does_not_waste_the_current_block(void **state)
{
    (void)state;
    KN_ARENA_AUTO arena = kn_arena_new(4096);
    char *a = kn_arena_alloc(arena, 16);
    char *big = kn_arena_alloc(arena, 3 << 20);
    memset(big, 1, 3 << 20);
    char *b = kn_arena_alloc(arena, 16);
    assert_ptr_equal(b, a + 16);
}

static void sizes_that_cannot_be_give_null(void **state)
{
    (void)state;
    KN_ARENA_AUTO arena = kn_arena_new(0);
    assert_null(kn_arena_try_alloc(arena, SIZE_MAX));
    assert_null(kn_arena_try_alloc(arena, SIZE_MAX - 64));
    assert_null(kn_arena_try_array(arena, SIZE_MAX / 2, 3));
    assert_null(kn_arena_try_strndup(arena, "x", SIZE_MAX));
    const char *zeros = kn_arena_try_array(arena, 100, 8);
    for (int i = 0; i < 800; ++i)
        assert_int_equal(zeros[i], 0);
}

static void text_is_copied_and_formatted(void **state)
{
    (void)state;
    KN_ARENA_AUTO arena = kn_arena_new(0);
    assert_string_equal(kn_arena_strdup(arena, "abc"), "abc");
    assert_string_equal(kn_arena_strndup(arena, "abcdef", 3), "abc");
    assert_string_equal(kn_arena_try_strndup(arena, NULL, 0), "");
    assert_string_equal(kn_arena_printf(arena, "%s-%05d", "n", 42), "n-00042");
    assert_int_equal(strlen(kn_arena_printf(arena, "%9000d", 1)), 9000);
    const char *z = kn_arena_zalloc(arena, 32);
    assert_int_equal(z[0] | z[31], 0);
}

static char order[8];

static void note(void *arg)
{
    strncat(order, arg, 1);
}

static void deferred_calls_run_last_in_first_out(void **state)
{
    (void)state;
    memset(order, 0, sizeof(order));
    KnArena *arena = kn_arena_new(0);
    static char one[] = "1", two[] = "2";
    kn_arena_defer(arena, note, one);
    kn_arena_defer(arena, note, two);
    kn_arena_defer(arena, note, kn_arena_strdup(arena, "3")); /* memory lives until after */
    assert_null(kn_arena_free(arena));
    assert_string_equal(order, "321");
    assert_null(kn_arena_free(NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_is_aligned_apart_and_writable),
        cmocka_unit_test(a_large_request_does_not_waste_the_current_block),
        cmocka_unit_test(sizes_that_cannot_be_give_null),
        cmocka_unit_test(text_is_copied_and_formatted),
        cmocka_unit_test(deferred_calls_run_last_in_first_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
