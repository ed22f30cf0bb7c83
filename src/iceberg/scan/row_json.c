/* SPDX-License-Identifier: Apache-2.0 */
/*
 * row_json.c - a row as one JSON object.
 *
 * Values are spelled as Java's toString() does, so that they compare with other tools' output:
 * times without needless zeros (00:00, 23:59:59.999999), Z for UTC, decimals and UUIDs as text,
 * bytes as 0x…, maps as lists of pairs. Numbers take most of the time in wide rows; integers and
 * doubles of few decimals have fast ways. Reads the batch only; thread-safe.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "iceberg/scan/read.h"
#include "iceberg/schema/value_internal.h"

typedef struct Writer {
    KnBuf *out;
    KnErr *err;
} Writer;

static KnCode write_value(Writer *w, const KnType *type, const KnVector *vec, size_t row);

/* ---- numbers ---- */

static void write_u64(KnBuf *out, uint64_t value, int min_digits)
{
    char text[20];
    size_t at = sizeof(text);
    for (; value > 0 || min_digits > 0; min_digits--) {
        text[--at] = (char)('0' + value % 10);
        value /= 10;
    }
    kn_buf_append(out, text + at, sizeof(text) - at);
}

static void write_i64(KnBuf *out, int64_t value)
{
    if (value < 0)
        kn_buf_char(out, '-');
    write_u64(out, value < 0 ? 0 - (uint64_t)value : (uint64_t)value, 1);
}

/* A double whose shortest text has up to six decimals and 15 digits; false = not one. */
static bool write_short_double(KnBuf *out, double value)
{
    static const double powers[] = {1, 10, 100, 1e3, 1e4, 1e5, 1e6};
    double size = fabs(value);
    if (!(size < 1e9))
        return false;
    for (int digits = 1; digits <= 6; digits++) {
        double scaled = size * powers[digits];
        double whole = nearbyint(scaled);
        if (whole / powers[digits] != size)
            continue;
        if (signbit(value))
            kn_buf_char(out, '-');
        uint64_t units = (uint64_t)whole;
        uint64_t power = (uint64_t)powers[digits];
        write_u64(out, units / power, 1);
        kn_buf_char(out, '.');
        write_u64(out, units % power, digits);
        return true;
    }
    return false;
}

static void write_double(KnBuf *out, double value, bool single)
{
    if (!isfinite(value)) {
        kn_buf_text(out, isnan(value) ? "\"NaN\"" : value < 0 ? "\"-Infinity\"" : "\"Infinity\"");
        return;
    }
    if (single || !write_short_double(out, value))
        kn_double_format(out, value, single);
}

/* ---- times ---- */

static void write_date(KnBuf *out, int64_t days)
{
    KnDate date = kn_date_from_days(days);
    if (date.year < 0 || date.year > 9999) {
        kn_date_format(out, days);
        return;
    }
    write_u64(out, (uint64_t)date.year, 4);
    kn_buf_char(out, '-');
    write_u64(out, (uint64_t)date.month, 2);
    kn_buf_char(out, '-');
    write_u64(out, (uint64_t)date.day, 2);
}

/* Java's LocalTime.toString(): no seconds when there are none, fractions of 3, 6 or 9 digits. */
static void write_time_of_day(KnBuf *out, int64_t nanos)
{
    int64_t seconds = nanos / 1000000000;
    int64_t fraction = nanos % 1000000000;
    write_u64(out, (uint64_t)(seconds / 3600), 2);
    kn_buf_char(out, ':');
    write_u64(out, (uint64_t)(seconds / 60 % 60), 2);
    if (seconds % 60 == 0 && fraction == 0)
        return;
    kn_buf_char(out, ':');
    write_u64(out, (uint64_t)(seconds % 60), 2);
    if (fraction == 0)
        return;
    kn_buf_char(out, '.');
    if (fraction % 1000000 == 0)
        write_u64(out, (uint64_t)(fraction / 1000000), 3);
    else if (fraction % 1000 == 0)
        write_u64(out, (uint64_t)(fraction / 1000), 6);
    else
        write_u64(out, (uint64_t)fraction, 9);
}

