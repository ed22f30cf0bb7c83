/* SPDX-License-Identifier: Apache-2.0 */
/* test_snapshot.c - drafts of added files become manifests and summaries. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "iceberg/write/write_internal.h"
#include "unit/iceberg/lake.h"

static const KnSnapshot *head(Lake *lake)
{
    return kn_metadata_snapshot(lake->tbl->md);
}

static const char *summary(Lake *lake, const char *key)
{
    const char *text = json_string_value(json_object_get(head(lake)->summary, key));
    return text ? text : "-";
}

static const KnManifestFile *manifests(Lake *lake, size_t *ret_n)
{
    KnManifestFile *files = NULL;
    lake_ok(lake, kn_manifest_list_read(lake->io, lake->tbl->arena, head(lake), &files, ret_n,
                                        &lake->err));
    return files;
}

static KnManifestEntry delete_entry(KnContent content, const char *path, int64_t rows)
{
    return (KnManifestEntry){
        .status = KN_ENTRY_ADDED,
        .file = {.content = content,
                 .path = path,
                 .format = KN_FORMAT_PARQUET,
                 .record_count = rows,
                 .size_bytes = 100,
                 .sort_order_id = -1,
                 .first_row_id = -1,
                 .content_offset = -1,
                 .content_size = -1},
    };
}

static void produce(Lake *lake, const KnSnapshotDraft *draft)
{
    KnWriter w;
    int64_t id = -1;
    lake_ok(lake, kn_writer_init(&w, lake->tbl, lake->ses, NULL, &lake->err));
    KnCode rc = kn_snapshot_produce(&w, draft, &id, &lake->err);
    kn_writer_done(&w, true);
    lake_ok(lake, rc);
    assert_int_equal(head(lake)->snapshot_id, id);
}

static void added_deletes_get_manifests_of_their_own(void **state)
{
    (void)state;
    Lake lake;
    lake_open(&lake, &(LakeTable){.schema = "id long"});
    lake_append(&lake, "SELECT 1 AS id UNION ALL SELECT 2");
    static const int32_t ids[] = {1};
    KnManifestEntry positions = delete_entry(KN_CONTENT_POSITION_DELETES, "p.parquet", 3);
    KnManifestEntry keys = delete_entry(KN_CONTENT_EQUALITY_DELETES, "e.parquet", 5);
    keys.file.equality_ids = ids;
    keys.file.n_equality_ids = 1;
    const KnManifestEntry *added[] = {&positions, &keys};
    produce(&lake, &(KnSnapshotDraft){
                       .operation = "delete", .n_added_deletes = 2, .added_deletes = added});
    size_t n = 0;
    const KnManifestFile *files = manifests(&lake, &n);
    assert_int_equal(n, 2);
    assert_true(files[0].deletes);
    assert_int_equal(files[0].added_files, 2);
    assert_false(files[1].deletes);
    assert_string_equal(summary(&lake, "added-delete-files"), "2");
    assert_string_equal(summary(&lake, "added-position-delete-files"), "1");
    assert_string_equal(summary(&lake, "added-equality-delete-files"), "1");
    assert_string_equal(summary(&lake, "added-position-deletes"), "3");
    assert_string_equal(summary(&lake, "added-equality-deletes"), "5");
    assert_string_equal(summary(&lake, "added-files-size"), "200");
    assert_string_equal(summary(&lake, "total-delete-files"), "2");
    assert_string_equal(summary(&lake, "total-position-deletes"), "3");
    assert_string_equal(summary(&lake, "total-equality-deletes"), "5");
    KnPlan *plan = lake_plan(&lake);
    assert_int_equal(plan->n_tasks, 1);
    assert_int_equal(plan->tasks[0].n_deletes, 2);
    kn_plan_free(plan);
    lake_close(&lake);
}

/* A vector of the table's only data file, as Java's summary counts it. */
static KnManifestEntry vector_entry(Lake *lake, const char *puffin, int64_t rows)
{
    KnPlan *plan = lake_plan(lake);
    KnManifestEntry entry = delete_entry(KN_CONTENT_POSITION_DELETES, puffin, rows);
    entry.file.format = KN_FORMAT_PUFFIN;
    entry.file.content_offset = 4;
    entry.file.content_size = 40;
    entry.file.referenced_data_file =
        kn_arena_strdup(lake->tbl->arena, plan->tasks[0].data->file.path);
    kn_plan_free(plan);
    return entry;
}

