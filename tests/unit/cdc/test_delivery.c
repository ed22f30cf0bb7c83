/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_delivery.c - windows from a real table into a real DuckDB file: what arrives, what is
 * refused, what a failure at any point leaves. labels: threads
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fault.h"
#include "base/random.h"
#include "support/tempdir.h"
#include "unit/cdc/ferry.h"

static const LakeTable PLAIN = {.schema = "id long, name string, d double"};
static const LakeTable KEYED = {.schema = "id long required, name string, d double"};

#define ROWS(from, to)                                                                             \
    "SELECT range AS id, 'n' || range AS name, range / 4 AS d FROM range(" #from ", " #to ")"

/* ---- what arrives ---- */

static void an_empty_table_delivers_nothing_and_makes_no_file(void **state)
{
    (void)state;
    Ferry fy;
    ferry_open(&fy, &PLAIN);
    assert_int_equal(ferry_round(&fy)->status, KN_DELIVERY_IDLE);
    assert_int_equal(access(fy.dest, F_OK), -1);
    ferry_close(&fy);
}

static void the_first_window_holds_the_live_rows_and_later_ones_what_changed(void **state)
{
    (void)state;
    Ferry fy;
    ferry_open(&fy, &PLAIN);
    lake_append(&fy.lake, ROWS(0, 100));
    lake_delete(&fy.lake, "id < 10");
    const KnDeliveryReport *report = ferry_round(&fy);
    assert_int_equal(report->n_windows, 1);
    assert_int_equal(report->from, -1);
    assert_string_equal(report->windows[0].operation, "initial");
    assert_int_equal(report->windows[0].upserts, 90);
    ferry_same_rows(&fy);
    lake_append(&fy.lake, ROWS(100, 105));
    lake_delete(&fy.lake, "id = 50");
    lake_overwrite(&fy.lake, "id = 60", "SELECT 60 AS id, 'new' AS name, 'nan'::DOUBLE AS d");
    report = ferry_round(&fy);
    assert_int_equal(report->n_windows, 3);
    assert_int_equal(report->windows[0].upserts, 5);
    assert_int_equal(report->windows[0].deletes, 0);
    assert_int_equal(report->windows[1].upserts, 0);
    assert_int_equal(report->windows[1].deletes, 1);
    assert_int_equal(report->windows[2].upserts, 1);
    assert_int_equal(report->windows[2].deletes, 1);
    assert_int_equal(report->to, fy.lake.tbl->md->current_snapshot_id);
    ferry_same_rows(&fy);
    assert_int_equal(ferry_round(&fy)->status, KN_DELIVERY_IDLE);
    ferry_close(&fy);
}

static void equal_rows_are_counted_not_merged(void **state)
{
    (void)state;
    Ferry fy;
    ferry_open(&fy, &(LakeTable){.schema = "a int, d double, l list<int>, m map<string, int>"});
    lake_append(&fy.lake,
                "SELECT * FROM (VALUES (1, 'nan'::DOUBLE, [1, NULL], MAP {'a': 1, 'b': 2}), "
                "(1, 'nan'::DOUBLE, [1, NULL], MAP {'a': 1, 'b': 2}), "
                "(1, 'nan'::DOUBLE, [1, NULL], MAP {'a': 1, 'b': 2}), "
                "(NULL, NULL, NULL, NULL), (NULL, NULL, NULL, NULL), (2, 0.0, [], MAP {}), "
                "(2, -0.0, [], MAP {})) v(a, d, l, m)");
    ferry_round(&fy);
    ferry_same_rows(&fy);
    lake_overwrite(&fy.lake, "a = 1 OR a IS NULL",
                   "SELECT * FROM (VALUES (1, 'nan'::DOUBLE, [1, NULL], MAP {'a': 1, 'b': 2}), "
                   "(NULL, NULL, NULL, NULL)) v(a, d, l, m)");
    const KnDeliveryReport *report = ferry_round(&fy);
    assert_int_equal(report->windows[0].deletes, 3);
    assert_int_equal(report->windows[0].upserts, 0);
    ferry_same_rows(&fy);
    ferry_close(&fy);
}

