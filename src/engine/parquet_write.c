/* SPDX-License-Identifier: Apache-2.0 */
/*
 * parquet_write.c - COPY to Parquet, and the statistics it gives back.
 *
 * RETURN_STATS yields a row for each file: name, counts, a map of leaf path to statistics (texts),
 * and a map of partition columns to values. Leaf paths are quoted identifiers joined by dots,
 * `"st"."a"`, with quotes inside names doubled; they become parts joined by '\x1f'. Then the files
 * are finished (parquet_finish.h).
 */
#include <assert.h>
#include <string.h>

#include "base/vec.h"
#include "engine/engine_internal.h"
#include "engine/parquet.h"
#include "engine/parquet_finish.h"

enum { DEFAULT_GROUP_ROWS = 122880 };

static const char path_separator = '\x1f';

static void partition_sql(KnBuf *sql, const KnPqWriteOptions *opts)
{
    kn_buf_text(sql, ", PARTITION_BY (");
    for (size_t i = 0; i < opts->n_partition_columns; i++) {
        kn_buf_text(sql, i ? ", " : "");
        kn_sql_ident(sql, kn_str(opts->partition_columns[i]));
    }
    kn_buf_text(sql, ")");
}

static void copy_sql(KnBuf *sql, const KnPqWriteOptions *opts)
{
    const char *codec = opts->codec ? opts->codec : "zstd";
    kn_buf_printf(sql, "COPY (%s\n) TO ", opts->select_sql);
    kn_sql_text(sql, kn_str(opts->target));
    kn_buf_text(sql, " (FORMAT parquet, RETURN_STATS true, COMPRESSION ");
    kn_sql_text(sql, kn_str(codec));
    if (opts->codec_level && strcmp(codec, "zstd") == 0)
        kn_buf_printf(sql, ", COMPRESSION_LEVEL %d", opts->codec_level);
    kn_buf_printf(sql, ", ROW_GROUP_SIZE %lld",
                  (long long)(opts->row_group_rows ? opts->row_group_rows : DEFAULT_GROUP_ROWS));
    if (opts->no_dictionary)
        kn_buf_text(sql, ", DICTIONARY_SIZE_LIMIT 0");
    if (opts->field_ids_sql)
        kn_buf_printf(sql, ", FIELD_IDS %s", opts->field_ids_sql);
    if (opts->target_bytes)
        kn_buf_printf(sql, ", FILE_SIZE_BYTES %llu", (unsigned long long)opts->target_bytes);
    /* The engine refuses to be told about empty files where it never makes them. */
    if (opts->n_partition_columns)
        partition_sql(sql, opts);
    else
        kn_buf_text(sql, ", WRITE_EMPTY_FILE false");
    if (opts->n_partition_columns || opts->target_bytes) {
        kn_buf_text(sql, ", OVERWRITE_OR_IGNORE true");
        if (opts->file_pattern) {
            kn_buf_text(sql, ", FILENAME_PATTERN ");
            kn_sql_text(sql, kn_str(opts->file_pattern));
        }
    }
    kn_buf_text(sql, ")");
}

/* A map of texts in one row; its entries are at [first, first+n) of keys and values. */
typedef struct TextMap {
    KnVector keys, values;
    size_t first, n;
} TextMap;

static TextMap map_open(const KnVector *vec, size_t row)
{
    if (kn_vector_is_null(vec, row))
        return (TextMap){.n = 0};
    KnListEntry at = ((const KnListEntry *)vec->data)[row];
    KnVector entry = kn_vector_child(vec, 0);
    return (TextMap){.keys = kn_vector_child(&entry, 0),
                     .values = kn_vector_child(&entry, 1),
                     .first = at.offset,
                     .n = at.length};
}

static const char *copy_text(KnArena *arena, const KnVector *vec, size_t row)
{
    if (kn_vector_is_null(vec, row))
        return NULL;
    KnStr s = kn_vector_str(vec, row);
    return kn_arena_strndup(arena, s.ptr, s.len);
}

/* `"st"."a"` to "st\x1fa"; a part without quotes is taken as it stands. */
static const char *leaf_path(KnArena *arena, KnStr key)
{
    char *out = kn_arena_alloc(arena, key.len + 1);
    size_t len = 0;
    bool quoted = false;
    for (size_t i = 0; i < key.len; i++) {
        char c = key.ptr[i];
        if (c == '"' && quoted && i + 1 < key.len && key.ptr[i + 1] == '"') {
            out[len++] = '"';
            i++;
        } else if (c == '"') {
            quoted = !quoted;
        } else {
            if (c == '.' && !quoted)
                c = path_separator;
            out[len++] = c;
        }
    }
    out[len] = '\0';
    return out;
}

static int64_t number_of(const KnVector *vec, size_t row, int64_t dflt)
{
    int64_t value;
    return kn_vector_is_null(vec, row) || !kn_str_to_i64(kn_vector_str(vec, row), &value) ? dflt
                                                                                          : value;
}

static void column_stat(KnArena *arena, KnStr name, const TextMap *map, size_t at,
                        KnPqColumnStats *ret)
{
    const KnVector *v = &map->values;
    if (kn_str_eq(name, KN_STR_LIT("column_size_bytes")))
        ret->size_bytes = number_of(v, at, 0);
    else if (kn_str_eq(name, KN_STR_LIT("num_values")))
        ret->value_count = number_of(v, at, 0);
    else if (kn_str_eq(name, KN_STR_LIT("null_count")))
        ret->null_count = number_of(v, at, -1);
    else if (kn_str_eq(name, KN_STR_LIT("has_nan")))
        ret->has_nan =
            !kn_vector_is_null(v, at) && kn_str_eq(kn_vector_str(v, at), KN_STR_LIT("true"));
    else if (kn_str_eq(name, KN_STR_LIT("min")))
        ret->min = copy_text(arena, v, at);
    else if (kn_str_eq(name, KN_STR_LIT("max")))
        ret->max = copy_text(arena, v, at);
}

