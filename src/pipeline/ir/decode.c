/* SPDX-License-Identifier: Apache-2.0 */
/* decode.c - trees as values, by description. */
#include <stdio.h>

#include "pipeline/ir/decode_parts.h"
#include "pipeline/ir/document.h"

static KnCode decode_value(KnDecoder *dec, const KnIrPath *path, const KnIrType *type,
                           const KnRon *tree, void *value);

/* ---- leaves ---- */

static KnCode text_of(KnDecoder *dec, const KnIrPath *path, const KnRon *tree, const char **ret)
{
    if (tree->kind != KN_RON_TEXT &&
        !(tree->kind == KN_RON_CHAR && dec->notation == KN_NOTATION_RON))
        return kn_ir_expected(dec, path, tree, "a string");
    *ret = kn_arena_strndup(dec->arena, tree->text.ptr, tree->text.len);
    return KN_OK;
}

static KnCode names_of(KnDecoder *dec, const KnIrPath *path, const KnRon *tree, KnIrItems *ret)
{
    if (tree->kind != KN_RON_LIST)
        return kn_ir_expected(dec, path, tree, "a list of strings");
    const char **names = kn_arena_alloc(dec->arena, (tree->len + 1) * sizeof(*names));
    for (size_t i = 0; i < tree->len; i++)
        KN_TRY(text_of(dec, &(KnIrPath){path, NULL, i}, &tree->items[i].value, &names[i]));
    *ret = (KnIrItems){tree->len ? names : NULL, tree->len};
    return KN_OK;
}

static KnCode pairs_of(KnDecoder *dec, const KnIrPath *path, const KnRon *tree, KnIrItems *ret)
{
    if (tree->kind != KN_RON_MAP)
        return kn_ir_expected(dec, path, tree, "a map from string to string");
    KnutPair *pairs = kn_arena_alloc(dec->arena, (tree->len + 1) * sizeof(*pairs));
    for (size_t i = 0; i < tree->len; i++) {
        const KnRonItem *item = &tree->items[i];
        KN_TRY(text_of(dec, path, item->key, &pairs[i].key));
        KN_TRY(text_of(dec, &(KnIrPath){path, pairs[i].key, 0}, &item->value, &pairs[i].value));
    }
    return kn_ir_sort_pairs(dec, path, tree, (KnIrItems){pairs, tree->len}, ret);
}

static KnCode number_into(KnDecoder *dec, const KnIrPath *path, const KnIrField *field,
                          const KnRon *tree, char *base)
{
    bool negative;
    uint64_t number;
    bool text = tree->kind == KN_RON_TEXT && dec->notation == KN_NOTATION_JSON;
    if (tree->kind != KN_RON_NUMBER && !text)
        return kn_ir_expected(dec, path, tree, "a whole number");
    if (!kn_ir_parse_number(tree->text, &negative, &number))
        return kn_ir_fail(dec, path, tree,
                          "expected a whole number below 2^64, found `" KN_STR_FMT "`",
                          KN_STR_ARG(tree->text));
    if (field->kind == KN_IR_U64) {
        if (negative && number != 0)
            return kn_ir_fail(dec, path, tree, "expected a number that is not negative");
        memcpy(base + field->offset, &number, sizeof(number));
        return KN_OK;
    }
    if (number > (uint64_t)INT32_MAX + negative)
        return kn_ir_fail(dec, path, tree, "expected a number within 32 bits");
    int32_t small = (int32_t)(negative ? -(int64_t)number : (int64_t)number);
    memcpy(base + field->offset, &small, sizeof(small));
    return KN_OK;
}

static KnCode bool_into(KnDecoder *dec, const KnIrPath *path, const KnRon *tree, char *at)
{
    if (tree->kind != KN_RON_BOOL)
        return kn_ir_expected(dec, path, tree, "true or false");
    bool flag = tree->text.len == 4;
    memcpy(at, &flag, sizeof(flag));
    return KN_OK;
}

/* ---- members ---- */

static KnCode list_of(KnDecoder *dec, const KnIrPath *path, const KnIrType *type, const KnRon *tree,
                      KnIrItems *ret)
{
    if (tree->kind != KN_RON_LIST)
        return kn_ir_expected(dec, path, tree, "a list");
    char *items = kn_arena_try_array(dec->arena, tree->len + 1, type->size);
    if (!items)
        return kn_err_set(dec->err, KN_E_NOMEM, "%s: no memory for %zu values", dec->origin,
                          tree->len);
    for (size_t i = 0; i < tree->len; i++)
        KN_TRY(decode_value(dec, &(KnIrPath){path, NULL, i}, type, &tree->items[i].value,
                            items + i * type->size));
    *ret = (KnIrItems){tree->len ? items : NULL, tree->len};
    return KN_OK;
}

