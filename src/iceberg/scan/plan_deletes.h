/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* plan_deletes.h - the delete files of a snapshot, indexed by what they can apply to (plan.c's
 * own).
 *
 * Rules are those of Java's DeleteFileIndex: an equality delete applies to data with a smaller
 * sequence number, in its own partition and spec, or everywhere when its spec is unpartitioned; a
 * position delete to data with a sequence number up to its own, in its partition and spec, or to
 * the one file it names; a deletion vector to the file it names, in place of all position deletes.
 * Everything lives in the arena. One thread at a time. */
#include "iceberg/scan/plan.h"

typedef struct KnDeleteIndex KnDeleteIndex;

KnDeleteIndex *kn_delete_index_new(KnArena *arena, const KnMetadata *md);
/** Takes a live entry of a delete manifest (copied). KN_E_CORRUPT: contradictory, e.g. two deletion
 * vectors for one file. */
KN_NODISCARD KnCode kn_delete_index_add(KnDeleteIndex *index, const KnManifestEntry *entry,
                                        KnErr *err);
/** Once, after the last add. */
void kn_delete_index_seal(KnDeleteIndex *index);
/** True when matching looks at column bounds of data files. */
bool kn_delete_index_wants_metrics(const KnDeleteIndex *index);
/** The delete files that apply to data, in order of sequence number, then of their manifests. */
KN_NODISCARD KnCode kn_delete_index_match(KnDeleteIndex *index, const KnManifestEntry *data,
                                          KnScanTask *task, KnErr *err);
/** Delete files that applied to some task so far, and their bytes. */
void kn_delete_index_used(const KnDeleteIndex *index, int64_t *ret_files, int64_t *ret_bytes);
