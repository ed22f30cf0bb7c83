/* SPDX-License-Identifier: Apache-2.0 */
/* lower.c - what SQL cannot say: named, and taken off. */
#include "pipeline/sql/write_internal.h"

static void flow_note(KnSdpWriter *w, const KnutFlow *flow, const char *what, const char *why)
{
    kn_notes_add(w->notes, 0, 0, "flow '%.100s': %s: %.250s", flow->name, what, why);
}

static void dataset_note(KnSdpWriter *w, const KnutDataset *dataset, const char *what,
                         const char *why)
{
    kn_notes_add(w->notes, 0, 0, "dataset '%.100s': %s: %.250s", dataset->name, what, why);
}

/* ---- datasets ---- */

KnSdpForm kn_sdp_form_of(const KnPipeline *p, const KnutDataset *dataset)
{
    switch (dataset->output_type) {
    case KNUT_OUTPUT_MATERIALIZED_VIEW:
        return KN_SDP_MATERIALIZED_VIEW;
    case KNUT_OUTPUT_TEMPORARY_VIEW:
        return KN_SDP_VIEW;
    case KNUT_OUTPUT_SINK:
        return KN_SDP_SINK;
    case KNUT_OUTPUT_TABLE:
        break;
    }
    /* Into a STREAMING TABLE every flow streams. */
    for (size_t i = 0; i < p->flows.len; i++) {
        const KnutFlow *flow = &p->flows.items[i];
        if (strcmp(flow->target, dataset->name) == 0 && !kn_flow_is_unbounded(flow) &&
            flow->reads.len > 0 && !flow->once)
            return KN_SDP_TABLE;
    }
    return KN_SDP_STREAMING_TABLE;
}

static bool has_flow(const KnPipeline *p, const char *target)
{
    for (size_t i = 0; i < p->flows.len; i++)
        if (strcmp(p->flows.items[i].target, target) == 0)
            return true;
    return false;
}

static void lower_schema(KnSdpWriter *w, const KnutDataset *dataset, const char *name,
                         KnutSchema *schema)
{
    size_t n = 0;
    KnutSchemaField *fields = kn_arena_alloc(w->arena, (schema->len + 1) * sizeof(*fields));
    for (size_t i = 0; i < schema->len; i++) {
        KN_BUF_AUTO type = {.max = (size_t)1 << 20};
        const KnutSchemaField *field = &schema->items[i];
        if (kn_sdp_print_type(&type, kn_str(field->arrow_type), 0))
            fields[n++] = *field;
        else
            kn_notes_add(w->notes, 0, 0,
                         "%s '%.100s': column '%.100s': SQL has no type for '%.100s'",
                         dataset ? "dataset" : "input", name, field->name, field->arrow_type);
    }
    *schema = n > 0 ? (KnutSchema){fields, n} : (KnutSchema){0};
}

/* A temporary view is nowhere stored. */
static void lower_view(KnSdpWriter *w, KnutDataset *d)
{
    static const char why[] = "a view is not stored";
    if (d->format)
        dataset_note(w, d, "format", why);
    if (d->path)
        dataset_note(w, d, "path", why);
    if (d->partition_cols.len > 0)
        dataset_note(w, d, "partition_cols", why);
    if (d->cluster_by.len > 0)
        dataset_note(w, d, "cluster_by", why);
    if (d->write_mode != KNUT_WRITE_APPEND)
        dataset_note(w, d, "write_mode", why);
    d->format = d->path = NULL;
    d->partition_cols = d->cluster_by = (KnutNames){0};
    d->write_mode = KNUT_WRITE_APPEND;
}

static bool lower_dataset(KnSdpWriter *w, KnutDataset *d)
{
    if (d->output_type == KNUT_OUTPUT_TEMPORARY_VIEW) {
        lower_view(w, d);
        if (!has_flow(w->p, d->name)) {
            dataset_note(w, d, "left out", "SQL has no view without a query");
            return false;
        }
    }
    if (d->source_location.file_name || d->source_location.has_line_number)
        dataset_note(w, d, "source_location", "a script is a place of its own");
    d->source_location = (KnutSourceLocation){0};
    lower_schema(w, d, d->name, &d->schema);
    return true;
}

/* ---- flows ---- */

static void set_query(KnSdpWriter *w, KnutFlow *flow, const KnBuf *query)
{
    flow->query = kn_arena_strndup(w->arena, query->data, query->len);
}

/* projection and filter, which are no text in the IR, become part of the query. */
static void lower_typed(KnSdpWriter *w, KnutFlow *flow)
{
    if (flow->projection.len == 0 && !flow->filter)
        return;
    if (!flow->query && flow->reads.len != 1)
        return;
    KN_BUF_AUTO query = {.max = (size_t)16 << 20};
    kn_buf_text(&query, "SELECT ");
    for (size_t i = 0; i < flow->projection.len; i++) {
        kn_buf_text(&query, i > 0 ? ", " : "");
        kn_sdp_print_name(&query, flow->projection.items[i], '"');
    }
    kn_buf_text(&query, flow->projection.len == 0 ? "* FROM " : " FROM ");
    if (flow->query)
        kn_buf_printf(&query, "(%s) AS q", flow->query);
    else
        kn_sdp_print_name(&query, flow->reads.items[0], '"');
    if (flow->filter)
        kn_buf_printf(&query, " WHERE %s", flow->filter);
    if (query.failed)
        return;
    set_query(w, flow, &query);
    if (flow->projection.len > 0)
        flow_note(w, flow, "projection", "it becomes part of the query");
    if (flow->filter)
        flow_note(w, flow, "filter", "it becomes part of the query");
    flow->projection = (KnutNames){0};
    flow->filter = NULL;
}

