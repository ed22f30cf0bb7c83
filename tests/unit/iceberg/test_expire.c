/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_expire.c - files that go with expired snapshots are those that nothing left reaches: over
 * shared and rewritten manifests, deletion vectors that share a file, staged snapshots, branches
 * and tags, races and failures.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/fault.h"
#include "iceberg/maintain/expire.h"
#include "iceberg/maintain/refs.h"
#include "unit/iceberg/lake.h"

static const LakeTable plain = {
    .schema = "id long required, name string",
    .props = {"write.wap.enabled", "true", "commit.retry.min-wait-ms", "1"}};

#define FUTURE INT64_C(32503680000000)

static KnExpireResult expire_with(Lake *lake, KnExpireOptions opts)
{
    KnExpireResult res = {0};
    if (!opts.older_than_ms)
        opts.older_than_ms = FUTURE;
    lake_ok(lake, kn_table_expire(lake->tbl, lake->ses, &opts, &res, &lake->err));
    return res;
}

static KnExpireResult expire_all(Lake *lake)
{
    return expire_with(lake, (KnExpireOptions){0});
}

static void append_one(Lake *lake, int id)
{
    lake_append(lake, "SELECT %d::BIGINT AS id", id);
}

/* Every file below the table that is no metadata document is reached: nothing too many is left,
 * and every snapshot can be read. */
static void check_tight(Lake *lake)
{
    KnFileSet *set = NULL;
    KnReach reach;
    kn_reach_init(&reach, lake->tbl, lake->tbl->md);
    lake_ok(lake, kn_file_set_open(lake->ses, &set, &lake->err));
    lake_ok(lake, kn_reach_add_all(&reach, &lake->err));
    lake_ok(lake, kn_reach_put_manifests(&reach, NULL, set, &lake->err));
    lake_ok(lake, kn_reach_put_lists(lake->tbl->md, set, &lake->err));
    lake_ok(lake, kn_reach_put_contents(&reach, NULL, set, &lake->err));
    KnSweepResult all = {0};
    KnSweep sweep = {.tbl = lake->tbl, .gone = set, .opts = {.dry_run = true}};
    lake_ok(lake, kn_sweep(&sweep, &all, &lake->err));
    size_t n = 0;
    for (int kind = 0; kind < KN_N_FILE_KINDS; kind++)
        n += (size_t)all.files[kind];
    size_t documents = lake->tbl->md->n_metadata_log + 1;
    assert_int_equal(lake_files_below(lake, ""), n + documents);
    kn_file_set_close(set);
    kn_reach_done(&reach);
    for (size_t i = 0; i < lake->tbl->md->n_snapshots; i++)
        lake_text_at(lake, &lake->tbl->md->snapshots[i], "SELECT count(*) FROM {scan}");
}

/* ---- what goes ---- */

static void appends_lose_only_their_lists(void **state)
{
    (void)state;
    Lake lake;
    lake_open(&lake, &plain);
    for (int i = 0; i < 3; i++)
        append_one(&lake, i);
    KnExpireResult res = expire_all(&lake);
    assert_int_equal(res.snapshots, 2);
    assert_int_equal(res.files.files[KN_FILE_MANIFEST_LIST], 2);
    assert_int_equal(res.files.files[KN_FILE_MANIFEST], 0);
    assert_int_equal(res.files.files[KN_FILE_DATA], 0);
    assert_true(res.files.bytes > 0);
    assert_string_equal(lake_text(&lake, "SELECT count(*) FROM {scan}"), "3");
    check_tight(&lake);
    lake_close(&lake);
}

static void rewritten_files_go_with_the_snapshots_that_had_them(void **state)
{
    (void)state;
    Lake lake;
    lake_open(&lake, &plain);
    lake_append(&lake, "SELECT i AS id FROM range(10) t(i)");
    append_one(&lake, 100);
    lake_delete(&lake, "id = 3");   /* writes one file anew */
    lake_delete(&lake, "id = 100"); /* drops one whole */
    KnExpireResult res = expire_all(&lake);
    assert_int_equal(res.snapshots, 3);
    assert_int_equal(res.files.files[KN_FILE_DATA], 2);
    assert_string_equal(lake_text(&lake, "SELECT count(*) || ',' || sum(id) FROM {scan}"), "9,42");
    check_tight(&lake);
    res = expire_all(&lake);
    assert_int_equal(res.snapshots, 0);
    lake_close(&lake);
}

