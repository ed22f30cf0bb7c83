/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * listener.h - rounds again and again: at once after progress, later and later when nothing
 * happens or something fails.
 *
 * The delay starts at `interval`, doubles with every round that was idle or failed, up to
 * `max_backoff`, and falls back with progress. What is waited is drawn evenly from (0, delay] (full
 * jitter), never below 1/10 of the interval, so that many listeners do not march in step.
 *
 * A stop (SIGTERM, SIGINT) is seen between rounds, and a round sees it between windows: the window
 * in flight is finished and the cursor moved. The listener then returns KN_OK (exit 0); a second
 * SIGINT ends the process at once (base/stop.h). A failure that no retry can mend (refused,
 * corrupt, wrong configuration) ends it with that code.
 */
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

typedef struct KnListenerOptions {
    int64_t interval;    /* microseconds; 0 = 5 s */
    int64_t max_backoff; /* microseconds; 0 = 300 s; never below interval */
    uint64_t seed;       /* of the jitter; 0 = drawn */
    /* One round; *ret_progress: something was delivered. */
    KnCode (*round)(void *arg, bool *ret_progress, KnErr *err);
    /* Told of a failed round that will be tried again after `delay`; may be NULL. */
    void (*failed)(void *arg, const KnErr *err, int64_t delay);
    bool (*wait)(void *arg, int64_t microseconds); /* true = stop; NULL = kn_stop_wait() */
    bool (*stopped)(void *arg);                    /* NULL = kn_stop_requested() */
    void *arg;
} KnListenerOptions;

KN_NODISCARD KnCode kn_listener_run(const KnListenerOptions *opts, KnErr *err);
