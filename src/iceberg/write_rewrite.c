/* SPDX-License-Identifier: Apache-2.0 */
/*
 * write_rewrite.c - delete and overwrite by filter, copy-on-write.
 *
 * Files that bounds and partition prove to match wholly go unread. Of the others the rows are
 * counted, by file: none match and the file stays, all match and it goes, some match and the rest
 * is written anew, under today's schema and partition spec. In v3 rows keep their row id and the
 * sequence number of their last change, as columns of the new file. Position deletes and deletion
 * vectors of a single file go with it.
 *
 * On a newer base the operation holds unless a file was added that may have matching rows, or a
 * file that goes here was removed or got new deletes there: such a rebase ends as KN_E_CONFLICT.
 */
#include <inttypes.h>

#include "base/fault.h"
#include "base/map.h"
#include "iceberg/changelog.h"
#include "iceberg/read.h"
#include "iceberg/write_internal.h"

typedef KN_VEC(KnScanTask) TaskVec;

typedef struct Rewrite {
    KnWriter *w;
    const KnExpr *filter;
    KnPlan *plan;
    TaskVec doubtful;   /* to be counted */
    TaskVec rewritten;  /* some rows match */
    KnEntryVec removed; /* data files that go */
    KnEntryVec removed_deletes;
    int64_t removed_rows;
} Rewrite;

/* ---- which files ---- */

static KnCode split_tasks(Rewrite *rw, KnErr *err)
{
    const KnWriter *w = rw->w;
    const KnSnapshot *head = kn_writer_head(w);
    KnPlanOptions opts = {.snapshot = head, .schema = w->schema, .filter = rw->filter};
    KN_TRY(kn_plan_scan(w->tbl, &opts, &rw->plan, err));
    for (size_t i = 0; i < rw->plan->n_tasks; i++) {
        const KnScanTask *task = &rw->plan->tasks[i];
        const KnDataFile *file = &task->data->file;
        const KnPartitionSpec *spec = kn_metadata_find_spec(w->tbl->md, file->spec_id);
        if (spec && kn_expr_must_match_file(rw->filter, spec, w->schema, file)) {
            *kn_vec_push(&rw->removed) = task->data;
            rw->removed_rows += file->record_count;
        } else {
            *kn_vec_push(&rw->doubtful) = *task;
        }
    }
    return KN_OK;
}

/* ---- SQL over the columns c0, c1, ... of a read ---- */

static void put_column(void *arg, KnBuf *buf, const KnField *column)
{
    const KnSchema *schema = arg;
    size_t i = 0;
    while (i < schema->root.n_fields && schema->root.fields[i].id != column->id)
        i++;
    kn_buf_printf(buf, "c%zu", i);
}

/* "coalesce(<filter>, false)" */
static KnCode put_filter(const Rewrite *rw, KnBuf *buf, KnErr *err)
{
    kn_buf_text(buf, "coalesce(");
    KN_TRY(kn_expr_sql_with(buf, rw->filter, put_column, (void *)(uintptr_t)rw->w->schema, err));
    kn_buf_text(buf, ", false)");
    return KN_OK;
}

static void put_source(KnBuf *buf, const KnRead *read, const KnSchema *schema, const char *more)
{
    kn_buf_printf(buf, " FROM (%s\n) AS r(", kn_read_sql(read));
    for (size_t i = 0; i < schema->root.n_fields; i++)
        kn_buf_printf(buf, "%sc%zu", i > 0 ? ", " : "", i);
    kn_buf_printf(buf, "%s)", more);
}

/* ---- counting ---- */

static KnCode take_counts(void *arg, KnBatch *batch, KnErr *err)
{
    Rewrite *rw = arg;
    KnVector task = kn_batch_vector(batch, 0);
    KnVector live = kn_batch_vector(batch, 1);
    KnVector hits = kn_batch_vector(batch, 2);
    for (size_t row = 0; row < kn_batch_rows(batch); row++) {
        size_t at = (size_t)((const int64_t *)task.data)[row];
        int64_t n_live = ((const int64_t *)live.data)[row];
        int64_t n_hits = ((const int64_t *)hits.data)[row];
        if (at >= rw->doubtful.len)
            return kn_err_set(err, KN_E_CORRUPT, "a scan names file %zu of %zu", at,
                              rw->doubtful.len);
        if (n_hits == 0)
            continue;
        rw->removed_rows += n_hits;
        *kn_vec_push(&rw->removed) = rw->doubtful.items[at].data;
        if (n_hits < n_live)
            *kn_vec_push(&rw->rewritten) = rw->doubtful.items[at];
    }
    return KN_OK;
}

