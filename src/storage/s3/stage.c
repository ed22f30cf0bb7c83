/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stage.c - files that the engine writes: local first, objects after.
 *
 * The engine writes Parquet below a folder of our own under TMPDIR, as <bucket>/<key>; there the
 * files are finished (engine/parquet_finish.h patches footers) and measured. kn_io_sync() uploads
 * such a file, in parts where it is large, and removes it: so an object is whole from the moment it
 * is visible, and what is uploaded is what was measured. The folder goes when the FileIO is closed;
 * what a killed process leaves there is nobody's but the system's to clean.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fault.h"
#include "base/path.h"
#include "storage/s3/s3_internal.h"

struct KnS3Stage {
    pthread_mutex_t mutex;
    char *dir; /* NULL = not made yet */
};

KnS3Stage *kn_s3_stage_new(void)
{
    KnS3Stage *stage = calloc(1, sizeof(*stage));
    if (!stage || pthread_mutex_init(&stage->mutex, NULL) != 0)
        abort();
    return stage;
}

static int remove_entry(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
    (void)st, (void)flag, (void)ftw;
    (void)remove(path);
    return 0;
}

KnS3Stage *kn_s3_stage_free(KnS3Stage *stage)
{
    if (!stage)
        return NULL;
    if (stage->dir)
        (void)nftw(stage->dir, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
    free(stage->dir);
    (void)pthread_mutex_destroy(&stage->mutex);
    free(stage);
    return NULL;
}

static KnCode make_root(KnS3Stage *stage, KnErr *err)
{
    const char *tmp = getenv("TMPDIR");
    char *dir = NULL;
    if (asprintf(&dir, "%s/knut-upload-XXXXXX", tmp && *tmp ? tmp : "/tmp") < 0)
        abort();
    if (!mkdtemp(dir)) {
        KnCode rc = kn_err_set(err, KN_E_IO,
                               "cannot make a folder for files to upload, '%.200s': %s: set TMPDIR "
                               "to a folder with room",
                               dir, kn_errno_text(errno));
        free(dir);
        return rc;
    }
    stage->dir = dir;
    return KN_OK;
}

static KnCode root_of(KnS3Stage *stage, const char **ret, KnErr *err)
{
    (void)pthread_mutex_lock(&stage->mutex);
    KnCode rc = stage->dir ? KN_OK : make_root(stage, err);
    *ret = stage->dir;
    (void)pthread_mutex_unlock(&stage->mutex);
    return rc;
}

/* A key is a path below the folder only when it has no dots and no doubled slashes in it. */
static KnCode staged_path(KnS3 *s3, KnArena *arena, const KnS3Place *place, const char **ret,
                          KnErr *err)
{
    const char *root = NULL;
    KN_TRY(root_of(s3->stage, &root, err));
    const char *path = kn_arena_printf(arena, "%s/%.*s/%.*s", root, (int)place->bucket.len,
                                       place->bucket.ptr, (int)place->key.len, place->key.ptr);
    KnStr text = kn_str(path);
    while (text.len && text.ptr[text.len - 1] == '/')
        --text.len;
    path = kn_arena_strndup(arena, text.ptr, text.len);
    const char *normal = NULL;
    KN_TRY(kn_path_local(arena, kn_str(path), &normal, err));
    if (strcmp(normal, path) != 0)
        return kn_err_set(err, KN_E_UNSUPPORTED,
                          "'" KN_STR_FMT "': data files are not written to a key with '.', '..' or "
                          "an empty part in it",
                          KN_STR_ARG(place->location));
    *ret = path;
    return KN_OK;
}

KnCode kn_s3_engine_target(KnFileIO *io, KnArena *arena, KnStr location, const char **ret,
                           KnErr *err)
{
    KnS3 *s3 = (KnS3 *)io;
    KnS3Place place;
    KN_TRY(kn_s3_place(s3, location, &place, err));
    return staged_path(s3, arena, &place, ret, err);
}

static KnCode make_dirs(char *path, KnErr *err)
{
    for (char *slash = strchr(path + 1, '/');; slash = strchr(slash + 1, '/')) {
        if (slash)
            *slash = '\0';
        if (mkdir(path, 0700) != 0 && errno != EEXIST)
            return kn_err_set(err, KN_E_IO, "cannot make folder '%.300s': %s", path,
                              kn_errno_text(errno));
        if (!slash)
            return KN_OK;
        *slash = '/';
    }
}

KnCode kn_s3_prepare_dir(KnFileIO *io, KnStr location, KnErr *err)
{
    KnS3 *s3 = (KnS3 *)io;
    KN_ARENA_AUTO arena = kn_arena_new(0);
    KnS3Place place;
    const char *path = NULL;
    KN_TRY(kn_s3_place(s3, location, &place, err));
    KN_TRY(staged_path(s3, arena, &place, &path, err));
    return make_dirs(kn_arena_strdup(arena, path), err);
}

/* ---- uploading -------------------------------------------------------------------------- */

static KnCode upload_fd(KnS3 *s3, const KnS3Place *place, int fd, KnErr *err)
{
    struct stat st;
    if (fstat(fd, &st) != 0)
        return kn_err_set(err, KN_E_IO, "staged file: %s", kn_errno_text(errno));
    if (st.st_size == 0)
        return kn_s3_upload(s3, place, (KnStr){"", 0}, KN_IO_CREATE, err);
    size_t len = (size_t)st.st_size;
    void *bytes = mmap(NULL, len, PROT_READ, MAP_PRIVATE, fd, 0);
    if (bytes == MAP_FAILED)
        return kn_err_set(err, KN_E_IO, "staged file: %s", kn_errno_text(errno));
    KnCode rc = kn_s3_upload(s3, place, (KnStr){bytes, len}, KN_IO_CREATE, err);
    (void)munmap(bytes, len);
    return rc;
}

static KnCode upload_file(KnS3 *s3, const KnS3Place *place, const char *path, KnErr *err)
{
    KN_FAULT("io-upload-before", err);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return kn_err_set(err, errno == ENOENT ? KN_E_NOTFOUND : KN_E_IO,
                          "cannot upload '%.200s' as '" KN_STR_FMT "': %s", path,
                          KN_STR_ARG(place->location), kn_errno_text(errno));
    KnCode rc = upload_fd(s3, place, fd, err);
    (void)close(fd);
    if (rc == KN_OK)
        (void)unlink(path);
    return rc;
}

static bool is_dir(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* A location that was never staged was written by write(): durable since. */
KnCode kn_s3_sync(KnFileIO *io, KnStr location, KnErr *err)
{
    KnS3 *s3 = (KnS3 *)io;
    KN_ARENA_AUTO arena = kn_arena_new(0);
    KnS3Place place;
    const char *path = "";
    KN_TRY(kn_s3_place(s3, location, &place, err));
    KN_TRY(staged_path(s3, arena, &place, &path, err));
    if (access(path, F_OK) != 0)
        return KN_OK;
    if (!is_dir(path))
        return upload_file(s3, &place, path, err);
    DIR *dir = opendir(path);
    if (!dir)
        return kn_err_set(err, KN_E_IO, "cannot read folder '%.300s': %s", path,
                          kn_errno_text(errno));
    KnCode rc = KN_OK;
    for (const struct dirent *entry; rc == KN_OK && (entry = readdir(dir));)
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            rc = kn_s3_sync(io, kn_str(kn_path_join(arena, location, kn_str(entry->d_name))), err);
    (void)closedir(dir);
    return rc;
}

void kn_s3_stage_drop(KnS3Stage *stage, const KnS3Place *place)
{
    (void)pthread_mutex_lock(&stage->mutex);
    KN_ARENA_AUTO arena = kn_arena_new(0);
    if (stage->dir)
        (void)unlink(kn_arena_printf(arena, "%s/%.*s/%.*s", stage->dir, (int)place->bucket.len,
                                     place->bucket.ptr, (int)place->key.len, place->key.ptr));
    (void)pthread_mutex_unlock(&stage->mutex);
}
