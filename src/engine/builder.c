/* SPDX-License-Identifier: Apache-2.0 */
/*
 * builder.c - values into the engine's own vectors.
 *
 * A writer is a vector, the index of its next value and how many it has room for. Vectors of
 * columns and of fields of their structs have the room of a chunk; the child of a list grows by
 * doubling, and with it, in step, the fields of structs right below it. Growing moves arrays:
 * bind() looks them up again. A list's own child does not move with the list.
 *
 * Memory is counted as arrays grow and texts are copied: past SOFT_BYTES the batch counts as full,
 * past HARD_BYTES a value is refused. So one row's amplification (a NULL struct is a byte in a file
 * and an array slot for each of its fields here) is bounded whatever the bytes say.
 */
#include "engine/builder.h"

#include <assert.h>
#include <string.h>

#include "engine/engine_internal.h"

enum { VECTOR_ROWS = 2048, INLINED = 12, BUILDER_BLOCK = 4096 };
#define SOFT_BYTES ((size_t)4 << 20)
#define HARD_BYTES ((size_t)512 << 20)
#define DAY_MICROS INT64_C(86400000000)

struct KnColWriter {
    KnBuilder *owner;
    const KnColType *type;
    duckdb_vector vec;
    char *data;
    uint64_t *validity; /* NULL until the first NULL */
    size_t size;        /* bytes of a value in data */
    size_t row_bytes;   /* size, and that of fields below */
    size_t rows, cap;
    size_t list_first; /* the child's row at which the open list starts */
    KnColWriter *list; /* whose child this is, or NULL */
    KnColWriter *children;
};

struct KnBuilder {
    KnArena *arena;
    KnResultTypes *types;
    duckdb_logical_type *logical;
    duckdb_data_chunk chunk;
    size_t rows, bytes;
    KnColWriter *columns;
};

/* ---- vectors ---- */

static void bind(KnColWriter *w, duckdb_vector vec)
{
    w->vec = vec;
    w->data = w->size ? duckdb_vector_get_data(vec) : NULL;
    w->validity = w->validity ? duckdb_vector_get_validity(vec) : NULL;
    if (w->type->kind != KN_COL_STRUCT)
        return;
    for (size_t i = 0; i < w->type->n_children; i++) {
        w->children[i].cap = w->cap;
        bind(&w->children[i], duckdb_struct_vector_get_child(vec, i));
    }
}

/* A new chunk's vector, and all below. */
static void restart(KnColWriter *w, duckdb_vector vec)
{
    w->rows = 0;
    w->cap = VECTOR_ROWS;
    w->validity = NULL;
    w->vec = vec;
    w->data = w->size ? duckdb_vector_get_data(vec) : NULL;
    for (size_t i = 0; i < w->type->n_children; i++)
        restart(&w->children[i], w->type->kind == KN_COL_STRUCT
                                     ? duckdb_struct_vector_get_child(vec, i)
                                     : duckdb_list_vector_get_child(vec));
}

static void chunk_start(KnBuilder *b)
{
    b->chunk = duckdb_create_data_chunk(b->logical, b->types->n);
    b->rows = 0;
    b->bytes = 0;
    for (size_t i = 0; i < b->types->n; i++)
        restart(&b->columns[i], duckdb_data_chunk_get_vector(b->chunk, i));
}

static void writer_init(KnBuilder *b, KnColWriter *w, const KnColType *type)
{
    bool is_list = type->kind == KN_COL_LIST || type->kind == KN_COL_MAP;
    w->owner = b;
    w->type = type;
    w->size = kn_col_type_size(type);
    w->row_bytes = w->size + 1;
    w->children = kn_arena_zalloc(b->arena, (type->n_children + 1) * sizeof(*w->children));
    for (size_t i = 0; i < type->n_children; i++) {
        writer_init(b, &w->children[i], &type->children[i]);
        w->children[i].list = is_list ? w : NULL;
        w->row_bytes += is_list ? 0 : w->children[i].row_bytes;
    }
}

static KnCode count_bytes(KnBuilder *b, size_t count, size_t size, KnErr *err)
{
    size_t more;
    if (__builtin_mul_overflow(count, size, &more) || more > HARD_BYTES ||
        b->bytes + more > HARD_BYTES)
        return kn_err_set(err, KN_E_UNSUPPORTED, "a row needs more than %zu MiB of memory",
                          HARD_BYTES >> 20);
    b->bytes += more;
    return KN_OK;
}

