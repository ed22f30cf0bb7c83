/* SPDX-License-Identifier: Apache-2.0 */
/*
 * delivery.c - a window that was made ready goes to its destination, and the cursor moves.
 *
 * kn_deliver_window() is the only way there: begin at the sink, settle the chunks whose fate is not
 * known by asking the sink, load the rest, have committed what the sink held back of it, and when
 * every chunk is proven, make the KnLoadAck that moves the cursor. KnLoadAck's layout is known in
 * this file only, and ack_new() is the only place that makes one.
 *
 * Threads: one reads (reader.c), up to parallel_loads load, the caller waits for them. They share
 * the Transfer; `lock` guards the journal, the observer and the first error. A chunk is marked sent
 * before its first byte leaves and proven after its verdict, each durably.
 */
#include <assert.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/fault.h"
#include "base/log.h"
#include "cdc/delivery_internal.h"
#include "cdc/queue.h"
#include "cdc/reader.h"

#define QUEUE_BYTES ((uint64_t)8 << 20)

/* ---- the ack ---- */

struct KnLoadAck {
    int64_t window, from, to, epoch;
    int64_t upserts, deletes, duplicates, bytes;
    double seconds;
    const char *last_label;
};

int64_t kn_load_ack_window(const KnLoadAck *ack)
{
    return ack->window;
}
int64_t kn_load_ack_from(const KnLoadAck *ack)
{
    return ack->from;
}
int64_t kn_load_ack_to(const KnLoadAck *ack)
{
    return ack->to;
}
int64_t kn_load_ack_epoch(const KnLoadAck *ack)
{
    return ack->epoch;
}
int64_t kn_load_ack_upserts(const KnLoadAck *ack)
{
    return ack->upserts;
}
int64_t kn_load_ack_deletes(const KnLoadAck *ack)
{
    return ack->deletes;
}
int64_t kn_load_ack_duplicates(const KnLoadAck *ack)
{
    return ack->duplicates;
}
int64_t kn_load_ack_bytes(const KnLoadAck *ack)
{
    return ack->bytes;
}
double kn_load_ack_seconds(const KnLoadAck *ack)
{
    return ack->seconds;
}
const char *kn_load_ack_last_label(const KnLoadAck *ack)
{
    return ack->last_label;
}

/* What the destination said of each chunk; from its verdicts, and for chunks that an earlier
 * process proved, from the journal. */
typedef struct Proof {
    bool proven;
    bool held; /* not proven yet: verdict.hold */
    KnVerdict verdict;
} Proof;

/* The only maker of acks: every chunk proven, with the planned number of rows. */
static KnCode ack_new(const KnReadyWindow *ready, const Proof *proofs, const char *before,
                      double seconds, KnLoadAck *ret, KnErr *err)
{
    const KnJournalWindow *rec = ready->rec;
    KnLoadAck ack = {.window = rec->id,
                     .from = rec->from,
                     .to = rec->to,
                     .epoch = rec->epoch,
                     .bytes = ready->plan->read_bytes,
                     .seconds = seconds,
                     .last_label = rec->claim_label[0] ? rec->claim_label : before};
    if (rec->n_chunks != ready->plan->n_chunks)
        return kn_err_set(err, KN_E_CORRUPT, "the journal has %zu chunks, the plan %zu",
                          rec->n_chunks, ready->plan->n_chunks);
    for (size_t i = 0; i < rec->n_chunks; ++i) {
        const KnChunk *chunk = &ready->plan->chunks[i];
        if (!proofs[i].proven || proofs[i].verdict.kind > KN_VERDICT_DUPLICATE ||
            proofs[i].verdict.rows != chunk->rows)
            return kn_err_set(err, KN_E_CORRUPT,
                              "chunk %zu is not proven with its %" PRId64 " rows", i, chunk->rows);
        *(chunk->op == KN_CHUNK_DELETE ? &ack.deletes : &ack.upserts) += chunk->rows;
        ack.duplicates += proofs[i].verdict.kind == KN_VERDICT_DUPLICATE;
        ack.last_label = rec->chunks[i].label;
    }
    *ret = ack;
    return KN_OK;
}

/* ---- a transfer ---- */

