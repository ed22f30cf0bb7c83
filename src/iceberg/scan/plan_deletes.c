/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan_deletes.c - which delete files apply to which data file.
 *
 * Lists are found by hash (file path; spec id and partition tuple), sorted by sequence number, and
 * cut by bisection; equality deletes are then compared with the data file's column bounds so that a
 * file is not read for keys that it cannot hold. That comparison may only ever err towards
 * "applies": NaN is outside the bounds, UUID order differs between writers, and absent counts say
 * nothing.
 *
 * Ownership: everything is in the plan's arena; maps and growing arrays are tied to it by
 * kn_arena_defer().
 */
#include "iceberg/scan/plan_deletes.h"

#include <inttypes.h>
#include <string.h>

#include "base/map.h"
#include "base/vec.h"
#include "iceberg/expr/expr_range.h"
#include "iceberg/manifest/partition_key.h"

typedef struct EqField {
    const KnField *field;
    KnRange range;
} EqField;

typedef struct DeleteFile {
    const KnManifestEntry *entry;
    size_t order; /* of arrival */
    bool used;
    size_t n_fields; /* equality deletes with usable bounds or counts */
    const EqField *fields;
} DeleteFile;

typedef KN_VEC(DeleteFile *) DeleteList;

struct KnDeleteIndex {
    KnArena *arena;
    const KnMetadata *md;
    DeleteList all;
    DeleteList global_eq;
    KnMap *eq_by_partition;  /* DeleteList * */
    KnMap *pos_by_partition; /* DeleteList * */
    KnMap *pos_by_path;      /* DeleteList * */
    KnMap *dv_by_path;       /* DeleteFile * */
    KnMap *lists;            /* every DeleteList, for sealing */
    DeleteList found;        /* scratch of one match */
    KnBuf key;
};

static void index_done(void *arg)
{
    KnDeleteIndex *index = arg;
    for (size_t i = 0; i < kn_map_count(index->lists); i++) {
        KnStr key;
        void *list;
        if (kn_map_entry(index->lists, i, &key, &list))
            kn_vec_done((DeleteList *)list);
    }
    kn_map_free(index->eq_by_partition);
    kn_map_free(index->pos_by_partition);
    kn_map_free(index->pos_by_path);
    kn_map_free(index->dv_by_path);
    kn_map_free(index->lists);
    kn_vec_done(&index->all);
    kn_vec_done(&index->global_eq);
    kn_vec_done(&index->found);
    kn_buf_done(&index->key);
}

KnDeleteIndex *kn_delete_index_new(KnArena *arena, const KnMetadata *md)
{
    KnDeleteIndex *index = kn_arena_zalloc(arena, sizeof(*index));
    index->arena = arena;
    index->md = md;
    index->eq_by_partition = kn_map_new();
    index->pos_by_partition = kn_map_new();
    index->pos_by_path = kn_map_new();
    index->dv_by_path = kn_map_new();
    index->lists = kn_map_new();
    kn_buf_init(&index->key, (size_t)1 << 30);
    kn_arena_defer(arena, index_done, index);
    return index;
}

/* ---- keys ---- */

static KnStr partition_key(KnDeleteIndex *index, const KnDataFile *file)
{
    KnBuf *buf = &index->key;
    kn_buf_reset(buf);
    kn_partition_key(buf, file);
    return (KnStr){buf->data, buf->len};
}

static void list_add(KnDeleteIndex *index, KnMap *map, KnStr key, DeleteFile *del)
{
    bool made;
    void **slot = kn_map_get_or_add(map, key, &made);
    if (made) {
        DeleteList *list = kn_arena_zalloc(index->arena, sizeof(*list));
        *slot = list;
        bool fresh;
        KnStr address = {(const char *)&list, sizeof(list)};
        *kn_map_get_or_add(index->lists, address, &fresh) = list;
    }
    *kn_vec_push((DeleteList *)*slot) = del;
}

/* ---- adding ---- */

