/* SPDX-License-Identifier: Apache-2.0 */
/* The public library, used as a program outside of knut uses it: rows and changes as Arrow, one
 * round of a delivery. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "knut/delivery.h"
#include "knut/release.h"
#include "knut/table.h"
#include "knut/version.h"

#include "lib_support.h"
#include "support/tempdir.h"

typedef struct Fixture {
    char dir[256];
    KnErr err;
    KnutTable *table;
} Fixture;

static int setup(void **state)
{
    Fixture *fix = calloc(1, sizeof(*fix));
    assert_non_null(fix);
    (void)test_tempdir_make(fix->dir);
    make_warehouse(fix->dir);
    KnutOpen open = {.size = sizeof(open), .warehouse = fix->dir, .table = "ns.t", .threads = 2};
    if (knut_table_open(&open, &fix->table, &fix->err) != KN_OK)
        fail_msg("open: %s", fix->err.msg);
    *state = fix;
    return 0;
}

static int teardown(void **state)
{
    Fixture *fix = *state;
    knut_table_close(fix->table);
    test_tempdir_remove(fix->dir);
    free(fix);
    return 0;
}

/* Sum of the first (int64) column, and the number of rows. */
static int64_t drain(struct ArrowArrayStream *stream, int64_t *ret_rows)
{
    int64_t sum = 0;
    *ret_rows = 0;
    for (;;) {
        struct ArrowArray array;
        assert_int_equal(stream->get_next(stream, &array), 0);
        if (!array.release)
            break;
        const struct ArrowArray *ids = array.children[0];
        const int64_t *values = ids->buffers[1];
        for (int64_t i = 0; i < array.length; i++)
            sum += values[array.offset + ids->offset + i];
        *ret_rows += array.length;
        array.release(&array);
    }
    stream->release(stream);
    assert_null(stream->release);
    return sum;
}

static void rows_come_as_an_arrow_stream(void **state)
{
    Fixture *fix = *state;
    struct ArrowArrayStream stream;
    assert_int_equal(knut_table_scan(fix->table, NULL, &stream, &fix->err), KN_OK);
    struct ArrowSchema schema;
    assert_int_equal(stream.get_schema(&stream, &schema), 0);
    assert_string_equal(schema.format, "+s");
    assert_int_equal(schema.n_children, 2);
    assert_string_equal(schema.children[0]->name, "id");
    assert_string_equal(schema.children[0]->format, "l");
    assert_string_equal(schema.children[1]->name, "name");
    schema.release(&schema);
    int64_t rows = 0;
    assert_int_equal(drain(&stream, &rows), ROWS_SUM);
    assert_int_equal(rows, ROWS);
}

static void a_scan_takes_columns_a_filter_and_a_snapshot(void **state)
{
    Fixture *fix = *state;
    struct ArrowArrayStream stream;
    static const char *const columns[] = {"id"};
    KnutScan scan = {.size = sizeof(scan), .columns = columns, .n_columns = 1, .where = "id < 10"};
    assert_int_equal(knut_table_scan(fix->table, &scan, &stream, &fix->err), KN_OK);
    int64_t rows = 0;
    assert_int_equal(drain(&stream, &rows), 45);
    assert_int_equal(rows, 10);
    KnutScan bad = {.size = sizeof(bad), .where = "nope = 1"};
    assert_int_equal(knut_table_scan(fix->table, &bad, &stream, &fix->err), KN_E_INVAL);
    assert_non_null(strstr(fix->err.msg, "nope"));
    KnutScan gone = {.size = sizeof(gone), .snapshot = "12345"};
    assert_int_equal(knut_table_scan(fix->table, &gone, &stream, &fix->err), KN_E_NOTFOUND);
}

static void a_struct_of_another_size_is_refused(void **state)
{
    Fixture *fix = *state;
    struct ArrowArrayStream stream;
    KnutScan scan = {.size = 4};
    assert_int_equal(knut_table_scan(fix->table, &scan, &stream, &fix->err), KN_E_INVAL);
    KnutOpen open = {.size = 1};
    KnutTable *other = NULL;
    assert_int_equal(knut_table_open(&open, &other, &fix->err), KN_E_INVAL);
    assert_null(other);
    assert_string_equal(knut_version(), KN_VERSION_STRING);
}

static void a_stream_outlives_a_refresh(void **state)
{
    Fixture *fix = *state;
    struct ArrowArrayStream stream;
    int64_t before = knut_table_snapshot(fix->table);
    assert_int_equal(knut_table_scan(fix->table, NULL, &stream, &fix->err), KN_OK);
    delete_rows(fix->dir, "id >= 10");
    assert_int_equal(knut_table_refresh(fix->table, &fix->err), KN_OK);
    assert_int_not_equal(knut_table_snapshot(fix->table), before);
    int64_t rows = 0;
    (void)drain(&stream, &rows);
    assert_int_equal(rows, ROWS);
    assert_int_equal(knut_table_scan(fix->table, NULL, &stream, &fix->err), KN_OK);
    (void)drain(&stream, &rows);
    assert_int_equal(rows, 10);
}

