/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* str.h - KnStr, a view of bytes that somebody else owns; not terminated. Thread-safe values. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef struct KnStr {
    const char *ptr;
    size_t len;
} KnStr;

#define KN_STR_FMT "%.*s"
#define KN_STR_ARG(s)                                                                              \
    (int)((s).len > 400 ? 400 : (s).len), (s).ptr /* long names are cut in messages */
#define KN_STR_LIT(s) ((KnStr){(s), sizeof(s) - 1})

static inline KnStr kn_str(const char *s)
{
    return (KnStr){s, s ? strlen(s) : 0};
}
bool kn_str_eq(KnStr a, KnStr b);
bool kn_str_eq_nocase(KnStr a, KnStr b); /* ASCII only */
bool kn_str_starts_with(KnStr s, KnStr prefix);
bool kn_str_ends_with(KnStr s, KnStr suffix);
/** Whole text as a decimal int64; false on empty, junk, overflow. */
bool kn_str_to_i64(KnStr s, int64_t *ret);
/** Decimal text ("1.5", "-2e3"), finite, never by locale; false on anything else. */
bool kn_str_to_double(KnStr s, double *ret);
/** "64", "64k", "64MiB", "1.5GB" (powers of 1024) as bytes; false on junk or overflow. */
bool kn_str_to_bytes(KnStr s, uint64_t *ret);
/** True when every byte sequence is well-formed UTF-8 (no surrogates, no overlong forms). */
bool kn_str_is_utf8(KnStr s);
/** Bytes of the well-formed UTF-8 sequence that s starts with (1..4); 0 when there is none. */
size_t kn_str_utf8_len(KnStr s);
/** Damerau-Levenshtein distance, for "did you mean"; texts above 64 bytes count as far apart. */
size_t kn_str_distance(KnStr a, KnStr b);
