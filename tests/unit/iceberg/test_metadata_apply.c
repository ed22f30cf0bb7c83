/* SPDX-License-Identifier: Apache-2.0 */
/* test_metadata_apply.c - creating tables, requirements in Java's words, and every kind of update.
 */
#include <string.h>

#include "unit/iceberg/meta_support.h"

#define N(array) (sizeof(array) / sizeof((array)[0]))

/* A table of v2 or v3: id, ts, name; one snapshot 1 at time 1000 when asked. */
static KnMetadata *create(Meta *m, int32_t version)
{
    KnMetadata *md = NULL;
    const KnCreateTable table = {
        .format_version = version,
        .location = "file:///w/t//",
        .schema = meta_schema(m, "id long required, ts timestamptz, name string")};

    meta_ok(m, kn_metadata_create(&table, &md, &m->err));
    return md;
}

static KnMetadata *apply(Meta *m, KnMetadata *base, const KnUpdate *updates, size_t n)
{
    KnMetadata *md = NULL;

    meta_ok(m, kn_metadata_apply(base, updates, n, NULL, &md, &m->err));
    kn_metadata_unref(base);
    return md;
}

static void refused(Meta *m, const KnMetadata *base, const KnUpdate *updates, size_t n,
                    const char *message)
{
    KnMetadata *md = NULL;
    KnCode rc = kn_metadata_apply(base, updates, n, NULL, &md, &m->err);

    assert_string_equal(m->err.msg, message);
    assert_int_equal(rc, KN_E_INVAL);
    assert_int_equal(m->err.code, KN_E_INVAL);
    assert_null(md);
}

static KnUpdate add_snapshot(const KnMetadata *md, int64_t id, int64_t at_ms)
{
    return (KnUpdate){
        .kind = KN_UPDATE_ADD_SNAPSHOT,
        .snapshot = {.snapshot_id = id,
                     .parent_id = md->current_snapshot_id,
                     .sequence_number = md->format_version > 1 ? md->last_sequence_number + 1 : 0,
                     .timestamp_ms = at_ms,
                     .manifest_list = "file:///w/t/metadata/snap.avro",
                     .operation = "append",
                     .schema_id = md->current_schema_id,
                     .first_row_id = md->format_version > 2 ? md->next_row_id : -1,
                     .added_rows = md->format_version > 2 ? 10 : -1}};
}

static KnUpdate set_ref(const char *name, int64_t id, bool is_branch)
{
    return (KnUpdate){.kind = KN_UPDATE_SET_SNAPSHOT_REF, .ref = {name, id, is_branch, -1, -1, -1}};
}

static KnMetadata *commit(Meta *m, KnMetadata *md, int64_t id, int64_t at_ms)
{
    const KnUpdate updates[] = {add_snapshot(md, id, at_ms), set_ref("main", id, true)};

    return apply(m, md, updates, N(updates));
}

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

/* ---- creating ---- */

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
        KN_METADATA_AUTO md = create(m, version);
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

/* ---- requirements ---- */

static void requirements_fail_in_javas_words(void **state)
{
    Meta *m = *state;
    KN_METADATA_AUTO md = commit(m, create(m, 2), 5, 1000);
    const KnUpdate tag = set_ref("v1", 5, false);
    md = apply(m, md, &tag, 1);
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
    KN_METADATA_AUTO md = commit(m, create(m, 2), 5, 1000);
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
    KN_METADATA_AUTO md = create(m, 2);
    KnSchema *schema = NULL;
    KN_JSON_AUTO json = kn_schema_to_json(kn_metadata_schema(md));

    json_array_append(json_object_get(json, "fields"),
                      meta_json(m, "{'id':4,'name':'n','required':false,'type':'int'}"));
    meta_ok(m, kn_schema_parse(m->arena, json, &schema, &m->err));
    const KnUpdate updates[] = {{.kind = KN_UPDATE_ADD_SCHEMA, .schema = schema},
                                {.kind = KN_UPDATE_SET_CURRENT_SCHEMA, .number = -1}};
    md = apply(m, md, updates, 2);
    assert_int_equal(md->n_schemas, 2);
    assert_int_equal(md->current_schema_id, 1);
    assert_int_equal(md->last_column_id, 4);
    /* the first one again: found, not added, and current */
    const KnUpdate back[] = {{.kind = KN_UPDATE_ADD_SCHEMA, .schema = md->schemas[0]},
                             {.kind = KN_UPDATE_SET_CURRENT_SCHEMA, .number = -1}};
    md = apply(m, md, back, 2);
    assert_int_equal(md->n_schemas, 2);
    assert_int_equal(md->current_schema_id, 0);
    assert_int_equal(md->last_column_id, 4);
    const int64_t remove[] = {1}, current[] = {0};
    const KnUpdate drop = {.kind = KN_UPDATE_REMOVE_SCHEMAS, .ids = remove, .n_ids = 1};
    const KnUpdate drop_current = {.kind = KN_UPDATE_REMOVE_SCHEMAS, .ids = current, .n_ids = 1};
    refused(m, md, &drop_current, 1, "Cannot remove the current schema");
    md = apply(m, md, &drop, 1);
    assert_int_equal(md->n_schemas, 1);
}

