/* SPDX-License-Identifier: Apache-2.0 */
/* test_chunk_plan.c - plans cover every row exactly once, and what is read back is checked. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/random.h"
#include "cdc/chunk_plan.h"

enum { MAX_FILES = 40 };

/* A window of made-up files. */
typedef struct Fake {
    KnSnapshot to;
    KnManifestEntry entries[MAX_FILES];
    KnScanTask tasks[MAX_FILES];
    char paths[MAX_FILES][64];
    KnWindow win;
} Fake;

static void fake_window(Fake *fake, size_t n)
{
    memset(fake, 0, sizeof(*fake));
    fake->to.snapshot_id = 42;
    fake->win = (KnWindow){.to = &fake->to,
                           .operation = "append",
                           .kind = KN_WINDOW_DIRECT,
                           .n_added = n,
                           .added = fake->tasks};
    for (size_t i = 0; i < n; ++i) {
        (void)snprintf(fake->paths[i], sizeof(fake->paths[i]), "/data/\"%zu\".parquet", i);
        fake->entries[i].file.path = fake->paths[i];
        fake->tasks[i].data = &fake->entries[i];
    }
}

static void set_file(Fake *fake, size_t i, int64_t rows, int64_t bytes)
{
    fake->entries[i].file.record_count = rows;
    fake->entries[i].file.size_bytes = bytes;
    fake->win.read_bytes += bytes;
}

static KnChunkPlan *cut(KnArena *arena, const Fake *fake, uint64_t chunk_bytes)
{
    const KnChunkPlanOptions opts = {.chunk_bytes = chunk_bytes, .schema_id = 3};
    return kn_chunk_plan_direct(arena, &fake->win, &opts);
}

static char *text_of(const KnChunkPlan *plan)
{
    KnBuf buf;
    size_t len;
    kn_buf_init(&buf, (size_t)64 << 20);
    kn_chunk_plan_format(&buf, plan);
    assert_int_equal(kn_buf_check(&buf, NULL), KN_OK);
    return kn_buf_steal(&buf, &len);
}

/* Every row of every file once, in order, chunks numbered, sums right. */
static void check_cover(const KnChunkPlan *plan, const Fake *fake)
{
    size_t file = 0;
    int64_t row = 0, total = 0;
    for (size_t i = 0; i < plan->n_chunks; ++i) {
        const KnChunk *chunk = &plan->chunks[i];
        int64_t rows = 0;
        assert_int_equal(chunk->number, i);
        assert_true(chunk->n_ranges > 0);
        for (size_t k = 0; k < chunk->n_ranges; ++k) {
            const KnChunkRange *range = &chunk->ranges[k];
            while (row == fake->entries[file].file.record_count)
                ++file, row = 0;
            assert_int_equal(range->file, file);
            assert_int_equal(range->first_row, row);
            assert_true(range->n_rows > 0);
            row += range->n_rows;
            rows += range->n_rows;
            assert_true(row <= fake->entries[file].file.record_count);
        }
        assert_int_equal(rows, chunk->rows);
        total += rows;
    }
    int64_t all = 0;
    for (size_t i = 0; i < fake->win.n_added; ++i)
        all += fake->entries[i].file.record_count;
    assert_int_equal(total, all);
    assert_int_equal(plan->upserts, all);
}

static void random_windows_are_covered_exactly_and_survive_their_text(void **state)
{
    (void)state;
    uint64_t seed = (uint64_t)kn_random_id();
    KnRng rng = {.state = seed};
    print_message("seed %llu\n", (unsigned long long)seed);
    Fake *fake = malloc(sizeof(*fake));
    assert_non_null(fake);
    for (int round = 0; round < 300; ++round) {
        KN_ARENA_AUTO arena = kn_arena_new(4096);
        KnChunkPlan *again;
        KnErr err = {0};
        size_t n = kn_rng_below(&rng, MAX_FILES);
        fake_window(fake, n);
        for (size_t i = 0; i < n; ++i) {
            uint64_t most = kn_rng_below(&rng, 2) ? 100 : 3000000;
            set_file(fake, i, (int64_t)kn_rng_below(&rng, most),
                     (int64_t)kn_rng_below(&rng, 1 << 26));
        }
        KnChunkPlan *plan = cut(arena, fake, 1 + kn_rng_below(&rng, 1 << 26));
        check_cover(plan, fake);
        char *text = text_of(plan);
        assert_int_equal(kn_chunk_plan_parse(arena, kn_str(text), &again, &err), KN_OK);
        char *text2 = text_of(again);
        assert_string_equal(text, text2);
        assert_true(kn_chunk_plan_digest(kn_str(text)) == kn_chunk_plan_digest(kn_str(text2)));
        free(text);
        free(text2);
    }
    free(fake);
}

