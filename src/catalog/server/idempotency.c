/* SPDX-License-Identifier: Apache-2.0 */
/* idempotency.c - see idempotency.h. Entries are in a hash table and in the order of their age. */
#include "catalog/server/idempotency.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/hash.h"

enum { UUID_LEN = 36, SLOTS = 4096, ANSWER_MAX = 4 << 20 };

struct KnIdempotencyEntry {
    KnIdempotencyEntry *next_in_slot;
    KnIdempotencyEntry *older, *newer;
    char key[UUID_LEN];
    uint64_t request;
    int64_t until_us;
    int waiting;  /* threads that wait for the end */
    bool running; /* no answer yet */
    bool gone;    /* not to be kept: freed by the last that waits */
    int status;
    char *body;
    size_t len;
    char *etag;
};

struct KnIdempotency {
    pthread_mutex_t lock;
    pthread_cond_t ended;
    KnIdempotencyEntry *slots[SLOTS];
    KnIdempotencyEntry *oldest, *newest;
    size_t bytes, max_bytes;
};

KnIdempotency *kn_idempotency_new(size_t max_bytes)
{
    KnIdempotency *idem = calloc(1, sizeof(*idem));
    if (!idem)
        abort();
    idem->max_bytes = max_bytes;
    (void)pthread_mutex_init(&idem->lock, NULL);
    (void)pthread_cond_init(&idem->ended, NULL);
    return idem;
}

static size_t size_of(const KnIdempotencyEntry *entry)
{
    return sizeof(*entry) + entry->len;
}

static KnIdempotencyEntry **slot_of(KnIdempotency *idem, const char key[UUID_LEN])
{
    return &idem->slots[kn_hash64(key, UUID_LEN, 0) % SLOTS];
}

static void free_entry(KnIdempotencyEntry *entry)
{
    free(entry->body);
    free(entry->etag);
    free(entry);
}

/* Out of table and list; freed unless somebody waits on it. */
static void forget(KnIdempotency *idem, KnIdempotencyEntry *entry)
{
    KnIdempotencyEntry **at = slot_of(idem, entry->key);
    while (*at != entry)
        at = &(*at)->next_in_slot;
    *at = entry->next_in_slot;
    *(entry->older ? &entry->older->newer : &idem->oldest) = entry->newer;
    *(entry->newer ? &entry->newer->older : &idem->newest) = entry->older;
    idem->bytes -= size_of(entry);
    entry->gone = true;
    if (!entry->waiting)
        free_entry(entry);
}

/* What is too old, or too much. Entries under way stay. */
static void trim(KnIdempotency *idem)
{
    int64_t now = kn_clock_mono_us();
    for (KnIdempotencyEntry *entry = idem->oldest, *next; entry; entry = next) {
        next = entry->newer;
        if (entry->running)
            continue;
        if (entry->until_us > now && idem->bytes <= idem->max_bytes)
            break;
        forget(idem, entry);
    }
}

KnIdempotency *kn_idempotency_free(KnIdempotency *idem)
{
    if (!idem)
        return NULL;
    while (idem->oldest)
        forget(idem, idem->oldest);
    (void)pthread_cond_destroy(&idem->ended);
    (void)pthread_mutex_destroy(&idem->lock);
    free(idem);
    return NULL;
}

/* A UUID's text in lower case. */
static bool read_key(KnStr text, char out[UUID_LEN])
{
    if (text.len != UUID_LEN)
        return false;
    for (size_t i = 0; i < UUID_LEN; i++) {
        char c = text.ptr[i];
        bool dash = i == 8 || i == 13 || i == 18 || i == 23;
        bool hex = (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'f');
        if (dash ? c != '-' : !hex)
            return false;
        out[i] = (char)(dash ? c : c >= 'A' && c <= 'F' ? c | 0x20 : c);
    }
    return true;
}

