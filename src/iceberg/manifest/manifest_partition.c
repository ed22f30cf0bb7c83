/* SPDX-License-Identifier: Apache-2.0 */
/*
 * manifest_partition.c - partition tuples of manifest entries.
 *
 * A tuple's record is resolved by partition field id against the spec. The type of a value is what
 * the field's transform makes of its source column, looked up in any schema of the table; where the
 * column is gone or the transform unknown, the Avro type decides. Values that were written before a
 * source column was promoted (int to long, float to double) are widened.
 */
#include "iceberg/manifest/manifest_internal.h"
#include "iceberg/schema/value_internal.h"

enum { DECIMAL_BYTES_MAX = 16 };

typedef struct Part {
    const char *name; /* NULL = not in the spec: skip */
    int32_t id;
    size_t index;
    const KnType *type;
    const KnAvroType *avro;
} Part;

struct KnPartitionPlan {
    size_t n_parts;
    Part *parts;
    size_t n_values;
    KnValue *values;
    KnValue *nulls; /* what values are before a tuple is read */
};

/* ---- types ---- */

static bool is_logical(const KnAvroType *avro, const char *name)
{
    return avro->logical && strcmp(avro->logical, name) == 0;
}

/* "timestamp-micros" and "local-timestamp-micros" alike. */
static bool is_timestamp(const KnAvroType *avro, const char *unit)
{
    const char *logical = avro->logical ? avro->logical : "";
    if (strncmp(logical, "local-", 6) == 0)
        logical += 6;
    return strncmp(logical, "timestamp-", 10) == 0 && strcmp(logical + 10, unit) == 0;
}

static KnTypeKind kind_of_long(const KnAvroType *avro)
{
    bool local = avro->logical && strncmp(avro->logical, "local-", 6) == 0;
    bool zoned = avro->adjust_to_utc && !local;
    if (is_logical(avro, "time-micros"))
        return KN_TYPE_TIME;
    if (is_timestamp(avro, "micros") || is_timestamp(avro, "millis"))
        return zoned ? KN_TYPE_TIMESTAMPTZ : KN_TYPE_TIMESTAMP;
    if (is_timestamp(avro, "nanos"))
        return zoned ? KN_TYPE_TIMESTAMPTZ_NS : KN_TYPE_TIMESTAMP_NS;
    return KN_TYPE_LONG;
}

static KnTypeKind kind_of_avro(const KnAvroType *avro)
{
    switch (avro->kind) {
    case KN_AVRO_BOOLEAN:
        return KN_TYPE_BOOLEAN;
    case KN_AVRO_INT:
        return is_logical(avro, "date") ? KN_TYPE_DATE : KN_TYPE_INT;
    case KN_AVRO_LONG:
        return kind_of_long(avro);
    case KN_AVRO_FLOAT:
        return KN_TYPE_FLOAT;
    case KN_AVRO_DOUBLE:
        return KN_TYPE_DOUBLE;
    case KN_AVRO_STRING:
        return KN_TYPE_STRING;
    case KN_AVRO_BYTES:
        return is_logical(avro, "decimal") ? KN_TYPE_DECIMAL : KN_TYPE_BINARY;
    case KN_AVRO_FIXED:
        if (is_logical(avro, "decimal"))
            return KN_TYPE_DECIMAL;
        return is_logical(avro, "uuid") && avro->fixed_size == 16 ? KN_TYPE_UUID : KN_TYPE_FIXED;
    default:
        return KN_TYPE_UNKNOWN;
    }
}

static const KnType *type_of_avro(KnArena *arena, const KnAvroType *avro)
{
    KnType *type = kn_arena_zalloc(arena, sizeof(*type));
    *type = (KnType){.kind = kind_of_avro(avro),
                     .precision = avro->precision,
                     .scale = avro->scale,
                     .length = avro->fixed_size};
    return type;
}

static const KnType *type_of_field(KnArena *arena, const KnMetadata *md,
                                   const KnPartitionField *field, const KnAvroType *avro)
{
    const KnField *source = kn_metadata_find_field(md, field->source_id);
    const KnType *type;
    if (source && field->transform.kind != KN_TRANSFORM_UNKNOWN &&
        kn_transform_result_type(arena, &field->transform, source->type, &type, NULL) == KN_OK &&
        type->kind != KN_TYPE_UNKNOWN)
        return type;
    return type_of_avro(arena, avro);
}

