/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source_snapshots.c - an Iceberg table as it grows: the rows that each snapshot adds.
 *
 * The offset is a snapshot's id. The first epoch has the rows that are live at the head then, later
 * ones those that the snapshots behind the offset added, one after the other. What a snapshot adds
 * is what the changelog says: rows that were written anew as they were are no news. A snapshot that
 * takes rows away has no meaning in a stream of rows, and is refused by its id.
 */
#include <inttypes.h>

#include "iceberg/changes/changelog.h"
#include "pipeline/native/stream/source.h"

typedef struct Snapshots {
    KnTable *table;
    KN_VEC(KnWindow *) windows;
    KN_VEC(KnRead *) reads;
    KN_VEC(KnSpool *) spools;
} Snapshots;

static KnCode snapshots_open(KnStreamSource *src, KnErr *err)
{
    Snapshots *own = kn_arena_zalloc(src->run->arena, sizeof(*own));
    src->own = own;
    src->identity = src->place;
    return kn_native_table_open(src->run, src->place, &own->table, err);
}

static int64_t cursor_of(const json_t *offsets)
{
    return offsets ? (int64_t)json_integer_value(json_object_get(offsets, "snapshot")) : -1;
}

static KnCode snapshots_latest(KnStreamSource *src, const json_t *from, const KnStreamLimit *limit,
                               json_t **ret_to, KnErr *err)
{
    Snapshots *own = src->own;
    KnLineage line = {0};
    *ret_to = NULL;
    KN_TRY(kn_table_refresh(own->table, err));
    KN_TRY(kn_window_lineage(own->table, cursor_of(from), "main", src->run->arena, &line, err));
    size_t n = limit->files > 0 && (size_t)limit->files < line.n ? (size_t)limit->files : line.n;
    if (n)
        *ret_to = json_pack("{s:I}", "snapshot", (json_int_t)line.items[n - 1]->snapshot_id);
    return KN_OK;
}

static void append(KnBuf *sql, const char *select)
{
    kn_buf_printf(sql, "%sSELECT * FROM (%s)", sql->len ? "\nUNION ALL " : "", select);
}

static KnCode added_files(const KnStreamSource *src, Snapshots *own, const KnWindow *win,
                          const KnSchema *schema, KnBuf *sql, KnErr *err)
{
    KnReadOptions *read = kn_arena_zalloc(src->run->arena, sizeof(*read));
    read->schema = schema;
    KnRead **slot = kn_vec_push(&own->reads);
    KN_TRY(kn_read_open(own->table, src->run->session, (KnScanTasks){win->added, win->n_added},
                        read, slot, err));
    append(sql, kn_read_sql(*slot));
    return KN_OK;
}

static KnCode computed_rows(const KnStreamSource *src, Snapshots *own, const KnWindow *win,
                            const KnSchema *schema, KnBuf *sql, KnErr *err)
{
    const KnSpoolOptions opts = {.schema = schema, .n_buckets = 1};
    KnSpool **slot = kn_vec_push(&own->spools);
    KN_TRY(kn_spool_open(win, src->run->session, &opts, slot, err));
    int64_t deleted = kn_spool_rows(*slot, KN_CHANGE_DELETE, 0);
    if (deleted)
        return kn_err_set(err, KN_E_REFUSED,
                          "snapshot %" PRId64 " of %s (%s) takes %" PRId64
                          " row(s) away, and a stream of rows cannot say that: --full-refresh %s "
                          "starts anew from what is there",
                          win->to->snapshot_id, src->place, win->operation, deleted,
                          src->flow->target);
    append(sql, kn_spool_sql(*slot, KN_CHANGE_INSERT, 0));
    return KN_OK;
}

static KnCode add_window(const KnStreamSource *src, Snapshots *own, const KnWindow *win,
                         const KnSchema *schema, KnBuf *sql, KnErr *err)
{
    if (win->kind == KN_WINDOW_DIRECT)
        return added_files(src, own, win, schema, sql, err);
    return win->kind == KN_WINDOW_COMPUTED ? computed_rows(src, own, win, schema, sql, err) : KN_OK;
}

static KnCode snapshots_columns(KnStreamSource *src, const char **ret_sql, KnErr *err)
{
    const Snapshots *own = src->own;
    return kn_native_nothing_sql(src->run, kn_metadata_schema(own->table->md), ret_sql, err);
}

static KnCode snapshots_rows(KnStreamSource *src, const json_t *from, const json_t *to,
                             const char **ret_sql, KnErr *err)
{
    Snapshots *own = src->own;
    KnLineage line = {0};
    KN_BUF_AUTO sql = {.max = 256 << 20};
    int64_t cursor = cursor_of(from), end = cursor_of(to);
    const KnSchema *schema = kn_metadata_schema(own->table->md);
    const KnSnapshot *before =
        cursor < 0 ? NULL : kn_metadata_find_snapshot(own->table->md, cursor);
    KN_TRY(kn_window_lineage(own->table, cursor, "main", src->run->arena, &line, err));
    for (size_t i = 0; i < line.n; i++) {
        KnWindow **slot = kn_vec_push(&own->windows);
        KN_TRY(kn_window_plan(own->table, before, line.items[i], slot, err));
        KN_TRY(add_window(src, own, *slot, schema, &sql, err));
        before = line.items[i];
        if (before->snapshot_id == end)
            break;
    }
    KN_TRY(kn_buf_check(&sql, err));
    if (!sql.len)
        return snapshots_columns(src, ret_sql, err);
    *ret_sql = kn_arena_strndup(src->run->arena, sql.data, sql.len);
    return KN_OK;
}

static void snapshots_release(KnStreamSource *src)
{
    Snapshots *own = src->own;
    kn_vec_foreach (&own->spools, spool) {
        if (*spool)
            kn_spool_close(*spool);
    }
    kn_vec_foreach (&own->reads, read) {
        if (*read)
            kn_read_close(*read);
    }
    kn_vec_foreach (&own->windows, win) {
        if (*win)
            kn_window_free(*win);
    }
    kn_vec_done(&own->spools);
    kn_vec_done(&own->reads);
    kn_vec_done(&own->windows);
}

static void snapshots_close(KnStreamSource *src)
{
    Snapshots *own = src->own;
    if (!own)
        return;
    snapshots_release(src);
    if (own->table)
        kn_table_free(own->table);
    own->table = NULL;
}

const KnStreamSourceOps kn_stream_snapshots = {.kind = "iceberg",
                                               .open = snapshots_open,
                                               .latest = snapshots_latest,
                                               .rows = snapshots_rows,
                                               .columns = snapshots_columns,
                                               .release = snapshots_release,
                                               .close = snapshots_close};
