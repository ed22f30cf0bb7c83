/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reader.c - see reader.h.
 *
 * DIRECT windows: the ranges of all chunks, in file order, are the segments through which the
 * stream of rows must pass: every row lies in the current segment or a later one, positions rise,
 * and a segment is left with exactly its planned number of live rows. Segments of chunks that are
 * proven already are read over where their file is needed for another chunk. So a file that was
 * replaced, a scan that yields another order, or deletes that are not those of the plan stop the
 * window before a wrong chunk is complete.
 *
 * COMPUTED windows: a chunk is a bucket of the spool; its rows are counted.
 */
#include "cdc/reader.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/vec.h"

typedef struct Segment {
    size_t task; /* index among the tasks that are read */
    int64_t first, end;
    int64_t live;
    size_t chunk;
    bool wanted;
} Segment;

typedef struct Direct {
    const KnReader *reader;
    Segment *segments;
    size_t n_segments, at;
    int64_t seen;     /* live rows seen in the current segment */
    int64_t last_pos; /* in the current segment; -1 = none */
} Direct;

static const char *segment_path(const Direct *dir, const Segment *seg)
{
    const KnChunk *chunk = &dir->reader->plan->chunks[seg->chunk];
    for (size_t i = 0; i < chunk->n_ranges; ++i)
        if (chunk->ranges[i].first_row == seg->first &&
            chunk->ranges[i].n_rows == seg->end - seg->first)
            return dir->reader->plan->files[chunk->ranges[i].file].path;
    return "?";
}

/* Leaves the current segment; the chunk's end follows its last segment. */
static KnCode leave_segment(Direct *dir, KnErr *err)
{
    const Segment *seg = &dir->segments[dir->at];
    if (dir->seen != seg->live)
        return kn_err_set(err, KN_E_CORRUPT,
                          "%s: rows %" PRId64 " to %" PRId64 " gave %" PRId64
                          " rows where the plan has %" PRId64
                          ": the file or its deletes changed since",
                          segment_path(dir, seg), seg->first, seg->end - 1, dir->seen, seg->live);
    ++dir->at;
    dir->seen = 0;
    dir->last_pos = -1;
    bool last = dir->at == dir->n_segments || dir->segments[dir->at].chunk != seg->chunk;
    return last && seg->wanted ? kn_queue_push_end(dir->reader->queue, err) : KN_OK;
}

/* Moves to the segment of a row. */
static KnCode enter_segment(Direct *dir, int64_t task, int64_t pos, KnErr *err)
{
    while (dir->at < dir->n_segments) {
        const Segment *seg = &dir->segments[dir->at];
        if ((int64_t)seg->task > task || ((int64_t)seg->task == task && pos < seg->end))
            break;
        KN_TRY(leave_segment(dir, err));
    }
    const Segment *seg = &dir->segments[dir->at];
    if (dir->at == dir->n_segments || (int64_t)seg->task != task || pos < seg->first ||
        pos <= dir->last_pos)
        return kn_err_set(err, KN_E_CORRUPT,
                          "row %" PRId64 " of file %" PRId64
                          " came where the plan does not have it: the table's files changed since",
                          pos, task);
    return KN_OK;
}

/* Sends rows [first, first+n) of a batch on to the current segment's chunk. */
static KnCode emit(const KnReader *reader, KnBatch *batch, size_t first, size_t n, KnErr *err)
{
    bool whole = first == 0 && n == kn_batch_rows(batch);
    KnBatch *part = whole ? kn_batch_ref(batch) : kn_batch_slice(batch, first, n);
    if (!reader->positions) {
        KnBatch *rows = kn_batch_project(part, kn_batch_n_columns(batch) - 2);
        (void)kn_batch_unref(part);
        part = rows;
    }
    return kn_queue_push(reader->queue, part, err);
}

