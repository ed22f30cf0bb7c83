/* SPDX-License-Identifier: Apache-2.0 */
/* test_check.c - each rule is broken once; all flaws are told at once; many flows are quick. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "pipeline/check/check.h"
#include "pipeline/check/partition.h"
#include "pipeline/check/queries.h"
#include "pipeline/surface/surfaces.h"
#include "unit/pipeline/pipelines.h"

#define DATASETS(...) "(name:\"p\",datasets:[" __VA_ARGS__ "],flows:["
#define A             "(name:\"a\",output_type:table)"
#define FLOW(rest)    "(name:\"f\",target:\"a\",kind:" rest ")"
#define STREAM(rest)  FLOW("streaming(source:cdc(source:\"s\")" rest ")")
#define CDC(rest)                                                                                  \
    "(name:\"f\",target:\"a\",reads:[\"x\"],kind:cdc(cdc:(keys:[\"id\"],sequence_by:\"seq\","      \
    "scd_type:type1" rest ")))"
#define TYPED_IN                                                                                   \
    "],inputs:[(name:\"x\",path:\"x.csv\",schema:(fields:[(name:\"id\",arrow_type:\"Int64\","      \
    "nullable:false),(name:\"ts\",arrow_type:\"Utf8\",nullable:true)]))])"
#define SCHEMA(fields) "(name:\"a\",output_type:table,schema:(fields:[" fields "]))"
#define ID             "(name:\"id\",arrow_type:\"Int64\",nullable:false)"
#define END            "])"

static KnEngine *engine;
static KnSession *session;

static int open_engine(void **state)
{
    (void)state;
    return kn_engine_open(&(KnEngineOptions){.threads = 1}, &engine, NULL) == KN_OK &&
                   kn_session_open(engine, &session, NULL) == KN_OK
               ? 0
               : -1;
}

static int close_engine(void **state)
{
    (void)state;
    session = kn_session_close(session);
    engine = kn_engine_close(engine);
    return 0;
}

static void check(KnArena *arena, const char *text, KnFlaws *flaws)
{
    KnErr err = {0};
    char *whole = kn_arena_printf(arena, "#![enable(implicit_some)]%s", text);
    const KnGraph *graph = kn_graph_new(arena, pipeline_read(arena, &kn_surface_ron, whole));
    kn_pipeline_check(graph, flaws);
    if (kn_pipeline_check_queries(graph, session, flaws, &err) != KN_OK)
        fail_msg("%s", err.msg);
}

static const KnFlaw *find(const KnFlaws *flaws, const char *rule)
{
    kn_vec_foreach (&flaws->list, p) {
        if (strcmp(p->rule, rule) == 0)
            return p;
    }
    return NULL;
}

/* The rule, a pipeline that breaks it, and a part of what is said. */
static const struct {
    const char *rule, *text, *said;
} breaches[] = {
    {"empty-name", "(name:\"\",datasets:[],flows:[])", "the name is empty"},
    {"duplicate-name", DATASETS(A "," A) FLOW("batch") END, "used twice"},
    {"duplicate-name", DATASETS(A) FLOW("batch") "," FLOW("batch") END, "used twice"},
    {"duplicate-name", DATASETS(A) FLOW("batch") "],inputs:[(name:\"a\",path:\"p\")])", "twice"},
    {"duplicate-name",
     DATASETS(A) FLOW("batch,expectations:[(name:\"e\",constraint:\"x\"),(name:\"e\",constraint:"
                      "\"y\")]") END,
     "two expectations `e`"},
    {"names-differ-in-case", DATASETS(A ",(name:\"A\",output_type:sink)") FLOW("batch") END,
     "in case only"},
    {"unknown-target",
     DATASETS("(name:\"orders\",output_type:table)") "(name:\"f\",target:\"oders\",kind:batch)" END,
     "`oders`, which is no dataset; did you mean `orders`?"},
    {"read-differs-in-case",
     DATASETS(A ",(name:\"B\",output_type:table)") FLOW("batch,reads:[\"b\"]") END,
     "taken for `B`"},
    {"read-not-known",
     DATASETS(A ",(name:\"orders\",output_type:table)") FLOW("batch,reads:[\"oders\"]") END,
     "did you mean `orders`?"},
    {"reads-sink", DATASETS(A ",(name:\"b\",output_type:sink)") FLOW("batch,reads:[\"b\"]") END,
     "the sink `b`"},
    {"unused-input", DATASETS(A) FLOW("batch") TYPED_IN, "no flow reads it"},
    {"no-flow", DATASETS(A) END, "no flow writes it"},
    {"view-with-place", DATASETS("(name:\"a\",output_type:temporary_view,path:\"x\")") END,
     "stored"},
    {"view-of-stream", DATASETS("(name:\"a\",output_type:materialized_view)") STREAM("") END,
     "a streaming flow writes"},
    {"empty-text", DATASETS(A) FLOW("batch,query:\"\"") END, "the query is empty"},
    {"empty-text",
     DATASETS(A) FLOW("streaming(source:kafka(bootstrap:\"b\",topic:\"\",format:\"x\"))") END,
     "the topic of its source is empty"},
    {"duplicate-column", DATASETS(SCHEMA(ID "," ID)) FLOW("batch") END, "`id` twice"},
    {"duplicate-column", DATASETS(A) FLOW("batch,projection:[\"x\",\"X\"]") END, "`X` twice"},
    {"bad-type", DATASETS(SCHEMA("(name:\"n\",arrow_type:\"bigint\",nullable:true)")) END,
     "column `n`: 'bigint' is no Arrow type"},
    {"unknown-column", DATASETS(A) FLOW("batch,reads:[\"x\"],projection:[\"idd\"]") TYPED_IN,
     "`idd` is not in the declared schema; did you mean `id`?"},
    {"unknown-column", DATASETS(SCHEMA(ID)) FLOW("batch,reads:[\"x\"]") TYPED_IN,
     "gives the column `ts`, which its target lacks"},
    {"unknown-column",
     DATASETS("(name:\"a\",output_type:table,keys:[\"k\"],schema:(fields:[" ID "]))") END,
     "the key `k`"},
    {"unknown-column",
     DATASETS("(name:\"a\",output_type:table,partition_cols:[\"days(t)\"],schema:(fields:[" ID
              "]))") END,
     "the partition column `t`"},
    {"type-mismatch",
     DATASETS(SCHEMA("(name:\"id\",arrow_type:\"Utf8\",nullable:true)"))
         FLOW("batch,reads:[\"x\"],projection:[\"id\"]") TYPED_IN,
     "column `id` is Int64, its target declares Utf8"},
    {"type-mismatch",
     DATASETS(SCHEMA(ID ",(name:\"ts\",arrow_type:\"LargeUtf8\",nullable:false)"))
         FLOW("batch,reads:[\"x\"]") TYPED_IN,
     "column `ts` may be NULL"},
    {"missing-column",
     DATASETS(SCHEMA(ID ",(name:\"n\",arrow_type:\"Int8\",nullable:false)"))
         FLOW("batch,reads:[\"x\"],projection:[\"id\"]") TYPED_IN,
     "column `n` is not nullable"},
    {"bad-partition",
     DATASETS("(name:\"a\",output_type:table,partition_cols:[\"bucket(id)\"])") END,
     "bucket(n, c)"},
    {"other-partition",
     DATASETS("(name:\"a\",output_type:table,partition_cols:[\"lower(id)\"])") END,
     "no partition transform"},
    {"no-query", DATASETS(A) FLOW("batch,reads:[\"x\",\"y\"]") END,
     "reads 2 things instead of one"},
    {"reads-one", DATASETS(A) FLOW("batch,filter:\"x > 0\"") END, "reads 0 things instead of one"},
    {"bad-event-time",
     DATASETS(A) FLOW("streaming(source:cdc(source:\"x\"),watermark:(event_time_column:\"ts\","
                      "allowed_lateness_ms:1))") TYPED_IN,
     "`ts` is Utf8: expected a Timestamp"},
    {"unknown-column",
     DATASETS(A) FLOW("streaming(source:cdc(source:\"x\"),watermark:(event_time_column:\"at\","
                      "allowed_lateness_ms:1))") TYPED_IN,
     "the event-time column `at`"},
    {"zero-window", DATASETS(A) STREAM(",window:tumbling(size_ms:0)") END,
     "the size of its window is 0"},
    {"zero-window", DATASETS(A) STREAM(",window:hopping(size_ms:1,slide_ms:0)") END, "the slide"},
    {"zero-window", DATASETS(A) STREAM(",window:session(gap_ms:0)") END, "the gap"},
    {"huge-duration",
     DATASETS(A) STREAM(",trigger:processing_time(interval_ms:9223372036854775808)") END, "2^63"},
    {"slide-beyond-size", DATASETS(A) STREAM(",window:hopping(size_ms:1,slide_ms:2)") END,
     "further"},
    {"window-without-watermark", DATASETS(A) STREAM(",window:session(gap_ms:1)") END,
     "never close"},
    {"deduplicate-without-watermark", DATASETS(A) STREAM(",deduplicate:[\"id\"]") END, "for ever"},
    {"cdc-keys",
     DATASETS(A) FLOW("cdc(cdc:(keys:[],sequence_by:\"s\",scd_type:type2)),reads:[\"x\"]") END,
     "it has no keys"},
    {"cdc-keys",
     DATASETS(A) CDC("") ",(name:\"g\",target:\"a\",reads:[\"x\"],kind:cdc(cdc:(keys:[\"no\"],"
                         "sequence_by:\"s\",scd_type:type1)))" END,
     "not those of `f`"},
    {"cdc-columns", DATASETS(A) CDC(",columns:[\"id\"],except_columns:[\"n\"]") END,
     "listed and excepted"},
    {"cdc-columns", DATASETS(A) CDC(",columns:[\"n\"]") END, "the key `id` is not among"},
    {"cdc-history", DATASETS(A) CDC(",track_history:[\"n\"]") END, "type1 keeps no history"},
    {"cdc-target", DATASETS("(name:\"a\",output_type:temporary_view)") CDC("") END,
     "temporary view"},
    {"cdc-target", DATASETS(A) "(name:\"g\",target:\"a\",kind:batch)," CDC("") END, "the flow `g`"},
    {"unknown-column", DATASETS(A) CDC("") TYPED_IN, "sequence_by `seq`"},
    {"unknown-column",
     DATASETS(A) FLOW("cdc(cdc:(keys:[\"idd\"],sequence_by:\"ts\",scd_type:type1)),reads:[\"x\"],"
                      "query:\"select *\\nFROM \\\"X\\\" ;\"") TYPED_IN,
     "the key `idd`"},
    {"reads-one", DATASETS(A) FLOW("cdc(cdc:(keys:[\"i\"],sequence_by:\"s\",scd_type:type1))") END,
     "reads 0 things"},
    {"bad-query", DATASETS(A) FLOW("batch,query:\"SELECT FROM WHERE\"") END,
     "does not read its query"},
    {"bad-query", DATASETS(A) FLOW("batch,query:\"SELECT 1 AS x\",filter:\"x >\"") END,
     "the filter `x >`"},
    {"bad-query", DATASETS(A) FLOW("batch,query:\"SELECT 1; SELECT 2\"") END, "does not read"},
    {"bad-query",
     DATASETS(A) FLOW(
         "batch,query:\"SELECT 1 AS x\",expectations:[(name:\"e\",constraint:\"x) OR (\")]") END,
     "the constraint `x) OR (`"},
    {"read-not-listed",
     DATASETS(A ",(name:\"b\",output_type:table)")
         FLOW("batch,query:\"SELECT * FROM t WHERE x IN (SELECT x FROM B)\",reads:[\"t\"]") END,
     "its query reads `B`"},
    {"read-not-used",
     DATASETS(A ",(name:\"b\",output_type:table)")
         FLOW("batch,query:\"SELECT 1\",reads:[\"b\",\"o\"]") END,
     "does not read `b`"},
    {"cycle",
     DATASETS(A ",(name:\"b\",output_type:table)")
         FLOW("batch,reads:[\"b\"]") ",(name:\"g\",target:\"b\",reads:[\"a\"],kind:batch)" END,
     "`a` -> `b` -> `a`"},
};

