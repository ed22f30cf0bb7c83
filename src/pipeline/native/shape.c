/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shape.c - the columns of a query, and a query whose columns are as a schema declares them.
 *
 * A declared schema is a promise to readers: its columns are there, under these names and types, in
 * this order, and no others. What the rows have may be narrower (INTEGER for Int64) and is widened;
 * anything that could lose a value is refused before a row is read. NULLs are looked for by the
 * rows' check (expect.c).
 */
#include <string.h>

#include "pipeline/native/native.h"

typedef KN_VEC(KnNativeColumn) Columns;
typedef struct Describe {
    KnArena *arena;
    Columns columns;
} Describe;

static KnCode describe_batch(void *arg, KnBatch *batch, KnErr *err)
{
    (void)err;
    Describe *d = arg;
    KnVector names = kn_batch_vector(batch, 0), types = kn_batch_vector(batch, 1);
    for (size_t i = 0; i < kn_batch_rows(batch); i++) {
        KnStr name = kn_vector_str(&names, i), type = kn_vector_str(&types, i);
        *kn_vec_push(&d->columns) =
            (KnNativeColumn){kn_arena_strndup(d->arena, name.ptr, name.len),
                             kn_arena_strndup(d->arena, type.ptr, type.len)};
    }
    return KN_OK;
}

KnCode kn_native_describe(KnNativeRun *run, const char *sql, KnNativeShape *ret, KnErr *err)
{
    Describe d = {.arena = run->arena};
    KN_BUF_AUTO text = {.max = 64 << 20};
    kn_buf_printf(&text, "DESCRIBE %s", sql);
    KnCode rc = kn_buf_check(&text, err);
    if (rc == KN_OK)
        rc = kn_session_visit(run->session, text.data, describe_batch, &d, err);
    if (rc == KN_OK) {
        KnNativeColumn *items = kn_arena_zalloc(run->arena, (d.columns.len + 1) * sizeof(*items));
        if (d.columns.len)
            memcpy(items, d.columns.items, d.columns.len * sizeof(*items));
        *ret = (KnNativeShape){items, d.columns.len};
    }
    kn_vec_done(&d.columns);
    return rc;
}

static const KnNativeColumn *column_named(const KnNativeShape *shape, const char *name)
{
    for (size_t i = 0; i < shape->len; i++)
        if (kn_str_eq_nocase(kn_str(shape->items[i].name), kn_str(name)))
            return &shape->items[i];
    return NULL;
}

static KnCode check_undeclared(const char *what, const KnutSchema *schema,
                               const KnNativeShape *shape, KnErr *err)
{
    for (size_t i = 0; i < shape->len; i++) {
        bool found = false;
        for (size_t j = 0; j < schema->len && !found; j++)
            found = kn_str_eq_nocase(kn_str(schema->items[j].name), kn_str(shape->items[i].name));
        if (!found)
            return kn_err_set(err, KN_E_INVAL,
                              "%s: its rows have a column %s that its schema does not declare",
                              what, shape->items[i].name);
    }
    return KN_OK;
}

static KnCode declared_column(KnNativeRun *run, const char *what, const KnutSchemaField *field,
                              const KnNativeShape *shape, KnBuf *sql, KnErr *err)
{
    const KnNativeColumn *column = column_named(shape, field->name);
    const char *type = kn_native_sql_type(run->arena, field->arrow_type);
    if (!column)
        return kn_err_set(err, KN_E_INVAL,
                          "%s: its schema declares a column %s that its rows do not have", what,
                          field->name);
    if (!type || !kn_native_widens(column->type, type))
        return kn_err_set(
            err, KN_E_INVAL,
            "%s: column %s is declared %s, and its rows have %s: cast it in the query", what,
            field->name, field->arrow_type, column->type);
    kn_buf_text(sql, "CAST(");
    kn_sql_ident(sql, kn_str(column->name));
    kn_buf_printf(sql, " AS %s) AS ", type);
    kn_sql_ident(sql, kn_str(field->name));
    return KN_OK;
}

KnCode kn_native_declared(KnNativeRun *run, const char *what, const KnutSchema *schema,
                          const char *sql, const char **ret, KnErr *err)
{
    *ret = sql;
    if (!schema->len)
        return KN_OK;
    KnNativeShape shape = {0};
    KN_TRY(kn_native_describe(run, sql, &shape, err));
    KN_TRY(check_undeclared(what, schema, &shape, err));
    KN_BUF_AUTO text = {.max = 64 << 20};
    kn_buf_text(&text, "SELECT ");
    for (size_t i = 0; i < schema->len; i++) {
        kn_buf_text(&text, i ? ", " : "");
        KN_TRY(declared_column(run, what, &schema->items[i], &shape, &text, err));
    }
    kn_buf_printf(&text, " FROM (%s\n)", sql);
    KN_TRY(kn_buf_check(&text, err));
    *ret = kn_arena_strndup(run->arena, text.data, text.len);
    return KN_OK;
}
