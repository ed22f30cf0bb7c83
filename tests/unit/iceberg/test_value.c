/* SPDX-License-Identifier: Apache-2.0 */
/* test_value.c - single values as bytes, JSON, text, and literals that the engine reads back. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "engine/engine.h"
#include "iceberg/schema/value.h"
#include "iceberg/schema/value_internal.h"
#include "unit/iceberg/meta_support.h"

static const char *hex(Meta *m, KnStr bytes)
{
    KN_BUF_AUTO buf = {0};

    kn_buf_init(&buf, 4096);
    kn_hex_format(&buf, bytes, false);
    return kn_arena_strndup(m->arena, buf.data ? buf.data : "", buf.len);
}

static KnStr unhex(Meta *m, const char *text)
{
    size_t len = strlen(text) / 2;
    uint8_t *bytes = kn_arena_zalloc(m->arena, len + 1);

    assert_true(kn_hex_parse(kn_str(text), bytes));
    return (KnStr){(const char *)bytes, len};
}

/* Spec appendix D, "Binary single-value serialization". */
static const struct {
    const char *type, *text, *bytes;
} binary_cases[] = {
    {"boolean", "true", "01"},
    {"boolean", "false", "00"},
    {"int", "1", "01000000"},
    {"int", "-2147483648", "00000080"},
    {"long", "-1", "ffffffffffffffff"},
    {"long", "9223372036854775807", "ffffffffffffff7f"},
    {"float", "1.5", "0000c03f"},
    {"float", "-0.0", "00000080"},
    {"float", "nan", "0000c07f"},
    {"double", "-2.25", "00000000000002c0"},
    {"double", "-inf", "000000000000f0ff"},
    {"decimal(9,2)", "14.20", "058c"},
    {"decimal(9,2)", "-0.01", "ff"},
    {"decimal(9,2)", "0.00", "00"},
    {"decimal(9,2)", "1.28", "0080"},
    {"decimal(9,2)", "-1.28", "80"},
    {"decimal(38,0)", "99999999999999999999999999999999999999", "4b3b4ca85a86c47a098a223fffffffff"},
    {"date", "2017-11-16", "4e440000"},
    {"date", "1969-12-31", "ffffffff"},
    {"time", "22:31:08.123456", "406509e012000000"},
    {"timestamp", "1970-01-01T00:00:00.000001", "0100000000000000"},
    {"timestamptz", "1970-01-01T01:00:00.000001+01:00", "0100000000000000"},
    {"timestamp_ns", "1970-01-01T00:00:00.000000001", "0100000000000000"},
    {"string", "iceberg", "69636562657267"},
    {"string", "", ""},
    {"uuid", "f79c3e09-677c-4bbd-a479-3f349cb785e7", "f79c3e09677c4bbda4793f349cb785e7"},
    {"fixed[4]", "0x00010203", "00010203"},
    {"binary", "0xFF00", "ff00"},
};

static void values_have_the_bytes_of_the_specification(void **state)
{
    Meta *m = *state;

    for (size_t i = 0; i < sizeof(binary_cases) / sizeof(binary_cases[0]); i++) {
        const KnType *type = meta_type(m, binary_cases[i].type);
        KnValue value = meta_value(m, type, binary_cases[i].text), back;
        KN_BUF_AUTO buf = {0};

        kn_buf_init(&buf, 4096);
        kn_value_encode(&buf, type, &value);
        assert_string_equal(hex(m, (KnStr){buf.data, buf.len}), binary_cases[i].bytes);
        meta_ok(m, kn_value_decode(type, unhex(m, binary_cases[i].bytes), &back, &m->err));
        assert_int_equal(kn_value_compare(&value, &back), 0);
        assert_int_equal(back.kind, type->kind);
    }
}