static void merged_manifests_go_and_their_files_stay(void **state)
{
    (void)state;
    static const LakeTable merging = {.schema = "id long",
                                      .props = {"commit.manifest.min-count-to-merge", "2"}};
    Lake lake;
    lake_open(&lake, &merging);
    for (int i = 0; i < 5; i++)
        append_one(&lake, i);
    KnExpireResult res = expire_all(&lake);
    assert_true(res.files.files[KN_FILE_MANIFEST] > 0);
    assert_int_equal(res.files.files[KN_FILE_DATA], 0);
    assert_string_equal(lake_text(&lake, "SELECT count(*) FROM {scan}"), "5");
    check_tight(&lake);
    lake_close(&lake);
}

static void branches_and_tags_hold_their_files(void **state)
{
    (void)state;
    Lake lake;
    KnRefMove move;
    lake_open(&lake, &plain);
    lake_append(&lake, "SELECT i AS id FROM range(10) t(i)");
    KnRefSet tag = {
        .name = "v1", .min_snapshots_to_keep = -1, .max_snapshot_age_ms = -1, .max_ref_age_ms = -1};
    lake_ok(&lake, kn_ref_set(lake.tbl, &tag, &move, &lake.err));
    lake_delete(&lake, "id = 3");
    KnWriteOptions on_dev = {.branch = "dev"};
    KnWriteResult wrote;
    lake_ok(&lake, kn_write_append(lake.tbl, lake.ses, "SELECT 50::BIGINT AS id", &on_dev, &wrote,
                                   &lake.err));
    lake_delete(&lake, "id = 4");
    KnExpireResult res = expire_all(&lake);
    assert_int_equal(res.snapshots,
                     1); /* the one that main and dev share, which dev's has inside */
    assert_int_equal(res.files.files[KN_FILE_DATA], 0);
    check_tight(&lake);
    KnRefDrop drop = {.name = "dev", .is_branch = true};
    lake_ok(&lake, kn_ref_drop(lake.tbl, &drop, &move, &lake.err));
    res = expire_all(&lake);
    assert_int_equal(res.files.files[KN_FILE_DATA], 2); /* dev's own, and what lacked row 3 only */
    drop = (KnRefDrop){.name = "v1"};
    lake_ok(&lake, kn_ref_drop(lake.tbl, &drop, &move, &lake.err));
    res = expire_all(&lake);
    assert_int_equal(res.files.files[KN_FILE_DATA], 1);
    assert_string_equal(lake_text(&lake, "SELECT count(*) FROM {scan}"), "8");
    check_tight(&lake);
    lake_close(&lake);
}

static void a_staged_file_that_was_picked_stays(void **state)
{
    (void)state;
    Lake lake;
    KnRefMove move;
    KnWriteResult wrote;
    lake_open(&lake, &plain);
    append_one(&lake, 1);
    KnWriteOptions w1 = {.wap_id = "w1"}, w2 = {.wap_id = "w2"};
    lake_ok(&lake,
            kn_write_append(lake.tbl, lake.ses, "SELECT 2::BIGINT AS id", &w1, &wrote, &lake.err));
    lake_ok(&lake,
            kn_write_append(lake.tbl, lake.ses, "SELECT 3::BIGINT AS id", &w2, &wrote, &lake.err));
    append_one(&lake, 4);
    lake_ok(&lake, kn_table_publish(lake.tbl, "w1", &move, &lake.err));
    KnExpireResult res = expire_all(&lake);
    assert_int_equal(res.snapshots, 4); /* both staged ones too */
    assert_int_equal(res.files.files[KN_FILE_DATA], 1);
    assert_string_equal(lake_text(&lake, "SELECT list(id ORDER BY id) FROM {scan}"), "[1, 2, 4]");
    check_tight(&lake);
    lake_close(&lake);
}