static void columns_take(KnArena *arena, const KnVector *vec, size_t row, KnPqWritten *ret)
{
    TextMap leaves = map_open(vec, row);
    KnPqColumnStats *cols = kn_arena_zalloc(arena, (leaves.n + 1) * sizeof(*cols));
    for (size_t i = 0; i < leaves.n; i++) {
        size_t at = leaves.first + i;
        cols[i].path = leaf_path(arena, kn_vector_str(&leaves.keys, at));
        cols[i].null_count = -1;
        TextMap stats = map_open(&leaves.values, at);
        for (size_t s = stats.first; s < stats.first + stats.n; s++)
            column_stat(arena, kn_vector_str(&stats.keys, s), &stats, s, &cols[i]);
    }
    ret->columns = cols;
    ret->n_columns = leaves.n;
}

static void partition_take(KnArena *arena, const KnVector *vec, size_t row,
                           const KnPqWriteOptions *opts, KnPqWritten *ret)
{
    const char **values = kn_arena_zalloc(arena, (opts->n_partition_columns + 1) * sizeof(*values));
    TextMap map = map_open(vec, row);
    for (size_t c = 0; c < opts->n_partition_columns; c++) {
        for (size_t i = map.first; i < map.first + map.n; i++) {
            if (kn_str_eq_nocase(kn_vector_str(&map.keys, i), kn_str(opts->partition_columns[c])))
                values[c] = copy_text(arena, &map.values, i);
        }
    }
    ret->partition_values = values;
    ret->n_partition_keys = opts->n_partition_columns;
}

typedef enum StatColumn { FILENAME, COUNT, FILE_SIZE, STATISTICS, KEYS, N_STAT_COLUMNS } StatColumn;

static KnCode find_columns(const KnStream *stream, size_t ret[N_STAT_COLUMNS], KnErr *err)
{
    static const char *const names[] = {
        [FILENAME] = "filename",         [COUNT] = "count",
        [FILE_SIZE] = "file_size_bytes", [STATISTICS] = "column_statistics",
        [KEYS] = "partition_keys",
    };
    for (size_t want = 0; want < N_STAT_COLUMNS; want++) {
        size_t c = 0;
        while (c < kn_stream_n_columns(stream) &&
               strcmp(kn_stream_column_name(stream, c), names[want]) != 0)
            c++;
        if (c == kn_stream_n_columns(stream))
            return kn_err_set(err, KN_E_UNSUPPORTED, "COPY gave no column %s", names[want]);
        ret[want] = c;
    }
    return KN_OK;
}

typedef KN_VEC(KnPqWritten) WrittenVec;

static void batch_take(KnArena *arena, const KnBatch *batch, const size_t at[N_STAT_COLUMNS],
                       const KnPqWriteOptions *opts, WrittenVec *files)
{
    KnVector col[N_STAT_COLUMNS];
    for (size_t i = 0; i < N_STAT_COLUMNS; i++)
        col[i] = kn_batch_vector(batch, at[i]);
    for (size_t row = 0; row < kn_batch_rows(batch); row++) {
        int64_t n_rows = (int64_t)kn_vector_int128(&col[COUNT], row);
        KnPqWritten *file = kn_vec_push(files);
        file->path = copy_text(arena, &col[FILENAME], row);
        file->n_rows = n_rows;
        file->size_bytes = (int64_t)kn_vector_int128(&col[FILE_SIZE], row);
        columns_take(arena, &col[STATISTICS], row, file);
        partition_take(arena, &col[KEYS], row, opts, file);
    }
}

static KnCode files_take(KnStream *stream, KnArena *arena, const KnPqWriteOptions *opts,
                         WrittenVec *files, KnErr *err)
{
    size_t at[N_STAT_COLUMNS];
    KN_TRY(find_columns(stream, at, err));
    for (;;) {
        KN_BATCH_AUTO batch = NULL;
        KN_TRY(kn_stream_next(stream, &batch, err));
        if (!batch)
            return KN_OK;
        batch_take(arena, batch, at, opts, files);
    }
}

KnCode kn_parquet_write(KnSession *ses, KnArena *arena, const KnPqWriteOptions *opts,
                        KnPqWritten **ret, size_t *ret_n, KnErr *err)
{
    KN_BUF_AUTO sql;
    kn_buf_init(&sql, KN_ENGINE_MAX_SQL);
    copy_sql(&sql, opts);
    KN_TRY(kn_buf_check(&sql, err));
    KnStream *stream = NULL;
    KnCode code = kn_session_query(ses, sql.data, &stream, err);
    if (code != KN_OK)
        return kn_err_wrap(err, code, "write %s", opts->target);
    WrittenVec files = {0};
    code = files_take(stream, arena, opts, &files, err);
    kn_stream_close(stream);
    for (size_t i = 0; code == KN_OK && i < files.len; i++)
        code = kn_parquet_finish(&files.items[i], opts->types, opts->n_types, arena, err);
    if (code == KN_OK) {
        KnPqWritten *out = kn_arena_zalloc(arena, (files.len + 1) * sizeof(*out));
        if (files.len)
            memcpy(out, files.items, files.len * sizeof(*out));
        *ret = out;
        *ret_n = files.len;
    }
    kn_vec_done(&files);
    return code == KN_OK ? code : kn_err_wrap(err, code, "write %s", opts->target);
}
