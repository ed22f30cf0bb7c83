/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * refs.h - branches, tags, and which snapshot is current (spec: "Snapshot References"; Java's
 * ManageSnapshots: UpdateSnapshotReferencesOperation, SetSnapshotOperation, CherryPickOperation).
 *
 * Each call takes the newest metadata, decides, and commits under requirements; a lost race is
 * decided anew (commit_retry.h). tbl shows the outcome. One thread at a time.
 *
 * Errors: KN_E_NOTFOUND for an unknown snapshot or ref, KN_E_EXISTS for a taken name, KN_E_INVAL
 * for a branch used as a tag and the like, KN_E_REFUSED when history does not allow it.
 */
#include "iceberg/table.h"

/** snapshot_id is `of` or reached from it by parents. */
bool kn_snapshot_is_ancestor(const KnMetadata *md, int64_t of, int64_t snapshot_id);

/** What a call did to one ref; snapshot ids, -1 = none. */
typedef struct KnRefMove {
    int64_t before, after;
    bool changed; /* false: it was so already, nothing was committed */
} KnRefMove;

typedef struct KnRefSet {
    const char *name;
    bool is_branch;
    KnSnapshotChoice at; /* empty: the current snapshot */
    bool replace;        /* a ref of the name may exist: it is moved and keeps its other settings */
    bool if_not_exists;  /* one that exists is left as it is */
    int64_t min_snapshots_to_keep, max_snapshot_age_ms, max_ref_age_ms; /* -1 = as it is, or none */
} KnRefSet;
KN_NODISCARD KnCode kn_ref_set(KnTable *tbl, const KnRefSet *set, KnRefMove *ret, KnErr *err);

typedef struct KnRefDrop {
    const char *name;
    bool is_branch;
    bool if_exists;
} KnRefDrop;
/** main is never dropped. */
KN_NODISCARD KnCode kn_ref_drop(KnTable *tbl, const KnRefDrop *drop, KnRefMove *ret, KnErr *err);

/** main back to one of its ancestors. A time means the newest ancestor that is older than it. */
KN_NODISCARD KnCode kn_table_rollback(KnTable *tbl, const KnSnapshotChoice *to, KnRefMove *ret,
                                      KnErr *err);
/** main to any snapshot that is chosen. */
KN_NODISCARD KnCode kn_table_set_current(KnTable *tbl, const KnSnapshotChoice *to, KnRefMove *ret,
                                         KnErr *err);
typedef struct KnFastForward {
    const char *branch; /* made when it does not exist, as Java does */
    const char *to;     /* a branch or a tag whose snapshot has branch's as an ancestor */
} KnFastForward;
KN_NODISCARD KnCode kn_table_fast_forward(KnTable *tbl, const KnFastForward *ff, KnRefMove *ret,
                                          KnErr *err);

/** What snapshot_id changed, anew on top of main (cherry_pick.c). Appends and dynamic overwrites
 * (replace-partitions=true) become a new snapshot with source-snapshot-id in its summary; one whose
 * parent is current is fast-forwarded to, whatever it is. KN_E_REFUSED: it is in main's history, or
 * was picked already; a partition that it replaces has changed; its kind cannot be picked. */
KN_NODISCARD KnCode kn_table_cherry_pick(KnTable *tbl, int64_t snapshot_id, KnRefMove *ret,
                                         KnErr *err);
/** Cherry-picks the snapshot that was staged under this id (summary wap.id). */
KN_NODISCARD KnCode kn_table_publish(KnTable *tbl, const char *wap_id, KnRefMove *ret, KnErr *err);

/** One attempt, for those who retry by themselves: a branch to a snapshot, its settings kept. */
KN_NODISCARD KnCode kn_ref_move(KnTable *tbl, const char *name, int64_t to, KnRefMove *ret,
                                KnErr *err);
