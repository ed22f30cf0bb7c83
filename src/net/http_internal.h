/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * http_internal.h - one request under way (http_transfer.c), for http_client.c.
 *
 * A KnHttpTransfer sits on its caller's stack or in its arena while the request runs. Its easy
 * handle comes from the client and carries the client's options. One thread.
 */
#include <curl/curl.h>

#include "net/http_client.h"

typedef struct KnHttpTransfer {
    CURL *easy;
    KnHttpCall *call;
    const KnHttpClientOptions *options;
    struct curl_slist *headers;
    char detail[CURL_ERROR_SIZE]; /* curl's own words */
    int64_t started_us;
    int64_t moved_us;  /* when a byte last went either way */
    int64_t bytes;     /* both ways, so far: what moved_us goes by */
    int64_t stall_us;  /* 0 = no limit */
    uint64_t read_off; /* of the request's body */
    uint64_t body_len; /* of the answer, handed on so far */
    bool connected;    /* the request's first byte may have gone out */
    bool lost;         /* not sent again on a new connection */
    bool stalled;
    bool cancelled;
    KnCode failed; /* of a callback, or of the answer's size: err has the words */
} KnHttpTransfer;

/** Set the easy handle up for call->req. The handle is plain (curl_easy_reset) before. */
KN_NODISCARD KnCode kn_http_transfer_begin(KnHttpTransfer *transfer, KnErr *err);
/** Settle call->code, call->err and call->ret, from curl's result; frees what begin made. */
void kn_http_transfer_end(KnHttpTransfer *transfer, CURLcode result);
/** Look at the clock: how long until this transfer stalls, in microseconds (0 = it has; the flag is
 * set), or INT64_MAX. */
int64_t kn_http_transfer_left(KnHttpTransfer *transfer, int64_t now_us);

/** Keeps one header line; a status line begins a new answer. False when there are too many. */
bool kn_http_fields_add(KnBuf *fields, KnStr line);
