/* SPDX-License-Identifier: Apache-2.0 */
/* table_args.c - see table_args.h. */
#include "cli/table/table_args.h"

#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/path.h"
#include "cli/output.h"
#include "storage/file_io.h"

static const KnOption rows_from_rows[] = {
    {.name = "format",
     .type = KN_OPT_CHOICE,
     .offset = offsetof(KnRowsFrom, format),
     .value = "auto|parquet|csv|json",
     .dflt = "auto",
     .doc = "Format of the files; auto goes by their names"},
    {.name = "null",
     .type = KN_OPT_TEXT,
     .offset = offsetof(KnRowsFrom, null_text),
     .value = "TEXT",
     .doc = "CSV: a field with this text is NULL, as an empty field is"},
    {.name = "sql",
     .type = KN_OPT_TEXT,
     .offset = offsetof(KnRowsFrom, sql),
     .value = "QUERY",
     .doc = "Rows of this query of the engine, instead of files"},
};

const KnOptGroup kn_rows_from_options = {
    .title = "Where the rows come from",
    .options = rows_from_rows,
    .n_options = sizeof(rows_from_rows) / sizeof(rows_from_rows[0]),
};

typedef enum RowsFormat { ROWS_AUTO, ROWS_PARQUET, ROWS_CSV, ROWS_JSON } RowsFormat;

static KnCode absolute(KnArena *arena, const char *file, const char **ret, KnErr *err)
{
    char *real = realpath(file, NULL);
    if (!real)
        return kn_err_set(err, KN_E_NOTFOUND, "%s: no such file, or it cannot be read", file);
    *ret = kn_arena_strdup(arena, real);
    free(real);
    return KN_OK;
}

static KnCode format_of(const char *file, int given, RowsFormat *ret, KnErr *err)
{
    static const struct {
        const char *suffix;
        RowsFormat format;
    } known[] = {{".parquet", ROWS_PARQUET}, {".csv", ROWS_CSV},      {".csv.gz", ROWS_CSV},
                 {".csv.zst", ROWS_CSV},     {".tsv", ROWS_CSV},      {".json", ROWS_JSON},
                 {".jsonl", ROWS_JSON},      {".ndjson", ROWS_JSON},  {".json.gz", ROWS_JSON},
                 {".jsonl.gz", ROWS_JSON},   {".json.zst", ROWS_JSON}};
    if (given != ROWS_AUTO) {
        *ret = (RowsFormat)given;
        return KN_OK;
    }
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        if (kn_str_ends_with(kn_str(file), kn_str(known[i].suffix))) {
            *ret = known[i].format;
            return KN_OK;
        }
    }
    return kn_err_set(err, KN_E_INVAL,
                      "%s: its name does not tell its format; give --format parquet|csv|json",
                      file);
}

static void path_list(KnBuf *sql, const char *const *paths, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        kn_buf_char(sql, i ? ',' : '[');
        kn_sql_path(sql, kn_str(paths[i]));
    }
    kn_buf_char(sql, ']');
}

static const KnField *column_named(const KnSchema *schema, const char *name)
{
    for (size_t i = 0; schema && i < schema->root.n_fields; i++) {
        if (!strcmp(schema->root.fields[i].name, name))
            return &schema->root.fields[i];
    }
    return NULL;
}

/* JSON keys get the table's types; keys that the table lacks stay JSON, so that the writer names
 * them. */
static KnCode json_columns(KnSession *ses, const KnSchema *schema, const char *from, KnBuf *sql,
                           KnErr *err)
{
    KN_BUF_AUTO probe = {0};
    kn_buf_init(&probe, 1 << 22);
    kn_buf_printf(&probe, "SELECT * FROM %s) LIMIT 0", from);
    KnStream *stream = NULL;
    KN_TRY(kn_session_query(ses, probe.data, &stream, err));
    KnCode rc = KN_OK;
    kn_buf_text(sql, ", columns={");
    for (size_t i = 0; i < kn_stream_n_columns(stream) && rc == KN_OK; i++) {
        const char *name = kn_stream_column_name(stream, i);
        const KnField *field = column_named(schema, name);
        KN_BUF_AUTO type = {0};
        kn_buf_init(&type, 1 << 20);
        if (field)
            rc = kn_type_sql(&type, field->type, err);
        else
            kn_buf_text(&type, "JSON");
        kn_buf_text(sql, i ? "," : "");
        kn_sql_text(sql, kn_str(name));
        kn_buf_char(sql, ':');
        kn_sql_text(sql, (KnStr){type.data, type.len});
    }
    kn_buf_char(sql, '}');
    kn_stream_close(stream);
    return rc;
}

