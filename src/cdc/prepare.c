/* SPDX-License-Identifier: Apache-2.0 */
/*
 * prepare.c - a window is made ready: planned, its cost and schema checked, cut, spooled where rows
 * must be computed, labelled, and written to the journal. Nothing has left when this is done, and
 * what will leave is fixed.
 *
 * A window in flight is made ready again from its recorded plan: the table's files must still be
 * the ones it names, and computed rows must come out in the recorded numbers.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/map.h"
#include "cdc/delivery_internal.h"
#include "cdc/reader.h"
#include "iceberg/scan/row_sql.h"

#define MAX_PLAN_TEXT ((size_t)512 << 20)

/* ---- rules ---- */

KnCode kn_delivery_keys(const KnDelivery *dlv, KnArena *arena, const KnSchema *schema,
                        const char *const **ret, size_t *ret_n, KnErr *err)
{
    const KnDeliveryOptions *opts = &dlv->opts;
    *ret = NULL;
    *ret_n = 0;
    if (opts->mode == KN_SINK_APPEND)
        return KN_OK;
    const char **keys =
        kn_arena_zalloc(arena, (opts->n_keys + schema->n_identifier_ids + 1) * sizeof(*keys));
    size_t n = 0;
    for (size_t i = 0; i < opts->n_keys; ++i) {
        const char *key = opts->keys[i];
        bool found = false;
        for (size_t k = 0; k < schema->root.n_fields && !found; ++k)
            found = strcmp(schema->root.fields[k].name, key) == 0;
        if (!found)
            return kn_err_set(err, KN_E_INVAL, "key %s: table %s has no such top-level column", key,
                              dlv->tbl->name);
        keys[n++] = kn_arena_strdup(arena, key);
    }
    for (size_t i = 0; opts->n_keys == 0 && i < schema->n_identifier_ids; ++i) {
        const KnField *field = NULL;
        for (size_t k = 0; k < schema->root.n_fields && !field; ++k)
            if (schema->root.fields[k].id == schema->identifier_ids[i])
                field = &schema->root.fields[k];
        if (!field) /* an identifier inside a struct: whole rows say it too */
            return KN_OK;
        keys[n++] = kn_arena_strdup(arena, field->name);
    }
    *ret = keys;
    *ret_n = n;
    return KN_OK;
}

KnCode kn_delivery_check_cost(const KnDelivery *dlv, const KnWindow *win, KnErr *err)
{
    if (win->rewrite_bytes < 0 || (uint64_t)win->rewrite_bytes <= dlv->opts.max_rewrite_bytes)
        return KN_OK;
    return kn_err_set(err, KN_E_REFUSED,
                      "table %s: snapshot %" PRId64 " (%s) rewrites files of %" PRId64
                      " bytes, more than --max-rewrite-bytes %" PRIu64
                      ": raise that, or run `knut cdc reload`",
                      dlv->tbl->name, win->to->snapshot_id, win->operation, win->rewrite_bytes,
                      dlv->opts.max_rewrite_bytes);
}

KnCode kn_delivery_check_table(const KnDelivery *dlv, KnErr *err)
{
    const char *uuid = dlv->tbl->md->uuid;
    if (!uuid || dlv->row.table_uuid[0] == '\0' || dlv->row.cursor < 0 ||
        strcmp(uuid, dlv->row.table_uuid) == 0)
        return KN_OK;
    return kn_err_set(
        err, KN_E_REFUSED,
        "table %s was dropped and made anew (uuid %s, delivered was %s): run `knut cdc "
        "reload` to deliver the new one",
        dlv->tbl->name, uuid, dlv->row.table_uuid);
}

const KnSchema *kn_delivery_schema(const KnDelivery *dlv, const KnSnapshot *to)
{
    const KnMetadata *md = dlv->tbl->md;
    const KnRef *ref = kn_metadata_find_ref(md, kn_str(dlv->opts.ref));
    int64_t head = ref ? ref->snapshot_id : md->current_snapshot_id;
    bool is_main = strcmp(dlv->opts.ref, "main") == 0;
    return to->snapshot_id == head && is_main ? kn_metadata_schema(md)
                                              : kn_metadata_snapshot_schema(md, to);
}

