/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sign.c - see sign.h.
 *
 * What is sent is the URI as its sender spells it; what is decided on is what a store makes of
 * it. The two must not differ: hence no dot segments, no empty segments, no '+' in a query.
 */
#include "storage/s3/sign.h"

#include <stdlib.h>
#include <strings.h>

#include "base/clock.h"
#include "base/vec.h"
#include "net/digest.h"
#include "net/sigv4.h"
#include "net/url.h"
#include "storage/s3/s3_internal.h"

enum { PARAMS_MAX = 16, KEYS_MAX = 1000 };

typedef struct Param {
    const char *name, *value;
} Param;

typedef KN_VEC(KnS3Touch) Touches;

typedef struct Look {
    KnS3 *s3;
    KnArena *arena;
    const KnS3Foreign *req;
    KnUrl url;
    const char *bucket, *key; /* decoded */
    Param params[PARAMS_MAX];
    size_t n_params;
    Touches touches;
    KnS3Intent intent;
} Look;

/* ---- the URI ---------------------------------------------------------------------------- */

static KnCode decoded(Look *look, KnStr text, const char **ret, KnErr *err)
{
    KN_BUF_AUTO out;
    kn_buf_init(&out, 64 << 10);
    KN_TRY(kn_url_decode(&out, text, err));
    KN_TRY(kn_buf_check(&out, err));
    KnStr bytes = {out.data ? out.data : "", out.len};
    if (memchr(bytes.ptr, '\0', bytes.len) || !kn_str_is_utf8(bytes))
        return kn_err_set(err, KN_E_INVAL, "its URI holds bytes that are no text");
    *ret = kn_arena_strndup(look->arena, bytes.ptr, bytes.len);
    return KN_OK;
}

/* "bucket.s3.region.amazonaws.com": the bucket's length; -1 = another host. */
static int aws_bucket_len(KnStr host)
{
    static const char *const ends[] = {".amazonaws.com", ".amazonaws.com.cn"};
    for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
        if (!kn_str_ends_with(host, kn_str(ends[i])))
            continue;
        KnStr rest = {host.ptr, host.len - strlen(ends[i])};
        bool global = kn_str_eq(rest, KN_STR_LIT("s3"));
        if (global || kn_str_ends_with(rest, KN_STR_LIT(".s3")))
            return global ? 0 : (int)rest.len - 3;
        for (size_t at = rest.len; at-- > 0;) { /* the last label "s3" that a region follows */
            KnStr tail = {rest.ptr + at, rest.len - at};
            bool label = at == 0 || rest.ptr[at - 1] == '.';
            bool s3 = kn_str_starts_with(tail, KN_STR_LIT("s3.")) ||
                      kn_str_starts_with(tail, KN_STR_LIT("s3-fips."));
            if (label && s3)
                return at ? (int)at - 1 : 0;
        }
    }
    return -1;
}

/* How much of the authority is the bucket's name (0 = it is in the path); -1 = not the store. */
static int bucket_len(const Look *look)
{
    KnStr at = look->url.authority;
    const KnS3 *s3 = look->s3;
    if (look->url.tls != s3->tls)
        return -1;
    if (!s3->host)
        return look->url.port.len && !kn_str_eq(look->url.port, KN_STR_LIT("443"))
                   ? -1
                   : aws_bucket_len(look->url.host);
    KnStr own = kn_str(s3->host);
    if (kn_str_eq_nocase(at, own))
        return 0;
    bool within = at.len > own.len + 1 && at.ptr[at.len - own.len - 1] == '.' &&
                  kn_str_eq_nocase((KnStr){at.ptr + at.len - own.len, own.len}, own);
    return within ? (int)(at.len - own.len - 1) : -1;
}

static bool is_plain_key(const char *key)
{
    if (*key == '/')
        return false;
    for (const char *part = key; part; part = strchr(part, '/')) {
        part += *part == '/';
        size_t len = strcspn(part, "/");
        bool dots = (len == 1 && part[0] == '.') || (len == 2 && part[0] == '.' && part[1] == '.');
        if (dots || (!len && (*part || part == key)))
            return false;
    }
    return true;
}

