/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run.c - `knut pipeline run`: a pipeline run to its end, its events printed as they happen; and
 * `knut pipeline plan`: what would be done.
 */
#include "cli/commands.h"
#include "cli/output.h"
#include "cli/pipeline/run_args.h"
#include "cli/pipeline/run_view.h"

typedef struct RunOptions {
    KnCommonOptions common;
    KnLocator loc;
    KnRunArgs args;
    const char *run_id, *quality, *state;
    bool dry, once, continuous;
} RunOptions;

static const KnOption run_rows[] = {
    {.name = "run-id",
     .type = KN_OPT_TEXT,
     .offset = offsetof(RunOptions, run_id),
     .value = "ID",
     .doc = "A run of this id adds its rows to a target once, however often it is repeated"},
    {.name = "quality",
     .type = KN_OPT_TEXT,
     .offset = offsetof(RunOptions, quality),
     .value = "FILE|TABLE",
     .doc = "Add what each expectation found to this Parquet, CSV or JSON file, or Iceberg table"},
    {.name = "state",
     .type = KN_OPT_TEXT,
     .offset = offsetof(RunOptions, state),
     .value = "FOLDER|URI",
     .doc = "Where streams keep their state (default: the pipeline's storage, else beside a local "
            "target)"},
    {.name = "once",
     .type = KN_OPT_FLAG,
     .offset = offsetof(RunOptions, once),
     .doc = "Read of streams what is there now, and end, whatever their triggers say"},
    {.name = "continuous",
     .type = KN_OPT_FLAG,
     .offset = offsetof(RunOptions, continuous),
     .doc = "Go on with streams until a signal, also where their trigger is available_now"},
    {.name = "dry",
     .type = KN_OPT_FLAG,
     .offset = offsetof(RunOptions, dry),
     .doc = "Check everything, sources and queries too, and compute nothing"},
};

static KnCode write_quality(const RunOptions *opts, const KnQuality *quality,
                            const KnQualityTarget *target, const KnRunOptions *run, KnErr *err)
{
    if (!opts->quality || opts->dry)
        return target->outcome;
    KnErr own = {0};
    KnCode written = kn_quality_write(quality, target, run, &own);
    if (target->outcome != KN_OK || written == KN_OK)
        return target->outcome;
    *err = own;
    return written;
}

/* The pipeline with streams that go on. */
static const KnPipeline *going_on(KnArena *arena, const KnPipeline *pipeline)
{
    KnPipeline *copy = kn_pipeline_copy(arena, pipeline);
    for (size_t i = 0; i < copy->flows.len; i++) {
        KnutTrigger *trigger = &((KnutFlow *)&copy->flows.items[i])->kind.streaming.trigger;
        if (copy->flows.items[i].kind.tag == KNUT_FLOW_STREAMING &&
            trigger->tag == KNUT_TRIGGER_AVAILABLE_NOW)
            *trigger = (KnutTrigger){.tag = KNUT_TRIGGER_CONTINUOUS};
    }
    return copy;
}

static KnCode read_pipeline(KnCall *call, const KnPipeline **ret, KnRunOptions *run, KnErr *err)
{
    const RunOptions *opts = call->options;
    if (opts->once && opts->continuous)
        return kn_err_set(err, KN_E_INVAL, "give --once or --continuous, not both");
    KN_TRY(kn_args_run(call, &opts->args, ret, run, err));
    if (opts->continuous)
        *ret = going_on(call->arena, *ret);
    run->s3 = &opts->loc.s3;
    run->run_id = opts->run_id;
    run->dry = opts->dry;
    run->once = opts->once;
    run->state = opts->state;
    return KN_OK;
}

static KnCode run_pipeline(KnCall *call, KnErr *err)
{
    const RunOptions *opts = call->options;
    const KnBackend *backend = &kn_backend_native;
    const KnPipeline *pipeline = NULL;
    KnRunOptions run = {0};
    KnPipelineView view;
    KN_RUN_CATALOG_AUTO catalog = {.locator = &opts->loc};
    KN_QUALITY_AUTO quality = {.arena = call->arena};
    KN_TRY(read_pipeline(call, &pipeline, &run, err));
    run.tables = kn_run_catalog_tables(&catalog);
    KN_TRY(kn_args_check_backend(call, backend, pipeline, &run, err));
    kn_pipeline_view_open(&view, call, pipeline);
    kn_pipeline_view_attach(&view, &run);
    view.quality = opts->quality ? &quality : NULL;
    KnCode rc = backend->run(pipeline, &run, err);
    rc = kn_pipeline_view_close(&view, rc, err);
    const KnQualityTarget target = {pipeline->name, opts->quality, rc};
    return write_quality(opts, &quality, &target, &run, err);
}

static KnCode print_step(void *arg, const KnPlanStep *step, KnErr *err)
{
    KnOut *out = arg;
    kn_out_text(out, step->dataset);
    kn_out_text(out, step->action);
    kn_out_text(out, step->target);
    kn_out_text(out, step->format);
    kn_out_opt_int(out, step->readers);
    kn_out_text(out, step->scan);
    kn_out_text(out, step->columns);
    kn_out_text(out, step->filter);
    return kn_out_check(out, err);
}

static KnCode plan_pipeline(KnCall *call, KnErr *err)
{
    static const KnOutColumn columns[] = {{"dataset", false}, {"action", false}, {"target", false},
                                          {"format", false},  {"readers", true}, {"scan", false},
                                          {"columns", false}, {"filter", false}};
    const RunOptions *opts = call->options;
    const KnBackend *backend = &kn_backend_native;
    const KnPipeline *pipeline = NULL;
    KnRunOptions run = {0};
    KN_RUN_CATALOG_AUTO catalog = {.locator = &opts->loc};
    KN_TRY(kn_args_run(call, &opts->args, &pipeline, &run, err));
    run.s3 = &opts->loc.s3;
    run.tables = kn_run_catalog_tables(&catalog);
    run.once = true; /* a plan ends */
    KN_TRY(kn_args_check_backend(call, backend, pipeline, &run, err));
    KnOut *out = kn_out_open((KnOutputFormat)call->common->output, columns, 8);
    KnCode rc = backend->plan(pipeline, &run, print_step, out, err);
    KnCode closed = kn_out_close(out, rc == KN_OK ? err : NULL);
    return rc == KN_OK ? closed : rc;
}

const KnCommand kn_cmd_pipeline_run = {
    .group = "pipeline",
    .name = "run",
    .summary = "Run a pipeline on the embedded engine",
    .about = "  knut pipeline run daily.ron --input orders=/data/orders.parquet\n"
             "Targets change at the end, each in one step: a run that fails has written nothing.",
    .options_size = sizeof(RunOptions),
    .locator = offsetof(RunOptions, loc),
    .rows = run_rows,
    .n_rows = sizeof(run_rows) / sizeof(run_rows[0]),
    .extra = &kn_run_args_options,
    .extra_base = offsetof(RunOptions, args),
    .positional = "FILE",
    .run = run_pipeline,
};
const KnCommand kn_cmd_pipeline_plan = {
    .group = "pipeline",
    .name = "plan",
    .summary = "Show what a run would compute and store, and what it would read of each source",
    .about = "  knut pipeline plan daily.ron --input orders=/data/orders.parquet",
    .options_size = sizeof(RunOptions),
    .locator = offsetof(RunOptions, loc),
    .extra = &kn_run_args_options,
    .extra_base = offsetof(RunOptions, args),
    .positional = "FILE",
    .run = plan_pipeline,
};
