/* SPDX-License-Identifier: Apache-2.0 */
/*
 * orphans.c - see orphans.h.
 *
 * Files are listed before the newest metadata is read, so that what a commit adopts meanwhile is
 * found reached. Two differences to Java: a killed write's temporary file (".<uuid>",
 * storage/local) goes though its name is hidden, and metadata of another table below the location
 * refuses all, where Java would remove that table.
 */
#include "iceberg/maintain/orphans.h"

#include <ctype.h>
#include <string.h>

#include "base/path.h"
#include "iceberg/maintain/expire.h"

typedef struct Listing {
    KnTable *tbl;
    KnArena *arena;
    const KnOrphanOptions *opts;
    KnFileSet *found;
    KnStr prefix;             /* of the folder being listed */
    const char *documents[2]; /* folders that may hold metadata documents, as plain paths */
} Listing;

/* ---- hidden names ---- */

/* "." and a UUID. */
static bool is_temporary(KnStr name)
{
    if (name.len != 37 || name.ptr[0] != '.')
        return false;
    for (size_t i = 1; i < name.len; i++) {
        bool dash = i == 9 || i == 14 || i == 19 || i == 24;
        if (dash ? name.ptr[i] != '-' : !isxdigit((unsigned char)name.ptr[i]))
            return false;
    }
    return true;
}

/* "_region=eu" of a partition field _region: Java's PartitionAwareHiddenPathFilter. */
static bool is_partition(const KnMetadata *md, KnStr name)
{
    const char *equals = memchr(name.ptr, '=', name.len);
    if (!equals)
        return false;
    KnStr field = {name.ptr, (size_t)(equals - name.ptr)};
    for (size_t s = 0; s < md->n_specs; s++)
        for (size_t f = 0; f < md->specs[s]->n_fields; f++)
            if (kn_str_eq(field, kn_str(md->specs[s]->fields[f].name)))
                return true;
    return false;
}

static bool is_hidden(const Listing *l, KnStr below)
{
    while (below.len > 0) {
        const char *slash = memchr(below.ptr, '/', below.len);
        KnStr name = {below.ptr, slash ? (size_t)(slash - below.ptr) : below.len};
        bool marked = name.len > 0 && (name.ptr[0] == '_' || name.ptr[0] == '.');
        if (marked && !is_partition(l->tbl->md, name) && (slash || !is_temporary(name)))
            return true;
        size_t len = name.len + (slash ? 1 : 0);
        below = (KnStr){below.ptr + len, below.len - len};
    }
    return false;
}

/* ---- listing ---- */

static const char *plain(KnArena *arena, KnStr location)
{
    const char *path = NULL;
    if (kn_path_local(arena, location, &path, NULL) == KN_OK)
        return path;
    while (location.len > 1 && location.ptr[location.len - 1] == '/')
        location.len--;
    return kn_arena_strndup(arena, location.ptr, location.len);
}

static KnCode check_document(const Listing *l, KnStr location, KnErr *err)
{
    if (!kn_str_ends_with(location, KN_STR_LIT(".metadata.json")) &&
        !kn_str_ends_with(location, KN_STR_LIT(".metadata.json.gz")))
        return KN_OK;
    KN_ARENA_AUTO arena = kn_arena_new(0);
    const char *folder = plain(arena, kn_path_dirname(location));
    for (size_t i = 0; i < 2; i++)
        if (l->documents[i] && !strcmp(folder, l->documents[i]))
            return KN_OK;
    return kn_err_set(err, KN_E_REFUSED,
                      "table %s: metadata of another table lies below its location: '" KN_STR_FMT
                      "'; say with --location which folder is to be looked at",
                      l->tbl->name, KN_STR_ARG(location));
}

static KnCode take_file(void *arg, const KnFileInfo *info, KnErr *err)
{
    Listing *l = arg;
    KnStr location = {info->location, strlen(info->location)};
    KnStr below = {location.ptr + l->prefix.len, location.len - l->prefix.len};
    if (l->opts->sweep.cancelled && l->opts->sweep.cancelled())
        return kn_err_set(err, KN_E_CANCELLED, "table %s: looking for orphans was cancelled",
                          l->tbl->name);
    if (is_hidden(l, below))
        return KN_OK;
    KN_TRY(check_document(l, location, err));
    if (info->modified_ms >= l->opts->older_than_ms)
        return KN_OK;
    KnFileName name = {KN_FILE_OTHER, location, (int64_t)info->size};
    return kn_file_set_add(l->found, &name, err);
}

static KnCode list_folder(Listing *l, const char *folder, KnErr *err)
{
    l->prefix = kn_str(kn_path_join(l->arena, kn_str(folder), KN_STR_LIT("")));
    KnCode rc = kn_io_list(l->tbl->io, l->prefix, take_file, l, err);
    return kn_err_wrap(err, rc, "listing");
}

