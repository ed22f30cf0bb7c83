/* SPDX-License-Identifier: Apache-2.0 */
/* labels: slow */
/* test_compact_races.c - data files rewritten beside other writers, and failures on the way. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fault.h"
#include "base/random.h"
#include "unit/iceberg/compact_support.h"

static const KnSnapshot *head(Lake *lake)
{
    return kn_metadata_snapshot(lake->tbl->md);
}

static size_t n_tasks(Lake *lake)
{
    KnPlan *p = lake_plan(lake);
    size_t n = p->n_tasks;
    kn_plan_free(p);
    return n;
}

/* ---- races ---- */

static const LakeTable hasty = {.schema = "id long required, name string",
                                .props = {"commit.retry.min-wait-ms", "1"}};

static void other_appends(Lake *lake)
{
    KnTable *mine = lake_become_other(lake);
    lake_append(lake, "SELECT 100 AS id, 'other' AS name");
    lake_become_myself(lake, mine);
}

static void other_deletes_rows_of_a_file(Lake *lake)
{
    KnTable *mine = lake_become_other(lake);
    lake_delete(lake, "id = 1");
    lake_become_myself(lake, mine);
}

static void other_deletes_positions(Lake *lake)
{
    KnTable *mine = lake_become_other(lake);
    lake_delete_positions(lake, "p = 1");
    lake_become_myself(lake, mine);
}

static void other_deletes_keys(Lake *lake)
{
    KnTable *mine = lake_become_other(lake);
    lake_row_delta(lake, &(LakeRowDelta){.keys = "SELECT 2::BIGINT AS id",
                                         .key_names = {"id"},
                                         .rows = "SELECT 2::BIGINT AS id, 'new' AS name",
                                         .operation = "overwrite"});
    lake_become_myself(lake, mine);
}

static void other_compacts(Lake *lake)
{
    KnTable *mine = lake_become_other(lake);
    lake_compact(lake, compact_all());
    lake_become_myself(lake, mine);
}

static void open_with_rows(Lake *lake)
{
    lake_open(lake, &hasty);
    for (int i = 0; i < 3; i++)
        lake_append(lake, "SELECT i AS id, 'n' || i AS name FROM range(%d, %d) t(i)", i * 4,
                    i * 4 + 4);
}

static void what_others_add_is_no_conflict(void **state)
{
    (void)state;
    Lake lake;
    open_with_rows(&lake);
    lake.before_commit = other_appends;
    KnCompactResult res = lake_compact(&lake, compact_all());
    assert_int_equal(res.removed_files, 3);
    assert_int_equal(n_tasks(&lake), 2);
    assert_string_equal(lake_text(&lake, "SELECT count(*) || ' ' || sum(id) FROM {scan}"),
                        "13 166");
    unchanged_window(&lake, head(&lake)->parent_id, head(&lake));
    lake_close(&lake);
}

static void later_equality_deletes_still_apply(void **state)
{
    (void)state;
    Lake lake;
    open_with_rows(&lake);
    lake.before_commit = other_deletes_keys;
    lake_compact(&lake, compact_all());
    assert_string_equal(lake_text(&lake, "SELECT string_agg(name, ' ' ORDER BY id) FROM {scan} "
                                         "WHERE id IN (1, 2)"),
                        "n1 new");
    assert_string_equal(lake_text(&lake, "SELECT count(*) FROM {scan}"), "12");
    unchanged_window(&lake, head(&lake)->parent_id, head(&lake));
    lake_close(&lake);
}

