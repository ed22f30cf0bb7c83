/* SPDX-License-Identifier: Apache-2.0 */
/*
 * merge.c - the rows of a chunk into the target, inside a transaction.
 *
 *   insert, no keys   COPY into the target
 *   insert, keys      COPY into a temporary table, INSERT ... ON CONFLICT (keys) DO UPDATE; the
 *                     last row of each key comes in (last by the rows' places in the source)
 *   delete, keys      COPY into a temporary table, DELETE ... USING
 *   delete, no keys   the same, and exactly as many equal rows go as are in the chunk; KN_E_CORRUPT
 *                     when the target has fewer: it is not what was delivered
 *
 * Equality is PostgreSQL's of the column's type: NaN equals NaN, 0.0 equals -0.0. NULLs of keys are
 * equal (NULLS NOT DISTINCT). Whole rows are compared as records, whose equality takes NULL for
 * equal and which can be hashed.
 *
 * Rows are encoded and sent in pieces of at most KN_PG_PIECE bytes (or one row); nothing is
 * collected.
 */
#include <inttypes.h>
#include <string.h>

#include "base/clock.h"
#include "base/fault.h"
#include "cdc/sinks/postgres/postgres_internal.h"

#define STAGE "pg_temp._knut_stage"

/* ---- copying ---- */

static KnCode send_batch(KnPgLoad *load, KnPgEncoder *enc, const KnBatch *batch, KnBuf *buf,
                         KnErr *err)
{
    int64_t began = kn_clock_mono_us(), sending = 0;
    KnCode rc = kn_pg_encode_batch(enc, batch, err);
    for (size_t i = 0; rc == KN_OK && i < kn_batch_rows(batch); ++i) {
        rc = kn_pg_encode_row(enc, i, buf, err);
        if (rc != KN_OK || buf->len < KN_PG_PIECE)
            continue;
        int64_t from = kn_clock_mono_us();
        KN_TRY(kn_pg_copy_send(&load->pg->link, buf, err));
        sending += kn_clock_mono_us() - from;
    }
    kn_row_source_encoded(load->rows, kn_clock_mono_us() - began - sending);
    load->source_failed = rc != KN_OK;
    return rc;
}

static KnCode send_rows(KnPgLoad *load, KnErr *err)
{
    const KnType *root = &load->pg->schema->root;
    KnPgEncoder enc = {.fields = root->fields,
                       .n_fields = root->n_fields,
                       .positions = load->rows->positions,
                       .nanos = load->pg->link.place.nanos};
    enc.vecs = kn_arena_zalloc(load->arena, (root->n_fields + 2) * sizeof(*enc.vecs));
    KN_BUF_AUTO buf;
    kn_buf_init(&buf, (size_t)1 << 30);
    kn_pg_encode_header(&buf);
    for (;;) {
        KN_BATCH_AUTO batch = NULL;
        KnCode rc = load->rows->next(load->rows->arg, &batch, err);
        load->source_failed = rc != KN_OK;
        KN_TRY(rc);
        if (!batch)
            break;
        KN_TRY(send_batch(load, &enc, batch, &buf, err));
        load->taken += (int64_t)kn_batch_rows(batch);
    }
    kn_pg_encode_trailer(&buf);
    return kn_pg_copy_send(&load->pg->link, &buf, err);
}

/* "a, b, c", with prefix "x." where given. */
static const char *column_list(KnPgLoad *load, const char *prefix)
{
    const KnType *root = &load->pg->schema->root;
    KN_BUF_AUTO buf;
    kn_buf_init(&buf, (size_t)4 << 20);
    for (size_t i = 0; i < root->n_fields; ++i) {
        kn_buf_printf(&buf, "%s%s", i ? ", " : "", prefix);
        kn_sql_ident(&buf, kn_str(root->fields[i].name));
    }
    return kn_arena_strndup(load->arena, buf.data, buf.len);
}

static KnCode copy_into(KnPgLoad *load, const char *table, bool stage, KnErr *err)
{
    bool positions = stage && load->rows->positions;
    KN_PG_AUTO res = NULL;
    KN_TRY(kn_pg_run(&load->pg->link, &res, err, "COPY %s(%s%s) FROM STDIN (FORMAT binary)", table,
                     column_list(load, ""), positions ? ", _knut_task, _knut_pos" : ""));
    KnCode sent = send_rows(load, err);
    KN_TRY(kn_pg_copy_end(&load->pg->link, sent, load->source_failed, err));
    if (load->taken != load->chunk->rows)
        return kn_err_set(err, KN_E_CORRUPT,
                          "chunk %" PRId64 ": %" PRId64 " rows came, %" PRId64 " were planned",
                          load->chunk->number, load->taken, load->chunk->rows);
    return KN_OK;
}

