/* SPDX-License-Identifier: Apache-2.0 */
/*
 * protobuf.c - the wire format, driven by tables of fields.
 *
 * Decoding goes over a message twice: first to count the elements of repeated fields, so that each
 * gets one array of the right size, then to read. Groups (deprecated since proto2) are refused.
 */
#include "codec/protobuf.h"

#include <string.h>

enum { WIRE_VARINT = 0, WIRE_FIXED64 = 1, WIRE_BYTES = 2, WIRE_FIXED32 = 5 };

/* One field as it is on the wire. */
typedef struct Raw {
    uint64_t number;
    unsigned wire;
    uint64_t varint;
    KnStr bytes;
} Raw;

static KnCode corrupt(const KnPbMessage *message, const char *what, KnErr *err)
{
    return kn_err_set(err, KN_E_CORRUPT, "protobuf message %s: %s", message->name, what);
}

static bool take_varint(KnStr *rest, uint64_t *ret)
{
    uint64_t value = 0;
    for (size_t i = 0; i < rest->len && i < 10; ++i) {
        uint64_t byte = (uint8_t)rest->ptr[i];
        if (i == 9 && byte > 1)
            return false;
        value |= (byte & 0x7f) << (7 * i);
        if (byte & 0x80)
            continue;
        *rest = (KnStr){rest->ptr + i + 1, rest->len - i - 1};
        *ret = value;
        return true;
    }
    return false;
}

static bool take_bytes(KnStr *rest, uint64_t len, KnStr *ret)
{
    if (len > rest->len)
        return false;
    *ret = (KnStr){rest->ptr, (size_t)len};
    *rest = (KnStr){rest->ptr + len, rest->len - (size_t)len};
    return true;
}

static KnCode take_field(const KnPbMessage *message, KnStr *rest, Raw *ret, KnErr *err)
{
    uint64_t key, len;
    *ret = (Raw){0};
    if (!take_varint(rest, &key))
        return corrupt(message, "a field's number is cut off", err);
    ret->number = key >> 3;
    ret->wire = key & 7;
    if (ret->number == 0 || ret->number > UINT32_MAX >> 3)
        return corrupt(message, "a field has a number that cannot be", err);
    bool fine = false;
    if (ret->wire == WIRE_VARINT)
        fine = take_varint(rest, &ret->varint);
    else if (ret->wire == WIRE_BYTES)
        fine = take_varint(rest, &len) && take_bytes(rest, len, &ret->bytes);
    else if (ret->wire == WIRE_FIXED64 || ret->wire == WIRE_FIXED32)
        fine = take_bytes(rest, ret->wire == WIRE_FIXED64 ? 8 : 4, &ret->bytes);
    else
        return corrupt(message, "a field has a type that cannot be", err);
    return fine ? KN_OK : corrupt(message, "it is cut off inside a field", err);
}

static bool is_repeated(KnPbKind kind)
{
    return kind == KN_PB_TEXTS || kind == KN_PB_MESSAGES;
}

/* Index of the field, or -1: not one of ours, and passed over. */
static int find_field(const KnPbMessage *message, const Raw *raw)
{
    for (size_t i = 0; i < message->n_fields; ++i)
        if (message->fields[i].number == raw->number)
            return (int)i;
    return -1;
}

static KnCode count_items(const KnPbMessage *message, KnStr rest, size_t counts[KN_PB_FIELDS],
                          KnErr *err)
{
    Raw raw;
    while (rest.len) {
        KN_TRY(take_field(message, &rest, &raw, err));
        int i = find_field(message, &raw);
        if (i < 0)
            continue;
        KnPbKind kind = message->fields[i].kind;
        unsigned wire = kind == KN_PB_BOOL || kind == KN_PB_INT64 ? WIRE_VARINT : WIRE_BYTES;
        if (raw.wire != wire)
            return kn_err_set(err, KN_E_CORRUPT, "protobuf message %s: field %s has another type",
                              message->name, message->fields[i].name);
        if (++counts[i] > KN_PB_MAX_ITEMS && is_repeated(kind))
            return kn_err_set(err, KN_E_NOMEM, "protobuf message %s: too many %s", message->name,
                              message->fields[i].name);
    }
    return KN_OK;
}

