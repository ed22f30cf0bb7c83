/* SPDX-License-Identifier: Apache-2.0 */
/*
 * status.c - what would be delivered, what it would cost, how far behind the target is: from the
 * journal and from manifests, without reading a row.
 */
#include <inttypes.h>
#include <unistd.h>

#include "base/clock.h"
#include "cdc/delivery_internal.h"

static const char *kind_name(KnWindowKind kind)
{
    static const char *const NAMES[] = {"empty", "direct", "computed"};
    return NAMES[kind];
}

static int64_t count_chunks(const KnDelivery *dlv, const KnWindow *win)
{
    KN_ARENA_AUTO arena = kn_arena_new(16384);
    const KnChunkPlanOptions opts = {.chunk_bytes = dlv->opts.chunk_bytes};
    if (win->kind == KN_WINDOW_COMPUTED)
        return -1;
    for (size_t i = 0; i < win->n_added; ++i)
        if (win->added[i].n_deletes)
            return -1;
    return (int64_t)kn_chunk_plan_direct(arena, win, &opts)->n_chunks;
}

static KnWindowCost window_cost(const KnDelivery *dlv, KnArena *arena, const KnWindow *win)
{
    KnErr err = {0};
    KnCode rc = kn_delivery_check_cost(dlv, win, &err);
    bool deletes = win->deletes > 0 && dlv->opts.mode == KN_SINK_APPEND;
    if (rc == KN_OK && deletes)
        rc =
            kn_err_set(&err, KN_E_REFUSED, "append mode cannot deliver deletes: use --mode upsert");
    return (KnWindowCost){.from = win->from ? win->from->snapshot_id : -1,
                          .to = win->to->snapshot_id,
                          .operation = kn_arena_strdup(arena, win->operation ? win->operation : ""),
                          .kind = kind_name(win->kind),
                          .upserts = win->upserts,
                          .deletes = win->deletes,
                          .chunks = count_chunks(dlv, win),
                          .read_files = win->read_files,
                          .read_bytes = win->read_bytes,
                          .read_rows = win->read_rows,
                          .rewrite_bytes = win->rewrite_bytes,
                          .refused = rc != KN_OK,
                          .message = rc == KN_OK ? "" : kn_arena_strdup(arena, err.msg)};
}

/* The next windows' costs, one after another, as long as fn says so. */
typedef struct Walk {
    KnDelivery *dlv;
    KnArena *arena;
    size_t limit;
    size_t n, n_all;
    int64_t waiting_ms;
    KnWindowCost *costs;
} Walk;

static KnCode walk(Walk *walk, KnErr *err)
{
    KnDelivery *dlv = walk->dlv;
    const KnMetadata *md = dlv->tbl->md;
    KnLineage todo;
    KN_TRY(kn_delivery_check_table(dlv, err));
    KN_TRY(kn_window_lineage(dlv->tbl, dlv->row.cursor, dlv->opts.ref, walk->arena, &todo, err));
    const KnSnapshot *from =
        dlv->row.cursor < 0 ? NULL : kn_metadata_find_snapshot(md, dlv->row.cursor);
    walk->n_all = todo.n;
    walk->waiting_ms = todo.n ? todo.items[0]->timestamp_ms : 0;
    walk->costs = kn_arena_zalloc(walk->arena, (todo.n + 1) * sizeof(*walk->costs));
    for (size_t i = 0; i < todo.n && (walk->limit == 0 || i < walk->limit); ++i) {
        KnWindow *win;
        KN_TRY(kn_window_plan(dlv->tbl, from, todo.items[i], &win, err));
        walk->costs[walk->n++] = window_cost(dlv, walk->arena, win);
        win = kn_window_free(win);
        from = todo.items[i];
        if (walk->costs[i].refused)
            break;
    }
    return KN_OK;
}

/* The sink's word on the schema, where the destination exists and nobody holds it. */
static KnCode ask_sink(KnDelivery *dlv, KnErr *err)
{
    const char *place = dlv->sink_opts.place;
    bool first = dlv->row.cursor < 0;
    KnSinkWindow win = {.first = first,
                        .clear = first && dlv->row.epoch > 0,
                        .schema = kn_metadata_schema(dlv->tbl->md),
                        .mode = dlv->opts.mode};
    bool remote = strstr(place, "://") != NULL;
    if (!remote && (place[0] == '\0' || access(place, F_OK) != 0))
        return KN_OK;
    KN_ARENA_AUTO arena = kn_arena_new(1024);
    KN_TRY(kn_delivery_keys(dlv, arena, win.schema, &win.keys, &win.n_keys, err));
    KnCode rc = kn_delivery_need_sink(dlv, err);
    if (rc == KN_E_BUSY)
        return KN_OK;
    if (rc == KN_OK)
        rc = kn_sink_probe(dlv->sink, &win, err);
    dlv->sink = kn_sink_close(dlv->sink);
    return rc;
}