typedef struct Transfer {
    KnDelivery *dlv;
    KnReadyWindow *ready;
    Proof *proofs;
    bool *wanted;  /* chunks to load now */
    size_t *turns; /* their numbers, in order */
    size_t n_turns;
    KnQueue *queue;
    bool positions;
    double row_bytes; /* source bytes a row, for progress */
    pthread_mutex_t lock;
    size_t next_turn;
    int64_t rows_seen, bytes_told;
    int64_t read_us, encode_us, load_us, record_us;
    bool committing; /* what is held, if anything was */
    KnCode failed;   /* first failure */
    KnErr err;
} Transfer;

static void fail(Transfer *tr, KnCode rc, const KnErr *err)
{
    pthread_mutex_lock(&tr->lock);
    if (!tr->failed) {
        tr->failed = rc;
        tr->err = *err;
    }
    pthread_mutex_unlock(&tr->lock);
    kn_queue_cancel(tr->queue);
}

static KnCode mark(Transfer *tr, size_t chunk, KnChunkState state, KnVerdictKind verdict,
                   KnErr *err)
{
    KnJournal *jn = tr->dlv->jn;
    pthread_mutex_lock(&tr->lock);
    int64_t began = kn_clock_mono_us();
    KnCode rc = jn->ops->mark(jn, tr->ready->rec->id, (int64_t)chunk, state, verdict, err);
    tr->record_us += kn_clock_mono_us() - began;
    pthread_mutex_unlock(&tr->lock);
    return rc;
}

/* Rows of one chunk on their way to the sink. */
typedef struct ChunkRows {
    Transfer *tr;
    size_t turn;
    const KnChunk *chunk;
    int64_t taken;
    bool ended;
} ChunkRows;

static void tell_progress(Transfer *tr, int64_t rows)
{
    const KnDeliveryObserver *obs = &tr->dlv->opts.observer;
    pthread_mutex_lock(&tr->lock);
    tr->rows_seen += rows;
    int64_t bytes = (int64_t)((double)tr->rows_seen * tr->row_bytes) - tr->bytes_told;
    tr->bytes_told += bytes;
    if (obs->progress)
        obs->progress(obs->arg, rows, bytes);
    pthread_mutex_unlock(&tr->lock);
}

/* The chunk's rows, and at their end the check that they are as many as planned: a sink that
 * commits what it was given cannot commit a wrong chunk. */
static KnCode next_rows(void *arg, KnBatch **ret, KnErr *err)
{
    ChunkRows *rows = arg;
    KnBatch *batch = NULL;
    if (!rows->ended)
        KN_TRY(kn_queue_take(rows->tr->queue, rows->turn, &batch, err));
    if (batch) {
        int64_t n = (int64_t)kn_batch_rows(batch);
        rows->taken += n;
        tell_progress(rows->tr, n);
    } else {
        rows->ended = true;
    }
    if (rows->ended ? rows->taken != rows->chunk->rows : rows->taken > rows->chunk->rows) {
        (void)kn_batch_unref(batch);
        return kn_err_set(err, KN_E_CORRUPT,
                          "chunk %" PRId64 " gave %" PRId64 " rows where the plan has %" PRId64,
                          rows->chunk->number, rows->taken, rows->chunk->rows);
    }
    *ret = batch;
    return KN_OK;
}

/* Takes what the sink left, so that the next chunk gets its turn. */
static KnCode drain(ChunkRows *rows, KnErr *err)
{
    KnBatch *batch = NULL;
    do {
        batch = kn_batch_unref(batch);
        if (!rows->ended)
            KN_TRY(kn_queue_take(rows->tr->queue, rows->turn, &batch, err));
    } while (batch);
    rows->ended = true;
    return KN_OK;
}

/* An answer that may be one or the other is settled by the destination. */
static KnCode resolve(Transfer *tr, size_t number, KnVerdict *verdict, KnErr *err)
{
    KnErr why = *err;
    bool found;
    int64_t rows;
    KnSink *sink = tr->dlv->sink;
    KnCode rc = sink->ops->find(sink, tr->ready->rec->chunks[number].label, &found, &rows, err);
    if (rc != KN_OK)
        return kn_err_wrap(err, rc, "asking for the fate of chunk %zu", number);
    if (!found) {
        *err = why;
        return why.code ? why.code : KN_E_IO;
    }
    *verdict = (KnVerdict){.kind = KN_VERDICT_LOADED, .rows = rows};
    return KN_OK;
}

