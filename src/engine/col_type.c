/* SPDX-License-Identifier: Apache-2.0 */
/*
 * col_type.c - the engine's column types as KnColType trees, and their physical sizes.
 *
 * The trees of one result live in one arena that the stream and its batches share by reference
 * count, so that a batch can outlive its stream. Immutable once built; thread-safe.
 */
#include <assert.h>

#include "engine/engine_internal.h"

enum { RESULT_BLOCK = 2048 };

static const struct KindRow {
    const char *name;
    size_t size;
} kinds[] = {
    [KN_COL_BOOL] = {"BOOLEAN", 1},
    [KN_COL_INT8] = {"TINYINT", 1},
    [KN_COL_INT16] = {"SMALLINT", 2},
    [KN_COL_INT32] = {"INTEGER", 4},
    [KN_COL_INT64] = {"BIGINT", 8},
    [KN_COL_UINT8] = {"UTINYINT", 1},
    [KN_COL_UINT16] = {"USMALLINT", 2},
    [KN_COL_UINT32] = {"UINTEGER", 4},
    [KN_COL_UINT64] = {"UBIGINT", 8},
    [KN_COL_INT128] = {"HUGEINT", 16},
    [KN_COL_FLOAT] = {"FLOAT", 4},
    [KN_COL_DOUBLE] = {"DOUBLE", 8},
    [KN_COL_DECIMAL] = {"DECIMAL", 0},
    [KN_COL_DATE] = {"DATE", 4},
    [KN_COL_TIME] = {"TIME", 8},
    [KN_COL_TIMESTAMP] = {"TIMESTAMP", 8},
    [KN_COL_TIMESTAMPTZ] = {"TIMESTAMP WITH TIME ZONE", 8},
    [KN_COL_TIMESTAMP_NS] = {"TIMESTAMP_NS", 8},
    [KN_COL_VARCHAR] = {"VARCHAR", 16},
    [KN_COL_BLOB] = {"BLOB", 16},
    [KN_COL_UUID] = {"UUID", 16},
    [KN_COL_STRUCT] = {"STRUCT", 0},
    [KN_COL_LIST] = {"LIST", 16},
    [KN_COL_MAP] = {"MAP", 16},
    [KN_COL_NULL] = {"NULL", 0},
    [KN_COL_OTHER] = {"another type", 0},
};

const char *kn_col_kind_name(KnColKind kind)
{
    return kinds[kind].name;
}

size_t kn_col_type_size(const KnColType *type)
{
    if (type->kind != KN_COL_DECIMAL)
        return kinds[type->kind].size;
    return type->width <= 4 ? 2 : type->width <= 9 ? 4 : type->width <= 18 ? 8 : 16;
}

static KnColKind kind_of(duckdb_type id)
{
    static const uint8_t map[] = {
        [DUCKDB_TYPE_BOOLEAN] = KN_COL_BOOL,
        [DUCKDB_TYPE_TINYINT] = KN_COL_INT8,
        [DUCKDB_TYPE_SMALLINT] = KN_COL_INT16,
        [DUCKDB_TYPE_INTEGER] = KN_COL_INT32,
        [DUCKDB_TYPE_BIGINT] = KN_COL_INT64,
        [DUCKDB_TYPE_UTINYINT] = KN_COL_UINT8,
        [DUCKDB_TYPE_USMALLINT] = KN_COL_UINT16,
        [DUCKDB_TYPE_UINTEGER] = KN_COL_UINT32,
        [DUCKDB_TYPE_UBIGINT] = KN_COL_UINT64,
        [DUCKDB_TYPE_HUGEINT] = KN_COL_INT128,
        [DUCKDB_TYPE_FLOAT] = KN_COL_FLOAT,
        [DUCKDB_TYPE_DOUBLE] = KN_COL_DOUBLE,
        [DUCKDB_TYPE_DECIMAL] = KN_COL_DECIMAL,
        [DUCKDB_TYPE_DATE] = KN_COL_DATE,
        [DUCKDB_TYPE_TIME] = KN_COL_TIME,
        [DUCKDB_TYPE_TIMESTAMP] = KN_COL_TIMESTAMP,
        [DUCKDB_TYPE_TIMESTAMP_TZ] = KN_COL_TIMESTAMPTZ,
        [DUCKDB_TYPE_TIMESTAMP_NS] = KN_COL_TIMESTAMP_NS,
        [DUCKDB_TYPE_VARCHAR] = KN_COL_VARCHAR,
        [DUCKDB_TYPE_BLOB] = KN_COL_BLOB,
        [DUCKDB_TYPE_UUID] = KN_COL_UUID,
        [DUCKDB_TYPE_STRUCT] = KN_COL_STRUCT,
        [DUCKDB_TYPE_LIST] = KN_COL_LIST,
        [DUCKDB_TYPE_MAP] = KN_COL_MAP,
        [DUCKDB_TYPE_SQLNULL] = KN_COL_NULL,
    };
    /* Slots that no row names are 0, which is BOOL: only BOOLEAN itself may give that. */
    if (id != DUCKDB_TYPE_BOOLEAN && ((size_t)id >= sizeof(map) || map[id] == 0))
        return KN_COL_OTHER;
    return (KnColKind)map[id];
}

