/* SPDX-License-Identifier: Apache-2.0 */
/*
 * encode.c - rows as the bytes of PostgreSQL's binary COPY.
 *
 * A row is the number of its columns (16 bits), then for each its length (32 bits, -1 = NULL) and
 * its bytes, all big-endian. Dates and timestamps count from 2000-01-01. A numeric is base-10000
 * digits with the weight of the first (numeric.c, numeric_recv). Nested values are jsonb: a version
 * byte and JSON as docs/output.md spells it.
 */
#include "postgres/encode.h"

#include <endian.h>
#include <inttypes.h>
#include <string.h>

#include "iceberg/scan/read.h"

#define EPOCH_DAYS 10957 /* 1970-01-01 to 2000-01-01 */
#define EPOCH_US   (EPOCH_DAYS * INT64_C(86400000000))
/* What PostgreSQL takes (datatype/timestamp.h), on its own scale. */
#define MIN_DAY (-INT64_C(2451545))
#define END_DAY INT64_C(2145031949)
#define MIN_US  (-INT64_C(211813488000000000))
#define END_US  INT64_C(9223371331200000000)

KnCode kn_pg_nanos_parse(KnStr text, KnPgNanos *ret, KnErr *err)
{
    static const char *const NAMES[] = {"refuse", "text", "bigint", "truncate"};
    for (size_t i = 0; i < sizeof(NAMES) / sizeof(NAMES[0]); ++i)
        if (kn_str_eq(text, kn_str(NAMES[i]))) {
            *ret = (KnPgNanos)i;
            return KN_OK;
        }
    return kn_err_set(err, KN_E_INVAL,
                      "nanoseconds='" KN_STR_FMT "': expected refuse, text, bigint or truncate",
                      KN_STR_ARG(text));
}

/* ---- types ---- */

static KnCode nanos_type(const KnField *field, KnPgNanos nanos, const char **ret, KnErr *err)
{
    switch (nanos) {
    case KN_PG_NANOS_TEXT:
        *ret = "text";
        return KN_OK;
    case KN_PG_NANOS_BIGINT:
        *ret = "bigint";
        return KN_OK;
    case KN_PG_NANOS_TRUNCATE:
        *ret = field->type->kind == KN_TYPE_TIMESTAMPTZ_NS ? "timestamp with time zone"
                                                           : "timestamp without time zone";
        return KN_OK;
    default:
        return kn_err_set(err, KN_E_REFUSED,
                          "column %s has nanoseconds, PostgreSQL keeps microseconds: say what "
                          "becomes of them with ?nanoseconds=text, bigint or truncate behind the "
                          "database's name",
                          field->name);
    }
}

KnCode kn_pg_type(KnArena *arena, const KnField *field, KnPgNanos nanos, const char **ret,
                  KnErr *err)
{
    static const char *const NAMES[] = {
        [KN_TYPE_BOOLEAN] = "boolean",
        [KN_TYPE_INT] = "integer",
        [KN_TYPE_LONG] = "bigint",
        [KN_TYPE_FLOAT] = "real",
        [KN_TYPE_DOUBLE] = "double precision",
        [KN_TYPE_DATE] = "date",
        [KN_TYPE_TIME] = "time without time zone",
        [KN_TYPE_TIMESTAMP] = "timestamp without time zone",
        [KN_TYPE_TIMESTAMPTZ] = "timestamp with time zone",
        [KN_TYPE_STRING] = "text",
        [KN_TYPE_UUID] = "uuid",
        [KN_TYPE_FIXED] = "bytea",
        [KN_TYPE_BINARY] = "bytea",
        [KN_TYPE_STRUCT] = "jsonb",
        [KN_TYPE_LIST] = "jsonb",
        [KN_TYPE_MAP] = "jsonb",
        [KN_TYPE_UNKNOWN] = "text",
        [KN_TYPE_GEOGRAPHY] = NULL,
    };
    KN_BUF_AUTO text;
    kn_buf_init(&text, (size_t)1 << 20);
    KnCode rc = kn_type_sql(&text, field->type, err); /* what cannot be read cannot be delivered */
    if (rc != KN_OK)
        return kn_err_wrap(err, rc, "column %s", field->name);
    KnTypeKind kind = field->type->kind;
    if (kind == KN_TYPE_TIMESTAMP_NS || kind == KN_TYPE_TIMESTAMPTZ_NS)
        return nanos_type(field, nanos, ret, err);
    *ret = kind == KN_TYPE_DECIMAL ? kn_arena_printf(arena, "numeric(%" PRId32 ",%" PRId32 ")",
                                                     field->type->precision, field->type->scale)
                                   : NAMES[kind];
    return KN_OK;
}