static void write_timestamp(KnBuf *out, KnTypeKind kind, int64_t value)
{
    int64_t scale = kn_type_is_ns(kind) ? 1 : KN_NS_PER_US;
    int64_t day = KN_US_PER_DAY * (kn_type_is_ns(kind) ? KN_NS_PER_US : 1);
    kn_buf_char(out, '"');
    write_date(out, kn_floor_div(value, day));
    kn_buf_char(out, 'T');
    write_time_of_day(out, kn_floor_mod(value, day) * scale);
    kn_buf_text(out, kn_type_is_tz(kind) ? "Z\"" : "\"");
}

/* ---- text and bytes ---- */

/* Most texts need no escapes: they are taken as one piece. */
static void write_text(KnBuf *out, KnStr s)
{
    unsigned char above = 0;
    for (size_t i = 0; i < s.len; i++) {
        unsigned char c = (unsigned char)s.ptr[i];
        if (c < 0x20 || c == '"' || c == '\\') {
            kn_json_quote(out, s);
            return;
        }
        above |= c;
    }
    char *to = above < 0x80 || kn_str_is_utf8(s) ? kn_buf_reserve(out, s.len + 2) : NULL;
    if (!to) {
        kn_json_quote(out, s);
        return;
    }
    to[0] = '"';
    if (s.len)
        memcpy(to + 1, s.ptr, s.len);
    to[s.len + 1] = '"';
    out->len += s.len + 2;
}

static void write_bytes(KnBuf *out, KnStr bytes)
{
    kn_buf_text(out, "\"0x");
    kn_hex_format(out, bytes, false);
    kn_buf_char(out, '"');
}

static void write_uuid(KnBuf *out, const KnVector *vec, size_t row)
{
    uint8_t bytes[16];
    kn_vector_uuid(vec, row, bytes);
    kn_buf_char(out, '"');
    kn_uuid_format(out, (KnStr){(const char *)bytes, sizeof(bytes)});
    kn_buf_char(out, '"');
}

static void write_decimal(KnBuf *out, const KnType *type, const KnVector *vec, size_t row)
{
    kn_buf_char(out, '"');
    kn_decimal_format(out, kn_vector_int128(vec, row), type->scale);
    kn_buf_char(out, '"');
}

/* ---- nested ---- */

static KnCode write_struct(Writer *w, const KnType *type, const KnVector *vec, size_t row)
{
    kn_buf_char(w->out, '{');
    for (size_t i = 0; i < type->n_fields; i++) {
        KnVector child = kn_vector_child(vec, i);
        if (i)
            kn_buf_char(w->out, ',');
        write_text(w->out, kn_str(type->fields[i].name));
        kn_buf_char(w->out, ':');
        KN_TRY(write_value(w, type->fields[i].type, &child, row));
    }
    kn_buf_char(w->out, '}');
    return KN_OK;
}

static KnCode write_list(Writer *w, const KnType *type, const KnVector *vec, size_t row)
{
    KnListEntry entry = ((const KnListEntry *)vec->data)[row];
    KnVector child = kn_vector_child(vec, 0);
    kn_buf_char(w->out, '[');
    for (uint64_t i = 0; i < entry.length; i++) {
        if (i)
            kn_buf_char(w->out, ',');
        KN_TRY(write_value(w, type->fields[0].type, &child, entry.offset + i));
    }
    kn_buf_char(w->out, ']');
    return KN_OK;
}

static KnCode write_map(Writer *w, const KnType *type, const KnVector *vec, size_t row)
{
    KnListEntry entry = ((const KnListEntry *)vec->data)[row];
    KnVector pair = kn_vector_child(vec, 0);
    KnVector key = kn_vector_child(&pair, 0);
    KnVector value = kn_vector_child(&pair, 1);
    kn_buf_char(w->out, '[');
    for (uint64_t i = 0; i < entry.length; i++) {
        kn_buf_text(w->out, i ? ",[" : "[");
        KN_TRY(write_value(w, type->fields[0].type, &key, entry.offset + i));
        kn_buf_char(w->out, ',');
        KN_TRY(write_value(w, type->fields[1].type, &value, entry.offset + i));
        kn_buf_char(w->out, ']');
    }
    kn_buf_char(w->out, ']');
    return KN_OK;
}

/* ---- values ---- */

