/* SPDX-License-Identifier: Apache-2.0 */
/* types.c - names: of formats, of files, of types. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/path.h"
#include "pipeline/ir/arrow_type.h"
#include "pipeline/native/native.h"
#include "storage/s3/s3.h"

typedef struct Suffix {
    const char *text;
    KnNativeFormat format;
} Suffix;

static const Suffix suffixes[] = {
    {".parquet", KN_NATIVE_PARQUET}, {".csv", KN_NATIVE_CSV},      {".csv.gz", KN_NATIVE_CSV},
    {".csv.zst", KN_NATIVE_CSV},     {".tsv", KN_NATIVE_CSV},      {".json", KN_NATIVE_JSON},
    {".jsonl", KN_NATIVE_JSON},      {".ndjson", KN_NATIVE_JSON},  {".json.gz", KN_NATIVE_JSON},
    {".jsonl.gz", KN_NATIVE_JSON},   {".json.zst", KN_NATIVE_JSON}};

static bool is_database(const char *path)
{
    return kn_str_starts_with(kn_str(path), KN_STR_LIT("postgresql://")) ||
           kn_str_starts_with(kn_str(path), KN_STR_LIT("postgres://"));
}

KnNativeFormat kn_native_format(const char *format, const char *path)
{
    if (format) {
        KnStr name = kn_str(format);
        if (kn_str_eq_nocase(name, KN_STR_LIT("parquet")))
            return KN_NATIVE_PARQUET;
        if (kn_str_eq_nocase(name, KN_STR_LIT("csv")))
            return KN_NATIVE_CSV;
        if (kn_str_eq_nocase(name, KN_STR_LIT("iceberg")))
            return KN_NATIVE_ICEBERG;
        if (kn_str_eq_nocase(name, KN_STR_LIT("postgres")) ||
            kn_str_eq_nocase(name, KN_STR_LIT("postgresql")))
            return KN_NATIVE_POSTGRES;
        return kn_str_eq_nocase(name, KN_STR_LIT("json")) ? KN_NATIVE_JSON : KN_NATIVE_UNKNOWN;
    }
    if (path && is_database(path))
        return KN_NATIVE_POSTGRES;
    for (size_t i = 0; path && i < sizeof(suffixes) / sizeof(suffixes[0]); i++)
        if (kn_str_ends_with(kn_str(path), kn_str(suffixes[i].text)))
            return suffixes[i].format;
    return KN_NATIVE_UNKNOWN;
}

KnNativePlace kn_native_place(KnNativeFormat format, const char *path)
{
    char scheme[16];
    if (format == KN_NATIVE_ICEBERG)
        return KN_NATIVE_CATALOG;
    if (format == KN_NATIVE_POSTGRES && is_database(path))
        return KN_NATIVE_DATABASE;
    if (!strstr(path, ":/"))
        return KN_NATIVE_LOCAL;
    if (kn_path_scheme(kn_str(path), scheme, NULL) != KN_OK)
        return KN_NATIVE_ELSEWHERE;
    if (!strcmp(scheme, "file"))
        return KN_NATIVE_LOCAL;
    return kn_s3_is_location(kn_str(path)) ? KN_NATIVE_OBJECTS : KN_NATIVE_ELSEWHERE;
}

const char *kn_native_format_name(KnNativeFormat format)
{
    static const char *const names[] = {"parquet", "csv", "json", "iceberg", "postgres", "?"};
    return names[format];
}

const char *kn_native_extension(KnNativeFormat format)
{
    static const char *const names[] = {".parquet", ".csv", ".json", "", "", ""};
    return names[format];
}

bool kn_native_is_file(const char *path)
{
    const char *slash = strrchr(path, '/');
    const char *dot = strrchr(slash ? slash + 1 : path, '.');
    return dot && dot[1] && dot != (slash ? slash + 1 : path);
}

bool kn_native_is_hidden(const char *below)
{
    for (const char *at = below; at; at = strchr(at, '/')) {
        at += *at == '/';
        if (*at == '.' || *at == '_')
            return true;
    }
    return false;
}

KnCode kn_native_path(KnArena *arena, const char *given, const char **ret, KnErr *err)
{
    char cwd[4096];
    if (!given[0])
        return kn_err_set(err, KN_E_INVAL, "a path may not be empty");
    if (given[0] == '/' || strstr(given, ":/"))
        return kn_path_local(arena, kn_str(given), ret, err);
    if (!getcwd(cwd, sizeof(cwd)))
        return kn_err_set(err, KN_E_IO, "the current folder: %s", kn_errno_text(errno));
    return kn_path_local(arena, kn_str(kn_path_join(arena, kn_str(cwd), kn_str(given))), ret, err);
}

const char *kn_native_sql_type(KnArena *arena, const char *arrow_type)
{
    KN_BUF_AUTO sql = {.max = 1 << 20};
    if (kn_arrow_type_sql(kn_str(arrow_type), &sql, NULL) != KN_OK || sql.failed)
        return NULL;
    return kn_arena_strndup(arena, sql.data, sql.len);
}

/* Digits before and behind the point that an integer or decimal may have; false for other types. */
static bool digits(const char *type, unsigned *ret_whole, unsigned *ret_scale)
{
    static const struct {
        const char *name;
        unsigned whole;
    } integers[] = {{"TINYINT", 3},  {"SMALLINT", 5},  {"INTEGER", 10},  {"BIGINT", 19},
                    {"UTINYINT", 3}, {"USMALLINT", 5}, {"UINTEGER", 10}, {"UBIGINT", 20}};
    for (size_t i = 0; i < sizeof(integers) / sizeof(integers[0]); i++)
        if (!strcmp(integers[i].name, type)) {
            *ret_whole = integers[i].whole;
            *ret_scale = 0;
            return true;
        }
    unsigned precision = 0;
    if (sscanf(type, "DECIMAL(%2u,%2u)", &precision, ret_scale) != 2)
        return false;
    *ret_whole = precision - *ret_scale;
    return true;
}