bool kn_pg_takes(const char *actual, const char *want)
{
    if (strcmp(actual, want) == 0)
        return true;
    if (strcmp(want, "text") == 0)
        return strcmp(actual, "character varying") == 0;
    return strncmp(want, "numeric(", 8) == 0 && strcmp(actual, "numeric") == 0;
}

/* ---- bytes ---- */

static void put_fixed(KnBuf *out, const void *value, uint32_t len)
{
    char *to = kn_buf_reserve(out, sizeof(len) + len);
    if (!to)
        return;
    uint32_t size = htobe32(len);
    memcpy(to, &size, sizeof(size));
    memcpy(to + sizeof(size), value, len);
    out->len += sizeof(size) + len;
}

static void put_u16(KnBuf *out, uint16_t value)
{
    uint16_t be = htobe16(value);
    kn_buf_append(out, &be, sizeof(be));
}

static void put_null(KnBuf *out)
{
    static const uint32_t NONE = UINT32_MAX;
    kn_buf_append(out, &NONE, sizeof(NONE));
}

static void put_i32(KnBuf *out, int32_t value)
{
    uint32_t be = htobe32((uint32_t)value);
    put_fixed(out, &be, sizeof(be));
}

static void put_i64(KnBuf *out, int64_t value)
{
    uint64_t be = htobe64((uint64_t)value);
    put_fixed(out, &be, sizeof(be));
}

/* Room for a length that is known when the value is written. */
static size_t begin_sized(KnBuf *out)
{
    size_t at = out->len;
    put_null(out);
    return at;
}

static void end_sized(KnBuf *out, size_t at)
{
    if (out->failed)
        return;
    uint32_t be = htobe32((uint32_t)(out->len - at - sizeof(be)));
    memcpy(out->data + at, &be, sizeof(be));
}

void kn_pg_encode_numeric(KnBuf *out, __int128 unscaled, int scale)
{
    uint16_t groups[12];
    int n = 0, pad = (4 - scale % 4) % 4;
    unsigned __int128 rest =
        unscaled < 0 ? 0 - (unsigned __int128)unscaled : (unsigned __int128)unscaled;
    /* The last group holds what is left of the scale, filled up with zeros on its right. */
    if (pad) {
        static const uint16_t POWERS[] = {1, 10, 100, 1000};
        unsigned keep = POWERS[4 - pad];
        groups[n++] = (uint16_t)((unsigned)(rest % keep) * POWERS[pad]);
        rest /= keep;
    }
    for (; rest; rest /= 10000)
        groups[n++] = (uint16_t)(rest % 10000);
    int fraction = (scale + pad) / 4, weight = n - 1 - fraction, first = n, last = 0;
    while (first > 0 && groups[first - 1] == 0) { /* zeros in front */
        --first;
        --weight;
    }
    while (last < first && groups[last] == 0) /* and behind */
        ++last;
    size_t at = begin_sized(out);
    put_u16(out, (uint16_t)(first - last));
    put_u16(out, (uint16_t)(first > last ? weight : 0));
    put_u16(out, unscaled < 0 ? 0x4000 : 0);
    put_u16(out, (uint16_t)scale);
    for (int i = first; i-- > last;)
        put_u16(out, groups[i]);
    end_sized(out, at);
}

