/* SPDX-License-Identifier: Apache-2.0 */
/*
 * journal_sqlite.c - the journal as one SQLite file.
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

#define APPLICATION_ID 0x6b6e7574 /* "knut" */
#define LAYOUT         1
#define KEEP_HISTORY   1000
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

typedef struct Sqlite {
    KnJournal base;
    sqlite3 *db;
    char *path;
    int lock_fd; /* -1 = opened for reading */
} Sqlite;

/* ---- statements ---- */

static KnCode failed(const Sqlite *jn, KnErr *err)
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

static KnCode run(Sqlite *jn, const char *sql, KnErr *err)
{
    return sqlite3_exec(jn->db, sql, NULL, NULL, NULL) == SQLITE_OK ? KN_OK : failed(jn, err);
}

static KnCode prepare(Sqlite *jn, const char *sql, sqlite3_stmt **ret, KnErr *err)
{
    return sqlite3_prepare_v2(jn->db, sql, -1, ret, NULL) == SQLITE_OK ? KN_OK : failed(jn, err);
}

static void stmt_freep(sqlite3_stmt **stmt)
{
    sqlite3_finalize(*stmt);
}
#define STMT_AUTO __attribute__((cleanup(stmt_freep))) sqlite3_stmt *

/* Binds by types: 'i' int64_t, 't' const char *, 'd' double. A failure shows in the step. */
static void bind(sqlite3_stmt *stmt, const char *types, ...)
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

/* Runs to the end; *ret_changed: rows changed. */
static KnCode finish(Sqlite *jn, sqlite3_stmt *stmt, int *ret_changed, KnErr *err)
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

/* *ret_row: a row is there to be read. */
static KnCode step(Sqlite *jn, sqlite3_stmt *stmt, bool *ret_row, KnErr *err)
{
    int rc = sqlite3_step(stmt);
    if (rc != SQLITE_ROW && rc != SQLITE_DONE)
        return failed(jn, err);
    *ret_row = rc == SQLITE_ROW;
    return KN_OK;
}

static const char *text_at(KnArena *arena, sqlite3_stmt *stmt, int col)
{
    const char *text = (const char *)sqlite3_column_text(stmt, col);
    return kn_arena_strndup(arena, text ? text : "", (size_t)sqlite3_column_bytes(stmt, col));
}

static KnCode begin(Sqlite *jn, KnErr *err)
{
    if (jn->base.mode == KN_JOURNAL_READ)
        return kn_err_set(err, KN_E_INVAL, "state %s was opened for reading", jn->path);
    return run(jn, "BEGIN IMMEDIATE", err);
}

/* Ends the transaction that rc is the result of. */
static KnCode end(Sqlite *jn, KnCode rc, KnErr *err)
{
    if (rc == KN_OK)
        rc = run(jn, "COMMIT", err);
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
        .key = {text_at(arena, stmt, 1), text_at(arena, stmt, 2), text_at(arena, stmt, 3)},
        .table = text_at(arena, stmt, 4),
        .table_uuid = text_at(arena, stmt, 5),
        .cursor = sqlite3_column_int64(stmt, 6),
        .epoch = sqlite3_column_int64(stmt, 7),
        .status = text_at(arena, stmt, 8),
        .message = text_at(arena, stmt, 9),
        .last_label = text_at(arena, stmt, 10),
        .updated_ms = sqlite3_column_int64(stmt, 11),
    };
}

static KnCode find_delivery(Sqlite *jn, KnArena *arena, const KnDeliveryKey *key, bool *ret_found,
                            KnDeliveryRow *ret, KnErr *err)
{
    STMT_AUTO stmt = NULL;
    KN_TRY(prepare(jn,
                   "SELECT " DELIVERY_COLUMNS
                   " FROM deliveries WHERE source = ? AND sink = ? AND target = ?",
                   &stmt, err));
    bind(stmt, "ttt", key->source, key->sink, key->target);
    KN_TRY(step(jn, stmt, ret_found, err));
    if (*ret_found)
        *ret = read_delivery(arena, stmt);
    return KN_OK;
}

static KnCode add_delivery(Sqlite *jn, const KnDeliveryRow *want, KnErr *err)
{
    STMT_AUTO stmt = NULL;
    KN_TRY(prepare(jn,
                   "INSERT INTO deliveries(source, sink, target, tbl, table_uuid, cursor, epoch,"
                   " status, message, last_label, updated_ms) VALUES(?,?,?,?,?,-1,0,'new','','',?)",
                   &stmt, err));
    bind(stmt, "ttttti", want->key.source, want->key.sink, want->key.target, want->table,
         want->table_uuid, kn_clock_wall_ms());
    return finish(jn, stmt, NULL, err);
}

