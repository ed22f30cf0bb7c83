/* SPDX-License-Identifier: Apache-2.0 */
/*
 * events.c - what a job tells others: OpenLineage runs, one for each window, and Airflow's assets.
 *
 * A window that could not even begin is a run of its own, started and failed at once; the same
 * failure again is told once.
 */
#include <string.h>

#include "base/clock.h"
#include "base/random.h"
#include "service/service_internal.h"

enum { MAX_EVENT = 1 << 20 };

static KnLineageRun run_of(const KnJob *job)
{
    const KnDeliverySettings *set = &job->def->set;
    const KnDeliveryReport *report = job->delivery ? kn_delivery_report(job->delivery) : NULL;
    const KnDeliveryKey *key = job->delivery ? kn_delivery_key(job->delivery) : NULL;
    return (KnLineageRun){
        .namespace = job->svc->opts.lineage_namespace,
        .job = job->def->name,
        .run_id = job->run_id,
        .source = key ? key->source : "unknown",
        .table = report && report->table ? report->table
                 : set->loc.table        ? set->loc.table
                                         : job->def->name,
        .sink = job->def->sink_id,
        .target = key           ? key->target
                  : set->target ? set->target
                                : job->def->name,
        .time_ms = kn_clock_wall_ms(),
    };
}

static void send_run(const KnJob *job, KnLineageEvent event, const KnWindowReport *win,
                     const char *message)
{
    KN_BUF_AUTO text;
    kn_buf_init(&text, MAX_EVENT);
    const KnLineageRun run = run_of(job);
    kn_lineage_write(&text, event, &run, win, message);
    if (!text.failed)
        kn_outbox_send(job->svc->lineage, (KnStr){text.data, text.len});
}

void kn_job_tell_begin(KnJob *job, const KnWindowReport *win)
{
    if (!job->svc->lineage)
        return;
    (void)kn_random_uuid7(job->run_id);
    job->window = *win;
    send_run(job, KN_LINEAGE_START, win, NULL);
}

void kn_job_tell_end(KnJob *job, const KnWindowReport *win)
{
    if (!job->svc->lineage || !job->run_id[0])
        return;
    send_run(job, KN_LINEAGE_COMPLETE, win, NULL);
    job->run_id[0] = '\0';
}

void kn_job_tell_failure(KnJob *job, const char *message)
{
    const KnWindowReport *win = job->run_id[0] ? &job->window : NULL;
    bool told = job->seen.looked && !job->seen.ok && !strcmp(job->seen.message, message);
    if (!job->svc->lineage || (!win && told))
        return;
    if (!win) {
        (void)kn_random_uuid7(job->run_id);
        send_run(job, KN_LINEAGE_START, NULL, NULL);
    }
    send_run(job, KN_LINEAGE_FAIL, win, message);
    job->run_id[0] = '\0';
}

void kn_job_tell_table(KnJob *job, const KnDeliveryReport *report)
{
    KN_BUF_AUTO text;
    kn_buf_init(&text, MAX_EVENT);
    if (!job->svc->airflow || report->n_windows == 0)
        return;
    const KnLineageRun run = run_of(job);
    kn_airflow_write(&text, job->svc->opts.airflow_prefix, &run, report);
    if (!text.failed)
        kn_outbox_send(job->svc->airflow, (KnStr){text.data, text.len});
}
