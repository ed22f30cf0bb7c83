/* SPDX-License-Identifier: Apache-2.0 */
/* run_args.c - see run_args.h. */
#include "cli/pipeline/run_args.h"

#include <string.h>

#include "cli/output.h"
#include "cli/pipeline/pipeline_args.h"
#include "pipeline/check/check.h"
#include "pipeline/check/select.h"

static const KnOption rows[] = {
    KN_PIPELINE_FROM_ROW(KnRunArgs),
    {.name = "input",
     .type = KN_OPT_REPEAT,
     .offset = offsetof(KnRunArgs, inputs),
     .value = "NAME=PATH",
     .doc = "Read this file, folder or pattern under a name that flows read"},
    {.name = "target",
     .type = KN_OPT_REPEAT,
     .offset = offsetof(KnRunArgs, targets),
     .value = "NAME=PATH",
     .doc = "Write this dataset here, whatever the document says"},
    {.name = "select",
     .type = KN_OPT_LIST,
     .offset = offsetof(KnRunArgs, select),
     .value = "DATASET,...",
     .doc =
         "Write only these (default: all); what they need is computed. +NAME: and what it needs; "
         "NAME+: and what needs it"},
    {.name = "full-refresh",
     .type = KN_OPT_LIST,
     .offset = offsetof(KnRunArgs, full_refresh),
     .value = "DATASET,...",
     .doc = "Make these anew, as if they had never been written; likewise, or all: every one"},
};

const KnOptGroup kn_run_args_options = {
    .title = "What is run", .options = rows, .n_options = sizeof(rows) / sizeof(rows[0])};

/* "NAME=PATH" in two. */
static KnCode halves(const KnCall *call, const char *flag, const char *word, KnutPair *ret,
                     KnErr *err)
{
    const char *equals = strchr(word, '=');
    if (!equals || equals == word || !equals[1])
        return kn_err_set(err, KN_E_INVAL, "%s '%.200s': expected NAME=PATH", flag, word);
    *ret = (KnutPair){kn_arena_strndup(call->arena, word, (size_t)(equals - word)), equals + 1};
    return KN_OK;
}

static KnCode set_input(const KnCall *call, KnPipelineBuilder *builder, const char *word,
                        KnErr *err)
{
    KnutPair pair = {0};
    KN_TRY(halves(call, "--input", word, &pair, err));
    for (size_t i = 0; i < builder->spec.inputs.len; i++) {
        KnutInput *input = (KnutInput *)&builder->spec.inputs.items[i];
        if (!strcmp(input->name, pair.key)) {
            input->path = pair.value;
            input->format = NULL;
            return KN_OK;
        }
    }
    (void)kn_pipeline_add_input(builder, &(KnutInput){.name = pair.key, .path = pair.value});
    return KN_OK;
}

static KnCode set_target(const KnCall *call, KnPipelineBuilder *builder, const char *word,
                         KnErr *err)
{
    KnutPair pair = {0};
    KN_TRY(halves(call, "--target", word, &pair, err));
    for (size_t i = 0; i < builder->spec.datasets.len; i++) {
        KnutDataset *dataset = (KnutDataset *)&builder->spec.datasets.items[i];
        if (strcmp(dataset->name, pair.key) != 0)
            continue;
        dataset->path = pair.value;
        dataset->format = strrchr(pair.value, '.') ? NULL : dataset->format;
        return KN_OK;
    }
    return kn_err_set(err, KN_E_INVAL, "--target %s: the pipeline has no dataset of this name",
                      pair.key);
}

static KnPipelineBuilder *builder_of(KnArena *arena, const KnPipeline *pipeline)
{
    KnPipelineBuilder *builder = kn_pipeline_builder_new(arena, pipeline->name);
    for (size_t i = 0; i < pipeline->inputs.len; i++)
        (void)kn_pipeline_add_input(builder, &pipeline->inputs.items[i]);
    for (size_t i = 0; i < pipeline->datasets.len; i++)
        (void)kn_pipeline_add_dataset(builder, &pipeline->datasets.items[i]);
    KnutInputs inputs = builder->spec.inputs;
    KnutDatasets datasets = builder->spec.datasets;
    builder->spec = *pipeline;
    builder->spec.inputs = inputs;
    builder->spec.datasets = datasets;
    return builder;
}

static KnCode choose(const KnCall *call, const KnRunArgs *args, const KnPipeline *pipeline,
                     KnRunOptions *opts, KnErr *err)
{
    const KnGraph *graph = kn_graph_new(call->arena, pipeline);
    const KnutNames select = {args->select.items, args->select.len};
    const KnutNames fresh = {args->full_refresh.items, args->full_refresh.len};
    if (graph->order.len < pipeline->datasets.len)
        return KN_OK; /* a ring: told when the pipeline is checked */
    KN_TRY(kn_graph_select(graph, "--select", &select, &opts->select, err));
    return kn_graph_select(graph, "--full-refresh", &fresh, &opts->full_refresh, err);
}

KnCode kn_args_run(const KnCall *call, const KnRunArgs *args, const KnPipeline **ret,
                   KnRunOptions *ret_opts, KnErr *err)
{
    const KnCommonOptions *common = call->common;
    const KnPipeline *document = NULL;
    KN_NOTES_AUTO notes = {.arena = call->arena};
    KN_TRY(kn_args_pipeline(call, args->from, &notes, &document, err));
    kn_args_notes(call, &notes);
    KnPipelineBuilder *builder = builder_of(call->arena, document);
    for (size_t i = 0; i < args->inputs.len; i++)
        KN_TRY(set_input(call, builder, args->inputs.items[i], err));
    for (size_t i = 0; i < args->targets.len; i++)
        KN_TRY(set_target(call, builder, args->targets.items[i], err));
    *ret = &builder->spec;
    *ret_opts = (KnRunOptions){
        .engine = {.threads = (int)common->threads,
                   .memory_limit = common->memory_limit,
                   .spill_dir = common->spill_dir},
    };
    return choose(call, args, &builder->spec, ret_opts, err);
}

static KnCode print_refusals(const KnCall *call, const KnNotes *refusals, KnErr *err)
{
    static const KnOutColumn columns[] = {{"refused", false}};
    KnOut *out = kn_out_open((KnOutputFormat)call->common->output, columns, 1);
    kn_vec_foreach (&refusals->list, note) {
        kn_out_text(out, note->text);
    }
    return kn_out_close(out, err);
}

KnCode kn_args_check_backend(const KnCall *call, const KnBackend *backend,
                             const KnPipeline *pipeline, const KnRunOptions *opts, KnErr *err)
{
    KN_NOTES_AUTO refusals = {.arena = call->arena};
    KN_FLAWS_AUTO flaws = {.arena = call->arena};
    kn_pipeline_check(kn_graph_new(call->arena, pipeline), &flaws);
    KN_TRY(kn_flaws_fail(&flaws, err));
    backend->check(pipeline, opts, &refusals);
    size_t n = refusals.list.len;
    if (n > 1)
        KN_TRY(print_refusals(call, &refusals, err));
    if (n == 1)
        return kn_err_set(err, KN_E_UNSUPPORTED, "%s", refusals.list.items[0].text);
    if (n)
        return kn_err_set(err, KN_E_UNSUPPORTED,
                          "%zu things that the %s backend does not do, the first of them: %s", n,
                          backend->capabilities->name, refusals.list.items[0].text);
    return KN_OK;
}
