/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ron.c - RON documents to trees.
 *
 * Recursive descent; items of one level are collected in a vec and copied to the arena when the
 * level ends. `(` is a struct where a name and a colon follow, a tuple otherwise.
 */
#include "codec/ron.h"

#include <stdio.h>

#include "base/vec.h"
#include "codec/ron_lex.h"

typedef struct Items {
    KN_VEC(KnRonItem) list;
} Items;

static void items_done(Items *items)
{
    kn_vec_done(&items->list);
}
#define ITEMS_AUTO __attribute__((cleanup(items_done))) Items

static KnCode read_value(KnRonLexer *lex, size_t depth, KnRon *ret);

static KnCode keep(const KnRonLexer *lex, const Items *items, KnRon *ret)
{
    if (items->list.len == 0)
        return KN_OK;
    KnRonItem *copy = kn_arena_try_array(lex->arena, items->list.len, sizeof(*copy));
    if (!copy)
        return kn_err_set(lex->err, KN_E_NOMEM, "%s: no memory for %zu values", lex->origin,
                          items->list.len);
    memcpy(copy, items->list.items, items->list.len * sizeof(*copy));
    ret->items = copy;
    ret->len = items->list.len;
    return KN_OK;
}

static KnCode name_and_colon(KnRonLexer *lex, KnRonItem *item)
{
    item->line = lex->line;
    item->column = kn_ron_column(lex);
    KnStr name;
    KN_TRY(kn_ron_word(lex, &name));
    item->name = (KnStr){kn_arena_strndup(lex->arena, name.ptr, name.len), name.len};
    KN_TRY(kn_ron_skip_space(lex));
    if (!kn_ron_take(lex, ":"))
        return kn_ron_expected(lex, "`:` after the name of a field");
    return KN_OK;
}

static KnCode key_and_colon(KnRonLexer *lex, size_t depth, KnRonItem *item)
{
    KnRon *key = kn_arena_zalloc(lex->arena, sizeof(*key));
    KN_TRY(read_value(lex, depth, key));
    item->key = key;
    KN_TRY(kn_ron_skip_space(lex));
    if (!kn_ron_take(lex, ":"))
        return kn_ron_expected(lex, "`:` after the key of a map");
    return KN_OK;
}

/* The items up to close; ret->kind says what they are. */
static KnCode items_until(KnRonLexer *lex, size_t depth, const char *close, KnRon *ret)
{
    ITEMS_AUTO items = {0};
    char what[40];
    (void)snprintf(what, sizeof(what), "`,` or `%s`", close);
    for (;;) {
        KN_TRY(kn_ron_skip_space(lex));
        if (kn_ron_take(lex, close))
            return keep(lex, &items, ret);
        KnRonItem item = {0};
        if (ret->kind == KN_RON_STRUCT)
            KN_TRY(name_and_colon(lex, &item));
        else if (ret->kind == KN_RON_MAP)
            KN_TRY(key_and_colon(lex, depth, &item));
        KN_TRY(read_value(lex, depth, &item.value));
        *kn_vec_push(&items.list) = item;
        KN_TRY(kn_ron_skip_space(lex));
        if (!kn_ron_take(lex, ",") && !kn_ron_at(lex, close))
            return kn_ron_expected(lex, what);
    }
}

/* Behind `(`: true when a name and a colon come next. A failure will be met again by who reads on.
 */
static bool names_follow(const KnRonLexer *lex)
{
    KnRonLexer look = *lex;
    KnErr unused;
    look.err = &unused;
    KnStr word;
    return kn_ron_skip_space(&look) == KN_OK && (kn_ron_at_word(&look) || kn_ron_at(&look, "r#")) &&
           kn_ron_word(&look, &word) == KN_OK && kn_ron_skip_space(&look) == KN_OK &&
           kn_ron_at(&look, ":");
}

static KnCode parenthesis(KnRonLexer *lex, size_t depth, KnRon *ret)
{
    ret->kind = names_follow(lex) ? KN_RON_STRUCT : KN_RON_TUPLE;
    return items_until(lex, depth, ")", ret);
}

static KnCode word_or_named(KnRonLexer *lex, size_t depth, KnRon *ret)
{
    bool raw = kn_ron_at(lex, "r#");
    KnStr name;
    KN_TRY(kn_ron_word(lex, &name));
    if (!raw && (kn_str_eq(name, KN_STR_LIT("inf")) || kn_str_eq(name, KN_STR_LIT("NaN")))) {
        ret->kind = KN_RON_NUMBER;
        ret->text = (KnStr){kn_arena_strndup(lex->arena, name.ptr, name.len), name.len};
        return KN_OK;
    }
    if (!raw && (kn_str_eq(name, KN_STR_LIT("true")) || kn_str_eq(name, KN_STR_LIT("false")))) {
        ret->kind = KN_RON_BOOL;
        ret->text = name.len == 4 ? KN_STR_LIT("true") : KN_STR_LIT("false");
        return KN_OK;
    }
    ret->name = (KnStr){kn_arena_strndup(lex->arena, name.ptr, name.len), name.len};
    KnRonLexer after = *lex;
    KN_TRY(kn_ron_skip_space(&after));
    if (!kn_ron_take(&after, "(")) {
        ret->kind = KN_RON_WORD;
        return KN_OK;
    }
    *lex = after;
    return parenthesis(lex, depth, ret);
}

