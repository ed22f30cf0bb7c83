/* SPDX-License-Identifier: Apache-2.0 */
/* test_label.c - labels are short, plain, stable, and different for different loads. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/map.h"
#include "base/random.h"
#include "cdc/label.h"

static const KnLabelParts BASE = {.source = "jdbc:/w/catalog.db#ns.t",
                                  .sink = "duckdb:/d.duckdb",
                                  .db = "main",
                                  .table = "t",
                                  .epoch = 0,
                                  .from = 41,
                                  .to = 42,
                                  .plan_digest = 7,
                                  .chunk = 3};

static void a_label_spells_its_window_and_chunk(void **state)
{
    (void)state;
    char label[KN_LABEL_SIZE];
    KnLabelParts parts = BASE;
    assert_int_equal(strncmp(kn_label_format(&parts, label), "skade-main:t-41-42-3-", 21), 0);
    assert_int_equal(strlen(label), 21 + 16);
    parts.from = -1;
    assert_int_equal(strncmp(kn_label_format(&parts, label), "skade-main:t-init-42-3-", 23), 0);
    parts.chunk = KN_LABEL_CLAIM;
    assert_int_equal(strncmp(kn_label_format(&parts, label), "skade-main:t-init-42-claim-", 27), 0);
}

/* The hash is what a destination remembers: it must never change between versions. */
static void a_label_is_the_same_in_every_version(void **state)
{
    (void)state;
    char label[KN_LABEL_SIZE];
    assert_string_equal(kn_label_format(&BASE, label), "skade-main:t-41-42-3-39b7969ff344c51f");
    assert_string_equal(kn_label_window(&BASE, label), "skade-main:t-41-42-b4b25d4546a031d3");
}

static void any_part_that_differs_gives_another_label(void **state)
{
    (void)state;
    KnLabelParts parts[12];
    for (size_t i = 0; i < 12; ++i)
        parts[i] = BASE;
    parts[1].source = "jdbc:/w/catalog.db#ns.u";
    parts[2].sink = "duckdb:/e.duckdb";
    parts[3].db = "other";
    parts[4].table = "u";
    parts[5].epoch = 1;
    parts[6].from = -1;
    parts[7].to = 43;
    parts[8].plan_digest = 8;
    parts[9].chunk = 4;
    parts[10].chunk = KN_LABEL_CLAIM;
    parts[11].from = 40;
    for (size_t i = 0; i < 12; ++i) {
        for (size_t k = 0; k < i; ++k) {
            char a[KN_LABEL_SIZE], b[KN_LABEL_SIZE];
            assert_string_not_equal(kn_label_format(&parts[i], a), kn_label_format(&parts[k], b));
        }
    }
}

static void text_cannot_move_from_one_part_to_the_next(void **state)
{
    (void)state;
    KnLabelParts one = BASE, two = BASE;
    char a[KN_LABEL_SIZE], b[KN_LABEL_SIZE];
    one.source = "ab", one.sink = "c";
    two.source = "a", two.sink = "bc";
    assert_string_not_equal(kn_label_format(&one, a), kn_label_format(&two, b));
    one.db = "x_y", one.table = "z";
    two.db = "x", two.table = "y_z";
    assert_string_not_equal(kn_label_window(&one, a), kn_label_window(&two, b));
}

/* "a-b" and "a_b" and "a:b" are three tables. */
static void names_that_are_spelled_alike_stay_apart(void **state)
{
    (void)state;
    static const char *const NAMES[] = {"a-b", "a_b", "a:b",  "a b", "\xc3\xa4_b",
                                        "",    "A_B", "a_b_", "a\"b"};
    size_t n = sizeof(NAMES) / sizeof(NAMES[0]);
    for (size_t i = 0; i < n; ++i) {
        for (size_t k = 0; k < i; ++k) {
            char a[KN_LABEL_SIZE], b[KN_LABEL_SIZE];
            KnLabelParts one = BASE, two = BASE;
            one.table = NAMES[i];
            two.table = NAMES[k];
            (void)kn_label_format(&one, a);
            (void)kn_label_format(&two, b);
            a[strlen(a) - 17] = b[strlen(b) - 17] = '\0'; /* without the covering hash */
            assert_string_not_equal(a, b);
        }
    }
}

static void the_longest_parts_fit_into_128_characters(void **state)
{
    (void)state;
    char label[KN_LABEL_SIZE], name[300];
    memset(name, 'n', sizeof(name) - 1);
    name[sizeof(name) - 1] = '\0';
    KnLabelParts parts = {.source = name,
                          .sink = name,
                          .db = name,
                          .table = name,
                          .epoch = INT64_MAX,
                          .from = INT64_MAX,
                          .to = INT64_MAX,
                          .plan_digest = UINT64_MAX,
                          .chunk = INT64_MAX};
    assert_true(kn_label_is_valid(kn_label_format(&parts, label)));
    assert_true(strlen(label) <= 128);
    assert_non_null(strrchr(label, '-'));
    assert_int_equal(strlen(strrchr(label, '-')), 17);
}

static void random_loads_have_valid_labels_that_never_collide(void **state)
{
    (void)state;
    KnRng rng = {.state = 20260131};
    KN_MAP_AUTO seen = kn_map_new();
    for (int i = 0; i < 20000; ++i) {
        char label[KN_LABEL_SIZE], table[16];
        for (size_t k = 0; k < sizeof(table) - 1; ++k)
            table[k] = (char)(1 + kn_rng_below(&rng, 254));
        table[1 + kn_rng_below(&rng, 14)] = '\0';
        table[sizeof(table) - 1] = '\0';
        KnLabelParts parts = BASE;
        parts.table = table;
        parts.to = (int64_t)(kn_rng_next(&rng) >> 1);
        parts.chunk = (int64_t)kn_rng_below(&rng, 5000);
        if (!kn_label_is_valid(kn_label_format(&parts, label)))
            fail_msg("not valid: %s", label);
        bool is_new;
        (void)kn_map_get_or_add(seen, kn_str(label), &is_new);
        assert_true(is_new);
    }
}

static void what_a_destination_would_refuse_is_not_valid(void **state)
{
    (void)state;
    char longer[KN_LABEL_SIZE + 2];
    memset(longer, 'a', sizeof(longer));
    longer[128] = '\0';
    assert_true(kn_label_is_valid(longer));
    longer[128] = 'a', longer[129] = '\0';
    assert_false(kn_label_is_valid(longer));
    assert_false(kn_label_is_valid(""));
    assert_false(kn_label_is_valid("a b"));
    assert_false(kn_label_is_valid("a.b"));
    assert_true(kn_label_is_valid("skade-a_B:c-1"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_label_spells_its_window_and_chunk),
        cmocka_unit_test(a_label_is_the_same_in_every_version),
        cmocka_unit_test(any_part_that_differs_gives_another_label),
        cmocka_unit_test(text_cannot_move_from_one_part_to_the_next),
        cmocka_unit_test(names_that_are_spelled_alike_stay_apart),
        cmocka_unit_test(the_longest_parts_fit_into_128_characters),
        cmocka_unit_test(random_loads_have_valid_labels_that_never_collide),
        cmocka_unit_test(what_a_destination_would_refuse_is_not_valid),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
