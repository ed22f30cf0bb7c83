/* SPDX-License-Identifier: Apache-2.0 */
/*
 * metadata_apply.c - a list of updates applied to a document, as Java's TableMetadata.Builder does.
 *
 * One way for local commits and for REST commits. The updates work on a KnBuilder; the result is
 * written as JSON and parsed again, which checks it as any reader will and gives it memory of its
 * own. Differences to Java, on purpose: last-updated-ms and the logs never run backwards, "-1" also
 * means a schema, spec or order that was asked for and existed already, and next-row-id is placed
 * after the new snapshot's rows even when its first-row-id left a gap.
 */
#include <string.h>

#include "base/clock.h"
#include "base/random.h"
#include "iceberg/metadata/metadata.h"
#include "iceberg/metadata/metadata_builder.h"
#include "iceberg/metadata/metadata_internal.h"
#include "iceberg/schema/partition_internal.h"
#include "iceberg/schema/type_internal.h"

#define PREVIOUS_VERSIONS_MAX      "write.metadata.previous-versions-max"
#define PREVIOUS_VERSIONS_MAX_DFLT 100

/* ---- beginning ---- */

static void *copy_array(KnArena *arena, const void *items, size_t n, size_t room, size_t size)
{
    char *copy = kn_arena_zalloc(arena, (n + room) * size);

    if (n > 0)
        memcpy(copy, items, n * size);
    return copy;
}

static void init_arrays(KnBuilder *b, size_t room)
{
    const KnMetadata *md = &b->md;

    b->schemas = copy_array(b->arena, md->schemas, md->n_schemas, room, sizeof(*b->schemas));
    b->specs = copy_array(b->arena, md->specs, md->n_specs, room, sizeof(*b->specs));
    b->sort_orders =
        copy_array(b->arena, md->sort_orders, md->n_sort_orders, room, sizeof(*b->sort_orders));
    b->snapshots =
        copy_array(b->arena, md->snapshots, md->n_snapshots, room, sizeof(*b->snapshots));
    b->refs = copy_array(b->arena, md->refs, md->n_refs, room, sizeof(*b->refs));
    b->snapshot_log =
        copy_array(b->arena, md->snapshot_log, md->n_snapshot_log, room, sizeof(*b->snapshot_log));
    b->added_ids = kn_arena_zalloc(b->arena, room * sizeof(*b->added_ids));
    b->main_ids = kn_arena_zalloc(b->arena, room * sizeof(*b->main_ids));
    b->md.schemas = b->schemas;
    b->md.specs = b->specs;
    b->md.sort_orders = b->sort_orders;
    b->md.snapshots = b->snapshots;
    b->md.refs = b->refs;
    b->md.snapshot_log = b->snapshot_log;
}

static json_t *copy_json(const json_t *json)
{
    return json ? json_copy((json_t *)json) : NULL;
}

static void init_json(KnBuilder *b)
{
    b->properties = b->base ? copy_json(b->md.properties) : json_object();
    b->lists[KN_LIST_STATISTICS] = copy_json(b->md.statistics);
    b->lists[KN_LIST_PARTITION_STATISTICS] = copy_json(b->md.partition_statistics);
    b->lists[KN_LIST_ENCRYPTION_KEYS] = copy_json(b->md.encryption_keys);
}

/* A new table's version comes first: v2 cannot be "upgraded" to v1. */
static int32_t new_table_version(const KnUpdate *updates, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (updates[i].kind == KN_UPDATE_UPGRADE_FORMAT_VERSION && updates[i].number >= 1 &&
            updates[i].number <= KN_FORMAT_VERSION_MAX)
            return (int32_t)updates[i].number;
    return 2;
}

static void builder_init(KnBuilder *b, const KnMetadata *base, const KnUpdate *updates, size_t n)
{
    *b = (KnBuilder){.arena = kn_arena_new(4096), .base = base, .updated_ms = -1};
    b->last_schema_id = b->last_spec_id = b->last_order_id = KN_NOT_ADDED;
    if (base)
        b->md = *base;
    else
        b->md = (KnMetadata){.format_version = new_table_version(updates, n),
                             .last_partition_id = KN_PARTITION_ID_FIRST - 1,
                             .current_schema_id = -1,
                             .default_spec_id = -1,
                             .default_sort_order_id = -1,
                             .current_snapshot_id = -1};
    init_arrays(b, n + 2);
    init_json(b);
}

