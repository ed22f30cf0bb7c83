/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * queue.h - batches on their way from the thread that reads to the threads that load, bounded by
 * bytes.
 *
 * Chunks travel one after another: all of a chunk's batches, then its end. A taker names the chunk
 * it wants and waits until that chunk is at the head, so that several loads can be in flight while
 * rows keep their order. Thread-safe.
 */
#include <stddef.h>
#include <stdint.h>

#include "engine/batch.h"

typedef struct KnQueue KnQueue;

KnQueue *kn_queue_new(uint64_t max_bytes);
KnQueue *kn_queue_free(KnQueue *queue); /* no thread may be inside; drops what is left */

/** Takes the reference. Waits for room; KN_E_CANCELLED after kn_queue_cancel(). */
KN_NODISCARD KnCode kn_queue_push(KnQueue *queue, KnBatch *batch, KnErr *err);
/** The chunk at the tail is complete. */
KN_NODISCARD KnCode kn_queue_push_end(KnQueue *queue, KnErr *err);
/** The reader has failed: every taker gets this error from now on. */
void kn_queue_fail(KnQueue *queue, KnCode code, const KnErr *err);
/** The takers have failed: pushing and taking end with KN_E_CANCELLED. */
void kn_queue_cancel(KnQueue *queue);
/** The next batch of chunk `turn`, or NULL once at its end (and the turn passes on). */
KN_NODISCARD KnCode kn_queue_take(KnQueue *queue, size_t turn, KnBatch **ret, KnErr *err);

/** Microseconds that pushing and taking have waited so far. */
typedef struct KnQueueWaits {
    int64_t push_us, take_us;
} KnQueueWaits;
KnQueueWaits kn_queue_waits(KnQueue *queue);
