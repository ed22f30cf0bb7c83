/* SPDX-License-Identifier: Apache-2.0 */
/*
 * snapshot_producer.c - a draft becomes the branch's new head.
 *
 * One attempt = manifests, manifest list and commit on top of the newest metadata at hand. A lost
 * race (KN_E_CONFLICT) takes the newest metadata and makes a new attempt, after the draft has
 * agreed to the new base. Everything that an attempt wrote and a later one does not use is removed,
 * but never after KN_E_UNKNOWN: then the catalog may have taken the commit. A killed process leaves
 * files that no metadata names.
 */
#include <inttypes.h>
#include <strings.h>

#include "base/clock.h"
#include "base/fault.h"
#include "base/path.h"
#include "base/random.h"
#include "iceberg/write/write_internal.h"

const char *kn_writer_branch(const KnWriter *w)
{
    return w->opts && w->opts->branch ? w->opts->branch : "main";
}

/* A branch that is not there yet starts at the current snapshot, as in Java. */
const KnSnapshot *kn_writer_head(const KnWriter *w)
{
    const KnRef *ref = kn_metadata_find_ref(w->tbl->md, kn_str(kn_writer_branch(w)));
    return ref ? kn_metadata_find_snapshot(w->tbl->md, ref->snapshot_id)
               : kn_metadata_snapshot(w->tbl->md);
}

KnCode kn_branch_find(const KnTable *tbl, const char *branch, const KnSnapshot **ret, KnErr *err)
{
    const KnRef *ref = kn_metadata_find_ref(tbl->md, kn_str(branch ? branch : "main"));
    if (!ref && branch && strcmp(branch, "main") != 0)
        return kn_err_set(err, KN_E_INVAL, "table %s has no branch %s", tbl->name, branch);
    if (ref && !ref->is_branch)
        return kn_err_set(err, KN_E_INVAL, "table %s: %s is a tag, only branches can be written to",
                          tbl->name, ref->name);
    *ret =
        ref ? kn_metadata_find_snapshot(tbl->md, ref->snapshot_id) : kn_metadata_snapshot(tbl->md);
    return KN_OK;
}

const char *kn_writer_meta_path(KnWriter *w, const char *name)
{
    const KnMetadata *md = w->tbl->md;
    const char *folder = kn_metadata_property(md, "write.metadata.path", NULL);
    if (!folder)
        folder = kn_path_join(w->arena, kn_str(md->location), KN_STR_LIT("metadata"));
    const char *path = kn_path_join(w->arena, kn_str(folder), kn_str(name));
    *kn_vec_push(&w->meta_files) = path;
    return path;
}

static int64_t new_snapshot_id(const KnMetadata *md)
{
    int64_t id;
    do
        id = kn_random_id();
    while (kn_metadata_find_snapshot(md, id));
    return id;
}

static KnCode check_branch(const KnWriter *w, KnErr *err)
{
    const KnRef *ref = kn_metadata_find_ref(w->tbl->md, kn_str(kn_writer_branch(w)));
    if (ref && !ref->is_branch)
        return kn_err_set(err, KN_E_INVAL, "table %s: %s is a tag, only branches can be written to",
                          w->tbl->name, ref->name);
    return KN_OK;
}

static KnCode check_staging(const KnWriter *w, KnErr *err)
{
    const char *id = w->opts ? w->opts->wap_id : NULL;
    const char *enabled = kn_metadata_property(w->tbl->md, "write.wap.enabled", "false");
    if (!id)
        return KN_OK;
    if (!*id)
        return kn_err_set(err, KN_E_INVAL, "table %s: the id to stage under is empty",
                          w->tbl->name);
    if (strcmp(kn_writer_branch(w), "main") != 0)
        return kn_err_set(err, KN_E_INVAL,
                          "table %s: a snapshot is staged, or goes to branch %s, not both",
                          w->tbl->name, kn_writer_branch(w));
    if (strcasecmp(enabled, "true") != 0)
        return kn_err_set(err, KN_E_INVAL,
                          "table %s does not stage snapshots: set its property "
                          "write.wap.enabled=true",
                          w->tbl->name);
    return KN_OK;
}

static KnCode write_list(KnWriter *w, const KnManifestSet *set, KnSnapshot *snap, KnErr *err)
{
    const KnMetadata *md = w->tbl->md;
    char uuid[37];
    const char *name = kn_arena_printf(w->arena, "snap-%" PRId64 "-0-%s.avro", snap->snapshot_id,
                                       kn_random_uuid4(uuid));
    snap->manifest_list = kn_writer_meta_path(w, name);
    KnManifestListWrite list = {
        .format_version = md->format_version,
        .snapshot_id = snap->snapshot_id,
        .parent_id = snap->parent_id,
        .sequence_number = snap->sequence_number,
        .first_row_id = snap->first_row_id,
        .manifests = set->files,
        .n_manifests = set->n,
        .path = snap->manifest_list,
    };
    int64_t next_row_id = -1;
    KN_TRY(kn_manifest_list_write(w->tbl->io, &list, &next_row_id, err));
    if (md->format_version >= 3)
        snap->added_rows = next_row_id - snap->first_row_id;
    return kn_fault_at("write-list-written", err);
}

