/* SPDX-License-Identifier: Apache-2.0 */
/*
 * expr.c - a filter's text to a bound tree, by recursive descent.
 *
 *     or        := and { OR and }
 *     and       := not { AND not }
 *     not       := NOT not | '(' or ')' | predicate
 *     predicate := TRUE | FALSE | column | column op literal | literal op column
 *                | column [NOT] IN '(' literal {',' literal} ')'
 *                | column [NOT] BETWEEN literal AND literal | column [NOT] LIKE 'prefix%'
 *                | column IS [NOT] NULL | column IS [NOT] NAN
 *
 * Negation is carried down as a flag (De Morgan holds in three-valued logic), so the tree has no
 * NOT. Depth, number of words and of literals are limited: the text may come from anywhere.
 */
#include "iceberg/expr/expr.h"

#include <assert.h>
#include <string.h>

#include "base/vec.h"
#include "iceberg/expr/expr_internal.h"

enum { MAX_DEPTH = 200, MAX_TEXT = 16 << 20, MAX_PARTS = 64 };

typedef struct Parser {
    KnArena *arena;
    const KnSchema *schema;
    KnLexer lex;
    KnWord word; /* the one looked at */
    int depth;
    KnErr *err;
} Parser;

static KnCode parse_or(Parser *p, bool negate, const KnExpr **ret);

static KnCode advance(Parser *p)
{
    return kn_expr_next_word(&p->lex, &p->word, p->err);
}

static bool at_keyword(const Parser *p, const char *keyword)
{
    return p->word.kind == KN_WORD_NAME && kn_str_eq_nocase(p->word.text, kn_str(keyword));
}

static bool at_symbol(const Parser *p, const char *symbol)
{
    return p->word.kind == KN_WORD_SYMBOL && kn_str_eq(p->word.text, kn_str(symbol));
}

static KnCode expected(Parser *p, const char *what)
{
    if (p->word.kind == KN_WORD_END)
        return kn_err_set(p->err, KN_E_INVAL, "filter, byte %zu: expected %s, found the end",
                          p->word.at, what);
    return kn_err_set(p->err, KN_E_INVAL, "filter, byte %zu: expected %s, found '" KN_STR_FMT "'",
                      p->word.at, what, KN_STR_ARG(p->word.text));
}

static KnCode take_keyword(Parser *p, const char *keyword)
{
    return at_keyword(p, keyword) ? advance(p) : expected(p, keyword);
}

static KnCode take_symbol(Parser *p, const char *symbol)
{
    return at_symbol(p, symbol) ? advance(p) : expected(p, symbol);
}

static const KnExpr *constant(Parser *p, bool value)
{
    KnExpr *expr = kn_arena_zalloc(p->arena, sizeof(*expr));
    expr->op = value ? KN_EXPR_TRUE : KN_EXPR_FALSE;
    return expr;
}

/* ---- columns ---- */

static KnCode unknown_column(Parser *p, size_t at, const char *dotted)
{
    const char *nearest = NULL;
    size_t best = 4;
    assert(p->schema);
    for (size_t i = 0; i < p->schema->root.n_fields; i++) {
        const char *name = p->schema->root.fields[i].name;
        size_t distance = kn_str_distance(kn_str(dotted), kn_str(name));
        if (distance < best) {
            best = distance;
            nearest = name;
        }
    }
    if (nearest)
        return kn_err_set(p->err, KN_E_INVAL,
                          "filter, byte %zu: no column '%.200s': did you mean '%.200s'?", at,
                          dotted, nearest);
    return kn_err_set(p->err, KN_E_INVAL, "filter, byte %zu: no column '%.300s'", at, dotted);
}

static const KnField *find_child(const KnType *type, const char *name)
{
    for (size_t i = 0; i < type->n_fields; i++)
        if (strcmp(type->fields[i].name, name) == 0)
            return &type->fields[i];
    return NULL;
}

/* name { '.' name }: a column, or a field inside structs. */
static KnCode parse_column(Parser *p, const KnExpr **ret)
{
    const KnField **path = kn_arena_alloc(p->arena, MAX_PARTS * sizeof(*path));
    size_t n = 0;
    size_t at = p->word.at;
    const KnType *type = &p->schema->root;
    const char *dotted = NULL;
    for (;;) {
        if (p->word.kind != KN_WORD_NAME && p->word.kind != KN_WORD_QUOTED)
            return expected(p, "a column's name");
        const char *part = kn_arena_strndup(p->arena, p->word.text.ptr, p->word.text.len);
        dotted = dotted ? kn_arena_printf(p->arena, "%s.%s", dotted, part) : part;
        const KnField *field = type && n < MAX_PARTS ? find_child(type, part) : NULL;
        if (!field)
            return unknown_column(p, at, dotted);
        path[n++] = field;
        type = field->type->kind == KN_TYPE_STRUCT ? field->type : NULL;
        KN_TRY(advance(p));
        if (!at_symbol(p, "."))
            break;
        KN_TRY(advance(p));
    }
    KnExpr *column = kn_arena_zalloc(p->arena, sizeof(*column));
    *column = (KnExpr){.name = dotted, .field = path[n - 1], .n_path = n, .path = path};
    *ret = column;
    return KN_OK;
}

