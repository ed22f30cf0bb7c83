/* SPDX-License-Identifier: Apache-2.0 */
/* test_window.c - kinds and costs of windows, lineage of a cursor, replace, images. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "iceberg/write/write_internal.h"
#include "unit/iceberg/lake.h"

static const LakeTable plain = {.schema = "id long required, name string"};

static const KnSnapshot *head(Lake *lake)
{
    return kn_metadata_snapshot(lake->tbl->md);
}

static KnWindow *window(Lake *lake, const KnSnapshot *from, const KnSnapshot *to)
{
    KnWindow *win = NULL;
    lake_ok(lake, kn_window_plan(lake->tbl, from, to, &win, &lake->err));
    return win;
}

static KnWindow *last_window(Lake *lake)
{
    const KnSnapshot *to = head(lake);
    return window(lake, kn_metadata_find_snapshot(lake->tbl->md, to->parent_id), to);
}

/* "type:id=name ..." of a window's change rows, in their order. */
static const char *changes(Lake *lake, const KnWindow *win, bool raw, bool images)
{
    static KnBuf out;
    static const char *const keys[] = {"id"};
    kn_buf_done(&out);
    kn_buf_init(&out, (size_t)1 << 20);
    KnChangeRows *rows = NULL;
    KnChangeRowsOptions opts = {.schema = kn_metadata_schema(lake->tbl->md),
                                .keys = keys,
                                .n_keys = 1,
                                .raw = raw,
                                .images = images,
                                .ordinal = 3};
    lake_ok(lake, kn_window_change_rows(win, lake->ses, &opts, &rows, &lake->err));
    KN_BUF_AUTO sql;
    kn_buf_init(&sql, (size_t)1 << 20);
    kn_buf_printf(&sql,
                  "SELECT string_agg(_change_type || ':' || id || '=' || coalesce(name, '-'), ' ') "
                  "FROM (%s) WHERE _change_ordinal = 3 AND _commit_snapshot_id = %" PRId64,
                  kn_change_rows_sql(rows), win->to->snapshot_id);
    KnCode rc = kn_session_query_text(lake->ses, sql.data, &out, &lake->err);
    if (rc != KN_E_NOTFOUND)
        lake_ok(lake, rc);
    kn_change_rows_close(rows);
    return out.data ? out.data : "";
}

static void appends_are_direct_and_free(void **state)
{
    (void)state;
    Lake lake;
    lake_open(&lake, &plain);
    lake_append(&lake, "SELECT i AS id, 'a' AS name FROM range(5) t(i)");
    KnWindow *win = window(&lake, NULL, head(&lake));
    assert_int_equal(win->kind, KN_WINDOW_DIRECT);
    assert_string_equal(win->operation, "initial");
    assert_int_equal(win->upserts, 5);
    assert_int_equal(win->deletes, 0);
    kn_window_free(win);
    lake_append(&lake, "SELECT 7 AS id, 'b' AS name");
    win = last_window(&lake);
    assert_int_equal(win->kind, KN_WINDOW_DIRECT);
    assert_string_equal(win->operation, "append");
    assert_int_equal(win->n_added, 1);
    assert_int_equal(win->read_files, 1);
    assert_int_equal(win->read_rows, 1);
    assert_int_equal(win->read_bytes, win->added[0].data->file.size_bytes);
    assert_int_equal(win->rewrite_bytes, 0);
    assert_string_equal(changes(&lake, win, false, false), "insert:7=b");
    kn_window_free(win);
    lake_close(&lake);
}

