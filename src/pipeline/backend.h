/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * backend.h - what runs a pipeline: one const struct of functions each, one line in backend.c.
 *
 * check() says everything that the backend cannot do with a pipeline before anything is touched; a
 * run that check() let through does not fail for want of a feature. Events are told while the run
 * goes on, by its thread. A run ends early when its control says so, from any thread.
 */
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "knut/arrow.h"

#include "base/buf.h"
#include "base/err.h"
#include "engine/engine.h"
#include "pipeline/ir/ir.h"
#include "pipeline/surface/surface.h"

typedef struct KnCapabilities {
    const char *name;
    bool batch, streaming, event_time, cdc, expectations, incremental_state, partition_transforms,
        graph_sinks;
    const char *const *output_modes; /* NULL at the end */
} KnCapabilities;

typedef enum KnRunPhase {
    KN_PHASE_NONE,
    KN_PHASE_QUEUED,
    KN_PHASE_PLANNING,
    KN_PHASE_RUNNING,
    KN_PHASE_COMPLETED,
    KN_PHASE_FAILED,
} KnRunPhase;
/** "queued", ...; NULL for none. */
const char *kn_run_phase_name(KnRunPhase phase);

/* What an expectation found in the rows of a dataset's flow, or in what a run wrote. */
typedef struct KnRunMetrics {
    const char *expectation; /* its name; NULL = the numbers are the dataset's */
    const char *action;      /* "warn", "drop", "fail"; NULL like the name */
    int64_t rows;            /* looked at, or written; -1 = not counted */
    int64_t violations;      /* FALSE */
    int64_t unknown;         /* NULL: no violation */
} KnRunMetrics;

typedef struct KnRunEvent {
    int64_t timestamp_ms;
    const char *run;     /* its id */
    const char *element; /* dataset; NULL = the run */
    const char *message;
    KnRunPhase phase;
    const KnRunMetrics *metrics; /* NULL = none */
} KnRunEvent;
typedef void (*KnRunEventFn)(void *arg, const KnRunEvent *event);
/** {"timestamp":..., "run":..., "element":..., "phase":..., "message":..., "metrics":{...}} */
void kn_run_event_json(KnBuf *out, const KnRunEvent *event);

/* How far one dataset of a run is, for somebody who watches. */
typedef struct KnRunProgress {
    const char *dataset;
    double part;          /* 0 to 1; negative = not known, as of a stream that goes on */
    int64_t rows;         /* that were read so far; may be an estimate; -1 = not known */
    int64_t batches;      /* of a stream that are done; -1 = it is none */
    int64_t watermark_ms; /* INT64_MIN = none */
} KnRunProgress;
/* Of several threads, one call at a time, while events may be told: must be quick, and must lock
 * what both change. */
typedef void (*KnRunProgressFn)(void *arg, const KnRunProgress *progress);

/* A running run's end, before its time. Zeroed; thread-safe. */
typedef struct KnRunControl {
    atomic_bool cancelled;
} KnRunControl;
/** The statement that runs ends soon, nothing is published after. */
static inline void kn_run_cancel(KnRunControl *control)
{
    atomic_store(&control->cancelled, true);
}

typedef struct KnTable KnTable;
typedef struct KnS3Options KnS3Options; /* storage/s3/s3.h */

/* How a run opens Iceberg tables: whoever knows catalogs hands it in. */
typedef struct KnRunTables {
    /** name: "ns.t". The run frees the table before the opener goes. */
    KnCode (*open)(void *arg, const char *name, KnTable **ret, KnErr *err);
    void *arg;
} KnRunTables;

/* Rows of ours that come in micro-batches: what flows read that stream this name. */
typedef struct KnRunStream {
    const char *name;
    const char *const *column_names;
    const char *const *column_types; /* SQL type names */
    size_t n_columns;
    /** How many micro-batches there are by now; they stay the same and may be read again.
     * *ret_ended: there will be no more. */
    uint64_t (*count)(void *arg, bool *ret_ended);
    /** The nth piece of a micro-batch, both from 0; NULL behind its last. From the engine's
     * threads, one at a time. */
    KnCode (*next)(void *arg, uint64_t batch, uint64_t nth, KnBatch **ret, KnErr *err);
    void *arg;
} KnRunStream;

/* Rows of ours, by the name that flows read. */
typedef struct KnRunArrow {
    const char *name;
    struct ArrowArrayStream *rows;
} KnRunArrow;

typedef struct KnRunOptions {
    KnEngineOptions engine;
    KnutNames select;          /* datasets that are wanted, with what they need; none = all */
    KnutNames full_refresh;    /* datasets that are made anew; "all" = every one */
    bool once;                 /* what is there now, whatever the triggers say */
    bool dry;                  /* all is planned and bound, nothing computed */
    const KnS3Options *s3;     /* how s3:// is reached; NULL = as the environment says */
    const KnRunTables *tables; /* NULL = there is no catalog */
    const char *run_id; /* the caller's: what a run of this id put into a table is not put there
                           again; NULL = a new one */
    const KnFeedOptions *memory; /* rows of ours, by the name that flows read */
    size_t n_memory;
    const KnRunArrow *arrow; /* the same as Arrow: taken over when the run comes to them */
    size_t n_arrow;
    const KnRunStream *streams;
    size_t n_streams;
    const char *state;           /* where streams keep their state; NULL = the pipeline's storage */
    int64_t (*clock_ms)(void);   /* of triggers and idle time-outs; NULL = the wall's */
    KnRunEventFn on_event;       /* or NULL */
    KnRunProgressFn on_progress; /* or NULL */
    void *event_arg;             /* of both */
    /* The rows of datasets that are written nowhere and read by nothing, or NULL. ses: busy with
     * them. */
    KnCode (*on_rows)(void *arg, const char *dataset, KnSession *ses, KnBatch *batch, KnErr *err);
    void *rows_arg;
    KnRunControl *control;   /* or NULL */
    bool (*cancelled)(void); /* asked now and then, or NULL */
} KnRunOptions;

/* One step of a run, as plan() tells it. */
typedef struct KnPlanStep {
    const char *dataset;
    const char *action;  /* "view", "table", "write", "count", "skip" */
    const char *target;  /* where it is written; NULL = nowhere */
    const char *format;  /* of the target */
    int64_t readers;     /* flows that read it */
    const char *scan;    /* of the next members: what is read; NULL = the step itself */
    const char *columns; /* that the scan takes from the source */
    const char *filter;  /* that the scan applies; NULL = none */
} KnPlanStep;
typedef KnCode (*KnPlanStepFn)(void *arg, const KnPlanStep *step, KnErr *err);

typedef struct KnBackend {
    const KnCapabilities *capabilities;
    /** One note for each thing that it cannot do; none = run() may be called. The pipeline has
     * been validated. */
    void (*check)(const KnPipeline *pipeline, const KnRunOptions *opts, KnNotes *refusals);
    /** To the end of all that is there, or until it is cancelled (KN_E_CANCELLED). */
    KnCode (*run)(const KnPipeline *pipeline, const KnRunOptions *opts, KnErr *err);
    /** What run() would do, proven by the plans of the engine. Reads sources' footers only. */
    KnCode (*plan)(const KnPipeline *pipeline, const KnRunOptions *opts, KnPlanStepFn fn, void *arg,
                   KnErr *err);
} KnBackend;

extern const KnBackend kn_backend_native; /* native/ */
/** All backends, NULL at the end. */
extern const KnBackend *const kn_backends[];
