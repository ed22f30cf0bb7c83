/* SPDX-License-Identifier: Apache-2.0 */
/* Table names as text, the path policy, and how a snapshot is chosen. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "iceberg/table.h"

typedef struct Fixture {
    KnArena *arena;
    KnFileIO *io;
    KnTable *tbl;
    KnErr err;
} Fixture;

static const char document[] =
    "{\"format-version\":2,\"table-uuid\":\"11111111-2222-3333-4444-555555555555\","
    "\"location\":\"file:///lake/ns/t\",\"last-sequence-number\":3,\"last-updated-ms\":3000,"
    "\"last-column-id\":1,\"current-schema-id\":0,\"schemas\":[{\"type\":\"struct\","
    "\"schema-id\":0,\"fields\":[{\"id\":1,\"name\":\"id\",\"required\":false,\"type\":\"long\"}]"
    "}],\"default-spec-id\":0,\"partition-specs\":[{\"spec-id\":0,\"fields\":[]}],"
    "\"last-partition-id\":999,\"default-sort-order-id\":0,\"sort-orders\":[{\"order-id\":0,"
    "\"fields\":[]}],\"properties\":%s,\"current-snapshot-id\":2,\"snapshots\":["
    "{\"snapshot-id\":1,\"sequence-number\":1,\"timestamp-ms\":1000,\"manifest-list\":\"m1\","
    "\"summary\":{\"operation\":\"append\"}},"
    "{\"snapshot-id\":2,\"sequence-number\":2,\"timestamp-ms\":2000,\"manifest-list\":\"m2\","
    "\"summary\":{\"operation\":\"append\"},\"parent-snapshot-id\":1}],"
    "\"refs\":{\"main\":{\"snapshot-id\":2,\"type\":\"branch\"},"
    "\"old\":{\"snapshot-id\":1,\"type\":\"tag\"}},"
    "\"snapshot-log\":[{\"snapshot-id\":1,\"timestamp-ms\":1000},"
    "{\"snapshot-id\":2,\"timestamp-ms\":2000}],\"metadata-log\":[]}";

static KnTable *open_table(Fixture *fix, const char *properties)
{
    const char *at = strstr(document, "%s");
    const char *text =
        kn_arena_printf(fix->arena, "%.*s%s%s", (int)(at - document), document, properties, at + 2);
    KnMetadata *md = NULL;
    if (kn_metadata_parse(kn_str(text), "test", &md, &fix->err) != KN_OK)
        fail_msg("%s", fix->err.msg);
    return kn_table_new(NULL, NULL, fix->io, md, "/lake/ns/t/metadata/1.metadata.json");
}

static int setup(void **state)
{
    static Fixture fix;
    fix = (Fixture){.arena = kn_arena_new(0)};
    assert_int_equal(kn_io_local_open(&fix.io, &fix.err), KN_OK);
    fix.tbl = open_table(&fix, "{}");
    *state = &fix;
    return 0;
}

static int teardown(void **state)
{
    Fixture *fix = *state;
    kn_table_free(fix->tbl);
    kn_io_close(fix->io);
    kn_arena_free(fix->arena);
    return 0;
}

static void a_name_has_levels_and_a_last_part(void **state)
{
    Fixture *fix = *state;
    KnTableIdent ident;
    assert_int_equal(kn_table_ident_parse(fix->arena, KN_STR_LIT("a.b.c"), &ident, &fix->err),
                     KN_OK);
    assert_int_equal(ident.n_levels, 2);
    assert_string_equal(ident.levels[0], "a");
    assert_string_equal(ident.levels[1], "b");
    assert_string_equal(ident.name, "c");
    assert_string_equal(kn_table_ident_format(fix->arena, &ident), "a.b.c");
}

static void quoted_parts_keep_their_dots(void **state)
{
    Fixture *fix = *state;
    KnTableIdent ident;
    KnStr text = KN_STR_LIT("\"a.b\".\"c\"\"d\"");
    assert_int_equal(kn_table_ident_parse(fix->arena, text, &ident, &fix->err), KN_OK);
    assert_int_equal(ident.n_levels, 1);
    assert_string_equal(ident.levels[0], "a.b");
    assert_string_equal(ident.name, "c\"d");
    assert_string_equal(kn_table_ident_format(fix->arena, &ident), "\"a.b\".\"c\"\"d\"");
}

static void names_that_could_leave_their_folder_are_refused(void **state)
{
    Fixture *fix = *state;
    static const struct {
        KnStr text;
        const char *part;
    } cases[] = {
        {KN_STR_LIT(""), "empty part"},       {KN_STR_LIT("a"), "no namespace"},
        {KN_STR_LIT("a."), "empty part"},     {KN_STR_LIT(".a"), "empty part"},
        {KN_STR_LIT("a..b"), "empty part"},   {KN_STR_LIT("a.b/c"), "'/'"},
        {KN_STR_LIT("a.\"..\""), "'..'"},     {KN_STR_LIT("a.b\0c"), "NUL"},
        {KN_STR_LIT("a.\"b"), "must end"},    {KN_STR_LIT("a.\"b\"c"), "must end"},
        {KN_STR_LIT("\"\".b"), "empty part"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        KnTableIdent ident = {0};
        if (kn_table_ident_parse(fix->arena, cases[i].text, &ident, &fix->err) != KN_E_INVAL ||
            !strstr(fix->err.msg, cases[i].part))
            fail_msg("case %zu: %s", i, fix->err.msg);
        assert_null(ident.name);
    }
}

static void expect_path(Fixture *fix, const char *path, KnCode code)
{
    KnCode rc = kn_table_check_path(fix->tbl, kn_str(path), &fix->err);
    if (rc != code)
        fail_msg("%s: %s", path, kn_code_name(rc));
}

static void files_below_the_location_may_be_read_in_every_spelling(void **state)
{
    Fixture *fix = *state;
    expect_path(fix, "file:///lake/ns/t/data/a.parquet", KN_OK);
    expect_path(fix, "file:/lake/ns/t/data/a.parquet", KN_OK);
    expect_path(fix, "/lake/ns/t/data/a.parquet", KN_OK);
    expect_path(fix, "/lake/ns/t/data/../data//a.parquet", KN_OK);
}

static void files_elsewhere_are_refused(void **state)
{
    Fixture *fix = *state;
    expect_path(fix, "/etc/passwd", KN_E_REFUSED);
    expect_path(fix, "/lake/ns/t2/data/a.parquet", KN_E_REFUSED);
    expect_path(fix, "file:///lake/ns/t/../u/a.parquet", KN_E_REFUSED);
    expect_path(fix, "s3://bucket/lake/ns/t/a.parquet", KN_E_REFUSED);
    expect_path(fix, "/lake/ns", KN_E_REFUSED);
    const char *path = NULL;
    assert_int_equal(
        kn_table_engine_path(fix->tbl, fix->arena, KN_STR_LIT("/etc/passwd"), &path, &fix->err),
        KN_E_REFUSED);
    assert_non_null(strstr(fix->err.msg, "--allow-path"));
}

static void folders_named_by_properties_and_by_the_operator_are_allowed(void **state)
{
    Fixture *fix = *state;
    kn_table_free(fix->tbl);
    fix->tbl = open_table(fix, "{\"write.data.path\":\"file:/other/data\","
                               "\"write.object-storage.path\":\"/objects/\"}");
    expect_path(fix, "/other/data/x.parquet", KN_OK);
    expect_path(fix, "file:///objects/ab/x.parquet", KN_OK);
    expect_path(fix, "/other/x.parquet", KN_E_REFUSED);
    static const char *const allowed[] = {"/extra"};
    fix->tbl->allowed = allowed;
    fix->tbl->n_allowed = 1;
    expect_path(fix, "/extra/x.parquet", KN_OK);
    expect_path(fix, "/extra2/x.parquet", KN_E_REFUSED);
}

static void the_root_folder_as_a_property_allows_nothing(void **state)
{
    Fixture *fix = *state;
    kn_table_free(fix->tbl);
    fix->tbl = open_table(fix, "{\"write.data.path\":\"/\"}");
    expect_path(fix, "/etc/passwd", KN_E_REFUSED);
}

static void a_name_mapping_allows_the_tables_siblings(void **state)
{
    Fixture *fix = *state;
    expect_path(fix, "/lake/ns/src/x.parquet", KN_E_REFUSED);
    kn_table_free(fix->tbl);
    fix->tbl = open_table(fix, "{\"schema.name-mapping.default\":\"[]\"}");
    expect_path(fix, "/lake/ns/src/x.parquet", KN_OK);
    expect_path(fix, "/lake/other/x.parquet", KN_E_REFUSED);
}

static int64_t chosen(Fixture *fix, KnSnapshotChoice choice)
{
    const KnSnapshot *snap = NULL;
    if (kn_table_choose_snapshot(fix->tbl, &choice, &snap, &fix->err) != KN_OK)
        fail_msg("%s", fix->err.msg);
    return snap->snapshot_id;
}

static void a_snapshot_is_chosen_by_id_time_or_ref(void **state)
{
    Fixture *fix = *state;
    assert_int_equal(chosen(fix, (KnSnapshotChoice){0}), 2);
    assert_int_equal(chosen(fix, (KnSnapshotChoice){.snapshot = "1"}), 1);
    assert_int_equal(chosen(fix, (KnSnapshotChoice){.ref = "old"}), 1);
    assert_int_equal(chosen(fix, (KnSnapshotChoice){.as_of = "1500"}), 1);
    assert_int_equal(chosen(fix, (KnSnapshotChoice){.as_of = "1970-01-01T00:00:01.5Z"}), 1);
    assert_int_equal(chosen(fix, (KnSnapshotChoice){.as_of = "1970-01-02"}), 2);
}

static void a_choice_that_names_nothing_says_so(void **state)
{
    Fixture *fix = *state;
    static const struct {
        KnSnapshotChoice choice;
        KnCode code;
    } cases[] = {
        {{.snapshot = "9"}, KN_E_NOTFOUND}, {{.snapshot = "x"}, KN_E_INVAL},
        {{.ref = "none"}, KN_E_NOTFOUND},   {{.as_of = "1"}, KN_E_NOTFOUND},
        {{.as_of = "noon"}, KN_E_INVAL},    {{.snapshot = "1", .ref = "old"}, KN_E_INVAL},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        const KnSnapshot *snap = NULL;
        assert_int_equal(kn_table_choose_snapshot(fix->tbl, &cases[i].choice, &snap, &fix->err),
                         cases[i].code);
        assert_null(snap);
    }
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(a_name_has_levels_and_a_last_part),
        CASE(quoted_parts_keep_their_dots),
        CASE(names_that_could_leave_their_folder_are_refused),
        CASE(files_below_the_location_may_be_read_in_every_spelling),
        CASE(files_elsewhere_are_refused),
        CASE(folders_named_by_properties_and_by_the_operator_are_allowed),
        CASE(the_root_folder_as_a_property_allows_nothing),
        CASE(a_name_mapping_allows_the_tables_siblings),
        CASE(a_snapshot_is_chosen_by_id_time_or_ref),
        CASE(a_choice_that_names_nothing_says_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
