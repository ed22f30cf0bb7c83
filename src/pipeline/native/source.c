/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source.c - inputs: files, folders and patterns as a SELECT of the engine's readers.
 *
 * A declared schema decides how text becomes values (CSV, JSON) and is checked against what files
 * say of themselves (Parquet). Columns that are in folder names are text unless they are declared.
 */
#include <string.h>
#include <sys/stat.h>

#include "pipeline/native/native.h"

typedef struct Option {
    const char *name;
    bool text; /* else a number or true and false */
} Option;

static const Option csv_options[] = {
    {"header", false},  {"delim", true},           {"quote", true},      {"escape", true},
    {"nullstr", true},  {"skip", false},           {"comment", true},    {"dateformat", true},
    {"encoding", true}, {"timestampformat", true}, {"compression", true}};
static const Option json_options[] = {
    {"format", true}, {"compression", true}, {"dateformat", true}, {"timestampformat", true}};

static const Option database_options[] = {{"table", true}, {"query", true}};

#define OPTIONS(options)                                                                           \
    {                                                                                              \
        options, sizeof(options) / sizeof((options)[0])                                            \
    }
static const struct {
    const Option *items;
    size_t len;
} all_options[] = {[KN_NATIVE_CSV] = OPTIONS(csv_options),
                   [KN_NATIVE_JSON] = OPTIONS(json_options),
                   [KN_NATIVE_POSTGRES] = OPTIONS(database_options),
                   [KN_NATIVE_UNKNOWN] = {NULL, 0}};

static const Option *find_option(KnNativeFormat format, const char *name)
{
    for (size_t i = 0; i < all_options[format].len; i++)
        if (!strcmp(all_options[format].items[i].name, name))
            return &all_options[format].items[i];
    return NULL;
}

const char *kn_native_unknown_option(const KnutInput *input)
{
    KnNativeFormat format = kn_native_format(input->format, input->path);
    for (size_t i = 0; i < input->options.len; i++) {
        const KnutPair *pair = &input->options.items[i];
        const Option *option = find_option(format, pair->key);
        if (!option || (!option->text && pair->value[strspn(pair->value, "0123456789truefalse")]))
            return pair->key;
    }
    return NULL;
}

static bool is_pattern(const char *path)
{
    return strpbrk(path, "*?[") != NULL;
}

