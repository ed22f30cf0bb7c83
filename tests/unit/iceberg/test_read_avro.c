/* SPDX-License-Identifier: Apache-2.0 */
/* test_read_avro.c - Avro data files: every type, fields found by id. */
#include <math.h>
#include <string.h>

#include "unit/iceberg/avro_lake.h"

/* ---- types ---- */

/* clang-format off */
static const char types_table[] =
    FIELD(1, "bo", "\"boolean\"") "," FIELD(2, "i", INT) "," FIELD(3, "l", LONG) ","
    FIELD(4, "f", "\"float\"") "," FIELD(5, "d", "\"double\"") ","
    FIELD(6, "d9", "\"decimal(9,2)\"") "," FIELD(7, "d38", "\"decimal(38,10)\"") ","
    FIELD(8, "dt", "\"date\"") "," FIELD(9, "tm", "\"time\"") ","
    FIELD(10, "ts", "\"timestamp\"") "," FIELD(11, "tz", "\"timestamptz\"") ","
    FIELD(12, "ns", "\"timestamp_ns\"") "," FIELD(13, "nz", "\"timestamptz_ns\"") ","
    FIELD(14, "s", TEXT) "," FIELD(15, "u", "\"uuid\"") ","
    FIELD(16, "fx", "\"fixed[3]\"") "," FIELD(17, "b", "\"binary\"");

static const char types_file[] = AVRO(
    AVRO_FIELD(1, "bo", OR_NULL("\"boolean\"")) ","
    AVRO_FIELD(2, "i", OR_NULL(INT)) ","
    AVRO_FIELD(3, "l", OR_NULL(LONG)) ","
    AVRO_FIELD(4, "f", OR_NULL("\"float\"")) ","
    AVRO_FIELD(5, "d", OR_NULL("\"double\"")) ","
    AVRO_FIELD(6, "d9", OR_NULL("{\"type\":\"fixed\",\"name\":\"d9\",\"size\":4,"
                                "\"logicalType\":\"decimal\",\"precision\":9,\"scale\":2}")) ","
    AVRO_FIELD(7, "d38", OR_NULL("{\"type\":\"bytes\",\"logicalType\":\"decimal\","
                                 "\"precision\":38,\"scale\":10}")) ","
    AVRO_FIELD(8, "dt", OR_NULL("{\"type\":\"int\",\"logicalType\":\"date\"}")) ","
    AVRO_FIELD(9, "tm", OR_NULL("{\"type\":\"long\",\"logicalType\":\"time-micros\"}")) ","
    AVRO_FIELD(10, "ts", OR_NULL(TIMESTAMP("micros", "false"))) ","
    AVRO_FIELD(11, "tz", OR_NULL(TIMESTAMP("micros", "true"))) ","
    AVRO_FIELD(12, "ns", OR_NULL(TIMESTAMP("nanos", "false"))) ","
    AVRO_FIELD(13, "nz", OR_NULL(TIMESTAMP("nanos", "true"))) ","
    AVRO_FIELD(14, "s", OR_NULL(TEXT)) ","
    AVRO_FIELD(15, "u", OR_NULL("{\"type\":\"fixed\",\"name\":\"u\",\"size\":16,"
                                "\"logicalType\":\"uuid\"}")) ","
    AVRO_FIELD(16, "fx", OR_NULL("{\"type\":\"fixed\",\"name\":\"fx\",\"size\":3}")) ","
    AVRO_FIELD(17, "b", OR_NULL("\"bytes\"")));
/* clang-format on */

static void put_fixed(AvroFile *avro, const char *bytes, size_t len)
{
    kn_avro_put_long(avro->buf, 1);
    kn_buf_append(avro->buf, bytes, len);
}

/* 10^38 - 1, or its negative. */
static void put_decimal38(AvroFile *avro, bool negative)
{
    unsigned __int128 value = 1;
    for (int i = 0; i < 38; i++)
        value *= 10;
    value = negative ? 1 - value : value - 1;
    char bytes[17] = {negative ? '\xff' : '\0'};
    for (int i = 16; i > 0; i--, value >>= 8)
        bytes[i] = (char)value;
    kn_avro_put_long(avro->buf, 1);
    kn_avro_put_bytes(avro->buf, (KnStr){bytes, sizeof(bytes)});
}

