/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sieve.c - rows before and after that cancel out, found by adding up fingerprints in buckets.
 *
 * Fingerprints go to a file (24 bytes a row at most, in blocks, in whatever order they come). A
 * round adds those of each bucket up, plus before and minus after: a bucket whose sums are zero
 * holds as many of each row before as after, unless sums of 128-bit random numbers agree by chance,
 * so its rows cannot differ and fall through. Rows that stayed but share a bucket with one that
 * changed are kept, in a second file; further rounds, with other buckets, work on what the round
 * before kept, until nothing more falls through.
 *
 * When there are more changed rows than buckets, a round works through the rows in parts, one table
 * of buckets after another. How many changed is then estimated from a part of the rows that is
 * small enough for its buckets to hold about one row each. Where more than half changed, sieving is
 * no gain and all rows are kept.
 */
#include "iceberg/changes/sieve.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
    BLOCK_ROWS = 2048,
    DEFAULT_BUCKETS = 1 << 20,
    MIN_BUCKETS = 64,
    MAX_PARTS = 64,
    MAX_ROUNDS = 16,
    MANY_ROWS = 1 << 20,
    HUGE_PAGE = 2 << 20,
};

typedef struct BlockHead {
    uint32_t n;
    uint32_t in_step; /* slots are first, first + 1, ...; otherwise they follow the fingerprints */
    uint64_t first;
} BlockHead;

typedef struct Block {
    BlockHead head;
    KnFingerprint rows[BLOCK_ROWS];
    uint64_t slots[BLOCK_ROWS]; /* not in the file when in_step */
} Block;

typedef struct Log {
    int file;
    uint64_t end, n_rows;
} Log;

struct KnSieve {
    KnSieveOptions opts;
    pthread_mutex_t lock; /* log.end, log.n_rows, while rows are put */
    Log log;              /* rows that are still in question */
    size_t round;
    uint64_t n_buckets, n_parts; /* powers of two */
    KnFingerprint *sums;         /* of the buckets of one part */
    uint64_t *dirty;             /* a bit for each bucket of all parts: its rows differ */
    uint64_t *bits;
    Block read, kept; /* the block that is being read; rows that are to be written */
};

/* ---- files of fingerprints ---- */

static KnCode log_open(Log *ret, KnErr *err)
{
    const char *tmp = getenv("TMPDIR");
    char path[4096];
    int len = snprintf(path, sizeof(path), "%s/knut-rows-XXXXXX", tmp && *tmp ? tmp : "/tmp");
    if (len < 0 || (size_t)len >= sizeof(path))
        return kn_err_set(err, KN_E_INVAL, "TMPDIR is too long a path");
    int file = mkstemp(path);
    if (file < 0)
        return kn_err_set(err, KN_E_IO, "cannot make the file %s", path);
    (void)unlink(path);
    *ret = (Log){.file = file};
    return KN_OK;
}

static void log_close(Log *log)
{
    if (log->file >= 0)
        (void)close(log->file);
    log->file = -1;
}

static KnCode write_at(int file, const void *data, size_t len, uint64_t at, KnErr *err)
{
    const char *from = data;
    while (len > 0) {
        ssize_t n = pwrite(file, from, len, (off_t)at);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return kn_err_set(err, KN_E_IO, "cannot write fingerprints of rows under TMPDIR");
        from += n;
        at += (uint64_t)n;
        len -= (size_t)n;
    }
    return KN_OK;
}

static KnCode read_at(int file, void *data, size_t len, uint64_t at, KnErr *err)
{
    char *to = data;
    while (len > 0) {
        ssize_t n = pread(file, to, len, (off_t)at);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return kn_err_set(err, KN_E_IO, "cannot read fingerprints of rows back");
        to += n;
        at += (uint64_t)n;
        len -= (size_t)n;
    }
    return KN_OK;
}

static uint64_t block_size(const BlockHead *head)
{
    uint64_t row = sizeof(KnFingerprint) + (head->in_step ? 0 : sizeof(uint64_t));
    return sizeof(*head) + head->n * row;
}

