/* SPDX-License-Identifier: Apache-2.0 */
/* arrow.c - see arrow.h. The engine converts; here are the rows of slices and the errors. */
#include "engine/arrow.h"

#include "engine/engine_internal.h"

static KnCode take_error(duckdb_error_data data, KnErr *err)
{
    KnCode rc = KN_OK;
    if (data && duckdb_error_data_has_error(data))
        rc = kn_engine_error(err, duckdb_error_data_message(data));
    if (data)
        duckdb_destroy_error_data(&data);
    return rc;
}

static KnCode arrow_options(KnStream *stream, duckdb_arrow_options *ret, KnErr *err)
{
    duckdb_connection con = kn_stream_connection(stream);
    if (!con)
        return kn_err_set(err, KN_E_INVAL, "the stream was closed by a later query of its session");
    duckdb_connection_get_arrow_options(con, ret);
    return KN_OK;
}

KnCode kn_stream_arrow_schema(KnStream *stream, struct ArrowSchema *ret, KnErr *err)
{
    duckdb_arrow_options opts = NULL;
    KN_TRY(arrow_options(stream, &opts, err));
    size_t n = kn_stream_n_columns(stream);
    duckdb_logical_type *types = kn_engine_zalloc((n + 1) * sizeof(duckdb_logical_type));
    const char **names = kn_engine_zalloc((n + 1) * sizeof(char *));
    for (size_t i = 0; i < n; i++) {
        types[i] = duckdb_column_logical_type(kn_stream_result(stream), i);
        names[i] = kn_stream_column_name(stream, i);
    }
    KnCode rc = take_error(duckdb_to_arrow_schema(opts, types, names, n, ret), err);
    for (size_t i = 0; i < n; i++)
        duckdb_destroy_logical_type(&types[i]);
    free(types);
    free(names);
    duckdb_destroy_arrow_options(&opts);
    return rc;
}

/* A slice's array: the whole chunk is converted. */
static KnCode convert(duckdb_arrow_options opts, const KnBatch *batch, struct ArrowArray *ret,
                      KnErr *err)
{
    size_t first = 0;
    duckdb_data_chunk chunk = kn_batch_chunk(batch, &first);
    KN_TRY(take_error(duckdb_data_chunk_to_arrow(opts, chunk, ret), err));
    ret->offset += (int64_t)first;
    ret->length = (int64_t)kn_batch_rows(batch);
    return KN_OK;
}

KnCode kn_batch_arrow_array(KnStream *stream, const KnBatch *batch, struct ArrowArray *ret,
                            KnErr *err)
{
    duckdb_arrow_options opts = NULL;
    KN_TRY(arrow_options(stream, &opts, err));
    KnCode rc = convert(opts, batch, ret, err);
    duckdb_destroy_arrow_options(&opts);
    return rc;
}

static KnCode batch_schema(duckdb_arrow_options opts, const KnBatch *batch, struct ArrowSchema *ret,
                           KnErr *err)
{
    size_t first = 0, n = kn_batch_n_columns(batch);
    duckdb_data_chunk chunk = kn_batch_chunk(batch, &first);
    duckdb_logical_type *types = kn_engine_zalloc((n + 1) * sizeof(duckdb_logical_type));
    for (size_t i = 0; i < n; i++)
        types[i] = duckdb_vector_get_column_type(duckdb_data_chunk_get_vector(chunk, i));
    KnCode rc =
        take_error(duckdb_to_arrow_schema(opts, types, kn_batch_types(batch)->names, n, ret), err);
    for (size_t i = 0; i < n; i++)
        duckdb_destroy_logical_type(&types[i]);
    free(types);
    return rc;
}

KnCode kn_batch_arrow(KnSession *ses, const KnBatch *batch, struct ArrowSchema *ret_schema,
                      struct ArrowArray *ret, KnErr *err)
{
    duckdb_arrow_options opts = NULL;
    duckdb_connection_get_arrow_options(ses->con, &opts);
    KnCode rc = batch_schema(opts, batch, ret_schema, err);
    if (rc == KN_OK) {
        rc = convert(opts, batch, ret, err);
        if (rc != KN_OK)
            ret_schema->release(ret_schema);
    }
    duckdb_destroy_arrow_options(&opts);
    return rc;
}
