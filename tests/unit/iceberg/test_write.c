/* SPDX-License-Identifier: Apache-2.0 */
/* test_write.c - append, delete, overwrite: rows, files, summaries, conflicts, cleanup. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fault.h"
#include "base/path.h"
#include "support/tempdir.h"
#include "unit/iceberg/lake.h"

static const LakeTable plain = {.schema = "id long required, name string"};

static const KnSnapshot *head(Lake *lake)
{
    return kn_metadata_snapshot(lake->tbl->md);
}

static const char *summary(Lake *lake, const char *key)
{
    const char *text = json_string_value(json_object_get(head(lake)->summary, key));
    return text ? text : "-";
}

static size_t count_manifests(Lake *lake, bool deletes)
{
    KnManifestFile *files = NULL;
    size_t n = 0;
    size_t found = 0;
    lake_ok(lake,
            kn_manifest_list_read(lake->io, lake->tbl->arena, head(lake), &files, &n, &lake->err));
    for (size_t i = 0; i < n; i++)
        found += files[i].deletes == deletes;
    return found;
}

/* ---- append ---- */

static void appended_rows_are_read_back(void **state)
{
    (void)state;
    Lake lake;
    lake_open(&lake, &plain);
    KnWriteResult res =
        lake_append(&lake, "SELECT 1::BIGINT AS id, 'a' AS name UNION ALL SELECT 2, NULL");
    assert_int_equal(res.added_rows, 2);
    assert_int_equal(res.added_files, 1);
    assert_true(res.added_bytes > 0);
    assert_int_equal(res.snapshot_id, head(&lake)->snapshot_id);
    assert_string_equal(lake_rows(&lake), "{'id': 1, 'name': a} {'id': 2, 'name': NULL}");
    lake_append(&lake, "SELECT 'x' AS name, 3 AS id;  ");
    assert_string_equal(lake_text(&lake, "SELECT count(*) || ',' || sum(id) FROM {scan}"), "3,6");
    lake_close(&lake);
}

static void no_rows_make_no_snapshot(void **state)
{
    (void)state;
    Lake lake;
    lake_open(&lake, &plain);
    KnWriteResult res = lake_append(&lake, "SELECT 1 AS id WHERE false");
    assert_int_equal(res.snapshot_id, -1);
    assert_null(head(&lake));
    assert_int_equal(lake_files_below(&lake, "data"), 0);
    res = lake_delete(&lake, "id = 1");
    assert_int_equal(res.snapshot_id, -1);
    lake_append(&lake, "SELECT 1 AS id");
    res = lake_delete(&lake, "id = 2");
    assert_int_equal(res.snapshot_id, -1);
    assert_int_equal(lake.tbl->md->n_snapshots, 1);
    lake_close(&lake);
}

static void summaries_count_and_carry_totals(void **state)
{
    (void)state;
    Lake lake;
    lake_open(&lake, &plain);
    KnWriteResult res;
    const char *extra[] = {"app-id", "test"};
    KnWriteOptions opts = {.summary = extra, .n_summary = 1};
    lake_ok(&lake, kn_write_append(lake.tbl, lake.ses, "SELECT i AS id FROM range(10) t(i)", &opts,
                                   &res, &lake.err));
    assert_string_equal(head(&lake)->operation, "append");
    assert_string_equal(summary(&lake, "added-records"), "10");
    assert_string_equal(summary(&lake, "total-records"), "10");
    assert_string_equal(summary(&lake, "total-delete-files"), "0");
    assert_string_equal(summary(&lake, "app-id"), "test");
    assert_string_equal(summary(&lake, "deleted-records"), "-");
    lake_append(&lake, "SELECT i AS id FROM range(10, 15) t(i)");
    assert_string_equal(summary(&lake, "total-records"), "15");
    assert_string_equal(summary(&lake, "total-data-files"), "2");
    lake_delete(&lake, "id < 3");
    assert_string_equal(head(&lake)->operation, "overwrite");
    assert_string_equal(summary(&lake, "deleted-records"), "10");
    assert_string_equal(summary(&lake, "added-records"), "7");
    assert_string_equal(summary(&lake, "total-records"), "12");
    lake_delete(&lake, "id >= 10");
    assert_string_equal(head(&lake)->operation, "delete");
    assert_string_equal(summary(&lake, "total-records"), "7");
    assert_string_equal(summary(&lake, "total-data-files"), "1");
    lake_close(&lake);
}