static KnCode list_one(Listing *l, const char *given, KnErr *err)
{
    const char *folder = given;
    if (!*given)
        return kn_err_set(err, KN_E_INVAL, "--location is empty");
    if (given[0] != '/' && !strstr(given, ":/"))
        folder = kn_path_join(l->arena, kn_str(l->tbl->md->location), kn_str(given));
    KN_TRY(kn_table_check_removable(l->tbl, kn_str(folder), err));
    return list_folder(l, folder, err);
}

/* Folders within another one are listed with it. */
static KnCode list_all(Listing *l, KnErr *err)
{
    static const char *const keys[] = {"write.data.path", "write.metadata.path",
                                       "write.object-storage.path", "write.folder-storage.path"};
    const KnMetadata *md = l->tbl->md;
    const char *folders[5] = {md->location};
    size_t n = 1;
    for (size_t k = 0; k < sizeof(keys) / sizeof(keys[0]); k++) {
        const char *folder = kn_metadata_property(md, keys[k], NULL);
        if (folder && *folder)
            folders[n++] = folder;
    }
    for (size_t i = 0; i < n; i++) {
        const char *path = plain(l->arena, kn_str(folders[i]));
        bool covered = false;
        for (size_t k = 0; k < n; k++) {
            const char *other = plain(l->arena, kn_str(folders[k]));
            bool same = !strcmp(path, other);
            covered |= k != i && kn_path_is_within(kn_str(path), kn_str(other)) && (!same || k < i);
        }
        if (!covered)
            KN_TRY(list_folder(l, folders[i], err));
    }
    return KN_OK;
}

static KnCode list_files(KnTable *tbl, const KnOrphanOptions *opts, KnFileSet *found, KnErr *err)
{
    KN_ARENA_AUTO arena = kn_arena_new(0);
    const KnMetadata *md = tbl->md;
    const char *moved = kn_metadata_property(md, "write.metadata.path", NULL);
    const char *folder = kn_path_join(arena, kn_str(md->location), KN_STR_LIT("metadata"));
    Listing l = {.tbl = tbl, .arena = arena, .opts = opts, .found = found};
    l.documents[0] = plain(arena, kn_str(folder));
    l.documents[1] = moved ? plain(arena, kn_str(moved)) : NULL;
    return opts->location ? list_one(&l, opts->location, err) : list_all(&l, err);
}

/* ---- what is reached ---- */

static KnCode put_reached(KnTable *tbl, KnFileSet *live, KnErr *err)
{
    KnReach reach;
    kn_reach_init(&reach, tbl, tbl->md);
    KnCode rc = kn_reach_add_all(&reach, err);
    if (rc == KN_OK)
        rc = kn_reach_put_manifests(&reach, NULL, live, err);
    if (rc == KN_OK)
        rc = kn_reach_put_contents(&reach, NULL, live, err);
    kn_reach_done(&reach);
    KN_TRY(rc);
    KN_TRY(kn_reach_put_lists(tbl->md, live, err));
    KN_TRY(kn_reach_put_statistics(tbl->md, live, err));
    return kn_reach_put_metadata(tbl->md, tbl->metadata_location, true, live, err);
}

static KnCode report_mismatch(void *arg, const KnFileName *name, KnErr *err)
{
    const KnTable *tbl = arg;
    return kn_err_set(err, KN_E_REFUSED,
                      "table %s: file '" KN_STR_FMT "' is named by metadata with another scheme or "
                      "authority; say with --prefix-mismatch-mode ignore or delete what it is",
                      tbl->name, KN_STR_ARG(name->location));
}

static KnCode remove_found(KnTable *tbl, const KnOrphanOptions *opts, KnFileSet *const sets[2],
                           KnSweepResult *ret, KnErr *err)
{
    KN_TRY(list_files(tbl, opts, sets[0], err));
    KN_TRY(kn_table_refresh(tbl, err));
    KN_TRY(kn_table_check_gc(tbl, "remove orphan files of", err));
    KN_TRY(put_reached(tbl, sets[1], err));
    KnFileVisit visit = {report_mismatch, tbl};
    if (opts->mismatch == KN_MISMATCH_ERROR)
        KN_TRY(kn_file_set_mismatch(sets[0], sets[1], &visit, err));
    KnSweep sweep = {.tbl = tbl,
                     .gone = sets[0],
                     .minus = {.without = sets[1], .exact = opts->mismatch == KN_MISMATCH_DELETE},
                     .opts = opts->sweep};
    return kn_sweep(&sweep, ret, err);
}

KnCode kn_table_remove_orphans(KnTable *tbl, KnSession *ses, const KnOrphanOptions *opts,
                               KnSweepResult *ret, KnErr *err)
{
    KnFileSet *sets[2] = {NULL, NULL}; /* found, reached */
    KnSweepResult result = {0};
    KN_TRY(kn_table_check_gc(tbl, "remove orphan files of", err));
    KnCode rc = kn_file_set_open(ses, &sets[0], err);
    if (rc == KN_OK)
        rc = kn_file_set_open(ses, &sets[1], err);
    if (rc == KN_OK)
        rc = remove_found(tbl, opts, sets, &result, err);
    kn_file_set_close(sets[0]);
    kn_file_set_close(sets[1]);
    if (rc == KN_OK)
        *ret = result;
    return rc;
}
