/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scripts of definitions, without the engine: the lexer, every statement, the edits of queries. A
 * refusal has one line that begins with a place; what is accepted can be copied and compared.
 */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "pipeline/sql/sql_internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_failure(KnCode rc, const KnErr *err)
{
    if (err->code != rc || strncmp(err->msg, "f:", 2) != 0 || strchr(err->msg, '\n'))
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    KN_ARENA_AUTO arena = kn_arena_new(4096);
    KN_NOTES_AUTO notes = {.arena = arena};
    KnDocument doc = {.text = {(const char *)data, size}, .origin = "f", .name = "p"};
    const KnPipeline *p = NULL;
    KnErr err = {0};
    KnCode rc = kn_sdp_read(arena, &doc, &notes, &p, &err);
    if (rc != KN_OK) {
        check_failure(rc, &err);
        return 0;
    }
    if (!kn_pipeline_equal(p, kn_pipeline_copy(arena, p), NULL))
        abort();
    return 0;
}