static KnCode take_place(Look *look, KnErr *err)
{
    int in_host = bucket_len(look);
    const char *path = NULL;
    if (in_host < 0)
        return kn_err_set(err, KN_E_REFUSED,
                          "requests to '" KN_STR_FMT "' are not signed: it is not this catalog's "
                          "object store",
                          KN_STR_ARG(look->url.authority));
    KN_TRY(decoded(look, look->url.path, &path, err));
    path += *path == '/';
    size_t len = strcspn(path, "/");
    look->bucket = in_host ? kn_arena_strndup(look->arena, look->url.authority.ptr, (size_t)in_host)
                           : kn_arena_strndup(look->arena, path, len);
    look->key = in_host ? path : path + len + (path[len] == '/');
    if (*look->key && !is_plain_key(look->key))
        return kn_err_set(err, KN_E_REFUSED,
                          "requests for '%.400s' are not signed: its key has dot or empty segments",
                          look->key);
    KnS3Place place;
    return kn_s3_place(look->s3,
                       kn_str(kn_arena_printf(look->arena, "s3://%s/%s", look->bucket, look->key)),
                       &place, err);
}

static KnCode take_params(Look *look, KnErr *err)
{
    KnStr query = look->url.query;
    if (query.len && memchr(query.ptr, '+', query.len))
        return kn_err_set(err, KN_E_REFUSED, "a '+' in a query may mean two things: spell it %%2B");
    for (size_t from = 0; from < query.len;) {
        const char *end = memchr(query.ptr + from, '&', query.len - from);
        KnStr part = {query.ptr + from, end ? (size_t)(end - query.ptr) - from : query.len - from};
        from += part.len + 1;
        if (!part.len)
            continue;
        if (look->n_params == PARAMS_MAX)
            return kn_err_set(err, KN_E_REFUSED, "its query has more than %d parameters",
                              PARAMS_MAX);
        const char *sign = memchr(part.ptr, '=', part.len);
        KnStr name = {part.ptr, sign ? (size_t)(sign - part.ptr) : part.len};
        KnStr value = {part.ptr + name.len + (sign ? 1 : 0), part.len - name.len - (sign ? 1 : 0)};
        Param *param = &look->params[look->n_params++];
        KN_TRY(decoded(look, name, &param->name, err));
        KN_TRY(decoded(look, value, &param->value, err));
    }
    return KN_OK;
}

static const char *param(const Look *look, const char *name)
{
    for (size_t i = 0; i < look->n_params; i++)
        if (!strcmp(look->params[i].name, name))
            return look->params[i].value;
    return NULL;
}

/* Every parameter is one of these, ended by NULL, and none is there twice. */
static bool only(const Look *look, const char *const *names)
{
    for (size_t i = 0; i < look->n_params; i++) {
        const char *name = look->params[i].name;
        bool known = !strcmp(name, "x-id");
        for (const char *const *at = names; *at && !known; at++)
            known = !strcmp(name, *at);
        for (size_t j = 0; j < i; j++)
            known = known && strcmp(name, look->params[j].name) != 0;
        if (!known)
            return false;
    }
    return true;
}

/* ---- the headers ------------------------------------------------------------------------ */

static const char *header(const KnS3Foreign *req, const char *name)
{
    for (size_t i = 0; i < req->n_headers; i++)
        if (!strcasecmp(req->headers[i].name, name))
            return req->headers[i].value;
    return NULL;
}

static bool begins(const char *text, const char *with)
{
    return !strncasecmp(text, with, strlen(with));
}

/* Ours to make, whatever the sender has there. */
static bool is_ours(const char *name)
{
    return !strcasecmp(name, "authorization") || !strcasecmp(name, "x-amz-date") ||
           !strcasecmp(name, "x-amz-security-token") || !strcasecmp(name, "x-amz-content-sha256") ||
           !strcasecmp(name, "host");
}

static bool is_harmless(const char *name, const char *value)
{
    static const char *const fine[] = {
        "x-amz-meta-",         "x-amz-checksum-",          "x-amz-sdk-checksum-",
        "x-amz-trailer",       "x-amz-decoded-content-",   "x-amz-server-side-encryption",
        "x-amz-storage-class", "x-amz-user-agent",         "x-amz-te",
        "x-amz-request-payer", "x-amz-expected-bucket-own"};
    if (!begins(name, "x-amz-") || is_ours(name))
        return true;
    if (!strcasecmp(name, "x-amz-acl"))
        return !strcmp(value, "private") || !strcmp(value, "bucket-owner-full-control");
    for (size_t i = 0; i < sizeof(fine) / sizeof(fine[0]); i++)
        if (begins(name, fine[i]))
            return true;
    return false;
}

