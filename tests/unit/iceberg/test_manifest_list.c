/* SPDX-License-Identifier: Apache-2.0 */
/* test_manifest_list.c - manifest lists: read from real tables, written, and read again. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "unit/iceberg/manifest_support.h"

static const char list_path[] = "mem://t/list.avro";

/* ---- reading ---- */

static void lines_of_a_v2_list_have_counts_and_summaries(void **state)
{
    (void)state;
    TestTable table;
    test_table_open("part_types_v2", &table);
    assert_int_equal(table.n_manifests, 1);
    const KnManifestFile *mf = &table.manifests[0];
    assert_int_equal(mf->length, 9605);
    assert_int_equal(mf->spec_id, 0);
    assert_false(mf->deletes);
    assert_int_equal(mf->sequence_number, 2);
    assert_int_equal(mf->min_sequence_number, 1);
    assert_true(mf->added_snapshot_id == 2729331914889319733);
    assert_int_equal(mf->added_files, 0);
    assert_int_equal(mf->existing_files, 3);
    assert_int_equal(mf->deleted_files, 1);
    assert_int_equal(mf->added_rows, 0);
    assert_int_equal(mf->existing_rows, 3);
    assert_int_equal(mf->deleted_rows, 1);
    assert_null(mf->key_metadata.ptr);
    assert_int_equal(mf->first_row_id, -1);
    assert_int_equal(mf->n_partitions, 8);
    assert_true(mf->partitions[0].contains_null);
    assert_int_equal(mf->partitions[0].contains_nan, 0);
    assert_true(kn_str_eq(mf->partitions[0].upper, (KnStr){"\x01", 1}));
    assert_true(kn_str_eq(mf->partitions[2].lower, (KnStr){"\xfb\xb4", 2}));
    assert_true(mf->partitions[5].lower.ptr && mf->partitions[5].lower.len == 0);
    assert_int_equal(mf->partitions[7].contains_nan, 1);
    assert_true(kn_str_eq(mf->partitions[7].lower, (KnStr){"\0\0\0\x80", 4}));
    test_table_close(&table);
}

static void lines_of_a_v3_list_have_row_ids_for_data_only(void **state)
{
    (void)state;
    TestTable table;
    test_table_open("dv_v3", &table);
    assert_int_equal(table.n_manifests, 3);
    assert_int_equal(table.manifests[0].first_row_id, 0);
    assert_false(table.manifests[0].deletes);
    assert_true(table.manifests[1].deletes && table.manifests[2].deletes);
    assert_int_equal(table.manifests[1].first_row_id, -1);
    assert_int_equal(table.manifests[2].deleted_rows, 19990);
    assert_true(table.manifests[0].partitions && table.manifests[0].n_partitions == 0);
    test_table_close(&table);
}

static void lines_of_a_v1_list_are_data_of_sequence_number_0(void **state)
{
    (void)state;
    TestTable table;
    test_table_open("v1", &table);
    for (size_t i = 0; i < table.n_manifests; ++i) {
        assert_false(table.manifests[i].deletes);
        assert_int_equal(table.manifests[i].sequence_number, 0);
        assert_int_equal(table.manifests[i].min_sequence_number, 0);
        assert_int_equal(table.manifests[i].spec_id, 1);
    }
    assert_int_equal(table.manifests[2].added_files, 3);
    assert_int_equal(table.manifests[2].added_rows, 3);
    test_table_close(&table);
}

static void a_v1_snapshot_may_list_its_manifests_itself(void **state)
{
    (void)state;
    TestTable table;
    test_table_open("v1", &table);
    const char *paths[] = {table.manifests[2].path, table.manifests[0].path};
    KnSnapshot snap = {.snapshot_id = 77, .n_manifests = 2, .manifests = paths};
    KnManifestFile *list;
    size_t n;
    KnErr err = {0};
    assert_int_equal(kn_manifest_list_read(table.io, table.arena, &snap, &list, &n, &err), KN_OK);
    assert_int_equal(n, 2);
    assert_string_equal(list[0].path, paths[0]);
    assert_int_equal(list[0].length, table.manifests[2].length);
    assert_int_equal(list[0].spec_id, 1); /* of the manifest's header */
    assert_int_equal(list[0].added_snapshot_id, 77);
    assert_int_equal(list[0].added_files, -1);
    TestEntries e;
    KnManifestReadOptions opts = {true, true};
    assert_int_equal(test_manifest_collect(&table, &list[0], opts, &e, &err), KN_OK);
    assert_int_equal(e.n, 3);
    assert_int_equal(e.items[0]->sequence_number, 0);
    test_table_close(&table);
}

