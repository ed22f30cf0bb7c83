/* SPDX-License-Identifier: Apache-2.0 */
/*
 * http_upload.c - see http_upload.h.
 *
 * libcurl makes the connection (names, proxies, TLS) and hands it over (CONNECT_ONLY); the bytes on
 * it are ours. One loop: send what may be sent, read what has come, parse it, wait in poll(). Reads
 * come before writes, so that a peer that answers and closes is heard before the broken pipe is
 * seen; after a failed write what is still readable is read.
 */
#include "net/http_upload.h"

#include <curl/curl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "net/url.h"

#define PIECE ((size_t)256 << 10)

typedef struct Upload {
    const KnHttpUpload *up;
    KnHttpUploadResult *ret;
    KnUrl url;
    CURL *easy;
    curl_socket_t fd;
    char detail[CURL_ERROR_SIZE];
    KnBuf out; /* headers, then a piece of the body */
    size_t out_at;
    uint64_t read_at; /* of the body */
    bool may_send;    /* "100 Continue" has come */
    bool broken;      /* no more can be sent */
    KnBuf in;
    bool ended;
    int64_t moved_us;
} Upload;

void kn_http_upload_done(KnHttpUploadResult *ret)
{
    kn_buf_done(&ret->location);
    kn_buf_done(&ret->body);
}

/* ---- the connection ---- */

static KnCode connect_peer(Upload *u, KnErr *err)
{
    const KnHttpUpload *up = u->up;
    u->easy = curl_easy_init();
    if (!u->easy)
        abort();
    (void)curl_easy_setopt(u->easy, CURLOPT_URL, up->url);
    (void)curl_easy_setopt(u->easy, CURLOPT_CONNECT_ONLY, 1L);
    (void)curl_easy_setopt(u->easy, CURLOPT_NOSIGNAL, 1L);
    (void)curl_easy_setopt(u->easy, CURLOPT_ERRORBUFFER, u->detail);
    (void)curl_easy_setopt(u->easy, CURLOPT_CONNECTTIMEOUT_MS, (long)up->connect_ms);
    (void)curl_easy_setopt(u->easy, CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_1_1);
    (void)curl_easy_setopt(u->easy, CURLOPT_SSL_ENABLE_ALPN, 0L);
    if (up->ca_file)
        (void)curl_easy_setopt(u->easy, CURLOPT_CAINFO, up->ca_file);
    CURLcode rc = curl_easy_perform(u->easy);
    if (rc == CURLE_OK)
        rc = curl_easy_getinfo(u->easy, CURLINFO_ACTIVESOCKET, &u->fd);
    if (rc == CURLE_OK && u->fd != CURL_SOCKET_BAD)
        return KN_OK;
    KnCode code = kn_err_set(err, KN_E_IO, KN_STR_FMT ": no connection within %" PRId64 " s: %s",
                             KN_STR_ARG(u->url.authority), up->connect_ms / 1000,
                             u->detail[0] ? u->detail : curl_easy_strerror(rc));
    if (err)
        err->retriable = true;
    return code;
}

static KnCode write_head(Upload *u, KnErr *err)
{
    const KnHttpUpload *up = u->up;
    kn_buf_printf(&u->out, "PUT " KN_STR_FMT, u->url.path.len ? (int)u->url.path.len : 1,
                  u->url.path.len ? u->url.path.ptr : "/");
    if (u->url.query.len) {
        kn_buf_char(&u->out, '?');
        kn_buf_str(&u->out, u->url.query);
    }
    kn_buf_text(&u->out, " HTTP/1.1\r\nHost: ");
    kn_buf_str(&u->out, u->url.authority);
    kn_buf_printf(
        &u->out, "\r\nContent-Length: %" PRIu64 "\r\nExpect: 100-continue\r\nConnection: close\r\n",
        up->body_len);
    for (size_t i = 0; i < up->n_headers; ++i) {
        if (strpbrk(up->headers[i].name, "\r\n:") || strpbrk(up->headers[i].value, "\r\n"))
            return kn_err_set(err, KN_E_INVAL, "header %zu has a line end in it", i);
        kn_buf_printf(&u->out, "%s: %s\r\n", up->headers[i].name, up->headers[i].value);
    }
    kn_buf_text(&u->out, "\r\n");
    return kn_buf_check(&u->out, err);
}

