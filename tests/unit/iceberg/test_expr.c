/* SPDX-License-Identifier: Apache-2.0 */
/* Filters as text: what they mean as SQL, what literals become, and where errors point. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "iceberg/expr/expr.h"

typedef struct Fixture {
    KnArena *arena;
    KnSchema *schema;
    KnErr err;
    KnBuf sql;
} Fixture;

static int setup(void **state)
{
    static Fixture fix;
    fix = (Fixture){.arena = kn_arena_new(0)};
    kn_buf_init(&fix.sql, 1 << 20);
    KnStr text = KN_STR_LIT("id long, i int, name string, d double, f float, flag boolean, "
                            "day date, at timestamp, tz timestamptz, price decimal(9,2), "
                            "u uuid, bin binary, st struct<a int, b struct<c string>>, "
                            "li list<int>");
    assert_int_equal(kn_schema_parse_text(fix.arena, text, &fix.schema, &fix.err), KN_OK);
    *state = &fix;
    return 0;
}

static int teardown(void **state)
{
    Fixture *fix = *state;
    kn_buf_done(&fix->sql);
    kn_arena_free(fix->arena);
    return 0;
}

static const char *sql_of(Fixture *fix, const char *text)
{
    const KnExpr *expr = NULL;
    if (kn_expr_parse(fix->arena, kn_str(text), fix->schema, &expr, &fix->err) != KN_OK)
        fail_msg("%s: %s", text, fix->err.msg);
    kn_buf_reset(&fix->sql);
    assert_int_equal(kn_expr_sql(&fix->sql, expr, &fix->err), KN_OK);
    return fix->sql.data;
}

/* The part of the SQL that people read: casts of literals are the business of value_sql.c. */
#define expect_sql(fix, text, want) assert_string_equal(sql_of((fix), (text)), (want))

static void expect_error(Fixture *fix, const char *text, const char *part)
{
    const KnExpr *expr = NULL;
    assert_int_equal(kn_expr_parse(fix->arena, kn_str(text), fix->schema, &expr, &fix->err),
                     KN_E_INVAL);
    if (!strstr(fix->err.msg, part))
        fail_msg("'%s' is not in: %s", part, fix->err.msg);
    assert_null(expr);
}

static KnExprOp op_of(Fixture *fix, const char *text)
{
    const KnExpr *expr = NULL;
    assert_int_equal(kn_expr_parse(fix->arena, kn_str(text), fix->schema, &expr, &fix->err), KN_OK);
    return expr->op;
}

static void and_binds_closer_than_or_and_not_closest(void **state)
{
    Fixture *fix = *state;
    expect_sql(fix, "i IS NULL or i is not null AND NOT name IS NULL",
               "((\"i\" IS NULL) OR ((\"i\" IS NOT NULL) AND (\"name\" IS NOT NULL)))");
    expect_sql(fix, "(i IS NULL OR d IS NULL) AND f IS NULL",
               "(((\"i\" IS NULL) OR (\"d\" IS NULL)) AND (\"f\" IS NULL))");
}

static void not_is_pushed_down_to_the_predicates(void **state)
{
    Fixture *fix = *state;
    expect_sql(fix, "NOT (i IS NULL AND (d IS NAN OR NOT f IS NULL))",
               "((\"i\" IS NOT NULL) OR (NOT isnan(\"d\") AND (\"f\" IS NULL)))");
    assert_int_equal(op_of(fix, "NOT i = 1"), KN_EXPR_NE);
    assert_int_equal(op_of(fix, "NOT NOT i = 1"), KN_EXPR_EQ);
    assert_int_equal(op_of(fix, "NOT i < 1"), KN_EXPR_GE);
    assert_int_equal(op_of(fix, "NOT name LIKE 'a%'"), KN_EXPR_NOT_STARTS_WITH);
    assert_int_equal(op_of(fix, "NOT i NOT IN (1, 2)"), KN_EXPR_IN);
    assert_int_equal(op_of(fix, "NOT i BETWEEN 1 AND 2"), KN_EXPR_OR);
}

