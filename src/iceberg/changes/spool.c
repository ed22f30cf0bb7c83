/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spool.c - a window's changes kept once, cut into buckets that come out the same every time.
 *
 * One statement computes the changes (changes.c), folds them by key, gives each its bucket (a hash
 * of ours over the key or the row, row_sql.h) and keeps them in a temporary table sorted by bucket,
 * op and ord. Nothing of it passes through this code, and the engine spills all of it. ord is the
 * place of a row in the window's files, so contents and order of a bucket depend on the window
 * alone, not on threads or memory. Rows of equal ord are copies of one row.
 */
#include <inttypes.h>

#include "base/random.h"
#include "base/vec.h"
#include "iceberg/changes/spool_internal.h"
#include "iceberg/scan/row_sql.h"

struct KnSpool {
    KnSession *ses;
    KnSchema schema;
    char table[32];
    uint32_t n_buckets;
    int64_t *counts; /* [op * n_buckets + bucket] */
    KnBuf sql;
};

/* An insert stays when it is the last of its key, a delete when its key has no insert. */
static KnCode put_folded(KnBuf *buf, const KnSpoolOptions *opts, const char *changes, KnErr *err)
{
    KN_BUF_AUTO key;
    kn_buf_init(&key, buf->max);
    KN_TRY(kn_changes_put_key(&key, opts->schema, opts->keys, opts->n_keys, err));
    kn_buf_printf(buf, "SELECT * FROM (%s) AS n QUALIFY CASE WHEN op = 0 THEN ", changes);
    kn_buf_printf(buf, "max(op) OVER (PARTITION BY %s) = 0 ", key.data);
    kn_buf_printf(buf,
                  "ELSE row_number() OVER (PARTITION BY %s ORDER BY op DESC, ord DESC) = 1 END",
                  key.data);
    return KN_OK;
}

static KnCode put_bucket(KnBuf *buf, const KnSpoolOptions *opts, KnErr *err)
{
    const KnType *root = &opts->schema->root;
    size_t n = opts->n_keys > 0 ? opts->n_keys : root->n_fields;
    KnRowColumn *columns = calloc(n + 1, sizeof(*columns));
    char(*names)[24] = calloc(n + 1, sizeof(*names));
    if (!columns || !names)
        abort();
    KnCode rc = KN_OK;
    for (size_t i = 0; rc == KN_OK && i < n; i++) {
        size_t at = i;
        if (opts->n_keys > 0)
            rc = kn_changes_find_key(opts->schema, opts->keys[i], &at, err);
        if (rc == KN_OK && snprintf(names[i], sizeof(names[i]), "c%zu", at) > 0)
            columns[i] = (KnRowColumn){root->fields[at].type, names[i]};
    }
    if (rc == KN_OK)
        kn_row_bucket_sql(buf, columns, n, opts->n_buckets);
    free(names);
    free(columns);
    return rc;
}

static KnCode keep_changes(KnSpool *spool, const KnSpoolOptions *opts, const char *changes,
                           KnErr *err)
{
    KN_BUF_AUTO sql;
    kn_buf_init(&sql, (size_t)512 << 20);
    kn_buf_printf(&sql, "CREATE TEMP TABLE %s AS SELECT CAST(op AS TINYINT) AS op, CAST(",
                  spool->table);
    KN_TRY(put_bucket(&sql, opts, err));
    kn_buf_text(&sql, " AS BIGINT) AS b, ord");
    for (size_t i = 0; i < opts->schema->root.n_fields; i++)
        kn_buf_printf(&sql, ", c%zu", i);
    kn_buf_text(&sql, " FROM (");
    if (opts->n_keys > 0)
        KN_TRY(put_folded(&sql, opts, changes, err));
    else
        kn_buf_text(&sql, changes);
    kn_buf_text(&sql, ") AS f ORDER BY b, op, ord");
    KN_TRY(kn_buf_check(&sql, err));
    return kn_session_exec(spool->ses, sql.data, NULL, err);
}

