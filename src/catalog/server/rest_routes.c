/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rest_routes.c - every operation of the REST specification that this server has, and how a
 * request finds its own.
 *
 * Rows are looked through from the top, so what is asked for most stands first. A path is compared
 * segment by segment after decoding; `{prefix}` is optional, and is the catalog's name when it is
 * there. A namespace is its levels joined by the unit separator (%1F).
 */
#include "catalog/server/rest_internal.h"

#define TABLE     "/v1/{prefix}/namespaces/{namespace}/tables/{table}"
#define TABLES    "/v1/{prefix}/namespaces/{namespace}/tables"
#define NAMESPACE "/v1/{prefix}/namespaces/{namespace}"
#define VIEWS     "/v1/{prefix}/namespaces/{namespace}/views"
#define VIEW      "/v1/{prefix}/namespaces/{namespace}/views/{view}"

enum {
    POST_JSON = KN_REST_JSON | KN_REST_CHANGES,
    PLAN = KN_REST_JSON | KN_REST_WAITS,
    CHANGES = KN_REST_CHANGES,
    CATALOG = KN_REST_CATALOG,
    PROBE = KN_REST_OPEN | KN_REST_HIDDEN | KN_REST_CATALOG,
};

const KnRestOp kn_rest_ops[] = {
    {"loadTable", "GET", TABLE, kn_rest_load_table, KN_RIGHT_READ, 0},
    {"tableExists", "HEAD", TABLE, kn_rest_table_exists, KN_RIGHT_READ, 0},
    {"listTables", "GET", TABLES, kn_rest_list_tables, KN_RIGHT_READ, 0},
    {"updateTable", "POST", TABLE, kn_rest_update_table, KN_RIGHT_WRITE, POST_JSON | KN_REST_BRIEF},
    {"createTable", "POST", TABLES, kn_rest_create_table, KN_RIGHT_WRITE, POST_JSON},
    {"dropTable", "DELETE", TABLE, kn_rest_drop_table, KN_RIGHT_WRITE, CHANGES},
    {"getConfig", "GET", "/v1/config", kn_rest_get_config, KN_RIGHT_NONE, CATALOG},
    {"getToken", "POST", "/v1/oauth/tokens", kn_rest_get_token, KN_RIGHT_NONE,
     KN_REST_OPEN | KN_REST_FORM | CATALOG},
    {"listNamespaces", "GET", "/v1/{prefix}/namespaces", kn_rest_list_namespaces, KN_RIGHT_NONE,
     CATALOG},
    {"createNamespace", "POST", "/v1/{prefix}/namespaces", kn_rest_create_namespace, KN_RIGHT_NONE,
     POST_JSON | CATALOG},
    {"loadNamespaceMetadata", "GET", NAMESPACE, kn_rest_load_namespace, KN_RIGHT_READ, 0},
    {"namespaceExists", "HEAD", NAMESPACE, kn_rest_namespace_exists, KN_RIGHT_READ, 0},
    {"dropNamespace", "DELETE", NAMESPACE, kn_rest_drop_namespace, KN_RIGHT_ADMIN, CHANGES},
    {"updateProperties", "POST", NAMESPACE "/properties", kn_rest_update_properties, KN_RIGHT_ADMIN,
     POST_JSON},
    {"registerTable", "POST", NAMESPACE "/register", kn_rest_register_table, KN_RIGHT_ADMIN,
     POST_JSON},
    {"unregisterTable", "POST", TABLE "/unregister", kn_rest_unregister_table, KN_RIGHT_ADMIN,
     CHANGES},
    {"renameTable", "POST", "/v1/{prefix}/tables/rename", kn_rest_rename_table, KN_RIGHT_NONE,
     POST_JSON | CATALOG},
    {"reportMetrics", "POST", TABLE "/metrics", kn_rest_report_metrics, KN_RIGHT_READ,
     KN_REST_JSON},
    {"loadCredentials", "GET", TABLE "/credentials", kn_rest_load_credentials, KN_RIGHT_READ, 0},
    {"signRequest", "POST", TABLE "/sign", kn_rest_sign_request, KN_RIGHT_READ, PLAN},
    {"signS3Request", "POST", "/v1/aws/s3/sign", kn_rest_sign_any, KN_RIGHT_NONE,
     PLAN | CATALOG | KN_REST_HIDDEN},
    {"commitTransaction", "POST", "/v1/{prefix}/transactions/commit", kn_rest_commit_transaction,
     KN_RIGHT_NONE, POST_JSON | CATALOG},
    {"planTableScan", "POST", TABLE "/plan", kn_rest_plan_scan, KN_RIGHT_READ, PLAN},
    {"fetchPlanningResult", "GET", TABLE "/plan/{plan-id}", kn_rest_fetch_plan, KN_RIGHT_READ, 0},
    {"cancelPlanning", "DELETE", TABLE "/plan/{plan-id}", kn_rest_cancel_plan, KN_RIGHT_READ, 0},
    {"fetchScanTasks", "POST", TABLE "/tasks", kn_rest_fetch_tasks, KN_RIGHT_READ, KN_REST_JSON},
    {"listViews", "GET", VIEWS, kn_rest_list_views, KN_RIGHT_READ, 0},
    {"createView", "POST", VIEWS, kn_rest_create_view, KN_RIGHT_WRITE, POST_JSON},
    {"loadView", "GET", VIEW, kn_rest_load_view, KN_RIGHT_READ, 0},
    {"replaceView", "POST", VIEW, kn_rest_replace_view, KN_RIGHT_WRITE, POST_JSON},
    {"dropView", "DELETE", VIEW, kn_rest_drop_view, KN_RIGHT_WRITE, CHANGES},
    {"viewExists", "HEAD", VIEW, kn_rest_view_exists, KN_RIGHT_READ, 0},
    {"renameView", "POST", "/v1/{prefix}/views/rename", kn_rest_rename_view, KN_RIGHT_NONE,
     POST_JSON | CATALOG},
    {"registerView", "POST", NAMESPACE "/register-view", kn_rest_register_view, KN_RIGHT_ADMIN,
     POST_JSON},
    {"listFunctions", "GET", NAMESPACE "/functions", kn_rest_list_functions, KN_RIGHT_READ, 0},
    {"loadFunction", "GET", NAMESPACE "/functions/{function}", kn_rest_load_function, KN_RIGHT_READ,
     0},
    {"health", "GET", "/health", kn_rest_health, KN_RIGHT_NONE, PROBE},
    {"ready", "GET", "/ready", kn_rest_ready, KN_RIGHT_NONE, PROBE},
    {"metrics", "GET", "/metrics", kn_rest_metrics, KN_RIGHT_NONE, PROBE},
};
const size_t kn_rest_n_ops = sizeof(kn_rest_ops) / sizeof(kn_rest_ops[0]);