static void chunks_keep_to_their_budget_within_one_step_of_rows(void **state)
{
    (void)state;
    KN_ARENA_AUTO arena = kn_arena_new(4096);
    Fake *fake = malloc(sizeof(*fake));
    fake_window(fake, 3);
    set_file(fake, 0, 1000000, 10000000);
    set_file(fake, 1, 1000, 10000);
    set_file(fake, 2, 1000000, 10000000);
    KnChunkPlan *plan = cut(arena, fake, 1000000);
    check_cover(plan, fake);
    assert_in_range(plan->n_chunks, 20, 22);
    for (size_t i = 0; i < plan->n_chunks; ++i)
        assert_in_range(plan->chunks[i].rows, 1, 100000 + 2048);
    free(fake);
}

static void small_files_share_a_chunk(void **state)
{
    (void)state;
    KN_ARENA_AUTO arena = kn_arena_new(4096);
    Fake *fake = malloc(sizeof(*fake));
    fake_window(fake, 30);
    for (size_t i = 0; i < 30; ++i)
        set_file(fake, i, 10, 1000);
    assert_int_equal(cut(arena, fake, 1 << 20)->n_chunks, 1);
    assert_int_equal(cut(arena, fake, 10000)->n_chunks, 3);
    free(fake);
}

static void a_row_larger_than_the_budget_still_goes(void **state)
{
    (void)state;
    KN_ARENA_AUTO arena = kn_arena_new(4096);
    Fake *fake = malloc(sizeof(*fake));
    fake_window(fake, 2);
    set_file(fake, 0, 3, 3000000);
    set_file(fake, 1, 5000, 5000);
    KnChunkPlan *plan = cut(arena, fake, 1);
    check_cover(plan, fake);
    assert_int_equal(plan->n_chunks, 1 + 3); /* 3 rows; 5000 in steps of 2048 */
    free(fake);
}

static void settling_counts_live_rows_and_drops_empty_chunks(void **state)
{
    (void)state;
    KN_ARENA_AUTO arena = kn_arena_new(4096);
    Fake *fake = malloc(sizeof(*fake));
    fake_window(fake, 3);
    for (size_t i = 0; i < 3; ++i)
        set_file(fake, i, 10, 1000);
    KnChunkPlan *plan = cut(arena, fake, 1000);
    assert_int_equal(plan->n_chunks, 3);
    plan->chunks[0].ranges[0].live_rows = 7;
    plan->chunks[1].ranges[0].live_rows = 0;
    kn_chunk_plan_settle(plan);
    assert_int_equal(plan->n_chunks, 2);
    assert_int_equal(plan->upserts, 17);
    assert_int_equal(plan->chunks[1].number, 1);
    assert_int_equal(plan->chunks[1].ranges[0].file, 2);
    KnChunkPlan *again;
    char *text = text_of(plan);
    assert_int_equal(kn_chunk_plan_parse(arena, kn_str(text), &again, NULL), KN_OK);
    free(text);
    free(fake);
}

static void the_number_of_buckets_follows_the_cost(void **state)
{
    (void)state;
    KnWindow win = {.read_bytes = 0};
    assert_int_equal(kn_chunk_plan_buckets(&win, 64 << 20), 1);
    win.read_bytes = 65 << 20;
    assert_int_equal(kn_chunk_plan_buckets(&win, 64 << 20), 2);
    win.read_bytes = INT64_MAX;
    assert_int_equal(kn_chunk_plan_buckets(&win, 1), 4096);
}

#define HEAD(kind, buckets, up, down)                                                              \
    "{\"version\":1,\"kind\":\"" kind "\",\"from\":-1,\"to\":42,\"operation\":\"append\","         \
    "\"schema-id\":0,\"mode\":\"upsert\",\"keys\":[],\"buckets\":" buckets                         \
    ",\"hash\":\"\",\"upserts\":" up ",\"deletes\":" down ",\"bytes\":10,\"files\":[[\"/a\",10],"  \
    "[\"/b\",10]],\"chunks\":"
#define DIRECT(up, chunks) HEAD("direct", "0", up, "0") chunks "}"

