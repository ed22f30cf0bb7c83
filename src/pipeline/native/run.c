/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run.c - a run of the native backend, from its engine to its last target.
 *
 * One thread does all but the watching; a second one tells how far the running statement is, and
 * interrupts the engine when the run is cancelled, again and again until the run has ended, because
 * an interrupt between two statements is lost.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/random.h"
#include "engine/arrow.h"
#include "pipeline/native/native.h"

enum { WATCH_MS = 50 };

void kn_native_tell(const KnNativeRun *run, const KnRunEvent *event, const char *fmt, ...)
{
    if (!run->opts->on_event)
        return;
    char text[1024];
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    KnRunEvent full = *event;
    full.timestamp_ms = kn_clock_wall_ms();
    full.message = text;
    full.run = run->id;
    run->opts->on_event(run->opts->event_arg, &full);
}

int64_t kn_native_now(const KnNativeRun *run)
{
    return run->opts->clock_ms ? run->opts->clock_ms() : kn_clock_wall_ms();
}

static bool is_cancelled(const KnRunOptions *opts)
{
    return (opts->control && atomic_load(&opts->control->cancelled)) ||
           (opts->cancelled && opts->cancelled());
}

KnCode kn_native_going_on(const KnNativeRun *run, KnErr *err)
{
    if (is_cancelled(run->opts))
        return kn_err_set(err, KN_E_CANCELLED, "the run was cancelled; nothing was written");
    return KN_OK;
}

static void tell_progress(const KnNativeRun *run)
{
    uint64_t rows = 0;
    const KnNativeNode *node = atomic_load(&run->current);
    double part = kn_session_progress(run->session, &rows);
    if (!node)
        return;
    KnRunProgress progress = {.dataset = node->dataset->name,
                              .part = part,
                              .rows = part < 0 ? -1 : (int64_t)rows,
                              .batches = -1,
                              .watermark_ms = INT64_MIN};
    if (node->streamed) { /* the statement is one of many */
        progress.part = -1;
        progress.rows = atomic_load(&node->rows_in);
        progress.batches = atomic_load(&node->epochs);
        progress.watermark_ms = atomic_load(&node->watermark_ms);
    }
    run->opts->on_progress(run->opts->event_arg, &progress);
}

static void *watch(void *arg)
{
    KnNativeRun *run = arg;
    const struct timespec pause = {.tv_nsec = WATCH_MS * 1000000L};
    while (!atomic_load(&run->done)) {
        if (is_cancelled(run->opts))
            kn_session_interrupt(run->session);
        if (run->opts->on_progress)
            tell_progress(run);
        (void)nanosleep(&pause, NULL);
    }
    return NULL;
}

static KnCode start_watching(KnNativeRun *run, KnErr *err)
{
    if (run->opts->on_progress)
        KN_TRY(kn_session_measure(run->session, err));
    else if (!run->opts->control && !run->opts->cancelled)
        return KN_OK;
    int failure = pthread_create(&run->watch, NULL, watch, run);
    if (failure)
        return kn_err_set(err, KN_E_NOMEM, "start a thread: %s", kn_errno_text(failure));
    run->watching = true;
    return KN_OK;
}

static KnCode open_memory(KnNativeRun *run, const KnFeedOptions *memory, KnErr *err)
{
    KnFeed *feed = NULL;
    KN_TRY(kn_feed_open(run->engine, memory, &feed, err));
    *kn_vec_push(&run->feeds) = feed;
    return kn_native_create(run, "TABLE", memory->name,
                            kn_native_feed_sql(run->arena, memory->name), err);
}

/* A stream is there once, so its rows are kept. */
static KnCode open_arrow(KnNativeRun *run, const KnRunArrow *arrow, KnErr *err)
{
    KnArrowRows *rows = NULL;
    KN_TRY(kn_arrow_rows_open(run->session, "kn_arrow_rows", arrow->rows, &rows, err));
    KnCode rc = kn_native_create(
        run, "TABLE", arrow->name,
        kn_native_is_dry(run) ? "FROM kn_arrow_rows WITH NO DATA" : "FROM kn_arrow_rows", err);
    (void)kn_arrow_rows_close(rows);
    return kn_err_wrap(err, rc, "input %s", arrow->name);
}