static void merge_on_read_deletes_go_when_nothing_needs_them(void **state)
{
    (void)state;
    Lake lake;
    lake_open(&lake, &plain);
    lake_append(&lake, "SELECT i AS id FROM range(10) t(i)");
    KnPlan *plan = lake_plan(&lake);
    char positions[600];
    if (snprintf(positions, sizeof(positions), "SELECT '%s' AS file_path, 3::BIGINT AS pos",
                 plan->tasks[0].data->file.path) < 0)
        abort();
    kn_plan_free(plan);
    lake_row_delta(&lake, &(LakeRowDelta){.positions = positions, .operation = "delete"});
    lake_row_delta(&lake, &(LakeRowDelta){.keys = "SELECT 5::BIGINT AS id",
                                          .key_names = {"id"},
                                          .operation = "delete"});
    KnExpireResult res = expire_all(&lake);
    assert_int_equal(res.files.files[KN_FILE_POSITION_DELETES], 0);
    assert_string_equal(lake_text(&lake, "SELECT count(*) FROM {scan}"), "8");
    lake_delete(&lake, "id >= 0"); /* all: data and delete files are dropped */
    append_one(&lake, 1);
    res = expire_all(&lake);
    assert_int_equal(res.files.files[KN_FILE_DATA], 1);
    check_tight(&lake);
    lake_close(&lake);
}

/* ---- metadata ---- */

static int n_told;
static KnCode count_told(void *arg, const char *kind, const char *name, KnErr *err)
{
    (void)arg;
    (void)name;
    (void)err;
    n_told += !strcmp(kind, "partition-spec") || !strcmp(kind, "schema");
    return KN_OK;
}

static void unused_specs_and_schemas_go_when_asked(void **state)
{
    (void)state;
    Lake lake;
    lake_open(&lake, &plain);
    append_one(&lake, 1);
    KnPartitionSpec *spec = NULL;
    lake_ok(&lake, kn_partition_spec_parse_text(lake.tbl->arena, kn_metadata_schema(lake.tbl->md),
                                                KN_STR_LIT("bucket(4, id)"), &spec, &lake.err));
    KnUpdate updates[] = {{.kind = KN_UPDATE_ADD_SPEC, .spec = spec},
                          {.kind = KN_UPDATE_SET_DEFAULT_SPEC, .number = -1}};
    KnTableCommit change = {.updates = updates, .n_updates = 2};
    lake_ok(&lake, kn_table_commit(lake.tbl, &change, &lake.err));
    append_one(&lake, 2);
    KnExpireResult res = expire_with(&lake, (KnExpireOptions){.clean_metadata = true});
    assert_int_equal(res.specs, 0); /* the first file is of spec 0 still */
    lake_delete(&lake, "id = 1");
    append_one(&lake, 5); /* drops the manifest that tells of the deletion */
    n_told = 0;
    res = expire_with(
        &lake,
        (KnExpireOptions){.clean_metadata = true, .told = count_told, .sweep.dry_run = true});
    assert_int_equal(res.specs, 1);
    assert_int_equal(n_told, 1);
    assert_int_equal(lake.tbl->md->n_specs, 2);
    res = expire_with(&lake, (KnExpireOptions){.clean_metadata = true});
    assert_int_equal(res.specs, 1);
    assert_int_equal(lake.tbl->md->n_specs, 1);
    assert_string_equal(lake_text(&lake, "SELECT sum(id) FROM {scan}"), "7");
    check_tight(&lake);
    lake_close(&lake);
}

static void gc_disabled_refuses(void **state)
{
    (void)state;
    static const LakeTable off = {.schema = "id long", .props = {"gc.enabled", "false"}};
    Lake lake;
    KnExpireResult res;
    lake_open(&lake, &off);
    append_one(&lake, 1);
    append_one(&lake, 2);
    KnExpireOptions opts = {.older_than_ms = FUTURE};
    lake_fails(&lake, kn_table_expire(lake.tbl, lake.ses, &opts, &res, &lake.err), KN_E_REFUSED,
               "gc.enabled=false");
    assert_int_equal(lake.tbl->md->n_snapshots, 2);
    lake_close(&lake);
}

/* ---- failures and races ---- */

static void a_dry_run_changes_nothing(void **state)
{
    (void)state;
    Lake lake;
    lake_open(&lake, &plain);
    lake_append(&lake, "SELECT i AS id FROM range(10) t(i)");
    lake_delete(&lake, "id = 3");
    size_t files = lake_files_below(&lake, "");
    KnExpireResult dry = expire_with(&lake, (KnExpireOptions){.sweep.dry_run = true});
    assert_int_equal(lake_files_below(&lake, ""), files);
    assert_int_equal(lake.tbl->md->n_snapshots, 2);
    KnExpireResult wet = expire_all(&lake);
    assert_memory_equal(dry.files.files, wet.files.files, sizeof(dry.files.files));
    assert_int_equal(dry.files.bytes, wet.files.bytes);
    assert_int_equal(dry.snapshots, wet.snapshots);
    lake_close(&lake);
}

