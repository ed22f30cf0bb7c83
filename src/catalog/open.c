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

static KnCode open_rest(const KnLocator *loc, bool create_db, KnCatalog **ret, KnErr *err)
{
    (void)create_db;
    return kn_catalog_rest_open(loc, ret, err);
}

static KnCode open_grpc(const KnLocator *loc, bool create_db, KnCatalog **ret, KnErr *err)
{
    (void)create_db;
    return kn_catalog_grpc_open(loc, ret, err);
}

typedef struct Place {
    const char *flag;
    size_t offset;   /* of the field that the flag sets */
    bool has_tables; /* it is a catalog; else it is one table */
    KnCode (*open)(const KnLocator *loc, bool create_db, KnCatalog **ret, KnErr *err);
} Place;

static const Place places[] = {
    {"--warehouse", offsetof(KnLocator, warehouse), true, open_warehouse},
    {"--warehouse-uri", offsetof(KnLocator, warehouse_uri), true, open_warehouse},
    {"--rest-uri", offsetof(KnLocator, rest.uri), true, open_rest},
    {"--grpc-uri", offsetof(KnLocator, grpc.uri), true, open_grpc},
    {"--root", offsetof(KnLocator, root), false, open_root},
    {"--metadata", offsetof(KnLocator, metadata), false, open_root},
};
enum { N_PLACES = sizeof(places) / sizeof(places[0]) };

