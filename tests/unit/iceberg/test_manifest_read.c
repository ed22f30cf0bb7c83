/* SPDX-License-Identifier: Apache-2.0 */
/* test_manifest_read.c - manifests of real tables, what entries inherit, and what is refused. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "unit/iceberg/manifest_support.h"

static const KnManifestReadOptions all = {.with_metrics = true, .with_deleted = true};
static const KnManifestReadOptions bare = {0};

static TestEntries collect(const TestTable *table, const KnManifestFile *mf,
                           KnManifestReadOptions opts)
{
    TestEntries entries;
    KnErr err = {0};
    if (test_manifest_collect(table, mf, opts, &entries, &err) != KN_OK)
        fail_msg("%s", err.msg);
    return entries;
}

static bool ends_with(const char *text, const char *tail)
{
    return kn_str_ends_with(kn_str(text), kn_str(tail));
}

/* ---- real tables ---- */

static void partition_tuples_of_every_kind_are_decoded(void **state)
{
    (void)state;
    TestTable table;
    test_table_open("part_types_v2", &table);
    TestEntries e = collect(&table, &table.manifests[0], all);
    assert_int_equal(e.n, 4);
    for (size_t i = 0; i < 8; ++i)
        assert_true(e.items[0]->file.partition[i].null);
    const KnDataFile *file = &e.items[2]->file;
    assert_int_equal(file->n_partition, 8);
    const KnValue *v = file->partition;
    assert_true(v[0].kind == KN_TYPE_BOOLEAN && v[0].b);
    assert_true(v[1].kind == KN_TYPE_LONG && v[1].i == -10);
    assert_true(v[2].kind == KN_TYPE_DECIMAL && v[2].dec == -1100 && v[2].scale == 2);
    assert_true(v[3].kind == KN_TYPE_INT && v[3].i == -1);
    assert_true(v[4].kind == KN_TYPE_DATE && v[4].i == -1);
    assert_true(v[5].kind == KN_TYPE_STRING &&
                kn_str_eq(v[5].bytes, KN_STR_LIT("a b/c?d=\xc3\xa9%&:x")));
    assert_true(v[6].kind == KN_TYPE_INT && v[6].i == 0);
    assert_true(v[7].kind == KN_TYPE_FLOAT && v[7].d == 1.5);
    v = e.items[1]->file.partition;
    assert_true(isnan(v[7].d));
    assert_true(v[2].dec == 1050 && v[3].i == 649 && v[4].i == 19782 && v[5].bytes.len == 0);
    assert_true(signbit(e.items[3]->file.partition[7].d));
    test_table_close(&table);
}

static void explicit_numbers_of_existing_and_deleted_entries_are_kept(void **state)
{
    (void)state;
    TestTable table;
    test_table_open("part_types_v2", &table);
    TestEntries e = collect(&table, &table.manifests[0], all);
    assert_int_equal(e.items[0]->status, KN_ENTRY_EXISTING);
    assert_true(e.items[0]->snapshot_id == 189003708558601309);
    assert_int_equal(e.items[0]->sequence_number, 1);
    assert_int_equal(e.items[0]->file_sequence_number, 1);
    assert_int_equal(e.items[1]->status, KN_ENTRY_DELETED);
    assert_true(e.items[1]->snapshot_id == 2729331914889319733);
    assert_int_equal(e.items[1]->sequence_number, 1);
    TestEntries live = collect(&table, &table.manifests[0], (KnManifestReadOptions){true, false});
    assert_int_equal(live.n, 3);
    assert_string_equal(live.items[1]->file.path, e.items[2]->file.path);
    test_table_close(&table);
}

