/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rest_http.c - one request to the catalog: headers, who we are, tries, the answer as JSON.
 *
 * Tried again, with full jitter or after what Retry-After says: whatever changes nothing; and what
 * changes something only when the server surely has not done it (it was not sent, 429), or has an
 * Idempotency-Key under which the server does it once. 401 and 419 say that the request was not
 * looked at: it is sent once more with another token. The answer to a change that says nothing
 * certain (5xx, cut off, not JSON) is KN_E_UNKNOWN: whoever asked finds out.
 */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/random.h"
#include "base/stop.h"
#include "catalog/rest/rest_internal.h"

enum {
    HEADERS_MAX = 16, /* beside the given ones */
    PAUSE_US = 100000,
    PAUSE_MAX_US = 5000000,
    RETRY_AFTER_MAX_S = 60, /* who asks for more gets no second try */
    SKEW_MS = 60000,
};

/* One kn_remote_send(). */
typedef struct Sending {
    KnRemote *rest;
    const KnRemoteCall *call;
    KnArena *arena;
    KnStr body;
    char idempotency_key[37]; /* "" = none */
    const char *token;        /* that the last try carried; NULL = none of the session's */
    bool renewed, resigned;
    bool lost; /* a try may have been done, its answer did not arrive */
    int64_t pause_us;
} Sending;

void kn_remote_answer_done(KnRemoteAnswer *answer)
{
    kn_json_freep(&answer->doc);
}

/* ---- one try ---- */

typedef struct Headers {
    KnHttpHeader *items;
    size_t len;
} Headers;

static void add(Headers *headers, const char *name, const char *value)
{
    headers->items[headers->len++] = (KnHttpHeader){name, value};
}

static KnCode add_identity(Sending *s, Headers *headers, KnErr *err)
{
    const KnRemoteSettings *set = &s->rest->set;
    const char *basic = s->call->basic;
    if (!basic && set->user && !s->call->no_auth)
        basic = kn_arena_printf(s->arena, "%s:%s", set->user, set->password);
    if (basic) {
        add(headers, "Authorization", kn_remote_basic(s->arena, basic));
        return KN_OK;
    }
    if (s->call->no_auth || set->sigv4)
        return KN_OK;
    const char *token = s->call->token;
    s->token = NULL;
    if (!token) {
        KN_TRY(kn_remote_auth_token(s->rest, s->arena, &s->token, err));
        token = s->token;
    }
    if (token)
        add(headers, "Authorization", kn_arena_printf(s->arena, "Bearer %s", token));
    return KN_OK;
}

static void add_configured(const KnRemote *rest, Headers *headers)
{
    for (size_t i = 0; i < rest->set.n_headers; i++)
        add(headers, rest->set.headers[i].name, rest->set.headers[i].value);
}

static KnCode make_headers(Sending *s, Headers *headers, KnErr *err)
{
    const KnRemoteCall *call = s->call;
    size_t room = HEADERS_MAX + s->rest->set.n_headers;
    headers->items = kn_arena_zalloc(s->arena, room * sizeof(*headers->items));
    add(headers, "Accept", "application/json");
    if (call->form.ptr)
        add(headers, "Content-Type", "application/x-www-form-urlencoded");
    else if (call->body)
        add(headers, "Content-Type", "application/json");
    if (call->etag)
        add(headers, "If-None-Match", call->etag);
    if (call->delegated && s->rest->set.delegation)
        add(headers, "X-Iceberg-Access-Delegation", "vended-credentials");
    if (*s->idempotency_key)
        add(headers, "Idempotency-Key", s->idempotency_key);
    if (!call->no_auth)
        add_configured(s->rest, headers);
    return add_identity(s, headers, err);
}

