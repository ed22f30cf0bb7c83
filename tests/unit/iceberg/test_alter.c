/* SPDX-License-Identifier: Apache-2.0 */
/* test_alter.c - changes in words; properties, versions and the name mapping; commits that meet
 * others. */
#include <string.h>

#include "unit/iceberg/alter_support.h"
#include "unit/iceberg/lake.h"

/* ---- words ---- */

static void what_is_wrong_is_said_with_its_place(void **state)
{
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"", "position 1: expected 'add', 'drop', 'rename', 'alter', 'replace', 'write', 'set' or "
             "'unset', found the end"},
        {"ad column x int", "position 1: expected 'add'"},
        {"add x int", "position 5: expected 'column' or 'partition field', found 'x'"},
        {"add column", "position 11: expected a name, found the end"},
        {"add column x", "position 13: expected a type, found the end"},
        {"add column x nope", "position 14: type 'nope' is not known"},
        {"add column x int not", "position 18: expected ';' or the end, found 'not'"},
        {"add column x int default", "position 25: expected a literal, found the end"},
        {"add column x int default )", "position 26: expected a literal, found ')'"},
        {"add column x int default 'a", "position 28: expected a closing quote ('), found the end"},
        {"add column x int comment y", "position 26: expected a text in single quotes, found 'y'"},
        {"add column x int after", "position 23: expected a name, found the end"},
        {"add columns (x int", "position 19: expected ')', found the end"},
        {"add column x.1 int", "position 14: expected a name, found '1'"},
        {"drop", "position 5: expected 'column', 'partition field' or 'identifier fields'"},
        {"rename x to y", "position 8: expected 'column' or 'partition', found 'x'"},
        {"rename column x y", "position 17: expected 'to', found 'y'"},
        {"rename column x to y.z", "position 21: expected ';' or the end, found '.'"},
        {"alter column x", "position 15: expected 'type', 'set', 'drop'"},
        {"alter column x set null", "position 20: expected 'not null', 'default' or 'data type'"},
        {"alter column x drop it", "position 21: expected 'not null' or 'default', found 'it'"},
        {"replace partition field x", "position 26: expected 'with', found the end"},
        {"add partition field bucket(id)", "position 30: expected ',', found ')'"},
        {"add partition field bucket(0, id)", "position 21: bucket[0] is not a transform"},
        {"write", "position 6: expected 'ordered by', 'locally ordered by'"},
        {"write ordered id", "position 15: expected 'by', found 'id'"},
        {"write ordered by id nulls", "position 26: expected 'first' or 'last', found the end"},
        {"set", "position 4: expected 'identifier fields', 'tblproperties'"},
        {"set tblproperties ('a')", "position 23: expected '=', found ')'"},
        {"set tblproperties ('a' = b)", "position 26: expected a text in single quotes"},
        {"set tblproperties ()", "position 20: expected a text in single quotes, found ')'"},
        {"unset tblproperties ('a' = 'b')", "position 26: expected ')', found '='"},
        {"set format version x", "position 20: expected a number, found 'x'"},
        {"set location here", "position 14: expected a text in single quotes, found 'here'"},
        {"drop column a b", "position 15: expected ';' or the end, found 'b'"},
        {"drop column a; ; drop column b", "position 16: expected 'add'"},
        {"rename column `a to b", "position 22: expected a closing '`', found the end"},
    };
    Meta *m = *state;
    KnChanges changes;

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        KnCode rc = kn_changes_parse(m->arena, kn_str(cases[i].text), &changes, &m->err);
        if (rc != KN_E_INVAL ||
            strncmp(m->err.msg, cases[i].message, strlen(cases[i].message)) != 0)
            fail_msg("'%s': %s: '%s'", cases[i].text, kn_code_name(rc), rc ? m->err.msg : "");
    }
}

static void words_are_read_in_any_case_and_with_any_blanks(void **state)
{
    Meta *m = *state;
    KnChanges changes = {0};

    meta_ok(m, kn_changes_parse(m->arena,
                                KN_STR_LIT("  ADD\n COLUMNS ( a int NOT  NULL, `b ``c` string "
                                           "Default 'x' Comment 'y' After a ) ;drop column q;\t"),
                                &changes, &m->err));
    assert_int_equal(changes.n, 3);
    assert_true(changes.items[0].required);
    assert_string_equal(changes.items[1].column, "b `c");
    assert_string_equal(changes.items[1].literal, "x");
    assert_string_equal(changes.items[1].beside, "a");
    assert_int_equal(changes.items[2].kind, KN_CHANGE_DROP_COLUMN);
}

/* ---- the table ---- */

static const char *property(const KnMetadata *md, const char *key)
{
    return kn_metadata_property(md, key, "-");
}

