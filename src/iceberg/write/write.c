/* SPDX-License-Identifier: Apache-2.0 */
/*
 * write.c - append.
 *
 * Rows are bound, written and committed; see write_internal.h for the parts and write_rewrite.c and
 * write_upsert.c for operations that take rows away. One thread at a time per table and session.
 */
#include "base/fault.h"
#include "iceberg/write/write_internal.h"

void kn_write_count(const KnWriter *w, size_t n_rewritten, KnWriteResult *ret)
{
    for (size_t i = 0; i < w->added.len; i++) {
        const KnDataFile *file = &w->added.items[i]->file;
        ret->added_files++;
        ret->added_bytes += file->size_bytes;
        ret->added_rows += i >= n_rewritten ? file->record_count : 0;
    }
    for (size_t i = 0; i < w->added_deletes.len; i++) {
        const KnDataFile *file = &w->added_deletes.items[i]->file;
        ret->delete_files++;
        ret->added_bytes += file->content_size >= 0 ? file->content_size : file->size_bytes;
    }
}

static KnCode add_rows(KnWriter *w, const char *select_sql, KnErr *err)
{
    KN_BUF_AUTO rows;
    kn_buf_init(&rows, (size_t)256 << 20);
    KN_TRY(kn_write_columns_sql(w, select_sql, &rows, err));
    return kn_write_data(w, rows.data, false, err);
}

static KnCode append(KnWriter *w, const char *select_sql, int64_t *ret_id, KnErr *err)
{
    KN_TRY(add_rows(w, select_sql, err));
    if (w->added.len == 0)
        return KN_OK;
    KnSnapshotDraft draft = {
        .operation = "append", .n_added = w->added.len, .added = w->added.items};
    return kn_snapshot_produce(w, &draft, ret_id, err);
}

KnCode kn_write_append(KnTable *tbl, KnSession *ses, const char *select_sql,
                       const KnWriteOptions *opts, KnWriteResult *ret, KnErr *err)
{
    KnWriter w;
    KN_TRY(kn_writer_init(&w, tbl, ses, opts, err));
    KnWriteResult res = {.snapshot_id = -1};
    KnCode rc = append(&w, select_sql, &res.snapshot_id, err);
    kn_write_count(&w, 0, &res);
    kn_writer_done(&w, rc == KN_OK || rc == KN_E_UNKNOWN);
    if (rc != KN_OK)
        return kn_err_wrap(err, rc, "append to table %s", tbl->name);
    *ret = res;
    return res.snapshot_id < 0 ? KN_OK : kn_fault_at("write-after-commit", err);
}
