/* SPDX-License-Identifier: Apache-2.0 */
/*
 * journal_sqlite_windows.c - windows and chunks in the SQLite journal, and the cursor.
 *
 * What is read back is checked: numbers in range, chunks numbered from 0, none missing.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/fault.h"
#include "cdc/journal_sqlite_internal.h"

/* ---- windows and chunks ---- */

/* What a sent chunk has for a verdict while its rows are held: this and a number. A program that
 * does not know it takes the chunk for one that was sent, which is safe. */
#define HELD "held "

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
        .operation = kn_sqlite_text(arena, stmt, 4),
        .window_label = kn_sqlite_text(arena, stmt, 5),
        .claim_label = kn_sqlite_text(arena, stmt, 6),
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

static KnCode damaged(const KnSqliteJournal *jn, int64_t window, const char *what, KnErr *err)
{
    return kn_err_set(err, KN_E_CORRUPT, "state %s: window %" PRId64 ": %s; restore it, or reload",
                      jn->path, window, what);
}

static KnCode read_chunk(KnSqliteJournal *jn, sqlite3_stmt *stmt, int64_t window,
                         KnJournalChunk *ret, KnErr *err)
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
    ret->hold = -1;
    if (ret->state == KN_CHUNK_SENT && verdict && strncmp(verdict, HELD, strlen(HELD)) == 0 &&
        (!kn_str_to_i64(kn_str(verdict + strlen(HELD)), &ret->hold) || ret->hold < 0))
        return damaged(jn, window, "what is held of a chunk makes no sense", err);
    ret->verdict = KN_VERDICT_LOADED;
    for (KnVerdictKind kind = KN_VERDICT_LOADED; verdict && kind <= KN_VERDICT_WRONG; ++kind)
        if (strcmp(verdict, kn_verdict_name(kind)) == 0)
            ret->verdict = kind;
    memcpy(ret->label, label, strlen(label) + 1);
    return KN_OK;
}

static KnCode read_chunks(KnSqliteJournal *jn, KnArena *arena, KnJournalWindow *win, KnErr *err)
{
    KN_STMT_AUTO stmt = NULL;
    KN_TRY(kn_sqlite_prepare(
        jn,
        "SELECT number, label, op, rows, state, verdict FROM chunks WHERE window = ?"
        " ORDER BY number",
        &stmt, err));
    kn_sqlite_bind(stmt, "i", win->id);
    win->chunks = kn_arena_try_array(arena, win->n_chunks + 1, sizeof(*win->chunks));
    if (!win->chunks)
        return damaged(jn, win->id, "its number of chunks makes no sense", err);
    size_t n = 0;
    bool more;
    for (;; ++n) {
        KN_TRY(kn_sqlite_step(jn, stmt, &more, err));
        if (!more)
            break;
        if (n == win->n_chunks || sqlite3_column_int64(stmt, 0) != (int64_t)n)
            return damaged(jn, win->id, "its chunks are not numbered from 0", err);
        KN_TRY(read_chunk(jn, stmt, win->id, &win->chunks[n], err));
    }
    return n == win->n_chunks ? KN_OK : damaged(jn, win->id, "chunks are missing", err);
}

KnCode kn_sqlite_open_window(KnJournal *base, KnArena *arena, int64_t delivery_id,
                             KnJournalWindow **ret, KnErr *err)
{
    KnSqliteJournal *jn = (KnSqliteJournal *)base;
    KN_STMT_AUTO stmt = NULL;
    bool found;
    KN_TRY(kn_sqlite_prepare(
        jn, "SELECT " WINDOW_COLUMNS ", plan FROM windows WHERE delivery = ? AND finished_ms = 0",
        &stmt, err));
    kn_sqlite_bind(stmt, "i", delivery_id);
    KN_TRY(kn_sqlite_step(jn, stmt, &found, err));
    if (!found) {
        *ret = NULL;
        return KN_OK;
    }
    KnJournalWindow *win = kn_arena_zalloc(arena, sizeof(*win));
    *win = read_window(arena, stmt);
    win->plan = kn_sqlite_text(arena, stmt, 15);
    KN_TRY(read_chunks(jn, arena, win, err));
    *ret = win;
    return KN_OK;
}

