/* SPDX-License-Identifier: Apache-2.0 */
/*
 * write_change.c - rows that go: which files they take along, and the commit. See write_change.h.
 */
#include "iceberg/write/write_change.h"

#include <inttypes.h>

#include "base/map.h"
#include "iceberg/manifest/partition_key.h"

KnCode kn_change_mode(const KnWriter *w, const char *key, bool *ret_merge_on_read, KnErr *err)
{
    KnRowMode mode = w->opts ? w->opts->mode : KN_ROW_MODE_TABLE;
    const char *text = kn_metadata_property(w->tbl->md, key, "copy-on-write");
    bool merge = mode == KN_ROW_MODE_MERGE_ON_READ;
    if (mode == KN_ROW_MODE_TABLE) {
        merge = strcasecmp(text, "merge-on-read") == 0;
        if (!merge && strcasecmp(text, "copy-on-write") != 0)
            return kn_err_set(err, KN_E_INVAL,
                              "table %s: property %s is '%.100s': it is copy-on-write or "
                              "merge-on-read",
                              w->tbl->name, key, text);
    }
    if (merge && w->tbl->md->format_version < 2)
        return kn_err_set(
            err, KN_E_UNSUPPORTED,
            "table %s has format version 1, which knows no deletes of rows: upgrade it "
            "to 2, or change it copy-on-write",
            w->tbl->name);
    *ret_merge_on_read = merge;
    return KN_OK;
}

void kn_change_put_source(KnBuf *buf, const KnRead *read, const KnSchema *schema, const char *more)
{
    kn_buf_printf(buf, " FROM (%s\n) AS r(", kn_read_sql(read));
    for (size_t i = 0; i < schema->root.n_fields; i++)
        kn_buf_printf(buf, "%sc%zu", i > 0 ? ", " : "", i);
    kn_buf_printf(buf, "%s)", more);
}

/* ---- which files ---- */

static KnCode take_counts(void *arg, KnBatch *batch, KnErr *err)
{
    KnChange *change = arg;
    KnVector tasks = kn_batch_vector(batch, 0);
    KnVector counts = kn_batch_vector(batch, 1);
    for (size_t row = 0; row < kn_batch_rows(batch); row++) {
        size_t at = (size_t)((const int64_t *)tasks.data)[row];
        int64_t n = ((const int64_t *)counts.data)[row];
        if (at >= change->tasks.len)
            return kn_err_set(err, KN_E_CORRUPT, "a scan names file %zu of %zu", at,
                              change->tasks.len);
        change->removed_rows += n;
        if (n == kn_read_live_rows(change->read, at))
            *kn_vec_push(&change->removed) = change->tasks.items[at].data;
        else
            *kn_vec_push(&change->partial) = change->tasks.items[at];
    }
    return KN_OK;
}

KnCode kn_change_sort_out(KnChange *change, KnErr *err)
{
    KN_BUF_AUTO sql;
    kn_buf_init(&sql, (size_t)64 << 20);
    kn_buf_printf(&sql, "SELECT t, count(*) FROM (%s) AS d(t, p) GROUP BY t ORDER BY t",
                  change->rows_sql);
    KN_TRY(kn_buf_check(&sql, err));
    return kn_session_visit(change->w->ses, sql.data, take_counts, change, err);
}

/* Both lists are in the order of tasks. */
KnCode kn_change_except_sql(const KnChange *change, KnBuf *buf, KnErr *err)
{
    kn_buf_printf(buf, "SELECT CAST(m.i AS BIGINT), d.p FROM (%s) AS d(t, p) JOIN (VALUES ",
                  change->rows_sql);
    size_t at = 0;
    for (size_t i = 0; i < change->partial.len; i++) {
        while (change->tasks.items[at].data != change->partial.items[i].data)
            at++;
        kn_buf_printf(buf, "%s(%zu, %zu)", i > 0 ? ", " : "", at, i);
    }
    kn_buf_text(buf, ") AS m(t, i) ON d.t = m.t");
    return kn_buf_check(buf, err);
}

/* Rows of files that go whole need no deletes. */
static KnCode partial_rows_sql(const KnChange *change, KnBuf *buf, KnErr *err)
{
    kn_buf_printf(buf, "SELECT t, p FROM (%s) AS d(t, p) SEMI JOIN (VALUES ", change->rows_sql);
    size_t at = 0;
    for (size_t i = 0; i < change->partial.len; i++) {
        while (change->tasks.items[at].data != change->partial.items[i].data)
            at++;
        kn_buf_printf(buf, "%s(%zu)", i > 0 ? ", " : "", at);
    }
    kn_buf_text(buf, ") AS m(i) ON d.t = m.i");
    return kn_buf_check(buf, err);
}

KnCode kn_change_write_deletes(KnChange *change, KnErr *err)
{
    if (change->partial.len == 0)
        return KN_OK;
    KN_BUF_AUTO sql;
    kn_buf_init(&sql, (size_t)256 << 20);
    KN_TRY(partial_rows_sql(change, &sql, err));
    KnDoomed doomed = {.read = change->read,
                       .tasks = {change->tasks.items, change->tasks.len},
                       .rows_sql = sql.data};
    return kn_write_deletes(change->w, &doomed, err);
}

/* ---- delete files that go with their data file ---- */

static void collect_deletes(KnChange *change)
{
    KN_MAP_AUTO gone = kn_map_new();
    for (size_t i = 0; i < change->removed.len; i++)
        *kn_map_get_or_add(gone, kn_str(change->removed.items[i]->file.path), NULL) = change;
    for (size_t i = 0; i < change->plan->n_tasks; i++) {
        const KnScanTask *task = &change->plan->tasks[i];
        KnStr path = kn_str(task->data->file.path);
        if (!kn_map_find(gone, path))
            continue;
        for (size_t d = 0; d < task->n_deletes; d++) {
            const KnDataFile *file = &task->deletes[d]->file;
            if (file->content == KN_CONTENT_POSITION_DELETES &&
                kn_str_eq(kn_delete_named_data_file(file), path))
                *kn_vec_push(&change->removed_deletes) = task->deletes[d];
        }
    }
    const KnEntryVec *replaced = &change->w->replaced_deletes;
    for (size_t i = 0; i < replaced->len; i++)
        *kn_vec_push(&change->removed_deletes) = replaced->items[i];
}

/* ---- the commit ---- */

static KnCode validate(void *arg, const KnSnapshot *base, const KnSnapshot *head, KnErr *err)
{
    return kn_change_check_base(arg, base, head, err);
}

KnCode kn_change_commit(KnChange *change, const char *operation, int64_t *ret_id, KnErr *err)
{
    const KnWriter *w = change->w;
    if (change->removed.len == 0 && w->added.len == 0 && w->added_deletes.len == 0)
        return KN_OK;
    collect_deletes(change);
    KnSnapshotDraft draft = {
        .operation = operation,
        .n_added = w->added.len,
        .added = w->added.items,
        .n_added_deletes = w->added_deletes.len,
        .added_deletes = w->added_deletes.items,
        .n_removed = change->removed.len,
        .removed = change->removed.items,
        .n_removed_deletes = change->removed_deletes.len,
        .removed_deletes = change->removed_deletes.items,
        .validate = validate,
        .arg = change,
    };
    return kn_snapshot_produce(change->w, &draft, ret_id, err);
}

void kn_change_done(KnChange *change)
{
    change->read = kn_read_close(change->read);
    change->plan = kn_plan_free(change->plan);
    kn_vec_done(&change->tasks);
    kn_vec_done(&change->partial);
    kn_vec_done(&change->removed);
    kn_vec_done(&change->removed_deletes);
}
