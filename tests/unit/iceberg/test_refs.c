/* SPDX-License-Identifier: Apache-2.0 */
/* test_refs.c - branches, tags, what is current, cherry-picks, staged snapshots, races. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "iceberg/maintain/refs.h"
#include "unit/iceberg/lake.h"

static const LakeTable wap = {.schema = "id long required, name string",
                              .props = {"write.wap.enabled", "true", "commit.retry.min-wait-ms",
                                        "1", "commit.retry.max-wait-ms", "2"}};

static int64_t current(Lake *lake)
{
    return lake->tbl->md->current_snapshot_id;
}

static const KnRef *ref_of(Lake *lake, const char *name)
{
    return kn_metadata_find_ref(lake->tbl->md, kn_str(name));
}

static const char *summary_of(Lake *lake, int64_t id, const char *key)
{
    const KnSnapshot *snap = kn_metadata_find_snapshot(lake->tbl->md, id);
    const char *text = json_string_value(json_object_get(snap->summary, key));
    return text ? text : "-";
}

static int64_t append_one(Lake *lake, int id)
{
    return lake_append(lake, "SELECT %d::BIGINT AS id", id).snapshot_id;
}

static int64_t write_with(Lake *lake, const KnWriteOptions *opts, const char *sql)
{
    KnWriteResult res;
    lake_ok(lake, kn_write_append(lake->tbl, lake->ses, sql, opts, &res, &lake->err));
    return res.snapshot_id;
}

static KnRefSet branch_named(const char *name)
{
    return (KnRefSet){.name = name,
                      .is_branch = true,
                      .min_snapshots_to_keep = -1,
                      .max_snapshot_age_ms = -1,
                      .max_ref_age_ms = -1};
}

static const char *id_text(int64_t id)
{
    static char out[4][24];
    static int turn;
    char *text = out[turn++ % 4];
    if (snprintf(text, sizeof(out[0]), "%" PRId64, id) < 0)
        abort();
    return text;
}

/* ---- setting ---- */

static void a_branch_is_made_kept_moved_and_dropped(void **state)
{
    (void)state;
    Lake lake;
    KnRefMove move;
    lake_open(&lake, &wap);
    int64_t first = append_one(&lake, 1), second = append_one(&lake, 2);
    KnRefSet set = branch_named("audit");
    set.at.snapshot = id_text(first);
    set.min_snapshots_to_keep = 3;
    lake_ok(&lake, kn_ref_set(lake.tbl, &set, &move, &lake.err));
    assert_true(move.changed && move.before == -1 && move.after == first);
    lake_fails(&lake, kn_ref_set(lake.tbl, &set, &move, &lake.err), KN_E_EXISTS, "--replace");
    KnRefSet same = branch_named("audit");
    same.if_not_exists = true;
    lake_ok(&lake, kn_ref_set(lake.tbl, &same, &move, &lake.err));
    assert_true(!move.changed && move.after == first);
    KnRefSet moved = branch_named("audit");
    moved.replace = true;
    moved.max_ref_age_ms = 5000;
    lake_ok(&lake, kn_ref_set(lake.tbl, &moved, &move, &lake.err));
    assert_true(move.before == first && move.after == second);
    assert_int_equal(ref_of(&lake, "audit")->min_snapshots_to_keep, 3);
    assert_int_equal(ref_of(&lake, "audit")->max_ref_age_ms, 5000);
    KnRefDrop drop = {.name = "audit", .is_branch = true};
    lake_ok(&lake, kn_ref_drop(lake.tbl, &drop, &move, &lake.err));
    assert_null(ref_of(&lake, "audit"));
    lake_fails(&lake, kn_ref_drop(lake.tbl, &drop, &move, &lake.err), KN_E_NOTFOUND, "audit");
    drop.if_exists = true;
    lake_ok(&lake, kn_ref_drop(lake.tbl, &drop, &move, &lake.err));
    assert_false(move.changed);
    lake_close(&lake);
}

