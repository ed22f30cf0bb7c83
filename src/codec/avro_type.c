/* SPDX-License-Identifier: Apache-2.0 */
/*
 * avro_type.c - an Avro schema's JSON becomes a graph of KnAvroType (Avro 1.11: "Schema
 * Declaration").
 *
 * Primitives without attributes are shared constants; everything else lives in the caller's arena.
 * A named type is entered into the table of names before its fields are parsed, so a type may refer
 * to itself; whoever walks the graph therefore limits depth. Depth and number of types are limited
 * here because the text comes from outside. Attributes with the wrong type are ignored, as Avro
 * asks for logical types; a wrong structure is KN_E_CORRUPT.
 */
#include <assert.h>
#include <limits.h>

#include "base/json.h"
#include "base/map.h"
#include "codec/avro.h"

enum { DEPTH_MAX = 64, TYPES_MAX = 100000 };
#define SCHEMA_TEXT_MAX ((size_t)64 << 20)

#define PLAIN(k)                                                                                   \
    {                                                                                              \
        .kind = (k), .element_id = -1, .key_id = -1, .value_id = -1,                               \
        .zero_size = (k) == KN_AVRO_NULL                                                           \
    }
static const struct {
    const char *name;
    KnAvroType type;
} primitives[] = {
    {"null", PLAIN(KN_AVRO_NULL)},   {"boolean", PLAIN(KN_AVRO_BOOLEAN)},
    {"int", PLAIN(KN_AVRO_INT)},     {"long", PLAIN(KN_AVRO_LONG)},
    {"float", PLAIN(KN_AVRO_FLOAT)}, {"double", PLAIN(KN_AVRO_DOUBLE)},
    {"bytes", PLAIN(KN_AVRO_BYTES)}, {"string", PLAIN(KN_AVRO_STRING)},
};
enum { N_PRIMITIVES = sizeof(primitives) / sizeof(primitives[0]) };

typedef struct Parser {
    KnArena *arena;
    KnMap *names; /* full name -> KnAvroType */
    size_t n_types;
} Parser;

/* Where a type stands in the document: the namespace around it and how deep it is. */
typedef struct Place {
    const char *space; /* "" = none */
    int depth;
} Place;

static KnCode parse(Parser *p, const json_t *json, Place at, const KnAvroType **ret, KnErr *err);

static KnCode count_types(Parser *p, size_t n, KnErr *err)
{
    if (n > TYPES_MAX || p->n_types + n > TYPES_MAX)
        return kn_err_set(err, KN_E_CORRUPT, "Avro schema: more than %d types", TYPES_MAX);
    p->n_types += n;
    return KN_OK;
}

static KnCode no_memory(KnErr *err)
{
    return kn_err_set(err, KN_E_NOMEM, "Avro schema: out of memory");
}

static int32_t get_int(const json_t *obj, const char *key, int32_t dflt)
{
    const json_t *v = json_object_get(obj, key);
    if (!json_is_integer(v))
        return dflt;
    json_int_t n = json_integer_value(v);
    return n < INT32_MIN || n > INT32_MAX ? dflt : (int32_t)n;
}

static const KnAvroType *find_primitive(const char *name)
{
    for (size_t i = 0; i < N_PRIMITIVES; ++i)
        if (strcmp(primitives[i].name, name) == 0)
            return &primitives[i].type;
    return NULL;
}

static char *qualify(Parser *p, const char *space, const char *name)
{
    if (!*space || strchr(name, '.'))
        return kn_arena_strdup(p->arena, name);
    return kn_arena_printf(p->arena, "%s.%s", space, name);
}

static KnCode find_type(Parser *p, const char *name, Place at, const KnAvroType **ret, KnErr *err)
{
    const KnAvroType *type = find_primitive(name);
    if (!type)
        type = kn_map_find(p->names, kn_str(qualify(p, at.space, name)));
    if (!type)
        type = kn_map_find(p->names, kn_str(name));
    if (!type)
        return kn_err_set(err, KN_E_CORRUPT, "Avro schema: unknown type '%.100s'", name);
    *ret = type;
    return KN_OK;
}

/* A new type of this kind with the attributes that any kind may have. */
static KnCode new_type(Parser *p, const json_t *json, KnAvroKind kind, KnAvroType **ret, KnErr *err)
{
    KN_TRY(count_types(p, 1, err));
    KnAvroType *type = kn_arena_try_array(p->arena, 1, sizeof(*type));
    if (!type)
        return no_memory(err);
    *type = (KnAvroType){
        .kind = kind,
        .element_id = get_int(json, "element-id", -1),
        .key_id = get_int(json, "key-id", -1),
        .value_id = get_int(json, "value-id", -1),
        .precision = get_int(json, "precision", 0),
        .scale = get_int(json, "scale", 0),
        .adjust_to_utc = json_is_true(json_object_get(json, "adjust-to-utc")),
        .zero_size = kind == KN_AVRO_NULL,
    };
    const char *logical = json_string_value(json_object_get(json, "logicalType"));
    if (logical)
        type->logical = kn_arena_strdup(p->arena, logical);
    *ret = type;
    return KN_OK;
}