typedef struct Extremes {
    int64_t i, l, date, time, micros, nanos;
    float f;
    double d;
    const char *d9, *uuid, *fixed;
    bool negative;
} Extremes;

static void put_extremes(AvroFile *avro, const Extremes *e)
{
    kn_avro_put_long(avro->buf, 1);
    kn_avro_put_boolean(avro->buf, !e->negative);
    avro_put_some(avro, e->i);
    avro_put_some(avro, e->l);
    kn_avro_put_long(avro->buf, 1);
    kn_avro_put_float(avro->buf, e->f);
    kn_avro_put_long(avro->buf, 1);
    kn_avro_put_double(avro->buf, e->d);
    put_fixed(avro, e->d9, 4);
    put_decimal38(avro, e->negative);
    avro_put_some(avro, e->date);
    avro_put_some(avro, e->time);
    avro_put_some(avro, e->micros);
    avro_put_some(avro, e->micros);
    avro_put_some(avro, e->nanos);
    avro_put_some(avro, e->nanos);
    kn_avro_put_long(avro->buf, 1);
    avro_put_text(avro, e->negative ? "" : "z\xc3\xa4hlt mehr als zw\xc3\xb6lf");
    put_fixed(avro, e->uuid, 16);
    put_fixed(avro, e->fixed, 3);
    kn_avro_put_long(avro->buf, 1);
    kn_avro_put_bytes(avro->buf, (KnStr){"\0\xff", 2});
    avro_end_row(avro);
}

static void every_type_is_read_exactly(void **state)
{
    AvroLake *fix = *state;
    avro_table(fix, types_table, NULL);
    AvroFile avro = avro_begin(fix, types_file, KN_AVRO_CODEC_DEFLATE);
    put_extremes(&avro, &(Extremes){.i = INT32_MAX,
                                    .l = INT64_MAX,
                                    .date = 2932896,
                                    .time = 86399999999,
                                    .micros = 253402300799999999,
                                    .nanos = INT64_MAX - 1,
                                    .f = (float)INFINITY,
                                    .d = (double)NAN,
                                    .d9 = "\x3b\x9a\xc9\xff",
                                    .uuid = "\xff\1\2\3\4\5\6\7\10\11\12\13\14\15\16\17",
                                    .fixed = "\0\1\2"});
    put_extremes(&avro, &(Extremes){.i = INT32_MIN,
                                    .l = INT64_MIN,
                                    .date = -719162,
                                    .micros = -62135596800000000,
                                    .nanos = INT64_MIN + 2,
                                    .f = -0.0F,
                                    .d = -0.0,
                                    .d9 = "\xc4\x65\x36\x01",
                                    .uuid = "\0\1\2\3\4\5\6\7\10\11\12\13\14\15\16\17",
                                    .fixed = "\xff\xfe\xfd",
                                    .negative = true});
    for (int i = 0; i < 17; i++)
        kn_avro_put_long(avro.buf, 0);
    avro_end_row(&avro);
    avro_task(fix, avro_end(&avro, "types.avro"), NULL);
    static const char sql[] =
        "SELECT string_agg(concat_ws('|', bo, i, l, f, d, d9, d38, dt, tm, ts, tz, "
        "epoch_ns(ns), epoch_ns(nz), s, u, hex(fx), hex(b)), chr(10) ORDER BY _pos) FROM {scan}";
    avro_expect(fix, sql,
                "true|2147483647|9223372036854775807|inf|nan|9999999.99|"
                "9999999999999999999999999999.9999999999|9999-12-31|23:59:59.999999|"
                "9999-12-31 23:59:59.999999|9999-12-31 23:59:59.999999+00|9223372036854775806|"
                "9223372036854775806|z\xc3\xa4hlt mehr als zw\xc3\xb6lf|"
                "ff010203-0405-0607-0809-0a0b0c0d0e0f|000102|00FF\n"
                "false|-2147483648|-9223372036854775808|-0.0|-0.0|-9999999.99|"
                "-9999999999999999999999999999.9999999999|0001-01-01|00:00:00|"
                "0001-01-01 00:00:00|0001-01-01 00:00:00+00|-9223372036854775806|"
                "-9223372036854775806||00010203-0405-0607-0809-0a0b0c0d0e0f|FFFEFD|00FF\n");
}

