/* SPDX-License-Identifier: Apache-2.0 */
/*
 * http2_session.c - the protocol of one connection, without its socket.
 *
 * nghttp2 does frames, HPACK, flow control and the rules of HTTP messages, and it bounds floods of
 * resets, settings and pings. What it leaves open is bounded here: the number and size of fields,
 * bodies, and the time that a request may take to arrive.
 */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "net/http2_internal.h"

/* A peer may reset this many streams in a burst, and as many a second after. */
#define RESET_BURST 1000
#define RESET_RATE  100
#define MAX_ACKS    256
/* Uploads are small and few: windows that let most requests arrive in one round trip. */
#define STREAM_WINDOW (256 << 10)
#define CONN_WINDOW   (1 << 20)

static KnH2Stream *find_stream(nghttp2_session *ng, int32_t id)
{
    return nghttp2_session_get_stream_user_data(ng, id);
}

static bool is_request(const nghttp2_frame *frame)
{
    return frame->hd.type == NGHTTP2_HEADERS && frame->headers.cat == NGHTTP2_HCAT_REQUEST;
}

static int on_begin_headers(nghttp2_session *ng, const nghttp2_frame *frame, void *arg)
{
    KnH2Session *ses = arg;
    if (!is_request(frame))
        return 0;
    ses->last_id = frame->hd.stream_id;
    KnH2Stream *st = kn_h2_stream_new(ses, frame->hd.stream_id);
    return nghttp2_session_set_stream_user_data(ng, st->id, st);
}

/* NOLINTNEXTLINE(readability-function-size): nghttp2's signature */
static int on_header(nghttp2_session *ng, const nghttp2_frame *frame, const uint8_t *name,
                     size_t name_len, const uint8_t *value, size_t value_len, uint8_t flags,
                     void *arg)
{
    (void)flags;
    (void)arg;
    KnH2Stream *st = find_stream(ng, frame->hd.stream_id);
    if (st && is_request(frame)) /* trailers of a request say nothing to us */
        kn_h2_stream_add_field(st, (KnStr){(const char *)name, name_len},
                               (KnStr){(const char *)value, value_len});
    return 0;
}

static int on_data(nghttp2_session *ng, uint8_t flags, int32_t id, const uint8_t *data, size_t len,
                   void *arg)
{
    (void)flags;
    (void)arg;
    KnH2Stream *st = find_stream(ng, id);
    if (st)
        kn_h2_stream_add_body(st, data, len);
    return 0;
}

static int on_frame_recv(nghttp2_session *ng, const nghttp2_frame *frame, void *arg)
{
    (void)arg;
    if (frame->hd.type != NGHTTP2_HEADERS && frame->hd.type != NGHTTP2_DATA)
        return 0;
    KnH2Stream *st = find_stream(ng, frame->hd.stream_id);
    if (st && (frame->hd.flags & NGHTTP2_FLAG_END_STREAM))
        kn_h2_stream_dispatch(st);
    else if (st && is_request(frame))
        kn_h2_stream_begin(st);
    return 0;
}

static int on_frame_send(nghttp2_session *ng, const nghttp2_frame *frame, void *arg)
{
    (void)arg;
    if (!(frame->hd.flags & NGHTTP2_FLAG_END_STREAM) ||
        (frame->hd.type != NGHTTP2_HEADERS && frame->hd.type != NGHTTP2_DATA))
        return 0;
    KnH2Stream *st = find_stream(ng, frame->hd.stream_id);
    if (st && st->cut)
        (void)nghttp2_submit_rst_stream(ng, NGHTTP2_FLAG_NONE, st->id, NGHTTP2_NO_ERROR);
    return 0;
}

static int on_stream_close(nghttp2_session *ng, int32_t id, uint32_t error, void *arg)
{
    (void)error;
    (void)arg;
    KnH2Stream *st = find_stream(ng, id);
    if (st) {
        (void)nghttp2_session_set_stream_user_data(ng, id, NULL);
        kn_h2_stream_detach(st);
    }
    return 0;
}

