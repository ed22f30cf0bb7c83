/* SPDX-License-Identifier: Apache-2.0 */
/* test_doris_json.c - rows as JSON lines: every type, what is refused, and numbers that read back.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/random.h"
#include "cdc/sinks/doris/doris_internal.h"
#include "engine/engine.h"

/* The lines of a query's rows for a schema and a target; NULL when refused (err says why). */
typedef struct Case {
    const char *schema, *ddl, *sql;
    const char *key; /* a delete by this key, or NULL */
    int64_t sequence;
} Case;

static KnCode encode(KnArena *arena, const Case *c, KnDorisBody *body, KnErr *err)
{
    KnSchema *schema = NULL;
    KnDorisTable table;
    KnDorisPlan plan;
    KnEngine *eng = NULL;
    KnSession *ses = NULL;
    KnStream *stream = NULL;
    const KnEngineOptions eopts = {.threads = 1};
    const KnDorisSettings set = {0};
    assert_int_equal(kn_schema_parse_text(arena, kn_str(c->schema), &schema, err), KN_OK);
    assert_int_equal(kn_doris_table_parse(arena, kn_str(c->ddl), &table, err), KN_OK);
    const KnSinkWindow win = {
        .schema = schema, .keys = &c->key, .n_keys = c->key ? 1 : 0, .sequence = c->sequence};
    if (kn_doris_plan(arena, &set, &table, &win, &plan, err) != KN_OK)
        fail_msg("%s", err->msg);
    assert_int_equal(kn_engine_open(&eopts, &eng, err), KN_OK);
    assert_int_equal(kn_session_open(eng, &ses, err), KN_OK);
    if (kn_session_query(ses, c->sql, &stream, err) != KN_OK)
        fail_msg("%s", err->msg);
    KnDorisJson *enc = kn_doris_json_new(&plan, c->key != NULL, body);
    KnCode rc = KN_OK;
    for (KnBatch *batch = NULL; rc == KN_OK;) {
        assert_int_equal(kn_stream_next(stream, &batch, err), KN_OK);
        if (!batch)
            break;
        rc = kn_doris_json_rows(enc, batch, err);
        batch = kn_batch_unref(batch);
    }
    if (rc == KN_OK)
        rc = kn_doris_json_end(enc, err);
    enc = kn_doris_json_free(enc);
    stream = kn_stream_close(stream);
    ses = kn_session_close(ses);
    eng = kn_engine_close(eng);
    return rc;
}

static void gives(const Case *c, const char *lines)
{
    KN_ARENA_AUTO arena = kn_arena_new(4096);
    KnDorisBody body;
    KnErr err = {0};
    char got[4096];
    size_t n = 0;
    kn_doris_body_init(&body, "/tmp");
    if (encode(arena, c, &body, &err) != KN_OK)
        fail_msg("%s: %s", c->sql, err.msg);
    assert_in_range(body.len, 0, sizeof(got) - 1);
    assert_int_equal(kn_doris_body_read(&body, 0, got, sizeof(got) - 1, &n, &err), KN_OK);
    got[n] = '\0';
    assert_string_equal(got, lines);
    kn_doris_body_done(&body);
}

static void refused(const Case *c, const char *words)
{
    KN_ARENA_AUTO arena = kn_arena_new(4096);
    KnDorisBody body;
    KnErr err = {0};
    kn_doris_body_init(&body, "/tmp");
    assert_int_equal(encode(arena, c, &body, &err), KN_E_REFUSED);
    if (!strstr(err.msg, words))
        fail_msg("'%s' is not in '%s'", words, err.msg);
    kn_doris_body_done(&body);
}

#define TABLE(columns) "CREATE TABLE `t` (\n" columns ") ENGINE=OLAP\nDUPLICATE KEY(`a`)\n"
#define ONE(schema_type, doris_type, expr, text)                                                   \
    gives(                                                                                         \
        &(Case){"a " schema_type, TABLE("  `a` " doris_type " NULL\n"), "SELECT " expr, NULL, 0},  \
        "{\"a\":" text "}\n")

