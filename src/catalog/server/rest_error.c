/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rest_error.c - failures as the specification's error model: {"error": {message, type, code}}.
 *
 * The types are those that Java's ErrorHandlers look at. What a client cannot change (a disk, a
 * store, a damaged document) is told by a number only; the log has the message under it, as it may
 * name paths and hosts. A commit whose answer was lost is 500 CommitStateUnknownException: clients
 * then keep their files. It never has Retry-After, which would make Java's client send it again.
 */
#include "base/log.h"
#include "catalog/server/rest_internal.h"

typedef struct Row {
    KnCode code;
    int about; /* KnErrSubject; -1 = any other */
    KnRestFailure failure;
} Row;

static const Row rows[] = {
    {KN_E_NOTFOUND, KN_ABOUT_NAMESPACE, {404, "NoSuchNamespaceException", false}},
    {KN_E_NOTFOUND, KN_ABOUT_TABLE, {404, "NoSuchTableException", false}},
    {KN_E_NOTFOUND, KN_ABOUT_VIEW, {404, "NoSuchViewException", false}},
    {KN_E_NOTFOUND, -1, {404, "NotFoundException", false}},
    {KN_E_EXISTS, -1, {409, "AlreadyExistsException", false}},
    {KN_E_CONFLICT, -1, {409, "CommitFailedException", false}},
    {KN_E_UNKNOWN, -1, {500, "CommitStateUnknownException", true}},
    {KN_E_INVAL, KN_ABOUT_BOTH, {422, "UnprocessableEntityException", false}},
    {KN_E_INVAL, -1, {400, "IllegalArgumentException", false}},
    {KN_E_UNSUPPORTED, -1, {406, "UnsupportedOperationException", false}},
    {KN_E_REFUSED, KN_ABOUT_NOT_EMPTY, {409, "NamespaceNotEmptyException", false}},
    {KN_E_REFUSED, -1, {403, "ForbiddenException", false}},
    {KN_E_BUSY, -1, {503, "ServiceUnavailableException", true}},
    {KN_E_CANCELLED, -1, {503, "ServiceUnavailableException", true}},
    {KN_E_NOMEM, -1, {503, "ServiceUnavailableException", true}},
};

KnRestFailure kn_rest_failure(const KnErr *err)
{
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (rows[i].code == err->code && (rows[i].about == -1 || rows[i].about == (int)err->about))
            return rows[i].failure;
    }
    return (KnRestFailure){500, "InternalServerError", true};
}

const char *kn_rest_status_type(int status)
{
    switch (status) {
    case 401:
        return "NotAuthorizedException";
    case 403:
        return "ForbiddenException";
    case 405:
    case 406:
        return "UnsupportedOperationException";
    case 404:
        return "NoSuchEndpointException";
    case 413:
        return "RequestEntityTooLargeException";
    case 414:
        return "RequestURITooLongException";
    case 415:
        return "UnsupportedMediaTypeException";
    case 500:
        return "InternalServerError";
    case 503:
        return "ServiceUnavailableException";
    default:
        return "BadRequestException";
    }
}

void kn_rest_reply_error(KnArena *arena, KnHttpdResponse *rsp, int status, const char *type,
                         const char *message)
{
    KN_BUF_AUTO body = {0};
    kn_buf_init(&body, 1 << 16);
    kn_buf_text(&body, "{\"error\":{\"message\":");
    kn_json_quote(&body, kn_str(message));
    kn_buf_printf(&body, ",\"type\":\"%s\",\"code\":%d}}", type, status);
    *rsp = (KnHttpdResponse){.status = status};
    kn_httpd_response_header(rsp, "Content-Type", "application/json");
    kn_httpd_response_piece(rsp, (KnStr){kn_arena_strndup(arena, body.data, body.len), body.len});
}

void kn_rest_reply_failure(KnRestCall *call, const KnErr *err)
{
    KnRestFailure failure = kn_rest_failure(err);
    const char *message = err->msg;
    if (failure.hide) {
        uint64_t id = atomic_fetch_add(&call->rest->next_id, 1);
        kn_log(KN_LOG_ERROR, "catalog", "request-failed", KN_FI("id", (int64_t)id),
               KN_F("operation", call->op ? call->op->id : ""),
               KN_F("path", kn_arena_strndup(call->arena, call->req->target.path.ptr,
                                             call->req->target.path.len)),
               KN_F("code", kn_code_name(err->code)), KN_F("message", err->msg));
        message = kn_arena_printf(call->arena, "%s; the server's log has the reason under id %llu",
                                  err->code == KN_E_UNKNOWN
                                      ? "The commit may or may not have been applied"
                                  : failure.status == 503 ? "The catalog cannot answer now"
                                                          : "Internal error",
                                  (unsigned long long)id);
    }
    kn_rest_reply_error(call->arena, call->rsp, failure.status, failure.type, message);
}
