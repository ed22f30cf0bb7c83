/* SPDX-License-Identifier: Apache-2.0 */
/*
 * roaring.c - a cursor over the portable form, container by container.
 *
 * Stricter than the readers of the reference implementation, which asks its users to validate
 * untrusted bytes: keys and values must ascend, a container's cardinality must be its contents',
 * the offset header must point at what follows, and no byte may be left over.
 */
#include "codec/roaring.h"

#include <inttypes.h>
#include <stdbool.h>

enum {
    COOKIE_PLAIN = 12346,
    COOKIE_RUNS = 12347,
    NO_OFFSET_BELOW = 4, /* with runs, fewer containers have no offset header */
    ARRAY_MAX = 4096,
    BITMAP_BYTES = 8192,
    MAX_CONTAINERS = 65536,
};

typedef struct Cursor {
    const uint8_t *start, *pos, *end;
    KnErr *err;
} Cursor;

typedef struct Sink {
    KnRoaringFn fn;
    void *arg;
    uint64_t total;
} Sink;

/* The header of one 32-bit bitmap: views into the bytes. */
typedef struct Header {
    uint32_t n;
    const uint8_t *run_flags; /* NULL = no run containers */
    const uint8_t *descriptions;
    const uint8_t *offsets; /* NULL = none */
    const uint8_t *start;
} Header;

static KnCode corrupt(const Cursor *cur, const char *what)
{
    return kn_err_set(cur->err, KN_E_CORRUPT, "bitmap, byte %zu: %s",
                      (size_t)(cur->pos - cur->start), what);
}

static KnCode take(Cursor *cur, size_t n, const uint8_t **ret)
{
    if ((size_t)(cur->end - cur->pos) < n)
        return corrupt(cur, "truncated");
    *ret = cur->pos;
    cur->pos += n;
    return KN_OK;
}

static uint16_t le16(const uint8_t *p)
{
    return (uint16_t)(p[0] | p[1] << 8);
}

static uint32_t le32(const uint8_t *p)
{
    return (uint32_t)le16(p) | (uint32_t)le16(p + 2) << 16;
}

static uint64_t le64(const uint8_t *p)
{
    return (uint64_t)le32(p) | (uint64_t)le32(p + 4) << 32;
}

static KnCode emit(Sink *sink, uint64_t first, uint64_t count, KnErr *err)
{
    sink->total += count;
    return sink->fn(sink->arg, first, count, err);
}

/* ---- containers ---- */

static KnCode read_array(Cursor *cur, uint64_t base, uint32_t cardinality, Sink *sink)
{
    const uint8_t *values = NULL;
    KN_TRY(take(cur, (size_t)cardinality * 2, &values));
    uint32_t first = le16(values);
    uint32_t next = first + 1;
    for (uint32_t i = 1; i < cardinality; i++) {
        uint32_t value = le16(values + (size_t)i * 2);
        if (value < next)
            return corrupt(cur, "values of an array do not ascend");
        if (value > next) {
            KN_TRY(emit(sink, base + first, next - first, cur->err));
            first = value;
        }
        next = value + 1;
    }
    return emit(sink, base + first, next - first, cur->err);
}

static KnCode read_bitset(Cursor *cur, uint64_t base, uint32_t cardinality, Sink *sink)
{
    const uint8_t *words = NULL;
    KN_TRY(take(cur, BITMAP_BYTES, &words));
    uint32_t seen = 0;
    for (size_t i = 0; i < BITMAP_BYTES / 8; i++)
        seen += (uint32_t)__builtin_popcountll(le64(words + i * 8));
    if (seen != cardinality)
        return corrupt(cur, "a bitset's cardinality is not its own");
    for (uint32_t value = 0; value < 65536;) {
        uint64_t rest = le64(words + (size_t)(value / 64) * 8) >> (value % 64);
        if (rest == 0) {
            value = (value / 64 + 1) * 64;
            continue;
        }
        value += (uint32_t)__builtin_ctzll(rest);
        uint32_t first = value;
        while (value < 65536 && words[value / 8] >> (value % 8) & 1)
            value++;
        KN_TRY(emit(sink, base + first, value - first, cur->err));
    }
    return KN_OK;
}

