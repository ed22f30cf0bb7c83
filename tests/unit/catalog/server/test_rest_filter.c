/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "catalog/server/rest_filter.h"

static const char columns[] = "id long required, name string, d date, st struct<a int>, b boolean";

/* The filter's SQL; "everything" when all may match. */
static const char *sql_of(KnArena *arena, const char *json, bool ignore_case)
{
    KnSchema *schema = NULL;
    KN_JSON_AUTO doc = NULL;
    const KnExpr *expr = NULL;
    KnErr err = {0};
    assert_int_equal(kn_schema_parse_text(arena, kn_str(columns), &schema, &err), KN_OK);
    assert_int_equal(kn_json_parse(json, strlen(json), &doc, &err), KN_OK);
    const KnRestFilter ctx = {arena, schema, ignore_case};
    assert_int_equal(kn_rest_filter_parse(&ctx, doc, &expr, &err), KN_OK);
    if (!expr)
        return "everything";
    KN_BUF_AUTO sql = {0};
    kn_buf_init(&sql, 1 << 16);
    assert_int_equal(kn_expr_sql(&sql, expr, &err), KN_OK);
    return kn_arena_strdup(arena, sql.data);
}

static void both_forms_of_a_predicate_say_the_same(void **state)
{
    (void)state;
    KN_ARENA_AUTO arena = kn_arena_new(0);
    const char *old = sql_of(arena, "{\"type\":\"lt\",\"term\":\"id\",\"value\":5}", false);
    const char *new = sql_of(arena,
                             "{\"type\":\"lt\",\"left\":{\"type\":\"reference\",\"name\":\"id\"},"
                             "\"right\":{\"type\":\"literal\",\"value\":5}}",
                             false);
    assert_string_equal(old, new);
    assert_non_null(strstr(old, "\"id\" <"));
    assert_string_equal(sql_of(arena,
                               "{\"type\":\"is-null\",\"child\":{\"type\":\"reference\","
                               "\"id\":2}}",
                               false),
                        sql_of(arena, "{\"type\":\"is-null\",\"term\":\"name\"}", false));
}

static void what_is_not_evaluated_lets_everything_through_also_negated(void **state)
{
    (void)state;
    KN_ARENA_AUTO arena = kn_arena_new(0);
#define BUCKET                                                                                     \
    "{\"type\":\"eq\",\"term\":{\"type\":\"transform\",\"transform\":\"bucket[4]\","               \
    "\"term\":\"id\"},\"value\":1}"
#define ID5 "{\"type\":\"eq\",\"term\":\"id\",\"value\":5}"
    assert_string_equal(sql_of(arena, BUCKET, false), "everything");
    assert_string_equal(sql_of(arena, "{\"type\":\"not\",\"child\":" BUCKET "}", false),
                        "everything");
    assert_string_equal(
        sql_of(arena, "{\"type\":\"or\",\"left\":" BUCKET ",\"right\":" ID5 "}", false),
        "everything");
    const char *narrowed =
        sql_of(arena, "{\"type\":\"and\",\"left\":" BUCKET ",\"right\":" ID5 "}", false);
    assert_string_equal(narrowed, sql_of(arena, ID5, false));
    assert_string_equal(sql_of(arena,
                               "{\"type\":\"not\",\"child\":{\"type\":\"and\",\"left\":" BUCKET
                               ",\"right\":" ID5 "}}",
                               false),
                        "everything");
}

static void names_and_texts_cannot_leave_their_quotes(void **state)
{
    (void)state;
    KN_ARENA_AUTO arena = kn_arena_new(0);
    const char *sql = sql_of(
        arena, "{\"type\":\"in\",\"term\":\"name\",\"values\":[\"x' OR TRUE --\",\"y\"]}", false);
    assert_non_null(strstr(sql, "'x'' OR TRUE --'"));
    assert_string_equal(
        sql_of(arena, "{\"type\":\"starts-with\",\"term\":\"name\",\"value\":\"a%b\"}", false),
        "everything");
    assert_string_not_equal(sql_of(arena, "{\"type\":\"eq\",\"term\":\"st.a\",\"value\":1}", false),
                            "everything");
}

static void case_counts_unless_it_does_not(void **state)
{
    (void)state;
    KN_ARENA_AUTO arena = kn_arena_new(0);
    KnSchema *schema = NULL;
    KnErr err = {0};
    const KnExpr *expr = NULL;
    assert_int_equal(kn_schema_parse_text(arena, kn_str(columns), &schema, &err), KN_OK);
    static const char text[] = "{\"type\":\"not-null\",\"term\":\"NAME\"}";
    KN_JSON_AUTO doc = NULL;
    assert_int_equal(kn_json_parse(text, strlen(text), &doc, &err), KN_OK);
    const KnRestFilter exact = {arena, schema, false};
    assert_int_equal(kn_rest_filter_parse(&exact, doc, &expr, &err), KN_E_INVAL);
    assert_non_null(strstr(err.msg, "NAME"));
    assert_string_equal(sql_of(arena, text, true),
                        sql_of(arena, "{\"type\":\"not-null\",\"term\":\"name\"}", false));
}

static void what_is_no_predicate_is_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "{}",
        "[]",
        "{\"type\":\"like\",\"term\":\"id\"}",
        "{\"type\":\"eq\",\"term\":\"id\"}",
        "{\"type\":\"eq\",\"term\":\"none\",\"value\":1}",
        "{\"type\":\"in\",\"term\":\"id\",\"values\":3}",
        "{\"type\":\"in\",\"term\":\"id\",\"values\":[[]]}",
        "{\"type\":\"and\",\"left\":true}",
        "{\"type\":\"is-null\"}",
    };
    KN_ARENA_AUTO arena = kn_arena_new(0);
    KnSchema *schema = NULL;
    assert_int_equal(kn_schema_parse_text(arena, kn_str(columns), &schema, NULL), KN_OK);
    const KnRestFilter ctx = {arena, schema, false};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        KN_JSON_AUTO doc = NULL;
        const KnExpr *expr = NULL;
        KnErr err = {0};
        assert_int_equal(kn_json_parse(bad[i], strlen(bad[i]), &doc, NULL), KN_OK);
        assert_int_equal(kn_rest_filter_parse(&ctx, doc, &expr, &err), KN_E_INVAL);
        assert_true(err.msg[0]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_forms_of_a_predicate_say_the_same),
        cmocka_unit_test(what_is_not_evaluated_lets_everything_through_also_negated),
        cmocka_unit_test(names_and_texts_cannot_leave_their_quotes),
        cmocka_unit_test(case_counts_unless_it_does_not),
        cmocka_unit_test(what_is_no_predicate_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
