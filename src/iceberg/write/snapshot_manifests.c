/* SPDX-License-Identifier: Apache-2.0 */
/*
 * snapshot_manifests.c - the manifests of a new snapshot out of those of its parent.
 *
 * Manifests are kept as they are unless they hold a file that goes: those are written anew, with
 * the file as DELETED and the others as EXISTING, numbers explicit. Added files come in manifests
 * of their own, one for each content (data, deletes) and partition spec. When a snapshot would have
 * more than commit.manifest.min-count-to-merge manifests of one content and spec, the old ones are
 * merged up to commit.manifest.target-size-bytes each.
 * Manifests without a live file are dropped, except those this snapshot has made.
 *
 * A removed file is looked for only in manifests whose spec and sequence numbers allow it. One that
 * is nowhere means that somebody else removed it: KN_E_CONFLICT.
 */
#include <inttypes.h>

#include "base/map.h"
#include "base/random.h"
#include "iceberg/write/write_internal.h"

typedef KN_VEC(KnManifestFile) FileVec;

/* What the files of one manifest have in common. */
typedef struct Kind {
    bool deletes;
    int32_t spec_id;
} Kind;

static Kind kind_of(const KnManifestFile *file)
{
    return (Kind){file->deletes, file->spec_id};
}

static bool is_of(const KnManifestFile *file, Kind kind)
{
    return file->deletes == kind.deletes && file->spec_id == kind.spec_id;
}

typedef struct Build {
    KnWriter *w;
    const KnSnapshotDraft *draft;
    int64_t snapshot_id;
    KnMap *removed; /* key -> entry: files that go, data and deletes */
    size_t n_found;
    int64_t n_made; /* for names */
    FileVec created, kept;
    int64_t n_replaced;
} Build;

/* ---- one manifest being written anew ---- */

typedef struct Rewrite {
    Build *build;
    KnEntryVec entries;
    size_t n_removed;
    bool probe; /* only count */
} Rewrite;

static KnCode rewrite_entry(void *arg, const KnManifestEntry *entry, KnErr *err)
{
    (void)err;
    Rewrite *rewrite = arg;
    Build *build = rewrite->build;
    KN_BUF_AUTO key;
    kn_buf_init(&key, (size_t)1 << 20);
    bool goes = build->removed && kn_map_find(build->removed, kn_manifest_entry_key(&key, entry));
    rewrite->n_removed += goes;
    if (rewrite->probe)
        return KN_OK;
    KnManifestEntry *copy = kn_manifest_entry_copy(build->w->arena, entry);
    copy->status = goes ? KN_ENTRY_DELETED : KN_ENTRY_EXISTING;
    if (goes)
        copy->snapshot_id = build->snapshot_id;
    *kn_vec_push(&rewrite->entries) = copy;
    return KN_OK;
}

static KnCode read_manifest(Rewrite *rewrite, const KnManifestFile *file, KnErr *err)
{
    const KnTable *tbl = rewrite->build->w->tbl;
    if (file->key_metadata.len > 0)
        return kn_err_set(err, KN_E_UNSUPPORTED, "table %s: manifest '%.300s' is encrypted",
                          tbl->name, file->path);
    KnManifestVisit visit = {
        .opts = {.with_metrics = !rewrite->probe}, .fn = rewrite_entry, .arg = rewrite};
    return kn_manifest_read(tbl->io, tbl->md, file, &visit, err);
}

static KnCode write_manifest(Build *build, const KnManifestEntry *const *entries, size_t n,
                             Kind kind, KnErr *err)
{
    KnWriter *w = build->w;
    const KnMetadata *md = w->tbl->md;
    const KnPartitionSpec *spec = kn_metadata_find_spec(md, kind.spec_id);
    if (!spec)
        return kn_err_set(err, KN_E_CONFLICT, "table %s: partition spec %d is gone", w->tbl->name,
                          kind.spec_id);
    const KnType *type = NULL;
    KN_TRY(kn_metadata_partition_type(w->arena, md, spec, &type, err));
    char attempt[37];
    const char *name = kn_arena_printf(w->arena, "%s-m%" PRId64 ".avro", kn_random_uuid4(attempt),
                                       build->n_made++);
    KnManifestWrite write = {
        .format_version = md->format_version,
        .schema = kn_metadata_schema(md),
        .spec = spec,
        .partition_type = type,
        .deletes = kind.deletes,
        .snapshot_id = build->snapshot_id,
        .entries = entries,
        .n_entries = n,
        .path = kn_writer_meta_path(w, name),
        .codec = kn_metadata_property(md, "write.avro.compression-codec", NULL),
    };
    return kn_manifest_write(w->tbl->io, w->arena, &write, kn_vec_push(&build->created), err);
}