static void unknown_ids_are_refused(void **state)
{
    Meta *m = *state;
    KN_METADATA_AUTO md = create(m, 2);
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
        refused(m, md, &update, 1, cases[i].message);
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

    return apply(m, md, updates, 2);
}

static void partition_fields_keep_their_ids_through_evolution(void **state)
{
    Meta *m = *state;
    KN_METADATA_AUTO md = create(m, 2);

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
    KN_METADATA_AUTO md = create(m, 2);
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
    KN_METADATA_AUTO md = create(m, 1);
    KnPartitionSpec *spec = NULL;

    md = evolve(m, md, unnumbered(m, md, "day(ts), name"));
    assert_int_equal(kn_metadata_spec(md)->fields[1].field_id, 1001);
    meta_ok(m, kn_partition_spec_parse(
                   m->arena,
                   meta_json(m, "{'fields':[{'name':'n','transform':'identity','source-id':3,"
                                "'field-id':1005}]}"),
                   &spec, &m->err));
    const KnUpdate update = {.kind = KN_UPDATE_ADD_SPEC, .spec = spec};
    refused(m, md, &update, 1, "Spec does not use sequential IDs that are required in v1");
}

static void the_default_spec_and_order_hold_their_columns(void **state)
{
    Meta *m = *state;
    KN_METADATA_AUTO md = create(m, 2);
    KnSchema *schema = NULL;
    KnSortOrder *order = NULL;

    md = evolve(m, md, unnumbered(m, md, "name"));
    meta_ok(m, kn_schema_parse(m->arena,
                               meta_json(m, "{'type':'struct','fields':["
                                            "{'id':1,'name':'id','required':true,'type':'long'}]}"),
                               &schema, &m->err));
    const KnUpdate drop[] = {{.kind = KN_UPDATE_ADD_SCHEMA, .schema = schema},
                             {.kind = KN_UPDATE_SET_CURRENT_SCHEMA, .number = -1}};
    refused(m, md, drop, 2, "Cannot find source column for partition field: name");
    const KnUpdate unpartition = {.kind = KN_UPDATE_SET_DEFAULT_SPEC, .number = 0};
    md = apply(m, md, &unpartition, 1);
    meta_ok(m, kn_sort_order_parse_text(m->arena, kn_metadata_schema(md), KN_STR_LIT("name"),
                                        &order, &m->err));
    const KnUpdate sort[] = {{.kind = KN_UPDATE_ADD_SORT_ORDER, .sort_order = order},
                             {.kind = KN_UPDATE_SET_DEFAULT_SORT_ORDER, .number = -1}};
    md = apply(m, md, sort, 2);
    assert_int_equal(md->default_sort_order_id, 1);
    refused(m, md, drop, 2, "Cannot find source column for sort field: identity(3)");
    const int64_t ids[] = {1}, now[] = {0};
    const KnUpdate remove = {.kind = KN_UPDATE_REMOVE_SPECS, .ids = ids, .n_ids = 1};
    const KnUpdate remove_default = {.kind = KN_UPDATE_REMOVE_SPECS, .ids = now, .n_ids = 1};
    refused(m, md, &remove_default, 1, "Cannot remove the default partition spec");
    md = apply(m, md, &remove, 1);
    assert_int_equal(md->n_specs, 1);
}

static void sort_orders_are_reused(void **state)
{
    static const char *const texts[] = {"id", "ts desc", "id", ""};
    static const int32_t want[] = {1, 2, 1, 0};
    Meta *m = *state;
    KN_METADATA_AUTO md = create(m, 2);

    for (size_t i = 0; i < 4; i++) {
        KnSortOrder *order = NULL;
        meta_ok(m, kn_sort_order_parse_text(m->arena, kn_metadata_schema(md), kn_str(texts[i]),
                                            &order, &m->err));
        const KnUpdate updates[] = {{.kind = KN_UPDATE_ADD_SORT_ORDER, .sort_order = order},
                                    {.kind = KN_UPDATE_SET_DEFAULT_SORT_ORDER, .number = -1}};
        md = apply(m, md, updates, 2);
        assert_int_equal(md->default_sort_order_id, want[i]);
    }
    assert_int_equal(md->n_sort_orders, 3);
}

