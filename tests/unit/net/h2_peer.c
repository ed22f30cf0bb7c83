/* SPDX-License-Identifier: Apache-2.0 */
/* h2_peer.c - see h2_peer.h. */
#include "unit/net/h2_peer.h"

#include <arpa/inet.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

void h2_shared_init(KnH2Shared *shared, const KnH2Handler *handler, void *self)
{
    *shared = (KnH2Shared){.handler = handler, .self = self};
    shared->opts = (KnH2Options){.max_streams = 100,
                                 .max_body = 1 << 20,
                                 .max_fields = 4096,
                                 .max_held = 8 << 20,
                                 .request_us = 1000000};
}

static H2Answer *find(H2Peer *peer, int32_t id)
{
    for (size_t i = 0; i < peer->n_answers; ++i)
        if (peer->answers[i].id == id)
            return &peer->answers[i];
    return NULL;
}

static void copy(char *to, size_t size, const uint8_t *value, size_t len)
{
    assert_true(len < size);
    memcpy(to, value, len);
    to[len] = '\0';
}

/* NOLINTNEXTLINE(readability-function-size): nghttp2's signature */
static int on_header(nghttp2_session *ng, const nghttp2_frame *frame, const uint8_t *name,
                     size_t name_len, const uint8_t *value, size_t value_len, uint8_t flags,
                     void *arg)
{
    (void)ng;
    (void)flags;
    H2Answer *answer = find(arg, frame->hd.stream_id);
    assert_non_null(answer);
    KnStr key = {(const char *)name, name_len};
    if (kn_str_eq(key, KN_STR_LIT(":status")))
        copy(answer->status, sizeof(answer->status), value, value_len);
    else if (kn_str_eq(key, KN_STR_LIT("grpc-status")))
        copy(answer->grpc_status, sizeof(answer->grpc_status), value, value_len);
    else if (kn_str_eq(key, KN_STR_LIT("grpc-message")))
        copy(answer->grpc_message, sizeof(answer->grpc_message), value, value_len);
    return 0;
}

static int on_data(nghttp2_session *ng, uint8_t flags, int32_t id, const uint8_t *data, size_t len,
                   void *arg)
{
    (void)ng;
    (void)flags;
    H2Answer *answer = find(arg, id);
    assert_non_null(answer);
    kn_buf_append(&answer->body, data, len);
    return 0;
}

static int on_close(nghttp2_session *ng, int32_t id, uint32_t error, void *arg)
{
    (void)ng;
    H2Answer *answer = find(arg, id);
    if (answer) {
        answer->closed = true;
        answer->error = error;
    }
    return 0;
}

static int on_frame(nghttp2_session *ng, const nghttp2_frame *frame, void *arg)
{
    (void)ng;
    H2Peer *peer = arg;
    if (frame->hd.type == NGHTTP2_GOAWAY) {
        peer->goaway = true;
        peer->goaway_last = frame->goaway.last_stream_id;
        peer->goaway_error = frame->goaway.error_code;
    } else if (frame->hd.type == NGHTTP2_PING && (frame->hd.flags & NGHTTP2_FLAG_ACK)) {
        ++peer->pings;
    }
    return 0;
}

static H2Peer *peer_new(void)
{
    H2Peer *peer = calloc(1, sizeof(*peer));
    assert_non_null(peer);
    peer->fd = -1;
    nghttp2_session_callbacks *calls;
    assert_int_equal(nghttp2_session_callbacks_new(&calls), 0);
    nghttp2_session_callbacks_set_on_header_callback(calls, on_header);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(calls, on_data);
    nghttp2_session_callbacks_set_on_stream_close_callback(calls, on_close);
    nghttp2_session_callbacks_set_on_frame_recv_callback(calls, on_frame);
    assert_int_equal(nghttp2_session_client_new(&peer->ng, calls, peer), 0);
    nghttp2_session_callbacks_del(calls);
    assert_int_equal(nghttp2_submit_settings(peer->ng, NGHTTP2_FLAG_NONE, NULL, 0), 0);
    return peer;
}

H2Peer *h2_peer_new(KnH2Session *server)
{
    H2Peer *peer = peer_new();
    peer->server = server;
    return peer;
}

