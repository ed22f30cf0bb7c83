/* SPDX-License-Identifier: Apache-2.0 */
/*
 * str.c - looking at text: comparing, numbers, sizes, UTF-8, edit distance.
 *
 * Numbers are read whole or not at all, and never with the process's locale. No allocation but the
 * one "C" locale object, which lives as long as the process.
 */
#include "base/str.h"

#include <errno.h>
#include <locale.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>

enum { MAX_NUMBER = 512, MAX_DISTANCE = 64 };

bool kn_str_eq(KnStr a, KnStr b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.ptr, b.ptr, a.len) == 0);
}

static unsigned char ascii_lower(char c)
{
    return (unsigned char)(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
}

bool kn_str_eq_nocase(KnStr a, KnStr b)
{
    if (a.len != b.len)
        return false;
    for (size_t i = 0; i < a.len; ++i)
        if (ascii_lower(a.ptr[i]) != ascii_lower(b.ptr[i]))
            return false;
    return true;
}

bool kn_str_starts_with(KnStr s, KnStr prefix)
{
    return s.len >= prefix.len && kn_str_eq((KnStr){s.ptr, prefix.len}, prefix);
}

bool kn_str_ends_with(KnStr s, KnStr suffix)
{
    if (s.len < suffix.len)
        return false;
    if (suffix.len == 0)
        return true;
    return kn_str_eq((KnStr){s.ptr + (s.len - suffix.len), suffix.len}, suffix);
}

bool kn_str_to_i64(KnStr s, int64_t *ret)
{
    size_t i = s.len && s.ptr[0] == '-';
    if (i == s.len)
        return false;
    bool negative = i == 1;
    int64_t v = 0; /* built downwards: INT64_MIN has no positive twin */
    for (; i < s.len; ++i) {
        int digit = s.ptr[i] - '0';
        if (digit < 0 || digit > 9 || __builtin_mul_overflow(v, 10, &v) ||
            __builtin_sub_overflow(v, digit, &v))
            return false;
    }
    if (!negative && v == INT64_MIN)
        return false;
    *ret = negative ? v : -v;
    return true;
}

static locale_t c_locale;

static void c_locale_make(void)
{
    c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (!c_locale)
        abort();
}

bool kn_str_to_double(KnStr s, double *ret)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    char text[MAX_NUMBER];
    if (s.len == 0 || s.len >= sizeof(text))
        return false;
    /* strtod also takes blanks, hexadecimal, "inf" and "nan" */
    for (size_t i = 0; i < s.len; ++i)
        if (!((s.ptr[i] >= '0' && s.ptr[i] <= '9') || (s.ptr[i] && strchr("+-.eE", s.ptr[i]))))
            return false;
    memcpy(text, s.ptr, s.len);
    text[s.len] = '\0';
    if (pthread_once(&once, c_locale_make) != 0)
        return false;
    char *end;
    double v = strtod_l(text, &end, c_locale);
    if (end != text + s.len || !isfinite(v))
        return false;
    *ret = v;
    return true;
}

/* The power of 1024 that a unit stands for, or -1. */
static int unit_shift(KnStr unit)
{
    static const char letters[] = "kmgtpe";
    if (unit.len == 0 || kn_str_eq_nocase(unit, KN_STR_LIT("b")))
        return 0;
    const char *letter = memchr(letters, ascii_lower(unit.ptr[0]), sizeof(letters) - 1);
    KnStr rest = {unit.ptr + 1, unit.len - 1};
    if (!letter || !(rest.len == 0 || kn_str_eq_nocase(rest, KN_STR_LIT("b")) ||
                     kn_str_eq_nocase(rest, KN_STR_LIT("ib"))))
        return -1;
    return 10 * (int)(letter - letters + 1);
}

/* Digits from *pos on, at most 18 of them counted into *ret; false when there is none or too many.
 */
