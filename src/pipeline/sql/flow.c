/* SPDX-License-Identifier: Apache-2.0 */
/* flow.c - CREATE FLOW name ... AS INSERT INTO | AUTO CDC INTO | APPLY CHANGES INTO. */
#include "pipeline/sql/sql_internal.h"

KnSdpFlow *kn_sdp_add_flow(KnSdpScript *s, const char *name, const char *target,
                           const KnSdpToken *place)
{
    KnSdpFlow *flow = kn_vec_push(&s->flows);
    flow->it.name = name;
    flow->it.target = target;
    flow->place = *place;
    return flow;
}

/* ---- change data ---- */

/* Where a clause of AUTO CDC begins: what is before is an expression. */
static bool at_cdc_clause(const KnSdpParser *p)
{
    static const char *const starts[] = {"KEYS (",    "IGNORE NULL", "APPLY AS",  "SEQUENCE BY",
                                         "COLUMNS (", "COLUMNS *",   "STORED AS", "TRACK HISTORY"};
    if (p->tok.kind != KN_SDP_WORD)
        return false;
    for (size_t i = 0; i < sizeof(starts) / sizeof(*starts); i++)
        if (kn_sdp_at(p, starts[i]))
            return true;
    return kn_sdp_at_end(p);
}

/* (a, b) or * EXCEPT (a, b). */
static KnCode column_list(KnSdpParser *p, KnutNames *columns, KnutNames *except)
{
    if (!kn_sdp_accept(p, "*"))
        return kn_sdp_names(p, columns);
    KN_TRY(kn_sdp_expect(p, "EXCEPT"));
    return kn_sdp_names(p, except);
}

static KnCode stored_as(KnSdpParser *p, KnutScdType *ret)
{
    KN_TRY(kn_sdp_expect(p, "SCD TYPE"));
    if (kn_sdp_accept(p, "1"))
        *ret = KNUT_SCD_TYPE1;
    else if (kn_sdp_accept(p, "2"))
        *ret = KNUT_SCD_TYPE2;
    else
        return kn_sdp_expected(p, "1 or 2 after SCD TYPE");
    return KN_OK;
}

static KnCode cdc_clause(KnSdpParser *p, KnutCdc *cdc)
{
    if (kn_sdp_accept(p, "KEYS"))
        return kn_sdp_names(p, &cdc->keys);
    if (kn_sdp_accept(p, "IGNORE NULL UPDATES")) {
        cdc->ignore_null_updates = true;
        return KN_OK;
    }
    if (kn_sdp_accept(p, "APPLY AS DELETE WHEN"))
        return kn_sdp_expr(p, at_cdc_clause, "a condition", &cdc->apply_as_deletes);
    if (kn_sdp_accept(p, "APPLY AS TRUNCATE WHEN"))
        return kn_sdp_expr(p, at_cdc_clause, "a condition", &cdc->apply_as_truncates);
    if (kn_sdp_accept(p, "SEQUENCE BY"))
        return kn_sdp_expr(p, at_cdc_clause, "a column", &cdc->sequence_by);
    if (kn_sdp_accept(p, "COLUMNS"))
        return column_list(p, &cdc->columns, &cdc->except_columns);
    if (kn_sdp_accept(p, "STORED AS"))
        return stored_as(p, &cdc->scd_type);
    if (kn_sdp_accept(p, "TRACK HISTORY ON"))
        return column_list(p, &cdc->track_history, &cdc->track_history_except);
    return kn_sdp_expected(p, "KEYS, SEQUENCE BY, APPLY AS DELETE WHEN, APPLY AS TRUNCATE WHEN, "
                              "IGNORE NULL UPDATES, COLUMNS, STORED AS SCD TYPE, TRACK HISTORY ON "
                              "or ';'");
}

/* The changes: STREAM(t), STREAM t, t, or a query in brackets. */
static KnCode cdc_source(KnSdpParser *p, KnSdpFlow *flow)
{
    const char *name;
    KnSdpToken at = p->tok;
    if (kn_sdp_accept(p, "(")) {
        KN_TRY(kn_sdp_query(p, true, &flow->query));
        return kn_sdp_expect(p, ")");
    }
    bool bracket = false;
    KnSdpToken next = kn_sdp_ahead(p, 1);
    if (kn_sdp_at(p, "STREAM") &&
        (kn_sdp_token_is(p, &next, "(") || next.kind == KN_SDP_QUOTED ||
         (next.kind == KN_SDP_WORD && !kn_sdp_token_is(p, &next, "KEYS")))) {
        kn_sdp_take(p);
        bracket = kn_sdp_accept(p, "(");
    }
    KN_TRY(kn_sdp_name(p, &name));
    if (kn_sdp_at(p, "(") && bracket)
        return kn_sdp_fail(p, &at,
                           "changes come from a name: read the files or topic in a flow of "
                           "their own");
    if (bracket)
        KN_TRY(kn_sdp_expect(p, ")"));
    const char **read = kn_arena_alloc(p->arena, sizeof(*read));
    *read = name;
    flow->it.reads = (KnutNames){read, 1};
    KN_BUF_AUTO query = {.max = 4 * strlen(name) + 64};
    kn_buf_text(&query, "SELECT * FROM ");
    kn_sdp_print_name(&query, name, '"');
    flow->it.query = kn_arena_strndup(p->arena, query.data, query.len);
    return KN_OK;
}

