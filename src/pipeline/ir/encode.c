/* SPDX-License-Identifier: Apache-2.0 */
/* encode.c - values as trees, by description. */
#include <inttypes.h>

#include "pipeline/ir/document.h"

typedef struct Encoder {
    KnArena *arena;
    KnNotation notation;
} Encoder;

static KnRon word(const char *name)
{
    return (KnRon){.kind = KN_RON_WORD, .name = kn_str(name)};
}

static KnRon text(const char *s)
{
    return (KnRon){.kind = KN_RON_TEXT, .text = kn_str(s ? s : "")};
}

/* Some(value); in JSON the value itself. */
static KnRon some(const Encoder *enc, KnRon value)
{
    if (enc->notation == KN_NOTATION_JSON)
        return value;
    KnRonItem *item = kn_arena_zalloc(enc->arena, sizeof(*item));
    item->value = value;
    return (KnRon){.kind = KN_RON_TUPLE, .name = KN_STR_LIT("Some"), .items = item, .len = 1};
}

static KnRon names(const Encoder *enc, KnIrItems items)
{
    const char *const *from = items.items;
    KnRonItem *to = kn_arena_zalloc(enc->arena, items.len * sizeof(*to));
    for (size_t i = 0; i < items.len; i++)
        to[i].value = text(from[i]);
    return (KnRon){.kind = KN_RON_LIST, .items = to, .len = items.len};
}

static KnRon pairs(const Encoder *enc, KnIrItems items)
{
    const KnutPair *from = items.items;
    KnRonItem *to = kn_arena_zalloc(enc->arena, items.len * sizeof(*to));
    KnRon *keys = kn_arena_zalloc(enc->arena, items.len * sizeof(*keys));
    for (size_t i = 0; i < items.len; i++) {
        keys[i] = text(from[i].key);
        to[i] = (KnRonItem){.key = &keys[i], .value = text(from[i].value)};
    }
    return (KnRon){.kind = KN_RON_MAP, .items = to, .len = items.len};
}

static KnRon number(const Encoder *enc, const KnIrField *field, const void *base)
{
    const char *at = (const char *)base + field->offset;
    const char *digits;
    uint64_t big = 0;
    if (field->kind == KN_IR_I32) {
        int32_t small;
        memcpy(&small, at, sizeof(small));
        digits = kn_arena_printf(enc->arena, "%" PRId32, small);
    } else {
        memcpy(&big, at, sizeof(big));
        digits = kn_arena_printf(enc->arena, "%" PRIu64, big);
    }
    /* Readers of JSON do not agree on integers beyond int64. */
    bool as_text = enc->notation == KN_NOTATION_JSON && big > INT64_MAX;
    return (KnRon){.kind = as_text ? KN_RON_TEXT : KN_RON_NUMBER, .text = kn_str(digits)};
}

static KnRon value_of(const Encoder *enc, const KnIrType *type, const void *value);

static KnRon list(const Encoder *enc, const KnIrField *field, KnIrItems items)
{
    KnRonItem *to = kn_arena_zalloc(enc->arena, items.len * sizeof(*to));
    for (size_t i = 0; i < items.len; i++)
        to[i].value = value_of(enc, field->type, kn_ir_item(field, items, i));
    return (KnRon){.kind = KN_RON_LIST, .items = to, .len = items.len};
}

static KnRon plain(const Encoder *enc, const KnIrField *field, const void *base)
{
    switch (field->kind) {
    case KN_IR_TEXT:
        return text(kn_ir_pointer(field, base));
    case KN_IR_BOOL:
        return (KnRon){.kind = KN_RON_BOOL,
                       .text = kn_str(kn_ir_is_zero(field, base) ? "false" : "true")};
    case KN_IR_U64:
    case KN_IR_I32:
        return number(enc, field, base);
    case KN_IR_NAMES:
        return names(enc, kn_ir_items(field, base));
    case KN_IR_PAIRS:
        return pairs(enc, kn_ir_items(field, base));
    case KN_IR_LIST:
        return list(enc, field, kn_ir_items(field, base));
    case KN_IR_STRUCT:
    case KN_IR_ENUM:
        break;
    }
    return value_of(enc, field->type, kn_ir_inner(field, base));
}

static KnRon field_value(const Encoder *enc, const KnIrField *field, const void *base)
{
    if (!field->option)
        return plain(enc, field, base);
    return kn_ir_is_zero(field, base) ? word("None") : some(enc, plain(enc, field, base));
}

static KnRon struct_of(const Encoder *enc, const KnIrField *fields, size_t n, const void *base)
{
    KnRonItem *items = kn_arena_zalloc(enc->arena, n * sizeof(*items));
    size_t len = 0;
    for (size_t i = 0; i < n; i++)
        if (fields[i].presence != KN_IR_SKIPPED || !kn_ir_is_zero(&fields[i], base))
            items[len++] = (KnRonItem){.name = kn_str(fields[i].name),
                                       .value = field_value(enc, &fields[i], base)};
    return (KnRon){.kind = KN_RON_STRUCT, .items = items, .len = len};
}

static KnRon value_of(const Encoder *enc, const KnIrType *type, const void *value)
{
    size_t n;
    const KnIrField *fields = kn_ir_fields(type, value, &n);
    if (!type->variants)
        return struct_of(enc, fields, n, value);
    const char *name = kn_ir_tag_name(type, kn_ir_tag(value));
    if (n == 0)
        return word(name);
    KnRon variant = struct_of(enc, fields, n, value);
    variant.name = kn_str(name);
    return variant;
}

KnRon kn_ir_encode(KnArena *arena, KnNotation notation, const KnIrType *type, const void *value)
{
    return value_of(&(Encoder){arena, notation}, type, value);
}