/* ---- partitions ---- */

static void rows_go_to_their_partitions(void **state)
{
    (void)state;
    static const char *const specs[] = {"bo",
                                        "i",
                                        "f",
                                        "de",
                                        "da",
                                        "ts",
                                        "s",
                                        "u",
                                        "bi",
                                        "bucket(4, i)",
                                        "bucket(4, s)",
                                        "bucket(3, u)",
                                        "bucket(3, de)",
                                        "bucket(3, ts)",
                                        "bucket(3, bi)",
                                        "truncate(2, i)",
                                        "truncate(3, s)",
                                        "truncate(10, de)",
                                        "truncate(1, bi)",
                                        "year(ts)",
                                        "month(ts)",
                                        "day(ts)",
                                        "hour(ts)",
                                        "year(da)",
                                        "month(tz)",
                                        "day(tz)",
                                        "day(da), bucket(2, l)",
                                        "void(i), s",
                                        "st.a"};
    for (size_t i = 0; i < sizeof(specs) / sizeof(specs[0]); i++) {
        Lake lake;
        lake_open(&lake, &(LakeTable){.schema = LAKE_ALL_TYPES, .spec = specs[i]});
        lake_append(&lake, LAKE_ALL_VALUES, -3, 30);
        lake_append(&lake, "SELECT NULL AS i");
        assert_string_equal(lake_text(&lake, "SELECT count(*) || ',' || sum(i) FROM {scan}"),
                            "34,429");
        KnPlan *p = lake_plan(&lake);
        const KnPartitionSpec *spec = kn_metadata_spec(lake.tbl->md);
        for (size_t t = 0; t < p->n_tasks; t++) {
            KN_BUF_AUTO path;
            kn_buf_init(&path, 4096);
            const KnType *type = NULL;
            lake_ok(&lake, kn_partition_type(p->arena, spec, kn_metadata_schema(lake.tbl->md),
                                             &type, &lake.err));
            const KnDataFile *file = &p->tasks[t].data->file;
            lake_ok(&lake, kn_partition_path(&path, spec, type, file->partition, &lake.err));
            if (!strstr(file->path, path.data))
                fail_msg("%s: %s is not in folder %s", specs[i], file->path, path.data);
        }
        kn_plan_free(p);
        assert_string_equal(
            lake_text(&lake, "SELECT count(*) FROM {scan} WHERE i = 7 AND s = 'text 7'"), "1");
        lake_close(&lake);
    }
}

static void zeros_and_nan_are_partitions_of_their_own(void **state)
{
    (void)state;
    Lake lake;
    lake_open(&lake, &(LakeTable){.schema = "d double, i int", .spec = "d"});
    KnWriteResult res = lake_append(
        &lake, "SELECT * FROM (VALUES ('-0.0'::DOUBLE, 1), (0.0, 2), ('nan'::DOUBLE, 3), "
               "(NULL, 4), ('-nan'::DOUBLE, 5), ('-inf'::DOUBLE, 6)) t(d, i)");
    assert_int_equal(res.added_files, 5);
    assert_string_equal(
        lake_text(&lake, "SELECT string_agg(i || ':' || coalesce(d::VARCHAR, '-'), ' ' ORDER BY i) "
                         "FROM {scan}"),
        "1:-0.0 2:0.0 3:nan 4:- 5:-nan 6:-inf");
    lake_close(&lake);
}

