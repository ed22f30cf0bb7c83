/* SPDX-License-Identifier: Apache-2.0 */
/*
 * job.c - one delivery's turn: its catalog and table are opened, a round is run, all is given back.
 *
 * The first turn of a service is a look: what waits is known from manifests, and the destination's
 * probe says whether it may be delivered to. Nothing is read for that, so a service knows early
 * which deliveries are ready and which are slow.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "service/service_internal.h"

/* ---- counting ---- */

static void make_metrics(KnJob *job)
{
    KN_BUF_AUTO labels, more;
    kn_buf_init(&labels, 8192);
    kn_buf_init(&more, 8192);
    kn_metric_label(&labels, "delivery", kn_str(job->def->name));
    kn_metric_label(&labels, "sink", kn_str(job->def->sink_ops->kind));
    const struct {
        KnMetric **metric;
        const char *name, *help, *label, *value;
    } rows[] = {
        {&job->metrics.windows, "knut_delivery_windows_total", "Windows delivered", NULL, NULL},
        {&job->metrics.upserts, "knut_delivery_rows_total", "Rows delivered", "op", "upsert"},
        {&job->metrics.deletes, "knut_delivery_rows_total", "Rows delivered", "op", "delete"},
        {&job->metrics.bytes, "knut_delivery_bytes_total", "Bytes of source files read", NULL,
         NULL},
        {&job->metrics.loaded, "knut_delivery_chunks_total", "Chunks by the verdict on them",
         "verdict", "loaded"},
        {&job->metrics.duplicates, "knut_delivery_chunks_total", "Chunks by the verdict on them",
         "verdict", "duplicate"},
        {&job->metrics.rounds, "knut_delivery_rounds_total", "Rounds begun", NULL, NULL},
        {&job->metrics.retries, "knut_delivery_retries_total",
         "Rounds that failed and are tried again", NULL, NULL},
        {&job->metrics.refusals, "knut_delivery_refusals_total", "Rounds that ended with a refusal",
         NULL, NULL},
        {&job->metrics.failures, "knut_delivery_failures_total", "Rounds that ended with a failure",
         NULL, NULL},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        kn_buf_reset(&more);
        kn_buf_text(&more, labels.data);
        if (rows[i].label)
            kn_metric_label(&more, rows[i].label, kn_str(rows[i].value));
        *rows[i].metric = kn_metric_get(KN_METRIC_COUNTER, rows[i].name, more.data, rows[i].help);
    }
    for (int i = 0; i < KN_N_PHASES; i++) {
        kn_buf_reset(&more);
        kn_buf_text(&more, labels.data);
        kn_metric_label(&more, "phase", kn_str(kn_phase_name((KnPhase)i)));
        job->metrics.phases[i] =
            kn_metric_get(KN_METRIC_COUNTER, "knut_delivery_phase_microseconds_total", more.data,
                          "Time of windows by what it went into");
    }
}

static void count_window(const KnJobMetrics *metrics, const KnWindowReport *win)
{
    kn_metric_add(metrics->windows, 1);
    kn_metric_add(metrics->upserts, win->upserts);
    kn_metric_add(metrics->deletes, win->deletes);
    kn_metric_add(metrics->bytes, win->bytes);
    kn_metric_add(metrics->loaded, win->chunks - win->duplicates);
    kn_metric_add(metrics->duplicates, win->duplicates);
    for (int i = 0; i < KN_N_PHASES; i++)
        kn_metric_add(metrics->phases[i], win->phase_us[i] > 0 ? win->phase_us[i] : 0);
}

/* These two on a thread of the delivery. */
static void window_begin(void *arg, const KnWindowReport *win, int64_t rows, int64_t bytes)
{
    (void)rows;
    (void)bytes;
    kn_job_tell_begin(arg, win);
}

static void window_end(void *arg, const KnWindowReport *win)
{
    KnJob *job = arg;
    kn_job_tell_end(job, win);
    count_window(&job->metrics, win);
    kn_log(KN_LOG_INFO, "cdc", "window-delivered", KN_F("delivery", job->def->name),
           KN_FI("from", win->from), KN_FI("to", win->to), KN_F("operation", win->operation),
           KN_FI("upserts", win->upserts), KN_FI("deletes", win->deletes),
           KN_FI("chunks", win->chunks), KN_FI("duplicates", win->duplicates),
           KN_FI("bytes", win->bytes), KN_FI("ms", (int64_t)(win->seconds * 1000)));
    (void)pthread_mutex_lock(&job->svc->lock);
    KnJobSeen *seen = &job->seen;
    seen->cursor = win->to;
    if (seen->snapshots > 0)
        seen->snapshots--;
    if (seen->bytes > 0)
        seen->bytes = seen->bytes > win->bytes ? seen->bytes - win->bytes : 0;
    (void)pthread_mutex_unlock(&job->svc->lock);
}

