/* SPDX-License-Identifier: Apache-2.0 */
/* sink.c - which kind of target a stream has. */
#include "pipeline/native/stream/sink.h"

static const KnStreamSinkOps *ops_of(const KnNativeNode *node)
{
    if (!node->path)
        return &kn_stream_nowhere;
    return node->format == KN_NATIVE_ICEBERG ? &kn_stream_table : &kn_stream_folder;
}

KnCode kn_stream_sink_open(KnNativeRun *run, KnNativeNode *node, const KnutFlow *flow,
                           KnStreamSink **ret, KnErr *err)
{
    KnStreamSink *sink = kn_arena_zalloc(run->arena, sizeof(*sink));
    *sink = (KnStreamSink){.ops = ops_of(node), .run = run, .node = node, .flow = flow};
    KnCode rc = sink->ops->open(sink, err);
    if (rc != KN_OK) {
        sink->ops->close(sink);
        return rc;
    }
    *ret = sink;
    return KN_OK;
}

KnStreamSink *kn_stream_sink_close(KnStreamSink *sink)
{
    if (sink)
        sink->ops->close(sink);
    return NULL;
}
