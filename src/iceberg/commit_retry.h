/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * commit_retry.h - optimistic commits: when another writer came first, look again and try again.
 *
 * commit.retry.num-retries, commit.retry.min-wait-ms and commit.retry.max-wait-ms are the table's.
 * One thread at a time.
 */
#include "iceberg/table.h"

/** One attempt on tbl->md as it is now: decides what to change and commits it. */
typedef KnCode (*KnCommitFn)(KnTable *tbl, void *arg, KnErr *err);
/** Newest metadata, then fn; after KN_E_CONFLICT the same again, as often as the table allows.
 * Other failures, KN_E_UNKNOWN too, are handed on at once. */
KN_NODISCARD KnCode kn_commit_retry(KnTable *tbl, KnCommitFn fn, void *arg, KnErr *err);
/** Waits before try number tries (from 1): doubling, with jitter; false = asked to stop. */
bool kn_commit_wait(const KnMetadata *md, int64_t tries);

/** A property as a number that is not negative; dflt when it is absent or is no such number. */
int64_t kn_write_property_i64(const KnMetadata *md, const char *key, int64_t dflt);