/* ---- common parts ---- */

static KnReadyWindow *ready_new(void)
{
    KnArena *arena = kn_arena_new(16384);
    KnReadyWindow *ready = kn_arena_zalloc(arena, sizeof(*ready));
    ready->arena = arena;
    return ready;
}

KnReadyWindow *kn_ready_free(KnReadyWindow *ready)
{
    if (!ready)
        return NULL;
    ready->spool = kn_spool_close(ready->spool);
    ready->read = kn_read_close(ready->read);
    ready->win = kn_window_free(ready->win);
    (void)kn_arena_free(ready->arena);
    return NULL;
}

static KnLabelParts label_parts(const KnDelivery *dlv, const KnChunkPlan *plan, uint64_t digest)
{
    return (KnLabelParts){.source = dlv->key.source,
                          .sink = dlv->key.sink,
                          .db = dlv->schema_name,
                          .table = dlv->table_name,
                          .epoch = dlv->row.epoch,
                          .from = plan->from,
                          .to = plan->to,
                          .plan_digest = digest};
}

static bool none_sent(const KnJournalWindow *rec)
{
    for (size_t i = 0; rec && i < rec->n_chunks; ++i)
        if (rec->chunks[i].state != KN_CHUNK_PLANNED)
            return false;
    return true;
}

/* The window as the sink will see it; labels and id come from the record. */
static void fill_sink_window(const KnDelivery *dlv, KnReadyWindow *ready)
{
    const KnChunkPlan *plan = ready->plan;
    KnSinkWindow *win = &ready->sink_win;
    win->first = plan->from < 0;
    win->clear = win->first && dlv->row.epoch > 0;
    win->untouched = none_sent(ready->rec);
    win->deletes = plan->deletes > 0;
    const KnSnapshot *to = kn_metadata_find_snapshot(dlv->tbl->md, plan->to);
    win->sequence = to ? to->sequence_number : 0;
    win->schema = ready->schema;
    win->mode = plan->mode;
    win->keys = (const char *const *)plan->keys;
    win->n_keys = plan->n_keys;
    if (!ready->rec)
        return;
    win->planned_ms = ready->rec->started_ms;
    win->id = ready->rec->window_label;
    win->claim_label = win->first ? ready->rec->claim_label : NULL;
    win->expect_label = win->first ? NULL : kn_arena_strdup(ready->arena, dlv->row.last_label);
}

static KnCode open_spool(KnDelivery *dlv, KnReadyWindow *ready, uint32_t n_buckets,
                         const char *const *keys, size_t n_keys, KnErr *err)
{
    KN_TRY(kn_delivery_need_session(dlv, err));
    const KnSpoolOptions opts = {
        .schema = ready->schema, .keys = keys, .n_keys = n_keys, .n_buckets = n_buckets};
    return kn_spool_open(ready->win, dlv->ses, &opts, &ready->spool, err);
}

/* ---- a new window ---- */

static bool any_deletes(const KnWindow *win)
{
    for (size_t i = 0; i < win->n_added; ++i)
        if (win->added[i].n_deletes)
            return true;
    return false;
}

static KnCode plan_direct(KnDelivery *dlv, KnReadyWindow *ready, const KnChunkPlanOptions *opts,
                          KnErr *err)
{
    ready->plan = kn_chunk_plan_direct(ready->arena, ready->win, opts);
    ready->tasks = ready->win->added;
    if (ready->win->kind != KN_WINDOW_DIRECT || !any_deletes(ready->win))
        return KN_OK;
    KN_TRY(kn_delivery_need_session(dlv, err));
    const KnReader reader = {
        .win = ready->win, .schema = ready->schema, .ses = dlv->ses, .tasks = ready->tasks};
    return kn_reader_count(&reader, ready->plan, &ready->read, err);
}

