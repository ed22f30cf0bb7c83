/* SPDX-License-Identifier: Apache-2.0 */
/* test_manifest_write.c - manifests written and read again. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "unit/iceberg/manifest_support.h"

static const char path[] = "mem://t/m.avro";
static const KnManifestReadOptions all = {.with_metrics = true, .with_deleted = true};

/* ---- round trips ---- */

enum { N_KINDS = 16 };
static const KnType kinds[N_KINDS] = {
    {.kind = KN_TYPE_BOOLEAN},
    {.kind = KN_TYPE_INT},
    {.kind = KN_TYPE_LONG},
    {.kind = KN_TYPE_FLOAT},
    {.kind = KN_TYPE_DOUBLE},
    {.kind = KN_TYPE_DECIMAL, .precision = 38, .scale = 3},
    {.kind = KN_TYPE_DATE},
    {.kind = KN_TYPE_TIME},
    {.kind = KN_TYPE_TIMESTAMP},
    {.kind = KN_TYPE_TIMESTAMPTZ},
    {.kind = KN_TYPE_STRING},
    {.kind = KN_TYPE_UUID},
    {.kind = KN_TYPE_FIXED, .length = 3},
    {.kind = KN_TYPE_BINARY},
    {.kind = KN_TYPE_DECIMAL, .precision = 38, .scale = 3}, /* a named Avro type used twice */
    {.kind = KN_TYPE_UUID},
};

/* A table whose columns 1… have the kinds, partitioned by each under id 1000…; v3 adds ns. */
typedef struct Kinds {
    TestTable table;
    size_t n;
    KnField fields[N_KINDS + 2];
    KnType type;
} Kinds;

static const KnType ns_kinds[2] = {{.kind = KN_TYPE_TIMESTAMP_NS},
                                   {.kind = KN_TYPE_TIMESTAMPTZ_NS}};

static void kinds_open(int32_t version, Kinds *ret)
{
    KN_BUF_AUTO columns;
    KN_BUF_AUTO parts;
    KN_BUF_AUTO doc;
    kn_buf_init(&columns, 1 << 20);
    kn_buf_init(&parts, 1 << 20);
    kn_buf_init(&doc, 1 << 20);
    *ret = (Kinds){.n = version == 3 ? N_KINDS + 2 : N_KINDS};
    for (size_t i = 0; i < ret->n; ++i) {
        const KnType *type = i < N_KINDS ? &kinds[i] : &ns_kinds[i - N_KINDS];
        KN_BUF_AUTO text;
        kn_buf_init(&text, 100);
        kn_type_format(&text, type);
        char *name = kn_arena_printf(
            ret->table.arena ? ret->table.arena : (ret->table.arena = kn_arena_new(0)), "c%zu", i);
        kn_buf_printf(&columns, "%s{\"id\":%zu,\"name\":\"%s\",\"required\":false,\"type\":\"%s\"}",
                      i ? "," : "", i + 1, name, text.data);
        kn_buf_printf(&parts,
                      "%s{\"name\":\"%s\",\"transform\":\"identity\",\"source-id\":%zu,"
                      "\"field-id\":%zu}",
                      i ? "," : "", name, i + 1, i + 1000);
        ret->fields[i] = (KnField){.id = (int32_t)i + 1000, .name = name, .type = type};
    }
    kn_buf_printf(&doc,
                  "{\"format-version\":%d,\"table-uuid\":\"11111111-2222-3333-4444-555555555555\","
                  "\"location\":\"mem://t\",\"last-sequence-number\":9,\"last-updated-ms\":1,"
                  "\"last-column-id\":30,\"next-row-id\":0,\"current-schema-id\":0,\"schemas\":[{"
                  "\"type\":\"struct\",\"schema-id\":0,\"fields\":[%s]}],\"default-spec-id\":0,"
                  "\"partition-specs\":[{\"spec-id\":0,\"fields\":[%s]}],"
                  "\"last-partition-id\":1030,\"default-sort-order-id\":0,\"sort-orders\":[{"
                  "\"order-id\":0,\"fields\":[]}]}",
                  version, columns.data, parts.data);
    KnErr err = {0};
    if (kn_metadata_parse((KnStr){doc.data, doc.len}, "test", &ret->table.md, &err) != KN_OK)
        fail_msg("%s", err.msg);
    assert_int_equal(kn_io_memory_open(&ret->table.io, NULL), KN_OK);
    ret->type = (KnType){.kind = KN_TYPE_STRUCT, .n_fields = ret->n, .fields = ret->fields};
}