static void a_vector_replaces_another_in_one_snapshot(void **state)
{
    (void)state;
    Lake lake;
    lake_open(&lake, &(LakeTable){.schema = "id long", .version = 3});
    lake_append(&lake, "SELECT i AS id FROM range(10) t(i)");
    KnManifestEntry first = vector_entry(&lake, "a.puffin", 1);
    const KnManifestEntry *added = &first;
    produce(&lake, &(KnSnapshotDraft){
                       .operation = "delete", .n_added_deletes = 1, .added_deletes = &added});
    assert_string_equal(summary(&lake, "added-dvs"), "1");
    assert_string_equal(summary(&lake, "added-position-delete-files"), "-");
    assert_string_equal(summary(&lake, "added-files-size"), "40");
    KnPlan *plan = lake_plan(&lake);
    KnManifestEntry second = vector_entry(&lake, "b.puffin", 2);
    added = &second;
    const KnManifestEntry *removed = plan->tasks[0].deletes[0];
    produce(&lake, &(KnSnapshotDraft){.operation = "delete",
                                      .n_added_deletes = 1,
                                      .added_deletes = &added,
                                      .n_removed_deletes = 1,
                                      .removed_deletes = &removed});
    kn_plan_free(plan);
    assert_string_equal(summary(&lake, "added-dvs"), "1");
    assert_string_equal(summary(&lake, "removed-dvs"), "1");
    assert_string_equal(summary(&lake, "removed-delete-files"), "1");
    assert_string_equal(summary(&lake, "total-delete-files"), "1");
    assert_string_equal(summary(&lake, "total-position-deletes"), "2");
    assert_string_equal(summary(&lake, "changed-partition-count"), "1");
    plan = lake_plan(&lake);
    assert_int_equal(plan->tasks[0].n_deletes, 1);
    assert_string_equal(plan->tasks[0].deletes[0]->file.path, "b.puffin");
    kn_plan_free(plan);
    lake_close(&lake);
}

static void manifests_of_deletes_are_merged_apart(void **state)
{
    (void)state;
    Lake lake;
    lake_open(&lake, &(LakeTable){.schema = "id long",
                                  .props = {"commit.manifest.min-count-to-merge", "3"}});
    lake_append(&lake, "SELECT 1 AS id");
    for (int i = 0; i < 5; i++) {
        KnManifestEntry entry = delete_entry(KN_CONTENT_POSITION_DELETES,
                                             kn_arena_printf(lake.tbl->arena, "p%d.parquet", i), 1);
        const KnManifestEntry *added = &entry;
        produce(&lake, &(KnSnapshotDraft){
                           .operation = "delete", .n_added_deletes = 1, .added_deletes = &added});
    }
    size_t n = 0;
    const KnManifestFile *files = manifests(&lake, &n);
    size_t n_deletes = 0;
    int64_t entries = 0;
    for (size_t i = 0; i < n; i++) {
        n_deletes += files[i].deletes;
        entries += files[i].deletes ? files[i].added_files + files[i].existing_files : 0;
    }
    assert_in_range(n_deletes, 1, 3);
    assert_int_equal(n - n_deletes, 1);
    assert_int_equal(entries, 5);
    assert_string_equal(summary(&lake, "total-delete-files"), "5");
    KnPlan *plan = lake_plan(&lake);
    assert_int_equal(plan->tasks[0].n_deletes, 5);
    kn_plan_free(plan);
    lake_close(&lake);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(added_deletes_get_manifests_of_their_own),
        cmocka_unit_test(a_vector_replaces_another_in_one_snapshot),
        cmocka_unit_test(manifests_of_deletes_are_merged_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
