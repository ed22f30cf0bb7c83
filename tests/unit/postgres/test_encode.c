/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_encode.c - bytes of the binary COPY, and places of databases.
 *
 * Numerics are decoded again by a reader written from the manual, over values at the edges and at
 * random (the seed is printed); the e2e tests ask a real server.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "engine/engine.h"
#include "postgres/encode.h"
#include "postgres/place.h"

/* ---- numerics ---- */

static int u16(const char *at)
{
    return (unsigned char)at[0] << 8 | (unsigned char)at[1];
}

/* Unscaled value of a numeric's bytes; checks that they are what the server writes itself: no zero
 * group in front or behind. */
static __int128 decode_numeric(const KnBuf *buf, int scale)
{
    int n = u16(buf->data + 4), weight = (int16_t)u16(buf->data + 6), sign = u16(buf->data + 8);
    assert_int_equal(buf->len, 12 + 2 * (size_t)n);
    assert_int_equal(u16(buf->data + 10), scale);
    unsigned __int128 value = 0;
    int pad = (4 - scale % 4) % 4, groups = (scale + pad) / 4;
    assert_true(n == 0 || u16(buf->data + 12) != 0);
    assert_true(n == 0 || u16(buf->data + 10 + 2 * (size_t)n) != 0);
    for (int i = 0; i <= weight + groups; ++i) {
        int group = i < n ? u16(buf->data + 12 + 2 * (size_t)i) : 0;
        bool last = i == weight + groups;
        assert_true(group < 10000);
        for (int p = 0; last && p < pad; ++p) {
            assert_int_equal(group % 10, 0);
            group /= 10;
        }
        value = value * (last ? (unsigned)(pad == 0   ? 10000
                                           : pad == 1 ? 1000
                                           : pad == 2 ? 100
                                                      : 10)
                              : 10000) +
                (unsigned)group;
    }
    return sign == 0x4000 ? -(__int128)value : (__int128)value;
}

static void round_trip(__int128 unscaled, int scale)
{
    KN_BUF_AUTO buf;
    kn_buf_init(&buf, 1000);
    kn_pg_encode_numeric(&buf, unscaled, scale);
    if (decode_numeric(&buf, scale) != unscaled)
        fail_msg("scale %d: a numeric came back as another", scale);
}

static void numerics_come_back_as_they_were(void **state)
{
    (void)state;
    unsigned seed = (unsigned)time(NULL);
    print_message("seed %u\n", seed);
    for (int scale = 0; scale <= 38; ++scale) {
        __int128 most = 1;
        for (int i = 0; i < 38; ++i)
            most *= 10;
        const __int128 edges[] = {0,     1,     -1,        9,        10,      9999,
                                  10000, 10001, 100000000, most - 1, 1 - most};
        for (size_t i = 0; i < sizeof(edges) / sizeof(edges[0]); ++i)
            round_trip(edges[i], scale);
        for (int i = 0; i < 500; ++i) {
            __int128 value = 0;
            for (int k = rand_r(&seed) % 38; k >= 0; --k)
                value = value * 10 + (rand_r(&seed) % 3 ? rand_r(&seed) % 10 : 0);
            round_trip(i % 2 ? value : -value, scale);
        }
    }
}

/* ---- rows ---- */