typedef struct Source {
    RowsFormat format;
    const char *const *paths;
    size_t n;
    const char *null_text;
} Source;

static KnCode source_sql(KnSession *ses, const KnSchema *schema, const Source *src, KnBuf *sql,
                         KnErr *err)
{
    KN_BUF_AUTO from = {0};
    kn_buf_init(&from, 1 << 22);
    kn_buf_text(&from, src->format == ROWS_PARQUET ? "read_parquet("
                       : src->format == ROWS_CSV   ? "read_csv("
                                                   : "read_json(");
    path_list(&from, src->paths, src->n);
    if (src->format == ROWS_CSV) {
        /* With a schema its types decide, in the writer's strict casts; without one the engine
         * guesses. */
        kn_buf_printf(&from, ", header=true, all_varchar=%s", schema ? "true" : "false");
        if (src->null_text) {
            kn_buf_text(&from, ", nullstr=['',");
            kn_sql_text(&from, kn_str(src->null_text));
            kn_buf_char(&from, ']');
        }
    }
    if (src->format == ROWS_PARQUET && src->n > 1)
        kn_buf_text(&from, ", union_by_name=true");
    KN_TRY(kn_buf_check(&from, err));
    kn_buf_printf(sql, "SELECT * FROM %s", from.data);
    if (src->format == ROWS_JSON && schema)
        KN_TRY(json_columns(ses, schema, from.data, sql, err));
    kn_buf_char(sql, ')');
    return kn_buf_check(sql, err);
}

KnCode kn_args_rows(const KnCall *call, KnSession *ses, const KnSchema *schema,
                    const KnRowsFrom *from, const char **ret_sql, KnErr *err)
{
    if (from->sql && call->args.len)
        return kn_err_set(err, KN_E_INVAL, "rows come from --sql or from files, not from both");
    if (from->sql) {
        *ret_sql = from->sql;
        return KN_OK;
    }
    if (!call->args.len)
        return kn_err_set(err, KN_E_INVAL, "which rows? name one or more files, or give --sql");
    Source src = {.n = call->args.len, .null_text = from->null_text};
    const char **paths = kn_arena_alloc(call->arena, src.n * sizeof(*paths));
    for (size_t i = 0; i < src.n; i++) {
        RowsFormat format = ROWS_AUTO;
        KN_TRY(absolute(call->arena, call->args.items[i], &paths[i], err));
        KN_TRY(format_of(call->args.items[i], from->format, &format, err));
        if (i && format != src.format)
            return kn_err_set(err, KN_E_INVAL, "%s: files of one call must have one format",
                              call->args.items[i]);
        src.format = format;
    }
    src.paths = paths;
    KN_BUF_AUTO sql = {0};
    kn_buf_init(&sql, 1 << 22);
    KN_TRY(source_sql(ses, schema, &src, &sql, err));
    *ret_sql = kn_arena_strndup(call->arena, sql.data, sql.len);
    return KN_OK;
}

KnCode kn_args_schema_file(KnArena *arena, const char *file, KnSchema **ret, KnErr *err)
{
    const char *path = NULL;
    KN_TRY(absolute(arena, file, &path, err));
    KnFileIO *io = NULL;
    KN_TRY(kn_io_local_open(&io, err));
    KN_BUF_AUTO text = {0};
    kn_buf_init(&text, 16 << 20);
    json_t *doc = NULL;
    KnCode rc = kn_io_read_all(io, kn_str(path), 16 << 20, &text, err);
    if (rc == KN_OK)
        rc = kn_json_parse(text.data, text.len, &doc, err);
    if (rc == KN_OK)
        rc = kn_schema_parse(arena, doc, ret, err);
    if (doc)
        kn_arena_defer(arena, (void (*)(void *))json_decref, doc); /* defaults point into it */
    kn_io_close(io);
    return kn_err_wrap(err, rc, "%s", file);
}

