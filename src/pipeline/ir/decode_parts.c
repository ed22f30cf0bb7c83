/* SPDX-License-Identifier: Apache-2.0 */
/* decode_parts.c - messages with place and path, numbers, names nearby. */
#include "pipeline/ir/decode_parts.h"

#include <stdio.h>
#include <stdlib.h>

void kn_ir_print_path(const KnIrPath *path, KnBuf *buf)
{
    if (!path)
        return;
    kn_ir_print_path(path->outer, buf);
    if (path->name)
        kn_buf_printf(buf, "%s%s", path->outer ? "." : "", path->name);
    else
        kn_buf_printf(buf, "[%zu]", path->index);
}

KnCode kn_ir_fail(KnDecoder *dec, const KnIrPath *path, const KnRon *tree, const char *fmt, ...)
{
    char text[300];
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    KN_BUF_AUTO where = {.max = 1000};
    if (tree->line > 0)
        kn_buf_printf(&where, ":%u:%u", tree->line, tree->column);
    kn_buf_text(&where, ": ");
    kn_ir_print_path(path, &where);
    if (path)
        kn_buf_text(&where, ": ");
    return kn_err_set(dec->err, KN_E_CORRUPT, "%s%.200s%s", dec->origin, where.data, text);
}

KnCode kn_ir_expected(KnDecoder *dec, const KnIrPath *path, const KnRon *tree, const char *what)
{
    char found[80];
    const char *described = dec->notation == KN_NOTATION_JSON && tree->kind == KN_RON_WORD ? "null"
                            : dec->notation == KN_NOTATION_JSON && tree->kind == KN_RON_MAP
                                ? "an object"
                                : kn_ron_describe(tree, found, sizeof(found));
    return kn_ir_fail(dec, path, tree, "expected %s, found %s", what, described);
}

void kn_ir_nearest(KnBuf *buf, KnStr name, const char *const *names, size_t n)
{
    size_t best = SIZE_MAX;
    const char *nearest = NULL;
    for (size_t i = 0; i < n; i++) {
        size_t distance = kn_str_distance(name, kn_str(names[i]));
        if (distance < best) {
            best = distance;
            nearest = names[i];
        }
    }
    if (nearest && best <= 1 + name.len / 3 && best < name.len)
        kn_buf_printf(buf, "; did you mean `%s`?", nearest);
    else if (nearest)
        kn_buf_printf(buf, "; the nearest that is known is `%s`", nearest);
}

/* ---- numbers ---- */

static unsigned digit_value(char c)
{
    if (c >= '0' && c <= '9')
        return (unsigned)(c - '0');
    char low = (char)(c | 0x20);
    return low >= 'a' && low <= 'f' ? (unsigned)(low - 'a') + 10 : 99;
}

static unsigned take_base(KnStr *text)
{
    static const struct {
        const char *prefix;
        unsigned base;
    } bases[] = {{"0x", 16}, {"0o", 8}, {"0b", 2}};
    for (size_t i = 0; i < 3; i++)
        if (kn_str_starts_with(*text, kn_str(bases[i].prefix))) {
            *text = (KnStr){text->ptr + 2, text->len - 2};
            return bases[i].base;
        }
    return 10;
}

static bool is_suffix(KnStr text)
{
    static const char *const sizes[] = {"8", "16", "32", "64", "128"};
    for (size_t i = 0; i < 5 && (text.ptr[0] == 'i' || text.ptr[0] == 'u'); i++)
        if (kn_str_eq((KnStr){text.ptr + 1, text.len - 1}, kn_str(sizes[i])))
            return true;
    return false;
}

bool kn_ir_parse_number(KnStr text, bool *ret_negative, uint64_t *ret)
{
    bool sign = text.len > 0 && (text.ptr[0] == '-' || text.ptr[0] == '+');
    *ret_negative = sign && text.ptr[0] == '-';
    if (sign)
        text = (KnStr){text.ptr + 1, text.len - 1};
    unsigned base = take_base(&text);
    uint64_t number = 0;
    size_t digits = 0, i = 0;
    for (; i < text.len; i++) {
        if (text.ptr[i] == '_' && digits > 0)
            continue;
        unsigned digit = digit_value(text.ptr[i]);
        if (digit >= base)
            break;
        digits++;
        if (__builtin_mul_overflow(number, base, &number) ||
            __builtin_add_overflow(number, digit, &number))
            return false;
    }
    *ret = number;
    return digits > 0 && (i == text.len || is_suffix((KnStr){text.ptr + i, text.len - i}));
}

/* ---- pairs ---- */

static int by_key(const void *a, const void *b)
{
    return strcmp(((const KnutPair *)a)->key, ((const KnutPair *)b)->key);
}

KnCode kn_ir_sort_pairs(KnDecoder *dec, const KnIrPath *path, const KnRon *tree, KnIrItems pairs,
                        KnIrItems *ret)
{
    KnutPair *sorted = (KnutPair *)pairs.items;
    qsort(sorted, pairs.len, sizeof(*sorted), by_key);
    for (size_t i = 1; i < pairs.len; i++)
        if (strcmp(sorted[i - 1].key, sorted[i].key) == 0)
            return kn_ir_fail(dec, path, tree, "the key \"%.100s\" is given twice", sorted[i].key);
    *ret = (KnIrItems){pairs.len ? sorted : NULL, pairs.len};
    return KN_OK;
}
