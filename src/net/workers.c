/* SPDX-License-Identifier: Apache-2.0 */
/* workers.c - a ring of jobs under one lock, and threads that wait for it. */
#include "net/workers.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>

typedef struct Job {
    KnJobFn fn;
    void *arg;
} Job;

struct KnWorkers {
    pthread_mutex_t lock;
    pthread_cond_t work;
    Job *ring;
    size_t cap, head, len;
    pthread_t *threads;
    unsigned max_threads, n_threads, n_idle;
    bool ending;
};

static void *work_main(void *arg)
{
    KnWorkers *workers = arg;
    pthread_mutex_lock(&workers->lock);
    for (;;) {
        ++workers->n_idle;
        while (!workers->len && !workers->ending)
            pthread_cond_wait(&workers->work, &workers->lock);
        --workers->n_idle;
        if (!workers->len)
            break;
        Job job = workers->ring[workers->head];
        workers->head = (workers->head + 1) % workers->cap;
        --workers->len;
        pthread_mutex_unlock(&workers->lock);
        job.fn(job.arg);
        pthread_mutex_lock(&workers->lock);
    }
    pthread_mutex_unlock(&workers->lock);
    return NULL;
}

KnWorkers *kn_workers_new(unsigned max_threads, size_t max_queued)
{
    KnWorkers *workers = calloc(1, sizeof(*workers));
    if (!workers)
        abort();
    workers->ring = calloc(max_queued, sizeof(*workers->ring));
    workers->threads = calloc(max_threads, sizeof(*workers->threads));
    if (!workers->ring || !workers->threads)
        abort();
    workers->cap = max_queued;
    workers->max_threads = max_threads;
    pthread_mutex_init(&workers->lock, NULL);
    pthread_cond_init(&workers->work, NULL);
    return workers;
}

/* Signals are for the thread that waits for them. */
static void start_one(KnWorkers *workers)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    if (pthread_create(&workers->threads[workers->n_threads], NULL, work_main, workers) == 0)
        ++workers->n_threads;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

bool kn_workers_submit(KnWorkers *workers, KnJobFn fn, void *arg)
{
    pthread_mutex_lock(&workers->lock);
    bool room = !workers->ending && workers->len < workers->cap;
    if (room && workers->len >= workers->n_idle && workers->n_threads < workers->max_threads)
        start_one(workers);
    room = room && workers->n_threads > 0;
    if (room) {
        workers->ring[(workers->head + workers->len++) % workers->cap] = (Job){fn, arg};
        pthread_cond_signal(&workers->work);
    }
    pthread_mutex_unlock(&workers->lock);
    return room;
}

KnWorkers *kn_workers_free(KnWorkers *workers)
{
    if (!workers)
        return NULL;
    pthread_mutex_lock(&workers->lock);
    workers->ending = true;
    pthread_cond_broadcast(&workers->work);
    pthread_mutex_unlock(&workers->lock);
    for (unsigned i = 0; i < workers->n_threads; ++i)
        pthread_join(workers->threads[i], NULL);
    pthread_cond_destroy(&workers->work);
    pthread_mutex_destroy(&workers->lock);
    free(workers->ring);
    free(workers->threads);
    free(workers);
    return NULL;
}
