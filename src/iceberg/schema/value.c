/* SPDX-License-Identifier: Apache-2.0 */
/*
 * value.c - single values: their bytes and their order (spec appendix D: "Binary single-value
 * serialization"; "Sorting": floats).
 *
 * Decoding takes a narrower form where the table's type was promoted after the bytes were written:
 * 4 bytes for a long or a timestamp (an int, a date), a float for a double. Everything decoded
 * borrows its bytes; nothing here allocates.
 */
#include "iceberg/schema/value.h"

#include <math.h>
#include <string.h>

#include "engine/batch.h"
#include "iceberg/schema/type_internal.h"
#include "iceberg/schema/value_internal.h"

static uint64_t read_le(KnStr bytes)
{
    uint64_t value = 0;

    for (size_t i = bytes.len; i-- > 0;)
        value = value << 8 | (uint8_t)bytes.ptr[i];
    return value;
}

static void write_le(KnBuf *buf, uint64_t value, size_t len)
{
    char bytes[8];

    for (size_t i = 0; i < len; i++)
        bytes[i] = (char)(value >> (8 * i));
    kn_buf_append(buf, bytes, len);
}

static KnCode bad_length(const KnType *type, KnStr bytes, KnErr *err)
{
    char text[KN_TYPE_TEXT_MAX];

    return kn_err_set(err, KN_E_CORRUPT, "%zu bytes cannot be a value of type %s", bytes.len,
                      kn_type_text(type, text));
}

static double float_of_bits(uint32_t bits)
{
    float value;

    memcpy(&value, &bits, sizeof(value));
    return value;
}

static KnCode decode_double(const KnType *type, KnStr bytes, KnValue *ret, KnErr *err)
{
    uint64_t bits = bytes.len <= 8 ? read_le(bytes) : 0;

    if (bytes.len == 4) {
        ret->d = float_of_bits((uint32_t)bits);
        return KN_OK;
    }
    if (bytes.len != 8 || type->kind == KN_TYPE_FLOAT)
        return bad_length(type, bytes, err);
    memcpy(&ret->d, &bits, sizeof(ret->d));
    return KN_OK;
}

static KnCode decode_integer(const KnType *type, KnStr bytes, KnValue *ret, KnErr *err)
{
    int64_t value;

    if (bytes.len == 8 && type->kind != KN_TYPE_INT && type->kind != KN_TYPE_DATE) {
        ret->i = (int64_t)read_le(bytes);
        return KN_OK;
    }
    if (bytes.len != 4 || type->kind == KN_TYPE_TIME)
        return bad_length(type, bytes, err);
    value = (int32_t)read_le(bytes);
    if (kn_type_is_timestamp(type->kind)) { /* it was a date when these bytes were written */
        int64_t unit = KN_US_PER_DAY * (kn_type_is_ns(type->kind) ? KN_NS_PER_US : 1);
        if (__builtin_mul_overflow(value, unit, &value))
            return kn_err_set(err, KN_E_CORRUPT, "a date is out of range for a timestamp");
    }
    ret->i = value;
    return KN_OK;
}

static KnCode decode_decimal(const KnType *type, KnStr bytes, KnValue *ret, KnErr *err)
{
    unsigned __int128 value;

    if (bytes.len == 0 || bytes.len > 16)
        return bad_length(type, bytes, err);
    value = bytes.ptr[0] < 0 ? ~(unsigned __int128)0 : 0;
    for (size_t i = 0; i < bytes.len; i++)
        value = value << 8 | (uint8_t)bytes.ptr[i];
    if (!kn_decimal_fits((__int128)value, 38))
        return kn_err_set(err, KN_E_CORRUPT, "a decimal has more than 38 digits");
    ret->dec = (__int128)value;
    ret->scale = type->scale;
    return KN_OK;
}

static KnCode decode_bytes(const KnType *type, KnStr bytes, KnValue *ret, KnErr *err)
{
    if (type->kind == KN_TYPE_UUID && bytes.len != 16)
        return bad_length(type, bytes, err);
    if (type->kind == KN_TYPE_FIXED && bytes.len > (size_t)type->length)
        return bad_length(type, bytes, err); /* a bound may be shorter: truncated */
    ret->bytes = bytes;
    return KN_OK;
}

KnCode kn_value_decode(const KnType *type, KnStr bytes, KnValue *ret, KnErr *err)
{
    KnValue value = {.kind = type->kind};

    switch (type->kind) {
    case KN_TYPE_BOOLEAN:
        if (bytes.len != 1)
            return bad_length(type, bytes, err);
        value.b = bytes.ptr[0] != 0;
        break;
    case KN_TYPE_FLOAT:
    case KN_TYPE_DOUBLE:
        KN_TRY(decode_double(type, bytes, &value, err));
        break;
    case KN_TYPE_DECIMAL:
        KN_TRY(decode_decimal(type, bytes, &value, err));
        break;
    case KN_TYPE_STRING:
    case KN_TYPE_UUID:
    case KN_TYPE_FIXED:
    case KN_TYPE_BINARY:
        KN_TRY(decode_bytes(type, bytes, &value, err));
        break;
    case KN_TYPE_STRUCT:
    case KN_TYPE_LIST:
    case KN_TYPE_MAP:
    case KN_TYPE_UNKNOWN:
    case KN_TYPE_VARIANT:
    case KN_TYPE_GEOMETRY:
    case KN_TYPE_GEOGRAPHY:
        return kn_err_set(err, KN_E_UNSUPPORTED, "values of this type have no single-value form");
    default:
        KN_TRY(decode_integer(type, bytes, &value, err));
        break;
    }
    *ret = value;
    return KN_OK;
}

