/* SPDX-License-Identifier: Apache-2.0 */
/*
 * http_server.c - the life of connections and requests (see http_server.h).
 *
 * libmicrohttpd calls first_line() with the first line of a request, then access() with the
 * headers, then for each part of the body, then once more at its end; the answer is given in that
 * last call, as an earlier one would cost the connection its keep-alive. Its own decoding of paths
 * is switched off: it would make "%2F" a separator. A handler that waits runs on the pool while its
 * connection is suspended; access() is called again after.
 *
 * One thread watches the deadlines of connections and shuts the sockets of those that are late;
 * libmicrohttpd then sees the end and cleans up. It also is how a client that sends its headers
 * byte by byte ends, which an idle timeout would never see.
 */
#include "net/http_server.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <malloc.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "net/http_server_internal.h"

enum {
    SECOND = 1000000,
    CONNECTION_MEMORY =
        32 << 10,          /* first line and headers of a request, and room for the answer's */
    DISCARD_MAX = 8 << 20, /* a longer body that nobody wants costs the connection */
    SEND_TIMEOUT = 600 * SECOND, /* for an answer to be taken */
    ARENA_BLOCK = 4096,
};

/* ---- connections ------------------------------------------------------------------------------
 */

static void set_deadline(KnHttpdConnection *conn, int64_t from_now_us)
{
    atomic_store_explicit(&conn->deadline_us, kn_clock_mono_us() + from_now_us,
                          memory_order_relaxed);
}

static void name_peer(struct MHD_Connection *mhd, char out[64])
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
    const struct sockaddr *addr = info ? info->client_addr : NULL;
    out[0] = '\0';
    if (addr && addr->sa_family == AF_INET)
        (void)inet_ntop(AF_INET, &((const struct sockaddr_in *)addr)->sin_addr, out, 64);
    else if (addr && addr->sa_family == AF_INET6)
        (void)inet_ntop(AF_INET6, &((const struct sockaddr_in6 *)addr)->sin6_addr, out, 64);
}

static void connection_begins(KnHttpd *server, struct MHD_Connection *mhd, void **context)
{
    KnHttpdConnection *conn = calloc(1, sizeof(*conn));
    if (!conn)
        abort();
    conn->server = server;
    conn->mhd = mhd;
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_CONNECTION_FD);
    conn->fd = info ? info->connect_fd : -1;
    name_peer(mhd, conn->peer);
    if (server->opts.tls.client_ca_file)
        kn_httpd_tls_demand(mhd);
    set_deadline(conn, server->opts.header_timeout_s * SECOND);
    (void)pthread_mutex_lock(&server->lock);
    conn->next = server->connections;
    if (conn->next)
        conn->next->prev = conn;
    server->connections = conn;
    (void)pthread_mutex_unlock(&server->lock);
    atomic_fetch_add_explicit(&server->n_connections, 1, memory_order_relaxed);
    *context = conn;
}

static void connection_ends(KnHttpd *server, KnHttpdConnection *conn)
{
    (void)pthread_mutex_lock(&server->lock);
    if (conn->prev)
        conn->prev->next = conn->next;
    else
        server->connections = conn->next;
    if (conn->next)
        conn->next->prev = conn->prev;
    (void)pthread_mutex_unlock(&server->lock);
    atomic_fetch_sub_explicit(&server->n_connections, 1, memory_order_relaxed);
    free(conn->tls_subject);
    free(conn);
}

static void on_connection(void *arg, struct MHD_Connection *mhd, void **context,
                          enum MHD_ConnectionNotificationCode what)
{
    if (what == MHD_CONNECTION_NOTIFY_STARTED)
        connection_begins(arg, mhd, context);
    else if (*context)
        connection_ends(arg, *context);
}

/* The watcher: once a second, whoever is late is cut off. */
static void *watch(void *arg)
{
    KnHttpd *server = arg;
    (void)pthread_mutex_lock(&server->lock);
    while (!server->closing) {
        struct timespec until;
        (void)clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_sec += 1;
        (void)pthread_cond_timedwait(&server->changed, &server->lock, &until);
        int64_t now = kn_clock_mono_us();
        for (KnHttpdConnection *conn = server->connections; conn; conn = conn->next) {
            if (now > atomic_load_explicit(&conn->deadline_us, memory_order_relaxed))
                (void)shutdown(conn->fd, SHUT_RDWR);
        }
    }
    (void)pthread_mutex_unlock(&server->lock);
    return NULL;
}

