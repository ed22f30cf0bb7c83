/* SPDX-License-Identifier: Apache-2.0 */
/*
 * view_apply.c - updates applied to a view's document, as Java's ViewMetadata.Builder does it.
 *
 * The builder works on a JSON document (a copy of the base's, or a new one), which is parsed at the
 * end: that checks it as any reader will. An equal version or schema that is there already is used
 * again; old versions beyond version.history.num-entries go; replacing a view must not lose a SQL
 * dialect unless replace.drop-dialect.allowed.
 */
#include <string.h>

#include "base/clock.h"
#include "base/random.h"
#include "iceberg/metadata/commit_json_internal.h"
#include "iceberg/view/view.h"
#include "iceberg/view/view_internal.h"

enum { NOT_ADDED = -2, HISTORY_DFLT = 10 };

typedef struct Builder {
    const KnView *base;                            /* NULL = a new view */
    json_t *doc;                                   /* owned */
    json_t *versions, *schemas, *log, *properties; /* borrowed from doc */
    int64_t last_version, last_schema;             /* added by these updates */
    json_t *added;                                 /* owned: ids of versions added */
    json_t *entry;                                 /* owned: the log's next line */
    bool changed;
} Builder;

static KnCode put(json_t *obj, const char *key, json_t *value, KnErr *err)
{
    if (json_object_set_new(obj, key, value) != 0)
        return kn_err_set(err, KN_E_NOMEM, "field '%s': memory is out", key);
    return KN_OK;
}

static int64_t int_of(const json_t *obj, const char *key)
{
    return json_integer_value(json_object_get(obj, key));
}

static const json_t *find_id(const json_t *array, const char *key, int64_t id)
{
    size_t i;
    json_t *item;
    json_array_foreach((json_t *)(uintptr_t)array, i, item)
    {
        if (int_of(item, key) == id)
            return item;
    }
    return NULL;
}

/* ---- beginning ---- */

static json_t *own_copy(json_t *doc, const char *key, json_t *empty)
{
    json_t *old = json_object_get(doc, key);
    json_t *copy = old ? json_copy(old) : NULL;
    if (copy)
        json_decref(empty);
    (void)json_object_set_new(doc, key, copy ? copy : empty);
    return json_object_get(doc, key);
}

static void builder_init(Builder *b, const KnView *base)
{
    *b = (Builder){.base = base, .last_version = NOT_ADDED, .last_schema = NOT_ADDED};
    b->doc = base ? json_copy((json_t *)(uintptr_t)base->extra) : json_object();
    if (!base) {
        char uuid[37];
        (void)json_object_set_new(b->doc, "view-uuid", json_string(kn_random_uuid4(uuid)));
        (void)json_object_set_new(b->doc, "format-version", json_integer(1));
    }
    b->properties = own_copy(b->doc, "properties", json_object());
    b->schemas = own_copy(b->doc, "schemas", json_array());
    b->versions = own_copy(b->doc, "versions", json_array());
    b->log = own_copy(b->doc, "version-log", json_array());
    b->added = json_array();
}

static void builder_done(Builder *b)
{
    json_decref(b->doc);
    json_decref(b->added);
    json_decref(b->entry);
}

/* ---- schemas and versions ---- */

/* Equal but for the id: by what Java compares, the fields and the identifiers. */
static bool same_schema(const json_t *a, const json_t *b)
{
    const json_t *ids_a = json_object_get(a, "identifier-field-ids");
    const json_t *ids_b = json_object_get(b, "identifier-field-ids");
    size_t n_a = json_array_size(ids_a), n_b = json_array_size(ids_b);
    return json_equal(json_object_get(a, "fields"), json_object_get(b, "fields")) && n_a == n_b &&
           (n_a == 0 || json_equal(ids_a, ids_b));
}

static KnCode add_schema(Builder *b, const json_t *schema, KnErr *err)
{
    KN_ARENA_AUTO arena = kn_arena_new(0);
    KnSchema *parsed = NULL;
    KN_TRY(kn_schema_parse(arena, schema, &parsed, err));
    int64_t id = 0; /* the highest and one, whatever the schema says */
    size_t i;
    json_t *other;
    json_array_foreach(b->schemas, i, other)
    {
        if (same_schema(other, schema)) {
            b->last_schema = int_of(other, "schema-id");
            return KN_OK;
        }
        if (int_of(other, "schema-id") >= id)
            id = int_of(other, "schema-id") + 1;
    }
    json_t *copy = json_copy((json_t *)(uintptr_t)schema);
    KnCode rc = put(copy, "schema-id", json_integer(id), err);
    if (json_array_append_new(b->schemas, copy) != 0 && rc == KN_OK)
        rc = kn_err_set(err, KN_E_NOMEM, "memory is out");
    b->last_schema = id;
    b->changed = true;
    return rc;
}

