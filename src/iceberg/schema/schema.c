/* SPDX-License-Identifier: Apache-2.0 */
/*
 * schema.c - schemas from JSON and back (spec appendix C: "Schemas"), and finding fields in them.
 *
 * Parsing keeps a reference to the JSON document until the arena goes: defaults and keys that we do
 * not know are read from it, not copied. What Java's Schema refuses is refused here: an id used
 * twice, a dotted name used twice, an identifier field that is optional, a float, or inside a list
 * or map. Lookups walk the tree: schemas are small, and a walk needs no second structure to share.
 */
#include <string.h>

#include "iceberg/schema/type.h"
#include "iceberg/schema/type_internal.h"
#include "iceberg/schema/value.h"

#define FIELDS_MAX ((size_t)100000)

typedef struct Parser {
    KnArena *arena;
    size_t depth;
} Parser;

static KnCode parse_type(Parser *p, const json_t *json, const KnType **ret, KnErr *err);

static void drop_json(void *arg)
{
    json_decref(arg);
}

/* ---- JSON to types ---- */

static KnCode check_default(const KnField *field, const json_t *value, const char *key, KnErr *err)
{
    KN_ARENA_AUTO scratch = NULL;
    KnValue ignored;

    if (!value || kn_type_is_nested(field->type))
        return KN_OK;
    scratch = kn_arena_new(256);
    KnCode rc = kn_value_from_json(scratch, field->type, value, &ignored, err);
    return rc == KN_OK ? rc : kn_err_wrap(err, rc, "%s of '%s'", key, field->name);
}

/* JSON null is an absent default: both mean NULL. */
static const json_t *get_default(const json_t *json, const char *key)
{
    const json_t *value = json_object_get(json, key);
    return json_is_null(value) ? NULL : value;
}

static KnCode parse_field(Parser *p, const json_t *json, KnField *ret, KnErr *err)
{
    const json_t *type;

    KN_TRY(kn_json_get_i32(json, "id", &ret->id, err));
    KN_TRY(kn_json_get_str(json, "name", &ret->name, err));
    KN_TRY(kn_json_get_bool(json, "required", &ret->required, err));
    KN_TRY(kn_json_opt_str(json, "doc", &ret->doc, err));
    type = json_object_get(json, "type");
    if (!type)
        return kn_err_set(err, KN_E_CORRUPT, "field '%s': 'type' is missing", ret->name);
    KnCode rc = parse_type(p, type, &ret->type, err);
    if (rc != KN_OK)
        return kn_err_wrap(err, rc, "field '%s'", ret->name);
    ret->initial_default = get_default(json, "initial-default");
    ret->write_default = get_default(json, "write-default");
    ret->extra = json;
    KN_TRY(check_default(ret, ret->initial_default, "initial-default", err));
    return check_default(ret, ret->write_default, "write-default", err);
}

static KnCode parse_struct(Parser *p, const json_t *json, KnType *ret, KnErr *err)
{
    json_t *array;
    KnField *fields;
    size_t n;

    KN_TRY(kn_json_get_array(json, "fields", &array, err));
    n = json_array_size(array);
    if (n > FIELDS_MAX)
        return kn_err_set(err, KN_E_CORRUPT, "a struct of %zu fields is beyond the limit of %zu", n,
                          FIELDS_MAX);
    fields = kn_arena_zalloc(p->arena, (n + 1) * sizeof(*fields));
    for (size_t i = 0; i < n; i++)
        KN_TRY(parse_field(p, json_array_get(array, i), &fields[i], err));
    ret->kind = KN_TYPE_STRUCT;
    ret->n_fields = n;
    ret->fields = fields;
    return KN_OK;
}

/* One of a list's or map's own fields: "<role>-id", "<role>", "<role>-required". */
static KnCode parse_inner(Parser *p, const json_t *json, const char *role, KnField *ret, KnErr *err)
{
    char key[32];
    const json_t *type = json_object_get(json, role);

    snprintf(key, sizeof(key), "%s-id", role);
    KN_TRY(kn_json_get_i32(json, key, &ret->id, err));
    ret->name = role;
    ret->required = true;
    if (strcmp(role, "key") != 0) {
        snprintf(key, sizeof(key), "%s-required", role);
        KN_TRY(kn_json_get_bool(json, key, &ret->required, err));
    }
    if (!type)
        return kn_err_set(err, KN_E_CORRUPT, "field '%s' is missing: expected a type", role);
    return parse_type(p, type, &ret->type, err);
}

