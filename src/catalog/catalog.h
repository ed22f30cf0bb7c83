/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * catalog.h - from a locator (flags or configuration keys) to an open catalog and a table.
 *
 * Exactly one place is named: `--warehouse` or `--warehouse-uri` (a catalog with the JDBC schema
 * in SQLite, its files in a folder or in an object store), `--rest-uri` or `--grpc-uri` (a catalog
 * server), `--root` or `--metadata` (a bare table, read-only, no catalog). Each kind is a folder
 * here and a row in open.c.
 */
#include "base/option.h"
#include "iceberg/table.h"
#include "storage/s3/s3.h"

/* --rest-*: how a REST catalog is reached (catalog/rest/rest_settings.c). */
typedef struct KnRestFlags {
    const char *uri;
    const char *warehouse;
    int vendor;     /* index into the choices of --rest-vendor */
    int delegation; /* --rest-credentials */
    const char *scope, *oauth2_uri, *user, *sigv4;
    KnOptList headers, options;
    const char *ca, *cert, *key;
} KnRestFlags;

/* --grpc-*: how a gRPC catalog is reached. */
typedef struct KnGrpcFlags {
    const char *uri;
    const char *ca, *cert, *key;
} KnGrpcFlags;

typedef struct KnLocator {
    const char *warehouse;     /* folder or URI of the data root */
    const char *warehouse_uri; /* the data root when it is not the folder `warehouse` */
    const char *db;            /* SQLite file; NULL = WAREHOUSE/catalog.db */
    const char *catalog;       /* catalog_name in the store; NULL = "knut" */
    const char *root;          /* a bare table's location */
    const char *metadata;      /* one metadata document */
    const char *table;         /* "ns.name"; required with warehouse, unless a command lists */
    KnRestFlags rest;
    KnGrpcFlags grpc;
    KnS3Options s3;        /* --s3-*: for s3:// locations */
    KnOptList allow_paths; /* --allow-path: further folders from which data may be read */
} KnLocator;

/** Option rows for KnLocator, offsets from its start. */
enum { KN_N_LOCATOR_GROUPS = 4 };
extern const KnOptGroup kn_locator_groups[KN_N_LOCATOR_GROUPS];

/** KN_E_INVAL names the flags when none or several places are given. create_db: make the store (and
 * the warehouse folder) when absent; else KN_E_NOTFOUND. */
KN_NODISCARD KnCode kn_catalog_open(const KnLocator *loc, bool create_db, KnCatalog **ret,
                                    KnErr *err);
/** The place that loc names is a catalog of tables, not one table. */
bool kn_locator_has_tables(const KnLocator *loc);
/** KN_E_INVAL unless loc names one table, with options that go together; asks nobody. */
KN_NODISCARD KnCode kn_locator_check(const KnLocator *loc, KnErr *err);
/** Open the catalog and load its table (loc->table). Close the table before the catalog. */
KN_NODISCARD KnCode kn_locator_load(const KnLocator *loc, KnCatalog **ret_cat, KnTable **ret_tbl,
                                    KnErr *err);

/** A place as a person types it (`dir`, `/dir`, `file:///dir`), relative ones against the current
 * folder; in arena. */
KN_NODISCARD KnCode kn_locator_absolute(KnArena *arena, const char *given, const char **ret,
                                        KnErr *err);

/** Where a warehouse is: the URI of its data root without a final slash, and its database ("" = not
 * named, and there is no folder to have a default in: KN_E_INVAL); in arena. */
KN_NODISCARD KnCode kn_locator_warehouse(const KnLocator *loc, KnArena *arena, const char **ret_uri,
                                         const char **ret_db, KnErr *err);
/** Make what is local of a warehouse: the folder and the data root. */
KN_NODISCARD KnCode kn_locator_make_folders(const KnLocator *loc, KnErr *err);
/** What reads and writes this location, with the locator's --s3-* options. */
KN_NODISCARD KnCode kn_locator_io(const KnLocator *loc, KnStr location, KnFileIO **ret, KnErr *err);

/* The implementations (jdbc/, rest/, grpc/client.c, root/). io is owned by the catalog. */
KN_NODISCARD KnCode kn_catalog_jdbc_open(const KnLocator *loc, bool create_db, KnCatalog **ret,
                                         KnErr *err);
KN_NODISCARD KnCode kn_catalog_rest_open(const KnLocator *loc, KnCatalog **ret, KnErr *err);
KN_NODISCARD KnCode kn_catalog_grpc_open(const KnLocator *loc, KnCatalog **ret, KnErr *err);
KN_NODISCARD KnCode kn_catalog_root_open(const KnLocator *loc, KnCatalog **ret, KnErr *err);
