/* SPDX-License-Identifier: Apache-2.0 */
/*
 * client.c - a catalog behind skade.katalog.v1.Catalog, as knut or skade-katalog serve it.
 *
 * The protocol carries metadata documents, so that a load reads no file. It has no words for
 * renaming, registering, partition specs, sort orders and properties of new tables: each is refused
 * by name, never left out. One thread at a time, as all catalogs.
 */
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/random.h"
#include "base/stop.h"
#include "catalog/catalog.h"
#include "catalog/commit_send.h"
#include "catalog/grpc/wire.h"
#include "iceberg/metadata/commit_json.h"
#include "net/grpc_client.h"
#include "storage/s3/s3.h"

enum { READ_TRIES = 4, PAUSE_US = 50000, DEPTH_MAX = 64 };
#define REQUEST_MAX ((size_t)512 << 20)

typedef struct GrpcCatalog {
    KnCatalog base;
    KnArena *arena;
    KnGrpcClient *client;
    KnS3Options s3;
    KnFileIO *io; /* of the tables' files, by the scheme of the first location that came */
    KnRng rng;
    const char *id;
} GrpcCatalog;

typedef struct Rpc {
    const char *method;
    const KnPbMessage *request, *answer;
    const char *what; /* "load table a.b" */
    bool changes;     /* sent once; else again after a failure that may pass */
} Rpc;

/* What a call came to: texts of the answer live in arena, bytes in http. */
typedef struct Exchange {
    KnArena *arena;
    KnGrpcAnswer http;
    KnWireAnswer answer;
} Exchange;

static void exchange_done(Exchange *ex)
{
    kn_grpc_answer_done(&ex->http);
    ex->arena = kn_arena_free(ex->arena);
}
#define EXCHANGE_AUTO __attribute__((cleanup(exchange_done))) Exchange

static const char *grpc_id(const KnCatalog *base)
{
    return ((const GrpcCatalog *)base)->id;
}

static const char *saying(KnArena *arena, const char *verb, const KnTableIdent *ident)
{
    return kn_arena_printf(arena, "%s %s", verb, kn_table_ident_format(arena, ident));
}

/* ---- calls ---- */

static KnCode failure(const GrpcCatalog *cat, const Rpc *rpc, const KnGrpcStatus *status,
                      KnErr *err)
{
    KnCode code = kn_wire_failure(status->code, rpc->changes);
    (void)kn_err_set(err, code, "%s: %s answers %s: %s", rpc->what, kn_grpc_client_uri(cat->client),
                     kn_grpc_code_name(status->code), status->text);
    if (err)
        err->retriable = status->code == KN_GRPC_UNAVAILABLE;
    return code;
}

static KnCode call_once(GrpcCatalog *cat, const Rpc *rpc, const KnBuf *framed, KnGrpcAnswer *answer,
                        KnErr *err)
{
    char path[80];
    (void)snprintf(path, sizeof(path), KN_WIRE_CATALOG "%s", rpc->method);
    KnCode rc = kn_grpc_client_call(cat->client, path, framed, answer, err);
    if (rc != KN_OK)
        return kn_err_wrap(err, rpc->changes ? rc : kn_http_settle(rc, err), "%s", rpc->what);
    if (answer->status.code != KN_GRPC_OK)
        return failure(cat, rpc, &answer->status, err);
    return KN_OK;
}

