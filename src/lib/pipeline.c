/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pipeline.c - pipelines of the public header: a builder, and an arena that each check starts anew.
 */
#include "knut/pipeline.h"

#include <stdlib.h>

#include "engine/engine.h"
#include "pipeline/check/check.h"
#include "pipeline/surface/file.h"

struct KnutPipeline {
    KnArena *arena;
    KnPipelineBuilder *builder;
    KnNotes notes;    /* of the document it was read from */
    KnArena *scratch; /* of the last check or order */
};

KnutPipeline *knut_pipeline_new(const char *name)
{
    KnArena *arena = kn_arena_new(4096);
    KnutPipeline *pipeline = kn_arena_zalloc(arena, sizeof(*pipeline));
    pipeline->arena = arena;
    pipeline->builder = kn_pipeline_builder_new(arena, name ? name : "");
    pipeline->notes.arena = arena;
    return pipeline;
}

void knut_pipeline_free(KnutPipeline *pipeline)
{
    if (!pipeline)
        return;
    kn_notes_done(&pipeline->notes);
    (void)kn_arena_free(pipeline->scratch);
    (void)kn_arena_free(pipeline->arena);
}

/* The value is a copy in the pipeline's arena; the builder goes on behind it. */
static void take(KnutPipeline *pipeline, const KnPipeline *spec)
{
    pipeline->builder->spec = *spec;
    pipeline->builder->cap_datasets = spec->datasets.len;
    pipeline->builder->cap_flows = spec->flows.len;
    pipeline->builder->cap_inputs = spec->inputs.len;
}

KnutPipeline *knut_pipeline_from(const KnutPipelineSpec *spec)
{
    KnutPipeline *pipeline = knut_pipeline_new(spec->name);
    take(pipeline, kn_pipeline_copy(pipeline->arena, spec));
    return pipeline;
}

void knut_pipeline_dataset(KnutPipeline *pipeline, const KnutDataset *dataset)
{
    (void)kn_pipeline_add_dataset(pipeline->builder, dataset);
}

void knut_pipeline_flow(KnutPipeline *pipeline, const KnutFlow *flow)
{
    (void)kn_pipeline_add_flow(pipeline->builder, flow);
}

void knut_pipeline_input(KnutPipeline *pipeline, const KnutInput *input)
{
    (void)kn_pipeline_add_input(pipeline->builder, input);
}

static const char *copied(const KnutPipeline *pipeline, const char *text)
{
    return text ? kn_arena_strdup(pipeline->arena, text) : NULL;
}

void knut_pipeline_defaults(KnutPipeline *pipeline, const char *catalog, const char *database)
{
    pipeline->builder->spec.default_catalog = copied(pipeline, catalog);
    pipeline->builder->spec.default_database = copied(pipeline, database);
}

void knut_pipeline_storage(KnutPipeline *pipeline, const char *uri)
{
    pipeline->builder->spec.storage = copied(pipeline, uri);
}

void knut_pipeline_property(KnutPipeline *pipeline, const char *key, const char *value)
{
    KnPipeline *spec = &pipeline->builder->spec;
    size_t len = spec->properties.len;
    KnutPair *pairs = kn_arena_alloc(pipeline->arena, (len + 1) * sizeof(*pairs));
    if (len > 0)
        memcpy(pairs, spec->properties.items, len * sizeof(*pairs));
    pairs[len] = (KnutPair){key, value};
    const KnPipeline only = {.name = "", .properties = {pairs, len + 1}};
    spec->properties = kn_pipeline_copy(pipeline->arena, &only)->properties; /* sorted */
}

const KnutPipelineSpec *knut_pipeline_spec(const KnutPipeline *pipeline)
{
    return &pipeline->builder->spec;
}

bool knut_pipeline_equal(const KnutPipeline *a, const KnutPipeline *b)
{
    return kn_pipeline_equal(&a->builder->spec, &b->builder->spec, NULL);
}

/* ---- documents ---- */

/* An engine for the surfaces that need one. */
typedef struct Engine {
    KnEngine *engine;
    KnSession *session;
} Engine;

static void engine_close(Engine *engine)
{
    (void)kn_session_close(engine->session);
    (void)kn_engine_close(engine->engine);
}
#define ENGINE_AUTO __attribute__((cleanup(engine_close))) Engine

static KnCode engine_open(const KnSurface *surface, Engine *engine, KnErr *err)
{
    if (!surface->needs_engine)
        return KN_OK;
    KN_TRY(kn_engine_open(&(KnEngineOptions){.threads = 1}, &engine->engine, err));
    return kn_session_open(engine->engine, &engine->session, err);
}

static KnCode find_form(const char *form, const char *file, const KnSurface **ret, KnErr *err)
{
    if (form)
        return kn_surface_find(form, ret, err);
    if (file)
        return kn_surface_of_file(file, ret, err);
    return kn_err_set(err, KN_E_INVAL, "say the form of the document");
}

