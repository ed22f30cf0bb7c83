/* SPDX-License-Identifier: Apache-2.0 */
/*
 * resolve.c - what each flow is, once all definitions are known.
 *
 * A flow is streaming when its query reads a STREAM, or when it feeds a STREAMING TABLE (or a name
 * that the script does not define) and reads anything: its first name then is the stream.
 */
#include "pipeline/sql/sql_internal.h"

static const KnSdpDataset *target_of(const KnSdpScript *s, const KnSdpFlow *flow)
{
    kn_vec_foreach (&s->datasets, dataset)
        if (strcmp(dataset->it.name, flow->it.target) == 0)
            return dataset;
    return NULL;
}

static KnCode further_streams(KnSdpScript *s, const KnSdpQuery *query, KnutStreams *ret)
{
    if (query->streams.len < 2)
        return KN_OK;
    KnutStream *items = kn_arena_zalloc(s->p.arena, query->streams.len * sizeof(*items));
    for (size_t i = 1; i < query->streams.len; i++) {
        const KnSdpStream *stream = &query->streams.items[i];
        if (stream->source.tag != KNUT_SOURCE_CDC)
            return kn_sdp_fail(&s->p, &stream->place,
                               "only the first stream of a flow can be files, a topic or a table: "
                               "read '%.100s' in a flow of its own",
                               stream->name);
        items[i - 1] = (KnutStream){stream->name, stream->watermark};
    }
    *ret = (KnutStreams){items, query->streams.len - 1};
    return KN_OK;
}

/* The window's column is the watermark's: the run has one event time. */
static KnCode check_window(KnSdpScript *s, const KnSdpQuery *query, const KnutWatermark *mark)
{
    KnStr column = kn_sdp_text(&s->p.lex, &query->window_column);
    if (!mark)
        return kn_sdp_fail(
            &s->p, &query->window_place,
            "a window needs the event time of its stream: STREAM(...) WATERMARK " KN_STR_FMT
            " DELAY OF INTERVAL 0 SECONDS",
            KN_STR_ARG(column));
    KN_BUF_AUTO name = {.max = column.len + 1};
    if (query->window_column.kind == KN_SDP_QUOTED)
        kn_sdp_unquote_name(&name, column);
    else
        kn_buf_str(&name, column);
    if (!kn_str_eq_nocase((KnStr){name.data, name.len}, kn_str(mark->event_time_column)))
        return kn_sdp_fail(&s->p, &query->window_column,
                           "the window is over '%.100s', the WATERMARK on '%.100s'", name.data,
                           mark->event_time_column);
    return KN_OK;
}

static KnCode streaming(KnSdpScript *s, KnSdpFlow *flow)
{
    const KnSdpQuery *query = &flow->query;
    KnutStreaming *it = &flow->it.kind.streaming;
    flow->it.kind.tag = KNUT_FLOW_STREAMING;
    if (query->streams.len > 0) {
        it->source = query->streams.items[0].source;
        it->watermark = query->streams.items[0].watermark;
    } else {
        it->source = (KnutSource){.tag = KNUT_SOURCE_CDC, .cdc = {query->reads.items[0]}};
    }
    KN_TRY(further_streams(s, query, &it->streams));
    if (query->window)
        KN_TRY(check_window(s, query, it->watermark));
    it->window = query->window;
    it->trigger = flow->settings.trigger;
    it->output_mode = flow->settings.output_mode;
    it->deduplicate = flow->settings.deduplicate;
    return KN_OK;
}

static KnCode resolve(KnSdpScript *s, KnSdpFlow *flow)
{
    const KnSdpQuery *query = &flow->query;
    if (query->text) {
        flow->it.query = query->text;
        flow->it.reads = query->reads;
    }
    if (flow->it.kind.tag == KNUT_FLOW_CDC)
        return KN_OK;
    const KnSdpDataset *target = target_of(s, flow);
    bool table = !target || target->form == KN_SDP_STREAMING_TABLE;
    if (query->streams.len > 0 || (table && !flow->it.once && query->reads.len > 0))
        return streaming(s, flow);
    if (flow->settings.given)
        return kn_sdp_fail(&s->p, &flow->settings.place,
                           "only a streaming flow has a trigger, an output mode or deduplication, "
                           "and '%.100s' reads no STREAM",
                           flow->it.name);
    if (query->window)
        return kn_sdp_fail(&s->p, &query->window_place,
                           "only a streaming flow has a window, and '%.100s' reads no STREAM",
                           flow->it.name);
    return KN_OK;
}

/* A view is its query. */
static KnCode check_view(KnSdpScript *s, const KnSdpDataset *dataset)
{
    if (dataset->form != KN_SDP_VIEW)
        return KN_OK;
    kn_vec_foreach (&s->flows, flow)
        if (strcmp(flow->it.target, dataset->it.name) == 0)
            return KN_OK;
    return kn_sdp_fail(&s->p, &dataset->place,
                       "the view '%.100s' has no query: expected AS SELECT ..., or a flow into it",
                       dataset->it.name);
}

KnCode kn_sdp_resolve_flow(KnSdpScript *s, size_t i)
{
    return resolve(s, &s->flows.items[i]);
}

KnCode kn_sdp_resolve_dataset(KnSdpScript *s, size_t i)
{
    return check_view(s, &s->datasets.items[i]);
}
