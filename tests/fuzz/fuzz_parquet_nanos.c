/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_parquet_nanos.c - footers of Parquet files: the walk stays inside and keeps the length. */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "engine/parquet_nanos.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t *footer = malloc(size + 1);
    if (!footer)
        return 0;
    memcpy(footer, data, size);
    size_t patched = 0;
    size_t again = 0;
    if (kn_parquet_nanos_patch(footer, size, &patched, NULL) == KN_OK) {
        /* What is patched stays readable, and nothing is left to patch. */
        KnCode code = kn_parquet_nanos_patch(footer, size, &again, NULL);
        assert(code == KN_OK && again == 0);
        (void)code;
    }
    free(footer);
    return 0;
}
