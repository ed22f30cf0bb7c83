/* SPDX-License-Identifier: Apache-2.0 */
/* Reading: Parquet files made by the engine, tasks made by hand, rows as text. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "iceberg/scan/read.h"
#include "support/tempdir.h"

enum { MAX_FILES = 16 };

typedef struct Fixture {
    char dir[256];
    KnArena *arena;
    KnFileIO *io;
    KnEngine *eng;
    KnSession *ses;
    KnTable *tbl;
    KnErr err;
    KnBuf out;
    KnManifestEntry *entries[MAX_FILES];
    size_t n_entries;
    KnScanTask tasks[MAX_FILES];
    size_t n_tasks;
} Fixture;

#define FIELD(id, name, type)                                                                      \
    "{\"id\":" #id ",\"name\":\"" name "\",\"required\":false,\"type\":" type "}"
#define INT    "\"int\""
#define LONG   "\"long\""
#define STRING "\"string\""
#define DOUBLE "\"double\""

/* schemas: JSON schemas without the array's brackets; the first has schema-id 0 and is current. */
static void open_table(Fixture *fix, const char *schemas, const char *properties)
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

#define SCHEMA(id, fields) "{\"type\":\"struct\",\"schema-id\":" #id ",\"fields\":[" fields "]}"

static int setup(void **state)
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

static int teardown(void **state)
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

