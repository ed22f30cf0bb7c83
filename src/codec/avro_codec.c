/* SPDX-License-Identifier: Apache-2.0 */
/*
 * avro_codec.c - the four block compressions, each as a pair of functions.
 *
 * Decompression never trusts a size that the input states: the output grows in steps up to the
 * maximum of the caller's buffer, so a small block that claims gigabytes costs only what it really
 * holds, and a bomb ends at the maximum with KN_E_CORRUPT.
 */
#include "codec/avro_codec.h"

#include <snappy-c.h>
#include <stdlib.h>
#include <zlib.h>
#include <zstd.h>

enum { SNAPPY_CRC = 4, ADLER = 4, RAW_WINDOW = -15, MEM_LEVEL = 8, STEP_MIN = 4096 };
#define STEP_MAX ((size_t)1 << 20)

struct KnAvroCoder {
    KnAvroCodec codec;
    bool inflating, deflating;
    z_stream inflater, deflater;
    ZSTD_DCtx *dctx;
    ZSTD_CCtx *cctx;
};

static const char *const names[] = {
    [KN_AVRO_CODEC_NULL] = "null",
    [KN_AVRO_CODEC_DEFLATE] = "deflate",
    [KN_AVRO_CODEC_SNAPPY] = "snappy",
    [KN_AVRO_CODEC_ZSTD] = "zstandard",
};

const char *kn_avro_codec_name(KnAvroCodec codec)
{
    return names[codec];
}

KnCode kn_avro_codec_find(KnStr name, KnAvroCodec *ret, KnErr *err)
{
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); ++i) {
        if (kn_str_eq(name, kn_str(names[i]))) {
            *ret = (KnAvroCodec)i;
            return KN_OK;
        }
    }
    return kn_err_set(err, KN_E_UNSUPPORTED, "Avro: codec '" KN_STR_FMT "'", KN_STR_ARG(name));
}

KnAvroCoder *kn_avro_coder_new(KnAvroCodec codec)
{
    KnAvroCoder *coder = calloc(1, sizeof(*coder));
    if (!coder)
        abort();
    coder->codec = codec;
    return coder;
}

KnAvroCoder *kn_avro_coder_free(KnAvroCoder *coder)
{
    if (!coder)
        return NULL;
    if (coder->inflating)
        (void)inflateEnd(&coder->inflater);
    if (coder->deflating)
        (void)deflateEnd(&coder->deflater);
    (void)ZSTD_freeDCtx(coder->dctx);
    (void)ZSTD_freeCCtx(coder->cctx);
    free(coder);
    return NULL;
}

/* ---- decoding ---- */

static KnCode too_large(const KnBuf *out, KnErr *err)
{
    return kn_err_set(err, KN_E_CORRUPT, "Avro: a block of more than %zu bytes when decompressed",
                      out->max);
}

/* Room for the next step: doubles what is there, at least hint on the first call. */
static void *next_room(KnBuf *out, size_t hint, size_t *ret_len)
{
    size_t len = out->len ? out->len : hint;
    len = len < STEP_MIN ? STEP_MIN : len > STEP_MAX ? STEP_MAX : len;
    if (len > out->max - out->len)
        len = out->max - out->len;
    *ret_len = len;
    return len ? kn_buf_reserve(out, len) : NULL;
}

static KnCode inflate_begin(KnAvroCoder *coder, KnErr *err)
{
    int rc = coder->inflating ? inflateReset(&coder->inflater)
                              : inflateInit2(&coder->inflater, RAW_WINDOW);
    if (rc != Z_OK)
        return kn_err_set(err, KN_E_NOMEM, "Avro: zlib could not start (%d)", rc);
    coder->inflating = true;
    return KN_OK;
}