static bool is_folder(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* Files of a folder, however deep; hidden ones are not the engine's business. */
static void folder_pattern(KnBuf *sql, KnNativeFormat format, const char *path)
{
    KN_BUF_AUTO folder = {.max = 1 << 16};
    kn_sql_path(&folder, kn_str(path));
    if (folder.len && folder.data[folder.len - 1] == '\'')
        folder.len--;
    kn_buf_str(sql, (KnStr){folder.data, folder.len});
    kn_buf_printf(sql, "/**/*%s*'", kn_native_extension(format));
}

static const char *type_of(KnArena *arena, const KnutSchema *schema, const char *column)
{
    for (size_t i = 0; schema && i < schema->len; i++)
        if (kn_str_eq_nocase(kn_str(schema->items[i].name), kn_str(column)))
            return kn_native_sql_type(arena, schema->items[i].arrow_type);
    return "VARCHAR";
}

typedef struct Files {
    KnNativeFormat format;
    const char *path;
    KnutNames list;                  /* instead of path, where there are some: full names */
    const KnutNames *partition_cols; /* NULL = none */
    const KnutSchema *schema;        /* NULL = none */
    const KnutPairs *options;        /* NULL = none */
} Files;

static void hive(KnArena *arena, KnBuf *sql, const Files *files)
{
    const KnutNames *cols = files->partition_cols;
    if (!cols || !cols->len) {
        kn_buf_text(sql, ", hive_partitioning=false");
        return;
    }
    kn_buf_text(sql, ", hive_partitioning=true, hive_types={");
    for (size_t i = 0; i < cols->len; i++) {
        kn_buf_text(sql, i ? ", " : "");
        const char *name = kn_native_part_name(arena, cols->items[i]);
        kn_sql_text(sql, kn_str(name));
        kn_buf_printf(sql, ": %s", type_of(arena, files->schema, name));
    }
    kn_buf_char(sql, '}');
}

static bool in_path(KnArena *arena, const Files *files, const char *column)
{
    for (size_t i = 0; files->partition_cols && i < files->partition_cols->len; i++)
        if (kn_str_eq_nocase(kn_str(kn_native_part_name(arena, files->partition_cols->items[i])),
                             kn_str(column)))
            return true;
    return false;
}

/* What transforms made for folders' names is no column of the rows. */
static void columns_sql(KnArena *arena, const KnutNames *parts, KnBuf *sql)
{
    size_t n = 0;
    kn_buf_text(sql, "SELECT *");
    for (size_t i = 0; i < parts->len; i++)
        if (kn_native_part_is_made(parts->items[i])) {
            kn_buf_text(sql, n++ ? ", " : " EXCLUDE (");
            kn_sql_ident(sql, kn_str(kn_native_part_name(arena, parts->items[i])));
        }
    kn_buf_text(sql, n ? ") FROM " : " FROM ");
}

/* The types of a schema for a reader of text. */
static void typed(KnArena *arena, KnBuf *sql, const Files *files)
{
    size_t n = 0;
    for (size_t i = 0; files->schema && i < files->schema->len; i++) {
        const KnutSchemaField *field = &files->schema->items[i];
        if (in_path(arena, files, field->name))
            continue;
        if (!n++)
            kn_buf_text(sql, files->format == KN_NATIVE_CSV ? ", types={" : ", columns={");
        else
            kn_buf_text(sql, ", ");
        kn_sql_text(sql, kn_str(field->name));
        kn_buf_text(sql, ": ");
        kn_sql_text(sql, kn_str(kn_native_sql_type(arena, field->arrow_type)));
    }
    kn_buf_text(sql, n ? "}" : "");
}

static void options_sql(KnBuf *sql, const Files *files)
{
    bool header = false;
    for (size_t i = 0; files->options && i < files->options->len; i++) {
        const KnutPair *pair = &files->options->items[i];
        const Option *option = find_option(files->format, pair->key);
        if (!option)
            continue;
        header |= !strcmp(pair->key, "header");
        kn_buf_printf(sql, ", %s=", pair->key);
        if (option->text)
            kn_sql_text(sql, kn_str(pair->value));
        else
            kn_buf_text(sql, pair->value);
    }
    if (files->format == KN_NATIVE_CSV && !header)
        kn_buf_text(sql, ", header=true");
}

static void list_sql(KnBuf *sql, const KnutNames *list)
{
    for (size_t i = 0; i < list->len; i++) {
        kn_buf_text(sql, i ? ", " : "[");
        kn_sql_path(sql, kn_str(list->items[i]));
    }
    kn_buf_char(sql, ']');
}

static void reader(KnArena *arena, KnBuf *sql, const Files *files)
{
    static const char *const readers[] = {"read_parquet(", "read_csv(", "read_json("};
    bool many = files->list.len > 1 || is_pattern(files->path) || is_folder(files->path);
    kn_buf_text(sql, readers[files->format]);
    if (files->list.len)
        list_sql(sql, &files->list);
    else if (is_folder(files->path))
        folder_pattern(sql, files->format, files->path);
    else if (is_pattern(files->path))
        kn_sql_text(sql, kn_str(files->path));
    else
        kn_sql_path(sql, kn_str(files->path));
    hive(arena, sql, files);
    if (files->format != KN_NATIVE_PARQUET) {
        typed(arena, sql, files);
        options_sql(sql, files);
    }
    kn_buf_text(sql, many && (files->format == KN_NATIVE_PARQUET || !files->schema->len)
                         ? ", union_by_name=true)"
                         : ")");
}

void kn_native_files_sql(KnBuf *sql, KnNativeFormat format, const char *path,
                         const KnutNames *partition_cols)
{
    static const KnutSchema no_schema = {0};
    KN_ARENA_AUTO arena = kn_arena_new(0);
    reader(arena, sql,
           &(Files){.format = format,
                    .path = path,
                    .partition_cols = partition_cols,
                    .schema = &no_schema});
}

void kn_native_listed_sql(KnBuf *sql, KnNativeFormat format, const KnutNames *list,
                          const KnNativeReading *how)
{
    static const KnutSchema no_schema = {0};
    static const KnutNames no_parts = {0};
    KN_ARENA_AUTO arena = kn_arena_new(0);
    columns_sql(arena, how->partition_cols ? how->partition_cols : &no_parts, sql);
    reader(arena, sql,
           &(Files){.format = format,
                    .path = "",
                    .list = *list,
                    .partition_cols = how->partition_cols,
                    .schema = how->schema ? how->schema : &no_schema,
                    .options = how->options});
}

static KnCode table_input(KnNativeRun *run, const KnutInput *input, const char **ret, KnErr *err)
{
    const char *what = kn_arena_printf(run->arena, "input %s", input->name);
    const char *sql = NULL;
    if (kn_native_format(input->format, input->path) == KN_NATIVE_POSTGRES)
        KN_TRY(kn_native_database_sql(run, input, &sql, err));
    else
        KN_TRY(kn_native_table_sql(run, input->path, &sql, err));
    return kn_native_declared(run, what, &input->schema, sql, ret, err);
}

/* A pattern in an object store is the engine's to match. */
static KnCode find_files(KnNativeRun *run, const KnutInput *input, Files *files, KnErr *err)
{
    if (kn_native_place(files->format, input->path) == KN_NATIVE_LOCAL)
        return kn_native_path(run->arena, input->path, &files->path, err);
    files->path = input->path;
    if (is_pattern(input->path))
        return kn_native_reach(run, input->path, err);
    return kn_native_objects(run, input->path, files->format, &files->list, err);
}

const char *kn_native_feed_sql(KnArena *arena, const char *name)
{
    return kn_arena_printf(arena, "SELECT * FROM kn_feed(%s)", kn_sql_text_of(arena, name));
}

KnCode kn_native_input_sql(KnNativeRun *run, const KnutInput *input, const char **ret, KnErr *err)
{
    Files files = {.format = kn_native_format(input->format, input->path),
                   .partition_cols = &input->partition_cols,
                   .schema = &input->schema,
                   .options = &input->options};
    if (files.format == KN_NATIVE_ICEBERG || files.format == KN_NATIVE_POSTGRES)
        return table_input(run, input, ret, err);
    KN_TRY(kn_err_wrap(err, find_files(run, input, &files, err), "input %s", input->name));
    KN_BUF_AUTO sql = {.max = 16 << 20};
    columns_sql(run->arena, &input->partition_cols, &sql);
    reader(run->arena, &sql, &files);
    KN_TRY(kn_buf_check(&sql, err));
    const char *what = kn_arena_printf(run->arena, "input %s", input->name);
    const char *select = kn_arena_strndup(run->arena, sql.data, sql.len);
    return kn_native_declared(run, what, &input->schema, select, ret, err);
}
