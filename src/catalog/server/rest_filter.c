/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rest_filter.c - see rest_filter.h.
 *
 * Each predicate is written as the text of a filter (expr.h) and parsed there, so that literals,
 * their ranges and negation are understood in one place only. The text of a whole filter is joined
 * from those that could be parsed; `exact` says whether anything was left out below, and a negation
 * of something inexact lets everything through.
 */
#include "catalog/server/rest_filter.h"

#include <strings.h>

enum { DEPTH_MAX = 64, TEXT_MAX = 4 << 20 };

/* A part of the filter: text NULL = everything. */
typedef struct Part {
    const char *text;
    bool exact;
} Part;

static const Part everything = {NULL, false};

const KnField *kn_rest_field_find(const KnRestFilter *ctx, const char *name)
{
    const KnField *field = kn_schema_find_name(ctx->schema, kn_str(name));
    for (size_t i = 0; !field && ctx->ignore_case && i < ctx->schema->root.n_fields; i++) {
        if (!strcasecmp(ctx->schema->root.fields[i].name, name))
            field = &ctx->schema->root.fields[i];
    }
    return field;
}

static KnCode bad(KnErr *err, const char *what)
{
    return kn_err_set(err, KN_E_INVAL, "Cannot parse the filter: %s", what);
}

/* The column of an operand, quoted; NULL when it is something else than a column. */
static KnCode column_text(const KnRestFilter *ctx, const json_t *operand, const char **ret,
                          KnErr *err)
{
    const char *name = json_string_value(operand);
    const KnField *field = NULL;
    *ret = NULL;
    if (json_is_object(operand)) {
        const char *type = json_string_value(json_object_get(operand, "type"));
        if (!type)
            return bad(err, "an operand without a type");
        if (strcmp(type, "reference") != 0)
            return KN_OK;
        name = json_string_value(json_object_get(operand, "name"));
        const json_t *id = json_object_get(operand, "id");
        if (json_is_integer(id))
            field = kn_schema_find_id(ctx->schema, (int32_t)json_integer_value(id));
    } else if (!name) {
        return bad(err, "an operand is no column");
    }
    field = field || !name ? field : kn_rest_field_find(ctx, name);
    if (!field)
        return kn_err_set(err, KN_E_INVAL, "Cannot find field '%.200s' in the table's schema",
                          name ? name : "");
    if (!name || ctx->ignore_case)
        name = field->name; /* by id, or in another case: top-level columns */
    if (field != kn_schema_find_name(ctx->schema, kn_str(name)))
        return KN_OK;
    KN_BUF_AUTO text = {0};
    kn_buf_init(&text, TEXT_MAX);
    kn_buf_char(&text, '"');
    for (const char *c = name; *c; c++)
        kn_buf_text(&text, *c == '.' ? "\".\"" : *c == '"' ? "\"\"" : (char[]){*c, '\0'});
    kn_buf_char(&text, '"');
    *ret = kn_arena_strndup(ctx->arena, text.data, text.len);
    return KN_OK;
}

/* A literal's text, bare or in an object; NULL when it is none. */
static const char *literal_text(const KnRestFilter *ctx, const json_t *json)
{
    const char *type = json_string_value(json_object_get(json, "type"));
    if (type && !strcmp(type, "literal"))
        json = json_object_get(json, "value");
    if (json_is_boolean(json))
        return json_is_true(json) ? "TRUE" : "FALSE";
    if (json_is_integer(json))
        return kn_arena_printf(ctx->arena, "%lld", (long long)json_integer_value(json));
    if (json_is_real(json))
        return kn_arena_printf(ctx->arena, "%.17g", json_real_value(json));
    if (!json_is_string(json))
        return NULL;
    KN_BUF_AUTO text = {0};
    kn_buf_init(&text, TEXT_MAX);
    kn_buf_char(&text, '\'');
    for (const char *c = json_string_value(json); *c; c++)
        kn_buf_text(&text, *c == '\'' ? "''" : (char[]){*c, '\0'});
    kn_buf_char(&text, '\'');
    return text.failed ? NULL : kn_arena_strndup(ctx->arena, text.data, text.len);
}

