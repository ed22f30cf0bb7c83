/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lend.c - see lend.h.
 *
 * Loans are found by the text of their policy. One mutex guards them; it is not held while STS is
 * asked: the loan is marked as being fetched, and others who want it wait for the condition.
 */
#include "storage/s3/lend.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/map.h"
#include "net/digest.h"
#include "net/sigv4.h"
#include "net/url.h"
#include "storage/s3/credentials.h"
#include "storage/s3/xml.h"

enum {
    POLICY_MAX = 2048, /* AWS: characters of a session policy */
    LOANS_MAX = 4096,  /* then those that have ended go */
    ANSWER_MAX = 256 << 10,
    TOTAL_MS = 10000, /* a client waits for this */
    SAME_FAILURE_US = 5 * 1000000,
    LAST_MS = 60000, /* keys with less life than this are not lent, whatever STS says */
    DEFAULT_S = 3600,
};

typedef struct Loan {
    bool fetching;
    KnArena *arena; /* of keys; NULL = none */
    KnS3Keys keys;
    int64_t got_ms;
    KnErr failed; /* code KN_OK = the last try did not fail */
    int64_t failed_us;
} Loan;

struct KnS3Lender {
    KnArena *arena; /* of the texts */
    KnHttpClient *http;
    KnS3Credentials *creds;
    const char *url, *role_arn, *region;
    int64_t duration_s;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    KnMap *loans; /* policy -> Loan */
};

/* ---- the policy ------------------------------------------------------------------------- */

static const char *partition(const char *region)
{
    if (strncmp(region, "cn-", 3) == 0)
        return "aws-cn";
    return strncmp(region, "us-gov-", 7) == 0 ? "aws-us-gov" : "aws";
}

typedef struct Folder {
    KnStr bucket, prefix;
} Folder;

/* Wildcards and variables of the policy language would open more than the folder; and no folder at
 * all is the whole bucket. */
static KnCode folder_of(const char *location, Folder *ret, KnErr *err)
{
    const char *rest = strstr(location, "://");
    const char *slash = rest ? strchr(rest + 3, '/') : NULL;
    if (!slash || !slash[1] || slash == rest + 3)
        return kn_err_set(err, KN_E_UNSUPPORTED,
                          "no keys can be lent for '%.400s': it is a whole bucket", location);
    if (strpbrk(location, "*?$"))
        return kn_err_set(err, KN_E_UNSUPPORTED,
                          "no keys can be lent for '%.400s': a session policy would take its *, ? "
                          "or $ for a wildcard",
                          location);
    *ret = (Folder){{rest + 3, (size_t)(slash - rest - 3)}, kn_str(slash + 1)};
    return KN_OK;
}

static void put_quoted(KnBuf *out, KnArena *arena, const char *before, KnStr text,
                       const char *behind)
{
    const char *all = kn_arena_printf(arena, "%s%.*s%s", before, (int)text.len, text.ptr, behind);
    kn_json_quote(out, kn_str(all));
}

static void put_objects(KnBuf *out, KnArena *arena, const char *arn, const KnS3Grant *grant)
{
    kn_buf_text(out, "{\"Effect\":\"Allow\",\"Action\":[\"s3:GetObject\"");
    if (grant->write)
        kn_buf_text(out, ",\"s3:PutObject\",\"s3:DeleteObject\",\"s3:AbortMultipartUpload\","
                         "\"s3:ListMultipartUploadParts\"");
    kn_buf_text(out, "],\"Resource\":[");
    for (size_t i = 0; i < grant->n; i++) {
        kn_buf_text(out, i ? "," : "");
        put_quoted(out, arena, arn, kn_str(strstr(grant->folders[i], "://") + 3), "/*");
    }
    kn_buf_text(out, "]}");
}

static void put_list(KnBuf *out, KnArena *arena, const char *arn, const Folder *folder)
{
    kn_buf_text(out, ",{\"Effect\":\"Allow\",\"Action\":[\"s3:ListBucket\"],\"Resource\":[");
    put_quoted(out, arena, arn, folder->bucket, "");
    kn_buf_text(out, "],\"Condition\":{\"StringLike\":{\"s3:prefix\":[");
    put_quoted(out, arena, "", folder->prefix, "/*");
    kn_buf_text(out, "]}}},{\"Effect\":\"Allow\",\"Action\":[\"s3:GetBucketLocation\"],"
                     "\"Resource\":[");
    put_quoted(out, arena, arn, folder->bucket, "");
    kn_buf_text(out, "]}");
}

