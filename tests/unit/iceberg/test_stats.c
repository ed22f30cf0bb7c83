/* SPDX-License-Identifier: Apache-2.0 */
/* test_stats.c - statistics files against counts by the engine. */
#include <string.h>

#include "iceberg/stats/stats.h"
#include "support/tempdir.h"
#include "unit/iceberg/lake.h"

static KnCode try_stats(Lake *lake, const char *const *columns, size_t n, KnStatsFile *ret)
{
    const KnStatsOptions opts = {.snapshot = kn_metadata_snapshot(lake->tbl->md),
                                 .n_columns = n,
                                 .columns = columns,
                                 .arena = lake->tbl->arena};
    return kn_stats_compute(lake->tbl, lake->ses, &opts, ret, &lake->err);
}

static KnCode try_partitions(Lake *lake, KnStatsFile *ret)
{
    const KnStatsOptions opts = {.snapshot = kn_metadata_snapshot(lake->tbl->md),
                                 .arena = lake->tbl->arena};
    return kn_partition_stats_compute(lake->tbl, lake->ses, &opts, ret, &lake->err);
}

/* ---- table statistics ---- */

static void distinct_values_of_every_type_are_counted_without_nulls(void **state)
{
    Lake lake;
    KnStatsFile file = {0};
    (void)state;

    lake_open(&lake, &(LakeTable){.schema = LAKE_ALL_TYPES});
    lake_append(&lake, LAKE_ALL_VALUES, 0, 50);
    lake_append(&lake, LAKE_ALL_VALUES, 30, 70);
    lake_append(&lake, "SELECT NULL::INT AS i FROM range(5)");
    lake_ok(&lake, try_stats(&lake, NULL, 0, &file));
    assert_int_equal(file.n_columns, 13);
    for (size_t i = 0; i < file.n_columns; i++) {
        char sql[128];
        char got[32];
        (void)snprintf(sql, sizeof(sql), "SELECT count(DISTINCT %s) FROM {scan}",
                       file.columns[i].column);
        (void)snprintf(got, sizeof(got), "%lld", (long long)file.columns[i].ndv);
        if (strcmp(lake_text(&lake, sql), got) != 0)
            fail_msg("%s: %s", file.columns[i].column, got);
        assert_true(file.columns[i].exact);
    }
    lake_close(&lake);
}

static void deleted_rows_and_fields_of_null_structs_do_not_count(void **state)
{
    static const char *const columns[] = {"st.a", "st.b.c", "id", "st.a"};
    Lake lake;
    KnStatsFile file = {0};
    (void)state;

    lake_open(&lake, &(LakeTable){.schema = "x int, st struct<a int, b struct<c string>>, id int"});
    lake_append(&lake, "SELECT i::INT AS id, CASE WHEN i %% 2 = 0 THEN {'a': (i %% 7)::INT, 'b': "
                       "CASE WHEN i %% 4 = 0 THEN {'c': 'c' || i} END} END AS st "
                       "FROM range(100) t(i)");
    lake_delete(&lake, "id >= 50");
    lake_ok(&lake, try_stats(&lake, columns, 4, &file));
    assert_int_equal(file.n_columns, 3);
    assert_int_equal(file.columns[0].ndv, 7);
    assert_int_equal(file.columns[1].ndv, 13);
    assert_int_equal(file.columns[2].ndv, 50);
    lake_close(&lake);
}

static void many_values_are_estimated(void **state)
{
    Lake lake;
    KnStatsFile file = {0};
    (void)state;

    lake_open(&lake, &(LakeTable){.schema = "id long, t string"});
    lake_append(&lake, "SELECT i AS id, 't' || (i // 2) AS t FROM range(60000) t(i)");
    lake_ok(&lake, try_stats(&lake, NULL, 0, &file));
    assert_false(file.columns[0].exact);
    assert_in_range(file.columns[0].ndv, 57000, 63000);
    assert_in_range(file.columns[1].ndv, 28500, 31500);
    lake_close(&lake);
}

