/* SPDX-License-Identifier: Apache-2.0 */
/*
 * parquet_footer.c - the footers of many Parquet files in one query.
 *
 * parquet_file_metadata() gives a row for each file and parquet_schema() the elements of each; both
 * keep the list's order, and column_id 0 starts a file, so files are told apart by position and not
 * by name (the same path may be listed twice). When the query fails the culprit is found by halving
 * the list: that costs time only then.
 *
 * Codecs are looked up by ourselves: parquet_metadata() would tell, with a row of statistics as
 * text for every column of every row group.
 */
#include <stdint.h>
#include <string.h>

#include "base/vec.h"
#include "engine/engine_internal.h"
#include "engine/parquet.h"
#include "engine/parquet_meta.h"
#include "engine/parquet_tree.h"

/* Columns of the query. */
enum {
    COL_ROWS, /* NULL in rows of parquet_schema() */
    COL_GROUPS,
    COL_ELEMENT, /* 0 = a file's root */
    COL_NAME,
    COL_TYPE,
    COL_CONVERTED,
    COL_LOGICAL,
    COL_SQL_TYPE,
    COL_REPEATED,
    COL_CHILDREN,
    COL_FIELD_ID,
    N_COLS
};

typedef struct FooterRead {
    KnSession *ses;
    KnArena *arena;
    KnPqFile *files;
    size_t n;
    size_t n_counts; /* files whose counts have been read */
    size_t n_trees;  /* files whose tree has been built */
    KN_VEC(KnPqElement) elements;
} FooterRead;

static void footer_sql(KnBuf *sql, const char *const *paths, size_t n)
{
    KN_BUF_AUTO list;
    kn_buf_init(&list, KN_ENGINE_MAX_SQL);
    for (size_t i = 0; i < n; i++) {
        kn_buf_text(&list, i ? ", " : "");
        kn_sql_path(&list, kn_str(paths[i]));
    }
    kn_buf_text(sql, "SELECT num_rows, num_row_groups, NULL::BIGINT, NULL::VARCHAR, NULL::VARCHAR, "
                     "NULL::VARCHAR, NULL::VARCHAR, NULL::VARCHAR, NULL::BOOLEAN, NULL::BIGINT, "
                     "NULL::BIGINT FROM parquet_file_metadata([");
    kn_buf_append(sql, list.data, list.len);
    kn_buf_text(sql, "]) UNION ALL SELECT NULL, NULL, column_id, name, type, converted_type, "
                     "logical_type, duckdb_type, repetition_type IS NOT DISTINCT FROM 'REPEATED', "
                     "num_children, field_id FROM parquet_schema([");
    kn_buf_append(sql, list.data, list.len);
    kn_buf_text(sql, "])");
    sql->failed |= list.failed;
}

static const char *text_at(FooterRead *rd, const KnVector *vec, size_t row)
{
    if (kn_vector_is_null(vec, row))
        return NULL;
    KnStr s = kn_vector_str(vec, row);
    return kn_arena_strndup(rd->arena, s.ptr, s.len);
}

static int64_t number_at(const KnVector *vec, size_t row, int64_t dflt)
{
    return kn_vector_is_null(vec, row) ? dflt : (int64_t)kn_vector_int128(vec, row);
}

/* Which groups are VARIANT only the reader itself tells. */
static KnCode resolve_variants(FooterRead *rd, KnPqFile *file, KnErr *err)
{
    KN_BUF_AUTO sql;
    kn_buf_init(&sql, KN_ENGINE_MAX_SQL);
    kn_buf_text(&sql, "SELECT * FROM ");
    kn_parquet_scan_sql(&sql, &file->path, 1);
    kn_buf_text(&sql, " LIMIT 0");
    KN_TRY(kn_buf_check(&sql, err));
    KnStream *stream = NULL;
    KN_TRY(kn_session_query(rd->ses, sql.data, &stream, err));
    kn_pq_tree_mark_variants(&file->root, kn_stream_column_type(stream, 0),
                             kn_stream_n_columns(stream));
    kn_stream_close(stream);
    return KN_OK;
}