static void an_upsert_by_key_keeps_the_last_row_of_a_key(void **state)
{
    (void)state;
    Ferry fy;
    ferry_open(&fy, &KEYED);
    static const char *const keys[] = {"id"};
    fy.opts.keys = keys;
    fy.opts.n_keys = 1;
    ferry_restart(&fy);
    lake_append(
        &fy.lake,
        "SELECT * FROM (VALUES (1, 'a', 0.0), (2, 'b', 0.0), (1, 'c', 0.0)) v(id, name, d)");
    ferry_round(&fy);
    assert_string_equal(ferry_text(&fy, "SELECT string_agg(id || name, ' ' ORDER BY id) FROM t"),
                        "1c 2b");
    lake_append(
        &fy.lake,
        "SELECT * FROM (VALUES (2, 'x', 0.0), (3, 'y', 0.0), (2, 'z', 0.0)) v(id, name, d)");
    ferry_round(&fy);
    assert_string_equal(ferry_text(&fy, "SELECT string_agg(id || name, ' ' ORDER BY id) FROM t"),
                        "1c 2z 3y");
    lake_overwrite(&fy.lake, "id = 3", "SELECT 3 AS id, 'w' AS name, 1.0 AS d");
    const KnDeliveryReport *report = ferry_round(&fy);
    assert_int_equal(report->windows[0].upserts, 1);
    assert_int_equal(report->windows[0].deletes, 0);
    lake_delete(&fy.lake, "id = 1");
    ferry_round(&fy);
    assert_string_equal(ferry_text(&fy, "SELECT string_agg(id || name, ' ' ORDER BY id) FROM t"),
                        "2z 3w");
    ferry_close(&fy);
}

static void a_window_of_many_chunks_arrives_whole(void **state)
{
    (void)state;
    Ferry fy;
    ferry_open(&fy, &PLAIN);
    fy.opts.chunk_bytes = 4096;
    ferry_restart(&fy);
    lake_append(&fy.lake, ROWS(0, 9000));
    lake_append(&fy.lake, ROWS(9000, 9010));
    const KnDeliveryReport *report = ferry_round(&fy);
    assert_true(report->windows[0].chunks > 3);
    assert_int_equal(report->windows[0].upserts, 9010);
    ferry_same_rows(&fy);
    lake_delete(&fy.lake, "id >= 100 AND id < 8000");
    report = ferry_round(&fy);
    assert_true(report->windows[0].chunks > 3);
    assert_int_equal(report->windows[0].deletes, 7900);
    ferry_same_rows(&fy);
    ferry_close(&fy);
}

static void the_null_sink_takes_many_loads_at_once(void **state)
{
    (void)state;
    Ferry fy;
    ferry_open(&fy, &PLAIN);
    fy.opts.sink = "null:";
    fy.opts.chunk_bytes = 4096;
    fy.opts.parallel_loads = 4;
    ferry_restart(&fy);
    lake_append(&fy.lake, ROWS(0, 9000));
    assert_int_equal(ferry_round(&fy)->windows[0].upserts, 9000);
    lake_delete(&fy.lake, "id < 1000");
    assert_int_equal(ferry_round(&fy)->windows[0].deletes, 1000);
    ferry_close(&fy);
}

static void a_bound_on_windows_leaves_the_rest_for_the_next_round(void **state)
{
    (void)state;
    Ferry fy;
    ferry_open(&fy, &PLAIN);
    fy.opts.max_windows = 2;
    ferry_restart(&fy);
    lake_append(&fy.lake, ROWS(0, 1));
    ferry_round(&fy);
    for (int i = 0; i < 3; ++i)
        lake_append(&fy.lake, ROWS(1, 2));
    const KnDeliveryReport *report = ferry_round(&fy);
    assert_int_equal(report->n_windows, 2);
    assert_int_equal(report->windows_left, 1);
    assert_int_equal(ferry_round(&fy)->n_windows, 1);
    ferry_same_rows(&fy);
    ferry_close(&fy);
}