static void metrics_are_read_only_when_wanted(void **state)
{
    (void)state;
    TestTable table;
    test_table_open("part_types_v2", &table);
    TestEntries with = collect(&table, &table.manifests[0], all);
    TestEntries without = collect(&table, &table.manifests[0], bare);
    const KnDataFile *f = &with.items[0]->file;
    assert_int_equal(f->n_column_sizes, 9);
    assert_int_equal(f->n_value_counts, 9);
    assert_int_equal(f->value_counts[0].id, 1);
    assert_int_equal(f->value_counts[0].count, 1);
    assert_int_equal(f->n_null_counts, 9);
    assert_int_equal(f->null_counts[1].count, 1);
    assert_int_equal(f->n_lower, 1);
    assert_int_equal(f->lower[0].id, 1);
    assert_int_equal(f->n_split_offsets, 1);
    assert_int_equal(f->split_offsets[0], 4);
    f = &without.items[0]->file;
    assert_int_equal(f->n_column_sizes + f->n_value_counts + f->n_null_counts + f->n_nan_counts +
                         f->n_lower + f->n_upper,
                     0);
    assert_int_equal(f->n_split_offsets, 1);
    assert_string_equal(f->path, with.items[0]->file.path);
    assert_true(f->size_bytes == with.items[0]->file.size_bytes);
    test_table_close(&table);
}

static void v1_manifests_have_sequence_number_0_and_hold_data(void **state)
{
    (void)state;
    TestTable table;
    test_table_open("v1", &table);
    assert_int_equal(table.n_manifests, 3);
    TestEntries e = collect(&table, &table.manifests[2], all);
    assert_int_equal(e.n, 3);
    for (size_t i = 0; i < e.n; ++i) {
        assert_int_equal(e.items[i]->status, KN_ENTRY_ADDED);
        assert_int_equal(e.items[i]->sequence_number, 0);
        assert_int_equal(e.items[i]->file_sequence_number, 0);
        assert_int_equal(e.items[i]->file.content, KN_CONTENT_DATA);
        assert_int_equal(e.items[i]->file.spec_id, 1);
        assert_int_equal(e.items[i]->file.first_row_id, -1);
        assert_int_equal(e.items[i]->file.record_count, 1);
    }
    assert_true(kn_str_eq(e.items[1]->file.partition[0].bytes, KN_STR_LIT("b")));
    assert_true(e.items[2]->file.partition[0].null);
    e = collect(&table, &table.manifests[1], all);
    assert_int_equal(e.items[0]->status, KN_ENTRY_EXISTING);
    assert_int_equal(e.items[0]->sequence_number, 0);
    test_table_close(&table);
}

static void v3_files_get_row_ids_from_their_manifest(void **state)
{
    (void)state;
    TestTable table;
    test_table_open("lineage_v3", &table);
    assert_int_equal(table.n_manifests, 2);
    TestEntries e = collect(&table, &table.manifests[0], all);
    assert_int_equal(e.items[0]->file.first_row_id, 22);
    assert_int_equal(e.items[0]->sequence_number, 7);
    e = collect(&table, &table.manifests[1], all); /* rewritten: as old as its rows */
    assert_int_equal(e.items[0]->file.first_row_id, 15);
    assert_int_equal(e.items[0]->sequence_number, 5);
    assert_int_equal(e.items[0]->file_sequence_number, 6);
    test_table_close(&table);
    test_table_open("dv_v3", &table);
    e = collect(&table, &table.manifests[0], all);
    assert_int_equal(e.items[0]->file.first_row_id, 0);
    assert_int_equal(e.items[1]->file.first_row_id, 20000);
    test_table_close(&table);
}

static void deletion_vectors_carry_offset_size_and_data_file(void **state)
{
    (void)state;
    TestTable table;
    test_table_open("dv_v3", &table);
    TestEntries e = collect(&table, &table.manifests[1], all);
    assert_int_equal(e.n, 1);
    const KnDataFile *file = &e.items[0]->file;
    assert_int_equal(file->content, KN_CONTENT_POSITION_DELETES);
    assert_int_equal(file->format, KN_FORMAT_PUFFIN);
    assert_true(ends_with(file->referenced_data_file, "/00000-data.parquet"));
    assert_int_equal(file->content_offset, 4);
    assert_int_equal(file->content_size, 43);
    assert_int_equal(file->record_count, 19992);
    assert_int_equal(file->first_row_id, -1);
    assert_int_equal(e.items[0]->sequence_number, 3);
    e = collect(&table, &table.manifests[2], all);
    assert_int_equal(e.n, 2);
    assert_int_equal(e.items[0]->sequence_number, 2);
    test_table_close(&table);
}

