/* SPDX-License-Identifier: Apache-2.0 */
/*
 * alter_plan.c - changes against one state of a table, as the updates and requirements of a commit.
 *
 * The changes are gone through in their order; columns, partition fields and the write order each
 * have a state that goes along. What comes out as it was is no update, so that changes which change
 * nothing make no commit. Everything about ids is required to be as it was found: a commit that
 * lost a race is planned anew, never bent.
 */
#include <string.h>

#include "base/vec.h"
#include "iceberg/alter/alter_internal.h"
#include "iceberg/metadata/metadata_internal.h"
#include "iceberg/schema/partition_internal.h"
#include "iceberg/schema/type_internal.h"

enum { UPDATES_MAX = 10, REQUIREMENTS_MAX = 6 };

typedef struct Planner {
    KnArena *arena;
    const KnMetadata *md;
    int32_t format_version;
    KnSchemaEdit *columns;
    KnSpecEdit *fields;
    const KnSortOrder *order;
    json_t *properties; /* the arena's: key -> text, or null = remove */
    const char *location;
    KnUpdate *updates;
    size_t n_updates;
} Planner;

static void drop_json(void *arg)
{
    json_decref(arg);
}

static json_t *keep_json(Planner *p, json_t *json)
{
    kn_arena_defer(p->arena, drop_json, json);
    return json;
}

/* ---- beginning ---- */

/* The version that the table will have: what is allowed hangs on it, wherever it is asked for. */
static KnCode find_version(const KnMetadata *md, const KnChanges *changes, int32_t *ret, KnErr *err)
{
    int64_t version = md->format_version;

    for (size_t i = 0; i < changes->n; i++) {
        const KnChange *change = &changes->items[i];
        if (change->kind == KN_CHANGE_FORMAT_VERSION)
            version = change->number;
        for (size_t k = 0; change->kind == KN_CHANGE_SET_PROPERTIES && k < change->n_names; k++)
            if (strcmp(change->names[k], "format-version") == 0 &&
                !kn_str_to_i64(kn_str(change->values[k]), &version))
                return kn_err_set(err, KN_E_INVAL, "format-version '%s' is not a number",
                                  change->values[k]);
    }
    if (version > KN_FORMAT_VERSION_MAX || version < 1)
        return kn_err_set(err, KN_E_INVAL,
                          "Cannot upgrade table to unsupported format version: v%lld (supported: "
                          "v%d)",
                          (long long)version, KN_FORMAT_VERSION_MAX);
    if (version < md->format_version)
        return kn_err_set(err, KN_E_INVAL, "Cannot downgrade v%d table to v%lld",
                          md->format_version, (long long)version);
    *ret = (int32_t)version;
    return KN_OK;
}

static void planner_init(Planner *p, const KnAlterOptions *opts)
{
    KnSchemaBase base = {.schema = kn_metadata_schema(p->md),
                         .last_column_id = p->md->last_column_id,
                         .format_version = p->format_version,
                         .allow_incompatible = opts->allow_incompatible,
                         .n_specs = p->md->n_specs,
                         .specs = p->md->specs};

    p->columns = kn_schema_edit_new(p->arena, &base);
    p->order = kn_metadata_sort_order(p->md);
    p->properties = keep_json(p, json_object());
    p->updates = kn_arena_zalloc(p->arena, UPDATES_MAX * sizeof(*p->updates));
}

/* ---- changes ---- */

static KnCode set_order(Planner *p, const KnChange *change, KnErr *err)
{
    const KnSchema *schema = kn_schema_edit_now(p->columns);
    KnSortField *fields = kn_arena_zalloc(p->arena, (change->n_sort + 1) * sizeof(*fields));
    KnSortOrder *order = kn_arena_alloc(p->arena, sizeof(*order));

    if (json_object_set_new(p->properties, "write.distribution-mode",
                            json_string(change->distribution_mode)) != 0)
        return kn_err_set(err, KN_E_NOMEM, "memory is out");
    if (change->keep_order)
        return KN_OK;
    for (size_t i = 0; i < change->n_sort; i++) {
        const KnSortTerm *sort = &change->sort[i];
        const KnField *source;
        KN_TRY(kn_term_bind(&sort->term, schema, &source, err));
        fields[i] =
            (KnSortField){source->id, sort->term.transform, sort->descending, sort->nulls_last};
    }
    *order = (KnSortOrder){change->n_sort > 0, change->n_sort, fields};
    KN_TRY(kn_sort_order_check(order, schema, err));
    p->order = order;
    return KN_OK;
}

