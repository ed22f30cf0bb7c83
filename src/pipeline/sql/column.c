/* SPDX-License-Identifier: Apache-2.0 */
/* column.c - columns, expectations and keys in the brackets behind a name. */
#include "pipeline/sql/sql_internal.h"

#define MAX_TYPE ((size_t)256 << 10)

void kn_sdp_columns_done(KnSdpColumns *columns)
{
    kn_vec_done(&columns->fields);
    kn_vec_done(&columns->expectations);
}

static bool at_bracket(const KnSdpParser *p)
{
    (void)p; /* a condition ends at the bracket that closes it */
    return false;
}

static KnCode violation(KnSdpParser *p, KnutOnViolation *ret)
{
    if (!kn_sdp_accept(p, "ON VIOLATION"))
        return KN_OK;
    if (kn_sdp_accept(p, "DROP ROW"))
        *ret = KNUT_ON_VIOLATION_DROP;
    else if (kn_sdp_accept(p, "FAIL UPDATE"))
        *ret = KNUT_ON_VIOLATION_FAIL;
    else
        return kn_sdp_expected(p, "DROP ROW or FAIL UPDATE after ON VIOLATION");
    return KN_OK;
}

static KnCode primary_key(KnSdpParser *p, KnSdpColumns *columns)
{
    KN_TRY(kn_sdp_names(p, &columns->keys));
    (void)kn_sdp_accept(p, "NOT ENFORCED");
    (void)kn_sdp_accept(p, "RELY");
    return KN_OK;
}

/* Behind CONSTRAINT. */
static KnCode constraint(KnSdpParser *p, bool fields, KnSdpColumns *columns)
{
    KnutExpectation expectation = {0};
    KN_TRY(kn_sdp_ident(p, &expectation.name));
    if (fields && kn_sdp_accept(p, "PRIMARY KEY"))
        return primary_key(p, columns);
    if (!kn_sdp_accept(p, "EXPECT"))
        return kn_sdp_expected(p, fields ? "EXPECT (condition) or PRIMARY KEY (columns)"
                                         : "EXPECT (condition)");
    KN_TRY(kn_sdp_expect(p, "("));
    KN_TRY(kn_sdp_expr(p, at_bracket, "a condition", &expectation.constraint));
    KN_TRY(kn_sdp_expect(p, ")"));
    KN_TRY(violation(p, &expectation.on_violation));
    *kn_vec_push(&columns->expectations) = expectation;
    return KN_OK;
}

static KnCode attributes(KnSdpParser *p, KnSdpColumns *columns, KnutSchemaField *field)
{
    for (;;) {
        if (kn_sdp_accept(p, "NOT NULL")) {
            field->nullable = false;
        } else if (kn_sdp_accept(p, "NULL")) {
            field->nullable = true;
        } else if (kn_sdp_accept(p, "COMMENT")) {
            KN_TRY(kn_sdp_literal(p, "a comment between quotes", &field->comment));
        } else if (kn_sdp_accept(p, "PRIMARY KEY")) {
            const char **key = kn_arena_alloc(p->arena, sizeof(*key));
            *key = field->name;
            columns->keys = (KnutNames){key, 1};
        } else if (kn_sdp_at(p, ",") || kn_sdp_at(p, ")")) {
            return KN_OK;
        } else {
            return kn_sdp_expected(p, "NOT NULL, COMMENT, PRIMARY KEY, ',' or ')'");
        }
    }
}

static KnCode column(KnSdpParser *p, KnSdpColumns *columns)
{
    KnutSchemaField field = {.nullable = true};
    KN_BUF_AUTO type = {.max = MAX_TYPE};
    KN_TRY(kn_sdp_ident(p, &field.name));
    KnSdpToken at = p->tok;
    KN_TRY(kn_sdp_type(p, 0, &type));
    if (type.failed)
        return kn_sdp_fail(p, &at, "a type that is too long");
    field.arrow_type = kn_arena_strndup(p->arena, type.data, type.len);
    KN_TRY(attributes(p, columns, &field));
    *kn_vec_push(&columns->fields) = field;
    return KN_OK;
}

KnCode kn_sdp_columns(KnSdpParser *p, bool fields, KnSdpColumns *ret)
{
    KN_TRY(kn_sdp_expect(p, "("));
    while (!kn_sdp_at(p, ")")) {
        if (kn_sdp_accept(p, "CONSTRAINT"))
            KN_TRY(constraint(p, fields, ret));
        else if (!fields)
            return kn_sdp_expected(p, "CONSTRAINT name EXPECT (condition)");
        else if (kn_sdp_accept(p, "PRIMARY KEY"))
            KN_TRY(primary_key(p, ret));
        else
            KN_TRY(column(p, ret));
        if (!kn_sdp_accept(p, ","))
            break;
    }
    return kn_sdp_expect(p, ")");
}

KnutSchema kn_sdp_schema(KnArena *arena, const KnSdpColumns *columns)
{
    size_t n = columns->fields.len;
    if (n == 0)
        return (KnutSchema){0};
    KnutSchemaField *items = kn_arena_alloc(arena, n * sizeof(*items));
    memcpy(items, columns->fields.items, n * sizeof(*items));
    return (KnutSchema){items, n};
}

KnutExpectations kn_sdp_expectations(KnArena *arena, const KnSdpColumns *columns)
{
    size_t n = columns->expectations.len;
    if (n == 0)
        return (KnutExpectations){0};
    KnutExpectation *items = kn_arena_alloc(arena, n * sizeof(*items));
    memcpy(items, columns->expectations.items, n * sizeof(*items));
    return (KnutExpectations){items, n};
}
