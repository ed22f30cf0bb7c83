/* SPDX-License-Identifier: Apache-2.0 */
/* labels: slow */
/* test_write_mor.c - delete and overwrite, merge-on-read: delete files and vectors, what they
 * replace, conflicts, cleanup, and random histories against a model. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fault.h"
#include "base/random.h"
#include "unit/iceberg/lake.h"

#define MERGE                                                                                      \
    "write.delete.mode", "merge-on-read", "write.update.mode", "merge-on-read",                    \
        "commit.retry.min-wait-ms", "1"

static const KnSnapshot *head(Lake *lake)
{
    return kn_metadata_snapshot(lake->tbl->md);
}

static const char *summary(Lake *lake, const char *key)
{
    const char *text = json_string_value(json_object_get(head(lake)->summary, key));
    return text ? text : "-";
}

static const char *ids(Lake *lake)
{
    return lake_text(lake, "SELECT string_agg(id, ' ' ORDER BY id) FROM {scan}");
}

/* Live delete files of the current snapshot, each counted once. */
static size_t live_deletes(Lake *lake)
{
    KnManifestFile *files = NULL;
    size_t n = 0;
    int64_t found = 0;
    lake_ok(lake,
            kn_manifest_list_read(lake->io, lake->tbl->arena, head(lake), &files, &n, &lake->err));
    for (size_t i = 0; i < n; i++)
        found += files[i].deletes ? files[i].added_files + files[i].existing_files : 0;
    return (size_t)found;
}

/* ---- v2 ---- */

static void a_delete_file_says_which_rows_go(void **state)
{
    (void)state;
    Lake lake;
    lake_open(&lake, &(LakeTable){.schema = "id long", .props = {MERGE}});
    lake_append(&lake, "SELECT i AS id FROM range(10) t(i)");
    KnWriteResult res = lake_delete(&lake, "id IN (2, 5)");
    assert_int_equal(res.removed_rows, 2);
    assert_int_equal(res.removed_files, 0);
    assert_int_equal(res.added_files, 0);
    assert_int_equal(res.delete_files, 1);
    assert_string_equal(head(&lake)->operation, "delete");
    assert_string_equal(summary(&lake, "added-position-delete-files"), "1");
    assert_string_equal(summary(&lake, "added-position-deletes"), "2");
    assert_string_equal(summary(&lake, "total-records"), "10");
    assert_string_equal(ids(&lake), "0 1 3 4 6 7 8 9");
    KnPlan *plan = lake_plan(&lake);
    const KnManifestEntry *entry = plan->tasks[0].deletes[0];
    const char *path = plan->tasks[0].data->file.path;
    assert_int_equal(entry->sequence_number, 2);
    assert_int_equal(entry->file.sort_order_id, -1);
    assert_string_equal(entry->file.referenced_data_file, path);
    assert_int_equal(entry->file.n_lower, 1);
    assert_memory_equal(entry->file.lower[0].bytes.ptr, path, strlen(path));
    assert_memory_equal(entry->file.upper[0].bytes.ptr, path, strlen(path));
    kn_plan_free(plan);
    lake_delete(&lake, "id < 4");
    assert_string_equal(ids(&lake), "4 6 7 8 9");
    assert_int_equal(live_deletes(&lake), 2);
    res = lake_delete(&lake, "id = 2");
    assert_int_equal(res.snapshot_id, -1);
    lake_close(&lake);
}

static void files_that_lose_every_row_go_whole(void **state)
{
    (void)state;
    for (int version = 2; version <= 3; version++) {
        Lake lake;
        lake_open(&lake,
                  &(LakeTable){.schema = "id long, n long", .version = version, .props = {MERGE}});
        lake_append(&lake, "SELECT i AS id, i %% 3 AS n FROM range(10) t(i)");
        lake_append(&lake, "SELECT i AS id, 7 AS n FROM range(10, 12) t(i)");
        lake_delete(&lake, "id IN (0, 11)");
        assert_int_equal(live_deletes(&lake), version == 2 ? 1 : 2);
        KnWriteResult res = lake_delete(&lake, "n = 7 OR id = 9");
        assert_int_equal(res.removed_files, 1);
        assert_int_equal(res.removed_rows, 3); /* of the file that went unread: as stored */
        assert_int_equal(res.delete_files, 1);
        assert_string_equal(ids(&lake), "1 2 3 4 5 6 7 8");
        if (version == 3)
            assert_int_equal(live_deletes(&lake), 1);
        res = lake_delete(&lake, "TRUE");
        assert_int_equal(res.removed_files, 1);
        assert_int_equal(res.delete_files, 0);
        KnPlan *plan = lake_plan(&lake);
        assert_int_equal(plan->n_tasks, 0);
        kn_plan_free(plan);
        lake_close(&lake);
    }
}

