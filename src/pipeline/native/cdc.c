/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cdc.c - changes applied to a target: slowly changing dimensions of type 1 and 2.
 *
 * Each row of the flow is an event of a key at a place in a sequence: an upsert, or a delete. The
 * target's rows are events too, and so are the deletes of earlier runs, which a file beside the
 * target remembers; what comes out does not depend on the order in which events came, nor on how
 * often one came. At one place of one key a delete counts before an upsert, a new event before an
 * old one, and of two new ones the one with the greater values.
 *
 *     type 1: the last event of a key; the row is there unless that is a delete
 *     type 2: every upsert, from its place (__start_at) to that of the next event (__end_at)
 *
 * The file of deletes is put in its place before the target, or with it: a run that is killed
 * between the two has remembered a delete that the next run will be told again, and that changes
 * nothing. Of an Iceberg table it is in the pipeline's storage.
 *
 * A truncate (type 1) is a delete of every key at its place; the last one is remembered among the
 * deletes, without a key.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "pipeline/native/native.h"

#define TYPE_COLUMN "_change_type"

/* What an apply works with; texts in the run's arena. */
typedef struct Apply {
    KnNativeRun *run;
    KnNativeNode *node;
    const KnutFlow *flow;
    const KnutCdc *cdc;
    const char *changes;  /* SELECT */
    KnNativeShape shape;  /* of changes */
    KnNativeColumn *kept; /* of the target, without the bounds of type 2 */
    size_t n_kept;
    bool typed;          /* changes have TYPE_COLUMN */
    const char *old;     /* SELECT of the target's rows; NULL = it has none */
    const char *deletes; /* file; NULL = the target is written nowhere */
    const char *events;  /* table of the engine */
    const char
        *truncated; /* another, of one row: the last place (kn_place); NULL = none are known */
} Apply;

static bool listed(const KnutNames *names, const char *name)
{
    for (size_t i = 0; i < names->len; i++)
        if (kn_str_eq_nocase(kn_str(names->items[i]), kn_str(name)))
            return true;
    return false;
}

static bool has_column(const KnNativeShape *shape, const char *name)
{
    for (size_t i = 0; i < shape->len; i++)
        if (kn_str_eq_nocase(kn_str(shape->items[i].name), kn_str(name)))
            return true;
    return false;
}

static KnCode need_columns(const Apply *a, const char *what, const KnutNames *names, KnErr *err)
{
    for (size_t i = 0; i < names->len; i++)
        if (!has_column(&a->shape, names->items[i]))
            return kn_err_set(err, KN_E_INVAL, "flow %s: %s `%s` is not in its changes",
                              a->flow->name, what, names->items[i]);
    return KN_OK;
}

static KnCode keep_columns(Apply *a, KnErr *err)
{
    const KnutCdc *cdc = a->cdc;
    KN_TRY(need_columns(a, "key column", &cdc->keys, err));
    KN_TRY(need_columns(a, "column", &cdc->columns, err));
    KN_TRY(need_columns(a, "column", &cdc->except_columns, err));
    KN_TRY(need_columns(a, "sequence_by", &(KnutNames){&cdc->sequence_by, 1}, err));
    a->kept = kn_arena_zalloc(a->run->arena, (a->shape.len + 1) * sizeof(*a->kept));
    for (size_t i = 0; i < a->shape.len; i++) {
        const KnNativeColumn *column = &a->shape.items[i];
        bool needed = listed(&cdc->keys, column->name) ||
                      kn_str_eq_nocase(kn_str(cdc->sequence_by), kn_str(column->name));
        bool wanted = cdc->columns.len ? listed(&cdc->columns, column->name)
                                       : !listed(&cdc->except_columns, column->name);
        a->typed |= !strcmp(column->name, TYPE_COLUMN);
        if (needed || (wanted && strcmp(column->name, TYPE_COLUMN) != 0))
            a->kept[a->n_kept++] = *column;
    }
    return KN_OK;
}

