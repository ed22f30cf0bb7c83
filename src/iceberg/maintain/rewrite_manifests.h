/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * rewrite_manifests.h - the entries of manifests regrouped by partition, data files untouched
 * (Iceberg's rewrite_manifests; Java's RewriteManifestsSparkAction).
 *
 * Live entries of all manifests of one spec are sorted by partition tuple and written to manifests
 * of about commit.manifest.target-size-bytes, data and deletes apart, as EXISTING with their own
 * numbers. The snapshot has the operation `replace`. Manifests that are as few and as well
 * clustered as they would come out are left alone.
 */
#include "base/progress.h"
#include "iceberg/write/write.h"

typedef struct KnRewriteManifestsOptions {
    KnWriteOptions write;
    int32_t spec_id;         /* whose manifests; -1 = the default spec */
    KnProgressMode progress; /* of entries, on standard error */
} KnRewriteManifestsOptions;

/* What is done about the manifests of one content. */
typedef struct KnManifestsPlanned {
    bool deletes;
    int32_t spec_id;
    int64_t n_manifests, bytes, n_entries; /* of the spec, live */
    int64_t n_new;                         /* manifests to be written in their place; 0 = none */
} KnManifestsPlanned;

/** From manifests alone; ret[0] is about data, ret[1] about deletes. */
KN_NODISCARD KnCode kn_rewrite_manifests_plan(KnTable *tbl, const KnRewriteManifestsOptions *opts,
                                              KnManifestsPlanned ret[2], KnErr *err);

typedef struct KnRewriteManifestsResult {
    int64_t snapshot_id; /* -1 = nothing to do */
    int64_t n_created, n_kept, n_replaced, n_entries;
} KnRewriteManifestsResult;

/** A newer head is no conflict: what others added is kept, and what they rewrote is looked at anew.
 */
KN_NODISCARD KnCode kn_write_rewrite_manifests(KnTable *tbl, const KnRewriteManifestsOptions *opts,
                                               KnRewriteManifestsResult *ret, KnErr *err);
