/* SPDX-License-Identifier: Apache-2.0 */
/* test_schema.c - schemas from JSON and text, looking things up, and what is refused. */
#include <string.h>

#include "iceberg/schema/type_internal.h"
#include "unit/iceberg/meta_support.h"

#define LIST "{'type':'list','element-id':4,'element':'string','element-required':true}"
#define MAP                                                                                        \
    "{'type':'map','key-id':5,'key':'string','value-id':6,'value':{'type':'struct','fields':["     \
    "{'id':7,'name':'v','required':false,'type':'double'}]},'value-required':false}"
#define SCHEMA                                                                                     \
    "{'type':'struct','schema-id':3,'identifier-field-ids':[1],'fields':["                         \
    "{'id':1,'name':'id','required':true,'type':'long','doc':'key','x-note':{'a':[1]}},"           \
    "{'id':2,'name':'li','required':false,'type':" LIST "},"                                       \
    "{'id':3,'name':'mp','required':false,'type':" MAP "},"                                        \
    "{'id':8,'name':'de','required':true,'type':'decimal(9, 2)','initial-default':'1.25',"         \
    "'write-default':'2.50'}],'x-more':7}"

static KnCode parse(Meta *m, const char *json, KnSchema **ret)
{
    return kn_schema_parse(m->arena, meta_json(m, json), ret, &m->err);
}

static void a_schema_is_written_as_it_was_read(void **state)
{
    Meta *m = *state;
    KnSchema *schema = NULL;

    meta_ok(m, parse(m, SCHEMA, &schema));
    KN_JSON_AUTO out = kn_schema_to_json(schema);
    assert_true(json_equal(out, meta_json(m, SCHEMA)));
    assert_int_equal(schema->schema_id, 3);
    assert_int_equal(schema->identifier_ids[0], 1);
    assert_string_equal(schema->root.fields[0].doc, "key");
    assert_string_equal(json_string_value(schema->root.fields[3].write_default), "2.50");
}

static void fields_are_found_by_id_and_by_dotted_name(void **state)
{
    static const struct {
        int32_t id;
        const char *name;
    } cases[] = {{1, "id"},     {2, "li"},       {3, "mp"},         {4, "li.element"},
                 {5, "mp.key"}, {6, "mp.value"}, {7, "mp.value.v"}, {8, "de"}};
    Meta *m = *state;
    KnSchema *schema = NULL;

    meta_ok(m, parse(m, SCHEMA, &schema));
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        KN_BUF_AUTO name = {0};
        kn_buf_init(&name, 100);
        assert_int_equal(kn_schema_find_id(schema, cases[i].id)->id, cases[i].id);
        assert_int_equal(kn_schema_find_name(schema, kn_str(cases[i].name))->id, cases[i].id);
        assert_true(kn_schema_full_name(schema, cases[i].id, &name));
        assert_string_equal(name.data, cases[i].name);
    }
    assert_null(kn_schema_find_id(schema, 9));
    assert_null(kn_schema_find_name(schema, KN_STR_LIT("mp.valu")));
    assert_null(kn_schema_find_name(schema, KN_STR_LIT("mp.value.")));
    assert_null(kn_schema_find_name(schema, KN_STR_LIT("")));
    assert_int_equal(kn_schema_highest_id(schema), 8);
}

static void a_name_with_dots_is_found_whole_and_as_a_path(void **state)
{
    Meta *m = *state;
    KnSchema *schema = meta_schema(m, "`a.b` int, a struct<c int>, `x.y` struct<z int>");

    assert_int_equal(kn_schema_find_name(schema, KN_STR_LIT("a.b"))->id, 1);
    assert_int_equal(kn_schema_find_name(schema, KN_STR_LIT("a.c"))->id, 4);
    assert_int_equal(kn_schema_find_name(schema, KN_STR_LIT("x.y.z"))->id, 5);
}

