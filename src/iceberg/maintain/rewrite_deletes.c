/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rewrite_deletes.c - see rewrite_deletes.h.
 *
 * Of each group the positions are read into bits of the data files that they are about (a bit for
 * each row; one group at a time), which are then fed to the writer of deletes row by row: sorted,
 * each once, without those about other files.
 *
 * On a newer head the files that go must still be there. A vector must be the only one of its data
 * file: deletes that others added for it are a conflict. Files of position deletes add up.
 */
#include "iceberg/maintain/rewrite_deletes.h"

#include <inttypes.h>

#include "base/fault.h"
#include "base/map.h"
#include "base/random.h"
#include "engine/builder.h"
#include "iceberg/maintain/compact_internal.h"

typedef struct Job {
    KnWriter w;
    const KnRewriteDeletesOptions *opts;
    KnDeletesPlan *plan;
    KnEntryVec removed;
    KnEntryVec data; /* that get a vector */
    KnProgress *bar;
} Job;

/* ---- deleted rows as a relation ---- */

typedef struct Bits {
    const KnRead *read;
    size_t n_tasks;
    const KnScanTask *tasks;
    size_t task; /* at hand */
    int64_t row; /* next */
    KnBuilder *builder;
} Bits;

static KnCode put_row(Bits *bits, KnErr *err)
{
    KN_TRY(kn_col_put_int(kn_builder_column(bits->builder, 0), (__int128)bits->task, err));
    KN_TRY(kn_col_put_int(kn_builder_column(bits->builder, 1), bits->row, err));
    kn_builder_end_row(bits->builder);
    return KN_OK;
}

static KnCode put_rows(Bits *bits, KnErr *err)
{
    const uint64_t *words = kn_read_position_words(bits->read, bits->task);
    int64_t n = bits->tasks[bits->task].data->file.record_count;
    if (!words)
        return KN_OK;
    while (bits->row < n && !kn_builder_full(bits->builder)) {
        uint64_t rest = words[bits->row / 64] >> (bits->row % 64);
        if (rest == 0) {
            bits->row = (bits->row / 64 + 1) * 64;
            continue;
        }
        bits->row += __builtin_ctzll(rest);
        if (bits->row < n)
            KN_TRY(put_row(bits, err));
        bits->row++;
    }
    return KN_OK;
}

static KnCode next_batch(void *arg, KnBatch **ret, KnErr *err)
{
    Bits *bits = arg;
    while (bits->task < bits->n_tasks && !kn_builder_full(bits->builder)) {
        KN_TRY(put_rows(bits, err));
        if (kn_builder_full(bits->builder))
            break;
        bits->task++;
        bits->row = 0;
    }
    *ret = kn_builder_take(bits->builder);
    return KN_OK;
}

/* ---- one group ---- */

/* The group's data files, with its own deletes only. */
static KnScanTask *tasks_of(KnArena *arena, const KnDeleteGroup *group)
{
    KN_MAP_AUTO own = kn_map_new();
    KN_BUF_AUTO key;
    kn_buf_init(&key, (size_t)1 << 20);
    for (size_t i = 0; i < group->n_files; i++)
        *kn_map_get_or_add(own, kn_manifest_entry_key(&key, group->files[i]), NULL) = own;
    KnScanTask *tasks = kn_arena_zalloc(arena, (group->n_data_files + 1) * sizeof(*tasks));
    for (size_t i = 0; i < group->n_data_files; i++) {
        const KnScanTask *task = group->data_files[i];
        const KnManifestEntry **deletes =
            kn_arena_alloc(arena, (task->n_deletes + 1) * sizeof(*deletes));
        tasks[i] = (KnScanTask){.data = task->data, .deletes = deletes};
        for (size_t d = 0; d < task->n_deletes; d++) {
            if (kn_map_find(own, kn_manifest_entry_key(&key, task->deletes[d])))
                deletes[tasks[i].n_deletes++] = task->deletes[d];
        }
    }
    return tasks;
}

static KnCode write_fed(Job *job, const KnRead *read, KnScanTasks tasks, KnBuilder *builder,
                        KnErr *err)
{
    static const char *const names[] = {"t", "p"};
    static const char *const types[] = {"BIGINT", "BIGINT"};
    KnEngine *eng = kn_session_engine(job->w.ses);
    Bits bits = {.read = read, .n_tasks = tasks.n, .tasks = tasks.items, .builder = builder};
    KnFeedOptions opts = {
        .name = kn_arena_printf(job->w.arena, "kn_bits_%" PRIx64, (uint64_t)kn_random_id()),
        .column_names = names,
        .column_types = types,
        .n_columns = 2,
        .next = next_batch,
        .arg = &bits,
    };
    KnFeed *feed = NULL;
    KN_TRY(kn_feed_open(eng, &opts, &feed, err));
    KnDoomed doomed = {.read = read, .tasks = tasks};
    doomed.rows_sql = kn_arena_printf(job->w.arena, "SELECT t, p FROM kn_feed('%s')", opts.name);
    KnCode rc = kn_write_deletes(&job->w, &doomed, err);
    kn_feed_close(feed);
    return rc;
}

static KnCode write_read(Job *job, const KnRead *read, KnScanTasks tasks, KnErr *err)
{
    static const char *const types[] = {"BIGINT", "BIGINT"};
    KnBuilder *builder = NULL;
    KN_TRY(kn_builder_open(kn_session_engine(job->w.ses), types, 2, &builder, err));
    KnCode rc = write_fed(job, read, tasks, builder, err);
    kn_builder_close(builder);
    return rc;
}

