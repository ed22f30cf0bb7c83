/* SPDX-License-Identifier: Apache-2.0 */
/*
 * metadata.c - the handle of a table metadata document, and finding things in it.
 *
 * A document is one allocation with a count of references: the public struct, the arena that its
 * arrays and texts live in, and the JSON document that defaults, summaries and unknown keys are
 * read from. It never changes after kn_metadata_wrap(), so readers need no lock; the last unref, by
 * whichever thread, frees all of it.
 */
#include "iceberg/metadata/metadata.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "iceberg/metadata/metadata_internal.h"

typedef struct Handle {
    KnMetadata md; /* first: the public pointer is the handle's */
    atomic_size_t refs;
    KnArena *arena;
    json_t *doc;
} Handle;

KnMetadata *kn_metadata_wrap(const KnMetadata *md, KnArena *arena, json_t *doc)
{
    Handle *handle = kn_arena_alloc(arena, sizeof(*handle));

    handle->md = *md;
    handle->arena = arena;
    handle->doc = doc;
    atomic_init(&handle->refs, 1);
    return &handle->md;
}

KnMetadata *kn_metadata_ref(const KnMetadata *md)
{
    Handle *handle = (Handle *)md;

    atomic_fetch_add_explicit(&handle->refs, 1, memory_order_relaxed);
    return &handle->md;
}

KnMetadata *kn_metadata_unref(KnMetadata *md)
{
    Handle *handle = (Handle *)md;

    if (handle && atomic_fetch_sub_explicit(&handle->refs, 1, memory_order_acq_rel) == 1) {
        json_t *doc = handle->doc;
        kn_arena_free(handle->arena); /* handle is in there */
        json_decref(doc);
    }
    return NULL;
}

static void unref(void *md)
{
    kn_metadata_unref(md);
}

void kn_metadata_keep(KnArena *arena, const KnMetadata *md)
{
    kn_arena_defer(arena, unref, kn_metadata_ref(md));
}

const KnSchema *kn_metadata_find_schema(const KnMetadata *md, int32_t schema_id)
{
    for (size_t i = 0; i < md->n_schemas; i++)
        if (md->schemas[i]->schema_id == schema_id)
            return md->schemas[i];
    return NULL;
}

const KnSchema *kn_metadata_schema(const KnMetadata *md)
{
    return kn_metadata_find_schema(md, md->current_schema_id);
}

const KnPartitionSpec *kn_metadata_find_spec(const KnMetadata *md, int32_t spec_id)
{
    for (size_t i = 0; i < md->n_specs; i++)
        if (md->specs[i]->spec_id == spec_id)
            return md->specs[i];
    return NULL;
}

const KnPartitionSpec *kn_metadata_spec(const KnMetadata *md)
{
    return kn_metadata_find_spec(md, md->default_spec_id);
}

const KnSortOrder *kn_metadata_sort_order(const KnMetadata *md)
{
    for (size_t i = 0; i < md->n_sort_orders; i++)
        if (md->sort_orders[i]->order_id == md->default_sort_order_id)
            return md->sort_orders[i];
    return NULL;
}

const KnSnapshot *kn_metadata_find_snapshot(const KnMetadata *md, int64_t snapshot_id)
{
    for (size_t i = md->n_snapshots; i-- > 0;) /* the newest are asked for most */
        if (md->snapshots[i].snapshot_id == snapshot_id)
            return &md->snapshots[i];
    return NULL;
}

const KnSnapshot *kn_metadata_snapshot(const KnMetadata *md)
{
    return md->current_snapshot_id < 0 ? NULL
                                       : kn_metadata_find_snapshot(md, md->current_snapshot_id);
}

const KnRef *kn_metadata_find_ref(const KnMetadata *md, KnStr name)
{
    for (size_t i = 0; i < md->n_refs; i++)
        if (kn_str_eq(kn_str(md->refs[i].name), name))
            return &md->refs[i];
    return NULL;
}

const KnSchema *kn_metadata_snapshot_schema(const KnMetadata *md, const KnSnapshot *snap)
{
    const KnSchema *schema = NULL;

    if (snap->schema_id >= 0)
        schema = kn_metadata_find_schema(md, snap->schema_id);
    return schema ? schema : kn_metadata_schema(md);
}

const KnSnapshot *kn_metadata_snapshot_as_of(const KnMetadata *md, int64_t timestamp_ms)
{
    const KnLogEntry *last = NULL;

    for (size_t i = 0; i < md->n_snapshot_log; i++)
        if (md->snapshot_log[i].timestamp_ms <= timestamp_ms)
            last = &md->snapshot_log[i];
    return last ? kn_metadata_find_snapshot(md, last->snapshot_id) : NULL;
}

const char *kn_metadata_property(const KnMetadata *md, const char *key, const char *dflt)
{
    const char *value = json_string_value(json_object_get(md->properties, key));

    return value ? value : dflt;
}

bool kn_metadata_is_encrypted(const KnMetadata *md)
{
    if (kn_metadata_property(md, "encryption.key-id", NULL))
        return true;
    for (size_t i = 0; i < md->n_snapshots; i++)
        if (md->snapshots[i].key_id)
            return true;
    return false;
}

const KnField *kn_metadata_find_field(const KnMetadata *md, int32_t id)
{
    const KnField *field = kn_schema_find_id(kn_metadata_schema(md), id);

    for (size_t i = md->n_schemas; i-- > 0 && !field;)
        field = kn_schema_find_id(md->schemas[i], id);
    return field;
}

const char *kn_location_strip(KnArena *arena, const char *location)
{
    size_t len = strlen(location);

    while (len > 1 && location[len - 1] == '/' &&
           !(len >= 3 && memcmp(&location[len - 3], "://", 3) == 0))
        len--;
    return kn_arena_strndup(arena, location, len);
}
