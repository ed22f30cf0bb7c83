/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sigv4.c - the canonical request, the string to sign, the signature.
 *
 * What is signed is what is sent: the path and query of the URL as they are spelled. Only the order
 * of query parameters is made canonical, and, for services other than S3, the path: its empty and
 * dot segments go and it is encoded once more. A parameter without '=' is signed as "name=".
 */
#include "net/sigv4.h"

#include <stdlib.h>
#include <strings.h>
#include <time.h>

#include "base/vec.h"
#include "net/digest.h"
#include "net/url.h"

typedef KN_VEC(KnHttpHeader) Headers;

typedef struct Signing {
    KnArena *arena;
    const KnSigV4 *sig;
    const KnHttpRequest *req;
    KnUrl url;
    char date[17]; /* 20150830T123600Z */
    char hash[2 * KN_SHA256_LEN + 1];
    const char *payload_hash;
    Headers headers; /* as they are sent */
    KnBuf text;
} Signing;

static KnStr buf_str(const KnBuf *buf)
{
    return (KnStr){buf->data, buf->len};
}

static bool is_s3(const KnSigV4 *sig)
{
    return strcmp(sig->service, "s3") == 0 || strcmp(sig->service, "s3tables") == 0;
}

static int by_bytes(const void *a, const void *b)
{
    const KnStr *x = a, *y = b;
    int order = memcmp(x->ptr, y->ptr, x->len < y->len ? x->len : y->len);
    return order ? order : (x->len > y->len) - (x->len < y->len);
}

/* ---- canonical path --------------------------------------------------------------------- */

/* RFC 3986 5.2.4, and runs of slashes become one. */
static void normalize_path(KnBuf *out, KnStr path)
{
    bool open = false; /* the last segment is empty: the path ends in a slash */
    for (size_t i = 0; i < path.len;) {
        size_t from = ++i; /* path[from-1] is '/' */
        while (i < path.len && path.ptr[i] != '/')
            ++i;
        KnStr part = {path.ptr + from, i - from};
        bool dots = kn_str_eq(part, KN_STR_LIT("..")), dot = kn_str_eq(part, KN_STR_LIT("."));
        open = dot || dots || part.len == 0;
        if (dots) {
            while (out->len && out->data[--out->len] != '/')
                ;
        } else if (!open) {
            kn_buf_char(out, '/');
            kn_buf_str(out, part);
        }
    }
    if (open || out->len == 0)
        kn_buf_char(out, '/');
}

static void add_path(Signing *s)
{
    KnStr path = s->url.path.len ? s->url.path : KN_STR_LIT("/");
    if (strcmp(s->sig->service, "s3") == 0) {
        kn_buf_str(&s->text, path);
    } else {
        KN_BUF_AUTO normal;
        kn_buf_init(&normal, path.len + 1);
        normalize_path(&normal, path);
        kn_url_encode(&s->text, buf_str(&normal), true);
    }
    kn_buf_char(&s->text, '\n');
}

/* ---- canonical query -------------------------------------------------------------------- */

/* Name, then value: "a=1" comes before "a-b=1" although '=' sorts behind '-'. */
static int by_parameter(const void *a, const void *b)
{
    KnStr x = *(const KnStr *)a, y = *(const KnStr *)b;
    const char *ex = memchr(x.ptr, '=', x.len), *ey = memchr(y.ptr, '=', y.len);
    KnStr nx = {x.ptr, ex ? (size_t)(ex - x.ptr) : x.len};
    KnStr ny = {y.ptr, ey ? (size_t)(ey - y.ptr) : y.len};
    int order = by_bytes(&nx, &ny);
    return order ? order : by_bytes(&x, &y);
}

