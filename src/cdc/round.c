/* SPDX-License-Identifier: Apache-2.0 */
/*
 * round.c - opening a delivery, and one round of it: the window in flight, then every new snapshot.
 *
 * The reading engine is opened when rows must be read and kept; the sink is opened when there is
 * something to deliver and closed when the round ends. At the end of a round without windows the
 * destination is looked at when this process has not seen it yet, or when the table's schema
 * changed: begin() with the last proven load checks the history and makes the target follow the
 * schema.
 */
#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/metrics.h"
#include "base/stop.h"
#include "base/vec.h"
#include "cdc/delivery_internal.h"

/* ---- opening ---- */

static bool stop_requested(void *arg)
{
    (void)arg;
    return kn_stop_requested();
}

static void copy_options(KnDelivery *dlv, const KnDeliveryOptions *opts)
{
    KnDeliveryOptions *to = &dlv->opts;
    *to = *opts;
    const char **keys = kn_arena_zalloc(dlv->arena, (opts->n_keys + 1) * sizeof(*keys));
    for (size_t i = 0; i < opts->n_keys; ++i)
        keys[i] = kn_arena_strdup(dlv->arena, opts->keys[i]);
    to->keys = keys;
    to->sink = kn_arena_strdup(dlv->arena, opts->sink);
    to->target = kn_arena_strdup(dlv->arena, opts->target);
    to->ref = kn_arena_strdup(dlv->arena, opts->ref ? opts->ref : "main");
    to->spill_dir = opts->spill_dir ? kn_arena_strdup(dlv->arena, opts->spill_dir) : NULL;
    to->chunk_bytes = opts->chunk_bytes ? opts->chunk_bytes : KN_DELIVERY_CHUNK_BYTES;
    to->parallel_loads = opts->parallel_loads > 0 ? opts->parallel_loads : 4;
    to->max_rewrite_bytes =
        opts->max_rewrite_bytes ? opts->max_rewrite_bytes : KN_DELIVERY_MAX_REWRITE_BYTES;
    to->memory_limit = opts->memory_limit ? opts->memory_limit : KN_DELIVERY_MEMORY_LIMIT;
    to->stop = opts->stop ? opts->stop : stop_requested;
}

static KnCode check_options(const KnDeliveryOptions *opts, KnErr *err)
{
    if (!opts->sink || !opts->target)
        return kn_err_set(err, KN_E_INVAL, "a delivery needs a sink and a target");
    if (opts->mode == KN_SINK_APPEND && opts->n_keys)
        return kn_err_set(err, KN_E_INVAL,
                          "keys are for upserts: leave --key away, or use --mode upsert");
    if (opts->max_windows < 0 || opts->threads < 0)
        return kn_err_set(err, KN_E_INVAL, "a number of windows or threads is negative");
    return KN_OK;
}

static KnCode make_key(KnDelivery *dlv, KnErr *err)
{
    KnArena *arena = dlv->arena;
    const KnCatalog *cat = dlv->tbl->catalog;
    dlv->key.source = kn_arena_printf(arena, "%s#%s", cat->ops->id(cat), dlv->tbl->name);
    dlv->key.target = kn_arena_printf(arena, "%s.%s", dlv->schema_name, dlv->table_name);
    dlv->sink_opts.target = dlv->opts.target;
    dlv->sink_opts.delivery = kn_arena_printf(arena, "%s -> %s", dlv->key.source, dlv->key.target);
    dlv->sink_opts.threads = dlv->opts.threads;
    dlv->sink_opts.memory_limit = dlv->opts.memory_limit / 2;
    dlv->sink_opts.spill_dir = dlv->opts.spill_dir;
    return dlv->sink_ops->identify(&dlv->sink_opts, arena, &dlv->key.sink, err);
}

static KnCode open_delivery(KnDelivery *dlv, KnErr *err)
{
    KN_TRY(kn_sink_find(dlv->opts.sink, &dlv->sink_ops, &dlv->sink_opts.place, err));
    KN_TRY(kn_sink_target_parse(dlv->arena, dlv->opts.target, &dlv->schema_name, &dlv->table_name,
                                err));
    KN_TRY(make_key(dlv, err));
    return kn_delivery_read_row(dlv, dlv->jn && dlv->jn->mode == KN_JOURNAL_WRITE, err);
}

