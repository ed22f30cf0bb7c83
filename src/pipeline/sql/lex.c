/* SPDX-License-Identifier: Apache-2.0 */
/* lex.c - the lexer. Every byte is looked at once; nothing is allocated. */
#include "pipeline/sql/lex.h"

#include <ctype.h>

KnSdpLex kn_sdp_lex(KnStr text)
{
    KnSdpLex lex = {.text = text};
    if (kn_str_starts_with(text, KN_STR_LIT("\xEF\xBB\xBF")))
        lex.at = 3;
    return lex;
}

bool kn_sdp_is_word_start(unsigned char c)
{
    return isalpha(c) || c == '_' || c >= 0x80;
}

bool kn_sdp_is_word_part(unsigned char c)
{
    return kn_sdp_is_word_start(c) || isdigit(c) || c == '$';
}

static size_t characters(KnStr text, size_t from, size_t to)
{
    size_t n = 0;
    for (size_t i = from; i < to && i < text.len; i++)
        n += ((unsigned char)text.ptr[i] & 0xC0) != 0x80;
    return n;
}

void kn_sdp_place(KnStr text, size_t at, size_t *ret_line, size_t *ret_column)
{
    size_t line = 1;
    size_t start = kn_sdp_lex(text).at;
    for (size_t i = start; i < at && i < text.len; i++)
        if (text.ptr[i] == '\n') {
            line++;
            start = i + 1;
        }
    *ret_line = line;
    *ret_column = characters(text, start, at) + 1;
}

static unsigned char peek(const KnSdpLex *lex, size_t ahead)
{
    return lex->at + ahead < lex->text.len ? (unsigned char)lex->text.ptr[lex->at + ahead] : 0;
}

static bool more(const KnSdpLex *lex)
{
    return lex->at < lex->text.len;
}

static void steps(KnSdpLex *lex, size_t n)
{
    size_t left = lex->text.len - lex->at;
    lex->at += n < left ? n : left;
}

static void step(KnSdpLex *lex)
{
    steps(lex, 1);
}

static bool takes(KnSdpLex *lex, const char *text)
{
    if (!kn_str_starts_with((KnStr){lex->text.ptr + lex->at, lex->text.len - lex->at},
                            kn_str(text)))
        return false;
    steps(lex, strlen(text));
    return true;
}

/* A comment between slashes, nested as both languages have it. False: it does not end. */
static bool block_comment(KnSdpLex *lex)
{
    size_t depth = 0;
    do {
        if (takes(lex, "/*"))
            depth++;
        else if (takes(lex, "*/"))
            depth--;
        else
            step(lex);
    } while (depth > 0 && more(lex));
    return depth == 0;
}

/* False: the comment at *ret_comment does not end. */
static bool blanks(KnSdpLex *lex, size_t *ret_comment)
{
    while (more(lex)) {
        *ret_comment = lex->at;
        if (isspace(peek(lex, 0)))
            step(lex);
        else if (peek(lex, 0) == '-' && peek(lex, 1) == '-')
            while (more(lex) && peek(lex, 0) != '\n')
                step(lex);
        else if (peek(lex, 0) != '/' || peek(lex, 1) != '*')
            break;
        else if (!block_comment(lex))
            return false;
    }
    return true;
}

/* Past the closing quote; a doubled one is part of the text. False: there is none. */
static bool quoted(KnSdpLex *lex, char quote, bool backslashes)
{
    step(lex);
    while (more(lex)) {
        char c = (char)peek(lex, 0);
        if ((c == '\\' && backslashes) || (c == quote && (char)peek(lex, 1) == quote)) {
            steps(lex, 2);
        } else {
            step(lex);
            if (c == quote)
                return true;
        }
    }
    return false;
}

static KnSdpKind closed(bool closes, KnSdpKind kind, KnSdpToken *token, const char *what)
{
    if (closes)
        return kind;
    token->problem = what;
    return KN_SDP_BAD;
}

/* $tag$ ... $tag$, when one begins here. */
static bool dollars(KnSdpLex *lex, bool *ret_closes)
{
    size_t n = 1;
    while (kn_sdp_is_word_part(peek(lex, n)) && peek(lex, n) != '$')
        n++;
    if (peek(lex, n) != '$' || isdigit(peek(lex, 1)))
        return false;
    KnStr tag = {lex->text.ptr + lex->at, n + 1};
    steps(lex, tag.len);
    *ret_closes = false;
    while (more(lex) && !*ret_closes) {
        KnStr rest = {lex->text.ptr + lex->at, lex->text.len - lex->at};
        *ret_closes = kn_str_starts_with(rest, tag);
        steps(lex, *ret_closes ? tag.len : 1);
    }
    return true;
}

static void number(KnSdpLex *lex)
{
    while (isalnum(peek(lex, 0)) || peek(lex, 0) == '.' || peek(lex, 0) == '_') {
        bool exponent = (peek(lex, 0) | 0x20) == 'e' && isdigit(peek(lex, 2)) &&
                        (peek(lex, 1) == '-' || peek(lex, 1) == '+');
        steps(lex, exponent ? 2 : 1);
    }
}

static KnSdpKind sign(KnSdpLex *lex, KnSdpToken *token)
{
    static const char *const two[] = {"=>", "::", "->", "<=", ">=", "<>", "!=", "||", "==", ":="};
    for (size_t i = 0; i < sizeof(two) / sizeof(*two); i++)
        if (takes(lex, two[i]))
            return KN_SDP_SIGN;
    unsigned char c = peek(lex, 0);
    step(lex);
    if (c >= ' ' && c != 0x7F)
        return KN_SDP_SIGN;
    token->problem = "a control character";
    return KN_SDP_BAD;
}