static bool stop_now(void *arg)
{
    return --*(int *)arg <= 0;
}

static void a_stop_is_heard_between_windows(void **state)
{
    (void)state;
    Ferry fy;
    int left = 3;
    ferry_open(&fy, &PLAIN);
    lake_append(&fy.lake, ROWS(0, 1));
    ferry_round(&fy);
    for (int i = 0; i < 4; ++i)
        lake_append(&fy.lake, ROWS(1, 2));
    fy.opts.stop = stop_now;
    fy.opts.stop_arg = &left;
    ferry_restart(&fy);
    assert_int_equal(ferry_round(&fy)->n_windows, 2);
    ferry_close(&fy);
}

/* ---- what is refused ---- */

static void append_mode_refuses_a_delete_before_anything_is_loaded(void **state)
{
    (void)state;
    Ferry fy;
    ferry_open(&fy, &PLAIN);
    fy.opts.mode = KN_SINK_APPEND;
    ferry_restart(&fy);
    lake_append(&fy.lake, ROWS(0, 10));
    ferry_round(&fy);
    lake_overwrite(&fy.lake, "id = 1", ROWS(20, 30));
    ferry_round_fails(&fy, KN_E_REFUSED, "use --mode upsert");
    assert_string_equal(ferry_text(&fy, "SELECT count(*) FROM t"), "10");
    fy.opts.mode = KN_SINK_UPSERT;
    ferry_restart(&fy);
    ferry_round(&fy);
    ferry_same_rows(&fy);
    ferry_close(&fy);
}

static void a_dear_rewrite_is_refused_until_allowed_and_nothing_is_read(void **state)
{
    (void)state;
    Ferry fy;
    ferry_open(&fy, &PLAIN);
    lake_append(&fy.lake, ROWS(0, 1000));
    ferry_round(&fy);
    int64_t cursor = kn_delivery_report(fy.dlv)->to;
    lake_delete(&fy.lake, "id = 1");
    fy.opts.max_rewrite_bytes = 100;
    ferry_restart(&fy);
    ferry_round_fails(&fy, KN_E_REFUSED, "--max-rewrite-bytes");
    assert_int_equal(kn_delivery_report(fy.dlv)->to, cursor);
    fy.opts.max_rewrite_bytes = 0;
    ferry_restart(&fy);
    ferry_round(&fy);
    ferry_same_rows(&fy);
    ferry_close(&fy);
}

static void a_target_with_rows_of_others_is_refused_and_left_alone(void **state)
{
    (void)state;
    Ferry fy;
    ferry_open(&fy, &PLAIN);
    lake_append(&fy.lake, ROWS(0, 10));
    ferry_exec(
        &fy, "CREATE TABLE t(id BIGINT, name VARCHAR, d DOUBLE); INSERT INTO t VALUES (7, 'x', 0)");
    ferry_round_fails(&fy, KN_E_REFUSED, "rows that this delivery did not load");
    assert_string_equal(ferry_text(&fy, "SELECT count(*) FROM t"), "1");
    ferry_exec(&fy, "DELETE FROM t");
    ferry_round(&fy);
    ferry_same_rows(&fy);
    ferry_close(&fy);
}

static void a_target_of_other_columns_is_refused_with_the_differences(void **state)
{
    (void)state;
    Ferry fy;
    ferry_open(&fy, &PLAIN);
    lake_append(&fy.lake, ROWS(0, 10));
    ferry_exec(&fy, "CREATE TABLE t(id VARCHAR, name VARCHAR)");
    ferry_round_fails(&fy, KN_E_REFUSED, "column id: BIGINT in the source, VARCHAR in the target");
    ferry_round_fails(&fy, KN_E_REFUSED, "column d: DOUBLE in the source, absent in the target");
    ferry_exec(&fy, "DROP TABLE t");
    ferry_round(&fy);
    ferry_same_rows(&fy);
    ferry_close(&fy);
}

