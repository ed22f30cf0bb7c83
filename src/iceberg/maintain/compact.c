/* SPDX-License-Identifier: Apache-2.0 */
/*
 * compact.c - the groups of a plan rewritten and committed.
 *
 * A batch is the groups of one commit: all of them, or with partial progress as many as spread over
 * the commits allowed. Each batch is an operation of the writer with files of its own, so that a
 * lost batch takes nothing of the others along. What is rewritten is always what was planned; a
 * head that has moved on is compared with the planned snapshot (compact_check.c), before the first
 * batch's commit is tried again as well as before every later batch.
 *
 * Delete files of one data file go with it; other files of position deletes go with the last data
 * file that they could be about, where the plan knows all of those (no filter).
 */
#include "iceberg/maintain/compact.h"

#include <inttypes.h>

#include "base/fault.h"
#include "base/map.h"
#include "iceberg/maintain/compact_internal.h"
#include "iceberg/manifest/partition_key.h"
#include "iceberg/scan/read.h"

enum { LEAST_GROUP_ROWS = 2048, GROUP_ROWS = 122880, GROUPS_OF_A_FILE = 8 };

/* A file of position deletes, and the files of the plan that it may be about. */
typedef struct DeleteUse {
    const KnManifestEntry *entry;
    int64_t left, taken; /* not rewritten yet; of these: by the batch at hand */
} DeleteUse;

typedef struct Compact {
    KnTable *tbl;
    KnSession *ses;
    const KnCompactOptions *opts;
    KnCompactPlan *plan;
    KnArena *arena;
    KnMap *uses; /* DeleteUse * by delete file */
    KnProgress *bar;
    KnCompactResult res;
} Compact;

typedef struct Batch {
    Compact *job;
    KnWriter w;
    size_t first, n; /* groups */
    KnEntryVec removed, removed_deletes;
} Batch;

/* ---- delete files ---- */

static DeleteUse *find_use(const Compact *job, const KnManifestEntry *entry, KnBuf *key, bool make)
{
    kn_buf_reset(key);
    kn_buf_printf(key, "%" PRId64 ":%" PRId64 ":", entry->sequence_number,
                  entry->file.content_offset);
    kn_buf_text(key, entry->file.path);
    KnStr name = {key->data, key->len};
    if (!make)
        return kn_map_find(job->uses, name);
    void **slot = kn_map_get_or_add(job->uses, name, NULL);
    if (!*slot) {
        DeleteUse *use = kn_arena_zalloc(job->arena, sizeof(*use));
        use->entry = entry;
        *slot = use;
    }
    return *slot;
}

static void count_uses(Compact *job)
{
    const KnPlan *scan = job->plan->scan;
    KN_BUF_AUTO key;
    kn_buf_init(&key, (size_t)1 << 20);
    job->uses = kn_map_new();
    for (size_t i = 0; scan && i < scan->n_tasks; i++) {
        const KnScanTask *task = &scan->tasks[i];
        for (size_t d = 0; d < task->n_deletes; d++) {
            const KnDataFile *file = &task->deletes[d]->file;
            bool known = !job->opts->filter || kn_delete_named_data_file(file).ptr;
            if (known && file->content == KN_CONTENT_POSITION_DELETES)
                find_use(job, task->deletes[d], &key, true)->left++;
        }
    }
}

/* Takes task's files; those of its deletes that have no other use go too. */
static void take_task(Batch *batch, const KnScanTask *task, KnBuf *key)
{
    *kn_vec_push(&batch->removed) = task->data;
    for (size_t d = 0; d < task->n_deletes; d++) {
        DeleteUse *use = find_use(batch->job, task->deletes[d], key, false);
        if (use && ++use->taken == use->left)
            *kn_vec_push(&batch->removed_deletes) = use->entry;
    }
}

static void settle_uses(Compact *job, bool committed)
{
    for (size_t i = 0; i < kn_map_count(job->uses); i++) {
        KnStr key;
        void *value = NULL;
        if (!kn_map_entry(job->uses, i, &key, &value))
            continue;
        DeleteUse *use = value;
        use->left -= committed ? use->taken : 0;
        use->taken = 0;
    }
}

/* ---- one group ---- */

/* Row groups small enough that a file's size can be met. */
static int64_t group_rows(const KnCompactGroup *group)
{
    if (group->rows <= 0 || group->bytes <= 0)
        return 0;
    double row_bytes = (double)group->bytes / (double)group->rows;
    double rows = (double)group->file_bytes / GROUPS_OF_A_FILE / row_bytes;
    if (rows >= GROUP_ROWS)
        return 0;
    return rows < LEAST_GROUP_ROWS ? LEAST_GROUP_ROWS : (int64_t)rows;
}

/* Rows that stay in their partition keep the number under which deletes still find them. Numbers of
 * 0 (tables that were of format 1) mean "none" in an entry. */
