/* SPDX-License-Identifier: Apache-2.0 */
/*
 * convert.c - the SQL that carries the values of an existing column over into its new type.
 *
 * Structs are rebuilt field by field by id, lists and maps element by element, so that a nested
 * rename keeps values and a field that was dropped and made anew with the same name does not. Only
 * Iceberg's own promotions are casts; everything else is answered with NULL ("cannot"). A field
 * that is new has its initial default in the rows that are there.
 */
#include <stdio.h>

#include "duckdb_internal.h"
#include "iceberg/schema/value.h"

typedef struct Convert {
    KnArena *arena;
    int depth; /* of lambdas: names their parameters */
    bool possible;
} Convert;

static const char *convert(Convert *cv, const char *expr, const KnType *from, const KnType *to);

static const char *type_sql(Convert *cv, const KnType *type)
{
    KN_BUF_AUTO buf;
    kn_buf_init(&buf, (size_t)1 << 20);
    if (kn_type_sql(&buf, type, NULL) != KN_OK || kn_buf_check(&buf, NULL) != KN_OK) {
        cv->possible = false;
        return "INTEGER";
    }
    return kn_arena_strndup(cv->arena, buf.data, buf.len);
}

static const char *default_value(Convert *cv, const KnField *field);

/* A struct's default is {}: its fields have theirs. */
static const char *default_struct(Convert *cv, const KnType *type)
{
    KN_BUF_AUTO out;
    kn_buf_init(&out, (size_t)4 << 20);
    kn_buf_text(&out, "struct_pack(");
    for (size_t i = 0; i < type->n_fields; ++i)
        kn_buf_printf(&out, "%s%s := %s", i ? ", " : "",
                      kn_sql_ident_of(cv->arena, type->fields[i].name),
                      default_value(cv, &type->fields[i]));
    kn_buf_char(&out, ')');
    if (kn_buf_check(&out, NULL) == KN_OK)
        return kn_arena_strndup(cv->arena, out.data, out.len);
    cv->possible = false;
    return "NULL";
}

/* What rows that are there already have in a field that is new. */
static const char *default_value(Convert *cv, const KnField *field)
{
    const char *none = kn_arena_printf(cv->arena, "CAST(NULL AS %s)", type_sql(cv, field->type));
    if (!field->initial_default || json_is_null(field->initial_default))
        return none;
    if (field->type->kind == KN_TYPE_STRUCT)
        return default_struct(cv, field->type);
    if (kn_type_is_nested(field->type))
        return none;
    KnValue value;
    KN_BUF_AUTO buf;
    kn_buf_init(&buf, (size_t)1 << 20);
    if (kn_value_from_json(cv->arena, field->type, field->initial_default, &value, NULL) != KN_OK ||
        kn_value_sql(&buf, field->type, &value, NULL) != KN_OK ||
        kn_buf_check(&buf, NULL) != KN_OK) {
        cv->possible = false;
        return none;
    }
    return kn_arena_strndup(cv->arena, buf.data, buf.len);
}

static const char *convert_struct(Convert *cv, const char *expr, const KnType *from,
                                  const KnType *to)
{
    KN_BUF_AUTO out;
    kn_buf_init(&out, (size_t)4 << 20);
    kn_buf_printf(&out, "CASE WHEN %s IS NULL THEN NULL ELSE struct_pack(", expr);
    for (size_t i = 0; i < to->n_fields; ++i) {
        const KnField *field = &to->fields[i], *old = kn_type_field(from, field->id);
        const char *value = old ? NULL : default_value(cv, field);
        if (old) {
            const char *part = kn_arena_printf(cv->arena, "struct_extract(%s, %s)", expr,
                                               kn_sql_text_of(cv->arena, old->name));
            value = convert(cv, part, old->type, field->type);
        }
        kn_buf_printf(&out, "%s%s := %s", i ? ", " : "", kn_sql_ident_of(cv->arena, field->name),
                      value);
    }
    kn_buf_text(&out, ") END");
    if (kn_buf_check(&out, NULL) != KN_OK) {
        cv->possible = false;
        return expr;
    }
    return kn_arena_strndup(cv->arena, out.data, out.len);
}

static const char *convert_list(Convert *cv, const char *expr, const KnType *from, const KnType *to)
{
    const char *param = kn_arena_printf(cv->arena, "knut_%d", ++cv->depth);
    const char *item = convert(cv, param, from->fields[0].type, to->fields[0].type);
    return kn_arena_printf(cv->arena, "list_transform(%s, lambda %s: %s)", expr, param, item);
}

static const char *convert_map(Convert *cv, const char *expr, const KnType *from, const KnType *to)
{
    const char *param = kn_arena_printf(cv->arena, "knut_%d", ++cv->depth);
    const char *key = convert(cv, kn_arena_printf(cv->arena, "struct_extract(%s, 'key')", param),
                              from->fields[0].type, to->fields[0].type);
    const char *value =
        convert(cv, kn_arena_printf(cv->arena, "struct_extract(%s, 'value')", param),
                from->fields[1].type, to->fields[1].type);
    return kn_arena_printf(cv->arena,
                           "map_from_entries(list_transform(map_entries(%s), lambda %s: "
                           "struct_pack(k := %s, v := %s)))",
                           expr, param, key, value);
}

static const char *convert(Convert *cv, const char *expr, const KnType *from, const KnType *to)
{
    if (kn_type_equal(from, to))
        return expr;
    if (kn_type_is_nested(to) && from->kind == to->kind) {
        if (to->kind == KN_TYPE_STRUCT)
            return convert_struct(cv, expr, from, to);
        return to->kind == KN_TYPE_LIST ? convert_list(cv, expr, from, to)
                                        : convert_map(cv, expr, from, to);
    }
    bool unknown = from->kind == KN_TYPE_UNKNOWN;
    if (!unknown &&
        (kn_type_is_nested(from) || kn_type_is_nested(to) || !kn_type_promotes(from, to)))
        cv->possible = false;
    return kn_arena_printf(cv->arena, "CAST(%s AS %s)", unknown ? "NULL" : expr, type_sql(cv, to));
}

const char *kn_duck_convert(KnArena *arena, const char *expr, const KnType *from, const KnType *to)
{
    Convert cv = {.arena = arena, .possible = true};
    const char *sql = convert(&cv, expr, from, to);
    return cv.possible ? sql : NULL;
}

const char *kn_duck_default(KnArena *arena, const KnField *field)
{
    Convert cv = {.arena = arena, .possible = true};
    if (!field->initial_default || json_is_null(field->initial_default))
        return NULL;
    const char *sql = default_value(&cv, field);
    return cv.possible ? sql : NULL;
}
