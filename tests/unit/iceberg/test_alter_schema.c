/* SPDX-License-Identifier: Apache-2.0 */
/* test_alter_schema.c - changes of columns; the cases of Java's TestSchemaUpdate and the rules of
 * the specification's "Schema Evolution". */
#include <string.h>

#include "unit/iceberg/alter_support.h"

/* Ids: 1 to 7 at the top; 8 9 preferences; 10 11 locations, 12 to 15 its key, 16 17 its value;
 * 18 points, 19 20 in it; 21 doubles; 22 23 properties. */
#define TABLE                                                                                      \
    "id int required, data string, "                                                               \
    "preferences struct<feature1 boolean required, feature2 boolean>, "                            \
    "locations map<struct<address string required, city string required, state string required, "  \
    "zip int required>, struct<lat float required, long float required>> required, "               \
    "points list<struct<x long required, y long required>>, "                                      \
    "doubles list<double required> required, properties map<string, string>"

static KnMetadata *table(Meta *m, int32_t version)
{
    return alter_table(m, version, TABLE, NULL);
}

typedef struct Case {
    const char *changes, *path, *want; /* the column at path afterwards */
} Case;

static void check_cases(Meta *m, int32_t version, const Case *cases, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        KnMetadata *md = alter(m, table(m, version), cases[i].changes);
        const char *got = alter_column(m, md, cases[i].path);
        if (strcmp(got, cases[i].want) != 0)
            fail_msg("%s: '%s' is '%s', not '%s'", cases[i].changes, cases[i].path, got,
                     cases[i].want);
        kn_metadata_unref(md);
    }
}

#define CHECK(m, version, cases) check_cases(m, version, cases, sizeof(cases) / sizeof(cases[0]))

static void columns_are_added_with_the_next_ids(void **state)
{
    static const Case cases[] = {
        {"add column toplevel decimal(9,2)", "toplevel", "24 toplevel decimal(9,2)"},
        {"add column locations.alt float", "locations.value.alt", "24 alt float"},
        {"add column locations.value.alt float", "locations.value.alt", "24 alt float"},
        {"add column points.z bigint", "points.element.z", "24 z long"},
        {"add column s struct<a struct<b int, c int>, d int> comment 'x'", "s.a.c", "28 c int"},
        {"add column s struct<a struct<b int, c int>, d int>", "s.d", "26 d int"},
        {"add column m map<struct<k int required>, list<int>>", "m.value.element",
         "28 element int"},
        {"add column m map<struct<k int required>, list<int>>", "m.key.k", "27 k int required"},
        {"add columns (a int, b string first); add column c date comment 'it''s'", "c",
         "26 c date [it's]"},
        {"add column `a.b` int, preferences.`c d` int", "preferences.c d", "25 c d int"},
        {"drop column data; add column data int", "data", "24 data int"},
        {"drop column preferences.feature1, data; add column preferences.feature1 int",
         "preferences.feature1", "24 feature1 int"},
        {"add column s struct<a int>; add column s.b int; rename column s.b to c", "s.c",
         "26 c int"},
    };
    Meta *m = *state;

    CHECK(m, 2, cases);
}

static void columns_are_changed(void **state)
{
    static const Case cases[] = {
        {"alter column id type bigint", "id", "1 id long required"},
        {"alter column id set data type long", "id", "1 id long required"},
        {"alter column id type integer", "id", "1 id int required"},
        {"alter column locations.lat type double", "locations.value.lat", "16 lat double required"},
        {"alter column id comment 'key'; alter column id type long; rename column id to k", "k",
         "1 k long required [key]"},
        {"alter column id comment 'key'; alter column id comment ''", "id", "1 id int required"},
        {"alter column id drop not null", "id", "1 id int"},
        {"alter column doubles.element drop not null", "doubles.element", "21 element double"},
        {"rename column points.x to X", "points.element.X", "19 X long required"},
        {"rename column data to t; rename column id to data; rename column t to id", "id",
         "2 id string"},
        {"rename column id to id", "id", "1 id int required"},
        {"drop column points", "points.element.x", "none"},
        {"drop column points.y", "points.element.y", "none"},
        {"alter column data drop not null", "data", "2 data string"},
    };
    Meta *m = *state;

    CHECK(m, 1, cases);
    CHECK(m, 3, cases);
}

