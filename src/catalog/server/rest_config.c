/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rest_config.c - what a client asks first: configuration and tokens; and what an operator's probes
 * ask: health, readiness, metrics.
 */
#include <strings.h>

#include "catalog/server/rest_internal.h"

/* ---- configuration ----------------------------------------------------------------------------
 */

KnStr kn_rest_make_config(KnRest *rest)
{
    KN_BUF_AUTO body = {0};
    kn_buf_init(&body, 1 << 20);
    kn_buf_text(&body, "{\"defaults\":{");
    for (size_t i = 0; i < rest->ctx.n_client_config; i++) {
        kn_buf_text(&body, i ? "," : "");
        kn_json_quote(&body, kn_str(rest->ctx.client_config[i].name));
        kn_buf_char(&body, ':');
        kn_json_quote(&body, kn_str(rest->ctx.client_config[i].value));
    }
    kn_buf_text(&body,
                "},\"overrides\":{\"namespace-separator\":\"%1F\"},"
                "\"idempotency-key-lifetime\":\"" KN_IDEMPOTENCY_LIFETIME "\",\"endpoints\":[");
    bool first = true;
    for (size_t i = 0; i < kn_rest_n_ops; i++) {
        const KnRestOp *op = &kn_rest_ops[i];
        if ((op->flags & KN_REST_HIDDEN) || op->fn == kn_rest_get_config ||
            op->fn == kn_rest_get_token ||
            (op->fn == kn_rest_sign_request && !rest->ctx.remote_signing))
            continue;
        kn_buf_printf(&body, "%s\"%s %s\"", first ? "" : ",", op->method, op->path);
        first = false;
    }
    kn_buf_text(&body, "]}");
    return (KnStr){kn_arena_strndup(rest->arena, body.data, body.len), body.len};
}

/* A warehouse is named by the catalog's name or by its location. */
static bool is_warehouse(const KnRest *rest, KnStr name)
{
    KnStr location = kn_str(kn_core_warehouse(rest->ctx.core));
    if (name.len && name.ptr[name.len - 1] == '/')
        name.len--;
    if (location.len && location.ptr[location.len - 1] == '/')
        location.len--;
    return !name.len || kn_str_eq(name, kn_str(rest->ctx.catalog)) || kn_str_eq(name, location);
}

KnCode kn_rest_get_config(KnRestCall *call, KnErr *err)
{
    const char *warehouse = kn_httpd_request_query(call->req, "warehouse");
    (void)err;
    if (warehouse && !is_warehouse(call->rest, kn_str(warehouse))) {
        kn_rest_reply_error(
            call->arena, call->rsp, 404, "NoSuchWarehouseException",
            kn_arena_printf(call->arena, "Warehouse does not exist: %.400s", warehouse));
        return KN_OK;
    }
    call->rsp->status = 200;
    kn_httpd_response_header(call->rsp, "Content-Type", "application/json");
    kn_httpd_response_piece(call->rsp, call->rest->config);
    return KN_OK;
}

/* ---- OAuth2 (RFC 6749 §4.4, RFC 8693) ---------------------------------------------------------
 */

#define TOKEN_TYPE "urn:ietf:params:oauth:token-type:access_token"
#define EXCHANGE   "urn:ietf:params:oauth:grant-type:token-exchange"

static void token_error(KnRestCall *call, int status, const char *code, const char *description)
{
    *call->rsp = (KnHttpdResponse){.status = status};
    kn_httpd_response_header(call->rsp, "Content-Type", "application/json");
    kn_httpd_response_header(call->rsp, "Cache-Control", "no-store");
    if (status == 401)
        kn_httpd_response_header(call->rsp, "WWW-Authenticate", "Basic");
    kn_httpd_response_piece(
        call->rsp,
        kn_str(kn_arena_printf(call->arena, "{\"error\":\"%s\",\"error_description\":\"%s\"}", code,
                               description)));
}

static KnStr field(const KnRestCall *call, const char *name)
{
    const KnStr *value = kn_http_pair_find(call->form, call->n_form, name);
    return value ? *value : KN_STR_LIT("");
}

/* "Basic base64(id:secret)" in the header. */
static bool basic_credentials(KnRestCall *call, KnStr *ret_id, KnStr *ret_secret)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const char *header = kn_httpd_request_header(call->req, "Authorization");
    if (!header || strncasecmp(header, "Basic ", 6) != 0)
        return false;
    header += 6;
    size_t len = strcspn(header, "= "), n = 0;
    char *plain = kn_arena_alloc(call->arena, len + 1);
    uint32_t bits = 0;
    for (size_t i = 0; i < len; i++) {
        const char *at = strchr(digits, header[i]);
        if (!at)
            return false;
        bits = bits << 6 | (uint32_t)(at - digits);
        if (i % 4 != 0)
            plain[n++] = (char)(bits >> (6 - 2 * (i % 4)));
    }
    plain[n] = '\0';
    const char *colon = memchr(plain, ':', n);
    if (!colon)
        return false;
    *ret_id = (KnStr){plain, (size_t)(colon - plain)};
    *ret_secret = (KnStr){colon + 1, n - ret_id->len - 1};
    return true;
}

