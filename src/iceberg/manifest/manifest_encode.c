/* SPDX-License-Identifier: Apache-2.0 */
/*
 * manifest_encode.c - our structs as Avro records, field by field in the order of the form.
 *
 * What counts as null is the headers' rule: -1 for optional numbers, a NULL pointer for texts,
 * bytes and lists. An optional field is a union of null and its type, null first.
 */
#include "iceberg/manifest/manifest_internal.h"

enum { V1_BLOCK_SIZE = 64 << 20 }; /* Java's constant for block_size_in_bytes */

static const char *const format_names[] = {
    [KN_FORMAT_PARQUET] = "PARQUET",
    [KN_FORMAT_AVRO] = "AVRO",
    [KN_FORMAT_ORC] = "ORC",
    [KN_FORMAT_PUFFIN] = "PUFFIN",
};

static bool is_null(const KnManifestField *field, const void *at)
{
    switch (field->shape) {
    case KN_SHAPE_INT:
        return *(const int32_t *)at < 0;
    case KN_SHAPE_LONG:
        return field->not_negative ? *(const int64_t *)at < 0 : *(const int64_t *)at == INT64_MIN;
    case KN_SHAPE_TRISTATE:
        return *(const int8_t *)at < 0;
    case KN_SHAPE_TEXT:
        return !*(const char *const *)at;
    case KN_SHAPE_BYTES:
        return !((const KnStr *)at)->ptr;
    case KN_SHAPE_COUNTS:
    case KN_SHAPE_BOUNDS:
    case KN_SHAPE_LONGS:
    case KN_SHAPE_INTS:
    case KN_SHAPE_SUMMARIES:
        return !((const KnManifestSeq *)at)->items;
    case KN_SHAPE_BOOLEAN:
    case KN_SHAPE_CONTENT:
    case KN_SHAPE_FORMAT:
    case KN_SHAPE_DATA_FILE:
    case KN_SHAPE_PARTITION:
    case KN_SHAPE_CONSTANT:
        break;
    }
    return false;
}

/* ---- partition tuples ---- */

static KnCode put_decimal(KnBuf *buf, const KnType *type, __int128 value, KnErr *err)
{
    size_t size = kn_manifest_decimal_size(type->precision);
    uint8_t bytes[16] = {0};
    __int128 rest = value;
    for (size_t i = size; i-- > 0; rest >>= 8)
        bytes[i] = (uint8_t)rest;
    bool negative = bytes[0] & 0x80;
    if (size < sizeof(bytes) && rest != (negative ? -1 : 0))
        return kn_err_set(err, KN_E_INVAL, "a value that does not fit decimal(%d,%d)",
                          type->precision, type->scale);
    kn_buf_append(buf, bytes, size);
    return KN_OK;
}

static KnCode put_fixed(KnBuf *buf, KnStr bytes, size_t size, KnErr *err)
{
    if (bytes.len != size)
        return kn_err_set(err, KN_E_INVAL, "%zu bytes for a type of %zu", bytes.len, size);
    kn_buf_str(buf, bytes);
    return KN_OK;
}

static KnCode put_value(KnBuf *buf, const KnType *type, const KnValue *value, KnErr *err)
{
    if (type->kind == KN_TYPE_UNKNOWN)
        return KN_OK; /* written as "null" */
    kn_avro_put_long(buf, value->null ? 0 : 1);
    if (value->null)
        return KN_OK;
    switch (type->kind) {
    case KN_TYPE_BOOLEAN:
        kn_avro_put_boolean(buf, value->b);
        return KN_OK;
    case KN_TYPE_FLOAT:
        kn_avro_put_float(buf, (float)value->d);
        return KN_OK;
    case KN_TYPE_DOUBLE:
        kn_avro_put_double(buf, value->d);
        return KN_OK;
    case KN_TYPE_DECIMAL:
        return put_decimal(buf, type, value->dec, err);
    case KN_TYPE_STRING:
    case KN_TYPE_BINARY:
        kn_avro_put_bytes(buf, value->bytes);
        return KN_OK;
    case KN_TYPE_UUID:
        return put_fixed(buf, value->bytes, 16, err);
    case KN_TYPE_FIXED:
        return put_fixed(buf, value->bytes, (size_t)type->length, err);
    default:
        kn_avro_put_long(buf, value->i);
        return KN_OK;
    }
}

static KnCode put_partition(KnBuf *buf, const KnType *type, const KnManifestSeq *tuple, KnErr *err)
{
    if (tuple->n != type->n_fields)
        return kn_err_set(err, KN_E_INVAL, "%zu values for %zu partition fields", tuple->n,
                          type->n_fields);
    const KnValue *values = tuple->items;
    for (size_t i = 0; i < type->n_fields; ++i) {
        KnCode code = put_value(buf, type->fields[i].type, &values[i], err);
        if (code != KN_OK)
            return kn_err_wrap(err, code, "partition field '%s'", type->fields[i].name);
    }
    return KN_OK;
}

