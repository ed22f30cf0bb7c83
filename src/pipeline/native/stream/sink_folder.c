/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sink_folder.c - a folder of files; the epoch is a file in it.
 *
 * `_epoch_FLOW` is written beside the rows, into the stage that takes the folder's place in one
 * step: who sees the rows sees the mark. Readers of the folder leave out names that begin with an
 * underscore.
 */
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "base/path.h"
#include "pipeline/native/stream/sink.h"

static const char *mark_name(const KnStreamSink *sink)
{
    return kn_arena_printf(sink->run->arena, "_epoch_%s", sink->flow->name);
}

static KnCode folder_open(KnStreamSink *sink, KnErr *err)
{
    (void)err;
    KnStr path = kn_str(sink->node->path);
    while (path.len > 1 && path.ptr[path.len - 1] == '/')
        path.len--;
    KnStr dir = kn_path_dirname(path), name = kn_path_basename(path);
    sink->state_beside = kn_arena_printf(sink->run->arena, "%.*s/.%.*s.stream", (int)dir.len,
                                         dir.ptr, (int)name.len, name.ptr);
    return KN_OK;
}

static KnCode folder_mark(KnStreamSink *sink, KnStreamMark *ret, KnErr *err)
{
    KN_JSON_AUTO doc = NULL;
    KN_BUF_AUTO text = {0};
    const char *stream = NULL;
    const char *file =
        kn_path_join(sink->run->arena, kn_str(sink->node->path), kn_str(mark_name(sink)));
    *ret = (KnStreamMark){.epoch = -1};
    if (access(file, F_OK) != 0)
        return KN_OK;
    KN_TRY(kn_io_read_all(sink->run->io, kn_str(file), 1 << 16, &text, err));
    KnCode rc = kn_json_parse(text.data, text.len, &doc, err);
    if (rc == KN_OK)
        rc = kn_json_get_str(doc, "stream", &stream, err);
    if (rc == KN_OK)
        rc = kn_json_get_i64(doc, "epoch", &ret->epoch, err);
    if (rc != KN_OK)
        return kn_err_wrap(err, KN_E_CORRUPT, "%s", file);
    (void)snprintf(ret->stream, sizeof(ret->stream), "%s", stream);
    return KN_OK;
}

static KnCode folder_commit(KnStreamSink *sink, const KnStreamWrite *write, int64_t *ret_rows,
                            KnErr *err)
{
    KnNativeRun *run = sink->run;
    KnNativeNode *node = sink->node;
    KnNativeMark mark = {
        .name = mark_name(sink),
        .text = kn_arena_printf(run->arena, "{\"stream\":\"%s\",\"epoch\":%" PRId64 "}\n",
                                write->mark.stream, write->mark.epoch),
        .part =
            kn_arena_printf(run->arena, "%s-%012" PRId64, write->mark.stream, write->mark.epoch)};
    KN_TRY(kn_native_create(run, "OR REPLACE VIEW", node->dataset->name, write->select, err));
    node->replace = write->how == KN_STREAM_REPLACE;
    node->mark = &mark;
    KnCode rc = kn_native_stage(run, node, err);
    if (rc == KN_OK)
        rc = kn_native_publish(run, err);
    node->mark = NULL;
    *ret_rows = node->rows;
    return rc;
}

static KnCode folder_rows(KnStreamSink *sink, const char **ret_sql, KnErr *err)
{
    const KnNativeNode *node = sink->node;
    KN_BUF_AUTO sql = {.max = 1 << 20};
    kn_buf_text(&sql, "SELECT * FROM ");
    kn_native_files_sql(&sql, node->format, node->path, &node->dataset->partition_cols);
    KN_TRY(kn_buf_check(&sql, err));
    *ret_sql = kn_arena_strndup(sink->run->arena, sql.data, sql.len);
    return KN_OK;
}

static void folder_close(KnStreamSink *sink)
{
    (void)sink;
}

const KnStreamSinkOps kn_stream_folder = {.kind = "folder",
                                          .open = folder_open,
                                          .mark = folder_mark,
                                          .commit = folder_commit,
                                          .rows = folder_rows,
                                          .close = folder_close};
