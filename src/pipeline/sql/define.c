/* SPDX-License-Identifier: Apache-2.0 */
/* define.c - views, tables, sinks and inputs: CREATE kind name (columns) clauses [AS query]. */
#include "pipeline/sql/sql_internal.h"

typedef struct Definition {
    KnSdpScript *s;
    KnSdpForm form;
    KnSdpToken place;
    KnutDataset it;
    KnutPairs options;
    KnSdpColumns columns;
    KnSdpSettings settings;
    bool has_using, has_options;
} Definition;

/* ---- settings of flows, which a dataset's own query may have too ---- */

static KnCode trigger(KnSdpParser *p, KnutTrigger *ret)
{
    if (kn_sdp_accept(p, "CONTINUOUS")) {
        *ret = (KnutTrigger){.tag = KNUT_TRIGGER_CONTINUOUS};
    } else if (kn_sdp_accept(p, "AVAILABLE NOW")) {
        *ret = (KnutTrigger){.tag = KNUT_TRIGGER_AVAILABLE_NOW};
    } else if (kn_sdp_accept(p, "EVERY")) {
        *ret = (KnutTrigger){.tag = KNUT_TRIGGER_PROCESSING_TIME};
        return kn_sdp_interval(p, &ret->processing_time.interval_ms);
    } else {
        return kn_sdp_expected(p, "CONTINUOUS, AVAILABLE NOW or EVERY INTERVAL after TRIGGER");
    }
    return KN_OK;
}

static KnCode output_mode(KnSdpParser *p, KnutOutputMode *ret)
{
    if (kn_sdp_accept(p, "APPEND"))
        *ret = KNUT_MODE_APPEND;
    else if (kn_sdp_accept(p, "UPDATE"))
        *ret = KNUT_MODE_UPDATE;
    else if (kn_sdp_accept(p, "COMPLETE"))
        *ret = KNUT_MODE_COMPLETE;
    else
        return kn_sdp_expected(p, "APPEND, UPDATE or COMPLETE after OUTPUT MODE");
    return KN_OK;
}

KnCode kn_sdp_setting(KnSdpParser *p, KnSdpSettings *settings, bool *ret_was)
{
    KnSdpToken at = p->tok;
    *ret_was = true;
    if (kn_sdp_accept(p, "TRIGGER"))
        KN_TRY(trigger(p, &settings->trigger));
    else if (kn_sdp_accept(p, "OUTPUT MODE"))
        KN_TRY(output_mode(p, &settings->output_mode));
    else if (kn_sdp_accept(p, "DEDUPLICATE BY"))
        KN_TRY(kn_sdp_names(p, &settings->deduplicate));
    else
        *ret_was = false;
    if (*ret_was && !settings->given) {
        settings->given = true;
        settings->place = at;
    }
    return KN_OK;
}

/* ---- clauses ---- */

static KnCode using_clause(KnSdpParser *p, Definition *d)
{
    d->has_using = true;
    return kn_sdp_ident(p, &d->it.format);
}

static KnCode partitioned_clause(KnSdpParser *p, Definition *d)
{
    return kn_sdp_exprs(p, &d->it.partition_cols);
}

static KnCode cluster_clause(KnSdpParser *p, Definition *d)
{
    return kn_sdp_names(p, &d->it.cluster_by);
}

static KnCode comment_clause(KnSdpParser *p, Definition *d)
{
    return kn_sdp_literal(p, "a comment between quotes", &d->it.comment);
}

static KnCode location_clause(KnSdpParser *p, Definition *d)
{
    return kn_sdp_literal(p, "a path between quotes", &d->it.path);
}

static KnCode properties_clause(KnSdpParser *p, Definition *d)
{
    return kn_sdp_pairs(p, &d->it.properties);
}

static KnCode options_clause(KnSdpParser *p, Definition *d)
{
    d->has_options = true;
    return kn_sdp_pairs(p, &d->options);
}