static KnCode parse_nested(Parser *p, const json_t *json, KnType *ret, KnErr *err)
{
    static const char *const roles[] = {"element", "key", "value"};
    const char *name;
    KnField *fields;

    KN_TRY(kn_json_get_str(json, "type", &name, err));
    if (strcmp(name, "struct") == 0)
        return parse_struct(p, json, ret, err);
    if (strcmp(name, "list") != 0 && strcmp(name, "map") != 0)
        return kn_err_set(err, KN_E_UNSUPPORTED, "type '%s' is not known", name);
    ret->kind = name[0] == 'l' ? KN_TYPE_LIST : KN_TYPE_MAP;
    ret->n_fields = ret->kind == KN_TYPE_LIST ? 1 : 2;
    fields = kn_arena_zalloc(p->arena, 2 * sizeof(*fields));
    for (size_t i = 0; i < ret->n_fields; i++) {
        const char *role = roles[ret->kind == KN_TYPE_LIST ? 0 : 1 + i];
        KN_TRY(parse_inner(p, json, role, &fields[i], err));
    }
    ret->fields = fields;
    return KN_OK;
}

static KnCode parse_type(Parser *p, const json_t *json, const KnType **ret, KnErr *err)
{
    KnType *type;
    KnCode rc;

    if (json_is_string(json))
        return kn_type_parse(p->arena, (KnStr){json_string_value(json), json_string_length(json)},
                             ret, err);
    if (!json_is_object(json))
        return kn_err_set(err, KN_E_CORRUPT, "field 'type': expected a string or an object");
    if (p->depth >= KN_TYPE_DEPTH_MAX)
        return kn_err_set(err, KN_E_CORRUPT, "types are nested deeper than %d levels",
                          KN_TYPE_DEPTH_MAX);
    type = kn_arena_zalloc(p->arena, sizeof(*type));
    p->depth++;
    rc = parse_nested(p, json, type, err);
    p->depth--;
    if (rc == KN_OK)
        *ret = type;
    return rc;
}

static KnCode parse_identifiers(KnArena *arena, const json_t *json, KnSchema *schema, KnErr *err)
{
    json_t *array = NULL;
    int32_t *ids;
    size_t n;

    KN_TRY(kn_json_opt_array(json, "identifier-field-ids", &array, err));
    n = json_array_size(array);
    ids = kn_arena_zalloc(arena, (n + 1) * sizeof(*ids));
    for (size_t i = 0; i < n; i++) {
        const json_t *id = json_array_get(array, i);
        json_int_t value = json_integer_value(id);
        if (!json_is_integer(id) || value < INT32_MIN || value > INT32_MAX)
            return kn_err_set(err, KN_E_CORRUPT,
                              "field 'identifier-field-ids': expected 32-bit integers");
        ids[i] = (int32_t)value;
    }
    schema->n_identifier_ids = n;
    schema->identifier_ids = ids;
    return KN_OK;
}

KnCode kn_schema_parse(KnArena *arena, const json_t *json, KnSchema **ret, KnErr *err)
{
    Parser p = {.arena = arena};
    KnSchema *schema = kn_arena_zalloc(arena, sizeof(*schema));
    const char *type;

    if (!json_is_object(json))
        return kn_err_set(err, KN_E_CORRUPT, "a schema is an object of type struct");
    KN_TRY(kn_json_get_str(json, "type", &type, err));
    if (strcmp(type, "struct") != 0)
        return kn_err_set(err, KN_E_CORRUPT, "a schema is of type struct, not '%s'", type);
    kn_arena_defer(arena, drop_json, json_incref((json_t *)json));
    KN_TRY(kn_json_opt_i32(json, "schema-id", &schema->schema_id, err));
    KN_TRY(parse_struct(&p, json, &schema->root, err));
    KN_TRY(parse_identifiers(arena, json, schema, err));
    KN_TRY(kn_schema_check(schema, KN_E_CORRUPT, err));
    schema->extra = json;
    *ret = schema;
    return KN_OK;
}

