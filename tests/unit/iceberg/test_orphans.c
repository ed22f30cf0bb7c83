/* SPDX-License-Identifier: Apache-2.0 */
/* test_orphans.c - files that nothing reaches go, all others stay; purging takes what is reached.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fault.h"
#include "base/path.h"
#include "iceberg/maintain/orphans.h"
#include "iceberg/maintain/refs.h"
#include "support/tempdir.h"
#include "unit/iceberg/lake.h"

static const LakeTable plain = {.schema = "id long required, name string",
                                .props = {"write.wap.enabled", "true"}};

#define FUTURE INT64_C(32503680000000)

static const char *below(Lake *lake, const char *name)
{
    return kn_path_join(lake->tbl->arena, kn_str(lake->dir), kn_str(name));
}

static void put(Lake *lake, const char *name)
{
    lake_ok(lake,
            kn_io_write(lake->io, kn_str(below(lake, name)), "x", 1, KN_IO_CREATE, &lake->err));
}

static bool there(Lake *lake, const char *name)
{
    KnFileInfo info;
    return kn_io_stat(lake->io, kn_str(below(lake, name)), &info, NULL) == KN_OK;
}

static size_t found;
static KnCode count_file(void *arg, const KnFileName *name, KnErr *err)
{
    (void)arg;
    (void)name;
    (void)err;
    found++;
    return KN_OK;
}

static KnOrphanOptions all_ages(void)
{
    found = 0;
    return (KnOrphanOptions){.older_than_ms = FUTURE, .sweep = {.fn = count_file}};
}

static size_t remove_with(Lake *lake, const KnOrphanOptions *opts)
{
    KnSweepResult res = {0};
    lake_ok(lake, kn_table_remove_orphans(lake->tbl, lake->ses, opts, &res, &lake->err));
    assert_int_equal(res.files[KN_FILE_OTHER], found);
    return found;
}

/* A table with everything that may be reached: branches, a staged snapshot, deletes, statistics. */
static void fill(Lake *lake)
{
    KnRefMove move;
    KnWriteResult wrote;
    lake_append(lake, "SELECT i AS id FROM range(10) t(i)");
    KnRefSet tag = {
        .name = "v1", .min_snapshots_to_keep = -1, .max_snapshot_age_ms = -1, .max_ref_age_ms = -1};
    lake_ok(lake, kn_ref_set(lake->tbl, &tag, &move, &lake->err));
    lake_delete(lake, "id = 3");
    KnWriteOptions dev = {.branch = "dev"}, staged = {.wap_id = "w"};
    lake_ok(lake, kn_write_append(lake->tbl, lake->ses, "SELECT 50::BIGINT AS id", &dev, &wrote,
                                  &lake->err));
    lake_ok(lake, kn_write_append(lake->tbl, lake->ses, "SELECT 60::BIGINT AS id", &staged, &wrote,
                                  &lake->err));
    lake_row_delta(lake, &(LakeRowDelta){.keys = "SELECT 5::BIGINT AS id",
                                         .key_names = {"id"},
                                         .operation = "delete"});
    put(lake, "metadata/stats.puffin");
    char text[900];
    if (snprintf(text, sizeof(text),
                 "{\"snapshot-id\":%" PRId64
                 ",\"statistics-path\":\"file://%s/metadata/stats.puffin\","
                 "\"file-size-in-bytes\":1,\"file-footer-size-in-bytes\":1,\"blob-metadata\":[]}",
                 lake->tbl->md->current_snapshot_id, lake->dir) < 0)
        abort();
    KN_JSON_AUTO stats = NULL;
    lake_ok(lake, kn_json_parse(text, strlen(text), &stats, &lake->err));
    KnUpdate update = {.kind = KN_UPDATE_SET_STATISTICS, .json = stats};
    lake_ok(lake, kn_table_commit(lake->tbl, &(KnTableCommit){.updates = &update, .n_updates = 1},
                                  &lake->err));
}