/* A temporary table is not logged and goes with the transaction. */
static KnCode fill_stage(KnPgLoad *load, KnErr *err)
{
    const KnType *root = &load->pg->schema->root;
    KN_BUF_AUTO sql;
    kn_buf_init(&sql, (size_t)4 << 20);
    kn_buf_text(&sql, "CREATE TEMPORARY TABLE _knut_stage(");
    for (size_t i = 0; i < root->n_fields; ++i) {
        const char *type;
        KN_TRY(kn_pg_type(load->arena, &root->fields[i], load->pg->link.place.nanos, &type, err));
        kn_buf_text(&sql, i ? ", " : "");
        kn_sql_ident(&sql, kn_str(root->fields[i].name));
        kn_buf_printf(&sql, " %s", type);
    }
    kn_buf_printf(&sql, "%s) ON COMMIT DROP",
                  load->rows->positions ? ", _knut_task bigint, _knut_pos bigint" : "");
    KN_TRY(kn_buf_check(&sql, err));
    KN_TRY(kn_pg_exec(&load->pg->link, sql.data, NULL, err));
    return copy_into(load, STAGE, true, err);
}

/* ---- keys ---- */

static bool is_key(const KnPg *pg, const char *name)
{
    for (size_t i = 0; i < pg->n_keys; ++i)
        if (strcmp(pg->keys[i], name) == 0)
            return true;
    return false;
}

static const char *key_list(KnPgLoad *load)
{
    KN_BUF_AUTO buf;
    kn_buf_init(&buf, (size_t)1 << 20);
    for (size_t i = 0; i < load->pg->n_keys; ++i) {
        kn_buf_text(&buf, i ? ", " : "");
        kn_sql_ident(&buf, kn_str(load->pg->keys[i]));
    }
    return kn_arena_strndup(load->arena, buf.data, buf.len);
}

/* What a conflict does: every column that is no key takes the new value. */
static const char *conflict_action(KnPgLoad *load)
{
    const KnType *root = &load->pg->schema->root;
    KN_BUF_AUTO buf;
    kn_buf_init(&buf, (size_t)4 << 20);
    for (size_t i = 0; i < root->n_fields; ++i) {
        if (is_key(load->pg, root->fields[i].name))
            continue;
        const char *name = kn_sql_ident_of(load->arena, root->fields[i].name);
        kn_buf_printf(&buf, "%s%s = EXCLUDED.%s", buf.len ? ", " : "DO UPDATE SET ", name, name);
    }
    return buf.len ? kn_arena_strndup(load->arena, buf.data, buf.len) : "DO NOTHING";
}

/* The rows as they are; a key that comes twice makes the server refuse, and then the last of each
 * key is picked: sorting costs, and keys hardly ever come twice. */
static KnCode insert_keyed(KnPgLoad *load, KnErr *err)
{
    KnPg *pg = load->pg;
    KN_PG_AUTO res = NULL;
    KN_TRY(fill_stage(load, err));
    const char *cols = column_list(load, ""), *keys = key_list(load);
    const char *insert =
        kn_arena_printf(load->arena, "ON CONFLICT (%s) %s", keys, conflict_action(load));
    KN_TRY(kn_pg_run(&pg->link, NULL, err, "SAVEPOINT knut_insert"));
    KnErr why = {0};
    const char *sql = kn_arena_printf(load->arena, "INSERT INTO %s(%s) SELECT %s FROM " STAGE " %s",
                                      pg->target, cols, cols, insert);
    res = PQexec(pg->link.conn, sql);
    if (PQresultStatus(res) == PGRES_COMMAND_OK)
        return kn_pg_run(&pg->link, NULL, err, "RELEASE SAVEPOINT knut_insert");
    KnCode rc = kn_pg_error(&pg->link, res, &why);
    if (!kn_pg_sqlstate_is(res, "21000")) {
        if (err)
            *err = why;
        return rc;
    }
    if (!load->rows->positions)
        return kn_err_set(err, KN_E_CORRUPT,
                          "chunk %" PRId64 ": a key comes twice in computed rows",
                          load->chunk->number);
    KN_TRY(kn_pg_run(&pg->link, NULL, err, "ROLLBACK TO SAVEPOINT knut_insert"));
    return kn_pg_run(&pg->link, NULL, err,
                     "INSERT INTO %s(%s) SELECT DISTINCT ON (%s) %s FROM " STAGE
                     " ORDER BY %s, _knut_task DESC, _knut_pos DESC %s",
                     pg->target, cols, keys, cols, keys, insert);
}

/* "t.a = s.a AND t.b = s.b". */
static const char *key_match(KnPgLoad *load, const char *op)
{
    KN_BUF_AUTO buf;
    kn_buf_init(&buf, (size_t)1 << 20);
    for (size_t i = 0; i < load->pg->n_keys; ++i) {
        const char *name = kn_sql_ident_of(load->arena, load->pg->keys[i]);
        kn_buf_printf(&buf, "%st.%s %s s.%s", i ? " AND " : "", name, op, name);
    }
    return kn_arena_strndup(load->arena, buf.data, buf.len);
}

static const char *key_has_null(KnPgLoad *load)
{
    KN_BUF_AUTO buf;
    kn_buf_init(&buf, (size_t)1 << 20);
    for (size_t i = 0; i < load->pg->n_keys; ++i)
        kn_buf_printf(&buf, "%s%s IS NULL", i ? " OR " : "",
                      kn_sql_ident_of(load->arena, load->pg->keys[i]));
    return kn_arena_strndup(load->arena, buf.data, buf.len);
}