/* The schema text of a column type, as kn_schema_parse_text() takes it. */
static KnCode type_text(const KnColType *type, KnBuf *out, KnErr *err);

static KnCode nested_text(const KnColType *type, KnBuf *out, KnErr *err)
{
    if (type->kind == KN_COL_LIST) {
        kn_buf_text(out, "list<");
        KN_TRY(type_text(&type->children[0], out, err));
    } else if (type->kind == KN_COL_MAP) {
        kn_buf_text(out, "map<");
        KN_TRY(type_text(&type->children[0].children[0], out, err));
        kn_buf_text(out, ", ");
        KN_TRY(type_text(&type->children[0].children[1], out, err));
    } else {
        kn_buf_text(out, "struct<");
        for (size_t i = 0; i < type->n_children; i++) {
            kn_buf_printf(out, "%s`%s` ", i ? ", " : "", type->child_names[i]);
            KN_TRY(type_text(&type->children[i], out, err));
        }
    }
    kn_buf_char(out, '>');
    return KN_OK;
}

static KnCode type_text(const KnColType *type, KnBuf *out, KnErr *err)
{
    static const char *const names[] = {
        [KN_COL_BOOL] = "boolean",
        [KN_COL_INT8] = "int",
        [KN_COL_INT16] = "int",
        [KN_COL_INT32] = "int",
        [KN_COL_INT64] = "long",
        [KN_COL_UINT8] = "int",
        [KN_COL_UINT16] = "int",
        [KN_COL_UINT32] = "long",
        [KN_COL_UINT64] = "decimal(20,0)",
        [KN_COL_INT128] = "decimal(38,0)",
        [KN_COL_FLOAT] = "float",
        [KN_COL_DOUBLE] = "double",
        [KN_COL_DATE] = "date",
        [KN_COL_TIME] = "time",
        [KN_COL_TIMESTAMP] = "timestamp",
        [KN_COL_TIMESTAMPTZ] = "timestamptz",
        [KN_COL_TIMESTAMP_NS] = "timestamp_ns",
        [KN_COL_VARCHAR] = "string",
        [KN_COL_BLOB] = "binary",
        [KN_COL_UUID] = "uuid",
    };
    if (type->kind == KN_COL_LIST || type->kind == KN_COL_MAP || type->kind == KN_COL_STRUCT)
        return nested_text(type, out, err);
    if (type->kind == KN_COL_DECIMAL) {
        kn_buf_printf(out, "decimal(%d,%d)", type->width, type->scale);
        return KN_OK;
    }
    const char *name =
        (size_t)type->kind < sizeof(names) / sizeof(names[0]) ? names[type->kind] : NULL;
    if (!name)
        return kn_err_set(err, KN_E_UNSUPPORTED,
                          "its type has no counterpart in Iceberg; give --schema");
    kn_buf_text(out, name);
    return KN_OK;
}

static KnCode stream_schema(KnArena *arena, const KnStream *stream, KnSchema **ret, KnErr *err)
{
    KN_BUF_AUTO text = {0};
    kn_buf_init(&text, 4 << 20);
    for (size_t i = 0; i < kn_stream_n_columns(stream); i++) {
        const char *name = kn_stream_column_name(stream, i);
        if (strchr(name, '`'))
            return kn_err_set(err, KN_E_UNSUPPORTED,
                              "column %s: a name with a back quote; give --schema-json", name);
        kn_buf_printf(&text, "%s`%s` ", i ? ", " : "", name);
        KnCode rc = type_text(kn_stream_column_type(stream, i), &text, err);
        if (rc != KN_OK)
            return kn_err_wrap(err, rc, "column %s", name);
    }
    KN_TRY(kn_buf_check(&text, err));
    return kn_schema_parse_text(arena, (KnStr){text.data, text.len}, ret, err);
}

