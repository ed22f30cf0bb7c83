/* SPDX-License-Identifier: Apache-2.0 */
/*
 * write_vectors.c - rows that go, as deletion vectors (spec v3: "Deletion Vectors").
 *
 * Rows come sorted by file. One plain bitmap at a time is held, of the file at hand: it starts with
 * what deletes its rows already, and becomes a blob. Blobs share Puffin files of about
 * write.delete.target-file-size-bytes. A data file may have one vector only, so the one before goes
 * in the same snapshot, as do position deletes that are about this file alone; position deletes
 * about many files stay, and readers pass them over where there is a vector.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/path.h"
#include "codec/puffin.h"
#include "iceberg/manifest/partition_key.h"
#include "iceberg/write/write_internal.h"

#define PUFFIN_MAX ((size_t)3 << 30)

typedef struct Vectors {
    KnWriter *w;
    const KnDoomed *doomed;
    size_t target;
    KnPuffinWriter *puffin;            /* NULL = none begun */
    const char *location;              /* its */
    size_t task;                       /* at hand */
    uint64_t *words;                   /* its bitmap; NULL = none at hand */
    KN_VEC(KnManifestEntry *) entries; /* of the Puffin file at hand */
} Vectors;

/* ---- files ---- */

static KnCode begin_file(Vectors *v, KnErr *err)
{
    KnWriter *w = v->w;
    const char *name =
        kn_arena_printf(w->arena, "%05" PRId64 "-%s-deletes.puffin", w->n_commands++, w->uuid);
    KnWritePlace place;
    KN_TRY(kn_write_place(w, &(KnWritePartition){0}, name, &place, err));
    name = kn_arena_printf(w->arena, "%s%s", place.name_prefix, name);
    v->location = kn_path_join(w->arena, kn_str(place.folder), kn_str(name));
    v->puffin = kn_puffin_writer_new(PUFFIN_MAX);
    v->entries.len = 0;
    return KN_OK;
}

static KnCode finish_file(Vectors *v, KnErr *err)
{
    KnWriter *w = v->w;
    if (!v->puffin)
        return KN_OK;
    KN_TRY(kn_writer_check_cancelled(w, err));
    KnStr file = {0};
    KN_TRY(kn_puffin_writer_finish(v->puffin, "knut " KN_VERSION_STRING, &file, err));
    *kn_vec_push(&w->data_files) = v->location;
    KN_TRY(kn_io_write(w->tbl->io, kn_str(v->location), file.ptr, file.len, KN_IO_CREATE, err));
    kn_vec_foreach (&v->entries, entry) {
        (*entry)->file.size_bytes = (int64_t)file.len;
        *kn_vec_push(&w->added_deletes) = *entry;
    }
    v->puffin = kn_puffin_writer_free(v->puffin);
    return KN_OK;
}

/* ---- one vector ---- */

static void note_replaced(Vectors *v, const KnScanTask *task)
{
    for (size_t i = 0; i < task->n_deletes; i++) {
        const KnDataFile *file = &task->deletes[i]->file;
        if (file->content == KN_CONTENT_POSITION_DELETES &&
            kn_str_eq(kn_delete_named_data_file(file), kn_str(task->data->file.path)))
            *kn_vec_push(&v->w->replaced_deletes) = task->deletes[i];
    }
}

static size_t n_words(const KnDataFile *data)
{
    return (size_t)data->record_count / 64 + 1;
}

static KnCode begin_vector(Vectors *v, size_t task, KnErr *err)
{
    const KnDataFile *data = &v->doomed->tasks.items[task].data->file;
    size_t n = n_words(data);
    v->words = calloc(n, sizeof(*v->words));
    if (!v->words)
        return kn_err_set(err, KN_E_NOMEM, "no memory for the deletes of %" PRId64 " rows",
                          data->record_count);
    v->task = task;
    const uint64_t *before = kn_read_position_words(v->doomed->read, task);
    if (before)
        memcpy(v->words, before, n * sizeof(*before));
    return KN_OK;
}

static KnCode finish_vector(Vectors *v, KnErr *err)
{
    if (!v->words)
        return KN_OK;
    const KnScanTask *task = &v->doomed->tasks.items[v->task];
    if (!v->puffin)
        KN_TRY(begin_file(v, err));
    KnPuffinPlace place = {0};
    KN_TRY(kn_puffin_writer_add_vector(v->puffin, task->data->file.path, v->words,
                                       n_words(&task->data->file), &place, err));
    free(v->words);
    v->words = NULL;
    KnManifestEntry *entry = kn_write_delete_entry(v->w, &task->data->file, v->location);
    entry->file.format = KN_FORMAT_PUFFIN;
    entry->file.record_count = (int64_t)place.cardinality;
    entry->file.content_offset = place.offset;
    entry->file.content_size = place.length;
    entry->file.referenced_data_file = task->data->file.path;
    *kn_vec_push(&v->entries) = entry;
    note_replaced(v, task);
    return kn_puffin_writer_size(v->puffin) >= v->target ? finish_file(v, err) : KN_OK;
}

static KnCode take_rows(void *arg, KnBatch *batch, KnErr *err)
{
    Vectors *v = arg;
    KnVector tasks = kn_batch_vector(batch, 0);
    KnVector positions = kn_batch_vector(batch, 1);
    for (size_t row = 0; row < kn_batch_rows(batch); row++) {
        size_t task = (size_t)((const int64_t *)tasks.data)[row];
        int64_t at = ((const int64_t *)positions.data)[row];
        if (task >= v->doomed->tasks.n || at < 0 ||
            at >= v->doomed->tasks.items[task].data->file.record_count)
            return kn_err_set(err, KN_E_CORRUPT, "a row to delete is in no file of the table");
        if (v->words && v->task != task)
            KN_TRY(finish_vector(v, err));
        if (!v->words)
            KN_TRY(begin_vector(v, task, err));
        v->words[at / 64] |= UINT64_C(1) << (at % 64);
    }
    return KN_OK;
}

static KnCode write_all(Vectors *v, KnErr *err)
{
    KN_BUF_AUTO sql;
    kn_buf_init(&sql, (size_t)256 << 20);
    kn_buf_printf(&sql, "SELECT t, p FROM (%s) AS d(t, p) ORDER BY t, p", v->doomed->rows_sql);
    KN_TRY(kn_buf_check(&sql, err));
    KN_TRY(kn_session_visit(v->w->ses, sql.data, take_rows, v, err));
    KN_TRY(finish_vector(v, err));
    return finish_file(v, err);
}

KnCode kn_write_vectors(KnWriter *w, const KnDoomed *doomed, KnErr *err)
{
    Vectors v = {.w = w, .doomed = doomed};
    v.target = (size_t)kn_write_property_i64(w->tbl->md, "write.delete.target-file-size-bytes",
                                             INT64_C(64) << 20);
    KnCode rc = write_all(&v, err);
    free(v.words);
    kn_puffin_writer_free(v.puffin);
    kn_vec_done(&v.entries);
    return rc;
}
