/* SPDX-License-Identifier: Apache-2.0 */
/*
 * parting.c - the folders that a target's rows are parted into, Hive's way.
 *
 * A column is parted by its value and stands in the folder's name only. A transform is a column
 * that is made for the purpose: it is called as Iceberg's partition fields are (ts_day, id_bucket),
 * computed by Iceberg's rules and spelled as Iceberg spells it (ts_hour=2024-01-31-07); what it was
 * made of stays in the files, so that readers leave it out again. NULL is Hive's
 * __HIVE_DEFAULT_PARTITION__, which the engine writes and reads.
 */
#include <stdio.h>
#include <string.h>

#include "iceberg/schema/partition.h"
#include "pipeline/check/partition.h"
#include "pipeline/native/native.h"

static const struct {
    KnTransformKind transform;
    const char *suffix;
} kinds[] = {
    [KN_PARTITION_IDENTITY] = {KN_TRANSFORM_IDENTITY, ""},
    [KN_PARTITION_YEARS] = {KN_TRANSFORM_YEAR, "_year"},
    [KN_PARTITION_MONTHS] = {KN_TRANSFORM_MONTH, "_month"},
    [KN_PARTITION_DAYS] = {KN_TRANSFORM_DAY, "_day"},
    [KN_PARTITION_HOURS] = {KN_TRANSFORM_HOUR, "_hour"},
    [KN_PARTITION_BUCKET] = {KN_TRANSFORM_BUCKET, "_bucket"},
    [KN_PARTITION_TRUNCATE] = {KN_TRANSFORM_TRUNCATE, "_trunc"},
};

/* What the document's check let through; its text where nothing checked it. */
static KnPartition parse(const char *text)
{
    KnPartition part = {.column = kn_str(text)};
    return kn_partition_parse(kn_str(text), &part, NULL) == KN_OK
               ? part
               : (KnPartition){.column = kn_str(text)};
}

bool kn_native_part_is_made(const char *text)
{
    return parse(text).kind != KN_PARTITION_IDENTITY;
}

const char *kn_native_part_name(KnArena *arena, const char *text)
{
    KnPartition part = parse(text);
    return kn_arena_printf(arena, KN_STR_FMT "%s", KN_STR_ARG(part.column),
                           kinds[part.kind].suffix);
}

/* The engine's type of a column as Iceberg's rules see it, and what the column is cast to for them;
 * false = a type that has no transforms. */
static bool iceberg_type(const char *engine, KnType *ret, const char **ret_cast)
{
    static const struct {
        const char *engine;
        KnTypeKind kind;
        const char *cast; /* NULL = as it is */
    } types[] = {
        {"TINYINT", KN_TYPE_INT, "INTEGER"},
        {"SMALLINT", KN_TYPE_INT, "INTEGER"},
        {"INTEGER", KN_TYPE_INT, NULL},
        {"UTINYINT", KN_TYPE_INT, "INTEGER"},
        {"USMALLINT", KN_TYPE_INT, "INTEGER"},
        {"UINTEGER", KN_TYPE_LONG, "BIGINT"},
        {"BIGINT", KN_TYPE_LONG, NULL},
        {"DATE", KN_TYPE_DATE, NULL},
        {"TIME", KN_TYPE_TIME, NULL},
        {"TIMESTAMP_S", KN_TYPE_TIMESTAMP, "TIMESTAMP"},
        {"TIMESTAMP_MS", KN_TYPE_TIMESTAMP, "TIMESTAMP"},
        {"TIMESTAMP", KN_TYPE_TIMESTAMP, NULL},
        {"TIMESTAMP_NS", KN_TYPE_TIMESTAMP_NS, NULL},
        {"TIMESTAMP WITH TIME ZONE", KN_TYPE_TIMESTAMPTZ, NULL},
        {"VARCHAR", KN_TYPE_STRING, NULL},
        {"UUID", KN_TYPE_UUID, NULL},
        {"BLOB", KN_TYPE_BINARY, NULL},
    };
    unsigned precision = 0, scale = 0;
    if (sscanf(engine, "DECIMAL(%2u,%2u)", &precision, &scale) == 2) {
        *ret = (KnType){
            .kind = KN_TYPE_DECIMAL, .precision = (int32_t)precision, .scale = (int32_t)scale};
        *ret_cast = NULL;
        return true;
    }
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
        if (!strcmp(types[i].engine, engine)) {
            *ret = (KnType){.kind = types[i].kind};
            *ret_cast = types[i].cast;
            return true;
        }
    return false;
}

