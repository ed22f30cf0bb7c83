/* SPDX-License-Identifier: Apache-2.0 */
/*
 * journal_sqlite.c - the journal as one SQLite file: opening it, and the deliveries in it.
 *
 * Rollback journal mode and synchronous=EXTRA: a commit that returned is on disk, the directory
 * entry included. The file says what it is (application_id) and which layout it has (user_version):
 * a file of another program, or a newer layout, is refused and left alone. quick_check runs at
 * every open: the file is small, and a damaged journal must stop delivery before anything moves.
 *
 * Every change is one transaction that checks what it changes: a chunk moves one state forward, a
 * cursor moves from where the ack says, a plan is only taken for the delivery's own cursor.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fault.h"
#include "base/vec.h"
#include "cdc/journal.h"
#include "cdc/journal_lock.h"
#include "cdc/journal_sqlite_internal.h"

#define APPLICATION_ID 0x6b6e7574 /* "knut" */
#define LAYOUT         1
#define MAX_PLAN       (512 << 20)

static const char SCHEMA[] =
    "CREATE TABLE deliveries(id INTEGER PRIMARY KEY, source TEXT NOT NULL, sink TEXT NOT NULL,"
    " target TEXT NOT NULL, tbl TEXT NOT NULL, table_uuid TEXT NOT NULL, cursor INTEGER NOT NULL,"
    " epoch INTEGER NOT NULL, status TEXT NOT NULL, message TEXT NOT NULL, last_label TEXT NOT "
    "NULL,"
    " updated_ms INTEGER NOT NULL, UNIQUE(source, sink, target));"
    "CREATE TABLE windows(id INTEGER PRIMARY KEY AUTOINCREMENT, delivery INTEGER NOT NULL,"
    " epoch INTEGER NOT NULL, from_id INTEGER NOT NULL, to_id INTEGER NOT NULL,"
    " operation TEXT NOT NULL, label TEXT NOT NULL, claim TEXT NOT NULL, upserts INTEGER NOT NULL,"
    " deletes INTEGER NOT NULL, chunks INTEGER NOT NULL, plan TEXT, duplicates INTEGER NOT NULL,"
    " bytes INTEGER NOT NULL, seconds REAL NOT NULL, started_ms INTEGER NOT NULL,"
    " finished_ms INTEGER NOT NULL);"
    "CREATE UNIQUE INDEX one_open_window ON windows(delivery) WHERE finished_ms = 0;"
    "CREATE INDEX window_history ON windows(delivery, id);"
    "CREATE TABLE chunks(window INTEGER NOT NULL, number INTEGER NOT NULL, label TEXT NOT NULL,"
    " op INTEGER NOT NULL, rows INTEGER NOT NULL, state INTEGER NOT NULL, verdict TEXT,"
    " sent_ms INTEGER, proven_ms INTEGER, PRIMARY KEY(window, number)) WITHOUT ROWID;";

/* ---- statements ---- */

static KnCode failed(const KnSqliteJournal *jn, KnErr *err)
{
    int code = sqlite3_errcode(jn->db) & 0xff;
    const char *text = sqlite3_errmsg(jn->db);
    switch (code) {
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
        return kn_err_set(
            err, KN_E_CORRUPT,
            "state %s is damaged or not a state file of knut (%s): restore it, or use "
            "another --state and reload",
            jn->path, text);
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return kn_err_set(err, KN_E_BUSY, "state %s is locked by another program", jn->path);
    case SQLITE_FULL:
        return kn_err_set(err, KN_E_IO, "state %s: no space left on the disk", jn->path);
    case SQLITE_READONLY:
        return kn_err_set(err, KN_E_IO, "state %s: the file or its folder cannot be written",
                          jn->path);
    default:
        return kn_err_set(err, KN_E_IO, "state %s: %s", jn->path, text);
    }
}

KnCode kn_sqlite_exec(KnSqliteJournal *jn, const char *sql, KnErr *err)
{
    return sqlite3_exec(jn->db, sql, NULL, NULL, NULL) == SQLITE_OK ? KN_OK : failed(jn, err);
}

KnCode kn_sqlite_prepare(KnSqliteJournal *jn, const char *sql, sqlite3_stmt **ret, KnErr *err)
{
    return sqlite3_prepare_v2(jn->db, sql, -1, ret, NULL) == SQLITE_OK ? KN_OK : failed(jn, err);
}