static void builder_done(KnBuilder *b)
{
    json_decref(b->properties);
    for (size_t i = 0; i < sizeof(b->lists) / sizeof(b->lists[0]); i++)
        json_decref(b->lists[i]);
    kn_arena_free(b->arena);
}

/* ---- updates of scalars and lists ---- */

static KnCode upgrade(KnBuilder *b, int64_t version, KnErr *err)
{
    if (version > KN_FORMAT_VERSION_MAX || version < 1)
        return kn_err_set(err, KN_E_INVAL,
                          "Cannot upgrade table to unsupported format version: v%lld (supported: "
                          "v%d)",
                          (long long)version, KN_FORMAT_VERSION_MAX);
    if (version < b->md.format_version)
        return kn_err_set(err, KN_E_INVAL, "Cannot downgrade v%d table to v%lld",
                          b->md.format_version, (long long)version);
    b->changed |= version != b->md.format_version;
    b->md.format_version = (int32_t)version;
    return KN_OK;
}

static KnCode set_text(KnBuilder *b, const char **field, const char *text, const char *what,
                       KnErr *err)
{
    if (!text || !text[0])
        return kn_err_set(err, KN_E_INVAL, "Cannot set %s to null", what);
    if (!*field || strcmp(*field, text) != 0) {
        *field = text;
        b->changed = true;
    }
    return KN_OK;
}

static KnCode set_properties(KnBuilder *b, const json_t *properties, KnErr *err)
{
    const char *key;
    json_t *value;

    if (!json_is_object(properties))
        return kn_err_set(err, KN_E_INVAL, "properties to set are an object of strings");
    json_object_foreach((json_t *)properties, key, value)
    {
        if (!json_is_string(value))
            return kn_err_set(err, KN_E_INVAL, "property '%s': expected a string", key);
        if (json_object_set(b->properties, key, value) != 0)
            return kn_err_set(err, KN_E_NOMEM, "property '%s': memory is out", key);
        b->changed = true;
    }
    return KN_OK;
}

static KnCode remove_properties(KnBuilder *b, const json_t *names, KnErr *err)
{
    size_t i;
    json_t *name;

    if (!json_is_array(names))
        return kn_err_set(err, KN_E_INVAL, "properties to remove are an array of names");
    json_array_foreach(names, i, name)
    {
        if (!json_is_string(name))
            return kn_err_set(err, KN_E_INVAL, "properties to remove are an array of names");
        if (json_object_del(b->properties, json_string_value(name)) == 0)
            b->changed = true;
    }
    return KN_OK;
}

KnCode kn_builder_put(KnBuilder *b, int list, const char *key, const json_t *object, KnErr *err)
{
    const json_t *id = json_object_get(object, key);

    if (!json_is_integer(id) && !json_is_string(id))
        return kn_err_set(err, KN_E_INVAL, "field '%s' is missing", key);
    if (json_is_integer(id))
        kn_builder_drop_number(b, list, json_integer_value(id));
    else
        kn_builder_drop_text(b, list, key, json_string_value(id));
    if (!b->lists[list])
        b->lists[list] = json_array();
    if (json_array_append(b->lists[list], (json_t *)object) != 0)
        return kn_err_set(err, KN_E_NOMEM, "memory is out");
    b->changed = true;
    return KN_OK;
}

void kn_builder_drop_number(KnBuilder *b, int list, int64_t snapshot_id)
{
    for (size_t i = json_array_size(b->lists[list]); i-- > 0;) {
        const json_t *id = json_object_get(json_array_get(b->lists[list], i), "snapshot-id");
        if (json_is_integer(id) && json_integer_value(id) == snapshot_id) {
            json_array_remove(b->lists[list], i);
            b->changed = true;
        }
    }
}

void kn_builder_drop_text(KnBuilder *b, int list, const char *key, const char *text)
{
    for (size_t i = json_array_size(b->lists[list]); i-- > 0;) {
        const char *id = json_string_value(json_object_get(json_array_get(b->lists[list], i), key));
        if (id && strcmp(id, text) == 0) {
            json_array_remove(b->lists[list], i);
            b->changed = true;
        }
    }
}

/* ---- one update ---- */