/* The commit of one attempt; w->tbl shows the new metadata after. */
static KnCode commit(KnWriter *w, const KnSnapshotDraft *draft, const KnSnapshot *snap,
                     const KnRef *ref, KnErr *err)
{
    const KnMetadata *md = w->tbl->md;
    const char *branch = kn_writer_branch(w);
    KnRequirement reqs[3] = {
        {.kind = KN_REQUIRE_REF_SNAPSHOT_ID, .text = branch, .number = ref ? ref->snapshot_id : -1},
    };
    size_t n_reqs = 1;
    if (md->uuid)
        reqs[n_reqs++] = (KnRequirement){.kind = KN_REQUIRE_UUID, .text = md->uuid};
    if (draft->source_id)
        reqs[n_reqs++] = (KnRequirement){.kind = KN_REQUIRE_SNAPSHOT, .number = draft->source_id};
    KnRef moved = {.min_snapshots_to_keep = -1, .max_snapshot_age_ms = -1, .max_ref_age_ms = -1};
    if (ref)
        moved = *ref;
    moved.name = branch;
    moved.snapshot_id = snap->snapshot_id;
    moved.is_branch = true;
    KnUpdate updates[] = {
        {.kind = KN_UPDATE_ADD_SNAPSHOT, .snapshot = *snap},
        {.kind = KN_UPDATE_SET_SNAPSHOT_REF, .text = branch, .ref = moved},
    };
    bool staged = w->opts && w->opts->wap_id;
    KnTableCommit change = {.requirements = reqs,
                            .n_requirements = n_reqs,
                            .updates = updates,
                            .n_updates = staged ? 1 : 2};
    KN_TRY(kn_fault_at("write-before-commit", err));
    return kn_table_commit(w->tbl, &change, err);
}

/* The files of one attempt. */
static KnCode write_snapshot(KnWriter *w, const KnSnapshotDraft *draft, const KnSnapshot *parent,
                             KnManifestSet *set, KnSnapshot *snap, KnErr *err)
{
    KN_TRY(draft->manifests ? draft->manifests(draft->arg, parent, snap->snapshot_id, set, err)
                            : kn_snapshot_manifests(w, draft, parent, snap->snapshot_id, set, err));
    KN_TRY(kn_fault_at("write-manifest-written", err));
    return write_list(w, set, snap, err);
}

static KnCode attempt(KnWriter *w, const KnSnapshotDraft *draft, int64_t *ret_id, KnErr *err)
{
    KN_TRY(check_branch(w, err));
    const KnMetadata *md = w->tbl->md;
    const KnRef *ref = kn_metadata_find_ref(md, kn_str(kn_writer_branch(w)));
    const KnSnapshot *parent = kn_writer_head(w);
    int64_t now = kn_clock_wall_ms();
    KnSnapshot snap = {
        .snapshot_id = new_snapshot_id(md),
        .parent_id = parent ? parent->snapshot_id : -1,
        .sequence_number = md->format_version >= 2 ? md->last_sequence_number + 1 : 0,
        .timestamp_ms = now > md->last_updated_ms ? now : md->last_updated_ms,
        .operation = draft->operation,
        .schema_id = md->current_schema_id,
        .first_row_id = md->format_version >= 3 ? md->next_row_id : -1,
        .added_rows = -1,
    };
    KnManifestSet set = {0};
    KN_TRY(kn_io_settled(write_snapshot(w, draft, parent, &set, &snap, err), err));
    KN_JSON_AUTO summary = kn_snapshot_summary(w, draft, parent, &set);
    snap.summary = summary;
    KN_TRY(commit(w, draft, &snap, ref, err));
    *ret_id = snap.snapshot_id;
    return KN_OK;
}

static void remove_files(KnWriter *w, KnPathVec *files)
{
    kn_vec_foreach (files, path)
        (void)kn_io_remove(w->tbl->io, kn_str(*path), NULL);
    files->len = 0;
}

static KnCode rebase(KnWriter *w, const KnSnapshotDraft *draft, KnErr *err)
{
    const KnSnapshot *base = kn_writer_head(w);
    int64_t base_id = base ? base->snapshot_id : -1;
    int32_t version = w->tbl->md->format_version;
    const char *uuid = w->tbl->md->uuid ? kn_arena_strdup(w->arena, w->tbl->md->uuid) : "";
    KN_TRY(kn_table_refresh(w->tbl, err));
    if (strcmp(uuid, w->tbl->md->uuid ? w->tbl->md->uuid : "") != 0)
        return kn_err_set(
            err, KN_E_CONFLICT,
            "table %s was dropped and created anew meanwhile: run the operation again",
            w->tbl->name);
    if (version != w->tbl->md->format_version && draft->n_added_deletes > 0)
        return kn_err_set(err, KN_E_CONFLICT,
                          "table %s was upgraded to format version %d meanwhile, which has other "
                          "delete files: run the operation again",
                          w->tbl->name, w->tbl->md->format_version);
    if (!draft->validate)
        return KN_OK;
    const KnSnapshot *head = kn_writer_head(w);
    if (base_id >= 0 && !kn_metadata_find_snapshot(w->tbl->md, base_id))
        return kn_err_set(err, KN_E_CONFLICT,
                          "table %s: snapshot %" PRId64 ", on which the operation was built, has "
                          "expired meanwhile",
                          w->tbl->name, base_id);
    if (!head || head->snapshot_id == base_id)
        return KN_OK;
    base = base_id >= 0 ? kn_metadata_find_snapshot(w->tbl->md, base_id) : NULL;
    return draft->validate(draft->arg, base, head, err);
}

