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

#include "iceberg/scan/read_internal.h"

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

int64_t kn_read_live_rows_in(const KnRead *read, size_t task, int64_t first, int64_t n)
{
    const KnReadFile *file = &read->files[task];
    int64_t end = n > file->n_rows - first ? file->n_rows : first + n;
    int64_t dead = 0;
    for (int64_t row = first; file->dead && row < end;) {
        /* A word, less the bits before the first row and after the last. */
        uint64_t word = file->dead[row / 64] >> (row % 64);
        int64_t count = 64 - row % 64 < end - row ? 64 - row % 64 : end - row;
        if (count < 64)
            word &= (UINT64_C(1) << count) - 1;
        dead += __builtin_popcountll(word);
        row += count;
    }
    return first < end ? end - first - dead : 0;
}

int64_t kn_read_live_rows(const KnRead *read, size_t task)
{
    return kn_read_live_rows_in(read, task, 0, read->files[task].n_rows);
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

/* Rows of a file, one after the other: the file is looked up when it changes. */
typedef struct Cursor {
    const KnRead *read;
    int64_t number;
    const KnReadFile *file;
} Cursor;

static KnCode cursor_open(const KnScalarCall *call, Cursor *ret, KnErr *err)
{
    int64_t id = ((const int64_t *)call->args[0].data)[0];
    *ret = (Cursor){.read = find_read(id)};
    return ret->read ? KN_OK : kn_err_set(err, KN_E_INVAL, "read %" PRId64 " is closed", id);
}

static KnCode cursor_move(Cursor *at, int64_t number, KnErr *err)
{
    if (number < 0 || (size_t)number >= at->read->n_files)
        return kn_err_set(err, KN_E_INVAL, "read %" PRId64 " has no file %" PRId64, at->read->id,
                          number);
    at->number = number;
    at->file = &at->read->files[number];
    return KN_OK;
}

static inline bool is_set(const uint64_t *bits, int64_t row)
{
    return bits[row / 64] >> (row % 64) & 1;
}

static KnCode live(const KnScalarCall *call, KnErr *err)
{
    const int64_t *files = call->args[1].data;
    const int64_t *rows = call->args[2].data;
    bool *out = call->out_data;
    Cursor at;
    if (call->rows == 0)
        return KN_OK;
    KN_TRY(cursor_open(call, &at, err));
    for (size_t i = 0; i < call->rows; i++) {
        if (!at.file || files[i] != at.number)
            KN_TRY(cursor_move(&at, files[i], err));
        out[i] = !at.file->dead || rows[i] < 0 || rows[i] >= at.file->n_rows ||
                 !is_set(at.file->dead, rows[i]);
    }
    return KN_OK;
}

static KnCode wanted(const KnScalarCall *call, KnErr *err)
{
    const int64_t *files = call->args[1].data;
    const int64_t *rows = call->args[2].data;
    bool *out = call->out_data;
    Cursor at;
    if (call->rows == 0)
        return KN_OK;
    KN_TRY(cursor_open(call, &at, err));
    for (size_t i = 0; i < call->rows; i++) {
        if (!at.file || files[i] != at.number)
            KN_TRY(cursor_move(&at, files[i], err));
        out[i] = at.file->wanted && rows[i] >= 0 && rows[i] < at.file->n_rows &&
                 is_set(at.file->wanted, rows[i]);
    }
    return KN_OK;
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
    KnEngine *eng = kn_session_engine(read->ses);
    KnCode rc = KN_OK;
    pthread_mutex_lock(&registering);
    for (size_t i = 0; rc == KN_OK && i < sizeof(fns) / sizeof(fns[0]); i++)
        if (!kn_engine_has_scalar(eng, fns[i].name))
            rc = kn_engine_add_scalar(eng, &fns[i], err);
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
