/* SPDX-License-Identifier: Apache-2.0 */
/* test_transform.c - every transform by known answers, and its SQL against it on random values. */
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "engine/engine.h"
#include "iceberg/schema/partition_internal.h"
#include "iceberg/schema/value_internal.h"
#include "unit/iceberg/meta_support.h"

static KnTransform transform(Meta *m, const char *text)
{
    KnTransform t = {0};

    meta_ok(m, kn_transform_parse(m->arena, kn_str(text), &t, &m->err));
    return t;
}

static void names_are_parsed_and_unknown_ones_kept(void **state)
{
    static const struct {
        const char *text;
        KnTransformKind kind;
        int32_t param;
    } cases[] = {
        {"identity", KN_TRANSFORM_IDENTITY, 1},
        {"bucket[16]", KN_TRANSFORM_BUCKET, 16},
        {"truncate[4]", KN_TRANSFORM_TRUNCATE, 4},
        {"year", KN_TRANSFORM_YEAR, 1},
        {"month", KN_TRANSFORM_MONTH, 1},
        {"day", KN_TRANSFORM_DAY, 1},
        {"hour", KN_TRANSFORM_HOUR, 1},
        {"void", KN_TRANSFORM_VOID, 1},
        {"zorder[3]", KN_TRANSFORM_UNKNOWN, 1},
        {"bucket", KN_TRANSFORM_UNKNOWN, 1},
        {"bucket[x]", KN_TRANSFORM_UNKNOWN, 1},
        {"bucket[2147483647]", KN_TRANSFORM_BUCKET, INT32_MAX},
    };
    static const char *const wrong[] = {"bucket[0]", "truncate[-1]", "bucket[2147483648]"};
    Meta *m = *state;
    KnTransform t;

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        t = transform(m, cases[i].text);
        assert_int_equal(t.kind, cases[i].kind);
        assert_int_equal(t.param, cases[i].param);
        assert_string_equal(t.text, cases[i].text);
    }
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        assert_int_equal(kn_transform_parse(m->arena, kn_str(wrong[i]), &t, &m->err), KN_E_CORRUPT);
        assert_non_null(strstr(m->err.msg, "the number must be 1 to 2147483647"));
    }
    assert_int_equal(kn_transform_parse(m->arena, KN_STR_LIT(""), &t, &m->err), KN_E_CORRUPT);
}

static void result_types_follow_the_specification(void **state)
{
    static const char *const cases[][3] = {
        {"identity", "string", "string"},    {"bucket[4]", "uuid", "int"},
        {"bucket[4]", "time", "int"},        {"truncate[4]", "decimal(9,2)", "decimal(9,2)"},
        {"truncate[4]", "binary", "binary"}, {"year", "date", "int"},
        {"month", "timestamptz", "int"},     {"day", "date", "date"},
        {"day", "timestamp_ns", "date"},     {"hour", "timestamptz_ns", "int"},
        {"void", "double", "double"},        {"unknowable", "int", "string"},
    };
    static const char *const wrong[][2] = {
        {"bucket[4]", "double"}, {"bucket[4]", "boolean"},  {"truncate[4]", "fixed[4]"},
        {"truncate[4]", "date"}, {"year", "time"},          {"year", "long"},
        {"hour", "date"},        {"identity", "list<int>"}, {"identity", "variant"},
    };
    Meta *m = *state;

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        KnTransform t = transform(m, cases[i][0]);
        const KnType *type = NULL;
        meta_ok(m,
                kn_transform_result_type(m->arena, &t, meta_type(m, cases[i][1]), &type, &m->err));
        assert_true(kn_type_equal(type, meta_type(m, cases[i][2])));
    }
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        KnTransform t = transform(m, wrong[i][0]);
        const KnType *type = NULL;
        assert_int_equal(
            kn_transform_result_type(m->arena, &t, meta_type(m, wrong[i][1]), &type, &m->err),
            KN_E_INVAL);
        assert_string_equal(m->err.msg,
                            kn_arena_printf(m->arena, "Invalid source type %s for transform: %s",
                                            wrong[i][1], wrong[i][0]));
    }
}

