/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * lend.h - short-lived keys for some folders of the store: STS AssumeRole with a session policy.
 *
 * The policy allows reading, or reading and writing, objects below the folders, and listing them;
 * nothing else. What the role may not do the keys may not do either. Keys are kept and lent again
 * while at least half of their life is left, so that whoever renews them five minutes before their
 * end gets others; many callers who want the same at once make one request. They are in memory
 * only, overwritten when they go, and never in a message. Thread-safe.
 */
#include "storage/s3/s3.h"

typedef struct KnS3Lender KnS3Lender;

typedef struct KnS3LenderOptions {
    const KnS3Options *s3; /* region, CA file, and the keys that STS is asked with */
    const char *endpoint;  /* "http[s]://host[:port]"; NULL = AWS's of the region */
    const char *role_arn;  /* NULL: STS lends the rights of the keys themselves (not at AWS) */
    int64_t duration_s;    /* 0 = 3600 */
} KnS3LenderOptions;

/** Makes no request. KN_E_INVAL: an endpoint that is no URL, a CA file that is missing. */
KN_NODISCARD KnCode kn_s3_lender_open(const KnS3LenderOptions *options, KnS3Lender **ret,
                                      KnErr *err);
KnS3Lender *kn_s3_lender_close(KnS3Lender *lender); /* accepts NULL, returns NULL */

typedef struct KnS3Grant {
    const char *const *folders; /* "s3://bucket/folder", without a final slash */
    size_t n;
    bool write;
} KnS3Grant;

/** Keys in arena, with expires_ms. KN_E_UNSUPPORTED: no policy can say this (a wildcard in a name,
 * a whole bucket, too long); KN_E_IO: STS refused or did not answer. The same failure is given to
 * whoever asks within a few seconds. */
KN_NODISCARD KnCode kn_s3_lend(KnS3Lender *lender, KnArena *arena, const KnS3Grant *grant,
                               KnS3Keys *ret, KnErr *err);

/** The session policy, in arena: for tests. */
KN_NODISCARD KnCode kn_s3_lend_policy(KnArena *arena, const char *region, const KnS3Grant *grant,
                                      const char **ret, KnErr *err);
