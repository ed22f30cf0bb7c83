/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_sieve.c - two multisets of fingerprints: what differs comes through, what is the same mostly
 * does not, and empty slots never do. Rows are numbers; their fingerprints are made from these.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/random.h"
#include "iceberg/changes/sieve.h"

typedef struct Sides {
    size_t n_before, n_slots;
    uint64_t *rows; /* of each slot; 0 = empty */
    size_t max_buckets;
    uint64_t seed;
} Sides;

static KnFingerprint print_of(uint64_t row)
{
    KnRng rng = {row};
    KnFingerprint print = {kn_rng_next(&rng), 0};
    print.b = kn_rng_next(&rng);
    return print;
}

static Sides sides_new(size_t n_before, size_t n_after, size_t max_buckets)
{
    Sides sides = {.n_before = n_before,
                   .n_slots = n_before + n_after,
                   .rows = calloc(n_before + n_after + 1, sizeof(uint64_t)),
                   .max_buckets = max_buckets};
    assert_non_null(sides.rows);
    return sides;
}

/* Slots go in batches: in step as files are read, or thinned out, or one by one from the end. */
static void put_all(KnSieve *sieve, const Sides *sides, bool backwards)
{
    enum { BATCH = 5000 };
    KnErr err = {0};
    uint64_t slots[BATCH];
    KnFingerprint prints[BATCH];
    size_t n = 0;
    for (size_t i = 0; i < sides->n_slots; i++) {
        size_t slot = backwards ? sides->n_slots - 1 - i : i;
        if (sides->rows[slot] != 0) {
            slots[n] = slot;
            prints[n++] = print_of(sides->rows[slot]);
        }
        if (n == BATCH || (n > 0 && i + 1 == sides->n_slots)) {
            assert_int_equal(kn_sieve_put(sieve, slots, prints, n, &err), KN_OK);
            n = 0;
        }
    }
}

static int compare_rows(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a;
    uint64_t y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

/* How often a row stands among sorted ones. */
static size_t count_of(const uint64_t *sorted, size_t n, uint64_t row)
{
    size_t low = 0;
    size_t high = n;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (sorted[mid] < row)
            low = mid + 1;
        else
            high = mid;
    }
    size_t end = low;
    while (end < n && sorted[end] == row)
        end++;
    return end - low;
}

typedef struct Found {
    size_t changed; /* slots whose rows differ in number */
    size_t in_vain; /* slots that came through although they do not */
} Found;

static Found check_bits(const Sides *sides, const uint64_t *bits)
{
    Found found = {0};
    size_t n_after = sides->n_slots - sides->n_before;
    uint64_t *sorted = calloc(sides->n_slots + 1, sizeof(*sorted));
    assert_non_null(sorted);
    memcpy(sorted, sides->rows, sides->n_slots * sizeof(*sorted));
    qsort(sorted, sides->n_before, sizeof(*sorted), compare_rows);
    qsort(sorted + sides->n_before, n_after, sizeof(*sorted), compare_rows);
    for (size_t slot = 0; slot < sides->n_slots; slot++) {
        bool passed = bits[slot / 64] >> (slot % 64) & 1;
        uint64_t row = sides->rows[slot];
        if (row == 0) {
            assert_false(passed);
            continue;
        }
        bool differs = count_of(sorted, sides->n_before, row) !=
                       count_of(sorted + sides->n_before, n_after, row);
        if (differs && !passed)
            fail_msg("seed %d: slot %zu with row %zu got lost", (int)sides->seed, slot,
                     (size_t)row);
        found.changed += differs;
        found.in_vain += passed && !differs;
    }
    free(sorted);
    return found;
}

static Found sift(Sides *sides, bool backwards)
{
    KnErr err = {0};
    KnSieve *sieve = NULL;
    KnSieveOptions opts = {sides->n_before, sides->n_slots, sides->max_buckets};
    assert_int_equal(kn_sieve_open(&opts, &sieve, &err), KN_OK);
    put_all(sieve, sides, backwards);
    const uint64_t *bits = NULL;
    assert_int_equal(kn_sieve_run(sieve, &bits, &err), KN_OK);
    Found found = check_bits(sides, bits);
    kn_sieve_close(sieve);
    free(sides->rows);
    return found;
}

/* Rows 1..n before; after: the same in another order, each k-th of them changed. */
static Sides rewritten(size_t n, size_t k, size_t max_buckets)
{
    Sides sides = sides_new(n, n, max_buckets);
    for (size_t i = 0; i < n; i++) {
        sides.rows[i] = i + 1;
        size_t to = n + (i * 7919) % n; /* n is no multiple of the prime */
        sides.rows[to] = k > 0 && i % k == 0 ? i + 1 + 10 * n : i + 1;
    }
    return sides;
}

