/* SPDX-License-Identifier: Apache-2.0 */
/* test_rewrite_manifests.c - entries regrouped by partition: the same entries with the same
 * numbers, in fewer and narrower manifests. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fault.h"
#include "iceberg/maintain/manifest_regroup.h"
#include "iceberg/maintain/rewrite_manifests.h"
#include "unit/iceberg/unchanged.h"

static const KnSnapshot *head(Lake *lake)
{
    return kn_metadata_snapshot(lake->tbl->md);
}

static const char *summary(Lake *lake, const char *key)
{
    const char *text = json_string_value(json_object_get(head(lake)->summary, key));
    return text ? text : "-";
}

/* ---- all live entries as text ---- */

static KnCode put_entry(void *arg, const KnManifestEntry *entry, KnErr *err)
{
    (void)err;
    KnBuf *buf = arg;
    const KnDataFile *f = &entry->file;
    kn_buf_printf(buf,
                  "%s %d %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64
                  " %d %zu %zu %zu\n",
                  strrchr(f->path, '/'), (int)f->content, entry->snapshot_id,
                  entry->sequence_number, entry->file_sequence_number, f->first_row_id,
                  f->record_count, f->size_bytes, f->sort_order_id, f->n_lower, f->n_value_counts,
                  f->n_split_offsets);
    return KN_OK;
}

