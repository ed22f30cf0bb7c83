/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * parquet_lz4.h - how files of Parquet's old LZ4 codec are read.
 *
 * Codec 5 (LZ4) is what Java writers make of `compression-codec=lz4`: LZ4 blocks in the frames of
 * Hadoop's BlockCompressorStream. Other writers put bare LZ4 blocks under the same number. The
 * engine refuses it whatever is inside; it reads codec 7 (LZ4_RAW), which is a bare block. So a
 * copy is made in which these pages are bare blocks: same row groups, pages, rows, statistics, key
 * values. Parquet's Compression.md, "LZ4" and "LZ4_RAW".
 */
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"

/** Decompresses a page of codec LZ4 into dst, of which it fills all dst_len bytes. Tries Hadoop's
 * frames, then a bare block, as Arrow's readers do. KN_E_CORRUPT when it is neither. ret_block: the
 * one block in it, a view of page; ptr is NULL when there are several. Sizes up to 1 GiB.
 * Thread-safe. */
KN_NODISCARD KnCode kn_parquet_lz4_decode(KnStr page, uint8_t *dst, size_t dst_len,
                                          KnStr *ret_block, KnErr *err);

/** A new local file at `to` (replaced if there) that is `from` with codec LZ4_RAW where that has
 * LZ4; chunks of other codecs are taken over as they are. Page indexes, Bloom filters and page
 * checksums are left out. Memory: a page. KN_E_UNSUPPORTED for encrypted files, pages above 1 GiB.
 * On failure `to` is removed. Thread-safe. */
KN_NODISCARD KnCode kn_parquet_lz4_copy(const char *from, const char *to, KnErr *err);
