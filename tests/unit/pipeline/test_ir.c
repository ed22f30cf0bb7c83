/* SPDX-License-Identifier: Apache-2.0 */
/* test_ir.c - the value itself: copies, equality, descriptions that fit the structs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "pipeline/ir/ir.h"

static const KnutPipelineSpec clicks = {
    .name = "clicks",
    .storage = "file:///tmp/st",
    .datasets = {KNUT_LIST(KnutDataset,
                           {.name = "counts",
                            .output_type = KNUT_OUTPUT_TABLE,
                            .schema = {KNUT_LIST(KnutSchemaField, {"n", "Int64", true, NULL})},
                            .properties = {KNUT_LIST(KnutPair, {"b", "1"}, {"a", "2"})},
                            .source_location = {.line_number = 7, .has_line_number = true}})},
    .flows = {KNUT_LIST(
        KnutFlow, {.name = "f",
                   .target = "counts",
                   .reads = {KNUT_LIST(const char *const, "clicks")},
                   .kind = {.tag = KNUT_FLOW_STREAMING,
                            .streaming = {.source = {.tag = KNUT_SOURCE_KAFKA,
                                                     .kafka = {"localhost:9092", "clicks", "json"}},
                                          .watermark = &(const KnutWatermark){"ts", 5000, 0},
                                          .trigger = {.tag = KNUT_TRIGGER_PROCESSING_TIME,
                                                      .processing_time = {1000}},
                                          .window = &(const KnutWindow){.tag = KNUT_WINDOW_TUMBLING,
                                                                        .tumbling = {10000}}}},
                   .query = "SELECT count(*) AS n FROM clicks"})},
};

static void a_copy_is_equal_and_shares_nothing(void **state)
{
    (void)state;
    KN_ARENA_AUTO arena = kn_arena_new(1024);
    KnPipeline *one = kn_pipeline_copy(arena, &clicks);
    KnPipeline *two = kn_pipeline_copy(arena, one);
    KN_BUF_AUTO why = {.max = 1000};
    assert_true(kn_pipeline_equal(one, two, &why));
    assert_int_equal(why.len, 0);
    assert_ptr_not_equal(one->flows.items[0].kind.streaming.watermark,
                         two->flows.items[0].kind.streaming.watermark);
    assert_ptr_not_equal(one->datasets.items[0].name, two->datasets.items[0].name);
    assert_true(one->datasets.items[0].source_location.has_line_number);
}

static void pairs_are_sorted_and_the_last_of_a_key_counts(void **state)
{
    (void)state;
    KN_ARENA_AUTO arena = kn_arena_new(1024);
    KnPipeline *one = kn_pipeline_copy(
        arena,
        &(KnPipeline){.name = "p",
                      .properties = {KNUT_LIST(KnutPair, {"b", "1"}, {"a", "2"}, {"b", "3"})}});
    assert_int_equal(one->properties.len, 2);
    assert_string_equal(one->properties.items[0].key, "a");
    assert_string_equal(one->properties.items[1].value, "3");
}

static void a_difference_is_named_by_its_place(void **state)
{
    (void)state;
    KnutFlow flow = clicks.flows.items[0];
    KnPipeline other = clicks;
    other.flows.items = &flow;
    KN_BUF_AUTO why = {.max = 1000};
    flow.kind.streaming.trigger.tag = KNUT_TRIGGER_AVAILABLE_NOW;
    assert_false(kn_pipeline_equal(&clicks, &other, &why));
    assert_string_equal(why.data,
                        "flows[0].kind.streaming.trigger: processing_time / available_now");
    flow = clicks.flows.items[0];
    flow.kind.streaming.window = NULL;
    kn_buf_reset(&why);
    assert_false(kn_pipeline_equal(&clicks, &other, &why));
    assert_string_equal(why.data, "flows[0].kind.streaming.window: (given) / (none)");
    other = clicks;
    other.storage = "";
    kn_buf_reset(&why);
    assert_false(kn_pipeline_equal(&clicks, &other, &why));
    assert_string_equal(why.data, "storage: file:///tmp/st / ");
}

static void what_the_tag_does_not_name_does_not_count(void **state)
{
    (void)state;
    KnutFlow flow = {.name = "f", .kind = {.cdc = {.sequence_by = "left over"}}};
    KnutFlow plain = {.name = "f"};
    assert_true(kn_ir_equal(&kn_ir_flow, &flow, &plain, NULL));
    KN_ARENA_AUTO arena = kn_arena_new(1024);
    KnutFlow copy;
    kn_ir_copy(arena, &kn_ir_flow, &copy, &flow);
    assert_null(copy.kind.cdc.sequence_by);
}

static void a_builder_grows_and_keeps_order(void **state)
{
    (void)state;
    KN_ARENA_AUTO arena = kn_arena_new(1024);
    KnPipelineBuilder *builder = kn_pipeline_builder_new(arena, "many");
    for (int i = 0; i < 100; i++) {
        char name[16];
        (void)snprintf(name, sizeof(name), "d%d", i);
        (void)kn_pipeline_add_dataset(builder, &(KnutDataset){.name = name});
        (void)kn_pipeline_add_flow(builder, &(KnutFlow){.name = name, .target = name});
        (void)kn_pipeline_add_input(builder, &(KnutInput){.name = name, .path = "x"});
    }
    assert_int_equal(builder->spec.datasets.len, 100);
    assert_string_equal(builder->spec.datasets.items[99].name, "d99");
    assert_string_equal(builder->spec.flows.items[57].target, "d57");
    assert_string_equal(builder->spec.inputs.items[0].name, "d0");
}

static void names_of_enums_are_those_of_documents(void **state)
{
    (void)state;
    assert_string_equal(kn_flow_kind_name(&clicks.flows.items[0]), "streaming");
    assert_true(kn_flow_is_unbounded(&clicks.flows.items[0]));
    assert_string_equal(kn_output_type_name(KNUT_OUTPUT_MATERIALIZED_VIEW), "materialized_view");
    assert_string_equal(kn_on_violation_name(KNUT_ON_VIOLATION_DROP), "drop");
    assert_string_equal(kn_ir_tag_name(&kn_ir_scd_type, 9), "?");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_copy_is_equal_and_shares_nothing),
        cmocka_unit_test(pairs_are_sorted_and_the_last_of_a_key_counts),
        cmocka_unit_test(a_difference_is_named_by_its_place),
        cmocka_unit_test(what_the_tag_does_not_name_does_not_count),
        cmocka_unit_test(a_builder_grows_and_keeps_order),
        cmocka_unit_test(names_of_enums_are_those_of_documents),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