static void each_rule_is_told_with_its_thing(void **state)
{
    (void)state;
    bool broken[64] = {0};
    for (size_t i = 0; i < sizeof(breaches) / sizeof(breaches[0]); i++) {
        KN_ARENA_AUTO arena = kn_arena_new(4096);
        KN_FLAWS_AUTO flaws = {.arena = arena};
        check(arena, breaches[i].text, &flaws);
        bool said = false;
        kn_vec_foreach (&flaws.list, p) {
            said = said ||
                   (strcmp(p->rule, breaches[i].rule) == 0 && strstr(p->text, breaches[i].said));
        }
        const KnFlaw *first = find(&flaws, breaches[i].rule);
        if (!said)
            fail_msg("%s\n%s: %s", breaches[i].text, breaches[i].rule,
                     first ? first->text : "not told");
        for (size_t k = 0; k < kn_n_rules; k++)
            broken[k] = broken[k] || strcmp(kn_rules[k].name, breaches[i].rule) == 0;
    }
    for (size_t k = 0; k < kn_n_rules; k++)
        if (!broken[k])
            fail_msg("no test breaks %s", kn_rules[k].name);
}

static void what_is_right_is_not_complained_about(void **state)
{
    (void)state;
    static const char *const right[] = {
        "(name:\"p\",datasets:[(name:\"a\",output_type:table)],flows:[(name:\"f\",target:\"a\","
        "reads:["
        "\"outside\"],kind:batch,query:\"SELECT 1 FROM outside\")])",
        DATASETS(SCHEMA(ID ",(name:\"ts\",arrow_type:\"Utf8View\",nullable:true)"))
            FLOW("batch,reads:[\"x\"]") TYPED_IN,
        DATASETS(SCHEMA(ID ",(name:\"more\",arrow_type:\"Utf8\",nullable:true)"))
            FLOW("batch,reads:[\"x\"],projection:[\"ID\"]") TYPED_IN,
        DATASETS(A) CDC(",columns:[\"ID\",\"n\"]") END,
        DATASETS("(name:\"a\",output_type:table,partition_cols:[\"days(ts)\",\"bucket(16, id)\"])")
            FLOW(
                "streaming(source:file_drop(dir:\"d\",format:\"csv\"),watermark:(event_time_column:"
                "\"t\",allowed_lateness_ms:0),window:tumbling(size_ms:1))") END,
    };
    for (size_t i = 0; i < sizeof(right) / sizeof(right[0]); i++) {
        KN_ARENA_AUTO arena = kn_arena_new(4096);
        KN_FLAWS_AUTO flaws = {.arena = arena};
        check(arena, right[i], &flaws);
        if (flaws.list.len > 0)
            fail_msg("%s\n%s: %s", right[i], flaws.list.items[0].rule, flaws.list.items[0].text);
        assert_int_equal(kn_flaws_fail(&flaws, NULL), KN_OK);
    }
}