static void a_destination_that_lost_its_rows_is_refused_until_reload(void **state)
{
    (void)state;
    Ferry fy;
    ferry_open(&fy, &PLAIN);
    lake_append(&fy.lake, ROWS(0, 10));
    ferry_round(&fy);
    assert_int_equal(unlink(fy.dest), 0);
    lake_append(&fy.lake, ROWS(10, 20));
    ferry_round_fails(&fy, KN_E_REFUSED, "knut cdc reload");
    ferry_round_fails(&fy, KN_E_REFUSED, "knut cdc reload");
    lake_ok(&fy.lake, kn_delivery_reload(fy.dlv, &fy.lake.err));
    ferry_round(&fy);
    ferry_same_rows(&fy);
    ferry_close(&fy);
}

static void a_lost_journal_does_not_load_twice(void **state)
{
    (void)state;
    Ferry fy;
    ferry_open(&fy, &PLAIN);
    lake_append(&fy.lake, ROWS(0, 10));
    ferry_round(&fy);
    lake_append(&fy.lake, ROWS(10, 20));
    ferry_round(&fy);
    assert_int_equal(unlink(fy.state), 0);
    ferry_restart(&fy);
    ferry_round_fails(&fy, KN_E_REFUSED, "rows that this delivery did not load");
    ferry_same_rows(&fy);
    ferry_close(&fy);
}

static void a_journal_older_than_the_destination_is_refused(void **state)
{
    (void)state;
    Ferry fy;
    char copy[400], command[1024];
    ferry_open(&fy, &PLAIN);
    lake_append(&fy.lake, ROWS(0, 10));
    ferry_round(&fy);
    (void)snprintf(copy, sizeof(copy), "%s.old", fy.state);
    (void)snprintf(command, sizeof(command), "cp '%s' '%s'", fy.state, copy);
    assert_int_equal(system(command), 0); /* NOLINT(cert-env33-c) */
    lake_append(&fy.lake, ROWS(10, 20));
    ferry_round(&fy);
    lake_append(&fy.lake, ROWS(20, 30));
    ferry_round(&fy);
    assert_int_equal(rename(copy, fy.state), 0);
    ferry_restart(&fy);
    ferry_round_fails(&fy, KN_E_REFUSED, "does not know of");
    ferry_same_rows(&fy);
    ferry_close(&fy);
}

static void two_deliveries_cannot_fill_one_target(void **state)
{
    (void)state;
    Ferry fy;
    KnDelivery *other = NULL;
    ferry_open(&fy, &PLAIN);
    lake_append(&fy.lake, ROWS(0, 10));
    ferry_round(&fy);
    KnDeliveryOptions opts = fy.opts;
    char name[320];
    (void)snprintf(name, sizeof(name), "%s/./dest.duckdb", fy.lake.dir);
    opts.target = "main.T";
    lake_ok(&fy.lake, kn_delivery_open(fy.lake.tbl, fy.jn, &opts, &other, &fy.lake.err));
    lake_fails(&fy.lake, kn_delivery_round(other, &fy.lake.err), KN_E_REFUSED, "did not load");
    other = kn_delivery_close(other);
    ferry_same_rows(&fy);
    ferry_close(&fy);
}

static void a_reload_clears_the_target_and_loads_anew(void **state)
{
    (void)state;
    Ferry fy;
    ferry_open(&fy, &PLAIN);
    lake_append(&fy.lake, ROWS(0, 10));
    ferry_round(&fy);
    ferry_exec(&fy, "UPDATE t SET name = 'spoiled'");
    lake_ok(&fy.lake, kn_delivery_reload(fy.dlv, &fy.lake.err));
    const KnDeliveryReport *report = ferry_round(&fy);
    assert_int_equal(report->n_windows, 1);
    assert_int_equal(report->windows[0].duplicates, 0);
    assert_int_equal(report->windows[0].upserts, 10);
    ferry_same_rows(&fy);
    ferry_close(&fy);
}

