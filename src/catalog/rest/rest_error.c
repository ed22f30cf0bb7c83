/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rest_error.c - an answer outside 2xx as one line: what was asked, status, type, message.
 *
 * The error model is {"error": {"message", "type", "code"}}; token servers answer {"error": "…",
 * "error_description": "…"} (RFC 6749, section 5.2). Whatever else comes (a proxy's page, nothing)
 * is shown by its start. Bytes that are not printable are not shown.
 */
#include <string.h>

#include "catalog/rest/rest_internal.h"

enum { SHOWN_MAX = 160, ERROR_MAX = 1 << 20 };

/* One line of text that cannot disturb a terminal. */
static void put_plain(KnBuf *out, const char *text, size_t len)
{
    bool space = false;
    for (size_t i = 0; i < len && out->len < SHOWN_MAX;) {
        unsigned char c = (unsigned char)text[i];
        size_t n = c < 0x80 ? 1 : kn_str_utf8_len((KnStr){text + i, len - i});
        if (c <= ' ' || c == 0x7f || !n) {
            space = out->len > 0;
            i++;
            continue;
        }
        if (space)
            kn_buf_char(out, ' ');
        space = false;
        kn_buf_append(out, text + i, n);
        i += n;
    }
}

/* NULL unless the body is the error model; then the object with "message" and "type". */
static json_t *parse_error(const KnHttpResponse *resp)
{
    if (!resp->body.len || resp->body.len > ERROR_MAX)
        return NULL;
    json_t *doc = NULL;
    if (kn_json_parse(resp->body.data, resp->body.len, &doc, NULL) != KN_OK)
        return NULL;
    if (json_is_object(doc))
        return doc;
    json_decref(doc);
    return NULL;
}

static const char *text_of(const json_t *obj, const char *key)
{
    const char *text = json_string_value(json_object_get(obj, key));
    return text ? text : "";
}

static void put_message(KnBuf *out, const KnHttpResponse *resp)
{
    KN_JSON_AUTO doc = parse_error(resp);
    const json_t *error = json_object_get(doc, "error");
    if (json_is_object(error)) {
        const char *message = text_of(error, "message");
        const char *type = text_of(error, "type");
        put_plain(out, type, strlen(type));
        kn_buf_text(out, *type && *message ? ": " : "");
        put_plain(out, message, strlen(message));
    } else if (json_is_string(error)) {
        put_plain(out, json_string_value(error), json_string_length(error));
        const char *why = text_of(doc, "error_description");
        kn_buf_text(out, *why ? ": " : "");
        put_plain(out, why, strlen(why));
    } else if (*text_of(doc, "message")) { /* gateways of clouds */
        put_plain(out, text_of(doc, "message"), strlen(text_of(doc, "message")));
    }
    if (out->len)
        return;
    const char *type = kn_http_header(resp, "content-type", 0);
    kn_buf_text(out, resp->body.len ? "no answer of a catalog (" : "an answer without a body (");
    put_plain(out, type ? type : "no type", strlen(type ? type : "no type"));
    kn_buf_char(out, ')');
    if (!resp->body.len)
        return;
    kn_buf_text(out, ": ");
    put_plain(out, resp->body.data, resp->body.len < 4096 ? resp->body.len : 4096);
}

static KnErrSubject subject_of(const KnHttpResponse *resp)
{
    static const struct {
        const char *type;
        KnErrSubject about;
    } types[] = {
        {"NoSuchNamespaceException", KN_ABOUT_NAMESPACE},
        {"NamespaceNotEmptyException", KN_ABOUT_NOT_EMPTY},
        {"NoSuchTableException", KN_ABOUT_TABLE},
        {"NoSuchViewException", KN_ABOUT_VIEW},
        {"NotFoundException", KN_ABOUT_FILE},
    };
    KN_JSON_AUTO doc = parse_error(resp);
    const char *type = text_of(json_object_get(doc, "error"), "type");
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        if (!strcmp(type, types[i].type))
            return types[i].about;
    }
    return KN_ABOUT_NOTHING;
}

static KnCode code_of(const KnRemoteCall *call, int status)
{
    switch (status) {
    case 400:
    case 422:
        return KN_E_INVAL;
    case 401:
    case 403:
    case 407:
    case 419:
        return KN_E_REFUSED;
    case 404:
    case 410:
        return KN_E_NOTFOUND;
    case 409:
    case 412:
        return KN_E_EXISTS; /* a commit makes it a conflict */
    case 405:
    case 406:
    case 415:
    case 501:
        return KN_E_UNSUPPORTED;
    case 413:
        return KN_E_INVAL;
    case 429:
        return KN_E_BUSY;
    default:
        break;
    }
    if (status >= 500 || status == 408)
        return call->safety == KN_REMOTE_CHANGES ? KN_E_UNKNOWN
               : status == 503                   ? KN_E_BUSY
                                                 : KN_E_IO;
    return KN_E_IO;
}

static KnCode redirect(const KnRemoteCall *call, const KnHttpResponse *resp, KnErr *err)
{
    KN_BUF_AUTO to = {0};
    kn_buf_init(&to, 4096);
    const char *location = kn_http_header(resp, "location", 0);
    put_plain(&to, location ? location : "nowhere", strlen(location ? location : "nowhere"));
    return kn_err_set(err, KN_E_IO,
                      "%s: %s %s: the server answers %d, see %s: redirects are not followed, give "
                      "the catalog's own address",
                      call->what, call->method, call->url, resp->status, to.data);
}

KnCode kn_remote_refusal(const KnRemoteCall *call, const KnHttpResponse *resp, KnErr *err)
{
    if (resp->status >= 300 && resp->status < 400)
        return redirect(call, resp, err);
    KN_BUF_AUTO text = {0};
    kn_buf_init(&text, 8192);
    put_message(&text, resp);
    KnCode code = code_of(call, resp->status);
    (void)kn_err_set(err, code, "%s: the catalog's answer is %d %s (%s %.120s)", call->what,
                     resp->status, text.len ? text.data : "", call->method, call->url);
    if (err) {
        err->retriable = kn_code_retriable(code) || code == KN_E_BUSY;
        err->about = subject_of(resp);
    }
    return code;
}