/* Build the tree of the file whose elements have been gathered. */
static KnCode finish_file(FooterRead *rd, KnErr *err)
{
    if (rd->elements.len == 0)
        return KN_OK;
    if (rd->n_trees == rd->n)
        return kn_err_set(err, KN_E_CORRUPT, "more schemas than files: a path names several files");
    KnPqFile *file = &rd->files[rd->n_trees];
    KnPqElements in = {rd->elements.items, rd->elements.len};
    KnCode code = kn_pq_tree_build(rd->arena, in, &file->root, err);
    if (code != KN_OK)
        return kn_err_wrap(err, code, "%s", file->path);
    file->has_field_ids = kn_pq_tree_has_ids(&file->root);
    rd->n_trees++;
    rd->elements.len = 0;
    return KN_OK;
}

static KnCode take_counts(FooterRead *rd, const KnVector *cols, size_t row, KnErr *err)
{
    if (rd->n_counts == rd->n)
        return kn_err_set(err, KN_E_CORRUPT, "more footers than files: a path names several files");
    KnPqFile *file = &rd->files[rd->n_counts++];
    file->n_rows = number_at(&cols[COL_ROWS], row, 0);
    file->n_row_groups = number_at(&cols[COL_GROUPS], row, 0);
    return KN_OK;
}

static KnCode take_element(FooterRead *rd, const KnVector *cols, size_t row, KnErr *err)
{
    if (number_at(&cols[COL_ELEMENT], row, 0) == 0)
        KN_TRY(finish_file(rd, err));
    int64_t id = number_at(&cols[COL_FIELD_ID], row, -1);
    const char *name = text_at(rd, &cols[COL_NAME], row);
    *kn_vec_push(&rd->elements) = (KnPqElement){
        .name = name ? name : "",
        .type = text_at(rd, &cols[COL_TYPE], row),
        .converted = text_at(rd, &cols[COL_CONVERTED], row),
        .logical = text_at(rd, &cols[COL_LOGICAL], row),
        .sql_type = text_at(rd, &cols[COL_SQL_TYPE], row),
        .repeated = number_at(&cols[COL_REPEATED], row, 0) != 0,
        .n_children = number_at(&cols[COL_CHILDREN], row, -1),
        .field_id = id < 0 || id > INT32_MAX ? -1 : (int32_t)id,
    };
    return KN_OK;
}

static KnCode take_batch(FooterRead *rd, const KnBatch *batch, KnErr *err)
{
    KnVector cols[N_COLS];
    for (size_t c = 0; c < N_COLS; c++)
        cols[c] = kn_batch_vector(batch, c);
    for (size_t row = 0; row < kn_batch_rows(batch); row++) {
        if (kn_vector_is_null(&cols[COL_ROWS], row))
            KN_TRY(take_element(rd, cols, row, err));
        else
            KN_TRY(take_counts(rd, cols, row, err));
    }
    return KN_OK;
}

static KnCode read_all(FooterRead *rd, const char *const *paths, KnErr *err)
{
    KN_BUF_AUTO sql;
    kn_buf_init(&sql, KN_ENGINE_MAX_SQL);
    footer_sql(&sql, paths, rd->n);
    KN_TRY(kn_buf_check(&sql, err));
    KnStream *stream = NULL;
    KN_TRY(kn_session_query(rd->ses, sql.data, &stream, err));
    KnCode code = KN_OK;
    while (code == KN_OK) {
        KN_BATCH_AUTO batch = NULL;
        code = kn_stream_next(stream, &batch, err);
        if (code != KN_OK || !batch)
            break;
        code = take_batch(rd, batch, err);
    }
    kn_stream_close(stream);
    KN_TRY(code);
    KN_TRY(finish_file(rd, err));
    if (rd->n_trees != rd->n || rd->n_counts != rd->n)
        return kn_err_set(err, KN_E_CORRUPT, "%zu footers of %zu files", rd->n_trees, rd->n);
    return KN_OK;
}

static KnCode probe(KnSession *ses, const char *const *paths, size_t n, KnErr *err)
{
    KN_BUF_AUTO sql;
    kn_buf_init(&sql, KN_ENGINE_MAX_SQL);
    footer_sql(&sql, paths, n);
    KN_TRY(kn_buf_check(&sql, err));
    return kn_session_exec(ses, sql.data, NULL, err);
}