/* Rows from `at` on that stay in the current segment with rising positions. */
static size_t run_length(const Direct *dir, const int64_t *task, const int64_t *pos, size_t at,
                         size_t n)
{
    int64_t end = dir->segments[dir->at].end;
    size_t to = at + 1;
    while (to < n && task[to] == task[at] && pos[to] > pos[to - 1] && pos[to] < end)
        ++to;
    return to - at;
}

static KnCode pass_batch(Direct *dir, KnBatch *batch, KnErr *err)
{
    size_t rows = kn_batch_rows(batch), cols = kn_batch_n_columns(batch);
    KnVector task_vec = kn_batch_vector(batch, cols - 2);
    KnVector pos_vec = kn_batch_vector(batch, cols - 1);
    const int64_t *task = task_vec.data, *pos = pos_vec.data;
    for (size_t at = 0; at < rows;) {
        KN_TRY(enter_segment(dir, task[at], pos[at], err));
        size_t n = run_length(dir, task, pos, at, rows);
        const Segment *seg = &dir->segments[dir->at];
        dir->seen += (int64_t)n;
        dir->last_pos = pos[at + n - 1];
        if (dir->seen <= seg->live && seg->wanted)
            KN_TRY(emit(dir->reader, batch, at, n, err));
        at += n;
    }
    return KN_OK;
}

/* Streams one SELECT; *ret_more false once nothing further is wanted. */
static KnCode pass_group(Direct *dir, const char *sql, KnErr *err)
{
    KnStream *stream = NULL;
    KN_TRY(kn_session_query(dir->reader->ses, sql, &stream, err));
    KnCode rc = KN_OK;
    for (;;) {
        KN_BATCH_AUTO batch = NULL;
        rc = kn_stream_next(stream, &batch, err);
        if (rc != KN_OK || !batch)
            break;
        rc = pass_batch(dir, batch, err);
        if (rc != KN_OK)
            break;
    }
    stream = kn_stream_close(stream);
    return rc;
}

static KnCode pass_read(Direct *dir, const KnRead *read, KnErr *err)
{
    for (size_t i = 0; i < kn_read_n_groups(read); ++i)
        KN_TRY(pass_group(dir, kn_read_group_sql(read, i), err));
    while (dir->at < dir->n_segments)
        KN_TRY(leave_segment(dir, err));
    return KN_OK;
}

/* Which files must be read: those with a range of a wanted chunk; all, where all are open. */
static void mark_files(const KnReader *reader, bool *needed)
{
    for (size_t i = 0; i < reader->plan->n_files; ++i)
        needed[i] = reader->read != NULL;
    for (size_t i = 0; i < reader->plan->n_chunks; ++i) {
        const KnChunk *chunk = &reader->plan->chunks[i];
        for (size_t k = 0; k < chunk->n_ranges && reader->wanted[i]; ++k)
            needed[chunk->ranges[k].file] = true;
    }
}

typedef struct Selection {
    KN_VEC(KnScanTask) tasks;
    KN_VEC(Segment) segments;
} Selection;

/* The tasks to read (where no read is open) and the segments their rows pass, in file order. Ranges
 * ascend by file over all chunks, so one walk over the chunks meets the files in order. */
static void select_segments(const KnReader *reader, const bool *needed, Selection *sel)
{
    size_t last_file = SIZE_MAX;
    for (size_t i = 0; i < reader->plan->n_chunks; ++i) {
        const KnChunk *chunk = &reader->plan->chunks[i];
        for (size_t k = 0; k < chunk->n_ranges; ++k) {
            const KnChunkRange *range = &chunk->ranges[k];
            if (!needed[range->file])
                continue;
            if (range->file != last_file)
                *kn_vec_push(&sel->tasks) = reader->tasks[range->file];
            last_file = range->file;
            size_t task = reader->read ? range->file : sel->tasks.len - 1;
            *kn_vec_push(&sel->segments) = (Segment){.task = task,
                                                     .first = range->first_row,
                                                     .end = range->first_row + range->n_rows,
                                                     .live = range->live_rows,
                                                     .chunk = i,
                                                     .wanted = reader->wanted[i]};
        }
    }
}

