/* SPDX-License-Identifier: Apache-2.0 */
/*
 * target.c - whose rows are in the target: the destination's half of the history check.
 *
 * _knut_loads lists the loads in order (seq). A window may begin when
 *   - the load that the journal has proven last is there (else the file is older than the journal,
 * or another one), and
 *   - every later load into the target belongs to this very window (else the journal is older than
 * the file, or a second delivery fills the same target). The first window of an epoch takes the
 * target instead: an empty one, or, after a reload, whatever is in it is deleted in the transaction
 * that records the claim. Doing this again changes nothing.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/fault.h"
#include "base/str.h"
#include "duckdb_internal.h"

#define RELOAD "run `knut cdc reload` to deliver the table anew"

/* ---- SQL ---- */

KnCode kn_duck_exec(KnDuck *duck, int64_t *ret_changed, KnErr *err, const char *fmt, ...)
{
    va_list args;
    char *sql = NULL;
    va_start(args, fmt);
    int len = vasprintf(&sql, fmt, args);
    va_end(args);
    if (len < 0)
        return kn_err_set(err, KN_E_NOMEM, "memory is out for a statement");
    KnCode rc = kn_session_exec(duck->ses, sql, ret_changed, err);
    free(sql);
    return rc;
}

KnCode kn_duck_ask(KnDuck *duck, int64_t *ret, KnErr *err, const char *fmt, ...)
{
    va_list args;
    char *sql = NULL;
    va_start(args, fmt);
    int len = vasprintf(&sql, fmt, args);
    va_end(args);
    if (len < 0)
        return kn_err_set(err, KN_E_NOMEM, "memory is out for a statement");
    KnCode rc = kn_session_query_i64(duck->ses, sql, ret, err);
    free(sql);
    return rc;
}

KnCode kn_duck_has_table(KnDuck *duck, const char *schema, const char *table, bool *ret, KnErr *err)
{
    KN_ARENA_AUTO arena = kn_arena_new(512);
    int64_t n;
    KN_TRY(
        kn_duck_ask(duck, &n, err,
                    "SELECT count(*) FROM duckdb_tables() WHERE database_name = current_database() "
                    "AND lower(schema_name) = lower(%s) AND lower(table_name) = lower(%s)",
                    kn_sql_text_of(arena, schema), kn_sql_text_of(arena, table)));
    *ret = n > 0;
    return KN_OK;
}

/* ---- loads ---- */

KnCode kn_duck_find_label(KnDuck *duck, const char *label, bool *ret_found, int64_t *ret_seq,
                          int64_t *ret_rows, KnErr *err)
{
    KN_ARENA_AUTO arena = kn_arena_new(512);
    bool there;
    *ret_found = false;
    KN_TRY(kn_duck_has_table(duck, "main", "_knut_loads", &there, err));
    if (!there)
        return KN_OK;
    const char *text = kn_sql_text_of(arena, label);
    KN_TRY(kn_duck_ask(duck, ret_seq, err,
                       "SELECT coalesce(max(seq), -1) FROM main._knut_loads WHERE label = %s",
                       text));
    if (*ret_seq < 0)
        return KN_OK;
    KN_TRY(kn_duck_ask(duck, ret_rows, err,
                       "SELECT max(rows) FROM main._knut_loads WHERE label = %s", text));
    *ret_found = true;
    return KN_OK;
}

KnCode kn_duck_record_load(KnDuck *duck, const char *label, int64_t rows, KnErr *err)
{
    KN_ARENA_AUTO arena = kn_arena_new(512);
    return kn_duck_exec(
        duck, NULL, err,
        "INSERT INTO main._knut_loads SELECT coalesce(max(seq), 0) + 1, %s, %s, %s, %s, %" PRId64
        ", now()::TIMESTAMP FROM main._knut_loads",
        kn_sql_text_of(arena, label), kn_sql_text_of(arena, duck->delivery),
        kn_sql_text_of(arena, duck->target), kn_sql_text_of(arena, duck->win_id), rows);
}

static KnCode create_loads(KnDuck *duck, KnErr *err)
{
    return kn_duck_exec(duck, NULL, err,
                        "CREATE TABLE IF NOT EXISTS main._knut_loads(seq BIGINT, label VARCHAR, "
                        "delivery VARCHAR, target VARCHAR, win VARCHAR, rows BIGINT, loaded_at "
                        "TIMESTAMP)");
}

