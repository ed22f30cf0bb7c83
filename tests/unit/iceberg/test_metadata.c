/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_metadata.c - table metadata documents: real ones of other writers round-trip, broken ones
 * are refused by name.
 */
#include <string.h>
#include <zlib.h>

#include "unit/iceberg/meta_support.h"

static const char *const documents[] = {
    "v1_minimal.metadata.json",   "v1_full.metadata.json",
    "g_cow_v2.metadata.json",     "g_gzmeta.gz.metadata.json",
    "g_refs.metadata.json",       "g_part_evo.metadata.json",
    "g_nested.metadata.json",     "j_defaults_v3.metadata.json",
    "g_lineage_v3.metadata.json", "g_stats_files.metadata.json",
    "g_namemap.metadata.json",    "g_empty.metadata.json",
    "j_dv_v3.metadata.json",      "j_types_v3_parquet.metadata.json",
    "g_variant_v3.metadata.json", "g_expire.metadata.json",
    "g_rollback.metadata.json"};

static json_t *to_json(Meta *m, const KnMetadata *md)
{
    KN_BUF_AUTO buf = {0};
    json_t *doc = NULL;

    kn_buf_init(&buf, (size_t)16 << 20);
    meta_ok(m, kn_metadata_to_json(md, &buf, &m->err));
    meta_ok(m, kn_json_parse(buf.data, buf.len, &doc, &m->err));
    return doc;
}

static void writing_and_reading_again_changes_nothing(void **state)
{
    Meta *m = *state;

    for (size_t i = 0; i < sizeof(documents) / sizeof(documents[0]); i++) {
        KN_METADATA_AUTO md = meta_load(m, documents[i]);
        KN_METADATA_AUTO again = NULL;
        KN_JSON_AUTO first = to_json(m, md);
        meta_ok(m, kn_metadata_parse_json(first, "again", &again, &m->err));
        KN_JSON_AUTO second = to_json(m, again);
        assert_true(json_equal(first, second));
    }
}

static void inflate_all(KnStr bytes, KnBuf *out)
{
    z_stream zs = {.next_in = (Bytef *)(uintptr_t)bytes.ptr, .avail_in = (uInt)bytes.len};

    assert_int_equal(inflateInit2(&zs, MAX_WBITS + 16), Z_OK);
    zs.next_out = kn_buf_reserve(out, (size_t)1 << 20);
    zs.avail_out = 1 << 20;
    assert_int_equal(inflate(&zs, Z_FINISH), Z_STREAM_END);
    out->len = zs.total_out;
    inflateEnd(&zs);
}

/* Of documents of v2 and v3, as Java writes them, every key and value comes back. */
static void documents_of_java_come_back_as_they_were(void **state)
{
    Meta *m = *state;

    for (size_t i = 1; i < sizeof(documents) / sizeof(documents[0]); i++) {
        KN_METADATA_AUTO md = meta_load(m, documents[i]);
        KN_BUF_AUTO plain = {0};
        KN_JSON_AUTO source = NULL;
        KN_JSON_AUTO out = to_json(m, md);
        KnStr bytes = meta_file(m, documents[i]);

        kn_buf_init(&plain, (size_t)2 << 20);
        if (strstr(documents[i], ".gz.")) {
            inflate_all(bytes, &plain);
            bytes = (KnStr){plain.data, plain.len};
        }
        meta_ok(m, kn_json_parse(bytes.ptr, bytes.len, &source, &m->err));
        if (md->format_version == 1) { /* that one had neither: Java adds them */
            json_object_set_new(source, "statistics", json_array());
            json_object_set_new(source, "partition-statistics", json_array());
            json_object_set_new(source, "refs", json_incref(json_object_get(out, "refs")));
        }
        if (!json_equal(source, out)) {
            KN_BUF_AUTO text = {0};
            kn_buf_init(&text, (size_t)1 << 20);
            kn_json_dump(&text, out);
            fail_msg("%s came back as %s", documents[i], text.data);
        }
    }
}

