/* SPDX-License-Identifier: Apache-2.0 */
/* lists.c - see lists.h. A slot by hash of the namespace; the newer list drives out the older. */
#include "catalog/core/lists.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

enum { SLOTS = 64, NAMES_MAX = 4096 };

typedef struct List {
    atomic_size_t refs;
    KnArena *arena; /* of everything below, and of this */
    uint64_t generation;
    KnStoreName what;
    KnNameList names;
} List;

struct KnLists {
    pthread_mutex_t lock;
    List *slots[SLOTS];
};

static void unref(void *arg)
{
    List *list = arg;
    if (list && atomic_fetch_sub_explicit(&list->refs, 1, memory_order_acq_rel) == 1)
        (void)kn_arena_free(list->arena);
}

KnLists *kn_lists_new(void)
{
    KnLists *lists = calloc(1, sizeof(*lists));
    if (!lists)
        abort();
    (void)pthread_mutex_init(&lists->lock, NULL);
    return lists;
}

KnLists *kn_lists_free(KnLists *lists)
{
    if (!lists)
        return NULL;
    for (size_t i = 0; i < SLOTS; i++)
        unref(lists->slots[i]);
    (void)pthread_mutex_destroy(&lists->lock);
    free(lists);
    return NULL;
}

static List **slot_of(KnLists *lists, const KnStoreName *what)
{
    uint64_t hash = kn_hash64(what->ns, strlen(what->ns), 0);
    return &lists->slots[kn_hash64(what->name, strlen(what->name), hash) % SLOTS];
}

static bool same(const KnStoreName *a, const KnStoreName *b)
{
    return !strcmp(a->ns, b->ns) && !strcmp(a->name, b->name);
}

bool kn_lists_find(KnLists *lists, KnArena *arena, const KnStoreName *what, uint64_t generation,
                   KnNameList *ret)
{
    pthread_mutex_lock(&lists->lock);
    List *list = *slot_of(lists, what);
    if (list && (list->generation != generation || !same(&list->what, what)))
        list = NULL;
    if (list)
        atomic_fetch_add_explicit(&list->refs, 1, memory_order_relaxed);
    pthread_mutex_unlock(&lists->lock);
    if (!list)
        return false;
    kn_arena_defer(arena, unref, list);
    *ret = list->names;
    return true;
}

void kn_lists_keep(KnLists *lists, const KnStoreName *what, uint64_t generation,
                   const KnNameList *names)
{
    if (names->n > NAMES_MAX)
        return;
    KnArena *arena = kn_arena_new(0);
    const char **copies = kn_arena_alloc(arena, (names->n + 1) * sizeof(*copies));
    for (size_t i = 0; i < names->n; i++)
        copies[i] = kn_arena_strdup(arena, names->names[i]);
    List *list = kn_arena_alloc(arena, sizeof(*list));
    *list = (List){
        .arena = arena,
        .generation = generation,
        .what = {kn_arena_strdup(arena, what->ns), kn_arena_strdup(arena, what->name)},
        .names = {.names = copies, .n = names->n},
    };
    atomic_init(&list->refs, 1);
    pthread_mutex_lock(&lists->lock);
    List **slot = slot_of(lists, what), *old = *slot;
    *slot = list;
    pthread_mutex_unlock(&lists->lock);
    unref(old);
}
