/* SPDX-License-Identifier: Apache-2.0 */
/*
 * type.c - the target's types as text, and which Iceberg type may go into which of them.
 *
 * The rule is that a value must come back as the same value: nothing is rounded, cut, or read in
 * another zone. Spellings are those of SHOW CREATE TABLE in versions 2.1 to 4.1 ("int(11)",
 * "datetimev2(6)", "text").
 */
#include <inttypes.h>
#include <strings.h>

#include "base/str.h"
#include "doris_internal.h"

enum { MAX_DEPTH = 32, MAX_FIELDS = 4096, MAX_STRING = 65533 };

typedef struct TypeName {
    const char *name;
    KnDorisKind kind;
} TypeName;
static const TypeName NAMES[] = {
    {"boolean", KN_DORIS_BOOLEAN},   {"bool", KN_DORIS_BOOLEAN},
    {"tinyint", KN_DORIS_TINYINT},   {"smallint", KN_DORIS_SMALLINT},
    {"int", KN_DORIS_INT},           {"integer", KN_DORIS_INT},
    {"bigint", KN_DORIS_BIGINT},     {"largeint", KN_DORIS_LARGEINT},
    {"float", KN_DORIS_FLOAT},       {"double", KN_DORIS_DOUBLE},
    {"decimal", KN_DORIS_DECIMAL},   {"decimalv3", KN_DORIS_DECIMAL},
    {"date", KN_DORIS_DATE},         {"datev2", KN_DORIS_DATE},
    {"datetime", KN_DORIS_DATETIME}, {"datetimev2", KN_DORIS_DATETIME},
    {"char", KN_DORIS_CHAR},         {"varchar", KN_DORIS_VARCHAR},
    {"string", KN_DORIS_STRING},     {"text", KN_DORIS_STRING},
    {"json", KN_DORIS_JSON},         {"jsonb", KN_DORIS_JSON},
    {"array", KN_DORIS_ARRAY},       {"map", KN_DORIS_MAP},
    {"struct", KN_DORIS_STRUCT},
};

/* ---- parsing ---- */

typedef struct Parser {
    KnArena *arena;
    const char *p, *end;
    int depth;
} Parser;

static KnCode bad_type(KnErr *err)
{
    return kn_err_set(err, KN_E_CORRUPT, "a column's type cannot be read");
}

static void skip_space(Parser *in)
{
    while (in->p < in->end && *in->p == ' ')
        ++in->p;
}

static bool accept(Parser *in, char c)
{
    skip_space(in);
    if (in->p == in->end || *in->p != c)
        return false;
    ++in->p;
    return true;
}

/* Letters, digits and '_', or anything in backticks. */
static KnStr take_word(Parser *in)
{
    skip_space(in);
    if (accept(in, '`')) {
        const char *start = in->p;
        while (in->p < in->end && *in->p != '`')
            ++in->p;
        KnStr word = {start, (size_t)(in->p - start)};
        in->p += in->p < in->end;
        return word;
    }
    const char *start = in->p;
    while (in->p < in->end && *in->p != '\0' && !strchr(" ,:<>()`", *in->p))
        ++in->p;
    return (KnStr){start, (size_t)(in->p - start)};
}

static bool take_number(Parser *in, int32_t *ret)
{
    KnStr word = take_word(in);
    int64_t n;
    if (!kn_str_to_i64(word, &n) || n < 0 || n > INT32_MAX)
        return false;
    *ret = (int32_t)n;
    return true;
}

/* "(10,2)": both numbers; the first alone leaves the second 0. */
static bool take_numbers(Parser *in, int32_t *first, int32_t *second)
{
    if (!accept(in, '('))
        return true;
    if (accept(in, '*'))
        *first = -1;
    else if (!take_number(in, first))
        return false;
    if (accept(in, ',') && !take_number(in, second))
        return false;
    return accept(in, ')');
}

static KnCode parse_type(Parser *in, KnDorisType *ret, KnErr *err);

static KnCode parse_children(Parser *in, KnDorisType *ret, KnErr *err)
{
    size_t most = ret->kind == KN_DORIS_STRUCT ? MAX_FIELDS : ret->kind == KN_DORIS_MAP ? 2 : 1;
    KN_TRY(++in->depth <= MAX_DEPTH && accept(in, '<') ? KN_OK : bad_type(err));
    size_t commas = 0;
    for (const char *p = in->p; p < in->end && commas < most; ++p)
        commas += *p == ',';
    ret->children = kn_arena_zalloc(in->arena, (commas + 2) * sizeof(*ret->children));
    ret->names = kn_arena_zalloc(in->arena, (commas + 2) * sizeof(*ret->names));
    do {
        if (ret->n_children > commas || ret->n_children == most)
            return bad_type(err);
        if (ret->kind == KN_DORIS_STRUCT) {
            KnStr name = take_word(in);
            if (name.len == 0 || !accept(in, ':'))
                return bad_type(err);
            ret->names[ret->n_children] = kn_arena_strndup(in->arena, name.ptr, name.len);
        }
        KN_TRY(parse_type(in, &ret->children[ret->n_children++], err));
    } while (accept(in, ','));
    --in->depth;
    bool enough = ret->kind != KN_DORIS_MAP || ret->n_children == 2;
    return enough && accept(in, '>') ? KN_OK : bad_type(err);
}