static void what_java_refuses_is_refused(void **state)
{
    static const Case cases[] = {
        {"add column points.element.x int", NULL, "Cannot add column, name already exists: "},
        {"add column data int", NULL, "Cannot add column, name already exists: data"},
        {"add column none.x int", NULL, "Cannot find parent struct: none"},
        {"add column data.x int", NULL, "Cannot add to non-struct column: data: string"},
        {"add column doubles.x int", NULL, "Cannot add to non-struct column: doubles"},
        {"add column locations.key.x int", NULL, "Cannot add fields to map keys: locations.key"},
        {"add column x int not null", NULL,
         "Incompatible change: cannot add required column without a default value: x"},
        {"drop column none", NULL, "Cannot delete missing column: none"},
        {"drop column id, id", NULL, "Cannot delete missing column: id"},
        {"drop column locations.key", NULL, "Cannot alter map keys: locations.key"},
        {"drop column locations.key.zip", NULL, "Cannot alter map keys: locations.key.zip"},
        {"drop column locations.value", NULL, "Cannot delete the value of a map"},
        {"drop column points.element", NULL, "Cannot delete the element of a list"},
        {"drop columns points.x, points.y", NULL,
         "Cannot delete the last column of struct points.element"},
        {"drop columns id, data, preferences, locations, points, doubles, properties", NULL,
         "Cannot delete the last column of the table"},
        {"rename column none to x", NULL, "Cannot rename missing column: none"},
        {"rename column id to data", NULL, "Cannot rename id to data: name already exists"},
        {"rename column points.element to x", NULL, "Cannot rename the element of a list"},
        {"drop column id; rename column id to x", NULL, "Cannot rename missing column: id"},
        {"alter column none type long", NULL, "Cannot update missing column: none"},
        {"alter column locations.key.zip type long", NULL, "Cannot alter map keys"},
        {"alter column locations.key drop not null", NULL, "Cannot alter map keys"},
        {"alter column data set not null", NULL,
         "Cannot change column nullability: data: optional -> required"},
        {"alter column none comment 'x'", NULL, "Cannot update missing column: none"},
        {"alter column points.element comment 'x'", NULL, "Cannot update the element of a list"},
        {"alter column preferences type int", NULL,
         "Cannot change column type: preferences: struct<"},
        {"alter column id type struct<a int>", NULL, "Cannot change column type: id: int -> "},
        {"alter column data set default 'x'", NULL, "Invalid default for data: defaults are not"},
        {"alter column none first", NULL, "Cannot move missing column: none"},
        {"alter column id after none", NULL, "Cannot move id after missing column: none"},
        {"alter column id after id", NULL, "Cannot move id after itself"},
        {"alter column id after points.x", NULL, "Cannot move field id to a different struct"},
        {"alter column points.x after feature1", NULL,
         "Cannot move points.element.x after missing column: feature1"},
        {"alter column points.x after preferences.feature1", NULL,
         "Cannot move field points.element.x to a different struct"},
        {"alter column points.element first", NULL, "Cannot move the element of a list"},
        {"alter column properties.value first", NULL, "Cannot move the value of a map"},
        {"set identifier fields none", NULL, "Cannot add field none as an identifier field: not"},
        {"set identifier fields data", NULL,
         "Cannot add field data as an identifier field: not a "
         "required"},
        {"set identifier fields doubles.element", NULL, "Cannot add field"},
        {"set identifier fields preferences.feature1", NULL, "Cannot add field"},
        {"set identifier fields locations", NULL, "Cannot add field locations"},
        {"drop identifier fields id", NULL, "Cannot drop identifier field id: it is none"},
        {"drop identifier fields none", NULL, "Cannot drop identifier field none: the column"},
        {"add column u unknown", NULL, "Invalid type for u: unknown is not supported until v3"},
        {"add column t timestamp_ns", NULL, "Invalid type for t: timestamp_ns is not supported"},
    };
    Meta *m = *state;
    KnMetadata *md = table(m, 2);

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        alter_refused(m, md, cases[i].changes, cases[i].want);
    kn_metadata_unref(md);
}