/* The bytes of the first row of a query, for a table of this schema. */
static KnCode encode(const char *schema_text, const char *sql, KnPgNanos nanos, KnBuf *out,
                     KnErr *err)
{
    KN_ARENA_AUTO arena = kn_arena_new(1024);
    KnSchema *schema = NULL;
    KnEngine *eng = NULL;
    KnSession *ses = NULL;
    KnStream *stream = NULL;
    const KnEngineOptions eopts = {.threads = 1};
    assert_int_equal(kn_schema_parse_text(arena, kn_str(schema_text), &schema, err), KN_OK);
    assert_int_equal(kn_engine_open(&eopts, &eng, err), KN_OK);
    assert_int_equal(kn_session_open(eng, &ses, err), KN_OK);
    assert_int_equal(kn_session_query(ses, sql, &stream, err), KN_OK);
    KnCode rc;
    {
        KN_BATCH_AUTO batch = NULL;
        assert_int_equal(kn_stream_next(stream, &batch, err), KN_OK);
        assert_non_null(batch);
        KnPgEncoder enc = {
            .fields = schema->root.fields,
            .n_fields = schema->root.n_fields,
            .nanos = nanos,
            .vecs = kn_arena_zalloc(arena, (schema->root.n_fields + 2) * sizeof(KnVector))};
        rc = kn_pg_encode_batch(&enc, batch, err);
        if (rc == KN_OK)
            rc = kn_pg_encode_row(&enc, 0, out, err);
    }
    stream = kn_stream_close(stream);
    ses = kn_session_close(ses);
    eng = kn_engine_close(eng);
    return rc;
}

static void gives(const char *schema, const char *sql, const char *hex)
{
    KnErr err = {0};
    char text[400] = "";
    KN_BUF_AUTO buf;
    kn_buf_init(&buf, 10000);
    if (encode(schema, sql, KN_PG_NANOS_BIGINT, &buf, &err) != KN_OK)
        fail_msg("%s: %s", sql, err.msg);
    for (size_t i = 0; i < buf.len && i < 190; ++i)
        (void)snprintf(text + 2 * i, 3, "%02x", (unsigned char)buf.data[i]);
    assert_string_equal(text, hex);
}

static void values_are_big_endian_and_count_from_2000(void **state)
{
    (void)state;
    gives("a boolean, b int, c long", "SELECT true, -2::INTEGER, NULL::BIGINT",
          "0003"
          "00000001"
          "01"
          "00000004"
          "fffffffe"
          "ffffffff");
    gives("a float, b double", "SELECT 1.5::FLOAT, -0.0::DOUBLE",
          "0002"
          "00000004"
          "3fc00000"
          "00000008"
          "8000000000000000");
    gives("a date, b timestamp", "SELECT DATE '2000-01-02', TIMESTAMP '1999-12-31 23:59:59.999999'",
          "0002"
          "00000004"
          "00000001"
          "00000008"
          "ffffffffffffffff");
    gives("a time, b string", "SELECT TIME '00:00:01', 'é'",
          "0002"
          "00000008"
          "00000000000f4240"
          "00000002"
          "c3a9");
    gives("a uuid, b binary",
          "SELECT '00112233-4455-6677-8899-aabbccddeeff'::UUID, '\\x00\\xFF'::BLOB",
          "0002"
          "00000010"
          "00112233445566778899aabbccddeeff"
          "00000002"
          "00ff");
    gives("a decimal(9,2)", "SELECT '-12345.60'::DECIMAL(9,2)",
          "0001"
          "0000000e"
          "0003"
          "0001"
          "4000"
          "0002"
          "0001"
          "0929"
          "1770");
    gives("a list<int>", "SELECT [1, NULL]::INTEGER[]",
          "0001"
          "00000009"
          "01"
          "5b312c6e756c6c5d");
    gives("a timestamp_ns", "SELECT TIMESTAMP_NS '1970-01-01 00:00:00.000000001'",
          "0001"
          "00000008"
          "0000000000000001");
}

static void is_refused(const char *schema, const char *sql, const char *part)
{
    KnErr err = {0};
    KN_BUF_AUTO buf;
    kn_buf_init(&buf, 10000);
    KnCode rc = encode(schema, sql, KN_PG_NANOS_TRUNCATE, &buf, &err);
    if (rc != KN_E_REFUSED || !strstr(err.msg, part))
        fail_msg("%s gave %s: %s", sql, kn_code_name(rc), err.msg);
}

