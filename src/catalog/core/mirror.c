/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mirror.c - see mirror.h.
 *
 * `generation` is the database's as of which the entries of `epoch` hold. While a transaction of
 * ours is under way nobody but its end begins an epoch: the generation that a reader sees in
 * between may be ours. An answer from the database is kept only when the generation was the same
 * before and after the question.
 */
#include "catalog/core/mirror.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"

enum { ENTRIES_MAX = 1 << 18, KEY_MAX = 1024 };

struct KnPointer {
    atomic_size_t refs;
    bool is_view;
    char location[];
};

typedef struct Entry {
    uint64_t epoch; /* 0 = never holds */
    KnPointer *ptr; /* NULL = there is none of that name */
} Entry;

struct KnMirror {
    KnStore *store;
    pthread_rwlock_t lock;
    uint64_t generation, epoch;
    uint64_t before; /* the generation before our transaction; 0 = none is under way */
    KnMap *map;
};

static KnPointer *pointer_new(const char *location, bool is_view)
{
    size_t len = strlen(location) + 1;
    KnPointer *ptr = malloc(sizeof(*ptr) + len);
    if (!ptr)
        abort();
    atomic_init(&ptr->refs, 1);
    ptr->is_view = is_view;
    memcpy(ptr->location, location, len);
    return ptr;
}

static KnPointer *pointer_ref(KnPointer *ptr)
{
    if (ptr)
        atomic_fetch_add_explicit(&ptr->refs, 1, memory_order_relaxed);
    return ptr;
}

KnPointer *kn_pointer_unref(KnPointer *ptr)
{
    if (ptr && atomic_fetch_sub_explicit(&ptr->refs, 1, memory_order_acq_rel) == 1)
        free(ptr);
    return NULL;
}

bool kn_pointer_is_view(const KnPointer *ptr)
{
    return ptr->is_view;
}

const char *kn_pointer_location(const KnPointer *ptr)
{
    return ptr->location;
}

KnMirror *kn_mirror_new(KnStore *store)
{
    KnMirror *mirror = calloc(1, sizeof(*mirror));
    if (!mirror)
        abort();
    mirror->store = store;
    mirror->epoch = 1;
    mirror->map = kn_map_new();
    (void)pthread_rwlock_init(&mirror->lock, NULL);
    return mirror;
}

static void forget_all(KnMirror *mirror)
{
    KnStr key;
    void *value;
    for (size_t i = 0; kn_map_entry(mirror->map, i, &key, &value); i++) {
        kn_pointer_unref(((Entry *)value)->ptr);
        free(value);
    }
    mirror->map = kn_map_free(mirror->map);
}

KnMirror *kn_mirror_free(KnMirror *mirror)
{
    if (!mirror)
        return NULL;
    forget_all(mirror);
    (void)pthread_rwlock_destroy(&mirror->lock);
    free(mirror);
    return NULL;
}

/* Namespaces and names have no control characters, so that the separator is unique. */
static KnStr key_of(const KnStoreName *name, char room[KEY_MAX])
{
    size_t a = strlen(name->ns), b = strlen(name->name);
    if (a + b + 1 > KEY_MAX)
        return (KnStr){NULL, 0};
    memcpy(room, name->ns, a);
    room[a] = '\x1f';
    memcpy(room + a + 1, name->name, b);
    return (KnStr){room, a + b + 1};
}

/* With the lock held for writing; takes over ptr. */
static void keep(KnMirror *mirror, KnStr key, KnPointer *ptr, uint64_t epoch)
{
    if (kn_map_count(mirror->map) >= ENTRIES_MAX) {
        forget_all(mirror);
        mirror->map = kn_map_new();
    }
    bool is_new = false;
    void **slot = kn_map_get_or_add(mirror->map, key, &is_new);
    if (is_new)
        *slot = calloc(1, sizeof(Entry));
    Entry *entry = *slot;
    if (!entry)
        abort();
    kn_pointer_unref(entry->ptr);
    *entry = (Entry){.epoch = epoch, .ptr = ptr};
}

