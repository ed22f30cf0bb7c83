/* SPDX-License-Identifier: Apache-2.0 */
/*
 * expr_sql.c - a bound tree as the engine's SQL.
 *
 * A prefix test is written with a comparison beside it, which the engine can push into row group
 * statistics; the comparison alone never decides.
 */
#include "engine/engine.h"
#include "iceberg/expr/expr.h"

typedef struct Writer {
    KnBuf *buf;
    KnExprColumnFn column_fn;
    void *arg;
    KnErr *err;
} Writer;

static void write_column(const Writer *w, const KnExpr *pred)
{
    for (size_t i = 1; i < pred->n_path; i++)
        kn_buf_text(w->buf, "struct_extract(");
    w->column_fn(w->arg, w->buf, pred->n_path ? pred->path[0] : pred->field);
    for (size_t i = 1; i < pred->n_path; i++) {
        kn_buf_text(w->buf, ", ");
        kn_sql_text(w->buf, kn_str(pred->path[i]->name));
        kn_buf_char(w->buf, ')');
    }
}

static KnCode write_literal(const Writer *w, const KnExpr *pred, size_t i)
{
    return kn_value_sql(w->buf, pred->field->type, &pred->literals[i], w->err);
}

static KnCode write_compare(const Writer *w, const KnExpr *pred, const char *op)
{
    write_column(w, pred);
    kn_buf_text(w->buf, op);
    return write_literal(w, pred, 0);
}

static KnCode write_among(const Writer *w, const KnExpr *pred, const char *op)
{
    write_column(w, pred);
    kn_buf_text(w->buf, op);
    for (size_t i = 0; i < pred->n_literals; i++) {
        kn_buf_text(w->buf, i ? ", " : " (");
        KN_TRY(write_literal(w, pred, i));
    }
    kn_buf_char(w->buf, ')');
    return KN_OK;
}

static KnCode write_prefix(const Writer *w, const KnExpr *pred)
{
    bool positive = pred->op == KN_EXPR_STARTS_WITH;
    kn_buf_text(w->buf, positive ? "(" : "NOT ");
    if (positive) {
        KN_TRY(write_compare(w, pred, " >= "));
        kn_buf_text(w->buf, " AND ");
    }
    kn_buf_text(w->buf, "starts_with(");
    KN_TRY(write_compare(w, pred, ", "));
    kn_buf_text(w->buf, positive ? "))" : ")");
    return KN_OK;
}

static KnCode write_null_or_nan(const Writer *w, const KnExpr *pred)
{
    bool nan = pred->op == KN_EXPR_IS_NAN || pred->op == KN_EXPR_NOT_NAN;
    if (pred->op == KN_EXPR_NOT_NAN)
        kn_buf_text(w->buf, "NOT ");
    kn_buf_text(w->buf, nan ? "isnan(" : "(");
    write_column(w, pred);
    kn_buf_text(w->buf, nan ? ")" : pred->op == KN_EXPR_IS_NULL ? " IS NULL)" : " IS NOT NULL)");
    return KN_OK;
}

static KnCode write_predicate(const Writer *w, const KnExpr *pred)
{
    switch (pred->op) {
    case KN_EXPR_EQ:
        return write_compare(w, pred, " = ");
    case KN_EXPR_NE:
        return write_compare(w, pred, " <> ");
    case KN_EXPR_LT:
        return write_compare(w, pred, " < ");
    case KN_EXPR_LE:
        return write_compare(w, pred, " <= ");
    case KN_EXPR_GT:
        return write_compare(w, pred, " > ");
    case KN_EXPR_GE:
        return write_compare(w, pred, " >= ");
    case KN_EXPR_IN:
        return write_among(w, pred, " IN");
    case KN_EXPR_NOT_IN:
        return write_among(w, pred, " NOT IN");
    case KN_EXPR_STARTS_WITH:
    case KN_EXPR_NOT_STARTS_WITH:
        return write_prefix(w, pred);
    default:
        return write_null_or_nan(w, pred);
    }
}

static KnCode write_expr(const Writer *w, const KnExpr *expr)
{
    switch (expr->op) {
    case KN_EXPR_TRUE:
    case KN_EXPR_FALSE:
        kn_buf_text(w->buf, expr->op == KN_EXPR_TRUE ? "TRUE" : "FALSE");
        return KN_OK;
    case KN_EXPR_NOT:
        kn_buf_text(w->buf, "NOT (");
        KN_TRY(write_expr(w, expr->children[0]));
        kn_buf_char(w->buf, ')');
        return KN_OK;
    case KN_EXPR_AND:
    case KN_EXPR_OR:
        kn_buf_char(w->buf, '(');
        for (size_t i = 0; i < expr->n_children; i++) {
            if (i)
                kn_buf_text(w->buf, expr->op == KN_EXPR_AND ? " AND " : " OR ");
            KN_TRY(write_expr(w, expr->children[i]));
        }
        kn_buf_char(w->buf, ')');
        return KN_OK;
    default:
        return write_predicate(w, expr);
    }
}

KnCode kn_expr_sql_with(KnBuf *buf, const KnExpr *expr, KnExprColumnFn column_fn, void *arg,
                        KnErr *err)
{
    Writer w = {.buf = buf, .column_fn = column_fn, .arg = arg, .err = err};
    return write_expr(&w, expr);
}

static void column_by_name(void *arg, KnBuf *buf, const KnField *column)
{
    (void)arg;
    kn_sql_ident(buf, kn_str(column->name));
}

KnCode kn_expr_sql(KnBuf *buf, const KnExpr *expr, KnErr *err)
{
    return kn_expr_sql_with(buf, expr, column_by_name, NULL, err);
}

void kn_expr_columns(const KnExpr *expr, void (*fn)(void *arg, const KnField *column), void *arg)
{
    for (size_t i = 0; i < expr->n_children; i++)
        kn_expr_columns(expr->children[i], fn, arg);
    if (expr->field)
        fn(arg, expr->n_path ? expr->path[0] : expr->field);
}