static void projection_takes_top_level_columns_in_order(void **state)
{
    static const char *const names[] = {"de", "id"};
    static const char *const wrong[] = {"id", "li.element"};
    Meta *m = *state;
    KnSchema *schema = NULL, *out = NULL;

    meta_ok(m, parse(m, SCHEMA, &schema));
    meta_ok(m, kn_schema_project(m->arena, schema, names, 2, &out, &m->err));
    assert_int_equal(out->root.n_fields, 2);
    assert_int_equal(out->root.fields[0].id, 8);
    assert_int_equal(out->root.fields[1].id, 1);
    assert_int_equal(out->n_identifier_ids, 1);
    meta_ok(m, kn_schema_project(m->arena, schema, names, 1, &out, &m->err));
    assert_int_equal(out->n_identifier_ids, 0);
    meta_ok(m, kn_schema_project(m->arena, schema, NULL, 0, &out, &m->err));
    assert_true(kn_type_equal(&out->root, &schema->root));
    assert_int_equal(kn_schema_project(m->arena, schema, wrong, 2, &out, &m->err), KN_E_INVAL);
    assert_string_equal(m->err.msg, "column 'li.element' does not exist");
}

#define FIELD(id, name, rest) "{'id':" id ",'name':'" name "'," rest "}"
#define INT                   "'required':true,'type':'int'"
#define WRAP(fields)          "{'type':'struct','fields':[" fields "]}"

static void wrong_schemas_are_refused_with_the_reason(void **state)
{
    static const struct {
        const char *json;
        KnCode code;
        const char *message;
    } cases[] = {
        {"[]", KN_E_CORRUPT, "a schema is an object of type struct"},
        {"{'type':'list'}", KN_E_CORRUPT, "a schema is of type struct, not 'list'"},
        {"{'type':'struct'}", KN_E_CORRUPT, "field 'fields' is missing: expected an array"},
        {WRAP("{'name':'a'," INT "}"), KN_E_CORRUPT, "field 'id' is missing: expected an integer"},
        {WRAP("{'id':1," INT "}"), KN_E_CORRUPT, "field 'name' is missing: expected a string"},
        {WRAP(FIELD("1", "a", "'type':'int'")), KN_E_CORRUPT,
         "field 'required' is missing: expected a boolean"},
        {WRAP(FIELD("1", "a", "'required':true")), KN_E_CORRUPT, "field 'a': 'type' is missing"},
        {WRAP(FIELD("1", "a", "'required':true,'type':7")), KN_E_CORRUPT,
         "field 'a': field 'type': expected a string or an object"},
        {WRAP(FIELD("1", "a", "'required':true,'type':'blob'")), KN_E_UNSUPPORTED,
         "field 'a': type 'blob' is not known"},
        {WRAP(FIELD("1", "a", "'required':true,'type':{'type':'set'}")), KN_E_UNSUPPORTED,
         "field 'a': type 'set' is not known"},
        {WRAP(FIELD("1", "a",
                    "'required':true,'type':{'type':'list','element-id':2,"
                    "'element-required':true}")),
         KN_E_CORRUPT, "field 'a': field 'element' is missing: expected a type"},
        {WRAP(FIELD("1", "a", INT) "," FIELD("1", "b", INT)), KN_E_CORRUPT,
         "field id 1 is used by 'a' and 'b'"},
        {WRAP(FIELD("1", "a", INT) "," FIELD("2", "a", INT)), KN_E_CORRUPT,
         "multiple fields for name a: 1 and 2"},
        {WRAP(FIELD("1", "a.b",
                    INT) "," FIELD("2", "a", "'required':true,'type':" WRAP(FIELD("3", "b", INT)))),
         KN_E_CORRUPT, "multiple fields for name a.b: 1 and 3"},
        {WRAP(FIELD("1", "a", "'required':true,'type':'unknown'")), KN_E_CORRUPT,
         "field 'a': type unknown cannot be required"},
        {WRAP(FIELD("1", "a", INT ",'initial-default':'x'")), KN_E_CORRUPT,
         "initial-default of 'a': \"x\" is not a JSON value of type int"},
        {"{'type':'struct','identifier-field-ids':['x'],'fields':[]}", KN_E_CORRUPT,
         "field 'identifier-field-ids': expected 32-bit integers"},
    };
    Meta *m = *state;

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        KnSchema *schema = NULL;
        KnCode rc = parse(m, cases[i].json, &schema);
        assert_string_equal(m->err.msg, cases[i].message);
        assert_int_equal(rc, cases[i].code);
        assert_null(schema);
    }
}

