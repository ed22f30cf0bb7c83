/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * map.h - the one hash map: byte-string keys to pointers, open addressing, keys copied, values not
 * owned. Iteration is in order of insertion. Memory out aborts. One thread at a time.
 */
#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"

typedef struct KnMap KnMap;

KnMap *kn_map_new(void);
KnMap *kn_map_free(KnMap *map); /* accepts NULL, returns NULL */
/** The slot of key, made (NULL) when it is new; *ret_new says which. Valid until the next
 * get_or_add. */
void **kn_map_get_or_add(KnMap *map, KnStr key, bool *ret_new);
void *kn_map_find(const KnMap *map, KnStr key); /* NULL = none */
size_t kn_map_count(const KnMap *map);
bool kn_map_entry(const KnMap *map, size_t index, KnStr *ret_key, void **ret_value);

static inline void kn_map_freep(KnMap **map)
{
    *map = kn_map_free(*map);
}
#define KN_MAP_AUTO __attribute__((cleanup(kn_map_freep))) KnMap *
