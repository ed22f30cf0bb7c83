/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * quality.h - what expectations found in a run, as rows of a table that grows run by run.
 */
#include "base/arena.h"
#include "base/vec.h"
#include "pipeline/backend.h"

typedef struct KnQualityRow {
    int64_t timestamp_ms;
    const char *run, *dataset;
    KnRunMetrics metrics;
} KnQualityRow;

/* Texts in arena. Zeroed but for that. */
typedef struct KnQuality {
    KnArena *arena;
    KN_VEC(KnQualityRow) rows;
} KnQuality;
void kn_quality_done(KnQuality *quality);
#define KN_QUALITY_AUTO __attribute__((cleanup(kn_quality_done))) KnQuality

/** Keeps what the event says about an expectation; others are passed by. */
void kn_quality_event(KnQuality *quality, const KnRunEvent *event);

/* Where they go. */
typedef struct KnQualityTarget {
    const char *pipeline; /* its name */
    const char *path;     /* a file, by its extension; anything else is a table of the catalog */
    KnCode outcome;       /* of the run */
} KnQualityTarget;
/** Adds the rows to the target, by the backend's own means: whole or not at all. opts: the run's.
 */
KN_NODISCARD KnCode kn_quality_write(const KnQuality *quality, const KnQualityTarget *target,
                                     const KnRunOptions *opts, KnErr *err);