/* ---- requests ---------------------------------------------------------------------------------
 */

static KnHttpdConnection *connection_of(struct MHD_Connection *mhd)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    return info ? info->socket_context : NULL;
}

static void *first_line(void *arg, const char *uri, struct MHD_Connection *mhd)
{
    KnHttpd *server = arg;
    KnHttpdConnection *conn = connection_of(mhd);
    KnArena *arena = conn ? kn_arena_new(ARENA_BLOCK) : NULL;
    if (!arena)
        return NULL;
    KnHttpdExchange *ex = kn_arena_zalloc(arena, sizeof(*ex));
    ex->conn = conn;
    ex->req.arena = arena;
    ex->req.peer = conn->peer;
    ex->req.began_us = kn_clock_mono_us();
    ex->raw_target = kn_arena_strdup(arena, uri);
    atomic_fetch_add_explicit(&server->in_flight, 1, memory_order_relaxed);
    return ex;
}

static void on_completed(void *arg, struct MHD_Connection *mhd, void **context,
                         enum MHD_RequestTerminationCode why)
{
    KnHttpd *server = arg;
    KnHttpdExchange *ex = *context;
    (void)mhd;
    (void)why;
    if (!ex)
        return;
    *context = NULL;
    int status = ex->state == KN_HTTPD_ANSWERED ? ex->rsp.status : 0;
    server->opts.handler.done(server->opts.handler.arg, &ex->req, status, ex->sent_bytes);
    set_deadline(ex->conn, server->opts.header_timeout_s * SECOND);
    kn_buf_done(&ex->body);
    (void)kn_arena_free(ex->req.arena);
    if (atomic_fetch_sub_explicit(&server->in_flight, 1, memory_order_acq_rel) == 1 &&
        atomic_load_explicit(&server->draining, memory_order_acquire)) {
        (void)pthread_mutex_lock(&server->lock);
        (void)pthread_cond_broadcast(&server->changed);
        (void)pthread_mutex_unlock(&server->lock);
    }
}

static void fail(KnHttpdExchange *ex, int status, const char *message)
{
    const KnHttpdHandler *handler = &ex->conn->server->opts.handler;
    ex->rsp = (KnHttpdResponse){0};
    handler->fail(handler->arg, &ex->req, status, message, &ex->rsp);
    ex->failed = status;
}

/* How long the body will be, as the client says; -1 = it does not (chunked), -2 = nonsense. */
static int64_t declared_length(const KnHttpdExchange *ex)
{
    const char *text = kn_httpd_request_header(&ex->req, "Content-Length");
    int64_t length = -1;
    if (!text)
        return kn_httpd_request_header(&ex->req, "Transfer-Encoding") ? -1 : 0;
    return kn_str_to_i64(kn_str(text), &length) && length >= 0 ? length : -2;
}

static void read_target(KnHttpdExchange *ex)
{
    KnErr err = {0};
    KnCode rc = kn_http_target_parse(ex->req.arena, kn_str(ex->raw_target), &ex->req.target, &err);
    if (rc != KN_OK) {
        ex->req.target = (KnHttpTarget){0};
        fail(ex, rc == KN_E_NOMEM ? 503 : 400, err.msg);
    }
}

/* The headers are there: may the request come in, and how large? */
static enum MHD_Result admit(KnHttpdExchange *ex, const char *method)
{
    KnHttpd *server = ex->conn->server;
    const KnHttpdHandler *handler = &server->opts.handler;
    ex->req.method = kn_str(kn_arena_strdup(ex->req.arena, method));
    set_deadline(ex->conn, server->opts.body_timeout_s * SECOND);
    if (server->opts.tls.client_ca_file && !ex->conn->tls_subject)
        ex->conn->tls_subject = kn_httpd_tls_subject(ex->conn->mhd);
    ex->req.tls_subject = ex->conn->tls_subject;
    read_target(ex);
    size_t max = 0;
    if (!ex->failed) {
        max = handler->admit(handler->arg, &ex->req, &ex->rsp);
        ex->failed = ex->rsp.status;
    }
    int64_t length = declared_length(ex);
    if (!ex->failed && length == -2)
        fail(ex, 400, "Content-Length is not a number");
    if (!ex->failed && length > (int64_t)max)
        fail(ex, 413, "the body is larger than this operation takes");
    kn_buf_init(&ex->body, max);
    ex->state = ex->failed ? KN_HTTPD_DISCARD : KN_HTTPD_BODY;
    if (!ex->failed || (length >= 0 && length <= DISCARD_MAX))
        return MHD_YES;
    ex->state = KN_HTTPD_ANSWERED; /* unread: the connection ends with the answer */
    return kn_httpd_answer_queue(ex);
}

