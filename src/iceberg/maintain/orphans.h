/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * orphans.h - files that no metadata of a table reaches: what killed writers and interrupted
 * expirations left (Java: DeleteOrphanFilesSparkAction); and all of a table's files, when it goes
 * for good (Java: CatalogUtil.dropTableData).
 *
 * One thread at a time; memory is that of the names of manifests, the rest spills.
 */
#include "iceberg/maintain/reach.h"

typedef enum KnPrefixMismatch { /* a file that metadata names with another scheme or authority */
                                KN_MISMATCH_ERROR,  /* nothing is removed: KN_E_REFUSED */
                                KN_MISMATCH_IGNORE, /* it stays */
                                KN_MISMATCH_DELETE  /* it is another file, and goes */
} KnPrefixMismatch;

typedef struct KnOrphanOptions {
    int64_t older_than_ms; /* files changed later may belong to a write that is under way */
    const char *location;  /* a folder of the table's, also relative to its location; NULL = all */
    KnPrefixMismatch mismatch;
    KnSweepOptions sweep;
} KnOrphanOptions;

/** Looked at: files below the table's location and its write.*.path folders, except hidden ones
 * (a name or a folder's name that begins with '_' or '.', when it is no partition's). Reached: the
 * files of every snapshot, manifests, lists, statistics, the metadata log, version-hint.text.
 *
 * KN_E_REFUSED: gc.enabled=false; metadata of another table lies below; a mismatch. When anything
 * that is reached cannot be read, nothing is removed. */
KN_NODISCARD KnCode kn_table_remove_orphans(KnTable *tbl, KnSession *ses,
                                            const KnOrphanOptions *opts, KnSweepResult *ret,
                                            KnErr *err);

/** Drops tbl from its catalog and removes every file that its metadata reaches, the current
 * document last; not what lies beside them. KN_E_REFUSED: gc.enabled=false. What cannot be read
 * keeps the table from being dropped. Killed between, the files stay: the table can be registered
 * again by its last document. (purge.c) */
KN_NODISCARD KnCode kn_table_purge(KnTable *tbl, KnSession *ses, const KnSweepOptions *opts,
                                   KnSweepResult *ret, KnErr *err);
