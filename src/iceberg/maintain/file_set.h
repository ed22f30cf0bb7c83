/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * file_set.h - sets of file names that may be larger than memory, and their differences.
 *
 * A set is a temporary table of the session, which spills. Two names are the same file when they
 * differ only in scheme, authority and doubled slashes: files that metadata spells in two ways are
 * not taken for two, at the price of keeping one too many. One thread, the session's.
 */
#include "engine/engine.h"

/* In the order in which files are removed: what others name goes first. */
typedef enum KnFileKind {
    KN_FILE_DATA,
    KN_FILE_POSITION_DELETES,
    KN_FILE_EQUALITY_DELETES,
    KN_FILE_DELETION_VECTORS, /* a Puffin file, whose vectors may be many */
    KN_FILE_MANIFEST,
    KN_FILE_MANIFEST_LIST,
    KN_FILE_STATISTICS,
    KN_FILE_METADATA,
    KN_FILE_OTHER, /* listed, of unknown kind */
    KN_N_FILE_KINDS
} KnFileKind;
const char *kn_file_kind_name(KnFileKind kind); /* "data", "position-deletes", ... */

typedef struct KnFileName {
    KnFileKind kind;
    KnStr location;
    int64_t bytes; /* -1 = unknown */
} KnFileName;

typedef struct KnFileSet KnFileSet;
KN_NODISCARD KnCode kn_file_set_open(KnSession *ses, KnFileSet **ret, KnErr *err);
KnFileSet *kn_file_set_close(KnFileSet *set); /* accepts NULL, returns NULL */
KN_NODISCARD KnCode kn_file_set_add(KnFileSet *set, const KnFileName *name, KnErr *err);
size_t kn_file_set_count(const KnFileSet *set); /* names added, the same file more than once too */

typedef KnCode (*KnFileNameFn)(void *arg, const KnFileName *name, KnErr *err);
typedef struct KnFileVisit {
    KnFileNameFn fn; /* must not use the session */
    void *arg;
} KnFileVisit;
typedef struct KnFileMinus {
    KnFileSet *without; /* NULL = nothing is taken away */
    bool exact;         /* scheme and authority must be equal too, for a file to be taken away */
} KnFileMinus;
/** Each file of set that is not in minus->without, once, by kind and name. */
KN_NODISCARD KnCode kn_file_set_minus(KnFileSet *set, const KnFileMinus *minus,
                                      const KnFileVisit *visit, KnErr *err);
/** Each file of set that other has under another scheme or authority. */
KN_NODISCARD KnCode kn_file_set_mismatch(KnFileSet *set, KnFileSet *other, const KnFileVisit *visit,
                                         KnErr *err);