static void take_body(KnHttpdExchange *ex, const char *data, size_t len)
{
    if (ex->state != KN_HTTPD_BODY)
        return;
    kn_buf_append(&ex->body, data, len);
    if (ex->body.failed) {
        fail(ex, 413, "the body is larger than this operation takes");
        ex->state = KN_HTTPD_DISCARD;
        kn_buf_done(&ex->body);
    }
}

/* The whole body is there: unpack it. */
static void finish_body(KnHttpdExchange *ex)
{
    const char *encoding = kn_httpd_request_header(&ex->req, "Content-Encoding");
    int status = 0;
    if (!ex->body.len || !encoding || !strcasecmp(encoding, "identity")) {
        ex->req.body = (KnStr){ex->body.data, ex->body.len};
        return;
    }
    if (strcasecmp(encoding, "gzip") != 0 && strcasecmp(encoding, "x-gzip") != 0) {
        fail(ex, 415, "the body's Content-Encoding is none of: gzip, identity");
        return;
    }
    if (!kn_httpd_body_unpack(&ex->body, ex->body.max, &status))
        fail(ex, status,
             status == 413 ? "the unpacked body is larger than this operation takes"
                           : "the body is not whole gzip data");
    else
        ex->req.body = (KnStr){ex->body.data, ex->body.len};
}

static void run_on_pool(KnHttpdJob *job)
{
    KnHttpdExchange *ex = (KnHttpdExchange *)(void *)((char *)job - offsetof(KnHttpdExchange, job));
    const KnHttpdHandler *handler = &ex->conn->server->opts.handler;
    KnHttpdWhen when = handler->handle(handler->arg, &ex->req, &ex->rsp);
    assert(when == KN_HTTPD_NOW);
    (void)when;
    ex->state = KN_HTTPD_ANSWERED;
    MHD_resume_connection(ex->conn->mhd);
}

static enum MHD_Result answer(KnHttpdExchange *ex)
{
    KnHttpd *server = ex->conn->server;
    const KnHttpdHandler *handler = &server->opts.handler;
    if (ex->state == KN_HTTPD_BODY)
        finish_body(ex);
    set_deadline(ex->conn, SEND_TIMEOUT);
    ex->req.alone = server->opts.threads > 1 && kn_httpd_connections(server) == 1;
    if (!ex->failed && ex->state == KN_HTTPD_BODY &&
        handler->handle(handler->arg, &ex->req, &ex->rsp) == KN_HTTPD_LATER) {
        ex->rsp = (KnHttpdResponse){0};
        ex->req.on_pool = true;
        ex->state = KN_HTTPD_RUNNING;
        atomic_store_explicit(&ex->conn->deadline_us, INT64_MAX, memory_order_relaxed);
        ex->job.run = run_on_pool;
        MHD_suspend_connection(ex->conn->mhd);
        kn_httpd_pool_run(server->pool, &ex->job);
        return MHD_YES;
    }
    ex->state = KN_HTTPD_ANSWERED;
    return kn_httpd_answer_queue(ex);
}

/* Its parameters are the library's. NOLINTNEXTLINE(readability-function-size) */
static enum MHD_Result on_access(void *arg, struct MHD_Connection *mhd, const char *url,
                                 const char *method, const char *version, const char *data,
                                 size_t *len, void **context)
{
    KnHttpdExchange *ex = *context;
    (void)arg;
    (void)mhd;
    (void)url;
    (void)version;
    if (!ex)
        return MHD_NO;
    if (ex->state == KN_HTTPD_FRESH)
        return admit(ex, method);
    if (*len) {
        take_body(ex, data, *len);
        *len = 0;
        return MHD_YES;
    }
    if (ex->state == KN_HTTPD_ANSWERED) { /* back from the pool */
        set_deadline(ex->conn, SEND_TIMEOUT);
        return kn_httpd_answer_queue(ex);
    }
    return answer(ex);
}

