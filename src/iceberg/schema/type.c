/* SPDX-License-Identifier: Apache-2.0 */
/*
 * type.c - the types of Iceberg (spec: "Schemas and Data Types").
 *
 * A primitive type has a name; decimal and fixed carry numbers, geometry and geography a text of
 * parameters that is kept as it stands. A nested type is a list of fields: a struct its own, a list
 * its element, a map its key and value, so that code which walks fields needs no case for each.
 *
 * kn_type_format() writes what kn_schema_parse_text() reads, so a type in a message can be pasted
 * into a command. Types are never freed on their own: they live in the arena of their schema.
 */
#include "iceberg/schema/type.h"

#include <ctype.h>
#include <string.h>

#include "engine/engine.h"
#include "iceberg/schema/type_internal.h"

#define KIND_MAX ((size_t)KN_TYPE_GEOGRAPHY + 1)

static const struct {
    const char *name; /* in JSON; NULL = not by a bare name */
    const char *sql;  /* NULL = needs more than the kind, or the engine has none */
} kinds[KIND_MAX] = {
    [KN_TYPE_BOOLEAN] = {"boolean", "BOOLEAN"},
    [KN_TYPE_INT] = {"int", "INTEGER"},
    [KN_TYPE_LONG] = {"long", "BIGINT"},
    [KN_TYPE_FLOAT] = {"float", "FLOAT"},
    [KN_TYPE_DOUBLE] = {"double", "DOUBLE"},
    [KN_TYPE_DECIMAL] = {NULL, NULL},
    [KN_TYPE_DATE] = {"date", "DATE"},
    [KN_TYPE_TIME] = {"time", "TIME"},
    [KN_TYPE_TIMESTAMP] = {"timestamp", "TIMESTAMP"},
    [KN_TYPE_TIMESTAMPTZ] = {"timestamptz", "TIMESTAMP WITH TIME ZONE"},
    [KN_TYPE_TIMESTAMP_NS] = {"timestamp_ns", "TIMESTAMP_NS"},
    [KN_TYPE_TIMESTAMPTZ_NS] = {"timestamptz_ns", "TIMESTAMP_NS"},
    [KN_TYPE_STRING] = {"string", "VARCHAR"},
    [KN_TYPE_UUID] = {"uuid", "UUID"},
    [KN_TYPE_FIXED] = {NULL, "BLOB"},
    [KN_TYPE_BINARY] = {"binary", "BLOB"},
    [KN_TYPE_UNKNOWN] = {"unknown", "INTEGER"},
    [KN_TYPE_VARIANT] = {"variant", NULL},
    [KN_TYPE_GEOMETRY] = {"geometry", NULL},
    [KN_TYPE_GEOGRAPHY] = {"geography", NULL},
};

bool kn_type_is_nested(const KnType *type)
{
    return type->kind == KN_TYPE_STRUCT || type->kind == KN_TYPE_LIST || type->kind == KN_TYPE_MAP;
}

/* ---- text ---- */

static bool is_plain_name(const char *name)
{
    if (!isalpha((unsigned char)name[0]) && name[0] != '_')
        return false;
    for (const char *p = name; *p; p++)
        if (!isalnum((unsigned char)*p) && *p != '_')
            return false;
    return strcmp(name, "required") != 0;
}

void kn_type_format_name(KnBuf *buf, const char *name)
{
    if (is_plain_name(name)) {
        kn_buf_text(buf, name);
        return;
    }
    kn_buf_char(buf, '`');
    for (const char *p = name; *p; p++) {
        if (*p == '`')
            kn_buf_char(buf, '`');
        kn_buf_char(buf, *p);
    }
    kn_buf_char(buf, '`');
}

static void format_struct(KnBuf *buf, const KnType *type)
{
    kn_buf_text(buf, "struct<");
    for (size_t i = 0; i < type->n_fields; i++) {
        if (i > 0)
            kn_buf_text(buf, ", ");
        kn_type_format_name(buf, type->fields[i].name);
        kn_buf_char(buf, ' ');
        kn_type_format(buf, type->fields[i].type);
        if (type->fields[i].required)
            kn_buf_text(buf, " required");
    }
    kn_buf_char(buf, '>');
}