static KnCode attempt(Sending *s, KnHttpResponse *resp, KnErr *err)
{
    const KnRemoteCall *call = s->call;
    Headers headers = {0};
    KN_TRY(make_headers(s, &headers, err));
    int stop = kn_stop_fd();
    KnHttpRequest req = {
        .method = call->method,
        .url = call->url,
        .headers = headers.items,
        .n_headers = headers.len,
        .body = s->body,
        .max_response = call->max ? call->max : KN_REMOTE_SMALL_MAX,
        .accept_gzip = true,
        .cancel_fd = stop >= 0 && call->safety == KN_REMOTE_READS ? &stop : NULL,
    };
    if (s->rest->set.sigv4 && !call->no_auth)
        KN_TRY(kn_remote_sign(s->rest, s->arena, &req, err));
    KnCode rc = kn_http_perform(s->rest->http, &req, resp, err);
    kn_debug("rest", "request", KN_F("method", call->method), KN_F("url", call->url),
             KN_FI("status", rc == KN_OK ? resp->status : 0), KN_FI("us", resp->elapsed_us));
    return rc;
}

/* ---- what a try has come to ---- */

typedef enum Next { DONE, AGAIN_NOW, AGAIN_LATER, GIVE_UP } Next;

static bool may_repeat(const Sending *s)
{
    return s->call->safety == KN_REMOTE_READS || *s->idempotency_key;
}

static KnCode not_sent(Sending *s, KnCode rc, Next *ret, KnErr *err)
{
    bool again = rc == KN_E_IO || (rc == KN_E_UNKNOWN && may_repeat(s));
    s->lost |= rc == KN_E_UNKNOWN;
    bool retriable = !err || err->retriable || rc == KN_E_UNKNOWN;
    *ret = again && retriable ? AGAIN_LATER : GIVE_UP;
    if (s->call->safety == KN_REMOTE_READS)
        rc = kn_http_settle(rc, err);
    else if (s->lost && rc == KN_E_IO)
        rc = kn_err_set(err, KN_E_UNKNOWN, "the answer was lost, then the server was gone");
    return kn_err_wrap(err, rc, "%s: %s %.200s", s->call->what, s->call->method, s->call->url);
}

static bool is_expired(int status)
{
    return status == 401 || status == 419;
}

/* A clock that is off makes every signature bad: the server's own time is taken once. */
static bool learn_time(Sending *s, const KnHttpResponse *resp)
{
    const char *date = kn_http_header(resp, "date", 0);
    struct tm tm = {0};
    if (!s->rest->set.sigv4 || s->resigned || resp->status != 403 || !date ||
        !strptime(date, "%a, %d %b %Y %H:%M:%S GMT", &tm))
        return false;
    int64_t skew = (int64_t)timegm(&tm) * 1000 - kn_clock_wall_ms() - s->rest->skew_ms;
    if (llabs(skew) < SKEW_MS)
        return false;
    s->rest->skew_ms += skew;
    s->resigned = true;
    return true;
}

/* Seconds, or a date; -1 = the header is absent or makes no sense. */
static int64_t retry_after_s(const KnHttpResponse *resp)
{
    const char *text = kn_http_header(resp, "retry-after", 0);
    int64_t seconds = -1;
    struct tm tm = {0};
    if (!text)
        return -1;
    if (kn_str_to_i64(kn_str(text), &seconds))
        return seconds >= 0 ? seconds : -1;
    if (!strptime(text, "%a, %d %b %Y %H:%M:%S GMT", &tm))
        return -1;
    seconds = (int64_t)timegm(&tm) - kn_clock_wall_ms() / 1000;
    return seconds > 0 ? seconds : 0;
}

static KnCode refused(Sending *s, const KnHttpResponse *resp, Next *ret, KnErr *err)
{
    int status = resp->status;
    *ret = GIVE_UP;
    if (is_expired(status) && !s->renewed && s->token) {
        s->renewed = true;
        if (kn_remote_auth_renew(s->rest, s->token, NULL) == KN_OK)
            *ret = AGAIN_NOW;
    } else if (learn_time(s, resp)) {
        *ret = AGAIN_NOW;
    } else if (status == 429) {
        *ret = AGAIN_LATER;
    } else if (status == 408 || status == 500 || (status >= 502 && status <= 504)) {
        s->lost |= s->call->safety == KN_REMOTE_CHANGES;
        *ret = may_repeat(s) ? AGAIN_LATER : GIVE_UP;
    }
    int64_t wait = retry_after_s(resp);
    if (*ret == AGAIN_LATER && wait > RETRY_AFTER_MAX_S)
        *ret = GIVE_UP;
    else if (*ret == AGAIN_LATER && wait >= 0)
        s->pause_us = wait * 1000000;
    return kn_remote_refusal(s->call, resp, err);
}

