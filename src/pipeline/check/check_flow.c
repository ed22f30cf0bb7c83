/* SPDX-License-Identifier: Apache-2.0 */
/* check_flow.c - one flow: what it reads and writes, and its columns where schemas are declared. */
#include "pipeline/check/checker.h"
#include "pipeline/ir/arrow_type.h"

static void check_reads(const KnChecker *c, const KnGraphReads *reads)
{
    for (size_t i = 0; i < reads->len; i++) {
        const KnGraphRead *read = &reads->items[i];
        if (!read->name[0]) {
            kn_breach(c, "empty-name", "one of its reads is empty");
        } else if (read->other_case) {
            const char *name = read->dataset != KN_GRAPH_NONE
                                   ? c->pipeline->datasets.items[read->dataset].name
                                   : c->pipeline->inputs.items[read->input].name;
            kn_breach(c, "read-differs-in-case", "it reads `%.100s`, which is taken for `%.100s`",
                      read->name, name);
        } else if (read->dataset == KN_GRAPH_NONE && read->input == KN_GRAPH_NONE) {
            KN_BUF_AUTO near = {.max = 400};
            kn_hint_name(c, &near, read->name);
            if (near.len > 0)
                kn_breach(c, "read-not-known",
                          "it reads `%.100s`, which is no dataset and no input%s", read->name,
                          near.data);
        } else if (read->dataset != KN_GRAPH_NONE &&
                   c->pipeline->datasets.items[read->dataset].output_type == KNUT_OUTPUT_SINK) {
            kn_breach(c, "reads-sink", "it reads the sink `%.100s`", read->name);
        }
    }
}

static void check_target(const KnChecker *c, const KnutFlow *flow, size_t target)
{
    if (target == KN_GRAPH_NONE) {
        KN_BUF_AUTO near = {.max = 400};
        kn_hint_name(c, &near, flow->target);
        kn_breach(c, "unknown-target", "it writes to `%.100s`, which is no dataset%s", flow->target,
                  near.len ? near.data : "");
        return;
    }
    if (c->pipeline->datasets.items[target].output_type == KNUT_OUTPUT_MATERIALIZED_VIEW &&
        kn_flow_is_unbounded(flow))
        kn_breach(c, "view-of-stream",
                  "a %s flow writes the materialized view `%.100s`; a table is meant for that",
                  kn_flow_kind_name(flow), flow->target);
}

/* What a flow without query reads; NULL where that is not one thing. */
static const KnGraphRead *only_read(const KnChecker *c, size_t place)
{
    const KnGraphReads *reads = &c->graph->reads[place];
    return reads->len == 1 ? &reads->items[0] : NULL;
}

static bool same_type(const char *a, const char *b)
{
    KN_BUF_AUTO x = {.max = 1 << 20}, y = {.max = 1 << 20};
    if (kn_arrow_type_sql(kn_str(a), &x, NULL) != KN_OK ||
        kn_arrow_type_sql(kn_str(b), &y, NULL) != KN_OK)
        return true; /* said elsewhere */
    return kn_str_eq((KnStr){x.data, x.len}, (KnStr){y.data, y.len});
}

/* A column that the flow gives, against what its target declares. */
static void check_given(const KnChecker *c, const KnutSchemaField *given, const KnutSchema *target)
{
    const KnutSchemaField *field = kn_schema_find(target, kn_str(given->name));
    if (!field)
        kn_breach(c, "unknown-column", "it gives the column `%.100s`, which its target lacks",
                  given->name);
    else if (!same_type(given->arrow_type, field->arrow_type))
        kn_breach(c, "type-mismatch", "column `%.100s` is %.80s, its target declares %.80s",
                  given->name, given->arrow_type, field->arrow_type);
    else if (given->nullable && !field->nullable)
        kn_breach(c, "type-mismatch", "column `%.100s` may be NULL, its target declares it not to",
                  given->name);
}

static bool is_projected(const KnutFlow *flow, const char *column)
{
    for (size_t i = 0; i < flow->projection.len; i++)
        if (kn_str_eq_nocase(kn_str(flow->projection.items[i]), kn_str(column)))
            return true;
    return flow->projection.len == 0;
}

/* Columns of a flow without query: those of the one read, or some of them. */
static void check_columns(const KnChecker *c, const KnutFlow *flow, const KnutSchema *source,
                          const KnutSchema *target)
{
    for (size_t i = 0; i < flow->projection.len; i++)
        kn_check_column(c, source, flow->projection.items[i], "the projected column");
    if (target->len == 0 || flow->kind.tag == KNUT_FLOW_CDC)
        return;
    for (size_t i = 0; i < source->len; i++)
        if (is_projected(flow, source->items[i].name))
            check_given(c, &source->items[i], target);
    for (size_t i = 0; i < target->len; i++)
        if (!target->items[i].nullable && (!kn_schema_find(source, kn_str(target->items[i].name)) ||
                                           !is_projected(flow, target->items[i].name)))
            kn_breach(c, "missing-column",
                      "its target's column `%.100s` is not nullable, and the flow does not give it",
                      target->items[i].name);
}

static void check_query(const KnChecker *c, const KnutFlow *flow, size_t place)
{
    if (flow->query) {
        kn_check_given(c, flow->query, "the query");
        return;
    }
    const KnGraphRead *read = only_read(c, place);
    bool from_source = flow->kind.tag == KNUT_FLOW_STREAMING;
    if (!read) {
        size_t n = c->graph->reads[place].len;
        bool typed = flow->projection.len > 0 || flow->filter || flow->kind.tag == KNUT_FLOW_CDC;
        if (n > 0 || !from_source)
            kn_breach(c, typed ? "reads-one" : "no-query",
                      "it has no query, and reads %zu things instead of one", n);
        return;
    }
    const KnutSchema *source = kn_read_schema(c, read);
    size_t target = c->graph->targets[place];
    static const KnutSchema none = {0};
    if (source)
        check_columns(c, flow, source,
                      target == KN_GRAPH_NONE ? &none
                                              : &c->pipeline->datasets.items[target].schema);
}

void kn_check_flow(const KnChecker *c, const KnutFlow *flow, size_t place)
{
    check_target(c, flow, c->graph->targets[place]);
    check_reads(c, &c->graph->reads[place]);
    check_query(c, flow, place);
    kn_check_names(c, &flow->projection, "the projection");
    if (flow->filter)
        kn_check_given(c, flow->filter, "the filter");
    kn_check_expectations(c, &flow->expectations);
    if (flow->kind.tag == KNUT_FLOW_STREAMING)
        kn_check_streaming(c, flow, place);
    else if (flow->kind.tag == KNUT_FLOW_CDC)
        kn_check_cdc(c, flow, place);
}
