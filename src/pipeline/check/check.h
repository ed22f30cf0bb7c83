/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * check.h - what is wrong with a pipeline, all of it at once, before anything runs.
 *
 * Errors are what no backend could run as it is meant; warnings are what runs and is probably not
 * meant. What one backend cannot do is that backend's to refuse. Problems come in the order of the
 * document: the pipeline, its inputs, datasets, flows; rings last.
 */
#include "base/vec.h"
#include "pipeline/check/graph.h"

typedef struct KnProblem {
    bool error;        /* else a warning */
    const char *rule;  /* stable, for programs: "unknown-target" */
    const char *where; /* "flow `f`", "dataset `d`", "input `i`", "pipeline `p`" */
    const char *text;
} KnProblem;

/* Texts in arena, items by kn_problems_done(). */
typedef struct KnProblems {
    KnArena *arena;
    KN_VEC(KnProblem) list;
    size_t n_errors;
} KnProblems;
void kn_problems_done(KnProblems *problems);
#define KN_PROBLEMS_AUTO __attribute__((cleanup(kn_problems_done))) KnProblems
void kn_problems_add(KnProblems *problems, const KnProblem *problem);

/** Append all problems of graph's pipeline. */
void kn_pipeline_check(const KnGraph *graph, KnProblems *problems);

/** The first error as KN_E_INVAL, with the number of further ones; KN_OK where there is none. */
KN_NODISCARD KnCode kn_problems_fail(const KnProblems *problems, KnErr *err);

/** Rules of one pipeline, in the order in which check runs them; for a page that lists them. */
typedef struct KnRule {
    const char *name;
    bool error;
    const char *doc;
} KnRule;
extern const KnRule kn_rules[];
extern const size_t kn_n_rules;
