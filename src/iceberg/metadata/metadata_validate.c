/* SPDX-License-Identifier: Apache-2.0 */
/*
 * metadata_validate.c - the checks of a whole document, those of Java's TableMetadata constructor.
 *
 * Clocks of different machines commit to one table: entries of the logs may be up to a minute out
 * of order. The messages are Java's where it has one, so that they can be looked up.
 */
#include <string.h>

#include "base/map.h"
#include "iceberg/metadata/metadata.h"
#include "iceberg/metadata/metadata_internal.h"

#define ONE_MINUTE_MS INT64_C(60000)

static bool is_before(int64_t a, int64_t b)
{
    int64_t diff;

    if (__builtin_sub_overflow(a, b, &diff))
        return a < b;
    return diff < -ONE_MINUTE_MS;
}

static KnCode check_snapshots(const KnMetadata *md, KnErr *err)
{
    KN_MAP_AUTO ids = kn_map_new();

    for (size_t i = 0; i < md->n_snapshots; i++) {
        const KnSnapshot *snap = &md->snapshots[i];
        bool is_new;

        if (snap->sequence_number > md->last_sequence_number)
            return kn_err_set(err, KN_E_CORRUPT,
                              "Invalid snapshot with sequence number %lld greater than last "
                              "sequence number %lld",
                              (long long)snap->sequence_number,
                              (long long)md->last_sequence_number);
        kn_map_get_or_add(ids, (KnStr){(const char *)&snap->snapshot_id, sizeof(snap->snapshot_id)},
                          &is_new);
        if (!is_new)
            return kn_err_set(err, KN_E_CORRUPT,
                              "field 'snapshots': snapshot-id %lld is there twice",
                              (long long)snap->snapshot_id);
    }
    if (md->current_snapshot_id >= 0 && !kn_metadata_snapshot(md))
        return kn_err_set(err, KN_E_CORRUPT,
                          "field 'current-snapshot-id': snapshot %lld is not in 'snapshots'",
                          (long long)md->current_snapshot_id);
    return KN_OK;
}

static KnCode check_ref(const KnMetadata *md, const KnRef *ref, KnErr *err)
{
    if (!kn_metadata_find_snapshot(md, ref->snapshot_id))
        return kn_err_set(err, KN_E_CORRUPT,
                          "Snapshot for reference %s does not exist in the existing snapshots "
                          "list: %lld",
                          ref->name, (long long)ref->snapshot_id);
    if (!ref->is_branch && (ref->min_snapshots_to_keep >= 0 || ref->max_snapshot_age_ms >= 0))
        return kn_err_set(
            err, KN_E_CORRUPT, "Tags do not support setting %s: %s",
            ref->min_snapshots_to_keep >= 0 ? "minSnapshotsToKeep" : "maxSnapshotAgeMs", ref->name);
    return KN_OK;
}

static KnCode check_refs(const KnMetadata *md, KnErr *err)
{
    const KnRef *main_ref = kn_metadata_find_ref(md, KN_STR_LIT(KN_MAIN_BRANCH));

    for (size_t i = 0; i < md->n_refs; i++)
        KN_TRY(check_ref(md, &md->refs[i], err));
    if (main_ref && md->current_snapshot_id < 0)
        return kn_err_set(err, KN_E_CORRUPT,
                          "Current snapshot is not set, but main branch exists: %lld",
                          (long long)main_ref->snapshot_id);
    if (main_ref && main_ref->snapshot_id != md->current_snapshot_id)
        return kn_err_set(err, KN_E_CORRUPT,
                          "Current snapshot ID does not match main branch (%lld != %lld)",
                          (long long)md->current_snapshot_id, (long long)main_ref->snapshot_id);
    return KN_OK;
}

typedef struct LogCheck {
    const KnLogEntry *log;
    size_t n;
    const char *key;
} LogCheck;

static KnCode check_log(const KnMetadata *md, LogCheck check, KnErr *err)
{
    for (size_t i = 1; i < check.n; i++)
        if (is_before(check.log[i].timestamp_ms, check.log[i - 1].timestamp_ms))
            return kn_err_set(err, KN_E_CORRUPT, "field '%s': entries are not sorted by time",
                              check.key);
    if (check.n > 0 && is_before(md->last_updated_ms, check.log[check.n - 1].timestamp_ms))
        return kn_err_set(err, KN_E_CORRUPT,
                          "Invalid update timestamp %lld: before last entry of '%s' at %lld",
                          (long long)md->last_updated_ms, check.key,
                          (long long)check.log[check.n - 1].timestamp_ms);
    return KN_OK;
}

KnCode kn_metadata_validate(const KnMetadata *md, KnErr *err)
{
    if (md->last_sequence_number < 0 || md->next_row_id < 0)
        return kn_err_set(err, KN_E_CORRUPT, "field '%s': negative",
                          md->last_sequence_number < 0 ? "last-sequence-number" : "next-row-id");
    KN_TRY(check_snapshots(md, err));
    KN_TRY(check_refs(md, err));
    KN_TRY(check_log(md, (LogCheck){md->snapshot_log, md->n_snapshot_log, "snapshot-log"}, err));
    return check_log(md, (LogCheck){md->metadata_log, md->n_metadata_log, "metadata-log"}, err);
}
