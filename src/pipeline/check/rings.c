/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rings.c - which datasets need one another: Tarjan's strongly connected components, without
 * recursion, then a breadth-first search for a shortest ring in each.
 */
#include "pipeline/check/graph.h"

typedef struct Search {
    const KnGraph *graph;
    size_t *number; /* 0 = not seen; else the order of being seen */
    size_t *low;
    size_t *group; /* 0 = none yet */
    size_t *next;  /* edge to follow next */
    size_t *path, n_path;
    size_t *open, n_open; /* seen and in no group yet */
    size_t n_seen, n_groups;
} Search;

static void enter(Search *s, size_t node)
{
    s->number[node] = s->low[node] = ++s->n_seen;
    s->path[s->n_path++] = node;
    s->open[s->n_open++] = node;
}

static void leave(Search *s, size_t node)
{
    s->n_path--;
    if (s->n_path > 0) {
        size_t before = s->path[s->n_path - 1];
        if (s->low[node] < s->low[before])
            s->low[before] = s->low[node];
    }
    if (s->low[node] != s->number[node])
        return;
    s->n_groups++;
    size_t member;
    do {
        member = s->open[--s->n_open];
        s->group[member] = s->n_groups;
    } while (member != node);
}

static void walk(Search *s, size_t start)
{
    enter(s, start);
    while (s->n_path > 0) {
        size_t node = s->path[s->n_path - 1];
        const KnIndexes *after = &s->graph->after[node];
        if (s->next[node] == after->len) {
            leave(s, node);
            continue;
        }
        size_t to = after->items[s->next[node]++];
        if (s->number[to] == 0)
            enter(s, to);
        else if (s->group[to] == 0 && s->number[to] < s->low[node])
            s->low[node] = s->number[to];
    }
}

/* From start back to start within its group; none where start needs itself by no way. before is
 * scratch: NONE for each node of the group. */
static KnIndexes ring_through(const Search *s, size_t start, size_t *before, size_t *queue)
{
    size_t head = 0, tail = 0;
    queue[tail++] = start;
    while (head < tail && before[start] == KN_GRAPH_NONE) {
        size_t node = queue[head++];
        const KnIndexes *after = &s->graph->after[node];
        for (size_t k = 0; k < after->len; k++) {
            size_t to = after->items[k];
            if (s->group[to] != s->group[start] || before[to] != KN_GRAPH_NONE)
                continue;
            before[to] = node;
            queue[tail++] = to;
        }
    }
    if (before[start] == KN_GRAPH_NONE)
        return (KnIndexes){0};
    size_t len = 1;
    for (size_t node = before[start]; node != start; node = before[node])
        len++;
    size_t *ring = kn_arena_alloc(s->graph->arena, (len + 1) * sizeof(*ring));
    ring[0] = ring[len] = start;
    for (size_t node = before[start], at = len; node != start; node = before[node])
        ring[--at] = node;
    return (KnIndexes){ring, len + 1};
}

static size_t *numbers(const KnGraph *graph)
{
    return kn_arena_zalloc(graph->arena, (graph->pipeline->datasets.len + 2) * sizeof(size_t));
}

KnRings kn_graph_rings(const KnGraph *graph)
{
    size_t n = graph->pipeline->datasets.len;
    Search s = {.graph = graph,
                .number = numbers(graph),
                .low = numbers(graph),
                .group = numbers(graph),
                .next = numbers(graph),
                .path = numbers(graph),
                .open = numbers(graph)};
    for (size_t i = 0; i < n; i++)
        if (s.number[i] == 0)
            walk(&s, i);
    size_t *before = numbers(graph), *queue = numbers(graph), *done = numbers(graph);
    for (size_t i = 0; i < n; i++)
        before[i] = KN_GRAPH_NONE;
    KnIndexes *rings = kn_arena_zalloc(graph->arena, (n + 1) * sizeof(*rings));
    size_t len = 0;
    for (size_t i = 0; i < n; i++) { /* by name: the first of a group stands for it */
        size_t node = graph->by_name.items[i];
        if (done[s.group[node]])
            continue;
        done[s.group[node]] = 1;
        rings[len] = ring_through(&s, node, before, queue);
        len += rings[len].len > 0;
    }
    return (KnRings){rings, len};
}
