/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* check.h - what streaming flows ask for that is not done, said before anything is touched. */
#include "pipeline/native/native.h"

typedef struct KnStreamCheck {
    const KnPipeline *pipeline;
    const KnRunOptions *opts; /* NULL = of no run */
    const KnGraph *graph;
    KnNotes *notes;
    KnArena *arena;
} KnStreamCheck;

void kn_stream_check(const KnStreamCheck *c, size_t flow);
