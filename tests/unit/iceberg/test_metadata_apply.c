/* SPDX-License-Identifier: Apache-2.0 */
/* test_metadata_apply.c - requirements in Java's words, and updates of all but snapshots and refs.
 */
#include <string.h>

#include "unit/iceberg/meta_support.h"

#define N(array) (sizeof(array) / sizeof((array)[0]))

static bool same_document(Meta *m, const KnMetadata *a, const KnMetadata *b)
{
    KN_BUF_AUTO x = {0};
    KN_BUF_AUTO y = {0};

    kn_buf_init(&x, (size_t)1 << 24);
    kn_buf_init(&y, (size_t)1 << 24);
    meta_ok(m, kn_metadata_to_json(a, &x, &m->err));
    meta_ok(m, kn_metadata_to_json(b, &y, &m->err));
    return strcmp(x.data, y.data) == 0;
}

/* ---- requirements ---- */

static void requirements_fail_in_javas_words(void **state)
{
    Meta *m = *state;
    KN_METADATA_AUTO md = meta_commit(m, meta_create(m, 2), 5, 1000);
    const KnUpdate tag = meta_set_ref("v1", 5, false);
    md = meta_apply(m, md, &tag, 1);
    const struct {
        KnRequirement req;
        const char *message;
    } cases[] = {
        {{KN_REQUIRE_CREATE, NULL, 0}, "Requirement failed: table already exists"},
        {{KN_REQUIRE_UUID, "x", 0},
         kn_arena_printf(m->arena, "Requirement failed: UUID does not match: expected %s != x",
                         md->uuid)},
        {{KN_REQUIRE_REF_SNAPSHOT_ID, "main", 6},
         "Requirement failed: branch main has changed: expected id 6 != 5"},
        {{KN_REQUIRE_REF_SNAPSHOT_ID, "main", -1},
         "Requirement failed: branch main was created concurrently"},
        {{KN_REQUIRE_REF_SNAPSHOT_ID, "v1", 6},
         "Requirement failed: tag v1 has changed: expected id 6 != 5"},
        {{KN_REQUIRE_REF_SNAPSHOT_ID, "b", 6},
         "Requirement failed: branch or tag b is missing, expected 6"},
        {{KN_REQUIRE_LAST_ASSIGNED_FIELD_ID, NULL, 2},
         "Requirement failed: last assigned field id changed: expected id 2 != 3"},
        {{KN_REQUIRE_CURRENT_SCHEMA_ID, NULL, 1},
         "Requirement failed: current schema changed: expected id 1 != 0"},
        {{KN_REQUIRE_LAST_ASSIGNED_PARTITION_ID, NULL, 1000},
         "Requirement failed: last assigned partition id changed: expected id 1000 != 999"},
        {{KN_REQUIRE_DEFAULT_SPEC_ID, NULL, 1},
         "Requirement failed: default partition spec changed: expected id 1 != 0"},
        {{KN_REQUIRE_DEFAULT_SORT_ORDER_ID, NULL, 1},
         "Requirement failed: default sort order changed: expected id 1 != 0"},
    };

    for (size_t i = 0; i < N(cases); i++) {
        assert_int_equal(kn_metadata_check(md, &cases[i].req, 1, &m->err), KN_E_CONFLICT);
        assert_string_equal(m->err.msg, cases[i].message);
        assert_true(m->err.retriable);
    }
}

static void requirements_that_hold_pass(void **state)
{
    Meta *m = *state;
    KN_METADATA_AUTO md = meta_commit(m, meta_create(m, 2), 5, 1000);
    char *upper = kn_arena_strdup(m->arena, md->uuid);
    for (char *p = upper; *p; p++)
        if (*p >= 'a' && *p <= 'f')
            *p = (char)(*p - 'a' + 'A');
    const KnRequirement reqs[] = {{KN_REQUIRE_UUID, upper, 0},
                                  {KN_REQUIRE_REF_SNAPSHOT_ID, "main", 5},
                                  {KN_REQUIRE_REF_SNAPSHOT_ID, "b", -1},
                                  {KN_REQUIRE_LAST_ASSIGNED_FIELD_ID, NULL, 3},
                                  {KN_REQUIRE_CURRENT_SCHEMA_ID, NULL, 0},
                                  {KN_REQUIRE_LAST_ASSIGNED_PARTITION_ID, NULL, 999},
                                  {KN_REQUIRE_DEFAULT_SPEC_ID, NULL, 0},
                                  {KN_REQUIRE_DEFAULT_SORT_ORDER_ID, NULL, 0}};
    const KnRequirement fresh[] = {{KN_REQUIRE_CREATE, NULL, 0},
                                   {KN_REQUIRE_LAST_ASSIGNED_FIELD_ID, NULL, 9}};

    meta_ok(m, kn_metadata_check(md, reqs, N(reqs), &m->err));
    meta_ok(m, kn_metadata_check(NULL, fresh, N(fresh), &m->err));
    assert_int_equal(kn_metadata_check(NULL, reqs, 1, &m->err), KN_E_CONFLICT);
    assert_string_equal(m->err.msg, "Requirement failed: table does not exist");
}

