/* SPDX-License-Identifier: Apache-2.0 */
/*
 * avro_cursor.c - reading datums from decoded bytes (Avro 1.11: "Binary Encoding").
 *
 * Every function checks against cur->end before it touches a byte; after a failure the cursor's
 * position means nothing. A block of an array may claim any count of elements that take no bytes:
 * counts are held to the bytes that are left, or to ZERO_SIZE_MAX, so that no loop of a caller is
 * longer than the input warrants.
 */
#include "codec/avro.h"

enum { DEPTH_MAX = 64, ZERO_SIZE_MAX = 65536 };

static size_t left(const KnAvroCursor *cur)
{
    return (size_t)(cur->end - cur->pos);
}

static KnCode truncated(const char *what, KnErr *err)
{
    return kn_err_set(err, KN_E_CORRUPT, "Avro: the data ends inside a %s", what);
}

KnCode kn_avro_read_long(KnAvroCursor *cur, int64_t *ret, KnErr *err)
{
    const uint8_t *p = cur->pos;
    if (p != cur->end && *p < 0x80) { /* the usual case */
        *ret = (int64_t)(*p >> 1) ^ -(int64_t)(*p & 1);
        cur->pos = p + 1;
        return KN_OK;
    }
    uint64_t v = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
        if (p == cur->end)
            return truncated("number", err);
        uint8_t byte = *p++;
        if (shift == 63 && byte > 1)
            break;
        v |= (uint64_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80)) {
            cur->pos = p;
            *ret = (int64_t)(v >> 1) ^ -(int64_t)(v & 1);
            return KN_OK;
        }
    }
    return kn_err_set(err, KN_E_CORRUPT, "Avro: a number of more than 64 bits");
}

KnCode kn_avro_read_int(KnAvroCursor *cur, int32_t *ret, KnErr *err)
{
    int64_t v;
    KN_TRY(kn_avro_read_long(cur, &v, err));
    if (v < INT32_MIN || v > INT32_MAX)
        return kn_err_set(err, KN_E_CORRUPT, "Avro: %lld is no 32-bit int", (long long)v);
    *ret = (int32_t)v;
    return KN_OK;
}

KnCode kn_avro_read_boolean(KnAvroCursor *cur, bool *ret, KnErr *err)
{
    if (cur->pos == cur->end)
        return truncated("boolean", err);
    uint8_t byte = *cur->pos++;
    if (byte > 1)
        return kn_err_set(err, KN_E_CORRUPT, "Avro: a boolean of value %u", byte);
    *ret = byte == 1;
    return KN_OK;
}

/* size bytes, little endian, as an integer. */
static KnCode read_le(KnAvroCursor *cur, unsigned size, uint64_t *ret, KnErr *err)
{
    if (left(cur) < size)
        return truncated("float or double", err);
    uint64_t v = 0;
    for (unsigned i = 0; i < size; ++i)
        v |= (uint64_t)cur->pos[i] << (8 * i);
    cur->pos += size;
    *ret = v;
    return KN_OK;
}

KnCode kn_avro_read_float(KnAvroCursor *cur, float *ret, KnErr *err)
{
    uint64_t bits;
    KN_TRY(read_le(cur, 4, &bits, err));
    uint32_t bits32 = (uint32_t)bits;
    memcpy(ret, &bits32, sizeof(*ret));
    return KN_OK;
}

KnCode kn_avro_read_double(KnAvroCursor *cur, double *ret, KnErr *err)
{
    uint64_t bits;
    KN_TRY(read_le(cur, 8, &bits, err));
    memcpy(ret, &bits, sizeof(*ret));
    return KN_OK;
}

KnCode kn_avro_read_fixed(KnAvroCursor *cur, size_t size, KnStr *ret, KnErr *err)
{
    if (left(cur) < size)
        return truncated("fixed", err);
    *ret = (KnStr){(const char *)cur->pos, size};
    cur->pos += size;
    return KN_OK;
}

KnCode kn_avro_read_bytes(KnAvroCursor *cur, KnStr *ret, KnErr *err)
{
    int64_t len;
    KN_TRY(kn_avro_read_long(cur, &len, err));
    if (len < 0 || (uint64_t)len > left(cur))
        return kn_err_set(err, KN_E_CORRUPT, "Avro: text or bytes of length %lld, %zu bytes left",
                          (long long)len, left(cur));
    *ret = (KnStr){(const char *)cur->pos, (size_t)len};
    cur->pos += len;
    return KN_OK;
}

KnCode kn_avro_read_branch(KnAvroCursor *cur, const KnAvroType *type, const KnAvroType **ret,
                           KnErr *err)
{
    if (type->kind != KN_AVRO_UNION) {
        *ret = type;
        return KN_OK;
    }
    int64_t branch = -1;
    KN_TRY(kn_avro_read_long(cur, &branch, err));
    if (branch < 0 || (uint64_t)branch >= type->n_fields)
        return kn_err_set(err, KN_E_CORRUPT, "Avro: branch %lld of a union of %zu",
                          (long long)branch, type->n_fields);
    *ret = type->fields[branch].type;
    return KN_OK;
}