/* A text that begins with a letter: r'..' of Spark, e'..' of the engine. */
static bool prefixed(KnSdpLex *lex, KnSdpToken *token)
{
    unsigned char c = (unsigned char)(peek(lex, 0) | 0x20), next = peek(lex, 1);
    bool raw = c == 'r' && !lex->query && (next == '\'' || next == '"');
    bool escaped = c == 'e' && lex->query && next == '\'';
    if (!raw && !escaped)
        return false;
    step(lex);
    bool closes = quoted(lex, (char)next, escaped);
    token->kind = closed(closes, KN_SDP_TEXT, token, "a text that does not end");
    return true;
}

static KnSdpKind scan(KnSdpLex *lex, KnSdpToken *token)
{
    unsigned char c = peek(lex, 0);
    bool closes;
    if (c == '\'')
        return closed(quoted(lex, '\'', !lex->query), KN_SDP_TEXT, token,
                      "a text that does not end");
    if (c == '`' || c == '"')
        return closed(quoted(lex, (char)c, c == '"' && !lex->query), KN_SDP_QUOTED, token,
                      "a quoted name that does not end");
    if (prefixed(lex, token))
        return token->kind;
    if (c == '$' && lex->query && dollars(lex, &closes))
        return closed(closes, KN_SDP_TEXT, token, "a text between dollars that does not end");
    if (kn_sdp_is_word_start(c)) {
        while (kn_sdp_is_word_part(peek(lex, 0)))
            step(lex);
        return KN_SDP_WORD;
    }
    if (isdigit(c) || (c == '.' && isdigit(peek(lex, 1)))) {
        number(lex);
        return KN_SDP_NUMBER;
    }
    return sign(lex, token);
}

KnSdpToken kn_sdp_next(KnSdpLex *lex)
{
    KnSdpToken token = {0};
    bool whole = blanks(lex, &token.at);
    if (!whole) {
        token.kind = KN_SDP_BAD;
        token.problem = "a comment that does not end";
    } else {
        token.at = lex->at;
        token.kind = more(lex) ? scan(lex, &token) : KN_SDP_END;
    }
    token.end = lex->at;
    return token;
}

void kn_sdp_unquote_name(KnBuf *out, KnStr text)
{
    char quote = text.ptr[0];
    for (size_t i = 1; i + 1 < text.len; i++) {
        kn_buf_char(out, text.ptr[i]);
        i += text.ptr[i] == quote;
    }
}

static void utf8(KnBuf *out, uint32_t c)
{
    if (c < 0x80) {
        kn_buf_char(out, (char)c);
    } else if (c < 0x800) {
        kn_buf_char(out, (char)(0xC0 | c >> 6));
        kn_buf_char(out, (char)(0x80 | (c & 0x3F)));
    } else if (c < 0x10000) {
        kn_buf_char(out, (char)(0xE0 | c >> 12));
        kn_buf_char(out, (char)(0x80 | (c >> 6 & 0x3F)));
        kn_buf_char(out, (char)(0x80 | (c & 0x3F)));
    } else {
        kn_buf_char(out, (char)(0xF0 | c >> 18));
        kn_buf_char(out, (char)(0x80 | (c >> 12 & 0x3F)));
        kn_buf_char(out, (char)(0x80 | (c >> 6 & 0x3F)));
        kn_buf_char(out, (char)(0x80 | (c & 0x3F)));
    }
}

static bool digits(KnStr text, size_t at, size_t n, unsigned base, uint32_t *ret)
{
    uint32_t value = 0;
    for (size_t i = at; i < at + n; i++) {
        unsigned char c = i < text.len ? (unsigned char)text.ptr[i] : 0;
        unsigned digit = isdigit(c) ? (unsigned)(c - '0') : (unsigned)((c | 0x20) - 'a' + 10);
        if (!isxdigit(c) || digit >= base)
            return false;
        value = value * base + digit;
    }
    *ret = value;
    return true;
}

/* The escape at text[i], i behind the backslash; returns its length, 0 = none such. */
static size_t escape(KnBuf *out, KnStr text, size_t i)
{
    static const char from[] = "bnrtZ", to[] = "\b\n\r\t\x1A";
    char c = text.ptr[i];
    uint32_t value;
    if (c == 'u' || c == 'U') {
        size_t n = c == 'u' ? 4 : 8;
        if (!digits(text, i + 1, n, 16, &value) || value == 0 || value > 0x10FFFF ||
            (value >= 0xD800 && value < 0xE000))
            return 0;
        utf8(out, value);
        return n + 1;
    }
    if (c >= '0' && c <= '3' && digits(text, i, 3, 8, &value)) {
        if (value == 0)
            return 0;
        utf8(out, value);
        return 3;
    }
    const char *known = c ? strchr(from, c) : NULL;
    if (c == '0')
        return 0;
    if (c == '%' || c == '_') /* kept for LIKE, as Spark does */
        kn_buf_char(out, '\\');
    kn_buf_append(out, known ? &to[known - from] : &c, 1);
    return 1;
}

bool kn_sdp_unquote_text(KnBuf *out, KnStr text)
{
    bool raw = text.ptr[0] == 'r' || text.ptr[0] == 'R';
    if (raw)
        text = (KnStr){text.ptr + 1, text.len - 1};
    char quote = text.ptr[0];
    text.len--; /* the closing quote */
    for (size_t i = 1; i < text.len; i++) {
        if (text.ptr[i] == '\\' && !raw) {
            size_t n = i + 1 < text.len ? escape(out, text, i + 1) : 0;
            if (n == 0)
                return false;
            i += n;
        } else {
            kn_buf_char(out, text.ptr[i]);
            i += text.ptr[i] == quote;
        }
    }
    return true;
}
