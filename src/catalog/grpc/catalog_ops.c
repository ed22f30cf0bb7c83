/* SPDX-License-Identifier: Apache-2.0 */
/*
 * catalog_ops.c - the methods of skade.katalog.v1.Catalog on the core of a catalog.
 *
 * Texts of JSON come one in each element; they are put into one array and read by the same parsers
 * as those of REST.
 */
#include "base/json.h"
#include "catalog/grpc/front_internal.h"
#include "catalog/server/places.h"

static KnNamespace namespace_of(const KnRpc *rpc)
{
    return (KnNamespace){rpc->req->levels.items, rpc->req->levels.n};
}

static KnTableIdent table_of(const KnRpc *rpc)
{
    return (KnTableIdent){
        .levels = rpc->req->levels.items, .n_levels = rpc->req->levels.n, .name = rpc->req->name};
}

/* Answers have no more fields than this protocol has; nothing is configured by it. */
static KnCode config(KnRpc *rpc, KnErr *err)
{
    (void)err;
    const KnFrontContext *ctx = &rpc->front->ctx;
    KnWirePair *pairs = kn_arena_zalloc(rpc->arena, (ctx->n_client_config + 1) * sizeof(*pairs));
    for (size_t i = 0; i < ctx->n_client_config; ++i)
        pairs[i] = (KnWirePair){ctx->client_config[i].name, ctx->client_config[i].value};
    rpc->answer.defaults = (KnPbMessages){pairs, ctx->n_client_config};
    return KN_OK;
}

/* ---- namespaces ---- */

static KnWireIdent child_of(KnRpc *rpc, const char *name)
{
    KnPbTexts parent = rpc->req->levels;
    const char **levels = kn_arena_alloc(rpc->arena, (parent.n + 1) * sizeof(*levels));
    for (size_t i = 0; i < parent.n; ++i)
        levels[i] = parent.items[i];
    levels[parent.n] = name;
    return (KnWireIdent){.levels = {levels, parent.n + 1}};
}

static KnCode list_namespaces(KnRpc *rpc, KnErr *err)
{
    KnNamespace parent = namespace_of(rpc);
    KnNameList list;
    KN_TRY(kn_core_namespace_list(rpc->front->ctx.core, rpc->arena, &parent, NULL, &list, err));
    KnWireIdent *items = kn_arena_alloc(rpc->arena, (list.n + 1) * sizeof(*items));
    size_t n = 0;
    for (size_t i = 0; i < list.n; ++i) {
        items[n] = child_of(rpc, list.names[i]);
        KnNamespace child = {items[n].levels.items, items[n].levels.n};
        n += kn_principal_sees(rpc->who, &child);
    }
    rpc->answer.namespaces = (KnPbMessages){items, n};
    return KN_OK;
}

static KnPbMessages pairs_of(KnArena *arena, const json_t *object)
{
    size_t n = 0;
    KnWirePair *pairs = kn_arena_zalloc(arena, (json_object_size(object) + 1) * sizeof(*pairs));
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)object, key, value) pairs[n++] =
        (KnWirePair){kn_arena_strdup(arena, key), kn_arena_strdup(arena, json_string_value(value))};
    return (KnPbMessages){pairs, n};
}

static KnCode fill_namespace(KnRpc *rpc, KnErr *err)
{
    KnNamespace ns = namespace_of(rpc);
    KN_JSON_AUTO properties = NULL;
    KN_TRY(kn_core_namespace_get(rpc->front->ctx.core, &ns, &properties, err));
    rpc->answer.levels = rpc->req->levels;
    rpc->answer.properties = pairs_of(rpc->arena, properties);
    return KN_OK;
}

static KnCode create_namespace(KnRpc *rpc, KnErr *err)
{
    KnNamespace ns = namespace_of(rpc);
    KN_JSON_AUTO properties = json_object();
    const KnWirePair *pairs = rpc->req->properties.items;
    for (size_t i = 0; i < rpc->req->properties.n; ++i)
        if (json_object_set_new(properties, pairs[i].key, json_string(pairs[i].value)) != 0)
            return kn_err_set(err, KN_E_NOMEM, "no memory for the namespace's properties");
    KN_TRY(kn_core_namespace_create(rpc->front->ctx.core, &ns, properties, err));
    rpc->answer.levels = rpc->req->levels;
    rpc->answer.properties = rpc->req->properties;
    return KN_OK;
}