static bool fits_long(const KnType *type, const KnAvroType *avro)
{
    if (avro->kind == KN_AVRO_INT)
        return type->kind == KN_TYPE_LONG;
    if (avro->kind != KN_AVRO_LONG)
        return false;
    if (kn_type_is_ns(type->kind))
        return !is_timestamp(avro, "millis") && !is_timestamp(avro, "micros");
    return !is_timestamp(avro, "nanos");
}

static bool fits(const KnType *type, const KnAvroType *avro)
{
    bool bytes = avro->kind == KN_AVRO_BYTES;
    bool fixed = avro->kind == KN_AVRO_FIXED;
    switch (type->kind) {
    case KN_TYPE_BOOLEAN:
        return avro->kind == KN_AVRO_BOOLEAN;
    case KN_TYPE_INT:
    case KN_TYPE_DATE:
        return avro->kind == KN_AVRO_INT;
    case KN_TYPE_LONG:
    case KN_TYPE_TIME:
    case KN_TYPE_TIMESTAMP:
    case KN_TYPE_TIMESTAMPTZ:
    case KN_TYPE_TIMESTAMP_NS:
    case KN_TYPE_TIMESTAMPTZ_NS:
        return fits_long(type, avro);
    case KN_TYPE_FLOAT:
        return avro->kind == KN_AVRO_FLOAT;
    case KN_TYPE_DOUBLE:
        return avro->kind == KN_AVRO_FLOAT || avro->kind == KN_AVRO_DOUBLE;
    case KN_TYPE_DECIMAL:
        return (bytes || (fixed && avro->fixed_size <= DECIMAL_BYTES_MAX)) &&
               (!is_logical(avro, "decimal") || avro->scale == type->scale);
    case KN_TYPE_STRING:
        return avro->kind == KN_AVRO_STRING;
    case KN_TYPE_UUID:
        return fixed && avro->fixed_size == 16;
    case KN_TYPE_FIXED:
        return fixed && avro->fixed_size == type->length;
    case KN_TYPE_BINARY:
        return bytes;
    default:
        return avro->kind == KN_AVRO_NULL;
    }
}

/* ---- the plan ---- */

static const KnAvroType *value_branch(const KnAvroType *avro)
{
    for (size_t i = 0; avro->kind == KN_AVRO_UNION && i < avro->n_fields; ++i)
        if (avro->fields[i].type->kind != KN_AVRO_NULL)
            return avro->fields[i].type;
    return avro;
}

static KnCode plan_part(KnArena *arena, const KnMetadata *md, const KnPartitionSpec *spec,
                        Part *part, KnErr *err)
{
    size_t i = 0;
    while (i < spec->n_fields && spec->fields[i].field_id != part->id)
        ++i;
    if (i == spec->n_fields)
        return KN_OK;
    const KnPartitionField *field = &spec->fields[i];
    const KnAvroType *avro = value_branch(part->avro);
    part->name = field->name;
    part->index = i;
    part->type = type_of_field(arena, md, field, avro);
    bool many = part->avro->kind == KN_AVRO_UNION && part->avro->n_fields > 2;
    if (many || (avro->kind != KN_AVRO_NULL && !fits(part->type, avro)))
        return kn_err_set(err, KN_E_CORRUPT,
                          "partition field '%s' (%d): the Avro type is not that of the table",
                          field->name, field->field_id);
    return KN_OK;
}

KnCode kn_partition_plan_make(KnArena *arena, const KnMetadata *md, const KnPartitionSpec *spec,
                              const KnAvroType *record, KnPartitionPlan **ret, KnErr *err)
{
    KnPartitionPlan *plan = kn_arena_zalloc(arena, sizeof(*plan));
    plan->n_values = spec->n_fields;
    plan->values = kn_arena_zalloc(arena, spec->n_fields * sizeof(KnValue));
    plan->nulls = kn_arena_zalloc(arena, spec->n_fields * sizeof(KnValue));
    plan->n_parts = record->n_fields;
    plan->parts = kn_arena_try_array(arena, record->n_fields, sizeof(Part));
    if (!plan->parts)
        return kn_err_set(err, KN_E_NOMEM, "out of memory for a partition tuple");
    for (size_t i = 0; i < spec->n_fields; ++i)
        plan->nulls[i] = (KnValue){.null = true, .kind = KN_TYPE_UNKNOWN};
    for (size_t i = 0; i < record->n_fields; ++i) {
        Part *part = &plan->parts[i];
        part->id = record->fields[i].field_id;
        part->avro = record->fields[i].type;
        KN_TRY(plan_part(arena, md, spec, part, err));
        if (part->name)
            plan->nulls[part->index] =
                (KnValue){.null = true, .kind = part->type->kind, .scale = part->type->scale};
    }
    *ret = plan;
    return KN_OK;
}

