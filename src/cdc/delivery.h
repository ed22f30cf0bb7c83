/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * delivery.h - one table to one target: every committed change exactly once, or a reason why not.
 *
 *     table -> snapshots -> window -> chunk plan -> journal -> load -> verdict -> ack -> cursor
 *
 * A KnDelivery belongs to one thread; inside a round it runs a reading thread and loading threads
 * of its own. The table and the journal are borrowed and must outlive it. The sink is opened when
 * there is something to deliver and closed at the end of the round, so that an idle listener does
 * not hold the destination.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "cdc/journal.h"
#include "cdc/sink.h"
#include "iceberg/table.h"

typedef struct KnDelivery KnDelivery;

#define KN_DELIVERY_CHUNK_BYTES       ((uint64_t)64 << 20)
#define KN_DELIVERY_MAX_REWRITE_BYTES ((uint64_t)1 << 30)
#define KN_DELIVERY_MEMORY_LIMIT      ((uint64_t)256 << 20)

/* Where a window's time goes. READ and LOAD run side by side: each counts its own work, not the
 * waiting for the other; LOAD is the sum over the loads in flight. */
typedef enum KnPhase {
    KN_PHASE_PLAN,   /* manifests read, cut into chunks, differences computed */
    KN_PHASE_BEGIN,  /* the destination opened, checked and made ready */
    KN_PHASE_READ,   /* rows out of data files */
    KN_PHASE_ENCODE, /* rows made into bytes, where the sink can tell that from loading */
    KN_PHASE_LOAD,   /* rows put into the destination */
    KN_PHASE_RECORD, /* the journal */
} KnPhase;
enum { KN_N_PHASES = KN_PHASE_RECORD + 1 };
const char *kn_phase_name(KnPhase phase); /* "plan", ... */

/* A delivered window, as reports and observers show it. */
typedef struct KnWindowReport {
    int64_t from; /* -1 = first window */
    int64_t to;
    char operation[32];
    int64_t upserts, deletes; /* rows */
    int64_t chunks;
    int64_t duplicates; /* chunks that had arrived before */
    int64_t bytes;      /* of source files read for it, from the manifests */
    double seconds;
    int64_t phase_us[KN_N_PHASES];
} KnWindowReport;

typedef enum KnDeliveryStatus {
    KN_DELIVERY_IDLE,    /* nothing new */
    KN_DELIVERY_OK,      /* at least one window arrived, none is held back by an error */
    KN_DELIVERY_REFUSED, /* an operator must decide; the cursor is held */
    KN_DELIVERY_FAILED,
} KnDeliveryStatus;
const char *kn_delivery_status_name(KnDeliveryStatus status); /* "idle", "ok", ... */

typedef struct KnDeliveryReport {
    const char *name; /* among many; NULL = it has none. Set by whoever shows the report */
    const char *table;
    const char *sink;   /* the spec */
    const char *target; /* schema.table */
    int64_t from;       /* cursor before the round; -1 = none */
    int64_t to;         /* cursor after it; -1 = none */
    size_t n_windows;
    const KnWindowReport *windows;
    KnDeliveryStatus status;
    KnCode code;          /* of the refusal or failure, else KN_OK */
    const char *message;  /* one line; "" when there is nothing to say */
    int64_t windows_left; /* known to wait when the round ended (max_windows, stop, failure) */
    int64_t waiting_ms;   /* when the oldest of those was committed; 0 = none waits */
} KnDeliveryReport;

/* Called during a round from the delivery's own threads, one call at a time. Every member may be
 * NULL. Must not call the delivery. */
typedef struct KnDeliveryObserver {
    /* A window starts: rows are what will be sent now (0 = not known yet), bytes what will be read.
     */
    void (*window_begin)(void *arg, const KnWindowReport *win, int64_t rows, int64_t bytes);
    /* More rows and source bytes have gone to the sink. */
    void (*progress)(void *arg, int64_t rows, int64_t bytes);
    void (*window_end)(void *arg, const KnWindowReport *win);
    void *arg;
} KnDeliveryObserver;

/* Texts are copied. */
typedef struct KnDeliveryOptions {
    const char *sink;   /* "duckdb:PATH", "null:" */
    const char *target; /* "t", "schema.t" */
    KnSinkMode mode;
    const char *const *keys; /* upsert: NULL = the table's identifier fields, or whole rows */
    size_t n_keys;
    const char *ref;            /* branch; NULL = "main" */
    uint64_t chunk_bytes;       /* 0 = 64 MiB */
    int parallel_loads;         /* 0 = 4; bounded by what the sink and the window allow */
    int64_t max_windows;        /* per round; 0 = no bound */
    uint64_t max_rewrite_bytes; /* 0 = 1 GiB */
    int threads;                /* 0 = number of processors */
    uint64_t memory_limit;      /* of both engines together; 0 = 256 MiB */
    const char *spill_dir;      /* NULL = a folder of ours under TMPDIR */
    bool (*stop)(void *arg);    /* asked between windows; NULL = kn_stop_requested() */
    void *stop_arg;
    KnDeliveryObserver observer;
} KnDeliveryOptions;

