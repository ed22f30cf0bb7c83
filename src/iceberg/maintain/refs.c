/* SPDX-License-Identifier: Apache-2.0 */
/*
 * refs.c - setting, moving and dropping refs; see refs.h.
 *
 * A move is one set-snapshot-ref (or remove-snapshot-ref) under the requirement that the ref is
 * still where the decision found it. Snapshots that another commit expires meanwhile cannot be
 * named: applying the update refuses them.
 */
#include "iceberg/maintain/refs.h"

#include <inttypes.h>
#include <string.h>

#include "base/clock.h"
#include "iceberg/write/commit_retry.h"

#define MAIN "main"

bool kn_snapshot_is_ancestor(const KnMetadata *md, int64_t of, int64_t snapshot_id)
{
    const KnSnapshot *snap = of < 0 ? NULL : kn_metadata_find_snapshot(md, of);
    for (size_t steps = 0; snap && steps <= md->n_snapshots; steps++) {
        if (snap->snapshot_id == snapshot_id)
            return true;
        snap = snap->parent_id < 0 ? NULL : kn_metadata_find_snapshot(md, snap->parent_id);
    }
    return false;
}

/* ---- one ref, committed ---- */

static bool same_ref(const KnRef *a, const KnRef *b)
{
    return a->snapshot_id == b->snapshot_id && a->is_branch == b->is_branch &&
           a->min_snapshots_to_keep == b->min_snapshots_to_keep &&
           a->max_snapshot_age_ms == b->max_snapshot_age_ms &&
           a->max_ref_age_ms == b->max_ref_age_ms;
}

/* now: as it is, NULL = not there; next: as it shall be, NULL = gone. */
static KnCode commit_ref(KnTable *tbl, const char *name, const KnRef *now, const KnRef *next,
                         KnErr *err)
{
    KnRequirement reqs[] = {
        {.kind = KN_REQUIRE_REF_SNAPSHOT_ID, .text = name, .number = now ? now->snapshot_id : -1},
        {.kind = KN_REQUIRE_UUID, .text = tbl->md->uuid},
    };
    KnUpdate update = {.kind = next ? KN_UPDATE_SET_SNAPSHOT_REF : KN_UPDATE_REMOVE_SNAPSHOT_REF,
                       .text = name};
    if (next)
        update.ref = *next;
    KnTableCommit change = {.requirements = reqs,
                            .n_requirements = tbl->md->uuid ? 2 : 1,
                            .updates = &update,
                            .n_updates = 1};
    return kn_table_commit(tbl, &change, err);
}

static KnRef branch_at(const char *name, int64_t snapshot_id)
{
    return (KnRef){.name = name,
                   .snapshot_id = snapshot_id,
                   .is_branch = true,
                   .min_snapshots_to_keep = -1,
                   .max_snapshot_age_ms = -1,
                   .max_ref_age_ms = -1};
}

KnCode kn_ref_move(KnTable *tbl, const char *name, int64_t to, KnRefMove *ret, KnErr *err)
{
    const KnRef *now = kn_metadata_find_ref(tbl->md, kn_str(name));
    KnRef next = now ? *now : branch_at(name, to);
    next.name = name;
    next.snapshot_id = to;
    KnRefMove move = {.before = now ? now->snapshot_id : -1, .after = to};
    move.changed = !now || !same_ref(now, &next);
    if (move.changed)
        KN_TRY(commit_ref(tbl, name, now, &next, err));
    *ret = move;
    return KN_OK;
}

/* ---- branches and tags ---- */

typedef struct SetCall {
    const KnRefSet *set;
    KnRefMove *ret;
} SetCall;

static KnCode wrong_kind(const KnTable *tbl, const KnRef *ref, KnErr *err)
{
    return kn_err_set(err, KN_E_INVAL, "table %s: %s is a %s, not a %s", tbl->name, ref->name,
                      ref->is_branch ? "branch" : "tag", ref->is_branch ? "tag" : "branch");
}

static KnCode check_taken(const KnTable *tbl, const KnRefSet *set, const KnRef *now, KnErr *err)
{
    if (now->is_branch != set->is_branch)
        return wrong_kind(tbl, now, err);
    if (!set->replace && !set->if_not_exists)
        return kn_err_set(err, KN_E_EXISTS,
                          "table %s: %s %s exists already: give --replace to move it", tbl->name,
                          now->is_branch ? "branch" : "tag", now->name);
    return KN_OK;
}

