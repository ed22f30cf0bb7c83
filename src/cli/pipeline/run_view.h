/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * run_view.h - what a run of a pipeline shows: its events as lines of text or JSON on standard
 * output; or, for a person at a terminal, a table on standard error that is drawn again while the
 * run goes on, and on standard output what became of each dataset.
 *
 * Events and progress may come from different threads.
 */
#include <pthread.h>

#include "base/terminal.h"
#include "base/vec.h"
#include "cli/command.h"
#include "cli/pipeline/quality.h"
#include "pipeline/backend.h"

typedef enum KnRunState {
    KN_RUN_WAITING,
    KN_RUN_RUNNING,
    KN_RUN_DONE,
    KN_RUN_FAILED,
} KnRunState;

/* A dataset of the table. */
typedef struct KnRunRow {
    const char *dataset;
    KnRunState state;
    double part; /* as KnRunProgress */
    int64_t rows, batches, watermark_ms;
    int64_t violations;
    int64_t start_us, end_us; /* 0 = not yet */
    char *message;            /* the last about it; ours */
} KnRunRow;

typedef struct KnPipelineView {
    const char *pipeline;
    KnOutputFormat format;
    KnRunControl control; /* the run's: it ends when nobody hears it */
    bool live, colours;
    pthread_mutex_t lock;
    KN_VEC(KnRunRow) rows; /* in the order of running */
    KnQuality *quality;    /* gets what expectations found, or NULL */
    KnLive block;
    int64_t start_us, drawn_us;
    KnCode rc; /* of the first line that could not be printed */
    KnErr err;
} KnPipelineView;

/** Lives until kn_pipeline_view_close(); its place must not change. */
void kn_pipeline_view_open(KnPipelineView *view, const KnCall *call, const KnPipeline *pipeline);
/** Hands the view to the run. */
void kn_pipeline_view_attach(KnPipelineView *view, KnRunOptions *run);
/** KnRunEventFn. */
void kn_pipeline_view_event(void *arg, const KnRunEvent *event);
/** The end: rc and err are the run's. What it returns is the command's. */
KN_NODISCARD KnCode kn_pipeline_view_close(KnPipelineView *view, KnCode rc, KnErr *err);
/** The table as it stands, for a terminal of that size (for tests). */
void kn_pipeline_view_render(const KnPipelineView *view, KnTermSize size, int64_t now_us,
                             KnBuf *out);