KnCode kn_delivery_open(KnTable *tbl, KnJournal *jn, const KnDeliveryOptions *opts,
                        KnDelivery **ret, KnErr *err)
{
    KN_TRY(check_options(opts, err));
    KnArena *arena = kn_arena_new(4096);
    KnDelivery *dlv = kn_arena_zalloc(arena, sizeof(*dlv));
    dlv->arena = arena;
    dlv->tbl = tbl;
    dlv->jn = jn;
    dlv->schema_id = -1;
    copy_options(dlv, opts);
    KnCode rc = open_delivery(dlv, err);
    if (rc != KN_OK) {
        dlv = kn_delivery_close(dlv);
        return rc;
    }
    *ret = dlv;
    return KN_OK;
}

KnDelivery *kn_delivery_close(KnDelivery *dlv)
{
    if (!dlv)
        return NULL;
    dlv->sink = kn_sink_close(dlv->sink);
    dlv->ses = kn_session_close(dlv->ses);
    dlv->eng = kn_engine_close(dlv->eng);
    (void)kn_arena_free(dlv->row_arena);
    (void)kn_arena_free(dlv->report_arena);
    (void)kn_arena_free(dlv->arena);
    return NULL;
}

void kn_delivery_detach(KnDelivery *dlv)
{
    dlv->ses = kn_session_close(dlv->ses);
    dlv->eng = kn_engine_close(dlv->eng);
    dlv->tbl = NULL;
}

KnCode kn_delivery_attach(KnDelivery *dlv, KnTable *tbl, KnErr *err)
{
    KN_ARENA_AUTO arena = kn_arena_new(512);
    const char *source =
        kn_arena_printf(arena, "%s#%s", tbl->catalog->ops->id(tbl->catalog), tbl->name);
    assert(!dlv->tbl);
    if (strcmp(source, dlv->key.source) != 0)
        return kn_err_set(err, KN_E_INVAL, "%s is delivered here, not %s", dlv->key.source, source);
    dlv->tbl = tbl;
    return KN_OK;
}

KnCode kn_delivery_read_row(KnDelivery *dlv, bool create, KnErr *err)
{
    KnArena *arena = kn_arena_new(1024);
    KnDeliveryRow row = {0};
    const KnDeliveryRow want = {.key = dlv->key,
                                .table = dlv->tbl->name,
                                .table_uuid = dlv->tbl->md->uuid ? dlv->tbl->md->uuid : ""};
    KnCode rc = KN_E_NOTFOUND;
    if (dlv->jn)
        rc = dlv->jn->ops->delivery(dlv->jn, arena, &want, create, &row, err);
    if (rc == KN_E_NOTFOUND && !create) { /* looking at what was never delivered */
        row = want;
        row.cursor = -1;
        row.status = "new";
        row.message = row.last_label = "";
        rc = KN_OK;
    }
    if (rc != KN_OK) {
        (void)kn_arena_free(arena);
        return rc;
    }
    (void)kn_arena_free(dlv->row_arena);
    dlv->row_arena = arena;
    dlv->row = row;
    return KN_OK;
}

KnCode kn_delivery_need_session(KnDelivery *dlv, KnErr *err)
{
    if (dlv->ses)
        return KN_OK;
    const KnEngineOptions opts = {.threads = dlv->opts.threads,
                                  .memory_limit = dlv->opts.memory_limit / 2,
                                  .spill_dir = dlv->opts.spill_dir};
    if (!dlv->eng)
        KN_TRY(kn_engine_open(&opts, &dlv->eng, err));
    return kn_session_open(dlv->eng, &dlv->ses, err);
}

KnCode kn_delivery_need_sink(KnDelivery *dlv, KnErr *err)
{
    return dlv->sink ? KN_OK : dlv->sink_ops->open(&dlv->sink_opts, &dlv->sink, err);
}

/* ---- a round ---- */

typedef KN_VEC(KnWindowReport) ReportVec;

static KnCode take_window(KnDelivery *dlv, KnReadyWindow *ready, ReportVec *done, KnErr *err)
{
    KnWindowReport win;
    KnCode rc = kn_deliver_window(dlv, ready, &win, err);
    ready = kn_ready_free(ready);
    KN_TRY(rc);
    *kn_vec_push(done) = win;
    dlv->checked = true;
    return kn_delivery_read_row(dlv, false, err);
}

