/* SPDX-License-Identifier: Apache-2.0 */
/* test_surfaces.c - RON and JSON: what is read, what is written, what is refused and how. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "pipeline/surface/surfaces.h"
#include "unit/pipeline/pipelines.h"

#define HEAD "(name:\"p\",datasets:[(name:\"a\",output_type:table"
#define TAIL ")],flows:[(name:\"f\",target:\"a\",kind:batch)])"

static const char *const samples[] = {
    "pipelines/batch.ron",
    "pipelines/streaming.ron",
    "pipelines/streaming_defaults.ron",
    "pipelines/cdc_scd1.ron",
    "pipelines/partitioned_sink.ron",
    "pipelines/pushdown_expectations.ron",
};

static void what_serde_wrote_is_written_back_byte_for_byte(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(samples) / sizeof(samples[0]); i++) {
        KN_ARENA_AUTO arena = kn_arena_new(4096);
        const char *text = pipeline_data(arena, samples[i]);
        const KnPipeline *pipeline = pipeline_read(arena, &kn_surface_ron, text);
        assert_string_equal(pipeline_write(arena, &kn_surface_ron, pipeline), text);
    }
}

static void the_streaming_sample_means_what_it_says(void **state)
{
    (void)state;
    KN_ARENA_AUTO arena = kn_arena_new(4096);
    const KnPipeline *pipeline =
        pipeline_read(arena, &kn_surface_ron, pipeline_data(arena, "pipelines/streaming.ron"));
    const KnutFlow *flow = &pipeline->flows.items[0];
    assert_int_equal(flow->kind.tag, KNUT_FLOW_STREAMING);
    assert_string_equal(flow->kind.streaming.source.kafka.topic, "clicks");
    assert_int_equal(flow->kind.streaming.watermark->idle_timeout_ms, 30000);
    assert_int_equal(flow->kind.streaming.trigger.processing_time.interval_ms, 1000);
    assert_int_equal(flow->kind.streaming.output_mode, KNUT_MODE_UPDATE);
    assert_int_equal(flow->kind.streaming.window->tumbling.size_ms, 10000);
    assert_int_equal(flow->expectations.items[0].on_violation, KNUT_ON_VIOLATION_DROP);
    assert_int_equal(pipeline->datasets.items[0].materialization, KNUT_MATERIALIZATION_INCREMENTAL);
}

/* Each is the same pipeline in another spelling. */
static void spellings_of_ron_make_the_same_value(void **state)
{
    (void)state;
    static const char *const spellings[] = {
        "#![enable(implicit_some)]\n" HEAD ",format:\"parquet\"" TAIL,
        "#![enable(implicit_some, unwrap_newtypes,)] #![type = \"x::P\"]" HEAD
        ",format:Some(\"parquet\")" TAIL,
        "Pipeline(name:\"p\",datasets:[Dataset(name:\"a\",output_type:table,format:Some("
        "\"parquet\"),),"
        "],flows:[Flow(name:\"f\",target:\"a\",kind:batch,),],)",
        "/* one /* two */ */ (// name\n name: r#\"p\"#, r#datasets: [ (name: \"\\x61\", "
        "output_type: "
        "table, format: Some ( \"par\\u{71}uet\" ), partition_cols: [], properties: {}, "
        "schema: (fields: []))], flows: [(name: 'f', target: \"a\", kind: batch, query: None)])",
    };
    KN_ARENA_AUTO arena = kn_arena_new(4096);
    const KnPipeline *plain =
        pipeline_read(arena, &kn_surface_ron, HEAD ",format:Some(\"parquet\")" TAIL);
    for (size_t i = 0; i < sizeof(spellings) / sizeof(spellings[0]); i++) {
        KN_BUF_AUTO why = {.max = 1000};
        const KnPipeline *other = pipeline_read(arena, &kn_surface_ron, spellings[i]);
        if (!kn_pipeline_equal(plain, other, &why))
            fail_msg("%s\n%s", why.data, spellings[i]);
    }
}

static void a_newtype_may_be_unwrapped_where_the_document_says_so(void **state)
{
    (void)state;
    KN_ARENA_AUTO arena = kn_arena_new(4096);
    const KnPipeline *pipeline = pipeline_read(
        arena, &kn_surface_ron,
        "#![enable(unwrap_variant_newtypes)](name:\"p\",datasets:[],flows:[(name:\"f\",target:"
        "\"a\","
        "kind:streaming(source:cdc(source:\"s\"),watermark:Some(event_time_column:\"ts\","
        "allowed_lateness_ms:1_000u64)))])");
    assert_int_equal(pipeline->flows.items[0].kind.streaming.watermark->allowed_lateness_ms, 1000);
}

