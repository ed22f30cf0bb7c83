/* SPDX-License-Identifier: Apache-2.0 */
/*
 * layout.c - places for nodes and ways for edges, by layers (Sugiyama's method).
 *
 * 1. A dataset's layer is one more than the greatest of what it reads; what comes from outside
 *    stands one before what reads it first.
 * 2. An edge over several layers is cut at each by a bend: a vertex without a box.
 * 3. Vertices of a layer are sorted by the mean place of their neighbours, in sweeps to and fro.
 * 4. They are moved towards their neighbours' heights as far as their distances allow: what was
 *    pushed down from above and up from below is averaged, so that both distances hold.
 */
#include <stdlib.h>

#include "base/vec.h"
#include "pipeline/draw/draw.h"

#define CHARACTER       7.3 /* width of one, in the font of svg.c */
#define NODE_GAP        18.0
#define BEND_GAP        12.0
#define LABEL_CHARACTER 6.1 /* of the smaller font */
#define MIN_LAYER_GAP   72.0
#define MAX_LAYER_GAP   220.0
#define MARGIN          24.0
#define SWEEPS          8

typedef struct Vertex {
    size_t layer;
    size_t place; /* in its layer */
    double weight;
    double y, wanted;
    bool bend;
} Vertex;

typedef struct Segment {
    size_t a, b; /* vertices; b is one layer after a */
} Segment;

typedef struct Chain {
    size_t first_bend, n_bends; /* vertices of an edge between its ends */
} Chain;

typedef struct Layers {
    const KnDrawing *d;
    KN_VEC(Vertex) vertices;
    KN_VEC(Segment) segments;
    Chain *chains; /* by edge */
    size_t n_layers;
    size_t **order;       /* by layer: vertices */
    size_t *counts;       /* by layer */
    double *left, *right; /* by layer: where its widest node begins and ends */
    double *sums;         /* scratch, by vertex */
    size_t *found;
} Layers;

size_t kn_draw_shown(const char *name)
{
    size_t n = 0;
    for (const char *p = name; *p; p++)
        n += ((unsigned char)*p & 0xC0) != 0x80;
    return n > 40 ? 40 : n;
}

static double node_width(const KnDrawNode *node)
{
    size_t n = kn_draw_shown(node->name);
    return (double)(n < 14 ? 14 : n) * CHARACTER + 28;
}

/* ---- 1. layers ---- */

static size_t *dataset_order(const KnDrawing *d, size_t n)
{
    size_t *order = kn_arena_alloc(d->arena, (n + 1) * sizeof(*order));
    bool *placed = kn_arena_zalloc(d->arena, n + 1);
    size_t len = 0;
    for (size_t i = 0; i < d->graph->order.len; i++)
        placed[order[len++] = d->graph->order.items[i]] = true;
    for (size_t i = 0; i < n; i++)
        if (!placed[i])
            order[len++] = i;
    return order;
}

static void set_layers(Layers *l)
{
    const KnDrawing *d = l->d;
    size_t n = d->graph->pipeline->datasets.len;
    const size_t *order = dataset_order(d, n);
    bool *done = kn_arena_zalloc(d->arena, n + 1);
    Vertex *v = l->vertices.items;
    for (size_t i = 0; i < d->n_edges; i++)
        if (d->edges[i].from >= n && v[d->edges[i].to].layer == 0)
            v[d->edges[i].to].layer = 1;
    for (size_t i = 0; i < n; i++) {
        size_t from = order[i];
        done[from] = true;
        for (size_t k = 0; k < d->graph->after[from].len; k++) {
            size_t to = d->graph->after[from].items[k];
            if (!done[to] && v[to].layer <= v[from].layer)
                v[to].layer = v[from].layer + 1;
        }
    }
    for (size_t i = n; i < d->n_nodes; i++)
        v[i].layer = SIZE_MAX;
    for (size_t i = 0; i < d->n_edges; i++) {
        size_t from = d->edges[i].from, to = v[d->edges[i].to].layer;
        if (from >= n && to - 1 < v[from].layer)
            v[from].layer = to - 1; /* what reads from outside is in layer 1 or later */
    }
}

/* ---- 2. bends ---- */

static size_t add_vertex(Layers *l, size_t layer, bool bend)
{
    *kn_vec_push(&l->vertices) = (Vertex){.layer = layer, .bend = bend};
    return l->vertices.len - 1;
}

static void cut_edges(Layers *l)
{
    l->chains = kn_arena_zalloc(l->d->arena, (l->d->n_edges + 1) * sizeof(*l->chains));
    for (size_t i = 0; i < l->d->n_edges; i++) {
        const KnDrawEdge *edge = &l->d->edges[i];
        size_t from = l->vertices.items[edge->from].layer, to = l->vertices.items[edge->to].layer;
        if (to <= from)
            continue; /* part of a ring: drawn as one curve */
        l->chains[i].first_bend = l->vertices.len;
        l->chains[i].n_bends = to - from - 1;
        size_t last = edge->from;
        for (size_t layer = from + 1; layer < to; layer++) {
            size_t bend = add_vertex(l, layer, true);
            *kn_vec_push(&l->segments) = (Segment){last, bend};
            last = bend;
        }
        *kn_vec_push(&l->segments) = (Segment){last, edge->to};
    }
}

