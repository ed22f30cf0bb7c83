/* SPDX-License-Identifier: Apache-2.0 */
/*
 * local_list.c - walking a folder in byte order of whole locations.
 *
 * One folder's entries are held at a time per level, sorted as if folders were called `name/`: then
 * depth-first order is the order an object store would give ("a-b" before "a/b"). Symbolic links to
 * files count as files; links to folders are not entered, so that a walk neither leaves the tree
 * nor runs in circles. What vanishes while we look is passed over.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/path.h"
#include "base/vec.h"
#include "storage/local/local_internal.h"

enum { MAX_DEPTH = 100 };

typedef struct Entry {
    const char *sort; /* the name, with a '/' behind when it is a folder */
    const char *name;
    bool is_dir;
    uint64_t size;
    int64_t modified_ms;
} Entry;

typedef KN_VEC(Entry) Entries;

static int by_sort(const void *a, const void *b)
{
    return strcmp(((const Entry *)a)->sort, ((const Entry *)b)->sort);
}

/* False when it is gone, or neither a file nor a folder of this tree. */
static bool entry_look(KnArena *arena, int dir_fd, const char *name, Entry *ret)
{
    struct stat st;
    if (fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) != 0)
        return false;
    bool is_dir = S_ISDIR(st.st_mode);
    if (S_ISLNK(st.st_mode) && fstatat(dir_fd, name, &st, 0) != 0)
        return false;
    if (!is_dir && !S_ISREG(st.st_mode))
        return false;
    *ret = (Entry){
        .sort = kn_arena_printf(arena, "%s%s", name, is_dir ? "/" : ""),
        .name = kn_arena_strdup(arena, name),
        .is_dir = is_dir,
        .size = (uint64_t)st.st_size,
        .modified_ms = (int64_t)st.st_mtim.tv_sec * 1000 + st.st_mtim.tv_nsec / 1000000,
    };
    return true;
}

static KnCode entries_read(KnArena *arena, const char *path, Entries *entries, KnErr *err)
{
    DIR *dir = opendir(path);
    if (!dir && (errno == ENOENT || errno == ENOTDIR))
        return KN_OK;
    if (!dir)
        return kn_local_error(err, errno, "list", path);
    struct dirent *d;
    while ((errno = 0, d = readdir(dir)) != NULL) {
        Entry entry;
        if (strcmp(d->d_name, ".") != 0 && strcmp(d->d_name, "..") != 0 &&
            entry_look(arena, dirfd(dir), d->d_name, &entry))
            *kn_vec_push(entries) = entry;
    }
    int saved = errno;
    (void)closedir(dir);
    if (saved)
        return kn_local_error(err, saved, "list", path);
    if (entries->len)
        qsort(entries->items, entries->len, sizeof(Entry), by_sort);
    return KN_OK;
}

static KnCode walk_dir(const KnLocalWalk *walk, const char *path, KnStr prefix, int depth,
                       KnErr *err);

static KnCode walk_entry(const KnLocalWalk *walk, const char *path, KnStr prefix,
                         const Entry *entry, int depth, KnErr *err)
{
    KN_ARENA_AUTO arena = kn_arena_new(0);
    const char *location = kn_path_join(arena, prefix, kn_str(entry->name));
    if (entry->is_dir)
        return walk_dir(walk, kn_path_join(arena, kn_str(path), kn_str(entry->name)),
                        kn_str(location), depth + 1, err);
    KnFileInfo info = {location, entry->size, entry->modified_ms};
    return walk->fn(walk->arg, &info, err);
}

static KnCode walk_entries(const KnLocalWalk *walk, const char *path, KnStr prefix,
                           const Entries *entries, int depth, KnErr *err)
{
    kn_vec_foreach (entries, entry) {
        KN_TRY(walk_entry(walk, path, prefix, entry, depth, err));
    }
    return KN_OK;
}

static KnCode walk_dir(const KnLocalWalk *walk, const char *path, KnStr prefix, int depth,
                       KnErr *err)
{
    if (depth > MAX_DEPTH)
        return kn_err_set(err, KN_E_UNSUPPORTED, "cannot list '%.300s': more than %d folders deep",
                          path, MAX_DEPTH);
    KN_ARENA_AUTO arena = kn_arena_new(0);
    Entries entries = {0};
    KnCode rc = entries_read(arena, path, &entries, err);
    if (rc == KN_OK)
        rc = walk_entries(walk, path, prefix, &entries, depth, err);
    kn_vec_done(&entries);
    if (rc == KN_OK && walk->visit_dir)
        rc = walk->visit_dir(path, err);
    return rc;
}

KnCode kn_local_walk(const KnLocalWalk *walk, const char *path, KnErr *err)
{
    return walk_dir(walk, path, walk->prefix, 0, err);
}
