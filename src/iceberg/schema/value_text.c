/* SPDX-License-Identifier: Apache-2.0 */
/*
 * value_text.c - values as text for people, and as JSON (spec appendix D: "JSON single-value
 * serialization").
 *
 * Both directions share their parsers: JSON demands the JSON type that the specification names,
 * text takes what a person or the engine writes for the type. Bytes made here live in the arena.
 */
#include <math.h>
#include <string.h>

#include "iceberg/schema/type_internal.h"
#include "iceberg/schema/value.h"
#include "iceberg/schema/value_internal.h"

static KnCode bad_text(const KnType *type, KnStr text, KnErr *err)
{
    char name[KN_TYPE_TEXT_MAX];

    return kn_err_set(err, KN_E_INVAL, "'" KN_STR_FMT "' is not a value of type %s",
                      KN_STR_ARG(text), kn_type_text(type, name));
}

static bool parse_bool(KnStr text, bool *ret)
{
    *ret = kn_str_eq_nocase(text, KN_STR_LIT("true"));
    return *ret || kn_str_eq_nocase(text, KN_STR_LIT("false"));
}

static bool parse_special(KnStr text, double *ret)
{
    bool negative = text.len > 0 && text.ptr[0] == '-';

    if (text.len > 0 && (negative || text.ptr[0] == '+')) {
        text.ptr++;
        text.len--;
    }
    if (kn_str_eq_nocase(text, KN_STR_LIT("nan")))
        *ret = (double)NAN;
    else if (kn_str_eq_nocase(text, KN_STR_LIT("inf")) ||
             kn_str_eq_nocase(text, KN_STR_LIT("infinity")))
        *ret = negative ? -(double)INFINITY : (double)INFINITY;
    else
        return false;
    return true;
}

static bool parse_double(const KnType *type, KnStr text, double *ret)
{
    double value;

    if (parse_special(text, ret))
        return true;
    if (!kn_str_to_double(text, &value))
        return false;
    if (type->kind == KN_TYPE_FLOAT) {
        value = (double)(float)value;
        if (isinf(value))
            return false;
    }
    *ret = value;
    return true;
}

static bool parse_integer(const KnType *type, KnStr text, int64_t *ret)
{
    switch (type->kind) {
    case KN_TYPE_INT:
        return kn_str_to_i64(text, ret) && *ret >= INT32_MIN && *ret <= INT32_MAX;
    case KN_TYPE_LONG:
        return kn_str_to_i64(text, ret);
    case KN_TYPE_DATE:
        return kn_date_parse(text, ret);
    case KN_TYPE_TIME:
        return kn_time_parse(text, ret);
    default:
        return kn_type_is_timestamp(type->kind) && kn_timestamp_parse(type->kind, text, ret);
    }
}

static bool parse_uuid(KnArena *arena, KnStr text, KnStr *ret)
{
    uint8_t bytes[16];

    if (!kn_uuid_parse(text, bytes))
        return false;
    *ret = (KnStr){kn_arena_strndup(arena, (const char *)bytes, sizeof(bytes)), sizeof(bytes)};
    return true;
}

static bool parse_hex(KnArena *arena, const KnType *type, KnStr text, KnStr *ret)
{
    uint8_t *bytes = kn_arena_zalloc(arena, text.len / 2 + 1);

    if (!kn_hex_parse(text, bytes))
        return false;
    if (type->kind == KN_TYPE_FIXED && text.len / 2 != (size_t)type->length)
        return false;
    *ret = (KnStr){(const char *)bytes, text.len / 2};
    return true;
}

KnCode kn_value_parse(KnArena *arena, const KnType *type, KnStr text, KnValue *ret, KnErr *err)
{
    KnValue value = {.kind = type->kind};
    bool ok;

    switch (type->kind) {
    case KN_TYPE_BOOLEAN:
        ok = parse_bool(text, &value.b);
        break;
    case KN_TYPE_FLOAT:
    case KN_TYPE_DOUBLE:
        ok = parse_double(type, text, &value.d);
        break;
    case KN_TYPE_DECIMAL:
        value.scale = type->scale;
        ok = kn_decimal_parse(text, type->precision, type->scale, &value.dec);
        break;
    case KN_TYPE_STRING:
        ok = kn_str_is_utf8(text);
        value.bytes = (KnStr){kn_arena_strndup(arena, text.ptr, text.len), text.len};
        break;
    case KN_TYPE_UUID:
        ok = parse_uuid(arena, text, &value.bytes);
        break;
    case KN_TYPE_FIXED:
    case KN_TYPE_BINARY:
        if (kn_str_starts_with(text, KN_STR_LIT("0x")))
            text = (KnStr){text.ptr + 2, text.len - 2};
        ok = parse_hex(arena, type, text, &value.bytes);
        break;
    default:
        ok = parse_integer(type, text, &value.i);
        break;
    }
    if (!ok)
        return bad_text(type, text, err);
    *ret = value;
    return KN_OK;
}

/* ---- to text ---- */