static void values_written_before_a_promotion_are_read(void **state)
{
    Meta *m = *state;
    KnValue value;

    meta_ok(m, kn_value_decode(meta_type(m, "long"), unhex(m, "feffffff"), &value, &m->err));
    assert_int_equal(value.i, -2);
    meta_ok(m, kn_value_decode(meta_type(m, "double"), unhex(m, "0000c03f"), &value, &m->err));
    assert_true(value.d == 1.5);
    meta_ok(m, kn_value_decode(meta_type(m, "timestamp"), unhex(m, "ffffffff"), &value, &m->err));
    assert_int_equal(value.i, -INT64_C(86400000000));
    meta_ok(m,
            kn_value_decode(meta_type(m, "timestamp_ns"), unhex(m, "01000000"), &value, &m->err));
    assert_int_equal(value.i, INT64_C(86400000000000));
    meta_ok(
        m, kn_value_decode(meta_type(m, "decimal(12,2)"), unhex(m, "000000058c"), &value, &m->err));
    assert_int_equal((int)value.dec, 1420);
}

static void bytes_of_a_wrong_length_are_corrupt(void **state)
{
    static const char *const cases[][3] = {
        {"boolean", "", "0 bytes cannot be a value of type boolean"},
        {"boolean", "0101", "2 bytes cannot be a value of type boolean"},
        {"int", "0100", "2 bytes cannot be a value of type int"},
        {"int", "0100000000000000", "8 bytes cannot be a value of type int"},
        {"date", "0100000000000000", "8 bytes cannot be a value of type date"},
        {"time", "01000000", "4 bytes cannot be a value of type time"},
        {"long", "010000", "3 bytes cannot be a value of type long"},
        {"float", "0000000000000000", "8 bytes cannot be a value of type float"},
        {"double", "000000000000000000", "9 bytes cannot be a value of type double"},
        {"decimal(9,2)", "", "0 bytes cannot be a value of type decimal(9,2)"},
        {"decimal(9,2)", "0000000000000000000000000000000000",
         "17 bytes cannot be a value of type decimal(9,2)"},
        {"decimal(38,0)", "7fffffffffffffffffffffffffffffff", "a decimal has more than 38 digits"},
        {"uuid", "00", "1 bytes cannot be a value of type uuid"},
        {"fixed[2]", "000000", "3 bytes cannot be a value of type fixed[2]"},
        {"timestamp_ns", "ffffff7f", "a date is out of range for a timestamp"},
        {"list<int>", "00", "values of this type have no single-value form"},
        {"variant", "00", "values of this type have no single-value form"},
    };
    Meta *m = *state;

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        KnValue value;
        KnCode rc =
            kn_value_decode(meta_type(m, cases[i][0]), unhex(m, cases[i][1]), &value, &m->err);
        assert_true(rc == KN_E_CORRUPT || rc == KN_E_UNSUPPORTED);
        assert_string_equal(m->err.msg, cases[i][2]);
    }
}

/* Spec appendix D, "JSON single-value serialization". */
static void values_have_the_json_of_the_specification(void **state)
{
    static const char *const cases[][2] = {
        {"boolean", "true"},
        {"int", "34"},
        {"long", "-9223372036854775808"},
        {"float", "1.5"},
        {"double", "-0.1"},
        {"decimal(9,2)", "\"14.20\""},
        {"decimal(2,2)", "\"-0.05\""},
        {"date", "\"2017-11-16\""},
        {"date", "\"-0044-03-15\""},
        {"date", "\"+10000-01-01\""},
        {"time", "\"22:31:08.123456\""},
        {"timestamp", "\"2017-11-16T22:31:08.123456\""},
        {"timestamptz", "\"2017-11-16T22:31:08.123456+00:00\""},
        {"timestamp_ns", "\"2017-11-16T22:31:08.123456789\""},
        {"timestamptz_ns", "\"2017-11-16T22:31:08.123456789+00:00\""},
        {"string", "\"iceberg \\\"q\\\"\""},
        {"uuid", "\"f79c3e09-677c-4bbd-a479-3f349cb785e7\""},
        {"fixed[4]", "\"000102FF\""},
        {"binary", "\"\""},
        {"long", "null"},
    };
    Meta *m = *state;

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const KnType *type = meta_type(m, cases[i][0]);
        KN_JSON_AUTO in = NULL;
        KnValue value;

        meta_ok(m, kn_json_parse(cases[i][1], strlen(cases[i][1]), &in, &m->err));
        meta_ok(m, kn_value_from_json(m->arena, type, in, &value, &m->err));
        KN_JSON_AUTO out = kn_value_to_json(type, &value);
        assert_true(json_equal(in, out));
    }
}

