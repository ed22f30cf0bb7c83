/* SPDX-License-Identifier: Apache-2.0 */
/* check.c - `knut pipeline check`: all that is wrong with a pipeline, and the order it runs in. */
#include "pipeline/check/check.h"

#include "base/json.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "cli/pipeline/pipeline_args.h"
#include "pipeline/check/queries.h"

typedef struct CheckOptions {
    KnCommonOptions common;
    const char *from;
    bool queries;
} CheckOptions;

static const KnOption rows[] = {
    KN_PIPELINE_FROM_ROW(CheckOptions),
    {.name = "queries",
     .type = KN_OPT_FLAG,
     .offset = offsetof(CheckOptions, queries),
     .doc = "Show queries and conditions to the engine's parser, and compare what they read"},
};

/* What was noted on reading is a warning like the others. */
static void add_notes(const KnCall *call, const KnNotes *notes, KnFlaws *flaws)
{
    kn_vec_foreach (&notes->list, note) {
        const char *where = kn_args_file(call);
        if (note->line > 0)
            where = kn_arena_printf(call->arena, "%s:%zu:%zu", where, note->line, note->column);
        kn_flaws_add(flaws, &(KnFlaw){.rule = "unknown-field", .where = where, .text = note->text});
    }
}

static const char *severity(const KnFlaw *flaw)
{
    return flaw->error ? "error" : "warning";
}

static void json_text(KnBuf *buf, const char *key, const char *text)
{
    kn_json_quote(buf, kn_str(key));
    kn_buf_char(buf, ':');
    kn_json_quote(buf, kn_str(text));
}

static KnCode print_json(const KnGraph *graph, const KnFlaws *flaws, KnErr *err)
{
    const KnPipeline *pipeline = graph->pipeline;
    KN_BUF_AUTO buf = {0};
    kn_buf_init(&buf, (size_t)64 << 20);
    kn_buf_char(&buf, '{');
    json_text(&buf, "pipeline", pipeline->name);
    kn_buf_printf(&buf,
                  ",\"datasets\":%zu,\"flows\":%zu,\"errors\":%zu,\"warnings\":%zu,\"order\":",
                  pipeline->datasets.len, pipeline->flows.len, flaws->n_errors,
                  flaws->list.len - flaws->n_errors);
    bool whole = graph->order.len == pipeline->datasets.len;
    kn_buf_text(&buf, whole ? "[" : "null");
    for (size_t i = 0; whole && i < graph->order.len; i++) {
        kn_buf_text(&buf, i ? "," : "");
        kn_json_quote(&buf, kn_str(pipeline->datasets.items[graph->order.items[i]].name));
    }
    kn_buf_text(&buf, whole ? "],\"problems\":[" : ",\"problems\":[");
    kn_vec_foreach (&flaws->list, p) {
        kn_buf_text(&buf, p == flaws->list.items ? "{" : ",{");
        json_text(&buf, "severity", severity(p));
        kn_buf_char(&buf, ',');
        json_text(&buf, "rule", p->rule);
        kn_buf_char(&buf, ',');
        json_text(&buf, "where", p->where);
        kn_buf_char(&buf, ',');
        json_text(&buf, "message", p->text);
        kn_buf_char(&buf, '}');
    }
    kn_buf_text(&buf, "]}");
    KN_TRY(kn_buf_check(&buf, err));
    return kn_out_line((KnStr){buf.data, buf.len}, err);
}

static void count(KnBuf *buf, size_t n, const char *noun)
{
    kn_buf_printf(buf, "%zu %s%s", n, noun, n == 1 ? "" : "s");
}

static KnCode print_text(const KnGraph *graph, const KnFlaws *flaws, KnErr *err)
{
    const KnPipeline *pipeline = graph->pipeline;
    KN_BUF_AUTO buf = {0};
    kn_buf_init(&buf, (size_t)64 << 20);
    kn_vec_foreach (&flaws->list, p) {
        kn_buf_printf(&buf, "%s: %s: %s [%s]\n", severity(p), p->where, p->text, p->rule);
    }
    kn_buf_printf(&buf, "%s: ", pipeline->name);
    count(&buf, pipeline->datasets.len, "dataset");
    kn_buf_text(&buf, ", ");
    count(&buf, pipeline->flows.len, "flow");
    kn_buf_text(&buf, ", ");
    count(&buf, flaws->n_errors, "error");
    kn_buf_text(&buf, ", ");
    count(&buf, flaws->list.len - flaws->n_errors, "warning");
    if (flaws->n_errors == 0)
        kn_buf_text(&buf, "\norder:");
    for (size_t i = 0; flaws->n_errors == 0 && i < graph->order.len; i++)
        kn_buf_printf(&buf, " %s", pipeline->datasets.items[graph->order.items[i]].name);
    KN_TRY(kn_buf_check(&buf, err));
    return kn_out_line((KnStr){buf.data, buf.len}, err);
}

static KnCode check_queries(const KnCall *call, const KnGraph *graph, KnFlaws *flaws, KnErr *err)
{
    KN_CALL_ENGINE_AUTO ce = {0};
    KN_TRY(kn_call_engine_open(call, &ce, err));
    return kn_pipeline_check_queries(graph, ce.session, flaws, err);
}

static KnCode run(KnCall *call, KnErr *err)
{
    const CheckOptions *opts = call->options;
    KN_NOTES_AUTO notes = {.arena = call->arena};
    KN_FLAWS_AUTO flaws = {.arena = call->arena};
    const KnPipeline *pipeline;
    KN_TRY(kn_args_pipeline(call, opts->from, &notes, &pipeline, err));
    add_notes(call, &notes, &flaws);
    const KnGraph *graph = kn_graph_new(call->arena, pipeline);
    kn_pipeline_check(graph, &flaws);
    if (opts->queries)
        KN_TRY(check_queries(call, graph, &flaws, err));
    if ((KnOutputFormat)call->common->output == KN_OUTPUT_JSON)
        KN_TRY(print_json(graph, &flaws, err));
    else
        KN_TRY(print_text(graph, &flaws, err));
    KnCode rc = kn_flaws_fail(&flaws, err);
    return rc == KN_OK ? rc : kn_err_wrap(err, rc, "%s", kn_args_file(call));
}

const KnCommand kn_cmd_pipeline_check = {
    .group = "pipeline",
    .name = "check",
    .summary = "Say all that is wrong with a pipeline, and the order it runs in",
    .about = "  knut pipeline check sales.ron --queries\n\n"
             "Nothing is run and nothing is opened but FILE. Errors are what no backend could run "
             "as it\n"
             "is meant (exit status 2); warnings are what would run and is probably not meant. The "
             "rules\n"
             "are in docs/pipelines.md.",
    .options_size = sizeof(CheckOptions),
    .rows = rows,
    .n_rows = sizeof(rows) / sizeof(rows[0]),
    .positional = "FILE",
    .run = run,
};