/* ---- 3. order within layers ---- */

static void fill_layers(Layers *l)
{
    for (size_t i = 0; i < l->vertices.len; i++)
        if (l->vertices.items[i].layer >= l->n_layers)
            l->n_layers = l->vertices.items[i].layer + 1;
    l->counts = kn_arena_zalloc(l->d->arena, (l->n_layers + 1) * sizeof(*l->counts));
    l->order = kn_arena_zalloc(l->d->arena, (l->n_layers + 1) * sizeof(*l->order));
    for (size_t i = 0; i < l->vertices.len; i++)
        l->counts[l->vertices.items[i].layer]++;
    for (size_t i = 0; i < l->n_layers; i++) {
        l->order[i] = kn_arena_alloc(l->d->arena, (l->counts[i] + 1) * sizeof(size_t));
        l->counts[i] = 0;
    }
    for (size_t i = 0; i < l->vertices.len; i++) {
        Vertex *v = &l->vertices.items[i];
        v->place = l->counts[v->layer]++;
        l->order[v->layer][v->place] = i;
    }
}

static int by_weight(const void *a, const void *b, void *vertices)
{
    const Vertex *x = (const Vertex *)vertices + *(const size_t *)a;
    const Vertex *y = (const Vertex *)vertices + *(const size_t *)b;
    if (x->weight < y->weight || x->weight > y->weight)
        return x->weight < y->weight ? -1 : 1;
    return (x->place > y->place) - (x->place < y->place);
}

/* The mean place (or height) of each vertex's neighbours on one side, into weight; a vertex without
 * any keeps its own. */
static void mean_of_neighbours(Layers *l, bool before, bool heights)
{
    Vertex *v = l->vertices.items;
    memset(l->sums, 0, l->vertices.len * sizeof(*l->sums));
    memset(l->found, 0, l->vertices.len * sizeof(*l->found));
    kn_vec_foreach (&l->segments, s) {
        size_t at = before ? s->b : s->a, other = before ? s->a : s->b;
        l->sums[at] += heights ? v[other].y : (double)v[other].place;
        l->found[at]++;
    }
    for (size_t i = 0; i < l->vertices.len; i++)
        v[i].weight = l->found[i] ? l->sums[i] / (double)l->found[i]
                      : heights   ? v[i].y
                                  : (double)v[i].place;
}

static void sort_layers(Layers *l)
{
    for (size_t sweep = 0; sweep < SWEEPS; sweep++) {
        mean_of_neighbours(l, sweep % 2 == 0, false);
        for (size_t i = 0; i < l->n_layers; i++) {
            qsort_r(l->order[i], l->counts[i], sizeof(size_t), by_weight, l->vertices.items);
            for (size_t k = 0; k < l->counts[i]; k++)
                l->vertices.items[l->order[i][k]].place = k;
        }
    }
}

/* ---- 4. heights ---- */

/* The least distance of the centres of a vertex and the one below. */
static double apart(const Vertex *a, const Vertex *b)
{
    double half = (a->bend ? 0 : KN_NODE_HEIGHT / 2) + (b->bend ? 0 : KN_NODE_HEIGHT / 2);
    return half + (a->bend || b->bend ? BEND_GAP : NODE_GAP);
}

static void settle(Layers *l, size_t layer)
{
    Vertex *v = l->vertices.items;
    const size_t *order = l->order[layer];
    size_t n = l->counts[layer];
    for (size_t k = 0; k < n; k++) {
        Vertex *at = &v[order[k]];
        at->y = at->weight;
        if (k > 0 && at->y < v[order[k - 1]].y + apart(&v[order[k - 1]], at))
            at->y = v[order[k - 1]].y + apart(&v[order[k - 1]], at);
    }
    for (size_t k = n; k > 0; k--) {
        Vertex *at = &v[order[k - 1]];
        at->wanted = at->weight;
        if (k < n && at->wanted > v[order[k]].wanted - apart(at, &v[order[k]]))
            at->wanted = v[order[k]].wanted - apart(at, &v[order[k]]);
    }
    for (size_t k = 0; k < n; k++)
        v[order[k]].y = (v[order[k]].y + v[order[k]].wanted) / 2;
}

static void set_heights(Layers *l)
{
    Vertex *v = l->vertices.items;
    for (size_t i = 0; i < l->n_layers; i++) {
        double y = 0;
        for (size_t k = 0; k < l->counts[i]; k++) {
            y += k ? apart(&v[l->order[i][k - 1]], &v[l->order[i][k]]) : 0;
            v[l->order[i][k]].y = y;
        }
        for (size_t k = 0; k < l->counts[i]; k++)
            v[l->order[i][k]].y -= y / 2;
    }
    for (size_t sweep = 0; sweep < SWEEPS; sweep++)
        for (size_t i = 0; i < l->n_layers; i++) {
            bool before = sweep % 2 == 0;
            mean_of_neighbours(l, before, true);
            settle(l, before ? i : l->n_layers - 1 - i);
        }
}

