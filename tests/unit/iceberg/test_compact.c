/* SPDX-License-Identifier: Apache-2.0 */
/* labels: slow */
/* test_compact.c - data files rewritten: which, how, and the same rows, everywhere and always. */
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

static const char *summary(Lake *lake, const char *key)
{
    const char *text = json_string_value(json_object_get(head(lake)->summary, key));
    return text ? text : "-";
}

static size_t n_tasks(Lake *lake)
{
    KnPlan *p = lake_plan(lake);
    size_t n = p->n_tasks;
    kn_plan_free(p);
    return n;
}

static int64_t n_deletes(Lake *lake)
{
    KnManifestFile *files = NULL;
    size_t n = 0;
    int64_t found = 0;
    lake_ok(lake,
            kn_manifest_list_read(lake->io, lake->tbl->arena, head(lake), &files, &n, &lake->err));
    for (size_t i = 0; i < n; i++)
        found += files[i].deletes ? files[i].added_files + files[i].existing_files : 0;
    return found;
}

/* ---- what is rewritten ---- */

static void small_files_become_one(void **state)
{
    (void)state;
    for (int version = 2; version <= 3; version++) {
        Lake lake;
        lake_open(&lake, &(LakeTable){.schema = LAKE_ALL_TYPES, .version = version});
        for (int i = 0; i < 6; i++)
            lake_append(&lake, LAKE_ALL_VALUES, i * 10, i * 10 + 10);
        lake_make_ref(&lake, "v1", false);
        lake_make_ref(&lake, "dev", true);
        lake_delete(&lake, "i = 7");
        UnchangedTable before = unchanged_look(&lake);
        KnCompactResult res = lake_compact(&lake, kn_compact_defaults());
        assert_int_equal(res.n_groups, 1);
        assert_int_equal(res.n_commits, 1);
        assert_int_equal(res.removed_files, 6);
        assert_int_equal(res.added_files, 1);
        assert_int_equal(res.added_rows, 59);
        assert_int_equal(res.snapshot_id, head(&lake)->snapshot_id);
        assert_int_equal(n_tasks(&lake), 1);
        assert_string_equal(summary(&lake, "added-data-files"), "1");
        assert_string_equal(summary(&lake, "deleted-data-files"), "6");
        assert_string_equal(summary(&lake, "total-records"), "59");
        unchanged_check(&lake, &before);
        res = lake_compact(&lake, kn_compact_defaults());
        assert_int_equal(res.snapshot_id, -1);
        assert_int_equal(res.n_commits, 0);
        lake_close(&lake);
    }
}

static void few_files_are_left_alone(void **state)
{
    (void)state;
    Lake lake;
    lake_open(&lake, &(LakeTable){.schema = "id long"});
    KnCompactResult res = lake_compact(&lake, compact_all());
    assert_int_equal(res.snapshot_id, -1);
    for (int i = 0; i < 4; i++)
        lake_append(&lake, "SELECT %d AS id", i);
    assert_int_equal(lake_compact(&lake, kn_compact_defaults()).snapshot_id, -1);
    KnCompactOptions opts = kn_compact_defaults();
    opts.sizes.min_input_files = 4;
    UnchangedTable before = unchanged_look(&lake);
    assert_int_equal(lake_compact(&lake, opts).removed_files, 4);
    unchanged_check(&lake, &before);
    lake_close(&lake);
}

