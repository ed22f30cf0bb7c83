/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * idempotency.h - answers kept under the client's Idempotency-Key, so that a change that is sent
 * again is not done again (REST specification, parameter idempotency-key).
 *
 * A key is begun, and ended with its final answer: 2xx and the 4xx that asking again would not
 * change are kept for the advertised time; anything else is forgotten, so that a retry runs. A
 * second request with a key that is under way waits for the first. The same key with another
 * request is a mistake of the client. Kept in memory: a server that was started anew has forgotten.
 * Thread-safe.
 */
#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"

enum { KN_IDEMPOTENCY_SECONDS = 1800 };
#define KN_IDEMPOTENCY_LIFETIME "PT30M"

typedef struct KnIdempotency KnIdempotency;
typedef struct KnIdempotencyEntry KnIdempotencyEntry;

/* What a request with a key meets. */
typedef struct KnKeptAnswer {
    KnIdempotencyEntry *entry; /* not NULL: nothing yet. The caller runs the request and ends it */
    int status;
    KnStr body;
    const char *etag; /* NULL = none */
} KnKeptAnswer;

/** max_bytes bounds what all answers together take; the oldest go first. */
KnIdempotency *kn_idempotency_new(size_t max_bytes);
KnIdempotency *kn_idempotency_free(KnIdempotency *idem); /* accepts NULL, returns NULL */

/** request is a hash over caller, operation, path and body. The answer's texts are in arena.
 * KN_E_INVAL with KN_ABOUT_BOTH: another request had this key; KN_E_INVAL: no UUID. */
KN_NODISCARD KnCode kn_idempotency_begin(KnIdempotency *idem, KnArena *arena, KnStr key,
                                         uint64_t request, KnKeptAnswer *ret, KnErr *err);
/** pieces are copied. */
void kn_idempotency_end(KnIdempotency *idem, KnIdempotencyEntry *entry, int status,
                        const KnStr *pieces, size_t n_pieces, const char *etag);
