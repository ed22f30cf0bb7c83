/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* catalog_args.h - what commands for whole catalogs share: which tables, and what is wrong with
 * them. */
#include "base/vec.h"
#include "catalog/core/core.h"
#include "cli/command.h"
#include "iceberg/maintain/verify.h"

typedef struct KnTableNames {
    KN_VEC(KnTableIdent) idents; /* in the call's arena */
} KnTableNames;

/** The words as names of tables; none, and all of the catalog. */
KN_NODISCARD KnCode kn_args_tables(const KnCall *call, KnCatalog *cat, KnTableNames *ret,
                                   KnErr *err);
/** KN_E_INVAL unless the locator names a catalog, and no --table. */
KN_NODISCARD KnCode kn_args_whole_catalog(const KnCall *call, KnErr *err);
/** The warehouse's own catalog; KN_E_INVAL for other places. Close with kn_core_close(). */
KN_NODISCARD KnCode kn_args_core(const KnCall *call, KnCatalogCore **ret, KnErr *err);

/* Findings of one table as a JSON array. */
typedef struct KnProblems {
    KnBuf json;
    int64_t n;
} KnProblems;
void kn_problems_init(KnProblems *problems);
/** A KnFindingFn. */
KnCode kn_problems_add(void *arg, const KnFinding *finding, KnErr *err);
/** The array, ended. */
KnStr kn_problems_end(KnProblems *problems);
