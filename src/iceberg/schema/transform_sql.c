/* SPDX-License-Identifier: Apache-2.0 */
/*
 * transform_sql.c - transforms inside the engine: SQL that gives what kn_transform_apply() gives.
 *
 * Most transforms are scalar functions of ours, one for each engine type (kn_day_timestamp,
 * kn_bucket_text): the engine's own date functions depend on its time zone, cut nanoseconds towards
 * zero and give NULL for what it calls infinity. Truncated text and bytes are slices, which the
 * engine cuts by code point and by byte as Iceberg does. A decimal comes to the bucket function as
 * text, because a function's argument has one fixed precision.
 *
 * The functions run on the engine's threads and keep no state.
 */
#include <string.h>

#include "engine/engine.h"
#include "iceberg/schema/partition.h"
#include "iceberg/schema/partition_internal.h"
#include "iceberg/schema/type_internal.h"
#include "iceberg/schema/value_internal.h"

/* ---- the functions ---- */

typedef struct Function {
    KnScalarFn fn;
    KnTransformKind transform;
    KnTypeKind source;
} Function;

static int32_t param_of(const KnScalarCall *call, size_t row)
{
    return ((const int32_t *)call->args[1].data)[row];
}

static int64_t long_of(const KnVector *vec, size_t row)
{
    if (vec->type->kind == KN_COL_INT32 || vec->type->kind == KN_COL_DATE)
        return ((const int32_t *)vec->data)[row];
    return ((const int64_t *)vec->data)[row];
}

static KnCode check_param(int32_t param, KnErr *err)
{
    if (param > 0)
        return KN_OK;
    return kn_err_set(err, KN_E_INVAL, "a transform's number must be 1 or more, not %d", param);
}

/* All digits of a decimal's text, whatever its scale. */
static KnCode unscaled_of(KnStr text, __int128 *ret, KnErr *err)
{
    char digits[64];
    size_t n = 0;

    for (size_t i = 0; i < text.len && n < sizeof(digits); i++)
        if (text.ptr[i] != '.')
            digits[n++] = text.ptr[i];
    if (!kn_decimal_parse((KnStr){digits, n}, 38, 0, ret))
        return kn_err_set(err, KN_E_INVAL, "'" KN_STR_FMT "' is not a decimal", KN_STR_ARG(text));
    return KN_OK;
}

static KnCode value_at(const KnScalarCall *call, KnTypeKind source, size_t row, uint8_t uuid[16],
                       KnValue *ret, KnErr *err)
{
    const KnVector *vec = &call->args[0];

    *ret = (KnValue){.kind = source};
    switch (source) {
    case KN_TYPE_DECIMAL:
        return unscaled_of(kn_vector_str(vec, row), &ret->dec, err);
    case KN_TYPE_STRING:
    case KN_TYPE_BINARY:
        ret->bytes = kn_vector_str(vec, row);
        return KN_OK;
    case KN_TYPE_UUID:
        kn_vector_uuid(vec, row, uuid);
        ret->bytes = (KnStr){(const char *)uuid, 16};
        return KN_OK;
    default:
        ret->i = long_of(vec, row);
        return KN_OK;
    }
}

static KnCode call_bucket(const KnScalarCall *call, KnErr *err)
{
    const Function *function = call->arg;
    int32_t *out = call->out_data;
    uint8_t uuid[16];
    KnValue value;

    for (size_t row = 0; row < call->rows; row++) {
        KN_TRY(check_param(param_of(call, row), err));
        KN_TRY(value_at(call, function->source, row, uuid, &value, err));
        out[row] = kn_bucket_of(kn_bucket_hash(&value), param_of(call, row));
    }
    return KN_OK;
}

static KnCode call_truncate(const KnScalarCall *call, KnErr *err)
{
    const Function *function = call->arg;

    for (size_t row = 0; row < call->rows; row++) {
        KN_TRY(check_param(param_of(call, row), err));
        int64_t value = kn_truncate_long(long_of(&call->args[0], row), param_of(call, row));
        if (function->source == KN_TYPE_INT)
            ((int32_t *)call->out_data)[row] = (int32_t)(uint32_t)(uint64_t)value;
        else
            ((int64_t *)call->out_data)[row] = value;
    }
    return KN_OK;
}

