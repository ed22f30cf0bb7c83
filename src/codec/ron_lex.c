/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ron_lex.c - characters, words and strings of RON.
 *
 * The whole document was checked to be UTF-8 before, so that a sequence never ends early. Words
 * take any character beyond ASCII, where the crate asks Unicode's tables: what it reads is read
 * here too.
 */
#include "codec/ron_lex.h"

#include <stdio.h>

uint32_t kn_ron_column(KnRonLexer *lex)
{
    if (!lex->counted || lex->counted < lex->line_start || lex->counted > lex->at) {
        lex->counted = lex->line_start;
        lex->column = 1;
    }
    for (; lex->counted < lex->at; lex->counted++)
        lex->column += ((unsigned char)*lex->counted & 0xC0) != 0x80;
    return lex->column;
}

KnCode kn_ron_fail(const KnRonLexer *lex, const char *fmt, ...)
{
    char text[300];
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    KnRonLexer here = *lex;
    return kn_err_set(lex->err, KN_E_CORRUPT, "%s:%u:%u: %s", lex->origin, lex->line,
                      kn_ron_column(&here), text);
}

KnCode kn_ron_expected(const KnRonLexer *lex, const char *what)
{
    if (lex->at == lex->end)
        return kn_ron_fail(lex, "expected %s, found the end of the document", what);
    if (*lex->at == '\n' || *lex->at == '\r')
        return kn_ron_fail(lex, "expected %s, found the end of the line", what);
    size_t len = kn_str_utf8_len((KnStr){lex->at, (size_t)(lex->end - lex->at)});
    return kn_ron_fail(lex, "expected %s, found `%.*s`", what, (int)(len ? len : 1), lex->at);
}

static void step(KnRonLexer *lex)
{
    if (*lex->at++ == '\n') {
        lex->line++;
        lex->line_start = lex->at;
    }
}

/* Bytes of the white space that is next; 0 = none. U+0085, U+200E/F and U+2028/9 count. */
static size_t space_len(const KnRonLexer *lex)
{
    if (lex->at == lex->end)
        return 0;
    if (memchr(" \t\n\r\v\f", *lex->at, 6))
        return 1;
    if (kn_ron_at(lex, "\xC2\x85"))
        return 2;
    return kn_ron_at(lex, "\xE2\x80\x8E") || kn_ron_at(lex, "\xE2\x80\x8F") ||
                   kn_ron_at(lex, "\xE2\x80\xA8") || kn_ron_at(lex, "\xE2\x80\xA9")
               ? 3
               : 0;
}

static KnCode skip_block_comment(KnRonLexer *lex)
{
    KnRonLexer start = *lex;
    size_t depth = 0;
    do {
        if (lex->at == lex->end)
            return kn_ron_fail(&start, "the comment that begins here has no end (*/)");
        if (kn_ron_take(lex, "/*"))
            depth++;
        else if (kn_ron_take(lex, "*/"))
            depth--;
        else
            step(lex);
    } while (depth > 0);
    return KN_OK;
}

KnCode kn_ron_skip_space(KnRonLexer *lex)
{
    for (;;) {
        size_t len = space_len(lex);
        if (len > 1) {
            lex->at += len;
        } else if (len == 1) {
            step(lex);
        } else if (kn_ron_at(lex, "//")) {
            while (lex->at < lex->end && *lex->at != '\n')
                lex->at++;
        } else if (kn_ron_at(lex, "/*")) {
            KN_TRY(skip_block_comment(lex));
        } else {
            return KN_OK;
        }
    }
}

/* ---- words ---- */

static bool is_letter(unsigned char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c >= 0x80;
}

static bool is_digit(unsigned char c)
{
    return c >= '0' && c <= '9';
}

/* Neither white space nor a byte order mark belongs to a word. */
static bool at_letter(const KnRonLexer *lex)
{
    return lex->at < lex->end && is_letter((unsigned char)*lex->at) && space_len(lex) == 0 &&
           !kn_ron_at(lex, "\xEF\xBB\xBF");
}

