/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rest.c - the REST front: a request's way from HTTP to an operation and back.
 *
 * admit() finds the operation and the caller, before a body is read; handle() decides where it runs
 * (quick reads, and a lone client's commits, on the thread that waits for connections, everything
 * else on the pool), reads the
 * body and runs it. A change with an Idempotency-Key runs once. done() counts, and writes the audit
 * log.
 */
#include <strings.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/log.h"
#include "catalog/server/rest_internal.h"

enum { STATUS_CLASSES = 6, PLAN_BYTES = 64 << 20, KEPT_BYTES = 64 << 20, FORM_MAX = 64 << 10 };
#define PLAN_LIFETIME_US INT64_C(600000000)

/* ---- CORS -------------------------------------------------------------------------------------
 */

static const char *allowed_origin(const KnRestCall *call)
{
    const KnFrontContext *ctx = &call->rest->ctx;
    const char *origin = ctx->n_cors_origins ? kn_httpd_request_header(call->req, "Origin") : NULL;
    for (size_t i = 0; origin && i < ctx->n_cors_origins; i++) {
        if (!strcmp(ctx->cors_origins[i], "*") || !strcmp(ctx->cors_origins[i], origin))
            return kn_arena_strdup(call->arena, origin);
    }
    return NULL;
}

static void add_cors(const KnRestCall *call)
{
    const char *origin = allowed_origin(call);
    if (!origin)
        return;
    kn_httpd_response_header(call->rsp, "Access-Control-Allow-Origin", origin);
    kn_httpd_response_header(call->rsp, "Access-Control-Expose-Headers", "ETag");
    kn_httpd_response_header(call->rsp, "Vary", "Origin");
}

/* OPTIONS of a path: what may be sent there; from an allowed origin, also to browsers. */
static void answer_options(KnRestCall *call, const char *allowed)
{
    call->rsp->status = 204;
    kn_httpd_response_header(call->rsp, "Allow",
                             kn_arena_printf(call->arena, "%s, OPTIONS", allowed));
    if (!allowed_origin(call))
        return;
    kn_httpd_response_header(call->rsp, "Access-Control-Allow-Methods", allowed);
    kn_httpd_response_header(call->rsp, "Access-Control-Allow-Headers",
                             "Authorization, Content-Type, Content-Encoding, Idempotency-Key, "
                             "If-None-Match, X-Iceberg-Access-Delegation");
    kn_httpd_response_header(call->rsp, "Access-Control-Max-Age", "600");
}

/* ---- before the body --------------------------------------------------------------------------
 */

static void refuse(KnRestCall *call, int status, const char *message)
{
    kn_rest_reply_error(call->arena, call->rsp, status, kn_rest_status_type(status), message);
}

static bool content_type_is(const KnRestCall *call, const char *wanted)
{
    const char *type = kn_httpd_request_header(call->req, "Content-Type");
    size_t len = strlen(wanted);
    return !type || (!strncasecmp(type, wanted, len) && strchr("; \t", type[len]));
}

static void check_caller(KnRestCall *call)
{
    KnErr err = {0};
    if (call->op->flags & KN_REST_OPEN)
        return;
    const char *authorization = kn_httpd_request_header(call->req, "Authorization");
    if (kn_auth_check(call->rest->ctx.auth, authorization, &call->who, &err) != KN_OK) {
        refuse(call, 401, err.msg);
        kn_httpd_response_header(call->rsp, "WWW-Authenticate", "Bearer");
    } else if (kn_rest_need(call, &call->ns, call->op->right, &err) != KN_OK) {
        refuse(call, 403, err.msg);
    }
}

/* The operation and the caller; or an answer. */
static void find_operation(KnRestCall *call)
{
    const char *allowed = NULL;
    KnErr err = {0};
    call->op = kn_rest_route(call, &allowed, &err);
    if (!call->op && !allowed) {
        refuse(call, 404, "there is nothing at this path");
    } else if (kn_str_eq(call->req->method, KN_STR_LIT("OPTIONS"))) {
        answer_options(call, allowed);
    } else if (!call->op) {
        refuse(call, 405, "this path does not take this method");
        kn_httpd_response_header(call->rsp, "Allow", allowed);
    } else if (!allowed && err.code != KN_OK) {
        refuse(call, 400, err.msg);
    } else if ((call->op->flags & KN_REST_JSON) && !content_type_is(call, "application/json")) {
        refuse(call, 415, "the body's Content-Type must be application/json");
    } else {
        check_caller(call);
    }
}