/* ---- predicates ---- */

static const KnExpr *unary(Parser *p, const KnExpr *column, KnExprOp op)
{
    KnExpr *expr = kn_arena_alloc(p->arena, sizeof(*expr));
    *expr = *column;
    expr->op = op;
    return expr;
}

static KnExprOp negated(KnExprOp op)
{
    static const KnExprOp opposite[] = {
        [KN_EXPR_EQ] = KN_EXPR_NE,
        [KN_EXPR_NE] = KN_EXPR_EQ,
        [KN_EXPR_LT] = KN_EXPR_GE,
        [KN_EXPR_GE] = KN_EXPR_LT,
        [KN_EXPR_LE] = KN_EXPR_GT,
        [KN_EXPR_GT] = KN_EXPR_LE,
        [KN_EXPR_IN] = KN_EXPR_NOT_IN,
        [KN_EXPR_NOT_IN] = KN_EXPR_IN,
        [KN_EXPR_IS_NULL] = KN_EXPR_NOT_NULL,
        [KN_EXPR_NOT_NULL] = KN_EXPR_IS_NULL,
        [KN_EXPR_IS_NAN] = KN_EXPR_NOT_NAN,
        [KN_EXPR_NOT_NAN] = KN_EXPR_IS_NAN,
        [KN_EXPR_STARTS_WITH] = KN_EXPR_NOT_STARTS_WITH,
        [KN_EXPR_NOT_STARTS_WITH] = KN_EXPR_STARTS_WITH,
    };
    return opposite[op];
}

static KnExprOp maybe_negated(KnExprOp op, bool negate)
{
    return negate ? negated(op) : op;
}

static bool compare_symbol(const Parser *p, KnExprOp *ret)
{
    static const struct {
        const char *symbol;
        KnExprOp op;
    } ops[] = {{"=", KN_EXPR_EQ}, {"==", KN_EXPR_EQ}, {"<>", KN_EXPR_NE}, {"!=", KN_EXPR_NE},
               {"<", KN_EXPR_LT}, {"<=", KN_EXPR_LE}, {">", KN_EXPR_GT},  {">=", KN_EXPR_GE}};
    for (size_t i = 0; i < sizeof(ops) / sizeof(*ops); i++) {
        if (at_symbol(p, ops[i].symbol)) {
            *ret = ops[i].op;
            return true;
        }
    }
    return false;
}

/* Takes a literal; the kind's name before a text (DATE '2026-01-31') is allowed and not needed. */
static KnCode take_literal_word(Parser *p, KnWord *ret)
{
    static const char *const types[] = {"date", "time", "timestamp", "timestamptz", "uuid"};
    *ret = p->word;
    if (p->word.kind != KN_WORD_NAME && p->word.kind != KN_WORD_NUMBER &&
        p->word.kind != KN_WORD_TEXT)
        return expected(p, "a literal");
    bool typed = false;
    for (size_t i = 0; i < sizeof(types) / sizeof(*types); i++)
        typed = typed || at_keyword(p, types[i]);
    KN_TRY(advance(p));
    if (typed && p->word.kind == KN_WORD_TEXT) {
        *ret = p->word;
        return advance(p);
    }
    return KN_OK;
}

static KnCode take_literal(Parser *p, const KnExpr *column, KnLiteral *ret)
{
    KnWord word;
    KN_TRY(take_literal_word(p, &word));
    return kn_expr_literal(p->arena, column->field, &word, ret, p->err);
}

static const KnExpr *logic(Parser *p, bool conjunction, const KnExpr *const *children, size_t n);

static KnCode parse_between(Parser *p, const KnExpr *column, bool negate, const KnExpr **ret)
{
    KnLiteral low;
    KnLiteral high;
    KN_TRY(advance(p));
    KN_TRY(take_literal(p, column, &low));
    KN_TRY(take_keyword(p, "AND"));
    KN_TRY(take_literal(p, column, &high));
    const KnExpr *pair[2] = {
        kn_expr_compare(p->arena, column, maybe_negated(KN_EXPR_GE, negate), &low),
        kn_expr_compare(p->arena, column, maybe_negated(KN_EXPR_LE, negate), &high)};
    *ret = logic(p, !negate, pair, 2);
    return KN_OK;
}