static bool same_version(const json_t *a, const json_t *b)
{
    static const char *const keys[] = {"summary", "representations", "default-catalog",
                                       "default-namespace", "schema-id"};
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        const json_t *x = json_object_get(a, keys[i]), *y = json_object_get(b, keys[i]);
        bool none_x = !x || json_is_null(x), none_y = !y || json_is_null(y);
        if (none_x != none_y || (!none_x && !json_equal(x, y)))
            return false;
    }
    return true;
}

/* The SQL dialects of a version, lower case, as the keys of an object. */
static KnCode dialects(const json_t *version, json_t *set, bool refuse_twice, KnErr *err)
{
    size_t i;
    json_t *repr;
    json_array_foreach(json_object_get(version, "representations"), i, repr)
    {
        const char *dialect = json_string_value(json_object_get(repr, "dialect"));
        char lower[64] = "";
        for (size_t c = 0; dialect && dialect[c] && c < sizeof(lower) - 1; c++)
            lower[c] =
                (char)(dialect[c] >= 'A' && dialect[c] <= 'Z' ? dialect[c] + 32 : dialect[c]);
        if (!dialect)
            continue;
        if (refuse_twice && json_object_get(set, lower))
            return kn_err_set(err, KN_E_INVAL,
                              "Invalid view version: Cannot add multiple queries for dialect %s",
                              lower);
        KN_TRY(put(set, lower, json_true(), err));
    }
    return KN_OK;
}

/* The id of an equal version that is there, else one above all. */
static int64_t reuse_version(const Builder *b, const json_t *version, bool *ret_found)
{
    int64_t id = int_of(version, "version-id");
    size_t i;
    json_t *other;
    *ret_found = false;
    json_array_foreach(b->versions, i, other)
    {
        if (same_version(other, version)) {
            *ret_found = true;
            return int_of(other, "version-id");
        }
        if (int_of(other, "version-id") >= id)
            id = int_of(other, "version-id") + 1;
    }
    return id;
}

static KnCode keep_version(Builder *b, json_t *version, KnErr *err)
{
    KN_JSON_AUTO set = json_object();
    int64_t schema = int_of(version, "schema-id");
    if (!find_id(b->schemas, "schema-id", schema))
        return kn_err_set(err, KN_E_INVAL, "Cannot add version with unknown schema: %lld",
                          (long long)schema);
    KN_TRY(dialects(version, set, true, err));
    b->last_version = int_of(version, "version-id");
    b->changed = true;
    if (json_array_append_new(b->added, json_integer(b->last_version)) != 0 ||
        json_array_append(b->versions, version) != 0)
        return kn_err_set(err, KN_E_NOMEM, "memory is out");
    return KN_OK;
}

static KnCode add_version(Builder *b, const json_t *json, KnErr *err)
{
    KnViewVersion parsed;
    KN_TRY(kn_view_version_parse(json, &parsed, err));
    KN_JSON_AUTO version = json_copy((json_t *)(uintptr_t)json);
    if (parsed.schema_id == -1) {
        if (b->last_schema == NOT_ADDED)
            return kn_err_set(err, KN_E_INVAL,
                              "Cannot set last added schema: no schema has been added");
        KN_TRY(put(version, "schema-id", json_integer(b->last_schema), err));
    }
    bool found = false;
    int64_t id = reuse_version(b, version, &found);
    if (found) {
        b->last_version = id;
        return KN_OK;
    }
    KN_TRY(put(version, "version-id", json_integer(id), err));
    return keep_version(b, version, err);
}

static bool was_added(const Builder *b, int64_t id)
{
    size_t i;
    json_t *added;
    json_array_foreach(b->added, i, added)
    {
        if (json_integer_value(added) == id)
            return true;
    }
    return false;
}

static KnCode set_version(Builder *b, int64_t id, KnErr *err)
{
    if (id == -1 && b->last_version == NOT_ADDED)
        return kn_err_set(err, KN_E_INVAL,
                          "Cannot set last version id: no current version id has been set");
    if (id == -1)
        id = b->last_version;
    const json_t *version = find_id(b->versions, "version-id", id);
    if (!version)
        return kn_err_set(err, KN_E_INVAL, "Cannot set current version to unknown version: %lld",
                          (long long)id);
    const json_t *current = json_object_get(b->doc, "current-version-id");
    if (current && json_integer_value(current) == id)
        return KN_OK;
    int64_t at = was_added(b, id) ? int_of(version, "timestamp-ms") : kn_clock_wall_ms();
    json_decref(b->entry);
    b->entry = json_object();
    KN_TRY(put(b->entry, "timestamp-ms", json_integer(at), err));
    KN_TRY(put(b->entry, "version-id", json_integer(id), err));
    b->changed = true;
    return put(b->doc, "current-version-id", json_integer(id), err);
}