/* Left as it is: http_target.c decodes after cutting. */
static size_t leave_escapes(void *arg, struct MHD_Connection *mhd, char *text)
{
    (void)arg;
    (void)mhd;
    return strlen(text);
}

__attribute__((format(printf, 2, 0))) static void log_line(void *arg, const char *fmt, va_list ap)
{
    char line[400];
    (void)arg;
    if (vsnprintf(line, sizeof(line), fmt, ap) > 0)
        kn_debug("http", "server", KN_F("message", line));
}

/* ---- the server -------------------------------------------------------------------------------
 */

static void fill_defaults(KnHttpdOptions *opts)
{
    long cpus = sysconf(_SC_NPROCESSORS_ONLN);
    if (opts->threads <= 0)
        opts->threads = cpus < 1 ? 1 : cpus > 4 ? 4 : (int)cpus;
    if (opts->pool_threads <= 0)
        opts->pool_threads = 64;
    if (opts->max_connections <= 0)
        opts->max_connections = 1000;
    if (opts->idle_timeout_s <= 0)
        opts->idle_timeout_s = 75;
    if (opts->header_timeout_s <= 0)
        opts->header_timeout_s = 90;
    if (opts->header_timeout_s < opts->idle_timeout_s)
        opts->header_timeout_s = opts->idle_timeout_s;
    if (opts->body_timeout_s <= 0)
        opts->body_timeout_s = 60;
    if (opts->gzip_from == 0)
        opts->gzip_from = 4096;
}

static struct MHD_Daemon *start_daemon(KnHttpd *server, int fd)
{
    const KnHttpdOptions *opts = &server->opts;
    unsigned int flags =
        MHD_USE_EPOLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ERROR_LOG;
    struct MHD_OptionItem more[] = {
        {MHD_OPTION_THREAD_POOL_SIZE, opts->threads, NULL},
        {opts->tls.cert_file ? MHD_OPTION_HTTPS_MEM_CERT : MHD_OPTION_END, 0, server->tls_pem[0]},
        {MHD_OPTION_HTTPS_MEM_KEY, 0, server->tls_pem[1]},
        {server->tls_pem[2] ? MHD_OPTION_HTTPS_MEM_TRUST : MHD_OPTION_END, 0, server->tls_pem[2]},
        {MHD_OPTION_END, 0, NULL},
    };
    const struct MHD_OptionItem *rest = more;
    if (opts->threads == 1) /* "a pool of one" is refused: it is the plain internal thread */
        rest++;
    if (opts->tls.cert_file)
        flags |= MHD_USE_TLS;
    return MHD_start_daemon(
        flags, 0, NULL, NULL, on_access, server, MHD_OPTION_EXTERNAL_LOGGER, log_line, NULL,
        MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_NOTIFY_COMPLETED, on_completed, server,
        MHD_OPTION_NOTIFY_CONNECTION, on_connection, server, MHD_OPTION_URI_LOG_CALLBACK,
        first_line, server, MHD_OPTION_UNESCAPE_CALLBACK, leave_escapes, NULL,
        MHD_OPTION_CONNECTION_LIMIT, (unsigned int)opts->max_connections,
        MHD_OPTION_CONNECTION_TIMEOUT, (unsigned int)opts->idle_timeout_s,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)CONNECTION_MEMORY,
        MHD_OPTION_SIGPIPE_HANDLED_BY_APP, 1, MHD_OPTION_ARRAY, rest, MHD_OPTION_END);
}

