/* SPDX-License-Identifier: Apache-2.0 */
/* test_write_columns.c - columns of any SELECT against the table's: what fits, what is refused. */
#include <stdio.h>
#include <string.h>

#include "unit/iceberg/lake.h"

static void columns_that_do_not_fit_are_named(void **state)
{
    (void)state;
    Lake lake;
    lake_open(&lake, &(LakeTable){.schema = "id int required, d date, x decimal(5,2), "
                                            "st struct<a int, b string required>, "
                                            "l list<int>, ts timestamp, b binary, n long"});
    lake_fails(&lake, lake_append_code(&lake, "SELECT 1 AS id, 2 AS foo"), KN_E_INVAL,
               "no column foo");
    lake_fails(&lake, lake_append_code(&lake, "SELECT 1 AS n"), KN_E_INVAL,
               "column id is required");
    lake_fails(&lake, lake_append_code(&lake, "SELECT NULL AS id"), KN_E_INVAL,
               "column id: a required value is NULL");
    lake_fails(&lake, lake_append_code(&lake, "SELECT * FROM (VALUES (1), (NULL)) t(id)"),
               KN_E_INVAL, "column id: a required value is NULL");
    lake_fails(&lake, lake_append_code(&lake, "SELECT 3000000000 AS id"), KN_E_INVAL,
               "column id: a value does not fit int: 3000000000");
    lake_fails(&lake, lake_append_code(&lake, "SELECT 1.5 AS id"), KN_E_INVAL,
               "does not fit int: 1.5");
    lake_fails(&lake, lake_append_code(&lake, "SELECT '1.5' AS id"), KN_E_INVAL, "fit int: 1.5");
    lake_fails(&lake, lake_append_code(&lake, "SELECT true AS id"), KN_E_INVAL,
               "column id: the table's type is int, the rows have a boolean");
    lake_fails(&lake,
               lake_append_code(&lake, "SELECT 1 AS id, TIMESTAMP '2026-01-01 10:00:00' AS d"),
               KN_E_INVAL, "column d: a value does not fit date");
    lake_fails(&lake, lake_append_code(&lake, "SELECT 1 AS id, '2026-01-01 10:00:00' AS d"),
               KN_E_INVAL, "column d");
    lake_fails(&lake, lake_append_code(&lake, "SELECT 1 AS id, 1.255 AS x"), KN_E_INVAL,
               "column x");
    lake_fails(&lake, lake_append_code(&lake, "SELECT 1 AS id, '1.255' AS x"), KN_E_INVAL,
               "column x");
    lake_fails(&lake, lake_append_code(&lake, "SELECT 1 AS id, 1000 AS x"), KN_E_INVAL, "column x");
    lake_fails(&lake, lake_append_code(&lake, "SELECT 1 AS id, {'a': 1} AS st"), KN_E_INVAL,
               "column st.b is required");
    lake_fails(&lake, lake_append_code(&lake, "SELECT 1 AS id, {'a': 1, 'b': 'x', 'c': 2} AS st"),
               KN_E_INVAL, "column st has no field c");
    lake_fails(&lake, lake_append_code(&lake, "SELECT 1 AS id, [1, 3000000000] AS l"), KN_E_INVAL,
               "column l.element: a value does not fit int");
    lake_fails(&lake, lake_append_code(&lake, "SELECT 1 AS id, '2026-01-01 00:00:00+02' AS ts"),
               KN_E_INVAL, "column ts");
    lake_fails(&lake, lake_append_code(&lake, "SELECT 1 AS id, 'abc' AS b"), KN_E_INVAL,
               "column b");
    lake_fails(&lake, lake_append_code(&lake, "SELECT nonsense"), KN_E_INVAL, "nonsense");
    assert_int_equal(lake_files_below(&lake, "data"), 0);
    lake_append(&lake, "SELECT '7' AS ID, '2026-01-01' AS d, '1.25' AS x, "
                       "{'B': 'x', 'a': 1::BIGINT} AS st, [1::BIGINT, NULL] AS l, "
                       "TIMESTAMP '2026-01-01 00:00:00' AS ts, '0xAB' AS b, 5.0 AS n");
    assert_string_equal(lake_rows(&lake), "{'id': 7, 'd': 2026-01-01, 'x': 1.25, "
                                          "'st': {'a': 1, 'b': x}, 'l': [1, NULL], "
                                          "'ts': '2026-01-01 00:00:00', 'b': \\xAB, 'n': 5}");
    lake_close(&lake);
}

static void types_without_a_right_form_are_refused(void **state)
{
    (void)state;
    static const char *const schemas[] = {"a variant", "a struct<b geometry>",
                                          "a struct<b unknown>", "a list<unknown>",
                                          "a map<string, unknown>"};
    for (size_t i = 0; i < sizeof(schemas) / sizeof(schemas[0]); i++) {
        Lake lake;
        lake_open(&lake, &(LakeTable){.schema = schemas[i], .version = 3});
        lake_fails(&lake, lake_append_code(&lake, "SELECT NULL AS a"), KN_E_UNSUPPORTED,
                   "cannot be written");
        lake_close(&lake);
    }
}

