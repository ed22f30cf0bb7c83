/* SPDX-License-Identifier: Apache-2.0 */
/* manifest_copy.c - deep copies of manifest entries, for callers that keep them, and their keys. An
 * empty list stays apart from a null one. */
#include <inttypes.h>

#include "iceberg/manifest/manifest_internal.h"

static const void *copy_array(KnArena *arena, const void *items, size_t n, size_t size)
{
    if (!items)
        return NULL;
    void *copy = kn_arena_alloc(arena, n * size);
    return n ? memcpy(copy, items, n * size) : copy;
}

static KnStr copy_bytes(KnArena *arena, KnStr s)
{
    if (s.ptr)
        s.ptr = kn_arena_strndup(arena, s.ptr, s.len);
    return s;
}

static const KnIdBound *copy_bounds(KnArena *arena, const KnIdBound *bounds, size_t n)
{
    if (!bounds)
        return NULL;
    KnIdBound *copy = kn_arena_alloc(arena, n * sizeof(*copy));
    for (size_t i = 0; i < n; ++i)
        copy[i] = (KnIdBound){bounds[i].id, copy_bytes(arena, bounds[i].bytes)};
    return copy;
}

static bool has_bytes(const KnValue *value)
{
    return !value->null && (value->kind == KN_TYPE_STRING || value->kind == KN_TYPE_UUID ||
                            value->kind == KN_TYPE_FIXED || value->kind == KN_TYPE_BINARY);
}

static const KnValue *copy_values(KnArena *arena, const KnValue *values, size_t n)
{
    if (n == 0)
        return NULL;
    KnValue *copy = kn_arena_alloc(arena, n * sizeof(*copy));
    for (size_t i = 0; i < n; ++i) {
        copy[i] = values[i];
        if (has_bytes(&values[i]))
            copy[i].bytes = copy_bytes(arena, values[i].bytes);
    }
    return copy;
}

#define COPY_ARRAY(arena, file, member, n)                                                         \
    ((file)->member = copy_array((arena), (file)->member, (file)->n, sizeof(*(file)->member)))

KnManifestEntry *kn_manifest_entry_copy(KnArena *arena, const KnManifestEntry *entry)
{
    KnManifestEntry *copy = kn_arena_alloc(arena, sizeof(*copy));
    *copy = *entry;
    KnDataFile *f = &copy->file;
    f->path = kn_arena_strdup(arena, f->path);
    if (f->referenced_data_file)
        f->referenced_data_file = kn_arena_strdup(arena, f->referenced_data_file);
    f->partition = copy_values(arena, f->partition, f->n_partition);
    COPY_ARRAY(arena, f, column_sizes, n_column_sizes);
    COPY_ARRAY(arena, f, value_counts, n_value_counts);
    COPY_ARRAY(arena, f, null_counts, n_null_counts);
    COPY_ARRAY(arena, f, nan_counts, n_nan_counts);
    COPY_ARRAY(arena, f, split_offsets, n_split_offsets);
    COPY_ARRAY(arena, f, equality_ids, n_equality_ids);
    f->lower = copy_bounds(arena, f->lower, f->n_lower);
    f->upper = copy_bounds(arena, f->upper, f->n_upper);
    f->key_metadata = copy_bytes(arena, f->key_metadata);
    return copy;
}

KnStr kn_manifest_entry_key(KnBuf *buf, const KnManifestEntry *entry)
{
    kn_buf_reset(buf);
    kn_buf_printf(buf, "%" PRId64 ":%" PRId64 ":", entry->sequence_number,
                  entry->file.content_offset);
    kn_buf_text(buf, entry->file.path);
    return (KnStr){buf->data, buf->len};
}