/* Java: TableProperties.RESERVED_PROPERTIES. */
static KnCode check_key(const char *key, KnErr *err)
{
    static const char *const reserved[] = {"uuid",
                                           "snapshot-count",
                                           "current-snapshot-id",
                                           "current-snapshot-summary",
                                           "current-snapshot-timestamp-ms",
                                           "current-schema",
                                           "default-partition-spec",
                                           "default-sort-order"};

    if (key[0] == '\0')
        return kn_err_set(err, KN_E_INVAL, "a property needs a name");
    for (size_t i = 0; i < sizeof(reserved) / sizeof(reserved[0]); i++)
        if (strcmp(key, reserved[i]) == 0)
            return kn_err_set(err, KN_E_INVAL, "property '%s' is reserved: it is no setting", key);
    return KN_OK;
}

static KnCode set_properties(Planner *p, const KnChange *change, KnErr *err)
{
    for (size_t i = 0; i < change->n_names; i++) {
        bool set = change->kind == KN_CHANGE_SET_PROPERTIES;
        if (strcmp(change->names[i], "format-version") == 0 && set)
            continue; /* an upgrade: find_version() saw it */
        KN_TRY(check_key(change->names[i], err));
        if (json_object_set_new(p->properties, change->names[i],
                                set ? json_string(change->values[i]) : json_null()) != 0)
            return kn_err_set(err, KN_E_INVAL, "property '%s': not valid UTF-8", change->names[i]);
    }
    return KN_OK;
}

static KnCode apply_change(Planner *p, const KnChange *change, int32_t *ret_id, KnErr *err)
{
    *ret_id = -1;
    switch (change->kind) {
    case KN_CHANGE_ADD_PARTITION:
    case KN_CHANGE_DROP_PARTITION:
    case KN_CHANGE_REPLACE_PARTITION:
    case KN_CHANGE_RENAME_PARTITION:
        if (!p->fields)
            KN_TRY(kn_spec_edit_new(p->arena, p->md, p->format_version, &p->fields, err));
        return kn_spec_edit_apply(p->fields, kn_schema_edit_now(p->columns), change, err);
    case KN_CHANGE_WRITE_ORDER:
        return set_order(p, change, err);
    case KN_CHANGE_SET_PROPERTIES:
    case KN_CHANGE_UNSET_PROPERTIES:
        return set_properties(p, change, err);
    case KN_CHANGE_FORMAT_VERSION:
        return KN_OK;
    case KN_CHANGE_LOCATION:
        p->location = change->location;
        return KN_OK;
    default:
        return kn_schema_edit_apply(p->columns, change, ret_id, err);
    }
}

/* ---- updates ---- */

static KnUpdate *push(Planner *p, KnUpdateKind kind)
{
    KnUpdate *update = &p->updates[p->n_updates++];

    *update = (KnUpdate){.kind = kind, .number = -1};
    return update;
}

static bool same_schema(const KnSchema *a, const KnSchema *b)
{
    if (!kn_type_equal(&a->root, &b->root) || a->n_identifier_ids != b->n_identifier_ids)
        return false;
    for (size_t i = 0; i < a->n_identifier_ids; i++) {
        bool found = false;
        for (size_t j = 0; j < b->n_identifier_ids; j++)
            found |= a->identifier_ids[i] == b->identifier_ids[j];
        if (!found)
            return false;
    }
    return true;
}

static KnCode finish_schema(Planner *p, const KnSchema **ret, KnErr *err)
{
    const KnSchema *now;

    KN_TRY(kn_schema_edit_finish(p->columns, &now, err));
    *ret = now;
    if (same_schema(now, kn_metadata_schema(p->md)))
        return KN_OK;
    push(p, KN_UPDATE_ADD_SCHEMA)->schema = now;
    push(p, KN_UPDATE_SET_CURRENT_SCHEMA);
    /* What the caller sets itself comes last and wins. */
    KN_JSON_AUTO followed = json_object();
    KN_TRY(kn_alter_follow_columns(p->arena, p->md, now, followed, err));
    if (json_object_update_missing(p->properties, followed) != 0)
        return kn_err_set(err, KN_E_NOMEM, "memory is out");
    return KN_OK;
}

static KnCode finish_spec(Planner *p, const KnSchema *schema, KnErr *err)
{
    const KnPartitionSpec *now = kn_metadata_spec(p->md);

    if (p->fields)
        KN_TRY(kn_spec_edit_finish(p->fields, &now, err));
    if (p->fields || schema != kn_metadata_schema(p->md))
        KN_TRY(kn_partition_spec_check(now, schema, err));
    if (kn_partition_spec_compatible(now, kn_metadata_spec(p->md)))
        return KN_OK;
    push(p, KN_UPDATE_ADD_SPEC)->spec = now;
    push(p, KN_UPDATE_SET_DEFAULT_SPEC);
    return KN_OK;
}