static KnCode plan_computed(KnDelivery *dlv, KnReadyWindow *ready, const KnChunkPlanOptions *opts,
                            KnErr *err)
{
    uint32_t buckets = kn_chunk_plan_buckets(ready->win, opts->chunk_bytes);
    KN_TRY(open_spool(dlv, ready, buckets, opts->keys, opts->n_keys, err));
    ready->plan = kn_chunk_plan_computed(ready->arena, ready->win, ready->spool, buckets, opts);
    if (opts->mode != KN_SINK_APPEND || ready->plan->deletes == 0)
        return KN_OK;
    return kn_err_set(err, KN_E_REFUSED,
                      "table %s: snapshot %" PRId64 " (%s) deletes %" PRId64
                      " rows, which append mode cannot deliver: use --mode upsert",
                      dlv->tbl->name, ready->plan->to, ready->plan->operation,
                      ready->plan->deletes);
}

static KnCode make_plan(KnDelivery *dlv, KnReadyWindow *ready, KnErr *err)
{
    KnChunkPlanOptions opts = {.chunk_bytes = dlv->opts.chunk_bytes,
                               .mode = dlv->opts.mode,
                               .schema_id = ready->schema->schema_id};
    KN_TRY(kn_delivery_keys(dlv, ready->arena, ready->schema, &opts.keys, &opts.n_keys, err));
    return ready->win->kind == KN_WINDOW_COMPUTED ? plan_computed(dlv, ready, &opts, err)
                                                  : plan_direct(dlv, ready, &opts, err);
}

static const char *arena_label(KnArena *arena, const char *(*spell)(const KnLabelParts *, char *),
                               const KnLabelParts *parts)
{
    char label[KN_LABEL_SIZE];
    return kn_arena_strdup(arena, spell(parts, label));
}

/* The journal's form of the plan, with every label. */
static KnCode make_record(KnDelivery *dlv, KnReadyWindow *ready, KnErr *err)
{
    const KnChunkPlan *plan = ready->plan;
    KN_BUF_AUTO text;
    kn_buf_init(&text, MAX_PLAN_TEXT);
    kn_chunk_plan_format(&text, plan);
    KN_TRY(kn_buf_check(&text, err));
    KnLabelParts parts = label_parts(dlv, plan, kn_chunk_plan_digest((KnStr){text.data, text.len}));
    KnJournalWindow *rec = kn_arena_zalloc(ready->arena, sizeof(*rec));
    *rec = (KnJournalWindow){.epoch = dlv->row.epoch,
                             .from = plan->from,
                             .to = plan->to,
                             .operation = plan->operation,
                             .upserts = plan->upserts,
                             .deletes = plan->deletes,
                             .bytes = plan->read_bytes,
                             .n_chunks = plan->n_chunks,
                             .table_uuid = dlv->tbl->md->uuid ? dlv->tbl->md->uuid : "",
                             .claim_label = ""};
    rec->plan = kn_arena_strndup(ready->arena, text.data, text.len);
    rec->window_label = arena_label(ready->arena, kn_label_window, &parts);
    parts.chunk = KN_LABEL_CLAIM;
    if (plan->from < 0)
        rec->claim_label = arena_label(ready->arena, kn_label_format, &parts);
    rec->chunks = kn_arena_zalloc(ready->arena, (plan->n_chunks + 1) * sizeof(*rec->chunks));
    for (size_t i = 0; i < plan->n_chunks; ++i) {
        KnJournalChunk *chunk = &rec->chunks[i];
        *chunk = (KnJournalChunk){
            .number = (int64_t)i, .op = plan->chunks[i].op, .rows = plan->chunks[i].rows};
        parts.chunk = (int64_t)i;
        (void)kn_label_format(&parts, chunk->label);
    }
    ready->rec = rec;
    return KN_OK;
}

/* The sink is asked before the plan is written: a schema that it cannot take leaves no window
 * behind. */
static KnCode probe(KnDelivery *dlv, KnReadyWindow *ready, KnErr *err)
{
    fill_sink_window(dlv, ready);
    if (!ready->sink_win.first && ready->plan->n_chunks == 0)
        return KN_OK;
    KN_TRY(kn_delivery_need_sink(dlv, err));
    return kn_sink_probe(dlv->sink, &ready->sink_win, err);
}

