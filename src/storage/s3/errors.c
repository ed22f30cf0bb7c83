/* SPDX-License-Identifier: Apache-2.0 */
/*
 * errors.c - what an answer outside 2xx means, and what to do about it.
 *
 * Every message has operation, location, status, code and text of the store (an answer to HEAD has
 * no body, others may be empty or no XML: then the status speaks), a hint where there is one, and
 * the request's id, which the operator of the store asks for.
 */
#include <stdio.h>

#include "storage/s3/s3_internal.h"

typedef struct Meaning {
    int status;       /* 0 = any */
    const char *code; /* of the store; NULL = any */
    KnCode means;
    const char *hint;
} Meaning;

/* The first that fits. */
static const Meaning meanings[] = {
    {404, "NoSuchBucket", KN_E_NOTFOUND,
     "check the bucket's name, and the endpoint (--s3-endpoint)"},
    {404, "NoSuchUpload", KN_E_NOTFOUND, NULL},
    {404, NULL, KN_E_NOTFOUND, NULL},
    {412, NULL, KN_E_EXISTS, NULL},
    {409, "ConditionalRequestConflict", KN_E_EXISTS, NULL},
    {416, NULL, KN_E_CORRUPT, NULL},
    {0, "RequestTimeTooSkewed", KN_E_IO,
     "this machine's clock and the store's differ too much: set the clock (NTP)"},
    {0, "ExpiredToken", KN_E_IO, "the session token has expired: get new credentials"},
    {0, "ExpiredTokenException", KN_E_IO, "the session token has expired: get new credentials"},
    {0, "InvalidToken", KN_E_IO, "the session token is not valid: get new credentials"},
    {0, "InvalidAccessKeyId", KN_E_IO,
     "the store does not know this access key: check the credentials in the environment, and "
     "--s3-endpoint"},
    {0, "SignatureDoesNotMatch", KN_E_IO,
     "check the secret key, and that no proxy changes requests"},
    {0, "PermanentRedirect", KN_E_IO, "the bucket lives in another region: give --s3-region"},
    {0, "AuthorizationHeaderMalformed", KN_E_IO, "check --s3-region"},
    {0, "NotImplemented", KN_E_UNSUPPORTED, "the store lacks what this request needs"},
    {403, NULL, KN_E_IO, "the credentials lack the permission for this"},
    {401, NULL, KN_E_IO, "check the credentials in the environment"},
    {501, NULL, KN_E_UNSUPPORTED, "the store lacks what this request needs"},
    {301, NULL, KN_E_IO,
     "the bucket lives in another region or at another endpoint: give "
     "--s3-region or --s3-endpoint"},
    {307, NULL, KN_E_IO, "the bucket lives at another endpoint: give --s3-endpoint"},
};

static const Meaning *meaning_of(int status, const char *code)
{
    static const Meaning other = {0, NULL, KN_E_IO, NULL};
    for (size_t i = 0; i < sizeof(meanings) / sizeof(meanings[0]); ++i) {
        const Meaning *m = &meanings[i];
        if ((!m->status || m->status == status) && (!m->code || strcmp(m->code, code) == 0))
            return m;
    }
    return &other;
}

static const char *status_text(int status)
{
    switch (status) {
    case 301:
        return "Moved Permanently";
    case 302:
        return "Found";
    case 304:
        return "Not Modified";
    case 307:
        return "Temporary Redirect";
    case 400:
        return "Bad Request";
    case 401:
        return "Unauthorized";
    case 403:
        return "Forbidden";
    case 404:
        return "Not Found";
    case 405:
        return "Method Not Allowed";
    case 409:
        return "Conflict";
    case 412:
        return "Precondition Failed";
    case 416:
        return "Range Not Satisfiable";
    case 429:
        return "Too Many Requests";
    case 500:
        return "Internal Server Error";
    case 501:
        return "Not Implemented";
    case 502:
        return "Bad Gateway";
    case 503:
        return "Service Unavailable";
    case 504:
        return "Gateway Timeout";
    default:
        return "an answer without reason";
    }
}

/* The first words of a body that is no error document. */
static void body_excerpt(const KnHttpResponse *resp, char out[100])
{
    size_t n = 0;
    for (size_t i = 0; i < resp->body.len && n < 90; ++i) {
        unsigned char c = (unsigned char)resp->body.data[i];
        bool space = c <= ' ';
        if (c >= 0x7f || (space && (n == 0 || out[n - 1] == ' ')))
            continue;
        out[n++] = (char)(space ? ' ' : c);
    }
    out[n] = '\0';
}

static void add_region(const KnS3 *s3, const KnS3Call *call, char *out, size_t cap)
{
    const char *header = kn_http_header(&call->resp, "x-amz-bucket-region", 0);
    const char *region = header ? header : call->error.region;
    out[0] = '\0';
    if (*region && strcmp(region, s3->region) != 0)
        (void)snprintf(out, cap, "; the bucket's region is '%.30s'", region);
}

KnCode kn_s3_wrap(const KnS3Call *call, KnCode code, KnErr *err)
{
    enum { MOST = 240 }; /* of a name, so that there is room for the reason */
    KnStr name = call->place.location;
    return kn_err_wrap(err, code, "s3 %s '%.*s%s'", call->operation,
                       (int)(name.len < MOST ? name.len : MOST), name.ptr,
                       name.len < MOST ? "" : "...");
}

KnCode kn_s3_call_failed(const KnS3 *s3, KnS3Call *call)
{
    const KnHttpResponse *resp = &call->resp;
    const Meaning *m = meaning_of(resp->status, call->error.code);
    const char *id = kn_http_header(resp, "x-amz-request-id", 0);
    char excerpt[100] = "", region[80];
    if (!call->error.code[0] && !call->error.message[0])
        body_excerpt(resp, excerpt);
    const char *code = call->error.code[0] ? call->error.code : status_text(resp->status);
    const char *text = call->error.message[0] ? call->error.message : excerpt;
    if (!id)
        id = call->error.request_id;
    add_region(s3, call, region, sizeof(region));
    KnCode rc =
        kn_err_set(&call->err, m->means, "HTTP %d %s%s%s%s%s%s%s%.72s%s", resp->status, code,
                   *text ? ": " : "", text, m->hint ? "; " : "", m->hint ? m->hint : "", region,
                   *id ? " (request " : "", id, *id ? ")" : "");
    call->err.retriable = false; /* those worth it were tried again already */
    call->err.sys_errno = 0;
    if (resp->status == 429 || resp->status >= 500)
        call->err.retriable = m->means == KN_E_IO;
    return kn_s3_wrap(call, rc, &call->err);
}
