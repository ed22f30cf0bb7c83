/* SPDX-License-Identifier: Apache-2.0 */
/* run.c - runs of the public header over the native backend. */
#include "knut/run.h"

#include <stdlib.h>

#include "lib/lib_internal.h"
#include "lib/run_tables.h"
#include "pipeline/backend.h"
#include "pipeline/check/check.h"

struct KnutRunControl {
    KnRunControl control;
};

KnutRunControl *knut_run_control_new(void)
{
    KnutRunControl *control = calloc(1, sizeof(*control));
    if (!control)
        abort();
    return control;
}

void knut_run_cancel(KnutRunControl *control)
{
    kn_run_cancel(&control->control);
}

void knut_run_control_free(KnutRunControl *control)
{
    free(control);
}

static void tell(void *arg, const KnRunEvent *event)
{
    const KnutRun *run = arg;
    const KnRunMetrics none = {.rows = -1, .violations = -1, .unknown = -1};
    const KnRunMetrics *metrics = event->metrics ? event->metrics : &none;
    bool checked = metrics->expectation != NULL;
    const KnutRunEvent out = {.timestamp_ms = event->timestamp_ms,
                              .element = event->element,
                              .phase = kn_run_phase_name(event->phase),
                              .message = event->message,
                              .expectation = metrics->expectation,
                              .rows = metrics->rows,
                              .violations = checked ? metrics->violations : -1,
                              .unknown = checked ? metrics->unknown : -1};
    run->on_event(run->arg, &out);
}

static KnCode give(void *arg, const char *dataset, KnSession *ses, KnBatch *batch, KnErr *err)
{
    const KnutRun *run = arg;
    struct ArrowSchema schema = {0};
    struct ArrowArray array = {0};
    KnCode rc = KN_OK;
    KN_TRY(kn_batch_arrow(ses, batch, &schema, &array, err));
    if (run->on_rows(run->arg, dataset, &schema, &array) != 0)
        rc = kn_err_set(err, KN_E_CANCELLED, "dataset %s: its rows are not wanted", dataset);
    schema.release(&schema);
    return rc;
}

/* What the options of a run say, for the backend. */
static KnRunOptions options_of(KnArena *arena, const KnutRun *run)
{
    KnRunArrow *arrow = kn_arena_zalloc(arena, (run->n_inputs + 1) * sizeof(*arrow));
    for (size_t i = 0; i < run->n_inputs; i++)
        arrow[i] = (KnRunArrow){run->inputs[i].name, run->inputs[i].rows};
    return (KnRunOptions){
        .engine = {.threads = run->open ? run->open->threads : 0,
                   .memory_limit = run->open ? run->open->memory_limit : 0,
                   .spill_dir = run->open ? run->open->spill_dir : NULL},
        .select = run->select,
        .full_refresh = run->full_refresh,
        .once = run->once,
        .dry = run->dry,
        .run_id = run->run_id,
        .arrow = arrow,
        .n_arrow = run->n_inputs,
        .on_event = run->on_event ? tell : NULL,
        .event_arg = (void *)run,
        .on_rows = run->on_rows ? give : NULL,
        .rows_arg = (void *)run,
        .control = run->control ? &run->control->control : NULL,
    };
}

static KnCode check(KnArena *arena, const KnPipeline *pipeline, const KnRunOptions *opts,
                    KnErr *err)
{
    KN_FLAWS_AUTO flaws = {.arena = arena};
    KN_NOTES_AUTO refusals = {.arena = arena};
    kn_pipeline_check(kn_graph_new(arena, pipeline), &flaws);
    KN_TRY(kn_flaws_fail(&flaws, err));
    kn_backend_native.check(pipeline, opts, &refusals);
    if (refusals.list.len)
        return kn_err_set(err, KN_E_UNSUPPORTED, "%s", refusals.list.items[0].text);
    return KN_OK;
}

KnCode knut_pipeline_run(KnutPipeline *pipeline, const KnutRun *run, KnErr *err)
{
    static const KnutOpen nowhere = {.size = sizeof(nowhere)};
    KN_ARENA_AUTO arena = kn_arena_new(4096);
    const KnutPipelineSpec *spec = knut_pipeline_spec(pipeline);
    KnLocator locator = knut_locator(arena, run->open ? run->open : &nowhere);
    locator.table = locator.root = locator.metadata = NULL;
    KN_RUN_CATALOG_AUTO catalog = {.locator = &locator};
    KnRunOptions opts = options_of(arena, run);
    opts.tables = kn_run_catalog_tables(&catalog);
    opts.s3 = &locator.s3;
    KnCode rc = check(arena, spec, &opts, err);
    if (rc == KN_OK)
        rc = kn_backend_native.run(spec, &opts, err);
    for (size_t i = 0; i < run->n_inputs; i++) /* those that it did not come to */
        if (run->inputs[i].rows->release)
            run->inputs[i].rows->release(run->inputs[i].rows);
    return rc;
}
