/* SPDX-License-Identifier: Apache-2.0 */
/*
 * write_upsert.c - rows merged into a table by key.
 *
 * The rows are bound to the schema and kept in a temporary table, their keys checked, and files
 * that cannot hold one of the keys left out of the plan. One join of the others with the rows gives
 * the hits: which row of the table has the key of which row given, and whether they differ. Of a
 * key with a hit that differs, or with several, all hits go and the row given comes in their place;
 * rows given without a hit are inserted. The engine joins and spills; what is kept is a few numbers
 * a hit, and the values that an update has to carry over for columns that the rows do not have.
 *
 * An updated row keeps its row id; the number of its last change is left NULL in the file, which
 * means that of the file (spec v3: "Row Lineage"). Files are changed as in write_rewrite.c.
 */
#include <inttypes.h>

#include "base/fault.h"
#include "base/random.h"
#include "iceberg/scan/row_sql.h"
#include "iceberg/write/upsert_keys.h"
#include "iceberg/write/write_change.h"

typedef struct Upsert {
    KnWriter *w;
    const KnUpsert *opts;
    bool lineage; /* v3 */
    bool *given;  /* by column of the schema: the rows have it */
    KnUpsertKeys keys;
    /* Temporary tables. rows: c0, ...; hits: s (rowid in rows), t, p, differs, [l,] m<i> for
     * columns not given; news: s, [l,] m<i>: keys whose row is written anew. */
    const char *rows, *hits, *news;
    int64_t n_rows, n_updated, n_inserted;
    KnChange change;
} Upsert;

static KnCode exec(const Upsert *up, const KnBuf *sql, KnErr *err)
{
    KN_TRY(kn_buf_check(sql, err));
    return kn_session_exec(up->w->ses, sql->data, NULL, err);
}

static KnCode count(const Upsert *up, int64_t *ret, KnErr *err, const char *sql)
{
    return kn_session_query_i64(up->w->ses, sql, ret, err);
}

/* ---- the rows ---- */

static KnCode keep_rows(Upsert *up, KnErr *err)
{
    KnWriter *w = up->w;
    KN_BUF_AUTO sql;
    kn_buf_init(&sql, (size_t)256 << 20);
    kn_buf_printf(&sql, "CREATE TEMP TABLE %s AS ", up->rows);
    up->given = kn_arena_zalloc(w->arena, w->schema->root.n_fields + 1);
    KN_BUF_AUTO select;
    kn_buf_init(&select, (size_t)256 << 20);
    KN_TRY(kn_write_given_columns_sql(w, up->opts->select_sql, up->given, &select, err));
    kn_buf_append(&sql, select.data, select.len);
    KN_TRY(kn_upsert_keys_choose(w, up->opts, up->given, &up->keys, err));
    KN_TRY(exec(up, &sql, err));
    KN_TRY(kn_upsert_keys_check(w, &up->keys, up->rows, err));
    return count(up, &up->n_rows, err,
                 kn_arena_printf(w->arena, "SELECT count(*) FROM %s", up->rows));
}

/* ---- hits ---- */

/* A condition: the column's values in the table (r) and in the rows (s) are not the same. */
static void put_differs(KnBuf *buf, const KnType *type, size_t i)
{
    if (type->kind == KN_TYPE_FLOAT || type->kind == KN_TYPE_DOUBLE) {
        kn_buf_printf(buf,
                      "(r.c%zu IS DISTINCT FROM s.c%zu OR coalesce(r.c%zu = 0 AND s.c%zu = 0 AND "
                      "signbit(r.c%zu) <> signbit(s.c%zu), false))",
                      i, i, i, i, i, i);
        return;
    }
    char name[24];
    int len = snprintf(name, sizeof(name), "r.c%zu", i);
    kn_row_identity_sql(buf, type, (KnStr){name, (size_t)len});
    kn_buf_text(buf, " IS DISTINCT FROM ");
    name[0] = 's';
    kn_row_identity_sql(buf, type, (KnStr){name, (size_t)len});
}

static void put_hit_columns(const Upsert *up, KnBuf *buf)
{
    const KnType *root = &up->w->schema->root;
    kn_buf_text(buf, "SELECT s.rowid AS s, r.t AS t, r.p AS p, (false");
    for (size_t i = 0; i < root->n_fields; i++) {
        if (!up->given[i] || kn_upsert_keys_has(&up->keys, i))
            continue;
        kn_buf_text(buf, " OR ");
        put_differs(buf, root->fields[i].type, i);
    }
    kn_buf_printf(buf, ") AS differs%s", up->lineage ? ", r.l AS l" : "");
    for (size_t i = 0; i < root->n_fields; i++) {
        if (!up->given[i])
            kn_buf_printf(buf, ", r.c%zu AS m%zu", i, i);
    }
}