static KnCode check_headers(const KnS3Foreign *req, KnErr *err)
{
    for (size_t i = 0; i < req->n_headers; i++) {
        const KnHttpHeader *h = &req->headers[i];
        if (!*h->name || strpbrk(h->name, "\r\n: ") || strpbrk(h->value, "\r\n"))
            return kn_err_set(err, KN_E_INVAL, "'%.100s' is no header", h->name);
        if (!is_harmless(h->name, h->value))
            return kn_err_set(err, KN_E_REFUSED,
                              "requests with the header %.100s are not signed: it would do more "
                              "than read or write an object",
                              h->name);
    }
    return KN_OK;
}

/* ---- what it does ----------------------------------------------------------------------- */

static KnCode refuse(const Look *look, KnErr *err)
{
    return kn_err_set(err, KN_E_REFUSED,
                      "%.20s of %s '%.400s'%s%.200s is not signed: only reading, writing, deleting "
                      "and listing objects is",
                      look->req->method, *look->key ? "object" : "bucket",
                      *look->key ? look->key : look->bucket, look->url.query.len ? " with ?" : "",
                      look->url.query.len
                          ? kn_arena_strndup(look->arena, look->url.query.ptr, look->url.query.len)
                          : "");
}

static void touch(Look *look, const char *key, bool write)
{
    *kn_vec_push(&look->touches) =
        (KnS3Touch){kn_arena_printf(look->arena, "s3://%s/%s", look->bucket, key), write};
    look->intent.write = look->intent.write || write;
}

static KnCode on_delete_key(void *arg, KnStr path, KnStr text, KnErr *err)
{
    Look *look = arg;
    if (kn_str_eq(path, KN_STR_LIT("Delete/Object/VersionId")))
        return kn_err_set(err, KN_E_REFUSED, "deleting old versions of objects is not signed");
    if (!kn_str_eq(path, KN_STR_LIT("Delete/Object/Key")))
        return KN_OK;
    const char *key = kn_arena_strndup(look->arena, text.ptr, text.len);
    if (!*key || !is_plain_key(key) || look->touches.len == KEYS_MAX)
        return kn_err_set(err, KN_E_REFUSED, "deleting '%.400s' is not signed", key);
    touch(look, key, true);
    return KN_OK;
}

static KnCode delete_objects(Look *look, KnErr *err)
{
    uint8_t hash[KN_SHA256_LEN];
    char *hex = kn_arena_alloc(look->arena, 2 * KN_SHA256_LEN + 1);
    if (!look->req->body)
        return kn_err_set(err, KN_E_INVAL, "deleting several objects needs the body to be told");
    KnCode rc = kn_s3_xml_parse(kn_str(look->req->body), on_delete_key, look, err);
    if (rc == KN_E_CORRUPT)
        rc = kn_err_recode(err, KN_E_INVAL);
    KN_TRY(rc);
    if (!look->touches.len)
        return kn_err_set(err, KN_E_INVAL, "the body names no object to delete");
    kn_sha256(kn_str(look->req->body), hash);
    look->intent.payload_hash = kn_hex(hash, sizeof(hash), hex); /* this body and no other */
    return KN_OK;
}

static KnCode of_bucket(Look *look, KnErr *err)
{
    static const char *const list[] = {
        "list-type",   "prefix",        "delimiter",   "max-keys", "continuation-token",
        "start-after", "encoding-type", "fetch-owner", "marker",   NULL};
    static const char *const location[] = {"location", NULL}, *const none[] = {NULL};
    static const char *const remove[] = {"delete", NULL};
    const char *method = look->req->method, *prefix = param(look, "prefix");
    bool get = !strcmp(method, "GET"), head = !strcmp(method, "HEAD");
    if (!strcmp(method, "POST") && param(look, "delete") && only(look, remove))
        return delete_objects(look, err);
    look->intent.bucket_only =
        (head && only(look, none)) || (get && param(look, "location") && only(look, location));
    if (look->intent.bucket_only)
        return KN_OK;
    if (!get || !prefix || !*prefix || !only(look, list))
        return refuse(look, err);
    size_t folder = strlen(prefix);
    while (folder && prefix[folder - 1] != '/')
        folder--;
    if (!folder || !is_plain_key(prefix))
        return kn_err_set(err, KN_E_REFUSED,
                          "listing '%.400s' is not signed: it is no folder of the bucket", prefix);
    touch(look, kn_arena_strndup(look->arena, prefix, folder), false);
    return KN_OK;
}