KnCode kn_s3_lend_policy(KnArena *arena, const char *region, const KnS3Grant *grant,
                         const char **ret, KnErr *err)
{
    const char *arn = kn_arena_printf(arena, "arn:%s:s3:::", partition(region));
    KN_BUF_AUTO text;
    kn_buf_init(&text, 64 << 10);
    Folder *folders = kn_arena_alloc(arena, (grant->n + 1) * sizeof(*folders));
    for (size_t i = 0; i < grant->n; i++)
        KN_TRY(folder_of(grant->folders[i], &folders[i], err));
    kn_buf_text(&text, "{\"Version\":\"2012-10-17\",\"Statement\":[");
    put_objects(&text, arena, arn, grant);
    for (size_t i = 0; i < grant->n; i++)
        put_list(&text, arena, arn, &folders[i]);
    kn_buf_text(&text, "]}");
    if (text.failed || text.len > POLICY_MAX)
        return kn_err_set(err, KN_E_UNSUPPORTED,
                          "no keys can be lent for '%.400s': its session policy would be longer "
                          "than %d characters",
                          grant->folders[0], POLICY_MAX);
    *ret = kn_arena_strndup(arena, text.data, text.len);
    return KN_OK;
}

/* ---- STS -------------------------------------------------------------------------------- */

static KnStr buf_str(const KnBuf *buf)
{
    return (KnStr){buf->data, buf->len};
}

static void add_param(KnBuf *form, const char *name, const char *value)
{
    kn_buf_printf(form, "&%s=", name);
    kn_url_encode(form, kn_str(value), false);
}

static KnCode send_signed(KnS3Lender *lender, KnArena *arena, const KnS3Keys *keys, KnStr form,
                          KnHttpResponse *ret, KnErr *err)
{
    const KnHttpHeader type = {"Content-Type", "application/x-www-form-urlencoded"};
    uint8_t hash[KN_SHA256_LEN];
    char hex[2 * KN_SHA256_LEN + 1];
    kn_sha256(form, hash);
    KnHttpRequest req = {.method = "POST",
                         .url = lender->url,
                         .headers = &type,
                         .n_headers = 1,
                         .body = form,
                         .total_ms = TOTAL_MS,
                         .max_response = ANSWER_MAX};
    const KnSigV4 sig = {.access_key_id = keys->access_key_id,
                         .secret_access_key = keys->secret_access_key,
                         .session_token = keys->session_token,
                         .region = lender->region,
                         .service = "sts",
                         .now_ms = kn_clock_wall_ms(),
                         .payload_hash = kn_hex(hash, sizeof(hash), hex)};
    KnHttpHeader *headers = NULL;
    KN_TRY(kn_sigv4_sign(arena, &sig, &req, &headers, &req.n_headers, err));
    req.headers = headers;
    return kn_http_settle(kn_http_perform(lender->http, &req, ret, err), err);
}

static KnCode refused(const KnHttpResponse *resp, KnErr *err)
{
    KnS3Error error;
    bool known = kn_s3_error_parse(buf_str(&resp->body), &error);
    return kn_err_set(err, KN_E_IO, "HTTP %d%s%s%s%s", resp->status, known ? " " : "",
                      known ? error.code : "", known ? ": " : "", known ? error.message : "");
}

/* One request. *ret_again: the keys that it was signed with had ended, and there are others. */
static KnCode assume_once(KnS3Lender *lender, KnArena *arena, KnStr form, KnS3Keys *ret,
                          bool *ret_again, KnErr *err)
{
    KnS3Keys own = {0};
    KN_HTTP_RESPONSE_AUTO resp = {0};
    KN_TRY(kn_s3_credentials_get(lender->creds, arena, &own, err));
    KN_TRY(send_signed(lender, arena, &own, form, &resp, err));
    if (resp.status == 200)
        return kn_s3_sts_parse(arena, buf_str(&resp.body), ret, err);
    KnS3Error error;
    *ret_again = kn_s3_error_parse(buf_str(&resp.body), &error) &&
                 !strncmp(error.code, "ExpiredToken", strlen("ExpiredToken")) &&
                 kn_s3_credentials_refused(lender->creds, own.access_key_id);
    return refused(&resp, err);
}