static void the_oldest_form_of_v1_is_completed(void **state)
{
    Meta *m = *state;
    KN_METADATA_AUTO md = meta_load(m, "v1_minimal.metadata.json");

    assert_int_equal(md->format_version, 1);
    assert_null(md->uuid);
    assert_string_equal(md->location, "s3://bucket/test/location");
    assert_int_equal(md->current_snapshot_id, -1);
    assert_null(kn_metadata_snapshot(md));
    assert_int_equal(md->n_schemas, 1);
    assert_int_equal(kn_metadata_schema(md)->root.n_fields, 3);
    assert_int_equal(kn_metadata_spec(md)->fields[1].field_id, 1001);
    assert_int_equal(md->last_partition_id, 1001);
    assert_int_equal(kn_metadata_sort_order(md)->n_fields, 0);
    assert_int_equal(md->n_refs, 0);
    KN_JSON_AUTO out = to_json(m, md);
    assert_non_null(json_object_get(out, "schema"));
    assert_non_null(json_object_get(out, "partition-spec"));
    assert_null(json_object_get(out, "last-sequence-number"));
    assert_null(json_object_get(out, "next-row-id"));
    assert_int_equal(json_integer_value(json_object_get(out, "current-snapshot-id")), -1);
}

static void a_full_v1_document_is_read(void **state)
{
    Meta *m = *state;
    KN_METADATA_AUTO md = meta_load(m, "v1_full.metadata.json");
    const KnSnapshot *first = &md->snapshots[0], *snap = kn_metadata_snapshot(md);

    assert_int_equal(first->n_manifests, 2);
    assert_string_equal(first->manifests[1], "s3://bucket/m/1.avro");
    assert_null(first->manifest_list);
    assert_null(first->operation);
    assert_int_equal(first->parent_id, -1);
    assert_int_equal(first->schema_id, -1);
    assert_string_equal(snap->manifest_list, "s3://bucket/m/snap.avro");
    assert_string_equal(snap->operation, "append");
    assert_int_equal(snap->parent_id, 3051729675574597004);
    assert_ptr_equal(kn_metadata_snapshot_schema(md, first), kn_metadata_schema(md));
    const KnRef *main_ref = kn_metadata_find_ref(md, KN_STR_LIT("main"));
    assert_true(main_ref->is_branch);
    assert_int_equal(main_ref->snapshot_id, snap->snapshot_id);
    assert_null(kn_metadata_find_ref(md, KN_STR_LIT("mai")));
    assert_string_equal(kn_metadata_property(md, "owner", "x"), "someone");
    assert_string_equal(kn_metadata_property(md, "nobody", "x"), "x");
    assert_int_equal(kn_metadata_find_schema(md, 0)->root.n_fields, 1);
    assert_null(kn_metadata_find_schema(md, 2));
    assert_null(kn_metadata_find_spec(md, 2));
    assert_null(kn_metadata_find_snapshot(md, 7));
}

static void time_travel_reads_the_snapshot_log(void **state)
{
    Meta *m = *state;
    KN_METADATA_AUTO md = meta_load(m, "v1_full.metadata.json");

    assert_null(kn_metadata_snapshot_as_of(md, 1602638573873));
    assert_int_equal(kn_metadata_snapshot_as_of(md, 1602638573874)->snapshot_id,
                     3051729675574597004);
    assert_int_equal(kn_metadata_snapshot_as_of(md, 1602638583873)->snapshot_id,
                     3051729675574597004);
    assert_int_equal(kn_metadata_snapshot_as_of(md, INT64_MAX)->snapshot_id, 3055729675574597004);
}

static void lineage_refs_and_statistics_are_read(void **state)
{
    Meta *m = *state;
    KN_METADATA_AUTO lineage = meta_load(m, "g_lineage_v3.metadata.json");
    KN_METADATA_AUTO refs = meta_load(m, "g_refs.metadata.json");
    KN_METADATA_AUTO stats = meta_load(m, "g_stats_files.metadata.json");
    KN_METADATA_AUTO fresh = meta_load(m, "j_dv_v3.metadata.json");

    assert_int_equal(lineage->format_version, 3);
    assert_true(lineage->next_row_id > 0);
    assert_true(kn_metadata_snapshot(lineage)->first_row_id >= 0);
    assert_true(kn_metadata_snapshot(lineage)->added_rows >= 0);
    const KnRef *dev = kn_metadata_find_ref(refs, KN_STR_LIT("dev"));
    assert_int_equal(dev->min_snapshots_to_keep, 2);
    assert_int_equal(dev->max_snapshot_age_ms, 604800000);
    assert_int_equal(dev->max_ref_age_ms, -1);
    assert_false(kn_metadata_find_ref(refs, KN_STR_LIT("t1"))->is_branch);
    assert_non_null(kn_metadata_find_ref(refs, KN_STR_LIT("unicode-\xc3\xa9")));
    assert_true(json_array_size(stats->statistics) > 0);
    assert_int_equal(fresh->current_snapshot_id, -1);
    KN_JSON_AUTO out = to_json(m, fresh);
    assert_true(json_is_null(json_object_get(out, "current-snapshot-id")));
}