/* Writes a Parquet file of a SELECT and its entry. field_ids: "{a: 1}", or NULL for none. */
static KnManifestEntry *put(Fixture *fix, const char *name, const char *field_ids,
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

/* A task of data with up to three deletes. */
static KnScanTask *task(Fixture *fix, KnManifestEntry *data, KnManifestEntry *d1,
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

static KnManifestEntry *equality(Fixture *fix, const char *name, int32_t id, const char *field_ids,
                                 const char *select)
{
    KnManifestEntry *entry = put(fix, name, field_ids, select);
    int32_t *ids = kn_arena_alloc(fix->arena, sizeof(*ids));
    *ids = id;
    entry->file.content = KN_CONTENT_EQUALITY_DELETES;
    entry->file.equality_ids = ids;
    entry->file.n_equality_ids = 1;
    return entry;
}

static KnManifestEntry *positions(Fixture *fix, const char *name, const char *select)
{
    KnManifestEntry *entry = put(fix, name, "{file_path: 2147483546, pos: 2147483545}", select);
    entry->file.content = KN_CONTENT_POSITION_DELETES;
    return entry;
}

/* Every row of the query's one column, in the order in which they come, between blanks. */
static KnCode stream_text(Fixture *fix, const char *query)
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

static KnCode read_as(Fixture *fix, const KnReadOptions *given, const char *sql)
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
    KnCode rc = stream_text(fix, query);
    kn_read_close(read);
    return rc;
}

static const char ROWS[] = "SELECT CAST(s AS VARCHAR) FROM ({scan}) s";

static void expect_with(Fixture *fix, const KnReadOptions *opts, const char *want)
{
    if (read_as(fix, opts, ROWS) != KN_OK)
        fail_msg("%s", fix->err.msg);
    assert_string_equal(fix->out.data, want);
}

static void expect(Fixture *fix, const char *want)
{
    expect_with(fix, &(KnReadOptions){0}, want);
}

static void expect_error(Fixture *fix, KnCode code, const char *part)
{
    KnCode rc = read_as(fix, &(KnReadOptions){0}, ROWS);
    if (rc != code || !strstr(fix->err.msg, part))
        fail_msg("%s: %s", kn_code_name(rc), rc == KN_OK ? fix->out.data : fix->err.msg);
}

/* ---- columns ---- */

static void columns_are_found_by_id_and_not_by_name(void **state)
{
    Fixture *fix = *state;
    open_table(fix, SCHEMA(0, FIELD(2, "a", INT) "," FIELD(1, "b", INT) "," FIELD(4, "c", INT)),
               NULL);
    task(fix, put(fix, "f", "{a: 1, b: 2, c: 3}", "SELECT 10::INT a, 20::INT b, 30::INT c"), NULL,
         NULL, NULL);
    expect(fix, "{'a': 20, 'b': 10, 'c': NULL}");
}

static void promoted_columns_are_cast(void **state)
{
    Fixture *fix = *state;
    open_table(fix,
               SCHEMA(0, FIELD(1, "l", LONG) "," FIELD(2, "d", DOUBLE) "," FIELD(
                             3, "m", "\"decimal(12,2)\"")),
               NULL);
    task(fix,
         put(fix, "f", "{l: 1, d: 2, m: 3}", "SELECT 7::INT l, 1.5::FLOAT d, 1.25::DECIMAL(9,2) m"),
         NULL, NULL, NULL);
    task(fix,
         put(fix, "g", "{l: 1, d: 2, m: 3}",
             "SELECT 8::BIGINT l, 2.5::DOUBLE d, 2.25::DECIMAL(12,2) m"),
         NULL, NULL, NULL);
    expect(fix, "{'l': 7, 'd': 1.5, 'm': 1.25} {'l': 8, 'd': 2.5, 'm': 2.25}");
    open_table(fix, SCHEMA(0, FIELD(1, "l", INT)), NULL);
    expect_error(fix, KN_E_CORRUPT, "BIGINT in the file cannot be read as INTEGER");
}

static void nested_fields_are_renamed_added_and_dropped_at_any_depth(void **state)
{
    Fixture *fix = *state;
    open_table(
        fix,
        SCHEMA(
            0,
            FIELD(
                1, "st",
                "{\"type\":\"struct\",\"fields\":[" FIELD(3, "y", LONG) "," FIELD(
                    9, "new",
                    INT) "," FIELD(2, "x",
                                   INT) "]}") "," FIELD(4, "li",
                                                        "{\"type\":\"list\",\"element-id\":5,"
                                                        "\"element-required\":false,"
                                                        "\"element\":{\"type\":\"struct\","
                                                        "\"fields\":[" FIELD(
                                                            6, "q",
                                                            INT) "]}}") "," FIELD(10, "mp",
                                                                                  "{\"type\":"
                                                                                  "\"map\",\"key-"
                                                                                  "id\":11,\"key\":"
                                                                                  "\"string\","
                                                                                  "\"value-id\":12,"
                                                                                  "\"value-"
                                                                                  "required\":"
                                                                                  "false,"
                                                                                  "\"value\":"
                                                                                  "\"long\"}")),
        NULL);
    task(fix,
         put(fix, "f",
             "{st: {__duckdb_field_id: 1, a: 2, b: 3, gone: 7}, li: {__duckdb_field_id: 4, "
             "element: {__duckdb_field_id: 5, p: 6}}, mp: {__duckdb_field_id: 10, key: 11, value: "
             "12}}",
             "SELECT {'a': 1::INT, 'b': 2::INT, 'gone': 3::INT} st, [{'p': 5::INT}, NULL] li, "
             "MAP {'k': 9::INT} mp UNION ALL SELECT NULL, NULL, NULL"),
         NULL, NULL, NULL);
    expect(fix, "{'st': {'y': 2, 'new': NULL, 'x': 1}, 'li': [{'q': 5}, NULL], 'mp': {k=9}} "
                "{'st': NULL, 'li': NULL, 'mp': NULL}");
}

static void an_absent_column_takes_its_initial_default(void **state)
{
    Fixture *fix = *state;
    open_table(fix,
               SCHEMA(0, FIELD(1, "a", INT) ",{\"id\":2,\"name\":\"b\",\"required\":true,\"type\":"
                                            "\"string\",\"initial-default\":\"it's\"}"),
               NULL);
    task(fix, put(fix, "f", "{a: 1}", "SELECT 1::INT a"), NULL, NULL, NULL);
    expect(fix, "{'a': 1, 'b': 'it\\'s'}");
}

#define DEFAULTED(id, name, type, dflt)                                                            \
    "{\"id\":" #id ",\"name\":\"" name "\",\"required\":false,\"type\":" type                      \
    ",\"initial-default\":" dflt "}"
#define LIST(id, type)                                                                             \
    "{\"type\":\"list\",\"element-id\":" #id ",\"element-required\":false,\"element\":" type "}"
#define STRUCT(fields) "{\"type\":\"struct\",\"fields\":[" fields "]}"
#define MAP                                                                                        \
    "{\"type\":\"map\",\"key-id\":20,\"key\":\"string\",\"value-id\":21,\"value\":" LIST(          \
        22, INT) ",\"value-required\":false}"

static void nested_defaults_are_read_as_their_json(void **state)
{
    static const struct {
        const char *type, *json, *want;
    } cases[] = {
        {LIST(10, INT), "[1, null, 3]", "[1, NULL, 3]"},
        {LIST(10, LIST(11, STRING)), "[[\"a\"], [], null]", "[[a], [], NULL]"},
        {LIST(10, INT), "[]", "[]"},
        {MAP, "{\"keys\":[\"a\",\"b\"],\"values\":[[1],null]}", "{a=[1], b=NULL}"},
        {MAP, "{\"keys\":[],\"values\":[]}", "{}"},
        {STRUCT(DEFAULTED(10, "x", INT, "7") "," FIELD(11, "y", INT)), "{}", "{'x': 7, 'y': NULL}"},
        {STRUCT(DEFAULTED(10, "x", INT, "7") "," FIELD(11, "y", INT)), "{\"10\":8,\"11\":9}",
         "{'x': 8, 'y': 9}"},
        {STRUCT(DEFAULTED(10, "x", LIST(11, INT), "[4]")), "null", "NULL"},
        {LIST(10, STRUCT(DEFAULTED(11, "x", INT, "7"))), "[{}, {\"11\":1}]",
         "[{'x': 7}, {'x': 1}]"},
    };
    Fixture *fix = *state;

    task(fix, put(fix, "f", "{a: 1}", "SELECT 1::INT a"), NULL, NULL, NULL);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char schema[2048], want[256];
        (void)snprintf(schema, sizeof(schema),
                       "{\"type\":\"struct\",\"schema-id\":0,\"fields\":[" FIELD(
                           1, "a", INT) ",{\"id\":2,\"name\":\"b\",\"required\":false,\"type\":%s,"
                                        "\"initial-default\":%s}]}",
                       cases[i].type, cases[i].json);
        (void)snprintf(want, sizeof(want), "{'a': 1, 'b': %s}", cases[i].want);
        open_table(fix, schema, NULL);
        expect(fix, want);
    }
}

