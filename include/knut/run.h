/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * run.h - a pipeline run inside a program: rows of the program's own in and out as Arrow, events as
 * they happen.
 *
 *     KnutRunRows in[] = {{"orders", &stream}};
 *     KnutRun run = {.size = sizeof(run), .inputs = in, .n_inputs = 1, .on_rows = take};
 *     code = knut_pipeline_run(p, &run, &err);
 *
 * What is refused, and what a run does with files, tables and databases, is the same as for
 * `knut pipeline run` (docs/pipeline-native.md). All callbacks are called on the thread of the run.
 */
#include "knut/pipeline.h"
#include "knut/table.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Rows that flows read under a name, as if an input were declared under it. */
typedef struct KnutRunRows {
    const char *name;
    struct ArrowArrayStream *rows; /* taken over: released by the run, also when it fails */
} KnutRunRows;

typedef struct KnutRunEvent {
    int64_t timestamp_ms;
    const char *element; /* dataset; NULL = the run */
    const char *phase;   /* "queued", "planning", "running", "completed", "failed"; or NULL */
    const char *message;
    const char *expectation;           /* whose numbers these are; NULL = the dataset's */
    int64_t rows, violations, unknown; /* -1 = not told */
} KnutRunEvent;

typedef struct KnutRunControl KnutRunControl;
KnutRunControl *knut_run_control_new(void);
/** Ends the runs that have it, soon and with nothing written (KN_E_CANCELLED). From any thread. */
void knut_run_cancel(KnutRunControl *control);
/** After those runs. Accepts NULL. */
void knut_run_control_free(KnutRunControl *control);

typedef struct KnutRun {
    size_t size; /* sizeof(KnutRun) */
    /* Where the pipeline's Iceberg tables are, how s3:// is reached, and what the engine may use:
     * of its members `table`, `root` and `metadata` do not count. NULL = there is no catalog. */
    const KnutOpen *open;
    const KnutRunRows *inputs;
    size_t n_inputs;
    KnutNames select;       /* datasets, with what they need; none = all */
    KnutNames full_refresh; /* made anew; "all" = every one */
    bool once;              /* what is there now, whatever the triggers say */
    bool dry;               /* all is checked and bound, nothing computed */
    const char *run_id;     /* what a run of this id added is not added again; NULL = a new one */
    KnutRunControl *control;
    void (*on_event)(void *arg, const KnutRunEvent *event);
    /* The rows of datasets that are written nowhere and read by nothing, in pieces. rows is the
     * callee's, who releases it; schema is the caller's. Other than 0 ends the run. */
    int (*on_rows)(void *arg, const char *dataset, const struct ArrowSchema *schema,
                   struct ArrowArray *rows);
    void *arg; /* of both */
} KnutRun;

/** To the end of all that is there. KN_E_UNSUPPORTED: what the backend does not do, said before
 * anything is touched. */
KnCode knut_pipeline_run(KnutPipeline *pipeline, const KnutRun *run, KnErr *err);

#ifdef __cplusplus
}
#endif
