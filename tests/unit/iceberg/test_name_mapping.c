/* SPDX-License-Identifier: Apache-2.0 */
/* test_name_mapping.c - the property schema.name-mapping.default. */
#include <string.h>

#include "unit/iceberg/meta_support.h"

static KnCode parse(Meta *m, const char *json, const KnNameMapping **ret)
{
    return kn_name_mapping_parse(m->arena, kn_str(meta_quotes(m, json)), ret, &m->err);
}

static void the_example_of_the_specification_is_read(void **state)
{
    Meta *m = *state;
    const KnNameMapping *root = NULL;

    meta_ok(m, parse(m,
                     "[ { 'field-id': 1, 'names': ['id', 'record_id'] },"
                     "  { 'field-id': 2, 'names': ['data'] },"
                     "  { 'field-id': 3, 'names': ['location'], 'fields': ["
                     "      { 'field-id': 4, 'names': ['latitude', 'lat'] },"
                     "      { 'field-id': 5, 'names': ['longitude', 'long'] } ] } ]",
                     &root));
    assert_int_equal(root->n_fields, 3);
    assert_int_equal(root->field_id, -1);
    assert_int_equal(root->fields[0].field_id, 1);
    assert_string_equal(root->fields[0].names[1], "record_id");
    assert_int_equal(root->fields[2].n_fields, 2);
    assert_int_equal(root->fields[2].fields[1].field_id, 5);
    assert_string_equal(root->fields[2].fields[1].names[0], "longitude");
}

static void a_node_may_have_no_id_and_no_name(void **state)
{
    Meta *m = *state;
    const KnNameMapping *root = NULL;

    meta_ok(m, parse(m, "[{'names':['x']},{'field-id':2,'names':[]}]", &root));
    assert_int_equal(root->fields[0].field_id, -1);
    assert_int_equal(root->fields[1].n_names, 0);
}

static void names_repeat_only_on_different_levels(void **state)
{
    Meta *m = *state;
    const KnNameMapping *root = NULL;

    meta_ok(m, parse(m, "[{'field-id':1,'names':['a'],'fields':[{'field-id':2,'names':['a']}]}]",
                     &root));
    assert_int_equal(
        parse(m, "[{'field-id':1,'names':['a']},{'field-id':2,'names':['b','a']}]", &root),
        KN_E_CORRUPT);
    assert_string_equal(m->err.msg, "schema.name-mapping.default: name 'a' is mapped twice");
}

static void wrong_mappings_are_refused_with_the_reason(void **state)
{
    static const char *const cases[][2] = {
        {"{}", "schema.name-mapping.default: a name mapping is a JSON array"},
        {"[{'field-id':1}]",
         "schema.name-mapping.default: field 'names' is missing: expected an array"},
        {"[{'field-id':1,'names':[2]}]",
         "schema.name-mapping.default: field 'names': expected strings"},
        {"[{'field-id':'x','names':[]}]",
         "schema.name-mapping.default: field 'field-id': expected an integer, found a string"},
        {"[7]", "schema.name-mapping.default: field 'field-id': expected to be in an object, found "
                "an integer"},
    };
    Meta *m = *state;

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const KnNameMapping *root = NULL;
        assert_int_equal(parse(m, cases[i][0], &root), KN_E_CORRUPT);
        assert_string_equal(m->err.msg, cases[i][1]);
        assert_null(root);
    }
    const KnNameMapping *root = NULL;
    assert_int_equal(parse(m, "[", &root), KN_E_CORRUPT);
    assert_non_null(strstr(m->err.msg, "schema.name-mapping.default: not valid JSON"));
}

static void the_mapping_of_a_real_table_is_read(void **state)
{
    Meta *m = *state;
    KnMetadata *md = meta_load(m, "g_namemap.metadata.json");
    const char *text = kn_metadata_property(md, "schema.name-mapping.default", NULL);
    const KnNameMapping *root = NULL;

    assert_non_null(text);
    meta_ok(m, kn_name_mapping_parse(m->arena, kn_str(text), &root, &m->err));
    assert_true(root->n_fields >= 3);
    for (size_t i = 0; i < root->n_fields; i++)
        assert_non_null(kn_metadata_find_field(md, root->fields[i].field_id));
    kn_metadata_unref(md);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_example_of_the_specification_is_read, meta_setup,
                                        meta_teardown),
        cmocka_unit_test_setup_teardown(a_node_may_have_no_id_and_no_name, meta_setup,
                                        meta_teardown),
        cmocka_unit_test_setup_teardown(names_repeat_only_on_different_levels, meta_setup,
                                        meta_teardown),
        cmocka_unit_test_setup_teardown(wrong_mappings_are_refused_with_the_reason, meta_setup,
                                        meta_teardown),
        cmocka_unit_test_setup_teardown(the_mapping_of_a_real_table_is_read, meta_setup,
                                        meta_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