static void properties_are_set_and_removed(void **state)
{
    Meta *m = *state;
    KnMetadata *md = alter_table(m, 2, "id int, name string", NULL);

    md = alter(m, md, "set tblproperties ('a' = 'x', 'b' = 'it''s')");
    md = alter(m, md,
               "unset tblproperties if exists ('a', 'nothing'); set tblproperties "
               "('c' = '')");
    assert_string_equal(property(md, "a"), "-");
    assert_string_equal(property(md, "b"), "it's");
    assert_string_equal(property(md, "c"), "");
    alter_refused(m, md, "set tblproperties ('current-snapshot-id' = '7')",
                  "property 'current-snapshot-id' is reserved");
    alter_refused(m, md, "set tblproperties ('' = '7')", "a property needs a name");
    kn_metadata_unref(md);
}

static void settings_of_a_column_follow_it(void **state)
{
    Meta *m = *state;
    KnMetadata *md = alter_table(m, 2, "id int, a string, b string, st struct<x int, y int>", NULL);

    md = alter(m, md,
               "set tblproperties ('write.metadata.metrics.column.a' = 'full',"
               "'write.metadata.metrics.column.b' = 'none',"
               "'write.metadata.metrics.column.st.x' = 'counts',"
               "'write.parquet.bloom-filter-enabled.column.st.y' = 'true',"
               "'write.parquet.stats-enabled.column.id' = 'false')");
    md = alter(m, md,
               "rename column a to c; rename column b to a; rename column c to b; drop column id;"
               "rename column st to s; drop column s.y");
    assert_string_equal(property(md, "write.metadata.metrics.column.a"), "none");
    assert_string_equal(property(md, "write.metadata.metrics.column.b"), "full");
    assert_string_equal(property(md, "write.metadata.metrics.column.s.x"), "counts");
    assert_int_equal(json_object_size(md->properties), 3);
    kn_metadata_unref(md);
}

static void the_name_mapping_follows_the_columns(void **state)
{
    static const char mapping[] =
        "[{'field-id':1,'names':['id','key']},{'field-id':2,'names':['data']},{'names':['gone']},"
        "{'field-id':3,'names':['st'],'fields':[{'field-id':4,'names':['x']}]}]";
    static const char want[] =
        "[{'field-id':1,'names':['id','key']},{'field-id':2,'names':[]},{'names':['gone']},"
        "{'field-id':3,'names':['st','s'],'fields':[{'field-id':4,'names':['x','X']},"
        "{'field-id':6,'names':['l'],'fields':[{'field-id':7,'names':['element']}]}]},"
        "{'field-id':5,'names':['data']}]";
    Meta *m = *state;
    KnMetadata *md = alter_table(m, 2, "id int, data string, st struct<x int>", NULL);
    const char *key = "schema.name-mapping.default";

    md = alter(
        m, md,
        kn_arena_printf(m->arena, "set tblproperties ('%s' = '%s')", key, meta_quotes(m, mapping)));
    md = alter(m, md, "alter column id comment 'no name changes'");
    assert_string_equal(property(md, key), meta_quotes(m, mapping));
    md = alter(m, md,
               "drop column data; add column data int; rename column st to s; "
               "rename column s.x to X; add column s.l list<int>");
    assert_string_equal(property(md, key), meta_quotes(m, want));
    md = alter(m, md,
               kn_arena_printf(m->arena,
                               "set tblproperties ('%s' = 'no mapping'); drop "
                               "column data",
                               key));
    assert_string_equal(property(md, key), "no mapping");
    kn_metadata_unref(md);
}

static void versions_go_up(void **state)
{
    Meta *m = *state;
    KnMetadata *md = alter_table(m, 1, "id int", "id");

    md = alter(m, md, "drop partition field id; set format version 2");
    assert_int_equal(md->format_version, 2);
    assert_string_equal(alter_spec(m, md), "");
    alter_refused(m, md, "set format version 1", "Cannot downgrade v2 table to v1");
    alter_refused(m, md, "set format version 4", "Cannot upgrade table to unsupported format");
    alter_refused(m, md, "set tblproperties ('format-version' = 'three')",
                  "format-version 'three'");
    md = alter(m, md, "add column t timestamp_ns; set tblproperties ('format-version' = '3')");
    assert_int_equal(md->format_version, 3);
    assert_string_equal(property(md, "format-version"), "-");
    kn_metadata_unref(md);
}

static void the_location_moves(void **state)
{
    Meta *m = *state;
    KnMetadata *md = alter_table(m, 2, "id int", NULL);

    md = alter(m, md, "set location 'file:///elsewhere/t/'");
    assert_string_equal(md->location, "file:///elsewhere/t");
    alter_refused(m, md, "set location 'elsewhere'", "location 'elsewhere' is neither");
    kn_metadata_unref(md);
}

