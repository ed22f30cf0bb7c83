/* SPDX-License-Identifier: Apache-2.0 */
/*
 * target.c - whose rows are in the target: the destination's half of the history check.
 *
 * _knut_loads lists the loads of a target in order: seq is one more than the last, under the
 * target's lock. (Not a sequence of PostgreSQL's: one in a database that was made from a template
 * may give numbers twice after a crash.) A window may begin
 * when the load that the journal has proven last is there, and every later load into the target
 * belongs to this very window. The first window of an epoch takes the target instead: an empty one,
 * or, after a reload, whatever is in it goes in the transaction that records the claim.
 */
#include <inttypes.h>

#include "base/fault.h"
#include "cdc/sinks/postgres/postgres_internal.h"

/* ---- asking ---- */

static KnCode relation_kind(KnPg *pg, const char *table, char *ret, KnErr *err)
{
    KN_ARENA_AUTO arena = kn_arena_new(512);
    KN_PG_AUTO res = NULL;
    KN_TRY(kn_pg_run(&pg->link, &res, err,
                     "SELECT c.relkind FROM pg_class c JOIN pg_namespace n ON n.oid = "
                     "c.relnamespace WHERE n.nspname = %s AND c.relname = %s",
                     kn_sql_text_of(arena, pg->schema_name), kn_sql_text_of(arena, table)));
    *ret = '\0';
    if (PQntuples(res))
        *ret = PQgetvalue(res, 0, 0)[0];
    return KN_OK;
}

/* Plain and partitioned tables can be filled; KN_E_REFUSED for a view and its like. */
KnCode kn_pg_has_table(KnPg *pg, const char *table, bool *ret, KnErr *err)
{
    char kind;
    KN_TRY(relation_kind(pg, table, &kind, err));
    if (kind && kind != 'r' && kind != 'p')
        return kn_err_set(err, KN_E_REFUSED,
                          "target \"%s\".\"%s\" in %s is no table: drop it, or choose another "
                          "--target",
                          pg->schema_name, table, pg->link.place.where);
    *ret = kind != '\0';
    return KN_OK;
}

KnCode kn_pg_find_label(KnPg *pg, const char *label, int64_t *ret_seq, int64_t *ret_rows,
                        KnErr *err)
{
    KN_ARENA_AUTO arena = kn_arena_new(512);
    bool there = false;
    *ret_seq = *ret_rows = -1;
    KN_TRY(kn_pg_has_table(pg, "_knut_loads", &there, err));
    if (!there)
        return KN_OK;
    const char *text = kn_sql_text_of(arena, label);
    KN_TRY(
        kn_pg_ask(&pg->link, ret_seq, err, "SELECT seq FROM %s WHERE label = %s", pg->loads, text));
    return kn_pg_ask(&pg->link, ret_rows, err, "SELECT rows FROM %s WHERE label = %s", pg->loads,
                     text);
}

KnCode kn_pg_record_load(KnPg *pg, const char *label, int64_t rows, KnErr *err)
{
    KN_ARENA_AUTO arena = kn_arena_new(1024);
    return kn_pg_run(&pg->link, NULL, err,
                     "INSERT INTO %s(seq, label, delivery, target, win, rows) SELECT "
                     "coalesce(max(seq), 0) + 1, %s, %s, %s, %s, %" PRId64
                     " FROM %s WHERE target = %s",
                     pg->loads, kn_sql_text_of(arena, label), kn_sql_text_of(arena, pg->delivery),
                     kn_sql_text_of(arena, pg->target), kn_sql_text_of(arena, pg->win_id), rows,
                     pg->loads, kn_sql_text_of(arena, pg->target));
}

/* The load with this seq is the oldest that anybody will ask for. */
static KnCode forget_old(KnPg *pg, int64_t seq, KnErr *err)
{
    KN_ARENA_AUTO arena = kn_arena_new(512);
    const char *target = kn_sql_text_of(arena, pg->target);
    return kn_pg_run(&pg->link, NULL, err,
                     "DELETE FROM %s WHERE target = %s AND seq < %" PRId64
                     " AND (SELECT min(seq) FROM %s WHERE target = %s) < %" PRId64,
                     pg->loads, target, seq - KN_SINK_LOADS_KEPT, pg->loads, target,
                     seq - KN_SINK_LOADS_KEPT - KN_SINK_LOADS_SLACK);
}

/* ---- the check of histories ---- */

static KnCode check_later(KnPg *pg, const KnSinkWindow *win, int64_t seq, KnErr *err)
{
    KN_ARENA_AUTO arena = kn_arena_new(1024);
    int64_t others;
    KN_TRY(kn_pg_ask(
        &pg->link, &others, err,
        "SELECT count(*) FROM %s WHERE target = %s AND seq > %" PRId64 " AND win <> %s", pg->loads,
        kn_sql_text_of(arena, pg->target), seq, kn_sql_text_of(arena, win->id)));
    if (others == 0)
        return KN_OK;
    return kn_err_set(err, KN_E_REFUSED,
                      "target %s in %s has %" PRId64
                      " loads that this state file does not know of (an older state file, or a "
                      "second delivery into the same target): " KN_PG_RELOAD,
                      pg->target, pg->link.place.where, others);
}