static KnCode bad_answer(const KnRemoteCall *call, const KnHttpResponse *resp, const KnErr *why,
                         KnErr *err)
{
    const char *type = kn_http_header(resp, "content-type", 0);
    return kn_err_set(err, call->safety == KN_REMOTE_CHANGES ? KN_E_UNKNOWN : KN_E_CORRUPT,
                      "%s: %s %.200s: status %d with a body that is not JSON (%.60s): %.120s",
                      call->what, call->method, call->url, resp->status,
                      type ? type : "no content type", why->msg);
}

static KnCode read_answer(const Sending *s, const KnHttpResponse *resp, KnRemoteAnswer *ret,
                          KnErr *err)
{
    const char *etag = kn_http_header(resp, "etag", 0);
    KnRemoteAnswer answer = {.status = resp->status};
    if (resp->body.len && resp->status != 304) {
        KnErr why = {0};
        if (kn_json_parse(resp->body.data, resp->body.len, &answer.doc, &why) != KN_OK)
            return bad_answer(s->call, resp, &why, err);
    }
    if (etag && strlen(etag) < sizeof(answer.etag) && !strpbrk(etag, "\r\n"))
        memcpy(answer.etag, etag, strlen(etag) + 1);
    *ret = answer;
    return KN_OK;
}

static KnCode try_once(Sending *s, KnRemoteAnswer *ret, Next *ret_next, KnErr *err)
{
    KN_HTTP_RESPONSE_AUTO resp = {0};
    *ret_next = GIVE_UP;
    KnErr why = {0};
    KnCode rc = attempt(s, &resp, &why);
    if (rc != KN_OK) {
        rc = not_sent(s, rc, ret_next, &why);
    } else if ((resp.status >= 200 && resp.status < 300) || resp.status == 304) {
        *ret_next = DONE;
        rc = read_answer(s, &resp, ret, &why);
    } else if (resp.status == 404 && s->lost && s->call->gone_is_done) {
        *ret_next = DONE;
        *ret = (KnRemoteAnswer){.status = 204};
    } else {
        rc = refused(s, &resp, ret_next, &why);
    }
    if (rc != KN_OK && err)
        *err = why;
    return rc;
}

static KnCode encode_body(const KnRemoteCall *call, KnBuf *buf, KnErr *err)
{
    kn_buf_init(buf, KN_REMOTE_ANSWER_MAX);
    if (call->body)
        kn_json_dump(buf, call->body);
    return kn_buf_check(buf, err);
}

KnCode kn_remote_send(KnRemote *rest, const KnRemoteCall *call, KnRemoteAnswer *ret, KnErr *err)
{
    KN_ARENA_AUTO arena = kn_arena_new(0);
    KN_BUF_AUTO body = {0};
    KN_TRY(encode_body(call, &body, err));
    Sending s = {.rest = rest,
                 .call = call,
                 .arena = arena,
                 .body = call->form.ptr ? call->form : (KnStr){body.data, body.len}};
    if (call->safety == KN_REMOTE_CHANGES && rest->idempotent)
        (void)kn_random_uuid7(s.idempotency_key);
    int64_t pause = PAUSE_US;
    KnRng rng = {(uint64_t)kn_random_id()};
    for (int tries = 1;;) {
        Next next = GIVE_UP;
        s.pause_us = -1;
        KnCode rc = try_once(&s, ret, &next, err);
        if (next == DONE || next == GIVE_UP)
            return rc;
        if (next == AGAIN_NOW)
            continue;
        if (tries++ >= KN_REMOTE_TRIES)
            return rc;
        if (s.pause_us < 0)
            s.pause_us = (int64_t)kn_rng_below(&rng, (uint64_t)pause) + 1;
        pause = pause * 2 > PAUSE_MAX_US ? PAUSE_MAX_US : pause * 2;
        if (kn_stop_wait(s.pause_us))
            return rc;
    }
}