static void init_sync(KnHttpd *server)
{
    pthread_condattr_t attr;
    (void)pthread_condattr_init(&attr);
    (void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    (void)pthread_mutex_init(&server->lock, NULL);
    (void)pthread_cond_init(&server->changed, &attr);
    (void)pthread_condattr_destroy(&attr);
}

static void drop(KnHttpd *server)
{
    (void)pthread_cond_destroy(&server->changed);
    (void)pthread_mutex_destroy(&server->lock);
    for (size_t i = 0; i < 3; i++)
        free(server->tls_pem[i]);
    free(server);
}

KnCode kn_httpd_open(KnListen *listening, const KnHttpdOptions *opts, KnHttpd **ret, KnErr *err)
{
    KnHttpd *server = calloc(1, sizeof(*server));
    if (!server)
        abort();
    server->opts = *opts;
    fill_defaults(&server->opts);
    init_sync(server);
    KnCode rc = kn_httpd_tls_load(server, err);
    if (rc != KN_OK) {
        kn_listen_close(listening);
        drop(server);
        return rc;
    }
    server->pool = kn_httpd_pool_new((size_t)server->opts.pool_threads);
    server->watching = pthread_create(&server->watcher, NULL, watch, server) == 0;
    server->daemon = server->watching ? start_daemon(server, listening->fd) : NULL;
    if (server->daemon) {
        listening->fd = -1;
        *ret = server;
        return KN_OK;
    }
    kn_listen_close(listening);
    (void)kn_httpd_close(server, 0);
    return kn_err_set(err, opts->tls.cert_file ? KN_E_INVAL : KN_E_IO,
                      "%s: the HTTP server did not start%s", listening->text,
                      opts->tls.cert_file ? ": are certificate and key a pair?" : "");
}

/* Until nothing is in flight, or time is up. */
static bool drain(KnHttpd *server, int64_t wait_us)
{
    struct timespec until;
    (void)clock_gettime(CLOCK_MONOTONIC, &until);
    int64_t ns = until.tv_nsec + wait_us % SECOND * 1000;
    until.tv_sec += wait_us / SECOND + ns / 1000000000;
    until.tv_nsec = ns % 1000000000;
    int rc = 0;
    (void)pthread_mutex_lock(&server->lock);
    while (kn_httpd_in_flight(server) > 0 && rc == 0)
        rc = pthread_cond_timedwait(&server->changed, &server->lock, &until);
    (void)pthread_mutex_unlock(&server->lock);
    return kn_httpd_in_flight(server) == 0;
}

bool kn_httpd_close(KnHttpd *server, int64_t wait_us)
{
    if (!server)
        return true;
    bool all = true;
    if (server->daemon) {
        atomic_store(&server->draining, true); /* first: no answer after the door shut lacks it */
        int fd = MHD_quiesce_daemon(server->daemon);
        if (fd >= 0)
            (void)close(fd);
        all = drain(server, wait_us);
    }
    server->pool =
        kn_httpd_pool_free(server->pool); /* after the wait: what still runs is awaited */
    if (server->daemon)
        MHD_stop_daemon(server->daemon);
    if (server->watching) {
        (void)pthread_mutex_lock(&server->lock);
        server->closing = true;
        (void)pthread_cond_broadcast(&server->changed);
        (void)pthread_mutex_unlock(&server->lock);
        (void)pthread_join(server->watcher, NULL);
    }
    drop(server);
    return all;
}

int64_t kn_httpd_in_flight(const KnHttpd *server)
{
    return atomic_load_explicit(&server->in_flight, memory_order_acquire);
}

int64_t kn_httpd_connections(const KnHttpd *server)
{
    return atomic_load_explicit(&server->n_connections, memory_order_relaxed);
}

/* ---- for handlers -----------------------------------------------------------------------------
 */

const char *kn_httpd_request_header(const KnHttpdRequest *req, const char *name)
{
    const KnHttpdExchange *ex = (const KnHttpdExchange *)(const void *)req;
    return MHD_lookup_connection_value(ex->conn->mhd, MHD_HEADER_KIND, name);
}

const char *kn_httpd_request_query(const KnHttpdRequest *req, const char *name)
{
    const KnStr *value = kn_http_pair_find(req->target.query, req->target.n_query, name);
    return value ? value->ptr : NULL;
}

bool kn_httpd_header_lists(const char *value, const char *token)
{
    size_t len = strlen(token);
    while (value && *value) {
        value += strspn(value, ", \t");
        size_t item = strcspn(value, ",");
        size_t word = strcspn(value, ",; \t");
        const char *q = memmem(value, item, "q=0", 3);
        bool none = q && strspn(q + 2, "0.") == strcspn(q + 2, ", \t;");
        if (word == len && !strncasecmp(value, token, len))
            return !none;
        value += item;
    }
    return false;
}

void kn_httpd_response_header(KnHttpdResponse *rsp, const char *name, const char *value)
{
    assert(rsp->n_headers < KN_HTTPD_HEADERS_MAX);
    rsp->headers[rsp->n_headers++] = (KnHttpdHeader){name, value};
}

void kn_httpd_response_piece(KnHttpdResponse *rsp, KnStr piece)
{
    assert(rsp->n_pieces < KN_HTTPD_PIECES_MAX);
    rsp->pieces[rsp->n_pieces++] = piece;
}
