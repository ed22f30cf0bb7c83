/* SPDX-License-Identifier: Apache-2.0 */
/*
 * changes_sift.c - which rows of a rewrite can have changed at all: a first look at all of them.
 *
 * A rewrite carries most rows over unchanged. Comparing two sides by whole rows costs memory for
 * each of them, so the sides are read once only to put fingerprints of rows into a sieve (sieve.c);
 * what it lets through, in the order of files and positions, is all that is read and compared by
 * value afterwards (read_narrow.c).
 *
 * The engine runs the first look on its threads: kn_sift(sieve and branch, task, position, column,
 * ...) is a function of ours inside the SELECT. Nested columns come as two hashes of their identity
 * (row_sql.h), others as they are. Sieves are known to the function by number from open to close.
 */
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/random.h"
#include "base/vec.h"
#include "iceberg/changes/sieve.h"
#include "iceberg/changes/spool_internal.h"
#include "iceberg/scan/row_sql.h"

enum { MAX_BRANCHES = 4, CALL_ROWS = 2048 };

struct KnSift {
    int64_t id; /* a multiple of MAX_BRANCHES */
    uint64_t seed;
    KnSieve *sieve;
    const uint64_t *firsts[MAX_BRANCHES]; /* slot of each task's row 0 */
    size_t n_tasks[MAX_BRANCHES];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static KN_VEC(KnSift *) open_sifts;

/* ---- the function ---- */

static KnSift *find_sift(int64_t key)
{
    KnSift *found = NULL;
    pthread_mutex_lock(&lock);
    kn_vec_foreach (&open_sifts, sift)
        if ((*sift)->id == key - key % MAX_BRANCHES)
            found = *sift;
    pthread_mutex_unlock(&lock);
    return found;
}

static KnCode sift_rows(const KnScalarCall *call, KnSift *sift, KnErr *err)
{
    const int64_t *tasks = call->args[1].data;
    const int64_t *rows = call->args[2].data;
    size_t branch = (size_t)(((const int64_t *)call->args[0].data)[0] % MAX_BRANCHES);
    uint64_t slots[CALL_ROWS];
    KnFingerprint prints[CALL_ROWS];
    if (call->rows > CALL_ROWS)
        return kn_err_set(err, KN_E_INVAL, "kn_sift: %zu rows in one call", call->rows);
    for (size_t i = 0; i < call->rows; i++) {
        if (tasks[i] < 0 || (size_t)tasks[i] >= sift->n_tasks[branch] || rows[i] < 0)
            return kn_err_set(err, KN_E_INVAL, "kn_sift: no task %" PRId64, tasks[i]);
        slots[i] = sift->firsts[branch][tasks[i]] + (uint64_t)rows[i];
    }
    KN_TRY(
        kn_fingerprint_rows(call->args + 3, call->n_args - 3, call->rows, sift->seed, prints, err));
    return kn_sieve_put(sift->sieve, slots, prints, call->rows, err);
}

static KnCode kn_sift(const KnScalarCall *call, KnErr *err)
{
    if (call->rows == 0)
        return KN_OK;
    KnSift *sift = find_sift(((const int64_t *)call->args[0].data)[0]);
    if (!sift)
        return kn_err_set(err, KN_E_INVAL, "kn_sift: the sieve is closed");
    KN_TRY(sift_rows(call, sift, err));
    for (size_t i = 0; i < call->rows; i++)
        ((int64_t *)call->out_data)[i] = 1;
    return KN_OK;
}

static KnCode make_known(KnSession *ses, KnErr *err)
{
    static const char *const types[] = {"BIGINT", "BIGINT", "BIGINT"};
    static pthread_mutex_t registering = PTHREAD_MUTEX_INITIALIZER;
    KnScalarFn fn = {.name = "kn_sift",
                     .arg_types = types,
                     .n_args = 3,
                     .return_type = "BIGINT",
                     .fn = kn_sift,
                     .any_more = true};
    KnEngine *eng = kn_session_engine(ses);
    pthread_mutex_lock(&registering);
    KnCode rc = kn_engine_has_scalar(eng, fn.name) ? KN_OK : kn_engine_add_scalar(eng, &fn, err);
    pthread_mutex_unlock(&registering);
    return rc;
}

/* ---- the first look ---- */

/* A column as arguments of kn_sift. */
static void put_argument(KnBuf *buf, const KnType *type, size_t i)
{
    if (!kn_type_is_nested(type)) {
        kn_buf_printf(buf, ", c%zu", i);
        return;
    }
    char name[24];
    int len = snprintf(name, sizeof(name), "c%zu", i);
    kn_buf_text(buf, ", hash(");
    kn_row_identity_sql(buf, type, (KnStr){name, (size_t)len});
    kn_buf_text(buf, "), md5_number_lower(CAST(");
    kn_row_identity_sql(buf, type, (KnStr){name, (size_t)len});
    kn_buf_text(buf, " AS VARCHAR))");
}

static KnCode read_all(const KnSift *sift, const KnChangesSides *sides, int64_t *ret_rows,
                       KnErr *err)
{
    KN_BUF_AUTO sql;
    kn_buf_init(&sql, (size_t)256 << 20);
    kn_buf_text(&sql, "SELECT coalesce(sum(n), 0)::BIGINT FROM (");
    for (size_t b = 0; b < sides->n; b++) {
        kn_buf_printf(&sql, "%sSELECT kn_sift(%" PRId64 "::BIGINT, t, p", b ? " UNION ALL " : "",
                      sift->id + (int64_t)b);
        for (size_t i = 0; i < sides->schema->root.n_fields; i++)
            put_argument(&sql, sides->schema->root.fields[i].type, i);
        kn_buf_text(&sql, ") AS n ");
        kn_changes_put_from(&sql, sides, b);
    }
    kn_buf_text(&sql, ") AS u");
    KN_TRY(kn_buf_check(&sql, err));
    return kn_session_query_i64(sides->ses, sql.data, ret_rows, err);
}

/* Slots: those of the branches before, then those of the branches after. */
static KnSieveOptions give_slots(KnSift *sift, const KnChangesSides *sides)
{
    KnSieveOptions opts = {.max_buckets = sides->max_buckets};
    for (int op = 0; op < 2; op++) {
        for (size_t b = 0; b < sides->n; b++) {
            const KnBranch *branch = &sides->branches[b];
            if (branch->op != op)
                continue;
            uint64_t *firsts =
                kn_arena_alloc(sides->arena, (branch->tasks.n + 1) * sizeof(*firsts));
            for (size_t t = 0; t < branch->tasks.n; t++) {
                firsts[t] = opts.n_slots;
                uint64_t rows = (uint64_t)branch->tasks.items[t].data->file.record_count;
                opts.n_slots += (rows + 63) / 64 * 64;
            }
            sift->firsts[b] = firsts;
            sift->n_tasks[b] = branch->tasks.n;
        }
        if (op == 0)
            opts.n_before = opts.n_slots;
    }
    return opts;
}

static void unlist(const KnSift *sift)
{
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < open_sifts.len; i++)
        if (open_sifts.items[i] == sift)
            open_sifts.items[i--] = open_sifts.items[--open_sifts.len];
    if (open_sifts.len == 0)
        kn_vec_done(&open_sifts);
    pthread_mutex_unlock(&lock);
}