static KnCode finish_open(KnDelivery *dlv, ReportVec *done, KnErr *err)
{
    KN_ARENA_AUTO arena = kn_arena_new(4096);
    KnJournalWindow *rec;
    KnReadyWindow *ready;
    KN_TRY(dlv->jn->ops->open_window(dlv->jn, arena, dlv->row.id, &rec, err));
    if (!rec)
        return KN_OK;
    kn_metric_add(kn_metric_get(KN_METRIC_COUNTER, "knut_cdc_resumed_windows_total", "",
                                "Windows finished by a later round or process"),
                  1);
    KN_TRY(kn_ready_open(dlv, rec, &ready, err));
    return take_window(dlv, ready, done, err);
}

static bool may_go_on(const KnDelivery *dlv, const ReportVec *done)
{
    bool bounded = dlv->opts.max_windows && (int64_t)done->len >= dlv->opts.max_windows;
    return !bounded && !dlv->opts.stop(dlv->opts.stop_arg);
}

/* What is known to wait. */
typedef struct Waiting {
    int64_t windows, since_ms;
} Waiting;

static Waiting waiting_from(const KnLineage *todo, size_t at)
{
    return at < todo->n ? (Waiting){(int64_t)(todo->n - at), todo->items[at]->timestamp_ms}
                        : (Waiting){0};
}

static KnCode deliver_new(KnDelivery *dlv, ReportVec *done, Waiting *ret_left, KnErr *err)
{
    KN_ARENA_AUTO arena = kn_arena_new(4096);
    KnLineage todo;
    size_t i;
    KN_TRY(kn_window_lineage(dlv->tbl, dlv->row.cursor, dlv->opts.ref, arena, &todo, err));
    for (i = 0; i < todo.n && may_go_on(dlv, done); ++i) {
        *ret_left = waiting_from(&todo, i);
        const KnSnapshot *from =
            dlv->row.cursor < 0 ? NULL : kn_metadata_find_snapshot(dlv->tbl->md, dlv->row.cursor);
        KnReadyWindow *ready;
        KN_TRY(kn_ready_new(dlv, from, todo.items[i], &ready, err));
        KN_TRY(take_window(dlv, ready, done, err));
    }
    *ret_left = waiting_from(&todo, i);
    return KN_OK;
}

/* The target follows a schema that no window brought, and the destination's history is looked at
 * once in a process' life even when nothing is new. */
static KnCode follow_schema(KnDelivery *dlv, KnErr *err)
{
    const KnSchema *schema = kn_metadata_schema(dlv->tbl->md);
    bool follows = dlv->schema_id == schema->schema_id || strcmp(dlv->opts.ref, "main") != 0;
    if (dlv->row.cursor < 0 || (dlv->checked && follows))
        return KN_OK;
    KN_ARENA_AUTO arena = kn_arena_new(1024);
    KnSinkWindow win = {.id = "schema",
                        .expect_label = dlv->row.last_label,
                        .schema = schema,
                        .mode = dlv->opts.mode};
    KN_TRY(kn_delivery_keys(dlv, arena, schema, &win.keys, &win.n_keys, err));
    KnErr why = {0};
    KnCode rc = kn_delivery_need_sink(dlv, &why);
    if (rc == KN_E_BUSY &&
        follows) /* somebody reads the destination: there is no need to disturb */
        return KN_OK;
    if (rc != KN_OK) {
        *err = why;
        return rc;
    }
    KN_TRY(kn_sink_probe(dlv->sink, &win, err));
    KN_TRY(kn_sink_begin(dlv->sink, &win, err));
    dlv->checked = true;
    dlv->schema_id = schema->schema_id;
    return KN_OK;
}

static KnCode run_round(KnDelivery *dlv, ReportVec *done, Waiting *ret_left, KnErr *err)
{
    KN_TRY(kn_table_refresh(dlv->tbl, err));
    KN_TRY(kn_delivery_read_row(dlv, true, err));
    KN_TRY(kn_delivery_check_table(dlv, err));
    KN_TRY(finish_open(dlv, done, err));
    KN_TRY(deliver_new(dlv, done, ret_left, err));
    return ret_left->windows ? KN_OK : follow_schema(dlv, err);
}

