/* SPDX-License-Identifier: Apache-2.0 */
/* test_draw.c - graphs as text and pictures: nothing overlaps, nothing escapes its notation. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "pipeline/draw/draw.h"
#include "unit/pipeline/pipelines.h"

#define HOSTILE "<b>\"a\\\"&\n--> ]); `x` é"

static KnDrawing *drawing_of(KnArena *arena, const KnPipeline *pipeline)
{
    return kn_drawing_new(arena, kn_graph_new(arena, pipeline));
}

/* Layers of random flows, some of which make rings. */
static const KnPipeline *random_graph(KnArena *arena, KnRng *rng, size_t n)
{
    KnPipelineBuilder *builder = kn_pipeline_builder_new(arena, "p");
    for (size_t i = 0; i < n; i++) {
        const char *reads[3];
        for (size_t k = 0; k < 3; k++)
            reads[k] = kn_arena_printf(
                arena, "d%zu", (size_t)kn_rng_below(rng, kn_rng_below(rng, 40) ? i + 1 : n));
        reads[0] = i % 4 ? reads[0] : "outside";
        const char *name = kn_arena_printf(arena, "d%zu", i);
        (void)kn_pipeline_add_dataset(builder, &(KnutDataset){.name = name});
        (void)kn_pipeline_add_flow(builder,
                                   &(KnutFlow){.name = name, .target = name, .reads = {reads, 3}});
    }
    return &builder->spec;
}

static void assert_apart(const KnDrawing *d, const KnLayout *layout)
{
    for (size_t i = 0; i < d->n_nodes; i++) {
        KnPoint a = layout->centres[i];
        assert_true(a.x - layout->widths[i] / 2 > 0 && a.x + layout->widths[i] / 2 < layout->width);
        assert_true(a.y - KN_NODE_HEIGHT / 2 > 0 && a.y + KN_NODE_HEIGHT / 2 < layout->height);
        for (size_t k = 0; k < i; k++) {
            KnPoint b = layout->centres[k];
            double dx = a.x > b.x ? a.x - b.x : b.x - a.x, dy = a.y > b.y ? a.y - b.y : b.y - a.y;
            assert_true(dx > (layout->widths[i] + layout->widths[k]) / 2 || dy > KN_NODE_HEIGHT);
        }
    }
}

static void nodes_do_not_touch_whatever_the_graph(void **state)
{
    (void)state;
    KnRng rng = pipeline_seed();
    for (size_t n = 0; n < 60; n++) {
        KN_ARENA_AUTO arena = kn_arena_new(65536);
        const KnDrawing *d = drawing_of(arena, random_graph(arena, &rng, n));
        KnLayout layout = kn_drawing_layout(d);
        assert_apart(d, &layout);
        for (size_t i = 0; i < d->n_edges; i++) {
            const KnRoute *route = &layout.routes[i];
            assert_true(route->len >= 2);
            assert_true(route->points[0].x > layout.centres[d->edges[i].from].x);
            assert_true(route->points[route->len - 1].x < layout.centres[d->edges[i].to].x);
        }
    }
}

static void edges_go_from_left_to_right_where_there_is_no_ring(void **state)
{
    (void)state;
    KN_ARENA_AUTO arena = kn_arena_new(4096);
    KnPipelineBuilder *builder = kn_pipeline_builder_new(arena, "p");
    for (size_t i = 0; i < 9; i++) {
        const char *name = kn_arena_printf(arena, "d%zu", i);
        const char *reads[] = {i ? kn_arena_printf(arena, "d%zu", i - 1) : "out", "d0"};
        (void)kn_pipeline_add_dataset(builder, &(KnutDataset){.name = name});
        (void)kn_pipeline_add_flow(
            builder, &(KnutFlow){.name = name, .target = name, .reads = {reads, i ? 2 : 1}});
    }
    const KnDrawing *d = drawing_of(arena, &builder->spec);
    KnLayout layout = kn_drawing_layout(d);
    for (size_t i = 0; i < d->n_edges; i++)
        for (size_t k = 1; k < layout.routes[i].len; k++)
            assert_true(layout.routes[i].points[k].x > layout.routes[i].points[k - 1].x);
}

