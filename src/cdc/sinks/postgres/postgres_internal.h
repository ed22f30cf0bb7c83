/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * postgres_internal.h - what the files of this sink share.
 *
 * Two tables of ours lie beside the target, in its schema:
 *   _knut_loads(seq, label, delivery, target, win, rows, loaded_at)   one row a load, forever
 *   _knut_columns(target, position, field_id, name, type, field)      the target's columns by field
 *
 * A KnPg belongs to one thread at a time.
 */
#include <postgresql/libpq-fe.h>

#include "base/vec.h"
#include "cdc/sink.h"
#include "cdc/sinks/postgres/encode.h"
#include "engine/engine.h"

#define KN_PG_RELOAD "run `knut cdc reload` to deliver the table anew"

/* The place of a sink's spec, read. In an arena. */
typedef struct KnPgPlace {
    const char *where;           /* "postgresql://host:port/db": identity and messages */
    const char *const *keywords; /* for PQconnectdbParams(), NULL at the end */
    const char *const *values;   /* beside them */
    KnPgNanos nanos;
} KnPgPlace;
/** "//HOST:PORT/DB?sslmode=...&nanoseconds=...": KN_E_INVAL when it holds a user or a password, an
 * option that is not one of those allowed, or names no database (PGDATABASE and a service count).
 * Messages repeat nothing that may be secret. */
KN_NODISCARD KnCode kn_pg_place_parse(KnArena *arena, const char *place, KnPgPlace *ret,
                                      KnErr *err);

typedef struct KnPg {
    KnSink base;
    KnArena *arena; /* lives as long as the sink */
    KnPgPlace place;
    PGconn *conn;       /* NULL before the first and after a lost connection */
    bool was_connected; /* by this sink, at least once */
    const char *delivery;
    const char *schema_name, *table_name;
    const char *target;          /* quoted "schema"."table": for SQL and as the key in our tables */
    const char *loads, *columns; /* quoted names of our tables */
    KnArena *win_arena;          /* of the window that was begun */
    const char *win_id;
    const KnSchema *schema; /* of the window: lives as long as it */
    KnSinkMode mode;
    size_t n_keys;
    const char *const *keys;
} KnPg;

/* ---- connection.c ---- */
/** A connection that answered last time, or a new one; a server that is starting or gone is tried
 * again for a few seconds. */
KN_NODISCARD KnCode kn_pg_need(KnPg *pg, KnErr *err);
void kn_pg_disconnect(KnPg *pg);
/** Runs printf-like SQL; ret (may be NULL) is cleared by the caller. */
KN_NODISCARD KnCode kn_pg_run(KnPg *pg, PGresult **ret, KnErr *err, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
/** The first column of the first row, or -1 without a row. */
KN_NODISCARD KnCode kn_pg_ask(KnPg *pg, int64_t *ret, KnErr *err, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
/** The same for a SQL text of any length. */
KN_NODISCARD KnCode kn_pg_exec(KnPg *pg, const char *sql, PGresult **ret, KnErr *err);
/** Fills err from a failed result, or from the connection (res NULL). */
KnCode kn_pg_error(KnPg *pg, const PGresult *res, KnErr *err);
bool kn_pg_lost(const KnPg *pg);
bool kn_pg_sqlstate_is(const PGresult *res, const char *state);
void kn_pg_clear(PGresult **res);
#define KN_PG_AUTO __attribute__((cleanup(kn_pg_clear))) PGresult *
/** BEGIN and the target's lock: nobody else loads into it, and a load whose answer was lost is over
 * when it is had. */
KN_NODISCARD KnCode kn_pg_begin(KnPg *pg, KnErr *err);
/** ret_unknown (written always): the answer was lost, it may have been applied. The code is then
 * one that may be tried again: whoever comes next looks for what was to be committed. */
KN_NODISCARD KnCode kn_pg_commit(KnPg *pg, bool *ret_unknown, KnErr *err);
void kn_pg_rollback(KnPg *pg);
const char *kn_pg_ident(KnArena *arena, const char *name);
const char *kn_pg_text(KnArena *arena, const char *text);

/* ---- target.c ---- */
KN_NODISCARD KnCode kn_pg_claim(KnPg *pg, const KnSinkWindow *win, KnErr *err);
KN_NODISCARD KnCode kn_pg_find_label(KnPg *pg, const char *label, int64_t *ret_seq,
                                     int64_t *ret_rows, KnErr *err);
/** Inside a transaction. */
KN_NODISCARD KnCode kn_pg_record_load(KnPg *pg, const char *label, int64_t rows, KnErr *err);
KN_NODISCARD KnCode kn_pg_has_table(KnPg *pg, const char *table, bool *ret, KnErr *err);
KN_NODISCARD KnCode kn_pg_require_empty(KnPg *pg, bool *ret_empty, KnErr *err);

/* ---- columns.c, alter.c ---- */
typedef struct KnPgColumn {
    int32_t field_id; /* -1 for a column that is not ours */
    const char *name;
    const char *sql_type;
    const KnType *type; /* ours: the field's, with all ids */
} KnPgColumn;
typedef KN_VEC(KnPgColumn) KnPgColumnVec;

/** Can the target take the window's schema? KN_E_REFUSED lists what differs. */
KN_NODISCARD KnCode kn_pg_check_columns(KnPg *pg, const KnSinkWindow *win, KnErr *err);
KN_NODISCARD KnCode kn_pg_read_ours(KnPg *pg, KnArena *arena, KnPgColumnVec *ret, KnErr *err);
/** How a field with all its ids is kept as text. */
const char *kn_pg_field_text(KnArena *arena, const KnField *field);
/** Inside a transaction. */
KN_NODISCARD KnCode kn_pg_create_target(KnPg *pg, const KnSchema *schema, KnErr *err);
/** Brings the target to schema by field id and sees to the keys' unique index, in a transaction of
 * its own; nothing to do is cheap. */
KN_NODISCARD KnCode kn_pg_evolve(KnPg *pg, const KnSinkWindow *win, KnErr *err);
KN_NODISCARD KnCode kn_pg_ensure_key(KnPg *pg, const KnSinkWindow *win, KnErr *err);

/* ---- convert.c ---- */
/** An expression that turns a stored value of type `from` into `to`, nested fields matched by id;
 * NULL = it cannot be done without losing values. */
const char *kn_pg_convert(KnArena *arena, const char *expr, const KnType *from, const KnType *to);
/** What rows that are there already have in a new column, as SQL; NULL = NULL. */
const char *kn_pg_default(KnArena *arena, const KnField *field, KnPgNanos nanos);

/* ---- merge.c ---- */
/* A chunk on its way in. */
typedef struct KnPgLoad {
    KnPg *pg;
    KnArena *arena;
    const KnSinkChunk *chunk;
    const KnRowSource *rows;
    int64_t taken;
    bool source_failed; /* the error is about what was to be loaded, not about the destination */
} KnPgLoad;
/** Inside a transaction: the chunk's rows are copied and applied. */
KN_NODISCARD KnCode kn_pg_apply(KnPgLoad *load, KnErr *err);