static void an_unknown_commit_removes_nothing(void **state)
{
    (void)state;
    Lake lake;
    KnExpireResult res;
    lake_open(&lake, &plain);
    lake_append(&lake, "SELECT i AS id FROM range(10) t(i)");
    lake_delete(&lake, "id = 3");
    size_t data = lake_files_below(&lake, "data");
    lake.fail_commit = KN_E_UNKNOWN;
    KnExpireOptions opts = {.older_than_ms = FUTURE};
    lake_fails(&lake, kn_table_expire(lake.tbl, lake.ses, &opts, &res, &lake.err), KN_E_UNKNOWN,
               "lost");
    assert_int_equal(lake_files_below(&lake, "data"), data);
    lake_close(&lake);
}

static void tag_the_first(Lake *lake)
{
    KnTable *other = lake_load(lake);
    char id[24];
    KnRefMove move;
    if (snprintf(id, sizeof(id), "%" PRId64, other->md->snapshots[0].snapshot_id) < 0)
        abort();
    KnRefSet tag = {.name = "late",
                    .at.snapshot = id,
                    .min_snapshots_to_keep = -1,
                    .max_snapshot_age_ms = -1,
                    .max_ref_age_ms = -1};
    lake_ok(lake, kn_ref_set(other, &tag, &move, &lake->err));
    kn_table_free(other);
}

static void a_tag_that_came_first_keeps_its_snapshot(void **state)
{
    (void)state;
    Lake lake;
    lake_open(&lake, &plain);
    lake_append(&lake, "SELECT i AS id FROM range(10) t(i)");
    lake_delete(&lake, "id = 3");
    append_one(&lake, 20);
    lake.before_commit = tag_the_first;
    KnExpireResult res = expire_all(&lake);
    assert_int_equal(res.snapshots, 1);
    assert_non_null(kn_metadata_find_ref(lake.tbl->md, KN_STR_LIT("late")));
    const KnSnapshot *tagged = kn_metadata_find_snapshot(
        lake.tbl->md, kn_metadata_find_ref(lake.tbl->md, KN_STR_LIT("late"))->snapshot_id);
    assert_string_equal(lake_text_at(&lake, tagged, "SELECT count(*) FROM {scan}"), "10");
    check_tight(&lake);
    lake_close(&lake);
}

static int64_t staged_id;
static void expire_behind_our_back(Lake *lake)
{
    KnTable *other = lake_load(lake);
    KnExpireOptions opts = {.older_than_ms = FUTURE};
    KnExpireResult res;
    lake_ok(lake, kn_table_expire(other, lake->ses, &opts, &res, &lake->err));
    kn_table_free(other);
}

static void what_expires_under_a_pick_is_not_published(void **state)
{
    (void)state;
    Lake lake;
    KnRefMove move;
    KnWriteResult wrote;
    lake_open(&lake, &plain);
    append_one(&lake, 1);
    KnWriteOptions w = {.wap_id = "w"};
    lake_ok(&lake,
            kn_write_append(lake.tbl, lake.ses, "SELECT 2::BIGINT AS id", &w, &wrote, &lake.err));
    staged_id = wrote.snapshot_id;
    append_one(&lake, 3);
    lake.before_commit = expire_behind_our_back;
    lake_fails(&lake, kn_table_cherry_pick(lake.tbl, staged_id, &move, &lake.err), KN_E_NOTFOUND,
               "no snapshot");
    assert_string_equal(lake_text(&lake, "SELECT list(id ORDER BY id) FROM {scan}"), "[1, 3]");
    check_tight(&lake);
    lake_close(&lake);
}

static void an_append_on_a_head_that_expired_meanwhile_starts_over(void **state)
{
    (void)state;
    Lake lake;
    KnWriteResult res;
    lake_open(&lake, &plain);
    append_one(&lake, 1);
    KnTable *stale = lake_load(&lake);
    append_one(&lake, 2);
    expire_all(&lake); /* takes the list of the snapshot that stale stands on */
    lake_ok(&lake,
            kn_write_append(stale, lake.ses, "SELECT 3::BIGINT AS id", NULL, &res, &lake.err));
    kn_table_free(stale);
    lake_ok(&lake, kn_table_refresh(lake.tbl, &lake.err));
    assert_string_equal(lake_text(&lake, "SELECT list(id ORDER BY id) FROM {scan}"), "[1, 2, 3]");
    check_tight(&lake);
    lake_close(&lake);
}

