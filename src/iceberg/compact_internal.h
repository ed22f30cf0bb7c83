/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* compact_internal.h - compact.c's own: does a rewrite still hold on a newer head? */
#include "iceberg/compact.h"
#include "iceberg/write_internal.h"

/** True when files written in place of files of spec_id have the data sequence number of the
 * planned snapshot: the rows stay in their partitions, so that every equality delete which would
 * have found them before finds them after. */
bool kn_compact_keeps_sequence(const KnCompactPlan *plan, const KnCompactOptions *opts,
                               int32_t spec_id);

/* What a rewrite takes away. */
typedef struct KnCompactCheck {
    const KnTable *tbl;
    const KnCompactPlan *plan;
    const KnCompactOptions *opts;
    const KnManifestEntry *const *removed; /* data files */
    size_t n_removed;
} KnCompactCheck;

/** Java's validateNoNewDeletesForDataFiles, from manifests that the planned snapshot has not:
 * KN_E_CONFLICT when a removed file is not at head, or has deletes there that its rewrite would
 * lose. */
KN_NODISCARD KnCode kn_compact_check(const KnCompactCheck *check, const KnSnapshot *head,
                                     KnErr *err);