static KnCode items_into(KnDecoder *dec, const KnIrPath *path, const KnIrField *field,
                         const KnRon *tree, void *base)
{
    KnIrItems items = {0};
    if (field->kind == KN_IR_NAMES)
        KN_TRY(names_of(dec, path, tree, &items));
    else if (field->kind == KN_IR_PAIRS)
        KN_TRY(pairs_of(dec, path, tree, &items));
    else
        KN_TRY(list_of(dec, path, field->type, tree, &items));
    kn_ir_set_items(field, base, items);
    return KN_OK;
}

static KnCode inner_into(KnDecoder *dec, const KnIrPath *path, const KnIrField *field,
                         const KnRon *tree, void *base)
{
    char *place = (char *)base + field->offset;
    if (field->option) {
        place = kn_arena_zalloc(dec->arena, field->type->size);
        kn_ir_set_pointer(field, base, place);
    }
    return decode_value(dec, path, field->type, tree, place);
}

static KnCode plain_into(KnDecoder *dec, const KnIrPath *path, const KnIrField *field,
                         const KnRon *tree, void *base)
{
    const char *text;
    switch (field->kind) {
    case KN_IR_TEXT:
        KN_TRY(text_of(dec, path, tree, &text));
        kn_ir_set_pointer(field, base, text);
        return KN_OK;
    case KN_IR_BOOL:
        return bool_into(dec, path, tree, (char *)base + field->offset);
    case KN_IR_U64:
        return number_into(dec, path, field, tree, base);
    case KN_IR_I32:
        if (field->option)
            *((char *)base + field->has_offset) = true;
        return number_into(dec, path, field, tree, base);
    case KN_IR_NAMES:
    case KN_IR_PAIRS:
    case KN_IR_LIST:
        return items_into(dec, path, field, tree, base);
    case KN_IR_STRUCT:
    case KN_IR_ENUM:
        return inner_into(dec, path, field, tree, base);
    }
    return KN_OK;
}

static bool is_word(const KnRon *tree, const char *word)
{
    return tree->kind == KN_RON_WORD && kn_str_eq(tree->name, kn_str(word));
}

/* None, Some(x), x where that may be meant; with unwrap_variant_newtypes also Some(a: 1). */
static KnCode option_into(KnDecoder *dec, const KnIrPath *path, const KnIrField *field,
                          const KnRon *tree, void *base)
{
    if (is_word(tree, "None"))
        return KN_OK;
    if (dec->notation == KN_NOTATION_JSON)
        return plain_into(dec, path, field, tree, base);
    if (kn_str_eq(tree->name, KN_STR_LIT("Some"))) {
        if (tree->kind == KN_RON_TUPLE && tree->len == 1)
            return plain_into(dec, path, field, &tree->items[0].value, base);
        if (tree->kind == KN_RON_STRUCT && dec->extensions.unwrap_variant_newtypes) {
            KnRon inner = *tree;
            inner.name = (KnStr){0};
            return plain_into(dec, path, field, &inner, base);
        }
        return kn_ir_fail(dec, path, tree, "expected one value in Some(…)");
    }
    if (dec->extensions.implicit_some)
        return plain_into(dec, path, field, tree, base);
    return kn_ir_expected(dec, path, tree,
                          "Some(…) or None (or `#![enable(implicit_some)]` at the top)");
}

static KnCode field_into(KnDecoder *dec, const KnIrPath *path, const KnIrField *field,
                         const KnRon *tree, void *base)
{
    return field->option ? option_into(dec, path, field, tree, base)
                         : plain_into(dec, path, field, tree, base);
}

/* ---- structs and enums ---- */

/* The fields of a struct or variant, and what is called so. */
typedef struct Fields {
    const KnIrField *fields;
    size_t n;
    const char *of;
} Fields;

static const KnIrField *find(const Fields *fields, KnStr name)
{
    for (size_t i = 0; i < fields->n; i++)
        if (kn_str_eq(kn_str(fields->fields[i].name), name))
            return &fields->fields[i];
    return NULL;
}

static void note_unknown(KnDecoder *dec, const Fields *fields, const KnRonItem *item)
{
    KN_BUF_AUTO near = {.max = 400};
    const char *names[32];
    for (size_t i = 0; i < fields->n && i < 32; i++)
        names[i] = fields->fields[i].name;
    kn_ir_nearest(&near, item->name, names, fields->n);
    if (dec->notes)
        kn_notes_add(dec->notes, item->line, item->column,
                     "the field `" KN_STR_FMT "` of %s is not known and is left out%s",
                     KN_STR_ARG(item->name), fields->of, near.len ? near.data : "");
}

static KnCode fields_into(KnDecoder *dec, const KnIrPath *path, const Fields *fields,
                          const KnRon *tree, void *base)
{
    uint64_t seen = 0;
    for (size_t i = 0; i < tree->len; i++) {
        const KnRonItem *item = &tree->items[i];
        const KnIrField *field = find(fields, item->name);
        if (!field) {
            note_unknown(dec, fields, item);
            continue;
        }
        uint64_t bit = UINT64_C(1) << (field - fields->fields);
        KnIrPath inner = {path, field->name, 0};
        if (seen & bit)
            return kn_ir_fail(dec, &inner, &item->value, "the field is given twice");
        seen |= bit;
        KN_TRY(field_into(dec, &inner, field, &item->value, base));
    }
    for (size_t i = 0; i < fields->n; i++) {
        const KnIrField *field = &fields->fields[i];
        if (field->presence == KN_IR_REQUIRED && !(seen & UINT64_C(1) << i))
            return kn_ir_fail(dec, path, tree, "the field `%s` of %s is missing", field->name,
                              fields->of);
    }
    return KN_OK;
}

