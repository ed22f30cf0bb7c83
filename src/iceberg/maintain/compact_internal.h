/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* compact_internal.h - does a rewrite still hold on a newer head? (compact.c, rewrite_deletes.c) */
#include "iceberg/maintain/compact.h"
#include "iceberg/write/write_internal.h"

/** True when files written in place of files of spec_id have the data sequence number of the
 * planned snapshot: the rows stay in their partitions, so that every equality delete which would
 * have found them before finds them after. */
bool kn_compact_keeps_sequence(const KnCompactPlan *plan, const KnCompactOptions *opts,
                               int32_t spec_id);

/* Files whose deletes a rewrite has read. */
typedef struct KnCompactCheck {
    const KnTable *tbl;
    int64_t base_id;                     /* the snapshot that was planned */
    const KnManifestEntry *const *files; /* data files */
    size_t n_files;
    /* True when equality deletes that came for a file of this spec may be ignored. */
    bool (*ignores)(const void *arg, int32_t spec_id);
    const void *arg;
} KnCompactCheck;

/** Java's validateNoNewDeletesForDataFiles, from manifests that the planned snapshot has not:
 * KN_E_CONFLICT when one of the files is not at head, or has new deletes there. */
KN_NODISCARD KnCode kn_compact_check(const KnCompactCheck *check, const KnSnapshot *head,
                                     KnErr *err);
