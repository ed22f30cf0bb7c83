/* SPDX-License-Identifier: Apache-2.0 */
/*
 * read_equality.c - equality deletes: for each set of columns, the rows whose keys were deleted.
 *
 * A delete applies to some of the files only (those older than it, in its partition). The lists of
 * deletes that apply to the files are mostly tails of one another: such lists form a chain c, a
 * delete has a place j in it, and a file starts at some place o, so that "applies" is `c = c AND
 * o <= j`. Of deletes with the same key the last place is enough. So one set of keys with their
 * last places (read_keys.c) finds the rows, however many delete files there are, and the key
 * columns of the data files are read once. Where there are more keys than MAX_KEYS, they take
 * turns, and the columns are read as often.
 *
 * Delete files are projected by field id to the table's newest type of the field, as data files
 * are.
 */
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/random.h"
#include "iceberg/scan/read_internal.h"

typedef struct Chain {
    size_t n;
    const size_t *numbers; /* of delete files */
} Chain;

/* A data file, and the deletes that apply to it. */
typedef struct Listed {
    KnReadFile *file;
    Chain list;
    size_t chain, start;
} Listed;

/* Where a delete file stands. */
typedef struct DeletePlaces {
    size_t n;
    const KnKeyPlace *items; /* (c, j) */
} DeletePlaces;

/* Keys in memory at once: 36 MiB of them. */
enum { MAX_KEYS = 1400000 };

/* All deletes over one set of columns. */
typedef struct Loader {
    KnRead *read;
    size_t n_ids;
    const int32_t *ids;                      /* ascending */
    KnMap *files;                            /* path -> 1 + its number */
    KN_VEC(const KnManifestEntry *) entries; /* distinct delete files */
    KN_VEC(Chain) chains;
    size_t n_listed;
    Listed *listed;       /* longest list first */
    Listed **by_index;    /* of the file in the read; NULL = no delete applies */
    KnReadFile **deletes; /* the delete files, looked at */
    DeletePlaces *places; /* of each delete file */
    uint64_t seed;
    KnVector *key_vectors; /* of the batch at hand */
    KnKeySet *keys;
} Loader;

static int compare_ids(const void *a, const void *b)
{
    int32_t x = *(const int32_t *)a;
    int32_t y = *(const int32_t *)b;
    return x < y ? -1 : x > y;
}

static const int32_t *sorted_ids(KnArena *arena, const KnDataFile *file)
{
    int32_t *ids = kn_arena_alloc(arena, (file->n_equality_ids + 1) * sizeof(*ids));
    if (file->n_equality_ids > 0) {
        memcpy(ids, file->equality_ids, file->n_equality_ids * sizeof(*ids));
        qsort(ids, file->n_equality_ids, sizeof(*ids), compare_ids);
    }
    return ids;
}

static bool belongs(const Loader *l, const KnManifestEntry *entry)
{
    const KnDataFile *file = &entry->file;
    if (file->content != KN_CONTENT_EQUALITY_DELETES || file->n_equality_ids != l->n_ids)
        return false;
    const int32_t *ids = sorted_ids(l->read->arena, file);
    return memcmp(ids, l->ids, l->n_ids * sizeof(*ids)) == 0;
}

/* ---- chains ---- */

static size_t number_of(Loader *l, const KnManifestEntry *entry)
{
    bool made;
    void **slot = kn_map_get_or_add(l->files, kn_str(entry->file.path), &made);
    if (made) {
        *kn_vec_push(&l->entries) = entry;
        *slot = (void *)(uintptr_t)l->entries.len; /* NOLINT(performance-no-int-to-ptr) */
    }
    return (uintptr_t)*slot - 1;
}

static Chain list_of(Loader *l, const KnScanTask *task)
{
    size_t *numbers = kn_arena_alloc(l->read->arena, (task->n_deletes + 1) * sizeof(*numbers));
    size_t n = 0;
    for (size_t i = 0; i < task->n_deletes; i++)
        if (belongs(l, task->deletes[i]))
            numbers[n++] = number_of(l, task->deletes[i]);
    return (Chain){n, numbers};
}