static int64_t highest_sequence(const KnDeleteGroup *group)
{
    int64_t most = -1;
    for (size_t i = 0; i < group->n_files; i++) {
        if (group->files[i]->sequence_number > most)
            most = group->files[i]->sequence_number;
    }
    return most > 0 ? most : -1;
}

static KnCode rewrite_group(Job *job, const KnDeleteGroup *group, KnErr *err)
{
    KN_ARENA_AUTO arena = kn_arena_new(0);
    KnScanTasks tasks = {tasks_of(arena, group), group->n_data_files};
    KnReadOptions opts = {.schema = job->w.schema, .keep_positions = true};
    KnRead *read = NULL;
    KN_TRY(kn_writer_check_cancelled(&job->w, err));
    KN_TRY(kn_read_open(job->w.tbl, job->w.ses, tasks, &opts, &read, err));
    job->w.delete_sequence = highest_sequence(group);
    KnCode rc = write_read(job, read, tasks, err);
    kn_read_close(read);
    for (size_t i = 0; i < group->n_files; i++)
        *kn_vec_push(&job->removed) = group->files[i];
    for (size_t i = 0; job->plan->vectors && i < group->n_data_files; i++)
        *kn_vec_push(&job->data) = group->data_files[i]->data;
    if (rc == KN_OK)
        kn_progress_add(job->bar, (uint64_t)group->positions, (uint64_t)group->bytes);
    return rc;
}

/* ---- the commit ---- */

static bool ignores_all(const void *arg, int32_t spec_id)
{
    (void)arg;
    (void)spec_id;
    return true;
}

static KnCode validate(void *arg, const KnSnapshot *base, const KnSnapshot *head, KnErr *err)
{
    (void)base;
    const Job *job = arg;
    KnCompactCheck check = {.tbl = job->w.tbl,
                            .base_id = job->plan->snapshot->snapshot_id,
                            .files = job->data.items,
                            .n_files = job->data.len,
                            .ignores = ignores_all};
    return job->data.len > 0 ? kn_compact_check(&check, head, err) : KN_OK;
}

static KnCode rewrite_all(Job *job, int64_t *ret_id, KnErr *err)
{
    const KnDeletesPlan *plan = job->plan;
    for (size_t i = 0; i < plan->n_groups; i++) {
        KN_TRY(rewrite_group(job, &plan->groups[i], err));
        KN_TRY(kn_fault_at("rewrite-group-written", err));
    }
    for (size_t i = 0; i < plan->n_dangling; i++)
        *kn_vec_push(&job->removed) = plan->dangling[i];
    if (job->removed.len == 0)
        return KN_OK;
    KnSnapshotDraft draft = {.operation = "replace",
                             .n_added_deletes = job->w.added_deletes.len,
                             .added_deletes = job->w.added_deletes.items,
                             .n_removed_deletes = job->removed.len,
                             .removed_deletes = job->removed.items,
                             .validate = validate,
                             .arg = job};
    return kn_snapshot_produce(&job->w, &draft, ret_id, err);
}

static void fill_result(const Job *job, KnRewriteDeletesResult *ret)
{
    for (size_t i = 0; i < job->removed.len; i++) {
        const KnDataFile *file = &job->removed.items[i]->file;
        ret->removed_files++;
        ret->removed_bytes += file->size_bytes;
        ret->dropped_positions += file->record_count;
    }
    for (size_t i = 0; i < job->w.added_deletes.len; i++) {
        const KnDataFile *file = &job->w.added_deletes.items[i]->file;
        ret->added_files++;
        ret->added_bytes += file->content_size >= 0 ? file->content_size : file->size_bytes;
        ret->dropped_positions -= file->record_count;
    }
}

static KnCode run(Job *job, KnRewriteDeletesResult *ret, KnErr *err)
{
    KN_TRY(kn_rewrite_deletes_plan(job->w.tbl, job->opts, &job->plan, err));
    int64_t bytes = 0;
    for (size_t i = 0; i < job->plan->n_groups; i++)
        bytes += job->plan->groups[i].bytes;
    if (bytes > 0)
        job->bar = kn_progress_new(job->opts->progress, "rewrite-deletes", 0, (uint64_t)bytes);
    KN_TRY(rewrite_all(job, &ret->snapshot_id, err));
    fill_result(job, ret);
    return KN_OK;
}

KnCode kn_write_rewrite_deletes(KnTable *tbl, KnSession *ses, const KnRewriteDeletesOptions *opts,
                                KnRewriteDeletesResult *ret, KnErr *err)
{
    Job job = {.opts = opts};
    KN_TRY(kn_writer_init(&job.w, tbl, ses, &opts->write, err));
    KnRewriteDeletesResult res = {.snapshot_id = -1};
    KnCode rc = run(&job, &res, err);
    kn_progress_free(job.bar);
    kn_vec_done(&job.removed);
    kn_vec_done(&job.data);
    kn_rewrite_deletes_plan_free(job.plan);
    kn_writer_done(&job.w, rc == KN_OK || rc == KN_E_UNKNOWN);
    if (rc != KN_OK)
        return kn_err_wrap(err, rc, "rewrite deletes of table %s", tbl->name);
    *ret = res;
    return res.snapshot_id < 0 ? KN_OK : kn_fault_at("write-after-commit", err);
}