/* A flow without a query is given the plain one where it is plain which. */
static bool lower_missing_query(KnSdpWriter *w, KnutFlow *flow)
{
    const char *from = NULL;
    if (flow->query)
        return true;
    if (flow->kind.tag == KNUT_FLOW_CDC && flow->reads.len == 1)
        from = flow->reads.items[0];
    else if (flow->kind.tag == KNUT_FLOW_STREAMING)
        from = kn_sdp_source_name(w->arena, &flow->kind.streaming.source);
    if (!from || !*from) {
        flow_note(w, flow, "left out", "SQL has no flow without a query");
        return false;
    }
    KN_BUF_AUTO query = {.max = (size_t)1 << 20};
    kn_buf_text(&query, "SELECT * FROM ");
    kn_sdp_print_name(&query, from, '"');
    set_query(w, flow, &query);
    flow_note(w, flow, "query", "SQL needs one: all that is read");
    return true;
}

/* The query without blanks, comments and `;` around it. */
static void trim_query(KnSdpWriter *w, KnutFlow *flow)
{
    KnSdpLex lex = kn_sdp_lex(kn_str(flow->query));
    size_t at = SIZE_MAX, end = 0;
    lex.query = true;
    for (KnSdpToken token = kn_sdp_next(&lex); token.kind != KN_SDP_END;
         token = kn_sdp_next(&lex)) {
        if (at == SIZE_MAX)
            at = token.at;
        if (lex.text.ptr[token.at] != ';')
            end = token.end;
    }
    if (at != SIZE_MAX && end > at)
        flow->query = kn_arena_strndup(w->arena, flow->query + at, end - at);
}

static bool same_names(KnutNames a, KnutNames b)
{
    if (a.len != b.len)
        return false;
    for (size_t i = 0; i < a.len; i++)
        if (strcmp(a.items[i], b.items[i]) != 0)
            return false;
    return true;
}

/* What the query reads, as the reader will see it; false: the engine does not parse it. */
static bool lower_reads(KnSdpWriter *w, KnutFlow *flow)
{
    KnSdpParser p = {.arena = w->arena,
                     .origin = "query",
                     .session = w->session,
                     .notes = w->notes,
                     .lex = kn_sdp_lex(kn_str(flow->query))};
    KnSdpQuery query = {0};
    KnErr err = {0};
    p.err = &err;
    p.lex.query = true;
    kn_sdp_take(&p);
    const KnutSource *source = &flow->kind.streaming.source;
    if (flow->kind.tag == KNUT_FLOW_STREAMING && source->tag != KNUT_SOURCE_CDC)
        *kn_vec_push(&query.streams) =
            (KnSdpStream){.source = *source, .name = kn_sdp_source_name(w->arena, source)};
    bool known = kn_sdp_query(&p, false, &query) == KN_OK;
    if (!known) {
        flow_note(w, flow, "query", err.msg);
    } else if (!same_names(query.reads, flow->reads)) {
        flow_note(w, flow, "reads", "SQL takes them from the query, by name");
        flow->reads = query.reads;
    }
    kn_sdp_query_done(&query);
    return known;
}

static void lower_streaming(KnSdpWriter *w, KnutFlow *flow)
{
    KnutStreaming *it = &flow->kind.streaming;
    if (it->window && !it->watermark) {
        flow_note(w, flow, "window", "SQL has none without a watermark");
        it->window = NULL;
    }
}

static bool lower_flow(KnSdpWriter *w, KnutFlow *flow)
{
    if (flow->source_location.file_name || flow->source_location.has_line_number)
        flow_note(w, flow, "source_location", "a script is a place of its own");
    flow->source_location = (KnutSourceLocation){0};
    lower_typed(w, flow);
    if (!lower_missing_query(w, flow))
        return false;
    trim_query(w, flow);
    if (flow->kind.tag == KNUT_FLOW_STREAMING)
        lower_streaming(w, flow);
    (void)lower_reads(w, flow);
    return true;
}

void kn_sdp_lower(KnSdpWriter *w)
{
    KnutFlow *flows = (KnutFlow *)w->p->flows.items;
    KnutDataset *datasets = (KnutDataset *)w->p->datasets.items;
    KnutInput *inputs = (KnutInput *)w->p->inputs.items;
    size_t n = 0;
    for (size_t i = 0; i < w->p->flows.len; i++)
        if (lower_flow(w, &flows[i]))
            flows[n++] = flows[i];
    w->p->flows.len = n;
    n = 0;
    for (size_t i = 0; i < w->p->datasets.len; i++)
        if (lower_dataset(w, &datasets[i]))
            datasets[n++] = datasets[i];
    w->p->datasets.len = n;
    for (size_t i = 0; i < w->p->inputs.len; i++)
        lower_schema(w, NULL, inputs[i].name, &inputs[i].schema);
}
