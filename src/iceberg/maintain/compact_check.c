/* SPDX-License-Identifier: Apache-2.0 */
/*
 * compact_check.c - what others did since the plan, and whether a rewrite survives it.
 *
 * Two snapshots are compared by their files (window_sides.c), never by the words of those between.
 * An equality delete that came may be ignored when the rewritten rows keep a data sequence number
 * below it and their spec: it applies to them as before. Where rows move to another spec it would
 * not, or one of that spec would newly find them.
 */
#include <inttypes.h>

#include "base/map.h"
#include "iceberg/changes/window_internal.h"
#include "iceberg/maintain/compact_internal.h"

bool kn_compact_keeps_sequence(const KnCompactPlan *plan, const KnCompactOptions *opts,
                               int32_t spec_id)
{
    return !opts->new_sequence_number && spec_id == plan->spec->spec_id &&
           plan->snapshot->sequence_number > 0;
}

static KnMap *map_files(const KnCompactCheck *check)
{
    KnMap *map = kn_map_new();
    for (size_t i = 0; i < check->n_files; i++)
        *kn_map_get_or_add(map, kn_str(check->files[i]->file.path), NULL) = map;
    return map;
}

static bool had_delete(const KnScanTask *before, const KnManifestEntry *del)
{
    for (size_t i = 0; i < before->n_deletes; i++) {
        const KnManifestEntry *old = before->deletes[i];
        if (old->sequence_number == del->sequence_number &&
            old->file.content_offset == del->file.content_offset &&
            strcmp(old->file.path, del->file.path) == 0)
            return true;
    }
    return false;
}

static KnCode check_touched(const KnCompactCheck *check, const KnScanTask *before,
                            const KnScanTask *after, KnErr *err)
{
    for (size_t i = 0; i < after->n_deletes; i++) {
        const KnManifestEntry *del = after->deletes[i];
        bool equality = del->file.content == KN_CONTENT_EQUALITY_DELETES;
        if (had_delete(before, del) ||
            (equality && check->ignores(check->arg, after->data->file.spec_id)))
            continue;
        return kn_err_set(err, KN_E_CONFLICT,
                          "table %s: another writer added %s deletes for a file that is rewritten "
                          "(%.200s): run the operation again",
                          check->tbl->name, equality ? "equality" : "position",
                          after->data->file.path);
    }
    return KN_OK;
}

static KnCode check_sides(const KnCompactCheck *check, const KnWindow *win, const KnMap *removed,
                          KnErr *err)
{
    for (size_t i = 0; i < win->n_removed; i++) {
        const char *path = win->removed[i].data->file.path;
        if (kn_map_find(removed, kn_str(path)))
            return kn_err_set(err, KN_E_CONFLICT,
                              "table %s: another writer removed a file that is rewritten "
                              "(%.200s): run the operation again",
                              check->tbl->name, path);
    }
    for (size_t i = 0; i < win->n_touched; i++) {
        if (kn_map_find(removed, kn_str(win->touched[i].data->file.path)))
            KN_TRY(check_touched(check, &win->touched[i], &win->touched_after[i], err));
    }
    return KN_OK;
}

KnCode kn_compact_check(const KnCompactCheck *check, const KnSnapshot *head, KnErr *err)
{
    int64_t base_id = check->base_id;
    const KnSnapshot *base = kn_metadata_find_snapshot(check->tbl->md, base_id);
    if (!base)
        return kn_err_set(err, KN_E_CONFLICT,
                          "table %s: snapshot %" PRId64 ", on which the rewrite was planned, has "
                          "expired meanwhile: run the operation again",
                          check->tbl->name, base_id);
    KN_ARENA_AUTO arena = kn_arena_new(0);
    KN_MAP_AUTO removed = map_files(check);
    KnWindow win = {.tbl = check->tbl, .from = base, .to = head, .arena = arena};
    KnSide sides[2] = {{0}};
    KN_TRY(kn_window_sides(check->tbl, base, head, arena, sides, err));
    kn_window_pair(&win, sides);
    return check_sides(check, &win, removed, err);
}
