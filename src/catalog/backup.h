/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * backup.h - the database of a catalog as a copy, and its pointers as text.
 *
 * In the folder: `catalog.db`, one moment of the database (`--db` opens it), and `pointers.jsonl`,
 * a line for each table and view of that copy: what `knut table register` needs. Files of tables
 * are not copied: metadata documents never change, so the copy stays good for as long as the
 * warehouse keeps what it names.
 */
#include "catalog/core/core.h"

typedef struct KnBackup {
    const char *db, *pointers; /* files, in arena */
    int64_t tables, views;
} KnBackup;

/** folder is made; KN_E_EXISTS when a backup is in it. KN_E_UNSUPPORTED: PostgreSQL has pg_dump. */
KN_NODISCARD KnCode kn_catalog_backup(KnCatalogCore *core, const char *folder, KnArena *arena,
                                      KnBackup *ret, KnErr *err);
