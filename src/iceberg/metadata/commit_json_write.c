/* SPDX-License-Identifier: Apache-2.0 */
/* commit_json_write.c - requirements and updates as JSON, and their names; see commit_json.h. */
#include <string.h>

#include "iceberg/metadata/commit_json.h"
#include "iceberg/metadata/commit_json_internal.h"
#include "iceberg/metadata/metadata_internal.h"

static const KnActionName actions[] = {
    {"assign-uuid", KN_UPDATE_ASSIGN_UUID, KN_FORM_TEXT, "uuid"},
    {"upgrade-format-version", KN_UPDATE_UPGRADE_FORMAT_VERSION, KN_FORM_NUMBER, "format-version"},
    {"add-schema", KN_UPDATE_ADD_SCHEMA, KN_FORM_SHAPE, "schema"},
    {"set-current-schema", KN_UPDATE_SET_CURRENT_SCHEMA, KN_FORM_NUMBER, "schema-id"},
    {"add-spec", KN_UPDATE_ADD_SPEC, KN_FORM_SHAPE, "spec"},
    {"set-default-spec", KN_UPDATE_SET_DEFAULT_SPEC, KN_FORM_NUMBER, "spec-id"},
    {"add-sort-order", KN_UPDATE_ADD_SORT_ORDER, KN_FORM_SHAPE, "sort-order"},
    {"set-default-sort-order", KN_UPDATE_SET_DEFAULT_SORT_ORDER, KN_FORM_NUMBER, "sort-order-id"},
    {"add-snapshot", KN_UPDATE_ADD_SNAPSHOT, KN_FORM_SHAPE, "snapshot"},
    {"set-snapshot-ref", KN_UPDATE_SET_SNAPSHOT_REF, KN_FORM_REF, "ref-name"},
    {"remove-snapshots", KN_UPDATE_REMOVE_SNAPSHOTS, KN_FORM_IDS, "snapshot-ids"},
    {"remove-snapshot-ref", KN_UPDATE_REMOVE_SNAPSHOT_REF, KN_FORM_TEXT, "ref-name"},
    {"set-location", KN_UPDATE_SET_LOCATION, KN_FORM_TEXT, "location"},
    {"set-properties", KN_UPDATE_SET_PROPERTIES, KN_FORM_PROPERTIES, "updates"},
    {"remove-properties", KN_UPDATE_REMOVE_PROPERTIES, KN_FORM_REMOVALS, "removals"},
    {"set-statistics", KN_UPDATE_SET_STATISTICS, KN_FORM_STATISTICS, "statistics"},
    {"remove-statistics", KN_UPDATE_REMOVE_STATISTICS, KN_FORM_NUMBER, "snapshot-id"},
    {"set-partition-statistics", KN_UPDATE_SET_PARTITION_STATISTICS, KN_FORM_STATISTICS,
     "partition-statistics"},
    {"remove-partition-statistics", KN_UPDATE_REMOVE_PARTITION_STATISTICS, KN_FORM_NUMBER,
     "snapshot-id"},
    {"remove-partition-specs", KN_UPDATE_REMOVE_SPECS, KN_FORM_IDS, "spec-ids"},
    {"remove-schemas", KN_UPDATE_REMOVE_SCHEMAS, KN_FORM_IDS, "schema-ids"},
    {"add-encryption-key", KN_UPDATE_ADD_ENCRYPTION_KEY, KN_FORM_KEY, "encryption-key"},
    {"remove-encryption-key", KN_UPDATE_REMOVE_ENCRYPTION_KEY, KN_FORM_TEXT, "key-id"},
};

static const KnRequirementName requirements[] = {
    {"assert-create", KN_REQUIRE_CREATE, NULL},
    {"assert-table-uuid", KN_REQUIRE_UUID, "uuid"},
    {"assert-ref-snapshot-id", KN_REQUIRE_REF_SNAPSHOT_ID, "snapshot-id"},
    {"assert-last-assigned-field-id", KN_REQUIRE_LAST_ASSIGNED_FIELD_ID, "last-assigned-field-id"},
    {"assert-current-schema-id", KN_REQUIRE_CURRENT_SCHEMA_ID, "current-schema-id"},
    {"assert-last-assigned-partition-id", KN_REQUIRE_LAST_ASSIGNED_PARTITION_ID,
     "last-assigned-partition-id"},
    {"assert-default-spec-id", KN_REQUIRE_DEFAULT_SPEC_ID, "default-spec-id"},
    {"assert-default-sort-order-id", KN_REQUIRE_DEFAULT_SORT_ORDER_ID, "default-sort-order-id"},
};

#define N_OF(array) (sizeof(array) / sizeof((array)[0]))

const KnActionName *kn_action_find(const char *name)
{
    for (size_t i = 0; i < N_OF(actions); i++)
        if (!strcmp(actions[i].name, name))
            return &actions[i];
    return NULL;
}

const KnActionName *kn_action_of(KnUpdateKind kind)
{
    for (size_t i = 0; i < N_OF(actions); i++)
        if (actions[i].kind == kind)
            return &actions[i];
    return NULL;
}

const KnRequirementName *kn_requirement_find(const char *name)
{
    for (size_t i = 0; i < N_OF(requirements); i++)
        if (!strcmp(requirements[i].name, name))
            return &requirements[i];
    return NULL;
}

const KnRequirementName *kn_requirement_of(KnRequirementKind kind)
{
    for (size_t i = 0; i < N_OF(requirements); i++)
        if (requirements[i].kind == kind)
            return &requirements[i];
    return NULL;
}