static KnCode sift_sides(KnSift *sift, const KnChangesSides *sides, KnErr *err)
{
    KnSieveOptions opts = give_slots(sift, sides);
    KN_TRY(kn_sieve_open(&opts, &sift->sieve, err));
    KN_TRY(make_known(sides->ses, err));
    pthread_mutex_lock(&lock);
    *kn_vec_push(&open_sifts) = sift;
    pthread_mutex_unlock(&lock);
    int64_t rows = 0;
    KnCode rc = read_all(sift, sides, &rows, err);
    unlist(sift);
    KN_TRY(rc);
    const uint64_t *bits = NULL;
    KN_TRY(kn_sieve_run(sift->sieve, &bits, err));
    for (size_t b = 0; b < sides->n; b++)
        KN_TRY(kn_read_narrow(sides->branches[b].read, bits, sift->firsts[b], err));
    return KN_OK;
}

KnCode kn_changes_sift(const KnChangesSides *sides, KnSift **ret, KnErr *err)
{
    static int64_t next_id;
    KnSift *sift = calloc(1, sizeof(*sift));
    if (!sift)
        abort();
    sift->seed = (uint64_t)kn_random_id();
    pthread_mutex_lock(&lock);
    sift->id = next_id;
    next_id += MAX_BRANCHES;
    pthread_mutex_unlock(&lock);
    KnCode rc = sift_sides(sift, sides, err);
    if (rc != KN_OK) {
        kn_changes_sift_close(sift);
        return rc;
    }
    *ret = sift;
    return KN_OK;
}

KnSift *kn_changes_sift_close(KnSift *sift)
{
    if (!sift)
        return NULL;
    kn_sieve_close(sift->sieve);
    free(sift);
    return NULL;
}
