/* SPDX-License-Identifier: Apache-2.0 */
/* labels: slow */
/* test_rewrite_deletes.c - position deletes packed, cleaned, and made deletion vectors: the same
 * rows. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fault.h"
#include "base/random.h"
#include "iceberg/maintain/rewrite_deletes.h"
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

typedef struct Counts {
    int64_t files, vectors, equality, positions, named;
    int64_t least, most; /* sequence numbers */
} Counts;

static KnCode count_entry(void *arg, const KnManifestEntry *entry, KnErr *err)
{
    (void)err;
    Counts *c = arg;
    const KnDataFile *f = &entry->file;
    if (f->content == KN_CONTENT_EQUALITY_DELETES) {
        c->equality++;
        return KN_OK;
    }
    if (f->format == KN_FORMAT_PUFFIN)
        c->vectors++;
    else
        c->files++;
    c->positions += f->record_count;
    c->named += f->referenced_data_file != NULL;
    c->least =
        c->least == 0 || entry->sequence_number < c->least ? entry->sequence_number : c->least;
    c->most = entry->sequence_number > c->most ? entry->sequence_number : c->most;
    return KN_OK;
}

static Counts counts(Lake *lake)
{
    Counts c = {0};
    KnManifestFile *files = NULL;
    size_t n = 0;
    lake_ok(lake,
            kn_manifest_list_read(lake->io, lake->tbl->arena, head(lake), &files, &n, &lake->err));
    KnManifestVisit visit = {.opts = {.with_metrics = true}, .fn = count_entry, .arg = &c};
    for (size_t i = 0; i < n; i++) {
        if (files[i].deletes)
            lake_ok(lake, kn_manifest_read(lake->io, lake->tbl->md, &files[i], &visit, &lake->err));
    }
    return c;
}

static KnRewriteDeletesResult rewrite(Lake *lake, bool all)
{
    KnRewriteDeletesOptions opts = kn_rewrite_deletes_defaults();
    opts.sizes.rewrite_all = all;
    KnRewriteDeletesResult res = {.snapshot_id = -2};
    lake_ok(lake, kn_write_rewrite_deletes(lake->tbl, lake->ses, &opts, &res, &lake->err));
    return res;
}

static void open_lake(Lake *lake, const char *spec, const char *granularity)
{
    lake_open(lake, &(LakeTable){.schema = "id long required, p string",
                                 .spec = spec,
                                 .props = {"write.delete.mode", "merge-on-read",
                                           "write.delete.granularity", granularity,
                                           "commit.retry.min-wait-ms", "1"}});
    for (int i = 0; i < 2; i++)
        lake_append(lake, "SELECT i AS id, 'p' || i %% 2 AS p FROM range(%d, %d) t(i)", i * 200,
                    i * 200 + 200);
}

/* One snapshot with a delete file in each partition, and rows of each data file. */
static void delete_some(Lake *lake, int n)
{
    for (int i = 0; i < n; i++) {
        char where[128];
        assert_true(snprintf(where, sizeof(where), "id IN (%d, %d, %d, %d)", 2 * i, 2 * i + 1,
                             200 + 2 * i, 201 + 2 * i) > 0);
        lake_delete(lake, where);
    }
}

static void upgrade(Lake *lake)
{
    KnUpdate update = {.kind = KN_UPDATE_UPGRADE_FORMAT_VERSION, .number = 3};
    KnTableCommit commit = {.updates = &update, .n_updates = 1};
    lake_ok(lake, kn_table_commit(lake->tbl, &commit, &lake->err));
    lake_append(lake, "SELECT 1000 AS id, 'p0' AS p"); /* rows get their ids with the next commit */
}

/* ---- format 2 ---- */

static void small_files_are_packed_by_partition(void **state)
{
    (void)state;
    Lake lake;
    open_lake(&lake, "p", "partition");
    delete_some(&lake, 6);
    Counts c = counts(&lake);
    assert_int_equal(c.files, 12);
    assert_int_equal(c.positions, 24);
    UnchangedTable before = unchanged_look(&lake);
    KnRewriteDeletesResult res = rewrite(&lake, false);
    assert_int_equal(res.removed_files, 12);
    assert_int_equal(res.added_files, 2);
    assert_int_equal(res.dropped_positions, 0);
    c = counts(&lake);
    assert_int_equal(c.files, 2);
    assert_int_equal(c.positions, 24);
    assert_int_equal(c.least, 8);
    assert_int_equal(c.most, 8);
    assert_string_equal(summary(&lake, "added-position-delete-files"), "2");
    assert_string_equal(summary(&lake, "removed-position-delete-files"), "12");
    assert_string_equal(summary(&lake, "total-position-deletes"), "24");
    unchanged_check(&lake, &before);
    assert_int_equal(rewrite(&lake, false).snapshot_id, -1);
    lake_close(&lake);
}