static KnCode apply_shape(KnBuilder *b, const KnUpdate *u, KnErr *err)
{
    switch (u->kind) {
    case KN_UPDATE_ADD_SCHEMA:
        return kn_builder_add_schema(b, u->schema, err);
    case KN_UPDATE_SET_CURRENT_SCHEMA:
        return kn_builder_set_schema(b, u->number, err);
    case KN_UPDATE_REMOVE_SCHEMAS:
        return kn_builder_remove_schemas(b, u, err);
    case KN_UPDATE_ADD_SPEC:
        return kn_builder_add_spec(b, u->spec, err);
    case KN_UPDATE_SET_DEFAULT_SPEC:
        return kn_builder_set_spec(b, u->number, err);
    case KN_UPDATE_REMOVE_SPECS:
        return kn_builder_remove_specs(b, u, err);
    case KN_UPDATE_ADD_SORT_ORDER:
        return kn_builder_add_order(b, u->sort_order, err);
    default:
        return kn_builder_set_order(b, u->number, err);
    }
}

static KnCode apply_history(KnBuilder *b, const KnUpdate *u, KnErr *err)
{
    switch (u->kind) {
    case KN_UPDATE_ADD_SNAPSHOT:
        return kn_builder_add_snapshot(b, &u->snapshot, err);
    case KN_UPDATE_SET_SNAPSHOT_REF:
        return kn_builder_set_ref(b, &u->ref, err);
    case KN_UPDATE_REMOVE_SNAPSHOTS:
        kn_builder_remove_snapshots(b, u->ids, u->n_ids);
        return KN_OK;
    case KN_UPDATE_REMOVE_SNAPSHOT_REF:
        kn_builder_remove_ref(b, u->text);
        return KN_OK;
    case KN_UPDATE_SET_STATISTICS:
        return kn_builder_put(b, KN_LIST_STATISTICS, "snapshot-id", u->json, err);
    case KN_UPDATE_SET_PARTITION_STATISTICS:
        return kn_builder_put(b, KN_LIST_PARTITION_STATISTICS, "snapshot-id", u->json, err);
    case KN_UPDATE_REMOVE_STATISTICS:
        kn_builder_drop_number(b, KN_LIST_STATISTICS, u->number);
        return KN_OK;
    default:
        kn_builder_drop_number(b, KN_LIST_PARTITION_STATISTICS, u->number);
        return KN_OK;
    }
}

static KnCode apply_one(KnBuilder *b, const KnUpdate *u, KnErr *err)
{
    switch (u->kind) {
    case KN_UPDATE_ASSIGN_UUID:
        return set_text(b, &b->md.uuid, u->text, "uuid", err);
    case KN_UPDATE_UPGRADE_FORMAT_VERSION:
        return upgrade(b, u->number, err);
    case KN_UPDATE_SET_LOCATION:
        return set_text(b, &b->md.location, u->text, "location", err);
    case KN_UPDATE_SET_PROPERTIES:
        return set_properties(b, u->properties, err);
    case KN_UPDATE_REMOVE_PROPERTIES:
        return remove_properties(b, u->properties, err);
    case KN_UPDATE_ADD_ENCRYPTION_KEY:
        return kn_builder_put(b, KN_LIST_ENCRYPTION_KEYS, "key-id", u->json, err);
    case KN_UPDATE_REMOVE_ENCRYPTION_KEY:
        kn_builder_drop_text(b, KN_LIST_ENCRYPTION_KEYS, "key-id", u->text);
        return KN_OK;
    case KN_UPDATE_ADD_SCHEMA:
    case KN_UPDATE_SET_CURRENT_SCHEMA:
    case KN_UPDATE_REMOVE_SCHEMAS:
    case KN_UPDATE_ADD_SPEC:
    case KN_UPDATE_SET_DEFAULT_SPEC:
    case KN_UPDATE_REMOVE_SPECS:
    case KN_UPDATE_ADD_SORT_ORDER:
    case KN_UPDATE_SET_DEFAULT_SORT_ORDER:
        return apply_shape(b, u, err);
    default:
        return apply_history(b, u, err);
    }
}

/* ---- the end ---- */

static int64_t previous_versions_max(const KnBuilder *b)
{
    const char *text = json_string_value(json_object_get(b->properties, PREVIOUS_VERSIONS_MAX));
    int64_t max;

    if (!text || !kn_str_to_i64(kn_str(text), &max))
        return PREVIOUS_VERSIONS_MAX_DFLT;
    return max < 1 ? 1 : max;
}