static KnCode prepare_new(KnDelivery *dlv, KnReadyWindow *ready, const KnSnapshot *from,
                          const KnSnapshot *to, KnErr *err)
{
    KN_TRY(kn_window_plan(dlv->tbl, from, to, &ready->win, err));
    KN_TRY(kn_delivery_check_cost(dlv, ready->win, err));
    ready->schema = kn_delivery_schema(dlv, to);
    KN_TRY(make_plan(dlv, ready, err));
    KN_TRY(probe(dlv, ready, err));
    KN_TRY(make_record(dlv, ready, err));
    KN_TRY(dlv->jn->ops->plan(dlv->jn, dlv->row.id, ready->rec, &ready->rec->id, err));
    fill_sink_window(dlv, ready);
    return KN_OK;
}

KnCode kn_ready_new(KnDelivery *dlv, const KnSnapshot *from, const KnSnapshot *to,
                    KnReadyWindow **ret, KnErr *err)
{
    int64_t began = kn_clock_mono_us();
    KnReadyWindow *ready = ready_new();
    KnCode rc = prepare_new(dlv, ready, from, to, err);
    ready->phase_us[KN_PHASE_PLAN] = kn_clock_mono_us() - began;
    if (rc != KN_OK) {
        ready = kn_ready_free(ready);
        return rc;
    }
    *ret = ready;
    return KN_OK;
}

/* ---- a window in flight ---- */

#define CHANGED "the window in flight cannot be finished; run `knut cdc reload`"

static KnCode find_snapshot(const KnDelivery *dlv, int64_t id, const KnSnapshot **ret, KnErr *err)
{
    *ret = id < 0 ? NULL : kn_metadata_find_snapshot(dlv->tbl->md, id);
    if (id < 0 || *ret)
        return KN_OK;
    return kn_err_set(err, KN_E_REFUSED, "table %s: snapshot %" PRId64 " has expired: " CHANGED,
                      dlv->tbl->name, id);
}

/* The recorded labels must be those that plan, delivery and epoch give: the record is whole. */
static KnCode check_labels(const KnDelivery *dlv, const KnReadyWindow *ready, KnErr *err)
{
    const KnJournalWindow *rec = ready->rec;
    char label[KN_LABEL_SIZE];
    KnLabelParts parts = label_parts(dlv, ready->plan, kn_chunk_plan_digest(kn_str(rec->plan)));
    bool same = rec->n_chunks == ready->plan->n_chunks && rec->to == ready->plan->to &&
                rec->from == ready->plan->from &&
                strcmp(kn_label_window(&parts, label), rec->window_label) == 0;
    for (size_t i = 0; same && i < rec->n_chunks; ++i) {
        parts.chunk = (int64_t)i;
        same = strcmp(kn_label_format(&parts, label), rec->chunks[i].label) == 0 &&
               rec->chunks[i].rows == ready->plan->chunks[i].rows &&
               rec->chunks[i].op == ready->plan->chunks[i].op;
    }
    return same ? KN_OK
                : kn_err_set(err, KN_E_CORRUPT,
                             "the recorded plan and its labels do not belong "
                             "together: the state file was changed");
}

/* The window's task for each file of the plan. */
static KnCode match_tasks(KnReadyWindow *ready, KnErr *err)
{
    const KnChunkPlan *plan = ready->plan;
    KN_MAP_AUTO by_path = kn_map_new();
    for (size_t i = 0; i < ready->win->n_added; ++i) {
        bool is_new;
        *kn_map_get_or_add(by_path, kn_str(ready->win->added[i].data->file.path), &is_new) =
            &ready->win->added[i];
    }
    KnScanTask *tasks = kn_arena_zalloc(ready->arena, (plan->n_files + 1) * sizeof(*tasks));
    for (size_t i = 0; i < plan->n_files; ++i) {
        const KnScanTask *task = kn_map_find(by_path, kn_str(plan->files[i].path));
        if (!task || task->data->file.record_count != plan->files[i].rows)
            return kn_err_set(err, KN_E_CORRUPT,
                              "file %s is not in the snapshot as it was planned: " CHANGED,
                              plan->files[i].path);
        tasks[i] = *task;
    }
    ready->tasks = tasks;
    return KN_OK;
}