static void dropped_columns_are_found_in_older_schemas(void **state)
{
    Meta *m = *state;
    KN_METADATA_AUTO md = meta_load(m, "j_defaults_v3.metadata.json");

    assert_null(kn_schema_find_id(kn_metadata_schema(md), 12));
    assert_string_equal(kn_metadata_find_field(md, 12)->name, "d");
    assert_string_equal(kn_metadata_find_field(md, 4)->name, "i2"); /* not the old name */
    assert_null(kn_metadata_find_field(md, 99));
}

/* ---- refusals ---- */

#define V2_SCHEMA                                                                                  \
    "{'type':'struct','schema-id':0,'fields':[{'id':1,'name':'x','required':true,'type':'long'}]}"
#define V2                                                                                         \
    "{'format-version':2,'table-uuid':'9c12d441-03fe-4693-9a96-a0705ddf69c1',"                     \
    "'location':'file:///t','last-sequence-number':2,'last-updated-ms':100000,"                    \
    "'last-column-id':1,'current-schema-id':0,'schemas':[" V2_SCHEMA "],'default-spec-id':0,"      \
    "'partition-specs':[{'spec-id':0,'fields':[]}],'last-partition-id':999,"                       \
    "'default-sort-order-id':0,'sort-orders':[{'order-id':0,'fields':[]}],'properties':{},"        \
    "'current-snapshot-id':7,'snapshots':[{'snapshot-id':7,'sequence-number':2,"                   \
    "'timestamp-ms':100000,'summary':{'operation':'append'},'manifest-list':'l'}],"                \
    "'refs':{'main':{'snapshot-id':7,'type':'branch'}}}"

static const char *const required_in_v2[] = {
    "format-version",       "table-uuid",      "location",          "last-sequence-number",
    "last-updated-ms",      "last-column-id",  "schemas",           "current-schema-id",
    "partition-specs",      "default-spec-id", "last-partition-id", "sort-orders",
    "default-sort-order-id"};

static KnCode parse_doc(Meta *m, json_t *doc)
{
    KN_METADATA_AUTO md = NULL;
    KnCode rc;

    m->err = (KnErr){0};
    rc = kn_metadata_parse_json(doc, "doc", &md, &m->err);
    assert_true((rc == KN_OK) == (md != NULL));
    return rc;
}

static void every_required_field_is_missed_by_name(void **state)
{
    Meta *m = *state;

    for (size_t i = 0; i < sizeof(required_in_v2) / sizeof(required_in_v2[0]); i++) {
        KN_JSON_AUTO doc = json_deep_copy(meta_json(m, V2));
        assert_int_equal(parse_doc(m, doc), KN_OK);
        json_object_del(doc, required_in_v2[i]);
        assert_int_equal(parse_doc(m, doc), KN_E_CORRUPT);
        assert_non_null(strstr(m->err.msg, kn_arena_printf(m->arena, "doc: field '%s' is missing",
                                                           required_in_v2[i])));
        assert_null(strchr(m->err.msg, '\n'));
        json_object_set_new(doc, required_in_v2[i], json_true());
        assert_int_equal(parse_doc(m, doc), KN_E_CORRUPT);
        assert_non_null(strstr(
            m->err.msg, kn_arena_printf(m->arena, "doc: field '%s': expected", required_in_v2[i])));
    }
    KN_JSON_AUTO v3 = json_deep_copy(meta_json(m, V2));
    json_object_set_new(v3, "format-version", json_integer(3));
    assert_int_equal(parse_doc(m, v3), KN_E_CORRUPT);
    assert_string_equal(m->err.msg, "doc: field 'next-row-id' is missing: expected an integer");
    json_object_set_new(v3, "next-row-id", json_integer(0));
    assert_int_equal(parse_doc(m, v3), KN_OK);
}