static int compare_lines(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static KnManifestFile *manifests(Lake *lake, size_t *ret_n)
{
    KnManifestFile *files = NULL;
    lake_ok(lake, kn_manifest_list_read(lake->io, lake->tbl->arena, head(lake), &files, ret_n,
                                        &lake->err));
    return files;
}

/* Sorted lines; the caller frees. */
static char *entries(Lake *lake)
{
    size_t n = 0;
    KnManifestFile *files = manifests(lake, &n);
    KN_BUF_AUTO buf;
    kn_buf_init(&buf, (size_t)64 << 20);
    KnManifestVisit visit = {.opts = {.with_metrics = true}, .fn = put_entry, .arg = &buf};
    for (size_t i = 0; i < n; i++)
        lake_ok(lake, kn_manifest_read(lake->io, lake->tbl->md, &files[i], &visit, &lake->err));
    char *lines[4096];
    size_t n_lines = 0;
    for (char *at = buf.data; at < buf.data + buf.len; n_lines++) {
        assert_true(n_lines < 4096);
        lines[n_lines] = at;
        char *end = strchr(at, '\n');
        *end = '\0';
        at = end + 1;
    }
    qsort(lines, n_lines, sizeof(*lines), compare_lines);
    KN_BUF_AUTO out;
    kn_buf_init(&out, (size_t)64 << 20);
    for (size_t i = 0; i < n_lines; i++)
        kn_buf_printf(&out, "%s\n", lines[i]);
    return kn_buf_steal(&out, NULL);
}

static size_t n_manifests(Lake *lake, bool deletes)
{
    size_t n = 0;
    size_t found = 0;
    KnManifestFile *files = manifests(lake, &n);
    for (size_t i = 0; i < n; i++)
        found += files[i].deletes == deletes;
    return found;
}

static KnRewriteManifestsResult rewrite(Lake *lake)
{
    KnRewriteManifestsOptions opts = {.spec_id = -1, .progress = KN_PROGRESS_NEVER};
    KnRewriteManifestsResult res = {.snapshot_id = -2};
    lake_ok(lake, kn_write_rewrite_manifests(lake->tbl, &opts, &res, &lake->err));
    return res;
}

/* ---- regrouping ---- */

static void open_partitioned(Lake *lake, int version, const char *target)
{
    lake_open(lake, &(LakeTable){.schema = "id long required, p string",
                                 .spec = "p",
                                 .version = version,
                                 .props = {"commit.manifest.target-size-bytes", target,
                                           "commit.manifest-merge.enabled", "false",
                                           "commit.retry.min-wait-ms", "1"}});
    for (int i = 0; i < 6; i++)
        lake_append(lake,
                    "SELECT i AS id, CASE WHEN i %% 5 = 0 THEN NULL ELSE 'p' || i %% 5 END AS p "
                    "FROM range(%d, %d) t(i)",
                    i * 10, i * 10 + 10);
}

static void entries_are_clustered_by_partition(void **state)
{
    (void)state;
    for (int version = 2; version <= 3; version++) {
        Lake lake;
        open_partitioned(&lake, version, "1200");
        assert_int_equal(n_manifests(&lake, false), 6);
        UnchangedTable before = unchanged_look(&lake);
        char *was = entries(&lake);
        KnRewriteManifestsResult res = rewrite(&lake);
        char *is = entries(&lake);
        assert_string_equal(is, was);
        assert_int_equal(res.n_replaced, 6);
        assert_int_equal(res.n_entries, 30);
        assert_int_equal(res.n_kept, 0);
        assert_in_range(res.n_created, 2, 5);
        assert_string_equal(summary(&lake, "manifests-replaced"), "6");
        assert_string_equal(summary(&lake, "entries-processed"), "30");
        assert_string_equal(summary(&lake, "manifests-kept"), "0");
        assert_string_equal(summary(&lake, "total-data-files"), "30");
        size_t n = 0;
        KnManifestFile *files = manifests(&lake, &n);
        assert_int_equal(n, res.n_created);
        for (size_t i = 0; i < n; i++) {
            assert_int_equal(files[i].added_files, 0);
            assert_int_equal(files[i].deleted_files, 0);
            assert_int_equal(files[i].min_sequence_number, 1);
            assert_int_equal(files[i].sequence_number, 7);
            if (i > 0 && files[i - 1].partitions[0].upper.ptr) /* no overlap */
                assert_true(memcmp(files[i - 1].partitions[0].upper.ptr,
                                   files[i].partitions[0].lower.ptr, 2) < 0);
        }
        KnWindow *win = NULL;
        lake_ok(&lake,
                kn_window_plan(lake.tbl,
                               kn_metadata_find_snapshot(lake.tbl->md, head(&lake)->parent_id),
                               head(&lake), &win, &lake.err));
        assert_int_equal(win->kind, KN_WINDOW_EMPTY);
        assert_int_equal(win->read_files, 0);
        kn_window_free(win);
        unchanged_check(&lake, &before);
        assert_int_equal(rewrite(&lake).snapshot_id, -1);
        free(was);
        free(is);
        lake_close(&lake);
    }
}

static void delete_manifests_are_rewritten_too(void **state)
{
    (void)state;
    Lake lake;
    lake_open(&lake, &(LakeTable){.schema = "id long"});
    for (int i = 0; i < 3; i++) {
        lake_append(&lake, "SELECT i AS id FROM range(%d, %d) t(i)", i * 5, i * 5 + 5);
        char keys[64];
        assert_true(snprintf(keys, sizeof(keys), "SELECT %d::BIGINT AS id", i * 5) > 0);
        lake_row_delta(&lake,
                       &(LakeRowDelta){.keys = keys, .key_names = {"id"}, .operation = "delete"});
    }
    UnchangedTable before = unchanged_look(&lake);
    char *was = entries(&lake);
    KnRewriteManifestsResult res = rewrite(&lake);
    char *is = entries(&lake);
    assert_string_equal(is, was);
    assert_int_equal(res.n_created, 2);
    assert_int_equal(n_manifests(&lake, true), 1);
    assert_int_equal(n_manifests(&lake, false), 1);
    unchanged_check(&lake, &before);
    free(was);
    free(is);
    lake_close(&lake);
}

static void manifests_of_other_specs_are_kept(void **state)
{
    (void)state;
    Lake lake;
    open_partitioned(&lake, 2, "8388608");
    KnPartitionSpec *spec = NULL;
    lake_ok(&lake, kn_partition_spec_parse_text(lake.tbl->arena, kn_metadata_schema(lake.tbl->md),
                                                kn_str("bucket(2, id)"), &spec, &lake.err));
    KnUpdate updates[] = {{.kind = KN_UPDATE_ADD_SPEC, .spec = spec},
                          {.kind = KN_UPDATE_SET_DEFAULT_SPEC, .number = -1}};
    KnTableCommit commit = {.updates = updates, .n_updates = 2};
    lake_ok(&lake, kn_table_commit(lake.tbl, &commit, &lake.err));
    assert_int_equal(rewrite(&lake).snapshot_id, -1);
    lake_append(&lake, "SELECT 100 AS id");
    assert_int_equal(rewrite(&lake).snapshot_id, -1);
    KnRewriteManifestsOptions opts = {.spec_id = 0};
    KnManifestsPlanned planned[2];
    lake_ok(&lake, kn_rewrite_manifests_plan(lake.tbl, &opts, planned, &lake.err));
    assert_int_equal(planned[0].n_manifests, 6);
    assert_int_equal(planned[0].n_entries, 30);
    assert_int_equal(planned[0].n_new, 1);
    assert_int_equal(planned[1].n_manifests, 0);
    assert_int_equal(planned[1].n_new, 0);
    UnchangedTable before = unchanged_look(&lake);
    KnRewriteManifestsResult res;
    lake_ok(&lake, kn_write_rewrite_manifests(lake.tbl, &opts, &res, &lake.err));
    assert_int_equal(res.n_created, 1);
    assert_int_equal(res.n_kept, 1);
    unchanged_check(&lake, &before);
    opts.spec_id = 7;
    lake_fails(&lake, kn_write_rewrite_manifests(lake.tbl, &opts, &res, &lake.err), KN_E_INVAL,
               "spec-id 7");
    lake_close(&lake);
}

static void rounds_give_the_same(void **state)
{
    (void)state;
    Lake lake;
    open_partitioned(&lake, 3, "2000");
    size_t n = 0;
    KnManifestFile *files = manifests(&lake, &n);
    char *written[2] = {NULL, NULL};
    for (int i = 0; i < 2; i++) {
        KnWriter w;
        lake_ok(&lake, kn_writer_init(&w, lake.tbl, NULL, NULL, &lake.err));
        KnRegroupOptions opts = {.spec_id = 0, .target_bytes = 400, .memory = i == 0 ? 1 : 0};
        KnRegroup *group = NULL;
        lake_ok(&lake, kn_regroup_plan(&w, &opts, files, n, &group, &lake.err));
        size_t n_new = kn_regroup_outputs(group);
        assert_true(n_new > 3);
        KnManifestFile made[32];
        lake_ok(&lake,
                kn_regroup_write(group, &w, (KnRegroupListener){NULL, NULL}, made, &lake.err));
        KN_BUF_AUTO buf;
        kn_buf_init(&buf, (size_t)1 << 20);
        KnManifestVisit visit = {.fn = put_entry, .arg = &buf};
        for (size_t m = 0; m < n_new; m++) {
            made[m].sequence_number = 7;
            lake_ok(&lake, kn_manifest_read(lake.io, lake.tbl->md, &made[m], &visit, &lake.err));
        }
        written[i] = kn_buf_steal(&buf, NULL);
        kn_regroup_free(group);
        kn_writer_done(&w, false);
    }
    assert_string_equal(written[0], written[1]);
    assert_int_equal(lake_files_below(&lake, "metadata"), 6 * 3 + 1);
    free(written[0]);
    free(written[1]);
    lake_close(&lake);
}

/* ---- races ---- */

static void as_other(Lake *lake, void (*act)(Lake *))
{
    KnTable *mine = lake_become_other(lake);
    act(lake);
    lake_become_myself(lake, mine);
}

static void append_one(Lake *lake)
{
    lake_append(lake, "SELECT 100 AS id, 'p1' AS p");
}

static void delete_one(Lake *lake)
{
    lake_delete(lake, "id = 11");
}

static void rewrite_all(Lake *lake)
{
    assert_int_equal(rewrite(lake).n_replaced, 6);
}

static void other_appends(Lake *lake)
{
    as_other(lake, append_one);
}

static void other_deletes(Lake *lake)
{
    as_other(lake, delete_one);
}

static void other_rewrites(Lake *lake)
{
    as_other(lake, rewrite_all);
}

static void races_end_well(void **state)
{
    (void)state;
    static const struct {
        void (*turn)(Lake *);
        int64_t replaced, kept, snapshots;
        size_t new_files; /* of metadata: document, list and manifests of each commit */
        const char *rows;
    } cases[] = {
        {other_appends, 6, 1, 8, 6, "61 1870"},
        {other_deletes, 7, 0, 8, 7, "59 1759"},
        {other_rewrites, 0, 0, 7, 3, "60 1770"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        Lake lake;
        open_partitioned(&lake, 2, "8388608");
        lake.before_commit = cases[i].turn;
        KnRewriteManifestsResult res = rewrite(&lake);
        assert_int_equal(res.n_replaced, cases[i].replaced);
        assert_string_equal(lake_text(&lake, "SELECT count(*) || ' ' || sum(id) FROM {scan}"),
                            cases[i].rows);
        assert_int_equal(lake.tbl->md->n_snapshots, cases[i].snapshots);
        if (res.snapshot_id >= 0)
            unchanged_window(&lake, head(&lake)->parent_id, head(&lake));
        assert_int_equal(lake_files_below(&lake, "metadata"), 3 * 6 + 1 + cases[i].new_files);
        lake_close(&lake);
    }
}

static void a_failure_loses_nothing(void **state)
{
    (void)state;
    static const char *const points[] = {"write-data-written", "write-manifest-written",
                                         "write-list-written", "write-before-commit"};
    Lake lake;
    open_partitioned(&lake, 2, "6000");
    size_t files = lake_files_below(&lake, "");
    UnchangedTable before = unchanged_look(&lake);
    for (size_t i = 0; i < sizeof(points) / sizeof(points[0]); i++) {
        char spec[64];
        assert_true(snprintf(spec, sizeof(spec), "%s:1:fail", points[i]) > 0);
        lake_ok(&lake, kn_fault_set(spec, NULL, &lake.err));
        KnRewriteManifestsOptions opts = {.spec_id = -1};
        KnRewriteManifestsResult res;
        lake_fails(&lake, kn_write_rewrite_manifests(lake.tbl, &opts, &res, &lake.err), KN_E_IO,
                   points[i]);
        lake_ok(&lake, kn_fault_set(NULL, NULL, &lake.err));
        assert_int_equal(lake_files_below(&lake, ""), files);
    }
    lake.fail_commit = KN_E_UNKNOWN;
    KnRewriteManifestsOptions opts = {.spec_id = -1};
    KnRewriteManifestsResult res;
    lake_fails(&lake, kn_write_rewrite_manifests(lake.tbl, &opts, &res, &lake.err), KN_E_UNKNOWN,
               "answer was lost");
    lake_ok(&lake, kn_table_refresh(lake.tbl, &lake.err));
    unchanged_check(&lake, &before);
    lake_close(&lake);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(entries_are_clustered_by_partition),
        cmocka_unit_test(delete_manifests_are_rewritten_too),
        cmocka_unit_test(manifests_of_other_specs_are_kept),
        cmocka_unit_test(rounds_give_the_same),
        cmocka_unit_test(races_end_well),
        cmocka_unit_test(a_failure_loses_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