static void nested_defaults_of_another_shape_are_corrupt(void **state)
{
    static const char *const cases[][2] = {
        {LIST(10, INT), "{}"},
        {LIST(10, INT), "[\"x\"]"},
        {MAP, "[]"},
        {MAP, "{\"keys\":[\"a\"],\"values\":[]}"},
        {MAP, "{\"keys\":[null],\"values\":[null]}"},
        {STRUCT(FIELD(10, "x", INT)), "[]"},
        {STRUCT("{\"id\":10,\"name\":\"x\",\"required\":true,\"type\":\"int\"}"), "{}"},
    };
    Fixture *fix = *state;

    task(fix, put(fix, "f", "{a: 1}", "SELECT 1::INT a"), NULL, NULL, NULL);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char schema[2048];
        (void)snprintf(schema, sizeof(schema),
                       "{\"type\":\"struct\",\"schema-id\":0,\"fields\":[" FIELD(
                           1, "a", INT) ",{\"id\":2,\"name\":\"b\",\"required\":false,\"type\":%s,"
                                        "\"initial-default\":%s}]}",
                       cases[i][0], cases[i][1]);
        open_table(fix, schema, NULL);
        expect_error(fix, KN_E_CORRUPT, "default of field 'b' (id 2)");
    }
}

static void a_partition_value_stands_in_for_an_absent_field_of_a_struct(void **state)
{
    Fixture *fix = *state;
    open_table(fix, SCHEMA(0, FIELD(1, "st", STRUCT(FIELD(3, "a", INT) "," FIELD(2, "p", STRING)))),
               NULL);
    static const KnValue x = {.kind = KN_TYPE_STRING, .bytes = {"x", 1}};
    static const KnValue y = {.kind = KN_TYPE_STRING, .bytes = {"y", 1}};
    KnManifestEntry *one = put(fix, "f", "{st: {__duckdb_field_id: 1, a: 3}}",
                               "SELECT {'a': 1::INT} st UNION ALL SELECT NULL");
    KnManifestEntry *two =
        put(fix, "g", "{st: {__duckdb_field_id: 1, a: 3}}", "SELECT {'a': 2::INT} st");
    one->file.partition = &x;
    two->file.partition = &y;
    for (size_t i = 0; i < 2; i++) {
        fix->entries[i]->file.spec_id = 1;
        fix->entries[i]->file.n_partition = 1;
        task(fix, fix->entries[i], NULL, NULL, NULL);
    }
    expect(fix, "{'st': {'a': 1, 'p': x}} {'st': NULL} {'st': {'a': 2, 'p': y}}");
}

static void an_absent_required_column_is_corrupt(void **state)
{
    Fixture *fix = *state;
    open_table(fix,
               SCHEMA(0, FIELD(1, "a", INT) ",{\"id\":2,\"name\":\"b\",\"required\":true,\"type\":"
                                            "\"string\"}"),
               NULL);
    task(fix, put(fix, "f", "{a: 1}", "SELECT 1::INT a"), NULL, NULL, NULL);
    expect_error(fix, KN_E_CORRUPT, "field 'b' (id 2): is required");
}