static KnIdempotencyEntry *add(KnIdempotency *idem, const char key[UUID_LEN], uint64_t request)
{
    KnIdempotencyEntry *entry = calloc(1, sizeof(*entry));
    KnIdempotencyEntry **slot = slot_of(idem, key);
    if (!entry)
        abort();
    memcpy(entry->key, key, UUID_LEN);
    entry->request = request;
    entry->running = true;
    entry->next_in_slot = *slot;
    *slot = entry;
    entry->older = idem->newest;
    *(idem->newest ? &idem->newest->newer : &idem->oldest) = entry;
    idem->newest = entry;
    idem->bytes += size_of(entry);
    return entry;
}

static KnIdempotencyEntry *find(KnIdempotency *idem, const char key[UUID_LEN])
{
    KnIdempotencyEntry *entry = *slot_of(idem, key);
    while (entry && memcmp(entry->key, key, UUID_LEN) != 0)
        entry = entry->next_in_slot;
    return entry;
}

/* With the lock held: the key's finished entry, or a new one of this caller's (*ret_new), or NULL
 * when it is another request's. Waits while it is under way. */
static KnIdempotencyEntry *settle(KnIdempotency *idem, const char key[UUID_LEN], uint64_t request,
                                  bool *ret_new)
{
    *ret_new = false;
    for (;;) {
        KnIdempotencyEntry *entry = find(idem, key);
        if (!entry) {
            *ret_new = true;
            return add(idem, key, request);
        }
        if (entry->request != request)
            return NULL;
        if (!entry->running)
            return entry;
        entry->waiting++;
        while (entry->running)
            (void)pthread_cond_wait(&idem->ended, &idem->lock);
        if (--entry->waiting == 0 && entry->gone)
            free_entry(entry);
    }
}

KnCode kn_idempotency_begin(KnIdempotency *idem, KnArena *arena, KnStr key, uint64_t request,
                            KnKeptAnswer *ret, KnErr *err)
{
    char normal[UUID_LEN];
    if (!read_key(key, normal))
        return kn_err_set(err, KN_E_INVAL, "Idempotency-Key: expected a UUID");
    (void)pthread_mutex_lock(&idem->lock);
    trim(idem);
    bool is_new = false;
    KnIdempotencyEntry *entry = settle(idem, normal, request, &is_new);
    if (is_new)
        *ret = (KnKeptAnswer){.entry = entry};
    else if (entry)
        *ret = (KnKeptAnswer){
            .status = entry->status,
            .body = {kn_arena_strndup(arena, entry->body, entry->len), entry->len},
            .etag = entry->etag ? kn_arena_strdup(arena, entry->etag) : NULL,
        };
    (void)pthread_mutex_unlock(&idem->lock);
    if (entry)
        return KN_OK;
    KnCode rc = kn_err_set(err, KN_E_INVAL, "this Idempotency-Key was used for another request");
    if (err)
        err->about = KN_ABOUT_BOTH;
    return rc;
}

/* Whether the same request would get the same answer for ever. */
static bool is_final(int status)
{
    return (status >= 200 && status < 300) ||
           (status >= 400 && status < 500 && status != 401 && status != 403 && status != 408 &&
            status != 419 && status != 429);
}

void kn_idempotency_end(KnIdempotency *idem, KnIdempotencyEntry *entry, int status,
                        const KnStr *pieces, size_t n_pieces, const char *etag)
{
    size_t len = 0, at = 0;
    for (size_t i = 0; i < n_pieces; i++)
        len += pieces[i].len;
    bool keep = is_final(status) && len <= ANSWER_MAX;
    char *body = keep ? malloc(len + 1) : NULL;
    for (size_t i = 0; body && i < n_pieces; at += pieces[i++].len)
        memcpy(body + at, pieces[i].ptr, pieces[i].len);
    char *tag = body && etag ? strdup(etag) : NULL;
    (void)pthread_mutex_lock(&idem->lock);
    entry->running = false;
    if (body) {
        entry->status = status;
        entry->body = body;
        entry->len = len;
        entry->etag = tag;
        entry->until_us = kn_clock_mono_us() + (int64_t)KN_IDEMPOTENCY_SECONDS * 1000000;
        idem->bytes += len;
    } else {
        forget(idem, entry);
    }
    (void)pthread_cond_broadcast(&idem->ended);
    (void)pthread_mutex_unlock(&idem->lock);
}