static void json_of_another_type_is_refused(void **state)
{
    static const char *const cases[][3] = {
        {"boolean", "1", "1 is not a JSON value of type boolean"},
        {"int", "2147483648", "2147483648 is not a JSON value of type int"},
        {"int", "1.5", "1.5 is not a JSON value of type int"},
        {"long", "\"1\"", "\"1\" is not a JSON value of type long"},
        {"double", "\"1.5\"", "\"1.5\" is not a JSON value of type double"},
        {"decimal(9,2)", "1.25", "1.25 is not a JSON value of type decimal(9,2)"},
        {"decimal(9,2)", "\"1.255\"", "\"1.255\" is not a JSON value of type decimal(9,2)"},
        {"decimal(3,2)", "\"10.00\"", "\"10.00\" is not a JSON value of type decimal(3,2)"},
        {"date", "\"2017-02-29\"", "\"2017-02-29\" is not a JSON value of type date"},
        {"time", "\"24:00:00\"", "\"24:00:00\" is not a JSON value of type time"},
        {"timestamp", "\"2017-01-01T00:00:00Z\"",
         "\"2017-01-01T00:00:00Z\" is not a JSON value of type timestamp"},
        {"uuid", "\"f79c3e09677c4bbda4793f349cb785e7\"",
         "\"f79c3e09677c4bbda4793f349cb785e7\" is not a JSON value of type uuid"},
        {"fixed[2]", "\"00\"", "\"00\" is not a JSON value of type fixed[2]"},
        {"binary", "\"0g\"", "\"0g\" is not a JSON value of type binary"},
        {"list<int>", "[1]", "[1] is not a JSON value of type list<int>"},
    };
    Meta *m = *state;

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        KN_JSON_AUTO in = NULL;
        KnValue value;
        meta_ok(m, kn_json_parse(cases[i][1], strlen(cases[i][1]), &in, &m->err));
        assert_int_equal(
            kn_value_from_json(m->arena, meta_type(m, cases[i][0]), in, &value, &m->err),
            KN_E_CORRUPT);
        assert_string_equal(m->err.msg, cases[i][2]);
    }
}

static void floats_beyond_numbers_are_text_in_json(void **state)
{
    static const char *const texts[] = {"NaN", "Infinity", "-Infinity"};
    Meta *m = *state;
    const KnType *type = meta_type(m, "double");

    for (size_t i = 0; i < 3; i++) {
        KnValue value = meta_value(m, type, texts[i]), back;
        KN_JSON_AUTO out = kn_value_to_json(type, &value);
        assert_string_equal(json_string_value(out), texts[i]);
        meta_ok(m, kn_value_from_json(m->arena, type, out, &back, &m->err));
        assert_int_equal(kn_value_compare(&value, &back), 0);
    }
}

