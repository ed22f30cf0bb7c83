/* SPDX-License-Identifier: Apache-2.0 */
/*
 * httpd_answer.c - bodies on the wire: answers handed to libmicrohttpd, gzip in both directions.
 *
 * The pieces of an answer live until the exchange ends, which libmicrohttpd announces after the
 * last byte, so they are sent from where they are. Small answers of several pieces are joined: one
 * buffer goes out together with the headers in one system call. The state of zlib is kept for each
 * thread; setting it up costs more than packing a small body.
 */
#include <assert.h>
#include <stdlib.h>
#include <zlib.h>

#include "net/http_server_internal.h"

enum { JOIN_MAX = 64 << 10, GZIP_WINDOW = 15 + 16, GZIP_LEVEL = 1 };

static pthread_key_t deflate_key;
static pthread_once_t deflate_once = PTHREAD_ONCE_INIT;

static void deflate_drop(void *arg)
{
    z_stream *stream = arg;
    (void)deflateEnd(stream);
    free(stream);
}

static void deflate_make_key(void)
{
    if (pthread_key_create(&deflate_key, deflate_drop) != 0)
        abort();
}

/* This thread's packer, ready for a new body; NULL when memory is out. */
static z_stream *deflate_state(void)
{
    (void)pthread_once(&deflate_once, deflate_make_key);
    z_stream *stream = pthread_getspecific(deflate_key);
    if (stream)
        return deflateReset(stream) == Z_OK ? stream : NULL;
    stream = calloc(1, sizeof(*stream));
    if (!stream)
        return NULL;
    if (deflateInit2(stream, GZIP_LEVEL, Z_DEFLATED, GZIP_WINDOW, 8, Z_DEFAULT_STRATEGY) != Z_OK) {
        free(stream);
        return NULL;
    }
    (void)pthread_setspecific(deflate_key, stream);
    return stream;
}

/* The pieces packed, in the exchange's arena; false: they stay as they are. */
static bool pack(KnHttpdExchange *ex, size_t total)
{
    z_stream *stream = total < UINT32_MAX ? deflate_state() : NULL;
    size_t cap = stream ? deflateBound(stream, total) : 0;
    char *out = stream ? kn_arena_try_alloc(ex->req.arena, cap) : NULL;
    if (!out)
        return false;
    stream->next_out = (Bytef *)out;
    stream->avail_out = (uInt)cap;
    for (size_t i = 0; i < ex->rsp.n_pieces; i++) {
        stream->next_in = (Bytef *)ex->rsp.pieces[i].ptr;
        stream->avail_in = (uInt)ex->rsp.pieces[i].len;
        if (deflate(stream, i + 1 < ex->rsp.n_pieces ? Z_NO_FLUSH : Z_FINISH) == Z_STREAM_ERROR)
            return false;
    }
    ex->rsp.pieces[0] = (KnStr){out, cap - stream->avail_out};
    ex->rsp.n_pieces = 1;
    return true;
}

/* Packed, from before or now. */
static bool get_packed(KnHttpdExchange *ex, size_t total)
{
    KnHttpdResponse *rsp = &ex->rsp;
    if (!kn_httpd_header_lists(kn_httpd_request_header(&ex->req, "Accept-Encoding"), "gzip"))
        return false;
    if (rsp->packed.len) {
        rsp->pieces[0] = rsp->packed;
        rsp->n_pieces = 1;
        return true;
    }
    if (!pack(ex, total))
        return false;
    if (rsp->on_packed)
        rsp->on_packed(rsp->on_packed_arg, rsp->pieces[0]);
    return true;
}

