/* SPDX-License-Identifier: Apache-2.0 */
/*
 * parquet_lz4_page.c - the bytes of a page of codec LZ4.
 *
 * Hadoop's stream is a sequence of blocks: their decompressed size (32 bits, big-endian), then
 * chunks until that many bytes are there, each an LZ4 block behind its compressed size. Nothing
 * marks the stream, so that what it is shows by whether it decompresses to the size the page has.
 */
#include <lz4.h>
#include <stdbool.h>

#include "engine/parquet_lz4.h"

typedef struct Frames {
    const char *at;
    const char *end;
    char *to;
    char *to_end;
    size_t n_chunks;
    KnStr last; /* the last chunk */
} Frames;

static bool size_next(Frames *fr, size_t *ret)
{
    if (fr->end - fr->at < 4)
        return false;
    *ret = 0;
    for (int i = 0; i < 4; i++)
        *ret = *ret << 8 | (uint8_t)*fr->at++;
    return true;
}

/* A chunk of a block of which `left` bytes are still to come; 0 when it is none. */
static size_t chunk_next(Frames *fr, size_t left)
{
    size_t len;
    if (!size_next(fr, &len) || len > (size_t)(fr->end - fr->at))
        return 0;
    int made = LZ4_decompress_safe(fr->at, fr->to, (int)len, (int)left);
    if (made <= 0)
        return 0;
    fr->last = (KnStr){fr->at, len};
    fr->n_chunks++;
    fr->at += len;
    fr->to += made;
    return (size_t)made;
}

static bool frames_decode(Frames *fr)
{
    while (fr->at < fr->end) {
        size_t left;
        if (!size_next(fr, &left) || left > (size_t)(fr->to_end - fr->to))
            return false;
        while (left > 0) {
            size_t made = chunk_next(fr, left);
            if (made == 0)
                return false;
            left -= made;
        }
    }
    return fr->to == fr->to_end;
}

KnCode kn_parquet_lz4_decode(KnStr page, uint8_t *dst, size_t dst_len, KnStr *ret_block, KnErr *err)
{
    char *to = (char *)dst;
    assert(page.len <= LZ4_MAX_INPUT_SIZE && dst_len <= LZ4_MAX_INPUT_SIZE);
    Frames fr = {.at = page.ptr, .end = page.ptr + page.len, .to = to, .to_end = to + dst_len};
    if (frames_decode(&fr)) {
        *ret_block = fr.n_chunks == 1 ? fr.last : (KnStr){0};
        return KN_OK;
    }
    int made = LZ4_decompress_safe(page.ptr, to, (int)page.len, (int)dst_len);
    if (made < 0 || (size_t)made != dst_len)
        return kn_err_set(err, KN_E_CORRUPT,
                          "%zu bytes are neither Hadoop's LZ4 nor an LZ4 block of %zu bytes",
                          page.len, dst_len);
    *ret_block = page;
    return KN_OK;
}
