/* SPDX-License-Identifier: Apache-2.0 */
/*
 * map.c - the hash map: entries in a dense array (insertion order), and an open-addressing table of
 * entry numbers with linear probing, at most three quarters full.
 *
 * Keys are copied into an arena of the map. Nothing is ever removed, so there are no tombstones.
 * The hash is seeded per process (the kernel's AT_RANDOM bytes), so that keys from outside cannot
 * be made to collide; the seed shows nowhere, because iteration goes by insertion.
 */
#include "base/map.h"

#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/auxv.h>

#include "base/arena.h"
#include "base/hash.h"
#include "base/vec.h"

enum { FIRST_SLOTS = 16 };

typedef struct Entry {
    KnStr key;
    uint64_t hash;
    void *value;
} Entry;

struct KnMap {
    KnArena *keys;
    KN_VEC(Entry) entries;
    uint32_t *slots; /* entry number + 1; 0 = free */
    size_t n_slots;  /* a power of two */
    uint64_t seed;
};

static void *zeroed(size_t count, size_t size)
{
    void *p = calloc(count, size);
    if (!p)
        abort();
    return p;
}

KnMap *kn_map_new(void)
{
    KnMap *map = zeroed(1, sizeof(*map));
    map->keys = kn_arena_new(0);
    map->n_slots = FIRST_SLOTS;
    map->slots = zeroed(map->n_slots, sizeof(*map->slots));
    const void *random = (const void *)getauxval(AT_RANDOM);
    if (random)
        memcpy(&map->seed, random, sizeof(map->seed));
    return map;
}

KnMap *kn_map_free(KnMap *map)
{
    if (!map)
        return NULL;
    kn_vec_done(&map->entries);
    free(map->slots);
    map->keys = kn_arena_free(map->keys);
    free(map);
    return NULL;
}

/* The slot that holds the key, or the free one where it belongs. */
static uint32_t *slot_of(const KnMap *map, KnStr key, uint64_t hash)
{
    size_t mask = map->n_slots - 1;
    for (size_t i = hash & mask;; i = (i + 1) & mask) {
        uint32_t *slot = &map->slots[i];
        if (*slot == 0)
            return slot;
        const Entry *e = &map->entries.items[*slot - 1];
        if (e->hash == hash && kn_str_eq(e->key, key))
            return slot;
    }
}

static void slots_double(KnMap *map)
{
    free(map->slots);
    map->n_slots *= 2;
    map->slots = zeroed(map->n_slots, sizeof(*map->slots));
    for (size_t i = 0; i < map->entries.len; ++i) {
        const Entry *e = &map->entries.items[i];
        *slot_of(map, e->key, e->hash) = (uint32_t)(i + 1);
    }
}

void **kn_map_get_or_add(KnMap *map, KnStr key, bool *ret_new)
{
    uint64_t hash = kn_hash64(key.ptr, key.len, map->seed);
    uint32_t *slot = slot_of(map, key, hash);
    bool is_new = *slot == 0;
    if (is_new) {
        if (map->entries.len + 1 > map->n_slots / 4 * 3) {
            slots_double(map);
            slot = slot_of(map, key, hash);
        }
        if (map->entries.len >= UINT32_MAX - 1)
            abort(); /* 4 billion keys: memory is out long before */
        Entry *e = kn_vec_push(&map->entries);
        *e = (Entry){.hash = hash};
        e->key = (KnStr){kn_arena_strndup(map->keys, key.ptr, key.len), key.len};
        *slot = (uint32_t)map->entries.len;
    }
    if (ret_new)
        *ret_new = is_new;
    return &map->entries.items[*slot - 1].value;
}

void *kn_map_find(const KnMap *map, KnStr key)
{
    uint32_t slot = *slot_of(map, key, kn_hash64(key.ptr, key.len, map->seed));
    return slot ? map->entries.items[slot - 1].value : NULL;
}

size_t kn_map_count(const KnMap *map)
{
    return map->entries.len;
}

bool kn_map_entry(const KnMap *map, size_t index, KnStr *ret_key, void **ret_value)
{
    if (index >= map->entries.len)
        return false;
    const Entry *e = &map->entries.items[index];
    if (ret_key)
        *ret_key = e->key;
    if (ret_value)
        *ret_value = e->value;
    return true;
}
