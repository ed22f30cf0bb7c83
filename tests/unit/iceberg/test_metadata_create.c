/* SPDX-License-Identifier: Apache-2.0 */
/* test_metadata_create.c - the first document of a table. */
#include <string.h>

#include "unit/iceberg/meta_support.h"

static void a_new_table_gets_ids_breadth_first(void **state)
{
    Meta *m = *state;
    json_t *json =
        meta_json(m, "{'type':'struct','identifier-field-ids':[70,90],'fields':["
                     "{'id':90,'name':'id','required':true,'type':'long'},"
                     "{'id':50,'name':'st','required':true,'type':{'type':'struct','fields':["
                     "{'id':70,'name':'a','required':true,'type':'int'},"
                     "{'id':60,'name':'l','required':false,'type':{'type':'list','element-id':40,"
                     "'element':'string','element-required':false}}]}},"
                     "{'id':30,'name':'d','required':false,'type':'date','doc':'when'}]}");
    KnSchema *schema = NULL;
    KnPartitionSpec *spec = NULL;
    KnSortOrder *order = NULL;
    KN_METADATA_AUTO md = NULL;

    meta_ok(m, kn_schema_parse(m->arena, json, &schema, &m->err));
    meta_ok(m, kn_partition_spec_parse_text(m->arena, schema, KN_STR_LIT("day(d), bucket(4, st.a)"),
                                            &spec, &m->err));
    meta_ok(m,
            kn_sort_order_parse_text(m->arena, schema, KN_STR_LIT("st.a desc"), &order, &m->err));
    const KnCreateTable table = {
        .format_version = 2,
        .location = "s3://b/t/",
        .schema = schema,
        .spec = spec,
        .sort_order = order,
        .properties = meta_json(m, "{'owner':'me','format-version':'2','uuid':'x'}")};
    meta_ok(m, kn_metadata_create(&table, &md, &m->err));

    const KnSchema *fresh = kn_metadata_schema(md);
    assert_int_equal(fresh->schema_id, 0);
    assert_int_equal(kn_schema_find_name(fresh, KN_STR_LIT("id"))->id, 1);
    assert_int_equal(kn_schema_find_name(fresh, KN_STR_LIT("st"))->id, 2);
    assert_int_equal(kn_schema_find_name(fresh, KN_STR_LIT("d"))->id, 3);
    assert_int_equal(kn_schema_find_name(fresh, KN_STR_LIT("st.a"))->id, 4);
    assert_int_equal(kn_schema_find_name(fresh, KN_STR_LIT("st.l"))->id, 5);
    assert_int_equal(kn_schema_find_name(fresh, KN_STR_LIT("st.l.element"))->id, 6);
    assert_string_equal(kn_schema_find_id(fresh, 3)->doc, "when");
    assert_int_equal(fresh->identifier_ids[0], 4);
    assert_int_equal(fresh->identifier_ids[1], 1);
    assert_int_equal(md->last_column_id, 6);
    assert_int_equal(kn_metadata_spec(md)->spec_id, 0);
    assert_int_equal(kn_metadata_spec(md)->fields[0].source_id, 3);
    assert_int_equal(kn_metadata_spec(md)->fields[1].source_id, 4);
    assert_int_equal(kn_metadata_spec(md)->fields[1].field_id, 1001);
    assert_int_equal(md->last_partition_id, 1001);
    assert_int_equal(md->default_sort_order_id, 1);
    assert_int_equal(kn_metadata_sort_order(md)->fields[0].source_id, 4);
    assert_string_equal(md->location, "s3://b/t");
    assert_int_equal(strlen(md->uuid), 36);
    assert_string_equal(kn_metadata_property(md, "owner", ""), "me");
    assert_null(kn_metadata_property(md, "format-version", NULL));
    assert_null(kn_metadata_property(md, "uuid", NULL));
    assert_int_equal(md->current_snapshot_id, -1);
    assert_int_equal(md->last_sequence_number, 0);
    assert_true(md->last_updated_ms > INT64_C(1700000000000));
}

static void an_unpartitioned_unsorted_table_has_the_empty_ones(void **state)
{
    Meta *m = *state;

    for (int32_t version = 1; version <= 3; version++) {
        KN_METADATA_AUTO md = meta_create(m, version);
        assert_int_equal(md->format_version, version);
        assert_int_equal(md->n_specs, 1);
        assert_int_equal(kn_metadata_spec(md)->n_fields, 0);
        assert_int_equal(md->last_partition_id, 999);
        assert_int_equal(md->n_sort_orders, 1);
        assert_int_equal(md->default_sort_order_id, 0);
        assert_int_equal(md->n_snapshot_log + md->n_metadata_log + md->n_refs, 0);
    }
}

static void wrong_tables_are_not_created(void **state)
{
    Meta *m = *state;
    KnMetadata *md = NULL;
    KnSchema *v3 = meta_schema(m, "a timestamp_ns");
    KnSchema *plain = meta_schema(m, "a int");
    KnCreateTable table = {.format_version = 2, .location = "l", .schema = v3};

    assert_int_equal(kn_metadata_create(&table, &md, &m->err), KN_E_INVAL);
    assert_string_equal(m->err.msg, "Invalid type for a: timestamp_ns is not supported until v3");
    table.schema = plain;
    table.format_version = 4;
    assert_int_equal(kn_metadata_create(&table, &md, &m->err), KN_E_INVAL);
    assert_string_equal(m->err.msg, "Unsupported format version: v4 (supported: v3)");
    table.format_version = 2;
    table.location = "";
    assert_int_equal(kn_metadata_create(&table, &md, &m->err), KN_E_INVAL);
    assert_string_equal(m->err.msg, "Cannot set location to null");
    const int32_t ids[] = {1};
    KnSchema optional_key = *plain;
    optional_key.identifier_ids = ids;
    optional_key.n_identifier_ids = 1;
    table.location = "l";
    table.schema = &optional_key;
    assert_int_equal(kn_metadata_create(&table, &md, &m->err), KN_E_INVAL);
    assert_string_equal(m->err.msg,
                        "Cannot add field a as an identifier field: not a required field");
    assert_null(md);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define CASE(name) cmocka_unit_test_setup_teardown(name, meta_setup, meta_teardown)
        CASE(a_new_table_gets_ids_breadth_first),
        CASE(an_unpartitioned_unsorted_table_has_the_empty_ones),
        CASE(wrong_tables_are_not_created),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
