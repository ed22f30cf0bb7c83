/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * engine.h - the embedded analytic engine (DuckDB 1.5.5, C API): instances, sessions, SQL, streams.
 *
 * The only folder that includes duckdb.h. A KnEngine is one database instance (its own buffer pool
 * and worker threads); a KnSession is one connection and holds at most one live KnStream (a second
 * query on the same session closes the first). Results stream: nothing is materialised by this
 * layer.
 *
 * Threads: KnEngine is thread-safe; a session and its stream belong to one thread at a time, except
 * for kn_session_interrupt() and kn_session_progress(), which any thread may call. Batches are
 * refcounted and may change threads.
 */
#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "engine/batch.h"

typedef struct KnEngine KnEngine;
typedef struct KnSession KnSession;
typedef struct KnStream KnStream;

typedef struct KnEngineOptions {
    const char *database; /* file, or NULL for in-memory */
    bool read_only;
    int threads;           /* 0 = number of processors */
    uint64_t memory_limit; /* bytes for the buffer pool; 0 = 256 MiB */
    const char *
        spill_dir; /* folder for spilled data; NULL = a new folder under TMPDIR, removed at close */
    uint64_t max_spill; /* bytes; 0 = no limit */
    bool any_order; /* INSERT may store rows in any order: needed for one from kn_feed() to run on
                       all threads. Queries without ORDER BY then come in any order too */
} KnEngineOptions;

/** Opens with: no autoinstall/autoload of extensions, no persistent secrets, TimeZone UTC,
 * insertion order preserved. A database held by another process is KN_E_BUSY; checks that the
 * library is 1.5.5. */
KN_NODISCARD KnCode kn_engine_open(const KnEngineOptions *opts, KnEngine **ret, KnErr *err);
KnEngine *
kn_engine_close(KnEngine *eng); /* accepts NULL, returns NULL; sessions are closed before */

KN_NODISCARD KnCode kn_session_open(KnEngine *eng, KnSession **ret, KnErr *err);
KnSession *kn_session_close(KnSession *ses);
KnEngine *kn_session_engine(const KnSession *ses);
void kn_session_interrupt(KnSession *ses); /* the running statement ends with KN_E_CANCELLED */

/** From now on the session's statements tell how far they are. */
KN_NODISCARD KnCode kn_session_measure(KnSession *ses, KnErr *err);
/** The part of the running statement that is done, 0 to 1, by the engine's estimate; negative = not
 * known. From any thread; ret_rows (may be NULL): rows of the sources that were read, an estimate
 * too. */
double kn_session_progress(const KnSession *ses, uint64_t *ret_rows);

/** One or more statements, run to the end. ret_changed (may be NULL): rows changed by the last one.
 */
KN_NODISCARD KnCode kn_session_exec(KnSession *ses, const char *sql, int64_t *ret_changed,
                                    KnErr *err);
/** One statement whose rows are streamed. The stream borrows the session. */
KN_NODISCARD KnCode kn_session_query(KnSession *ses, const char *sql, KnStream **ret, KnErr *err);
/** Called for each batch of a query, which it borrows; a failure ends the query. */
typedef KnCode (*KnBatchFn)(void *arg, KnBatch *batch, KnErr *err);
/** One statement to its end, its rows given to fn. */
KN_NODISCARD KnCode kn_session_visit(KnSession *ses, const char *sql, KnBatchFn fn, void *arg,
                                     KnErr *err);
/** First row, first column; NULL or no row is KN_E_NOTFOUND. */
KN_NODISCARD KnCode kn_session_query_i64(KnSession *ses, const char *sql, int64_t *ret, KnErr *err);
/** Same as text, in buf (reset first). Works for every type that casts to VARCHAR. */
KN_NODISCARD KnCode kn_session_query_text(KnSession *ses, const char *sql, KnBuf *ret, KnErr *err);

/** Next batch (1..2048 rows) or NULL at the end. The caller owns the reference. */
KN_NODISCARD KnCode kn_stream_next(KnStream *stream, KnBatch **ret, KnErr *err);
size_t kn_stream_n_columns(const KnStream *stream);
const char *kn_stream_column_name(const KnStream *stream,
                                  size_t col); /* lives as long as the stream */
