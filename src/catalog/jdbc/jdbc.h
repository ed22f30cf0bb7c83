/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* jdbc.h - the core of a warehouse's own catalog, for commands that look behind the interface that
 * all catalogs have. */
#include "catalog/catalog.h"
#include "catalog/core/core.h"

/** loc names a warehouse. Close with kn_core_close(). */
KN_NODISCARD KnCode kn_locator_core(const KnLocator *loc, bool create_db, KnCatalogCore **ret,
                                    KnErr *err);
