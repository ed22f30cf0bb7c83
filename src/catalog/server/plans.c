/* SPDX-License-Identifier: Apache-2.0 */
/* plans.c - see plans.h. A list in the order of age; there are few at a time. */
#include "catalog/server/plans.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/random.h"

typedef struct Plan {
    struct Plan *newer;
    char id[37];
    uint64_t owner;
    int64_t until_us;
    KnStr *pages;
    size_t n_pages, bytes;
} Plan;

struct KnPlans {
    pthread_mutex_t lock;
    Plan *oldest, **end;
    size_t bytes, max_bytes;
    int64_t lifetime_us;
};

KnPlans *kn_plans_new(size_t max_bytes, int64_t lifetime_us)
{
    KnPlans *plans = calloc(1, sizeof(*plans));
    if (!plans)
        abort();
    plans->max_bytes = max_bytes;
    plans->lifetime_us = lifetime_us;
    plans->end = &plans->oldest;
    (void)pthread_mutex_init(&plans->lock, NULL);
    return plans;
}

static void drop(KnPlans *plans, Plan **at)
{
    Plan *plan = *at;
    *at = plan->newer;
    if (!*at)
        plans->end = at;
    plans->bytes -= plan->bytes;
    for (size_t i = 0; i < plan->n_pages; i++)
        free((void *)plan->pages[i].ptr);
    free(plan->pages);
    free(plan);
}

KnPlans *kn_plans_free(KnPlans *plans)
{
    if (!plans)
        return NULL;
    while (plans->oldest)
        drop(plans, &plans->oldest);
    (void)pthread_mutex_destroy(&plans->lock);
    free(plans);
    return NULL;
}

static Plan **find(KnPlans *plans, uint64_t owner, KnStr id)
{
    Plan **at = &plans->oldest;
    while (*at && ((*at)->owner != owner || !kn_str_eq(kn_str((*at)->id), id)))
        at = &(*at)->newer;
    return *at ? at : NULL;
}

const char *kn_plans_add(KnPlans *plans, KnArena *arena, uint64_t owner, KnStr *pages,
                         size_t n_pages)
{
    Plan *plan = calloc(1, sizeof(*plan));
    KnStr *copy = calloc(n_pages + 1, sizeof(*copy));
    if (!plan || !copy)
        abort();
    (void)kn_random_uuid4(plan->id);
    plan->owner = owner;
    plan->pages = copy;
    plan->n_pages = n_pages;
    plan->bytes = sizeof(*plan);
    for (size_t i = 0; i < n_pages; i++) {
        copy[i] = pages[i];
        plan->bytes += pages[i].len;
    }
    const char *id = kn_arena_strdup(arena, plan->id);
    int64_t now = kn_clock_mono_us();
    (void)pthread_mutex_lock(&plans->lock);
    plan->until_us = now + plans->lifetime_us;
    while (plans->oldest &&
           (plans->oldest->until_us < now || plans->bytes + plan->bytes > plans->max_bytes))
        drop(plans, &plans->oldest);
    *plans->end = plan;
    plans->end = &plan->newer;
    plans->bytes += plan->bytes;
    (void)pthread_mutex_unlock(&plans->lock);
    return id;
}

KnCode kn_plans_page(KnPlans *plans, KnArena *arena, const KnPlanPage *which, KnStr *ret,
                     KnErr *err)
{
    (void)pthread_mutex_lock(&plans->lock);
    Plan **at = find(plans, which->owner, which->id);
    bool found = at && which->page < (*at)->n_pages && (*at)->until_us >= kn_clock_mono_us();
    if (found) {
        KnStr text = (*at)->pages[which->page];
        *ret = (KnStr){kn_arena_strndup(arena, text.ptr, text.len), text.len};
    }
    (void)pthread_mutex_unlock(&plans->lock);
    if (!found)
        return kn_err_set(err, KN_E_NOTFOUND, "there is no such plan, or it is over");
    return KN_OK;
}

KnCode kn_plans_cancel(KnPlans *plans, uint64_t owner, KnStr id, KnErr *err)
{
    (void)pthread_mutex_lock(&plans->lock);
    Plan **at = find(plans, owner, id);
    if (at)
        drop(plans, at);
    (void)pthread_mutex_unlock(&plans->lock);
    return at ? KN_OK : kn_err_set(err, KN_E_NOTFOUND, "there is no such plan, or it is over");
}

size_t kn_plans_count(KnPlans *plans, uint64_t owner, KnStr id)
{
    (void)pthread_mutex_lock(&plans->lock);
    Plan **at = find(plans, owner, id);
    size_t n = at ? (*at)->n_pages : 0;
    (void)pthread_mutex_unlock(&plans->lock);
    return n;
}
