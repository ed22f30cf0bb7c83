/* SPDX-License-Identifier: Apache-2.0 */
/*
 * columns.c - the target's columns follow the source's by field id.
 *
 * _knut_columns says which column of the target holds which field, with the field's whole type
 * (ids of nested fields included), so that a change of the source's schema becomes ALTER TABLE:
 * renames, new types and columns, dropped columns. DuckDB does not take every series of ALTERs in
 * one transaction, so each is a transaction of its own with its row of _knut_columns, and a process
 * that is killed between two leaves a target from which the next one goes on. A target that
 * somebody else made is taken over when its columns have the right names and types.
 *
 * Renames go through a name of ours first where the wanted name is still taken (a and b swapped).
 */
#include <inttypes.h>
#include <stdio.h>
#include <strings.h>

#include "base/fault.h"
#include "base/json.h"
#include "base/vec.h"
#include "duckdb_internal.h"

typedef struct Column {
    int32_t field_id;
    const char *name;
    const KnType *type; /* NULL for a column that is not ours */
    const char *sql_type;
} Column;
typedef KN_VEC(Column) ColumnVec;

/* ---- texts ---- */

static KnCode type_text(KnArena *arena, const KnField *field, const char **ret, KnErr *err)
{
    KN_BUF_AUTO buf;
    kn_buf_init(&buf, (size_t)1 << 20);
    KnCode rc = kn_type_sql(&buf, field->type, err);
    if (rc != KN_OK)
        return kn_err_wrap(err, rc, "column %s", field->name);
    KN_TRY(kn_buf_check(&buf, err));
    *ret = kn_arena_strndup(arena, buf.data, buf.len);
    return KN_OK;
}

/* A schema of this one field: how a field with all its ids is kept as text. */
static const char *field_text(KnArena *arena, const KnField *field)
{
    KnSchema schema = {.root = {.kind = KN_TYPE_STRUCT, .n_fields = 1, .fields = field}};
    KN_JSON_AUTO json = kn_schema_to_json(&schema);
    KN_BUF_AUTO buf;
    kn_buf_init(&buf, (size_t)16 << 20);
    kn_json_dump(&buf, json);
    return kn_arena_strndup(arena, buf.data ? buf.data : "", buf.len);
}

static KnCode parse_field(KnDuck *duck, KnArena *arena, KnStr text, Column *col, KnErr *err)
{
    KN_JSON_AUTO json = NULL;
    KnSchema *schema = NULL;
    KnCode rc = kn_json_parse(text.ptr, text.len, &json, err);
    if (rc == KN_OK)
        rc = kn_schema_parse(arena, json, &schema, err);
    if (rc == KN_OK && schema->root.n_fields != 1)
        rc = kn_err_set(err, KN_E_CORRUPT, "not one field");
    if (rc != KN_OK)
        return kn_err_wrap(err, KN_E_CORRUPT, "%s: table _knut_columns", duck->path);
    col->type = schema->root.fields[0].type;
    return KN_OK;
}

/* ---- what there is ---- */

static KnCode read_ours(KnDuck *duck, KnArena *arena, ColumnVec *cols, KnErr *err)
{
    bool there;
    KN_TRY(kn_duck_has_table(duck, "main", "_knut_columns", &there, err));
    if (!there)
        return KN_OK;
    const char *sql =
        kn_arena_printf(arena,
                        "SELECT field_id::INTEGER, name, field FROM main._knut_columns WHERE "
                        "lower(target) = lower(%s) ORDER BY position",
                        kn_sql_text_of(arena, duck->target));
    KnStream *stream = NULL;
    KN_TRY(kn_session_query(duck->ses, sql, &stream, err));
    KnCode rc;
    for (;;) {
        KN_BATCH_AUTO batch = NULL;
        rc = kn_stream_next(stream, &batch, err);
        if (rc != KN_OK || !batch)
            break;
        KnVector ids = kn_batch_vector(batch, 0), names = kn_batch_vector(batch, 1),
                 fields = kn_batch_vector(batch, 2);
        for (size_t i = 0; i < kn_batch_rows(batch) && rc == KN_OK; ++i) {
            KnStr name = kn_vector_str(&names, i);
            Column *col = kn_vec_push(cols);
            col->field_id = ((const int32_t *)ids.data)[i];
            col->name = kn_arena_strndup(arena, name.ptr, name.len);
            rc = parse_field(duck, arena, kn_vector_str(&fields, i), col, err);
        }
        if (rc != KN_OK)
            break;
    }
    stream = kn_stream_close(stream);
    return rc;
}

