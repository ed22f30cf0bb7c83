/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tree.c - see tree.h.
 *
 * The engine writes a tree as text (json_deserialize_sql), whole statements only: an expression
 * goes into `SELECT expression`, and what it wrote before the expression is cut off. It wants the
 * list of CTEs in every query, which it leaves out itself where it is empty.
 */
#include "pipeline/native/stream/tree.h"

#include <string.h>

#include "pipeline/sql/sql_internal.h"

static void strip(json_t *node)
{
    json_t *child;
    const char *key;
    size_t i;
    if (json_is_array(node)) {
        json_array_foreach(node, i, child) strip(child);
        return;
    }
    if (!json_is_object(node))
        return;
    (void)json_object_del(node, "query_location");
    size_t len = strlen(kn_tree_text(node, "type"));
    if (len > 5 && !strcmp(kn_tree_text(node, "type") + len - 5, "_NODE") &&
        !json_object_get(node, "cte_map"))
        (void)json_object_set_new(node, "cte_map", json_pack("{s:[]}", "map"));
    json_object_foreach(node, key, child) strip(child);
}

KnCode kn_stream_tree(KnNativeRun *run, const char *query, json_t **ret, KnErr *err)
{
    size_t at = 0;
    KN_TRY(kn_sdp_tree(run->session, query, ret, &at, err));
    strip(*ret);
    return KN_OK;
}

const char *kn_tree_text(const json_t *node, const char *key)
{
    const char *text = json_string_value(json_object_get(node, key));
    return text ? text : "";
}

bool kn_tree_is(const json_t *node, const char *key, const char *value)
{
    return strcmp(kn_tree_text(node, key), value) == 0;
}

static bool same_texts(const json_t *a, const json_t *b)
{
    return kn_str_eq_nocase(kn_str(json_string_value(a)), kn_str(json_string_value(b)));
}

static bool same_members(const json_t *a, const json_t *b)
{
    const json_t *child;
    const char *key;
    json_object_foreach((json_t *)a, key, child)
    {
        if (strcmp(key, "alias") != 0 && !kn_tree_same(child, json_object_get(b, key)))
            return false;
    }
    json_object_foreach((json_t *)b, key, child)
    {
        if (strcmp(key, "alias") != 0 && !json_object_get(a, key))
            return false;
    }
    return true;
}

bool kn_tree_same(const json_t *a, const json_t *b)
{
    if (!a || !b || json_typeof(a) != json_typeof(b))
        return false;
    if (json_is_object(a) && kn_tree_is(a, "class", "COLUMN_REF") &&
        kn_tree_is(b, "class", "COLUMN_REF")) {
        const json_t *one = json_object_get(a, "column_names");
        const json_t *other = json_object_get(b, "column_names");
        if (json_array_size(one) != json_array_size(other))
            return false;
        for (size_t i = 0; i < json_array_size(one); i++)
            if (!same_texts(json_array_get(one, i), json_array_get(other, i)))
                return false;
        return true;
    }
    if (json_is_object(a))
        return same_members(a, b);
    if (!json_is_array(a))
        return json_equal(a, b);
    if (json_array_size(a) != json_array_size(b))
        return false;
    for (size_t i = 0; i < json_array_size(a); i++)
        if (!kn_tree_same(json_array_get(a, i), json_array_get(b, i)))
            return false;
    return true;
}

bool kn_tree_has(const json_t *node, const char *class_name)
{
    const json_t *child;
    const char *key;
    size_t i;
    if (json_is_array(node)) {
        json_array_foreach(node, i, child)
        {
            if (kn_tree_has(child, class_name))
                return true;
        }
        return false;
    }
    if (!json_is_object(node))
        return false;
    if (kn_tree_is(node, "class", class_name))
        return true;
    json_object_foreach((json_t *)node, key, child)
    {
        if (kn_tree_has(child, class_name))
            return true;
    }
    return false;
}

bool kn_tree_has_column(const json_t *node)
{
    return kn_tree_has(node, "COLUMN_REF") || kn_tree_has(node, "STAR");
}

static bool is_listed(const json_t *names, const char *name)
{
    const json_t *one;
    size_t i;
    json_array_foreach(names, i, one)
    {
        if (kn_str_eq_nocase(kn_str(json_string_value(one)), kn_str(name)))
            return true;
    }
    return false;
}

bool kn_tree_reads(const json_t *node, const json_t *names)
{
    const json_t *child;
    const char *key;
    size_t i;
    if (json_is_array(node)) {
        json_array_foreach(node, i, child)
        {
            if (kn_tree_reads(child, names))
                return true;
        }
        return false;
    }
    if (!json_is_object(node))
        return false;
    if (kn_tree_is(node, "type", "BASE_TABLE") &&
        is_listed(names, kn_tree_text(node, "table_name")))
        return true;
    json_object_foreach((json_t *)node, key, child)
    {
        if (kn_tree_reads(child, names))
            return true;
    }
    return false;
}

/* The text of a statement that selects item from table, behind its first words. */
static KnCode written(KnNativeRun *run, json_t *item, json_t *table, const char *before,
                      const char **ret, KnErr *err)
{
    KN_JSON_AUTO doc =
        json_pack("{s:b,s:[{s:{s:s,s:{s:[]},s:[o],s:o,s:s}}]}", "error", 0, "statements", "node",
                  "type", "SELECT_NODE", "cte_map", "map", "select_list", item, "from_table", table,
                  "aggregate_handling", "STANDARD_HANDLING");
    KN_BUF_AUTO json = {.max = 64 << 20}, sql = {.max = 64 << 20}, text = {.max = 64 << 20};
    kn_json_dump(&json, doc);
    kn_buf_text(&sql, "SELECT json_deserialize_sql(");
    kn_sql_text(&sql, (KnStr){json.data, json.len});
    kn_buf_text(&sql, "::JSON)");
    KN_TRY(kn_buf_check(&sql, err));
    KN_TRY(kn_session_query_text(run->session, sql.data, &text, err));
    size_t skip = strlen(before);
    if (text.len < skip || strncmp(text.data, before, skip) != 0)
        return kn_err_set(err, KN_E_INVAL, "the engine writes '%.200s' where '%s...' is expected",
                          text.data, before);
    *ret = kn_arena_strndup(run->arena, text.data + skip, text.len - skip);
    return KN_OK;
}

KnCode kn_tree_expression(KnNativeRun *run, const json_t *node, const char **ret, KnErr *err)
{
    json_t *item = json_deep_copy(node);
    (void)json_object_del(item, "alias");
    return written(run, item, json_pack("{s:s}", "type", "EMPTY"), "SELECT ", ret, err);
}

KnCode kn_tree_from(KnNativeRun *run, const json_t *node, const char **ret, KnErr *err)
{
    return written(run, kn_tree_column("x"), json_deep_copy(node), "SELECT x FROM ", ret, err);
}

json_t *kn_tree_column(const char *name)
{
    return json_pack("{s:s,s:s,s:[s]}", "class", "COLUMN_REF", "type", "COLUMN_REF", "column_names",
                     name);
}