/* Rows of the selected files pass their segments. */
static KnCode pass_selected(const KnReader *reader, const Selection *sel, KnErr *err)
{
    Direct dir = {.reader = reader,
                  .segments = sel->segments.items,
                  .n_segments = sel->segments.len,
                  .last_pos = -1};
    if (reader->read)
        return pass_read(&dir, reader->read, err);
    KnRead *read = NULL;
    KnReadOptions opts = {.schema = reader->schema, .with_position = true};
    KnScanTasks tasks = {sel->tasks.items, sel->tasks.len};
    KN_TRY(kn_read_open(reader->win->tbl, reader->ses, tasks, &opts, &read, err));
    KnCode rc = pass_read(&dir, read, err);
    kn_read_close(read);
    return rc;
}

static KnCode run_direct(const KnReader *reader, KnErr *err)
{
    Selection sel = {0};
    bool *needed = calloc(reader->plan->n_files + 1, sizeof(*needed));
    if (!needed)
        abort();
    mark_files(reader, needed);
    select_segments(reader, needed, &sel);
    KnCode rc = pass_selected(reader, &sel, err);
    kn_vec_done(&sel.tasks);
    kn_vec_done(&sel.segments);
    free(needed);
    return rc;
}

static KnCode pass_bucket(const KnReader *reader, const KnChunk *chunk, KnErr *err)
{
    KnStream *stream = NULL;
    KnChangeOp op = chunk->op == KN_CHUNK_DELETE ? KN_CHANGE_DELETE : KN_CHANGE_INSERT;
    int64_t seen = 0;
    KN_TRY(kn_session_query(reader->ses, kn_spool_sql(reader->spool, op, chunk->bucket), &stream,
                            err));
    KnCode rc;
    for (;;) {
        KnBatch *batch = NULL;
        rc = kn_stream_next(stream, &batch, err);
        if (rc != KN_OK || !batch)
            break;
        seen += (int64_t)kn_batch_rows(batch);
        rc = kn_queue_push(reader->queue, batch, err);
        if (rc != KN_OK)
            break;
    }
    stream = kn_stream_close(stream);
    if (rc == KN_OK && seen != chunk->rows)
        rc = kn_err_set(err, KN_E_CORRUPT,
                        "chunk %" PRId64 " gave %" PRId64 " rows where the plan has %" PRId64,
                        chunk->number, seen, chunk->rows);
    return rc == KN_OK ? kn_queue_push_end(reader->queue, err) : rc;
}

KnCode kn_reader_run(const KnReader *reader, KnErr *err)
{
    if (reader->plan->kind == KN_WINDOW_DIRECT)
        return run_direct(reader, err);
    for (size_t i = 0; i < reader->plan->n_chunks; ++i)
        if (reader->wanted[i])
            KN_TRY(pass_bucket(reader, &reader->plan->chunks[i], err));
    return KN_OK;
}

/* ---- counting live rows ---- */

static void count_ranges(KnChunkPlan *plan, const KnRead *read)
{
    for (size_t i = 0; i < plan->n_chunks; ++i) {
        for (size_t k = 0; k < plan->chunks[i].n_ranges; ++k) {
            KnChunkRange *range = &plan->chunks[i].ranges[k];
            range->live_rows =
                kn_read_live_rows_in(read, range->file, range->first_row, range->n_rows);
        }
    }
}

KnCode kn_reader_count(const KnReader *reader, KnChunkPlan *plan, KnRead **ret, KnErr *err)
{
    KnReadOptions opts = {.schema = reader->schema, .with_position = true};
    KnScanTasks tasks = {reader->tasks, plan->n_files};
    KN_TRY(kn_read_open(reader->win->tbl, reader->ses, tasks, &opts, ret, err));
    count_ranges(plan, *ret);
    kn_chunk_plan_settle(plan);
    return KN_OK;
}