static void read_everything(Lake *lake)
{
    for (size_t i = 0; i < lake->tbl->md->n_snapshots; i++)
        lake_text_at(lake, &lake->tbl->md->snapshots[i], "SELECT count(*) FROM {scan}");
}

static void nothing_that_is_reached_goes(void **state)
{
    (void)state;
    Lake lake;
    lake_open(&lake, &plain);
    fill(&lake);
    put(&lake, "metadata/version-hint.text");
    KnOrphanOptions opts = all_ages();
    assert_int_equal(remove_with(&lake, &opts), 0);
    read_everything(&lake);
    assert_true(there(&lake, "metadata/stats.puffin"));
    lake_close(&lake);
}

static void what_nothing_reaches_goes(void **state)
{
    (void)state;
    static const char *const go[] = {"data/junk.parquet", "junk", "data/deep/er/x",
                                     "metadata/old.avro",
                                     "data/.01234567-89ab-cdef-0123-456789abcdef"};
    static const char *const stay[] = {"data/_SUCCESS", "data/.x.crc", "_temporary/a/b",
                                       "data/.01234567-89ab-cdef-0123-456789abcdeg"};
    Lake lake;
    lake_open(&lake, &plain);
    fill(&lake);
    for (size_t i = 0; i < 5; i++)
        put(&lake, go[i]);
    for (size_t i = 0; i < 4; i++)
        put(&lake, stay[i]);
    KnOrphanOptions opts = all_ages();
    opts.sweep.dry_run = true;
    assert_int_equal(remove_with(&lake, &opts), 5);
    assert_true(there(&lake, go[0]));
    opts = all_ages();
    opts.older_than_ms = 1000; /* nothing is as old */
    assert_int_equal(remove_with(&lake, &opts), 0);
    opts = all_ages();
    opts.location = "metadata";
    assert_int_equal(remove_with(&lake, &opts), 1);
    assert_false(there(&lake, "metadata/old.avro"));
    opts = all_ages();
    assert_int_equal(remove_with(&lake, &opts), 4);
    for (size_t i = 0; i < 4; i++)
        assert_true(there(&lake, stay[i]));
    read_everything(&lake);
    lake_close(&lake);
}

static void hidden_partitions_are_no_hidden_files(void **state)
{
    (void)state;
    static const LakeTable parts = {.schema = "id long, _p int", .spec = "_p"};
    Lake lake;
    lake_open(&lake, &parts);
    lake_append(&lake, "SELECT 1::BIGINT AS id, 2 AS _p");
    put(&lake, "data/_p=2/junk.parquet");
    put(&lake, "data/_q=2/junk.parquet");
    KnOrphanOptions opts = all_ages();
    assert_int_equal(remove_with(&lake, &opts), 1);
    assert_false(there(&lake, "data/_p=2/junk.parquet"));
    assert_string_equal(lake_rows(&lake), "{'id': 1, '_p': 2}");
    lake_close(&lake);
}

static void links_are_not_followed(void **state)
{
    (void)state;
    Lake lake;
    Lake other;
    lake_open(&lake, &plain);
    lake_open(&other, &plain);
    lake_append(&lake, "SELECT 1::BIGINT AS id");
    put(&other, "data/precious");
    char outside[512];
    if (snprintf(outside, sizeof(outside), "%s/data", other.dir) < 0)
        abort();
    assert_int_equal(symlink(outside, below(&lake, "data/link")), 0);
    KnOrphanOptions opts = all_ages();
    remove_with(&lake, &opts);
    assert_true(there(&other, "data/precious"));
    lake_close(&lake);
    lake_close(&other);
}

