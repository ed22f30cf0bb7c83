/* SPDX-License-Identifier: Apache-2.0 */
/*
 * query.c - see query.h.
 *
 * What is not understood is never wrong, only slower: a term that is neither a group nor made of
 * aggregates that can be put together makes the query one whose rows are kept.
 */
#include "pipeline/native/stream/query.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pipeline/native/stream/tree.h"

typedef struct Analysis {
    KnNativeRun *run;
    KnStreamQuery *query;
    json_t *node;    /* the SELECT */
    json_t *names;   /* what stands for the stream's rows: itself, CTEs over it */
    json_t *groups;  /* terms of GROUP BY */
    json_t *parts;   /* aggregates met, each once */
    const char *one; /* what the only table is called; NULL = there are more */
    bool keeps;      /* some aggregate cannot be put together */
} Analysis;

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static bool is_aggregate(const json_t *node)
{
    const char *name = kn_tree_text(node, "function_name");
    return kn_tree_is(node, "class", "FUNCTION") &&
           bsearch(&name, kn_stream_aggregates, kn_stream_n_aggregates, sizeof(char *), by_name);
}

/* An aggregate below, but not in a subquery of its own. */
static bool has_aggregate(const json_t *node)
{
    const json_t *child;
    const char *key;
    size_t i;
    if (json_is_array(node)) {
        json_array_foreach(node, i, child)
        {
            if (has_aggregate(child))
                return true;
        }
        return false;
    }
    if (!json_is_object(node) || kn_tree_is(node, "class", "SUBQUERY"))
        return false;
    if (is_aggregate(node))
        return true;
    json_object_foreach((json_t *)node, key, child)
    {
        if (has_aggregate(child))
            return true;
    }
    return false;
}

/* ---- what is wrong with a query that sees the stream in parts ---- */

static const char *wrong_modifier(const json_t *node)
{
    const json_t *modifier;
    size_t i;
    json_array_foreach(json_object_get(node, "modifiers"), i, modifier)
    {
        if (kn_tree_is(modifier, "type", "DISTINCT_MODIFIER"))
            return "DISTINCT";
        if (strncmp(kn_tree_text(modifier, "type"), "LIMIT", 5) == 0)
            return "LIMIT";
    }
    return NULL;
}

static const char *wrong_select(const json_t *node)
{
    const json_t *list = json_object_get(node, "select_list");
    if (json_array_size(json_object_get(node, "group_expressions")) ||
        kn_tree_is(node, "aggregate_handling", "FORCE_AGGREGATES") || has_aggregate(list) ||
        has_aggregate(json_object_get(node, "having")))
        return "an aggregation";
    if (kn_tree_has(list, "WINDOW") || kn_tree_has(json_object_get(node, "qualify"), "WINDOW"))
        return "a window function";
    return json_object_get(node, "sample") ? "a sample" : NULL;
}

/* A join gives the stream's rows part by part only where it keeps no rows of the other side. */
static const char *wrong_join(const Analysis *a, const json_t *join)
{
    bool left = kn_tree_reads(json_object_get(join, "left"), a->names);
    bool right = kn_tree_reads(json_object_get(join, "right"), a->names);
    const char *type = kn_tree_text(join, "join_type");
    if (!left && !right)
        return NULL;
    if (left && right)
        return "a join of the stream with itself";
    if (kn_tree_is(join, "ref_type", "POSITIONAL"))
        return "a positional join";
    bool fine = !*type || !strcmp(type, "INNER") ||
                (right ? !strcmp(type, "RIGHT")
                       : !strcmp(type, "LEFT") || !strcmp(type, "SEMI") || !strcmp(type, "ANTI"));
    return fine ? NULL : "a join that keeps rows of the other side";
}

static const char *wrong_below(const Analysis *a, const json_t *node);

static const char *wrong_members(const Analysis *a, const json_t *node)
{
    const json_t *child;
    const char *key;
    json_object_foreach((json_t *)node, key, child)
    {
        const char *wrong = wrong_below(a, child);
        if (wrong)
            return wrong;
    }
    return NULL;
}

