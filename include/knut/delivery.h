/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * delivery.h - deliver every change of a table into an engine, exactly once.
 *
 * One call is one round: everything new since the last proven window is delivered, in order. The
 * journal (a SQLite file) holds what must outlive the process; two processes cannot use one journal
 * at a time (KN_E_BUSY).
 */
#include "knut/table.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum KnutMode {
    KNUT_DELIVER_UPSERT, /* deletes and updates are applied, by key where there is one */
    KNUT_DELIVER_APPEND, /* inserts only: a delete refuses the window */
} KnutMode;

typedef struct KnutDelivery {
    size_t size;         /* sizeof(KnutDelivery) */
    const char *sink;    /* "duckdb:FILE", "null:" */
    const char *target;  /* "t", "schema.t" */
    const char *journal; /* file; made when absent */
    KnutMode mode;
    const char *const *keys; /* NULL = the table's identifier fields, else whole rows */
    size_t n_keys;
    const char *ref;            /* branch; NULL = "main" */
    uint64_t chunk_bytes;       /* 0 = 64 MiB of source file for a chunk */
    uint64_t max_rewrite_bytes; /* 0 = 1 GiB */
    /* Called on a thread of the delivery after each window that arrived whole; may be NULL. */
    void (*window_delivered)(void *arg, int64_t snapshot, int64_t upserts, int64_t deletes);
    void *arg;
} KnutDelivery;

typedef struct KnutDelivered {
    int64_t from, to; /* cursor before and after: snapshot ids, -1 = none */
    int64_t windows, upserts, deletes;
} KnutDelivered;

/** ret is filled also on failure: windows that arrived before it are delivered. KN_E_REFUSED: an
 * operator must decide, the cursor is held. */
KnCode knut_deliver(KnutTable *table, const KnutDelivery *delivery, KnutDelivered *ret, KnErr *err);

#ifdef __cplusplus
}
#endif
