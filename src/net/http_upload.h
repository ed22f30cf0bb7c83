/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * http_upload.h - one PUT of a large body that must not leave before the peer asks for it.
 *
 * The headers go first, with Expect: 100-continue; the body follows when "100 Continue" has come
 * and never otherwise, however long that takes. An answer that comes earlier, also while the body
 * is on its way, ends the upload: it is the answer. Each upload has a connection of its own, which
 * is closed after it. (http_client.h serves everything else: libcurl sends the body after a
 * second.)
 */
#include <stdbool.h>
#include <stdint.h>

#include "net/http_answer.h"
#include "net/http_client.h"

typedef enum KnUploadStage {
    KN_UPLOAD_CONNECT, /* nothing was sent */
    KN_UPLOAD_ASKED,   /* headers are out, "100 Continue" is not in */
    KN_UPLOAD_BODY,    /* some of the body is out */
    KN_UPLOAD_SENT,    /* all of it */
} KnUploadStage;

typedef struct KnHttpUpload {
    const char *url; /* http or https, no user part */
    const KnHttpHeader *headers;
    size_t n_headers; /* Host, Content-Length, Expect and Connection are made */
    uint64_t body_len;
    bool hold_body; /* never send it: the peer is asked where to */
    KnHttpReadFn read;
    void *read_arg;
    const char *ca_file;  /* PEM; NULL = the system's */
    int64_t connect_ms;   /* TCP, TLS, name look-up */
    int64_t answer_ms;    /* from the last byte sent to the next answer */
    int64_t stall_ms;     /* without a byte going out while sending */
    const int *cancel_fd; /* readable = give up; NULL = never */
} KnHttpUpload;

typedef struct KnHttpUploadResult {
    KnUploadStage stage; /* how far it came; also set on failure */
    uint64_t sent;       /* bytes of the body */
    int status;
    KnBuf location; /* of a redirect, else empty */
    KnBuf body;
} KnHttpUploadResult;

/** ret is zeroed by the caller and done by it, whatever is returned. KN_OK: there is a whole answer
 * (3xx: its headers). KN_E_IO: there is none, and the body did not leave whole; KN_E_UNKNOWN: it
 * did. KN_E_CORRUPT: something that is no HTTP answer, or one cut off, came; KN_E_INVAL: the URL;
 * KN_E_CANCELLED. Messages say host and port and the time-out that passed. */
KN_NODISCARD KnCode kn_http_upload(const KnHttpUpload *up, KnHttpUploadResult *ret, KnErr *err);
void kn_http_upload_done(KnHttpUploadResult *ret);
#define KN_HTTP_UPLOAD_AUTO __attribute__((cleanup(kn_http_upload_done))) KnHttpUploadResult
