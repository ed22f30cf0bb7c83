/* SPDX-License-Identifier: Apache-2.0 */
/* drawing.c - nodes and edges of a graph, as all notations draw them. */
#include "base/map.h"
#include "base/vec.h"
#include "pipeline/draw/draw.h"

typedef struct Maker {
    KnArena *arena;
    const KnGraph *graph;
    KN_VEC(KnDrawNode) nodes;
    KN_VEC(KnDrawEdge) edges;
    KnMap *outside; /* kind and name of what is no dataset: the node's place plus one */
    KnMap *pairs;   /* from, to and kind: the edge's place plus one */
} Maker;

static const char *detail_of(KnArena *arena, const char *format, const char *path)
{
    if (format && path)
        return kn_arena_printf(arena, "%s, %s", format, path);
    return format ? format : path;
}

static size_t *slot(KnMap *map, const char *key, size_t *scratch)
{
    bool is_new;
    void **at = kn_map_get_or_add(map, kn_str(key), &is_new);
    *scratch = (size_t)(uintptr_t)*at;
    return (size_t *)(void *)at;
}

/* The node of something that is no dataset. */
static size_t outside(Maker *m, const char *kind, const char *name, const char *detail)
{
    size_t place;
    size_t *at = slot(m->outside, kn_arena_printf(m->arena, "%s\n%s", kind, name), &place);
    if (place == 0) {
        *kn_vec_push(&m->nodes) = (KnDrawNode){name, kind, detail, KN_GRAPH_NONE};
        place = *at = m->nodes.len;
    }
    return place - 1;
}

static void edge(Maker *m, size_t from, const KnutFlow *flow, size_t to)
{
    size_t place;
    char *key = kn_arena_printf(m->arena, "%zu %zu %d", from, to, (int)flow->kind.tag);
    size_t *at = slot(m->pairs, key, &place);
    if (place == 0) {
        *kn_vec_push(&m->edges) = (KnDrawEdge){from, to, flow->name, flow->kind.tag};
        *at = m->edges.len;
        return;
    }
    KnDrawEdge *known = &m->edges.items[place - 1];
    if (strlen(known->label) < 200)
        known->label = kn_arena_printf(m->arena, "%s, %s", known->label, flow->name);
}

static size_t read_node(Maker *m, const KnGraphRead *read)
{
    if (read->dataset != KN_GRAPH_NONE)
        return read->dataset;
    if (read->input == KN_GRAPH_NONE)
        return outside(m, "outside", read->name, NULL);
    const KnutInput *input = &m->graph->pipeline->inputs.items[read->input];
    return outside(m, "input", input->name, detail_of(m->arena, input->format, input->path));
}

/* What a streaming flow takes from outside by its source; nothing where its reads name it. */
static void source_edge(Maker *m, const KnutFlow *flow, size_t place)
{
    const KnutSource *source = &flow->kind.streaming.source;
    const char *name = source->tag == KNUT_SOURCE_BATCH       ? source->batch.uri
                       : source->tag == KNUT_SOURCE_KAFKA     ? source->kafka.topic
                       : source->tag == KNUT_SOURCE_FILE_DROP ? source->file_drop.dir
                       : source->tag == KNUT_SOURCE_ICEBERG   ? source->iceberg.table
                                                              : NULL;
    for (size_t i = 0; name && i < m->graph->reads[place].len; i++)
        if (strcmp(m->graph->reads[place].items[i].name, name) == 0)
            return;
    if (name)
        edge(m, outside(m, kn_ir_tag_name(&kn_ir_source, source->tag), name, NULL), flow,
             m->graph->targets[place]);
}

static void add_flow(Maker *m, size_t place)
{
    const KnutFlow *flow = &m->graph->pipeline->flows.items[place];
    size_t target = m->graph->targets[place];
    if (target == KN_GRAPH_NONE)
        return;
    for (size_t i = 0; i < m->graph->reads[place].len; i++)
        edge(m, read_node(m, &m->graph->reads[place].items[i]), flow, target);
    if (flow->kind.tag == KNUT_FLOW_STREAMING)
        source_edge(m, flow, place);
}

KnDrawing *kn_drawing_new(KnArena *arena, const KnGraph *graph)
{
    Maker m = {.arena = arena, .graph = graph, .outside = kn_map_new(), .pairs = kn_map_new()};
    for (size_t i = 0; i < graph->pipeline->datasets.len; i++) {
        const KnutDataset *d = &graph->pipeline->datasets.items[i];
        *kn_vec_push(&m.nodes) = (KnDrawNode){d->name, kn_output_type_name(d->output_type),
                                              detail_of(arena, d->format, d->path), i};
    }
    for (size_t i = 0; i < graph->pipeline->flows.len; i++)
        add_flow(&m, i);
    KnDrawing *drawing = kn_arena_zalloc(arena, sizeof(*drawing));
    KnDrawNode *nodes = kn_arena_alloc(arena, (m.nodes.len + 1) * sizeof(*nodes));
    KnDrawEdge *edges = kn_arena_alloc(arena, (m.edges.len + 1) * sizeof(*edges));
    if (m.nodes.len > 0)
        memcpy(nodes, m.nodes.items, m.nodes.len * sizeof(*nodes));
    if (m.edges.len > 0)
        memcpy(edges, m.edges.items, m.edges.len * sizeof(*edges));
    *drawing = (KnDrawing){arena, graph, nodes, m.nodes.len, edges, m.edges.len};
    kn_vec_done(&m.nodes);
    kn_vec_done(&m.edges);
    (void)kn_map_free(m.outside);
    (void)kn_map_free(m.pairs);
    return drawing;
}