static void add_query(Signing *s)
{
    KN_VEC(KnStr) params = {0};
    KnStr query = s->url.query;
    for (size_t i = 0; i < query.len; ++i) {
        size_t from = i;
        while (i < query.len && query.ptr[i] != '&')
            ++i;
        if (i > from)
            *kn_vec_push(&params) = (KnStr){query.ptr + from, i - from};
    }
    if (params.len)
        qsort(params.items, params.len, sizeof(KnStr), by_parameter);
    for (size_t i = 0; i < params.len; ++i) {
        KnStr param = params.items[i];
        if (i)
            kn_buf_char(&s->text, '&');
        kn_buf_str(&s->text, param);
        if (!memchr(param.ptr, '=', param.len))
            kn_buf_char(&s->text, '=');
    }
    kn_vec_done(&params);
    kn_buf_char(&s->text, '\n');
}

/* ---- headers ---------------------------------------------------------------------------- */

static bool is_signed(const char *name)
{
    static const char *const not_signed[] = {
        "authorization",     "user-agent",      "connection",     "expect",
        "transfer-encoding", "accept-encoding", "x-amzn-trace-id"};
    for (size_t i = 0; i < sizeof(not_signed) / sizeof(not_signed[0]); ++i)
        if (strcasecmp(name, not_signed[i]) == 0)
            return false;
    return true;
}

static int by_name(const void *a, const void *b)
{
    const KnHttpHeader *x = *(const KnHttpHeader *const *)a, *y = *(const KnHttpHeader *const *)b;
    int order = strcasecmp(x->name, y->name);
    return order ? order : (x > y) - (x < y); /* repeated ones in the order they are sent */
}

static void add_lower(KnBuf *out, const char *name)
{
    for (const char *p = name; *p; ++p)
        kn_buf_char(out, (char)(*p >= 'A' && *p <= 'Z' ? *p | 0x20 : *p));
}

/* Trimmed, runs of spaces as one. */
static void add_value(KnBuf *out, const char *value)
{
    bool space = false, begun = false;
    for (const char *p = value; *p; ++p) {
        if (*p == ' ' || *p == '\t' || *p == '\n' || *p == '\r') {
            space = true;
            continue;
        }
        if (space && begun)
            kn_buf_char(out, ' ');
        space = false;
        begun = true;
        kn_buf_char(out, *p);
    }
}

/* Header lines, an empty line, the names; the names again in `names`. */
static void add_headers(Signing *s, KnBuf *names)
{
    KnHttpHeader host = {"host",
                         kn_arena_strndup(s->arena, s->url.authority.ptr, s->url.authority.len)};
    KN_VEC(const KnHttpHeader *) list = {0};
    bool has_host = false;
    kn_vec_foreach (&s->headers, header) {
        has_host = has_host || strcasecmp(header->name, "host") == 0;
        if (is_signed(header->name))
            *kn_vec_push(&list) = header;
    }
    if (!has_host)
        *kn_vec_push(&list) = &host;
    if (list.items)
        qsort(list.items, list.len, sizeof(list.items[0]), by_name);
    for (size_t i = 0; i < list.len; ++i) {
        bool again = i && strcasecmp(list.items[i - 1]->name, list.items[i]->name) == 0;
        if (!again && i) {
            kn_buf_char(&s->text, '\n');
            kn_buf_char(names, ';');
        }
        if (!again) {
            add_lower(names, list.items[i]->name);
            add_lower(&s->text, list.items[i]->name);
        }
        kn_buf_char(&s->text, again ? ',' : ':');
        add_value(&s->text, list.items[i]->value);
    }
    kn_vec_done(&list);
    kn_buf_text(&s->text, "\n\n");
    kn_buf_str(&s->text, buf_str(names));
    kn_buf_char(&s->text, '\n');
}

/* ---- signature -------------------------------------------------------------------------- */

static void format_date(int64_t now_ms, char out[17])
{
    time_t seconds = (time_t)(now_ms / 1000);
    struct tm tm;
    (void)gmtime_r(&seconds, &tm);
    if (strftime(out, 17, "%Y%m%dT%H%M%SZ", &tm) != 16)
        out[0] = '\0';
}

static void hex_sha256(KnStr bytes, char out[2 * KN_SHA256_LEN + 1])
{
    uint8_t hash[KN_SHA256_LEN];
    kn_sha256(bytes, hash);
    (void)kn_hex(hash, sizeof(hash), out);
}

