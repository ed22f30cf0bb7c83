/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * arrow.h - streams and batches in the Arrow C data interface, for consumers outside of knut.
 *
 * The columns become children of one struct array. UUIDs come as text, TIMESTAMP WITH TIME ZONE as
 * timestamp[us, UTC].
 */
#include "knut/arrow.h"

#include "engine/engine.h"

/** The schema of a live stream's columns. The caller releases it. */
KN_NODISCARD KnCode kn_stream_arrow_schema(KnStream *stream, struct ArrowSchema *ret, KnErr *err);
/** A copy of the batch's rows, which lives on its own. stream: any live stream of the batch's
 * engine (its settings count). The caller releases it. */
KN_NODISCARD KnCode kn_batch_arrow_array(KnStream *stream, const KnBatch *batch,
                                         struct ArrowArray *ret, KnErr *err);