static void a_partition_value_stands_in_for_an_absent_column_only(void **state)
{
    Fixture *fix = *state;
    open_table(fix, SCHEMA(0, FIELD(1, "a", INT) "," FIELD(2, "p", STRING)), NULL);
    static const KnValue x = {.kind = KN_TYPE_STRING, .bytes = {"x", 1}};
    static const KnValue null = {.null = true, .kind = KN_TYPE_STRING};
    KnManifestEntry *absent = put(fix, "f", "{a: 1}", "SELECT 1::INT a");
    KnManifestEntry *nulled = put(fix, "g", "{a: 1}", "SELECT 2::INT a");
    KnManifestEntry *present = put(fix, "h", "{a: 1, p: 2}", "SELECT 3::INT a, 'own' p");
    absent->file.partition = present->file.partition = &x;
    nulled->file.partition = &null;
    for (size_t i = 0; i < 3; i++) {
        fix->entries[i]->file.spec_id = 1;
        fix->entries[i]->file.n_partition = 1;
        task(fix, fix->entries[i], NULL, NULL, NULL);
    }
    expect(fix, "{'a': 1, 'p': x} {'a': 2, 'p': NULL} {'a': 3, 'p': own}");
}

static void files_without_ids_need_a_name_mapping(void **state)
{
    Fixture *fix = *state;
    static const char schema[] =
        SCHEMA(0, FIELD(1, "renamed", INT) "," FIELD(
                      2, "st", "{\"type\":\"struct\",\"fields\":[" FIELD(3, "y", INT) "]}"));
    open_table(fix, schema, NULL);
    task(fix, put(fix, "f", NULL, "SELECT 1::INT a, {'x': 2::INT} st, 3::INT other"), NULL, NULL,
         NULL);
    expect_error(fix, KN_E_CORRUPT, "no field ids");
    open_table(fix, schema,
               "{\"schema.name-mapping.default\":\"[{\\\"field-id\\\":1,\\\"names\\\":[\\\"renamed"
               "\\\",\\\"a\\\"]},{\\\"field-id\\\":2,\\\"names\\\":[\\\"st\\\"],\\\"fields\\\":[{"
               "\\\"field-id\\\":3,\\\"names\\\":[\\\"x\\\"]}]}]\"}");
    expect(fix, "{'renamed': 1, 'st': {'y': 2}}");
}

static void names_that_differ_in_case_only_stay_apart(void **state)
{
    Fixture *fix = *state;
    open_table(fix, SCHEMA(0, FIELD(1, "v", INT) "," FIELD(2, "w", INT)), NULL);
    task(fix,
         put(fix, "f", "{a: 1, \"file_row_number\": 2}",
             "SELECT 1::INT a, 5::INT "
             "file_row_number"),
         NULL, NULL, NULL);
    KnReadOptions opts = {.with_position = true};
    expect_with(fix, &opts, "{'v': 1, 'w': 5, '_task': 0, '_pos': 0}");
}

/* ---- deletes ---- */

static void position_deletes_match_raw_paths_and_file_positions(void **state)
{
    Fixture *fix = *state;
    open_table(fix, SCHEMA(0, FIELD(1, "a", INT)), NULL);
    KnManifestEntry *f = put(fix, "f", "{a: 1}", "SELECT range::INT a FROM range(5)");
    KnManifestEntry *g = put(fix, "g", "{a: 1}", "SELECT (range + 10)::INT a FROM range(3)");
    g->file.path = kn_arena_printf(fix->arena, "file://%s", g->file.path);
    KnManifestEntry *p = positions(
        fix, "p",
        kn_arena_printf(fix->arena,
                        "SELECT * FROM (VALUES ('%s', 1::BIGINT), ('%s', 3), ('%s', 3), "
                        "('%s/g.parquet', 0), ('file://%s/g.parquet', 2)) t(file_path, pos)",
                        f->file.path, f->file.path, f->file.path, fix->dir, fix->dir));
    task(fix, f, p, NULL, NULL);
    task(fix, g, p, NULL, NULL);
    expect(fix, "{'a': 0} {'a': 2} {'a': 4} {'a': 10} {'a': 11}");
    KnReadOptions opts = {.ignore_deletes = true, .with_position = true};
    expect_with(fix, &opts,
                "{'a': 0, '_task': 0, '_pos': 0} {'a': 1, '_task': 0, '_pos': 1} "
                "{'a': 2, '_task': 0, '_pos': 2} {'a': 3, '_task': 0, '_pos': 3} "
                "{'a': 4, '_task': 0, '_pos': 4} {'a': 10, '_task': 1, '_pos': 0} "
                "{'a': 11, '_task': 1, '_pos': 1} {'a': 12, '_task': 1, '_pos': 2}");
}

