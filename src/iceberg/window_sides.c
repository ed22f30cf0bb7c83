/* SPDX-License-Identifier: Apache-2.0 */
/*
 * window_sides.c - the live files of two snapshots, read from as few manifests as exactness allows.
 *
 * A manifest never changes, so one that both lists name holds the same files on both sides. While
 * the lists name the same delete manifests (or none), a file's deletes cannot have changed, and
 * such manifests need not be read: only the files of the others are looked at. Once a delete
 * manifest came or went, any file may be touched, and both snapshots are planned in full.
 */
#include "base/map.h"
#include "base/vec.h"
#include "iceberg/window_internal.h"

typedef struct ManifestList {
    size_t n;
    KnManifestFile *files;
} ManifestList;

typedef KN_VEC(KnScanTask) TaskVec;

typedef struct Collect {
    KnArena *arena;
    TaskVec tasks;
} Collect;

static KnCode collect_entry(void *arg, const KnManifestEntry *entry, KnErr *err)
{
    (void)err;
    Collect *collect = arg;
    kn_vec_push(&collect->tasks)->data = kn_manifest_entry_copy(collect->arena, entry);
    return KN_OK;
}

static KnMap *path_set(const ManifestList *list)
{
    KnMap *set = kn_map_new();
    for (size_t i = 0; i < list->n; i++)
        *kn_map_get_or_add(set, kn_str(list->files[i].path), NULL) = &list->files[i];
    return set;
}

static bool has_deletes(const ManifestList *list)
{
    for (size_t i = 0; i < list->n; i++) {
        if (list->files[i].deletes)
            return true;
    }
    return false;
}

/* Live data files of the manifests that `other` does not name. */
static KnCode read_side(const KnTable *tbl, const ManifestList *list, const KnMap *other,
                        KnArena *arena, KnSide *ret, KnErr *err)
{
    Collect collect = {.arena = arena};
    KnManifestVisit visit = {.opts = {.with_metrics = true}, .fn = collect_entry, .arg = &collect};
    KnCode rc = KN_OK;
    for (size_t i = 0; rc == KN_OK && i < list->n; i++) {
        if (!kn_map_find(other, kn_str(list->files[i].path)))
            rc = kn_manifest_read(tbl->io, tbl->md, &list->files[i], &visit, err);
    }
    if (rc == KN_OK) {
        ret->n_tasks = collect.tasks.len;
        ret->tasks = kn_arena_zalloc(arena, (collect.tasks.len + 1) * sizeof(*ret->tasks));
        for (size_t i = 0; i < collect.tasks.len; i++)
            ret->tasks[i] = collect.tasks.items[i];
    }
    kn_vec_done(&collect.tasks);
    return rc;
}

static void free_plan(void *plan)
{
    kn_plan_free(plan);
}

static KnCode plan_side(const KnTable *tbl, const KnSnapshot *snap, KnArena *arena, KnSide *ret,
                        KnErr *err)
{
    KnPlan *plan = NULL;
    KN_TRY(kn_plan_scan(tbl, &(KnPlanOptions){.snapshot = snap}, &plan, err));
    kn_arena_defer(arena, free_plan, plan);
    *ret = (KnSide){.n_tasks = plan->n_tasks, .tasks = plan->tasks};
    return KN_OK;
}

static KnCode read_lists(const KnTable *tbl, const KnSnapshot *snap, KnArena *arena,
                         ManifestList *ret, KnErr *err)
{
    if (!snap)
        return KN_OK;
    return kn_manifest_list_read(tbl->io, arena, tbl->md, snap, &ret->files, &ret->n, err);
}

KnCode kn_window_sides(const KnTable *tbl, const KnSnapshot *from, const KnSnapshot *to,
                       KnArena *arena, KnSide sides[2], KnErr *err)
{
    ManifestList lists[2] = {{0}};
    const KnSnapshot *snaps[2] = {from, to};
    KnSide out[2] = {{0}};
    for (int i = 0; i < 2; i++)
        KN_TRY(read_lists(tbl, snaps[i], arena, &lists[i], err));
    if (has_deletes(&lists[0]) || has_deletes(&lists[1])) {
        for (int i = 0; i < 2; i++) {
            if (snaps[i])
                KN_TRY(plan_side(tbl, snaps[i], arena, &out[i], err));
        }
    } else {
        for (int i = 0; i < 2; i++) {
            KN_MAP_AUTO other = path_set(&lists[1 - i]);
            KN_TRY(read_side(tbl, &lists[i], other, arena, &out[i], err));
        }
    }
    sides[0] = out[0];
    sides[1] = out[1];
    return KN_OK;
}