static void delete_files_follow_partitions_or_files(void **state)
{
    (void)state;
    static const char *const granularities[] = {"partition", "file"};
    for (size_t g = 0; g < 2; g++) {
        Lake lake;
        lake_open(&lake,
                  &(LakeTable){.schema = "id long, s string",
                               .spec = "s",
                               .props = {MERGE, "write.delete.granularity", granularities[g]}});
        for (int i = 0; i < 3; i++)
            lake_append(&lake,
                        "SELECT i AS id, CASE i %% 3 WHEN 0 THEN 'a/b' WHEN 1 THEN '' END "
                        "AS s FROM range(%d, %d) t(i)",
                        i * 12, i * 12 + 12);
        KnWriteResult res = lake_delete(&lake, "id IN (1, 2, 3, 4, 13, 14, 15, 26)");
        /* Null and the empty text are partitions of their own. */
        assert_int_equal(res.delete_files, g == 0 ? 3 : 7);
        assert_string_equal(summary(&lake, "changed-partition-count"), "3");
        assert_string_equal(lake_text(&lake, "SELECT count(*) || ',' || sum(id) FROM {scan}"),
                            "28,552");
        KnPlan *plan = lake_plan(&lake);
        for (size_t i = 0; i < plan->n_tasks; i++) {
            const KnScanTask *task = &plan->tasks[i];
            for (size_t d = 0; d < task->n_deletes; d++) {
                const KnDataFile *file = &task->deletes[d]->file;
                assert_int_equal(file->n_partition, 1);
                assert_int_equal(file->partition[0].null, task->data->file.partition[0].null);
                if (g == 1)
                    assert_string_equal(file->referenced_data_file, task->data->file.path);
            }
        }
        kn_plan_free(plan);
        lake_close(&lake);
    }
}

/* ---- v3 ---- */

static void a_file_has_one_vector(void **state)
{
    (void)state;
    Lake lake;
    lake_open(&lake, &(LakeTable){.schema = "id long", .version = 3, .props = {MERGE}});
    lake_append(&lake, "SELECT i AS id FROM range(200000) t(i)");
    lake_append(&lake, "SELECT i AS id FROM range(200000, 200010) t(i)");
    lake_delete(&lake, "id >= 100000 AND id < 200003");
    assert_string_equal(summary(&lake, "added-dvs"), "2");
    assert_string_equal(summary(&lake, "added-position-deletes"), "100003");
    KnPlan *plan = lake_plan(&lake);
    assert_string_equal(plan->tasks[0].deletes[0]->file.path, plan->tasks[1].deletes[0]->file.path);
    kn_plan_free(plan);
    lake_delete(&lake, "id = 5");
    assert_string_equal(summary(&lake, "added-dvs"), "1");
    assert_string_equal(summary(&lake, "removed-dvs"), "1");
    assert_string_equal(summary(&lake, "added-position-deletes"), "100001");
    assert_string_equal(summary(&lake, "removed-position-deletes"), "100000");
    assert_string_equal(summary(&lake, "total-position-deletes"), "100004");
    assert_int_equal(live_deletes(&lake), 2);
    assert_string_equal(lake_text(&lake, "SELECT count(*) || ',' || sum(id) FROM {scan}"),
                        "100006,5001350037");
    lake_close(&lake);
}

static void vectors_spread_over_files_of_the_target_size(void **state)
{
    (void)state;
    Lake lake;
    lake_open(&lake, &(LakeTable){.schema = "id long",
                                  .version = 3,
                                  .props = {MERGE, "write.delete.target-file-size-bytes", "60"}});
    for (int i = 0; i < 4; i++)
        lake_append(&lake, "SELECT i AS id FROM range(%d, %d) t(i)", i * 10, i * 10 + 10);
    KnWriteResult res = lake_delete(&lake, "id IN (1, 11, 21, 31)");
    assert_int_equal(res.delete_files, 4);
    KnPlan *plan = lake_plan(&lake);
    const char *first = plan->tasks[0].deletes[0]->file.path;
    size_t same = 0;
    for (size_t i = 0; i < plan->n_tasks; i++)
        same += strcmp(plan->tasks[i].deletes[0]->file.path, first) == 0;
    assert_in_range(same, 1, 2);
    kn_plan_free(plan);
    assert_string_equal(lake_text(&lake, "SELECT count(*) FROM {scan}"), "36");
    lake_close(&lake);
}

