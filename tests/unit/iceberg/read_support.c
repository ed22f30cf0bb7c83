/* SPDX-License-Identifier: Apache-2.0 */
/* read_support.c - see read_support.h. */
#include "unit/iceberg/read_support.h"

#include "support/tempdir.h"

void fixture_open_table(Fixture *fix, const char *schemas, const char *properties)
{
    const char *text = kn_arena_printf(
        fix->arena,
        "{\"format-version\":3,\"table-uuid\":\"11111111-2222-3333-4444-555555555555\","
        "\"location\":\"%s\",\"last-sequence-number\":99,\"last-updated-ms\":1,"
        "\"last-column-id\":50,\"next-row-id\":0,\"current-schema-id\":0,\"schemas\":[%s],"
        "\"default-spec-id\":0,\"partition-specs\":[{\"spec-id\":0,\"fields\":[]},"
        "{\"spec-id\":1,\"fields\":[{\"name\":\"p\",\"transform\":\"identity\",\"source-id\":2,"
        "\"field-id\":1000}]}],\"last-partition-id\":1000,\"default-sort-order-id\":0,"
        "\"sort-orders\":[{\"order-id\":0,\"fields\":[]}],\"properties\":%s,\"snapshots\":[],"
        "\"refs\":{},\"snapshot-log\":[],\"metadata-log\":[]}",
        fix->dir, schemas, properties ? properties : "{}");
    KnMetadata *md = NULL;
    if (kn_metadata_parse(kn_str(text), "test", &md, &fix->err) != KN_OK)
        fail_msg("%s", fix->err.msg);
    kn_table_free(fix->tbl);
    fix->tbl = kn_table_new(NULL, NULL, fix->io, md, "m.json");
}

int fixture_setup(void **state)
{
    static Fixture fix;
    fix = (Fixture){.arena = kn_arena_new(0)};
    test_tempdir_make(fix.dir);
    kn_buf_init(&fix.out, 1 << 20);
    assert_int_equal(kn_io_local_open(&fix.io, &fix.err), KN_OK);
    KnEngineOptions opts = {.threads = 2};
    assert_int_equal(kn_engine_open(&opts, &fix.eng, &fix.err), KN_OK);
    assert_int_equal(kn_session_open(fix.eng, &fix.ses, &fix.err), KN_OK);
    *state = &fix;
    return 0;
}

int fixture_teardown(void **state)
{
    Fixture *fix = *state;
    kn_table_free(fix->tbl);
    kn_session_close(fix->ses);
    kn_engine_close(fix->eng);
    kn_io_close(fix->io);
    kn_buf_done(&fix->out);
    kn_arena_free(fix->arena);
    test_tempdir_remove(fix->dir);
    return 0;
}

KnManifestEntry *fixture_put(Fixture *fix, const char *name, const char *field_ids,
                             const char *select)
{
    const char *path = kn_arena_printf(fix->arena, "%s/%s.parquet", fix->dir, name);
    const char *ids = field_ids ? kn_arena_printf(fix->arena, ", FIELD_IDS %s", field_ids) : "";
    int64_t rows = 0;
    const char *sql =
        kn_arena_printf(fix->arena, "COPY (%s) TO '%s' (FORMAT parquet%s)", select, path, ids);
    if (kn_session_exec(fix->ses, sql, &rows, &fix->err) != KN_OK)
        fail_msg("%s", fix->err.msg);
    sql = kn_arena_printf(fix->arena, "SELECT count(*) FROM '%s'", path);
    assert_int_equal(kn_session_query_i64(fix->ses, sql, &rows, &fix->err), KN_OK);
    KnManifestEntry *entry = kn_arena_zalloc(fix->arena, sizeof(*entry));
    *entry = (KnManifestEntry){.status = KN_ENTRY_ADDED, .sequence_number = 1};
    entry->file = (KnDataFile){.path = path,
                               .record_count = rows,
                               .first_row_id = -1,
                               .content_offset = -1,
                               .content_size = -1};
    assert_true(fix->n_entries < MAX_FILES);
    fix->entries[fix->n_entries++] = entry;
    return entry;
}