static const KnPipeline hostile = {
    .name = HOSTILE,
    .datasets = {KNUT_LIST(KnutDataset, {.name = HOSTILE, .comment = "a\nb", .path = HOSTILE})},
    .flows = {KNUT_LIST(KnutFlow, {.name = HOSTILE,
                                   .target = HOSTILE,
                                   .reads = {KNUT_LIST(const char *const, "\"><script>")}})},
};

static void names_stay_within_their_notation(void **state)
{
    (void)state;
    static void (*const draw[])(const KnDrawing *, KnBuf *) = {kn_draw_text, kn_draw_dot,
                                                               kn_draw_mermaid, kn_draw_svg};
    static const char *const never[] = {"a\nb", "\"<b>\"a\"", "<b>", "<script>"};
    for (size_t i = 0; i < 4; i++) {
        KN_ARENA_AUTO arena = kn_arena_new(4096);
        KN_BUF_AUTO out = {.max = 1 << 20};
        draw[i](drawing_of(arena, &hostile), &out);
        assert_false(out.failed);
        if (strstr(out.data, never[i]))
            fail_msg("%s", out.data);
        assert_int_equal(out.data[out.len - 1], '\n');
    }
}

static void flows_of_one_pair_share_an_edge_and_sources_are_nodes(void **state)
{
    (void)state;
    KN_ARENA_AUTO arena = kn_arena_new(4096);
    const KnPipeline pipeline = {
        .name = "p",
        .datasets = {KNUT_LIST(KnutDataset, {.name = "t"}, {.name = "s"})},
        .flows = {KNUT_LIST(
            KnutFlow, {.name = "a", .target = "t", .reads = {KNUT_LIST(const char *const, "s")}},
            {.name = "b", .target = "t", .reads = {KNUT_LIST(const char *const, "s")}},
            {.name = "c",
             .target = "s",
             .reads = {KNUT_LIST(const char *const, "topic")},
             .kind = {.tag = KNUT_FLOW_STREAMING,
                      .streaming = {.source = {.tag = KNUT_SOURCE_KAFKA,
                                               .kafka = {"h", "topic", "json"}}}}},
            {.name = "d",
             .target = "s",
             .kind = {.tag = KNUT_FLOW_STREAMING,
                      .streaming = {.source = {.tag = KNUT_SOURCE_FILE_DROP,
                                               .file_drop = {"/in", "csv"}}}}},
            {.name = "e", .target = "nowhere"})},
    };
    const KnDrawing *d = drawing_of(arena, &pipeline);
    assert_int_equal(d->n_edges, 3);
    assert_string_equal(d->edges[0].label, "a, b");
    assert_int_equal(d->n_nodes, 4);
    assert_string_equal(d->nodes[2].name, "topic");
    assert_string_equal(d->nodes[3].kind, "file_drop");
}

static void a_ring_is_named_in_text(void **state)
{
    (void)state;
    KN_ARENA_AUTO arena = kn_arena_new(4096);
    KN_BUF_AUTO out = {.max = 1 << 20};
    const KnPipeline pipeline = {
        .name = "p",
        .datasets = {KNUT_LIST(KnutDataset, {.name = "t"})},
        .flows = {KNUT_LIST(
            KnutFlow, {.name = "f", .target = "t", .reads = {KNUT_LIST(const char *const, "t")}})}};
    kn_draw_text(drawing_of(arena, &pipeline), &out);
    assert_non_null(strstr(out.data, "\ncycle: t -> t\n"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nodes_do_not_touch_whatever_the_graph),
        cmocka_unit_test(edges_go_from_left_to_right_where_there_is_no_ring),
        cmocka_unit_test(names_stay_within_their_notation),
        cmocka_unit_test(flows_of_one_pair_share_an_edge_and_sources_are_nodes),
        cmocka_unit_test(a_ring_is_named_in_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
