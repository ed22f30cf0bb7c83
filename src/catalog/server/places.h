/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * places.h - whose the files are that a caller names.
 *
 * The server reads manifests when it plans and removes files when it purges, with rights of its
 * own. So whoever may write in some namespaces only may name files only where they could have put
 * them: in the folders of these namespaces, and in a table's location that is in nobody's folder.
 */
#include "catalog/server/auth.h"

typedef struct KnPlaceAsker {
    KnCatalogCore *core;
    KnArena *arena;
    const KnPrincipal *who;
    const KnTableIdent *ident; /* the caller has the right in its namespace */
} KnPlaceAsker;

/** KN_E_REFUSED unless the caller has the right where the files at location are. table: the table's
 * location, NULL when it has none. */
KN_NODISCARD KnCode kn_place_need(const KnPlaceAsker *asker, const char *location,
                                  const char *table, KnRight right, KnErr *err);
/** Whether they are in the folder of a namespace where the caller has the right. */
bool kn_place_lies_in_namespace(const KnPlaceAsker *asker, const char *location, KnRight right);
/** The same (to write) of all files that the snapshots and statistics of a commit name. */
KN_NODISCARD KnCode kn_place_check_commit(const KnPlaceAsker *asker, const KnTableCommit *commit,
                                          KnErr *err);
/** The same (to administer) of those of a whole document. */
KN_NODISCARD KnCode kn_place_check_metadata(const KnPlaceAsker *asker, const KnMetadata *md,
                                            KnErr *err);
