/* SPDX-License-Identifier: Apache-2.0 */
/*
 * local_beside.c - the fsync of a folder while the caller syncs a file in it.
 *
 * Each fsync waits for the disk, and two that are under way at once share what it does. One helper
 * thread, made by the first who asks and asleep between, takes one folder at a time; who finds it
 * at work, or cannot have one, syncs the folder after the file: then others are committing too, and
 * the disk has enough to share. A task lives on its caller's stack, who waits for it. A child of
 * fork() goes without.
 */
#include <pthread.h>
#include <signal.h>

#include "storage/local/local_internal.h"

static struct {
    pthread_mutex_t lock;
    pthread_cond_t asked, done;
    bool begun, there;
    KnLocalBeside *task; /* NULL: the helper is free */
} helper = {.lock = PTHREAD_MUTEX_INITIALIZER,
            .asked = PTHREAD_COND_INITIALIZER,
            .done = PTHREAD_COND_INITIALIZER};

static void *help(void *arg)
{
    (void)arg;
    pthread_mutex_lock(&helper.lock);
    for (;;) {
        while (!helper.task)
            pthread_cond_wait(&helper.asked, &helper.lock);
        KnLocalBeside *task = helper.task;
        pthread_mutex_unlock(&helper.lock);
        task->code = kn_local_fsync(task->folder, &task->err);
        pthread_mutex_lock(&helper.lock);
        task->done = true;
        helper.task = NULL;
        pthread_cond_broadcast(&helper.done);
    }
    return NULL;
}

/* In a child of fork(): whoever had the lock is not here. */
static void go_without(void)
{
    helper.lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    helper.there = false;
}

/* With the lock held. Signals are for the threads that know what to do with them. */
static void begin_helper(void)
{
    sigset_t all, old;
    pthread_t thread;
    helper.begun = true;
    if (pthread_atfork(NULL, NULL, go_without) != 0)
        return;
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &old);
    helper.there = pthread_create(&thread, NULL, help, NULL) == 0;
    (void)pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (helper.there)
        (void)pthread_detach(thread);
}

void kn_local_beside_begin(KnLocalBeside *task)
{
    pthread_mutex_lock(&helper.lock);
    if (!helper.begun)
        begin_helper();
    task->taken = helper.there && !helper.task;
    if (task->taken) {
        helper.task = task;
        pthread_cond_signal(&helper.asked);
    }
    pthread_mutex_unlock(&helper.lock);
}

KnCode kn_local_beside_end(KnLocalBeside *task, KnErr *err)
{
    if (!task->taken)
        return kn_local_fsync(task->folder, err);
    pthread_mutex_lock(&helper.lock);
    while (!task->done)
        pthread_cond_wait(&helper.done, &helper.lock);
    pthread_mutex_unlock(&helper.lock);
    if (task->code != KN_OK && err)
        *err = task->err;
    return task->code;
}