/* The columns as the database has them. */
static KnCode read_actual(KnDuck *duck, KnArena *arena, ColumnVec *cols, KnErr *err)
{
    const char *sql = kn_arena_printf(
        arena,
        "SELECT column_name, data_type FROM duckdb_columns() WHERE database_name ="
        " current_database() AND lower(schema_name) = lower(%s) AND lower(table_name) = lower(%s) "
        "ORDER BY column_index",
        kn_sql_text_of(arena, duck->schema_name), kn_sql_text_of(arena, duck->table_name));
    KnStream *stream = NULL;
    KN_TRY(kn_session_query(duck->ses, sql, &stream, err));
    KnCode rc;
    for (;;) {
        KN_BATCH_AUTO batch = NULL;
        rc = kn_stream_next(stream, &batch, err);
        if (rc != KN_OK || !batch)
            break;
        KnVector names = kn_batch_vector(batch, 0), types = kn_batch_vector(batch, 1);
        for (size_t i = 0; i < kn_batch_rows(batch); ++i) {
            KnStr name = kn_vector_str(&names, i), type = kn_vector_str(&types, i);
            *kn_vec_push(cols) = (Column){.field_id = -1,
                                          .name = kn_arena_strndup(arena, name.ptr, name.len),
                                          .sql_type = kn_arena_strndup(arena, type.ptr, type.len)};
        }
    }
    stream = kn_stream_close(stream);
    return rc;
}

static const Column *find_id(const ColumnVec *cols, int32_t id)
{
    kn_vec_foreach (cols, col)
        if (col->field_id == id)
            return col;
    return NULL;
}

static const Column *find_name(const ColumnVec *cols, const char *name)
{
    kn_vec_foreach (cols, col)
        if (strcasecmp(col->name, name) == 0)
            return col;
    return NULL;
}

/* ---- may it be ---- */

/* The engine's own spelling of a type, as its catalog has it. */
static KnCode canonical_type(KnDuck *duck, KnArena *arena, const char *sql_type, const char **ret,
                             KnErr *err)
{
    KN_BUF_AUTO text;
    kn_buf_init(&text, (size_t)1 << 20);
    const char *sql = kn_arena_printf(arena, "SELECT typeof(CAST(NULL AS %s))", sql_type);
    KN_TRY(kn_session_query_text(duck->ses, sql, &text, err));
    *ret = kn_arena_strndup(arena, text.data, text.len);
    return KN_OK;
}

/* A target that was not made by us: same names, same types. */
static KnCode compare_foreign(KnDuck *duck, KnArena *arena, const KnSchema *schema,
                              const ColumnVec *actual, KnBuf *diff, KnErr *err)
{
    for (size_t i = 0; i < schema->root.n_fields; ++i) {
        const KnField *field = &schema->root.fields[i];
        const Column *col = find_name(actual, field->name);
        const char *want, *text;
        KN_TRY(type_text(arena, field, &text, err));
        KN_TRY(canonical_type(duck, arena, text, &want, err));
        if (!col || strcmp(col->sql_type, want) != 0)
            kn_sink_add_difference(diff, field->name, want, col ? col->sql_type : "absent");
    }
    return KN_OK;
}