static void all_problems_are_told_at_once_in_order(void **state)
{
    (void)state;
    KN_ARENA_AUTO arena = kn_arena_new(4096);
    KN_FLAWS_AUTO flaws = {.arena = arena};
    check(arena,
          DATASETS(A "," A) "(name:\"f\",target:\"none\",kind:batch,query:\"\"),(name:\"g\",target:"
                            "\"a\",reads:[\"a\"],kind:batch)" END,
          &flaws);
    static const char *const rules[] = {"duplicate-name", "unknown-target", "empty-text", "cycle"};
    size_t at = 0;
    kn_vec_foreach (&flaws.list, p) {
        if (p->error)
            assert_string_equal(p->rule, rules[at++]);
    }
    assert_int_equal(at, 4);
    KnErr err = {0};
    assert_int_equal(kn_flaws_fail(&flaws, &err), KN_E_INVAL);
    assert_string_equal(err.msg, "dataset `a`: the name is used twice (and 3 more errors)");
}

static void the_samples_of_the_published_crate_have_no_errors(void **state)
{
    (void)state;
    static const char *const samples[] = {"pipelines/batch.ron",
                                          "pipelines/streaming.ron",
                                          "pipelines/streaming_defaults.ron",
                                          "pipelines/cdc_scd1.ron",
                                          "pipelines/partitioned_sink.ron",
                                          "pipelines/pushdown_expectations.ron"};
    for (size_t i = 0; i < sizeof(samples) / sizeof(samples[0]); i++) {
        KN_ARENA_AUTO arena = kn_arena_new(4096);
        KN_FLAWS_AUTO flaws = {.arena = arena};
        KnErr err = {0};
        check(arena, pipeline_data(arena, samples[i]), &flaws);
        if (kn_flaws_fail(&flaws, &err) != KN_OK)
            fail_msg("%s: %s", samples[i], err.msg);
    }
}