static void identifier_fields_must_be_required_and_reachable(void **state)
{
    static const struct {
        const char *id, *message;
    } cases[] = {
        {"9", "Cannot add fieldId 9 as an identifier field: field does not exist"},
        {"2", "Cannot add field o as an identifier field: not a required field"},
        {"3", "Cannot add field f as an identifier field: must not be float or double field"},
        {"4", "Cannot add field s as an identifier field: not a primitive type field"},
        {"5", "Cannot add field a as an identifier field: must not be nested in an optional field"},
        {"7",
         "Cannot add field element as an identifier field: must not be nested in a list or a map"},
    };
    Meta *m = *state;
    KnSchema *schema = NULL;
    const char *fields =
        "'fields':["
        "{'id':1,'name':'i','required':true,'type':'int'},"
        "{'id':2,'name':'o','required':false,'type':'int'},"
        "{'id':3,'name':'f','required':true,'type':'float'},"
        "{'id':4,'name':'s','required':false,'type':" WRAP(FIELD(
            "5", "a",
            INT)) "},"
                  "{'id':6,'name':'l','required':true,'type':{'type':'list','element-id':7,"
                  "'element':'int','element-required':true}},"
                  "{'id':8,'name':'r','required':true,'type':" WRAP(FIELD("10", "a", INT)) "}]";

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const char *json = kn_arena_printf(
            m->arena, "{'type':'struct','identifier-field-ids':[%s],%s}", cases[i].id, fields);
        assert_int_equal(parse(m, json, &schema), KN_E_CORRUPT);
        assert_string_equal(m->err.msg, cases[i].message);
    }
    meta_ok(m, parse(m,
                     kn_arena_printf(m->arena, "{'type':'struct','identifier-field-ids':[1,10],%s}",
                                     fields),
                     &schema));
    assert_int_equal(schema->n_identifier_ids, 2);
}

static void nesting_beyond_the_limit_is_refused_in_json_and_text(void **state)
{
    Meta *m = *state;
    KN_BUF_AUTO json = {0};
    KN_BUF_AUTO text = {0};
    KnSchema *schema = NULL;

    kn_buf_init(&json, 1 << 20);
    kn_buf_init(&text, 1 << 20);
    kn_buf_text(&json, "{'type':'struct','fields':[{'id':1,'name':'a','required':true,'type':");
    kn_buf_text(&text, "a ");
    for (int i = 0; i < 80; i++) {
        kn_buf_printf(&json,
                      "{'type':'list','element-id':%d,'element-required':true,'element':", i + 2);
        kn_buf_text(&text, "list<");
    }
    kn_buf_text(&json, "'int'");
    kn_buf_text(&text, "int");
    for (int i = 0; i < 80; i++) {
        kn_buf_char(&json, '}');
        kn_buf_char(&text, '>');
    }
    kn_buf_text(&json, "}]}");
    assert_int_equal(parse(m, json.data, &schema), KN_E_CORRUPT);
    assert_string_equal(m->err.msg, "field 'a': types are nested deeper than 64 levels");
    assert_int_equal(kn_schema_parse_text(m->arena, kn_str(text.data), &schema, &m->err),
                     KN_E_INVAL);
    assert_string_equal(m->err.msg, "position 327: types are nested deeper than 64 levels");
}

static void typed_schemas_get_ids_breadth_first(void **state)
{
    static const struct {
        const char *name;
        int32_t id;
    } ids[] = {{"id", 1},     {"st", 2},      {"m", 3},
               {"d", 4},      {"f", 5},       {"a b", 6},
               {"st.a", 7},   {"st.b", 8},    {"st.b.element", 9},
               {"m.key", 10}, {"m.value", 11}};
    Meta *m = *state;
    KnSchema *schema =
        meta_schema(m, "id long required, st struct<a int required, b list<string>>, "
                       "m map<string,int>, d: decimal(9,2) optional, f fixed[16], `a b` date");

    for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++)
        assert_int_equal(kn_schema_find_name(schema, kn_str(ids[i].name))->id, ids[i].id);
    assert_true(schema->root.fields[0].required);
    assert_false(schema->root.fields[3].required);
    assert_int_equal(kn_schema_find_id(schema, 4)->type->precision, 9);
    assert_int_equal(kn_schema_find_id(schema, 5)->type->length, 16);
}

