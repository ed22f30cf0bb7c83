/* SPDX-License-Identifier: Apache-2.0 */
/*
 * columns.c - may the window's schema go into the target?
 *
 * A target of ours is described by _knut_columns, with each field's whole type (ids of nested
 * fields included). A target that somebody else made is taken over when it is empty and has columns
 * of the same names whose types take our values as they are. Names are checked before anything is
 * made: PostgreSQL would cut those of more than 63 bytes, and the cut ones could meet.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "cdc/sinks/postgres/postgres_internal.h"

#define MAX_COLUMNS 1600

static bool is_key(const KnSinkWindow *win, const char *name)
{
    for (size_t i = 0; i < win->n_keys; ++i)
        if (strcmp(win->keys[i], name) == 0)
            return true;
    return false;
}

/* Keys that differ below the microsecond would become one. */
static KnCode check_key(KnPg *pg, const KnSinkWindow *win, const KnField *field, KnErr *err)
{
    KnTypeKind kind = field->type->kind;
    bool nanos = kind == KN_TYPE_TIMESTAMP_NS || kind == KN_TYPE_TIMESTAMPTZ_NS;
    if (!nanos || pg->link.place.nanos != KN_PG_NANOS_TRUNCATE || !is_key(win, field->name))
        return KN_OK;
    return kn_err_set(err, KN_E_REFUSED,
                      "column %s is a key: its nanoseconds may not be truncated: use "
                      "nanoseconds=bigint or text",
                      field->name);
}

static KnCode check_schema(KnPg *pg, KnArena *arena, const KnSinkWindow *win, KnErr *err)
{
    const KnType *root = &win->schema->root;
    KN_TRY(kn_pg_check_name("schema", pg->schema_name, err));
    KN_TRY(kn_pg_check_name("table", pg->table_name, err));
    if (root->n_fields == 0)
        return kn_err_set(err, KN_E_REFUSED, "the source has no columns to deliver");
    if (root->n_fields > MAX_COLUMNS)
        return kn_err_set(err, KN_E_REFUSED, "%zu columns: PostgreSQL has at most %d a table",
                          root->n_fields, MAX_COLUMNS);
    for (size_t i = 0; i < root->n_fields; ++i) {
        const char *type;
        KN_TRY(kn_pg_check_name("column", root->fields[i].name, err));
        KN_TRY(kn_pg_type(arena, &root->fields[i], pg->link.place.nanos, &type, err));
        KN_TRY(check_key(pg, win, &root->fields[i], err));
    }
    return KN_OK;
}

/* ---- what there is ---- */

const char *kn_pg_field_text(KnArena *arena, const KnField *field)
{
    KnSchema schema = {.root = {.kind = KN_TYPE_STRUCT, .n_fields = 1, .fields = field}};
    KN_JSON_AUTO json = kn_schema_to_json(&schema);
    KN_BUF_AUTO buf;
    kn_buf_init(&buf, (size_t)16 << 20);
    kn_json_dump(&buf, json);
    return kn_arena_strndup(arena, buf.data ? buf.data : "", buf.len);
}

static KnCode parse_field(KnPg *pg, KnArena *arena, const char *text, KnPgColumn *col, KnErr *err)
{
    KN_JSON_AUTO json = NULL;
    KnSchema *schema = NULL;
    KnCode rc = kn_json_parse(text, strlen(text), &json, err);
    if (rc == KN_OK)
        rc = kn_schema_parse(arena, json, &schema, err);
    if (rc == KN_OK && schema->root.n_fields != 1)
        rc = kn_err_set(err, KN_E_CORRUPT, "not one field");
    if (rc != KN_OK)
        return kn_err_wrap(err, KN_E_CORRUPT, "%s: table %s", pg->link.place.where, pg->columns);
    col->type = schema->root.fields[0].type;
    return KN_OK;
}

KnCode kn_pg_read_ours(KnPg *pg, KnArena *arena, KnPgColumnVec *ret, KnErr *err)
{
    bool there;
    KN_PG_AUTO res = NULL;
    KN_TRY(kn_pg_has_table(pg, "_knut_columns", &there, err));
    if (!there)
        return KN_OK;
    KN_TRY(kn_pg_run(&pg->link, &res, err,
                     "SELECT field_id, name, type, field FROM %s WHERE target = %s ORDER BY "
                     "position, field_id",
                     pg->columns, kn_sql_text_of(arena, pg->target)));
    for (int i = 0; i < PQntuples(res); ++i) {
        int64_t id = -1;
        KnPgColumn *col = kn_vec_push(ret);
        (void)kn_str_to_i64(kn_str(PQgetvalue(res, i, 0)), &id);
        *col = (KnPgColumn){.field_id = (int32_t)id,
                            .name = kn_arena_strdup(arena, PQgetvalue(res, i, 1)),
                            .sql_type = kn_arena_strdup(arena, PQgetvalue(res, i, 2))};
        KN_TRY(parse_field(pg, arena, PQgetvalue(res, i, 3), col, err));
    }
    return KN_OK;
}

/* The columns as the database has them. */
static KnCode read_actual(KnPg *pg, KnArena *arena, KnPgColumnVec *ret, KnErr *err)
{
    KN_PG_AUTO res = NULL;
    KN_TRY(kn_pg_run(&pg->link, &res, err,
                     "SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute WHERE "
                     "attrelid = %s::regclass AND attnum > 0 AND NOT attisdropped ORDER BY attnum",
                     kn_sql_text_of(arena, pg->target)));
    for (int i = 0; i < PQntuples(res); ++i)
        *kn_vec_push(ret) = (KnPgColumn){.field_id = -1,
                                         .name = kn_arena_strdup(arena, PQgetvalue(res, i, 0)),
                                         .sql_type = kn_arena_strdup(arena, PQgetvalue(res, i, 1))};
    return KN_OK;
}

