/* SPDX-License-Identifier: Apache-2.0 */
/*
 * database_target.c - a table of PostgreSQL as a target: one transaction a run.
 *
 * In it are the rows (by binary COPY, behind a DELETE where they replace the old ones) and a row in
 * `_knut_runs`, beside the target, that says so. So a run of an id that was given from outside adds
 * its rows once, however often it is repeated; and when the answer to COMMIT is lost, the row is
 * looked for under the target's lock, which the server gives out only after that transaction has
 * ended. A table that is missing is made.
 *
 * The columns are compared when the run begins to compute, long before anything is written.
 */
#include <inttypes.h>
#include <string.h>

#include "base/fault.h"
#include "pipeline/native/database.h"

/* A target on its way; texts in the run's arena. */
typedef struct Target {
    KnNativeRun *run;
    KnNativeNode *node;
    KnPgLink link;
    const char *name; /* quoted, with its schema */
    const char *runs; /* the same of _knut_runs */
    const char *select;
    KnField *fields; /* the rows', as Iceberg's types */
    size_t n_fields;
    KnVector *vecs;
    KnPgEncoder encoder;
    KnBuf bytes;
    bool source_failed;
    int64_t rows;
} Target;

static void target_done(Target *t)
{
    kn_pg_disconnect(&t->link);
    kn_buf_done(&t->bytes);
}
#define TARGET_AUTO __attribute__((cleanup(target_done))) Target

/* ---- columns ---- */

/* What a column is cast to before it is sent; NULL = it goes as it is. */
static const char *cast_of(const char *type)
{
    static const struct {
        const char *from, *to;
    } casts[] = {
        {"TINYINT", "INTEGER"},
        {"SMALLINT", "INTEGER"},
        {"UTINYINT", "INTEGER"},
        {"USMALLINT", "INTEGER"},
        {"UINTEGER", "BIGINT"},
        {"UBIGINT", "DECIMAL(20,0)"},
        {"HUGEINT", "DECIMAL(38,0)"},
        {"UHUGEINT", "DECIMAL(38,0)"},
        {"TIMESTAMP_S", "TIMESTAMP"},
        {"TIMESTAMP_MS", "TIMESTAMP"},
        {"INTERVAL", "VARCHAR"},
        {"BIT", "VARCHAR"},
        {"TIME WITH TIME ZONE", "VARCHAR"},
        {"TIME_NS", "VARCHAR"},
        {"JSON", "VARCHAR"},
        {"BIGNUM", "VARCHAR"},
        {"\"NULL\"", "VARCHAR"},
    };
    for (size_t i = 0; i < sizeof(casts) / sizeof(casts[0]); i++)
        if (!strcmp(casts[i].from, type))
            return casts[i].to;
    return strncmp(type, "ENUM(", 5) ? NULL : "VARCHAR";
}

static KnCode choose_select(Target *t, KnErr *err)
{
    KnNativeShape shape = {0};
    KN_BUF_AUTO from = {.max = 1 << 16};
    KN_BUF_AUTO sql = {.max = 16 << 20};
    kn_buf_text(&from, "SELECT * FROM ");
    kn_native_name_sql(&from, t->node->dataset->name);
    KN_TRY(kn_native_describe(t->run, from.data, &shape, err));
    kn_buf_text(&sql, "SELECT ");
    for (size_t i = 0; i < shape.len; i++) {
        const char *cast = cast_of(shape.items[i].type);
        kn_buf_text(&sql, i ? ", " : "");
        kn_buf_text(&sql, cast ? "CAST(" : "");
        kn_sql_ident(&sql, kn_str(shape.items[i].name));
        if (cast)
            kn_buf_printf(&sql, " AS %s)", cast);
    }
    kn_buf_printf(&sql, " FROM (%s)", from.data);
    KN_TRY(kn_buf_check(&sql, err));
    t->select = kn_arena_strndup(t->run->arena, sql.data, sql.len);
    t->n_fields = shape.len;
    t->fields = kn_arena_zalloc(t->run->arena, (shape.len + 1) * sizeof(*t->fields));
    for (size_t i = 0; i < shape.len; i++)
        t->fields[i].name = shape.items[i].name;
    return KN_OK;
}

