/* SPDX-License-Identifier: Apache-2.0 */
/*
 * transform.c - partition transforms: their names, result types and values (spec: "Partition
 * Transforms", appendix B for the bucket hash).
 *
 * Every transform gives NULL for NULL. Time transforms round towards the past, also before 1970.
 * Nanosecond timestamps are hashed and split as the microseconds they fall in, so that a table can
 * change between the two. Truncation of integers wraps at the type's end as Java's does.
 */
#include <string.h>

#include "base/hash.h"
#include "iceberg/schema/partition.h"
#include "iceberg/schema/partition_internal.h"
#include "iceberg/schema/type_internal.h"
#include "iceberg/schema/value_internal.h"

static const KnType type_int = {.kind = KN_TYPE_INT};
static const KnType type_date = {.kind = KN_TYPE_DATE};

static const struct {
    const char *name;
    KnTransformKind kind;
} plain[] = {
    {"identity", KN_TRANSFORM_IDENTITY}, {"year", KN_TRANSFORM_YEAR}, {"month", KN_TRANSFORM_MONTH},
    {"day", KN_TRANSFORM_DAY},           {"hour", KN_TRANSFORM_HOUR}, {"void", KN_TRANSFORM_VOID},
};

static bool parse_param(KnStr text, KnStr name, int64_t *ret)
{
    if (!kn_str_starts_with(text, name) || text.len < name.len + 3 || text.ptr[name.len] != '[' ||
        text.ptr[text.len - 1] != ']')
        return false;
    return kn_str_to_i64((KnStr){text.ptr + name.len + 1, text.len - name.len - 2}, ret);
}

KnCode kn_transform_parse(KnArena *arena, KnStr text, KnTransform *ret, KnErr *err)
{
    KnTransform t = {.kind = KN_TRANSFORM_UNKNOWN};
    int64_t param = 1;

    if (text.len == 0)
        return kn_err_set(err, KN_E_CORRUPT, "a transform has no name");
    for (size_t i = 0; i < sizeof(plain) / sizeof(plain[0]); i++)
        if (kn_str_eq_nocase(text, kn_str(plain[i].name)))
            t.kind = plain[i].kind;
    if (parse_param(text, KN_STR_LIT("bucket"), &param))
        t.kind = KN_TRANSFORM_BUCKET;
    else if (parse_param(text, KN_STR_LIT("truncate"), &param))
        t.kind = KN_TRANSFORM_TRUNCATE;
    if (param < 1 || param > INT32_MAX)
        return kn_err_set(err, KN_E_CORRUPT,
                          "transform '" KN_STR_FMT "': the number must be 1 to 2147483647",
                          KN_STR_ARG(text));
    t.param = (int32_t)param;
    t.text = kn_arena_strndup(arena, text.ptr, text.len);
    *ret = t;
    return KN_OK;
}

/* ---- result types ---- */

static bool takes_bucket(KnTypeKind kind)
{
    switch (kind) {
    case KN_TYPE_INT:
    case KN_TYPE_LONG:
    case KN_TYPE_DECIMAL:
    case KN_TYPE_DATE:
    case KN_TYPE_TIME:
    case KN_TYPE_STRING:
    case KN_TYPE_UUID:
    case KN_TYPE_FIXED:
    case KN_TYPE_BINARY:
        return true;
    default:
        return kn_type_is_timestamp(kind);
    }
}

static bool takes_truncate(KnTypeKind kind)
{
    return kind == KN_TYPE_INT || kind == KN_TYPE_LONG || kind == KN_TYPE_DECIMAL ||
           kind == KN_TYPE_STRING || kind == KN_TYPE_BINARY;
}

bool kn_transform_takes(const KnTransform *t, const KnType *source)
{
    switch (t->kind) {
    case KN_TRANSFORM_IDENTITY:
        return !kn_type_is_nested(source) && source->kind < KN_TYPE_VARIANT;
    case KN_TRANSFORM_BUCKET:
        return takes_bucket(source->kind);
    case KN_TRANSFORM_TRUNCATE:
        return takes_truncate(source->kind);
    case KN_TRANSFORM_HOUR:
        return kn_type_is_timestamp(source->kind);
    case KN_TRANSFORM_YEAR:
    case KN_TRANSFORM_MONTH:
    case KN_TRANSFORM_DAY:
        return source->kind == KN_TYPE_DATE || kn_type_is_timestamp(source->kind);
    default:
        return true;
    }
}

const KnType *kn_transform_own_type(const KnTransform *t)
{
    switch (t->kind) {
    case KN_TRANSFORM_BUCKET:
    case KN_TRANSFORM_YEAR:
    case KN_TRANSFORM_MONTH:
    case KN_TRANSFORM_HOUR:
        return &type_int;
    case KN_TRANSFORM_DAY:
        return &type_date;
    default:
        return NULL;
    }
}

KnCode kn_transform_result_type(KnArena *arena, const KnTransform *t, const KnType *source,
                                const KnType **ret, KnErr *err)
{
    static const KnType type_string = {.kind = KN_TYPE_STRING};
    char text[KN_TYPE_TEXT_MAX];
    const KnType *own = kn_transform_own_type(t);

    (void)arena; /* all results are shared constants or the source itself */
    if (!kn_transform_takes(t, source))
        return kn_err_set(err, KN_E_INVAL, "Invalid source type %s for transform: %s",
                          kn_type_text(source, text), t->text);
    if (t->kind == KN_TRANSFORM_UNKNOWN)
        own = &type_string; /* what Java's UnknownTransform says */
    *ret = own ? own : source;
    return KN_OK;
}

