/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * draw.h - the graph of a pipeline as text, Graphviz, Mermaid or SVG.
 *
 * Nodes are datasets, inputs, and what comes from outside (reads that nothing declares, topics,
 * folders); an edge is a flow, from each thing that it reads to its target. Names are escaped for
 * each notation. Any pipeline can be drawn, also one that has errors.
 */
#include "base/buf.h"
#include "pipeline/check/graph.h"

typedef struct KnDrawNode {
    const char *name;
    const char *kind;   /* "table", "input", "kafka", "outside" */
    const char *detail; /* format and place, or NULL */
    size_t dataset;     /* its place, or NONE */
} KnDrawNode;

typedef struct KnDrawEdge {
    size_t from, to;   /* nodes */
    const char *label; /* names of the flows */
    KnutFlowTag kind;
} KnDrawEdge;

typedef struct KnDrawing {
    KnArena *arena;
    const KnGraph *graph;
    const KnDrawNode *nodes; /* datasets first, in their order */
    size_t n_nodes;
    const KnDrawEdge *edges; /* one for each pair of nodes and kind of flow */
    size_t n_edges;
} KnDrawing;

KnDrawing *kn_drawing_new(KnArena *arena, const KnGraph *graph);

void kn_draw_text(const KnDrawing *drawing, KnBuf *out);
void kn_draw_dot(const KnDrawing *drawing, KnBuf *out);
void kn_draw_mermaid(const KnDrawing *drawing, KnBuf *out);
void kn_draw_svg(const KnDrawing *drawing, KnBuf *out);

/* Where things lie in the picture; y grows downwards. */
typedef struct KnPoint {
    double x, y;
} KnPoint;
typedef struct KnRoute {
    const KnPoint *points; /* from the border of one node to that of the other */
    size_t len;
} KnRoute;
typedef struct KnLayout {
    const KnPoint *centres; /* by node */
    const double *widths;   /* by node */
    const KnRoute *routes;  /* by edge */
    double width, height;
} KnLayout;
#define KN_NODE_HEIGHT 44.0

/** Layers from left to right; few crossings; long edges go around nodes. */
KnLayout kn_drawing_layout(const KnDrawing *drawing);
/** Characters of a name as far as it is shown; the rest is cut. */
size_t kn_draw_shown(const char *name);