static KnCode field_type(KnArena *arena, const KnColType *from, const KnType **ret, KnErr *err);

/* Children of a struct, a list or a map, as Iceberg has them. */
static KnCode nested_type(KnArena *arena, const KnColType *from, KnType *type, KnErr *err)
{
    static const char *const map_names[] = {"key", "value"};
    const KnColType *parts = from->kind == KN_COL_MAP ? &from->children[0] : from;
    KnField *fields = kn_arena_zalloc(arena, (parts->n_children + 1) * sizeof(*fields));
    type->n_fields = parts->n_children;
    type->fields = fields;
    for (size_t i = 0; i < parts->n_children; i++) {
        fields[i].name = from->kind == KN_COL_STRUCT ? kn_arena_strdup(arena, parts->child_names[i])
                         : from->kind == KN_COL_LIST ? "element"
                                                     : map_names[i != 0];
        KN_TRY(field_type(arena, &parts->children[i], &fields[i].type, err));
    }
    return KN_OK;
}

static KnCode field_type(KnArena *arena, const KnColType *from, const KnType **ret, KnErr *err)
{
    KnType *type = kn_arena_zalloc(arena, sizeof(*type));
    for (KnTypeKind kind = KN_TYPE_BOOLEAN; kind <= KN_TYPE_MAP; kind++) {
        if (kn_type_column_kind(kind) != from->kind)
            continue;
        *type = (KnType){.kind = kind, .precision = from->width, .scale = from->scale};
        *ret = type;
        return kn_type_is_nested(type) ? nested_type(arena, from, type, err) : KN_OK;
    }
    return kn_err_set(err, KN_E_INVAL, "a type that PostgreSQL has not: cast it in the query");
}

static KnCode choose_types(Target *t, KnErr *err)
{
    KnStream *stream = NULL;
    const char *sql = kn_arena_printf(t->run->arena, "%s LIMIT 0", t->select);
    KN_TRY(kn_session_query(t->run->session, sql, &stream, err));
    KnCode rc = KN_OK;
    for (size_t i = 0; rc == KN_OK && i < t->n_fields; i++) {
        KnField *field = &t->fields[i];
        rc = kn_pg_check_name("column", field->name, err);
        if (rc == KN_OK)
            rc = kn_err_wrap(
                err, field_type(t->run->arena, kn_stream_column_type(stream, i), &field->type, err),
                "column %s", field->name);
    }
    stream = kn_stream_close(stream);
    return rc;
}

/* ---- the table ---- */

static KnCode make_table(Target *t, KnErr *err)
{
    KN_BUF_AUTO sql = {.max = 16 << 20};
    kn_buf_printf(&sql, "CREATE TABLE %s(", t->name);
    for (size_t i = 0; i < t->n_fields; i++) {
        const char *type = NULL;
        KN_TRY(kn_pg_type(t->run->arena, &t->fields[i], t->link.place.nanos, &type, err));
        kn_buf_text(&sql, i ? ", " : "");
        kn_sql_ident(&sql, kn_str(t->fields[i].name));
        kn_buf_printf(&sql, " %s", type);
    }
    kn_buf_char(&sql, ')');
    KN_TRY(kn_buf_check(&sql, err));
    return kn_pg_exec(&t->link, sql.data, NULL, err);
}

static const char *actual_type(const PGresult *columns, const char *name)
{
    for (int i = 0; i < PQntuples(columns); i++)
        if (!strcmp(PQgetvalue(columns, i, 0), name))
            return PQgetvalue(columns, i, 1);
    return NULL;
}

static KnCode compare_columns(const Target *t, const PGresult *columns, KnErr *err)
{
    for (size_t i = 0; i < t->n_fields; i++) {
        const char *want = NULL, *has = actual_type(columns, t->fields[i].name);
        KN_TRY(kn_pg_type(t->run->arena, &t->fields[i], t->link.place.nanos, &want, err));
        if (!has)
            return kn_err_set(err, KN_E_INVAL, "%s has no column %s", t->name, t->fields[i].name);
        if (!kn_pg_takes(has, want))
            return kn_err_set(err, KN_E_INVAL,
                              "%s: column %s is %s, and the rows have %s: cast it in the query",
                              t->name, t->fields[i].name, has, want);
    }
    return KN_OK;
}

