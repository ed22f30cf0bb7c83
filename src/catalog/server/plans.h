/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * plans.h - results of scan planning that clients fetch in pages, kept for a while in memory.
 *
 * A plan is pages of JSON, rendered once. It goes when it is cancelled, when it is old, and when
 * newer ones need its room. Thread-safe.
 */
#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"

typedef struct KnPlans KnPlans;

KnPlans *kn_plans_new(size_t max_bytes, int64_t lifetime_us);
KnPlans *kn_plans_free(KnPlans *plans); /* accepts NULL, returns NULL */
/** Takes over the pages (each malloc'ed). owner tells whose plan it is: caller and table. Returns
 * its id, in arena. */
const char *kn_plans_add(KnPlans *plans, KnArena *arena, uint64_t owner, KnStr *pages,
                         size_t n_pages);
typedef struct KnPlanPage {
    uint64_t owner;
    KnStr id;
    size_t page;
} KnPlanPage;
/** A copy of a page, in arena. KN_E_NOTFOUND: no such plan or page of this owner. */
KN_NODISCARD KnCode kn_plans_page(KnPlans *plans, KnArena *arena, const KnPlanPage *which,
                                  KnStr *ret, KnErr *err);
KN_NODISCARD KnCode kn_plans_cancel(KnPlans *plans, uint64_t owner, KnStr id, KnErr *err);
/** How many pages a plan has; 0 = there is none. */
size_t kn_plans_count(KnPlans *plans, uint64_t owner, KnStr id);