static KnCode grow(KnColWriter *w, KnErr *err)
{
    assert(w->list);
    KN_TRY(count_bytes(w->owner, w->cap, w->row_bytes, err));
    if (duckdb_list_vector_reserve(w->list->vec, w->cap * 2) != DuckDBSuccess)
        return kn_err_set(err, KN_E_NOMEM, "no memory for a list of %zu elements", w->cap * 2);
    w->cap *= 2;
    bind(w, duckdb_list_vector_get_child(w->list->vec));
    return KN_OK;
}

/* Room for the next value, which is row w->rows - 1 then. */
static KnCode take_slot(KnColWriter *w, KnErr *err)
{
    if (w->rows == w->cap)
        KN_TRY(grow(w, err));
    w->rows++;
    return KN_OK;
}

/* The first bytes of value, as many as the kind has in its array. */
static KnCode put_raw(KnColWriter *w, const void *value, KnErr *err)
{
    KN_TRY(take_slot(w, err));
    if (w->data)
        memcpy(w->data + (w->rows - 1) * w->size, value, w->size);
    return KN_OK;
}

/* ---- building ---- */

KnBuilder *kn_builder_close(KnBuilder *b)
{
    if (!b)
        return NULL;
    if (b->chunk)
        duckdb_destroy_data_chunk(&b->chunk);
    for (size_t i = 0; b->types && i < b->types->n; i++)
        duckdb_destroy_logical_type(&b->logical[i]);
    kn_result_types_unref(b->types);
    kn_arena_free(b->arena);
    return NULL;
}

KnCode kn_builder_open(KnEngine *eng, const char *const *column_types, size_t n, KnBuilder **ret,
                       KnErr *err)
{
    assert(n > 0);
    KnArena *arena = kn_arena_new(BUILDER_BLOCK);
    KnBuilder *b = kn_arena_zalloc(arena, sizeof(*b));
    b->arena = arena;
    b->logical = kn_arena_zalloc(arena, n * sizeof(duckdb_logical_type));
    KnCode rc = KN_OK;
    for (size_t i = 0; i < n && rc == KN_OK; i++)
        rc = kn_engine_type_parse(eng, column_types[i], &b->logical[i], err);
    if (rc != KN_OK) {
        for (size_t i = 0; i < n; i++)
            duckdb_destroy_logical_type(&b->logical[i]);
        kn_builder_close(b);
        return rc;
    }
    b->types = kn_result_types_of(b->logical, n);
    b->columns = kn_arena_zalloc(arena, n * sizeof(*b->columns));
    for (size_t i = 0; i < n; i++)
        writer_init(b, &b->columns[i], &b->types->types[i]);
    chunk_start(b);
    *ret = b;
    return KN_OK;
}

KnColWriter *kn_builder_column(KnBuilder *b, size_t col)
{
    assert(col < b->types->n);
    return &b->columns[col];
}

KnColWriter *kn_col_child(KnColWriter *w, size_t child)
{
    assert(child < w->type->n_children);
    return &w->children[child];
}

const KnColType *kn_col_type(const KnColWriter *w)
{
    return w->type;
}

void kn_builder_end_row(KnBuilder *b)
{
    b->rows++;
    for (size_t i = 0; i < b->types->n; i++)
        assert(b->columns[i].rows == b->rows);
}

bool kn_builder_full(const KnBuilder *b)
{
    return b->rows == VECTOR_ROWS || b->bytes >= SOFT_BYTES;
}

static void finish(const KnColWriter *w)
{
    bool is_list = w->type->kind == KN_COL_LIST || w->type->kind == KN_COL_MAP;
    if (is_list)
        duckdb_list_vector_set_size(w->vec, w->children[0].rows);
    for (size_t i = 0; i < w->type->n_children; i++) {
        assert(is_list || w->children[i].rows == w->rows);
        finish(&w->children[i]);
    }
}

KnBatch *kn_builder_take(KnBuilder *b)
{
    if (b->rows == 0)
        return NULL;
    for (size_t i = 0; i < b->types->n; i++)
        finish(&b->columns[i]);
    duckdb_data_chunk_set_size(b->chunk, b->rows);
    KnBatch *batch = kn_batch_new(b->chunk, b->types);
    chunk_start(b);
    return batch;
}

/* ---- values ---- */

static void mark_null(KnColWriter *w, size_t row)
{
    if (!w->validity) {
        duckdb_vector_ensure_validity_writable(w->vec);
        w->validity = duckdb_vector_get_validity(w->vec);
    }
    w->validity[row / 64] &= ~(UINT64_C(1) << (row % 64));
}

