/* SPDX-License-Identifier: Apache-2.0 */
/*
 * service.c - the pool: workers take turns from the schedule until they are told to stop.
 *
 * One lock guards the jobs, the schedule and what is seen of the deliveries; it is never held while
 * a turn runs. A reload only leaves notes in jobs that have a turn; they are put in force when it
 * ends, by the worker that had it.
 */
#include "service/service.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/stop.h"
#include "cdc/journal_shared.h"
#include "service/service_internal.h"

#define TURN_US    INT64_C(2000000)     /* a turn ends at its next window when others wait */
#define SLOW_BYTES ((int64_t)256 << 20) /* behind by more: its turns will be long */

bool kn_service_wants_back(KnJob *job)
{
    KnService *svc = job->svc;
    int64_t now = kn_clock_mono_us();
    if (atomic_load(&svc->stopping) || kn_stop_requested())
        return true;
    (void)pthread_mutex_lock(&svc->lock);
    bool back =
        job->gone || job->next_def ||
        (!svc->once && now - job->began_us > TURN_US && kn_schedule_waits(&svc->sched, now));
    (void)pthread_mutex_unlock(&svc->lock);
    return back;
}

/* ---- jobs, under the lock ---- */

static void sync_schedule(KnService *svc)
{
    svc->turns.len = 0;
    for (size_t i = 0; i < svc->jobs.len; i++)
        *kn_vec_push(&svc->turns) = &svc->jobs.items[i]->turn;
    svc->sched.turns = svc->turns.items;
    svc->sched.n = svc->turns.len;
}

static void add_job(KnService *svc, KnServiceConfig *config, const KnServiceDelivery *def)
{
    KnJob *job = kn_job_new(svc, config, def);
    kn_schedule_now(&svc->sched, &job->turn, kn_clock_mono_us());
    *kn_vec_push(&svc->jobs) = job;
    sync_schedule(svc);
}

static void remove_job(KnService *svc, KnJob *job)
{
    size_t n = 0;
    for (size_t i = 0; i < svc->jobs.len; i++)
        if (svc->jobs.items[i] != job)
            svc->jobs.items[n++] = svc->jobs.items[i];
    svc->jobs.len = n;
    (void)kn_job_free(job);
    sync_schedule(svc);
}

/* What a reload left for a job that is not running. */
static void settle(KnService *svc, KnJob *job)
{
    if (job->gone) {
        remove_job(svc, job);
        return;
    }
    if (!job->next_def)
        return;
    KnServiceConfig *config = job->next_config;
    kn_job_change(job, config, job->next_def);
    job->next_def = NULL;
    job->next_config = kn_service_config_unref(config);
    kn_schedule_now(&svc->sched, &job->turn, kn_clock_mono_us());
}

static bool all_over(const KnService *svc)
{
    for (size_t i = 0; i < svc->jobs.len; i++)
        if (!svc->jobs.items[i]->turn.over)
            return false;
    return true;
}

static void tell_over(const KnService *svc)
{
    const uint64_t one = 1;
    if (write(svc->over_fd, &one, sizeof(one)) < 0)
        errno = 0; /* it is readable already */
}

static void end_turn(KnService *svc, KnJob *job, KnTurnEnd end)
{
    int64_t now = kn_clock_mono_us();
    bool cut = end == KN_TURN_MORE && job->def->set.max_windows == 0;
    (void)kn_schedule_end(&svc->sched, &job->turn, end, now, now - job->began_us);
    job->turn.slow = job->turn.slow || job->seen.bytes > SLOW_BYTES;
    job->turn.over = svc->once && !cut;
    settle(svc, job);
    if (svc->once && all_over(svc))
        tell_over(svc);
    (void)pthread_cond_broadcast(&svc->changed);
}

/* ---- workers ---- */

static void wait_until(KnService *svc, int64_t wake)
{
    if (wake == INT64_MAX) {
        (void)pthread_cond_wait(&svc->changed, &svc->lock);
        return;
    }
    const struct timespec ts = {.tv_sec = wake / 1000000, .tv_nsec = wake % 1000000 * 1000};
    (void)pthread_cond_timedwait(&svc->changed, &svc->lock, &ts);
}