static KnCode assume(KnS3Lender *lender, KnArena *arena, const char *policy, KnS3Keys *ret,
                     KnErr *err)
{
    KN_BUF_AUTO form;
    kn_buf_init(&form, 64 << 10);
    kn_buf_text(&form, "Action=AssumeRole&Version=2011-06-15&RoleSessionName=knut-catalog");
    kn_buf_printf(&form, "&DurationSeconds=%lld", (long long)lender->duration_s);
    if (lender->role_arn)
        add_param(&form, "RoleArn", lender->role_arn);
    add_param(&form, "Policy", policy);
    KN_TRY(kn_buf_check(&form, err));
    bool again = false;
    KnS3Keys keys = {0};
    KnCode rc = assume_once(lender, arena, buf_str(&form), &keys, &again, err);
    if (again)
        rc = assume_once(lender, arena, buf_str(&form), &keys, &again, err);
    if (rc == KN_OK && (!keys.session_token || !keys.expires_ms))
        rc = kn_err_set(err, KN_E_CORRUPT, "the keys in its answer have no token or no end");
    if (rc != KN_OK)
        return kn_err_wrap(err, rc, "STS AssumeRole");
    *ret = keys;
    return KN_OK;
}

/* ---- loans ------------------------------------------------------------------------------ */

static void forget(Loan *loan)
{
    if (!loan->arena)
        return;
    kn_s3_keys_wipe(&loan->keys);
    loan->arena = kn_arena_free(loan->arena);
}

static bool is_fresh(const Loan *loan)
{
    int64_t half = loan->got_ms + (loan->keys.expires_ms - loan->got_ms) / 2;
    return loan->arena && kn_clock_wall_ms() < half;
}

/* Keeps what is fresh or on its way. */
static void drop_ended(KnS3Lender *lender)
{
    KnMap *kept = kn_map_new();
    KnStr policy;
    void *value;
    for (size_t i = 0; kn_map_entry(lender->loans, i, &policy, &value); i++) {
        Loan *loan = value;
        bool is_new;
        if (loan->fetching || is_fresh(loan)) {
            *kn_map_get_or_add(kept, policy, &is_new) = loan;
            continue;
        }
        forget(loan);
        free(loan);
    }
    (void)kn_map_free(lender->loans);
    lender->loans = kept;
}

static Loan *find_loan(KnS3Lender *lender, const char *policy)
{
    bool is_new;
    if (kn_map_count(lender->loans) >= LOANS_MAX && !kn_map_find(lender->loans, kn_str(policy)))
        drop_ended(lender);
    void **slot = kn_map_get_or_add(lender->loans, kn_str(policy), &is_new);
    if (is_new && !(*slot = calloc(1, sizeof(Loan))))
        abort();
    return *slot;
}

/* With the mutex held, which is let go of while STS is asked. The loan stays: it is being fetched.
 * True: it has new keys, even where our clock makes them look old. */
static bool fetch(KnS3Lender *lender, Loan *loan, const char *policy)
{
    KnErr err = {0};
    KnS3Keys keys = {0};
    KnArena *arena = kn_arena_new(0);
    KN_ARENA_AUTO scratch = kn_arena_new(0);
    loan->fetching = true;
    (void)pthread_mutex_unlock(&lender->mutex);
    KnCode rc = assume(lender, scratch, policy, &keys, &err);
    (void)pthread_mutex_lock(&lender->mutex);
    loan->fetching = false;
    if (rc == KN_OK) {
        forget(loan);
        kn_s3_keys_copy(arena, &keys, &loan->keys);
        loan->arena = arena;
        loan->got_ms = kn_clock_wall_ms();
        loan->failed.code = KN_OK;
    } else {
        (void)kn_arena_free(arena);
        err.code = rc;
        loan->failed = err;
        loan->failed_us = kn_clock_mono_us();
    }
    kn_s3_keys_wipe(&keys);
    (void)pthread_cond_broadcast(&lender->changed);
    return rc == KN_OK;
}

