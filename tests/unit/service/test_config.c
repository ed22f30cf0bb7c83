/* SPDX-License-Identifier: Apache-2.0 */
/* knut.yaml: how sections lie over one another, references, and what makes a delivery another. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "service/config.h"
#include "service/yaml.h"

static KnServiceConfig *parse(const char *text)
{
    KnServiceConfig *config = NULL;
    KnErr err = {0};
    if (kn_service_config_parse("knut.yaml", kn_str(text), &config, &err) != KN_OK)
        fail_msg("%s", err.msg);
    return config;
}

static void assert_wrong(const char *text, const char *message)
{
    KnServiceConfig *config = NULL;
    KnErr err = {0};
    assert_int_equal(kn_service_config_parse("f", kn_str(text), &config, &err), KN_E_INVAL);
    if (!strstr(err.msg, message))
        fail_msg("'%s' is not in '%s'", message, err.msg);
    assert_null(config);
}

static void later_sections_win_and_lists_are_replaced(void **state)
{
    (void)state;
    KnServiceConfig *config = parse("defaults: {mode: append, chunk-mb: 1, interval: 1m, "
                                    "allow-path: [/a, /b], source: s, sink: k}\n"
                                    "sources: {s: {warehouse: /w, allow-path: /c}}\n"
                                    "sinks: {k: {sink: 'null:', chunk-mb: 2, mode: upsert}}\n"
                                    "deliveries:\n"
                                    "- {table: n.a}\n"
                                    "- {table: n.b, chunk-mb: 3, key: [x, y], warehouse: /v}\n");
    const KnDeliverySettings *a = &config->deliveries[0].set, *b = &config->deliveries[1].set;
    assert_int_equal(config->n, 2);
    assert_string_equal(a->loc.warehouse, "/w");
    assert_string_equal(b->loc.warehouse, "/v");
    assert_int_equal(a->chunk_mb, 2);
    assert_int_equal(b->chunk_mb, 3);
    assert_int_equal(a->mode, KN_SINK_UPSERT);
    assert_true(a->interval == 60);
    assert_true(a->max_backoff == 300);
    assert_int_equal(a->loc.allow_paths.len, 1);
    assert_string_equal(a->loc.allow_paths.items[0], "/c");
    assert_int_equal(b->keys.len, 2);
    assert_string_equal(a->state, "knut-state.db");
    config = kn_service_config_unref(config);
}

static void a_delivery_is_another_when_anything_it_says_is_another(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "deliveries: [{table: n.a, warehouse: w, sink: 'null:'}]",
        "deliveries: [{table: n.a, warehouse: w, sink: 'null:x'}]",
        "deliveries: [{table: n.a, warehouse: v, sink: 'null:'}]",
        "deliveries: [{table: n.a, warehouse: w, sink: 'null:', chunk-mb: 65}]",
        "deliveries: [{table: n.a, warehouse: w, sink: 'null:', max-deliveries: 1}]",
    };
    enum { N = sizeof(texts) / sizeof(texts[0]) };
    uint64_t prints[N];
    for (size_t i = 0; i < N; i++) {
        KnServiceConfig *config = parse(texts[i]), *again = parse(texts[i]);
        prints[i] = config->deliveries[0].print;
        assert_true(prints[i] == again->deliveries[0].print);
        for (size_t k = 0; k < i; k++)
            assert_true(prints[i] != prints[k]);
        config = kn_service_config_unref(config);
        again = kn_service_config_unref(again);
    }
}

static const char *expand(KnArena *arena, const char *text)
{
    const char *ret = NULL;
    KnErr err = {0};
    if (kn_config_expand(arena, text, &ret, &err) != KN_OK)
        fail_msg("%s", err.msg);
    return ret;
}

static void references_are_filled_in(void **state)
{
    (void)state;
    KN_ARENA_AUTO arena = kn_arena_new(0);
    const char *ret = NULL;
    KnErr err = {0};
    assert_int_equal(setenv("KN_TEST_A", "a${KN_TEST_B}", 1), 0);
    assert_int_equal(setenv("KN_TEST_EMPTY", "", 1), 0);
    assert_int_equal(unsetenv("KN_TEST_B"), 0);
    assert_string_equal(expand(arena, "plain $ and $x"), "plain $ and $x");
    assert_string_equal(expand(arena, "$${KN_TEST_A}"), "${KN_TEST_A}");
    assert_string_equal(expand(arena, "<${KN_TEST_A}>"), "<a${KN_TEST_B}>"); /* once only */
    assert_string_equal(expand(arena, "${KN_TEST_B:-x:y}${KN_TEST_EMPTY:-}"), "x:y");
    assert_string_equal(expand(arena, "${KN_TEST_EMPTY}"), "");
    static const char *const wrong[] = {"${KN_TEST_B}", "${}",   "${a b}", "${1A}",
                                        "${A",          "${A:}", "${A:?x}"};
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        assert_int_equal(kn_config_expand(arena, wrong[i], &ret, &err), KN_E_INVAL);
}

static void what_could_make_more_of_a_text_than_it_is_is_refused(void **state)
{
    (void)state;
    KN_BUF_AUTO deep, many;
    kn_buf_init(&deep, 4096);
    kn_buf_init(&many, 1 << 20);
    kn_buf_text(&deep, "state: ");
    for (int i = 0; i < KN_YAML_MAX_DEPTH + 1; i++)
        kn_buf_char(&deep, '[');
    assert_wrong(deep.data, "nested too deeply");
    kn_buf_text(&many, "state: [");
    for (int i = 0; i <= KN_YAML_MAX_NODES; i++)
        kn_buf_text(&many, "a,");
    kn_buf_text(&many, "]");
    assert_wrong(many.data, "too many entries");
    assert_wrong("a: &x 1", "anchors");
    assert_wrong("state: x\n---\nstate: y", "a second document");
    assert_wrong("state: \"\\0\"", "NUL");
    assert_wrong("[1]", "a map of keys and values");
    assert_wrong("é: {a: ${KN_TEST_A}}", "f:1:9: between { } or [ ] quote a reference");
    assert_wrong("a: [${KN_TEST_A}]", "quote a reference");
    assert_wrong("a: [{]", "did not find expected");
    assert_wrong("", "'deliveries' must be a list");
    assert_wrong("deliveries: []", "'deliveries' must be a list");
    assert_wrong("deliveries: [1]", "a delivery is a map");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(later_sections_win_and_lists_are_replaced),
        cmocka_unit_test(a_delivery_is_another_when_anything_it_says_is_another),
        cmocka_unit_test(references_are_filled_in),
        cmocka_unit_test(what_could_make_more_of_a_text_than_it_is_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
