/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_native_plan.c - what a run would read and store, proven by the engine's own plans.
 *
 * KN_TEST_SEED repeats a run, KN_TEST_STEPS says how many random graphs (10).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "pipeline/backend.h"
#include "unit/pipeline/native_bench.h"
#include "unit/pipeline/pipelines.h"

static void plan(const KnPipeline *p, KnPlanStepFn fn, void *arg)
{
    KnErr err = {0};
    if (kn_backend_native.plan(p, &(KnRunOptions){.engine = {.threads = 1}}, fn, arg, &err) !=
        KN_OK)
        fail_msg("%s", err.msg);
}

/* ---- what is taken from a source ---- */

static KnCode keep_scan(void *arg, const KnPlanStep *step, KnErr *err)
{
    (void)err;
    if (step->scan)
        kn_buf_printf(arg, "%s [%s] [%s]; ", step->scan, step->columns,
                      step->filter ? step->filter : "");
    return KN_OK;
}

static const char *scans_of(const Bench *b, KnutFlow flow)
{
    KN_BUF_AUTO out = {.max = 1 << 16};
    static const char *const reads[] = {"wide"};
    flow.name = "f";
    flow.target = "slim";
    flow.reads = (KnutNames){reads, 1};
    const KnPipeline p = {
        .name = "slim",
        .inputs = {KNUT_LIST(KnutInput, {.name = "wide", .path = bench_path(b, "wide.parquet")})},
        .datasets = {KNUT_LIST(KnutDataset, {.name = "slim",
                                             .output_type = KNUT_OUTPUT_SINK,
                                             .path = bench_path(b, "slim.parquet")})},
        .flows = {&flow, 1},
    };
    plan(&p, keep_scan, &out);
    return kn_arena_strndup(b->arena, out.data, out.len);
}

static void a_scan_of_parquet_takes_the_columns_and_rows_that_are_used(void **state)
{
    const Bench *b = *state;
    static const char *const columns[] = {"b", "c"};
    bench_exec(
        b, kn_arena_printf(b->arena,
                           "COPY (SELECT range AS a, 2 * range AS b, 'x' || range AS c, range AS "
                           "d FROM range(10)) TO '%s'",
                           bench_path(b, "wide.parquet")));
    assert_string_equal(scans_of(b, (KnutFlow){.projection = {columns, 1}, .filter = "d > 3"}),
                        "READ_PARQUET [b] [d>3]; ");
    assert_string_equal(scans_of(b, (KnutFlow){.query = "SELECT a, sum(b) FROM wide WHERE c = 'x1' "
                                                        "GROUP BY a"}),
                        "READ_PARQUET [a, b] [c='x1']; ");
    /* A projection and a filter next to a query are of its result, and reach the scan as well. */
    assert_string_equal(scans_of(b, (KnutFlow){.query = "SELECT a + b AS b, c, d FROM wide",
                                               .projection = {columns, 2},
                                               .filter = "d > 3"}),
                        "READ_PARQUET [a, b, c] [d>3]; ");
}

/* ---- what is stored ---- */

enum { MAX_NODES = 10 };

/* Datasets n0, n1, ...; each reads some of those before it, and may be written. */
typedef struct Graph {
    KnArena *arena;
    KnPipelineBuilder *builder;
    size_t uses[MAX_NODES]; /* how often each is read, and written */
    size_t len;
    size_t told;
} Graph;

static void add_node(Graph *g, const Bench *b, KnRng *rng)
{
    size_t i = g->len++;
    const char *reads[MAX_NODES];
    size_t n = 0;
    KN_BUF_AUTO sql = {.max = 4096};
    kn_buf_text(&sql, "SELECT 1 AS x");
    for (size_t k = 0; k < i; k++) {
        if (kn_rng_below(rng, 3) > 0)
            continue;
        size_t times = 1 + kn_rng_below(rng, 8) / 7; /* seldom twice in one query */
        reads[n++] = kn_arena_printf(g->arena, "n%zu", k);
        for (size_t t = 0; t < times; t++)
            kn_buf_printf(&sql, " UNION ALL SELECT x FROM n%zu", k);
        g->uses[k] += times;
    }
    bool written = i + 1 == MAX_NODES || kn_rng_below(rng, 4) == 0;
    const char *name = kn_arena_printf(g->arena, "n%zu", i);
    g->uses[i] = written;
    (void)kn_pipeline_add_dataset(
        g->builder,
        &(KnutDataset){.name = name,
                       .output_type = KNUT_OUTPUT_TABLE,
                       .path =
                           written ? kn_arena_printf(g->arena, "%s/%s.csv", b->dir, name) : NULL});
    (void)kn_pipeline_add_flow(
        g->builder,
        &(KnutFlow){.name = name, .target = name, .reads = {reads, n}, .query = sql.data});
}

static KnCode check_action(void *arg, const KnPlanStep *step, KnErr *err)
{
    (void)err;
    Graph *g = arg;
    if (step->scan)
        return KN_OK;
    size_t uses = g->uses[strtoul(step->dataset + 1, NULL, 10)];
    const char *want = uses > 1 ? "table" : step->target ? "write" : uses ? "view" : "count";
    if (strcmp(step->action, want) != 0)
        fail_msg("%s: used %zu times, is %s", step->dataset, uses, step->action);
    g->told++;
    return KN_OK;
}

static void what_is_used_once_is_never_stored(void **state)
{
    const Bench *b = *state;
    KnRng rng = pipeline_seed();
    const char *given = getenv("KN_TEST_STEPS");
    for (long step = given ? strtol(given, NULL, 10) : 10; step > 0; step--) {
        KN_ARENA_AUTO arena = kn_arena_new(4096);
        Graph g = {.arena = arena, .builder = kn_pipeline_builder_new(arena, "random")};
        while (g.len < MAX_NODES)
            add_node(&g, b, &rng);
        plan(&g.builder->spec, check_action, &g);
        assert_int_equal(g.told, MAX_NODES);
    }
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, bench_set_up, bench_tear_down)
int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(a_scan_of_parquet_takes_the_columns_and_rows_that_are_used),
        CASE(what_is_used_once_is_never_stored),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