static bool is_fields(const KnDecoder *dec, const KnRon *tree)
{
    if (dec->notation == KN_NOTATION_JSON)
        return tree->kind == KN_RON_MAP;
    return tree->kind == KN_RON_STRUCT || (tree->kind == KN_RON_TUPLE && tree->len == 0);
}

static KnCode struct_into(KnDecoder *dec, const KnIrPath *path, const KnIrType *type,
                          const KnRon *tree, void *value)
{
    char what[80];
    (void)snprintf(what, sizeof(what),
                   dec->notation == KN_NOTATION_JSON ? "an object (%s)"
                                                     : "a struct: (field: value, …) or %s(…)",
                   type->name);
    if (!is_fields(dec, tree) || (tree->name.len > 0 && !kn_str_eq(tree->name, kn_str(type->name))))
        return kn_ir_expected(dec, path, tree, what);
    return fields_into(dec, path, &(Fields){type->fields, type->n_fields, type->name}, tree, value);
}

/* The variant that tree names, and its fields (NULL where it has none). */
static bool variant_named(const KnDecoder *dec, const KnRon *tree, KnStr *ret_name,
                          const KnRon **ret_fields)
{
    *ret_fields = NULL;
    if (dec->notation == KN_NOTATION_JSON) {
        *ret_name = tree->kind == KN_RON_TEXT                    ? tree->text
                    : tree->kind == KN_RON_MAP && tree->len == 1 ? tree->items[0].name
                                                                 : (KnStr){0};
        if (tree->kind == KN_RON_MAP && tree->len == 1)
            *ret_fields = &tree->items[0].value;
        return ret_name->ptr != NULL;
    }
    *ret_name = tree->name;
    if (tree->kind == KN_RON_WORD)
        return true;
    *ret_fields = tree;
    return tree->name.len > 0;
}

static KnCode unknown_variant(KnDecoder *dec, const KnIrPath *path, const KnIrType *type,
                              const KnRon *tree, KnStr name)
{
    KN_BUF_AUTO known = {.max = 400};
    const char *names[16];
    for (size_t i = 0; i < type->n_variants && i < 16; i++) {
        names[i] = type->variants[i].name;
        kn_buf_printf(&known, "%s`%s`",
                      i == 0                     ? ""
                      : i + 1 < type->n_variants ? ", "
                                                 : " or ",
                      names[i]);
    }
    KN_BUF_AUTO near = {.max = 400};
    kn_ir_nearest(&near, name, names, type->n_variants);
    return kn_ir_fail(dec, path, tree, "%s has no variant `" KN_STR_FMT "`: expected %s%s",
                      type->name, KN_STR_ARG(name), known.data, near.len ? near.data : "");
}

static KnCode enum_into(KnDecoder *dec, const KnIrPath *path, const KnIrType *type,
                        const KnRon *tree, void *value)
{
    KnStr name;
    const KnRon *fields;
    char what[80];
    (void)snprintf(what, sizeof(what), "a variant of %s, such as `%s`", type->name,
                   type->variants[0].name);
    if (!variant_named(dec, tree, &name, &fields))
        return kn_ir_expected(dec, path, tree, what);
    unsigned tag = 0;
    while (tag < type->n_variants && !kn_str_eq(kn_str(type->variants[tag].name), name))
        tag++;
    if (tag == type->n_variants)
        return unknown_variant(dec, path, type, tree, name);
    const KnIrVariant *variant = &type->variants[tag];
    KnIrPath inner = {path, variant->name, 0};
    memcpy(value, &tag, sizeof(tag));
    if (variant->n_fields == 0 && fields)
        return kn_ir_fail(dec, &inner, tree, "the variant `%s` has no fields", variant->name);
    if (variant->n_fields == 0)
        return KN_OK;
    if (!fields)
        return kn_ir_fail(dec, &inner, tree, "the variant `%s` has fields: `%s` and so on",
                          variant->name, variant->fields[0].name);
    if (!is_fields(dec, fields))
        return kn_ir_expected(dec, &inner, fields, "its fields by name");
    return fields_into(dec, &inner, &(Fields){variant->fields, variant->n_fields, variant->name},
                       fields, value);
}

static KnCode decode_value(KnDecoder *dec, const KnIrPath *path, const KnIrType *type,
                           const KnRon *tree, void *value)
{
    return type->variants ? enum_into(dec, path, type, tree, value)
                          : struct_into(dec, path, type, tree, value);
}

KnCode kn_ir_decode(KnDecoder *dec, const KnIrType *type, const KnRon *tree, void *value)
{
    return decode_value(dec, NULL, type, tree, value);
}