static void texts_of_people_and_of_the_engine_are_read(void **state)
{
    static const char *const cases[][3] = {
        {"boolean", "TRUE", "true"},
        {"int", "-7", "-7"},
        {"double", "1e3", "1000.0"},
        {"double", "0.1", "0.1"},
        {"double", "1e300", "1e+300"},
        {"float", "0.1", "0.1"},
        {"float", "16777216", "16777216.0"},
        {"decimal(9,2)", "1.5", "1.50"},
        {"decimal(9,2)", "+15e-1", "1.50"},
        {"decimal(9,2)", ".5", "0.50"},
        {"decimal(9,2)", "1.500", "1.50"},
        {"decimal(9,0)", "12e2", "1200"},
        {"date", "2026-1-31", "2026-01-31"},
        {"date", "0044-03-15 (BC)", "-0043-03-15"},
        {"date", "0001-12-31 (BC)", "0000-12-31"},
        {"date", "10000-01-01", "+10000-01-01"},
        {"date", "2000-02-29", "2000-02-29"},
        {"time", "1:02", "01:02:00"},
        {"time", "01:02:03.5", "01:02:03.5"},
        {"timestamp", "2026-01-31", "2026-01-31T00:00:00"},
        {"timestamp", "2026-01-31 10:20:30.000100", "2026-01-31T10:20:30.0001"},
        {"timestamp", "0044-03-15 (BC) 10:00:00", "-0043-03-15T10:00:00"},
        {"timestamptz", "2026-01-31 10:20:30+00", "2026-01-31T10:20:30+00:00"},
        {"timestamptz", "2026-01-31T10:20:30Z", "2026-01-31T10:20:30+00:00"},
        {"timestamptz", "2026-01-31 10:20:30", "2026-01-31T10:20:30+00:00"},
        {"timestamptz", "2026-01-31T23:30:00-0130", "2026-02-01T01:00:00+00:00"},
        {"timestamp_ns", "1969-12-31 23:59:59.999999999", "1969-12-31T23:59:59.999999999"},
        {"uuid", "F79C3E09-677C-4BBD-A479-3F349CB785E7", "f79c3e09-677c-4bbd-a479-3f349cb785e7"},
        {"binary", "00fF", "0x00ff"},
        {"binary", "0x", "0x"},
    };
    Meta *m = *state;

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const KnType *type = meta_type(m, cases[i][0]);
        KnValue value = meta_value(m, type, cases[i][1]);
        assert_string_equal(meta_text(m, type, &value), cases[i][2]);
        KnValue back = meta_value(m, type, cases[i][2]);
        assert_int_equal(kn_value_compare(&value, &back), 0);
    }
}

static void wrong_texts_are_refused_with_the_type(void **state)
{
    static const char *const cases[][2] = {
        {"boolean", "yes"},
        {"int", "2147483648"},
        {"int", ""},
        {"int", "1.0"},
        {"long", "9223372036854775808"},
        {"double", "1,5"},
        {"float", "1e39"},
        {"decimal(9,2)", "1.234"},
        {"decimal(9,2)", "x"},
        {"decimal(9,2)", "1e"},
        {"decimal(9,2)", "."},
        {"decimal(9,2)", "1e99999999999"},
        {"date", "2026-13-01"},
        {"date", "2026-00-10"},
        {"date", "2026-04-31"},
        {"date", "1900-02-29"},
        {"date", "6000000-01-01"},
        {"date", "2026-01-31x"},
        {"time", "12:60"},
        {"time", "12:00:00.1234567"},
        {"timestamp", "2026-01-31 10:20:30+00"},
        {"timestamp_ns", "2300-01-01"},
        {"timestamptz", "2026-01-31 10:20:30+25"},
        {"string", "\xff"},
        {"uuid", "f79c3e09"},
        {"fixed[2]", "0x000102"},
        {"binary", "0x0"},
    };
    Meta *m = *state;

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        KnValue value;
        assert_int_equal(kn_value_parse(m->arena, meta_type(m, cases[i][0]), kn_str(cases[i][1]),
                                        &value, &m->err),
                         KN_E_INVAL);
        assert_non_null(strstr(m->err.msg, "is not a value of type"));
        assert_non_null(strstr(m->err.msg, cases[i][0]));
    }
}

