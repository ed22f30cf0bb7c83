/* SPDX-License-Identifier: Apache-2.0 */
/*
 * partition.c - partition specs from JSON and back, the type of their tuples, and the folder names
 * that tuples give (spec: "Partitioning", appendix C: "Partition Specs").
 *
 * A spec outlives its columns: a field whose source was dropped still has a type, so that old
 * manifests can be read. Transforms that we do not know are kept by their text.
 */
#include "iceberg/schema/partition.h"

#include <ctype.h>
#include <string.h>

#include "iceberg/metadata/metadata.h"
#include "iceberg/schema/partition_internal.h"
#include "iceberg/schema/type_internal.h"
#include "iceberg/schema/value_internal.h"

#define SPEC_FIELDS_MAX ((size_t)1000)

/* ---- JSON ---- */

KnCode kn_source_id_parse(const json_t *json, int32_t *ret, KnErr *err)
{
    const json_t *list = json_object_get(json, "source-ids");

    if (!list || json_object_get(json, "source-id"))
        return kn_json_get_i32(json, "source-id", ret, err);
    if (!json_is_array(list) || json_array_size(list) != 1 ||
        !json_is_integer(json_array_get(list, 0)))
        return kn_err_set(err, KN_E_UNSUPPORTED,
                          "field 'source-ids': transforms of several columns are not known");
    json_int_t id = json_integer_value(json_array_get(list, 0));
    if (id < INT32_MIN || id > INT32_MAX)
        return kn_err_set(err, KN_E_CORRUPT, "field 'source-ids': expected 32-bit integers");
    *ret = (int32_t)id;
    return KN_OK;
}

static KnCode parse_field(KnArena *arena, const json_t *json, KnPartitionField *ret, KnErr *err)
{
    const char *name, *transform;

    KN_TRY(kn_json_get_str(json, "name", &name, err));
    KN_TRY(kn_json_get_str(json, "transform", &transform, err));
    KN_TRY(kn_source_id_parse(json, &ret->source_id, err));
    KN_TRY(kn_json_opt_i32(json, "field-id", &ret->field_id, err));
    ret->name = kn_arena_strdup(arena, name);
    return kn_transform_parse(arena, kn_str(transform), &ret->transform, err);
}

static KnCode check_unique(const KnPartitionSpec *spec, KnErr *err)
{
    for (size_t i = 0; i < spec->n_fields; i++) {
        for (size_t j = 0; j < i; j++) {
            if (strcmp(spec->fields[i].name, spec->fields[j].name) == 0)
                return kn_err_set(err, KN_E_CORRUPT, "Cannot use partition name more than once: %s",
                                  spec->fields[i].name);
            if (spec->fields[i].field_id != 0 &&
                spec->fields[i].field_id == spec->fields[j].field_id)
                return kn_err_set(err, KN_E_CORRUPT, "partition field id %d is used twice",
                                  spec->fields[i].field_id);
        }
    }
    return KN_OK;
}

static KnCode parse_fields(KnArena *arena, const json_t *array, KnPartitionSpec **ret, KnErr *err)
{
    KnPartitionSpec *spec = kn_arena_zalloc(arena, sizeof(*spec));
    size_t n = json_array_size(array), with_id = 0;
    KnPartitionField *fields;

    if (!json_is_array(array))
        return kn_err_set(err, KN_E_CORRUPT, "partition fields are an array");
    if (n > SPEC_FIELDS_MAX)
        return kn_err_set(err, KN_E_CORRUPT, "%zu partition fields are beyond the limit of %zu", n,
                          SPEC_FIELDS_MAX);
    fields = kn_arena_zalloc(arena, (n + 1) * sizeof(*fields));
    for (size_t i = 0; i < n; i++) {
        KnCode rc = parse_field(arena, json_array_get(array, i), &fields[i], err);
        if (rc != KN_OK)
            return kn_err_wrap(err, rc, "partition field %zu", i);
        with_id += fields[i].field_id != 0;
    }
    if (with_id != 0 && with_id != n)
        return kn_err_set(err, KN_E_CORRUPT,
                          "Cannot parse spec with missing field IDs: %zu missing of %zu fields",
                          n - with_id, n);
    spec->n_fields = n;
    spec->fields = fields;
    KN_TRY(check_unique(spec, err));
    *ret = spec;
    return KN_OK;
}

