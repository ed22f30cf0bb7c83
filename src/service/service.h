/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * service.h - many deliveries in one process: a pool of workers, a turn at a time.
 *
 * What one delivery does (a slow table, a destination that is gone, a window that an operator must
 * look at) never stops another: each has its own catalog, engine and sink while it has a turn, its
 * own pauses, and gives everything back when its turn ends; so a process holds as many connections
 * and engines as it has workers, however many tables there are. Their journal is shared.
 *
 * start, stop and reload belong to one thread; the rest is thread-safe.
 */
#include "service/config.h"

typedef struct KnService KnService;

/* What is known of a delivery now. Texts live in the arena given. */
typedef struct KnServiceState {
    const char *name, *table, *sink_kind, *target;
    bool looked; /* it was looked at once, with whatever outcome */
    bool ready;  /* its table was found and its destination's probe has passed */
    bool ok;     /* its last round ended well */
    KnCode code; /* of the last round, or of the first look */
    const char *message;
    int64_t cursor;                 /* -1 = none */
    int64_t snapshots, rows, bytes; /* behind; -1 = not known */
    double seconds;                 /* since the oldest snapshot that waits; 0 = none waits */
    int64_t last_ok_ms;             /* 0 = never */
} KnServiceState;

typedef struct KnServiceHooks {
    /* One round of a delivery that did something or failed; one call at a time. May be NULL. */
    void (*round)(void *arg, const char *name, const KnDeliveryReport *report);
    void *arg;
} KnServiceHooks;

typedef struct KnServiceStart {
    KnServiceConfig *config; /* a reference of its own is taken */
    bool once;               /* each delivers what is there, then it is over */
    const char *only;        /* one delivery of the file; NULL = all */
    KnServiceHooks hooks;
} KnServiceStart;

/** Opens the journal and starts the workers. KN_E_BUSY: another process has the journal. */
KN_NODISCARD KnCode kn_service_start(const KnServiceStart *start, KnService **ret, KnErr *err);
/** No new turns; windows in flight are finished. kn_service_has_ended() says when, and
 * kn_service_over_fd() is readable then. */
void kn_service_end(KnService *svc);
bool kn_service_has_ended(KnService *svc);
/** Every window in flight is finished and its cursor moved; returns when all workers have ended.
 * once: the worst outcome of the deliveries (refused before failed). Frees the service. */
KN_NODISCARD KnCode kn_service_stop(KnService *svc, KnErr *err);
/** once: every delivery is over. */
bool kn_service_is_over(KnService *svc);
/** Readable once kn_service_is_over() or kn_service_has_ended(). */
int kn_service_over_fd(const KnService *svc);

/** Another version of the file: new deliveries begin, missing ones end after their window, changed
 * ones go on with their new settings. What concerns the process itself (journal, workers, memory)
 * stays as it was; *ret_restart is then true. */
void kn_service_reload(KnService *svc, KnServiceConfig *config, bool *ret_restart);

/** All deliveries, in the order of the file; in arena. */
const KnServiceState *kn_service_states(KnService *svc, KnArena *arena, size_t *ret_n);
bool kn_service_is_ready(KnService *svc);   /* every delivery is */
bool kn_service_has_looked(KnService *svc); /* every delivery was looked at once */