/* ---- snapshots and refs ---- */

static void commits_move_main_and_write_the_log(void **state)
{
    Meta *m = *state;
    KN_METADATA_AUTO md = create(m, 2);
    int64_t t0 = md->last_updated_ms;

    md = commit(m, md, 11, t0 + 5);
    md = commit(m, md, 12, t0 + 9);
    assert_int_equal(md->current_snapshot_id, 12);
    assert_int_equal(md->last_sequence_number, 2);
    assert_int_equal(md->last_updated_ms, t0 + 9);
    assert_int_equal(md->n_snapshot_log, 2);
    assert_int_equal(md->snapshot_log[0].timestamp_ms, t0 + 5);
    assert_int_equal(md->snapshot_log[1].snapshot_id, 12);
    assert_int_equal(kn_metadata_find_snapshot(md, 12)->parent_id, 11);
    assert_string_equal(kn_metadata_snapshot(md)->operation, "append");
    assert_string_equal(
        json_string_value(json_object_get(kn_metadata_snapshot(md)->summary, "operation")),
        "append");
}

static void a_clock_that_is_behind_does_not_turn_time_back(void **state)
{
    Meta *m = *state;
    KN_METADATA_AUTO md = create(m, 2);
    int64_t t0 = md->last_updated_ms;

    md = commit(m, md, 11, t0 + 500000);
    md = commit(m, md, 12, t0);
    assert_int_equal(md->last_updated_ms, t0 + 500000);
    assert_int_equal(md->snapshot_log[1].timestamp_ms, t0 + 500000);
    assert_int_equal(kn_metadata_snapshot(md)->timestamp_ms, t0);
}

static void a_stale_snapshot_is_a_conflict(void **state)
{
    Meta *m = *state;
    KN_METADATA_AUTO v2 = commit(m, create(m, 2), 11, 1000);
    KN_METADATA_AUTO v3 = commit(m, create(m, 3), 11, 1000);
    KnUpdate old_sequence = add_snapshot(v2, 12, 2000);
    KnUpdate old_rows = add_snapshot(v3, 12, 2000);
    KnMetadata *md = NULL;

    old_sequence.snapshot.sequence_number = 1;
    old_rows.snapshot.first_row_id = 9;
    assert_int_equal(kn_metadata_apply(v2, &old_sequence, 1, NULL, &md, &m->err), KN_E_CONFLICT);
    assert_string_equal(m->err.msg, "Cannot add snapshot with sequence number 1 older than last "
                                    "sequence number 1");
    assert_true(m->err.retriable);
    assert_int_equal(kn_metadata_apply(v3, &old_rows, 1, NULL, &md, &m->err), KN_E_CONFLICT);
    assert_string_equal(m->err.msg,
                        "Cannot add a snapshot, first-row-id is behind table next-row-id: 9 < 10");
    assert_true(m->err.retriable);
    assert_null(md);
}

static void row_ids_advance_by_the_rows_added(void **state)
{
    Meta *m = *state;
    KN_METADATA_AUTO md = create(m, 3);

    assert_int_equal(md->next_row_id, 0);
    md = commit(m, md, 11, 1000);
    assert_int_equal(md->next_row_id, 10);
    md = commit(m, md, 12, 2000);
    assert_int_equal(md->next_row_id, 20);
    assert_int_equal(kn_metadata_snapshot(md)->first_row_id, 10);
    KnUpdate no_rows = add_snapshot(md, 13, 3000);
    no_rows.snapshot.first_row_id = -1;
    refused(m, md, &no_rows, 1, "Cannot add a snapshot: first-row-id is null");
    no_rows.snapshot.first_row_id = 20;
    no_rows.snapshot.added_rows = -1;
    refused(m, md, &no_rows, 1, "Cannot add a snapshot: added-rows is null");
    no_rows.snapshot.added_rows = INT64_MAX;
    refused(m, md, &no_rows, 1, "Cannot add a snapshot: row ids overflow");
}

