/* SPDX-License-Identifier: Apache-2.0 */
/*
 * metadata_apply_history.c - updates of snapshots, refs and the snapshot log.
 *
 * A snapshot that was prepared on an older state of the table is refused as a conflict: another
 * commit took its sequence number or its row ids, and preparing it again will do. The log tells
 * what was current when, so an entry is written for each move of main, a snapshot that came and
 * went in one commit leaves none, and removing a snapshot cuts the log behind it: a gap would lie.
 */
#include <string.h>

#include "base/clock.h"
#include "iceberg/metadata/metadata_builder.h"
#include "iceberg/metadata/metadata_internal.h"

static bool has_id(const int64_t *ids, size_t n, int64_t id)
{
    for (size_t i = 0; i < n; i++)
        if (ids[i] == id)
            return true;
    return false;
}

/* ---- snapshots ---- */

static KnCode check_ready(const KnBuilder *b, const KnSnapshot *snap, KnErr *err)
{
    const char *missing = b->md.n_schemas == 0       ? "schema"
                          : b->md.n_specs == 0       ? "partition spec"
                          : b->md.n_sort_orders == 0 ? "sort order"
                                                     : NULL;

    if (missing)
        return kn_err_set(err, KN_E_INVAL, "Attempting to add a snapshot before a %s is added",
                          missing);
    if (snap->snapshot_id < 0)
        return kn_err_set(err, KN_E_INVAL, "snapshot id %lld is negative",
                          (long long)snap->snapshot_id);
    if (!snap->manifest_list && (b->md.format_version > 1 || !snap->manifests))
        return kn_err_set(err, KN_E_INVAL, "snapshot %lld has no manifest-list",
                          (long long)snap->snapshot_id);
    if (kn_metadata_find_snapshot(&b->md, snap->snapshot_id))
        return kn_err_set(err, KN_E_INVAL, "Snapshot already exists for id: %lld",
                          (long long)snap->snapshot_id);
    return KN_OK;
}

static KnCode take_sequence_number(KnBuilder *b, const KnSnapshot *snap, KnErr *err)
{
    int64_t last = b->md.last_sequence_number;

    if (b->md.format_version == 1) {
        if (snap->sequence_number != 0)
            return kn_err_set(err, KN_E_INVAL, "Sequence number must be 0 in v1: %lld",
                              (long long)snap->sequence_number);
        return KN_OK;
    }
    if (snap->sequence_number <= last && snap->parent_id >= 0)
        return kn_err_set(err, KN_E_CONFLICT,
                          "Cannot add snapshot with sequence number %lld older than last sequence "
                          "number %lld",
                          (long long)snap->sequence_number, (long long)last);
    if (snap->sequence_number > last)
        b->md.last_sequence_number = snap->sequence_number;
    return KN_OK;
}

static KnCode take_row_ids(KnBuilder *b, const KnSnapshot *snap, KnErr *err)
{
    int64_t next;

    if (b->md.format_version < 3)
        return KN_OK;
    if (snap->first_row_id < 0 || snap->added_rows < 0)
        return kn_err_set(err, KN_E_INVAL, "Cannot add a snapshot: %s is null",
                          snap->first_row_id < 0 ? "first-row-id" : "added-rows");
    if (snap->first_row_id < b->md.next_row_id)
        return kn_err_set(err, KN_E_CONFLICT,
                          "Cannot add a snapshot, first-row-id is behind table next-row-id: %lld < "
                          "%lld",
                          (long long)snap->first_row_id, (long long)b->md.next_row_id);
    if (__builtin_add_overflow(snap->first_row_id, snap->added_rows, &next))
        return kn_err_set(err, KN_E_INVAL, "Cannot add a snapshot: row ids overflow");
    b->md.next_row_id = next;
    return KN_OK;
}

KnCode kn_builder_add_snapshot(KnBuilder *b, const KnSnapshot *snap, KnErr *err)
{
    KN_TRY(check_ready(b, snap, err));
    KN_TRY(take_sequence_number(b, snap, err));
    KN_TRY(take_row_ids(b, snap, err));
    b->snapshots[b->md.n_snapshots++] = *snap;
    b->added_ids[b->n_added++] = snap->snapshot_id;
    b->updated_ms = snap->timestamp_ms;
    b->changed = true;
    return KN_OK;
}

void kn_builder_remove_snapshots(KnBuilder *b, const int64_t *ids, size_t n)
{
    size_t kept = 0;

    for (size_t i = 0; i < b->md.n_snapshots; i++) {
        int64_t id = b->snapshots[i].snapshot_id;
        if (!has_id(ids, n, id)) {
            b->snapshots[kept++] = b->snapshots[i];
            continue;
        }
        kn_builder_drop_number(b, KN_LIST_STATISTICS, id);
        kn_builder_drop_number(b, KN_LIST_PARTITION_STATISTICS, id);
        b->removed_snapshots = b->changed = true;
    }
    b->md.n_snapshots = kept;
    for (size_t i = b->md.n_refs; i-- > 0;)
        if (!kn_metadata_find_snapshot(&b->md, b->refs[i].snapshot_id))
            kn_builder_remove_ref(b, b->refs[i].name);
}