static bool is_tail(const Chain *tail, const Chain *chain)
{
    return tail->n <= chain->n && memcmp(tail->numbers, chain->numbers + (chain->n - tail->n),
                                         tail->n * sizeof(*tail->numbers)) == 0;
}

static int compare_longest(const void *a, const void *b)
{
    const Listed *x = a;
    const Listed *y = b;
    if (x->list.n != y->list.n)
        return x->list.n > y->list.n ? -1 : 1;
    return x->file->index < y->file->index ? -1 : 1;
}

static size_t chain_of(Loader *l, const Chain *list)
{
    for (size_t c = 0; c < l->chains.len; c++)
        if (is_tail(list, &l->chains.items[c]))
            return c;
    *kn_vec_push(&l->chains) = *list;
    return l->chains.len - 1;
}

static void make_chains(Loader *l)
{
    KnRead *read = l->read;
    l->listed = kn_arena_zalloc(read->arena, read->n_files * sizeof(*l->listed));
    l->by_index = kn_arena_zalloc(read->arena, read->n_files * sizeof(Listed *));
    for (size_t i = 0; i < read->n_files; i++) {
        Chain list = list_of(l, read->files[i].task);
        if (list.n > 0)
            l->listed[l->n_listed++] = (Listed){.file = &read->files[i], .list = list};
    }
    qsort(l->listed, l->n_listed, sizeof(*l->listed), compare_longest);
    for (size_t i = 0; i < l->n_listed; i++) {
        Listed *listed = &l->listed[i];
        listed->chain = chain_of(l, &listed->list);
        listed->start = l->chains.items[listed->chain].n - listed->list.n;
        l->by_index[listed->file->index] = listed;
    }
}

/* The chains turned over: for each delete file its places. */
static void make_places(Loader *l)
{
    KnArena *arena = l->read->arena;
    KnKeyPlace **items = kn_arena_zalloc(arena, (l->entries.len + 1) * sizeof(*items));
    l->places = kn_arena_zalloc(arena, (l->entries.len + 1) * sizeof(*l->places));
    for (int fill = 0; fill < 2; fill++) {
        for (size_t c = 0; c < l->chains.len; c++) {
            for (size_t j = 0; j < l->chains.items[c].n; j++) {
                size_t number = l->chains.items[c].numbers[j];
                if (fill)
                    items[number][l->places[number].n] = (KnKeyPlace){(uint32_t)c, (uint32_t)j};
                l->places[number].n++;
            }
        }
        for (size_t i = 0; i < l->entries.len && !fill; i++) {
            items[i] = kn_arena_alloc(arena, l->places[i].n * sizeof(**items));
            l->places[i] = (DeletePlaces){.items = items[i]};
        }
    }
}

/* `expr AS k0, …, ` */
static KnCode write_keys(const Loader *l, const KnProject *project, KnBuf *buf, KnErr *err)
{
    KN_BUF_AUTO key;
    kn_buf_init(&key, (size_t)1 << 30);
    for (size_t i = 0; i < l->n_ids; i++) {
        kn_buf_reset(&key);
        KN_TRY(kn_read_field_sql(project, l->ids[i], &key, err));
        KN_TRY(kn_buf_check(&key, err));
        kn_buf_printf(buf, "%s AS k%zu, ", key.data, i);
    }
    return KN_OK;
}

/* ---- delete files to a set of keys ---- */

typedef struct Shape {
    Loader *l;
    KnReadFile *const *files;
} Shape;

/* Keys of rows that are all of one delete file. */
static KnCode add_run(const Shape *shape, int64_t number, const KnFingerprint *keys, size_t n,
                      KnErr *err)
{
    const DeletePlaces *places = &shape->l->places[shape->files[number]->index];
    for (size_t i = 0; i < places->n; i++)
        KN_TRY(kn_key_set_add(shape->l->keys, keys, n, places->items[i], err));
    return KN_OK;
}

