/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cherry_pick.c - a snapshot's changes once more, on top of main (Java: CherryPickOperation,
 * WapUtil).
 *
 * What a snapshot added and removed stands in the manifests that it made itself. The files are not
 * read: they get new sequence numbers and row ids, since to the table they are new. The source
 * snapshot must still be there at the commit, or its files might be on their way out (expire.c).
 */
#include <inttypes.h>
#include <string.h>
#include <strings.h>

#include "base/map.h"
#include "iceberg/maintain/refs.h"
#include "iceberg/manifest/partition_key.h"
#include "iceberg/write/commit_retry.h"
#include "iceberg/write/write_internal.h"

typedef struct Pick {
    KnTable *tbl;
    KnArena *arena;
    int64_t source_id, source_parent_id;
    KnMap *partitions; /* that a dynamic overwrite replaces; NULL = an append */
    const char *wap_id;
    KnEntryVec added, removed;
} Pick;

static const char *summary_text(const KnSnapshot *snap, const char *key)
{
    return snap->summary ? json_string_value(json_object_get(snap->summary, key)) : NULL;
}

static bool says(const KnSnapshot *snap, const char *key, const char *value)
{
    const char *text = summary_text(snap, key);
    return text && !strcmp(text, value);
}

/* ---- may it be picked? ---- */

typedef bool (*AncestorFn)(const KnSnapshot *ancestor, const char *text);

static const KnSnapshot *find_ancestor(const KnMetadata *md, AncestorFn fn, const char *text)
{
    const KnSnapshot *snap = kn_metadata_snapshot(md);
    for (size_t steps = 0; snap && steps <= md->n_snapshots; steps++) {
        if (fn(snap, text))
            return snap;
        snap = snap->parent_id < 0 ? NULL : kn_metadata_find_snapshot(md, snap->parent_id);
    }
    return NULL;
}

static bool came_from(const KnSnapshot *ancestor, const char *source)
{
    return says(ancestor, "source-snapshot-id", source);
}

static bool has_wap_id(const KnSnapshot *ancestor, const char *wap_id)
{
    return says(ancestor, "wap.id", wap_id) || says(ancestor, "published-wap-id", wap_id);
}

static KnCode check_unpublished(const KnTable *tbl, const char *wap_id, KnErr *err)
{
    const KnSnapshot *done = wap_id ? find_ancestor(tbl->md, has_wap_id, wap_id) : NULL;
    if (!done)
        return KN_OK;
    return kn_err_set(
        err, KN_E_REFUSED,
        "table %s: what was staged as '%s' is published already, by snapshot %" PRId64, tbl->name,
        wap_id, done->snapshot_id);
}

static KnCode check_not_picked(const KnTable *tbl, int64_t source_id, KnErr *err)
{
    const KnMetadata *md = tbl->md;
    char text[24];
    if (snprintf(text, sizeof(text), "%" PRId64, source_id) < 0)
        text[0] = '\0';
    if (kn_snapshot_is_ancestor(md, md->current_snapshot_id, source_id))
        return kn_err_set(err, KN_E_REFUSED, "table %s: snapshot %s is in main's history already",
                          tbl->name, text);
    const KnSnapshot *done = find_ancestor(md, came_from, text);
    if (!done)
        return KN_OK;
    return kn_err_set(err, KN_E_REFUSED,
                      "table %s: snapshot %s was picked already, as snapshot %" PRId64, tbl->name,
                      text, done->snapshot_id);
}

static bool is_fast_forward(const KnMetadata *md, const KnSnapshot *source)
{
    return source->parent_id == md->current_snapshot_id;
}

/* ---- its files ---- */

static KnCode take_entry(void *arg, const KnManifestEntry *entry, KnErr *err)
{
    (void)err;
    Pick *pick = arg;
    if (entry->snapshot_id != pick->source_id || entry->status == KN_ENTRY_EXISTING)
        return KN_OK;
    if (entry->status == KN_ENTRY_DELETED) {
        if (pick->partitions)
            *kn_vec_push(&pick->removed) = kn_manifest_entry_copy(pick->arena, entry);
        return KN_OK;
    }
    KnManifestEntry *copy = kn_manifest_entry_copy(pick->arena, entry);
    copy->file.first_row_id = -1;
    *kn_vec_push(&pick->added) = copy;
    if (pick->partitions) {
        KN_BUF_AUTO key;
        kn_buf_init(&key, (size_t)1 << 20);
        kn_partition_key(&key, &entry->file);
        *kn_map_get_or_add(pick->partitions, (KnStr){key.data, key.len}, NULL) = pick;
    }
    return KN_OK;
}

