/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scan.c - a plan's rows as batches: the groups of its KnRead streamed one after another.
 *
 * Batches come from the engine untouched; the scan adds one comparison per batch. One thread.
 */
#include <stdlib.h>

#include "iceberg/scan/read.h"

struct KnScan {
    KnSession *ses;
    KnRead *read;
    KnStream *stream; /* of group - 1; NULL between groups */
    size_t group;     /* the next one */
};

KnCode kn_scan_open(const KnPlan *plan, KnSession *ses, const KnReadOptions *opts, KnScan **ret,
                    KnErr *err)
{
    KnRead *read = NULL;
    KnScanTasks tasks = {plan->tasks, plan->n_tasks};
    KN_TRY(kn_read_open(plan->tbl, ses, tasks, opts, &read, err));
    KnScan *scan = calloc(1, sizeof(*scan));
    if (!scan)
        abort();
    *scan = (KnScan){.ses = ses, .read = read};
    *ret = scan;
    return KN_OK;
}

KnCode kn_scan_next(KnScan *scan, KnBatch **ret, KnErr *err)
{
    for (;;) {
        if (!scan->stream) {
            if (scan->group == kn_read_n_groups(scan->read)) {
                *ret = NULL;
                return KN_OK;
            }
            KN_TRY(kn_session_query(scan->ses, kn_read_group_sql(scan->read, scan->group),
                                    &scan->stream, err));
            scan->group++;
        }
        KnBatch *batch = NULL;
        KN_TRY(kn_stream_next(scan->stream, &batch, err));
        if (batch) {
            *ret = batch;
            return KN_OK;
        }
        scan->stream = kn_stream_close(scan->stream);
    }
}

KnScan *kn_scan_close(KnScan *scan)
{
    if (!scan)
        return NULL;
    kn_stream_close(scan->stream);
    kn_read_close(scan->read);
    free(scan);
    return NULL;
}
