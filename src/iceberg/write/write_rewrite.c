/* SPDX-License-Identifier: Apache-2.0 */
/*
 * write_rewrite.c - delete and overwrite by filter, copy-on-write and merge-on-read.
 *
 * Files that bounds and partition prove to match wholly go unread. Of the others the rows are
 * counted, by file: none match and the file stays, all match and it goes. Where some match, the
 * rest is written anew, under today's schema and partition spec (in v3 with each row's id and the
 * sequence number of its last change, as columns of the new file); or, merge-on-read, the file
 * stays and the rows that go are written down as deletes. What deletes rows of a single file goes
 * with it.
 *
 * On a newer base the operation holds unless a file was added that may have matching rows, or a
 * file that is changed here was removed or got new deletes there (write_conflict.c).
 */
#include <inttypes.h>

#include "base/fault.h"
#include "base/random.h"
#include "iceberg/write/write_change.h"

/* ---- which files ---- */

static KnCode split_tasks(KnChange *change, KnErr *err)
{
    const KnWriter *w = change->w;
    KnPlanOptions opts = {
        .snapshot = kn_writer_head(w), .schema = w->schema, .filter = change->filter};
    KN_TRY(kn_plan_scan(w->tbl, &opts, &change->plan, err));
    for (size_t i = 0; i < change->plan->n_tasks; i++) {
        const KnScanTask *task = &change->plan->tasks[i];
        const KnDataFile *file = &task->data->file;
        const KnPartitionSpec *spec = kn_metadata_find_spec(w->tbl->md, file->spec_id);
        if (spec && kn_expr_must_match_file(change->filter, spec, w->schema, file)) {
            *kn_vec_push(&change->removed) = task->data;
            change->removed_rows += file->record_count;
        } else {
            *kn_vec_push(&change->tasks) = *task;
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
static KnCode put_filter(const KnChange *change, KnBuf *buf, KnErr *err)
{
    kn_buf_text(buf, "coalesce(");
    KN_TRY(kn_expr_sql_with(buf, change->filter, put_column, (void *)(uintptr_t)change->w->schema,
                            err));
    kn_buf_text(buf, ", false)");
    return KN_OK;
}

/* "SELECT <columns> FROM <all rows of tasks> WHERE <filter>" */
static KnCode put_matches(const KnChange *change, KnBuf *buf, KnErr *err)
{
    kn_buf_text(buf, "SELECT t, p");
    kn_change_put_source(buf, change->read, change->w->schema, ", t, p");
    kn_buf_text(buf, " WHERE ");
    KN_TRY(put_filter(change, buf, err));
    return kn_buf_check(buf, err);
}

static KnCode open_read(KnChange *change, KnErr *err)
{
    KnReadOptions opts = {.schema = change->w->schema,
                          .with_position = true,
                          .keep_positions = change->merge_on_read};
    KnScanTasks tasks = {change->tasks.items, change->tasks.len};
    return kn_read_open(change->w->tbl, change->w->ses, tasks, &opts, &change->read, err);
}

/* ---- copy-on-write ---- */

static KnCode copy_rows(KnChange *change, const KnRead *read, bool lineage, KnErr *err)
{
    const char *more = lineage ? ", _row_id, _last_updated_sequence_number" : "";
    KN_BUF_AUTO sql;
    kn_buf_init(&sql, (size_t)256 << 20);
    kn_buf_text(&sql, "SELECT *");
    kn_change_put_source(&sql, read, change->w->schema, more);
    kn_buf_text(&sql, " WHERE NOT ");
    KN_TRY(put_filter(change, &sql, err));
    KN_TRY(kn_buf_check(&sql, err));
    return kn_write_data(change->w, sql.data, lineage, err);
}

static KnCode rewrite_files(KnChange *change, KnErr *err)
{
    if (change->partial.len == 0)
        return KN_OK;
    bool lineage = change->w->tbl->md->format_version >= 3;
    KnRead *read = NULL;
    KnReadOptions opts = {.schema = change->w->schema, .with_lineage = lineage};
    KnScanTasks tasks = {change->partial.items, change->partial.len};
    KN_TRY(kn_read_open(change->w->tbl, change->w->ses, tasks, &opts, &read, err));
    KnCode rc = copy_rows(change, read, lineage, err);
    kn_read_close(read);
    for (size_t i = 0; i < change->partial.len; i++)
        *kn_vec_push(&change->removed) = change->partial.items[i].data;
    return rc;
}

static KnCode copy_on_write(KnChange *change, KnErr *err)
{
    KN_BUF_AUTO rows;
    kn_buf_init(&rows, (size_t)256 << 20);
    KN_TRY(put_matches(change, &rows, err));
    change->rows_sql = rows.data;
    KN_TRY(kn_change_sort_out(change, err));
    change->read = kn_read_close(change->read);
    return rewrite_files(change, err);
}

/* ---- merge-on-read ---- */

static KnCode keep_matches(KnChange *change, const char *table, KnErr *err)
{
    KN_BUF_AUTO sql;
    kn_buf_init(&sql, (size_t)256 << 20);
    kn_buf_printf(&sql, "CREATE TEMP TABLE %s AS ", table);
    KN_TRY(put_matches(change, &sql, err));
    return kn_session_exec(change->w->ses, sql.data, NULL, err);
}

/* The rows that go are kept meanwhile, 16 bytes each, so that files are read once. */
static KnCode merge_on_read(KnChange *change, KnErr *err)
{
    KnWriter *w = change->w;
    const char *table = kn_arena_printf(w->arena, "kn_gone_%" PRIx64, (uint64_t)kn_random_id());
    change->rows_sql = kn_arena_printf(w->arena, "SELECT t, p FROM %s", table);
    KnCode rc = keep_matches(change, table, err);
    if (rc == KN_OK)
        rc = kn_change_sort_out(change, err);
    if (rc == KN_OK)
        rc = kn_change_write_deletes(change, err);
    const char *drop = kn_arena_printf(w->arena, "DROP TABLE IF EXISTS %s", table);
    KnCode dropped = kn_session_exec(w->ses, drop, NULL, rc == KN_OK ? err : NULL);
    return rc == KN_OK ? dropped : rc;
}

/* ---- both ---- */

static KnCode take_rows_away(KnChange *change, KnErr *err)
{
    KN_TRY(split_tasks(change, err));
    if (change->tasks.len == 0)
        return KN_OK;
    KN_TRY(open_read(change, err));
    return change->merge_on_read ? merge_on_read(change, err) : copy_on_write(change, err);
}

/* Adds the new rows too where there are some; *ret is filled as far as it went. */
static KnCode run(KnChange *change, const char *select_sql, KnWriteResult *ret, KnErr *err)
{
    KnWriter *w = change->w;
    KN_TRY(kn_change_mode(w, select_sql ? "write.update.mode" : "write.delete.mode",
                          &change->merge_on_read, err));
    KN_TRY(take_rows_away(change, err));
    size_t n_rewritten = w->added.len;
    if (select_sql) {
        KN_BUF_AUTO rows;
        kn_buf_init(&rows, (size_t)256 << 20);
        KN_TRY(kn_write_columns_sql(w, select_sql, &rows, err));
        KN_TRY(kn_write_data(w, rows.data, false, err));
    }
    kn_write_count(w, n_rewritten, ret);
    ret->removed_files = (int64_t)change->removed.len;
    ret->removed_rows = change->removed_rows;
    const char *operation = select_sql || w->added.len > 0 ? "overwrite" : "delete";
    return kn_change_commit(change, operation, &ret->snapshot_id, err);
}

static KnCode rewrite(KnWriter *w, const KnExpr *filter, const char *select_sql, KnWriteResult *ret,
                      KnErr *err)
{
    KnChange change = {.w = w,
                       .format_version = w->tbl->md->format_version,
                       .filter = filter,
                       .what = "rows that the filter may match",
                       .deletes_only = !select_sql};
    KnWriteResult res = {.snapshot_id = -1};
    KnCode rc = run(&change, select_sql, &res, err);
    kn_change_done(&change);
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
