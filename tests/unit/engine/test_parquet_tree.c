/* SPDX-License-Identifier: Apache-2.0 */
/* test_parquet_tree.c - the shapes that writers have given to lists and maps, as one tree. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/parquet_tree.h"
#include "unit/engine/support.h"

#define GROUP(n, kids, id)                                                                         \
    {                                                                                              \
        .name = (n), .n_children = (kids), .field_id = (id)                                        \
    }
#define GROUP_OF(n, kids, id, conv)                                                                \
    {                                                                                              \
        .name = (n), .n_children = (kids), .field_id = (id), .converted = (conv)                   \
    }
#define REPEATED(n, kids, id)                                                                      \
    {                                                                                              \
        .name = (n), .n_children = (kids), .field_id = (id), .repeated = true                      \
    }
#define LEAF(n, sql, id)                                                                           \
    {                                                                                              \
        .name = (n), .n_children = -1, .field_id = (id), .type = "X", .sql_type = (sql)            \
    }
#define REPEATED_LEAF(n, sql, id)                                                                  \
    {                                                                                              \
        .name = (n), .n_children = -1, .field_id = (id), .type = "X", .sql_type = (sql),           \
        .repeated = true                                                                           \
    }

static KnCode build(KnArena *arena, const KnPqElement *elements, size_t n, KnPqNode *ret)
{
    KnErr err = {0};
    return kn_pq_tree_build(arena, (KnPqElements){elements, n}, ret, &err);
}

#define assert_shape(elements, want)                                                               \
    do {                                                                                           \
        KN_ARENA_AUTO arena_ = kn_arena_new(1024);                                                 \
        KnPqNode root_;                                                                            \
        assert_int_equal(                                                                          \
            build(arena_, (elements), sizeof(elements) / sizeof((elements)[0]), &root_), KN_OK);   \
        assert_string_equal(kn_pq_tree_shape(arena_, &root_), (want));                             \
    } while (0)

static void three_level_lists_and_maps_lose_their_middle(void **state)
{
    (void)state;
    const KnPqElement el[] = {
        GROUP("schema", 3, -1),       LEAF("id", "BIGINT", 1),       GROUP_OF("li", 1, 2, "LIST"),
        REPEATED("list", 1, -1),      LEAF("element", "INTEGER", 3), GROUP_OF("mp", 1, 4, "MAP"),
        REPEATED("key_value", 2, -1), LEAF("key", "VARCHAR", 5),     LEAF("value", "DOUBLE", 6),
    };
    assert_shape(el, "s-1:0:{.1:2:id=BIGINT;l2:2:li{.3:7:element=INTEGER;}"
                     "m4:2:mp{.5:3:key=VARCHAR;.6:5:value=DOUBLE;}}");
}

static void two_level_lists_are_lists(void **state)
{
    (void)state;
    const KnPqElement el[] = {
        GROUP("schema", 3, -1),
        GROUP_OF("a", 1, 1, "LIST"),
        REPEATED_LEAF("array", "INTEGER", 2),
        GROUP_OF("b", 1, 3, "LIST"),
        REPEATED("bag", 2, 4),
        LEAF("x", "INTEGER", 5),
        LEAF("y", "INTEGER", 6),
        REPEATED_LEAF("bare", "VARCHAR", 7),
    };
    assert_shape(el, "s-1:0:{l1:1:a{.2:5:array=INTEGER;}"
                     "l3:1:b{s4:3:bag{.5:1:x=INTEGER;.6:1:y=INTEGER;}}"
                     "l7:4:bare{.7:4:bare=VARCHAR;}}");
}

static void the_old_map_annotation_is_a_map(void **state)
{
    (void)state;
    KnPqElement el[] = {
        GROUP("schema", 1, -1),  GROUP("m", 1, 1),        REPEATED("map", 2, -1),
        LEAF("k", "INTEGER", 2), LEAF("v", "INTEGER", 3),
    };
    el[1].converted = "LIST"; /* anything that gives way around it */
    el[2].converted = "MAP_KEY_VALUE";
    assert_shape(el, "s-1:0:{m1:1:m{.2:1:k=INTEGER;.3:1:v=INTEGER;}}");
}

static void nested_lists_keep_every_level(void **state)
{
    (void)state;
    const KnPqElement el[] = {
        GROUP("schema", 1, -1),     GROUP_OF("o", 1, 1, "LIST"),
        REPEATED("list", 1, -1),    GROUP_OF("element", 1, 2, "LIST"),
        REPEATED("list", 1, -1),    GROUP("element", 1, 3),
        LEAF("only", "INTEGER", 4),
    };
    assert_shape(el, "s-1:0:{l1:1:o{l2:7:element{s3:7:element{.4:4:only=INTEGER;}}}}");
}

