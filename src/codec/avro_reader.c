/* SPDX-License-Identifier: Apache-2.0 */
/*
 * avro_reader.c - object container files: header, then block after block (Avro 1.11: "Object
 * Container Files").
 *
 * A block of codec null is read where it lies; others are decompressed into one buffer that is
 * used again for the next block. Memory is bounded by BLOCK_MAX, and time by a budget of plain
 * bytes for the whole file (BUDGET_BASE + BUDGET_RATIO times its size): a real manifest compresses
 * far less than that. Blocks of 0 datums are passed over, since 0 means the end to the caller.
 */
#include <stdlib.h>

#include "codec/avro.h"
#include "codec/avro_codec.h"

enum { MAGIC_LEN = 4, SYNC_LEN = 16, META_MAX = 1024, ZERO_SIZE_MAX = 65536 };
#define BLOCK_MAX    ((size_t)256 << 20)
#define BUDGET_BASE  ((uint64_t)16 << 20)
#define BUDGET_RATIO 2048u

typedef struct Meta {
    KnStr key, value;
} Meta;

struct KnAvroReader {
    KnArena *arena;
    const KnAvroType *type;
    Meta *meta;
    size_t n_meta;
    KnAvroCursor file;
    uint8_t sync[SYNC_LEN];
    KnAvroCodec codec;
    KnAvroCoder *coder;
    KnBuf block;
    uint64_t budget;
};

KnAvroReader *kn_avro_reader_close(KnAvroReader *reader)
{
    if (!reader)
        return NULL;
    (void)kn_avro_coder_free(reader->coder);
    kn_buf_done(&reader->block);
    (void)kn_arena_free(reader->arena);
    free(reader);
    return NULL;
}

const KnAvroType *kn_avro_reader_type(const KnAvroReader *reader)
{
    return reader->type;
}

KnStr kn_avro_reader_meta(const KnAvroReader *reader, const char *key)
{
    for (size_t i = 0; i < reader->n_meta; ++i)
        if (kn_str_eq(reader->meta[i].key, kn_str(key)))
            return reader->meta[i].value;
    return (KnStr){NULL, 0};
}

static KnCode read_meta(KnAvroReader *reader, KnErr *err)
{
    reader->meta = kn_arena_alloc(reader->arena, META_MAX * sizeof(Meta));
    for (;;) {
        int64_t count;
        KN_TRY(kn_avro_read_block_count(&reader->file, &count, err));
        if (count == 0)
            return KN_OK;
        for (; count > 0; --count) {
            Meta meta;
            KN_TRY(kn_avro_read_bytes(&reader->file, &meta.key, err));
            KN_TRY(kn_avro_read_bytes(&reader->file, &meta.value, err));
            if (reader->n_meta == META_MAX)
                return kn_err_set(err, KN_E_CORRUPT, "Avro: more than %d keys in the header",
                                  META_MAX);
            reader->meta[reader->n_meta++] = meta;
        }
    }
}

static KnCode read_header(KnAvroReader *reader, KnErr *err)
{
    KnStr magic;
    if (kn_avro_read_fixed(&reader->file, MAGIC_LEN, &magic, NULL) != KN_OK ||
        memcmp(magic.ptr, "Obj\1", MAGIC_LEN) != 0)
        return kn_err_set(err, KN_E_CORRUPT, "not an Avro file (no 'Obj' and version 1 in front)");
    KN_TRY(read_meta(reader, err));
    KnStr sync;
    KN_TRY(kn_avro_read_fixed(&reader->file, SYNC_LEN, &sync, err));
    memcpy(reader->sync, sync.ptr, SYNC_LEN);
    KnStr codec = kn_avro_reader_meta(reader, "avro.codec");
    if (codec.ptr)
        KN_TRY(kn_avro_codec_find(codec, &reader->codec, err));
    KnStr schema = kn_avro_reader_meta(reader, "avro.schema");
    if (!schema.ptr)
        return kn_err_set(err, KN_E_CORRUPT, "Avro: no schema in the header");
    return kn_avro_type_parse(reader->arena, schema, &reader->type, err);
}

KnCode kn_avro_reader_open(const void *bytes, size_t len, KnAvroReader **ret, KnErr *err)
{
    KnAvroReader *reader = calloc(1, sizeof(*reader));
    if (!reader)
        abort();
    reader->arena = kn_arena_new(0);
    kn_buf_init(&reader->block, BLOCK_MAX);
    reader->file = (KnAvroCursor){.pos = bytes, .end = (const uint8_t *)bytes + len};
    reader->budget = BUDGET_BASE + (uint64_t)len * BUDGET_RATIO;
    KnCode code = read_header(reader, err);
    if (code != KN_OK) {
        (void)kn_avro_reader_close(reader);
        return code;
    }
    reader->coder = kn_avro_coder_new(reader->codec);
    *ret = reader;
    return KN_OK;
}

/* count, size, bytes, sync marker: the block as it lies in the file. */
static KnCode read_block(KnAvroReader *reader, int64_t *ret_count, KnStr *ret, KnErr *err)
{
    KnAvroCursor *file = &reader->file;
    int64_t count;
    KnStr packed;
    KnStr sync;
    KN_TRY(kn_avro_read_long(file, &count, err));
    if (count < 0)
        return kn_err_set(err, KN_E_CORRUPT, "Avro: a block of %lld datums", (long long)count);
    KN_TRY(kn_avro_read_bytes(file, &packed, err));
    if (packed.len > UINT32_MAX)
        return kn_err_set(err, KN_E_CORRUPT, "Avro: a block of %zu bytes", packed.len);
    KN_TRY(kn_avro_read_fixed(file, SYNC_LEN, &sync, err));
    if (memcmp(sync.ptr, reader->sync, SYNC_LEN) != 0)
        return kn_err_set(err, KN_E_CORRUPT, "Avro: no sync marker behind a block");
    *ret_count = count;
    *ret = packed;
    return KN_OK;
}

static KnCode unpack(KnAvroReader *reader, KnStr packed, KnStr *ret, KnErr *err)
{
    if (reader->codec == KN_AVRO_CODEC_NULL) {
        *ret = packed;
        return KN_OK;
    }
    reader->block.max = reader->budget < BLOCK_MAX ? (size_t)reader->budget : BLOCK_MAX;
    KN_TRY(kn_avro_decode_block(reader->coder, packed, &reader->block, err));
    reader->budget -= reader->block.len;
    *ret = (KnStr){reader->block.data, reader->block.len};
    return KN_OK;
}

KnCode kn_avro_reader_next_block(KnAvroReader *reader, KnAvroCursor *ret, int64_t *ret_count,
                                 KnErr *err)
{
    int64_t count = 0;
    KnStr plain = {"", 0};
    while (count == 0 && reader->file.pos != reader->file.end) {
        KnStr packed;
        KN_TRY(read_block(reader, &count, &packed, err));
        KN_TRY(unpack(reader, packed, &plain, err));
        int64_t limit = reader->type->zero_size ? ZERO_SIZE_MAX : (int64_t)plain.len;
        if (count > limit || (count == 0 && plain.len != 0))
            return kn_err_set(err, KN_E_CORRUPT, "Avro: a block of %lld datums in %zu bytes",
                              (long long)count, plain.len);
    }
    const uint8_t *pos = (const uint8_t *)plain.ptr;
    *ret = (KnAvroCursor){.pos = pos, .end = pos + plain.len};
    *ret_count = count;
    return KN_OK;
}
