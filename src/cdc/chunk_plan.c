/* SPDX-License-Identifier: Apache-2.0 */
/*
 * chunk_plan.c - cutting a window into chunks.
 *
 * DIRECT: files are taken in the window's order. A chunk has a budget in bytes of files; a file
 * that fits the rest is taken whole, a larger one is cut at a row, at bytes-per-row of that file.
 * Cuts are at multiples of ROW_STEP rows (the engine's batches), so a chunk may go over its budget
 * by at most one step. Nothing here depends on threads, memory or time.
 */
#include "cdc/chunk_plan.h"

#include "base/vec.h"
#include "iceberg/scan/row_sql.h"

#define ROW_STEP    INT64_C(2048)
#define MAX_BUCKETS UINT64_C(4096)

typedef KN_VEC(KnChunk) ChunkVec;
typedef KN_VEC(KnChunkRange) RangeVec;

typedef struct Cutter {
    KnArena *arena;
    ChunkVec chunks;
    RangeVec ranges; /* of the chunk being filled */
    double budget;   /* bytes a chunk may have */
    double used;     /* bytes of the chunk being filled */
} Cutter;

static void close_chunk(Cutter *cut)
{
    if (cut->ranges.len == 0)
        return;
    KnChunk *chunk = kn_vec_push(&cut->chunks);
    chunk->number = (int64_t)cut->chunks.len - 1;
    chunk->op = KN_CHUNK_INSERT;
    chunk->n_ranges = cut->ranges.len;
    chunk->ranges = kn_arena_alloc(cut->arena, cut->ranges.len * sizeof(*chunk->ranges));
    memcpy(chunk->ranges, cut->ranges.items, cut->ranges.len * sizeof(*chunk->ranges));
    for (size_t i = 0; i < chunk->n_ranges; ++i)
        chunk->rows += chunk->ranges[i].live_rows;
    cut->ranges.len = 0;
    cut->used = 0;
}

/* How many of the file's remaining rows the chunk being filled takes; 0 = close it first. */
static int64_t rows_that_fit(const Cutter *cut, double row_bytes, int64_t left)
{
    double room = cut->budget - cut->used;
    if ((double)left * row_bytes <= room)
        return left;
    int64_t steps = (int64_t)(room / (row_bytes * (double)ROW_STEP));
    if (steps == 0 && cut->ranges.len == 0)
        steps = 1;
    return steps * ROW_STEP < left ? steps * ROW_STEP : left;
}

static void cut_file(Cutter *cut, size_t file, int64_t rows, int64_t bytes)
{
    double row_bytes = rows > 0 ? (double)bytes / (double)rows : 0;
    for (int64_t first = 0; first < rows;) {
        int64_t take = rows_that_fit(cut, row_bytes, rows - first);
        if (take > 0) {
            *kn_vec_push(&cut->ranges) =
                (KnChunkRange){.file = file, .first_row = first, .n_rows = take, .live_rows = take};
            cut->used += (double)take * row_bytes;
            first += take;
        }
        if (first < rows)
            close_chunk(cut);
    }
}

static const char **copy_keys(KnArena *arena, const KnChunkPlanOptions *opts)
{
    const char **keys = kn_arena_zalloc(arena, (opts->n_keys + 1) * sizeof(*keys));
    for (size_t i = 0; i < opts->n_keys; ++i)
        keys[i] = kn_arena_strdup(arena, opts->keys[i]);
    return keys;
}

static KnChunkPlan *new_plan(KnArena *arena, const KnWindow *win, const KnChunkPlanOptions *opts)
{
    KnChunkPlan *plan = kn_arena_zalloc(arena, sizeof(*plan));
    plan->version = KN_CHUNK_PLAN_VERSION;
    plan->kind = win->kind;
    plan->from = win->from ? win->from->snapshot_id : -1;
    plan->to = win->to->snapshot_id;
    plan->operation = kn_arena_strdup(arena, win->operation ? win->operation : "");
    plan->schema_id = opts->schema_id;
    plan->mode = opts->mode;
    plan->n_keys = opts->n_keys;
    plan->keys = copy_keys(arena, opts);
    plan->hash_version = "";
    plan->read_bytes = win->read_bytes;
    return plan;
}