static KnCode insert_window(KnSqliteJournal *jn, int64_t delivery_id, const KnJournalWindow *win,
                            KnErr *err)
{
    KN_STMT_AUTO stmt = NULL;
    int changed;
    KN_TRY(kn_sqlite_prepare(
        jn,
        "INSERT INTO windows(delivery, epoch, from_id, to_id, operation, label, claim,"
        " upserts, deletes, chunks, plan, duplicates, bytes, seconds, started_ms,"
        " finished_ms) SELECT id, epoch, cursor, ?, ?, ?, ?, ?, ?, ?, ?, 0, ?, 0, ?, 0"
        " FROM deliveries WHERE id = ? AND epoch = ? AND cursor = ? AND NOT EXISTS"
        " (SELECT 1 FROM windows w WHERE w.delivery = deliveries.id AND finished_ms = 0)",
        &stmt, err));
    kn_sqlite_bind(stmt, "itttiiitiiiii", win->to, win->operation, win->window_label,
                   win->claim_label, win->upserts, win->deletes, (int64_t)win->n_chunks, win->plan,
                   win->bytes, kn_clock_wall_ms(), delivery_id, win->epoch, win->from);
    KN_TRY(kn_sqlite_finish(jn, stmt, &changed, err));
    if (changed != 1)
        return kn_err_set(err, KN_E_CONFLICT,
                          "state %s: another window was begun or delivered meanwhile", jn->path);
    return KN_OK;
}

static KnCode insert_chunks(KnSqliteJournal *jn, int64_t window, const KnJournalWindow *win,
                            KnErr *err)
{
    KN_STMT_AUTO stmt = NULL;
    KN_TRY(kn_sqlite_prepare(
        jn, "INSERT INTO chunks(window, number, label, op, rows, state) VALUES(?,?,?,?,?,0)", &stmt,
        err));
    for (size_t i = 0; i < win->n_chunks; ++i) {
        const KnJournalChunk *chunk = &win->chunks[i];
        kn_sqlite_bind(stmt, "iitii", window, chunk->number, chunk->label, (int64_t)chunk->op,
                       chunk->rows);
        KN_TRY(kn_sqlite_finish(jn, stmt, NULL, err));
        (void)sqlite3_reset(stmt);
    }
    return KN_OK;
}

/* A first window says which table it is that is delivered from now on. */
static KnCode note_table(KnSqliteJournal *jn, int64_t delivery_id, const KnJournalWindow *win,
                         KnErr *err)
{
    KN_STMT_AUTO stmt = NULL;
    if (win->from >= 0 || !win->table_uuid)
        return KN_OK;
    KN_TRY(kn_sqlite_prepare(jn, "UPDATE deliveries SET table_uuid = ? WHERE id = ?", &stmt, err));
    kn_sqlite_bind(stmt, "ti", win->table_uuid, delivery_id);
    return kn_sqlite_finish(jn, stmt, NULL, err);
}

static KnCode insert_plan(KnSqliteJournal *jn, int64_t delivery_id, const KnJournalWindow *win,
                          int64_t *ret_id, KnErr *err)
{
    KN_TRY(insert_window(jn, delivery_id, win, err));
    int64_t id = sqlite3_last_insert_rowid(jn->db);
    KN_TRY(insert_chunks(jn, id, win, err));
    KN_TRY(note_table(jn, delivery_id, win, err));
    *ret_id = id;
    return KN_OK;
}

KnCode kn_sqlite_plan(KnJournal *base, int64_t delivery_id, const KnJournalWindow *win,
                      int64_t *ret_id, KnErr *err)
{
    KnSqliteJournal *jn = (KnSqliteJournal *)base;
    int64_t id = 0;
    KN_FAULT("journal-plan", err);
    KN_TRY(kn_sqlite_begin(jn, err));
    KN_TRY(kn_sqlite_end(jn, insert_plan(jn, delivery_id, win, &id, err), err));
    *ret_id = id;
    KN_FAULT("journal-plan-written", err);
    return KN_OK;
}

static KnCode update_chunk(KnSqliteJournal *jn, int64_t window, int64_t number, KnChunkState state,
                           KnVerdictKind verdict, KnErr *err)
{
    KN_STMT_AUTO stmt = NULL;
    int changed;
    bool proven = state == KN_CHUNK_PROVEN;
    KN_TRY(kn_sqlite_prepare(
        jn,
        proven ? "UPDATE chunks SET state = 2, verdict = ?, proven_ms = ? WHERE"
                 " window = ? AND number = ? AND state = 1"
               : "UPDATE chunks SET state = 1, verdict = ?, sent_ms = ? WHERE window = ?"
                 " AND number = ? AND state IN (0, 1)",
        &stmt, err));
    kn_sqlite_bind(stmt, "tiii", proven ? kn_verdict_name(verdict) : "", kn_clock_wall_ms(), window,
                   number);
    KN_TRY(kn_sqlite_finish(jn, stmt, &changed, err));
    if (changed != 1)
        return kn_err_set(err, KN_E_CONFLICT,
                          "state %s: chunk %" PRId64 " of window %" PRId64
                          " is not in the state it should be in",
                          jn->path, number, window);
    return KN_OK;
}