static void equality_deletes_name_their_columns(void **state)
{
    (void)state;
    TestTable table;
    test_table_open("eqdel_v2", &table);
    assert_int_equal(table.n_manifests, 10);
    size_t equality = 0;
    size_t position = 0;
    for (size_t i = 0; i < table.n_manifests; ++i) {
        TestEntries e = collect(&table, &table.manifests[i], all);
        for (size_t j = 0; j < e.n; ++j) {
            const KnDataFile *file = &e.items[j]->file;
            equality += file->content == KN_CONTENT_EQUALITY_DELETES;
            position += file->content == KN_CONTENT_POSITION_DELETES;
            assert_int_equal(file->content == KN_CONTENT_EQUALITY_DELETES,
                             file->n_equality_ids > 0);
            assert_int_equal(e.items[j]->sequence_number, table.manifests[i].sequence_number);
        }
    }
    assert_int_equal(equality, 5);
    assert_int_equal(position, 1);
    test_table_close(&table);
}

/* ---- inheritance, case by case ---- */

typedef struct Made {
    TestTable table;
    KnManifestForm form;
    KnManifestFile mf;
} Made;

static void make(int32_t version, Made *ret)
{
    test_table_make(version, &ret->table);
    ret->form =
        (KnManifestForm){&kn_manifest_entry_fields, version, test_partition_type(&ret->table)};
    ret->mf = kn_manifest_file_empty();
    ret->mf.path = "mem://t/m.avro";
    ret->mf.length = -1;
    ret->mf.spec_id = 7;
    ret->mf.sequence_number = 5;
    ret->mf.added_snapshot_id = 99;
}

static void put(const Made *m, const KnManifestEntry *entries, size_t n)
{
    test_manifest_put(&m->table, &m->form, m->mf.path, entries, n);
}

/* Reading fails, and the message names the manifest and says words. */
static void refuse(const Made *m, KnCode want, const char *words)
{
    TestEntries e;
    KnErr err = {0};
    assert_int_equal(test_manifest_collect(&m->table, &m->mf, all, &e, &err), want);
    if (!strstr(err.msg, words) || !strstr(err.msg, m->mf.path))
        fail_msg("'%s' does not say '%s'", err.msg, words);
}

static void null_numbers_of_added_entries_are_the_manifests(void **state)
{
    (void)state;
    Made m;
    make(2, &m);
    KnManifestEntry in[2] = {test_entry(KN_ENTRY_ADDED, "a", 1),
                             test_entry(KN_ENTRY_ADDED, "b", 1)};
    in[1].snapshot_id = 42;
    in[1].sequence_number = 3;
    in[1].file_sequence_number = 4;
    put(&m, in, 2);
    TestEntries e = collect(&m.table, &m.mf, all);
    assert_int_equal(e.items[0]->snapshot_id, 99);
    assert_int_equal(e.items[0]->sequence_number, 5);
    assert_int_equal(e.items[0]->file_sequence_number, 5);
    assert_int_equal(e.items[1]->snapshot_id, 42);
    assert_int_equal(e.items[1]->sequence_number, 3);
    assert_int_equal(e.items[1]->file_sequence_number, 4);
    test_table_close(&m.table);
}