void kn_partition_spec_number(KnPartitionSpec *spec)
{
    KnPartitionField *fields = (KnPartitionField *)spec->fields; /* ours since parse_fields() */

    for (size_t i = 0; i < spec->n_fields; i++)
        if (fields[i].field_id == 0)
            fields[i].field_id = KN_PARTITION_ID_FIRST + (int32_t)i;
}

KnCode kn_partition_fields_parse(KnArena *arena, const json_t *array, KnPartitionSpec **ret,
                                 KnErr *err)
{
    KN_TRY(parse_fields(arena, array, ret, err));
    kn_partition_spec_number(*ret);
    return KN_OK;
}

KnCode kn_partition_spec_parse(KnArena *arena, const json_t *json, KnPartitionSpec **ret,
                               KnErr *err)
{
    KnPartitionSpec *spec;
    json_t *fields;
    int32_t spec_id = 0;

    KN_TRY(kn_json_get_array(json, "fields", &fields, err));
    KN_TRY(kn_json_opt_i32(json, "spec-id", &spec_id, err));
    KN_TRY(parse_fields(arena, fields, &spec, err));
    spec->spec_id = spec_id;
    *ret = spec;
    return KN_OK;
}

json_t *kn_partition_fields_to_json(const KnPartitionSpec *spec)
{
    json_t *array = json_array();

    for (size_t i = 0; i < spec->n_fields; i++) {
        const KnPartitionField *field = &spec->fields[i];
        json_t *obj = json_object();
        json_object_set_new(obj, "name", json_string(field->name));
        json_object_set_new(obj, "transform", json_string(field->transform.text));
        json_object_set_new(obj, "source-id", json_integer(field->source_id));
        json_object_set_new(obj, "field-id", json_integer(field->field_id));
        json_array_append_new(array, obj);
    }
    return array;
}

json_t *kn_partition_spec_to_json(const KnPartitionSpec *spec)
{
    json_t *obj = json_object();

    json_object_set_new(obj, "spec-id", json_integer(spec->spec_id));
    json_object_set_new(obj, "fields", kn_partition_fields_to_json(spec));
    return obj;
}

/* ---- comparing ---- */

bool kn_partition_is_unpartitioned(const KnPartitionSpec *spec)
{
    for (size_t i = 0; i < spec->n_fields; i++)
        if (spec->fields[i].transform.kind != KN_TRANSFORM_VOID)
            return false;
    return true;
}

bool kn_partition_spec_compatible(const KnPartitionSpec *a, const KnPartitionSpec *b)
{
    if (a->n_fields != b->n_fields)
        return false;
    for (size_t i = 0; i < a->n_fields; i++)
        if (a->fields[i].source_id != b->fields[i].source_id ||
            strcmp(a->fields[i].transform.text, b->fields[i].transform.text) != 0 ||
            strcmp(a->fields[i].name, b->fields[i].name) != 0)
            return false;
    return true;
}

bool kn_partition_spec_sequential(const KnPartitionSpec *spec)
{
    for (size_t i = 0; i < spec->n_fields; i++)
        if (spec->fields[i].field_id != KN_PARTITION_ID_FIRST + (int32_t)i)
            return false;
    return true;
}

int32_t kn_partition_last_id(const KnPartitionSpec *spec)
{
    int32_t last = KN_PARTITION_ID_FIRST - 1;

    for (size_t i = 0; i < spec->n_fields; i++)
        if (spec->fields[i].field_id > last)
            last = spec->fields[i].field_id;
    return last;
}