static void *worker_main(void *arg)
{
    KnService *svc = arg;
    (void)pthread_mutex_lock(&svc->lock);
    while (!atomic_load(&svc->stopping) && !kn_stop_requested()) {
        int64_t wake;
        KnTurn *turn = kn_schedule_next(&svc->sched, kn_clock_mono_us(), &wake);
        if (!turn) {
            wait_until(svc, wake);
            continue;
        }
        KnJob *job = (KnJob *)turn;
        (void)pthread_mutex_unlock(&svc->lock);
        KnTurnEnd end = kn_job_run(job);
        (void)pthread_mutex_lock(&svc->lock);
        end_turn(svc, job, end);
    }
    if (++svc->n_ended == svc->n_workers)
        tell_over(svc);
    (void)pthread_mutex_unlock(&svc->lock);
    return NULL;
}

static void start_workers(KnService *svc)
{
    svc->workers = calloc((size_t)svc->opts.workers, sizeof(*svc->workers));
    if (!svc->workers)
        abort();
    (void)pthread_mutex_lock(&svc->lock); /* no worker ends before all are counted */
    while (svc->n_workers < svc->opts.workers &&
           pthread_create(&svc->workers[svc->n_workers], NULL, worker_main, svc) == 0)
        svc->n_workers++;
    (void)pthread_mutex_unlock(&svc->lock);
}

/* ---- starting ---- */

static KnService *service_new(const KnServiceStart *start)
{
    KnService *svc = calloc(1, sizeof(*svc));
    pthread_condattr_t attr;
    if (!svc)
        abort();
    (void)pthread_condattr_init(&attr);
    (void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&svc->changed, &attr);
    (void)pthread_condattr_destroy(&attr);
    (void)pthread_mutex_init(&svc->lock, NULL);
    (void)pthread_mutex_init(&svc->telling, NULL);
    svc->config = kn_service_config_ref(start->config);
    svc->opts = start->config->opts;
    svc->once = start->once;
    svc->only = start->only;
    svc->hooks = start->hooks;
    svc->over_fd = -1;
    if (svc->opts.threads == 0)
        svc->opts.threads = 2 * sysconf(_SC_NPROCESSORS_ONLN);
    svc->sched =
        (KnSchedule){.workers = svc->opts.workers, .rng = {.state = (uint64_t)kn_random_id()}};
    return svc;
}

static KnService *service_free(KnService *svc)
{
    for (size_t i = 0; i < svc->jobs.len; i++)
        (void)kn_job_free(svc->jobs.items[i]);
    kn_vec_done(&svc->jobs);
    kn_vec_done(&svc->turns);
    svc->lineage = kn_outbox_close(svc->lineage);
    svc->airflow = kn_outbox_close(svc->airflow);
    svc->journal = kn_journal_close(svc->journal);
    svc->config = kn_service_config_unref(svc->config);
    if (svc->over_fd >= 0)
        (void)close(svc->over_fd);
    (void)pthread_cond_destroy(&svc->changed);
    (void)pthread_mutex_destroy(&svc->lock);
    (void)pthread_mutex_destroy(&svc->telling);
    free(svc->workers);
    free(svc);
    return NULL;
}

static KnCode open_outboxes(KnService *svc, KnErr *err)
{
    KN_BUF_AUTO url;
    kn_buf_init(&url, 65536);
    if (svc->opts.lineage) {
        const KnOutboxOptions lineage = {"lineage", svc->opts.lineage, "OPENLINEAGE_API_KEY"};
        KN_TRY(kn_outbox_open(&lineage, &svc->lineage, err));
    }
    if (!svc->opts.airflow)
        return KN_OK;
    kn_buf_printf(&url, "%s/api/v2/assets/events", svc->opts.airflow);
    KN_TRY(kn_buf_check(&url, err));
    const KnOutboxOptions airflow = {"airflow", url.data, "KNUT_AIRFLOW_TOKEN"};
    return kn_outbox_open(&airflow, &svc->airflow, err);
}

static KnCode open_parts(KnService *svc, KnErr *err)
{
    const KnServiceDelivery *one = NULL;
    KnJournal *journal = NULL;
    svc->over_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (svc->over_fd < 0)
        return kn_err_set(err, KN_E_IO, "eventfd: %s", kn_errno_text(errno));
    if (svc->only)
        KN_TRY(kn_service_config_find(svc->config, svc->only, &one, err));
    KN_TRY(kn_journal_sqlite_open(svc->opts.state, KN_JOURNAL_WRITE, &journal, err));
    svc->journal = kn_journal_share(journal);
    KN_TRY(open_outboxes(svc, err));
    for (size_t i = 0; i < svc->config->n; i++)
        if (!one || one == &svc->config->deliveries[i])
            add_job(svc, svc->config, &svc->config->deliveries[i]);
    return KN_OK;
}