static void null_numbers_of_other_entries_are_refused_except_in_v1_manifests(void **state)
{
    (void)state;
    Made m;
    make(2, &m);
    KnManifestEntry in = test_entry(KN_ENTRY_EXISTING, "a", 1);
    put(&m, &in, 1);
    refuse(&m, KN_E_CORRUPT, "'sequence_number' (3): null in an entry that is not ADDED");
    m.mf.sequence_number = 0;
    TestEntries e = collect(&m.table, &m.mf, all);
    assert_int_equal(e.items[0]->sequence_number, 0);
    assert_int_equal(e.items[0]->file_sequence_number, 0);
    in = test_entry(KN_ENTRY_DELETED, "a", 1);
    put(&m, &in, 1);
    m.mf.sequence_number = 5;
    refuse(&m, KN_E_CORRUPT, "'sequence_number'");
    e = collect(&m.table, &m.mf, bare); /* nobody asks for it */
    assert_int_equal(e.n, 0);
    in = test_entry(KN_ENTRY_EXISTING, "a", 1);
    in.sequence_number = 2; /* the file's own number may be lost */
    put(&m, &in, 1);
    e = collect(&m.table, &m.mf, all);
    assert_int_equal(e.items[0]->file_sequence_number, -1);
    test_table_close(&m.table);
}

static void row_ids_are_shared_out_over_live_files_without_one(void **state)
{
    (void)state;
    Made m;
    make(3, &m);
    KnManifestEntry in[5] = {
        test_entry(KN_ENTRY_ADDED, "a", 10), test_entry(KN_ENTRY_DELETED, "b", 1000),
        test_entry(KN_ENTRY_EXISTING, "c", 7), test_entry(KN_ENTRY_EXISTING, "d", 5),
        test_entry(KN_ENTRY_ADDED, "e", 1)};
    for (size_t i = 0; i < 5; ++i)
        in[i].sequence_number = 1;
    in[2].file.first_row_id = 3; /* had one before */
    put(&m, in, 5);
    m.mf.first_row_id = 100;
    TestEntries e = collect(&m.table, &m.mf, all);
    static const int64_t want[] = {100, -1, 3, 110, 115};
    for (size_t i = 0; i < 5; ++i)
        assert_int_equal(e.items[i]->file.first_row_id, want[i]);
    e = collect(&m.table, &m.mf, bare);
    assert_int_equal(e.n, 4);
    assert_int_equal(e.items[3]->file.first_row_id, 115);
    m.mf.first_row_id = -1; /* a manifest without: its files have none */
    e = collect(&m.table, &m.mf, all);
    for (size_t i = 0; i < 5; ++i)
        assert_int_equal(e.items[i]->file.first_row_id, -1);
    m.mf.first_row_id = INT64_MAX - 5;
    refuse(&m, KN_E_CORRUPT, "row ids beyond 64 bits");
    test_table_close(&m.table);
}

/* ---- what is refused ---- */

static void entries_that_cannot_be_are_refused_by_field(void **state)
{
    (void)state;
    Made m;
    make(2, &m);
    KnManifestEntry good = test_entry(KN_ENTRY_ADDED, "a", 1);
    KnManifestEntry in = good;
    in.status = (KnEntryStatus)3;
    put(&m, &in, 1);
    refuse(&m, KN_E_CORRUPT, "field 'status' (0): unknown value 3");
    in = good;
    in.file.content = (KnContent)3;
    put(&m, &in, 1);
    refuse(&m, KN_E_CORRUPT, "field 'content' (134): unknown value 3");
    in = good;
    in.file.content = KN_CONTENT_EQUALITY_DELETES;
    put(&m, &in, 1);
    refuse(&m, KN_E_CORRUPT, "2 in a manifest that the list calls data");
    put(&m, &good, 1);
    m.mf.deletes = true;
    refuse(&m, KN_E_CORRUPT, "0 in a manifest that the list calls deletes");
    test_table_close(&m.table);
}