/* ---- types to JSON ---- */

static json_t *type_to_json(const KnType *type);

void kn_json_keep_unknown(json_t *obj, const json_t *source, const char *const *known)
{
    const char *key;
    json_t *value;

    json_object_foreach((json_t *)source, key, value)
    {
        bool is_known = json_object_get(obj, key) != NULL;
        for (size_t i = 0; known[i] && !is_known; i++)
            is_known = strcmp(known[i], key) == 0;
        if (!is_known)
            json_object_set(obj, key, value);
    }
}

static void set_shared(json_t *obj, const char *key, const json_t *value)
{
    if (value)
        json_object_set(obj, key, (json_t *)value);
}

static json_t *field_to_json(const KnField *field)
{
    static const char *const known[] = {
        "id", "name", "required", "type", "doc", "initial-default", "write-default", NULL};
    json_t *obj = json_object();

    json_object_set_new(obj, "id", json_integer(field->id));
    json_object_set_new(obj, "name", json_string(field->name));
    json_object_set_new(obj, "required", json_boolean(field->required));
    json_object_set_new(obj, "type", type_to_json(field->type));
    if (field->doc)
        json_object_set_new(obj, "doc", json_string(field->doc));
    set_shared(obj, "initial-default", field->initial_default);
    set_shared(obj, "write-default", field->write_default);
    kn_json_keep_unknown(obj, field->extra, known);
    return obj;
}

static json_t *fields_to_json(const KnType *type)
{
    json_t *array = json_array();

    for (size_t i = 0; i < type->n_fields; i++)
        json_array_append_new(array, field_to_json(&type->fields[i]));
    return array;
}

static json_t *nested_to_json(const KnType *type)
{
    json_t *obj = json_object();
    char key[32];

    json_object_set_new(obj, "type", json_string(type->kind == KN_TYPE_LIST ? "list" : "map"));
    for (size_t i = 0; i < type->n_fields; i++) {
        const KnField *field = &type->fields[i];
        snprintf(key, sizeof(key), "%s-id", field->name);
        json_object_set_new(obj, key, json_integer(field->id));
        json_object_set_new(obj, field->name, type_to_json(field->type));
        if (type->kind == KN_TYPE_MAP && i == 0)
            continue;
        snprintf(key, sizeof(key), "%s-required", field->name);
        json_object_set_new(obj, key, json_boolean(field->required));
    }
    return obj;
}

static json_t *type_to_json(const KnType *type)
{
    char text[KN_TYPE_TEXT_MAX];

    if (type->kind == KN_TYPE_STRUCT) {
        json_t *obj = json_object();
        json_object_set_new(obj, "type", json_string("struct"));
        json_object_set_new(obj, "fields", fields_to_json(type));
        return obj;
    }
    if (kn_type_is_nested(type))
        return nested_to_json(type);
    if (type->text)
        return json_string(type->text);
    if (type->kind == KN_TYPE_DECIMAL) /* with the space that Java and Python write */
        return json_sprintf("decimal(%d, %d)", type->precision, type->scale);
    return json_string(kn_type_text(type, text));
}

json_t *kn_schema_to_json(const KnSchema *schema)
{
    static const char *const known[] = {"type", "schema-id", "identifier-field-ids", "fields",
                                        NULL};
    json_t *obj = json_object();

    json_object_set_new(obj, "type", json_string("struct"));
    json_object_set_new(obj, "schema-id", json_integer(schema->schema_id));
    if (schema->n_identifier_ids > 0) {
        json_t *ids = json_array();
        for (size_t i = 0; i < schema->n_identifier_ids; i++)
            json_array_append_new(ids, json_integer(schema->identifier_ids[i]));
        json_object_set_new(obj, "identifier-field-ids", ids);
    }
    json_object_set_new(obj, "fields", fields_to_json(&schema->root));
    kn_json_keep_unknown(obj, schema->extra, known);
    return obj;
}