KnCode kn_service_start(const KnServiceStart *start, KnService **ret, KnErr *err)
{
    KnService *svc = service_new(start);
    KnCode rc = open_parts(svc, err);
    if (rc == KN_OK) {
        start_workers(svc);
        if (svc->n_workers == 0)
            rc = kn_err_set(err, KN_E_NOMEM, "a thread cannot be started");
    }
    if (rc != KN_OK) {
        svc = service_free(svc);
        return rc;
    }
    *ret = svc;
    return KN_OK;
}

/* ---- the end ---- */

static bool is_refusal(KnCode code)
{
    return kn_code_exit_status(code) == 3;
}

/* once: what of all outcomes is the process's. */
static KnCode outcome(const KnService *svc, KnErr *err)
{
    const KnJob *worst = NULL;
    size_t failed = 0, unfinished = 0;
    for (size_t i = 0; i < svc->jobs.len; i++) {
        const KnJob *job = svc->jobs.items[i];
        unfinished += !job->turn.over ||
                      (job->seen.ok && job->seen.snapshots > 0 && job->def->set.max_windows == 0);
        if (job->seen.code == KN_OK)
            continue;
        failed++;
        if (!worst || (is_refusal(job->seen.code) && !is_refusal(worst->seen.code)))
            worst = job;
    }
    if (!worst && unfinished && kn_stop_requested())
        return kn_err_set(err, KN_E_CANCELLED,
                          "stopped by a signal after the windows in flight; run again to go on");
    if (!worst)
        return KN_OK;
    return kn_err_set(err, worst->seen.code, "%zu of %zu deliveries did not end well; %s: %s",
                      failed, svc->jobs.len, worst->def->name, worst->seen.message);
}

void kn_service_end(KnService *svc)
{
    (void)pthread_mutex_lock(&svc->lock);
    atomic_store(&svc->stopping, true);
    (void)pthread_cond_broadcast(&svc->changed);
    (void)pthread_mutex_unlock(&svc->lock);
}

bool kn_service_has_ended(KnService *svc)
{
    (void)pthread_mutex_lock(&svc->lock);
    bool ended = svc->n_ended == svc->n_workers;
    (void)pthread_mutex_unlock(&svc->lock);
    return ended;
}

KnCode kn_service_stop(KnService *svc, KnErr *err)
{
    kn_service_end(svc);
    for (int64_t i = 0; i < svc->n_workers; i++)
        (void)pthread_join(svc->workers[i], NULL);
    KnCode rc = svc->once ? outcome(svc, err) : KN_OK;
    (void)service_free(svc);
    return rc;
}

bool kn_service_is_over(KnService *svc)
{
    (void)pthread_mutex_lock(&svc->lock);
    bool over = svc->once && all_over(svc);
    (void)pthread_mutex_unlock(&svc->lock);
    return over;
}

int kn_service_over_fd(const KnService *svc)
{
    return svc->over_fd;
}

/* ---- another file ---- */

static KnJob *find_job(const KnService *svc, const char *name)
{
    for (size_t i = 0; i < svc->jobs.len; i++)
        if (!svc->jobs.items[i]->gone && !strcmp(svc->jobs.items[i]->def->name, name))
            return svc->jobs.items[i];
    return NULL;
}

static const KnServiceDelivery *find_def(const KnService *svc, const KnServiceConfig *config,
                                         const char *name)
{
    for (size_t i = 0; i < config->n; i++)
        if (!strcmp(config->deliveries[i].name, name) && (!svc->only || !strcmp(svc->only, name)))
            return &config->deliveries[i];
    return NULL;
}

static void change_job(KnService *svc, KnJob *job, KnServiceConfig *config,
                       const KnServiceDelivery *def)
{
    const KnServiceDelivery *now = job->next_def ? job->next_def : job->def;
    if (now->print == def->print)
        return;
    kn_log(KN_LOG_INFO, "cdc", "delivery-changed", KN_F("delivery", def->name));
    job->next_config = kn_service_config_unref(job->next_config);
    job->next_config = kn_service_config_ref(config);
    job->next_def = def;
    if (!job->turn.running)
        settle(svc, job);
}