void kn_sqlite_bind(sqlite3_stmt *stmt, const char *types, ...)
{
    va_list args;
    va_start(args, types);
    for (int at = 1; *types; ++types, ++at) {
        if (*types == 'i')
            (void)sqlite3_bind_int64(stmt, at, va_arg(args, int64_t));
        else if (*types == 'd')
            (void)sqlite3_bind_double(stmt, at, va_arg(args, double));
        else
            (void)sqlite3_bind_text(stmt, at, va_arg(args, const char *), -1, SQLITE_TRANSIENT);
    }
    va_end(args);
}

KnCode kn_sqlite_finish(KnSqliteJournal *jn, sqlite3_stmt *stmt, int *ret_changed, KnErr *err)
{
    int rc;
    do
        rc = sqlite3_step(stmt);
    while (rc == SQLITE_ROW);
    if (rc != SQLITE_DONE)
        return failed(jn, err);
    if (ret_changed)
        *ret_changed = sqlite3_changes(jn->db);
    return KN_OK;
}

KnCode kn_sqlite_step(KnSqliteJournal *jn, sqlite3_stmt *stmt, bool *ret_row, KnErr *err)
{
    int rc = sqlite3_step(stmt);
    if (rc != SQLITE_ROW && rc != SQLITE_DONE)
        return failed(jn, err);
    *ret_row = rc == SQLITE_ROW;
    return KN_OK;
}

const char *kn_sqlite_text(KnArena *arena, sqlite3_stmt *stmt, int col)
{
    const char *text = (const char *)sqlite3_column_text(stmt, col);
    return kn_arena_strndup(arena, text ? text : "", (size_t)sqlite3_column_bytes(stmt, col));
}

KnCode kn_sqlite_begin(KnSqliteJournal *jn, KnErr *err)
{
    if (jn->base.mode == KN_JOURNAL_READ)
        return kn_err_set(err, KN_E_INVAL, "state %s was opened for reading", jn->path);
    return kn_sqlite_exec(jn, "BEGIN IMMEDIATE", err);
}

KnCode kn_sqlite_end(KnSqliteJournal *jn, KnCode rc, KnErr *err)
{
    if (rc == KN_OK)
        rc = kn_sqlite_exec(jn, "COMMIT", err);
    if (rc != KN_OK && !sqlite3_get_autocommit(jn->db))
        (void)sqlite3_exec(jn->db, "ROLLBACK", NULL, NULL, NULL);
    return rc;
}

/* ---- deliveries ---- */

#define DELIVERY_COLUMNS                                                                           \
    "id, source, sink, target, tbl, table_uuid, cursor, epoch, status, message, last_label, "      \
    "updated_ms"

static KnDeliveryRow read_delivery(KnArena *arena, sqlite3_stmt *stmt)
{
    return (KnDeliveryRow){
        .id = sqlite3_column_int64(stmt, 0),
        .key = {kn_sqlite_text(arena, stmt, 1), kn_sqlite_text(arena, stmt, 2),
                kn_sqlite_text(arena, stmt, 3)},
        .table = kn_sqlite_text(arena, stmt, 4),
        .table_uuid = kn_sqlite_text(arena, stmt, 5),
        .cursor = sqlite3_column_int64(stmt, 6),
        .epoch = sqlite3_column_int64(stmt, 7),
        .status = kn_sqlite_text(arena, stmt, 8),
        .message = kn_sqlite_text(arena, stmt, 9),
        .last_label = kn_sqlite_text(arena, stmt, 10),
        .updated_ms = sqlite3_column_int64(stmt, 11),
    };
}

static KnCode find_delivery(KnSqliteJournal *jn, KnArena *arena, const KnDeliveryKey *key,
                            bool *ret_found, KnDeliveryRow *ret, KnErr *err)
{
    KN_STMT_AUTO stmt = NULL;
    KN_TRY(kn_sqlite_prepare(jn,
                             "SELECT " DELIVERY_COLUMNS
                             " FROM deliveries WHERE source = ? AND sink = ? AND target = ?",
                             &stmt, err));
    kn_sqlite_bind(stmt, "ttt", key->source, key->sink, key->target);
    KN_TRY(kn_sqlite_step(jn, stmt, ret_found, err));
    if (*ret_found)
        *ret = read_delivery(arena, stmt);
    return KN_OK;
}