static void lists_that_cannot_be_read_are_named(void **state)
{
    (void)state;
    TestTable table;
    test_table_make(2, &table);
    KnSnapshot snap = {.snapshot_id = 5, .manifest_list = "mem://t/none.avro"};
    KnManifestFile *list = NULL;
    size_t n = 3;
    KnErr err = {0};
    assert_int_equal(kn_manifest_list_read(table.io, table.arena, &snap, &list, &n, &err),
                     KN_E_NOTFOUND);
    assert_non_null(strstr(err.msg, "none.avro"));
    snap.key_id = "key";
    assert_int_equal(kn_manifest_list_read(table.io, table.arena, &snap, &list, &n, &err),
                     KN_E_UNSUPPORTED);
    snap.key_id = NULL;
    assert_int_equal(
        kn_io_write(table.io, kn_str(snap.manifest_list), "Obj", 3, KN_IO_CREATE, NULL), KN_OK);
    assert_int_equal(kn_manifest_list_read(table.io, table.arena, &snap, &list, &n, &err),
                     KN_E_CORRUPT);
    assert_non_null(strstr(err.msg, "none.avro"));
    assert_null(list);
    assert_int_equal(n, 3);
    test_table_close(&table);
}

/* ---- writing ---- */

static KnManifestFile line(const char *path, int64_t rows)
{
    KnManifestFile mf = kn_manifest_file_empty();
    mf.path = path;
    mf.length = 1234;
    mf.spec_id = 7;
    mf.sequence_number = -1;
    mf.min_sequence_number = -1;
    mf.added_snapshot_id = 50;
    mf.added_files = 1;
    mf.existing_files = 0;
    mf.deleted_files = 0;
    mf.added_rows = rows;
    mf.existing_rows = 0;
    mf.deleted_rows = 0;
    return mf;
}

static KnManifestListWrite listing(int32_t version, const KnManifestFile *manifests, size_t n)
{
    return (KnManifestListWrite){
        .format_version = version,
        .snapshot_id = 50,
        .parent_id = 40,
        .sequence_number = 8,
        .first_row_id = version == 3 ? 1000 : -1,
        .manifests = manifests,
        .n_manifests = n,
        .path = list_path,
    };
}

static size_t read_back(const TestTable *table, KnManifestFile **ret)
{
    KnSnapshot snap = {.snapshot_id = 50, .manifest_list = list_path};
    size_t n = 0;
    KnErr err = {0};
    if (kn_manifest_list_read(table->io, table->arena, &snap, ret, &n, &err) != KN_OK)
        fail_msg("%s", err.msg);
    return n;
}

static void numbers_that_are_not_assigned_become_the_snapshots(void **state)
{
    (void)state;
    TestTable table;
    test_table_make(2, &table);
    KnManifestFile in[3] = {line("a", 1), line("b", 2), line("c", 3)};
    in[1].min_sequence_number = 3; /* rewritten: some entries keep their number */
    in[2].sequence_number = 6;
    in[2].min_sequence_number = 2;
    in[2].added_snapshot_id = 30;
    in[2].deletes = true;
    KnManifestListWrite w = listing(2, in, 3);
    int64_t next = -5;
    KnErr err = {0};
    assert_int_equal(kn_manifest_list_write(table.io, &w, &next, &err), KN_OK);
    assert_int_equal(next, -1);
    KnManifestFile *out;
    assert_int_equal(read_back(&table, &out), 3);
    assert_int_equal(out[0].sequence_number, 8);
    assert_int_equal(out[0].min_sequence_number, 8);
    assert_int_equal(out[1].sequence_number, 8);
    assert_int_equal(out[1].min_sequence_number, 3);
    assert_int_equal(out[2].sequence_number, 6);
    assert_int_equal(out[2].min_sequence_number, 2);
    assert_true(out[2].deletes);
    assert_int_equal(out[2].added_snapshot_id, 30);
    in[0].added_snapshot_id = 49;
    w.path = "mem://t/other.avro";
    assert_int_equal(kn_manifest_list_write(table.io, &w, &next, &err), KN_E_INVAL);
    assert_non_null(strstr(err.msg, "manifest a: no sequence number"));
    test_table_close(&table);
}

static void v3_row_ids_go_to_data_manifests_that_have_none(void **state)
{
    (void)state;
    TestTable table;
    test_table_make(3, &table);
    KnManifestFile in[5] = {line("a", 10), line("b", 5), line("c", 7), line("d", 100),
                            line("e", 1)};
    in[1].deletes = true;
    in[2].existing_rows = 3;
    in[2].deleted_rows = 1000;
    in[3].first_row_id = 0; /* of an older snapshot */
    KnManifestListWrite w = listing(3, in, 5);
    int64_t next;
    assert_int_equal(kn_manifest_list_write(table.io, &w, &next, NULL), KN_OK);
    assert_int_equal(next, 1021);
    KnManifestFile *out;
    assert_int_equal(read_back(&table, &out), 5);
    static const int64_t want[] = {1000, -1, 1010, 0, 1020};
    for (size_t i = 0; i < 5; ++i)
        assert_int_equal(out[i].first_row_id, want[i]);
    test_table_close(&table);
}