static void a_position_delete_applies_where_the_plan_says(void **state)
{
    Fixture *fix = *state;
    open_table(fix, SCHEMA(0, FIELD(1, "a", INT)), NULL);
    KnManifestEntry *f = put(fix, "f", "{a: 1}", "SELECT range::INT a FROM range(2)");
    KnManifestEntry *g = put(fix, "g", "{a: 1}", "SELECT (range + 10)::INT a FROM range(2)");
    KnManifestEntry *p = positions(fix, "p",
                                   kn_arena_printf(fix->arena,
                                                   "SELECT * FROM (VALUES ('%s', 0::BIGINT), "
                                                   "('%s', 0)) t(file_path, pos)",
                                                   f->file.path, g->file.path));
    KnManifestEntry *q = positions(
        fix, "q",
        kn_arena_printf(fix->arena, "SELECT '%s' AS file_path, 1::BIGINT AS pos", g->file.path));
    task(fix, f, p, NULL, NULL);
    task(fix, g, q, NULL, NULL); /* p names g too, and does not apply */
    expect(fix, "{'a': 1} {'a': 10}");
}

/* Length, magic, one key 0 with one array container {1, 3}, CRC-32. */
static const unsigned char vector[] = {
    0x00, 0x00, 0x00, 0x24, 0xd1, 0xd3, 0x39, 0x64, 0x01, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
    0x00, 0x00, 0x00, 0x00, 0x00, 0x3a, 0x30, 0x00, 0x00, 0x01, 0x00, 0x00, 0x00, 0x00, 0x00,
    0x01, 0x00, 0x10, 0x00, 0x00, 0x00, 0x01, 0x00, 0x03, 0x00, 0x68, 0x34, 0x97, 0xa9};

static void a_deletion_vector_removes_its_positions(void **state)
{
    Fixture *fix = *state;
    open_table(fix, SCHEMA(0, FIELD(1, "a", INT)), NULL);
    KnManifestEntry *f = put(fix, "f", "{a: 1}", "SELECT range::INT a FROM range(5)");
    unsigned char bytes[4 + sizeof(vector)] = "PFA1";
    memcpy(bytes + 4, vector, sizeof(vector));
    const char *path = kn_arena_printf(fix->arena, "%s/v.puffin", fix->dir);
    assert_int_equal(
        kn_io_write(fix->io, kn_str(path), bytes, sizeof(bytes), KN_IO_CREATE, &fix->err), KN_OK);
    KnManifestEntry v = {.file = {.content = KN_CONTENT_POSITION_DELETES,
                                  .format = KN_FORMAT_PUFFIN,
                                  .path = path,
                                  .record_count = 2,
                                  .referenced_data_file = f->file.path,
                                  .content_offset = 4,
                                  .content_size = sizeof(vector)}};
    task(fix, f, &v, NULL, NULL);
    expect(fix, "{'a': 0} {'a': 2} {'a': 4}");
    v.file.record_count = 3;
    expect_error(fix, KN_E_CORRUPT, "holds 2 positions, its manifest says 3");
    v.file.content_size--;
    expect_error(fix, KN_E_CORRUPT, "deletion vector");
    v.file.content_size = 1 << 20;
    expect_error(fix, KN_E_CORRUPT, "v.puffin");
}

static void equal_keys_are_null_and_nan_but_not_both_zeros(void **state)
{
    Fixture *fix = *state;
    open_table(fix, SCHEMA(0, FIELD(1, "a", INT) "," FIELD(2, "d", DOUBLE)), NULL);
    KnManifestEntry *f = put(fix, "f", "{a: 1, d: 2}",
                             "SELECT * FROM (VALUES (1::INT, NULL::DOUBLE), (2, 'NaN'), (3, 0.0), "
                             "(4, '-0.0'), (5, 1.5)) t(a, d)");
    KnManifestEntry *e =
        equality(fix, "e", 2, "{d: 2}",
                 "SELECT * FROM (VALUES (NULL::DOUBLE), ('NaN'), ('-0.0'), (99)) t(d)");
    task(fix, f, e, NULL, NULL);
    expect(fix, "{'a': 3, 'd': 0.0} {'a': 5, 'd': 1.5}");
}

