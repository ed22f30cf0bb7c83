/* SPDX-License-Identifier: Apache-2.0 */
/*
 * order.c - what is computed, in which order, and how.
 *
 * A dataset that is used once costs nothing by itself: it is a view, and disappears in what uses
 * it. Uses are flows that read it (a query that names it twice uses it twice; mentions in comments
 * or texts count too, which costs a table and never a wrong answer), its own target, and its own
 * numbers. Checks count rows, and the engine reads through a view only what is asked for: so a
 * dataset with checks is stored when somebody reads it.
 */
#include <ctype.h>
#include <string.h>
#include <unistd.h>

#include "pipeline/native/native.h"

static bool is_word(char c)
{
    return isalnum((unsigned char)c) || c == '_' || (c & 0x80);
}

/* How often the last part of name stands in the query. */
static size_t mentions(const char *query, const char *name)
{
    const char *dot = strrchr(name, '.');
    KnStr word = kn_str(dot ? dot + 1 : name);
    size_t n = 0;
    for (const char *at = query; *at; at++) {
        bool starts = at == query || !is_word(at[-1]);
        if (starts && strlen(at) >= word.len && !is_word(at[word.len]) &&
            kn_str_eq_nocase((KnStr){at, word.len}, word))
            n++;
    }
    return n;
}

static bool listed(const KnutNames *names, const char *name)
{
    for (size_t i = 0; i < names->len; i++)
        if (strcmp(names->items[i], name) == 0)
            return true;
    return false;
}

bool kn_native_flow_runs(const KnNativeRun *run, const KnNativeNode *node, const KnutFlow *flow)
{
    const KnutNames *fresh = &run->opts->full_refresh;
    if (!flow->once || !node->path || listed(fresh, "all") || listed(fresh, node->dataset->name))
        return true;
    return access(node->path, F_OK) != 0;
}

/* What a wanted dataset's flows read is wanted too, and used. Readers come first here. */
static void spread(KnNativeRun *run, size_t dataset)
{
    const KnIndexes *writers = &run->graph->writers[dataset];
    for (size_t w = 0; w < writers->len; w++) {
        const KnutFlow *flow = &run->pipeline->flows.items[writers->items[w]];
        const KnGraphReads *reads = &run->graph->reads[writers->items[w]];
        if (!kn_native_flow_runs(run, &run->nodes[dataset], flow))
            continue;
        for (size_t r = 0; r < reads->len; r++) {
            size_t from = reads->items[r].dataset;
            if (from == KN_GRAPH_NONE)
                continue;
            size_t n = flow->query ? mentions(flow->query, reads->items[r].name) : 1;
            run->nodes[from].wanted = true;
            run->nodes[from].readers += n ? n : 1;
        }
    }
}

static bool has_checks(const KnNativeRun *run, size_t i)
{
    const KnutDataset *dataset = &run->pipeline->datasets.items[i];
    bool any = dataset->expectations.len > 0;
    for (size_t j = 0; j < dataset->schema.len; j++)
        any |= !dataset->schema.items[j].nullable;
    const KnIndexes *writers = &run->graph->writers[i];
    for (size_t w = 0; w < writers->len; w++)
        any |= run->pipeline->flows.items[writers->items[w]].expectations.len > 0 ||
               run->pipeline->flows.items[writers->items[w]].kind.tag == KNUT_FLOW_CDC;
    return any;
}

static KnNativeAction action_of(const KnNativeNode *node)
{
    if (!node->wanted)
        return KN_NATIVE_SKIP;
    if (node->streamed)
        return KN_NATIVE_STREAM;
    if (node->path)
        return node->readers || node->apart ? KN_NATIVE_TABLE : KN_NATIVE_WRITE;
    if (!node->readers)
        return node->dataset->output_type == KNUT_OUTPUT_TEMPORARY_VIEW ? KN_NATIVE_SKIP
                                                                        : KN_NATIVE_COUNT;
    return node->readers > 1 || node->counts ? KN_NATIVE_TABLE : KN_NATIVE_VIEW;
}

static bool is_applied(const KnNativeRun *run, size_t i)
{
    const KnIndexes *writers = &run->graph->writers[i];
    return writers->len && run->pipeline->flows.items[writers->items[0]].kind.tag == KNUT_FLOW_CDC;
}