KnCode kn_rest_namespace_parse(KnArena *arena, KnStr text, KnNamespace *ret, KnErr *err)
{
    enum { SEPARATOR = 0x1f, LEVELS_MAX = 64 };
    const char **levels = kn_arena_alloc(arena, sizeof(*levels));
    size_t n = 0, cap = 1;
    for (;;) {
        const char *end = text.len ? memchr(text.ptr, SEPARATOR, text.len) : NULL;
        size_t len = end ? (size_t)(end - text.ptr) : text.len;
        if (!len || n == LEVELS_MAX)
            return kn_err_set(err, KN_E_INVAL,
                              len ? "Invalid namespace: more than %d levels"
                                  : "Invalid namespace: an empty level",
                              LEVELS_MAX);
        if (n == cap) {
            const char **more = kn_arena_alloc(arena, LEVELS_MAX * sizeof(*more));
            memcpy(more, levels, n * sizeof(*more));
            levels = more;
            cap = LEVELS_MAX;
        }
        levels[n++] = end ? kn_arena_strndup(arena, text.ptr, len) : text.ptr;
        if (!end)
            break;
        text.ptr += len + 1;
        text.len -= len + 1;
    }
    *ret = (KnNamespace){levels, n};
    return KN_OK;
}

/* ---- matching ---------------------------------------------------------------------------------
 */

