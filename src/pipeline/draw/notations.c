/* SPDX-License-Identifier: Apache-2.0 */
/* notations.c - text for people, Graphviz, Mermaid. */
#include "pipeline/draw/draw.h"

/* ---- text ---- */

/* A line never holds another: control characters become spaces. */
static void put_line(KnBuf *out, const char *text)
{
    for (; *text; text++)
        kn_buf_char(out, (char)((unsigned char)*text < 0x20 || *text == 0x7F ? ' ' : *text));
}

static void flow_line(const KnDrawing *d, size_t place, KnBuf *out)
{
    const KnutFlow *flow = &d->graph->pipeline->flows.items[place];
    kn_buf_text(out, "    <- ");
    put_line(out, flow->name);
    kn_buf_printf(out, " (%s)", kn_flow_kind_name(flow));
    if (flow->kind.tag == KNUT_FLOW_STREAMING)
        kn_buf_printf(out, " from %s",
                      kn_ir_tag_name(&kn_ir_source, flow->kind.streaming.source.tag));
    for (size_t i = 0; i < d->graph->reads[place].len; i++) {
        kn_buf_text(out, i ? ", " : " reads ");
        put_line(out, d->graph->reads[place].items[i].name);
    }
    kn_buf_char(out, '\n');
}

static void dataset_lines(const KnDrawing *d, size_t place, KnBuf *out)
{
    const KnutDataset *dataset = &d->graph->pipeline->datasets.items[place];
    kn_buf_printf(out, "[%s] ", kn_output_type_name(dataset->output_type));
    put_line(out, dataset->name);
    if (d->nodes[place].detail) {
        kn_buf_text(out, " (");
        put_line(out, d->nodes[place].detail);
        kn_buf_char(out, ')');
    }
    if (dataset->comment) {
        kn_buf_text(out, "  # ");
        put_line(out, dataset->comment);
    }
    kn_buf_char(out, '\n');
    for (size_t i = 0; i < d->graph->writers[place].len; i++)
        flow_line(d, d->graph->writers[place].items[i], out);
}

void kn_draw_text(const KnDrawing *d, KnBuf *out)
{
    const KnPipeline *pipeline = d->graph->pipeline;
    bool whole = d->graph->order.len == pipeline->datasets.len;
    put_line(out, pipeline->name);
    kn_buf_printf(out, ": %zu datasets, %zu flows\n", pipeline->datasets.len, pipeline->flows.len);
    for (size_t i = 0; i < pipeline->datasets.len; i++)
        dataset_lines(d, whole ? d->graph->order.items[i] : i, out);
    KnRings rings = {0};
    if (!whole)
        rings = kn_graph_rings(d->graph);
    for (size_t i = 0; i < rings.len; i++) {
        kn_buf_text(out, "cycle:");
        for (size_t k = 0; k < rings.items[i].len; k++) {
            kn_buf_text(out, k ? " -> " : " ");
            put_line(out, pipeline->datasets.items[rings.items[i].items[k]].name);
        }
        kn_buf_char(out, '\n');
    }
}

/* ---- Graphviz ---- */

static void dot_text(KnBuf *out, const char *text)
{
    kn_buf_char(out, '"');
    for (; *text; text++) {
        if (*text == '"' || *text == '\\')
            kn_buf_char(out, '\\');
        kn_buf_char(out, (char)((unsigned char)*text < 0x20 ? ' ' : *text));
    }
    kn_buf_char(out, '"');
}

void kn_draw_dot(const KnDrawing *d, KnBuf *out)
{
    static const char *const styles[] = {
        [KNUT_FLOW_BATCH] = "solid", [KNUT_FLOW_STREAMING] = "dashed", [KNUT_FLOW_CDC] = "bold"};
    kn_buf_text(out, "digraph ");
    dot_text(out, d->graph->pipeline->name);
    kn_buf_text(out, " {\n  rankdir=LR;\n  node [shape=box, style=rounded];\n");
    for (size_t i = 0; i < d->n_nodes; i++) {
        kn_buf_printf(out, "  n%zu [label=", i);
        dot_text(out, d->nodes[i].name);
        kn_buf_text(out, ", tooltip=");
        dot_text(out, d->nodes[i].kind);
        kn_buf_text(out,
                    d->nodes[i].dataset == KN_GRAPH_NONE ? ", shape=cds, style=solid];\n" : "];\n");
    }
    for (size_t i = 0; i < d->n_edges; i++) {
        kn_buf_printf(out, "  n%zu -> n%zu [label=", d->edges[i].from, d->edges[i].to);
        dot_text(out, d->edges[i].label);
        kn_buf_printf(out, ", style=%s];\n", styles[d->edges[i].kind]);
    }
    kn_buf_text(out, "}\n");
}

/* ---- Mermaid ---- */

/* Entities for what Mermaid, or the HTML that it makes, would read as its own. */
static void mermaid_text(KnBuf *out, const char *text)
{
    kn_buf_char(out, '"');
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;
        if (c < 0x20)
            kn_buf_char(out, ' ');
        else if (memchr("\"#&<>`;\\", c, 8))
            kn_buf_printf(out, "#%u;", c);
        else
            kn_buf_char(out, *text);
    }
    kn_buf_char(out, '"');
}

void kn_draw_mermaid(const KnDrawing *d, KnBuf *out)
{
    static const char *const arrows[] = {
        [KNUT_FLOW_BATCH] = "-->", [KNUT_FLOW_STREAMING] = "-.->", [KNUT_FLOW_CDC] = "==>"};
    kn_buf_text(out, "flowchart LR\n");
    for (size_t i = 0; i < d->n_nodes; i++) {
        bool is_dataset = d->nodes[i].dataset != KN_GRAPH_NONE;
        kn_buf_printf(out, "  n%zu%s", i, is_dataset ? "[" : "([");
        mermaid_text(out, d->nodes[i].name);
        kn_buf_text(out, is_dataset ? "]\n" : "])\n");
    }
    for (size_t i = 0; i < d->n_edges; i++) {
        kn_buf_printf(out, "  n%zu %s|", d->edges[i].from, arrows[d->edges[i].kind]);
        mermaid_text(out, d->edges[i].label);
        kn_buf_printf(out, "| n%zu\n", d->edges[i].to);
    }
}