static bool wants_back(void *arg)
{
    return kn_service_wants_back(arg);
}

/* ---- a job ---- */

KnJob *kn_job_new(KnService *svc, KnServiceConfig *config, const KnServiceDelivery *def)
{
    KnJob *job = calloc(1, sizeof(*job));
    if (!job)
        abort();
    job->svc = svc;
    job->seen.cursor = job->seen.snapshots = job->seen.rows = job->seen.bytes = -1;
    kn_job_change(job, config, def);
    return job;
}

void kn_job_change(KnJob *job, KnServiceConfig *config, const KnServiceDelivery *def)
{
    const KnDeliverySettings *set = &def->set;
    KnServiceConfig *before = job->config;
    job->config = kn_service_config_ref(config);
    job->def = def;
    before = kn_service_config_unref(before);
    job->delivery = kn_delivery_close(job->delivery);
    job->arena = kn_arena_free(job->arena);
    job->looked = false;
    job->turn.slot = def->sink_id;
    job->turn.slots = def->sink_ops->exclusive ? 1 : set->max_deliveries;
    job->turn.interval = (int64_t)(set->interval * 1e6);
    job->turn.max_backoff = (int64_t)(set->max_backoff * 1e6);
    job->turn.delay = 0;
    make_metrics(job);
}

KnJob *kn_job_free(KnJob *job)
{
    if (!job)
        return NULL;
    job->delivery = kn_delivery_close(job->delivery);
    (void)kn_arena_free(job->arena);
    job->config = kn_service_config_unref(job->config);
    job->next_config = kn_service_config_unref(job->next_config);
    free(job);
    return NULL;
}

/* ---- a turn ---- */

static int64_t per_worker(int64_t all, int64_t workers)
{
    return all > workers ? all / workers : 1;
}

static KnCode open_delivery(KnJob *job, KnTable *tbl, KnErr *err)
{
    const KnService *svc = job->svc;
    if (job->delivery)
        return kn_delivery_attach(job->delivery, tbl, err);
    job->arena = kn_arena_free(job->arena);
    job->arena = kn_arena_new(1024);
    KnDeliveryOptions opts = kn_delivery_settings_options(&job->def->set, tbl, job->arena);
    opts.threads = (int)per_worker(svc->opts.threads, svc->opts.workers);
    opts.memory_limit = svc->opts.memory_limit / (uint64_t)svc->opts.workers;
    opts.spill_dir = svc->opts.spill_dir;
    opts.stop = wants_back;
    opts.stop_arg = job;
    opts.observer =
        (KnDeliveryObserver){.window_begin = window_begin, .window_end = window_end, .arg = job};
    return kn_delivery_open(tbl, svc->journal, &opts, &job->delivery, err);
}

static bool is_stuck(KnCode code)
{
    return code != KN_OK && !kn_code_retriable(code);
}

static void say_outcome(KnJob *job, KnCode code, const char *message)
{
    bool refused = code == KN_E_REFUSED || code == KN_E_UNSUPPORTED;
    if (code == KN_OK)
        return;
    kn_job_tell_failure(job, message);
    kn_metric_add(refused ? job->metrics.refusals : job->metrics.failures, 1);
    if (!is_stuck(code))
        kn_metric_add(job->metrics.retries, 1);
    kn_log(KN_LOG_WARN, "cdc", refused ? "delivery-refused" : "round-failed",
           KN_F("delivery", job->def->name), KN_F("error", message));
}

/* What others see from now on; says how the delivery is doing when that has changed. */
static void see(KnJob *job, KnCode code, const char *message, bool ready)
{
    KnJobSeen *seen = &job->seen;
    (void)pthread_mutex_lock(&job->svc->lock);
    bool changed = !seen->looked || seen->ok != (code == KN_OK) || seen->code != code;
    seen->looked = true;
    seen->ok = code == KN_OK;
    seen->ready = ready;
    seen->code = code;
    (void)snprintf(seen->message, sizeof(seen->message), "%s", message);
    if (code == KN_OK)
        seen->last_ok_ms = kn_clock_wall_ms();
    (void)pthread_mutex_unlock(&job->svc->lock);
    if (changed)
        kn_log(KN_LOG_INFO, "cdc", "functional-status", KN_F("component", "knut-cdc"),
               KN_F("check", job->def->name), KN_F("ok", code == KN_OK ? "true" : "false"),
               KN_F("detail", message));
}

static void see_lag(KnJob *job, const KnDeliveryLag *lag)
{
    (void)pthread_mutex_lock(&job->svc->lock);
    job->seen.cursor = lag->row.cursor;
    job->seen.snapshots = lag->snapshots;
    job->seen.rows = lag->rows;
    job->seen.bytes = lag->bytes;
    job->seen.waiting_ms = lag->waiting_ms;
    (void)pthread_mutex_unlock(&job->svc->lock);
}

