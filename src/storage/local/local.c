/* SPDX-License-Identifier: Apache-2.0 */
/*
 * local.c - the scheme `file`: FileIO on the local file system.
 *
 * The object has no state, so any number of threads may use it. Every call turns its location into
 * an absolute path first; symbolic links on the way are followed by the kernel as usual. Folders
 * are not objects: they are never seen by stat, read or remove.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/path.h"
#include "storage/local/local_internal.h"

static KnCode error_io(KnErr *err, int sys_errno, const char *verb, const char *path,
                       const char *advice)
{
    errno = sys_errno;
    KnCode rc = kn_err_set(err, KN_E_IO, "cannot %s '%.300s': %s%s%s", verb, path,
                           kn_errno_text(sys_errno), advice[0] ? ": " : "", advice);
    if (err)
        err->retriable =
            sys_errno != EACCES && sys_errno != EPERM && sys_errno != EROFS && sys_errno != EFBIG;
    return rc;
}

KnCode kn_local_error(KnErr *err, int sys_errno, const char *verb, const char *path)
{
    switch (sys_errno) {
    case ENOENT:
        return kn_err_set(err, KN_E_NOTFOUND, "cannot %s '%.300s': it does not exist", verb, path);
    case ENOTDIR:
        return kn_err_set(err, KN_E_NOTFOUND,
                          "cannot %s '%.300s': a part of this path is a file, not a folder", verb,
                          path);
    case EEXIST:
        return kn_err_set(err, KN_E_EXISTS, "cannot %s '%.300s': it exists already", verb, path);
    case EISDIR:
        return kn_err_set(err, KN_E_INVAL, "cannot %s '%.300s': it is a folder, not a file", verb,
                          path);
    case ENAMETOOLONG:
    case ELOOP:
        return kn_err_set(err, KN_E_INVAL, "cannot %s '%.300s': %s", verb, path,
                          kn_errno_text(sys_errno));
    case ENOSPC:
        return error_io(err, sys_errno, verb, path, "free space on that disk, then try again");
    case EDQUOT:
        return error_io(err, sys_errno, verb, path,
                        "free space or have the quota raised, then try again");
    case EROFS:
        return error_io(err, sys_errno, verb, path,
                        "mount it writable, or choose another location");
    case EACCES:
    case EPERM:
        return error_io(err, sys_errno, verb, path,
                        "give this user the permission (make it readable or writable)");
    case EMFILE:
    case ENFILE:
        return error_io(err, sys_errno, verb, path, "raise the limit of open files (ulimit -n)");
    default:
        return error_io(err, sys_errno, verb, path, "");
    }
}

const char *kn_local_parent(KnArena *arena, const char *path)
{
    KnStr dir = kn_path_dirname(kn_str(path));
    return kn_arena_strndup(arena, dir.ptr, dir.len);
}

/* stat(2) of a regular file; anything else is "not found" as an object. */
static KnCode file_stat(const char *path, const char *verb, struct stat *ret, KnErr *err)
{
    if (stat(path, ret) != 0)
        return kn_local_error(err, errno, verb, path);
    if (!S_ISREG(ret->st_mode))
        return kn_err_set(err, KN_E_NOTFOUND, "cannot %s '%.300s': it is %s, not a file", verb,
                          path, S_ISDIR(ret->st_mode) ? "a folder" : "a device or pipe");
    return KN_OK;
}

static KnCode local_stat(KnFileIO *io, KnStr location, KnFileInfo *ret, KnErr *err)
{
    (void)io;
    KN_ARENA_AUTO arena = kn_arena_new(0);
    const char *path = NULL;
    struct stat st;
    KN_TRY(kn_path_local(arena, location, &path, err));
    KN_TRY(file_stat(path, "read", &st, err));
    *ret = (KnFileInfo){
        .size = (uint64_t)st.st_size,
        .modified_ms = (int64_t)st.st_mtim.tv_sec * 1000 + st.st_mtim.tv_nsec / 1000000,
    };
    return KN_OK;
}

