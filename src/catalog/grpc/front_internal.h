/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * front_internal.h - what the files of the gRPC front share.
 *
 * A call is a row of an operation table: the messages, the right that it takes, the function.
 * front.c decodes, checks the right, runs the function and encodes what it fills; functions see
 * neither bytes nor tokens.
 */
#include <pthread.h>
#include <stdatomic.h>

#include "base/metrics.h"
#include "catalog/grpc/wire.h"
#include "catalog/server/front.h"
#include "net/grpc_server.h"

/** Follows the log of commits for whoever watches; see watcher.c. */
typedef struct KnGrpcWatcher {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    pthread_t thread;
    bool started, ending;
    unsigned n_watching;
} KnGrpcWatcher;

typedef struct KnGrpcFront {
    KnFront base;
    KnFrontContext ctx;
    KnGrpcServer *srv;
    atomic_bool closing;
    atomic_int health; /* as it was last seen: SERVING or NOT_SERVING */
    KnGrpcWatcher watcher;
    KnGrpcMethod *methods;
    KnMetric *_Atomic *counts; /* per operation and code, made when it first happens */
    KnMetric **micros;         /* per operation */
} KnGrpcFront;

typedef struct KnRpc {
    KnGrpcFront *front;
    KnArena *arena;
    const KnPrincipal *who;
    const KnWireRequest *req;
    KnWireAnswer answer;
    KnDocument *doc; /* whose bytes the answer shows; dropped once they are sent */
} KnRpc;

typedef struct KnRpcOp {
    const char *path;
    const char *operation; /* for the audit log */
    const KnPbMessage *request, *answer;
    KnRight right; /* in the request's namespace; NONE = the function sees to it */
    bool needs_namespace, needs_table;
    bool changes; /* waits for the disk, and is audited */
    KnCode (*run)(KnRpc *rpc, KnErr *err);
} KnRpcOp;

extern const KnRpcOp kn_grpc_catalog_ops[];
extern const size_t kn_grpc_n_catalog_ops;

/** Who calls. Fails with a code of gRPC in *ret_code. */
KN_NODISCARD KnCode kn_grpc_authenticate(KnGrpcFront *front, KnGrpcCall *call,
                                         const KnPrincipal **ret, KnErr *err);

/* Methods of their own (commits.c, health.c, reflection.c); self is the front. */
int kn_grpc_watch_commits(void *self, KnGrpcCall *call, KnBuf *out, KnErr *err);
int kn_grpc_check_health(void *self, KnGrpcCall *call, KnBuf *out, KnErr *err);
int kn_grpc_watch_health(void *self, KnGrpcCall *call, KnBuf *out, KnErr *err);
int kn_grpc_reflect(void *self, KnGrpcCall *call, KnBuf *out, KnErr *err);
void kn_grpc_watch_ended(void *self, KnGrpcCall *call);
/** SERVING when the database answers and the front is not closing; remembered. */
int kn_grpc_look_at_health(KnGrpcFront *front);

/* watcher.c */
void kn_grpc_watcher_init(KnGrpcFront *front);
void kn_grpc_watcher_stop(KnGrpcFront *front); /* before the server is closed */
void kn_grpc_watcher_done(KnGrpcFront *front); /* after it */
void kn_grpc_watcher_add(KnGrpcFront *front);
void kn_grpc_watcher_remove(KnGrpcFront *front);