static void a_rewrite_is_computed_and_priced(void **state)
{
    (void)state;
    Lake lake;
    lake_open(&lake, &plain);
    lake_append(&lake, "SELECT i AS id, 'n' || i AS name FROM range(5) t(i)");
    lake_append(&lake, "SELECT 9 AS id, 'z' AS name");
    lake_delete(&lake, "id IN (1, 3)");
    KnWindow *win = last_window(&lake);
    assert_int_equal(win->kind, KN_WINDOW_COMPUTED);
    assert_int_equal(win->n_added, 1);
    assert_int_equal(win->n_removed, 1);
    assert_int_equal(win->upserts, -1);
    assert_int_equal(win->read_files, 2);
    assert_int_equal(win->read_rows, 8);
    assert_int_equal(win->rewrite_bytes, win->read_bytes);
    assert_int_equal(win->read_bytes,
                     win->added[0].data->file.size_bytes + win->removed[0].data->file.size_bytes);
    assert_string_equal(changes(&lake, win, false, false), "delete:1=n1 delete:3=n3");
    assert_string_equal(changes(&lake, win, true, false),
                        "delete:0=n0 delete:1=n1 delete:2=n2 delete:3=n3 delete:4=n4 "
                        "insert:0=n0 insert:2=n2 insert:4=n4");
    kn_window_free(win);
    lake_close(&lake);
}

static void images_of_copies_of_a_row_stay_in_pairs(void **state)
{
    (void)state;
    Lake lake;
    lake_open(&lake, &plain);
    lake_append(&lake, "SELECT 1 AS id, 'old' AS name FROM range(2)");
    lake_overwrite(&lake, "TRUE", "SELECT 1 AS id, 'new' AS name FROM range(3)");
    KnWindow *win = last_window(&lake);
    assert_string_equal(changes(&lake, win, false, true),
                        "update_before:1=old update_after:1=new update_before:1=old "
                        "update_after:1=new insert:1=new");
    kn_window_free(win);
    lake_close(&lake);
}

static void images_pair_rows_of_a_key(void **state)
{
    (void)state;
    Lake lake;
    lake_open(&lake, &plain);
    lake_append(&lake, "SELECT i AS id, 'old' AS name FROM range(4) t(i)");
    lake_overwrite(&lake, "id IN (1, 2)",
                   "SELECT * FROM (VALUES (2, 'new2'), (1, 'new1'), (8, 'new8')) t(id, name)");
    KnWindow *win = last_window(&lake);
    assert_string_equal(changes(&lake, win, false, true),
                        "update_before:2=old update_after:2=new2 update_before:1=old "
                        "update_after:1=new1 insert:8=new8");
    assert_string_equal(changes(&lake, win, false, false),
                        "delete:1=old delete:2=old insert:2=new2 insert:1=new1 insert:8=new8");
    KnChangeRows *rows = NULL;
    KnChangeRowsOptions opts = {.schema = kn_metadata_schema(lake.tbl->md), .images = true};
    lake_fails(&lake, kn_window_change_rows(win, lake.ses, &opts, &rows, &lake.err), KN_E_INVAL,
               "need key columns");
    kn_window_free(win);
    lake_close(&lake);
}

static void new_deletes_touch_files(void **state)
{
    (void)state;
    Lake lake;
    lake_open(&lake, &plain);
    lake_append(&lake, "SELECT i AS id, 'n' || i AS name FROM range(5) t(i)");
    lake_row_delta(&lake, &(LakeRowDelta){.keys = "SELECT 1::BIGINT AS id UNION ALL SELECT 8",
                                          .key_names = {"id"},
                                          .rows = "SELECT 1::BIGINT AS id, 'again' AS name",
                                          .operation = "overwrite"});
    KnWindow *win = last_window(&lake);
    assert_int_equal(win->kind, KN_WINDOW_COMPUTED);
    assert_int_equal(win->n_added, 1);
    assert_int_equal(win->n_removed, 0);
    assert_int_equal(win->n_touched, 1);
    assert_int_equal(win->read_files, 3);
    assert_string_equal(changes(&lake, win, false, false), "delete:1=n1 insert:1=again");
    kn_window_free(win);
    const KnSnapshot *first = kn_metadata_find_snapshot(lake.tbl->md, head(&lake)->parent_id);
    win = window(&lake, head(&lake), first);
    assert_string_equal(changes(&lake, win, false, false), "delete:1=again insert:1=n1");
    kn_window_free(win);
    lake_row_delta(&lake, &(LakeRowDelta){.rows = "SELECT 2::BIGINT AS id, 'more' AS name",
                                          .operation = "append"});
    win = last_window(&lake);
    assert_int_equal(win->kind, KN_WINDOW_DIRECT);
    assert_int_equal(win->n_added, 1);
    assert_int_equal(win->upserts, 1);
    kn_window_free(win);
    lake_close(&lake);
}