static KnCode run_counts(Rewrite *rw, const KnRead *read, KnErr *err)
{
    KN_BUF_AUTO sql;
    kn_buf_init(&sql, (size_t)256 << 20);
    kn_buf_text(&sql, "SELECT t, count(*), count(*) FILTER (WHERE ");
    KN_TRY(put_filter(rw, &sql, err));
    kn_buf_text(&sql, ")");
    put_source(&sql, read, rw->w->schema, ", t, p");
    kn_buf_text(&sql, " GROUP BY t ORDER BY t");
    KN_TRY(kn_buf_check(&sql, err));
    return kn_session_visit(rw->w->ses, sql.data, take_counts, rw, err);
}

static KnCode count_matches(Rewrite *rw, KnErr *err)
{
    if (rw->doubtful.len == 0)
        return KN_OK;
    KnRead *read = NULL;
    KnReadOptions opts = {.schema = rw->w->schema, .with_position = true};
    KnScanTasks tasks = {rw->doubtful.items, rw->doubtful.len};
    KN_TRY(kn_read_open(rw->w->tbl, rw->w->ses, tasks, &opts, &read, err));
    KnCode rc = run_counts(rw, read, err);
    kn_read_close(read);
    return rc;
}

/* ---- rewriting ---- */

static KnCode copy_rows(Rewrite *rw, const KnRead *read, bool lineage, KnErr *err)
{
    const char *more = lineage ? ", _row_id, _last_updated_sequence_number" : "";
    KN_BUF_AUTO sql;
    kn_buf_init(&sql, (size_t)256 << 20);
    kn_buf_text(&sql, "SELECT *");
    put_source(&sql, read, rw->w->schema, more);
    kn_buf_text(&sql, " WHERE NOT ");
    KN_TRY(put_filter(rw, &sql, err));
    KN_TRY(kn_buf_check(&sql, err));
    return kn_write_data(rw->w, sql.data, lineage, err);
}

static KnCode rewrite_files(Rewrite *rw, KnErr *err)
{
    if (rw->rewritten.len == 0)
        return KN_OK;
    bool lineage = rw->w->tbl->md->format_version >= 3;
    KnRead *read = NULL;
    KnReadOptions opts = {.schema = rw->w->schema, .with_lineage = lineage};
    KnScanTasks tasks = {rw->rewritten.items, rw->rewritten.len};
    KN_TRY(kn_read_open(rw->w->tbl, rw->w->ses, tasks, &opts, &read, err));
    KnCode rc = copy_rows(rw, read, lineage, err);
    kn_read_close(read);
    return rc;
}

/* ---- delete files that go with their data file ---- */

static void collect_deletes(Rewrite *rw)
{
    KN_MAP_AUTO gone = kn_map_new();
    for (size_t i = 0; i < rw->removed.len; i++)
        *kn_map_get_or_add(gone, kn_str(rw->removed.items[i]->file.path), NULL) = rw;
    for (size_t i = 0; i < rw->plan->n_tasks; i++) {
        const KnScanTask *task = &rw->plan->tasks[i];
        const char *path = task->data->file.path;
        if (!kn_map_find(gone, kn_str(path)))
            continue;
        for (size_t d = 0; d < task->n_deletes; d++) {
            const char *of = task->deletes[d]->file.referenced_data_file;
            if (of && strcmp(of, path) == 0)
                *kn_vec_push(&rw->removed_deletes) = task->deletes[d];
        }
    }
}

/* ---- the commit ---- */

static bool goes(const Rewrite *rw, const char *path)
{
    for (size_t i = 0; i < rw->removed.len; i++) {
        if (strcmp(rw->removed.items[i]->file.path, path) == 0)
            return true;
    }
    return false;
}

static KnCode check_window(const Rewrite *rw, const KnWindow *win, KnErr *err)
{
    const KnWriter *w = rw->w;
    for (size_t i = 0; i < win->n_added; i++) {
        const KnDataFile *file = &win->added[i].data->file;
        const KnPartitionSpec *spec = kn_metadata_find_spec(w->tbl->md, file->spec_id);
        if (!spec || (kn_expr_may_match_partition(rw->filter, spec, w->schema, file) &&
                      kn_expr_may_match_file(rw->filter, file)))
            return kn_err_set(err, KN_E_CONFLICT,
                              "table %s: another writer added rows that the filter may match "
                              "(%.200s): run the operation again",
                              w->tbl->name, file->path);
    }
    for (size_t i = 0; i < win->n_removed + win->n_touched; i++) {
        const KnScanTask *task =
            i < win->n_removed ? &win->removed[i] : &win->touched[i - win->n_removed];
        if (goes(rw, task->data->file.path))
            return kn_err_set(err, KN_E_CONFLICT,
                              "table %s: another writer changed a file that this operation "
                              "rewrites (%.200s): run the operation again",
                              w->tbl->name, task->data->file.path);
    }
    return KN_OK;
}