/* Spec appendix B, and the cases of Java's TestBucketing. */
static void hashes_are_those_of_the_specification(void **state)
{
    static const struct {
        const char *type, *text;
        int32_t hash;
    } cases[] = {
        {"int", "34", 2017239379},
        {"long", "34", 2017239379},
        {"int", "1", 1392991556},
        {"decimal(9,2)", "14.20", -500754589},
        {"decimal(38,2)", "14.20", -500754589},
        {"date", "2017-11-16", -653330422},
        {"time", "22:31:08", -662762989},
        {"timestamp", "2017-11-16T22:31:08", -2047944441},
        {"timestamp", "2017-11-16T22:31:08.000001", -1207196810},
        {"timestamptz", "2017-11-16T14:31:08-08:00", -2047944441},
        {"timestamp_ns", "2017-11-16T22:31:08", -2047944441},
        {"timestamp_ns", "2017-11-16T22:31:08.000001001", -1207196810},
        {"timestamptz_ns", "2017-11-16T14:31:08.000001001-08:00", -1207196810},
        {"string", "iceberg", 1210000089},
        {"uuid", "f79c3e09-677c-4bbd-a479-3f349cb785e7", 1488055340},
        {"fixed[4]", "0x00010203", -188683207},
        {"binary", "0x00010203", -188683207},
    };
    Meta *m = *state;

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const KnType *type = meta_type(m, cases[i].type);
        KnValue value = meta_value(m, type, cases[i].text), bucket;
        KnTransform t = transform(m, "bucket[16]");

        assert_int_equal(kn_bucket_hash(&value), cases[i].hash);
        meta_ok(m, kn_transform_apply(m->arena, &t, type, &value, &bucket, &m->err));
        assert_int_equal(bucket.i, (cases[i].hash & INT32_MAX) % 16);
    }
}

static void values_are_transformed_as_the_specification_says(void **state)
{
    static const char *const cases[][4] = {
        {"truncate[10]", "int", "1", "0"},
        {"truncate[10]", "int", "-1", "-10"},
        {"truncate[10]", "int", "-10", "-10"},
        {"truncate[10]", "int", "-2147483648", "2147483646"}, /* wraps as Java does */
        {"truncate[10]", "long", "-11", "-20"},
        {"truncate[50]", "decimal(9,2)", "10.65", "10.50"},
        {"truncate[10]", "decimal(9,2)", "-0.05", "-0.10"},
        {"truncate[10]", "decimal(9,2)", "12.30", "12.30"},
        {"truncate[3]", "string", "iceberg", "ice"},
        {"truncate[3]", "string", "ic", "ic"},
        {"truncate[2]", "string", "\xf0\x9f\x98\x80\xc3\xa9z", "\xf0\x9f\x98\x80\xc3\xa9"},
        {"truncate[3]", "binary", "0x0102030405", "0x010203"},
        {"truncate[9]", "binary", "0x01", "0x01"},
        {"identity", "double", "-0.0", "-0.0"},
        {"year", "date", "2017-11-16", "47"},
        {"year", "date", "1969-12-31", "-1"},
        {"month", "date", "2017-11-16", "574"},
        {"month", "date", "1969-12-31", "-1"},
        {"month", "date", "1969-01-01", "-12"},
        {"day", "date", "1969-12-31", "1969-12-31"},
        {"year", "timestamp", "1969-12-31T23:59:59.999999", "-1"},
        {"month", "timestamptz", "2017-12-01T00:00:00+01:00", "574"},
        {"day", "timestamp", "1969-12-31T23:59:59.999999", "1969-12-31"},
        {"hour", "timestamp", "1970-01-01T10:30:00", "10"},
        {"hour", "timestamp", "1969-12-31T23:59:59.999999", "-1"},
        {"hour", "timestamp_ns", "1969-12-31T23:59:59.999999999", "-1"},
        {"day", "timestamp_ns", "1969-12-31T23:59:59.999999999", "1969-12-31"},
        {"year", "timestamp", "-0044-03-15", "-2014"},
    };
    Meta *m = *state;

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        KnTransform t = transform(m, cases[i][0]);
        const KnType *type = meta_type(m, cases[i][1]), *result = NULL;
        KnValue value = meta_value(m, type, cases[i][2]), out;

        meta_ok(m, kn_transform_result_type(m->arena, &t, type, &result, &m->err));
        meta_ok(m, kn_transform_apply(m->arena, &t, type, &value, &out, &m->err));
        assert_int_equal(out.kind, result->kind);
        assert_string_equal(meta_text(m, result, &out), cases[i][3]);
    }
}