static KnCode parse_in(Parser *p, const KnExpr *column, bool negate, const KnExpr **ret)
{
    KN_TRY(advance(p));
    KN_TRY(take_symbol(p, "("));
    KN_VEC(KnLiteral) lits = {0};
    KnCode rc;
    for (;;) {
        rc = take_literal(p, column, kn_vec_push(&lits));
        if (rc != KN_OK || !at_symbol(p, ","))
            break;
        rc = advance(p);
        if (rc != KN_OK)
            break;
    }
    if (rc == KN_OK)
        rc = take_symbol(p, ")");
    if (rc == KN_OK)
        *ret = kn_expr_among(p->arena, column, maybe_negated(KN_EXPR_IN, negate), lits.items,
                             lits.len);
    kn_vec_done(&lits);
    return rc;
}

static KnCode parse_like(Parser *p, const KnExpr *column, bool negate, const KnExpr **ret)
{
    KN_TRY(advance(p));
    KnWord word = p->word;
    if (word.kind != KN_WORD_TEXT)
        return expected(p, "a pattern such as 'prefix%'");
    if (column->field->type->kind != KN_TYPE_STRING)
        return kn_err_set(p->err, KN_E_INVAL,
                          "filter, byte %zu: LIKE needs a string column, '%s' is none", word.at,
                          column->name);
    size_t plain = 0;
    while (plain < word.text.len && word.text.ptr[plain] != '%' && word.text.ptr[plain] != '_')
        plain++;
    bool prefix = plain + 1 == word.text.len && word.text.ptr[plain] == '%';
    if (plain < word.text.len && !prefix)
        return kn_err_set(p->err, KN_E_INVAL,
                          "filter, byte %zu: LIKE is done for 'text' and 'prefix%%' only", word.at);
    KN_TRY(advance(p));
    word.text.len = plain;
    KnLiteral lit;
    KN_TRY(kn_expr_literal(p->arena, column->field, &word, &lit, p->err));
    KnExprOp op = prefix ? KN_EXPR_STARTS_WITH : KN_EXPR_EQ;
    *ret = kn_expr_compare(p->arena, column, maybe_negated(op, negate), &lit);
    return KN_OK;
}

static KnCode parse_is(Parser *p, const KnExpr *column, bool negate, const KnExpr **ret)
{
    KN_TRY(advance(p));
    if (at_keyword(p, "NOT")) {
        negate = !negate;
        KN_TRY(advance(p));
    }
    if (at_keyword(p, "NULL")) {
        *ret = unary(p, column, maybe_negated(KN_EXPR_IS_NULL, negate));
        return advance(p);
    }
    if (!at_keyword(p, "NAN"))
        return expected(p, "NULL or NAN");
    KnTypeKind kind = column->field->type->kind;
    if (kind != KN_TYPE_FLOAT && kind != KN_TYPE_DOUBLE)
        return kn_err_set(p->err, KN_E_INVAL,
                          "filter, byte %zu: only float and double columns hold NaN, not '%s'",
                          p->word.at, column->name);
    *ret = unary(p, column, maybe_negated(KN_EXPR_IS_NAN, negate));
    return advance(p);
}

/* What follows a column. */
static KnCode parse_rest(Parser *p, const KnExpr *column, bool negate, const KnExpr **ret)
{
    KnExprOp op;
    KnLiteral lit;
    if (compare_symbol(p, &op)) {
        KN_TRY(advance(p));
        KN_TRY(take_literal(p, column, &lit));
        *ret = kn_expr_compare(p->arena, column, maybe_negated(op, negate), &lit);
        return KN_OK;
    }
    if (at_keyword(p, "IS"))
        return parse_is(p, column, negate, ret);
    bool inner = at_keyword(p, "NOT");
    if (inner)
        KN_TRY(advance(p));
    if (at_keyword(p, "IN"))
        return parse_in(p, column, negate != inner, ret);
    if (at_keyword(p, "BETWEEN"))
        return parse_between(p, column, negate != inner, ret);
    if (at_keyword(p, "LIKE"))
        return parse_like(p, column, negate != inner, ret);
    if (!inner && column->field->type->kind == KN_TYPE_BOOLEAN) {
        lit = (KnLiteral){.value = {.kind = KN_TYPE_BOOLEAN, .b = !negate}};
        *ret = kn_expr_compare(p->arena, column, KN_EXPR_EQ, &lit);
        return KN_OK;
    }
    return expected(p, "=, <>, <, <=, >, >=, IN, BETWEEN, LIKE or IS");
}