static void a_sort_order_sorts_files(void **state)
{
    (void)state;
    Lake lake;
    lake_open(&lake,
              &(LakeTable){.schema = "id long, g int", .spec = "g", .order = "id desc nulls last"});
    lake_append(&lake, "SELECT (i * 7919) %% 1000 AS id, i %% 2 AS g FROM range(1000) t(i)");
    assert_string_equal(lake_text(&lake, "SELECT count(*) FROM (SELECT id - lag(id) OVER () AS x "
                                         "FROM (SELECT * FROM {scan} WHERE g = 1)) WHERE x >= 0"),
                        "0");
    KnPlan *p = lake_plan(&lake);
    assert_int_equal(p->tasks[0].data->file.sort_order_id, lake.tbl->md->default_sort_order_id);
    kn_plan_free(p);
    lake_close(&lake);
}

static void files_roll_at_the_target_size(void **state)
{
    (void)state;
    Lake lake;
    lake_open(&lake, &(LakeTable){.schema = "id long, s string",
                                  .props = {"write.target-file-size-bytes", "1000000",
                                            "write.parquet.compression-codec", "uncompressed"}});
    KnWriteResult res =
        lake_append(&lake, "SELECT i AS id, md5(i::VARCHAR) AS s FROM range(400000) t(i)");
    assert_true(res.added_files > 1);
    assert_int_equal(res.added_rows, 400000);
    assert_int_equal(lake_files_below(&lake, "data"), res.added_files);
    assert_string_equal(lake_text(&lake, "SELECT count(*) || ',' || sum(id) FROM {scan}"),
                        "400000,79999800000");
    lake_close(&lake);
}

/* ---- delete and overwrite ---- */

static void deletes_rewrite_only_what_they_must(void **state)
{
    (void)state;
    Lake lake;
    lake_open(&lake, &(LakeTable){.schema = "id long, g string", .spec = "g"});
    lake_append(&lake, "SELECT i AS id, 'g' || (i %% 4) AS g FROM range(100) t(i)");
    KnWriteResult res = lake_delete(&lake, "g = 'g1'");
    assert_int_equal(res.removed_files, 1);
    assert_int_equal(res.removed_rows, 25);
    assert_int_equal(res.added_files, 0);
    assert_string_equal(head(&lake)->operation, "delete");
    res = lake_delete(&lake, "id = 2 OR g IS NULL");
    assert_int_equal(res.removed_files, 1);
    assert_int_equal(res.removed_rows, 1);
    assert_int_equal(res.added_files, 1);
    assert_int_equal(res.added_rows, 0);
    assert_string_equal(head(&lake)->operation, "overwrite");
    assert_string_equal(lake_text(&lake, "SELECT count(*) || ',' || sum(id) FROM {scan}"),
                        "74,3723");
    res = lake_delete(&lake, "id >= 0");
    assert_int_equal(res.removed_rows, 74);
    assert_string_equal(lake_rows(&lake), "NULL");
    lake_close(&lake);
}

static void null_never_matches_a_delete(void **state)
{
    (void)state;
    Lake lake;
    lake_open(&lake, &plain);
    lake_append(&lake, "SELECT * FROM (VALUES (1, 'a'), (2, NULL), (3, 'b')) t(id, name)");
    lake_delete(&lake, "name <> 'a'");
    assert_string_equal(lake_rows(&lake), "{'id': 1, 'name': a} {'id': 2, 'name': NULL}");
    lake_delete(&lake, "NOT name = 'x'");
    assert_string_equal(lake_rows(&lake), "{'id': 2, 'name': NULL}");
    lake_delete(&lake, "name IS NULL");
    assert_string_equal(lake_rows(&lake), "NULL");
    lake_close(&lake);
}

static void an_overwrite_is_one_snapshot(void **state)
{
    (void)state;
    Lake lake;
    lake_open(&lake, &plain);
    lake_append(&lake, "SELECT i AS id, 'old' AS name FROM range(5) t(i)");
    KnWriteResult res = lake_overwrite(&lake, "id < 2", "SELECT 1 AS id, 'new' AS name");
    assert_int_equal(res.removed_rows, 2);
    assert_int_equal(res.added_rows, 1);
    assert_string_equal(head(&lake)->operation, "overwrite");
    assert_int_equal(lake.tbl->md->n_snapshots, 2);
    assert_string_equal(
        lake_text(&lake, "SELECT string_agg(id || name, ' ' ORDER BY id) FROM {scan}"),
        "1new 2old 3old 4old");
    lake_overwrite(&lake, "TRUE", "SELECT 9 AS id");
    assert_string_equal(lake_rows(&lake), "{'id': 9, 'name': NULL}");
    lake_close(&lake);
}

