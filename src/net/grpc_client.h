/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * grpc_client.h - unary gRPC calls over the HTTP client. Thread-safe.
 */
#include "net/grpc_frame.h"
#include "net/http_client.h"

typedef struct KnGrpcClient KnGrpcClient;

/** Texts are copied. */
typedef struct KnGrpcClientOptions {
    const char *uri;   /* "http://host:port" (HTTP/2 at once), "https://host:port" */
    const char *token; /* sent as `authorization: Bearer …`; NULL = none; secret */
    const char *ca_file, *client_cert, *client_key; /* as of KnHttpClientOptions */
    size_t max_message;                             /* of an answer; 0 = 512 MiB */
} KnGrpcClientOptions;

/** KN_E_INVAL: the URI, the token or a file cannot be used. */
KN_NODISCARD KnCode kn_grpc_client_new(const KnGrpcClientOptions *opts, KnGrpcClient **ret,
                                       KnErr *err);
KnGrpcClient *kn_grpc_client_free(KnGrpcClient *client); /* accepts NULL, returns NULL */
/** "http://host:port": without a secret. */
const char *kn_grpc_client_uri(const KnGrpcClient *client);

/** How the server ended a call. */
typedef struct KnGrpcStatus {
    int code; /* KnGrpcCode, or another number that a server made up */
    char text[400];
} KnGrpcStatus;

typedef struct KnGrpcAnswer {
    KnGrpcStatus status;
    KnStr message; /* with KN_GRPC_OK; lives in http */
    KnHttpResponse http;
} KnGrpcAnswer;
void kn_grpc_answer_done(KnGrpcAnswer *answer); /* accepts a zeroed one */
#define KN_GRPC_ANSWER_AUTO __attribute__((cleanup(kn_grpc_answer_done))) KnGrpcAnswer

/** One message there (framed: kn_grpc_frame_begin), one back. KN_OK: the call ended, with whatever
 * status. KN_E_IO: it was not sent; KN_E_UNKNOWN: it may have been, and how it ended is not known.
 * ret is zeroed or done by the caller, and done by the caller. */
KN_NODISCARD KnCode kn_grpc_client_call(KnGrpcClient *client, const char *path, const KnBuf *framed,
                                        KnGrpcAnswer *ret, KnErr *err);
