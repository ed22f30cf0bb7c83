/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * sign.h - signing S3 requests that others will send (Iceberg's remote signing).
 *
 * kn_s3_intent() says what a request would do: which objects it reads and writes, which folders it
 * lists. It knows the requests that readers and writers of tables make; every other one is refused,
 * as is a header that would do more (copying, access lists, locks), another host than the store's,
 * and a key that somebody might read in two ways. Who decides looks at every touch, and then
 * kn_s3_sign_for() signs. Thread-safe.
 */
#include "net/http_client.h"
#include "storage/s3/s3.h"

/** A request as its sender will send it. */
typedef struct KnS3Foreign {
    const char *method, *uri;
    const KnHttpHeader *headers;
    size_t n_headers;
    const char *body; /* NULL = not told; wanted for DeleteObjects only */
} KnS3Foreign;

typedef struct KnS3Touch {
    const char *location; /* "s3://bucket/key"; with a final slash it is a folder that is listed */
    bool write;
} KnS3Touch;

typedef struct KnS3Intent {
    const KnS3Touch *touches;
    size_t n;
    bool bucket_only; /* asks about the bucket as such (location, existence); no touches */
    const char *bucket;
    const char *uri;          /* as the store spells it when it checks the signature */
    const char *payload_hash; /* what is signed for the body */
    bool write;
} KnS3Intent;

/** io: of the scheme s3. Texts in arena. KN_E_INVAL: no request of S3; KN_E_REFUSED: one that is
 * not signed for others. */
KN_NODISCARD KnCode kn_s3_intent(KnFileIO *io, KnArena *arena, const KnS3Foreign *req,
                                 KnS3Intent *ret, KnErr *err);
typedef struct KnS3Signed {
    const KnHttpHeader *headers; /* those of the request and the signature's */
    size_t n;
} KnS3Signed;

/** What to send, in arena. Only x-amz-* headers, the host and, of writes, the content's type and
 * MD5 are signed, so that one signature of a GET holds for other ranges. */
KN_NODISCARD KnCode kn_s3_sign_for(KnFileIO *io, KnArena *arena, const KnS3Foreign *req,
                                   const KnS3Intent *intent, KnS3Signed *ret, KnErr *err);