void kn_type_format(KnBuf *buf, const KnType *type)
{
    switch (type->kind) {
    case KN_TYPE_DECIMAL:
        kn_buf_printf(buf, "decimal(%d,%d)", type->precision, type->scale);
        break;
    case KN_TYPE_FIXED:
        kn_buf_printf(buf, "fixed[%d]", type->length);
        break;
    case KN_TYPE_STRUCT:
        format_struct(buf, type);
        break;
    case KN_TYPE_LIST:
        kn_buf_text(buf, "list<");
        kn_type_format(buf, type->fields[0].type);
        kn_buf_text(buf, type->fields[0].required ? " required>" : ">");
        break;
    case KN_TYPE_MAP:
        kn_buf_text(buf, "map<");
        kn_type_format(buf, type->fields[0].type);
        kn_buf_text(buf, ", ");
        kn_type_format(buf, type->fields[1].type);
        kn_buf_text(buf, type->fields[1].required ? " required>" : ">");
        break;
    default:
        kn_buf_text(buf, type->text ? type->text : kinds[type->kind].name);
        break;
    }
}

const char *kn_type_text(const KnType *type, char out[KN_TYPE_TEXT_MAX])
{
    KnBuf buf;

    kn_buf_init(&buf, (size_t)16 << 20);
    kn_type_format(&buf, type);
    snprintf(out, KN_TYPE_TEXT_MAX, "%.*s", KN_TYPE_TEXT_MAX - 1, buf.data ? buf.data : "?");
    kn_buf_done(&buf);
    return out;
}

/* ---- parsing of primitives ---- */

static KnStr trim(KnStr s)
{
    while (s.len > 0 && isspace((unsigned char)s.ptr[0])) {
        s.ptr++;
        s.len--;
    }
    while (s.len > 0 && isspace((unsigned char)s.ptr[s.len - 1]))
        s.len--;
    return s;
}

/* "name<open> inside <close>" with nothing after: inside goes to ret. */
static bool split_call(KnStr text, KnStr name, char open, char close, KnStr *ret)
{
    if (!kn_str_starts_with(text, name))
        return false;
    KnStr rest = trim((KnStr){text.ptr + name.len, text.len - name.len});
    if (rest.len < 2 || rest.ptr[0] != open || rest.ptr[rest.len - 1] != close)
        return false;
    *ret = trim((KnStr){rest.ptr + 1, rest.len - 2});
    return true;
}

static KnCode parse_decimal(KnStr inside, KnStr text, KnType *type, KnErr *err)
{
    const char *comma = memchr(inside.ptr, ',', inside.len);
    int64_t precision, scale;

    if (!comma ||
        !kn_str_to_i64(trim((KnStr){inside.ptr, (size_t)(comma - inside.ptr)}), &precision) ||
        !kn_str_to_i64(trim((KnStr){comma + 1, inside.len - (size_t)(comma + 1 - inside.ptr)}),
                       &scale))
        return kn_err_set(err, KN_E_CORRUPT, "type '" KN_STR_FMT "': expected decimal(P,S)",
                          KN_STR_ARG(text));
    if (precision < 1 || precision > 38 || scale < 0 || scale > precision)
        return kn_err_set(err, KN_E_CORRUPT,
                          "type '" KN_STR_FMT
                          "': a decimal has a precision of 1 to 38 and a scale up to that",
                          KN_STR_ARG(text));
    type->precision = (int32_t)precision;
    type->scale = (int32_t)scale;
    return KN_OK;
}

static KnCode parse_fixed(KnStr inside, KnStr text, KnType *type, KnErr *err)
{
    int64_t length;

    if (!kn_str_to_i64(inside, &length) || length < 0 || length > INT32_MAX)
        return kn_err_set(err, KN_E_CORRUPT, "type '" KN_STR_FMT "': expected fixed[LENGTH]",
                          KN_STR_ARG(text));
    type->length = (int32_t)length;
    return KN_OK;
}

