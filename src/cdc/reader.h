/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * reader.h - the rows of a window in the order of its plan, cut at chunk boundaries, each row's
 * place checked against the plan before it goes on.
 *
 * Runs on the thread that calls kn_reader_run(); the session is its alone meanwhile.
 */
#include "cdc/chunk_plan.h"
#include "cdc/queue.h"
#include "engine/engine.h"
#include "iceberg/changes/changelog.h"
#include "iceberg/scan/read.h"

typedef struct KnReader {
    const KnWindow *win;
    const KnChunkPlan *plan;
    const KnSchema *schema;
    KnSession *ses;
    KnSpool *spool;          /* COMPUTED */
    const KnScanTask *tasks; /* DIRECT: one for each of the plan's files */
    const KnRead *read; /* of all tasks, when it is open already (kn_reader_count); else NULL */
    const bool *wanted; /* one for each chunk: still to be loaded */
    bool positions;     /* leave _task and _pos in the batches */
    KnQueue *queue;
} KnReader;

/** Pushes the wanted chunks' rows, each chunk followed by its end. Files of which no chunk is
 * wanted are not opened. KN_E_CORRUPT: what was read is not what was planned. */
KN_NODISCARD KnCode kn_reader_run(const KnReader *reader, KnErr *err);

/** Live rows of each range of a DIRECT plan, into the plan. Deletes are resolved for that; *ret is
 * the read that has done it, for kn_reader_run() to go on with. The caller closes it, before the
 * session. */
KN_NODISCARD KnCode kn_reader_count(const KnReader *reader, KnChunkPlan *plan, KnRead **ret,
                                    KnErr *err);