static KnCode open_inputs(KnNativeRun *run, KnErr *err)
{
    for (size_t i = 0; i < run->opts->n_memory; i++)
        KN_TRY(open_memory(run, &run->opts->memory[i], err));
    for (size_t i = 0; i < run->opts->n_arrow; i++)
        KN_TRY(open_arrow(run, &run->opts->arrow[i], err));
    for (size_t i = 0; i < run->pipeline->inputs.len; i++) {
        const KnutInput *input = &run->pipeline->inputs.items[i];
        const char *sql = NULL;
        KN_TRY(kn_native_input_sql(run, input, &sql, err));
        bool once = kn_native_format(input->format, input->path) == KN_NATIVE_POSTGRES;
        bool table = once && !kn_native_is_dry(run) && !kn_native_reads_once(run, i);
        KnCode rc = kn_native_create(run, table ? "TABLE" : "VIEW", input->name, sql, err);
        if (rc != KN_OK)
            return kn_err_wrap(err, rc, "input %s", input->name);
    }
    return KN_OK;
}

void kn_native_begin(KnNativeRun *run)
{
    char id[37];
    run->arena = kn_arena_new(0);
    run->uuid = kn_arena_strdup(run->arena, kn_random_uuid7(id));
    run->id = run->opts->run_id ? run->opts->run_id : run->uuid;
}

KnCode kn_native_open(KnNativeRun *run, KnErr *err)
{
    KN_NOTES_AUTO refusals = {.arena = run->arena};
    kn_native_check(run->pipeline, run->opts, &refusals);
    if (refusals.list.len)
        return kn_err_set(err, KN_E_UNSUPPORTED, "%s", refusals.list.items[0].text);
    KN_TRY(kn_io_local_open(&run->io, err));
    KN_TRY(kn_native_order(run, err));
    KN_TRY(kn_engine_open(&run->opts->engine, &run->engine, err));
    KN_TRY(kn_session_open(run->engine, &run->session, err));
    KN_TRY(start_watching(run, err));
    return open_inputs(run, err);
}

void kn_native_close(KnNativeRun *run)
{
    atomic_store(&run->done, true);
    if (run->watching)
        (void)pthread_join(run->watch, NULL);
    kn_native_unstage(run);
    kn_streams_close(run);
    kn_native_tables_done(run);
    kn_vec_done(&run->commits);
    run->session = kn_session_close(run->session);
    kn_vec_foreach (&run->feeds, feed) {
        kn_feed_close(*feed);
    }
    kn_vec_done(&run->feeds);
    kn_vec_foreach (&run->sources, source) {
        kn_native_source_close(*source);
    }
    kn_vec_done(&run->sources);
    run->engine = kn_engine_close(run->engine);
    kn_vec_done(&run->checks);
    run->io = kn_io_close(run->io);
    run->store = kn_io_close(run->store);
    run->arena = kn_arena_free(run->arena);
}

static void tell_flows(const KnNativeRun *run, const KnNativeNode *node)
{
    const char *name = node->dataset->name;
    const KnIndexes *writers = &run->graph->writers[node - run->nodes];
    for (size_t i = 0; i < writers->len; i++) {
        const KnutFlow *flow = &run->pipeline->flows.items[writers->items[i]];
        KnRunEvent event = {.element = name, .phase = KN_PHASE_RUNNING};
        if (!kn_native_flow_runs(run, node, flow))
            kn_native_tell(run, &event, "flow `%s` (%s): backfill, `%s` is there already",
                           flow->name, kn_flow_kind_name(flow), name);
        else
            kn_native_tell(run, &event, "flow `%s` (%s): executing query", flow->name,
                           kn_flow_kind_name(flow));
    }
}

static void tell_done(const KnNativeRun *run, const KnNativeNode *node, const char *how)
{
    KnRunMetrics metrics = {.rows = node->rows};
    KnRunEvent event = {
        .element = node->dataset->name, .phase = KN_PHASE_COMPLETED, .metrics = &metrics};
    kn_native_tell(run, &event, "%s `%s` (%" PRId64 " row(s))", how, node->dataset->name,
                   node->rows);
}

