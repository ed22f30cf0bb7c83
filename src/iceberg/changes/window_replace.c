/* SPDX-License-Identifier: Apache-2.0 */
/*
 * window_replace.c - may a `replace` be believed? Its live rows before and after are counted.
 *
 * Manifests give a file's rows exactly, and the rows of its deletes only sometimes: a deletion
 * vector counts exactly, a file of position deletes counts its lines (which may repeat), equality
 * deletes count nothing. So the counts of both sides either agree, or disagree for certain, or the
 * manifests cannot tell and the rows must be counted by reading (kn_spool_open does).
 */
#include <inttypes.h>

#include "base/map.h"
#include "iceberg/changes/window_internal.h"

typedef struct Count {
    int64_t rows;    /* of data files */
    int64_t deleted; /* lines of position deletes, each file once */
    bool exact;
} Count;

static void count_deletes(Count *count, KnMap *seen, const KnScanTask *task, KnBuf *buf)
{
    for (size_t i = 0; i < task->n_deletes; i++) {
        const KnDataFile *file = &task->deletes[i]->file;
        if (file->content != KN_CONTENT_POSITION_DELETES || file->format != KN_FORMAT_PUFFIN)
            count->exact = false;
        kn_buf_reset(buf);
        kn_buf_printf(buf, "%lld:%s", (long long)file->content_offset, file->path);
        bool is_new = false;
        kn_map_get_or_add(seen, (KnStr){buf->data, buf->len}, &is_new);
        if (is_new && file->content == KN_CONTENT_POSITION_DELETES)
            count->deleted += file->record_count;
    }
}

static void count_tasks(Count *count, const KnScanTask *tasks, size_t n, KnMap *seen)
{
    KN_BUF_AUTO buf;
    kn_buf_init(&buf, (size_t)1 << 20);
    for (size_t i = 0; i < n; i++) {
        count->rows += tasks[i].data->file.record_count;
        count_deletes(count, seen, &tasks[i], &buf);
    }
}

KnCode kn_window_check_replace(const KnWindow *win, bool *ret_balanced, KnErr *err)
{
    KN_MAP_AUTO seen_before = kn_map_new();
    KN_MAP_AUTO seen_after = kn_map_new();
    Count before = {.exact = true};
    Count after = {.exact = true};
    count_tasks(&before, win->removed, win->n_removed, seen_before);
    count_tasks(&before, win->touched, win->n_touched, seen_before);
    count_tasks(&after, win->added, win->n_added, seen_after);
    count_tasks(&after, win->touched_after, win->n_touched, seen_after);
    bool balanced = before.rows - before.deleted == after.rows - after.deleted;
    if (!balanced && before.exact && after.exact)
        return kn_err_set(err, KN_E_REFUSED,
                          "snapshot %" PRId64 " of table %s says replace, but replaces %" PRId64
                          " live rows by %" PRId64 ": it is not believed; run `knut cdc reload` to "
                          "deliver the table anew",
                          win->to->snapshot_id, win->tbl->name, before.rows - before.deleted,
                          after.rows - after.deleted);
    *ret_balanced = balanced;
    return KN_OK;
}