static void kinds_are_not_mixed_up(void **state)
{
    (void)state;
    Lake lake;
    KnRefMove move;
    lake_open(&lake, &wap);
    KnRefSet tag = branch_named("v1");
    tag.is_branch = false;
    lake_fails(&lake, kn_ref_set(lake.tbl, &tag, &move, &lake.err), KN_E_NOTFOUND, "no snapshot");
    append_one(&lake, 1);
    lake_ok(&lake, kn_ref_set(lake.tbl, &tag, &move, &lake.err));
    KnRefSet branch = branch_named("v1");
    branch.replace = true;
    lake_fails(&lake, kn_ref_set(lake.tbl, &branch, &move, &lake.err), KN_E_INVAL,
               "is a tag, not a branch");
    KnRefDrop drop = {.name = "v1", .is_branch = true};
    lake_fails(&lake, kn_ref_drop(lake.tbl, &drop, &move, &lake.err), KN_E_INVAL, "is a tag");
    KnRefDrop main_drop = {.name = "main", .is_branch = true};
    lake_fails(&lake, kn_ref_drop(lake.tbl, &main_drop, &move, &lake.err), KN_E_INVAL, "main");
    KnFastForward ff = {"v1", "main"};
    lake_fails(&lake, kn_table_fast_forward(lake.tbl, &ff, &move, &lake.err), KN_E_INVAL, "tag");
    KnRefSet keeps = branch_named("v2");
    keeps.is_branch = false;
    keeps.min_snapshots_to_keep = 2;
    lake_fails(&lake, kn_ref_set(lake.tbl, &keeps, &move, &lake.err), KN_E_INVAL,
               "Tags do not support");
    assert_int_equal(lake.tbl->md->n_refs, 2);
    lake_close(&lake);
}

static void append_behind_our_back(Lake *lake)
{
    KnTable *other = lake_load(lake);
    KnWriteResult res;
    lake_ok(lake,
            kn_write_append(other, lake->ses, "SELECT 99::BIGINT AS id", NULL, &res, &lake->err));
    kn_table_free(other);
}

static void a_lost_race_is_decided_anew(void **state)
{
    (void)state;
    Lake lake;
    KnRefMove move;
    lake_open(&lake, &wap);
    int64_t first = append_one(&lake, 1);
    append_one(&lake, 2);
    lake.before_commit = append_behind_our_back;
    KnSnapshotChoice to = {.snapshot = id_text(first)};
    lake_ok(&lake, kn_table_rollback(lake.tbl, &to, &move, &lake.err));
    assert_int_equal(current(&lake), first);
    assert_int_equal(lake.tbl->md->n_snapshots, 3);
    assert_true(move.before != first && move.before > 0);
    lake.fail_commit = KN_E_UNKNOWN;
    to = (KnSnapshotChoice){.snapshot = id_text(move.before)};
    lake_fails(&lake, kn_table_set_current(lake.tbl, &to, &move, &lake.err), KN_E_UNKNOWN, "lost");
    lake_close(&lake);
}

/* ---- moving main ---- */

static void rolling_back_goes_to_ancestors_only(void **state)
{
    (void)state;
    Lake lake;
    KnRefMove move;
    lake_open(&lake, &wap);
    int64_t first = append_one(&lake, 1), second = append_one(&lake, 2);
    KnSnapshotChoice to = {.snapshot = id_text(first)};
    lake_ok(&lake, kn_table_rollback(lake.tbl, &to, &move, &lake.err));
    assert_string_equal(lake_text(&lake, "SELECT max(id) FROM {scan}"), "1");
    to.snapshot = id_text(second);
    lake_fails(&lake, kn_table_rollback(lake.tbl, &to, &move, &lake.err), KN_E_REFUSED,
               "no ancestor");
    lake_ok(&lake, kn_table_set_current(lake.tbl, &to, &move, &lake.err));
    assert_true(move.before == first && move.after == second);
    lake_ok(&lake, kn_table_set_current(lake.tbl, &to, &move, &lake.err));
    assert_false(move.changed);
    to = (KnSnapshotChoice){.snapshot = "7"};
    lake_fails(&lake, kn_table_rollback(lake.tbl, &to, &move, &lake.err), KN_E_NOTFOUND, "7");
    lake_close(&lake);
}