static void v3_rows_keep_their_ids(void **state)
{
    (void)state;
    Lake lake;
    lake_open(&lake, &(LakeTable){.schema = "id long", .version = 3});
    lake_append(&lake, "SELECT i AS id FROM range(4) t(i)");
    lake_append(&lake, "SELECT i AS id FROM range(4, 6) t(i)");
    assert_int_equal(head(&lake)->first_row_id, 4);
    assert_int_equal(head(&lake)->added_rows, 2);
    assert_int_equal(lake.tbl->md->next_row_id, 6);
    lake_delete(&lake, "id = 1");
    lake_append(&lake, "SELECT 6 AS id");
    KnPlan *p = lake_plan(&lake);
    KnRead *read = NULL;
    KnReadOptions opts = {.schema = kn_metadata_schema(lake.tbl->md), .with_lineage = true};
    KnScanTasks tasks = {p->tasks, p->n_tasks};
    lake_ok(&lake, kn_read_open(lake.tbl, lake.ses, tasks, &opts, &read, &lake.err));
    KN_BUF_AUTO sql;
    KN_BUF_AUTO out;
    kn_buf_init(&sql, 1 << 20);
    kn_buf_init(&out, 1 << 20);
    kn_buf_printf(&sql,
                  "SELECT string_agg(id || ':' || _last_updated_sequence_number || ':' || "
                  "(_row_id - id), ' ' ORDER BY id) FROM (%s) WHERE id < 6",
                  kn_read_sql(read));
    lake_ok(&lake, kn_session_query_text(lake.ses, sql.data, &out, &lake.err));
    assert_string_equal(out.data, "0:1:0 2:1:0 3:1:0 4:2:0 5:2:0");
    kn_buf_reset(&sql);
    kn_buf_printf(&sql, "SELECT count(DISTINCT _row_id) || ',' || count(*) FROM (%s)",
                  kn_read_sql(read));
    lake_ok(&lake, kn_session_query_text(lake.ses, sql.data, &out, &lake.err));
    assert_string_equal(out.data, "6,6");
    kn_read_close(read);
    kn_plan_free(p);
    lake_close(&lake);
}

/* ---- manifests ---- */

static void manifests_are_kept_and_merged(void **state)
{
    (void)state;
    for (int version = 2; version <= 3; version++) {
        Lake lake;
        lake_open(&lake, &(LakeTable){.schema = "id long",
                                      .version = version,
                                      .props = {"commit.manifest.min-count-to-merge", "4"}});
        for (int i = 0; i < 4; i++)
            lake_append(&lake, "SELECT %d AS id", i);
        assert_int_equal(count_manifests(&lake, false), 4);
        lake_append(&lake, "SELECT 4 AS id");
        assert_int_equal(count_manifests(&lake, false), 2);
        lake_delete(&lake, "id = 2");
        assert_string_equal(lake_text(&lake, "SELECT string_agg(id, ' ' ORDER BY id) FROM {scan}"),
                            "0 1 3 4");
        for (int i = 5; i < 12; i++)
            lake_append(&lake, "SELECT %d AS id", i);
        assert_true(count_manifests(&lake, false) <= 4);
        assert_string_equal(lake_text(&lake, "SELECT sum(id) || ',' || count(*) FROM {scan}"),
                            "64,11");
        lake_close(&lake);
    }
}

/* ---- races and failures ---- */

