/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hash.c - XXH64 from libxxhash, and murmur3_x86_32 with seed 0 as Iceberg's bucket transform wants
 * it (spec, appendix B: 32-bit integers are hashed as 8-byte little-endian longs by the caller).
 */
#include "base/hash.h"

#include <endian.h>
#include <string.h>
#include <xxhash.h>

uint64_t kn_hash64(const void *bytes, size_t len, uint64_t seed)
{
    return XXH64(len ? bytes : "", len, seed);
}

static uint32_t rotate_left(uint32_t x, int n)
{
    return (x << n) | (x >> (32 - n));
}

static uint32_t mix(uint32_t k)
{
    return rotate_left(k * 0xcc9e2d51U, 15) * 0x1b873593U;
}

int32_t kn_murmur3_32(const void *bytes, size_t len)
{
    const unsigned char *p = bytes;
    uint32_t h = 0;
    size_t whole = len & ~(size_t)3;
    for (size_t i = 0; i < whole; i += 4) {
        uint32_t k;
        memcpy(&k, p + i, 4);
        h = rotate_left(h ^ mix(le32toh(k)), 13) * 5 + 0xe6546b64U;
    }
    uint32_t tail = 0;
    for (size_t i = len; i > whole; --i)
        tail = tail << 8 | p[i - 1];
    h ^= mix(tail);
    h ^= (uint32_t)len;
    h = (h ^ h >> 16) * 0x85ebca6bU;
    h = (h ^ h >> 13) * 0xc2b2ae35U;
    return (int32_t)(h ^ h >> 16);
}

const char *kn_hex64(uint64_t value, char out[17])
{
    for (int i = 15; i >= 0; --i, value >>= 4)
        out[i] = "0123456789abcdef"[value & 15];
    out[16] = '\0';
    return out;
}
