/* SPDX-License-Identifier: Apache-2.0 */
/* journal_shared.c - every call under one mutex. Answers live in the caller's arena, so nothing of
 * the journal is looked at outside of it. */
#include "cdc/journal_shared.h"

#include <pthread.h>
#include <stdlib.h>

typedef struct Shared {
    KnJournal base;
    KnJournal *inner;
    pthread_mutex_t lock;
} Shared;

/* One call of the inner journal; `call` is the tail of "inner->ops->". */
#define LOCKED(jn, call)                                                                           \
    ({                                                                                             \
        Shared *shared_ = (Shared *)(jn);                                                          \
        KnJournal *inner = shared_->inner;                                                         \
        (void)pthread_mutex_lock(&shared_->lock);                                                  \
        KnCode rc_ = inner->ops->call;                                                             \
        (void)pthread_mutex_unlock(&shared_->lock);                                                \
        rc_;                                                                                       \
    })

static KnCode delivery(KnJournal *jn, KnArena *arena, const KnDeliveryRow *want, bool create,
                       KnDeliveryRow *ret, KnErr *err)
{
    return LOCKED(jn, delivery(inner, arena, want, create, ret, err));
}

static KnCode deliveries(KnJournal *jn, KnArena *arena, KnDeliveryRow **ret, size_t *ret_n,
                         KnErr *err)
{
    return LOCKED(jn, deliveries(inner, arena, ret, ret_n, err));
}

static KnCode set_status(KnJournal *jn, int64_t id, const char *status, const char *message,
                         KnErr *err)
{
    return LOCKED(jn, set_status(inner, id, status, message, err));
}

static KnCode open_window(KnJournal *jn, KnArena *arena, int64_t id, KnJournalWindow **ret,
                          KnErr *err)
{
    return LOCKED(jn, open_window(inner, arena, id, ret, err));
}

static KnCode plan(KnJournal *jn, int64_t id, const KnJournalWindow *win, int64_t *ret_id,
                   KnErr *err)
{
    return LOCKED(jn, plan(inner, id, win, ret_id, err));
}

static KnCode mark(KnJournal *jn, int64_t window, int64_t number, KnChunkState state,
                   KnVerdictKind verdict, KnErr *err)
{
    return LOCKED(jn, mark(inner, window, number, state, verdict, err));
}

static KnCode hold(KnJournal *jn, int64_t window, int64_t number, int64_t by, KnErr *err)
{
    return LOCKED(jn, hold(inner, window, number, by, err));
}

static KnCode advance(KnJournal *jn, int64_t id, const KnLoadAck *ack, KnErr *err)
{
    return LOCKED(jn, advance(inner, id, ack, err));
}

static KnCode reload(KnJournal *jn, int64_t id, KnErr *err)
{
    return LOCKED(jn, reload(inner, id, err));
}

static KnCode history(KnJournal *jn, KnArena *arena, int64_t id, size_t limit,
                      KnJournalHistory *ret, KnErr *err)
{
    return LOCKED(jn, history(inner, arena, id, limit, ret, err));
}

static void close_shared(KnJournal *jn)
{
    Shared *shared = (Shared *)jn;
    shared->inner = kn_journal_close(shared->inner);
    (void)pthread_mutex_destroy(&shared->lock);
    free(shared);
}

static const KnJournalOps shared_ops = {
    .kind = "shared",
    .delivery = delivery,
    .deliveries = deliveries,
    .set_status = set_status,
    .open_window = open_window,
    .plan = plan,
    .mark = mark,
    .hold = hold,
    .advance = advance,
    .reload = reload,
    .history = history,
    .close = close_shared,
};

KnJournal *kn_journal_share(KnJournal *inner)
{
    Shared *shared = calloc(1, sizeof(*shared));
    if (!shared)
        abort();
    shared->base = (KnJournal){.ops = &shared_ops, .mode = inner->mode};
    shared->inner = inner;
    (void)pthread_mutex_init(&shared->lock, NULL);
    return &shared->base;
}