/* Ends what was begun where rc is a failure. */
static KnCode finish(KnCode rc, KnutPipeline *pipeline, const KnPipeline *spec, KnutPipeline **ret)
{
    if (rc != KN_OK) {
        knut_pipeline_free(pipeline);
        return rc;
    }
    take(pipeline, spec);
    *ret = pipeline;
    return KN_OK;
}

KnCode knut_pipeline_load(const char *file, const char *form, KnutPipeline **ret, KnErr *err)
{
    KnLoad load = {.file = file};
    ENGINE_AUTO engine = {0};
    KN_TRY(find_form(form, file, &load.surface, err));
    KN_TRY(engine_open(load.surface, &engine, err));
    load.session = engine.session;
    KnutPipeline *pipeline = knut_pipeline_new("");
    const KnPipeline *spec = NULL;
    KnCode rc = kn_pipeline_load(pipeline->arena, &load, &pipeline->notes, &spec, err);
    return finish(rc, pipeline, spec, ret);
}

KnCode knut_pipeline_parse(const char *text, size_t len, const char *form, KnutPipeline **ret,
                           KnErr *err)
{
    const KnSurface *surface;
    ENGINE_AUTO engine = {0};
    KN_TRY(find_form(form, NULL, &surface, err));
    KN_TRY(engine_open(surface, &engine, err));
    KnutPipeline *pipeline = knut_pipeline_new("");
    const KnPipeline *spec = NULL;
    KnDocument doc = {
        .text = {text, len}, .origin = "document", .name = "pipeline", .session = engine.session};
    KnCode rc = surface->read(pipeline->arena, &doc, &pipeline->notes, &spec, err);
    return finish(rc, pipeline, spec, ret);
}

KnCode knut_pipeline_save(const KnutPipeline *pipeline, const char *file, const char *form,
                          KnErr *err)
{
    const KnSurface *surface;
    KN_ARENA_AUTO arena = kn_arena_new(1024);
    KN_NOTES_AUTO notes = {.arena = arena};
    ENGINE_AUTO engine = {0};
    KN_TRY(find_form(form, file, &surface, err));
    KN_TRY(engine_open(surface, &engine, err));
    const KnSave save = {file, surface, engine.session};
    return kn_pipeline_save(&pipeline->builder->spec, &save, &notes, err);
}

KnCode knut_pipeline_text(const KnutPipeline *pipeline, const char *form, char **ret, KnErr *err)
{
    const KnSurface *surface;
    KN_ARENA_AUTO arena = kn_arena_new(1024);
    KN_NOTES_AUTO notes = {.arena = arena};
    KN_BUF_AUTO text = {0};
    kn_buf_init(&text, (size_t)64 << 20);
    KN_TRY(find_form(form, NULL, &surface, err));
    ENGINE_AUTO engine = {0};
    KN_TRY(engine_open(surface, &engine, err));
    KN_TRY(surface->write(&pipeline->builder->spec, engine.session, &text, &notes, err));
    size_t len;
    *ret = kn_buf_steal(&text, &len);
    return KN_OK;
}

/* ---- checks ---- */

static KnArena *fresh_scratch(KnutPipeline *pipeline)
{
    (void)kn_arena_free(pipeline->scratch);
    pipeline->scratch = kn_arena_new(4096);
    return pipeline->scratch;
}

static KnutProblems problems_of(KnArena *arena, const KnNotes *notes, const KnFlaws *flaws)
{
    size_t n = 0;
    KnutProblem *items =
        kn_arena_alloc(arena, (notes->list.len + flaws->list.len + 1) * sizeof(*items));
    kn_vec_foreach (&notes->list, note) {
        items[n++] =
            (KnutProblem){.rule = "unknown-field",
                          .where = kn_arena_printf(arena, "%zu:%zu", note->line, note->column),
                          .text = note->text};
    }
    kn_vec_foreach (&flaws->list, flaw) {
        items[n++] = (KnutProblem){flaw->error, flaw->rule, flaw->where, flaw->text};
    }
    return (KnutProblems){items, n};
}

KnCode knut_pipeline_check(KnutPipeline *pipeline, KnutProblems *ret, KnErr *err)
{
    KnArena *arena = fresh_scratch(pipeline);
    KN_FLAWS_AUTO flaws = {.arena = arena};
    kn_pipeline_check(kn_graph_new(arena, &pipeline->builder->spec), &flaws);
    if (ret)
        *ret = problems_of(arena, &pipeline->notes, &flaws);
    return kn_flaws_fail(&flaws, err);
}

KnutNames knut_pipeline_order(KnutPipeline *pipeline)
{
    KnArena *arena = fresh_scratch(pipeline);
    const KnPipeline *spec = &pipeline->builder->spec;
    const KnGraph *graph = kn_graph_new(arena, spec);
    if (graph->order.len < spec->datasets.len)
        return (KnutNames){0};
    const char **names = kn_arena_alloc(arena, (graph->order.len + 1) * sizeof(*names));
    for (size_t i = 0; i < graph->order.len; i++)
        names[i] = spec->datasets.items[graph->order.items[i]].name;
    return (KnutNames){names, graph->order.len};
}
