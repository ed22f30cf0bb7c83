/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "net/http_target.h"

static KnHttpTarget parsed(KnArena *arena, const char *text)
{
    KnHttpTarget target;
    KnErr err = {0};
    assert_int_equal(kn_http_target_parse(arena, kn_str(text), &target, &err), KN_OK);
    return target;
}

static void a_path_is_cut_before_it_is_decoded(void **state)
{
    (void)state;
    KN_ARENA_AUTO arena = kn_arena_new(0);
    KnHttpTarget target = parsed(arena, "/v1/namespaces/a%1Fb/tables/x%2Fy%25");
    assert_int_equal(target.n_segments, 5);
    assert_string_equal(target.segments[2].ptr, "a\x1f"
                                                "b");
    assert_string_equal(target.segments[4].ptr, "x/y%");
}

static void plus_and_percent_20_are_spaces_and_percent_2b_is_plus(void **state)
{
    (void)state;
    KN_ARENA_AUTO arena = kn_arena_new(0);
    KnHttpTarget target = parsed(arena, "/a+b/a%20b/a%2Bb");
    assert_string_equal(target.segments[0].ptr, "a b");
    assert_string_equal(target.segments[1].ptr, "a b");
    assert_string_equal(target.segments[2].ptr, "a+b");
}

static void doubled_slashes_in_front_and_one_at_the_end_are_nothing(void **state)
{
    (void)state;
    KN_ARENA_AUTO arena = kn_arena_new(0);
    assert_int_equal(parsed(arena, "//v1//x/").n_segments, 3);
    assert_int_equal(parsed(arena, "/").n_segments, 0);
    assert_int_equal(parsed(arena, "").n_segments, 0);
    assert_int_equal(parsed(arena, "http://host:1/v1/x").n_segments, 2);
    assert_int_equal(parsed(arena, "http://host").n_segments, 0);
}

static void a_query_is_pairs(void **state)
{
    (void)state;
    KN_ARENA_AUTO arena = kn_arena_new(0);
    KnHttpTarget target = parsed(arena, "/x?parent=a%1Fb&&empty=&flag&pageToken=a%26b");
    assert_int_equal(target.n_query, 4);
    assert_string_equal(kn_http_pair_find(target.query, target.n_query, "parent")->ptr, "a\x1f"
                                                                                        "b");
    assert_string_equal(kn_http_pair_find(target.query, target.n_query, "flag")->ptr, "");
    assert_string_equal(kn_http_pair_find(target.query, target.n_query, "pageToken")->ptr, "a&b");
    assert_null(kn_http_pair_find(target.query, target.n_query, "none"));
}

static void what_cannot_be_decoded_is_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {"/%",
                                      "/%4",
                                      "/%zz",
                                      "/a%00b",
                                      "/%ff%fe",
                                      "a/b",
                                      "/x?%",
                                      "/x?a=%e2",
                                      "/%c0%af",
                                      "/%+1",
                                      "/1/2/3/4/5/6/7/8/9/10/11/12/13/14/15/16/17"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        KN_ARENA_AUTO arena = kn_arena_new(0);
        KnHttpTarget target;
        KnErr err = {0};
        assert_int_equal(kn_http_target_parse(arena, kn_str(bad[i]), &target, &err), KN_E_INVAL);
        assert_non_null(strstr(err.msg, "request target"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_path_is_cut_before_it_is_decoded),
        cmocka_unit_test(plus_and_percent_20_are_spaces_and_percent_2b_is_plus),
        cmocka_unit_test(doubled_slashes_in_front_and_one_at_the_end_are_nothing),
        cmocka_unit_test(a_query_is_pairs),
        cmocka_unit_test(what_cannot_be_decoded_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
