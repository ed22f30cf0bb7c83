/* SPDX-License-Identifier: Apache-2.0 */
/*
 * change_rows.c - a window's changes with their kind spelled out, as `knut table changes` shows
 * them.
 *
 * A window that only adds files streams straight from the readers. Any other is kept in a temporary
 * table first, since its order is by place and images pair rows: the n-th delete of a key with the
 * n-th insert of that key, in order of place; what is left over stays a delete or an insert.
 */
#include <inttypes.h>

#include "base/random.h"
#include "iceberg/changes/spool_internal.h"

struct KnChangeRows {
    KnSession *ses;
    KnRead *read;   /* of a direct window */
    char table[32]; /* of any other; "" = none */
    KnBuf sql;
};

static void put_tail(KnBuf *buf, const KnWindow *win, const KnChangeRowsOptions *opts,
                     const char *type)
{
    kn_buf_printf(buf,
                  "%s%s AS _change_type, CAST(%" PRId64 " AS BIGINT) AS _commit_snapshot_id, "
                  "CAST(%" PRId64 " AS BIGINT) AS _change_ordinal",
                  opts->schema->root.n_fields > 0 ? ", " : "", type, win->to->snapshot_id,
                  opts->ordinal);
}

static KnCode open_direct(KnChangeRows *rows, const KnWindow *win, const KnChangeRowsOptions *opts,
                          KnErr *err)
{
    KnReadOptions read = {.schema = opts->schema};
    KnScanTasks added = {win->added, win->n_added};
    KN_TRY(kn_read_open(win->tbl, rows->ses, added, &read, &rows->read, err));
    kn_buf_text(&rows->sql, "SELECT ");
    kn_changes_put_named(&rows->sql, opts->schema);
    put_tail(&rows->sql, win, opts, "'insert'");
    kn_buf_printf(&rows->sql, " FROM (%s\n) AS r(", kn_read_sql(rows->read));
    kn_changes_put_columns(&rows->sql, opts->schema);
    kn_buf_text(&rows->sql, ")");
    return KN_OK;
}

static KnCode keep(KnChangeRows *rows, const KnWindow *win, const KnChangeRowsOptions *opts,
                   KnErr *err)
{
    KnChanges *changes = NULL;
    KnChangesOptions how = {
        .schema = opts->schema, .raw = opts->raw, .max_buckets = opts->max_buckets};
    KN_TRY(kn_changes_open(win, rows->ses, &how, &changes, err));
    KN_BUF_AUTO sql;
    kn_buf_init(&sql, (size_t)512 << 20);
    if (snprintf(rows->table, sizeof(rows->table), "kn_changes_%" PRIx64,
                 (uint64_t)kn_random_id()) < 0)
        abort();
    kn_buf_printf(&sql, "CREATE TEMP TABLE %s AS %s", rows->table, kn_changes_sql(changes));
    KnCode rc = kn_buf_check(&sql, err);
    if (rc == KN_OK)
        rc = kn_session_exec(rows->ses, sql.data, NULL, err);
    kn_changes_close(changes);
    return rc;
}

/* SELECT *, kind (0 delete, 1 pair, 2 insert), place: images paired by key. */
static KnCode put_paired(KnBuf *buf, const KnChangeRowsOptions *opts, const char *table, KnErr *err)
{
    KN_BUF_AUTO key;
    kn_buf_init(&key, buf->max);
    KN_TRY(kn_changes_put_key(&key, opts->schema, opts->keys, opts->n_keys, err));
    kn_buf_text(buf, "SELECT *, CASE WHEN n = 2 THEN 1 WHEN op = 0 THEN 0 ELSE 2 END AS kind, "
                     "CASE WHEN n = 2 THEN after ELSE ord END AS place FROM (SELECT *, "
                     "count(*) OVER pair AS n, max(ord) FILTER (op = 1) OVER pair AS after "
                     "FROM (SELECT *, row_number() OVER (PARTITION BY ");
    kn_buf_printf(buf,
                  "%s, op ORDER BY ord) AS rank FROM %s) AS k WINDOW pair AS (PARTITION BY %s, "
                  "rank)) AS q",
                  key.data, table, key.data);
    return KN_OK;
}

static KnCode put_select(KnChangeRows *rows, const KnWindow *win, const KnChangeRowsOptions *opts,
                         KnErr *err)
{
    KnBuf *buf = &rows->sql;
    kn_buf_text(buf, "SELECT ");
    kn_changes_put_named(buf, opts->schema);
    if (!opts->images) {
        put_tail(buf, win, opts, "CASE WHEN op = 0 THEN 'delete' ELSE 'insert' END");
        kn_buf_printf(buf, " FROM %s ORDER BY op, ord", rows->table);
        return KN_OK;
    }
    put_tail(buf, win, opts,
             "CASE WHEN kind = 0 THEN 'delete' WHEN kind = 2 THEN 'insert' WHEN op = 0 THEN "
             "'update_before' ELSE 'update_after' END");
    kn_buf_text(buf, " FROM (");
    KN_TRY(put_paired(buf, opts, rows->table, err));
    kn_buf_text(buf, ") AS p ORDER BY kind, place, rank, op");
    return KN_OK;
}

static KnCode fill(KnChangeRows *rows, const KnWindow *win, const KnChangeRowsOptions *opts,
                   KnErr *err)
{
    if (opts->images && opts->n_keys == 0)
        return kn_err_set(err, KN_E_INVAL,
                          "table %s: images of updates need key columns, and the table has no "
                          "identifier fields",
                          win->tbl->name);
    if (win->kind == KN_WINDOW_DIRECT)
        return open_direct(rows, win, opts, err);
    KN_TRY(keep(rows, win, opts, err));
    return put_select(rows, win, opts, err);
}

KnCode kn_window_change_rows(const KnWindow *win, KnSession *ses, const KnChangeRowsOptions *opts,
                             KnChangeRows **ret, KnErr *err)
{
    KnChangeRows *rows = calloc(1, sizeof(*rows));
    if (!rows)
        abort();
    rows->ses = ses;
    kn_buf_init(&rows->sql, (size_t)64 << 20);
    KnCode rc = fill(rows, win, opts, err);
    if (rc == KN_OK)
        rc = kn_buf_check(&rows->sql, err);
    if (rc != KN_OK) {
        kn_change_rows_close(rows);
        return rc;
    }
    *ret = rows;
    return KN_OK;
}

const char *kn_change_rows_sql(const KnChangeRows *rows)
{
    return rows->sql.data;
}

KnChangeRows *kn_change_rows_close(KnChangeRows *rows)
{
    if (!rows)
        return NULL;
    rows->read = kn_read_close(rows->read);
    KN_BUF_AUTO sql;
    kn_buf_init(&sql, 256);
    kn_buf_printf(&sql, "DROP TABLE IF EXISTS %s", rows->table);
    if (rows->table[0] && kn_session_exec(rows->ses, sql.data, NULL, NULL) != KN_OK)
        rows->table[0] = '\0'; /* it goes with the session */
    kn_buf_done(&rows->sql);
    free(rows);
    return NULL;
}
