/* SPDX-License-Identifier: Apache-2.0 */
/* group.c - see group.h. Units live on their callers' stacks until they are done. */
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
    pthread_cond_t changed;
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
    (void)pthread_cond_init(&group->changed, NULL);
    return group;
}

KnGroup *kn_group_free(KnGroup *group)
{
    if (!group)
        return NULL;
    (void)pthread_mutex_destroy(&group->lock);
    (void)pthread_cond_destroy(&group->changed);
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
    group->led = true;
    pthread_mutex_unlock(&group->lock);
    if (group->before)
        group->before(group->arg);
    kn_store_commit(group->store, batch, n);
    if (group->after)
        group->after(group->arg, batch, n);
    pthread_mutex_lock(&group->lock);
    for (size_t i = 0; i < n; i++)
        batch[i]->done = true;
    group->led = false;
    pthread_cond_broadcast(&group->changed);
}

KnCode kn_group_commit(KnGroup *group, KnUnit *unit, KnErr *err)
{
    unit->done = false;
    pthread_mutex_lock(&group->lock);
    while (group->n_waiting == BATCH_MAX)
        pthread_cond_wait(&group->changed, &group->lock);
    group->waiting[group->n_waiting++] = unit;
    while (!unit->done) {
        if (group->led)
            pthread_cond_wait(&group->changed, &group->lock);
        else
            lead(group);
    }
    pthread_mutex_unlock(&group->lock);
    if (unit->code != KN_OK && err)
        *err = unit->err;
    return unit->code;
}