static void drop_missing(KnService *svc, const KnServiceConfig *config)
{
    for (size_t i = svc->jobs.len; i-- > 0;) {
        KnJob *job = svc->jobs.items[i];
        if (job->gone || find_def(svc, config, job->def->name))
            continue;
        kn_log(KN_LOG_INFO, "cdc", "delivery-removed", KN_F("delivery", job->def->name));
        job->gone = true;
        if (!job->turn.running)
            settle(svc, job);
    }
}

static bool same_text(const char *a, const char *b)
{
    return a == b || (a && b && !strcmp(a, b));
}

static bool same_process(const KnServiceOptions *a, const KnServiceOptions *b)
{
    return same_text(a->state, b->state) && same_text(a->listen, b->listen) &&
           same_text(a->spill_dir, b->spill_dir) && a->workers == b->workers &&
           a->threads == b->threads && a->memory_limit == b->memory_limit &&
           same_text(a->lineage, b->lineage) &&
           same_text(a->lineage_namespace, b->lineage_namespace) &&
           same_text(a->airflow, b->airflow) && same_text(a->airflow_prefix, b->airflow_prefix);
}

void kn_service_reload(KnService *svc, KnServiceConfig *config, bool *ret_restart)
{
    (void)pthread_mutex_lock(&svc->lock);
    drop_missing(svc, config);
    for (size_t i = 0; i < config->n; i++) {
        const KnServiceDelivery *def = &config->deliveries[i];
        KnJob *job = find_job(svc, def->name);
        if (svc->only && strcmp(svc->only, def->name) != 0)
            continue;
        if (job) {
            change_job(svc, job, config, def);
            continue;
        }
        kn_log(KN_LOG_INFO, "cdc", "delivery-added", KN_F("delivery", def->name));
        add_job(svc, config, def);
    }
    *ret_restart = !same_process(&svc->config->opts, &config->opts);
    (void)pthread_cond_broadcast(&svc->changed);
    (void)pthread_mutex_unlock(&svc->lock);
}

/* ---- looking ---- */

static KnServiceState state_of(const KnJob *job, KnArena *arena, int64_t now_ms)
{
    const KnJobSeen *seen = &job->seen;
    const KnDeliverySettings *set = &job->def->set;
    return (KnServiceState){
        .name = kn_arena_strdup(arena, job->def->name),
        .table = kn_arena_strdup(arena, set->loc.table ? set->loc.table : job->def->name),
        .sink_kind = job->def->sink_ops->kind,
        .target = kn_arena_strdup(arena, set->target ? set->target : ""),
        .looked = seen->looked,
        .ready = seen->ready,
        .ok = seen->ok,
        .code = seen->code,
        .message = kn_arena_strdup(arena, seen->message),
        .cursor = seen->cursor,
        .snapshots = seen->snapshots,
        .rows = seen->rows,
        .bytes = seen->bytes,
        .seconds = seen->waiting_ms > 0 && now_ms > seen->waiting_ms
                       ? (double)(now_ms - seen->waiting_ms) / 1000
                       : 0,
        .last_ok_ms = seen->last_ok_ms,
    };
}

const KnServiceState *kn_service_states(KnService *svc, KnArena *arena, size_t *ret_n)
{
    int64_t now_ms = kn_clock_wall_ms();
    (void)pthread_mutex_lock(&svc->lock);
    KnServiceState *states = kn_arena_zalloc(arena, (svc->jobs.len + 1) * sizeof(*states));
    for (size_t i = 0; i < svc->jobs.len; i++)
        states[i] = state_of(svc->jobs.items[i], arena, now_ms);
    *ret_n = svc->jobs.len;
    (void)pthread_mutex_unlock(&svc->lock);
    return states;
}

bool kn_service_is_ready(KnService *svc)
{
    bool ready = true;
    (void)pthread_mutex_lock(&svc->lock);
    for (size_t i = 0; i < svc->jobs.len; i++)
        ready = ready && svc->jobs.items[i]->seen.ready;
    (void)pthread_mutex_unlock(&svc->lock);
    return ready;
}

bool kn_service_has_looked(KnService *svc)
{
    bool looked = true;
    (void)pthread_mutex_lock(&svc->lock);
    for (size_t i = 0; i < svc->jobs.len; i++)
        looked = looked && svc->jobs.items[i]->seen.looked;
    (void)pthread_mutex_unlock(&svc->lock);
    return looked;
}
