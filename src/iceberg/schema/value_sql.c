/* SPDX-License-Identifier: Apache-2.0 */
/*
 * value_sql.c - values as literals of the engine, so exact that they find themselves.
 *
 * Text with a cast where the engine reads the text back unchanged. Where it does not (years beyond
 * four digits, NUL bytes), the number or the bytes themselves are given to a function that makes
 * the value (make_timestamptz, not a cast of a timestamp: that goes through floats of
 * milliseconds). The engine uses the ends of the int32 days and int64 microseconds for its
 * infinities, and has no literal at all for the first moments of its range.
 */
#include <ctype.h>
#include <math.h>
#include <string.h>

#include "engine/engine.h"
#include "iceberg/schema/type_internal.h"
#include "iceberg/schema/value.h"
#include "iceberg/schema/value_internal.h"

/* 0001-01-01 .. 9999-12-31: the engine's text form is ours. */
#define DAYS_PLAIN_MIN INT64_C(-719162)
#define DAYS_PLAIN_MAX INT64_C(2932896)
/* What the engine makes timestamps of begins at a midnight: 290309-12-22 (BC), 1677-09-22. */
#define US_MIN INT64_C(-9223372022400000000)
#define NS_MIN INT64_C(-9223286400000000000)

static KnCode date_sql(KnBuf *buf, int64_t days, KnErr *err)
{
    if (days >= DAYS_PLAIN_MIN && days <= DAYS_PLAIN_MAX) {
        kn_buf_text(buf, "CAST('");
        kn_date_format(buf, days);
        kn_buf_text(buf, "' AS DATE)");
    } else if (days == INT32_MAX || days == -INT32_MAX) {
        kn_buf_printf(buf, "CAST('%sinfinity' AS DATE)", days < 0 ? "-" : "");
    } else if (days < -INT32_MAX || days > INT32_MAX) {
        return kn_err_set(err, KN_E_UNSUPPORTED, "date %lld is out of the engine's range",
                          (long long)days);
    } else {
        kn_buf_printf(buf, "(CAST('1970-01-01' AS DATE) + CAST(%lld AS INTEGER))", (long long)days);
    }
    return KN_OK;
}

static KnCode timestamp_sql(KnBuf *buf, const KnType *type, int64_t value, KnErr *err)
{
    bool ns = kn_type_is_ns(type->kind);
    int64_t days = kn_floor_div(value, KN_US_PER_DAY * (ns ? KN_NS_PER_US : 1));
    const char *sign = value < 0 ? "-" : "";

    if (value < (ns ? NS_MIN : US_MIN) && value != -INT64_MAX)
        return kn_err_set(err, KN_E_UNSUPPORTED, "timestamp %lld is out of the engine's range",
                          (long long)value);
    kn_buf_text(buf, "CAST(");
    if (value == INT64_MAX || value == -INT64_MAX) {
        kn_buf_printf(buf, "'%sinfinity'", sign);
    } else if (days < DAYS_PLAIN_MIN || days > DAYS_PLAIN_MAX) {
        kn_buf_printf(buf, "make_timestamp%s(CAST('%lld' AS BIGINT))",
                      ns                          ? "_ns"
                      : kn_type_is_tz(type->kind) ? "tz"
                                                  : "",
                      (long long)value);
    } else {
        KnTypeKind kind = type->kind == KN_TYPE_TIMESTAMPTZ_NS ? KN_TYPE_TIMESTAMP_NS : type->kind;
        kn_buf_char(buf, '\'');
        kn_timestamp_format(buf, kind, value, ' ', true);
        kn_buf_char(buf, '\'');
    }
    kn_buf_text(buf, " AS ");
    KN_TRY(kn_type_sql(buf, type, err));
    kn_buf_char(buf, ')');
    return KN_OK;
}

/* SQL text ends at a NUL, so text that holds one goes as bytes. */
static KnCode string_sql(KnBuf *buf, KnStr text, KnErr *err)
{
    if (!kn_str_is_utf8(text))
        return kn_err_set(err, KN_E_CORRUPT, "a string value is not valid UTF-8");
    if (text.len > 0 && memchr(text.ptr, 0, text.len)) {
        kn_buf_text(buf, "decode(");
        kn_sql_blob(buf, text);
        kn_buf_char(buf, ')');
    } else {
        kn_sql_text(buf, text);
    }
    return KN_OK;
}

static void double_text(KnBuf *buf, double value, bool single)
{
    if (isnan(value) || isinf(value))
        kn_buf_text(buf, isnan(value) ? "nan" : value < 0 ? "-inf" : "inf");
    else
        kn_double_format(buf, value, single);
}

static KnCode cast_sql(KnBuf *buf, const KnType *type, const KnValue *value, KnErr *err)
{
    kn_buf_text(buf, "CAST('");
    switch (type->kind) {
    case KN_TYPE_FLOAT:
    case KN_TYPE_DOUBLE:
        double_text(buf, value->d, type->kind == KN_TYPE_FLOAT);
        break;
    default:
        kn_value_format(buf, type, value);
        break;
    }
    kn_buf_text(buf, "' AS ");
    KN_TRY(kn_type_sql(buf, type, err));
    kn_buf_char(buf, ')');
    return KN_OK;
}

KnCode kn_value_sql(KnBuf *buf, const KnType *type, const KnValue *value, KnErr *err)
{
    if (value->null) {
        kn_buf_text(buf, "CAST(NULL AS ");
        KN_TRY(kn_type_sql(buf, type, err));
        kn_buf_char(buf, ')');
        return KN_OK;
    }
    switch (type->kind) {
    case KN_TYPE_BOOLEAN:
        kn_buf_text(buf, value->b ? "true" : "false");
        return KN_OK;
    case KN_TYPE_DATE:
        return date_sql(buf, value->i, err);
    case KN_TYPE_TIMESTAMP:
    case KN_TYPE_TIMESTAMPTZ:
    case KN_TYPE_TIMESTAMP_NS:
    case KN_TYPE_TIMESTAMPTZ_NS:
        return timestamp_sql(buf, type, value->i, err);
    case KN_TYPE_STRING:
        return string_sql(buf, value->bytes, err);
    case KN_TYPE_FIXED:
    case KN_TYPE_BINARY:
        kn_sql_blob(buf, value->bytes);
        return KN_OK;
    default:
        return cast_sql(buf, type, value, err);
    }
}