static KnCode of_object(Look *look, KnErr *err)
{
    static const char *const read[] = {"partNumber", "response-content-type", NULL};
    static const char *const put[] = {"partNumber", "uploadId", NULL};
    static const char *const upload[] = {"uploadId", NULL}, *const begin[] = {"uploads", NULL};
    static const char *const parts[] = {"uploadId", "max-parts", "part-number-marker", NULL};
    const char *method = look->req->method;
    bool has_id = param(look, "uploadId") != NULL;
    bool get = !strcmp(method, "GET");
    bool reads = (get || !strcmp(method, "HEAD")) && only(look, read);
    bool writes = (!strcmp(method, "PUT") && only(look, put)) ||
                  (!strcmp(method, "DELETE") && only(look, upload)) ||
                  (!strcmp(method, "POST") && has_id && only(look, upload)) ||
                  (!strcmp(method, "POST") && param(look, "uploads") && only(look, begin)) ||
                  (get && has_id && only(look, parts));
    if (!reads && !writes)
        return refuse(look, err);
    touch(look, look->key, !reads);
    return KN_OK;
}

static bool is_hash(const char *text)
{
    return strlen(text) == (size_t)2 * KN_SHA256_LEN &&
           strspn(text, "0123456789abcdef") == (size_t)2 * KN_SHA256_LEN;
}

static KnCode take_payload(Look *look, KnErr *err)
{
    const char *given = header(look->req, "x-amz-content-sha256");
    bool told = given && (is_hash(given) || !strcmp(given, KN_SIGV4_UNSIGNED) ||
                          !strcmp(given, "STREAMING-UNSIGNED-PAYLOAD-TRAILER"));
    if (given && !told && strcmp(given, "required") != 0 && *given)
        return kn_err_set(err, KN_E_REFUSED,
                          "a body of the kind %.80s is not signed: its parts would need the key",
                          given);
    if (!look->intent.payload_hash)
        look->intent.payload_hash = told ? kn_arena_strdup(look->arena, given) : KN_SIGV4_UNSIGNED;
    else if (told && is_hash(given) && strcmp(given, look->intent.payload_hash) != 0)
        return kn_err_set(err, KN_E_INVAL, "x-amz-content-sha256 is not that of the body");
    return KN_OK;
}

/* "dt=1" and "dt%3D1" are one key, and stores sign the latter. */
static KnCode spell_uri(Look *look, KnErr *err)
{
    KN_BUF_AUTO uri;
    const char *path = NULL;
    KN_TRY(decoded(look, look->url.path, &path, err));
    kn_buf_init(&uri, 256 << 10);
    kn_buf_printf(&uri, "http%s://", look->url.tls ? "s" : "");
    kn_buf_str(&uri, look->url.authority);
    kn_url_encode(&uri, kn_str(*path ? path : "/"), true);
    for (size_t i = 0; i < look->n_params; i++) {
        kn_buf_char(&uri, i ? '&' : '?');
        kn_url_encode(&uri, kn_str(look->params[i].name), false);
        kn_buf_char(&uri, '=');
        kn_url_encode(&uri, kn_str(look->params[i].value), false);
    }
    KN_TRY(kn_buf_check(&uri, err));
    look->intent.uri = kn_arena_strndup(look->arena, uri.data, uri.len);
    return KN_OK;
}

static KnCode look_at(Look *look, KnErr *err)
{
    KnCode rc = kn_url_parse(kn_str(look->req->uri), &look->url, err);
    if (rc != KN_OK)
        return kn_err_wrap(err, rc, "uri");
    KN_TRY(check_headers(look->req, err));
    KN_TRY(take_place(look, err));
    KN_TRY(take_params(look, err));
    KN_TRY(*look->key ? of_object(look, err) : of_bucket(look, err));
    KN_TRY(spell_uri(look, err));
    return take_payload(look, err);
}