/* ---- refs ---- */

static KnCode check_retention(const KnRef *ref, KnErr *err)
{
    if (ref->min_snapshots_to_keep == 0)
        return kn_err_set(err, KN_E_INVAL, "Min snapshots to keep must be greater than 0");
    if (ref->max_snapshot_age_ms == 0)
        return kn_err_set(err, KN_E_INVAL, "Max snapshot age must be greater than 0 ms");
    if (ref->max_ref_age_ms == 0)
        return kn_err_set(err, KN_E_INVAL, "Max reference age must be greater than 0");
    if (!ref->is_branch && (ref->min_snapshots_to_keep > 0 || ref->max_snapshot_age_ms > 0))
        return kn_err_set(err, KN_E_INVAL, "Tags do not support setting %s",
                          ref->min_snapshots_to_keep > 0 ? "minSnapshotsToKeep"
                                                         : "maxSnapshotAgeMs");
    return KN_OK;
}

static bool same_ref(const KnRef *a, const KnRef *b)
{
    return a->snapshot_id == b->snapshot_id && a->is_branch == b->is_branch &&
           a->min_snapshots_to_keep == b->min_snapshots_to_keep &&
           a->max_snapshot_age_ms == b->max_snapshot_age_ms &&
           a->max_ref_age_ms == b->max_ref_age_ms;
}

static void move_main(KnBuilder *b, const KnRef *ref)
{
    size_t n = b->md.n_snapshot_log;
    int64_t at;

    if (b->updated_ms < 0)
        b->updated_ms = kn_clock_wall_ms();
    at = b->updated_ms;
    if (n > 0 && b->snapshot_log[n - 1].timestamp_ms > at)
        at = b->snapshot_log[n - 1].timestamp_ms;
    b->md.current_snapshot_id = ref->snapshot_id;
    b->snapshot_log[b->md.n_snapshot_log++] =
        (KnLogEntry){.timestamp_ms = at, .snapshot_id = ref->snapshot_id};
    b->main_ids[b->n_main++] = ref->snapshot_id;
}

KnCode kn_builder_set_ref(KnBuilder *b, const KnRef *ref, KnErr *err)
{
    const KnSnapshot *snap = kn_metadata_find_snapshot(&b->md, ref->snapshot_id);
    size_t at = 0;

    if (!ref->name || !ref->name[0])
        return kn_err_set(err, KN_E_INVAL, "a ref needs a name");
    while (at < b->md.n_refs && strcmp(b->refs[at].name, ref->name) != 0)
        at++;
    if (at < b->md.n_refs && same_ref(&b->refs[at], ref))
        return KN_OK;
    if (!snap)
        return kn_err_set(err, KN_E_INVAL, "Cannot set %s to unknown snapshot: %lld", ref->name,
                          (long long)ref->snapshot_id);
    KN_TRY(check_retention(ref, err));
    if (strcmp(ref->name, KN_MAIN_BRANCH) == 0) {
        if (!ref->is_branch)
            return kn_err_set(err, KN_E_INVAL, "Cannot set main: it is a branch, not a tag");
        if (has_id(b->added_ids, b->n_added, ref->snapshot_id))
            b->updated_ms = snap->timestamp_ms;
        move_main(b, ref);
    }
    if (at == b->md.n_refs)
        b->md.n_refs++;
    b->refs[at] = *ref;
    b->changed = true;
    return KN_OK;
}

void kn_builder_remove_ref(KnBuilder *b, const char *name)
{
    for (size_t i = 0; i < b->md.n_refs; i++) {
        if (strcmp(b->refs[i].name, name) != 0)
            continue;
        if (strcmp(name, KN_MAIN_BRANCH) == 0)
            b->md.current_snapshot_id = -1;
        memmove(&b->refs[i], &b->refs[i + 1], (b->md.n_refs - i - 1) * sizeof(*b->refs));
        b->md.n_refs--;
        b->changed = true;
        return;
    }
}

/* ---- the log ---- */

static bool passed_through(const KnBuilder *b, int64_t id)
{
    return id != b->md.current_snapshot_id && has_id(b->added_ids, b->n_added, id) &&
           has_id(b->main_ids, b->n_main, id);
}

void kn_builder_fix_log(KnBuilder *b)
{
    size_t kept = 0;

    for (size_t i = 0; i < b->md.n_snapshot_log; i++) {
        int64_t id = b->snapshot_log[i].snapshot_id;
        if (!kn_metadata_find_snapshot(&b->md, id)) {
            if (b->removed_snapshots)
                kept = 0;
            else
                b->snapshot_log[kept++] = b->snapshot_log[i];
        } else if (!passed_through(b, id)) {
            b->snapshot_log[kept++] = b->snapshot_log[i];
        }
    }
    b->md.n_snapshot_log = kept;
}
