/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * front.h - a front: a protocol (REST, gRPC) in which a catalog is served.
 *
 * `knut catalog serve` opens the core, the tokens and the audit log once, a listening socket for
 * each front that was asked for, and then the fronts; it closes the fronts first. Adding a front is
 * a `const KnFrontOps` and a row in serve.c. A front's calls into the core are on its own threads.
 */
#include "catalog/core/core.h"
#include "catalog/server/audit.h"
#include "catalog/server/auth.h"
#include "net/http_server.h"
#include "net/listen.h"
#include "storage/s3/lend.h"

typedef struct KnTextPair {
    const char *name, *value;
} KnTextPair;

/** Borrowed by the fronts; lives longer than they do. */
typedef struct KnFrontContext {
    KnCatalogCore *core;
    KnAuth *auth;        /* without tokens it lets everybody do everything; never NULL */
    KnAudit *audit;      /* NULL = no audit log */
    KnHttpdTls tls;      /* also for gRPC */
    const char *catalog; /* the catalog's name */
    bool quick_reads;    /* the core reads without waiting for a peer: local files and database */
    size_t max_body;     /* bytes of a request, unpacked */
    const char *const *cors_origins;
    size_t n_cors_origins;
    const KnTextPair *client_config; /* told to every client: "s3.endpoint", … no secrets */
    size_t n_client_config;
    KnS3Lender *lender;  /* lends keys for tables' folders; NULL = none are lent */
    bool remote_signing; /* S3 requests are signed for clients */
} KnFrontContext;

typedef struct KnFront KnFront;

/* Every callback is required. */
typedef struct KnFrontOps {
    const char *name; /* "rest", "grpc" */
    /* Answers from here on. The socket is taken over, also on failure. */
    KnCode (*open)(const KnFrontContext *ctx, KnListen *listening, KnFront **ret, KnErr *err);
    /* No new requests; those in flight are finished, within wait_us; then everything is freed.
     * False = some were cut off. */
    bool (*close)(KnFront *front, int64_t wait_us);
} KnFrontOps;

/** First member of every front's struct. */
struct KnFront {
    const KnFrontOps *ops;
};

extern const KnFrontOps kn_front_rest;
