/* SPDX-License-Identifier: Apache-2.0 */
/* test_native_batch.c - batch pipelines on the embedded engine: files in, files out. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fault.h"
#include "pipeline/backend.h"
#include "support/tempdir.h"
#include "unit/pipeline/native_bench.h"

static const char *orders(const Bench *b, const char *name)
{
    const char *file = bench_path(b, name);
    bench_exec(b, kn_arena_printf(
                      b->arena,
                      "COPY (SELECT * FROM (VALUES (1, 'ann', 'US', 50, 'x'), (2, 'bob', 'EU', "
                      "150, 'y'), (3, 'cat', 'US', 250, NULL)) t(id, customer, region, amount, "
                      "note)) TO '%s'",
                      file));
    return file;
}

static KnCode run_with(const KnPipeline *p, const KnRunOptions *opts, KnErr *err)
{
    KnRunOptions all = *opts;
    all.engine.threads = 1;
    return kn_backend_native.run(p, &all, err);
}

static void runs(const KnPipeline *p)
{
    KnErr err = {0};
    if (run_with(p, &(KnRunOptions){0}, &err) != KN_OK)
        fail_msg("%s", err.msg);
}

static void fails(const KnPipeline *p, KnCode code, const char *words)
{
    KnErr err = {0};
    assert_int_equal(run_with(p, &(KnRunOptions){0}, &err), code);
    if (!strstr(err.msg, words))
        fail_msg("'%s' is not in: %s", words, err.msg);
}

static bool exists(const char *file)
{
    return access(file, F_OK) == 0;
}

#define INPUT(file)  .inputs = {KNUT_LIST(KnutInput, {.name = "orders", .path = (file)})}
#define READS_ORDERS .reads = {KNUT_LIST(const char *const, "orders")}
#define ROLLUP       "SELECT region, sum(amount)::BIGINT AS total FROM orders GROUP BY region"

static KnPipeline *rollup(const Bench *b, const char *from, const char *to)
{
    return kn_pipeline_copy(
        b->arena,
        &(KnPipeline){
            .name = "rollup",
            INPUT(from),
            .datasets = {KNUT_LIST(
                KnutDataset, {.name = "by_region", .output_type = KNUT_OUTPUT_SINK, .path = to})},
            .flows = {KNUT_LIST(
                KnutFlow, {.name = "agg", .target = "by_region", READS_ORDERS, .query = ROLLUP})},
        });
}

static void every_format_is_read_and_written(void **state)
{
    const Bench *b = *state;
    static const char *const formats[] = {"parquet", "csv", "json"};
    for (size_t i = 0; i < 3; i++) {
        const char *from = orders(b, kn_arena_printf(b->arena, "orders.%s", formats[i]));
        const char *to =
            bench_path(b, kn_arena_printf(b->arena, "new/%s/out.%s", formats[i], formats[i]));
        runs(rollup(b, from, to));
        assert_string_equal(
            bench_value(b, "SELECT string_agg(region || total, ' ' ORDER BY region) FROM '%s'", to),
            "EU150 US300");
    }
    assert_int_equal(test_dir_count(bench_path(b, "new/csv")), 1); /* nothing stays beside it */
}

static KnutDataset *sink_of(KnPipeline *p)
{
    return (KnutDataset *)p->datasets.items;
}

static void a_partitioned_sink_is_a_hive_folder_and_comes_back(void **state)
{
    const Bench *b = *state;
    KnPipeline *p = rollup(b, orders(b, "orders.parquet"), bench_path(b, "hive"));
    sink_of(p)->format = "parquet";
    sink_of(p)->partition_cols = KNUT_NAMES("region");
    runs(p);
    assert_true(exists(bench_path(b, "hive/region=US")));
    assert_true(exists(bench_path(b, "hive/region=EU")));
    KnPipeline *back = rollup(b, bench_path(b, "hive"), bench_path(b, "back.csv"));
    KnutInput *input = (KnutInput *)back->inputs.items;
    input->format = "parquet";
    input->partition_cols = KNUT_NAMES("region");
    ((KnutFlow *)back->flows.items)->query = "SELECT region, total FROM orders ORDER BY region";
    runs(back);
    assert_string_equal(
        bench_value(b, "SELECT string_agg(region || total, ' ' ORDER BY region) FROM '%s'",
                    bench_path(b, "back.csv")),
        "EU150 US300");
}