static void everything_in_a_line_comes_back(void **state)
{
    (void)state;
    for (int32_t version = 1; version <= 3; ++version) {
        TestTable table;
        test_table_make(version == 1 ? 2 : version, &table);
        KnFieldSummary summaries[2] = {
            {true, 1, KN_STR_LIT("a"), KN_STR_LIT("")},
            {false, -1, {NULL, 0}, {NULL, 0}},
        };
        KnManifestFile in = line("mem://t/x", 9);
        in.partitions = summaries;
        in.n_partitions = 2;
        in.key_metadata = KN_STR_LIT("kk");
        in.sequence_number = version > 1 ? 4 : 0;
        in.min_sequence_number = version > 1 ? 3 : 0;
        KnManifestListWrite w = listing(version, &in, 1);
        int64_t next;
        assert_int_equal(kn_manifest_list_write(table.io, &w, &next, NULL), KN_OK);
        KnManifestFile *out;
        assert_int_equal(read_back(&table, &out), 1);
        assert_string_equal(out->path, "mem://t/x");
        assert_int_equal(out->length, 1234);
        assert_int_equal(out->spec_id, 7);
        assert_int_equal(out->sequence_number, in.sequence_number);
        assert_int_equal(out->min_sequence_number, in.min_sequence_number);
        assert_int_equal(out->added_rows, 9);
        assert_int_equal(out->deleted_files, 0);
        assert_true(kn_str_eq(out->key_metadata, in.key_metadata));
        assert_int_equal(out->n_partitions, 2);
        assert_true(out->partitions[0].contains_null && !out->partitions[1].contains_null);
        assert_int_equal(out->partitions[0].contains_nan, 1);
        assert_int_equal(out->partitions[1].contains_nan, -1);
        assert_true(kn_str_eq(out->partitions[0].lower, KN_STR_LIT("a")));
        assert_true(out->partitions[0].upper.ptr && out->partitions[0].upper.len == 0);
        assert_null(out->partitions[1].lower.ptr);
        test_table_close(&table);
    }
}

static void lists_that_must_not_be_are_refused(void **state)
{
    (void)state;
    TestTable table;
    test_table_make(3, &table);
    KnManifestFile in = line("a", 1);
    in.deletes = true;
    in.sequence_number = 0;
    in.min_sequence_number = 0;
    int64_t next;
    KnErr err = {0};
    KnManifestListWrite w = listing(1, &in, 1);
    assert_int_equal(kn_manifest_list_write(table.io, &w, &next, &err), KN_E_INVAL);
    in = line("a", 1);
    in.existing_rows = -1;
    w = listing(3, &in, 1);
    assert_int_equal(kn_manifest_list_write(table.io, &w, &next, &err), KN_E_UNSUPPORTED);
    assert_non_null(strstr(err.msg, "has no counts"));
    in = line("a", INT64_MAX);
    assert_int_equal(kn_manifest_list_write(table.io, &w, &next, &err), KN_E_INVAL);
    w.first_row_id = -1;
    assert_int_equal(kn_manifest_list_write(table.io, &w, &next, &err), KN_E_INVAL);
    w.format_version = 4;
    assert_int_equal(kn_manifest_list_write(table.io, &w, &next, &err), KN_E_INVAL);
    in = line("a", 1);
    w = listing(3, &in, 1);
    assert_int_equal(kn_manifest_list_write(table.io, &w, &next, &err), KN_OK);
    assert_int_equal(kn_manifest_list_write(table.io, &w, &next, &err), KN_E_EXISTS);
    test_table_close(&table);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_of_a_v2_list_have_counts_and_summaries),
        cmocka_unit_test(lines_of_a_v3_list_have_row_ids_for_data_only),
        cmocka_unit_test(lines_of_a_v1_list_are_data_of_sequence_number_0),
        cmocka_unit_test(a_v1_snapshot_may_list_its_manifests_itself),
        cmocka_unit_test(lists_that_cannot_be_read_are_named),
        cmocka_unit_test(numbers_that_are_not_assigned_become_the_snapshots),
        cmocka_unit_test(v3_row_ids_go_to_data_manifests_that_have_none),
        cmocka_unit_test(everything_in_a_line_comes_back),
        cmocka_unit_test(lists_that_must_not_be_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