static KnCode call(GrpcCatalog *cat, const Rpc *rpc, const KnWireRequest *req, Exchange *ex,
                   KnErr *err)
{
    KN_BUF_AUTO framed;
    kn_buf_init(&framed, REQUEST_MAX);
    size_t begin = kn_grpc_frame_begin(&framed);
    kn_pb_encode(rpc->request, req, &framed);
    KN_TRY(kn_buf_check(&framed, err));
    kn_grpc_frame_end(&framed, begin);
    KnErr why = {0};
    KnCode rc = call_once(cat, rpc, &framed, &ex->http, &why);
    for (int i = 1; i < READ_TRIES && !rpc->changes && rc == KN_E_IO && why.retriable; ++i) {
        if (kn_stop_wait((int64_t)kn_rng_below(&cat->rng, PAUSE_US << i)))
            break;
        kn_grpc_answer_done(&ex->http);
        ex->http = (KnGrpcAnswer){0};
        rc = call_once(cat, rpc, &framed, &ex->http, &why);
    }
    if (rc != KN_OK && err)
        *err = why;
    KN_TRY(rc);
    rc = kn_pb_decode(rpc->answer, ex->http.message, ex->arena, &ex->answer, err);
    if (rc != KN_OK)
        return kn_err_wrap(err, rpc->changes ? KN_E_UNKNOWN : rc, "%s", rpc->what);
    return KN_OK;
}

static KnWireRequest request_of(const KnTableIdent *ident)
{
    return (KnWireRequest){.levels = {ident->levels, ident->n_levels}, .name = ident->name};
}

/* ---- tables ---- */

static KnCode find_io(GrpcCatalog *cat, const char *location, KnErr *err)
{
    return cat->io ? KN_OK : kn_io_open_with(kn_str(location), &cat->s3, &cat->io, err);
}

/* Servers that keep a document compressed may send it so, or only say where it is. */
static KnCode parse_document(GrpcCatalog *cat, const KnWireAnswer *answer, const char *what,
                             KnMetadata **ret, KnErr *err)
{
    if (!answer->metadata_location[0])
        return kn_err_set(err, KN_E_CORRUPT, "%s: the answer has no metadata_location", what);
    KN_TRY(find_io(cat, answer->metadata_location, err));
    if (answer->metadata_json.len)
        return kn_metadata_parse(answer->metadata_json, answer->metadata_location, ret, err);
    KN_BUF_AUTO bytes;
    kn_buf_init(&bytes, REQUEST_MAX);
    KN_TRY(
        kn_io_read_all(cat->io, kn_str(answer->metadata_location), REQUEST_MAX - 1, &bytes, err));
    return kn_metadata_parse((KnStr){bytes.data, bytes.len}, answer->metadata_location, ret, err);
}

static KnCode take_table(GrpcCatalog *cat, const KnTableIdent *ident, const KnWireAnswer *answer,
                         const char *what, KnTable **ret, KnErr *err)
{
    KnMetadata *md = NULL;
    KN_TRY(parse_document(cat, answer, what, &md, err));
    *ret = kn_table_new(&cat->base, ident, cat->io, md, answer->metadata_location);
    return KN_OK;
}

static KnCode grpc_load(KnCatalog *base, const KnTableIdent *ident, KnTable **ret, KnErr *err)
{
    GrpcCatalog *cat = (GrpcCatalog *)base;
    EXCHANGE_AUTO ex = {.arena = kn_arena_new(0)};
    KnWireRequest req = request_of(ident);
    Rpc rpc = {"LoadTable", &kn_wire_table_request, &kn_wire_table,
               saying(ex.arena, "load table", ident), false};
    KN_TRY(call(cat, &rpc, &req, &ex, err));
    return take_table(cat, ident, &ex.answer, rpc.what, ret, err);
}

static KnCode check_create(const KnCreateTable *create, KnErr *err)
{
    const char *what = NULL;
    if (create->spec && create->spec->n_fields)
        what = "a partition spec";
    else if (create->sort_order && create->sort_order->n_fields)
        what = "a sort order";
    else if (json_object_size(create->properties))
        what = "table properties";
    else if (create->format_version && create->format_version != 2)
        what = "a format version other than 2";
    if (!what)
        return KN_OK;
    return kn_err_set(err, KN_E_UNSUPPORTED,
                      "the gRPC protocol carries a schema and a location for a new table, not %s: "
                      "create it over REST, or set it with 'knut table alter' afterwards",
                      what);
}

