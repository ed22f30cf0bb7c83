/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session.c - connections: statements run to the end, and the openings of streams.
 *
 * Every statement goes through prepare and streaming execution: one code path, and a SELECT among
 * several statements never piles up its rows. A failed prepared statement is never asked anything:
 * the engine's C++ exceptions would end the process.
 *
 * A session belongs to one thread at a time; kn_session_interrupt() and
 * kn_session_progress() may come from any.
 */
#include <assert.h>
#include <string.h>

#include "engine/engine_internal.h"
#include "engine/stream_internal.h"

KnCode kn_session_open(KnEngine *eng, KnSession **ret, KnErr *err)
{
    KnSession *ses = kn_engine_zalloc(sizeof(*ses));
    ses->eng = eng;
    if (duckdb_connect(eng->db, &ses->con) != DuckDBSuccess) {
        free(ses);
        return kn_err_set(err, KN_E_NOMEM, "the engine accepts no more connections");
    }
    atomic_fetch_add(&eng->n_sessions, 1);
    *ret = ses;
    return KN_OK;
}

KnSession *kn_session_close(KnSession *ses)
{
    if (!ses)
        return NULL;
    kn_stream_detach(ses);
    duckdb_disconnect(&ses->con);
    atomic_fetch_sub(&ses->eng->n_sessions, 1);
    free(ses);
    return NULL;
}

KnEngine *kn_session_engine(const KnSession *ses)
{
    return ses->eng;
}

void kn_session_interrupt(KnSession *ses)
{
    duckdb_interrupt(ses->con);
}

KnCode kn_session_measure(KnSession *ses, KnErr *err)
{
    static const char sql[] =
        "SET enable_progress_bar_print = false; SET enable_progress_bar = true; "
        "SET progress_bar_time = 0";
    return kn_session_exec(ses, sql, NULL, err);
}

double kn_session_progress(const KnSession *ses, uint64_t *ret_rows)
{
    duckdb_query_progress_type progress = duckdb_query_progress(ses->con);
    if (ret_rows)
        *ret_rows = progress.rows_processed;
    return progress.percentage < 0 ? -1 : progress.percentage / 100;
}

/* Run a prepared statement; *ret is a live result on success only. */
static KnCode execute(duckdb_prepared_statement stmt, const KnScanFiles *files, duckdb_result *ret,
                      KnErr *err)
{
    if (duckdb_execute_prepared_streaming(stmt, ret) == DuckDBSuccess)
        return KN_OK;
    KnCode code = kn_engine_error_in(err, duckdb_result_error(ret), files);
    duckdb_destroy_result(ret);
    return code;
}

static KnCode drain(duckdb_result *res, const KnScanFiles *files, int64_t *ret_changed, KnErr *err)
{
    bool counts = duckdb_result_return_type(*res) == DUCKDB_RESULT_TYPE_CHANGED_ROWS;
    int64_t changed = 0;
    for (;;) {
        duckdb_data_chunk chunk = duckdb_fetch_chunk(*res);
        if (!chunk)
            break;
        bool last = duckdb_data_chunk_get_size(chunk) == 0;
        if (counts && !last)
            changed = *(int64_t *)duckdb_vector_get_data(duckdb_data_chunk_get_vector(chunk, 0));
        duckdb_destroy_data_chunk(&chunk);
        if (last)
            break;
    }
    const char *why = duckdb_result_error(res);
    if (why && *why)
        return kn_engine_error_in(err, why, files);
    *ret_changed = changed;
    return KN_OK;
}

static KnCode run_extracted(KnSession *ses, duckdb_extracted_statements stmts, idx_t index,
                            const KnScanFiles *files, int64_t *ret_changed, KnErr *err)
{
    duckdb_prepared_statement stmt = NULL;
    duckdb_result res = {0};
    KnCode code;
    if (duckdb_prepare_extracted_statement(ses->con, stmts, index, &stmt) != DuckDBSuccess)
        code = kn_engine_error_in(err, duckdb_prepare_error(stmt), files);
    else
        code = execute(stmt, files, &res, err);
    if (code == KN_OK) {
        code = drain(&res, files, ret_changed, err);
        duckdb_destroy_result(&res);
    }
    kn_engine_calls_seen(ses->eng);
    duckdb_destroy_prepare(&stmt);
    return code;
}

KnCode kn_session_exec(KnSession *ses, const char *sql, int64_t *ret_changed, KnErr *err)
{
    kn_stream_detach(ses);
    duckdb_extracted_statements stmts = NULL;
    idx_t n = duckdb_extract_statements(ses->con, sql, &stmts);
    const char *why = n == 0 ? duckdb_extract_statements_error(stmts) : NULL;
    KnCode code = why && *why ? kn_engine_error(err, why) : KN_OK;
    int64_t changed = 0;
    KnScanFiles files;
    kn_scan_files_find(sql, &files);
    for (idx_t i = 0; i < n && code == KN_OK; i++)
        code = run_extracted(ses, stmts, i, &files, &changed, err);
    duckdb_destroy_extracted(&stmts);
    if (code == KN_OK && ret_changed)
        *ret_changed = changed;
    return code;
}

