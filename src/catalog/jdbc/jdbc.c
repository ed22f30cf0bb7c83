/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jdbc.c - a warehouse with its database (`--warehouse`, `--db`), as commands open it: the core of
 * a served catalog (core/core.h), with the operator in front of it. No location is refused, and a
 * table's namespace is made when it is absent.
 */
#include "catalog/jdbc/jdbc.h"

#include "catalog/catalog.h"
#include "catalog/core/core.h"
#include "storage/s3/s3.h"

KnCode kn_locator_core(const KnLocator *loc, bool create_db, KnCatalogCore **ret, KnErr *err)
{
    KN_ARENA_AUTO arena = kn_arena_new(0);
    KnCoreOptions opts = {.catalog = loc->catalog,
                          .create_db = create_db,
                          .any_location = true,
                          .lax_namespaces = true};
    KN_TRY(kn_locator_warehouse(loc, arena, &opts.warehouse, &opts.db, err));
    KN_TRY(kn_locator_io(loc, kn_str(opts.warehouse), &opts.io, err));
    KnCode rc = KN_OK;
    if (create_db)
        rc = kn_locator_make_folders(loc, err);
    if (rc != KN_OK) {
        kn_io_close(opts.io);
        return rc;
    }
    return kn_core_open(&opts, ret, err);
}

KnCode kn_catalog_jdbc_open(const KnLocator *loc, bool create_db, KnCatalog **ret, KnErr *err)
{
    KnCatalogCore *core = NULL;
    KN_TRY(kn_locator_core(loc, create_db, &core, err));
    *ret = kn_core_into_catalog(core);
    return KN_OK;
}