static void a_missing_row_to_delete_holds_the_window(void **state)
{
    (void)state;
    Ferry fy;
    ferry_open(&fy, &PLAIN);
    lake_append(&fy.lake, ROWS(0, 10));
    ferry_round(&fy);
    int64_t cursor = kn_delivery_report(fy.dlv)->to;
    ferry_exec(&fy, "DELETE FROM t WHERE id = 3");
    lake_delete(&fy.lake, "id < 5");
    ferry_round_fails(&fy, KN_E_CORRUPT, "of 5 rows to delete only 4 are there");
    assert_int_equal(kn_delivery_report(fy.dlv)->to, cursor);
    assert_string_equal(ferry_text(&fy, "SELECT count(*) FROM t"), "9");
    ferry_close(&fy);
}

static void unusable_destinations_are_named_and_left_alone(void **state)
{
    (void)state;
    Ferry fy;
    KnDelivery *other = NULL;
    ferry_open(&fy, &PLAIN);
    lake_append(&fy.lake, ROWS(0, 10));
    FILE *file = fopen(fy.dest, "wb");
    assert_non_null(file);
    assert_true(fputs("not a database at all, just some text that is long enough", file) >= 0);
    assert_int_equal(fclose(file), 0);
    assert_int_not_equal(kn_delivery_round(fy.dlv, &fy.err), KN_OK);
    assert_non_null(strstr(fy.err.msg, fy.dest));
    struct stat st;
    assert_int_equal(stat(fy.dest, &st), 0);
    assert_int_equal(st.st_size, 57);
    KnDeliveryOptions opts = fy.opts;
    opts.sink = "duckdb:/no/such/folder/d.duckdb";
    lake_fails(&fy.lake, kn_delivery_open(fy.lake.tbl, fy.jn, &opts, &other, &fy.lake.err),
               KN_E_NOTFOUND, "/no/such/folder");
    opts.sink = "oracle:x";
    lake_fails(&fy.lake, kn_delivery_open(fy.lake.tbl, fy.jn, &opts, &other, &fy.lake.err),
               KN_E_INVAL, "duckdb:, null:");
    ferry_close(&fy);
}

/* ---- failures on the way; test_delivery_faults.c has every point ---- */

static void an_answer_that_was_lost_is_asked_for(void **state)
{
    (void)state;
    Ferry fy;
    ferry_open(&fy, &PLAIN);
    lake_append(&fy.lake, ROWS(0, 10));
    assert_int_equal(kn_fault_set("sink-after-commit:1:fail", NULL, NULL), KN_OK);
    const KnDeliveryReport *report = ferry_round(&fy); /* committed, then no answer */
    assert_int_equal(kn_fault_set(NULL, NULL, NULL), KN_OK);
    assert_int_equal(report->windows[0].duplicates, 0);
    ferry_same_rows(&fy);
    ferry_close(&fy);
}

static void a_chunk_that_had_arrived_counts_as_duplicate(void **state)
{
    (void)state;
    Ferry fy;
    ferry_open(&fy, &PLAIN);
    lake_append(&fy.lake, ROWS(0, 10));
    assert_int_equal(kn_fault_set("journal-proven:1:fail", NULL, NULL), KN_OK);
    assert_int_not_equal(kn_delivery_round(fy.dlv, &fy.err), KN_OK);
    assert_int_equal(kn_fault_set(NULL, NULL, NULL), KN_OK);
    ferry_restart(&fy);
    assert_int_equal(ferry_round(&fy)->windows[0].duplicates, 1);
    ferry_same_rows(&fy);
    ferry_close(&fy);
}

