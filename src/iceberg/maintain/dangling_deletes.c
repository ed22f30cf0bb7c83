/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dangling_deletes.c - delete files that can apply to no live data file are removed.
 *
 * What a delete file may apply to is its scope: one data file by its path, a partition of a spec,
 * or, for equality deletes of an unpartitioned spec, the whole table. Delete manifests are read
 * first; of the data files only the least sequence number in each scope is kept, one manifest at a
 * time. A delete file is dangling when its scope is empty, or holds nothing as old as it must be.
 *
 * Others may commit meanwhile: data files that they add are newer than the deletes, or rewritten
 * from files that are live here, under the number of a snapshot that had those.
 */
#include "base/fault.h"
#include "base/map.h"
#include "iceberg/maintain/compact.h"
#include "iceberg/manifest/partition_key.h"
#include "iceberg/write/write_internal.h"

typedef struct Scope {
    int64_t least; /* data sequence number; INT64_MAX = no live data file */
} Scope;

typedef struct Doubtful {
    const KnManifestEntry *entry;
    const Scope *scope;
} Doubtful;

typedef struct Search {
    KnWriter *w;
    KnMap *scopes;
    KN_VEC(Doubtful) deletes;
    KnBuf key;
} Search;

/* ---- scopes ---- */

static KnStr file_scope(Search *s, KnStr path)
{
    kn_buf_reset(&s->key);
    kn_buf_char(&s->key, 'f');
    kn_buf_str(&s->key, path);
    return (KnStr){s->key.data, s->key.len};
}

static KnStr partition_scope(Search *s, const KnDataFile *file)
{
    kn_buf_reset(&s->key);
    kn_buf_char(&s->key, 'p');
    kn_partition_key(&s->key, file);
    return (KnStr){s->key.data, s->key.len};
}

static KnStr scope_of_delete(Search *s, const KnDataFile *file)
{
    if (file->content == KN_CONTENT_POSITION_DELETES) {
        KnStr path = kn_delete_named_data_file(file);
        return path.ptr ? file_scope(s, path) : partition_scope(s, file);
    }
    const KnPartitionSpec *spec = kn_metadata_find_spec(s->w->tbl->md, file->spec_id);
    return spec && kn_partition_is_unpartitioned(spec) ? KN_STR_LIT("t") : partition_scope(s, file);
}

static KnCode take_delete(void *arg, const KnManifestEntry *entry, KnErr *err)
{
    Search *s = arg;
    bool made = false;
    void **slot = kn_map_get_or_add(s->scopes, scope_of_delete(s, &entry->file), &made);
    KN_TRY(kn_buf_check(&s->key, err));
    if (made) {
        Scope *scope = kn_arena_zalloc(s->w->arena, sizeof(*scope));
        scope->least = INT64_MAX;
        *slot = scope;
    }
    Doubtful del = {kn_manifest_entry_copy(s->w->arena, entry), *slot};
    *kn_vec_push(&s->deletes) = del;
    return KN_OK;
}

static void lower(const Search *s, KnStr key, int64_t sequence)
{
    Scope *scope = kn_map_find(s->scopes, key);
    if (scope && sequence < scope->least)
        scope->least = sequence;
}

static KnCode take_data(void *arg, const KnManifestEntry *entry, KnErr *err)
{
    Search *s = arg;
    lower(s, KN_STR_LIT("t"), entry->sequence_number);
    lower(s, file_scope(s, kn_str(entry->file.path)), entry->sequence_number);
    lower(s, partition_scope(s, &entry->file), entry->sequence_number);
    return kn_buf_check(&s->key, err);
}

static bool is_dangling(const Doubtful *del)
{
    int64_t sequence = del->entry->sequence_number;
    bool equality = del->entry->file.content == KN_CONTENT_EQUALITY_DELETES;
    return equality ? del->scope->least >= sequence : del->scope->least > sequence;
}

/* ---- manifests ---- */

static KnCode read_side(Search *s, const KnManifestFile *files, size_t n, bool deletes, KnErr *err)
{
    const KnTable *tbl = s->w->tbl;
    KnManifestVisit visit = {
        .opts = {.with_metrics = deletes}, .fn = deletes ? take_delete : take_data, .arg = s};
    for (size_t i = 0; i < n; i++) {
        if (files[i].deletes != deletes || kn_manifest_file_is_dead(&files[i]))
            continue;
        KnCode rc = kn_manifest_read(tbl->io, tbl->md, &files[i], &visit, err);
        if (rc != KN_OK)
            return kn_err_wrap(err, rc, "table %s: manifest '%.200s'", tbl->name, files[i].path);
        KN_TRY(kn_writer_check_cancelled(s->w, err));
    }
    return KN_OK;
}

static KnCode search(Search *s, const KnSnapshot *head, KnEntryVec *ret, KnErr *err)
{
    KnManifestFile *files = NULL;
    size_t n = 0;
    KN_TRY(kn_manifest_list_read(s->w->tbl->io, s->w->arena, head, &files, &n, err));
    KN_TRY(read_side(s, files, n, true, err));
    if (s->deletes.len == 0)
        return KN_OK;
    KN_TRY(read_side(s, files, n, false, err));
    kn_vec_foreach (&s->deletes, del)
        if (is_dangling(del))
            *kn_vec_push(ret) = del->entry;
    return KN_OK;
}

static KnCode find_dangling(KnWriter *w, const KnSnapshot *head, KnEntryVec *ret, KnErr *err)
{
    Search s = {.w = w, .scopes = kn_map_new()};
    kn_buf_init(&s.key, (size_t)64 << 20);
    KnCode rc = search(&s, head, ret, err);
    kn_map_free(s.scopes);
    kn_vec_done(&s.deletes);
    kn_buf_done(&s.key);
    return rc;
}

static KnCode remove_found(KnWriter *w, KnEntryVec *found, int64_t *ret_id, KnErr *err)
{
    const KnSnapshot *head = NULL;
    KN_TRY(kn_branch_find(w->tbl, kn_writer_branch(w), &head, err));
    if (!head)
        return KN_OK;
    KN_TRY(find_dangling(w, head, found, err));
    if (found->len == 0)
        return KN_OK;
    KnSnapshotDraft draft = {
        .operation = "replace", .n_removed_deletes = found->len, .removed_deletes = found->items};
    return kn_snapshot_produce(w, &draft, ret_id, err);
}

KnCode kn_write_remove_dangling(KnTable *tbl, const KnWriteOptions *opts, int64_t *ret_snapshot_id,
                                int64_t *ret_files, KnErr *err)
{
    KnWriter w;
    KN_TRY(kn_writer_init(&w, tbl, NULL, opts, err));
    KnEntryVec found = {0};
    int64_t id = -1;
    KnCode rc = remove_found(&w, &found, &id, err);
    int64_t n = (int64_t)found.len;
    kn_vec_done(&found);
    kn_writer_done(&w, rc == KN_OK || rc == KN_E_UNKNOWN);
    if (rc != KN_OK)
        return kn_err_wrap(err, rc, "remove dangling deletes of table %s", tbl->name);
    *ret_snapshot_id = id;
    *ret_files = n;
    return KN_OK;
}