static void upgrade(Lake *lake)
{
    KnUpdate update = {.kind = KN_UPDATE_UPGRADE_FORMAT_VERSION, .number = 3};
    KnTableCommit commit = {.updates = &update, .n_updates = 1};
    lake_ok(lake, kn_table_commit(lake->tbl, &commit, &lake->err));
}

static void a_vector_takes_over_from_position_deletes(void **state)
{
    (void)state;
    Lake lake;
    lake_open(&lake, &(LakeTable){.schema = "id long", .props = {MERGE}});
    lake_append(&lake, "SELECT i AS id FROM range(10) t(i)");
    lake_append(&lake, "SELECT i AS id FROM range(10, 20) t(i)");
    lake_delete(&lake, "id = 1");        /* about one file: to be replaced */
    lake_delete(&lake, "id IN (2, 12)"); /* about two: to stay */
    lake_row_delta(&lake, &(LakeRowDelta){.keys = "SELECT 3::BIGINT AS id",
                                          .key_names = {"id"},
                                          .operation = "delete"});
    upgrade(&lake);
    lake_delete(&lake, "id IN (4, 5)");
    assert_string_equal(ids(&lake), "0 6 7 8 9 10 11 13 14 15 16 17 18 19");
    assert_string_equal(summary(&lake, "added-dvs"), "1");
    assert_string_equal(summary(&lake, "removed-position-delete-files"), "1");
    /* 1, 2, 4, 5: the row that an equality delete took is not among them. */
    assert_string_equal(summary(&lake, "added-position-deletes"), "4");
    assert_int_equal(live_deletes(&lake), 3);
    lake_close(&lake);
}

/* ---- overwrite, modes ---- */

static void an_overwrite_keeps_the_files_it_can(void **state)
{
    (void)state;
    for (int version = 2; version <= 3; version++) {
        Lake lake;
        lake_open(&lake, &(LakeTable){
                             .schema = "id long, s string", .version = version, .props = {MERGE}});
        lake_append(&lake, "SELECT i AS id, 'old' AS s FROM range(4) t(i)");
        KnWriteResult res =
            lake_overwrite(&lake, "id = 1", "SELECT 1 AS id, 'new' AS s UNION ALL SELECT 9, 'new'");
        assert_int_equal(res.added_rows, 2);
        assert_int_equal(res.removed_rows, 1);
        assert_int_equal(res.delete_files, 1);
        assert_string_equal(head(&lake)->operation, "overwrite");
        assert_string_equal(
            lake_text(&lake, "SELECT string_agg(id || s, ' ' ORDER BY id) FROM {scan}"),
            "0old 1new 2old 3old 9new");
        lake_close(&lake);
    }
}

static void the_mode_is_asked_for_or_the_tables(void **state)
{
    (void)state;
    Lake lake;
    lake_open(&lake, &(LakeTable){.schema = "id long",
                                  .props = {"write.delete.mode", "Merge-On-Read",
                                            "write.update.mode", "both"}});
    lake_append(&lake, "SELECT i AS id FROM range(10) t(i)");
    KnWriteResult res;
    KnWriteOptions copy = {.mode = KN_ROW_MODE_COPY_ON_WRITE};
    lake_ok(&lake, kn_write_delete(lake.tbl, lake.ses, lake_expr(&lake, "id = 1"), &copy, &res,
                                   &lake.err));
    assert_int_equal(res.delete_files, 0);
    assert_int_equal(lake_delete(&lake, "id = 2").delete_files, 1);
    KnOverwrite change = {lake_expr(&lake, "id = 3"), "SELECT 3 AS id"};
    lake_fails(&lake, kn_write_overwrite(lake.tbl, lake.ses, &change, NULL, &res, &lake.err),
               KN_E_INVAL, "property write.update.mode is 'both'");
    KnWriteOptions merge = {.mode = KN_ROW_MODE_MERGE_ON_READ};
    lake_ok(&lake, kn_write_overwrite(lake.tbl, lake.ses, &change, &merge, &res, &lake.err));
    assert_int_equal(res.delete_files, 1);
    assert_string_equal(ids(&lake), "0 3 4 5 6 7 8 9");
    lake_close(&lake);
}