/** jn NULL: nothing was delivered yet; then only check() and lag() may be called.
 * Checks options and finds (or makes) the delivery's row in the journal; touches neither table
 * data nor destination. */
KN_NODISCARD KnCode kn_delivery_open(KnTable *tbl, KnJournal *jn, const KnDeliveryOptions *opts,
                                     KnDelivery **ret, KnErr *err);
KnDelivery *kn_delivery_close(KnDelivery *dlv); /* accepts NULL, returns NULL */

/** Between rounds, for a process with many deliveries: gives back the table and closes the reading
 * engine, so that a resting delivery holds neither connection nor buffers; what it knows of its
 * destination stays. Only attach and close may follow. */
void kn_delivery_detach(KnDelivery *dlv);
/** The same table, loaded anew. Another catalog or name is KN_E_INVAL. */
KN_NODISCARD KnCode kn_delivery_attach(KnDelivery *dlv, KnTable *tbl, KnErr *err);

/** One round: the table is refreshed, an open window is finished first, then every new snapshot in
 * order. KN_E_REFUSED (exit 3) and all other failures leave the cursor on the last window that
 * arrived whole; the report is filled either way, and lives until the next round or close. */
KN_NODISCARD KnCode kn_delivery_round(KnDelivery *dlv, KnErr *err);
const KnDeliveryReport *kn_delivery_report(const KnDelivery *dlv);
/** Source, sink and target as the journal has them; lives as long as the delivery. */
const KnDeliveryKey *kn_delivery_key(const KnDelivery *dlv);
/** {"deliveries":[...]}: docs/output.md has the shape. */
void kn_delivery_reports_json(const KnDeliveryReport *const *reports, size_t n, KnBuf *out);

/** `knut cdc reload`: a new epoch. The next round clears the target inside the protocol and
 * delivers the first window again. */
KN_NODISCARD KnCode kn_delivery_reload(KnDelivery *dlv, KnErr *err);

/* ---- looking, without touching rows or destination ---- */

/** The statement that makes a target for the table's current schema. KN_E_UNSUPPORTED: the sink
 * makes its own. */
KN_NODISCARD KnCode kn_delivery_ddl(KnDelivery *dlv, KnBuf *out, KnErr *err);

typedef struct KnWindowCost {
    int64_t from, to;
    const char *operation;
    const char *kind;         /* "empty", "direct", "computed" */
    int64_t upserts, deletes; /* -1 = known only when computed */
    int64_t chunks;           /* -1 likewise */
    int64_t read_files, read_bytes, read_rows, rewrite_bytes;
    bool refused;
    const char *message; /* why, and what to do; "" = would be delivered */
} KnWindowCost;

typedef struct KnDeliveryCheck {
    size_t n_windows;
    const KnWindowCost *windows; /* up to and including the first refused one */
    size_t n_more;               /* windows behind those, not looked at */
    KnCode code;                 /* KN_OK, or why not all of them can be delivered */
    const char *message;
} KnDeliveryCheck;
/** Plans of the next `limit` windows (0 = all) from manifests alone; arena owns the answer. Also
 * asks the sink's probe() when the destination exists and is free. */
KN_NODISCARD KnCode kn_delivery_check(KnDelivery *dlv, size_t limit, KnArena *arena,
                                      KnDeliveryCheck *ret, KnErr *err);

typedef struct KnDeliveryLag {
    KnDeliveryRow row;
    int64_t head;          /* snapshot id at the ref; -1 = none */
    int64_t snapshots;     /* behind; -1 = cannot be said (expired or rolled back) */
    int64_t rows, bytes;   /* of files added behind the cursor, from manifests; -1 likewise */
    int64_t waiting_ms;    /* when the oldest snapshot behind the cursor was committed; 0 = none */
    const char *message;   /* why not, or "" */
    KnJournalWindow *open; /* the window in flight, or NULL */
    size_t n_history;
    const KnJournalWindow *history; /* newest first */
} KnDeliveryLag;
KN_NODISCARD KnCode kn_delivery_lag(KnDelivery *dlv, size_t history, KnArena *arena,
                                    KnDeliveryLag *ret, KnErr *err);
/** How long the oldest snapshot behind the cursor has waited, in seconds; 0 when none does, -1 when
 * it cannot be said. */
int64_t kn_delivery_lag_seconds(const KnDeliveryLag *lag);
