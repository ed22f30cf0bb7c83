/* SPDX-License-Identifier: Apache-2.0 */
/*
 * alter.c - ALTER TABLE as an optimistic commit.
 *
 * A commit whose requirements no longer hold is planned again on the newest metadata, as often as
 * commit.retry.num-retries allows. What a person named stays what it was: where a name now means
 * another column than it did at first (dropped and added again meanwhile), that is a conflict.
 */
#include "iceberg/alter/alter_internal.h"
#include "iceberg/write/write_internal.h"

typedef struct Alter {
    KnArena *arena;
    KnTable *tbl;
    const KnChanges *changes;
    const KnAlterOptions *opts;
    const int32_t *bound; /* of the first plan */
} Alter;

static KnCode check_bound(Alter *a, const int32_t *bound, KnErr *err)
{
    if (!a->bound)
        a->bound = bound;
    for (size_t i = 0; i < a->changes->n; i++)
        if (bound[i] != a->bound[i])
            return kn_err_set(err, KN_E_CONFLICT,
                              "column '%s' was replaced by another column of that name meanwhile: "
                              "look again",
                              a->changes->items[i].column);
    return KN_OK;
}

/* One attempt on the table as it is at hand. */
static KnCode attempt(Alter *a, const KnMetadata *md, bool *ret_raced, KnMetadata **ret_after,
                      KnErr *err)
{
    KnAlterPlan plan = {0};
    KnTableCommit commit;
    KnCode rc;

    KN_TRY(kn_alter_plan(a->arena, md, a->changes, a->opts, &plan, err));
    KN_TRY(check_bound(a, plan.bound, err));
    if (plan.n_updates == 0) {
        *ret_after = kn_metadata_ref(md);
        return KN_OK;
    }
    if (a->opts->dry_run)
        return kn_metadata_apply(md, plan.updates, plan.n_updates, NULL, ret_after, err);
    commit = (KnTableCommit){plan.requirements, plan.n_requirements, plan.updates, plan.n_updates};
    rc = kn_table_commit(a->tbl, &commit, err);
    *ret_raced = rc == KN_E_CONFLICT;
    if (rc == KN_OK)
        *ret_after = kn_metadata_ref(a->tbl->md);
    return rc;
}

static KnCode alter(Alter *a, KnMetadata **ret_before, KnMetadata **ret_after, KnErr *err)
{
    int64_t tries = 1 + kn_write_property_i64(a->tbl->md, "commit.retry.num-retries", 4);

    for (int64_t i = 1;; i++) {
        KN_METADATA_AUTO md = kn_metadata_ref(a->tbl->md);
        bool raced = false;
        KnCode rc = attempt(a, md, &raced, ret_after, err);
        if (rc == KN_OK) {
            *ret_before = md;
            md = NULL;
            return KN_OK;
        }
        if (!raced || i >= tries)
            return rc;
        KN_TRY(kn_table_refresh(a->tbl, err));
    }
}

KnCode kn_table_alter(KnTable *tbl, const KnChanges *changes, const KnAlterOptions *opts,
                      KnMetadata **ret_before, KnMetadata **ret_after, KnErr *err)
{
    KN_ARENA_AUTO arena = kn_arena_new(0);
    Alter a = {.arena = arena, .tbl = tbl, .changes = changes, .opts = opts};
    KnCode rc = alter(&a, ret_before, ret_after, err);

    return rc == KN_OK ? rc : kn_err_wrap(err, rc, "alter table %s", tbl->name);
}