static void every_type_has_its_text(void **state)
{
    (void)state;
    ONE("boolean", "boolean", "true", "true");
    ONE("int", "int(11)", "(-2147483648)::INT", "-2147483648");
    ONE("long", "bigint", "9223372036854775807", "9223372036854775807");
    ONE("long", "largeint", "(-9223372036854775808)::BIGINT", "-9223372036854775808");
    ONE("double", "double", "'-0.0'::DOUBLE", "-0.0");
    ONE("double", "double", "0.1::DOUBLE", "0.1");
    ONE("double", "double", "1e300::DOUBLE", "1e+300");
    ONE("double", "double", "123456.05::DOUBLE", "123456.05");
    ONE("double", "double", "(1/3)::DOUBLE", "0.3333333333333333");
    ONE("float", "float", "0.1::FLOAT", "0.1");
    ONE("float", "float", "16777217::FLOAT", "16777216.0");
    ONE("decimal(38,18)", "decimal(38,18)", "'-0.000000000000000001'::DECIMAL(38,18)",
        "\"-0.000000000000000001\"");
    ONE("decimal(9,2)", "decimal(9,2)", "12.3::DECIMAL(9,2)", "\"12.30\"");
    ONE("decimal(5,0)", "decimal(5,0)", "0::DECIMAL(5,0)", "\"0\"");
    ONE("date", "date", "DATE '1969-12-31'", "\"1969-12-31\"");
    ONE("date", "datev2", "DATE '0001-01-01'", "\"0001-01-01\"");
    ONE("date", "date", "DATE '9999-12-31'", "\"9999-12-31\"");
    ONE("time", "varchar(15)", "TIME '23:59:59.000001'", "\"23:59:59.000001\"");
    ONE("time", "bigint", "TIME '00:00:01'", "1000000");
    ONE("timestamp", "datetime(6)", "TIMESTAMP '1969-12-31 23:59:59.999999'",
        "\"1969-12-31 23:59:59.999999\"");
    ONE("timestamptz", "datetimev2(6)", "TIMESTAMPTZ '2024-02-29 00:00:00+01:00'",
        "\"2024-02-28 23:00:00.000000\"");
    ONE("uuid", "varchar(36)", "'f79c3e09-677c-4bbd-a479-3f349cb785e7'::UUID",
        "\"f79c3e09-677c-4bbd-a479-3f349cb785e7\"");
    ONE("string", "text", "NULL::VARCHAR", "null");
    ONE("string", "text", "''", "\"\"");
    ONE("list<int>", "array<int(11)>", "[1, NULL]", "[1,null]");
    ONE("list<date>", "array<date>", "[DATE '2024-01-02']", "[\"2024-01-02\"]");
    ONE("struct<x int, y string>", "struct<x:int,y:text>", "{'x': 1, 'y': 'b'}",
        "{\"x\":1,\"y\":\"b\"}");
    ONE("map<int, string>", "map<int,text>", "MAP {5: 'v'}", "{\"5\":\"v\"}");
    ONE("map<string, list<int>>", "map<text,array<int>>", "MAP {'k\"': [1]}", "{\"k\\\"\":[1]}");
}

static void texts_are_escaped(void **state)
{
    (void)state;
    ONE("string", "text", "'a\"b\\c' || chr(10) || chr(13) || chr(9) || chr(1) || chr(127)",
        "\"a\\\"b\\\\c\\n\\r\\t\\u0001\\u007f\"");
    ONE("string", "text", "'12345678\"2345678\\'", "\"12345678\\\"2345678\\\\\"");
    ONE("string", "text", "'\\N null ' || chr(8232) || '😀é'", "\"\\\\N null \xe2\x80\xa8😀é\"");
}

static void bytes_are_sent_as_text_and_turned_back(void **state)
{
    (void)state;
    gives(&(Case){"a int, b binary", TABLE("  `a` int NULL,\n  `B` text NULL\n"),
                  "SELECT 1::INT, '\\x00\\xFF'::BLOB", NULL, 0},
          "{\"a\":1,\"__knut_b1\":\"AP8=\"}\n");
    KN_ARENA_AUTO arena = kn_arena_new(4096);
    KnSchema *schema;
    KnDorisTable table;
    KnDorisPlan plan;
    assert_int_equal(kn_schema_parse_text(arena, kn_str("a int, b binary"), &schema, NULL), KN_OK);
    const char *ddl = TABLE("  `a` int NULL,\n  `B` text NULL\n");
    assert_int_equal(kn_doris_table_parse(arena, kn_str(ddl), &table, NULL), KN_OK);
    const KnSinkWindow win = {.schema = schema};
    const KnDorisSettings set = {0};
    assert_int_equal(kn_doris_plan(arena, &set, &table, &win, &plan, NULL), KN_OK);
    assert_string_equal(plan.columns, "`a`,`__knut_b1`,`B`=from_base64(`__knut_b1`)");
}

static void a_delete_names_keys_and_what_may_not_be_null(void **state)
{
    (void)state;
    gives(&(Case){"k long required, a string, b string required",
                  "CREATE TABLE `t` (\n  `K` bigint NOT NULL,\n  `a` text NULL,\n  `b` text NOT "
                  "NULL\n) ENGINE=OLAP\nUNIQUE KEY(`K`)\nPROPERTIES (\n"
                  "\"function_column.sequence_type\" = \"bigint\"\n);",
                  "SELECT 5::BIGINT, 'x', 'y'", "k", 42},
          "{\"K\":5,\"b\":\"y\",\"__knut_sequence\":42}\n");
}