static KnCode add_vector(KnDeleteIndex *index, DeleteFile *del, KnErr *err)
{
    const KnDataFile *file = &del->entry->file;
    if (!file->referenced_data_file || file->content_offset < 0 || file->content_size < 0)
        return kn_err_set(err, KN_E_CORRUPT,
                          "deletion vector in '%.300s' lacks its data file, offset or size",
                          file->path);
    bool made;
    void **slot = kn_map_get_or_add(index->dv_by_path, kn_str(file->referenced_data_file), &made);
    if (!made)
        return kn_err_set(err, KN_E_CORRUPT, "data file '%.400s' has two deletion vectors",
                          file->referenced_data_file);
    *slot = del;
    return KN_OK;
}

static KnCode add_equality(KnDeleteIndex *index, DeleteFile *del, KnErr *err)
{
    const KnDataFile *file = &del->entry->file;
    if (file->n_equality_ids == 0)
        return kn_err_set(err, KN_E_CORRUPT, "equality delete file '%.400s' names no columns",
                          file->path);
    EqField *fields = kn_arena_zalloc(index->arena, file->n_equality_ids * sizeof(*fields));
    for (size_t i = 0; i < file->n_equality_ids; i++) {
        const KnField *field = kn_metadata_find_field(index->md, file->equality_ids[i]);
        if (!field)
            return kn_err_set(err, KN_E_CORRUPT,
                              "equality delete file '%.300s' names column id %d, which no schema "
                              "of the table has",
                              file->path, file->equality_ids[i]);
        fields[i].field = field;
        fields[i].range = kn_range_of_file(file, field);
    }
    del->n_fields = file->n_equality_ids;
    del->fields = fields;
    const KnPartitionSpec *spec = kn_metadata_find_spec(index->md, file->spec_id);
    if (!spec)
        return kn_err_set(err, KN_E_CORRUPT, "delete file '%.300s' has unknown partition spec %d",
                          file->path, file->spec_id);
    if (kn_partition_is_unpartitioned(spec))
        *kn_vec_push(&index->global_eq) = del;
    else
        list_add(index, index->eq_by_partition, partition_key(index, file), del);
    return KN_OK;
}

KnCode kn_delete_index_add(KnDeleteIndex *index, const KnManifestEntry *entry, KnErr *err)
{
    DeleteFile *del = kn_arena_zalloc(index->arena, sizeof(*del));
    del->entry = kn_manifest_entry_copy(index->arena, entry);
    del->order = index->all.len;
    *kn_vec_push(&index->all) = del;
    const KnDataFile *file = &del->entry->file;
    if (file->content == KN_CONTENT_EQUALITY_DELETES)
        return add_equality(index, del, err);
    if (file->content != KN_CONTENT_POSITION_DELETES)
        return kn_err_set(err, KN_E_CORRUPT, "data file '%.400s' is in a manifest of deletes",
                          file->path);
    if (file->format == KN_FORMAT_PUFFIN)
        return add_vector(index, del, err);
    KnStr path = kn_delete_named_data_file(file);
    if (path.ptr)
        list_add(index, index->pos_by_path, path, del);
    else
        list_add(index, index->pos_by_partition, partition_key(index, file), del);
    return KN_OK;
}

static int compare_sequence(const void *a, const void *b)
{
    const DeleteFile *x = *(DeleteFile *const *)a;
    const DeleteFile *y = *(DeleteFile *const *)b;
    int64_t sx = x->entry->sequence_number;
    int64_t sy = y->entry->sequence_number;
    if (sx != sy)
        return sx < sy ? -1 : 1;
    return x->order < y->order ? -1 : x->order > y->order;
}

static void list_sort(DeleteList *list)
{
    if (list->len > 1)
        qsort(list->items, list->len, sizeof(DeleteFile *), compare_sequence);
}

