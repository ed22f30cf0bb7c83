/* SPDX-License-Identifier: Apache-2.0 */
/* test_doris_arrow.c - rows as an Arrow stream: its frames, the layout of columns, what is refused.
 * Whole streams are read back by Arrow's own library in tests/e2e/test_doris_arrow.py. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cdc/sinks/doris/doris_internal.h"
#include "engine/engine.h"

typedef struct Case {
    const char *schema, *columns, *sql, *place;
} Case;

static KnCode plan_of(KnArena *arena, const Case *c, KnDorisPlan *ret, KnErr *err)
{
    KnSchema *schema = NULL;
    KnDorisTable table;
    KnDorisSettings set;
    const char *ddl = kn_arena_printf(
        arena, "CREATE TABLE `t` (\n%s\n) ENGINE=OLAP\nDUPLICATE KEY(`a`)\n", c->columns);
    assert_int_equal(kn_schema_parse_text(arena, kn_str(c->schema), &schema, err), KN_OK);
    assert_int_equal(kn_doris_table_parse(arena, kn_str(ddl), &table, err), KN_OK);
    if (kn_doris_settings_parse(arena, c->place, &set, err) != KN_OK)
        fail_msg("%s", err->msg);
    const KnSinkWindow win = {.schema = schema};
    return kn_doris_plan(arena, &set, &table, &win, ret, err);
}

static KnCode encode(const KnDorisPlan *plan, const char *sql, KnDorisBody *body, KnErr *err)
{
    KnEngine *eng = NULL;
    KnSession *ses = NULL;
    KnStream *stream = NULL;
    const KnEngineOptions eopts = {.threads = 1};
    assert_int_equal(kn_engine_open(&eopts, &eng, err), KN_OK);
    assert_int_equal(kn_session_open(eng, &ses, err), KN_OK);
    if (kn_session_query(ses, sql, &stream, err) != KN_OK)
        fail_msg("%s", err->msg);
    KnDorisArrow *enc = kn_doris_arrow_new(plan, false, body);
    KnCode rc = KN_OK;
    for (KnBatch *batch = NULL; rc == KN_OK; batch = kn_batch_unref(batch)) {
        assert_int_equal(kn_stream_next(stream, &batch, err), KN_OK);
        if (!batch)
            break;
        rc = kn_doris_arrow_rows(enc, batch, err);
    }
    if (rc == KN_OK)
        rc = kn_doris_arrow_end(enc, err);
    enc = kn_doris_arrow_free(enc);
    stream = kn_stream_close(stream);
    ses = kn_session_close(ses);
    eng = kn_engine_close(eng);
    return rc;
}

/* All of a body, to be freed. */
static uint8_t *bytes_of(KnDorisBody *body)
{
    uint8_t *all = calloc(1, body->len + 1);
    for (uint64_t at = 0; at < body->len;) {
        size_t n = 0;
        assert_int_equal(kn_doris_body_read(body, at, all + at, body->len - at, &n, NULL), KN_OK);
        at += n;
    }
    return all;
}

static const Case PLAIN = {"a int, b string", "  `a` bigint NULL,\n  `b` text NULL",
                           "SELECT 258::INT AS a, 'xyz' AS b", "http://fe:8030?format=arrow"};

static void a_stream_is_framed_messages_and_an_end(void **state)
{
    (void)state;
    KN_ARENA_AUTO arena = kn_arena_new(4096);
    KnErr err = {0};
    KnDorisPlan plan;
    KnDorisBody body;
    kn_doris_body_init(&body, "/tmp");
    assert_int_equal(plan_of(arena, &PLAIN, &plan, &err), KN_OK);
    assert_int_equal(encode(&plan, PLAIN.sql, &body, &err), KN_OK);
    assert_int_equal(body.len % 8, 0);
    uint8_t *all = bytes_of(&body);
    uint32_t word[2];
    size_t at = 0, sizes[2] = {0};
    for (int i = 0; i < 2; ++i) {
        memcpy(word, all + at, 8);
        assert_int_equal(word[0], UINT32_MAX);
        assert_int_equal(word[1] % 8, 0);
        sizes[i] = word[1];
        at += 8 + word[1];
    }
    /* The batch's body: a widened to 8 bytes; two offsets of b; its text; each padded to 8. */
    static const uint8_t rows[24] = {2, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 'x', 'y', 'z'};
    assert_memory_equal(all + at, rows, 24);
    memcpy(word, all + at + 24, 8);
    assert_int_equal(word[0], UINT32_MAX);
    assert_int_equal(word[1], 0);
    assert_int_equal(body.len, 8 + sizes[0] + 8 + sizes[1] + 24 + 8);
    free(all);
    kn_doris_body_done(&body);
}