static void a_missing_partition_column_fails_and_writes_nothing(void **state)
{
    const Bench *b = *state;
    KnPipeline *p = rollup(b, orders(b, "orders.parquet"), bench_path(b, "hive"));
    sink_of(p)->format = "parquet";
    sink_of(p)->partition_cols = KNUT_NAMES("country");
    fails(p, KN_E_INVAL, "partition column `country` not in output schema");
    assert_false(exists(bench_path(b, "hive")));
}

static void append_accumulates_and_overwrite_replaces(void **state)
{
    const Bench *b = *state;
    const KnutNames region = KNUT_NAMES("region");
    static const char *const targets[] = {"a.parquet", "a.csv", "a.json", "folder", "parted"};
    for (size_t i = 0; i < 5; i++) {
        KnPipeline *p = rollup(b, orders(b, "orders.parquet"), bench_path(b, targets[i]));
        if (i >= 3)
            sink_of(p)->format = "parquet";
        if (i == 4)
            sink_of(p)->partition_cols = region;
        const char *glob =
            i < 3 ? targets[i] : kn_arena_printf(b->arena, "%s/**/*.parquet", targets[i]);
        for (int runs_done = 1; runs_done <= 2; runs_done++) {
            runs(p);
            assert_string_equal(bench_value(b, "SELECT count(*) || ' ' || sum(total) FROM '%s'",
                                            bench_path(b, glob)),
                                runs_done == 1 ? "2 450" : "4 900");
        }
        sink_of(p)->write_mode = KNUT_WRITE_OVERWRITE;
        runs(p);
        assert_string_equal(
            bench_value(b, "SELECT count(*) || ' ' || sum(total) FROM '%s'", bench_path(b, glob)),
            "2 450");
    }
}

static void text_that_looks_like_a_number_survives_being_added_to(void **state)
{
    const Bench *b = *state;
    KnPipeline *p = rollup(b, orders(b, "orders.parquet"), bench_path(b, "t.csv"));
    ((KnutFlow *)p->flows.items)->query = "SELECT '007' AS code, '' AS empty, NULL::VARCHAR AS "
                                          "none, 'a\"b,c' AS odd FROM orders LIMIT 1";
    runs(p);
    runs(p);
    assert_string_equal(
        bench_value(b, "SELECT content FROM read_text('%s')", bench_path(b, "t.csv")),
        "code,empty,none,odd\n007,\"\",,\"a\"\"b,c\"\n007,\"\",,\"a\"\"b,c\"\n");
}

static KnPipeline *two_flows(const Bench *b, const char *second)
{
    return kn_pipeline_copy(
        b->arena,
        &(KnPipeline){
            .name = "fan_in",
            INPUT(orders(b, "orders.parquet")),
            .datasets = {KNUT_LIST(
                KnutDataset, {.name = "all_rows"},
                {.name = "n", .output_type = KNUT_OUTPUT_SINK, .path = bench_path(b, "n.csv")})},
            .flows = {KNUT_LIST(KnutFlow,
                                {.name = "f1",
                                 .target = "all_rows",
                                 READS_ORDERS,
                                 .query = "SELECT id FROM orders"},
                                {.name = "f2", .target = "all_rows", READS_ORDERS, .query = second},
                                {.name = "f3",
                                 .target = "n",
                                 .reads = {KNUT_LIST(const char *const, "all_rows")},
                                 .query = "SELECT count(*) AS n, sum(id) AS s FROM all_rows;"})},
        });
}

static void flows_into_one_target_are_united(void **state)
{
    const Bench *b = *state;
    runs(two_flows(b, "SELECT id + 10 AS id FROM orders"));
    assert_string_equal(bench_value(b, "SELECT n || ' ' || s FROM '%s'", bench_path(b, "n.csv")),
                        "6 42");
}

static void flows_that_do_not_agree_fail_loudly(void **state)
{
    const Bench *b = *state;
    fails(two_flows(b, "SELECT customer AS id FROM orders"), KN_E_INVAL,
          "union-append into `all_rows`: flow `f2` output schema has id VARCHAR");
    fails(two_flows(b, "SELECT id, customer FROM orders"), KN_E_INVAL, "2 column(s)");
    assert_false(exists(bench_path(b, "n.csv")));
}

/* ---- plans ---- */

typedef struct Seen {
    KnBuf text;
} Seen;