/* Every child has a list's or struct's depth of types: recursion ends with the column's type. */
KnCode kn_col_put_null(KnColWriter *w, KnErr *err)
{
    static const char zeros[sizeof(__int128)];
    KN_TRY(put_raw(w, zeros, err));
    mark_null(w, w->rows - 1);
    for (size_t i = 0; w->type->kind == KN_COL_STRUCT && i < w->type->n_children; i++)
        KN_TRY(kn_col_put_null(&w->children[i], err));
    return KN_OK;
}

typedef struct Range {
    __int128 min, max;
} Range;

static Range decimal_range(unsigned width)
{
    __int128 limit = 1;
    for (unsigned i = 0; i < width; i++)
        limit *= 10;
    return (Range){1 - limit, limit - 1};
}

static Range range_of(const KnColType *type)
{
    switch (type->kind) {
    case KN_COL_BOOL:
        return (Range){0, 1};
    case KN_COL_TIME:
        return (Range){0, DAY_MICROS - 1};
    case KN_COL_DECIMAL:
        return decimal_range(type->width);
    case KN_COL_UINT8:
    case KN_COL_UINT16:
    case KN_COL_UINT32:
    case KN_COL_UINT64:
        return (Range){0, ((__int128)1 << (8 * kn_col_type_size(type))) - 1};
    case KN_COL_INT128: {
        __int128 max = (__int128)(~(unsigned __int128)0 >> 1);
        return (Range){-max - 1, max};
    }
    default: {
        __int128 half = (__int128)1 << (8 * kn_col_type_size(type) - 1);
        return (Range){-half, half - 1};
    }
    }
}

static bool takes_int(KnColKind kind)
{
    return kind <= KN_COL_INT128 || (kind >= KN_COL_DECIMAL && kind <= KN_COL_TIMESTAMP_NS);
}

KnCode kn_col_put_int(KnColWriter *w, __int128 value, KnErr *err)
{
    assert(takes_int(w->type->kind));
    Range range = range_of(w->type);
    if (value < range.min || value > range.max)
        return kn_err_set(err, KN_E_CORRUPT, "a number out of the range of %s",
                          kn_col_kind_name(w->type->kind));
    return put_raw(w, &value, err); /* little-endian: the low bytes come first */
}

KnCode kn_col_put_float(KnColWriter *w, float value, KnErr *err)
{
    assert(w->type->kind == KN_COL_FLOAT);
    return put_raw(w, &value, err);
}

KnCode kn_col_put_double(KnColWriter *w, double value, KnErr *err)
{
    assert(w->type->kind == KN_COL_DOUBLE);
    return put_raw(w, &value, err);
}

KnCode kn_col_put_str(KnColWriter *w, KnStr value, KnErr *err)
{
    assert(w->type->kind == KN_COL_VARCHAR || w->type->kind == KN_COL_BLOB);
    if (w->type->kind == KN_COL_VARCHAR && !kn_str_is_utf8(value))
        return kn_err_set(err, KN_E_CORRUPT, "a text that is not UTF-8");
    if (value.len > INLINED)
        KN_TRY(count_bytes(w->owner, value.len, 1, err));
    KN_TRY(take_slot(w, err));
    duckdb_unsafe_vector_assign_string_element_len(w->vec, w->rows - 1, value.len ? value.ptr : "",
                                                   value.len);
    return KN_OK;
}

KnCode kn_col_put_uuid(KnColWriter *w, const uint8_t value[16], KnErr *err)
{
    assert(w->type->kind == KN_COL_UUID);
    unsigned __int128 number = 0;
    for (int i = 0; i < 16; i++)
        number = number << 8 | value[i];
    number ^= (unsigned __int128)1 << 127; /* as the engine keeps it: kn_vector_uuid() */
    return put_raw(w, &number, err);
}

KnCode kn_col_put_struct(KnColWriter *w, KnErr *err)
{
    assert(w->type->kind == KN_COL_STRUCT);
    return take_slot(w, err);
}

KnCode kn_col_begin_list(KnColWriter *w, KnErr *err)
{
    assert(w->type->kind == KN_COL_LIST || w->type->kind == KN_COL_MAP);
    KN_TRY(take_slot(w, err));
    w->list_first = w->children[0].rows;
    return KN_OK;
}

void kn_col_end_list(KnColWriter *w)
{
    KnListEntry entry = {w->list_first, w->children[0].rows - w->list_first};
    memcpy(w->data + (w->rows - 1) * w->size, &entry, sizeof(entry));
}