static KnCode prove(Transfer *tr, size_t number, KnVerdict verdict, KnErr *err)
{
    const KnChunk *chunk = &tr->ready->plan->chunks[number];
    if (verdict.rows < 0)
        verdict.rows = chunk->rows;
    if (verdict.rows != chunk->rows)
        return kn_err_set(err, KN_E_CORRUPT,
                          "chunk %zu: the destination has %" PRId64
                          " rows under its label, the plan has "
                          "%" PRId64,
                          number, verdict.rows, chunk->rows);
    KN_TRY(mark(tr, number, KN_CHUNK_PROVEN, verdict.kind, err));
    tr->proofs[number] = (Proof){.proven = true, .verdict = verdict};
    return KN_OK;
}

/* What has arrived cannot be taken back: no later run may take the label for a proof. */
static KnCode note_wrong(Transfer *tr, size_t number, KnCode rc, KnErr *err)
{
    KnErr local = {0};
    KnCode marked = mark(tr, number, KN_CHUNK_PROVEN, KN_VERDICT_WRONG, &local);
    return marked == KN_OK ? rc : kn_err_wrap(err, rc, "%s; and", local.msg);
}

static void add_load_time(Transfer *tr, int64_t micros, int64_t encoding)
{
    pthread_mutex_lock(&tr->lock);
    tr->load_us += micros - encoding;
    tr->encode_us += encoding;
    pthread_mutex_unlock(&tr->lock);
}

/* Held rows are written down before any of the window's is committed: from then on a later process
 * can only go forward. */
static KnCode note_held(Transfer *tr, size_t number, KnVerdict verdict, KnErr *err)
{
    KnJournal *jn = tr->dlv->jn;
    pthread_mutex_lock(&tr->lock);
    KnCode rc = jn->ops->hold(jn, tr->ready->rec->id, (int64_t)number, verdict.hold, err);
    pthread_mutex_unlock(&tr->lock);
    KN_TRY(rc);
    tr->proofs[number] = (Proof){.held = true, .verdict = verdict};
    return KN_OK;
}

static KnCode load_chunk(Transfer *tr, size_t turn, KnErr *err)
{
    size_t number = tr->turns[turn];
    KnSink *sink = tr->dlv->sink;
    const KnChunk *chunk = &tr->ready->plan->chunks[number];
    const KnSinkChunk what = {.number = chunk->number,
                              .label = tr->ready->rec->chunks[number].label,
                              .op = chunk->op,
                              .rows = chunk->rows,
                              .resent = tr->ready->rec->chunks[number].state != KN_CHUNK_PLANNED};
    ChunkRows rows = {.tr = tr, .turn = turn, .chunk = chunk};
    int64_t encode_us = 0;
    const KnRowSource source = {
        .next = next_rows, .arg = &rows, .positions = tr->positions, .encode_us = &encode_us};
    KnVerdict verdict = {.kind = KN_VERDICT_FAILED};
    KN_TRY(mark(tr, number, KN_CHUNK_SENT, KN_VERDICT_UNKNOWN, err));
    int64_t began = kn_clock_mono_us();
    KnCode rc = kn_sink_load(sink, &what, &source, &verdict, err);
    if (verdict.kind == KN_VERDICT_UNKNOWN)
        rc = resolve(tr, number, &verdict, err);
    add_load_time(tr, kn_clock_mono_us() - began, encode_us);
    if (verdict.kind == KN_VERDICT_WRONG)
        return note_wrong(tr, number, rc, err);
    KN_TRY(rc);
    assert(verdict.kind <= KN_VERDICT_DUPLICATE || verdict.kind == KN_VERDICT_HELD);
    KN_TRY(verdict.kind == KN_VERDICT_HELD ? note_held(tr, number, verdict, err)
                                           : prove(tr, number, verdict, err));
    return drain(&rows, err);
}

