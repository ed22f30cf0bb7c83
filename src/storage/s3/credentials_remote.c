/* SPDX-License-Identifier: Apache-2.0 */
/*
 * credentials_remote.c - keys that are asked for: STS with a web identity, a container's endpoint,
 * the instance's metadata.
 *
 * The container's endpoint and the metadata service are at fixed addresses near the machine; they
 * are asked without proxy, and given a second to answer: most machines have none. Answers hold
 * secrets: none of their text gets into a message.
 */
#include <stdlib.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/random.h"
#include "net/url.h"
#include "storage/s3/credentials.h"
#include "storage/s3/xml.h"

enum { NEAR_MS = 1000, FAR_MS = 10000, MAX_ANSWER = 256 << 10 };

static KnStr buf_str(const KnBuf *buf)
{
    return (KnStr){buf->data, buf->len};
}

/* ---- web identity ----------------------------------------------------------------------- */

static void add_param(KnBuf *form, const char *name, const char *value)
{
    kn_buf_printf(form, "&%s=", name);
    kn_url_encode(form, kn_str(value), false);
}

static KnCode sts_failed(const KnHttpResponse *resp, KnErr *err)
{
    KnS3Error error;
    bool known = kn_s3_error_parse(buf_str(&resp->body), &error);
    return kn_err_set(err, KN_E_IO, "STS AssumeRoleWithWebIdentity: HTTP %d%s%s%s%s", resp->status,
                      known ? " " : "", known ? error.code : "", known ? ": " : "",
                      known ? error.message : "");
}

static const char *sts_endpoint(const KnS3Remote *remote, KnArena *arena)
{
    static const char *const names[] = {"AWS_ENDPOINT_URL_STS", "AWS_ENDPOINT_URL", NULL};
    const char *given = kn_s3_env_first(names);
    return given ? given : kn_arena_printf(arena, "https://sts.%s.amazonaws.com/", remote->region);
}

KnCode kn_s3_keys_web_identity(const KnS3Remote *remote, KnArena *arena, KnS3Keys *ret,
                               KnS3Found *ret_found, KnErr *err)
{
    const char *file = kn_s3_env("AWS_WEB_IDENTITY_TOKEN_FILE");
    const char *role = kn_s3_env("AWS_ROLE_ARN"), *token = NULL;
    if (!file)
        return KN_OK;
    if (!role)
        return kn_err_set(err, KN_E_INVAL,
                          "AWS_WEB_IDENTITY_TOKEN_FILE is set, AWS_ROLE_ARN is not: set both");
    KN_TRY(kn_s3_read_text(arena, file, &token, err));
    char uuid[37];
    const char *session = kn_s3_env("AWS_ROLE_SESSION_NAME");
    KN_BUF_AUTO form;
    kn_buf_init(&form, MAX_ANSWER);
    kn_buf_text(&form, "Action=AssumeRoleWithWebIdentity&Version=2011-06-15");
    add_param(&form, "RoleArn", role);
    add_param(&form, "RoleSessionName",
              session ? session : kn_arena_printf(arena, "knut-%s", kn_random_uuid4(uuid)));
    add_param(&form, "WebIdentityToken", token);
    KN_TRY(kn_buf_check(&form, err));
    const KnHttpHeader type = {"Content-Type", "application/x-www-form-urlencoded"};
    const KnHttpRequest req = {.method = "POST",
                               .url = sts_endpoint(remote, arena),
                               .headers = &type,
                               .n_headers = 1,
                               .body = buf_str(&form),
                               .total_ms = FAR_MS,
                               .max_response = MAX_ANSWER};
    KN_HTTP_RESPONSE_AUTO resp = {0};
    KnCode rc = kn_http_settle(kn_http_perform(remote->http, &req, &resp, err), err);
    if (rc != KN_OK)
        return kn_err_wrap(err, rc, "STS AssumeRoleWithWebIdentity");
    if (resp.status != 200)
        return sts_failed(&resp, err);
    KN_TRY(kn_s3_sts_parse(arena, buf_str(&resp.body), ret, err));
    *ret_found = KN_S3_KEYS;
    return KN_OK;
}

/* ---- JSON of the near endpoints --------------------------------------------------------- */

static const char *json_text(KnArena *arena, const json_t *doc, const char *key)
{
    const char *value = json_string_value(json_object_get(doc, key));
    return value && *value ? kn_arena_strdup(arena, value) : NULL;
}

static KnCode parse_keys(KnArena *arena, KnStr body, const char *from, KnS3Keys *ret, KnErr *err)
{
    KN_JSON_AUTO doc = NULL;
    KnS3Keys keys = {0};
    if (kn_json_parse(body.ptr, body.len, &doc, NULL) == KN_OK) {
        keys =
            (KnS3Keys){json_text(arena, doc, "AccessKeyId"),
                       json_text(arena, doc, "SecretAccessKey"), json_text(arena, doc, "Token"), 0};
        const char *expires = json_text(arena, doc, "Expiration");
        if (expires && kn_clock_parse_ms(expires, &keys.expires_ms, NULL) != KN_OK)
            return kn_err_set(err, KN_E_CORRUPT, "%s: its credentials expire at '%.40s'", from,
                              expires);
    }
    if (!keys.access_key_id || !keys.secret_access_key)
        return kn_err_set(err, KN_E_CORRUPT, "%s: its answer holds no credentials", from);
    *ret = keys;
    return KN_OK;
}

/* ---- container -------------------------------------------------------------------------- */