static KnCode set_up(KnNativeRun *run, size_t i, KnErr *err)
{
    const KnRunOptions *opts = run->opts;
    const KnutDataset *dataset = &run->pipeline->datasets.items[i];
    KnNativeNode *node = &run->nodes[i];
    bool chosen = !opts->select.len || listed(&opts->select, dataset->name);
    bool fresh = listed(&opts->full_refresh, "all") || listed(&opts->full_refresh, dataset->name);
    *node =
        (KnNativeNode){.dataset = dataset, .wanted = chosen, .rows = -1, .watermark_ms = INT64_MIN};
    node->counts = has_checks(run, i);
    node->fresh = fresh;
    node->replace = fresh || is_applied(run, i) || dataset->write_mode == KNUT_WRITE_OVERWRITE ||
                    dataset->output_type == KNUT_OUTPUT_MATERIALIZED_VIEW;
    if (!dataset->path || !chosen)
        return KN_OK;
    node->format = kn_native_format(dataset->format, dataset->path);
    node->place = kn_native_place(node->format, dataset->path);
    if (node->place != KN_NATIVE_LOCAL) {
        node->path = dataset->path;
        return KN_OK;
    }
    KN_TRY(kn_err_wrap(err, kn_native_path(run->arena, dataset->path, &node->path, err),
                       "dataset %s", dataset->name));
    return kn_native_is_dry(run) ? KN_OK : kn_native_recover(run, node->path, err);
}

static bool is_streamed(const KnNativeRun *run, size_t i)
{
    const KnIndexes *writers = &run->graph->writers[i];
    return writers->len &&
           run->pipeline->flows.items[writers->items[0]].kind.tag == KNUT_FLOW_STREAMING;
}

/* Does one of the dataset's flows read what streams write, or what is computed from that? What is
 * read comes first here. */
static bool is_after(const KnNativeRun *run, size_t i)
{
    const KnIndexes *writers = &run->graph->writers[i];
    for (size_t w = 0; w < writers->len; w++) {
        const KnGraphReads *reads = &run->graph->reads[writers->items[w]];
        for (size_t r = 0; r < reads->len; r++) {
            size_t from = reads->items[r].dataset;
            if (from != KN_GRAPH_NONE && (run->nodes[from].streamed || run->nodes[from].after))
                return true;
        }
    }
    return false;
}

/* A table, or a database's, is written by its commit, at the end. Its rows are computed before,
 * where they are counted, or where another target could have changed by the time that computing
 * them fails. */
static void set_apart(KnNativeRun *run)
{
    size_t n_targets = 0;
    for (size_t i = 0; i < run->pipeline->datasets.len; i++)
        n_targets += run->nodes[i].path != NULL;
    for (size_t i = 0; i < run->pipeline->datasets.len; i++) {
        KnNativeNode *node = &run->nodes[i];
        node->apart =
            node->path && kn_native_commits(node->place) && (node->counts || n_targets > 1);
    }
}

bool kn_native_reads_once(const KnNativeRun *run, size_t input)
{
    size_t n = 0;
    for (size_t f = 0; f < run->pipeline->flows.len; f++)
        for (size_t r = 0; r < run->graph->reads[f].len; r++)
            if (run->graph->reads[f].items[r].input == input)
                n += run->pipeline->flows.items[f].query ? 2 : 1;
    return n < 2;
}

KnCode kn_native_order(KnNativeRun *run, KnErr *err)
{
    size_t n = run->pipeline->datasets.len;
    run->graph = kn_graph_new(run->arena, run->pipeline);
    run->nodes = kn_arena_zalloc(run->arena, (n + 1) * sizeof(*run->nodes));
    if (run->graph->order.len < n)
        return kn_err_set(err, KN_E_INVAL, "the pipeline's dataflow graph is cyclic");
    for (size_t i = 0; i < n; i++)
        KN_TRY(set_up(run, i, err));
    set_apart(run);
    for (size_t i = 0; i < n; i++) {
        size_t at = run->graph->order.items[i];
        run->nodes[at].streamed = is_streamed(run, at);
        run->nodes[at].after = !run->nodes[at].streamed && is_after(run, at);
    }
    for (size_t i = n; i-- > 0;) {
        size_t at = run->graph->order.items[i];
        KnNativeNode *node = &run->nodes[at];
        bool idle = node->dataset->output_type == KNUT_OUTPUT_TEMPORARY_VIEW && !node->path &&
                    !node->readers;
        if (node->wanted && !idle)
            spread(run, at);
        node->action = action_of(node);
    }
    return KN_OK;
}
