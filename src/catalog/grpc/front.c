/* SPDX-License-Identifier: Apache-2.0 */
/*
 * front.c - the gRPC front of a served catalog: from a call to its operation and back.
 *
 * Operations that only read answer on the connection's own thread where the core reads without
 * waiting for a peer (local files, SQLite); the others run on worker threads, so that a commit's
 * fsync holds up nobody. Failures of a disk or a peer are logged here and told to the client
 * without their details, which may name what is none of its business.
 */
#include "catalog/grpc/front.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "catalog/grpc/front_internal.h"

enum { N_CODES = 17 }; /* of gRPC */

KnCode kn_grpc_authenticate(KnGrpcFront *front, KnGrpcCall *call, const KnPrincipal **ret,
                            KnErr *err)
{
    KnStr header = kn_grpc_call_metadata(call, "authorization");
    const char *text = header.ptr ? kn_arena_strndup(call->arena, header.ptr, header.len) : NULL;
    return kn_auth_check(front->ctx.auth, text, ret, err);
}

static KnCode check_names(const KnRpcOp *op, const KnWireRequest *req, KnErr *err)
{
    if (op->needs_namespace && !req->levels.n)
        return kn_err_set(err, KN_E_INVAL, "the request names no namespace");
    for (size_t i = 0; i < req->levels.n; ++i)
        if (!req->levels.items[i][0])
            return kn_err_set(err, KN_E_INVAL, "a level of the namespace is empty");
    if (op->needs_table && !req->name[0])
        return kn_err_set(err, KN_E_INVAL, "the request names no table");
    return KN_OK;
}

static KnCode check_right(const KnRpc *rpc, const KnRpcOp *op, KnErr *err)
{
    KnNamespace ns = {rpc->req->levels.items, rpc->req->levels.n};
    if (op->right == KN_RIGHT_NONE || kn_principal_right(rpc->who, &ns) >= op->right)
        return KN_OK;
    return kn_err_set(err, KN_E_REFUSED, "%s may not do this in this namespace",
                      kn_principal_name(rpc->who));
}

/* Decoded, allowed, done. *ret_code is set where the KnCode does not say it. */
static KnCode run(KnRpc *rpc, const KnRpcOp *op, KnGrpcCall *call, int *ret_code, KnErr *err)
{
    KnWireRequest *req = kn_arena_alloc(call->arena, sizeof(*req));
    *ret_code = KN_GRPC_UNAUTHENTICATED;
    KN_TRY(kn_grpc_authenticate(rpc->front, call, &rpc->who, err));
    *ret_code = KN_GRPC_INVALID_ARGUMENT;
    KN_TRY(kn_pb_decode(op->request, call->message, call->arena, req, err));
    rpc->req = req;
    KN_TRY(check_names(op, req, err));
    *ret_code = KN_GRPC_PERMISSION_DENIED;
    KN_TRY(check_right(rpc, op, err));
    *ret_code = KN_GRPC_OK;
    return op->run(rpc, err);
}

static const char *object_text(const KnRpc *rpc)
{
    if (!rpc->req || !rpc->req->levels.n)
        return "";
    KnTableIdent ident = {
        .levels = rpc->req->levels.items, .n_levels = rpc->req->levels.n, .name = rpc->req->name};
    if (rpc->req->name && rpc->req->name[0])
        return kn_table_ident_format(rpc->arena, &ident);
    ident.n_levels--;
    ident.name = ident.levels[ident.n_levels];
    return kn_table_ident_format(rpc->arena, &ident);
}

static void audit(const KnRpc *rpc, const KnRpcOp *op, const KnGrpcCall *call, int code,
                  int64_t began_us)
{
    bool refused = code == KN_GRPC_UNAUTHENTICATED || code == KN_GRPC_PERMISSION_DENIED;
    if (!rpc->front->ctx.audit || !(refused || op->changes))
        return;
    KnAuditEvent event = {.front = "grpc",
                          .operation = op->operation,
                          .principal = rpc->who ? kn_principal_name(rpc->who) : NULL,
                          .peer = call->peer,
                          .object = kn_str(object_text(rpc)),
                          .status = code,
                          .micros = kn_clock_mono_us() - began_us};
    kn_audit_write(rpc->front->ctx.audit, &event);
}

/* The same metrics as REST's; their status is the name of gRPC's code. */
static void count(KnGrpcFront *front, const KnRpcOp *op, int code, int64_t micros)
{
    size_t row = (size_t)(op - kn_grpc_catalog_ops);
    KnMetric *_Atomic *slot = &front->counts[row * N_CODES + (size_t)code % N_CODES];
    KnMetric *metric = atomic_load_explicit(slot, memory_order_acquire);
    if (!metric) {
        char labels[160];
        (void)snprintf(labels, sizeof(labels), "front=\"grpc\",operation=\"%s\",status=\"%s\"",
                       op->operation, kn_grpc_code_name(code));
        metric = kn_metric_get(KN_METRIC_COUNTER, "knut_catalog_requests_total", labels,
                               "Requests answered, by operation and class of status");
        atomic_store_explicit(slot, metric, memory_order_release);
    }
    kn_metric_add(metric, 1);
    kn_metric_add(front->micros[row], micros);
}

