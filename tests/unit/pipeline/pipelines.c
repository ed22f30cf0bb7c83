/* SPDX-License-Identifier: Apache-2.0 */
/* pipelines.c - pipelines for tests. */
#include "unit/pipeline/pipelines.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <cmocka.h>

static KnCode read_text(KnArena *arena, const KnSurface *surface, const char *text,
                        const KnPipeline **ret, KnErr *err)
{
    KN_NOTES_AUTO notes = {.arena = arena};
    KnDocument doc = {.text = kn_str(text), .origin = "doc", .name = "doc"};
    return surface->read(arena, &doc, &notes, ret, err);
}

const KnPipeline *pipeline_read(KnArena *arena, const KnSurface *surface, const char *text)
{
    KnErr err = {0};
    const KnPipeline *pipeline = NULL;
    if (read_text(arena, surface, text, &pipeline, &err) != KN_OK)
        fail_msg("%s\n%s", err.msg, text);
    return pipeline;
}

const char *pipeline_read_fails(KnArena *arena, const KnSurface *surface, const char *text)
{
    KnErr err = {0};
    const KnPipeline *pipeline = NULL;
    if (read_text(arena, surface, text, &pipeline, &err) == KN_OK)
        fail_msg("was read: %s", text);
    return kn_arena_strdup(arena, err.msg);
}

const char *pipeline_write(KnArena *arena, const KnSurface *surface, const KnPipeline *pipeline)
{
    KnErr err = {0};
    KN_NOTES_AUTO notes = {.arena = arena};
    KN_BUF_AUTO out = {0};
    kn_buf_init(&out, 16 << 20);
    if (surface->write(pipeline, NULL, &out, &notes, &err) != KN_OK)
        fail_msg("%s", err.msg);
    return kn_arena_strndup(arena, out.data, out.len);
}

const char *pipeline_data(KnArena *arena, const char *name)
{
    FILE *file = fopen(kn_arena_printf(arena, "%s/data/%s", KN_TEST_DATA_DIR, name), "rb");
    assert_non_null(file);
    enum { MAX = 1 << 18 };
    char *text = kn_arena_zalloc(arena, MAX);
    size_t len = fread(text, 1, MAX - 1, file);
    assert_true(len > 0 && len < MAX - 1);
    assert_int_equal(fclose(file), 0);
    return text;
}

KnRng pipeline_seed(void)
{
    const char *given = getenv("KN_TEST_SEED");
    KnRng rng = {given ? strtoull(given, NULL, 10) : (uint64_t)time(NULL)};
    print_message("KN_TEST_SEED=%llu\n", (unsigned long long)rng.state);
    return rng;
}

/* ---- random values ---- */

static const char *random_text(KnArena *arena, KnRng *rng)
{
    static const char *const pieces[] = {"a",
                                         "orders",
                                         "SELECT ",
                                         "'",
                                         "\"",
                                         "\\",
                                         "\n",
                                         "\t",
                                         "\r",
                                         "#",
                                         "\"#",
                                         "\x01",
                                         "\x7F",
                                         "\xC3\xA5",
                                         " ",
                                         "\xE2\x80\x8E",
                                         "\xF0\x9F\x98\x80",
                                         "//",
                                         "/*",
                                         "{}",
                                         "\xC2\x85",
                                         "None",
                                         "\xEF\xBB\xBF",
                                         ";",
                                         "`"};
    char text[256] = "";
    for (uint64_t n = kn_rng_below(rng, 9); n > 0; n--)
        (void)strncat(text, pieces[kn_rng_below(rng, sizeof(pieces) / sizeof(pieces[0]))],
                      sizeof(text) - strlen(text) - 1);
    return kn_arena_strdup(arena, text);
}

static void random_value(KnArena *arena, KnRng *rng, const KnIrType *type, void *value);

static KnIrItems random_items(KnArena *arena, KnRng *rng, const KnIrField *field)
{
    size_t n = kn_rng_below(rng, 4);
    size_t size = field->kind == KN_IR_LIST    ? field->type->size
                  : field->kind == KN_IR_PAIRS ? sizeof(KnutPair)
                                               : sizeof(char *);
    char *items = kn_arena_zalloc(arena, (n + 1) * size);
    for (size_t i = 0; i < n; i++) {
        if (field->kind == KN_IR_LIST)
            random_value(arena, rng, field->type, items + i * size);
        else if (field->kind == KN_IR_PAIRS)
            ((KnutPair *)(void *)items)[i] =
                (KnutPair){random_text(arena, rng), random_text(arena, rng)};
        else
            ((const char **)(void *)items)[i] = random_text(arena, rng);
    }
    return (KnIrItems){items, n};
}

static uint64_t random_number(KnRng *rng)
{
    static const uint64_t edges[] = {0, 1, 1000, INT64_MAX, (uint64_t)INT64_MAX + 1, UINT64_MAX};
    return kn_rng_below(rng, 2) ? edges[kn_rng_below(rng, 6)] : kn_rng_next(rng);
}

static void random_field(KnArena *arena, KnRng *rng, const KnIrField *field, char *base)
{
    char *at = base + field->offset;
    if (field->option && kn_rng_below(rng, 2))
        return;
    switch (field->kind) {
    case KN_IR_TEXT:
        kn_ir_set_pointer(field, base, random_text(arena, rng));
        return;
    case KN_IR_BOOL:
        *at = (char)(kn_rng_below(rng, 2) == 1);
        return;
    case KN_IR_U64: {
        uint64_t number = random_number(rng);
        memcpy(at, &number, sizeof(number));
        return;
    }
    case KN_IR_I32: {
        int32_t number = (int32_t)(uint32_t)kn_rng_next(rng);
        memcpy(at, &number, sizeof(number));
        if (field->option)
            base[field->has_offset] = true;
        return;
    }
    case KN_IR_NAMES:
    case KN_IR_PAIRS:
    case KN_IR_LIST:
        kn_ir_set_items(field, base, random_items(arena, rng, field));
        return;
    case KN_IR_STRUCT:
    case KN_IR_ENUM:
        if (field->option) {
            at = kn_arena_zalloc(arena, field->type->size);
            kn_ir_set_pointer(field, base, at);
        }
        random_value(arena, rng, field->type, at);
        return;
    }
}

static void random_value(KnArena *arena, KnRng *rng, const KnIrType *type, void *value)
{
    if (type->variants) {
        unsigned tag = (unsigned)kn_rng_below(rng, type->n_variants);
        memcpy(value, &tag, sizeof(tag));
    }
    size_t n;
    const KnIrField *fields = kn_ir_fields(type, value, &n);
    for (size_t i = 0; i < n; i++)
        random_field(arena, rng, &fields[i], value);
}

const KnPipeline *pipeline_random(KnArena *arena, KnRng *rng)
{
    KnPipeline *pipeline = kn_arena_zalloc(arena, sizeof(*pipeline));
    random_value(arena, rng, &kn_ir_pipeline, pipeline);
    return kn_pipeline_copy(arena, pipeline); /* sorts pairs */
}
