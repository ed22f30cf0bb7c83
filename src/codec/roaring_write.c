/* SPDX-License-Identifier: Apache-2.0 */
/*
 * roaring_write.c - a plain bitmap in the portable form of 64-bit Roaring bitmaps.
 *
 * A container is 65536 values, 1024 words of the plain bitmap. It is written as runs where that is
 * smallest; else the format leaves no choice: an array up to 4096 values, a bitset above. Empty
 * containers and empty upper halves are left out. Two passes over each 32-bit half: one that counts
 * values and runs, for the header and its offsets, one that writes.
 */
#include <stdbool.h>
#include <stdlib.h>

#include "codec/roaring.h"

enum {
    COOKIE_PLAIN = 12346,
    COOKIE_RUNS = 12347,
    NO_OFFSET_BELOW = 4,
    ARRAY_MAX = 4096,
    BITSET_BYTES = 8192,
    CONTAINER_WORDS = 1024,
    MAX_CONTAINERS = 65536,
};
#define HALF_WORDS ((size_t)CONTAINER_WORDS * MAX_CONTAINERS)

typedef struct Container {
    uint16_t key;
    bool runs; /* is written as runs */
    uint32_t cardinality, n_runs;
    const uint64_t *words;
    size_t n_words; /* the last one may be short */
} Container;

static void put16(KnBuf *buf, uint32_t value)
{
    uint8_t bytes[] = {(uint8_t)value, (uint8_t)(value >> 8)};
    kn_buf_append(buf, bytes, sizeof(bytes));
}

static void put32(KnBuf *buf, uint32_t value)
{
    put16(buf, value & 0xffff);
    put16(buf, value >> 16);
}

static void put64(KnBuf *buf, uint64_t value)
{
    put32(buf, (uint32_t)value);
    put32(buf, (uint32_t)(value >> 32));
}

/* ---- looking ---- */

static uint32_t plain_size(const Container *c)
{
    return c->cardinality <= ARRAY_MAX ? c->cardinality * 2 : BITSET_BYTES;
}

static uint32_t body_size(const Container *c)
{
    return c->runs ? 2 + c->n_runs * 4 : plain_size(c);
}

static void look(Container *c)
{
    uint64_t before = 0; /* the highest bit of the word before */
    for (size_t i = 0; i < c->n_words; i++) {
        uint64_t word = c->words[i];
        c->cardinality += (uint32_t)__builtin_popcountll(word);
        c->n_runs += (uint32_t)__builtin_popcountll(word & ~(word << 1 | before));
        before = word >> 63;
    }
    c->runs = c->cardinality > 0 && 2 + c->n_runs * 4 < plain_size(c);
}

/* The containers that hold something. */
static uint32_t look_at_all(const uint64_t *words, size_t n, Container *ret)
{
    uint32_t found = 0;
    for (size_t at = 0; at < n; at += CONTAINER_WORDS) {
        Container c = {.key = (uint16_t)(at / CONTAINER_WORDS), .words = words + at};
        c.n_words = n - at < CONTAINER_WORDS ? n - at : CONTAINER_WORDS;
        look(&c);
        if (c.cardinality > 0)
            ret[found++] = c;
    }
    return found;
}

/* ---- writing ---- */

static void put_array(KnBuf *buf, const Container *c)
{
    for (size_t i = 0; i < c->n_words; i++) {
        for (uint64_t rest = c->words[i]; rest; rest &= rest - 1)
            put16(buf, (uint32_t)(i * 64 + (size_t)__builtin_ctzll(rest)));
    }
}

static void put_bitset(KnBuf *buf, const Container *c)
{
    for (size_t i = 0; i < CONTAINER_WORDS; i++)
        put64(buf, i < c->n_words ? c->words[i] : 0);
}

/* The first value from `from` on that is in the container (or is not); 65536 = none. */
static uint32_t next_value(const Container *c, uint32_t from, bool in)
{
    for (size_t i = from / 64; i < c->n_words; i++) {
        uint64_t word = in ? c->words[i] : ~c->words[i];
        if (i == from / 64)
            word &= ~UINT64_C(0) << (from % 64);
        if (word)
            return (uint32_t)(i * 64 + (size_t)__builtin_ctzll(word));
    }
    return in ? 65536 : (uint32_t)(c->n_words * 64);
}

static void put_runs(KnBuf *buf, const Container *c)
{
    put16(buf, c->n_runs);
    uint32_t first = next_value(c, 0, true);
    while (first < 65536) {
        uint32_t end = next_value(c, first, false);
        put16(buf, first);
        put16(buf, end - first - 1);
        first = next_value(c, end, true);
    }
}

static bool any_runs(const Container *list, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        if (list[i].runs)
            return true;
    }
    return false;
}

static void put_header(KnBuf *buf, const Container *list, uint32_t n)
{
    size_t start = buf->len;
    bool runs = any_runs(list, n);
    if (runs) {
        put32(buf, COOKIE_RUNS | (n - 1) << 16);
        for (uint32_t i = 0; i < n; i += 8) {
            unsigned flags = 0;
            for (uint32_t k = i; k < n && k < i + 8; k++)
                flags |= (unsigned)list[k].runs << (k - i);
            kn_buf_char(buf, (char)flags);
        }
    } else {
        put32(buf, COOKIE_PLAIN);
        put32(buf, n);
    }
    for (uint32_t i = 0; i < n; i++) {
        put16(buf, list[i].key);
        put16(buf, list[i].cardinality - 1);
    }
    if (runs && n < NO_OFFSET_BELOW)
        return;
    uint32_t offset = (uint32_t)(buf->len - start) + n * 4;
    for (uint32_t i = 0; i < n; i++) {
        put32(buf, offset);
        offset += body_size(&list[i]);
    }
}

static void put_bitmap32(KnBuf *buf, const Container *list, uint32_t n)
{
    put_header(buf, list, n);
    for (uint32_t i = 0; i < n; i++) {
        if (list[i].runs)
            put_runs(buf, &list[i]);
        else if (list[i].cardinality <= ARRAY_MAX)
            put_array(buf, &list[i]);
        else
            put_bitset(buf, &list[i]);
    }
}

uint64_t kn_roaring64_encode(KnBuf *buf, const uint64_t *words, size_t n_words)
{
    Container *list = calloc(MAX_CONTAINERS, sizeof(*list));
    if (!list)
        abort();
    size_t count_at = buf->len;
    uint64_t n_halves = 0;
    uint64_t cardinality = 0;
    put64(buf, 0);
    for (size_t at = 0; at < n_words; at += HALF_WORDS) {
        size_t n = n_words - at < HALF_WORDS ? n_words - at : HALF_WORDS;
        uint32_t found = look_at_all(words + at, n, list);
        if (found == 0)
            continue;
        put32(buf, (uint32_t)(at / HALF_WORDS));
        put_bitmap32(buf, list, found);
        n_halves++;
        for (uint32_t i = 0; i < found; i++)
            cardinality += list[i].cardinality;
    }
    for (size_t i = 0; !buf->failed && i < 8; i++)
        buf->data[count_at + i] = (char)(uint8_t)(n_halves >> (8 * i));
    free(list);
    return cardinality;
}