static void constants_fold(void **state)
{
    Fixture *fix = *state;
    expect_sql(fix, "TRUE AND i IS NULL", "(\"i\" IS NULL)");
    expect_sql(fix, "FALSE AND i IS NULL", "FALSE");
    expect_sql(fix, "NOT FALSE", "TRUE");
    expect_sql(fix, "TRUE OR i IS NULL", "TRUE");
}

static void a_literal_may_stand_on_the_left(void **state)
{
    Fixture *fix = *state;
    assert_int_equal(op_of(fix, "5 < i"), KN_EXPR_GT);
    assert_int_equal(op_of(fix, "5 >= i"), KN_EXPR_LE);
    assert_int_equal(op_of(fix, "'a' = name"), KN_EXPR_EQ);
}

static void a_boolean_column_is_a_predicate(void **state)
{
    Fixture *fix = *state;
    const KnExpr *expr = NULL;
    assert_int_equal(
        kn_expr_parse(fix->arena, KN_STR_LIT("NOT flag"), fix->schema, &expr, &fix->err), KN_OK);
    assert_int_equal(expr->op, KN_EXPR_EQ);
    assert_false(expr->literals[0].b);
    assert_int_equal(op_of(fix, "flag AND i = 1"), KN_EXPR_AND);
    assert_int_equal(op_of(fix, "flag = false"), KN_EXPR_EQ);
}

static void fields_inside_structs_are_found_by_their_path(void **state)
{
    Fixture *fix = *state;
    expect_sql(fix, "st.b.c IS NULL", "(struct_extract(struct_extract(\"st\", 'b'), 'c') IS NULL)");
    expect_sql(fix, "\"st\".\"a\" IS NULL", "(struct_extract(\"st\", 'a') IS NULL)");
    expect_sql(fix, "st IS NULL", "(\"st\" IS NULL)");
    expect_error(fix, "li.element = 1", "byte 0: no column 'li.element'");
    expect_error(fix, "st.x = 1", "no column 'st.x'");
}

static void a_prefix_is_compared_and_tested(void **state)
{
    Fixture *fix = *state;
    assert_non_null(strstr(sql_of(fix, "name LIKE 'ab%'"), "starts_with(\"name\""));
    assert_non_null(strstr(sql_of(fix, "name LIKE 'ab%'"), "\"name\" >= "));
    assert_int_equal(op_of(fix, "name LIKE 'plain'"), KN_EXPR_EQ);
    expect_error(fix, "name LIKE '%x'", "byte 10: LIKE is done for");
    expect_error(fix, "name LIKE 'a_c%'", "LIKE is done for");
    expect_error(fix, "i LIKE 'a%'", "LIKE needs a string column");
}

