/* SPDX-License-Identifier: Apache-2.0 */
/* test_partition.c - partition specs and sort orders: JSON, typed texts, tuple types, folder names.
 */
#include <string.h>

#include "iceberg/schema/partition_internal.h"
#include "unit/iceberg/meta_support.h"

#define SCHEMA                                                                                     \
    "id long required, ts timestamptz, name string, region string, st struct<a int, b double>, "   \
    "li list<int>, d date, bi binary, de decimal(9,2), f double, `a b` string"

static KnPartitionSpec *spec_text(Meta *m, const char *text)
{
    KnPartitionSpec *spec = NULL;

    meta_ok(m, kn_partition_spec_parse_text(m->arena, meta_schema(m, SCHEMA), kn_str(text), &spec,
                                            &m->err));
    return spec;
}

static void a_spec_is_written_as_it_was_read(void **state)
{
    static const char *const json =
        "{'spec-id':3,'fields':[{'name':'ts_day','transform':'day','source-id':4,'field-id':1000},"
        "{'name':'id_bucket','transform':'bucket[16]','source-id':1,'field-id':1001},"
        "{'name':'z','transform':'zorder[2]','source-id':1,'field-id':1002}]}";
    Meta *m = *state;
    KnPartitionSpec *spec = NULL;

    meta_ok(m, kn_partition_spec_parse(m->arena, meta_json(m, json), &spec, &m->err));
    KN_JSON_AUTO out = kn_partition_spec_to_json(spec);
    assert_true(json_equal(out, meta_json(m, json)));
    assert_int_equal(spec->fields[2].transform.kind, KN_TRANSFORM_UNKNOWN);
    assert_false(kn_partition_is_unpartitioned(spec));
    assert_int_equal(kn_partition_last_id(spec), 1002);
    assert_true(kn_partition_spec_sequential(spec));
}

static void fields_of_v1_are_numbered_by_position(void **state)
{
    Meta *m = *state;
    KnPartitionSpec *spec = NULL;

    meta_ok(m, kn_partition_fields_parse(
                   m->arena,
                   meta_json(m, "[{'name':'x','transform':'identity','source-id':1},"
                                "{'name':'y','transform':'void','source-ids':[2]}]"),
                   &spec, &m->err));
    assert_int_equal(spec->fields[0].field_id, 1000);
    assert_int_equal(spec->fields[1].field_id, 1001);
    assert_int_equal(spec->fields[1].source_id, 2);
    assert_int_equal(spec->spec_id, 0);
}

static void a_spec_of_void_fields_is_unpartitioned(void **state)
{
    Meta *m = *state;

    assert_true(kn_partition_is_unpartitioned(spec_text(m, "")));
    assert_true(kn_partition_is_unpartitioned(spec_text(m, "void(id), void(ts)")));
    assert_false(kn_partition_is_unpartitioned(spec_text(m, "void(id), region")));
}

#define FIELD "'name':'x','transform':'identity','source-id':1"

static void wrong_specs_are_refused_with_the_reason(void **state)
{
    static const struct {
        const char *json;
        KnCode code;
        const char *message;
    } cases[] = {
        {"{}", KN_E_CORRUPT, "field 'fields' is missing: expected an array"},
        {"{'fields':[{'name':'x','transform':'day'}]}", KN_E_CORRUPT,
         "partition field 0: field 'source-id' is missing: expected an integer"},
        {"{'fields':[{'name':'x','source-id':1}]}", KN_E_CORRUPT,
         "partition field 0: field 'transform' is missing: expected a string"},
        {"{'fields':[{'name':'x','transform':'bucket[0]','source-id':1}]}", KN_E_CORRUPT,
         "partition field 0: transform 'bucket[0]': the number must be 1 to 2147483647"},
        {"{'fields':[{" FIELD ",'field-id':1000},{" FIELD ",'field-id':1001}]}", KN_E_CORRUPT,
         "Cannot use partition name more than once: x"},
        {"{'fields':[{" FIELD ",'field-id':1000},"
         "{'name':'y','transform':'void','source-id':1,'field-id':1000}]}",
         KN_E_CORRUPT, "partition field id 1000 is used twice"},
        {"{'fields':[{" FIELD ",'field-id':1000},{'name':'y','transform':'void','source-id':1}]}",
         KN_E_CORRUPT, "Cannot parse spec with missing field IDs: 1 missing of 2 fields"},
        {"{'fields':[{'name':'x','transform':'zorder','source-ids':[1,2]}]}", KN_E_UNSUPPORTED,
         "partition field 0: field 'source-ids': transforms of several columns are not known"},
    };
    Meta *m = *state;

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        KnPartitionSpec *spec = NULL;
        KnCode rc = kn_partition_spec_parse(m->arena, meta_json(m, cases[i].json), &spec, &m->err);
        assert_string_equal(m->err.msg, cases[i].message);
        assert_int_equal(rc, cases[i].code);
        assert_null(spec);
    }
}