static void no_rows_are_a_schema_and_an_end(void **state)
{
    (void)state;
    KN_ARENA_AUTO arena = kn_arena_new(4096);
    KnErr err = {0};
    KnDorisPlan plan;
    KnDorisBody body;
    kn_doris_body_init(&body, "/tmp");
    assert_int_equal(plan_of(arena, &PLAIN, &plan, &err), KN_OK);
    assert_int_equal(encode(&plan, "SELECT 1::INT AS a, 'x' AS b LIMIT 0", &body, &err), KN_OK);
    uint8_t *all = bytes_of(&body);
    uint32_t word[2];
    memcpy(word, all, 8);
    assert_int_equal(body.len, 8 + word[1] + 8);
    free(all);
    kn_doris_body_done(&body);
}

static void bytes_go_as_they_are_and_need_no_expression(void **state)
{
    (void)state;
    KN_ARENA_AUTO arena = kn_arena_new(4096);
    KnErr err = {0};
    KnDorisPlan plan;
    const Case c = {"a int, b binary", "  `a` int NULL,\n  `b` text NULL", NULL, PLAIN.place};
    assert_int_equal(plan_of(arena, &c, &plan, &err), KN_OK);
    assert_string_equal(plan.columns, "`a`,`b`");
}

static void what_doris_would_misread_is_not_planned(void **state)
{
    (void)state;
    static const struct {
        Case c;
        const char *words;
    } cases[] = {
        {{"a int, b int", "  `a` int NULL,\n  `B` int NULL", NULL, "http://f?format=arrow"},
         "column b: cannot be sent as Arrow (a name with capitals"},
        {{"a int, b timestamp", "  `a` int NULL,\n  `b` datetime(6) NULL", NULL,
          "http://f?format=arrow"},
         "say arrow-zone=8 or arrow-zone=0"},
        {{"a int, b decimal(9,2)", "  `a` int NULL,\n  `b` decimal(39,2) NULL", NULL,
          "http://f?format=arrow"},
         "more than 38 digits"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i) {
        KN_ARENA_AUTO arena = kn_arena_new(4096);
        KnErr err = {0};
        KnDorisPlan plan;
        assert_int_equal(plan_of(arena, &cases[i].c, &plan, &err), KN_E_REFUSED);
        assert_non_null(strstr(err.msg, cases[i].words));
        assert_non_null(strstr(err.msg, "format=json"));
    }
}

static void a_value_that_the_target_cannot_hold_is_refused(void **state)
{
    (void)state;
    static const struct {
        Case c;
        const char *words;
    } cases[] = {
        {{"a int, b string", "  `a` int NULL,\n  `b` varchar(3) NULL", "SELECT 1, 'abcd'",
          "http://f?format=arrow"},
         "column b: a text of 4 bytes, the target has varchar(3)"},
        {{"a int required, b string", "  `a` int NOT NULL,\n  `b` text NULL",
          "SELECT NULL::INT, 'a'", "http://f?format=arrow"},
         "column a: NULL, the target has NOT NULL"},
        {{"a int, b timestamp", "  `a` int NULL,\n  `b` datetime(6) NULL",
          "SELECT 1, TIMESTAMP '1970-01-01 07:59:59.999999'", "http://f?format=arrow&arrow-zone=8"},
         "column b: a time before 1970"},
        {{"a int, b date", "  `a` int NULL,\n  `b` date NULL", "SELECT 1, DATE '10000-01-01'",
          "http://f?format=arrow"},
         "column b: a date outside of the years 0 to 9999"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i) {
        KN_ARENA_AUTO arena = kn_arena_new(4096);
        KnErr err = {0};
        KnDorisPlan plan;
        KnDorisBody body;
        kn_doris_body_init(&body, "/tmp");
        assert_int_equal(plan_of(arena, &cases[i].c, &plan, &err), KN_OK);
        assert_int_equal(encode(&plan, cases[i].c.sql, &body, &err), KN_E_REFUSED);
        if (!strstr(err.msg, cases[i].words))
            fail_msg("'%s' is not in '%s'", cases[i].words, err.msg);
        kn_doris_body_done(&body);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_stream_is_framed_messages_and_an_end),
        cmocka_unit_test(no_rows_are_a_schema_and_an_end),
        cmocka_unit_test(bytes_go_as_they_are_and_need_no_expression),
        cmocka_unit_test(what_doris_would_misread_is_not_planned),
        cmocka_unit_test(a_value_that_the_target_cannot_hold_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