static void plans_that_do_not_add_up_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *text, *part;
        KnCode code;
    } CASES[] = {
        {"", "recorded plan", KN_E_CORRUPT},
        {"[]", "recorded plan", KN_E_CORRUPT},
        {"{\"version\":2}", "newer", KN_E_UNSUPPORTED},
        {"{\"version\":0}", "version 0", KN_E_CORRUPT},
        {HEAD("sideways", "0", "0", "0") "[]}", "kind", KN_E_CORRUPT},
        {HEAD("direct", "-1", "0", "0") "[]}", "buckets", KN_E_CORRUPT},
        {HEAD("empty", "0", "1", "0") "[{\"op\":\"insert\",\"rows\":1,\"ranges\":[[0,0,1,1]]}]}",
         "does not belong", KN_E_CORRUPT},
        {DIRECT("1", "[{\"op\":\"insert\",\"rows\":1,\"ranges\":[[2,0,1,1]]}]"), "outside its file",
         KN_E_CORRUPT},
        {DIRECT("11", "[{\"op\":\"insert\",\"rows\":11,\"ranges\":[[0,0,11,11]]}]"),
         "outside its file", KN_E_CORRUPT},
        {DIRECT("1", "[{\"op\":\"insert\",\"rows\":1,\"ranges\":[[0,9223372036854775807,1,1]]}]"),
         "outside its file", KN_E_CORRUPT},
        {DIRECT("6", "[{\"op\":\"insert\",\"rows\":6,\"ranges\":[[0,0,5,6]]}]"), "outside its file",
         KN_E_CORRUPT},
        {DIRECT("10", "[{\"op\":\"insert\",\"rows\":5,\"ranges\":[[0,0,5,5]]},"
                      "{\"op\":\"insert\",\"rows\":5,\"ranges\":[[0,4,5,5]]}]"),
         "overlaps", KN_E_CORRUPT},
        {DIRECT("10", "[{\"op\":\"insert\",\"rows\":5,\"ranges\":[[1,0,5,5]]},"
                      "{\"op\":\"insert\",\"rows\":5,\"ranges\":[[0,0,5,5]]}]"),
         "overlaps", KN_E_CORRUPT},
        {DIRECT("6", "[{\"op\":\"insert\",\"rows\":6,\"ranges\":[[0,0,5,5]]}]"), "its ranges 5",
         KN_E_CORRUPT},
        {DIRECT("6", "[{\"op\":\"insert\",\"rows\":5,\"ranges\":[[0,0,5,5]]}]"), "the window 6",
         KN_E_CORRUPT},
        {DIRECT("0", "[{\"op\":\"insert\",\"rows\":0,\"ranges\":[]}]"), "0 rows", KN_E_CORRUPT},
        {DIRECT("1", "[{\"op\":\"merge\",\"rows\":1,\"ranges\":[[0,0,1,1]]}]"), "merge",
         KN_E_CORRUPT},
        {DIRECT("1", "[{\"op\":\"insert\",\"rows\":1,\"ranges\":[[0,0,1.5,1]]}]"), "whole numbers",
         KN_E_CORRUPT},
        {HEAD("computed", "2", "1", "1") "[{\"op\":\"insert\",\"rows\":1,\"bucket\":0},"
                                         "{\"op\":\"delete\",\"rows\":1,\"bucket\":0}]}",
         "out of order", KN_E_CORRUPT},
        {HEAD("computed", "2", "1", "0") "[{\"op\":\"insert\",\"rows\":1,\"bucket\":2}]}",
         "bucket 2", KN_E_CORRUPT},
        {HEAD("computed", "2", "2", "0") "[{\"op\":\"insert\",\"rows\":1,\"bucket\":1},"
                                         "{\"op\":\"insert\",\"rows\":1,\"bucket\":1}]}",
         "bucket 1", KN_E_CORRUPT},
    };
    for (size_t i = 0; i < sizeof(CASES) / sizeof(CASES[0]); ++i) {
        KN_ARENA_AUTO arena = kn_arena_new(4096);
        KnChunkPlan *plan;
        KnErr err = {0};
        KnCode rc = kn_chunk_plan_parse(arena, kn_str(CASES[i].text), &plan, &err);
        if (rc != CASES[i].code || !strstr(err.msg, CASES[i].part))
            fail_msg("case %zu gave %s: %s", i, kn_code_name(rc), err.msg);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_windows_are_covered_exactly_and_survive_their_text),
        cmocka_unit_test(chunks_keep_to_their_budget_within_one_step_of_rows),
        cmocka_unit_test(small_files_share_a_chunk),
        cmocka_unit_test(a_row_larger_than_the_budget_still_goes),
        cmocka_unit_test(settling_counts_live_rows_and_drops_empty_chunks),
        cmocka_unit_test(the_number_of_buckets_follows_the_cost),
        cmocka_unit_test(plans_that_do_not_add_up_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
