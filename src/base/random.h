/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* random.h - getrandom-backed ids, and a seeded generator for jitter and tests. */
#include <stdint.h>

/** A positive int64 for snapshot ids, as Iceberg's writers draw them. Thread-safe. */
int64_t kn_random_id(void);
/** Lower-case text form of a new UUID, version 4 (time-ordered version 7 for file names). */
const char *kn_random_uuid4(char out[37]);
const char *kn_random_uuid7(char out[37]);

typedef struct KnRng {
    uint64_t state;
} KnRng;
uint64_t kn_rng_next(KnRng *rng);                  /* splitmix64 */
uint64_t kn_rng_below(KnRng *rng, uint64_t bound); /* 0..bound-1; bound 0 gives 0 */
double kn_rng_unit(KnRng *rng);                    /* [0,1) */