static void rolling_back_to_a_time_takes_the_newest_older_ancestor(void **state)
{
    (void)state;
    Lake lake;
    KnRefMove move;
    lake_open(&lake, &wap);
    int64_t first = append_one(&lake, 1);
    int64_t first_ms = kn_metadata_snapshot(lake.tbl->md)->timestamp_ms;
    /* Times of snapshots may be equal: what is newer than the first is enough. */
    while (kn_metadata_snapshot(lake.tbl->md)->timestamp_ms == first_ms)
        append_one(&lake, 2);
    KnSnapshotChoice to = {.as_of = id_text(kn_metadata_snapshot(lake.tbl->md)->timestamp_ms)};
    int64_t last = current(&lake);
    lake_ok(&lake, kn_table_rollback(lake.tbl, &to, &move, &lake.err));
    assert_int_equal(kn_metadata_snapshot(lake.tbl->md)->timestamp_ms, first_ms);
    assert_int_equal(move.before, last);
    to.as_of = id_text(first_ms);
    lake_fails(&lake, kn_table_rollback(lake.tbl, &to, &move, &lake.err), KN_E_NOTFOUND, "older");
    to.as_of = "yesterday";
    lake_fails(&lake, kn_table_rollback(lake.tbl, &to, &move, &lake.err), KN_E_INVAL, "--as-of");
    assert_true(kn_snapshot_is_ancestor(lake.tbl->md, current(&lake), first));
    lake_close(&lake);
}

static void fast_forward_wants_an_ancestor(void **state)
{
    (void)state;
    Lake lake;
    KnRefMove move;
    lake_open(&lake, &wap);
    int64_t first = append_one(&lake, 1);
    KnWriteOptions on_audit = {.branch = "audit"};
    int64_t audited = write_with(&lake, &on_audit, "SELECT 2::BIGINT AS id");
    assert_int_equal(current(&lake), first);
    KnFastForward ff = {"main", "audit"};
    lake_ok(&lake, kn_table_fast_forward(lake.tbl, &ff, &move, &lake.err));
    assert_true(move.before == first && move.after == audited && current(&lake) == audited);
    append_one(&lake, 3);
    lake_fails(&lake, kn_table_fast_forward(lake.tbl, &ff, &move, &lake.err), KN_E_REFUSED,
               "main is not an ancestor of audit");
    ff = (KnFastForward){"fresh", "main"};
    lake_ok(&lake, kn_table_fast_forward(lake.tbl, &ff, &move, &lake.err));
    assert_int_equal(ref_of(&lake, "fresh")->snapshot_id, current(&lake));
    ff.to = "none";
    lake_fails(&lake, kn_table_fast_forward(lake.tbl, &ff, &move, &lake.err), KN_E_NOTFOUND,
               "none");
    lake_close(&lake);
}

/* ---- staging and picking ---- */

static void a_staged_snapshot_is_published_once(void **state)
{
    (void)state;
    Lake lake;
    KnRefMove move;
    lake_open(&lake, &wap);
    int64_t first = append_one(&lake, 1);
    KnWriteOptions w1 = {.wap_id = "w1"}, w2 = {.wap_id = "w2"};
    int64_t staged1 = write_with(&lake, &w1, "SELECT 2::BIGINT AS id");
    int64_t staged2 = write_with(&lake, &w2, "SELECT 3::BIGINT AS id");
    assert_int_equal(current(&lake), first);
    assert_string_equal(summary_of(&lake, staged1, "wap.id"), "w1");
    lake_ok(&lake, kn_table_publish(lake.tbl, "w1", &move, &lake.err));
    assert_int_equal(move.after, staged1); /* its parent was current: no new snapshot */
    lake_fails(&lake, kn_table_publish(lake.tbl, "w1", &move, &lake.err), KN_E_REFUSED,
               "published already");
    lake_ok(&lake, kn_table_publish(lake.tbl, "w2", &move, &lake.err));
    assert_true(move.after != staged2 && current(&lake) == move.after);
    assert_string_equal(summary_of(&lake, move.after, "published-wap-id"), "w2");
    assert_string_equal(summary_of(&lake, move.after, "source-snapshot-id"), id_text(staged2));
    assert_string_equal(summary_of(&lake, move.after, "total-records"), "3");
    assert_string_equal(lake_rows(&lake), "{'id': 1, 'name': NULL} {'id': 2, 'name': NULL} "
                                          "{'id': 3, 'name': NULL}");
    lake_fails(&lake, kn_table_publish(lake.tbl, "w2", &move, &lake.err), KN_E_REFUSED, "already");
    lake_fails(&lake, kn_table_cherry_pick(lake.tbl, staged2, &move, &lake.err), KN_E_REFUSED,
               "already");
    lake_fails(&lake, kn_table_publish(lake.tbl, "w3", &move, &lake.err), KN_E_NOTFOUND, "w3");
    lake_close(&lake);
}

