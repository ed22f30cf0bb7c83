/* SPDX-License-Identifier: Apache-2.0 */
/*
 * schema_check.c - what makes a schema one that Iceberg's readers accept, and giving ids anew.
 *
 * The checks are those of Java's Schema: ids and dotted names are unique, identifier fields are
 * required primitives (no float, no double) that can be reached through required structs only.
 * Ids are assigned as Java's AssignFreshIds does it: all fields of a struct first, then the types
 * inside them, so that a table's top-level columns always count from 1.
 */
#include <string.h>

#include "base/map.h"
#include "iceberg/schema/type.h"
#include "iceberg/schema/type_internal.h"

typedef struct Check {
    KnMap *ids;   /* 4 bytes of id -> field */
    KnMap *names; /* dotted name -> field */
    KnBuf path;
    KnCode code;
} Check;

static KnCode check_field(Check *c, const KnField *field, KnErr *err)
{
    void **slot;
    bool is_new;

    slot = kn_map_get_or_add(c->ids, (KnStr){(const char *)&field->id, sizeof(field->id)}, &is_new);
    if (!is_new)
        return kn_err_set(err, c->code, "field id %d is used by '%s' and '%s'", field->id,
                          ((const KnField *)*slot)->name, field->name);
    *slot = (void *)field;
    slot = kn_map_get_or_add(c->names, (KnStr){c->path.data, c->path.len}, &is_new);
    if (!is_new)
        return kn_err_set(err, c->code, "multiple fields for name %s: %d and %d", c->path.data,
                          ((const KnField *)*slot)->id, field->id);
    *slot = (void *)field;
    if (field->type->kind == KN_TYPE_UNKNOWN && field->required)
        return kn_err_set(err, c->code, "field '%s': type unknown cannot be required",
                          c->path.data);
    return KN_OK;
}

static KnCode check_type(Check *c, const KnType *type, KnErr *err)
{
    size_t len = c->path.len;

    for (size_t i = 0; i < type->n_fields; i++) {
        if (len > 0)
            kn_buf_char(&c->path, '.');
        kn_buf_text(&c->path, type->fields[i].name);
        KN_TRY(kn_buf_check(&c->path, err));
        KN_TRY(check_field(c, &type->fields[i], err));
        KN_TRY(check_type(c, type->fields[i].type, err));
        c->path.len = len;
    }
    return KN_OK;
}

/* The field of id when it is under required structs only; *ret_why says what was in the way. */
static const KnField *find_reachable(const KnType *type, int32_t id, const char **ret_why)
{
    for (size_t i = 0; i < type->n_fields; i++) {
        const KnField *field = &type->fields[i];
        if (field->id == id) {
            if (type->kind != KN_TYPE_STRUCT)
                *ret_why = "must not be nested in a list or a map";
            return field;
        }
        const KnField *inner = find_reachable(field->type, id, ret_why);
        if (!inner)
            continue;
        if (type->kind != KN_TYPE_STRUCT)
            *ret_why = "must not be nested in a list or a map";
        else if (!field->required && !*ret_why)
            *ret_why = "must not be nested in an optional field";
        return inner;
    }
    return NULL;
}

static KnCode check_identifiers(const KnSchema *schema, KnCode code, KnErr *err)
{
    for (size_t i = 0; i < schema->n_identifier_ids; i++) {
        int32_t id = schema->identifier_ids[i];
        const char *why = NULL;
        const KnField *field = find_reachable(&schema->root, id, &why);

        if (!field)
            return kn_err_set(err, code,
                              "Cannot add fieldId %d as an identifier field: field does not exist",
                              id);
        if (kn_type_is_nested(field->type))
            why = "not a primitive type field";
        else if (!field->required)
            why = "not a required field";
        else if (field->type->kind == KN_TYPE_FLOAT || field->type->kind == KN_TYPE_DOUBLE)
            why = "must not be float or double field";
        if (why)
            return kn_err_set(err, code, "Cannot add field %s as an identifier field: %s",
                              field->name, why);
    }
    return KN_OK;
}

KnCode kn_schema_check(const KnSchema *schema, KnCode code, KnErr *err)
{
    KN_MAP_AUTO ids = kn_map_new();
    KN_MAP_AUTO names = kn_map_new();
    KN_BUF_AUTO path = {0};
    KnCode rc;

    kn_buf_init(&path, (size_t)1 << 20);
    Check c = {.ids = ids, .names = names, .path = path, .code = code};
    rc = check_type(&c, &schema->root, err);
    path = c.path;
    return rc != KN_OK ? rc : check_identifiers(schema, code, err);
}

static KnCode check_format(const KnType *type, int32_t version, KnErr *err)
{
    for (size_t i = 0; i < type->n_fields; i++) {
        const KnField *field = &type->fields[i];
        int32_t min = kn_type_min_format(field->type);
        char text[KN_TYPE_TEXT_MAX];

        if (version < min)
            return kn_err_set(err, KN_E_INVAL, "Invalid type for %s: %s is not supported until v%d",
                              field->name, kn_type_text(field->type, text), min);
        if (version < 3 && field->initial_default)
            return kn_err_set(
                err, KN_E_INVAL,
                "Invalid initial default for %s: non-null default is not supported until v3",
                field->name);
        KN_TRY(check_format(field->type, version, err));
    }
    return KN_OK;
}

KnCode kn_schema_check_format(const KnSchema *schema, int32_t format_version, KnErr *err)
{
    return check_format(&schema->root, format_version, err);
}

/* ---- new ids ---- */

typedef struct Assign {
    KnArena *arena;
    int32_t *last_id;
    const KnSchema *schema; /* as given: for its identifier ids */
    int32_t *identifiers;   /* the same, anew */
} Assign;

static const KnType *assign_type(Assign *a, const KnType *type);

static void note_identifier(Assign *a, int32_t from, int32_t to)
{
    for (size_t i = 0; i < a->schema->n_identifier_ids; i++)
        if (a->schema->identifier_ids[i] == from)
            a->identifiers[i] = to;
}

static const KnField *assign_fields(Assign *a, const KnType *type)
{
    KnField *fields = kn_arena_zalloc(a->arena, (type->n_fields + 1) * sizeof(*fields));

    for (size_t i = 0; i < type->n_fields; i++) {
        const KnField *field = &type->fields[i];
        fields[i] = *field;
        fields[i].id = ++*a->last_id;
        fields[i].name = kn_arena_strdup(a->arena, field->name);
        fields[i].doc = field->doc ? kn_arena_strdup(a->arena, field->doc) : NULL;
        note_identifier(a, field->id, fields[i].id);
    }
    for (size_t i = 0; i < type->n_fields; i++)
        fields[i].type = assign_type(a, fields[i].type);
    return fields;
}

static const KnType *assign_type(Assign *a, const KnType *type)
{
    KnType *copy = kn_arena_alloc(a->arena, sizeof(*copy));

    *copy = *type;
    copy->text = type->text ? kn_arena_strdup(a->arena, type->text) : NULL;
    copy->fields = assign_fields(a, type);
    return copy;
}

KnSchema *kn_schema_assign_ids(KnArena *arena, const KnSchema *schema, int32_t *last_id)
{
    KnSchema *copy = kn_arena_alloc(arena, sizeof(*copy));
    Assign a = {.arena = arena, .last_id = last_id, .schema = schema};

    a.identifiers = kn_arena_zalloc(arena, (schema->n_identifier_ids + 1) * sizeof(*a.identifiers));
    *copy = *schema;
    copy->root.fields = assign_fields(&a, &schema->root);
    copy->identifier_ids = a.identifiers;
    return copy;
}
