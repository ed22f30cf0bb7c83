/* SPDX-License-Identifier: Apache-2.0 */
/*
 * file_io.c - the calls of FileIO that every layer uses, forwarded to the scheme's callbacks.
 *
 * What holds for all schemes is checked here once: ranges that cannot be, limits of whole reads.
 * The callbacks can rely on it. No state: thread-safe as far as the scheme is, and all of them are.
 */
#include "storage/file_io.h"

#include <assert.h>

KnCode kn_io_too_large(KnStr location, uint64_t size, size_t max, KnErr *err)
{
    return kn_err_set(err, KN_E_CORRUPT, "'" KN_STR_FMT "': %llu bytes where at most %zu are read",
                      KN_STR_ARG(location), (unsigned long long)size, max);
}

KnCode kn_io_plain_read_all(KnFileIO *io, KnStr location, size_t max, KnBuf *out, KnErr *err)
{
    KnFileInfo info = {0};
    KN_TRY(kn_io_stat(io, location, &info, err));
    if (info.size > max)
        return kn_io_too_large(location, info.size, max, err);
    void *room = kn_buf_reserve(out, (size_t)info.size);
    if (!room)
        return kn_err_set(err, KN_E_NOMEM, "'" KN_STR_FMT "': no memory for its %llu bytes",
                          KN_STR_ARG(location), (unsigned long long)info.size);
    KN_TRY(kn_io_read(io, location, 0, info.size, room, err));
    out->len = (size_t)info.size;
    return KN_OK;
}

KnCode kn_io_read_all(KnFileIO *io, KnStr location, size_t max, KnBuf *ret, KnErr *err)
{
    KN_BUF_AUTO buf;
    kn_buf_init(&buf, max);
    KN_TRY(io->ops->read_all(io, location, max, &buf, err));
    kn_buf_done(ret);
    *ret = buf;
    kn_buf_init(&buf, 0); /* moved */
    return KN_OK;
}

KnCode kn_io_stat(KnFileIO *io, KnStr location, KnFileInfo *ret, KnErr *err)
{
    return io->ops->stat(io, location, ret, err);
}

static KnCode check_range(KnStr location, uint64_t offset, uint64_t len, KnErr *err)
{
    uint64_t end;
    if (!__builtin_add_overflow(offset, len, &end) && end <= INT64_MAX)
        return KN_OK;
    return kn_err_set(err, KN_E_CORRUPT,
                      "'" KN_STR_FMT "': %llu bytes at offset %llu lie beyond any file",
                      KN_STR_ARG(location), (unsigned long long)len, (unsigned long long)offset);
}

KnCode kn_io_read(KnFileIO *io, KnStr location, uint64_t offset, uint64_t len, void *out,
                  KnErr *err)
{
    KN_TRY(check_range(location, offset, len, err));
    return io->ops->read(io, location, offset, len, out, err);
}

KnCode kn_io_read_ranges(KnFileIO *io, KnStr location, const KnIoRange *ranges, size_t n,
                         KnErr *err)
{
    for (size_t i = 0; i < n; ++i)
        KN_TRY(check_range(location, ranges[i].offset, ranges[i].len, err));
    return n ? io->ops->read_ranges(io, location, ranges, n, err) : KN_OK;
}

KnCode kn_io_plain_read_ranges(KnFileIO *io, KnStr location, const KnIoRange *ranges, size_t n,
                               KnErr *err)
{
    for (size_t i = 0; i < n; ++i)
        KN_TRY(kn_io_read(io, location, ranges[i].offset, ranges[i].len, ranges[i].out, err));
    return KN_OK;
}

KnCode kn_io_write(KnFileIO *io, KnStr location, const void *bytes, size_t len, KnWriteMode mode,
                   KnErr *err)
{
    return io->ops->write(io, location, bytes, len, mode, err);
}

KnCode kn_io_list(KnFileIO *io, KnStr prefix, KnListFn fn, void *arg, KnErr *err)
{
    assert(fn);
    return io->ops->list(io, prefix, fn, arg, err);
}

KnCode kn_io_remove(KnFileIO *io, KnStr location, KnErr *err)
{
    return io->ops->remove(io, location, err);
}

size_t kn_io_remove_batch(const KnFileIO *io)
{
    return io->ops->remove_batch;
}

void kn_io_remove_many(KnFileIO *io, const KnStr *locations, size_t n, KnErr *ret_errs)
{
    size_t batch = io->ops->remove_batch;
    assert(batch > 0);
    for (size_t i = 0; i < n; i += batch) {
        ret_errs[i] = (KnErr){0};
        if (batch == 1)
            KN_IGNORE(kn_io_remove(io, locations[i], &ret_errs[i])); /* its code is there */
        else
            io->ops->remove_many(io, locations + i, n - i < batch ? n - i : batch, ret_errs + i);
    }
}

KnCode kn_io_engine_path(KnFileIO *io, KnArena *arena, KnStr location, const char **ret, KnErr *err)
{
    return io->ops->engine_path(io, arena, location, ret, err);
}

KnCode kn_io_engine_target(KnFileIO *io, KnArena *arena, KnStr location, const char **ret,
                           KnErr *err)
{
    return io->ops->engine_target(io, arena, location, ret, err);
}

KnCode kn_io_plain_engine_target(KnFileIO *io, KnArena *arena, KnStr location, const char **ret,
                                 KnErr *err)
{
    return kn_io_engine_path(io, arena, location, ret, err);
}

KnCode kn_io_engine_access(KnFileIO *io, KnArena *arena, KnStr location, KnIoAccess *ret,
                           KnErr *err)
{
    return io->ops->engine_access(io, arena, location, ret, err);
}

KnCode kn_io_plain_engine_access(KnFileIO *io, KnArena *arena, KnStr location, KnIoAccess *ret,
                                 KnErr *err)
{
    (void)io, (void)arena, (void)location, (void)err;
    *ret = (KnIoAccess){.remote = false};
    return KN_OK;
}

KnCode kn_io_sync(KnFileIO *io, KnStr location, KnErr *err)
{
    return io->ops->sync(io, location, err);
}

KnCode kn_io_prepare_dir(KnFileIO *io, KnStr location, KnErr *err)
{
    return io->ops->prepare_dir(io, location, err);
}

KnCode kn_io_settled(KnCode code, KnErr *err)
{
    return code == KN_E_UNKNOWN ? kn_err_recode(err, KN_E_IO) : code;
}

KnFileIO *kn_io_close(KnFileIO *io)
{
    if (io)
        io->ops->close(io);
    return NULL;
}
