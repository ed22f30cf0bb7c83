/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * file_io.h - FileIO: the one door to bytes that are kept (metadata, manifests, data, deletes).
 *
 * A storage scheme is a `const KnFileIOOps` with every callback set, one folder per scheme under
 * src/storage, one line in registry.c. Locations are full (`file:///…`, `/…`, `s3://…`).
 *
 * Durability: when write() or sync() returns KN_OK, the bytes and the name survive power loss (file
 * and folder are fsynced). write() is atomic: a reader sees the whole object or none; nothing
 * half-written is left under the name. KN_IO_CREATE fails with KN_E_EXISTS when the name is taken,
 * without a race. Thread-safe: one KnFileIO may be used from many threads.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"

typedef struct KnFileIO KnFileIO;
typedef enum KnWriteMode { KN_IO_CREATE, KN_IO_REPLACE } KnWriteMode;

typedef struct KnFileInfo {
    const char *location;
    uint64_t size;
    int64_t modified_ms;
} KnFileInfo;
typedef KnCode (*KnListFn)(void *arg, const KnFileInfo *info, KnErr *err);

/* Every callback is required; kn_io_* below say what each one promises. Order of calls: any, until
 * close. */
typedef struct KnFileIOOps {
    const char *scheme;
    KnCode (*stat)(KnFileIO *io, KnStr location, KnFileInfo *ret, KnErr *err);
    KnCode (*read)(KnFileIO *io, KnStr location, uint64_t offset, uint64_t len, void *out,
                   KnErr *err);
    KnCode (*write)(KnFileIO *io, KnStr location, const void *bytes, size_t len, KnWriteMode mode,
                    KnErr *err);
    KnCode (*list)(KnFileIO *io, KnStr prefix, KnListFn fn, void *arg, KnErr *err);
    KnCode (*remove)(KnFileIO *io, KnStr location, KnErr *err);
    KnCode (*engine_path)(KnFileIO *io, KnArena *arena, KnStr location, const char **ret,
                          KnErr *err);
    KnCode (*sync)(KnFileIO *io, KnStr location, KnErr *err);
    KnCode (*prepare_dir)(KnFileIO *io, KnStr location, KnErr *err);
    void (*close)(KnFileIO *io);
} KnFileIOOps;

/** First member of every implementation's struct. */
struct KnFileIO {
    const KnFileIOOps *ops;
};

/** The whole object, of at most max bytes (a larger one is KN_E_CORRUPT naming the limit). ret is
 * initialised or zeroed by the caller; what it held is replaced, and its limit becomes max. */
KN_NODISCARD KnCode kn_io_read_all(KnFileIO *io, KnStr location, size_t max, KnBuf *ret,
                                   KnErr *err);
/** Size and time; ret->location is NULL. A folder, like a missing file, is KN_E_NOTFOUND. */
KN_NODISCARD KnCode kn_io_stat(KnFileIO *io, KnStr location, KnFileInfo *ret, KnErr *err);
/** Exactly len bytes at offset; fewer there is KN_E_CORRUPT ("truncated"). */
KN_NODISCARD KnCode kn_io_read(KnFileIO *io, KnStr location, uint64_t offset, uint64_t len,
                               void *out, KnErr *err);
/** Missing folders are made. KN_E_UNKNOWN: the object is there, but may not survive power loss. */
KN_NODISCARD KnCode kn_io_write(KnFileIO *io, KnStr location, const void *bytes, size_t len,
                                KnWriteMode mode, KnErr *err);
/** Every object below the folder prefix, recursively, in byte order of locations, which start with
 * prefix as it is spelled. A missing folder holds nothing. A failure of fn ends the listing with
 * it. */
KN_NODISCARD KnCode kn_io_list(KnFileIO *io, KnStr prefix, KnListFn fn, void *arg, KnErr *err);
/** A missing object is KN_OK. */
KN_NODISCARD KnCode kn_io_remove(KnFileIO *io, KnStr location, KnErr *err);
/** The name under which the engine opens the object (a local path, an s3 URL), in arena. It is the
 * plain name: DuckDB's readers take `*`, `?` and `[` in it for a pattern, so the engine escapes. */
KN_NODISCARD KnCode kn_io_engine_path(KnFileIO *io, KnArena *arena, KnStr location,
                                      const char **ret, KnErr *err);
/** Make durable what the engine wrote: a file and its name, or a folder and all that is below. */
KN_NODISCARD KnCode kn_io_sync(KnFileIO *io, KnStr location, KnErr *err);
/** Make sure that the engine can write into this folder: make it, durably, and check permission. */
KN_NODISCARD KnCode kn_io_prepare_dir(KnFileIO *io, KnStr location, KnErr *err);
/** For writers of files that nothing names yet: one that may not survive power loss is a failure
 * like any other, KN_E_UNKNOWN becomes KN_E_IO. Other codes stay. */
KnCode kn_io_settled(KnCode code, KnErr *err);
KnFileIO *kn_io_close(KnFileIO *io); /* accepts NULL, returns NULL */

KN_NODISCARD KnCode kn_io_local_open(KnFileIO **ret, KnErr *err); /* src/storage/local */
/** src/storage/memory, for tests: any location is a key; gone at close. */
KN_NODISCARD KnCode kn_io_memory_open(KnFileIO **ret, KnErr *err);
/** src/storage/fault: forwards to inner (not owned) and fails the n-th call (from 1) of any kind
 * with code; n 0 only counts. KN_E_UNKNOWN is the lost answer: the call is made and then reported
 * as unknown; with any other code it is not made. kn_io_fault_calls() tells how many there were. */
KN_NODISCARD KnCode kn_io_fault_open(KnFileIO *inner, uint64_t fail_at, KnCode code, KnFileIO **ret,
                                     KnErr *err);
uint64_t kn_io_fault_calls(const KnFileIO *io);
/** The implementation for a location's scheme, from the registry. */
KN_NODISCARD KnCode kn_io_open_for(KnStr location, KnFileIO **ret, KnErr *err);