/* ---- keeping and filtering ---- */

/* Can a file that goes be in this manifest? */
static bool may_hold(const KnManifestFile *file, const KnManifestEntry *entry)
{
    bool is_delete = entry->file.content != KN_CONTENT_DATA;
    return is_of(file, (Kind){is_delete, entry->file.spec_id}) &&
           file->min_sequence_number <= entry->sequence_number &&
           file->sequence_number >= entry->sequence_number;
}

static bool may_hold_any(const Build *build, const KnManifestFile *file)
{
    const KnSnapshotDraft *draft = build->draft;
    for (size_t i = 0; i < draft->n_removed; i++) {
        if (may_hold(file, draft->removed[i]))
            return true;
    }
    for (size_t i = 0; i < draft->n_removed_deletes; i++) {
        if (may_hold(file, draft->removed_deletes[i]))
            return true;
    }
    return false;
}

static KnCode filter_manifest(Build *build, const KnManifestFile *file, KnErr *err)
{
    Rewrite probe = {.build = build, .probe = true};
    if (may_hold_any(build, file))
        KN_TRY(read_manifest(&probe, file, err));
    if (probe.n_removed == 0) {
        *kn_vec_push(&build->kept) = *file;
        return KN_OK;
    }
    Rewrite rewrite = {.build = build};
    KnCode rc = read_manifest(&rewrite, file, err);
    if (rc == KN_OK)
        rc = write_manifest(build, rewrite.entries.items, rewrite.entries.len, kind_of(file), err);
    build->n_found += rewrite.n_removed;
    build->n_replaced++;
    kn_vec_done(&rewrite.entries);
    return rc;
}

static KnCode check_found(const Build *build, KnErr *err)
{
    size_t want = build->draft->n_removed + build->draft->n_removed_deletes;
    if (build->n_found >= want)
        return KN_OK;
    return kn_err_set(err, KN_E_CONFLICT,
                      "table %s: %zu of the %zu files to remove are not in the table any more: "
                      "another writer removed them",
                      build->w->tbl->name, want - build->n_found, want);
}

static void note_removed(Build *build)
{
    const KnSnapshotDraft *draft = build->draft;
    KN_BUF_AUTO key;
    kn_buf_init(&key, (size_t)1 << 20);
    build->removed = kn_map_new();
    for (size_t i = 0; i < draft->n_removed; i++)
        *kn_map_get_or_add(build->removed, kn_manifest_entry_key(&key, draft->removed[i]), NULL) =
            build;
    for (size_t i = 0; i < draft->n_removed_deletes; i++)
        *kn_map_get_or_add(build->removed, kn_manifest_entry_key(&key, draft->removed_deletes[i]),
                           NULL) = build;
}

/* ---- merging ---- */

static size_t count_mergeable(const FileVec *files, Kind kind)
{
    size_t n = 0;
    for (size_t i = 0; i < files->len; i++)
        n += is_of(&files->items[i], kind);
    return n;
}

typedef struct Merging {
    Kind kind;
    int64_t target; /* bytes of a merged manifest */
    size_t at;      /* in the kept ones */
    FileVec rest;   /* that stay as they are */
} Merging;

/* Takes kept manifests of the kind into one, until it is full. */
static KnCode merge_bin(Build *build, Merging *merging, KnErr *err)
{
    Rewrite rewrite = {.build = build};
    const KnManifestFile *last = NULL;
    int64_t size = 0;
    size_t n = 0;
    KnCode rc = KN_OK;
    for (; rc == KN_OK && merging->at < build->kept.len; merging->at++) {
        const KnManifestFile *file = &build->kept.items[merging->at];
        if (!is_of(file, merging->kind) || file->length >= merging->target) {
            *kn_vec_push(&merging->rest) = *file;
            continue;
        }
        if (n > 0 && size + file->length > merging->target)
            break;
        last = file;
        size += file->length;
        n++;
        rc = read_manifest(&rewrite, file, err);
    }
    if (rc == KN_OK && n == 1)
        *kn_vec_push(&merging->rest) = *last;
    else if (rc == KN_OK && n > 1)
        rc = write_manifest(build, rewrite.entries.items, rewrite.entries.len, merging->kind, err);
    build->n_replaced += n > 1 ? (int64_t)n : 0;
    kn_vec_done(&rewrite.entries);
    return rc;
}

