/* SPDX-License-Identifier: Apache-2.0 */
/* rest_namespaces.c - operations on namespaces, and the functions that no namespace has. */
#include "catalog/server/rest_internal.h"

static void write_next(KnBuf *buf, const char *next)
{
    if (!next)
        return;
    kn_buf_text(buf, ",\"next-page-token\":");
    kn_json_quote(buf, kn_str(next));
}

KnCode kn_rest_list_namespaces(KnRestCall *call, KnErr *err)
{
    const KnStr *parent_text =
        kn_http_pair_find(call->req->target.query, call->req->target.n_query, "parent");
    KnNamespace parent = {0};
    KnPage page = {0};
    KnNameList list = {0};
    if (parent_text && parent_text->len)
        KN_TRY(kn_rest_namespace_parse(call->arena, *parent_text, &parent, err));
    if (!kn_principal_sees(call->who, &parent))
        return kn_rest_need(call, &parent, KN_RIGHT_READ, err);
    KN_TRY(kn_rest_page(call, &page, err));
    KN_TRY(kn_core_namespace_list(call->rest->ctx.core, call->arena, &parent, &page, &list, err));
    const char **levels = kn_arena_alloc(call->arena, (parent.n_levels + 1) * sizeof(*levels));
    if (parent.n_levels)
        memcpy(levels, parent.levels, parent.n_levels * sizeof(*levels));
    KnBuf *body = kn_rest_buf(call);
    bool first = true;
    kn_buf_text(body, "{\"namespaces\":[");
    for (size_t i = 0; i < list.n; i++) {
        levels[parent.n_levels] = list.names[i];
        KnNamespace child = {levels, parent.n_levels + 1};
        if (!kn_principal_sees(call->who, &child))
            continue;
        kn_buf_text(body, first ? "" : ",");
        kn_rest_write_levels(body, child.levels, child.n_levels);
        first = false;
    }
    kn_buf_char(body, ']');
    write_next(body, list.next);
    kn_buf_char(body, '}');
    return kn_rest_reply_json(call, body, err);
}

/* {"namespace": [...], "properties": {...}}, with the place of its tables, as Java's JdbcCatalog
 * tells it: Trino chooses locations of tables below it, and cannot make tables without. */
static KnCode reply_namespace(KnRestCall *call, const KnNamespace *ns, KnErr *err)
{
    KnCatalogCore *core = call->rest->ctx.core;
    json_t *properties = NULL;
    const char *location = NULL;
    KN_TRY(kn_core_namespace_get(core, ns, &properties, err));
    (void)kn_rest_keep(call, properties);
    KN_TRY(kn_core_namespace_location(core, call->arena, ns, &location, err));
    (void)json_object_set_new(properties, "location", json_string(location));
    KnBuf *body = kn_rest_buf(call);
    kn_buf_text(body, "{\"namespace\":");
    kn_rest_write_levels(body, ns->levels, ns->n_levels);
    kn_buf_text(body, ",\"properties\":");
    kn_json_dump(body, properties);
    kn_buf_char(body, '}');
    return kn_rest_reply_json(call, body, err);
}

/* An object of texts, or absent. */
static KnCode properties_of(const json_t *body, const char *key, json_t **ret, KnErr *err)
{
    const char *name;
    json_t *value;
    KN_TRY(kn_rest_asked(kn_json_opt_object(body, key, ret, err), err));
    json_object_foreach(*ret, name, value)
    {
        if (!json_is_string(value))
            return kn_err_set(err, KN_E_INVAL, "%s: the value of '%.100s' is not a string", key,
                              name);
    }
    return KN_OK;
}

KnCode kn_rest_create_namespace(KnRestCall *call, KnErr *err)
{
    KnNamespace ns = {0};
    json_t *properties = NULL;
    KN_TRY(kn_rest_levels(call, json_object_get(call->body, "namespace"), &ns, err));
    KN_TRY(properties_of(call->body, "properties", &properties, err));
    KN_TRY(kn_rest_need(call, &ns, KN_RIGHT_ADMIN, err));
    KN_TRY(kn_core_namespace_create(call->rest->ctx.core, &ns, properties, err));
    return reply_namespace(call, &ns, err);
}

KnCode kn_rest_load_namespace(KnRestCall *call, KnErr *err)
{
    return reply_namespace(call, &call->ns, err);
}

KnCode kn_rest_namespace_exists(KnRestCall *call, KnErr *err)
{
    bool exists = false;
    KN_TRY(kn_core_namespace_exists(call->rest->ctx.core, &call->ns, &exists, err));
    return kn_rest_reply_empty(call, exists ? 204 : 404);
}

KnCode kn_rest_drop_namespace(KnRestCall *call, KnErr *err)
{
    KN_TRY(kn_core_namespace_drop(call->rest->ctx.core, &call->ns, err));
    return kn_rest_reply_empty(call, 204);
}

KnCode kn_rest_update_properties(KnRestCall *call, KnErr *err)
{
    json_t *removals = NULL, *updates = NULL, *result = NULL;
    KN_TRY(kn_rest_asked(kn_json_opt_array(call->body, "removals", &removals, err), err));
    for (size_t i = 0; i < json_array_size(removals); i++) {
        if (!json_is_string(json_array_get(removals, i)))
            return kn_err_set(err, KN_E_INVAL, "removals: expected an array of strings");
    }
    KN_TRY(properties_of(call->body, "updates", &updates, err));
    KN_TRY(
        kn_core_namespace_update(call->rest->ctx.core, &call->ns, removals, updates, &result, err));
    return kn_rest_reply_object(call, kn_rest_keep(call, result), err);
}

/* ---- functions: there are none ----------------------------------------------------------------
 */

static KnCode need_namespace(KnRestCall *call, KnErr *err)
{
    json_t *properties = NULL;
    KN_TRY(kn_core_namespace_get(call->rest->ctx.core, &call->ns, &properties, err));
    json_decref(properties);
    return KN_OK;
}

KnCode kn_rest_list_functions(KnRestCall *call, KnErr *err)
{
    KnBuf *body = kn_rest_buf(call);
    KN_TRY(need_namespace(call, err));
    kn_buf_text(body, "{\"identifiers\":[]}");
    return kn_rest_reply_json(call, body, err);
}

KnCode kn_rest_load_function(KnRestCall *call, KnErr *err)
{
    KN_TRY(need_namespace(call, err));
    kn_rest_reply_error(call->arena, call->rsp, 404, "NoSuchFunctionException",
                        kn_arena_printf(call->arena, "Function does not exist: %.400s", call->arg));
    return KN_OK;
}