static void the_order_is_icebergs(void **state)
{
    static const struct {
        const char *type;
        const char *texts[6]; /* ascending */
    } cases[] = {
        {"boolean", {"false", "true"}},
        {"int", {"-5", "0", "7"}},
        {"double", {"-inf", "-1", "-0.0", "0.0", "inf", "nan"}},
        {"decimal(38,0)",
         {"-99999999999999999999999999999999999999", "-1", "0",
          "99999999999999999999999999999999999999"}},
        {"string", {"", "a", "aa", "b", "\xc3\xa9", "\xf0\x9f\x98\x80"}},
        {"binary", {"0x", "0x00", "0x7f", "0x80", "0xff", "0xff00"}},
        {"uuid",
         {"00000000-0000-0000-0000-000000000000", "7fffffff-ffff-ffff-ffff-ffffffffffff",
          "80000000-0000-0000-0000-000000000000"}},
        {"timestamp", {"-0001-01-01", "1969-12-31", "1970-01-01 00:00:00.000001"}},
    };
    Meta *m = *state;

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const KnType *type = meta_type(m, cases[i].type);
        for (size_t a = 0; a < 6 && cases[i].texts[a]; a++) {
            for (size_t b = 0; b < 6 && cases[i].texts[b]; b++) {
                KnValue x = meta_value(m, type, cases[i].texts[a]);
                KnValue y = meta_value(m, type, cases[i].texts[b]);
                int order = kn_value_compare(&x, &y);
                assert_int_equal((order > 0) - (order < 0), (a > b) - (a < b));
            }
        }
    }
}

/* ---- against the engine ---- */

typedef struct Engine {
    KnEngine *eng;
    KnSession *ses;
} Engine;

static Engine engine_open(Meta *m)
{
    Engine e = {0};
    const KnEngineOptions opts = {.threads = 1};

    meta_ok(m, kn_engine_open(&opts, &e.eng, &m->err));
    meta_ok(m, kn_session_open(e.eng, &e.ses, &m->err));
    return e;
}

static void engine_close(Engine *e)
{
    kn_session_close(e->ses);
    kn_engine_close(e->eng);
}

static void check_literal(Meta *m, Engine *e, const KnType *type, const KnValue *value)
{
    KN_BUF_AUTO sql = {0};
    KnStream *stream = NULL;
    KN_BATCH_AUTO batch = NULL;
    KnValue back;

    kn_buf_init(&sql, (size_t)1 << 20);
    kn_buf_text(&sql, "SELECT ");
    meta_ok(m, kn_value_sql(&sql, type, value, &m->err));
    meta_ok(m, kn_session_query(e->ses, sql.data, &stream, &m->err));
    meta_ok(m, kn_stream_next(stream, &batch, &m->err));
    assert_non_null(batch);
    KnVector vec = kn_batch_vector(batch, 0);
    meta_ok(m, kn_value_from_vector(m->arena, type, &vec, 0, &back, &m->err));
    if (back.null != value->null || (!value->null && kn_value_compare(value, &back) != 0))
        fail_msg("%s gave %s, not %s", sql.data, meta_text(m, type, &back),
                 meta_text(m, type, value));
    kn_stream_close(stream);
}

