/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* http_server_internal.h - what the files of the HTTP server share. */
#include <microhttpd.h>
#include <pthread.h>
#include <stdatomic.h>

#include "base/buf.h"
#include "net/http_server.h"
#include "net/httpd_pool.h"

/* A TCP connection; in the server's list while it is open. Its deadline is watched by one thread
 * and set by the thread that serves it. */
typedef struct KnHttpdConnection {
    KnHttpd *server;
    struct KnHttpdConnection *prev, *next;
    struct MHD_Connection *mhd;
    int fd;
    char peer[64];
    char *tls_subject; /* NULL until asked for */
    _Atomic int64_t deadline_us;
} KnHttpdConnection;

typedef enum KnHttpdState {
    KN_HTTPD_FRESH,    /* no headers yet */
    KN_HTTPD_BODY,     /* the body arrives */
    KN_HTTPD_DISCARD,  /* it is refused; a short body is read so that the connection can stay */
    KN_HTTPD_RUNNING,  /* on the pool, the connection sleeps */
    KN_HTTPD_ANSWERED, /* rsp is complete */
} KnHttpdState;

/* A request and its answer. */
typedef struct KnHttpdExchange {
    KnHttpdRequest req; /* first: handlers see this part only */
    KnHttpdConnection *conn;
    KnHttpdState state;
    KnBuf body;
    int failed; /* status of a failure that was seen before the handler; 0 = none */
    const char *failure;
    const char *raw_target;
    KnHttpdResponse rsp;
    int64_t sent_bytes;
    KnHttpdJob job;
} KnHttpdExchange;

struct KnHttpd {
    KnHttpdOptions opts;
    struct MHD_Daemon *daemon;
    KnHttpdPool *pool;
    char *tls_pem[3]; /* certificate, key, client CA: MHD reads them as long as it runs */
    pthread_mutex_t lock;
    pthread_cond_t changed; /* drained, or closing: the watcher's and the closer's */
    KnHttpdConnection *connections;
    pthread_t watcher;
    bool watching, closing;
    atomic_bool draining;
    _Atomic int64_t in_flight, n_connections;
};

/* httpd_answer.c: the response as libmicrohttpd sends it; packs it when it should be. */
enum MHD_Result kn_httpd_answer_queue(KnHttpdExchange *ex);
/* httpd_answer.c: a gzip body unpacked, at most max bytes. false: *ret_status says why. */
bool kn_httpd_body_unpack(KnBuf *body, size_t max, int *ret_status);

/* httpd_tls.c */
KN_NODISCARD KnCode kn_httpd_tls_load(KnHttpd *server, KnErr *err);
/* Asks the client for a certificate that one of the CAs signed; without one the handshake fails. */
void kn_httpd_tls_demand(struct MHD_Connection *mhd);
/* The subject of the client's certificate, to be freed; NULL = none. */
char *kn_httpd_tls_subject(struct MHD_Connection *mhd);
