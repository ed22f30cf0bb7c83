/* SPDX-License-Identifier: Apache-2.0 */
/*
 * parquet_thrift.c - a bounds-checked walk through Thrift's compact protocol, and its writer.
 *
 * An element of a list takes at least one byte (empty structs are one, bools in lists too), so that
 * a list longer than what is left is refused and counts cannot make a walk longer than its bytes.
 */
#include "engine/parquet_thrift.h"

enum { MAX_DEPTH = 32 };

static uint8_t byte_next(KnThrift *t)
{
    if (t->bad || t->at == t->end) {
        t->bad = true;
        return 0;
    }
    return *t->at++;
}

static uint64_t varint_next(KnThrift *t)
{
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
        uint8_t b = byte_next(t);
        value |= (uint64_t)(b & 0x7f) << shift;
        if (!(b & 0x80))
            return t->bad ? 0 : value;
    }
    t->bad = true;
    return 0;
}

static int64_t zigzag_next(KnThrift *t)
{
    uint64_t value = varint_next(t);
    return (int64_t)((value >> 1) ^ (~(value & 1) + 1));
}

static void bytes_skip(KnThrift *t, uint64_t n)
{
    if (t->bad || n > (uint64_t)(t->end - t->at))
        t->bad = true;
    else
        t->at += n;
}

bool kn_thrift_field_next(KnThrift *t, KnThriftField *f)
{
    const uint8_t *header = t->at;
    uint8_t b = byte_next(t);
    if (t->bad || (b & 0x0f) == KN_THRIFT_STOP)
        return false;
    f->header = header;
    f->type = b & 0x0f;
    int64_t id = b >> 4 ? f->id + (b >> 4) : zigzag_next(t);
    if (id < INT16_MIN || id > INT16_MAX)
        t->bad = true;
    else
        f->id = (int)id;
    return !t->bad;
}

int64_t kn_thrift_int(KnThrift *t, const KnThriftField *f, KnThriftType want)
{
    if (f->type != (int)want)
        t->bad = true;
    int64_t value = zigzag_next(t);
    if (want == KN_THRIFT_I32 && (value < INT32_MIN || value > INT32_MAX))
        t->bad = true;
    return t->bad ? 0 : value;
}

uint64_t kn_thrift_list_open(KnThrift *t, int *ret_type)
{
    uint8_t b = byte_next(t);
    *ret_type = b & 0x0f;
    uint64_t n = b >> 4 == 15 ? varint_next(t) : b >> 4;
    if (n > (uint64_t)(t->end - t->at))
        t->bad = true;
    return t->bad ? 0 : n;
}

uint64_t kn_thrift_structs_open(KnThrift *t, const KnThriftField *f)
{
    int type = KN_THRIFT_STOP;
    uint64_t n = f->type == KN_THRIFT_LIST ? kn_thrift_list_open(t, &type) : 0;
    if (f->type != KN_THRIFT_LIST || (n > 0 && type != KN_THRIFT_STRUCT))
        t->bad = true;
    return t->bad ? 0 : n;
}

static void value_skip(KnThrift *t, int type, int depth);

/* A bool in a list or map is a byte of its own, in a field it is part of the header. */
static void element_skip(KnThrift *t, int type, int depth)
{
    if (type == KN_THRIFT_TRUE || type == KN_THRIFT_FALSE)
        bytes_skip(t, 1);
    else
        value_skip(t, type, depth);
}

static void list_skip(KnThrift *t, int depth)
{
    int type;
    uint64_t n = kn_thrift_list_open(t, &type);
    for (uint64_t i = 0; i < n && !t->bad; i++)
        element_skip(t, type, depth);
}

static void map_skip(KnThrift *t, int depth)
{
    uint64_t n = varint_next(t);
    uint8_t types = n ? byte_next(t) : 0;
    for (uint64_t i = 0; i < n && !t->bad; i++) {
        element_skip(t, types >> 4, depth);
        element_skip(t, types & 0x0f, depth);
    }
}

static void struct_skip(KnThrift *t, int depth)
{
    KnThriftField f = {0};
    while (kn_thrift_field_next(t, &f))
        value_skip(t, f.type, depth);
}

static void value_skip(KnThrift *t, int type, int depth)
{
    if (depth > MAX_DEPTH)
        t->bad = true;
    if (t->bad)
        return;
    switch (type) {
    case KN_THRIFT_TRUE:
    case KN_THRIFT_FALSE:
        break;
    case KN_THRIFT_BYTE:
        bytes_skip(t, 1);
        break;
    case KN_THRIFT_I16:
    case KN_THRIFT_I32:
    case KN_THRIFT_I64:
        (void)varint_next(t);
        break;
    case KN_THRIFT_DOUBLE:
        bytes_skip(t, 8);
        break;
    case KN_THRIFT_BINARY:
        bytes_skip(t, varint_next(t));
        break;
    case KN_THRIFT_LIST:
    case KN_THRIFT_SET:
        list_skip(t, depth + 1);
        break;
    case KN_THRIFT_MAP:
        map_skip(t, depth + 1);
        break;
    case KN_THRIFT_STRUCT:
        struct_skip(t, depth + 1);
        break;
    default:
        t->bad = true;
    }
}

void kn_thrift_skip(KnThrift *t, int type)
{
    value_skip(t, type, 1);
}

/* ---- writing ---- */

void kn_thrift_write_varint(KnBuf *buf, uint64_t value)
{
    for (; value >= 0x80; value >>= 7)
        kn_buf_char(buf, (char)(value | 0x80));
    kn_buf_char(buf, (char)value);
}

static void write_zigzag(KnBuf *buf, int64_t value)
{
    kn_thrift_write_varint(buf, (uint64_t)value << 1 ^ (value < 0 ? UINT64_MAX : 0));
}

void kn_thrift_write_field(KnBuf *buf, int *last, int id, int type)
{
    int delta = id - *last;
    if (delta > 0 && delta < 16) {
        kn_buf_char(buf, (char)(delta << 4 | type));
    } else {
        kn_buf_char(buf, (char)type);
        write_zigzag(buf, id);
    }
    *last = id;
}

void kn_thrift_write_i32(KnBuf *buf, int *last, int id, int32_t value)
{
    kn_thrift_write_field(buf, last, id, KN_THRIFT_I32);
    write_zigzag(buf, value);
}

void kn_thrift_write_i64(KnBuf *buf, int *last, int id, int64_t value)
{
    kn_thrift_write_field(buf, last, id, KN_THRIFT_I64);
    write_zigzag(buf, value);
}

void kn_thrift_copy(KnBuf *buf, int *last, const KnThriftField *f, KnThrift *t)
{
    const uint8_t *value = t->at;
    kn_thrift_skip(t, f->type);
    if (t->bad)
        return;
    kn_thrift_write_field(buf, last, f->id, f->type);
    kn_buf_append(buf, value, (size_t)(t->at - value));
}

void kn_thrift_write_list(KnBuf *buf, int type, uint64_t n)
{
    if (n < 15) {
        kn_buf_char(buf, (char)(n << 4 | (unsigned)type));
    } else {
        kn_buf_char(buf, (char)(0xf0 | type));
        kn_thrift_write_varint(buf, n);
    }
}
