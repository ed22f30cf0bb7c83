/* SPDX-License-Identifier: Apache-2.0 */
/* expr_lex.c - a filter's text as words. Strings and quoted names double their quote, as in SQL. */
#include <string.h>

#include "iceberg/expr/expr_internal.h"

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_name_start(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || (unsigned char)c >= 0x80;
}

static bool is_name_char(char c)
{
    return is_name_start(c) || is_digit(c) || c == '$';
}

static char peek(const KnLexer *lex, size_t ahead)
{
    if (lex->pos + ahead >= lex->text.len)
        return '\0';
    return lex->text.ptr[lex->pos + ahead];
}

static KnCode lex_quoted(KnLexer *lex, KnWord *ret, KnErr *err)
{
    char quote = peek(lex, 0);
    char *out = kn_arena_try_alloc(lex->arena, lex->text.len - lex->pos + 1);
    if (!out)
        return kn_err_set(err, KN_E_NOMEM, "filter: no memory for a text");
    size_t n = 0;
    size_t i = lex->pos + 1;
    for (;; i++) {
        if (i >= lex->text.len)
            return kn_err_set(err, KN_E_INVAL, "filter, byte %zu: the %s is not closed", lex->pos,
                              quote == '"' ? "quoted name" : "text");
        char c = lex->text.ptr[i];
        if (c == quote) {
            if (i + 1 >= lex->text.len || lex->text.ptr[i + 1] != quote)
                break;
            i++;
        }
        out[n++] = c;
    }
    out[n] = '\0';
    ret->kind = quote == '"' ? KN_WORD_QUOTED : KN_WORD_TEXT;
    ret->text = (KnStr){out, n};
    lex->pos = i + 1;
    return KN_OK;
}

static void lex_number(KnLexer *lex, KnWord *ret)
{
    size_t start = lex->pos;
    if (peek(lex, 0) == '+' || peek(lex, 0) == '-')
        lex->pos++;
    while (is_digit(peek(lex, 0)) || peek(lex, 0) == '.')
        lex->pos++;
    if (peek(lex, 0) == 'e' || peek(lex, 0) == 'E') {
        size_t sign = peek(lex, 1) == '+' || peek(lex, 1) == '-';
        if (is_digit(peek(lex, 1 + sign))) {
            lex->pos += 1 + sign;
            while (is_digit(peek(lex, 0)))
                lex->pos++;
        }
    }
    ret->kind = KN_WORD_NUMBER;
    ret->text = (KnStr){lex->text.ptr + start, lex->pos - start};
}

static bool starts_number(const KnLexer *lex)
{
    size_t i = peek(lex, 0) == '+' || peek(lex, 0) == '-';
    return is_digit(peek(lex, i)) || (peek(lex, i) == '.' && is_digit(peek(lex, i + 1)));
}

static bool lex_symbol(KnLexer *lex, KnWord *ret)
{
    static const char *const symbols[] = {"<=", ">=", "<>", "!=", "==", "<",
                                          ">",  "=",  "(",  ")",  ",",  "."};
    for (size_t i = 0; i < sizeof(symbols) / sizeof(*symbols); i++) {
        KnStr symbol = kn_str(symbols[i]);
        KnStr rest = {lex->text.ptr + lex->pos, lex->text.len - lex->pos};
        if (kn_str_starts_with(rest, symbol)) {
            *ret = (KnWord){.kind = KN_WORD_SYMBOL, .text = symbol, .at = ret->at};
            lex->pos += symbol.len;
            return true;
        }
    }
    return false;
}

KnCode kn_expr_next_word(KnLexer *lex, KnWord *ret, KnErr *err)
{
    while (lex->pos < lex->text.len && is_space(lex->text.ptr[lex->pos]))
        lex->pos++;
    *ret = (KnWord){.kind = KN_WORD_END, .text = KN_STR_LIT(""), .at = lex->pos};
    if (lex->pos >= lex->text.len)
        return KN_OK;
    char c = peek(lex, 0);
    if (c == '"' || c == '\'')
        return lex_quoted(lex, ret, err);
    if (starts_number(lex)) {
        lex_number(lex, ret);
        return KN_OK;
    }
    if (is_name_start(c)) {
        size_t start = lex->pos;
        while (is_name_char(peek(lex, 0)))
            lex->pos++;
        ret->kind = KN_WORD_NAME;
        ret->text = (KnStr){lex->text.ptr + start, lex->pos - start};
        return KN_OK;
    }
    if (lex_symbol(lex, ret))
        return KN_OK;
    return kn_err_set(err, KN_E_INVAL, "filter, byte %zu: unexpected character 0x%02x", lex->pos,
                      (unsigned)(unsigned char)c);
}