static KnCode add_batch(void *arg, KnBatch *batch, KnErr *err)
{
    const Shape *shape = arg;
    const Loader *l = shape->l;
    KnFingerprint prints[2048]; /* as many as a batch has rows (engine/batch.h) */
    KnVector file = kn_batch_vector(batch, l->n_ids);
    const int64_t *numbers = file.data;
    size_t rows = kn_batch_rows(batch);
    for (size_t i = 0; i < l->n_ids; i++)
        l->key_vectors[i] = kn_batch_vector(batch, i);
    KN_TRY(kn_fingerprint_rows(l->key_vectors, l->n_ids, rows, l->seed, prints, err));
    for (size_t first = 0, end; first < rows; first = end) {
        for (end = first + 1; end < rows && numbers[end] == numbers[first];)
            end++;
        KN_TRY(add_run(shape, numbers[first], &prints[first], end - first, err));
    }
    return KN_OK;
}

static KnCode load_shape(void *arg, KnReadFile *const *files, size_t n, KnErr *err)
{
    Loader *l = arg;
    Shape shape = {.l = l, .files = files};
    KnProject project = {.read = l->read, .n_files = n, .files = files, .as_key = true};
    KN_BUF_AUTO sql;
    kn_buf_init(&sql, (size_t)1 << 30);
    kn_buf_text(&sql, "SELECT ");
    KN_TRY(write_keys(l, &project, &sql, err));
    kn_buf_text(&sql, "CAST(file_index AS BIGINT) AS d FROM ");
    kn_read_source_sql(l->read, files, n, &sql);
    KN_TRY(kn_buf_check(&sql, err));
    return kn_session_visit(l->read->ses, sql.data, add_batch, &shape, err);
}

static KnCode look_at_deletes(Loader *l, KnErr *err)
{
    KnReadFile *files = NULL;
    KN_TRY(kn_read_look(l->read, l->entries.items, l->entries.len, &files, err));
    l->deletes = kn_arena_alloc(l->read->arena, (l->entries.len + 1) * sizeof(*l->deletes));
    for (size_t i = 0; i < l->entries.len; i++)
        l->deletes[i] = &files[i];
    return KN_OK;
}

static uint64_t count_keys(const Loader *l)
{
    uint64_t keys = 0;
    for (size_t i = 0; i < l->entries.len; i++)
        keys += (uint64_t)l->deletes[i]->n_rows * l->places[i].n;
    return keys;
}

/* ---- rows of data files with these keys ---- */

/* Only rows that the read's filter lets through are asked about. */
static KnCode write_match(const Loader *l, const KnOutputs *out, const KnProject *project,
                          KnBuf *buf, KnErr *err)
{
    kn_buf_text(buf, "SELECT f, p FROM (SELECT * FROM (SELECT ");
    KN_TRY(kn_read_outputs_sql(out, project, buf, err));
    KN_TRY(write_keys(l, project, buf, err));
    kn_buf_text(buf, "CAST(file_index AS BIGINT) AS f, CAST(file_row_number AS BIGINT) AS p FROM ");
    kn_read_source_sql(l->read, project->files, project->n_files, buf);
    kn_buf_text(buf, ") AS b");
    KN_TRY(kn_read_where_sql(out, &l->read->opts, buf, err));
    kn_buf_text(buf, ") AS a WHERE ");
    kn_key_set_sql(l->keys, l->n_ids, buf);
    return kn_buf_check(buf, err);
}

