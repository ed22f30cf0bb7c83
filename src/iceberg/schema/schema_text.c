/* SPDX-License-Identifier: Apache-2.0 */
/*
 * schema_text.c - schemas as a person types them.
 *
 *     schema = field {"," field}
 *     field  = name [":"] type ["required" | "not null" | "optional"]
 *     type   = "struct" "<" schema ">" | ("list" | "array") "<" type ["required"] ">"
 *            | "map" "<" type "," type ["required"] ">" | a primitive, as in JSON or by SQL's name,
 * in any case name   = a bare word | "`" anything, with "``" for a backquote "`"
 *
 * kn_type_format() writes the same language. Ids are given when all is read, as createTable does.
 */
#include <ctype.h>
#include <string.h>

#include "base/vec.h"
#include "iceberg/schema/text_cursor.h"
#include "iceberg/schema/type.h"
#include "iceberg/schema/type_internal.h"

typedef struct Parser {
    KnTextCursor cur;
    size_t depth;
} Parser;

static KnCode parse_fields(Parser *p, KnType *ret, KnErr *err);
static KnCode parse_type(Parser *p, const KnType **ret, KnErr *err);

static bool eat_required(Parser *p)
{
    KnTextCursor ahead = p->cur;

    if (kn_cursor_eat_word(&p->cur, "required"))
        return true;
    if (kn_cursor_eat_word(&ahead, "not") && kn_cursor_eat_word(&ahead, "null")) {
        p->cur = ahead;
        return true;
    }
    kn_cursor_eat_word(&p->cur, "optional");
    return false;
}

/* Names of SQL that can mean one type only. */
static bool eat_alias(Parser *p, const KnType **ret)
{
    static const struct {
        const char *name;
        KnType type;
    } aliases[] = {{"bigint", {.kind = KN_TYPE_LONG}},     {"integer", {.kind = KN_TYPE_INT}},
                   {"bool", {.kind = KN_TYPE_BOOLEAN}},    {"varchar", {.kind = KN_TYPE_STRING}},
                   {"real", {.kind = KN_TYPE_FLOAT}},      {"text", {.kind = KN_TYPE_STRING}},
                   {"varbinary", {.kind = KN_TYPE_BINARY}}};

    for (size_t i = 0; i < sizeof(aliases) / sizeof(aliases[0]); i++) {
        if (kn_cursor_eat_word(&p->cur, aliases[i].name)) {
            *ret = &aliases[i].type;
            return true;
        }
    }
    return false;
}

/* "decimal(9, 2)", "fixed[16]": the word and what is in brackets behind it. */
static KnCode parse_primitive(Parser *p, const KnType **ret, KnErr *err)
{
    size_t start;
    KnStr word = kn_cursor_peek_word(&p->cur);
    char close = '\0';

    if (word.len == 0)
        return kn_cursor_fail(&p->cur, "a type", err);
    start = p->cur.at;
    p->cur.at += word.len;
    if (kn_cursor_eat(&p->cur, '('))
        close = ')';
    else if (kn_cursor_eat(&p->cur, '['))
        close = ']';
    if (close) {
        const char *from = p->cur.text.ptr + p->cur.at;
        const char *end = memchr(from, close, p->cur.text.len - p->cur.at);
        p->cur.at = end ? (size_t)(end - p->cur.text.ptr) : p->cur.text.len;
        KN_TRY(kn_cursor_expect(&p->cur, close, err));
    }
    char *text = kn_arena_strndup(p->cur.arena, p->cur.text.ptr + start, p->cur.at - start);
    for (size_t i = 0; i < word.len; i++)
        text[i] = (char)tolower((unsigned char)text[i]);
    KnCode rc = kn_type_parse(p->cur.arena, (KnStr){text, p->cur.at - start}, ret, err);
    if (rc == KN_OK)
        return rc;
    if (err)
        err->code = KN_E_INVAL; /* what was typed is wrong, no file is */
    return kn_err_wrap(err, KN_E_INVAL, "position %zu", start + 1);
}

static KnCode parse_inner(Parser *p, const char *name, KnField *ret, KnErr *err)
{
    ret->name = name;
    KN_TRY(parse_type(p, &ret->type, err));
    if (strcmp(name, "key") == 0)
        ret->required = true;
    else
        ret->required = eat_required(p);
    return KN_OK;
}

