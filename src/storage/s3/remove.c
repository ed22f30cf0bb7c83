/* SPDX-License-Identifier: Apache-2.0 */
/*
 * remove.c - DeleteObject, and DeleteObjects for up to 1000 keys of one bucket.
 *
 * The batch wants a checksum (Content-MD5: the one that every store knows). It answers 200 and
 * names what it could not delete. A store that does not know it gets single requests.
 */
#include "net/digest.h"
#include "storage/s3/s3_internal.h"

KnCode kn_s3_remove(KnFileIO *io, KnStr location, KnErr *err)
{
    KnS3 *s3 = (KnS3 *)io;
    KN_S3_CALL_AUTO call = {.operation = "DeleteObject", .method = "DELETE"};
    KN_TRY(kn_s3_object_place(s3, location, &call.place, err));
    kn_s3_stage_drop(s3->stage, &call.place);
    KnCode rc = kn_s3_call(s3, &call, err);
    if (rc == KN_E_NOTFOUND && strcmp(call.error.code, "NoSuchBucket") != 0)
        return KN_OK;
    return kn_io_settled(rc, err);
}

typedef struct Batch {
    const KnS3Place *places;
    size_t n;
    KnErr *errs;
} Batch;

static void put_xml(KnBuf *buf, KnStr text)
{
    for (size_t i = 0; i < text.len; ++i) {
        char c = text.ptr[i];
        if (c == '&')
            kn_buf_text(buf, "&amp;");
        else if (c == '<')
            kn_buf_text(buf, "&lt;");
        else if (c == '>')
            kn_buf_text(buf, "&gt;");
        else if (c == '\r')
            kn_buf_text(buf, "&#13;");
        else
            kn_buf_char(buf, c);
    }
}

static KnCode note_error(void *arg, KnStr key, const KnS3Error *error, KnErr *err)
{
    (void)err;
    const Batch *batch = arg;
    for (size_t i = 0; i < batch->n; ++i)
        if (kn_str_eq(batch->places[i].key, key) && strcmp(error->code, "NoSuchKey") != 0)
            (void)kn_err_set(&batch->errs[i], KN_E_IO, "s3 DeleteObjects '" KN_STR_FMT "': %s: %s",
                             KN_STR_ARG(batch->places[i].location), error->code, error->message);
    return KN_OK;
}

static KnCode send_batch(KnS3 *s3, const Batch *batch, KnErr *err)
{
    KN_BUF_AUTO body;
    kn_buf_init(&body, 16 << 20);
    kn_buf_text(&body, "<Delete><Quiet>true</Quiet>");
    for (size_t i = 0; i < batch->n; ++i) {
        kn_buf_text(&body, "<Object><Key>");
        put_xml(&body, batch->places[i].key);
        kn_buf_text(&body, "</Key></Object>");
    }
    kn_buf_text(&body, "</Delete>");
    KN_TRY(kn_buf_check(&body, err));
    uint8_t md5[KN_MD5_LEN];
    char md5_text[4 * ((KN_MD5_LEN + 2) / 3) + 1];
    kn_md5((KnStr){body.data, body.len}, md5);
    KN_S3_CALL_AUTO call = {.operation = "DeleteObjects",
                            .method = "POST",
                            .place = batch->places[0],
                            .query = "delete=",
                            .body = {body.data, body.len}};
    call.place.key.len = 0;
    kn_s3_call_header(&call, "Content-MD5", kn_base64(md5, sizeof(md5), md5_text));
    kn_s3_call_header(&call, "Content-Type", "application/xml");
    KN_TRY(kn_io_settled(kn_s3_call(s3, &call, err), err));
    KnStr answer = {call.resp.body.data, call.resp.body.len};
    KnCode rc = kn_s3_delete_parse(answer, note_error, (void *)(uintptr_t)batch, err);
    return rc == KN_OK ? rc : kn_s3_wrap(&call, rc, err);
}

static void remove_batch(KnS3 *s3, const Batch *batch)
{
    KnErr why = {0};
    KnCode rc = batch->n == 1 ? kn_s3_remove(&s3->io, batch->places[0].location, &why)
                              : send_batch(s3, batch, &why);
    if (rc == KN_OK)
        return;
    for (size_t i = 0; i < batch->n; ++i) {
        batch->errs[i] = why;
        if (rc == KN_E_UNSUPPORTED)
            batch->errs[i].code = kn_s3_remove(&s3->io, batch->places[i].location, &batch->errs[i]);
    }
}

void kn_s3_remove_many(KnFileIO *io, const KnStr *locations, size_t n, KnErr *ret_errs)
{
    KnS3 *s3 = (KnS3 *)io;
    KN_ARENA_AUTO arena = kn_arena_new(0);
    KnS3Place *places = kn_arena_alloc(arena, n * sizeof(*places));
    bool good = true;
    for (size_t i = 0; i < n; ++i) {
        ret_errs[i] = (KnErr){0};
        good = kn_s3_object_place(s3, locations[i], &places[i], &ret_errs[i]) == KN_OK && good;
    }
    for (size_t i = 0, end; i < n; i = end) { /* runs of one bucket, without what is no location */
        end = i + 1;
        if (ret_errs[i].code != KN_OK)
            continue;
        while (end < n && ret_errs[end].code == KN_OK &&
               kn_str_eq(places[end].bucket, places[i].bucket))
            ++end;
        for (size_t at = i; at < end; ++at)
            kn_s3_stage_drop(s3->stage, &places[at]);
        Batch batch = {&places[i], end - i, &ret_errs[i]};
        remove_batch(s3, &batch);
    }
}