static void another_tables_metadata_refuses_all(void **state)
{
    (void)state;
    Lake lake;
    KnSweepResult res;
    lake_open(&lake, &plain);
    lake_append(&lake, "SELECT 1::BIGINT AS id");
    put(&lake, "inner/metadata/00000-x.metadata.json");
    put(&lake, "data/junk");
    KnOrphanOptions opts = all_ages();
    lake_fails(&lake, kn_table_remove_orphans(lake.tbl, lake.ses, &opts, &res, &lake.err),
               KN_E_REFUSED, "another table");
    assert_true(there(&lake, "data/junk"));
    opts.location = "data";
    assert_int_equal(remove_with(&lake, &opts), 1);
    lake_close(&lake);
}

static void folders_of_others_and_gc_disabled_are_refused(void **state)
{
    (void)state;
    static const LakeTable off = {.schema = "id long", .props = {"gc.enabled", "false"}};
    Lake lake;
    KnSweepResult res;
    lake_open(&lake, &plain);
    KnOrphanOptions opts = all_ages();
    opts.location = "/etc";
    lake_fails(&lake, kn_table_remove_orphans(lake.tbl, lake.ses, &opts, &res, &lake.err),
               KN_E_REFUSED, "outside");
    opts.location = "../other";
    lake_fails(&lake, kn_table_remove_orphans(lake.tbl, lake.ses, &opts, &res, &lake.err),
               KN_E_REFUSED, "outside");
    lake_close(&lake);
    lake_open(&lake, &off);
    opts = all_ages();
    lake_fails(&lake, kn_table_remove_orphans(lake.tbl, lake.ses, &opts, &res, &lake.err),
               KN_E_REFUSED, "gc.enabled");
    KnSweepOptions purge = {0};
    lake_fails(&lake, kn_table_purge(lake.tbl, lake.ses, &purge, &res, &lake.err), KN_E_REFUSED,
               "gc.enabled");
    assert_false(lake.dropped);
    lake_close(&lake);
}

static void damage_removes_nothing(void **state)
{
    (void)state;
    Lake lake;
    KnSweepResult res;
    lake_open(&lake, &plain);
    lake_append(&lake, "SELECT 1::BIGINT AS id");
    lake_append(&lake, "SELECT 2::BIGINT AS id");
    put(&lake, "data/junk");
    lake_ok(&lake,
            kn_io_remove(lake.io, kn_str(lake.tbl->md->snapshots[0].manifest_list), &lake.err));
    KnOrphanOptions opts = all_ages();
    lake_fails(&lake, kn_table_remove_orphans(lake.tbl, lake.ses, &opts, &res, &lake.err),
               KN_E_NOTFOUND, "snapshot");
    assert_true(there(&lake, "data/junk"));
    KnSweepOptions purge = {0};
    lake_fails(&lake, kn_table_purge(lake.tbl, lake.ses, &purge, &res, &lake.err), KN_E_NOTFOUND,
               "not dropped");
    assert_false(lake.dropped);
    lake_close(&lake);
}

static void other_spellings_are_the_same_file_or_refused(void **state)
{
    (void)state;
    Lake lake;
    lake_open(&lake, &plain);
    static const struct {
        const char *listed, *named;
        bool same, mismatch;
    } pairs[] = {
        {"file:///w/t/a", "/w/t/a", true, false},
        {"file:/w//t/./a", "file:///w/t/a", true, false},
        {"s3a://b/w/a", "s3://b/w//a", true, false},
        {"s3://b/w/a", "S3N://B/w/a", true, false},
        {"s3://b/w/a", "s3://c/w/a", true, true},
        {"hdfs://n1/w/a", "file:/w/a", true, true},
        {"file:///w/a", "file:///w/b", false, false},
    };
    for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
        KnFileSet *listed = NULL, *named = NULL;
        lake_ok(&lake, kn_file_set_open(lake.ses, &listed, &lake.err));
        lake_ok(&lake, kn_file_set_open(lake.ses, &named, &lake.err));
        KnFileName a = {KN_FILE_OTHER, kn_str(pairs[i].listed), 1};
        KnFileName b = {KN_FILE_DATA, kn_str(pairs[i].named), 1};
        lake_ok(&lake, kn_file_set_add(listed, &a, &lake.err));
        lake_ok(&lake, kn_file_set_add(named, &b, &lake.err));
        KnFileVisit visit = {.fn = count_file};
        KnFileMinus minus = {.without = named};
        found = 0;
        lake_ok(&lake, kn_file_set_minus(listed, &minus, &visit, &lake.err));
        assert_int_equal(found, pairs[i].same ? 0 : 1);
        found = 0;
        lake_ok(&lake, kn_file_set_mismatch(listed, named, &visit, &lake.err));
        assert_int_equal(found, pairs[i].mismatch ? 1 : 0);
        minus.exact = true;
        found = 0;
        lake_ok(&lake, kn_file_set_minus(listed, &minus, &visit, &lake.err));
        assert_int_equal(found, !pairs[i].same || pairs[i].mismatch ? 1 : 0);
        kn_file_set_close(listed);
        kn_file_set_close(named);
    }
    lake_close(&lake);
}

