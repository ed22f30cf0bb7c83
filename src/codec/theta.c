/* SPDX-License-Identifier: Apache-2.0 */
/*
 * theta.c - see theta.h.
 *
 * Hashes are the first half of MurmurHash3_x64_128 with DataSketches' default seed, without the
 * lowest bit. Those below theta are kept in an open hash table; when there are twice as many as
 * wanted, the smaller half stays and theta becomes the smallest hash that does not. Zero marks a
 * free place: a hash of zero, which does not come up, is not kept by DataSketches either.
 */
#include "codec/theta.h"

#include <stdlib.h>
#include <string.h>

enum {
    SEED = 9001,
    KEPT_MAX = 2 * KN_THETA_NOMINAL,
    SLOTS = 4 * KN_THETA_NOMINAL, /* a power of two */
};
#define THETA_MAX INT64_MAX

struct KnTheta {
    uint64_t slots[SLOTS];
    size_t kept;
    uint64_t theta; /* all hashes below it are kept */
};

/* ---- hash ---- */

static uint64_t rotate(uint64_t x, int by)
{
    return x << by | x >> (64 - by);
}

static uint64_t mix_final(uint64_t k)
{
    k ^= k >> 33;
    k *= 0xff51afd7ed558ccdULL;
    k ^= k >> 33;
    k *= 0xc4ceb9fe1a85ec53ULL;
    return k ^ k >> 33;
}

static uint64_t mix_first(uint64_t k)
{
    return rotate(k * 0x87c37b91114253d5ULL, 31) * 0x4cf5ad432745937fULL;
}

static uint64_t mix_second(uint64_t k)
{
    return rotate(k * 0x4cf5ad432745937fULL, 33) * 0x87c37b91114253d5ULL;
}

/* Up to eight bytes, little-endian. */
static uint64_t read_word(const uint8_t *at, size_t len)
{
    uint64_t word = 0;

    for (size_t i = 0; i < len; i++)
        word |= (uint64_t)at[i] << (8 * i);
    return word;
}

void kn_murmur3_128(const void *bytes, size_t len, uint64_t seed, uint64_t ret[2])
{
    const uint8_t *at = bytes;
    uint64_t h1 = seed, h2 = seed;
    size_t left = len;

    for (; left >= 16; at += 16, left -= 16) {
        h1 = (rotate(h1 ^ mix_first(read_word(at, 8)), 27) + h2) * 5 + 0x52dce729;
        h2 = (rotate(h2 ^ mix_second(read_word(at + 8, 8)), 31) + h1) * 5 + 0x38495ab5;
    }
    if (left > 8)
        h2 ^= mix_second(read_word(at + 8, left - 8));
    if (left > 0)
        h1 ^= mix_first(read_word(at, left < 8 ? left : 8));
    h1 ^= len;
    h2 ^= len;
    h1 += h2;
    h2 += h1;
    h1 = mix_final(h1);
    h2 = mix_final(h2);
    h1 += h2;
    ret[0] = h1;
    ret[1] = h2 + h1;
}

/* ---- the sketch ---- */

KnTheta *kn_theta_new(void)
{
    KnTheta *theta = calloc(1, sizeof(*theta));

    if (!theta)
        abort();
    theta->theta = THETA_MAX;
    return theta;
}

KnTheta *kn_theta_free(KnTheta *theta)
{
    free(theta);
    return NULL;
}

static void insert(KnTheta *theta, uint64_t hash)
{
    size_t at = hash & (SLOTS - 1);

    while (theta->slots[at] != 0 && theta->slots[at] != hash)
        at = (at + 1) & (SLOTS - 1);
    theta->kept += theta->slots[at] == 0;
    theta->slots[at] = hash;
}

static int by_value(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return (x > y) - (x < y);
}

static void collect(const KnTheta *theta, uint64_t sorted[KEPT_MAX])
{
    size_t n = 0;

    for (size_t i = 0; i < SLOTS; i++)
        if (theta->slots[i] != 0)
            sorted[n++] = theta->slots[i];
    qsort(sorted, n, sizeof(*sorted), by_value);
}

/* Only the smallest hashes stay. */
static void shrink(KnTheta *theta)
{
    uint64_t sorted[KEPT_MAX];

    if (theta->kept <= KN_THETA_NOMINAL)
        return;
    collect(theta, sorted);
    theta->theta = sorted[KN_THETA_NOMINAL];
    memset(theta->slots, 0, sizeof(theta->slots));
    theta->kept = 0;
    for (size_t i = 0; i < KN_THETA_NOMINAL; i++)
        insert(theta, sorted[i]);
}

void kn_theta_add(KnTheta *theta, KnStr bytes)
{
    uint64_t hash[2];

    if (bytes.len == 0)
        return;
    kn_murmur3_128(bytes.ptr, bytes.len, SEED, hash);
    hash[0] >>= 1;
    if (hash[0] == 0 || hash[0] >= theta->theta)
        return;
    insert(theta, hash[0]);
    if (theta->kept == KEPT_MAX)
        shrink(theta);
}

bool kn_theta_is_exact(const KnTheta *theta)
{
    return theta->theta == THETA_MAX && theta->kept <= KN_THETA_NOMINAL;
}

double kn_theta_estimate(KnTheta *theta)
{
    shrink(theta);
    return (double)theta->kept / ((double)theta->theta / (double)THETA_MAX);
}

/* ---- bytes ---- */

static void put_le(KnBuf *buf, uint64_t value, size_t len)
{
    for (size_t i = 0; i < len; i++)
        kn_buf_char(buf, (char)(uint8_t)(value >> (8 * i)));
}

static uint16_t seed_hash(void)
{
    uint8_t seed[8] = {SEED & 0xff, SEED >> 8};
    uint64_t hash[2];

    kn_murmur3_128(seed, sizeof(seed), 0, hash);
    return (uint16_t)hash[0];
}

/* The first eight bytes: how many longs precede the hashes, version 3, family "compact", and what
 * the sketch is (read-only 2, empty 4, compact 8, ordered 16, a single item 32). */
static void put_preamble(KnBuf *buf, uint8_t longs, uint8_t flags)
{
    const uint8_t head[] = {longs, 3, 3, 0, 0, flags};

    kn_buf_append(buf, head, sizeof(head));
    put_le(buf, flags & 4 ? 0 : seed_hash(), 2);
}

void kn_theta_encode(KnTheta *theta, KnBuf *buf)
{
    static const uint32_t one = 0x3f800000; /* the sampling probability 1.0, as a float */
    uint64_t sorted[KEPT_MAX] = {0};
    bool exact;

    shrink(theta);
    collect(theta, sorted);
    exact = kn_theta_is_exact(theta);
    if (exact && theta->kept == 0) {
        put_preamble(buf, 1, 2 | 4 | 8 | 16);
        return;
    }
    if (exact && theta->kept == 1) {
        put_preamble(buf, 1, 2 | 8 | 16 | 32);
    } else {
        put_preamble(buf, exact ? 2 : 3, 2 | 8 | 16);
        put_le(buf, theta->kept, 4);
        put_le(buf, one, 4);
        if (!exact)
            put_le(buf, theta->theta, 8);
    }
    for (size_t i = 0; i < theta->kept; i++)
        put_le(buf, sorted[i], 8);
}
