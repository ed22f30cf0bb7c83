/* SPDX-License-Identifier: Apache-2.0 */
/* source_memory.c - micro-batches that the caller of a run has; the offsets are how many were read.
 */
#include <inttypes.h>
#include <string.h>

#include "pipeline/native/stream/source.h"

typedef struct Memory {
    const KnRunStream *stream;
    KnFeed *feed;
    uint64_t batch, nth, end; /* what the feed gives next */
} Memory;

static KnCode memory_open(KnStreamSource *src, KnErr *err)
{
    (void)err;
    const KnRunOptions *opts = src->run->opts;
    Memory *own = kn_arena_zalloc(src->run->arena, sizeof(*own));
    for (size_t i = 0; i < opts->n_streams; i++)
        if (!strcmp(opts->streams[i].name, src->name))
            own->stream = &opts->streams[i];
    src->own = own;
    src->identity = src->name;
    return KN_OK;
}

static json_int_t batches_of(const json_t *offsets)
{
    return json_integer_value(json_object_get(offsets, "batches"));
}

static KnCode memory_latest(KnStreamSource *src, const json_t *from, const KnStreamLimit *limit,
                            json_t **ret_to, KnErr *err)
{
    (void)err;
    const Memory *own = src->own;
    bool ended = false;
    json_int_t had = batches_of(from);
    json_int_t have = (json_int_t)own->stream->count(own->stream->arg, &ended);
    json_int_t next = limit->all || have <= had ? have : had + 1;
    *ret_to = have > had ? json_pack("{s:I}", "batches", next) : NULL;
    src->ended = ended && next >= have;
    return KN_OK;
}

static KnCode next_batch(void *arg, KnBatch **ret, KnErr *err)
{
    Memory *own = arg;
    for (*ret = NULL; own->batch < own->end; own->batch++, own->nth = 0) {
        KN_TRY(own->stream->next(own->stream->arg, own->batch, own->nth, ret, err));
        if (*ret) {
            own->nth++;
            return KN_OK;
        }
    }
    return KN_OK;
}

static KnCode open_feed(KnStreamSource *src, Memory *own, const char *name, KnErr *err)
{
    own->feed = kn_feed_close(own->feed);
    return kn_feed_open(src->run->engine,
                        &(KnFeedOptions){.name = name,
                                         .column_names = own->stream->column_names,
                                         .column_types = own->stream->column_types,
                                         .n_columns = own->stream->n_columns,
                                         .next = next_batch,
                                         .arg = own},
                        &own->feed, err);
}

static KnCode select_feed(KnStreamSource *src, const char **ret_sql, KnErr *err)
{
    const char *name = kn_arena_printf(src->run->arena, "stream %zu",
                                       (size_t)(src->flow - src->run->pipeline->flows.items));
    KN_TRY(open_feed(src, src->own, name, err));
    *ret_sql = kn_native_feed_sql(src->run->arena, name);
    return KN_OK;
}

static KnCode memory_rows(KnStreamSource *src, const json_t *from, const json_t *to,
                          const char **ret_sql, KnErr *err)
{
    Memory *own = src->own;
    own->batch = (uint64_t)batches_of(from);
    own->end = (uint64_t)batches_of(to);
    own->nth = 0;
    return select_feed(src, ret_sql, err);
}

static KnCode memory_columns(KnStreamSource *src, const char **ret_sql, KnErr *err)
{
    Memory *own = src->own;
    own->batch = own->end = 0;
    return select_feed(src, ret_sql, err);
}

static void memory_release(KnStreamSource *src)
{
    Memory *own = src->own;
    own->feed = kn_feed_close(own->feed);
}

static void memory_close(KnStreamSource *src)
{
    if (src->own)
        memory_release(src);
}

const KnStreamSourceOps kn_stream_memory = {.kind = "memory",
                                            .once = true,
                                            .open = memory_open,
                                            .latest = memory_latest,
                                            .rows = memory_rows,
                                            .columns = memory_columns,
                                            .release = memory_release,
                                            .close = memory_close};