static void make_metrics(KnGrpcFront *front)
{
    front->counts = calloc(kn_grpc_n_catalog_ops * N_CODES, sizeof(*front->counts));
    front->micros = calloc(kn_grpc_n_catalog_ops, sizeof(KnMetric *));
    if (!front->counts || !front->micros)
        abort();
    for (size_t i = 0; i < kn_grpc_n_catalog_ops; ++i) {
        char labels[160];
        (void)snprintf(labels, sizeof(labels), "front=\"grpc\",operation=\"%s\"",
                       kn_grpc_catalog_ops[i].operation);
        front->micros[i] =
            kn_metric_get(KN_METRIC_COUNTER, "knut_catalog_request_microseconds_total", labels,
                          "Time from the first line of requests to the end of their answers");
    }
}

/* What a client is told of a failure of ours. */
static void hide_details(const KnRpcOp *op, int code, KnErr *err)
{
    if (code != KN_GRPC_INTERNAL && code != KN_GRPC_UNKNOWN && code != KN_GRPC_DATA_LOSS)
        return;
    kn_log(KN_LOG_WARN, "catalog", "request-failed", KN_F("front", "grpc"),
           KN_F("operation", op->operation), KN_F("error", err->msg));
    const char *told = code == KN_GRPC_UNKNOWN
                           ? "the commit may or may not have been applied: look before trying again"
                           : "the server could not do it; its log says why";
    (void)snprintf(err->msg, sizeof(err->msg), "%s", told);
}

static int run_operation(void *self, KnGrpcCall *call, KnBuf *out, KnErr *err)
{
    const KnRpcOp *op = call->method->arg;
    int64_t began_us = kn_clock_mono_us();
    KnRpc rpc = {.front = self, .arena = call->arena};
    int code = KN_GRPC_OK;
    KnCode rc = run(&rpc, op, call, &code, err);
    if (rc == KN_OK)
        kn_pb_encode(op->answer, &rpc.answer, out);
    else if (code == KN_GRPC_OK)
        code = kn_wire_code(rc, err);
    rpc.doc = kn_document_unref(rpc.doc);
    audit(&rpc, op, call, code, began_us);
    count(self, op, code, kn_clock_mono_us() - began_us);
    kn_debug("catalog", "request", KN_F("front", "grpc"), KN_F("operation", op->operation),
             KN_F("status", kn_grpc_code_name(code)), KN_FI("us", kn_clock_mono_us() - began_us));
    hide_details(op, code, err);
    return code;
}

/* ---- opening and closing ---- */

/* Those that are no operations of the catalog. */
static const KnGrpcMethod others[] = {
    {.path = "/grpc.health.v1.Health/Check",
     .kind = KN_GRPC_BLOCKING,
     .call = kn_grpc_check_health},
    {.path = "/grpc.health.v1.Health/Watch",
     .kind = KN_GRPC_FLOW,
     .call = kn_grpc_watch_health,
     .ended = kn_grpc_watch_ended},
    {.path = "/knut.catalog.v1.Commits/Watch",
     .kind = KN_GRPC_FLOW,
     .call = kn_grpc_watch_commits,
     .ended = kn_grpc_watch_ended},
    {.path = "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
     .kind = KN_GRPC_DIALOG,
     .call = kn_grpc_reflect},
    {.path = "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
     .kind = KN_GRPC_DIALOG,
     .call = kn_grpc_reflect},
};
enum { N_OTHERS = sizeof(others) / sizeof(others[0]) };

static void fill_methods(KnGrpcFront *front)
{
    size_t n = kn_grpc_n_catalog_ops;
    KnGrpcKind reads = front->ctx.quick_reads ? KN_GRPC_QUICK : KN_GRPC_BLOCKING;
    front->methods = calloc(n + N_OTHERS, sizeof(*front->methods));
    if (!front->methods)
        abort();
    memcpy(front->methods + n, others, sizeof(others));
    front->methods[n].kind = reads; /* of health */
    for (size_t i = 0; i < n; ++i) {
        const KnRpcOp *op = &kn_grpc_catalog_ops[i];
        front->methods[i] = (KnGrpcMethod){.path = op->path,
                                           .kind = op->changes ? KN_GRPC_BLOCKING : reads,
                                           .call = run_operation,
                                           .arg = op};
    }
}

static bool front_close(KnFront *base, int64_t wait_us)
{
    KnGrpcFront *front = (KnGrpcFront *)base;
    atomic_store(&front->closing, true);
    kn_grpc_server_shut(front->srv);
    kn_grpc_watcher_stop(front);
    bool all = kn_grpc_server_close(front->srv, wait_us);
    kn_grpc_watcher_done(front);
    free(front->methods);
    free((void *)front->counts);
    free((void *)front->micros);
    free(front);
    return all;
}

static KnCode front_open(const KnFrontContext *ctx, KnListen *listening, KnFront **ret, KnErr *err)
{
    KnGrpcFront *front = calloc(1, sizeof(*front));
    if (!front)
        abort();
    front->base.ops = &kn_front_grpc;
    front->ctx = *ctx;
    kn_grpc_watcher_init(front);
    fill_methods(front);
    make_metrics(front);
    KnGrpcService service = {front->methods, kn_grpc_n_catalog_ops + N_OTHERS, front};
    KnGrpcOptions opts = {.http = {.tls = ctx->tls, .max_body = ctx->max_body},
                          .services = &service,
                          .n_services = 1};
    front->srv = kn_grpc_server_new(&opts);
    KnCode rc = kn_grpc_server_listen(front->srv, listening, err);
    if (rc == KN_OK)
        *ret = &front->base;
    else
        (void)front_close(&front->base, 0);
    return rc;
}

const KnFrontOps kn_front_grpc = {.name = "grpc", .open = front_open, .close = front_close};
