/* SPDX-License-Identifier: Apache-2.0 */
/*
 * open.c - the registry of places where a table can be found, and the options that name them.
 *
 * A place is a row of `places`: the flag that chooses it and the function that opens it. Exactly
 * one is chosen.
 */
#include <stdlib.h>
#include <string.h>

#include "base/path.h"
#include "catalog/catalog.h"

static KnCode open_warehouse(const KnLocator *loc, bool create_db, KnCatalog **ret, KnErr *err)
{
    return kn_catalog_jdbc_open(loc, create_db, ret, err);
}

static KnCode open_root(const KnLocator *loc, bool create_db, KnCatalog **ret, KnErr *err)
{
    (void)create_db;
    return kn_catalog_root_open(loc, ret, err);
}

typedef struct Place {
    const char *flag;
    size_t offset; /* of the field that the flag sets */
    KnCode (*open)(const KnLocator *loc, bool create_db, KnCatalog **ret, KnErr *err);
} Place;

static const Place places[] = {
    {"--warehouse", offsetof(KnLocator, warehouse), open_warehouse},
    {"--root", offsetof(KnLocator, root), open_root},
    {"--metadata", offsetof(KnLocator, metadata), open_root},
};
enum { N_PLACES = sizeof(places) / sizeof(places[0]) };

static const KnOption locator_rows[] = {
    {.name = "warehouse",
     .type = KN_OPT_TEXT,
     .offset = offsetof(KnLocator, warehouse),
     .value = "DIR",
     .doc = "Folder of a warehouse whose catalog is a database with the JDBC schema"},
    {.name = "db",
     .type = KN_OPT_TEXT,
     .offset = offsetof(KnLocator, db),
     .value = "FILE",
     .doc = "SQLite file of the catalog (default: catalog.db in the warehouse)"},
    {.name = "catalog",
     .type = KN_OPT_TEXT,
     .offset = offsetof(KnLocator, catalog),
     .value = "NAME",
     .dflt = "knut",
     .doc = "Name of the catalog inside the database"},
    {.name = "table",
     .type = KN_OPT_TEXT,
     .offset = offsetof(KnLocator, table),
     .value = "NS.NAME",
     .doc = "Table in the catalog; a level with dots inside is written in double quotes"},
    {.name = "root",
     .type = KN_OPT_TEXT,
     .offset = offsetof(KnLocator, root),
     .value = "URI",
     .doc =
         "Location of one table, without a catalog: version-hint.text, else the newest metadata"},
    {.name = "metadata",
     .type = KN_OPT_TEXT,
     .offset = offsetof(KnLocator, metadata),
     .value = "FILE",
     .doc = "One metadata document (.metadata.json, plain or gzip), without a catalog"},
    {.name = "allow-path",
     .type = KN_OPT_REPEAT,
     .offset = offsetof(KnLocator, allow_paths),
     .value = "DIR",
     .doc = "Further folder from which the table's files may be read"},
};

const KnOptGroup kn_locator_options = {
    .title = "Where the table is",
    .options = locator_rows,
    .n_options = sizeof(locator_rows) / sizeof(locator_rows[0]),
};

static const char *place_value(const KnLocator *loc, const Place *place)
{
    return *(const char *const *)((const char *)loc + place->offset);
}

static KnCode choose_place(const KnLocator *loc, const Place **ret, KnErr *err)
{
    const Place *chosen = NULL;
    for (size_t i = 0; i < N_PLACES; i++) {
        if (!place_value(loc, &places[i]))
            continue;
        if (chosen)
            return kn_err_set(err, KN_E_INVAL, "%s and %s both name a place: give one",
                              chosen->flag, places[i].flag);
        if (!*place_value(loc, &places[i]))
            return kn_err_set(err, KN_E_INVAL, "%s is empty", places[i].flag);
        chosen = &places[i];
    }
    if (!chosen)
        return kn_err_set(
            err, KN_E_INVAL,
            "no table named: give --warehouse DIR --table NS.NAME, --root URI or --metadata FILE");
    *ret = chosen;
    return KN_OK;
}

KnCode kn_catalog_open(const KnLocator *loc, bool create_db, KnCatalog **ret, KnErr *err)
{
    const Place *place = NULL;
    KN_TRY(choose_place(loc, &place, err));
    if (loc->db && !loc->warehouse)
        return kn_err_set(err, KN_E_INVAL, "--db goes with --warehouse, not with %s", place->flag);
    if (loc->table && !loc->warehouse)
        return kn_err_set(err, KN_E_INVAL, "--table goes with --warehouse; %s names a table itself",
                          place->flag);
    return place->open(loc, create_db, ret, err);
}

static KnCode load_named(const KnLocator *loc, KnCatalog *cat, KnTable **ret, KnErr *err)
{
    if (!loc->warehouse)
        return kn_table_load(cat, NULL, ret, err);
    if (!loc->table)
        return kn_err_set(err, KN_E_INVAL, "which table? give --table NS.NAME");
    KN_ARENA_AUTO arena = kn_arena_new(0);
    KnTableIdent ident;
    KN_TRY(kn_table_ident_parse(arena, kn_str(loc->table), &ident, err));
    return kn_table_load(cat, &ident, ret, err);
}

KnCode kn_locator_load(const KnLocator *loc, KnCatalog **ret_cat, KnTable **ret_tbl, KnErr *err)
{
    KnCatalog *cat = NULL;
    KN_TRY(kn_catalog_open(loc, false, &cat, err));
    KnTable *tbl = NULL;
    KnCode rc = load_named(loc, cat, &tbl, err);
    if (rc != KN_OK) {
        kn_catalog_close(cat);
        return rc;
    }
    if (loc->allow_paths.len) {
        const char **allowed = kn_arena_alloc(tbl->arena, loc->allow_paths.len * sizeof(*allowed));
        for (size_t i = 0; i < loc->allow_paths.len; i++)
            allowed[i] = kn_arena_strdup(tbl->arena, loc->allow_paths.items[i]);
        tbl->allowed = allowed;
        tbl->n_allowed = loc->allow_paths.len;
    }
    *ret_cat = cat;
    *ret_tbl = tbl;
    return KN_OK;
}

KnCode kn_locator_absolute(KnArena *arena, const char *given, const char **ret, KnErr *err)
{
    if (strstr(given, ":/") || given[0] == '/') {
        *ret = kn_arena_strdup(arena, given);
        return KN_OK;
    }
    char *cwd = realpath(".", NULL);
    if (!cwd)
        return kn_err_set(err, KN_E_IO,
                          "the current folder cannot be named; give an absolute path instead of %s",
                          given);
    *ret = kn_path_join(arena, kn_str(cwd), kn_str(given));
    free(cwd);
    return KN_OK;
}