static KnCode read_runs(Cursor *cur, uint64_t base, uint32_t cardinality, Sink *sink)
{
    const uint8_t *count = NULL;
    const uint8_t *runs = NULL;
    KN_TRY(take(cur, 2, &count));
    uint32_t n = le16(count);
    KN_TRY(take(cur, (size_t)n * 4, &runs));
    uint32_t next = 0;
    uint32_t seen = 0;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t first = le16(runs + (size_t)i * 4);
        uint32_t length = (uint32_t)le16(runs + (size_t)i * 4 + 2) + 1;
        if ((i > 0 && first < next) || first + length > 65536)
            return corrupt(cur, "runs overlap or pass the end of their container");
        KN_TRY(emit(sink, base + first, length, cur->err));
        next = first + length;
        seen += length;
    }
    return seen == cardinality ? KN_OK : corrupt(cur, "runs do not have their cardinality");
}

/* ---- 32-bit bitmaps ---- */

static KnCode read_header(Cursor *cur, Header *ret)
{
    Header h = {.start = cur->pos};
    const uint8_t *word = NULL;
    KN_TRY(take(cur, 4, &word));
    uint32_t cookie = le32(word);
    if (cookie == COOKIE_PLAIN) {
        KN_TRY(take(cur, 4, &word));
        h.n = le32(word);
    } else if ((cookie & 0xffff) == COOKIE_RUNS) {
        h.n = (cookie >> 16) + 1;
        KN_TRY(take(cur, (h.n + 7) / 8, &h.run_flags));
    } else {
        return corrupt(cur, "not a Roaring bitmap");
    }
    if (h.n > MAX_CONTAINERS)
        return corrupt(cur, "over 65536 containers");
    KN_TRY(take(cur, (size_t)h.n * 4, &h.descriptions));
    if (!h.run_flags || h.n >= NO_OFFSET_BELOW)
        KN_TRY(take(cur, (size_t)h.n * 4, &h.offsets));
    *ret = h;
    return KN_OK;
}

static KnCode read_bitmap32(Cursor *cur, uint64_t high, Sink *sink)
{
    Header h;
    KN_TRY(read_header(cur, &h));
    uint32_t next_key = 0;
    for (uint32_t i = 0; i < h.n; i++) {
        uint32_t key = le16(h.descriptions + (size_t)i * 4);
        uint32_t cardinality = (uint32_t)le16(h.descriptions + (size_t)i * 4 + 2) + 1;
        if (key < next_key)
            return corrupt(cur, "containers do not ascend");
        if (h.offsets && le32(h.offsets + (size_t)i * 4) != (uint64_t)(cur->pos - h.start))
            return corrupt(cur, "a container is not where its offset says");
        next_key = key + 1;
        uint64_t base = high << 32 | (uint64_t)key << 16;
        bool runs = h.run_flags && h.run_flags[i / 8] >> (i % 8) & 1;
        if (runs)
            KN_TRY(read_runs(cur, base, cardinality, sink));
        else if (cardinality <= ARRAY_MAX)
            KN_TRY(read_array(cur, base, cardinality, sink));
        else
            KN_TRY(read_bitset(cur, base, cardinality, sink));
    }
    return KN_OK;
}

KnCode kn_roaring64_decode(KnStr bytes, KnRoaringFn fn, void *arg, uint64_t *ret_cardinality,
                           KnErr *err)
{
    const uint8_t *start = (const uint8_t *)bytes.ptr;
    Cursor cur = {.start = start, .pos = start, .end = start + bytes.len, .err = err};
    Sink sink = {.fn = fn, .arg = arg};
    const uint8_t *word = NULL;
    KN_TRY(take(&cur, 8, &word));
    uint64_t n = le64(word);
    uint64_t next_key = 0;
    for (uint64_t i = 0; i < n; i++) {
        KN_TRY(take(&cur, 4, &word));
        uint32_t key = le32(word);
        if (key < next_key)
            return corrupt(&cur, "keys do not ascend");
        next_key = (uint64_t)key + 1;
        KN_TRY(read_bitmap32(&cur, key, &sink));
    }
    if (cur.pos != cur.end)
        return corrupt(&cur, "bytes behind the end");
    *ret_cardinality = sink.total;
    return KN_OK;
}