/* Inside a transaction: the table is there, and takes the rows. */
static KnCode see_to_table(Target *t, KnErr *err)
{
    KN_PG_AUTO columns = NULL;
    int64_t there = -1;
    KN_TRY(kn_pg_ask(&t->link, &there, err, "SELECT (to_regclass(%s) IS NOT NULL)::int",
                     kn_sql_text_of(t->run->arena, t->name)));
    if (there != 1)
        return make_table(t, err);
    KN_TRY(kn_pg_run(&t->link, &columns, err,
                     "SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute WHERE "
                     "attrelid = to_regclass(%s) AND attnum > 0 AND NOT attisdropped",
                     kn_sql_text_of(t->run->arena, t->name)));
    return compare_columns(t, columns, err);
}

static KnCode open_target(Target *t, KnErr *err)
{
    KnArena *arena = t->run->arena;
    KnDatabasePlace place = {0};
    KN_TRY(kn_database_place_parse(arena, t->node->path,
                                   kn_database_setting(&t->node->dataset->properties, "table"),
                                   &place, err));
    if (!place.table || !place.schema[0])
        return kn_err_set(err, KN_E_INVAL,
                          "%s: into which table? write ?table=SCHEMA.TABLE behind the database",
                          place.place.where);
    t->link.place = place.place;
    t->name = kn_arena_printf(arena, "%s%s", place.schema, place.table);
    t->runs = kn_arena_printf(arena, "%s_knut_runs", place.schema);
    kn_buf_init(&t->bytes, (size_t)1 << 30);
    KN_TRY(choose_select(t, err));
    KN_TRY(choose_types(t, err));
    return kn_pg_begin(&t->link, t->name, err);
}

KnCode kn_native_database_probe(KnNativeRun *run, KnNativeNode *node, KnErr *err)
{
    TARGET_AUTO t = {.run = run, .node = node};
    KN_TRY(open_target(&t, err));
    KN_TRY(see_to_table(&t, err));
    kn_pg_rollback(&t.link); /* a table that it made goes with it */
    return KN_OK;
}

/* ---- rows ---- */

static KnCode send_batch(void *arg, KnBatch *batch, KnErr *err)
{
    Target *t = arg;
    t->source_failed = true; /* until the server is spoken to */
    KN_TRY(kn_pg_encode_batch(&t->encoder, batch, err));
    for (size_t i = 0; i < kn_batch_rows(batch); i++) {
        KN_TRY(kn_pg_encode_row(&t->encoder, i, &t->bytes, err));
        if (t->bytes.len < KN_PG_PIECE)
            continue;
        t->source_failed = false;
        KN_TRY(kn_pg_copy_send(&t->link, &t->bytes, err));
        t->source_failed = true;
    }
    t->rows += (int64_t)kn_batch_rows(batch);
    return KN_OK;
}

static KnCode send_rows(Target *t, KnErr *err)
{
    t->vecs = kn_arena_zalloc(t->run->arena, (t->n_fields + 2) * sizeof(*t->vecs));
    t->encoder = (KnPgEncoder){.fields = t->fields,
                               .n_fields = t->n_fields,
                               .nanos = t->link.place.nanos,
                               .vecs = t->vecs};
    kn_pg_encode_header(&t->bytes);
    t->source_failed = true;
    KN_TRY(kn_session_visit(t->run->session, t->select, send_batch, t, err));
    t->source_failed = false;
    kn_pg_encode_trailer(&t->bytes);
    return kn_pg_copy_send(&t->link, &t->bytes, err);
}

static KnCode copy_rows(Target *t, KnErr *err)
{
    KN_BUF_AUTO sql = {.max = 16 << 20};
    KN_PG_AUTO res = NULL;
    kn_buf_printf(&sql, "COPY %s(", t->name);
    for (size_t i = 0; i < t->n_fields; i++) {
        kn_buf_text(&sql, i ? ", " : "");
        kn_sql_ident(&sql, kn_str(t->fields[i].name));
    }
    kn_buf_text(&sql, ") FROM STDIN (FORMAT binary)");
    KN_TRY(kn_buf_check(&sql, err));
    KN_TRY(kn_pg_exec(&t->link, sql.data, &res, err));
    KnCode sent = send_rows(t, err);
    return kn_pg_copy_end(&t->link, sent, t->source_failed, err);
}