/* A row without key or place would be lost among the others: it ends the run. */
static KnCode read_changes(Apply *a, KnErr *err)
{
    KN_BUF_AUTO cond = {.max = 1 << 20};
    kn_sql_ident(&cond, kn_str(a->cdc->sequence_by));
    kn_buf_text(&cond, " IS NOT NULL AND (");
    if (a->cdc->apply_as_truncates)
        kn_buf_printf(&cond, "coalesce((%s\n), false) OR (", a->cdc->apply_as_truncates);
    for (size_t i = 0; i < a->cdc->keys.len; i++) {
        kn_buf_text(&cond, i ? " AND " : "");
        kn_sql_ident(&cond, kn_str(a->cdc->keys.items[i]));
        kn_buf_text(&cond, " IS NOT NULL");
    }
    kn_buf_text(&cond, a->cdc->apply_as_truncates ? "))" : ")");
    KnutExpectation *there = kn_arena_zalloc(a->run->arena, sizeof(*there));
    *there = (KnutExpectation){"keys and sequence are not NULL",
                               kn_arena_strndup(a->run->arena, cond.data, cond.len),
                               KNUT_ON_VIOLATION_FAIL};
    const char *sql = kn_native_flow_sql(a->run, a->flow);
    KnutExpectations always = {there, 1};
    KN_TRY(kn_native_describe(a->run, sql, &a->shape, err));
    KN_TRY(keep_columns(a, err));
    KN_TRY(kn_native_checked(a->run, &(KnNativeWanted){a->flow->target, &always, NULL}, sql, &sql,
                             err));
    return kn_native_checked(a->run,
                             &(KnNativeWanted){a->flow->target, &a->flow->expectations, NULL}, sql,
                             &a->changes, err);
}

static void columns_sql(const Apply *a, KnBuf *sql)
{
    for (size_t i = 0; i < a->n_kept; i++) {
        kn_buf_text(sql, i ? ", " : "");
        kn_sql_ident(sql, kn_str(a->kept[i].name));
    }
}

static void keys_sql(const Apply *a, KnBuf *sql)
{
    for (size_t i = 0; i < a->cdc->keys.len; i++) {
        kn_buf_text(sql, i ? ", " : "");
        kn_sql_ident(sql, kn_str(a->cdc->keys.items[i]));
    }
}

/* ---- what the target has ---- */

static KnCode check_columns(const Apply *a, const KnNativeShape *table, KnErr *err)
{
    size_t bounds = a->cdc->scd_type == KNUT_SCD_TYPE2 ? 2 : 0;
    bool same = table->len == a->n_kept + bounds &&
                (!bounds || (has_column(table, "__start_at") && has_column(table, "__end_at")));
    for (size_t i = 0; same && i < a->n_kept; i++)
        same = has_column(table, a->kept[i].name);
    if (same)
        return KN_OK;
    return kn_err_set(
        err, KN_E_INVAL,
        "table %s must have the columns of the changes that are kept%s, and no others",
        a->node->path, bounds ? ", __start_at and __end_at" : "");
}

static KnCode find_table(Apply *a, KnErr *err)
{
    KnNativeShape shape = {0};
    const char *sql = NULL, *storage = NULL;
    KN_TRY(kn_native_target_sql(a->run, a->node, &sql, err));
    KN_TRY(kn_native_describe(a->run, sql, &shape, err));
    KN_TRY(check_columns(a, &shape, err));
    KN_TRY(kn_native_path(a->run->arena, a->run->pipeline->storage, &storage, err));
    a->deletes =
        kn_arena_printf(a->run->arena, "%s/%s.deletes.parquet", storage, a->node->dataset->name);
    a->old = a->node->fresh ? NULL : sql;
    return KN_OK;
}

static void find_file(Apply *a)
{
    KN_BUF_AUTO sql = {.max = 1 << 16};
    a->deletes = kn_native_beside(a->run->arena, a->node->path, ".deletes.parquet");
    if (a->node->fresh || access(a->node->path, F_OK) != 0)
        return;
    kn_buf_text(&sql, "SELECT * FROM ");
    kn_native_files_sql(&sql, KN_NATIVE_PARQUET, a->node->path, NULL);
    a->old = kn_arena_strndup(a->run->arena, sql.data, sql.len);
}

static KnCode find_target(Apply *a, KnErr *err)
{
    if (!a->node->path)
        return KN_OK;
    if (a->node->place == KN_NATIVE_CATALOG)
        return find_table(a, err);
    find_file(a);
    return KN_OK;
}

static bool has_deletes(const Apply *a)
{
    return a->deletes && !a->node->fresh && access(a->deletes, F_OK) == 0;
}

/* ---- events ---- */

