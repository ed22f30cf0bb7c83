/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stream.c - rows of a running query, one batch at a time.
 *
 * The engine produces rows into a bounded buffer while we read; its end and its errors look alike
 * (no chunk), so the result is asked for an error every time. A stream that failed repeats its
 * error, one that ended stays ended.
 */
#include "engine/stream_internal.h"

typedef enum StreamState { RUNNING, ENDED, FAILED, DETACHED } StreamState;

struct KnStream {
    KnSession *ses; /* NULL once detached */
    duckdb_result res;
    KnResultTypes *types;
    KnScanFiles files;
    StreamState state;
    KnErr failure; /* FAILED: what to repeat */
};

KnStream *kn_stream_new(KnSession *ses, duckdb_result res, const KnScanFiles *files)
{
    KnStream *stream = kn_engine_zalloc(sizeof(*stream));
    stream->ses = ses;
    stream->res = res;
    stream->files = *files;
    stream->types = kn_result_types_new(&stream->res);
    ses->live = stream;
    return stream;
}

static void leave(KnStream *stream)
{
    if (!stream->ses)
        return;
    duckdb_destroy_result(&stream->res);
    kn_engine_calls_seen(stream->ses->eng);
    stream->ses->live = NULL;
    stream->ses = NULL;
}

void kn_stream_detach(KnSession *ses)
{
    KnStream *stream = ses->live;
    if (!stream)
        return;
    leave(stream);
    if (stream->state == RUNNING)
        stream->state = DETACHED;
}

KnStream *kn_stream_close(KnStream *stream)
{
    if (!stream)
        return NULL;
    leave(stream);
    kn_result_types_unref(stream->types);
    free(stream);
    return NULL;
}

static KnCode fetch(KnStream *stream, KnBatch **ret)
{
    for (;;) {
        duckdb_data_chunk chunk = duckdb_fetch_chunk(stream->res);
        if (!chunk)
            break;
        if (duckdb_data_chunk_get_size(chunk) > 0) {
            *ret = kn_batch_new(chunk, stream->types);
            return KN_OK;
        }
        duckdb_destroy_data_chunk(&chunk);
    }
    const char *why = duckdb_result_error(&stream->res);
    if (why && *why) {
        stream->state = FAILED;
        return kn_engine_error_in(&stream->failure, why, &stream->files);
    }
    stream->state = ENDED;
    *ret = NULL;
    return KN_OK;
}

KnCode kn_stream_next(KnStream *stream, KnBatch **ret, KnErr *err)
{
    if (stream->state == RUNNING && fetch(stream, ret) == KN_OK)
        return KN_OK;
    switch (stream->state) {
    case ENDED:
        *ret = NULL;
        return KN_OK;
    case DETACHED:
        return kn_err_set(err, KN_E_INVAL,
                          "the stream was closed by a later statement of its session");
    default:
        if (err)
            *err = stream->failure;
        return stream->failure.code;
    }
}

size_t kn_stream_n_columns(const KnStream *stream)
{
    return stream->types->n;
}

const char *kn_stream_column_name(const KnStream *stream, size_t col)
{
    return col < stream->types->n ? stream->types->names[col] : NULL;
}

const KnColType *kn_stream_column_type(const KnStream *stream, size_t col)
{
    return col < stream->types->n ? &stream->types->types[col] : NULL;
}

duckdb_result *kn_stream_result(KnStream *stream)
{
    return &stream->res;
}

duckdb_connection kn_stream_connection(const KnStream *stream)
{
    return stream->ses ? stream->ses->con : NULL;
}
