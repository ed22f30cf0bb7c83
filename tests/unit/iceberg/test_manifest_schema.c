/* SPDX-License-Identifier: Apache-2.0 */
/* test_manifest_schema.c - headers and schemas of manifests and their lists are those that Java
 * writes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "unit/iceberg/manifest_support.h"

static const char path[] = "mem://t/m.avro";
static const KnManifestReadOptions all = {.with_metrics = true, .with_deleted = true};

static json_t *parse_json(const char *what, KnStr text)
{
    json_t *doc;
    KnErr err = {0};
    if (kn_json_parse(text.ptr, text.len, &doc, &err) != KN_OK)
        fail_msg("%s: %s", what, err.msg);
    return doc;
}

static void assert_same_json(const char *what, KnStr got, const json_t *want)
{
    json_t *doc = parse_json(what, got);
    if (!json_equal(doc, want)) {
        KN_BUF_AUTO text;
        kn_buf_init(&text, 1 << 20);
        kn_json_dump(&text, want);
        fail_msg("%s: got %.*s\nwant %s", what, (int)got.len, got.ptr, text.data);
    }
    json_decref(doc);
}

/* A header key of Java's file and of ours are the same document; "iceberg.schema" and so on. */
static void assert_same_key(const KnAvroReader *java, const KnAvroReader *ours, const char *key)
{
    KnStr want = kn_avro_reader_meta(java, key);
    KnStr got = kn_avro_reader_meta(ours, key);
    assert_non_null(want.ptr);
    assert_non_null(got.ptr);
    if (want.ptr[0] != '{' && want.ptr[0] != '[') {
        if (!kn_str_eq(got, want))
            fail_msg("%s: got " KN_STR_FMT ", want " KN_STR_FMT, key, KN_STR_ARG(got),
                     KN_STR_ARG(want));
        return;
    }
    json_t *doc = parse_json(key, want);
    assert_same_json(key, got, doc);
    json_decref(doc);
}

static void assert_same_header(const TestTable *table, const char *java_path, const char *our_path,
                               const char *const *keys)
{
    KnManifestBytes java;
    KnManifestBytes ours;
    assert_int_equal(kn_manifest_bytes_open(table->io, java_path, -1, &java, NULL), KN_OK);
    assert_int_equal(kn_manifest_bytes_open(table->io, our_path, -1, &ours, NULL), KN_OK);
    for (; *keys; ++keys)
        assert_same_key(java.reader, ours.reader, *keys);
    kn_manifest_bytes_close(&java);
    kn_manifest_bytes_close(&ours);
}

static const char *const manifest_keys[] = {"avro.schema",    "iceberg.schema",    "schema",
                                            "partition-spec", "partition-spec-id", "avro.codec",
                                            "format-version", "content",           NULL};
static const char *const list_keys[] = {
    "avro.schema",    "iceberg.schema",     "snapshot-id", "sequence-number",
    "format-version", "parent-snapshot-id", "avro.codec",  NULL};

static void write_like(const TestTable *table, const KnManifestFile *mf, const TestEntries *e,
                       KnManifestFile *ret)
{
    const KnPartitionSpec *spec = kn_metadata_find_spec(table->md, mf->spec_id);
    const KnSchema *schema = kn_metadata_schema(table->md);
    const KnType *type;
    assert_int_equal(kn_partition_type(table->arena, spec, schema, &type, NULL), KN_OK);
    KnManifestWrite w = {
        .format_version = table->md->format_version,
        .schema = schema,
        .spec = spec,
        .partition_type = type,
        .deletes = mf->deletes,
        .snapshot_id = mf->added_snapshot_id,
        .entries = e->items,
        .n_entries = e->n,
        .path = path,
    };
    KnErr err = {0};
    if (kn_manifest_write(table->io, table->arena, &w, ret, &err) != KN_OK)
        fail_msg("%s", err.msg);
}

static bool same_bytes(KnStr a, KnStr b)
{
    return !a.ptr == !b.ptr && kn_str_eq(a, b);
}