void kn_delete_index_seal(KnDeleteIndex *index)
{
    list_sort(&index->global_eq);
    for (size_t i = 0; i < kn_map_count(index->lists); i++) {
        KnStr key;
        void *list;
        if (kn_map_entry(index->lists, i, &key, &list))
            list_sort(list);
    }
}

bool kn_delete_index_wants_metrics(const KnDeleteIndex *index)
{
    return index->global_eq.len > 0 || kn_map_count(index->eq_by_partition) > 0;
}

/* ---- matching ---- */

static size_t first_from(const DeleteList *list, int64_t sequence)
{
    size_t low = 0;
    size_t high = list->len;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (list->items[mid]->entry->sequence_number < sequence)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

static bool may_hold_keys(const DeleteFile *del, const KnDataFile *data)
{
    for (size_t i = 0; i < del->n_fields; i++) {
        KnRange range = kn_range_of_file(data, del->fields[i].field);
        if (!kn_range_may_overlap(&range, &del->fields[i].range))
            return false;
    }
    return true;
}

static void match_equality(KnDeleteIndex *index, const DeleteList *list,
                           const KnManifestEntry *data)
{
    if (!list || data->sequence_number == INT64_MAX)
        return;
    for (size_t i = first_from(list, data->sequence_number + 1); i < list->len; i++)
        if (may_hold_keys(list->items[i], &data->file))
            *kn_vec_push(&index->found) = list->items[i];
}

static void match_position(KnDeleteIndex *index, const DeleteList *list,
                           const KnManifestEntry *data)
{
    if (!list)
        return;
    for (size_t i = first_from(list, data->sequence_number); i < list->len; i++)
        *kn_vec_push(&index->found) = list->items[i];
}

static KnCode match_positions(KnDeleteIndex *index, const KnManifestEntry *data, KnErr *err)
{
    KnStr path = kn_str(data->file.path);
    DeleteFile *dv = kn_map_find(index->dv_by_path, path);
    if (!dv) {
        match_position(
            index, kn_map_find(index->pos_by_partition, partition_key(index, &data->file)), data);
        match_position(index, kn_map_find(index->pos_by_path, path), data);
        return KN_OK;
    }
    if (dv->entry->sequence_number < data->sequence_number)
        return kn_err_set(err, KN_E_CORRUPT,
                          "deletion vector of '%.300s' has sequence number %" PRId64
                          ", older than its data file's %" PRId64,
                          data->file.path, dv->entry->sequence_number, data->sequence_number);
    *kn_vec_push(&index->found) = dv;
    return KN_OK;
}

KnCode kn_delete_index_match(KnDeleteIndex *index, const KnManifestEntry *data, KnScanTask *task,
                             KnErr *err)
{
    task->n_deletes = 0;
    task->deletes = NULL;
    if (index->all.len == 0)
        return KN_OK;
    index->found.len = 0;
    match_equality(index, &index->global_eq, data);
    if (kn_map_count(index->eq_by_partition) > 0)
        match_equality(
            index, kn_map_find(index->eq_by_partition, partition_key(index, &data->file)), data);
    KN_TRY(match_positions(index, data, err));
    if (index->found.len == 0)
        return KN_OK;
    list_sort(&index->found);
    const KnManifestEntry **deletes =
        kn_arena_alloc(index->arena, index->found.len * sizeof(*deletes));
    for (size_t i = 0; i < index->found.len; i++) {
        index->found.items[i]->used = true;
        deletes[i] = index->found.items[i]->entry;
    }
    task->n_deletes = index->found.len;
    task->deletes = deletes;
    return KN_OK;
}

void kn_delete_index_used(const KnDeleteIndex *index, int64_t *ret_files, int64_t *ret_bytes)
{
    int64_t files = 0;
    int64_t bytes = 0;
    kn_vec_foreach (&index->all, del) {
        if (!(*del)->used)
            continue;
        const KnDataFile *file = &(*del)->entry->file;
        files++;
        bytes += file->content_size >= 0 ? file->content_size : file->size_bytes;
    }
    *ret_files = files;
    *ret_bytes = bytes;
}