/* What a batch column of a type must be: reading it as anything else would be reading astray. */
static bool fits(const KnType *type, const KnColType *col)
{
    return kn_type_column_kind(type->kind) == col->kind &&
           (type->kind != KN_TYPE_STRUCT || type->n_fields == col->n_children) &&
           (type->kind != KN_TYPE_DECIMAL || type->scale == col->scale);
}

static void write_primitive(KnBuf *out, const KnType *type, const KnVector *vec, size_t row)
{
    switch (type->kind) {
    case KN_TYPE_BOOLEAN:
        kn_buf_text(out, ((const uint8_t *)vec->data)[row] ? "true" : "false");
        break;
    case KN_TYPE_INT:
        write_i64(out, ((const int32_t *)vec->data)[row]);
        break;
    case KN_TYPE_LONG:
        write_i64(out, ((const int64_t *)vec->data)[row]);
        break;
    case KN_TYPE_FLOAT:
        write_double(out, (double)((const float *)vec->data)[row], true);
        break;
    case KN_TYPE_DOUBLE:
        write_double(out, ((const double *)vec->data)[row], false);
        break;
    case KN_TYPE_DECIMAL:
        write_decimal(out, type, vec, row);
        break;
    case KN_TYPE_DATE:
        kn_buf_char(out, '"');
        write_date(out, ((const int32_t *)vec->data)[row]);
        kn_buf_char(out, '"');
        break;
    case KN_TYPE_TIME:
        kn_buf_char(out, '"');
        write_time_of_day(out, ((const int64_t *)vec->data)[row] * KN_NS_PER_US);
        kn_buf_char(out, '"');
        break;
    case KN_TYPE_STRING:
        write_text(out, kn_vector_str(vec, row));
        break;
    case KN_TYPE_UUID:
        write_uuid(out, vec, row);
        break;
    case KN_TYPE_FIXED:
    case KN_TYPE_BINARY:
        write_bytes(out, kn_vector_str(vec, row));
        break;
    default:
        write_timestamp(out, type->kind, ((const int64_t *)vec->data)[row]);
        break;
    }
}

static KnCode write_value(Writer *w, const KnType *type, const KnVector *vec, size_t row)
{
    if (type->kind == KN_TYPE_UNKNOWN || kn_vector_is_null(vec, row)) {
        kn_buf_text(w->out, "null");
        return KN_OK;
    }
    if (!fits(type, vec->type)) {
        KN_BUF_AUTO text;
        kn_buf_init(&text, 1 << 16);
        kn_type_format(&text, type);
        return kn_err_set(w->err, KN_E_INVAL, "a batch column of kind %d is no %.200s",
                          (int)vec->type->kind, text.data ? text.data : "?");
    }
    switch (type->kind) {
    case KN_TYPE_STRUCT:
        return write_struct(w, type, vec, row);
    case KN_TYPE_LIST:
        return write_list(w, type, vec, row);
    case KN_TYPE_MAP:
        return write_map(w, type, vec, row);
    default:
        write_primitive(w->out, type, vec, row);
        return KN_OK;
    }
}

KnCode kn_value_json(KnBuf *out, const KnType *type, const KnVector *vec, size_t row, KnErr *err)
{
    Writer w = {.out = out, .err = err};
    return write_value(&w, type, vec, row);
}

KnCode kn_row_json(KnBuf *out, const KnSchema *schema, const KnBatch *batch, size_t row,
                   const char *extra, KnErr *err)
{
    Writer w = {.out = out, .err = err};
    kn_buf_char(out, '{');
    for (size_t i = 0; i < schema->root.n_fields; i++) {
        const KnField *field = &schema->root.fields[i];
        KnVector vec = kn_batch_vector(batch, i);
        if (i)
            kn_buf_char(out, ',');
        write_text(out, kn_str(field->name));
        kn_buf_char(out, ':');
        KnCode rc = write_value(&w, field->type, &vec, row);
        if (rc != KN_OK)
            return kn_err_wrap(err, rc, "column '%.100s'", field->name);
    }
    if (extra && *extra) {
        if (schema->root.n_fields > 0)
            kn_buf_char(out, ',');
        kn_buf_text(out, extra);
    }
    kn_buf_char(out, '}');
    return kn_buf_check(out, err);
}