static KnCode match_shape(void *arg, KnReadFile *const *files, size_t n, KnErr *err)
{
    Loader *l = arg;
    KnProject project = {.read = l->read, .n_files = n, .files = files, .as_key = true};
    KnKeyPlace *places = kn_arena_alloc(l->read->arena, n * sizeof(*places));
    for (size_t i = 0; i < n; i++) {
        const Listed *listed = l->by_index[files[i]->index];
        places[i] = (KnKeyPlace){(uint32_t)listed->chain, (uint32_t)listed->start};
    }
    kn_key_set_ask(l->keys, places, n);
    KnOutputs out = {0};
    KN_BUF_AUTO sql;
    kn_buf_init(&sql, (size_t)1 << 30);
    kn_read_outputs_fill(&out, &l->read->opts, true);
    KnCode rc = write_match(l, &out, &project, &sql, err);
    kn_vec_done(&out.fields);
    KN_TRY(rc);
    return kn_read_mark_query(l->read, files, n, sql.data, err);
}

static KnCode match_files(Loader *l, KnErr *err)
{
    KnReadFile **files = kn_arena_alloc(l->read->arena, l->n_listed * sizeof(*files));
    size_t n = 0;
    for (size_t i = 0; i < l->read->n_files; i++)
        if (l->by_index[i])
            files[n++] = &l->read->files[i];
    return kn_read_each_shape(files, n, match_shape, l, err);
}

static KnCode run_pass(Loader *l, const KnKeySetOptions *opts, KnErr *err)
{
    KN_TRY(kn_key_set_open(l->read->ses, opts, &l->keys, err));
    KnCode rc = kn_read_each_shape(l->deletes, l->entries.len, load_shape, l, err);
    if (rc == KN_OK)
        rc = match_files(l, err);
    l->keys = kn_key_set_close(l->keys);
    return rc;
}

/* Turns are given by hash: a sixteenth more than its share is room enough for each. */
static KnCode run_passes(Loader *l, KnErr *err)
{
    KN_TRY(look_at_deletes(l, err));
    uint64_t keys = count_keys(l);
    l->seed = (uint64_t)kn_random_id();
    KnKeySetOptions opts = {
        .seed = l->seed, .n_keys = keys, .n_passes = (size_t)(keys / MAX_KEYS) + 1};
    if (opts.n_passes > 1)
        opts.n_keys = keys / opts.n_passes / 16 * 17;
    for (opts.pass = 0; opts.pass < opts.n_passes; opts.pass++)
        KN_TRY(run_pass(l, &opts, err));
    return KN_OK;
}

static KnCode load_set(KnRead *read, const int32_t *ids, size_t n_ids, KnErr *err)
{
    Loader l = {.read = read, .ids = ids, .n_ids = n_ids, .files = kn_map_new()};
    l.key_vectors = kn_arena_alloc(read->arena, (n_ids + 1) * sizeof(*l.key_vectors));
    make_chains(&l);
    make_places(&l);
    KnCode rc = run_passes(&l, err);
    kn_map_free(l.files);
    kn_vec_done(&l.entries);
    kn_vec_done(&l.chains);
    return rc;
}

KnCode kn_read_load_equality(KnRead *read, KnErr *err)
{
    KN_MAP_AUTO sets = kn_map_new();
    for (size_t i = 0; i < read->n_files; i++) {
        const KnScanTask *task = read->files[i].task;
        for (size_t j = 0; j < task->n_deletes; j++) {
            const KnDataFile *file = &task->deletes[j]->file;
            if (file->content != KN_CONTENT_EQUALITY_DELETES)
                continue;
            const int32_t *ids = sorted_ids(read->arena, file);
            KnStr key = {(const char *)ids, file->n_equality_ids * sizeof(*ids)};
            bool made;
            void **slot = kn_map_get_or_add(sets, key, &made);
            if (made)
                *slot = (void *)(uintptr_t)ids;
        }
    }
    for (size_t i = 0; i < kn_map_count(sets); i++) {
        KnStr key;
        void *ids;
        if (kn_map_entry(sets, i, &key, &ids))
            KN_TRY(load_set(read, ids, key.len / sizeof(int32_t), err));
    }
    return KN_OK;
}