static KnCode write_clause(KnSdpParser *p, Definition *d)
{
    if (kn_sdp_accept(p, "APPEND"))
        d->it.write_mode = KNUT_WRITE_APPEND;
    else if (kn_sdp_accept(p, "OVERWRITE"))
        d->it.write_mode = KNUT_WRITE_OVERWRITE;
    else
        return kn_sdp_expected(p, "APPEND or OVERWRITE after WRITE MODE");
    return KN_OK;
}

static KnCode refresh_clause(KnSdpParser *p, Definition *d)
{
    if (kn_sdp_accept(p, "INCREMENTAL"))
        d->it.materialization = KNUT_MATERIALIZATION_INCREMENTAL;
    else if (kn_sdp_accept(p, "FULL"))
        d->it.materialization = KNUT_MATERIALIZATION_FULL;
    else
        return kn_sdp_expected(p, "FULL or INCREMENTAL after REFRESH POLICY");
    return KN_OK;
}

/* The bits are the forms that have a clause. */
#define STORED                                                                                     \
    (1U << KN_SDP_MATERIALIZED_VIEW | 1U << KN_SDP_STREAMING_TABLE | 1U << KN_SDP_TABLE |          \
     1U << KN_SDP_SINK)
#define ALL (STORED | 1U << KN_SDP_VIEW | 1U << KN_SDP_INPUT)

static const struct {
    const char *words;
    KnCode (*parse)(KnSdpParser *p, Definition *d);
    unsigned forms;
} clauses[] = {
    {"USING", using_clause, ALL},
    {"PARTITIONED BY", partitioned_clause, STORED | 1U << KN_SDP_INPUT},
    {"CLUSTER BY", cluster_clause, STORED},
    {"COMMENT", comment_clause, ALL},
    {"LOCATION", location_clause, STORED | 1U << KN_SDP_INPUT},
    {"TBLPROPERTIES", properties_clause, STORED | 1U << KN_SDP_VIEW},
    {"OPTIONS", options_clause, 1U << KN_SDP_VIEW | 1U << KN_SDP_INPUT | 1U << KN_SDP_SINK},
    {"WRITE MODE", write_clause, STORED},
    {"REFRESH POLICY", refresh_clause, STORED | 1U << KN_SDP_VIEW},
};

static const char *form_name(KnSdpForm form)
{
    static const char *const names[] = {
        "MATERIALIZED VIEW", "STREAMING TABLE", "TABLE", "VIEW", "SINK", "INPUT"};
    return names[form];
}

static KnCode clause(KnSdpParser *p, Definition *d, bool *ret_was)
{
    *ret_was = true;
    for (size_t i = 0; i < sizeof(clauses) / sizeof(*clauses); i++) {
        KnSdpToken at = p->tok;
        if (!kn_sdp_accept(p, clauses[i].words))
            continue;
        if (!(clauses[i].forms & 1U << d->form))
            return kn_sdp_fail(p, &at, "a %s has no %s", form_name(d->form), clauses[i].words);
        return clauses[i].parse(p, d);
    }
    if (d->form == KN_SDP_INPUT) {
        *ret_was = false;
        return KN_OK;
    }
    return kn_sdp_setting(p, &d->settings, ret_was);
}

/* ---- what follows from them ---- */

/* TEMPORARY VIEW ... USING format OPTIONS (path '...'), and INPUT: rows from outside. */
static KnCode add_input(KnSdpParser *p, Definition *d)
{
    KnutInput input = {.name = d->it.name,
                       .path = d->it.path,
                       .format = d->it.format,
                       .partition_cols = d->it.partition_cols,
                       .schema = d->it.schema,
                       .comment = d->it.comment};
    KnutPair *options = kn_arena_alloc(p->arena, (d->options.len + 1) * sizeof(*options));
    size_t n = 0;
    for (size_t i = 0; i < d->options.len; i++) {
        const KnutPair *pair = &d->options.items[i];
        if (!input.path && kn_str_eq_nocase(kn_str(pair->key), KN_STR_LIT("path")))
            input.path = pair->value;
        else
            options[n++] = *pair;
    }
    input.options = (KnutPairs){options, n};
    if (!input.path)
        return kn_sdp_fail(p, &d->place, "the input '%.100s' has no LOCATION 'path'", input.name);
    if (d->columns.expectations.len > 0 || d->columns.keys.len > 0)
        return kn_sdp_fail(p, &d->place,
                           "the input '%.100s' has columns only: expectations and "
                           "keys are a dataset's",
                           input.name);
    (void)kn_pipeline_add_input(d->s->builder, &input);
    return KN_OK;
}