/* A chain, and one dataset that all read: whatever is quadratic in them takes minutes. */
static void twenty_thousand_flows_are_ordered_and_checked(void **state)
{
    (void)state;
    enum { N = 20000 };
    KN_ARENA_AUTO arena = kn_arena_new(1 << 20);
    KnutDataset *datasets = kn_arena_zalloc(arena, N * sizeof(*datasets));
    KnutFlow *flows = kn_arena_zalloc(arena, N * sizeof(*flows));
    for (size_t i = 0; i < N; i++) {
        const char **reads = kn_arena_alloc(arena, 2 * sizeof(*reads));
        datasets[i].name = kn_arena_printf(arena, "d%06zu", i);
        reads[0] = datasets[0].name;
        reads[1] = i ? datasets[i - 1].name : "outside";
        flows[i] = (KnutFlow){.name = datasets[i].name,
                              .target = datasets[i].name,
                              .reads = {reads + (i == 0), i ? 2 : 1},
                              .query = "SELECT 1"};
    }
    const KnPipeline pipeline = {.name = "p", .datasets = {datasets, N}, .flows = {flows, N}};
    KN_FLAWS_AUTO flaws = {.arena = arena};
    const KnGraph *graph = kn_graph_new(arena, &pipeline);
    kn_pipeline_check(graph, &flaws);
    assert_int_equal(flaws.list.len, 0);
    assert_int_equal(graph->order.items[N - 1], N - 1);
    const char *last[] = {datasets[N - 1].name};
    flows[0].reads = (KnutNames){last, 1};
    graph = kn_graph_new(arena, &pipeline);
    kn_pipeline_check(graph, &flaws);
    assert_int_equal(flaws.list.len, 1);
    assert_string_equal(flaws.list.items[0].rule, "cycle");
}

