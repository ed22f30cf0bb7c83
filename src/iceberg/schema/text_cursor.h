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
#include "iceberg/schema/partition.h"

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
/** The same as the path before the last dot (NULL = none) and the name behind it. */
KN_NODISCARD KnCode kn_cursor_path_split(KnTextCursor *cur, const char **ret_parent,
                                         const char **ret_name, KnErr *err);
KN_NODISCARD KnCode kn_cursor_number(KnTextCursor *cur, int64_t *ret, KnErr *err);
KN_NODISCARD KnCode kn_cursor_fail(KnTextCursor *cur, const char *expected, KnErr *err);
KN_NODISCARD KnCode kn_cursor_expect(KnTextCursor *cur, char c, KnErr *err);
/** Text in single quotes, doubled inside; copied to the arena. The caller saw the quote. */
KN_NODISCARD KnCode kn_cursor_quoted(KnTextCursor *cur, const char **ret, KnErr *err);
/** A type as in schema text (schema_text.c); ids of nested fields are all 0. */
KN_NODISCARD KnCode kn_cursor_type(KnTextCursor *cur, const KnType **ret, KnErr *err);

/* "day(ts)" or "ts", not yet bound to a schema. */
typedef struct KnTerm {
    const char *column;
    size_t at; /* of the column, for messages */
    KnTransform transform;
    bool call; /* it was spelled with brackets */
} KnTerm;
typedef struct KnSortTerm {
    KnTerm term;
    bool descending, nulls_last;
} KnSortTerm;
KN_NODISCARD KnCode kn_cursor_term(KnTextCursor *cur, KnTerm *ret, KnErr *err);
/** A term with "asc" or "desc" and "nulls first" or "nulls last" behind it. */
KN_NODISCARD KnCode kn_cursor_sort_term(KnTextCursor *cur, KnSortTerm *ret, KnErr *err);
KN_NODISCARD KnCode kn_term_bind(const KnTerm *term, const KnSchema *schema, const KnField **ret,
                                 KnErr *err);
