/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * http_server.h - HTTP/1.1 for whoever answers requests (over libmicrohttpd).
 *
 * A few threads wait for all connections (epoll) and run the handler there, which is what a quick
 * answer out of memory wants. A handler that would wait for a disk or a peer says so
 * (KN_HTTPD_LATER) and is run again on a thread of a pool that grows with the need, while its
 * connection sleeps; so a slow commit never delays somebody else's quick read. Where there is
 * nobody else (req->alone) a handler may as well do what takes a few milliseconds on the spot,
 * which saves two changes of threads.
 *
 * A request and everything hung on its arena live until the answer has been sent: pieces of an
 * answer may point into the arena, or to something that kn_arena_defer() releases, and are sent
 * without being copied. Bodies are bounded, gzip request bodies are unpacked within the same bound,
 * answers are packed when the client takes gzip.
 *
 * Slow clients: a request must be complete, headers within header_timeout of the connection's
 * beginning or of the answer before it, and the body within body_timeout of the headers; a client
 * that sends single bytes gains nothing. Thread-safe unless said otherwise.
 */
#include <stdatomic.h>

#include "net/http_target.h"
#include "net/listen.h"

typedef struct KnHttpd KnHttpd;

enum { KN_HTTPD_HEADERS_MAX = 16, KN_HTTPD_PIECES_MAX = 8 };

typedef struct KnHttpdRequest {
    KnArena *arena;
    KnStr method; /* "GET" */
    KnHttpTarget target;
    KnStr body;              /* unpacked, NUL-terminated; "" when there is none */
    const char *peer;        /* "127.0.0.1" */
    const char *tls_subject; /* the verified client certificate's, NULL without mTLS */
    bool on_pool;            /* the handler may wait: KN_HTTPD_LATER was answered before */
    bool alone;       /* of handle(): no other connection is open, another thread could take one */
    int64_t began_us; /* kn_clock_mono_us() when its first line arrived */
    void *user;       /* the handler's own, NULL at first */
} KnHttpdRequest;

typedef struct KnHttpdHeader {
    const char *name, *value; /* live as long as the request */
} KnHttpdHeader;

typedef struct KnHttpdResponse {
    int status;
    size_t n_headers;
    KnHttpdHeader headers[KN_HTTPD_HEADERS_MAX];
    size_t n_pieces;
    KnStr pieces[KN_HTTPD_PIECES_MAX]; /* the body is their concatenation; sent without copying */
    bool plain;                        /* never packed: it is already, or need not be */
    KnStr packed; /* the whole body in gzip, where it is known from before; lives as the pieces */
    /* Told of the packed body, when it had to be made; or NULL. */
    void (*on_packed)(void *arg, KnStr packed);
    void *on_packed_arg;
} KnHttpdResponse;

typedef enum KnHttpdWhen { KN_HTTPD_NOW, KN_HTTPD_LATER } KnHttpdWhen;

/* What the server calls. Every callback is required; all may run on several threads at once. */
typedef struct KnHttpdHandler {
    void *arg;
    /* After the headers: how long the body may be. A response filled in (status != 0) refuses the
     * request. */
    size_t (*admit)(void *arg, KnHttpdRequest *req, KnHttpdResponse *rsp);
    /* Fills the response; KN_HTTPD_LATER asks to be called again on a thread that may wait (never
     * when on_pool), with the response empty. */
    KnHttpdWhen (*handle)(void *arg, KnHttpdRequest *req, KnHttpdResponse *rsp);
    /* A failure of HTTP itself (status 400, 408, 413, 414, 415, 431, 500, 503) as a response. */
    void (*fail)(void *arg, KnHttpdRequest *req, int status, const char *message,
                 KnHttpdResponse *rsp);
    /* Once per request, after its answer was sent or given up: for metrics and the audit log. bytes
     * is the body's length before packing; status 0 = no answer was made. */
    void (*done)(void *arg, const KnHttpdRequest *req, int status, int64_t bytes);
} KnHttpdHandler;

typedef struct KnHttpdTls {
    const char *cert_file; /* PEM chain; NULL = plain HTTP */
    const char *key_file;
    const char
        *client_ca_file; /* clients must show a certificate of one of these; NULL = no mTLS */
} KnHttpdTls;

typedef struct KnHttpdOptions {
    KnHttpdHandler handler;
    KnHttpdTls tls;
    int threads;              /* that wait for connections; 0 = as many as processors, 4 at most */
    int pool_threads;         /* the most that run waiting handlers; 0 = 64 */
    int max_connections;      /* 0 = 1000 */
    int64_t idle_timeout_s;   /* a connection without a request; 0 = 75 */
    int64_t header_timeout_s; /* 0 = 90, never below idle_timeout */
    int64_t body_timeout_s;   /* 0 = 60 */
    size_t gzip_from;         /* bodies from this size on are packed; 0 = 4096 */
} KnHttpdOptions;

/** Takes over the listening socket, also on failure. Answers from here on. */
KN_NODISCARD KnCode kn_httpd_open(KnListen *listening, const KnHttpdOptions *opts, KnHttpd **ret,
                                  KnErr *err);
/** No new connections; waits for what is in flight, at most so long; then closes all. True when
 * everything was answered. Accepts NULL. */
bool kn_httpd_close(KnHttpd *server, int64_t wait_us);
/** Requests that have no answer yet. */
int64_t kn_httpd_in_flight(const KnHttpd *server);
/** Open connections. */
int64_t kn_httpd_connections(const KnHttpd *server);

/** A request header by name (any case); NULL = absent. Valid while the request is. */
const char *kn_httpd_request_header(const KnHttpdRequest *req, const char *name);
/** A parameter of the query; NULL = absent. */
const char *kn_httpd_request_query(const KnHttpdRequest *req, const char *name);
/** True when a comma-separated header (Accept-Encoding, Accept) lists the token and does not weigh
 * it with q=0. */
bool kn_httpd_header_lists(const char *value, const char *token);

void kn_httpd_response_header(KnHttpdResponse *rsp, const char *name, const char *value);
void kn_httpd_response_piece(KnHttpdResponse *rsp, KnStr piece);