static void wrong_snapshots_are_refused(void **state)
{
    Meta *m = *state;
    KN_METADATA_AUTO md = commit(m, create(m, 2), 11, 1000);
    KN_METADATA_AUTO v1 = create(m, 1);
    KnUpdate update = add_snapshot(md, 11, 2000);

    refused(m, md, &update, 1, "Snapshot already exists for id: 11");
    update.snapshot.snapshot_id = -5;
    refused(m, md, &update, 1, "snapshot id -5 is negative");
    update.snapshot.snapshot_id = 12;
    update.snapshot.manifest_list = NULL;
    refused(m, md, &update, 1, "snapshot 12 has no manifest-list");
    update = add_snapshot(v1, 12, 2000);
    update.snapshot.sequence_number = 1;
    refused(m, v1, &update, 1, "Sequence number must be 0 in v1: 1");
}

static void refs_are_set_kept_and_removed(void **state)
{
    Meta *m = *state;
    KN_METADATA_AUTO md = commit(m, commit(m, create(m, 2), 11, 1000), 12, 2000);
    KnUpdate branch = set_ref("dev", 11, true), tag = set_ref("v1", 11, false);

    branch.ref.min_snapshots_to_keep = 3;
    branch.ref.max_ref_age_ms = 1000;
    const KnUpdate both[] = {branch, tag};
    md = apply(m, md, both, 2);
    assert_int_equal(md->n_refs, 3);
    assert_int_equal(kn_metadata_find_ref(md, KN_STR_LIT("dev"))->min_snapshots_to_keep, 3);
    assert_false(kn_metadata_find_ref(md, KN_STR_LIT("v1"))->is_branch);
    assert_int_equal(md->n_snapshot_log, 2); /* only main is logged */
    const KnUpdate rollback = set_ref("main", 11, true);
    md = apply(m, md, &rollback, 1);
    assert_int_equal(md->current_snapshot_id, 11);
    assert_int_equal(md->n_snapshot_log, 3);
    const KnUpdate removes[] = {{.kind = KN_UPDATE_REMOVE_SNAPSHOT_REF, .text = "dev"},
                                {.kind = KN_UPDATE_REMOVE_SNAPSHOT_REF, .text = "never"},
                                {.kind = KN_UPDATE_REMOVE_SNAPSHOT_REF, .text = "main"}};
    md = apply(m, md, removes, 3);
    assert_int_equal(md->n_refs, 1);
    assert_int_equal(md->current_snapshot_id, -1);
    assert_int_equal(md->n_snapshots, 2);
}

static void wrong_refs_are_refused(void **state)
{
    Meta *m = *state;
    KN_METADATA_AUTO md = commit(m, create(m, 2), 11, 1000);
    KnUpdate update = set_ref("dev", 99, true);

    refused(m, md, &update, 1, "Cannot set dev to unknown snapshot: 99");
    update = set_ref("v", 11, false);
    update.ref.min_snapshots_to_keep = 1;
    refused(m, md, &update, 1, "Tags do not support setting minSnapshotsToKeep");
    update.ref.min_snapshots_to_keep = 0;
    refused(m, md, &update, 1, "Min snapshots to keep must be greater than 0");
    update = set_ref("v", 11, true);
    update.ref.max_snapshot_age_ms = 0;
    refused(m, md, &update, 1, "Max snapshot age must be greater than 0 ms");
    update.ref.max_snapshot_age_ms = -1;
    update.ref.max_ref_age_ms = 0;
    refused(m, md, &update, 1, "Max reference age must be greater than 0");
    update = set_ref("main", 11, false);
    refused(m, md, &update, 1, "Cannot set main: it is a branch, not a tag");
    update = set_ref("", 11, true);
    refused(m, md, &update, 1, "a ref needs a name");
}

static void a_snapshot_that_only_passed_through_leaves_no_log_entry(void **state)
{
    Meta *m = *state;
    KN_METADATA_AUTO md = commit(m, create(m, 2), 11, 1000);
    KnUpdate second = add_snapshot(md, 12, 2000), third = add_snapshot(md, 13, 3000);

    third.snapshot.parent_id = 12;
    third.snapshot.sequence_number = 3;
    const KnUpdate updates[] = {second, set_ref("main", 12, true), third,
                                set_ref("main", 13, true)};
    md = apply(m, md, updates, 4);
    assert_int_equal(md->n_snapshots, 3);
    assert_int_equal(md->n_snapshot_log, 2);
    assert_int_equal(md->snapshot_log[0].snapshot_id, 11);
    assert_int_equal(md->snapshot_log[1].snapshot_id, 13);
}

