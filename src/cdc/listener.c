/* SPDX-License-Identifier: Apache-2.0 */
/* listener.c - see listener.h. The delays are decided here; time passes in the caller's wait(). */
#include "cdc/listener.h"

#include "base/random.h"
#include "base/stop.h"

#define SECOND INT64_C(1000000)

static bool default_wait(void *arg, int64_t microseconds)
{
    (void)arg;
    return kn_stop_wait(microseconds);
}

static bool default_stopped(void *arg)
{
    (void)arg;
    return kn_stop_requested();
}

static KnListenerOptions fill_in(const KnListenerOptions *opts)
{
    KnListenerOptions full = *opts;
    if (full.interval <= 0)
        full.interval = 5 * SECOND;
    if (full.max_backoff <= 0)
        full.max_backoff = 300 * SECOND;
    if (full.max_backoff < full.interval)
        full.max_backoff = full.interval;
    if (full.seed == 0)
        full.seed = (uint64_t)kn_random_id();
    if (!full.wait)
        full.wait = default_wait;
    if (!full.stopped)
        full.stopped = default_stopped;
    return full;
}

/* Evenly from [interval/10, delay]. */
static int64_t jitter(const KnListenerOptions *opts, KnRng *rng, int64_t delay)
{
    int64_t least = opts->interval / 10;
    return least + (int64_t)kn_rng_below(rng, (uint64_t)(delay - least + 1));
}

KnCode kn_listener_run(const KnListenerOptions *opts, KnErr *err)
{
    const KnListenerOptions full = fill_in(opts);
    KnRng rng = {.state = full.seed};
    int64_t delay = full.interval;
    while (!full.stopped(full.arg)) {
        KnErr why = {0};
        bool progress = false;
        KnCode rc = full.round(full.arg, &progress, &why);
        if (rc != KN_OK && !kn_code_retriable(rc)) {
            if (err)
                *err = why;
            return rc;
        }
        if (rc == KN_OK && progress) {
            delay = full.interval;
            continue;
        }
        int64_t pause = jitter(&full, &rng, delay);
        if (rc != KN_OK && full.failed)
            full.failed(full.arg, &why, pause);
        if (full.wait(full.arg, pause))
            return KN_OK;
        delay = delay > full.max_backoff / 2 ? full.max_backoff : delay * 2;
    }
    return KN_OK;
}