static KnStr extreme_bytes(KnTypeKind kind, bool high)
{
    static const KnStr low_bytes[] = {KN_STR_LIT(""), KN_STR_LIT("0123456789abcdef"),
                                      KN_STR_LIT("\0\0\0"), KN_STR_LIT("")};
    static const KnStr high_bytes[] = {KN_STR_LIT("\xc3\xa9\xf0\x9f\x98\x80"),
                                       KN_STR_LIT("fedcba9876543210"), KN_STR_LIT("\xff\xff\xff"),
                                       KN_STR_LIT("\xff\0\x80")};
    return (high ? high_bytes : low_bytes)[kind - KN_TYPE_STRING];
}

static KnValue extreme_value(const KnType *type, bool high)
{
    __int128 big = ((__int128)1 << 126) - 1; /* 38 digits begin with an 8 */
    KnValue v = {.kind = type->kind, .scale = type->scale};
    switch (type->kind) {
    case KN_TYPE_BOOLEAN:
        v.b = high;
        break;
    case KN_TYPE_FLOAT:
        v.d = high ? (double)3.4e38F : -0.0;
        break;
    case KN_TYPE_DOUBLE:
        v.d = high ? INFINITY : -1e-300;
        break;
    case KN_TYPE_DECIMAL:
        v.dec = high ? big : -big;
        break;
    case KN_TYPE_INT:
    case KN_TYPE_DATE:
        v.i = high ? INT32_MAX : INT32_MIN;
        break;
    case KN_TYPE_STRING:
    case KN_TYPE_UUID:
    case KN_TYPE_FIXED:
    case KN_TYPE_BINARY:
        v.bytes = extreme_bytes(type->kind, high);
        break;
    default:
        v.i = high ? INT64_MAX : INT64_MIN;
    }
    return v;
}

/* One low, one high value of each kind. */
static void fill_values(KnValue *values, size_t n, bool high)
{
    for (size_t i = 0; i < n; ++i)
        values[i] = extreme_value(i < N_KINDS ? &kinds[i] : &ns_kinds[i - N_KINDS], high);
}

static void assert_same_values(const KnValue *got, const KnValue *want, size_t n)
{
    for (size_t i = 0; i < n; ++i) {
        assert_int_equal(got[i].null, want[i].null);
        if (want[i].null)
            continue;
        assert_int_equal(got[i].kind, want[i].kind);
        assert_int_equal(got[i].scale, want[i].scale);
        assert_int_equal(kn_value_compare(&got[i], &want[i]), 0);
    }
}

static KnManifestEntry full_entry(KnEntryStatus status, const KnValue *values, size_t n)
{
    static const KnIdCount counts[] = {{1, 10}, {2, 0}, {2147483546, INT64_MAX}};
    static const KnIdBound bounds[] = {{1, {"\0\1", 2}}, {7, {"", 0}}};
    static const int64_t offsets[] = {4, 1LL << 40};
    static const int32_t ids[] = {1, 5};
    KnManifestEntry e = kn_manifest_entry_empty();
    e.status = status;
    e.snapshot_id = 11;
    e.sequence_number = 2;
    e.file_sequence_number = 3;
    e.file = (KnDataFile){
        .path = "mem://t/data/\xc3\xa9 x.parquet",
        .format = KN_FORMAT_ORC,
        .n_partition = n,
        .partition = values,
        .record_count = 1LL << 33,
        .size_bytes = 1LL << 34,
        .n_column_sizes = 3,
        .column_sizes = counts,
        .n_value_counts = 2,
        .value_counts = counts,
        .n_null_counts = 1,
        .null_counts = counts,
        .nan_counts = counts, /* empty, and not null */
        .n_lower = 2,
        .lower = bounds,
        .n_upper = 1,
        .upper = bounds,
        .key_metadata = KN_STR_LIT("k\0y"),
        .n_split_offsets = 2,
        .split_offsets = offsets,
        .n_equality_ids = 2,
        .equality_ids = ids,
        .sort_order_id = 4,
        .first_row_id = 17,
        .referenced_data_file = "mem://t/data/y",
        .content_offset = 6,
        .content_size = 7,
    };
    return e;
}

