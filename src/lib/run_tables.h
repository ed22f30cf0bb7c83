/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* run_tables.h - the catalog whose tables a pipeline reads and writes, opened at the first table.
 */
#include "catalog/catalog.h"
#include "pipeline/backend.h"

typedef struct KnRunCatalog {
    const KnLocator *locator;
    KnCatalog *catalog;
    KnArena *arena;
    KnRunTables tables;
} KnRunCatalog;
/** For the options of a run; NULL when the locator names no place. */
const KnRunTables *kn_run_catalog_tables(KnRunCatalog *catalog);
void kn_run_catalog_done(KnRunCatalog *catalog);
#define KN_RUN_CATALOG_AUTO __attribute__((cleanup(kn_run_catalog_done))) KnRunCatalog
