/* SPDX-License-Identifier: Apache-2.0 */
/* digest.c - hashes over OpenSSL, hex and base64. OpenSSL failing here means memory is out. */
#include "net/digest.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <stdlib.h>

static void digest(const EVP_MD *kind, KnStr bytes, uint8_t *out)
{
    if (EVP_Digest(bytes.ptr, bytes.len, out, NULL, kind, NULL) != 1)
        abort();
}

void kn_sha256(KnStr bytes, uint8_t out[KN_SHA256_LEN])
{
    digest(EVP_sha256(), bytes, out);
}

void kn_md5(KnStr bytes, uint8_t out[KN_MD5_LEN])
{
    digest(EVP_md5(), bytes, out);
}

void kn_hmac_sha256(KnStr key, KnStr bytes, uint8_t out[KN_SHA256_LEN])
{
    if (!HMAC(EVP_sha256(), key.ptr, (int)key.len, (const unsigned char *)bytes.ptr, bytes.len, out,
              NULL))
        abort();
}

const char *kn_hex(const uint8_t *bytes, size_t len, char *out)
{
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < len; ++i) {
        out[2 * i] = digits[bytes[i] >> 4];
        out[2 * i + 1] = digits[bytes[i] & 15];
    }
    out[2 * len] = '\0';
    return out;
}

const char *kn_base64(const uint8_t *bytes, size_t len, char *out)
{
    (void)EVP_EncodeBlock((unsigned char *)out, bytes, (int)len);
    return out;
}

bool kn_equal_secret(KnStr a, KnStr b)
{
    return a.len == b.len && (a.len == 0 || CRYPTO_memcmp(a.ptr, b.ptr, a.len) == 0);
}
