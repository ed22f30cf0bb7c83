/* SPDX-License-Identifier: Apache-2.0 */
/*
 * alter.c - the target is made, and its columns follow the source's by field id.
 *
 * A change of the source's schema becomes ALTER TABLE: renames, new types and columns, dropped
 * columns, all in one transaction together with what _knut_columns says of them. Columns are never
 * NOT NULL and have no default, so that any change of the source can follow. Renames go through a
 * name of ours first where the wanted name is still taken (a and b swapped).
 *
 * Nested values are jsonb with the names of fields in it, so that a nested change rewrites the
 * column with UPDATE.
 *
 * Keyed deliveries need a unique index over exactly the keys; it is made where there is none.
 */
#include <inttypes.h>
#include <string.h>

#include "base/fault.h"
#include "cdc/sinks/postgres/postgres_internal.h"

static KnPgColumn *find_id(const KnPgColumnVec *cols, int32_t id)
{
    kn_vec_foreach (cols, col)
        if (col->field_id == id)
            return col;
    return NULL;
}

/* ---- making ---- */

static KnCode record_columns(KnPg *pg, KnArena *arena, const KnSchema *schema, KnErr *err)
{
    const char *target = kn_sql_text_of(arena, pg->target);
    KN_TRY(
        kn_pg_run(&pg->link, NULL, err, "DELETE FROM %s WHERE target = %s", pg->columns, target));
    for (size_t i = 0; i < schema->root.n_fields; ++i) {
        const KnField *field = &schema->root.fields[i];
        const char *type;
        KN_TRY(kn_pg_type(arena, field, pg->link.place.nanos, &type, err));
        KN_TRY(kn_pg_run(
            &pg->link, NULL, err, "INSERT INTO %s VALUES (%s, %zu, %" PRId32 ", %s, %s, %s)",
            pg->columns, target, i, field->id, kn_sql_text_of(arena, field->name),
            kn_sql_text_of(arena, type), kn_sql_text_of(arena, kn_pg_field_text(arena, field))));
    }
    return KN_OK;
}

KnCode kn_pg_create_target(KnPg *pg, const KnSchema *schema, KnErr *err)
{
    KN_ARENA_AUTO arena = kn_arena_new(4096);
    KN_BUF_AUTO sql;
    kn_buf_init(&sql, (size_t)16 << 20);
    kn_buf_printf(&sql, "CREATE TABLE %s(", pg->target);
    for (size_t i = 0; i < schema->root.n_fields; ++i) {
        const char *type;
        KN_TRY(kn_pg_type(arena, &schema->root.fields[i], pg->link.place.nanos, &type, err));
        kn_buf_printf(&sql, "%s%s %s", i ? ", " : "",
                      kn_sql_ident_of(arena, schema->root.fields[i].name), type);
    }
    kn_buf_text(&sql, ")");
    KN_TRY(kn_buf_check(&sql, err));
    KN_TRY(kn_pg_exec(&pg->link, sql.data, NULL, err));
    return record_columns(pg, arena, schema, err);
}

/* ---- changing ---- */

static KnCode rename_column(KnPg *pg, KnArena *arena, KnPgColumn *col, const char *name, KnErr *err)
{
    if (strcmp(col->name, name) == 0)
        return KN_OK;
    KN_FAULT("sink-alter", err);
    KN_TRY(kn_pg_run(&pg->link, NULL, err, "ALTER TABLE %s RENAME COLUMN %s TO %s", pg->target,
                     kn_sql_ident_of(arena, col->name), kn_sql_ident_of(arena, name)));
    col->name = name;
    return KN_OK;
}

/* Every column that changes its name, or goes, takes a name of ours first: what it gives up may be
 * another one's new name. */
static KnCode rename_columns(KnPg *pg, KnArena *arena, const KnSchema *schema, KnPgColumnVec *ours,
                             KnErr *err)
{
    kn_vec_foreach (ours, col) {
        const KnField *field = kn_type_field(&schema->root, col->field_id);
        const char *between = kn_arena_printf(arena, "_knut_column_%" PRId32, col->field_id);
        if (!field || strcmp(field->name, col->name) != 0)
            KN_TRY(rename_column(pg, arena, col, between, err));
    }
    kn_vec_foreach (ours, col) {
        const KnField *field = kn_type_field(&schema->root, col->field_id);
        if (field)
            KN_TRY(rename_column(pg, arena, col, field->name, err));
    }
    return KN_OK;
}

