/* SPDX-License-Identifier: Apache-2.0 */
/*
 * metadata_json.c - table metadata documents as JSON, with the keys that each version needs.
 *
 * The order of keys is Java's, so that documents of both compare well. v1 repeats the current
 * schema and the default spec in the places where old readers look. "No current snapshot" is -1 in
 * v1 and v2, null in v3. Keys that we do not know follow the known ones.
 *
 * A commit changes little of a document: schemas, snapshots and log entries that the document
 * before has, in our own words, are taken over from its JSON by reference. Nobody changes a JSON
 * value that is part of a document.
 */
#include <string.h>

#include "iceberg/metadata/metadata.h"
#include "iceberg/metadata/metadata_internal.h"
#include "iceberg/schema/type_internal.h"

/* JSON's own functions say NULL or -1 when memory is out or a text is not UTF-8: noted, asked once.
 */
typedef struct Writer {
    const KnMetadata *md;
    const KnMetadata *base; /* md was made of it, and it is in our words; NULL = none */
    json_t *root;
    bool failed;
} Writer;

static void put(Writer *w, json_t *obj, const char *key, json_t *value)
{
    w->failed |= json_object_set_new(obj, key, value) != 0;
}

static void put_i64(Writer *w, json_t *obj, const char *key, int64_t value)
{
    put(w, obj, key, json_integer(value));
}

static void put_text(Writer *w, json_t *obj, const char *key, const char *value)
{
    put(w, obj, key, json_string(value));
}

/* Optional numbers of the structs are -1 when absent. */
static void put_opt(Writer *w, json_t *obj, const char *key, int64_t value)
{
    if (value >= 0)
        put_i64(w, obj, key, value);
}

static void push(Writer *w, json_t *array, json_t *value)
{
    w->failed |= json_array_append_new(array, value) != 0;
}

static void put_shared(Writer *w, const char *key, const json_t *value)
{
    if (value)
        put(w, w->root, key, json_incref((json_t *)value));
    else
        put(w, w->root, key, json_array());
}

/* An element of an array of the base's document: a new reference; NULL when it is not there. */
static json_t *from_base(const Writer *w, const char *key, size_t i)
{
    return json_incref(json_array_get(json_object_get(w->base->extra, key), i));
}

static json_t *summary_to_json(Writer *w, const KnSnapshot *snap)
{
    json_t *obj = json_object();

    if (snap->operation)
        put_text(w, obj, "operation", snap->operation);
    w->failed |= json_object_update_missing(obj, (json_t *)snap->summary) != 0 && snap->summary;
    return obj;
}

static void put_manifests(Writer *w, json_t *obj, const KnSnapshot *snap)
{
    if (snap->manifest_list) {
        put_text(w, obj, "manifest-list", snap->manifest_list);
        return;
    }
    json_t *array = json_array();
    for (size_t i = 0; i < snap->n_manifests; i++)
        push(w, array, json_string(snap->manifests[i]));
    put(w, obj, "manifests", array);
}

static json_t *snapshot_to_json(Writer *w, const KnSnapshot *snap)
{
    static const char *const known[] = {"sequence-number", "snapshot-id", "parent-snapshot-id",
                                        "timestamp-ms",    "summary",     "manifest-list",
                                        "manifests",       "schema-id",   "first-row-id",
                                        "added-rows",      "key-id",      NULL};
    json_t *obj = json_object();

    if (snap->sequence_number > 0) /* absent in v1, and in what was v1 once */
        put_i64(w, obj, "sequence-number", snap->sequence_number);
    put_i64(w, obj, "snapshot-id", snap->snapshot_id);
    put_opt(w, obj, "parent-snapshot-id", snap->parent_id);
    put_i64(w, obj, "timestamp-ms", snap->timestamp_ms);
    if (snap->operation || snap->summary)
        put(w, obj, "summary", summary_to_json(w, snap));
    put_manifests(w, obj, snap);
    put_opt(w, obj, "schema-id", snap->schema_id);
    if (w->md->format_version >= 3) {
        put_opt(w, obj, "first-row-id", snap->first_row_id);
        put_opt(w, obj, "added-rows", snap->added_rows);
    }
    if (snap->key_id)
        put_text(w, obj, "key-id", snap->key_id);
    kn_json_keep_unknown(obj, snap->extra, known);
    return obj;
}