/* Of a column that earlier deletes do not have. */
static void null_columns(const Apply *a, KnBuf *sql)
{
    for (size_t i = 0; i < a->n_kept; i++) {
        const char *name = a->kept[i].name;
        bool has = listed(&a->cdc->keys, name) ||
                   kn_str_eq_nocase(kn_str(name), kn_str(a->cdc->sequence_by));
        kn_buf_text(sql, i ? ", " : "");
        if (!has)
            kn_buf_printf(sql, "CAST(NULL AS %s) AS ", a->kept[i].type);
        kn_sql_ident(sql, kn_str(name));
    }
}

static void new_events(const Apply *a, KnBuf *sql)
{
    kn_buf_text(sql, "SELECT ");
    columns_sql(a, sql);
    kn_buf_text(sql, ", (");
    kn_buf_text(sql, a->typed ? "upper(" TYPE_COLUMN ") = 'DELETE'" : "false");
    if (a->cdc->apply_as_deletes)
        kn_buf_printf(sql, " OR coalesce((%s\n), false)", a->cdc->apply_as_deletes);
    kn_buf_printf(sql, ") IS TRUE AS kn_delete, 1 AS kn_new FROM (%s\n)", a->changes);
    kn_buf_text(sql, " WHERE true");
    if (a->typed)
        kn_buf_text(sql,
                    " AND (upper(" TYPE_COLUMN
                    ") NOT IN ('UPDATE_BEFORE', 'UPDATE_PREIMAGE') OR " TYPE_COLUMN " IS NULL)");
    if (a->cdc->apply_as_truncates)
        kn_buf_printf(sql, " AND (%s\n) IS NOT TRUE", a->cdc->apply_as_truncates);
}

static void deletes_sql(const Apply *a, KnBuf *sql)
{
    kn_native_files_sql(sql, KN_NATIVE_PARQUET, a->deletes, NULL);
    kn_buf_text(sql, " WHERE ");
    kn_sql_ident(sql, kn_str(a->cdc->keys.items[0]));
}

static void old_events(const Apply *a, KnBuf *sql)
{
    if (a->old) {
        kn_buf_text(sql, " UNION ALL SELECT ");
        columns_sql(a, sql);
        kn_buf_printf(sql, ", false, 0 FROM (%s)", a->old);
    }
    if (has_deletes(a)) {
        kn_buf_text(sql, " UNION ALL SELECT ");
        null_columns(a, sql);
        kn_buf_text(sql, ", true, 0 FROM ");
        deletes_sql(a, sql);
        kn_buf_text(sql, " IS NOT NULL");
    }
}

/* Rows that are looked at twice are kept: their checks count each once. */
static KnCode find_truncates(Apply *a, KnErr *err)
{
    size_t at = (size_t)(a->node - a->run->nodes);
    const char *kind = kn_native_is_dry(a->run) ? "VIEW" : "TABLE";
    KN_BUF_AUTO place = {.max = 1 << 16};
    KN_BUF_AUTO sql = {.max = 64 << 20};
    if (!a->cdc->apply_as_truncates)
        return KN_OK;
    const char *changes = kn_arena_printf(a->run->arena, "kn_changes_%zu", at);
    KN_TRY(kn_native_create(a->run, kind, changes, a->changes, err));
    a->changes = kn_arena_printf(a->run->arena, "SELECT * FROM %s", changes);
    kn_sql_ident(&place, kn_str(a->cdc->sequence_by));
    kn_buf_printf(
        &sql, "SELECT max(kn_place) AS kn_place FROM (SELECT %s AS kn_place FROM %s WHERE (%s\n)",
        place.data, changes, a->cdc->apply_as_truncates);
    if (has_deletes(a)) {
        kn_buf_printf(&sql, " UNION ALL SELECT %s FROM ", place.data);
        deletes_sql(a, &sql);
        kn_buf_text(&sql, " IS NULL");
    }
    kn_buf_char(&sql, ')');
    KN_TRY(kn_buf_check(&sql, err));
    a->truncated = kn_arena_printf(a->run->arena, "kn_truncated_%zu", at);
    return kn_native_create(a->run, kind, a->truncated, sql.data, err);
}