static KnCode new_fields(Parser *p, KnAvroType *type, size_t n, KnAvroField **ret, KnErr *err)
{
    KN_TRY(count_types(p, n, err));
    KnAvroField *fields = kn_arena_try_array(p->arena, n, sizeof(*fields));
    if (!fields)
        return no_memory(err);
    type->fields = fields;
    *ret = fields;
    return KN_OK;
}

/* Give the type its full name and enter it; *ret_space is the namespace for what is inside. */
static KnCode enter_name(Parser *p, const json_t *json, Place at, KnAvroType *type,
                         const char **ret_space, KnErr *err)
{
    const char *name = json_string_value(json_object_get(json, "name"));
    if (!name || !*name)
        return kn_err_set(err, KN_E_CORRUPT, "Avro schema: a named type without a name");
    const char *space = json_string_value(json_object_get(json, "namespace"));
    char *full = qualify(p, space ? space : at.space, name);
    bool is_new;
    void **slot = kn_map_get_or_add(p->names, kn_str(full), &is_new);
    if (!is_new || find_primitive(full))
        return kn_err_set(err, KN_E_CORRUPT, "Avro schema: type '%.100s' is defined twice", full);
    *slot = type;
    type->name = full;
    const char *dot = strrchr(full, '.');
    *ret_space = dot ? kn_arena_strndup(p->arena, full, (size_t)(dot - full)) : "";
    return KN_OK;
}

static KnCode parse_field(Parser *p, const json_t *json, Place at, KnAvroField *ret, KnErr *err)
{
    const char *name = json_string_value(json_object_get(json, "name"));
    const json_t *of = json_object_get(json, "type");
    if (!name || !of)
        return kn_err_set(err, KN_E_CORRUPT, "Avro schema: a field without name or type");
    const KnAvroType *type = NULL;
    KnCode code = parse(p, of, at, &type, err);
    if (code != KN_OK)
        return kn_err_wrap(err, code, "field '%.60s'", name);
    assert(ret && type);
    ret->name = kn_arena_strdup(p->arena, name);
    ret->field_id = get_int(json, "field-id", -1);
    ret->type = type;
    return KN_OK;
}

static KnCode parse_record(Parser *p, const json_t *json, Place at, KnAvroType *type, KnErr *err)
{
    const json_t *list = json_object_get(json, "fields");
    if (!json_is_array(list))
        return kn_err_set(err, KN_E_CORRUPT, "Avro schema: a record without fields");
    Place inside = {.depth = at.depth + 1};
    KN_TRY(enter_name(p, json, at, type, &inside.space, err));
    size_t n = json_array_size(list);
    KnAvroField *fields = NULL;
    KN_TRY(new_fields(p, type, n, &fields, err));
    bool zero = true;
    for (size_t i = 0; i < n; ++i) {
        KN_TRY(parse_field(p, json_array_get(list, i), inside, &fields[i], err));
        assert(fields && fields[i].type);
        zero = zero && fields[i].type->zero_size;
    }
    type->n_fields = n;
    type->zero_size = zero;
    return KN_OK;
}

static KnCode parse_items(Parser *p, const json_t *json, Place at, KnAvroType *type, KnErr *err)
{
    const char *key = type->kind == KN_AVRO_ARRAY ? "items" : "values";
    const json_t *of = json_object_get(json, key);
    if (!of)
        return kn_err_set(err, KN_E_CORRUPT, "Avro schema: an array or map without %s", key);
    KnAvroField *fields = NULL;
    KN_TRY(new_fields(p, type, 1, &fields, err));
    KN_TRY(parse(p, of, (Place){at.space, at.depth + 1}, &fields[0].type, err));
    fields[0].name = key;
    fields[0].field_id = type->kind == KN_AVRO_ARRAY ? type->element_id : type->value_id;
    type->n_fields = 1;
    return KN_OK;
}

static KnCode parse_fixed(Parser *p, const json_t *json, Place at, KnAvroType *type, KnErr *err)
{
    const char *space;
    KN_TRY(enter_name(p, json, at, type, &space, err));
    type->fixed_size = get_int(json, "size", -1);
    if (type->fixed_size < 0)
        return kn_err_set(err, KN_E_CORRUPT, "Avro schema: fixed '%.100s' without a size",
                          type->name);
    type->zero_size = type->fixed_size == 0;
    return KN_OK;
}