static void columns_move(void **state)
{
    static const struct {
        const char *changes, *path, *want;
    } cases[] = {
        {"alter column data first", NULL,
         "data id preferences locations points doubles "
         "properties"},
        {"alter column id after properties", NULL,
         "data preferences locations points doubles "
         "properties id"},
        {"alter column doubles before data", NULL,
         "id doubles data preferences locations points "
         "properties"},
        {"alter column id before data", NULL,
         "id data preferences locations points doubles "
         "properties"},
        {"alter column data after id", NULL,
         "id data preferences locations points doubles "
         "properties"},
        {"alter column preferences.feature2 first", "preferences", "feature2 feature1"},
        {"alter column preferences.feature1 after feature2", "preferences", "feature2 feature1"},
        {"alter column preferences.feature1 after preferences.feature2", "preferences",
         "feature2 feature1"},
        {"alter column points.y before x", "points.element", "y x"},
        {"alter column locations.long first", "locations.value", "long lat"},
        {"add column a int after id; add column b int before a", NULL,
         "id b a data preferences locations points doubles properties"},
        {"add column preferences.f0 int first; add column preferences.f3 int after f0",
         "preferences", "f0 f3 feature1 feature2"},
        {"alter column doubles first; alter column data first; alter column id after data", NULL,
         "data id doubles preferences locations points properties"},
    };
    Meta *m = *state;

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        KnMetadata *md = alter(m, table(m, 2), cases[i].changes);
        assert_string_equal(alter_names(m, md, cases[i].path), cases[i].want);
        kn_metadata_unref(md);
    }
}

static void types_are_promoted_as_the_format_version_says(void **state)
{
    static const char *const types[] = {
        "boolean",        "int",          "long",         "float",         "double",
        "date",           "time",         "timestamp",    "timestamptz",   "timestamp_ns",
        "timestamptz_ns", "string",       "uuid",         "fixed[3]",      "fixed[4]",
        "binary",         "decimal(9,2)", "decimal(9,3)", "decimal(18,2)", "unknown"};
    static const struct {
        const char *from, *to;
        int32_t version;
    } allowed[] = {{"int", "long", 1},
                   {"float", "double", 1},
                   {"decimal(9,2)", "decimal(18,2)", 1},
                   {"date", "timestamp", 3},
                   {"date", "timestamp_ns", 3}};
    const size_t n = sizeof(types) / sizeof(types[0]);
    Meta *m = *state;

    for (size_t i = 0; i < n * n * 2; i++) {
        const char *from = types[i / 2 / n], *to = types[i / 2 % n];
        int32_t version = i % 2 ? 3 : 2;
        bool want = strcmp(from, to) == 0 || (strcmp(from, "unknown") == 0 && version == 3);
        if (version == 2 && (strcmp(from, "unknown") == 0 || strstr(from, "_ns")))
            continue;
        for (size_t k = 0; k < sizeof(allowed) / sizeof(allowed[0]); k++)
            want |= strcmp(from, allowed[k].from) == 0 && strcmp(to, allowed[k].to) == 0 &&
                    version >= allowed[k].version;
        KnMetadata *md = alter_table(m, version, "x int", NULL);
        md = alter(m, md, kn_arena_printf(m->arena, "add column c %s", from));
        const char *change = kn_arena_printf(m->arena, "alter column c type %s", to);
        if (!want)
            alter_refused(m, md, change, "Cannot change column type: c: ");
        else
            md = alter(m, md, change);
        assert_string_equal(alter_column(m, md, "c"),
                            kn_arena_printf(m->arena, "2 c %s", want ? to : from));
        kn_metadata_unref(md);
    }
}

