/* SPDX-License-Identifier: Apache-2.0 */
/*
 * write_conflict.c - does a change of rows still hold on a newer head?
 *
 * It does not when another writer meanwhile added a file that may hold rows the operation speaks of
 * (it has not seen them), removed a file that the operation removes, rewrites or deletes rows of,
 * or deleted rows of such a file. Deletes of rows add up only where neither side puts a row in the
 * place of another and both may have a delete file for one data file: position deletes of a plain
 * delete. What a compaction added is only rows that the operation knows. These are the checks of
 * Java's RowDelta and OverwriteFiles under serializable isolation.
 */
#include <inttypes.h>

#include "base/map.h"
#include "iceberg/changes/window_internal.h"
#include "iceberg/write/write_change.h"

/* Is every snapshot after base a `replace`? */
static bool only_compacted(const KnChange *change, const KnSnapshot *base, const KnSnapshot *head)
{
    const KnMetadata *md = change->w->tbl->md;
    while (head && base && head->snapshot_id != base->snapshot_id) {
        if (!head->operation || strcmp(head->operation, "replace") != 0)
            return false;
        head = head->parent_id >= 0 ? kn_metadata_find_snapshot(md, head->parent_id) : NULL;
    }
    return head && base;
}

static KnCode check_added(const KnChange *change, const KnWindow *win, KnErr *err)
{
    const KnWriter *w = change->w;
    if (only_compacted(change, win->from, win->to))
        return KN_OK;
    for (size_t i = 0; i < win->n_added; i++) {
        const KnDataFile *file = &win->added[i].data->file;
        const KnPartitionSpec *spec = kn_metadata_find_spec(w->tbl->md, file->spec_id);
        if (!spec || (kn_expr_may_match_partition(change->filter, spec, w->schema, file) &&
                      kn_expr_may_match_file(change->filter, file)))
            return kn_err_set(err, KN_E_CONFLICT,
                              "table %s: another writer added %s (%.200s): run the operation again",
                              w->tbl->name, change->what, file->path);
    }
    return KN_OK;
}

static void note(KnMap *map, const KnManifestEntry *entry)
{
    *kn_map_get_or_add(map, kn_str(entry->file.path), NULL) = map;
}

static KnCode changed_elsewhere(const KnChange *change, const KnScanTask *task, KnErr *err)
{
    return kn_err_set(err, KN_E_CONFLICT,
                      "table %s: another writer changed a file that this operation changes "
                      "(%.200s): run the operation again",
                      change->w->tbl->name, task->data->file.path);
}

static KnCode check_changed(const KnChange *change, const KnWindow *win, KnErr *err)
{
    bool add_up =
        change->merge_on_read && change->deletes_only && change->w->tbl->md->format_version < 3;
    KN_MAP_AUTO gone = kn_map_new();
    KN_MAP_AUTO partial = kn_map_new();
    for (size_t i = 0; i < change->removed.len; i++)
        note(gone, change->removed.items[i]);
    for (size_t i = 0; i < change->partial.len; i++)
        note(partial, change->partial.items[i].data);
    for (size_t i = 0; i < win->n_removed; i++) {
        KnStr path = kn_str(win->removed[i].data->file.path);
        if (kn_map_find(gone, path) || kn_map_find(partial, path))
            return changed_elsewhere(change, &win->removed[i], err);
    }
    for (size_t i = 0; i < win->n_touched; i++) {
        KnStr path = kn_str(win->touched[i].data->file.path);
        if (kn_map_find(gone, path) || (!add_up && kn_map_find(partial, path)))
            return changed_elsewhere(change, &win->touched[i], err);
    }
    return KN_OK;
}

static KnCode check(const KnChange *change, KnWindow *win, KnErr *err)
{
    KnSide sides[2] = {{0}};
    KN_TRY(kn_window_sides(win->tbl, win->from, win->to, win->arena, sides, err));
    kn_window_pair(win, sides);
    KN_TRY(check_changed(change, win, err));
    return check_added(change, win, err);
}

KnCode kn_change_check_base(const KnChange *change, const KnSnapshot *base, const KnSnapshot *head,
                            KnErr *err)
{
    const KnTable *tbl = change->w->tbl;
    if (tbl->md->format_version != change->format_version)
        return kn_err_set(err, KN_E_CONFLICT,
                          "table %s was upgraded to format version %d meanwhile: run the operation "
                          "again",
                          tbl->name, tbl->md->format_version);
    KN_ARENA_AUTO arena = kn_arena_new(0);
    KnWindow win = {.tbl = tbl, .from = base, .to = head, .arena = arena};
    return check(change, &win, err);
}