static KnCode keep_hits(Upsert *up, KnErr *err)
{
    KnChange *change = &up->change;
    KN_BUF_AUTO sql;
    kn_buf_init(&sql, (size_t)256 << 20);
    kn_buf_printf(&sql, "CREATE TEMP TABLE %s AS ", up->hits);
    put_hit_columns(up, &sql);
    kn_change_put_source(&sql, change->read, up->w->schema,
                         up->lineage ? ", l, u, t, p" : ", t, p");
    kn_buf_printf(&sql, " JOIN %s AS s ON ", up->rows);
    kn_upsert_keys_put_match(&sql, &up->keys, "r", "s");
    return exec(up, &sql, err);
}

/* The keys whose row is written anew. Of several hits the first in the table is carried over. */
static KnCode keep_news(Upsert *up, KnErr *err)
{
    const KnType *root = &up->w->schema->root;
    KN_BUF_AUTO sql;
    kn_buf_init(&sql, (size_t)16 << 20);
    kn_buf_printf(&sql, "CREATE TEMP TABLE %s AS SELECT s%s", up->news,
                  up->lineage ? ", min(l) AS l" : "");
    for (size_t i = 0; i < root->n_fields; i++) {
        if (!up->given[i])
            kn_buf_printf(&sql, ", first(m%zu ORDER BY t, p) AS m%zu", i, i);
    }
    kn_buf_printf(&sql, " FROM %s GROUP BY s HAVING count(*) > 1 OR bool_or(differs)%s", up->hits,
                  up->opts->no_update ? " LIMIT 0" : "");
    return exec(up, &sql, err);
}

static KnCode find_hits(Upsert *up, KnErr *err)
{
    KnWriter *w = up->w;
    KnChange *change = &up->change;
    KN_TRY(kn_upsert_keys_filter(w, &up->keys, up->rows, &change->filter, err));
    KnPlanOptions plan = {
        .snapshot = kn_writer_head(w), .schema = w->schema, .filter = change->filter};
    KN_TRY(kn_plan_scan(w->tbl, &plan, &change->plan, err));
    for (size_t i = 0; i < change->plan->n_tasks; i++)
        *kn_vec_push(&change->tasks) = change->plan->tasks[i];
    KnReadOptions opts = {.schema = w->schema,
                          .with_position = true,
                          .with_lineage = up->lineage,
                          .keep_positions = change->merge_on_read};
    KnScanTasks tasks = {change->tasks.items, change->tasks.len};
    KN_TRY(kn_read_open(w->tbl, w->ses, tasks, &opts, &change->read, err));
    KN_TRY(keep_hits(up, err));
    KN_TRY(keep_news(up, err));
    KN_TRY(count(up, &up->n_updated, err,
                 kn_arena_printf(w->arena, "SELECT count(*) FROM %s", up->news)));
    if (up->opts->no_insert)
        return KN_OK;
    return count(up, &up->n_inserted, err,
                 kn_arena_printf(w->arena,
                                 "SELECT count(*) FROM %s AS s ANTI JOIN %s AS h ON "
                                 "s.rowid = h.s",
                                 up->rows, up->hits));
}

/* ---- rows that come ---- */

/* Rows that take the place of others, then rows that are new. */
static void put_new_rows(const Upsert *up, KnBuf *buf)
{
    size_t n = up->w->schema->root.n_fields;
    kn_buf_text(buf, "SELECT ");
    for (size_t i = 0; i < n; i++)
        kn_buf_printf(buf, "%s%c.%c%zu AS c%zu", i > 0 ? ", " : "", up->given[i] ? 's' : 'n',
                      up->given[i] ? 'c' : 'm', i, i);
    if (up->lineage)
        kn_buf_text(buf, ", n.l AS _row_id, NULL::BIGINT AS _last_updated_sequence_number");
    kn_buf_printf(buf, " FROM %s AS s JOIN %s AS n ON s.rowid = n.s", up->rows, up->news);
    if (up->opts->no_insert)
        return;
    kn_buf_text(buf, " UNION ALL SELECT ");
    for (size_t i = 0; i < n; i++)
        kn_buf_printf(buf, "%ss.c%zu", i > 0 ? ", " : "", i);
    kn_buf_text(buf, up->lineage ? ", NULL::BIGINT, NULL::BIGINT" : "");
    kn_buf_printf(buf, " FROM %s AS s ANTI JOIN %s AS h ON s.rowid = h.s", up->rows, up->hits);
}

static KnCode check_insertable(const Upsert *up, KnErr *err)
{
    const KnType *root = &up->w->schema->root;
    for (size_t i = 0; up->n_inserted > 0 && i < root->n_fields; i++) {
        const KnField *field = &root->fields[i];
        if (field->required && !field->write_default && !up->given[i])
            return kn_err_set(err, KN_E_INVAL,
                              "column %s is required and the rows do not have it: %" PRId64
                              " of them cannot be inserted",
                              field->name, up->n_inserted);
    }
    return KN_OK;
}

