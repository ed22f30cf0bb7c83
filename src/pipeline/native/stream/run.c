/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run.c - all streaming flows of a run, side by side on one thread.
 *
 * Each turn gives every flow one epoch, in the order in which datasets need one another, if its
 * trigger says so and its source has something. Flows that read what is there now end when there is
 * no more of it, and none that they read from goes on. Others go on until the run is told to end:
 * the epoch in flight then ends with it, committed or left out.
 */
#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "pipeline/native/stream/stream.h"

enum { POLL_MS = 100, NAP_MS = 20 };

struct KnStreams {
    KN_VEC(KnStreamFlow *) flows;
};

static KnCode open_flows(KnNativeRun *run, KnNativeNode *node, KnErr *err)
{
    const KnIndexes *writers = &run->graph->writers[node - run->nodes];
    if (!run->streams)
        run->streams = kn_arena_zalloc(run->arena, sizeof(*run->streams));
    for (size_t w = 0; w < writers->len; w++) {
        KnStreamFlow **slot = kn_vec_push(&run->streams->flows);
        KN_TRY(kn_stream_flow_open(run, node, &run->pipeline->flows.items[writers->items[w]], slot,
                                   err));
    }
    return KN_OK;
}

static KnCode open_all(KnNativeRun *run, KnErr *err)
{
    for (size_t i = 0; i < run->pipeline->datasets.len; i++) {
        KnNativeNode *node = &run->nodes[run->graph->order.items[i]];
        if (node->action == KN_NATIVE_STREAM)
            KN_TRY(open_flows(run, node, err));
    }
    return KN_OK;
}

void kn_streams_close(KnNativeRun *run)
{
    if (!run->streams)
        return;
    kn_vec_foreach (&run->streams->flows, f) {
        (void)kn_stream_flow_close(*f);
    }
    kn_vec_done(&run->streams->flows);
    run->streams = NULL;
}

/* Is something that is read from still being written? */
static bool is_fed(const KnNativeRun *run, const KnStreamFlow *f)
{
    const KnGraphReads *reads = &run->graph->reads[f->at];
    kn_vec_foreach (&run->streams->flows, other) {
        size_t dataset = (size_t)((*other)->node - run->nodes);
        for (size_t r = 0; r < reads->len && !(*other)->done; r++)
            if (*other != f && reads->items[r].dataset == dataset)
                return true;
    }
    return false;
}

static void set_due(KnStreamFlow *f, int64_t begun_ms, bool did)
{
    const KnutTrigger *trigger = &f->spec->trigger;
    if (!f->endless)
        return;
    if (trigger->tag == KNUT_TRIGGER_PROCESSING_TIME && trigger->processing_time.interval_ms)
        f->due_ms = begun_ms + (int64_t)trigger->processing_time.interval_ms;
    else
        f->due_ms = did ? 0 : begun_ms + POLL_MS;
}

static KnCode turn(KnNativeRun *run, KnStreamFlow *f, bool *ret_did, KnErr *err)
{
    int64_t begun = kn_native_now(run);
    bool fed = is_fed(run, f);
    *ret_did = false;
    if (f->done || begun < f->due_ms)
        return KN_OK;
    KN_TRY(kn_native_going_on(run, err));
    atomic_store(&run->current, f->node);
    KnCode rc = kn_stream_step(f, ret_did, err);
    atomic_store(&run->current, NULL);
    KN_TRY(rc);
    set_due(f, begun, *ret_did);
    if (!*ret_did && !fed && (!f->endless || f->source->ended)) {
        f->done = true;
        kn_native_tell(
            run, &(KnRunEvent){.element = f->node->dataset->name, .phase = KN_PHASE_COMPLETED},
            "flow `%s` (streaming): %" PRId64 " epoch(s), nothing more to read", f->flow->name,
            f->epochs);
    }
    return KN_OK;
}

