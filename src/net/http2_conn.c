/* SPDX-License-Identifier: Apache-2.0 */
/*
 * http2_conn.c - a session on a socket, plain or under TLS.
 *
 * Never waits. Output is made by the session only when the socket took what was made before, so a
 * client that does not read holds one buffer here and its streams' bodies, which are budgeted. A
 * connection that fails is marked dead and freed by its loop at the end of the round.
 */
#include <errno.h>
#include <openssl/err.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "net/http2_internal.h"

#define OUT_ROUND ((size_t)64 << 10)

static void on_wake(void *arg)
{
    KnH2Conn *conn = arg;
    if (conn->dirty)
        return;
    conn->dirty = true;
    *kn_vec_push(&conn->loop->dirty) = conn;
}

static bool open_tls(KnH2Conn *conn)
{
    if (!conn->loop->shared->tls) {
        conn->ready = true;
        return true;
    }
    conn->tls = SSL_new(conn->loop->shared->tls);
    if (!conn->tls || SSL_set_fd(conn->tls, conn->fd) != 1)
        return false;
    SSL_set_accept_state(conn->tls);
    return true;
}

KnH2Conn *kn_h2_conn_new(KnH2Loop *loop, int fd, const char *peer)
{
    KnH2Conn *conn = calloc(1, sizeof(*conn));
    if (!conn)
        abort();
    conn->loop = loop;
    conn->fd = fd;
    conn->opened_us = conn->heard_us = conn->took_us = conn->busy_us = kn_clock_mono_us();
    kn_buf_init(&conn->out, (size_t)1 << 20);
    conn->next = loop->conns;
    conn->prev = &loop->conns;
    if (conn->next)
        conn->next->prev = &conn->next;
    loop->conns = conn;
    atomic_fetch_add(&loop->shared->connections, 1);
    conn->events = EPOLLIN | EPOLLRDHUP;
    struct epoll_event event = {.events = conn->events, .data.ptr = conn};
    if (!open_tls(conn) ||
        kn_h2_session_new(loop->shared, loop->mail, peer, &conn->session, NULL) != KN_OK ||
        epoll_ctl(loop->epoll, EPOLL_CTL_ADD, fd, &event) != 0)
        return kn_h2_conn_free(conn);
    conn->session->wake = on_wake;
    conn->session->wake_arg = conn;
    return conn;
}

KnH2Conn *kn_h2_conn_free(KnH2Conn *conn)
{
    if (!conn)
        return NULL;
    conn->session = kn_h2_session_free(conn->session);
    *conn->prev = conn->next;
    if (conn->next)
        conn->next->prev = conn->prev;
    atomic_fetch_sub(&conn->loop->shared->connections, 1);
    if (conn->tls) {
        if (conn->ready)
            (void)SSL_shutdown(conn->tls);
        SSL_free(conn->tls);
        ERR_clear_error();
    }
    close(conn->fd);
    kn_buf_done(&conn->out);
    free(conn);
    return NULL;
}

static void watch(KnH2Conn *conn)
{
    uint32_t events = EPOLLIN | EPOLLRDHUP;
    if (conn->out.len > conn->out_at || conn->tls_wants_write)
        events |= EPOLLOUT;
    if (events == conn->events || conn->dead)
        return;
    struct epoll_event event = {.events = events, .data.ptr = conn};
    if (epoll_ctl(conn->loop->epoll, EPOLL_CTL_MOD, conn->fd, &event) == 0)
        conn->events = events;
    else
        conn->dead = true;
}

/* Bytes moved, 0 = not now, -1 = the connection is over. */
static ssize_t tls_result(KnH2Conn *conn, int rc)
{
    if (rc > 0)
        return rc;
    int why = SSL_get_error(conn->tls, rc);
    ERR_clear_error();
    if (why == SSL_ERROR_WANT_WRITE)
        conn->tls_wants_write = true;
    return why == SSL_ERROR_WANT_READ || why == SSL_ERROR_WANT_WRITE ? 0 : -1;
}

static ssize_t socket_result(ssize_t n)
{
    if (n > 0)
        return n;
    return n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR) ? 0 : -1;
}

static ssize_t receive(KnH2Conn *conn, uint8_t *buf, size_t len)
{
    if (!conn->tls)
        return socket_result(recv(conn->fd, buf, len, 0));
    conn->tls_wants_write = false;
    ERR_clear_error();
    return tls_result(conn, SSL_read(conn->tls, buf, (int)len));
}

static ssize_t transmit(KnH2Conn *conn, const char *bytes, size_t len)
{
    if (!conn->tls)
        return socket_result(send(conn->fd, bytes, len, MSG_NOSIGNAL));
    ERR_clear_error();
    return tls_result(conn, SSL_write(conn->tls, bytes, (int)len));
}

