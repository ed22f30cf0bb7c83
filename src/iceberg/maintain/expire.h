/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * expire.h - snapshots and refs that have had their time go, and the files that only they reached
 * (Java: RemoveSnapshots, ReachableFileCleanup).
 *
 * What stays: main and every ref that is not past its max-ref-age-ms; of each branch the newest
 * min-snapshots-to-keep ancestors and further ones while they are not older than
 * max-snapshot-age-ms; snapshots of no branch (staged, rolled back from) while they are not older
 * than the general age. The branch's own settings come first, then the options here, then the
 * table's history.expire.* properties.
 *
 * Order: the metadata is committed, then files are removed that no snapshot of the new metadata
 * reaches. Killed between, nothing live is lost and the files are orphans. One thread at a time.
 */
#include "iceberg/maintain/reach.h"

typedef struct KnExpireOptions {
    int64_t now_ms;        /* 0 = the clock's */
    int64_t older_than_ms; /* -1: history.expire.max-snapshot-age-ms (5 days) before now */
    int64_t retain_last;   /* 0: history.expire.min-snapshots-to-keep (1) */
    const int64_t *ids;    /* these go whatever their age; one that a ref names is KN_E_REFUSED */
    size_t n_ids;
    bool clean_metadata; /* partition specs and schemas that nothing left uses go too */
    KnSweepOptions sweep;
    KnCode (*told)(void *arg, const char *kind, const char *name, KnErr *err); /* "snapshot", "ref",
        "partition-spec", "schema" that go, before files; with sweep.arg; or NULL */
} KnExpireOptions;

typedef struct KnExpireResult {
    int64_t snapshots, refs, specs, schemas; /* that went, or would go */
    int64_t
        unreadable; /* manifest lists and manifests of expired snapshots: what they named stays */
    KnSweepResult files;
} KnExpireResult;

/** KN_E_REFUSED with gc.enabled=false. KN_E_UNKNOWN: the commit may have happened, no file was
 * touched. After the commit *ret is set also on failure. */
KN_NODISCARD KnCode kn_table_expire(KnTable *tbl, KnSession *ses, const KnExpireOptions *opts,
                                    KnExpireResult *ret, KnErr *err);

/* What has had its time, by metadata alone. */
typedef struct KnRetention {
    size_t n_gone;
    const int64_t *gone; /* snapshot ids, in the order of the metadata */
    size_t n_refs;
    const KnRef *const *refs; /* that go */
} KnRetention;
/** Memory in arena; refs borrow from md. (expire_retention.c) */
KN_NODISCARD KnCode kn_expire_retention(KnArena *arena, const KnMetadata *md,
                                        const KnExpireOptions *opts, KnRetention *ret, KnErr *err);
/** KN_E_REFUSED unless gc.enabled is true; what: "expire snapshots of". */
KN_NODISCARD KnCode kn_table_check_gc(const KnTable *tbl, const char *what, KnErr *err);