/* ---- numbers ---- */

static bool is_number_char(const KnRonLexer *lex, const char *p)
{
    char c = *p;
    if ((c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_')
        return true;
    if (c == '.')
        return p + 1 == lex->end || p[1] != '.';
    /* The sign of an exponent; in 0x1e+1 there is none, and none would be read. */
    return (c == '+' || c == '-') && p > lex->at && (p[-1] | 0x20) == 'e';
}

static const char *number_end(const KnRonLexer *lex)
{
    const char *p = lex->at;
    if (p < lex->end && (*p == '+' || *p == '-'))
        p++;
    while (p < lex->end && is_number_char(lex, p))
        p++;
    return p;
}

static bool at_number(const KnRonLexer *lex)
{
    return lex->at < lex->end && memchr("+-.0123456789", *lex->at, 13);
}

/* Digits, or a word behind the sign (-inf). */
static bool is_number(KnStr s)
{
    for (size_t i = 0; i < s.len; i++)
        if (s.ptr[i] >= '0' && s.ptr[i] <= '9')
            return true;
    return s.len == 4 && (memcmp(s.ptr + 1, "inf", 3) == 0 || memcmp(s.ptr + 1, "NaN", 3) == 0);
}

/* Behind the first bound (which may be absent): `..`, `..=` and the other bound, if there is one.
 */
static KnCode range_rest(KnRonLexer *lex, KnRon *ret)
{
    KnRonLexer after = *lex;
    KN_TRY(kn_ron_skip_space(&after));
    if (!kn_ron_take(&after, ".."))
        return KN_OK;
    ret->kind = KN_RON_RANGE;
    (void)kn_ron_take(&after, "=");
    *lex = after;
    KN_TRY(kn_ron_skip_space(&after));
    if (!at_number(&after))
        return KN_OK;
    after.at = number_end(&after);
    *lex = after;
    return KN_OK;
}

static KnCode number_or_range(KnRonLexer *lex, KnRon *ret)
{
    KnRonLexer start = *lex;
    lex->at = number_end(lex);
    KnStr text = {start.at, (size_t)(lex->at - start.at)};
    ret->kind = KN_RON_NUMBER;
    KN_TRY(range_rest(lex, ret));
    if (!is_number(text) && (ret->kind == KN_RON_NUMBER || text.len > 0))
        return kn_ron_fail(&start, "`" KN_STR_FMT "` is not a number", KN_STR_ARG(text));
    text.len = (size_t)(lex->at - start.at);
    ret->text = (KnStr){kn_arena_strndup(lex->arena, text.ptr, text.len), text.len};
    return KN_OK;
}

static KnCode read_value(KnRonLexer *lex, size_t depth, KnRon *ret)
{
    KN_TRY(kn_ron_skip_space(lex));
    ret->line = lex->line;
    ret->column = kn_ron_column(lex);
    if (depth >= KN_RON_MAX_DEPTH)
        return kn_ron_fail(lex, "values are nested more than %d deep", KN_RON_MAX_DEPTH);
    if (kn_ron_take(lex, "("))
        return parenthesis(lex, depth + 1, ret);
    if (kn_ron_take(lex, "[")) {
        ret->kind = KN_RON_LIST;
        return items_until(lex, depth + 1, "]", ret);
    }
    if (kn_ron_take(lex, "{")) {
        ret->kind = KN_RON_MAP;
        return items_until(lex, depth + 1, "}", ret);
    }
    if (kn_ron_at_string(lex))
        return kn_ron_string(lex, ret);
    if (kn_ron_at_word(lex))
        return word_or_named(lex, depth + 1, ret);
    if (at_number(lex))
        return number_or_range(lex, ret);
    return kn_ron_expected(lex, "a value");
}

/* ---- attributes ---- */

static KnCode take_or_fail(KnRonLexer *lex, const char *text)
{
    char what[40];
    KN_TRY(kn_ron_skip_space(lex));
    if (kn_ron_take(lex, text))
        return KN_OK;
    (void)snprintf(what, sizeof(what), "`%s`", text);
    return kn_ron_expected(lex, what);
}

static KnCode enable(KnRonLexer *lex, KnRonExtensions *extensions)
{
    KN_TRY(take_or_fail(lex, "("));
    for (;;) {
        KN_TRY(kn_ron_skip_space(lex));
        if (kn_ron_take(lex, ")"))
            return KN_OK;
        KnRonLexer start = *lex;
        KnStr word;
        KN_TRY(kn_ron_word(lex, &word));
        if (kn_str_eq(word, KN_STR_LIT("implicit_some")))
            extensions->implicit_some = true;
        else if (kn_str_eq(word, KN_STR_LIT("unwrap_newtypes")))
            extensions->unwrap_newtypes = true;
        else if (kn_str_eq(word, KN_STR_LIT("unwrap_variant_newtypes")))
            extensions->unwrap_variant_newtypes = true;
        else if (kn_str_eq(word, KN_STR_LIT("explicit_struct_names")))
            extensions->explicit_struct_names = true;
        else
            return kn_ron_fail(&start,
                               "there is no extension `" KN_STR_FMT
                               "`, expected implicit_some, unwrap_newtypes, "
                               "unwrap_variant_newtypes or explicit_struct_names",
                               KN_STR_ARG(word));
        KN_TRY(kn_ron_skip_space(lex));
        if (!kn_ron_take(lex, ",") && !kn_ron_at(lex, ")"))
            return kn_ron_expected(lex, "`,` or `)`");
    }
}

/* `#![enable(…)]`; `#![type = "…"]` and `#![schema = "…"]` are for other tools. */
static KnCode attribute(KnRonLexer *lex, KnRonExtensions *extensions)
{
    KN_TRY(take_or_fail(lex, "#"));
    KN_TRY(take_or_fail(lex, "!"));
    KN_TRY(take_or_fail(lex, "["));
    KN_TRY(kn_ron_skip_space(lex));
    KnRonLexer start = *lex;
    KnStr word;
    KN_TRY(kn_ron_word(lex, &word));
    if (kn_str_eq(word, KN_STR_LIT("enable"))) {
        KN_TRY(enable(lex, extensions));
    } else if (kn_str_eq(word, KN_STR_LIT("type")) || kn_str_eq(word, KN_STR_LIT("schema"))) {
        KN_TRY(take_or_fail(lex, "="));
        KN_TRY(kn_ron_skip_space(lex));
        KnRon unused;
        if (!kn_ron_at_string(lex))
            return kn_ron_expected(lex, "a string");
        KN_TRY(kn_ron_string(lex, &unused));
    } else {
        return kn_ron_fail(&start, "expected enable(…), type = or schema = in #![…]");
    }
    return take_or_fail(lex, "]");
}

KnCode kn_ron_parse(KnArena *arena, KnStr text, const char *origin, KnRonDocument *ret, KnErr *err)
{
    KnRonLexer lex = {
        .arena = arena, .origin = origin, .at = text.len ? text.ptr : "", .line = 1, .err = err};
    lex.end = lex.at + text.len;
    lex.line_start = lex.at;
    if (!kn_str_is_utf8(text))
        return kn_err_set(err, KN_E_CORRUPT, "%s: is not UTF-8", origin);
    (void)kn_ron_take(&lex, "\xEF\xBB\xBF");
    KnRonDocument doc = {0};
    for (;;) {
        KN_TRY(kn_ron_skip_space(&lex));
        if (!kn_ron_at(&lex, "#"))
            break;
        KN_TRY(attribute(&lex, &doc.extensions));
    }
    KN_TRY(read_value(&lex, 0, &doc.value));
    KN_TRY(kn_ron_skip_space(&lex));
    if (lex.at != lex.end)
        return kn_ron_expected(&lex, "the end of the document");
    *ret = doc;
    return KN_OK;
}

const char *kn_ron_describe(const KnRon *value, char *buf, size_t size)
{
    static const char *const names[] = {
        [KN_RON_BOOL] = "a boolean",      [KN_RON_NUMBER] = "a number",
        [KN_RON_TEXT] = "a string",       [KN_RON_CHAR] = "a character",
        [KN_RON_BYTES] = "a byte string", [KN_RON_RANGE] = "a range",
        [KN_RON_LIST] = "a list",         [KN_RON_TUPLE] = "a tuple",
        [KN_RON_STRUCT] = "a struct",     [KN_RON_MAP] = "a map",
    };
    if (value->kind == KN_RON_WORD || value->name.len > 0)
        (void)snprintf(buf, size, "`%.*s%s`", (int)(value->name.len > 60 ? 60 : value->name.len),
                       value->name.ptr, value->kind == KN_RON_WORD ? "" : "(…)");
    else
        (void)snprintf(buf, size, "%s", names[value->kind]);
    return buf;
}