static KnutOutputType output_type(KnSdpForm form)
{
    switch (form) {
    case KN_SDP_MATERIALIZED_VIEW:
        return KNUT_OUTPUT_MATERIALIZED_VIEW;
    case KN_SDP_VIEW:
        return KNUT_OUTPUT_TEMPORARY_VIEW;
    case KN_SDP_SINK:
        return KNUT_OUTPUT_SINK;
    default:
        return KNUT_OUTPUT_TABLE;
    }
}

static void add_dataset(Definition *d)
{
    d->it.output_type = output_type(d->form);
    *kn_vec_push(&d->s->datasets) = (KnSdpDataset){.form = d->form, .it = d->it, .place = d->place};
}

/* AS query, FLOW AUTO CDC FROM ..., or nothing. */
static KnCode body(KnSdpParser *p, Definition *d)
{
    const char *flow_name = kn_arena_printf(p->arena, "f_%s", d->it.name);
    KnutExpectations expectations = kn_sdp_expectations(p->arena, &d->columns);
    bool cdc = kn_sdp_accept(p, "FLOW AUTO CDC");
    if (!cdc && !kn_sdp_accept(p, "AS")) {
        if (!kn_sdp_at_end(p))
            return kn_sdp_expected(p, "a clause of the definition, AS or ';'");
        if (d->settings.given)
            return kn_sdp_fail(p, &d->settings.place,
                               "this belongs to a flow: to AS query, or to CREATE FLOW");
        d->it.expectations = expectations;
        return KN_OK;
    }
    KnSdpFlow *flow = kn_sdp_add_flow(d->s, flow_name, d->it.name, &d->place);
    flow->settings = d->settings;
    flow->it.expectations = expectations;
    return cdc ? kn_sdp_cdc(d->s, flow, false) : kn_sdp_query(p, false, &flow->query);
}

static KnCode parse(KnSdpParser *p, Definition *d)
{
    bool was = true;
    /* Every run finds what there is: the words change nothing. */
    (void)kn_sdp_accept(p, "IF NOT EXISTS");
    d->place = p->tok;
    KN_TRY(kn_sdp_name(p, &d->it.name));
    if (kn_sdp_at(p, "("))
        KN_TRY(kn_sdp_columns(p, true, &d->columns));
    while (was)
        KN_TRY(clause(p, d, &was));
    d->it.schema = kn_sdp_schema(p->arena, &d->columns);
    d->it.keys = d->columns.keys;
    if (d->form == KN_SDP_VIEW && d->has_using)
        return add_input(p, d);
    if (d->form == KN_SDP_INPUT)
        return add_input(p, d);
    if (d->form == KN_SDP_VIEW && d->has_options)
        return kn_sdp_fail(p, &d->place, "a view has OPTIONS only with USING");
    if (d->form == KN_SDP_SINK && d->has_options)
        d->it.properties = d->options;
    KN_TRY(body(p, d));
    add_dataset(d);
    return KN_OK;
}

KnCode kn_sdp_define(KnSdpScript *s, KnSdpForm form)
{
    Definition d = {.s = s, .form = form};
    size_t flows = s->flows.len;
    KnCode rc = parse(&s->p, &d);
    kn_sdp_columns_done(&d.columns);
    if (rc != KN_OK && s->flows.len > flows)
        kn_sdp_query_done(&s->flows.items[--s->flows.len].query);
    return rc;
}
