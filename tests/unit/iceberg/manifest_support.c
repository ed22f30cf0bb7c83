/* SPDX-License-Identifier: Apache-2.0 */
#include "unit/iceberg/manifest_support.h"

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

char *test_manifest_file(const char *name, size_t *ret_len)
{
    char path[1024];
    int n = snprintf(path, sizeof(path), "%s/data/manifest/%s", KN_TEST_DATA_DIR, name);
    assert_true(n > 0 && (size_t)n < sizeof(path));
    FILE *file = fopen(path, "rb");
    if (!file)
        fail_msg("%s cannot be opened", path);
    char *bytes = calloc(1, 1 << 20);
    assert_non_null(bytes);
    *ret_len = fread(bytes, 1, (1 << 20) - 1, file);
    assert_true(*ret_len > 0 && feof(file));
    assert_int_equal(fclose(file), 0);
    return bytes;
}

/* Everything beside metadata.json goes where the table says that its metadata folder is. */
static void load_files(const char *name, const char *list, KnFileIO *io)
{
    char path[1024];
    int n = snprintf(path, sizeof(path), "%s/data/manifest/%s", KN_TEST_DATA_DIR, name);
    assert_true(n > 0 && (size_t)n < sizeof(path));
    DIR *dir = opendir(path);
    assert_non_null(dir);
    int folder_len = (int)(strrchr(list, '/') - list);
    for (struct dirent *entry = readdir(dir); entry; entry = readdir(dir)) {
        if (!strstr(entry->d_name, ".avro"))
            continue;
        char location[1024];
        n = snprintf(path, sizeof(path), "%s/%s", name, entry->d_name);
        assert_true(n > 0 && (size_t)n < sizeof(path));
        n = snprintf(location, sizeof(location), "%.*s/%s", folder_len, list, entry->d_name);
        assert_true(n > 0 && (size_t)n < sizeof(location));
        size_t len;
        char *bytes = test_manifest_file(path, &len);
        assert_int_equal(kn_io_write(io, kn_str(location), bytes, len, KN_IO_CREATE, NULL), KN_OK);
        free(bytes);
    }
    assert_int_equal(closedir(dir), 0);
}

static void parse_metadata(KnStr text, TestTable *ret)
{
    KnErr err = {0};
    *ret = (TestTable){.arena = kn_arena_new(0)};
    assert_int_equal(kn_io_memory_open(&ret->io, &err), KN_OK);
    if (kn_metadata_parse(text, "test", &ret->md, &err) != KN_OK)
        fail_msg("%s", err.msg);
}

void test_table_open(const char *name, TestTable *ret)
{
    char path[256];
    int n = snprintf(path, sizeof(path), "%s/metadata.json", name);
    assert_true(n > 0 && (size_t)n < sizeof(path));
    size_t len;
    char *text = test_manifest_file(path, &len);
    parse_metadata((KnStr){text, len}, ret);
    free(text);
    const KnSnapshot *snap = kn_metadata_snapshot(ret->md);
    assert_non_null(snap);
    load_files(name, snap->manifest_list, ret->io);
    KnErr err = {0};
    if (kn_manifest_list_read(ret->io, ret->arena, snap, &ret->manifests, &ret->n_manifests,
                              &err) != KN_OK)
        fail_msg("%s", err.msg);
}

void test_table_close(TestTable *table)
{
    table->md = kn_metadata_unref(table->md);
    table->io = kn_io_close(table->io);
    table->arena = kn_arena_free(table->arena);
}

static KnCode collect(void *arg, const KnManifestEntry *entry, KnErr *err)
{
    (void)err;
    TestEntries *entries = arg;
    assert_true(entries->n < TEST_ENTRIES_MAX);
    entries->items[entries->n++] = kn_manifest_entry_copy(entries->arena, entry);
    return KN_OK;
}

KnCode test_manifest_collect(const TestTable *table, const KnManifestFile *mf,
                             KnManifestReadOptions opts, TestEntries *ret, KnErr *err)
{
    *ret = (TestEntries){.arena = table->arena};
    KnManifestVisit visit = {opts, collect, ret};
    return kn_manifest_read(table->io, table->md, mf, &visit, err);
}

