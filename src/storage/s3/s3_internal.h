/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * s3_internal.h - what the files of this folder share: the FileIO, and one signed request with its
 * retries (request.c).
 */
#include <pthread.h>
#include <stdatomic.h>

#include "base/map.h"
#include "net/http_client.h"
#include "storage/s3/credentials.h"
#include "storage/s3/s3.h"
#include "storage/s3/xml.h"

typedef struct KnS3Stage KnS3Stage;

typedef struct KnS3 {
    KnFileIO io;
    KnArena *arena; /* of the texts below */
    KnHttpClient *http;
    KnS3Credentials *creds;
    const char *endpoint; /* "http[s]://host[:port]"; NULL = AWS's, by region */
    const char *host;     /* of a given endpoint: "host[:port]"; NULL = AWS's, by region */
    bool tls;
    bool path_style;
    const char *region;
    const char *bucket; /* the only one; NULL = any */
    const char *scope;  /* NULL = each bucket */
    const char *ca_file;
    int64_t retry_base_ms;
    int max_tries;
    uint64_t part_bytes;
    atomic_int_fast64_t skew_ms; /* the server's clock minus ours, once it mattered */
    pthread_mutex_t mutex;       /* regions */
    KnMap *regions;              /* of buckets that live elsewhere: text on the heap */
    KnS3Stage *stage;            /* files that the engine writes (stage.c) */
} KnS3;

/** A location's parts; they point into it. */
typedef struct KnS3Place {
    KnStr location;
    KnStr bucket;
    KnStr key; /* may be empty */
} KnS3Place;
/** KN_E_INVAL: no bucket, or one that this FileIO may not use. */
KN_NODISCARD KnCode kn_s3_place(const KnS3 *s3, KnStr location, KnS3Place *ret, KnErr *err);
/** The same, and there is a key. */
KN_NODISCARD KnCode kn_s3_object_place(const KnS3 *s3, KnStr location, KnS3Place *ret, KnErr *err);

enum { KN_S3_MAX_HEADERS = 6 };

/** One request as its caller sees it. */
typedef struct KnS3Call {
    const char *operation; /* "GetObject": for messages */
    const char *method;
    KnS3Place place;
    const char *query; /* encoded, without '?'; NULL = none */
    KnHttpHeader headers[KN_S3_MAX_HEADERS];
    size_t n_headers;
    KnStr body;
    size_t max_response;
    char *out;        /* a 2xx body goes here: exactly out_len bytes, or the answer was cut off */
    uint64_t out_len; /* counts where out is set */
    bool lost_before; /* set: a try before this one may have been applied */
    /* outcome */
    KnHttpResponse resp;
    KnS3Error error; /* of an answer outside 2xx */
    KnCode code;
    KnErr err;
} KnS3Call;

/** Runs the calls, at most `parallel` at a time, each with its retries, until each has its outcome:
 * code KN_OK is a 2xx answer in resp, which the caller frees. What else is in err: KN_E_NOTFOUND
 * (404), KN_E_EXISTS (409, 412), KN_E_UNKNOWN (the answer was lost), KN_E_IO (the rest). */
void kn_s3_run(KnS3 *s3, KnS3Call *calls, size_t n, int parallel);
/** One of them. */
KN_NODISCARD KnCode kn_s3_call(KnS3 *s3, KnS3Call *call, KnErr *err);
#define KN_S3_CALL_AUTO __attribute__((cleanup(kn_s3_call_done))) KnS3Call
void kn_s3_call_done(KnS3Call *call);
void kn_s3_call_header(KnS3Call *call, const char *name, const char *value);

/** What an answer outside 2xx means, in call->err; returns its code (errors.c). */
KnCode kn_s3_call_failed(const KnS3 *s3, KnS3Call *call);
/** "s3 GetObject 's3://bucket/key'". */
KnCode kn_s3_wrap(const KnS3Call *call, KnCode code, KnErr *err);