static void give_token(KnRestCall *call, const KnPrincipal *who, bool exchanged)
{
    int64_t seconds = 0;
    const char *token = kn_auth_issue(call->rest->ctx.auth, call->arena, who, &seconds);
    KnBuf *body = kn_rest_buf(call);
    KnStr scope = field(call, "scope");
    kn_buf_text(body, "{\"access_token\":");
    kn_json_quote(body, kn_str(token));
    kn_buf_printf(body, ",\"token_type\":\"bearer\",\"expires_in\":%lld", (long long)seconds);
    if (exchanged)
        kn_buf_text(body, ",\"issued_token_type\":\"" TOKEN_TYPE "\"");
    if (scope.len) {
        kn_buf_text(body, ",\"scope\":");
        kn_json_quote(body, scope);
    }
    kn_buf_char(body, '}');
    kn_httpd_response_header(call->rsp, "Cache-Control", "no-store");
    call->rsp->status = 200;
    kn_httpd_response_header(call->rsp, "Content-Type", "application/json");
    kn_httpd_response_piece(call->rsp, (KnStr){body->data, body->len});
}

static void by_credentials(KnRestCall *call)
{
    KnStr id = field(call, "client_id"), secret = field(call, "client_secret");
    if (!secret.len)
        (void)basic_credentials(call, &id, &secret);
    if (kn_auth_secret(call->rest->ctx.auth, id, secret, &call->who, NULL) != KN_OK)
        token_error(call, 401, "invalid_client", "unknown client id or wrong secret");
    else
        give_token(call, call->who, false);
}

static void by_exchange(KnRestCall *call)
{
    KnStr subject = field(call, "subject_token");
    if (!subject.len || !field(call, "subject_token_type").len)
        token_error(call, 400, "invalid_request",
                    "subject_token and subject_token_type are required");
    else if (kn_auth_token(call->rest->ctx.auth, subject, &call->who, NULL) != KN_OK)
        token_error(call, 400, "invalid_grant", "the subject token is unknown or expired");
    else
        give_token(call, call->who, true);
}

KnCode kn_rest_get_token(KnRestCall *call, KnErr *err)
{
    KnStr grant = field(call, "grant_type");
    (void)err;
    if (kn_str_eq(grant, KN_STR_LIT("client_credentials")))
        by_credentials(call);
    else if (kn_str_eq(grant, KN_STR_LIT(EXCHANGE)))
        by_exchange(call);
    else
        token_error(call, 400, grant.len ? "unsupported_grant_type" : "invalid_request",
                    "grant_type is client_credentials or " EXCHANGE);
    return KN_OK;
}

/* ---- probes -----------------------------------------------------------------------------------
 */

static KnCode reply_text(KnRestCall *call, int status, const char *type, KnStr text)
{
    call->rsp->status = status;
    kn_httpd_response_header(call->rsp, "Content-Type", type);
    kn_httpd_response_piece(call->rsp, text);
    return KN_OK;
}

/* The process answers. */
KnCode kn_rest_health(KnRestCall *call, KnErr *err)
{
    (void)err;
    return reply_text(call, 200, "application/json", KN_STR_LIT("{\"status\":\"ok\"}"));
}

/* The database answers too. */
KnCode kn_rest_ready(KnRestCall *call, KnErr *err)
{
    KN_TRY(kn_core_ping(call->rest->ctx.core, err));
    return reply_text(call, 200, "application/json", KN_STR_LIT("{\"status\":\"ready\"}"));
}

KnCode kn_rest_metrics(KnRestCall *call, KnErr *err)
{
    KnBuf *text = kn_rest_buf(call);
    kn_metric_set(kn_metric_get(KN_METRIC_GAUGE, "knut_catalog_connections", "front=\"rest\"",
                                "Open connections"),
                  kn_httpd_connections(call->rest->httpd));
    kn_metric_set(kn_metric_get(KN_METRIC_GAUGE, "knut_catalog_requests_in_flight",
                                "front=\"rest\"", "Requests without an answer yet"),
                  kn_httpd_in_flight(call->rest->httpd));
    kn_metrics_write(text);
    KN_TRY(kn_buf_check(text, err));
    return reply_text(call, 200, "text/plain; version=0.0.4", (KnStr){text->data, text->len});
}
