/* SPDX-License-Identifier: Apache-2.0 */
/*
 * file_shape.c - columns as files hold them (spec: appendix A, "Parquet").
 *
 * Fields of type unknown are always NULL and left out at any depth. Nanoseconds leave as numbers
 * and fixed bytes as binary; engine/parquet_finish.h then gives the file's columns their types.
 */
#include "iceberg/write/file_shape.h"

#include <stdio.h>

#include "base/vec.h"

/* ---- what can be written ---- */

static KnCode refuse(const char *table, const KnField *field, KnErr *err)
{
    KN_BUF_AUTO text;
    kn_buf_init(&text, 4096);
    kn_type_format(&text, field->type);
    return kn_err_set(err, KN_E_UNSUPPORTED,
                      "table %s: column %s is a %s, which cannot be written to Parquet files here",
                      table, field->name, text.data);
}

/* A group of Parquet has a field. */
static bool is_empty(const KnType *type)
{
    for (size_t i = 0; i < type->n_fields; i++) {
        if (type->fields[i].type->kind != KN_TYPE_UNKNOWN)
            return false;
    }
    return kn_type_is_nested(type);
}

static KnCode check_fields(const char *table, const KnType *type, KnErr *err)
{
    for (size_t i = 0; i < type->n_fields; i++) {
        const KnField *field = &type->fields[i];
        bool left_out = field->type->kind == KN_TYPE_UNKNOWN && type->kind == KN_TYPE_STRUCT;
        if (left_out)
            continue;
        if (field->type->kind >= KN_TYPE_UNKNOWN || is_empty(field->type))
            return refuse(table, field, err);
        KN_TRY(check_fields(table, field->type, err));
    }
    return KN_OK;
}

KnCode kn_file_shape_check(const char *table, const KnSchema *schema, KnErr *err)
{
    return check_fields(table, &schema->root, err);
}

/* ---- SQL ---- */

static bool is_nanos(const KnType *type)
{
    return type->kind == KN_TYPE_TIMESTAMP_NS || type->kind == KN_TYPE_TIMESTAMPTZ_NS;
}

/* Does a file hold the column as the engine has it? */
static bool is_plain(const KnType *type)
{
    if (is_nanos(type) || type->kind == KN_TYPE_UNKNOWN)
        return false;
    for (size_t i = 0; i < type->n_fields; i++) {
        if (!is_plain(type->fields[i].type))
            return false;
    }
    return true;
}

static void put_shape(KnArena *arena, KnBuf *buf, const KnType *type, const char *expr, int depth);

static void put_struct(KnArena *arena, KnBuf *buf, const KnType *type, const char *expr, int depth)
{
    size_t n = 0;
    kn_buf_text(buf, "struct_pack(");
    for (size_t i = 0; i < type->n_fields; i++) {
        const KnField *field = &type->fields[i];
        if (field->type->kind == KN_TYPE_UNKNOWN)
            continue;
        KN_BUF_AUTO path;
        kn_buf_init(&path, (size_t)1 << 20);
        kn_buf_printf(&path, "struct_extract(%s, ", expr);
        kn_sql_text(&path, kn_str(field->name));
        kn_buf_char(&path, ')');
        kn_buf_text(buf, n++ > 0 ? ", " : "");
        kn_sql_ident(buf, kn_str(field->name));
        kn_buf_text(buf, " := ");
        put_shape(arena, buf, field->type, path.data, depth);
    }
    kn_buf_char(buf, ')');
}

