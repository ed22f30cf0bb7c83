/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * ir.h - the pipeline as a value: what every surface makes and every backend runs.
 *
 * The types are those of the public header: plain structs, enums whose zero is the default, lists
 * as {items, len}, an option as a pointer or text that may be NULL. A pipeline and all it points to
 * lie in one arena and are not changed once made; free the arena. Values are thread-safe to read.
 *
 * The spelling of each type and field in documents, its default and whether it may be absent are in
 * one description (describe.h), from which copying, comparing, reading and writing come.
 */
#include "knut/pipeline.h"

#include "base/arena.h"
#include "base/buf.h"
#include "pipeline/ir/describe.h"

typedef KnutPipelineSpec KnPipeline;

/** A deep copy in arena; pairs are sorted by key (of a key given twice, the last counts). Texts may
 * not be NULL where the description says that they are required: they become "". */
KnPipeline *kn_pipeline_copy(KnArena *arena, const KnPipeline *pipeline);

/** Deep equality. Where they differ and ret_difference is not NULL, the first difference is
 * appended to it: "flows[1].kind.streaming.trigger: continuous / available_now". */
bool kn_pipeline_equal(const KnPipeline *a, const KnPipeline *b, KnBuf *ret_difference);

/* A pipeline that grows, for readers and builders. Lives in its arena; what is added is copied
 * there. */
typedef struct KnPipelineBuilder {
    KnArena *arena;
    KnPipeline spec; /* complete at any moment; set the plain members here (texts in arena) */
    size_t cap_datasets, cap_flows, cap_inputs;
} KnPipelineBuilder;

KnPipelineBuilder *kn_pipeline_builder_new(KnArena *arena, const char *name);
/** The copy, which may be changed until the next is added. */
KnutDataset *kn_pipeline_add_dataset(KnPipelineBuilder *builder, const KnutDataset *dataset);
KnutFlow *kn_pipeline_add_flow(KnPipelineBuilder *builder, const KnutFlow *flow);
KnutInput *kn_pipeline_add_input(KnPipelineBuilder *builder, const KnutInput *input);

/** True when the flow never ends by itself: streaming or cdc. */
static inline bool kn_flow_is_unbounded(const KnutFlow *flow)
{
    return flow->kind.tag != KNUT_FLOW_BATCH;
}
/** "batch", "streaming", "cdc"; likewise for the others. Never NULL. */
static inline const char *kn_flow_kind_name(const KnutFlow *flow)
{
    return kn_ir_tag_name(&kn_ir_flow_kind, flow->kind.tag);
}
static inline const char *kn_output_type_name(KnutOutputType type)
{
    return kn_ir_tag_name(&kn_ir_output_type, type);
}
static inline const char *kn_on_violation_name(KnutOnViolation action)
{
    return kn_ir_tag_name(&kn_ir_on_violation, action);
}
