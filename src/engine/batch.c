/* SPDX-License-Identifier: Apache-2.0 */
/*
 * batch.c - refcounted windows over the engine's data chunks.
 *
 * A KnChunk owns one of the engine's chunks; batches are windows that hold a reference to it, so a
 * slice costs two small allocations and no copy. The engine flattens chunks recursively before it
 * hands them out: every vector, at any depth, is a plain array with an optional validity mask.
 *
 * Indexing: the batch's row 0 is the chunk's row `first`. Data pointers are moved there and the
 * validity bits get an offset; struct fields run in step with their struct and move along; elements
 * of lists and maps are reached by absolute offsets and do not move.
 *
 * Reference counts are atomic; everything else is immutable, so a batch may be read by many threads
 * and freed by any. A batch must be gone before its engine is closed.
 */
#include <assert.h>
#include <string.h>

#include "engine/engine_internal.h"

typedef struct KnChunk {
    atomic_size_t refs;
    duckdb_data_chunk chunk;
    KnResultTypes *types;
} KnChunk;

struct KnBatch {
    atomic_size_t refs;
    KnChunk *chunk;
    size_t first, rows, n_columns;
};

static void chunk_unref(KnChunk *chunk)
{
    if (atomic_fetch_sub_explicit(&chunk->refs, 1, memory_order_acq_rel) != 1)
        return;
    duckdb_destroy_data_chunk(&chunk->chunk);
    kn_result_types_unref(chunk->types);
    free(chunk);
}

static KnBatch *window_new(KnChunk *chunk, size_t first, size_t rows, size_t n_columns)
{
    KnBatch *batch = kn_engine_zalloc(sizeof(*batch));
    atomic_init(&batch->refs, 1);
    batch->chunk = chunk;
    batch->first = first;
    batch->rows = rows;
    batch->n_columns = n_columns;
    return batch;
}

KnBatch *kn_batch_new(duckdb_data_chunk chunk, KnResultTypes *types)
{
    KnChunk *owner = kn_engine_zalloc(sizeof(*owner));
    atomic_init(&owner->refs, 1);
    owner->chunk = chunk;
    owner->types = kn_result_types_ref(types);
    return window_new(owner, 0, duckdb_data_chunk_get_size(chunk), types->n);
}

KnBatch *kn_batch_ref(KnBatch *batch)
{
    atomic_fetch_add_explicit(&batch->refs, 1, memory_order_relaxed);
    return batch;
}

KnBatch *kn_batch_unref(KnBatch *batch)
{
    if (batch && atomic_fetch_sub_explicit(&batch->refs, 1, memory_order_acq_rel) == 1) {
        chunk_unref(batch->chunk);
        free(batch);
    }
    return NULL;
}

size_t kn_batch_rows(const KnBatch *batch)
{
    return batch->rows;
}

size_t kn_batch_n_columns(const KnBatch *batch)
{
    return batch->n_columns;
}

duckdb_data_chunk kn_batch_chunk(const KnBatch *batch, size_t *ret_first)
{
    *ret_first = batch->first;
    return batch->chunk->chunk;
}

KnResultTypes *kn_batch_types(const KnBatch *batch)
{
    return batch->chunk->types;
}

const KnColType *kn_batch_column_type(const KnBatch *batch, size_t col)
{
    assert(col < batch->n_columns);
    return &batch->chunk->types->types[col];
}

KnBatch *kn_batch_slice(KnBatch *batch, size_t first, size_t count)
{
    assert(first <= batch->rows && count <= batch->rows - first);
    atomic_fetch_add_explicit(&batch->chunk->refs, 1, memory_order_relaxed);
    return window_new(batch->chunk, batch->first + first, count, batch->n_columns);
}

KnBatch *kn_batch_project(KnBatch *batch, size_t n_columns)
{
    assert(n_columns <= batch->n_columns);
    atomic_fetch_add_explicit(&batch->chunk->refs, 1, memory_order_relaxed);
    return window_new(batch->chunk, batch->first, batch->rows, n_columns);
}

KnVector kn_vector_view(const KnColType *type, duckdb_vector vec, size_t first)
{
    size_t size = kn_col_type_size(type);
    const char *data = size ? duckdb_vector_get_data(vec) : NULL;
    return (KnVector){
        .type = type,
        .data = data ? data + first * size : NULL,
        .validity = duckdb_vector_get_validity(vec),
        .bit_offset = first,
        .handle = vec,
        .first = first,
    };
}