/* ---- races ---- */

static const char *others_where;

static void with_another(Lake *lake, KnCode (*act)(KnTable *, KnSession *, Lake *))
{
    KnTable *tbl = lake_load(lake);
    KnSession *ses = NULL;
    lake_ok(lake, kn_session_open(lake->eng, &ses, &lake->err));
    lake_ok(lake, act(tbl, ses, lake));
    kn_session_close(ses);
    kn_table_free(tbl);
}

static KnCode delete_too(KnTable *tbl, KnSession *ses, Lake *lake)
{
    KnWriteResult res;
    return kn_write_delete(tbl, ses, lake_expr(lake, others_where), NULL, &res, &lake->err);
}

static KnCode append_too(KnTable *tbl, KnSession *ses, Lake *lake)
{
    KnWriteResult res;
    return kn_write_append(tbl, ses, "SELECT 100 AS id", NULL, &res, &lake->err);
}

static KnCode rewrite_too(KnTable *tbl, KnSession *ses, Lake *lake)
{
    KnWriteResult res;
    KnWriteOptions copy = {.mode = KN_ROW_MODE_COPY_ON_WRITE};
    return kn_write_delete(tbl, ses, lake_expr(lake, others_where), &copy, &res, &lake->err);
}

static void other_delete(Lake *lake)
{
    with_another(lake, delete_too);
}

static void other_append(Lake *lake)
{
    with_another(lake, append_too);
}

static void other_rewrite(Lake *lake)
{
    with_another(lake, rewrite_too);
}

static void other_upgrades_only(Lake *lake)
{
    KnTable *tbl = lake_load(lake);
    KnUpdate update = {.kind = KN_UPDATE_UPGRADE_FORMAT_VERSION, .number = 3};
    KnTableCommit commit = {.updates = &update, .n_updates = 1};
    lake_ok(lake, kn_table_commit(tbl, &commit, &lake->err));
    kn_table_free(tbl);
}

static void other_upgrade(Lake *lake)
{
    other_upgrades_only(lake);
    other_append(lake);
}

static KnCode try_delete(Lake *lake, const char *where)
{
    KnWriteResult res;
    return kn_write_delete(lake->tbl, lake->ses, lake_expr(lake, where), NULL, &res, &lake->err);
}

static void deletes_of_one_file_add_up_in_v2_only(void **state)
{
    (void)state;
    for (int version = 2; version <= 3; version++) {
        Lake lake;
        lake_open(&lake, &(LakeTable){.schema = "id long", .version = version, .props = {MERGE}});
        lake_append(&lake, "SELECT i AS id FROM range(5) t(i)");
        others_where = "id = 1";
        lake.before_commit = other_delete;
        if (version == 2)
            lake_ok(&lake, try_delete(&lake, "id IN (1, 2)"));
        else
            lake_fails(&lake, try_delete(&lake, "id IN (1, 2)"), KN_E_CONFLICT,
                       "another writer changed a file");
        lake_ok(&lake, kn_table_refresh(lake.tbl, &lake.err));
        assert_string_equal(ids(&lake), version == 2 ? "0 3 4" : "0 2 3 4");
        others_where = "id = 3";
        lake.before_commit = other_delete;
        KnWriteResult res;
        KnOverwrite change = {lake_expr(&lake, "id = 4"), "SELECT 4 AS id"};
        lake_fails(&lake, kn_write_overwrite(lake.tbl, lake.ses, &change, NULL, &res, &lake.err),
                   KN_E_CONFLICT, "another writer changed a file");
        lake_close(&lake);
    }
}