static void wrong_ron_is_named_with_line_column_and_what_was_expected(void **state)
{
    (void)state;
    static const struct {
        const char *text, *message;
    } wrong[] = {
        {HEAD ",format:\"parquet\"" TAIL, "doc:1:56: datasets[0].format: expected Some(…) or None "
                                          "(or `#![enable(implicit_some)]` at "
                                          "the top), found a string"},
        {"(name:\"p\",\n datasets:[])", "doc:1:1: the field `flows` of Pipeline is missing"},
        {"(name:\"p\",datasets:[(name:\"a\",output_type:Table" TAIL,
         "doc:1:43: datasets[0].output_type: OutputType has no variant `Table`: expected "
         "`materialized_view`, `table`, `temporary_view` or `sink`; did you mean `table`?"},
        {"(name:\"p\"\n  datasets:[]", "doc:2:3: expected `,` or `)`, found `d`"},
        {"(name:\"å\" x", "doc:1:11: expected `,` or `)`, found `x`"},
        {"(name:\"p", "doc:1:7: the text that begins here has no closing \""},
        {"(name:r#\"p\"", "doc:1:7: the raw string that begins here has no end (\"#…)"},
        {"/* a /* b */", "doc:1:1: the comment that begins here has no end (*/)"},
        {"(name:\"\\q\"", "doc:1:9: expected an escape: one of n r t 0 x u \\ \" ', found `q`"},
        {"(name:\"\\u{110000}\"", "doc:1:18: \\u{110000} is not a character"},
        {"(name:\"\\0\")", "doc:1:7: a text may not hold the character NUL"},
        {"#![enable(implicit_sum)]()", "doc:1:11: there is no extension `implicit_sum`"},
        {"", "doc:1:1: expected a value, found the end of the document"},
        {"() ()", "doc:1:4: expected the end of the document, found `(`"},
        {"[]", "doc:1:1: expected a struct: (field: value, …) or Pipeline(…), found a list"},
        {"Dataset()", "doc:1:1: expected a struct: (field: value, …) or Pipeline(…), found "
                      "`Dataset(…)`"},
        {"(name:\"p\",name:\"q\")", "doc:1:16: name: the field is given twice"},
        {"(name:\"p\",properties:{\"a\":\"1\",\"a\":\"2\"})", "the key \"a\" is given twice"},
        {"(name:\"p\",datasets:[],flows:[(name:\"f\",target:\"a\",kind:streaming)])",
         "flows[0].kind.streaming: the variant `streaming` has fields"},
        {"(name:\"p\",datasets:[],flows:[(name:\"f\",target:\"a\",kind:batch(x:1))])",
         "the variant `batch` has no fields"},
        {"(name:\"p\",datasets:[],flows:[(name:\"f\",target:\"a\",kind:streaming(source:cdc(source:"
         "\"s\"),window:Some(tumbling(size_ms:-1))))])",
         "window.tumbling.size_ms: expected a number that is not negative"},
        {"(name:\"p\",datasets:[],flows:[(name:\"f\",target:\"a\",kind:streaming(source:cdc(source:"
         "\"s\"),window:Some(tumbling(size_ms:1e3))))])",
         "expected a whole number below 2^64, found `1e3`"},
    };
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        KN_ARENA_AUTO arena = kn_arena_new(4096);
        const char *message = pipeline_read_fails(arena, &kn_surface_ron, wrong[i].text);
        if (!strstr(message, wrong[i].message))
            fail_msg("%s\n  says: %s\n  not:  %s", wrong[i].text, message, wrong[i].message);
    }
}

static void too_deep_a_document_is_refused(void **state)
{
    (void)state;
    KN_ARENA_AUTO arena = kn_arena_new(4096);
    char deep[100001];
    memset(deep, '(', sizeof(deep) - 1);
    deep[sizeof(deep) - 1] = '\0';
    assert_non_null(
        strstr(pipeline_read_fails(arena, &kn_surface_ron, deep), "more than 128 deep"));
    memset(deep, '[', sizeof(deep) - 1);
    (void)pipeline_read_fails(arena, &kn_surface_json, deep);
}

