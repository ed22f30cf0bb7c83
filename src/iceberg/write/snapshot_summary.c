/* SPDX-License-Identifier: Apache-2.0 */
/*
 * snapshot_summary.c - the summary of a new snapshot (spec: "Snapshot Summary", appendix F).
 *
 * Counts that are 0 are left out, as Java does. Totals are the parent's plus and minus; a total
 * that the parent does not have stays unknown and is left out.
 */
#include <inttypes.h>

#include "base/map.h"
#include "iceberg/manifest/partition_key.h"
#include "iceberg/write/write_internal.h"

/* What one side (added or removed) amounts to. */
typedef struct Sums {
    int64_t data_files, records, bytes;
    int64_t delete_files, position_files, equality_files, vectors;
    int64_t position_deletes, equality_deletes;
} Sums;

static void sum_delete(Sums *sums, const KnDataFile *file)
{
    sums->delete_files++;
    if (file->content == KN_CONTENT_EQUALITY_DELETES) {
        sums->equality_files++;
        sums->equality_deletes += file->record_count;
        return;
    }
    if (file->format == KN_FORMAT_PUFFIN)
        sums->vectors++;
    else
        sums->position_files++;
    sums->position_deletes += file->record_count;
}

static void sum_files(Sums *sums, const KnManifestEntry *const *entries, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const KnDataFile *file = &entries[i]->file;
        sums->bytes += file->content_size >= 0 ? file->content_size : file->size_bytes;
        if (file->content == KN_CONTENT_DATA) {
            sums->data_files++;
            sums->records += file->record_count;
        } else {
            sum_delete(sums, file);
        }
    }
}

static void put_number(json_t *obj, const char *key, int64_t value)
{
    char text[24];
    int len = snprintf(text, sizeof(text), "%" PRId64, value);
    json_object_set_new(obj, key, json_stringn(text, (size_t)len));
}

static void put_count(json_t *obj, const char *key, int64_t value)
{
    if (value != 0)
        put_number(obj, key, value);
}

static void put_total(json_t *obj, const KnSnapshot *parent, const char *key, int64_t change)
{
    int64_t before = 0;
    if (parent) {
        const char *text = json_string_value(json_object_get(parent->summary, key));
        if (!text || !kn_str_to_i64(kn_str(text), &before))
            return;
    }
    if (before + change >= 0)
        put_number(obj, key, before + change);
}

static int64_t changed_partitions(const KnSnapshotDraft *draft)
{
    KN_MAP_AUTO seen = kn_map_new();
    const KnManifestEntry *const *lists[] = {draft->added, draft->added_deletes, draft->removed,
                                             draft->removed_deletes};
    size_t lengths[] = {draft->n_added, draft->n_added_deletes, draft->n_removed,
                        draft->n_removed_deletes};
    for (int l = 0; l < 4; l++) {
        for (size_t i = 0; i < lengths[l]; i++) {
            const KnDataFile *file = &lists[l][i]->file;
            KN_BUF_AUTO key;
            kn_buf_init(&key, (size_t)1 << 20);
            kn_partition_key(&key, file);
            kn_map_get_or_add(seen, (KnStr){key.data, key.len}, NULL);
        }
    }
    return (int64_t)kn_map_count(seen);
}

static void put_added(json_t *obj, const Sums *a)
{
    put_count(obj, "added-data-files", a->data_files);
    put_count(obj, "added-records", a->records);
    put_count(obj, "added-delete-files", a->delete_files);
    put_count(obj, "added-position-delete-files", a->position_files);
    put_count(obj, "added-equality-delete-files", a->equality_files);
    put_count(obj, "added-dvs", a->vectors);
    put_count(obj, "added-position-deletes", a->position_deletes);
    put_count(obj, "added-equality-deletes", a->equality_deletes);
    put_count(obj, "added-files-size", a->bytes);
}

static void put_removed(json_t *obj, const Sums *r)
{
    put_count(obj, "deleted-data-files", r->data_files);
    put_count(obj, "deleted-records", r->records);
    put_count(obj, "removed-delete-files", r->delete_files);
    put_count(obj, "removed-position-delete-files", r->position_files);
    put_count(obj, "removed-equality-delete-files", r->equality_files);
    put_count(obj, "removed-dvs", r->vectors);
    put_count(obj, "removed-position-deletes", r->position_deletes);
    put_count(obj, "removed-equality-deletes", r->equality_deletes);
    put_count(obj, "removed-files-size", r->bytes);
}

static void put_totals(json_t *obj, const KnSnapshot *parent, const Sums *a, const Sums *r)
{
    put_total(obj, parent, "total-records", a->records - r->records);
    put_total(obj, parent, "total-files-size", a->bytes - r->bytes);
    put_total(obj, parent, "total-data-files", a->data_files - r->data_files);
    put_total(obj, parent, "total-delete-files", a->delete_files - r->delete_files);
    put_total(obj, parent, "total-position-deletes", a->position_deletes - r->position_deletes);
    put_total(obj, parent, "total-equality-deletes", a->equality_deletes - r->equality_deletes);
}

json_t *kn_snapshot_summary(const KnWriter *w, const KnSnapshotDraft *draft,
                            const KnSnapshot *parent, const KnManifestSet *manifests)
{
    Sums added = {0};
    Sums removed = {0};
    sum_files(&added, draft->added, draft->n_added);
    sum_files(&added, draft->added_deletes, draft->n_added_deletes);
    sum_files(&removed, draft->removed, draft->n_removed);
    sum_files(&removed, draft->removed_deletes, draft->n_removed_deletes);
    json_t *obj = json_object();
    json_object_set_new(obj, "operation", json_string(draft->operation));
    put_added(obj, &added);
    put_removed(obj, &removed);
    put_number(obj, "changed-partition-count", changed_partitions(draft));
    put_totals(obj, parent, &added, &removed);
    put_number(obj, "manifests-created", manifests->n_created);
    put_number(obj, "manifests-kept", manifests->n_kept);
    put_number(obj, "manifests-replaced", manifests->n_replaced);
    put_count(obj, "entries-processed", manifests->n_entries);
    json_object_set_new(obj, "engine-name", json_string("knut"));
    json_object_set_new(obj, "engine-version", json_string(KN_VERSION_STRING));
    for (size_t i = 0; w->opts && i < w->opts->n_summary; i++)
        json_object_set_new(obj, w->opts->summary[2 * i], json_string(w->opts->summary[2 * i + 1]));
    if (w->opts && w->opts->wap_id)
        json_object_set_new(obj, "wap.id", json_string(w->opts->wap_id));
    return obj;
}
