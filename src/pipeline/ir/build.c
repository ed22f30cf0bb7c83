/* SPDX-License-Identifier: Apache-2.0 */
/* build.c - pipelines that grow; whole copies. */
#include "pipeline/ir/ir.h"

KnPipeline *kn_pipeline_copy(KnArena *arena, const KnPipeline *pipeline)
{
    KnPipeline *copy = kn_arena_zalloc(arena, sizeof(*copy));
    kn_ir_copy(arena, &kn_ir_pipeline, copy, pipeline);
    return copy;
}

KnPipelineBuilder *kn_pipeline_builder_new(KnArena *arena, const char *name)
{
    KnPipelineBuilder *builder = kn_arena_zalloc(arena, sizeof(*builder));
    builder->arena = arena;
    builder->spec.name = kn_arena_strdup(arena, name);
    return builder;
}

/* Room for one more behind len items of size: the array is moved when it is full. */
static void *grown(KnArena *arena, const void *items, size_t len, size_t *cap, size_t size)
{
    if (len == *cap) {
        *cap = *cap ? *cap * 2 : 8;
        char *moved = kn_arena_alloc(arena, *cap * size);
        if (len > 0)
            memcpy(moved, items, len * size);
        return moved;
    }
    return (void *)items;
}

KnutDataset *kn_pipeline_add_dataset(KnPipelineBuilder *builder, const KnutDataset *dataset)
{
    KnutDatasets *list = &builder->spec.datasets;
    KnutDataset *items =
        grown(builder->arena, list->items, list->len, &builder->cap_datasets, sizeof(*items));
    kn_ir_copy(builder->arena, &kn_ir_dataset, &items[list->len], dataset);
    list->items = items;
    return &items[list->len++];
}

KnutFlow *kn_pipeline_add_flow(KnPipelineBuilder *builder, const KnutFlow *flow)
{
    KnutFlows *list = &builder->spec.flows;
    KnutFlow *items =
        grown(builder->arena, list->items, list->len, &builder->cap_flows, sizeof(*items));
    kn_ir_copy(builder->arena, &kn_ir_flow, &items[list->len], flow);
    list->items = items;
    return &items[list->len++];
}

KnutInput *kn_pipeline_add_input(KnPipelineBuilder *builder, const KnutInput *input)
{
    KnutInputs *list = &builder->spec.inputs;
    KnutInput *items =
        grown(builder->arena, list->items, list->len, &builder->cap_inputs, sizeof(*items));
    kn_ir_copy(builder->arena, &kn_ir_input, &items[list->len], input);
    list->items = items;
    return &items[list->len++];
}