static KnCode check_source(const KnPartitionField *field, const KnSchema *schema, KnErr *err)
{
    const KnField *source = kn_schema_find_id(schema, field->source_id);
    char text[KN_TYPE_TEXT_MAX];

    if (field->transform.kind == KN_TRANSFORM_VOID)
        return KN_OK;
    if (!source)
        return kn_err_set(err, KN_E_INVAL, "Cannot find source column for partition field: %s",
                          field->name);
    if (kn_type_is_nested(source->type))
        return kn_err_set(err, KN_E_INVAL, "Cannot partition by non-primitive source field: %s",
                          kn_type_text(source->type, text));
    if (!kn_transform_takes(&field->transform, source->type))
        return kn_err_set(err, KN_E_INVAL, "Invalid source type %s for transform: %s",
                          kn_type_text(source->type, text), field->transform.text);
    return KN_OK;
}

static KnCode check_name(const KnPartitionField *field, const KnSchema *schema, KnErr *err)
{
    const KnField *column = kn_schema_find_name(schema, kn_str(field->name));

    if (field->name[0] == '\0')
        return kn_err_set(err, KN_E_INVAL, "Cannot use empty partition name");
    if (!column || field->transform.kind == KN_TRANSFORM_VOID)
        return KN_OK;
    if (column->id == field->source_id)
        return KN_OK;
    return kn_err_set(err, KN_E_INVAL,
                      "Cannot create partition from name that exists in schema: %s", field->name);
}

KnCode kn_partition_sources_check(const KnPartitionSpec *spec, const KnSchema *schema, KnErr *err)
{
    for (size_t i = 0; i < spec->n_fields; i++)
        KN_TRY(check_source(&spec->fields[i], schema, err));
    return KN_OK;
}

KnCode kn_partition_spec_check(const KnPartitionSpec *spec, const KnSchema *schema, KnErr *err)
{
    for (size_t i = 0; i < spec->n_fields; i++) {
        KN_TRY(check_source(&spec->fields[i], schema, err));
        KN_TRY(check_name(&spec->fields[i], schema, err));
    }
    return KN_OK;
}

/* ---- tuples ---- */

/* The column that a field is made of: of the schema, else of any that the table ever had. */
static const KnField *find_source(const KnMetadata *md, const KnSchema *schema, int32_t id)
{
    const KnField *source = kn_schema_find_id(schema, id);

    return source || !md ? source : kn_metadata_find_field(md, id);
}

static KnCode partition_type(KnArena *arena, const KnPartitionSpec *spec, const KnSchema *schema,
                             const KnMetadata *md, KnType *type, KnErr *err)
{
    static const KnType unknown = {.kind = KN_TYPE_UNKNOWN};
    KnField *fields = kn_arena_zalloc(arena, (spec->n_fields + 1) * sizeof(*fields));

    for (size_t i = 0; i < spec->n_fields; i++) {
        const KnPartitionField *field = &spec->fields[i];
        const KnField *source = find_source(md, schema, field->source_id);
        fields[i] = (KnField){.id = field->field_id, .name = field->name};
        if (source) {
            KN_TRY(kn_transform_result_type(arena, &field->transform, source->type, &fields[i].type,
                                            err));
        } else {
            const KnType *own = kn_transform_own_type(&field->transform);
            fields[i].type = own ? own : &unknown;
        }
    }
    *type = (KnType){.kind = KN_TYPE_STRUCT, .n_fields = spec->n_fields, .fields = fields};
    return KN_OK;
}

KnCode kn_partition_type(KnArena *arena, const KnPartitionSpec *spec, const KnSchema *schema,
                         const KnType **ret, KnErr *err)
{
    KnType *type = kn_arena_zalloc(arena, sizeof(*type));

    KN_TRY(partition_type(arena, spec, schema, NULL, type, err));
    *ret = type;
    return KN_OK;
}

