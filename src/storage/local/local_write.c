/* SPDX-License-Identifier: Apache-2.0 */
/*
 * local_write.c - durable, atomic writing.
 *
 * Order: folders, temporary file `.<uuid>` beside the target, bytes, fsync, publishing, fsync of
 * the folder. Publishing is rename(2) for REPLACE and renameat2(RENAME_NOREPLACE) for CREATE, or
 * link(2) where the file system lacks that; the kernel decides who wins. The temporary file goes on
 * every failure; only a killed process leaves one, and its name has no suffix that a reader looks
 * for. CREATE_OWN publishes before the fsync of the bytes: then bytes and name go to the disk
 * together (both syncs are under way at once), and a killed process still leaves all or nothing.
 *
 * After publishing, a failure is KN_E_UNKNOWN: the name is there, and whether it survives power
 * loss is not known; a blind retry of CREATE would see its own file and take it for another
 * writer's.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fault.h"
#include "base/path.h"
#include "base/random.h"
#include "storage/local/local_internal.h"

KnCode kn_local_fsync(const char *path, KnErr *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return kn_local_error(err, errno, "sync", path);
    int rc = fsync(fd), saved = errno;
    (void)close(fd);
    if (rc != 0 && saved != EINVAL) /* EINVAL: no fsync for this kind of file here */
        return kn_local_error(err, saved, "sync", path);
    return KN_OK;
}

static KnCode check_is_dir(const char *path, KnErr *err)
{
    struct stat st;
    if (stat(path, &st) != 0)
        return kn_local_error(err, errno, "make folder", path);
    if (!S_ISDIR(st.st_mode))
        return kn_err_set(err, KN_E_INVAL,
                          "cannot make folder '%.300s': a file of that name is in the way", path);
    return KN_OK;
}

/* Another process may make the same folder at the same time: EEXIST is as good as made. Its parent
 * is then synced too, because the other one may not have come to that yet. */
static KnCode make_one(KnArena *arena, const char *path, KnErr *err)
{
    if (mkdir(path, 0777) != 0) {
        if (errno != EEXIST)
            return kn_local_error(err, errno, "make folder", path);
        KN_TRY(check_is_dir(path, err));
    }
    return kn_local_fsync(kn_local_parent(arena, path), err);
}

KnCode kn_local_make_dirs(const char *path, KnErr *err)
{
    KN_ARENA_AUTO arena = kn_arena_new(0);
    char *part = kn_arena_strdup(arena, path);
    size_t len = strlen(part), have = len;
    struct stat st;
    while (have > 1 && stat(part, &st) != 0) { /* cut off what is missing */
        if (errno != ENOENT)
            return kn_local_error(err, errno, "make folder", path);
        while (part[--have] != '/')
            ;
        have += have == 0;
        memcpy(part, path, have);
        part[have] = '\0';
    }
    KN_TRY(check_is_dir(part, err));
    while (have < len) { /* and make it again, one by one */
        size_t next = have + 1;
        while (next < len && path[next] != '/')
            ++next;
        memcpy(part, path, next);
        part[next] = '\0';
        have = next;
        KN_TRY(make_one(arena, part, err));
    }
    return KN_OK;
}

/* What is on its way to become the object. */
typedef struct Draft {
    const char *path, *temp, *dir;
    const char *name; /* what the file is called now; NULL = it is not there */
    int fd;           /* -1 = closed */
} Draft;