/* What stands in brackets behind a type that is not known. */
static bool skip_brackets(Parser *in)
{
    int depth = 0;
    skip_space(in);
    if (in->p == in->end || (*in->p != '<' && *in->p != '('))
        return true;
    for (; in->p < in->end; ++in->p) {
        depth += *in->p == '<' || *in->p == '(';
        depth -= *in->p == '>' || *in->p == ')';
        if (depth == 0) {
            ++in->p;
            return true;
        }
    }
    return false;
}

static KnCode parse_type(Parser *in, KnDorisType *ret, KnErr *err)
{
    KnStr word = take_word(in);
    *ret = (KnDorisType){.kind = KN_DORIS_OTHER};
    for (size_t i = 0; i < sizeof(NAMES) / sizeof(NAMES[0]); ++i)
        if (kn_str_eq_nocase(word, kn_str(NAMES[i].name)))
            ret->kind = NAMES[i].kind;
    if (word.len == 0)
        return bad_type(err);
    if (ret->kind == KN_DORIS_OTHER)
        return skip_brackets(in) ? KN_OK : bad_type(err);
    if (ret->kind == KN_DORIS_ARRAY || ret->kind == KN_DORIS_MAP || ret->kind == KN_DORIS_STRUCT)
        return parse_children(in, ret, err);
    int32_t first = 0, second = 0;
    if (ret->kind == KN_DORIS_VARCHAR)
        first = -1;
    if (ret->kind == KN_DORIS_CHAR)
        first = 1;
    if (ret->kind == KN_DORIS_DECIMAL)
        first = 38, second = 9;
    if (!take_numbers(in, &first, &second))
        return bad_type(err);
    ret->length = ret->precision = first;
    ret->scale = ret->kind == KN_DORIS_DATETIME ? first : second;
    return KN_OK;
}

KnCode kn_doris_type_parse(KnArena *arena, KnStr text, KnDorisType *ret, KnErr *err)
{
    Parser in = {.arena = arena, .p = text.ptr, .end = text.ptr + text.len};
    KN_TRY(parse_type(&in, ret, err));
    skip_space(&in);
    return in.p == in.end ? KN_OK : bad_type(err);
}

/* ---- what goes where ---- */

static bool holds_text(const KnDorisType *to, int32_t bytes)
{
    if (to->kind == KN_DORIS_STRING)
        return true;
    bool sized = to->kind == KN_DORIS_VARCHAR || to->kind == KN_DORIS_CHAR;
    return sized && (to->length < 0 || to->length >= bytes);
}

static const char *integer_mismatch(const KnDorisType *to, KnDorisKind least)
{
    return to->kind >= least && to->kind <= KN_DORIS_LARGEINT ? NULL : "not an integer so wide";
}

static const char *decimal_mismatch(const KnType *from, const KnDorisType *to)
{
    if (to->kind != KN_DORIS_DECIMAL)
        return "not DECIMAL";
    if (to->scale < from->scale || to->precision - to->scale < from->precision - from->scale)
        return "fewer digits";
    return NULL;
}

static const char *nested_mismatch(const KnType *from, const KnDorisType *to)
{
    const KnDorisKind wanted = from->kind == KN_TYPE_LIST  ? KN_DORIS_ARRAY
                               : from->kind == KN_TYPE_MAP ? KN_DORIS_MAP
                                                           : KN_DORIS_STRUCT;
    if (to->kind != wanted)
        return "another shape";
    if (to->n_children != from->n_fields)
        return "another number of fields";
    for (size_t i = 0; i < from->n_fields; ++i) {
        const KnField *field = &from->fields[i];
        if (wanted == KN_DORIS_STRUCT && strcasecmp(field->name, to->names[i]) != 0)
            return "fields with other names or in another order";
        if (field->type->kind == KN_TYPE_BINARY || field->type->kind == KN_TYPE_FIXED)
            return "bytes inside a nested type cannot be sent";
        const char *why = kn_doris_type_mismatch(field->type, &to->children[i]);
        if (why)
            return why;
    }
    return NULL;
}

static const char *text_mismatch(const KnType *from, const KnDorisType *to)
{
    bool text = holds_text(to, 0);
    switch (from->kind) {
    case KN_TYPE_STRING: /* lengths are checked value by value */
        return text || to->kind == KN_DORIS_JSON ? NULL : "not a text";
    case KN_TYPE_UUID:
        return holds_text(to, 36) ? NULL : "not a text of 36 bytes";
    case KN_TYPE_TIME:
        return to->kind == KN_DORIS_BIGINT || holds_text(to, 15)
                   ? NULL
                   : "not BIGINT (microseconds) or a text of 15 bytes";
    case KN_TYPE_FIXED:
        return to->kind != KN_DORIS_CHAR && holds_text(to, from->length)
                   ? NULL
                   : "not VARCHAR or STRING of that length";
    case KN_TYPE_BINARY:
        return text && to->kind != KN_DORIS_CHAR ? NULL : "not VARCHAR or STRING";
    default:
        return "a type that this sink does not deliver";
    }
}

