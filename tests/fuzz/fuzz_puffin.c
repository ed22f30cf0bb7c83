/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_puffin.c - any bytes as a deletion vector, and as the bitmap inside one (checksums keep a
 * fuzzer out). */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "codec/puffin.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

typedef struct Seen {
    uint64_t next, rows;
} Seen;

static KnCode check(void *arg, uint64_t first, uint64_t count, KnErr *err)
{
    (void)err;
    Seen *seen = arg;
    if (count == 0 || (seen->rows > 0 && first < seen->next))
        abort();
    seen->next = first + count;
    seen->rows += count;
    return KN_OK;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    KnStr bytes = {(const char *)data, size};
    uint64_t cardinality = 0;
    Seen seen = {0};
    (void)!kn_puffin_vector_decode(bytes, check, &seen, &cardinality, NULL);
    seen = (Seen){0};
    if (kn_roaring64_decode(bytes, check, &seen, &cardinality, NULL) == KN_OK &&
        cardinality != seen.rows)
        abort();
    return 0;
}