static KnCode make_namespace(KnCatalog *base, const char *const *levels, size_t n, KnErr *err)
{
    GrpcCatalog *cat = (GrpcCatalog *)base;
    for (size_t i = 1; i <= n; ++i) {
        EXCHANGE_AUTO ex = {.arena = kn_arena_new(0)};
        KnWireRequest req = {.levels = {levels, i}};
        KnTableIdent shown = {.levels = levels, .n_levels = i - 1, .name = levels[i - 1]};
        Rpc rpc = {"CreateNamespace", &kn_wire_create_namespace, &kn_wire_namespace,
                   saying(ex.arena, "create namespace", &shown), true};
        KnErr why = {0};
        KnCode rc = call(cat, &rpc, &req, &ex, &why);
        if (rc == KN_OK || rc == KN_E_EXISTS)
            continue;
        if (err)
            *err = why;
        return rc;
    }
    return KN_OK;
}

/* NOT_FOUND says here that the namespace is missing: it is made, and the table then. */
static KnCode send_create(GrpcCatalog *cat, const Rpc *rpc, const KnWireRequest *req, Exchange *ex,
                          KnErr *err)
{
    KnErr why = {0};
    KnCode rc = call(cat, rpc, req, ex, &why);
    if (rc == KN_E_NOTFOUND) {
        KN_TRY(make_namespace(&cat->base, req->levels.items, req->levels.n, err));
        kn_grpc_answer_done(&ex->http);
        ex->http = (KnGrpcAnswer){0};
        return call(cat, rpc, req, ex, err);
    }
    if (rc != KN_OK && err)
        *err = why;
    return rc;
}

static KnCode grpc_create(KnCatalog *base, const KnTableIdent *ident, const KnCreateTable *create,
                          KnTable **ret, KnErr *err)
{
    GrpcCatalog *cat = (GrpcCatalog *)base;
    EXCHANGE_AUTO ex = {.arena = kn_arena_new(0)};
    KN_TRY(check_create(create, err));
    KN_JSON_AUTO schema = kn_schema_to_json(create->schema);
    KN_BUF_AUTO text;
    kn_buf_init(&text, REQUEST_MAX);
    kn_json_dump(&text, schema);
    KN_TRY(kn_buf_check(&text, err));
    KnWireRequest req = request_of(ident);
    req.schema_json = text.data;
    req.location = create->location;
    Rpc rpc = {"CreateTable", &kn_wire_create_table, &kn_wire_table,
               saying(ex.arena, "create table", ident), true};
    KN_TRY(send_create(cat, &rpc, &req, &ex, err));
    return take_table(cat, ident, &ex.answer, rpc.what, ret, err);
}

static KnCode grpc_drop(KnCatalog *base, const KnTableIdent *ident, KnErr *err)
{
    GrpcCatalog *cat = (GrpcCatalog *)base;
    EXCHANGE_AUTO ex = {.arena = kn_arena_new(0)};
    KnWireRequest req = request_of(ident);
    Rpc rpc = {"DropTable", &kn_wire_table_request, &kn_wire_empty,
               saying(ex.arena, "drop table", ident), true};
    return call(cat, &rpc, &req, &ex, err);
}

static KnCode no_words(const char *verb, KnErr *err)
{
    return kn_err_set(err, KN_E_UNSUPPORTED,
                      "the gRPC protocol cannot %s a table: use the catalog over REST", verb);
}

static KnCode grpc_register(KnCatalog *base, const KnTableIdent *ident, const char *location,
                            KnTable **ret, KnErr *err)
{
    (void)base;
    (void)ident;
    (void)location;
    (void)ret;
    return no_words("register", err);
}

static KnCode grpc_rename(KnCatalog *base, const KnTableIdent *from, const KnTableIdent *to,
                          KnErr *err)
{
    (void)base;
    (void)from;
    (void)to;
    return no_words("rename", err);
}

/* ---- commits ---- */

