/* SPDX-License-Identifier: Apache-2.0 */
/*
 * window.c - one snapshot against its parent: which files count, what reading them costs.
 *
 * Nothing but manifests is opened here. The window owns an arena with all of its memory. The word
 * of the snapshot decides in two cases only: `replace` is taken at its word once the manifests'
 * row counts balance, and a word that is none of the specification's four is refused. Any other
 * mix is settled by the files. A window between two snapshots that are not parent and child has no
 * word at all.
 */
#include <inttypes.h>

#include "base/map.h"
#include "iceberg/changes/window_internal.h"

static bool known_operation(const char *word)
{
    static const char *const words[] = {"append", "replace", "overwrite", "delete"};
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if (strcmp(word, words[i]) == 0)
            return true;
    }
    return false;
}

/* The operation's word, as far as it speaks about from -> to. */
static KnCode read_operation(KnWindow *win, KnErr *err)
{
    const KnSnapshot *to = win->to;
    win->operation = "overwrite";
    if (!win->from && to->parent_id >= 0) {
        win->operation = "initial";
        return KN_OK;
    }
    if (win->from && to->parent_id != win->from->snapshot_id)
        return KN_OK;
    if (to->operation && !known_operation(to->operation))
        return kn_err_set(err, KN_E_REFUSED,
                          "snapshot %" PRId64 " of table %s: operation '%s' is not known",
                          to->snapshot_id, win->tbl->name, to->operation);
    win->operation = !win->from ? "initial" : to->operation ? to->operation : "overwrite";
    return KN_OK;
}

static int64_t blob_size(const KnDataFile *file)
{
    return file->content_size >= 0 ? file->content_size : file->size_bytes;
}

/* Delete files are shared by many tasks: each is read once. */
static void add_deletes(KnWindow *win, KnMap *seen, const KnScanTask *task, KnBuf *buf)
{
    for (size_t i = 0; i < task->n_deletes; i++) {
        const KnDataFile *file = &task->deletes[i]->file;
        kn_buf_reset(buf);
        kn_buf_printf(buf, "%lld:%s", (long long)file->content_offset, file->path);
        bool is_new = false;
        kn_map_get_or_add(seen, (KnStr){buf->data, buf->len}, &is_new);
        if (is_new) {
            win->read_files++;
            win->read_bytes += blob_size(file);
        }
    }
}

static int64_t add_tasks(KnWindow *win, KnMap *seen, const KnSide *side)
{
    KN_BUF_AUTO buf;
    kn_buf_init(&buf, (size_t)1 << 20);
    int64_t bytes = 0;
    for (size_t i = 0; i < side->n_tasks; i++) {
        const KnDataFile *file = &side->tasks[i].data->file;
        win->read_files++;
        win->read_bytes += file->size_bytes;
        win->read_rows += file->record_count;
        bytes += file->size_bytes;
        add_deletes(win, seen, &side->tasks[i], &buf);
    }
    return bytes;
}

static bool has_deletes(const KnScanTask *tasks, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (tasks[i].n_deletes > 0)
            return true;
    }
    return false;
}

static void count_cost(KnWindow *win)
{
    KN_MAP_AUTO seen = kn_map_new();
    KN_BUF_AUTO buf;
    kn_buf_init(&buf, (size_t)1 << 20);
    int64_t added = add_tasks(win, seen, &(KnSide){win->n_added, win->added});
    int64_t rewritten = add_tasks(win, seen, &(KnSide){win->n_removed, win->removed});
    rewritten += add_tasks(win, seen, &(KnSide){win->n_touched, win->touched});
    for (size_t i = 0; i < win->n_touched; i++)
        add_deletes(win, seen, &win->touched_after[i], &buf);
    if (win->n_removed > 0 || win->n_touched > 0)
        win->rewrite_bytes = rewritten + added;
    win->upserts = win->deletes = -1;
    if (win->kind == KN_WINDOW_DIRECT && !has_deletes(win->added, win->n_added)) {
        win->upserts = win->read_rows;
        win->deletes = 0;
    }
}

/* A `replace` whose rows balance changes nothing: nothing of it is read. */
static KnCode settle_replace(KnWindow *win, KnErr *err)
{
    bool balanced = false;
    KN_TRY(kn_window_check_replace(win, &balanced, err));
    if (balanced)
        win->n_added = win->n_removed = win->n_touched = 0;
    return KN_OK;
}

/* What cannot be read is refused before anything is. */
static KnCode check_formats(const KnWindow *win, KnErr *err)
{
    const KnScanTasks lists[] = {
        {win->added, win->n_added},
        {win->removed, win->n_removed},
        {win->touched, win->n_touched},
        {win->touched_after, win->n_touched},
    };
    for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
        KnCode rc = kn_read_check_formats(win->tbl, lists[i], err);
        if (rc != KN_OK)
            return kn_err_wrap(err, rc, "snapshot %" PRId64, win->to->snapshot_id);
    }
    return KN_OK;
}

static KnCode fill(KnWindow *win, KnErr *err)
{
    KN_TRY(read_operation(win, err));
    KnSide sides[2] = {{0}};
    KN_TRY(kn_window_sides(win->tbl, win->from, win->to, win->arena, sides, err));
    kn_window_pair(win, sides);
    if (strcmp(win->operation, "replace") == 0)
        KN_TRY(settle_replace(win, err));
    if (win->n_removed > 0 || win->n_touched > 0)
        win->kind = KN_WINDOW_COMPUTED;
    else
        win->kind = win->n_added > 0 ? KN_WINDOW_DIRECT : KN_WINDOW_EMPTY;
    count_cost(win);
    if (win->kind != KN_WINDOW_EMPTY)
        KN_TRY(check_formats(win, err));
    else
        win->upserts = win->deletes = 0;
    return KN_OK;
}

KnCode kn_window_plan(const KnTable *tbl, const KnSnapshot *from, const KnSnapshot *to,
                      KnWindow **ret, KnErr *err)
{
    KnArena *arena = kn_arena_new(0);
    KnWindow *win = kn_arena_zalloc(arena, sizeof(*win));
    *win = (KnWindow){.tbl = tbl, .from = from, .to = to, .arena = arena};
    KnCode rc = fill(win, err);
    if (rc == KN_E_NOTFOUND && from) {
        KnErr why = err ? *err : (KnErr){0};
        rc = kn_err_set(err, KN_E_REFUSED,
                        "snapshot %" PRId64 " of table %s cannot be compared with snapshot %" PRId64
                        ", a file of metadata is gone (%s); run `knut cdc reload` to deliver the "
                        "table anew",
                        to->snapshot_id, tbl->name, from->snapshot_id, why.msg);
    }
    if (rc != KN_OK) {
        kn_window_free(win);
        return rc;
    }
    *ret = win;
    return KN_OK;
}

KnWindow *kn_window_free(KnWindow *win)
{
    if (win)
        kn_arena_free(win->arena);
    return NULL;
}