static KnCode call_time(const KnScalarCall *call, KnErr *err)
{
    const Function *function = call->arg;
    int32_t *out = call->out_data;

    (void)err;
    for (size_t row = 0; row < call->rows; row++)
        out[row] = (int32_t)kn_time_transform(function->transform, function->source,
                                              long_of(&call->args[0], row));
    return KN_OK;
}

static const char *const arg_int[] = {"INTEGER", "INTEGER"};
static const char *const arg_long[] = {"BIGINT", "INTEGER"};
static const char *const arg_text[] = {"VARCHAR", "INTEGER"};
static const char *const arg_date[] = {"DATE", "INTEGER"};
static const char *const arg_time[] = {"TIME", "INTEGER"};
static const char *const arg_ts[] = {"TIMESTAMP", "INTEGER"};
static const char *const arg_tz[] = {"TIMESTAMP WITH TIME ZONE", "INTEGER"};
static const char *const arg_ns[] = {"TIMESTAMP_NS", "INTEGER"};
static const char *const arg_uuid[] = {"UUID", "INTEGER"};
static const char *const arg_blob[] = {"BLOB", "INTEGER"};

#define FUNCTION(fn_name, args, count, result, called)                                             \
    {                                                                                              \
        .name = (fn_name), .arg_types = (args), .n_args = (count), .return_type = (result),        \
        .fn = (called)                                                                             \
    }
#define BUCKET(suffix, args, source)                                                               \
    {                                                                                              \
        FUNCTION("kn_bucket_" suffix, args, 2, "INTEGER", call_bucket), KN_TRANSFORM_BUCKET,       \
            source                                                                                 \
    }
#define TRUNCATE(suffix, args, result, source)                                                     \
    {                                                                                              \
        FUNCTION("kn_truncate_" suffix, args, 2, result, call_truncate), KN_TRANSFORM_TRUNCATE,    \
            source                                                                                 \
    }
#define TIME(name, suffix, args, result, transform, source)                                        \
    {                                                                                              \
        FUNCTION("kn_" name "_" suffix, args, 1, result, call_time), transform, source             \
    }
#define TIMES(suffix, args, source)                                                                \
    TIME("year", suffix, args, "INTEGER", KN_TRANSFORM_YEAR, source),                              \
        TIME("month", suffix, args, "INTEGER", KN_TRANSFORM_MONTH, source),                        \
        TIME("day", suffix, args, "DATE", KN_TRANSFORM_DAY, source),                               \
        TIME("hour", suffix, args, "INTEGER", KN_TRANSFORM_HOUR, source)

static const Function functions[] = {
    BUCKET("int", arg_int, KN_TYPE_INT),
    BUCKET("long", arg_long, KN_TYPE_LONG),
    BUCKET("decimal", arg_text, KN_TYPE_DECIMAL),
    BUCKET("date", arg_date, KN_TYPE_DATE),
    BUCKET("time", arg_time, KN_TYPE_TIME),
    BUCKET("timestamp", arg_ts, KN_TYPE_TIMESTAMP),
    BUCKET("timestamptz", arg_tz, KN_TYPE_TIMESTAMPTZ),
    BUCKET("timestamp_ns", arg_ns, KN_TYPE_TIMESTAMP_NS),
    BUCKET("text", arg_text, KN_TYPE_STRING),
    BUCKET("uuid", arg_uuid, KN_TYPE_UUID),
    BUCKET("blob", arg_blob, KN_TYPE_BINARY),
    TRUNCATE("int", arg_int, "INTEGER", KN_TYPE_INT),
    TRUNCATE("long", arg_long, "BIGINT", KN_TYPE_LONG),
    TIME("year", "date", arg_date, "INTEGER", KN_TRANSFORM_YEAR, KN_TYPE_DATE),
    TIME("month", "date", arg_date, "INTEGER", KN_TRANSFORM_MONTH, KN_TYPE_DATE),
    TIMES("timestamp", arg_ts, KN_TYPE_TIMESTAMP),
    TIMES("timestamptz", arg_tz, KN_TYPE_TIMESTAMPTZ),
    TIMES("timestamp_ns", arg_ns, KN_TYPE_TIMESTAMP_NS),
};

KnCode kn_transform_register(KnEngine *eng, KnErr *err)
{
    for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
        KnScalarFn fn = functions[i].fn;
        fn.arg = (void *)&functions[i];
        KN_TRY(kn_engine_add_scalar(eng, &fn, err));
    }
    return KN_OK;
}

/* ---- the SQL ---- */