H2Peer *h2_peer_connect(uint16_t port)
{
    H2Peer *peer = peer_new();
    struct sockaddr_in addr = {.sin_family = AF_INET, .sin_port = htons(port)};
    addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    peer->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(peer->fd >= 0);
    assert_int_equal(connect(peer->fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
    return peer;
}

void h2_peer_free(H2Peer *peer)
{
    nghttp2_session_del(peer->ng);
    for (size_t i = 0; i < peer->n_answers; ++i)
        kn_buf_done(&peer->answers[i].body);
    if (peer->fd >= 0)
        close(peer->fd);
    free(peer);
}

nghttp2_nv h2_field(const char *name, const char *value)
{
    return (nghttp2_nv){.name = (uint8_t *)name, /* not written to */
                        .value = (uint8_t *)value,
                        .namelen = strlen(name),
                        .valuelen = strlen(value)};
}

/* NOLINTNEXTLINE(readability-function-size): nghttp2's signature */
static ssize_t read_body(nghttp2_session *ng, int32_t id, uint8_t *buf, size_t len, uint32_t *flags,
                         nghttp2_data_source *source, void *arg)
{
    (void)ng;
    (void)id;
    (void)arg;
    H2Answer *answer = source->ptr;
    size_t n = answer->left < len ? answer->left : len;
    if (n == 0 && answer->keep_open)
        return NGHTTP2_ERR_DEFERRED;
    if (n)
        memcpy(buf, answer->body_at, n);
    answer->body_at += n;
    answer->left -= n;
    if (!answer->left && !answer->keep_open)
        *flags |= NGHTTP2_DATA_FLAG_EOF;
    return (ssize_t)n;
}

static H2Answer *submit(H2Peer *peer, const nghttp2_nv *fields, size_t n, KnStr body,
                        bool keep_open)
{
    assert_true(peer->n_answers < H2_ANSWERS);
    H2Answer *answer = &peer->answers[peer->n_answers++];
    kn_buf_init(&answer->body, 64 << 20);
    answer->left = body.len;
    answer->body_at = body.ptr;
    answer->keep_open = keep_open;
    nghttp2_data_provider provider = {.source.ptr = answer, .read_callback = read_body};
    bool has_body = body.len || keep_open;
    answer->id =
        nghttp2_submit_request(peer->ng, NULL, fields, n, has_body ? &provider : NULL, answer);
    assert_true(answer->id > 0);
    return answer;
}

H2Answer *h2_peer_request(H2Peer *peer, const nghttp2_nv *fields, size_t n, bool keep_open)
{
    return submit(peer, fields, n, (KnStr){0}, keep_open);
}

H2Answer *h2_peer_post(H2Peer *peer, const char *path, KnStr body, const nghttp2_nv *extra,
                       size_t n_extra)
{
    nghttp2_nv fields[16] = {h2_field(":method", "POST"),
                             h2_field(":scheme", "http"),
                             h2_field(":authority", "localhost"),
                             h2_field(":path", path),
                             h2_field("content-type", "application/grpc"),
                             h2_field("te", "trailers")};
    assert_true(n_extra <= 10);
    for (size_t i = 0; i < n_extra; ++i)
        fields[6 + i] = extra[i];
    return submit(peer, fields, 6 + n_extra, body, false);
}

static bool to_server(H2Peer *peer)
{
    const uint8_t *bytes;
    ssize_t n = nghttp2_session_mem_send(peer->ng, &bytes);
    assert_true(n >= 0);
    if (n > 0 && !kn_h2_session_recv(peer->server, bytes, (size_t)n))
        peer->server_failed = true;
    return n > 0;
}

static bool from_server(H2Peer *peer)
{
    KN_BUF_AUTO out;
    kn_buf_init(&out, 64 << 20);
    assert_true(kn_h2_session_send(peer->server, &out, 1 << 16));
    if (out.len)
        assert_int_equal(nghttp2_session_mem_recv(peer->ng, (uint8_t *)out.data, out.len),
                         (ssize_t)out.len);
    return out.len > 0;
}

static void write_all(H2Peer *peer)
{
    for (;;) {
        const uint8_t *bytes;
        ssize_t n = nghttp2_session_mem_send(peer->ng, &bytes);
        assert_true(n >= 0);
        if (n == 0)
            return;
        for (ssize_t at = 0; at < n;) {
            ssize_t sent = send(peer->fd, bytes + at, (size_t)(n - at), MSG_NOSIGNAL);
            if (sent < 0)
                return; /* the reader sees why */
            at += sent;
        }
    }
}

/* False at the end of the connection. */
static bool read_some(H2Peer *peer)
{
    write_all(peer);
    uint8_t buf[16384];
    struct pollfd poller = {.fd = peer->fd, .events = POLLIN};
    assert_int_equal(poll(&poller, 1, 60000), 1);
    ssize_t n = recv(peer->fd, buf, sizeof(buf), 0);
    if (n <= 0)
        return false;
    assert_int_equal(nghttp2_session_mem_recv(peer->ng, buf, (size_t)n), n);
    write_all(peer);
    return true;
}

static bool all_closed(const H2Peer *peer)
{
    for (size_t i = 0; i < peer->n_answers; ++i)
        if (!peer->answers[i].closed)
            return false;
    return true;
}

void h2_peer_pump(H2Peer *peer)
{
    if (peer->fd >= 0) {
        while (!all_closed(peer) && read_some(peer))
            ;
        return;
    }
    for (bool busy = true; busy;) {
        busy = to_server(peer);
        busy |= from_server(peer);
    }
}

void h2_peer_await(H2Peer *peer, const H2Answer *answer, size_t bytes)
{
    while (!answer->closed && answer->body.len < bytes)
        assert_true(read_some(peer));
}

void h2_peer_await_goaway(H2Peer *peer)
{
    while (!peer->goaway && read_some(peer))
        ;
}