/* ---- sending ---- */

static bool all_sent(const Upload *u)
{
    return u->ret->sent == u->up->body_len;
}

/* The next piece of the body, where there is one and it may go. */
static KnCode refill(Upload *u, KnErr *err)
{
    const KnHttpUpload *up = u->up;
    if (u->out_at < u->out.len || !u->may_send || u->read_at == up->body_len)
        return KN_OK;
    kn_buf_reset(&u->out);
    u->out_at = 0;
    uint64_t left = up->body_len - u->read_at;
    size_t got = 0, cap = left < PIECE ? (size_t)left : PIECE;
    void *room = kn_buf_reserve(&u->out, cap);
    if (!room)
        return kn_buf_check(&u->out, err);
    KN_TRY(up->read(up->read_arg, u->read_at, room, cap, &got, err));
    if (got == 0)
        return kn_err_set(err, KN_E_CORRUPT, "the body ends before its %" PRIu64 " bytes",
                          up->body_len);
    u->out.len += got;
    u->read_at += got;
    return KN_OK;
}

static void note_sent(Upload *u, size_t n)
{
    u->out_at += n;
    u->moved_us = kn_clock_mono_us();
    if (!u->may_send) {
        u->ret->stage = KN_UPLOAD_ASKED;
        return;
    }
    u->ret->sent += n;
    u->ret->stage = all_sent(u) ? KN_UPLOAD_SENT : KN_UPLOAD_BODY;
}

/* Sends until the socket is full. A failure is kept: an answer may be waiting. */
static KnCode send_some(Upload *u, KnErr *err)
{
    for (;;) {
        size_t n = 0;
        KN_TRY(refill(u, err));
        if (u->broken || u->out_at == u->out.len)
            return KN_OK;
        CURLcode rc = curl_easy_send(u->easy, u->out.data + u->out_at, u->out.len - u->out_at, &n);
        if (rc == CURLE_AGAIN)
            return KN_OK;
        if (rc != CURLE_OK) {
            u->broken = true;
            return KN_OK;
        }
        note_sent(u, n);
    }
}

/* ---- answers ---- */

static KnCode read_some(Upload *u, KnErr *err)
{
    for (;;) {
        size_t n = 0;
        void *room = kn_buf_reserve(&u->in, 16384);
        if (!room)
            return kn_buf_check(&u->in, err);
        CURLcode rc = curl_easy_recv(u->easy, room, 16384, &n);
        if (rc == CURLE_AGAIN)
            return KN_OK;
        if (rc != CURLE_OK || n == 0) {
            u->ended = true;
            return KN_OK;
        }
        u->in.len += n;
        u->moved_us = kn_clock_mono_us();
    }
}

static KnCode take_answer(Upload *u, const KnHttpAnswer *answer, KnErr *err)
{
    u->ret->status = answer->status;
    kn_buf_str(&u->ret->location, kn_http_answer_header(answer, "Location"));
    return answer->whole ? kn_http_answer_body(answer, &u->ret->body, err) : KN_OK;
}

/* Looks at what has come; *ret_done once the final answer is in. */
static KnCode look(Upload *u, bool *ret_done, KnErr *err)
{
    KnHttpAnswer answer = {0};
    bool silent = u->ended && u->in.len == 0;
    *ret_done = false;
    while (u->in.len && !*ret_done) {
        KN_TRY(kn_http_answer_parse((KnStr){u->in.data, u->in.len}, u->ended, &answer, err));
        bool redirect = answer.headed && answer.status / 100 == 3;
        if (!answer.whole && !redirect)
            return KN_OK;
        if (answer.status / 100 == 1) {
            u->may_send |= answer.status == 100 && !u->up->hold_body;
            memmove(u->in.data, u->in.data + answer.length, u->in.len - answer.length);
            u->in.len -= answer.length;
            silent = u->ended && u->in.len == 0;
            continue;
        }
        *ret_done = true;
        KN_TRY(take_answer(u, &answer, err));
    }
    if (silent)
        return kn_err_set(err, u->ret->stage == KN_UPLOAD_SENT ? KN_E_UNKNOWN : KN_E_IO,
                          KN_STR_FMT ": the connection was closed without an answer, after %" PRIu64
                                     " of %" PRIu64 " bytes",
                          KN_STR_ARG(u->url.authority), u->ret->sent, u->up->body_len);
    return KN_OK;
}

