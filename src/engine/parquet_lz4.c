/* SPDX-License-Identifier: Apache-2.0 */
/*
 * parquet_lz4.c - a Parquet file copied with its LZ4 pages put into bare blocks.
 *
 * A page is decompressed (which proves that it is whole) and written: the block it had, where it
 * was one block, else compressed anew. Of a version 2 data page the levels come first and are never
 * compressed. LZ4 makes at most 255 bytes of one, so that a page's claim costs no more than that.
 */
#include "engine/parquet_lz4.h"

#include <assert.h>
#include <lz4.h>

#include "engine/parquet_pages.h"

enum { LZ4_RATIO = 255 };

typedef struct Lz4 {
    KnBuf plain;
    KnBuf block;
} Lz4;

static KnCode plain_compress(Lz4 *lz, size_t plain_len, KnStr *ret, KnErr *err)
{
    int bound = LZ4_compressBound((int)plain_len);
    kn_buf_reset(&lz->block);
    char *to = kn_buf_reserve(&lz->block, (size_t)bound);
    if (!to)
        return kn_buf_check(&lz->block, err);
    int n = LZ4_compress_default(lz->plain.data, to, (int)plain_len, bound);
    assert(n > 0);
    *ret = (KnStr){to, (size_t)n};
    return KN_OK;
}

/* Compressed bytes become one bare block. */
static KnCode block_make(Lz4 *lz, size_t plain_len, KnStr *values, KnErr *err)
{
    if (plain_len / LZ4_RATIO > values->len)
        return kn_err_set(err, KN_E_CORRUPT, "%zu bytes of LZ4 cannot be %zu", values->len,
                          plain_len);
    kn_buf_reset(&lz->plain);
    uint8_t *plain = kn_buf_reserve(&lz->plain, plain_len);
    if (!plain)
        return kn_buf_check(&lz->plain, err);
    KN_TRY(kn_parquet_lz4_decode(*values, plain, plain_len, values, err));
    return values->ptr ? KN_OK : plain_compress(lz, plain_len, values, err);
}

static KnCode page_recode(void *arg, size_t column, const KnPqPage *page, KnStr body,
                          KnPqPageOut *ret, KnErr *err)
{
    (void)column;
    size_t n_levels = (size_t)page->n_levels;
    size_t plain_len = (size_t)page->plain_size - n_levels;
    KnStr values = {body.ptr + n_levels, body.len - n_levels};
    if (page->is_compressed && plain_len > 0)
        KN_TRY(block_make(arg, plain_len, &values, err));
    else if (page->is_compressed)
        /* A block of nothing is one zero; in version 2 no values are no bytes. */
        values = (KnStr){"", page->type == KN_PQ_DATA_PAGE_V2 ? 0 : 1};
    *ret = (KnPqPageOut){{body.ptr, n_levels}, values, page->plain_size};
    return KN_OK;
}

static bool is_lz4(void *arg, size_t column, KnPqChunk *made)
{
    (void)arg;
    (void)column;
    bool is = made->codec == KN_PQ_LZ4;
    if (is)
        made->codec = KN_PQ_LZ4_RAW;
    return is;
}

KnCode kn_parquet_lz4_copy(const char *from, const char *to, KnErr *err)
{
    Lz4 lz = {0};
    kn_buf_init(&lz.plain, KN_PQ_MAX_PAGE);
    kn_buf_init(&lz.block, (size_t)KN_PQ_MAX_PAGE * 2);
    KnPqRecode recode = {.wants = is_lz4, .page = page_recode, .arg = &lz};
    KnCode code = kn_pq_pages_copy(from, to, &recode, err);
    kn_buf_done(&lz.plain);
    kn_buf_done(&lz.block);
    return code;
}