const KnColType *kn_stream_column_type(const KnStream *stream, size_t col);
KnStream *kn_stream_close(KnStream *stream); /* accepts NULL; early close abandons the query */

/* Errors of the engine become: a missing file (HTTP 404 too) -> KN_E_NOTFOUND; other IO and HTTP,
 * no space
 * -> KN_E_IO; conversion, invalid Parquet -> KN_E_CORRUPT; parser, binder, catalog -> KN_E_INVAL;
 * out of memory -> KN_E_NOMEM (with "raise --memory-limit"); interrupt -> KN_E_CANCELLED;
 * constraint -> KN_E_EXISTS; transaction conflict -> KN_E_CONFLICT; permission -> KN_E_REFUSED; not
 * implemented -> KN_E_UNSUPPORTED. One line; where the engine names no file, those of the
 * statement's read_parquet(). */

/* ---- SQL text ---- */
void kn_sql_ident(KnBuf *buf, KnStr name); /* "na""me" */
void kn_sql_text(KnBuf *buf, KnStr value); /* 'va''lue' */
/** The same in the arena, for statements that are printed. */
const char *kn_sql_ident_of(KnArena *arena, const char *name);
const char *kn_sql_text_of(KnArena *arena, const char *value);
void kn_sql_blob(KnBuf *buf, KnStr bytes); /* '\xAB..'::BLOB */
/** A file path as read_parquet takes it literally: quoted, with glob characters made harmless. */
void kn_sql_path(KnBuf *buf, KnStr path);
/** The table expression read_parquet(...) of n paths, each taken literally, folder names like `k=v`
 * adding no columns: rows in file order, files in the order of the list. */
void kn_parquet_scan_sql(KnBuf *buf, const char *const *paths, size_t n);

/* ---- scalar functions of ours inside SQL (e.g. Iceberg's bucket transform) ---- */
typedef struct KnScalarCall {
    const KnVector *args;
    size_t n_args;
    size_t rows;
    void *out_data; /* physical array of the return type (int32_t for KN_COL_INT32, ...) */
    void *arg;      /* from registration */
} KnScalarCall;
typedef struct KnScalarFn {
    const char *name;
    const char *const *arg_types; /* SQL type names */
    size_t n_args;
    const char *return_type; /* fixed-width type; NULL in gives NULL out without a call for that
                                row's value */
    KnCode (*fn)(const KnScalarCall *call, KnErr *err);
    void *arg;
    bool any_more; /* more arguments of any types may follow those of arg_types. Then every call is
                      for all rows, NULLs among them, and has effects: it is made once for each row
                      and never left out */
} KnScalarFn;
/** Functions are visible to every session of the engine. Must not call the engine. */
KN_NODISCARD KnCode kn_engine_add_scalar(KnEngine *eng, const KnScalarFn *fn, KnErr *err);
/** Has a function of this name been added? */
bool kn_engine_has_scalar(KnEngine *eng, const char *name);

/* ---- rows of ours as a relation (how sinks hand batches to INSERT) ---- */
typedef struct KnFeed KnFeed;
typedef KnCode (*KnFeedNext)(void *arg, KnBatch **ret,
                             KnErr *err); /* NULL batch = end; called under a lock */
/** Names a relation: `SELECT * FROM kn_feed('<name>')` pulls from next() until its end. Column
 * names and types as given (SQL type names). Vectors are shared, not copied, where the engine
 * allows it. An error from next() fails the statement with that same error (code kept). */
typedef struct KnFeedOptions {
    const char *name;
    const char *const *column_names;
    const char *const *column_types;
    size_t n_columns;
    KnFeedNext next;
    void *arg;
} KnFeedOptions;
KN_NODISCARD KnCode kn_feed_open(KnEngine *eng, const KnFeedOptions *opts, KnFeed **ret,
                                 KnErr *err);
KnFeed *kn_feed_close(KnFeed *feed);
