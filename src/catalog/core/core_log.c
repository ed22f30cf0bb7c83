/* SPDX-License-Identifier: Apache-2.0 */
/*
 * core_log.c - the log of commits, and waiting for it to grow.
 *
 * Commits of this process wake those who wait; those of other processes are looked for every
 * POLL_US.
 */
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "catalog/core/core_internal.h"

#define POLL_US INT64_C(200000)

const char *kn_event_kind_name(KnEventKind kind)
{
    static const char *const names[] = {"create", "update", "drop", "rename", "register"};
    return (size_t)kind < sizeof(names) / sizeof(names[0]) ? names[kind] : "?";
}

typedef struct Telling {
    KnCommitEventFn fn;
    void *arg;
} Telling;

static KnTableIdent ident_of(KnArena *arena, const KnStoreName *name)
{
    KnTableIdent ident = {.name = name->name};
    if (name->ns)
        kn_names_split(arena, name->ns, &ident.levels, &ident.n_levels);
    return ident;
}

static KnCode tell(void *arg, const KnStoreEvent *stored, KnErr *err)
{
    const Telling *telling = arg;
    KN_ARENA_AUTO arena = kn_arena_new(0);
    const KnCommitEvent event = {
        .seq = stored->seq,
        .timestamp_ms = stored->timestamp_ms,
        .kind = (KnEventKind)stored->kind,
        .is_view = stored->is_view,
        .ident = ident_of(arena, &stored->name),
        .from = ident_of(arena, &stored->from),
        .snapshot_id = stored->snapshot_id,
        .metadata_location = stored->location,
    };
    return telling->fn(telling->arg, &event, err);
}

KnCode kn_core_commits_since(KnCatalogCore *core, int64_t seq, size_t limit, KnCommitEventFn fn,
                             void *arg, KnErr *err)
{
    Telling telling = {fn, arg};
    return kn_store_events(core->store, seq, limit, tell, &telling, err);
}

KnCode kn_core_commits_last(KnCatalogCore *core, int64_t *ret, KnErr *err)
{
    return kn_store_last_event(core->store, ret, err);
}

void kn_core_stop(KnCatalogCore *core)
{
    pthread_mutex_lock(&core->lock);
    core->stopped = true;
    pthread_cond_broadcast(&core->happened);
    pthread_mutex_unlock(&core->lock);
}

/* Until this process commits, the stop, or us microseconds; true = stopped. */
static bool sleep_until_commit(KnCatalogCore *core, uint64_t seen, int64_t us)
{
    struct timespec until;
    (void)clock_gettime(CLOCK_MONOTONIC, &until);
    int64_t ns = until.tv_nsec + us % 1000000 * 1000;
    until.tv_sec += us / 1000000 + ns / 1000000000;
    until.tv_nsec = ns % 1000000000;
    pthread_mutex_lock(&core->lock);
    int rc = 0;
    while (!core->stopped && core->n_commits == seen && rc == 0)
        rc = pthread_cond_timedwait(&core->happened, &core->lock, &until);
    bool stopped = core->stopped;
    pthread_mutex_unlock(&core->lock);
    return stopped;
}

static uint64_t commits_seen(KnCatalogCore *core)
{
    pthread_mutex_lock(&core->lock);
    uint64_t n = core->n_commits;
    pthread_mutex_unlock(&core->lock);
    return n;
}

KnCode kn_core_commits_wait(KnCatalogCore *core, int64_t seq, int64_t timeout_ms, KnErr *err)
{
    int64_t end_us = kn_clock_mono_us() + timeout_ms * 1000;
    for (;;) {
        uint64_t seen = commits_seen(core);
        int64_t last = 0;
        KN_TRY(kn_store_last_event(core->store, &last, err));
        if (last > seq)
            return KN_OK;
        int64_t left = end_us - kn_clock_mono_us();
        if (left <= 0)
            return kn_err_set(err, KN_E_CANCELLED, "no commit in %lld ms", (long long)timeout_ms);
        if (sleep_until_commit(core, seen, left < POLL_US ? left : POLL_US))
            return kn_err_set(err, KN_E_CANCELLED, "the catalog is being closed");
    }
}
