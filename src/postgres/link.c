/* SPDX-License-Identifier: Apache-2.0 */
/*
 * link.c - a connection: made when it is needed, made again when it was lost.
 *
 * Errors are the server's primary message with its SQLSTATE; details are left out, since they
 * repeat values of rows. A lock of PostgreSQL's advisory kind guards a target: every transaction
 * of ours takes the target's first. So a process that asks for the fate of a load whose answer was
 * lost waits until the server is done with that load.
 */
#include "postgres/link.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/stop.h"
#include "engine/engine.h"

#define BEGIN       "BEGIN ISOLATION LEVEL READ COMMITTED"
#define NAME_BYTES  63
#define PATIENCE_US INT64_C(10000000) /* with a server that may come back */

void kn_pg_clear(PGresult **res)
{
    PQclear(*res);
    *res = NULL;
}

bool kn_pg_lost(const KnPgLink *link)
{
    return !link->conn || PQstatus(link->conn) != CONNECTION_OK;
}

bool kn_pg_sqlstate_is(const PGresult *res, const char *state)
{
    const char *is = res ? PQresultErrorField(res, PG_DIAG_SQLSTATE) : NULL;
    return is && strncmp(is, state, strlen(state)) == 0;
}

/* What the server's code means to a caller. */
static KnCode code_of(const PGresult *res)
{
    static const struct {
        const char *state;
        KnCode code;
    } CODES[] = {
        {"55P03", KN_E_BUSY},    /* lock timeout */
        {"40", KN_E_BUSY},       /* serialization, deadlock */
        {"57", KN_E_IO},         /* shutdown, cancelled, statement timeout */
        {"53", KN_E_IO},         /* disk full, out of memory, too many connections */
        {"08", KN_E_IO},         /* connection */
        {"58", KN_E_IO},         /* the server's system */
        {"XX", KN_E_IO},         /* the server's own mistakes */
        {"25006", KN_E_REFUSED}, /* read only */
        {"0A", KN_E_REFUSED},    /* not on a standby; not in this version */
        {"42501", KN_E_REFUSED}, /* no right to it */
        {"42", KN_E_REFUSED},    /* names and types that do not fit */
        {"22", KN_E_REFUSED},    /* values that do not fit */
        {"23", KN_E_REFUSED},    /* constraints */
        {"54", KN_E_REFUSED},    /* limits */
    };
    for (size_t i = 0; i < sizeof(CODES) / sizeof(CODES[0]); ++i)
        if (kn_pg_sqlstate_is(res, CODES[i].state))
            return CODES[i].code;
    return KN_E_IO;
}

/* One line of what libpq says. */
static void flatten(char *text)
{
    size_t len = strlen(text);
    while (len && (text[len - 1] == '\n' || text[len - 1] == ' '))
        text[--len] = '\0';
    for (char *at = text; *at; ++at)
        if (*at == '\n' || *at == '\t')
            *at = ' ';
}

KnCode kn_pg_error(KnPgLink *link, const PGresult *res, KnErr *err)
{
    const char *state = res ? PQresultErrorField(res, PG_DIAG_SQLSTATE) : NULL;
    const char *primary = res ? PQresultErrorField(res, PG_DIAG_MESSAGE_PRIMARY) : NULL;
    char text[400];
    if (state && primary) {
        (void)snprintf(text, sizeof(text), "%s (SQLSTATE %s)", primary, state);
        flatten(text);
        return kn_err_set(err, code_of(res), "%s: %s", link->place.where, text);
    }
    (void)snprintf(text, sizeof(text), "%s", link->conn ? PQerrorMessage(link->conn) : "");
    flatten(text);
    return kn_err_set(err, KN_E_IO, "%s: %s", link->place.where,
                      text[0] ? text : "the connection was lost");
}

void kn_pg_disconnect(KnPgLink *link)
{
    PQfinish(link->conn);
    link->conn = NULL;
}

/* Is it worth trying again? The server is starting, or one that was there is gone for a moment; a
 * wrong password or a missing database stays wrong. A refused login has no SQLSTATE to look at, so
 * the server is asked whether it takes connections at all. */
static bool may_come_back(const KnPgLink *link)
{
    PGPing ping = PQpingParams(link->place.keywords, link->place.values, 0);
    return ping == PQPING_REJECT || (ping == PQPING_NO_RESPONSE && link->was_connected);
}