static struct MHD_Response *of_pieces(KnHttpdExchange *ex, size_t total)
{
    KnHttpdResponse *rsp = &ex->rsp;
    if (rsp->n_pieces > 1 && total <= JOIN_MAX) {
        char *joined = kn_arena_alloc(ex->req.arena, total + 1);
        size_t at = 0;
        for (size_t i = 0; i < rsp->n_pieces; at += rsp->pieces[i++].len)
            memcpy(joined + at, rsp->pieces[i].ptr, rsp->pieces[i].len);
        rsp->pieces[0] = (KnStr){joined, total};
        rsp->n_pieces = 1;
    }
    if (rsp->n_pieces <= 1) {
        KnStr body = rsp->n_pieces ? rsp->pieces[0] : KN_STR_LIT("");
        return MHD_create_response_from_buffer(body.len, (void *)body.ptr, MHD_RESPMEM_PERSISTENT);
    }
    struct MHD_IoVec parts[KN_HTTPD_PIECES_MAX];
    unsigned int n = 0;
    for (size_t i = 0; i < rsp->n_pieces; i++) {
        if (rsp->pieces[i].len)
            parts[n++] = (struct MHD_IoVec){rsp->pieces[i].ptr, rsp->pieces[i].len};
    }
    return MHD_create_response_from_iovec(parts, n, NULL, NULL);
}

enum MHD_Result kn_httpd_answer_queue(KnHttpdExchange *ex)
{
    KnHttpdResponse *rsp = &ex->rsp;
    KnHttpd *server = ex->conn->server;
    assert(rsp->status >= 200 && rsp->status <= 599);
    size_t total = 0;
    for (size_t i = 0; i < rsp->n_pieces; i++)
        total += rsp->pieces[i].len;
    ex->sent_bytes = (int64_t)total;
    bool packed = false;
    if (total >= server->opts.gzip_from && !rsp->plain) {
        packed = get_packed(ex, total);
        total = packed ? rsp->pieces[0].len : total;
    }
    struct MHD_Response *mhd = of_pieces(ex, total);
    if (!mhd)
        return MHD_NO;
    for (size_t i = 0; i < rsp->n_headers; i++)
        (void)MHD_add_response_header(mhd, rsp->headers[i].name, rsp->headers[i].value);
    if (packed)
        (void)MHD_add_response_header(mhd, "Content-Encoding", "gzip");
    if (total >= server->opts.gzip_from || packed)
        (void)MHD_add_response_header(mhd, "Vary", "Accept-Encoding");
    if (atomic_load_explicit(&server->draining, memory_order_relaxed))
        (void)MHD_add_response_header(mhd, "Connection", "close");
    enum MHD_Result rc = MHD_queue_response(ex->conn->mhd, (unsigned int)rsp->status, mhd);
    MHD_destroy_response(mhd);
    return rc;
}

static bool unpack_into(z_stream *stream, KnBuf *out, int *ret_status)
{
    enum { STEP = 64 << 10 };
    int rc = Z_OK;
    while (rc == Z_OK) {
        size_t room = out->max - out->len;
        size_t step = room < STEP ? room : STEP;
        char *to = step ? kn_buf_reserve(out, step) : NULL;
        if (!to) {
            *ret_status = 413;
            return false;
        }
        stream->next_out = (Bytef *)to;
        stream->avail_out = (uInt)step;
        rc = inflate(stream, Z_NO_FLUSH);
        out->len += step - stream->avail_out;
        if (rc == Z_BUF_ERROR || (rc == Z_OK && stream->avail_in == 0 && stream->avail_out > 0))
            break; /* cut short */
    }
    *ret_status = 400;
    return rc == Z_STREAM_END && stream->avail_in == 0;
}

bool kn_httpd_body_unpack(KnBuf *body, size_t max, int *ret_status)
{
    z_stream stream = {0};
    if (inflateInit2(&stream, GZIP_WINDOW) != Z_OK) {
        *ret_status = 503;
        return false;
    }
    stream.next_in = (Bytef *)body->data;
    stream.avail_in = (uInt)body->len;
    KnBuf out;
    kn_buf_init(&out, max + 1); /* a byte more: a body that fills it was too long */
    bool fine = unpack_into(&stream, &out, ret_status);
    (void)inflateEnd(&stream);
    if (fine && out.len > max) {
        *ret_status = 413;
        fine = false;
    }
    if (!fine) {
        kn_buf_done(&out);
        return false;
    }
    kn_buf_append(&out, "", 0);
    kn_buf_done(body);
    *body = out;
    return true;
}