static KnCode decode_deflate(KnAvroCoder *coder, KnStr in, KnBuf *out, KnErr *err)
{
    KN_TRY(inflate_begin(coder, err));
    z_stream *z = &coder->inflater;
    z->next_in = (Bytef *)(uintptr_t)in.ptr;
    z->avail_in = (uInt)in.len;
    int rc = Z_OK;
    while (rc == Z_OK) {
        size_t room;
        z->next_out = next_room(out, in.len > SIZE_MAX / 4 ? in.len : in.len * 4, &room);
        if (!z->next_out)
            return too_large(out, err);
        z->avail_out = (uInt)room;
        rc = inflate(z, Z_NO_FLUSH);
        out->len += room - z->avail_out;
        if (rc == Z_BUF_ERROR && z->avail_out == 0)
            rc = Z_OK;
    }
    if (rc == Z_MEM_ERROR)
        return kn_err_set(err, KN_E_NOMEM, "Avro: out of memory in zlib");
    /* Python's writers cut a zlib stream short and leave up to 3 bytes of its Adler-32 behind. */
    if (rc != Z_STREAM_END || z->avail_in >= ADLER)
        return kn_err_set(err, KN_E_CORRUPT, "Avro: a deflate block that is not valid (%s)",
                          rc == Z_STREAM_END ? "bytes behind its end"
                          : z->msg           ? z->msg
                                             : "it ends too early");
    return KN_OK;
}

static KnCode decode_snappy(KnStr in, KnBuf *out, KnErr *err)
{
    size_t len;
    size_t n = in.len - SNAPPY_CRC;
    if (in.len < SNAPPY_CRC || snappy_uncompressed_length(in.ptr, n, &len) != SNAPPY_OK)
        return kn_err_set(err, KN_E_CORRUPT, "Avro: a snappy block without length or checksum");
    if (len > out->max)
        return too_large(out, err);
    /* A copy element of 3 bytes gives at most 64, so a larger claim is a lie. */
    if (len / 64 > n || snappy_validate_compressed_buffer(in.ptr, n) != SNAPPY_OK)
        return kn_err_set(err, KN_E_CORRUPT, "Avro: a snappy block that is not valid");
    char *p = kn_buf_reserve(out, len);
    if (!p)
        return kn_err_set(err, KN_E_NOMEM, "Avro: out of memory for a block of %zu bytes", len);
    if (snappy_uncompress(in.ptr, n, p, &len) != SNAPPY_OK)
        return kn_err_set(err, KN_E_CORRUPT, "Avro: a snappy block that is not valid");
    out->len = len;
    const uint8_t *c = (const uint8_t *)in.ptr + n;
    uint32_t want = (uint32_t)c[0] << 24 | (uint32_t)c[1] << 16 | (uint32_t)c[2] << 8 | c[3];
    if ((uint32_t)crc32_z(0, (const Bytef *)p, len) != want)
        return kn_err_set(err, KN_E_CORRUPT, "Avro: a snappy block whose CRC-32 does not match");
    return KN_OK;
}

static KnCode decode_zstd(KnAvroCoder *coder, KnStr in, KnBuf *out, KnErr *err)
{
    if (!coder->dctx)
        coder->dctx = ZSTD_createDCtx();
    if (!coder->dctx)
        return kn_err_set(err, KN_E_NOMEM, "Avro: out of memory for zstd");
    (void)ZSTD_DCtx_reset(coder->dctx, ZSTD_reset_session_only);
    ZSTD_inBuffer src = {in.ptr, in.len, 0};
    size_t rc = 1;
    /* rc 0 = a frame ended; another may follow. Full output = there may be more. */
    for (bool full = false; src.pos < src.size || full;) {
        size_t room;
        ZSTD_outBuffer dst = {.dst = next_room(out, in.len * 4, &room)};
        if (!dst.dst)
            return too_large(out, err);
        dst.size = room;
        size_t before = src.pos;
        rc = ZSTD_decompressStream(coder->dctx, &dst, &src);
        if (ZSTD_isError(rc))
            return kn_err_set(err, KN_E_CORRUPT, "Avro: a zstandard block that is not valid (%s)",
                              ZSTD_getErrorName(rc));
        out->len += dst.pos;
        full = rc != 0 && dst.pos == dst.size;
        if (dst.pos == 0 && src.pos == before)
            break;
    }
    if (rc != 0)
        return kn_err_set(err, KN_E_CORRUPT, "Avro: a zstandard block that ends too early");
    return KN_OK;
}