static void equal_rows_cancel_out_one_by_one(void **state)
{
    (void)state;
    Lake lake;
    lake_open(&lake, &plain);
    lake_append(&lake, "SELECT * FROM (VALUES (1, 'a'), (1, 'a'), (1, 'a'), (2, 'b')) t(id, name)");
    lake_overwrite(&lake, "id = 1", "SELECT 1 AS id, 'a' AS name");
    KnWindow *win = last_window(&lake);
    assert_string_equal(changes(&lake, win, false, false), "delete:1=a delete:1=a");
    kn_window_free(win);
    lake_overwrite(&lake, "id = 1", "SELECT 1 AS id, 'a' AS name FROM range(3)");
    win = last_window(&lake);
    assert_string_equal(changes(&lake, win, false, false), "insert:1=a insert:1=a");
    kn_window_free(win);
    lake_close(&lake);
}

/* ---- replace ---- */

static void replace(Lake *lake, const char *rows)
{
    KnWriter w;
    lake_ok(lake, kn_writer_init(&w, lake->tbl, lake->ses, NULL, &lake->err));
    KN_BUF_AUTO sql;
    kn_buf_init(&sql, 1 << 20);
    KnPlan *plan = NULL;
    KnPlanOptions opts = {.snapshot = head(lake)};
    lake_ok(lake, kn_plan_scan(lake->tbl, &opts, &plan, &lake->err));
    lake_ok(lake, kn_write_columns_sql(&w, rows, &sql, &lake->err));
    lake_ok(lake, kn_write_data(&w, sql.data, false, &lake->err));
    const KnManifestEntry **removed =
        kn_arena_alloc(w.arena, (plan->n_tasks + 1) * sizeof(*removed));
    for (size_t i = 0; i < plan->n_tasks; i++)
        removed[i] = plan->tasks[i].data;
    KnSnapshotDraft draft = {.operation = "replace",
                             .n_added = w.added.len,
                             .added = w.added.items,
                             .n_removed = plan->n_tasks,
                             .removed = removed};
    int64_t id = -1;
    lake_ok(lake, kn_snapshot_produce(&w, &draft, &id, &lake->err));
    kn_writer_done(&w, true);
    kn_plan_free(plan);
}

static void a_balanced_replace_is_empty(void **state)
{
    (void)state;
    Lake lake;
    lake_open(&lake, &plain);
    lake_append(&lake, "SELECT 1 AS id");
    lake_append(&lake, "SELECT 2 AS id");
    replace(&lake, "SELECT i AS id FROM range(1, 3) t(i)");
    KnWindow *win = last_window(&lake);
    assert_int_equal(win->kind, KN_WINDOW_EMPTY);
    assert_int_equal(win->read_files, 0);
    assert_int_equal(win->upserts, 0);
    assert_int_equal(win->deletes, 0);
    kn_window_free(win);
    lake_close(&lake);
}

static void a_replace_that_loses_rows_is_refused(void **state)
{
    (void)state;
    Lake lake;
    lake_open(&lake, &plain);
    lake_append(&lake, "SELECT i AS id FROM range(3) t(i)");
    replace(&lake, "SELECT 1 AS id");
    KnWindow *win = NULL;
    const KnSnapshot *to = head(&lake);
    const KnSnapshot *from = kn_metadata_find_snapshot(lake.tbl->md, to->parent_id);
    lake_fails(&lake, kn_window_plan(lake.tbl, from, to, &win, &lake.err), KN_E_REFUSED,
               "replaces 3 live rows by 1");
    assert_non_null(strstr(lake.err.msg, "knut cdc reload"));
    lake_close(&lake);
}

