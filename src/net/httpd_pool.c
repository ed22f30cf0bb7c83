/* SPDX-License-Identifier: Apache-2.0 */
/* httpd_pool.c - see httpd_pool.h. */
#include "net/httpd_pool.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/err.h"

enum { STACK_BYTES = 1 << 20 };

struct KnHttpdPool {
    pthread_mutex_t lock;
    pthread_cond_t wanted;
    KnHttpdJob *first, **last;
    size_t queued, idle, n_threads, max_threads;
    pthread_t *threads;
    bool ending;
};

static KnHttpdJob *take(KnHttpdPool *pool)
{
    KnHttpdJob *job = pool->first;
    if (!job)
        return NULL;
    pool->first = job->next;
    if (!pool->first)
        pool->last = &pool->first;
    pool->queued--;
    return job;
}

static void *work(void *arg)
{
    KnHttpdPool *pool = arg;
    (void)pthread_mutex_lock(&pool->lock);
    for (;;) {
        KnHttpdJob *job = take(pool);
        if (!job && pool->ending)
            break;
        if (!job) {
            pool->idle++;
            (void)pthread_cond_wait(&pool->wanted, &pool->lock);
            pool->idle--;
            continue;
        }
        (void)pthread_mutex_unlock(&pool->lock);
        job->run(job);
        (void)pthread_mutex_lock(&pool->lock);
    }
    (void)pthread_mutex_unlock(&pool->lock);
    return NULL;
}

KnHttpdPool *kn_httpd_pool_new(size_t max_threads)
{
    KnHttpdPool *pool = calloc(1, sizeof(*pool));
    pthread_t *threads = calloc(max_threads, sizeof(*threads));
    if (!pool || !threads)
        abort();
    pool->threads = threads;
    pool->max_threads = max_threads;
    pool->last = &pool->first;
    (void)pthread_mutex_init(&pool->lock, NULL);
    (void)pthread_cond_init(&pool->wanted, NULL);
    return pool;
}

/* With the lock held. */
static void add_thread(KnHttpdPool *pool)
{
    pthread_attr_t attr;
    (void)pthread_attr_init(&attr);
    (void)pthread_attr_setstacksize(&attr, STACK_BYTES);
    if (pthread_create(&pool->threads[pool->n_threads], &attr, work, pool) == 0)
        pool->n_threads++;
    (void)pthread_attr_destroy(&attr);
}

void kn_httpd_pool_run(KnHttpdPool *pool, KnHttpdJob *job)
{
    (void)pthread_mutex_lock(&pool->lock);
    if (pool->queued >= pool->idle && pool->n_threads < pool->max_threads)
        add_thread(pool);
    bool here = pool->n_threads == 0;
    if (!here) {
        job->next = NULL;
        *pool->last = job;
        pool->last = &job->next;
        pool->queued++;
        (void)pthread_cond_signal(&pool->wanted);
    }
    (void)pthread_mutex_unlock(&pool->lock);
    if (here)
        job->run(job);
}

KnHttpdPool *kn_httpd_pool_free(KnHttpdPool *pool)
{
    if (!pool)
        return NULL;
    (void)pthread_mutex_lock(&pool->lock);
    pool->ending = true;
    (void)pthread_cond_broadcast(&pool->wanted);
    (void)pthread_mutex_unlock(&pool->lock);
    for (size_t i = 0; i < pool->n_threads; i++)
        (void)pthread_join(pool->threads[i], NULL);
    (void)pthread_cond_destroy(&pool->wanted);
    (void)pthread_mutex_destroy(&pool->lock);
    free(pool->threads);
    free(pool);
    return NULL;
}