/* A token must not be sent in the clear to just any host. */
static KnCode check_container_url(const char *url, KnErr *err)
{
    static const char *const near[] = {
        "127.0.0.1", "::1", "localhost", "169.254.170.2", "169.254.170.23", "fd00:ec2::23"};
    KnUrl parts;
    KN_TRY(kn_url_parse(kn_str(url), &parts, err));
    for (size_t i = 0; i < sizeof(near) / sizeof(near[0]); ++i)
        if (parts.tls || kn_str_eq(parts.host, kn_str(near[i])))
            return KN_OK;
    return kn_err_set(err, KN_E_INVAL,
                      "AWS_CONTAINER_CREDENTIALS_FULL_URI names '" KN_STR_FMT
                      "' without TLS, which is neither this machine nor its container agent",
                      KN_STR_ARG(parts.host));
}

static KnCode container_token(KnArena *arena, const char **ret, KnErr *err)
{
    const char *file = kn_s3_env("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE");
    *ret = kn_s3_env("AWS_CONTAINER_AUTHORIZATION_TOKEN");
    return file ? kn_s3_read_text(arena, file, ret, err) : KN_OK;
}

KnCode kn_s3_keys_container(const KnS3Remote *remote, KnArena *arena, KnS3Keys *ret,
                            KnS3Found *ret_found, KnErr *err)
{
    const char *relative = kn_s3_env("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"), *token = NULL;
    const char *url = relative ? kn_arena_printf(arena, "http://169.254.170.2%s", relative)
                               : kn_s3_env("AWS_CONTAINER_CREDENTIALS_FULL_URI");
    if (!url)
        return KN_OK;
    KN_TRY(check_container_url(url, err));
    KN_TRY(container_token(arena, &token, err));
    const KnHttpHeader header = {"Authorization", token};
    const KnHttpRequest req = {.method = "GET",
                               .url = url,
                               .headers = &header,
                               .n_headers = token ? 1 : 0,
                               .connect_ms = NEAR_MS,
                               .total_ms = FAR_MS,
                               .max_response = MAX_ANSWER,
                               .no_proxy = true};
    KN_HTTP_RESPONSE_AUTO resp = {0};
    KnCode rc = kn_http_settle(kn_http_perform(remote->http, &req, &resp, err), err);
    if (rc != KN_OK)
        return kn_err_wrap(err, rc, "credentials of the container");
    if (resp.status != 200)
        return kn_err_set(err, KN_E_IO, "credentials of the container: HTTP %d from its endpoint",
                          resp.status);
    KN_TRY(parse_keys(arena, buf_str(&resp.body), "credentials of the container", ret, err));
    *ret_found = KN_S3_KEYS;
    return KN_OK;
}

/* ---- instance --------------------------------------------------------------------------- */

typedef struct Imds {
    const KnS3Remote *remote;
    const char *base;
    const char *token;
} Imds;

/* *ret: the answer's text, NULL when there is no such thing (404) or nobody answers. */
static void imds_ask(const Imds *imds, KnArena *arena, const char *path, const char **ret)
{
    const bool is_token = !imds->token;
    const KnHttpHeader header = {is_token ? "X-aws-ec2-metadata-token-ttl-seconds"
                                          : "X-aws-ec2-metadata-token",
                                 is_token ? "21600" : imds->token};
    const KnHttpRequest req = {.method = is_token ? "PUT" : "GET",
                               .url = kn_arena_printf(arena, "%s%s", imds->base, path),
                               .headers = &header,
                               .n_headers = 1,
                               .connect_ms = NEAR_MS,
                               .total_ms = (int64_t)2 * NEAR_MS,
                               .max_response = MAX_ANSWER,
                               .no_proxy = true};
    KN_HTTP_RESPONSE_AUTO resp = {0};
    *ret = NULL;
    if (kn_http_perform(imds->remote->http, &req, &resp, NULL) == KN_OK && resp.status == 200)
        *ret = kn_arena_strndup(arena, resp.body.data, resp.body.len);
}

KnCode kn_s3_keys_instance(const KnS3Remote *remote, KnArena *arena, KnS3Keys *ret,
                           KnS3Found *ret_found, KnErr *err)
{
    static const char path[] = "/latest/meta-data/iam/security-credentials/";
    const char *off = kn_s3_env("AWS_EC2_METADATA_DISABLED");
    const char *given = kn_s3_env("AWS_EC2_METADATA_SERVICE_ENDPOINT");
    if (off && kn_str_eq_nocase(kn_str(off), KN_STR_LIT("true")))
        return KN_OK;
    KnStr base = kn_str(given ? given : "http://169.254.169.254");
    while (base.len && base.ptr[base.len - 1] == '/')
        --base.len;
    Imds imds = {.remote = remote, .base = kn_arena_strndup(arena, base.ptr, base.len)};
    const char *token = NULL, *role = NULL, *body = NULL;
    imds_ask(&imds, arena, "/latest/api/token", &token);
    if (!token || strpbrk(token, "\r\n"))
        return KN_OK; /* no such service here */
    imds.token = token;
    imds_ask(&imds, arena, path, &role);
    if (!role || !*role)
        return KN_OK; /* the instance has no role */
    role = kn_arena_strndup(arena, role, strcspn(role, "\r\n"));
    imds_ask(&imds, arena, kn_arena_printf(arena, "%s%s", path, role), &body);
    if (!body)
        return kn_err_set(err, KN_E_IO, "instance metadata names role '%.100s' but not its keys",
                          role);
    KN_TRY(parse_keys(arena, kn_str(body), "instance metadata", ret, err));
    *ret_found = KN_S3_KEYS;
    return KN_OK;
}
