/* SPDX-License-Identifier: Apache-2.0 */
/* test_vec.c - the growing array. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/vec.h"

typedef struct Pair {
    int a;
    const char *b;
} Pair;

static void elements_are_zeroed_and_keep_their_values(void **state)
{
    (void)state;
    KN_VEC(Pair) v = {0};
    for (int i = 0; i < 1000; ++i) {
        Pair *p = kn_vec_push(&v);
        assert_int_equal(p->a, 0);
        assert_null(p->b);
        p->a = i;
    }
    int sum = 0;
    kn_vec_foreach (&v, p)
        sum += p->a;
    assert_int_equal(sum, 499500);
    kn_vec_done(&v);
    assert_null(v.items);
    assert_int_equal(v.len, 0);
}

static void an_empty_vec_has_nothing_to_visit(void **state)
{
    (void)state;
    KN_VEC(int) v = {0};
    int visits = 0;
    kn_vec_foreach (&v, p)
        visits += *p + 1;
    assert_int_equal(visits, 0);
    kn_vec_done(&v);
}

static void a_cut_vec_zeroes_what_it_uses_again(void **state)
{
    (void)state;
    KN_VEC(int) v = {0};
    *kn_vec_push(&v) = 1;
    *kn_vec_push(&v) = 2;
    v.len = 1;
    assert_int_equal(*kn_vec_push(&v), 0);
    kn_vec_done(&v);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(elements_are_zeroed_and_keep_their_values),
        cmocka_unit_test(an_empty_vec_has_nothing_to_visit),
        cmocka_unit_test(a_cut_vec_zeroes_what_it_uses_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
