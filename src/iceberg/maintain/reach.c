/* SPDX-License-Identifier: Apache-2.0 */
/* reach.c - see reach.h. */
#include "iceberg/maintain/reach.h"

#include <inttypes.h>
#include <string.h>

#include "base/fault.h"
#include "base/json.h"
#include "base/map.h"
#include "base/path.h"
#include "base/vec.h"

void kn_reach_init(KnReach *reach, const KnTable *tbl, const KnMetadata *md)
{
    *reach = (KnReach){.tbl = tbl, .md = md, .arena = kn_arena_new(0), .manifests = kn_map_new()};
}

void kn_reach_done(KnReach *reach)
{
    reach->manifests = kn_map_free(reach->manifests);
    reach->arena = kn_arena_free(reach->arena);
}

/* A damaged or missing file among those that go anyway must not keep them for ever. */
static KnCode tolerate(KnReach *reach, KnCode rc)
{
    if (!reach->tolerant || (rc != KN_E_NOTFOUND && rc != KN_E_CORRUPT))
        return rc;
    reach->unreadable++;
    return KN_OK;
}

/* ---- manifests ---- */

static void keep_manifest(KnReach *reach, const KnManifestFile *file)
{
    bool is_new = false;
    void **slot = kn_map_get_or_add(reach->manifests, kn_str(file->path), &is_new);
    if (!is_new)
        return;
    KnManifestFile *copy = kn_arena_alloc(reach->arena, sizeof(*copy));
    *copy = *file;
    copy->path = kn_arena_strdup(reach->arena, file->path);
    copy->n_partitions = 0;
    copy->partitions = NULL;
    copy->key_metadata = (KnStr){0};
    *slot = copy;
}

KnCode kn_reach_add_snapshot(KnReach *reach, const KnSnapshot *snap, KnErr *err)
{
    KN_ARENA_AUTO arena = kn_arena_new(0);
    KnManifestFile *files = NULL;
    size_t n = 0;
    KnCode rc = kn_manifest_list_read(reach->tbl->io, arena, snap, &files, &n, err);
    if (rc != KN_OK)
        return tolerate(reach, kn_err_wrap(err, rc, "table %s: snapshot %" PRId64, reach->tbl->name,
                                           snap->snapshot_id));
    for (size_t i = 0; i < n; i++)
        keep_manifest(reach, &files[i]);
    return KN_OK;
}

KnCode kn_reach_add_all(KnReach *reach, KnErr *err)
{
    for (size_t i = 0; i < reach->md->n_snapshots; i++)
        KN_TRY(kn_reach_add_snapshot(reach, &reach->md->snapshots[i], err));
    return KN_OK;
}

typedef KnCode (*ManifestFn)(KnReach *reach, const KnManifestFile *file, KnFileSet *set,
                             KnErr *err);

static KnCode each_manifest(KnReach *reach, const KnReach *except, ManifestFn fn, KnFileSet *set,
                            KnErr *err)
{
    KnStr path;
    void *file;
    for (size_t i = 0; kn_map_entry(reach->manifests, i, &path, &file); i++)
        if (!except || !kn_map_find(except->manifests, path))
            KN_TRY(fn(reach, file, set, err));
    return KN_OK;
}

static KnCode put_manifest(KnReach *reach, const KnManifestFile *file, KnFileSet *set, KnErr *err)
{
    (void)reach;
    KnFileName name = {KN_FILE_MANIFEST, kn_str(file->path), file->length};
    return kn_file_set_add(set, &name, err);
}

KnCode kn_reach_put_manifests(KnReach *reach, const KnReach *except, KnFileSet *set, KnErr *err)
{
    return each_manifest(reach, except, put_manifest, set, err);
}

/* ---- their entries ---- */

static KnFileKind kind_of(const KnDataFile *file)
{
    switch (file->content) {
    case KN_CONTENT_POSITION_DELETES:
        return file->format == KN_FORMAT_PUFFIN ? KN_FILE_DELETION_VECTORS
                                                : KN_FILE_POSITION_DELETES;
    case KN_CONTENT_EQUALITY_DELETES:
        return KN_FILE_EQUALITY_DELETES;
    default:
        return KN_FILE_DATA;
    }
}

static KnCode put_entry(void *arg, const KnManifestEntry *entry, KnErr *err)
{
    KnFileName name = {kind_of(&entry->file), kn_str(entry->file.path), entry->file.size_bytes};
    return kn_file_set_add(arg, &name, err);
}

static KnCode put_contents(KnReach *reach, const KnManifestFile *file, KnFileSet *set, KnErr *err)
{
    KnManifestVisit visit = {.fn = put_entry, .arg = set};
    KnCode rc = kn_manifest_read(reach->tbl->io, reach->md, file, &visit, err);
    return rc == KN_OK ? rc : tolerate(reach, kn_err_wrap(err, rc, "table %s", reach->tbl->name));
}

KnCode kn_reach_put_contents(KnReach *reach, const KnReach *except, KnFileSet *set, KnErr *err)
{
    return each_manifest(reach, except, put_contents, set, err);
}

/* ---- what the document names ---- */

KnCode kn_reach_put_lists(const KnMetadata *md, KnFileSet *set, KnErr *err)
{
    for (size_t i = 0; i < md->n_snapshots; i++) {
        if (!md->snapshots[i].manifest_list)
            continue;
        KnFileName name = {KN_FILE_MANIFEST_LIST, kn_str(md->snapshots[i].manifest_list), -1};
        KN_TRY(kn_file_set_add(set, &name, err));
    }
    return KN_OK;
}