static void *loader_main(void *arg)
{
    Transfer *tr = arg;
    for (;;) {
        KnErr err = {0};
        pthread_mutex_lock(&tr->lock);
        bool more = !tr->failed && tr->next_turn < tr->n_turns;
        size_t turn = more ? tr->next_turn++ : 0;
        pthread_mutex_unlock(&tr->lock);
        if (!more)
            return NULL;
        KnCode rc = load_chunk(tr, turn, &err);
        if (rc != KN_OK)
            fail(tr, rc, &err);
    }
}

static void *reader_main(void *arg)
{
    Transfer *tr = arg;
    KnErr err = {0};
    const KnReader reader = {.win = tr->ready->win,
                             .plan = tr->ready->plan,
                             .schema = tr->ready->schema,
                             .ses = tr->dlv->ses,
                             .spool = tr->ready->spool,
                             .tasks = tr->ready->tasks,
                             .read = tr->ready->read,
                             .wanted = tr->wanted,
                             .positions = tr->positions,
                             .queue = tr->queue};
    int64_t began = kn_clock_mono_us();
    KnCode rc = kn_reader_run(&reader, &err);
    tr->read_us = kn_clock_mono_us() - began; /* looked at once this thread was joined */
    if (rc != KN_OK)
        kn_queue_fail(tr->queue, rc, &err);
    return NULL;
}

/* Chunks with keys, and deletes before inserts, must arrive one after another. */
static int loads_in_flight(const Transfer *tr)
{
    const KnDelivery *dlv = tr->dlv;
    bool ordered = tr->ready->plan->n_keys || tr->ready->plan->kind == KN_WINDOW_COMPUTED;
    int most = ordered ? 1 : dlv->sink_ops->max_parallel_loads;
    most = most < dlv->opts.parallel_loads ? most : dlv->opts.parallel_loads;
    return (size_t)most < tr->n_turns ? most : (int)tr->n_turns;
}

static KnCode run_threads(Transfer *tr, KnErr *err)
{
    int wanted = loads_in_flight(tr), started = 0;
    pthread_t reader, *loaders = calloc((size_t)wanted, sizeof(*loaders));
    if (!loaders)
        abort();
    bool reading = pthread_create(&reader, NULL, reader_main, tr) == 0;
    if (!reading) {
        KnErr why = {0};
        fail(tr, kn_err_set(&why, KN_E_NOMEM, "a thread cannot be started"), &why);
    }
    /* The first loader is this thread; the others join it. */
    while (reading && started + 1 < wanted &&
           pthread_create(&loaders[started], NULL, loader_main, tr) == 0)
        ++started;
    if (reading)
        (void)loader_main(tr);
    for (int i = 0; i < started; ++i)
        pthread_join(loaders[i], NULL);
    if (reading)
        pthread_join(reader, NULL);
    free(loaders);
    if (!tr->failed)
        return KN_OK;
    *err = tr->err;
    return tr->failed;
}

/* ---- a window ---- */

/* Rows that an earlier process left held: *ret_done unless they must be sent again. */
static KnCode settle_held(Transfer *tr, size_t number, bool *ret_done, KnErr *err)
{
    const KnJournalChunk *rec = &tr->ready->rec->chunks[number];
    KnSink *sink = tr->dlv->sink;
    KnHeld fate;
    KnVerdict verdict = {.kind = KN_VERDICT_HELD, .rows = rec->rows, .hold = rec->hold};
    KN_TRY(sink->ops->find_held(sink, rec->label, rec->hold, &fate, err));
    *ret_done = fate != KN_HELD_GONE;
    if (fate == KN_HELD_WAITING)
        tr->proofs[number] = (Proof){.held = true, .verdict = verdict};
    verdict.kind = KN_VERDICT_DUPLICATE;
    return fate == KN_HELD_LANDED ? prove(tr, number, verdict, err) : KN_OK;
}

/* In the order of the chunks: a delete must not be committed after the insert that follows it. */
static KnCode commit_held(Transfer *tr, KnErr *err)
{
    KnSink *sink = tr->dlv->sink;
    tr->committing = true;
    for (size_t i = 0; i < tr->ready->plan->n_chunks; ++i) {
        KnVerdict verdict = tr->proofs[i].verdict;
        if (!tr->proofs[i].held)
            continue;
        KN_FAULT("before-held-commit", err);
        KN_TRY(sink->ops->commit_held(sink, tr->ready->rec->chunks[i].label, verdict.hold, err));
        KN_FAULT("after-held-commit", err);
        verdict.kind = KN_VERDICT_LOADED;
        KN_TRY(prove(tr, i, verdict, err));
    }
    return KN_OK;
}

