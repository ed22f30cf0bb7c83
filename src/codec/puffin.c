/* SPDX-License-Identifier: Apache-2.0 */
/* puffin.c - the envelope of a deletion vector: length and CRC-32 big-endian, bitmap inside. */
#include "codec/puffin.h"

#include <string.h>
#include <zlib.h>

enum { LENGTH_BYTES = 4, MAGIC_BYTES = 4, CRC_BYTES = 4 };

static uint32_t be32(const uint8_t *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

typedef struct Checked {
    KnRoaringFn fn;
    void *arg;
} Checked;

static KnCode check_position(void *arg, uint64_t first, uint64_t count, KnErr *err)
{
    const Checked *checked = arg;
    if (first > INT64_MAX)
        return kn_err_set(err, KN_E_CORRUPT, "deletion vector: a position is beyond 2^63");
    return checked->fn(checked->arg, first, count, err);
}

KnCode kn_puffin_vector_decode(KnStr blob, KnRoaringFn fn, void *arg, uint64_t *ret_cardinality,
                               KnErr *err)
{
    static const uint8_t magic[MAGIC_BYTES] = {0xD1, 0xD3, 0x39, 0x64};
    const uint8_t *bytes = (const uint8_t *)blob.ptr;
    if (blob.len < LENGTH_BYTES + MAGIC_BYTES + CRC_BYTES || blob.len > INT32_MAX)
        return kn_err_set(err, KN_E_CORRUPT, "deletion vector: %zu bytes cannot be one", blob.len);
    size_t inner = blob.len - LENGTH_BYTES - CRC_BYTES;
    if (be32(bytes) != inner)
        return kn_err_set(err, KN_E_CORRUPT, "deletion vector: claims %u bytes where there are %zu",
                          be32(bytes), inner);
    if (memcmp(bytes + LENGTH_BYTES, magic, MAGIC_BYTES) != 0)
        return kn_err_set(err, KN_E_CORRUPT, "deletion vector: wrong magic number");
    uint32_t crc = (uint32_t)crc32(0, bytes + LENGTH_BYTES, (uInt)inner);
    if (crc != be32(bytes + LENGTH_BYTES + inner))
        return kn_err_set(err, KN_E_CORRUPT, "deletion vector: checksum does not match");
    Checked checked = {.fn = fn, .arg = arg};
    KnStr bitmap = {blob.ptr + LENGTH_BYTES + MAGIC_BYTES, inner - MAGIC_BYTES};
    return kn_roaring64_decode(bitmap, check_position, &checked, ret_cardinality, err);
}