static KnCode choose(const KnTable *tbl, const KnSnapshotChoice *at, const KnSnapshot **ret,
                     KnErr *err)
{
    const KnSnapshot *snap = NULL;
    KN_TRY(kn_table_choose_snapshot(tbl, at, &snap, err));
    if (!snap)
        return kn_err_set(err, KN_E_NOTFOUND, "table %s has no snapshot yet", tbl->name);
    *ret = snap;
    return KN_OK;
}

static KnCode set_once(KnTable *tbl, void *arg, KnErr *err)
{
    const SetCall *call = arg;
    const KnRefSet *set = call->set;
    const KnRef *now = kn_metadata_find_ref(tbl->md, kn_str(set->name));
    const KnSnapshot *snap = NULL;
    if (now)
        KN_TRY(check_taken(tbl, set, now, err));
    if (now && !set->replace) {
        *call->ret = (KnRefMove){.before = now->snapshot_id, .after = now->snapshot_id};
        return KN_OK;
    }
    KN_TRY(choose(tbl, &set->at, &snap, err));
    KnRef next = now ? *now : branch_at(set->name, 0);
    next.name = set->name;
    next.is_branch = set->is_branch;
    next.snapshot_id = snap->snapshot_id;
    if (set->min_snapshots_to_keep >= 0)
        next.min_snapshots_to_keep = set->min_snapshots_to_keep;
    if (set->max_snapshot_age_ms >= 0)
        next.max_snapshot_age_ms = set->max_snapshot_age_ms;
    if (set->max_ref_age_ms >= 0)
        next.max_ref_age_ms = set->max_ref_age_ms;
    KnRefMove move = {.before = now ? now->snapshot_id : -1, .after = next.snapshot_id};
    move.changed = !now || !same_ref(now, &next);
    if (move.changed)
        KN_TRY(commit_ref(tbl, set->name, now, &next, err));
    *call->ret = move;
    return KN_OK;
}

KnCode kn_ref_set(KnTable *tbl, const KnRefSet *set, KnRefMove *ret, KnErr *err)
{
    SetCall call = {set, ret};
    if (!set->name || !*set->name)
        return kn_err_set(err, KN_E_INVAL, "a branch or tag needs a name");
    return kn_commit_retry(tbl, set_once, &call, err);
}

typedef struct DropCall {
    const KnRefDrop *drop;
    KnRefMove *ret;
} DropCall;

static KnCode drop_once(KnTable *tbl, void *arg, KnErr *err)
{
    const DropCall *call = arg;
    const KnRefDrop *drop = call->drop;
    const KnRef *now = kn_metadata_find_ref(tbl->md, kn_str(drop->name));
    if (!now && drop->if_exists) {
        *call->ret = (KnRefMove){.before = -1, .after = -1};
        return KN_OK;
    }
    if (!now)
        return kn_err_set(err, KN_E_NOTFOUND, "table %s has no %s '%s'", tbl->name,
                          drop->is_branch ? "branch" : "tag", drop->name);
    if (now->is_branch != drop->is_branch)
        return wrong_kind(tbl, now, err);
    KnRefMove move = {.before = now->snapshot_id, .after = -1, .changed = true};
    KN_TRY(commit_ref(tbl, drop->name, now, NULL, err));
    *call->ret = move;
    return KN_OK;
}

KnCode kn_ref_drop(KnTable *tbl, const KnRefDrop *drop, KnRefMove *ret, KnErr *err)
{
    DropCall call = {drop, ret};
    if (!strcmp(drop->name, MAIN))
        return kn_err_set(err, KN_E_INVAL, "branch main cannot be dropped");
    return kn_commit_retry(tbl, drop_once, &call, err);
}

/* ---- what is current ---- */

typedef struct MainCall {
    const KnSnapshotChoice *to;
    KnRefMove *ret;
} MainCall;

static KnCode set_current_once(KnTable *tbl, void *arg, KnErr *err)
{
    const MainCall *call = arg;
    const KnSnapshot *snap = NULL;
    KN_TRY(choose(tbl, call->to, &snap, err));
    return kn_ref_move(tbl, MAIN, snap->snapshot_id, call->ret, err);
}