static BlockHead head_of(const uint64_t *slots, size_t n)
{
    BlockHead head = {.n = (uint32_t)n, .in_step = 1, .first = slots[0]};
    for (size_t i = 0; i < n; i++)
        if (slots[i] != slots[0] + i)
            head.in_step = 0;
    return head;
}

static KnCode write_block(int file, uint64_t at, const BlockHead *head, const KnFingerprint *rows,
                          const uint64_t *slots, KnErr *err)
{
    char buf[sizeof(Block)];
    size_t len = sizeof(*head);
    memcpy(buf, head, sizeof(*head));
    memcpy(buf + len, rows, head->n * sizeof(*rows));
    len += head->n * sizeof(*rows);
    if (!head->in_step) {
        memcpy(buf + len, slots, head->n * sizeof(*slots));
        len += head->n * sizeof(*slots);
    }
    return write_at(file, buf, len, at, err);
}

KnCode kn_sieve_put(KnSieve *sieve, const uint64_t *slots, const KnFingerprint *rows, size_t n,
                    KnErr *err)
{
    for (size_t done = 0; done < n;) {
        size_t count = n - done < BLOCK_ROWS ? n - done : BLOCK_ROWS;
        BlockHead head = head_of(slots + done, count);
        pthread_mutex_lock(&sieve->lock);
        uint64_t at = sieve->log.end;
        sieve->log.end += block_size(&head);
        sieve->log.n_rows += count;
        pthread_mutex_unlock(&sieve->lock);
        KN_TRY(write_block(sieve->log.file, at, &head, rows + done, slots + done, err));
        done += count;
    }
    return KN_OK;
}

/* Reads the block at *at into sieve->read and moves on. */
static KnCode next_block(KnSieve *sieve, uint64_t *at, KnErr *err)
{
    Block *block = &sieve->read;
    const Log *log = &sieve->log;
    size_t most = offsetof(Block, slots);
    uint64_t left = log->end - *at;
    KN_TRY(read_at(log->file, block, left < most ? (size_t)left : most, *at, err));
    size_t n = block->head.n;
    if (!block->head.in_step)
        KN_TRY(read_at(log->file, block->slots, n * sizeof(*block->slots),
                       *at + sizeof(block->head) + n * sizeof(*block->rows), err));
    for (size_t i = 0; block->head.in_step && i < n; i++)
        block->slots[i] = block->head.first + i;
    *at += block_size(&block->head);
    return KN_OK;
}

/* ---- a round ---- */

/* 26 bits that have nothing to do with those of other rounds: the bucket below, the part above. */
static inline uint64_t place_of(const KnSieve *sieve, const KnFingerprint *row)
{
    uint64_t key = (row->a ^ sieve->round * UINT64_C(0x9e3779b97f4a7c15)) * (row->b | 1);
    key = (key ^ key >> 32) * UINT64_C(0xff51afd7ed558ccd);
    return key >> 32 & (sieve->n_buckets * sieve->n_parts - 1);
}

static inline void add(KnFingerprint *sum, const KnFingerprint *row, uint64_t sign)
{
    sum->a += (row->a ^ sign) - sign;
    sum->b += (row->b ^ sign) - sign;
}

/* Adds up the rows of one part. */
static KnCode add_part(KnSieve *sieve, uint64_t part, KnErr *err)
{
    memset(sieve->sums, 0, sieve->n_buckets * sizeof(*sieve->sums));
    const Block *block = &sieve->read;
    uint64_t mask = sieve->n_buckets - 1;
    for (uint64_t at = 0; at < sieve->log.end;) {
        KN_TRY(next_block(sieve, &at, err));
        for (size_t i = 0; i < block->head.n; i++) {
            uint64_t place = place_of(sieve, &block->rows[i]);
            uint64_t sign = block->slots[i] < sieve->opts.n_before ? 0 : UINT64_MAX;
            if ((place & ~mask) == part * sieve->n_buckets)
                add(&sieve->sums[place & mask], &block->rows[i], sign);
        }
    }
    return KN_OK;
}

static uint64_t count_dirty(const KnSieve *sieve)
{
    uint64_t n = 0;
    for (uint64_t i = 0; i < sieve->n_buckets; i++)
        n += (sieve->sums[i].a | sieve->sums[i].b) != 0;
    return n;
}