static void types_that_the_engine_does_not_write_are_written(void **state)
{
    (void)state;
    Lake lake;
    lake_open(&lake, &(LakeTable){.schema = "id int, a fixed[4], b struct<x list<fixed[2]>, u "
                                            "unknown, n timestamptz_ns>, c map<timestamp_ns, "
                                            "struct<u unknown, f fixed[1]>>",
                                  .version = 3});
    lake_append(&lake,
                "SELECT 1 AS id, '0x01020304' AS a, {'x': ['ab'::BLOB, NULL], 'u': NULL, 'n': "
                "'2026-01-01 00:00:00.123456789+01:00'} AS b, MAP {TIMESTAMP_NS '2026-01-01 "
                "00:00:00.5': {'u': NULL, 'f': 'x'::BLOB}, TIMESTAMP_NS '2026-01-02': NULL} AS c");
    const char *rows = "{'id': 1, 'a': \\x01\\x02\\x03\\x04, 'b': {'x': [ab, NULL], 'u': NULL, "
                       "'n': '2025-12-31 23:00:00.123456789'}, 'c': {'2026-01-01 00:00:00.5'={'u': "
                       "NULL, 'f': x}, '2026-01-02 00:00:00'=NULL}}";
    assert_string_equal(lake_rows(&lake), rows);
    lake_append(&lake, "SELECT 2 AS id");
    lake_append(&lake, "SELECT 3 AS id, {'x': NULL} AS b, MAP {} AS c");
    lake_delete(&lake, "id > 1"); /* rewrites nothing */
    assert_string_equal(lake_rows(&lake), rows);
    lake_fails(&lake, lake_append_code(&lake, "SELECT 1 AS id, 'abc'::BLOB AS a"), KN_E_INVAL,
               "a value does not fit fixed[4]");
    lake_close(&lake);
}

static void unknown_columns_are_left_out_of_files(void **state)
{
    (void)state;
    Lake lake;
    lake_open(&lake, &(LakeTable){.schema = "a int, b unknown, ns timestamp_ns", .version = 3});
    lake_append(&lake, "SELECT 1 AS a, NULL AS b, TIMESTAMP_NS '2026-01-01 00:00:00.123456789' AS "
                       "ns");
    assert_string_equal(lake_rows(&lake),
                        "{'a': 1, 'b': NULL, 'ns': '2026-01-01 00:00:00.123456789'}");
    lake_delete(&lake, "a = 2");
    lake_close(&lake);
}

static void bare_nulls_fit_every_column(void **state)
{
    (void)state;
    Lake lake;
    lake_open(&lake, &(LakeTable){.schema = "a int, b boolean, c date, d uuid, e binary, "
                                            "f struct<x date>, g list<string>, h map<string,int>"});
    lake_append(&lake, "SELECT NULL AS a, NULL AS b, NULL AS c, NULL AS d, NULL AS e, NULL AS f, "
                       "NULL AS g, NULL AS h");
    lake_append(&lake, "SELECT 1 AS a, {'x': NULL} AS f, [NULL] AS g");
    assert_string_equal(lake_text(&lake, "SELECT count(a) || count(b) || count(f) || count(f.x) || "
                                         "len(max(g)) FROM {scan}"),
                        "10101");
    lake_fails(&lake, lake_append_code(&lake, "SELECT 1 AS b"), KN_E_INVAL,
               "column b: the table's type is boolean, the rows have a number");
    lake_close(&lake);
}

static void every_type_and_nesting_survives(void **state)
{
    (void)state;
    for (int version = 2; version <= 3; version++) {
        Lake lake;
        lake_open(&lake, &(LakeTable){.schema = LAKE_ALL_TYPES, .version = version});
        lake_append(&lake, LAKE_ALL_VALUES, -2, 3);
        lake_append(&lake, "SELECT NULL AS i");
        char sql[4096];
        assert_true(snprintf(sql, sizeof(sql),
                             "SELECT count(*) FROM (SELECT * FROM {scan} WHERE i IS NOT NULL "
                             "EXCEPT ALL " LAKE_ALL_VALUES ")",
                             -2, 3) > 0);
        assert_string_equal(lake_text(&lake, sql), "0");
        assert_string_equal(lake_text(&lake, "SELECT count(*) FROM {scan}"), "6");
        lake_close(&lake);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(columns_that_do_not_fit_are_named),
        cmocka_unit_test(types_without_a_right_form_are_refused),
        cmocka_unit_test(types_that_the_engine_does_not_write_are_written),
        cmocka_unit_test(unknown_columns_are_left_out_of_files),
        cmocka_unit_test(bare_nulls_fit_every_column),
        cmocka_unit_test(every_type_and_nesting_survives),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
