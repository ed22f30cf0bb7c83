/* SPDX-License-Identifier: Apache-2.0 */
/*
 * window_lineage.c - which snapshots lie between a cursor and the head of a ref.
 *
 * Parents are followed from the head back to the cursor. A cursor that is not met is either gone
 * (expired) or on a line that the ref has left (a rollback, a replaced table, another branch): in
 * both cases what the destination holds cannot be led to the head by differences, so delivery must
 * start anew, and the message says why and how.
 */
#include <inttypes.h>

#include "base/vec.h"
#include "iceberg/changes/changelog.h"

#define RELOAD "run `knut cdc reload` to deliver the table anew"

typedef KN_VEC(const KnSnapshot *) SnapshotVec;

static KnCode no_head(const KnTable *tbl, int64_t cursor, const char *ref, KnErr *err)
{
    if (cursor >= 0)
        return kn_err_set(
            err, KN_E_REFUSED,
            "table %s: %s has no snapshot any more, while delivery stands at snapshot "
            "%" PRId64 ": the table was replaced or emptied; " RELOAD,
            tbl->name, ref, cursor);
    return KN_OK;
}

/* The head of ref; NULL where the table has no snapshot yet. */
static KnCode find_head(const KnTable *tbl, const char *ref, const KnSnapshot **ret, KnErr *err)
{
    const KnRef *found = kn_metadata_find_ref(tbl->md, kn_str(ref));
    bool is_main = strcmp(ref, "main") == 0;
    if (!found && !is_main)
        return kn_err_set(err, KN_E_NOTFOUND, "table %s: no branch or tag is named %s", tbl->name,
                          ref);
    *ret = found ? kn_metadata_find_snapshot(tbl->md, found->snapshot_id)
                 : kn_metadata_snapshot(tbl->md);
    return KN_OK;
}

static bool has_snapshot(const SnapshotVec *vec, const KnSnapshot *snap)
{
    for (size_t i = 0; i < vec->len; i++) {
        if (vec->items[i] == snap)
            return true;
    }
    return false;
}

/* Does the cursor's own line meet the one that was walked? Then the two have parted. */
static bool has_parted(const KnTable *tbl, const KnSnapshot *cursor, const SnapshotVec *walked)
{
    const KnSnapshot *snap = cursor;
    for (size_t i = 0; snap && i <= tbl->md->n_snapshots; i++) {
        if (has_snapshot(walked, snap))
            return true;
        snap = snap->parent_id < 0 ? NULL : kn_metadata_find_snapshot(tbl->md, snap->parent_id);
    }
    return false;
}

/* The walk ended without meeting the cursor. */
static KnCode not_met(const KnTable *tbl, int64_t cursor, const char *ref,
                      const SnapshotVec *walked, KnErr *err)
{
    const KnSnapshot *snap = kn_metadata_find_snapshot(tbl->md, cursor);
    const KnSnapshot *last = walked->items[walked->len - 1];
    if (!snap)
        return kn_err_set(err, KN_E_REFUSED,
                          "table %s: snapshot %" PRId64 ", where delivery stands, has expired: its "
                          "files are no longer known; " RELOAD,
                          tbl->name, cursor);
    if (last->parent_id >= 0 && !kn_metadata_find_snapshot(tbl->md, last->parent_id) &&
        !has_parted(tbl, snap, walked))
        return kn_err_set(err, KN_E_REFUSED,
                          "table %s: snapshot %" PRId64 ", which follows snapshot %" PRId64
                          " where delivery stands, has expired; " RELOAD,
                          tbl->name, last->parent_id, cursor);
    return kn_err_set(err, KN_E_REFUSED,
                      "table %s: snapshot %" PRId64
                      ", where delivery stands, is no ancestor of %s: "
                      "it was rolled back, or the table was replaced; " RELOAD,
                      tbl->name, cursor, ref);
}

static KnCode walk(const KnTable *tbl, const KnSnapshot *head, int64_t cursor, const char *ref,
                   SnapshotVec *vec, KnErr *err)
{
    const KnSnapshot *snap = head;
    while (snap->snapshot_id != cursor) {
        *kn_vec_push(vec) = snap;
        const KnSnapshot *parent =
            snap->parent_id < 0 ? NULL : kn_metadata_find_snapshot(tbl->md, snap->parent_id);
        if (!parent || vec->len > tbl->md->n_snapshots)
            return not_met(tbl, cursor, ref, vec, err);
        snap = parent;
    }
    return KN_OK;
}

KnCode kn_window_lineage(const KnTable *tbl, int64_t cursor, const char *ref, KnArena *arena,
                         KnLineage *ret, KnErr *err)
{
    const KnSnapshot *head = NULL;
    KN_TRY(find_head(tbl, ref, &head, err));
    SnapshotVec vec = {0};
    KnCode rc = KN_OK;
    if (!head)
        rc = no_head(tbl, cursor, ref, err);
    else if (cursor < 0)
        *kn_vec_push(&vec) = head;
    else
        rc = walk(tbl, head, cursor, ref, &vec, err);
    if (rc == KN_OK) {
        const KnSnapshot **out = kn_arena_alloc(arena, (vec.len + 1) * sizeof(*out));
        for (size_t i = 0; i < vec.len; i++)
            out[i] = vec.items[vec.len - 1 - i];
        *ret = (KnLineage){.items = out, .n = vec.len};
    }
    kn_vec_done(&vec);
    return rc;
}