static void null_and_void_give_null_and_unknown_is_refused(void **state)
{
    static const char *const texts[] = {"identity", "bucket[3]", "truncate[3]", "void"};
    Meta *m = *state;
    const KnType *type = meta_type(m, "int");
    const KnValue null = {.null = true, .kind = KN_TYPE_INT}, seven = {.kind = KN_TYPE_INT, .i = 7};
    KnValue out;
    KnTransform t;

    for (size_t i = 0; i < 4; i++) {
        t = transform(m, texts[i]);
        meta_ok(m, kn_transform_apply(m->arena, &t, type, &null, &out, &m->err));
        assert_true(out.null);
    }
    meta_ok(m, kn_transform_apply(m->arena, &t, type, &seven, &out, &m->err));
    assert_true(out.null);
    t = transform(m, "zorder[2]");
    assert_int_equal(kn_transform_apply(m->arena, &t, type, &seven, &out, &m->err),
                     KN_E_UNSUPPORTED);
    assert_string_equal(m->err.msg, "transform 'zorder[2]' is not known");
}

static void a_truncated_decimal_must_fit_its_precision(void **state)
{
    Meta *m = *state;
    const KnType *type = meta_type(m, "decimal(2,0)");
    KnValue value = meta_value(m, type, "-99"), out;
    KnTransform t = transform(m, "truncate[1000]");

    assert_int_equal(kn_transform_apply(m->arena, &t, type, &value, &out, &m->err), KN_E_INVAL);
    assert_string_equal(m->err.msg, "a truncated decimal does not fit 2 digits");
}

/* ---- SQL against apply ---- */

typedef struct Engine {
    KnEngine *eng;
    KnSession *ses;
} Engine;

/* A random value of type, small and extreme ones more often than chance would give. */
static KnValue random_value(Meta *m, KnRng *rng, const KnType *type)
{
    static const char *const texts[] = {
        "", "a", "iceberg", "\xf0\x9f\x98\x80\xc3\xa9z", "a\tb", "0123456789abcdefghij"};
    int64_t i = (int64_t)kn_rng_next(rng) >> kn_rng_below(rng, 63);
    KnValue value = {.kind = type->kind, .i = i};

    switch (type->kind) {
    case KN_TYPE_INT:
        value.i = (int32_t)i;
        break;
    case KN_TYPE_DATE:
        value.i = i % 3000000;
        break;
    case KN_TYPE_TIME:
        value.i = kn_floor_mod(i, KN_US_PER_DAY);
        break;
    case KN_TYPE_TIMESTAMP:
    case KN_TYPE_TIMESTAMPTZ:
        value.i = i % INT64_C(9000000000000000000);
        break;
    case KN_TYPE_DECIMAL:
        value.dec = (__int128)i * (int64_t)kn_rng_below(rng, 1000000007);
        while (!kn_decimal_fits(value.dec, type->precision - 1))
            value.dec /= 10;
        value.scale = type->scale;
        break;
    case KN_TYPE_UUID:
    case KN_TYPE_FIXED:
    case KN_TYPE_BINARY: {
        char *bytes = kn_arena_alloc(m->arena, 16);
        memcpy(bytes, &i, 8);
        memcpy(bytes + 8, &i, 8);
        value.bytes = (KnStr){bytes, type->kind == KN_TYPE_BINARY ? (size_t)(i & 15) : 16};
        break;
    }
    case KN_TYPE_STRING:
        value.bytes = kn_str(texts[kn_rng_below(rng, 6)]);
        break;
    default:
        if (kn_type_is_ns(type->kind))
            value.i = i % INT64_C(9200000000000000000);
        break;
    }
    return value;
}

static void check_sql(Meta *m, Engine *e, const KnTransform *t, const KnType *type,
                      const KnValue *value)
{
    KN_BUF_AUTO sql = {0};
    KN_BUF_AUTO literal = {0};
    KN_BATCH_AUTO batch = NULL;
    KnStream *stream = NULL;
    const KnType *result = NULL;
    KnValue want, got;

    kn_buf_init(&sql, 65536);
    kn_buf_init(&literal, 4096);
    meta_ok(m, kn_value_sql(&literal, type, value, &m->err));
    kn_buf_text(&sql, "SELECT ");
    meta_ok(m, kn_transform_sql(&sql, t, type, KN_STR_LIT("x"), &m->err));
    kn_buf_printf(&sql, " FROM (SELECT %s AS x)", literal.data);
    meta_ok(m, kn_transform_result_type(m->arena, t, type, &result, &m->err));
    meta_ok(m, kn_transform_apply(m->arena, t, type, value, &want, &m->err));
    meta_ok(m, kn_session_query(e->ses, sql.data, &stream, &m->err));
    meta_ok(m, kn_stream_next(stream, &batch, &m->err));
    assert_non_null(batch);
    KnVector vec = kn_batch_vector(batch, 0);
    meta_ok(m, kn_value_from_vector(m->arena, result, &vec, 0, &got, &m->err));
    if (want.null != got.null || (!want.null && kn_value_compare(&want, &got) != 0))
        fail_msg("%s gave %s, not %s", sql.data, meta_text(m, result, &got),
                 meta_text(m, result, &want));
    kn_stream_close(stream);
}

