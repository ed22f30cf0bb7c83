/* SPDX-License-Identifier: Apache-2.0 */
/*
 * commit_json.c - reading requirements and updates from JSON; see commit_json.h. Writing them is in
 * commit_json_write.c, next to it the same table of names (commit_json_internal.h).
 *
 * What is wrong in a request is KN_E_INVAL, whatever the parsers of its parts (which also read
 * files) call it, and the message says in which update it is.
 */
#include "iceberg/metadata/commit_json.h"

#include <string.h>

#include "iceberg/metadata/commit_json_internal.h"
#include "iceberg/metadata/metadata_internal.h"

/* ---- parts ---- */

static KnCode parse_ids(KnArena *arena, const json_t *json, const char *key, KnUpdate *ret,
                        KnErr *err)
{
    json_t *array;
    KN_TRY(kn_json_get_array(json, key, &array, err));
    size_t n = json_array_size(array);
    int64_t *ids = kn_arena_try_array(arena, n + 1, sizeof(*ids));
    if (!ids)
        return kn_err_set(err, KN_E_NOMEM, "field '%s': memory is out", key);
    for (size_t i = 0; i < n; i++) {
        const json_t *id = json_array_get(array, i);
        if (!json_is_integer(id))
            return kn_err_set(err, KN_E_INVAL, "field '%s': expected integers", key);
        ids[i] = json_integer_value(id);
    }
    ret->ids = ids;
    ret->n_ids = n;
    return KN_OK;
}

/* Both kinds of statistics; blob-metadata and the footer's size are of the table's kind. */
static KnCode parse_statistics(const json_t *json, const char *key, bool of_table, KnUpdate *ret,
                               KnErr *err)
{
    json_t *object, *blobs;
    int64_t number;
    const char *text;
    KN_TRY(kn_json_get_object(json, key, &object, err));
    KN_TRY(kn_json_get_i64(object, "snapshot-id", &number, err));
    KN_TRY(kn_json_get_str(object, "statistics-path", &text, err));
    KN_TRY(kn_json_get_i64(object, "file-size-in-bytes", &number, err));
    if (of_table) {
        KN_TRY(kn_json_get_i64(object, "file-footer-size-in-bytes", &number, err));
        KN_TRY(kn_json_get_array(object, "blob-metadata", &blobs, err));
    }
    ret->json = object;
    return KN_OK;
}

static KnCode parse_properties(const json_t *json, KnUpdate *ret, KnErr *err)
{
    json_t *object = NULL;
    KN_TRY(kn_json_opt_object(json, "updates", &object, err));
    if (!object) /* as Java once wrote it */
        KN_TRY(kn_json_get_object(json, "updated", &object, err));
    KN_TRY(kn_properties_check(object, err));
    ret->properties = object;
    return KN_OK;
}

static KnCode parse_removals(const json_t *json, KnUpdate *ret, KnErr *err)
{
    json_t *array = NULL;
    KN_TRY(kn_json_opt_array(json, "removals", &array, err));
    if (!array)
        KN_TRY(kn_json_get_array(json, "removed", &array, err));
    for (size_t i = 0; i < json_array_size(array); i++) {
        if (!json_is_string(json_array_get(array, i)))
            return kn_err_set(err, KN_E_INVAL, "field 'removals': expected strings");
    }
    ret->properties = array;
    return KN_OK;
}

KnCode kn_properties_check(const json_t *properties, KnErr *err)
{
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)properties, key, value)
    {
        if (!json_is_string(value))
            return kn_err_set(err, KN_E_INVAL, "property '%s': expected a string", key);
    }
    return KN_OK;
}

static KnCode parse_ref(const json_t *json, KnUpdate *ret, KnErr *err)
{
    const char *name;
    KN_TRY(kn_json_get_str(json, "ref-name", &name, err));
    return kn_ref_parse(name, json, &ret->ref, err);
}

static KnCode parse_encryption_key(const json_t *json, KnUpdate *ret, KnErr *err)
{
    json_t *object;
    const char *text;
    KN_TRY(kn_json_get_object(json, "encryption-key", &object, err));
    KN_TRY(kn_json_get_str(object, "key-id", &text, err));
    KN_TRY(kn_json_get_str(object, "encrypted-key-metadata", &text, err));
    ret->json = object;
    return KN_OK;
}

/* ---- updates ---- */

