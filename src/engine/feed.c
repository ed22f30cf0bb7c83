/* SPDX-License-Identifier: Apache-2.0 */
/*
 * feed.c - batches of ours as a relation: the table function kn_feed('<name>').
 *
 * The function is registered once for each engine; binding looks the name up among the open feeds.
 * The engine's worker threads pull one batch at a time under the feed's lock. Vectors are handed
 * over by reference: the engine's vectors share their buffers by count, so the batch may be dropped
 * at once and its memory stays as long as something still points at it. A window that does not
 * start at its chunk's first row is a selection over the same buffers; one that does is just the
 * shorter cardinality.
 *
 * A feed is consumed by one statement. It is counted: the open handle and every bound statement
 * hold a reference, so that closing it early never leaves a dangling pointer in a prepared plan; a
 * closed feed reads as ended.
 */
#include <stdio.h>
#include <string.h>

#include "engine/engine_internal.h"

enum { FEED_BLOCK = 2048, VECTOR_ROWS = 2048 };

struct KnFeed {
    atomic_size_t refs;
    KnFeed *next_open; /* under the engine's lock */
    KnEngine *eng;
    KnArena *arena;
    const char *name;
    size_t n_columns;
    const char **column_names;
    duckdb_logical_type *logical;
    KnColType *types;
    pthread_mutex_t lock; /* guards what follows, and is held during next() */
    KnFeedNext next;
    void *arg;
    bool ended;
    KnResultTypes *checked; /* the last batch's types, known to fit */
};

static void feed_unref(void *arg)
{
    KnFeed *feed = arg;
    if (atomic_fetch_sub_explicit(&feed->refs, 1, memory_order_acq_rel) != 1)
        return;
    for (size_t i = 0; i < feed->n_columns; i++)
        duckdb_destroy_logical_type(&feed->logical[i]);
    kn_result_types_unref(feed->checked);
    pthread_mutex_destroy(&feed->lock);
    kn_arena_free(feed->arena);
}

static KnFeed *feed_find(KnEngine *eng, const char *name)
{
    pthread_mutex_lock(&eng->lock);
    KnFeed *feed = eng->feeds;
    while (feed && strcmp(feed->name, name) != 0)
        feed = feed->next_open;
    if (feed)
        atomic_fetch_add(&feed->refs, 1);
    pthread_mutex_unlock(&eng->lock);
    return feed;
}

static void feed_bind(duckdb_bind_info info)
{
    duckdb_value value = duckdb_bind_get_parameter(info, 0);
    char *name = duckdb_get_varchar(value);
    duckdb_destroy_value(&value);
    KnFeed *feed = name ? feed_find(duckdb_bind_get_extra_info(info), name) : NULL;
    if (!feed) {
        char text[128];
        if (snprintf(text, sizeof(text), "no open feed is named '%.80s'", name ? name : "") > 0)
            duckdb_bind_set_error(info, text);
        duckdb_free(name);
        return;
    }
    duckdb_free(name);
    for (size_t i = 0; i < feed->n_columns; i++)
        duckdb_bind_add_result_column(info, feed->column_names[i], feed->logical[i]);
    duckdb_bind_set_bind_data(info, feed, feed_unref);
}

static void feed_init(duckdb_init_info info)
{
    /* Threads pull in turn; what they do with the rows afterwards runs side by side. */
    duckdb_init_set_max_threads(info, 64);
}

static KnCode batch_check(KnFeed *feed, const KnBatch *batch, KnErr *err)
{
    KnResultTypes *types = kn_batch_types(batch);
    if (kn_batch_n_columns(batch) != feed->n_columns)
        return kn_err_set(err, KN_E_INVAL, "feed %s: a batch has %zu columns, not %zu", feed->name,
                          kn_batch_n_columns(batch), feed->n_columns);
    if (types == feed->checked)
        return KN_OK;
    for (size_t i = 0; i < feed->n_columns; i++) {
        const KnColType *type = kn_batch_column_type(batch, i);
        if (!kn_col_type_same_layout(type, &feed->types[i]))
            return kn_err_set(err, KN_E_INVAL, "feed %s: column %s is %s in a batch, not %s",
                              feed->name, feed->column_names[i], kn_col_kind_name(type->kind),
                              kn_col_kind_name(feed->types[i].kind));
    }
    kn_result_types_unref(feed->checked);
    feed->checked = kn_result_types_ref(types);
    return KN_OK;
}

/* The next batch with rows, or NULL at the end. */
static KnCode feed_pull(KnFeed *feed, KnBatch **ret, KnErr *err)
{
    KnCode code = KN_OK;
    KnBatch *batch = NULL;
    pthread_mutex_lock(&feed->lock);
    while (!feed->ended && !batch && code == KN_OK) {
        code = feed->next(feed->arg, &batch, err);
        if (code == KN_OK && batch && kn_batch_rows(batch) == 0)
            batch = kn_batch_unref(batch);
        else if (code != KN_OK || !batch)
            feed->ended = true;
    }
    if (code == KN_OK && batch)
        code = batch_check(feed, batch, err);
    if (code != KN_OK)
        batch = kn_batch_unref(batch);
    pthread_mutex_unlock(&feed->lock);
    *ret = batch;
    return code;
}

