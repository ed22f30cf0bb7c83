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
 * without a race. KN_IO_CREATE_OWN is the same for a name that nobody looks for before write() has
 * returned (it holds a UUID, and a pointer will name it): after a loss of power before that, and
 * only then, a part of the bytes may be under it; it saves the disk one of two turns. Thread-safe:
 * one KnFileIO may be used from many threads.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"

typedef struct KnFileIO KnFileIO;
typedef enum KnWriteMode { KN_IO_CREATE, KN_IO_CREATE_OWN, KN_IO_REPLACE } KnWriteMode;

typedef struct KnFileInfo {
    const char *location;
    uint64_t size;
    int64_t modified_ms;
} KnFileInfo;
typedef KnCode (*KnListFn)(void *arg, const KnFileInfo *info, KnErr *err);

/* A part of an object, and where its bytes go. */
typedef struct KnIoRange {
    uint64_t offset, len;
    void *out;
} KnIoRange;

/* What the engine needs to know to open the remote names of kn_io_engine_path(). Texts live in the
 * arena that was given. */
typedef struct KnIoAccess {
    bool remote;          /* false: names are local paths, nothing else is set */
    const char *scope;    /* names that begin with this are meant: "s3://bucket/" */
    const char *endpoint; /* host[:port] */
    const char *region;
    const char *ca_file; /* NULL = the system's */
    const char *access_key_id;
    const char *secret_access_key;
    const char *session_token; /* NULL = none */
    bool tls;
    bool path_style; /* http://host/bucket/key */
} KnIoAccess;

/* Every callback is required; kn_io_* below say what each one promises. Order of calls: any, until
 * close. */
typedef struct KnFileIOOps {
    const char *scheme;
    KnCode (*stat)(KnFileIO *io, KnStr location, KnFileInfo *ret, KnErr *err);
    KnCode (*read)(KnFileIO *io, KnStr location, uint64_t offset, uint64_t len, void *out,
                   KnErr *err);
    KnCode (*read_all)(KnFileIO *io, KnStr location, size_t max, KnBuf *out, KnErr *err);
    KnCode (*read_ranges)(KnFileIO *io, KnStr location, const KnIoRange *ranges, size_t n,
                          KnErr *err);
    KnCode (*write)(KnFileIO *io, KnStr location, const void *bytes, size_t len, KnWriteMode mode,
                    KnErr *err);
    KnCode (*list)(KnFileIO *io, KnStr prefix, KnListFn fn, void *arg, KnErr *err);
    KnCode (*remove)(KnFileIO *io, KnStr location, KnErr *err);
    size_t
        remove_batch; /* how many kn_io_remove_many() hands over at once; 1: remove() is called */
    void (*remove_many)(KnFileIO *io, const KnStr *locations, size_t n, KnErr *ret_errs);
    KnCode (*engine_path)(KnFileIO *io, KnArena *arena, KnStr location, const char **ret,
                          KnErr *err);
    KnCode (*engine_target)(KnFileIO *io, KnArena *arena, KnStr location, const char **ret,
                            KnErr *err);
    KnCode (*engine_access)(KnFileIO *io, KnArena *arena, KnStr location, KnIoAccess *ret,
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
/** Several parts of one object, each as kn_io_read() reads it. Parts that lie close together may be
 * fetched as one, others at the same time. On failure what is in the outs is not defined. */
KN_NODISCARD KnCode kn_io_read_ranges(KnFileIO *io, KnStr location, const KnIoRange *ranges,
                                      size_t n, KnErr *err);
/** Missing folders are made. KN_E_UNKNOWN: the object is there, but may not survive power loss. */
KN_NODISCARD KnCode kn_io_write(KnFileIO *io, KnStr location, const void *bytes, size_t len,
                                KnWriteMode mode, KnErr *err);
/** Every object below the folder prefix, recursively, in byte order of locations, which start with
 * prefix as it is spelled. A missing folder holds nothing. A failure of fn ends the listing with
 * it. */
KN_NODISCARD KnCode kn_io_list(KnFileIO *io, KnStr prefix, KnListFn fn, void *arg, KnErr *err);
/** A missing object is KN_OK. */
KN_NODISCARD KnCode kn_io_remove(KnFileIO *io, KnStr location, KnErr *err);
/** Removes n objects, as kn_io_remove() does, in as few requests as the scheme can. ret_errs: n of
 * them, each set (code KN_OK: it is gone). */
size_t kn_io_remove_batch(const KnFileIO *io); /* how many at once are worth gathering */
void kn_io_remove_many(KnFileIO *io, const KnStr *locations, size_t n, KnErr *ret_errs);
/** The name under which the engine opens the object for reading (a local path, an s3 URL), in
 * arena. It is the plain name: DuckDB's readers take `*`, `?` and `[` in it for a pattern, so the
 * engine escapes. */
KN_NODISCARD KnCode kn_io_engine_path(KnFileIO *io, KnArena *arena, KnStr location,
                                      const char **ret, KnErr *err);
/** Where the engine writes what is to become this object, or the objects below this folder, which
 * kn_io_prepare_dir() has seen: a local path, in arena. What it writes there is an object once
 * kn_io_sync() was called for it, and not before where the storage is elsewhere. */
KN_NODISCARD KnCode kn_io_engine_target(KnFileIO *io, KnArena *arena, KnStr location,
                                        const char **ret, KnErr *err);
/** What the engine needs to read this location. Credentials may change with time: ask again before
 * each use. */
KN_NODISCARD KnCode kn_io_engine_access(KnFileIO *io, KnArena *arena, KnStr location,
                                        KnIoAccess *ret, KnErr *err);
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

typedef struct KnS3Options KnS3Options; /* storage/s3/s3.h */
/** The implementation for a location's scheme, from the registry. s3: for locations in object
 * stores; NULL = all from the environment. Credentials are not looked for before the first use. */
KN_NODISCARD KnCode kn_io_open_with(KnStr location, const KnS3Options *s3, KnFileIO **ret,
                                    KnErr *err);
/** The same with s3 NULL. */
KN_NODISCARD KnCode kn_io_open_for(KnStr location, KnFileIO **ret, KnErr *err);
/** For implementations without a better way: read_all by stat and read, ranges one by one,
 * engine_target as engine_path, and no need of access. */
KnCode kn_io_plain_read_all(KnFileIO *io, KnStr location, size_t max, KnBuf *out, KnErr *err);
KnCode kn_io_plain_read_ranges(KnFileIO *io, KnStr location, const KnIoRange *ranges, size_t n,
                               KnErr *err);
KnCode kn_io_plain_engine_target(KnFileIO *io, KnArena *arena, KnStr location, const char **ret,
                                 KnErr *err);
KnCode kn_io_plain_engine_access(KnFileIO *io, KnArena *arena, KnStr location, KnIoAccess *ret,
                                 KnErr *err);
/** "'x': 10 bytes where at most 9 are read". */
KnCode kn_io_too_large(KnStr location, uint64_t size, size_t max, KnErr *err);