KnCode kn_sqlite_mark(KnJournal *base, int64_t window, int64_t number, KnChunkState state,
                      KnVerdictKind verdict, KnErr *err)
{
    KnSqliteJournal *jn = (KnSqliteJournal *)base;
    bool proven = state == KN_CHUNK_PROVEN;
    if (state == KN_CHUNK_PLANNED ||
        (proven && verdict > KN_VERDICT_DUPLICATE && verdict != KN_VERDICT_WRONG))
        return kn_err_set(err, KN_E_INVAL, "a chunk cannot be marked so");
    KN_TRY(kn_fault_at(proven ? "journal-proven" : "journal-sent", err));
    KN_TRY(kn_sqlite_begin(jn, err));
    KN_TRY(kn_sqlite_end(jn, update_chunk(jn, window, number, state, verdict, err), err));
    return kn_fault_at(proven ? "journal-proven-written" : "journal-sent-written", err);
}

static KnCode update_hold(KnSqliteJournal *jn, int64_t window, int64_t number, int64_t hold,
                          KnErr *err)
{
    KN_STMT_AUTO stmt = NULL;
    char text[40];
    int changed;
    (void)snprintf(text, sizeof(text), HELD "%" PRId64, hold);
    KN_TRY(kn_sqlite_prepare(
        jn, "UPDATE chunks SET verdict = ? WHERE window = ? AND number = ? AND state = 1", &stmt,
        err));
    kn_sqlite_bind(stmt, "tii", text, window, number);
    KN_TRY(kn_sqlite_finish(jn, stmt, &changed, err));
    if (changed != 1)
        return kn_err_set(err, KN_E_CONFLICT,
                          "state %s: chunk %" PRId64 " of window %" PRId64 " is not sent", jn->path,
                          number, window);
    return KN_OK;
}

KnCode kn_sqlite_hold(KnJournal *base, int64_t window, int64_t number, int64_t hold, KnErr *err)
{
    KnSqliteJournal *jn = (KnSqliteJournal *)base;
    if (hold < 0)
        return kn_err_set(err, KN_E_INVAL, "rows cannot be held by a negative number");
    KN_FAULT("journal-held", err);
    KN_TRY(kn_sqlite_begin(jn, err));
    KN_TRY(kn_sqlite_end(jn, update_hold(jn, window, number, hold, err), err));
    return kn_fault_at("journal-held-written", err);
}

/* ---- the cursor ---- */

static KnCode move_cursor(KnSqliteJournal *jn, int64_t delivery_id, const KnLoadAck *ack,
                          KnErr *err)
{
    KN_STMT_AUTO stmt = NULL;
    int changed;
    KN_TRY(kn_sqlite_prepare(
        jn,
        "UPDATE deliveries SET cursor = ?, last_label = ?, status = 'ok', message = '',"
        " updated_ms = ? WHERE id = ? AND cursor = ? AND epoch = ?",
        &stmt, err));
    kn_sqlite_bind(stmt, "itiiii", kn_load_ack_to(ack), kn_load_ack_last_label(ack),
                   kn_clock_wall_ms(), delivery_id, kn_load_ack_from(ack), kn_load_ack_epoch(ack));
    KN_TRY(kn_sqlite_finish(jn, stmt, &changed, err));
    if (changed != 1)
        return kn_err_set(
            err, KN_E_CONFLICT,
            "state %s: the cursor was moved by another process: it is not at snapshot "
            "%" PRId64 " any more",
            jn->path, kn_load_ack_from(ack));
    return KN_OK;
}

static KnCode finish_window(KnSqliteJournal *jn, int64_t delivery_id, const KnLoadAck *ack,
                            KnErr *err)
{
    KN_STMT_AUTO stmt = NULL;
    int changed;
    KN_TRY(kn_sqlite_prepare(
        jn,
        "UPDATE windows SET plan = NULL, duplicates = ?, bytes = ?, seconds = ?,"
        " finished_ms = ? WHERE id = ? AND delivery = ? AND to_id = ? AND finished_ms = 0"
        " AND NOT EXISTS (SELECT 1 FROM chunks WHERE window = windows.id AND state <> 2)",
        &stmt, err));
    kn_sqlite_bind(stmt, "iidiiii", kn_load_ack_duplicates(ack), kn_load_ack_bytes(ack),
                   kn_load_ack_seconds(ack), kn_clock_wall_ms(), kn_load_ack_window(ack),
                   delivery_id, kn_load_ack_to(ack));
    KN_TRY(kn_sqlite_finish(jn, stmt, &changed, err));
    if (changed != 1)
        return kn_err_set(err, KN_E_CONFLICT,
                          "state %s: window %" PRId64 " is not open or not proven", jn->path,
                          kn_load_ack_window(ack));
    return KN_OK;
}