static const KnPgColumn *find_id(const KnPgColumnVec *cols, int32_t id)
{
    kn_vec_foreach (cols, col)
        if (col->field_id == id)
            return col;
    return NULL;
}

static const KnPgColumn *find_name(const KnPgColumnVec *cols, const char *name)
{
    kn_vec_foreach (cols, col)
        if (strcmp(col->name, name) == 0)
            return col;
    return NULL;
}

/* ---- may it be ---- */

/* A target that was not made by us. */
static KnCode compare_actual(KnPg *pg, KnArena *arena, const KnSchema *schema,
                             const KnPgColumnVec *actual, KnBuf *diff, KnErr *err)
{
    for (size_t i = 0; i < schema->root.n_fields; ++i) {
        const KnField *field = &schema->root.fields[i];
        const KnPgColumn *col = find_name(actual, field->name);
        const char *want;
        KN_TRY(kn_pg_type(arena, field, pg->link.place.nanos, &want, err));
        if (!col || !kn_pg_takes(col->sql_type, want))
            kn_sink_add_difference(diff, field->name, want, col ? col->sql_type : "absent");
    }
    return KN_OK;
}

/* A target of ours still has the columns that it was given. */
static void compare_kept(const KnPgColumnVec *ours, const KnPgColumnVec *actual, KnBuf *diff)
{
    kn_vec_foreach (ours, mine) {
        const KnPgColumn *col = find_name(actual, mine->name);
        if (!col || !kn_pg_takes(col->sql_type, mine->sql_type))
            kn_buf_printf(diff, "%scolumn %s: delivered as %s, %s now", diff->len ? "; " : "",
                          mine->name, mine->sql_type, col ? col->sql_type : "absent");
    }
}

/* And every change of the source keeps their values. */
static KnCode compare_ours(KnPg *pg, KnArena *arena, const KnSchema *schema,
                           const KnPgColumnVec *ours, KnBuf *diff, KnErr *err)
{
    for (size_t i = 0; i < schema->root.n_fields; ++i) {
        const KnField *field = &schema->root.fields[i];
        const KnPgColumn *col = find_id(ours, field->id);
        const char *want;
        KN_TRY(kn_pg_type(arena, field, pg->link.place.nanos, &want, err));
        if (col && (!kn_pg_convert(arena, "x", col->type, field->type) ||
                    (kn_type_equal(col->type, field->type) && strcmp(want, col->sql_type) != 0)))
            kn_sink_add_difference(diff, field->name, want, col->sql_type);
    }
    return KN_OK;
}

/* Columns of a foreign target which would stay NULL and must not. */
static KnCode refuse_required(KnPg *pg, KnArena *arena, const KnSchema *schema, KnErr *err)
{
    KN_PG_AUTO res = NULL;
    KN_BUF_AUTO names;
    kn_buf_init(&names, (size_t)4 << 20);
    for (size_t i = 0; i < schema->root.n_fields; ++i)
        kn_buf_printf(&names, "%s%s", i ? ", " : "",
                      kn_sql_text_of(arena, schema->root.fields[i].name));
    KN_TRY(kn_buf_check(&names, err));
    KN_TRY(kn_pg_run(&pg->link, &res, err,
                     "SELECT string_agg(attname, ', ') FROM pg_attribute WHERE attrelid = "
                     "%s::regclass AND attnum > 0 AND NOT attisdropped AND attnotnull AND NOT "
                     "atthasdef AND attidentity = '' AND attname NOT IN (%s)",
                     kn_sql_text_of(arena, pg->target), names.data));
    if (PQgetisnull(res, 0, 0))
        return KN_OK;
    return kn_err_set(err, KN_E_REFUSED,
                      "target %s in %s: the source has no column %s, which must not be NULL there: "
                      "drop it, give it a default, or choose another --target",
                      pg->target, pg->link.place.where, PQgetvalue(res, 0, 0));
}

static KnCode compare(KnPg *pg, KnArena *arena, const KnSchema *schema, KnPgColumnVec *ours,
                      KnPgColumnVec *actual, KnErr *err)
{
    KN_BUF_AUTO diff;
    kn_buf_init(&diff, (size_t)1 << 20);
    KN_TRY(kn_pg_read_ours(pg, arena, ours, err));
    KN_TRY(read_actual(pg, arena, actual, err));
    compare_kept(ours, actual, &diff);
    if (ours->len)
        KN_TRY(compare_ours(pg, arena, schema, ours, &diff, err));
    else
        KN_TRY(compare_actual(pg, arena, schema, actual, &diff, err));
    if (diff.len)
        return kn_err_set(err, KN_E_REFUSED, "target %s in %s: %s", pg->target,
                          pg->link.place.where, diff.data);
    return ours->len ? KN_OK : refuse_required(pg, arena, schema, err);
}

KnCode kn_pg_check_columns(KnPg *pg, const KnSinkWindow *win, KnErr *err)
{
    KN_ARENA_AUTO arena = kn_arena_new(4096);
    KnPgColumnVec ours = {0}, actual = {0};
    bool there;
    KN_TRY(check_schema(pg, arena, win, err));
    KN_TRY(kn_pg_has_table(pg, pg->table_name, &there, err));
    if (!there && !win->first)
        return kn_err_set(err, KN_E_REFUSED,
                          "target %s in %s is gone, with what was delivered into it: " KN_PG_RELOAD,
                          pg->target, pg->link.place.where);
    bool looks = there && !win->clear; /* a target that is cleared takes any columns */
    KnCode rc = looks ? compare(pg, arena, win->schema, &ours, &actual, err) : KN_OK;
    kn_vec_done(&ours);
    kn_vec_done(&actual);
    return rc;
}