static KnCode parse_shape(KnArena *arena, const json_t *json, KnUpdate *ret, KnErr *err)
{
    json_t *object;
    if (ret->kind == KN_UPDATE_ADD_SCHEMA) {
        KnSchema *schema = NULL;
        KN_TRY(kn_json_get_object(json, "schema", &object, err));
        KN_TRY(kn_schema_parse(arena, object, &schema, err));
        ret->schema = schema;
    } else if (ret->kind == KN_UPDATE_ADD_SPEC) {
        KnPartitionSpec *spec = NULL;
        KN_TRY(kn_json_get_object(json, "spec", &object, err));
        KN_TRY(kn_partition_spec_parse(arena, object, &spec, err));
        ret->spec = spec;
    } else if (ret->kind == KN_UPDATE_ADD_SORT_ORDER) {
        KnSortOrder *order = NULL;
        KN_TRY(kn_json_get_object(json, "sort-order", &object, err));
        KN_TRY(kn_sort_order_parse(arena, object, &order, err));
        ret->sort_order = order;
    } else {
        KN_TRY(kn_json_get_object(json, "snapshot", &object, err));
        KN_TRY(kn_snapshot_parse(arena, object, 2, &ret->snapshot, err));
    }
    return KN_OK;
}

static KnCode parse_body(KnArena *arena, const json_t *json, const KnActionName *action,
                         KnUpdate *ret, KnErr *err)
{
    switch (action->form) {
    case KN_FORM_TEXT:
        return kn_json_get_str(json, action->field, &ret->text, err);
    case KN_FORM_NUMBER:
        return kn_json_get_i64(json, action->field, &ret->number, err);
    case KN_FORM_IDS:
        return parse_ids(arena, json, action->field, ret, err);
    case KN_FORM_SHAPE:
        return parse_shape(arena, json, ret, err);
    case KN_FORM_REF:
        return parse_ref(json, ret, err);
    case KN_FORM_PROPERTIES:
        return parse_properties(json, ret, err);
    case KN_FORM_REMOVALS:
        return parse_removals(json, ret, err);
    case KN_FORM_STATISTICS:
        return parse_statistics(json, action->field, ret->kind == KN_UPDATE_SET_STATISTICS, ret,
                                err);
    case KN_FORM_KEY:
        break;
    }
    return parse_encryption_key(json, ret, err);
}

static KnCode parse_update(KnArena *arena, const json_t *json, KnUpdate *ret, KnErr *err)
{
    const char *name;
    KN_TRY(kn_json_get_str(json, "action", &name, err));
    const KnActionName *action = kn_action_find(name);
    if (!action)
        return kn_err_set(err, KN_E_INVAL, "Cannot convert metadata update action '%.100s'%s", name,
                          strstr(name, "view") ? ": a table is no view" : ": it is not known");
    *ret = (KnUpdate){.kind = action->kind};
    KnCode rc = parse_body(arena, json, action, ret, err);
    return kn_err_wrap(err, kn_request_code(rc, err), "%s", action->name);
}

KnCode kn_request_code(KnCode rc, KnErr *err)
{
    return rc == KN_E_CORRUPT ? kn_err_recode(err, KN_E_INVAL) : rc;
}

KnCode kn_updates_parse(KnArena *arena, const json_t *array, const KnUpdate **ret, size_t *ret_n,
                        KnErr *err)
{
    if (array && !json_is_array(array))
        return kn_err_set(err, KN_E_INVAL, "field 'updates': expected an array");
    size_t n = json_array_size(array);
    KnUpdate *updates = kn_arena_try_array(arena, n + 1, sizeof(*updates));
    if (!updates)
        return kn_err_set(err, KN_E_NOMEM, "field 'updates': memory is out");
    for (size_t i = 0; i < n; i++) {
        KnCode rc = parse_update(arena, json_array_get(array, i), &updates[i], err);
        if (rc != KN_OK)
            return kn_err_wrap(err, kn_request_code(rc, err), "updates[%zu]", i);
    }
    *ret = updates;
    *ret_n = n;
    return KN_OK;
}

/* ---- requirements ---- */

static KnCode parse_requirement(const json_t *json, KnRequirement *ret, KnErr *err)
{
    const char *name;
    KN_TRY(kn_json_get_str(json, "type", &name, err));
    const KnRequirementName *type = kn_requirement_find(name);
    if (!type)
        return kn_err_set(err, KN_E_INVAL, "Cannot convert update requirement '%.100s'%s", name,
                          strstr(name, "view") ? ": a table is no view" : ": it is not known");
    *ret = (KnRequirement){.kind = type->kind, .number = -1};
    if (type->kind == KN_REQUIRE_REF_SNAPSHOT_ID)
        KN_TRY(kn_json_get_str(json, "ref", &ret->text, err));
    if (type->kind == KN_REQUIRE_REF_SNAPSHOT_ID) /* null: the ref must not exist */
        return kn_json_opt_i64(json, type->field, &ret->number, err);
    if (type->kind == KN_REQUIRE_UUID)
        return kn_json_get_str(json, type->field, &ret->text, err);
    return type->field ? kn_json_get_i64(json, type->field, &ret->number, err) : KN_OK;
}