static void groups_are_partitions_packed_by_size(void **state)
{
    (void)state;
    Lake lake;
    lake_open(&lake,
              &(LakeTable){.schema = "id long, p string, d double", .spec = "p, bucket(2, id)"});
    for (int i = 0; i < 5; i++)
        lake_append(
            &lake,
            "SELECT i AS id, CASE WHEN i %% 3 = 0 THEN NULL ELSE 'p' || i %% 3 END AS p, "
            "CASE WHEN i = 4 THEN '-0.0'::DOUBLE ELSE i / 2 END AS d FROM range(%d, %d) t(i)",
            i * 20, i * 20 + 20);
    UnchangedTable before = unchanged_look(&lake);
    KnCompactPlan *plan = NULL;
    KnCompactOptions opts = kn_compact_defaults();
    lake_ok(&lake, kn_compact_plan(lake.tbl, &opts, &plan, &lake.err));
    assert_int_equal(plan->n_groups, 6);
    assert_int_equal(plan->n_files, 30);
    assert_int_equal(plan->rows, 100);
    opts.sizes.max_group_bytes = plan->groups[0].bytes / 2;
    kn_compact_plan_free(plan);
    lake_ok(&lake, kn_compact_plan(lake.tbl, &opts, &plan, &lake.err));
    assert_int_equal(plan->n_groups, 0);
    kn_compact_plan_free(plan);
    opts.sizes.min_input_files = 2;
    lake_ok(&lake, kn_compact_plan(lake.tbl, &opts, &plan, &lake.err));
    assert_true(plan->n_groups > 6);
    for (size_t i = 0; i < plan->n_groups; i++)
        assert_true(plan->groups[i].bytes <= opts.sizes.max_group_bytes);
    kn_compact_plan_free(plan);
    lake_compact(&lake, kn_compact_defaults());
    assert_int_equal(n_tasks(&lake), 6);
    unchanged_check(&lake, &before);
    assert_string_equal(lake_text(&lake, "SELECT count(*) FROM {scan} WHERE d = 0 AND signbit(d)"),
                        "1");
    lake_close(&lake);
}

static void files_get_the_target_size(void **state)
{
    (void)state;
    Lake lake;
    lake_open(&lake, &(LakeTable){.schema = "id long, s string",
                                  .props = {"write.parquet.compression-codec", "uncompressed"}});
    lake_append(&lake, "SELECT i AS id, md5(i::VARCHAR) AS s FROM range(50000) t(i)");
    KnCompactOptions opts = kn_compact_defaults();
    opts.sizes.target_file_bytes = 256 << 10;
    UnchangedTable before = unchanged_look(&lake);
    KnCompactResult res = lake_compact(&lake, opts);
    assert_in_range(res.added_files, 5, 10);
    unchanged_check(&lake, &before);
    assert_int_equal(lake_compact(&lake, opts).snapshot_id, -1);
    opts.sizes.target_file_bytes = 64 << 20;
    assert_int_equal(lake_compact(&lake, opts).added_files, 1);
    lake_close(&lake);
}

static void a_filter_chooses_files(void **state)
{
    (void)state;
    Lake lake;
    lake_open(&lake, &(LakeTable){.schema = "id long"});
    for (int i = 0; i < 8; i++)
        lake_append(&lake, "SELECT i AS id FROM range(%d, %d) t(i)", i * 10, i * 10 + 10);
    KnCompactOptions opts = kn_compact_defaults();
    opts.filter = lake_expr(&lake, "id >= 15 AND id < 60");
    UnchangedTable before = unchanged_look(&lake);
    KnCompactResult res = lake_compact(&lake, opts);
    assert_int_equal(res.removed_files, 5);
    assert_int_equal(res.added_rows, 50);
    unchanged_check(&lake, &before);
    assert_int_equal(n_tasks(&lake), 4);
    lake_close(&lake);
}

static void sorting_sorts(void **state)
{
    (void)state;
    Lake lake;
    lake_open(&lake, &(LakeTable){.schema = "a long, b string", .order = "a desc nulls last"});
    for (int i = 0; i < 5; i++)
        lake_append(&lake, "SELECT (i * 7 + %d) %% 11 AS a, 'b' || i AS b FROM range(9) t(i)", i);
    UnchangedTable before = unchanged_look(&lake);
    KnCompactOptions opts = kn_compact_defaults();
    opts.sort = true;
    lake_compact(&lake, opts);
    unchanged_check(&lake, &before);
    KnPlan *p = lake_plan(&lake);
    assert_int_equal(p->n_tasks, 1);
    assert_int_equal(p->tasks[0].data->file.sort_order_id, 1);
    kn_plan_free(p);
    assert_string_equal(lake_text(&lake, "SELECT list_aggregate(l, 'count') || ' ' || (l = "
                                         "list_reverse_sort(l)) FROM (SELECT list(a) AS l FROM "
                                         "{scan})"),
                        "45 true");
    KnSortOrder *order = NULL;
    lake_ok(&lake, kn_sort_order_parse_text(lake.tbl->arena, kn_metadata_schema(lake.tbl->md),
                                            kn_str("b"), &order, &lake.err));
    order->order_id = 0;
    opts.sizes.rewrite_all = true;
    opts.sort_order = order;
    lake_compact(&lake, opts);
    p = lake_plan(&lake);
    assert_int_equal(p->tasks[0].data->file.sort_order_id, 0);
    kn_plan_free(p);
    assert_string_equal(lake_text(&lake, "SELECT l = list_sort(l) FROM (SELECT list(b) AS l FROM "
                                         "{scan})"),
                        "true");
    lake_close(&lake);
    lake_open(&lake, &(LakeTable){.schema = "a long"});
    opts.sort_order = NULL;
    KnCompactResult res;
    lake_fails(&lake, kn_write_compact(lake.tbl, lake.ses, &opts, &res, &lake.err), KN_E_INVAL,
               "no sort order");
    lake_close(&lake);
}