/* The engine's messages do not always name the file: find one that fails on its own. */
static KnCode blame(KnSession *ses, const char *const *paths, size_t n, KnCode code, KnErr *err)
{
    if (code == KN_E_CANCELLED || code == KN_E_NOMEM)
        return code;
    while (n > 1) {
        size_t half = n / 2;
        KnErr ignored = {0};
        if (probe(ses, paths, half, &ignored) == KN_OK) {
            paths += half;
            n -= half;
        } else {
            n = half;
        }
    }
    KnErr own = {0};
    KnCode again = probe(ses, paths, 1, &own);
    if (again == KN_OK)
        return code;
    if (err)
        *err = own;
    return own.code == KN_OK || strstr(own.msg, paths[0]) ? again
                                                          : kn_err_wrap(err, again, "%s", paths[0]);
}

static bool is_remote(const char *path)
{
    return path[0] != '/' && strstr(path, "://");
}

static KnCode take_lz4(void *arg, KnBatch *batch, KnErr *err)
{
    (void)err;
    FooterRead *rd = arg;
    KnVector names = kn_batch_vector(batch, 0);
    for (size_t row = 0; row < kn_batch_rows(batch); row++)
        for (size_t i = 0; i < rd->n; i++)
            if (kn_str_eq(kn_vector_str(&names, row), kn_str(rd->files[i].path)))
                rd->files[i].hadoop_lz4 = true;
    return KN_OK;
}

/* Footers of files that cannot be opened here are asked for their codecs too. */
static KnCode find_remote_lz4(FooterRead *rd, KnErr *err)
{
    KN_BUF_AUTO sql;
    kn_buf_init(&sql, KN_ENGINE_MAX_SQL);
    size_t n = 0;
    kn_buf_text(&sql, "SELECT DISTINCT file_name FROM parquet_metadata([");
    for (size_t i = 0; i < rd->n; i++) {
        if (!is_remote(rd->files[i].path))
            continue;
        kn_buf_text(&sql, n++ ? ", " : "");
        kn_sql_path(&sql, kn_str(rd->files[i].path));
    }
    kn_buf_text(&sql, "]) WHERE compression = 'LZ4'");
    if (n == 0)
        return KN_OK;
    KN_TRY(kn_buf_check(&sql, err));
    return kn_session_visit(rd->ses, sql.data, take_lz4, rd, err);
}

static KnCode check_codecs(KnPqFile *file, KnErr *err)
{
    if (is_remote(file->path))
        return KN_OK;
    uint64_t codecs = kn_pq_codecs_of(file->path);
    file->hadoop_lz4 = codecs >> KN_PQ_LZ4 & 1;
    if (codecs >> KN_PQ_LZO & 1)
        return kn_err_set(err, KN_E_UNSUPPORTED, "%s: codec LZO is not supported", file->path);
    return KN_OK;
}

KnCode kn_parquet_footers(KnSession *ses, KnArena *arena, const char *const *paths, size_t n,
                          KnPqFile **ret, KnErr *err)
{
    FooterRead rd = {.ses = ses, .arena = arena, .n = n};
    rd.files = kn_arena_zalloc(arena, (n + 1) * sizeof(*rd.files));
    for (size_t i = 0; i < n; i++)
        rd.files[i].path = kn_arena_strdup(arena, paths[i]);
    KnCode code = n ? read_all(&rd, paths, err) : KN_OK;
    kn_vec_done(&rd.elements);
    if (code != KN_OK)
        return n ? blame(ses, paths, n, code, err) : code;
    KN_TRY(find_remote_lz4(&rd, err));
    for (size_t i = 0; i < n; i++) {
        if (kn_pq_tree_has_variant_like(&rd.files[i].root))
            KN_TRY(resolve_variants(&rd, &rd.files[i], err));
        KN_TRY(check_codecs(&rd.files[i], err));
        rd.files[i].shape = kn_pq_tree_shape(arena, &rd.files[i].root);
    }
    *ret = rd.files;
    return KN_OK;
}