/* Texts are never NULL, also in a message inside that was not sent. */
static void set_empty(const KnPbMessage *message, char *ret)
{
    for (size_t i = 0; i < message->n_fields; ++i) {
        const KnPbField *field = &message->fields[i];
        if (field->kind == KN_PB_TEXT)
            *(const char **)(void *)(ret + field->offset) = "";
        else if (field->kind == KN_PB_MESSAGE)
            set_empty(field->message, ret + field->offset);
    }
}

static KnCode prepare(const KnPbMessage *message, const size_t counts[KN_PB_FIELDS], KnArena *arena,
                      char *ret, KnErr *err)
{
    memset(ret, 0, message->size);
    set_empty(message, ret);
    for (size_t i = 0; i < message->n_fields; ++i) {
        const KnPbField *field = &message->fields[i];
        if (!is_repeated(field->kind) || !counts[i])
            continue;
        size_t size = field->kind == KN_PB_TEXTS ? sizeof(char *) : field->message->size;
        void *items = kn_arena_try_array(arena, counts[i], size);
        if (!items)
            return kn_err_set(err, KN_E_NOMEM, "protobuf message %s: no memory for %zu %s",
                              message->name, counts[i], field->name);
        if (field->kind == KN_PB_TEXTS)
            ((KnPbTexts *)(void *)(ret + field->offset))->items = items;
        else
            ((KnPbMessages *)(void *)(ret + field->offset))->items = items;
    }
    return KN_OK;
}

/* No message: the caller knows the field's name. */
static KnCode read_text(KnStr bytes, KnArena *arena, const char **ret)
{
    char *copy = kn_arena_try_strndup(arena, bytes.ptr, bytes.len);
    if (!copy)
        return KN_E_NOMEM;
    if (bytes.len && (!kn_str_is_utf8(bytes) || memchr(bytes.ptr, 0, bytes.len)))
        return KN_E_CORRUPT;
    *ret = copy;
    return KN_OK;
}

static KnCode read_item(const KnPbField *field, KnStr bytes, KnArena *arena, void *at, KnErr *err)
{
    if (field->kind == KN_PB_TEXTS) {
        KnPbTexts *texts = at;
        return read_text(bytes, arena, (const char **)&texts->items[texts->n++]);
    }
    KnPbMessages *list = at;
    char *item = (char *)list->items + list->n++ * field->message->size;
    return kn_pb_decode(field->message, bytes, arena, item, err);
}

static KnCode read_field(const KnPbMessage *message, const KnPbField *field, const Raw *raw,
                         KnArena *arena, char *ret, KnErr *err)
{
    void *at = ret + field->offset;
    KnCode rc = KN_OK;
    switch (field->kind) {
    case KN_PB_BOOL:
        *(bool *)at = raw->varint != 0;
        return KN_OK;
    case KN_PB_INT64:
        *(int64_t *)at = (int64_t)raw->varint;
        return KN_OK;
    case KN_PB_BYTES:
        *(KnStr *)at = raw->bytes;
        return KN_OK;
    case KN_PB_MESSAGE:
        return kn_pb_decode(field->message, raw->bytes, arena, at, err);
    case KN_PB_MESSAGES:
        return read_item(field, raw->bytes, arena, at, err);
    case KN_PB_TEXT:
        rc = read_text(raw->bytes, arena, at);
        break;
    case KN_PB_TEXTS:
        rc = read_item(field, raw->bytes, arena, at, err);
        break;
    }
    if (rc == KN_OK)
        return KN_OK;
    return kn_err_set(err, rc, "protobuf message %s: field %s %s", message->name, field->name,
                      rc == KN_E_NOMEM ? "is too large" : "is no text: not UTF-8, or a NUL in it");
}