static KnCode take_counts(void *arg, KnBatch *batch, KnErr *err)
{
    (void)err;
    const KnSpool *spool = arg;
    KnVector op = kn_batch_vector(batch, 0);
    KnVector bucket = kn_batch_vector(batch, 1);
    KnVector count = kn_batch_vector(batch, 2);
    for (size_t row = 0; row < kn_batch_rows(batch); row++) {
        size_t at = (size_t)((const int64_t *)op.data)[row] * spool->n_buckets +
                    (size_t)((const int64_t *)bucket.data)[row];
        spool->counts[at] = ((const int64_t *)count.data)[row];
    }
    return KN_OK;
}

static KnCode count_rows(KnSpool *spool, KnErr *err)
{
    spool->counts = calloc(2 * (size_t)spool->n_buckets, sizeof(*spool->counts));
    if (!spool->counts)
        return kn_err_set(err, KN_E_NOMEM, "no memory for %u buckets", spool->n_buckets);
    KN_BUF_AUTO sql;
    kn_buf_init(&sql, 4096);
    kn_buf_printf(&sql, "SELECT CAST(op AS BIGINT), b, count(*) FROM %s GROUP BY ALL",
                  spool->table);
    return kn_session_visit(spool->ses, sql.data, take_counts, spool, err);
}

static KnCode fill(KnSpool *spool, const KnWindow *win, const KnSpoolOptions *opts, KnErr *err)
{
    KnChanges *changes = NULL;
    KnChangesOptions how = {
        .schema = opts->schema, .raw = opts->raw, .max_buckets = opts->max_buckets};
    KN_TRY(kn_changes_open(win, spool->ses, &how, &changes, err));
    KnCode rc = keep_changes(spool, opts, kn_changes_sql(changes), err);
    kn_changes_close(changes);
    if (rc != KN_OK)
        return kn_err_wrap(err, rc, "snapshot %" PRId64, win->to->snapshot_id);
    return count_rows(spool, err);
}

KnCode kn_spool_open(const KnWindow *win, KnSession *ses, const KnSpoolOptions *opts, KnSpool **ret,
                     KnErr *err)
{
    if (opts->n_buckets == 0)
        return kn_err_set(err, KN_E_INVAL, "a spool has at least one bucket");
    KnSpool *spool = calloc(1, sizeof(*spool));
    if (!spool)
        abort();
    *spool = (KnSpool){.ses = ses, .schema = *opts->schema, .n_buckets = opts->n_buckets};
    kn_buf_init(&spool->sql, (size_t)16 << 20);
    if (snprintf(spool->table, sizeof(spool->table), "kn_spool_%" PRIx64,
                 (uint64_t)kn_random_id()) < 0)
        abort();
    KnCode rc = fill(spool, win, opts, err);
    if (rc != KN_OK) {
        kn_spool_close(spool);
        return rc;
    }
    *ret = spool;
    return KN_OK;
}

int64_t kn_spool_rows(const KnSpool *spool, KnChangeOp op, uint32_t bucket)
{
    return bucket < spool->n_buckets ? spool->counts[(size_t)op * spool->n_buckets + bucket] : 0;
}

const char *kn_spool_sql(KnSpool *spool, KnChangeOp op, uint32_t bucket)
{
    kn_buf_reset(&spool->sql);
    kn_buf_text(&spool->sql, "SELECT ");
    kn_changes_put_named(&spool->sql, &spool->schema);
    kn_buf_printf(&spool->sql, " FROM %s WHERE b = %u AND op = %d ORDER BY ord", spool->table,
                  (unsigned)bucket, (int)op);
    return spool->sql.data;
}

KnSpool *kn_spool_close(KnSpool *spool)
{
    if (!spool)
        return NULL;
    KN_BUF_AUTO sql;
    kn_buf_init(&sql, 256);
    kn_buf_printf(&sql, "DROP TABLE IF EXISTS %s", spool->table);
    if (kn_session_exec(spool->ses, sql.data, NULL, NULL) != KN_OK)
        (void)0; /* the table goes with the session */
    kn_buf_done(&spool->sql);
    free(spool->counts);
    free(spool);
    return NULL;
}