static KnCode see_step(void *arg, const KnPlanStep *step, KnErr *err)
{
    (void)err;
    Seen *seen = arg;
    if (step->scan)
        kn_buf_printf(&seen->text, "%s scan [%s] [%s]; ", step->dataset, step->columns,
                      step->filter ? step->filter : "");
    else
        kn_buf_printf(&seen->text, "%s %s; ", step->dataset, step->action);
    return KN_OK;
}

static void assert_plan(const KnPipeline *p, const char *want)
{
    KnErr err = {0};
    Seen seen = {.text = {.max = 1 << 16}};
    if (kn_backend_native.plan(p, &(KnRunOptions){.engine = {.threads = 1}}, see_step, &seen,
                               &err) != KN_OK)
        fail_msg("%s", err.msg);
    assert_string_equal(seen.text.data, want);
    kn_buf_done(&seen.text);
}

static void projection_and_filter_reach_the_scan(void **state)
{
    const Bench *b = *state;
    KnPipeline *p = rollup(b, orders(b, "orders.parquet"), bench_path(b, "slim.csv"));
    KnutFlow *flow = (KnutFlow *)p->flows.items;
    flow->query = NULL;
    flow->projection = KNUT_NAMES("customer", "amount");
    flow->filter = "amount > 100";
    assert_plan(p, "by_region write; by_region scan [customer, amount] [amount>100]; ");
    runs(p);
    assert_string_equal(
        bench_value(b, "SELECT content FROM read_text('%s')", bench_path(b, "slim.csv")),
        "customer,amount\nbob,150\ncat,250\n");
}

static KnPipeline *chain(const Bench *b, const char *last)
{
    return kn_pipeline_copy(
        b->arena, &(KnPipeline){
                      .name = "chain",
                      INPUT(orders(b, "orders.parquet")),
                      .datasets = {KNUT_LIST(KnutDataset, {.name = "clean"},
                                             {.name = "out",
                                              .output_type = KNUT_OUTPUT_SINK,
                                              .path = bench_path(b, "out.parquet")})},
                      .flows = {KNUT_LIST(KnutFlow,
                                          {.name = "f1",
                                           .target = "clean",
                                           READS_ORDERS,
                                           .query = "SELECT * FROM orders WHERE amount > 100"},
                                          {.name = "f2",
                                           .target = "out",
                                           .reads = {KNUT_LIST(const char *const, "clean")},
                                           .query = last})},
                  });
}

static void what_is_read_once_is_a_view_and_what_is_read_twice_a_table(void **state)
{
    const Bench *b = *state;
    assert_plan(chain(b, "SELECT sum(id) AS s FROM clean"),
                "clean view; out write; out scan [id] [amount>100]; ");
    assert_plan(chain(b, "SELECT a.id FROM clean a, clean b WHERE a.id = b.id"),
                "clean table; clean scan [id, customer, region, amount, note] [amount>100]; out "
                "write; out scan [id] []; out scan [id] []; ");
}

/* ---- declared schemas, expectations ---- */

static void a_declared_schema_is_enforced(void **state)
{
    const Bench *b = *state;
    KnPipeline *p = rollup(b, orders(b, "orders.parquet"), bench_path(b, "out.parquet"));
    static const KnutSchemaField good[] = {{"total", "Decimal128(20, 1)", true, NULL},
                                           {"region", "Utf8", false, NULL}};
    static const KnutSchemaField narrow[] = {{"total", "Int32", true, NULL},
                                             {"region", "Utf8", true, NULL}};
    static const KnutSchemaField missing[] = {
        {"total", "Int64", true, NULL}, {"region", "Utf8", true, NULL}, {"n", "Int64", true, NULL}};
    sink_of(p)->schema = (KnutSchema){good, 2};
    runs(p);
    assert_string_equal(
        bench_value(
            b,
            "SELECT string_agg(column_name || ' ' || column_type, ', ') FROM (DESCRIBE FROM '%s')",
            bench_path(b, "out.parquet")),
        "total DECIMAL(20,1), region VARCHAR");
    sink_of(p)->schema = (KnutSchema){narrow, 2};
    fails(p, KN_E_INVAL, "column total is declared Int32, and its rows have BIGINT");
    sink_of(p)->schema = (KnutSchema){missing, 3};
    fails(p, KN_E_INVAL, "declares a column n that its rows do not have");
    sink_of(p)->schema = (KnutSchema){good, 1};
    fails(p, KN_E_INVAL, "have a column region that its schema does not declare");
}