static KnCode go_on(KnPg *pg, const KnSinkWindow *win, KnErr *err)
{
    int64_t seq = -1, rows;
    bool there = false;
    KN_TRY(kn_pg_has_table(pg, pg->table_name, &there, err));
    if (!there)
        return kn_err_set(err, KN_E_REFUSED,
                          "target %s in %s is gone, with what was delivered into it: " KN_PG_RELOAD,
                          pg->target, pg->link.place.where);
    if (win->expect_label)
        KN_TRY(kn_pg_find_label(pg, win->expect_label, &seq, &rows, err));
    if (seq < 0)
        return kn_err_set(err, KN_E_REFUSED,
                          "target %s in %s does not have the last load that was proven (%s): the "
                          "database was replaced or restored; " KN_PG_RELOAD,
                          pg->target, pg->link.place.where,
                          win->expect_label ? win->expect_label : "none");
    KN_TRY(check_later(pg, win, seq, err));
    return forget_old(pg, seq, err);
}

/* ---- taking the target ---- */

KnCode kn_pg_require_empty(KnPg *pg, bool *ret_empty, KnErr *err)
{
    int64_t rows;
    KN_TRY(kn_pg_ask(&pg->link, &rows, err, "SELECT count(*) FROM (SELECT 1 FROM %s LIMIT 1) r",
                     pg->target));
    *ret_empty = rows == 0;
    return KN_OK;
}

static KnCode check_empty(KnPg *pg, KnErr *err)
{
    bool empty;
    KN_TRY(kn_pg_require_empty(pg, &empty, err));
    if (empty)
        return KN_OK;
    return kn_err_set(err, KN_E_REFUSED,
                      "target %s in %s has rows that this delivery did not load: name an empty "
                      "target, or run `knut cdc reload` to have it cleared and filled",
                      pg->target, pg->link.place.where);
}

/* Two deliveries that start at once must not both make what both find absent. Rights to create a
 * schema are needed only where there is none. */
static KnCode create_loads(KnPg *pg, KnErr *err)
{
    KN_ARENA_AUTO arena = kn_arena_new(512);
    bool there = false;
    int64_t schema;
    const char *name = kn_sql_text_of(arena, pg->schema_name);
    KN_TRY(kn_pg_run(&pg->link, NULL, err, "SELECT pg_advisory_xact_lock(1802401141, hashtext(%s))",
                     name));
    KN_TRY(kn_pg_ask(&pg->link, &schema, err,
                     "SELECT count(*) FROM pg_namespace WHERE nspname = %s", name));
    if (schema == 0)
        KN_TRY(kn_pg_run(&pg->link, NULL, err, "CREATE SCHEMA %s",
                         kn_sql_ident_of(arena, pg->schema_name)));
    KN_TRY(kn_pg_has_table(pg, "_knut_loads", &there, err));
    if (there)
        return KN_OK;
    return kn_pg_run(
        &pg->link, NULL, err,
        "CREATE TABLE %s(seq bigint NOT NULL, label text NOT NULL UNIQUE, delivery text "
        "NOT NULL, target text NOT NULL, win text NOT NULL, rows bigint NOT NULL, "
        "loaded_at timestamp with time zone NOT NULL DEFAULT now(), PRIMARY KEY "
        "(target, seq)); CREATE TABLE %s(target text NOT NULL, position integer NOT "
        "NULL, field_id integer NOT NULL, name text NOT NULL, type text NOT NULL, "
        "field text NOT NULL, PRIMARY KEY (target, field_id))",
        pg->loads, pg->columns);
}

static KnCode take_target(KnPg *pg, const KnSinkWindow *win, KnErr *err)
{
    bool there = false;
    KN_TRY(kn_pg_has_table(pg, pg->table_name, &there, err));
    if (!there)
        KN_TRY(kn_pg_create_target(pg, win->schema, err));
    else if (win->clear)
        KN_TRY(kn_pg_run(&pg->link, NULL, err, "DELETE FROM %s", pg->target));
    else
        KN_TRY(check_empty(pg, err));
    KN_TRY(kn_pg_record_load(pg, win->claim_label, 0, err));
    return kn_fault_at("sink-claim-before-commit", err);
}

/* Under the lock of a transaction that the caller ends. */
static KnCode claim(KnPg *pg, const KnSinkWindow *win, bool *ret_took, KnErr *err)
{
    int64_t seq, rows;
    *ret_took = false;
    if (!win->claim_label)
        return go_on(pg, win, err);
    KN_TRY(kn_pg_find_label(pg, win->claim_label, &seq, &rows, err));
    if (seq >= 0)
        return check_later(pg, win, seq, err);
    *ret_took = true;
    KN_TRY(create_loads(pg, err));
    return take_target(pg, win, err);
}

KnCode kn_pg_claim(KnPg *pg, const KnSinkWindow *win, KnErr *err)
{
    bool took, unknown;
    KN_TRY(kn_pg_begin(&pg->link, pg->target, err));
    KnCode rc = claim(pg, win, &took, err);
    if (rc == KN_OK)
        rc = kn_pg_commit(&pg->link, &unknown, err);
    if (rc != KN_OK)
        kn_pg_rollback(&pg->link);
    return rc == KN_OK && took ? kn_fault_at("sink-claim-after-commit", err) : rc;
}