static const char made_metadata[] =
    "{\"format-version\":%d,\"table-uuid\":\"11111111-2222-3333-4444-555555555555\","
    "\"location\":\"mem://t\",\"last-sequence-number\":9,\"last-updated-ms\":1,"
    "\"last-column-id\":3,\"next-row-id\":1000,\"current-schema-id\":0,\"schemas\":[{\"type\":"
    "\"struct\",\"schema-id\":0,\"fields\":["
    "{\"id\":1,\"name\":\"id\",\"required\":false,\"type\":\"long\"},"
    "{\"id\":2,\"name\":\"cat\",\"required\":false,\"type\":\"string\"},"
    "{\"id\":3,\"name\":\"ts\",\"required\":false,\"type\":\"timestamp\"}]}],"
    "\"default-spec-id\":7,\"partition-specs\":[{\"spec-id\":7,\"fields\":["
    "{\"name\":\"cat\",\"transform\":\"identity\",\"source-id\":2,\"field-id\":1000},"
    "{\"name\":\"id_part\",\"transform\":\"identity\",\"source-id\":1,\"field-id\":1001}]}],"
    "\"last-partition-id\":1001,\"default-sort-order-id\":0,"
    "\"sort-orders\":[{\"order-id\":0,\"fields\":[]}],\"properties\":{},\"snapshots\":[],"
    "\"refs\":{},\"snapshot-log\":[],\"metadata-log\":[]}";

void test_table_make(int32_t format_version, TestTable *ret)
{
    char text[2048];
    char format[16];
    int n = snprintf(format, sizeof(format), "%d", format_version);
    assert_true(n == 1);
    const char *at = strstr(made_metadata, "%d");
    n = snprintf(text, sizeof(text), "%.*s%s%s", (int)(at - made_metadata), made_metadata, format,
                 at + 2);
    assert_true(n > 0 && (size_t)n < sizeof(text));
    parse_metadata((KnStr){text, (size_t)n}, ret);
}

const KnType *test_partition_type(const TestTable *table)
{
    const KnType *type;
    KnErr err = {0};
    if (kn_partition_type(table->arena, kn_metadata_find_spec(table->md, 7),
                          kn_metadata_schema(table->md), &type, &err) != KN_OK)
        fail_msg("%s", err.msg);
    return type;
}

void test_manifest_put(const TestTable *table, const KnManifestForm *form, const char *path,
                       const KnManifestEntry *entries, size_t n)
{
    KN_BUF_AUTO schema;
    kn_buf_init(&schema, 1 << 20);
    kn_manifest_avro_schema(&schema, form);
    KnAvroWriter *w = kn_avro_writer_new((KnStr){schema.data, schema.len}, KN_AVRO_CODEC_NULL);
    KnErr err = {0};
    for (size_t i = 0; i < n; ++i) {
        if (kn_manifest_encode(kn_avro_writer_buf(w), form, &entries[i], &err) != KN_OK)
            fail_msg("%s", err.msg);
        assert_int_equal(kn_avro_writer_datum(w, NULL), KN_OK);
    }
    KnBuf file;
    assert_int_equal(kn_avro_writer_finish(w, &file, NULL), KN_OK);
    (void)kn_avro_writer_free(w);
    assert_int_equal(kn_io_write(table->io, kn_str(path), file.data, file.len, KN_IO_REPLACE, NULL),
                     KN_OK);
    kn_buf_done(&file);
}

KnManifestEntry test_entry(KnEntryStatus status, const char *path, int64_t rows)
{
    static const KnValue nulls[2] = {{.null = true}, {.null = true}};
    KnManifestEntry entry = kn_manifest_entry_empty();
    entry.status = status;
    entry.file.path = path;
    entry.file.record_count = rows;
    entry.file.size_bytes = 100;
    entry.file.n_partition = 2;
    entry.file.partition = nulls;
    return entry;
}
