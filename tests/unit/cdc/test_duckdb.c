/* SPDX-License-Identifier: Apache-2.0 */
/* labels: slow */
/*
 * test_duckdb.c - the DuckDB sink: every type, and a target that follows the source's schema by
 * field id.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/fault.h"
#include "base/json.h"
#include "unit/cdc/ferry.h"

/* The table gets a new current schema; columns as JSON objects. */
static void set_schema(Ferry *fy, const char *fields)
{
    KnTable *tbl = fy->lake.tbl;
    KN_JSON_AUTO json = NULL;
    KnSchema *schema = NULL;
    char text[4096];
    (void)snprintf(text, sizeof(text), "{\"type\":\"struct\",\"schema-id\":0,\"fields\":[%s]}",
                   fields);
    lake_ok(&fy->lake, kn_json_parse(text, strlen(text), &json, &fy->lake.err));
    lake_ok(&fy->lake, kn_schema_parse(tbl->arena, json, &schema, &fy->lake.err));
    const KnUpdate updates[] = {{.kind = KN_UPDATE_ADD_SCHEMA, .schema = schema},
                                {.kind = KN_UPDATE_SET_CURRENT_SCHEMA, .number = -1}};
    const KnTableCommit commit = {.updates = updates, .n_updates = 2};
    lake_ok(&fy->lake, kn_table_commit(tbl, &commit, &fy->lake.err));
}

#define FIELD(id, name, type)                                                                      \
    "{\"id\":" #id ",\"name\":\"" name "\",\"required\":false,\"type\":" type "}"

static const char *columns_of_target(Ferry *fy)
{
    return ferry_text(fy, "SELECT string_agg(column_name || ' ' || data_type, ', ' ORDER BY "
                          "column_name) FROM duckdb_columns() WHERE table_name = 't'");
}

static void every_type_arrives_as_it_is(void **state)
{
    (void)state;
    Ferry fy;
    ferry_open(&fy, &(LakeTable){
                        .version = 3,
                        .schema = "b boolean, i int, l long, f float, d double, c decimal(38,4), "
                                  "dt date, tm time, ts timestamp, tz timestamptz, "
                                  "tn timestamp_ns, s string, u uuid, y binary, "
                                  "st struct<a int, n struct<z string>>, li list<struct<p long>>, "
                                  "mp map<string, list<double>>"});
    lake_append(
        &fy.lake,
        "SELECT * FROM (SELECT true AS b, (-5)::INT AS i, 9223372036854775807::BIGINT AS l, "
        "1.5::FLOAT AS f, 'nan'::DOUBLE AS d, "
        "1234567890123456789012345678901234.5678::DECIMAL(38,4) "
        "AS c, DATE '1969-12-31' AS dt, TIME '23:59:59.999999' AS tm, TIMESTAMP '1900-01-01 "
        "00:00:00.000001' AS ts, TIMESTAMPTZ '2026-01-01 00:00:00+02' AS tz, "
        "'2026-01-01 00:00:00.123456789'::TIMESTAMP_NS AS tn, 'h\xc3\xa9\xf0\x9f\xa6\x86' AS s, "
        "'00112233-4455-6677-8899-aabbccddeeff'::UUID AS u, '\\x00\\x01\\xfe\\xff'::BLOB AS y, "
        "{'a': 1, 'n': {'z': NULL}} AS st, [{'p': 1::BIGINT}, NULL] AS li, "
        "MAP {'k': [1.0, NULL], 'e': []} AS mp UNION ALL SELECT NULL, NULL, NULL, NULL, NULL, "
        "NULL, "
        "NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)");
    lake_append(&fy.lake, "SELECT -0.0::DOUBLE AS d, '-inf'::FLOAT AS f");
    ferry_round(&fy);
    ferry_same_rows(&fy);
    /* A rewrite finds and removes such rows too. */
    lake_delete(&fy.lake, "i = -5 OR f < 0");
    assert_int_equal(ferry_round(&fy)->windows[0].deletes, 2);
    ferry_same_rows(&fy);
    ferry_close(&fy);
}

static void a_float_alone_tells_rows_apart(void **state)
{
    (void)state;
    Ferry fy;
    ferry_open(&fy, &(LakeTable){.schema = "d double, f float, st struct<x double>"});
    lake_append(&fy.lake,
                "SELECT d::DOUBLE AS d, f::FLOAT AS f, {'x': x::DOUBLE} AS st FROM range(3) a(d), "
                "range(3) b(f), range(3) c(x)");
    ferry_round(&fy);
    lake_delete(&fy.lake, "d = 2 AND f = 1 AND st.x = 0");
    lake_delete(&fy.lake, "d = 1 AND f < 2 AND st.x > 1");
    ferry_round(&fy);
    ferry_same_rows(&fy);
    ferry_close(&fy);
}

