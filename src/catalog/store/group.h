/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * group.h - concurrent committers share one transaction of the database, and so one fsync.
 *
 * Whoever comes while nobody is committing leads: it commits its own unit and those that wait.
 * Others wait; when the leader is done with one batch, the next batch is led by one of those who
 * came meanwhile. A thread on its own is not held up. Thread-safe.
 */
#include "catalog/store/store.h"

typedef struct KnGroup KnGroup;

/** after (may be NULL) is told of each batch, by its leader, before anyone learns a verdict. */
typedef void (*KnGroupFn)(void *arg, KnUnit *const *units, size_t n);
/** before: told just before the transaction begins. Both by one thread at a time. */
KnGroup *kn_group_new(KnStore *store, void (*before)(void *arg), KnGroupFn after, void *arg);
KnGroup *kn_group_free(KnGroup *group); /* accepts NULL, returns NULL */
/** Returns the unit's verdict. */
KN_NODISCARD KnCode kn_group_commit(KnGroup *group, KnUnit *unit, KnErr *err);