static void a_null_in_a_column_declared_not_null_fails(void **state)
{
    const Bench *b = *state;
    static const KnutSchemaField fields[] = {{"note", "Utf8", false, NULL}};
    KnPipeline *p = rollup(b, orders(b, "orders.parquet"), bench_path(b, "out.parquet"));
    ((KnutFlow *)p->flows.items)->query = "SELECT note FROM orders";
    sink_of(p)->schema = (KnutSchema){fields, 1};
    fails(p, KN_E_REFUSED, "column note is declared NOT NULL, and 1 row(s) have NULL in it");
    assert_false(exists(bench_path(b, "out.parquet")));
}

static void the_schema_of_an_input_decides_how_text_is_read(void **state)
{
    const Bench *b = *state;
    static const KnutSchemaField fields[] = {{"zip", "Utf8", true, NULL},
                                             {"n", "Int64", true, NULL}};
    bench_exec(b, kn_arena_printf(b->arena, "COPY (SELECT '00123' AS zip, 5 AS n) TO '%s'",
                                  bench_path(b, "in.csv")));
    KnPipeline *p = rollup(b, bench_path(b, "in.csv"), bench_path(b, "out.csv"));
    ((KnutInput *)p->inputs.items)->schema = (KnutSchema){fields, 2};
    ((KnutFlow *)p->flows.items)->query = "SELECT zip, n FROM orders";
    runs(p);
    assert_string_equal(
        bench_value(b, "SELECT content FROM read_text('%s')", bench_path(b, "out.csv")),
        "zip,n\n00123,5\n");
    bench_exec(b, kn_arena_printf(b->arena, "COPY (SELECT '00123' AS zip, 'five' AS n) TO '%s'",
                                  bench_path(b, "in.csv")));
    fails(p, KN_E_CORRUPT, "five");
}

typedef struct Told {
    KnBuf text;
    int64_t rows, violations, unknown;
} Told;

static void hear(void *arg, const KnRunEvent *event)
{
    Told *told = arg;
    kn_buf_printf(&told->text, "%s\n", event->message);
    if (event->metrics && event->metrics->expectation) {
        told->rows += event->metrics->rows;
        told->violations += event->metrics->violations;
        told->unknown += event->metrics->unknown;
    }
}

static KnPipeline *expecting(const Bench *b, KnutExpectation one, KnutExpectation two)
{
    KnPipeline *p = rollup(b, orders(b, "orders.parquet"), bench_path(b, "out.csv"));
    KnutFlow *flow = (KnutFlow *)p->flows.items;
    flow->query = "SELECT id, note, amount FROM orders";
    KnutExpectation *items = kn_arena_zalloc(b->arena, 2 * sizeof(*items));
    items[0] = one;
    items[1] = two;
    flow->expectations.items = items;
    flow->expectations.len = two.name ? 2 : 1;
    return p;
}

static void warn_keeps_rows_drop_takes_them_and_both_count(void **state)
{
    const Bench *b = *state;
    KnPipeline *p = expecting(b, (KnutExpectation){"big", "amount > 100", KNUT_ON_VIOLATION_DROP},
                              (KnutExpectation){"noted", "note <> 'y'", KNUT_ON_VIOLATION_WARN});
    Told told = {.text = {.max = 1 << 16}};
    KnErr err = {0};
    KnRunOptions opts = {.on_event = hear, .event_arg = &told};
    if (run_with(p, &opts, &err) != KN_OK)
        fail_msg("%s", err.msg);
    assert_non_null(strstr(told.text.data, "expectation `big` DROP: dropped 1 row(s), 2 kept\n"));
    assert_non_null(strstr(told.text.data, "expectation `noted` WARN: 1 violating row(s) kept\n"));
    assert_int_equal(told.rows, 3 + 2); /* what the first dropped the second did not see */
    assert_int_equal(told.violations, 2);
    assert_int_equal(told.unknown, 1); /* NULL is no violation: the row stays */
    assert_string_equal(bench_value(b, "SELECT string_agg(id, ' ' ORDER BY id) FROM '%s'",
                                    bench_path(b, "out.csv")),
                        "2 3");
    kn_buf_done(&told.text);
}