static KnCode validate(void *arg, const KnSnapshot *base, const KnSnapshot *head, KnErr *err)
{
    const Rewrite *rw = arg;
    KnWindow *win = NULL;
    KN_TRY(kn_window_plan(rw->w->tbl, base, head, &win, err));
    KnCode rc = check_window(rw, win, err);
    kn_window_free(win);
    return rc;
}

static KnCode produce(Rewrite *rw, const char *operation, int64_t *ret_id, KnErr *err)
{
    const KnWriter *w = rw->w;
    if (rw->removed.len == 0 && w->added.len == 0)
        return KN_OK;
    collect_deletes(rw);
    KnSnapshotDraft draft = {
        .operation = operation          ? operation
                     : w->added.len > 0 ? "overwrite"
                                        : "delete",
        .n_added = w->added.len,
        .added = w->added.items,
        .n_removed = rw->removed.len,
        .removed = rw->removed.items,
        .n_removed_deletes = rw->removed_deletes.len,
        .removed_deletes = rw->removed_deletes.items,
        .validate = validate,
        .arg = rw,
    };
    return kn_snapshot_produce(rw->w, &draft, ret_id, err);
}

/* Adds the new rows too where there are some; *ret is filled as far as it went. */
static KnCode run(Rewrite *rw, const char *select_sql, KnWriteResult *ret, KnErr *err)
{
    KnWriter *w = rw->w;
    KN_TRY(split_tasks(rw, err));
    KN_TRY(count_matches(rw, err));
    KN_TRY(rewrite_files(rw, err));
    size_t n_rewritten = w->added.len;
    if (select_sql) {
        KN_BUF_AUTO rows;
        kn_buf_init(&rows, (size_t)256 << 20);
        KN_TRY(kn_write_columns_sql(w, select_sql, &rows, err));
        KN_TRY(kn_write_data(w, rows.data, false, err));
    }
    for (size_t i = 0; i < w->added.len; i++) {
        const KnDataFile *file = &w->added.items[i]->file;
        ret->added_files++;
        ret->added_bytes += file->size_bytes;
        ret->added_rows += i >= n_rewritten ? file->record_count : 0;
    }
    ret->removed_files = (int64_t)rw->removed.len;
    ret->removed_rows = rw->removed_rows;
    return produce(rw, select_sql ? "overwrite" : NULL, &ret->snapshot_id, err);
}

static KnCode rewrite(KnWriter *w, const KnExpr *filter, const char *select_sql, KnWriteResult *ret,
                      KnErr *err)
{
    Rewrite rw = {.w = w, .filter = filter};
    KnWriteResult res = {.snapshot_id = -1};
    KnCode rc = run(&rw, select_sql, &res, err);
    kn_vec_done(&rw.doubtful);
    kn_vec_done(&rw.rewritten);
    kn_vec_done(&rw.removed);
    kn_vec_done(&rw.removed_deletes);
    kn_plan_free(rw.plan);
    bool keep = rc == KN_OK || rc == KN_E_UNKNOWN;
    const char *name = w->tbl->name;
    kn_writer_done(w, keep);
    if (rc != KN_OK)
        return kn_err_wrap(err, rc, "%s table %s", select_sql ? "overwrite" : "delete from", name);
    *ret = res;
    return res.snapshot_id < 0 ? KN_OK : kn_fault_at("write-after-commit", err);
}

KnCode kn_write_delete(KnTable *tbl, KnSession *ses, const KnExpr *filter,
                       const KnWriteOptions *opts, KnWriteResult *ret, KnErr *err)
{
    KnWriter w;
    KN_TRY(kn_writer_init(&w, tbl, ses, opts, err));
    return rewrite(&w, filter, NULL, ret, err);
}

KnCode kn_write_overwrite(KnTable *tbl, KnSession *ses, const KnOverwrite *change,
                          const KnWriteOptions *opts, KnWriteResult *ret, KnErr *err)
{
    KnWriter w;
    KN_TRY(kn_writer_init(&w, tbl, ses, opts, err));
    return rewrite(&w, change->filter, change->select_sql, ret, err);
}