static KnCode delivery(KnJournal *base, KnArena *arena, const KnDeliveryRow *want, bool create,
                       KnDeliveryRow *ret, KnErr *err)
{
    Sqlite *jn = (Sqlite *)base;
    bool found;
    KN_TRY(find_delivery(jn, arena, &want->key, &found, ret, err));
    if (found)
        return KN_OK;
    if (!create)
        return kn_err_set(err, KN_E_NOTFOUND, "state %s: nothing is known of table %s to %s in %s",
                          jn->path, want->table, want->key.target, want->key.sink);
    KN_TRY(begin(jn, err));
    KN_TRY(end(jn, add_delivery(jn, want, err), err));
    KN_TRY(find_delivery(jn, arena, &want->key, &found, ret, err));
    return found ? KN_OK : kn_err_set(err, KN_E_IO, "state %s: a new row is gone", jn->path);
}

static KnCode deliveries(KnJournal *base, KnArena *arena, KnDeliveryRow **ret, size_t *ret_n,
                         KnErr *err)
{
    Sqlite *jn = (Sqlite *)base;
    KN_VEC(KnDeliveryRow) rows = {0};
    STMT_AUTO stmt = NULL;
    bool more = false;
    KN_TRY(prepare(jn, "SELECT " DELIVERY_COLUMNS " FROM deliveries ORDER BY id", &stmt, err));
    KnCode rc = step(jn, stmt, &more, err);
    while (rc == KN_OK && more) {
        *kn_vec_push(&rows) = read_delivery(arena, stmt);
        rc = step(jn, stmt, &more, err);
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

static KnCode update_status(Sqlite *jn, int64_t delivery_id, const char *status,
                            const char *message, KnErr *err)
{
    STMT_AUTO stmt = NULL;
    KN_TRY(prepare(jn, "UPDATE deliveries SET status = ?, message = ?, updated_ms = ? WHERE id = ?",
                   &stmt, err));
    bind(stmt, "ttii", status, message, kn_clock_wall_ms(), delivery_id);
    return finish(jn, stmt, NULL, err);
}

static KnCode set_status(KnJournal *base, int64_t delivery_id, const char *status,
                         const char *message, KnErr *err)
{
    Sqlite *jn = (Sqlite *)base;
    KN_TRY(begin(jn, err));
    return end(jn, update_status(jn, delivery_id, status, message, err), err);
}

/* ---- windows and chunks ---- */

#define WINDOW_COLUMNS                                                                             \
    "id, epoch, from_id, to_id, operation, label, claim, upserts, deletes, chunks, duplicates, "   \
    "bytes, seconds, started_ms, finished_ms"

static KnJournalWindow read_window(KnArena *arena, sqlite3_stmt *stmt)
{
    return (KnJournalWindow){
        .id = sqlite3_column_int64(stmt, 0),
        .epoch = sqlite3_column_int64(stmt, 1),
        .from = sqlite3_column_int64(stmt, 2),
        .to = sqlite3_column_int64(stmt, 3),
        .operation = text_at(arena, stmt, 4),
        .window_label = text_at(arena, stmt, 5),
        .claim_label = text_at(arena, stmt, 6),
        .upserts = sqlite3_column_int64(stmt, 7),
        .deletes = sqlite3_column_int64(stmt, 8),
        .n_chunks = (size_t)sqlite3_column_int64(stmt, 9),
        .duplicates = sqlite3_column_int64(stmt, 10),
        .bytes = sqlite3_column_int64(stmt, 11),
        .seconds = sqlite3_column_double(stmt, 12),
        .started_ms = sqlite3_column_int64(stmt, 13),
        .finished_ms = sqlite3_column_int64(stmt, 14),
        .delivered = sqlite3_column_int64(stmt, 14) != 0,
    };
}

static KnCode damaged(const Sqlite *jn, int64_t window, const char *what, KnErr *err)
{
    return kn_err_set(err, KN_E_CORRUPT, "state %s: window %" PRId64 ": %s; restore it, or reload",
                      jn->path, window, what);
}

static KnCode read_chunk(Sqlite *jn, sqlite3_stmt *stmt, int64_t window, KnJournalChunk *ret,
                         KnErr *err)
{
    const char *label = (const char *)sqlite3_column_text(stmt, 1);
    const char *verdict = (const char *)sqlite3_column_text(stmt, 5);
    int64_t op = sqlite3_column_int64(stmt, 2), state = sqlite3_column_int64(stmt, 4);
    if (!label || !kn_label_is_valid(label) || op < 0 || op > 1 || state < 0 ||
        state > KN_CHUNK_PROVEN)
        return damaged(jn, window, "a chunk's row makes no sense", err);
    *ret = (KnJournalChunk){.number = sqlite3_column_int64(stmt, 0),
                            .op = (KnChunkOp)op,
                            .rows = sqlite3_column_int64(stmt, 3),
                            .state = (KnChunkState)state};
    bool duplicate = verdict && strcmp(verdict, "duplicate") == 0;
    ret->verdict = duplicate ? KN_VERDICT_DUPLICATE : KN_VERDICT_LOADED;
    memcpy(ret->label, label, strlen(label) + 1);
    return KN_OK;
}

static KnCode read_chunks(Sqlite *jn, KnArena *arena, KnJournalWindow *win, KnErr *err)
{
    STMT_AUTO stmt = NULL;
    KN_TRY(prepare(jn,
                   "SELECT number, label, op, rows, state, verdict FROM chunks WHERE window = ?"
                   " ORDER BY number",
                   &stmt, err));
    bind(stmt, "i", win->id);
    win->chunks = kn_arena_try_array(arena, win->n_chunks + 1, sizeof(*win->chunks));
    if (!win->chunks)
        return damaged(jn, win->id, "its number of chunks makes no sense", err);
    size_t n = 0;
    bool more;
    for (;; ++n) {
        KN_TRY(step(jn, stmt, &more, err));
        if (!more)
            break;
        if (n == win->n_chunks || sqlite3_column_int64(stmt, 0) != (int64_t)n)
            return damaged(jn, win->id, "its chunks are not numbered from 0", err);
        KN_TRY(read_chunk(jn, stmt, win->id, &win->chunks[n], err));
    }
    return n == win->n_chunks ? KN_OK : damaged(jn, win->id, "chunks are missing", err);
}

static KnCode open_window(KnJournal *base, KnArena *arena, int64_t delivery_id,
                          KnJournalWindow **ret, KnErr *err)
{
    Sqlite *jn = (Sqlite *)base;
    STMT_AUTO stmt = NULL;
    bool found;
    KN_TRY(prepare(
        jn, "SELECT " WINDOW_COLUMNS ", plan FROM windows WHERE delivery = ? AND finished_ms = 0",
        &stmt, err));
    bind(stmt, "i", delivery_id);
    KN_TRY(step(jn, stmt, &found, err));
    if (!found) {
        *ret = NULL;
        return KN_OK;
    }
    KnJournalWindow *win = kn_arena_zalloc(arena, sizeof(*win));
    *win = read_window(arena, stmt);
    win->plan = text_at(arena, stmt, 15);
    KN_TRY(read_chunks(jn, arena, win, err));
    *ret = win;
    return KN_OK;
}

static KnCode insert_window(Sqlite *jn, int64_t delivery_id, const KnJournalWindow *win, KnErr *err)
{
    STMT_AUTO stmt = NULL;
    int changed;
    KN_TRY(
        prepare(jn,
                "INSERT INTO windows(delivery, epoch, from_id, to_id, operation, label, claim,"
                " upserts, deletes, chunks, plan, duplicates, bytes, seconds, started_ms,"
                " finished_ms) SELECT id, epoch, cursor, ?, ?, ?, ?, ?, ?, ?, ?, 0, ?, 0, ?, 0"
                " FROM deliveries WHERE id = ? AND epoch = ? AND cursor = ? AND NOT EXISTS"
                " (SELECT 1 FROM windows w WHERE w.delivery = deliveries.id AND finished_ms = 0)",
                &stmt, err));
    bind(stmt, "itttiiitiiiii", win->to, win->operation, win->window_label, win->claim_label,
         win->upserts, win->deletes, (int64_t)win->n_chunks, win->plan, win->bytes,
         kn_clock_wall_ms(), delivery_id, win->epoch, win->from);
    KN_TRY(finish(jn, stmt, &changed, err));
    if (changed != 1)
        return kn_err_set(err, KN_E_CONFLICT,
                          "state %s: another window was begun or delivered meanwhile", jn->path);
    return KN_OK;
}

static KnCode insert_chunks(Sqlite *jn, int64_t window, const KnJournalWindow *win, KnErr *err)
{
    STMT_AUTO stmt = NULL;
    KN_TRY(prepare(jn,
                   "INSERT INTO chunks(window, number, label, op, rows, state) VALUES(?,?,?,?,?,0)",
                   &stmt, err));
    for (size_t i = 0; i < win->n_chunks; ++i) {
        const KnJournalChunk *chunk = &win->chunks[i];
        bind(stmt, "iitii", window, chunk->number, chunk->label, (int64_t)chunk->op, chunk->rows);
        KN_TRY(finish(jn, stmt, NULL, err));
        (void)sqlite3_reset(stmt);
    }
    return KN_OK;
}

/* A first window says which table it is that is delivered from now on. */
static KnCode note_table(Sqlite *jn, int64_t delivery_id, const KnJournalWindow *win, KnErr *err)
{
    STMT_AUTO stmt = NULL;
    if (win->from >= 0 || !win->table_uuid)
        return KN_OK;
    KN_TRY(prepare(jn, "UPDATE deliveries SET table_uuid = ? WHERE id = ?", &stmt, err));
    bind(stmt, "ti", win->table_uuid, delivery_id);
    return finish(jn, stmt, NULL, err);
}

static KnCode insert_plan(Sqlite *jn, int64_t delivery_id, const KnJournalWindow *win,
                          int64_t *ret_id, KnErr *err)
{
    KN_TRY(insert_window(jn, delivery_id, win, err));
    int64_t id = sqlite3_last_insert_rowid(jn->db);
    KN_TRY(insert_chunks(jn, id, win, err));
    KN_TRY(note_table(jn, delivery_id, win, err));
    *ret_id = id;
    return KN_OK;
}

static KnCode plan(KnJournal *base, int64_t delivery_id, const KnJournalWindow *win,
                   int64_t *ret_id, KnErr *err)
{
    Sqlite *jn = (Sqlite *)base;
    int64_t id = 0;
    KN_FAULT("journal-plan", err);
    KN_TRY(begin(jn, err));
    KN_TRY(end(jn, insert_plan(jn, delivery_id, win, &id, err), err));
    *ret_id = id;
    KN_FAULT("journal-plan-written", err);
    return KN_OK;
}

static KnCode update_chunk(Sqlite *jn, int64_t window, int64_t number, KnChunkState state,
                           KnVerdictKind verdict, KnErr *err)
{
    STMT_AUTO stmt = NULL;
    int changed;
    bool proven = state == KN_CHUNK_PROVEN;
    KN_TRY(prepare(jn,
                   proven ? "UPDATE chunks SET state = 2, verdict = ?, proven_ms = ? WHERE"
                            " window = ? AND number = ? AND state = 1"
                          : "UPDATE chunks SET state = 1, verdict = ?, sent_ms = ? WHERE window = ?"
                            " AND number = ? AND state IN (0, 1)",
                   &stmt, err));
    bind(stmt, "tiii", proven ? kn_verdict_name(verdict) : "", kn_clock_wall_ms(), window, number);
    KN_TRY(finish(jn, stmt, &changed, err));
    if (changed != 1)
        return kn_err_set(err, KN_E_CONFLICT,
                          "state %s: chunk %" PRId64 " of window %" PRId64
                          " is not in the state it should be in",
                          jn->path, number, window);
    return KN_OK;
}

static KnCode mark(KnJournal *base, int64_t window, int64_t number, KnChunkState state,
                   KnVerdictKind verdict, KnErr *err)
{
    Sqlite *jn = (Sqlite *)base;
    bool proven = state == KN_CHUNK_PROVEN;
    if (state == KN_CHUNK_PLANNED || (proven && verdict > KN_VERDICT_DUPLICATE))
        return kn_err_set(err, KN_E_INVAL, "a chunk cannot be marked so");
    KN_TRY(kn_fault_at(proven ? "journal-proven" : "journal-sent", err));
    KN_TRY(begin(jn, err));
    KN_TRY(end(jn, update_chunk(jn, window, number, state, verdict, err), err));
    return kn_fault_at(proven ? "journal-proven-written" : "journal-sent-written", err);
}

/* ---- the cursor ---- */

static KnCode move_cursor(Sqlite *jn, int64_t delivery_id, const KnLoadAck *ack, KnErr *err)
{
    STMT_AUTO stmt = NULL;
    int changed;
    KN_TRY(prepare(jn,
                   "UPDATE deliveries SET cursor = ?, last_label = ?, status = 'ok', message = '',"
                   " updated_ms = ? WHERE id = ? AND cursor = ? AND epoch = ?",
                   &stmt, err));
    bind(stmt, "itiiii", kn_load_ack_to(ack), kn_load_ack_last_label(ack), kn_clock_wall_ms(),
         delivery_id, kn_load_ack_from(ack), kn_load_ack_epoch(ack));
    KN_TRY(finish(jn, stmt, &changed, err));
    if (changed != 1)
        return kn_err_set(
            err, KN_E_CONFLICT,
            "state %s: the cursor was moved by another process: it is not at snapshot "
            "%" PRId64 " any more",
            jn->path, kn_load_ack_from(ack));
    return KN_OK;
}

static KnCode finish_window(Sqlite *jn, int64_t delivery_id, const KnLoadAck *ack, KnErr *err)
{
    STMT_AUTO stmt = NULL;
    int changed;
    KN_TRY(
        prepare(jn,
                "UPDATE windows SET plan = NULL, duplicates = ?, bytes = ?, seconds = ?,"
                " finished_ms = ? WHERE id = ? AND delivery = ? AND to_id = ? AND finished_ms = 0"
                " AND NOT EXISTS (SELECT 1 FROM chunks WHERE window = windows.id AND state <> 2)",
                &stmt, err));
    bind(stmt, "iidiiii", kn_load_ack_duplicates(ack), kn_load_ack_bytes(ack),
         kn_load_ack_seconds(ack), kn_clock_wall_ms(), kn_load_ack_window(ack), delivery_id,
         kn_load_ack_to(ack));
    KN_TRY(finish(jn, stmt, &changed, err));
    if (changed != 1)
        return kn_err_set(err, KN_E_CONFLICT,
                          "state %s: window %" PRId64 " is not open or not proven", jn->path,
                          kn_load_ack_window(ack));
    return KN_OK;
}

/* Chunks of finished windows and windows beyond the kept history go. */
static KnCode prune(Sqlite *jn, int64_t delivery_id, int64_t window, KnErr *err)
{
    STMT_AUTO chunks = NULL;
    STMT_AUTO windows = NULL;
    KN_TRY(prepare(jn, "DELETE FROM chunks WHERE window = ?", &chunks, err));
    bind(chunks, "i", window);
    KN_TRY(finish(jn, chunks, NULL, err));
    KN_TRY(prepare(jn,
                   "DELETE FROM windows WHERE delivery = ?1 AND id <= (SELECT id FROM windows WHERE"
                   " delivery = ?1 ORDER BY id DESC LIMIT 1 OFFSET ?2)",
                   &windows, err));
    bind(windows, "ii", delivery_id, (int64_t)KEEP_HISTORY);
    return finish(jn, windows, NULL, err);
}

static KnCode move_all(Sqlite *jn, int64_t delivery_id, const KnLoadAck *ack, KnErr *err)
{
    KN_TRY(finish_window(jn, delivery_id, ack, err));
    KN_TRY(move_cursor(jn, delivery_id, ack, err));
    return prune(jn, delivery_id, kn_load_ack_window(ack), err);
}

static KnCode advance(KnJournal *base, int64_t delivery_id, const KnLoadAck *ack, KnErr *err)
{
    Sqlite *jn = (Sqlite *)base;
    KN_FAULT("before-cursor", err);
    KN_TRY(begin(jn, err));
    KN_TRY(end(jn, move_all(jn, delivery_id, ack, err), err));
    KN_FAULT("after-cursor", err);
    return KN_OK;
}

static KnCode start_epoch(Sqlite *jn, int64_t delivery_id, KnErr *err)
{
    static const char *const STEPS[] = {
        "DELETE FROM chunks WHERE window IN (SELECT id FROM windows WHERE delivery = ?1 AND"
        " finished_ms = 0) AND ?2",
        "DELETE FROM windows WHERE delivery = ?1 AND finished_ms = 0 AND ?2",
        "UPDATE deliveries SET epoch = epoch + 1, cursor = -1, last_label = '', status = 'new',"
        " message = '', updated_ms = ?2 WHERE id = ?1",
    };
    for (size_t i = 0; i < sizeof(STEPS) / sizeof(STEPS[0]); ++i) {
        STMT_AUTO stmt = NULL;
        KN_TRY(prepare(jn, STEPS[i], &stmt, err));
        bind(stmt, "ii", delivery_id, kn_clock_wall_ms());
        KN_TRY(finish(jn, stmt, NULL, err));
    }
    return KN_OK;
}

static KnCode reload(KnJournal *base, int64_t delivery_id, KnErr *err)
{
    Sqlite *jn = (Sqlite *)base;
    KN_TRY(begin(jn, err));
    return end(jn, start_epoch(jn, delivery_id, err), err);
}

static KnCode history(KnJournal *base, KnArena *arena, int64_t delivery_id, size_t limit,
                      KnJournalWindow **ret, size_t *ret_n, KnErr *err)
{
    Sqlite *jn = (Sqlite *)base;
    STMT_AUTO stmt = NULL;
    size_t n = 0, most = limit < KEEP_HISTORY ? limit : KEEP_HISTORY;
    bool more = false;
    KN_TRY(prepare(jn,
                   "SELECT " WINDOW_COLUMNS " FROM windows WHERE delivery = ? AND finished_ms <> 0"
                   " ORDER BY id DESC LIMIT ?",
                   &stmt, err));
    bind(stmt, "ii", delivery_id, (int64_t)most);
    KnJournalWindow *rows = kn_arena_zalloc(arena, (most + 1) * sizeof(*rows));
    KN_TRY(step(jn, stmt, &more, err));
    while (more && n < most) {
        rows[n++] = read_window(arena, stmt);
        KN_TRY(step(jn, stmt, &more, err));
    }
    *ret = rows;
    *ret_n = n;
    return KN_OK;
}

/* ---- opening ---- */

static void close_journal(KnJournal *base)
{
    Sqlite *jn = (Sqlite *)base;
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
    .open_window = open_window,
    .plan = plan,
    .mark = mark,
    .advance = advance,
    .reload = reload,
    .history = history,
    .close = close_journal,
};

static KnCode ask(Sqlite *jn, const char *sql, int64_t *ret, KnErr *err)
{
    STMT_AUTO stmt = NULL;
    bool row;
    KN_TRY(prepare(jn, sql, &stmt, err));
    KN_TRY(step(jn, stmt, &row, err));
    *ret = row ? sqlite3_column_int64(stmt, 0) : 0;
    return KN_OK;
}

static KnCode create_layout(Sqlite *jn, KnErr *err)
{
    KN_TRY(begin(jn, err));
    KnCode rc = run(jn, SCHEMA, err);
    if (rc == KN_OK)
        rc = run(jn, "PRAGMA application_id = 1802401140; PRAGMA user_version = 1", err);
    return end(jn, rc, err);
}

/* A new file gets our layout; any other must have it, whole. */
static KnCode check_layout(Sqlite *jn, KnErr *err)
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
    STMT_AUTO stmt = NULL;
    bool row;
    KN_TRY(prepare(jn, "PRAGMA quick_check(1)", &stmt, err));
    KN_TRY(step(jn, stmt, &row, err));
    const char *answer = row ? (const char *)sqlite3_column_text(stmt, 0) : NULL;
    if (!answer || strcmp(answer, "ok") != 0)
        return kn_err_set(
            err, KN_E_CORRUPT,
            "state %s is damaged (%.200s): restore it, or use another --state and reload", jn->path,
            answer ? answer : "no answer");
    return KN_OK;
}

static KnCode open_database(Sqlite *jn, KnErr *err)
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
        KN_TRY(run(jn, "PRAGMA journal_mode = DELETE; PRAGMA synchronous = EXTRA", err));
    return check_layout(jn, err);
}

KnCode kn_journal_sqlite_open(const char *path, KnJournalMode mode, KnJournal **ret, KnErr *err)
{
    if (mode == KN_JOURNAL_READ && access(path, F_OK) != 0)
        return kn_err_set(err, KN_E_NOTFOUND,
                          "state %s does not exist: nothing was delivered with it", path);
    Sqlite *jn = calloc(1, sizeof(*jn));
    if (!jn)
        abort();
    *jn = (Sqlite){.base = {.ops = &SQLITE_OPS, .mode = mode}, .path = strdup(path), .lock_fd = -1};
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