static void milliseconds_and_local_timestamps_of_other_writers_are_known(void **state)
{
    AvroLake *fix = *state;
    avro_table(fix,
               FIELD(1, "a", "\"time\"") "," FIELD(2, "b", "\"timestamptz\"") "," FIELD(
                   3, "c", "\"timestamp\"") "," FIELD(4, "d", "\"timestamp\""),
               NULL);
    AvroFile avro = avro_begin(
        fix,
        AVRO(
            AVRO_FIELD(1, "a", "{\"type\":\"int\",\"logicalType\":\"time-millis\"}") "," AVRO_FIELD(
                2, "b",
                TIMESTAMP(
                    "millis",
                    "true")) "," AVRO_FIELD(3, "c",
                                            "{\"type\":\"long\",\"logicalType\":"
                                            "\"local-timestamp-millis\"}") "," AVRO_FIELD(4, "d",
                                                                                          "{\"type"
                                                                                          "\":"
                                                                                          "\"long\""
                                                                                          ",\"logic"
                                                                                          "alType\""
                                                                                          ":\"times"
                                                                                          "tamp-"
                                                                                          "micros\""
                                                                                          "}")),
        KN_AVRO_CODEC_NULL);
    for (int i = 1; i <= 4; i++)
        kn_avro_put_long(avro.buf, i);
    avro_end_row(&avro);
    avro_task(fix, avro_end(&avro, "millis.avro"), NULL);
    avro_expect(fix, "SELECT concat_ws('|', a, b, c, d) FROM {scan}",
                "00:00:00.001|1970-01-01 00:00:00.002+00|1970-01-01 00:00:00.003|"
                "1970-01-01 00:00:00.000004");
}

/* The engine spells them as infinities, and its casts fail: the numbers are what is kept. */
static void the_extremes_of_time_stay_the_numbers_they_are(void **state)
{
    AvroLake *fix = *state;
    static const int64_t values[] = {INT64_MIN, INT64_MIN + 1, INT64_MIN + 2, INT64_MAX};
    avro_table(fix,
               FIELD(1, "a", "\"timestamp_ns\"") "," FIELD(2, "b", "\"timestamp\"") "," FIELD(
                   3, "c", "\"timestamptz\"") "," FIELD(4, "d", "\"date\""),
               NULL);
    AvroFile avro = avro_begin(
        fix,
        AVRO(AVRO_FIELD(1, "a", TIMESTAMP("nanos", "false")) "," AVRO_FIELD(
            2, "b",
            TIMESTAMP(
                "micros",
                "false")) "," AVRO_FIELD(3, "c",
                                         TIMESTAMP(
                                             "micros",
                                             "true")) "," AVRO_FIELD(4, "d",
                                                                     "{\"type\":\"int\","
                                                                     "\"logicalType\":\"date\"}")),
        KN_AVRO_CODEC_NULL);
    for (size_t i = 0; i < 4; i++) {
        for (int c = 0; c < 3; c++)
            kn_avro_put_long(avro.buf, values[i]);
        kn_avro_put_long(avro.buf, i == 3 ? INT32_MAX : INT32_MIN + (int32_t)i);
        avro_end_row(&avro);
    }
    avro_task(fix, avro_end(&avro, "time.avro"), NULL);
    KnReadOptions opts = {.schema = kn_metadata_schema(fix->tbl->md)};
    KnRead *read = NULL;
    KnStream *stream = NULL;
    KnScanTasks tasks = {fix->tasks, fix->n_tasks};
    assert_int_equal(kn_read_open(fix->tbl, fix->ses, tasks, &opts, &read, &fix->err), KN_OK);
    assert_int_equal(kn_session_query(fix->ses, kn_read_sql(read), &stream, &fix->err), KN_OK);
    KN_BATCH_AUTO batch = NULL;
    assert_int_equal(kn_stream_next(stream, &batch, &fix->err), KN_OK);
    assert_int_equal(kn_batch_rows(batch), 4);
    for (size_t i = 0; i < 4; i++) {
        for (size_t c = 0; c < 3; c++) {
            KnVector vec = kn_batch_vector(batch, c);
            assert_true(kn_vector_int128(&vec, i) == values[i]);
        }
        KnVector date = kn_batch_vector(batch, 3);
        assert_true(kn_vector_int128(&date, i) == (i == 3 ? INT32_MAX : INT32_MIN + (int32_t)i));
    }
    kn_stream_close(stream);
    kn_read_close(read);
}

