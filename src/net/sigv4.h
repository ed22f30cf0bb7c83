/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * sigv4.h - AWS Signature Version 4 for HTTP requests (S3 and whatever else speaks it).
 *
 * Rules: "Create a signed AWS API request" of AWS's IAM guide. S3 signs the path as it is sent;
 * every other service signs it with dot segments resolved and encoded once more. Sign when the
 * request is sent, and again for each retry: a signature is good for 15 minutes. Thread-safe.
 */
#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"
#include "net/http_client.h"

#define KN_SIGV4_UNSIGNED "UNSIGNED-PAYLOAD"

typedef struct KnSigV4 {
    const char *access_key_id;
    const char *secret_access_key;
    const char *session_token; /* NULL or "" = none */
    const char *region;
    const char *service;      /* "s3", "s3tables", "glue", "sts"... */
    int64_t now_ms;           /* the time to sign with: the server's, as far as it is known */
    const char *payload_hash; /* hex SHA-256 of the body, KN_SIGV4_UNSIGNED; NULL = of req->body */
} KnSigV4;

/** The request's headers and those that sign it: X-Amz-Date, X-Amz-Content-Sha256 (for "s3" and
 * "s3tables", elsewhere when payload_hash is given), X-Amz-Security-Token, Authorization. Headers
 * that the way may change (Connection, Expect, User-Agent, Accept-Encoding...) are not signed. In
 * arena: `req.headers = signed_headers; req.n_headers = n;`. KN_E_INVAL: the URL. */
KN_NODISCARD KnCode kn_sigv4_sign(KnArena *arena, const KnSigV4 *sig, const KnHttpRequest *req,
                                  KnHttpHeader **ret, size_t *ret_n, KnErr *err);