KnCode kn_metadata_partition_type(KnArena *arena, const KnMetadata *md, const KnPartitionSpec *spec,
                                  const KnType **ret, KnErr *err)
{
    KnType *type = kn_arena_zalloc(arena, sizeof(*type));

    KN_TRY(partition_type(arena, spec, kn_metadata_schema(md), md, type, err));
    *ret = type;
    return KN_OK;
}

/* ---- folder names ---- */

static void base64(KnBuf *buf, KnStr bytes)
{
    static const char digits[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=";

    for (size_t i = 0; i < bytes.len; i += 3) {
        size_t left = bytes.len - i;
        uint32_t bits = (uint32_t)(uint8_t)bytes.ptr[i] << 16;
        if (left > 1)
            bits |= (uint32_t)(uint8_t)bytes.ptr[i + 1] << 8;
        if (left > 2)
            bits |= (uint8_t)bytes.ptr[i + 2];
        kn_buf_char(buf, digits[bits >> 18]);
        kn_buf_char(buf, digits[bits >> 12 & 63]);
        kn_buf_char(buf, digits[left > 1 ? bits >> 6 & 63 : 64]);
        kn_buf_char(buf, digits[left > 2 ? bits & 63 : 64]);
    }
}

static void human_time(KnBuf *buf, KnTransformKind kind, int64_t value)
{
    KnDate month;

    switch (kind) {
    case KN_TRANSFORM_YEAR:
        kn_buf_printf(buf, "%04lld", (long long)value + 1970);
        break;
    case KN_TRANSFORM_MONTH:
        month = (KnDate){1970 + kn_floor_div(value, 12), (int)kn_floor_mod(value, 12) + 1, 1};
        kn_buf_printf(buf, "%04lld-%02d", (long long)month.year, month.month);
        break;
    default: /* hour */
        kn_date_format(buf, kn_floor_div(value, 24));
        kn_buf_printf(buf, "-%02d", (int)kn_floor_mod(value, 24));
        break;
    }
}

static void human(KnBuf *buf, const KnTransform *t, const KnType *type, const KnValue *value)
{
    if (value->null)
        kn_buf_text(buf, "null");
    else if (t->kind == KN_TRANSFORM_YEAR || t->kind == KN_TRANSFORM_MONTH ||
             t->kind == KN_TRANSFORM_HOUR)
        human_time(buf, t->kind, value->i);
    else if (type->kind == KN_TYPE_BINARY || type->kind == KN_TYPE_FIXED)
        base64(buf, value->bytes);
    else
        kn_value_format(buf, type, value);
}

/* As java.net.URLEncoder: a blank is '+'. */
static void url_encode(KnBuf *buf, KnStr text)
{
    for (size_t i = 0; i < text.len; i++) {
        unsigned char c = (unsigned char)text.ptr[i];
        if (isalnum(c) || (c && strchr(".-*_", c)))
            kn_buf_char(buf, (char)c);
        else if (c == ' ')
            kn_buf_char(buf, '+');
        else
            kn_buf_printf(buf, "%%%02X", c);
    }
}

KnCode kn_partition_path(KnBuf *buf, const KnPartitionSpec *spec, const KnType *type,
                         const KnValue *values, KnErr *err)
{
    KN_BUF_AUTO text = {0};

    kn_buf_init(&text, (size_t)16 << 20);
    for (size_t i = 0; i < spec->n_fields; i++) {
        if (i > 0)
            kn_buf_char(buf, '/');
        url_encode(buf, kn_str(spec->fields[i].name));
        kn_buf_char(buf, '=');
        kn_buf_reset(&text);
        human(&text, &spec->fields[i].transform, type->fields[i].type, &values[i]);
        KN_TRY(kn_buf_check(&text, err));
        url_encode(buf, (KnStr){text.data, text.len});
    }
    return kn_buf_check(buf, err);
}