static void typed_specs_are_bound_to_columns(void **state)
{
    static const struct {
        const char *name, *transform;
        int32_t source_id;
    } want[] = {{"ts_day", "day", 2},
                {"id_bucket", "bucket[16]", 1},
                {"name_trunc", "truncate[4]", 3},
                {"region", "identity", 4},
                {"st.a", "identity", 12},
                {"h", "hour", 2},
                {"a b_bucket", "bucket[3]", 11}};
    Meta *m = *state;
    KnPartitionSpec *spec = spec_text(m, "day(ts), bucket(16, id), Truncate( name , 4 ), region, "
                                         "st.a, hour(ts) as h, bucket(3, `a b`)");

    assert_int_equal(spec->n_fields, 7);
    for (size_t i = 0; i < spec->n_fields; i++) {
        assert_string_equal(spec->fields[i].name, want[i].name);
        assert_string_equal(spec->fields[i].transform.text, want[i].transform);
        assert_int_equal(spec->fields[i].source_id, want[i].source_id);
        assert_int_equal(spec->fields[i].field_id, 1000 + (int)i);
    }
}

static void wrong_spec_texts_say_what_is_wrong(void **state)
{
    static const char *const cases[][2] = {
        {"nope", "position 1: column 'nope' does not exist"},
        {"region, day( nope)", "position 14: column 'nope' does not exist"},
        {"day(ts", "position 7: expected ')', found the end"},
        {"week(ts)", "position 1: 'week' is not a transform (identity, bucket, truncate, year, "
                     "month, day, hour, void are)"},
        {"bucket(id)", "position 10: expected ',', found ')'"},
        {"bucket(0, id)", "position 1: bucket[0] is not a transform"},
        {"bucket(id, x)", "position 12: expected a number, found 'x'"},
        {"region id", "position 8: expected ',', found 'id'"},
        {"region, region", "Cannot use partition name more than once: region"},
        {"li", "Cannot partition by non-primitive source field: list<int>"},
        {"hour(d)", "Invalid source type date for transform: hour"},
        {"bucket(4, f)", "Invalid source type double for transform: bucket[4]"},
        {"day(ts) as region", "Cannot create partition from name that exists in schema: region"},
    };
    Meta *m = *state;

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        KnPartitionSpec *spec = NULL;
        assert_int_equal(kn_partition_spec_parse_text(m->arena, meta_schema(m, SCHEMA),
                                                      kn_str(cases[i][0]), &spec, &m->err),
                         KN_E_INVAL);
        assert_string_equal(m->err.msg, cases[i][1]);
        assert_null(spec);
    }
}