static KnCode put_statistics(const json_t *list, KnFileSet *set, KnErr *err)
{
    size_t i;
    json_t *item;
    json_array_foreach(list, i, item)
    {
        const char *path = json_string_value(json_object_get(item, "statistics-path"));
        const json_t *size = json_object_get(item, "file-size-in-bytes");
        KnFileName name = {KN_FILE_STATISTICS, kn_str(path),
                           json_is_integer(size) ? json_integer_value(size) : -1};
        if (path)
            KN_TRY(kn_file_set_add(set, &name, err));
    }
    return KN_OK;
}

KnCode kn_reach_put_statistics(const KnMetadata *md, KnFileSet *set, KnErr *err)
{
    KN_TRY(put_statistics(md->statistics, set, err));
    return put_statistics(md->partition_statistics, set, err);
}

KnCode kn_reach_put_metadata(const KnMetadata *md, const char *location, bool hint, KnFileSet *set,
                             KnErr *err)
{
    for (size_t i = 0; i < md->n_metadata_log; i++) {
        KnFileName name = {KN_FILE_METADATA, kn_str(md->metadata_log[i].metadata_file), -1};
        KN_TRY(kn_file_set_add(set, &name, err));
    }
    KN_ARENA_AUTO arena = kn_arena_new(0);
    KnFileName name = {KN_FILE_METADATA, kn_str(location), -1};
    KN_TRY(kn_file_set_add(set, &name, err));
    if (!hint)
        return KN_OK;
    const char *folder = kn_path_join(arena, kn_str(md->location), KN_STR_LIT("metadata"));
    name.location = kn_str(kn_path_join(arena, kn_str(folder), KN_STR_LIT("version-hint.text")));
    return kn_file_set_add(set, &name, err);
}

/* ---- removing ---- */

enum { SWEEP_BATCH = 1000 };

/* Files are removed in batches: stores take many names at once. */
typedef struct Sweeping {
    const KnSweep *sweep;
    KnSweepResult *result;
    KnArena *arena; /* of the batch */
    KN_VEC(KnFileName) batch;
} Sweeping;

static void note_left(KnSweepResult *result, const KnErr *why)
{
    if (result->foreign + result->failed == 0)
        result->first = *why;
}

static int64_t size_of(const KnTable *tbl, const KnFileName *name)
{
    KnFileInfo info;
    if (name->bytes >= 0)
        return name->bytes;
    return kn_io_stat(tbl->io, name->location, &info, NULL) == KN_OK ? (int64_t)info.size : 0;
}

static KnCode check_cancelled(const Sweeping *s, KnErr *err)
{
    const KnSweepOptions *opts = &s->sweep->opts;
    if (!opts->cancelled || !opts->cancelled())
        return KN_OK;
    return kn_err_set(err, KN_E_CANCELLED,
                      "table %s: removing files was cancelled; 'orphans' finds what was left",
                      s->sweep->tbl->name);
}

static KnCode note_gone(const Sweeping *s, const KnFileName *name, KnErr *err)
{
    const KnSweepOptions *opts = &s->sweep->opts;
    s->result->files[name->kind]++;
    s->result->bytes += name->bytes;
    return opts->fn ? opts->fn(opts->arg, name, err) : KN_OK;
}

static KnCode note_outcomes(Sweeping *s, const KnErr *errs, KnErr *err)
{
    for (size_t i = 0; i < s->batch.len; i++) {
        if (errs[i].code == KN_OK) {
            KN_TRY(note_gone(s, &s->batch.items[i], err));
        } else {
            note_left(s->result, &errs[i]);
            s->result->failed++;
        }
    }
    return KN_OK;
}

static KnCode sweep_batch(Sweeping *s, KnErr *err)
{
    size_t n = s->batch.len;
    if (n == 0)
        return KN_OK;
    KnStr *locations = kn_arena_alloc(s->arena, n * sizeof(*locations));
    KnErr *errs = kn_arena_zalloc(s->arena, n * sizeof(*errs));
    for (size_t i = 0; i < n; i++)
        locations[i] = s->batch.items[i].location;
    KN_TRY(kn_fault_at("sweep-before-remove", err));
    kn_io_remove_many(s->sweep->tbl->io, locations, n, errs);
    KN_TRY(note_outcomes(s, errs, err));
    s->batch.len = 0;
    s->arena = kn_arena_free(s->arena);
    s->arena = kn_arena_new(0);
    return KN_OK;
}

static KnCode sweep_file(void *arg, const KnFileName *found, KnErr *err)
{
    Sweeping *s = arg;
    KnTable *tbl = s->sweep->tbl;
    KnErr why = {0};
    KN_TRY(check_cancelled(s, err));
    if (kn_table_check_removable(tbl, found->location, &why) != KN_OK) {
        note_left(s->result, &why);
        s->result->foreign++;
        return KN_OK;
    }
    KnFileName name = *found;
    name.bytes = size_of(tbl, found);
    if (s->sweep->opts.dry_run)
        return note_gone(s, &name, err);
    name.location = kn_str(kn_arena_strndup(s->arena, name.location.ptr, name.location.len));
    *kn_vec_push(&s->batch) = name;
    size_t full = kn_io_remove_batch(tbl->io);
    return s->batch.len < (full < SWEEP_BATCH ? full : SWEEP_BATCH) ? KN_OK : sweep_batch(s, err);
}

KnCode kn_sweep(const KnSweep *sweep, KnSweepResult *ret, KnErr *err)
{
    Sweeping sweeping = {.sweep = sweep, .result = ret, .arena = kn_arena_new(0)};
    KnFileVisit visit = {sweep_file, &sweeping};
    KnCode rc = kn_file_set_minus(sweep->gone, &sweep->minus, &visit, err);
    if (rc == KN_OK)
        rc = sweep_batch(&sweeping, err);
    kn_vec_done(&sweeping.batch);
    kn_arena_free(sweeping.arena);
    return rc;
}
