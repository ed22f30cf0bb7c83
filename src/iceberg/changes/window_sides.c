/* SPDX-License-Identifier: Apache-2.0 */
/*
 * window_sides.c - the live files of two snapshots, read from as few manifests as exactness allows.
 *
 * A manifest never changes, so one that both lists name holds the same files on both sides. Data
 * manifests of one side only are read whole: what they hold came or went (or moved between
 * manifests, which pairing finds out). Files of common data manifests matter only when a delete
 * file that applies to them came or went: such manifests are read only if there is such a delete
 * file that is new enough for them, and only the files it applies to are kept.
 *
 * Every kept file gets the delete files that apply to it at its snapshot, from an index of all live
 * delete files of that side (plan_deletes.h).
 */
#include <inttypes.h>

#include "base/map.h"
#include "base/vec.h"
#include "iceberg/changes/window_internal.h"
#include "iceberg/scan/plan_deletes.h"

enum { FROM, TO };

typedef struct ManifestList {
    size_t n;
    KnManifestFile *files;
    KnMap *paths;
} ManifestList;

typedef KN_VEC(KnScanTask) TaskVec;
typedef KN_VEC(const KnManifestEntry *) EntryVec;

typedef struct Sides {
    const KnTable *tbl;
    KnArena *arena;
    ManifestList lists[2];
    KnDeleteIndex *all[2];     /* every live delete file of a side */
    KnDeleteIndex *changed[2]; /* those that the other side has not */
    EntryVec deletes[2];       /* live ones of manifests that the other side has not */
    int64_t changed_up_to;     /* highest sequence number of a changed one; -1 = none */
    TaskVec tasks[2];
} Sides;

/* ---- reading one manifest ---- */

typedef struct Visit {
    Sides *sides;
    int side; /* that it belongs to; -1 = both */
} Visit;

static KnCode read_manifest(const Sides *s, const KnManifestFile *file, KnManifestFn fn,
                            Visit visit, KnErr *err)
{
    if (kn_manifest_file_is_dead(file))
        return KN_OK;
    if (file->key_metadata.len > 0)
        return kn_err_set(err, KN_E_UNSUPPORTED, "table %s: manifest '%.300s' is encrypted",
                          s->tbl->name, file->path);
    KnManifestVisit how = {.opts = {.with_metrics = true}, .fn = fn, .arg = &visit};
    KnCode rc = kn_manifest_read(s->tbl->io, s->tbl->md, file, &how, err);
    return rc == KN_OK
               ? rc
               : kn_err_wrap(err, rc, "table %s: manifest '%.200s'", s->tbl->name, file->path);
}

static bool is_common(const Sides *s, const KnManifestFile *file)
{
    return kn_map_find(s->lists[FROM].paths, kn_str(file->path)) &&
           kn_map_find(s->lists[TO].paths, kn_str(file->path));
}

/* ---- delete files ---- */

static KnCode take_delete(void *arg, const KnManifestEntry *entry, KnErr *err)
{
    const Visit *visit = arg;
    Sides *s = visit->sides;
    for (int side = FROM; side <= TO; side++) {
        if (visit->side < 0 || visit->side == side)
            KN_TRY(kn_delete_index_add(s->all[side], entry, err));
    }
    if (visit->side >= 0)
        *kn_vec_push(&s->deletes[visit->side]) = kn_manifest_entry_copy(s->arena, entry);
    return KN_OK;
}

static KnStr delete_key(KnBuf *buf, const KnManifestEntry *entry)
{
    kn_buf_reset(buf);
    kn_buf_printf(buf, "%" PRId64 ":%" PRId64 ":", entry->sequence_number,
                  entry->file.content_offset);
    kn_buf_text(buf, entry->file.path);
    return (KnStr){buf->data, buf->len};
}

/* Delete files of one side's own manifests that are not in the other's: they came, or went. */
static KnCode index_changed(Sides *s, int side, KnErr *err)
{
    const EntryVec *mine = &s->deletes[side];
    const EntryVec *other = &s->deletes[1 - side];
    KN_MAP_AUTO known = kn_map_new();
    KN_BUF_AUTO key;
    kn_buf_init(&key, (size_t)1 << 20);
    for (size_t i = 0; i < other->len; i++)
        *kn_map_get_or_add(known, delete_key(&key, other->items[i]), NULL) = s;
    for (size_t i = 0; i < mine->len; i++) {
        if (kn_map_find(known, delete_key(&key, mine->items[i])))
            continue;
        KN_TRY(kn_delete_index_add(s->changed[side], mine->items[i], err));
        if (mine->items[i]->sequence_number > s->changed_up_to)
            s->changed_up_to = mine->items[i]->sequence_number;
    }
    return KN_OK;
}

/* Delete manifests that both have and that are older than every file at hand cannot matter, as long
 * as no delete file came or went: the least sequence number that can. */
static int64_t deletes_needed_from(const Sides *s)
{
    int64_t least = INT64_MAX;
    for (int side = FROM; side <= TO; side++) {
        const ManifestList *list = &s->lists[side];
        for (size_t i = 0; i < list->n; i++) {
            const KnManifestFile *file = &list->files[i];
            if (is_common(s, file))
                continue;
            if (file->deletes)
                return 0;
            if (file->min_sequence_number < least)
                least = file->min_sequence_number;
        }
    }
    return least;
}