/* ---- resolution by id ---- */

/* clang-format off */
static const char nested_table[] =
    FIELD(9, "added", INT) ","
    FIELD(1, "st", "{\"type\":\"struct\",\"fields\":["
                   FIELD(3, "y", LONG) "," FIELD(2, "x", INT) "]}") ","
    FIELD(4, "li", "{\"type\":\"list\",\"element-id\":5,\"element-required\":false,"
                   "\"element\":\"long\"}") ","
    FIELD(10, "mp", "{\"type\":\"map\",\"key-id\":11,\"key\":\"string\",\"value-id\":12,"
                    "\"value-required\":false,\"value\":\"int\"}") ","
    FIELD(13, "mi", "{\"type\":\"map\",\"key-id\":14,\"key\":\"int\",\"value-id\":15,"
                    "\"value-required\":false,\"value\":\"string\"}");
static const char nested_file[] = AVRO(
    AVRO_FIELD(1, "was_st", OR_NULL("{\"type\":\"record\",\"name\":\"r1\",\"fields\":["
        AVRO_FIELD(2, "a", INT) "," AVRO_FIELD(3, "b", INT) "," AVRO_FIELD(7, "gone", TEXT)
        "]}")) ","
    AVRO_FIELD(4, "li", OR_NULL("{\"type\":\"array\",\"element-id\":5,\"items\":" OR_NULL(INT)
        "}")) ","
    AVRO_FIELD(10, "mp", "{\"type\":\"map\",\"key-id\":11,\"value-id\":12,\"values\":"
        OR_NULL(INT) "}") ","
    AVRO_FIELD(13, "mi", "{\"type\":\"array\",\"logicalType\":\"map\",\"items\":{\"type\":"
        "\"record\",\"name\":\"k14_v15\",\"fields\":[" AVRO_FIELD(14, "key", INT) ","
        AVRO_FIELD(15, "value", TEXT) "]}}"));
/* clang-format on */

static void put_nested(AvroFile *avro)
{
    kn_avro_put_long(avro->buf, 1); /* was_st */
    kn_avro_put_long(avro->buf, 1);
    kn_avro_put_long(avro->buf, 2);
    avro_put_text(avro, "gone");
    kn_avro_put_long(avro->buf, 1); /* li: [5, NULL] in two blocks, the second with its size */
    kn_avro_put_long(avro->buf, 1);
    avro_put_some(avro, 5);
    kn_avro_put_long(avro->buf, -1);
    kn_avro_put_long(avro->buf, 1);
    kn_avro_put_long(avro->buf, 0);
    kn_avro_put_long(avro->buf, 0);
    kn_avro_put_long(avro->buf, 1); /* mp */
    avro_put_text(avro, "k");
    avro_put_some(avro, 9);
    kn_avro_put_long(avro->buf, 0);
    kn_avro_put_long(avro->buf, 1); /* mi */
    kn_avro_put_long(avro->buf, 7);
    avro_put_text(avro, "seven");
    kn_avro_put_long(avro->buf, 0);
    avro_end_row(avro);
}

static void fields_are_found_by_id_renamed_promoted_and_dropped_at_any_depth(void **state)
{
    AvroLake *fix = *state;
    avro_table(fix, nested_table, NULL);
    AvroFile avro = avro_begin(fix, nested_file, KN_AVRO_CODEC_ZSTD);
    put_nested(&avro);
    for (int i = 0; i < 4; i++)
        kn_avro_put_long(avro.buf, 0);
    avro_end_row(&avro);
    avro_task(fix, avro_end(&avro, "nested.avro"), NULL);
    avro_expect(fix,
                "SELECT string_agg(CAST({'a': added, 's': st, 'l': li, 'm': mp, 'i': mi} AS "
                "VARCHAR), ' ' ORDER BY _pos) FROM {scan}",
                "{'a': NULL, 's': {'y': 2, 'x': 1}, 'l': [5, NULL], 'm': {k=9}, 'i': {7=seven}} "
                "{'a': NULL, 's': NULL, 'l': NULL, 'm': {}, 'i': {}}");
}