/* It is kept as a C string and written back: nothing may end it early. */
static KnCode check_parameters(KnStr text, KnErr *err)
{
    for (size_t i = 0; i < text.len; i++)
        if ((unsigned char)text.ptr[i] < ' ')
            return kn_err_set(err, KN_E_CORRUPT, "a type has a control character in its name");
    if (!kn_str_is_utf8(text))
        return kn_err_set(err, KN_E_CORRUPT, "a type's name is not UTF-8");
    return KN_OK;
}

static bool find_kind(KnStr text, KnTypeKind *ret)
{
    for (size_t i = 0; i < KIND_MAX; i++) {
        if (kinds[i].name && kn_str_eq(text, kn_str(kinds[i].name))) {
            *ret = (KnTypeKind)i;
            return true;
        }
    }
    return false;
}

KnCode kn_type_parse(KnArena *arena, KnStr text, const KnType **ret, KnErr *err)
{
    KnType type = {0};
    KnStr inside;

    text = trim(text);
    if (split_call(text, KN_STR_LIT("decimal"), '(', ')', &inside)) {
        type.kind = KN_TYPE_DECIMAL;
        KN_TRY(parse_decimal(inside, text, &type, err));
    } else if (split_call(text, KN_STR_LIT("fixed"), '[', ']', &inside)) {
        type.kind = KN_TYPE_FIXED;
        KN_TRY(parse_fixed(inside, text, &type, err));
    } else if (split_call(text, KN_STR_LIT("geometry"), '(', ')', &inside)) {
        type.kind = KN_TYPE_GEOMETRY;
    } else if (split_call(text, KN_STR_LIT("geography"), '(', ')', &inside)) {
        type.kind = KN_TYPE_GEOGRAPHY;
    } else if (!find_kind(text, &type.kind)) {
        return kn_err_set(err, KN_E_UNSUPPORTED, "type '" KN_STR_FMT "' is not known",
                          KN_STR_ARG(text));
    }
    if (type.kind == KN_TYPE_GEOMETRY || type.kind == KN_TYPE_GEOGRAPHY) {
        KN_TRY(check_parameters(text, err));
        type.text = kn_arena_strndup(arena, text.ptr, text.len);
    }
    KnType *copy = kn_arena_alloc(arena, sizeof(*copy));
    *copy = type;
    *ret = copy;
    return KN_OK;
}

/* ---- comparing ---- */