static KnCode add_column(KnPg *pg, KnArena *arena, const KnField *field, KnErr *err)
{
    const char *type, *name = kn_sql_ident_of(arena, field->name);
    const char *value = kn_pg_default(arena, field, pg->link.place.nanos);
    KN_FAULT("sink-alter", err);
    KN_TRY(kn_pg_type(arena, field, pg->link.place.nanos, &type, err));
    KN_TRY(kn_pg_run(&pg->link, NULL, err, "ALTER TABLE %s ADD COLUMN %s %s%s%s", pg->target, name,
                     type, value ? " DEFAULT " : "", value ? value : ""));
    if (!value)
        return KN_OK;
    return kn_pg_run(&pg->link, NULL, err, "ALTER TABLE %s ALTER COLUMN %s DROP DEFAULT",
                     pg->target, name);
}

/* A type that values cannot follow: fine where there are none (after a reload). */
static KnCode replace_column(KnPg *pg, const KnField *field, const char *name, const char *type,
                             KnErr *err)
{
    bool empty;
    KN_TRY(kn_pg_require_empty(pg, &empty, err));
    if (!empty)
        return kn_err_set(err, KN_E_REFUSED, "column %s: its values have no place in the new type",
                          field->name);
    KN_TRY(kn_pg_run(&pg->link, NULL, err, "ALTER TABLE %s DROP COLUMN %s", pg->target, name));
    return kn_pg_run(&pg->link, NULL, err, "ALTER TABLE %s ADD COLUMN %s %s", pg->target, name,
                     type);
}

static KnCode retype_column(KnPg *pg, KnArena *arena, const KnField *field, const KnPgColumn *col,
                            KnErr *err)
{
    const char *type, *name = kn_sql_ident_of(arena, field->name);
    const char *value = kn_pg_convert(arena, name, col->type, field->type);
    KN_FAULT("sink-alter", err);
    KN_TRY(kn_pg_type(arena, field, pg->link.place.nanos, &type, err));
    if (!value)
        return replace_column(pg, field, name, type, err);
    if (strcmp(type, col->sql_type) != 0)
        return kn_pg_run(&pg->link, NULL, err,
                         "ALTER TABLE %s ALTER COLUMN %s SET DATA TYPE %s USING %s", pg->target,
                         name, type, value);
    if (strcmp(value, name) == 0)
        return KN_OK;
    return kn_pg_run(&pg->link, NULL, err, "UPDATE %s SET %s = %s WHERE %s IS NOT NULL", pg->target,
                     name, value, name);
}

static KnCode alter(KnPg *pg, KnArena *arena, const KnSchema *schema, KnPgColumnVec *ours,
                    KnErr *err)
{
    KN_TRY(rename_columns(pg, arena, schema, ours, err));
    for (size_t i = 0; i < schema->root.n_fields; ++i) {
        const KnField *field = &schema->root.fields[i];
        const KnPgColumn *col = find_id(ours, field->id);
        const char *type;
        KN_TRY(kn_pg_type(arena, field, pg->link.place.nanos, &type, err));
        if (!col)
            KN_TRY(add_column(pg, arena, field, err));
        else if (!kn_type_equal(col->type, field->type) || strcmp(col->sql_type, type) != 0)
            KN_TRY(retype_column(pg, arena, field, col, err));
    }
    kn_vec_foreach (ours, col) {
        if (kn_type_field(&schema->root, col->field_id))
            continue;
        KN_FAULT("sink-alter", err);
        KN_TRY(kn_pg_run(&pg->link, NULL, err, "ALTER TABLE %s DROP COLUMN %s", pg->target,
                         kn_sql_ident_of(arena, col->name)));
    }
    return KN_OK;
}

static bool is_current(const KnSchema *schema, const KnPgColumnVec *ours)
{
    if (ours->len != schema->root.n_fields)
        return false;
    for (size_t i = 0; i < ours->len; ++i) {
        const KnField *field = &schema->root.fields[i];
        const KnPgColumn *col = find_id(ours, field->id);
        if (!col || strcmp(col->name, field->name) != 0 || !kn_type_equal(col->type, field->type))
            return false;
    }
    return true;
}

/* ---- the keys' index ---- */

