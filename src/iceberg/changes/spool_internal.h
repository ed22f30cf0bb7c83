/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * spool_internal.h - the rows of a window as relations, shared by spool.c and change_rows.c.
 *
 * Inside, columns are c0, c1, ... (names of a schema may differ in case only, which the engine
 * cannot tell apart), op is 0 for a delete and 1 for an insert, ord is the place of the row:
 * task << 40 | position in the file.
 */
#include "iceberg/changes/changelog.h"

typedef struct KnChanges KnChanges;

typedef struct KnChangesOptions {
    const KnSchema *schema;
    bool raw;           /* rows that were deleted and inserted unchanged stay */
    size_t max_buckets; /* of the first comparison (sieve.h); 0 = its default */
} KnChangesOptions;

/** Opens what must be read and makes SQL for the changes. ses holds temporary tables of the readers
 * until close. */
KN_NODISCARD KnCode kn_changes_open(const KnWindow *win, KnSession *ses,
                                    const KnChangesOptions *opts, KnChanges **ret, KnErr *err);
KnChanges *kn_changes_close(KnChanges *changes);
/** SELECT op, ord, c0, ... of all changes, in no order. */
const char *kn_changes_sql(const KnChanges *changes);

/** Appends "c0, c1, ..." (before each name: prefix, for example ", "). */
void kn_changes_put_columns(KnBuf *buf, const KnSchema *schema);
/** Appends `c0 AS "id", c1 AS "name"`. */
void kn_changes_put_named(KnBuf *buf, const KnSchema *schema);
/** Appends the identity of the key columns, "" keys: of the whole row. */
KN_NODISCARD KnCode kn_changes_put_key(KnBuf *buf, const KnSchema *schema, const char *const *keys,
                                       size_t n_keys, KnErr *err);
/** Index of a key column in schema; KN_E_INVAL when there is none. */
KN_NODISCARD KnCode kn_changes_find_key(const KnSchema *schema, const char *key, size_t *ret,
                                        KnErr *err);

/* ---- the rows of a window before anything is compared, shared by changes.c and changes_sift.c
 * ----
 */
/* One SELECT of rows on one side. Two branches may read the same files. */
typedef struct KnBranch {
    int op;            /* 0 = rows before, 1 = rows after */
    size_t first_task; /* the branch's tasks are numbered from here, for ord */
    KnScanTasks tasks;
    KnRead *read;
    const KnRead *other; /* only rows that are not live in it; NULL = all */
} KnBranch;

typedef struct KnChangesSides {
    KnSession *ses;
    KnArena *arena;
    const KnSchema *schema;
    size_t n;
    KnBranch branches[4];
    size_t max_buckets; /* of the sieve; 0 = its default */
} KnChangesSides;

/** Appends `FROM (...) AS r(c0, ..., t, p)` with the condition of the branch. */
void kn_changes_put_from(KnBuf *buf, const KnChangesSides *sides, size_t branch);

typedef struct KnSift KnSift;
/** Reads all rows of both sides once and narrows the branches' reads to those that can differ, as
 * multisets. The reads are to be closed before the sift. */
KN_NODISCARD KnCode kn_changes_sift(const KnChangesSides *sides, KnSift **ret, KnErr *err);
KnSift *kn_changes_sift_close(KnSift *sift);