static bool same_text(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

static bool same_default(const json_t *a, const json_t *b)
{
    return a == b || (a && b && json_equal(a, b));
}

static bool field_equal(const KnField *a, const KnField *b)
{
    return a->id == b->id && a->required == b->required && same_text(a->name, b->name) &&
           same_text(a->doc, b->doc) && same_default(a->initial_default, b->initial_default) &&
           same_default(a->write_default, b->write_default) && kn_type_equal(a->type, b->type);
}

bool kn_type_equal(const KnType *a, const KnType *b)
{
    if (a == b)
        return true;
    if (a->kind != b->kind || a->precision != b->precision || a->scale != b->scale ||
        a->length != b->length || a->n_fields != b->n_fields || !same_text(a->text, b->text))
        return false;
    for (size_t i = 0; i < a->n_fields; i++)
        if (!field_equal(&a->fields[i], &b->fields[i]))
            return false;
    return true;
}

bool kn_type_promotes(const KnType *from, const KnType *to)
{
    if (!kn_type_is_nested(from) && kn_type_equal(from, to))
        return true;
    switch (from->kind) {
    case KN_TYPE_UNKNOWN:
        return true;
    case KN_TYPE_INT:
        return to->kind == KN_TYPE_LONG;
    case KN_TYPE_FLOAT:
        return to->kind == KN_TYPE_DOUBLE;
    case KN_TYPE_DECIMAL:
        return to->kind == KN_TYPE_DECIMAL && to->scale == from->scale &&
               to->precision >= from->precision;
    case KN_TYPE_DATE:
        return to->kind == KN_TYPE_TIMESTAMP || to->kind == KN_TYPE_TIMESTAMP_NS;
    default:
        return kn_type_is_nested(from) && kn_type_equal(from, to);
    }
}

int32_t kn_type_min_format(const KnType *type)
{
    switch (type->kind) {
    case KN_TYPE_TIMESTAMP_NS:
    case KN_TYPE_TIMESTAMPTZ_NS:
    case KN_TYPE_UNKNOWN:
    case KN_TYPE_VARIANT:
    case KN_TYPE_GEOMETRY:
    case KN_TYPE_GEOGRAPHY:
        return 3;
    default:
        return 1;
    }
}

/* ---- the engine's types ---- */

static KnCode struct_sql(KnBuf *buf, const KnType *type, KnErr *err)
{
    if (type->n_fields == 0)
        return kn_err_set(err, KN_E_UNSUPPORTED, "a struct without fields has no column type");
    kn_buf_text(buf, "STRUCT(");
    for (size_t i = 0; i < type->n_fields; i++) {
        if (i > 0)
            kn_buf_text(buf, ", ");
        kn_sql_ident(buf, kn_str(type->fields[i].name));
        kn_buf_char(buf, ' ');
        KN_TRY(kn_type_sql(buf, type->fields[i].type, err));
    }
    kn_buf_char(buf, ')');
    return KN_OK;
}

KnCode kn_type_sql(KnBuf *buf, const KnType *type, KnErr *err)
{
    switch (type->kind) {
    case KN_TYPE_DECIMAL:
        kn_buf_printf(buf, "DECIMAL(%d,%d)", type->precision, type->scale);
        return KN_OK;
    case KN_TYPE_STRUCT:
        return struct_sql(buf, type, err);
    case KN_TYPE_LIST:
        KN_TRY(kn_type_sql(buf, type->fields[0].type, err));
        kn_buf_text(buf, "[]");
        return KN_OK;
    case KN_TYPE_MAP:
        kn_buf_text(buf, "MAP(");
        KN_TRY(kn_type_sql(buf, type->fields[0].type, err));
        kn_buf_text(buf, ", ");
        KN_TRY(kn_type_sql(buf, type->fields[1].type, err));
        kn_buf_char(buf, ')');
        return KN_OK;
    default:
        break;
    }
    if (!kinds[type->kind].sql)
        return kn_err_set(err, KN_E_UNSUPPORTED, "columns of type %s cannot be read",
                          kinds[type->kind].name);
    kn_buf_text(buf, kinds[type->kind].sql);
    return KN_OK;
}

KnColKind kn_type_column_kind(KnTypeKind kind)
{
    static const KnColKind columns[KIND_MAX] = {
        [KN_TYPE_BOOLEAN] = KN_COL_BOOL,
        [KN_TYPE_INT] = KN_COL_INT32,
        [KN_TYPE_LONG] = KN_COL_INT64,
        [KN_TYPE_FLOAT] = KN_COL_FLOAT,
        [KN_TYPE_DOUBLE] = KN_COL_DOUBLE,
        [KN_TYPE_DECIMAL] = KN_COL_DECIMAL,
        [KN_TYPE_DATE] = KN_COL_DATE,
        [KN_TYPE_TIME] = KN_COL_TIME,
        [KN_TYPE_TIMESTAMP] = KN_COL_TIMESTAMP,
        [KN_TYPE_TIMESTAMPTZ] = KN_COL_TIMESTAMPTZ,
        [KN_TYPE_TIMESTAMP_NS] = KN_COL_TIMESTAMP_NS,
        [KN_TYPE_TIMESTAMPTZ_NS] = KN_COL_TIMESTAMP_NS,
        [KN_TYPE_STRING] = KN_COL_VARCHAR,
        [KN_TYPE_UUID] = KN_COL_UUID,
        [KN_TYPE_FIXED] = KN_COL_BLOB,
        [KN_TYPE_BINARY] = KN_COL_BLOB,
        [KN_TYPE_STRUCT] = KN_COL_STRUCT,
        [KN_TYPE_LIST] = KN_COL_LIST,
        [KN_TYPE_MAP] = KN_COL_MAP,
        [KN_TYPE_UNKNOWN] = KN_COL_INT32,
        [KN_TYPE_VARIANT] = KN_COL_OTHER,
        [KN_TYPE_GEOMETRY] = KN_COL_OTHER,
        [KN_TYPE_GEOGRAPHY] = KN_COL_OTHER,
    };
    return columns[kind];
}