static KnCode parse_union(Parser *p, const json_t *json, Place at, const KnAvroType **ret,
                          KnErr *err)
{
    size_t n = json_array_size(json);
    if (n == 0)
        return kn_err_set(err, KN_E_CORRUPT, "Avro schema: a union without branches");
    KnAvroType *type;
    KnAvroField *fields = NULL;
    KN_TRY(new_type(p, NULL, KN_AVRO_UNION, &type, err));
    KN_TRY(new_fields(p, type, n, &fields, err));
    for (size_t i = 0; i < n; ++i) {
        KN_TRY(parse(p, json_array_get(json, i), (Place){at.space, at.depth + 1}, &fields[i].type,
                     err));
        if (fields[i].type->kind == KN_AVRO_UNION)
            return kn_err_set(err, KN_E_CORRUPT, "Avro schema: a union directly inside a union");
        fields[i].name = "";
        fields[i].field_id = -1;
    }
    type->n_fields = n;
    *ret = type;
    return KN_OK;
}

static bool find_complex(const char *name, KnAvroKind *ret)
{
    static const struct {
        const char *name;
        KnAvroKind kind;
    } kinds[] = {{"record", KN_AVRO_RECORD}, {"enum", KN_AVRO_ENUM},   {"array", KN_AVRO_ARRAY},
                 {"map", KN_AVRO_MAP},       {"fixed", KN_AVRO_FIXED}, {"error", KN_AVRO_RECORD}};
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); ++i) {
        if (strcmp(kinds[i].name, name) == 0) {
            *ret = kinds[i].kind;
            return true;
        }
    }
    return false;
}

static KnCode parse_object(Parser *p, const json_t *json, Place at, const KnAvroType **ret,
                           KnErr *err)
{
    const json_t *of = json_object_get(json, "type");
    if (json_is_object(of) || json_is_array(of))
        return parse(p, of, (Place){at.space, at.depth + 1}, ret, err);
    const char *name = json_string_value(of);
    if (!name)
        return kn_err_set(err, KN_E_CORRUPT, "Avro schema: an object without a type");
    KnAvroType *type;
    KnAvroKind kind;
    if (!find_complex(name, &kind)) {
        const KnAvroType *base = find_primitive(name);
        if (!base)
            return find_type(p, name, at, ret, err);
        KN_TRY(new_type(p, json, base->kind, &type, err));
        *ret = type;
        return KN_OK;
    }
    KN_TRY(new_type(p, json, kind, &type, err));
    const char *space;
    switch (kind) {
    case KN_AVRO_RECORD:
        KN_TRY(parse_record(p, json, at, type, err));
        break;
    case KN_AVRO_FIXED:
        KN_TRY(parse_fixed(p, json, at, type, err));
        break;
    case KN_AVRO_ENUM:
        KN_TRY(enter_name(p, json, at, type, &space, err));
        break;
    default:
        KN_TRY(parse_items(p, json, at, type, err));
    }
    *ret = type;
    return KN_OK;
}

static KnCode parse(Parser *p, const json_t *json, Place at, const KnAvroType **ret, KnErr *err)
{
    if (at.depth > DEPTH_MAX)
        return kn_err_set(err, KN_E_CORRUPT, "Avro schema: nested deeper than %d", DEPTH_MAX);
    if (json_is_string(json))
        return find_type(p, json_string_value(json), at, ret, err);
    if (json_is_array(json))
        return parse_union(p, json, at, ret, err);
    if (json_is_object(json))
        return parse_object(p, json, at, ret, err);
    return kn_err_set(err, KN_E_CORRUPT, "Avro schema: a type that is no name, object or union");
}

KnCode kn_avro_type_parse(KnArena *arena, KnStr json, const KnAvroType **ret, KnErr *err)
{
    if (json.len > SCHEMA_TEXT_MAX)
        return kn_err_set(err, KN_E_CORRUPT, "Avro schema: %zu bytes of text, more than %zu",
                          json.len, SCHEMA_TEXT_MAX);
    for (size_t i = 0; i < N_PRIMITIVES; ++i) {
        if (kn_str_eq(json, kn_str(primitives[i].name))) { /* a bare word, as some writers put it */
            *ret = &primitives[i].type;
            return KN_OK;
        }
    }
    KN_JSON_AUTO doc = NULL;
    KnErr cause = {0};
    if (kn_json_parse(json.ptr, json.len, &doc, &cause) != KN_OK)
        return kn_err_set(err, KN_E_CORRUPT, "Avro schema: %.300s", cause.msg);
    KN_MAP_AUTO names = kn_map_new();
    Parser p = {.arena = arena, .names = names};
    return parse(&p, doc, (Place){.space = ""}, ret, err);
}