static KnCode text_of(KnArena *arena, json_t *json, const char **ret, KnErr *err)
{
    KN_JSON_AUTO doc = json;
    KN_BUF_AUTO text;
    kn_buf_init(&text, REQUEST_MAX);
    kn_json_dump(&text, doc);
    KN_TRY(kn_buf_check(&text, err));
    *ret = kn_arena_strndup(arena, text.data, text.len);
    return KN_OK;
}

static KnCode put_commit(KnArena *arena, const KnTableCommit *commit, KnWireRequest *req,
                         KnErr *err)
{
    const char **requirements =
        kn_arena_alloc(arena, (commit->n_requirements + 1) * sizeof(*requirements));
    const char **updates = kn_arena_alloc(arena, (commit->n_updates + 1) * sizeof(*updates));
    for (size_t i = 0; i < commit->n_requirements; ++i) {
        json_t *json = NULL;
        if (!kn_requirement_is_rest(&commit->requirements[i]))
            continue;
        KN_TRY(kn_requirement_to_json(&commit->requirements[i], &json, err));
        KN_TRY(text_of(arena, json, &requirements[req->requirements.n++], err));
    }
    for (size_t i = 0; i < commit->n_updates; ++i) {
        json_t *json = NULL;
        KN_TRY(kn_update_to_json(&commit->updates[i], &json, err));
        KN_TRY(text_of(arena, json, &updates[req->updates.n++], err));
    }
    req->requirements.items = requirements;
    req->updates.items = updates;
    return KN_OK;
}

static KnCode send_commit(void *arg, KnTable *tbl, const KnTableCommit *sent, KnErr *err)
{
    GrpcCatalog *cat = arg;
    EXCHANGE_AUTO ex = {.arena = kn_arena_new(0)};
    KnWireRequest req = request_of(&tbl->ident);
    Rpc rpc = {"CommitTable", &kn_wire_commit_table, &kn_wire_table, "commit", true};
    KN_TRY(put_commit(ex.arena, sent, &req, err));
    KN_TRY(call(cat, &rpc, &req, &ex, err));
    KnMetadata *md = NULL;
    KnCode rc = parse_document(cat, &ex.answer, rpc.what, &md, err);
    if (rc != KN_OK) /* done, and not told what it came to */
        return kn_err_wrap(err, KN_E_UNKNOWN, "commit");
    kn_table_set_metadata(tbl, md, ex.answer.metadata_location);
    return KN_OK;
}

static KnCode grpc_commit(KnCatalog *base, KnTable *tbl, const KnTableCommit *commit, KnErr *err)
{
    KnCommitSend how = {.tbl = tbl, .commit = commit, .send = send_commit, .arg = base};
    return kn_commit_send(&how, err);
}

/* ---- lists ---- */

typedef struct Listing {
    GrpcCatalog *cat;
    KnTableListFn fn;
    void *arg;
} Listing;

static KnCode list_tables(const Listing *listing, const KnPbTexts *levels, KnErr *err)
{
    EXCHANGE_AUTO ex = {.arena = kn_arena_new(0)};
    KnWireRequest req = {.levels = *levels};
    Rpc rpc = {"ListTables", &kn_wire_namespace_request, &kn_wire_tables, "list tables", false};
    KN_TRY(call(listing->cat, &rpc, &req, &ex, err));
    const KnWireIdent *tables = ex.answer.tables.items;
    for (size_t i = 0; i < ex.answer.tables.n; ++i) {
        KnTableIdent ident = {.levels = tables[i].levels.items,
                              .n_levels = tables[i].levels.n,
                              .name = tables[i].name};
        KN_TRY(listing->fn(listing->arg, &ident, err));
    }
    return KN_OK;
}

/* Children of the namespace and what is in them; a server that answers with more levels than asked
 * for would lead around in circles without the limit. */
