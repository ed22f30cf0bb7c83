/* SPDX-License-Identifier: Apache-2.0 */
/*
 * read_keys.c - which rows can have the key of an equality delete at all: a Bloom filter before the
 * join.
 *
 * Most rows have no deleted key, and a hash join is dear for each row that it looks up. So the keys
 * are first put into a table of words, four bits each in one word, 16 bits a key and 16 MiB at the
 * most; the join sees the rows whose bits are all set, which are those with a deleted key and one
 * or two of a hundred others. Keys are the same when their fingerprints are (engine/fingerprint.h),
 * which compares as the join does: NULL equals NULL, NaN equals NaN.
 *
 * kn_key_add(filter, key, ...) and kn_key_find(filter, key, ...) are functions of ours inside the
 * engine; filters are known to them by number from open to close.
 */
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/random.h"
#include "base/vec.h"
#include "engine/fingerprint.h"
#include "iceberg/scan/read_internal.h"

enum { MAX_WORDS = 1 << 21, CALL_ROWS = 2048 };

struct KnKeyFilter {
    int64_t id;
    uint64_t seed;
    uint64_t n_words; /* a power of two */
    atomic_uint_fast64_t *words;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static KN_VEC(KnKeyFilter *) open_filters;

static KnKeyFilter *find_filter(int64_t id)
{
    KnKeyFilter *found = NULL;
    pthread_mutex_lock(&lock);
    kn_vec_foreach (&open_filters, filter)
        if ((*filter)->id == id)
            found = *filter;
    pthread_mutex_unlock(&lock);
    return found;
}

/* The filter of a call, and the fingerprints of its keys. */
static KnCode call_keys(const KnScalarCall *call, KnKeyFilter **ret, KnFingerprint *ret_prints,
                        KnErr *err)
{
    KnKeyFilter *filter = find_filter(((const int64_t *)call->args[0].data)[0]);
    if (!filter || call->rows > CALL_ROWS)
        return kn_err_set(err, KN_E_INVAL, "kn_key: the filter is closed");
    *ret = filter;
    return kn_fingerprint_rows(call->args + 1, call->n_args - 1, call->rows, filter->seed,
                               ret_prints, err);
}

static uint64_t bits_of(const KnFingerprint *print)
{
    uint64_t bits = 0;
    for (int i = 0; i < 4; i++)
        bits |= UINT64_C(1) << (print->b >> (6 * i) & 63);
    return bits;
}

static KnCode key_add(const KnScalarCall *call, KnErr *err)
{
    KnFingerprint prints[CALL_ROWS];
    KnKeyFilter *filter;
    if (call->rows == 0)
        return KN_OK;
    KN_TRY(call_keys(call, &filter, prints, err));
    for (size_t i = 0; i < call->rows; i++) {
        atomic_fetch_or_explicit(&filter->words[prints[i].a & (filter->n_words - 1)],
                                 bits_of(&prints[i]), memory_order_relaxed);
        ((bool *)call->out_data)[i] = true;
    }
    return KN_OK;
}

static KnCode key_find(const KnScalarCall *call, KnErr *err)
{
    KnFingerprint prints[CALL_ROWS];
    KnKeyFilter *filter;
    if (call->rows == 0)
        return KN_OK;
    KN_TRY(call_keys(call, &filter, prints, err));
    for (size_t i = 0; i < call->rows; i++) {
        uint64_t bits = bits_of(&prints[i]);
        uint64_t word = atomic_load_explicit(&filter->words[prints[i].a & (filter->n_words - 1)],
                                             memory_order_relaxed);
        ((bool *)call->out_data)[i] = (word & bits) == bits;
    }
    return KN_OK;
}

static KnCode make_known(KnSession *ses, KnErr *err)
{
    static const char *const types[] = {"BIGINT"};
    static const KnScalarFn fns[] = {
        {.name = "kn_key_add",
         .arg_types = types,
         .n_args = 1,
         .return_type = "BOOLEAN",
         .fn = key_add,
         .any_more = true},
        {.name = "kn_key_find",
         .arg_types = types,
         .n_args = 1,
         .return_type = "BOOLEAN",
         .fn = key_find,
         .any_more = true},
    };
    static pthread_mutex_t registering = PTHREAD_MUTEX_INITIALIZER;
    KnEngine *eng = kn_session_engine(ses);
    KnCode rc = KN_OK;
    pthread_mutex_lock(&registering);
    for (size_t i = 0; rc == KN_OK && i < sizeof(fns) / sizeof(fns[0]); i++)
        if (!kn_engine_has_scalar(eng, fns[i].name))
            rc = kn_engine_add_scalar(eng, &fns[i], err);
    pthread_mutex_unlock(&registering);
    return rc;
}

static void put_call(const char *function, const KnKeyFilter *filter, size_t n_keys, KnBuf *buf)
{
    kn_buf_printf(buf, "%s(%" PRId64 "::BIGINT", function, filter->id);
    for (size_t i = 0; i < n_keys; i++)
        kn_buf_printf(buf, ", k%zu", i);
    kn_buf_char(buf, ')');
}

static KnCode add_keys(KnKeyFilter *filter, KnSession *ses, const char *table, size_t n_keys,
                       KnErr *err)
{
    int64_t rows = 0;
    KN_BUF_AUTO sql;
    kn_buf_init(&sql, 1 << 20);
    kn_buf_printf(&sql, "SELECT count(*) FROM %s", table);
    KN_TRY(kn_session_query_i64(ses, sql.data, &rows, err));
    filter->n_words = 64;
    while (filter->n_words < MAX_WORDS && filter->n_words < (uint64_t)rows / 4)
        filter->n_words *= 2;
    filter->words = calloc(filter->n_words, sizeof(*filter->words));
    if (!filter->words)
        return kn_err_set(err, KN_E_NOMEM, "no memory for the keys of deletes");
    kn_buf_reset(&sql);
    kn_buf_text(&sql, "SELECT count(*) FILTER (");
    put_call("kn_key_add", filter, n_keys, &sql);
    kn_buf_printf(&sql, ") FROM %s", table);
    KN_TRY(kn_buf_check(&sql, err));
    return kn_session_query_i64(ses, sql.data, &rows, err);
}

KnCode kn_key_filter_open(KnSession *ses, const char *table, size_t n_keys, KnKeyFilter **ret,
                          KnErr *err)
{
    static int64_t next_id;
    KN_TRY(make_known(ses, err));
    KnKeyFilter *filter = calloc(1, sizeof(*filter));
    if (!filter)
        abort();
    filter->seed = (uint64_t)kn_random_id();
    pthread_mutex_lock(&lock);
    filter->id = next_id++;
    *kn_vec_push(&open_filters) = filter;
    pthread_mutex_unlock(&lock);
    KnCode rc = add_keys(filter, ses, table, n_keys, err);
    if (rc != KN_OK) {
        kn_key_filter_close(filter);
        return rc;
    }
    *ret = filter;
    return KN_OK;
}

void kn_key_filter_sql(const KnKeyFilter *filter, size_t n_keys, KnBuf *buf)
{
    put_call("kn_key_find", filter, n_keys, buf);
}

KnKeyFilter *kn_key_filter_close(KnKeyFilter *filter)
{
    if (!filter)
        return NULL;
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < open_filters.len; i++)
        if (open_filters.items[i] == filter)
            open_filters.items[i--] = open_filters.items[--open_filters.len];
    if (open_filters.len == 0)
        kn_vec_done(&open_filters);
    pthread_mutex_unlock(&lock);
    free(filter->words);
    free(filter);
    return NULL;
}
