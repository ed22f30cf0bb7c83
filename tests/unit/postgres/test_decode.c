/* SPDX-License-Identifier: Apache-2.0 */
/* test_decode.c - bytes of the binary COPY as rows: what encode.c writes comes back, cut anywhere.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/arena.h"
#include "postgres/decode.h"
#include "postgres/encode.h"

typedef struct Bench {
    KnEngine *engine;
    KnSession *session;
    KnArena *arena;
    KnErr err;
} Bench;

static int set_up(void **state)
{
    Bench *b = calloc(1, sizeof(*b));
    assert_non_null(b);
    b->arena = kn_arena_new(0);
    assert_int_equal(kn_engine_open(&(KnEngineOptions){.threads = 1}, &b->engine, NULL), KN_OK);
    assert_int_equal(kn_session_open(b->engine, &b->session, NULL), KN_OK);
    *state = b;
    return 0;
}

static int tear_down(void **state)
{
    Bench *b = *state;
    kn_session_close(b->session);
    kn_engine_close(b->engine);
    kn_arena_free(b->arena);
    free(b);
    return 0;
}

static const char *const names[] = {"yes", "i",  "l",  "f", "g", "d", "da",
                                    "ti",  "ts", "tz", "s", "b", "u"};
static const char *const types[] = {
    "BOOLEAN",        "INTEGER", "BIGINT", "FLOAT",     "DOUBLE",
    "DECIMAL(38,10)", "DATE",    "TIME",   "TIMESTAMP", "TIMESTAMP WITH TIME ZONE",
    "VARCHAR",        "BLOB",    "UUID"};
enum { N = sizeof(types) / sizeof(types[0]) };

static const char make_rows[] =
    "CREATE TABLE src(yes BOOLEAN, i INTEGER, l BIGINT, f FLOAT, g DOUBLE, d DECIMAL(38,10), da "
    "DATE, ti "
    "TIME, ts TIMESTAMP, tz TIMESTAMPTZ, s VARCHAR, b BLOB, u UUID); INSERT INTO src VALUES "
    "(true, -7, 1234567890123, 1.5, '-inf', '-123.45678', '1969-12-31', '23:59:59.999999', "
    "'0001-01-01', '2026-01-31 12:00:00.000001+00', 'été', '\\x00\\xFF', "
    "'00112233-4455-6677-8899-aabbccddeeff'), (false, 2147483647, -9223372036854775808, -0.0, "
    "'nan', "
    "'9999999999999999999999999999.9999999999', '9999-12-31', '00:00:00', "
    "'9999-12-31 23:59:59.999999', '1969-12-31 23:59:59.999999+00', '', '', "
    "'ffffffff-ffff-ffff-ffff-ffffffffffff'), (NULL, NULL, NULL, NULL, NULL, '0.0000000001', NULL, "
    "NULL, "
    "NULL, NULL, NULL, NULL, NULL)";

static const KnTypeKind kinds[N] = {
    KN_TYPE_BOOLEAN, KN_TYPE_INT,    KN_TYPE_LONG, KN_TYPE_FLOAT,     KN_TYPE_DOUBLE,
    KN_TYPE_DECIMAL, KN_TYPE_DATE,   KN_TYPE_TIME, KN_TYPE_TIMESTAMP, KN_TYPE_TIMESTAMPTZ,
    KN_TYPE_STRING,  KN_TYPE_BINARY, KN_TYPE_UUID};

static KnCode encode_batch(void *arg, KnBatch *batch, KnErr *err)
{
    KnType column_types[N];
    KnField fields[N];
    KnVector vecs[N + 2];
    for (size_t i = 0; i < N; i++) {
        column_types[i] = (KnType){.kind = kinds[i], .precision = 38, .scale = 10};
        fields[i] = (KnField){.name = names[i], .type = &column_types[i]};
    }
    KnPgEncoder enc = {.fields = fields, .n_fields = N, .vecs = vecs};
    KN_TRY(kn_pg_encode_batch(&enc, batch, err));
    for (size_t row = 0; row < kn_batch_rows(batch); row++)
        KN_TRY(kn_pg_encode_row(&enc, row, arg, err));
    return KN_OK;
}

/* The rows as PostgreSQL would send them. */
static void encode_all(Bench *b, KnBuf *bytes)
{
    assert_int_equal(kn_session_exec(b->session, make_rows, NULL, &b->err), KN_OK);
    kn_pg_encode_header(bytes);
    if (kn_session_visit(b->session, "FROM src", encode_batch, bytes, &b->err) != KN_OK)
        fail_msg("%s", b->err.msg);
    kn_pg_encode_trailer(bytes);
}

static KnCode give_batch(void *arg, KnBatch **ret, KnErr *err)
{
    (void)err;
    KnBatch **left = arg;
    *ret = *left;
    *left = NULL;
    return KN_OK;
}

static int64_t differences(Bench *b, KnBatch *batch)
{
    KnFeedOptions opts = {.name = "back",
                          .column_names = names,
                          .column_types = types,
                          .n_columns = N,
                          .next = give_batch,
                          .arg = &batch};
    KnFeed *feed = NULL;
    int64_t n = -1;
    assert_int_equal(kn_feed_open(b->engine, &opts, &feed, &b->err), KN_OK);
    assert_int_equal(kn_session_exec(b->session,
                                     "CREATE OR REPLACE TABLE back AS FROM kn_feed('back')", NULL,
                                     &b->err),
                     KN_OK);
    const char *sql = "SELECT count(*) FROM ((FROM src EXCEPT ALL FROM back) UNION ALL "
                      "(FROM back EXCEPT ALL FROM src))";
    if (kn_session_query_i64(b->session, sql, &n, &b->err) != KN_OK)
        fail_msg("%s", b->err.msg);
    kn_feed_close(feed);
    return n;
}

