/* SPDX-License-Identifier: Apache-2.0 */
/*
 * request.c - signed requests with retries.
 *
 * Rounds: all calls without outcome are signed and sent together; those worth another try wait for
 * the next round. Worth it are lost connections and answers, 429 and 5xx, with full jitter (a
 * random wait below base * 2^try) or as long as Retry-After says; never other answers. Three
 * answers are not about the request but about what we believed, and are put right once each
 * without waiting: another region (301, 307, 400 with the region's name: remembered for the
 * bucket), a clock that differs (the store's Date is remembered), expired keys (new ones are
 * fetched).
 *
 * Every try is signed anew: a signature is good for 15 minutes, and a request may have waited.
 */
#include <curl/curl.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/random.h"
#include "base/stop.h"
#include "net/digest.h"
#include "net/sigv4.h"
#include "net/url.h"
#include "storage/s3/s3_internal.h"

enum {
    MAX_WAIT_MS = 20000,
    SKEW_MS = 4 * 60 * 1000, /* of 15 minutes that stores allow: smaller ones are no reason */
    MAX_URL = 16 << 10,
};

typedef enum Verdict { DONE, AGAIN_LATER, AGAIN_NOW } Verdict;

/* One call on its way. */
typedef struct Way {
    KnS3 *s3;
    KnS3Call *call;
    KnArena *arena; /* of this try */
    KnS3Keys keys;
    uint64_t got; /* bytes of out */
    int tries;
    bool fixed_region, fixed_clock, fixed_keys;
    bool done;
    int64_t wait_ms;  /* before the next try, at most */
    int64_t named_ms; /* and at least: Retry-After */
} Way;

/* ---- making a request ------------------------------------------------------------------- */

static const char *call_url(const Way *way, const char *host, bool path_style)
{
    const KnS3Place *place = &way->call->place;
    KN_BUF_AUTO url;
    kn_buf_init(&url, MAX_URL);
    kn_buf_printf(&url, "%s://%s/", way->s3->tls ? "https" : "http", host);
    if (path_style) {
        kn_buf_str(&url, place->bucket);
        kn_buf_text(&url, place->key.len ? "/" : "");
    }
    kn_url_encode(&url, place->key, true);
    if (way->call->query)
        kn_buf_printf(&url, "?%s", way->call->query);
    if (url.failed)
        return NULL;
    return kn_arena_strndup(way->arena, url.data, url.len);
}

static KnCode take_out(void *arg, const void *bytes, size_t len, KnErr *err)
{
    Way *way = arg;
    KnS3Call *call = way->call;
    if (len > call->out_len - way->got)
        return kn_err_set(err, KN_E_CORRUPT, "more than the %llu bytes asked for came back",
                          (unsigned long long)call->out_len);
    memcpy(call->out + way->got, bytes, len);
    way->got += len;
    return KN_OK;
}

/* Over TLS the body is guarded by TLS; hashing it as well would be paid twice. */
static const char *payload_hash(const Way *way)
{
    return way->s3->tls && way->call->body.len > 4096 ? KN_SIGV4_UNSIGNED : NULL;
}

static KnCode make_request(Way *way, KnHttpRequest *ret, KnErr *err)
{
    KnS3 *s3 = way->s3;
    KnS3Call *call = way->call;
    KN_TRY(kn_s3_credentials_get(s3->creds, way->arena, &way->keys, err));
    bool path_style = false;
    const char *region = kn_s3_region(s3, way->arena, call->place.bucket);
    const char *host = kn_s3_host(s3, way->arena, call->place.bucket, region, &path_style);
    const char *url = call_url(way, host, path_style);
    if (!url)
        return kn_err_set(err, KN_E_INVAL, "the key is longer than any store allows");
    KnHttpRequest req = {.method = call->method,
                         .url = url,
                         .headers = call->headers,
                         .n_headers = call->n_headers,
                         .body = call->body,
                         .max_response = call->out ? SIZE_MAX - 1 : call->max_response};
    if (call->out) {
        req.on_body = take_out;
        req.on_body_arg = way;
    }
    KnSigV4 sig = {.access_key_id = way->keys.access_key_id,
                   .secret_access_key = way->keys.secret_access_key,
                   .session_token = way->keys.session_token,
                   .region = region,
                   .service = "s3",
                   .now_ms = kn_clock_wall_ms() + atomic_load(&s3->skew_ms),
                   .payload_hash = payload_hash(way)};
    KnHttpHeader *headers = NULL;
    KN_TRY(kn_sigv4_sign(way->arena, &sig, &req, &headers, &req.n_headers, err));
    req.headers = headers;
    *ret = req;
    return KN_OK;
}

