/* SPDX-License-Identifier: Apache-2.0 */
/*
 * commit_retry.c - see commit_retry.h. The catalog itself starts over on a lost pointer while the
 * requirements hold; what comes here is a requirement that does not hold any more.
 */
#include "iceberg/write/commit_retry.h"

#include "base/clock.h"
#include "base/random.h"
#include "base/stop.h"

int64_t kn_write_property_i64(const KnMetadata *md, const char *key, int64_t dflt)
{
    const char *text = kn_metadata_property(md, key, NULL);
    int64_t value = 0;
    return text && kn_str_to_i64(kn_str(text), &value) && value >= 0 ? value : dflt;
}

KnBackoff kn_backoff_commit(const KnMetadata *md)
{
    return (KnBackoff){
        .retries = kn_write_property_i64(md, "commit.retry.num-retries", 4),
        .min_ms = kn_write_property_i64(md, "commit.retry.min-wait-ms", 100),
        .max_ms = kn_write_property_i64(md, "commit.retry.max-wait-ms", 60000),
        .total_ms = kn_write_property_i64(md, "commit.retry.total-timeout-ms", 1800000),
        .began_us = kn_clock_mono_us(),
    };
}

KnBackoff kn_backoff_status_check(const KnMetadata *md)
{
    return (KnBackoff){
        .retries = kn_write_property_i64(md, "commit.status-check.num-retries", 3),
        .min_ms = kn_write_property_i64(md, "commit.status-check.min-wait-ms", 1000),
        .max_ms = kn_write_property_i64(md, "commit.status-check.max-wait-ms", 60000),
        .total_ms = kn_write_property_i64(md, "commit.status-check.total-timeout-ms", 1800000),
        .began_us = kn_clock_mono_us(),
    };
}

bool kn_backoff_next(KnBackoff *backoff)
{
    int64_t gone_ms = (kn_clock_mono_us() - backoff->began_us) / 1000;
    if (backoff->tries >= backoff->retries || gone_ms >= backoff->total_ms)
        return false;
    int64_t ms = backoff->min_ms;
    for (int64_t i = 0; i < backoff->tries && ms < backoff->max_ms; i++)
        ms *= 2;
    if (ms > backoff->max_ms)
        ms = backoff->max_ms;
    backoff->tries++;
    KnRng rng = {(uint64_t)kn_random_id()};
    return !kn_stop_wait(ms * 500 + (int64_t)(kn_rng_unit(&rng) * (double)ms * 500));
}

KnCode kn_commit_retry(KnTable *tbl, KnCommitFn fn, void *arg, KnErr *err)
{
    KnBackoff backoff = kn_backoff_commit(tbl->md);
    for (;;) {
        KN_TRY(kn_table_refresh(tbl, err));
        KnCode rc = fn(tbl, arg, err);
        if (rc != KN_E_CONFLICT || !kn_backoff_next(&backoff))
            return rc;
    }
}