/* The events that count, into a table of the engine. */
static KnCode settle(Apply *a, KnErr *err)
{
    bool type2 = a->cdc->scd_type == KNUT_SCD_TYPE2;
    KN_BUF_AUTO sql = {.max = 64 << 20};
    kn_buf_text(&sql, "SELECT * EXCLUDE (kn_new) FROM (");
    new_events(a, &sql);
    old_events(a, &sql);
    kn_buf_char(&sql, ')');
    if (a->truncated) {
        kn_buf_text(&sql, " WHERE (");
        kn_sql_ident(&sql, kn_str(a->cdc->sequence_by));
        kn_buf_printf(&sql, " <= (SELECT kn_place FROM %s)) IS NOT TRUE", a->truncated);
    }
    kn_buf_text(&sql, " QUALIFY row_number() OVER (PARTITION BY ");
    keys_sql(a, &sql);
    kn_buf_text(&sql, type2 ? ", " : " ORDER BY ");
    kn_sql_ident(&sql, kn_str(a->cdc->sequence_by));
    kn_buf_text(&sql, type2 ? " ORDER BY kn_delete DESC, kn_new DESC"
                            : " DESC, kn_delete DESC, kn_new DESC");
    for (size_t i = 0; i < a->n_kept; i++) {
        kn_buf_text(&sql, ", ");
        kn_sql_ident(&sql, kn_str(a->kept[i].name));
        kn_buf_text(&sql, " DESC NULLS LAST");
    }
    kn_buf_text(&sql, ") = 1");
    KN_TRY(kn_buf_check(&sql, err));
    a->events = kn_arena_printf(a->run->arena, "kn_events_%zu", (size_t)(a->node - a->run->nodes));
    return kn_native_create(a->run, kn_native_is_dry(a->run) ? "VIEW" : "TABLE", a->events,
                            sql.data, err);
}

static const char *target_sql(const Apply *a)
{
    KN_BUF_AUTO sql = {.max = 64 << 20};
    kn_buf_text(&sql, "SELECT ");
    columns_sql(a, &sql);
    if (a->cdc->scd_type == KNUT_SCD_TYPE2) {
        kn_buf_text(&sql, ", ");
        kn_sql_ident(&sql, kn_str(a->cdc->sequence_by));
        kn_buf_text(&sql, " AS __start_at, lead(");
        kn_sql_ident(&sql, kn_str(a->cdc->sequence_by));
        kn_buf_text(&sql, ") OVER (PARTITION BY ");
        keys_sql(a, &sql);
        kn_buf_text(&sql, " ORDER BY ");
        kn_sql_ident(&sql, kn_str(a->cdc->sequence_by));
        kn_buf_printf(&sql, ") AS __end_at FROM %s QUALIFY NOT kn_delete", a->events);
    } else {
        kn_buf_printf(&sql, " FROM %s WHERE NOT kn_delete", a->events);
    }
    return kn_arena_strndup(a->run->arena, sql.data, sql.len);
}

static KnCode stage_deletes(const Apply *a, KnErr *err)
{
    KN_BUF_AUTO sql = {.max = 1 << 20};
    kn_buf_text(&sql, "SELECT ");
    keys_sql(a, &sql);
    if (!listed(&a->cdc->keys, a->cdc->sequence_by)) {
        kn_buf_text(&sql, ", ");
        kn_sql_ident(&sql, kn_str(a->cdc->sequence_by));
    }
    kn_buf_printf(&sql, " FROM %s WHERE kn_delete", a->events);
    if (a->truncated) {
        kn_buf_text(&sql, " UNION ALL SELECT ");
        for (size_t i = 0; i < a->cdc->keys.len; i++)
            kn_buf_text(&sql, "NULL, ");
        kn_buf_printf(&sql, "kn_place FROM %s WHERE kn_place IS NOT NULL", a->truncated);
    }
    KN_TRY(kn_buf_check(&sql, err));
    return kn_native_stage_file(a->run, a->deletes, sql.data, a->node->place == KN_NATIVE_CATALOG,
                                err);
}

KnCode kn_native_apply(KnNativeRun *run, KnNativeNode *node, const KnutFlow *flow, const char **ret,
                       KnErr *err)
{
    Apply a = {.run = run, .node = node, .flow = flow, .cdc = &flow->kind.cdc};
    KN_TRY(kn_err_wrap(err, read_changes(&a, err), "flow %s", flow->name));
    KN_TRY(kn_err_wrap(err, find_target(&a, err), "flow %s", flow->name));
    KN_TRY(kn_err_wrap(err, find_truncates(&a, err), "flow %s", flow->name));
    KN_TRY(kn_err_wrap(err, settle(&a, err), "flow %s", flow->name));
    *ret = target_sql(&a);
    return node->path && !kn_native_is_dry(run) ? stage_deletes(&a, err) : KN_OK;
}