static void purging_takes_what_is_reached_and_no_more(void **state)
{
    (void)state;
    Lake lake;
    KnSweepResult dry = {0}, res = {0};
    lake_open(&lake, &plain);
    fill(&lake);
    put(&lake, "data/junk");
    KnSweepOptions opts = {.dry_run = true};
    lake_ok(&lake, kn_table_purge(lake.tbl, lake.ses, &opts, &dry, &lake.err));
    assert_false(lake.dropped);
    assert_true(lake_files_below(&lake, "") > 10);
    opts.dry_run = false;
    lake_ok(&lake, kn_table_purge(lake.tbl, lake.ses, &opts, &res, &lake.err));
    assert_true(lake.dropped);
    assert_memory_equal(dry.files, res.files, sizeof(res.files));
    assert_int_equal(lake_files_below(&lake, ""), 1);
    assert_true(there(&lake, "data/junk"));
    lake_close(&lake);
}

static void more_names_than_a_batch_are_told_apart(void **state)
{
    (void)state;
    Lake lake;
    lake_open(&lake, &plain);
    KnFileSet *all = NULL, *some = NULL;
    lake_ok(&lake, kn_file_set_open(lake.ses, &all, &lake.err));
    lake_ok(&lake, kn_file_set_open(lake.ses, &some, &lake.err));
    for (int i = 0; i < 10000; i++) {
        char text[32];
        if (snprintf(text, sizeof(text), "file:/w/%d\xff", i) < 0)
            abort();
        KnFileName name = {KN_FILE_DATA, kn_str(text), i};
        lake_ok(&lake, kn_file_set_add(all, &name, &lake.err));
        if (i % 3 == 0)
            lake_ok(&lake, kn_file_set_add(some, &name, &lake.err));
    }
    KnFileVisit visit = {.fn = count_file};
    KnFileMinus minus = {.without = some};
    found = 0;
    lake_ok(&lake, kn_file_set_minus(all, &minus, &visit, &lake.err));
    assert_int_equal(found, 6666);
    assert_int_equal(kn_file_set_count(all), 10000);
    kn_file_set_close(all);
    kn_file_set_close(some);
    lake_close(&lake);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_that_is_reached_goes),
        cmocka_unit_test(what_nothing_reaches_goes),
        cmocka_unit_test(hidden_partitions_are_no_hidden_files),
        cmocka_unit_test(links_are_not_followed),
        cmocka_unit_test(another_tables_metadata_refuses_all),
        cmocka_unit_test(folders_of_others_and_gc_disabled_are_refused),
        cmocka_unit_test(damage_removes_nothing),
        cmocka_unit_test(other_spellings_are_the_same_file_or_refused),
        cmocka_unit_test(purging_takes_what_is_reached_and_no_more),
        cmocka_unit_test(more_names_than_a_batch_are_told_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