/* ---- lists ---- */

static void put_counts(KnBuf *buf, const KnManifestSeq *seq)
{
    const KnIdCount *counts = seq->items;
    for (size_t i = 0; i < seq->n; ++i) {
        kn_avro_put_long(buf, counts[i].id);
        kn_avro_put_long(buf, counts[i].count);
    }
}

static void put_bounds(KnBuf *buf, const KnManifestSeq *seq)
{
    const KnIdBound *bounds = seq->items;
    for (size_t i = 0; i < seq->n; ++i) {
        kn_avro_put_long(buf, bounds[i].id);
        kn_avro_put_bytes(buf, bounds[i].bytes);
    }
}

static KnCode put_summaries(KnBuf *buf, const KnManifestForm *form, const KnManifestSeq *seq,
                            KnErr *err)
{
    KnManifestForm nested = {&kn_manifest_summary_fields, form->version, NULL};
    const KnFieldSummary *summaries = seq->items;
    for (size_t i = 0; i < seq->n; ++i)
        KN_TRY(kn_manifest_encode(buf, &nested, &summaries[i], err));
    return KN_OK;
}

static KnCode put_list(KnBuf *buf, const KnManifestForm *form, const KnManifestField *field,
                       const KnManifestSeq *seq, KnErr *err)
{
    if (seq->n)
        kn_avro_put_long(buf, (int64_t)seq->n);
    if (field->shape == KN_SHAPE_COUNTS)
        put_counts(buf, seq);
    else if (field->shape == KN_SHAPE_BOUNDS)
        put_bounds(buf, seq);
    else if (field->shape == KN_SHAPE_SUMMARIES)
        KN_TRY(put_summaries(buf, form, seq, err));
    for (size_t i = 0; field->shape == KN_SHAPE_LONGS && i < seq->n; ++i)
        kn_avro_put_long(buf, ((const int64_t *)seq->items)[i]);
    for (size_t i = 0; field->shape == KN_SHAPE_INTS && i < seq->n; ++i)
        kn_avro_put_long(buf, ((const int32_t *)seq->items)[i]);
    kn_avro_put_long(buf, 0);
    return KN_OK;
}

/* ---- records ---- */

static KnCode put_field(KnBuf *buf, const KnManifestForm *form, const KnManifestField *field,
                        const void *at, KnErr *err)
{
    KnManifestForm nested = *form;
    switch (field->shape) {
    case KN_SHAPE_INT:
        kn_avro_put_long(buf, *(const int32_t *)at);
        return KN_OK;
    case KN_SHAPE_LONG:
        kn_avro_put_long(buf, *(const int64_t *)at);
        return KN_OK;
    case KN_SHAPE_CONSTANT:
        kn_avro_put_long(buf, V1_BLOCK_SIZE);
        return KN_OK;
    case KN_SHAPE_CONTENT:
        kn_avro_put_long(buf, *(const bool *)at ? 1 : 0);
        return KN_OK;
    case KN_SHAPE_BOOLEAN:
        kn_avro_put_boolean(buf, *(const bool *)at);
        return KN_OK;
    case KN_SHAPE_TRISTATE:
        kn_avro_put_boolean(buf, *(const int8_t *)at == 1);
        return KN_OK;
    case KN_SHAPE_TEXT:
        kn_avro_put_bytes(buf, kn_str(*(const char *const *)at));
        return KN_OK;
    case KN_SHAPE_FORMAT:
        kn_avro_put_bytes(buf, kn_str(format_names[*(const KnFileFormat *)at]));
        return KN_OK;
    case KN_SHAPE_BYTES:
        kn_avro_put_bytes(buf, *(const KnStr *)at);
        return KN_OK;
    case KN_SHAPE_DATA_FILE:
        nested.fields = &kn_manifest_data_file_fields;
        return kn_manifest_encode(buf, &nested, at, err);
    case KN_SHAPE_PARTITION:
        return put_partition(buf, form->partition_type, at, err);
    case KN_SHAPE_COUNTS:
    case KN_SHAPE_BOUNDS:
    case KN_SHAPE_LONGS:
    case KN_SHAPE_INTS:
    case KN_SHAPE_SUMMARIES:
        break;
    }
    return put_list(buf, form, field, at, err);
}

KnCode kn_manifest_encode(KnBuf *buf, const KnManifestForm *form, const void *base, KnErr *err)
{
    KnManifestOrder order = kn_manifest_order(form);
    for (size_t i = 0; i < order.n; ++i) {
        const KnManifestField *field = order.fields[i];
        const void *at = kn_manifest_at(base, field);
        bool null = is_null(field, at);
        if (!kn_manifest_is_required(form, field))
            kn_avro_put_long(buf, null ? 0 : 1);
        else if (null)
            return kn_err_set(err, KN_E_INVAL, "required field '%s' (%d) is not set", field->name,
                              field->id);
        if (!null)
            KN_TRY(put_field(buf, form, field, at, err));
    }
    return KN_OK;
}