/* ---- schemas, specs, orders ---- */

static void a_new_schema_is_added_and_made_current(void **state)
{
    Meta *m = *state;
    KN_METADATA_AUTO md = meta_create(m, 2);
    KnSchema *schema = NULL;
    KN_JSON_AUTO json = kn_schema_to_json(kn_metadata_schema(md));

    json_array_append(json_object_get(json, "fields"),
                      meta_json(m, "{'id':4,'name':'n','required':false,'type':'int'}"));
    meta_ok(m, kn_schema_parse(m->arena, json, &schema, &m->err));
    const KnUpdate updates[] = {{.kind = KN_UPDATE_ADD_SCHEMA, .schema = schema},
                                {.kind = KN_UPDATE_SET_CURRENT_SCHEMA, .number = -1}};
    md = meta_apply(m, md, updates, 2);
    assert_int_equal(md->n_schemas, 2);
    assert_int_equal(md->current_schema_id, 1);
    assert_int_equal(md->last_column_id, 4);
    /* the first one again: found, not added, and current */
    const KnUpdate back[] = {{.kind = KN_UPDATE_ADD_SCHEMA, .schema = md->schemas[0]},
                             {.kind = KN_UPDATE_SET_CURRENT_SCHEMA, .number = -1}};
    md = meta_apply(m, md, back, 2);
    assert_int_equal(md->n_schemas, 2);
    assert_int_equal(md->current_schema_id, 0);
    assert_int_equal(md->last_column_id, 4);
    const int64_t remove[] = {1}, current[] = {0};
    const KnUpdate drop = {.kind = KN_UPDATE_REMOVE_SCHEMAS, .ids = remove, .n_ids = 1};
    const KnUpdate drop_current = {.kind = KN_UPDATE_REMOVE_SCHEMAS, .ids = current, .n_ids = 1};
    meta_refused(m, md, &drop_current, 1, "Cannot remove the current schema");
    md = meta_apply(m, md, &drop, 1);
    assert_int_equal(md->n_schemas, 1);
}

static void unknown_ids_are_refused(void **state)
{
    Meta *m = *state;
    KN_METADATA_AUTO md = meta_create(m, 2);
    static const struct {
        KnUpdateKind kind;
        int64_t number;
        const char *message;
    } cases[] = {
        {KN_UPDATE_SET_CURRENT_SCHEMA, 7, "Cannot set current schema to unknown schema: 7"},
        {KN_UPDATE_SET_CURRENT_SCHEMA, -1,
         "Cannot set last added schema: no schema has been added"},
        {KN_UPDATE_SET_DEFAULT_SPEC, 7, "Cannot set default partition spec to unknown spec: 7"},
        {KN_UPDATE_SET_DEFAULT_SPEC, -1, "Cannot set last added spec: no spec has been added"},
        {KN_UPDATE_SET_DEFAULT_SORT_ORDER, 7, "Cannot set default sort order to unknown order: 7"},
        {KN_UPDATE_SET_DEFAULT_SORT_ORDER, -1,
         "Cannot set last added sort order: no sort order has been added"},
        {KN_UPDATE_UPGRADE_FORMAT_VERSION, 1, "Cannot downgrade v2 table to v1"},
        {KN_UPDATE_UPGRADE_FORMAT_VERSION, 4,
         "Cannot upgrade table to unsupported format version: v4 (supported: v3)"},
    };

    for (size_t i = 0; i < N(cases); i++) {
        const KnUpdate update = {.kind = cases[i].kind, .number = cases[i].number};
        meta_refused(m, md, &update, 1, cases[i].message);
    }
}

