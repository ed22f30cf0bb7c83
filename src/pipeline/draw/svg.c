/* SPDX-License-Identifier: Apache-2.0 */
/*
 * svg.c - the graph as a picture that stands alone: no scripts, no fonts to fetch, light and dark
 * by the reader's setting. Names are text that can be searched; pointing at a thing shows all of
 * it.
 */
#include <math.h>

#include "pipeline/draw/draw.h"

#define LABELLED_EDGES 60 /* more labels than that are a grey mass: they show on pointing only */

static const char style[] =
    "<style>\n"
    "svg{background:#fff;color:#1c2530;font:12px ui-monospace,Menlo,Consolas,monospace}\n"
    ".node rect{fill:#eef3f8;stroke:#5b7590;stroke-width:1.2}\n"
    ".materialized_view rect{fill:#e3f0ff;stroke:#2f6fb3}.table rect{fill:#e5f5e9;stroke:#2f8a4c}\n"
    ".temporary_view rect{fill:#f6f6f6;stroke:#8a8a8a;stroke-dasharray:4 3}\n"
    ".sink rect{fill:#fdeee0;stroke:#b9682a}.outside rect{fill:none;stroke:#8a97a5}\n"
    ".name{font-weight:600;fill:currentColor}.kind,.label{fill:#5b6b7b;font-size:10px}\n"
    ".label{paint-order:stroke;stroke:#fff;stroke-width:4px;stroke-linejoin:round}\n"
    ".edge{fill:none;stroke:#5b7590;stroke-width:1.4}.streaming{stroke-dasharray:6 4}"
    ".cdc{stroke-width:2.6}\n"
    "#tip path{fill:#5b7590}\n"
    "@media (prefers-color-scheme:dark){svg{background:#12181f;color:#e7edf3}\n"
    ".node rect{fill:#1c2733}.materialized_view rect{fill:#14283d}.table rect{fill:#132b1c}\n"
    ".temporary_view rect{fill:#1c1c1c}.sink rect{fill:#33220f}.outside rect{fill:none}\n"
    ".kind,.label{fill:#9fb0c0}.label{stroke:#12181f}}\n"
    "</style>\n";

static void put_xml(KnBuf *out, const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)text[i];
        if (c == '&')
            kn_buf_text(out, "&amp;");
        else if (c == '<')
            kn_buf_text(out, "&lt;");
        else if (c == '>')
            kn_buf_text(out, "&gt;");
        else
            kn_buf_char(out, (char)(c < 0x20 || c == 0x7F ? ' ' : text[i]));
    }
}

static void put_all(KnBuf *out, const char *text)
{
    put_xml(out, text, strlen(text));
}

/* As many characters as are shown; an ellipsis stands for the rest. */
static void put_shown(KnBuf *out, const char *name)
{
    size_t shown = kn_draw_shown(name), n = 0, len = 0;
    while (name[len] && (((unsigned char)name[len] & 0xC0) == 0x80 || n < shown)) {
        n += ((unsigned char)name[len] & 0xC0) != 0x80;
        len++;
    }
    put_xml(out, name, len);
    if (name[len])
        kn_buf_text(out, "\xE2\x80\xA6");
}

static void put_node(KnBuf *out, const KnDrawNode *node, KnPoint at, double width)
{
    bool is_dataset = node->dataset != KN_GRAPH_NONE;
    kn_buf_printf(out, "<g class=\"node %s\"><title>", is_dataset ? node->kind : "outside");
    put_all(out, node->name);
    if (node->detail) {
        kn_buf_text(out, " (");
        put_all(out, node->detail);
        kn_buf_char(out, ')');
    }
    kn_buf_printf(out,
                  "</title><rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.0f\" "
                  "rx=\"%d\"/><text class=\"name\" x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">",
                  at.x - width / 2, at.y - KN_NODE_HEIGHT / 2, width, KN_NODE_HEIGHT,
                  is_dataset ? 6 : 22, at.x, at.y - 2);
    put_shown(out, node->name);
    kn_buf_printf(out,
                  "</text><text class=\"kind\" x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">%s"
                  "</text></g>\n",
                  at.x, at.y + 13, node->kind);
}

/* Curves that leave and arrive level. */
static void put_curve(KnBuf *out, const KnRoute *route)
{
    kn_buf_printf(out, "M%.1f %.1f", route->points[0].x, route->points[0].y);
    for (size_t i = 1; i < route->len; i++) {
        KnPoint a = route->points[i - 1], b = route->points[i];
        double reach = b.x > a.x ? (b.x - a.x) / 2 : 80;
        kn_buf_printf(out, "C%.1f %.1f %.1f %.1f %.1f %.1f", a.x + reach, a.y, b.x - reach, b.y,
                      b.x, b.y);
    }
}

static void put_edge(KnBuf *out, const KnDrawEdge *edge, const KnRoute *route, bool labelled)
{
    kn_buf_printf(out, "<path class=\"edge %s\" marker-end=\"url(#tip)\" d=\"",
                  kn_ir_tag_name(&kn_ir_flow_kind, edge->kind));
    put_curve(out, route);
    kn_buf_text(out, "\"><title>");
    put_all(out, edge->label);
    kn_buf_text(out, "</title></path>\n");
    if (!labelled)
        return;
    KnPoint a = route->points[route->len - 2], b = route->points[route->len - 1];
    kn_buf_printf(out, "<text class=\"label\" x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">",
                  (a.x + b.x) / 2, (a.y + b.y) / 2 - 4);
    put_shown(out, edge->label);
    kn_buf_text(out, "</text>\n");
}

/* A flow that reads several things is named at the first. */
static bool is_labelled(const KnDrawing *drawing, size_t place)
{
    const KnDrawEdge *edges = drawing->edges;
    bool first = drawing->n_edges <= LABELLED_EDGES;
    for (size_t i = 0; first && i < place; i++)
        first = edges[i].to != edges[place].to || strcmp(edges[i].label, edges[place].label) != 0;
    return first;
}

void kn_draw_svg(const KnDrawing *drawing, KnBuf *out)
{
    KnLayout layout = kn_drawing_layout(drawing);
    kn_buf_printf(out,
                  "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%.0f\" "
                  "viewBox=\"0 0 %.0f %.0f\">\n<title>",
                  ceil(layout.width), ceil(layout.height), ceil(layout.width), ceil(layout.height));
    put_all(out, drawing->graph->pipeline->name);
    kn_buf_text(out, "</title>\n");
    kn_buf_text(out, style);
    kn_buf_text(out, "<defs><marker id=\"tip\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" "
                     "markerWidth=\"8\" markerHeight=\"8\" markerUnits=\"userSpaceOnUse\" "
                     "orient=\"auto\"><path d=\"M0 0L8 4L0 8z\"/></marker></defs>\n");
    for (size_t i = 0; i < drawing->n_edges; i++)
        put_edge(out, &drawing->edges[i], &layout.routes[i], is_labelled(drawing, i));
    for (size_t i = 0; i < drawing->n_nodes; i++)
        put_node(out, &drawing->nodes[i], layout.centres[i], layout.widths[i]);
    kn_buf_text(out, "</svg>\n");
}
