/* SPDX-License-Identifier: Apache-2.0 */
/* read_vectors.c - deletion vectors: the blob's bitmap becomes the data file's. A vector belongs to
 * one data file and replaces all its position deletes. */
#include <inttypes.h>

#include "codec/puffin.h"
#include "iceberg/scan/read_internal.h"

enum { BLOB_MAX = 1 << 30 };

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

static KnCode decode(Target *target, const KnDataFile *vector, KnErr *err)
{
    const KnTable *tbl = target->read->tbl;
    if (vector->content_offset < 0 || vector->content_size < 0 || vector->content_size > BLOB_MAX)
        return kn_err_set(err, KN_E_CORRUPT, "a deletion vector of %" PRId64 " bytes",
                          vector->content_size);
    KN_BUF_AUTO blob;
    kn_buf_init(&blob, (size_t)BLOB_MAX + 1);
    size_t size = (size_t)vector->content_size;
    void *bytes = kn_buf_reserve(&blob, size + 1);
    if (!bytes)
        return kn_err_set(err, KN_E_NOMEM, "no memory for a deletion vector of %zu bytes", size);
    KN_TRY(kn_table_check_path(tbl, kn_str(vector->path), err));
    KN_TRY(kn_io_read(tbl->io, kn_str(vector->path), (uint64_t)vector->content_offset, size, bytes,
                      err));
    uint64_t cardinality = 0;
    KN_TRY(kn_puffin_vector_decode((KnStr){bytes, size}, take_range, target, &cardinality, err));
    if (vector->record_count < 0 || cardinality != (uint64_t)vector->record_count)
        return kn_err_set(err, KN_E_CORRUPT,
                          "the deletion vector holds %" PRIu64
                          " positions, its manifest says %" PRId64,
                          cardinality, vector->record_count);
    return KN_OK;
}

static KnCode load_vector(KnRead *read, KnReadFile *file, const KnDataFile *vector, KnErr *err)
{
    if (vector->key_metadata.len > 0)
        return kn_err_set(err, KN_E_UNSUPPORTED,
                          "table %s: deletion vector in '%.300s' is encrypted: encryption is not "
                          "supported",
                          read->tbl->name, vector->path);
    Target target = {read, file};
    KnCode rc = decode(&target, vector, err);
    if (rc != KN_OK)
        return kn_err_wrap(err, rc, "table %s: '%.200s', offset %" PRId64, read->tbl->name,
                           vector->path, vector->content_offset);
    return KN_OK;
}

KnCode kn_read_load_vectors(KnRead *read, KnErr *err)
{
    for (size_t i = 0; i < read->n_files; i++) {
        const KnScanTask *task = read->files[i].task;
        for (size_t j = 0; j < task->n_deletes; j++)
            if (kn_read_is_vector(task->deletes[j]))
                KN_TRY(load_vector(read, &read->files[i], &task->deletes[j]->file, err));
    }
    return KN_OK;
}
