/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* hash.h - XXH64 (stable across machines and versions; recorded as "xxh64" where it is persisted),
 * and Iceberg's bucket hash (murmur3_x86_32, seed 0; spec appendix B). Thread-safe. */
#include <stddef.h>
#include <stdint.h>

uint64_t kn_hash64(const void *bytes, size_t len, uint64_t seed);
int32_t kn_murmur3_32(const void *bytes, size_t len);
const char *kn_hex64(uint64_t value, char out[17]);
