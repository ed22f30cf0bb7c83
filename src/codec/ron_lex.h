/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * ron_lex.h - the characters of a RON document: place, white space, comments, words, strings. For
 * ron.c only.
 */
#include "codec/ron.h"

typedef struct KnRonLexer {
    KnArena *arena;
    const char *origin;
    const char *at, *end;
    const char *line_start;
    uint32_t line;
    const char *counted; /* columns are counted on from here, where it is on this line */
    uint32_t column;     /* of counted */
    KnErr *err;
} KnRonLexer;

/** "origin:line:column: expected `what`, found …" for the place where the lexer is. */
KnCode kn_ron_expected(const KnRonLexer *lex, const char *what);
KnCode kn_ron_fail(const KnRonLexer *lex, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/** The column where the lexer is; remembered, so that a long line is counted once. */
uint32_t kn_ron_column(KnRonLexer *lex);

static inline bool kn_ron_at(const KnRonLexer *lex, const char *text)
{
    size_t len = strlen(text);
    return (size_t)(lex->end - lex->at) >= len && memcmp(lex->at, text, len) == 0;
}
/** Skip text (which has no newline) if it is next. */
static inline bool kn_ron_take(KnRonLexer *lex, const char *text)
{
    if (!kn_ron_at(lex, text))
        return false;
    lex->at += strlen(text);
    return true;
}
KN_NODISCARD KnCode kn_ron_skip_space(KnRonLexer *lex);
/** True at a character that may start, or go on, a word. */
bool kn_ron_at_word(const KnRonLexer *lex);
/** A word or raw word (`r#a.b`); a view into the document. */
KN_NODISCARD KnCode kn_ron_word(KnRonLexer *lex, KnStr *ret);
/** A string, raw string, character; also with the prefix b. Sets kind and text. */
bool kn_ron_at_string(const KnRonLexer *lex);
KN_NODISCARD KnCode kn_ron_string(KnRonLexer *lex, KnRon *ret);