static void a_date_that_is_partitioned_by_its_value_stays_a_date(void **state)
{
    Meta *m = *state;
    KnMetadata *md = alter_table(m, 3, "d date, e date, x int", "identity(d), day(e)");

    alter_refused(m, md, "alter column d type timestamp",
                  "Cannot change column type: d: partition field d of spec 0 would have other");
    /* Spec 0 still has files. */
    alter_refused(m, md, "drop partition field d; alter column d type timestamp",
                  "Cannot change column type: d: partition field d of spec 0 would have other");
    md = alter(m, md, "alter column e type timestamp");
    assert_string_equal(alter_column(m, md, "e"), "2 e timestamp");
    kn_metadata_unref(md);
}

static void defaults_are_set(void **state)
{
    static const Case cases[] = {
        {"add column x int default -7", "x", "24 x int {-7, -7}"},
        {"add column x int not null default 7", "x", "24 x int required {7, 7}"},
        {"add column x int default null", "x", "24 x int"},
        {"add column x int default 7; alter column x set default 8", "x", "24 x int {7, 8}"},
        {"add column x int default 7; alter column x drop default", "x", "24 x int {7, }"},
        {"add column x int default 7; alter column x set not null", "x",
         "24 x int required {7, 7}"},
        {"add column x int default 7; alter column x type long", "x", "24 x long {7, 7}"},
        {"alter column data set default 'it''s'", "data", "2 data string {, \"it's\"}"},
        {"add column x boolean default true", "x", "24 x boolean {true, true}"},
        {"add column x decimal(9,2) default 1.5", "x", "24 x decimal(9,2) {\"1.50\", \"1.50\"}"},
        {"add column x binary default 0x00ff", "x", "24 x binary {\"00FF\", \"00FF\"}"},
        {"add column x date default date '2020-02-29'", "x",
         "24 x date {\"2020-02-29\", \"2020-02-29\"}"},
        {"add column x date default 2020-02-29; alter column x type timestamp", "x",
         "24 x timestamp {\"2020-02-29T00:00:00.000000\", \"2020-02-29T00:00:00.000000\"}"},
        {"add column preferences.x float not null default 1.25", "preferences.x",
         "24 x float required {1.25, 1.25}"},
        {"add column x unknown", "x", "24 x unknown"},
        {"add column x unknown; alter column x type struct<a int, b int>", "x.b", "26 b int"},
    };
    static const Case refused[] = {
        {"add column x int not null default null", NULL, "Incompatible change"},
        {"add column x int default 'a'", NULL, "Invalid default for x: "},
        {"add column x int default 3000000000", NULL, "Invalid default for x: "},
        {"add column x list<int> default '[1]'", NULL, "Invalid default value for x: list<int>"},
        {"add column x unknown default 1", NULL, "Invalid default value for x: unknown"},
        {"add column x unknown not null", NULL, "Cannot create required field with unknown type"},
        {"add column x date default 9999-12-31; alter column x type timestamp_ns", NULL,
         "the default is outside the range"},
        {"alter column data set default 'x'; alter column data set not null", NULL,
         "Cannot change column nullability"},
    };
    Meta *m = *state;
    KnMetadata *md = table(m, 3);

    CHECK(m, 3, cases);
    for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++)
        alter_refused(m, md, refused[i].changes, refused[i].want);
    kn_metadata_unref(md);
}

static void incompatible_changes_are_made_when_asked_for(void **state)
{
    Meta *m = *state;
    KnMetadata *md =
        alter_anyhow(m, table(m, 2), "add column x int not null; alter column data set not null");

    assert_string_equal(alter_column(m, md, "x"), "24 x int required");
    assert_string_equal(alter_column(m, md, "data"), "2 data string required");
    kn_metadata_unref(md);
}