KnCode kn_avro_decode_block(KnAvroCoder *coder, KnStr in, KnBuf *out, KnErr *err)
{
    kn_buf_reset(out);
    switch (coder->codec) {
    case KN_AVRO_CODEC_NULL:
        break;
    case KN_AVRO_CODEC_DEFLATE:
        return decode_deflate(coder, in, out, err);
    case KN_AVRO_CODEC_SNAPPY:
        return decode_snappy(in, out, err);
    case KN_AVRO_CODEC_ZSTD:
        return decode_zstd(coder, in, out, err);
    }
    if (in.len > out->max)
        return too_large(out, err);
    kn_buf_str(out, in);
    return kn_buf_check(out, err);
}

/* ---- encoding ---- */

static KnCode encode_deflate(KnAvroCoder *coder, KnStr in, KnBuf *out, KnErr *err)
{
    z_stream *z = &coder->deflater;
    int rc = coder->deflating ? deflateReset(z)
                              : deflateInit2(z, Z_DEFAULT_COMPRESSION, Z_DEFLATED, RAW_WINDOW,
                                             MEM_LEVEL, Z_DEFAULT_STRATEGY);
    if (rc != Z_OK)
        return kn_err_set(err, KN_E_NOMEM, "Avro: zlib could not start (%d)", rc);
    coder->deflating = true;
    size_t room = deflateBound(z, in.len);
    z->next_out = kn_buf_reserve(out, room);
    if (!z->next_out)
        return kn_buf_check(out, err);
    z->next_in = (Bytef *)(uintptr_t)in.ptr;
    z->avail_in = (uInt)in.len;
    z->avail_out = (uInt)room;
    rc = deflate(z, Z_FINISH);
    if (rc != Z_STREAM_END)
        return kn_err_set(err, KN_E_NOMEM, "Avro: zlib could not compress (%d)", rc);
    out->len += room - z->avail_out;
    return KN_OK;
}

static KnCode encode_snappy(KnStr in, KnBuf *out, KnErr *err)
{
    size_t len = snappy_max_compressed_length(in.len);
    char *p = kn_buf_reserve(out, len + SNAPPY_CRC);
    if (!p)
        return kn_buf_check(out, err);
    if (snappy_compress(in.ptr, in.len, p, &len) != SNAPPY_OK)
        return kn_err_set(err, KN_E_NOMEM, "Avro: snappy could not compress");
    uint32_t crc = (uint32_t)crc32_z(0, (const Bytef *)in.ptr, in.len);
    for (unsigned i = 0; i < SNAPPY_CRC; ++i)
        p[len + i] = (char)(crc >> (24 - 8 * i));
    out->len += len + SNAPPY_CRC;
    return KN_OK;
}

static KnCode encode_zstd(KnAvroCoder *coder, KnStr in, KnBuf *out, KnErr *err)
{
    if (!coder->cctx)
        coder->cctx = ZSTD_createCCtx();
    size_t room = ZSTD_compressBound(in.len);
    char *p = coder->cctx ? kn_buf_reserve(out, room) : NULL;
    if (!p)
        return kn_err_set(err, KN_E_NOMEM, "Avro: out of memory for zstd");
    size_t n = ZSTD_compressCCtx(coder->cctx, p, room, in.ptr, in.len, ZSTD_CLEVEL_DEFAULT);
    if (ZSTD_isError(n))
        return kn_err_set(err, KN_E_NOMEM, "Avro: zstd could not compress (%s)",
                          ZSTD_getErrorName(n));
    out->len += n;
    return KN_OK;
}

KnCode kn_avro_encode_block(KnAvroCoder *coder, KnStr in, KnBuf *out, KnErr *err)
{
    switch (coder->codec) {
    case KN_AVRO_CODEC_NULL:
        break;
    case KN_AVRO_CODEC_DEFLATE:
        return encode_deflate(coder, in, out, err);
    case KN_AVRO_CODEC_SNAPPY:
        return encode_snappy(in, out, err);
    case KN_AVRO_CODEC_ZSTD:
        return encode_zstd(coder, in, out, err);
    }
    kn_buf_str(out, in);
    return kn_buf_check(out, err);
}
