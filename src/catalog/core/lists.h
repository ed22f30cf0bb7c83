/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * lists.h - lists of names from memory, right also when another process changes the database.
 *
 * A list is kept with the database's generation (store.h) that it was read at, and holds as long as
 * that is the generation now. Bounded: some namespaces, and no long lists. Thread-safe.
 */
#include "catalog/core/core.h"
#include "catalog/store/store.h"

typedef struct KnLists KnLists;

KnLists *kn_lists_new(void);
KnLists *kn_lists_free(KnLists *lists); /* accepts NULL, returns NULL */
/** The names of ns at that generation, which live as long as arena; false: not known. */
bool kn_lists_find(KnLists *lists, KnArena *arena, const KnStoreName *what, uint64_t generation,
                   KnNameList *ret);
/** Copies a list without another page. what->name says of which kind: "tables", "views". */
void kn_lists_keep(KnLists *lists, const KnStoreName *what, uint64_t generation,
                   const KnNameList *names);
