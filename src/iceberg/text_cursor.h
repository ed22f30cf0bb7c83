/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * text_cursor.h - reading the small languages of the command line: schemas, specs, sort orders.
 *
 * A cursor eats blanks before each thing. Failures are KN_E_INVAL and say the position (bytes,
 * counted from 1), what was expected and what is there.
 */
#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"

typedef struct KnTextCursor {
    KnArena *arena;
    KnStr text;
    size_t at;
} KnTextCursor;

bool kn_cursor_at_end(KnTextCursor *cur);
bool kn_cursor_eat(KnTextCursor *cur, char c);
bool kn_cursor_eat_word(KnTextCursor *cur, const char *word); /* any case, a whole word */
/** The bare word here (letters, digits, '_'); empty = none. Not eaten. */
KnStr kn_cursor_peek_word(KnTextCursor *cur);
/** A bare word, or text in backquotes (doubled inside); copied to the arena. */
KN_NODISCARD KnCode kn_cursor_name(KnTextCursor *cur, const char **ret, KnErr *err);
/** The same with dots: "st.a" and "`a b`.c" are columns inside structs. */
KN_NODISCARD KnCode kn_cursor_path(KnTextCursor *cur, const char **ret, KnErr *err);
KN_NODISCARD KnCode kn_cursor_number(KnTextCursor *cur, int64_t *ret, KnErr *err);
KN_NODISCARD KnCode kn_cursor_fail(KnTextCursor *cur, const char *expected, KnErr *err);
KN_NODISCARD KnCode kn_cursor_expect(KnTextCursor *cur, char c, KnErr *err);