/* ---- values ---- */

static KnCode read_long(const KnAvroType *avro, KnAvroCursor *cur, int64_t *ret, KnErr *err)
{
    if (avro->kind == KN_AVRO_INT) {
        int32_t v;
        KN_TRY(kn_avro_read_int(cur, &v, err));
        *ret = v;
        return KN_OK;
    }
    KN_TRY(kn_avro_read_long(cur, ret, err));
    if (is_timestamp(avro, "millis") && __builtin_mul_overflow(*ret, 1000, ret))
        return kn_err_set(err, KN_E_CORRUPT, "a timestamp beyond 64 bits of microseconds");
    return KN_OK;
}

static KnCode read_decimal(const KnAvroType *avro, KnAvroCursor *cur, __int128 *ret, KnErr *err)
{
    KnStr s;
    if (avro->kind == KN_AVRO_FIXED)
        KN_TRY(kn_avro_read_fixed(cur, (size_t)avro->fixed_size, &s, err));
    else
        KN_TRY(kn_avro_read_bytes(cur, &s, err));
    if (s.len == 0 || s.len > DECIMAL_BYTES_MAX)
        return kn_err_set(err, KN_E_CORRUPT, "a decimal of %zu bytes", s.len);
    unsigned __int128 v = (s.ptr[0] & 0x80) ? ~(unsigned __int128)0 : 0;
    for (size_t i = 0; i < s.len; ++i)
        v = v << 8 | (uint8_t)s.ptr[i];
    *ret = (__int128)v;
    return KN_OK;
}

static KnCode read_real(const KnAvroType *avro, KnAvroCursor *cur, double *ret, KnErr *err)
{
    if (avro->kind == KN_AVRO_DOUBLE)
        return kn_avro_read_double(cur, ret, err);
    float v;
    KN_TRY(kn_avro_read_float(cur, &v, err));
    *ret = v;
    return KN_OK;
}

static KnCode read_value(const KnType *type, const KnAvroType *avro, KnAvroCursor *cur,
                         KnValue *ret, KnErr *err)
{
    ret->null = false;
    switch (type->kind) {
    case KN_TYPE_BOOLEAN:
        return kn_avro_read_boolean(cur, &ret->b, err);
    case KN_TYPE_FLOAT:
    case KN_TYPE_DOUBLE:
        return read_real(avro, cur, &ret->d, err);
    case KN_TYPE_DECIMAL:
        return read_decimal(avro, cur, &ret->dec, err);
    case KN_TYPE_STRING:
    case KN_TYPE_BINARY:
        return kn_avro_read_bytes(cur, &ret->bytes, err);
    case KN_TYPE_UUID:
    case KN_TYPE_FIXED:
        return kn_avro_read_fixed(cur, (size_t)avro->fixed_size, &ret->bytes, err);
    default:
        return read_long(avro, cur, &ret->i, err);
    }
}

KnCode kn_partition_plan_read(KnPartitionPlan *plan, KnAvroCursor *cur, KnManifestSeq *ret,
                              KnErr *err)
{
    if (plan->n_values)
        memcpy(plan->values, plan->nulls, plan->n_values * sizeof(KnValue));
    for (size_t i = 0; i < plan->n_parts; ++i) {
        const Part *part = &plan->parts[i];
        if (!part->name) {
            KN_TRY(kn_avro_skip(cur, part->avro, err));
            continue;
        }
        const KnAvroType *avro;
        KN_TRY(kn_avro_read_branch(cur, part->avro, &avro, err));
        if (avro->kind == KN_AVRO_NULL)
            continue;
        KnCode code = read_value(part->type, avro, cur, &plan->values[part->index], err);
        if (code != KN_OK)
            return kn_err_wrap(err, code, "partition field '%s' (%d)", part->name, part->id);
    }
    *ret = (KnManifestSeq){plan->n_values, plan->values};
    return KN_OK;
}