static KnCode merge(Build *build, Kind kind, KnErr *err)
{
    const KnMetadata *md = build->w->tbl->md;
    const char *enabled = kn_metadata_property(md, "commit.manifest-merge.enabled", "true");
    int64_t min = kn_write_property_i64(md, "commit.manifest.min-count-to-merge", 100);
    size_t n = count_mergeable(&build->kept, kind);
    if (strcasecmp(enabled, "true") != 0 || (int64_t)n + 1 <= min)
        return KN_OK;
    KnMap *removed = build->removed;
    build->removed = NULL; /* what was to go is gone from the kept ones */
    Merging merging = {.kind = kind};
    merging.target =
        kn_write_property_i64(md, "commit.manifest.target-size-bytes", INT64_C(8) << 20);
    KnCode rc = KN_OK;
    while (rc == KN_OK && merging.at < build->kept.len)
        rc = merge_bin(build, &merging, err);
    build->removed = removed;
    kn_vec_done(&build->kept);
    build->kept = merging.rest;
    return rc;
}

/* Every kind of which this snapshot has a manifest of its own. */
static KnCode merge_all(Build *build, KnErr *err)
{
    size_t n = build->created.len;
    for (size_t i = 0; i < n; i++) {
        Kind kind = kind_of(&build->created.items[i]);
        size_t first = 0;
        while (!is_of(&build->created.items[first], kind))
            first++;
        if (first == i)
            KN_TRY(merge(build, kind, err));
    }
    return KN_OK;
}

/* ---- all ---- */

/* A manifest for each partition spec among the entries, in the order in which they come up. */
static KnCode write_added(Build *build, const KnManifestEntry *const *entries, size_t n,
                          bool deletes, KnErr *err)
{
    KnEntryVec same = {0};
    KN_VEC(int32_t) done = {0};
    KnCode rc = KN_OK;
    for (size_t i = 0; rc == KN_OK && i < n; i++) {
        Kind kind = {deletes, entries[i]->file.spec_id};
        bool seen = false;
        kn_vec_foreach (&done, spec_id)
            seen |= *spec_id == kind.spec_id;
        if (seen)
            continue;
        *kn_vec_push(&done) = kind.spec_id;
        same.len = 0;
        for (size_t k = i; k < n; k++) {
            if (entries[k]->file.spec_id == kind.spec_id)
                *kn_vec_push(&same) = entries[k];
        }
        rc = write_manifest(build, same.items, same.len, kind, err);
    }
    kn_vec_done(&same);
    kn_vec_done(&done);
    return rc;
}

static KnCode build_all(Build *build, const KnSnapshot *parent, KnErr *err)
{
    KnWriter *w = build->w;
    const KnSnapshotDraft *draft = build->draft;
    KnManifestFile *files = NULL;
    size_t n = 0;
    if (parent)
        KN_TRY(kn_manifest_list_read(w->tbl->io, w->arena, parent, &files, &n, err));
    KN_TRY(write_added(build, draft->added, draft->n_added, false, err));
    KN_TRY(write_added(build, draft->added_deletes, draft->n_added_deletes, true, err));
    for (size_t i = 0; i < n; i++) {
        if (!kn_manifest_file_is_dead(&files[i]))
            KN_TRY(filter_manifest(build, &files[i], err));
    }
    KN_TRY(check_found(build, err));
    return merge_all(build, err);
}

KnCode kn_snapshot_manifests(KnWriter *w, const KnSnapshotDraft *draft, const KnSnapshot *parent,
                             int64_t snapshot_id, KnManifestSet *ret, KnErr *err)
{
    Build build = {.w = w, .draft = draft, .snapshot_id = snapshot_id};
    note_removed(&build);
    KnCode rc = build_all(&build, parent, err);
    if (rc == KN_OK) {
        size_t n = build.created.len + build.kept.len;
        ret->files = kn_arena_alloc(w->arena, (n + 1) * sizeof(*ret->files));
        for (size_t i = 0; i < build.created.len; i++)
            ret->files[i] = build.created.items[i];
        for (size_t i = 0; i < build.kept.len; i++)
            ret->files[build.created.len + i] = build.kept.items[i];
        ret->n = n;
        ret->n_created = (int64_t)build.created.len;
        ret->n_kept = (int64_t)build.kept.len;
        ret->n_replaced = build.n_replaced;
    }
    kn_map_free(build.removed);
    kn_vec_done(&build.created);
    kn_vec_done(&build.kept);
    return rc;
}