KnCode kn_table_set_current(KnTable *tbl, const KnSnapshotChoice *to, KnRefMove *ret, KnErr *err)
{
    MainCall call = {to, ret};
    if (!to->snapshot && !to->as_of && !to->ref)
        return kn_err_set(err, KN_E_INVAL,
                          "which snapshot? give --snapshot ID, --ref NAME or --as-of TIME");
    return kn_commit_retry(tbl, set_current_once, &call, err);
}

/* Java's findLatestAncestorOlderThan. */
static const KnSnapshot *ancestor_before(const KnMetadata *md, int64_t ms)
{
    const KnSnapshot *best = NULL;
    const KnSnapshot *snap = kn_metadata_snapshot(md);
    for (size_t steps = 0; snap && steps <= md->n_snapshots; steps++) {
        if (snap->timestamp_ms < ms && (!best || snap->timestamp_ms > best->timestamp_ms))
            best = snap;
        snap = snap->parent_id < 0 ? NULL : kn_metadata_find_snapshot(md, snap->parent_id);
    }
    return best;
}

static KnCode rollback_target(const KnTable *tbl, const KnSnapshotChoice *to,
                              const KnSnapshot **ret, KnErr *err)
{
    if (!to->as_of || to->snapshot || to->ref)
        return choose(tbl, to, ret, err);
    int64_t ms = 0;
    KnCode rc = kn_clock_parse_ms(to->as_of, &ms, err);
    if (rc != KN_OK)
        return kn_err_wrap(err, rc, "--as-of");
    const KnSnapshot *snap = ancestor_before(tbl->md, ms);
    if (!snap)
        return kn_err_set(err, KN_E_NOTFOUND,
                          "table %s: no ancestor of the current snapshot is older than %s",
                          tbl->name, to->as_of);
    *ret = snap;
    return KN_OK;
}

static KnCode rollback_once(KnTable *tbl, void *arg, KnErr *err)
{
    const MainCall *call = arg;
    const KnSnapshot *snap = NULL;
    KN_TRY(rollback_target(tbl, call->to, &snap, err));
    if (!kn_snapshot_is_ancestor(tbl->md, tbl->md->current_snapshot_id, snap->snapshot_id))
        return kn_err_set(err, KN_E_REFUSED,
                          "table %s: cannot roll back to snapshot %" PRId64
                          ": it is no ancestor of the current one (set-current goes anywhere)",
                          tbl->name, snap->snapshot_id);
    return kn_ref_move(tbl, MAIN, snap->snapshot_id, call->ret, err);
}

KnCode kn_table_rollback(KnTable *tbl, const KnSnapshotChoice *to, KnRefMove *ret, KnErr *err)
{
    MainCall call = {to, ret};
    if (!to->snapshot && !to->as_of && !to->ref)
        return kn_err_set(err, KN_E_INVAL,
                          "back to what? give --snapshot ID, --as-of TIME or --ref NAME");
    return kn_commit_retry(tbl, rollback_once, &call, err);
}

typedef struct ForwardCall {
    const KnFastForward *ff;
    KnRefMove *ret;
} ForwardCall;

static KnCode forward_once(KnTable *tbl, void *arg, KnErr *err)
{
    const ForwardCall *call = arg;
    const KnRef *to = kn_metadata_find_ref(tbl->md, kn_str(call->ff->to));
    const KnRef *branch = kn_metadata_find_ref(tbl->md, kn_str(call->ff->branch));
    if (!to)
        return kn_err_set(err, KN_E_NOTFOUND, "table %s has no branch or tag '%s'", tbl->name,
                          call->ff->to);
    if (branch && !branch->is_branch)
        return wrong_kind(tbl, branch, err);
    if (branch && !kn_snapshot_is_ancestor(tbl->md, to->snapshot_id, branch->snapshot_id))
        return kn_err_set(err, KN_E_REFUSED,
                          "table %s: cannot fast-forward: %s is not an ancestor of %s", tbl->name,
                          call->ff->branch, call->ff->to);
    return kn_ref_move(tbl, call->ff->branch, to->snapshot_id, call->ret, err);
}

KnCode kn_table_fast_forward(KnTable *tbl, const KnFastForward *ff, KnRefMove *ret, KnErr *err)
{
    ForwardCall call = {ff, ret};
    return kn_commit_retry(tbl, forward_once, &call, err);
}