/* A window that is refused leaves nothing behind, as long as none of it was committed. */
static void drop_held(Transfer *tr)
{
    KnSink *sink = tr->dlv->sink;
    for (size_t i = 0; !tr->committing && i < tr->ready->plan->n_chunks; ++i) {
        if (!tr->proofs[i].held)
            continue;
        sink->ops->drop_held(sink, tr->ready->rec->chunks[i].label, tr->proofs[i].verdict.hold);
        KN_IGNORE(mark(tr, i, KN_CHUNK_SENT, KN_VERDICT_UNKNOWN, NULL));
    }
}

/* What earlier processes left: proven stays proven; sent is settled by asking. */
static KnCode settle_chunk(Transfer *tr, size_t number, KnErr *err)
{
    const KnJournalChunk *rec = &tr->ready->rec->chunks[number];
    const KnChunk *chunk = &tr->ready->plan->chunks[number];
    KnSink *sink = tr->dlv->sink;
    bool found = false;
    int64_t rows = 0;
    if (rec->verdict == KN_VERDICT_WRONG)
        return kn_err_set(err, KN_E_REFUSED,
                          "chunk %zu (label %s) has arrived in %s other than it was sent: look at "
                          "the target, then run `knut cdc reload`",
                          number, rec->label, tr->dlv->key.target);
    if (rec->state == KN_CHUNK_PROVEN) {
        tr->proofs[number] =
            (Proof){.proven = true, .verdict = {.kind = rec->verdict, .rows = chunk->rows}};
        return KN_OK;
    }
    if (rec->state == KN_CHUNK_SENT && rec->hold >= 0 && sink->ops->find_held) {
        bool done;
        KN_TRY(settle_held(tr, number, &done, err));
        if (done)
            return KN_OK;
    } else if (rec->state == KN_CHUNK_SENT)
        KN_TRY(sink->ops->find(sink, rec->label, &found, &rows, err));
    if (found)
        return prove(tr, number, (KnVerdict){.kind = KN_VERDICT_DUPLICATE, .rows = rows}, err);
    tr->wanted[number] = true;
    tr->turns[tr->n_turns++] = number;
    return KN_OK;
}

static void begin_report(Transfer *tr)
{
    const KnDeliveryObserver *obs = &tr->dlv->opts.observer;
    const KnChunkPlan *plan = tr->ready->plan;
    int64_t rows = 0, total = plan->upserts + plan->deletes;
    for (size_t i = 0; i < tr->n_turns; ++i)
        rows += plan->chunks[tr->turns[i]].rows;
    tr->row_bytes = total > 0 ? (double)plan->read_bytes / (double)total : 0;
    if (!obs->window_begin)
        return;
    KnWindowReport win = {.from = plan->from,
                          .to = plan->to,
                          .upserts = plan->upserts,
                          .deletes = plan->deletes,
                          .chunks = (int64_t)plan->n_chunks,
                          .bytes = plan->read_bytes};
    (void)snprintf(win.operation, sizeof(win.operation), "%s", plan->operation);
    obs->window_begin(obs->arg, &win, rows, (int64_t)((double)rows * tr->row_bytes));
}

static KnCode transfer(Transfer *tr, KnErr *err)
{
    for (size_t i = 0; i < tr->ready->plan->n_chunks; ++i)
        KN_TRY(settle_chunk(tr, i, err));
    begin_report(tr);
    if (tr->n_turns) {
        KN_TRY(kn_delivery_need_session(tr->dlv, err));
        tr->queue = kn_queue_new(QUEUE_BYTES);
        KnCode rc = run_threads(tr, err);
        const KnQueueWaits waits = kn_queue_waits(tr->queue);
        tr->read_us -= waits.push_us;
        tr->load_us -= waits.take_us;
        tr->queue = kn_queue_free(tr->queue);
        KN_TRY(rc);
    }
    return commit_held(tr, err);
}