static void other_append(Lake *lake)
{
    KnTable *tbl = lake_load(lake);
    KnWriteResult res;
    KnSession *ses = NULL;
    lake_ok(lake, kn_session_open(lake->eng, &ses, &lake->err));
    lake_ok(lake,
            kn_write_append(tbl, ses, "SELECT 100 AS id, 'other' AS name", NULL, &res, &lake->err));
    kn_session_close(ses);
    kn_table_free(tbl);
}

static void other_delete(Lake *lake)
{
    KnTable *tbl = lake_load(lake);
    KnWriteResult res;
    KnSession *ses = NULL;
    lake_ok(lake, kn_session_open(lake->eng, &ses, &lake->err));
    lake_ok(lake, kn_write_delete(tbl, ses, lake_expr(lake, "id = 1"), NULL, &res, &lake->err));
    kn_session_close(ses);
    kn_table_free(tbl);
}

static const LakeTable hasty = {.schema = "id long required, name string",
                                .props = {"commit.retry.min-wait-ms", "1"}};

static void a_lost_race_is_rebased(void **state)
{
    (void)state;
    Lake lake;
    lake_open(&lake, &hasty);
    lake_append(&lake, "SELECT i AS id FROM range(3) t(i)");
    lake.before_commit = other_append;
    lake_append(&lake, "SELECT 3 AS id");
    assert_string_equal(lake_text(&lake, "SELECT count(*) FROM {scan}"), "5");
    assert_int_equal(lake.tbl->md->n_snapshots, 3);
    lake.before_commit = other_append;
    lake_delete(&lake, "id = 2");
    assert_string_equal(lake_text(&lake, "SELECT string_agg(id, ' ' ORDER BY id) FROM {scan}"),
                        "0 1 3 100 100");
    assert_int_equal(lake_files_below(&lake, "data"), 5);
    lake_close(&lake);
}

static void a_conflict_stops_a_delete(void **state)
{
    (void)state;
    Lake lake;
    lake_open(&lake, &hasty);
    lake_append(&lake, "SELECT i AS id FROM range(3) t(i)");
    KnWriteResult res;
    size_t before = lake_files_below(&lake, "data");
    lake.before_commit = other_append;
    lake_fails(
        &lake,
        kn_write_delete(lake.tbl, lake.ses, lake_expr(&lake, "id >= 2"), NULL, &res, &lake.err),
        KN_E_CONFLICT, "added rows that the filter may match");
    assert_int_equal(lake_files_below(&lake, "data"), before + 1);
    lake.before_commit = other_delete;
    lake_fails(
        &lake,
        kn_write_delete(lake.tbl, lake.ses, lake_expr(&lake, "id = 2"), NULL, &res, &lake.err),
        KN_E_CONFLICT, "run the operation again");
    lake_ok(&lake, kn_table_refresh(lake.tbl, &lake.err));
    assert_string_equal(lake_text(&lake, "SELECT string_agg(id, ' ' ORDER BY id) FROM {scan}"),
                        "0 2 100");
    lake_close(&lake);
}

static void an_unknown_outcome_removes_nothing(void **state)
{
    (void)state;
    Lake lake;
    lake_open(&lake, &plain);
    lake.fail_commit = KN_E_UNKNOWN;
    lake_fails(&lake, lake_append_code(&lake, "SELECT 1 AS id"), KN_E_UNKNOWN, "answer was lost");
    lake_ok(&lake, kn_table_refresh(lake.tbl, &lake.err));
    assert_string_equal(lake_text(&lake, "SELECT count(*) FROM {scan}"), "1");
    lake_close(&lake);
}