static void wrong_options_are_named(void **state)
{
    (void)state;
    Lake lake;
    lake_open(&lake, &(LakeTable){.schema = "id long"});
    lake_append(&lake, "SELECT 1 AS id");
    lake_make_ref(&lake, "v1", false);
    static const struct {
        int64_t target, min, max;
        double ratio;
        int32_t spec;
        const char *branch, *part;
    } cases[] = {
        {100, 100, 200, 0.3, -1, NULL, "too small"},
        {100, 10, 100, 0.3, -1, NULL, "too large"},
        {100, 10, 200, 1.5, -1, NULL, "delete-ratio-threshold"},
        {100, 10, 200, -1, -1, NULL, "delete-ratio-threshold"},
        {100, 10, 200, 0.3, 9, NULL, "output-spec-id 9"},
        {100, 10, 200, 0.3, -1, "dev", "no branch dev"},
        {100, 10, 200, 0.3, -1, "v1", "v1 is a tag"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        KnCompactOptions opts = kn_compact_defaults();
        opts.sizes.target_file_bytes = cases[i].target;
        opts.sizes.min_file_bytes = cases[i].min;
        opts.sizes.max_file_bytes = cases[i].max;
        opts.delete_ratio_threshold = cases[i].ratio;
        opts.output_spec_id = cases[i].spec;
        opts.write.branch = cases[i].branch;
        KnCompactPlan *plan = NULL;
        lake_fails(&lake, kn_compact_plan(lake.tbl, &opts, &plan, &lake.err), KN_E_INVAL,
                   cases[i].part);
    }
    lake_close(&lake);
}

/* ---- deletes ---- */

static void deletes_are_applied_and_go(void **state)
{
    (void)state;
    Lake lake;
    lake_open(&lake, &(LakeTable){.schema = "id long, name string"});
    lake_append(&lake, "SELECT i AS id, 'n' || i AS name FROM range(20) t(i)");
    lake_append(&lake, "SELECT i AS id, 'm' || i AS name FROM range(20, 40) t(i)");
    lake_delete_positions(&lake, "p % 4 = 0");
    lake_row_delta(&lake, &(LakeRowDelta){.keys = "SELECT 7::BIGINT AS id UNION ALL SELECT 22",
                                          .key_names = {"id"},
                                          .rows = "SELECT 7::BIGINT AS id, 'again' AS name",
                                          .operation = "overwrite"});
    UnchangedTable before = unchanged_look(&lake);
    KnCompactOptions opts = compact_all();
    KnCompactResult res = lake_compact(&lake, opts);
    assert_int_equal(res.added_rows, 29);
    assert_int_equal(res.removed_delete_files, 1);
    assert_int_equal(n_deletes(&lake), 1);
    assert_string_equal(summary(&lake, "removed-position-deletes"), "10");
    KnPlan *p = lake_plan(&lake);
    assert_int_equal(p->n_delete_files, 0);
    assert_int_equal(p->tasks[0].data->sequence_number, 4);
    assert_int_equal(p->tasks[0].data->file_sequence_number, 5);
    kn_plan_free(p);
    unchanged_check(&lake, &before);
    before = unchanged_look(&lake);
    opts = kn_compact_defaults();
    opts.remove_dangling_deletes = true;
    res = lake_compact(&lake, opts);
    assert_int_equal(res.n_groups, 0);
    assert_int_equal(res.n_commits, 1);
    assert_int_equal(res.removed_delete_files, 1);
    assert_int_equal(n_deletes(&lake), 0);
    unchanged_check(&lake, &before);
    assert_int_equal(lake_compact(&lake, opts).snapshot_id, -1);
    lake_close(&lake);
}

static void many_deletes_are_a_reason(void **state)
{
    (void)state;
    Lake lake;
    lake_open(&lake,
              &(LakeTable){.schema = "id long", .props = {"write.target-file-size-bytes", "1000"}});
    lake_append(&lake, "SELECT i AS id FROM range(100) t(i)");
    KnPlan *p = lake_plan(&lake);
    KnCompactOptions opts = kn_compact_defaults();
    opts.sizes.target_file_bytes = p->n_bytes;
    kn_plan_free(p);
    assert_int_equal(lake_compact(&lake, opts).snapshot_id, -1);
    lake_delete_positions(&lake, "p < 29");
    opts.delete_ratio_threshold = 0.3;
    assert_int_equal(lake_compact(&lake, opts).snapshot_id, -1);
    opts.delete_file_threshold = 2;
    assert_int_equal(lake_compact(&lake, opts).snapshot_id, -1);
    UnchangedTable before = unchanged_look(&lake);
    opts.delete_file_threshold = 1;
    KnCompactResult res = lake_compact(&lake, opts);
    assert_int_equal(res.removed_delete_files, 1);
    assert_int_equal(res.added_rows, 71);
    unchanged_check(&lake, &before);
    lake_close(&lake);
}

static void a_file_without_live_rows_goes(void **state)
{
    (void)state;
    Lake lake;
    lake_open(&lake, &(LakeTable){.schema = "id long", .version = 2});
    lake_append(&lake, "SELECT i AS id FROM range(10) t(i)");
    lake_delete_positions(&lake, "true");
    KnCompactResult res = lake_compact(&lake, compact_all());
    assert_int_equal(res.added_files, 0);
    assert_int_equal(res.removed_files, 1);
    assert_int_equal(res.removed_delete_files, 1);
    assert_string_equal(lake_text(&lake, "SELECT count(*) FROM {scan}"), "0");
    assert_string_equal(head(&lake)->operation, "replace");
    lake_close(&lake);
}

static void deletes_in_use_are_not_dangling(void **state)
{
    (void)state;
    Lake lake;
    lake_open(&lake, &(LakeTable){.schema = "id long, name string"});
    lake_append(&lake, "SELECT i AS id, 'n' AS name FROM range(10) t(i)");
    lake_delete_positions(&lake, "p = 3");
    lake_row_delta(&lake, &(LakeRowDelta){.keys = "SELECT 1::BIGINT AS id",
                                          .key_names = {"id"},
                                          .operation = "delete"});
    lake_append(&lake, "SELECT i AS id, 'late' AS name FROM range(10) t(i)");
    int64_t id = 0;
    int64_t n = -1;
    lake_ok(&lake, kn_write_remove_dangling(lake.tbl, NULL, &id, &n, &lake.err));
    assert_int_equal(id, -1);
    assert_int_equal(n, 0);
    lake_delete(&lake, "name = 'n'");
    UnchangedTable before = unchanged_look(&lake);
    lake_ok(&lake, kn_write_remove_dangling(lake.tbl, NULL, &id, &n, &lake.err));
    assert_int_equal(n, 2);
    assert_int_equal(n_deletes(&lake), 0);
    unchanged_check(&lake, &before);
    lake_close(&lake);
}

/* ---- partition specs ---- */

static void files_move_to_the_output_spec(void **state)
{
    (void)state;
    for (int version = 2; version <= 3; version++) {
        Lake lake;
        lake_open(&lake, &(LakeTable){.schema = "id long, name string", .version = version});
        for (int i = 0; i < 3; i++)
            lake_append(&lake, "SELECT i AS id, 'n' || i %% 3 AS name FROM range(%d, %d) t(i)",
                        i * 10, i * 10 + 10);
        lake_set_spec(&lake, "name");
        for (int i = 3; i < 6; i++)
            lake_append(&lake, "SELECT i AS id, 'n' || i %% 3 AS name FROM range(%d, %d) t(i)",
                        i * 10, i * 10 + 10);
        UnchangedTable before = unchanged_look(&lake);
        KnCompactOptions opts = compact_all();
        opts.output_spec_id = 0;
        KnCompactResult res = lake_compact(&lake, opts);
        assert_int_equal(res.n_groups, 2);
        assert_int_equal(res.added_files, 2);
        unchanged_check(&lake, &before);
        before = unchanged_look(&lake);
        res = lake_compact(&lake, compact_all());
        assert_int_equal(res.n_groups, 1);
        assert_int_equal(res.added_files, 3);
        KnPlan *p = lake_plan(&lake);
        for (size_t i = 0; i < p->n_tasks; i++)
            assert_int_equal(p->tasks[i].data->file.spec_id, 1);
        kn_plan_free(p);
        unchanged_check(&lake, &before);
        lake_close(&lake);
    }
}

/* ---- random histories ---- */

static void random_change(Lake *lake, KnRng *rng)
{
    uint64_t what = kn_rng_below(rng, 5);
    int at = (int)kn_rng_below(rng, 200);
    if (what <= 1 || !head(lake)) {
        lake_append(lake, "SELECT i AS id, 'n' || i %% 7 AS name FROM range(%d, %d) t(i)", at,
                    at + 1 + (int)kn_rng_below(rng, 40));
    } else if (what == 2) {
        char where[64];
        assert_true(snprintf(where, sizeof(where), "id >= %d AND id < %d", at, at + 10) > 0);
        lake_delete(lake, where);
    } else if (what == 3) {
        char keys[64];
        char rows[96];
        assert_true(snprintf(keys, sizeof(keys), "SELECT %d::BIGINT AS id", at) > 0);
        assert_true(snprintf(rows, sizeof(rows), "SELECT %d::BIGINT AS id, 'up' AS name", at) > 0);
        lake_row_delta(
            lake, &(LakeRowDelta){
                      .keys = keys, .key_names = {"id"}, .rows = rows, .operation = "overwrite"});
    } else if (lake->tbl->md->format_version == 2) {
        char cond[64];
        assert_true(snprintf(cond, sizeof(cond), "p %% %d = 1", 2 + at % 9) > 0);
        lake_delete_positions(lake, cond);
    }
}

static KnCompactOptions random_options(Lake *lake, KnRng *rng)
{
    KnCompactOptions opts = kn_compact_defaults();
    opts.sizes.rewrite_all = kn_rng_below(rng, 2) == 0;
    opts.sizes.min_input_files = 1 + (int64_t)kn_rng_below(rng, 4);
    opts.sizes.max_group_bytes = 500 + (int64_t)kn_rng_below(rng, 5000);
    opts.partial_progress = kn_rng_below(rng, 2) == 0;
    opts.max_commits = 1 + (int64_t)kn_rng_below(rng, 3);
    opts.remove_dangling_deletes = kn_rng_below(rng, 2) == 0;
    opts.new_sequence_number = kn_rng_below(rng, 3) == 0;
    opts.sort = kn_rng_below(rng, 3) == 0;
    if (kn_rng_below(rng, 2) == 0)
        opts.filter = lake_expr(lake, kn_rng_below(rng, 2) ? "id < 90" : "name = 'n3'");
    return opts;
}

static void random_histories_keep_their_rows(void **state)
{
    (void)state;
    for (int run = 0; run < 2; run++) {
        uint64_t seed = (uint64_t)kn_random_id();
        print_message("seed %" PRIu64 "\n", seed);
        KnRng rng = {seed};
        Lake lake;
        lake_open(&lake, &(LakeTable){.schema = "id long required, name string",
                                      .order = "name, id",
                                      .version = 2 + run % 2});
        for (int step = 0; step < 12; step++) {
            random_change(&lake, &rng);
            if (kn_rng_below(&rng, 3) > 0)
                continue;
            UnchangedTable before = unchanged_look(&lake);
            lake_compact(&lake, random_options(&lake, &rng));
            unchanged_check(&lake, &before);
        }
        lake_close(&lake);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(small_files_become_one),
        cmocka_unit_test(few_files_are_left_alone),
        cmocka_unit_test(groups_are_partitions_packed_by_size),
        cmocka_unit_test(files_get_the_target_size),
        cmocka_unit_test(a_filter_chooses_files),
        cmocka_unit_test(sorting_sorts),
        cmocka_unit_test(wrong_options_are_named),
        cmocka_unit_test(deletes_are_applied_and_go),
        cmocka_unit_test(many_deletes_are_a_reason),
        cmocka_unit_test(a_file_without_live_rows_goes),
        cmocka_unit_test(deletes_in_use_are_not_dangling),
        cmocka_unit_test(files_move_to_the_output_spec),
        cmocka_unit_test(random_histories_keep_their_rows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