KnCode kn_args_schema_like(const KnCall *call, const char *file, KnSchema **ret, KnErr *err)
{
    const char *path = NULL;
    Source src = {.paths = &path, .n = 1};
    KN_TRY(absolute(call->arena, file, &path, err));
    KN_TRY(format_of(file, ROWS_AUTO, &src.format, err));
    KN_CALL_ENGINE_AUTO ce = {0};
    KN_TRY(kn_call_engine_open(call, &ce, err));
    KN_BUF_AUTO sql = {0};
    kn_buf_init(&sql, 1 << 20);
    KN_TRY(source_sql(ce.session, NULL, &src, &sql, err));
    kn_buf_text(&sql, " LIMIT 0");
    KnStream *stream = NULL;
    KN_TRY(kn_session_query(ce.session, sql.data, &stream, err));
    KnCode rc = stream_schema(call->arena, stream, ret, err);
    kn_stream_close(stream);
    return kn_err_wrap(err, rc, "--like %s", file);
}

static KnCode check_summary_key(const char *word, KnStr key, KnErr *err)
{
    static const char *const ours[] = {"operation",
                                       "added-",
                                       "deleted-",
                                       "removed-",
                                       "total-",
                                       "changed-partition-count",
                                       "manifests-",
                                       "engine-",
                                       "wap.id",
                                       "published-wap-id",
                                       "source-snapshot-id",
                                       "replace-partitions"};
    if (!key.len)
        return kn_err_set(err, KN_E_INVAL, "--summary '%.100s': expected KEY=VALUE", word);
    for (size_t i = 0; i < sizeof(ours) / sizeof(ours[0]); i++)
        if (kn_str_starts_with(key, kn_str(ours[i])))
            return kn_err_set(err, KN_E_INVAL,
                              "--summary '%.100s': the writer sets this key itself", word);
    return KN_OK;
}

KnCode kn_args_summary(const KnCall *call, const KnOptList *words, KnWriteOptions *write,
                       KnErr *err)
{
    const char **pairs = kn_arena_alloc(call->arena, (words->len * 2 + 1) * sizeof(*pairs));
    for (size_t i = 0; i < words->len; i++) {
        const char *word = words->items[i];
        const char *equals = strchr(word, '=');
        KnStr key = {word, equals ? (size_t)(equals - word) : 0};
        KN_TRY(check_summary_key(word, key, err));
        pairs[2 * i] = kn_arena_strndup(call->arena, key.ptr, key.len);
        pairs[2 * i + 1] = equals + 1;
    }
    write->summary = pairs;
    write->n_summary = words->len;
    return KN_OK;
}

static const KnOutColumn result_columns[] = {
    {"table", false},      {"operation", false},    {"snapshot", true},      {"added_files", true},
    {"added_rows", true},  {"removed_files", true}, {"removed_rows", true},  {"delete_files", true},
    {"added_bytes", true}, {"updated_rows", true},  {"inserted_rows", true}, /* upsert */
};

static KnOut *open_result(const KnCall *call, const KnTable *tbl, const char *operation,
                          const KnWriteResult *result, size_t n_columns)
{
    KnOut *out = kn_out_open((KnOutputFormat)call->common->output, result_columns, n_columns);
    kn_out_text(out, tbl->name);
    kn_out_text(out, operation);
    kn_out_opt_int(out, result->snapshot_id);
    kn_out_int(out, result->added_files);
    kn_out_int(out, result->added_rows);
    kn_out_int(out, result->removed_files);
    kn_out_int(out, result->removed_rows);
    kn_out_int(out, result->delete_files);
    kn_out_bytes(out, result->added_bytes);
    return out;
}

KnCode kn_args_print_result(const KnCall *call, const KnTable *tbl, const char *operation,
                            const KnWriteResult *result, KnErr *err)
{
    return kn_out_close(open_result(call, tbl, operation, result, 9), err);
}

KnCode kn_args_print_upsert(const KnCall *call, const KnTable *tbl, const KnWriteResult *result,
                            KnErr *err)
{
    KnOut *out = open_result(call, tbl, "upsert", result, 11);
    kn_out_int(out, result->updated_rows);
    kn_out_int(out, result->inserted_rows);
    return kn_out_close(out, err);
}