const char *kn_doris_type_mismatch(const KnType *from, const KnDorisType *to)
{
    switch (from->kind) {
    case KN_TYPE_BOOLEAN:
        return to->kind == KN_DORIS_BOOLEAN ? NULL : "not BOOLEAN";
    case KN_TYPE_INT:
        return integer_mismatch(to, KN_DORIS_INT);
    case KN_TYPE_LONG:
        return integer_mismatch(to, KN_DORIS_BIGINT);
    case KN_TYPE_FLOAT:
        return to->kind == KN_DORIS_FLOAT || to->kind == KN_DORIS_DOUBLE ? NULL : "not FLOAT";
    case KN_TYPE_DOUBLE:
        return to->kind == KN_DORIS_DOUBLE ? NULL : "not DOUBLE";
    case KN_TYPE_DECIMAL:
        return decimal_mismatch(from, to);
    case KN_TYPE_DATE:
        return to->kind == KN_DORIS_DATE ? NULL : "not DATE";
    case KN_TYPE_TIMESTAMP:
    case KN_TYPE_TIMESTAMPTZ:
        return to->kind == KN_DORIS_DATETIME && to->scale == 6 ? NULL : "not DATETIME(6)";
    case KN_TYPE_STRUCT:
    case KN_TYPE_LIST:
    case KN_TYPE_MAP:
        return nested_mismatch(from, to);
    default:
        return text_mismatch(from, to);
    }
}

/* ---- the fitting type ---- */

static KnCode nested_sql(KnBuf *out, const KnType *type, KnErr *err)
{
    kn_buf_text(out, type->kind == KN_TYPE_LIST  ? "ARRAY<"
                     : type->kind == KN_TYPE_MAP ? "MAP<"
                                                 : "STRUCT<");
    for (size_t i = 0; i < type->n_fields; ++i) {
        const KnField *field = &type->fields[i];
        kn_buf_text(out, i ? "," : "");
        if (type->kind == KN_TYPE_STRUCT) {
            kn_doris_ident(out, field->name);
            kn_buf_char(out, ':');
        }
        if (field->type->kind == KN_TYPE_BINARY || field->type->kind == KN_TYPE_FIXED)
            return kn_err_set(err, KN_E_UNSUPPORTED,
                              "%s: bytes inside a nested type cannot be sent to Doris",
                              field->name);
        KN_TRY(kn_doris_type_sql(out, field->type, false, err));
    }
    kn_buf_char(out, '>');
    return KN_OK;
}

static KnCode no_key(const KnType *type, KnErr *err)
{
    KN_BUF_AUTO text;
    kn_buf_init(&text, 4096);
    kn_type_format(&text, type);
    return kn_err_set(err, KN_E_UNSUPPORTED, "a key cannot be of type %s in Doris",
                      text.data ? text.data : "?");
}

static const char *plain_sql(KnTypeKind kind, bool key)
{
    switch (kind) {
    case KN_TYPE_BOOLEAN:
        return "BOOLEAN";
    case KN_TYPE_INT:
        return "INT";
    case KN_TYPE_LONG:
        return "BIGINT";
    case KN_TYPE_FLOAT:
        return key ? NULL : "FLOAT";
    case KN_TYPE_DOUBLE:
        return key ? NULL : "DOUBLE";
    case KN_TYPE_DATE:
        return "DATE";
    case KN_TYPE_TIME:
        return "VARCHAR(15)";
    case KN_TYPE_TIMESTAMP:
    case KN_TYPE_TIMESTAMPTZ:
        return "DATETIME(6)";
    case KN_TYPE_STRING:
    case KN_TYPE_BINARY:
        return key ? "VARCHAR(65533)" : "STRING";
    case KN_TYPE_UUID:
        return "VARCHAR(36)";
    default:
        return NULL;
    }
}

KnCode kn_doris_type_sql(KnBuf *out, const KnType *type, bool key, KnErr *err)
{
    if (kn_type_is_nested(type))
        return key ? no_key(type, err) : nested_sql(out, type, err);
    if (type->kind == KN_TYPE_DECIMAL) {
        kn_buf_printf(out, "DECIMAL(%" PRId32 ",%" PRId32 ")", type->precision, type->scale);
        return KN_OK;
    }
    if (type->kind == KN_TYPE_FIXED && type->length <= MAX_STRING) {
        kn_buf_printf(out, "VARCHAR(%" PRId32 ")", type->length);
        return KN_OK;
    }
    const char *sql = plain_sql(type->kind, key);
    if (sql) {
        kn_buf_text(out, sql);
        return KN_OK;
    }
    if (type->kind == KN_TYPE_FLOAT || type->kind == KN_TYPE_DOUBLE)
        return no_key(type, err);
    KN_BUF_AUTO text;
    kn_buf_init(&text, 4096);
    kn_type_format(&text, type);
    return kn_err_set(err, KN_E_UNSUPPORTED, "type %s cannot be delivered into Doris",
                      text.data ? text.data : "?");
}