/* ---- scalars ---- */

static KnCode set_uuid(Builder *b, const char *uuid, KnErr *err)
{
    const char *now = json_string_value(json_object_get(b->doc, "view-uuid"));
    if (b->base && now && strcmp(now, uuid) != 0)
        return kn_err_set(err, KN_E_INVAL, "Cannot reassign uuid");
    if (now && !strcmp(now, uuid))
        return KN_OK;
    b->changed = true;
    return put(b->doc, "view-uuid", json_string(uuid), err);
}

static KnCode upgrade(Builder *b, int64_t version, KnErr *err)
{
    int64_t now = int_of(b->doc, "format-version");
    if (version < now)
        return kn_err_set(err, KN_E_INVAL, "Cannot downgrade v%lld view to v%lld", (long long)now,
                          (long long)version);
    if (version > KN_VIEW_FORMAT_MAX)
        return kn_err_set(err, KN_E_INVAL,
                          "Cannot upgrade view to unsupported format version: "
                          "v%lld (supported: v%d)",
                          (long long)version, KN_VIEW_FORMAT_MAX);
    return KN_OK;
}

static KnCode set_location(Builder *b, const char *location, KnErr *err)
{
    const char *now = json_string_value(json_object_get(b->doc, "location"));
    if (now && !strcmp(now, location))
        return KN_OK;
    b->changed = true;
    return put(b->doc, "location", json_string(location), err);
}

static KnCode set_properties(Builder *b, const json_t *properties, KnErr *err)
{
    const char *key;
    json_t *value;
    KN_TRY(kn_properties_check(properties, err));
    json_object_foreach((json_t *)(uintptr_t)properties, key, value)
    {
        b->changed = true;
        KN_TRY(put(b->properties, key, json_incref(value), err));
    }
    return KN_OK;
}

static KnCode remove_properties(Builder *b, const json_t *names)
{
    size_t i;
    json_t *name;
    json_array_foreach((json_t *)(uintptr_t)names, i, name)
    {
        if (json_object_del(b->properties, json_string_value(name)) == 0)
            b->changed = true;
    }
    return KN_OK;
}

static KnCode apply_one(Builder *b, const KnViewUpdate *u, KnErr *err)
{
    switch (u->kind) {
    case KN_VIEW_ASSIGN_UUID:
        return set_uuid(b, u->text, err);
    case KN_VIEW_UPGRADE_FORMAT_VERSION:
        return upgrade(b, u->number, err);
    case KN_VIEW_ADD_SCHEMA:
        return add_schema(b, u->json, err);
    case KN_VIEW_SET_LOCATION:
        return set_location(b, u->text, err);
    case KN_VIEW_SET_PROPERTIES:
        return set_properties(b, u->json, err);
    case KN_VIEW_REMOVE_PROPERTIES:
        return remove_properties(b, u->json);
    case KN_VIEW_ADD_VERSION:
        return add_version(b, u->json, err);
    case KN_VIEW_SET_CURRENT_VERSION:
        break;
    }
    return set_version(b, u->number, err);
}

/* ---- the end ---- */

static const char *property(const Builder *b, const char *key)
{
    return json_string_value(json_object_get(b->properties, key));
}

static KnCode check_dialects(const Builder *b, KnErr *err)
{
    const char *allowed = property(b, "replace.drop-dialect.allowed");
    if (!b->base || (allowed && kn_str_eq_nocase(kn_str(allowed), KN_STR_LIT("true"))))
        return KN_OK;
    KN_JSON_AUTO before = json_object();
    KN_JSON_AUTO after = json_object();
    const char *key;
    json_t *value;
    const json_t *now = find_id(b->versions, "version-id", int_of(b->doc, "current-version-id"));
    KN_TRY(dialects(kn_view_version(b->base)->json, before, false, err));
    KN_TRY(dialects(now, after, false, err));
    json_object_foreach(before, key, value)
    {
        if (!json_object_get(after, key))
            return kn_err_set(err, KN_E_INVAL,
                              "Cannot replace view due to loss of view dialects "
                              "(replace.drop-dialect.allowed=false): dialect %s is lost",
                              key);
    }
    return KN_OK;
}

