/* SPDX-License-Identifier: Apache-2.0 */
/* graph.c - `knut pipeline graph`: who reads and writes what, as text or as a picture. */
#include "cli/commands.h"
#include "cli/output.h"
#include "cli/pipeline/pipeline_args.h"
#include "pipeline/draw/draw.h"

typedef struct GraphOptions {
    KnCommonOptions common;
    const char *from;
    int format;
} GraphOptions;

static const KnOption rows[] = {
    KN_PIPELINE_FROM_ROW(GraphOptions),
    {.name = "format",
     .type = KN_OPT_CHOICE,
     .offset = offsetof(GraphOptions, format),
     .value = "text|dot|mermaid|svg",
     .dflt = "text",
     .doc = "Text, or a picture: Graphviz, Mermaid, SVG"},
};

static void (*const draw[])(const KnDrawing *, KnBuf *) = {kn_draw_text, kn_draw_dot,
                                                           kn_draw_mermaid, kn_draw_svg};

static KnCode run(KnCall *call, KnErr *err)
{
    const GraphOptions *opts = call->options;
    KN_NOTES_AUTO notes = {.arena = call->arena};
    const KnPipeline *pipeline;
    KN_TRY(kn_args_pipeline(call, opts->from, &notes, &pipeline, err));
    KN_BUF_AUTO text = {0};
    kn_buf_init(&text, (size_t)64 << 20);
    const KnGraph *graph = kn_graph_new(call->arena, pipeline);
    draw[opts->format](kn_drawing_new(call->arena, graph), &text);
    KN_TRY(kn_buf_check(&text, err));
    kn_args_notes(call, &notes);
    return kn_out_line((KnStr){text.data, text.len - 1}, err);
}

const KnCommand kn_cmd_pipeline_graph = {
    .group = "pipeline",
    .name = "graph",
    .summary = "Show who reads and writes what, as text or as a picture",
    .about =
        "  knut pipeline graph sales.ron\n"
        "  knut pipeline graph sales.ron --format svg > sales.svg\n\n"
        "Datasets stand in the order of running. In pictures, a dashed line is a streaming flow, "
        "a\n"
        "thick one a cdc flow; what has round ends comes from outside. A pipeline that has errors\n"
        "is drawn as well.",
    .options_size = sizeof(GraphOptions),
    .rows = rows,
    .n_rows = sizeof(rows) / sizeof(rows[0]),
    .positional = "FILE",
    .run = run,
};