static void what_expired_snapshots_lost_already_is_passed_over(void **state)
{
    (void)state;
    Lake lake;
    lake_open(&lake, &plain);
    lake_append(&lake, "SELECT i AS id FROM range(10) t(i)");
    lake_delete(&lake, "id = 3");
    const KnSnapshot *first = &lake.tbl->md->snapshots[0];
    lake_ok(&lake, kn_io_remove(lake.io, kn_str(first->manifest_list), &lake.err));
    KnExpireResult res = expire_all(&lake);
    assert_int_equal(res.snapshots, 1);
    assert_int_equal(res.unreadable, 1);
    assert_int_equal(res.files.files[KN_FILE_DATA], 0); /* nobody knows them now: orphans */
    assert_string_equal(lake_text(&lake, "SELECT count(*) FROM {scan}"), "9");
    lake_close(&lake);
}

static void what_is_left_must_be_readable(void **state)
{
    (void)state;
    Lake lake;
    KnExpireResult res;
    lake_open(&lake, &plain);
    lake_append(&lake, "SELECT i AS id FROM range(10) t(i)");
    lake_delete(&lake, "id = 3");
    size_t data = lake_files_below(&lake, "data");
    const KnSnapshot *head = kn_metadata_snapshot(lake.tbl->md);
    lake_ok(&lake, kn_io_remove(lake.io, kn_str(head->manifest_list), &lake.err));
    KnExpireOptions opts = {.older_than_ms = FUTURE};
    lake_fails(&lake, kn_table_expire(lake.tbl, lake.ses, &opts, &res, &lake.err), KN_E_NOTFOUND,
               "its snapshots are expired");
    assert_int_equal(lake_files_below(&lake, "data"), data);
    lake_close(&lake);
}

static void files_of_others_are_left(void **state)
{
    (void)state;
    Lake lake;
    lake_open(&lake, &plain);
    KnFileSet *set = NULL;
    lake_ok(&lake, kn_file_set_open(lake.ses, &set, &lake.err));
    static const char *const names[] = {"/etc/passwd", "file:///etc/passwd", "s3://b/k"};
    for (size_t i = 0; i < 3; i++) {
        KnFileName name = {KN_FILE_DATA, kn_str(names[i]), 1};
        lake_ok(&lake, kn_file_set_add(set, &name, &lake.err));
    }
    KnSweepResult res = {0};
    KnSweep sweep = {.tbl = lake.tbl, .gone = set};
    lake_ok(&lake, kn_sweep(&sweep, &res, &lake.err));
    assert_int_equal(res.foreign, 2); /* the two spellings are one file */
    assert_int_equal(res.files[KN_FILE_DATA], 0);
    assert_non_null(strstr(res.first.msg, "outside"));
    kn_file_set_close(set);
    lake_close(&lake);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(appends_lose_only_their_lists),
        cmocka_unit_test(rewritten_files_go_with_the_snapshots_that_had_them),
        cmocka_unit_test(merged_manifests_go_and_their_files_stay),
        cmocka_unit_test(branches_and_tags_hold_their_files),
        cmocka_unit_test(a_staged_file_that_was_picked_stays),
        cmocka_unit_test(merge_on_read_deletes_go_when_nothing_needs_them),
        cmocka_unit_test(unused_specs_and_schemas_go_when_asked),
        cmocka_unit_test(gc_disabled_refuses),
        cmocka_unit_test(a_dry_run_changes_nothing),
        cmocka_unit_test(an_unknown_commit_removes_nothing),
        cmocka_unit_test(a_tag_that_came_first_keeps_its_snapshot),
        cmocka_unit_test(what_expires_under_a_pick_is_not_published),
        cmocka_unit_test(an_append_on_a_head_that_expired_meanwhile_starts_over),
        cmocka_unit_test(what_expired_snapshots_lost_already_is_passed_over),
        cmocka_unit_test(what_is_left_must_be_readable),
        cmocka_unit_test(files_of_others_are_left),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