/* ---- what came of it -------------------------------------------------------------------- */

static bool fix_region(Way *way)
{
    KnS3Call *call = way->call;
    int status = call->resp.status;
    const char *region = kn_http_header(&call->resp, "x-amz-bucket-region", 0);
    if (!region || !*region)
        region = call->error.region;
    bool about = status == 301 || status == 307 || status == 400 || status == 403;
    if (way->fixed_region || !about || !*region ||
        strcmp(region, kn_s3_region(way->s3, way->arena, call->place.bucket)) == 0)
        return false;
    way->fixed_region = true;
    kn_s3_set_region(way->s3, call->place.bucket, region);
    return true;
}

static bool fix_clock(Way *way)
{
    KnS3Call *call = way->call;
    const char *date = kn_http_header(&call->resp, "date", 0);
    if (way->fixed_clock || !date || (call->resp.status != 403 && call->resp.status != 400))
        return false;
    int64_t server = (int64_t)curl_getdate(date, NULL);
    int64_t skew = server * 1000 - kn_clock_wall_ms();
    int64_t known = atomic_load(&way->s3->skew_ms);
    if (server < 0 || llabs(skew - known) < SKEW_MS)
        return false;
    way->fixed_clock = true;
    atomic_store(&way->s3->skew_ms, skew);
    return true;
}

static bool fix_keys(Way *way)
{
    const char *code = way->call->error.code;
    bool expired = strcmp(code, "ExpiredToken") == 0 || strcmp(code, "InvalidToken") == 0 ||
                   strcmp(code, "ExpiredTokenException") == 0 ||
                   strcmp(code, "TokenRefreshRequired") == 0;
    if (!expired || way->fixed_keys)
        return false;
    way->fixed_keys = true;
    return kn_s3_credentials_refused(way->s3->creds, way->keys.access_key_id);
}

static bool is_transient(const KnS3Call *call)
{
    int status = call->resp.status;
    return status == 429 || status == 500 || status == 502 || status == 503 || status == 504 ||
           status == 408 || strcmp(call->error.code, "RequestTimeout") == 0 ||
           strcmp(call->error.code, "SlowDown") == 0;
}

static int64_t retry_after_ms(const KnS3Call *call)
{
    const char *text = kn_http_header(&call->resp, "retry-after", 0);
    int64_t seconds = 0;
    if (!text || !kn_str_to_i64(kn_str(text), &seconds) || seconds < 0)
        return 0;
    return seconds > MAX_WAIT_MS / 1000 ? MAX_WAIT_MS : seconds * 1000;
}

static Verdict judge_answer(Way *way)
{
    KnS3Call *call = way->call;
    if (call->resp.status / 100 == 2) {
        if (!call->out || way->got == call->out_len)
            return DONE;
        call->code = kn_err_set(&call->err, KN_E_CORRUPT,
                                "it is truncated: %llu bytes came back where %llu are wanted",
                                (unsigned long long)way->got, (unsigned long long)call->out_len);
        call->code = kn_s3_wrap(call, call->code, &call->err);
        return DONE;
    }
    (void)kn_s3_error_parse((KnStr){call->resp.body.data, call->resp.body.len}, &call->error);
    call->code = kn_s3_call_failed(way->s3, call);
    if (fix_region(way) || fix_clock(way) || fix_keys(way))
        return AGAIN_NOW;
    if (!is_transient(call))
        return DONE;
    way->named_ms = retry_after_ms(call);
    call->lost_before = call->lost_before || (call->resp.status >= 500 && call->resp.status != 503);
    return AGAIN_LATER;
}

static Verdict judge(Way *way)
{
    KnS3Call *call = way->call;
    way->wait_ms = way->named_ms = 0;
    if (call->code == KN_OK)
        return judge_answer(way);
    call->lost_before = call->lost_before || call->code == KN_E_UNKNOWN;
    bool again = (call->code == KN_E_IO || call->code == KN_E_UNKNOWN) && call->err.retriable;
    call->code = kn_s3_wrap(call, call->code, &call->err);
    return again ? AGAIN_LATER : DONE;
}

/* ---- rounds ----------------------------------------------------------------------------- */