/* The transform's number as folders spell it; a day is a DATE already, others are as they are. */
static void spelled(KnBuf *sql, KnPartitionKind kind, const char *value)
{
    switch (kind) {
    case KN_PARTITION_YEARS:
        kn_buf_printf(sql, "printf('%%04d', 1970 + %s)", value);
        break;
    case KN_PARTITION_MONTHS:
        kn_buf_printf(sql,
                      "printf('%%04d-%%02d', 1970 + CAST(floor(%s / 12) AS INTEGER), "
                      "%s - 12 * CAST(floor(%s / 12) AS INTEGER) + 1)",
                      value, value, value);
        break;
    case KN_PARTITION_HOURS:
        kn_buf_printf(sql,
                      "CAST(DATE '1970-01-01' + CAST(floor(%s / 24) AS INTEGER) AS VARCHAR) || "
                      "printf('-%%02d', %s - 24 * CAST(floor(%s / 24) AS INTEGER))",
                      value, value, value);
        break;
    default:
        kn_buf_text(sql, value);
    }
}

static KnCode made_column(KnNativeRun *run, const char *text, const KnNativeColumn *column,
                          KnBuf *sql, KnErr *err)
{
    KnPartition part = parse(text);
    KnTransform transform = {
        .kind = kinds[part.kind].transform, .param = (int32_t)part.n, .text = text};
    KnType type = {0};
    const char *cast = NULL;
    KN_BUF_AUTO expr = {.max = 1 << 16};
    KN_BUF_AUTO value = {.max = 1 << 20};
    if (!iceberg_type(column->type, &type, &cast))
        return kn_err_set(err, KN_E_INVAL, "partition `%s`: not of a column of type %s", text,
                          column->type);
    kn_buf_text(&expr, cast ? "CAST(" : "");
    kn_sql_ident(&expr, kn_str(column->name));
    if (cast)
        kn_buf_printf(&expr, " AS %s)", cast);
    KN_TRY(kn_buf_check(&expr, err));
    KN_TRY(kn_err_wrap(
        err, kn_transform_sql(&value, &transform, &type, (KnStr){expr.data, expr.len}, err),
        "partition `%s`", text));
    kn_buf_text(sql, ", ");
    spelled(sql, part.kind, value.data);
    kn_buf_text(sql, " AS ");
    kn_sql_ident(sql, kn_str(kn_native_part_name(run->arena, text)));
    return kn_buf_check(sql, err);
}

static const KnNativeColumn *column_of(const KnNativeShape *shape, KnStr name)
{
    for (size_t i = 0; i < shape->len; i++)
        if (kn_str_eq_nocase(kn_str(shape->items[i].name), name))
            return &shape->items[i];
    return NULL;
}

/* One entry of partition_cols: its column is there, and a name that is made for it is free. */
static KnCode add_part(KnNativeRun *run, const KnNativeNode *node, const KnNativeShape *shape,
                       size_t at, KnBuf *sql, KnErr *err)
{
    const KnutNames *cols = &node->dataset->partition_cols;
    const char *text = cols->items[at], *name = kn_native_part_name(run->arena, text);
    KnStr source = parse(text).column;
    const KnNativeColumn *column = column_of(shape, source);
    if (!column)
        return kn_err_set(err, KN_E_INVAL,
                          "partitioned sink `%s`: partition column `" KN_STR_FMT
                          "` not in output schema",
                          node->dataset->name, KN_STR_ARG(source));
    for (size_t i = 0; i < at; i++)
        if (kn_str_eq_nocase(kn_str(kn_native_part_name(run->arena, cols->items[i])), kn_str(name)))
            return kn_err_set(err, KN_E_INVAL,
                              "partitioned sink `%s`: `%s` and `%s` would both be folders %s=",
                              node->dataset->name, cols->items[i], text, name);
    if (!kn_native_part_is_made(text))
        return KN_OK;
    if (column_of(shape, kn_str(name)))
        return kn_err_set(err, KN_E_INVAL,
                          "partitioned sink `%s`: `%s` makes folders %s=, and the rows have a "
                          "column of that name: call it something else",
                          node->dataset->name, text, name);
    return made_column(run, text, column, sql, err);
}

KnCode kn_native_parted(KnNativeRun *run, const KnNativeNode *node, const char *select,
                        const char **ret, KnErr *err)
{
    size_t n = node->dataset->partition_cols.len;
    KnNativeShape shape = {0};
    KN_BUF_AUTO sql = {.max = 64 << 20};
    *ret = select;
    if (!n)
        return KN_OK;
    KN_TRY(kn_transform_register(run->engine, err));
    KN_TRY(kn_native_describe(run, select, &shape, err));
    kn_buf_text(&sql, "SELECT *");
    for (size_t i = 0; i < n; i++)
        KN_TRY(add_part(run, node, &shape, i, &sql, err));
    kn_buf_printf(&sql, " FROM (%s)", select);
    KN_TRY(kn_buf_check(&sql, err));
    *ret = kn_arena_strndup(run->arena, sql.data, sql.len);
    return KN_OK;
}