static KnPartitionSpec *unnumbered(Meta *m, const KnMetadata *md, const char *text)
{
    KnPartitionSpec *spec = NULL;

    meta_ok(m, kn_partition_spec_parse_text(m->arena, kn_metadata_schema(md), kn_str(text), &spec,
                                            &m->err));
    KN_JSON_AUTO json = kn_partition_spec_to_json(spec);
    for (size_t i = 0; i < spec->n_fields; i++)
        json_object_del(json_array_get(json_object_get(json, "fields"), i), "field-id");
    meta_ok(m, kn_partition_spec_parse(m->arena, json, &spec, &m->err));
    assert_int_equal(spec->n_fields ? spec->fields[0].field_id : 0, 0);
    return spec;
}

static KnMetadata *evolve(Meta *m, KnMetadata *md, const KnPartitionSpec *spec)
{
    const KnUpdate updates[] = {{.kind = KN_UPDATE_ADD_SPEC, .spec = spec},
                                {.kind = KN_UPDATE_SET_DEFAULT_SPEC, .number = -1}};

    return meta_apply(m, md, updates, 2);
}

static void partition_fields_keep_their_ids_through_evolution(void **state)
{
    Meta *m = *state;
    KN_METADATA_AUTO md = meta_create(m, 2);

    md = evolve(m, md, unnumbered(m, md, "day(ts)"));
    assert_int_equal(md->default_spec_id, 1);
    assert_int_equal(kn_metadata_spec(md)->fields[0].field_id, 1000);
    md = evolve(m, md, unnumbered(m, md, "hour(ts), bucket(4, id)"));
    assert_int_equal(md->default_spec_id, 2);
    assert_int_equal(kn_metadata_spec(md)->fields[0].field_id, 1001);
    assert_int_equal(kn_metadata_spec(md)->fields[1].field_id, 1002);
    md = evolve(m, md, unnumbered(m, md, "bucket(4, id), day(ts), name"));
    assert_int_equal(kn_metadata_spec(md)->fields[0].field_id, 1002);
    assert_int_equal(kn_metadata_spec(md)->fields[1].field_id, 1000);
    assert_int_equal(kn_metadata_spec(md)->fields[2].field_id, 1003);
    assert_int_equal(md->last_partition_id, 1003);
    md = evolve(m, md, unnumbered(m, md, "day(ts)"));
    assert_int_equal(md->default_spec_id, 1);
    assert_int_equal(md->n_specs, 4);
    assert_int_equal(md->last_partition_id, 1003);
}

static void an_id_that_means_something_else_is_given_anew(void **state)
{
    Meta *m = *state;
    KN_METADATA_AUTO md = meta_create(m, 2);
    KnPartitionSpec *spec = NULL;

    md = evolve(m, md, unnumbered(m, md, "day(ts)"));
    meta_ok(m, kn_partition_spec_parse_text(m->arena, kn_metadata_schema(md), KN_STR_LIT("name"),
                                            &spec, &m->err));
    assert_int_equal(spec->fields[0].field_id, 1000); /* day(ts) has that */
    md = evolve(m, md, spec);
    assert_int_equal(kn_metadata_spec(md)->fields[0].field_id, 1001);
}

static void specs_of_v1_must_be_sequential(void **state)
{
    Meta *m = *state;
    KN_METADATA_AUTO md = meta_create(m, 1);
    KnPartitionSpec *spec = NULL;

    md = evolve(m, md, unnumbered(m, md, "day(ts), name"));
    assert_int_equal(kn_metadata_spec(md)->fields[1].field_id, 1001);
    meta_ok(m, kn_partition_spec_parse(
                   m->arena,
                   meta_json(m, "{'fields':[{'name':'n','transform':'identity','source-id':3,"
                                "'field-id':1005}]}"),
                   &spec, &m->err));
    const KnUpdate update = {.kind = KN_UPDATE_ADD_SPEC, .spec = spec};
    meta_refused(m, md, &update, 1, "Spec does not use sequential IDs that are required in v1");
}