static void mark_dirty(KnSieve *sieve, uint64_t part)
{
    for (uint64_t i = 0; i < sieve->n_buckets; i++) {
        uint64_t place = part * sieve->n_buckets + i;
        if ((sieve->sums[i].a | sieve->sums[i].b) != 0)
            sieve->dirty[place / 64] |= UINT64_C(1) << (place % 64);
    }
}

static KnCode write_kept(KnSieve *sieve, Log *to, KnErr *err)
{
    Block *kept = &sieve->kept;
    if (kept->head.n == 0)
        return KN_OK;
    BlockHead head = head_of(kept->slots, kept->head.n);
    KN_TRY(write_block(to->file, to->end, &head, kept->rows, kept->slots, err));
    to->end += block_size(&head);
    to->n_rows += head.n;
    kept->head.n = 0;
    return KN_OK;
}

static KnCode keep_rows(KnSieve *sieve, Log *to, KnErr *err)
{
    const Block *block = &sieve->read;
    Block *kept = &sieve->kept;
    for (uint64_t at = 0; at < sieve->log.end;) {
        KN_TRY(next_block(sieve, &at, err));
        for (size_t i = 0; i < block->head.n; i++) {
            uint64_t place = place_of(sieve, &block->rows[i]);
            if (!(sieve->dirty[place / 64] >> (place % 64) & 1))
                continue;
            kept->rows[kept->head.n] = block->rows[i];
            kept->slots[kept->head.n] = block->slots[i];
            if (++kept->head.n == BLOCK_ROWS)
                KN_TRY(write_kept(sieve, to, err));
        }
    }
    return write_kept(sieve, to, err);
}

/* The rows of dirty buckets take the place of all. */
static KnCode drop_others(KnSieve *sieve, KnErr *err)
{
    Log kept = {.file = -1};
    KN_TRY(log_open(&kept, err));
    KnCode rc = keep_rows(sieve, &kept, err);
    if (rc != KN_OK) {
        log_close(&kept);
        return rc;
    }
    log_close(&sieve->log);
    sieve->log = kept;
    return KN_OK;
}

/* ---- rounds ---- */

/* Leaves the table with the sums of a part of the rows that is small beside it. */
static KnCode estimate_changed(KnSieve *sieve, uint64_t *ret, KnErr *err)
{
    sieve->n_parts = 1;
    while (sieve->log.n_rows / sieve->n_parts > sieve->n_buckets / 4 &&
           sieve->n_buckets * sieve->n_parts < UINT32_MAX / 2)
        sieve->n_parts *= 2;
    KN_TRY(add_part(sieve, 0, err));
    *ret = count_dirty(sieve) * sieve->n_parts;
    return KN_OK;
}

/* After the only part was added up: buckets that are mostly dirty tell nothing, so there must be
 * more of them. *ret_useless: there are too many changed rows. */
static KnCode choose_parts(KnSieve *sieve, bool *ret_useless, KnErr *err)
{
    *ret_useless = false;
    if (count_dirty(sieve) <= sieve->n_buckets / 2)
        return KN_OK;
    uint64_t changed = 0;
    KN_TRY(estimate_changed(sieve, &changed, err));
    sieve->n_parts = 1;
    while (sieve->n_parts < MAX_PARTS && sieve->n_buckets * sieve->n_parts < changed * 4)
        sieve->n_parts *= 2;
    *ret_useless = changed > sieve->log.n_rows / 2;
    return *ret_useless ? KN_OK : add_part(sieve, 0, err);
}

static KnCode run_round(KnSieve *sieve, bool *ret_useless, KnErr *err)
{
    sieve->n_parts = 1;
    KN_TRY(add_part(sieve, 0, err));
    KN_TRY(choose_parts(sieve, ret_useless, err));
    if (*ret_useless)
        return KN_OK;
    free(sieve->dirty);
    sieve->dirty = calloc(sieve->n_buckets * sieve->n_parts / 64 + 1, sizeof(*sieve->dirty));
    if (!sieve->dirty)
        return kn_err_set(err, KN_E_NOMEM, "no memory to compare rows");
    mark_dirty(sieve, 0);
    for (uint64_t part = 1; part < sieve->n_parts; part++) {
        KN_TRY(add_part(sieve, part, err));
        mark_dirty(sieve, part);
    }
    return drop_others(sieve, err);
}

