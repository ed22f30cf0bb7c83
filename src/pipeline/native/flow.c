/* SPDX-License-Identifier: Apache-2.0 */
/*
 * flow.c - flows and datasets as SELECTs, and relations under their names.
 *
 * A query goes to the engine as it is written, inside parentheses. Projection and filter stand
 * around it, where the engine's optimizer takes them into the scan; the plan shows that it did.
 * Several flows into one dataset are one after the other, and must agree in names and types.
 */
#include <string.h>

#include "pipeline/native/native.h"
#include "pipeline/sql/sql_internal.h"

static KnStr trimmed(const char *query)
{
    size_t len = strlen(query);
    while (len && strchr(" \t\r\n;", query[len - 1]))
        len--;
    return (KnStr){query, len};
}

void kn_native_name_sql(KnBuf *sql, const char *name)
{
    for (const char *at = name;;) {
        size_t len = strcspn(at, ".");
        kn_sql_ident(sql, (KnStr){at, len});
        if (!at[len])
            return;
        kn_buf_char(sql, '.');
        at += len + 1;
    }
}

const char *kn_native_query_text(KnNativeRun *run, const KnutFlow *flow)
{
    KN_BUF_AUTO sql = {.max = 64 << 20};
    if (flow->query) {
        kn_buf_str(&sql, trimmed(flow->query));
    } else {
        kn_buf_text(&sql, "SELECT * FROM ");
        kn_native_name_sql(&sql, flow->kind.tag == KNUT_FLOW_STREAMING
                                     ? kn_sdp_source_name(run->arena, &flow->kind.streaming.source)
                                     : flow->reads.items[0]);
    }
    return kn_arena_strndup(run->arena, sql.data, sql.len);
}

void kn_native_around_sql(KnBuf *sql, const KnutFlow *flow, const char *first, const char *from)
{
    kn_buf_printf(sql, "SELECT %s", first);
    for (size_t i = 0; i < flow->projection.len; i++) {
        kn_buf_text(sql, i || *first ? ", " : "");
        kn_sql_ident(sql, kn_str(flow->projection.items[i]));
    }
    kn_buf_printf(sql, "%s FROM %s", flow->projection.len || *first ? "" : "*", from);
    if (flow->filter)
        kn_buf_printf(sql, " WHERE (%s\n)", flow->filter);
}

const char *kn_native_flow_sql(KnNativeRun *run, const KnutFlow *flow)
{
    KN_BUF_AUTO sql = {.max = 64 << 20};
    kn_native_around_sql(&sql, flow, "",
                         kn_arena_printf(run->arena, "(%s\n)", kn_native_query_text(run, flow)));
    return kn_arena_strndup(run->arena, sql.data, sql.len);
}

static KnCode same_shape(const KnutFlow *flow, const KnNativeShape *shape, const KnutFlow *first,
                         const KnNativeShape *want, KnErr *err)
{
    bool same = shape->len == want->len;
    for (size_t i = 0; same && i < want->len; i++) {
        const KnNativeColumn *one = &shape->items[i], *other = &want->items[i];
        if (strcmp(one->name, other->name) == 0 && strcmp(one->type, other->type) == 0)
            continue;
        return kn_err_set(err, KN_E_INVAL,
                          "union-append into `%s`: flow `%s` output schema has %s %s where flow "
                          "`%s` has %s %s",
                          flow->target, flow->name, one->name, one->type, first->name, other->name,
                          other->type);
    }
    if (!same)
        return kn_err_set(err, KN_E_INVAL,
                          "union-append into `%s`: flow `%s` output schema has %zu column(s), that "
                          "of flow `%s` has %zu",
                          flow->target, flow->name, shape->len, first->name, want->len);
    return KN_OK;
}

/* Flows of the dataset, in the order of their declaration, checked and united. */
typedef struct Union {
    const KnutFlow *first;
    KnNativeShape shape;
    KnBuf sql;
    size_t n;
} Union;

static KnCode add_flow(KnNativeRun *run, const KnutFlow *flow, Union *all, KnErr *err)
{
    const char *sql = kn_native_flow_sql(run, flow);
    KnNativeShape shape = {0};
    KN_TRY(kn_native_describe(run, sql, &shape, err));
    if (all->n++)
        KN_TRY(same_shape(flow, &shape, all->first, &all->shape, err));
    else {
        all->first = flow;
        all->shape = shape;
    }
    KN_TRY(kn_native_checked(run, &(KnNativeWanted){flow->target, &flow->expectations, NULL}, sql,
                             &sql, err));
    if (flow->expectations.len) /* its constraints are bound here, not in the middle of a run */
        KN_TRY(kn_err_wrap(err, kn_native_describe(run, sql, &shape, err), "expectations"));
    kn_buf_printf(&all->sql, "%sSELECT * FROM (%s\n)", all->n > 1 ? "\nUNION ALL " : "", sql);
    return kn_buf_check(&all->sql, err);
}