/* Columns of a target that was not made by us which would stay NULL and must not. */
static KnCode refuse_required(KnDuck *duck, KnArena *arena, const KnSchema *schema, KnErr *err)
{
    KN_BUF_AUTO sql;
    KN_BUF_AUTO names;
    kn_buf_init(&sql, (size_t)16 << 20);
    kn_buf_init(&names, (size_t)1 << 20);
    kn_buf_printf(&sql,
                  "SELECT coalesce(string_agg(column_name, ', '), '') FROM duckdb_columns() WHERE "
                  "database_name = current_database() AND lower(schema_name) = lower(%s) AND "
                  "lower(table_name) = lower(%s) AND NOT is_nullable AND column_default IS NULL "
                  "AND lower(column_name) NOT IN (''",
                  kn_sql_text_of(arena, duck->schema_name),
                  kn_sql_text_of(arena, duck->table_name));
    for (size_t i = 0; i < schema->root.n_fields; ++i)
        kn_buf_printf(&sql, ", lower(%s)", kn_sql_text_of(arena, schema->root.fields[i].name));
    kn_buf_char(&sql, ')');
    KN_TRY(kn_buf_check(&sql, err));
    KN_TRY(kn_session_query_text(duck->ses, sql.data, &names, err));
    if (names.len == 0)
        return KN_OK;
    return kn_err_set(err, KN_E_REFUSED,
                      "target %s in %s: the source has no column %s, which must not be NULL there: "
                      "drop it, give it a default, or choose another --target",
                      duck->target, duck->path, names.data);
}

static KnCode refuse_view(KnDuck *duck, KnArena *arena, KnErr *err)
{
    int64_t n;
    KN_TRY(kn_duck_ask(duck, &n, err,
                       "SELECT count(*) FROM duckdb_views() WHERE database_name = "
                       "current_database() AND lower(schema_name) = lower(%s) AND "
                       "lower(view_name) = lower(%s)",
                       kn_sql_text_of(arena, duck->schema_name),
                       kn_sql_text_of(arena, duck->table_name)));
    if (n == 0)
        return KN_OK;
    return kn_err_set(err, KN_E_REFUSED,
                      "target %s in %s is a view: drop it, or choose another --target",
                      duck->target, duck->path);
}

/* A target of ours: every change must keep the values. */
static KnCode compare_ours(KnArena *arena, const KnSchema *schema, const ColumnVec *ours,
                           KnBuf *diff, KnErr *err)
{
    for (size_t i = 0; i < schema->root.n_fields; ++i) {
        const KnField *field = &schema->root.fields[i];
        const Column *col = find_id(ours, field->id);
        if (!col || kn_duck_convert(arena, "x", col->type, field->type))
            continue;
        KnField old = {.name = col->name, .type = col->type};
        const char *here, *there;
        KN_TRY(type_text(arena, field, &here, err));
        KN_TRY(type_text(arena, &old, &there, err));
        kn_sink_add_difference(diff, field->name, here, there);
    }
    return KN_OK;
}

static KnCode check_names(KnArena *arena, const KnSchema *schema, KnErr *err)
{
    for (size_t i = 0; i < schema->root.n_fields; ++i) {
        const char *text;
        KN_TRY(type_text(arena, &schema->root.fields[i], &text, err));
        for (size_t k = 0; k < i; ++k)
            if (strcasecmp(schema->root.fields[i].name, schema->root.fields[k].name) == 0)
                return kn_err_set(
                    err, KN_E_REFUSED,
                    "columns %s and %s: DuckDB takes them for the same name; rename one "
                    "in the source",
                    schema->root.fields[k].name, schema->root.fields[i].name);
    }
    return schema->root.n_fields
               ? KN_OK
               : kn_err_set(err, KN_E_REFUSED, "the source has no columns to deliver");
}

static KnCode check_columns(KnDuck *duck, KnArena *arena, const KnSchema *schema, ColumnVec *ours,
                            ColumnVec *actual, KnErr *err)
{
    KN_BUF_AUTO diff;
    kn_buf_init(&diff, (size_t)1 << 20);
    KN_TRY(read_ours(duck, arena, ours, err));
    KN_TRY(read_actual(duck, arena, actual, err));
    if (ours->len)
        KN_TRY(compare_ours(arena, schema, ours, &diff, err));
    else
        KN_TRY(compare_foreign(duck, arena, schema, actual, &diff, err));
    if (diff.len)
        return kn_err_set(err, KN_E_REFUSED, "target %s in %s: %s", duck->target, duck->path,
                          diff.data);
    return ours->len ? KN_OK : refuse_required(duck, arena, schema, err);
}