static void the_tuple_type_outlives_dropped_columns(void **state)
{
    static const KnTypeKind want[] = {KN_TYPE_DATE, KN_TYPE_INT, KN_TYPE_STRING, KN_TYPE_INT,
                                      KN_TYPE_DATE, KN_TYPE_INT, KN_TYPE_UNKNOWN};
    static const char *const json =
        "{'spec-id':0,'fields':["
        "{'name':'a','transform':'day','source-id':2,'field-id':1000},"
        "{'name':'b','transform':'bucket[2]','source-id':1,'field-id':1001},"
        "{'name':'c','transform':'identity','source-id':3,'field-id':1002},"
        "{'name':'d','transform':'bucket[2]','source-id':99,'field-id':1003},"
        "{'name':'e','transform':'day','source-id':99,'field-id':1004},"
        "{'name':'f','transform':'hour','source-id':99,'field-id':1005},"
        "{'name':'g','transform':'identity','source-id':99,'field-id':1006}]}";
    Meta *m = *state;
    KnPartitionSpec *spec = NULL;
    const KnType *type = NULL;

    meta_ok(m, kn_partition_spec_parse(m->arena, meta_json(m, json), &spec, &m->err));
    meta_ok(m, kn_partition_type(m->arena, spec, meta_schema(m, SCHEMA), &type, &m->err));
    assert_int_equal(type->n_fields, 7);
    for (size_t i = 0; i < 7; i++) {
        assert_int_equal(type->fields[i].type->kind, want[i]);
        assert_int_equal(type->fields[i].id, 1000 + (int)i);
        assert_false(type->fields[i].required);
    }
}

/* The names are those that Spark with Java's PartitionSpec gave such tuples. */
static void folder_names_are_javas(void **state)
{
    static const struct {
        const char *spec, *result_type, *value, *path;
    } cases[] = {
        {"region", "string", "a b/c?d=\xc3\xa9%&:x", "region=a+b%2Fc%3Fd%3D%C3%A9%25%26%3Ax"},
        {"region", "string", "", "region="},
        {"region", "string", "..", "region=.."},
        {"region", "string", NULL, "region=null"},
        {"day(ts)", "date", "1969-12-31", "ts_day=1969-12-31"},
        {"ts", "timestamptz", "2026-01-31T10:20:30.5Z", "ts=2026-01-31T10%3A20%3A30.5%2B00%3A00"},
        {"year(ts)", "int", "-1", "ts_year=1969"},
        {"month(ts)", "int", "-1", "ts_month=1969-12"},
        {"month(ts)", "int", "574", "ts_month=2017-11"},
        {"hour(ts)", "int", "-1", "ts_hour=1969-12-31-23"},
        {"bucket(16, id)", "int", "3", "id_bucket=3"},
        {"bi", "binary", "0x010203", "bi=AQID"},
        {"bi", "binary", "0xfffe", "bi=%2F%2F4%3D"},
        {"bi", "binary", "0x00", "bi=AA%3D%3D"},
        {"de", "decimal(9,2)", "-0.10", "de=-0.10"},
        {"f", "double", "nan", "f=NaN"},
        {"f", "double", "-0.0", "f=-0.0"},
        {"`a b`", "string", "x", "a+b=x"},
    };
    Meta *m = *state;

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        KnPartitionSpec *spec = spec_text(m, cases[i].spec);
        const KnType *type = NULL;
        KnValue value = {.null = true};
        KN_BUF_AUTO path = {0};

        kn_buf_init(&path, 4096);
        meta_ok(m, kn_partition_type(m->arena, spec, meta_schema(m, SCHEMA), &type, &m->err));
        assert_true(kn_type_equal(type->fields[0].type, meta_type(m, cases[i].result_type)));
        if (cases[i].value)
            value = meta_value(m, type->fields[0].type, cases[i].value);
        meta_ok(m, kn_partition_path(&path, spec, type, &value, &m->err));
        assert_string_equal(path.data, cases[i].path);
    }
}

static void levels_of_a_folder_are_joined(void **state)
{
    Meta *m = *state;
    KnPartitionSpec *spec = spec_text(m, "day(ts), bucket(4, id)");
    const KnType *type = NULL;
    KN_BUF_AUTO path = {0};

    kn_buf_init(&path, 4096);
    meta_ok(m, kn_partition_type(m->arena, spec, meta_schema(m, SCHEMA), &type, &m->err));
    const KnValue values[] = {meta_value(m, type->fields[0].type, "2026-01-31"),
                              meta_value(m, type->fields[1].type, "3")};
    meta_ok(m, kn_partition_path(&path, spec, type, values, &m->err));
    assert_string_equal(path.data, "ts_day=2026-01-31/id_bucket=3");
}

