/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * transaction.h - commits of several tables that become visible together, or not at all.
 *
 * A transaction is a catalog of its own in front of another: tables loaded from it are as they were
 * when first asked for, and whatever commits to them (writes, refs, alterations, maintenance that
 * removes nothing) only changes what the transaction shows. kn_transaction_commit() sends all of it
 * as one commit (KnCatalogOps.commit_all) under the requirements that held at the start.
 *
 * Files that were written for a transaction which then fails are nobody's: `knut table orphans`
 * finds them. One thread at a time.
 */
#include "iceberg/table.h"

typedef struct KnTransaction KnTransaction;

/** cat is borrowed. */
KnTransaction *kn_transaction_begin(KnCatalog *cat);
/** A table as the transaction shows it; the same handle each time, owned by the transaction. Names
 * of tables that are dropped, created or renamed in between are the catalog's own matter: those
 * operations are KN_E_UNSUPPORTED here. */
KN_NODISCARD KnCode kn_transaction_table(KnTransaction *tx, const KnTableIdent *ident,
                                         KnTable **ret, KnErr *err);
/** Commits what was staged. KN_E_CONFLICT: another commit came first, nothing was changed, a new
 * transaction may be tried. KN_E_UNKNOWN: as KnCatalogOps.commit. Without changes: KN_OK. Once. */
KN_NODISCARD KnCode kn_transaction_commit(KnTransaction *tx, KnErr *err);
/** Frees it with its tables. Accepts NULL, returns NULL. */
KnTransaction *kn_transaction_end(KnTransaction *tx);