/* The load with this seq is the oldest that anybody will ask for. */
static KnCode forget_old(KnDuck *duck, int64_t seq, KnErr *err)
{
    KN_ARENA_AUTO arena = kn_arena_new(512);
    const char *target = kn_sql_text_of(arena, duck->target);
    int64_t oldest;
    KN_TRY(kn_duck_ask(duck, &oldest, err,
                       "SELECT min(seq) FROM main._knut_loads WHERE lower(target) = lower(%s)",
                       target));
    if (oldest >= seq - KN_SINK_LOADS_KEPT - KN_SINK_LOADS_SLACK)
        return KN_OK;
    return kn_duck_exec(
        duck, NULL, err,
        "DELETE FROM main._knut_loads WHERE lower(target) = lower(%s) AND seq < %" PRId64, target,
        seq - KN_SINK_LOADS_KEPT);
}

/* Loads into the target after `seq` that are not this window's. */
static KnCode check_later(KnDuck *duck, const KnSinkWindow *win, int64_t seq, KnErr *err)
{
    KN_ARENA_AUTO arena = kn_arena_new(512);
    int64_t others;
    KN_TRY(kn_duck_ask(
        duck, &others, err,
        "SELECT count(*) FROM main._knut_loads WHERE lower(target) = lower(%s) AND seq > %" PRId64
        " AND win <> %s",
        kn_sql_text_of(arena, duck->target), seq, kn_sql_text_of(arena, win->id)));
    if (others == 0)
        return KN_OK;
    return kn_err_set(err, KN_E_REFUSED,
                      "target %s in %s has %" PRId64
                      " loads that this state file does not know of (an "
                      "older state file, or a second delivery into the same target): " RELOAD,
                      duck->target, duck->path, others);
}

static KnCode go_on(KnDuck *duck, const KnSinkWindow *win, KnErr *err)
{
    bool found;
    int64_t seq = -1, rows;
    if (win->expect_label)
        KN_TRY(kn_duck_find_label(duck, win->expect_label, &found, &seq, &rows, err));
    if (seq < 0)
        return kn_err_set(
            err, KN_E_REFUSED,
            "target %s in %s does not have the last load that was proven (%s): the file "
            "was replaced or restored; " RELOAD,
            duck->target, duck->path, win->expect_label ? win->expect_label : "none");
    KN_TRY(check_later(duck, win, seq, err));
    return forget_old(duck, seq, err);
}

static KnCode check_empty(KnDuck *duck, KnErr *err)
{
    int64_t rows;
    KN_TRY(kn_duck_ask(duck, &rows, err, "SELECT count(*) FROM (SELECT 1 FROM %s LIMIT 1)",
                       duck->target));
    if (rows == 0)
        return KN_OK;
    return kn_err_set(
        err, KN_E_REFUSED,
        "target %s in %s has rows that this delivery did not load: name an empty target, "
        "or run `knut cdc reload` to have it cleared and filled",
        duck->target, duck->path);
}

static KnCode take_target(KnDuck *duck, const KnSinkWindow *win, KnErr *err)
{
    bool there;
    KN_TRY(kn_duck_has_table(duck, duck->schema_name, duck->table_name, &there, err));
    if (!there)
        KN_TRY(kn_duck_create_target(duck, win->schema, err));
    else if (win->clear)
        KN_TRY(kn_duck_exec(duck, NULL, err, "DELETE FROM %s", duck->target));
    else
        KN_TRY(check_empty(duck, err));
    KN_TRY(kn_duck_record_load(duck, win->claim_label, 0, err));
    return kn_fault_at("sink-claim-before-commit", err);
}

KnCode kn_duck_claim(KnDuck *duck, const KnSinkWindow *win, KnErr *err)
{
    bool found;
    int64_t seq, rows;
    if (!win->claim_label)
        return go_on(duck, win, err);
    KN_TRY(kn_duck_find_label(duck, win->claim_label, &found, &seq, &rows, err));
    if (found)
        return check_later(duck, win, seq, err);
    KN_TRY(kn_duck_exec(duck, NULL, err, "BEGIN TRANSACTION"));
    KnCode rc = create_loads(duck, err);
    if (rc == KN_OK)
        rc = take_target(duck, win, err);
    if (rc == KN_OK)
        rc = kn_duck_exec(duck, NULL, err, "COMMIT");
    if (rc != KN_OK)
        (void)!kn_duck_exec(duck, NULL, NULL, "ROLLBACK");
    return rc == KN_OK ? kn_fault_at("sink-claim-after-commit", err) : rc;
}