/* One key of a right document set to something else, and what is said about it. */
static const struct {
    const char *key, *json;
    KnCode code;
    const char *message;
} inconsistent[] = {
    {"format-version", "4", KN_E_UNSUPPORTED,
     "field 'format-version': table format v4 is not known (1 to 3 are)"},
    {"format-version", "0", KN_E_UNSUPPORTED,
     "field 'format-version': table format v0 is not known (1 to 3 are)"},
    {"current-schema-id", "1", KN_E_CORRUPT,
     "field 'current-schema-id': schema 1 is not in 'schemas'"},
    {"schemas", "[" V2_SCHEMA "," V2_SCHEMA "]", KN_E_CORRUPT,
     "field 'schemas': schema-id 0 is there twice"},
    {"schemas", "[" V2_SCHEMA ",{'type':'struct','schema-id':1}]", KN_E_CORRUPT,
     "schemas[1]: field 'fields' is missing: expected an array"},
    {"default-spec-id", "1", KN_E_CORRUPT,
     "field 'default-spec-id': spec 1 is not in 'partition-specs'"},
    {"partition-specs", "[]", KN_E_CORRUPT,
     "field 'default-spec-id': spec 0 is not in 'partition-specs'"},
    {"default-sort-order-id", "2", KN_E_CORRUPT,
     "field 'default-sort-order-id': order 2 is not in 'sort-orders'"},
    {"last-sequence-number", "1", KN_E_CORRUPT,
     "Invalid snapshot with sequence number 2 greater than last sequence number 1"},
    {"last-sequence-number", "-1", KN_E_CORRUPT, "field 'last-sequence-number': negative"},
    {"current-snapshot-id", "8", KN_E_CORRUPT,
     "field 'current-snapshot-id': snapshot 8 is not in 'snapshots'"},
    {"current-snapshot-id", "-1", KN_E_CORRUPT,
     "Current snapshot is not set, but main branch exists: 7"},
    {"current-snapshot-id", "null", KN_E_CORRUPT,
     "Current snapshot is not set, but main branch exists: 7"},
    {"snapshots",
     "[{'snapshot-id':7,'timestamp-ms':1,'manifest-list':'l'},"
     "{'snapshot-id':8,'timestamp-ms':1,'manifest-list':'l'},"
     "{'snapshot-id':7,'timestamp-ms':1,'manifest-list':'l'}]",
     KN_E_CORRUPT, "field 'snapshots': snapshot-id 7 is there twice"},
    {"snapshots", "[{'snapshot-id':7,'timestamp-ms':1}]", KN_E_CORRUPT,
     "snapshots[0]: field 'manifest-list' is missing"},
    {"snapshots", "[{'snapshot-id':7,'timestamp-ms':1,'manifests':[]}]", KN_E_CORRUPT,
     "snapshots[0]: field 'manifest-list' is missing"},
    {"snapshots", "[{'snapshot-id':7,'manifest-list':'l'}]", KN_E_CORRUPT,
     "snapshots[0]: field 'timestamp-ms' is missing: expected an integer"},
    {"snapshots", "[{'snapshot-id':7,'timestamp-ms':1,'manifest-list':'l','summary':{'a':1}}]",
     KN_E_CORRUPT, "snapshots[0]: field 'summary': 'a' is not a string"},
    {"snapshots", "[{'snapshot-id':7,'timestamp-ms':1,'manifest-list':'l','first-row-id':0}]",
     KN_E_CORRUPT, "snapshots[0]: field 'added-rows' is missing: 'first-row-id' needs it"},
    {"refs", "{'main':{'snapshot-id':7,'type':'branch'},'b':{'snapshot-id':8,'type':'tag'}}",
     KN_E_CORRUPT, "Snapshot for reference b does not exist in the existing snapshots list: 8"},
    {"refs", "{'b':{'snapshot-id':7,'type':'twig'}}", KN_E_CORRUPT,
     "refs 'b': field 'type': expected 'branch' or 'tag', found 'twig'"},
    {"refs", "{'b':{'snapshot-id':7,'type':'tag','min-snapshots-to-keep':1}}", KN_E_CORRUPT,
     "Tags do not support setting minSnapshotsToKeep: b"},
    {"snapshot-log",
     "[{'timestamp-ms':100000,'snapshot-id':7},{'timestamp-ms':39999,'snapshot-id':7}]",
     KN_E_CORRUPT, "field 'snapshot-log': entries are not sorted by time"},
    {"snapshot-log", "[{'timestamp-ms':160001,'snapshot-id':7}]", KN_E_CORRUPT,
     "Invalid update timestamp 100000: before last entry of 'snapshot-log' at 160001"},
    {"metadata-log", "[{'timestamp-ms':160001,'metadata-file':'f'}]", KN_E_CORRUPT,
     "Invalid update timestamp 100000: before last entry of 'metadata-log' at 160001"},
    {"metadata-log", "[{'timestamp-ms':1}]", KN_E_CORRUPT,
     "metadata-log[0]: field 'metadata-file' is missing: expected a string"},
    {"properties", "{'a':1}", KN_E_CORRUPT, "field 'properties': 'a' is not a string"},
    {"statistics", "{}", KN_E_CORRUPT, "field 'statistics': expected an array, found an object"},
};

