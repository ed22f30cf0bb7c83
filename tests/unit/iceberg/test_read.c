/* SPDX-License-Identifier: Apache-2.0 */
/* test_read.c - reading: columns by id, lineage, filters, refusals. */
#include "unit/iceberg/read_support.h"

/* ---- columns ---- */

static void columns_are_found_by_id_and_not_by_name(void **state)
{
    Fixture *fix = *state;
    fixture_open_table(
        fix, SCHEMA(0, FIELD(2, "a", INT) "," FIELD(1, "b", INT) "," FIELD(4, "c", INT)), NULL);
    fixture_task(
        fix, fixture_put(fix, "f", "{a: 1, b: 2, c: 3}", "SELECT 10::INT a, 20::INT b, 30::INT c"),
        NULL, NULL, NULL);
    expect_rows(fix, "{'a': 20, 'b': 10, 'c': NULL}");
}

static void promoted_columns_are_cast(void **state)
{
    Fixture *fix = *state;
    fixture_open_table(fix,
                       SCHEMA(0, FIELD(1, "l", LONG) "," FIELD(2, "d", DOUBLE) "," FIELD(
                                     3, "m", "\"decimal(12,2)\"")),
                       NULL);
    fixture_task(fix,
                 fixture_put(fix, "f", "{l: 1, d: 2, m: 3}",
                             "SELECT 7::INT l, 1.5::FLOAT d, 1.25::DECIMAL(9,2) m"),
                 NULL, NULL, NULL);
    fixture_task(fix,
                 fixture_put(fix, "g", "{l: 1, d: 2, m: 3}",
                             "SELECT 8::BIGINT l, 2.5::DOUBLE d, 2.25::DECIMAL(12,2) m"),
                 NULL, NULL, NULL);
    expect_rows(fix, "{'l': 7, 'd': 1.5, 'm': 1.25} {'l': 8, 'd': 2.5, 'm': 2.25}");
    fixture_open_table(fix, SCHEMA(0, FIELD(1, "l", INT)), NULL);
    expect_error(fix, KN_E_CORRUPT, "BIGINT in the file cannot be read as INTEGER");
}

static void nested_fields_are_renamed_added_and_dropped_at_any_depth(void **state)
{
    Fixture *fix = *state;
    fixture_open_table(
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
    fixture_task(
        fix,
        fixture_put(
            fix, "f",
            "{st: {__duckdb_field_id: 1, a: 2, b: 3, gone: 7}, li: {__duckdb_field_id: 4, "
            "element: {__duckdb_field_id: 5, p: 6}}, mp: {__duckdb_field_id: 10, key: 11, value: "
            "12}}",
            "SELECT {'a': 1::INT, 'b': 2::INT, 'gone': 3::INT} st, [{'p': 5::INT}, NULL] li, "
            "MAP {'k': 9::INT} mp UNION ALL SELECT NULL, NULL, NULL"),
        NULL, NULL, NULL);
    expect_rows(fix, "{'st': {'y': 2, 'new': NULL, 'x': 1}, 'li': [{'q': 5}, NULL], 'mp': {k=9}} "
                     "{'st': NULL, 'li': NULL, 'mp': NULL}");
}

static void an_absent_column_takes_its_initial_default(void **state)
{
    Fixture *fix = *state;
    fixture_open_table(
        fix,
        SCHEMA(0, FIELD(1, "a", INT) ",{\"id\":2,\"name\":\"b\",\"required\":true,\"type\":"
                                     "\"string\",\"initial-default\":\"it's\"}"),
        NULL);
    fixture_task(fix, fixture_put(fix, "f", "{a: 1}", "SELECT 1::INT a"), NULL, NULL, NULL);
    expect_rows(fix, "{'a': 1, 'b': 'it\\'s'}");
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

    fixture_task(fix, fixture_put(fix, "f", "{a: 1}", "SELECT 1::INT a"), NULL, NULL, NULL);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char schema[2048], want[256];
        (void)snprintf(schema, sizeof(schema),
                       "{\"type\":\"struct\",\"schema-id\":0,\"fields\":[" FIELD(
                           1, "a", INT) ",{\"id\":2,\"name\":\"b\",\"required\":false,\"type\":%s,"
                                        "\"initial-default\":%s}]}",
                       cases[i].type, cases[i].json);
        (void)snprintf(want, sizeof(want), "{'a': 1, 'b': %s}", cases[i].want);
        fixture_open_table(fix, schema, NULL);
        expect_rows(fix, want);
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

    fixture_task(fix, fixture_put(fix, "f", "{a: 1}", "SELECT 1::INT a"), NULL, NULL, NULL);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char schema[2048];
        (void)snprintf(schema, sizeof(schema),
                       "{\"type\":\"struct\",\"schema-id\":0,\"fields\":[" FIELD(
                           1, "a", INT) ",{\"id\":2,\"name\":\"b\",\"required\":false,\"type\":%s,"
                                        "\"initial-default\":%s}]}",
                       cases[i][0], cases[i][1]);
        fixture_open_table(fix, schema, NULL);
        expect_error(fix, KN_E_CORRUPT, "default of field 'b' (id 2)");
    }
}