/* The source type whose function takes the engine's values of kind. */
static KnTypeKind function_source(KnTypeKind kind)
{
    if (kind == KN_TYPE_FIXED)
        return KN_TYPE_BINARY;
    return kind == KN_TYPE_TIMESTAMPTZ_NS ? KN_TYPE_TIMESTAMP_NS : kind;
}

static const Function *find_function(KnTransformKind transform, KnTypeKind kind)
{
    for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++)
        if (functions[i].transform == transform && functions[i].source == function_source(kind))
            return &functions[i];
    return NULL;
}

static void function_sql(KnBuf *buf, const Function *function, const KnTransform *t, KnStr expr)
{
    bool as_text = function->source == KN_TYPE_DECIMAL;

    kn_buf_printf(buf, "%s(%s", function->fn.name, as_text ? "CAST(" : "");
    kn_buf_str(buf, expr);
    kn_buf_text(buf, as_text ? " AS VARCHAR)" : "");
    if (function->fn.n_args == 2)
        kn_buf_printf(buf, ", %d", t->param);
    kn_buf_char(buf, ')');
}

/* x - (((x % w) + w) % w) with w in units of the last digit, in the widest decimal. What lies
 * below the least value of the type has no partition (Java's writer refuses it too). */
static void truncate_decimal_sql(KnBuf *buf, int32_t width, const KnType *source, KnStr expr)
{
    KN_BUF_AUTO x = {0};
    KN_BUF_AUTO w = {0};

    kn_buf_init(&x, buf->max);
    kn_buf_init(&w, 256);
    kn_buf_text(&x, "CAST(");
    kn_buf_str(&x, expr);
    kn_buf_printf(&x, " AS DECIMAL(38,%d))", source->scale);
    kn_buf_printf(&w, "CAST('%de-%d' AS DECIMAL(38,%d))", width, source->scale, source->scale);
    kn_buf_text(buf, "CASE WHEN ");
    kn_buf_str(buf, expr);
    kn_buf_text(buf, " IS NULL THEN NULL ELSE coalesce(TRY(CAST(");
    kn_buf_str(buf, (KnStr){x.data, x.len});
    kn_buf_text(buf, " - ((");
    kn_buf_str(buf, (KnStr){x.data, x.len});
    kn_buf_printf(buf, " %% %s) + %s) %% %s AS DECIMAL(%d,%d))", w.data, w.data, w.data,
                  source->precision, source->scale);
    kn_buf_printf(buf, "), error('truncate(%d) of ' || ", width);
    kn_buf_str(buf, expr);
    kn_buf_printf(buf, " || ' is below what decimal(%d,%d) can hold: it has no partition')) END",
                  source->precision, source->scale);
    buf->failed |= x.failed;
}

static void truncate_sql(KnBuf *buf, int32_t width, const KnType *source, KnStr expr)
{
    switch (source->kind) {
    case KN_TYPE_DECIMAL:
        truncate_decimal_sql(buf, width, source, expr);
        break;
    case KN_TYPE_STRING:
        kn_buf_text(buf, "substring(");
        kn_buf_str(buf, expr);
        kn_buf_printf(buf, ", 1, %d)", width);
        break;
    default:
        kn_buf_char(buf, '(');
        kn_buf_str(buf, expr);
        kn_buf_printf(buf, ")[1:%d]", width);
        break;
    }
}

KnCode kn_transform_sql(KnBuf *buf, const KnTransform *t, const KnType *source, KnStr expr,
                        KnErr *err)
{
    const KnType *type;
    const Function *function;

    if (t->kind == KN_TRANSFORM_UNKNOWN)
        return kn_err_set(err, KN_E_UNSUPPORTED, "transform '%s' is not known", t->text);
    KN_TRY(kn_transform_result_type(NULL, t, source, &type, err));
    function = find_function(t->kind, source->kind);
    if (t->kind == KN_TRANSFORM_VOID) {
        kn_buf_text(buf, "CAST(NULL AS ");
        KN_TRY(kn_type_sql(buf, type, err));
        kn_buf_char(buf, ')');
    } else if (function) {
        function_sql(buf, function, t, expr);
    } else if (t->kind == KN_TRANSFORM_TRUNCATE) {
        truncate_sql(buf, t->param, source, expr);
    } else { /* identity, and the day of a date */
        kn_buf_str(buf, expr);
    }
    return kn_buf_check(buf, err);
}
