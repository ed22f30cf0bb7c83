/* SPDX-License-Identifier: Apache-2.0 */
/* convert.c - `knut pipeline convert`: the same pipeline, written down in another form. */
#include <stdio.h>

#include "cli/commands.h"
#include "cli/output.h"
#include "cli/pipeline/pipeline_args.h"

typedef struct ConvertOptions {
    KnCommonOptions common;
    const char *from, *to, *out;
    bool strict;
} ConvertOptions;

static const KnOption rows[] = {
    KN_PIPELINE_FROM_ROW(ConvertOptions),
    {.name = "to",
     .type = KN_OPT_TEXT,
     .offset = offsetof(ConvertOptions, to),
     .value = "FORM",
     .doc = "How to write it down: ron, json, sql (default: by the extension of --out)"},
    {.name = "out",
     .type = KN_OPT_TEXT,
     .letter = 'o',
     .offset = offsetof(ConvertOptions, out),
     .value = "FILE",
     .doc = "Write to this file, which is replaced as a whole (default: standard output)"},
    {.name = "strict",
     .type = KN_OPT_FLAG,
     .offset = offsetof(ConvertOptions, strict),
     .doc = "Write nothing where the form cannot say all of the pipeline"},
};

static KnCode print(const KnSurface *surface, const KnPipeline *pipeline, KnNotes *notes,
                    KnErr *err)
{
    KN_BUF_AUTO text = {0};
    kn_buf_init(&text, (size_t)64 << 20);
    KN_TRY(surface->write(pipeline, &text, notes, err));
    bool newline = text.len > 0 && text.data[text.len - 1] == '\n';
    return kn_out_line((KnStr){text.data, text.len - newline}, err);
}

/* Would something be left out? Then it is named, and nothing is written. */
static KnCode refuse_losses(const KnCall *call, const KnSurface *surface,
                            const KnPipeline *pipeline, KnErr *err)
{
    KN_BUF_AUTO text = {0};
    KN_NOTES_AUTO losses = {.arena = call->arena};
    kn_buf_init(&text, (size_t)64 << 20);
    KN_TRY(surface->write(pipeline, &text, &losses, err));
    kn_args_notes(call, &losses);
    if (losses.list.len > 0)
        return kn_err_set(err, KN_E_UNSUPPORTED, "%s: %s cannot say %zu things of it (--strict)",
                          kn_args_file(call), surface->name, losses.list.len);
    return KN_OK;
}

static KnCode report(const KnCall *call, const KnSurface *surface, const KnPipeline *pipeline,
                     const char *file, KnErr *err)
{
    static const KnOutColumn columns[] = {
        {"pipeline", false}, {"form", false}, {"file", false}, {"datasets", true}, {"flows", true}};
    KnOut *out = kn_out_open((KnOutputFormat)call->common->output, columns, 5);
    kn_out_text(out, pipeline->name);
    kn_out_text(out, surface->name);
    kn_out_text(out, file);
    kn_out_int(out, (int64_t)pipeline->datasets.len);
    kn_out_int(out, (int64_t)pipeline->flows.len);
    return kn_out_close(out, err);
}

static KnCode run(KnCall *call, KnErr *err)
{
    const ConvertOptions *opts = call->options;
    const KnSurface *to;
    if (opts->to)
        KN_TRY(kn_surface_find(opts->to, &to, err));
    else if (opts->out)
        KN_TRY(kn_surface_of_file(opts->out, &to, err));
    else
        return kn_err_set(err, KN_E_INVAL, "say the form to write: --to, or a file by --out");
    KN_NOTES_AUTO notes = {.arena = call->arena};
    const KnPipeline *pipeline;
    KN_TRY(kn_args_pipeline(call, opts->from, &notes, &pipeline, err));
    if (opts->strict)
        KN_TRY(refuse_losses(call, to, pipeline, err));
    KnCode rc = opts->out ? kn_pipeline_save(pipeline, opts->out, to, &notes, err)
                          : print(to, pipeline, &notes, err);
    if (rc != KN_OK)
        return rc;
    kn_args_notes(call, &notes);
    return opts->out ? report(call, to, pipeline, opts->out, err) : KN_OK;
}

const KnCommand kn_cmd_pipeline_convert = {
    .group = "pipeline",
    .name = "convert",
    .summary = "Write a pipeline down in another form",
    .about =
        "  knut pipeline convert sales.ron --to json\n"
        "  knut pipeline convert sales.sql -o sales.ron\n\n"
        "What was read is not checked: 'knut pipeline check' does that. Fields that are not known\n"
        "are left out, and named on standard error with the nearest name that is; so is what SQL\n"
        "cannot say.",
    .options_size = sizeof(ConvertOptions),
    .rows = rows,
    .n_rows = sizeof(rows) / sizeof(rows[0]),
    .positional = "FILE",
    .run = run,
};