static const char *wrong_below(const Analysis *a, const json_t *node)
{
    const json_t *child;
    size_t i;
    if (json_is_array(node)) {
        json_array_foreach(node, i, child)
        {
            const char *wrong = wrong_below(a, child);
            if (wrong)
                return wrong;
        }
        return NULL;
    }
    if (!json_is_object(node))
        return NULL;
    const char *wrong = NULL;
    if (kn_tree_is(node, "class", "SUBQUERY") && kn_tree_reads(node, a->names))
        return "a subquery over the stream";
    if (kn_tree_is(node, "type", "SELECT_NODE") &&
        kn_tree_reads(json_object_get(node, "from_table"), a->names))
        wrong = wrong_select(node);
    if (kn_tree_is(node, "type", "JOIN"))
        wrong = wrong_join(a, node);
    if (!wrong && kn_tree_reads(node, a->names))
        wrong = wrong_modifier(node);
    if (!wrong && kn_tree_is(node, "type", "SET_OPERATION_NODE") &&
        !json_is_true(json_object_get(node, "setop_all")) && kn_tree_reads(node, a->names))
        return "a set operation without ALL";
    return wrong ? wrong : wrong_members(a, node);
}

/* CTEs over the stream are the stream under another name. */
static void gather_names(Analysis *a, const json_t *node)
{
    const json_t *entry, *child;
    const char *key;
    size_t i;
    json_array_foreach(json_object_get(json_object_get(node, "cte_map"), "map"), i, entry)
    {
        if (kn_tree_reads(json_object_get(entry, "value"), a->names))
            (void)json_array_append(a->names, json_object_get(entry, "key"));
    }
    if (json_is_array(node)) {
        json_array_foreach(node, i, child) gather_names(a, child);
    } else if (json_is_object(node)) {
        json_object_foreach((json_t *)node, key, child) gather_names(a, child);
    }
}

/* ---- groups ---- */

static json_t *copy_term(const json_t *term)
{
    json_t *copy = json_deep_copy(term);
    (void)json_object_del(copy, "alias");
    return copy;
}

static bool has_stream_column(const KnNativeShape *columns, const char *name)
{
    for (size_t i = 0; i < columns->len; i++)
        if (kn_str_eq_nocase(kn_str(columns->items[i].name), kn_str(name)))
            return true;
    return false;
}

/* GROUP BY 2, GROUP BY an alias: the item of the list that is meant. */
static const json_t *meant(const Analysis *a, const json_t *term, const KnNativeShape *columns)
{
    const json_t *list = json_object_get(a->node, "select_list"), *item;
    const json_t *value = json_object_get(json_object_get(term, "value"), "value");
    size_t i;
    if (kn_tree_is(term, "class", "CONSTANT") && json_is_integer(value)) {
        json_int_t at = json_integer_value(value);
        return at > 0 && at <= (json_int_t)json_array_size(list)
                   ? json_array_get(list, (size_t)at - 1)
                   : NULL;
    }
    const json_t *names = json_object_get(term, "column_names");
    const char *name = json_string_value(json_array_get(names, 0));
    if (!kn_tree_is(term, "class", "COLUMN_REF") || json_array_size(names) != 1 ||
        has_stream_column(columns, name))
        return term;
    json_array_foreach(list, i, item)
    {
        if (kn_str_eq_nocase(kn_str(kn_tree_text(item, "alias")), kn_str(name)))
            return item;
    }
    return term;
}

static bool gather_groups(Analysis *a, const KnNativeShape *columns)
{
    const json_t *term;
    size_t i;
    bool all = kn_tree_is(a->node, "aggregate_handling", "FORCE_AGGREGATES");
    if (json_array_size(json_object_get(a->node, "group_sets")) > 1)
        return false;
    json_array_foreach(json_object_get(a->node, all ? "select_list" : "group_expressions"), i, term)
    {
        const json_t *group = all ? term : meant(a, term, columns);
        if (!group || kn_tree_is(group, "class", "STAR"))
            return false;
        if (!all || !has_aggregate(group))
            (void)json_array_append_new(a->groups, copy_term(group));
    }
    return true;
}

/* ---- aggregates in parts ---- */

static const struct {
    const char *name, *merge;
} parted[] = {{"count_star", "sum"},    {"count", "sum"},       {"sum", "sum"},
              {"min", "min"},           {"max", "max"},         {"avg", "avg"},
              {"bool_and", "bool_and"}, {"bool_or", "bool_or"}, {"bit_and", "bit_and"},
              {"bit_or", "bit_or"},     {"bit_xor", "bit_xor"}};

/* What puts parts of the aggregate together; NULL = nothing does. */
static const char *merge_of(const json_t *node)
{
    const json_t *orders = json_object_get(json_object_get(node, "order_bys"), "orders");
    if (json_is_true(json_object_get(node, "distinct")) || json_array_size(orders) ||
        json_array_size(json_object_get(node, "children")) > 1)
        return NULL;
    for (size_t i = 0; i < sizeof(parted) / sizeof(parted[0]); i++)
        if (kn_tree_is(node, "function_name", parted[i].name))
            return parted[i].merge;
    return NULL;
}