static void races_that_touch_the_same_rows_are_conflicts(void **state)
{
    (void)state;
    for (int version = 2; version <= 3; version++) {
        Lake lake;
        lake_open(&lake, &(LakeTable){.schema = "id long", .version = version, .props = {MERGE}});
        lake_append(&lake, "SELECT i AS id FROM range(5) t(i)");
        lake_append(&lake, "SELECT i AS id FROM range(5, 9) t(i)");
        size_t before = lake_files_below(&lake, "data");
        lake.before_commit = other_append;
        lake_ok(&lake, try_delete(&lake, "id = 1"));
        lake.before_commit = other_append;
        lake_fails(&lake, try_delete(&lake, "id >= 4 AND id <> 7"), KN_E_CONFLICT,
                   "added rows that the filter may match");
        assert_int_equal(lake_files_below(&lake, "data"), before + 3);
        others_where = "id = 2";
        lake.before_commit = other_rewrite; /* the data file is gone */
        lake_fails(&lake, try_delete(&lake, "id = 3"), KN_E_CONFLICT,
                   "another writer changed a file");
        others_where = "id = 6";
        lake.before_commit = other_rewrite; /* of another file */
        lake_ok(&lake, try_delete(&lake, "id = 3"));
        assert_string_equal(ids(&lake), "0 4 5 7 8 100 100");
        if (version == 2) {
            lake.before_commit = other_upgrade;
            lake_fails(&lake, try_delete(&lake, "id = 4"), KN_E_CONFLICT,
                       "was upgraded to format version 3");
        }
        lake_close(&lake);
    }
}

static void an_upgrade_voids_deletes_and_nothing_else(void **state)
{
    (void)state;
    Lake lake;
    lake_open(&lake, &(LakeTable){.schema = "id long", .version = 2, .props = {MERGE}});
    lake_append(&lake, "SELECT i AS id FROM range(3) t(i)");
    lake.before_commit = other_upgrades_only;
    lake_fails(&lake, try_delete(&lake, "id = 1"), KN_E_CONFLICT,
               "was upgraded to format version 3");
    lake_close(&lake);
    lake_open(&lake, &(LakeTable){.schema = "id long", .version = 2, .props = {MERGE}});
    lake_append(&lake, "SELECT i AS id FROM range(3) t(i)");
    lake.before_commit = other_upgrades_only;
    lake_append(&lake, "SELECT 3 AS id");
    assert_int_equal(lake.tbl->md->format_version, 3);
    assert_string_equal(ids(&lake), "0 1 2 3");
    assert_int_equal(lake.tbl->md->next_row_id, 4);
    lake_close(&lake);
}

static void a_failure_leaves_no_file(void **state)
{
    (void)state;
    static const char *const points[] = {"write-data-written", "write-manifest-written",
                                         "write-list-written", "write-before-commit"};
    for (int version = 2; version <= 3; version++) {
        Lake lake;
        lake_open(&lake, &(LakeTable){.schema = "id long", .version = version, .props = {MERGE}});
        lake_append(&lake, "SELECT i AS id FROM range(5) t(i)");
        size_t before = lake_files_below(&lake, "");
        for (size_t i = 0; i < sizeof(points) / sizeof(points[0]); i++) {
            char spec[64];
            assert_true(snprintf(spec, sizeof(spec), "%s:1:fail", points[i]) > 0);
            lake_ok(&lake, kn_fault_set(spec, NULL, &lake.err));
            lake_fails(&lake, try_delete(&lake, "id = 1"), KN_E_IO, points[i]);
            lake_ok(&lake, kn_fault_set(NULL, NULL, &lake.err));
            assert_int_equal(lake_files_below(&lake, ""), before);
        }
        lake.fail_commit = KN_E_UNKNOWN;
        lake_fails(&lake, try_delete(&lake, "id = 1"), KN_E_UNKNOWN, "answer was lost");
        lake_ok(&lake, kn_table_refresh(lake.tbl, &lake.err));
        assert_string_equal(ids(&lake), "0 2 3 4");
        lake_close(&lake);
    }
}

/* ---- a model ---- */

/* The rows as a table of the engine, changed by the same words. */
static void model_is(Lake *lake)
{
    const char *got = lake_text(lake, "SELECT count(*) || ',' || coalesce(sum(id), 0) || ',' || "
                                      "bit_xor(hash(id, g, s)) FROM {scan}");
    KN_BUF_AUTO want;
    kn_buf_init(&want, 4096);
    lake_ok(lake, kn_session_query_text(lake->ses,
                                        "SELECT count(*) || ',' || coalesce(sum(id), 0) || ',' || "
                                        "bit_xor(hash(id, g, s)) FROM model",
                                        &want, &lake->err));
    assert_string_equal(got, want.data);
}