static KnCode lend_locked(KnS3Lender *lender, const char *policy, KnArena *arena, KnS3Keys *ret,
                          KnErr *err)
{
    for (;;) {
        Loan *loan = find_loan(lender, policy); /* again: drop_ended() may have come between */
        if (is_fresh(loan)) {
            kn_s3_keys_copy(arena, &loan->keys, ret);
            return KN_OK;
        }
        bool failed =
            loan->failed.code != KN_OK && kn_clock_mono_us() - loan->failed_us < SAME_FAILURE_US;
        if (failed && !loan->fetching) {
            if (loan->arena && kn_clock_wall_ms() < loan->keys.expires_ms - LAST_MS) {
                kn_s3_keys_copy(arena, &loan->keys, ret);
                return KN_OK;
            }
            if (err)
                *err = loan->failed;
            return loan->failed.code;
        }
        if (loan->fetching) {
            (void)pthread_cond_wait(&lender->changed, &lender->mutex);
        } else if (fetch(lender, loan, policy)) {
            kn_s3_keys_copy(arena, &loan->keys, ret);
            return KN_OK;
        }
    }
}

KnCode kn_s3_lend(KnS3Lender *lender, KnArena *arena, const KnS3Grant *grant, KnS3Keys *ret,
                  KnErr *err)
{
    const char *policy = NULL;
    KN_TRY(kn_s3_lend_policy(arena, lender->region, grant, &policy, err));
    (void)pthread_mutex_lock(&lender->mutex);
    KnCode rc = lend_locked(lender, policy, arena, ret, err);
    (void)pthread_mutex_unlock(&lender->mutex);
    return rc;
}

/* ---- opening ---------------------------------------------------------------------------- */

static KnCode set_url(KnS3Lender *lender, const char *endpoint, KnErr *err)
{
    KnUrl url;
    if (!endpoint) {
        bool china = strncmp(lender->region, "cn-", 3) == 0;
        lender->url = kn_arena_printf(lender->arena, "https://sts.%s.amazonaws.com%s/",
                                      lender->region, china ? ".cn" : "");
        return KN_OK;
    }
    KnCode rc = kn_url_parse(kn_str(endpoint), &url, err);
    if (rc != KN_OK)
        return kn_err_wrap(err, rc, "STS endpoint '%.200s'",
                           strchr(endpoint, '@') ? "..." : endpoint);
    if (url.query.len)
        return kn_err_set(err, KN_E_INVAL, "STS endpoint '%.200s': expected http[s]://HOST[:PORT]",
                          endpoint);
    lender->url = kn_arena_printf(lender->arena, "%s%s", endpoint, url.path.len ? "" : "/");
    return KN_OK;
}

static KnCode fill(KnS3Lender *lender, const KnS3LenderOptions *options, KnErr *err)
{
    lender->region = kn_s3_option_region(options->s3, lender->arena);
    lender->duration_s = options->duration_s ? options->duration_s : DEFAULT_S;
    if (options->role_arn)
        lender->role_arn = kn_arena_strdup(lender->arena, options->role_arn);
    KN_TRY(set_url(lender, options->endpoint, err));
    const KnHttpClientOptions http = {.ca_file = kn_s3_option_ca(options->s3)};
    KN_TRY(kn_http_client_new(&http, &lender->http, err));
    lender->creds = kn_s3_credentials_new(options->s3, lender->http, lender->region);
    return KN_OK;
}

KnS3Lender *kn_s3_lender_close(KnS3Lender *lender)
{
    void *loan;
    if (!lender)
        return NULL;
    for (size_t i = 0; kn_map_entry(lender->loans, i, NULL, &loan); i++) {
        forget(loan);
        free(loan);
    }
    lender->loans = kn_map_free(lender->loans);
    lender->creds = kn_s3_credentials_free(lender->creds);
    lender->http = kn_http_client_free(lender->http);
    (void)pthread_cond_destroy(&lender->changed);
    (void)pthread_mutex_destroy(&lender->mutex);
    lender->arena = kn_arena_free(lender->arena);
    free(lender);
    return NULL;
}

KnCode kn_s3_lender_open(const KnS3LenderOptions *options, KnS3Lender **ret, KnErr *err)
{
    KnS3Lender *lender = calloc(1, sizeof(*lender));
    if (!lender || pthread_mutex_init(&lender->mutex, NULL) != 0 ||
        pthread_cond_init(&lender->changed, NULL) != 0)
        abort();
    lender->arena = kn_arena_new(0);
    lender->loans = kn_map_new();
    KnCode rc = fill(lender, options, err);
    if (rc != KN_OK) {
        (void)kn_s3_lender_close(lender);
        return rc;
    }
    *ret = lender;
    return KN_OK;
}
