/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* digest.h - SHA-256, HMAC-SHA-256 and MD5 over OpenSSL, hex and base64. Thread-safe. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"

enum { KN_SHA256_LEN = 32, KN_MD5_LEN = 16 };

void kn_sha256(KnStr bytes, uint8_t out[KN_SHA256_LEN]);
void kn_hmac_sha256(KnStr key, KnStr bytes, uint8_t out[KN_SHA256_LEN]);
void kn_md5(KnStr bytes, uint8_t out[KN_MD5_LEN]);
/** Lower-case hex, terminated: out has 2 * len + 1 bytes. */
const char *kn_hex(const uint8_t *bytes, size_t len, char *out);
/** Base64 with padding, terminated: out has 4 * ((len + 2) / 3) + 1 bytes. */
const char *kn_base64(const uint8_t *bytes, size_t len, char *out);
/** Equal bytes, in a time that depends on the lengths only (tokens, hashes of secrets). */
bool kn_equal_secret(KnStr a, KnStr b);
