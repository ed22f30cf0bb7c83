/* SPDX-License-Identifier: Apache-2.0 */
/* test_path.c - schemes, normal forms, containment. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/path.h"

static void file_locations_become_absolute_normal_paths(void **state)
{
    (void)state;
    static const struct {
        const char *location, *path;
    } cases[] = {
        {"/a/b", "/a/b"},
        {"file:/a/b", "/a/b"},
        {"file:///a/b", "/a/b"},
        {"FILE:///a/b", "/a/b"},
        {"file://localhost/a", "/a"},
        {"//a///b//", "/a/b"},
        {"file:////a", "/a"},
        {"/a/./b/../c", "/a/c"},
        {"/../../a", "/a"},
        {"/a/..", "/"},
        {"/", "/"},
        {"/a%20b/k=%2F", "/a%20b/k=%2F"}, /* Iceberg writes raw names */
        {"/a b/*?[x]", "/a b/*?[x]"},
        {"/..a/.b/c..", "/..a/.b/c.."},
        {"/a:b/c", "/a:b/c"},
    };
    KN_ARENA_AUTO arena = kn_arena_new(0);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i) {
        const char *path = NULL;
        assert_int_equal(kn_path_local(arena, kn_str(cases[i].location), &path, NULL), KN_OK);
        assert_string_equal(path, cases[i].path);
    }
}

static void what_is_no_local_file_is_refused(void **state)
{
    (void)state;
    static const struct {
        KnStr location;
        KnCode code;
    } cases[] = {
        {KN_STR_LIT("a/b"), KN_E_INVAL},     {KN_STR_LIT(""), KN_E_INVAL},
        {KN_STR_LIT("file:a"), KN_E_INVAL},  {KN_STR_LIT("file://host/a"), KN_E_INVAL},
        {KN_STR_LIT("file:"), KN_E_INVAL},   {KN_STR_LIT("s3://b/k"), KN_E_UNSUPPORTED},
        {KN_STR_LIT("/a\0b"), KN_E_INVAL},   {KN_STR_LIT("1a://x"), KN_E_INVAL},
        {KN_STR_LIT("://x"), KN_E_INVAL},    {KN_STR_LIT("a_b://x"), KN_E_INVAL},
        {KN_STR_LIT("s3:/b/k"), KN_E_INVAL}, {KN_STR_LIT("abcdefghijklmnop://x"), KN_E_INVAL},
        {KN_STR_LIT("./a"), KN_E_INVAL},     {KN_STR_LIT("file://"), KN_E_INVAL},
    };
    KN_ARENA_AUTO arena = kn_arena_new(0);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i) {
        const char *path = "untouched";
        KnErr err = {0};
        assert_int_equal(kn_path_local(arena, cases[i].location, &path, &err), cases[i].code);
        assert_string_equal(path, "untouched");
        assert_true(err.msg[0] != '\0');
    }
}

static void schemes_are_lower_case_and_default_to_file(void **state)
{
    (void)state;
    char out[16] = "untouched";
    assert_int_equal(kn_path_scheme(kn_str("S3A://b/k"), out, NULL), KN_OK);
    assert_string_equal(out, "s3a");
    assert_int_equal(kn_path_scheme(kn_str("a+b-c.d1://x"), out, NULL), KN_OK);
    assert_string_equal(out, "a+b-c.d1");
    assert_int_equal(kn_path_scheme(kn_str("dir/x"), out, NULL), KN_OK);
    assert_string_equal(out, "file");
    assert_int_equal(kn_path_scheme(kn_str("abcdefghijklmno://x"), out, NULL), KN_OK);
    assert_string_equal(out, "abcdefghijklmno");
}

static void containment_is_by_whole_components(void **state)
{
    (void)state;
    assert_true(kn_path_is_within(kn_str("/a/b"), kn_str("/a")));
    assert_true(kn_path_is_within(kn_str("/a"), kn_str("/a")));
    assert_true(kn_path_is_within(kn_str("/a/b"), kn_str("/a/")));
    assert_true(kn_path_is_within(kn_str("/a"), kn_str("/")));
    assert_true(kn_path_is_within(kn_str("s3://b/k/x"), kn_str("s3://b/k")));
    assert_false(kn_path_is_within(kn_str("/ab"), kn_str("/a")));
    assert_false(kn_path_is_within(kn_str("/a"), kn_str("/a/b")));
    assert_false(kn_path_is_within(kn_str("/a"), kn_str("")));
}

static void joining_never_doubles_the_slash(void **state)
{
    (void)state;
    KN_ARENA_AUTO arena = kn_arena_new(0);
    static const struct {
        const char *dir, *name, *joined;
    } cases[] = {{"/a", "b", "/a/b"},
                 {"/a/", "b", "/a/b"},
                 {"/a", "/b", "/a/b"},
                 {"/a/", "/b", "/a/b"},
                 {"/", "b", "/b"},
                 {"", "b", "b"},
                 {"s3://b", "k/x", "s3://b/k/x"}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i)
        assert_string_equal(kn_path_join(arena, kn_str(cases[i].dir), kn_str(cases[i].name)),
                            cases[i].joined);
}

static void base_and_folder_names_are_cut_at_the_last_slash(void **state)
{
    (void)state;
    static const struct {
        const char *path, *dir, *base;
    } cases[] = {{"/a/b", "/a", "b"}, {"/a/b/", "/a", "b"},        {"/a", "/", "a"},
                 {"a", "", "a"},      {"s3://b/k", "s3://b", "k"}, {"s3://b", "", "b"},
                 {"", "", ""},        {"/a//b", "/a", "b"}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i) {
        assert_true(kn_str_eq(kn_path_dirname(kn_str(cases[i].path)), kn_str(cases[i].dir)));
        assert_true(kn_str_eq(kn_path_basename(kn_str(cases[i].path)), kn_str(cases[i].base)));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(file_locations_become_absolute_normal_paths),
        cmocka_unit_test(what_is_no_local_file_is_refused),
        cmocka_unit_test(schemes_are_lower_case_and_default_to_file),
        cmocka_unit_test(containment_is_by_whole_components),
        cmocka_unit_test(joining_never_doubles_the_slash),
        cmocka_unit_test(base_and_folder_names_are_cut_at_the_last_slash),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
