/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * http_client.h - one HTTP client for everything that speaks HTTP: S3, REST and gRPC catalogs, STS.
 *
 * kn_http_perform() sends one request and waits for its whole answer; kn_http_perform_all() has
 * several under way at once. An answer of any status is a success here (what 404 means is the
 * caller's matter); a failure means that there is no whole answer. Its code tells what may have
 * happened at the other end:
 *
 *   KN_E_IO         the request was not sent (name not found, refused, TLS): nothing happened there
 *   KN_E_UNKNOWN    it may have been sent, and the answer is lost (timeout, connection gone, cut
 * off) KN_E_INVAL      the request or the client's options make no sense (URL, CA file) KN_E_NOMEM
 * the answer is larger than the request allows KN_E_CANCELLED  KnHttpRequest.cancel_fd said so
 *
 * and KnErr.retriable whether trying again may help. For a request that changes nothing UNKNOWN is
 * as good as IO: kn_http_settle(). The client itself follows no redirect and tries nothing twice,
 * with one exception: a kept-alive connection that the server closed without a byte of answer is
 * replaced silently for methods that HTTP calls idempotent (not for POST and PATCH).
 *
 * Connections are kept and used again; a client is for many hosts. Proxies come from the
 * environment (http_proxy, https_proxy, no_proxy). Thread-safe: any number of threads may use one
 * client at a time, each request running on its caller's thread.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"

typedef struct KnHttpClient KnHttpClient;

enum {
    KN_HTTP_CONNECT_MS = 10000,      /* default: TCP and TLS handshakes, name look-up */
    KN_HTTP_STALL_MS = 60000,        /* default: no byte in either direction for so long */
    KN_HTTP_MAX_RESPONSE = 64 << 20, /* default: bytes of a body */
    KN_HTTP_MAX_HEADERS = 256 << 10, /* bytes of all response headers; more is an error */
};

typedef enum KnHttpVersion {
    KN_HTTP_1_1,
    KN_HTTP_2_TLS,   /* HTTP/2 where the server's TLS offers it, else 1.1 */
    KN_HTTP_2_PRIOR, /* HTTP/2 from the first byte, also without TLS (gRPC); its connections are
                        used once */
} KnHttpVersion;

/** Zeroed is a good default. Texts are copied. */
typedef struct KnHttpClientOptions {
    const char *ca_file;     /* PEM; NULL = the system's */
    const char *client_cert; /* PEM for mutual TLS; NULL = none */
    const char *client_key;  /* NULL = it is in client_cert */
    int64_t connect_ms;      /* 0 = KN_HTTP_CONNECT_MS */
    int64_t stall_ms;        /* 0 = KN_HTTP_STALL_MS; -1 = wait for ever */
    int64_t total_ms;        /* 0 = no limit to the whole exchange */
    KnHttpVersion version;
} KnHttpClientOptions;

typedef struct KnHttpHeader {
    const char *name;
    const char *value;
} KnHttpHeader;

/** Gives the next bytes of a request's body: at most cap, *ret_n 0 at its end. `offset` is how many
 * were given so far (0 again when a connection had to be replaced). A failure ends the request with
 * it. */
typedef KnCode (*KnHttpReadFn)(void *arg, uint64_t offset, void *out, size_t cap, size_t *ret_n,
                               KnErr *err);
/** Takes bytes of a 2xx answer's body as they come. A failure ends the request with it. */
typedef KnCode (*KnHttpBodyFn)(void *arg, const void *bytes, size_t len, KnErr *err);

/** What it points to belongs to the caller and lives until the call returns. */
typedef struct KnHttpRequest {
    const char *method; /* "GET"; HEAD has an answer without a body */
    const char *url;    /* http or https; path and query are sent as they are spelled here */
    const KnHttpHeader *headers;
    size_t n_headers; /* Content-Length and Host are made; Expect: 100-continue only when given */
    KnStr body;       /* ignored when read is set */
    KnHttpReadFn read;
    void *read_arg;
    uint64_t read_len;    /* UINT64_MAX = unknown: sent in chunks */
    KnHttpBodyFn on_body; /* NULL: the body is gathered in KnHttpResponse.body */
    void *on_body_arg;    /* bodies outside 2xx are always gathered */
    size_t max_response;  /* 0 = KN_HTTP_MAX_RESPONSE; bytes of the body, also for on_body */
    bool accept_gzip;     /* offer gzip; the body is unpacked (max_response counts unpacked) */
    int64_t connect_ms;   /* 0 = the client's, likewise below */
    int64_t stall_ms;
    int64_t total_ms;
    bool no_proxy;        /* whatever the environment says (link-local addresses) */
    const int *cancel_fd; /* readable = give up (kn_stop_fd()); NULL = never */
} KnHttpRequest;

typedef struct KnHttpResponse {
    int status;   /* of the last answer (1xx are skipped) */
    int version;  /* 10, 11 or 20 */
    KnBuf body;   /* max_response is its limit */
    KnBuf fields; /* private: header lines, see kn_http_header() */
    int64_t elapsed_us;
} KnHttpResponse;

/** The client; free it after the last request. KN_E_INVAL: the CA file or certificate is missing.
 */
KN_NODISCARD KnCode kn_http_client_new(const KnHttpClientOptions *options, KnHttpClient **ret,
                                       KnErr *err);
KnHttpClient *kn_http_client_free(KnHttpClient *client); /* accepts NULL, returns NULL */

/** ret is zeroed or done by the caller, set on KN_OK only, and done by the caller. Errors say host,
 * port and what failed; the caller adds what it wanted with kn_err_wrap(). */
KN_NODISCARD KnCode kn_http_perform(KnHttpClient *client, const KnHttpRequest *req,
                                    KnHttpResponse *ret, KnErr *err);

typedef struct KnHttpCall {
    KnHttpRequest req;
    KnHttpResponse ret; /* set where code is KN_OK; done by the caller */
    KnCode code;
    KnErr err;
} KnHttpCall;

/** All of the calls, at most `parallel` at a time (0 = all); each has its own outcome. They are
 * started in order. Returns when the last is done. */
void kn_http_perform_all(KnHttpClient *client, KnHttpCall *calls, size_t n, int parallel);

/** For requests that change nothing: KN_E_UNKNOWN becomes KN_E_IO (retriable). Others stay. */
KnCode kn_http_settle(KnCode code, KnErr *err);

/** Value of the nth (from 0) header or trailer of that name, any case; NULL = none. Lives as long
 * as the response. */
const char *kn_http_header(const KnHttpResponse *resp, const char *name, size_t nth);
/** The i-th header line of all, in order; false after the last. */
bool kn_http_header_at(const KnHttpResponse *resp, size_t i, KnHttpHeader *ret);
void kn_http_response_done(KnHttpResponse *resp); /* accepts a zeroed one */

#define KN_HTTP_RESPONSE_AUTO __attribute__((cleanup(kn_http_response_done))) KnHttpResponse