static void each_file_has_its_own_first_equality_delete(void **state)
{
    Fixture *fix = *state;
    open_table(fix, SCHEMA(0, FIELD(1, "a", INT)), NULL);
    static const char rows[] = "SELECT range::INT a FROM range(4)";
    KnManifestEntry *f = put(fix, "f", "{a: 1}", rows);
    KnManifestEntry *g = put(fix, "g", "{a: 1}", rows);
    KnManifestEntry *h = put(fix, "h", "{a: 1}", rows);
    KnManifestEntry *e0 = equality(fix, "e0", 1, "{a: 1}", "SELECT 0::INT a");
    KnManifestEntry *e1 = equality(fix, "e1", 1, "{a: 1}", "SELECT 1::INT a");
    KnManifestEntry *e2 = equality(fix, "e2", 1, "{a: 1}", "SELECT 2::INT a");
    task(fix, f, e0, e1, e2);
    task(fix, g, e2, NULL, NULL);
    task(fix, h, e0, NULL, NULL); /* no tail of f's list */
    KnReadOptions opts = {.with_position = true};
    expect_with(fix, &opts,
                "{'a': 3, '_task': 0, '_pos': 3} {'a': 0, '_task': 1, '_pos': 0} "
                "{'a': 1, '_task': 1, '_pos': 1} {'a': 3, '_task': 1, '_pos': 3} "
                "{'a': 1, '_task': 2, '_pos': 1} {'a': 2, '_task': 2, '_pos': 2} "
                "{'a': 3, '_task': 2, '_pos': 3}");
}

static void a_key_deleted_twice_is_gone_for_old_and_new_files(void **state)
{
    Fixture *fix = *state;
    open_table(fix, SCHEMA(0, FIELD(1, "a", INT)), NULL);
    KnManifestEntry *f = put(fix, "f", "{a: 1}", "SELECT 1::INT a");
    KnManifestEntry *g = put(fix, "g", "{a: 1}", "SELECT 1::INT a");
    KnManifestEntry *h = put(fix, "h", "{a: 1}", "SELECT 1::INT a");
    KnManifestEntry *e0 = equality(fix, "e0", 1, "{a: 1}", "SELECT 1::INT a");
    KnManifestEntry *e1 = equality(fix, "e1", 1, "{a: 1}", "SELECT 1::INT a");
    task(fix, f, e0, e1, NULL);
    task(fix, g, e1, NULL, NULL);
    task(fix, h, NULL, NULL, NULL);
    KnReadOptions opts = {.with_position = true};
    expect_with(fix, &opts, "{'a': 1, '_task': 2, '_pos': 0}");
}

static void two_sets_of_columns_both_delete(void **state)
{
    Fixture *fix = *state;
    open_table(fix, SCHEMA(0, FIELD(1, "a", INT) "," FIELD(2, "b", STRING)), NULL);
    KnManifestEntry *f = put(fix, "f", "{a: 1, b: 2}",
                             "SELECT * FROM (VALUES (1::INT, 'x'), (2, 'y'), (3, 'z')) t(a, b)");
    KnManifestEntry *ea =
        equality(fix, "ea", 1, "{a: 1, extra: 2}", "SELECT 1::LONG a, 'z' AS extra");
    KnManifestEntry *eb = equality(fix, "eb", 2, "{b: 2}", "SELECT 'y' AS b");
    KnManifestEntry *p = positions(
        fix, "p",
        kn_arena_printf(fix->arena, "SELECT '%s' AS file_path, 9::BIGINT AS pos", f->file.path));
    open_table(fix, SCHEMA(0, FIELD(1, "a", LONG) "," FIELD(2, "b", STRING)), NULL);
    task(fix, f, ea, eb, p);
    expect(fix, "{'a': 3, 'b': z}");
}

static void a_dropped_column_still_deletes(void **state)
{
    Fixture *fix = *state;
    open_table(fix,
               SCHEMA(0, FIELD(1, "a", INT)) "," SCHEMA(
                   1, FIELD(1, "a", INT) ",{\"id\":7,\"name\":\"gone\",\"required\":true,\"type\":"
                                         "\"string\"}"),
               NULL);
    KnManifestEntry *f = put(fix, "f", "{a: 1, gone: 7}",
                             "SELECT * FROM (VALUES (1::INT, 'x'), (2, 'y')) t(a, gone)");
    KnManifestEntry *g = put(fix, "g", "{a: 1}", "SELECT 3::INT a");
    KnManifestEntry *e = equality(fix, "e", 7, "{gone: 7}", "SELECT 'x' AS gone");
    task(fix, f, e, NULL, NULL);
    task(fix, g, e, NULL, NULL);
    expect(fix, "{'a': 2} {'a': 3}");
}

