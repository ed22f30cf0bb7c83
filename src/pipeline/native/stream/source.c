/* SPDX-License-Identifier: Apache-2.0 */
/* source.c - which kind of source a flow reads, and where that is. */
#include "pipeline/native/stream/source.h"

#include <string.h>

#include "pipeline/sql/sql_internal.h"

static bool is_supplied(const KnRunOptions *opts, const char *name)
{
    for (size_t i = 0; opts && i < opts->n_streams; i++)
        if (!strcmp(opts->streams[i].name, name))
            return true;
    return false;
}

static const KnStreamSourceOps *of_files(KnStreamSource *src, const char *place, const char *format)
{
    src->place = place;
    src->format = kn_native_format(format, place);
    if (src->format == KN_NATIVE_ICEBERG)
        return &kn_stream_snapshots;
    return src->format <= KN_NATIVE_JSON && !kn_native_is_file(place) ? &kn_stream_drop : NULL;
}

static const KnutInput *input_named(const KnPipeline *pipeline, const char *name)
{
    for (size_t i = 0; i < pipeline->inputs.len; i++)
        if (!strcmp(pipeline->inputs.items[i].name, name))
            return &pipeline->inputs.items[i];
    return NULL;
}

/* An input or a dataset that is read as it grows. */
static const KnStreamSourceOps *of_name(const KnPipeline *pipeline, const char *name,
                                        KnStreamSource *src)
{
    const KnutInput *input = input_named(pipeline, name);
    if (input && input->path) {
        src->how.partition_cols = &input->partition_cols;
        return of_files(src, input->path, input->format);
    }
    for (size_t i = 0; i < pipeline->datasets.len; i++) {
        const KnutDataset *dataset = &pipeline->datasets.items[i];
        if (strcmp(dataset->name, name) != 0 || !dataset->path)
            continue;
        src->how.partition_cols = &dataset->partition_cols;
        return of_files(src, dataset->path, dataset->format);
    }
    return NULL;
}

const KnStreamSourceOps *kn_stream_source_find(KnArena *arena, const KnPipeline *pipeline,
                                               const KnRunOptions *opts, const KnutSource *source,
                                               KnStreamSource *ret)
{
    *ret = (KnStreamSource){.spec = source, .name = kn_sdp_source_name(arena, source)};
    const KnutInput *input = input_named(pipeline, ret->name);
    if (input)
        ret->how = (KnNativeReading){.schema = &input->schema, .options = &input->options};
    if (is_supplied(opts, ret->name))
        return &kn_stream_memory;
    switch (source->tag) {
    case KNUT_SOURCE_CDC:
        return of_name(pipeline, source->cdc.source, ret);
    case KNUT_SOURCE_FILE_DROP:
        ret->place = source->file_drop.dir;
        ret->format = kn_native_format(source->file_drop.format, NULL);
        return ret->format <= KN_NATIVE_JSON ? &kn_stream_drop : NULL;
    case KNUT_SOURCE_ICEBERG:
        ret->place = source->iceberg.table;
        return &kn_stream_snapshots;
    case KNUT_SOURCE_BATCH:
        ret->place = source->batch.uri;
        ret->format = kn_native_format(source->batch.format, source->batch.uri);
        return ret->format <= KN_NATIVE_JSON ? &kn_stream_batch : NULL;
    case KNUT_SOURCE_KAFKA:
        return NULL;
    }
    return NULL;
}

KnCode kn_stream_source_open(KnNativeRun *run, const KnutFlow *flow, KnStreamSource **ret,
                             KnErr *err)
{
    KnStreamSource *src = kn_arena_zalloc(run->arena, sizeof(*src));
    const KnStreamSourceOps *ops = kn_stream_source_find(run->arena, run->pipeline, run->opts,
                                                         &flow->kind.streaming.source, src);
    if (!ops)
        return kn_err_set(err, KN_E_UNSUPPORTED, "flow %s: its source is not read", flow->name);
    src->ops = ops;
    src->run = run;
    src->flow = flow;
    KnCode rc = ops->open(src, err);
    if (rc != KN_OK) {
        ops->close(src);
        return rc;
    }
    *ret = src;
    return KN_OK;
}

KnStreamSource *kn_stream_source_close(KnStreamSource *src)
{
    if (src)
        src->ops->close(src);
    return NULL;
}