void kn_value_format(KnBuf *buf, const KnType *type, const KnValue *value)
{
    if (value->null) {
        kn_buf_text(buf, "null");
        return;
    }
    switch (type->kind) {
    case KN_TYPE_BOOLEAN:
        kn_buf_text(buf, value->b ? "true" : "false");
        break;
    case KN_TYPE_FLOAT:
    case KN_TYPE_DOUBLE:
        kn_double_format(buf, value->d, type->kind == KN_TYPE_FLOAT);
        break;
    case KN_TYPE_DECIMAL:
        kn_decimal_format(buf, value->dec, type->scale);
        break;
    case KN_TYPE_DATE:
        kn_date_format(buf, value->i);
        break;
    case KN_TYPE_TIME:
        kn_time_format(buf, value->i, (KnTimeFormat){6, true});
        break;
    case KN_TYPE_STRING:
        kn_buf_str(buf, value->bytes);
        break;
    case KN_TYPE_UUID:
        kn_uuid_format(buf, value->bytes);
        break;
    case KN_TYPE_FIXED:
    case KN_TYPE_BINARY:
        kn_buf_text(buf, "0x");
        kn_hex_format(buf, value->bytes, false);
        break;
    default:
        if (kn_type_is_timestamp(type->kind))
            kn_timestamp_format(buf, type->kind, value->i, 'T', true);
        else
            kn_buf_printf(buf, "%lld", (long long)value->i);
        break;
    }
}

/* ---- JSON ---- */

static KnCode bad_json(const KnType *type, const json_t *json, KnErr *err)
{
    KN_BUF_AUTO text = {0};
    char name[KN_TYPE_TEXT_MAX];

    kn_buf_init(&text, (size_t)1 << 20);
    kn_json_dump(&text, json);
    return kn_err_set(err, KN_E_CORRUPT, "%.100s is not a JSON value of type %s",
                      text.data ? text.data : "?", kn_type_text(type, name));
}

/* Numbers and booleans have JSON types of their own; all else is text. */
static KnCode number_from_json(const KnType *type, const json_t *json, KnValue *ret, KnErr *err)
{
    KnValue value = {.kind = type->kind};
    bool ok;

    switch (type->kind) {
    case KN_TYPE_BOOLEAN:
        ok = json_is_boolean(json);
        value.b = json_is_true(json);
        break;
    case KN_TYPE_FLOAT:
    case KN_TYPE_DOUBLE:
        ok = json_is_number(json);
        value.d = json_number_value(json);
        if (type->kind == KN_TYPE_FLOAT)
            value.d = (double)(float)value.d;
        break;
    default:
        ok = json_is_integer(json);
        value.i = json_integer_value(json);
        if (type->kind == KN_TYPE_INT)
            ok = ok && value.i >= INT32_MIN && value.i <= INT32_MAX;
        break;
    }
    if (!ok)
        return bad_json(type, json, err);
    *ret = value;
    return KN_OK;
}

static bool is_json_number(const KnType *type, const json_t *json)
{
    switch (type->kind) {
    case KN_TYPE_BOOLEAN:
    case KN_TYPE_INT:
    case KN_TYPE_LONG:
        return true;
    case KN_TYPE_FLOAT:
    case KN_TYPE_DOUBLE:
        return !json_is_string(json); /* "NaN", "Infinity": what Java writes for them */
    default:
        return false;
    }
}

KnCode kn_value_from_json(KnArena *arena, const KnType *type, const json_t *json, KnValue *ret,
                          KnErr *err)
{
    KnValue value;

    if (!json || json_is_null(json)) {
        *ret = (KnValue){.null = true, .kind = type->kind};
        return KN_OK;
    }
    if (kn_type_is_nested(type) || type->kind >= KN_TYPE_UNKNOWN)
        return bad_json(type, json, err);
    if (is_json_number(type, json))
        return number_from_json(type, json, ret, err);
    if (!json_is_string(json))
        return bad_json(type, json, err);
    KnStr text = {json_string_value(json), json_string_length(json)};
    bool ok = type->kind != KN_TYPE_FLOAT && type->kind != KN_TYPE_DOUBLE;
    if (!ok)
        ok = parse_special(text, &value.d);
    if (!ok || kn_value_parse(arena, type, text, &value, NULL) != KN_OK)
        return bad_json(type, json, err);
    *ret = value;
    return KN_OK;
}

static json_t *text_to_json(const KnType *type, const KnValue *value)
{
    KN_BUF_AUTO buf = {0};

    kn_buf_init(&buf, SIZE_MAX / 4);
    switch (type->kind) {
    case KN_TYPE_FIXED:
    case KN_TYPE_BINARY:
        kn_hex_format(&buf, value->bytes, true);
        break;
    case KN_TYPE_TIME:
        kn_time_format(&buf, value->i, (KnTimeFormat){6, false});
        break;
    default:
        if (kn_type_is_timestamp(type->kind))
            kn_timestamp_format(&buf, type->kind, value->i, 'T', false);
        else
            kn_value_format(&buf, type, value);
        break;
    }
    return json_stringn(buf.data ? buf.data : "", buf.len);
}

json_t *kn_value_to_json(const KnType *type, const KnValue *value)
{
    if (value->null)
        return json_null();
    switch (type->kind) {
    case KN_TYPE_BOOLEAN:
        return json_boolean(value->b);
    case KN_TYPE_INT:
    case KN_TYPE_LONG:
        return json_integer(value->i);
    case KN_TYPE_FLOAT:
    case KN_TYPE_DOUBLE:
        if (isfinite(value->d))
            return json_real(value->d);
        return text_to_json(type, value);
    default:
        return text_to_json(type, value);
    }
}