/* Chunks of finished windows and windows beyond the kept history go. */
static KnCode prune(KnSqliteJournal *jn, int64_t delivery_id, int64_t window, KnErr *err)
{
    KN_STMT_AUTO chunks = NULL;
    KN_STMT_AUTO windows = NULL;
    KN_TRY(kn_sqlite_prepare(jn, "DELETE FROM chunks WHERE window = ?", &chunks, err));
    kn_sqlite_bind(chunks, "i", window);
    KN_TRY(kn_sqlite_finish(jn, chunks, NULL, err));
    KN_TRY(kn_sqlite_prepare(
        jn,
        "DELETE FROM windows WHERE delivery = ?1 AND id <= (SELECT id FROM windows WHERE"
        " delivery = ?1 ORDER BY id DESC LIMIT 1 OFFSET ?2)",
        &windows, err));
    kn_sqlite_bind(windows, "ii", delivery_id, (int64_t)KN_JOURNAL_KEEP_HISTORY);
    return kn_sqlite_finish(jn, windows, NULL, err);
}

static KnCode move_all(KnSqliteJournal *jn, int64_t delivery_id, const KnLoadAck *ack, KnErr *err)
{
    KN_TRY(finish_window(jn, delivery_id, ack, err));
    KN_TRY(move_cursor(jn, delivery_id, ack, err));
    return prune(jn, delivery_id, kn_load_ack_window(ack), err);
}

KnCode kn_sqlite_advance(KnJournal *base, int64_t delivery_id, const KnLoadAck *ack, KnErr *err)
{
    KnSqliteJournal *jn = (KnSqliteJournal *)base;
    KN_FAULT("before-cursor", err);
    KN_TRY(kn_sqlite_begin(jn, err));
    KN_TRY(kn_sqlite_end(jn, move_all(jn, delivery_id, ack, err), err));
    KN_FAULT("after-cursor", err);
    return KN_OK;
}

static KnCode start_epoch(KnSqliteJournal *jn, int64_t delivery_id, KnErr *err)
{
    static const char *const STEPS[] = {
        "DELETE FROM chunks WHERE window IN (SELECT id FROM windows WHERE delivery = ?1 AND"
        " finished_ms = 0) AND ?2",
        "DELETE FROM windows WHERE delivery = ?1 AND finished_ms = 0 AND ?2",
        "UPDATE deliveries SET epoch = epoch + 1, cursor = -1, last_label = '', status = 'new',"
        " message = '', updated_ms = ?2 WHERE id = ?1",
    };
    for (size_t i = 0; i < sizeof(STEPS) / sizeof(STEPS[0]); ++i) {
        KN_STMT_AUTO stmt = NULL;
        KN_TRY(kn_sqlite_prepare(jn, STEPS[i], &stmt, err));
        kn_sqlite_bind(stmt, "ii", delivery_id, kn_clock_wall_ms());
        KN_TRY(kn_sqlite_finish(jn, stmt, NULL, err));
    }
    return KN_OK;
}

KnCode kn_sqlite_reload(KnJournal *base, int64_t delivery_id, KnErr *err)
{
    KnSqliteJournal *jn = (KnSqliteJournal *)base;
    KN_TRY(kn_sqlite_begin(jn, err));
    return kn_sqlite_end(jn, start_epoch(jn, delivery_id, err), err);
}

KnCode kn_sqlite_history(KnJournal *base, KnArena *arena, int64_t delivery_id, size_t limit,
                         KnJournalHistory *ret, KnErr *err)
{
    KnSqliteJournal *jn = (KnSqliteJournal *)base;
    KN_STMT_AUTO stmt = NULL;
    size_t n = 0, most = limit < KN_JOURNAL_KEEP_HISTORY ? limit : KN_JOURNAL_KEEP_HISTORY;
    bool more = false;
    KN_TRY(kn_sqlite_prepare(jn,
                             "SELECT " WINDOW_COLUMNS
                             " FROM windows WHERE delivery = ? AND finished_ms <> 0"
                             " ORDER BY id DESC LIMIT ?",
                             &stmt, err));
    kn_sqlite_bind(stmt, "ii", delivery_id, (int64_t)most);
    KnJournalWindow *rows = kn_arena_zalloc(arena, (most + 1) * sizeof(*rows));
    KN_TRY(kn_sqlite_step(jn, stmt, &more, err));
    while (more && n < most) {
        rows[n++] = read_window(arena, stmt);
        KN_TRY(kn_sqlite_step(jn, stmt, &more, err));
    }
    *ret = (KnJournalHistory){.n = n, .windows = rows};
    return KN_OK;
}