bool kn_requirement_is_rest(const KnRequirement *req)
{
    return kn_requirement_of(req->kind) != NULL;
}

static json_t *shared(const json_t *json)
{
    return json ? json_incref((json_t *)(uintptr_t)json) : NULL;
}

static KnCode put(json_t *obj, const char *key, json_t *value, KnErr *err)
{
    if (json_object_set_new(obj, key, value) != 0)
        return kn_err_set(err, KN_E_INVAL, "field '%s' is missing, or not UTF-8", key);
    return KN_OK;
}

KnCode kn_requirement_to_json(const KnRequirement *req, json_t **ret, KnErr *err)
{
    const KnRequirementName *name = kn_requirement_of(req->kind);
    if (!name)
        return kn_err_set(err, KN_E_UNSUPPORTED,
                          "a requirement of this commit cannot be said to a REST catalog");
    KN_JSON_AUTO obj = json_object();
    KN_TRY(put(obj, "type", json_string(name->name), err));
    if (req->kind == KN_REQUIRE_REF_SNAPSHOT_ID) {
        KN_TRY(put(obj, "ref", json_string(req->text), err));
        KN_TRY(
            put(obj, name->field, req->number < 0 ? json_null() : json_integer(req->number), err));
    } else if (req->kind == KN_REQUIRE_UUID) {
        KN_TRY(put(obj, name->field, json_string(req->text), err));
    } else if (name->field) {
        KN_TRY(put(obj, name->field, json_integer(req->number), err));
    }
    *ret = json_incref(obj);
    return KN_OK;
}

static KnCode put_ref(json_t *obj, const KnRef *ref, KnErr *err)
{
    const struct {
        const char *key;
        int64_t value;
    } optional[] = {{"min-snapshots-to-keep", ref->min_snapshots_to_keep},
                    {"max-snapshot-age-ms", ref->max_snapshot_age_ms},
                    {"max-ref-age-ms", ref->max_ref_age_ms}};
    KN_TRY(put(obj, "ref-name", json_string(ref->name), err));
    KN_TRY(put(obj, "snapshot-id", json_integer(ref->snapshot_id), err));
    KN_TRY(put(obj, "type", json_string(ref->is_branch ? "branch" : "tag"), err));
    for (size_t i = 0; i < N_OF(optional); i++)
        if (optional[i].value >= 0)
            KN_TRY(put(obj, optional[i].key, json_integer(optional[i].value), err));
    return KN_OK;
}

/* A field without an id yet is given one by the server. */
static json_t *spec_to_json(const KnPartitionSpec *spec)
{
    json_t *obj = kn_partition_spec_to_json(spec), *field;
    size_t i;
    json_array_foreach(json_object_get(obj, "fields"), i, field)
    {
        if (json_integer_value(json_object_get(field, "field-id")) == 0)
            (void)json_object_del(field, "field-id");
    }
    return obj;
}

static json_t *shape_to_json(const KnUpdate *u)
{
    switch (u->kind) {
    case KN_UPDATE_ADD_SCHEMA:
        return kn_schema_to_json(u->schema);
    case KN_UPDATE_ADD_SPEC:
        return spec_to_json(u->spec);
    case KN_UPDATE_ADD_SORT_ORDER:
        return kn_sort_order_to_json(u->sort_order);
    default:
        return kn_snapshot_to_json(&u->snapshot);
    }
}

static json_t *ids_to_json(const KnUpdate *u)
{
    json_t *array = json_array();
    for (size_t i = 0; i < u->n_ids; i++)
        if (json_array_append_new(array, json_integer(u->ids[i])) != 0) {
            json_decref(array);
            return NULL;
        }
    return array;
}

static KnCode put_body(json_t *obj, const KnUpdate *u, const KnActionName *action, KnErr *err)
{
    switch (action->form) {
    case KN_FORM_TEXT:
        return put(obj, action->field, json_string(u->text), err);
    case KN_FORM_NUMBER:
        return put(obj, action->field, json_integer(u->number), err);
    case KN_FORM_IDS:
        return put(obj, action->field, ids_to_json(u), err);
    case KN_FORM_SHAPE:
        return put(obj, action->field, shape_to_json(u), err);
    case KN_FORM_REF:
        return put_ref(obj, &u->ref, err);
    case KN_FORM_PROPERTIES:
    case KN_FORM_REMOVALS:
        return put(obj, action->field, shared(u->properties), err);
    case KN_FORM_STATISTICS:
    case KN_FORM_KEY:
        break;
    }
    return put(obj, action->field, shared(u->json), err);
}

KnCode kn_update_to_json(const KnUpdate *update, json_t **ret, KnErr *err)
{
    const KnActionName *action = kn_action_of(update->kind);
    if (!action)
        return kn_err_set(err, KN_E_UNSUPPORTED, "this update has no form in REST");
    KN_JSON_AUTO obj = json_object();
    KN_TRY(put(obj, "action", json_string(action->name), err));
    KnCode rc = put_body(obj, update, action, err);
    if (rc != KN_OK)
        return kn_err_wrap(err, rc, "%s", action->name);
    const json_t *id = json_object_get(update->json, "snapshot-id");
    if (update->kind == KN_UPDATE_SET_STATISTICS && id) /* older servers read the id here */
        KN_TRY(put(obj, "snapshot-id", shared(id), err));
    *ret = json_incref(obj);
    return KN_OK;
}
