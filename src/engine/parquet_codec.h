/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* parquet_codec.h - the compression of Parquet's pages (Parquet's Compression.md). Thread-safe. */
#include "base/buf.h"
#include "base/str.h"

/** Replaces what is in out by the plain_len bytes that page is of. KN_E_CORRUPT when it is not,
 * KN_E_UNSUPPORTED for codecs that are not here: LZO, Brotli and the old LZ4 (parquet_lz4.h). */
KN_NODISCARD KnCode kn_pq_page_decompress(int codec, KnStr page, size_t plain_len, KnBuf *out,
                                          KnErr *err);
/** Replaces what is in out by plain, compressed. */
KN_NODISCARD KnCode kn_pq_page_compress(int codec, KnStr plain, KnBuf *out, KnErr *err);