/* One try of each call that is not done. */
static void send_round(KnS3 *s3, Way *ways, size_t n, int parallel)
{
    KN_ARENA_AUTO arena = kn_arena_new(0);
    KnHttpCall *https = kn_arena_zalloc(arena, n * sizeof(*https));
    Way **sent = kn_arena_alloc(arena, n * sizeof(Way *));
    size_t n_sent = 0;
    for (size_t i = 0; i < n; ++i) {
        Way *way = &ways[i];
        if (way->done)
            continue;
        KnS3Call *call = way->call;
        kn_http_response_done(&call->resp);
        call->resp = (KnHttpResponse){0};
        call->error = (KnS3Error){.code = ""};
        way->arena = arena;
        way->got = 0;
        ++way->tries;
        call->code = make_request(way, &https[n_sent].req, &call->err);
        if (call->code == KN_OK)
            sent[n_sent++] = way;
        else
            way->done = true;
    }
    kn_http_perform_all(s3->http, https, n_sent, parallel);
    for (size_t i = 0; i < n_sent; ++i) {
        KnS3Call *call = sent[i]->call;
        call->code = https[i].code;
        call->err = https[i].err;
        call->resp = https[i].ret;
        Verdict verdict = judge(sent[i]);
        kn_debug("s3", "request", KN_F("operation", call->operation),
                 KN_FI("status", call->resp.status), KN_FI("try", sent[i]->tries),
                 KN_FI("us", call->resp.elapsed_us));
        sent[i]->done =
            verdict == DONE || (verdict == AGAIN_LATER && sent[i]->tries >= s3->max_tries);
        if (verdict == AGAIN_NOW)
            --sent[i]->tries;
        else if (!sent[i]->done)
            sent[i]->wait_ms = s3->retry_base_ms << (sent[i]->tries < 12 ? sent[i]->tries : 12);
    }
}

/* A random wait below the longest that a call of the round may have, but not below what the store
 * named. False when the process was asked to stop meanwhile. */
static bool wait_round(const Way *ways, size_t n)
{
    int64_t most = 0, least = 0;
    for (size_t i = 0; i < n; ++i) {
        if (ways[i].done)
            continue;
        most = ways[i].wait_ms > most ? ways[i].wait_ms : most;
        least = ways[i].named_ms > least ? ways[i].named_ms : least;
    }
    if (most == 0)
        return true;
    KnRng rng = {.state = (uint64_t)kn_random_id()};
    int64_t us = (most < MAX_WAIT_MS ? most : MAX_WAIT_MS) * 1000;
    int64_t drawn = (int64_t)kn_rng_below(&rng, (uint64_t)us) + 1;
    return !kn_stop_wait(drawn > least * 1000 ? drawn : least * 1000);
}

static void stop_all(Way *ways, size_t n)
{
    for (size_t i = 0; i < n; ++i) {
        KnS3Call *call = ways[i].call;
        if (ways[i].done)
            continue;
        KnCode code = call->lost_before ? KN_E_UNKNOWN : KN_E_CANCELLED;
        if (code == KN_E_CANCELLED)
            code = kn_err_set(&call->err, code,
                              "stopped, as asked, while the store was to be asked "
                              "again");
        call->err.code = code;
        call->code = code;
        ways[i].done = true;
    }
}

void kn_s3_run(KnS3 *s3, KnS3Call *calls, size_t n, int parallel)
{
    Way one = {0}, *ways = n == 1 ? &one : calloc(n, sizeof(*ways));
    if (!ways)
        abort();
    for (size_t i = 0; i < n; ++i)
        ways[i] = (Way){.s3 = s3, .call = &calls[i]};
    for (bool open = true; open;) {
        send_round(s3, ways, n, parallel);
        open = false;
        for (size_t i = 0; i < n; ++i)
            open = open || !ways[i].done;
        if (open && !wait_round(ways, n)) {
            stop_all(ways, n);
            open = false;
        }
    }
    if (n > 1)
        free(ways);
}

KnCode kn_s3_call(KnS3 *s3, KnS3Call *call, KnErr *err)
{
    kn_s3_run(s3, call, 1, 1);
    if (call->code != KN_OK && err)
        *err = call->err;
    return call->code;
}

void kn_s3_call_done(KnS3Call *call)
{
    kn_http_response_done(&call->resp);
}

void kn_s3_call_header(KnS3Call *call, const char *name, const char *value)
{
    assert(call->n_headers < KN_S3_MAX_HEADERS);
    call->headers[call->n_headers++] = (KnHttpHeader){name, value};
}