static void a_field_inside_a_struct_may_be_the_key(void **state)
{
    Fixture *fix = *state;
    open_table(fix,
               SCHEMA(0, FIELD(1, "a", INT) "," FIELD(
                             2, "st", "{\"type\":\"struct\",\"fields\":[" FIELD(3, "k", INT) "]}")),
               NULL);
    KnManifestEntry *f =
        put(fix, "f", "{a: 1, st: {__duckdb_field_id: 2, k: 3}}",
            "SELECT * FROM (VALUES (1::INT, {'k': 5::INT}), (2, {'k': 6}), (3, NULL)) t(a, st)");
    KnManifestEntry *e =
        equality(fix, "e", 3, "{st: {__duckdb_field_id: 2, k: 3}}", "SELECT {'k': 5::INT} AS st");
    task(fix, f, e, NULL, NULL);
    expect(fix, "{'a': 2, 'st': {'k': 6}} {'a': 3, 'st': NULL}");
}

/* ---- options, refusals ---- */

static void lineage_comes_from_the_file_or_from_its_base(void **state)
{
    Fixture *fix = *state;
    open_table(fix, SCHEMA(0, FIELD(1, "a", INT)), NULL);
    KnManifestEntry *f = put(fix, "f", "{a: 1}", "SELECT range::INT a FROM range(2)");
    KnManifestEntry *g =
        put(fix, "g", "{a: 1, _row_id: 2147483540, _last_updated_sequence_number: 2147483539}",
            "SELECT * FROM (VALUES (5::INT, 77::BIGINT, 3::BIGINT), (6, NULL, NULL)) "
            "t(a, _row_id, _last_updated_sequence_number)");
    f->file.first_row_id = 100;
    g->file.first_row_id = 200;
    g->sequence_number = 8;
    task(fix, f, NULL, NULL, NULL);
    task(fix, g, NULL, NULL, NULL);
    KnReadOptions opts = {.with_lineage = true};
    expect_with(fix, &opts,
                "{'a': 0, '_row_id': 100, '_last_updated_sequence_number': 1} "
                "{'a': 1, '_row_id': 101, '_last_updated_sequence_number': 1} "
                "{'a': 5, '_row_id': 77, '_last_updated_sequence_number': 3} "
                "{'a': 6, '_row_id': 201, '_last_updated_sequence_number': 8}");
}

static void a_filter_may_use_columns_that_are_not_read(void **state)
{
    Fixture *fix = *state;
    open_table(fix, SCHEMA(0, FIELD(1, "a", INT) "," FIELD(2, "b", STRING)), NULL);
    task(fix,
         put(fix, "f", "{x: 1, y: 2}", "SELECT * FROM (VALUES (1::INT, 'p'), (2, 'q')) t(x, y)"),
         NULL, NULL, NULL);
    const KnSchema *schema = kn_metadata_schema(fix->tbl->md);
    KnReadOptions opts = {0};
    KnSchema *projected = NULL;
    static const char *const names[] = {"a"};
    assert_int_equal(kn_schema_project(fix->arena, schema, names, 1, &projected, &fix->err), KN_OK);
    assert_int_equal(
        kn_expr_parse(fix->arena, KN_STR_LIT("b = 'q'"), schema, &opts.filter, &fix->err), KN_OK);
    opts.schema = projected;
    expect_with(fix, &opts, "{'a': 2}");
}

static void no_task_gives_the_columns_and_no_row(void **state)
{
    Fixture *fix = *state;
    open_table(fix, SCHEMA(0, FIELD(1, "a", INT)), NULL);
    KnReadOptions opts = {.with_position = true, .with_lineage = true};
    assert_int_equal(read_as(fix, &opts,
                             "SELECT count(*) || '/' || count(a) || count(_row_id) || "
                             "count(_task) || count(_pos) FROM ({scan})"),
                     KN_OK);
    assert_string_equal(fix->out.data, "0/0000");
}