static void a_replace_over_equality_deletes_is_counted(void **state)
{
    (void)state;
    for (int bad = 0; bad < 2; bad++) {
        Lake lake;
        lake_open(&lake, &plain);
        lake_append(&lake, "SELECT i AS id FROM range(4) t(i)");
        lake_row_delta(&lake, &(LakeRowDelta){.keys = "SELECT 2::BIGINT AS id",
                                              .key_names = {"id"},
                                              .operation = "delete"});
        replace(&lake, bad ? "SELECT i AS id FROM range(2) t(i)"
                           : "SELECT i AS id FROM range(4) t(i) WHERE i <> 2");
        KnWindow *win = last_window(&lake);
        assert_int_equal(win->kind, KN_WINDOW_COMPUTED);
        KnSpool *spool = NULL;
        KnSpoolOptions opts = {.schema = kn_metadata_schema(lake.tbl->md), .n_buckets = 1};
        KnCode rc = kn_spool_open(win, lake.ses, &opts, &spool, &lake.err);
        if (bad) {
            lake_fails(&lake, rc, KN_E_REFUSED, "has 1 live rows less");
        } else {
            lake_ok(&lake, rc);
            assert_int_equal(kn_spool_rows(spool, KN_CHANGE_DELETE, 0), 0);
            assert_int_equal(kn_spool_rows(spool, KN_CHANGE_INSERT, 0), 0);
            kn_spool_close(spool);
        }
        kn_window_free(win);
        lake_close(&lake);
    }
}

static void missing_metadata_is_refused(void **state)
{
    (void)state;
    Lake lake;
    lake_open(&lake, &plain);
    lake_append(&lake, "SELECT 1 AS id");
    const char *list = head(&lake)->manifest_list;
    lake_ok(&lake, kn_io_remove(lake.io, kn_str(list), &lake.err));
    KnWriteResult res;
    lake_fails(&lake, kn_write_append(lake.tbl, lake.ses, "SELECT 2 AS id", NULL, &res, &lake.err),
               KN_E_NOTFOUND, "snap-");
    KnWindow *win = NULL;
    KnSnapshot to = *head(&lake);
    to.parent_id = to.snapshot_id;
    lake_fails(&lake, kn_window_plan(lake.tbl, head(&lake), &to, &win, &lake.err), KN_E_REFUSED,
               "cannot be compared");
    lake_close(&lake);
}

static void an_unknown_operation_is_refused(void **state)
{
    (void)state;
    Lake lake;
    lake_open(&lake, &plain);
    lake_append(&lake, "SELECT 1 AS id");
    lake_append(&lake, "SELECT 2 AS id");
    KnSnapshot to = *head(&lake);
    to.operation = "shuffle";
    KnWindow *win = NULL;
    lake_fails(&lake,
               kn_window_plan(lake.tbl, kn_metadata_find_snapshot(lake.tbl->md, to.parent_id), &to,
                              &win, &lake.err),
               KN_E_REFUSED, "operation 'shuffle' is not known");
    lake_close(&lake);
}

/* ---- lineage ---- */

static void set_head(Lake *lake, const char *branch, int64_t id)
{
    KnRef ref = {.name = branch,
                 .snapshot_id = id,
                 .is_branch = true,
                 .min_snapshots_to_keep = -1,
                 .max_snapshot_age_ms = -1,
                 .max_ref_age_ms = -1};
    KnUpdate update = {.kind = KN_UPDATE_SET_SNAPSHOT_REF, .text = branch, .ref = ref};
    KnTableCommit change = {.updates = &update, .n_updates = 1};
    lake_ok(lake, kn_table_commit(lake->tbl, &change, &lake->err));
}

static void remove_snapshot(Lake *lake, int64_t id)
{
    KnUpdate update = {.kind = KN_UPDATE_REMOVE_SNAPSHOTS, .ids = &id, .n_ids = 1};
    KnTableCommit change = {.updates = &update, .n_updates = 1};
    lake_ok(lake, kn_table_commit(lake->tbl, &change, &lake->err));
}