static void whole_number_columns_take_any_number(void **state)
{
    Fixture *fix = *state;
    static const struct {
        const char *text;
        KnExprOp op;
        int64_t value;
    } cases[] = {
        {"i = 7", KN_EXPR_EQ, 7},
        {"i = 7.0", KN_EXPR_EQ, 7},
        {"i = 70e-1", KN_EXPR_EQ, 7},
        {"i = -7", KN_EXPR_EQ, -7},
        {"i = 7.5", KN_EXPR_FALSE, 0},
        {"i <> 7.5", KN_EXPR_NOT_NULL, 0},
        {"i < 7.5", KN_EXPR_LE, 7},
        {"i <= 7.5", KN_EXPR_LE, 7},
        {"i > 7.5", KN_EXPR_GT, 7},
        {"i >= 7.5", KN_EXPR_GT, 7},
        {"i < -7.5", KN_EXPR_LE, -8},
        {"i > -7.5", KN_EXPR_GT, -8},
        {"i > 0.0001", KN_EXPR_GT, 0},
        {"i >= -0.0001", KN_EXPR_GT, -1},
        {"i = 3000000000", KN_EXPR_FALSE, 0},
        {"i <> 3000000000", KN_EXPR_NOT_NULL, 0},
        {"i < 3000000000", KN_EXPR_NOT_NULL, 0},
        {"i > 3000000000", KN_EXPR_FALSE, 0},
        {"i < -3000000000", KN_EXPR_FALSE, 0},
        {"i >= -3000000000", KN_EXPR_NOT_NULL, 0},
        {"i = 2147483647", KN_EXPR_EQ, INT32_MAX},
        {"i = -2147483648", KN_EXPR_EQ, INT32_MIN},
        {"id = 9223372036854775807", KN_EXPR_EQ, INT64_MAX},
        {"id = -9223372036854775808", KN_EXPR_EQ, INT64_MIN},
        {"id = 9223372036854775808", KN_EXPR_FALSE, 0},
        {"id < 1e30", KN_EXPR_NOT_NULL, 0},
        {"id IN (1, 1e30, 2.5)", KN_EXPR_EQ, 1},
        {"i NOT IN (1e30, 2.5)", KN_EXPR_NOT_NULL, 0},
        {"i IN (2.5)", KN_EXPR_FALSE, 0},
        {"i = '12'", KN_EXPR_EQ, 12},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        const KnExpr *expr = NULL;
        assert_int_equal(
            kn_expr_parse(fix->arena, kn_str(cases[i].text), fix->schema, &expr, &fix->err), KN_OK);
        if (expr->op != cases[i].op ||
            (expr->n_literals == 1 && expr->literals[0].i != cases[i].value))
            fail_msg("%s: op %d, literal %lld", cases[i].text, (int)expr->op,
                     expr->n_literals ? (long long)expr->literals[0].i : 0LL);
    }
}

static void decimal_literals_are_rounded_to_the_columns_scale(void **state)
{
    Fixture *fix = *state;
    const KnExpr *expr = NULL;
    assert_int_equal(
        kn_expr_parse(fix->arena, KN_STR_LIT("price < 1.005"), fix->schema, &expr, &fix->err),
        KN_OK);
    assert_int_equal(expr->op, KN_EXPR_LE);
    assert_int_equal((int64_t)expr->literals[0].dec, 100);
    assert_int_equal(op_of(fix, "price = 1e7"), KN_EXPR_FALSE);
    assert_int_equal(op_of(fix, "price = 9999999.99"), KN_EXPR_EQ);
    assert_int_equal(op_of(fix, "price < 10000000"), KN_EXPR_NOT_NULL);
    assert_int_equal(op_of(fix, "price = 1e400"), KN_EXPR_FALSE);
}

static void numbers_beyond_a_float_meet_its_infinities_only(void **state)
{
    Fixture *fix = *state;
    assert_int_equal(op_of(fix, "f = 1e300"), KN_EXPR_FALSE);
    assert_int_equal(op_of(fix, "f > 1e300"), KN_EXPR_GT);
    assert_int_equal(op_of(fix, "f < 1e300"), KN_EXPR_LE);
    assert_int_equal(op_of(fix, "f < -1e300"), KN_EXPR_LT);
    assert_int_equal(op_of(fix, "f > -1e300"), KN_EXPR_GE);
    assert_int_equal(op_of(fix, "d = 'NaN'"), KN_EXPR_EQ);
    assert_int_equal(op_of(fix, "d > '-Infinity'"), KN_EXPR_GT);
}