KnScanTask *fixture_task(Fixture *fix, KnManifestEntry *data, KnManifestEntry *d1,
                         KnManifestEntry *d2, KnManifestEntry *d3)
{
    const KnManifestEntry **deletes = kn_arena_zalloc(fix->arena, 3 * sizeof(*deletes));
    KnManifestEntry *given[3] = {d1, d2, d3};
    KnScanTask *made = &fix->tasks[fix->n_tasks++];
    *made = (KnScanTask){.data = data, .deletes = deletes};
    for (size_t i = 0; i < 3; i++)
        if (given[i])
            deletes[made->n_deletes++] = given[i];
    return made;
}

KnManifestEntry *fixture_equality(Fixture *fix, const char *name, int32_t id, const char *field_ids,
                                  const char *select)
{
    KnManifestEntry *entry = fixture_put(fix, name, field_ids, select);
    int32_t *ids = kn_arena_alloc(fix->arena, sizeof(*ids));
    *ids = id;
    entry->file.content = KN_CONTENT_EQUALITY_DELETES;
    entry->file.equality_ids = ids;
    entry->file.n_equality_ids = 1;
    return entry;
}

KnManifestEntry *fixture_positions(Fixture *fix, const char *name, const char *select)
{
    KnManifestEntry *entry =
        fixture_put(fix, name, "{file_path: 2147483546, pos: 2147483545}", select);
    entry->file.content = KN_CONTENT_POSITION_DELETES;
    return entry;
}

/* Every row of the query's one column, in the order in which they come, between blanks. */
static KnCode fixture_stream(Fixture *fix, const char *query)
{
    KnStream *stream = NULL;
    kn_buf_reset(&fix->out);
    kn_buf_text(&fix->out, "");
    KN_TRY(kn_session_query(fix->ses, query, &stream, &fix->err));
    KnCode rc;
    for (;;) {
        KN_BATCH_AUTO batch = NULL;
        rc = kn_stream_next(stream, &batch, &fix->err);
        if (rc != KN_OK || !batch)
            break;
        KnVector vec = kn_batch_vector(batch, 0);
        for (size_t i = 0; i < kn_batch_rows(batch); i++) {
            kn_buf_text(&fix->out, fix->out.len ? " " : "");
            kn_buf_str(&fix->out, kn_vector_str(&vec, i));
        }
    }
    kn_stream_close(stream);
    return rc;
}

KnCode fixture_read(Fixture *fix, const KnReadOptions *given, const char *sql)
{
    KnReadOptions opts = *given;
    if (!opts.schema)
        opts.schema = kn_metadata_schema(fix->tbl->md);
    KnRead *read = NULL;
    KnScanTasks tasks = {fix->tasks, fix->n_tasks};
    KN_TRY(kn_read_open(fix->tbl, fix->ses, tasks, &opts, &read, &fix->err));
    const char *at = strstr(sql, "{scan}");
    const char *query = kn_arena_printf(fix->arena, "%.*s%s%s", (int)(at - sql), sql,
                                        kn_read_sql(read), at + strlen("{scan}"));
    KnCode rc = fixture_stream(fix, query);
    kn_read_close(read);
    return rc;
}

void expect_rows_with(Fixture *fix, const KnReadOptions *opts, const char *want)
{
    if (fixture_read(fix, opts, ROWS) != KN_OK)
        fail_msg("%s", fix->err.msg);
    assert_string_equal(fix->out.data, want);
}

void expect_rows(Fixture *fix, const char *want)
{
    expect_rows_with(fix, &(KnReadOptions){0}, want);
}

void expect_error(Fixture *fix, KnCode code, const char *part)
{
    KnCode rc = fixture_read(fix, &(KnReadOptions){0}, ROWS);
    if (rc != code || !strstr(fix->err.msg, part))
        fail_msg("%s: %s", kn_code_name(rc), rc == KN_OK ? fix->out.data : fix->err.msg);
}