/* Of a table the engine knows this without reading a row; a view is computed for it. */
static KnCode count_all(KnNativeRun *run, KnNativeNode *node, KnErr *err)
{
    KN_BUF_AUTO sql = {.max = 1 << 16};
    kn_buf_text(&sql, "SELECT count(*) FROM ");
    kn_native_name_sql(&sql, node->dataset->name);
    return kn_session_query_i64(run->session, sql.data, &node->rows, err);
}

KnCode kn_native_relate(KnNativeRun *run, KnNativeNode *node, KnErr *err)
{
    const char *sql = NULL;
    bool table = node->action == KN_NATIVE_TABLE && !kn_native_is_dry(run);
    KN_TRY(kn_native_dataset_sql(run, node, &sql, err));
    if (!sql) {
        node->action = KN_NATIVE_SKIP;
        return KN_OK;
    }
    KN_TRY(kn_native_create(run, table ? "TABLE" : "VIEW", node->dataset->name, sql, err));
    if (table)
        KN_TRY(count_all(run, node, err));
    return kn_native_alias(run, node, err);
}

typedef struct Counting {
    KnNativeRun *run;
    KnNativeNode *node;
} Counting;

static KnCode count_batch(void *arg, KnBatch *batch, KnErr *err)
{
    Counting *c = arg;
    const KnRunOptions *opts = c->run->opts;
    c->node->rows += (int64_t)kn_batch_rows(batch);
    return opts->on_rows
               ? opts->on_rows(opts->rows_arg, c->node->dataset->name, c->run->session, batch, err)
               : KN_OK;
}

/* Nobody but the caller wants these rows, or nobody but the checks. */
static KnCode count_rows(KnNativeRun *run, KnNativeNode *node, KnErr *err)
{
    if (!run->opts->on_rows)
        return count_all(run, node, err);
    KN_BUF_AUTO sql = {.max = 1 << 16};
    kn_buf_text(&sql, "SELECT * FROM ");
    kn_native_name_sql(&sql, node->dataset->name);
    node->rows = 0;
    return kn_session_visit(run->session, sql.data, count_batch, &(Counting){run, node}, err);
}

static KnCode stage_once(KnNativeRun *run, KnNativeNode *node, KnErr *err)
{
    bool before = false;
    KN_TRY(kn_native_ran_before(run, node, &before, err));
    if (!before)
        return kn_native_stage(run, node, err);
    node->rows = 0;
    KnRunMetrics metrics = {.rows = 0};
    KnRunEvent event = {
        .element = node->dataset->name, .phase = KN_PHASE_COMPLETED, .metrics = &metrics};
    kn_native_tell(run, &event, "sink `%s`: run %s is in %s already", node->dataset->name, run->id,
                   node->dataset->path);
    return KN_OK;
}

static KnCode compute(KnNativeRun *run, KnNativeNode *node, KnErr *err)
{
    KN_TRY(kn_native_relate(run, node, err));
    if (node->action == KN_NATIVE_SKIP || kn_native_is_dry(run))
        return KN_OK;
    if (node->action == KN_NATIVE_COUNT)
        KN_TRY(count_rows(run, node, err));
    if (node->path && node->place == KN_NATIVE_DATABASE)
        KN_TRY(kn_native_database_probe(run, node, err));
    if (node->path && kn_native_commits(node->place))
        *kn_vec_push(&run->commits) = node;
    else if (node->path)
        KN_TRY(stage_once(run, node, err));
    if (node->action != KN_NATIVE_VIEW)
        KN_TRY(kn_native_report_checks(run, node->dataset->name, err));
    if (node->action == KN_NATIVE_TABLE || node->action == KN_NATIVE_COUNT)
        tell_done(run, node, node->action == KN_NATIVE_TABLE ? "materialised" : "computed");
    return KN_OK;
}

