/* SPDX-License-Identifier: Apache-2.0 */
/* test_count.c - numbers of rows: from manifests where they tell it, else from what deletes hit. */
#include <stdio.h>
#include <string.h>

#include "base/random.h"
#include "unit/iceberg/lake.h"

static bool from_manifests(Lake *lake, const char *where, int64_t *ret)
{
    KnPlan *plan = NULL;
    KnPlanOptions opts = {.snapshot = kn_metadata_snapshot(lake->tbl->md),
                          .filter = where ? lake_expr(lake, where) : NULL};
    lake_ok(lake, kn_plan_scan(lake->tbl, &opts, &plan, &lake->err));
    bool known = kn_plan_count(plan, ret);
    kn_plan_free(plan);
    return known;
}

static int64_t by_reading(Lake *lake, const char *where)
{
    KnPlan *plan = NULL;
    const KnExpr *filter = where ? lake_expr(lake, where) : NULL;
    KnPlanOptions opts = {.snapshot = kn_metadata_snapshot(lake->tbl->md), .filter = filter};
    lake_ok(lake, kn_plan_scan(lake->tbl, &opts, &plan, &lake->err));
    KnReadOptions read = {.schema = kn_metadata_schema(lake->tbl->md), .filter = filter};
    int64_t n = -1;
    lake_ok(lake, kn_read_count(plan, lake->ses, &read, &n, &lake->err));
    kn_plan_free(plan);
    return n;
}

static void append_hundred(Lake *lake)
{
    lake_append(lake, "SELECT i AS id, 'row' AS s FROM range(100) t(i)");
}

static void manifests_count_files_without_deletes(void **state)
{
    (void)state;
    Lake lake;
    int64_t n = -1;
    lake_open(&lake, &(LakeTable){.schema = "id long, s string"});
    append_hundred(&lake);
    append_hundred(&lake);
    assert_true(from_manifests(&lake, NULL, &n));
    assert_int_equal(n, 200);
    assert_int_equal(by_reading(&lake, NULL), 200);
    lake_close(&lake);
}

static void a_filter_asks_for_rows(void **state)
{
    (void)state;
    Lake lake;
    int64_t n = -1;
    lake_open(&lake, &(LakeTable){.schema = "id long, s string"});
    append_hundred(&lake);
    assert_false(from_manifests(&lake, "id < 7", &n));
    assert_int_equal(n, -1);
    assert_int_equal(by_reading(&lake, "id < 7"), 7);
    assert_int_equal(by_reading(&lake, "id < -1"), 0);
    lake_close(&lake);
}

static void manifests_count_deletion_vectors(void **state)
{
    (void)state;
    Lake lake;
    int64_t n = -1;
    lake_open(&lake, &(LakeTable){.schema = "id long, s string",
                                  .version = 3,
                                  .props = {"write.delete.mode", "merge-on-read"}});
    append_hundred(&lake);
    append_hundred(&lake);
    lake_delete(&lake, "id IN (1, 2, 99)");
    lake_delete(&lake, "id = 3");
    assert_true(from_manifests(&lake, NULL, &n));
    assert_int_equal(n, 192);
    assert_int_equal(by_reading(&lake, NULL), 192);
    assert_int_equal(by_reading(&lake, "id < 5"), 4);
    lake_close(&lake);
}

static void position_deletes_that_repeat_count_once(void **state)
{
    (void)state;
    Lake lake;
    int64_t n = -1;
    lake_open(&lake, &(LakeTable){.schema = "id long, s string"});
    append_hundred(&lake);
    KnPlan *plan = lake_plan(&lake);
    char sql[1024];
    assert_in_range(snprintf(sql, sizeof(sql),
                             "SELECT '%s' AS file_path, unnest([5, 5, 63, 64, 99, 1000]) AS pos",
                             plan->tasks[0].data->file.path),
                    1, sizeof(sql) - 1);
    kn_plan_free(plan);
    for (int i = 0; i < 2; i++)
        lake_row_delta(&lake, &(LakeRowDelta){.positions = sql, .operation = "delete"});
    append_hundred(&lake);
    assert_false(from_manifests(&lake, NULL, &n));
    assert_int_equal(by_reading(&lake, NULL), 196);
    lake_close(&lake);
}