static KnCode set_up(KnPgLink *link, KnErr *err)
{
    /* Names are always qualified, texts always standard. Whoever holds the target for longer than
     * a minute is named, instead of everybody queueing behind us: unless the user chose. */
    return kn_pg_exec(link,
                      "SELECT set_config('search_path', 'pg_catalog', false), "
                      "set_config('standard_conforming_strings', 'on', false), "
                      "set_config('default_transaction_isolation', 'read committed', false), "
                      "set_config('TimeZone', 'UTC', false), "
                      "CASE WHEN current_setting('lock_timeout') = '0' THEN "
                      "set_config('lock_timeout', '60s', false) END",
                      NULL, err);
}

static KnCode connect_once(KnPgLink *link, bool *ret_again, KnErr *err)
{
    *ret_again = false;
    kn_pg_disconnect(link);
    link->conn = PQconnectdbParams(link->place.keywords, link->place.values, 0);
    if (!link->conn)
        return kn_err_set(err, KN_E_NOMEM, "memory is out for a connection");
    if (PQstatus(link->conn) == CONNECTION_OK) {
        *ret_again = link->was_connected = true;
        return set_up(link, err);
    }
    *ret_again = may_come_back(link);
    bool asked = PQconnectionNeedsPassword(link->conn);
    KnCode rc = kn_pg_error(link, NULL, err);
    kn_pg_disconnect(link);
    if (asked)
        rc = kn_err_wrap(err, rc, "no password (set PGPASSWORD or a password file)");
    return rc;
}

KnCode kn_pg_need(KnPgLink *link, KnErr *err)
{
    if (!kn_pg_lost(link))
        return KN_OK;
    KnCode rc = KN_OK;
    int64_t pause_us = 100000, deadline = kn_clock_mono_us() + PATIENCE_US;
    for (;; pause_us *= 2) {
        bool again;
        rc = connect_once(link, &again, err);
        if (rc == KN_OK || !again || kn_clock_mono_us() + pause_us > deadline ||
            kn_stop_wait(pause_us))
            break;
    }
    return rc;
}

KnCode kn_pg_exec(KnPgLink *link, const char *sql, PGresult **ret, KnErr *err)
{
    if (!link->conn)
        return kn_err_set(err, KN_E_IO, "%s: the connection was lost", link->place.where);
    KN_PG_AUTO res = PQexec(link->conn, sql);
    ExecStatusType status = PQresultStatus(res);
    if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK && status != PGRES_COPY_IN)
        return kn_pg_error(link, res, err);
    if (ret) {
        *ret = res;
        res = NULL;
    }
    return KN_OK;
}

__attribute__((format(printf, 4, 0))) static KnCode
run_args(KnPgLink *link, PGresult **ret, KnErr *err, const char *fmt, va_list args)
{
    char *sql = NULL;
    if (vasprintf(&sql, fmt, args) < 0)
        return kn_err_set(err, KN_E_NOMEM, "memory is out for a statement");
    KnCode rc = kn_pg_exec(link, sql, ret, err);
    free(sql);
    return rc;
}

KnCode kn_pg_run(KnPgLink *link, PGresult **ret, KnErr *err, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    KnCode rc = run_args(link, ret, err, fmt, args);
    va_end(args);
    return rc;
}

KnCode kn_pg_ask(KnPgLink *link, int64_t *ret, KnErr *err, const char *fmt, ...)
{
    va_list args;
    KN_PG_AUTO res = NULL;
    va_start(args, fmt);
    KnCode rc = run_args(link, &res, err, fmt, args);
    va_end(args);
    KN_TRY(rc);
    *ret = -1;
    if (PQntuples(res) == 0 || PQgetisnull(res, 0, 0))
        return KN_OK;
    const char *text = PQgetvalue(res, 0, 0);
    if (!kn_str_to_i64(kn_str(text), ret))
        return kn_err_set(err, KN_E_CORRUPT, "%s: not a number: %s", link->place.where, text);
    return KN_OK;
}

