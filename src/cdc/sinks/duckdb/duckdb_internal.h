/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * duckdb_internal.h - what the files of this sink share.
 *
 * Two tables of ours lie beside the user's, in schema main of the destination file:
 *   _knut_loads(seq, label, delivery, target, win, rows, loaded_at)   one row a load; old ones are
 * forgotten _knut_columns(target, position, field_id, name, type, field)      the target's columns
 * by field id
 */
#include "cdc/sink.h"
#include "engine/engine.h"

typedef struct KnDuck {
    KnSink base;
    KnArena *arena; /* lives as long as the sink */
    KnEngine *eng;
    KnSession *ses;
    const char *path;
    const char *delivery;
    const char *schema_name, *table_name;
    const char *target; /* quoted "schema"."table": for SQL and as the key in our tables */
    bool new_file;      /* this process made the file, and nothing is in it yet */
    KnArena *win_arena; /* of the window that was begun */
    const char *win_id;
    const KnSchema *schema; /* copies of the window's */
    KnSinkMode mode;
    size_t n_keys;
    const char *const *keys;
} KnDuck;

/** The destination's half of the history check, the claim and the clearing; creates the target. */
KN_NODISCARD KnCode kn_duck_claim(KnDuck *duck, const KnSinkWindow *win, KnErr *err);
KN_NODISCARD KnCode kn_duck_find_label(KnDuck *duck, const char *label, bool *ret_found,
                                       int64_t *ret_seq, int64_t *ret_rows, KnErr *err);
/** Inside a transaction. */
KN_NODISCARD KnCode kn_duck_record_load(KnDuck *duck, const char *label, int64_t rows, KnErr *err);

KN_NODISCARD KnCode kn_duck_has_table(KnDuck *duck, const char *schema, const char *table,
                                      bool *ret, KnErr *err);
/** Can the target take the window's schema? KN_E_REFUSED lists what differs. */
KN_NODISCARD KnCode kn_duck_check_columns(KnDuck *duck, const KnSinkWindow *win, KnErr *err);
/** Brings the target to schema by field id, in a transaction of its own; nothing to do is cheap. */
KN_NODISCARD KnCode kn_duck_evolve(KnDuck *duck, const KnSchema *schema, KnErr *err);
KN_NODISCARD KnCode kn_duck_create_target(KnDuck *duck, const KnSchema *schema, KnErr *err);
/** printf-like SQL, run to the end; for statements of bounded size. */
KN_NODISCARD KnCode kn_duck_exec(KnDuck *duck, int64_t *ret_changed, KnErr *err, const char *fmt,
                                 ...) __attribute__((format(printf, 4, 5)));
KN_NODISCARD KnCode kn_duck_ask(KnDuck *duck, int64_t *ret, KnErr *err, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

/** An expression that turns a value of type `from` into `to`, fields matched by id at any depth;
 * NULL = it cannot be done without losing values. */
const char *kn_duck_convert(KnArena *arena, const char *expr, const KnType *from, const KnType *to);
/** What rows that are there already have in a new column; NULL = NULL. */
const char *kn_duck_default(KnArena *arena, const KnField *field);
