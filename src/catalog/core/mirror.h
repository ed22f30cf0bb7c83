/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * mirror.h - where the tables' pointers are, from memory, and right also when another process has
 * moved one.
 *
 * An entry is what the database said of a name in a certain epoch. An epoch lasts as long as the
 * database's generation (kn_store_generation(): for SQLite a counter in memory that all processes
 * share, and that a commit of any of them changes before it returns) changes by our commits alone,
 * which are written through. When it changes otherwise a new epoch begins, in which no entry holds,
 * and names are asked for anew, one by one as they are needed. So an answer from memory is what a
 * question to the database would have answered at that moment.
 *
 * Over PostgreSQL there is no such counter: every question goes to the database. Thread-safe.
 */
#include "catalog/store/store.h"

/* An immutable, refcounted answer. */
typedef struct KnPointer KnPointer;
KnPointer *kn_pointer_unref(KnPointer *ptr); /* accepts NULL, returns NULL */
bool kn_pointer_is_view(const KnPointer *ptr);
const char *kn_pointer_location(const KnPointer *ptr);
static inline void kn_pointer_freep(KnPointer **ptr)
{
    *ptr = kn_pointer_unref(*ptr);
}
#define KN_POINTER_AUTO __attribute__((cleanup(kn_pointer_freep))) KnPointer *

typedef struct KnMirror KnMirror;
KnMirror *kn_mirror_new(KnStore *store);
KnMirror *kn_mirror_free(KnMirror *mirror); /* accepts NULL, returns NULL */
/** NULL in *ret: there is none of that name. Else a reference. */
KN_NODISCARD KnCode kn_mirror_find(KnMirror *mirror, const KnStoreName *name, KnPointer **ret,
                                   KnErr *err);
/* Around each transaction of ours; by one thread at a time (group.h). */
void kn_mirror_before(KnMirror *mirror);
void kn_mirror_after(KnMirror *mirror, KnUnit *const *units, size_t n);
