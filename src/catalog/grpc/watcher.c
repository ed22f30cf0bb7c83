/* SPDX-License-Identifier: Apache-2.0 */
/*
 * watcher.c - the thread that sees new commits for all who watch.
 *
 * It runs while somebody watches. Its position is always followed by a wake-up: a flow that read
 * the log before an event is pulled after it, whichever of the two saw it first.
 */
#include "base/clock.h"
#include "catalog/grpc/front_internal.h"

enum { WAIT_MS = 250, PAUSE_MS = 1000, HEALTH_US = 2000000 };

/* False when the front is closing. */
static bool wait_for_watchers(KnGrpcWatcher *watcher)
{
    pthread_mutex_lock(&watcher->lock);
    while (!watcher->ending && !watcher->n_watching)
        pthread_cond_wait(&watcher->changed, &watcher->lock);
    bool on = !watcher->ending;
    pthread_mutex_unlock(&watcher->lock);
    return on;
}

static void pause_a_while(KnGrpcWatcher *watcher)
{
    struct timespec until;
    (void)clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += PAUSE_MS / 1000;
    pthread_mutex_lock(&watcher->lock);
    if (!watcher->ending)
        (void)pthread_cond_timedwait(&watcher->changed, &watcher->lock, &until);
    pthread_mutex_unlock(&watcher->lock);
}

static bool health_changed(KnGrpcFront *front, int64_t *looked_us)
{
    int64_t now_us = kn_clock_mono_us();
    if (now_us - *looked_us < HEALTH_US)
        return false;
    *looked_us = now_us;
    int before = atomic_load(&front->health);
    return kn_grpc_look_at_health(front) != before;
}

static void *watch_main(void *arg)
{
    KnGrpcFront *front = arg;
    KnCatalogCore *core = front->ctx.core;
    int64_t seq = -1, looked_us = 0;
    while (wait_for_watchers(&front->watcher)) {
        KnCode rc = KN_OK;
        if (seq >= 0)
            rc = kn_core_commits_wait(core, seq, WAIT_MS, NULL);
        if (rc == KN_OK)
            rc = kn_core_commits_last(core, &seq, NULL);
        if (rc == KN_OK || health_changed(front, &looked_us))
            kn_grpc_server_wake(front->srv);
        if (rc != KN_OK && rc != KN_E_CANCELLED)
            pause_a_while(&front->watcher);
    }
    return NULL;
}

void kn_grpc_watcher_init(KnGrpcFront *front)
{
    pthread_mutex_init(&front->watcher.lock, NULL);
    pthread_cond_init(&front->watcher.changed, NULL);
}

void kn_grpc_watcher_add(KnGrpcFront *front)
{
    KnGrpcWatcher *watcher = &front->watcher;
    pthread_mutex_lock(&watcher->lock);
    ++watcher->n_watching;
    if (!watcher->started && !watcher->ending)
        watcher->started = pthread_create(&watcher->thread, NULL, watch_main, front) == 0;
    pthread_cond_broadcast(&watcher->changed);
    pthread_mutex_unlock(&watcher->lock);
}

void kn_grpc_watcher_remove(KnGrpcFront *front)
{
    pthread_mutex_lock(&front->watcher.lock);
    --front->watcher.n_watching;
    pthread_mutex_unlock(&front->watcher.lock);
}

void kn_grpc_watcher_stop(KnGrpcFront *front)
{
    KnGrpcWatcher *watcher = &front->watcher;
    pthread_mutex_lock(&watcher->lock);
    watcher->ending = true;
    pthread_cond_broadcast(&watcher->changed);
    pthread_mutex_unlock(&watcher->lock);
    if (watcher->started)
        pthread_join(watcher->thread, NULL);
}

void kn_grpc_watcher_done(KnGrpcFront *front)
{
    pthread_cond_destroy(&front->watcher.changed);
    pthread_mutex_destroy(&front->watcher.lock);
}