static KnCode add_delivery(KnSqliteJournal *jn, const KnDeliveryRow *want, KnErr *err)
{
    KN_STMT_AUTO stmt = NULL;
    KN_TRY(kn_sqlite_prepare(
        jn,
        "INSERT INTO deliveries(source, sink, target, tbl, table_uuid, cursor, epoch,"
        " status, message, last_label, updated_ms) VALUES(?,?,?,?,?,-1,0,'new','','',?)",
        &stmt, err));
    kn_sqlite_bind(stmt, "ttttti", want->key.source, want->key.sink, want->key.target, want->table,
                   want->table_uuid, kn_clock_wall_ms());
    return kn_sqlite_finish(jn, stmt, NULL, err);
}

static KnCode delivery(KnJournal *base, KnArena *arena, const KnDeliveryRow *want, bool create,
                       KnDeliveryRow *ret, KnErr *err)
{
    KnSqliteJournal *jn = (KnSqliteJournal *)base;
    bool found;
    KN_TRY(find_delivery(jn, arena, &want->key, &found, ret, err));
    if (found)
        return KN_OK;
    if (!create)
        return kn_err_set(err, KN_E_NOTFOUND, "state %s: nothing is known of table %s to %s in %s",
                          jn->path, want->table, want->key.target, want->key.sink);
    KN_TRY(kn_sqlite_begin(jn, err));
    KN_TRY(kn_sqlite_end(jn, add_delivery(jn, want, err), err));
    KN_TRY(find_delivery(jn, arena, &want->key, &found, ret, err));
    return found ? KN_OK : kn_err_set(err, KN_E_IO, "state %s: a new row is gone", jn->path);
}

static KnCode deliveries(KnJournal *base, KnArena *arena, KnDeliveryRow **ret, size_t *ret_n,
                         KnErr *err)
{
    KnSqliteJournal *jn = (KnSqliteJournal *)base;
    KN_VEC(KnDeliveryRow) rows = {0};
    KN_STMT_AUTO stmt = NULL;
    bool more = false;
    KN_TRY(kn_sqlite_prepare(jn, "SELECT " DELIVERY_COLUMNS " FROM deliveries ORDER BY id", &stmt,
                             err));
    KnCode rc = kn_sqlite_step(jn, stmt, &more, err);
    while (rc == KN_OK && more) {
        *kn_vec_push(&rows) = read_delivery(arena, stmt);
        rc = kn_sqlite_step(jn, stmt, &more, err);
    }
    if (rc == KN_OK) {
        *ret = kn_arena_zalloc(arena, (rows.len + 1) * sizeof(**ret));
        if (rows.len)
            memcpy(*ret, rows.items, rows.len * sizeof(**ret));
        *ret_n = rows.len;
    }
    kn_vec_done(&rows);
    return rc;
}

static KnCode update_status(KnSqliteJournal *jn, int64_t delivery_id, const char *status,
                            const char *message, KnErr *err)
{
    KN_STMT_AUTO stmt = NULL;
    KN_TRY(kn_sqlite_prepare(
        jn, "UPDATE deliveries SET status = ?, message = ?, updated_ms = ? WHERE id = ?", &stmt,
        err));
    kn_sqlite_bind(stmt, "ttii", status, message, kn_clock_wall_ms(), delivery_id);
    return kn_sqlite_finish(jn, stmt, NULL, err);
}

static KnCode set_status(KnJournal *base, int64_t delivery_id, const char *status,
                         const char *message, KnErr *err)
{
    KnSqliteJournal *jn = (KnSqliteJournal *)base;
    KN_TRY(kn_sqlite_begin(jn, err));
    return kn_sqlite_end(jn, update_status(jn, delivery_id, status, message, err), err);
}

/* ---- opening ---- */

static void close_journal(KnJournal *base)
{
    KnSqliteJournal *jn = (KnSqliteJournal *)base;
    (void)sqlite3_close(jn->db);
    if (jn->lock_fd >= 0)
        (void)close(jn->lock_fd);
    free(jn->path);
    free(jn);
}

static const KnJournalOps SQLITE_OPS = {
    .kind = "sqlite",
    .delivery = delivery,
    .deliveries = deliveries,
    .set_status = set_status,
    .open_window = kn_sqlite_open_window,
    .plan = kn_sqlite_plan,
    .mark = kn_sqlite_mark,
    .hold = kn_sqlite_hold,
    .advance = kn_sqlite_advance,
    .reload = kn_sqlite_reload,
    .history = kn_sqlite_history,
    .close = close_journal,
};

static KnCode ask(KnSqliteJournal *jn, const char *sql, int64_t *ret, KnErr *err)
{
    KN_STMT_AUTO stmt = NULL;
    bool row = false;
    KN_TRY(kn_sqlite_prepare(jn, sql, &stmt, err));
    KN_TRY(kn_sqlite_step(jn, stmt, &row, err));
    *ret = row ? sqlite3_column_int64(stmt, 0) : 0;
    return KN_OK;
}