static void a_partition_value_stands_in_for_an_absent_field_of_a_struct(void **state)
{
    Fixture *fix = *state;
    fixture_open_table(
        fix, SCHEMA(0, FIELD(1, "st", STRUCT(FIELD(3, "a", INT) "," FIELD(2, "p", STRING)))), NULL);
    static const KnValue x = {.kind = KN_TYPE_STRING, .bytes = {"x", 1}};
    static const KnValue y = {.kind = KN_TYPE_STRING, .bytes = {"y", 1}};
    KnManifestEntry *one = fixture_put(fix, "f", "{st: {__duckdb_field_id: 1, a: 3}}",
                                       "SELECT {'a': 1::INT} st UNION ALL SELECT NULL");
    KnManifestEntry *two =
        fixture_put(fix, "g", "{st: {__duckdb_field_id: 1, a: 3}}", "SELECT {'a': 2::INT} st");
    one->file.partition = &x;
    two->file.partition = &y;
    for (size_t i = 0; i < 2; i++) {
        fix->entries[i]->file.spec_id = 1;
        fix->entries[i]->file.n_partition = 1;
        fixture_task(fix, fix->entries[i], NULL, NULL, NULL);
    }
    expect_rows(fix, "{'st': {'a': 1, 'p': x}} {'st': NULL} {'st': {'a': 2, 'p': y}}");
}

static void an_absent_required_column_is_corrupt(void **state)
{
    Fixture *fix = *state;
    fixture_open_table(
        fix,
        SCHEMA(0, FIELD(1, "a", INT) ",{\"id\":2,\"name\":\"b\",\"required\":true,\"type\":"
                                     "\"string\"}"),
        NULL);
    fixture_task(fix, fixture_put(fix, "f", "{a: 1}", "SELECT 1::INT a"), NULL, NULL, NULL);
    expect_error(fix, KN_E_CORRUPT, "field 'b' (id 2): is required");
}

static void a_partition_value_stands_in_for_an_absent_column_only(void **state)
{
    Fixture *fix = *state;
    fixture_open_table(fix, SCHEMA(0, FIELD(1, "a", INT) "," FIELD(2, "p", STRING)), NULL);
    static const KnValue x = {.kind = KN_TYPE_STRING, .bytes = {"x", 1}};
    static const KnValue null = {.null = true, .kind = KN_TYPE_STRING};
    KnManifestEntry *absent = fixture_put(fix, "f", "{a: 1}", "SELECT 1::INT a");
    KnManifestEntry *nulled = fixture_put(fix, "g", "{a: 1}", "SELECT 2::INT a");
    KnManifestEntry *present = fixture_put(fix, "h", "{a: 1, p: 2}", "SELECT 3::INT a, 'own' p");
    absent->file.partition = present->file.partition = &x;
    nulled->file.partition = &null;
    for (size_t i = 0; i < 3; i++) {
        fix->entries[i]->file.spec_id = 1;
        fix->entries[i]->file.n_partition = 1;
        fixture_task(fix, fix->entries[i], NULL, NULL, NULL);
    }
    expect_rows(fix, "{'a': 1, 'p': x} {'a': 2, 'p': NULL} {'a': 3, 'p': own}");
}

static void files_without_ids_need_a_name_mapping(void **state)
{
    Fixture *fix = *state;
    static const char schema[] =
        SCHEMA(0, FIELD(1, "renamed", INT) "," FIELD(
                      2, "st", "{\"type\":\"struct\",\"fields\":[" FIELD(3, "y", INT) "]}"));
    fixture_open_table(fix, schema, NULL);
    fixture_task(fix,
                 fixture_put(fix, "f", NULL, "SELECT 1::INT a, {'x': 2::INT} st, 3::INT other"),
                 NULL, NULL, NULL);
    expect_error(fix, KN_E_CORRUPT, "no field ids");
    fixture_open_table(
        fix, schema,
        "{\"schema.name-mapping.default\":\"[{\\\"field-id\\\":1,\\\"names\\\":[\\\"renamed"
        "\\\",\\\"a\\\"]},{\\\"field-id\\\":2,\\\"names\\\":[\\\"st\\\"],\\\"fields\\\":[{"
        "\\\"field-id\\\":3,\\\"names\\\":[\\\"x\\\"]}]}]\"}");
    expect_rows(fix, "{'renamed': 1, 'st': {'y': 2}}");
}

static void names_that_differ_in_case_only_stay_apart(void **state)
{
    Fixture *fix = *state;
    fixture_open_table(fix, SCHEMA(0, FIELD(1, "v", INT) "," FIELD(2, "w", INT)), NULL);
    fixture_task(fix,
                 fixture_put(fix, "f", "{a: 1, \"file_row_number\": 2}",
                             "SELECT 1::INT a, 5::INT "
                             "file_row_number"),
                 NULL, NULL, NULL);
    KnReadOptions opts = {.with_position = true};
    expect_rows_with(fix, &opts, "{'v': 1, 'w': 5, '_task': 0, '_pos': 0}");
}