typedef struct Captured {
    const KnStr *ns, *name, *arg;
} Captured;

/* The next segment of a pattern, cut off from it. */
static KnStr next_part(const char **pattern)
{
    const char *from = *pattern + 1, *end = strchrnul(from, '/');
    *pattern = end;
    return (KnStr){from, (size_t)(end - from)};
}

static bool match_part(KnStr part, const KnStr *segment, Captured *ret)
{
    if (part.ptr[0] != '{')
        return kn_str_eq(part, *segment);
    switch (part.ptr[1]) {
    case 'n':
        ret->ns = segment;
        return true;
    case 't':
    case 'v':
        ret->name = segment;
        return true;
    default:
        ret->arg = segment;
        return true;
    }
}

/* {prefix} is passed over: `with_prefix` says that the path has one at its second segment. */
static bool match(const char *pattern, const KnHttpTarget *target, bool with_prefix, Captured *ret)
{
    size_t at = 0;
    *ret = (Captured){0};
    while (*pattern) {
        KnStr part = next_part(&pattern);
        if (kn_str_eq(part, KN_STR_LIT("{prefix}"))) {
            at += with_prefix;
            continue;
        }
        if (at == target->n_segments || !match_part(part, &target->segments[at], ret))
            return false;
        at++;
    }
    return at == target->n_segments;
}

static KnCode take_captured(KnRestCall *call, const Captured *found, KnErr *err)
{
    if (found->ns)
        KN_TRY(kn_rest_namespace_parse(call->arena, *found->ns, &call->ns, err));
    if (found->name && !found->name->len)
        return kn_err_set(err, KN_E_INVAL, "Invalid name: it is empty");
    call->ident =
        (KnTableIdent){call->ns.levels, call->ns.n_levels, found->name ? found->name->ptr : NULL};
    call->arg = found->arg ? found->arg->ptr : NULL;
    return KN_OK;
}

static const KnRestOp *find(KnRestCall *call, bool with_prefix, Captured *found,
                            const char **ret_allowed)
{
    const KnHttpTarget *target = &call->req->target;
    KnStr method = call->req->method;
    const KnRestOp *as_get = NULL;
    Captured at = {0};
    for (size_t i = 0; i < kn_rest_n_ops; i++) {
        const KnRestOp *op = &kn_rest_ops[i];
        if (!match(op->path, target, with_prefix && strstr(op->path, "{prefix}"), &at))
            continue;
        if (kn_str_eq(method, kn_str(op->method))) {
            *found = at;
            return op;
        }
        if (!strcmp(op->method, "GET") && kn_str_eq(method, KN_STR_LIT("HEAD"))) {
            as_get = op;
            *found = at;
        }
        *ret_allowed = *ret_allowed
                           ? kn_arena_printf(call->arena, "%s, %s", *ret_allowed, op->method)
                           : op->method;
    }
    return as_get;
}

const KnRestOp *kn_rest_route(KnRestCall *call, const char **ret_allowed, KnErr *err)
{
    const KnHttpTarget *target = &call->req->target;
    bool maybe_prefix =
        target->n_segments > 2 && kn_str_eq(target->segments[1], kn_str(call->rest->ctx.catalog));
    Captured found = {0};
    *ret_allowed = NULL;
    const KnRestOp *op = find(call, false, &found, ret_allowed);
    if (!op && maybe_prefix)
        op = find(call, true, &found, ret_allowed);
    if (op && take_captured(call, &found, err) != KN_OK)
        *ret_allowed = NULL;
    return op;
}
