/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * puffin.h - blobs of Puffin files: deletion vectors (puffin-spec, "deletion-vector-v1").
 *
 * A manifest names a blob by offset and size, so the file's footer is not needed. Thread-safe.
 */
#include "codec/roaring.h"

/** The positions of a deletion-vector-v1 blob (length, magic, bitmap, CRC-32), as ranges.
 * Everything is checked; positions are below 2^63. */
KN_NODISCARD KnCode kn_puffin_vector_decode(KnStr blob, KnRoaringFn fn, void *arg,
                                            uint64_t *ret_cardinality, KnErr *err);
