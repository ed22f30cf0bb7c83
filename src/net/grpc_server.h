/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * grpc_server.h - services of gRPC methods over an HTTP/2 server.
 *
 * A method takes one message. A unary one answers with one message; a flow answers with any number,
 * whenever it has some. A dialog takes any number, and answers each with one. Messages are bytes
 * here: what they mean is the method's matter.
 *
 * Threads: a KN_GRPC_QUICK method runs on a loop's thread and must not wait for anything. Others
 * run on worker threads, several at once; a flow is pulled by one thread at a time. A call whose
 * client has left, or whose deadline has passed, before it began is not begun.
 */
#include "base/arena.h"
#include "net/grpc_frame.h"
#include "net/http2_server.h"

typedef struct KnGrpcServer KnGrpcServer;
typedef struct KnGrpcMethod KnGrpcMethod;

typedef struct KnGrpcCall {
    KnArena *arena;   /* dies with the call */
    KnStr message;    /* the request */
    const char *peer; /* "127.0.0.1:5000" */
    void *state;      /* of a flow: its own, NULL at first; in arena */
    KnH2Stream *stream;
    const KnGrpcMethod *method;
} KnGrpcCall;

/** A request's metadata; empty with ptr NULL when it is not there. */
KnStr kn_grpc_call_metadata(const KnGrpcCall *call, const char *name);

typedef enum KnGrpcKind {
    KN_GRPC_QUICK,
    KN_GRPC_BLOCKING,
    KN_GRPC_FLOW,
    KN_GRPC_DIALOG
} KnGrpcKind;
#define KN_GRPC_GO_ON (-1) /* what a flow returns while it has not ended */

struct KnGrpcMethod {
    const char *path; /* "/package.Service/Method" */
    KnGrpcKind kind;
    /* Unary: append the answer's message to out and return KN_GRPC_OK, or a code with err->msg as
     * its text (err is zeroed before).
     * Dialog: the same for each message; a code but KN_GRPC_OK ends it. call->arena dies with the
     * message.
     * Flow: append whole frames (kn_grpc_frame_begin), or none when there is nothing to say yet,
     * and return KN_GRPC_GO_ON; or a code, which ends it. Pulled at first, when all that it said
     * has been sent, and after kn_grpc_server_wake(). */
    int (*call)(void *self, KnGrpcCall *call, KnBuf *out, KnErr *err);
    /* A flow's end, whatever the reason: free what state holds outside the arena. May be NULL. */
    void (*ended)(void *self, KnGrpcCall *call);
    const void *arg; /* for call, which has it as call->method->arg */
};

typedef struct KnGrpcService {
    const KnGrpcMethod *methods; /* outlive the server */
    size_t n_methods;
    void *self;
} KnGrpcService;

/** Zero means the default in brackets. */
typedef struct KnGrpcOptions {
    KnH2Options http;
    const KnGrpcService *services; /* copied */
    size_t n_services;
    unsigned workers;   /* threads for methods that wait [64], made as they are needed */
    size_t max_waiting; /* calls that workers have or that wait for one [1024] */
    unsigned max_flows; /* and dialogs, open at once [256]; more are refused */
    size_t max_reply;   /* bytes of one answer [256 MiB] */
} KnGrpcOptions;

/** Serves once it listens. */
KnGrpcServer *kn_grpc_server_new(const KnGrpcOptions *opts);
/** Takes over the listening socket, also on failure. */
KN_NODISCARD KnCode kn_grpc_server_listen(KnGrpcServer *srv, KnListen *listening, KnErr *err);
/** Pull all flows that have nothing left to send. From any thread. */
void kn_grpc_server_wake(KnGrpcServer *srv);
/** New calls are refused (UNAVAILABLE, GOAWAY), flows are pulled a last time and ended so too. */
void kn_grpc_server_shut(KnGrpcServer *srv);
/** Shuts, waits up to grace_us for open calls, then ends; a call that waits for something is waited
 * for longer. True when no call was cut off. Takes NULL. */
bool kn_grpc_server_close(KnGrpcServer *srv, int64_t grace_us);