/* ---- the report ---- */

const char *kn_delivery_status_name(KnDeliveryStatus status)
{
    static const char *const NAMES[] = {"idle", "ok", "refused", "failed"};
    return NAMES[status];
}

static void write_report(KnDelivery *dlv, int64_t from, const ReportVec *done, KnCode rc,
                         const KnErr *err)
{
    KnArena *arena = kn_arena_new(4096);
    KnDeliveryReport *report = &dlv->report;
    (void)kn_arena_free(dlv->report_arena);
    dlv->report_arena = arena;
    KnWindowReport *windows = kn_arena_zalloc(arena, (done->len + 1) * sizeof(*windows));
    if (done->len)
        memcpy(windows, done->items, done->len * sizeof(*windows));
    *report = (KnDeliveryReport){.table = kn_arena_strdup(arena, dlv->tbl->name),
                                 .sink = dlv->opts.sink,
                                 .target = dlv->key.target,
                                 .from = from,
                                 .to = dlv->row.cursor,
                                 .n_windows = done->len,
                                 .windows = windows,
                                 .code = rc,
                                 .message = rc == KN_OK ? "" : kn_arena_strdup(arena, err->msg)};
    if (rc == KN_E_REFUSED || rc == KN_E_UNSUPPORTED)
        report->status = KN_DELIVERY_REFUSED;
    else if (rc != KN_OK)
        report->status = KN_DELIVERY_FAILED;
    else
        report->status = done->len ? KN_DELIVERY_OK : KN_DELIVERY_IDLE;
}

static void count_failure(const KnDelivery *dlv)
{
    bool refused = dlv->report.status == KN_DELIVERY_REFUSED;
    if (dlv->report.code == KN_OK)
        return;
    kn_metric_add(refused ? kn_metric_get(KN_METRIC_COUNTER, "knut_cdc_refusals_total", "",
                                          "Rounds that ended with a refusal")
                          : kn_metric_get(KN_METRIC_COUNTER, "knut_cdc_failures_total", "",
                                          "Rounds that ended with a failure"),
                  1);
}

/* An idle round after an idle one leaves the journal alone. */
static KnCode note_status(KnDelivery *dlv, KnErr *err)
{
    const char *status = kn_delivery_status_name(dlv->report.status);
    if (dlv->row.id == 0 || (strcmp(dlv->row.status, status) == 0 &&
                             strcmp(dlv->row.message, dlv->report.message) == 0))
        return KN_OK;
    return dlv->jn->ops->set_status(dlv->jn, dlv->row.id, status, dlv->report.message, err);
}

KnCode kn_delivery_round(KnDelivery *dlv, KnErr *err)
{
    KnErr local = {0};
    ReportVec done = {0};
    Waiting left = {0};
    int64_t from = dlv->row.cursor;
    KnCode rc = run_round(dlv, &done, &left, &local);
    dlv->sink = kn_sink_close(dlv->sink);
    if (rc != KN_OK) /* what is half read is of no use to the next round */
        dlv->ses = kn_session_close(dlv->ses);
    write_report(dlv, from, &done, rc, &local);
    dlv->report.windows_left = left.windows;
    dlv->report.waiting_ms = left.since_ms;
    kn_vec_done(&done);
    count_failure(dlv);
    KnCode noted = note_status(dlv, rc == KN_OK ? &local : NULL);
    if (rc == KN_OK)
        rc = noted;
    if (rc != KN_OK && err)
        *err = local;
    return rc;
}

const KnDeliveryReport *kn_delivery_report(const KnDelivery *dlv)
{
    return &dlv->report;
}

const KnDeliveryKey *kn_delivery_key(const KnDelivery *dlv)
{
    return &dlv->key;
}

KnCode kn_delivery_reload(KnDelivery *dlv, KnErr *err)
{
    KN_TRY(kn_delivery_read_row(dlv, true, err));
    KN_TRY(dlv->jn->ops->reload(dlv->jn, dlv->row.id, err));
    dlv->schema_id = -1;
    return kn_delivery_read_row(dlv, true, err);
}