/* Whole, valid, at once, over exactly these columns, in any order. */
static KnCode has_key_index(KnPg *pg, KnArena *arena, const KnSinkWindow *win, bool *ret,
                            KnErr *err)
{
    KN_BUF_AUTO names;
    int64_t n;
    kn_buf_init(&names, (size_t)1 << 20);
    for (size_t i = 0; i < win->n_keys; ++i)
        kn_buf_printf(&names, "%s%s", i ? ", " : "", kn_sql_text_of(arena, win->keys[i]));
    KN_TRY(kn_buf_check(&names, err));
    bool nulls = PQserverVersion(pg->link.conn) >= 150000;
    KN_TRY(kn_pg_ask(
        &pg->link, &n, err,
        "SELECT count(*) FROM pg_index i WHERE indrelid = %s::regclass AND indisunique AND "
        "indisvalid AND indimmediate AND indpred IS NULL AND indexprs IS NULL AND (NOT EXISTS "
        "(SELECT 1 FROM pg_attribute a WHERE a.attrelid = indrelid AND a.attnum = ANY(indkey) AND "
        "NOT a.attnotnull)%s) AND (SELECT array_agg(attname::text ORDER BY attname::text) FROM "
        "pg_attribute a WHERE a.attrelid = indrelid AND a.attnum = ANY("
        "(indkey::int2[])[0:indnkeyatts - 1])) = (SELECT array_agg(k ORDER BY k) FROM "
        "unnest(ARRAY[%s]::text[]) k)",
        kn_sql_text_of(arena, pg->target), nulls ? " OR indnullsnotdistinct" : "", names.data));
    *ret = n > 0;
    return KN_OK;
}

static bool may_be_null(const KnSinkWindow *win)
{
    for (size_t k = 0; k < win->n_keys; ++k)
        for (size_t i = 0; i < win->schema->root.n_fields; ++i)
            if (strcmp(win->keys[k], win->schema->root.fields[i].name) == 0 &&
                !win->schema->root.fields[i].required)
                return true;
    return false;
}

KnCode kn_pg_ensure_key(KnPg *pg, const KnSinkWindow *win, KnErr *err)
{
    KN_ARENA_AUTO arena = kn_arena_new(1024);
    bool there;
    if (win->n_keys == 0)
        return KN_OK;
    KN_TRY(has_key_index(pg, arena, win, &there, err));
    if (there)
        return KN_OK;
    bool can_null = PQserverVersion(pg->link.conn) >= 150000;
    if (!can_null && may_be_null(win))
        return kn_err_set(err, KN_E_REFUSED,
                          "a key may be NULL, and only PostgreSQL 15 and later can tell that two "
                          "of them are one: make the key required in the source");
    KN_BUF_AUTO list;
    kn_buf_init(&list, (size_t)1 << 20);
    for (size_t i = 0; i < win->n_keys; ++i)
        kn_buf_printf(&list, "%s%s", i ? ", " : "", kn_sql_ident_of(arena, win->keys[i]));
    KN_TRY(kn_buf_check(&list, err));
    KnCode rc = kn_pg_run(&pg->link, NULL, err, "CREATE UNIQUE INDEX ON %s (%s)%s", pg->target,
                          list.data, can_null ? " NULLS NOT DISTINCT" : "");
    return rc == KN_OK ? KN_OK : kn_err_wrap(err, rc, "a unique index over the keys %s", list.data);
}

/* ---- together ---- */

static KnCode evolve(KnPg *pg, KnArena *arena, const KnSinkWindow *win, KnPgColumnVec *ours,
                     KnErr *err)
{
    if (!is_current(win->schema, ours)) {
        if (ours->len)
            KN_TRY(alter(pg, arena, win->schema, ours, err));
        KN_TRY(record_columns(pg, arena, win->schema, err));
    }
    return kn_pg_ensure_key(pg, win, err);
}

KnCode kn_pg_evolve(KnPg *pg, const KnSinkWindow *win, KnErr *err)
{
    KN_ARENA_AUTO arena = kn_arena_new(4096);
    KnPgColumnVec ours = {0};
    bool unknown;
    KN_TRY(kn_pg_begin(&pg->link, pg->target, err));
    KnCode rc = kn_pg_read_ours(pg, arena, &ours, err);
    if (rc == KN_OK)
        rc = evolve(pg, arena, win, &ours, err);
    if (rc == KN_OK)
        rc = kn_pg_commit(&pg->link, &unknown, err);
    if (rc != KN_OK) {
        kn_pg_rollback(&pg->link);
        rc = kn_err_wrap(err, rc, "target %s cannot follow the source", pg->target);
    }
    kn_vec_done(&ours);
    return rc;
}