static void staging_wants_the_property_and_no_branch(void **state)
{
    (void)state;
    static const LakeTable off = {.schema = "id long"};
    Lake lake;
    KnWriteResult res;
    lake_open(&lake, &off);
    KnWriteOptions opts = {.wap_id = "w"};
    lake_fails(&lake, kn_write_append(lake.tbl, lake.ses, "SELECT 1 AS id", &opts, &res, &lake.err),
               KN_E_INVAL, "write.wap.enabled");
    lake_close(&lake);
    lake_open(&lake, &wap);
    opts.branch = "audit";
    lake_fails(
        &lake,
        kn_write_append(lake.tbl, lake.ses, "SELECT 1::BIGINT AS id", &opts, &res, &lake.err),
        KN_E_INVAL, "not both");
    assert_int_equal(lake_files_below(&lake, "data"), 0);
    lake_close(&lake);
}

static void a_picked_append_gets_new_row_ids(void **state)
{
    (void)state;
    static const LakeTable v3 = {
        .schema = "id long", .version = 3, .props = {"write.wap.enabled", "true"}};
    Lake lake;
    KnRefMove move;
    lake_open(&lake, &v3);
    append_one(&lake, 1);
    KnWriteOptions w = {.wap_id = "w"};
    int64_t staged = write_with(&lake, &w, "SELECT i AS id FROM range(10, 20) t(i)");
    append_one(&lake, 2);
    int64_t next = lake.tbl->md->next_row_id;
    lake_ok(&lake, kn_table_cherry_pick(lake.tbl, staged, &move, &lake.err));
    const KnSnapshot *snap = kn_metadata_snapshot(lake.tbl->md);
    assert_int_equal(snap->first_row_id, next);
    assert_int_equal(snap->added_rows, 10);
    KnPlan *plan = lake_plan(&lake);
    int64_t seen = 0;
    for (size_t i = 0; i < plan->n_tasks; i++)
        if (plan->tasks[i].data->file.record_count == 10)
            seen = plan->tasks[i].data->file.first_row_id;
    assert_int_equal(seen, next);
    kn_plan_free(plan);
    lake_close(&lake);
}

static void what_is_no_append_is_only_forwarded_to(void **state)
{
    (void)state;
    Lake lake;
    KnRefMove move;
    KnWriteResult res;
    lake_open(&lake, &wap);
    lake_append(&lake, "SELECT i AS id FROM range(4) t(i)");
    KnWriteOptions w1 = {.wap_id = "w1"}, w2 = {.wap_id = "w2"};
    lake_ok(&lake,
            kn_write_delete(lake.tbl, lake.ses, lake_expr(&lake, "id = 1"), &w1, &res, &lake.err));
    lake_ok(&lake,
            kn_write_delete(lake.tbl, lake.ses, lake_expr(&lake, "id = 2"), &w2, &res, &lake.err));
    lake_ok(&lake, kn_table_publish(lake.tbl, "w1", &move, &lake.err));
    assert_string_equal(lake_text(&lake, "SELECT count(*) FROM {scan}"), "3");
    lake_fails(&lake, kn_table_publish(lake.tbl, "w2", &move, &lake.err), KN_E_REFUSED,
               "only appends");
    lake_fails(&lake, kn_table_cherry_pick(lake.tbl, 7, &move, &lake.err), KN_E_NOTFOUND, "7");
    lake_close(&lake);
}