static void sql_computes_what_apply_computes(void **state)
{
    static const char *const cases[][2] = {
        {"identity", "long"},
        {"identity", "string"},
        {"bucket[16]", "int"},
        {"bucket[7]", "long"},
        {"bucket[16]", "decimal(9,2)"},
        {"bucket[5]", "decimal(38,10)"},
        {"bucket[5]", "decimal(4,4)"},
        {"bucket[16]", "date"},
        {"bucket[16]", "time"},
        {"bucket[16]", "timestamp"},
        {"bucket[16]", "timestamptz"},
        {"bucket[16]", "timestamp_ns"},
        {"bucket[16]", "timestamptz_ns"},
        {"bucket[16]", "string"},
        {"bucket[16]", "uuid"},
        {"bucket[16]", "fixed[16]"},
        {"bucket[16]", "binary"},
        {"truncate[10]", "int"},
        {"truncate[2147483647]", "int"},
        {"truncate[100]", "long"},
        {"truncate[50]", "decimal(9,2)"},
        {"truncate[7]", "decimal(38,20)"},
        {"truncate[1000]", "decimal(18,0)"},
        {"truncate[2]", "string"},
        {"truncate[3]", "binary"},
        {"year", "date"},
        {"month", "date"},
        {"day", "date"},
        {"year", "timestamp"},
        {"month", "timestamp"},
        {"day", "timestamp"},
        {"hour", "timestamp"},
        {"year", "timestamptz"},
        {"day", "timestamptz"},
        {"hour", "timestamptz"},
        {"year", "timestamp_ns"},
        {"month", "timestamptz_ns"},
        {"day", "timestamp_ns"},
        {"hour", "timestamp_ns"},
        {"void", "int"},
        {"void", "decimal(9,2)"},
    };
    Meta *m = *state;
    Engine e = {0};
    KnRng rng = {7};
    const KnEngineOptions opts = {.threads = 1};

    meta_ok(m, kn_engine_open(&opts, &e.eng, &m->err));
    meta_ok(m, kn_transform_register(e.eng, &m->err));
    meta_ok(m, kn_session_open(e.eng, &e.ses, &m->err));
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        KnTransform t = transform(m, cases[i][0]);
        const KnType *type = meta_type(m, cases[i][1]);
        const KnValue null = {.null = true, .kind = type->kind};
        check_sql(m, &e, &t, type, &null);
        for (int n = 0; n < 20; n++) {
            KnValue value = random_value(m, &rng, type);
            check_sql(m, &e, &t, type, &value);
        }
    }
    kn_session_close(e.ses);
    kn_engine_close(e.eng);
}

static void whole_columns_with_nulls_are_transformed(void **state)
{
    Meta *m = *state;
    Engine e = {0};
    int64_t n = 0;
    const KnEngineOptions opts = {.threads = 2};

    meta_ok(m, kn_engine_open(&opts, &e.eng, &m->err));
    meta_ok(m, kn_transform_register(e.eng, &m->err));
    meta_ok(m, kn_session_open(e.eng, &e.ses, &m->err));
    meta_ok(m, kn_session_query_i64(
                   e.ses,
                   "SELECT count(kn_bucket_long(x, 16)) FROM (SELECT CASE WHEN i % 3 = 0 THEN NULL "
                   "ELSE i END AS x FROM range(9000) t(i))",
                   &n, &m->err));
    assert_int_equal(n, 6000);
    assert_int_equal(kn_session_query_i64(e.ses, "SELECT kn_bucket_long(5, 0)", &n, &m->err),
                     KN_E_INVAL);
    assert_non_null(strstr(m->err.msg, "a transform's number must be 1 or more, not 0"));
    kn_session_close(e.ses);
    kn_engine_close(e.eng);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define CASE(name) cmocka_unit_test_setup_teardown(name, meta_setup, meta_teardown)
        CASE(names_are_parsed_and_unknown_ones_kept),
        CASE(result_types_follow_the_specification),
        CASE(hashes_are_those_of_the_specification),
        CASE(values_are_transformed_as_the_specification_says),
        CASE(null_and_void_give_null_and_unknown_is_refused),
        CASE(a_truncated_decimal_must_fit_its_precision),
        CASE(sql_computes_what_apply_computes),
        CASE(whole_columns_with_nulls_are_transformed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
