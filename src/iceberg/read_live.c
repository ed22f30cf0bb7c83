/* SPDX-License-Identifier: Apache-2.0 */
/*
 * read_live.c - which rows of the data files are deleted, and how the engine asks.
 *
 * Whatever deletes a row ends as a bit of its file: a scan then filters by kn_live(read, file,
 * row), a function of ours inside the engine. Unlike a join it keeps the order of rows, streams,
 * and costs about the same however wide rows and however many deletes are. A bitmap is made when
 * the first row of its file is marked: rows / 8 bytes.
 *
 * The function knows reads by number. A read is listed from open to close; its bitmaps do not
 * change while SQL that asks for them runs. Registering is once for each engine; calls come from
 * the engine's threads.
 */
#include <inttypes.h>
#include <pthread.h>
#include <string.h>

#include "iceberg/read_internal.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static KN_VEC(KnRead *) open_reads;

KnCode kn_read_mark(KnRead *read, KnReadFile *file, uint64_t first, uint64_t count, KnErr *err)
{
    uint64_t rows = (uint64_t)file->n_rows;
    if (first >= rows || count == 0)
        return KN_OK;
    if (!file->dead)
        file->dead = kn_arena_try_array(read->arena, (size_t)(rows / 64 + 1), sizeof(*file->dead));
    if (!file->dead)
        return kn_err_set(err, KN_E_NOMEM, "no memory for the deletes of %" PRIu64 " rows", rows);
    uint64_t end = count > rows - first ? rows : first + count;
    for (uint64_t row = first; row < end; row++)
        file->dead[row / 64] |= UINT64_C(1) << (row % 64);
    return KN_OK;
}

typedef struct Marking {
    KnRead *read;
    KnReadFile *const *files;
    size_t n;
} Marking;

static KnCode mark_batch(void *arg, KnBatch *batch, KnErr *err)
{
    const Marking *to = arg;
    KnVector file = kn_batch_vector(batch, 0);
    KnVector row = kn_batch_vector(batch, 1);
    for (size_t i = 0; i < kn_batch_rows(batch); i++) {
        int64_t f = ((const int64_t *)file.data)[i];
        int64_t p = ((const int64_t *)row.data)[i];
        if (!kn_vector_is_null(&row, i) && f >= 0 && (uint64_t)f < to->n && p >= 0)
            KN_TRY(kn_read_mark(to->read, to->files[f], (uint64_t)p, 1, err));
    }
    return KN_OK;
}

KnCode kn_read_mark_query(KnRead *read, KnReadFile *const *files, size_t n, const char *sql,
                          KnErr *err)
{
    Marking to = {.read = read, .files = files, .n = n};
    return kn_session_visit(read->ses, sql, mark_batch, &to, err);
}

static bool has_equality_delete(const KnScanTask *task)
{
    for (size_t i = 0; i < task->n_deletes; i++) {
        if (task->deletes[i]->file.content == KN_CONTENT_EQUALITY_DELETES)
            return true;
    }
    return false;
}

KnCode kn_read_keep_positions(KnRead *read, KnErr *err)
{
    for (size_t i = 0; i < read->n_files; i++) {
        KnReadFile *file = &read->files[i];
        file->dead_by_position = file->dead;
        /* More bits are to come: those go into a copy. */
        if (!file->dead || (!has_equality_delete(file->task) && !read->opts.except_sql))
            continue;
        size_t n = (size_t)file->n_rows / 64 + 1;
        uint64_t *copy = kn_arena_try_array(read->arena, n, sizeof(*copy));
        if (!copy)
            return kn_err_set(err, KN_E_NOMEM, "no memory for the deletes of %" PRId64 " rows",
                              file->n_rows);
        memcpy(copy, file->dead, n * sizeof(*copy));
        file->dead = copy;
    }
    return KN_OK;
}

int64_t kn_read_live_rows(const KnRead *read, size_t task)
{
    const KnReadFile *file = &read->files[task];
    int64_t dead = 0;
    for (size_t i = 0; file->dead && i < (size_t)file->n_rows / 64 + 1; i++)
        dead += __builtin_popcountll(file->dead[i]);
    return file->n_rows - dead;
}

const uint64_t *kn_read_position_words(const KnRead *read, size_t task)
{
    return read->files[task].dead_by_position;
}

/* ---- the function ---- */

static const KnRead *find_read(int64_t id)
{
    const KnRead *found = NULL;
    pthread_mutex_lock(&lock);
    kn_vec_foreach (&open_reads, read)
        if ((*read)->id == id)
            found = *read;
    pthread_mutex_unlock(&lock);
    return found;
}