static void a_scan_streams_all_groups_in_order(void **state)
{
    Fixture *fix = *state;
    open_table(fix, SCHEMA(0, FIELD(1, "a", INT)), NULL);
    task(fix, put(fix, "f", "{a: 1}", "SELECT range::INT a FROM range(5000)"), NULL, NULL, NULL);
    task(fix, put(fix, "g", "{b: 1}", "SELECT (range + 5000)::INT b FROM range(5000)"), NULL, NULL,
         NULL);
    KnPlan plan = {.tbl = fix->tbl, .tasks = fix->tasks, .n_tasks = fix->n_tasks};
    KnReadOptions opts = {.schema = kn_metadata_schema(fix->tbl->md)};
    KnScan *scan = NULL;
    assert_int_equal(kn_scan_open(&plan, fix->ses, &opts, &scan, &fix->err), KN_OK);
    int32_t next = 0;
    for (;;) {
        KnBatch *batch = NULL;
        assert_int_equal(kn_scan_next(scan, &batch, &fix->err), KN_OK);
        if (!batch)
            break;
        KnVector vec = kn_batch_vector(batch, 0);
        for (size_t i = 0; i < kn_batch_rows(batch); i++)
            assert_int_equal(((const int32_t *)vec.data)[i], next++);
        kn_batch_unref(batch);
    }
    assert_int_equal(next, 10000);
    kn_scan_close(scan);
}

static void temporary_tables_are_dropped(void **state)
{
    Fixture *fix = *state;
    open_table(fix, SCHEMA(0, FIELD(1, "a", INT)), NULL);
    KnManifestEntry *f = put(fix, "f", "{a: 1}", "SELECT 1::INT a");
    task(fix, f, equality(fix, "e", 1, "{a: 1}", "SELECT 1::INT a"),
         positions(fix, "p", "SELECT 'x' AS file_path, 1::BIGINT AS pos"), NULL);
    expect(fix, "");
    int64_t left = -1;
    assert_int_equal(kn_session_query_i64(fix->ses,
                                          "SELECT count(*) FROM duckdb_tables() WHERE temporary",
                                          &left, &fix->err),
                     KN_OK);
    assert_int_equal(left, 0);
}

static void what_is_not_done_is_refused_by_name(void **state)
{
    Fixture *fix = *state;
    open_table(fix, SCHEMA(0, FIELD(1, "a", INT)), NULL);
    KnManifestEntry *f = put(fix, "f", "{a: 1}", "SELECT 1::INT a");
    task(fix, f, NULL, NULL, NULL);
    f->file.format = KN_FORMAT_ORC;
    expect_error(fix, KN_E_UNSUPPORTED, "ORC data files");
    f->file.format = KN_FORMAT_PUFFIN;
    expect_error(fix, KN_E_UNSUPPORTED, "Puffin data files");
    f->file.format = KN_FORMAT_PARQUET;
    f->file.key_metadata = KN_STR_LIT("k");
    expect_error(fix, KN_E_UNSUPPORTED, "encrypt");
    f->file.key_metadata = (KnStr){0};
    f->file.record_count = 2;
    expect_error(fix, KN_E_CORRUPT, "has 1 rows, its manifest says 2");
    f->file.path = "/etc/passwd";
    expect_error(fix, KN_E_REFUSED, "/etc/passwd");
    f->file.path = kn_arena_printf(fix->arena, "%s/none.parquet", fix->dir);
    expect_error(fix, KN_E_NOTFOUND, "none.parquet");
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(columns_are_found_by_id_and_not_by_name),
        CASE(promoted_columns_are_cast),
        CASE(nested_fields_are_renamed_added_and_dropped_at_any_depth),
        CASE(an_absent_column_takes_its_initial_default),
        CASE(nested_defaults_are_read_as_their_json),
        CASE(nested_defaults_of_another_shape_are_corrupt),
        CASE(a_partition_value_stands_in_for_an_absent_field_of_a_struct),
        CASE(an_absent_required_column_is_corrupt),
        CASE(a_partition_value_stands_in_for_an_absent_column_only),
        CASE(files_without_ids_need_a_name_mapping),
        CASE(names_that_differ_in_case_only_stay_apart),
        CASE(position_deletes_match_raw_paths_and_file_positions),
        CASE(a_position_delete_applies_where_the_plan_says),
        CASE(a_deletion_vector_removes_its_positions),
        CASE(equal_keys_are_null_and_nan_but_not_both_zeros),
        CASE(each_file_has_its_own_first_equality_delete),
        CASE(a_key_deleted_twice_is_gone_for_old_and_new_files),
        CASE(two_sets_of_columns_both_delete),
        CASE(a_dropped_column_still_deletes),
        CASE(a_field_inside_a_struct_may_be_the_key),
        CASE(lineage_comes_from_the_file_or_from_its_base),
        CASE(a_filter_may_use_columns_that_are_not_read),
        CASE(no_task_gives_the_columns_and_no_row),
        CASE(a_scan_streams_all_groups_in_order),
        CASE(temporary_tables_are_dropped),
        CASE(what_is_not_done_is_refused_by_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
