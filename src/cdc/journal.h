/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * journal.h - what must outlive the process: cursors, epochs, plans, and how far each chunk is.
 *
 * One journal serves all deliveries of a deployment. Every call is one durable transaction: when it
 * returns KN_OK, the fact survives power loss. A chunk goes planned -> sent -> proven and never
 * back; what is held of a sent one is forgotten when it is sent again. The cursor moves only by
 * advance(), which takes an ack and compares: it moves from the ack's old position and epoch or not
 * at all (KN_E_CONFLICT). reload() does not move it: it starts a new epoch in which nothing has
 * been delivered.
 *
 * One thread at a time. A journal opened for writing is held exclusively (KN_E_BUSY names the
 * holder's process, host and time); the hold ends with the process, however it ends.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "cdc/ack.h"
#include "cdc/label.h"
#include "cdc/sink.h"

typedef struct KnJournal KnJournal;

typedef struct KnDeliveryKey {
    const char *source; /* catalog id # table */
    const char *sink;   /* "duckdb:/abs/path" */
    const char *target; /* "schema.table" */
} KnDeliveryKey;

/* A delivery's row. Texts live in the arena given. */
typedef struct KnDeliveryRow {
    int64_t id;
    KnDeliveryKey key;
    const char *table;      /* the source's name, for people */
    const char *table_uuid; /* "" = not known (v1) */
    int64_t cursor;         /* snapshot id; -1 = nothing delivered in this epoch */
    int64_t epoch;          /* from 0 */
    const char *status;     /* "new", "ok", "idle", "refused", "failed" */
    const char *message;    /* of the last refusal or failure; "" = none */
    const char *last_label; /* the last proven load of this epoch; "" = none */
    int64_t updated_ms;
} KnDeliveryRow;

typedef enum KnChunkState { KN_CHUNK_PLANNED, KN_CHUNK_SENT, KN_CHUNK_PROVEN } KnChunkState;

typedef struct KnJournalChunk {
    int64_t number;
    char label[KN_LABEL_SIZE];
    KnChunkOp op;
    int64_t rows; /* planned */
    KnChunkState state;
    KnVerdictKind verdict; /* once proven: LOADED, DUPLICATE or WRONG */
    int64_t hold;          /* sent: what the destination holds its rows by; -1 = nothing */
} KnJournalChunk;

/* A window: open while it is being delivered, history afterwards. */
typedef struct KnJournalWindow {
    int64_t id;
    int64_t epoch;
    int64_t from, to; /* from -1 = first window */
    const char *operation;
    const char *window_label; /* kn_label_window() */
    const char *claim_label;  /* first windows; "" = none */
    const char *table_uuid;   /* first windows: becomes the delivery's; not read back */
    int64_t upserts, deletes; /* planned */
    const char *plan;         /* text; NULL in history */
    size_t n_chunks;
    KnJournalChunk *chunks; /* NULL in history */
    bool delivered;
    int64_t duplicates, bytes;
    double seconds;
    int64_t started_ms, finished_ms; /* finished 0 = open */
} KnJournalWindow;

typedef struct KnJournalHistory {
    size_t n;
    const KnJournalWindow *windows; /* newest first */
} KnJournalHistory;

/* Every callback is required. Order: any, until close. */
typedef struct KnJournalOps {
    const char *kind; /* "sqlite" */
    /** The delivery of key; made (cursor -1, epoch 0) when it is new and create is set, else
     * KN_E_NOTFOUND. */
    KnCode (*delivery)(KnJournal *jn, KnArena *arena, const KnDeliveryRow *want, bool create,
                       KnDeliveryRow *ret, KnErr *err);
    KnCode (*deliveries)(KnJournal *jn, KnArena *arena, KnDeliveryRow **ret, size_t *ret_n,
                         KnErr *err);
    KnCode (*set_status)(KnJournal *jn, int64_t delivery, const char *status, const char *message,
                         KnErr *err);
    /** The window in flight, or NULL in *ret. */
    KnCode (*open_window)(KnJournal *jn, KnArena *arena, int64_t delivery, KnJournalWindow **ret,
                          KnErr *err);
    /** Records a window with its chunks. KN_E_CONFLICT: one is open already, or its `from` and
     * epoch are not the delivery's. */
    KnCode (*plan)(KnJournal *jn, int64_t delivery, const KnJournalWindow *win, int64_t *ret_id,
                   KnErr *err);
    /** Moves a chunk one state forward. verdict counts for PROVEN only. */
    KnCode (*mark)(KnJournal *jn, int64_t window, int64_t number, KnChunkState state,
                   KnVerdictKind verdict, KnErr *err);
    /** The destination holds the rows of a chunk that is sent: KnVerdict's hold. */
    KnCode (*hold)(KnJournal *jn, int64_t window, int64_t number, int64_t hold, KnErr *err);
    KnCode (*advance)(KnJournal *jn, int64_t delivery, const KnLoadAck *ack, KnErr *err);
    /** epoch + 1, cursor -1, the open window dropped. */
    KnCode (*reload)(KnJournal *jn, int64_t delivery, KnErr *err);
    /** The last `limit` delivered windows, newest first. */
    KnCode (*history)(KnJournal *jn, KnArena *arena, int64_t delivery, size_t limit,
                      KnJournalHistory *ret, KnErr *err);
    void (*close)(KnJournal *jn);
} KnJournalOps;

typedef enum KnJournalMode {
    KN_JOURNAL_WRITE, /* created when absent; held exclusively */
    KN_JOURNAL_READ,  /* no hold; KN_E_NOTFOUND when absent; calls that change fail */
} KnJournalMode;

/** First member of every implementation's struct. */
struct KnJournal {
    const KnJournalOps *ops;
    KnJournalMode mode;
};

/** A SQLite file. KN_E_CORRUPT: not a journal of ours, or damaged; it is left as it is. */
KN_NODISCARD KnCode kn_journal_sqlite_open(const char *path, KnJournalMode mode, KnJournal **ret,
                                           KnErr *err);
KnJournal *kn_journal_close(KnJournal *jn); /* accepts NULL, returns NULL */

/* Who holds a journal file. */
typedef struct KnJournalHolder {
    bool held;
    int64_t pid;
    int64_t since_ms;
    char host[128];
} KnJournalHolder;
KN_NODISCARD KnCode kn_journal_holder(const char *path, KnJournalHolder *ret, KnErr *err);
