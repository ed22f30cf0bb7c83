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

/* The pipeline, and how it is written. */
typedef struct Written {
    const KnPipeline *pipeline;
    const KnSurface *surface;
    KnSession *session; /* where the surface needs an engine */
} Written;

static KnCode print(const Written *w, KnNotes *notes, KnErr *err)
{
    KN_BUF_AUTO text = {0};
    kn_buf_init(&text, (size_t)64 << 20);
    KN_TRY(w->surface->write(w->pipeline, w->session, &text, notes, err));
    bool newline = text.len > 0 && text.data[text.len - 1] == '\n';
    return kn_out_line((KnStr){text.data, text.len - newline}, err);
}

/* Would something be left out? Then it is named, and nothing is written. */
static KnCode refuse_losses(const KnCall *call, const Written *w, KnErr *err)
{
    KN_BUF_AUTO text = {0};
    KN_NOTES_AUTO losses = {.arena = call->arena};
    kn_buf_init(&text, (size_t)64 << 20);
    KN_TRY(w->surface->write(w->pipeline, w->session, &text, &losses, err));
    kn_args_notes(call, &losses);
    if (losses.list.len > 0)
        return kn_err_set(err, KN_E_UNSUPPORTED, "%s: %s cannot say %zu things of it (--strict)",
                          kn_args_file(call), w->surface->name, losses.list.len);
    return KN_OK;
}

static KnCode report(const KnCall *call, const Written *w, const char *file, KnErr *err)
{
    static const KnOutColumn columns[] = {
        {"pipeline", false}, {"form", false}, {"file", false}, {"datasets", true}, {"flows", true}};
    KnOut *out = kn_out_open((KnOutputFormat)call->common->output, columns, 5);
    kn_out_text(out, w->pipeline->name);
    kn_out_text(out, w->surface->name);
    kn_out_text(out, file);
    kn_out_int(out, (int64_t)w->pipeline->datasets.len);
    kn_out_int(out, (int64_t)w->pipeline->flows.len);
    return kn_out_close(out, err);
}

static KnCode write_all(const KnCall *call, const Written *w, KnNotes *notes, KnErr *err)
{
    const ConvertOptions *opts = call->options;
    if (opts->strict)
        KN_TRY(refuse_losses(call, w, err));
    if (!opts->out) {
        KN_TRY(print(w, notes, err));
        kn_args_notes(call, notes);
        return KN_OK;
    }
    const KnSave save = {opts->out, w->surface, w->session};
    KN_TRY(kn_pipeline_save(w->pipeline, &save, notes, err));
    kn_args_notes(call, notes);
    return report(call, w, opts->out, err);
}

static KnCode run(KnCall *call, KnErr *err)
{
    const ConvertOptions *opts = call->options;
    Written w = {0};
    if (opts->to)
        KN_TRY(kn_surface_find(opts->to, &w.surface, err));
    else if (opts->out)
        KN_TRY(kn_surface_of_file(opts->out, &w.surface, err));
    else
        return kn_err_set(err, KN_E_INVAL, "say the form to write: --to, or a file by --out");
    KN_NOTES_AUTO notes = {.arena = call->arena};
    KN_CALL_ENGINE_AUTO ce = {0};
    KN_TRY(kn_args_pipeline(call, opts->from, &notes, &w.pipeline, err));
    if (w.surface->needs_engine)
        KN_TRY(kn_call_engine_open(call, &ce, err));
    w.session = ce.session;
    return write_all(call, &w, &notes, err);
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