static bool integer_widens(const char *from, const char *to)
{
    static const char *const chains[][4] = {{"TINYINT", "SMALLINT", "INTEGER", "BIGINT"},
                                            {"UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT"},
                                            {"UTINYINT", "SMALLINT", "INTEGER", "BIGINT"},
                                            {"", "USMALLINT", "INTEGER", "BIGINT"},
                                            {"", "", "UINTEGER", "BIGINT"}};
    for (size_t i = 0; i < sizeof(chains) / sizeof(chains[0]); i++) {
        size_t at = 4, goal = 0;
        for (size_t j = 0; j < 4; j++) {
            at = strcmp(chains[i][j], from) == 0 ? j : at;
            goal = strcmp(chains[i][j], to) == 0 ? j : goal;
        }
        if (at < goal)
            return true;
    }
    return false;
}

bool kn_native_widens(const char *from, const char *to)
{
    if (!strcmp(from, to) || !strcmp(from, "\"NULL\"") || integer_widens(from, to))
        return true;
    if (!strcmp(from, "FLOAT") || !strcmp(from, "INTEGER") || !strcmp(from, "SMALLINT") ||
        !strcmp(from, "TINYINT") || !strcmp(from, "UINTEGER"))
        if (!strcmp(to, "DOUBLE"))
            return true;
    if (!strcmp(from, "DATE") || !strcmp(from, "TIMESTAMP_S") || !strcmp(from, "TIMESTAMP_MS"))
        return !strcmp(to, "TIMESTAMP");
    unsigned from_whole = 0, from_scale = 0, to_whole = 0, to_scale = 0;
    return kn_str_starts_with(kn_str(to), KN_STR_LIT("DECIMAL(")) &&
           digits(from, &from_whole, &from_scale) && digits(to, &to_whole, &to_scale) &&
           from_whole <= to_whole && from_scale <= to_scale;
}