static void assert_same_file(const KnDataFile *got, const KnDataFile *want, int32_t version)
{
    assert_string_equal(got->path, want->path);
    assert_int_equal(got->format, want->format);
    assert_true(got->record_count == want->record_count && got->size_bytes == want->size_bytes);
    assert_int_equal(got->n_column_sizes, want->n_column_sizes);
    for (size_t i = 0; i < 3; ++i)
        assert_true(got->column_sizes[i].id == want->column_sizes[i].id &&
                    got->column_sizes[i].count == want->column_sizes[i].count);
    assert_int_equal(got->n_value_counts, want->n_value_counts);
    assert_int_equal(got->n_null_counts, want->n_null_counts);
    assert_int_equal(got->n_nan_counts, 0);
    assert_non_null(got->nan_counts);
    assert_int_equal(got->n_lower, 2);
    assert_int_equal(got->lower[1].id, 7);
    assert_true(kn_str_eq(got->lower[0].bytes, want->lower[0].bytes));
    assert_int_equal(got->n_upper, 1);
    assert_true(kn_str_eq(got->key_metadata, want->key_metadata));
    assert_int_equal(got->n_split_offsets, 2);
    assert_true(got->split_offsets[1] == want->split_offsets[1]);
    assert_int_equal(got->sort_order_id, want->sort_order_id);
    if (version < 2)
        return;
    assert_int_equal(got->n_equality_ids, 2);
    assert_int_equal(got->equality_ids[1], 5);
    assert_string_equal(got->referenced_data_file, want->referenced_data_file);
    assert_int_equal(got->content_offset, version > 2 ? 6 : -1);
    assert_int_equal(got->content_size, version > 2 ? 7 : -1);
}

static KnManifestWrite writing(const Kinds *k, int32_t version, const KnManifestEntry *const *e,
                               size_t n)
{
    return (KnManifestWrite){
        .format_version = version,
        .schema = kn_metadata_schema(k->table.md),
        .spec = kn_metadata_spec(k->table.md),
        .partition_type = &k->type,
        .snapshot_id = 50,
        .entries = e,
        .n_entries = n,
        .path = path,
    };
}

static void check_round_trip(int32_t version, const char *codec)
{
    Kinds k;
    kinds_open(version < 2 ? 2 : version, &k);
    KnValue low[N_KINDS + 2];
    KnValue high[N_KINDS + 2];
    KnValue nulls[N_KINDS + 2];
    fill_values(low, k.n, false);
    fill_values(high, k.n, true);
    for (size_t i = 0; i < k.n; ++i)
        nulls[i] = (KnValue){.null = true};
    KnManifestEntry in[3] = {full_entry(KN_ENTRY_EXISTING, low, k.n),
                             full_entry(KN_ENTRY_DELETED, high, k.n),
                             full_entry(KN_ENTRY_EXISTING, nulls, k.n)};
    const KnManifestEntry *list[] = {&in[0], &in[1], &in[2]};
    KnManifestWrite w = writing(&k, version, list, 3);
    w.codec = codec;
    KnManifestFile mf;
    KnErr err = {0};
    if (kn_manifest_write(k.table.io, k.table.arena, &w, &mf, &err) != KN_OK)
        fail_msg("%s", err.msg);
    mf.sequence_number = version > 1 ? 9 : 0;
    mf.first_row_id = version > 2 ? 0 : -1;
    TestEntries e;
    if (test_manifest_collect(&k.table, &mf, all, &e, &err) != KN_OK)
        fail_msg("%s", err.msg);
    assert_int_equal(e.n, 3);
    for (size_t i = 0; i < 3; ++i) {
        assert_int_equal(e.items[i]->status, in[i].status);
        assert_int_equal(e.items[i]->snapshot_id, 11);
        assert_int_equal(e.items[i]->sequence_number, version > 1 ? 2 : 0);
        assert_int_equal(e.items[i]->file_sequence_number, version > 1 ? 3 : 0);
        assert_int_equal(e.items[i]->file.first_row_id, version > 2 ? 17 : -1);
        assert_same_file(&e.items[i]->file, &in[i].file, version);
        assert_same_values(e.items[i]->file.partition, in[i].file.partition, k.n);
    }
    test_table_close(&k.table);
}

static void everything_comes_back_in_every_version_and_codec(void **state)
{
    (void)state;
    static const char *const codecs[] = {NULL, "gzip", "ZSTD", "snappy", "uncompressed"};
    for (int32_t version = 1; version <= 3; ++version)
        for (size_t i = 0; i < 5; ++i)
            check_round_trip(version, codecs[i]);
}

/* ---- the line of the list ---- */