static void a_window_in_flight_survives_a_table_that_moves_on(void **state)
{
    (void)state;
    Ferry fy;
    ferry_open(&fy, &PLAIN);
    fy.opts.chunk_bytes = 8192;
    ferry_restart(&fy);
    lake_append(&fy.lake, ROWS(0, 20000));
    assert_int_equal(kn_fault_set("sink-before-commit:2:fail", NULL, NULL), KN_OK);
    assert_int_not_equal(kn_delivery_round(fy.dlv, &fy.err), KN_OK);
    assert_int_equal(kn_fault_set(NULL, NULL, NULL), KN_OK);
    lake_delete(&fy.lake, "id < 15000");
    fy.opts.chunk_bytes = 64 << 20;
    ferry_restart(&fy);
    const KnDeliveryReport *report = ferry_round(&fy);
    assert_int_equal(report->n_windows, 2);
    assert_int_equal(report->windows[0].upserts, 20000);
    assert_int_equal(report->windows[1].deletes, 15000);
    ferry_same_rows(&fy);
    ferry_close(&fy);
}

static void the_cursor_does_not_move_when_somebody_else_moved_it(void **state)
{
    (void)state;
    Ferry fy;
    ferry_open(&fy, &PLAIN);
    lake_append(&fy.lake, ROWS(0, 10));
    assert_int_equal(kn_fault_set("before-cursor:1:fail", NULL, NULL), KN_OK);
    assert_int_not_equal(kn_delivery_round(fy.dlv, &fy.err), KN_OK);
    assert_int_equal(kn_fault_set(NULL, NULL, NULL), KN_OK);
    /* The window is proven whole; a reload in between makes its ack worthless. */
    KN_ARENA_AUTO arena = kn_arena_new(1024);
    KnDeliveryLag lag;
    lake_ok(&fy.lake, kn_delivery_lag(fy.dlv, 5, arena, &lag, &fy.lake.err));
    assert_non_null(lag.open);
    assert_int_equal(lag.open->chunks[0].state, KN_CHUNK_PROVEN);
    assert_int_equal(lag.row.cursor, -1);
    lake_ok(&fy.lake, kn_delivery_reload(fy.dlv, &fy.lake.err));
    assert_int_equal(ferry_round(&fy)->windows[0].duplicates, 0);
    ferry_same_rows(&fy);
    ferry_close(&fy);
}

/* ---- looking ---- */

static void check_and_lag_tell_what_waits_without_touching_anything(void **state)
{
    (void)state;
    Ferry fy;
    KN_ARENA_AUTO arena = kn_arena_new(4096);
    KnDeliveryCheck check;
    KnDeliveryLag lag;
    ferry_open(&fy, &PLAIN);
    lake_append(&fy.lake, ROWS(0, 100));
    ferry_round(&fy);
    lake_append(&fy.lake, ROWS(100, 110));
    lake_delete(&fy.lake, "id = 1");
    fy.opts.max_rewrite_bytes = 10;
    ferry_restart(&fy);
    lake_ok(&fy.lake, kn_delivery_check(fy.dlv, 0, arena, &check, &fy.lake.err));
    assert_int_equal(check.n_windows, 2);
    assert_string_equal(check.windows[0].kind, "direct");
    assert_int_equal(check.windows[0].upserts, 10);
    assert_int_equal(check.windows[0].chunks, 1);
    assert_string_equal(check.windows[1].kind, "computed");
    assert_true(check.windows[1].refused);
    assert_int_equal(check.code, KN_E_REFUSED);
    lake_ok(&fy.lake, kn_delivery_lag(fy.dlv, 10, arena, &lag, &fy.lake.err));
    assert_int_equal(lag.snapshots, 2);
    assert_int_equal(lag.head, fy.lake.tbl->md->current_snapshot_id);
    assert_int_equal(lag.n_history, 1);
    assert_int_equal(lag.history[0].upserts, 100);
    assert_null(lag.open);
    assert_string_equal(ferry_text(&fy, "SELECT count(*) FROM t"), "100");
    ferry_close(&fy);
}