/* ---- options, refusals ---- */

static void lineage_comes_from_the_file_or_from_its_base(void **state)
{
    Fixture *fix = *state;
    fixture_open_table(fix, SCHEMA(0, FIELD(1, "a", INT)), NULL);
    KnManifestEntry *f = fixture_put(fix, "f", "{a: 1}", "SELECT range::INT a FROM range(2)");
    KnManifestEntry *g = fixture_put(
        fix, "g", "{a: 1, _row_id: 2147483540, _last_updated_sequence_number: 2147483539}",
        "SELECT * FROM (VALUES (5::INT, 77::BIGINT, 3::BIGINT), (6, NULL, NULL)) "
        "t(a, _row_id, _last_updated_sequence_number)");
    f->file.first_row_id = 100;
    g->file.first_row_id = 200;
    g->sequence_number = 8;
    fixture_task(fix, f, NULL, NULL, NULL);
    fixture_task(fix, g, NULL, NULL, NULL);
    KnReadOptions opts = {.with_lineage = true};
    expect_rows_with(fix, &opts,
                     "{'a': 0, '_row_id': 100, '_last_updated_sequence_number': 1} "
                     "{'a': 1, '_row_id': 101, '_last_updated_sequence_number': 1} "
                     "{'a': 5, '_row_id': 77, '_last_updated_sequence_number': 3} "
                     "{'a': 6, '_row_id': 201, '_last_updated_sequence_number': 8}");
}

static void a_filter_may_use_columns_that_are_not_read(void **state)
{
    Fixture *fix = *state;
    fixture_open_table(fix, SCHEMA(0, FIELD(1, "a", INT) "," FIELD(2, "b", STRING)), NULL);
    fixture_task(fix,
                 fixture_put(fix, "f", "{x: 1, y: 2}",
                             "SELECT * FROM (VALUES (1::INT, 'p'), (2, 'q')) t(x, y)"),
                 NULL, NULL, NULL);
    const KnSchema *schema = kn_metadata_schema(fix->tbl->md);
    KnReadOptions opts = {0};
    KnSchema *projected = NULL;
    static const char *const names[] = {"a"};
    assert_int_equal(kn_schema_project(fix->arena, schema, names, 1, &projected, &fix->err), KN_OK);
    assert_int_equal(
        kn_expr_parse(fix->arena, KN_STR_LIT("b = 'q'"), schema, &opts.filter, &fix->err), KN_OK);
    opts.schema = projected;
    expect_rows_with(fix, &opts, "{'a': 2}");
}

static void no_task_gives_the_columns_and_no_row(void **state)
{
    Fixture *fix = *state;
    fixture_open_table(fix, SCHEMA(0, FIELD(1, "a", INT)), NULL);
    KnReadOptions opts = {.with_position = true, .with_lineage = true};
    assert_int_equal(fixture_read(fix, &opts,
                                  "SELECT count(*) || '/' || count(a) || count(_row_id) || "
                                  "count(_task) || count(_pos) FROM ({scan})"),
                     KN_OK);
    assert_string_equal(fix->out.data, "0/0000");
}

static void a_scan_streams_all_groups_in_order(void **state)
{
    Fixture *fix = *state;
    fixture_open_table(fix, SCHEMA(0, FIELD(1, "a", INT)), NULL);
    fixture_task(fix, fixture_put(fix, "f", "{a: 1}", "SELECT range::INT a FROM range(5000)"), NULL,
                 NULL, NULL);
    fixture_task(fix,
                 fixture_put(fix, "g", "{b: 1}", "SELECT (range + 5000)::INT b FROM range(5000)"),
                 NULL, NULL, NULL);
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
    fixture_open_table(fix, SCHEMA(0, FIELD(1, "a", INT)), NULL);
    KnManifestEntry *f = fixture_put(fix, "f", "{a: 1}", "SELECT 1::INT a");
    fixture_task(fix, f, fixture_equality(fix, "e", 1, "{a: 1}", "SELECT 1::INT a"),
                 fixture_positions(fix, "p", "SELECT 'x' AS file_path, 1::BIGINT AS pos"), NULL);
    expect_rows(fix, "");
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
    fixture_open_table(fix, SCHEMA(0, FIELD(1, "a", INT)), NULL);
    KnManifestEntry *f = fixture_put(fix, "f", "{a: 1}", "SELECT 1::INT a");
    fixture_task(fix, f, NULL, NULL, NULL);
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
        CASE(lineage_comes_from_the_file_or_from_its_base),
        CASE(a_filter_may_use_columns_that_are_not_read),
        CASE(no_task_gives_the_columns_and_no_row),
        CASE(a_scan_streams_all_groups_in_order),
        CASE(temporary_tables_are_dropped),
        CASE(what_is_not_done_is_refused_by_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