static void numbers_of_added_entries_are_left_to_inheritance(void **state)
{
    (void)state;
    Kinds k;
    kinds_open(3, &k);
    KnValue low[N_KINDS + 2];
    fill_values(low, k.n, false);
    KnManifestEntry in[2] = {full_entry(KN_ENTRY_ADDED, low, k.n),
                             full_entry(KN_ENTRY_ADDED, low, k.n)};
    in[0].sequence_number = 0;
    in[1].sequence_number = 4; /* rewritten rows keep their age */
    in[1].file.record_count = 5;
    const KnManifestEntry *list[] = {&in[0], &in[1]};
    KnManifestWrite w = writing(&k, 3, list, 2);
    KnManifestFile mf;
    assert_int_equal(kn_manifest_write(k.table.io, k.table.arena, &w, &mf, NULL), KN_OK);
    assert_int_equal(mf.sequence_number, -1);
    assert_int_equal(mf.min_sequence_number, 4);
    assert_int_equal(mf.added_snapshot_id, 50);
    assert_int_equal(mf.first_row_id, -1);
    assert_int_equal(mf.added_files, 2);
    assert_true(mf.added_rows == (1LL << 33) + 5);
    assert_int_equal(mf.existing_files + mf.deleted_files, 0);
    mf.sequence_number = 8;
    mf.first_row_id = 300;
    TestEntries e;
    assert_int_equal(test_manifest_collect(&k.table, &mf, all, &e, NULL), KN_OK);
    assert_int_equal(e.items[0]->snapshot_id, 50);
    assert_int_equal(e.items[0]->sequence_number, 8);
    assert_int_equal(e.items[0]->file_sequence_number, 8);
    assert_int_equal(e.items[0]->file.first_row_id, 300);
    assert_int_equal(e.items[1]->sequence_number, 4);
    assert_int_equal(e.items[1]->file_sequence_number, 8);
    assert_true(e.items[1]->file.first_row_id == 300 + (1LL << 33));
    test_table_close(&k.table);
}

static void the_lowest_sequence_number_is_of_live_entries(void **state)
{
    (void)state;
    Kinds k;
    kinds_open(2, &k);
    KnValue low[N_KINDS + 2];
    fill_values(low, k.n, false);
    KnManifestEntry in[3] = {full_entry(KN_ENTRY_EXISTING, low, k.n),
                             full_entry(KN_ENTRY_DELETED, low, k.n),
                             full_entry(KN_ENTRY_EXISTING, low, k.n)};
    in[0].sequence_number = 6;
    in[1].sequence_number = 1;
    in[2].sequence_number = 5;
    const KnManifestEntry *list[] = {&in[0], &in[1], &in[2]};
    KnManifestWrite w = writing(&k, 2, list, 3);
    KnManifestFile mf;
    assert_int_equal(kn_manifest_write(k.table.io, k.table.arena, &w, &mf, NULL), KN_OK);
    assert_int_equal(mf.min_sequence_number, 5);
    assert_int_equal(mf.existing_files, 2);
    assert_int_equal(mf.deleted_files, 1);
    assert_true(mf.deleted_rows == 1LL << 33);
    test_table_close(&k.table);
}

static void summaries_span_all_values_without_null_and_nan(void **state)
{
    (void)state;
    Kinds k;
    kinds_open(2, &k);
    KnValue low[N_KINDS + 2];
    KnValue high[N_KINDS + 2];
    KnValue odd[N_KINDS + 2];
    fill_values(low, k.n, false);
    fill_values(high, k.n, true);
    fill_values(odd, k.n, true);
    odd[3].d = NAN;
    odd[2].null = true;
    KnManifestEntry in[3] = {full_entry(KN_ENTRY_ADDED, odd, k.n),
                             full_entry(KN_ENTRY_DELETED, high, k.n),
                             full_entry(KN_ENTRY_ADDED, low, k.n)};
    const KnManifestEntry *list[] = {&in[0], &in[1], &in[2]};
    KnManifestWrite w = writing(&k, 2, list, 3);
    KnManifestFile mf;
    assert_int_equal(kn_manifest_write(k.table.io, k.table.arena, &w, &mf, NULL), KN_OK);
    assert_int_equal(mf.n_partitions, k.n);
    for (size_t i = 0; i < k.n; ++i) {
        assert_int_equal(mf.partitions[i].contains_null, i == 2);
        assert_int_equal(mf.partitions[i].contains_nan, i == 3);
        KnValue v;
        assert_int_equal(kn_value_decode(&kinds[i], mf.partitions[i].lower, &v, NULL), KN_OK);
        assert_int_equal(kn_value_compare(&v, &low[i]), 0);
        assert_int_equal(kn_value_decode(&kinds[i], mf.partitions[i].upper, &v, NULL), KN_OK);
        assert_int_equal(kn_value_compare(&v, &high[i]), 0);
    }
    test_table_close(&k.table);
}