static void a_cursor_is_led_to_the_head(void **state)
{
    (void)state;
    Lake lake;
    lake_open(&lake, &plain);
    KnLineage todo = {.n = 99};
    KnArena *arena = lake.tbl->arena;
    lake_ok(&lake, kn_window_lineage(lake.tbl, -1, "main", arena, &todo, &lake.err));
    assert_int_equal(todo.n, 0);
    lake_fails(&lake, kn_window_lineage(lake.tbl, 5, "main", arena, &todo, &lake.err), KN_E_REFUSED,
               "has no snapshot any more");
    int64_t ids[4];
    for (int i = 0; i < 4; i++)
        ids[i] = lake_append(&lake, "SELECT %d AS id", i).snapshot_id;
    lake_ok(&lake, kn_window_lineage(lake.tbl, -1, "main", arena, &todo, &lake.err));
    assert_int_equal(todo.n, 1);
    assert_int_equal(todo.items[0]->snapshot_id, ids[3]);
    lake_ok(&lake, kn_window_lineage(lake.tbl, ids[1], "main", arena, &todo, &lake.err));
    assert_int_equal(todo.n, 2);
    assert_int_equal(todo.items[0]->snapshot_id, ids[2]);
    assert_int_equal(todo.items[1]->snapshot_id, ids[3]);
    lake_ok(&lake, kn_window_lineage(lake.tbl, ids[3], "main", arena, &todo, &lake.err));
    assert_int_equal(todo.n, 0);
    lake_fails(&lake, kn_window_lineage(lake.tbl, ids[3], "dev", arena, &todo, &lake.err),
               KN_E_NOTFOUND, "no branch or tag is named dev");
    set_head(&lake, "dev", ids[1]);
    lake_ok(&lake, kn_window_lineage(lake.tbl, ids[0], "dev", arena, &todo, &lake.err));
    assert_int_equal(todo.n, 1);
    lake_fails(&lake, kn_window_lineage(lake.tbl, ids[3], "dev", arena, &todo, &lake.err),
               KN_E_REFUSED, "is no ancestor of dev");
    lake_close(&lake);
}

static void rollbacks_and_expiry_are_told_apart(void **state)
{
    (void)state;
    Lake lake;
    lake_open(&lake, &plain);
    KnLineage todo = {0};
    KnArena *arena = lake.tbl->arena;
    int64_t ids[4];
    for (int i = 0; i < 4; i++)
        ids[i] = lake_append(&lake, "SELECT %d AS id", i).snapshot_id;
    remove_snapshot(&lake, ids[0]);
    lake_fails(&lake, kn_window_lineage(lake.tbl, ids[0], "main", arena, &todo, &lake.err),
               KN_E_REFUSED, "has expired: its files are no longer known; run `knut cdc reload`");
    set_head(&lake, "old", ids[3]);
    set_head(&lake, "main", ids[1]);
    lake_fails(&lake, kn_window_lineage(lake.tbl, ids[3], "main", arena, &todo, &lake.err),
               KN_E_REFUSED, "is no ancestor of main: it was rolled back");
    set_head(&lake, "keep", ids[1]);
    set_head(&lake, "main", ids[3]);
    remove_snapshot(&lake, ids[2]);
    lake_fails(&lake, kn_window_lineage(lake.tbl, ids[1], "main", arena, &todo, &lake.err),
               KN_E_REFUSED, "which follows snapshot");
    lake_close(&lake);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(appends_are_direct_and_free),
        cmocka_unit_test(a_rewrite_is_computed_and_priced),
        cmocka_unit_test(images_pair_rows_of_a_key),
        cmocka_unit_test(images_of_copies_of_a_row_stay_in_pairs),
        cmocka_unit_test(new_deletes_touch_files),
        cmocka_unit_test(equal_rows_cancel_out_one_by_one),
        cmocka_unit_test(a_balanced_replace_is_empty),
        cmocka_unit_test(a_replace_that_loses_rows_is_refused),
        cmocka_unit_test(a_replace_over_equality_deletes_is_counted),
        cmocka_unit_test(missing_metadata_is_refused),
        cmocka_unit_test(an_unknown_operation_is_refused),
        cmocka_unit_test(a_cursor_is_led_to_the_head),
        cmocka_unit_test(rollbacks_and_expiry_are_told_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
