/* SPDX-License-Identifier: Apache-2.0 */
/*
 * decode.c - the bytes of PostgreSQL's binary COPY as rows; encode.c is the other way.
 *
 * A row is looked at twice: first whether all of it is there, then its values. So a row that is cut
 * by the end of the bytes has left nothing in the builder.
 */
#include "postgres/decode.h"

#include <endian.h>
#include <string.h>

#include "base/arena.h"

enum { SIGNATURE = 11, HEADER = 19, MAX_PRECISION = 38, TYPMOD_OFFSET = 4 };
enum { EPOCH_DAYS = 10957 }; /* 1970-01-01 to 2000-01-01 */
#define EPOCH_US (EPOCH_DAYS * INT64_C(86400000000))

/* ---- types ---- */

/* numeric(p,s): p in the upper half of the modifier, s in its lower 11 bits, signed. */
static const char *numeric_type(KnArena *arena, int32_t modifier)
{
    int32_t bits = modifier - TYPMOD_OFFSET;
    int32_t precision = (bits >> 16) & 0xffff, scale = ((bits & 0x7ff) ^ 1024) - 1024;
    if (modifier < TYPMOD_OFFSET || precision > MAX_PRECISION || scale < 0 || scale > precision)
        return NULL;
    return kn_arena_printf(arena, "DECIMAL(%d,%d)", precision, scale);
}

KnPgReadType kn_pg_read_type(KnArena *arena, uint32_t oid, int32_t modifier)
{
    static const struct {
        uint32_t oid;
        const char *sql;
    } types[] = {
        {16, "BOOLEAN"},   {17, "BLOB"},    {20, "BIGINT"},      {21, "SMALLINT"},
        {23, "INTEGER"},   {25, "VARCHAR"}, {700, "FLOAT"},      {701, "DOUBLE"},
        {1042, "VARCHAR"}, /* character(n) */
        {1043, "VARCHAR"}, /* character varying */
        {1082, "DATE"},    {1083, "TIME"},  {1114, "TIMESTAMP"}, {1184, "TIMESTAMP WITH TIME ZONE"},
        {2950, "UUID"},
    };
    const char *numeric = oid == 1700 ? numeric_type(arena, modifier) : NULL;
    if (numeric)
        return (KnPgReadType){numeric, false};
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
        if (types[i].oid == oid)
            return (KnPgReadType){types[i].sql, false};
    return (KnPgReadType){"VARCHAR", true};
}

/* ---- bytes ---- */

static uint16_t u16(const char *at)
{
    uint16_t value;
    memcpy(&value, at, sizeof(value));
    return be16toh(value);
}

static uint32_t u32(const char *at)
{
    uint32_t value;
    memcpy(&value, at, sizeof(value));
    return be32toh(value);
}

static uint64_t u64(const char *at)
{
    uint64_t value;
    memcpy(&value, at, sizeof(value));
    return be64toh(value);
}

static KnCode bad_width(KnStr value, KnErr *err)
{
    return kn_err_set(err, KN_E_CORRUPT, "a value of %zu bytes, which its type does not have",
                      value.len);
}

/* ---- values ---- */

/* Appends decimal digits; false when the number leaves what 38 of them can say. */
static bool push_digits(__int128 *unscaled, unsigned factor, unsigned digits)
{
    return !__builtin_mul_overflow(*unscaled, (__int128)factor, unscaled) &&
           !__builtin_add_overflow(*unscaled, (__int128)digits, unscaled);
}

/* Base-10000 digits from weight downwards: the digits before the point, then scale behind it. */
static KnCode unscaled_of(KnStr value, unsigned scale, __int128 *ret, KnErr *err)
{
    static const unsigned powers[] = {1, 10, 100, 1000, 10000};
    int n = u16(value.ptr), weight = (int16_t)u16(value.ptr + 2);
    unsigned sign = u16(value.ptr + 4);
    if (sign != 0 && sign != 0x4000)
        return kn_err_set(err, KN_E_CORRUPT, "NaN or infinity, which no decimal can be");
    if (value.len != 8 + 2 * (size_t)n)
        return bad_width(value, err);
    *ret = 0;
    int last = -(int)((scale + 3) / 4); /* the group that holds the last digit wanted */
    bool fits = true;
    for (int group = weight > -1 ? weight : -1; fits && group >= last; group--) {
        int at = weight - group;
        unsigned digits = at >= 0 && at < n ? u16(value.ptr + 8 + 2 * (size_t)at) : 0;
        unsigned wanted = group == last && scale % 4 ? scale % 4 : 4;
        if (digits > 9999)
            return kn_err_set(err, KN_E_CORRUPT, "a numeric's digit is %u", digits);
        fits = push_digits(ret, powers[wanted], digits / powers[4 - wanted]);
    }
    if (!fits)
        return kn_err_set(err, KN_E_CORRUPT, "a numeric that its type cannot hold");
    *ret = sign ? -*ret : *ret;
    return KN_OK;
}

static KnCode put_numeric(KnColWriter *w, KnStr value, KnErr *err)
{
    __int128 unscaled = 0;
    if (value.len < 8)
        return bad_width(value, err);
    KN_TRY(unscaled_of(value, kn_col_type(w)->scale, &unscaled, err));
    return kn_col_put_int(w, unscaled, err);
}

/* Days and microseconds count from 2000; the ends of the range are infinities. */
static KnCode put_moment(KnColWriter *w, int64_t value, int64_t epoch, bool infinite, KnErr *err)
{
    int64_t moved;
    if (infinite || __builtin_add_overflow(value, epoch, &moved))
        return kn_err_set(err, KN_E_CORRUPT, "infinity, or a moment out of range");
    return kn_col_put_int(w, moved, err);
}