/* The entries of the data manifests that a snapshot made itself. */
static KnCode visit_own(KnTable *tbl, const KnSnapshot *snap, const KnManifestVisit *visit,
                        KnErr *err)
{
    KN_ARENA_AUTO arena = kn_arena_new(0);
    KnManifestFile *files = NULL;
    size_t n = 0;
    KN_TRY(kn_manifest_list_read(tbl->io, arena, snap, &files, &n, err));
    for (size_t i = 0; i < n; i++)
        if (!files[i].deletes && files[i].added_snapshot_id == snap->snapshot_id)
            KN_TRY(kn_manifest_read(tbl->io, tbl->md, &files[i], visit, err));
    return KN_OK;
}

static KnCode check_untouched(void *arg, const KnManifestEntry *entry, KnErr *err)
{
    const Pick *pick = arg;
    KN_BUF_AUTO key;
    kn_buf_init(&key, (size_t)1 << 20);
    kn_partition_key(&key, &entry->file);
    if (entry->status != KN_ENTRY_ADDED ||
        !kn_map_find(pick->partitions, (KnStr){key.data, key.len}))
        return KN_OK;
    return kn_err_set(err, KN_E_REFUSED,
                      "table %s: cannot pick snapshot %" PRId64
                      ": a partition that it replaces has "
                      "new rows since, in %.300s",
                      pick->tbl->name, pick->source_id, entry->file.path);
}

/* A dynamic overwrite is void where its partitions got files after it was made. */
static KnCode check_partitions(Pick *pick, KnErr *err)
{
    const KnMetadata *md = pick->tbl->md;
    int64_t since = pick->source_parent_id;
    if (!pick->partitions)
        return KN_OK;
    if (since >= 0 && !kn_snapshot_is_ancestor(md, md->current_snapshot_id, since))
        return kn_err_set(err, KN_E_REFUSED,
                          "table %s: cannot pick the overwrite %" PRId64
                          ": it is not based on an ancestor of the current snapshot",
                          pick->tbl->name, pick->source_id);
    KnManifestVisit visit = {.fn = check_untouched, .arg = pick};
    const KnSnapshot *snap = kn_metadata_snapshot(md);
    while (snap && snap->snapshot_id != since) {
        KN_TRY(visit_own(pick->tbl, snap, &visit, err));
        snap = snap->parent_id < 0 ? NULL : kn_metadata_find_snapshot(md, snap->parent_id);
    }
    return KN_OK;
}

/* ---- picking ---- */

/* On a newer base all that was checked is checked again. */
static KnCode validate(void *arg, const KnSnapshot *base, const KnSnapshot *head, KnErr *err)
{
    Pick *pick = arg;
    (void)base;
    (void)head;
    KN_TRY(check_unpublished(pick->tbl, pick->wap_id, err));
    KN_TRY(check_not_picked(pick->tbl, pick->source_id, err));
    return check_partitions(pick, err);
}

static KnCode produce(Pick *pick, const char *operation, int64_t *ret_id, KnErr *err)
{
    char source[24];
    if (snprintf(source, sizeof(source), "%" PRId64, pick->source_id) < 0)
        source[0] = '\0';
    const char *summary[4] = {"source-snapshot-id", source, "published-wap-id", pick->wap_id};
    KnWriteOptions opts = {.summary = summary, .n_summary = pick->wap_id ? 2 : 1};
    KnSnapshotDraft draft = {.operation = operation,
                             .n_added = pick->added.len,
                             .added = pick->added.items,
                             .n_removed = pick->removed.len,
                             .removed = pick->removed.items,
                             .source_id = pick->source_id,
                             .validate = validate,
                             .arg = pick};
    KnWriter w;
    KN_TRY(kn_writer_init(&w, pick->tbl, NULL, &opts, err));
    KnCode rc = kn_snapshot_produce(&w, &draft, ret_id, err);
    kn_writer_done(&w, rc == KN_OK || rc == KN_E_UNKNOWN);
    return rc;
}