static void files_of_one_data_file_stay_so(void **state)
{
    (void)state;
    Lake lake;
    open_lake(&lake, NULL, "file");
    delete_some(&lake, 3);
    assert_int_equal(counts(&lake).files, 6);
    UnchangedTable before = unchanged_look(&lake);
    KnRewriteDeletesResult res = rewrite(&lake, false);
    assert_int_equal(res.removed_files, 6);
    assert_int_equal(res.added_files, 2);
    assert_int_equal(counts(&lake).named, 2);
    unchanged_check(&lake, &before);
    assert_int_equal(rewrite(&lake, false).snapshot_id, -1);
    lake_close(&lake);
}

static void dangling_positions_are_dropped(void **state)
{
    (void)state;
    Lake lake;
    open_lake(&lake, NULL, "partition");
    delete_some(&lake, 3);
    lake_row_delta(&lake, &(LakeRowDelta){.positions = "SELECT 'gone.parquet' AS file_path, "
                                                       "i AS pos FROM range(5) t(i)",
                                          .operation = "delete"});
    lake_delete(&lake, "id < 200");
    UnchangedTable before = unchanged_look(&lake);
    KnRewriteDeletesResult res = rewrite(&lake, true);
    assert_int_equal(res.removed_files, 4);
    assert_int_equal(res.added_files, 1);
    assert_int_equal(res.dropped_positions, 6 + 5);
    assert_int_equal(counts(&lake).positions, 6);
    unchanged_check(&lake, &before);
    lake_close(&lake);
}

static void few_files_and_other_deletes_are_left_alone(void **state)
{
    (void)state;
    Lake lake;
    open_lake(&lake, NULL, "partition");
    assert_int_equal(rewrite(&lake, true).snapshot_id, -1);
    delete_some(&lake, 4);
    assert_int_equal(rewrite(&lake, false).snapshot_id, -1);
    lake_row_delta(&lake, &(LakeRowDelta){.keys = "SELECT 7::BIGINT AS id",
                                          .key_names = {"id"},
                                          .operation = "delete"});
    UnchangedTable before = unchanged_look(&lake);
    assert_int_equal(rewrite(&lake, true).added_files, 1);
    assert_int_equal(counts(&lake).equality, 1);
    unchanged_check(&lake, &before);
    KnRewriteDeletesOptions opts = kn_rewrite_deletes_defaults();
    opts.sizes.min_file_bytes = 100;
    opts.sizes.target_file_bytes = 50;
    KnRewriteDeletesResult res;
    lake_fails(&lake, kn_write_rewrite_deletes(lake.tbl, lake.ses, &opts, &res, &lake.err),
               KN_E_INVAL, "target-file-size-bytes");
    lake_close(&lake);
}

/* ---- format 3 ---- */

static void positions_become_vectors(void **state)
{
    (void)state;
    static const char *const specs[] = {NULL, "p"};
    for (size_t i = 0; i < 2; i++) {
        Lake lake;
        open_lake(&lake, specs[i], "partition");
        delete_some(&lake, 2);
        upgrade(&lake);
        lake_append(&lake, "SELECT i AS id, 'p0' AS p FROM range(400, 500) t(i)");
        lake_delete(&lake, "id IN (410, 420, 430)");
        lake_delete(&lake, "id = 5"); /* gets a vector of all its positions */
        UnchangedTable before = unchanged_look(&lake);
        int64_t tasks_with_deletes = specs[i] ? 5 : 3; /* data files */
        assert_true(counts(&lake).files > 0);
        KnRewriteDeletesResult res = rewrite(&lake, false);
        assert_true(res.snapshot_id >= 0);
        Counts c = counts(&lake);
        assert_int_equal(c.files, 0);
        assert_int_equal(c.vectors, tasks_with_deletes);
        assert_int_equal(c.positions, 8 + 3 + 1);
        unchanged_check(&lake, &before);
        assert_int_equal(rewrite(&lake, true).snapshot_id, -1);
        lake_close(&lake);
    }
}

/* ---- races ---- */

static void other_deletes(Lake *lake)
{
    KnTable *mine = lake_become_other(lake);
    lake_delete(lake, "id IN (100, 300)");
    lake_become_myself(lake, mine);
}

static void other_rewrites(Lake *lake)
{
    KnTable *mine = lake_become_other(lake);
    rewrite(lake, true);
    lake_become_myself(lake, mine);
}

static void other_appends(Lake *lake)
{
    KnTable *mine = lake_become_other(lake);
    lake_append(lake, "SELECT 900 AS id, 'p0' AS p");
    lake_become_myself(lake, mine);
}