static void sides_that_are_the_same_give_nothing(void **state)
{
    (void)state;
    for (int backwards = 0; backwards < 2; backwards++) {
        Sides sides = rewritten(20000, 0, 64);
        Found found = sift(&sides, backwards);
        assert_int_equal(found.changed + found.in_vain, 0);
    }
}

static void nothing_at_all_gives_nothing(void **state)
{
    (void)state;
    Sides sides = sides_new(0, 0, 0);
    Found found = sift(&sides, false);
    assert_int_equal(found.changed + found.in_vain, 0);
}

static void one_changed_row_of_many_is_found_alone(void **state)
{
    (void)state;
    Sides sides = rewritten(20000, 20000, 64);
    Found found = sift(&sides, true);
    assert_int_equal(found.changed, 2);
    assert_int_equal(found.in_vain, 0);
}

static void few_rows_come_through_in_vain(void **state)
{
    (void)state;
    Sides sides = rewritten(100000, 100, 0);
    Found found = sift(&sides, false);
    assert_int_equal(found.changed, 2000);
    assert_in_range(found.in_vain, 0, 20);
}

/* 4,000 changed rows in 1,024 buckets: the rows are worked through in parts. */
static void more_changed_rows_than_buckets_are_told_apart(void **state)
{
    (void)state;
    Sides sides = rewritten(40000, 20, 1024);
    Found found = sift(&sides, true);
    assert_int_equal(found.changed, 4000);
    assert_in_range(found.in_vain, 0, 4000);
}

/* So many more that parts come to an end: then it may come through, but none is lost. */
static void far_more_changed_rows_than_buckets_are_not_lost(void **state)
{
    (void)state;
    Sides sides = rewritten(40000, 3, 64);
    assert_in_range(sift(&sides, false).changed, 26000, 27000);
}

static void all_rows_changed_all_come_through(void **state)
{
    (void)state;
    Sides sides = rewritten(10000, 1, 256);
    Found found = sift(&sides, false);
    assert_int_equal(found.changed, 20000);
}

static void only_the_number_of_copies_counts(void **state)
{
    (void)state;
    /* Row r is there r times before and r times after, but row 9 one time more. */
    Sides sides = sides_new(64, 64, 64);
    size_t at[2] = {0, 64};
    for (uint64_t row = 1; row < 10; row++)
        for (uint64_t copy = 0; copy < row; copy++)
            for (int side = 0; side < 2; side++)
                sides.rows[at[side]++] = row;
    sides.rows[at[1]++] = 9;
    Found found = sift(&sides, false);
    assert_int_equal(found.changed, 19);
    assert_int_equal(found.in_vain, 0);
}

static void one_empty_side_gives_the_other(void **state)
{
    (void)state;
    Sides sides = sides_new(0, 3000, 64);
    for (size_t i = 0; i < 3000; i += 2)
        sides.rows[i] = i + 1;
    assert_int_equal(sift(&sides, false).changed, 1500);
}

static void random_sides(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 40; seed++) {
        KnRng rng = {seed};
        size_t kinds = 1 + kn_rng_below(&rng, 3000);
        Sides sides = sides_new(kn_rng_below(&rng, 9000), kn_rng_below(&rng, 9000),
                                (size_t)64 << kn_rng_below(&rng, 6));
        sides.seed = seed;
        for (size_t i = 0; i < sides.n_slots; i++)
            sides.rows[i] = kn_rng_below(&rng, 5) == 0 ? 0 : 1 + kn_rng_below(&rng, kinds);
        (void)sift(&sides, seed % 2 == 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sides_that_are_the_same_give_nothing),
        cmocka_unit_test(nothing_at_all_gives_nothing),
        cmocka_unit_test(one_changed_row_of_many_is_found_alone),
        cmocka_unit_test(few_rows_come_through_in_vain),
        cmocka_unit_test(more_changed_rows_than_buckets_are_told_apart),
        cmocka_unit_test(far_more_changed_rows_than_buckets_are_not_lost),
        cmocka_unit_test(all_rows_changed_all_come_through),
        cmocka_unit_test(only_the_number_of_copies_counts),
        cmocka_unit_test(one_empty_side_gives_the_other),
        cmocka_unit_test(random_sides),
    };
    return cmocka_run_group_tests_name("iceberg.sieve", tests, NULL, NULL);
}