static void the_default_spec_and_order_hold_their_columns(void **state)
{
    Meta *m = *state;
    KN_METADATA_AUTO md = meta_create(m, 2);
    KnSchema *schema = NULL;
    KnSortOrder *order = NULL;

    md = evolve(m, md, unnumbered(m, md, "name"));
    meta_ok(m, kn_schema_parse(m->arena,
                               meta_json(m, "{'type':'struct','fields':["
                                            "{'id':1,'name':'id','required':true,'type':'long'}]}"),
                               &schema, &m->err));
    const KnUpdate drop[] = {{.kind = KN_UPDATE_ADD_SCHEMA, .schema = schema},
                             {.kind = KN_UPDATE_SET_CURRENT_SCHEMA, .number = -1}};
    meta_refused(m, md, drop, 2, "Cannot find source column for partition field: name");
    const KnUpdate unpartition = {.kind = KN_UPDATE_SET_DEFAULT_SPEC, .number = 0};
    md = meta_apply(m, md, &unpartition, 1);
    meta_ok(m, kn_sort_order_parse_text(m->arena, kn_metadata_schema(md), KN_STR_LIT("name"),
                                        &order, &m->err));
    const KnUpdate sort[] = {{.kind = KN_UPDATE_ADD_SORT_ORDER, .sort_order = order},
                             {.kind = KN_UPDATE_SET_DEFAULT_SORT_ORDER, .number = -1}};
    md = meta_apply(m, md, sort, 2);
    assert_int_equal(md->default_sort_order_id, 1);
    meta_refused(m, md, drop, 2, "Cannot find source column for sort field: identity(3)");
    const int64_t ids[] = {1}, now[] = {0};
    const KnUpdate remove = {.kind = KN_UPDATE_REMOVE_SPECS, .ids = ids, .n_ids = 1};
    const KnUpdate remove_default = {.kind = KN_UPDATE_REMOVE_SPECS, .ids = now, .n_ids = 1};
    meta_refused(m, md, &remove_default, 1, "Cannot remove the default partition spec");
    md = meta_apply(m, md, &remove, 1);
    assert_int_equal(md->n_specs, 1);
}

static void sort_orders_are_reused(void **state)
{
    static const char *const texts[] = {"id", "ts desc", "id", ""};
    static const int32_t want[] = {1, 2, 1, 0};
    Meta *m = *state;
    KN_METADATA_AUTO md = meta_create(m, 2);

    for (size_t i = 0; i < 4; i++) {
        KnSortOrder *order = NULL;
        meta_ok(m, kn_sort_order_parse_text(m->arena, kn_metadata_schema(md), kn_str(texts[i]),
                                            &order, &m->err));
        const KnUpdate updates[] = {{.kind = KN_UPDATE_ADD_SORT_ORDER, .sort_order = order},
                                    {.kind = KN_UPDATE_SET_DEFAULT_SORT_ORDER, .number = -1}};
        md = meta_apply(m, md, updates, 2);
        assert_int_equal(md->default_sort_order_id, want[i]);
    }
    assert_int_equal(md->n_sort_orders, 3);
}

/* ---- the rest ---- */

static void properties_location_uuid_and_statistics_are_set(void **state)
{
    Meta *m = *state;
    KN_METADATA_AUTO md = meta_commit(m, meta_create(m, 2), 11, 1000);
    const KnUpdate updates[] = {
        {.kind = KN_UPDATE_SET_PROPERTIES, .properties = meta_json(m, "{'a':'1','b':'2'}")},
        {.kind = KN_UPDATE_REMOVE_PROPERTIES, .properties = meta_json(m, "['a','c']")},
        {.kind = KN_UPDATE_SET_LOCATION, .text = "s3://x/y/"},
        {.kind = KN_UPDATE_ASSIGN_UUID, .text = "9c12d441-03fe-4693-9a96-a0705ddf69c1"},
        {.kind = KN_UPDATE_SET_STATISTICS,
         .json = meta_json(m, "{'snapshot-id':11,'statistics-path':'a'}")},
        {.kind = KN_UPDATE_SET_STATISTICS,
         .json = meta_json(m, "{'snapshot-id':11,'statistics-path':'b'}")},
        {.kind = KN_UPDATE_ADD_ENCRYPTION_KEY, .json = meta_json(m, "{'key-id':'k'}")},
        {.kind = KN_UPDATE_ADD_ENCRYPTION_KEY, .json = meta_json(m, "{'key-id':'l'}")},
        {.kind = KN_UPDATE_REMOVE_ENCRYPTION_KEY, .text = "k"}};

    md = meta_apply(m, md, updates, N(updates));
    assert_null(kn_metadata_property(md, "a", NULL));
    assert_string_equal(kn_metadata_property(md, "b", ""), "2");
    assert_string_equal(md->location, "s3://x/y");
    assert_string_equal(md->uuid, "9c12d441-03fe-4693-9a96-a0705ddf69c1");
    assert_int_equal(json_array_size(md->statistics), 1);
    assert_string_equal(
        json_string_value(json_object_get(json_array_get(md->statistics, 0), "statistics-path")),
        "b");
    assert_int_equal(json_array_size(md->encryption_keys), 1);
    const KnUpdate remove = {.kind = KN_UPDATE_REMOVE_STATISTICS, .number = 11};
    md = meta_apply(m, md, &remove, 1);
    assert_int_equal(json_array_size(md->statistics), 0);
}