/* ---- values ---- */

static KnCode refuse(const KnField *field, const char *what, KnErr *err)
{
    return kn_err_set(err, KN_E_REFUSED,
                      "column %s: %s, which PostgreSQL cannot hold: correct it in the source, or "
                      "leave the column out with a view",
                      field->name, what);
}

static KnCode put_date(KnBuf *out, const KnField *field, int32_t days, KnErr *err)
{
    int64_t day = (int64_t)days - EPOCH_DAYS;
    if (day < MIN_DAY || day >= END_DAY)
        return refuse(field, "a date before 4713 BC or after 5874897", err);
    put_i32(out, (int32_t)day);
    return KN_OK;
}

static KnCode put_timestamp(KnBuf *out, const KnField *field, int64_t us, KnErr *err)
{
    int64_t value;
    if (__builtin_sub_overflow(us, EPOCH_US, &value) || value < MIN_US || value >= END_US)
        return refuse(field, "a timestamp before 4713 BC or after 294276", err);
    put_i64(out, value);
    return KN_OK;
}

static KnCode put_text(KnBuf *out, const KnField *field, KnStr text, KnErr *err)
{
    if (text.len && memchr(text.ptr, 0, text.len))
        return refuse(field, "a text with a NUL byte", err);
    if (text.len > INT32_MAX / 2)
        return refuse(field, "a value of more than 1 GiB", err);
    put_fixed(out, text.len ? text.ptr : "", (uint32_t)text.len);
    return KN_OK;
}

static KnCode put_bytes(KnBuf *out, const KnField *field, KnStr bytes, KnErr *err)
{
    if (bytes.len > INT32_MAX / 2)
        return refuse(field, "a value of more than 1 GiB", err);
    put_fixed(out, bytes.len ? bytes.ptr : "", (uint32_t)bytes.len);
    return KN_OK;
}

/* jsonb has no \u0000; a quoted backslash before u is none. */
static bool has_json_nul(KnStr json)
{
    for (size_t i = 0; i + 5 < json.len; ++i) {
        if (json.ptr[i] != '\\')
            continue;
        if (memcmp(json.ptr + i + 1, "u0000", 5) == 0)
            return true;
        ++i; /* the escaped character */
    }
    return false;
}

static KnCode put_json(KnBuf *out, const KnField *field, const KnVector *vec, size_t row,
                       KnErr *err)
{
    size_t at = begin_sized(out);
    kn_buf_char(out, 1);
    size_t start = out->len;
    KnCode rc = kn_value_json(out, field->type, vec, row, err);
    if (rc != KN_OK)
        return kn_err_wrap(err, rc, "column %s", field->name);
    KN_TRY(kn_buf_check(out, err));
    if (has_json_nul((KnStr){out->data + start, out->len - start}))
        return refuse(field, "a text with a NUL byte", err);
    end_sized(out, at);
    return KN_OK;
}

static int64_t floor_us(int64_t ns)
{
    return ns / 1000 - (ns % 1000 < 0);
}

static KnCode put_nanos(const KnPgEncoder *enc, KnBuf *out, size_t col, size_t row, KnErr *err)
{
    const KnField *field = &enc->fields[col];
    int64_t value = ((const int64_t *)enc->vecs[col].data)[row];
    if (enc->nanos == KN_PG_NANOS_TRUNCATE)
        return put_timestamp(out, field, floor_us(value), err);
    if (enc->nanos == KN_PG_NANOS_BIGINT) {
        put_i64(out, value);
        return KN_OK;
    }
    KN_BUF_AUTO text;
    kn_buf_init(&text, 256);
    KN_TRY(kn_value_json(&text, field->type, &enc->vecs[col], row, err));
    KN_TRY(kn_buf_check(&text, err));
    put_fixed(out, text.data + 1, (uint32_t)text.len - 2); /* without its quotes */
    return KN_OK;
}