static void random_filter(KnRng *rng, char *buf, size_t size)
{
    int low = (int)kn_rng_below(rng, 4000);
    int width = (int)kn_rng_below(rng, kn_rng_below(rng, 4) == 0 ? 3000 : 60);
    int len = 0;
    switch (kn_rng_below(rng, 4)) {
    case 0:
        len = snprintf(buf, size, "g = %d", (int)kn_rng_below(rng, 5));
        break;
    case 1:
        len = snprintf(buf, size, "s = 'x%d' OR id = %d", (int)kn_rng_below(rng, 40), low);
        break;
    default:
        len = snprintf(buf, size, "id BETWEEN %d AND %d AND g <> %d", low, low + width,
                       (int)kn_rng_below(rng, 5));
        break;
    }
    assert_in_range(len, 1, size - 1);
}

static void random_step(Lake *lake, KnRng *rng, int step)
{
    char where[200];
    char rows[400];
    random_filter(rng, where, sizeof(where));
    assert_true(snprintf(rows, sizeof(rows),
                         "SELECT i AS id, (i * 7 + %d) %% 5 AS g, 'x' || (i %% 40) AS s FROM "
                         "range(%d, %d) t(i)",
                         step, step * 100, step * 100 + 1 + (int)kn_rng_below(rng, 150)) > 0);
    KnWriteResult res;
    KnWriteOptions opts = {.mode = kn_rng_below(rng, 4) == 0 ? KN_ROW_MODE_COPY_ON_WRITE
                                                             : KN_ROW_MODE_MERGE_ON_READ};
    uint64_t what = step < 3 ? 0 : kn_rng_below(rng, 4);
    if (what == 0) {
        lake_append(lake, "%s", rows);
    } else if (what == 1) {
        KnOverwrite change = {lake_expr(lake, where), rows};
        lake_ok(lake, kn_write_overwrite(lake->tbl, lake->ses, &change, &opts, &res, &lake->err));
    } else {
        lake_ok(lake, kn_write_delete(lake->tbl, lake->ses, lake_expr(lake, where), &opts, &res,
                                      &lake->err));
    }
    if (what > 0)
        lake_exec(lake, "DELETE FROM model WHERE %s", where);
    if (what < 2)
        lake_exec(lake, "INSERT INTO model %s", rows);
}

static void random_histories_equal_the_model(void **state)
{
    (void)state;
    static const char *const specs[] = {NULL, "g", "bucket(3, id), truncate(1, s)"};
    uint64_t seed = (uint64_t)kn_random_id();
    print_message("seed %llu\n", (unsigned long long)seed);
    KnRng rng = {seed};
    for (int round = 0; round < 3; round++) {
        Lake lake;
        lake_open(&lake, &(LakeTable){.schema = "id long, g int, s string",
                                      .spec = specs[round % 3],
                                      .version = 2 + round % 2,
                                      .props = {"write.delete.granularity",
                                                round % 2 ? "file" : "partition",
                                                "commit.manifest.min-count-to-merge", "5"}});
        lake_exec(&lake, "CREATE OR REPLACE TEMP TABLE model(id BIGINT, g INTEGER, s VARCHAR)");
        for (int step = 0; step < 12; step++) {
            random_step(&lake, &rng, step);
            model_is(&lake);
            if (round == 2 && step == 7)
                upgrade(&lake);
        }
        lake_close(&lake);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_delete_file_says_which_rows_go),
        cmocka_unit_test(files_that_lose_every_row_go_whole),
        cmocka_unit_test(delete_files_follow_partitions_or_files),
        cmocka_unit_test(a_file_has_one_vector),
        cmocka_unit_test(vectors_spread_over_files_of_the_target_size),
        cmocka_unit_test(a_vector_takes_over_from_position_deletes),
        cmocka_unit_test(an_overwrite_keeps_the_files_it_can),
        cmocka_unit_test(the_mode_is_asked_for_or_the_tables),
        cmocka_unit_test(deletes_of_one_file_add_up_in_v2_only),
        cmocka_unit_test(races_that_touch_the_same_rows_are_conflicts),
        cmocka_unit_test(an_upgrade_voids_deletes_and_nothing_else),
        cmocka_unit_test(a_failure_leaves_no_file),
        cmocka_unit_test(random_histories_equal_the_model),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
