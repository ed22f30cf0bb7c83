/* SPDX-License-Identifier: Apache-2.0 */
/*
 * value.c - values by their description: members, copies, comparison.
 *
 * Members are read and set with memcpy, as every list has a type of its own.
 */
#include <stdlib.h>

#include "pipeline/ir/ir.h"

const char *kn_ir_tag_name(const KnIrType *type, unsigned tag)
{
    return tag < type->n_variants ? type->variants[tag].name : "?";
}

unsigned kn_ir_tag(const void *value)
{
    unsigned tag;
    memcpy(&tag, value, sizeof(tag));
    return tag;
}

const KnIrField *kn_ir_fields(const KnIrType *type, const void *value, size_t *ret_n)
{
    if (!type->variants) {
        *ret_n = type->n_fields;
        return type->fields;
    }
    unsigned tag = kn_ir_tag(value);
    *ret_n = tag < type->n_variants ? type->variants[tag].n_fields : 0;
    return *ret_n ? type->variants[tag].fields : NULL;
}

static const char *at(const KnIrField *field, const void *base)
{
    return (const char *)base + field->offset;
}

KnIrItems kn_ir_items(const KnIrField *field, const void *base)
{
    KnIrItems items;
    memcpy(&items, at(field, base), sizeof(items));
    return items;
}

void kn_ir_set_items(const KnIrField *field, void *base, KnIrItems items)
{
    memcpy((char *)base + field->offset, &items, sizeof(items));
}

const void *kn_ir_pointer(const KnIrField *field, const void *base)
{
    const void *pointer;
    memcpy(&pointer, at(field, base), sizeof(pointer));
    return pointer;
}

void kn_ir_set_pointer(const KnIrField *field, void *base, const void *pointer)
{
    memcpy((char *)base + field->offset, &pointer, sizeof(pointer));
}

const void *kn_ir_inner(const KnIrField *field, const void *base)
{
    return field->option ? kn_ir_pointer(field, base) : at(field, base);
}

static bool flag_at(const void *base, size_t offset)
{
    bool flag;
    memcpy(&flag, (const char *)base + offset, sizeof(flag));
    return flag;
}

bool kn_ir_is_zero(const KnIrField *field, const void *base)
{
    static const char zeros[512];
    if (field->option)
        return field->kind == KN_IR_I32 ? !flag_at(base, field->has_offset)
                                        : kn_ir_pointer(field, base) == NULL;
    switch (field->kind) {
    case KN_IR_TEXT: {
        const char *text = kn_ir_pointer(field, base);
        return !text || !text[0];
    }
    case KN_IR_BOOL:
        return !flag_at(base, field->offset);
    case KN_IR_U64:
        return memcmp(at(field, base), zeros, sizeof(uint64_t)) == 0;
    case KN_IR_I32:
        return memcmp(at(field, base), zeros, sizeof(int32_t)) == 0;
    case KN_IR_NAMES:
    case KN_IR_PAIRS:
    case KN_IR_LIST:
        return kn_ir_items(field, base).len == 0;
    case KN_IR_STRUCT:
    case KN_IR_ENUM:
        assert(field->type->size <= sizeof(zeros));
        return kn_ir_equal(field->type, at(field, base), zeros, NULL);
    }
    return false;
}

/* ---- copies ---- */

static const char *copy_text(KnArena *arena, const char *text)
{
    return kn_arena_strdup(arena, text ? text : "");
}

static KnIrItems copy_names(KnArena *arena, KnIrItems from)
{
    const char *const *names = from.items;
    const char **to = kn_arena_alloc(arena, from.len * sizeof(*to));
    for (size_t i = 0; i < from.len; i++)
        to[i] = copy_text(arena, names[i]);
    return (KnIrItems){to, from.len};
}

/* The place among those given keeps a key's last value last: the sort is stable. */
typedef struct PlacedPair {
    KnutPair pair;
    size_t place;
} PlacedPair;