json_t *kn_snapshot_to_json(const KnSnapshot *snap)
{
    /* The commit's own version is not known here; numbers of v3 are there when they are given. */
    KnMetadata v3 = {.format_version = KN_FORMAT_VERSION_MAX};
    Writer w = {.md = &v3};
    json_t *obj = snapshot_to_json(&w, snap);
    if (!w.failed)
        return obj;
    json_decref(obj);
    return NULL;
}

static json_t *ref_to_json(Writer *w, const KnRef *ref)
{
    static const char *const known[] = {"snapshot-id",           "type",
                                        "min-snapshots-to-keep", "max-snapshot-age-ms",
                                        "max-ref-age-ms",        NULL};
    json_t *obj = json_object();

    put_i64(w, obj, "snapshot-id", ref->snapshot_id);
    put_text(w, obj, "type", ref->is_branch ? "branch" : "tag");
    put_opt(w, obj, "min-snapshots-to-keep", ref->min_snapshots_to_keep);
    put_opt(w, obj, "max-snapshot-age-ms", ref->max_snapshot_age_ms);
    put_opt(w, obj, "max-ref-age-ms", ref->max_ref_age_ms);
    kn_json_keep_unknown(obj, json_object_get(json_object_get(w->md->extra, "refs"), ref->name),
                         known);
    return obj;
}

static json_t *schema_to_json(const Writer *w, const KnSchema *schema)
{
    json_t *known = NULL;

    for (size_t i = 0; w->base && i < w->base->n_schemas && !known; i++)
        if (w->base->schemas[i] == schema)
            known = from_base(w, "schemas", i);
    return known ? known : kn_schema_to_json(schema);
}

static void put_schemas(Writer *w)
{
    json_t *array = json_array();

    if (w->md->format_version == 1 && kn_metadata_schema(w->md))
        put(w, w->root, "schema", kn_schema_to_json(kn_metadata_schema(w->md)));
    put_i64(w, w->root, "current-schema-id", w->md->current_schema_id);
    for (size_t i = 0; i < w->md->n_schemas; i++)
        push(w, array, schema_to_json(w, w->md->schemas[i]));
    put(w, w->root, "schemas", array);
}

static void put_specs(Writer *w)
{
    json_t *specs = json_array(), *orders = json_array();

    if (w->md->format_version == 1 && kn_metadata_spec(w->md))
        put(w, w->root, "partition-spec", kn_partition_fields_to_json(kn_metadata_spec(w->md)));
    put_i64(w, w->root, "default-spec-id", w->md->default_spec_id);
    for (size_t i = 0; i < w->md->n_specs; i++)
        push(w, specs, kn_partition_spec_to_json(w->md->specs[i]));
    put(w, w->root, "partition-specs", specs);
    put_i64(w, w->root, "last-partition-id", w->md->last_partition_id);
    put_i64(w, w->root, "default-sort-order-id", w->md->default_sort_order_id);
    for (size_t i = 0; i < w->md->n_sort_orders; i++)
        push(w, orders, kn_sort_order_to_json(w->md->sort_orders[i]));
    put(w, w->root, "sort-orders", orders);
}

/* Those of the base come first and in its order, so that *at only moves on. */
static json_t *known_snapshot(const Writer *w, const KnSnapshot *snap, size_t *at)
{
    size_t n = w->base ? w->base->n_snapshots : 0;

    for (size_t i = *at; i < n && snap->extra; i++) {
        if (w->base->snapshots[i].extra != snap->extra)
            continue;
        *at = i + 1;
        return from_base(w, "snapshots", i);
    }
    return NULL;
}

static void put_snapshots(Writer *w)
{
    json_t *refs = json_object(), *snapshots = json_array();

    if (w->md->current_snapshot_id >= 0 || w->md->format_version < 3)
        put_i64(w, w->root, "current-snapshot-id", w->md->current_snapshot_id);
    else
        put(w, w->root, "current-snapshot-id", json_null());
    if (w->md->format_version >= 3)
        put_i64(w, w->root, "next-row-id", w->md->next_row_id);
    for (size_t i = 0; i < w->md->n_refs; i++)
        put(w, refs, w->md->refs[i].name, ref_to_json(w, &w->md->refs[i]));
    put(w, w->root, "refs", refs);
    for (size_t i = 0, at = 0; i < w->md->n_snapshots; i++) {
        json_t *known = known_snapshot(w, &w->md->snapshots[i], &at);
        push(w, snapshots, known ? known : snapshot_to_json(w, &w->md->snapshots[i]));
    }
    put(w, w->root, "snapshots", snapshots);
}