static void take_chunks(KnChunkPlan *plan, KnArena *arena, ChunkVec *chunks)
{
    plan->n_chunks = chunks->len;
    plan->chunks = kn_arena_zalloc(arena, (chunks->len + 1) * sizeof(*plan->chunks));
    if (chunks->len)
        memcpy(plan->chunks, chunks->items, chunks->len * sizeof(*plan->chunks));
    kn_vec_done(chunks);
}

static void add_totals(KnChunkPlan *plan)
{
    plan->upserts = plan->deletes = 0;
    for (size_t i = 0; i < plan->n_chunks; ++i) {
        KnChunk *chunk = &plan->chunks[i];
        chunk->number = (int64_t)i;
        *(chunk->op == KN_CHUNK_DELETE ? &plan->deletes : &plan->upserts) += chunk->rows;
    }
}

KnChunkPlan *kn_chunk_plan_direct(KnArena *arena, const KnWindow *win,
                                  const KnChunkPlanOptions *opts)
{
    KnChunkPlan *plan = new_plan(arena, win, opts);
    if (win->kind != KN_WINDOW_DIRECT)
        return plan;
    Cutter cut = {.arena = arena, .budget = (double)(opts->chunk_bytes ? opts->chunk_bytes : 1)};
    plan->n_files = win->n_added;
    plan->files = kn_arena_zalloc(arena, (win->n_added + 1) * sizeof(*plan->files));
    for (size_t i = 0; i < win->n_added; ++i) {
        const KnDataFile *file = &win->added[i].data->file;
        plan->files[i] =
            (KnPlanFile){.path = kn_arena_strdup(arena, file->path), .rows = file->record_count};
        cut_file(&cut, i, file->record_count, file->size_bytes);
    }
    close_chunk(&cut);
    kn_vec_done(&cut.ranges);
    take_chunks(plan, arena, &cut.chunks);
    add_totals(plan);
    return plan;
}

void kn_chunk_plan_settle(KnChunkPlan *plan)
{
    size_t kept = 0;
    for (size_t i = 0; i < plan->n_chunks; ++i) {
        KnChunk chunk = plan->chunks[i];
        chunk.rows = 0;
        for (size_t k = 0; k < chunk.n_ranges; ++k)
            chunk.rows += chunk.ranges[k].live_rows;
        if (chunk.rows > 0)
            plan->chunks[kept++] = chunk;
    }
    plan->n_chunks = kept;
    add_totals(plan);
}

uint32_t kn_chunk_plan_buckets(const KnWindow *win, uint64_t chunk_bytes)
{
    uint64_t bytes = win->read_bytes > 0 ? (uint64_t)win->read_bytes : 1;
    uint64_t per = chunk_bytes ? chunk_bytes : 1;
    uint64_t buckets = bytes / per + (bytes % per != 0);
    return (uint32_t)(buckets > MAX_BUCKETS ? MAX_BUCKETS : buckets);
}

KnChunkPlan *kn_chunk_plan_computed(KnArena *arena, const KnWindow *win, const KnSpool *spool,
                                    uint32_t n_buckets, const KnChunkPlanOptions *opts)
{
    KnChunkPlan *plan = new_plan(arena, win, opts);
    ChunkVec chunks = {0};
    plan->n_buckets = n_buckets;
    plan->hash_version = KN_ROW_HASH_VERSION;
    for (int op = KN_CHUNK_DELETE; op <= KN_CHUNK_INSERT; ++op) {
        for (uint32_t bucket = 0; bucket < n_buckets; ++bucket) {
            int64_t rows = kn_spool_rows(
                spool, op == KN_CHUNK_DELETE ? KN_CHANGE_DELETE : KN_CHANGE_INSERT, bucket);
            if (rows == 0)
                continue;
            *kn_vec_push(&chunks) = (KnChunk){.op = (KnChunkOp)op, .rows = rows, .bucket = bucket};
        }
    }
    take_chunks(plan, arena, &chunks);
    add_totals(plan);
    return plan;
}