static void summaries_of_nothing_but_nulls_have_no_bounds(void **state)
{
    (void)state;
    TestTable table;
    test_table_make(2, &table);
    KnManifestEntry in = test_entry(KN_ENTRY_ADDED, "a", 1);
    const KnManifestEntry *list[] = {&in};
    KnManifestWrite w = {.format_version = 2,
                         .schema = kn_metadata_schema(table.md),
                         .spec = kn_metadata_find_spec(table.md, 7),
                         .partition_type = test_partition_type(&table),
                         .snapshot_id = 50,
                         .entries = list,
                         .n_entries = 1,
                         .path = path};
    KnManifestFile mf;
    assert_int_equal(kn_manifest_write(table.io, table.arena, &w, &mf, NULL), KN_OK);
    assert_true(mf.partitions[0].contains_null);
    assert_null(mf.partitions[0].lower.ptr);
    assert_null(mf.partitions[0].upper.ptr);
    test_table_close(&table);
}

/* ---- names, and what is refused ---- */

static void partition_names_are_made_fit_for_avro_as_java_does(void **state)
{
    (void)state;
    static const KnType type = {.kind = KN_TYPE_INT};
    static const KnField fields[] = {
        {.id = 1000, .name = "9lives", .type = &type},
        {.id = 1001, .name = "a.b-c 9", .type = &type},
        {.id = 1002, .name = "\xc3\xa9\xf0\x9f\x98\x80", .type = &type},
        {.id = 1003, .name = "_ok9", .type = &type},
        {.id = 1004, .name = "_9lives", .type = &type}, /* taken by the first */
    };
    static const char *const want[] = {"_9lives", "a_x2Eb_x2Dc_x209", "_xE9_xD83D_xDE00", "_ok9",
                                       "_9lives_1004"};
    KnType tuple = {.kind = KN_TYPE_STRUCT, .n_fields = 5, .fields = fields};
    KnManifestForm form = {&kn_manifest_entry_fields, 2, &tuple};
    KN_BUF_AUTO buf;
    kn_buf_init(&buf, 1 << 20);
    kn_manifest_avro_schema(&buf, &form);
    KN_ARENA_AUTO arena = kn_arena_new(0);
    const KnAvroType *avro;
    assert_int_equal(kn_avro_type_parse(arena, (KnStr){buf.data, buf.len}, &avro, NULL), KN_OK);
    const KnAvroType *partition = avro->fields[4].type->fields[3].type;
    assert_string_equal(partition->name, "r102");
    for (size_t i = 0; i < 5; ++i) {
        assert_string_equal(partition->fields[i].name, want[i]);
        assert_int_equal(partition->fields[i].field_id, 1000 + i);
    }
    assert_non_null(strstr(buf.data, "\"iceberg-field-name\":\"a.b-c 9\""));
    assert_null(strstr(buf.data, "\"iceberg-field-name\":\"_ok9\""));
}

static void decimals_take_as_many_bytes_as_java_gives_them(void **state)
{
    (void)state;
    static const size_t want[] = {0,  1,  1,  2,  2,  3,  3,  4,  4,  4,  5,  5,  6,
                                  6,  6,  7,  7,  8,  8,  9,  9,  9,  10, 10, 11, 11,
                                  11, 12, 12, 13, 13, 13, 14, 14, 15, 15, 16, 16, 16};
    for (int32_t p = 1; p <= 38; ++p)
        assert_int_equal(kn_manifest_decimal_size(p), want[p]);
}

static void refuse(const TestTable *table, const KnManifestWrite *w, const char *words)
{
    KnManifestFile mf;
    KnErr err = {0};
    assert_int_equal(kn_manifest_write(table->io, table->arena, w, &mf, &err), KN_E_INVAL);
    if (!strstr(err.msg, words))
        fail_msg("'%s' does not say '%s'", err.msg, words);
    KnFileInfo info;
    assert_int_equal(kn_io_stat(table->io, kn_str(w->path), &info, NULL), KN_E_NOTFOUND);
}