/* ---- the result ---- */

/* Before each layer: as much as the labels of the flows that end in it need. */
static double *layer_gaps(const Layers *l)
{
    double *gaps = kn_arena_alloc(l->d->arena, (l->n_layers + 1) * sizeof(*gaps));
    for (size_t i = 0; i < l->n_layers; i++)
        gaps[i] = MIN_LAYER_GAP;
    for (size_t i = 0; i < l->d->n_edges; i++) {
        size_t layer = l->vertices.items[l->d->edges[i].to].layer;
        double need = (double)kn_draw_shown(l->d->edges[i].label) * LABEL_CHARACTER + 36;
        need = need > MAX_LAYER_GAP ? MAX_LAYER_GAP : need;
        gaps[layer] = need > gaps[layer] ? need : gaps[layer];
    }
    return gaps;
}

/* Left and right of each layer; widths of nodes. Returns where the last layer ends. */
static double set_columns(Layers *l, double *widths)
{
    const double *gaps = layer_gaps(l);
    double x = MARGIN;
    l->left = kn_arena_alloc(l->d->arena, (l->n_layers + 1) * sizeof(double));
    l->right = kn_arena_alloc(l->d->arena, (l->n_layers + 1) * sizeof(double));
    for (size_t i = 0; i < l->n_layers; i++) {
        double widest = 0;
        for (size_t k = 0; k < l->counts[i]; k++) {
            size_t at = l->order[i][k];
            widths[at] = l->vertices.items[at].bend ? 0 : node_width(&l->d->nodes[at]);
            widest = widths[at] > widest ? widths[at] : widest;
        }
        x += i ? gaps[i] : 0;
        l->left[i] = x;
        x += widest;
        l->right[i] = x;
    }
    return x;
}

static void set_centres(Layers *l, KnLayout *ret)
{
    size_t n = l->vertices.len;
    KnPoint *centres = kn_arena_zalloc(l->d->arena, (n + 1) * sizeof(*centres));
    double *widths = kn_arena_zalloc(l->d->arena, (n + 1) * sizeof(*widths));
    double top = l->vertices.items[0].y, bottom = top;
    double right = set_columns(l, widths);
    for (size_t i = 0; i < n; i++) {
        const Vertex *v = &l->vertices.items[i];
        top = v->y < top ? v->y : top;
        bottom = v->y > bottom ? v->y : bottom;
        centres[i].x = (l->left[v->layer] + l->right[v->layer]) / 2;
    }
    for (size_t i = 0; i < n; i++)
        centres[i].y = l->vertices.items[i].y - top + MARGIN + KN_NODE_HEIGHT / 2;
    ret->centres = centres;
    ret->widths = widths;
    ret->width = right + MARGIN;
    ret->height = bottom - top + KN_NODE_HEIGHT + 2 * MARGIN;
}

static void set_routes(Layers *l, KnLayout *ret)
{
    const KnDrawing *d = l->d;
    KnRoute *routes = kn_arena_zalloc(d->arena, (d->n_edges + 1) * sizeof(*routes));
    for (size_t i = 0; i < d->n_edges; i++) {
        const KnDrawEdge *edge = &d->edges[i];
        const Chain *chain = &l->chains[i];
        KnPoint *points = kn_arena_alloc(d->arena, (2 * chain->n_bends + 2) * sizeof(*points));
        size_t n = 0;
        points[n] = ret->centres[edge->from];
        points[n++].x += ret->widths[edge->from] / 2;
        for (size_t k = 0; k < chain->n_bends; k++) { /* level past the nodes of the layer */
            size_t bend = chain->first_bend + k, layer = l->vertices.items[bend].layer;
            points[n++] = (KnPoint){l->left[layer], ret->centres[bend].y};
            points[n++] = (KnPoint){l->right[layer], ret->centres[bend].y};
        }
        points[n] = ret->centres[edge->to];
        points[n++].x -= ret->widths[edge->to] / 2;
        routes[i] = (KnRoute){points, n};
    }
    ret->routes = routes;
}

KnLayout kn_drawing_layout(const KnDrawing *drawing)
{
    Layers l = {.d = drawing};
    KnLayout ret = {.width = 2 * MARGIN, .height = 2 * MARGIN};
    for (size_t i = 0; i < drawing->n_nodes; i++)
        (void)add_vertex(&l, 0, false);
    if (!l.vertices.items)
        return ret;
    set_layers(&l);
    cut_edges(&l);
    fill_layers(&l);
    l.sums = kn_arena_alloc(drawing->arena, l.vertices.len * sizeof(*l.sums));
    l.found = kn_arena_alloc(drawing->arena, l.vertices.len * sizeof(*l.found));
    sort_layers(&l);
    set_heights(&l);
    set_centres(&l, &ret);
    set_routes(&l, &ret);
    kn_vec_done(&l.vertices);
    kn_vec_done(&l.segments);
    return ret;
}