static KnCode finish_order(Planner *p, const KnSchema *schema, KnErr *err)
{
    KN_TRY(kn_sort_order_check(p->order, schema, err));
    if (kn_sort_order_equal(p->order, kn_metadata_sort_order(p->md)))
        return KN_OK;
    push(p, KN_UPDATE_ADD_SORT_ORDER)->sort_order = p->order;
    push(p, KN_UPDATE_SET_DEFAULT_SORT_ORDER);
    return KN_OK;
}

/* Only what differs from today's. */
static void finish_properties(Planner *p)
{
    json_t *set = keep_json(p, json_object());
    json_t *removed = keep_json(p, json_array());
    const char *key;
    json_t *value;

    json_object_foreach(p->properties, key, value)
    {
        const json_t *today = json_object_get(p->md->properties, key);
        if (json_is_string(value) && !json_equal(value, today))
            json_object_set(set, key, value);
        else if (json_is_null(value) && today)
            json_array_append_new(removed, json_string(key));
    }
    if (json_object_size(set) > 0)
        push(p, KN_UPDATE_SET_PROPERTIES)->properties = set;
    if (json_array_size(removed) > 0)
        push(p, KN_UPDATE_REMOVE_PROPERTIES)->properties = removed;
}

static KnCode finish_location(Planner *p, KnErr *err)
{
    const char *location = p->location;

    if (!location)
        return KN_OK;
    if (location[0] != '/' && !strstr(location, "://") && strncmp(location, "file:/", 6) != 0)
        return kn_err_set(err, KN_E_INVAL, "location '%s' is neither an absolute path nor a URI",
                          location);
    location = kn_location_strip(p->arena, location);
    if (strcmp(location, p->md->location) != 0)
        push(p, KN_UPDATE_SET_LOCATION)->text = location;
    return KN_OK;
}

static size_t require(const Planner *p, bool shape, KnRequirement *reqs)
{
    const KnMetadata *md = p->md;
    size_t n = 0;

    if (md->uuid)
        reqs[n++] = (KnRequirement){.kind = KN_REQUIRE_UUID, .text = md->uuid};
    if (!shape)
        return n;
    reqs[n++] =
        (KnRequirement){.kind = KN_REQUIRE_CURRENT_SCHEMA_ID, .number = md->current_schema_id};
    reqs[n++] =
        (KnRequirement){.kind = KN_REQUIRE_LAST_ASSIGNED_FIELD_ID, .number = md->last_column_id};
    reqs[n++] = (KnRequirement){.kind = KN_REQUIRE_DEFAULT_SPEC_ID, .number = md->default_spec_id};
    reqs[n++] = (KnRequirement){.kind = KN_REQUIRE_LAST_ASSIGNED_PARTITION_ID,
                                .number = md->last_partition_id};
    reqs[n++] = (KnRequirement){.kind = KN_REQUIRE_DEFAULT_SORT_ORDER_ID,
                                .number = md->default_sort_order_id};
    return n;
}

static KnCode finish(Planner *p, KnAlterPlan *ret, KnErr *err)
{
    KnRequirement *reqs = kn_arena_zalloc(p->arena, REQUIREMENTS_MAX * sizeof(*reqs));
    const KnSchema *schema;
    bool shape;

    KN_TRY(finish_schema(p, &schema, err));
    KN_TRY(finish_spec(p, schema, err));
    KN_TRY(finish_order(p, schema, err));
    shape = p->n_updates > 0;
    finish_properties(p);
    KN_TRY(finish_location(p, err));
    ret->requirements = reqs;
    ret->n_requirements = require(p, shape, reqs);
    return KN_OK;
}

KnCode kn_alter_plan(KnArena *arena, const KnMetadata *md, const KnChanges *changes,
                     const KnAlterOptions *opts, KnAlterPlan *ret, KnErr *err)
{
    Planner p = {.arena = arena, .md = md};
    int32_t *bound = kn_arena_zalloc(arena, (changes->n + 1) * sizeof(*bound));
    KnAlterPlan plan = {.bound = bound};

    KN_TRY(find_version(md, changes, &p.format_version, err));
    planner_init(&p, opts);
    if (p.format_version != md->format_version)
        push(&p, KN_UPDATE_UPGRADE_FORMAT_VERSION)->number = p.format_version;
    for (size_t i = 0; i < changes->n; i++)
        KN_TRY(apply_change(&p, &changes->items[i], &bound[i], err));
    KN_TRY(finish(&p, &plan, err));
    plan.updates = p.updates;
    plan.n_updates = p.n_updates;
    *ret = plan;
    return KN_OK;
}