KnCode kn_pg_begin(KnPgLink *link, const char *target, KnErr *err)
{
    KN_TRY(kn_pg_need(link, err));
    KN_ARENA_AUTO arena = kn_arena_new(512);
    const char *lock =
        kn_arena_printf(arena, "SELECT pg_advisory_xact_lock(1802401140, hashtext(%s))",
                        kn_sql_text_of(arena, target));
    KnErr why = {0};
    KnCode rc = kn_pg_exec(link, BEGIN, NULL, &why);
    if (rc != KN_OK && kn_pg_lost(link)) { /* it died while we were busy elsewhere */
        KN_TRY(kn_pg_need(link, err));
        rc = kn_pg_exec(link, BEGIN, NULL, &why);
    }
    if (rc == KN_OK)
        rc = kn_pg_exec(link, lock, NULL, &why);
    if (rc == KN_E_BUSY)
        rc = kn_err_wrap(&why, rc, "another load into %s is running", target);
    if (rc != KN_OK) {
        kn_pg_rollback(link);
        if (err)
            *err = why;
    }
    return rc;
}

KnCode kn_pg_commit(KnPgLink *link, bool *ret_unknown, KnErr *err)
{
    KN_PG_AUTO res = PQexec(link->conn, "COMMIT");
    *ret_unknown = false;
    if (PQresultStatus(res) == PGRES_COMMAND_OK) {
        if (strcmp(PQcmdStatus(res), "COMMIT") == 0)
            return KN_OK;
        return kn_err_set(err, KN_E_IO, "%s: the server rolled the transaction back",
                          link->place.where);
    }
    /* An ERROR with the connection alive is the server's word; everything else is silence. */
    *ret_unknown = kn_pg_lost(link) || PQtransactionStatus(link->conn) == PQTRANS_UNKNOWN;
    return kn_pg_error(link, res, err);
}

void kn_pg_rollback(KnPgLink *link)
{
    if (kn_pg_lost(link)) {
        kn_pg_disconnect(link);
        return;
    }
    PGTransactionStatusType status = PQtransactionStatus(link->conn);
    if (status == PQTRANS_INTRANS || status == PQTRANS_INERROR) {
        KN_PG_AUTO res = PQexec(link->conn, "ROLLBACK");
        if (PQresultStatus(res) != PGRES_COMMAND_OK)
            kn_pg_disconnect(link);
    } else if (status != PQTRANS_IDLE) {
        kn_pg_disconnect(link);
    }
}

KnCode kn_pg_check_name(const char *what, const char *name, KnErr *err)
{
    static const char *const SYSTEM[] = {"ctid", "xmin", "xmax", "cmin", "cmax", "tableoid"};
    if (strlen(name) > NAME_BYTES)
        return kn_err_set(err, KN_E_REFUSED,
                          "%s %s: names in PostgreSQL have at most %d bytes, this one has %zu: "
                          "rename it",
                          what, name, NAME_BYTES, strlen(name));
    for (size_t i = 0; i < sizeof(SYSTEM) / sizeof(SYSTEM[0]); ++i)
        if (strcmp(name, SYSTEM[i]) == 0)
            return kn_err_set(err, KN_E_REFUSED,
                              "%s %s: PostgreSQL keeps this name for itself: rename it", what,
                              name);
    if (name[0] == '\0')
        return kn_err_set(err, KN_E_REFUSED, "a %s has an empty name: rename it", what);
    return KN_OK;
}

/* ---- COPY ---- */

KnCode kn_pg_copy_send(KnPgLink *link, KnBuf *buf, KnErr *err)
{
    if (buf->len && PQputCopyData(link->conn, buf->data, (int)buf->len) != 1)
        return kn_pg_error(link, NULL, err);
    kn_buf_reset(buf);
    return KN_OK;
}

KnCode kn_pg_copy_end(KnPgLink *link, KnCode sent, bool source_failed, KnErr *err)
{
    bool told = PQputCopyEnd(link->conn, sent == KN_OK ? NULL : "the source failed") == 1;
    KnCode rc = sent;
    for (;;) {
        KN_PG_AUTO res = PQgetResult(link->conn);
        if (!res)
            break;
        /* The server's reason counts for more than a pipe that broke. */
        if (PQresultStatus(res) == PGRES_FATAL_ERROR && !source_failed)
            rc = kn_pg_error(link, res, err);
        if (PQresultStatus(res) == PGRES_COPY_IN) /* the connection is out of step */
            return kn_err_set(err, KN_E_IO, "%s: the copy did not end", link->place.where);
    }
    if (rc == KN_OK && !told)
        rc = kn_pg_error(link, NULL, err);
    return rc;
}