/* Copy-on-write: what stays of the files that lose rows, with the new rows, in new files. */
static KnCode write_with_rest(Upsert *up, KnErr *err)
{
    KnWriter *w = up->w;
    KnChange *change = &up->change;
    KN_BUF_AUTO except;
    KN_BUF_AUTO sql;
    kn_buf_init(&except, (size_t)64 << 20);
    kn_buf_init(&sql, (size_t)256 << 20);
    KN_TRY(kn_change_except_sql(change, &except, err));
    KnReadOptions opts = {
        .schema = w->schema, .with_lineage = up->lineage, .except_sql = except.data};
    KnScanTasks tasks = {change->partial.items, change->partial.len};
    KnRead *rest = NULL;
    KN_TRY(kn_read_open(w->tbl, w->ses, tasks, &opts, &rest, err));
    kn_buf_text(&sql, "SELECT *");
    kn_change_put_source(&sql, rest, w->schema,
                         up->lineage ? ", _row_id, _last_updated_sequence_number" : "");
    kn_buf_text(&sql, " UNION ALL ");
    put_new_rows(up, &sql);
    KnCode rc = kn_buf_check(&sql, err);
    if (rc == KN_OK)
        rc = kn_write_data(w, sql.data, up->lineage, err);
    kn_read_close(rest);
    for (size_t i = 0; i < change->partial.len; i++)
        *kn_vec_push(&change->removed) = change->partial.items[i].data;
    return rc;
}

static KnCode write_alone(Upsert *up, KnErr *err)
{
    KN_BUF_AUTO sql;
    kn_buf_init(&sql, (size_t)64 << 20);
    put_new_rows(up, &sql);
    KN_TRY(kn_buf_check(&sql, err));
    return kn_write_data(up->w, sql.data, up->lineage && up->n_updated > 0, err);
}

static KnCode write_changes(Upsert *up, KnErr *err)
{
    KnChange *change = &up->change;
    change->rows_sql =
        kn_arena_printf(up->w->arena, "SELECT h.t, h.p FROM %s AS h SEMI JOIN %s AS n ON h.s = n.s",
                        up->hits, up->news);
    KN_TRY(kn_change_sort_out(change, err));
    if (change->merge_on_read)
        KN_TRY(kn_change_write_deletes(change, err));
    else if (change->partial.len > 0)
        return write_with_rest(up, err);
    return write_alone(up, err);
}

/* ---- all ---- */

static KnCode merge(Upsert *up, KnWriteResult *ret, KnErr *err)
{
    KnChange *change = &up->change;
    KN_TRY(kn_change_mode(up->w, "write.merge.mode", &change->merge_on_read, err));
    KN_TRY(keep_rows(up, err));
    if (up->n_rows == 0)
        return KN_OK;
    KN_TRY(find_hits(up, err));
    KN_TRY(check_insertable(up, err));
    if (up->n_updated == 0 && up->n_inserted == 0)
        return KN_OK;
    KN_TRY(write_changes(up, err));
    kn_write_count(up->w, up->w->added.len, ret);
    ret->added_rows = up->n_updated + up->n_inserted;
    ret->updated_rows = up->n_updated;
    ret->inserted_rows = up->n_inserted;
    ret->removed_files = (int64_t)change->removed.len;
    ret->removed_rows = change->removed_rows;
    return kn_change_commit(change, up->n_updated > 0 ? "overwrite" : "append", &ret->snapshot_id,
                            err);
}

static KnCode run(Upsert *up, KnWriteResult *ret, KnErr *err)
{
    KnWriter *w = up->w;
    uint64_t id = (uint64_t)kn_random_id();
    up->rows = kn_arena_printf(w->arena, "kn_upsert_rows_%" PRIx64, id);
    up->hits = kn_arena_printf(w->arena, "kn_upsert_hits_%" PRIx64, id);
    up->news = kn_arena_printf(w->arena, "kn_upsert_news_%" PRIx64, id);
    KnCode rc = merge(up, ret, err);
    const char *drop = kn_arena_printf(
        w->arena, "DROP TABLE IF EXISTS %s; DROP TABLE IF EXISTS %s; DROP TABLE IF EXISTS %s",
        up->rows, up->hits, up->news);
    /* Tables that stay go with the session; a commit that was made stands. */
    KN_IGNORE(kn_session_exec(w->ses, drop, NULL, NULL));
    return rc;
}

KnCode kn_write_upsert(KnTable *tbl, KnSession *ses, const KnUpsert *upsert,
                       const KnWriteOptions *opts, KnWriteResult *ret, KnErr *err)
{
    if (upsert->no_update && upsert->no_insert)
        return kn_err_set(err, KN_E_INVAL,
                          "an upsert that neither updates nor inserts does nothing");
    KnWriter w;
    KN_TRY(kn_writer_init(&w, tbl, ses, opts, err));
    int32_t version = tbl->md->format_version;
    Upsert up = {.w = &w, .opts = upsert, .lineage = version >= 3};
    up.change = (KnChange){
        .w = &w, .format_version = version, .what = "rows that may have one of the keys"};
    KnWriteResult res = {.snapshot_id = -1};
    KnCode rc = run(&up, &res, err);
    kn_change_done(&up.change);
    kn_writer_done(&w, rc == KN_OK || rc == KN_E_UNKNOWN);
    if (rc != KN_OK)
        return kn_err_wrap(err, rc, "upsert into table %s", tbl->name);
    *ret = res;
    return res.snapshot_id < 0 ? KN_OK : kn_fault_at("write-after-commit", err);
}