static void conflicts_leave_the_table_as_others_made_it(void **state)
{
    (void)state;
    static const struct {
        void (*turn)(Lake *);
        bool new_sequence, other_spec;
        const char *part, *sum;
    } cases[] = {
        {other_deletes_rows_of_a_file, false, false, "removed a file", "65"},
        {other_deletes_positions, false, false, "added position deletes", "51"},
        {other_deletes_keys, true, false, "added equality deletes", "66"},
        {other_deletes_keys, false, true, "added equality deletes", "66"},
        {other_compacts, false, false, "another writer removed", "66"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        Lake lake;
        open_with_rows(&lake);
        KnCompactOptions opts = compact_all();
        opts.new_sequence_number = cases[i].new_sequence;
        if (cases[i].other_spec) {
            lake_set_spec(&lake, "bucket(2, id)");
            lake_set_default_spec(&lake, 0);
        }
        opts.output_spec_id = cases[i].other_spec ? 1 : -1;
        lake.before_commit = cases[i].turn;
        KnCompactResult res = {.snapshot_id = -2};
        lake_fails(&lake, kn_write_compact(lake.tbl, lake.ses, &opts, &res, &lake.err),
                   KN_E_CONFLICT, cases[i].part);
        assert_int_equal(res.snapshot_id, -2);
        lake_ok(&lake, kn_table_refresh(lake.tbl, &lake.err));
        assert_string_equal(lake_text(&lake, "SELECT sum(id) FROM {scan}"), cases[i].sum);
        lake_close(&lake);
    }
}

static void a_lost_part_leaves_the_others(void **state)
{
    (void)state;
    Lake lake;
    lake_open(&lake, &(LakeTable){.schema = "id long required, name string",
                                  .spec = "name",
                                  .props = {"commit.retry.min-wait-ms", "1"}});
    for (int i = 0; i < 5; i++)
        lake_append(&lake, "SELECT 10 * i + %d AS id, 'n' || i AS name FROM range(3) t(i)", i);
    KnCompactOptions opts = kn_compact_defaults();
    opts.partial_progress = true;
    lake.before_commit = other_deletes_rows_of_a_file;
    KnCompactResult res = lake_compact(&lake, opts);
    assert_int_equal(res.n_groups, 2);
    assert_int_equal(res.n_commits, 2);
    assert_int_equal(res.n_failed_commits, 1);
    assert_int_equal(n_tasks(&lake), 4 + 2);
    assert_int_equal(lake_files_below(&lake, "data"), 15 + 2);
    assert_string_equal(lake_text(&lake, "SELECT count(*) || ' ' || sum(id) FROM {scan}"),
                        "14 179");
    assert_int_equal(lake_compact(&lake, opts).snapshot_id, -1);
    lake_close(&lake);
}

/* A delete that arrives while an early part is committed is seen by a later part. */
static void a_later_part_sees_what_an_earlier_one_passed(void **state)
{
    (void)state;
    Lake lake;
    lake_open(&lake, &(LakeTable){.schema = "id long required, name string",
                                  .spec = "name",
                                  .props = {"commit.retry.min-wait-ms", "1"}});
    for (int i = 0; i < 5; i++)
        lake_append(&lake, "SELECT 10 * i + %d AS id, 'n' || i AS name FROM range(1, 3) t(i)", i);
    KnCompactOptions opts = kn_compact_defaults();
    opts.partial_progress = true;
    KnTable *mine = lake_become_other(&lake);
    lake_delete(&lake, "id = 12");
    KnTable *other = lake.tbl;
    lake.tbl = mine;
    KnCompactResult res;
    KnCode rc = kn_write_compact(lake.tbl, lake.ses, &opts, &res, &lake.err);
    assert_int_equal(rc, KN_OK);
    assert_int_equal(res.n_failed_commits, 1);
    assert_int_equal(res.n_commits, 1);
    kn_table_free(other);
    assert_string_equal(lake_text(&lake, "SELECT count(*) FROM {scan} WHERE id = 12"), "0");
    assert_string_equal(lake_text(&lake, "SELECT count(*) FROM {scan}"), "9");
    lake_close(&lake);
}

/* ---- failures ---- */

static void a_failure_loses_nothing(void **state)
{
    (void)state;
    static const char *const points[] = {"compact-group-written", "write-data-written",
                                         "write-manifest-written", "write-list-written",
                                         "write-before-commit"};
    for (size_t i = 0; i < sizeof(points) / sizeof(points[0]); i++) {
        Lake lake;
        open_with_rows(&lake);
        size_t data = lake_files_below(&lake, "data");
        size_t meta = lake_files_below(&lake, "metadata");
        UnchangedTable before = unchanged_look(&lake);
        char spec[64];
        assert_true(snprintf(spec, sizeof(spec), "%s:1:fail", points[i]) > 0);
        lake_ok(&lake, kn_fault_set(spec, NULL, &lake.err));
        KnCompactResult res;
        KnCompactOptions opts = compact_all();
        lake_fails(&lake, kn_write_compact(lake.tbl, lake.ses, &opts, &res, &lake.err), KN_E_IO,
                   points[i]);
        lake_ok(&lake, kn_fault_set(NULL, NULL, &lake.err));
        assert_int_equal(lake_files_below(&lake, "data"), data);
        assert_int_equal(lake_files_below(&lake, "metadata"), meta);
        unchanged_check(&lake, &before);
        lake_close(&lake);
    }
}

static void an_unknown_outcome_removes_nothing(void **state)
{
    (void)state;
    Lake lake;
    open_with_rows(&lake);
    UnchangedTable before = unchanged_look(&lake);
    lake.fail_commit = KN_E_UNKNOWN;
    KnCompactOptions opts = compact_all();
    opts.partial_progress = true;
    KnCompactResult res;
    lake_fails(&lake, kn_write_compact(lake.tbl, lake.ses, &opts, &res, &lake.err), KN_E_UNKNOWN,
               "answer was lost");
    lake_ok(&lake, kn_table_refresh(lake.tbl, &lake.err));
    assert_int_equal(n_tasks(&lake), 1);
    unchanged_check(&lake, &before);
    lake_close(&lake);
}

static bool always(void)
{
    return true;
}

static void cancelling_stops(void **state)
{
    (void)state;
    Lake lake;
    open_with_rows(&lake);
    KnCompactOptions opts = compact_all();
    opts.write.cancelled = always;
    KnCompactResult res;
    lake_fails(&lake, kn_write_compact(lake.tbl, lake.ses, &opts, &res, &lake.err), KN_E_CANCELLED,
               "cancelled");
    assert_int_equal(lake_files_below(&lake, "data"), 3);
    lake_close(&lake);
}

static void branches_are_compacted_apart(void **state)
{
    (void)state;
    Lake lake;
    open_with_rows(&lake);
    lake_make_ref(&lake, "dev", true);
    lake_append(&lake, "SELECT 50 AS id, 'main' AS name");
    int64_t on_main = head(&lake)->snapshot_id;
    KnCompactOptions opts = compact_all();
    opts.write.branch = "dev";
    KnCompactResult res = lake_compact(&lake, opts);
    assert_int_equal(res.added_rows, 12);
    assert_int_equal(head(&lake)->snapshot_id, on_main);
    const KnRef *ref = kn_metadata_find_ref(lake.tbl->md, kn_str("dev"));
    assert_int_equal(ref->snapshot_id, res.snapshot_id);
    const KnSnapshot *dev = kn_metadata_find_snapshot(lake.tbl->md, ref->snapshot_id);
    assert_string_equal(lake_text_at(&lake, dev, "SELECT sum(id) FROM {scan}"), "66");
    unchanged_window(&lake, dev->parent_id, dev);
    lake_close(&lake);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_others_add_is_no_conflict),
        cmocka_unit_test(later_equality_deletes_still_apply),
        cmocka_unit_test(conflicts_leave_the_table_as_others_made_it),
        cmocka_unit_test(a_lost_part_leaves_the_others),
        cmocka_unit_test(a_later_part_sees_what_an_earlier_one_passed),
        cmocka_unit_test(a_failure_loses_nothing),
        cmocka_unit_test(an_unknown_outcome_removes_nothing),
        cmocka_unit_test(cancelling_stops),
        cmocka_unit_test(branches_are_compacted_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