static void add_previous_file(KnBuilder *b, const char *file)
{
    size_t n = b->md.n_metadata_log, max, skip;
    KnLogEntry *log;

    if (!b->base || !file)
        return;
    max = (size_t)previous_versions_max(b);
    skip = n >= max ? n - max + 1 : 0;
    log = copy_array(b->arena, b->md.metadata_log + skip, n - skip, 1, sizeof(*log));
    log[n - skip] = (KnLogEntry){.timestamp_ms = b->base->last_updated_ms, .metadata_file = file};
    b->md.metadata_log = log;
    b->md.n_metadata_log = n - skip + 1;
}

/* A table without partitioning or order has the empty ones. */
static KnCode complete_new_table(KnBuilder *b, KnErr *err)
{
    static const KnPartitionSpec no_spec = {0};
    static const KnSortOrder no_order = {0};

    if (!b->md.location || b->md.n_schemas == 0)
        return kn_err_set(err, KN_E_INVAL, "a new table needs a %s",
                          b->md.location ? "schema" : "location");
    if (b->md.n_specs == 0)
        KN_TRY(kn_builder_add_spec(b, &no_spec, err));
    if (b->md.n_sort_orders == 0)
        KN_TRY(kn_builder_add_order(b, &no_order, err));
    if (b->md.current_schema_id < 0)
        b->md.current_schema_id = b->schemas[0]->schema_id;
    if (b->md.default_spec_id < 0)
        b->md.default_spec_id = b->specs[0]->spec_id;
    if (b->md.default_sort_order_id < 0)
        b->md.default_sort_order_id = b->sort_orders[0]->order_id;
    return KN_OK;
}

static KnCode check_defaults(const KnBuilder *b, KnErr *err)
{
    const KnSchema *schema = kn_metadata_schema(&b->md);

    KN_TRY(kn_partition_sources_check(kn_metadata_spec(&b->md), schema, err));
    return kn_sort_order_check(kn_metadata_sort_order(&b->md), schema, err);
}

static void set_times(KnBuilder *b)
{
    int64_t floor_ms = b->base ? b->base->last_updated_ms : 0;

    if (b->updated_ms < 0)
        b->updated_ms = kn_clock_wall_ms();
    b->md.last_updated_ms = b->updated_ms > floor_ms ? b->updated_ms : floor_ms;
}

static KnCode finish(KnBuilder *b, KnMetadata **ret, KnErr *err)
{
    KN_JSON_AUTO doc = NULL;
    KnCode rc;

    b->md.properties = b->properties;
    b->md.statistics = b->lists[KN_LIST_STATISTICS];
    b->md.partition_statistics = b->lists[KN_LIST_PARTITION_STATISTICS];
    b->md.encryption_keys = b->lists[KN_LIST_ENCRYPTION_KEYS];
    b->md.location = kn_location_strip(b->arena, b->md.location);
    doc = kn_metadata_make_json(&b->md, b->base);
    if (!doc)
        return kn_err_set(err, KN_E_INVAL, "an update holds text that is not UTF-8");
    rc = kn_metadata_parse_written(doc, "updated table metadata", ret, err);
    if (rc == KN_E_CORRUPT) { /* it is the updates that are wrong, not a file */
        rc = KN_E_INVAL;
        if (err)
            err->code = rc;
    }
    return rc;
}

static KnCode apply_all(KnBuilder *b, const KnUpdate *updates, size_t n, const char *previous_file,
                        KnErr *err)
{
    for (size_t i = 0; i < n; i++)
        KN_TRY(apply_one(b, &updates[i], err));
    if (!b->base)
        KN_TRY(complete_new_table(b, err));
    if (b->base && !b->changed)
        return KN_OK;
    if (!b->md.uuid) {
        char *uuid = kn_arena_alloc(b->arena, 37);
        b->md.uuid = kn_random_uuid4(uuid);
    }
    KN_TRY(check_defaults(b, err));
    kn_builder_fix_log(b);
    add_previous_file(b, previous_file);
    set_times(b);
    return KN_OK;
}

KnCode kn_metadata_apply(const KnMetadata *base, const KnUpdate *updates, size_t n,
                         const char *previous_file, KnMetadata **ret, KnErr *err)
{
    KnBuilder b;
    KnCode rc;

    builder_init(&b, base, updates, n);
    rc = apply_all(&b, updates, n, previous_file, err);
    if (rc == KN_OK && base && !b.changed)
        *ret = kn_metadata_ref(base);
    else if (rc == KN_OK)
        rc = finish(&b, ret, err);
    builder_done(&b);
    return rc;
}
