/* SPDX-License-Identifier: Apache-2.0 */
/* verify.c - see verify.h. A manifest that several snapshots share is read once; a data file that
 * several manifests list is looked for as often. */
#include "iceberg/maintain/verify.h"

#include <inttypes.h>
#include <string.h>

#include "base/map.h"
#include "iceberg/manifest/manifest.h"

typedef struct Look {
    const KnVerify *verify;
    KnVerified *ret;
    KnMap *manifests; /* paths that were read */
} Look;

bool kn_verify_is_damage(KnCode code)
{
    return code == KN_E_NOTFOUND || code == KN_E_CORRUPT || code == KN_E_UNSUPPORTED ||
           code == KN_E_INVAL;
}

/* Damage is told; whatever else ends the look. */
static KnCode judge(Look *look, const char *kind, const char *location, const KnErr *why,
                    KnErr *err)
{
    if (!kn_verify_is_damage(why->code)) {
        if (err)
            *err = *why;
        return why->code;
    }
    look->ret->findings++;
    KnFinding finding = {.kind = kind, .location = location, .problem = why->msg};
    return look->verify->fn(look->verify->arg, &finding, err);
}

static KnCode stat_file(Look *look, const char *kind, const char *location, int64_t size,
                        KnErr *err)
{
    KnErr why = {0};
    KnFileInfo info = {0};
    look->ret->files++;
    KnCode rc = kn_io_stat(look->verify->io, kn_str(location), &info, &why);
    if (rc == KN_OK && (size < 0 || info.size == (uint64_t)size))
        return KN_OK;
    if (rc == KN_OK)
        (void)kn_err_set(&why, KN_E_CORRUPT, "%" PRIu64 " bytes, %" PRId64 " expected", info.size,
                         size);
    return judge(look, kind, location, &why, err);
}

/* A failure of the callback itself must not be taken for one of the manifest. */
typedef struct Entries {
    Look *look;
    KnCode failed;
} Entries;

static KnCode look_at_entry(void *arg, const KnManifestEntry *entry, KnErr *err)
{
    Entries *entries = arg;
    if (!entries->look->verify->files)
        return KN_OK;
    KN_ARENA_AUTO arena = kn_arena_new(0);
    const KnDataFile *file = &entry->file;
    /* A deletion vector's size is that of its blob, not of the Puffin file. */
    bool blob = file->content != KN_CONTENT_DATA && file->format == KN_FORMAT_PUFFIN;
    entries->failed =
        stat_file(entries->look, file->content == KN_CONTENT_DATA ? "data" : "delete",
                  kn_arena_strdup(arena, file->path), blob ? -1 : file->size_bytes, err);
    return entries->failed;
}

static KnCode look_at_manifest(Look *look, const KnManifestFile *file, KnErr *err)
{
    bool is_new = false;
    *kn_map_get_or_add(look->manifests, kn_str(file->path), &is_new) = look;
    if (!is_new)
        return KN_OK;
    if (look->verify->cancelled && look->verify->cancelled())
        return kn_err_set(err, KN_E_CANCELLED, "a signal asked to stop");
    look->ret->manifests++;
    KnErr why = {0};
    Entries entries = {.look = look};
    KnManifestVisit visit = {.fn = look_at_entry, .arg = &entries};
    KnCode rc = kn_manifest_read(look->verify->io, look->verify->md, file, &visit, &why);
    if (rc == KN_OK)
        return KN_OK;
    if (entries.failed != KN_OK) {
        if (err)
            *err = why;
        return rc;
    }
    return judge(look, "manifest", file->path, &why, err);
}

static KnCode look_at_snapshot(Look *look, const KnSnapshot *snap, KnErr *err)
{
    KN_ARENA_AUTO arena = kn_arena_new(0);
    KnManifestFile *files = NULL;
    size_t n = 0;
    KnErr why = {0};
    look->ret->snapshots++;
    if (kn_manifest_list_read(look->verify->io, arena, snap, &files, &n, &why) != KN_OK)
        return judge(look, "manifest-list", snap->manifest_list ? snap->manifest_list : "", &why,
                     err);
    for (size_t i = 0; i < n; i++)
        KN_TRY(look_at_manifest(look, &files[i], err));
    return KN_OK;
}

static bool is_named(const KnMetadata *md, int64_t snapshot_id)
{
    for (size_t i = 0; i < md->n_refs; i++) {
        if (md->refs[i].snapshot_id == snapshot_id)
            return true;
    }
    return md->current_snapshot_id == snapshot_id;
}

static KnCode look_at_statistics(Look *look, const json_t *list, KnErr *err)
{
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *item = json_array_get(list, i);
        const char *path = json_string_value(json_object_get(item, "statistics-path"));
        const json_t *size = json_object_get(item, "file-size-in-bytes");
        if (path)
            KN_TRY(stat_file(look, "statistics", path,
                             json_is_integer(size) ? json_integer_value(size) : -1, err));
    }
    return KN_OK;
}

static KnCode look_at_all(Look *look, KnErr *err)
{
    const KnVerify *verify = look->verify;
    const KnMetadata *md = verify->md;
    for (size_t i = 0; i < md->n_snapshots; i++) {
        if (!verify->current_only || is_named(md, md->snapshots[i].snapshot_id))
            KN_TRY(look_at_snapshot(look, &md->snapshots[i], err));
    }
    if (!verify->files)
        return KN_OK;
    KN_TRY(look_at_statistics(look, md->statistics, err));
    return look_at_statistics(look, md->partition_statistics, err);
}

KnCode kn_metadata_verify(const KnVerify *verify, KnVerified *ret, KnErr *err)
{
    Look look = {.verify = verify, .ret = ret, .manifests = kn_map_new()};
    KnCode rc = look_at_all(&look, err);
    kn_map_free(look.manifests);
    return rc;
}
