/* SPDX-License-Identifier: Apache-2.0 */
/* view_json.c - requests that make and change views, from JSON (CreateViewRequest,
 * CommitViewRequest of the REST specification); see view.h. */
#include <string.h>

#include "iceberg/metadata/commit_json_internal.h"
#include "iceberg/view/view.h"
#include "iceberg/view/view_internal.h"

typedef enum Form { TEXT, NUMBER, OBJECT, PROPERTIES, REMOVALS } Form;

static const struct Action {
    const char *name;
    KnViewUpdateKind kind;
    Form form;
    const char *field;
} actions[] = {
    {"assign-uuid", KN_VIEW_ASSIGN_UUID, TEXT, "uuid"},
    {"upgrade-format-version", KN_VIEW_UPGRADE_FORMAT_VERSION, NUMBER, "format-version"},
    {"add-schema", KN_VIEW_ADD_SCHEMA, OBJECT, "schema"},
    {"set-location", KN_VIEW_SET_LOCATION, TEXT, "location"},
    {"set-properties", KN_VIEW_SET_PROPERTIES, PROPERTIES, "updates"},
    {"remove-properties", KN_VIEW_REMOVE_PROPERTIES, REMOVALS, "removals"},
    {"add-view-version", KN_VIEW_ADD_VERSION, OBJECT, "view-version"},
    {"set-current-view-version", KN_VIEW_SET_CURRENT_VERSION, NUMBER, "view-version-id"},
};

static KnCode parse_removals(json_t *array, KnErr *err)
{
    for (size_t i = 0; i < json_array_size(array); i++)
        if (!json_is_string(json_array_get(array, i)))
            return kn_err_set(err, KN_E_INVAL, "field 'removals': expected strings");
    return KN_OK;
}

static KnCode parse_body(const json_t *json, const struct Action *action, KnViewUpdate *ret,
                         KnErr *err)
{
    json_t *value = NULL;
    switch (action->form) {
    case TEXT:
        return kn_json_get_str(json, action->field, &ret->text, err);
    case NUMBER:
        return kn_json_get_i64(json, action->field, &ret->number, err);
    case REMOVALS:
        KN_TRY(kn_json_get_array(json, action->field, &value, err));
        KN_TRY(parse_removals(value, err));
        break;
    case OBJECT:
    case PROPERTIES:
        KN_TRY(kn_json_get_object(json, action->field, &value, err));
        if (action->form == PROPERTIES)
            KN_TRY(kn_properties_check(value, err));
        break;
    }
    ret->json = value;
    return KN_OK;
}

static KnCode parse_update(const json_t *json, KnViewUpdate *ret, KnErr *err)
{
    const char *name;
    KN_TRY(kn_json_get_str(json, "action", &name, err));
    for (size_t i = 0; i < sizeof(actions) / sizeof(actions[0]); i++) {
        if (strcmp(actions[i].name, name) != 0)
            continue;
        *ret = (KnViewUpdate){.kind = actions[i].kind};
        return kn_err_wrap(err, parse_body(json, &actions[i], ret, err), "%s", name);
    }
    return kn_err_set(err, KN_E_INVAL, "Cannot convert metadata update action '%.100s'%s", name,
                      kn_action_find(name) ? ": a view is no table" : ": it is not known");
}

static KnCode parse_requirement(const json_t *json, KnViewCommit *ret, KnErr *err)
{
    const char *type;
    KN_TRY(kn_json_get_str(json, "type", &type, err));
    if (strcmp(type, "assert-view-uuid") != 0)
        return kn_err_set(err, KN_E_INVAL, "Cannot convert update requirement '%.100s'%s", type,
                          kn_requirement_find(type) ? ": a view is no table" : ": it is not known");
    return kn_json_get_str(json, "uuid", &ret->require_uuid, err);
}

static KnCode parse_commit(KnArena *arena, const json_t *body, KnViewCommit *ret, KnErr *err)
{
    KnViewCommit commit = {0};
    json_t *reqs = NULL, *updates;
    KN_TRY(kn_json_opt_array(body, "requirements", &reqs, err));
    for (size_t i = 0; i < json_array_size(reqs); i++) {
        KnCode rc = parse_requirement(json_array_get(reqs, i), &commit, err);
        if (rc != KN_OK)
            return kn_err_wrap(err, rc, "requirements[%zu]", i);
    }
    KN_TRY(kn_json_get_array(body, "updates", &updates, err));
    commit.n_updates = json_array_size(updates);
    KnViewUpdate *parsed = kn_arena_try_array(arena, commit.n_updates + 1, sizeof(*parsed));
    if (!parsed)
        return kn_err_set(err, KN_E_NOMEM, "field 'updates': memory is out");
    for (size_t i = 0; i < commit.n_updates; i++) {
        KnCode rc = parse_update(json_array_get(updates, i), &parsed[i], err);
        if (rc != KN_OK)
            return kn_err_wrap(err, rc, "updates[%zu]", i);
    }
    commit.updates = parsed;
    *ret = commit;
    return KN_OK;
}

KnCode kn_view_commit_parse(KnArena *arena, const json_t *body, KnViewCommit *ret, KnErr *err)
{
    return kn_request_code(parse_commit(arena, body, ret, err), err);
}

static KnCode parse_create(const json_t *body, KnCreateView *ret, KnErr *err)
{
    KnCreateView create = {0};
    json_t *schema, *version, *properties = NULL;
    KN_TRY(kn_json_get_str(body, "name", &create.name, err));
    KN_TRY(kn_json_opt_str(body, "location", &create.location, err));
    KN_TRY(kn_json_get_object(body, "schema", &schema, err));
    KN_TRY(kn_json_get_object(body, "view-version", &version, err));
    KN_TRY(kn_json_opt_object(body, "properties", &properties, err));
    KN_TRY(kn_properties_check(properties, err));
    create.schema = schema;
    create.version = version;
    create.properties = properties;
    *ret = create;
    return KN_OK;
}

KnCode kn_create_view_parse(const json_t *body, KnCreateView *ret, KnErr *err)
{
    return kn_request_code(parse_create(body, ret, err), err);
}