static KnCode namespace_exists(KnRpc *rpc, KnErr *err)
{
    KnNamespace ns = namespace_of(rpc);
    return kn_core_namespace_exists(rpc->front->ctx.core, &ns, &rpc->answer.exists, err);
}

/* ---- tables ---- */

static KnCode list_tables(KnRpc *rpc, KnErr *err)
{
    KnNamespace ns = namespace_of(rpc);
    KnNameList list;
    KN_TRY(kn_core_table_list(rpc->front->ctx.core, rpc->arena, &ns, NULL, &list, err));
    KnWireIdent *items = kn_arena_alloc(rpc->arena, (list.n + 1) * sizeof(*items));
    for (size_t i = 0; i < list.n; ++i)
        items[i] = (KnWireIdent){rpc->req->levels, list.names[i]};
    rpc->answer.tables = (KnPbMessages){items, list.n};
    return KN_OK;
}

static void show_document(KnRpc *rpc)
{
    rpc->answer.metadata_location = kn_document_location(rpc->doc);
    rpc->answer.metadata_json = kn_document_bytes(rpc->doc);
}

static KnCode load_table(KnRpc *rpc, KnErr *err)
{
    KnTableIdent ident = table_of(rpc);
    KN_TRY(kn_core_table_load(rpc->front->ctx.core, &ident, &rpc->doc, err));
    show_document(rpc);
    return KN_OK;
}

static KnCode table_exists(KnRpc *rpc, KnErr *err)
{
    KnTableIdent ident = table_of(rpc);
    return kn_core_table_exists(rpc->front->ctx.core, &ident, &rpc->answer.exists, err);
}

static KnCode drop_table(KnRpc *rpc, KnErr *err)
{
    KnTableIdent ident = table_of(rpc);
    return kn_core_table_drop(rpc->front->ctx.core, &ident, err);
}

static KnCode create_table(KnRpc *rpc, KnErr *err)
{
    KnTableIdent ident = table_of(rpc);
    const KnWireRequest *req = rpc->req;
    KN_JSON_AUTO schema = NULL;
    KnCode rc = kn_json_parse(req->schema_json, strlen(req->schema_json), &schema, err);
    if (rc != KN_OK)
        return kn_err_wrap(err, KN_E_INVAL, "schema_json");
    KN_JSON_AUTO body = json_object();
    json_object_set_new(body, "name", json_string(req->name));
    json_object_set(body, "schema", schema);
    if (req->location[0])
        json_object_set_new(body, "location", json_string(req->location));
    KnCreateRequest create;
    KN_TRY(kn_create_request_parse(rpc->arena, body, &create, err));
    KN_TRY(
        kn_core_table_create(rpc->front->ctx.core, &ident, &create.create, false, &rpc->doc, err));
    show_document(rpc);
    return KN_OK;
}

static KnCode join_json(const KnPbTexts *texts, const char *what, json_t **ret, KnErr *err)
{
    KN_JSON_AUTO array = json_array();
    for (size_t i = 0; i < texts->n; ++i) {
        json_t *item = NULL;
        KnCode rc = kn_json_parse(texts->items[i], strlen(texts->items[i]), &item, err);
        if (rc != KN_OK)
            return kn_err_wrap(err, KN_E_INVAL, "%s[%zu]", what, i);
        if (json_array_append_new(array, item) != 0)
            return kn_err_set(err, KN_E_NOMEM, "no memory for the commit's %s", what);
    }
    *ret = json_incref(array);
    return KN_OK;
}

