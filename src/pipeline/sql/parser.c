/* SPDX-License-Identifier: Apache-2.0 */
/* parser.c - tokens as the parser sees them, and its messages. */
#include <stdio.h>

#include "pipeline/sql/sql_internal.h"

void kn_sdp_take(KnSdpParser *p)
{
    p->last_end = p->tok.end;
    p->tok = kn_sdp_next(&p->lex);
}

void kn_sdp_speak(KnSdpParser *p, bool query)
{
    if (p->lex.query == query)
        return;
    p->lex.at = p->tok.at;
    p->lex.query = query;
    p->tok = kn_sdp_next(&p->lex);
}

KnSdpToken kn_sdp_ahead(const KnSdpParser *p, size_t n)
{
    KnSdpLex lex = p->lex;
    KnSdpToken token = p->tok;
    while (n-- > 0)
        token = kn_sdp_next(&lex);
    return token;
}

KnStr kn_sdp_here(const KnSdpParser *p)
{
    return kn_sdp_text(&p->lex, &p->tok);
}

bool kn_sdp_token_is(const KnSdpParser *p, const KnSdpToken *token, const char *word)
{
    return (token->kind == KN_SDP_WORD || token->kind == KN_SDP_SIGN) &&
           kn_str_eq_nocase(kn_sdp_text(&p->lex, token), kn_str(word));
}

/* The number of tokens that are words, 0 = they are not. */
static size_t matches(const KnSdpParser *p, const char *words)
{
    KnSdpLex lex = p->lex;
    KnSdpToken token = p->tok;
    size_t n = 0;
    for (const char *at = words; *at;) {
        KnStr word = {at, strcspn(at, " ")};
        if ((token.kind != KN_SDP_WORD && token.kind != KN_SDP_SIGN &&
             token.kind != KN_SDP_NUMBER) ||
            !kn_str_eq_nocase(kn_sdp_text(&lex, &token), word))
            return 0;
        at += word.len;
        n++;
        if (*at == ' ') {
            at++;
            token = kn_sdp_next(&lex);
        }
    }
    return n;
}

bool kn_sdp_at(const KnSdpParser *p, const char *words)
{
    return matches(p, words) > 0;
}

bool kn_sdp_accept(KnSdpParser *p, const char *words)
{
    size_t n = matches(p, words);
    for (size_t i = 0; i < n; i++)
        kn_sdp_take(p);
    return n > 0;
}

KnCode kn_sdp_expect(KnSdpParser *p, const char *words)
{
    return kn_sdp_accept(p, words) ? KN_OK : kn_sdp_expected(p, words);
}

bool kn_sdp_at_name(const KnSdpParser *p)
{
    return p->tok.kind == KN_SDP_WORD || p->tok.kind == KN_SDP_QUOTED;
}

/* CREATE may be a name; with one of these behind it a definition begins, with or without `;`. */
static bool begins_definition(const KnSdpParser *p)
{
    static const char *const starts[] = {
        "CREATE MATERIALIZED", "CREATE STREAMING", "CREATE OR",     "CREATE TEMPORARY",
        "CREATE TEMP",         "CREATE VIEW",      "CREATE SINK",   "CREATE FLOW",
        "CREATE TABLE",        "CREATE INPUT",     "AUTO CDC INTO", "APPLY CHANGES INTO"};
    for (size_t i = 0; i < sizeof(starts) / sizeof(*starts); i++)
        if (kn_sdp_at(p, starts[i]))
            return true;
    return false;
}

bool kn_sdp_at_end(const KnSdpParser *p)
{
    return p->tok.kind == KN_SDP_END || kn_sdp_at(p, ";") ||
           (p->tok.kind == KN_SDP_WORD && begins_definition(p));
}

static KnCode fail(KnSdpParser *p, size_t at, const char *fmt, va_list args)
    __attribute__((format(printf, 3, 0)));

static KnCode fail(KnSdpParser *p, size_t at, const char *fmt, va_list args)
{
    char text[400];
    size_t line, column;
    (void)vsnprintf(text, sizeof(text), fmt, args);
    kn_sdp_place(p->lex.text, at, &line, &column);
    if (p->failure)
        *p->failure = (KnNote){line, column, kn_arena_strdup(p->arena, text)};
    return kn_err_set(p->err, KN_E_CORRUPT, "%s:%zu:%zu: %s", p->origin, line, column, text);
}

KnCode kn_sdp_fail(KnSdpParser *p, const KnSdpToken *at, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    KnCode rc = fail(p, at->at, fmt, args);
    va_end(args);
    return rc;
}

KnCode kn_sdp_fail_at(KnSdpParser *p, size_t at, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    KnCode rc = fail(p, at, fmt, args);
    va_end(args);
    return rc;
}

/* A token for a message: its first line, no longer than needed to know it. */
static KnStr shown(KnStr text)
{
    size_t len = 0;
    while (len < text.len && len < 40 && text.ptr[len] != '\n' && text.ptr[len] != '\r')
        len++;
    while (len > 0 && len < text.len && ((unsigned char)text.ptr[len] & 0xC0) == 0x80)
        len--;
    return (KnStr){text.ptr, len};
}

KnCode kn_sdp_expected(KnSdpParser *p, const char *what)
{
    if (p->tok.kind == KN_SDP_BAD)
        return kn_sdp_fail(p, &p->tok, "%s", p->tok.problem);
    if (p->tok.kind == KN_SDP_END)
        return kn_sdp_fail(p, &p->tok, "expected %s, found the end of the script", what);
    KnStr found = shown(kn_sdp_here(p));
    return kn_sdp_fail(p, &p->tok, "expected %s, found '" KN_STR_FMT "'", what, KN_STR_ARG(found));
}