static nghttp2_session *ng_new(KnH2Session *ses)
{
    nghttp2_session_callbacks *calls = NULL;
    nghttp2_option *option = NULL;
    nghttp2_session *ng = NULL;
    if (nghttp2_session_callbacks_new(&calls) == 0 && nghttp2_option_new(&option) == 0) {
        nghttp2_session_callbacks_set_on_begin_headers_callback(calls, on_begin_headers);
        nghttp2_session_callbacks_set_on_header_callback(calls, on_header);
        nghttp2_session_callbacks_set_on_data_chunk_recv_callback(calls, on_data);
        nghttp2_session_callbacks_set_on_frame_recv_callback(calls, on_frame_recv);
        nghttp2_session_callbacks_set_on_frame_send_callback(calls, on_frame_send);
        nghttp2_session_callbacks_set_on_stream_close_callback(calls, on_stream_close);
        nghttp2_option_set_stream_reset_rate_limit(option, RESET_BURST, RESET_RATE);
        nghttp2_option_set_max_outbound_ack(option, MAX_ACKS);
        nghttp2_option_set_no_closed_streams(option, 1);
        if (nghttp2_session_server_new2(&ng, calls, ses, option) != 0)
            ng = NULL;
    }
    nghttp2_option_del(option);
    nghttp2_session_callbacks_del(calls);
    return ng;
}

static bool submit_settings(KnH2Session *ses)
{
    const KnH2Options *opts = &ses->shared->opts;
    const nghttp2_settings_entry settings[] = {
        {NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, opts->max_streams},
        {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, STREAM_WINDOW},
        {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, (uint32_t)opts->max_fields},
    };
    return nghttp2_submit_settings(ses->ng, NGHTTP2_FLAG_NONE, settings,
                                   sizeof(settings) / sizeof(settings[0])) == 0 &&
           nghttp2_session_set_local_window_size(ses->ng, NGHTTP2_FLAG_NONE, 0, CONN_WINDOW) == 0;
}

KnCode kn_h2_session_new(KnH2Shared *shared, KnH2Mail *mail, const char *peer, KnH2Session **ret,
                         KnErr *err)
{
    KnH2Session *ses = calloc(1, sizeof(*ses));
    if (!ses)
        abort();
    ses->shared = shared;
    ses->mail = mail;
    memcpy(ses->peer, peer, strnlen(peer, sizeof(ses->peer) - 1));
    ses->ng = ng_new(ses);
    if (!ses->ng || !submit_settings(ses)) {
        ses = kn_h2_session_free(ses);
        return kn_err_set(err, KN_E_NOMEM, "no memory for another HTTP/2 connection");
    }
    *ret = ses;
    return KN_OK;
}

KnH2Session *kn_h2_session_free(KnH2Session *ses)
{
    if (!ses)
        return NULL;
    while (ses->streams)
        kn_h2_stream_detach(ses->streams);
    nghttp2_session_del(ses->ng);
    free(ses);
    return NULL;
}

bool kn_h2_session_recv(KnH2Session *ses, const uint8_t *bytes, size_t len)
{
    return nghttp2_session_mem_recv(ses->ng, bytes, len) == (ssize_t)len;
}

static void tell_hungry(KnH2Session *ses)
{
    for (KnH2Stream *st = ses->streams, *next; st; st = next) {
        next = st->next;
        if (!st->hungry || st->ended)
            continue;
        st->hungry = false;
        ses->shared->handler->drained(ses->shared->self, st);
    }
}

bool kn_h2_session_send(KnH2Session *ses, KnBuf *out, size_t max)
{
    while (out->len < max) {
        const uint8_t *bytes;
        ssize_t n = nghttp2_session_mem_send(ses->ng, &bytes);
        if (n < 0)
            return false;
        if (n == 0)
            break;
        kn_buf_append(out, bytes, (size_t)n);
    }
    tell_hungry(ses);
    return !out->failed;
}

bool kn_h2_session_is_over(KnH2Session *ses)
{
    return !nghttp2_session_want_read(ses->ng) && !nghttp2_session_want_write(ses->ng);
}

void kn_h2_session_shut(KnH2Session *ses, bool final)
{
    if (final)
        (void)nghttp2_submit_goaway(ses->ng, NGHTTP2_FLAG_NONE, ses->last_id, NGHTTP2_NO_ERROR,
                                    NULL, 0);
    else
        (void)nghttp2_submit_shutdown_notice(ses->ng);
}

void kn_h2_session_ping(KnH2Session *ses)
{
    (void)nghttp2_submit_ping(ses->ng, NGHTTP2_FLAG_NONE, NULL);
}

bool kn_h2_session_has_slow_request(const KnH2Session *ses, int64_t now_us)
{
    for (const KnH2Stream *st = ses->streams; st; st = st->next)
        if (!st->seen && !st->ended && now_us - st->since_us > ses->shared->opts.request_us)
            return true;
    return false;
}