KnCode kn_requirements_parse(KnArena *arena, const json_t *array, const KnRequirement **ret,
                             size_t *ret_n, KnErr *err)
{
    if (array && !json_is_array(array))
        return kn_err_set(err, KN_E_INVAL, "field 'requirements': expected an array");
    size_t n = json_array_size(array);
    KnRequirement *reqs = kn_arena_try_array(arena, n + 1, sizeof(*reqs));
    if (!reqs)
        return kn_err_set(err, KN_E_NOMEM, "field 'requirements': memory is out");
    for (size_t i = 0; i < n; i++) {
        KnCode rc = parse_requirement(json_array_get(array, i), &reqs[i], err);
        if (rc != KN_OK)
            return kn_err_wrap(err, kn_request_code(rc, err), "requirements[%zu]", i);
    }
    *ret = reqs;
    *ret_n = n;
    return KN_OK;
}

KnCode kn_commit_parse(KnArena *arena, const json_t *body, KnTableCommit *ret, KnErr *err)
{
    KnTableCommit commit = {0};
    json_t *reqs = NULL, *updates = NULL;
    KnCode rc = kn_json_opt_array(body, "requirements", &reqs, err);
    if (rc == KN_OK)
        rc = kn_json_opt_array(body, "updates", &updates, err);
    if (rc != KN_OK)
        return kn_request_code(rc, err);
    KN_TRY(kn_requirements_parse(arena, reqs, &commit.requirements, &commit.n_requirements, err));
    KN_TRY(kn_updates_parse(arena, updates, &commit.updates, &commit.n_updates, err));
    *ret = commit;
    return KN_OK;
}

/* ---- creating ---- */

static KnCode parse_create_shape(KnArena *arena, const json_t *body, KnCreateTable *ret, KnErr *err)
{
    json_t *schema, *spec = NULL, *order = NULL;
    KnSchema *parsed = NULL;
    KN_TRY(kn_json_get_object(body, "schema", &schema, err));
    KN_TRY(kn_schema_parse(arena, schema, &parsed, err));
    ret->schema = parsed;
    KN_TRY(kn_json_opt_object(body, "partition-spec", &spec, err));
    if (spec) {
        KnPartitionSpec *parsed_spec = NULL;
        KN_TRY(kn_partition_spec_parse(arena, spec, &parsed_spec, err));
        ret->spec = parsed_spec;
    }
    KN_TRY(kn_json_opt_object(body, "write-order", &order, err));
    if (order) {
        KnSortOrder *parsed_order = NULL;
        KN_TRY(kn_sort_order_parse(arena, order, &parsed_order, err));
        ret->sort_order = parsed_order;
    }
    return KN_OK;
}

static KnCode parse_create(KnArena *arena, const json_t *body, KnCreateRequest *ret, KnErr *err)
{
    KnCreateRequest req = {.create.format_version = 2};
    json_t *properties = NULL;
    int64_t version = 2;
    KN_TRY(kn_json_get_str(body, "name", &req.name, err));
    KN_TRY(kn_json_opt_str(body, "location", &req.create.location, err));
    KN_TRY(kn_json_opt_bool(body, "stage-create", &req.stage, err));
    KN_TRY(kn_json_opt_object(body, "properties", &properties, err));
    KN_TRY(kn_properties_check(properties, err));
    req.create.properties = properties;
    const char *text = json_string_value(json_object_get(properties, "format-version"));
    if (text &&
        (!kn_str_to_i64(kn_str(text), &version) || version < 1 || version > KN_FORMAT_VERSION_MAX))
        return kn_err_set(err, KN_E_INVAL, "Unsupported format version: v%.20s (supported: v%d)",
                          text, KN_FORMAT_VERSION_MAX);
    req.create.format_version = (int32_t)version;
    KN_TRY(parse_create_shape(arena, body, &req.create, err));
    *ret = req;
    return KN_OK;
}

KnCode kn_create_request_parse(KnArena *arena, const json_t *body, KnCreateRequest *ret, KnErr *err)
{
    return kn_request_code(parse_create(arena, body, ret, err), err);
}
