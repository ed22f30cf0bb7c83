/* SPDX-License-Identifier: Apache-2.0 */
/*
 * queue.c - a ring of batches under one lock.
 *
 * A batch counts with the bytes of its values; one batch always fits, so that a row larger than the
 * bound still passes. An end of chunk is an entry without a batch. The lock is held for a few
 * instructions per 2048 rows.
 */
#include "cdc/queue.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/err.h"

#define RING 512

typedef struct Entry {
    KnBatch *batch; /* NULL = end of chunk */
    uint64_t bytes;
} Entry;

struct KnQueue {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    Entry ring[RING];
    size_t head, len;
    uint64_t bytes, max_bytes;
    size_t turn;   /* the chunk at the head */
    KnCode failed; /* of the reader, or KN_E_CANCELLED */
    KnErr err;
    KnQueueWaits waits;
};

KnQueue *kn_queue_new(uint64_t max_bytes)
{
    KnQueue *queue = calloc(1, sizeof(*queue));
    if (!queue)
        abort();
    queue->max_bytes = max_bytes;
    pthread_mutex_init(&queue->lock, NULL);
    pthread_cond_init(&queue->changed, NULL);
    return queue;
}

KnQueue *kn_queue_free(KnQueue *queue)
{
    if (!queue)
        return NULL;
    for (size_t i = 0; i < queue->len; ++i)
        (void)kn_batch_unref(queue->ring[(queue->head + i) % RING].batch);
    pthread_cond_destroy(&queue->changed);
    pthread_mutex_destroy(&queue->lock);
    free(queue);
    return NULL;
}

static KnCode report(const KnQueue *queue, KnErr *err)
{
    if (err)
        *err = queue->err;
    return queue->failed;
}

static void wait_for_change(KnQueue *queue, int64_t *waited_us)
{
    int64_t from = kn_clock_mono_us();
    (void)pthread_cond_wait(&queue->changed, &queue->lock);
    *waited_us += kn_clock_mono_us() - from;
}

KnQueueWaits kn_queue_waits(KnQueue *queue)
{
    pthread_mutex_lock(&queue->lock);
    KnQueueWaits waits = queue->waits;
    pthread_mutex_unlock(&queue->lock);
    return waits;
}

static KnCode push(KnQueue *queue, Entry entry, KnErr *err)
{
    pthread_mutex_lock(&queue->lock);
    while (!queue->failed &&
           (queue->len == RING || (queue->len && queue->bytes + entry.bytes > queue->max_bytes)))
        wait_for_change(queue, &queue->waits.push_us);
    KnCode rc = queue->failed ? report(queue, err) : KN_OK;
    if (rc == KN_OK) {
        queue->ring[(queue->head + queue->len++) % RING] = entry;
        queue->bytes += entry.bytes;
        pthread_cond_broadcast(&queue->changed);
    }
    pthread_mutex_unlock(&queue->lock);
    if (rc != KN_OK)
        (void)kn_batch_unref(entry.batch);
    return rc;
}

KnCode kn_queue_push(KnQueue *queue, KnBatch *batch, KnErr *err)
{
    assert(batch);
    return push(queue, (Entry){batch, kn_batch_bytes(batch)}, err);
}

KnCode kn_queue_push_end(KnQueue *queue, KnErr *err)
{
    return push(queue, (Entry){NULL, 0}, err);
}

void kn_queue_fail(KnQueue *queue, KnCode code, const KnErr *err)
{
    pthread_mutex_lock(&queue->lock);
    if (!queue->failed) {
        queue->failed = code;
        queue->err = *err;
    }
    pthread_cond_broadcast(&queue->changed);
    pthread_mutex_unlock(&queue->lock);
}

void kn_queue_cancel(KnQueue *queue)
{
    KnErr err = {0};
    KnCode code = kn_err_set(&err, KN_E_CANCELLED, "another load of the window has failed");
    kn_queue_fail(queue, code, &err);
}

static Entry pop(KnQueue *queue)
{
    Entry entry = queue->ring[queue->head];
    queue->head = (queue->head + 1) % RING;
    --queue->len;
    queue->bytes -= entry.bytes;
    if (!entry.batch)
        ++queue->turn;
    pthread_cond_broadcast(&queue->changed);
    return entry;
}

KnCode kn_queue_take(KnQueue *queue, size_t turn, KnBatch **ret, KnErr *err)
{
    pthread_mutex_lock(&queue->lock);
    while (!queue->failed && queue->turn <= turn && (queue->turn != turn || queue->len == 0))
        wait_for_change(queue, &queue->waits.take_us);
    KnCode rc = KN_OK;
    if (queue->turn > turn)
        *ret = NULL;
    else if (queue->failed)
        rc = report(queue, err);
    else
        *ret = pop(queue).batch;
    pthread_mutex_unlock(&queue->lock);
    return rc;
}