/* After "struct<", "list<" or "map<". */
static KnCode parse_nested(Parser *p, KnTypeKind kind, KnType *type, KnErr *err)
{
    KnField *fields = kn_arena_zalloc(p->cur.arena, 2 * sizeof(*fields));

    type->kind = kind;
    if (kind == KN_TYPE_STRUCT)
        return parse_fields(p, type, err);
    type->fields = fields;
    type->n_fields = kind == KN_TYPE_LIST ? 1 : 2;
    if (kind == KN_TYPE_LIST)
        return parse_inner(p, "element", &fields[0], err);
    KN_TRY(parse_inner(p, "key", &fields[0], err));
    KN_TRY(kn_cursor_expect(&p->cur, ',', err));
    return parse_inner(p, "value", &fields[1], err);
}

static KnCode parse_type(Parser *p, const KnType **ret, KnErr *err)
{
    KnTypeKind kind;
    KnType *type;

    if (eat_alias(p, ret))
        return KN_OK;
    if (kn_cursor_eat_word(&p->cur, "struct"))
        kind = KN_TYPE_STRUCT;
    else if (kn_cursor_eat_word(&p->cur, "list") || kn_cursor_eat_word(&p->cur, "array"))
        kind = KN_TYPE_LIST;
    else if (kn_cursor_eat_word(&p->cur, "map"))
        kind = KN_TYPE_MAP;
    else
        return parse_primitive(p, ret, err);
    if (p->depth >= KN_TYPE_DEPTH_MAX)
        return kn_err_set(err, KN_E_INVAL, "position %zu: types are nested deeper than %d levels",
                          p->cur.at + 1, KN_TYPE_DEPTH_MAX);
    type = kn_arena_zalloc(p->cur.arena, sizeof(*type));
    KN_TRY(kn_cursor_expect(&p->cur, '<', err));
    p->depth++;
    KN_TRY(parse_nested(p, kind, type, err));
    p->depth--;
    KN_TRY(kn_cursor_expect(&p->cur, '>', err));
    *ret = type;
    return KN_OK;
}

static KnCode parse_field(Parser *p, KnField *ret, KnErr *err)
{
    KN_TRY(kn_cursor_name(&p->cur, &ret->name, err));
    kn_cursor_eat(&p->cur, ':');
    KN_TRY(parse_type(p, &ret->type, err));
    ret->required = eat_required(p);
    return KN_OK;
}

static KnCode parse_fields(Parser *p, KnType *ret, KnErr *err)
{
    KN_VEC(KnField) fields = {0};
    KnCode rc;
    KnField *copy;

    do {
        rc = parse_field(p, kn_vec_push(&fields), err);
    } while (rc == KN_OK && kn_cursor_eat(&p->cur, ','));
    copy = kn_arena_zalloc(p->cur.arena, (fields.len + 1) * sizeof(*copy));
    if (fields.len > 0)
        memcpy(copy, fields.items, fields.len * sizeof(*copy));
    ret->kind = KN_TYPE_STRUCT;
    ret->fields = copy;
    ret->n_fields = fields.len;
    kn_vec_done(&fields);
    return rc;
}

KnCode kn_cursor_type(KnTextCursor *cur, const KnType **ret, KnErr *err)
{
    Parser p = {.cur = *cur};

    KN_TRY(parse_type(&p, ret, err));
    cur->at = p.cur.at;
    return KN_OK;
}

KnCode kn_schema_parse_text(KnArena *arena, KnStr text, KnSchema **ret, KnErr *err)
{
    Parser p = {.cur = {.arena = arena, .text = text}};
    KnSchema parsed = {0};
    KnSchema *schema;
    int32_t last_id = 0;

    KN_TRY(parse_fields(&p, &parsed.root, err));
    if (!kn_cursor_at_end(&p.cur))
        return kn_cursor_fail(&p.cur, "',' or the end", err);
    schema = kn_schema_assign_ids(arena, &parsed, &last_id);
    KN_TRY(kn_schema_check(schema, KN_E_INVAL, err));
    *ret = schema;
    return KN_OK;
}
