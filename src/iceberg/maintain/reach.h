/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * reach.h - which files a table's metadata reaches, and removing those that nothing reaches.
 *
 * A data or delete file is reached by a snapshot when it is live in one of its manifests. Manifests
 * are read one at a time; only their lines (not their entries) are held in memory, once each.
 * One thread at a time.
 */
#include "iceberg/maintain/file_set.h"
#include "iceberg/manifest/manifest.h"
#include "iceberg/table.h"

struct KnMap;

/* The manifests of some snapshots, each once. */
typedef struct KnReach {
    const KnTable *tbl;
    const KnMetadata *md; /* whose snapshots they are: its specs decode the manifests */
    bool tolerant;        /* what cannot be found or read is passed over and counted */
    int64_t unreadable;
    KnArena *arena;
    struct KnMap *manifests; /* path -> KnManifestFile, in order of first sight */
} KnReach;

/** tbl and md are borrowed. */
void kn_reach_init(KnReach *reach, const KnTable *tbl, const KnMetadata *md);
void kn_reach_done(KnReach *reach); /* accepts a zeroed one */
/** Reads a snapshot's manifest list. */
KN_NODISCARD KnCode kn_reach_add_snapshot(KnReach *reach, const KnSnapshot *snap, KnErr *err);
/** Every snapshot of md. */
KN_NODISCARD KnCode kn_reach_add_all(KnReach *reach, KnErr *err);
/** Names of manifests, except those that `except` (may be NULL) has too. */
KN_NODISCARD KnCode kn_reach_put_manifests(KnReach *reach, const KnReach *except, KnFileSet *set,
                                           KnErr *err);
/** Names of the live files in these manifests, except of those that `except` has too. */
KN_NODISCARD KnCode kn_reach_put_contents(KnReach *reach, const KnReach *except, KnFileSet *set,
                                          KnErr *err);
/* Names that the metadata document itself has. */
KN_NODISCARD KnCode kn_reach_put_lists(const KnMetadata *md, KnFileSet *set, KnErr *err);
KN_NODISCARD KnCode kn_reach_put_statistics(const KnMetadata *md, KnFileSet *set, KnErr *err);
/** The metadata log, the document at location, and with hint the file `version-hint.text`. */
KN_NODISCARD KnCode kn_reach_put_metadata(const KnMetadata *md, const char *location, bool hint,
                                          KnFileSet *set, KnErr *err);

/* ---- removing ---- */
typedef struct KnSweepOptions {
    bool dry_run;    /* nothing is removed */
    KnFileNameFn fn; /* told of each file that goes; or NULL */
    void *arg;
    bool (*cancelled)(void); /* or NULL; asked before each file */
} KnSweepOptions;
typedef struct KnSweepResult {
    int64_t files[KN_N_FILE_KINDS]; /* removed, or that would be */
    int64_t bytes;                  /* of them */
    int64_t foreign;                /* outside the table's folders: left */
    int64_t failed;                 /* could not be removed: left */
    KnErr first;                    /* why the first of those was left */
} KnSweepResult;
typedef struct KnSweep {
    KnTable *tbl;
    KnFileSet *gone;
    KnFileMinus minus; /* what stays */
    KnSweepOptions opts;
} KnSweep;
/** Removes the files of sweep->gone that do not stay. A file that cannot be removed does not end
 * it. *ret is added to, also on failure. */
KN_NODISCARD KnCode kn_sweep(const KnSweep *sweep, KnSweepResult *ret, KnErr *err);
