/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * http2_server.h - an HTTP/2 server: plain text with prior knowledge (h2c), or TLS with ALPN "h2".
 *
 * A few loop threads own the connections; each accepts from the one listening socket. A request is
 * handed to the handler when all of it has been received, on the loop's thread: a handler that may
 * wait gives the stream to another thread and answers from there. Nothing is negotiated from
 * HTTP/1.1: whoever does not begin with HTTP/2's preface is disconnected.
 *
 * Threads: the functions on streams may be called by any thread; the server's by its owner.
 */
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "net/http_server.h"
#include "net/listen.h"

typedef struct KnH2Server KnH2Server;
typedef struct KnH2Stream KnH2Stream;

typedef struct KnH2Field {
    KnStr name; /* lower case */
    KnStr value;
} KnH2Field;

/** Lives as long as the stream; does not change once the handler has seen it. */
typedef struct KnH2Request {
    KnStr method, path, authority;
    const KnH2Field *fields; /* without the pseudo fields */
    size_t n_fields;
    KnStr body;
    bool too_large;   /* the body passed its limit, or the server's: body is empty */
    const char *peer; /* "127.0.0.1:5000" */
} KnH2Request;

/** What to send next on a stream: the head first and once, then bytes, then the end. */
typedef struct KnH2Send {
    const KnH2Field *head; /* ":status" first */
    size_t n_head;
    KnBuf *body; /* its bytes are taken, the buffer is empty after; NULL = none */
    bool end;
    const KnH2Field *trailers; /* with end only */
    size_t n_trailers;
} KnH2Send;

/* Called on loop threads, by several at once; must not wait. The first three are required. */
typedef struct KnH2Handler {
    /* A whole request. The stream is borrowed: ref it to answer later. */
    void (*request)(void *self, KnH2Stream *st);
    /* All that was sent so far has gone to the connection, and the end was not sent. */
    void (*drained)(void *self, KnH2Stream *st);
    /* Answered, reset or disconnected. Called once for each request that was seen. */
    void (*closed)(void *self, KnH2Stream *st);
    /* The head has come, and a body will: true when the handler takes the body in parts, and has
     * the request from here on; request() is not called then. NULL = never. */
    bool (*begin)(void *self, KnH2Stream *st);
    /* The next bytes of such a body (not kept after the call); last = no more will come. Not called
     * any more once the answer has ended. */
    void (*part)(void *self, KnH2Stream *st, KnStr bytes, bool last);
} KnH2Handler;

/** Zero means the default in brackets. */
typedef struct KnH2Options {
    KnHttpdTls tls;           /* with a certificate, TLS only */
    unsigned loops;           /* threads [2] */
    uint32_t max_connections; /* [1024] */
    uint32_t max_streams;     /* at once on a connection [128] */
    size_t max_body;          /* of one request [16 MiB] */
    size_t max_fields;        /* bytes of one request's fields [16 KiB] */
    size_t max_held;          /* bytes of all bodies in and out, of all connections [256 MiB] */
    int64_t request_us; /* from a request's first byte to its last, and for a handshake [20 s] */
    int64_t ping_us;    /* silence before the peer is asked whether it lives [60 s] */
    int64_t stall_us;   /* for the answer to that, and for taking what we send [20 s] */
    int64_t idle_us;    /* a connection without requests is dismissed [10 min] */
} KnH2Options;

/** Takes over the listening socket, also on failure, and serves from now on. The handler must
 * outlive the server. KN_E_INVAL for a certificate that cannot be used. */
KN_NODISCARD KnCode kn_h2_server_open(KnListen *listening, const KnH2Options *opts,
                                      const KnH2Handler *handler, void *self, KnH2Server **ret,
                                      KnErr *err);
/** No new connections and, by GOAWAY, no new requests. Returns at once. */
void kn_h2_server_shut(KnH2Server *srv);
/** Shuts, waits up to grace_us for the open requests to end, disconnects the rest, and frees.
 * True when there was no rest. Takes NULL. Streams that somebody holds stay valid; sends on them
 * do nothing. */
bool kn_h2_server_close(KnH2Server *srv, int64_t grace_us);

const KnH2Request *kn_h2_stream_request(const KnH2Stream *st);
/** A request's field by its lower-case name; empty with ptr NULL when there is none. */
KnStr kn_h2_stream_field(const KnH2Stream *st, const char *name);
/** Memory that dies with the stream; for the handler alone, one thread at a time. */
struct KnArena *kn_h2_stream_arena(KnH2Stream *st);
/** The handler's own word on the stream; NULL at first. Set before the stream is given away. */
void kn_h2_stream_set_user(KnH2Stream *st, void *user);
void *kn_h2_stream_user(const KnH2Stream *st);
KnH2Stream *kn_h2_stream_ref(KnH2Stream *st);
KnH2Stream *kn_h2_stream_unref(KnH2Stream *st); /* takes NULL, returns NULL */
/** True once nobody will see an answer. */
bool kn_h2_stream_is_gone(const KnH2Stream *st);
/** Order is kept among calls of one thread. On a stream that is gone it only frees the body. */
void kn_h2_stream_send(KnH2Stream *st, const KnH2Send *send);