static void wrong_texts_say_where(void **state)
{
    static const char *const cases[][2] = {
        {"", "position 1: expected a name, found the end"},
        {"id", "position 3: expected a type, found the end"},
        {"id lon", "position 4: type 'lon' is not known"},
        {"id long, ", "position 10: expected a name, found the end"},
        {"id long name string", "position 9: expected ',' or the end, found 'name'"},
        {"1d long", "position 1: expected a name, found '1d'"},
        {"`id long", "position 9: expected a closing '`', found the end"},
        {"`` long", "position 4: expected a name, found 'long'"},
        {"a list<int", "position 11: expected '>', found the end"},
        {"a list int", "position 8: expected '<', found 'int'"},
        {"a map<string>", "position 13: expected ',', found '>'"},
        {"a struct<>", "position 10: expected a name, found '>'"},
        {"a decimal(9", "position 12: expected ')', found the end"},
        {"a decimal(99,2)", "position 3: type 'decimal(99,2)': a decimal has a precision of 1 to "
                            "38 and a scale up to that"},
        {"a int, a long", "multiple fields for name a: 1 and 2"},
        {"a \xff", "position 3: type '?' is not known"},
        {"\xff int", "position 2: the name before is not UTF-8"},
    };
    Meta *m = *state;

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        KnSchema *schema = NULL;
        KnCode rc = kn_schema_parse_text(m->arena, kn_str(cases[i][0]), &schema, &m->err);
        assert_string_equal(m->err.msg, cases[i][1]);
        assert_int_equal(rc, KN_E_INVAL);
        assert_null(schema);
    }
}

static void types_of_v3_are_refused_for_older_tables(void **state)
{
    static const char *const v3[] = {"timestamp_ns",      "timestamptz_ns", "unknown",
                                     "variant",           "geometry",       "geography(a)",
                                     "list<timestamp_ns>"};
    Meta *m = *state;
    KnSchema *schema = NULL;

    for (size_t i = 0; i < sizeof(v3) / sizeof(v3[0]); i++) {
        schema = meta_schema(m, kn_arena_printf(m->arena, "a %s", v3[i]));
        assert_int_equal(kn_schema_check_format(schema, 2, &m->err), KN_E_INVAL);
        assert_non_null(strstr(m->err.msg, "is not supported until v3"));
        meta_ok(m, kn_schema_check_format(schema, 3, &m->err));
    }
    meta_ok(m, parse(m, SCHEMA, &schema));
    assert_int_equal(kn_schema_check_format(schema, 2, &m->err), KN_E_INVAL);
    assert_string_equal(m->err.msg, "Invalid initial default for de: non-null default is not "
                                    "supported until v3");
    meta_ok(m, kn_schema_check_format(schema, 3, &m->err));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_schema_is_written_as_it_was_read, meta_setup,
                                        meta_teardown),
        cmocka_unit_test_setup_teardown(fields_are_found_by_id_and_by_dotted_name, meta_setup,
                                        meta_teardown),
        cmocka_unit_test_setup_teardown(a_name_with_dots_is_found_whole_and_as_a_path, meta_setup,
                                        meta_teardown),
        cmocka_unit_test_setup_teardown(projection_takes_top_level_columns_in_order, meta_setup,
                                        meta_teardown),
        cmocka_unit_test_setup_teardown(wrong_schemas_are_refused_with_the_reason, meta_setup,
                                        meta_teardown),
        cmocka_unit_test_setup_teardown(identifier_fields_must_be_required_and_reachable,
                                        meta_setup, meta_teardown),
        cmocka_unit_test_setup_teardown(nesting_beyond_the_limit_is_refused_in_json_and_text,
                                        meta_setup, meta_teardown),
        cmocka_unit_test_setup_teardown(typed_schemas_get_ids_breadth_first, meta_setup,
                                        meta_teardown),
        cmocka_unit_test_setup_teardown(wrong_texts_say_where, meta_setup, meta_teardown),
        cmocka_unit_test_setup_teardown(types_of_v3_are_refused_for_older_tables, meta_setup,
                                        meta_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
