/* SPDX-License-Identifier: Apache-2.0 */
/* test_graph.c - edges, order and rings. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "pipeline/check/select.h"

/* "a<b,c d<a": datasets in order of being a target, one flow each that reads what follows. */
static const KnGraph *graph_of(KnArena *arena, const char *text)
{
    KnPipelineBuilder *builder = kn_pipeline_builder_new(arena, "p");
    for (const char *at = text; *at; at += strspn(at, " ")) {
        size_t len = strcspn(at, " <");
        const char *name = kn_arena_strndup(arena, at, len);
        const char *reads[8];
        size_t n = 0;
        at += len;
        while (*at == '<' || *at == ',') {
            at++;
            len = strcspn(at, ", ");
            reads[n++] = kn_arena_strndup(arena, at, len);
            at += len;
        }
        (void)kn_pipeline_add_dataset(builder, &(KnutDataset){.name = name});
        (void)kn_pipeline_add_flow(builder,
                                   &(KnutFlow){.name = name, .target = name, .reads = {reads, n}});
    }
    return kn_graph_new(arena, &builder->spec);
}

static void assert_order(const char *text, const char *expected)
{
    KN_ARENA_AUTO arena = kn_arena_new(4096);
    const KnGraph *graph = graph_of(arena, text);
    KN_BUF_AUTO got = {.max = 1000};
    kn_buf_text(&got, "");
    for (size_t i = 0; i < graph->order.len; i++)
        kn_buf_printf(&got, "%s%s", i ? " " : "",
                      graph->pipeline->datasets.items[graph->order.items[i]].name);
    assert_string_equal(got.data ? got.data : "", expected);
}

static void assert_rings(const char *text, const char *expected)
{
    KN_ARENA_AUTO arena = kn_arena_new(4096);
    const KnGraph *graph = graph_of(arena, text);
    KnRings rings = kn_graph_rings(graph);
    KN_BUF_AUTO got = {.max = 1000};
    for (size_t i = 0; i < rings.len; i++)
        for (size_t k = 0; k < rings.items[i].len; k++)
            kn_buf_printf(&got, "%s%s",
                          k   ? ">"
                          : i ? " "
                              : "",
                          graph->pipeline->datasets.items[rings.items[i].items[k]].name);
    assert_string_equal(got.data ? got.data : "", expected);
}

static void the_order_is_layers_sorted_by_name(void **state)
{
    (void)state;
    assert_order("z m b a<z c<b", "b m z c a");
    assert_order("c<b b<a a", "a b c");
    assert_order("c<a,a,b b a", "a b c");
    assert_order("t<outside", "t");
    assert_order("", "");
}

static void rings_are_named_by_their_members(void **state)
{
    (void)state;
    assert_order("a<b b<a c<a d", "d");
    assert_rings("a<b b<a c<a d", "a>b>a");
    assert_rings("a<a", "a>a");
    assert_rings("a<c,b b<a c<b x<y y<x z<x", "a>b>a x>y>x");
    assert_rings("b<a a", "");
}

static void several_flows_of_one_target_are_its_writers(void **state)
{
    (void)state;
    KN_ARENA_AUTO arena = kn_arena_new(4096);
    KnutDataset datasets[] = {{.name = "t"}, {.name = "s"}};
    const char *s[] = {"s"}, *both[] = {"s", "x"};
    KnutFlow flows[] = {{.name = "f1", .target = "t", .reads = {s, 1}},
                        {.name = "f2", .target = "s"},
                        {.name = "f3", .target = "t", .reads = {both, 2}},
                        {.name = "f4", .target = "none"}};
    const KnutInput inputs[] = {{.name = "x", .path = "x.csv"}};
    KnPipeline pipeline = {
        .name = "p", .datasets = {datasets, 2}, .flows = {flows, 4}, .inputs = {inputs, 1}};
    const KnGraph *graph = kn_graph_new(arena, &pipeline);
    assert_int_equal(graph->writers[0].len, 2);
    assert_int_equal(graph->writers[0].items[1], 2);
    assert_int_equal(graph->readers[1].len, 2);
    assert_int_equal(graph->after[1].len, 1);
    assert_int_equal(graph->targets[3], KN_GRAPH_NONE);
    assert_int_equal(graph->reads[2].items[1].input, 0);
}