/* ---- values ---- */

int64_t kn_timestamp_to_us(KnTypeKind kind, int64_t value)
{
    return kn_type_is_ns(kind) ? kn_floor_div(value, KN_NS_PER_US) : value;
}

static int32_t hash_long(int64_t value)
{
    uint8_t bytes[8];

    for (size_t i = 0; i < sizeof(bytes); i++)
        bytes[i] = (uint8_t)((uint64_t)value >> (8 * i));
    return kn_murmur3_32(bytes, sizeof(bytes));
}

int32_t kn_bucket_hash(const KnValue *value)
{
    uint8_t decimal[16];
    size_t len;

    switch (value->kind) {
    case KN_TYPE_DECIMAL:
        len = kn_decimal_to_bytes(value->dec, decimal);
        return kn_murmur3_32(decimal + sizeof(decimal) - len, len);
    case KN_TYPE_STRING:
    case KN_TYPE_UUID:
    case KN_TYPE_FIXED:
    case KN_TYPE_BINARY:
        return kn_murmur3_32(value->bytes.ptr, value->bytes.len);
    default:
        return hash_long(kn_timestamp_to_us(value->kind, value->i));
    }
}

int32_t kn_bucket_of(int32_t hash, int32_t count)
{
    return (hash & INT32_MAX) % count;
}

static KnStr truncate_text(KnStr text, int32_t width)
{
    size_t at = 0;

    for (int32_t n = 0; n < width && at < text.len; n++) {
        size_t len = kn_str_utf8_len((KnStr){text.ptr + at, text.len - at});
        at += len ? len : 1;
    }
    return (KnStr){text.ptr, at};
}

int64_t kn_truncate_long(int64_t value, int32_t width)
{
    return (int64_t)((uint64_t)value - (uint64_t)kn_floor_mod(value, width));
}

static KnCode apply_truncate(int32_t width, const KnType *source, KnValue *v, KnErr *err)
{
    __int128 rem;

    switch (source->kind) {
    case KN_TYPE_INT:
        v->i = (int32_t)(uint32_t)(uint64_t)kn_truncate_long(v->i, width);
        break;
    case KN_TYPE_LONG:
        v->i = kn_truncate_long(v->i, width);
        break;
    case KN_TYPE_DECIMAL:
        rem = v->dec % width;
        v->dec -= rem < 0 ? rem + width : rem;
        if (!kn_decimal_fits(v->dec, source->precision))
            return kn_err_set(err, KN_E_INVAL, "a truncated decimal does not fit %d digits",
                              source->precision);
        break;
    case KN_TYPE_STRING:
        v->bytes = truncate_text(v->bytes, width);
        break;
    default:
        if (v->bytes.len > (size_t)width)
            v->bytes.len = (size_t)width;
        break;
    }
    return KN_OK;
}

static int64_t days_of(KnTypeKind source, int64_t value)
{
    return source == KN_TYPE_DATE ? value
                                  : kn_floor_div(kn_timestamp_to_us(source, value), KN_US_PER_DAY);
}

int64_t kn_time_transform(KnTransformKind kind, KnTypeKind source, int64_t value)
{
    KnDate date;

    if (kind == KN_TRANSFORM_HOUR)
        return kn_floor_div(kn_timestamp_to_us(source, value), KN_US_PER_HOUR);
    if (kind == KN_TRANSFORM_DAY)
        return days_of(source, value);
    date = kn_date_from_days(days_of(source, value));
    if (kind == KN_TRANSFORM_YEAR)
        return date.year - 1970;
    return (date.year - 1970) * 12 + date.month - 1;
}

KnCode kn_transform_apply(KnArena *arena, const KnTransform *t, const KnType *source,
                          const KnValue *value, KnValue *ret, KnErr *err)
{
    const KnType *type;
    KnValue out = *value;

    if (t->kind == KN_TRANSFORM_UNKNOWN)
        return kn_err_set(err, KN_E_UNSUPPORTED, "transform '%s' is not known", t->text);
    KN_TRY(kn_transform_result_type(arena, t, source, &type, err));
    out.kind = type->kind;
    if (value->null || t->kind == KN_TRANSFORM_VOID) {
        *ret = (KnValue){.null = true, .kind = type->kind};
        return KN_OK;
    }
    switch (t->kind) {
    case KN_TRANSFORM_BUCKET:
        out = (KnValue){.kind = KN_TYPE_INT, .i = kn_bucket_of(kn_bucket_hash(value), t->param)};
        break;
    case KN_TRANSFORM_TRUNCATE:
        KN_TRY(apply_truncate(t->param, source, &out, err));
        break;
    case KN_TRANSFORM_YEAR:
    case KN_TRANSFORM_MONTH:
    case KN_TRANSFORM_DAY:
    case KN_TRANSFORM_HOUR:
        out =
            (KnValue){.kind = type->kind, .i = kn_time_transform(t->kind, source->kind, value->i)};
        break;
    default:
        break;
    }
    *ret = out;
    return KN_OK;
}