/* The file's compression of floats keeps one zero: rows are found all the same. */
static void zeros_are_found_whatever_their_sign_became(void **state)
{
    (void)state;
    Ferry fy;
    ferry_open(&fy, &(LakeTable){.schema = "i long, d double, l list<float>"});
    lake_append(&fy.lake, "SELECT i, CASE WHEN i %% 3 = 0 THEN -0.0::DOUBLE ELSE 0.0 END AS d, "
                          "[CASE WHEN i %% 2 = 0 THEN '-0.0'::FLOAT ELSE 0.0::FLOAT END] AS l "
                          "FROM range(20000) t(i)");
    ferry_round(&fy);
    lake_delete(&fy.lake, "i < 9999");
    assert_int_equal(ferry_round(&fy)->windows[0].deletes, 9999);
    assert_string_equal(ferry_text(&fy, "SELECT count(*) || ' from ' || min(i) FROM t"),
                        "10001 from 9999");
    ferry_close(&fy);
}

static void columns_follow_renames_swaps_promotions_drops_and_additions(void **state)
{
    (void)state;
    Ferry fy;
    ferry_open(&fy, &(LakeTable){.schema = "a int, b string, c float, gone string"});
    lake_append(&fy.lake,
                "SELECT range::INT AS a, 'b' || range AS b, 0.5::FLOAT AS c, 'g' AS gone FROM "
                "range(5)");
    ferry_round(&fy);
    /* a and b swap names, a and c are widened, `gone` goes and comes back as another column. */
    set_schema(&fy, FIELD(1, "b", "\"long\"") "," FIELD(2, "a", "\"string\"") "," FIELD(
                        3, "c", "\"double\"") "," FIELD(5, "gone", "\"int\""));
    lake_append(&fy.lake,
                "SELECT 9223372036854775807::BIGINT AS b, 'new' AS a, 0.1::DOUBLE AS c, 7::INT AS "
                "gone");
    ferry_round(&fy);
    assert_string_equal(columns_of_target(&fy), "a VARCHAR, b BIGINT, c DOUBLE, gone INTEGER");
    ferry_same_rows(&fy);
    ferry_close(&fy);
}

static void a_schema_change_without_rows_arrives_too(void **state)
{
    (void)state;
    Ferry fy;
    ferry_open(&fy, &(LakeTable){.schema = "a int, b string"});
    lake_append(&fy.lake, "SELECT 1::INT AS a, 'x' AS b");
    ferry_round(&fy);
    set_schema(&fy, FIELD(1, "a", "\"long\"") "," FIELD(2, "bb", "\"string\"") "," FIELD(
                        3, "c", "\"date\""));
    assert_int_equal(ferry_round(&fy)->n_windows, 0);
    assert_string_equal(columns_of_target(&fy), "a BIGINT, bb VARCHAR, c DATE");
    ferry_same_rows(&fy);
    ferry_close(&fy);
}