static KnCode commit_table(KnRpc *rpc, KnErr *err)
{
    KnTableIdent ident = table_of(rpc);
    KN_JSON_AUTO requirements = NULL;
    KN_JSON_AUTO updates = NULL;
    KN_TRY(join_json(&rpc->req->requirements, "requirements_json", &requirements, err));
    KN_TRY(join_json(&rpc->req->updates, "updates_json", &updates, err));
    KnTableCommit commit = {0};
    KN_TRY(kn_requirements_parse(rpc->arena, requirements, &commit.requirements,
                                 &commit.n_requirements, err));
    KN_TRY(kn_updates_parse(rpc->arena, updates, &commit.updates, &commit.n_updates, err));
    const KnPlaceAsker asker = {rpc->front->ctx.core, rpc->arena, rpc->who, &ident};
    KN_TRY(kn_place_check_commit(&asker, &commit, err));
    KN_TRY(kn_core_table_commit(rpc->front->ctx.core, &ident, &commit, &rpc->doc, err));
    show_document(rpc);
    return KN_OK;
}

/* ---- the log ---- */

static KnCode last_commit(KnRpc *rpc, KnErr *err)
{
    return kn_core_commits_last(rpc->front->ctx.core, &rpc->answer.number, err);
}

#define OP(method) KN_WIRE_CATALOG method

const KnRpcOp kn_grpc_catalog_ops[] = {
    {.path = OP("Config"),
     .operation = "getConfig",
     .request = &kn_wire_config_request,
     .answer = &kn_wire_config,
     .run = config},
    {.path = OP("ListNamespaces"),
     .operation = "listNamespaces",
     .request = &kn_wire_namespace_request,
     .answer = &kn_wire_namespaces,
     .run = list_namespaces},
    {.path = OP("CreateNamespace"),
     .operation = "createNamespace",
     .request = &kn_wire_create_namespace,
     .answer = &kn_wire_namespace,
     .right = KN_RIGHT_ADMIN,
     .needs_namespace = true,
     .changes = true,
     .run = create_namespace},
    {.path = OP("NamespaceExists"),
     .operation = "namespaceExists",
     .request = &kn_wire_namespace_request,
     .answer = &kn_wire_exists,
     .right = KN_RIGHT_READ,
     .needs_namespace = true,
     .run = namespace_exists},
    {.path = OP("GetNamespace"),
     .operation = "loadNamespaceMetadata",
     .request = &kn_wire_namespace_request,
     .answer = &kn_wire_namespace,
     .right = KN_RIGHT_READ,
     .needs_namespace = true,
     .run = fill_namespace},
    {.path = OP("ListTables"),
     .operation = "listTables",
     .request = &kn_wire_namespace_request,
     .answer = &kn_wire_tables,
     .right = KN_RIGHT_READ,
     .needs_namespace = true,
     .run = list_tables},
    {.path = OP("CreateTable"),
     .operation = "createTable",
     .request = &kn_wire_create_table,
     .answer = &kn_wire_table,
     .right = KN_RIGHT_WRITE,
     .needs_namespace = true,
     .needs_table = true,
     .changes = true,
     .run = create_table},
    {.path = OP("LoadTable"),
     .operation = "loadTable",
     .request = &kn_wire_table_request,
     .answer = &kn_wire_table,
     .right = KN_RIGHT_READ,
     .needs_namespace = true,
     .needs_table = true,
     .run = load_table},
    {.path = OP("TableExists"),
     .operation = "tableExists",
     .request = &kn_wire_table_request,
     .answer = &kn_wire_exists,
     .right = KN_RIGHT_READ,
     .needs_namespace = true,
     .needs_table = true,
     .run = table_exists},
    {.path = OP("DropTable"),
     .operation = "dropTable",
     .request = &kn_wire_table_request,
     .answer = &kn_wire_empty,
     .right = KN_RIGHT_WRITE,
     .needs_namespace = true,
     .needs_table = true,
     .changes = true,
     .run = drop_table},
    {.path = OP("CommitTable"),
     .operation = "updateTable",
     .request = &kn_wire_commit_table,
     .answer = &kn_wire_table,
     .right = KN_RIGHT_WRITE,
     .needs_namespace = true,
     .needs_table = true,
     .changes = true,
     .run = commit_table},
    {.path = "/knut.catalog.v1.Commits/Last",
     .operation = "lastCommit",
     .request = &kn_wire_empty_request,
     .answer = &kn_wire_last,
     .run = last_commit},
};
const size_t kn_grpc_n_catalog_ops = sizeof(kn_grpc_catalog_ops) / sizeof(kn_grpc_catalog_ops[0]);