static void an_expectation_that_fails_leaves_the_old_rows(void **state)
{
    const Bench *b = *state;
    KnPipeline *p = expecting(b, (KnutExpectation){"some", "amount > 0", KNUT_ON_VIOLATION_FAIL},
                              (KnutExpectation){0});
    runs(p);
    ((KnutExpectation *)p->flows.items[0].expectations.items)->constraint = "amount < 200";
    fails(p, KN_E_REFUSED, "expectation `some` FAILED on `by_region`: 1 violating row(s) of 3");
    assert_string_equal(bench_value(b, "SELECT count(*) FROM '%s'", bench_path(b, "out.csv")), "3");
    ((KnutExpectation *)p->flows.items[0].expectations.items)->constraint = "amonut < 200";
    fails(p, KN_E_INVAL, "amonut");
}

static void counts_are_whole_where_readers_want_a_part(void **state)
{
    const Bench *b = *state;
    KnPipeline *p = chain(b, "SELECT id FROM clean WHERE id = 2 LIMIT 1");
    static const KnutExpectation known = {"known", "id <> 2", KNUT_ON_VIOLATION_WARN};
    ((KnutFlow *)p->flows.items)->expectations.items = &known;
    ((KnutFlow *)p->flows.items)->expectations.len = 1;
    Told told = {.text = {.max = 1 << 16}};
    assert_int_equal(run_with(p, &(KnRunOptions){.on_event = hear, .event_arg = &told}, NULL),
                     KN_OK);
    assert_int_equal(told.rows, 2);
    assert_int_equal(told.violations, 1);
    kn_buf_done(&told.text);
}

/* ---- ends before their time ---- */

static void a_failure_at_any_point_leaves_the_old_or_the_new(void **state)
{
    const Bench *b = *state;
    static const char *const points[] = {"pipeline-computed", "pipeline-staged", "pipeline-publish",
                                         "pipeline-published"};
    static const char *const targets[] = {"a.parquet", "folder"};
    for (size_t t = 0; t < 2; t++) {
        KnPipeline *p = rollup(b, orders(b, "orders.parquet"), bench_path(b, targets[t]));
        const char *glob = t ? bench_path(b, "folder/*.parquet") : bench_path(b, "a.parquet");
        sink_of(p)->format = "parquet";
        runs(p);
        for (size_t i = 0; i < 4; i++) {
            const char *before = bench_value(b, "SELECT count(*) FROM '%s'", glob);
            const char *fault = kn_arena_printf(b->arena, "%s:1:fail", points[i]);
            assert_int_equal(kn_fault_set(fault, NULL, NULL), KN_OK);
            fails(p, KN_E_IO, points[i]);
            assert_int_equal(kn_fault_set(NULL, NULL, NULL), KN_OK);
            const char *after = bench_value(b, "SELECT count(*) FROM '%s'", glob);
            assert_int_equal(strtol(after, NULL, 10), strtol(before, NULL, 10) + (i == 3 ? 2 : 0));
            assert_int_equal(test_dir_count(b->dir), 2 + t);
        }
    }
}

static void a_cancelled_run_writes_nothing(void **state)
{
    const Bench *b = *state;
    KnPipeline *p = rollup(b, orders(b, "orders.parquet"), bench_path(b, "out.csv"));
    ((KnutFlow *)p->flows.items)->query =
        "SELECT sum(a.range * b.range) AS total FROM range(10000000) a, range(10000000) b, orders";
    KnRunControl control = {0};
    kn_run_cancel(&control);
    KnErr err = {0};
    assert_int_equal(run_with(p, &(KnRunOptions){.control = &control}, &err), KN_E_CANCELLED);
    assert_false(exists(bench_path(b, "out.csv")));
}

static bool cancel_late(void)
{
    static atomic_int asked;
    return atomic_fetch_add(&asked, 1) >= 4; /* by then the query runs, which would take days */
}

static void a_running_statement_is_interrupted(void **state)
{
    const Bench *b = *state;
    KnPipeline *p = rollup(b, orders(b, "orders.parquet"), bench_path(b, "out.csv"));
    ((KnutFlow *)p->flows.items)->query =
        "SELECT sum(a.range * b.range) AS total FROM range(10000000) a, range(10000000) b, orders";
    KnErr err = {0};
    assert_int_equal(run_with(p, &(KnRunOptions){.cancelled = cancel_late}, &err), KN_E_CANCELLED);
    assert_false(exists(bench_path(b, "out.csv")));
}

/* ---- what is not done is said ---- */