static KnColType *children_new(KnArena *arena, KnColType *type, size_t n)
{
    KnColType *children = kn_arena_zalloc(arena, n * sizeof(*children));
    type->children = children;
    type->n_children = n;
    return children;
}

static void fill_child(KnArena *arena, duckdb_logical_type child, KnColType *ret)
{
    kn_col_type_fill(arena, child, ret);
    duckdb_destroy_logical_type(&child);
}

static void fill_struct(KnArena *arena, duckdb_logical_type from, KnColType *ret)
{
    size_t n = duckdb_struct_type_child_count(from);
    KnColType *children = children_new(arena, ret, n);
    const char **names = kn_arena_zalloc(arena, n * sizeof(*names));
    ret->child_names = names;
    for (size_t i = 0; i < n; i++) {
        char *name = duckdb_struct_type_child_name(from, i);
        names[i] = kn_arena_strdup(arena, name);
        duckdb_free(name);
        fill_child(arena, duckdb_struct_type_child_type(from, i), &children[i]);
    }
}

static void fill_map(KnArena *arena, duckdb_logical_type from, KnColType *ret)
{
    static const char *const entry_names[] = {"key", "value"};
    KnColType *entry = children_new(arena, ret, 1);
    entry->kind = KN_COL_STRUCT;
    entry->child_names = entry_names;
    KnColType *pair = children_new(arena, entry, 2);
    fill_child(arena, duckdb_map_type_key_type(from), &pair[0]);
    fill_child(arena, duckdb_map_type_value_type(from), &pair[1]);
}

void kn_col_type_fill(KnArena *arena, duckdb_logical_type from, KnColType *ret)
{
    ret->kind = kind_of(duckdb_get_type_id(from));
    switch (ret->kind) {
    case KN_COL_DECIMAL:
        ret->width = duckdb_decimal_width(from);
        ret->scale = duckdb_decimal_scale(from);
        break;
    case KN_COL_STRUCT:
        fill_struct(arena, from, ret);
        break;
    case KN_COL_LIST:
        fill_child(arena, duckdb_list_type_child_type(from), children_new(arena, ret, 1));
        break;
    case KN_COL_MAP:
        fill_map(arena, from, ret);
        break;
    default:
        break;
    }
}

bool kn_col_type_same_layout(const KnColType *a, const KnColType *b)
{
    if (a->kind != b->kind || a->kind == KN_COL_OTHER || a->n_children != b->n_children)
        return false;
    if (a->kind == KN_COL_DECIMAL && (a->width != b->width || a->scale != b->scale))
        return false;
    for (size_t i = 0; i < a->n_children; i++) {
        if (!kn_col_type_same_layout(&a->children[i], &b->children[i]))
            return false;
    }
    return true;
}

static KnResultTypes *result_types_alloc(size_t n, KnColType **ret_types)
{
    KnArena *arena = kn_arena_new(RESULT_BLOCK);
    KnResultTypes *types = kn_arena_zalloc(arena, sizeof(*types));
    types->arena = arena;
    atomic_init(&types->refs, 1);
    types->n = n;
    types->names = kn_arena_zalloc(arena, (n + 1) * sizeof(*types->names));
    types->types = *ret_types = kn_arena_zalloc(arena, (n + 1) * sizeof(**ret_types));
    return types;
}

KnResultTypes *kn_result_types_new(duckdb_result *res)
{
    KnColType *cols;
    KnResultTypes *types = result_types_alloc(duckdb_column_count(res), &cols);
    for (size_t i = 0; i < types->n; i++) {
        types->names[i] = kn_arena_strdup(types->arena, duckdb_column_name(res, i));
        fill_child(types->arena, duckdb_column_logical_type(res, i), &cols[i]);
    }
    return types;
}

KnResultTypes *kn_result_types_of(const duckdb_logical_type *logical, size_t n)
{
    KnColType *cols;
    KnResultTypes *types = result_types_alloc(n, &cols);
    for (size_t i = 0; i < n; i++) {
        types->names[i] = "";
        kn_col_type_fill(types->arena, logical[i], &cols[i]);
    }
    return types;
}

KnResultTypes *kn_result_types_ref(KnResultTypes *types)
{
    atomic_fetch_add_explicit(&types->refs, 1, memory_order_relaxed);
    return types;
}

KnResultTypes *kn_result_types_unref(KnResultTypes *types)
{
    if (types && atomic_fetch_sub_explicit(&types->refs, 1, memory_order_acq_rel) == 1)
        kn_arena_free(types->arena);
    return NULL;
}