static void sort_orders_are_written_as_they_were_read(void **state)
{
    static const char *const json =
        "{'order-id':3,'fields':[{'transform':'identity','source-id':2,'direction':'asc',"
        "'null-order':'nulls-first'},{'transform':'bucket[4]','source-id':3,'direction':'desc',"
        "'null-order':'nulls-last'}]}";
    Meta *m = *state;
    KnSortOrder *order = NULL;

    meta_ok(m, kn_sort_order_parse(m->arena, meta_json(m, json), &order, &m->err));
    KN_JSON_AUTO out = kn_sort_order_to_json(order);
    assert_true(json_equal(out, meta_json(m, json)));
}

static void wrong_sort_orders_are_refused(void **state)
{
    static const char *const cases[][2] = {
        {"{'fields':[]}", "field 'order-id' is missing: expected an integer"},
        {"{'order-id':1}", "field 'fields' is missing: expected an array"},
        {"{'order-id':1,'fields':[{'transform':'identity','source-id':1,'direction':'up',"
         "'null-order':'nulls-first'}]}",
         "sort field 0: field 'direction': expected 'asc' or 'desc', found 'up'"},
        {"{'order-id':0,'fields':[{'transform':'identity','source-id':1,'direction':'asc',"
         "'null-order':'nulls-first'}]}",
         "sort order 0 is the unsorted one: it has no fields"},
    };
    Meta *m = *state;

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        KnSortOrder *order = NULL;
        assert_int_equal(kn_sort_order_parse(m->arena, meta_json(m, cases[i][0]), &order, &m->err),
                         KN_E_CORRUPT);
        assert_string_equal(m->err.msg, cases[i][1]);
    }
}

static void typed_sort_orders_are_bound_to_columns(void **state)
{
    Meta *m = *state;
    const KnSchema *schema = meta_schema(m, SCHEMA);
    KnSortOrder *order = NULL;

    meta_ok(m, kn_sort_order_parse_text(
                   m->arena, schema,
                   KN_STR_LIT("id, ts DESC, st.b asc nulls last, bucket(4, name) desc nulls first"),
                   &order, &m->err));
    assert_int_equal(order->order_id, 1);
    assert_int_equal(order->n_fields, 4);
    assert_false(order->fields[0].descending);
    assert_false(order->fields[0].nulls_last);
    assert_true(order->fields[1].descending);
    assert_true(order->fields[1].nulls_last);
    assert_int_equal(order->fields[2].source_id, 13);
    assert_true(order->fields[2].nulls_last);
    assert_string_equal(order->fields[3].transform.text, "bucket[4]");
    assert_false(order->fields[3].nulls_last);
    meta_ok(m, kn_sort_order_parse_text(m->arena, schema, KN_STR_LIT(" "), &order, &m->err));
    assert_int_equal(order->order_id, 0);
    assert_int_equal(
        kn_sort_order_parse_text(m->arena, schema, KN_STR_LIT("id nulls"), &order, &m->err),
        KN_E_INVAL);
    assert_string_equal(m->err.msg, "position 9: expected 'first' or 'last', found the end");
    assert_int_equal(kn_sort_order_parse_text(m->arena, schema, KN_STR_LIT("li"), &order, &m->err),
                     KN_E_INVAL);
    assert_string_equal(m->err.msg, "Cannot sort by non-primitive source field: list<int>");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define CASE(name) cmocka_unit_test_setup_teardown(name, meta_setup, meta_teardown)
        CASE(a_spec_is_written_as_it_was_read),
        CASE(fields_of_v1_are_numbered_by_position),
        CASE(a_spec_of_void_fields_is_unpartitioned),
        CASE(wrong_specs_are_refused_with_the_reason),
        CASE(typed_specs_are_bound_to_columns),
        CASE(wrong_spec_texts_say_what_is_wrong),
        CASE(the_tuple_type_outlives_dropped_columns),
        CASE(folder_names_are_javas),
        CASE(levels_of_a_folder_are_joined),
        CASE(sort_orders_are_written_as_they_were_read),
        CASE(wrong_sort_orders_are_refused),
        CASE(typed_sort_orders_are_bound_to_columns),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
