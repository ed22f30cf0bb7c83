/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * postgres_internal.h - what the files of this sink share.
 *
 * Two tables of ours lie beside the target, in its schema:
 *   _knut_loads(seq, label, delivery, target, win, rows, loaded_at)   one row a load; old ones are
 * forgotten _knut_columns(target, position, field_id, name, type, field)      the target's columns
 * by field
 *
 * A KnPg belongs to one thread at a time.
 */
#include "base/vec.h"
#include "cdc/sink.h"
#include "engine/engine.h"
#include "postgres/encode.h"
#include "postgres/link.h"

#define KN_PG_RELOAD "run `knut cdc reload` to deliver the table anew"

typedef struct KnPg {
    KnSink base;
    KnArena *arena; /* lives as long as the sink */
    KnPgLink link;
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
