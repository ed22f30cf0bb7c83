/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * verify.h - is everything there that a table's metadata names, and can it be read?
 *
 * Manifest lists and manifests are read to their ends; data files, delete files and statistics are
 * looked for, with their sizes, when asked. What is missing or damaged is a finding, and the look
 * goes on; a store that cannot be reached ends it. One thread at a time.
 */
#include "iceberg/metadata/metadata.h"
#include "storage/file_io.h"

typedef struct KnFinding {
    const char *kind; /* "metadata", "manifest-list", "manifest", "data", "delete", "statistics" */
    const char *location;
    const char *problem; /* one line */
} KnFinding;
typedef KnCode (*KnFindingFn)(void *arg, const KnFinding *finding, KnErr *err);

typedef struct KnVerify {
    KnFileIO *io;
    const KnMetadata *md;
    bool current_only; /* snapshots of refs; else all */
    bool files;        /* data files, delete files and statistics too */
    KnFindingFn fn;
    void *arg;
    bool (*cancelled)(void); /* or NULL; asked before each manifest: KN_E_CANCELLED */
} KnVerify;

typedef struct KnVerified {
    int64_t snapshots, manifests, files; /* looked at */
    int64_t findings;
} KnVerified;

/** *ret is added to, also on failure. */
KN_NODISCARD KnCode kn_metadata_verify(const KnVerify *verify, KnVerified *ret, KnErr *err);
/** True for what a finding is made of: the file is missing, or it is not what it should be. */
bool kn_verify_is_damage(KnCode code);
