/* SPDX-License-Identifier: Apache-2.0 */
/* test_null.c - the null sink sees what is wrong with a chunk, by a scripted source of rows. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "cdc/sink.h"
#include "engine/engine.h"

typedef struct Rows {
    KnEngine *eng;
    KnSession *ses;
    KnStream *stream;
} Rows;

static KnCode next_rows(void *arg, KnBatch **ret, KnErr *err)
{
    Rows *rows = arg;
    return kn_stream_next(rows->stream, ret, err);
}

/* What the sink says to the rows of a query, for a table (id long, s string). */
static KnCode load(const char *sql, int64_t planned, bool positions, KnVerdict *ret, KnErr *err)
{
    KN_ARENA_AUTO arena = kn_arena_new(1024);
    KnSchema *schema = NULL;
    KnSink *sink = NULL;
    Rows rows = {0};
    const KnEngineOptions eopts = {.threads = 1};
    const KnSinkOptions opts = {.place = "", .target = "t", .delivery = "d"};
    assert_int_equal(kn_schema_parse_text(arena, kn_str("id long, s string"), &schema, err), KN_OK);
    assert_int_equal(kn_engine_open(&eopts, &rows.eng, err), KN_OK);
    assert_int_equal(kn_session_open(rows.eng, &rows.ses, err), KN_OK);
    assert_int_equal(kn_session_query(rows.ses, sql, &rows.stream, err), KN_OK);
    assert_int_equal(kn_sink_null.open(&opts, &sink, err), KN_OK);
    const KnSinkWindow win = {.id = "w", .first = true, .schema = schema};
    assert_int_equal(kn_sink_probe(sink, &win, err), KN_OK);
    assert_int_equal(kn_sink_begin(sink, &win, err), KN_OK);
    const KnSinkChunk chunk = {.label = "l", .op = KN_CHUNK_INSERT, .rows = planned};
    const KnRowSource source = {.next = next_rows, .arg = &rows, .positions = positions};
    KnCode rc = kn_sink_load(sink, &chunk, &source, ret, err);
    sink = kn_sink_close(sink);
    rows.stream = kn_stream_close(rows.stream);
    rows.ses = kn_session_close(rows.ses);
    rows.eng = kn_engine_close(rows.eng);
    return rc;
}

static void refused(const char *sql, int64_t planned, bool positions, const char *part)
{
    KnErr err = {0};
    KnVerdict verdict = {.kind = KN_VERDICT_LOADED};
    KnCode rc = load(sql, planned, positions, &verdict, &err);
    if (rc != KN_E_CORRUPT || !strstr(err.msg, part))
        fail_msg("gave %s: %s", kn_code_name(rc), err.msg);
    assert_int_equal(verdict.kind, KN_VERDICT_FAILED);
}

static void rows_as_planned_are_loaded(void **state)
{
    (void)state;
    KnErr err = {0};
    KnVerdict verdict = {0};
    assert_int_equal(load("SELECT range, 'x' FROM range(5000)", 5000, false, &verdict, &err),
                     KN_OK);
    assert_int_equal(verdict.kind, KN_VERDICT_LOADED);
    assert_int_equal(verdict.rows, 5000);
    assert_int_equal(load("SELECT range, 'x', range // 1000, range % 1000 FROM range(5000)", 5000,
                          true, &verdict, &err),
                     KN_OK);
}

static void too_few_and_too_many_rows_are_seen(void **state)
{
    (void)state;
    refused("SELECT range, 'x' FROM range(4999)", 5000, false, "4999 rows came, 5000 were planned");
    refused("SELECT range, 'x' FROM range(5001)", 5000, false, "5001 rows came, 5000 were planned");
}

static void other_columns_are_seen(void **state)
{
    (void)state;
    refused("SELECT range FROM range(5)", 5, false, "1 columns, not 2");
    refused("SELECT range, range FROM range(5)", 5, false, "column 1 has another type");
}

static void rows_out_of_order_are_seen(void **state)
{
    (void)state;
    refused("SELECT range, 'x', 0::BIGINT, 5 - range FROM range(5)", 5, true, "out of order");
    refused("SELECT range, 'x', 0::BIGINT, 1::BIGINT FROM range(5)", 5, true, "out of order");
    refused("SELECT range, 'x', 5 - range, range FROM range(5)", 5, true, "out of order");
}

static void unknown_sinks_and_targets_are_named(void **state)
{
    (void)state;
    KN_ARENA_AUTO arena = kn_arena_new(256);
    const KnSinkOps *ops;
    const char *place, *schema, *table;
    KnErr err = {0};
    assert_int_equal(kn_sink_find("duckdb:/a:b", &ops, &place, &err), KN_OK);
    assert_string_equal(place, "/a:b");
    assert_int_equal(kn_sink_find("null", &ops, &place, &err), KN_E_INVAL);
    assert_int_equal(kn_sink_find("sqlite:x", &ops, &place, &err), KN_E_INVAL);
    assert_non_null(strstr(err.msg, "doris:, duckdb:, null:"));
    assert_int_equal(kn_sink_target_parse(arena, "t", &schema, &table, &err), KN_OK);
    assert_string_equal(schema, "main");
    assert_int_equal(kn_sink_target_parse(arena, "\"a.\"\"b\".\"c d\"", &schema, &table, &err),
                     KN_OK);
    assert_string_equal(schema, "a.\"b");
    assert_string_equal(table, "c d");
    static const char *const BAD[] = {"", ".", "a.", ".a", "a.b.c", "\"a", "a\"b\"", "\"\""};
    for (size_t i = 0; i < sizeof(BAD) / sizeof(BAD[0]); ++i)
        if (kn_sink_target_parse(arena, BAD[i], &schema, &table, &err) != KN_E_INVAL)
            fail_msg("target '%s' was taken", BAD[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_as_planned_are_loaded),
        cmocka_unit_test(too_few_and_too_many_rows_are_seen),
        cmocka_unit_test(other_columns_are_seen),
        cmocka_unit_test(rows_out_of_order_are_seen),
        cmocka_unit_test(unknown_sinks_and_targets_are_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