static void literals_of_extreme_values_are_exact(void **state)
{
    static const char *const cases[][8] = {
        {"boolean", "true", "false"},
        {"int", "-2147483648", "2147483647", "0"},
        {"long", "-9223372036854775808", "9223372036854775807"},
        {"float", "nan", "inf", "-inf", "-0.0", "1.17549435e-38", "3.4028235e38", "1e-45"},
        {"double", "nan", "inf", "-inf", "-0.0", "0.1", "5e-324", "1.7976931348623157e308"},
        {"decimal(9,2)", "-9999999.99", "0.01"},
        {"decimal(38,0)", "-99999999999999999999999999999999999999"},
        {"decimal(38,38)", "0.99999999999999999999999999999999999999"},
        {"date", "0001-01-01", "9999-12-31", "10000-01-01", "0000-12-31", "-0044-03-15",
         "1969-12-31"},
        {"time", "00:00:00", "23:59:59.999999"},
        {"timestamp", "0001-01-01", "9999-12-31 23:59:59.999999", "10000-01-01 00:00:00.000001",
         "-0044-03-15 00:00:00.5", "1969-12-31 23:59:59.999999", "294247-01-10 04:00:54"},
        {"timestamptz", "0001-01-01 00:00:00Z", "9999-12-31 23:59:59.999999Z",
         "-1000-01-01 00:00:01Z", "20000-06-01 00:00:00Z"},
        {"timestamp_ns", "1677-09-22 00:00:00", "2262-04-11 23:47:16.854775806",
         "1969-12-31 23:59:59.999999999", "1970-01-01 00:00:00.000000001"},
        {"timestamptz_ns", "1969-12-31 23:59:59.999999999Z", "2026-01-31 00:00:00.5Z"},
        {"string", "", "it's", "\"q\" \\ % ; -- $1", "\xf0\x9f\x98\x80\xc3\xa9", "a\nb\tc"},
        {"uuid", "f79c3e09-677c-4bbd-a479-3f349cb785e7", "00000000-0000-0000-0000-000000000000",
         "ffffffff-ffff-ffff-ffff-ffffffffffff"},
        {"fixed[3]", "0x000102"},
        {"binary", "0x", "0x00", "0x27225c00ff"},
    };
    Meta *m = *state;
    Engine e = engine_open(m);

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const KnType *type = meta_type(m, cases[i][0]);
        const KnValue null = {.null = true, .kind = type->kind};
        for (size_t j = 1; j < 8 && cases[i][j]; j++) {
            KnValue value = meta_value(m, type, cases[i][j]);
            check_literal(m, &e, type, &value);
        }
        check_literal(m, &e, type, &null);
    }
    engine_close(&e);
}

static void literals_at_the_engines_infinities_are_exact(void **state)
{
    static const struct {
        const char *type;
        int64_t i;
    } cases[] = {
        {"date", INT32_MAX},          {"date", -INT32_MAX},
        {"date", INT32_MAX - 1},      {"date", -INT32_MAX + 1},
        {"timestamp", INT64_MAX},     {"timestamp", -INT64_MAX},
        {"timestamp", INT64_MAX - 1}, {"timestamp", INT64_C(-9223372022400000000)},
        {"timestamptz", INT64_MAX},   {"timestamp_ns", INT64_MAX},
        {"timestamp_ns", -INT64_MAX},
    };
    Meta *m = *state;
    Engine e = engine_open(m);

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const KnType *type = meta_type(m, cases[i].type);
        const KnValue value = {.kind = type->kind, .i = cases[i].i};
        check_literal(m, &e, type, &value);
    }
    engine_close(&e);
}

static void values_that_the_engine_cannot_spell_are_refused(void **state)
{
    Meta *m = *state;
    KN_BUF_AUTO sql = {0};
    const KnValue date = {.kind = KN_TYPE_DATE, .i = INT32_MIN};
    const KnValue early = {.kind = KN_TYPE_TIMESTAMP, .i = INT64_MIN};
    const KnValue text = {.kind = KN_TYPE_STRING, .bytes = KN_STR_LIT("\xff")};

    kn_buf_init(&sql, 1000);
    assert_int_equal(kn_value_sql(&sql, meta_type(m, "date"), &date, &m->err), KN_E_UNSUPPORTED);
    assert_string_equal(m->err.msg, "date -2147483648 is out of the engine's range");
    assert_int_equal(kn_value_sql(&sql, meta_type(m, "timestamp"), &early, &m->err),
                     KN_E_UNSUPPORTED);
    assert_int_equal(kn_value_sql(&sql, meta_type(m, "string"), &text, &m->err), KN_E_CORRUPT);
}

static void a_text_with_a_nul_byte_is_exact(void **state)
{
    Meta *m = *state;
    Engine e = engine_open(m);
    const KnValue value = {.kind = KN_TYPE_STRING, .bytes = KN_STR_LIT("a\0'b")};

    check_literal(m, &e, meta_type(m, "string"), &value);
    engine_close(&e);
}