static KnCode complete(KnSdpParser *p, const KnSdpFlow *flow)
{
    const KnutCdc *cdc = &flow->it.kind.cdc;
    if (cdc->keys.len == 0)
        return kn_sdp_fail(p, &flow->place, "the changes of '%.100s' have no KEYS (columns)",
                           flow->it.name);
    if (!cdc->sequence_by)
        return kn_sdp_fail(p, &flow->place, "the changes of '%.100s' have no SEQUENCE BY column",
                           flow->it.name);
    if (flow->query.window || flow->settings.given)
        return kn_sdp_fail(p, &flow->place,
                           "the changes of '%.100s' have no window, trigger, "
                           "output mode or deduplication",
                           flow->it.name);
    return KN_OK;
}

KnCode kn_sdp_cdc(KnSdpScript *s, KnSdpFlow *flow, bool into)
{
    KnSdpParser *p = &s->p;
    flow->it.kind.tag = KNUT_FLOW_CDC;
    if (into) {
        flow->it.once = kn_sdp_accept(p, "ONCE");
        KN_TRY(kn_sdp_expect(p, "INTO"));
        if (!flow->it.name)
            flow->place = p->tok;
        KN_TRY(kn_sdp_name(p, &flow->it.target));
        if (!flow->it.name)
            flow->it.name = kn_arena_printf(p->arena, "f_%s", flow->it.target);
    }
    KN_TRY(kn_sdp_expect(p, "FROM"));
    KN_TRY(cdc_source(p, flow));
    while (!kn_sdp_at_end(p))
        KN_TRY(cdc_clause(p, &flow->it.kind.cdc));
    return complete(p, flow);
}

/* ---- CREATE FLOW ---- */

/* Behind INSERT INTO; ONCE is a word of its own where a name follows it. */
static KnCode insert(KnSdpParser *p, KnSdpFlow *flow)
{
    KnSdpToken next = kn_sdp_ahead(p, 1);
    bool name = next.kind == KN_SDP_QUOTED ||
                (next.kind == KN_SDP_WORD && !kn_sdp_token_is(p, &next, "BY") &&
                 !kn_sdp_token_is(p, &next, "SELECT") && !kn_sdp_token_is(p, &next, "WITH") &&
                 !kn_sdp_token_is(p, &next, "FROM") && !kn_sdp_token_is(p, &next, "VALUES") &&
                 !kn_sdp_token_is(p, &next, "TABLE"));
    flow->it.once = name && kn_sdp_accept(p, "ONCE");
    KN_TRY(kn_sdp_name(p, &flow->it.target));
    (void)kn_sdp_accept(p, "BY NAME");
    return kn_sdp_query(p, false, &flow->query);
}

static KnCode flow_clauses(KnSdpParser *p, KnSdpFlow *flow)
{
    bool was = true;
    while (was) {
        if (kn_sdp_accept(p, "COMMENT"))
            KN_TRY(kn_sdp_literal(p, "a comment between quotes", &flow->it.comment));
        else
            KN_TRY(kn_sdp_setting(p, &flow->settings, &was));
    }
    return KN_OK;
}

static KnCode flow_at(KnSdpScript *s, KnSdpFlow *flow, KnSdpColumns *columns)
{
    KnSdpParser *p = &s->p;
    flow->place = p->tok;
    KN_TRY(kn_sdp_name(p, &flow->it.name));
    if (kn_sdp_at(p, "("))
        KN_TRY(kn_sdp_columns(p, false, columns));
    flow->it.expectations = kn_sdp_expectations(p->arena, columns);
    KN_TRY(flow_clauses(p, flow));
    KN_TRY(kn_sdp_expect(p, "AS"));
    if (kn_sdp_accept(p, "INSERT INTO"))
        return insert(p, flow);
    if (kn_sdp_accept(p, "AUTO CDC") || kn_sdp_accept(p, "APPLY CHANGES"))
        return kn_sdp_cdc(s, flow, true);
    return kn_sdp_expected(p, "INSERT INTO, AUTO CDC INTO or APPLY CHANGES INTO");
}

KnCode kn_sdp_flow(KnSdpScript *s)
{
    KnSdpColumns columns = {0};
    size_t index = s->flows.len;
    KnSdpFlow *flow = kn_sdp_add_flow(s, NULL, NULL, &s->p.tok);
    bool bare = kn_sdp_accept(&s->p, "AUTO CDC") || kn_sdp_accept(&s->p, "APPLY CHANGES");
    KnCode rc = bare ? kn_sdp_cdc(s, flow, true) : flow_at(s, flow, &columns);
    kn_sdp_columns_done(&columns);
    if (rc != KN_OK)
        kn_sdp_query_done(&s->flows.items[s->flows.len = index].query);
    return rc;
}