KnCode kn_duck_check_columns(KnDuck *duck, const KnSinkWindow *win, KnErr *err)
{
    KN_ARENA_AUTO arena = kn_arena_new(4096);
    ColumnVec ours = {0}, actual = {0};
    bool there;
    KN_TRY(check_names(arena, win->schema, err));
    KN_TRY(refuse_view(duck, arena, err));
    KN_TRY(kn_duck_has_table(duck, duck->schema_name, duck->table_name, &there, err));
    if (!there && !win->first)
        return kn_err_set(err, KN_E_REFUSED,
                          "target %s in %s is gone, with what was delivered into it: run `knut cdc "
                          "reload` to deliver the table anew",
                          duck->target, duck->path);
    bool compare = there && !win->clear; /* a target that is cleared takes any columns */
    KnCode rc = compare ? check_columns(duck, arena, win->schema, &ours, &actual, err) : KN_OK;
    kn_vec_done(&ours);
    kn_vec_done(&actual);
    return rc;
}

/* ---- making and changing ---- */

static const char *insert_record(KnDuck *duck, KnArena *arena, const KnField *field,
                                 size_t position, const char *type)
{
    return kn_arena_printf(
        arena, "INSERT INTO main._knut_columns VALUES (%s, %zu, %" PRId32 ", %s, %s, %s)",
        kn_sql_text_of(arena, duck->target), position, field->id,
        kn_sql_text_of(arena, field->name), kn_sql_text_of(arena, type),
        kn_sql_text_of(arena, field_text(arena, field)));
}

static KnCode record_columns(KnDuck *duck, KnArena *arena, const KnSchema *schema, KnErr *err)
{
    KN_TRY(kn_duck_exec(duck, NULL, err,
                        "CREATE TABLE IF NOT EXISTS main._knut_columns(target VARCHAR, position "
                        "INTEGER, field_id INTEGER, name VARCHAR, type VARCHAR, field VARCHAR)"));
    KN_TRY(kn_duck_exec(duck, NULL, err,
                        "DELETE FROM main._knut_columns WHERE lower(target) = lower(%s)",
                        kn_sql_text_of(arena, duck->target)));
    for (size_t i = 0; i < schema->root.n_fields; ++i) {
        const KnField *field = &schema->root.fields[i];
        const char *type;
        KN_TRY(type_text(arena, field, &type, err));
        KN_TRY(kn_duck_exec(
            duck, NULL, err,
            "INSERT INTO main._knut_columns VALUES (%s, %zu, %" PRId32 ", %s, %s, %s)",
            kn_sql_text_of(arena, duck->target), i, field->id, kn_sql_text_of(arena, field->name),
            kn_sql_text_of(arena, type), kn_sql_text_of(arena, field_text(arena, field))));
    }
    return KN_OK;
}

KnCode kn_duck_create_target(KnDuck *duck, const KnSchema *schema, KnErr *err)
{
    KN_ARENA_AUTO arena = kn_arena_new(4096);
    KN_BUF_AUTO sql;
    kn_buf_init(&sql, (size_t)16 << 20);
    kn_buf_printf(&sql, "CREATE SCHEMA IF NOT EXISTS %s; CREATE TABLE %s(",
                  kn_sql_ident_of(arena, duck->schema_name), duck->target);
    for (size_t i = 0; i < schema->root.n_fields; ++i) {
        const char *type;
        KN_TRY(type_text(arena, &schema->root.fields[i], &type, err));
        kn_buf_printf(&sql, "%s%s %s", i ? ", " : "",
                      kn_sql_ident_of(arena, schema->root.fields[i].name), type);
    }
    kn_buf_text(&sql, ")");
    KN_TRY(kn_buf_check(&sql, err));
    KN_TRY(kn_session_exec(duck->ses, sql.data, NULL, err));
    return record_columns(duck, arena, schema, err);
}

