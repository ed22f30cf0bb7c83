/* SPDX-License-Identifier: Apache-2.0 */
/*
 * multipart.c - large objects in parts, several at a time.
 *
 * Nothing is visible before CompleteMultipartUpload. On a failure the upload is aborted, so that
 * its parts are not kept (and paid for) unseen; a killed process leaves them to the bucket's
 * lifecycle rule for incomplete uploads. A store may answer 200 to the completion and name an error
 * in the body; and when the completion's answer is lost, the next try finds no upload: then the
 * object's token tells whether it is there.
 */
#include <stdlib.h>

#include "net/url.h"
#include "storage/s3/s3_internal.h"

enum { PARALLEL = 4, MAX_PARTS = 10000 };

typedef struct Upload {
    KnS3 *s3;
    const KnS3Put *put;
    KnArena *arena;
    const char *id;    /* encoded for a query */
    uint64_t part_len; /* of all parts but the last */
    size_t n;
    const char **etags;
} Upload;

static KnCode upload_begin(Upload *up, KnErr *err)
{
    KN_S3_CALL_AUTO call = {.operation = "CreateMultipartUpload",
                            .method = "POST",
                            .place = *up->put->place,
                            .query = "uploads="};
    kn_s3_call_header(&call, KN_S3_TOKEN_HEADER, up->put->token);
    kn_s3_call_header(&call, "Content-Type", "application/octet-stream");
    KN_TRY(kn_io_settled(kn_s3_call(up->s3, &call, err), err));
    const char *id = NULL;
    KnStr body = {call.resp.body.data, call.resp.body.len};
    KnCode rc = kn_s3_upload_parse(up->arena, body, &id, err);
    if (rc != KN_OK)
        return kn_s3_wrap(&call, rc, err);
    KN_BUF_AUTO encoded;
    kn_buf_init(&encoded, 16 << 10);
    kn_url_encode(&encoded, kn_str(id), false);
    up->id = kn_arena_strndup(up->arena, encoded.data, encoded.len);
    return kn_buf_check(&encoded, err);
}

static KnStr part_bytes(const Upload *up, size_t i)
{
    KnStr all = up->put->bytes;
    size_t at = i * (size_t)up->part_len;
    size_t left = all.len - at;
    return (KnStr){all.ptr + at, left < up->part_len ? left : (size_t)up->part_len};
}

static KnCode keep_etag(Upload *up, size_t i, const KnS3Call *call, KnErr *err)
{
    const char *etag = kn_http_header(&call->resp, "etag", 0);
    if (!etag || strpbrk(etag, "<>&")) {
        KnCode rc = kn_err_set(err, KN_E_CORRUPT, "the answer has no ETag");
        return kn_s3_wrap(call, rc, err);
    }
    up->etags[i] = kn_arena_strdup(up->arena, etag);
    return KN_OK;
}

/* Parts first..first+n-1, together. */
static KnCode send_parts(Upload *up, size_t first, size_t n, KnErr *err)
{
    KnS3Call calls[PARALLEL];
    for (size_t i = 0; i < n; ++i)
        calls[i] = (KnS3Call){.operation = "UploadPart",
                              .method = "PUT",
                              .place = *up->put->place,
                              .query = kn_arena_printf(up->arena, "partNumber=%zu&uploadId=%s",
                                                       first + i + 1, up->id),
                              .body = part_bytes(up, first + i)};
    kn_s3_run(up->s3, calls, n, PARALLEL);
    KnCode rc = KN_OK;
    for (size_t i = 0; i < n; ++i) {
        if (rc == KN_OK && calls[i].code != KN_OK) {
            rc = calls[i].code;
            if (err)
                *err = calls[i].err;
        } else if (rc == KN_OK) {
            rc = keep_etag(up, first + i, &calls[i], err);
        }
        kn_s3_call_done(&calls[i]);
    }
    return kn_io_settled(rc, err);
}

static KnCode complete_body(const Upload *up, KnBuf *body, KnErr *err)
{
    kn_buf_text(body, "<CompleteMultipartUpload>");
    for (size_t i = 0; i < up->n; ++i)
        kn_buf_printf(body, "<Part><PartNumber>%zu</PartNumber><ETag>%s</ETag></Part>", i + 1,
                      up->etags[i]);
    kn_buf_text(body, "</CompleteMultipartUpload>");
    return kn_buf_check(body, err);
}

static KnS3Outcome complete_outcome(const KnS3 *s3, KnS3Call *call, KnErr *err)
{
    KnStr body = {call->resp.body.data, call->resp.body.len};
    bool maybe = call->code != KN_OK && call->lost_before;
    if (call->code == KN_OK && !kn_s3_root_is(body, "CompleteMultipartUploadResult")) {
        (void)kn_s3_error_parse(body, &call->error);
        call->code = kn_s3_call_failed(s3, call);
        maybe = true;
    }
    if (call->code != KN_OK && err)
        *err = call->err;
    return (KnS3Outcome){call->code, maybe};
}

static KnCode upload_complete(Upload *up, KnErr *err)
{
    KN_BUF_AUTO body;
    kn_buf_init(&body, 4 << 20);
    KN_TRY(complete_body(up, &body, err));
    KN_S3_CALL_AUTO call = {.operation = "CompleteMultipartUpload",
                            .method = "POST",
                            .place = *up->put->place,
                            .query = kn_arena_printf(up->arena, "uploadId=%s", up->id),
                            .body = {body.data, body.len}};
    kn_s3_call_header(&call, "Content-Type", "application/xml");
    if (up->put->create)
        kn_s3_call_header(&call, "If-None-Match", "*");
    kn_s3_run(up->s3, &call, 1, 1);
    KnS3Outcome outcome = complete_outcome(up->s3, &call, err);
    return kn_s3_settle(up->s3, up->put, &outcome, err);
}

/* The reason for giving up matters more than whether giving up worked. */
static void upload_abort(Upload *up)
{
    KN_S3_CALL_AUTO call = {.operation = "AbortMultipartUpload",
                            .method = "DELETE",
                            .place = *up->put->place,
                            .query = kn_arena_printf(up->arena, "uploadId=%s", up->id)};
    KN_IGNORE(kn_s3_call(up->s3, &call, NULL));
}

static KnCode send_all(Upload *up, KnErr *err)
{
    for (size_t i = 0; i < up->n; i += PARALLEL)
        KN_TRY(send_parts(up, i, up->n - i < PARALLEL ? up->n - i : PARALLEL, err));
    return upload_complete(up, err);
}

KnCode kn_s3_upload_parts(KnS3 *s3, const KnS3Put *put, KnErr *err)
{
    KN_ARENA_AUTO arena = kn_arena_new(0);
    Upload up = {.s3 = s3, .put = put, .arena = arena, .part_len = s3->part_bytes};
    if (put->bytes.len / up.part_len >= MAX_PARTS)
        up.part_len = put->bytes.len / (MAX_PARTS - 1) + 1;
    up.n = (size_t)((put->bytes.len + up.part_len - 1) / up.part_len);
    up.etags = kn_arena_zalloc(arena, up.n * sizeof(char *));
    KN_TRY(upload_begin(&up, err));
    KnCode rc = send_all(&up, err);
    if (rc != KN_OK && rc != KN_E_UNKNOWN)
        upload_abort(&up);
    return rc;
}