/* A predicate's text if the filter language takes it; else everything. */
static Part tried(const KnRestFilter *ctx, const char *text)
{
    const KnExpr *expr = NULL;
    if (kn_expr_parse(ctx->arena, kn_str(text), ctx->schema, &expr, NULL) != KN_OK)
        return everything;
    return (Part){text, true};
}

static KnCode unary(const KnRestFilter *ctx, const json_t *json, const char *sql, Part *ret,
                    KnErr *err)
{
    const json_t *child = json_object_get(json, "child");
    const char *column = NULL;
    KN_TRY(column_text(ctx, child ? child : json_object_get(json, "term"), &column, err));
    *ret = column ? tried(ctx, kn_arena_printf(ctx->arena, "%s %s", column, sql)) : everything;
    return KN_OK;
}

/* `prefix%` of a literal's text; NULL when it holds what LIKE gives a meaning. */
static const char *prefix_text(KnArena *arena, const char *literal)
{
    size_t len = strlen(literal);
    if (literal[0] != '\'' || strpbrk(literal, "%_\\"))
        return NULL;
    return kn_arena_printf(arena, "%.*s%%'", (int)(len - 1), literal);
}

static KnCode comparison(const KnRestFilter *ctx, const json_t *json, const char *sql, Part *ret,
                         KnErr *err)
{
    const json_t *left = json_object_get(json, "left");
    const json_t *right = json_object_get(json, "right");
    const char *column = NULL;
    if (!left)
        left = json_object_get(json, "term");
    if (!right)
        right = json_object_get(json, "value");
    if (!left || !right)
        return bad(err, "a comparison without two operands");
    *ret = everything;
    if (!json_is_string(left) && !json_is_object(left)) /* literal op column */
        return KN_OK;
    KN_TRY(column_text(ctx, left, &column, err));
    const char *literal = literal_text(ctx, right);
    if (!literal && !json_is_object(right))
        return bad(err, "a value that is no literal");
    if (column && literal && strstr(sql, "LIKE"))
        literal = prefix_text(ctx->arena, literal);
    if (column && literal)
        *ret = tried(ctx, kn_arena_printf(ctx->arena, "%s %s %s", column, sql, literal));
    return KN_OK;
}

static KnCode among(const KnRestFilter *ctx, const json_t *json, const char *sql, Part *ret,
                    KnErr *err)
{
    const json_t *child = json_object_get(json, "child");
    const json_t *values = json_object_get(json, "values");
    const char *column = NULL;
    if (json_is_object(values))
        values = json_object_get(values, "values");
    if (!json_is_array(values))
        return bad(err, "a set without an array of values");
    KN_TRY(column_text(ctx, child ? child : json_object_get(json, "term"), &column, err));
    KN_BUF_AUTO text = {0};
    kn_buf_init(&text, TEXT_MAX);
    kn_buf_printf(&text, "%s %s (", column ? column : "", sql);
    for (size_t i = 0; i < json_array_size(values); i++) {
        const char *literal = literal_text(ctx, json_array_get(values, i));
        if (!literal)
            return bad(err, "a value that is no literal");
        kn_buf_text(&text, i ? ", " : "");
        kn_buf_text(&text, literal);
    }
    kn_buf_char(&text, ')');
    *ret = column && !text.failed && json_array_size(values)
               ? tried(ctx, kn_arena_strndup(ctx->arena, text.data, text.len))
               : everything;
    return KN_OK;
}

static KnCode convert(const KnRestFilter *ctx, const json_t *json, int depth, Part *ret,
                      KnErr *err);