static void sign_text(const Signing *s, KnStr text, char out[2 * KN_SHA256_LEN + 1])
{
    uint8_t key[KN_SHA256_LEN], next[KN_SHA256_LEN];
    KN_BUF_AUTO secret;
    kn_buf_init(&secret, 4096);
    kn_buf_printf(&secret, "AWS4%s", s->sig->secret_access_key);
    kn_hmac_sha256(buf_str(&secret), (KnStr){s->date, 8}, key);
    const KnStr steps[] = {kn_str(s->sig->region), kn_str(s->sig->service),
                           KN_STR_LIT("aws4_request"), text};
    for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); ++i) {
        kn_hmac_sha256((KnStr){(const char *)key, sizeof(key)}, steps[i], next);
        memcpy(key, next, sizeof(key));
    }
    (void)kn_hex(key, sizeof(key), out);
    explicit_bzero(secret.data, secret.len);
}

static void add_authorization(Signing *s)
{
    char hash[2 * KN_SHA256_LEN + 1], signature[2 * KN_SHA256_LEN + 1];
    const KnSigV4 *sig = s->sig;
    KN_BUF_AUTO names;
    kn_buf_init(&names, KN_HTTP_MAX_HEADERS);
    kn_buf_printf(&s->text, "%s\n", s->req->method);
    add_path(s);
    add_query(s);
    add_headers(s, &names);
    kn_buf_text(&s->text, s->payload_hash);
    hex_sha256(buf_str(&s->text), hash);
    const char *scope =
        kn_arena_printf(s->arena, "%.8s/%s/%s/aws4_request", s->date, sig->region, sig->service);
    const char *text =
        kn_arena_printf(s->arena, "AWS4-HMAC-SHA256\n%s\n%s\n%s", s->date, scope, hash);
    sign_text(s, kn_str(text), signature);
    *kn_vec_push(&s->headers) = (KnHttpHeader){
        "Authorization",
        kn_arena_printf(s->arena,
                        "AWS4-HMAC-SHA256 Credential=%s/%s, SignedHeaders=%s, Signature=%s",
                        sig->access_key_id, scope, names.data, signature)};
}

KnCode kn_sigv4_sign(KnArena *arena, const KnSigV4 *sig, const KnHttpRequest *req,
                     KnHttpHeader **ret, size_t *ret_n, KnErr *err)
{
    Signing s = {.arena = arena, .sig = sig, .req = req, .payload_hash = sig->payload_hash};
    KN_TRY(kn_url_parse(kn_str(req->url), &s.url, err));
    format_date(sig->now_ms, s.date);
    if (!s.payload_hash) {
        hex_sha256(req->body, s.hash);
        s.payload_hash = s.hash;
    }
    for (size_t i = 0; i < req->n_headers; ++i)
        *kn_vec_push(&s.headers) = req->headers[i];
    *kn_vec_push(&s.headers) = (KnHttpHeader){"X-Amz-Date", kn_arena_strdup(arena, s.date)};
    if (is_s3(sig) || sig->payload_hash)
        *kn_vec_push(&s.headers) =
            (KnHttpHeader){"X-Amz-Content-Sha256", kn_arena_strdup(arena, s.payload_hash)};
    if (sig->session_token && sig->session_token[0])
        *kn_vec_push(&s.headers) =
            (KnHttpHeader){"X-Amz-Security-Token", kn_arena_strdup(arena, sig->session_token)};
    kn_buf_init(&s.text, 16 << 20);
    add_authorization(&s);
    KnCode rc = kn_buf_check(&s.text, err);
    kn_buf_done(&s.text);
    if (rc == KN_OK) {
        KnHttpHeader *out = kn_arena_alloc(arena, s.headers.len * sizeof(*out));
        memcpy(out, s.headers.items, s.headers.len * sizeof(*out));
        *ret = out;
        *ret_n = s.headers.len;
    }
    kn_vec_done(&s.headers);
    return rc;
}
