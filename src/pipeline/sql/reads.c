/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reads.c - what a query reads, from the engine's own tree of it.
 *
 * json_serialize_sql() parses without binding, so nothing has to exist. In the tree, tables are
 * BASE_TABLE wherever they stand: FROM, subqueries of SELECT, WHERE, ON, HAVING, set operations,
 * PIVOT. A name of a CTE is none, inside the query that defines it and in the CTEs behind it; in
 * its own definition only when it is recursive.
 */
#include "base/json.h"
#include "engine/engine.h"
#include "pipeline/sql/sql_internal.h"

#define MAX_TREE ((size_t)64 << 20)

/* CTE names that are known, the innermost first. */
typedef struct Scope {
    const char *name;
    const struct Scope *outer;
} Scope;

typedef struct Reader {
    KnArena *arena;
    KnStr query;
    KnSdpTables *tables;
} Reader;

static void walk(Reader *r, const json_t *node, const Scope *scope);

static const char *text_of(const json_t *node, const char *key)
{
    const char *text = json_string_value(json_object_get(node, key));
    return text ? text : "";
}

static bool is_type(const json_t *node, const char *type)
{
    return strcmp(text_of(node, "type"), type) == 0;
}

static const Scope *with(Reader *r, const char *name, const Scope *outer)
{
    Scope *scope = kn_arena_alloc(r->arena, sizeof(*scope));
    *scope = (Scope){kn_arena_strdup(r->arena, name), outer};
    return scope;
}

static bool is_cte(const Scope *scope, const char *name)
{
    for (; scope; scope = scope->outer)
        if (kn_str_eq_nocase(kn_str(scope->name), kn_str(name)))
            return true;
    return false;
}

static void add_table(Reader *r, const json_t *node, const Scope *scope)
{
    const char *parts[] = {text_of(node, "catalog_name"), text_of(node, "schema_name"),
                           text_of(node, "table_name")};
    json_int_t at = json_integer_value(json_object_get(node, "query_location"));
    size_t place = at >= 0 && (size_t)at < r->query.len ? (size_t)at : 0;
    bool qualified = *parts[0] || *parts[1];
    bool file = r->query.len > 0 && r->query.ptr[place] == '\'';
    if (file || (!qualified && is_cte(scope, parts[2])))
        return;
    KN_BUF_AUTO name = {.max = MAX_TREE};
    for (size_t i = 0; i < 3; i++)
        if (*parts[i]) {
            if (name.len > 0)
                kn_buf_char(&name, '.');
            kn_sdp_name_part(&name, kn_str(parts[i]));
        }
    if (name.len > 0)
        *kn_vec_push(r->tables) =
            (KnSdpTable){kn_arena_strndup(r->arena, name.data, name.len), place};
}

/* The CTEs of a node; what the node itself sees. */
static const Scope *ctes(Reader *r, const json_t *node, const Scope *scope)
{
    const json_t *entry;
    size_t i;
    json_array_foreach(json_object_get(json_object_get(node, "cte_map"), "map"), i, entry)
    {
        const char *name = text_of(entry, "key");
        const json_t *value = json_object_get(entry, "value");
        const json_t *query = json_object_get(json_object_get(value, "query"), "node");
        bool recursive = is_type(query, "RECURSIVE_CTE_NODE");
        walk(r, value, recursive ? with(r, name, scope) : scope);
        scope = with(r, name, scope);
    }
    return scope;
}

static void walk(Reader *r, const json_t *node, const Scope *scope)
{
    const json_t *child;
    const char *key;
    size_t i;
    if (json_is_array(node)) {
        json_array_foreach(node, i, child) walk(r, child, scope);
        return;
    }
    if (!json_is_object(node))
        return;
    if (is_type(node, "BASE_TABLE"))
        add_table(r, node, scope);
    scope = ctes(r, node, scope);
    json_object_foreach((json_t *)node, key, child)
    {
        if (strcmp(key, "cte_map") != 0)
            walk(r, child, scope);
    }
}

/* The parser counts characters, the tree bytes. */
static size_t byte_of(KnStr text, size_t characters)
{
    size_t at = 0;
    while (at < text.len && characters > 0) {
        size_t len = kn_str_utf8_len((KnStr){text.ptr + at, text.len - at});
        at += len > 0 ? len : 1;
        characters--;
    }
    return at;
}

static KnCode refused(const json_t *tree, KnStr query, size_t *ret_at, KnErr *err)
{
    const char *position = text_of(tree, "position");
    const char *message = text_of(tree, "error_message");
    int64_t at;
    if (*position && kn_str_to_i64(kn_str(position), &at) && at >= 0)
        *ret_at = byte_of(query, (size_t)at);
    if (strstr(message, "Only SELECT"))
        message = "expected a query (SELECT, WITH, VALUES or FROM)";
    return kn_err_set(err, KN_E_CORRUPT, "%.300s", message);
}

KnCode kn_sdp_tree(KnSession *session, const char *query, json_t **ret, size_t *ret_at, KnErr *err)
{
    KN_BUF_AUTO sql = {.max = MAX_TREE}, answer = {.max = MAX_TREE};
    KN_JSON_AUTO tree = NULL;
    kn_buf_text(&sql, "SELECT json_serialize_sql(");
    kn_sql_text(&sql, kn_str(query));
    kn_buf_text(&sql, ", skip_null := true, skip_empty := true, skip_default := true)");
    *ret_at = SIZE_MAX;
    KN_TRY(kn_buf_check(&sql, err));
    KN_TRY(kn_session_query_text(session, sql.data, &answer, err));
    KN_TRY(kn_buf_check(&answer, err));
    KN_TRY(kn_json_parse(answer.data, answer.len, &tree, err));
    if (json_is_true(json_object_get(tree, "error")))
        return refused(tree, kn_str(query), ret_at, err);
    json_t *statements = json_object_get(tree, "statements");
    if (json_array_size(statements) != 1)
        return kn_err_set(err, KN_E_CORRUPT, "expected one query");
    *ret = json_incref(json_array_get(statements, 0));
    return KN_OK;
}

KnCode kn_sdp_tables(KnArena *arena, KnSession *session, const char *query, KnSdpTables *ret,
                     size_t *ret_at, KnErr *err)
{
    KN_JSON_AUTO tree = NULL;
    KN_TRY(kn_sdp_tree(session, query, &tree, ret_at, err));
    Reader reader = {.arena = arena, .query = kn_str(query), .tables = ret};
    walk(&reader, tree, NULL);
    return KN_OK;
}
