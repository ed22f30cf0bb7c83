/* SPDX-License-Identifier: Apache-2.0 */
/*
 * commit_status.c - see commit_status.h.
 *
 * The pointer at `from` says that the commit was not applied: a compare-and-set that is still on
 * its way could only be one of a connection that is gone, and the database has ended that one.
 * Elsewhere another writer has committed since, on top of `to` or on top of `from`.
 */
#include "catalog/commit_status.h"

#include <string.h>

#include "base/fault.h"
#include "catalog/metadata_file.h"
#include "iceberg/write/commit_retry.h"

static bool log_has(const KnMetadata *md, const char *location)
{
    for (size_t i = 0; i < md->n_metadata_log; i++) {
        if (strcmp(md->metadata_log[i].metadata_file, location) == 0)
            return true;
    }
    return false;
}

/* A snapshot that only the commit can have added. */
static const KnSnapshot *added_snapshot(const KnLostCommit *lost)
{
    for (size_t i = 0; i < lost->after->n_snapshots; i++) {
        const KnSnapshot *snap = &lost->after->snapshots[i];
        if (!kn_metadata_find_snapshot(lost->before, snap->snapshot_id))
            return snap;
    }
    return NULL;
}

static KnCommitStatus judge(const KnLostCommit *lost, const KnMetadata *now)
{
    if (log_has(now, lost->to))
        return KN_COMMIT_APPLIED;
    const KnSnapshot *added = added_snapshot(lost);
    if (added && kn_metadata_find_snapshot(now, added->snapshot_id))
        return KN_COMMIT_APPLIED;
    /* A log that reaches back to `from` would have what came after it. */
    return log_has(now, lost->from) ? KN_COMMIT_NOT_APPLIED : KN_COMMIT_UNKNOWN;
}

/* KN_OK: *ret says what was found; else it could not be looked at. */
static KnCode look(const KnLostCommit *lost, KnCommitStatus *ret)
{
    KN_ARENA_AUTO arena = kn_arena_new(0);
    const char *now = NULL;
    KnErr ignored = {0};
    KN_TRY(kn_fault_at("catalog-status-check", &ignored));
    KN_TRY(lost->find(lost->arg, arena, &now, &ignored));
    if (!strcmp(now, lost->to)) {
        *ret = KN_COMMIT_APPLIED;
        return KN_OK;
    }
    if (!strcmp(now, lost->from)) {
        *ret = KN_COMMIT_NOT_APPLIED;
        return KN_OK;
    }
    KN_METADATA_AUTO md = NULL;
    KN_TRY(kn_metadata_file_read(lost->io, kn_str(now), &md, &ignored));
    *ret = judge(lost, md);
    return KN_OK;
}

KnCommitStatus kn_commit_status(const KnLostCommit *lost)
{
    KnBackoff backoff = kn_backoff_status_check(lost->after);
    KnCommitStatus status = KN_COMMIT_UNKNOWN;
    do {
        if (look(lost, &status) == KN_OK)
            return status;
    } while (kn_backoff_next(&backoff));
    return KN_COMMIT_UNKNOWN;
}
