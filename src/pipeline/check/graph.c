/* SPDX-License-Identifier: Apache-2.0 */
/*
 * graph.c - edges, order, rings.
 *
 * The order is Kahn's over a queue: first all datasets that need none, by name; whenever one is
 * done, those that waited for it alone go to the end of the queue, by name. Edges are collected as
 * pairs of ranks (places by name), sorted, and made unique, so that nothing is quadratic.
 */
#include "pipeline/check/graph.h"

#include <stdlib.h>

#include "base/map.h"
#include "base/vec.h"
#include "pipeline/check/names.h"

/* A directed edge, or any pair of numbers that is sorted by the first, then the second. */
typedef struct Pair {
    size_t a, b;
} Pair;

typedef struct Pairs {
    KN_VEC(Pair) list;
} Pairs;

static int by_pair(const void *x, const void *y)
{
    const Pair *p = x, *q = y;
    return p->a != q->a ? (p->a > q->a) - (p->a < q->a) : (p->b > q->b) - (p->b < q->b);
}

/* By a: the bs of each, each once, in order. Ends pairs. */
static const KnIndexes *grouped(KnArena *arena, Pairs *pairs, size_t n)
{
    KnIndexes *groups = kn_arena_zalloc(arena, (n + 1) * sizeof(*groups));
    size_t len = pairs->list.len;
    size_t *items = kn_arena_alloc(arena, (len + 1) * sizeof(*items));
    if (len > 0)
        qsort(pairs->list.items, len, sizeof(Pair), by_pair);
    for (size_t i = 0, at = 0; i < len; i++) {
        const Pair *pair = &pairs->list.items[i];
        if (i > 0 && by_pair(pair - 1, pair) == 0)
            continue;
        if (groups[pair->a].len++ == 0)
            groups[pair->a].items = &items[at];
        items[at++] = pair->b;
    }
    kn_vec_done(&pairs->list);
    return groups;
}

/* ---- what a flow reads ---- */

typedef struct ReadList {
    KN_VEC(KnGraphRead) list;
    KnMap *seen;
} ReadList;

static void add_read(const KnNameIndex *names, ReadList *reads, const char *name, bool listed)
{
    bool is_new;
    void **slot = kn_map_get_or_add(reads->seen, kn_str(name), &is_new);
    if (!is_new)
        return;
    *slot = reads; /* any value */
    KnGraphRead read = {.name = name, .listed = listed};
    kn_names_resolve(names, &read);
    *kn_vec_push(&reads->list) = read;
}

static KnGraphReads reads_of(const KnGraph *graph, const KnutFlow *flow)
{
    ReadList reads = {.seen = kn_map_new()};
    for (size_t i = 0; i < flow->reads.len; i++)
        add_read(graph->names, &reads, flow->reads.items[i], true);
    const KnutStreaming *streaming = &flow->kind.streaming;
    if (flow->kind.tag == KNUT_FLOW_STREAMING) {
        if (streaming->source.tag == KNUT_SOURCE_CDC)
            add_read(graph->names, &reads, streaming->source.cdc.source, false);
        for (size_t i = 0; i < streaming->streams.len; i++)
            add_read(graph->names, &reads, streaming->streams.items[i].name, false);
    }
    KnGraphReads ret = {.len = reads.list.len};
    KnGraphRead *copy = kn_arena_alloc(graph->arena, (ret.len + 1) * sizeof(*copy));
    if (ret.len > 0)
        memcpy(copy, reads.list.items, ret.len * sizeof(*copy));
    ret.items = copy;
    kn_vec_done(&reads.list);
    (void)kn_map_free(reads.seen);
    return ret;
}

/* ---- edges ---- */

/* Names and their place, for sorting. */
typedef struct Named {
    const char *name;
    size_t place;
} Named;

static int by_name(const void *x, const void *y)
{
    const Named *p = x, *q = y;
    int order = strcmp(p->name, q->name);
    return order ? order : (p->place > q->place) - (p->place < q->place);
}