static KnCode pick_files(Pick *pick, const KnSnapshot *source, KnRefMove *ret, KnErr *err)
{
    const char *replaces = summary_text(source, "replace-partitions");
    const char *operation = source->operation ? source->operation : "";
    bool dynamic = !strcmp(operation, "overwrite") && replaces && !strcasecmp(replaces, "true");
    if (strcmp(operation, "append") != 0 && !dynamic)
        return kn_err_set(err, KN_E_REFUSED,
                          "table %s: cannot pick snapshot %" PRId64 " (%s): only appends, dynamic "
                          "overwrites, and a snapshot whose parent is the current one",
                          pick->tbl->name, source->snapshot_id, *operation ? operation : "unknown");
    operation = kn_arena_strdup(pick->arena, operation);
    if (dynamic)
        pick->partitions = kn_map_new();
    KnManifestVisit visit = {
        .opts = {.with_metrics = true, .with_deleted = true}, .fn = take_entry, .arg = pick};
    KN_TRY(visit_own(pick->tbl, source, &visit, err));
    KN_TRY(check_partitions(pick, err));
    KnRefMove move = {.before = pick->tbl->md->current_snapshot_id, .changed = true};
    KN_TRY(produce(pick, operation, &move.after, err));
    *ret = move;
    return KN_OK;
}

typedef struct PickCall {
    int64_t source_id;
    const char *wap_id; /* of publish: finds the source */
    KnRefMove *ret;
} PickCall;

static const KnSnapshot *find_source(const KnMetadata *md, const PickCall *call)
{
    if (!call->wap_id)
        return kn_metadata_find_snapshot(md, call->source_id);
    for (size_t i = 0; i < md->n_snapshots; i++)
        if (says(&md->snapshots[i], "wap.id", call->wap_id))
            return &md->snapshots[i];
    return NULL;
}

static KnCode check_source(const KnTable *tbl, const PickCall *call, const KnSnapshot *source,
                           KnErr *err)
{
    if (source)
        return KN_OK;
    if (call->wap_id)
        return kn_err_set(err, KN_E_NOTFOUND, "table %s: nothing is staged under the id '%s'",
                          tbl->name, call->wap_id);
    return kn_err_set(err, KN_E_NOTFOUND, "table %s has no snapshot %" PRId64, tbl->name,
                      call->source_id);
}

static KnCode pick_once(KnTable *tbl, void *arg, KnErr *err)
{
    const PickCall *call = arg;
    const KnSnapshot *source = find_source(tbl->md, call);
    KN_TRY(check_source(tbl, call, source, err));
    KN_ARENA_AUTO arena = kn_arena_new(0);
    Pick pick = {.tbl = tbl,
                 .arena = arena,
                 .source_id = source->snapshot_id,
                 .source_parent_id = source->parent_id};
    const char *wap_id = summary_text(source, "wap.id");
    pick.wap_id = wap_id && *wap_id ? kn_arena_strdup(arena, wap_id) : NULL;
    KN_TRY(check_unpublished(tbl, pick.wap_id, err));
    if (is_fast_forward(tbl->md, source))
        return kn_ref_move(tbl, "main", source->snapshot_id, call->ret, err);
    KN_TRY(check_not_picked(tbl, pick.source_id, err));
    KnCode rc = pick_files(&pick, source, call->ret, err);
    kn_map_free(pick.partitions);
    kn_vec_done(&pick.added);
    kn_vec_done(&pick.removed);
    return rc;
}

KnCode kn_table_cherry_pick(KnTable *tbl, int64_t snapshot_id, KnRefMove *ret, KnErr *err)
{
    PickCall call = {.source_id = snapshot_id, .ret = ret};
    return kn_commit_retry(tbl, pick_once, &call, err);
}

KnCode kn_table_publish(KnTable *tbl, const char *wap_id, KnRefMove *ret, KnErr *err)
{
    PickCall call = {.wap_id = wap_id, .ret = ret};
    if (!wap_id || !*wap_id)
        return kn_err_set(err, KN_E_INVAL, "publish what? give the id that was staged");
    return kn_commit_retry(tbl, pick_once, &call, err);
}