static void inconsistent_documents_are_refused_with_the_reason(void **state)
{
    Meta *m = *state;

    for (size_t i = 0; i < sizeof(inconsistent) / sizeof(inconsistent[0]); i++) {
        KN_JSON_AUTO doc = json_deep_copy(meta_json(m, V2));
        json_t *wrapped = meta_json(m, kn_arena_printf(m->arena, "[%s]", inconsistent[i].json));
        json_object_set(doc, inconsistent[i].key, json_array_get(wrapped, 0));
        assert_int_equal(parse_doc(m, doc), inconsistent[i].code);
        assert_string_equal(m->err.msg,
                            kn_arena_printf(m->arena, "doc: %s", inconsistent[i].message));
    }
}

static void a_minute_of_clock_difference_is_tolerated(void **state)
{
    static const char *const cases[][2] = {
        {"snapshot-log", "[{'timestamp-ms':160000,'snapshot-id':7}]"},
        {"snapshot-log",
         "[{'timestamp-ms':100000,'snapshot-id':7},{'timestamp-ms':40000,'snapshot-id':7}]"},
        {"metadata-log", "[{'timestamp-ms':160000,'metadata-file':'f'}]"},
    };
    Meta *m = *state;

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        KN_JSON_AUTO doc = json_deep_copy(meta_json(m, V2));
        json_object_set(doc, cases[i][0], meta_json(m, cases[i][1]));
        assert_int_equal(parse_doc(m, doc), KN_OK);
    }
}

static void bytes_that_are_no_document_are_refused_in_one_line(void **state)
{
    static const char *const texts[] = {"",
                                        "{",
                                        "[]",
                                        "null",
                                        "7",
                                        "{} {}",
                                        "{'a':1,'a':2}",
                                        "\x1f\x8b",
                                        "\x1f\x8b\x08\xff\xff",
                                        "\xef\xbb\xbf{}"};
    Meta *m = *state;

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        KnMetadata *md = NULL;
        const char *text = meta_quotes(m, texts[i]);
        assert_int_equal(kn_metadata_parse(kn_str(text), "file:///m.json", &md, &m->err),
                         KN_E_CORRUPT);
        assert_null(md);
        assert_int_equal(strncmp(m->err.msg, "file:///m.json: ", 16), 0);
        assert_null(strchr(m->err.msg, '\n'));
    }
}

static void every_cut_of_a_document_is_refused(void **state)
{
    static const char *const names[] = {"v1_full.metadata.json", "g_gzmeta.gz.metadata.json"};
    Meta *m = *state;

    for (size_t i = 0; i < 2; i++) {
        KnStr bytes = meta_file(m, names[i]);
        while (bytes.len > 0 && bytes.ptr[bytes.len - 1] == '\n')
            bytes.len--;
        for (size_t len = 0; len < bytes.len; len += 7) {
            KnMetadata *md = NULL;
            assert_int_equal(kn_metadata_parse((KnStr){bytes.ptr, len}, "cut", &md, &m->err),
                             KN_E_CORRUPT);
            assert_null(md);
        }
    }
}