KnCode kn_session_query(KnSession *ses, const char *sql, KnStream **ret, KnErr *err)
{
    kn_stream_detach(ses);
    duckdb_prepared_statement stmt = NULL;
    duckdb_result res = {0};
    KnScanFiles files;
    kn_scan_files_find(sql, &files);
    KnCode code;
    if (duckdb_prepare(ses->con, sql, &stmt) != DuckDBSuccess)
        code = kn_engine_error_in(err, duckdb_prepare_error(stmt), &files);
    else
        code = execute(stmt, &files, &res, err);
    /* The running query holds what it needs of the statement. */
    duckdb_destroy_prepare(&stmt);
    kn_engine_calls_seen(ses->eng);
    KN_TRY(code);
    *ret = kn_stream_new(ses, res, &files);
    return KN_OK;
}

KnCode kn_session_visit(KnSession *ses, const char *sql, KnBatchFn fn, void *arg, KnErr *err)
{
    KnStream *stream = NULL;
    KN_TRY(kn_session_query(ses, sql, &stream, err));
    KnCode rc = KN_OK;
    while (rc == KN_OK) {
        KN_BATCH_AUTO batch = NULL;
        rc = kn_stream_next(stream, &batch, err);
        if (rc != KN_OK || !batch)
            break;
        rc = fn(arg, batch, err);
    }
    kn_stream_close(stream);
    return rc;
}

/* The batch with the first row, or KN_E_NOTFOUND when there is none or its first value is NULL. */
static KnCode first_value(KnSession *ses, const char *sql, KnBatch **ret, KnErr *err)
{
    KnStream *stream = NULL;
    KN_BATCH_AUTO batch = NULL;
    KN_TRY(kn_session_query(ses, sql, &stream, err));
    KnCode code = kn_stream_next(stream, &batch, err);
    kn_stream_close(stream);
    KN_TRY(code);
    if (!batch || kn_batch_n_columns(batch) == 0)
        return kn_err_set(err, KN_E_NOTFOUND, "no row: %.200s", sql);
    KnVector vec = kn_batch_vector(batch, 0);
    if (vec.type->kind == KN_COL_NULL || kn_vector_is_null(&vec, 0))
        return kn_err_set(err, KN_E_NOTFOUND, "no value: %.200s", sql);
    *ret = batch;
    batch = NULL;
    return KN_OK;
}

KnCode kn_session_query_i64(KnSession *ses, const char *sql, int64_t *ret, KnErr *err)
{
    KN_BATCH_AUTO batch = NULL;
    KN_TRY(first_value(ses, sql, &batch, err));
    KnVector vec = kn_batch_vector(batch, 0);
    switch (vec.type->kind) {
    case KN_COL_FLOAT:
    case KN_COL_DOUBLE:
    case KN_COL_DECIMAL:
    case KN_COL_UUID:
    case KN_COL_VARCHAR:
    case KN_COL_BLOB:
    case KN_COL_STRUCT:
    case KN_COL_LIST:
    case KN_COL_MAP:
    case KN_COL_NULL:
    case KN_COL_OTHER:
        return kn_err_set(err, KN_E_INVAL, "not an integer but %s: %.200s",
                          kn_col_kind_name(vec.type->kind), sql);
    default:
        break;
    }
    __int128 value = kn_vector_int128(&vec, 0);
    if (value < INT64_MIN || value > INT64_MAX)
        return kn_err_set(err, KN_E_INVAL, "beyond 64 bits: %.200s", sql);
    *ret = (int64_t)value;
    return KN_OK;
}

/* True when the statement's first column is text already; an error shows again when it runs. */
static bool yields_text(KnSession *ses, const char *sql)
{
    duckdb_prepared_statement stmt = NULL;
    bool text = true;
    if (duckdb_prepare(ses->con, sql, &stmt) == DuckDBSuccess &&
        duckdb_prepared_statement_column_count(stmt) > 0)
        text = duckdb_prepared_statement_column_type(stmt, 0) == DUCKDB_TYPE_VARCHAR;
    duckdb_destroy_prepare(&stmt);
    return text;
}

KnCode kn_session_query_text(KnSession *ses, const char *sql, KnBuf *ret, KnErr *err)
{
    kn_stream_detach(ses);
    KN_BUF_AUTO cast;
    kn_buf_init(&cast, KN_ENGINE_MAX_SQL);
    if (!yields_text(ses, sql)) {
        size_t len = strlen(sql);
        while (len && strchr("; \t\r\n", sql[len - 1]))
            len--;
        kn_buf_text(&cast, "SELECT CAST(COLUMNS(*) AS VARCHAR) FROM (");
        kn_buf_append(&cast, sql, len);
        kn_buf_text(&cast, "\n)");
        KN_TRY(kn_buf_check(&cast, err));
        sql = cast.data;
    }
    KN_BATCH_AUTO batch = NULL;
    KN_TRY(first_value(ses, sql, &batch, err));
    KnVector vec = kn_batch_vector(batch, 0);
    if (vec.type->kind != KN_COL_VARCHAR)
        return kn_err_set(err, KN_E_INVAL, "not text but %s: %.200s",
                          kn_col_kind_name(vec.type->kind), sql);
    kn_buf_reset(ret);
    kn_buf_str(ret, kn_vector_str(&vec, 0));
    return kn_buf_check(ret, err);
}