static void wrong_values_are_refused(void **state)
{
    Meta *m = *state;
    KN_METADATA_AUTO md = meta_create(m, 2);
    const struct {
        KnUpdate update;
        const char *message;
    } cases[] = {
        {{.kind = KN_UPDATE_SET_PROPERTIES, .properties = meta_json(m, "{'a':1}")},
         "property 'a': expected a string"},
        {{.kind = KN_UPDATE_SET_PROPERTIES, .properties = meta_json(m, "[]")},
         "properties to set are an object of strings"},
        {{.kind = KN_UPDATE_REMOVE_PROPERTIES, .properties = meta_json(m, "[1]")},
         "properties to remove are an array of names"},
        {{.kind = KN_UPDATE_ASSIGN_UUID}, "Cannot set uuid to null"},
        {{.kind = KN_UPDATE_SET_LOCATION, .text = ""}, "Cannot set location to null"},
        {{.kind = KN_UPDATE_SET_LOCATION, .text = "\xff"},
         "an update holds text that is not UTF-8"},
        {{.kind = KN_UPDATE_SET_STATISTICS, .json = meta_json(m, "{}")},
         "field 'snapshot-id' is missing"},
    };

    for (size_t i = 0; i < N(cases); i++)
        meta_refused(m, md, &cases[i].update, 1, cases[i].message);
}

static void the_metadata_log_is_trimmed(void **state)
{
    Meta *m = *state;
    KN_METADATA_AUTO md = meta_create(m, 2);
    const KnUpdate keep3 = {.kind = KN_UPDATE_SET_PROPERTIES,
                            .properties =
                                meta_json(m, "{'write.metadata.previous-versions-max':'3'}")};
    int64_t last = 0;

    for (int i = 0; i < 6; i++) {
        KnMetadata *next = NULL;
        last = md->last_updated_ms;
        meta_ok(m, kn_metadata_apply(md, &keep3, 1, kn_arena_printf(m->arena, "f%d", i), &next,
                                     &m->err));
        kn_metadata_unref(md);
        md = next;
    }
    assert_int_equal(md->n_metadata_log, 3);
    assert_string_equal(md->metadata_log[0].metadata_file, "f3");
    assert_string_equal(md->metadata_log[2].metadata_file, "f5");
    assert_int_equal(md->metadata_log[2].timestamp_ms, last);
}

static void updates_that_change_nothing_give_the_same_document(void **state)
{
    Meta *m = *state;
    KN_METADATA_AUTO md = meta_commit(m, meta_create(m, 2), 11, 1000);
    const KnUpdate updates[] = {meta_set_ref("main", 11, true),
                                {.kind = KN_UPDATE_SET_LOCATION, .text = md->location},
                                {.kind = KN_UPDATE_ADD_SCHEMA, .schema = kn_metadata_schema(md)},
                                {.kind = KN_UPDATE_SET_CURRENT_SCHEMA, .number = -1},
                                {.kind = KN_UPDATE_UPGRADE_FORMAT_VERSION, .number = 2}};
    KN_METADATA_AUTO same = NULL;

    meta_ok(m, kn_metadata_apply(md, updates, N(updates), "file", &same, &m->err));
    assert_ptr_equal(same, md);
}

