/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * graph.h - who reads and writes what, and the order that follows.
 *
 * Nodes are datasets, by their place in the pipeline; an edge goes from each dataset that a flow
 * reads to the flow's target. A flow reads what its `reads` name, and what its streaming kind names
 * (cdc(source), streams). Names are compared as they are; where none is equal, without the
 * default catalog and database before them, then without regard to case, as engines do.
 *
 * A graph lives in its arena, next to the pipeline that it points into. Building it costs
 * O(n log n) of names and edges. Thread-safe to read.
 */
#include "pipeline/ir/ir.h"

#define KN_GRAPH_NONE SIZE_MAX

typedef struct KnIndexes {
    const size_t *items;
    size_t len;
} KnIndexes;

/* One name that a flow reads; both NONE = it comes from outside. */
typedef struct KnGraphRead {
    const char *name;
    size_t dataset;
    size_t input;
    bool other_case; /* found without regard to case only */
    bool listed;     /* in the flow's `reads`; else in its streaming kind */
} KnGraphRead;

typedef struct KnGraphReads {
    const KnGraphRead *items; /* each name once, as declared */
    size_t len;
} KnGraphReads;

typedef struct KnNameIndex KnNameIndex;

typedef struct KnGraph {
    KnArena *arena;
    const KnPipeline *pipeline;
    const KnNameIndex *names;
    const KnGraphReads *reads; /* by flow */
    const size_t *targets;     /* by flow: the dataset it writes, or NONE */
    const KnIndexes *writers;  /* by dataset: flows, as declared */
    const KnIndexes *readers;  /* by dataset: flows, as declared */
    const KnIndexes *after;    /* by dataset: datasets that need it, by name, each once */
    KnIndexes order;           /* datasets in the order of running; fewer than all = cycles */
    KnIndexes by_name;         /* all datasets, by the bytes of their names */
} KnGraph;

KnGraph *kn_graph_new(KnArena *arena, const KnPipeline *pipeline);

/** The first dataset of that name, or NONE. */
size_t kn_graph_dataset(const KnGraph *graph, const char *name);
size_t kn_graph_input(const KnGraph *graph, const char *name);

/** Each group of datasets that need one another: a shortest ring through the one whose name comes
 * first, which stands at both ends. For graphs whose order is not complete. */
typedef struct KnRings {
    const KnIndexes *items;
    size_t len;
} KnRings;
KnRings kn_graph_rings(const KnGraph *graph);