static void unknown_fields_are_noted_with_the_nearest_name(void **state)
{
    (void)state;
    static const struct {
        const KnSurface *surface;
        const char *text, *note;
        size_t line, column;
    } cases[] = {
        {&kn_surface_ron,
         HEAD ",\n fromat:Some(\"x\"), later: {1: [0x1f, 'c', 1..=2, -inf, b\"x\"]}" TAIL,
         "the field `fromat` of Dataset is not known and is left out; did you mean `format`?", 2,
         2},
        {&kn_surface_json,
         "{\"name\":\"p\",\"datasets\":[{\"name\":\"a\",\"output_type\":\"table\",\"fromat\":1.5,"
         "\"later\":null}],\"flows\":[]}",
         "the field `fromat` of Dataset is not known and is left out; did you mean `format`?", 0,
         0},
    };
    for (size_t i = 0; i < 2; i++) {
        KN_ARENA_AUTO arena = kn_arena_new(4096);
        KN_NOTES_AUTO notes = {.arena = arena};
        KnErr err = {0};
        KnDocument doc = {.text = kn_str(cases[i].text), .origin = "doc"};
        const KnPipeline *pipeline;
        KnCode rc = cases[i].surface->read(arena, &doc, &notes, &pipeline, &err);
        if (rc != KN_OK)
            fail_msg("%s", err.msg);
        assert_int_equal(notes.list.len, 2);
        assert_string_equal(notes.list.items[0].text, cases[i].note);
        assert_int_equal(notes.list.items[0].line, cases[i].line);
        assert_int_equal(notes.list.items[0].column, cases[i].column);
    }
}

static void json_is_spelled_as_serdes(void **state)
{
    (void)state;
    KN_ARENA_AUTO arena = kn_arena_new(4096);
    const KnPipeline *pipeline = pipeline_read(
        arena, &kn_surface_json,
        "{\"name\":\"p\",\"storage\":null,\"datasets\":[{\"name\":\"a\",\"output_type\":\"sink\","
        "\"properties\":{\"k\":\"v\"}}],\"flows\":[{\"name\":\"f\",\"target\":\"a\",\"kind\":"
        "{\"streaming\":{\"source\":{\"cdc\":{\"source\":\"s\"}},\"trigger\":\"available_now\","
        "\"window\":{\"tumbling\":{\"size_ms\":\"18446744073709551615\"}}}}}]}");
    assert_null(pipeline->storage);
    assert_int_equal(pipeline->flows.items[0].kind.streaming.trigger.tag,
                     KNUT_TRIGGER_AVAILABLE_NOW);
    assert_true(pipeline->flows.items[0].kind.streaming.window->tumbling.size_ms == UINT64_MAX);
    const char *text = pipeline_write(arena, &kn_surface_json, pipeline);
    assert_non_null(strstr(text, "\"trigger\": \"available_now\""));
    assert_true(kn_pipeline_equal(pipeline, pipeline_read(arena, &kn_surface_json, text), NULL));
}

static void wrong_json_is_named_with_its_path(void **state)
{
    (void)state;
    static const struct {
        const char *text, *message;
    } wrong[] = {
        {"{\"name\": 1}", "doc: name: expected a string, found a number"},
        {"{\"name\": \"p\", \"datasets\": {}}", "doc: datasets: expected a list, found an object"},
        {"{\"name\": \"p\", \"datasets\": [{\"name\": \"a\", \"output_type\": \"tabel\"}]}",
         "doc: datasets[0].output_type: OutputType has no variant `tabel`"},
        {"{\"name\": \"p\"", "doc: "},
        {"{\"name\": \"p\", \"name\": \"q\"}", "doc: "},
        {"{\"name\": null, \"datasets\": [], \"flows\": []}",
         "doc: name: expected a string, found null"},
        {"{\"name\": \"a\\u0000b\"}", "NUL"},
        {"[]", "doc: expected an object (Pipeline), found a list"},
    };
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        KN_ARENA_AUTO arena = kn_arena_new(4096);
        const char *message = pipeline_read_fails(arena, &kn_surface_json, wrong[i].text);
        if (!strstr(message, wrong[i].message))
            fail_msg("%s\n  says: %s\n  not:  %s", wrong[i].text, message, wrong[i].message);
    }
}

static long steps(void)
{
    const char *given = getenv("KN_TEST_STEPS");
    return given ? strtol(given, NULL, 10) : 300;
}

static void any_value_survives_each_surface(void **state)
{
    (void)state;
    KnRng rng = pipeline_seed();
    for (long step = steps(); step > 0; step--) {
        KN_ARENA_AUTO arena = kn_arena_new(65536);
        const KnPipeline *pipeline = pipeline_random(arena, &rng);
        for (const KnSurface *const *s = kn_surfaces; *s; s++) {
            if (*s != &kn_surface_ron && *s != &kn_surface_json)
                continue; /* others cannot say everything */
            KN_BUF_AUTO why = {.max = 1000};
            const char *text = pipeline_write(arena, *s, pipeline);
            const KnPipeline *back = pipeline_read(arena, *s, text);
            if (!kn_pipeline_equal(pipeline, back, &why))
                fail_msg("%s: %s\n%s", (*s)->name, why.data, text);
            assert_string_equal(pipeline_write(arena, *s, back), text);
        }
    }
}