static size_t admit(void *arg, KnHttpdRequest *req, KnHttpdResponse *rsp)
{
    KnRest *rest = arg;
    KnRestCall *call = kn_arena_zalloc(req->arena, sizeof(*call));
    call->rest = rest;
    call->req = req;
    call->rsp = rsp;
    call->arena = req->arena;
    req->user = call;
    find_operation(call);
    if (rsp->status)
        add_cors(call);
    if (call->op && (call->op->flags & KN_REST_FORM))
        return FORM_MAX;
    return rest->ctx.max_body;
}

/* ---- the operation ----------------------------------------------------------------------------
 */

static KnCode read_body(KnRestCall *call, KnErr *err)
{
    if (call->op->flags & KN_REST_FORM)
        return kn_http_form_parse(call->arena, call->req->body, &call->form, &call->n_form, err);
    if (!(call->op->flags & KN_REST_JSON))
        return KN_OK;
    json_t *doc = NULL;
    KnCode rc = kn_json_parse(call->req->body.ptr, call->req->body.len, &doc, err);
    if (rc != KN_OK)
        return kn_err_set(err, KN_E_INVAL, "the body is not JSON: %s",
                          err->msg[0] ? kn_arena_strdup(call->arena, err->msg) : "");
    call->body = kn_rest_keep(call, doc);
    if (!json_is_object(doc))
        return kn_err_set(err, KN_E_INVAL, "the body is not a JSON object");
    return KN_OK;
}

static void run(KnRestCall *call)
{
    KnErr err = {0};
    KnCode rc = read_body(call, &err);
    if (rc != KN_OK) {
        refuse(call, 400, err.msg);
        return;
    }
    rc = call->op->fn(call, &err);
    if (rc != KN_OK) {
        err.code = rc;
        kn_rest_reply_failure(call, &err);
    }
}

static const char *etag_of(const KnHttpdResponse *rsp)
{
    for (size_t i = 0; i < rsp->n_headers; i++) {
        if (!strcmp(rsp->headers[i].name, "ETag"))
            return rsp->headers[i].value;
    }
    return NULL;
}

/* Who asks for what: another request under the same key is told from a repeated one by it. */
static uint64_t request_hash(const KnRestCall *call)
{
    uint64_t hash = kn_hash64(call->req->body.ptr, call->req->body.len, 0);
    const char *who = kn_principal_name(call->who);
    hash = kn_hash64(call->req->target.path.ptr, call->req->target.path.len, hash);
    hash = kn_hash64(who, strlen(who), hash);
    return kn_hash64(call->op->id, strlen(call->op->id), hash);
}

static void run_once(KnRestCall *call, const char *key)
{
    KnKeptAnswer kept = {0};
    KnErr err = {0};
    KnIdempotency *idem = call->rest->idempotency;
    if (kn_idempotency_begin(idem, call->arena, kn_str(key), request_hash(call), &kept, &err) !=
        KN_OK) {
        kn_rest_reply_failure(call, &err);
        return;
    }
    if (kept.entry) {
        run(call);
        kn_idempotency_end(idem, kept.entry, call->rsp->status, call->rsp->pieces,
                           call->rsp->n_pieces, etag_of(call->rsp));
        return;
    }
    call->rsp->status = kept.status;
    if (kept.body.len) {
        kn_httpd_response_header(call->rsp, "Content-Type", "application/json");
        kn_httpd_response_piece(call->rsp, kept.body);
    }
    if (kept.etag)
        kn_httpd_response_header(call->rsp, "ETag", kept.etag);
}

/* Whether it runs here, where connections wait: it comes out of memory and local files, or it is a
 * short commit that nobody else could be held up by. */
static bool is_quick(const KnRestCall *call, const char *key)
{
    unsigned flags = call->op->flags;
    if (call->op->fn == kn_rest_health)
        return true;
    if (!call->rest->ctx.quick_reads || (flags & KN_REST_WAITS))
        return false;
    return !(flags & KN_REST_CHANGES) || ((flags & KN_REST_BRIEF) && call->req->alone && !key);
}

static KnHttpdWhen handle(void *arg, KnHttpdRequest *req, KnHttpdResponse *rsp)
{
    (void)arg;
    KnRestCall *call = req->user;
    const KnRestOp *op = call->op;
    call->rsp = rsp;
    const char *key =
        op->flags & KN_REST_CHANGES ? kn_httpd_request_header(req, "Idempotency-Key") : NULL;
    if (!req->on_pool && !is_quick(call, key))
        return KN_HTTPD_LATER;
    if (key)
        run_once(call, key);
    else
        run(call);
    add_cors(call);
    return KN_HTTPD_NOW;
}