/* One ALTER (sql) and what _knut_columns says afterwards (record), together. */
static KnCode alter_step(KnDuck *duck, const char *sql, const char *record, KnErr *err)
{
    KN_FAULT("sink-alter", err);
    KN_TRY(kn_duck_exec(duck, NULL, err, "BEGIN TRANSACTION"));
    KnCode rc = kn_session_exec(duck->ses, sql, NULL, err);
    if (rc == KN_OK)
        rc = kn_session_exec(duck->ses, record, NULL, err);
    if (rc == KN_OK)
        rc = kn_duck_exec(duck, NULL, err, "COMMIT");
    if (rc != KN_OK)
        (void)!kn_duck_exec(duck, NULL, NULL, "ROLLBACK");
    return rc;
}

static KnCode rename_column(KnDuck *duck, KnArena *arena, Column *col, const char *name, KnErr *err)
{
    if (strcmp(col->name, name) == 0)
        return KN_OK;
    const char *sql =
        kn_arena_printf(arena, "ALTER TABLE %s RENAME COLUMN %s TO %s", duck->target,
                        kn_sql_ident_of(arena, col->name), kn_sql_ident_of(arena, name));
    const char *record = kn_arena_printf(
        arena,
        "UPDATE main._knut_columns SET name = %s WHERE lower(target) = lower(%s) AND field_id = "
        "%" PRId32,
        kn_sql_text_of(arena, name), kn_sql_text_of(arena, duck->target), col->field_id);
    KN_TRY(alter_step(duck, sql, record, err));
    col->name = name;
    return KN_OK;
}

/* Every column that changes its name, or goes, takes a name of ours first: what it gives up may be
 * another one's new name. */
static KnCode rename_columns(KnDuck *duck, KnArena *arena, const KnSchema *schema, ColumnVec *ours,
                             KnErr *err)
{
    kn_vec_foreach (ours, col) {
        const KnField *field = kn_type_field(&schema->root, col->field_id);
        const char *between = kn_arena_printf(arena, "_knut_column_%" PRId32, col->field_id);
        if (!field || strcmp(field->name, col->name) != 0)
            KN_TRY(rename_column(duck, arena, col, between, err));
    }
    kn_vec_foreach (ours, col) {
        const KnField *field = kn_type_field(&schema->root, col->field_id);
        if (field)
            KN_TRY(rename_column(duck, arena, col, field->name, err));
    }
    return KN_OK;
}

static KnCode add_column(KnDuck *duck, KnArena *arena, const KnField *field, KnErr *err)
{
    const char *type, *name = kn_sql_ident_of(arena, field->name);
    const char *value = kn_duck_default(arena, field);
    KN_TRY(type_text(arena, field, &type, err));
    const char *sql = kn_arena_printf(arena, "ALTER TABLE %s ADD COLUMN %s %s%s%s", duck->target,
                                      name, type, value ? " DEFAULT " : "", value ? value : "");
    KN_TRY(alter_step(duck, sql, insert_record(duck, arena, field, 0, type), err));
    if (!value)
        return KN_OK;
    /* Loads name every column: a default left behind by a kill here is never used. */
    return kn_duck_exec(duck, NULL, err, "ALTER TABLE %s ALTER COLUMN %s DROP DEFAULT",
                        duck->target, name);
}

/* A type that values cannot follow: fine where there are none (after a reload). */
static KnCode require_empty(KnDuck *duck, const KnField *field, KnErr *err)
{
    int64_t rows;
    KN_TRY(kn_duck_ask(duck, &rows, err, "SELECT count(*) FROM (SELECT 1 FROM %s LIMIT 1)",
                       duck->target));
    if (rows == 0)
        return KN_OK;
    return kn_err_set(err, KN_E_REFUSED, "column %s: its values have no place in the new type",
                      field->name);
}

