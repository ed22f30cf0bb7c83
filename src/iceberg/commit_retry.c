/* SPDX-License-Identifier: Apache-2.0 */
/*
 * commit_retry.c - see commit_retry.h. The catalog itself starts over on a lost pointer while the
 * requirements hold; what comes here is a requirement that does not hold any more.
 */
#include "iceberg/commit_retry.h"

#include "base/random.h"
#include "base/stop.h"

int64_t kn_write_property_i64(const KnMetadata *md, const char *key, int64_t dflt)
{
    const char *text = kn_metadata_property(md, key, NULL);
    int64_t value = 0;
    return text && kn_str_to_i64(kn_str(text), &value) && value >= 0 ? value : dflt;
}

bool kn_commit_wait(const KnMetadata *md, int64_t tries)
{
    int64_t least = kn_write_property_i64(md, "commit.retry.min-wait-ms", 100);
    int64_t most = kn_write_property_i64(md, "commit.retry.max-wait-ms", 60000);
    int64_t ms = least;
    for (int64_t i = 1; i < tries && ms < most; i++)
        ms *= 2;
    if (ms > most)
        ms = most;
    KnRng rng = {(uint64_t)kn_random_id()};
    return !kn_stop_wait(ms * 500 + (int64_t)(kn_rng_unit(&rng) * (double)ms * 500));
}

KnCode kn_commit_retry(KnTable *tbl, KnCommitFn fn, void *arg, KnErr *err)
{
    int64_t retries = kn_write_property_i64(tbl->md, "commit.retry.num-retries", 4);
    for (int64_t tries = 0;; tries++) {
        KN_TRY(kn_table_refresh(tbl, err));
        KnCode rc = fn(tbl, arg, err);
        if (rc != KN_E_CONFLICT || tries >= retries || !kn_commit_wait(tbl->md, tries + 1))
            return rc;
    }
}
