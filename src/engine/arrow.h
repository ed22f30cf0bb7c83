/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * arrow.h - streams and batches in the Arrow C data interface, to and from programs outside of
 * knut.
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
/** Both for a batch without its stream, by the settings of a session of its engine. The caller
 * releases both. */
KN_NODISCARD KnCode kn_batch_arrow(KnSession *ses, const KnBatch *batch,
                                   struct ArrowSchema *ret_schema, struct ArrowArray *ret,
                                   KnErr *err);

/* A stream from outside as a view of a session (arrow_rows.c). */
typedef struct KnArrowRows KnArrowRows;
/** Its rows are there once, under the name. Takes the stream over, also when it fails. */
KN_NODISCARD KnCode kn_arrow_rows_open(KnSession *ses, const char *name,
                                       struct ArrowArrayStream *stream, KnArrowRows **ret,
                                       KnErr *err);
/** The view is gone. Accepts NULL, returns NULL. */
KnArrowRows *kn_arrow_rows_close(KnArrowRows *rows);