static KnCode junction(const KnRestFilter *ctx, const json_t *json, int depth, Part *ret,
                       KnErr *err)
{
    bool is_and = !strcmp(json_string_value(json_object_get(json, "type")), "and");
    Part left = {0}, right = {0};
    KN_TRY(convert(ctx, json_object_get(json, "left"), depth + 1, &left, err));
    KN_TRY(convert(ctx, json_object_get(json, "right"), depth + 1, &right, err));
    if (left.text && right.text)
        *ret = (Part){
            kn_arena_printf(ctx->arena, "(%s %s %s)", left.text, is_and ? "AND" : "OR", right.text),
            left.exact && right.exact};
    else
        *ret = (Part){is_and ? (left.text ? left.text : right.text) : NULL, false};
    return KN_OK;
}

static KnCode negation(const KnRestFilter *ctx, const json_t *json, int depth, Part *ret,
                       KnErr *err)
{
    Part child = {0};
    KN_TRY(convert(ctx, json_object_get(json, "child"), depth + 1, &child, err));
    *ret = child.text && child.exact
               ? (Part){kn_arena_printf(ctx->arena, "NOT (%s)", child.text), true}
               : everything;
    return KN_OK;
}

typedef KnCode (*LeafFn)(const KnRestFilter *ctx, const json_t *json, const char *sql, Part *ret,
                         KnErr *err);

static KnCode leaf(const KnRestFilter *ctx, const json_t *json, const char *type, Part *ret,
                   KnErr *err)
{
    static const struct {
        const char *type, *sql;
        LeafFn fn;
    } kinds[] = {
        {"eq", "=", comparison},
        {"not-eq", "<>", comparison},
        {"lt", "<", comparison},
        {"lt-eq", "<=", comparison},
        {"gt", ">", comparison},
        {"gt-eq", ">=", comparison},
        {"starts-with", "LIKE", comparison},
        {"not-starts-with", "NOT LIKE", comparison},
        {"in", "IN", among},
        {"not-in", "NOT IN", among},
        {"is-null", "IS NULL", unary},
        {"not-null", "IS NOT NULL", unary},
        {"is-nan", "IS NAN", unary},
        {"not-nan", "IS NOT NAN", unary},
    };
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        if (!strcmp(type, kinds[i].type))
            return kinds[i].fn(ctx, json, kinds[i].sql, ret, err);
    }
    if (!strcmp(type, "true") || !strcmp(type, "false")) {
        *ret = (Part){!strcmp(type, "true") ? "TRUE" : "FALSE", true};
        return KN_OK;
    }
    if (!strcmp(type, "apply")) {
        *ret = everything;
        return KN_OK;
    }
    return kn_err_set(err, KN_E_INVAL, "Cannot parse the filter: unknown type '%.60s'", type);
}

static KnCode convert(const KnRestFilter *ctx, const json_t *json, int depth, Part *ret, KnErr *err)
{
    if (depth > DEPTH_MAX)
        return bad(err, "it is nested too deeply");
    if (json_is_boolean(json)) {
        *ret = (Part){json_is_true(json) ? "TRUE" : "FALSE", true};
        return KN_OK;
    }
    const char *type = json_string_value(json_object_get(json, "type"));
    if (!type)
        return bad(err, "a predicate is an object with a type, or true, or false");
    if (!strcmp(type, "and") || !strcmp(type, "or"))
        return junction(ctx, json, depth, ret, err);
    if (!strcmp(type, "not"))
        return negation(ctx, json, depth, ret, err);
    return leaf(ctx, json, type, ret, err);
}

KnCode kn_rest_filter_parse(const KnRestFilter *ctx, const json_t *json, const KnExpr **ret,
                            KnErr *err)
{
    Part part = everything;
    *ret = NULL;
    if (!json || json_is_null(json))
        return KN_OK;
    KN_TRY(convert(ctx, json, 0, &part, err));
    if (!part.text)
        return KN_OK;
    return kn_expr_parse(ctx->arena, kn_str(part.text), ctx->schema, ret, err);
}
