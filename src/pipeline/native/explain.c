/* SPDX-License-Identifier: Apache-2.0 */
/*
 * explain.c - what a run would do, as the engine's own plans prove it.
 *
 * Each statement that a run would execute is explained; its leaves tell which columns and rows are
 * taken from the sources. Nothing is computed: stored datasets stand there as empty tables.
 */
#include "base/json.h"
#include "pipeline/native/native.h"
#include "pipeline/sql/sql_internal.h"

typedef struct Explain {
    KnNativeRun *run;
    KnPlanStepFn fn;
    void *arg;
    bool unbound; /* what reads some stream's dataset cannot be explained */
} Explain;

/* A text, or the texts of an array, with commas or AND between them. */
static void joined(KnBuf *out, const json_t *value, const char *between)
{
    if (json_is_string(value))
        kn_buf_text(out, json_string_value(value));
    for (size_t i = 0; i < json_array_size(value); i++)
        kn_buf_printf(out, "%s%s", i ? between : "", json_string_value(json_array_get(value, i)));
}

static KnCode tell_scan(const Explain *ex, const KnNativeNode *node, const json_t *op, KnErr *err)
{
    const json_t *info = json_object_get(op, "extra_info");
    const char *table = json_string_value(json_object_get(info, "Table"));
    const char *function = json_string_value(json_object_get(info, "Function"));
    KN_BUF_AUTO columns = {.max = 1 << 20};
    KN_BUF_AUTO filter = {.max = 1 << 20};
    joined(&columns, json_object_get(info, "Projections"), ", ");
    joined(&filter, json_object_get(info, "Filters"), " AND ");
    KnPlanStep step = {
        .dataset = node->dataset->name,
        .action = "scan",
        .readers = -1,
        .scan = table      ? table
                : function ? function
                           : json_string_value(json_object_get(op, "name")),
        .columns = columns.len ? columns.data : "",
        .filter = filter.len ? filter.data : NULL,
    };
    return ex->fn(ex->arg, &step, err);
}

static KnCode walk(const Explain *ex, const KnNativeNode *node, const json_t *op, KnErr *err)
{
    const json_t *children = json_object_get(op, "children");
    if (!json_array_size(children))
        return json_object_get(op, "extra_info") ? tell_scan(ex, node, op, err) : KN_OK;
    for (size_t i = 0; i < json_array_size(children); i++)
        KN_TRY(walk(ex, node, json_array_get(children, i), err));
    return KN_OK;
}

static KnCode keep_plan(void *arg, KnBatch *batch, KnErr *err)
{
    (void)err;
    KnVector values = kn_batch_vector(batch, 1);
    kn_buf_str(arg, kn_vector_str(&values, 0));
    return KN_OK;
}

static KnCode tell_scans(const Explain *ex, const KnNativeNode *node, const char *sql, KnErr *err)
{
    KN_BUF_AUTO text = {.max = 64 << 20};
    KN_BUF_AUTO plan = {.max = 64 << 20};
    KN_JSON_AUTO doc = NULL;
    kn_buf_printf(&text, "EXPLAIN (FORMAT json) %s", sql);
    KN_TRY(kn_buf_check(&text, err));
    KN_TRY(kn_session_visit(ex->run->session, text.data, keep_plan, &plan, err));
    KN_TRY(kn_json_parse(plan.data, plan.len, &doc, err));
    for (size_t i = 0; i < json_array_size(doc); i++)
        KN_TRY(walk(ex, node, json_array_get(doc, i), err));
    return KN_OK;
}

/* Its rows are not of one statement: what is told is what it reads. */
static KnCode tell_stream(Explain *ex, KnNativeNode *node, KnErr *err)
{
    bool bound = true;
    const KnIndexes *writers = &ex->run->graph->writers[node - ex->run->nodes];
    KnPlanStep step = {.dataset = node->dataset->name,
                       .action = "stream",
                       .target = node->path ? node->dataset->path : NULL,
                       .format = node->path ? kn_native_format_name(node->format) : NULL,
                       .readers = (int64_t)node->readers};
    KN_TRY(ex->fn(ex->arg, &step, err));
    for (size_t w = 0; w < writers->len; w++) {
        const KnutSource *source =
            &ex->run->pipeline->flows.items[writers->items[w]].kind.streaming.source;
        KnPlanStep scan = {.dataset = node->dataset->name,
                           .action = "scan",
                           .readers = -1,
                           .scan = kn_sdp_source_name(ex->run->arena, source),
                           .columns = ""};
        KN_TRY(ex->fn(ex->arg, &scan, err));
    }
    KN_TRY(kn_streams_bind(ex->run, node, &bound, err));
    ex->unbound |= !bound;
    return KN_OK;
}

static KnCode tell_node(Explain *ex, KnNativeNode *node, KnErr *err)
{
    static const char *const actions[] = {"view", "table", "write", "count", "skip", "stream"};
    const char *sql = NULL;
    if (node->action == KN_NATIVE_STREAM)
        return tell_stream(ex, node, err);
    if (node->after && ex->unbound)
        node->action = KN_NATIVE_SKIP;
    if (node->action != KN_NATIVE_SKIP)
        KN_TRY(kn_native_dataset_sql(ex->run, node, &sql, err));
    if (!sql)
        node->action = KN_NATIVE_SKIP;
    KnPlanStep step = {.dataset = node->dataset->name,
                       .action = actions[node->action],
                       .target = sql && node->path ? node->dataset->path : NULL,
                       .format = sql && node->path ? kn_native_format_name(node->format) : NULL,
                       .readers = (int64_t)node->readers};
    KN_TRY(ex->fn(ex->arg, &step, err));
    if (!sql)
        return KN_OK;
    bool table = node->action == KN_NATIVE_TABLE;
    if (node->action != KN_NATIVE_VIEW)
        KN_TRY(tell_scans(ex, node, sql, err));
    if (table)
        sql = kn_arena_printf(ex->run->arena, "%s WITH NO DATA", sql);
    KN_TRY(kn_native_create(ex->run, table ? "TABLE" : "VIEW", node->dataset->name, sql, err));
    return kn_native_alias(ex->run, node, err);
}

KnCode kn_native_plan(const KnPipeline *pipeline, const KnRunOptions *opts, KnPlanStepFn fn,
                      void *arg, KnErr *err)
{
    KnNativeRun run = {.pipeline = pipeline, .opts = opts, .planning = true};
    Explain ex = {.run = &run, .fn = fn, .arg = arg};
    kn_native_begin(&run);
    KnCode rc = kn_native_open(&run, err);
    for (size_t i = 0; rc == KN_OK && i < pipeline->datasets.len; i++) {
        KnNativeNode *node = &run.nodes[run.graph->order.items[i]];
        rc = kn_err_wrap(err, tell_node(&ex, node, err), "%s", node->dataset->name);
    }
    kn_native_close(&run);
    return rc;
}