/* The same, put together piece by piece. */
static const KnPipeline *rebuilt(KnArena *arena, const KnPipeline *p)
{
    KnPipelineBuilder *builder = kn_pipeline_builder_new(arena, p->name);
    builder->spec.default_catalog = p->default_catalog;
    builder->spec.default_database = p->default_database;
    builder->spec.storage = p->storage;
    builder->spec.properties = p->properties;
    for (size_t i = 0; i < p->inputs.len; i++)
        (void)kn_pipeline_add_input(builder, &p->inputs.items[i]);
    for (size_t i = 0; i < p->flows.len; i++)
        (void)kn_pipeline_add_flow(builder, &p->flows.items[i]);
    for (size_t i = 0; i < p->datasets.len; i++)
        (void)kn_pipeline_add_dataset(builder, &p->datasets.items[i]);
    return &builder->spec;
}

static void any_value_survives_a_chain_of_surfaces(void **state)
{
    (void)state;
    KnRng rng = pipeline_seed();
    for (long step = steps() / 3; step >= 0; step--) {
        KN_ARENA_AUTO arena = kn_arena_new(65536);
        KN_BUF_AUTO why = {.max = 1000};
        const KnPipeline *first = pipeline_random(arena, &rng);
        const char *ron = pipeline_write(arena, &kn_surface_ron, first);
        const KnPipeline *p = pipeline_read(arena, &kn_surface_ron, ron);
        p = pipeline_read(arena, &kn_surface_json, pipeline_write(arena, &kn_surface_json, p));
        p = rebuilt(arena, p);
        if (!kn_pipeline_equal(first, p, &why))
            fail_msg("%s\n%s", why.data, ron);
        assert_string_equal(pipeline_write(arena, &kn_surface_ron, p), ron);
    }
}

static void long_queries_are_raw_strings(void **state)
{
    (void)state;
    KN_ARENA_AUTO arena = kn_arena_new(4096);
    const char *text = pipeline_write(arena, &kn_surface_ron,
                                      &(KnPipeline){.name = "it's",
                                                    .storage = "SELECT \"a#\"\n  FROM 'b'",
                                                    .default_catalog = "tab\there",
                                                    .default_database = "bell\a\\"});
    assert_non_null(strstr(text, "name: \"it's\","));
    assert_non_null(strstr(text, "storage: Some(r##\"SELECT \"a#\"\n  FROM 'b'\"##),"));
    assert_non_null(strstr(text, "default_catalog: Some(\"tab\\there\"),"));
    assert_non_null(strstr(text, "default_database: Some(\"bell\\u{7}\\\\\"),"));
}

static void a_surface_is_found_by_name_and_by_extension(void **state)
{
    (void)state;
    const KnSurface *surface = NULL;
    KnErr err = {0};
    assert_int_equal(kn_surface_find("RON", &surface, &err), KN_OK);
    assert_ptr_equal(surface, &kn_surface_ron);
    assert_int_equal(kn_surface_of_file("a.ron/b.json", &surface, &err), KN_OK);
    assert_ptr_equal(surface, &kn_surface_json);
    assert_int_equal(kn_surface_of_file("a.ron/b", &surface, &err), KN_E_INVAL);
    assert_non_null(strstr(err.msg, "expected one of ron, json"));
    assert_int_equal(kn_surface_find("yaml", &surface, &err), KN_E_INVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_serde_wrote_is_written_back_byte_for_byte),
        cmocka_unit_test(the_streaming_sample_means_what_it_says),
        cmocka_unit_test(spellings_of_ron_make_the_same_value),
        cmocka_unit_test(a_newtype_may_be_unwrapped_where_the_document_says_so),
        cmocka_unit_test(wrong_ron_is_named_with_line_column_and_what_was_expected),
        cmocka_unit_test(too_deep_a_document_is_refused),
        cmocka_unit_test(unknown_fields_are_noted_with_the_nearest_name),
        cmocka_unit_test(json_is_spelled_as_serdes),
        cmocka_unit_test(wrong_json_is_named_with_its_path),
        cmocka_unit_test(any_value_survives_each_surface),
        cmocka_unit_test(any_value_survives_a_chain_of_surfaces),
        cmocka_unit_test(long_queries_are_raw_strings),
        cmocka_unit_test(a_surface_is_found_by_name_and_by_extension),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
