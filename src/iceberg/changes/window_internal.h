/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * window_internal.h - what the window's files share: the two sides of a comparison, and windows.
 *
 * A side is a list of live data files with the delete files that apply to them. Files that both
 * snapshots have unchanged may be left out of both sides.
 */
#include "iceberg/changes/changelog.h"

typedef struct KnSide {
    size_t n_tasks;
    KnScanTask *tasks; /* in manifest order */
} KnSide;

/** The live files of both snapshots, without files of manifests that both have unless their delete
 * files may differ. from NULL gives an empty side. Memory in arena. */
KN_NODISCARD KnCode kn_window_sides(const KnTable *tbl, const KnSnapshot *from,
                                    const KnSnapshot *to, KnArena *arena, KnSide sides[2],
                                    KnErr *err);
/** Fills added, removed, touched, touched_after of win from the sides. */
void kn_window_pair(KnWindow *win, const KnSide sides[2]);
/** True when both hold the same delete files. */
bool kn_window_same_deletes(const KnScanTask *a, const KnScanTask *b);

/** What the manifests tell about a `replace`: KN_OK and *ret_balanced, or KN_E_REFUSED when the
 * rows cannot be the same. Not balanced = the manifests cannot tell: rows must be counted. */
KN_NODISCARD KnCode kn_window_check_replace(const KnWindow *win, bool *ret_balanced, KnErr *err);