static KnWindowReport report_ack(const KnReadyWindow *ready, const KnLoadAck *ack)
{
    KnWindowReport win = {.from = ack->from,
                          .to = ack->to,
                          .upserts = ack->upserts,
                          .deletes = ack->deletes,
                          .chunks = (int64_t)ready->plan->n_chunks,
                          .duplicates = ack->duplicates,
                          .bytes = ack->bytes,
                          .seconds = ack->seconds};
    (void)snprintf(win.operation, sizeof(win.operation), "%s", ready->plan->operation);
    memcpy(win.phase_us, ready->phase_us, sizeof(win.phase_us));
    return win;
}

/* The destination takes the window. */
static KnCode begin_window(KnDelivery *dlv, KnReadyWindow *ready, KnErr *err)
{
    int64_t began = kn_clock_mono_us();
    KN_TRY(kn_delivery_need_sink(dlv, err));
    KN_FAULT("window-begin", err);
    KN_TRY(kn_sink_begin(dlv->sink, &ready->sink_win, err));
    ready->phase_us[KN_PHASE_BEGIN] = kn_clock_mono_us() - began;
    return KN_OK;
}

static KnCode deliver(Transfer *tr, int64_t started_us, KnWindowReport *ret, KnErr *err)
{
    KnDelivery *dlv = tr->dlv;
    KnReadyWindow *ready = tr->ready;
    KnLoadAck ack;
    /* A window without rows has nothing to say to the destination, unless it takes it over. */
    if (ready->sink_win.first || ready->plan->n_chunks) {
        KN_TRY(begin_window(dlv, ready, err));
        KN_FAULT("window-begun", err);
    }
    KnCode rc = transfer(tr, err);
    if (rc == KN_E_REFUSED || rc == KN_E_UNSUPPORTED)
        drop_held(tr);
    KN_TRY(rc);
    int64_t proven_us = kn_clock_mono_us();
    double seconds = (double)(kn_clock_mono_us() - started_us) / 1e6;
    KN_TRY(ack_new(ready, tr->proofs, dlv->row.last_label, seconds, &ack, err));
    KN_TRY(dlv->jn->ops->advance(dlv->jn, dlv->row.id, &ack, err));
    ready->phase_us[KN_PHASE_READ] = tr->read_us;
    ready->phase_us[KN_PHASE_ENCODE] = tr->encode_us;
    ready->phase_us[KN_PHASE_LOAD] = tr->load_us;
    ready->phase_us[KN_PHASE_RECORD] = tr->record_us + kn_clock_mono_us() - proven_us;
    *ret = report_ack(ready, &ack);
    return KN_OK;
}

KnCode kn_deliver_window(KnDelivery *dlv, KnReadyWindow *ready, KnWindowReport *ret, KnErr *err)
{
    size_t n = ready->plan->n_chunks;
    int64_t started_us = kn_clock_mono_us();
    KnWindowReport win;
    Transfer tr = {.dlv = dlv,
                   .ready = ready,
                   .proofs = kn_arena_zalloc(ready->arena, (n + 1) * sizeof(*tr.proofs)),
                   .wanted = kn_arena_zalloc(ready->arena, (n + 1) * sizeof(*tr.wanted)),
                   .turns = kn_arena_zalloc(ready->arena, (n + 1) * sizeof(*tr.turns)),
                   .positions = ready->plan->n_keys > 0 && ready->plan->kind == KN_WINDOW_DIRECT};
    pthread_mutex_init(&tr.lock, NULL);
    KnCode rc = deliver(&tr, started_us, &win, err);
    pthread_mutex_destroy(&tr.lock);
    if (rc != KN_OK)
        return kn_err_wrap(err, rc, "table %s, snapshot %" PRId64, dlv->tbl->name, ready->plan->to);
    kn_delivery_count(dlv, &win);
    kn_debug("cdc", "window-delivered", KN_F("table", dlv->tbl->name), KN_FI("to", win.to),
             KN_FI("upserts", win.upserts), KN_FI("deletes", win.deletes),
             KN_FI("chunks", win.chunks));
    if (dlv->opts.observer.window_end)
        dlv->opts.observer.window_end(dlv->opts.observer.arg, &win);
    *ret = win;
    return KN_OK;
}