/* ---- the run's own row ---- */

static KnCode find_run(Target *t, int64_t *ret_rows, KnErr *err)
{
    int64_t there = -1;
    KN_TRY(kn_pg_ask(&t->link, &there, err, "SELECT (to_regclass(%s) IS NOT NULL)::int",
                     kn_sql_text_of(t->run->arena, t->runs)));
    *ret_rows = -1;
    if (there != 1)
        return KN_OK;
    return kn_pg_ask(&t->link, ret_rows, err, "SELECT rows FROM %s WHERE run = %s AND dataset = %s",
                     t->runs, kn_sql_text_of(t->run->arena, t->run->id),
                     kn_sql_text_of(t->run->arena, t->node->dataset->name));
}

static KnCode record_run(Target *t, KnErr *err)
{
    KnArena *arena = t->run->arena;
    KN_TRY(
        kn_pg_run(&t->link, NULL, err,
                  "CREATE TABLE IF NOT EXISTS %s(run text, dataset text, pipeline text NOT NULL, "
                  "rows bigint NOT NULL, written_at timestamptz NOT NULL DEFAULT now(), "
                  "PRIMARY KEY (run, dataset))",
                  t->runs));
    return kn_pg_run(
        &t->link, NULL, err,
        "INSERT INTO %s(run, dataset, pipeline, rows) VALUES (%s, %s, %s, %" PRId64 ")", t->runs,
        kn_sql_text_of(arena, t->run->id), kn_sql_text_of(arena, t->node->dataset->name),
        kn_sql_text_of(arena, t->run->pipeline->name), t->rows);
}

static KnCode write_rows(Target *t, KnErr *err)
{
    KN_TRY(see_to_table(t, err));
    if (t->node->replace)
        KN_TRY(kn_pg_run(&t->link, NULL, err, "DELETE FROM %s", t->name));
    KN_TRY(copy_rows(t, err));
    KN_TRY(record_run(t, err));
    KN_FAULT("pipeline-commit", err);
    return KN_OK;
}

/* The answer to COMMIT was lost: is the run's row there? */
static KnCode settle(Target *t, KnErr *err)
{
    int64_t rows = -1;
    KN_TRY(kn_pg_begin(&t->link, t->name, err));
    KN_TRY(find_run(t, &rows, err));
    kn_pg_rollback(&t->link);
    if (rows < 0)
        return kn_err_set(err, KN_E_IO, "%s: the connection was lost, and nothing was written",
                          t->link.place.where);
    return KN_OK;
}

static KnCode write_once(Target *t, bool *ret_before, KnErr *err)
{
    bool unknown = false;
    KN_TRY(find_run(t, &t->rows, err));
    *ret_before = t->rows >= 0;
    if (*ret_before)
        return KN_OK;
    t->rows = 0;
    KN_TRY(write_rows(t, err));
    KnCode rc = kn_pg_commit(&t->link, &unknown, err);
    return unknown ? settle(t, err) : rc;
}

KnCode kn_native_database_write(KnNativeRun *run, KnNativeNode *node, KnErr *err)
{
    TARGET_AUTO t = {.run = run, .node = node};
    bool before = false;
    KN_TRY(open_target(&t, err));
    KN_TRY(write_once(&t, &before, err));
    KN_FAULT("pipeline-committed", err);
    node->rows = before ? 0 : t.rows;
    KnRunMetrics metrics = {.rows = node->rows};
    KnRunEvent event = {
        .element = node->dataset->name, .phase = KN_PHASE_COMPLETED, .metrics = &metrics};
    if (before)
        kn_native_tell(run, &event, "sink `%s`: run %s is in %s already", node->dataset->name,
                       run->id, t.name);
    else
        kn_native_tell(run, &event, "sink `%s`: wrote %" PRId64 " row(s) -> %s (postgres)",
                       node->dataset->name, t.rows, t.name);
    return KN_OK;
}