static KnCode visit(const Listing *listing, const KnPbTexts *parent, KnErr *err)
{
    if (parent->n >= DEPTH_MAX)
        return kn_err_set(err, KN_E_CORRUPT, "list tables: namespaces of more than %d levels",
                          DEPTH_MAX);
    EXCHANGE_AUTO ex = {.arena = kn_arena_new(0)};
    KnWireRequest req = {.levels = *parent};
    Rpc rpc = {"ListNamespaces", &kn_wire_namespace_request, &kn_wire_namespaces, "list namespaces",
               false};
    KN_TRY(call(listing->cat, &rpc, &req, &ex, err));
    const KnWireIdent *found = ex.answer.namespaces.items;
    for (size_t i = 0; i < ex.answer.namespaces.n; ++i) {
        if (found[i].levels.n != parent->n + 1)
            continue; /* no child: some servers list all levels at the top */
        KN_TRY(list_tables(listing, &found[i].levels, err));
        KN_TRY(visit(listing, &found[i].levels, err));
    }
    return KN_OK;
}

static KnCode grpc_list(KnCatalog *base, KnTableListFn fn, void *arg, KnErr *err)
{
    Listing listing = {(GrpcCatalog *)base, fn, arg};
    KnPbTexts top = {0};
    return visit(&listing, &top, err);
}

/* ---- opening and closing ---- */

static void grpc_close(KnCatalog *base)
{
    GrpcCatalog *cat = (GrpcCatalog *)base;
    cat->io = kn_io_close(cat->io);
    cat->client = kn_grpc_client_free(cat->client);
    cat->arena = kn_arena_free(cat->arena);
    free(cat);
}

static const KnCatalogOps grpc_ops = {
    .kind = "grpc",
    .read_only = false,
    .id = grpc_id,
    .load = grpc_load,
    .create = grpc_create,
    .commit = grpc_commit,
    .drop = grpc_drop,
    .register_table = grpc_register,
    .rename = grpc_rename,
    .list = grpc_list,
    .create_namespace = make_namespace,
    .close = grpc_close,
};

/* Asked at once, so that a wrong address or token is told before work begins. */
static KnCode greet(GrpcCatalog *cat, KnErr *err)
{
    EXCHANGE_AUTO ex = {.arena = kn_arena_new(0)};
    KnWireRequest req = {0};
    Rpc rpc = {"Config", &kn_wire_config_request, &kn_wire_config, "open the catalog", false};
    return call(cat, &rpc, &req, &ex, err);
}

static const char *keep(GrpcCatalog *cat, const char *text)
{
    return text ? kn_arena_strdup(cat->arena, text) : NULL;
}

/* For the store of the tables' files, which is known when the first table is. */
static void keep_s3(GrpcCatalog *cat, const KnS3Options *given)
{
    cat->s3 = *given;
    cat->s3.endpoint = keep(cat, given->endpoint);
    cat->s3.region = keep(cat, given->region);
    cat->s3.ca_file = keep(cat, given->ca_file);
    cat->s3.bucket = keep(cat, given->bucket);
}

static KnCode fill(GrpcCatalog *cat, const KnLocator *loc, KnErr *err)
{
    const char *token = getenv("KNUT_GRPC_TOKEN");
    KnGrpcClientOptions opts = {.uri = loc->grpc.uri,
                                .token = token && token[0] ? token : NULL,
                                .ca_file = loc->grpc.ca,
                                .client_cert = loc->grpc.cert,
                                .client_key = loc->grpc.key};
    KN_TRY(kn_grpc_client_new(&opts, &cat->client, err));
    keep_s3(cat, &loc->s3);
    cat->id = kn_arena_printf(cat->arena, "grpc:%s", kn_grpc_client_uri(cat->client));
    return greet(cat, err);
}

KnCode kn_catalog_grpc_open(const KnLocator *loc, KnCatalog **ret, KnErr *err)
{
    GrpcCatalog *cat = calloc(1, sizeof(*cat));
    if (!cat)
        abort();
    cat->base.ops = &grpc_ops;
    cat->arena = kn_arena_new(0);
    cat->rng.state = (uint64_t)kn_random_id();
    KnCode rc = fill(cat, loc, err);
    if (rc == KN_OK)
        *ret = &cat->base;
    else
        grpc_close(&cat->base);
    return rc;
}