static void a_failure_leaves_no_file(void **state)
{
    (void)state;
    static const char *const points[] = {"write-data-written", "write-manifest-written",
                                         "write-list-written", "write-before-commit"};
    Lake lake;
    lake_open(&lake, &plain);
    lake_append(&lake, "SELECT 1 AS id");
    size_t before = lake_files_below(&lake, "");
    for (size_t i = 0; i < sizeof(points) / sizeof(points[0]); i++) {
        char spec[64];
        assert_true(snprintf(spec, sizeof(spec), "%s:1:fail", points[i]) > 0);
        lake_ok(&lake, kn_fault_set(spec, NULL, &lake.err));
        KnWriteResult res;
        lake_fails(&lake, lake_append_code(&lake, "SELECT 2 AS id"), KN_E_IO, points[i]);
        lake_ok(&lake, kn_fault_set(spec, NULL, &lake.err));
        KnOverwrite change = {lake_expr(&lake, "id = 1"), "SELECT 3 AS id"};
        lake_fails(&lake, kn_write_overwrite(lake.tbl, lake.ses, &change, NULL, &res, &lake.err),
                   KN_E_IO, points[i]);
        lake_ok(&lake, kn_fault_set(NULL, NULL, &lake.err));
        assert_int_equal(lake_files_below(&lake, ""), before);
    }
    lake_fails(&lake,
               lake_append_code(&lake,
                                "SELECT i AS id, CASE WHEN i = 199999 THEN error('late') ELSE "
                                "'x' END AS name FROM range(200000) t(i)"),
               KN_E_INVAL, "late");
    assert_int_equal(lake_files_below(&lake, ""), before);
    assert_string_equal(lake_text(&lake, "SELECT count(*) FROM {scan}"), "1");
    lake_close(&lake);
}

static void branches_are_written_apart(void **state)
{
    (void)state;
    Lake lake;
    lake_open(&lake, &plain);
    lake_append(&lake, "SELECT 1 AS id");
    int64_t main_id = head(&lake)->snapshot_id;
    KnWriteOptions opts = {.branch = "dev"};
    KnWriteResult res;
    for (int i = 0; i < 2; i++)
        lake_ok(&lake,
                kn_write_append(lake.tbl, lake.ses, "SELECT 2 AS id", &opts, &res, &lake.err));
    assert_int_equal(head(&lake)->snapshot_id, main_id);
    const KnRef *ref = kn_metadata_find_ref(lake.tbl->md, KN_STR_LIT("dev"));
    assert_int_equal(ref->snapshot_id, res.snapshot_id);
    const KnSnapshot *snap = kn_metadata_find_snapshot(lake.tbl->md, ref->snapshot_id);
    assert_string_equal(lake_text_at(&lake, snap, "SELECT count(*) FROM {scan}"), "3");
    lake_close(&lake);
}

static bool always(void)
{
    return true;
}

static void cancelling_stops_before_the_commit(void **state)
{
    (void)state;
    Lake lake;
    lake_open(&lake, &plain);
    KnWriteOptions opts = {.cancelled = always};
    KnWriteResult res;
    lake_fails(&lake, kn_write_append(lake.tbl, lake.ses, "SELECT 2 AS id", &opts, &res, &lake.err),
               KN_E_CANCELLED, "cancelled");
    assert_null(head(&lake));
    assert_int_equal(lake_files_below(&lake, "data"), 0);
    lake_close(&lake);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(appended_rows_are_read_back),
        cmocka_unit_test(no_rows_make_no_snapshot),
        cmocka_unit_test(summaries_count_and_carry_totals),
        cmocka_unit_test(rows_go_to_their_partitions),
        cmocka_unit_test(zeros_and_nan_are_partitions_of_their_own),
        cmocka_unit_test(a_sort_order_sorts_files),
        cmocka_unit_test(files_roll_at_the_target_size),
        cmocka_unit_test(deletes_rewrite_only_what_they_must),
        cmocka_unit_test(null_never_matches_a_delete),
        cmocka_unit_test(an_overwrite_is_one_snapshot),
        cmocka_unit_test(v3_rows_keep_their_ids),
        cmocka_unit_test(manifests_are_kept_and_merged),
        cmocka_unit_test(a_lost_race_is_rebased),
        cmocka_unit_test(a_conflict_stops_a_delete),
        cmocka_unit_test(an_unknown_outcome_removes_nothing),
        cmocka_unit_test(a_failure_leaves_no_file),
        cmocka_unit_test(branches_are_written_apart),
        cmocka_unit_test(cancelling_stops_before_the_commit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