static void nested_fields_follow_by_id_at_any_depth(void **state)
{
    (void)state;
    Ferry fy;
    ferry_open(&fy,
               &(LakeTable){.schema = "id int, st struct<a int, b string>, li list<struct<p int>>, "
                                      "mp map<string, struct<q float>>"});
    /* ids: 1 id, 2 st, 3 li, 4 mp, 5 a, 6 b, 7 element, 8 key, 9 value, 10 p, 11 q */
    lake_append(
        &fy.lake,
        "SELECT 1::INT AS id, {'a': 1, 'b': 'x'} AS st, [{'p': 1}, NULL, {'p': NULL}] AS li, "
        "MAP {'k': {'q': 0.5::FLOAT}} AS mp UNION ALL SELECT 2, NULL, NULL, NULL");
    ferry_round(&fy);
    const KnSchema *schema = kn_metadata_schema(fy.lake.tbl->md);
    int32_t st_a = kn_schema_find_name(schema, kn_str("st.a"))->id;
    int32_t st_b = kn_schema_find_name(schema, kn_str("st.b"))->id;
    int32_t el = kn_schema_find_name(schema, kn_str("li.element"))->id;
    int32_t p = kn_schema_find_name(schema, kn_str("li.element.p"))->id;
    int32_t key = kn_schema_find_name(schema, kn_str("mp.key"))->id;
    int32_t val = kn_schema_find_name(schema, kn_str("mp.value"))->id;
    int32_t q = kn_schema_find_name(schema, kn_str("mp.value.q"))->id;
    char fields[2048];
    (void)snprintf(fields, sizeof(fields),
                   FIELD(1, "id", "\"int\"") "," FIELD(
                       2, "st",
                       "{\"type\":\"struct\",\"fields\":["
                       "{\"id\":%d,\"name\":\"b\",\"required\":false,\"type\":\"long\"},"
                       "{\"id\":%d,\"name\":\"text\",\"required\":false,\"type\":"
                       "\"string\"},"
                       "{\"id\":50,\"name\":\"a\",\"required\":false,\"type\":\"date\"}]"
                       "}") "," FIELD(3, "li",
                                      "{\"type\":\"list\",\"element-id\":%d,\"element-"
                                      "required\":false,\"element\":"
                                      "{\"type\":\"struct\",\"fields\":[{\"id\":%d,"
                                      "\"name\":\"pp\",\"required\":false,\"type\":"
                                      "\"long\"}]}}") "," FIELD(4, "mp",
                                                                "{\"type\":\"map\",\"key-"
                                                                "id\":%d,\"key\":"
                                                                "\"string\",\"value-id\":"
                                                                "%d,"
                                                                "\"value-required\":"
                                                                "false,\"value\":{"
                                                                "\"type\":\"struct\","
                                                                "\"fields\":[{\"id\":%d,"
                                                                "\"name\":\"q\","
                                                                "\"required\":false,"
                                                                "\"type\":\"double\"}]}"
                                                                "}"),
                   st_a, st_b, el, p, key, val, q);
    set_schema(&fy, fields);
    ferry_round(&fy);
    ferry_same_rows(&fy);
    lake_append(&fy.lake,
                "SELECT 3::INT AS id, {'b': 5::BIGINT, 'text': 't', 'a': DATE '2026-01-01'} AS st");
    ferry_round(&fy);
    ferry_same_rows(&fy);
    lake_delete(&fy.lake, "id = 1");
    ferry_round(&fy);
    ferry_same_rows(&fy);
    ferry_close(&fy);
}

static void rows_there_get_a_new_columns_initial_default(void **state)
{
    (void)state;
    Ferry fy;
    ferry_open(&fy, &(LakeTable){.version = 3, .schema = "a int"});
    lake_append(&fy.lake, "SELECT 1::INT AS a");
    ferry_round(&fy);
    set_schema(
        &fy,
        FIELD(1, "a", "\"int\"") ",{\"id\":2,\"name\":\"n\",\"required\":false,\"type\":\"int\","
                                 "\"initial-default\":42,\"write-default\":43}");
    ferry_round(&fy);
    ferry_same_rows(&fy);
    assert_string_equal(ferry_text(&fy, "SELECT n::VARCHAR FROM t"), "42");
    lake_append(&fy.lake, "SELECT 2::INT AS a, NULL::INT AS n");
    ferry_round(&fy);
    ferry_same_rows(&fy);
    ferry_close(&fy);
}

static void a_change_that_is_killed_between_its_steps_is_finished(void **state)
{
    (void)state;
    for (int nth = 1; nth <= 12; ++nth) {
        Ferry fy;
        char spec[64];
        ferry_open(&fy,
                   &(LakeTable){.version = 3, .schema = "a int, b string, c float, gone string"});
        lake_append(&fy.lake, "SELECT 1::INT AS a, 'b' AS b, 0.5::FLOAT AS c, 'g' AS gone");
        ferry_round(&fy);
        set_schema(
            &fy,
            FIELD(1, "b", "\"long\"") "," FIELD(2, "a", "\"string\"") "," FIELD(
                3, "c",
                "\"double\"") ","
                              "{\"id\":5,\"name\":\"gone\",\"required\":false,\"type\":\"int\","
                              "\"initial-default\":42},{\"id\":6,\"name\":\"n\",\"required\":false,"
                              "\"type\":\"string\",\"initial-default\":\"x\"}");
        (void)snprintf(spec, sizeof(spec), "sink-alter:%d:fail", nth);
        assert_int_equal(kn_fault_set(spec, NULL, NULL), KN_OK);
        KnCode rc = kn_delivery_round(fy.dlv, &fy.err);
        assert_int_equal(kn_fault_set(NULL, NULL, NULL), KN_OK);
        assert_int_equal(rc, nth <= 10 ? KN_E_IO : KN_OK);
        ferry_restart(&fy);
        ferry_round(&fy);
        assert_string_equal(columns_of_target(&fy),
                            "a VARCHAR, b BIGINT, c DOUBLE, gone INTEGER, n VARCHAR");
        ferry_same_rows(&fy);
        ferry_close(&fy);
    }
}