static bool all_proven(const KnJournalWindow *rec)
{
    for (size_t i = 0; i < rec->n_chunks; ++i)
        if (rec->chunks[i].state != KN_CHUNK_PROVEN)
            return false;
    return true;
}

/* Makes the spool again, and sees that it has come out the same. */
static KnCode respool(KnDelivery *dlv, KnReadyWindow *ready, KnErr *err)
{
    const KnChunkPlan *plan = ready->plan;
    if (strcmp(plan->hash_version, KN_ROW_HASH_VERSION) != 0)
        return kn_err_set(
            err, KN_E_UNSUPPORTED,
            "the window was planned with row hash %s, this program has %s: finish it with "
            "the older program, or reload",
            plan->hash_version, KN_ROW_HASH_VERSION);
    KN_TRY(open_spool(dlv, ready, plan->n_buckets, (const char *const *)plan->keys, plan->n_keys,
                      err));
    for (size_t i = 0; i < plan->n_chunks; ++i) {
        const KnChunk *chunk = &plan->chunks[i];
        KnChangeOp op = chunk->op == KN_CHUNK_DELETE ? KN_CHANGE_DELETE : KN_CHANGE_INSERT;
        int64_t rows = kn_spool_rows(ready->spool, op, chunk->bucket);
        if (rows != chunk->rows)
            return kn_err_set(err, KN_E_CORRUPT,
                              "chunk %zu comes out with %" PRId64 " rows, planned were %" PRId64
                              ": " CHANGED,
                              i, rows, chunk->rows);
    }
    return KN_OK;
}

static KnCode prepare_open(KnDelivery *dlv, KnReadyWindow *ready, KnErr *err)
{
    const KnSnapshot *from, *to;
    const KnJournalWindow *rec = ready->rec;
    KN_TRY(kn_chunk_plan_parse(ready->arena, kn_str(rec->plan), &ready->plan, err));
    KN_TRY(check_labels(dlv, ready, err));
    ready->schema = kn_metadata_find_schema(dlv->tbl->md, ready->plan->schema_id);
    if (!ready->schema)
        return kn_err_set(err, KN_E_REFUSED, "table %s: schema %" PRId32 " is gone: " CHANGED,
                          dlv->tbl->name, ready->plan->schema_id);
    fill_sink_window(dlv, ready);
    if (all_proven(rec))
        return KN_OK;
    KN_TRY(find_snapshot(dlv, rec->from, &from, err));
    KN_TRY(find_snapshot(dlv, rec->to, &to, err));
    KN_TRY(kn_window_plan(dlv->tbl, from, to, &ready->win, err));
    if (ready->win->kind != ready->plan->kind)
        return kn_err_set(err, KN_E_CORRUPT,
                          "snapshot %" PRId64 " is not of the kind that was planned: " CHANGED,
                          rec->to);
    return ready->plan->kind == KN_WINDOW_COMPUTED ? respool(dlv, ready, err)
                                                   : match_tasks(ready, err);
}

KnCode kn_ready_open(KnDelivery *dlv, const KnJournalWindow *rec, KnReadyWindow **ret, KnErr *err)
{
    KnReadyWindow *ready = ready_new();
    int64_t began = kn_clock_mono_us();
    ready->resumed = true;
    ready->rec = kn_arena_zalloc(ready->arena, sizeof(*ready->rec));
    *ready->rec = *rec;
    KnCode rc = prepare_open(dlv, ready, err);
    ready->phase_us[KN_PHASE_PLAN] = kn_clock_mono_us() - began;
    if (rc != KN_OK) {
        ready = kn_ready_free(ready);
        return kn_err_wrap(err, rc, "table %s, window to snapshot %" PRId64, dlv->tbl->name,
                           rec->to);
    }
    *ret = ready;
    return KN_OK;
}