/* A dynamic overwrite as Java's ReplacePartitions says it. */
static int64_t stage_replacement(Lake *lake, const char *wap_id, int part)
{
    static const char *const replace[] = {"replace-partitions", "true"};
    KnWriteOptions opts = {.wap_id = wap_id, .summary = replace, .n_summary = 1};
    KnWriteResult res;
    char where[32], sql[80];
    if (snprintf(where, sizeof(where), "p = %d", part) < 0 ||
        snprintf(sql, sizeof(sql), "SELECT 100::BIGINT AS id, %d AS p", part) < 0)
        abort();
    KnOverwrite change = {lake_expr(lake, where), sql};
    lake_ok(lake, kn_write_overwrite(lake->tbl, lake->ses, &change, &opts, &res, &lake->err));
    return res.snapshot_id;
}

static void a_dynamic_overwrite_is_picked_while_its_partitions_are_untouched(void **state)
{
    (void)state;
    static const LakeTable parts = {
        .schema = "id long, p int", .spec = "p", .props = {"write.wap.enabled", "true"}};
    Lake lake;
    KnRefMove move;
    lake_open(&lake, &parts);
    lake_append(&lake, "SELECT i AS id, (i %% 2)::INT AS p FROM range(4) t(i)");
    int64_t good = stage_replacement(&lake, "w1", 0);
    int64_t bad = stage_replacement(&lake, "w2", 1);
    lake_append(&lake, "SELECT 50::BIGINT AS id, 1 AS p");
    lake_ok(&lake, kn_table_cherry_pick(lake.tbl, good, &move, &lake.err));
    assert_string_equal(kn_metadata_snapshot(lake.tbl->md)->operation, "overwrite");
    assert_string_equal(lake_text(&lake, "SELECT list(id ORDER BY id) FROM {scan}"),
                        "[1, 3, 50, 100]");
    lake_fails(&lake, kn_table_cherry_pick(lake.tbl, bad, &move, &lake.err), KN_E_REFUSED,
               "has new rows since");
    lake_close(&lake);
}

static void a_pick_that_loses_a_race_is_checked_again(void **state)
{
    (void)state;
    Lake lake;
    KnRefMove move;
    lake_open(&lake, &wap);
    append_one(&lake, 1);
    KnWriteOptions w = {.wap_id = "w"};
    write_with(&lake, &w, "SELECT 2::BIGINT AS id");
    append_one(&lake, 3);
    lake.before_commit = append_behind_our_back;
    lake_ok(&lake, kn_table_publish(lake.tbl, "w", &move, &lake.err));
    assert_string_equal(lake_text(&lake, "SELECT list(id ORDER BY id) FROM {scan}"),
                        "[1, 2, 3, 99]");
    lake_close(&lake);
}

static void publish_first(Lake *lake)
{
    KnRefMove move;
    KnTable *other = lake_load(lake);
    lake_ok(lake, kn_table_publish(other, "w", &move, &lake->err));
    kn_table_free(other);
}

static void two_publishers_publish_once(void **state)
{
    (void)state;
    Lake lake;
    KnRefMove move;
    lake_open(&lake, &wap);
    append_one(&lake, 1);
    KnWriteOptions w = {.wap_id = "w"};
    write_with(&lake, &w, "SELECT 2::BIGINT AS id");
    append_one(&lake, 3);
    lake.before_commit = publish_first;
    lake_fails(&lake, kn_table_publish(lake.tbl, "w", &move, &lake.err), KN_E_REFUSED, "already");
    assert_string_equal(lake_text(&lake, "SELECT count(*) FROM {scan}"), "3");
    lake_close(&lake);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_branch_is_made_kept_moved_and_dropped),
        cmocka_unit_test(kinds_are_not_mixed_up),
        cmocka_unit_test(a_lost_race_is_decided_anew),
        cmocka_unit_test(rolling_back_goes_to_ancestors_only),
        cmocka_unit_test(rolling_back_to_a_time_takes_the_newest_older_ancestor),
        cmocka_unit_test(fast_forward_wants_an_ancestor),
        cmocka_unit_test(a_staged_snapshot_is_published_once),
        cmocka_unit_test(staging_wants_the_property_and_no_branch),
        cmocka_unit_test(a_picked_append_gets_new_row_ids),
        cmocka_unit_test(what_is_no_append_is_only_forwarded_to),
        cmocka_unit_test(a_dynamic_overwrite_is_picked_while_its_partitions_are_untouched),
        cmocka_unit_test(a_pick_that_loses_a_race_is_checked_again),
        cmocka_unit_test(two_publishers_publish_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