static KnCode unite(KnNativeRun *run, const KnNativeNode *node, Union *all, KnErr *err)
{
    const KnIndexes *writers = &run->graph->writers[node - run->nodes];
    for (size_t i = 0; i < writers->len; i++) {
        const KnutFlow *flow = &run->pipeline->flows.items[writers->items[i]];
        if (kn_native_flow_runs(run, node, flow))
            KN_TRY(kn_err_wrap(err, add_flow(run, flow, all, err), "flow %s", flow->name));
    }
    return KN_OK;
}

KnCode kn_native_as_declared(KnNativeRun *run, const KnutDataset *dataset, const char *sql,
                             const char **ret, KnErr *err)
{
    const char *what = kn_arena_printf(run->arena, "dataset %s", dataset->name);
    KN_TRY(kn_native_declared(run, what, &dataset->schema, sql, &sql, err));
    KnNativeWanted wanted = {dataset->name, &dataset->expectations, &dataset->schema};
    return kn_native_checked(run, &wanted, sql, ret, err);
}

KnCode kn_native_dataset_sql(KnNativeRun *run, KnNativeNode *node, const char **ret, KnErr *err)
{
    const KnutDataset *dataset = node->dataset;
    const KnIndexes *writers = &run->graph->writers[node - run->nodes];
    *ret = NULL;
    if (!writers->len)
        return KN_OK;
    const KnutFlow *first = &run->pipeline->flows.items[writers->items[0]];
    if (first->kind.tag == KNUT_FLOW_CDC) {
        const char *applied = NULL;
        KN_TRY(kn_native_apply(run, node, first, &applied, err));
        return kn_native_as_declared(run, dataset, applied, ret, err);
    }
    Union all = {.sql = {.max = 64 << 20}};
    KnCode rc = unite(run, node, &all, err);
    const char *sql =
        rc == KN_OK && all.n ? kn_arena_strndup(run->arena, all.sql.data, all.sql.len) : NULL;
    kn_buf_done(&all.sql);
    if (rc != KN_OK || !sql) {
        *ret = NULL;
        return rc;
    }
    return kn_native_as_declared(run, dataset, sql, ret, err);
}

/* The schema, and the database, that a qualified name lies in. */
static KnCode make_places(KnNativeRun *run, const char *name, KnErr *err)
{
    const char *last = strrchr(name, '.');
    if (!last)
        return KN_OK;
    KN_BUF_AUTO sql = {.max = 1 << 16};
    KN_BUF_AUTO place = {.max = 1 << 16};
    kn_buf_str(&place, (KnStr){name, (size_t)(last - name)});
    const char *dot = strchr(place.data, '.');
    if (dot) {
        kn_buf_text(&sql, "ATTACH IF NOT EXISTS ':memory:' AS ");
        kn_sql_ident(&sql, (KnStr){place.data, (size_t)(dot - place.data)});
        kn_buf_text(&sql, "; ");
    }
    kn_buf_text(&sql, "CREATE SCHEMA IF NOT EXISTS ");
    kn_native_name_sql(&sql, place.data);
    return kn_session_exec(run->session, sql.data, NULL, err);
}

KnCode kn_native_create(KnNativeRun *run, const char *kind, const char *name, const char *sql,
                        KnErr *err)
{
    KN_TRY(make_places(run, name, err));
    KN_BUF_AUTO text = {.max = 64 << 20};
    kn_buf_printf(&text, "CREATE %s ", kind);
    kn_native_name_sql(&text, name);
    kn_buf_printf(&text, " AS %s", sql);
    KN_TRY(kn_buf_check(&text, err));
    return kn_session_exec(run->session, text.data, NULL, err);
}

/* True when a relation of this name is there already: a name that another flow gave it. */
static bool made_before(const KnNativeRun *run, size_t flow, size_t read)
{
    const char *name = run->graph->reads[flow].items[read].name;
    for (size_t f = 0; f <= flow; f++)
        for (size_t r = 0; r < (f == flow ? read : run->graph->reads[f].len); r++)
            if (kn_str_eq_nocase(kn_str(run->graph->reads[f].items[r].name), kn_str(name)))
                return true;
    return false;
}

KnCode kn_native_alias(KnNativeRun *run, const KnNativeNode *node, KnErr *err)
{
    size_t at = (size_t)(node - run->nodes);
    KN_BUF_AUTO sql = {.max = 1 << 16};
    kn_buf_text(&sql, "SELECT * FROM ");
    kn_native_name_sql(&sql, node->dataset->name);
    for (size_t f = 0; f < run->pipeline->flows.len; f++)
        for (size_t r = 0; r < run->graph->reads[f].len; r++) {
            const KnGraphRead *read = &run->graph->reads[f].items[r];
            if (read->dataset == at && !made_before(run, f, r) &&
                !kn_str_eq_nocase(kn_str(read->name), kn_str(node->dataset->name)))
                KN_TRY(kn_native_create(run, "VIEW", read->name, sql.data, err));
        }
    return KN_OK;
}