static void changes_come_as_an_arrow_stream(void **state)
{
    Fixture *fix = *state;
    int64_t before = knut_table_snapshot(fix->table);
    delete_rows(fix->dir, "id < 3");
    assert_int_equal(knut_table_refresh(fix->table, &fix->err), KN_OK);
    KnutChanges changes = {.size = sizeof(changes), .from = before, .to = -1};
    struct ArrowArrayStream stream;
    if (knut_table_changes(fix->table, &changes, &stream, &fix->err) != KN_OK)
        fail_msg("changes: %s", fix->err.msg);
    struct ArrowSchema schema;
    assert_int_equal(stream.get_schema(&stream, &schema), 0);
    assert_int_equal(schema.n_children, 5);
    assert_string_equal(schema.children[2]->name, "_change_type");
    schema.release(&schema);
    int64_t rows = 0;
    assert_int_equal(drain(&stream, &rows), 0 + 1 + 2);
    assert_int_equal(rows, 3);
}

typedef struct Seen {
    int64_t windows, upserts, deletes;
} Seen;

static void window_delivered(void *arg, int64_t snapshot, int64_t upserts, int64_t deletes)
{
    Seen *seen = arg;
    assert_true(snapshot > 0);
    seen->windows++;
    seen->upserts += upserts;
    seen->deletes += deletes;
}

static void a_round_delivers_what_is_new_and_then_nothing(void **state)
{
    Fixture *fix = *state;
    char journal[300], sink[300];
    (void)snprintf(journal, sizeof(journal), "%s/state.db", fix->dir);
    (void)snprintf(sink, sizeof(sink), "duckdb:%s/copy.duckdb", fix->dir);
    Seen seen = {0};
    KnutDelivery delivery = {.size = sizeof(delivery),
                             .sink = sink,
                             .target = "t",
                             .journal = journal,
                             .window_delivered = window_delivered,
                             .arg = &seen};
    KnutDelivered done;
    if (knut_deliver(fix->table, &delivery, &done, &fix->err) != KN_OK)
        fail_msg("deliver: %s", fix->err.msg);
    assert_int_equal(done.windows, 1);
    assert_int_equal(done.upserts, ROWS);
    assert_int_equal(done.to, knut_table_snapshot(fix->table));
    delete_rows(fix->dir, "id < 3");
    assert_int_equal(knut_deliver(fix->table, &delivery, &done, &fix->err), KN_OK);
    assert_int_equal(done.deletes, 3);
    assert_int_equal(knut_deliver(fix->table, &delivery, &done, &fix->err), KN_OK);
    assert_int_equal(done.windows, 0);
    assert_int_equal(seen.windows, 2);
    assert_int_equal(seen.upserts, ROWS);
    assert_int_equal(seen.deletes, 3);
}

static void a_release_says_what_is_missing(void **state)
{
    Fixture *fix = *state;
    KnutOpen open = {.size = sizeof(open), .warehouse = fix->dir, .table = "not.looked.at"};
    const char *const tables[] = {"ns.t"};
    KnutRelease release = {
        .size = sizeof(release), .catalog = &open, .tables = tables, .n_tables = 1, .wap_id = "w"};
    KnutReleased moves[1] = {{7, 7}};
    assert_int_equal(knut_release(&release, moves, &fix->err), KN_E_NOTFOUND);
    assert_non_null(strstr(fix->err.msg, "'w'"));
    release.wap_id = NULL;
    assert_int_equal(knut_release(&release, moves, &fix->err), KN_E_INVAL);
    release.branch = "main"; /* forward to where it is */
    release.tag = "v1";
    assert_int_equal(knut_release(&release, moves, &fix->err), KN_OK);
    assert_int_equal(moves[0].after, knut_table_snapshot(fix->table));
    open.warehouse = NULL;
    open.root = fix->dir;
    assert_int_equal(knut_release(&release, moves, &fix->err), KN_E_INVAL);
    release.size = 1;
    assert_int_equal(knut_release(&release, moves, &fix->err), KN_E_INVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_release_says_what_is_missing, setup, teardown),
        cmocka_unit_test_setup_teardown(rows_come_as_an_arrow_stream, setup, teardown),
        cmocka_unit_test_setup_teardown(a_scan_takes_columns_a_filter_and_a_snapshot, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_struct_of_another_size_is_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(a_stream_outlives_a_refresh, setup, teardown),
        cmocka_unit_test_setup_teardown(changes_come_as_an_arrow_stream, setup, teardown),
        cmocka_unit_test_setup_teardown(a_round_delivers_what_is_new_and_then_nothing, setup,
                                        teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