static void files_that_are_not_what_the_list_says_are_refused(void **state)
{
    (void)state;
    Made m;
    make(2, &m);
    KnManifestEntry in = test_entry(KN_ENTRY_ADDED, "a", 1);
    put(&m, &in, 1);
    m.mf.length = 17;
    refuse(&m, KN_E_CORRUPT, "but the table says 17");
    m.mf.length = -1;
    m.mf.spec_id = 8;
    refuse(&m, KN_E_CORRUPT, "partition spec 8 is not in the table's metadata");
    m.mf.spec_id = 7;
    m.mf.key_metadata = KN_STR_LIT("k");
    refuse(&m, KN_E_UNSUPPORTED, "encrypted");
    m.mf.key_metadata = (KnStr){0};
    m.mf.path = "mem://t/none.avro";
    refuse(&m, KN_E_NOTFOUND, "none.avro");
    assert_int_equal(kn_io_write(m.table.io, kn_str(m.mf.path), "PAR1", 4, KN_IO_CREATE, NULL),
                     KN_OK);
    refuse(&m, KN_E_CORRUPT, "not an Avro file");
    test_table_close(&m.table);
    test_table_open("dv_v3", &m.table);
    m.mf = m.table.manifests[1];
    m.mf.deletes = false;
    refuse(&m, KN_E_CORRUPT, "header key 'content' is 'deletes'");
    test_table_close(&m.table);
}

static void a_manifest_cut_anywhere_is_refused_by_name(void **state)
{
    (void)state;
    TestTable table;
    test_table_open("part_types_v2", &table);
    KnManifestFile mf = table.manifests[0];
    KN_BUF_AUTO file;
    kn_buf_init(&file, 1 << 20);
    assert_int_equal(kn_io_read_all(table.io, kn_str(mf.path), 1 << 20, &file, NULL), KN_OK);
    mf.path = "mem://t/cut.avro";
    for (size_t cut = 0; cut<file.len; cut += cut> 9000 ? 1 : 97) {
        assert_int_equal(
            kn_io_write(table.io, kn_str(mf.path), file.data, cut, KN_IO_REPLACE, NULL), KN_OK);
        TestEntries e;
        KnErr err = {0};
        assert_int_equal(test_manifest_collect(&table, &mf, all, &e, &err), KN_E_CORRUPT);
        assert_non_null(strstr(err.msg, "cut.avro"));
        assert_int_equal(e.n, 0);
    }
    test_table_close(&table);
}

/* ---- schemas of other shapes, written by hand ---- */

static void put_raw(const Made *m, const char *schema, KnStr datum)
{
    KnAvroWriter *w = kn_avro_writer_new(kn_str(schema), KN_AVRO_CODEC_NULL);
    kn_buf_str(kn_avro_writer_buf(w), datum);
    assert_int_equal(kn_avro_writer_datum(w, NULL), KN_OK);
    KnBuf file;
    assert_int_equal(kn_avro_writer_finish(w, &file, NULL), KN_OK);
    (void)kn_avro_writer_free(w);
    assert_int_equal(
        kn_io_write(m->table.io, kn_str(m->mf.path), file.data, file.len, KN_IO_REPLACE, NULL),
        KN_OK);
    kn_buf_done(&file);
}

#define F(name, id, type)    "{\"name\":\"" name "\",\"field-id\":" #id ",\"type\":" type "}"
#define RECORD(name, fields) "{\"type\":\"record\",\"name\":\"" name "\",\"fields\":[" fields "]}"
#define TUPLE                RECORD("r102", F("x", 1001, "[\"null\",\"int\"]") "," F("gone", 1005, "\"long\""))
#define FILE_FIELDS                                                                                \
    F("sz", 104, "\"long\"")                                                                       \
    "," F("n", 103, "\"int\"") "," F("t", 102, TUPLE) "," F(                                       \
        "new", 999, "[\"null\",\"string\"]") "," F("f", 101, "\"string\"") "," F("p", 100,         \
                                                                                 "\"string\"")
/* size 9, rows 4, tuple (3, 8), unknown "z", "parquet", "pp" */
#define FILE_DATUM "\x12\x08\x02\x06\x10\x02\x02z\x0eparquet\x04pp"