static void fail(void *arg, KnHttpdRequest *req, int status, const char *message,
                 KnHttpdResponse *rsp)
{
    (void)arg;
    kn_rest_reply_error(req->arena, rsp, status, kn_rest_status_type(status), message);
    if (req->user) {
        ((KnRestCall *)req->user)->rsp = rsp;
        add_cors(req->user);
    }
}

/* ---- after the answer -------------------------------------------------------------------------
 */

static void done(void *arg, const KnHttpdRequest *req, int status, int64_t bytes)
{
    KnRest *rest = arg;
    const KnRestCall *call = req->user;
    const KnRestOp *op = call ? call->op : NULL;
    int64_t micros = kn_clock_mono_us() - req->began_us;
    size_t row = op ? (size_t)(op - kn_rest_ops) : kn_rest_n_ops;
    kn_metric_add(rest->counts[row * STATUS_CLASSES + (size_t)(status / 100) % STATUS_CLASSES], 1);
    kn_metric_add(rest->micros[row], micros);
    kn_debug("catalog", "request", KN_F("operation", op ? op->id : "none"), KN_FI("status", status),
             KN_FI("bytes", bytes), KN_FI("us", micros));
    bool refused = status == 401 || status == 403;
    if (!rest->ctx.audit || !(refused || (op && (op->flags & KN_REST_CHANGES))))
        return;
    KnAuditEvent event = {
        .front = "rest",
        .operation = op ? op->id : "none",
        .principal = call && call->who ? kn_principal_name(call->who) : NULL,
        .peer = req->peer,
        .tls_subject = req->tls_subject,
        .object = req->target.path,
        .status = status,
        .micros = micros,
    };
    kn_audit_write(rest->ctx.audit, &event);
}

/* ---- the front --------------------------------------------------------------------------------
 */

static void make_metrics(KnRest *rest)
{
    static const char *const classes[STATUS_CLASSES] = {"none", "1xx", "2xx", "3xx", "4xx", "5xx"};
    size_t rows = kn_rest_n_ops + 1;
    rest->counts = kn_arena_zalloc(rest->arena, rows * STATUS_CLASSES * sizeof(*rest->counts));
    rest->micros = kn_arena_zalloc(rest->arena, rows * sizeof(*rest->micros));
    for (size_t i = 0; i < rows; i++) {
        const char *id = i < kn_rest_n_ops ? kn_rest_ops[i].id : "none";
        for (size_t c = 0; c < STATUS_CLASSES; c++)
            rest->counts[i * STATUS_CLASSES + c] = kn_metric_get(
                KN_METRIC_COUNTER, "knut_catalog_requests_total",
                kn_arena_printf(rest->arena, "front=\"rest\",operation=\"%s\",status=\"%s\"", id,
                                classes[c]),
                "Requests answered, by operation and class of status");
        rest->micros[i] =
            kn_metric_get(KN_METRIC_COUNTER, "knut_catalog_request_microseconds_total",
                          kn_arena_printf(rest->arena, "front=\"rest\",operation=\"%s\"", id),
                          "Time from the first line of requests to the end of their answers");
    }
}

static bool front_close(KnFront *front, int64_t wait_us)
{
    KnRest *rest = (KnRest *)front;
    bool all = kn_httpd_close(rest->httpd, wait_us);
    rest->idempotency = kn_idempotency_free(rest->idempotency);
    rest->plans = kn_plans_free(rest->plans);
    KnArena *arena = rest->arena;
    (void)kn_arena_free(arena);
    return all;
}

static KnCode front_open(const KnFrontContext *ctx, KnListen *listening, KnFront **ret, KnErr *err)
{
    KnArena *arena = kn_arena_new(0);
    KnRest *rest = kn_arena_zalloc(arena, sizeof(*rest));
    rest->base.ops = &kn_front_rest;
    rest->ctx = *ctx;
    rest->arena = arena;
    rest->next_id = (uint64_t)kn_clock_wall_ms();
    rest->idempotency = kn_idempotency_new(KEPT_BYTES);
    rest->plans = kn_plans_new(PLAN_BYTES, PLAN_LIFETIME_US);
    rest->config = kn_rest_make_config(rest);
    make_metrics(rest);
    KnHttpdOptions opts = {
        .handler = {rest, admit, handle, fail, done},
        .tls = ctx->tls,
    };
    KnCode rc = kn_httpd_open(listening, &opts, &rest->httpd, err);
    if (rc != KN_OK) {
        (void)front_close(&rest->base, 0);
        return rc;
    }
    *ret = &rest->base;
    return KN_OK;
}

const KnFrontOps kn_front_rest = {"rest", front_open, front_close};