static bool from_memory(KnMirror *mirror, KnStr key, uint64_t generation, KnPointer **ret)
{
    bool holds = false;
    pthread_rwlock_rdlock(&mirror->lock);
    if (generation == mirror->generation) {
        const Entry *entry = kn_map_find(mirror->map, key);
        holds = entry && entry->epoch == mirror->epoch;
        if (holds)
            *ret = pointer_ref(entry->ptr);
    }
    pthread_rwlock_unlock(&mirror->lock);
    return holds;
}

static void remember(KnMirror *mirror, KnStr key, KnPointer *ptr, uint64_t generation)
{
    pthread_rwlock_wrlock(&mirror->lock);
    bool same = generation == kn_store_generation(mirror->store);
    if (same && generation != mirror->generation && !mirror->before) {
        mirror->generation = generation;
        mirror->epoch++;
    }
    if (same && generation == mirror->generation)
        keep(mirror, key, pointer_ref(ptr), mirror->epoch);
    pthread_rwlock_unlock(&mirror->lock);
}

KnCode kn_mirror_find(KnMirror *mirror, const KnStoreName *name, KnPointer **ret, KnErr *err)
{
    char room[KEY_MAX];
    uint64_t generation = kn_store_generation(mirror->store);
    KnStr key = generation ? key_of(name, room) : (KnStr){NULL, 0};
    if (key.len && from_memory(mirror, key, generation, ret))
        return KN_OK;
    KN_ARENA_AUTO arena = kn_arena_new(0);
    KnStoreEntry found = {0};
    KN_TRY(kn_store_find(mirror->store, arena, name, &found, err));
    KnPointer *ptr = found.location ? pointer_new(found.location, found.is_view) : NULL;
    if (key.len)
        remember(mirror, key, ptr, generation);
    *ret = ptr;
    return KN_OK;
}

/* ---- our own transactions ---- */

void kn_mirror_before(KnMirror *mirror)
{
    pthread_rwlock_wrlock(&mirror->lock);
    mirror->before = kn_store_generation(mirror->store);
    pthread_rwlock_unlock(&mirror->lock);
}

static void write_through(KnMirror *mirror, const KnChange *ch)
{
    char room[KEY_MAX];
    KnStr key = ch->name.name ? key_of(&ch->name, room) : (KnStr){NULL, 0};
    if (!key.len)
        return;
    bool known = ch->kind == KN_CHANGE_INSERT || ch->kind == KN_CHANGE_SWAP;
    if (known)
        keep(mirror, key, pointer_new(ch->to, ch->is_view), mirror->epoch);
    else if (ch->kind == KN_CHANGE_REMOVE || ch->kind == KN_CHANGE_RENAME)
        keep(mirror, key, NULL, mirror->epoch);
    if (ch->kind != KN_CHANGE_RENAME)
        return;
    key = key_of(&ch->to_name, room);
    if (key.len)
        keep(mirror, key, NULL, 0);
}

/* All verdicts are in; false when one of them leaves open what is in the database now. */
static bool all_known(KnUnit *const *units, size_t n, bool *ret_any)
{
    bool known = true;
    for (size_t i = 0; i < n; i++) {
        *ret_any |= units[i]->code == KN_OK;
        known &= units[i]->code != KN_E_UNKNOWN && units[i]->code != KN_E_IO;
    }
    return known;
}

void kn_mirror_after(KnMirror *mirror, KnUnit *const *units, size_t n)
{
    bool any = false, known = all_known(units, n, &any);
    pthread_rwlock_wrlock(&mirror->lock);
    uint64_t now = kn_store_generation(mirror->store), before = mirror->before;
    mirror->before = 0;
    bool ours = known && before && before == mirror->generation &&
                (now - 1) >> 32 == ((before - 1) >> 32) + (any ? 1 : 0);
    mirror->generation = now;
    if (!ours)
        mirror->epoch++;
    for (size_t i = 0; i < n && ours; i++) {
        for (size_t c = 0; units[i]->code == KN_OK && c < units[i]->n; c++)
            write_through(mirror, &units[i]->changes[c]);
    }
    pthread_rwlock_unlock(&mirror->lock);
}