static size_t index_of(const json_t *list, const json_t *node)
{
    size_t i = 0;
    while (i < json_array_size(list) && !kn_tree_same(json_array_get(list, i), node))
        i++;
    return i;
}

/* The term with groups and aggregates as columns of what is kept. */
static json_t *over_kept(Analysis *a, const json_t *node)
{
    char name[32];
    const json_t *child;
    const char *key;
    size_t i, group = json_is_object(node) ? index_of(a->groups, node) : SIZE_MAX;
    if (group < json_array_size(a->groups)) {
        (void)snprintf(name, sizeof(name), "kn_g%zu", group);
        return kn_tree_column(name);
    }
    if (json_is_array(node)) {
        json_t *out = json_array();
        json_array_foreach(node, i, child)(void) json_array_append_new(out, over_kept(a, child));
        return out;
    }
    if (!json_is_object(node))
        return json_incref((json_t *)node);
    if (is_aggregate(node)) {
        size_t at = index_of(a->parts, node);
        a->keeps |= !merge_of(node);
        if (at == json_array_size(a->parts))
            (void)json_array_append_new(a->parts, copy_term(node));
        (void)snprintf(name, sizeof(name), "kn_a%zu", at);
        return kn_tree_column(name);
    }
    /* A column that is no group, or a query of its own over rows. */
    a->keeps |= kn_tree_is(node, "class", "COLUMN_REF") || kn_tree_is(node, "class", "SUBQUERY") ||
                kn_tree_is(node, "class", "STAR");
    json_t *out = json_object();
    json_object_foreach((json_t *)node, key, child)(void)
        json_object_set_new(out, key, over_kept(a, child));
    return out;
}

static KnCode add_partial(Analysis *a, const json_t *node, const char *merge, KnErr *err)
{
    KnStreamPartial *partial = &a->query->partials[a->query->n_partials++];
    partial->merge = merge;
    return kn_tree_expression(a->run, node, &partial->sql, err);
}

static KnCode add_average(Analysis *a, const json_t *node, KnErr *err)
{
    KN_JSON_AUTO part = json_deep_copy(node);
    (void)json_object_set_new(part, "function_name", json_string("sum"));
    KN_TRY(add_partial(a, part, "sum", err));
    (void)json_object_set_new(part, "function_name", json_string("count"));
    return add_partial(a, part, "sum", err);
}

static KnCode add_parts(Analysis *a, KnErr *err)
{
    KnStreamQuery *q = a->query;
    size_t n = json_array_size(a->parts), i;
    const json_t *node;
    q->partials = kn_arena_zalloc(a->run->arena, (2 * n + 1) * sizeof(*q->partials));
    q->aggregates = kn_arena_zalloc(a->run->arena, (n + 1) * sizeof(*q->aggregates));
    json_array_foreach(a->parts, i, node)
    {
        const char *merge = merge_of(node);
        size_t at = q->n_partials;
        bool counts = strncmp(kn_tree_text(node, "function_name"), "count", 5) == 0;
        if (!strcmp(merge, "avg"))
            KN_TRY(add_average(a, node, err));
        else
            KN_TRY(add_partial(a, node, merge, err));
        q->aggregates[q->n_aggregates++] =
            !strcmp(merge, "avg")
                ? kn_arena_printf(a->run->arena,
                                  "CAST(sum(kn_p%zu) AS DOUBLE) / nullif(sum(kn_p%zu), 0)", at,
                                  at + 1)
                : kn_arena_printf(a->run->arena,
                                  counts ? "CAST(%s(kn_p%zu) AS BIGINT)" : "%s(kn_p%zu)", merge,
                                  at);
    }
    return KN_OK;
}

/* ---- the two forms ---- */

static KnCode condition(const Analysis *a, const json_t *node, const char **ret, KnErr *err)
{
    return node ? kn_tree_expression(a->run, node, ret, err) : KN_OK;
}

static KnCode add_items(Analysis *a, const json_t *list, const KnNativeShape *result, KnErr *err)
{
    KnStreamQuery *q = a->query;
    q->n_items = json_array_size(list);
    q->items = kn_arena_zalloc(a->run->arena, (q->n_items + 1) * sizeof(*q->items));
    for (size_t i = 0; i < q->n_items; i++) {
        q->items[i].name = result->items[i].name;
        KN_TRY(kn_tree_expression(a->run, json_array_get(list, i), &q->items[i].sql, err));
    }
    return KN_OK;
}