static void what_postgresql_cannot_hold_is_refused_with_the_columns_name(void **state)
{
    (void)state;
    is_refused("a string", "SELECT 'x' || chr(0)", "column a: a text with a NUL byte");
    is_refused("a list<string>", "SELECT ['x' || chr(0)]", "column a: a text with a NUL byte");
    is_refused("a date", "SELECT DATE '5877641-06-23'", "column a: a date");
    is_refused("a date", "SELECT DATE '4714-01-01 (BC)'", "column a: a date");
    is_refused("a timestamp", "SELECT make_timestamp(-9223372022400000000 + 1)",
               "column a: a timestamp");
}

static void rows_of_other_columns_are_not_encoded(void **state)
{
    (void)state;
    KnErr err = {0};
    KN_BUF_AUTO buf;
    kn_buf_init(&buf, 10000);
    assert_int_equal(encode("a int", "SELECT 'x'", KN_PG_NANOS_TEXT, &buf, &err), KN_E_CORRUPT);
    assert_int_equal(encode("a int", "SELECT 1, 2", KN_PG_NANOS_TEXT, &buf, &err), KN_E_CORRUPT);
}

/* ---- places ---- */

static void place_is(const char *place, const char *where, KnPgNanos nanos)
{
    KN_ARENA_AUTO arena = kn_arena_new(1024);
    KnErr err = {0};
    KnPgPlace out;
    if (kn_pg_place_parse(arena, place, &out, &err) != KN_OK)
        fail_msg("%s: %s", place, err.msg);
    assert_string_equal(out.where, where);
    assert_int_equal(out.nanos, nanos);
}

static void place_fails(const char *place, const char *part)
{
    KN_ARENA_AUTO arena = kn_arena_new(1024);
    KnErr err = {0};
    KnPgPlace out;
    KnCode rc = kn_pg_place_parse(arena, place, &out, &err);
    if (rc != KN_E_INVAL || !strstr(err.msg, part) || strstr(err.msg, "hunter2"))
        fail_msg("%s gave %s: %s", place, kn_code_name(rc), err.msg);
}

static void a_place_has_no_secrets_and_one_spelling(void **state)
{
    (void)state;
    unsetenv("PGHOST");
    unsetenv("PGPORT");
    unsetenv("PGDATABASE");
    unsetenv("PGSERVICE");
    place_is("//db.example:6000/app", "postgresql://db.example:6000/app", KN_PG_NANOS_REFUSE);
    place_is("//db.example/app?sslmode=verify-full", "postgresql://db.example:5432/app",
             KN_PG_NANOS_REFUSE);
    place_is("///app?nanoseconds=text&connect_timeout=3", "postgresql://localhost:5432/app",
             KN_PG_NANOS_TEXT);
    place_is("//h/app?connect_timeout=3&nanoseconds=bigint", "postgresql://h:5432/app",
             KN_PG_NANOS_BIGINT);
    setenv("PGDATABASE", "fromenv", 1);
    place_is("//h", "postgresql://h:5432/fromenv", KN_PG_NANOS_REFUSE);
    unsetenv("PGDATABASE");
    place_fails("//h", "which database");
    place_fails("h/app", "expected postgresql://HOST:PORT/DATABASE");
    place_fails("//u:hunter2@h/app", "PGPASSWORD");
    place_fails("//h/app?password=hunter2", "option password has no place in the URL");
    place_fails("//h/app?hunter2=1", "cannot be read");
    place_fails("//h:x/app?user=hunter2", "no place in the URL");
    place_fails("//h/app?nanoseconds=some", "expected refuse, text, bigint or truncate");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numerics_come_back_as_they_were),
        cmocka_unit_test(values_are_big_endian_and_count_from_2000),
        cmocka_unit_test(what_postgresql_cannot_hold_is_refused_with_the_columns_name),
        cmocka_unit_test(rows_of_other_columns_are_not_encoded),
        cmocka_unit_test(a_place_has_no_secrets_and_one_spelling),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