static void fields_are_found_by_id_whatever_their_name_order_and_width(void **state)
{
    (void)state;
    Made m;
    make(2, &m);
    put_raw(&m, RECORD("e", F("file", 2, RECORD("d", FILE_FIELDS)) "," F("s", 0, "\"long\"")),
            KN_STR_LIT(FILE_DATUM "\x02"));
    TestEntries e = collect(&m.table, &m.mf, all);
    assert_int_equal(e.n, 1);
    const KnDataFile *file = &e.items[0]->file;
    assert_int_equal(e.items[0]->status, KN_ENTRY_ADDED);
    assert_int_equal(file->size_bytes, 9);
    assert_int_equal(file->record_count, 4);
    assert_string_equal(file->path, "pp");
    assert_int_equal(file->format, KN_FORMAT_PARQUET);
    assert_int_equal(file->n_partition, 2);
    assert_true(file->partition[0].null);
    assert_true(file->partition[1].kind == KN_TYPE_LONG && file->partition[1].i == 3);
    test_table_close(&m.table);
}

static void schemas_that_do_not_fit_are_refused_by_field(void **state)
{
    (void)state;
    Made m;
    make(2, &m);
    KnStr none = KN_STR_LIT("");
    put_raw(&m, "\"long\"", KN_STR_LIT("\x02"));
    refuse(&m, KN_E_CORRUPT, "not a record 'manifest_entry'");
    put_raw(&m, RECORD("e", F("s", 0, "\"int\"")), KN_STR_LIT("\x02"));
    refuse(&m, KN_E_CORRUPT, "required field 'data_file' (2) is missing");
    put_raw(&m,
            RECORD("e", F("s", 0, "\"int\"") "," F("d", 2, RECORD("d", FILE_FIELDS)) "," F(
                            "s2", 0, "\"int\"")),
            none);
    refuse(&m, KN_E_CORRUPT, "field 'status' (0) is there twice");
    put_raw(&m, RECORD("e", F("s", 0, "\"string\"") "," F("d", 2, RECORD("d", FILE_FIELDS))), none);
    refuse(&m, KN_E_CORRUPT, "field 'status' (0): not of a type");
    put_raw(&m,
            RECORD("e", F("s", 0, "[\"int\",\"long\"]") "," F("d", 2, RECORD("d", FILE_FIELDS))),
            none);
    refuse(&m, KN_E_CORRUPT, "field 'status' (0): not of a type");
    put_raw(&m, RECORD("e", F("s", 0, "\"int\"") "," F("d", 2, "\"long\"")), none);
    refuse(&m, KN_E_CORRUPT, "field 'data_file' (2): not of a type");
#define WITH_TUPLE(type)                                                                           \
    RECORD("e",                                                                                    \
           F("s", 0, "\"int\"") "," F(                                                             \
               "d", 2,                                                                             \
               RECORD("d", F("sz", 104, "\"long\"") "," F("n", 103, "\"int\"") "," F(              \
                               "t", 102,                                                           \
                               RECORD("r102", F("x", 1001,                                         \
                                                type))) "," F("f", 101,                            \
                                                              "\"string\"") "," F("p", 100,        \
                                                                                  "\"string\""))))
    put_raw(&m, WITH_TUPLE("[\"null\",\"string\"]"), none);
    refuse(&m, KN_E_CORRUPT, "partition field 'id_part' (1001)");
    put_raw(&m, WITH_TUPLE("[\"null\",\"int\",\"long\"]"), none);
    refuse(&m, KN_E_CORRUPT, "partition field 'id_part' (1001)");
    test_table_close(&m.table);
}