static void a_table_made_by_hand_is_taken_over_and_keeps_its_extra_columns(void **state)
{
    (void)state;
    Ferry fy;
    ferry_open(&fy, &(LakeTable){.schema = "a int, b list<string>"});
    lake_append(&fy.lake, "SELECT 1::INT AS a, ['x'] AS b");
    ferry_exec(&fy, "CREATE TABLE t(extra INTEGER DEFAULT 5, b VARCHAR[], a INTEGER)");
    ferry_round(&fy);
    ferry_same_rows(&fy);
    assert_string_equal(ferry_text(&fy, "SELECT extra::VARCHAR FROM t"), "5");
    set_schema(&fy,
               FIELD(1, "aa", "\"long\"") "," FIELD(2, "b",
                                                    "{\"type\":\"list\",\"element-id\":3,"
                                                    "\"element\":\"string\",\"element-required\""
                                                    ":false}"));
    ferry_round(&fy);
    assert_string_equal(columns_of_target(&fy), "aa BIGINT, b VARCHAR[], extra INTEGER");
    ferry_same_rows(&fy);
    ferry_close(&fy);
}

static void names_that_need_quotes_work_everywhere(void **state)
{
    (void)state;
    Ferry fy;
    ferry_open(&fy, &(LakeTable){.schema = "a int"});
    fy.opts.target = "\"my schema\".\"the \"\"table\"\".x\"";
    ferry_restart(&fy);
    lake_append(&fy.lake, "SELECT 1::INT AS a");
    ferry_round(&fy);
    set_schema(&fy, FIELD(1, "select \\\"from", "\"long\""));
    lake_append(&fy.lake, "SELECT 2::BIGINT AS \"select \"\"from\"");
    ferry_round(&fy);
    lake_delete(&fy.lake, "\"select \"\"from\" = 1");
    ferry_round(&fy);
    assert_string_equal(ferry_text(&fy, "SELECT string_agg(\"select \"\"from\"::VARCHAR, ',') FROM "
                                        "\"my schema\".\"the \"\"table\"\".x\""),
                        "2");
    ferry_close(&fy);
}

static void columns_that_differ_in_case_only_are_refused(void **state)
{
    (void)state;
    Ferry fy;
    ferry_open(&fy, &(LakeTable){.schema = "a int"});
    lake_append(&fy.lake, "SELECT 1::INT AS a");
    set_schema(&fy, FIELD(1, "a", "\"int\"") "," FIELD(2, "A", "\"int\""));
    ferry_round_fails(&fy, KN_E_REFUSED, "takes them for the same name");
    ferry_close(&fy);
}

static void a_reload_takes_any_new_columns(void **state)
{
    (void)state;
    Ferry fy;
    ferry_open(&fy, &(LakeTable){.schema = "a int, b string"});
    lake_append(&fy.lake, "SELECT 1::INT AS a, 'x' AS b");
    ferry_round(&fy);
    ferry_exec(&fy,
               "UPDATE main._knut_columns SET type = 'VARCHAR', field = replace(field, '\"int\"', "
               "'\"string\"') WHERE name = 'a'; ALTER TABLE t ALTER a SET DATA TYPE VARCHAR");
    lake_append(&fy.lake, "SELECT 2::INT AS a, 'y' AS b");
    ferry_round_fails(&fy, KN_E_REFUSED, "column a: INTEGER in the source, VARCHAR in the target");
    lake_ok(&fy.lake, kn_delivery_reload(fy.dlv, &fy.lake.err));
    ferry_round(&fy);
    ferry_same_rows(&fy);
    assert_string_equal(columns_of_target(&fy), "a INTEGER, b VARCHAR");
    ferry_close(&fy);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_type_arrives_as_it_is),
        cmocka_unit_test(a_float_alone_tells_rows_apart),
        cmocka_unit_test(zeros_are_found_whatever_their_sign_became),
        cmocka_unit_test(columns_follow_renames_swaps_promotions_drops_and_additions),
        cmocka_unit_test(a_schema_change_without_rows_arrives_too),
        cmocka_unit_test(nested_fields_follow_by_id_at_any_depth),
        cmocka_unit_test(rows_there_get_a_new_columns_initial_default),
        cmocka_unit_test(a_change_that_is_killed_between_its_steps_is_finished),
        cmocka_unit_test(a_table_made_by_hand_is_taken_over_and_keeps_its_extra_columns),
        cmocka_unit_test(names_that_need_quotes_work_everywhere),
        cmocka_unit_test(columns_that_differ_in_case_only_are_refused),
        cmocka_unit_test(a_reload_takes_any_new_columns),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
