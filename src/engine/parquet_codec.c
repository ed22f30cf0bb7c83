/* SPDX-License-Identifier: Apache-2.0 */
/*
 * parquet_codec.c - a page at a time, into a buffer of the size that the page's header tells.
 */
#include "engine/parquet_codec.h"

#include <lz4.h>
#include <snappy-c.h>
#include <zlib.h>
#include <zstd.h>

#include "engine/parquet_meta.h"

enum { GZIP_WINDOW = 15 + 16, MEM_LEVEL = 8 };

/* zlib tells its own sizes in 32 bits; pages are no longer. */
static z_stream stream_of(KnStr in, char *to, size_t room)
{
    return (z_stream){.next_in = (Bytef *)(uintptr_t)in.ptr,
                      .avail_in = (uInt)in.len,
                      .next_out = (Bytef *)to,
                      .avail_out = (uInt)room};
}

static size_t gzip_inflate(KnStr in, char *to, size_t room)
{
    z_stream z = stream_of(in, to, room);
    if (inflateInit2(&z, GZIP_WINDOW) != Z_OK)
        return SIZE_MAX;
    int rc = inflate(&z, Z_FINISH);
    size_t made = z.total_out;
    (void)inflateEnd(&z);
    return rc == Z_STREAM_END ? made : SIZE_MAX;
}

static size_t gzip_deflate(KnStr in, char *to, size_t room)
{
    z_stream z = stream_of(in, to, room);
    if (deflateInit2(&z, Z_DEFAULT_COMPRESSION, Z_DEFLATED, GZIP_WINDOW, MEM_LEVEL,
                     Z_DEFAULT_STRATEGY) != Z_OK)
        return SIZE_MAX;
    int rc = deflate(&z, Z_FINISH);
    size_t made = z.total_out;
    (void)deflateEnd(&z);
    return rc == Z_STREAM_END ? made : SIZE_MAX;
}

/* Bytes made, SIZE_MAX on a fault. */
static size_t decompress(int codec, KnStr in, char *to, size_t room)
{
    size_t made = room;
    int n;
    switch (codec) {
    case KN_PQ_SNAPPY:
        return snappy_uncompress(in.ptr, in.len, to, &made) == SNAPPY_OK ? made : SIZE_MAX;
    case KN_PQ_GZIP:
        return gzip_inflate(in, to, room);
    case KN_PQ_ZSTD:
        made = ZSTD_decompress(to, room, in.ptr, in.len);
        return ZSTD_isError(made) ? SIZE_MAX : made;
    default:
        n = LZ4_decompress_safe(in.ptr, to, (int)in.len, (int)room);
        return n < 0 ? SIZE_MAX : (size_t)n;
    }
}

static bool is_known(int codec)
{
    return codec == KN_PQ_UNCOMPRESSED || codec == KN_PQ_SNAPPY || codec == KN_PQ_GZIP ||
           codec == KN_PQ_ZSTD || codec == KN_PQ_LZ4_RAW;
}

static KnCode refuse(int codec, KnErr *err)
{
    return kn_err_set(err, KN_E_UNSUPPORTED, "Parquet codec %d is not supported here", codec);
}

KnCode kn_pq_page_decompress(int codec, KnStr page, size_t plain_len, KnBuf *out, KnErr *err)
{
    if (!is_known(codec))
        return refuse(codec, err);
    kn_buf_reset(out);
    if (plain_len == 0)
        return KN_OK;
    char *to = kn_buf_reserve(out, plain_len);
    if (!to)
        return kn_buf_check(out, err);
    size_t made = page.len;
    if (codec != KN_PQ_UNCOMPRESSED)
        made = decompress(codec, page, to, plain_len);
    else if (page.len == plain_len)
        memcpy(to, page.ptr, plain_len);
    if (made != plain_len)
        return kn_err_set(err, KN_E_CORRUPT, "a page does not decompress to its %zu bytes",
                          plain_len);
    out->len = plain_len;
    return KN_OK;
}

static size_t compress_bound(int codec, size_t len)
{
    switch (codec) {
    case KN_PQ_SNAPPY:
        return snappy_max_compressed_length(len);
    case KN_PQ_GZIP:
        return len + len / 1000 + 128;
    case KN_PQ_ZSTD:
        return ZSTD_compressBound(len);
    default:
        return (size_t)LZ4_compressBound((int)len);
    }
}

static size_t compress_into(int codec, KnStr plain, char *to, size_t room)
{
    size_t made = room;
    int n;
    switch (codec) {
    case KN_PQ_SNAPPY:
        return snappy_compress(plain.ptr, plain.len, to, &made) == SNAPPY_OK ? made : SIZE_MAX;
    case KN_PQ_GZIP:
        return gzip_deflate(plain, to, room);
    case KN_PQ_ZSTD:
        made = ZSTD_compress(to, room, plain.ptr, plain.len, ZSTD_CLEVEL_DEFAULT);
        return ZSTD_isError(made) ? SIZE_MAX : made;
    default:
        n = LZ4_compress_default(plain.ptr, to, (int)plain.len, (int)room);
        return n <= 0 ? SIZE_MAX : (size_t)n;
    }
}

KnCode kn_pq_page_compress(int codec, KnStr plain, KnBuf *out, KnErr *err)
{
    if (!is_known(codec))
        return refuse(codec, err);
    kn_buf_reset(out);
    if (codec == KN_PQ_UNCOMPRESSED) {
        kn_buf_str(out, plain);
        return kn_buf_check(out, err);
    }
    size_t room = compress_bound(codec, plain.len);
    char *to = kn_buf_reserve(out, room);
    if (!to)
        return kn_buf_check(out, err);
    size_t made = compress_into(codec, plain, to, room);
    if (made == SIZE_MAX)
        return kn_err_set(err, KN_E_NOMEM, "a page of %zu bytes cannot be compressed", plain.len);
    out->len = made;
    return KN_OK;
}
