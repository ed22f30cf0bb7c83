/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * journal_sqlite_internal.h - what the files of the SQLite journal share: the handle, and
 * statements whose failures become errors with the file's name.
 */
#include <sqlite3.h>

#include "cdc/journal.h"

#define KN_JOURNAL_KEEP_HISTORY 1000 /* delivered windows kept for each delivery */

typedef struct KnSqliteJournal {
    KnJournal base;
    sqlite3 *db;
    char *path;
    int lock_fd; /* -1 = opened for reading */
} KnSqliteJournal;

KN_NODISCARD KnCode kn_sqlite_prepare(KnSqliteJournal *jn, const char *sql, sqlite3_stmt **ret,
                                      KnErr *err);
/** Binds by types: 'i' int64_t, 't' const char *, 'd' double. A failure shows in the step. */
void kn_sqlite_bind(sqlite3_stmt *stmt, const char *types, ...);
/** Runs to the end; *ret_changed (may be NULL): rows changed. */
KN_NODISCARD KnCode kn_sqlite_finish(KnSqliteJournal *jn, sqlite3_stmt *stmt, int *ret_changed,
                                     KnErr *err);
/** *ret_row: a row is there to be read. */
KN_NODISCARD KnCode kn_sqlite_step(KnSqliteJournal *jn, sqlite3_stmt *stmt, bool *ret_row,
                                   KnErr *err);
KN_NODISCARD KnCode kn_sqlite_exec(KnSqliteJournal *jn, const char *sql, KnErr *err);
const char *kn_sqlite_text(KnArena *arena, sqlite3_stmt *stmt, int col);
/** A transaction for writing; kn_sqlite_end() commits when rc is KN_OK, else rolls back. */
KN_NODISCARD KnCode kn_sqlite_begin(KnSqliteJournal *jn, KnErr *err);
KN_NODISCARD KnCode kn_sqlite_end(KnSqliteJournal *jn, KnCode rc, KnErr *err);

static inline void kn_sqlite_stmt_freep(sqlite3_stmt **stmt)
{
    (void)sqlite3_finalize(*stmt);
}
#define KN_STMT_AUTO __attribute__((cleanup(kn_sqlite_stmt_freep))) sqlite3_stmt *

/* The callbacks of KnJournalOps that are about windows (journal_sqlite_windows.c). */
KN_NODISCARD KnCode kn_sqlite_open_window(KnJournal *base, KnArena *arena, int64_t delivery,
                                          KnJournalWindow **ret, KnErr *err);
KN_NODISCARD KnCode kn_sqlite_plan(KnJournal *base, int64_t delivery, const KnJournalWindow *win,
                                   int64_t *ret_id, KnErr *err);
KN_NODISCARD KnCode kn_sqlite_mark(KnJournal *base, int64_t window, int64_t number,
                                   KnChunkState state, KnVerdictKind verdict, KnErr *err);
KN_NODISCARD KnCode kn_sqlite_hold(KnJournal *base, int64_t window, int64_t number, int64_t hold,
                                   KnErr *err);
KN_NODISCARD KnCode kn_sqlite_advance(KnJournal *base, int64_t delivery, const KnLoadAck *ack,
                                      KnErr *err);
KN_NODISCARD KnCode kn_sqlite_reload(KnJournal *base, int64_t delivery, KnErr *err);
KN_NODISCARD KnCode kn_sqlite_history(KnJournal *base, KnArena *arena, int64_t delivery,
                                      size_t limit, KnJournalHistory *ret, KnErr *err);