static KnCode add_groups(Analysis *a, KnErr *err)
{
    KnStreamQuery *q = a->query;
    const json_t *term;
    size_t i;
    q->groups =
        kn_arena_zalloc(a->run->arena, (json_array_size(a->groups) + 1) * sizeof(*q->groups));
    json_array_foreach(a->groups, i, term)
        KN_TRY(kn_tree_expression(a->run, term, &q->groups[q->n_groups++], err));
    return KN_OK;
}

static KnCode take_apart(Analysis *a, const KnNativeShape *result, KnErr *err)
{
    KnStreamQuery *q = a->query;
    const json_t *having = json_object_get(a->node, "having");
    KN_JSON_AUTO items = over_kept(a, json_object_get(a->node, "select_list"));
    KN_JSON_AUTO kept_having = having ? over_kept(a, having) : NULL;
    bool fold = !a->keeps;
    if (!fold && !a->one)
        return KN_OK; /* rows of a join cannot be kept under the query's names */
    KN_TRY(kn_tree_from(a->run, json_object_get(a->node, "from_table"), &q->from, err));
    KN_TRY(condition(a, json_object_get(a->node, "where_clause"), &q->where, err));
    KN_TRY(condition(a, fold ? kept_having : having, &q->having, err));
    KN_TRY(add_groups(a, err));
    KN_TRY(add_items(a, fold ? items : json_object_get(a->node, "select_list"), result, err));
    if (fold)
        KN_TRY(add_parts(a, err));
    q->alias = a->one;
    q->strategy = fold ? KN_STREAM_FOLD : KN_STREAM_GROUPED;
    return KN_OK;
}

static bool is_plain_select(const Analysis *a)
{
    const json_t *ctes = json_object_get(json_object_get(a->node, "cte_map"), "map");
    return kn_tree_is(a->node, "type", "SELECT_NODE") && !json_array_size(ctes) &&
           !json_array_size(json_object_get(a->node, "modifiers")) &&
           !json_object_get(a->node, "qualify") && !json_object_get(a->node, "sample") &&
           !kn_tree_has(json_object_get(a->node, "select_list"), "WINDOW");
}

/* The stream itself is among the tables of FROM, so that its windows are columns there. */
static bool is_direct(const Analysis *a, const json_t *from)
{
    if (kn_tree_is(from, "type", "JOIN"))
        return is_direct(a, json_object_get(from, "left")) ||
               is_direct(a, json_object_get(from, "right"));
    return kn_tree_is(from, "type", "BASE_TABLE") && kn_tree_reads(from, a->names);
}

static KnCode analyse(Analysis *a, const char *stream, KnErr *err)
{
    KnNativeShape columns = {0}, result = {0};
    KN_BUF_AUTO sql = {.max = 1 << 16};
    kn_buf_text(&sql, "SELECT * FROM ");
    kn_native_name_sql(&sql, stream);
    KN_TRY(kn_native_describe(a->run, sql.data, &columns, err));
    KN_TRY(kn_native_describe(a->run, a->query->text, &result, err));
    const json_t *from = json_object_get(a->node, "from_table");
    if (kn_tree_is(from, "type", "BASE_TABLE"))
        a->one = kn_arena_strdup(a->run->arena, *kn_tree_text(from, "alias")
                                                    ? kn_tree_text(from, "alias")
                                                    : kn_tree_text(from, "table_name"));
    size_t n = json_array_size(json_object_get(a->node, "select_list"));
    bool found = a->query->windowed ? is_direct(a, from) : kn_tree_reads(from, a->names);
    if (!is_plain_select(a) || !found || wrong_below(a, from) || n != result.len ||
        !wrong_select(a->node) || !gather_groups(a, &columns))
        return KN_OK;
    return take_apart(a, &result, err);
}

KnCode kn_stream_query(KnNativeRun *run, const char *text, const char *stream, KnStreamQuery *ret,
                       KnErr *err)
{
    KN_JSON_AUTO statement = NULL;
    KN_TRY(kn_stream_tree(run, text, &statement, err));
    const char *dot = strrchr(stream, '.');
    KN_JSON_AUTO names = json_pack("[s]", dot ? dot + 1 : stream);
    KN_JSON_AUTO groups = json_array();
    KN_JSON_AUTO parts = json_array();
    *ret = (KnStreamQuery){.windowed = ret->windowed, .strategy = KN_STREAM_OPAQUE, .text = text};
    Analysis a = {.run = run,
                  .query = ret,
                  .node = json_object_get(statement, "node"),
                  .names = names,
                  .groups = groups,
                  .parts = parts};
    gather_names(&a, a.node);
    ret->wrong = wrong_below(&a, a.node);
    if (!ret->wrong)
        ret->strategy = KN_STREAM_ROWWISE;
    return analyse(&a, stream, err);
}