static void emit(const KnBatch *batch, duckdb_data_chunk output)
{
    size_t first;
    size_t rows = kn_batch_rows(batch);
    duckdb_data_chunk chunk = kn_batch_chunk(batch, &first);
    duckdb_selection_vector sel = NULL;
    if (first > 0) {
        sel = duckdb_create_selection_vector(rows);
        sel_t *indexes = duckdb_selection_vector_get_data_ptr(sel);
        for (size_t i = 0; i < rows; i++)
            indexes[i] = (sel_t)(first + i);
    }
    for (size_t c = 0; c < kn_batch_n_columns(batch); c++) {
        duckdb_vector to = duckdb_data_chunk_get_vector(output, c);
        duckdb_vector_reference_vector(to, duckdb_data_chunk_get_vector(chunk, c));
        if (sel)
            duckdb_slice_vector(to, sel, rows);
    }
    if (sel)
        duckdb_destroy_selection_vector(sel);
    duckdb_data_chunk_set_size(output, rows);
}

static void feed_function(duckdb_function_info info, duckdb_data_chunk output)
{
    KnFeed *feed = duckdb_function_get_bind_data(info);
    KnErr err = {0};
    KN_BATCH_AUTO batch = NULL;
    KnCode code = feed_pull(feed, &batch, &err);
    if (code != KN_OK) {
        char text[640];
        duckdb_function_set_error(info, kn_engine_error_pack(&err, code, text));
        return;
    }
    if (batch)
        emit(batch, output);
    else
        duckdb_data_chunk_set_size(output, 0);
}

static KnCode function_register(KnEngine *eng, KnErr *err)
{
    if (eng->feed_registered)
        return KN_OK;
    duckdb_table_function function = duckdb_create_table_function();
    duckdb_logical_type text = duckdb_create_logical_type(DUCKDB_TYPE_VARCHAR);
    duckdb_table_function_set_name(function, "kn_feed");
    duckdb_table_function_add_parameter(function, text);
    duckdb_table_function_set_extra_info(function, eng, NULL);
    duckdb_table_function_set_bind(function, feed_bind);
    duckdb_table_function_set_init(function, feed_init);
    duckdb_table_function_set_function(function, feed_function);
    eng->feed_registered = duckdb_register_table_function(eng->admin, function) == DuckDBSuccess;
    duckdb_destroy_logical_type(&text);
    duckdb_destroy_table_function(&function);
    return eng->feed_registered ? KN_OK
                                : kn_err_set(err, KN_E_IO, "the engine takes no table function");
}

static KnFeed *feed_new(KnEngine *eng, const KnFeedOptions *opts)
{
    KnArena *arena = kn_arena_new(FEED_BLOCK);
    KnFeed *feed = kn_arena_zalloc(arena, sizeof(*feed));
    size_t n = opts->n_columns;
    atomic_init(&feed->refs, 1);
    pthread_mutex_init(&feed->lock, NULL);
    feed->arena = arena;
    feed->eng = eng;
    feed->name = kn_arena_strdup(arena, opts->name);
    feed->n_columns = n;
    feed->column_names = kn_arena_zalloc(arena, n * sizeof(*feed->column_names));
    feed->logical = kn_arena_zalloc(arena, n * sizeof(duckdb_logical_type));
    feed->types = kn_arena_zalloc(arena, n * sizeof(*feed->types));
    feed->next = opts->next;
    feed->arg = opts->arg;
    return feed;
}

static KnCode feed_publish(KnFeed *feed, KnErr *err)
{
    KnEngine *eng = feed->eng;
    KnCode code = KN_OK;
    pthread_mutex_lock(&eng->lock);
    for (KnFeed *f = eng->feeds; f; f = f->next_open) {
        if (strcmp(f->name, feed->name) == 0)
            code = kn_err_set(err, KN_E_EXISTS, "feed %s is open already", feed->name);
    }
    if (code == KN_OK)
        code = function_register(eng, err);
    if (code == KN_OK) {
        feed->next_open = eng->feeds;
        eng->feeds = feed;
    }
    pthread_mutex_unlock(&eng->lock);
    return code;
}

KnCode kn_feed_open(KnEngine *eng, const KnFeedOptions *opts, KnFeed **ret, KnErr *err)
{
    if (opts->n_columns == 0)
        return kn_err_set(err, KN_E_INVAL, "feed %s: no columns", opts->name);
    KnFeed *feed = feed_new(eng, opts);
    KnCode code = KN_OK;
    for (size_t i = 0; i < opts->n_columns && code == KN_OK; i++) {
        feed->column_names[i] = kn_arena_strdup(feed->arena, opts->column_names[i]);
        code = kn_engine_type_parse(eng, opts->column_types[i], &feed->logical[i], err);
        if (code == KN_OK)
            kn_col_type_fill(feed->arena, feed->logical[i], &feed->types[i]);
    }
    if (code == KN_OK)
        code = feed_publish(feed, err);
    if (code != KN_OK) {
        feed_unref(feed);
        return code;
    }
    *ret = feed;
    return KN_OK;
}

KnFeed *kn_feed_close(KnFeed *feed)
{
    if (!feed)
        return NULL;
    pthread_mutex_lock(&feed->eng->lock);
    KnFeed **at = &feed->eng->feeds;
    while (*at && *at != feed)
        at = &(*at)->next_open;
    if (*at)
        *at = feed->next_open;
    pthread_mutex_unlock(&feed->eng->lock);
    pthread_mutex_lock(&feed->lock);
    feed->ended = true;
    pthread_mutex_unlock(&feed->lock);
    feed_unref(feed);
    return NULL;
}
