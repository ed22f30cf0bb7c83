/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run.c - `knut pipeline run`: a pipeline run to its end, its events printed as they happen; and
 * `knut pipeline plan`: what would be done.
 */
#include <stdio.h>

#include "base/json.h"
#include "base/stop.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "cli/pipeline/run_args.h"

typedef struct RunOptions {
    KnCommonOptions common;
    KnLocator loc;
    KnRunArgs args;
    const char *run_id;
    bool dry, once;
} RunOptions;

static const KnOption run_rows[] = {
    {.name = "run-id",
     .type = KN_OPT_TEXT,
     .offset = offsetof(RunOptions, run_id),
     .value = "ID",
     .doc =
         "A run of this id adds its rows to an Iceberg table once, however often it is repeated"},
    {.name = "once",
     .type = KN_OPT_FLAG,
     .offset = offsetof(RunOptions, once),
     .doc = "Read of streams what is there now, and end, whatever their triggers say"},
    {.name = "dry",
     .type = KN_OPT_FLAG,
     .offset = offsetof(RunOptions, dry),
     .doc = "Check everything, sources and queries too, and compute nothing"},
};

typedef struct Printer {
    KnOutputFormat format;
    KnRunControl control;
    KnCode rc; /* of the first line that could not be printed */
    KnErr err;
} Printer;

static void print_event(void *arg, const KnRunEvent *event)
{
    Printer *p = arg;
    KN_BUF_AUTO line = {.max = 1 << 20};
    const char *phase = kn_run_phase_name(event->phase);
    if (p->rc != KN_OK)
        return;
    if (p->format == KN_OUTPUT_JSON)
        kn_run_event_json(&line, event);
    else
        kn_buf_printf(&line, "%-9s  %s%s%s", phase ? phase : "",
                      event->element ? event->element : "", event->element ? ": " : "",
                      event->message);
    p->rc = kn_out_line((KnStr){line.data, line.len}, &p->err);
    if (p->rc != KN_OK) /* nobody hears of it: the run ends as well */
        kn_run_cancel(&p->control);
}

static KnCode run_pipeline(KnCall *call, KnErr *err)
{
    const RunOptions *opts = call->options;
    const KnBackend *backend = &kn_backend_native;
    const KnPipeline *pipeline = NULL;
    KnRunOptions run = {0};
    Printer printer = {.format = (KnOutputFormat)call->common->output};
    KN_RUN_CATALOG_AUTO catalog = {.locator = &opts->loc};
    KN_TRY(kn_args_run(call, &opts->args, &pipeline, &run, err));
    run.s3 = &opts->loc.s3;
    run.tables = kn_args_run_tables(&catalog);
    run.run_id = opts->run_id;
    run.dry = opts->dry;
    run.once = opts->once;
    KN_TRY(kn_args_check_backend(call, backend, pipeline, &run, err));
    run.on_event = print_event;
    run.event_arg = &printer;
    run.control = &printer.control;
    run.cancelled = kn_stop_requested;
    KnCode rc = backend->run(pipeline, &run, err);
    if (printer.rc != KN_OK) {
        *err = printer.err;
        return printer.rc;
    }
    return rc;
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
    run.tables = kn_args_run_tables(&catalog);
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