void kn_value_encode(KnBuf *buf, const KnType *type, const KnValue *value)
{
    uint8_t decimal[16];
    uint64_t bits = 0;
    uint32_t single_bits;
    float single;
    size_t len;

    switch (type->kind) {
    case KN_TYPE_BOOLEAN:
        kn_buf_char(buf, value->b ? 1 : 0);
        break;
    case KN_TYPE_INT:
    case KN_TYPE_DATE:
        write_le(buf, (uint64_t)value->i, 4);
        break;
    case KN_TYPE_FLOAT:
        single = (float)value->d;
        memcpy(&single_bits, &single, sizeof(single_bits));
        write_le(buf, single_bits, 4);
        break;
    case KN_TYPE_DOUBLE:
        memcpy(&bits, &value->d, sizeof(bits));
        write_le(buf, bits, 8);
        break;
    case KN_TYPE_DECIMAL:
        len = kn_decimal_to_bytes(value->dec, decimal);
        kn_buf_append(buf, decimal + sizeof(decimal) - len, len);
        break;
    case KN_TYPE_STRING:
    case KN_TYPE_UUID:
    case KN_TYPE_FIXED:
    case KN_TYPE_BINARY:
        kn_buf_str(buf, value->bytes);
        break;
    default:
        write_le(buf, (uint64_t)value->i, 8);
        break;
    }
}

/* ---- order ---- */

static int compare_double(double a, double b)
{
    if (isnan(a) || isnan(b))
        return !!isnan(a) - !!isnan(b);
    if (a < b || a > b)
        return a < b ? -1 : 1;
    return !!signbit(b) - !!signbit(a); /* -0.0 is before 0.0 */
}

static int compare_bytes(KnStr a, KnStr b)
{
    size_t len = a.len < b.len ? a.len : b.len;
    int order = len > 0 ? memcmp(a.ptr, b.ptr, len) : 0;

    return order != 0 ? order : (a.len > b.len) - (a.len < b.len);
}

int kn_value_compare(const KnValue *a, const KnValue *b)
{
    if (a->null || b->null)
        return b->null - a->null; /* nulls first */
    switch (a->kind) {
    case KN_TYPE_BOOLEAN:
        return a->b - b->b;
    case KN_TYPE_FLOAT:
    case KN_TYPE_DOUBLE:
        return compare_double(a->d, b->d);
    case KN_TYPE_DECIMAL:
        return (a->dec > b->dec) - (a->dec < b->dec);
    case KN_TYPE_STRING:
    case KN_TYPE_UUID:
    case KN_TYPE_FIXED:
    case KN_TYPE_BINARY:
        return compare_bytes(a->bytes, b->bytes);
    default:
        return (a->i > b->i) - (a->i < b->i);
    }
}

/* ---- from the engine ---- */

static KnStr uuid_from_vector(KnArena *arena, const KnVector *vec, size_t row)
{
    uint8_t *bytes = kn_arena_alloc(arena, 16);

    kn_vector_uuid(vec, row, bytes);
    return (KnStr){(const char *)bytes, 16};
}

static void read_vector(KnArena *arena, const KnVector *vec, size_t row, KnValue *ret)
{
    switch (vec->type->kind) {
    case KN_COL_BOOL:
        ret->b = ((const uint8_t *)vec->data)[row] != 0;
        break;
    case KN_COL_FLOAT:
        ret->d = (double)((const float *)vec->data)[row];
        break;
    case KN_COL_DOUBLE:
        ret->d = ((const double *)vec->data)[row];
        break;
    case KN_COL_DECIMAL:
        ret->dec = kn_vector_int128(vec, row);
        ret->scale = vec->type->scale;
        break;
    case KN_COL_INT32:
    case KN_COL_DATE:
        ret->i = ((const int32_t *)vec->data)[row];
        break;
    case KN_COL_VARCHAR:
    case KN_COL_BLOB:
        ret->bytes = kn_vector_str(vec, row);
        break;
    case KN_COL_UUID:
        ret->bytes = uuid_from_vector(arena, vec, row);
        break;
    default:
        ret->i = ((const int64_t *)vec->data)[row];
        break;
    }
}

KnCode kn_value_from_vector(KnArena *arena, const KnType *type, const KnVector *vec, size_t row,
                            KnValue *ret, KnErr *err)
{
    KnValue value = {.kind = type->kind};
    char text[KN_TYPE_TEXT_MAX];

    if (kn_vector_is_null(vec, row)) {
        value.null = true;
        *ret = value;
        return KN_OK;
    }
    if (kn_type_is_nested(type) || type->kind == KN_TYPE_UNKNOWN ||
        kn_type_column_kind(type->kind) != vec->type->kind ||
        (type->kind == KN_TYPE_DECIMAL && vec->type->scale != type->scale))
        return kn_err_set(err, KN_E_INVAL, "a column of another type cannot give values of type %s",
                          kn_type_text(type, text));
    read_vector(arena, vec, row, &value);
    *ret = value;
    return KN_OK;
}
