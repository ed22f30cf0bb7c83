/* SPDX-License-Identifier: Apache-2.0 */
/* equal.c - deep equality by description, and where the first difference is. */
#include <inttypes.h>
#include <stdio.h>

#include "pipeline/ir/decode_parts.h"
#include "pipeline/ir/ir.h"

static bool differ(const KnIrPath *place, KnBuf *buf, const char *a, const char *b)
{
    if (buf) {
        kn_ir_print_path(place, buf);
        kn_buf_printf(buf, ": %s / %s", a ? a : "(none)", b ? b : "(none)");
    }
    return false;
}

static bool same_text(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) == 0 : a == b;
}

static bool same_lens(const KnIrPath *place, size_t a, size_t b, KnBuf *buf)
{
    if (a == b)
        return true;
    char left[24], right[24];
    (void)snprintf(left, sizeof(left), "%zu items", a);
    (void)snprintf(right, sizeof(right), "%zu items", b);
    return differ(place, buf, left, right);
}

static bool same_names(const KnIrPath *place, KnIrItems a, KnIrItems b, KnBuf *buf)
{
    const char *const *x = a.items, *const *y = b.items;
    for (size_t i = 0; i < a.len && i < b.len; i++)
        if (!same_text(x[i], y[i]))
            return differ(&(KnIrPath){place, NULL, i}, buf, x[i], y[i]);
    return same_lens(place, a.len, b.len, buf);
}

static bool same_pairs(const KnIrPath *place, KnIrItems a, KnIrItems b, KnBuf *buf)
{
    const KnutPair *x = a.items, *y = b.items;
    for (size_t i = 0; i < a.len && i < b.len; i++) {
        if (!same_text(x[i].key, y[i].key))
            return differ(&(KnIrPath){place, NULL, i}, buf, x[i].key, y[i].key);
        if (!same_text(x[i].value, y[i].value))
            return differ(&(KnIrPath){place, x[i].key, 0}, buf, x[i].value, y[i].value);
    }
    return same_lens(place, a.len, b.len, buf);
}

/* Two values of a type, and the place that both are at. */
typedef struct Two {
    const void *a, *b;
} Two;

static bool same_value(const KnIrPath *place, const KnIrType *type, Two two, KnBuf *buf);

static bool same_list(const KnIrPath *place, const KnIrField *field, Two two, KnBuf *buf)
{
    KnIrItems a = kn_ir_items(field, two.a), b = kn_ir_items(field, two.b);
    for (size_t i = 0; i < a.len && i < b.len; i++)
        if (!same_value(&(KnIrPath){place, NULL, i}, field->type,
                        (Two){kn_ir_item(field, a, i), kn_ir_item(field, b, i)}, buf))
            return false;
    return same_lens(place, a.len, b.len, buf);
}

static bool same_inner(const KnIrPath *place, const KnIrField *field, Two two, KnBuf *buf)
{
    Two inner = {kn_ir_inner(field, two.a), kn_ir_inner(field, two.b)};
    if (inner.a && inner.b)
        return same_value(place, field->type, inner, buf);
    if (!inner.a && !inner.b)
        return true;
    return differ(place, buf, inner.a ? "(given)" : NULL, inner.b ? "(given)" : NULL);
}

static const char *print_number(const KnIrField *field, const void *base, char text[24])
{
    if (field->kind == KN_IR_BOOL)
        return kn_ir_is_zero(field, base) ? "false" : "true";
    if (field->option && kn_ir_is_zero(field, base))
        return NULL;
    if (field->kind == KN_IR_I32) {
        int32_t number;
        memcpy(&number, (const char *)base + field->offset, sizeof(number));
        (void)snprintf(text, 24, "%" PRId32, number);
    } else {
        uint64_t number;
        memcpy(&number, (const char *)base + field->offset, sizeof(number));
        (void)snprintf(text, 24, "%" PRIu64, number);
    }
    return text;
}

static bool same_field(const KnIrPath *place, const KnIrField *field, Two two, KnBuf *buf)
{
    switch (field->kind) {
    case KN_IR_TEXT: {
        const char *a = kn_ir_pointer(field, two.a), *b = kn_ir_pointer(field, two.b);
        if (!field->option) {
            a = a ? a : "";
            b = b ? b : "";
        }
        return same_text(a, b) || differ(place, buf, a, b);
    }
    case KN_IR_BOOL:
    case KN_IR_U64:
    case KN_IR_I32: {
        char left[24], right[24];
        const char *a = print_number(field, two.a, left), *b = print_number(field, two.b, right);
        return same_text(a, b) || differ(place, buf, a, b);
    }
    case KN_IR_NAMES:
        return same_names(place, kn_ir_items(field, two.a), kn_ir_items(field, two.b), buf);
    case KN_IR_PAIRS:
        return same_pairs(place, kn_ir_items(field, two.a), kn_ir_items(field, two.b), buf);
    case KN_IR_LIST:
        return same_list(place, field, two, buf);
    case KN_IR_STRUCT:
    case KN_IR_ENUM:
        return same_inner(place, field, two, buf);
    }
    return false;
}

static bool same_value(const KnIrPath *place, const KnIrType *type, Two two, KnBuf *buf)
{
    KnIrPath variant = {place, NULL, 0};
    if (type->variants) {
        unsigned a = kn_ir_tag(two.a), b = kn_ir_tag(two.b);
        if (a != b)
            return differ(place, buf, kn_ir_tag_name(type, a), kn_ir_tag_name(type, b));
        variant.name = kn_ir_tag_name(type, a);
        place = &variant;
    }
    size_t n;
    const KnIrField *fields = kn_ir_fields(type, two.a, &n);
    for (size_t i = 0; i < n; i++)
        if (!same_field(&(KnIrPath){place, fields[i].name, 0}, &fields[i], two, buf))
            return false;
    return true;
}

bool kn_ir_equal(const KnIrType *type, const void *a, const void *b, KnBuf *ret_difference)
{
    return same_value(NULL, type, (Two){a, b}, ret_difference);
}

bool kn_pipeline_equal(const KnPipeline *a, const KnPipeline *b, KnBuf *ret_difference)
{
    return kn_ir_equal(&kn_ir_pipeline, a, b, ret_difference);
}