static bool branch_moved(const KnWriter *w, const KnMetadata *fresh)
{
    const KnRef *now = kn_metadata_find_ref(fresh, kn_str(kn_writer_branch(w)));
    const KnRef *then = kn_metadata_find_ref(w->tbl->md, kn_str(kn_writer_branch(w)));
    return now && then && now->snapshot_id != then->snapshot_id;
}

/* KN_E_NOTFOUND: a file of the parent was not there; KN_E_INVAL: the snapshot is none for this
 * table. KN_E_CONFLICT when the branch has moved on, so that the old parent may have expired, or
 * the table was upgraded, which asks for row ids; else the failure stands as it is. */
static KnCode check_fresh(KnWriter *w, KnCode rc, KnErr *err)
{
    KnTable *fresh = NULL;
    KnTable *tbl = w->tbl;
    const KnTableIdent *ident = tbl->ident.name ? &tbl->ident : NULL;
    if (kn_table_load(tbl->catalog, ident, &fresh, NULL) != KN_OK)
        return rc;
    bool upgraded = fresh->md->format_version != tbl->md->format_version;
    bool moved = upgraded || branch_moved(w, fresh->md);
    kn_table_free(fresh);
    if (!moved || (rc == KN_E_INVAL && !upgraded))
        return rc;
    return kn_err_wrap(err, KN_E_CONFLICT,
                       upgraded ? "the table was upgraded" : "the branch has moved on");
}

KnCode kn_snapshot_produce(KnWriter *w, const KnSnapshotDraft *draft, int64_t *ret_id, KnErr *err)
{
    KN_TRY(kn_fault_at("write-data-written", err));
    KnBackoff backoff = kn_backoff_commit(w->tbl->md);
    for (;;) {
        KN_TRY(kn_writer_check_cancelled(w, err));
        KnCode rc = attempt(w, draft, ret_id, err);
        if (rc == KN_OK || rc == KN_E_UNKNOWN)
            return rc;
        if (rc == KN_E_NOTFOUND || rc == KN_E_INVAL)
            rc = check_fresh(w, rc, err);
        remove_files(w, &w->meta_files);
        if (rc != KN_E_CONFLICT || !kn_backoff_next(&backoff))
            return rc;
        KN_TRY(rebase(w, draft, err));
    }
}

/* ---- the writer's life ---- */

KnCode kn_writer_check_cancelled(const KnWriter *w, KnErr *err)
{
    if (w->opts && w->opts->cancelled && w->opts->cancelled())
        return kn_err_set(err, KN_E_CANCELLED, "table %s: writing was cancelled", w->tbl->name);
    return KN_OK;
}

KnCode kn_writer_init(KnWriter *w, KnTable *tbl, KnSession *ses, const KnWriteOptions *opts,
                      KnErr *err)
{
    const KnMetadata *md = tbl->md;
    *w = (KnWriter){.tbl = tbl,
                    .ses = ses,
                    .opts = opts,
                    .arena = kn_arena_new(0),
                    .data_sequence = -1,
                    .delete_sequence = -1};
    w->schema = kn_metadata_schema(md);
    w->spec = kn_metadata_spec(md);
    const KnSortOrder *order = kn_metadata_sort_order(md);
    w->sort_order = order && order->n_fields > 0 ? order : NULL;
    kn_random_uuid7(w->uuid);
    /* The schema and spec live as long as the metadata that the operation began with. */
    kn_metadata_keep(w->arena, md);
    KnCode rc = kn_partition_type(w->arena, w->spec, w->schema, &w->partition_type, err);
    if (rc == KN_OK)
        rc = check_branch(w, err);
    if (rc == KN_OK)
        rc = check_staging(w, err);
    if (rc != KN_OK)
        kn_writer_done(w, true);
    return rc;
}

void kn_writer_done(KnWriter *w, bool keep)
{
    if (!keep) {
        remove_files(w, &w->data_files);
        remove_files(w, &w->meta_files);
    }
    kn_vec_done(&w->data_files);
    kn_vec_done(&w->meta_files);
    kn_vec_done(&w->added);
    kn_vec_done(&w->added_deletes);
    kn_vec_done(&w->replaced_deletes);
    w->arena = kn_arena_free(w->arena);
}
