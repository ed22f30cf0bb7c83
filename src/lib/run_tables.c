/* SPDX-License-Identifier: Apache-2.0 */
/* run_tables.c - see run_tables.h. */
#include "lib/run_tables.h"

static KnCode open_table(void *arg, const char *name, KnTable **ret, KnErr *err)
{
    KnRunCatalog *rc = arg;
    KnTableIdent ident = {0};
    if (!kn_locator_has_tables(rc->locator))
        return kn_err_set(
            err, KN_E_INVAL,
            "table %s: a pipeline needs a catalog; --root and --metadata name one table", name);
    if (!rc->catalog)
        KN_TRY(kn_catalog_open(rc->locator, false, &rc->catalog, err));
    KN_TRY(kn_table_ident_parse(rc->arena, kn_str(name), &ident, err));
    return kn_table_load(rc->catalog, &ident, ret, err);
}

const KnRunTables *kn_run_catalog_tables(KnRunCatalog *catalog)
{
    const KnLocator *loc = catalog->locator;
    catalog->arena = kn_arena_new(0);
    catalog->tables = (KnRunTables){open_table, catalog};
    bool named = loc->warehouse || loc->warehouse_uri || loc->root || loc->metadata ||
                 loc->rest.uri || loc->grpc.uri;
    return named ? &catalog->tables : NULL;
}

void kn_run_catalog_done(KnRunCatalog *catalog)
{
    catalog->catalog = kn_catalog_close(catalog->catalog);
    catalog->arena = kn_arena_free(catalog->arena);
}