bool kn_ron_at_word(const KnRonLexer *lex)
{
    return at_letter(lex);
}

KnCode kn_ron_word(KnRonLexer *lex, KnStr *ret)
{
    bool raw = kn_ron_take(lex, "r#");
    if (!raw && !kn_ron_at_word(lex))
        return kn_ron_expected(lex, "a name");
    const char *start = lex->at;
    while (lex->at < lex->end && (at_letter(lex) || is_digit((unsigned char)*lex->at) ||
                                  (raw && memchr(".+-", *lex->at, 3))))
        lex->at++;
    if (lex->at == start)
        return kn_ron_expected(lex, "a name after r#");
    *ret = (KnStr){start, (size_t)(lex->at - start)};
    return KN_OK;
}

/* ---- strings ---- */

static int hex_value(char c)
{
    if (is_digit((unsigned char)c))
        return c - '0';
    char low = (char)(c | 0x20);
    return low >= 'a' && low <= 'f' ? low - 'a' + 10 : -1;
}

static void put_utf8(KnBuf *buf, uint32_t c)
{
    if (c < 0x80) {
        kn_buf_char(buf, (char)c);
    } else if (c < 0x800) {
        kn_buf_char(buf, (char)(0xC0 | (c >> 6)));
        kn_buf_char(buf, (char)(0x80 | (c & 0x3F)));
    } else if (c < 0x10000) {
        kn_buf_char(buf, (char)(0xE0 | (c >> 12)));
        kn_buf_char(buf, (char)(0x80 | ((c >> 6) & 0x3F)));
        kn_buf_char(buf, (char)(0x80 | (c & 0x3F)));
    } else {
        kn_buf_char(buf, (char)(0xF0 | (c >> 18)));
        kn_buf_char(buf, (char)(0x80 | ((c >> 12) & 0x3F)));
        kn_buf_char(buf, (char)(0x80 | ((c >> 6) & 0x3F)));
        kn_buf_char(buf, (char)(0x80 | (c & 0x3F)));
    }
}

/* Behind `\u`: {1 to 6 hexadecimal digits}. */
static KnCode unicode_escape(KnRonLexer *lex, KnBuf *buf)
{
    uint32_t c = 0;
    int digits = 0;
    if (!kn_ron_take(lex, "{"))
        return kn_ron_expected(lex, "`{` after \\u");
    for (; lex->at < lex->end && hex_value(*lex->at) >= 0 && digits < 6; digits++, lex->at++)
        c = c * 16 + (uint32_t)hex_value(*lex->at);
    if (digits == 0)
        return kn_ron_expected(lex, "1 to 6 hexadecimal digits");
    if (!kn_ron_take(lex, "}"))
        return kn_ron_expected(lex, "`}` after the digits of \\u");
    if (c > 0x10FFFF || (c >= 0xD800 && c < 0xE000))
        return kn_ron_fail(lex, "\\u{%x} is not a character", c);
    put_utf8(buf, c);
    return KN_OK;
}

static KnCode escape(KnRonLexer *lex, KnBuf *buf)
{
    static const char letters[] = "nrt0\\\"'", meanings[] = "\n\r\t\0\\\"'";
    if (kn_ron_take(lex, "x")) {
        if (lex->end - lex->at < 2 || hex_value(lex->at[0]) < 0 || hex_value(lex->at[1]) < 0)
            return kn_ron_expected(lex, "two hexadecimal digits after \\x");
        kn_buf_char(buf, (char)(hex_value(lex->at[0]) * 16 + hex_value(lex->at[1])));
        lex->at += 2;
        return KN_OK;
    }
    if (kn_ron_take(lex, "u"))
        return unicode_escape(lex, buf);
    const char *found = lex->at < lex->end && *lex->at ? strchr(letters, *lex->at) : NULL;
    if (!found)
        return kn_ron_expected(lex, "an escape: one of n r t 0 x u \\ \" '");
    kn_buf_char(buf, meanings[found - letters]);
    lex->at++;
    return KN_OK;
}