static void manifests_that_must_not_be_are_refused_and_leave_no_file(void **state)
{
    (void)state;
    TestTable table;
    test_table_make(3, &table);
    KnManifestEntry in = test_entry(KN_ENTRY_ADDED, "a", 1);
    const KnManifestEntry *list[] = {&in};
    const KnManifestWrite good = {.format_version = 2,
                                  .schema = kn_metadata_schema(table.md),
                                  .spec = kn_metadata_find_spec(table.md, 7),
                                  .partition_type = test_partition_type(&table),
                                  .snapshot_id = 50,
                                  .entries = list,
                                  .n_entries = 1,
                                  .path = path};
    KnManifestWrite w = good;
    w.format_version = 4;
    refuse(&table, &w, "format version 4");
    w.format_version = 1;
    w.deletes = true;
    refuse(&table, &w, "version 1 has no delete files");
    w = good;
    w.codec = "lz4";
    refuse(&table, &w, "codec 'lz4'");
    w = good;
    w.deletes = true;
    refuse(&table, &w, "content 0 in a manifest of deletes");
    in.file.content = KN_CONTENT_POSITION_DELETES;
    in.file.format = KN_FORMAT_PUFFIN;
    refuse(&table, &w, "needs format version 3");
    in = test_entry(KN_ENTRY_EXISTING, "a", 1);
    refuse(&table, &good, "a: an entry that is not ADDED has no sequence number");
    in = test_entry(KN_ENTRY_ADDED, "a", -1);
    refuse(&table, &good, "'record_count' (103) is not set");
    in = test_entry(KN_ENTRY_ADDED, "a", 1);
    in.file.n_partition = 1;
    refuse(&table, &good, "1 values for 2 partition fields");
    in = test_entry(KN_ENTRY_ADDED, "a", 1);
    KnManifestFile mf;
    assert_int_equal(kn_manifest_write(table.io, table.arena, &good, &mf, NULL), KN_OK);
    assert_int_equal(kn_manifest_write(table.io, table.arena, &good, &mf, NULL), KN_E_EXISTS);
    test_table_close(&table);
}

static void values_that_do_not_fit_their_type_are_refused(void **state)
{
    (void)state;
    static const KnType small = {.kind = KN_TYPE_DECIMAL, .precision = 2, .scale = 0};
    static const KnType uuid = {.kind = KN_TYPE_UUID};
    const KnField fields[] = {{.id = 1000, .name = "d", .type = &small},
                              {.id = 1001, .name = "u", .type = &uuid}};
    const KnType tuple = {.kind = KN_TYPE_STRUCT, .n_fields = 2, .fields = fields};
    KnManifestForm form = {&kn_manifest_entry_fields, 2, &tuple};
    KnValue values[2] = {{.kind = KN_TYPE_DECIMAL, .dec = 127},
                         {.kind = KN_TYPE_UUID, .bytes = KN_STR_LIT("0123456789abcdef")}};
    KnManifestEntry in = test_entry(KN_ENTRY_ADDED, "a", 1);
    in.file.partition = values;
    KN_BUF_AUTO buf;
    kn_buf_init(&buf, 1 << 20);
    KnErr err = {0};
    assert_int_equal(kn_manifest_encode(&buf, &form, &in, &err), KN_OK);
    values[0].dec = 128;
    assert_int_equal(kn_manifest_encode(&buf, &form, &in, &err), KN_E_INVAL);
    assert_non_null(strstr(err.msg, "partition field 'd': a value that does not fit decimal(2,0)"));
    values[0].dec = -128;
    values[1].bytes.len = 15;
    assert_int_equal(kn_manifest_encode(&buf, &form, &in, &err), KN_E_INVAL);
    assert_non_null(strstr(err.msg, "partition field 'u': 15 bytes"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(everything_comes_back_in_every_version_and_codec),
        cmocka_unit_test(numbers_of_added_entries_are_left_to_inheritance),
        cmocka_unit_test(the_lowest_sequence_number_is_of_live_entries),
        cmocka_unit_test(summaries_span_all_values_without_null_and_nan),
        cmocka_unit_test(summaries_of_nothing_but_nulls_have_no_bounds),
        cmocka_unit_test(partition_names_are_made_fit_for_avro_as_java_does),
        cmocka_unit_test(decimals_take_as_many_bytes_as_java_gives_them),
        cmocka_unit_test(manifests_that_must_not_be_are_refused_and_leave_no_file),
        cmocka_unit_test(values_that_do_not_fit_their_type_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
