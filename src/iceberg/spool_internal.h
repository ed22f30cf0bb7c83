/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * spool_internal.h - the rows of a window as relations, shared by spool.c and change_rows.c.
 *
 * Inside, columns are c0, c1, ... (names of a schema may differ in case only, which the engine
 * cannot tell apart), op is 0 for a delete and 1 for an insert, ord is the place of the row:
 * task << 40 | position in the file.
 */
#include "iceberg/changelog.h"

typedef struct KnChanges KnChanges;

/** Opens what must be read and makes SQL for the changes. raw: rows that were deleted and inserted
 * unchanged stay. ses holds temporary tables of the readers until close. */
KN_NODISCARD KnCode kn_changes_open(const KnWindow *win, KnSession *ses, const KnSchema *schema,
                                    bool raw, KnChanges **ret, KnErr *err);
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

/** Appends hash 0 or 1 of a row's columns c0, c1, ...: together they tell rows apart. */
void kn_changes_put_fingerprint(KnBuf *buf, const KnSchema *schema, int which);
/** Reads `both` (SELECT op, ord, c0, ...) once and keeps the fingerprints (h0, h1) that are not as
 * often among deletes as among inserts in a new temporary table of ses. */
KN_NODISCARD KnCode kn_changes_keep_dirty(KnSession *ses, const KnSchema *schema, KnStr both,
                                          char ret_table[32], KnErr *err);
void kn_changes_drop_dirty(KnSession *ses, const char *table);
