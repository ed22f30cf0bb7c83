/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * engine_internal.h - what the files of this folder share; nobody else includes it.
 *
 * Lock order: an engine's lock is never held while a statement of a session runs. The lock guards
 * the administrative connection (which registers functions and resolves type names) and the feeds.
 */
#include <duckdb.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/types.h>

#include "base/arena.h"
#include "base/vec.h"
#include "engine/engine.h"

#define KN_ENGINE_VERSION "v1.5.5"
#define KN_ENGINE_MAX_SQL ((size_t)256 << 20)

/* A scope of remote names, and a hash of what the engine was told about it. */
typedef struct KnEngineSecret {
    char *scope;
    uint64_t hash;
} KnEngineSecret;

struct KnEngine {
    duckdb_database db;
    duckdb_connection admin;
    pthread_mutex_t lock;
    KnFeed *feeds;                /* open feeds, linked by next */
    bool feed_registered;         /* the table function kn_feed exists */
    KN_VEC(const char *) scalars; /* names of functions of ours; their entries own them */
    char *own_spill;              /* folder made here and removed at close; NULL = the caller's */
    atomic_int n_sessions;
    atomic_uint_fast64_t n_calls; /* of functions of ours, so that their ends can be seen */
    struct KnOpenFile *open_file;
    bool has_httpfs; /* the extension is loaded (remote.c) */
    KN_VEC(KnEngineSecret) secrets;
};

struct KnSession {
    KnEngine *eng;
    duckdb_connection con;
    KnStream *live;
};

/* Column types and names of a result, shared by its stream and all its batches. */
typedef struct KnResultTypes {
    atomic_size_t refs;
    KnArena *arena;
    size_t n;
    const KnColType *types;
    const char **names;
} KnResultTypes;

/** Types of a result, with one reference. */
KnResultTypes *kn_result_types_new(duckdb_result *res);
/** The same of logical types (which stay the caller's), columns without names. */
KnResultTypes *kn_result_types_of(const duckdb_logical_type *logical, size_t n);
KnResultTypes *kn_result_types_ref(KnResultTypes *types);
KnResultTypes *kn_result_types_unref(KnResultTypes *types);

/** Build a type tree in arena. */
void kn_col_type_fill(KnArena *arena, duckdb_logical_type from, KnColType *ret);
/** Equal in everything that decides the layout; names of struct fields do not count. */
bool kn_col_type_same_layout(const KnColType *a, const KnColType *b);
const char *kn_col_kind_name(KnColKind kind);
/** Bytes of one value in a vector's array; 0 for STRUCT, NULL and OTHER. */
size_t kn_col_type_size(const KnColType *type);

/** Takes the chunk. One reference to a batch of all its rows. */
KnBatch *kn_batch_new(duckdb_data_chunk chunk, KnResultTypes *types);
duckdb_data_chunk kn_batch_chunk(const KnBatch *batch, size_t *ret_first);
/** Borrowed. */
KnResultTypes *kn_batch_types(const KnBatch *batch);
const KnColType *kn_batch_column_type(const KnBatch *batch, size_t col);
/** A view of the engine's own vector from row first on. */
KnVector kn_vector_view(const KnColType *type, duckdb_vector vec, size_t first);

/** Borrowed: the result behind a stream, and the connection it runs on (NULL once detached). */
duckdb_result *kn_stream_result(KnStream *stream);
duckdb_connection kn_stream_connection(const KnStream *stream);

/** Classify one of the engine's messages, write it as one line into err, return its code. */
KnCode kn_engine_error(KnErr *err, const char *msg);
/* Which files a statement reads, as far as its text tells: the first path and how many. */
typedef struct KnScanFiles {
    char first[200];
    size_t n;
} KnScanFiles;
/** The list of the first read_parquet() in sql. */
void kn_scan_files_find(const char *sql, KnScanFiles *ret);
/** kn_engine_error(), and when the message names no file those of the statement are added. */
KnCode kn_engine_error_in(KnErr *err, const char *msg, const KnScanFiles *files);
/** A text of code and message that survives a trip through the engine's own error texts; for
 * callbacks. */
const char *kn_engine_error_pack(const KnErr *err, KnCode code, char out[640]);

/** After the end of a statement: what functions of ours did in it on the engine's threads happened
 * before what the caller does next (frees what they read). The engine orders them by its own means;
 * this says so in the terms of the C memory model, which checkers of races understand. */
void kn_engine_calls_seen(KnEngine *eng);

/** The engine's type of an SQL type name; the caller destroys it. */
KN_NODISCARD KnCode kn_engine_type_parse(KnEngine *eng, const char *name, duckdb_logical_type *ret,
                                         KnErr *err);

/** Ours, small and fixed: aborts when memory is out. */
static inline void *kn_engine_zalloc(size_t size)
{
    void *p = calloc(1, size);
    if (!p)
        abort();
    return p;
}