static KnCode create_layout(KnSqliteJournal *jn, KnErr *err)
{
    KN_TRY(kn_sqlite_begin(jn, err));
    KnCode rc = kn_sqlite_exec(jn, SCHEMA, err);
    if (rc == KN_OK)
        rc = kn_sqlite_exec(jn, "PRAGMA application_id = 1802401140; PRAGMA user_version = 1", err);
    return kn_sqlite_end(jn, rc, err);
}

/* A new file gets our layout; any other must have it, whole. */
static KnCode check_layout(KnSqliteJournal *jn, KnErr *err)
{
    int64_t id, version, tables;
    KN_TRY(ask(jn, "SELECT count(*) FROM sqlite_schema", &tables, err));
    KN_TRY(ask(jn, "PRAGMA application_id", &id, err));
    KN_TRY(ask(jn, "PRAGMA user_version", &version, err));
    if (tables == 0 && id == 0 && version == 0 && jn->base.mode == KN_JOURNAL_WRITE)
        return create_layout(jn, err);
    if (id != APPLICATION_ID)
        return kn_err_set(err, KN_E_CORRUPT,
                          "state %s is not a state file of knut: name another one with --state",
                          jn->path);
    if (version > LAYOUT)
        return kn_err_set(err, KN_E_UNSUPPORTED,
                          "state %s was written by a newer knut (layout %" PRId64
                          ", this one knows "
                          "%d)",
                          jn->path, version, LAYOUT);
    KN_STMT_AUTO stmt = NULL;
    bool row = false;
    KN_TRY(kn_sqlite_prepare(jn, "PRAGMA quick_check(1)", &stmt, err));
    KN_TRY(kn_sqlite_step(jn, stmt, &row, err));
    const char *answer = row ? (const char *)sqlite3_column_text(stmt, 0) : NULL;
    if (!answer || strcmp(answer, "ok") != 0)
        return kn_err_set(
            err, KN_E_CORRUPT,
            "state %s is damaged (%.200s): restore it, or use another --state and reload", jn->path,
            answer ? answer : "no answer");
    return KN_OK;
}

static KnCode open_database(KnSqliteJournal *jn, KnErr *err)
{
    int flags = jn->base.mode == KN_JOURNAL_WRITE ? SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE
                                                  : SQLITE_OPEN_READONLY;
    if (sqlite3_open_v2(jn->path, &jn->db, flags, NULL) != SQLITE_OK) {
        if (!jn->db)
            return kn_err_set(err, KN_E_NOMEM, "state %s: memory is out", jn->path);
        return kn_err_set(err, KN_E_IO, "state %s cannot be opened: %s", jn->path,
                          sqlite3_errmsg(jn->db));
    }
    (void)sqlite3_busy_timeout(jn->db, 5000);
    (void)sqlite3_limit(jn->db, SQLITE_LIMIT_LENGTH, MAX_PLAN);
    if (jn->base.mode == KN_JOURNAL_WRITE)
        KN_TRY(kn_sqlite_exec(jn, "PRAGMA journal_mode = DELETE; PRAGMA synchronous = EXTRA", err));
    return check_layout(jn, err);
}

KnCode kn_journal_sqlite_open(const char *path, KnJournalMode mode, KnJournal **ret, KnErr *err)
{
    if (mode == KN_JOURNAL_READ && access(path, F_OK) != 0)
        return kn_err_set(err, KN_E_NOTFOUND,
                          "state %s does not exist: nothing was delivered with it", path);
    KnSqliteJournal *jn = calloc(1, sizeof(*jn));
    if (!jn)
        abort();
    *jn = (KnSqliteJournal){
        .base = {.ops = &SQLITE_OPS, .mode = mode}, .path = strdup(path), .lock_fd = -1};
    if (!jn->path)
        abort();
    KnCode rc = KN_OK;
    if (mode == KN_JOURNAL_WRITE)
        rc = kn_journal_lock_take(path, &jn->lock_fd, err);
    if (rc == KN_OK)
        rc = open_database(jn, err);
    if (rc != KN_OK) {
        close_journal(&jn->base);
        return rc;
    }
    *ret = &jn->base;
    return KN_OK;
}

KnJournal *kn_journal_close(KnJournal *jn)
{
    if (jn)
        jn->ops->close(jn);
    return NULL;
}