static KnCode write_bytes(const Draft *draft, const char *bytes, size_t len, KnErr *err)
{
    while (len) {
        ssize_t n = write(draft->fd, bytes, len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return kn_local_error(err, errno, "write", draft->path);
        bytes += n;
        len -= (size_t)n;
    }
    return KN_OK;
}

static KnCode sync_bytes(Draft *draft, KnErr *err)
{
    if (fsync(draft->fd) != 0)
        return kn_local_error(err, errno, "write", draft->path);
    int rc = close(draft->fd);
    draft->fd = -1;
    return rc == 0 ? KN_OK : kn_local_error(err, errno, "write", draft->path); /* NFS: disk full */
}

static int publish_new(const char *temp, const char *path)
{
    if (renameat2(AT_FDCWD, temp, AT_FDCWD, path, RENAME_NOREPLACE) == 0)
        return 0;
    if (errno != EINVAL && errno != ENOSYS)
        return -1;
    if (link(temp, path) != 0)
        return -1;
    (void)unlink(temp); /* a second name of the same file: untidy at worst */
    return 0;
}

static KnCode publish(Draft *draft, KnWriteMode mode, KnErr *err)
{
    KN_FAULT("io-write-after-temp", err);
    bool create = mode != KN_IO_REPLACE;
    int rc = create ? publish_new(draft->temp, draft->path) : rename(draft->temp, draft->path);
    if (rc != 0)
        return kn_local_error(err, errno, create ? "create" : "replace", draft->path);
    draft->name = draft->path;
    return KN_OK;
}

/* Bytes and folder at once; *ret_why says why the folder may not be durable. */
static KnCode sync_both(Draft *draft, KnErr *ret_why, KnErr *err)
{
    KnLocalBeside folder = {.folder = draft->dir};
    kn_local_beside_begin(&folder);
    KnCode rc = sync_bytes(draft, err);
    KN_IGNORE(kn_local_beside_end(&folder, ret_why));
    return rc;
}

/* On failure no name of ours is left; *ret_why as above. */
static KnCode make(Draft *draft, KnStr bytes, KnWriteMode mode, KnErr *ret_why, KnErr *err)
{
    draft->fd = open(draft->temp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (draft->fd < 0)
        return kn_local_error(err, errno, "write", draft->path);
    draft->name = draft->temp;
    KN_TRY(write_bytes(draft, bytes.ptr, bytes.len, err));
    if (mode != KN_IO_CREATE_OWN)
        KN_TRY(sync_bytes(draft, err));
    KN_TRY(publish(draft, mode, err));
    if (draft->fd >= 0)
        return sync_both(draft, ret_why, err);
    KN_IGNORE(kn_local_fsync(draft->dir, ret_why));
    return KN_OK;
}

KnCode kn_local_write(const char *path, const void *bytes, size_t len, KnWriteMode mode, KnErr *err)
{
    char uuid[37];
    KN_FAULT("io-write-before", err);
    KN_ARENA_AUTO arena = kn_arena_new(0);
    const char *dir = kn_local_parent(arena, path);
    if (!dir[0] || strcmp(path, "/") == 0)
        return kn_local_error(err, EISDIR, "write", path);
    KN_TRY(kn_local_make_dirs(dir, err));
    const char *name = kn_arena_printf(arena, ".%s", kn_random_uuid4(uuid));
    Draft draft = {
        .path = path, .temp = kn_path_join(arena, kn_str(dir), kn_str(name)), .dir = dir, .fd = -1};
    KnErr why = {0};
    KnCode rc = make(&draft, (KnStr){bytes, len}, mode, &why, err);
    if (draft.fd >= 0)
        (void)close(draft.fd);
    bool left = rc != KN_OK && draft.name && unlink(draft.name) != 0;
    if (left && draft.name == path)
        return kn_err_recode(err, KN_E_UNKNOWN);
    KN_TRY(rc);
    if (!why.code)
        KN_IGNORE(kn_fault_at("io-write-after", &why));
    if (why.code)
        return kn_err_set(err, KN_E_UNKNOWN,
                          "'%.200s' is written, but may not survive power loss: %.200s", path,
                          why.msg);
    return KN_OK;
}

static KnCode sync_file(void *arg, const KnFileInfo *info, KnErr *err)
{
    (void)arg;
    return kn_local_fsync(info->location, err);
}

KnCode kn_local_sync(const char *path, KnErr *err)
{
    struct stat st;
    if (stat(path, &st) != 0)
        return kn_local_error(err, errno, "sync", path);
    if (S_ISDIR(st.st_mode)) {
        KnLocalWalk walk = {.prefix = kn_str(path), .fn = sync_file, .visit_dir = kn_local_fsync};
        KN_TRY(kn_local_walk(&walk, path, err));
    } else {
        KN_TRY(kn_local_fsync(path, err));
    }
    KN_ARENA_AUTO arena = kn_arena_new(0);
    const char *dir = kn_local_parent(arena, path);
    return kn_local_fsync(dir, err);
}