static void shrink_table(KnSieve *sieve)
{
    while (sieve->n_buckets > MIN_BUCKETS && sieve->n_buckets / 8 > sieve->log.n_rows)
        sieve->n_buckets /= 2;
}

/* Rounds are cheap when few rows are left: then they go on until two of them drop nothing. */
static KnCode run_rounds(KnSieve *sieve, KnErr *err)
{
    size_t in_vain = 0;
    for (sieve->round = 0; sieve->round < MAX_ROUNDS && sieve->log.n_rows > 0; sieve->round++) {
        uint64_t rows = sieve->log.n_rows;
        bool useless;
        shrink_table(sieve);
        KN_TRY(run_round(sieve, &useless, err));
        uint64_t dropped = rows - sieve->log.n_rows;
        bool is_dear = sieve->n_parts > 1 || rows > MANY_ROWS;
        in_vain = dropped == 0 ? in_vain + 1 : 0;
        if (useless || in_vain == 2 || (is_dear && dropped < rows / 16))
            break;
    }
    return KN_OK;
}

static KnCode mark_bits(KnSieve *sieve, KnErr *err)
{
    const Block *block = &sieve->read;
    for (uint64_t at = 0; at < sieve->log.end;) {
        KN_TRY(next_block(sieve, &at, err));
        for (size_t i = 0; i < block->head.n; i++)
            sieve->bits[block->slots[i] / 64] |= UINT64_C(1) << (block->slots[i] % 64);
    }
    return KN_OK;
}

/* Sums are added to all over the table, which is far quicker on large pages. */
static KnFingerprint *table_new(uint64_t n_buckets)
{
    size_t size = n_buckets * sizeof(KnFingerprint);
    if (size < HUGE_PAGE)
        return calloc(1, size);
    void *table = aligned_alloc(HUGE_PAGE, size);
    if (table)
        (void)madvise(table, size, MADV_HUGEPAGE);
    return table;
}

KnCode kn_sieve_run(KnSieve *sieve, const uint64_t **ret_bits, KnErr *err)
{
    uint64_t most = sieve->opts.max_buckets > 0 ? sieve->opts.max_buckets : DEFAULT_BUCKETS;
    sieve->n_buckets = MIN_BUCKETS;
    while (sieve->n_buckets * 2 <= most && sieve->n_buckets < sieve->log.n_rows * 4)
        sieve->n_buckets *= 2;
    sieve->sums = table_new(sieve->n_buckets);
    sieve->bits = calloc(sieve->opts.n_slots / 64 + 1, sizeof(*sieve->bits));
    if (!sieve->sums || !sieve->bits)
        return kn_err_set(err, KN_E_NOMEM, "no memory to compare rows");
    KN_TRY(run_rounds(sieve, err));
    KN_TRY(mark_bits(sieve, err));
    log_close(&sieve->log);
    free(sieve->sums);
    free(sieve->dirty);
    sieve->sums = NULL;
    sieve->dirty = NULL;
    *ret_bits = sieve->bits;
    return KN_OK;
}

KnCode kn_sieve_open(const KnSieveOptions *opts, KnSieve **ret, KnErr *err)
{
    KnSieve *sieve = calloc(1, sizeof(*sieve));
    if (!sieve)
        abort();
    sieve->opts = *opts;
    sieve->lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    KnCode rc = log_open(&sieve->log, err);
    if (rc != KN_OK) {
        free(sieve);
        return rc;
    }
    *ret = sieve;
    return KN_OK;
}

KnSieve *kn_sieve_close(KnSieve *sieve)
{
    if (!sieve)
        return NULL;
    log_close(&sieve->log);
    free(sieve->sums);
    free(sieve->dirty);
    free(sieve->bits);
    free(sieve);
    return NULL;
}