static void the_report_has_the_documented_json(void **state)
{
    (void)state;
    const KnWindowReport win = {.from = -1,
                                .to = 42,
                                .operation = "initial",
                                .upserts = 3,
                                .chunks = 1,
                                .bytes = 10,
                                .seconds = 0.25};
    const KnDeliveryReport report = {.table = "ns.\"t\"",
                                     .sink = "null:",
                                     .target = "main.t",
                                     .from = -1,
                                     .to = 42,
                                     .n_windows = 1,
                                     .windows = &win,
                                     .status = KN_DELIVERY_OK,
                                     .message = ""};
    const KnDeliveryReport *reports[] = {&report};
    KN_BUF_AUTO out;
    kn_buf_init(&out, 4096);
    kn_delivery_reports_json(reports, 1, &out);
    assert_string_equal(
        out.data,
        "{\"deliveries\":[{\"table\":\"ns.\\\"t\\\"\",\"sink\":\"null:\",\"from\":null,\"to\":42,"
        "\"windows\":[{\"from\":null,\"to\":42,\"operation\":\"initial\",\"upserts\":3,"
        "\"deletes\":0,\"chunks\":1,\"duplicates\":0,\"bytes\":10,\"seconds\":0.250}],"
        "\"status\":\"ok\",\"message\":\"\"}]}");
    KnDeliveryReport named = report;
    named.name = "orders";
    reports[0] = &named;
    kn_buf_reset(&out);
    kn_delivery_reports_json(reports, 1, &out);
    assert_non_null(strstr(out.data, "{\"delivery\":\"orders\",\"table\":"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_empty_table_delivers_nothing_and_makes_no_file),
        cmocka_unit_test(the_first_window_holds_the_live_rows_and_later_ones_what_changed),
        cmocka_unit_test(equal_rows_are_counted_not_merged),
        cmocka_unit_test(an_upsert_by_key_keeps_the_last_row_of_a_key),
        cmocka_unit_test(a_window_of_many_chunks_arrives_whole),
        cmocka_unit_test(the_null_sink_takes_many_loads_at_once),
        cmocka_unit_test(a_bound_on_windows_leaves_the_rest_for_the_next_round),
        cmocka_unit_test(a_stop_is_heard_between_windows),
        cmocka_unit_test(append_mode_refuses_a_delete_before_anything_is_loaded),
        cmocka_unit_test(a_dear_rewrite_is_refused_until_allowed_and_nothing_is_read),
        cmocka_unit_test(a_target_with_rows_of_others_is_refused_and_left_alone),
        cmocka_unit_test(a_target_of_other_columns_is_refused_with_the_differences),
        cmocka_unit_test(a_destination_that_lost_its_rows_is_refused_until_reload),
        cmocka_unit_test(a_lost_journal_does_not_load_twice),
        cmocka_unit_test(a_journal_older_than_the_destination_is_refused),
        cmocka_unit_test(two_deliveries_cannot_fill_one_target),
        cmocka_unit_test(a_reload_clears_the_target_and_loads_anew),
        cmocka_unit_test(a_missing_row_to_delete_holds_the_window),
        cmocka_unit_test(unusable_destinations_are_named_and_left_alone),
        cmocka_unit_test(an_answer_that_was_lost_is_asked_for),
        cmocka_unit_test(a_chunk_that_had_arrived_counts_as_duplicate),
        cmocka_unit_test(a_window_in_flight_survives_a_table_that_moves_on),
        cmocka_unit_test(the_cursor_does_not_move_when_somebody_else_moved_it),
        cmocka_unit_test(check_and_lag_tell_what_waits_without_touching_anything),
        cmocka_unit_test(the_report_has_the_documented_json),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
