/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * theta.h - Theta sketches: how many distinct values there are, from bounded memory
 * (puffin-spec: "apache-datasketches-theta-v1").
 *
 * A sketch holds the smallest 64-bit hashes that it was given, at most KN_THETA_NOMINAL of them at
 * its end; until there are more, the count is exact. What kn_theta_encode() writes is a compact
 * sketch as Apache DataSketches reads it. One thread at a time.
 */
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/str.h"

#define KN_THETA_NOMINAL 4096

typedef struct KnTheta KnTheta;
KnTheta *kn_theta_new(void);
KnTheta *kn_theta_free(KnTheta *theta); /* accepts NULL, returns NULL */
/** A value's bytes. Empty ones do not count, as in DataSketches. */
void kn_theta_add(KnTheta *theta, KnStr bytes);
/** The number of distinct values; standard error about 1.6 % when it is no longer exact. */
double kn_theta_estimate(KnTheta *theta);
bool kn_theta_is_exact(const KnTheta *theta);
void kn_theta_encode(KnTheta *theta, KnBuf *buf);

/** MurmurHash3_x64_128, as two halves. */
void kn_murmur3_128(const void *bytes, size_t len, uint64_t seed, uint64_t ret[2]);