/* A client that offers no ALPN at all has not chosen HTTP/2. */
static bool finish_handshake(KnH2Conn *conn)
{
    if (conn->ready)
        return true;
    ERR_clear_error();
    conn->tls_wants_write = false;
    int rc = SSL_do_handshake(conn->tls);
    if (rc != 1) {
        if (tls_result(conn, rc) < 0)
            conn->dead = true;
        return false;
    }
    const unsigned char *chosen = NULL;
    unsigned len = 0;
    SSL_get0_alpn_selected(conn->tls, &chosen, &len);
    conn->ready = len == 2;
    conn->dead = !conn->ready;
    return conn->ready;
}

static bool write_pending(KnH2Conn *conn, int64_t now_us)
{
    while (conn->out_at < conn->out.len) {
        ssize_t n = transmit(conn, conn->out.data + conn->out_at, conn->out.len - conn->out_at);
        if (n < 0)
            conn->dead = true;
        if (n <= 0)
            return false;
        conn->out_at += (size_t)n;
        conn->took_us = now_us;
    }
    kn_buf_reset(&conn->out);
    conn->out_at = 0;
    return true;
}

void kn_h2_conn_flush(KnH2Conn *conn, int64_t now_us)
{
    conn->dirty = false;
    if (conn->dead || !conn->ready)
        return;
    while (write_pending(conn, now_us)) {
        bool fine = kn_h2_session_send(conn->session, &conn->out, OUT_ROUND);
        if (conn->out.len == 0 && (!fine || kn_h2_session_is_over(conn->session)))
            conn->dead = true;
        if (conn->out.len == 0)
            break;
        conn->took_us = now_us; /* the clock of a stall starts with the first byte that waits */
    }
    watch(conn);
}

static void read_all(KnH2Conn *conn, int64_t now_us)
{
    /* A few rounds, so that one busy connection does not keep the others waiting. */
    for (int round = 0; round < 4; ++round) {
        ssize_t n = receive(conn, conn->loop->input, KN_H2_INPUT);
        if (n < 0)
            conn->dead = true;
        if (n <= 0)
            return;
        conn->heard_us = now_us;
        conn->ping_us = 0;
        if (!kn_h2_session_recv(conn->session, conn->loop->input, (size_t)n)) {
            kn_h2_conn_flush(conn, now_us); /* GOAWAY says why */
            conn->dead = true;
            return;
        }
        if ((size_t)n < KN_H2_INPUT && !(conn->tls && SSL_has_pending(conn->tls)))
            return;
    }
    if (conn->tls && SSL_has_pending(conn->tls))
        on_wake(conn); /* epoll does not know of what TLS has buffered */
}

void kn_h2_conn_on_events(KnH2Conn *conn, uint32_t events, int64_t now_us)
{
    if (events & (EPOLLERR | EPOLLHUP)) {
        conn->dead = true;
        return;
    }
    if (!finish_handshake(conn)) {
        watch(conn);
        return;
    }
    read_all(conn, now_us);
    kn_h2_conn_flush(conn, now_us);
}

static void shut(KnH2Conn *conn)
{
    if (!conn->notice_sent) {
        conn->notice_sent = true;
        kn_h2_session_shut(conn->session, false);
    } else if (!conn->final_sent) {
        conn->final_sent = true;
        kn_h2_session_shut(conn->session, true);
    } else if (!conn->session->n_streams && conn->out_at == conn->out.len) {
        conn->dead = true;
    }
}

static bool is_late(const KnH2Conn *conn, int64_t now_us)
{
    const KnH2Options *opts = &conn->loop->shared->opts;
    if (!conn->ready)
        return now_us - conn->opened_us > opts->request_us;
    if (conn->out_at < conn->out.len && now_us - conn->took_us > opts->stall_us)
        return true;
    if (conn->ping_us && now_us - conn->ping_us > opts->stall_us)
        return true;
    return kn_h2_session_has_slow_request(conn->session, now_us);
}

void kn_h2_conn_check(KnH2Conn *conn, int64_t now_us)
{
    const KnH2Options *opts = &conn->loop->shared->opts;
    if (is_late(conn, now_us)) {
        conn->dead = true;
        return;
    }
    if (!conn->ready) {
        conn->dead |= atomic_load(&conn->loop->shared->shut);
        return;
    }
    if (conn->session->n_streams)
        conn->busy_us = now_us;
    if (atomic_load(&conn->loop->shared->shut) || now_us - conn->busy_us > opts->idle_us) {
        shut(conn);
    } else if (!conn->ping_us && now_us - conn->heard_us > opts->ping_us) {
        conn->ping_us = now_us;
        kn_h2_session_ping(conn->session);
    }
    kn_h2_conn_flush(conn, now_us);
}