static KnCode read_range(int fd, const char *path, uint64_t offset, uint64_t len, char *out,
                         KnErr *err)
{
    for (uint64_t done = 0; done < len;) {
        ssize_t n = pread(fd, out + done, len - done, (off_t)(offset + done));
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return kn_local_error(err, errno, "read", path);
        if (n == 0)
            return kn_err_set(err, KN_E_CORRUPT,
                              "'%.300s' is truncated: it ends at byte %llu, and %llu bytes at "
                              "offset %llu are wanted",
                              path, (unsigned long long)(offset + done), (unsigned long long)len,
                              (unsigned long long)offset);
        done += (uint64_t)n;
    }
    return KN_OK;
}

static KnCode local_read(KnFileIO *io, KnStr location, uint64_t offset, uint64_t len, void *out,
                         KnErr *err)
{
    (void)io;
    KN_ARENA_AUTO arena = kn_arena_new(0);
    const char *path = NULL;
    KN_TRY(kn_path_local(arena, location, &path, err));
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return kn_local_error(err, errno, "read", path);
    KnCode rc = read_range(fd, path, offset, len, out, err);
    (void)close(fd);
    return rc;
}

static KnCode local_write(KnFileIO *io, KnStr location, const void *bytes, size_t len,
                          KnWriteMode mode, KnErr *err)
{
    (void)io;
    KN_ARENA_AUTO arena = kn_arena_new(0);
    const char *path = NULL;
    KN_TRY(kn_path_local(arena, location, &path, err));
    return kn_local_write(path, bytes, len, mode, err);
}

static KnCode local_list(KnFileIO *io, KnStr prefix, KnListFn fn, void *arg, KnErr *err)
{
    (void)io;
    KN_ARENA_AUTO arena = kn_arena_new(0);
    const char *path = NULL;
    KN_TRY(kn_path_local(arena, prefix, &path, err));
    KnLocalWalk walk = {.prefix = prefix, .fn = fn, .arg = arg};
    return kn_local_walk(&walk, path, err);
}

static KnCode local_remove(KnFileIO *io, KnStr location, KnErr *err)
{
    (void)io;
    KN_ARENA_AUTO arena = kn_arena_new(0);
    const char *path = NULL;
    KN_TRY(kn_path_local(arena, location, &path, err));
    if (unlink(path) != 0 && errno != ENOENT && errno != ENOTDIR)
        return kn_local_error(err, errno, "remove", path);
    return KN_OK;
}

static KnCode local_engine_path(KnFileIO *io, KnArena *arena, KnStr location, const char **ret,
                                KnErr *err)
{
    (void)io;
    return kn_path_local(arena, location, ret, err);
}

static KnCode local_sync(KnFileIO *io, KnStr location, KnErr *err)
{
    (void)io;
    KN_ARENA_AUTO arena = kn_arena_new(0);
    const char *path = NULL;
    KN_TRY(kn_path_local(arena, location, &path, err));
    return kn_local_sync(path, err);
}

static KnCode local_prepare_dir(KnFileIO *io, KnStr location, KnErr *err)
{
    (void)io;
    KN_ARENA_AUTO arena = kn_arena_new(0);
    const char *path = NULL;
    KN_TRY(kn_path_local(arena, location, &path, err));
    KN_TRY(kn_local_make_dirs(path, err));
    if (access(path, W_OK | X_OK) != 0)
        return kn_local_error(err, errno, "write into folder", path);
    return KN_OK;
}

static void local_close(KnFileIO *io)
{
    free(io);
}

static const KnFileIOOps local_ops = {
    .scheme = "file",
    .stat = local_stat,
    .read = local_read,
    .read_all = kn_io_plain_read_all,
    .read_ranges = kn_io_plain_read_ranges,
    .write = local_write,
    .list = local_list,
    .remove = local_remove,
    .remove_batch = 1,
    .engine_path = local_engine_path,
    .engine_target = kn_io_plain_engine_target,
    .engine_access = kn_io_plain_engine_access,
    .sync = local_sync,
    .prepare_dir = local_prepare_dir,
    .close = local_close,
};

KnCode kn_io_local_open(KnFileIO **ret, KnErr *err)
{
    (void)err;
    KnFileIO *io = calloc(1, sizeof(*io));
    if (!io)
        abort();
    io->ops = &local_ops;
    *ret = io;
    return KN_OK;
}
