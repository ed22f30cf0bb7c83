/* SPDX-License-Identifier: Apache-2.0 */
/* Rows as JSON: the spelling of every type, at its edges. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/json.h"
#include "base/random.h"
#include "iceberg/scan/read.h"

typedef struct Fixture {
    KnArena *arena;
    KnEngine *eng;
    KnSession *ses;
    KnErr err;
    KnBuf out;
} Fixture;

static int setup(void **state)
{
    static Fixture fix;
    fix = (Fixture){.arena = kn_arena_new(0)};
    kn_buf_init(&fix.out, 1 << 20);
    KnEngineOptions opts = {.threads = 1};
    assert_int_equal(kn_engine_open(&opts, &fix.eng, &fix.err), KN_OK);
    assert_int_equal(kn_session_open(fix.eng, &fix.ses, &fix.err), KN_OK);
    *state = &fix;
    return 0;
}

static int teardown(void **state)
{
    Fixture *fix = *state;
    kn_session_close(fix->ses);
    kn_engine_close(fix->eng);
    kn_buf_done(&fix->out);
    kn_arena_free(fix->arena);
    return 0;
}

/* The rows of a SELECT, a line each. */
static KnCode json_of(Fixture *fix, const char *schema_text, const char *sql, const char *extra)
{
    KnSchema *schema = NULL;
    if (kn_schema_parse_text(fix->arena, kn_str(schema_text), &schema, &fix->err) != KN_OK)
        fail_msg("%s", fix->err.msg);
    KnStream *stream = NULL;
    if (kn_session_query(fix->ses, sql, &stream, &fix->err) != KN_OK)
        fail_msg("%s", fix->err.msg);
    kn_buf_reset(&fix->out);
    KnCode rc;
    for (;;) {
        KN_BATCH_AUTO batch = NULL;
        rc = kn_stream_next(stream, &batch, &fix->err);
        if (rc != KN_OK || !batch)
            break;
        for (size_t i = 0; i < kn_batch_rows(batch) && rc == KN_OK; i++) {
            rc = kn_row_json(&fix->out, schema, batch, i, extra, &fix->err);
            kn_buf_char(&fix->out, '\n');
        }
        if (rc != KN_OK)
            break;
    }
    kn_stream_close(stream);
    return rc;
}

static void expect(Fixture *fix, const char *schema, const char *sql, const char *want)
{
    if (json_of(fix, schema, sql, NULL) != KN_OK)
        fail_msg("%s", fix->err.msg);
    assert_string_equal(fix->out.data, want);
}

static void numbers_keep_every_digit(void **state)
{
    Fixture *fix = *state;
    expect(fix, "i int, l long, m decimal(38,10)",
           "SELECT (-2147483648)::INT, 9223372036854775807::BIGINT, "
           "'-9999999999999999999999999999.9999999999'::DECIMAL(38,10) UNION ALL "
           "SELECT 0, -9223372036854775808, '0.0000000001'::DECIMAL(38,10)",
           "{\"i\":-2147483648,\"l\":9223372036854775807,"
           "\"m\":\"-9999999999999999999999999999.9999999999\"}\n"
           "{\"i\":0,\"l\":-9223372036854775808,\"m\":\"0.0000000001\"}\n");
}

static void floats_are_as_short_as_they_can_be(void **state)
{
    Fixture *fix = *state;
    expect(
        fix, "f float, d double",
        "SELECT f::FLOAT, d::DOUBLE FROM (VALUES ('0.1', '0.1'), ('-0.0', '-0.0'), "
        "('1e10', '1e22'), ('1.5', '0.30000000000000004'), ('NaN', '-Infinity'), "
        "('3.4028235e38', '123456.789'), ('1e-45', '5e-324'), "
        "('1.17549421e-38', '2.2250738585072009e-308')) t(f, d)",
        "{\"f\":0.1,\"d\":0.1}\n{\"f\":-0.0,\"d\":-0.0}\n{\"f\":1e+10,\"d\":1e+22}\n"
        "{\"f\":1.5,\"d\":0.30000000000000004}\n{\"f\":\"NaN\",\"d\":\"-Infinity\"}\n"
        "{\"f\":3.4028235e+38,\"d\":123456.789}\n"
        /* As Java's: at least two digits, and no more than tell the value from its neighbours. */
        "{\"f\":1.4e-45,\"d\":4.9e-324}\n"
        "{\"f\":1.1754942e-38,\"d\":2.225073858507201e-308}\n");
}

static void random_doubles_come_back(void **state)
{
    Fixture *fix = *state;
    KnRng rng = {20260131};
    for (int i = 0; i < 300; i++) {
        char sql[64];
        double value = (double)(int64_t)kn_rng_below(&rng, 2000000000) / 1000.0 - 1e6;
        if (i % 3 == 0)
            value = kn_rng_unit(&rng) * 1e6;
        assert_in_range(snprintf(sql, sizeof(sql), "SELECT %.17g::DOUBLE", value), 1, 63);
        assert_int_equal(json_of(fix, "d double", sql, NULL), KN_OK);
        KN_JSON_AUTO doc = NULL;
        assert_int_equal(kn_json_parse(fix->out.data, fix->out.len, &doc, &fix->err), KN_OK);
        assert_true(json_real_value(json_object_get(doc, "d")) == value);
    }
}

