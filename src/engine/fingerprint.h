/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * fingerprint.h - 128 bits that stand for a row.
 *
 * Rows that are the same have the same fingerprint; two that differ agree with a chance of one in
 * 2^128. "The same" is Iceberg's word, not the engine's: NULL is NULL, NaN is NaN whatever its
 * bits, 0.0 is not -0.0. Fingerprints of different seeds have nothing to do with one another, so
 * whoever draws the seed when the data is already there cannot be fooled by made-up data.
 */
#include "engine/batch.h"

typedef struct KnFingerprint {
    uint64_t a, b; /* each by itself evenly spread over 64 bits */
} KnFingerprint;

/** Of rows 0..rows-1, from the values of n columns in this order. Columns of any type that is not
 * nested; others are KN_E_UNSUPPORTED. Thread-safe. */
KN_NODISCARD KnCode kn_fingerprint_rows(const KnVector *columns, size_t n, size_t rows,
                                        uint64_t seed, KnFingerprint *ret, KnErr *err);