static void values_that_do_not_fit_are_refused_by_field(void **state)
{
    (void)state;
    Made m;
    make(2, &m);
#define ENTRY RECORD("e", F("s", 0, "[\"null\",\"int\"]") "," F("d", 2, RECORD("d", FILE_FIELDS)))
    put_raw(&m, ENTRY, KN_STR_LIT("\x00" FILE_DATUM));
    refuse(&m, KN_E_CORRUPT, "entry 0: required field 'status' (0) is null");
    put_raw(&m, ENTRY, KN_STR_LIT("\x02\x02\x11\x08\x02\x06\x10\x02\x02z\x0eparquet\x04pp"));
    refuse(&m, KN_E_CORRUPT, "field 'file_size_in_bytes' (104): -9 is negative");
    put_raw(&m, ENTRY, KN_STR_LIT("\x02\x02\x12\x07\x02\x06\x10\x02\x02z\x0eparquet\x04pp"));
    refuse(&m, KN_E_CORRUPT, "field 'record_count' (103): -4 is negative");
    put_raw(&m, ENTRY, KN_STR_LIT("\x02\x02\x12\x08\x02\x06\x10\x02\x02z\x0eparkett\x04pp"));
    refuse(&m, KN_E_UNSUPPORTED, "field 'file_format' (101): file format 'parkett'");
    put_raw(&m, ENTRY, KN_STR_LIT("\x02\x02\x12\x08\x02\x06\x10\x02\x02z\x0eparquet\x04p\0"));
    refuse(&m, KN_E_CORRUPT, "field 'file_path' (100): text with a NUL byte");
    put_raw(&m, ENTRY, KN_STR_LIT("\x02\x02" FILE_DATUM "x"));
    refuse(&m, KN_E_CORRUPT, "left over");
    put_raw(&m, ENTRY, KN_STR_LIT("\x02\x02\x12"));
    refuse(&m, KN_E_CORRUPT, "ends inside");
    test_table_close(&m.table);
}

/* ---- the callback ---- */

static KnCode say_no(void *arg, const KnManifestEntry *entry, KnErr *err)
{
    (void)entry;
    ++*(int *)arg;
    return kn_err_set(err, KN_E_CANCELLED, "enough");
}

static void a_callbacks_failure_ends_the_walk_and_comes_back_as_it_is(void **state)
{
    (void)state;
    TestTable table;
    test_table_open("part_types_v2", &table);
    int calls = 0;
    KnManifestVisit visit = {all, say_no, &calls};
    KnErr err = {0};
    assert_int_equal(kn_manifest_read(table.io, table.md, &table.manifests[0], &visit, &err),
                     KN_E_CANCELLED);
    assert_string_equal(err.msg, "enough");
    assert_int_equal(calls, 1);
    test_table_close(&table);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(partition_tuples_of_every_kind_are_decoded),
        cmocka_unit_test(explicit_numbers_of_existing_and_deleted_entries_are_kept),
        cmocka_unit_test(metrics_are_read_only_when_wanted),
        cmocka_unit_test(v1_manifests_have_sequence_number_0_and_hold_data),
        cmocka_unit_test(v3_files_get_row_ids_from_their_manifest),
        cmocka_unit_test(deletion_vectors_carry_offset_size_and_data_file),
        cmocka_unit_test(equality_deletes_name_their_columns),
        cmocka_unit_test(null_numbers_of_added_entries_are_the_manifests),
        cmocka_unit_test(null_numbers_of_other_entries_are_refused_except_in_v1_manifests),
        cmocka_unit_test(row_ids_are_shared_out_over_live_files_without_one),
        cmocka_unit_test(entries_that_cannot_be_are_refused_by_field),
        cmocka_unit_test(files_that_are_not_what_the_list_says_are_refused),
        cmocka_unit_test(a_manifest_cut_anywhere_is_refused_by_name),
        cmocka_unit_test(fields_are_found_by_id_whatever_their_name_order_and_width),
        cmocka_unit_test(schemas_that_do_not_fit_are_refused_by_field),
        cmocka_unit_test(values_that_do_not_fit_are_refused_by_field),
        cmocka_unit_test(a_callbacks_failure_ends_the_walk_and_comes_back_as_it_is),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