static void names_that_differ_in_case_only_are_told_apart_by_id(void **state)
{
    AvroLake *fix = *state;
    avro_table(fix, FIELD(1, "x", INT) "," FIELD(2, "y", INT) "," FIELD(3, "z", INT), NULL);
    AvroFile avro = avro_begin(
        fix,
        AVRO(AVRO_FIELD(1, "a_1", INT) "," AVRO_FIELD(2, "a", INT) "," AVRO_FIELD(3, "A", INT)),
        KN_AVRO_CODEC_NULL);
    for (int i = 1; i <= 3; i++)
        kn_avro_put_long(avro.buf, i);
    avro_end_row(&avro);
    avro_task(fix, avro_end(&avro, "case.avro"), NULL);
    avro_expect(fix, "SELECT concat_ws(' ', x, y, z) FROM {scan}", "1 2 3");
    fix->n_tasks = 0;
    avro =
        avro_begin(fix, AVRO("{\"name\":\"a\",\"type\":\"int\"},{\"name\":\"A\",\"type\":\"int\"}"),
                   KN_AVRO_CODEC_NULL);
    avro_task(fix, avro_end(&avro, "case.avro"), NULL);
    avro_expect_error(fix, KN_E_UNSUPPORTED, "case.avro", "differ in case only");
}

static void files_without_ids_use_the_name_mapping(void **state)
{
    AvroLake *fix = *state;
    static const char schema[] =
        AVRO("{\"name\":\"a\",\"type\":\"int\"},{\"name\":\"other\",\"type\":\"int\"}");
    AvroFile avro = avro_begin(fix, schema, KN_AVRO_CODEC_SNAPPY);
    kn_avro_put_long(avro.buf, 1);
    kn_avro_put_long(avro.buf, 2);
    avro_end_row(&avro);
    avro_task(fix, avro_end(&avro, "names.avro"), NULL);
    avro_table(fix, FIELD(1, "renamed", INT) "," FIELD(2, "new", INT), NULL);
    avro_expect_error(fix, KN_E_CORRUPT, "names.avro", "no field ids");
    avro_table(fix, FIELD(1, "renamed", INT) "," FIELD(2, "new", INT),
               "{\"schema.name-mapping.default\":\"[{\\\"field-id\\\":1,\\\"names\\\":[\\\"a\\\"]}"
               "]\"}");
    avro_expect(fix, "SELECT CAST({'r': renamed, 'n': new} AS VARCHAR) FROM {scan}",
                "{'r': 1, 'n': NULL}");
}

static void a_column_of_nulls_is_as_if_it_were_not_there(void **state)
{
    AvroLake *fix = *state;
    avro_table(
        fix,
        FIELD(1, "a", INT) ",{\"id\":2,\"name\":\"b\",\"required\":false,\"type\":"
                           "\"string\",\"initial-default\":\"dflt\"}," FIELD(3, "u", "\"unknown\""),
        NULL);
    AvroFile avro = avro_begin(fix,
                               AVRO(AVRO_FIELD(1, "a", INT) "," AVRO_FIELD(
                                   2, "b", "\"null\"") "," AVRO_FIELD(3, "u", "[\"null\"]")),
                               KN_AVRO_CODEC_NULL);
    kn_avro_put_long(avro.buf, 1);
    kn_avro_put_long(avro.buf, 0); /* the branch of u */
    avro_end_row(&avro);
    avro_task(fix, avro_end(&avro, "nulls.avro"), NULL);
    avro_expect(fix, "SELECT CAST({'a': a, 'b': b, 'u': u} AS VARCHAR) FROM {scan}",
                "{'a': 1, 'b': dflt, 'u': NULL}");
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, avro_setup, avro_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(every_type_is_read_exactly),
        CASE(milliseconds_and_local_timestamps_of_other_writers_are_known),
        CASE(the_extremes_of_time_stay_the_numbers_they_are),
        CASE(fields_are_found_by_id_renamed_promoted_and_dropped_at_any_depth),
        CASE(names_that_differ_in_case_only_are_told_apart_by_id),
        CASE(files_without_ids_use_the_name_mapping),
        CASE(a_column_of_nulls_is_as_if_it_were_not_there),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