static void what_the_target_cannot_hold_is_refused_by_column(void **state)
{
    (void)state;
    const char *number = TABLE("  `a` double NULL\n"), *day = TABLE("  `a` date NULL\n");
    const char *text = TABLE("  `a` varchar(3) NULL\n"), *time = TABLE("  `a` datetime(6) NULL\n");
    refused(&(Case){"a double", number, "SELECT 'nan'::DOUBLE", NULL, 0}, "column a: NaN");
    refused(&(Case){"a double", number, "SELECT '-inf'::DOUBLE", NULL, 0}, "column a: NaN or inf");
    refused(&(Case){"a date", day, "SELECT DATE '10000-01-01'", NULL, 0}, "years 0 to 9999");
    refused(&(Case){"a date", day, "SELECT DATE '0002-01-01 (BC)'", NULL, 0}, "years 0 to 9999");
    refused(&(Case){"a timestamp", time, "SELECT TIMESTAMP '10000-01-01 00:00:00'", NULL, 0},
            "years 0 to 9999");
    refused(&(Case){"a string", text, "SELECT 'éé'", NULL, 0}, "a text of 4 bytes");
    refused(&(Case){"a string required", TABLE("  `a` text NOT NULL\n"), "SELECT NULL::VARCHAR",
                    NULL, 0},
            "column a: NULL");
}

/* Any double, and any that is a short decimal, reads back as the same. */
static void numbers_read_back_as_the_same(void **state)
{
    (void)state;
    KnRng rng = {(uint64_t)kn_random_id()};
    print_message("seed %llu\n", (unsigned long long)rng.state);
    for (int round = 0; round < 200; ++round) {
        KN_ARENA_AUTO arena = kn_arena_new(65536);
        KN_BUF_AUTO sql;
        KnDorisBody body;
        KnErr err = {0};
        double values[50];
        kn_buf_init(&sql, 65536);
        kn_buf_text(&sql, "SELECT unnest([");
        for (size_t i = 0; i < 50; ++i) {
            uint64_t bits = kn_rng_next(&rng);
            memcpy(&values[i], &bits, 8);
            if (round % 2 || values[i] != values[i] || values[i] - values[i] != 0)
                values[i] = (double)(int64_t)kn_rng_below(&rng, 1000000000) /
                            (double)(1 + kn_rng_below(&rng, 100000));
            kn_buf_printf(&sql, "%s'%.17g'::DOUBLE", i ? "," : "", values[i]);
        }
        kn_buf_text(&sql, "])");
        const Case c = {"a double", TABLE("  `a` double NULL\n"), sql.data, NULL, 0};
        kn_doris_body_init(&body, "/tmp");
        assert_int_equal(encode(arena, &c, &body, &err), KN_OK);
        char text[8192];
        size_t n;
        assert_int_equal(kn_doris_body_read(&body, 0, text, sizeof(text) - 1, &n, &err), KN_OK);
        text[n] = '\0';
        char *at = text;
        for (size_t i = 0; i < 50; ++i) {
            at = strstr(at, "{\"a\":");
            assert_non_null(at);
            double back = strtod(at + 5, &at);
            assert_memory_equal(&back, &values[i], 8);
            assert_int_equal(*at, '}');
        }
        kn_doris_body_done(&body);
        if (round >= 20)
            break;
    }
}

/* What does not fit into memory goes through a file, byte for byte. */
static void a_large_body_comes_back_from_its_file(void **state)
{
    (void)state;
    KnDorisBody body;
    KnErr err = {0};
    char piece[70001], back[70001];
    kn_doris_body_init(&body, "/tmp");
    for (size_t i = 0; i < 60; ++i) {
        memset(piece, (int)('a' + i % 26), sizeof(piece));
        assert_int_equal(kn_doris_body_append(&body, piece, sizeof(piece), &err), KN_OK);
    }
    assert_int_equal(body.len, 60 * sizeof(piece));
    for (size_t i = 0; i < 60; ++i) {
        size_t n = 0;
        memset(piece, (int)('a' + i % 26), sizeof(piece));
        assert_int_equal(kn_doris_body_read(&body, i * sizeof(piece), back, sizeof(back), &n, &err),
                         KN_OK);
        assert_int_equal(n, sizeof(back));
        assert_memory_equal(piece, back, sizeof(back));
    }
    kn_doris_body_done(&body);
    kn_doris_body_init(&body, "/no/such/folder");
    KnCode rc = KN_OK;
    for (size_t i = 0; i < 60 && rc == KN_OK; ++i)
        rc = kn_doris_body_append(&body, piece, sizeof(piece), &err);
    assert_int_equal(rc, KN_E_IO);
    assert_non_null(strstr(err.msg, "/no/such/folder"));
    kn_doris_body_done(&body);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_type_has_its_text),
        cmocka_unit_test(texts_are_escaped),
        cmocka_unit_test(bytes_are_sent_as_text_and_turned_back),
        cmocka_unit_test(a_delete_names_keys_and_what_may_not_be_null),
        cmocka_unit_test(what_the_target_cannot_hold_is_refused_by_column),
        cmocka_unit_test(numbers_read_back_as_the_same),
        cmocka_unit_test(a_large_body_comes_back_from_its_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
