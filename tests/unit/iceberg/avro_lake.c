/* SPDX-License-Identifier: Apache-2.0 */
/* avro_lake.c - see avro_lake.h. */
#include "unit/iceberg/avro_lake.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "support/tempdir.h"

int avro_setup(void **state)
{
    static AvroLake fix;
    fix = (AvroLake){.arena = kn_arena_new(0)};
    test_tempdir_make(fix.dir);
    assert_true(snprintf(fix.tmp, sizeof(fix.tmp), "%s/tmp", fix.dir) > 0);
    assert_int_equal(mkdir(fix.tmp, 0700), 0);
    assert_int_equal(setenv("TMPDIR", fix.tmp, 1), 0);
    kn_buf_init(&fix.out, 1 << 20);
    assert_int_equal(kn_io_local_open(&fix.io, &fix.err), KN_OK);
    KnEngineOptions opts = {.threads = 2};
    assert_int_equal(kn_engine_open(&opts, &fix.eng, &fix.err), KN_OK);
    assert_int_equal(kn_session_open(fix.eng, &fix.ses, &fix.err), KN_OK);
    *state = &fix;
    return 0;
}

static size_t left_in(const char *folder)
{
    size_t n = 0;
    DIR *dir = opendir(folder);
    assert_non_null(dir);
    while (readdir(dir))
        n++;
    closedir(dir);
    return n - 2;
}

int avro_teardown(void **state)
{
    AvroLake *fix = *state;
    kn_table_free(fix->tbl);
    kn_session_close(fix->ses);
    kn_engine_close(fix->eng);
    kn_io_close(fix->io);
    kn_buf_done(&fix->out);
    kn_arena_free(fix->arena);
    assert_int_equal(left_in(fix->tmp), 0);
    test_tempdir_remove(fix->dir);
    return unsetenv("TMPDIR");
}

void avro_table(AvroLake *fix, const char *fields, const char *properties)
{
    const char *text = kn_arena_printf(
        fix->arena,
        "{\"format-version\":3,\"table-uuid\":\"11111111-2222-3333-4444-555555555555\","
        "\"location\":\"%s\",\"last-sequence-number\":99,\"last-updated-ms\":1,"
        "\"last-column-id\":50,\"next-row-id\":0,\"current-schema-id\":0,\"schemas\":[{\"type\":"
        "\"struct\",\"schema-id\":0,\"fields\":[%s]}],\"default-spec-id\":0,\"partition-specs\":[{"
        "\"spec-id\":0,\"fields\":[]}],\"last-partition-id\":1000,\"default-sort-order-id\":0,"
        "\"sort-orders\":[{\"order-id\":0,\"fields\":[]}],\"properties\":%s,\"snapshots\":[],"
        "\"refs\":{},\"snapshot-log\":[],\"metadata-log\":[]}",
        fix->dir, fields, properties ? properties : "{}");
    KnMetadata *md = NULL;
    if (kn_metadata_parse(kn_str(text), "test", &md, &fix->err) != KN_OK)
        fail_msg("%s", fix->err.msg);
    kn_table_free(fix->tbl);
    fix->tbl = kn_table_new(NULL, NULL, fix->io, md, "m.json");
}

KnManifestEntry *avro_entry(AvroLake *fix, const char *name, const void *bytes, size_t len,
                            int64_t rows)
{
    const char *path = kn_arena_printf(fix->arena, "%s/%s", fix->dir, name);
    if (kn_io_write(fix->io, kn_str(path), bytes, len, KN_IO_REPLACE, &fix->err) != KN_OK)
        fail_msg("%s", fix->err.msg);
    KnManifestEntry *entry = kn_arena_zalloc(fix->arena, sizeof(*entry));
    *entry = (KnManifestEntry){.status = KN_ENTRY_ADDED, .sequence_number = 1};
    entry->file = (KnDataFile){.path = path,
                               .format = KN_FORMAT_AVRO,
                               .record_count = rows,
                               .first_row_id = -1,
                               .content_offset = -1,
                               .content_size = -1};
    return entry;
}

AvroFile avro_begin(AvroLake *fix, const char *schema, KnAvroCodec codec)
{
    KnAvroWriter *writer = kn_avro_writer_new(kn_str(schema), codec);
    return (AvroFile){fix, writer, kn_avro_writer_buf(writer), 0};
}

void avro_end_row(AvroFile *avro)
{
    assert_int_equal(kn_avro_writer_datum(avro->writer, &avro->fix->err), KN_OK);
    avro->rows++;
}

void avro_put_text(AvroFile *avro, const char *text)
{
    kn_avro_put_bytes(avro->buf, kn_str(text));
}

KnBuf avro_bytes(AvroFile *avro)
{
    KnBuf file = {0};
    kn_buf_init(&file, (size_t)1 << 30);
    assert_int_equal(kn_avro_writer_finish(avro->writer, &file, &avro->fix->err), KN_OK);
    kn_avro_writer_free(avro->writer);
    return file;
}

KnManifestEntry *avro_end(AvroFile *avro, const char *name)
{
    KnBuf file = avro_bytes(avro);
    KnManifestEntry *entry = avro_entry(avro->fix, name, file.data, file.len, avro->rows);
    kn_buf_done(&file);
    return entry;
}

KnScanTask *avro_task(AvroLake *fix, KnManifestEntry *data, KnManifestEntry *deletes)
{
    const KnManifestEntry **list = kn_arena_zalloc(fix->arena, sizeof(*list));
    *list = deletes;
    KnScanTask *made = &fix->tasks[fix->n_tasks++];
    *made = (KnScanTask){.data = data, .deletes = list, .n_deletes = deletes ? 1 : 0};
    return made;
}

KnCode avro_read(AvroLake *fix, const char *sql)
{
    KnReadOptions opts = {.schema = kn_metadata_schema(fix->tbl->md), .with_position = true};
    KnRead *read = NULL;
    KN_TRY(kn_read_open(fix->tbl, fix->ses, (KnScanTasks){fix->tasks, fix->n_tasks}, &opts, &read,
                        &fix->err));
    const char *at = strstr(sql, "{scan}");
    const char *query = kn_arena_printf(fix->arena, "%.*s(%s) s%s", (int)(at - sql), sql,
                                        kn_read_sql(read), at + strlen("{scan}"));
    KnCode rc = kn_session_query_text(fix->ses, query, &fix->out, &fix->err);
    kn_read_close(read);
    return rc;
}

void avro_expect(AvroLake *fix, const char *sql, const char *want)
{
    if (avro_read(fix, sql) != KN_OK)
        fail_msg("%s", fix->err.msg);
    assert_string_equal(fix->out.data, want);
}

void avro_expect_error(AvroLake *fix, KnCode code, const char *file, const char *part)
{
    KnCode rc = avro_read(fix, "SELECT count(*) FROM {scan}");
    if (rc != code || !strstr(fix->err.msg, part) || !strstr(fix->err.msg, file))
        fail_msg("%s: %s", kn_code_name(rc), rc == KN_OK ? fix->out.data : fix->err.msg);
}

void avro_put_some(AvroFile *avro, int64_t value)
{
    kn_avro_put_long(avro->buf, 1);
    kn_avro_put_long(avro->buf, value);
}