static void random_literals_are_exact(void **state)
{
    Meta *m = *state;
    Engine e = engine_open(m);
    KnRng rng = {20260131};
    const KnType *types[] = {meta_type(m, "long"),        meta_type(m, "double"),
                             meta_type(m, "float"),       meta_type(m, "timestamp"),
                             meta_type(m, "timestamptz"), meta_type(m, "date")};

    for (int i = 0; i < 300; i++) {
        const KnType *type = types[i % 6];
        uint64_t bits = kn_rng_next(&rng);
        KnValue value = {.kind = type->kind, .i = (int64_t)bits};
        float single;
        uint32_t half = (uint32_t)bits;

        if (type->kind == KN_TYPE_DOUBLE) {
            memcpy(&value.d, &bits, sizeof(value.d));
        } else if (type->kind == KN_TYPE_FLOAT) {
            memcpy(&single, &half, sizeof(single));
            value.d = (double)single;
        } else if (type->kind == KN_TYPE_DATE) {
            value.i = (int32_t)bits;
        } else if (type->kind != KN_TYPE_LONG && value.i < INT64_C(-9223372022400000000)) {
            continue;
        }
        check_literal(m, &e, type, &value);
    }
    engine_close(&e);
}

static void a_column_of_another_type_is_refused(void **state)
{
    Meta *m = *state;
    Engine e = engine_open(m);
    KnStream *stream = NULL;
    KN_BATCH_AUTO batch = NULL;
    KnValue value;

    meta_ok(m, kn_session_query(e.ses, "SELECT 1::INTEGER, 1.5::DECIMAL(9,1)", &stream, &m->err));
    meta_ok(m, kn_stream_next(stream, &batch, &m->err));
    KnVector number = kn_batch_vector(batch, 0), decimal = kn_batch_vector(batch, 1);
    assert_int_equal(
        kn_value_from_vector(m->arena, meta_type(m, "long"), &number, 0, &value, &m->err),
        KN_E_INVAL);
    assert_string_equal(m->err.msg, "a column of another type cannot give values of type long");
    assert_int_equal(
        kn_value_from_vector(m->arena, meta_type(m, "decimal(9,2)"), &decimal, 0, &value, &m->err),
        KN_E_INVAL);
    kn_stream_close(stream);
    engine_close(&e);
}

static void every_day_has_a_date_and_back(void **state)
{
    static const struct {
        int64_t days, year;
        int month, day;
    } cases[] = {
        {0, 1970, 1, 1},         {-1, 1969, 12, 31},          {11016, 2000, 2, 29},
        {-719162, 1, 1, 1},      {-719163, 0, 12, 31},        {-719528, 0, 1, 1},
        {2932896, 9999, 12, 31}, {INT32_MAX, 5881580, 7, 11}, {INT32_MIN, -5877641, 6, 23}};

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        KnDate date = kn_date_from_days(cases[i].days);
        assert_int_equal(date.year, cases[i].year);
        assert_int_equal(date.month, cases[i].month);
        assert_int_equal(date.day, cases[i].day);
        assert_int_equal(kn_date_to_days(date), cases[i].days);
    }
    for (int64_t days = -1000000; days < 1000000; days += 37)
        assert_int_equal(kn_date_to_days(kn_date_from_days(days)), days);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define CASE(name) cmocka_unit_test_setup_teardown(name, meta_setup, meta_teardown)
        CASE(values_have_the_bytes_of_the_specification),
        CASE(values_written_before_a_promotion_are_read),
        CASE(bytes_of_a_wrong_length_are_corrupt),
        CASE(values_have_the_json_of_the_specification),
        CASE(json_of_another_type_is_refused),
        CASE(floats_beyond_numbers_are_text_in_json),
        CASE(texts_of_people_and_of_the_engine_are_read),
        CASE(wrong_texts_are_refused_with_the_type),
        CASE(the_order_is_icebergs),
        CASE(literals_of_extreme_values_are_exact),
        CASE(literals_at_the_engines_infinities_are_exact),
        CASE(values_that_the_engine_cannot_spell_are_refused),
        CASE(a_text_with_a_nul_byte_is_exact),
        CASE(random_literals_are_exact),
        CASE(a_column_of_another_type_is_refused),
        CASE(every_day_has_a_date_and_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