static int by_key(const void *a, const void *b)
{
    const PlacedPair *x = a, *y = b;
    int order = strcmp(x->pair.key, y->pair.key);
    return order ? order : (x->place > y->place) - (x->place < y->place);
}

static KnIrItems copy_pairs(KnArena *arena, KnIrItems from)
{
    const KnutPair *pairs = from.items;
    PlacedPair *sorted = kn_arena_alloc(arena, from.len * sizeof(*sorted));
    for (size_t i = 0; i < from.len; i++)
        sorted[i] =
            (PlacedPair){{copy_text(arena, pairs[i].key), copy_text(arena, pairs[i].value)}, i};
    qsort(sorted, from.len, sizeof(*sorted), by_key);
    KnutPair *to = kn_arena_alloc(arena, from.len * sizeof(*to));
    size_t n = 0;
    for (size_t i = 0; i < from.len; i++) {
        if (n > 0 && strcmp(to[n - 1].key, sorted[i].pair.key) == 0)
            n--;
        to[n++] = sorted[i].pair;
    }
    return (KnIrItems){to, n};
}

static KnIrItems copy_list(KnArena *arena, const KnIrField *field, KnIrItems from)
{
    size_t size = field->type->size;
    char *to = kn_arena_zalloc(arena, from.len * size);
    for (size_t i = 0; i < from.len; i++)
        kn_ir_copy(arena, field->type, to + i * size, kn_ir_item(field, from, i));
    return (KnIrItems){to, from.len};
}

static void copy_items(KnArena *arena, const KnIrField *field, void *to, const void *from)
{
    KnIrItems items = kn_ir_items(field, from);
    if (items.len == 0)
        return;
    if (field->kind == KN_IR_NAMES)
        items = copy_names(arena, items);
    else if (field->kind == KN_IR_PAIRS)
        items = copy_pairs(arena, items);
    else
        items = copy_list(arena, field, items);
    kn_ir_set_items(field, to, items);
}

static void copy_inner(KnArena *arena, const KnIrField *field, void *to, const void *from)
{
    const void *inner = kn_ir_inner(field, from);
    if (!inner)
        return;
    void *place = (char *)to + field->offset;
    if (field->option) {
        place = kn_arena_zalloc(arena, field->type->size);
        kn_ir_set_pointer(field, to, place);
    }
    kn_ir_copy(arena, field->type, place, inner);
}

static void copy_field(KnArena *arena, const KnIrField *field, void *to, const void *from)
{
    switch (field->kind) {
    case KN_IR_TEXT: {
        const char *text = kn_ir_pointer(field, from);
        if (text || !field->option)
            kn_ir_set_pointer(field, to, copy_text(arena, text));
        return;
    }
    case KN_IR_BOOL:
        memcpy((char *)to + field->offset, at(field, from), sizeof(bool));
        return;
    case KN_IR_U64:
        memcpy((char *)to + field->offset, at(field, from), sizeof(uint64_t));
        return;
    case KN_IR_I32:
        if (field->option && !flag_at(from, field->has_offset))
            return;
        memcpy((char *)to + field->offset, at(field, from), sizeof(int32_t));
        if (field->option)
            *((char *)to + field->has_offset) = true;
        return;
    case KN_IR_NAMES:
    case KN_IR_PAIRS:
    case KN_IR_LIST:
        copy_items(arena, field, to, from);
        return;
    case KN_IR_STRUCT:
    case KN_IR_ENUM:
        copy_inner(arena, field, to, from);
        return;
    }
}

void kn_ir_copy(KnArena *arena, const KnIrType *type, void *to, const void *from)
{
    memset(to, 0, type->size);
    if (type->variants)
        memcpy(to, from, sizeof(unsigned));
    size_t n;
    const KnIrField *fields = kn_ir_fields(type, from, &n);
    for (size_t i = 0; i < n; i++)
        copy_field(arena, &fields[i], to, from);
}
