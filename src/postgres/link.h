/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * link.h - a connection to PostgreSQL: made when it is needed, made again when it was lost.
 *
 * A KnPgLink belongs to one thread at a time. Zeroed but for its place it is not connected.
 */
#include <postgresql/libpq-fe.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "postgres/place.h"

typedef struct KnPgLink {
    KnPgPlace place;
    PGconn *conn;       /* NULL before the first and after a lost connection */
    bool was_connected; /* at least once */
} KnPgLink;

/** A connection that answered last time, or a new one; a server that is starting or gone is tried
 * again for a few seconds. */
KN_NODISCARD KnCode kn_pg_need(KnPgLink *link, KnErr *err);
void kn_pg_disconnect(KnPgLink *link);
/** Runs printf-like SQL; ret (may be NULL) is cleared by the caller. */
KN_NODISCARD KnCode kn_pg_run(KnPgLink *link, PGresult **ret, KnErr *err, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
/** The first column of the first row, or -1 without a row. */
KN_NODISCARD KnCode kn_pg_ask(KnPgLink *link, int64_t *ret, KnErr *err, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
/** The same for a SQL text of any length. */
KN_NODISCARD KnCode kn_pg_exec(KnPgLink *link, const char *sql, PGresult **ret, KnErr *err);
/** Fills err from a failed result, or from the connection (res NULL). */
KnCode kn_pg_error(KnPgLink *link, const PGresult *res, KnErr *err);
bool kn_pg_lost(const KnPgLink *link);
bool kn_pg_sqlstate_is(const PGresult *res, const char *state);
void kn_pg_clear(PGresult **res);
#define KN_PG_AUTO __attribute__((cleanup(kn_pg_clear))) PGresult *
/** BEGIN and the lock of a target ("schema"."table", quoted): nobody else of ours loads into it,
 * and a load whose answer was lost is over when it is had. */
KN_NODISCARD KnCode kn_pg_begin(KnPgLink *link, const char *target, KnErr *err);
/** ret_unknown (written always): the answer was lost, it may have been applied. The code is then
 * one that may be tried again: whoever comes next looks for what was to be committed. */
KN_NODISCARD KnCode kn_pg_commit(KnPgLink *link, bool *ret_unknown, KnErr *err);
void kn_pg_rollback(KnPgLink *link);
/** Names that PostgreSQL would cut or keeps for itself are KN_E_REFUSED. what: "column". */
KN_NODISCARD KnCode kn_pg_check_name(const char *what, const char *name, KnErr *err);

/* ---- COPY ... FROM STDIN: kn_pg_exec() the statement, send, end ---- */
#define KN_PG_PIECE ((size_t)256 << 10) /* bytes worth sending at once */
/** Sends what is in buf, and empties it. */
KN_NODISCARD KnCode kn_pg_copy_send(KnPgLink *link, KnBuf *buf, KnErr *err);
/** Ends it. sent: how sending went; a failure (which err has) aborts the copy. source_failed: that
 * was no fault of the server's, whose word on it is not wanted. */
KN_NODISCARD KnCode kn_pg_copy_end(KnPgLink *link, KnCode sent, bool source_failed, KnErr *err);
