/* SPDX-License-Identifier: Apache-2.0 */
/*
 * read_vectors.c - deletion vectors: the blob's bitmap becomes the data file's. A vector belongs to
 * one data file and replaces all its position deletes.
 *
 * A commit writes its vectors into one Puffin file, one behind the other: those of a file are read
 * together, so that an object store is not asked for each of them.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "codec/puffin.h"
#include "iceberg/scan/read_internal.h"

enum { BLOB_MAX = 1 << 30, BATCH_MAX = 64 << 20 };

typedef struct Target {
    KnRead *read;
    KnReadFile *file;
} Target;

bool kn_read_is_vector(const KnManifestEntry *entry)
{
    return entry->file.content == KN_CONTENT_POSITION_DELETES &&
           entry->file.format == KN_FORMAT_PUFFIN;
}

static KnCode take_range(void *arg, uint64_t first, uint64_t count, KnErr *err)
{
    const Target *target = arg;
    uint64_t rows = (uint64_t)target->file->n_rows;
    if (first >= rows || count > rows - first)
        return kn_err_set(err, KN_E_CORRUPT,
                          "the deletion vector has position %" PRIu64 ", its data file '%.200s' "
                          "%" PRIu64 " rows",
                          first + count - 1, target->file->task->data->file.path, rows);
    return kn_read_mark(target->read, target->file, first, count, err);
}

static KnCode decode(Target *target, const KnDataFile *vector, KnStr blob, KnErr *err)
{
    uint64_t cardinality = 0;
    KN_TRY(kn_puffin_vector_decode(blob, take_range, target, &cardinality, err));
    if (vector->record_count < 0 || cardinality != (uint64_t)vector->record_count)
        return kn_err_set(err, KN_E_CORRUPT,
                          "the deletion vector holds %" PRIu64
                          " positions, its manifest says %" PRId64,
                          cardinality, vector->record_count);
    return KN_OK;
}

typedef struct Load {
    KnReadFile *file;
    const KnDataFile *vector;
} Load;

typedef KN_VEC(Load) Loads;

static KnCode wrap(const KnRead *read, const KnDataFile *vector, KnCode rc, KnErr *err)
{
    if (rc == KN_OK)
        return rc;
    return kn_err_wrap(err, rc, "table %s: '%.200s', offset %" PRId64, read->tbl->name,
                       vector->path, vector->content_offset);
}

static KnCode check(const KnRead *read, const KnDataFile *vector, KnErr *err)
{
    if (vector->key_metadata.len > 0)
        return kn_err_set(err, KN_E_UNSUPPORTED,
                          "table %s: deletion vector in '%.300s' is encrypted: encryption is not "
                          "supported",
                          read->tbl->name, vector->path);
    KnCode rc = KN_OK;
    if (vector->content_offset < 0 || vector->content_size < 0 || vector->content_size > BLOB_MAX)
        rc = kn_err_set(err, KN_E_CORRUPT, "a deletion vector of %" PRId64 " bytes",
                        vector->content_size);
    else
        rc = kn_table_check_path(read->tbl, kn_str(vector->path), err);
    return wrap(read, vector, rc, err);
}

static int by_place(const void *a, const void *b)
{
    const KnDataFile *x = ((const Load *)a)->vector, *y = ((const Load *)b)->vector;
    int order = strcmp(x->path, y->path);
    return order
               ? order
               : (x->content_offset > y->content_offset) - (x->content_offset < y->content_offset);
}

/* Vectors of one Puffin file, of about BATCH_MAX bytes together. */
static KnCode load_batch(KnRead *read, const Load *loads, size_t n, KnErr *err)
{
    KN_ARENA_AUTO arena = kn_arena_new(0);
    KnIoRange *ranges = kn_arena_alloc(arena, n * sizeof(*ranges));
    for (size_t i = 0; i < n; i++) {
        size_t size = (size_t)loads[i].vector->content_size;
        ranges[i] = (KnIoRange){(uint64_t)loads[i].vector->content_offset, size,
                                kn_arena_try_alloc(arena, size + 1)};
        if (!ranges[i].out)
            return kn_err_set(err, KN_E_NOMEM, "no memory for a deletion vector of %zu bytes",
                              size);
    }
    KnCode rc = kn_io_read_ranges(read->tbl->io, kn_str(loads[0].vector->path), ranges, n, err);
    KN_TRY(wrap(read, loads[0].vector, rc, err));
    for (size_t i = 0; i < n; i++) {
        Target target = {read, loads[i].file};
        KnStr blob = {ranges[i].out, (size_t)ranges[i].len};
        KN_TRY(wrap(read, loads[i].vector, decode(&target, loads[i].vector, blob, err), err));
    }
    return KN_OK;
}

static KnCode load_all(KnRead *read, Loads *loads, KnErr *err)
{
    if (loads->len)
        qsort(loads->items, loads->len, sizeof(Load), by_place);
    for (size_t i = 0, end; i < loads->len; i = end) {
        int64_t bytes = 0;
        for (end = i; end < loads->len; end++) {
            const KnDataFile *vector = loads->items[end].vector;
            bytes += vector->content_size;
            if (end > i &&
                (bytes > BATCH_MAX || strcmp(vector->path, loads->items[i].vector->path) != 0))
                break;
        }
        KN_TRY(load_batch(read, &loads->items[i], end - i, err));
    }
    return KN_OK;
}

KnCode kn_read_load_vectors(KnRead *read, KnErr *err)
{
    Loads loads = {0};
    KnCode rc = KN_OK;
    for (size_t i = 0; i < read->n_files; i++) {
        const KnScanTask *task = read->files[i].task;
        for (size_t j = 0; j < task->n_deletes && rc == KN_OK; j++) {
            if (!kn_read_is_vector(task->deletes[j]))
                continue;
            *kn_vec_push(&loads) = (Load){&read->files[i], &task->deletes[j]->file};
            rc = check(read, &task->deletes[j]->file, err);
        }
    }
    if (rc == KN_OK)
        rc = load_all(read, &loads, err);
    kn_vec_done(&loads);
    return rc;
}