static KnCode retype_column(KnDuck *duck, KnArena *arena, const KnField *field, const Column *col,
                            KnErr *err)
{
    const char *type, *name = kn_sql_ident_of(arena, field->name);
    const char *value = kn_duck_convert(arena, name, col->type, field->type);
    KN_TRY(type_text(arena, field, &type, err));
    if (!value)
        KN_TRY(require_empty(duck, field, err));
    const char *sql =
        kn_arena_printf(arena, "ALTER TABLE %s ALTER COLUMN %s SET DATA TYPE %s USING %s",
                        duck->target, name, type, value ? value : "NULL");
    const char *record = kn_arena_printf(
        arena,
        "UPDATE main._knut_columns SET type = %s, field = %s WHERE lower(target) = lower(%s) AND "
        "field_id = %" PRId32,
        kn_sql_text_of(arena, type), kn_sql_text_of(arena, field_text(arena, field)),
        kn_sql_text_of(arena, duck->target), field->id);
    return alter_step(duck, sql, record, err);
}

static KnCode drop_column(KnDuck *duck, KnArena *arena, const Column *col, KnErr *err)
{
    const char *sql = kn_arena_printf(arena, "ALTER TABLE %s DROP COLUMN %s", duck->target,
                                      kn_sql_ident_of(arena, col->name));
    const char *record = kn_arena_printf(
        arena,
        "DELETE FROM main._knut_columns WHERE lower(target) = lower(%s) AND field_id = %" PRId32,
        kn_sql_text_of(arena, duck->target), col->field_id);
    return alter_step(duck, sql, record, err);
}

static bool is_current(const KnSchema *schema, const ColumnVec *ours)
{
    if (ours->len != schema->root.n_fields)
        return false;
    for (size_t i = 0; i < ours->len; ++i) {
        const KnField *field = &schema->root.fields[i];
        const Column *col = find_id(ours, field->id);
        if (!col || strcmp(col->name, field->name) != 0 || !kn_type_equal(col->type, field->type))
            return false;
    }
    return true;
}

static KnCode alter(KnDuck *duck, KnArena *arena, const KnSchema *schema, ColumnVec *ours,
                    KnErr *err)
{
    KN_TRY(rename_columns(duck, arena, schema, ours, err));
    for (size_t i = 0; i < schema->root.n_fields; ++i) {
        const KnField *field = &schema->root.fields[i];
        const Column *col = find_id(ours, field->id);
        if (!col)
            KN_TRY(add_column(duck, arena, field, err));
        else if (!kn_type_equal(col->type, field->type))
            KN_TRY(retype_column(duck, arena, field, col, err));
    }
    kn_vec_foreach (ours, col) {
        if (!kn_type_field(&schema->root, col->field_id))
            KN_TRY(drop_column(duck, arena, col, err));
    }
    return KN_OK;
}

/* The records as they are for a target that is as the schema says. */
static KnCode record_all(KnDuck *duck, KnArena *arena, const KnSchema *schema, KnErr *err)
{
    KN_TRY(kn_duck_exec(duck, NULL, err, "BEGIN TRANSACTION"));
    KnCode rc = record_columns(duck, arena, schema, err);
    if (rc == KN_OK)
        rc = kn_duck_exec(duck, NULL, err, "COMMIT");
    if (rc != KN_OK)
        (void)!kn_duck_exec(duck, NULL, NULL, "ROLLBACK");
    return rc;
}

static KnCode evolve(KnDuck *duck, KnArena *arena, const KnSchema *schema, ColumnVec *ours,
                     KnErr *err)
{
    if (ours->len)
        KN_TRY(alter(duck, arena, schema, ours, err));
    return record_all(duck, arena, schema, err);
}

KnCode kn_duck_evolve(KnDuck *duck, const KnSchema *schema, KnErr *err)
{
    KN_ARENA_AUTO arena = kn_arena_new(4096);
    ColumnVec ours = {0};
    KnCode rc = read_ours(duck, arena, &ours, err);
    if (rc == KN_OK && !is_current(schema, &ours)) {
        rc = evolve(duck, arena, schema, &ours, err);
        if (rc != KN_OK)
            rc = kn_err_wrap(err, rc, "target %s in %s: its columns cannot follow the source's",
                             duck->target, duck->path);
    }
    kn_vec_done(&ours);
    return rc;
}