static KnCode history_size(const Builder *b, int64_t *ret, KnErr *err)
{
    const char *text = property(b, "version.history.num-entries");
    int64_t size = HISTORY_DFLT;
    if (text && (!kn_str_to_i64(kn_str(text), &size) || size <= 0))
        return kn_err_set(err, KN_E_INVAL,
                          "version.history.num-entries must be positive but was %.40s", text);
    *ret = size;
    return KN_OK;
}

/* The oldest version that is neither current nor new; -1 = none. */
static int64_t expirable(const Builder *b)
{
    int64_t lowest = -1, current = int_of(b->doc, "current-version-id");
    size_t i;
    json_t *version;
    json_array_foreach(b->versions, i, version)
    {
        int64_t id = int_of(version, "version-id");
        if (id != current && !was_added(b, id) && (lowest < 0 || id < lowest))
            lowest = id;
    }
    return lowest;
}

static void remove_version(Builder *b, int64_t id)
{
    for (size_t i = json_array_size(b->versions); i-- > 0;)
        if (int_of(json_array_get(b->versions, i), "version-id") == id)
            (void)json_array_remove(b->versions, i);
    /* The log must not have a gap: what is before a version that is gone goes too. */
    for (size_t i = json_array_size(b->log); i-- > 0;) {
        if (int_of(json_array_get(b->log, i), "version-id") != id)
            continue;
        for (size_t n = 0; n <= i; n++)
            (void)json_array_remove(b->log, 0);
        return;
    }
}

static KnCode finish(Builder *b, KnView **ret, KnErr *err)
{
    int64_t keep = 0;
    if (!json_object_get(b->doc, "location"))
        return kn_err_set(err, KN_E_INVAL, "Invalid location: null");
    if (!json_array_size(b->versions))
        return kn_err_set(err, KN_E_INVAL, "Invalid view: no versions were added");
    if (!json_object_get(b->doc, "current-version-id"))
        return kn_err_set(err, KN_E_INVAL, "Cannot find current version in view versions");
    if (b->entry && json_array_append(b->log, b->entry) != 0)
        return kn_err_set(err, KN_E_NOMEM, "memory is out");
    KN_TRY(check_dialects(b, err));
    KN_TRY(history_size(b, &keep, err));
    while (json_array_size(b->versions) > (size_t)keep && expirable(b) >= 0)
        remove_version(b, expirable(b));
    return kn_view_parse_json(b->doc, "updated view metadata", ret, err);
}

static KnCode apply_all(Builder *b, const KnViewUpdate *updates, size_t n, KnView **ret, KnErr *err)
{
    for (size_t i = 0; i < n; i++)
        KN_TRY(apply_one(b, &updates[i], err));
    if (b->base && !b->changed) {
        *ret = kn_view_ref(b->base);
        return KN_OK;
    }
    return finish(b, ret, err);
}

KnCode kn_view_apply(const KnView *base, const KnViewCommit *commit, KnView **ret, KnErr *err)
{
    if (commit->require_uuid && (!base || strcmp(base->uuid, commit->require_uuid) != 0))
        return kn_err_set(err, KN_E_CONFLICT,
                          "Requirement failed: view UUID does not match: expected %.60s != %s",
                          base ? base->uuid : "none", commit->require_uuid);
    Builder b;
    builder_init(&b, base);
    KnCode rc = apply_all(&b, commit->updates, commit->n_updates, ret, err);
    builder_done(&b);
    return kn_request_code(rc, err);
}

KnCode kn_view_create(const KnCreateView *create, KnView **ret, KnErr *err)
{
    KN_JSON_AUTO version = json_copy((json_t *)(uintptr_t)create->version);
    KN_TRY(put(version, "schema-id", json_integer(-1), err));
    if (!json_object_get(version, "version-id"))
        KN_TRY(put(version, "version-id", json_integer(1), err));
    const KnViewUpdate updates[] = {
        {.kind = KN_VIEW_SET_LOCATION, .text = create->location},
        {.kind = KN_VIEW_SET_PROPERTIES, .json = create->properties},
        {.kind = KN_VIEW_ADD_SCHEMA, .json = create->schema},
        {.kind = KN_VIEW_ADD_VERSION, .json = version},
        {.kind = KN_VIEW_SET_CURRENT_VERSION, .number = -1},
    };
    const KnViewCommit commit = {.updates = updates,
                                 .n_updates = sizeof(updates) / sizeof(updates[0])};
    return kn_view_apply(NULL, &commit, ret, err);
}
