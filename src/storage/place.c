/* SPDX-License-Identifier: Apache-2.0 */
/*
 * place.c - see place.h. A folder cannot be renamed onto one that holds files, so two folders
 * change names with one another, which Linux does in one step.
 */
#include "storage/place.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/path.h"

enum { OPEN_FOLDERS = 32 };

static KnCode failed(KnErr *err, const char *what, const char *path)
{
    return kn_err_set(err, KN_E_IO, "%s '%.300s': %s", what, path, kn_errno_text(errno));
}

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *at)
{
    (void)st;
    (void)kind;
    (void)at;
    return remove(path);
}

KnCode kn_place_remove(const char *path, KnErr *err)
{
    struct stat st;
    if (lstat(path, &st) != 0 && errno == ENOENT)
        return KN_OK;
    if (nftw(path, remove_one, OPEN_FOLDERS, FTW_DEPTH | FTW_PHYS) != 0)
        return failed(err, "remove", path);
    return KN_OK;
}

/* nftw() has no argument for its function. */
static _Thread_local struct {
    KnArena *arena;
    size_t from_len;
    const char *to;
} linking;

static int link_one(const char *path, const struct stat *st, int kind, struct FTW *at)
{
    (void)st;
    const char *to = kn_arena_printf(linking.arena, "%s%s", linking.to, path + linking.from_len);
    if (kind == FTW_D)
        return mkdir(to, 0777) != 0 && errno != EEXIST ? -1 : 0;
    /* A mark of an epoch that the new folder has already is the newer one. */
    bool mark = strncmp(path + at->base, "_epoch_", 7) == 0;
    return link(path, to) != 0 && !(mark && errno == EEXIST) ? -1 : 0;
}

KnCode kn_place_link_tree(const char *from, const char *to, KnErr *err)
{
    KN_ARENA_AUTO arena = kn_arena_new(0);
    linking.arena = arena;
    linking.from_len = strlen(from);
    linking.to = to;
    if (nftw(from, link_one, OPEN_FOLDERS, FTW_PHYS) != 0)
        return failed(err, "give second names to the files of", from);
    return KN_OK;
}

static KnCode sync_folder_of(const char *path, KnErr *err)
{
    KN_ARENA_AUTO arena = kn_arena_new(0);
    KnStr dir = kn_path_dirname(kn_str(path));
    int fd = open(kn_arena_strndup(arena, dir.ptr, dir.len), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return failed(err, "make durable the name", path);
    int failure = fsync(fd) != 0 ? errno : 0;
    (void)close(fd);
    errno = failure;
    return failure ? failed(err, "make durable the name", path) : KN_OK;
}

KnCode kn_place_swap(const char *from, const char *to, KnErr *err)
{
    struct stat st;
    bool folder = lstat(to, &st) == 0 && S_ISDIR(st.st_mode);
    int done = folder ? renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_EXCHANGE) : rename(from, to);
    if (done != 0 && folder && (errno == EINVAL || errno == ENOSYS))
        return kn_err_set(err, KN_E_UNSUPPORTED,
                          "%s: this file system cannot exchange folders in one step", to);
    if (done != 0)
        return failed(err, "put into its place", to);
    return sync_folder_of(to, err);
}