static void a_file_is_set_for_its_snapshot_and_replaced_by_the_next(void **state)
{
    Lake lake;
    KnStatsFile file = {0};
    const json_t *set;
    (void)state;

    lake_open(&lake, &(LakeTable){.schema = "id int required, name string"});
    lake_append(&lake, "SELECT 1 AS id");
    lake_ok(&lake, try_stats(&lake, NULL, 0, &file));
    lake_ok(&lake, try_stats(&lake, NULL, 0, &file));
    assert_int_equal(json_array_size(lake.tbl->md->statistics), 1);
    set = json_array_get(lake.tbl->md->statistics, 0);
    assert_int_equal(json_integer_value(json_object_get(set, "snapshot-id")),
                     lake.tbl->md->current_snapshot_id);
    assert_string_equal(json_string_value(json_object_get(set, "statistics-path")), file.path);
    assert_int_equal(json_integer_value(json_object_get(set, "file-size-in-bytes")), file.bytes);
    assert_int_equal(json_array_size(json_object_get(set, "blob-metadata")), 2);
    lake_append(&lake, "SELECT 2 AS id");
    lake_ok(&lake, try_stats(&lake, NULL, 0, &file));
    assert_int_equal(json_array_size(lake.tbl->md->statistics), 2);
    lake_close(&lake);
}

static void columns_that_cannot_be_counted_are_refused(void **state)
{
    static const char *const cases[][2] = {
        {"none", "Can't find column none"},
        {"li", "Can't compute stats on non-primitive type column: li (list<int>)"},
        {"li.element", "Can't compute stats on column li.element: a row may have many"},
    };
    Lake lake;
    KnStatsFile file = {0};
    (void)state;

    lake_open(&lake, &(LakeTable){.schema = "li list<int>"});
    lake_append(&lake, "SELECT [1] AS li");
    size_t before = lake_files_below(&lake, "metadata");
    for (size_t i = 0; i < 3; i++)
        lake_fails(&lake, try_stats(&lake, &cases[i][0], 1, &file), KN_E_INVAL, cases[i][1]);
    lake_fails(&lake, try_stats(&lake, NULL, 0, &file), KN_E_INVAL, "No columns found");
    lake_fails(&lake, try_partitions(&lake, &file), KN_E_INVAL, "Table must be partitioned");
    assert_int_equal(lake_files_below(&lake, "metadata"), before);
    lake_close(&lake);
}

static void a_commit_that_fails_leaves_no_file(void **state)
{
    Lake lake;
    KnStatsFile file = {0};
    (void)state;

    lake_open(&lake, &(LakeTable){.schema = "id int", .spec = "id"});
    lake_append(&lake, "SELECT 1 AS id");
    size_t before = lake_files_below(&lake, "metadata");
    lake.fail_commit = KN_E_IO;
    lake_fails(&lake, try_stats(&lake, NULL, 0, &file), KN_E_IO, "answer was lost");
    lake.fail_commit = KN_E_IO;
    lake_fails(&lake, try_partitions(&lake, &file), KN_E_IO, "answer was lost");
    /* The lake's catalog wrote two metadata documents before it failed. */
    assert_int_equal(lake_files_below(&lake, "metadata"), before + 2);
    lake.fail_commit = KN_E_UNKNOWN;
    lake_fails(&lake, try_stats(&lake, NULL, 0, &file), KN_E_UNKNOWN, "answer was lost");
    assert_int_equal(lake_files_below(&lake, "metadata"), before + 4);
    lake_close(&lake);
}

/* ---- partition statistics ---- */

/* The file's rows as one text. */
static const char *partitions(Lake *lake, const char *columns, const char *path)
{
    static char sql[1024];
    const char *local = strncmp(path, "file://", 7) == 0 ? path + 7 : path;

    (void)snprintf(sql, sizeof(sql),
                   "SELECT string_agg(CAST(one AS VARCHAR), ' ') FROM (SELECT %s FROM "
                   "read_parquet('%s')) one -- {scan}",
                   columns, local);
    return lake_text(lake, sql);
}