static void times_have_no_needless_zeros(void **state)
{
    Fixture *fix = *state;
    expect(fix, "t time",
           "SELECT * FROM (VALUES (TIME '00:00:00'), ('23:59:59.999999'), ('12:30:05'), "
           "('12:30:00.5'), ('00:00:00.000001')) t(t)",
           "{\"t\":\"00:00\"}\n{\"t\":\"23:59:59.999999\"}\n{\"t\":\"12:30:05\"}\n"
           "{\"t\":\"12:30:00.500\"}\n{\"t\":\"00:00:00.000001\"}\n");
    expect(fix, "d date, a timestamp, z timestamptz",
           "SELECT DATE '0001-01-01', TIMESTAMP '1969-12-31 23:59:59.999999', "
           "TIMESTAMPTZ '9999-12-31 23:59:59.999999+00' UNION ALL SELECT DATE '12345-01-01', "
           "TIMESTAMP '2020-01-01 00:00:00', TIMESTAMPTZ '2020-01-01 01:00:00+01'",
           "{\"d\":\"0001-01-01\",\"a\":\"1969-12-31T23:59:59.999999\","
           "\"z\":\"9999-12-31T23:59:59.999999Z\"}\n"
           "{\"d\":\"+12345-01-01\",\"a\":\"2020-01-01T00:00\",\"z\":\"2020-01-01T00:00Z\"}\n");
    expect(fix, "n timestamp_ns", "SELECT TIMESTAMP_NS '1969-12-31 23:59:59.999999999'",
           "{\"n\":\"1969-12-31T23:59:59.999999999\"}\n");
}

static void texts_and_bytes_are_escaped(void **state)
{
    Fixture *fix = *state;
    expect(fix, "s string",
           "SELECT * FROM (VALUES ('z\xc3\xbcrich \xf0\x9f\x98\x80'), ('a\"b\\c'), (chr(10) || "
           "chr(1)), ('')) t(s)",
           "{\"s\":\"z\xc3\xbcrich \xf0\x9f\x98\x80\"}\n{\"s\":\"a\\\"b\\\\c\"}\n"
           "{\"s\":\"\\n\\u0001\"}\n{\"s\":\"\"}\n");
    expect(fix, "b binary, u uuid, x fixed[2], o boolean",
           "SELECT '\\x00\\xFF'::BLOB, 'f47ac10b-58cc-4372-a567-0e02b2c3d479'::UUID, "
           "'\\x01\\x02'::BLOB, true UNION ALL SELECT ''::BLOB, "
           "'00000000-0000-0000-0000-000000000000', NULL, false",
           "{\"b\":\"0x00ff\",\"u\":\"f47ac10b-58cc-4372-a567-0e02b2c3d479\",\"x\":\"0x0102\","
           "\"o\":true}\n{\"b\":\"0x\",\"u\":\"00000000-0000-0000-0000-000000000000\",\"x\":null,"
           "\"o\":false}\n");
}

static void nested_values_nest(void **state)
{
    Fixture *fix = *state;
    expect(fix, "s struct<a int, b struct<c string>>, l list<list<int>>, m map<string, int>",
           "SELECT {'a': 1::INT, 'b': {'c': 'x'}}, [[1::INT, NULL], [], NULL], "
           "MAP {'k': 1::INT, 'l': NULL} UNION ALL SELECT {'a': NULL, 'b': NULL}, [], MAP {} "
           "UNION ALL SELECT NULL, NULL, NULL",
           "{\"s\":{\"a\":1,\"b\":{\"c\":\"x\"}},\"l\":[[1,null],[],null],"
           "\"m\":[[\"k\",1],[\"l\",null]]}\n"
           "{\"s\":{\"a\":null,\"b\":null},\"l\":[],\"m\":[]}\n"
           "{\"s\":null,\"l\":null,\"m\":null}\n");
}

static void slices_and_extras_are_written_too(void **state)
{
    Fixture *fix = *state;
    if (json_of(fix, "s struct<a long>", "SELECT {'a': range} FROM range(3)", "\"x\":1") != KN_OK)
        fail_msg("%s", fix->err.msg);
    assert_string_equal(fix->out.data, "{\"s\":{\"a\":0},\"x\":1}\n{\"s\":{\"a\":1},\"x\":1}\n"
                                       "{\"s\":{\"a\":2},\"x\":1}\n");
    KnSchema *schema = NULL;
    assert_int_equal(kn_schema_parse_text(fix->arena, KN_STR_LIT("s struct<a long>, l list<long>"),
                                          &schema, &fix->err),
                     KN_OK);
    KnStream *stream = NULL;
    assert_int_equal(kn_session_query(fix->ses,
                                      "SELECT {'a': range}, [range, range] FROM range(10)", &stream,
                                      &fix->err),
                     KN_OK);
    KN_BATCH_AUTO batch = NULL;
    assert_int_equal(kn_stream_next(stream, &batch, &fix->err), KN_OK);
    KN_BATCH_AUTO slice = kn_batch_slice(batch, 7, 2);
    kn_buf_reset(&fix->out);
    assert_int_equal(kn_row_json(&fix->out, schema, slice, 1, NULL, &fix->err), KN_OK);
    assert_string_equal(fix->out.data, "{\"s\":{\"a\":8},\"l\":[8,8]}");
    kn_stream_close(stream);
}

static void a_batch_of_another_type_is_an_error(void **state)
{
    Fixture *fix = *state;
    assert_int_equal(json_of(fix, "a long", "SELECT 1::INT", NULL), KN_E_INVAL);
    assert_non_null(strstr(fix->err.msg, "column 'a'"));
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(numbers_keep_every_digit),          CASE(floats_are_as_short_as_they_can_be),
        CASE(random_doubles_come_back),          CASE(times_have_no_needless_zeros),
        CASE(texts_and_bytes_are_escaped),       CASE(nested_values_nest),
        CASE(slices_and_extras_are_written_too), CASE(a_batch_of_another_type_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