static KnCode put_value(const KnPgEncoder *enc, KnBuf *out, size_t col, size_t row, KnErr *err)
{
    const KnField *field = &enc->fields[col];
    const KnVector *vec = &enc->vecs[col];
    uint8_t uuid[16];
    switch (field->type->kind) {
    case KN_TYPE_BOOLEAN:
        put_fixed(out, ((const uint8_t *)vec->data)[row] ? "\1" : "\0", 1);
        return KN_OK;
    case KN_TYPE_INT:
    case KN_TYPE_FLOAT: /* its bits */
        put_i32(out, ((const int32_t *)vec->data)[row]);
        return KN_OK;
    case KN_TYPE_LONG:
    case KN_TYPE_DOUBLE:
    case KN_TYPE_TIME:
        put_i64(out, ((const int64_t *)vec->data)[row]);
        return KN_OK;
    case KN_TYPE_DECIMAL:
        kn_pg_encode_numeric(out, kn_vector_int128(vec, row), field->type->scale);
        return KN_OK;
    case KN_TYPE_DATE:
        return put_date(out, field, ((const int32_t *)vec->data)[row], err);
    case KN_TYPE_TIMESTAMP:
    case KN_TYPE_TIMESTAMPTZ:
        return put_timestamp(out, field, ((const int64_t *)vec->data)[row], err);
    case KN_TYPE_TIMESTAMP_NS:
    case KN_TYPE_TIMESTAMPTZ_NS:
        return put_nanos(enc, out, col, row, err);
    case KN_TYPE_STRING:
        return put_text(out, field, kn_vector_str(vec, row), err);
    case KN_TYPE_UUID:
        kn_vector_uuid(vec, row, uuid);
        put_fixed(out, uuid, sizeof(uuid));
        return KN_OK;
    case KN_TYPE_FIXED:
    case KN_TYPE_BINARY:
        return put_bytes(out, field, kn_vector_str(vec, row), err);
    default:
        return put_json(out, field, vec, row, err);
    }
}

/* ---- rows ---- */

void kn_pg_encode_header(KnBuf *out)
{
    static const char HEADER[19] = "PGCOPY\n\377\r\n"; /* then flags and extension: zeros */
    kn_buf_append(out, HEADER, sizeof(HEADER));
}

void kn_pg_encode_trailer(KnBuf *out)
{
    put_u16(out, UINT16_MAX);
}

KnCode kn_pg_encode_batch(KnPgEncoder *enc, const KnBatch *batch, KnErr *err)
{
    size_t n = enc->n_fields + (enc->positions ? 2 : 0);
    if (kn_batch_n_columns(batch) != n)
        return kn_err_set(err, KN_E_CORRUPT, "rows have %zu columns, not %zu",
                          kn_batch_n_columns(batch), n);
    for (size_t i = 0; i < n; ++i) {
        enc->vecs[i] = kn_batch_vector(batch, i);
        KnColKind want =
            i < enc->n_fields ? kn_type_column_kind(enc->fields[i].type->kind) : KN_COL_INT64;
        bool unknown = i < enc->n_fields && enc->fields[i].type->kind == KN_TYPE_UNKNOWN;
        if (!unknown && enc->vecs[i].type->kind != want)
            return kn_err_set(err, KN_E_CORRUPT, "column %zu of the rows has another type", i);
    }
    return KN_OK;
}

KnCode kn_pg_encode_row(const KnPgEncoder *enc, size_t row, KnBuf *out, KnErr *err)
{
    size_t n = enc->n_fields + (enc->positions ? 2 : 0);
    put_u16(out, (uint16_t)n);
    for (size_t i = 0; i < enc->n_fields; ++i) {
        if (enc->fields[i].type->kind == KN_TYPE_UNKNOWN || kn_vector_is_null(&enc->vecs[i], row))
            put_null(out);
        else
            KN_TRY(put_value(enc, out, i, row, err));
    }
    for (size_t i = enc->n_fields; i < n; ++i)
        put_i64(out, ((const int64_t *)enc->vecs[i].data)[row]);
    return kn_buf_check(out, err);
}
