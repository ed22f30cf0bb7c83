/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* expr_internal.h - words, and literals on their way to values, between the files of expr. */
#include "iceberg/expr/expr.h"

typedef enum KnWordKind {
    KN_WORD_END,
    KN_WORD_NAME,   /* bare: a keyword or part of a column's name */
    KN_WORD_QUOTED, /* "x": part of a column's name */
    KN_WORD_NUMBER,
    KN_WORD_TEXT,   /* 'x' */
    KN_WORD_SYMBOL, /* ( ) , . = <> != < <= > >= */
} KnWordKind;

typedef struct KnWord {
    KnWordKind kind;
    KnStr text; /* unquoted; NUL-terminated in the arena when it was quoted */
    size_t at;  /* byte offset of its first byte */
} KnWord;

typedef struct KnLexer {
    KnArena *arena;
    KnStr text;
    size_t pos;
} KnLexer;

KN_NODISCARD KnCode kn_expr_next_word(KnLexer *lex, KnWord *ret, KnErr *err);

/* A literal against a type: itself; between two neighbours (value is the lower one); or outside of
 * all values, below or above (value is the nearest finite one). */
typedef enum KnFit { KN_FIT_EXACT, KN_FIT_BETWEEN, KN_FIT_BELOW, KN_FIT_ABOVE } KnFit;
typedef struct KnLiteral {
    KnFit fit;
    KnValue value;
} KnLiteral;

/** KN_E_INVAL: not a literal of that type; says what would be. */
KN_NODISCARD KnCode kn_expr_literal(KnArena *arena, const KnField *field, const KnWord *word,
                                    KnLiteral *ret, KnErr *err);

/** One comparison, IN or LIKE against literals; comparisons may end as TRUE, FALSE or NOT NULL. */
const KnExpr *kn_expr_compare(KnArena *arena, const KnExpr *column, KnExprOp op,
                              const KnLiteral *lit);
const KnExpr *kn_expr_among(KnArena *arena, const KnExpr *column, KnExprOp op,
                            const KnLiteral *lits, size_t n);