/** An object of any size. */
KN_NODISCARD KnCode kn_s3_upload(KnS3 *s3, const KnS3Place *place, KnStr bytes, KnWriteMode mode,
                                 KnErr *err);
/** Large ones, in parts (multipart.c). */
typedef struct KnS3Put {
    const KnS3Place *place;
    KnStr bytes;
    bool create;
    const char *token; /* kept as metadata of the object */
} KnS3Put;
#define KN_S3_TOKEN_HEADER "x-amz-meta-knut-write"
KN_NODISCARD KnCode kn_s3_upload_parts(KnS3 *s3, const KnS3Put *put, KnErr *err);
/** Whether the object there carries this token: *ret_ours. KN_E_NOTFOUND: there is none. */
KN_NODISCARD KnCode kn_s3_is_ours(KnS3 *s3, const KnS3Put *put, bool *ret_ours, KnErr *err);
/** How a write ended, as its last answer (or the lack of one) tells. */
typedef struct KnS3Outcome {
    KnCode code;
    bool maybe; /* a try may have taken effect all the same */
} KnS3Outcome;
/** What really happened: where the name was taken or a try may have taken effect, the object's
 * token tells. KN_OK: the object is ours. */
KN_NODISCARD KnCode kn_s3_settle(KnS3 *s3, const KnS3Put *put, const KnS3Outcome *outcome,
                                 KnErr *err);

/* ---- the callbacks ---- */
KnCode kn_s3_stat(KnFileIO *io, KnStr location, KnFileInfo *ret, KnErr *err);
KnCode kn_s3_read(KnFileIO *io, KnStr location, uint64_t offset, uint64_t len, void *out,
                  KnErr *err);
KnCode kn_s3_read_all(KnFileIO *io, KnStr location, size_t max, KnBuf *out, KnErr *err);
KnCode kn_s3_read_ranges(KnFileIO *io, KnStr location, const KnIoRange *ranges, size_t n,
                         KnErr *err);
KnCode kn_s3_write(KnFileIO *io, KnStr location, const void *bytes, size_t len, KnWriteMode mode,
                   KnErr *err);
KnCode kn_s3_list(KnFileIO *io, KnStr prefix, KnListFn fn, void *arg, KnErr *err);
KnCode kn_s3_remove(KnFileIO *io, KnStr location, KnErr *err);
void kn_s3_remove_many(KnFileIO *io, const KnStr *locations, size_t n, KnErr *ret_errs);
KnCode kn_s3_engine_path(KnFileIO *io, KnArena *arena, KnStr location, const char **ret,
                         KnErr *err);
KnCode kn_s3_engine_access(KnFileIO *io, KnArena *arena, KnStr location, KnIoAccess *ret,
                           KnErr *err);
KnCode kn_s3_engine_target(KnFileIO *io, KnArena *arena, KnStr location, const char **ret,
                           KnErr *err);
KnCode kn_s3_sync(KnFileIO *io, KnStr location, KnErr *err);
KnCode kn_s3_prepare_dir(KnFileIO *io, KnStr location, KnErr *err);

/** The staging folder, made when it is first needed, removed with what is in it. */
KnS3Stage *kn_s3_stage_new(void);
KnS3Stage *kn_s3_stage_free(KnS3Stage *stage);
/** Forget a staged file that will not be wanted. */
void kn_s3_stage_drop(KnS3Stage *stage, const KnS3Place *place);

/** Region of a bucket as far as it is known; in arena. */
const char *kn_s3_region(KnS3 *s3, KnArena *arena, KnStr bucket);
void kn_s3_set_region(KnS3 *s3, KnStr bucket, const char *region);
/** "host[:port]" that serves a bucket, and whether the bucket belongs into the path. */
const char *kn_s3_host(const KnS3 *s3, KnArena *arena, KnStr bucket, const char *region,
                       bool *ret_path_style);
