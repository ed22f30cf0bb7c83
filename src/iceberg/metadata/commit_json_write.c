/* SPDX-License-Identifier: Apache-2.0 */
/*
 * commit_json_write.c - requirements and updates as the REST specification writes them; see
 * commit_json.h. An update's text that is not UTF-8 makes JSON's functions fail: noted, asked once.
 */
#include "iceberg/metadata/commit_json.h"
#include "iceberg/metadata/metadata_internal.h"

typedef struct Writer {
    json_t *obj;
    bool failed;
} Writer;

static void put(Writer *w, const char *key, json_t *value)
{
    w->failed |= json_object_set_new(w->obj, key, value) != 0;
}

static void put_text(Writer *w, const char *key, const char *value)
{
    put(w, key, json_string(value));
}

static void put_i64(Writer *w, const char *key, int64_t value)
{
    put(w, key, json_integer(value));
}

static void put_opt(Writer *w, const char *key, int64_t value)
{
    if (value >= 0)
        put_i64(w, key, value);
}

/* The shared value must not be changed by who gets the document. */
static void put_shared(Writer *w, const char *key, const json_t *value)
{
    put(w, key, json_incref((json_t *)(uintptr_t)value));
}

static KnCode finish(Writer *w, json_t **ret, KnErr *err)
{
    if (!w->failed) {
        *ret = w->obj;
        return KN_OK;
    }
    json_decref(w->obj);
    return kn_err_set(err, KN_E_INVAL,
                      "a commit cannot be written: a text is not UTF-8, or memory is out");
}

/* ---- requirements ---- */

typedef struct RequirementWord {
    const char *type;
    const char *text, *number; /* names of the fields that it has, or NULL */
} RequirementWord;

static const RequirementWord requirement_words[] = {
    [KN_REQUIRE_CREATE] = {"assert-create", NULL, NULL},
    [KN_REQUIRE_UUID] = {"assert-table-uuid", "uuid", NULL},
    [KN_REQUIRE_REF_SNAPSHOT_ID] = {"assert-ref-snapshot-id", "ref", "snapshot-id"},
    [KN_REQUIRE_LAST_ASSIGNED_FIELD_ID] = {"assert-last-assigned-field-id", NULL,
                                           "last-assigned-field-id"},
    [KN_REQUIRE_CURRENT_SCHEMA_ID] = {"assert-current-schema-id", NULL, "current-schema-id"},
    [KN_REQUIRE_LAST_ASSIGNED_PARTITION_ID] = {"assert-last-assigned-partition-id", NULL,
                                               "last-assigned-partition-id"},
    [KN_REQUIRE_DEFAULT_SPEC_ID] = {"assert-default-spec-id", NULL, "default-spec-id"},
    [KN_REQUIRE_DEFAULT_SORT_ORDER_ID] = {"assert-default-sort-order-id", NULL,
                                          "default-sort-order-id"},
};

bool kn_requirement_is_rest(const KnRequirement *req)
{
    size_t n = sizeof(requirement_words) / sizeof(requirement_words[0]);
    return (size_t)req->kind < n && requirement_words[req->kind].type;
}

KnCode kn_requirement_to_json(const KnRequirement *req, json_t **ret, KnErr *err)
{
    if (!kn_requirement_is_rest(req))
        return kn_err_set(err, KN_E_UNSUPPORTED,
                          "a requirement of this commit cannot be said to a REST catalog");
    const RequirementWord *word = &requirement_words[req->kind];
    Writer w = {.obj = json_object()};
    put_text(&w, "type", word->type);
    if (word->text)
        put_text(&w, word->text, req->text);
    if (word->number && req->kind == KN_REQUIRE_REF_SNAPSHOT_ID && req->number < 0)
        put(&w, word->number, json_null()); /* the ref must not exist */
    else if (word->number)
        put_i64(&w, word->number, req->number);
    return finish(&w, ret, err);
}

/* ---- updates ---- */

static const char *const actions[] = {
    [KN_UPDATE_ASSIGN_UUID] = "assign-uuid",
    [KN_UPDATE_UPGRADE_FORMAT_VERSION] = "upgrade-format-version",
    [KN_UPDATE_ADD_SCHEMA] = "add-schema",
    [KN_UPDATE_SET_CURRENT_SCHEMA] = "set-current-schema",
    [KN_UPDATE_ADD_SPEC] = "add-spec",
    [KN_UPDATE_SET_DEFAULT_SPEC] = "set-default-spec",
    [KN_UPDATE_ADD_SORT_ORDER] = "add-sort-order",
    [KN_UPDATE_SET_DEFAULT_SORT_ORDER] = "set-default-sort-order",
    [KN_UPDATE_ADD_SNAPSHOT] = "add-snapshot",
    [KN_UPDATE_SET_SNAPSHOT_REF] = "set-snapshot-ref",
    [KN_UPDATE_REMOVE_SNAPSHOTS] = "remove-snapshots",
    [KN_UPDATE_REMOVE_SNAPSHOT_REF] = "remove-snapshot-ref",
    [KN_UPDATE_SET_LOCATION] = "set-location",
    [KN_UPDATE_SET_PROPERTIES] = "set-properties",
    [KN_UPDATE_REMOVE_PROPERTIES] = "remove-properties",
    [KN_UPDATE_SET_STATISTICS] = "set-statistics",
    [KN_UPDATE_REMOVE_STATISTICS] = "remove-statistics",
    [KN_UPDATE_SET_PARTITION_STATISTICS] = "set-partition-statistics",
    [KN_UPDATE_REMOVE_PARTITION_STATISTICS] = "remove-partition-statistics",
    [KN_UPDATE_REMOVE_SPECS] = "remove-partition-specs",
    [KN_UPDATE_REMOVE_SCHEMAS] = "remove-schemas",
    [KN_UPDATE_ADD_ENCRYPTION_KEY] = "add-encryption-key",
    [KN_UPDATE_REMOVE_ENCRYPTION_KEY] = "remove-encryption-key",
};

