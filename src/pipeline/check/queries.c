/* SPDX-License-Identifier: Apache-2.0 */
/*
 * queries.c - the tables that a query names, against what its flow says that it reads.
 *
 * Order follows from `reads`: a dataset that a query names and `reads` does not may be made too
 * late, and a ring through it is not seen.
 */
#include "pipeline/check/queries.h"

#include "pipeline/check/checker.h"
#include "pipeline/check/names.h"
#include "pipeline/sql/sql_internal.h"

static bool same_thing(const KnGraphRead *a, const KnGraphRead *b)
{
    if (a->dataset == KN_GRAPH_NONE && a->input == KN_GRAPH_NONE)
        return strcmp(a->name, b->name) == 0;
    return a->dataset == b->dataset && a->input == b->input;
}

static void check_tables(const KnChecker *c, size_t place, const KnSdpTables *tables)
{
    const KnGraphReads *reads = &c->graph->reads[place];
    bool *named = kn_arena_zalloc(c->flaws->arena, reads->len + 1);
    kn_vec_foreach (tables, table) {
        KnGraphRead read = {.name = table->name};
        bool listed = false;
        kn_names_resolve(c->graph->names, &read);
        for (size_t i = 0; i < reads->len; i++)
            if (same_thing(&read, &reads->items[i]))
                listed = named[i] = true;
        if (!listed && (read.dataset != KN_GRAPH_NONE || read.input != KN_GRAPH_NONE))
            kn_breach(c, "read-not-listed",
                      "its query reads `%.100s`, which its reads do not name: nothing says that it "
                      "is made before",
                      table->name);
    }
    for (size_t i = 0; i < reads->len; i++)
        if (!named[i] && reads->items[i].listed && reads->items[i].dataset != KN_GRAPH_NONE)
            kn_breach(c, "read-not-used", "its query does not read `%.100s`, which its reads name",
                      reads->items[i].name);
}

/* The failures of the parser are the document's; others the caller's. */
static KnCode parse(KnArena *arena, KnSession *session, const char *query, KnSdpTables *tables,
                    KnErr *why)
{
    size_t at;
    KnCode rc = kn_sdp_tables(arena, session, query, tables, &at, why);
    return rc == KN_OK || rc == KN_E_CORRUPT || rc == KN_E_INVAL ? KN_OK : rc;
}

static KnCode check_query(const KnChecker *c, KnSession *session, size_t place, KnErr *err)
{
    const KnutFlow *flow = &c->pipeline->flows.items[place];
    KnSdpTables tables = {0};
    KnErr why = {0};
    if (!flow->query || !flow->query[0])
        return KN_OK;
    KnCode rc = parse(c->flaws->arena, session, flow->query, &tables, &why);
    if (rc == KN_OK && why.msg[0])
        kn_breach(c, "bad-query", "the engine does not read its query: %s", why.msg);
    else if (rc == KN_OK)
        check_tables(c, place, &tables);
    else if (err)
        *err = why;
    kn_vec_done(&tables);
    return rc;
}

static KnCode check_condition(const KnChecker *c, KnSession *session, const char *condition,
                              const char *what, KnErr *err)
{
    KnSdpTables tables = {0};
    KnErr why = {0};
    if (!condition || !condition[0])
        return KN_OK;
    const char *query = kn_arena_printf(c->flaws->arena, "SELECT 1 WHERE (%s\n)", condition);
    KnCode rc = parse(c->flaws->arena, session, query, &tables, &why);
    if (rc == KN_OK && why.msg[0])
        kn_breach(c, "bad-query", "the engine does not read %s `%.100s`: %s", what, condition,
                  why.msg);
    else if (rc != KN_OK && err)
        *err = why;
    kn_vec_done(&tables);
    return rc;
}

static KnCode check_expectations(const KnChecker *c, KnSession *session,
                                 const KnutExpectations *expectations, KnErr *err)
{
    for (size_t i = 0; i < expectations->len; i++)
        KN_TRY(
            check_condition(c, session, expectations->items[i].constraint, "the constraint", err));
    return KN_OK;
}

static KnCode check_flow(const KnChecker *c, KnSession *session, size_t place, KnErr *err)
{
    const KnutFlow *flow = &c->pipeline->flows.items[place];
    KN_TRY(check_query(c, session, place, err));
    KN_TRY(check_condition(c, session, flow->filter, "the filter", err));
    if (flow->kind.tag == KNUT_FLOW_CDC) {
        KN_TRY(check_condition(c, session, flow->kind.cdc.apply_as_deletes, "the condition", err));
        KN_TRY(
            check_condition(c, session, flow->kind.cdc.apply_as_truncates, "the condition", err));
    }
    return check_expectations(c, session, &flow->expectations, err);
}

KnCode kn_pipeline_check_queries(const KnGraph *graph, KnSession *session, KnFlaws *flaws,
                                 KnErr *err)
{
    size_t hints = 0;
    KnChecker c = {
        .graph = graph, .pipeline = graph->pipeline, .flaws = flaws, .hints_left = &hints};
    for (size_t i = 0; i < c.pipeline->datasets.len; i++) {
        const KnutDataset *dataset = &c.pipeline->datasets.items[i];
        c.where = kn_arena_printf(flaws->arena, "dataset `%.200s`", dataset->name);
        KN_TRY(check_expectations(&c, session, &dataset->expectations, err));
    }
    for (size_t i = 0; i < c.pipeline->flows.len; i++) {
        c.where = kn_arena_printf(flaws->arena, "flow `%.200s`", c.pipeline->flows.items[i].name);
        KN_TRY(check_flow(&c, session, i, err));
    }
    return KN_OK;
}