/* The parameters of lambdas are x0, x1, ... by depth. */
static void put_shape(KnArena *arena, KnBuf *buf, const KnType *type, const char *expr, int depth)
{
    const char *x = kn_arena_printf(arena, "x%d", depth);
    if (is_plain(type)) {
        kn_buf_text(buf, expr);
        return;
    }
    if (is_nanos(type)) {
        kn_buf_printf(buf, "epoch_ns(%s)", expr);
        return;
    }
    kn_buf_printf(buf, "CASE WHEN %s IS NULL THEN NULL ELSE ", expr);
    if (type->kind == KN_TYPE_STRUCT) {
        put_struct(arena, buf, type, expr, depth);
    } else if (type->kind == KN_TYPE_LIST) {
        kn_buf_printf(buf, "list_transform(%s, lambda %s: ", expr, x);
        put_shape(arena, buf, type->fields[0].type, x, depth + 1);
        kn_buf_char(buf, ')');
    } else {
        kn_buf_printf(
            buf,
            "map_from_entries(list_transform(map_entries(%s), lambda %s: struct_pack(k := ", expr,
            x);
        put_shape(arena, buf, type->fields[0].type, kn_arena_printf(arena, "%s.key", x), depth + 1);
        kn_buf_text(buf, ", v := ");
        put_shape(arena, buf, type->fields[1].type, kn_arena_printf(arena, "%s.value", x),
                  depth + 1);
        kn_buf_text(buf, ")))");
    }
    kn_buf_text(buf, " END");
}

void kn_file_shape_sql(KnArena *arena, KnBuf *buf, const KnType *type, const char *expr)
{
    put_shape(arena, buf, type, expr, 0);
}

KnCode kn_file_shape_columns(KnArena *arena, const char *table, const KnSchema *schema, KnBuf *buf,
                             KnErr *err)
{
    const KnType *root = &schema->root;
    size_t n = 0;
    for (size_t i = 0; i < root->n_fields; i++) {
        for (size_t j = 0; j < i; j++) {
            if (kn_str_eq_nocase(kn_str(root->fields[i].name), kn_str(root->fields[j].name)))
                return kn_err_set(err, KN_E_UNSUPPORTED,
                                  "table %s: columns %s and %s differ in case only: such a table "
                                  "cannot be written",
                                  table, root->fields[j].name, root->fields[i].name);
        }
        if (root->fields[i].type->kind == KN_TYPE_UNKNOWN)
            continue; /* always NULL: files do not have it */
        char name[24];
        (void)snprintf(name, sizeof(name), "c%zu", i);
        kn_buf_text(buf, n++ > 0 ? ", " : "");
        kn_file_shape_sql(arena, buf, root->fields[i].type, name);
        kn_buf_text(buf, " AS ");
        kn_sql_ident(buf, kn_str(root->fields[i].name));
    }
    if (n == 0)
        return kn_err_set(err, KN_E_UNSUPPORTED, "table %s has no column that files could hold",
                          table);
    return KN_OK;
}

/* ---- types ---- */

typedef KN_VEC(KnPqColumnType) ColumnTypeVec;

static void find_types(const KnType *type, ColumnTypeVec *ret)
{
    for (size_t i = 0; i < type->n_fields; i++) {
        const KnField *field = &type->fields[i];
        KnPqColumnType column = {.field_id = field->id, .length = field->type->length};
        if (field->type->kind == KN_TYPE_FIXED)
            column.as = KN_PQ_AS_FIXED;
        else if (is_nanos(field->type))
            column.as =
                field->type->kind == KN_TYPE_TIMESTAMP_NS ? KN_PQ_AS_NANOS : KN_PQ_AS_NANOS_UTC;
        if (column.as != KN_PQ_AS_IT_IS)
            *kn_vec_push(ret) = column;
        find_types(field->type, ret);
    }
}

const KnPqColumnType *kn_file_shape_types(KnArena *arena, const KnSchema *schema, size_t *ret_n)
{
    ColumnTypeVec types = {0};
    find_types(&schema->root, &types);
    KnPqColumnType *copy = kn_arena_zalloc(arena, (types.len + 1) * sizeof(*copy));
    for (size_t i = 0; i < types.len; i++)
        copy[i] = types.items[i];
    *ret_n = types.len;
    kn_vec_done(&types);
    return copy;
}
