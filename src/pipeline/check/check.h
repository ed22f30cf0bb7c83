/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * check.h - what is wrong with a pipeline, all of it at once, before anything runs.
 *
 * Errors are what no backend could run as it is meant; warnings are what runs and is probably not
 * meant. What one backend cannot do is that backend's to refuse. Flaws come in the order of the
 * document: the pipeline, its inputs, datasets, flows; rings last.
 */
#include "base/vec.h"
#include "pipeline/check/graph.h"

typedef struct KnFlaw {
    bool error;        /* else a warning */
    const char *rule;  /* stable, for programs: "unknown-target" */
    const char *where; /* "flow `f`", "dataset `d`", "input `i`", "pipeline `p`" */
    const char *text;
} KnFlaw;

/* Texts in arena, items by kn_flaws_done(). */
typedef struct KnFlaws {
    KnArena *arena;
    KN_VEC(KnFlaw) list;
    size_t n_errors;
} KnFlaws;
void kn_flaws_done(KnFlaws *flaws);
#define KN_FLAWS_AUTO __attribute__((cleanup(kn_flaws_done))) KnFlaws
void kn_flaws_add(KnFlaws *flaws, const KnFlaw *flaw);

/** Append all flaws of graph's pipeline. */
void kn_pipeline_check(const KnGraph *graph, KnFlaws *flaws);

/** The first error as KN_E_INVAL, with the number of further ones; KN_OK where there is none. */
KN_NODISCARD KnCode kn_flaws_fail(const KnFlaws *flaws, KnErr *err);

/** Graph, check and that, in one; ret_graph may be NULL. */
KN_NODISCARD KnCode kn_pipeline_validate(KnArena *arena, const KnPipeline *pipeline,
                                         const KnGraph **ret_graph, KnErr *err);

/** Rules of one pipeline, in the order in which check runs them; for a page that lists them. */
typedef struct KnRule {
    const char *name;
    bool error;
    const char *doc;
} KnRule;
extern const KnRule kn_rules[];
extern const size_t kn_n_rules;