static void nap(void)
{
    const struct timespec pause = {.tv_nsec = NAP_MS * 1000000L};
    (void)nanosleep(&pause, NULL);
}

static KnCode go_on(KnNativeRun *run, KnErr *err)
{
    for (;;) {
        bool any = false, all_done = true;
        kn_vec_foreach (&run->streams->flows, f) {
            bool did = false;
            KN_TRY(turn(run, *f, &did, err));
            any |= did;
            all_done &= (*f)->done;
        }
        if (all_done)
            return KN_OK;
        if (!any)
            nap();
    }
}

static bool has_endless(const KnNativeRun *run)
{
    kn_vec_foreach (&run->streams->flows, f) {
        if (*f && (*f)->endless && !(*f)->done)
            return true;
    }
    return false;
}

static KnCode relate(KnNativeRun *run, KnStreamFlow *f, KnErr *err)
{
    const char *sql = NULL;
    if (!f->node->readers)
        return KN_OK;
    KN_TRY(f->sink->ops->rows(f->sink, &sql, err));
    if (sql)
        KN_TRY(kn_native_create(run, "OR REPLACE VIEW", f->node->dataset->name, sql, err));
    return kn_native_alias(run, f->node, err);
}

KnCode kn_streams_run(KnNativeRun *run, bool *ret_stopped, KnErr *err)
{
    *ret_stopped = false;
    KnCode rc = open_all(run, err);
    if (rc == KN_OK)
        rc = go_on(run, err);
    if (rc == KN_E_CANCELLED && has_endless(run)) {
        *ret_stopped = true;
        return KN_OK;
    }
    kn_vec_foreach (&run->streams->flows, f) {
        if (rc == KN_OK)
            rc = relate(run, *f, err);
    }
    return rc;
}

/* The rows of a source that a run would begin with, or NULL. */
static KnCode first_rows(KnStreamFlow *f, const char **ret, KnErr *err)
{
    const KnStreamLimit some = {.files = 1, .rows = 1};
    json_t *to = NULL;
    KN_TRY(f->source->ops->columns(f->source, ret, err));
    if (*ret)
        return KN_OK;
    KN_TRY(f->source->ops->latest(f->source, NULL, &some, &to, err));
    KnCode rc = to ? f->source->ops->rows(f->source, NULL, to, ret, err) : KN_OK;
    json_decref(to);
    return rc;
}

static KnCode bind_one(KnStreamFlow *f, bool *ret_bound, KnErr *err)
{
    KnNativeRun *run = f->run;
    KnStreamEpoch e = {.f = f, .before = INT64_MIN, .now = INT64_MIN};
    const char *rows = NULL;
    int64_t n = 0;
    KN_TRY(first_rows(f, &rows, err));
    if (!rows) {
        *ret_bound = false;
        return KN_OK;
    }
    rows = kn_arena_printf(run->arena, "SELECT * FROM (%s\n) LIMIT 0", rows);
    KN_TRY(kn_stream_bind(f, rows, err));
    KN_TRY(kn_stream_take(&e, rows, err));
    KN_TRY(kn_stream_keep(&e, err));
    KN_TRY(kn_stream_emit(&e, &n, err));
    KN_TRY(kn_stream_hide(f, err));
    KN_TRY(kn_native_create(
        run, "OR REPLACE VIEW", f->node->dataset->name,
        kn_arena_printf(run->arena, "SELECT * FROM %s", kn_stream_table_name(f, "out")), err));
    return kn_native_alias(run, f->node, err);
}

KnCode kn_streams_bind(KnNativeRun *run, KnNativeNode *node, bool *ret_bound, KnErr *err)
{
    *ret_bound = true;
    KN_TRY(open_flows(run, node, err));
    kn_vec_foreach (&run->streams->flows, f) {
        if ((*f)->node == node)
            KN_TRY(kn_err_wrap(err, bind_one(*f, ret_bound, err), "flow %s", (*f)->flow->name));
    }
    return KN_OK;
}
