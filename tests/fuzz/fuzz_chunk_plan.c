/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_chunk_plan.c - any bytes as a recorded plan: what is taken fulfils the rules and keeps its
 * text's meaning when written again. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "cdc/chunk_plan.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const KnChunkPlan *plan)
{
    int64_t rows = 0;
    for (size_t i = 0; i < plan->n_chunks; ++i) {
        const KnChunk *chunk = &plan->chunks[i];
        if (chunk->rows < 1 || chunk->number != (int64_t)i)
            abort();
        for (size_t k = 0; k < chunk->n_ranges; ++k)
            if (chunk->ranges[k].file >= plan->n_files ||
                chunk->ranges[k].first_row + chunk->ranges[k].n_rows >
                    plan->files[chunk->ranges[k].file].rows)
                abort();
        rows += chunk->rows;
    }
    if (rows != plan->upserts + plan->deletes)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    KN_ARENA_AUTO arena = kn_arena_new(4096);
    KnChunkPlan *plan, *again;
    if (kn_chunk_plan_parse(arena, (KnStr){(const char *)data, size}, &plan, NULL) != KN_OK)
        return 0;
    check(plan);
    KN_BUF_AUTO text;
    kn_buf_init(&text, (size_t)64 << 20);
    kn_chunk_plan_format(&text, plan);
    if (kn_buf_check(&text, NULL) != KN_OK)
        return 0;
    if (kn_chunk_plan_parse(arena, (KnStr){text.data, text.len}, &again, NULL) != KN_OK)
        abort();
    check(again);
    return 0;
}