/* Datasets that need no stream, or (after) those that do. */
static KnCode compute_some(KnNativeRun *run, bool after, KnErr *err)
{
    for (size_t i = 0; i < run->pipeline->datasets.len; i++) {
        KnNativeNode *node = &run->nodes[run->graph->order.items[i]];
        if (node->action == KN_NATIVE_SKIP || node->streamed || node->after != after)
            continue;
        KN_TRY(kn_native_going_on(run, err));
        tell_flows(run, node);
        atomic_store(&run->current, node);
        KnCode rc = compute(run, node, err);
        atomic_store(&run->current, NULL);
        if (rc != KN_OK)
            return kn_err_wrap(err, rc, "%s", node->dataset->name);
    }
    KN_TRY(kn_native_going_on(run, err));
    return kn_native_publish(run, err);
}

static bool has_streams(const KnNativeRun *run)
{
    bool any = false;
    for (size_t i = 0; i < run->pipeline->datasets.len; i++)
        any |= run->nodes[i].action == KN_NATIVE_STREAM;
    return any;
}

/* What reads datasets of streams can be bound when those can: a folder in which nothing was dropped
 * does not say which columns it will have. */
static KnCode bind_streams(KnNativeRun *run, KnErr *err)
{
    bool all = true;
    for (size_t i = 0; i < run->pipeline->datasets.len; i++) {
        KnNativeNode *node = &run->nodes[run->graph->order.items[i]];
        bool bound = true;
        if (node->action == KN_NATIVE_STREAM)
            KN_TRY(kn_streams_bind(run, node, &bound, err));
        all &= bound;
    }
    return all ? compute_some(run, true, err) : KN_OK;
}

/* What streams read beside their stream is computed and published before they begin, what reads
 * their datasets when they have ended. */
static KnCode compute_all(KnNativeRun *run, bool *ret_stopped, KnErr *err)
{
    KN_TRY(compute_some(run, false, err));
    if (!has_streams(run))
        return KN_OK;
    if (kn_native_is_dry(run))
        return bind_streams(run, err);
    KN_TRY(kn_streams_run(run, ret_stopped, err));
    return *ret_stopped ? KN_OK : compute_some(run, true, err);
}

static size_t n_flows(const KnNativeRun *run)
{
    size_t n = 0;
    for (size_t i = 0; run->nodes && i < run->pipeline->datasets.len; i++)
        n += run->nodes[i].action != KN_NATIVE_SKIP ? run->graph->writers[i].len : 0;
    return n;
}

static KnCode native_run(const KnPipeline *pipeline, const KnRunOptions *opts, KnErr *err)
{
    KnErr local = {0};
    bool stopped = false;
    KnNativeRun run = {.pipeline = pipeline, .opts = opts};
    err = err ? err : &local;
    kn_native_begin(&run);
    kn_native_tell(&run, &(KnRunEvent){.phase = KN_PHASE_PLANNING}, "native: planning `%s`",
                   pipeline->name);
    KnCode rc = kn_native_open(&run, err);
    if (rc == KN_OK)
        rc = compute_all(&run, &stopped, err);
    if (rc != KN_OK && is_cancelled(opts))
        rc = kn_native_going_on(&run, err);
    if (rc == KN_OK)
        kn_native_tell(&run, &(KnRunEvent){.phase = KN_PHASE_COMPLETED},
                       "native: `%s` %s (%zu flow(s) %s)", pipeline->name,
                       opts->dry ? "can be run"
                       : stopped ? "stopped"
                                 : "complete",
                       n_flows(&run), opts->dry ? "bound" : "executed");
    else
        kn_native_tell(&run, &(KnRunEvent){.phase = KN_PHASE_FAILED}, "%s", err->msg);
    kn_native_close(&run);
    return rc;
}

static const char *const output_modes[] = {"append", "update", "complete", NULL};
static const KnCapabilities capabilities = {.name = "native",
                                            .batch = true,
                                            .streaming = true,
                                            .event_time = true,
                                            .cdc = true,
                                            .expectations = true,
                                            .incremental_state = true,
                                            .partition_transforms = true,
                                            .output_modes = output_modes};

const KnBackend kn_backend_native = {.capabilities = &capabilities,
                                     .check = kn_native_check,
                                     .run = native_run,
                                     .plan = kn_native_plan};