static json_t *log_entry_to_json(Writer *w, const KnLogEntry *entry)
{
    json_t *obj = json_object();

    put_i64(w, obj, "timestamp-ms", entry->timestamp_ms);
    if (entry->metadata_file)
        put_text(w, obj, "metadata-file", entry->metadata_file);
    else
        put_i64(w, obj, "snapshot-id", entry->snapshot_id);
    return obj;
}

/* An entry that md has from its base: texts are the base's own then. */
static bool same_entry(const KnLogEntry *a, const KnLogEntry *b)
{
    return a->timestamp_ms == b->timestamp_ms && a->snapshot_id == b->snapshot_id &&
           a->metadata_file == b->metadata_file;
}

/* Entries of the base's log, which md's begins with but for those that were dropped, are shared. */
static void put_log(Writer *w, const char *key, const KnLogEntry *log, size_t n)
{
    json_t *array = json_array();
    bool snapshots = !strcmp(key, "snapshot-log");
    const KnLogEntry *old = !w->base    ? NULL
                            : snapshots ? w->base->snapshot_log
                                        : w->base->metadata_log;
    size_t n_old = !w->base ? 0 : snapshots ? w->base->n_snapshot_log : w->base->n_metadata_log;
    size_t at = 0;

    for (size_t i = 0; i < n; i++) {
        size_t found = at;
        while (found < n_old && !same_entry(&old[found], &log[i]))
            found++;
        json_t *known = found < n_old ? from_base(w, key, found) : NULL;
        at = known ? found + 1 : at;
        push(w, array, known ? known : log_entry_to_json(w, &log[i]));
    }
    put(w, w->root, key, array);
}

static void put_head(Writer *w)
{
    const KnMetadata *md = w->md;

    put_i64(w, w->root, "format-version", md->format_version);
    if (md->uuid)
        put_text(w, w->root, "table-uuid", md->uuid);
    put_text(w, w->root, "location", md->location);
    if (md->format_version > 1)
        put_i64(w, w->root, "last-sequence-number", md->last_sequence_number);
    put_i64(w, w->root, "last-updated-ms", md->last_updated_ms);
    put_i64(w, w->root, "last-column-id", md->last_column_id);
}

json_t *kn_metadata_make_json(const KnMetadata *md, const KnMetadata *base)
{
    /* Keys that another version has, or that are absent when empty: never "unknown". */
    static const char *const known[] = {
        "table-uuid",      "schema", "partition-spec", "last-sequence-number", "next-row-id",
        "encryption-keys", NULL};
    Writer w = {.md = md, .base = base && base->written ? base : NULL, .root = json_object()};

    put_head(&w);
    put_schemas(&w);
    put_specs(&w);
    put(&w, w.root, "properties", json_incref((json_t *)md->properties));
    put_snapshots(&w);
    put_shared(&w, "statistics", md->statistics);
    put_shared(&w, "partition-statistics", md->partition_statistics);
    if (md->encryption_keys)
        put_shared(&w, "encryption-keys", md->encryption_keys);
    put_log(&w, "snapshot-log", md->snapshot_log, md->n_snapshot_log);
    put_log(&w, "metadata-log", md->metadata_log, md->n_metadata_log);
    kn_json_keep_unknown(w.root, md->extra, known);
    if (!w.failed)
        return w.root;
    json_decref(w.root);
    return NULL;
}

KnCode kn_metadata_to_json(const KnMetadata *md, KnBuf *ret, KnErr *err)
{
    KN_JSON_AUTO doc =
        md->written ? json_incref((json_t *)(uintptr_t)md->extra) : kn_metadata_make_json(md, NULL);

    if (!doc)
        return kn_err_set(
            err, KN_E_INVAL,
            "table metadata cannot be written: a text is not UTF-8, or memory is out");
    kn_json_dump(ret, doc);
    return kn_buf_check(ret, err);
}
