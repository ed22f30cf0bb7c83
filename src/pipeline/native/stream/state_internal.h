/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* state_internal.h - what the files of a stream's state share. */
#include "pipeline/native/stream/state.h"

/* Checkpoints that are kept: the one that counts, and those to which one can fall back. */
enum { KN_STATE_KEPT = 3 };

struct KnStreamState {
    KnNativeRun *run;
    const KnutFlow *flow;
    KnArena *arena; /* as long as the state */
    KnFileIO *io;
    const char *location;
    int lock;                    /* of a local folder; -1 = none */
    json_t *docs[KN_STATE_KEPT]; /* manifests of the last epochs, the newest first */
};

/** "LOCATION/file", in the run's arena, which during an epoch is the epoch's. */
const char *kn_state_path(const KnStreamState *state, const char *file);
const char *kn_state_manifest_path(const KnStreamState *state, int64_t epoch);
/** The manifest becomes the newest; takes over the reference. */
void kn_state_push(KnStreamState *state, json_t *doc);

/* ---- state_manifest.c ---- */
KN_NODISCARD KnCode kn_state_manifest_write(const KnStreamState *state, const json_t *doc,
                                            int64_t epoch, KnErr *err);
/** KN_E_CORRUPT when it is not whole. */
KN_NODISCARD KnCode kn_state_manifest_read(const KnStreamState *state, int64_t epoch, json_t **ret,
                                           KnErr *err);
json_t *kn_state_manifest_of(const KnStreamPoint *point, const json_t *plan,
                             KnStreamTable *const *tables, size_t n);
KN_NODISCARD KnCode kn_state_manifest_point(const json_t *doc, KnStreamPoint *ret, KnErr *err);
KN_NODISCARD KnCode kn_state_manifest_parts(KnArena *arena, const json_t *table, KnStreamTable *ret,
                                            KnErr *err);

/* ---- state_parts.c ---- */
/** KN_E_CORRUPT unless every part that the manifest names is there as it was written. */
KN_NODISCARD KnCode kn_state_verify(const KnStreamState *state, const json_t *doc, KnErr *err);
