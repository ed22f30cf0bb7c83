/* SPDX-License-Identifier: Apache-2.0 */
/*
 * http2_server.c - loops, accepting, and the end.
 *
 * Every loop thread has its own epoll, its own connections and its own mail; all of them watch the
 * listening socket, and the kernel wakes one. A connection stays with the loop that accepted it, so
 * its state needs no lock. With no connections a loop sleeps without a timeout.
 */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "net/http2_internal.h"

#define CHECK_US 1000000 /* how often time limits are looked at */
#define SHUT_US  50000   /* the same, while the server ends */
#define EVENTS   64

struct KnH2Server {
    KnH2Shared shared;
    KnListen listening;
    unsigned n_loops;
    KnH2Loop *loops;
};

static void accept_all(KnH2Loop *loop)
{
    KnH2Shared *shared = loop->shared;
    for (int i = 0; i < EVENTS; ++i) {
        struct sockaddr_storage addr = {0};
        socklen_t len = sizeof(addr);
        int fd =
            accept4(loop->listen_fd, (struct sockaddr *)&addr, &len, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd < 0)
            return;
        if (atomic_load(&shared->connections) >= shared->opts.max_connections) {
            close(fd);
            continue;
        }
        int on = 1;
        (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
        char peer[64];
        kn_h2_peer_format(&addr, peer);
        KnH2Conn *conn = kn_h2_conn_new(loop, fd, peer);
        if (conn)
            kn_h2_conn_flush(conn, conn->opened_us); /* our SETTINGS */
    }
}

static void stop_listening(KnH2Loop *loop)
{
    if (!loop->listening)
        return;
    loop->listening = false;
    (void)epoll_ctl(loop->epoll, EPOLL_CTL_DEL, loop->listen_fd, NULL);
}

static void free_dead(KnH2Loop *loop)
{
    for (KnH2Conn *conn = loop->conns, *next; conn; conn = next) {
        next = conn->next;
        if (conn->dead)
            conn = kn_h2_conn_free(conn);
    }
}

static void flush_dirty(KnH2Loop *loop, int64_t now_us)
{
    for (size_t i = 0; i < loop->dirty.len; ++i) {
        KnH2Conn *conn = loop->dirty.items[i];
        if (conn->tls && SSL_has_pending(conn->tls) && !conn->dead) {
            conn->dirty = false;
            kn_h2_conn_on_events(conn, 0, now_us);
        } else {
            kn_h2_conn_flush(conn, now_us);
        }
    }
    loop->dirty.len = 0;
}

/* Returns the microseconds until the next check is due, -1 = none is. */
static int64_t check_all(KnH2Loop *loop, int64_t now_us)
{
    KnH2Shared *shared = loop->shared;
    bool shut = atomic_load(&shared->shut);
    if (shut)
        stop_listening(loop);
    int64_t deadline = atomic_load(&shared->deadline_us);
    for (KnH2Conn *conn = loop->conns; conn; conn = conn->next) {
        kn_h2_conn_check(conn, now_us);
        if (conn->dead || !deadline || now_us < deadline)
            continue;
        conn->dead = true;
        if (conn->session->n_streams)
            atomic_store(&shared->cut_off, true);
    }
    if (!loop->conns)
        return -1;
    return shut ? SHUT_US : CHECK_US;
}

static void handle(KnH2Loop *loop, const struct epoll_event *event, int64_t now_us)
{
    if (event->data.ptr == loop)
        accept_all(loop);
    else if (event->data.ptr == loop->mail)
        kn_h2_mail_deliver(loop->mail);
    else
        kn_h2_conn_on_events(event->data.ptr, event->events, now_us);
}

static bool is_finished(const KnH2Loop *loop)
{
    return atomic_load(&loop->shared->deadline_us) && !loop->conns;
}

static void run(KnH2Loop *loop)
{
    struct epoll_event events[EVENTS];
    int64_t due_us = 0;
    while (!is_finished(loop)) {
        int64_t now_us = kn_clock_mono_us();
        int timeout_ms = due_us < 0         ? -1
                         : due_us <= now_us ? 0
                                            : (int)((due_us - now_us) / 1000 + 1);
        int n = epoll_wait(loop->epoll, events, EVENTS, timeout_ms);
        now_us = kn_clock_mono_us();
        bool had_none = !loop->conns;
        for (int i = 0; i < n; ++i)
            handle(loop, &events[i], now_us);
        while (loop->dirty.len)
            flush_dirty(loop, now_us);
        if ((due_us >= 0 && now_us >= due_us) || (had_none && n > 0) ||
            (atomic_load(&loop->shared->shut) && loop->listening)) {
            int64_t wait_us = check_all(loop, now_us);
            due_us = wait_us < 0 ? -1 : now_us + wait_us;
        }
        free_dead(loop);
    }
}

static void *loop_main(void *arg)
{
    KnH2Loop *loop = arg;
    run(loop);
    return NULL;
}

/* ---- opening and closing ---- */

static void set_default(int64_t *value, int64_t dflt)
{
    if (*value <= 0)
        *value = dflt;
}

static KnH2Options with_defaults(const KnH2Options *given)
{
    KnH2Options opts = *given;
    opts.loops = opts.loops ? opts.loops : 2;
    opts.max_connections = opts.max_connections ? opts.max_connections : 1024;
    opts.max_streams = opts.max_streams ? opts.max_streams : 128;
    opts.max_body = opts.max_body ? opts.max_body : (size_t)16 << 20;
    opts.max_fields = opts.max_fields ? opts.max_fields : (size_t)16 << 10;
    opts.max_held = opts.max_held ? opts.max_held : (size_t)256 << 20;
    set_default(&opts.request_us, 20000000);
    set_default(&opts.ping_us, 60000000);
    set_default(&opts.stall_us, 20000000);
    set_default(&opts.idle_us, 600000000);
    return opts;
}

static KnCode watch(const KnH2Loop *loop, int fd, uint32_t events, void *ptr, KnErr *err)
{
    struct epoll_event event = {.events = events, .data.ptr = ptr};
    if (epoll_ctl(loop->epoll, EPOLL_CTL_ADD, fd, &event) != 0)
        return kn_err_set(err, KN_E_IO, "the HTTP/2 server cannot watch its socket");
    return KN_OK;
}

static KnCode loop_open(KnH2Loop *loop, KnH2Server *srv, KnErr *err)
{
    loop->shared = &srv->shared;
    loop->listen_fd = srv->listening.fd;
    KN_TRY(kn_h2_mail_open(&loop->mail, err));
    loop->input = malloc(KN_H2_INPUT);
    loop->epoll = epoll_create1(EPOLL_CLOEXEC);
    if (!loop->input || loop->epoll < 0)
        return kn_err_set(err, KN_E_IO, "no more descriptors for the HTTP/2 server");
    KN_TRY(watch(loop, loop->mail->fd, EPOLLIN, loop->mail, err));
    KN_TRY(watch(loop, loop->listen_fd, EPOLLIN | EPOLLEXCLUSIVE, loop, err));
    loop->listening = true;
    return KN_OK;
}

/* Signals are for the thread that waits for them. */
static KnCode loop_start(KnH2Loop *loop, KnErr *err)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pthread_mutex_lock(&loop->mail->lock);
    int rc = pthread_create(&loop->thread, NULL, loop_main, loop);
    if (rc == 0)
        loop->mail->owner = loop->thread;
    pthread_mutex_unlock(&loop->mail->lock);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (rc != 0)
        return kn_err_set(err, KN_E_IO, "no more threads for the HTTP/2 server");
    loop->started = true;
    return KN_OK;
}