static void equality_deletes_count_the_rows_they_hit(void **state)
{
    (void)state;
    Lake lake;
    int64_t n = -1;
    lake_open(&lake, &(LakeTable){.schema = "id long, d double"});
    lake_append(&lake, "SELECT i %% 50 AS id, CASE i %% 5 WHEN 0 THEN 'nan'::DOUBLE WHEN 1 THEN "
                       "-0.0::DOUBLE WHEN 2 THEN 0.0 WHEN 3 THEN NULL ELSE i END AS d FROM "
                       "range(100) t(i)");
    lake_row_delta(&lake, &(LakeRowDelta){.keys = "SELECT * FROM (VALUES (7::BIGINT), (NULL), "
                                                  "(1000), (7)) t(id)",
                                          .key_names = {"id"},
                                          .operation = "delete"});
    assert_false(from_manifests(&lake, NULL, &n));
    assert_int_equal(by_reading(&lake, NULL), 98);
    static const char *const keys[] = {"SELECT 'nan'::DOUBLE AS d", "SELECT -0.0::DOUBLE AS d",
                                       "SELECT NULL::DOUBLE AS d"};
    static const int64_t left[] = {78, 58, 38};
    for (size_t i = 0; i < 3; i++) {
        lake_row_delta(&lake,
                       &(LakeRowDelta){.keys = keys[i], .key_names = {"d"}, .operation = "delete"});
        assert_int_equal(by_reading(&lake, NULL), left[i]);
    }
    lake_append(&lake, "SELECT 7 AS id, 'nan'::DOUBLE AS d");
    assert_int_equal(by_reading(&lake, NULL), 39);
    lake_close(&lake);
}

/* A key filter of many words; every deleted key is found, and nothing else goes. */
static void many_keys_are_all_found(void **state)
{
    (void)state;
    Lake lake;
    lake_open(&lake, &(LakeTable){.schema = "id long, s string"});
    lake_append(&lake, "SELECT i AS id, 'name ' || i AS s FROM range(60000) t(i)");
    lake_row_delta(&lake, &(LakeRowDelta){.keys = "SELECT 'name ' || i AS s, i AS id FROM "
                                                  "range(0, 90000, 3) t(i)",
                                          .key_names = {"s", "id"},
                                          .operation = "delete"});
    assert_int_equal(by_reading(&lake, NULL), 40000);
    assert_string_equal(lake_text(&lake, "SELECT count(*) FILTER (id % 3 = 0) || ' ' || sum(id) "
                                         "FROM {scan}"),
                        "0 1200000000");
    lake_close(&lake);
}

static void live_rows_of_ranges_add_up(void **state)
{
    (void)state;
    Lake lake;
    lake_open(&lake, &(LakeTable){.schema = "id long, s string",
                                  .version = 3,
                                  .props = {"write.delete.mode", "merge-on-read"}});
    lake_append(&lake, "SELECT i AS id, 's' AS s FROM range(1000) t(i) ORDER BY i");
    lake_delete(&lake, "id BETWEEN 60 AND 70 OR id IN (0, 127, 128, 500, 999)");
    KnPlan *plan = lake_plan(&lake);
    KnRead *read = NULL;
    KnReadOptions opts = {.schema = kn_metadata_schema(lake.tbl->md)};
    lake_ok(&lake, kn_read_open(lake.tbl, lake.ses, (KnScanTasks){plan->tasks, plan->n_tasks},
                                &opts, &read, &lake.err));
    KnRng rng = {5};
    for (int i = 0; i < 300; i++) {
        int64_t first = (int64_t)kn_rng_below(&rng, 1001);
        int64_t n = (int64_t)kn_rng_below(&rng, 300);
        int64_t live = 0;
        for (int64_t row = first; row < first + n && row < 1000; row++)
            live += !((row >= 60 && row <= 70) || row == 0 || row == 127 || row == 128 ||
                      row == 500 || row == 999);
        assert_int_equal(kn_read_live_rows_in(read, 0, first, n), live);
    }
    assert_int_equal(kn_read_live_rows(read, 0), 984);
    kn_read_close(read);
    kn_plan_free(plan);
    lake_close(&lake);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(manifests_count_files_without_deletes),
        cmocka_unit_test(a_filter_asks_for_rows),
        cmocka_unit_test(manifests_count_deletion_vectors),
        cmocka_unit_test(position_deletes_that_repeat_count_once),
        cmocka_unit_test(equality_deletes_count_the_rows_they_hit),
        cmocka_unit_test(many_keys_are_all_found),
        cmocka_unit_test(live_rows_of_ranges_add_up),
    };
    return cmocka_run_group_tests_name("iceberg.count", tests, NULL, NULL);
}