/* literal op column: the same with the sides changed. */
static KnCode parse_mirrored(Parser *p, bool negate, const KnExpr **ret)
{
    KnWord word;
    KnExprOp op;
    KN_TRY(take_literal_word(p, &word));
    if (!compare_symbol(p, &op))
        return expected(p, "=, <>, <, <=, > or >=");
    KN_TRY(advance(p));
    const KnExpr *column = NULL;
    KN_TRY(parse_column(p, &column));
    assert(column);
    static const KnExprOp mirror[] = {
        [KN_EXPR_EQ] = KN_EXPR_EQ, [KN_EXPR_NE] = KN_EXPR_NE, [KN_EXPR_LT] = KN_EXPR_GT,
        [KN_EXPR_GT] = KN_EXPR_LT, [KN_EXPR_LE] = KN_EXPR_GE, [KN_EXPR_GE] = KN_EXPR_LE};
    KnLiteral lit;
    KN_TRY(kn_expr_literal(p->arena, column->field, &word, &lit, p->err));
    *ret = kn_expr_compare(p->arena, column, maybe_negated(mirror[op], negate), &lit);
    return KN_OK;
}

static KnCode parse_predicate(Parser *p, bool negate, const KnExpr **ret)
{
    if (at_keyword(p, "TRUE") || at_keyword(p, "FALSE")) {
        *ret = constant(p, at_keyword(p, "TRUE") != negate);
        return advance(p);
    }
    if (p->word.kind == KN_WORD_NUMBER || p->word.kind == KN_WORD_TEXT)
        return parse_mirrored(p, negate, ret);
    const KnExpr *column = NULL;
    KN_TRY(parse_column(p, &column));
    return parse_rest(p, column, negate, ret);
}

/* ---- logic ---- */

static const KnExpr *logic(Parser *p, bool conjunction, const KnExpr *const *children, size_t n)
{
    KnExprOp neutral = conjunction ? KN_EXPR_TRUE : KN_EXPR_FALSE;
    KnExprOp deciding = conjunction ? KN_EXPR_FALSE : KN_EXPR_TRUE;
    const KnExpr **kept = kn_arena_alloc(p->arena, (n + 1) * sizeof(*kept));
    size_t n_kept = 0;
    for (size_t i = 0; i < n; i++) {
        if (children[i]->op == deciding)
            return constant(p, !conjunction);
        if (children[i]->op != neutral)
            kept[n_kept++] = children[i];
    }
    if (n_kept == 0)
        return constant(p, conjunction);
    if (n_kept == 1)
        return kept[0];
    KnExpr *expr = kn_arena_zalloc(p->arena, sizeof(*expr));
    expr->op = conjunction ? KN_EXPR_AND : KN_EXPR_OR;
    expr->n_children = n_kept;
    expr->children = kept;
    return expr;
}

static KnCode parse_not(Parser *p, bool negate, const KnExpr **ret)
{
    while (at_keyword(p, "NOT")) {
        negate = !negate;
        KN_TRY(advance(p));
    }
    if (!at_symbol(p, "("))
        return parse_predicate(p, negate, ret);
    if (++p->depth > MAX_DEPTH)
        return kn_err_set(p->err, KN_E_INVAL, "filter, byte %zu: nested over %d deep", p->word.at,
                          MAX_DEPTH);
    KN_TRY(advance(p));
    KN_TRY(parse_or(p, negate, ret));
    p->depth--;
    return take_symbol(p, ")");
}

static KnCode parse_chain(Parser *p, bool negate, const char *keyword, const KnExpr **ret)
{
    bool conjunction = strcmp(keyword, "AND") == 0;
    KN_VEC(const KnExpr *) children = {0};
    KnCode rc;
    for (;;) {
        const KnExpr *child = NULL;
        rc = conjunction ? parse_not(p, negate, &child) : parse_chain(p, negate, "AND", &child);
        if (rc != KN_OK)
            break;
        *kn_vec_push(&children) = child;
        if (!at_keyword(p, keyword))
            break;
        rc = advance(p);
        if (rc != KN_OK)
            break;
    }
    if (rc == KN_OK)
        *ret = children.len == 1 ? children.items[0]
                                 : logic(p, conjunction != negate, children.items, children.len);
    kn_vec_done(&children);
    return rc;
}

static KnCode parse_or(Parser *p, bool negate, const KnExpr **ret)
{
    return parse_chain(p, negate, "OR", ret);
}

KnCode kn_expr_parse(KnArena *arena, KnStr text, const KnSchema *schema, const KnExpr **ret,
                     KnErr *err)
{
    if (text.len > MAX_TEXT)
        return kn_err_set(err, KN_E_INVAL, "filter: longer than %d bytes", MAX_TEXT);
    Parser p = {
        .arena = arena, .schema = schema, .lex = {.arena = arena, .text = text}, .err = err};
    const KnExpr *expr = NULL;
    KN_TRY(advance(&p));
    KN_TRY(parse_or(&p, false, &expr));
    if (p.word.kind != KN_WORD_END)
        return expected(&p, "AND, OR or the end");
    *ret = expr;
    return KN_OK;
}
