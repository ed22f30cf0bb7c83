/* SPDX-License-Identifier: Apache-2.0 */
/*
 * value_number.c - decimals, floats, UUIDs and bytes as text, exactly, whatever the locale says.
 */
#include <ctype.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "iceberg/schema/value_internal.h"

/* 10^38 is the first number beyond a decimal. */
static unsigned __int128 power_of_ten(int n)
{
    unsigned __int128 value = 1;

    while (n-- > 0)
        value *= 10;
    return value;
}

static unsigned __int128 magnitude(__int128 value)
{
    return value < 0 ? -(unsigned __int128)value : (unsigned __int128)value;
}

bool kn_decimal_fits(__int128 unscaled, int32_t precision)
{
    return magnitude(unscaled) < power_of_ten(precision < 38 ? precision : 38);
}

void kn_decimal_format(KnBuf *buf, __int128 unscaled, int32_t scale)
{
    unsigned __int128 rest = magnitude(unscaled);
    char text[48];
    size_t at = sizeof(text);

    for (int n = 0; rest > 0 || n <= scale; n++) {
        if (n == scale && scale > 0)
            text[--at] = '.';
        text[--at] = (char)('0' + (int)(rest % 10));
        rest /= 10;
    }
    if (unscaled < 0)
        text[--at] = '-';
    kn_buf_append(buf, text + at, sizeof(text) - at);
}

/* Digits with at most one point, and how many were behind it; rest = what follows. */
static bool eat_decimal_digits(KnStr *s, unsigned __int128 *ret, int *ret_scale)
{
    unsigned __int128 value = 0;
    bool point = false, any = false;
    int scale = 0;

    for (; s->len > 0; s->ptr++, s->len--) {
        char c = s->ptr[0];
        if (c == '.' && !point) {
            point = true;
            continue;
        }
        if (!isdigit((unsigned char)c))
            break;
        if (value >= power_of_ten(38))
            return false;
        value = value * 10 + (unsigned)(c - '0');
        scale += point;
        any = true;
    }
    *ret = value;
    *ret_scale = scale;
    return any;
}

static bool eat_exponent(KnStr s, int *ret)
{
    int64_t value;

    *ret = 0;
    if (s.len == 0)
        return true;
    if (s.ptr[0] != 'e' && s.ptr[0] != 'E')
        return false;
    s.ptr++;
    s.len--;
    if (s.len > 1 && s.ptr[0] == '+' && isdigit((unsigned char)s.ptr[1])) {
        s.ptr++;
        s.len--;
    }
    if (!kn_str_to_i64(s, &value) || value < -1000 || value > 1000)
        return false;
    *ret = (int)value;
    return true;
}

bool kn_decimal_parse(KnStr text, int32_t precision, int32_t scale, __int128 *ret)
{
    unsigned __int128 value;
    int digits, exponent;
    bool negative = text.len > 0 && text.ptr[0] == '-';

    if (text.len > 0 && (negative || text.ptr[0] == '+')) {
        text.ptr++;
        text.len--;
    }
    if (!eat_decimal_digits(&text, &value, &digits) || !eat_exponent(text, &exponent))
        return false;
    for (int shift = scale - digits + exponent; shift != 0 && value != 0;) {
        if (shift > 0 && value < power_of_ten(38)) {
            value *= 10;
            shift--;
        } else if (shift < 0 && value % 10 == 0) {
            value /= 10;
            shift++;
        } else {
            return false;
        }
    }
    if (value >= power_of_ten(precision))
        return false;
    *ret = negative ? -(__int128)value : (__int128)value;
    return true;
}

size_t kn_decimal_to_bytes(__int128 unscaled, uint8_t out[16])
{
    unsigned __int128 bits = (unsigned __int128)unscaled;
    size_t len = 16;

    for (size_t i = 16; i-- > 0; bits >>= 8)
        out[i] = (uint8_t)bits;
    while (len > 1) {
        uint8_t first = out[16 - len], next = out[17 - len];
        if (!((first == 0 && next < 0x80) || (first == 0xff && next >= 0x80)))
            break;
        len--;
    }
    return len;
}

void kn_double_format(KnBuf *buf, double value, bool single)
{
    char text[40];

    if (isnan(value) || isinf(value)) {
        kn_buf_text(buf, isnan(value) ? "NaN" : value < 0 ? "-Infinity" : "Infinity");
        return;
    }
    /* The fewest digits that all values of normal size may need; Java shows at least two. */
    double least_normal = single ? (double)FLT_MIN : DBL_MIN;
    int first = fabs(value) < least_normal ? 2 : single ? 6 : 15;
    for (int precision = first; precision <= (single ? 9 : 17); precision++) {
        double back;
        snprintf(text, sizeof(text), "%.*g", precision, value);
        for (char *p = text; *p; p++) /* a locale's comma */
            if (*p == ',')
                *p = '.';
        if (kn_str_to_double(kn_str(text), &back) &&
            (single ? (float)back == (float)value : back == value))
            break;
    }
    kn_buf_text(buf, text);
    if (!strpbrk(text, ".e"))
        kn_buf_text(buf, ".0");
}

void kn_hex_format(KnBuf *buf, KnStr bytes, bool upper)
{
    const char *digits = upper ? "0123456789ABCDEF" : "0123456789abcdef";

    for (size_t i = 0; i < bytes.len; i++) {
        uint8_t byte = (uint8_t)bytes.ptr[i];
        kn_buf_char(buf, digits[byte >> 4]);
        kn_buf_char(buf, digits[byte & 15]);
    }
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

bool kn_hex_parse(KnStr text, uint8_t *out)
{
    if (text.len % 2 != 0)
        return false;
    for (size_t i = 0; i < text.len; i += 2) {
        int high = hex_digit(text.ptr[i]), low = hex_digit(text.ptr[i + 1]);
        if (high < 0 || low < 0)
            return false;
        out[i / 2] = (uint8_t)(high << 4 | low);
    }
    return true;
}

void kn_uuid_format(KnBuf *buf, KnStr bytes)
{
    for (size_t i = 0; i < bytes.len; i++) {
        if (i == 4 || i == 6 || i == 8 || i == 10)
            kn_buf_char(buf, '-');
        kn_hex_format(buf, (KnStr){bytes.ptr + i, 1}, false);
    }
}

bool kn_uuid_parse(KnStr text, uint8_t out[16])
{
    char hex[32] = {0};
    size_t n = 0;

    if (text.len != 36)
        return false;
    for (size_t i = 0; i < text.len; i++) {
        bool dash = i == 8 || i == 13 || i == 18 || i == 23;
        if (dash != (text.ptr[i] == '-'))
            return false;
        if (!dash)
            hex[n++] = text.ptr[i];
    }
    return kn_hex_parse((KnStr){hex, sizeof(hex)}, out);
}
