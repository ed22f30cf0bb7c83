/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * sieve.h - which of two multisets' rows can differ, in memory that does not grow with the rows.
 *
 * Rows are known by fingerprints (engine/fingerprint.h) and stand in slots: the first n_before
 * slots are the rows before, the others the rows after. What comes out is a bit for each slot.
 */
#include "engine/fingerprint.h"

typedef struct KnSieve KnSieve;

typedef struct KnSieveOptions {
    uint64_t n_before, n_slots; /* slots may stay empty */
    size_t max_buckets;         /* 16 bytes each; 0 = 2^20 */
} KnSieveOptions;

KN_NODISCARD KnCode kn_sieve_open(const KnSieveOptions *opts, KnSieve **ret, KnErr *err);
KnSieve *kn_sieve_close(KnSieve *sieve);
/** Rows with their slots, each slot once. Any thread. */
KN_NODISCARD KnCode kn_sieve_put(KnSieve *sieve, const uint64_t *slots, const KnFingerprint *rows,
                                 size_t n, KnErr *err);
/** After the last row, by one thread. ret_bits: a bit for each slot (until close), set for all rows
 * whose fingerprints do not come as often before as after, for some others, and for no empty slot.
 */
KN_NODISCARD KnCode kn_sieve_run(KnSieve *sieve, const uint64_t **ret_bits, KnErr *err);