KnCode kn_delivery_ddl(KnDelivery *dlv, KnBuf *out, KnErr *err)
{
    if (!dlv->sink_ops->ddl)
        return kn_err_set(err, KN_E_UNSUPPORTED, "a %s sink makes its target itself",
                          dlv->sink_ops->kind);
    KN_ARENA_AUTO arena = kn_arena_new(1024);
    KnSinkWindow win = {.first = true,
                        .untouched = true,
                        .schema = kn_metadata_schema(dlv->tbl->md),
                        .mode = dlv->opts.mode};
    KN_TRY(kn_delivery_keys(dlv, arena, win.schema, &win.keys, &win.n_keys, err));
    return dlv->sink_ops->ddl(&dlv->sink_opts, &win, out, err);
}

KnCode kn_delivery_check(KnDelivery *dlv, size_t limit, KnArena *arena, KnDeliveryCheck *ret,
                         KnErr *err)
{
    KnErr why = {0};
    Walk state = {.dlv = dlv, .arena = arena, .limit = limit};
    KN_TRY(kn_table_refresh(dlv->tbl, err));
    KN_TRY(kn_delivery_read_row(dlv, false, err));
    KnCode rc = walk(&state, &why);
    if (rc == KN_OK && state.n && state.costs[state.n - 1].refused)
        rc = kn_err_set(&why, KN_E_REFUSED, "%s", state.costs[state.n - 1].message);
    if (rc == KN_OK)
        rc = ask_sink(dlv, &why);
    *ret = (KnDeliveryCheck){.n_windows = state.n,
                             .windows = state.costs,
                             .n_more = state.n_all - state.n,
                             .code = rc,
                             .message = rc == KN_OK ? "" : kn_arena_strdup(arena, why.msg)};
    return KN_OK;
}

static void sum_lag(const Walk *state, KnDeliveryLag *lag)
{
    lag->snapshots = (int64_t)state->n_all;
    lag->waiting_ms = state->waiting_ms;
    for (size_t i = 0; i < state->n; ++i) {
        lag->rows += state->costs[i].read_rows;
        lag->bytes += state->costs[i].read_bytes;
    }
}

KnCode kn_delivery_lag(KnDelivery *dlv, size_t history, KnArena *arena, KnDeliveryLag *ret,
                       KnErr *err)
{
    KnErr why = {0};
    KnDeliveryLag lag = {.head = -1, .message = ""};
    Walk state = {.dlv = dlv, .arena = arena};
    KN_TRY(kn_table_refresh(dlv->tbl, err));
    KN_TRY(kn_delivery_read_row(dlv, false, err));
    KnJournal *jn = dlv->jn;
    if (jn && dlv->row.id > 0) {
        KN_TRY(jn->ops->open_window(jn, arena, dlv->row.id, &lag.open, err));
        KnJournalHistory done;
        KN_TRY(jn->ops->history(jn, arena, dlv->row.id, history, &done, err));
        lag.history = done.windows;
        lag.n_history = done.n;
    }
    lag.row = dlv->row;
    const KnRef *ref = kn_metadata_find_ref(dlv->tbl->md, kn_str(dlv->opts.ref));
    lag.head = ref ? ref->snapshot_id : dlv->tbl->md->current_snapshot_id;
    if (walk(&state, &why) == KN_OK) {
        sum_lag(&state, &lag);
    } else {
        lag.snapshots = lag.rows = lag.bytes = -1;
        lag.message = kn_arena_strdup(arena, why.msg);
    }
    *ret = lag;
    return KN_OK;
}

int64_t kn_delivery_lag_seconds(const KnDeliveryLag *lag)
{
    int64_t now = kn_clock_wall_ms();
    if (lag->snapshots < 0)
        return -1;
    return lag->waiting_ms > 0 && now > lag->waiting_ms ? (now - lag->waiting_ms) / 1000 : 0;
}
