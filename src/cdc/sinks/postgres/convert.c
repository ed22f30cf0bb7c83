/* SPDX-License-Identifier: Apache-2.0 */
/*
 * convert.c - the SQL that carries stored values over into a column's new type.
 *
 * Top-level columns change by Iceberg's own promotions, which are casts. Nested values are jsonb:
 * structs are rebuilt field by field by id, lists and maps element by element, so that a nested
 * rename keeps values and a field that was dropped and made anew with the same name does not.
 * Inside jsonb most promotions change nothing; a float that becomes a double gets its digits, a
 * date that becomes a timestamp gets its time. Everything else is answered with NULL ("cannot").
 */
#include <string.h>

#include "cdc/sinks/postgres/postgres_internal.h"
#include "iceberg/schema/value.h"

typedef struct Convert {
    KnArena *arena;
    int depth; /* names the parts of nested queries */
    bool possible;
} Convert;

static const char *convert_json(Convert *cv, const char *expr, const KnType *from,
                                const KnType *to);

/* ---- defaults ---- */

static bool is_nanos(const KnType *type)
{
    return type->kind == KN_TYPE_TIMESTAMP_NS || type->kind == KN_TYPE_TIMESTAMPTZ_NS;
}

static bool default_of(KnArena *arena, const KnField *field, KnValue *ret)
{
    return field->initial_default && !json_is_null(field->initial_default) &&
           !kn_type_is_nested(field->type) &&
           kn_value_from_json(arena, field->type, field->initial_default, ret, NULL) == KN_OK;
}

/* The text of a primitive, as PostgreSQL reads it. */
static const char *value_text(KnArena *arena, const KnType *type, const KnValue *value,
                              const char *hex)
{
    KN_BUF_AUTO buf;
    kn_buf_init(&buf, (size_t)16 << 20);
    kn_value_format(&buf, type, value);
    const char *text = kn_arena_strndup(arena, buf.data ? buf.data : "", buf.len);
    bool bytes = type->kind == KN_TYPE_FIXED || type->kind == KN_TYPE_BINARY;
    return bytes && strncmp(text, "0x", 2) == 0 ? kn_arena_printf(arena, "%s%s", hex, text + 2)
                                                : text;
}

static const char *json_default(Convert *cv, const KnField *field);

/* A struct's default is {}: its fields have theirs. */
static const char *json_struct_default(Convert *cv, const KnType *type)
{
    const char *out = "'{}'::jsonb";
    for (size_t i = 0; i < type->n_fields; ++i)
        out = kn_arena_printf(cv->arena, "%s || jsonb_build_object(%s, %s)", out,
                              kn_sql_text_of(cv->arena, type->fields[i].name),
                              json_default(cv, &type->fields[i]));
    return kn_arena_printf(cv->arena, "(%s)", out);
}

/* As jsonb, spelled as the encoder spells it. */
static const char *json_default(Convert *cv, const KnField *field)
{
    KnValue value;
    if (field->initial_default && field->type->kind == KN_TYPE_STRUCT)
        return json_struct_default(cv, field->type);
    if (!default_of(cv->arena, field, &value))
        return "'null'::jsonb";
    switch (field->type->kind) {
    case KN_TYPE_BOOLEAN:
    case KN_TYPE_INT:
    case KN_TYPE_LONG:
        return kn_arena_printf(cv->arena, "'%s'::jsonb",
                               value_text(cv->arena, field->type, &value, ""));
    case KN_TYPE_FLOAT:
        return kn_arena_printf(
            cv->arena, "to_jsonb(%s::real)",
            kn_sql_text_of(cv->arena, value_text(cv->arena, field->type, &value, "")));
    case KN_TYPE_DOUBLE:
        return kn_arena_printf(
            cv->arena, "to_jsonb(%s::double precision)",
            kn_sql_text_of(cv->arena, value_text(cv->arena, field->type, &value, "")));
    default:
        return kn_arena_printf(
            cv->arena, "to_jsonb(%s::text)",
            kn_sql_text_of(cv->arena, value_text(cv->arena, field->type, &value, "0x")));
    }
}

const char *kn_pg_default(KnArena *arena, const KnField *field, KnPgNanos nanos)
{
    Convert cv = {.arena = arena, .possible = true};
    const char *type;
    KnValue value;
    if (!field->initial_default || json_is_null(field->initial_default))
        return NULL;
    if (field->type->kind == KN_TYPE_STRUCT)
        return json_struct_default(&cv, field->type);
    if (!default_of(arena, field, &value) || kn_pg_type(arena, field, nanos, &type, NULL) != KN_OK)
        return NULL;
    if (is_nanos(field->type) && nanos == KN_PG_NANOS_BIGINT)
        return kn_arena_printf(arena, "%lld", (long long)value.i);
    return kn_arena_printf(arena, "%s::%s",
                           kn_sql_text_of(arena, value_text(arena, field->type, &value, "\\x")),
                           type);
}

/* ---- nested ---- */

