/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fault_io.c - a FileIO that fails once, on the call it is told to.
 *
 * Every call but close counts, in the order of arrival. A test runs its subject with n = 0 to learn
 * how many calls there are, then once for each n, and looks at what is left behind. Thread-safe:
 * the counter is atomic. The inner FileIO stays the caller's.
 */
#include <stdatomic.h>
#include <stdlib.h>

#include "storage/file_io.h"

typedef struct Fault {
    KnFileIO io;
    KnFileIO *inner;
    uint64_t fail_at;
    KnCode code;
    _Atomic uint64_t calls;
} Fault;

static Fault *self(KnFileIO *io)
{
    return (Fault *)io;
}

static KnCode report(const Fault *fault, const char *call, KnErr *err)
{
    return kn_err_set(err, fault->code, "storage call %llu (%s) was told to fail",
                      (unsigned long long)fault->fail_at, call);
}

/* Counts; *ret_lost = make the call and report its answer as lost. */
static KnCode before(Fault *fault, const char *call, bool *ret_lost, KnErr *err)
{
    bool due = atomic_fetch_add(&fault->calls, 1) + 1 == fault->fail_at;
    *ret_lost = due && fault->code == KN_E_UNKNOWN;
    return due && !*ret_lost ? report(fault, call, err) : KN_OK;
}

static KnCode after(const Fault *fault, const char *call, bool lost, KnCode rc, KnErr *err)
{
    return lost && rc == KN_OK ? report(fault, call, err) : rc;
}

static KnCode forward_stat(KnFileIO *io, KnStr location, KnFileInfo *ret, KnErr *err)
{
    Fault *fault = self(io);
    bool lost;
    KN_TRY(before(fault, "stat", &lost, err));
    KnFileInfo info = {0};
    KnCode rc = after(fault, "stat", lost, kn_io_stat(fault->inner, location, &info, err), err);
    if (rc == KN_OK)
        *ret = info;
    return rc;
}

static KnCode forward_read(KnFileIO *io, KnStr location, uint64_t offset, uint64_t len, void *out,
                           KnErr *err)
{
    Fault *fault = self(io);
    bool lost;
    KN_TRY(before(fault, "read", &lost, err));
    KnCode rc = kn_io_read(fault->inner, location, offset, len, out, err);
    return after(fault, "read", lost, rc, err);
}

static KnCode forward_write(KnFileIO *io, KnStr location, const void *bytes, size_t len,
                            KnWriteMode mode, KnErr *err)
{
    Fault *fault = self(io);
    bool lost;
    KN_TRY(before(fault, "write", &lost, err));
    KnCode rc = kn_io_write(fault->inner, location, bytes, len, mode, err);
    return after(fault, "write", lost, rc, err);
}

static KnCode forward_list(KnFileIO *io, KnStr prefix, KnListFn fn, void *arg, KnErr *err)
{
    Fault *fault = self(io);
    bool lost;
    KN_TRY(before(fault, "list", &lost, err));
    KnCode rc = kn_io_list(fault->inner, prefix, fn, arg, err);
    return after(fault, "list", lost, rc, err);
}

static KnCode forward_remove(KnFileIO *io, KnStr location, KnErr *err)
{
    Fault *fault = self(io);
    bool lost;
    KN_TRY(before(fault, "remove", &lost, err));
    return after(fault, "remove", lost, kn_io_remove(fault->inner, location, err), err);
}

static KnCode forward_engine_path(KnFileIO *io, KnArena *arena, KnStr location, const char **ret,
                                  KnErr *err)
{
    Fault *fault = self(io);
    bool lost;
    KN_TRY(before(fault, "engine_path", &lost, err));
    const char *path = NULL;
    KnCode rc = kn_io_engine_path(fault->inner, arena, location, &path, err);
    rc = after(fault, "engine_path", lost, rc, err);
    if (rc == KN_OK)
        *ret = path;
    return rc;
}

static KnCode forward_engine_target(KnFileIO *io, KnArena *arena, KnStr location, const char **ret,
                                    KnErr *err)
{
    Fault *fault = self(io);
    bool lost;
    KN_TRY(before(fault, "engine_target", &lost, err));
    const char *path = NULL;
    KnCode rc = kn_io_engine_target(fault->inner, arena, location, &path, err);
    rc = after(fault, "engine_target", lost, rc, err);
    if (rc == KN_OK)
        *ret = path;
    return rc;
}

/* Not a call to the storage: not counted. */
static KnCode forward_engine_access(KnFileIO *io, KnArena *arena, KnStr location, KnIoAccess *ret,
                                    KnErr *err)
{
    return kn_io_engine_access(self(io)->inner, arena, location, ret, err);
}

static KnCode forward_sync(KnFileIO *io, KnStr location, KnErr *err)
{
    Fault *fault = self(io);
    bool lost;
    KN_TRY(before(fault, "sync", &lost, err));
    return after(fault, "sync", lost, kn_io_sync(fault->inner, location, err), err);
}

static KnCode forward_prepare_dir(KnFileIO *io, KnStr location, KnErr *err)
{
    Fault *fault = self(io);
    bool lost;
    KN_TRY(before(fault, "prepare_dir", &lost, err));
    KnCode rc = kn_io_prepare_dir(fault->inner, location, err);
    return after(fault, "prepare_dir", lost, rc, err);
}

static void fault_close(KnFileIO *io)
{
    free(io);
}

static const KnFileIOOps fault_ops = {
    .scheme = "fault",
    .stat = forward_stat,
    .read = forward_read,
    .read_all = kn_io_plain_read_all,
    .read_ranges = kn_io_plain_read_ranges,
    .write = forward_write,
    .list = forward_list,
    .remove = forward_remove,
    .remove_batch = 1,
    .engine_path = forward_engine_path,
    .engine_target = forward_engine_target,
    .engine_access = forward_engine_access,
    .sync = forward_sync,
    .prepare_dir = forward_prepare_dir,
    .close = fault_close,
};

KnCode kn_io_fault_open(KnFileIO *inner, uint64_t fail_at, KnCode code, KnFileIO **ret, KnErr *err)
{
    if (fail_at && code == KN_OK)
        return kn_err_set(err, KN_E_INVAL, "a storage call cannot fail with 'ok'");
    Fault *fault = calloc(1, sizeof(*fault));
    if (!fault)
        abort();
    *fault = (Fault){.io = {&fault_ops}, .inner = inner, .fail_at = fail_at, .code = code};
    *ret = &fault->io;
    return KN_OK;
}

uint64_t kn_io_fault_calls(const KnFileIO *io)
{
    return atomic_load(&((const Fault *)io)->calls);
}
