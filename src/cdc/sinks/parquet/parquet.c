/* SPDX-License-Identifier: Apache-2.0 */
/*
 * parquet.c - delivery into a folder of Parquet files: every window appears in one step, or not.
 *
 * The chunks of a window are written beside the target and HELD there; when all of them are
 * written, and noted in the journal, the first commit_held() renames the window's folder into the
 * target, and the others find it there. So a reader sees whole windows, and a killed process leaves
 * either a published window or one that nobody sees and that the next process goes on with.
 *
 * Files cannot change: deletes and upserts by key are refused.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cdc/sinks/parquet/parquet_internal.h"
#include "storage/place.h"

/* ---- opening ---- */

static KnCode identify(const KnSinkOptions *opts, KnArena *arena, const char **ret, KnErr *err)
{
    KnFilesSettings set;
    KN_TRY(kn_files_settings_parse(arena, opts->place, &set, err));
    *ret = kn_arena_printf(arena, "parquet:%s", set.root);
    return KN_OK;
}

static void close_sink(KnSink *base)
{
    KnFiles *files = (KnFiles *)base;
    files->ses = kn_session_close(files->ses);
    files->eng = kn_engine_close(files->eng);
    files->io = kn_io_close(files->io);
    if (files->lock >= 0)
        (void)close(files->lock);
    (void)kn_arena_free(files->win_arena);
    (void)kn_arena_free(files->arena);
    free(files);
}

static KnCode open_parts(KnFiles *files, const KnSinkOptions *opts, KnErr *err)
{
    const KnEngineOptions eopts = {.threads = opts->threads,
                                   .memory_limit = opts->memory_limit,
                                   .spill_dir = opts->spill_dir,
                                   .any_order = true};
    KN_TRY(kn_files_settings_parse(files->arena, opts->place, &files->set, err));
    KN_TRY(kn_files_places(files, opts->target, err));
    KN_TRY(kn_io_local_open(&files->io, err));
    KN_TRY(kn_engine_open(&eopts, &files->eng, err));
    return kn_session_open(files->eng, &files->ses, err);
}

static KnCode open_sink(const KnSinkOptions *opts, KnSink **ret, KnErr *err)
{
    KnFiles *files = calloc(1, sizeof(*files));
    if (!files)
        abort();
    files->base.ops = &kn_sink_parquet;
    files->lock = -1;
    files->arena = kn_arena_new(1024);
    files->delivery = kn_arena_strdup(files->arena, opts->delivery);
    KnCode rc = open_parts(files, opts, err);
    if (rc != KN_OK) {
        close_sink(&files->base);
        return rc;
    }
    *ret = &files->base;
    return KN_OK;
}

/* ---- windows ---- */

static KnCode probe(KnSink *base, const KnSinkWindow *win, KnErr *err)
{
    KnFiles *files = (KnFiles *)base;
    if (win->n_keys)
        return kn_err_set(err, KN_E_REFUSED,
                          "folder %s: rows in files cannot be replaced by key: deliver with --mode "
                          "append",
                          files->target);
    if (win->deletes)
        return kn_err_set(err, KN_E_REFUSED,
                          "folder %s: the snapshot takes rows away, which a folder of files "
                          "cannot: run `knut cdc reload` to deliver what the table is now",
                          files->target);
    return kn_files_check_columns(files, win, err);
}

static KnCode begin(KnSink *base, const KnSinkWindow *win, KnErr *err)
{
    KnFiles *files = (KnFiles *)base;
    files->win_arena = kn_arena_free(files->win_arena);
    files->win_arena = kn_arena_new(4096);
    files->win_id = kn_arena_strdup(files->win_arena, win->id);
    files->schema = win->schema;
    const char *after = win->claim_label ? win->claim_label : win->expect_label;
    files->after = kn_arena_strdup(files->win_arena, after ? after : "");
    return kn_files_claim(files, win, err);
}

/* ---- chunks ---- */

static KnCode load(KnSink *base, const KnSinkChunk *chunk, const KnRowSource *rows, KnVerdict *ret,
                   KnErr *err)
{
    KnFiles *files = (KnFiles *)base;
    bool found;
    int64_t n = 0;
    *ret = (KnVerdict){.kind = KN_VERDICT_FAILED};
    if (chunk->op != KN_CHUNK_INSERT)
        return kn_err_set(err, KN_E_REFUSED, "folder %s: rows cannot be taken away", files->target);
    bool published = kn_files_is_published(files);
    if (!published)
        KN_TRY(kn_files_open_stage(files, err));
    KN_TRY(kn_files_find(files, chunk->label, !published, &found, &n, err));
    if (!found && published)
        return kn_err_set(err, KN_E_CORRUPT,
                          "folder %s: the window is there already, without chunk %" PRId64,
                          files->target, chunk->number);
    if (!found) {
        KnCode rc = kn_files_write(files, chunk, rows, &n, err);
        if (rc != KN_OK)
            return kn_err_wrap(err, rc, "folder %s", files->target);
    }
    *ret = (KnVerdict){.kind = published ? KN_VERDICT_DUPLICATE : KN_VERDICT_HELD, .rows = n};
    return KN_OK;
}

static KnCode find(KnSink *base, const char *label, bool *ret_found, int64_t *ret_rows, KnErr *err)
{
    return kn_files_find((KnFiles *)base, label, false, ret_found, ret_rows, err);
}

static KnCode find_held(KnSink *base, const char *label, int64_t hold, KnHeld *ret, KnErr *err)
{
    KnFiles *files = (KnFiles *)base;
    bool found;
    int64_t rows;
    (void)hold;
    KN_TRY(kn_files_find(files, label, false, &found, &rows, err));
    KnHeld fate = found ? KN_HELD_LANDED : KN_HELD_GONE;
    if (!found) {
        KN_TRY(kn_files_open_stage(files, err));
        KN_TRY(kn_files_find(files, label, true, &found, &rows, err));
        fate = found ? KN_HELD_WAITING : KN_HELD_GONE;
    }
    *ret = fate;
    return KN_OK;
}

static KnCode commit_held(KnSink *base, const char *label, int64_t hold, KnErr *err)
{
    (void)label;
    (void)hold;
    return kn_files_publish((KnFiles *)base, err);
}

static void drop_held(KnSink *base, const char *label, int64_t hold)
{
    KnFiles *files = (KnFiles *)base;
    (void)label;
    (void)hold;
    KN_IGNORE(kn_place_remove(files->stage, NULL)); /* the next window removes it as well */
}

const KnSinkOps kn_sink_parquet = {
    .kind = "parquet",
    .max_parallel_loads = 1,
    .identify = identify,
    .open = open_sink,
    .probe = probe,
    .begin = begin,
    .load = load,
    .find = find,
    .close = close_sink,
    .find_held = find_held,
    .commit_held = commit_held,
    .drop_held = drop_held,
};
