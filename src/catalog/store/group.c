/* SPDX-License-Identifier: Apache-2.0 */
/* group.c - see group.h. Units live on their callers' stacks until they are done; each is woken for
 * itself, so that nobody wakes up to learn that it is not its turn. */
#include "catalog/store/group.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { BATCH_MAX = 256 };

struct KnGroup {
    KnStore *store;
    void (*before)(void *arg);
    KnGroupFn after;
    void *arg;
    pthread_mutex_t lock;
    pthread_cond_t room; /* for one more that waits */
    bool led;
    KnUnit *waiting[BATCH_MAX];
    size_t n_waiting;
};

KnGroup *kn_group_new(KnStore *store, void (*before)(void *arg), KnGroupFn after, void *arg)
{
    KnGroup *group = calloc(1, sizeof(*group));
    if (!group)
        abort();
    group->store = store;
    group->before = before;
    group->after = after;
    group->arg = arg;
    (void)pthread_mutex_init(&group->lock, NULL);
    (void)pthread_cond_init(&group->room, NULL);
    return group;
}

KnGroup *kn_group_free(KnGroup *group)
{
    if (!group)
        return NULL;
    (void)pthread_mutex_destroy(&group->lock);
    (void)pthread_cond_destroy(&group->room);
    free(group);
    return NULL;
}

/* Called and left with the lock held. */
static void lead(KnGroup *group)
{
    KnUnit *batch[BATCH_MAX];
    size_t n = group->n_waiting;
    memcpy(batch, group->waiting, n * sizeof(KnUnit *));
    group->n_waiting = 0;
    pthread_cond_broadcast(&group->room);
    group->led = true;
    pthread_mutex_unlock(&group->lock);
    if (group->before)
        group->before(group->arg);
    kn_store_commit(group->store, batch, n);
    if (group->after)
        group->after(group->arg, batch, n);
    pthread_mutex_lock(&group->lock);
    for (size_t i = 0; i < n; i++) {
        batch[i]->done = true;
        pthread_cond_signal(batch[i]->wake);
    }
    group->led = false;
    if (group->n_waiting) /* the next leader */
        pthread_cond_signal(group->waiting[0]->wake);
}

KnCode kn_group_commit(KnGroup *group, KnUnit *unit, KnErr *err)
{
    pthread_cond_t wake = PTHREAD_COND_INITIALIZER;
    unit->done = false;
    unit->wake = &wake;
    pthread_mutex_lock(&group->lock);
    while (group->n_waiting == BATCH_MAX)
        pthread_cond_wait(&group->room, &group->lock);
    group->waiting[group->n_waiting++] = unit;
    while (!unit->done) {
        if (group->led)
            pthread_cond_wait(&wake, &group->lock);
        else
            lead(group);
    }
    pthread_mutex_unlock(&group->lock);
    (void)pthread_cond_destroy(&wake);
    if (unit->code != KN_OK && err)
        *err = unit->err;
    return unit->code;
}
