/* SPDX-License-Identifier: Apache-2.0 */
/* grpc_frame.c - prefixes of messages, percent-encoded texts, timeouts. */
#include "net/grpc_frame.h"

#include <string.h>

static const char *const code_names[] = {
    "OK",
    "CANCELLED",
    "UNKNOWN",
    "INVALID_ARGUMENT",
    "DEADLINE_EXCEEDED",
    "NOT_FOUND",
    "ALREADY_EXISTS",
    "PERMISSION_DENIED",
    "RESOURCE_EXHAUSTED",
    "FAILED_PRECONDITION",
    "ABORTED",
    "OUT_OF_RANGE",
    "UNIMPLEMENTED",
    "INTERNAL",
    "UNAVAILABLE",
    "DATA_LOSS",
    "UNAUTHENTICATED",
};
enum { N_CODES = sizeof(code_names) / sizeof(code_names[0]) };

const char *kn_grpc_code_name(int code)
{
    return code >= 0 && code < N_CODES ? code_names[code] : "?";
}

size_t kn_grpc_frame_begin(KnBuf *buf)
{
    static const char prefix[KN_GRPC_PREFIX];
    size_t begin = buf->len;
    kn_buf_append(buf, prefix, sizeof(prefix));
    return begin;
}

void kn_grpc_frame_end(KnBuf *buf, size_t begin)
{
    if (buf->failed)
        return;
    size_t len = buf->len - begin - KN_GRPC_PREFIX;
    assert(len <= UINT32_MAX);
    for (int i = 0; i < 4; ++i)
        buf->data[begin + 1 + (size_t)i] = (char)(len >> (24 - 8 * i));
}

/* What a prefix says that follows it. */
static size_t length_of(const uint8_t *prefix)
{
    return (size_t)prefix[1] << 24 | (size_t)prefix[2] << 16 | (size_t)prefix[3] << 8 | prefix[4];
}

bool kn_grpc_frame_is_whole(KnStr bytes)
{
    const uint8_t *prefix = (const uint8_t *)bytes.ptr;
    if (bytes.len && prefix[0] != 0)
        return true; /* and no message of ours */
    return bytes.len >= KN_GRPC_PREFIX && bytes.len - KN_GRPC_PREFIX >= length_of(prefix);
}

KnCode kn_grpc_frame_next(KnStr *rest, KnStr *ret_message, KnErr *err)
{
    if (rest->len < KN_GRPC_PREFIX)
        return kn_err_set(err, KN_E_CORRUPT, "a gRPC message is cut off: %zu bytes of its prefix",
                          rest->len);
    const uint8_t *bytes = (const uint8_t *)rest->ptr;
    size_t len = length_of(bytes);
    if (bytes[0] == 1)
        return kn_err_set(err, KN_E_UNSUPPORTED,
                          "a gRPC message is compressed: send messages as they are (identity)");
    if (bytes[0] != 0)
        return kn_err_set(err, KN_E_CORRUPT, "a gRPC message begins with %u, not with 0 or 1",
                          bytes[0]);
    if (len > rest->len - KN_GRPC_PREFIX)
        return kn_err_set(err, KN_E_CORRUPT, "a gRPC message is cut off: %zu bytes of %zu",
                          rest->len - KN_GRPC_PREFIX, len);
    *ret_message = (KnStr){rest->ptr + KN_GRPC_PREFIX, len};
    *rest = (KnStr){rest->ptr + KN_GRPC_PREFIX + len, rest->len - KN_GRPC_PREFIX - len};
    return KN_OK;
}

void kn_grpc_message_encode(KnBuf *buf, KnStr text)
{
    static const char digits[] = "0123456789ABCDEF";
    for (size_t i = 0; i < text.len; ++i) {
        unsigned char c = (unsigned char)text.ptr[i];
        if (c >= 0x20 && c <= 0x7e && c != '%') {
            kn_buf_char(buf, (char)c);
        } else {
            const char escape[] = {'%', digits[c >> 4], digits[c & 15]};
            kn_buf_append(buf, escape, sizeof(escape));
        }
    }
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c = (char)(c | 0x20);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

void kn_grpc_message_decode(KnBuf *buf, KnStr value)
{
    for (size_t i = 0; i < value.len; ++i) {
        int high = i + 2 < value.len ? hex_digit(value.ptr[i + 1]) : -1;
        int low = i + 2 < value.len ? hex_digit(value.ptr[i + 2]) : -1;
        if (value.ptr[i] == '%' && high >= 0 && low >= 0) {
            kn_buf_char(buf, (char)(high << 4 | low));
            i += 2;
        } else {
            kn_buf_char(buf, value.ptr[i]);
        }
    }
}

bool kn_grpc_timeout_parse(KnStr value, int64_t *ret_us)
{
    static const struct {
        char unit;
        int64_t num, den;
    } units[] = {{'H', 3600000000, 1}, {'M', 60000000, 1}, {'S', 1000000, 1},
                 {'m', 1000, 1},       {'u', 1, 1},        {'n', 1, 1000}};
    int64_t number = 0;
    if (value.len < 2 || value.len > 9 || value.ptr[0] == '-' || value.ptr[0] == '+' ||
        !kn_str_to_i64((KnStr){value.ptr, value.len - 1}, &number))
        return false;
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); ++i) {
        if (units[i].unit != value.ptr[value.len - 1])
            continue;
        *ret_us = number * units[i].num / units[i].den; /* 8 digits of hours fit */
        return true;
    }
    return false;
}