static void see_round(KnJob *job, const KnDeliveryReport *report)
{
    KnJobSeen *seen = &job->seen;
    (void)pthread_mutex_lock(&job->svc->lock);
    seen->cursor = report->to;
    seen->waiting_ms = report->waiting_ms;
    if (report->windows_left != seen->snapshots)
        seen->rows = -1; /* snapshots have come meanwhile: the next look counts them */
    seen->snapshots = report->windows_left;
    for (size_t i = 0; i < report->n_windows && seen->rows > 0; i++)
        seen->rows -= report->windows[i].upserts + report->windows[i].deletes;
    if (report->windows_left == 0 && report->code == KN_OK)
        seen->rows = seen->bytes = 0;
    else if (seen->rows < 0)
        seen->rows = seen->bytes = -1;
    (void)pthread_mutex_unlock(&job->svc->lock);
}

/* The first turn of a service: what waits, and may it be delivered? */
static KnCode look(KnJob *job, KnErr *err)
{
    KN_ARENA_AUTO arena = kn_arena_new(16384);
    KnDeliveryLag lag = {0};
    KnDeliveryCheck check = {0};
    KN_TRY(kn_delivery_lag(job->delivery, 0, arena, &lag, err));
    see_lag(job, &lag);
    KN_TRY(kn_delivery_check(job->delivery, 1, arena, &check, err));
    job->looked = true;
    if (check.code != KN_OK)
        return kn_err_set(err, check.code, "%s", check.message);
    return KN_OK;
}

static void tell_round(const KnJob *job, const KnDeliveryReport *report)
{
    KnService *svc = job->svc;
    if (!svc->hooks.round || (report->status == KN_DELIVERY_IDLE && !svc->once))
        return;
    (void)pthread_mutex_lock(&svc->telling);
    svc->hooks.round(svc->hooks.arg, job->def->name, report);
    (void)pthread_mutex_unlock(&svc->telling);
}

static KnTurnEnd run_round(KnJob *job, KnErr *err)
{
    kn_metric_add(job->metrics.rounds, 1);
    KnCode rc = kn_delivery_round(job->delivery, err);
    const KnDeliveryReport *report = kn_delivery_report(job->delivery);
    see_round(job, report);
    say_outcome(job, rc, rc == KN_OK ? "" : err->msg);
    see(job, rc, rc == KN_OK ? "" : err->msg, rc == KN_OK || job->seen.ready);
    kn_job_tell_table(job, report);
    tell_round(job, report);
    if (rc != KN_OK)
        return is_stuck(rc) ? KN_TURN_STUCK : KN_TURN_FAILED;
    if (report->windows_left > 0)
        return KN_TURN_MORE;
    return report->n_windows ? KN_TURN_DONE : KN_TURN_IDLE;
}

/* There is no round to report: the table or the delivery could not be opened, or a look failed. */
static KnTurnEnd tell_failure(KnJob *job, KnCode rc, const KnErr *err)
{
    const KnDeliverySettings *set = &job->def->set;
    bool refused = rc == KN_E_REFUSED || rc == KN_E_UNSUPPORTED;
    const KnDeliveryReport report = {
        .table = set->loc.table ? set->loc.table : job->def->name,
        .sink = set->sink,
        .target = set->target ? set->target : "",
        .from = job->seen.cursor,
        .to = job->seen.cursor,
        .windows = NULL,
        .status = refused ? KN_DELIVERY_REFUSED : KN_DELIVERY_FAILED,
        .code = rc,
        .message = err->msg,
    };
    say_outcome(job, rc, err->msg);
    see(job, rc, err->msg, false);
    tell_round(job, &report);
    return is_stuck(rc) ? KN_TURN_STUCK : KN_TURN_FAILED;
}

/* Whether the table is far behind decides what it may have: see schedule.h. */
static KnTurnEnd run_look(KnJob *job, KnErr *err)
{
    KnCode rc = look(job, err);
    if (rc != KN_OK)
        return tell_failure(job, rc, err);
    see(job, KN_OK, "", true);
    return KN_TURN_MORE;
}

KnTurnEnd kn_job_run(KnJob *job)
{
    KnErr err = {0};
    KnCatalog *catalog = NULL;
    KnTable *table = NULL;
    job->began_us = kn_clock_mono_us();
    KnCode rc = kn_locator_load(&job->def->set.loc, &catalog, &table, &err);
    if (rc == KN_OK)
        rc = open_delivery(job, table, &err);
    KnTurnEnd end;
    if (rc != KN_OK)
        end = tell_failure(job, rc, &err);
    else if (!job->looked && !job->svc->once)
        end = run_look(job, &err);
    else
        end = run_round(job, &err);
    if (job->delivery)
        kn_delivery_detach(job->delivery);
    table = kn_table_free(table);
    catalog = kn_catalog_close(catalog);
    return end;
}