static void sort_names(KnGraph *graph, size_t *ranks)
{
    size_t n = graph->pipeline->datasets.len;
    Named *named = kn_arena_alloc(graph->arena, (n + 1) * sizeof(*named));
    size_t *places = kn_arena_alloc(graph->arena, (n + 1) * sizeof(*places));
    for (size_t i = 0; i < n; i++)
        named[i] = (Named){graph->pipeline->datasets.items[i].name, i};
    qsort(named, n, sizeof(*named), by_name);
    for (size_t i = 0; i < n; i++) {
        places[i] = named[i].place;
        ranks[named[i].place] = i;
    }
    graph->by_name = (KnIndexes){places, n};
}

/* Flows are looked at once: reads and targets by flow, writers, readers and edges by dataset. */
static void connect(KnGraph *graph, const size_t *ranks)
{
    size_t n = graph->pipeline->datasets.len, n_flows = graph->pipeline->flows.len;
    KnGraphReads *reads = kn_arena_zalloc(graph->arena, (n_flows + 1) * sizeof(*reads));
    size_t *targets = kn_arena_alloc(graph->arena, (n_flows + 1) * sizeof(*targets));
    Pairs writers = {0}, readers = {0}, edges = {0};
    for (size_t f = 0; f < n_flows; f++) {
        const KnutFlow *flow = &graph->pipeline->flows.items[f];
        targets[f] = kn_names_dataset(graph->names, flow->target);
        reads[f] = reads_of(graph, flow);
        if (targets[f] != KN_GRAPH_NONE)
            *kn_vec_push(&writers.list) = (Pair){targets[f], f};
        for (size_t i = 0; i < reads[f].len; i++) {
            size_t from = reads[f].items[i].dataset;
            if (from == KN_GRAPH_NONE)
                continue;
            *kn_vec_push(&readers.list) = (Pair){from, f};
            if (targets[f] != KN_GRAPH_NONE)
                *kn_vec_push(&edges.list) = (Pair){from, ranks[targets[f]]};
        }
    }
    graph->reads = reads;
    graph->targets = targets;
    graph->writers = grouped(graph->arena, &writers, n);
    graph->readers = grouped(graph->arena, &readers, n);
    const KnIndexes *after = grouped(graph->arena, &edges, n);
    for (size_t i = 0; i < n; i++) /* ranks back to places; the array is ours */
        for (size_t k = 0; k < after[i].len; k++)
            ((size_t *)after[i].items)[k] = graph->by_name.items[after[i].items[k]];
    graph->after = after;
}

static void put_in_order(KnGraph *graph)
{
    size_t n = graph->pipeline->datasets.len, head = 0, tail = 0;
    size_t *waits = kn_arena_zalloc(graph->arena, (n + 1) * sizeof(*waits));
    size_t *queue = kn_arena_alloc(graph->arena, (n + 1) * sizeof(*queue));
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < graph->after[i].len; k++)
            waits[graph->after[i].items[k]]++;
    for (size_t i = 0; i < n; i++)
        if (waits[graph->by_name.items[i]] == 0)
            queue[tail++] = graph->by_name.items[i];
    while (head < tail) {
        const KnIndexes *next = &graph->after[queue[head++]];
        for (size_t k = 0; k < next->len; k++)
            if (--waits[next->items[k]] == 0)
                queue[tail++] = next->items[k];
    }
    graph->order = (KnIndexes){queue, tail};
}

KnGraph *kn_graph_new(KnArena *arena, const KnPipeline *pipeline)
{
    KnGraph *graph = kn_arena_zalloc(arena, sizeof(*graph));
    graph->arena = arena;
    graph->pipeline = pipeline;
    graph->names = kn_names_new(arena, pipeline);
    size_t *ranks = kn_arena_alloc(arena, (pipeline->datasets.len + 1) * sizeof(*ranks));
    sort_names(graph, ranks);
    connect(graph, ranks);
    put_in_order(graph);
    return graph;
}

size_t kn_graph_dataset(const KnGraph *graph, const char *name)
{
    return kn_names_dataset(graph->names, name);
}

size_t kn_graph_input(const KnGraph *graph, const char *name)
{
    return kn_names_input(graph->names, name);
}