static void races_end_well(void **state)
{
    (void)state;
    static const struct {
        void (*turn)(Lake *);
        bool v3;
        KnCode code;
        const char *part, *rows;
    } cases[] = {
        {other_appends, false, KN_OK, NULL, "389 79470"},
        {other_deletes, false, KN_OK, NULL, "386 78170"},
        {other_rewrites, false, KN_E_CONFLICT, "another writer removed them", "388 78570"},
        {other_appends, true, KN_OK, NULL, "390 80470"},
        {other_deletes, true, KN_E_CONFLICT, "added position deletes", "387 79170"},
        {other_rewrites, true, KN_E_CONFLICT, "added position deletes", "389 79570"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        Lake lake;
        open_lake(&lake, NULL, "partition");
        delete_some(&lake, 3);
        if (cases[i].v3)
            upgrade(&lake);
        lake.before_commit = cases[i].turn;
        KnRewriteDeletesOptions opts = kn_rewrite_deletes_defaults();
        opts.sizes.rewrite_all = true;
        KnRewriteDeletesResult res;
        KnCode rc = kn_write_rewrite_deletes(lake.tbl, lake.ses, &opts, &res, &lake.err);
        if (cases[i].code == KN_OK)
            lake_ok(&lake, rc);
        else
            lake_fails(&lake, rc, cases[i].code, cases[i].part);
        lake_ok(&lake, kn_table_refresh(lake.tbl, &lake.err));
        assert_string_equal(lake_text(&lake, "SELECT count(*) || ' ' || sum(id) FROM {scan}"),
                            cases[i].rows);
        lake_close(&lake);
    }
}

static void a_failure_loses_nothing(void **state)
{
    (void)state;
    static const char *const points[] = {"rewrite-group-written", "write-data-written",
                                         "write-manifest-written", "write-list-written",
                                         "write-before-commit"};
    for (int v3 = 0; v3 <= 1; v3++) {
        Lake lake;
        open_lake(&lake, NULL, "partition");
        delete_some(&lake, 2);
        if (v3)
            upgrade(&lake);
        size_t files = lake_files_below(&lake, "");
        UnchangedTable before = unchanged_look(&lake);
        KnRewriteDeletesOptions opts = kn_rewrite_deletes_defaults();
        opts.sizes.rewrite_all = true;
        KnRewriteDeletesResult res;
        for (size_t i = v3 ? 3 : 0; i < sizeof(points) / sizeof(points[0]); i++) {
            char spec[64];
            assert_true(snprintf(spec, sizeof(spec), "%s:1:fail", points[i]) > 0);
            lake_ok(&lake, kn_fault_set(spec, NULL, &lake.err));
            lake_fails(&lake, kn_write_rewrite_deletes(lake.tbl, lake.ses, &opts, &res, &lake.err),
                       KN_E_IO, points[i]);
            lake_ok(&lake, kn_fault_set(NULL, NULL, &lake.err));
            assert_int_equal(lake_files_below(&lake, ""), files);
        }
        lake.fail_commit = KN_E_UNKNOWN;
        lake_fails(&lake, kn_write_rewrite_deletes(lake.tbl, lake.ses, &opts, &res, &lake.err),
                   KN_E_UNKNOWN, "answer was lost");
        lake_ok(&lake, kn_table_refresh(lake.tbl, &lake.err));
        unchanged_check(&lake, &before);
        lake_close(&lake);
    }
}

static void random_deletes_stay_deleted(void **state)
{
    (void)state;
    uint64_t seed = (uint64_t)kn_random_id();
    print_message("seed %" PRIu64 "\n", seed);
    KnRng rng = {seed};
    Lake lake;
    open_lake(&lake, kn_rng_below(&rng, 2) ? "p" : NULL,
              kn_rng_below(&rng, 2) ? "file" : "partition");
    for (int step = 0; step < 8; step++) {
        char where[96];
        int at = (int)kn_rng_below(&rng, 400);
        assert_true(snprintf(where, sizeof(where), "id >= %d AND id < %d", at, at + 30) > 0);
        lake_delete(&lake, where);
        if (kn_rng_below(&rng, 4) == 0)
            lake_append(&lake, "SELECT i AS id, 'p1' AS p FROM range(%d, %d) t(i)", at, at + 20);
        if (step == 4)
            upgrade(&lake);
        if (kn_rng_below(&rng, 3) > 0)
            continue;
        UnchangedTable before = unchanged_look(&lake);
        rewrite(&lake, kn_rng_below(&rng, 2) == 0);
        unchanged_check(&lake, &before);
    }
    lake_close(&lake);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(small_files_are_packed_by_partition),
        cmocka_unit_test(files_of_one_data_file_stay_so),
        cmocka_unit_test(dangling_positions_are_dropped),
        cmocka_unit_test(few_files_and_other_deletes_are_left_alone),
        cmocka_unit_test(positions_become_vectors),
        cmocka_unit_test(races_end_well),
        cmocka_unit_test(a_failure_loses_nothing),
        cmocka_unit_test(random_deletes_stay_deleted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