/* ---- commits ---- */

static KnCode lake_alter(Lake *lake, KnTable *tbl, const char *text, bool dry_run)
{
    const KnAlterOptions opts = {.dry_run = dry_run};
    KN_ARENA_AUTO arena = kn_arena_new(0);
    KN_METADATA_AUTO before = NULL;
    KN_METADATA_AUTO after = NULL;
    KnChanges changes = {0};

    KN_TRY(kn_changes_parse(arena, kn_str(text), &changes, &lake->err));
    return kn_table_alter(tbl, &changes, &opts, &before, &after, &lake->err);
}

static const LakeTable plain = {.schema = "id long required, name string"};

static const char *others_turn;

static void another_alters(Lake *lake)
{
    KnTable *tbl = lake_load(lake);

    lake_ok(lake, lake_alter(lake, tbl, others_turn, false));
    kn_table_free(tbl);
}

static void a_commit_that_lost_a_race_is_made_on_what_is_there_now(void **state)
{
    (void)state;
    Lake lake;

    lake_open(&lake, &plain);
    others_turn = "add column theirs int; add partition field bucket(4, id)";
    lake.before_commit = another_alters;
    lake_ok(&lake,
            lake_alter(&lake, lake.tbl, "add column ours int; alter column name first", false));
    const KnSchema *schema = kn_metadata_schema(lake.tbl->md);
    assert_int_equal(kn_schema_find_name(schema, KN_STR_LIT("theirs"))->id, 3);
    assert_int_equal(kn_schema_find_name(schema, KN_STR_LIT("ours"))->id, 4);
    assert_int_equal(lake.tbl->md->n_specs, 2);
    lake_close(&lake);
}

static void a_name_that_now_means_another_column_is_a_conflict(void **state)
{
    (void)state;
    Lake lake;

    lake_open(&lake, &plain);
    others_turn = "drop column name; add column name string";
    lake.before_commit = another_alters;
    lake_fails(&lake, lake_alter(&lake, lake.tbl, "rename column name to title", false),
               KN_E_CONFLICT, "column 'name' was replaced by another column of that name");
    lake_close(&lake);
}

static void changes_that_no_longer_can_be_made_are_one_clear_line(void **state)
{
    (void)state;
    Lake lake;

    lake_open(&lake, &plain);
    others_turn = "add column note int";
    lake.before_commit = another_alters;
    lake_fails(&lake, lake_alter(&lake, lake.tbl, "add column note string", false), KN_E_INVAL,
               "Cannot add column, name already exists: note");
    lake_close(&lake);
}

static void appends_do_not_stand_in_the_way(void **state)
{
    (void)state;
    Lake lake;

    lake_open(&lake, &plain);
    lake_append(&lake, "SELECT 1 AS id, 'a' AS name");
    lake_ok(&lake, lake_alter(&lake, lake.tbl,
                              "rename column name to title; "
                              "add column n int after id",
                              false));
    lake_append(&lake, "SELECT 2 AS id, 7 AS n, 'b' AS title");
    assert_string_equal(lake_rows(&lake), "{'id': 1, 'n': NULL, 'title': a} "
                                          "{'id': 2, 'n': 7, 'title': b}");
    lake_close(&lake);
}

static void a_dry_run_changes_nothing(void **state)
{
    (void)state;
    Lake lake;

    lake_open(&lake, &plain);
    const KnMetadata *md = lake.tbl->md;
    lake_ok(&lake, lake_alter(&lake, lake.tbl, "add column x int", true));
    assert_ptr_equal(lake.tbl->md, md);
    lake_ok(&lake, kn_table_refresh(lake.tbl, &lake.err));
    assert_int_equal(lake.tbl->md->n_schemas, 1);
    lake_close(&lake);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, meta_setup, meta_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_is_wrong_is_said_with_its_place),
        TEST(words_are_read_in_any_case_and_with_any_blanks),
        TEST(properties_are_set_and_removed),
        TEST(settings_of_a_column_follow_it),
        TEST(the_name_mapping_follows_the_columns),
        TEST(versions_go_up),
        TEST(the_location_moves),
        cmocka_unit_test(a_commit_that_lost_a_race_is_made_on_what_is_there_now),
        cmocka_unit_test(a_name_that_now_means_another_column_is_a_conflict),
        cmocka_unit_test(changes_that_no_longer_can_be_made_are_one_clear_line),
        cmocka_unit_test(appends_do_not_stand_in_the_way),
        cmocka_unit_test(a_dry_run_changes_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