static void check_names_all_that_is_not_done(void **state)
{
    const Bench *b = *state;
    KnPipeline *p = rollup(b, bench_path(b, "orders.parquet"), bench_path(b, "hive"));
    sink_of(p)->format = "arrow";
    ((KnutFlow *)p->flows.items)->kind.tag = KNUT_FLOW_STREAMING;
    ((KnutFlow *)p->flows.items)->kind.streaming.source =
        (KnutSource){.tag = KNUT_SOURCE_KAFKA, .kafka = {.topic = "t"}};
    ((KnutFlow *)p->flows.items)->reads = KNUT_NAMES("orders", "nowhere");
    ((KnutInput *)p->inputs.items)->path = "gs://bucket/orders.parquet";
    KN_NOTES_AUTO notes = {.arena = b->arena};
    kn_backend_native.check(p, NULL, &notes);
    static const char *const words[] = {"files are read locally and from s3://", "format arrow",
                                        "is not one that is read", "nothing supplies that"};
    for (size_t i = 0; i < 4; i++) {
        bool said = false;
        kn_vec_foreach (&notes.list, note) {
            said |= strstr(note->text, words[i]) != NULL;
        }
        if (!said)
            fail_msg("nothing of %s", words[i]);
    }
    fails(p, KN_E_UNSUPPORTED, "files are read locally and from s3://");
}

static KnCode feed_once(void *arg, KnBatch **ret, KnErr *err)
{
    (void)err;
    KnBatch **left = arg;
    *ret = *left;
    *left = NULL;
    return KN_OK;
}

static KnCode keep_batch(void *arg, KnBatch *batch, KnErr *err)
{
    (void)err;
    KnBatch **kept = arg;
    if (!*kept)
        *kept = kn_batch_ref(batch);
    return KN_OK;
}

static KnCode sum_rows(void *arg, const char *dataset, KnSession *ses, KnBatch *batch, KnErr *err)
{
    (void)err;
    (void)ses;
    assert_string_equal(dataset, "total");
    KnVector vec = kn_batch_vector(batch, 0);
    *(int64_t *)arg += ((const int64_t *)vec.data)[0];
    return KN_OK;
}

static void rows_of_ours_go_in_and_rows_come_out(void **state)
{
    const Bench *b = *state;
    KnBatch *batch = NULL;
    KnErr err = {0};
    assert_int_equal(
        kn_session_visit(b->session, "SELECT range AS v FROM range(10)", keep_batch, &batch, NULL),
        KN_OK);
    static const char *const names[] = {"v"}, *const types[] = {"BIGINT"};
    KnFeedOptions memory = {"seed", names, types, 1, feed_once, &batch};
    KnPipeline *p = kn_pipeline_copy(
        b->arena, &(KnPipeline){.name = "memory",
                                .datasets = {KNUT_LIST(KnutDataset, {.name = "total"})},
                                .flows = {KNUT_LIST(
                                    KnutFlow, {.name = "f",
                                               .target = "total",
                                               .reads = {KNUT_LIST(const char *const, "seed")},
                                               .query = "SELECT sum(v)::BIGINT AS s FROM seed"})}});
    int64_t sum = 0;
    KnRunOptions opts = {.memory = &memory, .n_memory = 1, .on_rows = sum_rows, .rows_arg = &sum};
    if (run_with(p, &opts, &err) != KN_OK)
        fail_msg("%s", err.msg);
    assert_int_equal(sum, 45);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, bench_set_up, bench_tear_down)
int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(every_format_is_read_and_written),
        CASE(a_partitioned_sink_is_a_hive_folder_and_comes_back),
        CASE(a_missing_partition_column_fails_and_writes_nothing),
        CASE(append_accumulates_and_overwrite_replaces),
        CASE(text_that_looks_like_a_number_survives_being_added_to),
        CASE(flows_into_one_target_are_united),
        CASE(flows_that_do_not_agree_fail_loudly),
        CASE(projection_and_filter_reach_the_scan),
        CASE(what_is_read_once_is_a_view_and_what_is_read_twice_a_table),
        CASE(a_declared_schema_is_enforced),
        CASE(a_null_in_a_column_declared_not_null_fails),
        CASE(the_schema_of_an_input_decides_how_text_is_read),
        CASE(warn_keeps_rows_drop_takes_them_and_both_count),
        CASE(an_expectation_that_fails_leaves_the_old_rows),
        CASE(counts_are_whole_where_readers_want_a_part),
        CASE(a_failure_at_any_point_leaves_the_old_or_the_new),
        CASE(a_cancelled_run_writes_nothing),
        CASE(a_running_statement_is_interrupted),
        CASE(check_names_all_that_is_not_done),
        CASE(rows_of_ours_go_in_and_rows_come_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