static bool digits_take(KnStr s, size_t *pos, uint64_t *ret, uint64_t *ret_scale)
{
    size_t start = *pos;
    *ret = 0;
    *ret_scale = 1;
    for (; *pos < s.len && s.ptr[*pos] >= '0' && s.ptr[*pos] <= '9'; ++*pos) {
        if (*pos - start >= 18)
            return false;
        *ret = *ret * 10 + (uint64_t)(s.ptr[*pos] - '0');
        *ret_scale *= 10;
    }
    return *pos > start;
}

bool kn_str_to_bytes(KnStr s, uint64_t *ret)
{
    size_t pos = 0;
    uint64_t whole, fraction = 0, scale = 1, unused;
    if (!digits_take(s, &pos, &whole, &unused))
        return false;
    if (pos < s.len && s.ptr[pos] == '.') {
        ++pos;
        if (!digits_take(s, &pos, &fraction, &scale))
            return false;
    }
    if (pos < s.len && s.ptr[pos] == ' ')
        ++pos;
    int shift = unit_shift((KnStr){s.ptr + pos, s.len - pos});
    if (shift < 0)
        return false;
    unsigned __int128 v = (unsigned __int128)whole << shift;
    v += ((unsigned __int128)fraction << shift) / scale;
    if (v > UINT64_MAX)
        return false;
    *ret = (uint64_t)v;
    return true;
}

/* Length of the well-formed sequence at p (Unicode 15, table 3-7), or 0. */
static size_t utf8_len(const unsigned char *p, size_t left)
{
    unsigned char c = p[0];
    if (c < 0x80)
        return 1;
    if (c < 0xc2 || c > 0xf4)
        return 0;
    size_t n = c < 0xe0 ? 2 : c < 0xf0 ? 3 : 4;
    if (left < n)
        return 0;
    unsigned char low = c == 0xe0 ? 0xa0 : c == 0xf0 ? 0x90 : 0x80;
    unsigned char high = c == 0xed ? 0x9f : c == 0xf4 ? 0x8f : 0xbf;
    if (p[1] < low || p[1] > high)
        return 0;
    for (size_t i = 2; i < n; ++i)
        if ((p[i] & 0xc0) != 0x80)
            return 0;
    return n;
}

size_t kn_str_utf8_len(KnStr s)
{
    return s.len ? utf8_len((const unsigned char *)s.ptr, s.len) : 0;
}

bool kn_str_is_utf8(KnStr s)
{
    const unsigned char *p = (const unsigned char *)s.ptr;
    for (size_t i = 0, n; i < s.len; i += n) {
        n = utf8_len(p + i, s.len - i);
        if (n == 0)
            return false;
    }
    return true;
}

static size_t min3(size_t a, size_t b, size_t c)
{
    size_t m = a < b ? a : b;
    return m < c ? m : c;
}

size_t kn_str_distance(KnStr a, KnStr b)
{
    if (a.len > MAX_DISTANCE || b.len > MAX_DISTANCE)
        return SIZE_MAX;
    size_t rows[3][MAX_DISTANCE + 1]; /* two rows back, one back, this */
    size_t *back2 = rows[0], *back = rows[1], *row = rows[2];
    memset(rows, 0, sizeof(rows));
    for (size_t j = 0; j <= b.len; ++j)
        row[j] = j;
    for (size_t i = 1; i <= a.len; ++i) {
        size_t *spare = back2;
        back2 = back;
        back = row;
        row = spare;
        row[0] = i;
        for (size_t j = 1; j <= b.len; ++j) {
            size_t cost = a.ptr[i - 1] != b.ptr[j - 1];
            row[j] = min3(back[j] + 1, row[j - 1] + 1, back[j - 1] + cost);
            if (i > 1 && j > 1 && a.ptr[i - 1] == b.ptr[j - 2] && a.ptr[i - 2] == b.ptr[j - 1])
                row[j] = min3(row[j], row[j], back2[j - 2] + 1);
        }
    }
    return row[b.len];
}
