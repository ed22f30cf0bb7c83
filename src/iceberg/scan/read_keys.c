/* SPDX-License-Identifier: Apache-2.0 */
/*
 * read_keys.c - the keys of equality deletes, and the question which rows have one that applies.
 *
 * A key is known by its fingerprint (engine/fingerprint.h), which compares as Iceberg does: NULL
 * equals NULL, NaN equals NaN, 0.0 is not -0.0. The number of the chain of deletes is mixed into
 * it, and with it is kept the last place in the chain where the key was deleted (read_equality.c).
 * A table of open addresses has 96 bits of a key and its place in 16 bytes, at an address made of
 * the other bits: of 2^50 pairs of a row and a key that differ, one in 2^46 tables takes two for
 * the same.
 *
 * Most rows have no deleted key. Before the table stands a Bloom filter, four bits a key in one
 * word, 16 bits of it a key: small enough to stay near the processor, where the table is not. Rows
 * that pass it are fetched together, as waiting for memory is most of what they cost.
 *
 * kn_key_dead(set, file, key, ...) is a function of ours inside the engine; sets are known to it by
 * number from kn_key_set_ask() to close. A set is filled by one thread before it is asked.
 */
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "engine/fingerprint.h"
#include "iceberg/scan/read_internal.h"

enum { CALL_ROWS = 2048, MIN_SLOTS = 1024, AHEAD = 16 };

/* A free slot is all zeros: places are kept plus one. */
typedef struct Slot {
    uint64_t b;
    uint32_t a; /* its upper half */
    uint32_t place;
} Slot;