/* "=" can use the index, and finds no NULLs; the few keys with a NULL go by comparison. */
static KnCode delete_keyed(KnPgLoad *load, KnErr *err)
{
    KnPg *pg = load->pg;
    int64_t nulls;
    KN_TRY(fill_stage(load, err));
    KN_TRY(kn_pg_run(&pg->link, NULL, err, "ANALYZE " STAGE));
    KN_TRY(kn_pg_run(&pg->link, NULL, err, "DELETE FROM %s t USING " STAGE " s WHERE %s",
                     pg->target, key_match(load, "=")));
    const char *has_null = key_has_null(load), *keys = key_list(load);
    KN_TRY(kn_pg_ask(&pg->link, &nulls, err,
                     "SELECT count(*) FROM (SELECT 1 FROM " STAGE " WHERE %s LIMIT 1) r",
                     has_null));
    if (nulls == 0)
        return KN_OK;
    return kn_pg_run(&pg->link, NULL, err,
                     "DELETE FROM %s t USING (SELECT DISTINCT %s FROM " STAGE
                     " WHERE %s) s WHERE %s",
                     pg->target, keys, has_null, key_match(load, "IS NOT DISTINCT FROM"));
}

/* ---- whole rows ---- */

/* The target's columns in the types of ours: records are comparable only then. */
static KnCode cast_list(KnPgLoad *load, const char **ret, KnErr *err)
{
    const KnType *root = &load->pg->schema->root;
    KN_BUF_AUTO buf;
    kn_buf_init(&buf, (size_t)4 << 20);
    for (size_t i = 0; i < root->n_fields; ++i) {
        const char *type, *name = kn_sql_ident_of(load->arena, root->fields[i].name);
        KN_TRY(kn_pg_type(load->arena, &root->fields[i], load->pg->link.place.nanos, &type, err));
        kn_buf_printf(&buf, "%s%s::%s AS %s", i ? ", " : "", name, type, name);
    }
    KN_TRY(kn_buf_check(&buf, err));
    *ret = kn_arena_strndup(load->arena, buf.data, buf.len);
    return KN_OK;
}

/* As many equal rows go as came; which of several equal rows goes makes no difference. */
static KnCode delete_rows(KnPgLoad *load, KnErr *err)
{
    KnPg *pg = load->pg;
    KN_PG_AUTO res = NULL;
    const char *cols = column_list(load, ""), *casts;
    int64_t gone = 0;
    KN_TRY(cast_list(load, &casts, err));
    KN_TRY(fill_stage(load, err));
    KN_TRY(kn_pg_run(&pg->link, NULL, err, "ANALYZE " STAGE));
    /* The planner does not hash anonymous records by itself. */
    bool hashes = PQserverVersion(pg->link.conn) >= 140000;
    KN_TRY(kn_pg_run(
        &pg->link, &res, err,
        "DELETE FROM %s t USING (SELECT rid, tid FROM (SELECT x.rid, x.tid, y.n, row_number() OVER "
        "(PARTITION BY y.id) AS nth FROM (SELECT o.ctid AS rid, o.tableoid AS tid, _knut_r FROM %s "
        "o, LATERAL (SELECT %s) _knut_r) x JOIN (SELECT row_number() OVER () AS id, k._knut_r, k.n "
        "FROM (SELECT _knut_r, count(*) AS n FROM (SELECT %s FROM " STAGE
        ") _knut_r GROUP BY _knut_r) k) y ON %sx._knut_r = y._knut_r) z WHERE nth <= n) d WHERE "
        "t.ctid = d.rid AND t.tableoid = d.tid",
        pg->target, pg->target, casts, cols,
        hashes ? "hash_record_extended(x._knut_r, 0) = hash_record_extended(y._knut_r, 0) AND "
               : ""));
    if (!kn_str_to_i64(kn_str(PQcmdTuples(res)), &gone) || gone != load->taken)
        return kn_err_set(err, KN_E_CORRUPT,
                          "target %s in %s: of %" PRId64 " rows to delete only %" PRId64
                          " are there: it is not what was delivered; " KN_PG_RELOAD,
                          pg->target, pg->link.place.where, load->taken, gone);
    return KN_OK;
}

KnCode kn_pg_apply(KnPgLoad *load, KnErr *err)
{
    const KnPg *pg = load->pg;
    bool insert = load->chunk->op == KN_CHUNK_INSERT, keyed = pg->n_keys > 0;
    if (!insert && pg->mode == KN_SINK_APPEND)
        return kn_err_set(err, KN_E_REFUSED, "a delete in append mode: use --mode upsert");
    if (insert && keyed)
        return insert_keyed(load, err);
    if (insert)
        return load->rows->positions ? kn_err_set(err, KN_E_INVAL, "positions without keys")
                                     : copy_into(load, pg->target, false, err);
    return keyed ? delete_keyed(load, err) : delete_rows(load, err);
}