static KnCode open_loops(KnH2Server *srv, KnErr *err)
{
    srv->loops = calloc(srv->n_loops, sizeof(*srv->loops));
    if (!srv->loops)
        abort();
    for (unsigned i = 0; i < srv->n_loops; ++i)
        srv->loops[i].epoll = -1;
    for (unsigned i = 0; i < srv->n_loops; ++i)
        KN_TRY(loop_open(&srv->loops[i], srv, err));
    for (unsigned i = 0; i < srv->n_loops; ++i)
        KN_TRY(loop_start(&srv->loops[i], err));
    return KN_OK;
}

KnCode kn_h2_server_open(KnListen *listening, const KnH2Options *opts, const KnH2Handler *handler,
                         void *self, KnH2Server **ret, KnErr *err)
{
    KnH2Server *srv = calloc(1, sizeof(*srv));
    if (!srv)
        abort();
    srv->listening = *listening;
    listening->fd = -1;
    srv->shared.opts = with_defaults(opts);
    srv->shared.handler = handler;
    srv->shared.self = self;
    srv->n_loops = srv->shared.opts.loops;
    KnCode rc = kn_h2_tls_open(opts, &srv->shared.tls, err);
    if (rc == KN_OK)
        rc = open_loops(srv, err);
    if (rc == KN_OK)
        *ret = srv;
    else
        (void)kn_h2_server_close(srv, 0);
    return rc;
}

static void wake_all(KnH2Server *srv)
{
    for (unsigned i = 0; srv->loops && i < srv->n_loops; ++i)
        if (srv->loops[i].mail)
            kn_h2_mail_wake(srv->loops[i].mail);
}

void kn_h2_server_shut(KnH2Server *srv)
{
    atomic_store(&srv->shared.shut, true);
    wake_all(srv);
}

static void loop_done(KnH2Loop *loop)
{
    if (loop->started)
        pthread_join(loop->thread, NULL);
    kn_h2_mail_close(loop->mail);
    kn_vec_done(&loop->dirty);
    free(loop->input);
    if (loop->epoll >= 0)
        close(loop->epoll);
}

bool kn_h2_server_close(KnH2Server *srv, int64_t grace_us)
{
    if (!srv)
        return true;
    atomic_store(&srv->shared.deadline_us, kn_clock_mono_us() + grace_us);
    kn_h2_server_shut(srv);
    for (unsigned i = 0; srv->loops && i < srv->n_loops; ++i)
        loop_done(&srv->loops[i]);
    bool all = !atomic_load(&srv->shared.cut_off);
    kn_listen_close(&srv->listening);
    SSL_CTX_free(srv->shared.tls);
    free(srv->loops);
    free(srv);
    return all;
}
