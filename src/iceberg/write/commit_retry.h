/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * commit_retry.h - optimistic commits: when another writer came first, look again and try again.
 *
 * The limits are the table's: commit.retry.num-retries, .min-wait-ms, .max-wait-ms and
 * .total-timeout-ms, and the same with commit.status-check for questions after a lost answer. One
 * thread at a time.
 */
#include "iceberg/table.h"

/* Tries with waits between them. */
typedef struct KnBackoff {
    int64_t retries, min_ms, max_ms, total_ms;
    int64_t began_us;
    int64_t tries; /* that have failed */
} KnBackoff;
KnBackoff kn_backoff_commit(const KnMetadata *md);
KnBackoff kn_backoff_status_check(const KnMetadata *md);
/** After a failed try: waits, doubling, with jitter; false when there is to be no other: retries or
 * time are used up, or the process was asked to stop. */
bool kn_backoff_next(KnBackoff *backoff);

/** One attempt on tbl->md as it is now: decides what to change and commits it. */
typedef KnCode (*KnCommitFn)(KnTable *tbl, void *arg, KnErr *err);
/** Newest metadata, then fn; after KN_E_CONFLICT the same again, as often as the table allows.
 * Other failures, KN_E_UNKNOWN too, are handed on at once. */
KN_NODISCARD KnCode kn_commit_retry(KnTable *tbl, KnCommitFn fn, void *arg, KnErr *err);

/** A property as a number that is not negative; dflt when it is absent or is no such number. */
int64_t kn_write_property_i64(const KnMetadata *md, const char *key, int64_t dflt);
