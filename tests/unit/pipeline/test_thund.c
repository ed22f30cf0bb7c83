/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_thund.c - what the published crate knut-thund 0.3.0 made of pipelines
 * (tests/interop/thund/run
 * --golden wrote it down): we read the same, write the same, find the same order and the same
 * faults.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/json.h"
#include "pipeline/check/check.h"
#include "pipeline/surface/surfaces.h"
#include "unit/pipeline/pipelines.h"

static const char *member(const json_t *said, const char *key)
{
    return json_string_value(json_object_get(said, key));
}

/* The crate escapes apostrophes, quotes, backslashes and line ends; we write raw strings. */
static bool is_spelled_alike(const char *ron)
{
    return !strchr(ron, '\\') && !strchr(ron, '\'');
}

static void assert_order(const json_t *order, const KnGraph *graph)
{
    if (json_is_null(order)) {
        assert_true(graph->order.len < graph->pipeline->datasets.len);
        return;
    }
    assert_int_equal(graph->order.len, json_array_size(order));
    for (size_t i = 0; i < graph->order.len; i++)
        assert_string_equal(graph->pipeline->datasets.items[graph->order.items[i]].name,
                            json_string_value(json_array_get(order, i)));
}

static void assert_faults(const char *invalid, const KnFlaws *flaws)
{
    static const struct {
        const char *words, *rule;
    } faults[] = {
        {"duplicate", "duplicate-name"},
        {"undefined dataset", "unknown-target"},
        {"cyclic", "cycle"},
    };
    for (size_t i = 0; i < sizeof(faults) / sizeof(*faults); i++) {
        bool found = false;
        kn_vec_foreach (&flaws->list, flaw) {
            found |= strcmp(flaw->rule, faults[i].rule) == 0 &&
                     !strstr(flaw->text, "two expectations"); /* ours alone */
        }
        if (!invalid)
            assert_false(found);
        else if (strstr(invalid, faults[i].words))
            assert_true(found);
    }
}

static void assert_same(const json_t *said)
{
    KN_ARENA_AUTO arena = kn_arena_new(16384);
    KN_BUF_AUTO why = {.max = 4096};
    KN_BUF_AUTO value = {.max = 1 << 20};
    KN_FLAWS_AUTO flaws = {.arena = arena};
    const char *ron = member(said, "ron");
    kn_json_dump(&value, json_object_get(said, "value"));
    const KnPipeline *p = pipeline_read(arena, &kn_surface_ron, ron);
    if (!kn_pipeline_equal(p, pipeline_read(arena, &kn_surface_json, value.data), &why))
        fail_msg("%s\n%s", why.data, ron);
    const char *ours = pipeline_write(arena, &kn_surface_ron, p);
    if (is_spelled_alike(ron)) {
        assert_memory_equal(ours, ron, strlen(ron));
        assert_string_equal(ours + strlen(ron), "\n");
    }
    if (!kn_pipeline_equal(p, pipeline_read(arena, &kn_surface_ron, ours), &why))
        fail_msg("%s\n%s", why.data, ours);
    const KnGraph *graph = kn_graph_new(arena, p);
    kn_pipeline_check(graph, &flaws);
    const char *invalid = member(said, "invalid");
    if (!invalid || !strstr(invalid, "duplicate dataset")) /* the crate orders names, each once */
        assert_order(json_object_get(said, "order"), graph);
    assert_faults(invalid, &flaws);
}

static void the_published_crate_says_the_same(void **state)
{
    (void)state;
    KN_ARENA_AUTO arena = kn_arena_new(1 << 16);
    KN_JSON_AUTO all = NULL;
    const char *text = pipeline_data(arena, "pipelines/thund.json");
    assert_int_equal(kn_json_parse(text, strlen(text), &all, NULL), KN_OK);
    assert_true(json_array_size(all) >= 10);
    for (size_t i = 0; i < json_array_size(all); i++)
        assert_same(json_array_get(all, i));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_published_crate_says_the_same)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