static void partitions_of_every_spec_are_counted(void **state)
{
    Lake lake;
    KnStatsFile file = {0};
    (void)state;

    lake_open(&lake, &(LakeTable){.schema = "id int, k string", .spec = "k", .version = 3});
    lake_append(&lake, "SELECT i::INT AS id, CASE WHEN i %% 3 > 0 THEN 'k' || (i %% 3) END AS k "
                       "FROM range(10) t(i)");
    lake_append(&lake, "SELECT 100 AS id, 'k1' AS k");
    lake_delete(&lake, "id = 2");
    lake_ok(&lake, try_partitions(&lake, &file));
    assert_int_equal(file.n_partitions, 3);
    assert_string_equal(partitions(&lake,
                                   "partition, spec_id, data_record_count AS r, data_file_count "
                                   "AS f, total_record_count AS t, dv_count AS v",
                                   file.path),
                        "{'partition': {'k': NULL}, 'spec_id': 0, 'r': 4, 'f': 1, 't': 4, 'v': 0} "
                        "{'partition': {'k': k1}, 'spec_id': 0, 'r': 4, 'f': 2, 't': 4, 'v': 0} "
                        "{'partition': {'k': k2}, 'spec_id': 0, 'r': 2, 'f': 1, 't': 2, 'v': 0}");
    assert_int_equal(json_array_size(lake.tbl->md->partition_statistics), 1);
    lake_close(&lake);
}

static void what_deletes_make_unknown_is_null(void **state)
{
    Lake lake;
    KnStatsFile file = {0};
    (void)state;

    lake_open(&lake, &(LakeTable){.schema = "id int, k string"});
    lake_append(&lake, "SELECT 1 AS id, 'a' AS k UNION ALL SELECT 2, 'b'");
    lake_row_delta(
        &lake,
        &(LakeRowDelta){.keys = "SELECT 1::INT AS id", .key_names = {"id"}, .operation = "delete"});
    /* An unpartitioned spec's equality delete reaches the partitions of the next spec. */
    const KnPartitionField field = {
        .source_id = 2,
        .name = "k",
        .transform = {.kind = KN_TRANSFORM_IDENTITY, .text = "identity"}};
    const KnPartitionSpec spec = {.n_fields = 1, .fields = &field};
    const KnUpdate updates[] = {{.kind = KN_UPDATE_ADD_SPEC, .spec = &spec},
                                {.kind = KN_UPDATE_SET_DEFAULT_SPEC, .number = -1}};
    lake_ok(&lake, kn_table_commit(lake.tbl, &(KnTableCommit){NULL, 0, updates, 2}, &lake.err));
    lake_append(&lake, "SELECT 3 AS id, 'c' AS k");
    lake_ok(&lake, try_partitions(&lake, &file));
    assert_string_equal(partitions(&lake,
                                   "partition, spec_id AS s, data_record_count AS r, "
                                   "equality_delete_record_count AS e, total_record_count AS t",
                                   file.path),
                        "{'partition': {'k': NULL}, 's': 0, 'r': 2, 'e': 1, 't': NULL} "
                        "{'partition': {'k': c}, 's': 1, 'r': 1, 'e': 0, 't': NULL}");
    lake_close(&lake);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(distinct_values_of_every_type_are_counted_without_nulls),
        cmocka_unit_test(deleted_rows_and_fields_of_null_structs_do_not_count),
        cmocka_unit_test(many_values_are_estimated),
        cmocka_unit_test(a_file_is_set_for_its_snapshot_and_replaced_by_the_next),
        cmocka_unit_test(columns_that_cannot_be_counted_are_refused),
        cmocka_unit_test(a_commit_that_fails_leaves_no_file),
        cmocka_unit_test(partitions_of_every_spec_are_counted),
        cmocka_unit_test(what_deletes_make_unknown_is_null),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
