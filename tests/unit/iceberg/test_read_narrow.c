/* SPDX-License-Identifier: Apache-2.0 */
/* test_read_narrow.c - reading again only the rows whose bits are set, in spans of row groups. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "unit/iceberg/lake.h"

enum { FILES = 3, ROWS = 100000 };

typedef struct Narrow {
    Lake lake;
    KnPlan *plan;
    KnRead *read;
    uint64_t firsts[FILES];
    uint64_t *bits;
} Narrow;

/* Ids are 0, 1, 2, ...: ROWS of them in each file. */
static void open_narrow(Narrow *n, bool drop_some)
{
    Lake *lake = &n->lake;
    lake_open(lake, &(LakeTable){.schema = "id long, s string"});
    for (int i = 0; i < FILES; i++)
        lake_append(lake, "SELECT i AS id, 'row ' || i AS s FROM range(%d, %d) t(i) ORDER BY i",
                    i * ROWS, (i + 1) * ROWS);
    if (drop_some)
        lake_row_delta(lake, &(LakeRowDelta){.keys = "SELECT i AS id FROM range(0, 300000, 7) t(i)",
                                             .key_names = {"id"},
                                             .operation = "delete"});
    n->plan = lake_plan(lake);
    assert_int_equal(n->plan->n_tasks, FILES);
    KnReadOptions opts = {.schema = kn_metadata_schema(lake->tbl->md), .with_position = true};
    KnScanTasks tasks = {n->plan->tasks, n->plan->n_tasks};
    lake_ok(lake, kn_read_open(lake->tbl, lake->ses, tasks, &opts, &n->read, &lake->err));
    for (int i = 0; i < FILES; i++)
        n->firsts[i] = (uint64_t)i * ((ROWS + UINT64_C(63)) / 64 * 64);
    n->bits = calloc((size_t)FILES * (ROWS + 64) / 64, sizeof(*n->bits));
    assert_non_null(n->bits);
}

static void close_narrow(Narrow *n)
{
    kn_read_close(n->read);
    kn_plan_free(n->plan);
    free(n->bits);
    lake_close(&n->lake);
}

/* The file of an id: manifests may list the newest first. */
static size_t task_of(Narrow *n, uint64_t id)
{
    KN_BUF_AUTO text;
    kn_buf_init(&text, 1 << 20);
    kn_buf_printf(&text, "SELECT any_value(_task) FROM (%s) WHERE id // %d = %d",
                  kn_read_sql(n->read), ROWS, (int)(id / ROWS));
    int64_t task = -1;
    lake_ok(&n->lake, kn_session_query_i64(n->lake.ses, text.data, &task, &n->lake.err));
    assert_in_range(task, 0, FILES - 1);
    return (size_t)task;
}

static void want(Narrow *n, uint64_t id)
{
    uint64_t bit = n->firsts[task_of(n, id)] + id % ROWS;
    n->bits[bit / 64] |= UINT64_C(1) << (bit % 64);
}

static void assert_rows(Narrow *n, const char *what, const char *expected)
{
    KN_BUF_AUTO sql;
    KN_BUF_AUTO text;
    kn_buf_init(&sql, 1 << 24);
    kn_buf_init(&text, 1 << 20);
    kn_buf_printf(&sql, "SELECT %s FROM (%s)", what, kn_read_sql(n->read));
    lake_ok(&n->lake, kn_session_query_text(n->lake.ses, sql.data, &text, &n->lake.err));
    assert_string_equal(text.data, expected);
}

static void narrow(Narrow *n)
{
    lake_ok(&n->lake, kn_read_narrow(n->read, n->bits, n->firsts, &n->lake.err));
}

static void only_rows_with_bits_are_read(void **state)
{
    (void)state;
    Narrow n = {0};
    open_narrow(&n, false);
    static const uint64_t ids[] = {0, 63, 64, 32767, 32768, 99999, 200000, 299999};
    for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++)
        want(&n, ids[i]);
    narrow(&n);
    assert_rows(&n, "list(id ORDER BY id)", "[0, 63, 64, 32767, 32768, 99999, 200000, 299999]");
    assert_rows(&n, "max(s) || bool_and(_pos = id % 100000)", "row 99999true");
    close_narrow(&n);
}

static void files_without_bits_are_left_out(void **state)
{
    (void)state;
    Narrow n = {0};
    open_narrow(&n, false);
    size_t task = task_of(&n, 150000);
    want(&n, 150000);
    narrow(&n);
    assert_rows(&n, "list(id)", "[150000]");
    assert_int_equal(kn_read_n_groups(n.read), 1);
    assert_non_null(strstr(kn_read_sql(n.read), strrchr(n.plan->tasks[task].data->file.path, '/')));
    close_narrow(&n);
}

static void no_bits_leave_no_rows_but_the_columns(void **state)
{
    (void)state;
    Narrow n = {0};
    open_narrow(&n, true);
    narrow(&n);
    assert_rows(&n, "count(s) || ' ' || count(_pos)", "0 0");
    close_narrow(&n);
}

static void all_bits_leave_all_rows(void **state)
{
    (void)state;
    Narrow n = {0};
    open_narrow(&n, false);
    for (size_t f = 0; f < FILES; f++)
        for (uint64_t bit = n.firsts[f]; bit < n.firsts[f] + ROWS; bit++)
            n.bits[bit / 64] |= UINT64_C(1) << (bit % 64);
    narrow(&n);
    assert_int_equal(kn_read_n_groups(n.read), 1);
    assert_rows(&n, "count(*) || ' ' || sum(id)", "300000 44999850000");
    close_narrow(&n);
}

static void what_is_live_is_asked_as_before(void **state)
{
    (void)state;
    Narrow n = {0};
    open_narrow(&n, true);
    want(&n, 8);
    size_t task = task_of(&n, 8);
    narrow(&n);
    KN_BUF_AUTO sql;
    kn_buf_init(&sql, 1 << 16);
    char number[24];
    assert_in_range(snprintf(number, sizeof(number), "%zu", task), 1, sizeof(number) - 1);
    kn_buf_text(&sql, "SELECT count(*) FROM range(100) t(p) WHERE ");
    kn_read_live_sql(n.read, number, "p", &sql);
    int64_t live = 0;
    lake_ok(&n.lake, kn_session_query_i64(n.lake.ses, sql.data, &live, &n.lake.err));
    assert_int_equal(live, 100 - 15);
    assert_rows(&n, "list(id)", "[8]");
    close_narrow(&n);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_rows_with_bits_are_read),
        cmocka_unit_test(files_without_bits_are_left_out),
        cmocka_unit_test(no_bits_leave_no_rows_but_the_columns),
        cmocka_unit_test(all_bits_leave_all_rows),
        cmocka_unit_test(what_is_live_is_asked_as_before),
    };
    return cmocka_run_group_tests_name("iceberg.read_narrow", tests, NULL, NULL);
}
