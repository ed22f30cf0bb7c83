/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* service_internal.h - a delivery that has turns (job.c), and the pool that gives them (service.c).
 */
#include <pthread.h>
#include <stdatomic.h>

#include "base/metrics.h"
#include "base/vec.h"
#include "service/lineage.h"
#include "service/outbox.h"
#include "service/schedule.h"
#include "service/service.h"

enum { KN_JOB_MESSAGE = 1024 };

/* What one delivery counts; registered for the life of the process. */
typedef struct KnJobMetrics {
    KnMetric *windows, *upserts, *deletes, *bytes, *loaded, *duplicates;
    KnMetric *rounds, *retries, *refusals, *failures;
    KnMetric *phases[KN_N_PHASES];
} KnJobMetrics;

/* What others may see of a job; under the service's lock. */
typedef struct KnJobSeen {
    bool looked, ready, ok;
    KnCode code;
    char message[KN_JOB_MESSAGE];
    int64_t cursor, snapshots, rows, bytes, waiting_ms, last_ok_ms;
} KnJobSeen;

typedef struct KnJob {
    KnTurn turn; /* under the service's lock */
    KnService *svc;
    KnServiceConfig *config, *next_config; /* references; next: after the turn. Likewise */
    const KnServiceDelivery *def, *next_def;
    bool gone; /* likewise: it ends after the turn */
    KnJobSeen seen;
    KnJobMetrics metrics;
    /* The worker's that has the turn: */
    KnDelivery *delivery; /* detached between turns; NULL = not opened yet */
    KnArena *arena;       /* of its options */
    bool looked;
    int64_t began_us;
    /* The window in flight as others hear of it; a delivery's threads, one call at a time: */
    char run_id[37]; /* "" = none */
    KnWindowReport window;
} KnJob;

struct KnService {
    pthread_mutex_t lock;
    pthread_mutex_t
        telling; /* one hook at a time; who listens may be slow, and holds up nobody else */
    pthread_cond_t changed; /* CLOCK_MONOTONIC */
    KN_VEC(KnJob *) jobs;
    KN_VEC(KnTurn *) turns; /* of the jobs, same order */
    KnSchedule sched;
    KnJournal *journal;
    KnServiceOptions opts; /* of the process; texts in config */
    KnServiceConfig *config;
    bool once;
    const char *only;
    KnServiceHooks hooks;
    _Atomic bool stopping;
    int over_fd;
    KnOutbox *lineage, *airflow; /* NULL = nobody listens */
    pthread_t *workers;
    int64_t n_workers, n_ended;
};

/** A job for a delivery; takes a reference to its config. */
KnJob *kn_job_new(KnService *svc, KnServiceConfig *config, const KnServiceDelivery *def);
KnJob *kn_job_free(KnJob *job); /* not running */
/** Put other settings in force; not running. */
void kn_job_change(KnJob *job, KnServiceConfig *config, const KnServiceDelivery *def);
/** Tell others of a window that begins, is delivered, or fails, and of a table that was delivered
 * (events.c). */
void kn_job_tell_begin(KnJob *job, const KnWindowReport *win);
void kn_job_tell_end(KnJob *job, const KnWindowReport *win);
void kn_job_tell_failure(KnJob *job, const char *message);
void kn_job_tell_table(KnJob *job, const KnDeliveryReport *report);

/** One turn, on the calling thread. */
KnTurnEnd kn_job_run(KnJob *job);
/** Must the job's round end at its next window? (kn_service's rules; called from its delivery.) */
bool kn_service_wants_back(KnJob *job);
