/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * roaring.h - 64-bit Roaring bitmaps in their portable form, read strictly and written small.
 *
 * The form (RoaringFormatSpec, "extension for 64-bit implementations"): a count, then for each
 * value of the upper 32 bits the key and a 32-bit bitmap. Bytes are hostile: order, cardinalities,
 * offsets and lengths are all checked, and nothing is allocated. Thread-safe.
 */
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"

/** Takes [first, first + count), in ascending order; ranges do not touch unless they lie in
 * different containers. count > 0. */
typedef KnCode (*KnRoaringFn)(void *arg, uint64_t first, uint64_t count, KnErr *err);

/** All of bytes must be one bitmap. KN_E_CORRUPT says what is wrong where; ranges before that may
 * have been given to fn. ret_cardinality: number of values. */
KN_NODISCARD KnCode kn_roaring64_decode(KnStr bytes, KnRoaringFn fn, void *arg,
                                        uint64_t *ret_cardinality, KnErr *err);

/** Appends the bitmap of all values i whose bit is set (bit i % 64 of words[i / 64]); returns how
 * many there are. Look at the buffer's failure after. */
uint64_t kn_roaring64_encode(KnBuf *buf, const uint64_t *words, size_t n_words);