/* Up to quote, escapes resolved, into buf. */
static KnCode quoted(KnRonLexer *lex, char quote, KnBuf *buf)
{
    KnRonLexer start = *lex;
    lex->at++;
    for (;;) {
        if (lex->at == lex->end)
            return kn_ron_fail(&start, "the text that begins here has no closing %c", quote);
        if (*lex->at == quote)
            break;
        if (*lex->at == '\\') {
            lex->at++;
            KN_TRY(escape(lex, buf));
            continue;
        }
        kn_buf_char(buf, *lex->at);
        step(lex);
    }
    lex->at++;
    return KN_OK;
}

/* Behind the r: as many # as end it, then anything between quotes. */
static KnCode raw_quoted(KnRonLexer *lex, const KnRonLexer *start, KnStr *ret)
{
    size_t hashes = 0;
    while (kn_ron_take(lex, "#"))
        hashes++;
    if (!kn_ron_take(lex, "\""))
        return kn_ron_expected(lex, "`\"` of a raw string");
    const char *text = lex->at;
    for (; lex->at < lex->end; step(lex)) {
        if (*lex->at != '"')
            continue;
        size_t n = 0;
        while (n < hashes && (size_t)(lex->end - lex->at) > n + 1 && lex->at[n + 1] == '#')
            n++;
        if (n == hashes) {
            *ret = (KnStr){text, (size_t)(lex->at - text)};
            lex->at += hashes + 1;
            return KN_OK;
        }
    }
    return kn_ron_fail(start, "the raw string that begins here has no end (\"%s)",
                       hashes ? "#…" : "");
}

bool kn_ron_at_string(const KnRonLexer *lex)
{
    KnRonLexer look = *lex;
    (void)kn_ron_take(&look, "b");
    if (look.at < look.end && (*look.at == '"' || *look.at == '\''))
        return true;
    if (!kn_ron_take(&look, "r"))
        return false;
    while (kn_ron_take(&look, "#"))
        continue;
    return kn_ron_at(&look, "\"");
}

/* What was found, checked: texts and characters are UTF-8 without NUL, a character is one. */
static KnCode checked(const KnRonLexer *start, KnStr text, KnRon *ret)
{
    if (ret->kind != KN_RON_BYTES && text.len > 0 && memchr(text.ptr, '\0', text.len))
        return kn_ron_fail(start, "a text may not hold the character NUL");
    if (ret->kind != KN_RON_BYTES && !kn_str_is_utf8(text))
        return kn_ron_fail(start, "the escapes of this text do not make UTF-8");
    if (ret->kind == KN_RON_CHAR && (text.len == 0 || kn_str_utf8_len(text) != text.len))
        return kn_ron_fail(start, "expected one character between apostrophes");
    char *copy = kn_arena_try_strndup(start->arena, text.ptr ? text.ptr : "", text.len);
    if (!copy)
        return kn_err_set(start->err, KN_E_NOMEM, "%s: no memory for a text of %zu bytes",
                          start->origin, text.len);
    ret->text = (KnStr){copy, text.len};
    return KN_OK;
}

KnCode kn_ron_string(KnRonLexer *lex, KnRon *ret)
{
    KnRonLexer start = *lex;
    bool bytes = kn_ron_take(lex, "b");
    ret->kind = bytes ? KN_RON_BYTES : kn_ron_at(lex, "'") ? KN_RON_CHAR : KN_RON_TEXT;
    if (kn_ron_take(lex, "r")) {
        KnStr raw = {0};
        KN_TRY(raw_quoted(lex, &start, &raw));
        return checked(&start, raw, ret);
    }
    KN_BUF_AUTO buf = {0};
    kn_buf_init(&buf, (size_t)(lex->end - lex->at) + 16);
    KN_TRY(quoted(lex, *lex->at, &buf));
    KN_TRY(kn_buf_check(&buf, lex->err));
    return checked(&start, (KnStr){buf.data, buf.len}, ret);
}
