/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * label.h - the names under which chunks are loaded: derived, never drawn.
 *
 *     skade-<db>:<table>-<from|init>-<to>-<chunk>-<hash>
 *
 * Equal labels mean equal bytes: the hash (XXH64, 16 hex digits) covers the pipeline's identity
 * (source, sink, target), the epoch, and the digest of the recorded plan (ranges, schema, keys,
 * mode, buckets, versions). At most 128 characters of [A-Za-z0-9_:-]. Thread-safe.
 */
#include <stdbool.h>
#include <stdint.h>

#define KN_LABEL_SIZE  129
#define KN_LABEL_CLAIM (-1) /* the chunk number of the label that takes a target */

typedef struct KnLabelParts {
    const char *source, *sink; /* identities */
    const char *db, *table;    /* the destination's */
    int64_t epoch;
    int64_t from, to; /* from -1 = first window */
    uint64_t plan_digest;
    int64_t chunk; /* from 0, or KN_LABEL_CLAIM */
} KnLabelParts;

const char *kn_label_format(const KnLabelParts *parts, char out[KN_LABEL_SIZE]);
/** The window's own name: the same coverage without the chunk. */
const char *kn_label_window(const KnLabelParts *parts, char out[KN_LABEL_SIZE]);
/** 1..128 characters of [-_A-Za-z0-9:]. */
bool kn_label_is_valid(const char *label);