static void removed_snapshots_take_refs_statistics_and_log_with_them(void **state)
{
    Meta *m = *state;
    KN_METADATA_AUTO md = create(m, 2);
    const int64_t ids[] = {12, 99};

    for (int64_t id = 11; id <= 13; id++)
        md = commit(m, md, id, md->last_updated_ms + 1000);
    const KnUpdate before[] = {set_ref("old", 12, true),
                               set_ref("keep", 11, false),
                               {.kind = KN_UPDATE_SET_STATISTICS,
                                .json = meta_json(m, "{'snapshot-id':12,'statistics-path':'a'}")},
                               {.kind = KN_UPDATE_SET_STATISTICS,
                                .json = meta_json(m, "{'snapshot-id':13,'statistics-path':'b'}")},
                               {.kind = KN_UPDATE_SET_PARTITION_STATISTICS,
                                .json = meta_json(m, "{'snapshot-id':12,'statistics-path':'c'}")}};
    md = apply(m, md, before, N(before));
    assert_int_equal(json_array_size(md->statistics), 2);
    const KnUpdate remove = {.kind = KN_UPDATE_REMOVE_SNAPSHOTS, .ids = ids, .n_ids = 2};
    md = apply(m, md, &remove, 1);
    assert_int_equal(md->n_snapshots, 2);
    assert_null(kn_metadata_find_ref(md, KN_STR_LIT("old")));
    assert_non_null(kn_metadata_find_ref(md, KN_STR_LIT("keep")));
    assert_int_equal(json_array_size(md->statistics), 1);
    assert_int_equal(json_array_size(md->partition_statistics), 0);
    assert_int_equal(md->n_snapshot_log, 1); /* what was before the gap is cut */
    assert_int_equal(md->snapshot_log[0].snapshot_id, 13);
}

/* ---- the rest ---- */

static void properties_location_uuid_and_statistics_are_set(void **state)
{
    Meta *m = *state;
    KN_METADATA_AUTO md = commit(m, create(m, 2), 11, 1000);
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

    md = apply(m, md, updates, N(updates));
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
    md = apply(m, md, &remove, 1);
    assert_int_equal(json_array_size(md->statistics), 0);
}

static void wrong_values_are_refused(void **state)
{
    Meta *m = *state;
    KN_METADATA_AUTO md = create(m, 2);
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
        refused(m, md, &cases[i].update, 1, cases[i].message);
}

static void the_metadata_log_is_trimmed(void **state)
{
    Meta *m = *state;
    KN_METADATA_AUTO md = create(m, 2);
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
    KN_METADATA_AUTO md = commit(m, create(m, 2), 11, 1000);
    const KnUpdate updates[] = {set_ref("main", 11, true),
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

    md = apply(m, md, &to2, 1);
    assert_non_null(md->uuid);
    md = commit(m, md, 11, md->last_updated_ms + 1);
    assert_int_equal(md->last_sequence_number, 1);
    md = apply(m, md, &to3, 1);
    md = commit(m, md, 12, md->last_updated_ms + 1);
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
    refused(m, NULL, updates, 2, "a new table needs a location");
    refused(m, NULL, &updates[4], 1, "a new table needs a schema");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define CASE(name) cmocka_unit_test_setup_teardown(name, meta_setup, meta_teardown)
        CASE(a_new_table_gets_ids_breadth_first),
        CASE(an_unpartitioned_unsorted_table_has_the_empty_ones),
        CASE(wrong_tables_are_not_created),
        CASE(requirements_fail_in_javas_words),
        CASE(requirements_that_hold_pass),
        CASE(a_new_schema_is_added_and_made_current),
        CASE(unknown_ids_are_refused),
        CASE(partition_fields_keep_their_ids_through_evolution),
        CASE(an_id_that_means_something_else_is_given_anew),
        CASE(specs_of_v1_must_be_sequential),
        CASE(the_default_spec_and_order_hold_their_columns),
        CASE(sort_orders_are_reused),
        CASE(commits_move_main_and_write_the_log),
        CASE(a_clock_that_is_behind_does_not_turn_time_back),
        CASE(a_stale_snapshot_is_a_conflict),
        CASE(row_ids_advance_by_the_rows_added),
        CASE(wrong_snapshots_are_refused),
        CASE(refs_are_set_kept_and_removed),
        CASE(wrong_refs_are_refused),
        CASE(a_snapshot_that_only_passed_through_leaves_no_log_entry),
        CASE(removed_snapshots_take_refs_statistics_and_log_with_them),
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