static size_t width_of(KnColKind kind)
{
    switch (kind) {
    case KN_COL_BOOL:
        return 1;
    case KN_COL_INT16:
        return 2;
    case KN_COL_INT32:
    case KN_COL_FLOAT:
    case KN_COL_DATE:
        return 4;
    case KN_COL_UUID:
        return 16;
    case KN_COL_VARCHAR:
    case KN_COL_BLOB:
    case KN_COL_DECIMAL:
        return 0; /* any */
    default:
        return 8;
    }
}

static KnCode put_double(KnColWriter *w, uint64_t bits, KnErr *err)
{
    double value;
    memcpy(&value, &bits, sizeof(value));
    return kn_col_put_double(w, value, err);
}

static KnCode put_float(KnColWriter *w, uint32_t bits, KnErr *err)
{
    float value;
    memcpy(&value, &bits, sizeof(value));
    return kn_col_put_float(w, value, err);
}

static KnCode put_value(KnColWriter *w, KnStr value, KnErr *err)
{
    KnColKind kind = kn_col_type(w)->kind;
    if (width_of(kind) && value.len != width_of(kind))
        return bad_width(value, err);
    switch (kind) {
    case KN_COL_BOOL:
        return kn_col_put_int(w, value.ptr[0] != 0, err);
    case KN_COL_INT16:
        return kn_col_put_int(w, (int16_t)u16(value.ptr), err);
    case KN_COL_INT32:
        return kn_col_put_int(w, (int32_t)u32(value.ptr), err);
    case KN_COL_FLOAT:
        return put_float(w, u32(value.ptr), err);
    case KN_COL_DOUBLE:
        return put_double(w, u64(value.ptr), err);
    case KN_COL_DATE: {
        int32_t day = (int32_t)u32(value.ptr);
        return put_moment(w, day, EPOCH_DAYS, day == INT32_MAX || day == INT32_MIN, err);
    }
    case KN_COL_TIMESTAMP:
    case KN_COL_TIMESTAMPTZ: {
        int64_t us = (int64_t)u64(value.ptr);
        return put_moment(w, us, EPOCH_US, us == INT64_MAX || us == INT64_MIN, err);
    }
    case KN_COL_DECIMAL:
        return put_numeric(w, value, err);
    case KN_COL_UUID:
        return kn_col_put_uuid(w, (const uint8_t *)value.ptr, err);
    case KN_COL_VARCHAR:
    case KN_COL_BLOB:
        return kn_col_put_str(w, value, err);
    default: /* BIGINT, TIME */
        return kn_col_put_int(w, (int64_t)u64(value.ptr), err);
    }
}

/* ---- rows ---- */

/* Bytes of the row at the start; 0 = not all of it is there. */
static KnCode row_size(const KnPgDecoder *dec, KnStr bytes, size_t *ret, KnErr *err)
{
    size_t at = 2;
    *ret = 0;
    for (size_t i = 0; i < dec->n_columns; i++) {
        if (bytes.len - at < 4)
            return KN_OK;
        int32_t len = (int32_t)u32(bytes.ptr + at);
        if (len < -1)
            return kn_err_set(err, KN_E_CORRUPT, "column %s: a value of %d bytes", dec->names[i],
                              len);
        at += 4;
        if (len > 0 && bytes.len - at < (size_t)len)
            return KN_OK;
        at += len > 0 ? (size_t)len : 0;
    }
    *ret = at;
    return KN_OK;
}

static KnCode put_row(const KnPgDecoder *dec, const char *at, KnBuilder *builder, KnErr *err)
{
    at += 2;
    for (size_t i = 0; i < dec->n_columns; i++) {
        KnColWriter *w = kn_builder_column(builder, i);
        int32_t len = (int32_t)u32(at);
        at += 4;
        KnCode rc = len < 0 ? kn_col_put_null(w, err) : put_value(w, (KnStr){at, (size_t)len}, err);
        if (rc != KN_OK)
            return kn_err_wrap(err, rc, "column %s", dec->names[i]);
        at += len > 0 ? len : 0;
    }
    kn_builder_end_row(builder);
    return KN_OK;
}

static KnCode read_header(KnPgDecoder *dec, KnStr bytes, size_t *ret_used, KnErr *err)
{
    if (bytes.len < HEADER)
        return KN_OK;
    size_t extension = u32(bytes.ptr + HEADER - 4);
    if (memcmp(bytes.ptr, "PGCOPY\n\377\r\n", SIGNATURE) != 0 || u32(bytes.ptr + SIGNATURE) != 0)
        return kn_err_set(err, KN_E_CORRUPT, "this is no binary COPY that is known");
    if (bytes.len - HEADER < extension)
        return KN_OK;
    dec->began = true;
    *ret_used = HEADER + extension;
    return KN_OK;
}

KnCode kn_pg_decode(KnPgDecoder *dec, KnStr bytes, KnBuilder *builder, size_t *ret_used, KnErr *err)
{
    size_t used = 0;
    if (!dec->began)
        KN_TRY(read_header(dec, bytes, &used, err));
    while (dec->began && !dec->ended && bytes.len - used >= 2 && !kn_builder_full(builder)) {
        KnStr rest = {bytes.ptr + used, bytes.len - used};
        size_t size = 0;
        dec->ended = u16(rest.ptr) == UINT16_MAX;
        if (dec->ended) {
            used += 2;
            break;
        }
        if (u16(rest.ptr) != dec->n_columns)
            return kn_err_set(err, KN_E_CORRUPT, "a row of %u columns, not %zu", u16(rest.ptr),
                              dec->n_columns);
        KN_TRY(row_size(dec, rest, &size, err));
        if (!size)
            break;
        KN_TRY(put_row(dec, rest.ptr, builder, err));
        used += size;
    }
    *ret_used = used;
    return KN_OK;
}
