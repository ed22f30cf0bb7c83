/* SPDX-License-Identifier: Apache-2.0 */
/*
 * avro_writer.c - object container files from datums that the caller encodes.
 *
 * Two buffers: `datums` takes plain datums until a block is full, `file` the finished bytes. The
 * header is written with the first block (or at the end), so that metadata may be set after the
 * writer is made. A failed buffer is sticky, so it is looked at only when a block closes.
 */
#include <assert.h>
#include <stdlib.h>

#include "base/hash.h"
#include "codec/avro.h"
#include "codec/avro_codec.h"

enum { SYNC_LEN = 16, BLOCK_FULL = 64 << 10 };
#define FILE_MAX   ((size_t)1 << 30)
#define HEADER_MAX ((size_t)128 << 20)

struct KnAvroWriter {
    KnAvroCodec codec;
    KnAvroCoder *coder;
    KnBuf meta; /* encoded pairs of the header's map */
    int64_t n_meta;
    KnBuf datums;
    KnBuf packed;
    int64_t n_datums;
    bool header_done;
    KnBuf file;
    uint8_t sync[SYNC_LEN];
};

void kn_avro_put_long(KnBuf *buf, int64_t v)
{
    uint64_t z = ((uint64_t)v << 1) ^ (uint64_t)(v >> 63);
    uint8_t bytes[10];
    size_t n = 0;
    for (; z > 0x7f; z >>= 7)
        bytes[n++] = (uint8_t)(z | 0x80);
    bytes[n++] = (uint8_t)z;
    kn_buf_append(buf, bytes, n);
}

void kn_avro_put_boolean(KnBuf *buf, bool v)
{
    kn_buf_char(buf, v ? 1 : 0);
}

static void put_le(KnBuf *buf, uint64_t bits, unsigned size)
{
    uint8_t bytes[8];
    for (unsigned i = 0; i < size; ++i)
        bytes[i] = (uint8_t)(bits >> (8 * i));
    kn_buf_append(buf, bytes, size);
}

void kn_avro_put_float(KnBuf *buf, float v)
{
    uint32_t bits;
    memcpy(&bits, &v, sizeof(bits));
    put_le(buf, bits, 4);
}

void kn_avro_put_double(KnBuf *buf, double v)
{
    uint64_t bits;
    memcpy(&bits, &v, sizeof(bits));
    put_le(buf, bits, 8);
}

void kn_avro_put_bytes(KnBuf *buf, KnStr s)
{
    kn_avro_put_long(buf, (int64_t)s.len);
    kn_buf_str(buf, s);
}

KnAvroWriter *kn_avro_writer_new(KnStr schema_json, KnAvroCodec codec)
{
    KnAvroWriter *w = calloc(1, sizeof(*w));
    if (!w)
        abort();
    w->codec = codec;
    w->coder = kn_avro_coder_new(codec);
    kn_buf_init(&w->meta, HEADER_MAX);
    kn_buf_init(&w->datums, FILE_MAX);
    kn_buf_init(&w->packed, FILE_MAX);
    kn_buf_init(&w->file, FILE_MAX);
    kn_avro_writer_meta(w, "avro.schema", schema_json);
    kn_avro_writer_meta(w, "avro.codec", kn_str(kn_avro_codec_name(codec)));
    return w;
}

KnAvroWriter *kn_avro_writer_free(KnAvroWriter *w)
{
    if (!w)
        return NULL;
    (void)kn_avro_coder_free(w->coder);
    kn_buf_done(&w->meta);
    kn_buf_done(&w->datums);
    kn_buf_done(&w->packed);
    kn_buf_done(&w->file);
    free(w);
    return NULL;
}

void kn_avro_writer_meta(KnAvroWriter *w, const char *key, KnStr value)
{
    assert(!w->header_done);
    kn_avro_put_bytes(&w->meta, kn_str(key));
    kn_avro_put_bytes(&w->meta, value);
    ++w->n_meta;
}

KnBuf *kn_avro_writer_buf(KnAvroWriter *w)
{
    return &w->datums;
}

size_t kn_avro_writer_size(const KnAvroWriter *w)
{
    return w->file.len + w->datums.len + (w->header_done ? 0 : w->meta.len);
}

static KnCode write_header(KnAvroWriter *w, KnErr *err)
{
    if (w->header_done)
        return KN_OK;
    KN_TRY(kn_buf_check(&w->meta, err));
    kn_buf_append(&w->file, "Obj\1", 4);
    kn_avro_put_long(&w->file, w->n_meta);
    kn_buf_append(&w->file, w->meta.data, w->meta.len);
    kn_avro_put_long(&w->file, 0);
    KN_TRY(kn_buf_check(&w->file, err));
    for (unsigned half = 0; half < 2; ++half) {
        uint64_t h = kn_hash64(w->file.data, w->file.len, half);
        for (unsigned i = 0; i < 8; ++i)
            w->sync[8 * half + i] = (uint8_t)(h >> (8 * i));
    }
    kn_buf_append(&w->file, w->sync, SYNC_LEN);
    w->header_done = true;
    return kn_buf_check(&w->file, err);
}

static KnCode write_block(KnAvroWriter *w, KnErr *err)
{
    KN_TRY(write_header(w, err));
    KN_TRY(kn_buf_check(&w->datums, err));
    if (w->n_datums == 0)
        return KN_OK;
    kn_buf_reset(&w->packed);
    KN_TRY(kn_avro_encode_block(w->coder, (KnStr){w->datums.data, w->datums.len}, &w->packed, err));
    kn_avro_put_long(&w->file, w->n_datums);
    kn_avro_put_bytes(&w->file, (KnStr){w->packed.data, w->packed.len});
    kn_buf_append(&w->file, w->sync, SYNC_LEN);
    kn_buf_reset(&w->datums);
    w->n_datums = 0;
    return kn_buf_check(&w->file, err);
}

KnCode kn_avro_writer_datum(KnAvroWriter *w, KnErr *err)
{
    ++w->n_datums;
    if (w->datums.len < BLOCK_FULL && !w->datums.failed)
        return KN_OK;
    return write_block(w, err);
}

KnCode kn_avro_writer_finish(KnAvroWriter *w, KnBuf *ret_file, KnErr *err)
{
    KN_TRY(write_block(w, err));
    *ret_file = w->file;
    kn_buf_init(&w->file, FILE_MAX);
    return KN_OK;
}
