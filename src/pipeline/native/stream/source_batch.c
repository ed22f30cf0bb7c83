/* SPDX-License-Identifier: Apache-2.0 */
/* source_batch.c - files that are there, read once as one epoch; nothing comes behind them. */
#include "pipeline/native/stream/source.h"

static KnCode batch_open(KnStreamSource *src, KnErr *err)
{
    return kn_native_path(src->run->arena, src->place, &src->identity, err);
}

static KnCode batch_latest(KnStreamSource *src, const json_t *from, const KnStreamLimit *limit,
                           json_t **ret_to, KnErr *err)
{
    (void)limit;
    (void)err;
    src->ended = true;
    *ret_to = from ? NULL : json_pack("{s:b}", "read", 1);
    return KN_OK;
}

static KnCode batch_columns(KnStreamSource *src, const char **ret_sql, KnErr *err)
{
    KN_BUF_AUTO sql = {.max = 1 << 20};
    kn_buf_text(&sql, "SELECT * FROM ");
    kn_native_files_sql(&sql, src->format, src->identity, NULL);
    KN_TRY(kn_buf_check(&sql, err));
    *ret_sql = kn_arena_strndup(src->run->arena, sql.data, sql.len);
    return KN_OK;
}

static KnCode batch_rows(KnStreamSource *src, const json_t *from, const json_t *to,
                         const char **ret_sql, KnErr *err)
{
    (void)from;
    (void)to;
    return batch_columns(src, ret_sql, err);
}

static void nothing(KnStreamSource *src)
{
    (void)src;
}

const KnStreamSourceOps kn_stream_batch = {.kind = "batch",
                                           .open = batch_open,
                                           .latest = batch_latest,
                                           .rows = batch_rows,
                                           .columns = batch_columns,
                                           .release = nothing,
                                           .close = nothing};
