/* SPDX-License-Identifier: Apache-2.0 */
/*
 * count.c - how many rows a plan has, without reading them where that can be helped.
 *
 * Manifests know the rows of a data file and the positions in a deletion vector, which are rows of
 * its file, each once (spec: "Deletion Vectors"). Files with other deletes are looked at: position
 * deletes are read, may repeat one another and name rows of other files; equality deletes are
 * matched by their key columns. Only a filter asks for the rows themselves, and then for the
 * columns that it names. A file that the table must not name is never counted unseen: opening the
 * read refuses it.
 */
#include "iceberg/scan/read.h"

static bool is_vector(const KnManifestEntry *entry)
{
    return entry->file.content == KN_CONTENT_POSITION_DELETES &&
           entry->file.format == KN_FORMAT_PUFFIN;
}

static bool is_known(const KnTable *tbl, const KnScanTask *task)
{
    if (kn_table_check_path(tbl, kn_str(task->data->file.path), NULL) != KN_OK)
        return false;
    if (task->n_deletes == 0)
        return task->data->file.record_count >= 0;
    return task->n_deletes == 1 && is_vector(task->deletes[0]) &&
           task->deletes[0]->file.record_count >= 0 &&
           task->deletes[0]->file.record_count <= task->data->file.record_count;
}

static int64_t known_rows(const KnScanTask *task)
{
    int64_t dead = task->n_deletes > 0 ? task->deletes[0]->file.record_count : 0;
    return task->data->file.record_count - dead;
}

bool kn_plan_count(const KnPlan *plan, int64_t *ret)
{
    int64_t total = 0;
    for (size_t i = 0; i < plan->n_tasks; i++) {
        if (!is_known(plan->tbl, &plan->tasks[i]))
            return false;
        total += known_rows(&plan->tasks[i]);
    }
    if (plan->filter)
        return false;
    *ret = total;
    return true;
}

/* Opening a read resolves the deletes; none of its SELECTs is run. */
static KnCode count_looked_at(const KnPlan *plan, KnSession *ses, KnScanTasks tasks, int64_t *ret,
                              KnErr *err)
{
    static const KnSchema no_columns = {.root = {.kind = KN_TYPE_STRUCT}};
    KnReadOptions opts = {.schema = &no_columns};
    KnRead *read = NULL;
    KN_TRY(kn_read_open(plan->tbl, ses, tasks, &opts, &read, err));
    for (size_t i = 0; i < tasks.n; i++)
        *ret += kn_read_live_rows(read, i);
    kn_read_close(read);
    return KN_OK;
}

static KnCode count_without_filter(const KnPlan *plan, KnSession *ses, int64_t *ret, KnErr *err)
{
    KnScanTask *tasks = kn_arena_alloc(plan->arena, (plan->n_tasks + 1) * sizeof(*tasks));
    size_t n = 0;
    int64_t total = 0;
    for (size_t i = 0; i < plan->n_tasks; i++) {
        if (is_known(plan->tbl, &plan->tasks[i]))
            total += known_rows(&plan->tasks[i]);
        else
            tasks[n++] = plan->tasks[i];
    }
    KN_TRY(count_looked_at(plan, ses, (KnScanTasks){tasks, n}, &total, err));
    *ret = total;
    return KN_OK;
}

KnCode kn_read_count(const KnPlan *plan, KnSession *ses, const KnReadOptions *opts, int64_t *ret,
                     KnErr *err)
{
    if (!opts->filter)
        return count_without_filter(plan, ses, ret, err);
    KnScanTasks tasks = {.items = plan->tasks, .n = plan->n_tasks};
    KnRead *read = NULL;
    KN_TRY(kn_read_open(plan->tbl, ses, tasks, opts, &read, err));
    KN_BUF_AUTO sql;
    kn_buf_init(&sql, (size_t)256 << 20);
    kn_buf_printf(&sql, "SELECT count(*) FROM (%s) AS r", kn_read_sql(read));
    KnCode rc = kn_buf_check(&sql, err);
    if (rc == KN_OK)
        rc = kn_session_query_i64(ses, sql.data, ret, err);
    kn_read_close(read);
    return rc;
}