static void identifier_fields_follow_their_columns(void **state)
{
    Meta *m = *state;
    KnMetadata *md = alter(m, table(m, 2), "set identifier fields id, id");

    assert_int_equal(kn_metadata_schema(md)->n_identifier_ids, 1);
    assert_int_equal(kn_metadata_schema(md)->identifier_ids[0], 1);
    alter_refused(m, md, "drop column id", "Cannot delete identifier field id");
    alter_refused(m, md, "alter column id drop not null", "Cannot add field id as an identifier");
    md = alter(m, md, "rename column id to key");
    assert_int_equal(kn_metadata_schema(md)->identifier_ids[0], 1);
    alter_refused(m, md, "drop column key; drop identifier fields key",
                  "Cannot drop identifier field key: the column does not exist");
    kn_metadata_unref(md);
}

static void identifier_fields_are_dropped_before_their_column(void **state)
{
    Meta *m = *state;
    KnMetadata *md = alter(m, table(m, 2), "set identifier fields id");

    md = alter(m, md, "drop identifier fields id; drop column id");
    assert_int_equal(kn_metadata_schema(md)->n_identifier_ids, 0);
    md = alter_anyhow(m, md,
                      "add column k struct<a int required, b int> not null; "
                      "set identifier fields k.a");
    assert_int_equal(kn_metadata_schema(md)->identifier_ids[0], 25);
    alter_refused(m, md, "drop column k", "Cannot delete identifier field k.a");
    md = alter_anyhow(m, md, "drop column k; add column k int not null; set identifier fields k");
    assert_int_equal(kn_metadata_schema(md)->identifier_ids[0], 27);
    kn_metadata_unref(md);
}

static void ids_are_never_used_again(void **state)
{
    Meta *m = *state;
    KnMetadata *md = alter(m, table(m, 2), "add column a int; drop column a; add column b int");

    assert_string_equal(alter_column(m, md, "b"), "25 b int");
    assert_int_equal(md->last_column_id, 25);
    md = alter(m, alter(m, md, "drop column b"), "add column b int");
    assert_string_equal(alter_column(m, md, "b"), "26 b int");
    kn_metadata_unref(md);
}

static void nothing_to_change_is_no_change(void **state)
{
    Meta *m = *state;
    KnMetadata *md = table(m, 2);
    KnMetadata *same = kn_metadata_ref(md);

    md = alter(m, md,
               "alter column id type int; rename column data to data; alter column id first;"
               "set identifier fields id; drop identifier fields id; write unordered;"
               "set tblproperties ('a' = 'b'); unset tblproperties ('a', "
               "'write.distribution-mode')");
    assert_ptr_equal(md, same);
    kn_metadata_unref(md);
    kn_metadata_unref(same);
}

static void an_earlier_schema_is_found_again(void **state)
{
    Meta *m = *state;
    KnMetadata *md = alter(m, table(m, 2), "rename column data to d");

    assert_int_equal(md->current_schema_id, 1);
    md = alter(m, md, "rename column d to data");
    assert_int_equal(md->current_schema_id, 0);
    assert_int_equal(md->n_schemas, 2);
    kn_metadata_unref(md);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, meta_setup, meta_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(columns_are_added_with_the_next_ids),
        TEST(columns_are_changed),
        TEST(what_java_refuses_is_refused),
        TEST(columns_move),
        TEST(types_are_promoted_as_the_format_version_says),
        TEST(a_date_that_is_partitioned_by_its_value_stays_a_date),
        TEST(defaults_are_set),
        TEST(incompatible_changes_are_made_when_asked_for),
        TEST(identifier_fields_follow_their_columns),
        TEST(identifier_fields_are_dropped_before_their_column),
        TEST(ids_are_never_used_again),
        TEST(nothing_to_change_is_no_change),
        TEST(an_earlier_schema_is_found_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