KnVector kn_batch_vector(const KnBatch *batch, size_t col)
{
    const KnColType *type = kn_batch_column_type(batch, col);
    return kn_vector_view(type, duckdb_data_chunk_get_vector(batch->chunk->chunk, col),
                          batch->first);
}

KnVector kn_vector_child(const KnVector *vec, size_t child)
{
    assert(child < vec->type->n_children);
    const KnColType *type = &vec->type->children[child];
    duckdb_vector handle = vec->handle;
    if (vec->type->kind == KN_COL_STRUCT)
        return kn_vector_view(type, duckdb_struct_vector_get_child(handle, child), vec->first);
    return kn_vector_view(type, duckdb_list_vector_get_child(handle), 0);
}

KnStr kn_vector_str(const KnVector *vec, size_t row)
{
    assert(vec->type->kind == KN_COL_VARCHAR || vec->type->kind == KN_COL_BLOB);
    assert(vec->data); /* only a struct's rows are nowhere but in its fields */
    const duckdb_string_t *s = (const duckdb_string_t *)vec->data + row;
    uint32_t len = s->value.inlined.length;
    const char *ptr =
        len <= sizeof(s->value.inlined.inlined) ? s->value.inlined.inlined : s->value.pointer.ptr;
    return (KnStr){ptr, len};
}

void kn_vector_uuid(const KnVector *vec, size_t row, uint8_t out[16])
{
    assert(vec->type->kind == KN_COL_UUID);
    unsigned __int128 value;
    memcpy(&value, (const char *)vec->data + row * sizeof(value), sizeof(value));
    value ^= (unsigned __int128)1 << 127; /* the engine flips the top bit to sort as signed */
    for (int i = 15; i >= 0; i--) {
        out[i] = (uint8_t)value;
        value >>= 8;
    }
}

static __int128 signed_of_size(const char *p, size_t size)
{
    __int128 wide;
    switch (size) {
    case 1:
        return *(const int8_t *)p;
    case 2:
        return *(const int16_t *)p;
    case 4:
        return *(const int32_t *)p;
    case 8:
        return *(const int64_t *)p;
    default:
        memcpy(&wide, p, sizeof(wide));
        return wide;
    }
}

static __int128 unsigned_of_size(const char *p, size_t size)
{
    switch (size) {
    case 1:
        return *(const uint8_t *)p;
    case 2:
        return *(const uint16_t *)p;
    case 4:
        return *(const uint32_t *)p;
    default:
        return *(const uint64_t *)p;
    }
}

__int128 kn_vector_int128(const KnVector *vec, size_t row)
{
    size_t size = kn_col_type_size(vec->type);
    const char *p = (const char *)vec->data + row * size;
    switch (vec->type->kind) {
    case KN_COL_BOOL:
    case KN_COL_UINT8:
    case KN_COL_UINT16:
    case KN_COL_UINT32:
    case KN_COL_UINT64:
        return unsigned_of_size(p, size);
    default:
        assert(size && vec->type->kind != KN_COL_FLOAT && vec->type->kind != KN_COL_DOUBLE);
        return signed_of_size(p, size);
    }
}

/* Rows [first, first+rows) of vec, counted from the view's row 0. */
static uint64_t vector_bytes(const KnVector *vec, size_t first, size_t rows)
{
    uint64_t total = rows * (uint64_t)kn_col_type_size(vec->type);
    switch (vec->type->kind) {
    case KN_COL_VARCHAR:
    case KN_COL_BLOB:
        total = 0;
        for (size_t i = first; i < first + rows; i++)
            total += kn_vector_is_null(vec, i) ? 0 : kn_vector_str(vec, i).len;
        break;
    case KN_COL_STRUCT:
        for (size_t c = 0; c < vec->type->n_children; c++) {
            KnVector child = kn_vector_child(vec, c);
            total += vector_bytes(&child, first, rows);
        }
        break;
    case KN_COL_LIST:
    case KN_COL_MAP: {
        KnVector child = kn_vector_child(vec, 0);
        const KnListEntry *entries = vec->data;
        assert(entries);
        for (size_t i = first; i < first + rows; i++) {
            if (!kn_vector_is_null(vec, i))
                total += vector_bytes(&child, entries[i].offset, entries[i].length);
        }
        break;
    }
    default:
        break;
    }
    return total;
}

uint64_t kn_batch_bytes(const KnBatch *batch)
{
    uint64_t total = 0;
    for (size_t c = 0; c < batch->n_columns; c++) {
        KnVector vec = kn_batch_vector(batch, c);
        total += vector_bytes(&vec, 0, batch->rows);
    }
    return total;
}
