/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * http2_internal.h - sessions, streams and connections, for the server's files and their tests.
 *
 * A session is HTTP/2 without a socket: bytes in, bytes out. It belongs to one loop thread, as does
 * everything below but the mail: other threads put what they send into the mail of the loop, which
 * takes it out when its descriptor becomes readable.
 */
#include <nghttp2/nghttp2.h>
#include <openssl/ssl.h>
#include <pthread.h>
#include <stdatomic.h>

#include "base/arena.h"
#include "base/vec.h"
#include "net/http2_server.h"

typedef struct KnH2Session KnH2Session;
typedef struct KnH2Post KnH2Post; /* one kn_h2_stream_send on its way */

/** What all loops of a server share. */
typedef struct KnH2Shared {
    KnH2Options opts; /* defaults filled in */
    const KnH2Handler *handler;
    void *self;
    atomic_size_t held; /* bytes of bodies, against opts.max_held */
    atomic_uint connections;
    atomic_bool shut, cut_off; /* cut_off: a request did not end in time */
    atomic_llong deadline_us;  /* when shut: monotonic time at which loops give up; 0 = not yet */
    SSL_CTX *tls;
} KnH2Shared;

/** Lives until its loop and the last of its streams are gone. */
typedef struct KnH2Mail {
    atomic_int refs;
    pthread_mutex_t lock;
    KnH2Post *first, *last;
    bool closed; /* the loop is gone: posts are dropped */
    pthread_t owner;
    int fd; /* an eventfd */
} KnH2Mail;

/** The calling thread is the owner until another one is set. */
KnCode kn_h2_mail_open(KnH2Mail **ret, KnErr *err) __attribute__((warn_unused_result));
void kn_h2_mail_close(KnH2Mail *mail); /* gives up the loop's reference */
void kn_h2_mail_wake(KnH2Mail *mail);
/** Apply all that has come; sessions that now have bytes to send call their wake function. */
void kn_h2_mail_deliver(KnH2Mail *mail);

struct KnH2Stream {
    atomic_int refs;
    atomic_bool gone;
    KnH2Mail *mail;       /* a reference */
    KnH2Session *session; /* NULL once closed; for the loop's thread */
    KnH2Stream *next, **prev;
    int32_t id;
    bool seen;     /* by the handler */
    bool in_parts; /* the handler takes the body as it comes */
    bool head_sent;
    bool hungry; /* ran empty before its end: tell the handler */
    bool fields_too_large;
    bool cut;         /* answered before its end: reset when the answer has been sent */
    int64_t since_us; /* when its first byte came */
    size_t fields_bytes;
    size_t body_held; /* of the budget */
    KnBuf body;
    KN_VEC(KnH2Field) fields;
    KnH2Request req;
    KnArena *arena;
    void *user;
    KnH2Post *out, **out_tail; /* posts with bytes to send */
    size_t out_at;             /* sent of the first one */
    KnH2Post *final;           /* the post that ends it; last of `out`, or kept for its trailers */
    bool ended;
};

struct KnH2Session {
    nghttp2_session *ng;
    KnH2Shared *shared;
    KnH2Mail *mail;
    KnH2Stream *streams;
    size_t n_streams;
    char peer[64];
    void (*wake)(void *arg); /* bytes to send have come by mail; NULL = nobody cares */
    void *wake_arg;
    int32_t last_id; /* of the last request that came */
};

/** peer is copied. KN_E_NOMEM only. */
KnCode kn_h2_session_new(KnH2Shared *shared, KnH2Mail *mail, const char *peer, KnH2Session **ret,
                         KnErr *err) __attribute__((warn_unused_result));
KnH2Session *kn_h2_session_free(KnH2Session *ses);
/** False when the peer broke the protocol: send what there is to send, then disconnect. */
bool kn_h2_session_recv(KnH2Session *ses, const uint8_t *bytes, size_t len);
/** Append up to about max bytes to out; false when the connection cannot go on. */
bool kn_h2_session_send(KnH2Session *ses, KnBuf *out, size_t max);
bool kn_h2_session_is_over(KnH2Session *ses);
/** GOAWAY: first a notice, which lets requests under way arrive, then (final) the last word. */
void kn_h2_session_shut(KnH2Session *ses, bool final);
void kn_h2_session_ping(KnH2Session *ses);
/** A request of which the last byte has not come since limit_us after its first. */
bool kn_h2_session_has_slow_request(const KnH2Session *ses, int64_t now_us);

/* http2_stream.c */
KnH2Stream *kn_h2_stream_new(KnH2Session *ses, int32_t id);
/** Off its session and gone; the session's reference is given up. */
void kn_h2_stream_detach(KnH2Stream *st);
void kn_h2_stream_add_field(KnH2Stream *st, KnStr name, KnStr value);
void kn_h2_stream_add_body(KnH2Stream *st, const uint8_t *bytes, size_t len);
/** The head is there, a body will come. */
void kn_h2_stream_begin(KnH2Stream *st);
/** The request is there to its end: give it to the handler, once. */
void kn_h2_stream_dispatch(KnH2Stream *st);
/** nghttp2's way to fetch what was queued. */
ssize_t kn_h2_stream_read(nghttp2_session *ng, int32_t id, uint8_t *buf, size_t len,
                          uint32_t *flags, nghttp2_data_source *source, void *arg);

/* http2_conn.c: a session on a socket. */
typedef struct KnH2Conn KnH2Conn;
typedef struct KnH2Loop KnH2Loop;
struct KnH2Conn {
    KnH2Conn *next, **prev;
    KnH2Loop *loop;
    KnH2Session *session;
    SSL *tls;
    int fd;
    uint32_t events; /* that epoll watches */
    bool dirty;      /* in the loop's list of those to flush */
    bool dead;
    bool ready; /* handshake done */
    bool notice_sent, final_sent;
    bool tls_wants_write;
    KnBuf out;
    size_t out_at;
    int64_t opened_us, heard_us, took_us, busy_us, ping_us;
};

KnH2Conn *kn_h2_conn_new(KnH2Loop *loop, int fd, const char *peer);
void kn_h2_conn_on_events(KnH2Conn *conn, uint32_t events, int64_t now_us);
void kn_h2_conn_flush(KnH2Conn *conn, int64_t now_us);
/** Time limits, pings, shutting down. */
void kn_h2_conn_check(KnH2Conn *conn, int64_t now_us);
KnH2Conn *kn_h2_conn_free(KnH2Conn *conn);

struct KnH2Loop {
    KnH2Shared *shared;
    KnH2Mail *mail;
    pthread_t thread;
    bool started;
    int epoll, listen_fd;
    bool listening;
    KnH2Conn *conns;
    KN_VEC(KnH2Conn *) dirty;
    uint8_t *input; /* one buffer for what is read from any connection */
};
#define KN_H2_INPUT ((size_t)64 << 10)

/* http2_tls.c */
/** "127.0.0.1:5000" or "[::1]:5000" of a connection. */
void kn_h2_peer_format(const void *sockaddr, char out[64]);
KnCode kn_h2_tls_open(const KnH2Options *opts, SSL_CTX **ret, KnErr *err)
    __attribute__((warn_unused_result));