static void put_ids(Writer *w, const char *key, const KnUpdate *update)
{
    json_t *array = json_array();
    for (size_t i = 0; i < update->n_ids; i++)
        w->failed |= json_array_append_new(array, json_integer(update->ids[i])) != 0;
    put(w, key, array);
}

static void put_ref(Writer *w, const KnRef *ref)
{
    put_text(w, "ref-name", ref->name);
    put_i64(w, "snapshot-id", ref->snapshot_id);
    put_text(w, "type", ref->is_branch ? "branch" : "tag");
    put_opt(w, "min-snapshots-to-keep", ref->min_snapshots_to_keep);
    put_opt(w, "max-snapshot-age-ms", ref->max_snapshot_age_ms);
    put_opt(w, "max-ref-age-ms", ref->max_ref_age_ms);
}

static void put_statistics(Writer *w, const KnUpdate *update)
{
    bool is_table = update->kind == KN_UPDATE_SET_STATISTICS;
    if (is_table) { /* older servers read the id here */
        const json_t *id = json_object_get(update->json, "snapshot-id");
        if (id)
            put_shared(w, "snapshot-id", id);
    }
    put_shared(w, is_table ? "statistics" : "partition-statistics", update->json);
}

/* Shapes of the table: schemas, specs, orders. */
static bool put_shape(Writer *w, const KnUpdate *update)
{
    switch (update->kind) {
    case KN_UPDATE_ADD_SCHEMA:
        put(w, "schema", kn_schema_to_json(update->schema));
        return true;
    case KN_UPDATE_SET_CURRENT_SCHEMA:
        put_i64(w, "schema-id", update->number);
        return true;
    case KN_UPDATE_ADD_SPEC:
        put(w, "spec", kn_partition_spec_to_json(update->spec));
        return true;
    case KN_UPDATE_SET_DEFAULT_SPEC:
        put_i64(w, "spec-id", update->number);
        return true;
    case KN_UPDATE_ADD_SORT_ORDER:
        put(w, "sort-order", kn_sort_order_to_json(update->sort_order));
        return true;
    case KN_UPDATE_SET_DEFAULT_SORT_ORDER:
        put_i64(w, "sort-order-id", update->number);
        return true;
    case KN_UPDATE_REMOVE_SPECS:
        put_ids(w, "spec-ids", update);
        return true;
    case KN_UPDATE_REMOVE_SCHEMAS:
        put_ids(w, "schema-ids", update);
        return true;
    default:
        return false;
    }
}

/* Snapshots, refs and what is kept of them. */
static bool put_history(Writer *w, const KnUpdate *update)
{
    switch (update->kind) {
    case KN_UPDATE_ADD_SNAPSHOT:
        put(w, "snapshot", kn_snapshot_to_json(&update->snapshot));
        return true;
    case KN_UPDATE_SET_SNAPSHOT_REF:
        put_ref(w, &update->ref);
        return true;
    case KN_UPDATE_REMOVE_SNAPSHOTS:
        put_ids(w, "snapshot-ids", update);
        return true;
    case KN_UPDATE_REMOVE_SNAPSHOT_REF:
        put_text(w, "ref-name", update->text);
        return true;
    case KN_UPDATE_SET_STATISTICS:
    case KN_UPDATE_SET_PARTITION_STATISTICS:
        put_statistics(w, update);
        return true;
    case KN_UPDATE_REMOVE_STATISTICS:
    case KN_UPDATE_REMOVE_PARTITION_STATISTICS:
        put_i64(w, "snapshot-id", update->number);
        return true;
    default:
        return false;
    }
}

static void put_rest(Writer *w, const KnUpdate *update)
{
    switch (update->kind) {
    case KN_UPDATE_ASSIGN_UUID:
        put_text(w, "uuid", update->text);
        break;
    case KN_UPDATE_UPGRADE_FORMAT_VERSION:
        put_i64(w, "format-version", update->number);
        break;
    case KN_UPDATE_SET_LOCATION:
        put_text(w, "location", update->text);
        break;
    case KN_UPDATE_SET_PROPERTIES:
        put_shared(w, "updates", update->properties);
        break;
    case KN_UPDATE_REMOVE_PROPERTIES:
        put_shared(w, "removals", update->properties);
        break;
    case KN_UPDATE_ADD_ENCRYPTION_KEY:
        put_shared(w, "encryption-key", update->json);
        break;
    default: /* KN_UPDATE_REMOVE_ENCRYPTION_KEY */
        put_text(w, "key-id", update->text);
        break;
    }
}

KnCode kn_update_to_json(const KnUpdate *update, json_t **ret, KnErr *err)
{
    Writer w = {.obj = json_object()};
    put_text(&w, "action", actions[update->kind]);
    if (!put_shape(&w, update) && !put_history(&w, update))
        put_rest(&w, update);
    return finish(&w, ret, err);
}
