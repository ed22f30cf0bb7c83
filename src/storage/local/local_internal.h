/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* local_internal.h - what the files of the local scheme share. Paths are absolute and normal. */
#include "storage/file_io.h"

/** The failure of a system call: the code that errno means, and a line with verb ("read"), path,
 * reason and what to do. KN_E_IO that will not pass by itself is marked as not retriable. */
KnCode kn_local_error(KnErr *err, int sys_errno, const char *verb, const char *path);

KN_NODISCARD KnCode kn_local_write(const char *path, const void *bytes, size_t len,
                                   KnWriteMode mode, KnErr *err);
/** Makes the missing folders down to path and makes each of them durable. */
KN_NODISCARD KnCode kn_local_make_dirs(const char *path, KnErr *err);
/** fsync of a file or folder; file systems that cannot sync a folder are taken as they are. */
KN_NODISCARD KnCode kn_local_fsync(const char *path, KnErr *err);
KN_NODISCARD KnCode kn_local_sync(const char *path, KnErr *err);

/** The fsync of a folder beside what the caller does between begin and end, which must both be
 * called; end has the verdict. */
typedef struct KnLocalBeside {
    const char *folder;
    bool taken, done; /* by the helper; ours alone otherwise */
    KnCode code;
    KnErr err;
} KnLocalBeside;
void kn_local_beside_begin(KnLocalBeside *task);
KN_NODISCARD KnCode kn_local_beside_end(KnLocalBeside *task, KnErr *err);

/** Calls fn for every file below the folder (info->location = prefix + "/" + relative path) in byte
 * order of locations; visit_dir, which may be NULL, for every folder after its content. */
typedef struct KnLocalWalk {
    KnStr prefix;
    KnListFn fn;
    void *arg;
    KnCode (*visit_dir)(const char *path, KnErr *err);
} KnLocalWalk;
KN_NODISCARD KnCode kn_local_walk(const KnLocalWalk *walk, const char *path, KnErr *err);

/** The folder of a path, in arena ("/" for "/x"). */
const char *kn_local_parent(KnArena *arena, const char *path);