static void names_are_found_as_engines_find_them(void **state)
{
    (void)state;
    KN_ARENA_AUTO arena = kn_arena_new(4096);
    KnutDataset datasets[] = {{.name = "orders"}, {.name = "out"}};
    const char *reads[] = {"cat.db.orders", "db.orders", "Orders", "other.orders"};
    KnutFlow flow = {
        .name = "f",
        .target = "out",
        .reads = {reads, 4},
        .kind = {.tag = KNUT_FLOW_STREAMING,
                 .streaming = {.source = {.tag = KNUT_SOURCE_CDC, .cdc = {"orders"}}}}};
    KnPipeline pipeline = {.name = "p",
                           .default_catalog = "cat",
                           .default_database = "db",
                           .datasets = {datasets, 2},
                           .flows = {&flow, 1}};
    const KnGraph *graph = kn_graph_new(arena, &pipeline);
    const KnGraphRead *read = graph->reads[0].items;
    assert_int_equal(graph->reads[0].len, 5);
    assert_int_equal(read[0].dataset, 0);
    assert_int_equal(read[1].dataset, 0);
    assert_true(read[2].other_case && read[2].dataset == 0);
    assert_int_equal(read[3].dataset, KN_GRAPH_NONE);
    assert_true(!read[4].listed && read[4].dataset == 0);
    assert_int_equal(graph->after[0].len, 1);
}

/* words, with blanks between them, and what they choose of "a b<a c<b d<b e". */
static void assert_chosen(const char *words, const char *expected)
{
    KN_ARENA_AUTO arena = kn_arena_new(4096);
    const KnGraph *graph = graph_of(arena, "a b<a c<b d<b e +x");
    const char *items[8];
    size_t n = 0;
    for (const char *at = words; *at; at += strspn(at, " ")) {
        size_t len = strcspn(at, " ");
        items[n++] = kn_arena_strndup(arena, at, len);
        at += len;
    }
    KN_BUF_AUTO got = {.max = 1000};
    KnutNames chosen = {0};
    KnErr err = {0};
    if (kn_graph_select(graph, "--select", &(KnutNames){items, n}, &chosen, &err) != KN_OK)
        kn_buf_text(&got, err.msg);
    for (size_t i = 0; i < chosen.len; i++)
        kn_buf_printf(&got, "%s%s", i ? " " : "", chosen.items[i]);
    assert_string_equal(got.data ? got.data : "", expected);
}

static void words_choose_datasets_with_what_they_need_and_what_needs_them(void **state)
{
    (void)state;
    assert_chosen("", "");
    assert_chosen("c", "c");
    assert_chosen("+c", "a b c");
    assert_chosen("b+", "b c d");
    assert_chosen("+b+ e", "a e b c d");
    assert_chosen("c d", "c d");
    assert_chosen("all", "+x a e b c d");
    assert_chosen("+x", "+x"); /* a dataset of that name */
#define FORMS " (NAME, +NAME with what it needs, NAME+ with what needs it, or all)"
    assert_chosen("+bb+", "--select bb: no dataset of this name; did you mean `b`?" FORMS);
    assert_chosen("+", "--select : no dataset of this name" FORMS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_order_is_layers_sorted_by_name),
        cmocka_unit_test(rings_are_named_by_their_members),
        cmocka_unit_test(several_flows_of_one_target_are_its_writers),
        cmocka_unit_test(names_are_found_as_engines_find_them),
        cmocka_unit_test(words_choose_datasets_with_what_they_need_and_what_needs_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