KnCode kn_pb_decode(const KnPbMessage *message, KnStr bytes, KnArena *arena, void *ret, KnErr *err)
{
    assert(message->n_fields <= KN_PB_FIELDS);
    size_t counts[KN_PB_FIELDS] = {0};
    KN_TRY(count_items(message, bytes, counts, err));
    KN_TRY(prepare(message, counts, arena, ret, err));
    Raw raw;
    for (KnStr rest = bytes; rest.len;) {
        KN_TRY(take_field(message, &rest, &raw, err));
        int i = find_field(message, &raw);
        if (i >= 0)
            KN_TRY(read_field(message, &message->fields[i], &raw, arena, ret, err));
    }
    return KN_OK;
}

/* ---- writing ---- */

static size_t format_varint(uint64_t value, char out[10])
{
    size_t n = 0;
    for (; value >= 0x80; value >>= 7)
        out[n++] = (char)(value | 0x80);
    out[n++] = (char)value;
    return n;
}

static void put_varint(KnBuf *buf, uint64_t value)
{
    char bytes[10];
    kn_buf_append(buf, bytes, format_varint(value, bytes));
}

static void put_key(KnBuf *buf, const KnPbField *field, unsigned wire)
{
    put_varint(buf, (uint64_t)field->number << 3 | wire);
}

static void put_bytes(KnBuf *buf, const KnPbField *field, KnStr bytes)
{
    put_key(buf, field, WIRE_BYTES);
    put_varint(buf, bytes.len);
    kn_buf_str(buf, bytes);
}

/* The length comes before what is not known yet: messages inside are short, and are moved. */
static void put_message(KnBuf *buf, const KnPbField *field, const void *value, bool even_empty)
{
    size_t before = buf->len;
    put_key(buf, field, WIRE_BYTES);
    size_t begin = buf->len;
    kn_pb_encode(field->message, value, buf);
    size_t len = buf->len - begin;
    if (buf->failed)
        return;
    if (len == 0 && !even_empty) {
        buf->len = before;
        return;
    }
    char prefix[10];
    size_t n = format_varint(len, prefix);
    if (!kn_buf_reserve(buf, n))
        return;
    memmove(buf->data + begin + n, buf->data + begin, len);
    memcpy(buf->data + begin, prefix, n);
    buf->len += n;
}

static void put_field(KnBuf *buf, const KnPbField *field, const char *value)
{
    const void *at = value + field->offset;
    const KnPbTexts *texts = at;
    const KnPbMessages *list = at;
    switch (field->kind) {
    case KN_PB_BOOL:
    case KN_PB_INT64: {
        uint64_t number =
            field->kind == KN_PB_BOOL ? *(const bool *)at : (uint64_t) * (const int64_t *)at;
        if (!number)
            return;
        put_key(buf, field, WIRE_VARINT);
        put_varint(buf, number);
        return;
    }
    case KN_PB_TEXT: {
        const char *text = *(const char *const *)at;
        if (text && text[0])
            put_bytes(buf, field, kn_str(text));
        return;
    }
    case KN_PB_BYTES:
        if (((const KnStr *)at)->len)
            put_bytes(buf, field, *(const KnStr *)at);
        return;
    case KN_PB_TEXTS:
        for (size_t i = 0; i < texts->n; ++i)
            put_bytes(buf, field, kn_str(texts->items[i]));
        return;
    case KN_PB_MESSAGE:
        put_message(buf, field, at, false);
        return;
    case KN_PB_MESSAGES:
        for (size_t i = 0; i < list->n; ++i)
            put_message(buf, field, (const char *)list->items + i * field->message->size, true);
        return;
    }
}

void kn_pb_encode(const KnPbMessage *message, const void *value, KnBuf *buf)
{
    for (size_t i = 0; i < message->n_fields; ++i)
        put_field(buf, &message->fields[i], value);
}