static void unknown_keys_are_written_back(void **state)
{
    static const char *const paths[] = {"top", "snapshots", "schemas", "refs"};
    Meta *m = *state;
    KN_JSON_AUTO doc = json_deep_copy(meta_json(m, V2));
    json_t *note = meta_json(m, "{'deep':[1,{'x':null}]}");

    json_object_set(doc, "x-note", note);
    json_object_set(json_array_get(json_object_get(doc, "snapshots"), 0), "x-note", note);
    json_object_set(json_array_get(json_object_get(doc, "schemas"), 0), "x-note", note);
    json_object_set(json_object_get(json_object_get(doc, "refs"), "main"), "x-note", note);
    KN_METADATA_AUTO md = NULL;
    meta_ok(m, kn_metadata_parse_json(doc, "doc", &md, &m->err));
    KN_JSON_AUTO out = to_json(m, md);
    assert_true(json_equal(json_object_get(out, "x-note"), note));
    for (size_t i = 1; i < 4; i++) {
        const json_t *at = json_object_get(out, paths[i]);
        at = i < 3 ? json_array_get(at, 0) : json_object_get(at, "main");
        assert_true(json_equal(json_object_get(at, "x-note"), note));
    }
}

static void encryption_is_seen_and_kept(void **state)
{
    Meta *m = *state;
    KN_JSON_AUTO doc = json_deep_copy(meta_json(m, V2));
    KN_METADATA_AUTO plain = NULL;
    KN_METADATA_AUTO by_key = NULL;
    KN_METADATA_AUTO by_property = NULL;

    meta_ok(m, kn_metadata_parse_json(doc, "doc", &plain, &m->err));
    assert_false(kn_metadata_is_encrypted(plain));
    json_object_set_new(json_array_get(json_object_get(doc, "snapshots"), 0), "key-id",
                        json_string("k1"));
    json_object_set(doc, "encryption-keys",
                    meta_json(m, "[{'key-id':'k1','encrypted-key-metadata':'AA=='}]"));
    meta_ok(m, kn_metadata_parse_json(doc, "doc", &by_key, &m->err));
    assert_true(kn_metadata_is_encrypted(by_key));
    KN_JSON_AUTO out = to_json(m, by_key);
    assert_true(json_equal(json_object_get(out, "encryption-keys"),
                           json_object_get(doc, "encryption-keys")));
    KN_JSON_AUTO other = json_deep_copy(meta_json(m, V2));
    json_object_set(other, "properties", meta_json(m, "{'encryption.key-id':'master'}"));
    meta_ok(m, kn_metadata_parse_json(other, "doc", &by_property, &m->err));
    assert_true(kn_metadata_is_encrypted(by_property));
}

static void a_reference_keeps_the_document(void **state)
{
    Meta *m = *state;
    KnMetadata *md = meta_load(m, "g_cow_v2.metadata.json");
    KnMetadata *other = kn_metadata_ref(md);

    md = kn_metadata_unref(md);
    assert_null(md);
    assert_string_equal(kn_metadata_schema(other)->root.fields[0].name, "id");
    assert_null(kn_metadata_unref(other));
    assert_null(kn_metadata_unref(NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define CASE(name) cmocka_unit_test_setup_teardown(name, meta_setup, meta_teardown)
        CASE(writing_and_reading_again_changes_nothing),
        CASE(documents_of_java_come_back_as_they_were),
        CASE(the_oldest_form_of_v1_is_completed),
        CASE(a_full_v1_document_is_read),
        CASE(time_travel_reads_the_snapshot_log),
        CASE(lineage_refs_and_statistics_are_read),
        CASE(dropped_columns_are_found_in_older_schemas),
        CASE(every_required_field_is_missed_by_name),
        CASE(inconsistent_documents_are_refused_with_the_reason),
        CASE(a_minute_of_clock_difference_is_tolerated),
        CASE(bytes_that_are_no_document_are_refused_in_one_line),
        CASE(every_cut_of_a_document_is_refused),
        CASE(unknown_keys_are_written_back),
        CASE(encryption_is_seen_and_kept),
        CASE(a_reference_keeps_the_document),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