static int64_t data_sequence(const Compact *job, const KnCompactGroup *group)
{
    return kn_compact_keeps_sequence(job->plan, job->opts, group->spec_id)
               ? job->plan->snapshot->sequence_number
               : -1;
}

static void put_rows(const KnWriter *w, const KnRead *read, bool lineage, KnBuf *sql)
{
    kn_buf_printf(sql, "SELECT * FROM (%s\n) AS r(", kn_read_sql(read));
    for (size_t i = 0; i < w->schema->root.n_fields; i++)
        kn_buf_printf(sql, "%sc%zu", i > 0 ? ", " : "", i);
    kn_buf_printf(sql, "%s)", lineage ? ", _row_id, _last_updated_sequence_number" : "");
}

static KnCode write_rows(Batch *batch, const KnCompactGroup *group, const KnRead *read,
                         bool lineage, KnErr *err)
{
    KnWriter *w = &batch->w;
    KN_BUF_AUTO sql;
    kn_buf_init(&sql, (size_t)1 << 30);
    put_rows(w, read, lineage, &sql);
    KN_TRY(kn_buf_check(&sql, err));
    w->target_bytes = group->file_bytes;
    w->group_rows = group_rows(group);
    w->data_sequence = data_sequence(batch->job, group);
    if (group->one_partition)
        return kn_write_partition(w, sql.data, lineage, group->partition, err);
    return kn_write_data(w, sql.data, lineage, err);
}

static KnCode rewrite_group(Batch *batch, const KnCompactGroup *group, KnErr *err)
{
    Compact *job = batch->job;
    KN_ARENA_AUTO arena = kn_arena_new(0);
    KN_BUF_AUTO key;
    kn_buf_init(&key, (size_t)1 << 20);
    KnScanTask *tasks = kn_arena_alloc(arena, (group->n_tasks + 1) * sizeof(*tasks));
    for (size_t i = 0; i < group->n_tasks; i++) {
        tasks[i] = *group->tasks[i];
        take_task(batch, group->tasks[i], &key);
    }
    bool lineage = job->tbl->md->format_version >= 3;
    KnReadOptions opts = {.schema = batch->w.schema, .with_lineage = lineage};
    KnRead *read = NULL;
    KN_TRY(
        kn_read_open(job->tbl, job->ses, (KnScanTasks){tasks, group->n_tasks}, &opts, &read, err));
    KnCode rc = write_rows(batch, group, read, lineage, err);
    kn_read_close(read);
    if (rc == KN_OK)
        kn_progress_add(job->bar, (uint64_t)group->rows, (uint64_t)group->bytes);
    return rc;
}

/* ---- one batch ---- */

static bool ignores_equality(const void *arg, int32_t spec_id)
{
    const Compact *job = arg;
    return kn_compact_keeps_sequence(job->plan, job->opts, spec_id);
}

static KnCode validate(void *arg, const KnSnapshot *base, const KnSnapshot *head, KnErr *err)
{
    (void)base;
    const Batch *batch = arg;
    KnCompactCheck check = {.tbl = batch->job->tbl,
                            .base_id = batch->job->plan->snapshot->snapshot_id,
                            .files = batch->removed.items,
                            .n_files = batch->removed.len,
                            .ignores = ignores_equality,
                            .arg = batch->job};
    return kn_compact_check(&check, head, err);
}

/* Joined files are not sorted, whatever order the table has. */
static KnCode set_up_writer(Batch *batch, KnErr *err)
{
    const KnCompactOptions *opts = batch->job->opts;
    KnWriter *w = &batch->w;
    const KnSortOrder *of_table = w->sort_order;
    w->spec = kn_metadata_find_spec(w->tbl->md, batch->job->plan->spec->spec_id);
    if (!w->spec)
        return kn_err_set(err, KN_E_CONFLICT, "table %s: partition spec %d is gone", w->tbl->name,
                          batch->job->plan->spec->spec_id);
    KN_TRY(kn_partition_type(w->arena, w->spec, w->schema, &w->partition_type, err));
    w->sort_order = !opts->sort ? NULL : opts->sort_order ? opts->sort_order : of_table;
    return KN_OK;
}

static KnCode commit_batch(Batch *batch, int64_t *ret_id, KnErr *err)
{
    KnWriter *w = &batch->w;
    KnSnapshotDraft draft = {
        .operation = "replace",
        .n_added = w->added.len,
        .added = w->added.items,
        .n_removed = batch->removed.len,
        .removed = batch->removed.items,
        .n_removed_deletes = batch->removed_deletes.len,
        .removed_deletes = batch->removed_deletes.items,
        .validate = validate,
        .arg = batch,
    };
    const KnSnapshot *head = kn_writer_head(w);
    if (head && head->snapshot_id != batch->job->plan->snapshot->snapshot_id)
        KN_TRY(validate(batch, NULL, head, err));
    return kn_snapshot_produce(w, &draft, ret_id, err);
}