/* ---- finding ---- */

static const KnField *find_id(const KnType *type, int32_t id)
{
    for (size_t i = 0; i < type->n_fields; i++) {
        const KnField *field = &type->fields[i];
        if (field->id == id)
            return field;
        const KnField *inner = find_id(field->type, id);
        if (inner)
            return inner;
    }
    return NULL;
}

const KnField *kn_type_field(const KnType *type, int32_t id)
{
    for (size_t i = 0; i < type->n_fields; i++)
        if (type->fields[i].id == id)
            return &type->fields[i];
    return NULL;
}

const KnField *kn_schema_find_id(const KnSchema *schema, int32_t id)
{
    return find_id(&schema->root, id);
}

/* A name may hold dots itself ("a.b"), so every field that is a prefix of the path is followed. */
static const KnField *find_name(const KnType *type, KnStr path)
{
    for (size_t i = 0; i < type->n_fields; i++) {
        const KnField *field = &type->fields[i];
        KnStr name = kn_str(field->name);
        if (kn_str_eq(name, path))
            return field;
        if (path.len <= name.len || path.ptr[name.len] != '.' || !kn_str_starts_with(path, name))
            continue;
        const KnField *inner =
            find_name(field->type, (KnStr){path.ptr + name.len + 1, path.len - name.len - 1});
        if (inner)
            return inner;
    }
    return NULL;
}

const KnField *kn_schema_find_name(const KnSchema *schema, KnStr dotted)
{
    return find_name(&schema->root, dotted);
}

static bool full_name(const KnType *type, int32_t id, KnBuf *buf)
{
    for (size_t i = 0; i < type->n_fields; i++) {
        const KnField *field = &type->fields[i];
        if (field->id != id && !find_id(field->type, id))
            continue;
        kn_buf_text(buf, field->name);
        if (field->id == id)
            return true;
        kn_buf_char(buf, '.');
        return full_name(field->type, id, buf);
    }
    return false;
}

bool kn_schema_full_name(const KnSchema *schema, int32_t id, KnBuf *buf)
{
    return full_name(&schema->root, id, buf);
}

static int32_t highest_id(const KnType *type)
{
    int32_t highest = 0;

    for (size_t i = 0; i < type->n_fields; i++) {
        int32_t inner = highest_id(type->fields[i].type);
        if (type->fields[i].id > highest)
            highest = type->fields[i].id;
        if (inner > highest)
            highest = inner;
    }
    return highest;
}

int32_t kn_schema_highest_id(const KnSchema *schema)
{
    return highest_id(&schema->root);
}

/* The identifier fields that are still there. */
static void keep_identifiers(KnArena *arena, KnSchema *schema)
{
    int32_t *ids = kn_arena_zalloc(arena, (schema->n_identifier_ids + 1) * sizeof(*ids));
    size_t kept = 0;

    for (size_t i = 0; i < schema->n_identifier_ids; i++)
        if (kn_schema_find_id(schema, schema->identifier_ids[i]))
            ids[kept++] = schema->identifier_ids[i];
    schema->identifier_ids = ids;
    schema->n_identifier_ids = kept;
}

KnCode kn_schema_project(KnArena *arena, const KnSchema *schema, const char *const *names, size_t n,
                         KnSchema **ret, KnErr *err)
{
    KnSchema *out = kn_arena_zalloc(arena, sizeof(*out));
    KnField *fields = kn_arena_zalloc(arena, (n + 1) * sizeof(*fields));

    *out = *schema;
    for (size_t i = 0; names && i < n; i++) {
        const KnField *found = NULL;
        for (size_t j = 0; j < schema->root.n_fields && !found; j++)
            if (strcmp(schema->root.fields[j].name, names[i]) == 0)
                found = &schema->root.fields[j];
        if (!found)
            return kn_err_set(err, KN_E_INVAL, "column '%s' does not exist", names[i]);
        fields[i] = *found;
    }
    if (names) {
        out->root.fields = fields;
        out->root.n_fields = n;
        keep_identifiers(arena, out);
    }
    *ret = out;
    return KN_OK;
}