static void partitions_are_columns_or_transforms(void **state)
{
    (void)state;
    static const struct {
        const char *text, *column;
        KnPartitionKind kind;
        int64_t n;
    } right[] = {
        {"region", "region", KN_PARTITION_IDENTITY, 0},
        {"`a b`", "a b", KN_PARTITION_IDENTITY, 0},
        {"identity(x)", "x", KN_PARTITION_IDENTITY, 0},
        {"DAYS( ts )", "ts", KN_PARTITION_DAYS, 0},
        {"month(ts)", "ts", KN_PARTITION_MONTHS, 0},
        {"bucket(16, id)", "id", KN_PARTITION_BUCKET, 16},
        {"truncate(\"na\",4)", "na", KN_PARTITION_TRUNCATE, 4},
    };
    static const char *const wrong[] = {
        "",       "bucket(id)", "bucket(0, id)", "days(a, b)",     "days(ts",
        "days()", "a b",        "lower(x)",      "truncate(x, y)", "days(days(x))"};
    KnPartition p;
    for (size_t i = 0; i < sizeof(right) / sizeof(right[0]); i++) {
        assert_int_equal(kn_partition_parse(kn_str(right[i].text), &p, NULL), KN_OK);
        assert_true(kn_str_eq(p.column, kn_str(right[i].column)));
        assert_int_equal(p.kind, right[i].kind);
        assert_int_equal(p.n, right[i].n);
    }
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        if (kn_partition_parse(kn_str(wrong[i]), &p, NULL) == KN_OK)
            fail_msg("%s", wrong[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_rule_is_told_with_its_thing),
        cmocka_unit_test(what_is_right_is_not_complained_about),
        cmocka_unit_test(all_problems_are_told_at_once_in_order),
        cmocka_unit_test(the_samples_of_the_published_crate_have_no_errors),
        cmocka_unit_test(twenty_thousand_flows_are_ordered_and_checked),
        cmocka_unit_test(partitions_are_columns_or_transforms),
    };
    return cmocka_run_group_tests(tests, open_engine, close_engine);
}