static KnCode rewrite_batch(Batch *batch, int64_t *ret_id, KnErr *err)
{
    KN_TRY(set_up_writer(batch, err));
    for (size_t i = 0; i < batch->n; i++) {
        KN_TRY(kn_writer_check_cancelled(&batch->w, err));
        KN_TRY(rewrite_group(batch, &batch->job->plan->groups[batch->first + i], err));
        KN_TRY(kn_fault_at("compact-group-written", err));
    }
    return commit_batch(batch, ret_id, err);
}

static void add_result(Batch *batch, int64_t snapshot_id)
{
    KnCompactResult *res = &batch->job->res;
    res->snapshot_id = snapshot_id;
    res->n_groups += (int64_t)batch->n;
    res->n_commits++;
    res->removed_files += (int64_t)batch->removed.len;
    for (size_t i = 0; i < batch->removed.len; i++)
        res->removed_bytes += batch->removed.items[i]->file.size_bytes;
    res->removed_delete_files += (int64_t)batch->removed_deletes.len;
    for (size_t i = 0; i < batch->w.added.len; i++) {
        const KnDataFile *file = &batch->w.added.items[i]->file;
        res->added_files++;
        res->added_bytes += file->size_bytes;
        res->added_rows += file->record_count;
    }
}

static KnCode run_batch(Compact *job, size_t first, size_t n, KnErr *err)
{
    Batch batch = {.job = job, .first = first, .n = n};
    KN_TRY(kn_writer_init(&batch.w, job->tbl, job->ses, &job->opts->write, err));
    int64_t id = -1;
    KnCode rc = rewrite_batch(&batch, &id, err);
    if (rc == KN_OK)
        add_result(&batch, id);
    settle_uses(job, rc == KN_OK);
    kn_vec_done(&batch.removed);
    kn_vec_done(&batch.removed_deletes);
    kn_writer_done(&batch.w, rc == KN_OK || rc == KN_E_UNKNOWN);
    return rc == KN_OK ? kn_fault_at("write-after-commit", err) : rc;
}

/* ---- all batches ---- */

/* A lost batch is no reason to stop, unless all are lost, or more than may be. */
static KnCode run_partial(Compact *job, KnErr *err)
{
    const KnCompactOptions *opts = job->opts;
    size_t n = job->plan->n_groups;
    size_t commits = opts->max_commits > 0 ? (size_t)opts->max_commits : 10;
    size_t each = (n + commits - 1) / commits;
    int64_t n_batches = (int64_t)((n + each - 1) / each);
    int64_t may_fail = opts->max_failed_commits >= 0 ? opts->max_failed_commits : n_batches;
    for (size_t first = 0; first < n; first += each) {
        KnCode rc = run_batch(job, first, n - first < each ? n - first : each, err);
        if (rc == KN_OK)
            continue;
        if (rc != KN_E_CONFLICT)
            return rc;
        int64_t failed = ++job->res.n_failed_commits;
        if (failed > may_fail || failed == n_batches)
            return kn_err_wrap(err, rc, "%" PRId64 " of %" PRId64 " commits failed", failed,
                               n_batches);
        KN_TRY(kn_table_refresh(job->tbl, err));
    }
    return KN_OK;
}

static KnCode run(Compact *job, KnErr *err)
{
    const KnCompactOptions *opts = job->opts;
    KN_TRY(kn_compact_plan(job->tbl, opts, &job->plan, err));
    count_uses(job);
    if (job->plan->n_groups > 0) {
        job->bar = kn_progress_new(opts->progress, "compact", (uint64_t)job->plan->rows,
                                   (uint64_t)job->plan->bytes);
        KN_TRY(opts->partial_progress ? run_partial(job, err)
                                      : run_batch(job, 0, job->plan->n_groups, err));
    }
    if (!opts->remove_dangling_deletes)
        return KN_OK;
    int64_t id = -1;
    int64_t n = 0;
    KN_TRY(kn_write_remove_dangling(job->tbl, &opts->write, &id, &n, err));
    job->res.snapshot_id = id >= 0 ? id : job->res.snapshot_id;
    job->res.n_commits += id >= 0;
    job->res.removed_delete_files += n;
    return KN_OK;
}

KnCode kn_write_compact(KnTable *tbl, KnSession *ses, const KnCompactOptions *opts,
                        KnCompactResult *ret, KnErr *err)
{
    Compact job = {.tbl = tbl, .ses = ses, .opts = opts, .arena = kn_arena_new(0)};
    job.res.snapshot_id = -1;
    KnCode rc = run(&job, err);
    kn_progress_free(job.bar);
    kn_map_free(job.uses);
    kn_compact_plan_free(job.plan);
    kn_arena_free(job.arena);
    if (rc == KN_OK || job.res.n_commits > 0)
        *ret = job.res;
    return rc == KN_OK ? rc : kn_err_wrap(err, rc, "compact table %s", tbl->name);
}
