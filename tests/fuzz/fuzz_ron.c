/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_ron.c - any bytes as a RON document and as a pipeline in it: what was read is written, and
 * the text is read as the same again.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "codec/ron.h"
#include "pipeline/surface/surfaces.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void tree_again(KnStr text)
{
    KN_ARENA_AUTO arena = kn_arena_new(4096);
    KnRonDocument doc, again;
    if (kn_ron_parse(arena, text, "fuzz", &doc, NULL) != KN_OK)
        return;
    KN_BUF_AUTO one = {0}, two = {0};
    kn_buf_init(&one, 64 << 20);
    kn_buf_init(&two, 64 << 20);
    kn_ron_write(&one, &doc.value);
    if (one.failed)
        return;
    if (kn_ron_parse(arena, (KnStr){one.data, one.len}, "again", &again, NULL) != KN_OK)
        abort();
    kn_ron_write(&two, &again.value);
    if (!kn_str_eq((KnStr){one.data, one.len}, (KnStr){two.data, two.len}))
        abort();
}

static KnCode read_pipeline(KnArena *arena, KnStr text, const KnPipeline **ret)
{
    KN_NOTES_AUTO notes = {.arena = arena};
    KnDocument doc = {.text = text, .origin = "fuzz"};
    return kn_surface_ron.read(arena, &doc, &notes, ret, NULL);
}

static void pipeline_again(KnStr text)
{
    KN_ARENA_AUTO arena = kn_arena_new(4096);
    const KnPipeline *pipeline, *again;
    if (read_pipeline(arena, text, &pipeline) != KN_OK)
        return;
    KN_NOTES_AUTO notes = {.arena = arena};
    KN_BUF_AUTO out = {0};
    kn_buf_init(&out, 64 << 20);
    if (kn_surface_ron.write(pipeline, NULL, &out, &notes, NULL) != KN_OK)
        return;
    if (read_pipeline(arena, (KnStr){out.data, out.len}, &again) != KN_OK ||
        !kn_pipeline_equal(pipeline, again, NULL))
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    KnStr text = {(const char *)data, size};
    tree_again(text);
    pipeline_again(text);
    return 0;
}