static void times_are_taken_with_and_without_zone_and_clock(void **state)
{
    Fixture *fix = *state;
    static const char *const same[] = {
        "tz = '2020-01-01T00:00:00Z'",          "tz = '2020-01-01'",
        "tz = '2020-01-01 00:00:00'",           "tz = '2020-01-01T01:00:00+01:00'",
        "at = TIMESTAMP '2020-01-01T00:00:00'", "at = '2020-01-01'"};
    for (size_t i = 0; i < sizeof(same) / sizeof(*same); i++) {
        const KnExpr *expr = NULL;
        if (kn_expr_parse(fix->arena, kn_str(same[i]), fix->schema, &expr, &fix->err) != KN_OK)
            fail_msg("%s: %s", same[i], fix->err.msg);
        assert_int_equal(expr->literals[0].i, INT64_C(1577836800000000));
    }
    assert_int_equal(op_of(fix, "day = DATE '2020-01-01'"), KN_EXPR_EQ);
    expect_error(fix, "day = '2020-13-01'", "byte 6: column 'day' is date: expected a date");
    expect_error(fix, "day = 5", "expected a date such as");
}

static void errors_say_where_and_what_was_expected(void **state)
{
    Fixture *fix = *state;
    expect_error(fix, "", "byte 0: expected a column's name, found the end");
    expect_error(fix, "i", "byte 1: expected =, <>");
    expect_error(fix, "i = ", "byte 4: expected a literal, found the end");
    expect_error(fix, "i = 1 2", "byte 6: expected AND, OR or the end, found '2'");
    expect_error(fix, "(i = 1", "byte 6: expected ), found the end");
    expect_error(fix, "i = 'a", "byte 4: the text is not closed");
    expect_error(fix, "i = 'x'", "column 'i' is int: expected a number, found 'x'");
    expect_error(fix, "name = 5", "expected text in single quotes");
    expect_error(fix, "i = NULL", "write IS NULL");
    expect_error(fix, "nam = 'x'", "no column 'nam': did you mean 'name'?");
    expect_error(fix, "i IN (1,)", "byte 8: expected a literal");
    expect_error(fix, "i # 1", "byte 2: unexpected character 0x23");
    expect_error(fix, "i IS NAN", "only float and double");
    expect_error(fix, "st = 1", "IS NULL or IS NOT NULL only");
    expect_error(fix, "u = 'zz'", "a uuid in quotes");
    expect_error(fix, "name = '\xff'", "text in single quotes");
}

static void nesting_is_limited(void **state)
{
    Fixture *fix = *state;
    char text[1024] = {0};
    memset(text, '(', 300);
    expect_error(fix, text, "nested over 200 deep");
}

static void quotes_are_doubled_in_texts_and_names(void **state)
{
    Fixture *fix = *state;
    const KnExpr *expr = NULL;
    assert_int_equal(
        kn_expr_parse(fix->arena, KN_STR_LIT("name = 'it''s'"), fix->schema, &expr, &fix->err),
        KN_OK);
    assert_string_equal(expr->literals[0].bytes.ptr, "it's");
    expect_error(fix, "\"na\"\"me\" = 'x'", "no column 'na\"me'");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(and_binds_closer_than_or_and_not_closest, setup, teardown),
        cmocka_unit_test_setup_teardown(not_is_pushed_down_to_the_predicates, setup, teardown),
        cmocka_unit_test_setup_teardown(constants_fold, setup, teardown),
        cmocka_unit_test_setup_teardown(a_literal_may_stand_on_the_left, setup, teardown),
        cmocka_unit_test_setup_teardown(a_boolean_column_is_a_predicate, setup, teardown),
        cmocka_unit_test_setup_teardown(fields_inside_structs_are_found_by_their_path, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_prefix_is_compared_and_tested, setup, teardown),
        cmocka_unit_test_setup_teardown(whole_number_columns_take_any_number, setup, teardown),
        cmocka_unit_test_setup_teardown(decimal_literals_are_rounded_to_the_columns_scale, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(numbers_beyond_a_float_meet_its_infinities_only, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(times_are_taken_with_and_without_zone_and_clock, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(errors_say_where_and_what_was_expected, setup, teardown),
        cmocka_unit_test_setup_teardown(nesting_is_limited, setup, teardown),
        cmocka_unit_test_setup_teardown(quotes_are_doubled_in_texts_and_names, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