struct KnKeySet {
    int64_t id;
    uint64_t seed;
    size_t pass, n_passes;
    size_t n, n_slots; /* slots: a power of two */
    Slot *slots;
    uint64_t *words; /* Bloom filter: a quarter as many as slots */
    const KnKeyPlace *places;
    size_t n_places;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static KN_VEC(KnKeySet *) open_sets;

static KnKeySet *find_set(int64_t id)
{
    KnKeySet *found = NULL;
    pthread_mutex_lock(&lock);
    kn_vec_foreach (&open_sets, set)
        if ((*set)->id == id)
            found = *set;
    pthread_mutex_unlock(&lock);
    return found;
}

/* ---- the table ---- */

static KnFingerprint in_chain(const KnFingerprint *key, uint32_t chain)
{
    return (KnFingerprint){key->a ^ (chain * UINT64_C(0x9fb21c651e98df25)),
                           key->b ^ (chain * UINT64_C(0xc2b2ae3d27d4eb4f))};
}

/* Of b, bits 0 to 23 choose bits of the filter, 24 to 39 the pass, the others the word. */
static uint64_t bits_of(uint64_t b)
{
    uint64_t bits = 0;
    for (int i = 0; i < 4; i++)
        bits |= UINT64_C(1) << (b >> (6 * i) & 63);
    return bits;
}

static uint64_t *word_of(const KnKeySet *set, uint64_t b)
{
    return &set->words[b >> 40 & (set->n_slots / 4 - 1)];
}

static Slot *home_of(const KnKeySet *set, const KnFingerprint *key)
{
    return &set->slots[key->a & (set->n_slots - 1)];
}

/* The key's slot, or the free one where it belongs. */
static Slot *slot_of(const KnKeySet *set, const KnFingerprint *key)
{
    Slot *slot = home_of(set, key);
    while (slot->place != 0 && (slot->b != key->b || slot->a != key->a >> 32))
        slot = slot + 1 == set->slots + set->n_slots ? set->slots : slot + 1;
    return slot;
}

static KnCode make_slots(KnKeySet *set, uint64_t n_keys, KnErr *err)
{
    set->n_slots = MIN_SLOTS;
    while (set->n_slots / 4 * 3 < n_keys)
        set->n_slots *= 2;
    set->slots = calloc(set->n_slots, sizeof(*set->slots));
    set->words = calloc(set->n_slots / 4, sizeof(*set->words));
    return set->slots && set->words
               ? KN_OK
               : kn_err_set(err, KN_E_NOMEM, "no memory for %" PRIu64 " keys of equality deletes",
                            n_keys);
}

static KnCode put(KnKeySet *set, const KnFingerprint *key, uint32_t place, KnErr *err)
{
    Slot *slot = slot_of(set, key);
    if (slot->place == 0) {
        if (set->n == set->n_slots / 4 * 3)
            return kn_err_set(err, KN_E_CORRUPT,
                              "equality deletes have more keys than their files say");
        *slot = (Slot){.b = key->b, .a = (uint32_t)(key->a >> 32)};
        *word_of(set, key->b) |= bits_of(key->b);
        set->n++;
    }
    if (slot->place <= place)
        slot->place = place + 1;
    return KN_OK;
}

KnCode kn_key_set_add(KnKeySet *set, const KnFingerprint *keys, size_t n, KnKeyPlace at, KnErr *err)
{
    for (size_t i = 0; i < n; i++) {
        KnFingerprint key = in_chain(&keys[i], at.chain);
        if (i + AHEAD < n) {
            KnFingerprint next = in_chain(&keys[i + AHEAD], at.chain);
            __builtin_prefetch(home_of(set, &next), 1);
        }
        if ((key.b >> 24 & 0xffff) % set->n_passes == set->pass)
            KN_TRY(put(set, &key, at.start, err));
    }
    return KN_OK;
}

/* ---- the question ---- */

/* Rows that the filter lets through, their slots on the way. */
typedef struct Candidates {
    size_t n;
    uint16_t rows[CALL_ROWS];
} Candidates;

static KnCode choose(const KnKeySet *set, const KnScalarCall *call, KnFingerprint *keys,
                     Candidates *ret, KnErr *err)
{
    const int64_t *files = call->args[1].data;
    ret->n = 0;
    for (size_t i = 0; i < call->rows; i++) {
        if (files[i] < 0 || (size_t)files[i] >= set->n_places)
            return kn_err_set(err, KN_E_INVAL, "kn_key_dead: no file %" PRId64, files[i]);
        keys[i] = in_chain(&keys[i], set->places[files[i]].chain);
        uint64_t bits = bits_of(keys[i].b);
        if ((*word_of(set, keys[i].b) & bits) != bits)
            continue;
        __builtin_prefetch(home_of(set, &keys[i]));
        ret->rows[ret->n++] = (uint16_t)i;
    }
    return KN_OK;
}

static KnCode key_dead(const KnScalarCall *call, KnErr *err)
{
    KnFingerprint keys[CALL_ROWS];
    Candidates maybe;
    if (call->rows == 0)
        return KN_OK;
    const KnKeySet *set = find_set(((const int64_t *)call->args[0].data)[0]);
    if (!set || call->rows > CALL_ROWS)
        return kn_err_set(err, KN_E_INVAL, "kn_key_dead: the set of keys is closed");
    KN_TRY(kn_fingerprint_rows(call->args + 2, call->n_args - 2, call->rows, set->seed, keys, err));
    KN_TRY(choose(set, call, keys, &maybe, err));
    bool *out = call->out_data;
    memset(out, 0, call->rows * sizeof(*out));
    for (size_t i = 0; i < maybe.n; i++) {
        size_t row = maybe.rows[i];
        const KnKeyPlace *at = &set->places[((const int64_t *)call->args[1].data)[row]];
        out[row] = slot_of(set, &keys[row])->place > at->start;
    }
    return KN_OK;
}

static KnCode make_known(KnSession *ses, KnErr *err)
{
    static const char *const types[] = {"BIGINT", "BIGINT"};
    static const KnScalarFn fn = {.name = "kn_key_dead",
                                  .arg_types = types,
                                  .n_args = 2,
                                  .return_type = "BOOLEAN",
                                  .fn = key_dead,
                                  .any_more = true};
    static pthread_mutex_t registering = PTHREAD_MUTEX_INITIALIZER;
    KnEngine *eng = kn_session_engine(ses);
    KnCode rc = KN_OK;
    pthread_mutex_lock(&registering);
    if (!kn_engine_has_scalar(eng, fn.name))
        rc = kn_engine_add_scalar(eng, &fn, err);
    pthread_mutex_unlock(&registering);
    return rc;
}

static void unlist(const KnKeySet *set)
{
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < open_sets.len; i++)
        if (open_sets.items[i] == set)
            open_sets.items[i--] = open_sets.items[--open_sets.len];
    if (open_sets.len == 0)
        kn_vec_done(&open_sets);
    pthread_mutex_unlock(&lock);
}

KnCode kn_key_set_open(KnSession *ses, const KnKeySetOptions *opts, KnKeySet **ret, KnErr *err)
{
    KN_TRY(make_known(ses, err));
    KnKeySet *set = calloc(1, sizeof(*set));
    if (!set)
        abort();
    set->seed = opts->seed;
    set->pass = opts->pass;
    set->n_passes = opts->n_passes;
    KnCode rc = make_slots(set, opts->n_keys, err);
    if (rc != KN_OK) {
        kn_key_set_close(set);
        return rc;
    }
    *ret = set;
    return KN_OK;
}

void kn_key_set_ask(KnKeySet *set, const KnKeyPlace *places, size_t n_places)
{
    static int64_t next_id;
    unlist(set);
    set->places = places;
    set->n_places = n_places;
    pthread_mutex_lock(&lock);
    set->id = next_id++;
    *kn_vec_push(&open_sets) = set;
    pthread_mutex_unlock(&lock);
}

void kn_key_set_sql(const KnKeySet *set, size_t n_keys, KnBuf *buf)
{
    kn_buf_printf(buf, "kn_key_dead(%" PRId64 "::BIGINT, f", set->id);
    for (size_t i = 0; i < n_keys; i++)
        kn_buf_printf(buf, ", k%zu", i);
    kn_buf_char(buf, ')');
}

KnKeySet *kn_key_set_close(KnKeySet *set)
{
    if (!set)
        return NULL;
    unlist(set);
    free(set->slots);
    free(set->words);
    free(set);
    return NULL;
}
