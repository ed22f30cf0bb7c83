/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * manifest_regroup.h - the manifests of one content and spec, to be written anew by partition
 * (rewrite_manifests.c's own).
 *
 * Of an entry only its place is kept while planning (4 bytes, and 24 more until the order is
 * settled), and each partition tuple once. Entries with their metrics are held for as many new
 * manifests at a time as fit KN_REGROUP_MEMORY, and no new manifest is planned beyond that; the old
 * manifests that have some of them are read again for each such round.
 */
#include "iceberg/write/write_internal.h"

#define KN_REGROUP_MEMORY ((size_t)64 << 20)

typedef struct KnRegroup KnRegroup;

typedef struct KnRegroupOptions {
    bool deletes;
    int32_t spec_id;
    int64_t target_bytes; /* of a new manifest */
    size_t memory;        /* for entries at a time; 0 = KN_REGROUP_MEMORY */
} KnRegroupOptions;

/** Reads the manifests among files that are of the content and spec. */
KN_NODISCARD KnCode kn_regroup_plan(KnWriter *w, const KnRegroupOptions *opts,
                                    const KnManifestFile *files, size_t n, KnRegroup **ret,
                                    KnErr *err);
KnRegroup *kn_regroup_free(KnRegroup *group);
/** The old manifests. */
size_t kn_regroup_inputs(const KnRegroup *group, const KnManifestFile **ret);
int64_t kn_regroup_entries(const KnRegroup *group);
/** New manifests that are planned; 0 = the old ones are as good. */
size_t kn_regroup_outputs(const KnRegroup *group);
/** Writes them; their lines live in w's arena, their paths are noted as files of the operation. fn
 * (or NULL) hears how many entries were written. */
typedef void (*KnRegroupFn)(void *arg, size_t n_entries);
typedef struct KnRegroupListener {
    KnRegroupFn fn;
    void *arg;
} KnRegroupListener;
KN_NODISCARD KnCode kn_regroup_write(KnRegroup *group, KnWriter *w, KnRegroupListener listener,
                                     KnManifestFile *ret, KnErr *err);
