/* SPDX-License-Identifier: Apache-2.0 */
/*
 * check.c - see check.h. What depends on the columns or on the query's tree is said when the query
 * is bound (bind.c), before a row is read.
 */
#include "pipeline/native/stream/check.h"

#include <inttypes.h>
#include <string.h>

#include "pipeline/native/stream/source.h"

#define REFUSE(c, ...) kn_notes_add((c)->notes, 0, 0, __VA_ARGS__)
enum { MAX_HOPS = 10000 };

static void check_source(const KnStreamCheck *c, const KnutFlow *flow)
{
    static const char *const kinds[] = {"batch", "kafka", "cdc", "file_drop", "iceberg"};
    KnStreamSource found = {0};
    const KnutSource *source = &flow->kind.streaming.source;
    const KnStreamSourceOps *ops =
        kn_stream_source_find(c->arena, c->pipeline, c->opts, source, &found);
    if (!ops)
        REFUSE(c, "flow %s: its source, %s `%s`, is not one that is read: nothing supplies it",
               flow->name, kinds[source->tag], found.name);
    else if (found.place && kn_native_place(found.format, found.place) == KN_NATIVE_OBJECTS)
        REFUSE(c, "flow %s: %s: files of a stream are read from local folders", flow->name,
               found.place);
    else if (ops == &kn_stream_snapshots && c->opts && !c->opts->tables)
        REFUSE(c, "flow %s: table %s: in which catalog? give --warehouse or another", flow->name,
               found.place);
}

static void check_window(const KnStreamCheck *c, const KnutFlow *flow)
{
    const KnutStreaming *s = &flow->kind.streaming;
    const KnutWindow *window = s->window;
    const char *name = flow->name;
    if (!window)
        return;
    uint64_t size = window->tag == KNUT_WINDOW_TUMBLING  ? window->tumbling.size_ms
                    : window->tag == KNUT_WINDOW_HOPPING ? window->hopping.size_ms
                                                         : window->session.gap_ms;
    uint64_t slide = window->tag == KNUT_WINDOW_HOPPING ? window->hopping.slide_ms : size;
    if (!size || !slide || size > INT64_MAX / 4 || slide > INT64_MAX / 4)
        REFUSE(c, "flow %s: a window's size, slide and gap are from 1 ms on", name);
    else if (slide > size)
        REFUSE(c,
               "flow %s: windows of %" PRIu64 " ms that begin every %" PRIu64
               " ms would leave rows out",
               name, size, slide);
    else if (size / slide > MAX_HOPS)
        REFUSE(c, "flow %s: each row would lie in %" PRIu64 " windows", name, size / slide);
    if (!s->watermark)
        REFUSE(c, "flow %s: its windows are of which column? give it a watermark", name);
    if (window->tag == KNUT_WINDOW_SESSION && s->output_mode == KNUT_MODE_UPDATE)
        REFUSE(c,
               "flow %s: sessions grow together, and a row that was given cannot be taken "
               "back: their output mode is append or complete",
               name);
}

static void check_modes(const KnStreamCheck *c, const KnutFlow *flow, const KnutDataset *dataset)
{
    const KnutStreaming *s = &flow->kind.streaming;
    bool table =
        dataset->path && kn_native_format(dataset->format, dataset->path) == KN_NATIVE_ICEBERG;
    if (s->streams.len)
        REFUSE(c, "flow %s: streams are not joined with streams", flow->name);
    if (s->watermark && s->watermark->allowed_lateness_ms > INT64_MAX / 4)
        REFUSE(c, "flow %s: its allowed lateness is longer than time", flow->name);
    if (s->deduplicate.len && s->output_mode == KNUT_MODE_COMPLETE)
        REFUSE(c, "flow %s: rows are deduplicated in output modes append and update", flow->name);
    if (dataset->keys.len && s->output_mode == KNUT_MODE_UPDATE && !table)
        REFUSE(c, "dataset %s: keys: rows are updated in Iceberg tables only", dataset->name);
    if (flow->once)
        REFUSE(c, "flow %s: a stream is no backfill (once): it has the trigger available_now",
               flow->name);
}

static void check_target(const KnStreamCheck *c, const KnutFlow *flow, const KnutDataset *dataset)
{
    bool complete = flow->kind.streaming.output_mode == KNUT_MODE_COMPLETE;
    const char *name = flow->name;
    if (dataset->output_type == KNUT_OUTPUT_TEMPORARY_VIEW && dataset->path)
        REFUSE(c, "flow %s: dataset %s is a view and is written nowhere", name, dataset->name);
    if (dataset->output_type == KNUT_OUTPUT_MATERIALIZED_VIEW && !complete)
        REFUSE(c,
               "flow %s: dataset %s is a materialized view, of which a stream gives all (output "
               "mode complete) or nothing",
               name, dataset->name);
    if (dataset->write_mode != KNUT_WRITE_APPEND && !complete)
        REFUSE(c, "flow %s: dataset %s is overwritten, which output mode complete does", name,
               dataset->name);
    if (!dataset->path || kn_native_format(dataset->format, dataset->path) == KN_NATIVE_ICEBERG)
        return;
    if (kn_native_is_file(dataset->path) ||
        kn_native_place(KN_NATIVE_PARQUET, dataset->path) != KN_NATIVE_LOCAL)
        REFUSE(c, "flow %s: a stream is written into a local folder or a table, not to %s", name,
               dataset->path);
}

static void check_writers(const KnStreamCheck *c, const KnutFlow *flow, size_t target)
{
    const KnIndexes *writers = &c->graph->writers[target];
    bool complete = flow->kind.streaming.output_mode == KNUT_MODE_COMPLETE;
    for (size_t i = 0; i < writers->len; i++) {
        const KnutFlow *other = &c->pipeline->flows.items[writers->items[i]];
        if (other == flow)
            continue;
        if (other->kind.tag != KNUT_FLOW_STREAMING)
            REFUSE(c, "flow %s: dataset %s is written by flow %s too, which is no stream",
                   flow->name, flow->target, other->name);
        else if (complete)
            REFUSE(c, "flow %s: it gives all of dataset %s, and flow %s writes into it too",
                   flow->name, flow->target, other->name);
    }
}

void kn_stream_check(const KnStreamCheck *c, size_t flow_at)
{
    const KnutFlow *flow = &c->pipeline->flows.items[flow_at];
    size_t target = c->graph->targets[flow_at];
    check_source(c, flow);
    check_window(c, flow);
    if (target == KN_GRAPH_NONE)
        return;
    const KnutDataset *dataset = &c->pipeline->datasets.items[target];
    check_modes(c, flow, dataset);
    check_target(c, flow, dataset);
    check_writers(c, flow, target);
}