/* The file that a row belongs to; the read is closed when there is none. */
static const KnReadFile *find_file(const KnScalarCall *call, const KnRead *read, size_t i)
{
    const int64_t *ids = call->args[0].data;
    const int64_t *files = call->args[1].data;
    if (!read || ids[i] != read->id || files[i] < 0 || (size_t)files[i] >= read->n_files)
        return NULL;
    return &read->files[files[i]];
}

static KnCode closed(const KnScalarCall *call, KnErr *err)
{
    return kn_err_set(err, KN_E_INVAL, "read %" PRId64 " is closed",
                      ((const int64_t *)call->args[0].data)[0]);
}

static KnCode live(const KnScalarCall *call, KnErr *err)
{
    const int64_t *rows = call->args[2].data;
    bool *out = call->out_data;
    const KnRead *read = call->rows ? find_read(((const int64_t *)call->args[0].data)[0]) : NULL;
    for (size_t i = 0; i < call->rows; i++) {
        const KnReadFile *file = find_file(call, read, i);
        if (!file)
            return closed(call, err);
        int64_t row = rows[i];
        out[i] = !file->dead || row < 0 || row >= file->n_rows ||
                 !(file->dead[row / 64] >> (row % 64) & 1);
    }
    return KN_OK;
}

static KnCode wanted(const KnScalarCall *call, KnErr *err)
{
    const int64_t *rows = call->args[2].data;
    bool *out = call->out_data;
    const KnRead *read = call->rows ? find_read(((const int64_t *)call->args[0].data)[0]) : NULL;
    for (size_t i = 0; i < call->rows; i++) {
        const KnReadFile *file = find_file(call, read, i);
        if (!file)
            return closed(call, err);
        int64_t row = rows[i];
        out[i] = file->wanted && row >= 0 && row < file->n_rows &&
                 (file->wanted[row / 64] >> (row % 64) & 1);
    }
    return KN_OK;
}

static bool is_known(KnSession *ses, const char *name)
{
    KN_BUF_AUTO sql;
    kn_buf_init(&sql, 256);
    kn_buf_printf(&sql, "SELECT count(*) FROM duckdb_functions() WHERE function_name = '%s'", name);
    int64_t n = 0;
    return kn_session_query_i64(ses, sql.data, &n, NULL) == KN_OK && n > 0;
}

static KnCode make_known(KnRead *read, KnErr *err)
{
    static const char *const types[] = {"BIGINT", "BIGINT", "BIGINT"};
    static const KnScalarFn fns[] = {
        {.name = "kn_live", .arg_types = types, .n_args = 3, .return_type = "BOOLEAN", .fn = live},
        {.name = "kn_wanted",
         .arg_types = types,
         .n_args = 3,
         .return_type = "BOOLEAN",
         .fn = wanted},
    };
    static pthread_mutex_t registering = PTHREAD_MUTEX_INITIALIZER;
    KnCode rc = KN_OK;
    pthread_mutex_lock(&registering);
    for (size_t i = 0; rc == KN_OK && i < sizeof(fns) / sizeof(fns[0]); i++)
        if (!is_known(read->ses, fns[i].name))
            rc = kn_engine_add_scalar(kn_session_engine(read->ses), &fns[i], err);
    pthread_mutex_unlock(&registering);
    return rc;
}

KnCode kn_read_live_open(KnRead *read, KnErr *err)
{
    KN_TRY(make_known(read, err));
    bool is_listed = false;
    pthread_mutex_lock(&lock);
    kn_vec_foreach (&open_reads, listed)
        is_listed = is_listed || *listed == read;
    if (!is_listed)
        *kn_vec_push(&open_reads) = read;
    pthread_mutex_unlock(&lock);
    return KN_OK;
}

void kn_read_live_sql(const KnRead *read, const char *task, const char *pos, KnBuf *buf)
{
    bool any = false;
    for (size_t i = 0; !any && i < read->n_files; i++)
        any = read->files[i].dead != NULL;
    if (any)
        kn_buf_printf(buf, "kn_live(%" PRId64 "::BIGINT, %s, %s)", read->id, task, pos);
    else
        kn_buf_text(buf, "true");
}

void kn_read_live_close(KnRead *read)
{
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < open_reads.len; i++)
        if (open_reads.items[i] == read)
            open_reads.items[i] = open_reads.items[--open_reads.len];
    if (open_reads.len == 0)
        kn_vec_done(&open_reads);
    pthread_mutex_unlock(&lock);
}