static void the_base_is_never_changed(void **state)
{
    Meta *m = *state;
    KN_METADATA_AUTO md = meta_load(m, "g_refs.metadata.json");
    KN_METADATA_AUTO before = meta_load(m, "g_refs.metadata.json");
    KN_METADATA_AUTO after = NULL;
    const int64_t ids[] = {md->snapshots[0].snapshot_id};
    const KnUpdate updates[] = {
        {.kind = KN_UPDATE_SET_PROPERTIES, .properties = meta_json(m, "{'x':'y'}")},
        {.kind = KN_UPDATE_REMOVE_SNAPSHOTS, .ids = ids, .n_ids = 1},
        {.kind = KN_UPDATE_REMOVE_SNAPSHOT_REF, .text = "dev"},
        {.kind = KN_UPDATE_UPGRADE_FORMAT_VERSION, .number = 3}};

    meta_ok(m, kn_metadata_apply(md, updates, N(updates), "file", &after, &m->err));
    assert_true(same_document(m, md, before));
    assert_int_equal(after->format_version, 3);
    assert_int_equal(after->next_row_id, 0);
}

static void v1_is_upgraded_step_by_step(void **state)
{
    Meta *m = *state;
    KN_METADATA_AUTO md = meta_load(m, "v1_minimal.metadata.json");
    const KnUpdate to2 = {.kind = KN_UPDATE_UPGRADE_FORMAT_VERSION, .number = 2};
    const KnUpdate to3 = {.kind = KN_UPDATE_UPGRADE_FORMAT_VERSION, .number = 3};
    KN_BUF_AUTO text = {0};

    md = meta_apply(m, md, &to2, 1);
    assert_non_null(md->uuid);
    md = meta_commit(m, md, 11, md->last_updated_ms + 1);
    assert_int_equal(md->last_sequence_number, 1);
    md = meta_apply(m, md, &to3, 1);
    md = meta_commit(m, md, 12, md->last_updated_ms + 1);
    assert_int_equal(md->next_row_id, 10);
    kn_buf_init(&text, (size_t)1 << 20);
    meta_ok(m, kn_metadata_to_json(md, &text, &m->err));
    assert_null(strstr(text.data, "\"schema\":"));
    assert_null(strstr(text.data, "\"partition-spec\":"));
}

static void a_table_is_created_by_updates_alone(void **state)
{
    Meta *m = *state;
    KN_METADATA_AUTO md = NULL;
    const KnSchema *schema = meta_schema(m, "a int, b string");
    const KnUpdate updates[] = {
        {.kind = KN_UPDATE_ASSIGN_UUID, .text = "9c12d441-03fe-4693-9a96-a0705ddf69c1"},
        {.kind = KN_UPDATE_UPGRADE_FORMAT_VERSION, .number = 1},
        {.kind = KN_UPDATE_ADD_SCHEMA, .schema = schema},
        {.kind = KN_UPDATE_SET_CURRENT_SCHEMA, .number = -1},
        {.kind = KN_UPDATE_SET_LOCATION, .text = "file:///t"}};

    meta_ok(m, kn_metadata_apply(NULL, updates, N(updates), NULL, &md, &m->err));
    assert_int_equal(md->format_version, 1);
    assert_int_equal(md->n_specs, 1);
    assert_int_equal(md->n_sort_orders, 1);
    meta_refused(m, NULL, updates, 2, "a new table needs a location");
    meta_refused(m, NULL, &updates[4], 1, "a new table needs a schema");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define CASE(name) cmocka_unit_test_setup_teardown(name, meta_setup, meta_teardown)
        CASE(requirements_fail_in_javas_words),
        CASE(requirements_that_hold_pass),
        CASE(a_new_schema_is_added_and_made_current),
        CASE(unknown_ids_are_refused),
        CASE(partition_fields_keep_their_ids_through_evolution),
        CASE(an_id_that_means_something_else_is_given_anew),
        CASE(specs_of_v1_must_be_sequential),
        CASE(the_default_spec_and_order_hold_their_columns),
        CASE(sort_orders_are_reused),
        CASE(properties_location_uuid_and_statistics_are_set),
        CASE(wrong_values_are_refused),
        CASE(the_metadata_log_is_trimmed),
        CASE(updates_that_change_nothing_give_the_same_document),
        CASE(the_base_is_never_changed),
        CASE(v1_is_upgraded_step_by_step),
        CASE(a_table_is_created_by_updates_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
