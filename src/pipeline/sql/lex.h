/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * lex.h - words, names, texts, numbers and signs of a script.
 *
 * A script speaks two languages: definitions are Spark's, where a text knows backslashes, is raw
 * after r, and may stand between double quotes; queries and conditions are the engine's, where only
 * a doubled quote is an escape and a text may stand between dollars. The parser says which one the
 * next token is of. A lexer is a value: a copy looks ahead. A token knows its bytes; line and
 * column are counted for messages only.
 */
#include "base/buf.h"
#include "base/str.h"

typedef enum KnSdpKind {
    KN_SDP_END,
    KN_SDP_WORD,   /* keyword or plain name */
    KN_SDP_QUOTED, /* name between backticks or double quotes */
    KN_SDP_TEXT,   /* between single quotes; the engine's E'..' and $$..$$ too */
    KN_SDP_NUMBER,
    KN_SDP_SIGN, /* one character, or => :: -> and the like as written */
    KN_SDP_BAD,  /* problem says why */
} KnSdpKind;

typedef struct KnSdpToken {
    KnSdpKind kind;
    size_t at, end; /* bytes of the text */
    const char *problem;
} KnSdpToken;

typedef struct KnSdpLex {
    KnStr text;
    size_t at;
    bool query; /* the engine's language */
} KnSdpLex;

KnSdpLex kn_sdp_lex(KnStr text);
/** The next token; END for ever at the end, BAD for what cannot be one (and steps over it). */
KnSdpToken kn_sdp_next(KnSdpLex *lex);
static inline KnStr kn_sdp_text(const KnSdpLex *lex, const KnSdpToken *token)
{
    return (KnStr){lex->text.ptr + token->at, token->end - token->at};
}
/** Line and column (in characters) of a byte. */
void kn_sdp_place(KnStr text, size_t at, size_t *ret_line, size_t *ret_column);
/** What a name between quotes means. */
void kn_sdp_unquote_name(KnBuf *out, KnStr text);
/** What a text of a definition means: escapes, raw, either quote. False: an escape that is none
 * (\u of fewer than four digits, of no character). */
bool kn_sdp_unquote_text(KnBuf *out, KnStr text);
bool kn_sdp_is_word_start(unsigned char c);
bool kn_sdp_is_word_part(unsigned char c);