static const char *convert_struct(Convert *cv, const char *expr, const KnType *from,
                                  const KnType *to)
{
    const char *out = "'{}'::jsonb";
    for (size_t i = 0; i < to->n_fields; ++i) {
        const KnField *field = &to->fields[i], *old = kn_type_field(from, field->id);
        const char *value =
            old ? convert_json(cv,
                               kn_arena_printf(cv->arena, "(%s -> %s)", expr,
                                               kn_sql_text_of(cv->arena, old->name)),
                               old->type, field->type)
                : json_default(cv, field);
        out = kn_arena_printf(cv->arena, "%s || jsonb_build_object(%s, %s)", out,
                              kn_sql_text_of(cv->arena, field->name), value);
    }
    return out;
}

/* Elements in their order; an empty list has none to aggregate. */
static const char *convert_list(Convert *cv, const char *expr, const KnType *from, const KnType *to)
{
    const char *item = kn_arena_printf(cv->arena, "_knut_%d", ++cv->depth);
    const char *value = convert_json(cv, kn_arena_printf(cv->arena, "%s.v", item),
                                     from->fields[0].type, to->fields[0].type);
    return kn_arena_printf(cv->arena,
                           "(SELECT coalesce(jsonb_agg(%s ORDER BY %s.o), '[]'::jsonb) FROM "
                           "jsonb_array_elements(%s) WITH ORDINALITY AS %s(v, o))",
                           value, item, expr, item);
}

static const char *convert_map(Convert *cv, const char *expr, const KnType *from, const KnType *to)
{
    const char *item = kn_arena_printf(cv->arena, "_knut_%d", ++cv->depth);
    const char *key = convert_json(cv, kn_arena_printf(cv->arena, "(%s.v -> 0)", item),
                                   from->fields[0].type, to->fields[0].type);
    const char *value = convert_json(cv, kn_arena_printf(cv->arena, "(%s.v -> 1)", item),
                                     from->fields[1].type, to->fields[1].type);
    return kn_arena_printf(cv->arena,
                           "(SELECT coalesce(jsonb_agg(jsonb_build_array(%s, %s) ORDER BY %s.o), "
                           "'[]'::jsonb) FROM jsonb_array_elements(%s) WITH ORDINALITY AS %s(v, "
                           "o))",
                           key, value, item, expr, item);
}

static const char *convert_nested(Convert *cv, const char *expr, const KnType *from,
                                  const KnType *to)
{
    const char *value = to->kind == KN_TYPE_STRUCT ? convert_struct(cv, expr, from, to)
                        : to->kind == KN_TYPE_LIST ? convert_list(cv, expr, from, to)
                                                   : convert_map(cv, expr, from, to);
    return kn_arena_printf(cv->arena,
                           "CASE WHEN coalesce(%s, 'null'::jsonb) = 'null'::jsonb THEN %s ELSE %s "
                           "END",
                           expr, expr, value);
}

/* A primitive inside jsonb; texts ("NaN", dates) and numbers. */
static const char *convert_scalar(Convert *cv, const char *expr, const KnType *from,
                                  const KnType *to)
{
    if (from->kind == KN_TYPE_UNKNOWN)
        return "'null'::jsonb";
    if (!kn_type_promotes(from, to))
        cv->possible = false;
    if (from->kind == KN_TYPE_FLOAT && to->kind == KN_TYPE_DOUBLE)
        return kn_arena_printf(cv->arena,
                               "CASE WHEN jsonb_typeof(%s) = 'number' THEN "
                               "to_jsonb((%s #>> '{}')::real::double precision) ELSE %s END",
                               expr, expr, expr);
    if (from->kind == KN_TYPE_DATE && to->kind != KN_TYPE_DATE)
        return kn_arena_printf(cv->arena,
                               "CASE WHEN jsonb_typeof(%s) = 'string' THEN "
                               "to_jsonb((%s #>> '{}') || 'T00:00') ELSE %s END",
                               expr, expr, expr);
    return expr;
}

static const char *convert_json(Convert *cv, const char *expr, const KnType *from, const KnType *to)
{
    if (kn_type_equal(from, to))
        return expr;
    if (kn_type_is_nested(to) && from->kind == to->kind)
        return convert_nested(cv, expr, from, to);
    if (kn_type_is_nested(to) || kn_type_is_nested(from)) {
        cv->possible = cv->possible && from->kind == KN_TYPE_UNKNOWN;
        return "'null'::jsonb";
    }
    return convert_scalar(cv, expr, from, to);
}

/* ---- top level ---- */

static const char *cast_type(const KnType *to)
{
    switch (to->kind) {
    case KN_TYPE_LONG:
        return "bigint";
    case KN_TYPE_DOUBLE:
        return "double precision";
    case KN_TYPE_TIMESTAMP:
        return "timestamp without time zone";
    case KN_TYPE_DECIMAL:
        return "numeric";
    default:
        return NULL;
    }
}

const char *kn_pg_convert(KnArena *arena, const char *expr, const KnType *from, const KnType *to)
{
    Convert cv = {.arena = arena, .possible = true};
    if (kn_type_equal(from, to))
        return expr;
    if (from->kind == KN_TYPE_UNKNOWN)
        return "NULL";
    if (kn_type_is_nested(to) && from->kind == to->kind) {
        const char *sql = convert_nested(&cv, expr, from, to);
        return cv.possible ? sql : NULL;
    }
    const char *type = kn_type_promotes(from, to) ? cast_type(to) : NULL;
    return type ? kn_arena_printf(arena, "%s::%s", expr, type) : NULL;
}