static void siblings_that_differ_in_case_get_the_names_of_the_engine(void **state)
{
    (void)state;
    const KnPqElement el[] = {
        GROUP("schema", 3, -1),
        LEAF("a", "INTEGER", 1),
        LEAF("A", "INTEGER", 2),
        LEAF("a", "INTEGER", 3),
    };
    KN_ARENA_AUTO arena = kn_arena_new(1024);
    KnPqNode root;
    assert_int_equal(build(arena, el, 4, &root), KN_OK);
    assert_string_equal(root.children[1].name, "A");
    assert_string_equal(root.children[1].sql_name, "A_1");
    assert_string_equal(root.children[2].sql_name, "a_2");
}

static void only_int64_nanoseconds_in_utc_are_marked(void **state)
{
    (void)state;
    KnPqElement el[] = {GROUP("schema", 2, -1), LEAF("tz", "TIMESTAMP WITH TIME ZONE", 1),
                        LEAF("us", "TIMESTAMP WITH TIME ZONE", 2)};
    el[1].type = el[2].type = "INT64";
    el[1].logical = "TimestampType(isAdjustedToUTC=1, unit=TimeUnit(MILLIS=<null>, "
                    "MICROS=<null>, NANOS=NanoSeconds()))";
    el[2].logical = "TimestampType(isAdjustedToUTC=1, unit=TimeUnit(MILLIS=<null>, "
                    "MICROS=MicroSeconds(), NANOS=<null>))";
    KN_ARENA_AUTO arena = kn_arena_new(1024);
    KnPqNode root;
    assert_int_equal(build(arena, el, 3, &root), KN_OK);
    assert_true(root.children[0].nanos_utc);
    assert_false(root.children[1].nanos_utc);
}

static void counts_that_do_not_fit_are_corrupt(void **state)
{
    (void)state;
    KN_ARENA_AUTO arena = kn_arena_new(1024);
    KnPqNode root;
    const KnPqElement too_many[] = {GROUP("s", 3, -1), LEAF("a", "INTEGER", 1)};
    const KnPqElement too_few[] = {GROUP("s", 1, -1), LEAF("a", "INTEGER", 1),
                                   LEAF("b", "INTEGER", 1)};
    const KnPqElement empty_group[] = {GROUP("s", 1, -1), GROUP("g", 0, -1)};
    const KnPqElement huge[] = {GROUP("s", INT64_MAX, -1), LEAF("a", "INTEGER", 1)};
    const KnPqElement lone_leaf[] = {LEAF("a", "INTEGER", 1)};
    const KnPqElement bad_map[] = {GROUP("s", 1, -1), GROUP_OF("m", 1, 1, "MAP"),
                                   REPEATED("kv", 1, -1), LEAF("k", "INTEGER", 2)};
    assert_int_equal(build(arena, too_many, 2, &root), KN_E_CORRUPT);
    assert_int_equal(build(arena, too_few, 3, &root), KN_E_CORRUPT);
    assert_int_equal(build(arena, empty_group, 2, &root), KN_E_CORRUPT);
    assert_int_equal(build(arena, huge, 2, &root), KN_E_CORRUPT);
    assert_int_equal(build(arena, lone_leaf, 1, &root), KN_E_CORRUPT);
    assert_int_equal(build(arena, bad_map, 4, &root), KN_E_CORRUPT);
    assert_int_equal(build(arena, bad_map, 0, &root), KN_E_CORRUPT);
}

static void bottomless_nesting_is_corrupt(void **state)
{
    (void)state;
    enum { DEPTH = 100000 };
    KN_ARENA_AUTO arena = kn_arena_new(1024);
    KnPqElement *el = kn_arena_zalloc(arena, DEPTH * sizeof(*el));
    for (size_t i = 0; i < DEPTH; i++)
        el[i] = (KnPqElement)GROUP("g", 1, -1);
    KnPqNode root;
    assert_int_equal(build(arena, el, DEPTH, &root), KN_E_CORRUPT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(three_level_lists_and_maps_lose_their_middle),
        cmocka_unit_test(two_level_lists_are_lists),
        cmocka_unit_test(the_old_map_annotation_is_a_map),
        cmocka_unit_test(nested_lists_keep_every_level),
        cmocka_unit_test(siblings_that_differ_in_case_get_the_names_of_the_engine),
        cmocka_unit_test(only_int64_nanoseconds_in_utc_are_marked),
        cmocka_unit_test(counts_that_do_not_fit_are_corrupt),
        cmocka_unit_test(bottomless_nesting_is_corrupt),
    };
    return cmocka_run_group_tests_name("engine.parquet_tree", tests, NULL, NULL);
}
