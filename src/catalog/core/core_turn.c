/* SPDX-License-Identifier: Apache-2.0 */
/*
 * core_turn.c - whose turn it is to commit to a table, and requests that wait for it.
 *
 * Whoever comes while nobody commits to the table commits at once; those who come meanwhile wait,
 * and one of them then commits for all that wait. Tables share turns by the hash of their names.
 */
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "catalog/core/core_internal.h"

enum { TOGETHER_MAX = 64 };

struct KnTurn {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool taken;
    KnCoreRequest *waiting[TOGETHER_MAX];
    size_t n_waiting;
};

KnTurn *kn_core_turns_new(void)
{
    KnTurn *turns = calloc(KN_CORE_STRIPES, sizeof(*turns));
    if (!turns)
        abort();
    for (int i = 0; i < KN_CORE_STRIPES; i++) {
        (void)pthread_mutex_init(&turns[i].lock, NULL);
        (void)pthread_cond_init(&turns[i].changed, NULL);
    }
    return turns;
}

void kn_core_turns_free(KnTurn *turns)
{
    for (int i = 0; turns && i < KN_CORE_STRIPES; i++) {
        (void)pthread_mutex_destroy(&turns[i].lock);
        (void)pthread_cond_destroy(&turns[i].changed);
    }
    free(turns);
}

static size_t turn_of(const KnStoreName *name)
{
    uint64_t hash = kn_hash64(name->ns, strlen(name->ns), 0);
    return kn_hash64(name->name, strlen(name->name), hash) % KN_CORE_STRIPES;
}

void kn_core_lock(KnCatalogCore *core, const KnStoreName *names, size_t n, uint64_t *ret_mask)
{
    uint64_t mask = 0;
    for (size_t i = 0; i < n; i++)
        mask |= (uint64_t)1 << turn_of(&names[i]);
    for (int i = 0; i < KN_CORE_STRIPES; i++) {
        if (!(mask >> i & 1))
            continue;
        KnTurn *turn = &core->turns[i];
        pthread_mutex_lock(&turn->lock);
        while (turn->taken)
            pthread_cond_wait(&turn->changed, &turn->lock);
        turn->taken = true;
        pthread_mutex_unlock(&turn->lock);
    }
    *ret_mask = mask;
}

void kn_core_unlock(KnCatalogCore *core, uint64_t mask)
{
    for (int i = 0; i < KN_CORE_STRIPES; i++) {
        if (!(mask >> i & 1))
            continue;
        KnTurn *turn = &core->turns[i];
        pthread_mutex_lock(&turn->lock);
        turn->taken = false;
        pthread_cond_broadcast(&turn->changed);
        pthread_mutex_unlock(&turn->lock);
    }
}

static bool same_table(const KnStoreName *a, const KnStoreName *b)
{
    return !strcmp(a->name, b->name) && !strcmp(a->ns, b->ns);
}

/* Takes what can be answered together with first: those of the same table, when none of them makes
 * it. The others go on waiting. */
static size_t take(KnTurn *turn, KnCoreRequest *first, KnCoreRequest **batch)
{
    size_t n = 0, left = 0;
    bool alone = kn_core_requires_create(first->commit);
    for (size_t i = 0; i < turn->n_waiting; i++) {
        KnCoreRequest *req = turn->waiting[i];
        bool joins = req == first || (!alone && same_table(req->name, first->name) &&
                                      !kn_core_requires_create(req->commit));
        if (joins)
            batch[n++] = req;
        else
            turn->waiting[left++] = req;
    }
    turn->n_waiting = left;
    return n;
}

/* Called and left with the lock held. */
static void lead(KnCatalogCore *core, KnTurn *turn, const KnTableIdent *ident, KnCoreRequest *mine)
{
    KnCoreRequest *batch[TOGETHER_MAX];
    size_t n = take(turn, mine, batch);
    turn->taken = true;
    pthread_mutex_unlock(&turn->lock);
    kn_core_commit_requests(core, ident, mine->name, batch, n);
    pthread_mutex_lock(&turn->lock);
    for (size_t i = 0; i < n; i++)
        batch[i]->done = true;
    turn->taken = false;
    pthread_cond_broadcast(&turn->changed);
}

KnCode kn_core_table_commit(KnCatalogCore *core, const KnTableIdent *ident,
                            const KnTableCommit *commit, KnDocument **ret, KnErr *err)
{
    KN_ARENA_AUTO arena = kn_arena_new(0);
    KnStoreName name;
    KN_TRY(kn_core_name(arena, ident, &name, err));
    KnCoreRequest mine = {.commit = commit, .name = &name};
    KnTurn *turn = &core->turns[turn_of(&name)];
    pthread_mutex_lock(&turn->lock);
    while (turn->n_waiting == TOGETHER_MAX)
        pthread_cond_wait(&turn->changed, &turn->lock);
    turn->waiting[turn->n_waiting++] = &mine;
    while (!mine.done) {
        if (turn->taken)
            pthread_cond_wait(&turn->changed, &turn->lock);
        else
            lead(core, turn, ident, &mine);
    }
    pthread_mutex_unlock(&turn->lock);
    if (mine.code != KN_OK && err)
        *err = mine.err;
    if (mine.code == KN_OK)
        *ret = mine.doc;
    return mine.code;
}
