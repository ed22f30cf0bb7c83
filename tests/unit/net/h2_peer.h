/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * h2_peer.h - an HTTP/2 client for tests, on a server's session in memory or on a socket.
 *
 * In memory everything happens when h2_peer_pump() says so, on the calling thread: nothing races.
 */
#include "net/http2_internal.h"

enum { H2_ANSWERS = 256 };

typedef struct H2Answer {
    int32_t id;
    char status[8], grpc_status[8], grpc_message[512];
    KnBuf body;
    bool closed;
    uint32_t error; /* of RST_STREAM */
    size_t left;    /* of the request's body, not sent yet */
    const char *body_at;
    bool keep_open; /* the request has no end yet */
} H2Answer;

typedef struct H2Peer {
    nghttp2_session *ng;
    KnH2Session *server; /* in memory */
    int fd;              /* on a socket, blocking; else -1 */
    H2Answer answers[H2_ANSWERS];
    size_t n_answers;
    bool goaway;
    int32_t goaway_last;
    uint32_t goaway_error;
    bool server_failed; /* its session said that the peer broke the protocol */
    int pings;          /* acknowledged */
} H2Peer;

/** Zeroed options are given their defaults; for sessions without a server. */
void h2_shared_init(KnH2Shared *shared, const KnH2Handler *handler, void *self);

H2Peer *h2_peer_new(KnH2Session *server);
H2Peer *h2_peer_connect(uint16_t port);
void h2_peer_free(H2Peer *peer);
/** POST with gRPC's fields and a body that lives on; extra fields may be NULL. */
H2Answer *h2_peer_post(H2Peer *peer, const char *path, KnStr body, const nghttp2_nv *extra,
                       size_t n_extra);
/** Any fields; no body. */
H2Answer *h2_peer_request(H2Peer *peer, const nghttp2_nv *fields, size_t n, bool keep_open);
nghttp2_nv h2_field(const char *name, const char *value);
/** Until neither side has anything to say (in memory), or all answers are closed (socket). */
void h2_peer_pump(H2Peer *peer);
/** On a socket: until the answer has at least so many bytes, or is closed. */
void h2_peer_await(H2Peer *peer, const H2Answer *answer, size_t bytes);
/** On a socket: until the server disconnects or says goodbye. */
void h2_peer_await_goaway(H2Peer *peer);