/* Decodes what comes in pieces of step bytes. */
static KnBatch *decode_pieces(Bench *b, const KnBuf *bytes, size_t step)
{
    KnPgDecoder dec = {.names = names, .n_columns = N};
    KnBuilder *builder = NULL;
    size_t from = 0;
    assert_int_equal(kn_builder_open(b->engine, types, N, &builder, &b->err), KN_OK);
    for (size_t end = step; !dec.ended; end = end + step < bytes->len ? end + step : bytes->len) {
        size_t used = 0, to = end < bytes->len ? end : bytes->len;
        KnStr piece = {bytes->data + from, to - from};
        if (kn_pg_decode(&dec, piece, builder, &used, &b->err) != KN_OK)
            fail_msg("%s", b->err.msg);
        from += used;
    }
    assert_int_equal(from, bytes->len);
    KnBatch *batch = kn_builder_take(builder);
    (void)kn_builder_close(builder);
    return batch;
}

static void rows_come_back_wherever_they_are_cut(void **state)
{
    Bench *b = *state;
    KN_BUF_AUTO bytes = {.max = 1 << 20};
    encode_all(b, &bytes);
    static const size_t steps[] = {1, 2, 7, 64, 100000};
    for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
        KnBatch *batch = decode_pieces(b, &bytes, steps[i]);
        assert_int_equal(kn_batch_rows(batch), 3);
        assert_int_equal(differences(b, batch), 0);
    }
}

/* A value of one column in a row of one; the words of what is wrong with it, "" = nothing. */
static void decodes(Bench *b, const char *type, KnStr value, const char *words)
{
    static const char *const only[] = {"c"};
    KnPgDecoder dec = {.names = only, .n_columns = 1};
    KnBuilder *builder = NULL;
    KN_BUF_AUTO bytes = {.max = 1 << 20};
    size_t used = 0;
    kn_pg_encode_header(&bytes);
    kn_buf_append(&bytes, (char[]){0, 1, 0, 0, 0, (char)value.len}, 6);
    kn_buf_append(&bytes, value.ptr, value.len);
    assert_int_equal(kn_builder_open(b->engine, (const char *[]){type}, 1, &builder, &b->err),
                     KN_OK);
    KnCode rc = kn_pg_decode(&dec, (KnStr){bytes.data, bytes.len}, builder, &used, &b->err);
    (void)kn_builder_close(builder);
    if (!*words) {
        assert_int_equal(rc, KN_OK);
        return;
    }
    assert_int_equal(rc, KN_E_CORRUPT);
    if (!strstr(b->err.msg, words))
        fail_msg("'%s' is not in: %s", words, b->err.msg);
}

#define BYTES(...) ((KnStr){(const char[]){__VA_ARGS__}, sizeof((const char[]){__VA_ARGS__})})

static void what_no_server_would_send_is_refused(void **state)
{
    Bench *b = *state;
    decodes(b, "INTEGER", BYTES(0, 0, 0, 1), "");
    decodes(b, "INTEGER", BYTES(0, 0, 1), "column c: a value of 3 bytes");
    decodes(b, "DATE", BYTES(0x7f, -1, -1, -1), "column c: infinity");
    decodes(b, "DECIMAL(9,2)", BYTES(0, 0, 0, 0, -0x40, 0, 0, 0), "NaN or infinity");
    decodes(b, "DECIMAL(9,2)", BYTES(0, 1, 0, 2, 0, 0, 0, 0, 0x27, 0x0f), "column c");
    decodes(b, "DECIMAL(38,0)", BYTES(0, 1, 0x7f, 0, 0, 0, 0, 0, 0, 1), "cannot hold");
    decodes(b, "DECIMAL(38,0)", BYTES(0, 9, 0, 0, 0, 0, 0, 0, 0, 1), "bytes");
    decodes(b, "DECIMAL(38,0)", BYTES(0, 1, 0, 0, 0, 0, 0, 0, 0x7f, 1), "digit is 32513");
    decodes(b, "VARCHAR", BYTES('a', -1), "column c");
    KnPgDecoder dec = {.names = names, .n_columns = N};
    size_t used = 0;
    const char nothing[32] = "PGCOPX\n\377\r\n";
    assert_int_equal(kn_pg_decode(&dec, (KnStr){nothing, sizeof(nothing)}, NULL, &used, &b->err),
                     KN_E_CORRUPT);
}

static void types_that_the_engine_has_not_are_read_as_text(void **state)
{
    Bench *b = *state;
    static const struct {
        uint32_t oid;
        int32_t modifier;
        const char *sql;
        bool as_text;
    } cases[] = {
        {20, -1, "BIGINT", false},
        {1700, ((9 << 16) | 2) + 4, "DECIMAL(9,2)", false},
        {1700, -1, "VARCHAR", true},                     /* any number of digits */
        {1700, ((40 << 16) | 2) + 4, "VARCHAR", true},   /* more than the engine has */
        {1700, ((3 << 16) | 2045) + 4, "VARCHAR", true}, /* scale -3 */
        {3802, -1, "VARCHAR", true},                     /* jsonb */
        {1007, -1, "VARCHAR", true},                     /* integer[] */
        {16384, -1, "VARCHAR", true},                    /* somebody's own */
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        KnPgReadType type = kn_pg_read_type(b->arena, cases[i].oid, cases[i].modifier);
        assert_string_equal(type.sql, cases[i].sql);
        assert_int_equal(type.as_text, cases[i].as_text);
    }
}

#define CASE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(rows_come_back_wherever_they_are_cut),
        CASE(what_no_server_would_send_is_refused),
        CASE(types_that_the_engine_has_not_are_read_as_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