/* *ret_size = bytes of the block, or -1 where the writer does not say. */
static KnCode read_block(KnAvroCursor *cur, int64_t *ret_count, int64_t *ret_size, KnErr *err)
{
    int64_t count;
    int64_t size = -1;
    KN_TRY(kn_avro_read_long(cur, &count, err));
    if (count < 0) {
        KN_TRY(kn_avro_read_long(cur, &size, err));
        if (count == INT64_MIN || size < 0 || (uint64_t)size > left(cur))
            return kn_err_set(err, KN_E_CORRUPT,
                              "Avro: a block of %lld elements in %lld bytes, %zu bytes left",
                              (long long)count, (long long)size, left(cur));
        count = -count;
    }
    if (count > ZERO_SIZE_MAX && (uint64_t)count > left(cur))
        return kn_err_set(err, KN_E_CORRUPT, "Avro: a block of %lld elements, %zu bytes left",
                          (long long)count, left(cur));
    *ret_count = count;
    *ret_size = size;
    return KN_OK;
}

KnCode kn_avro_read_block_count(KnAvroCursor *cur, int64_t *ret_count, KnErr *err)
{
    int64_t size;
    return read_block(cur, ret_count, &size, err);
}

/* Most numbers are of one byte; the rest goes the careful way. */
static inline KnCode skip_long(KnAvroCursor *cur, KnErr *err)
{
    if (cur->pos != cur->end && *cur->pos < 0x80) {
        ++cur->pos;
        return KN_OK;
    }
    int64_t number;
    return kn_avro_read_long(cur, &number, err);
}

static KnCode skip_bytes(KnAvroCursor *cur, size_t size, KnErr *err)
{
    KnStr ignored;
    return kn_avro_read_fixed(cur, size, &ignored, err);
}

/* An array (key_type NULL) or a map. */
static KnCode skip_blocks(KnAvroCursor *cur, const KnAvroType *type, KnErr *err)
{
    const KnAvroType *of = type->fields[0].type;
    bool map = type->kind == KN_AVRO_MAP;
    for (;;) {
        int64_t count = 0;
        int64_t size = -1;
        KN_TRY(read_block(cur, &count, &size, err));
        if (count == 0)
            return KN_OK;
        if (size >= 0) {
            cur->pos += size; /* read_block() saw that it is there */
            continue;
        }
        if (of->zero_size && !map)
            continue;
        for (; count > 0; --count) {
            KnStr key;
            if (map)
                KN_TRY(kn_avro_read_bytes(cur, &key, err));
            KN_TRY(kn_avro_skip(cur, of, err));
        }
    }
}

static KnCode skip_nested(KnAvroCursor *cur, const KnAvroType *type, KnErr *err)
{
    if (cur->depth >= DEPTH_MAX)
        return kn_err_set(err, KN_E_CORRUPT, "Avro: data nested deeper than %d", DEPTH_MAX);
    ++cur->depth;
    if (type->kind == KN_AVRO_RECORD) {
        for (size_t i = 0; i < type->n_fields; ++i)
            KN_TRY(kn_avro_skip(cur, type->fields[i].type, err));
    } else if (type->kind == KN_AVRO_UNION) {
        const KnAvroType *branch;
        KN_TRY(kn_avro_read_branch(cur, type, &branch, err));
        KN_TRY(kn_avro_skip(cur, branch, err));
    } else {
        KN_TRY(skip_blocks(cur, type, err));
    }
    --cur->depth;
    return KN_OK;
}

KnCode kn_avro_skip(KnAvroCursor *cur, const KnAvroType *type, KnErr *err)
{
    if (type->zero_size)
        return KN_OK;
    bool flag;
    KnStr bytes;
    switch (type->kind) {
    case KN_AVRO_NULL:
        return KN_OK;
    case KN_AVRO_BOOLEAN:
        return kn_avro_read_boolean(cur, &flag, err);
    case KN_AVRO_INT:
    case KN_AVRO_LONG:
    case KN_AVRO_ENUM:
        return skip_long(cur, err);
    case KN_AVRO_FLOAT:
        return skip_bytes(cur, 4, err);
    case KN_AVRO_DOUBLE:
        return skip_bytes(cur, 8, err);
    case KN_AVRO_BYTES:
    case KN_AVRO_STRING:
        return kn_avro_read_bytes(cur, &bytes, err);
    case KN_AVRO_FIXED:
        return skip_bytes(cur, (size_t)type->fixed_size, err);
    case KN_AVRO_RECORD:
    case KN_AVRO_UNION:
    case KN_AVRO_ARRAY:
    case KN_AVRO_MAP:
        break;
    }
    return skip_nested(cur, type, err);
}

KnCode kn_avro_cursor_finish(const KnAvroCursor *cur, KnErr *err)
{
    if (cur->pos == cur->end)
        return KN_OK;
    return kn_err_set(err, KN_E_CORRUPT, "Avro: %zu bytes left over behind a block's last datum",
                      left(cur));
}