static void assert_same_summaries(const KnManifestFile *a, const KnManifestFile *b)
{
    assert_int_equal(a->n_partitions, b->n_partitions);
    for (size_t i = 0; i < a->n_partitions; ++i) {
        assert_int_equal(a->partitions[i].contains_null, b->partitions[i].contains_null);
        assert_int_equal(a->partitions[i].contains_nan, b->partitions[i].contains_nan);
        assert_true(same_bytes(a->partitions[i].lower, b->partitions[i].lower));
        assert_true(same_bytes(a->partitions[i].upper, b->partitions[i].upper));
    }
}

static void check_table_against_java(const char *name)
{
    TestTable table;
    test_table_open(name, &table);
    for (size_t i = 0; i < table.n_manifests; ++i) {
        const KnManifestFile *java = &table.manifests[i];
        TestEntries e;
        assert_int_equal(test_manifest_collect(&table, java, all, &e, NULL), KN_OK);
        KnManifestFile ours;
        write_like(&table, java, &e, &ours);
        assert_same_header(&table, java->path, path, manifest_keys);
        assert_int_equal(ours.added_files, java->added_files);
        assert_int_equal(ours.existing_files, java->existing_files);
        assert_int_equal(ours.deleted_files, java->deleted_files);
        assert_int_equal(ours.added_rows, java->added_rows);
        assert_int_equal(ours.existing_rows, java->existing_rows);
        assert_int_equal(ours.deleted_rows, java->deleted_rows);
        assert_same_summaries(&ours, java);
        assert_int_equal(kn_io_remove(table.io, kn_str(path), NULL), KN_OK);
    }
    const KnSnapshot *snap = kn_metadata_snapshot(table.md);
    KnManifestListWrite w = {
        .format_version = table.md->format_version,
        .snapshot_id = snap->snapshot_id,
        .parent_id = snap->parent_id,
        .sequence_number = snap->sequence_number,
        .first_row_id = snap->first_row_id,
        .manifests = table.manifests,
        .n_manifests = table.n_manifests,
        .path = path,
    };
    int64_t next;
    assert_int_equal(kn_manifest_list_write(table.io, &w, &next, NULL), KN_OK);
    assert_same_header(&table, snap->manifest_list, path, list_keys);
    test_table_close(&table);
}

static void headers_counts_and_summaries_are_those_of_java(void **state)
{
    (void)state;
    check_table_against_java("part_types_v2");
    check_table_against_java("eqdel_v2");
    check_table_against_java("lineage_v3");
    check_table_against_java("dv_v3");
}

/* Java's v1 headers: of a table partitioned by string column "cat" with field id 1000. */
static void v1_schemas_are_those_of_java(void **state)
{
    (void)state;
    size_t len;
    char *text = test_manifest_file("java_v1_headers.json", &len);
    json_t *doc = parse_json("java_v1_headers.json", (KnStr){text, len});
    free(text);
    static const KnType string = {.kind = KN_TYPE_STRING};
    static const KnField cat = {.id = 1000, .name = "cat", .type = &string};
    static const KnType tuple = {.kind = KN_TYPE_STRUCT, .n_fields = 1, .fields = &cat};
    static const struct {
        const char *key;
        const KnManifestFields *fields;
    } kinds[] = {{"v1-manifest", &kn_manifest_entry_fields},
                 {"v1-manifest-list", &kn_manifest_file_fields}};
    for (size_t i = 0; i < 2; ++i) {
        KnManifestForm form = {kinds[i].fields, 1, &tuple};
        const json_t *java = json_object_get(doc, kinds[i].key);
        KN_BUF_AUTO buf;
        kn_buf_init(&buf, 1 << 20);
        kn_manifest_avro_schema(&buf, &form);
        assert_same_json(kinds[i].key, (KnStr){buf.data, buf.len},
                         json_object_get(java, "avro.schema"));
        kn_buf_reset(&buf);
        kn_manifest_iceberg_schema(&buf, &form);
        json_t *want = parse_json(
            "iceberg.schema", kn_str(json_string_value(json_object_get(java, "iceberg.schema"))));
        assert_same_json(kinds[i].key, (KnStr){buf.data, buf.len}, want);
        json_decref(want);
    }
    json_decref(doc);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(headers_counts_and_summaries_are_those_of_java),
        cmocka_unit_test(v1_schemas_are_those_of_java),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