KnCode kn_s3_intent(KnFileIO *io, KnArena *arena, const KnS3Foreign *req, KnS3Intent *ret,
                    KnErr *err)
{
    Look look = {.s3 = (KnS3 *)io, .arena = arena, .req = req};
    KnCode rc = look_at(&look, err);
    if (rc == KN_OK) {
        size_t n = look.touches.len;
        KnS3Touch *touches = kn_arena_alloc(arena, (n + 1) * sizeof(*touches));
        if (n)
            memcpy(touches, look.touches.items, n * sizeof(*touches));
        look.intent.touches = touches;
        look.intent.n = n;
        look.intent.bucket = look.bucket;
        *ret = look.intent;
    }
    kn_vec_done(&look.touches);
    return rc;
}

/* ---- signing ---------------------------------------------------------------------------- */

static bool is_signed(const char *name, bool write)
{
    return begins(name, "x-amz-") ||
           (write && (!strcasecmp(name, "content-type") || !strcasecmp(name, "content-md5")));
}

/* Who sends it leaves out the port that the scheme has anyway. */
static const char *host_of(KnArena *arena, const KnUrl *url)
{
    KnStr at = url->authority;
    bool implied = kn_str_eq(url->port, url->tls ? KN_STR_LIT("443") : KN_STR_LIT("80"));
    return kn_arena_strndup(arena, at.ptr, at.len - (implied ? url->port.len + 1 : 0));
}

/* The request with the headers that are signed first; *ret_plain the others. */
static KnHttpRequest sort_headers(KnArena *arena, const KnS3Foreign *req, const KnS3Intent *intent,
                                  const KnUrl *url, KnS3Signed *ret_plain)
{
    KnHttpHeader *chosen = kn_arena_alloc(arena, (req->n_headers + 1) * sizeof(*chosen));
    KnHttpHeader *plain = kn_arena_alloc(arena, (req->n_headers + 1) * sizeof(*plain));
    size_t n = 0, n_plain = 0;
    chosen[n++] = (KnHttpHeader){"Host", host_of(arena, url)};
    for (size_t i = 0; i < req->n_headers; i++) {
        if (is_ours(req->headers[i].name))
            continue;
        if (is_signed(req->headers[i].name, intent->write))
            chosen[n++] = req->headers[i];
        else
            plain[n_plain++] = req->headers[i];
    }
    *ret_plain = (KnS3Signed){plain, n_plain};
    return (KnHttpRequest){
        .method = req->method, .url = intent->uri, .headers = chosen, .n_headers = n};
}

KnCode kn_s3_sign_for(KnFileIO *io, KnArena *arena, const KnS3Foreign *req,
                      const KnS3Intent *intent, KnS3Signed *ret, KnErr *err)
{
    KnS3 *s3 = (KnS3 *)io;
    KnS3Keys keys = {0};
    KnS3Signed plain = {0};
    KnUrl url;
    KN_TRY(kn_url_parse(kn_str(req->uri), &url, err));
    KN_TRY(kn_s3_credentials_get(s3->creds, arena, &keys, err));
    const KnHttpRequest made = sort_headers(arena, req, intent, &url, &plain);
    const KnSigV4 sig = {.access_key_id = keys.access_key_id,
                         .secret_access_key = keys.secret_access_key,
                         .session_token = keys.session_token,
                         .region = kn_s3_region(s3, arena, kn_str(intent->bucket)),
                         .service = "s3",
                         .now_ms = kn_clock_wall_ms() + atomic_load(&s3->skew_ms),
                         .payload_hash = intent->payload_hash};
    KnHttpHeader *all = NULL;
    size_t n = 0;
    KnCode rc = kn_sigv4_sign(arena, &sig, &made, &all, &n, err);
    kn_s3_keys_wipe(&keys);
    KN_TRY(rc);
    KnHttpHeader *out = kn_arena_alloc(arena, (n + plain.n) * sizeof(*out));
    memcpy(out, all, n * sizeof(*out));
    if (plain.n)
        memcpy(out + n, plain.headers, plain.n * sizeof(*out));
    *ret = (KnS3Signed){out, n + plain.n};
    return KN_OK;
}
