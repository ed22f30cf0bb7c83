/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * parquet_pages.h - a copy of a Parquet file in which the pages of some columns have other bytes.
 *
 * Rows, row groups, statistics and key-value metadata stay; page indexes, Bloom filters and page
 * checksums are left out. Thread-safe: a copy has no state but its own.
 */
#include "base/str.h"
#include "engine/parquet_meta.h"

enum { KN_PQ_MAX_PAGE = 1 << 30 };

/* PageType */
enum { KN_PQ_DATA_PAGE = 0, KN_PQ_DICTIONARY_PAGE = 2, KN_PQ_DATA_PAGE_V2 = 3 };

/* A page as its header tells. */
typedef struct KnPqPage {
    int type;
    int encoding; /* of data pages' values */
    int64_t plain_size;
    int64_t size;
    int64_t n_values; /* of data pages */
    int64_t n_levels; /* bytes in front of the values that are never compressed (version 2) */
    bool is_compressed;
    const uint8_t *header;
    size_t header_len;
} KnPqPage;

/* What takes its place. */
typedef struct KnPqPageOut {
    KnStr levels; /* as they are, then */
    KnStr values;
    int64_t plain_size; /* levels and values, decompressed */
} KnPqPageOut;

typedef struct KnPqRecode {
    /* The footer has been read; changes to it may be asked for. NULL = none. */
    KnCode (*open)(void *arg, KnPqMeta *meta, KnErr *err);
    /* Are the pages of this column, counted in the row group, recoded? made is what its chunk
     * becomes: codec and leaf type may be set. */
    bool (*wants)(void *arg, size_t column, KnPqChunk *made);
    /* The page's body in other bytes, which live until the next call. */
    KnCode (*page)(void *arg, size_t column, const KnPqPage *page, KnStr body, KnPqPageOut *ret,
                   KnErr *err);
    /* All is written: the chunks as they lie in the new file of this size. NULL = no matter. */
    void (*done)(void *arg, const KnPqMeta *meta, int64_t size);
    void *arg;
} KnPqRecode;

/** A new local file at `to` (replaced if there) that is `from` recoded. Memory: a page, of at most
 * 1 GiB (KN_E_UNSUPPORTED beyond). On failure `to` is removed. */
KN_NODISCARD KnCode kn_pq_pages_copy(const char *from, const char *to, const KnPqRecode *recode,
                                     KnErr *err);