static KnCode timed_out(const Upload *u, bool sending, KnErr *err)
{
    const KnHttpUpload *up = u->up;
    KnCode code = u->ret->stage == KN_UPLOAD_SENT ? KN_E_UNKNOWN : KN_E_IO;
    if (sending)
        return kn_err_set(
            err, code, KN_STR_FMT ": took no byte for %" PRId64 " s, after %" PRIu64 " of %" PRIu64,
            KN_STR_ARG(u->url.authority), up->stall_ms / 1000, u->ret->sent, up->body_len);
    return kn_err_set(err, code, KN_STR_FMT ": no answer within %" PRId64 " s%s",
                      KN_STR_ARG(u->url.authority), up->answer_ms / 1000,
                      u->may_send                          ? ""
                      : u->ret->stage == KN_UPLOAD_CONNECT ? " (headers were not taken)"
                                                           : " (headers only were sent)");
}

/* Waits for the socket, the clock or the caller's stop. */
static KnCode wait_peer(Upload *u, KnErr *err)
{
    const KnHttpUpload *up = u->up;
    bool sending = !u->broken && (u->out_at < u->out.len || (u->may_send && !all_sent(u)));
    bool body = sending && u->may_send;
    int64_t limit_us = (body ? up->stall_ms : up->answer_ms) * 1000;
    int64_t left_us = u->moved_us + limit_us - kn_clock_mono_us();
    if (left_us <= 0)
        return timed_out(u, body, err);
    struct pollfd fds[2] = {
        {.fd = u->fd, .events = (short)(POLLIN | (sending ? POLLOUT : 0))},
        {.fd = up->cancel_fd ? *up->cancel_fd : -1, .events = POLLIN},
    };
    int wait_ms = left_us / 1000 > 60000 ? 60000 : (int)(left_us / 1000) + 1;
    (void)poll(fds, 2, wait_ms);
    if (fds[1].revents)
        return kn_err_set(err, KN_E_CANCELLED, KN_STR_FMT ": stopped while waiting",
                          KN_STR_ARG(u->url.authority));
    return KN_OK;
}

static KnCode exchange(Upload *u, KnErr *err)
{
    bool done = false;
    u->moved_us = kn_clock_mono_us();
    for (;;) {
        KN_TRY(read_some(u, err));
        KN_TRY(look(u, &done, err));
        if (done)
            return KN_OK;
        KN_TRY(send_some(u, err));
        if (!u->ended)
            KN_TRY(wait_peer(u, err));
    }
}

KnCode kn_http_upload(const KnHttpUpload *up, KnHttpUploadResult *ret, KnErr *err)
{
    Upload u = {.up = up, .ret = ret, .fd = CURL_SOCKET_BAD};
    KN_TRY(kn_url_parse(kn_str(up->url), &u.url, err));
    kn_buf_init(&ret->location, 8192);
    kn_buf_init(&ret->body, KN_HTTP_ANSWER_MAX_BODY);
    kn_buf_init(&u.out, PIECE + 65536);
    kn_buf_init(&u.in, KN_HTTP_ANSWER_MAX_HEAD + KN_HTTP_ANSWER_MAX_BODY + 65536);
    KnCode rc = write_head(&u, err);
    if (rc == KN_OK)
        rc = connect_peer(&u, err);
    if (rc == KN_OK)
        rc = exchange(&u, err);
    curl_easy_cleanup(u.easy);
    kn_buf_done(&u.out);
    kn_buf_done(&u.in);
    return rc;
}