static KnCode read_deletes(Sides *s, KnErr *err)
{
    int64_t needed_from = deletes_needed_from(s);
    for (int side = FROM; side <= TO; side++) {
        const ManifestList *list = &s->lists[side];
        for (size_t i = 0; i < list->n; i++) {
            const KnManifestFile *file = &list->files[i];
            bool common = is_common(s, file);
            if (!file->deletes || (common && side == TO))
                continue;
            if (common && file->sequence_number < needed_from)
                continue;
            KN_TRY(read_manifest(s, file, take_delete, (Visit){s, common ? -1 : side}, err));
        }
    }
    for (int side = FROM; side <= TO; side++)
        KN_TRY(index_changed(s, side, err));
    for (int side = FROM; side <= TO; side++) {
        kn_delete_index_seal(s->all[side]);
        kn_delete_index_seal(s->changed[side]);
    }
    return KN_OK;
}

/* ---- data files ---- */

static KnCode add_task(Sides *s, int side, const KnManifestEntry *entry, KnErr *err)
{
    KnScanTask task = {.data = entry};
    KN_TRY(kn_delete_index_match(s->all[side], entry, &task, err));
    *kn_vec_push(&s->tasks[side]) = task;
    return KN_OK;
}

static KnCode is_touched(const Sides *s, const KnManifestEntry *entry, bool *ret, KnErr *err)
{
    *ret = false;
    for (int side = FROM; !*ret && side <= TO; side++) {
        KnScanTask task = {.data = entry};
        KN_TRY(kn_delete_index_match(s->changed[side], entry, &task, err));
        *ret = task.n_deletes > 0;
    }
    return KN_OK;
}

static KnCode take_data(void *arg, const KnManifestEntry *entry, KnErr *err)
{
    const Visit *visit = arg;
    Sides *s = visit->sides;
    if (entry->file.content != KN_CONTENT_DATA)
        return kn_err_set(err, KN_E_CORRUPT, "delete file '%.400s' is in a manifest of data",
                          entry->file.path);
    bool wanted = true;
    if (visit->side < 0)
        KN_TRY(is_touched(s, entry, &wanted, err));
    if (!wanted)
        return KN_OK;
    const KnManifestEntry *copy = kn_manifest_entry_copy(s->arena, entry);
    for (int side = FROM; side <= TO; side++) {
        if (visit->side < 0 || visit->side == side)
            KN_TRY(add_task(s, side, copy, err));
    }
    return KN_OK;
}

static KnCode read_data(Sides *s, KnErr *err)
{
    for (int side = FROM; side <= TO; side++) {
        const ManifestList *list = &s->lists[side];
        for (size_t i = 0; i < list->n; i++) {
            const KnManifestFile *file = &list->files[i];
            bool common = is_common(s, file);
            if (file->deletes || (common && side == TO))
                continue;
            if (common && file->min_sequence_number > s->changed_up_to)
                continue;
            KN_TRY(read_manifest(s, file, take_data, (Visit){s, common ? -1 : side}, err));
        }
    }
    return KN_OK;
}

/* ---- both ---- */

static KnCode read_list(Sides *s, int side, const KnSnapshot *snap, KnErr *err)
{
    ManifestList *list = &s->lists[side];
    list->paths = kn_map_new();
    if (!snap)
        return KN_OK;
    KN_TRY(kn_manifest_list_read(s->tbl->io, s->arena, snap, &list->files, &list->n, err));
    for (size_t i = 0; i < list->n; i++)
        *kn_map_get_or_add(list->paths, kn_str(list->files[i].path), NULL) = list;
    return KN_OK;
}

static KnCode read_all(Sides *s, const KnSnapshot *from, const KnSnapshot *to, KnErr *err)
{
    KN_TRY(read_list(s, FROM, from, err));
    KN_TRY(read_list(s, TO, to, err));
    KN_TRY(read_deletes(s, err));
    return read_data(s, err);
}

static KnSide keep_tasks(KnArena *arena, const TaskVec *tasks)
{
    KnSide side = {.n_tasks = tasks->len,
                   .tasks = kn_arena_zalloc(arena, (tasks->len + 1) * sizeof(*side.tasks))};
    for (size_t i = 0; i < tasks->len; i++)
        side.tasks[i] = tasks->items[i];
    return side;
}

KnCode kn_window_sides(const KnTable *tbl, const KnSnapshot *from, const KnSnapshot *to,
                       KnArena *arena, KnSide sides[2], KnErr *err)
{
    Sides s = {.tbl = tbl, .arena = arena, .changed_up_to = -1};
    for (int side = FROM; side <= TO; side++) {
        s.all[side] = kn_delete_index_new(arena, tbl->md);
        s.changed[side] = kn_delete_index_new(arena, tbl->md);
    }
    KnCode rc = read_all(&s, from, to, err);
    for (int side = FROM; side <= TO; side++) {
        if (rc == KN_OK)
            sides[side] = keep_tasks(arena, &s.tasks[side]);
        kn_vec_done(&s.tasks[side]);
        kn_vec_done(&s.deletes[side]);
        kn_map_free(s.lists[side].paths);
    }
    return rc;
}