static const KnOption locator_rows[] = {
    {.name = "warehouse",
     .type = KN_OPT_TEXT,
     .offset = offsetof(KnLocator, warehouse),
     .value = "DIR",
     .doc = "Folder (or s3://BUCKET/PREFIX, with --db) of a warehouse whose catalog is a database "
            "with the JDBC schema"},
    {.name = "warehouse-uri",
     .type = KN_OPT_TEXT,
     .offset = offsetof(KnLocator, warehouse_uri),
     .value = "URI",
     .doc =
         "Where the warehouse's files are when not in the folder: s3://BUCKET/PREFIX, file://DIR"},
    {.name = "db",
     .type = KN_OPT_TEXT,
     .offset = offsetof(KnLocator, db),
     .value = "FILE|URI",
     .doc = "Database of the catalog: a SQLite file, or postgresql://HOST:PORT/DATABASE"
            " (default: catalog.db in the warehouse)"},
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

#define REST(field) offsetof(KnLocator, rest.field)
static const KnOption rest_rows[] = {
    {.name = "rest-uri",
     .type = KN_OPT_TEXT,
     .offset = REST(uri),
     .value = "URI",
     .doc = "Address of a catalog server that speaks Iceberg's REST protocol; its token is "
            "KNUT_REST_TOKEN, or KNUT_REST_CREDENTIAL=ID:SECRET gets one by OAuth2"},
    {.name = "rest-warehouse",
     .type = KN_OPT_TEXT,
     .offset = REST(warehouse),
     .value = "NAME",
     .doc = "Warehouse (or catalog) on that server"},
    {.name = "rest-vendor",
     .type = KN_OPT_CHOICE,
     .offset = REST(vendor),
     .value = "rest|aistor|polaris|unity|gravitino",
     .dflt = "rest",
     .doc = "What that server is: sets path, scope and how requests are signed"},
    {.name = "rest-scope",
     .type = KN_OPT_TEXT,
     .offset = REST(scope),
     .value = "SCOPE",
     .doc = "OAuth2 scope to ask for (default: as the vendor needs it, else catalog)"},
    {.name = "rest-oauth2-uri",
     .type = KN_OPT_TEXT,
     .offset = REST(oauth2_uri),
     .value = "URI",
     .doc = "Where OAuth2 tokens come from (default: the catalog server itself)"},
    {.name = "rest-user",
     .type = KN_OPT_TEXT,
     .offset = REST(user),
     .value = "NAME",
     .doc = "User of HTTP Basic authentication; the password is KNUT_REST_PASSWORD"},
    {.name = "rest-credentials",
     .type = KN_OPT_CHOICE,
     .offset = REST(delegation),
     .value = "auto|vended|own",
     .dflt = "auto",
     .doc = "Keys for the table's files: the server's (vended) where it lends any, or one's own"},
    {.name = "rest-header",
     .type = KN_OPT_REPEAT,
     .offset = REST(headers),
     .value = "NAME=VALUE",
     .doc = "Further header of each request; the value env:VARIABLE is taken from there"},
    {.name = "rest-option",
     .type = KN_OPT_REPEAT,
     .offset = REST(options),
     .value = "KEY=VALUE",
     .doc = "Property of the REST catalog as other clients know it, such as prefix or audience"},
    {.name = "rest-ca",
     .type = KN_OPT_TEXT,
     .offset = REST(ca),
     .value = "FILE",
     .doc = "PEM file of the authorities that may vouch for the server (default: the system's)"},
    {.name = "rest-cert",
     .type = KN_OPT_TEXT,
     .offset = REST(cert),
     .value = "FILE",
     .doc = "PEM file of the client's certificate, for mutual TLS"},
    {.name = "rest-key",
     .type = KN_OPT_TEXT,
     .offset = REST(key),
     .value = "FILE",
     .doc = "PEM file of that certificate's key (default: it is in the same file)"},
    {.name = "sigv4",
     .type = KN_OPT_TEXT,
     .offset = REST(sigv4),
     .value = "SERVICE",
     .doc = "Sign requests to the catalog with AWS keys for this service (glue, s3tables)"},
};

#define GRPC(field) offsetof(KnLocator, grpc.field)
static const KnOption grpc_rows[] = {
    {.name = "grpc-uri",
     .type = KN_OPT_TEXT,
     .offset = GRPC(uri),
     .value = "URI",
     .doc = "Address of a gRPC catalog server, http(s)://HOST:PORT; its token is KNUT_GRPC_TOKEN"},
    {.name = "grpc-ca",
     .type = KN_OPT_TEXT,
     .offset = GRPC(ca),
     .value = "FILE",
     .doc = "PEM file of the authorities that may vouch for the server (default: the system's)"},
    {.name = "grpc-cert",
     .type = KN_OPT_TEXT,
     .offset = GRPC(cert),
     .value = "FILE",
     .doc = "PEM file of the client's certificate, for mutual TLS"},
    {.name = "grpc-key",
     .type = KN_OPT_TEXT,
     .offset = GRPC(key),
     .value = "FILE",
     .doc = "PEM file of that certificate's key (default: it is in the same file)"},
};

enum { REST_GROUP = 1, GRPC_GROUP = 2 };
const KnOptGroup kn_locator_groups[] = {
    {.title = "Where the table is",
     .options = locator_rows,
     .n_options = sizeof(locator_rows) / sizeof(locator_rows[0])},
    {.title = "A catalog server (REST)",
     .options = rest_rows,
     .n_options = sizeof(rest_rows) / sizeof(rest_rows[0])},
    {.title = "A catalog server (gRPC)",
     .options = grpc_rows,
     .n_options = sizeof(grpc_rows) / sizeof(grpc_rows[0])},
    {.title = "An object store (S3)",
     .options = kn_s3_option_rows,
     .n_options = KN_N_S3_OPTIONS,
     .base = offsetof(KnLocator, s3)},
};
_Static_assert(sizeof(kn_locator_groups) / sizeof(kn_locator_groups[0]) == KN_N_LOCATOR_GROUPS,
               "catalog.h counts the groups");

static const char *place_value(const KnLocator *loc, const Place *place)
{
    return *(const char *const *)((const char *)loc + place->offset);
}

static KnCode choose_place(const KnLocator *loc, const Place **ret, KnErr *err)
{
    const Place *chosen = NULL;
    for (size_t i = 0; i < N_PLACES; i++) {
        bool is_data_root = places[i].offset == offsetof(KnLocator, warehouse_uri);
        if (!place_value(loc, &places[i]) || (is_data_root && loc->warehouse))
            continue;
        if (chosen)
            return kn_err_set(err, KN_E_INVAL, "%s and %s both name a place: give one",
                              chosen->flag, places[i].flag);
        if (!*place_value(loc, &places[i]))
            return kn_err_set(err, KN_E_INVAL, "%s is empty", places[i].flag);
        chosen = &places[i];
    }
    if (!chosen)
        return kn_err_set(err, KN_E_INVAL,
                          "no table named: give --warehouse DIR --table NS.NAME, --rest-uri URI or "
                          "--grpc-uri URI with --table NS.NAME, "
                          "--root URI or --metadata FILE");
    *ret = chosen;
    return KN_OK;
}

/* ---- object stores ---- */

static const char *bucket_of(KnArena *arena, const char *uri)
{
    const char *from = strstr(uri, "://") + 3;
    return kn_arena_strndup(arena, from, strcspn(from, "/"));
}

static bool has_s3_flags(const KnS3Options *s3, const char **ret_flag)
{
    *ret_flag = s3->endpoint         ? "--s3-endpoint"
                : s3->region         ? "--s3-region"
                : s3->bucket         ? "--s3-bucket"
                : s3->virtual_hosted ? "--s3-virtual-hosted"
                : s3->ca_file        ? "--s3-ca"
                                     : NULL;
    return *ret_flag != NULL;
}

/* Told before anything is opened and before credentials are looked for. */
static KnCode check_s3_flags(const KnLocator *loc, KnErr *err)
{
    const char *uri = loc->warehouse_uri ? loc->warehouse_uri
                      : loc->warehouse   ? loc->warehouse
                      : loc->root        ? loc->root
                                         : loc->metadata;
    const char *flag = NULL;
    KN_ARENA_AUTO arena = kn_arena_new(0);
    if (loc->rest.uri || loc->grpc.uri)
        return KN_OK;
    if (!kn_s3_is_location(kn_str(uri))) {
        if (has_s3_flags(&loc->s3, &flag))
            return kn_err_set(err, KN_E_INVAL, "%s is for s3:// locations, and '%.200s' is none",
                              flag, uri);
        return KN_OK;
    }
    const char *bucket = bucket_of(arena, uri);
    if (!*bucket)
        return kn_err_set(err, KN_E_INVAL, "'%.200s': expected s3://BUCKET/PREFIX", uri);
    if (loc->s3.bucket && strcmp(loc->s3.bucket, bucket) != 0)
        return kn_err_set(err, KN_E_INVAL, "--s3-bucket is '%.100s', but '%.200s' is in another",
                          loc->s3.bucket, uri);
    return KN_OK;
}

KnCode kn_locator_io(const KnLocator *loc, KnStr location, KnFileIO **ret, KnErr *err)
{
    return kn_io_open_with(location, &loc->s3, ret, err);
}

static const char *default_db(KnArena *arena, const char *folder)
{
    return kn_path_join(arena, kn_str(folder), KN_STR_LIT("catalog.db"));
}

KnCode kn_locator_warehouse(const KnLocator *loc, KnArena *arena, const char **ret_uri,
                            const char **ret_db, KnErr *err)
{
    const char *given = loc->warehouse_uri ? loc->warehouse_uri : loc->warehouse;
    const char *folder = NULL, *uri = NULL;
    assert(given);
    if (loc->warehouse && !kn_s3_is_location(kn_str(loc->warehouse))) {
        KN_TRY(kn_locator_absolute(arena, loc->warehouse, &folder, err));
        KN_TRY(kn_path_local(arena, kn_str(folder), &folder, err));
    }
    if (kn_s3_is_location(kn_str(given))) {
        KnStr s = kn_str(given);
        while (s.len && s.ptr[s.len - 1] == '/')
            s.len--;
        uri = kn_arena_strndup(arena, s.ptr, s.len);
    } else {
        KN_TRY(kn_locator_absolute(arena, given, &uri, err));
        KN_TRY(kn_path_local(arena, kn_str(uri), &uri, err));
        folder = folder ? folder : uri;
        uri = kn_arena_printf(arena, "file://%s", uri);
    }
    if (!loc->db && !folder)
        return kn_err_set(err, KN_E_INVAL,
                          "a warehouse in an object store needs --db FILE for its catalog");
    *ret_db = loc->db ? loc->db : default_db(arena, folder);
    *ret_uri = uri;
    return KN_OK;
}

KnCode kn_locator_make_folders(const KnLocator *loc, KnErr *err)
{
    const char *const roots[] = {loc->warehouse, loc->warehouse_uri};
    KN_ARENA_AUTO arena = kn_arena_new(0);
    KnFileIO *io = NULL;
    KN_TRY(kn_io_local_open(&io, err));
    KnCode rc = KN_OK;
    for (size_t i = 0; i < 2 && rc == KN_OK; i++) {
        const char *folder = NULL;
        if (!roots[i] || kn_s3_is_location(kn_str(roots[i])))
            continue;
        rc = kn_locator_absolute(arena, roots[i], &folder, err);
        if (rc == KN_OK)
            rc = kn_io_prepare_dir(io, kn_str(folder), err);
    }
    kn_io_close(io);
    return rc;
}

/* Flags that would be passed over: those of a group whose first row, the address, is not given. */
static KnCode check_server_flags(const KnLocator *loc, const KnOptGroup *group, KnErr *err)
{
    const KnOption *rows = group->options;
    if (*(const char *const *)((const char *)loc + rows[0].offset))
        return KN_OK;
    for (size_t i = 1; i < group->n_options; i++) {
        const char *field = (const char *)loc + rows[i].offset;
        bool given = rows[i].type == KN_OPT_TEXT     ? *(const char *const *)field != NULL
                     : rows[i].type == KN_OPT_REPEAT ? ((const KnOptList *)field)->len > 0
                                                     : *(const int *)field != 0;
        if (given)
            return kn_err_set(err, KN_E_INVAL, "--%s goes with --%s", rows[i].name, rows[0].name);
    }
    return KN_OK;
}

bool kn_locator_has_tables(const KnLocator *loc)
{
    const Place *place = NULL;
    return choose_place(loc, &place, NULL) == KN_OK && place->has_tables;
}

/* Flags that do not go together; told before anything is opened. */
static KnCode check_flags(const KnLocator *loc, const Place *place, KnErr *err)
{
    if (loc->db && !loc->warehouse && !loc->warehouse_uri)
        return kn_err_set(err, KN_E_INVAL, "--db goes with --warehouse, not with %s", place->flag);
    if (loc->table && !place->has_tables)
        return kn_err_set(
            err, KN_E_INVAL,
            "--table goes with --warehouse, --rest-uri or --grpc-uri; %s names a table itself",
            place->flag);
    KN_TRY(check_server_flags(loc, &kn_locator_groups[REST_GROUP], err));
    KN_TRY(check_server_flags(loc, &kn_locator_groups[GRPC_GROUP], err));
    return check_s3_flags(loc, err);
}

KnCode kn_catalog_open(const KnLocator *loc, bool create_db, KnCatalog **ret, KnErr *err)
{
    const Place *place = NULL;
    KN_TRY(choose_place(loc, &place, err));
    KN_TRY(check_flags(loc, place, err));
    return place->open(loc, create_db, ret, err);
}

static KnCode parse_table(const KnLocator *loc, KnArena *arena, KnTableIdent *ret, KnErr *err)
{
    if (!loc->table)
        return kn_err_set(err, KN_E_INVAL, "which table? give --table NS.NAME");
    return kn_table_ident_parse(arena, kn_str(loc->table), ret, err);
}

KnCode kn_locator_check(const KnLocator *loc, KnErr *err)
{
    KN_ARENA_AUTO arena = kn_arena_new(0);
    const Place *place = NULL;
    KnTableIdent ident;
    KN_TRY(choose_place(loc, &place, err));
    KN_TRY(check_flags(loc, place, err));
    return place->has_tables ? parse_table(loc, arena, &ident, err) : KN_OK;
}

static KnCode load_named(const KnLocator *loc, KnCatalog *cat, KnTable **ret, KnErr *err)
{
    if (!kn_locator_has_tables(loc))
        return kn_table_load(cat, NULL, ret, err);
    KN_ARENA_AUTO arena = kn_arena_new(0);
    KnTableIdent ident;
    KN_TRY(parse_table(loc, arena, &ident, err));
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
