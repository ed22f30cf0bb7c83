/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * s3.h - the scheme `s3` (also `s3a`, `s3n`): FileIO on object stores that speak S3.
 *
 * One KnFileIO serves every bucket that its credentials open, at one endpoint. Options that are not
 * given come from the environment and the AWS profile (credentials.h says from where). Opening
 * makes no request and looks for no credentials. Thread-safe.
 */
#include <stdbool.h>
#include <stdint.h>

#include "base/option.h"
#include "storage/file_io.h"

/** Keys as a provider hands them out; texts in the arena that it was given. */
typedef struct KnS3Keys {
    const char *access_key_id;
    const char *secret_access_key;
    const char *session_token; /* NULL = none */
    int64_t expires_ms;        /* wall clock; 0 = never */
} KnS3Keys;

/** Keys from elsewhere (vended credentials of a catalog): called when the ones at hand are about to
 * expire, or were refused; by one thread at a time. */
typedef KnCode (*KnS3KeysFn)(void *arg, KnArena *arena, KnS3Keys *ret, KnErr *err);

/** Zeroed: all from the environment. Texts are copied. */
struct KnS3Options {
    const char *endpoint; /* "http[s]://host[:port]"; NULL = environment, else AWS */
    const char *region;   /* NULL = environment, profile, "us-east-1" */
    const char *ca_file;  /* PEM; NULL = AWS_CA_BUNDLE, else the system's */
    const char *bucket;   /* locations in other buckets are refused; NULL = any */
    bool virtual_hosted;  /* http://bucket.host/key. Neither of the two: as a bare AWS endpoint */
    bool path_style;      /* needs it, path style (http://host/bucket/key) for a given endpoint */

    const KnS3Keys *keys; /* instead of the chain; NULL = the chain. Copied */
    KnS3KeysFn provide;   /* instead of the chain, and after `keys` have expired */
    void *provide_arg;
    const char *scope; /* what the keys are for ("s3://bucket/prefix/"); NULL = each bucket */

    int64_t stall_ms;      /* no progress for so long: 0 = 30 s */
    int64_t retry_base_ms; /* waits are random below base * 2^try, and 20 s: 0 = 100 ms */
    int max_tries;         /* of one request: 0 = 6 */
    uint64_t part_bytes;   /* of multipart uploads and parallel reads: 0 = 16 MiB */
};

/** `--s3-endpoint`, `--s3-region`, `--s3-bucket`, `--s3-virtual-hosted`, `--s3-ca`: rows of an
 * option group whose base is a KnS3Options. There are none for secrets: those have no flags. */
enum { KN_N_S3_OPTIONS = 5 };
extern const KnOption kn_s3_option_rows[KN_N_S3_OPTIONS];

/** KN_E_INVAL: an endpoint that is no URL, a CA file that is missing. */
KN_NODISCARD KnCode kn_io_s3_open(const KnS3Options *options, KnFileIO **ret, KnErr *err);
/** The region, and the CA file (NULL = the system's), that the options come to. */
const char *kn_s3_option_region(const KnS3Options *options, KnArena *arena);
const char *kn_s3_option_ca(const KnS3Options *options);

/** Where the store of a FileIO of this scheme is, as its clients have to know. Texts live as long
 * as it does. */
typedef struct KnS3Where {
    const char *endpoint; /* "http[s]://host[:port]"; NULL = AWS's */
    const char *region;
    bool path_style; /* of the given endpoint */
} KnS3Where;
/** False: the FileIO is of another scheme. */
bool kn_s3_where(const KnFileIO *io, KnS3Where *ret);

/** Whether a location is of one of the schemes served here. */
bool kn_s3_is_location(KnStr location);
