/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * http_answer.h - one HTTP/1.x answer out of the bytes that have come so far (RFC 9112).
 *
 * A pure function over a growing buffer: ask again with more bytes until it is whole. Parts point
 * into the buffer. Thread-safe.
 */
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"

enum {
    KN_HTTP_ANSWER_MAX_HEAD = 64 << 10,
    KN_HTTP_ANSWER_MAX_BODY = 4 << 20,
};

typedef struct KnHttpAnswer {
    bool headed;   /* status and headers are there */
    bool whole;    /* the body too */
    int status;    /* 100..599 */
    KnStr fields;  /* the header lines */
    KnStr raw;     /* the body as it is framed */
    bool chunked;  /* raw is in chunks: kn_http_answer_body() */
    size_t length; /* bytes taken up, when whole */
} KnHttpAnswer;

/** ended: no more bytes will come. A 1xx answer is whole with its headers. KN_E_CORRUPT: this is no
 * HTTP answer (the message shows how it begins), or it ended too early, or is beyond the limits. */
KN_NODISCARD KnCode kn_http_answer_parse(KnStr bytes, bool ended, KnHttpAnswer *ret, KnErr *err);
/** The first header of that name, any case; ptr NULL = none. */
KnStr kn_http_answer_header(const KnHttpAnswer *answer, const char *name);
/** The body of a whole answer, unframed. */
KN_NODISCARD KnCode kn_http_answer_body(const KnHttpAnswer *answer, KnBuf *out, KnErr *err);
