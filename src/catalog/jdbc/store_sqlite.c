/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store_sqlite.c - the JDBC-catalog schema in a SQLite file.
 *
 * Full synchronous commits, default (rollback) journal, so that any other program that knows SQLite
 * may share the file. Statements wait up to BUSY_MS for another writer. SQLite says of most
 * failures that nothing has changed; a compare-and-set that ends otherwise is told as one with a
 * lost answer.
 */
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/fault.h"
#include "catalog/jdbc/store.h"

enum { BUSY_MS = 30000 };

typedef struct SqliteStore {
    KnStore base;
    sqlite3 *db;
    char *file;
    char *catalog;
    bool has_type; /* column iceberg_type (JdbcCatalog's schema version V1) */
} SqliteStore;

static const char schema_sql[] =
    "CREATE TABLE IF NOT EXISTS iceberg_tables ("
    " catalog_name VARCHAR(255) NOT NULL, table_namespace VARCHAR(255) NOT NULL, table_name "
    "VARCHAR(255) NOT NULL,"
    " metadata_location VARCHAR(1000), previous_metadata_location VARCHAR(1000), iceberg_type "
    "VARCHAR(5),"
    " PRIMARY KEY (catalog_name, table_namespace, table_name));"
    "CREATE TABLE IF NOT EXISTS iceberg_namespace_properties ("
    " catalog_name VARCHAR(255) NOT NULL, namespace VARCHAR(255) NOT NULL, property_key "
    "VARCHAR(255) NOT NULL,"
    " property_value VARCHAR(1000), PRIMARY KEY (catalog_name, namespace, property_key));";

static KnCode failed(const SqliteStore *st, const char *what, KnErr *err)
{
    switch (sqlite3_errcode(st->db) & 0xff) {
    case SQLITE_NOTADB:
    case SQLITE_CORRUPT:
        return kn_err_set(err, KN_E_CORRUPT,
                          "catalog %s: %s: it is not a SQLite database, or is damaged (%s)",
                          st->file, what, sqlite3_errmsg(st->db));
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return kn_err_set(err, KN_E_BUSY,
                          "catalog %s: %s: another process has held it locked for %d s", st->file,
                          what, BUSY_MS / 1000);
    case SQLITE_READONLY:
    case SQLITE_PERM:
    case SQLITE_CANTOPEN:
        return kn_err_set(err, KN_E_IO,
                          "catalog %s: %s: no right to write the file or its folder (%s)", st->file,
                          what, sqlite3_errmsg(st->db));
    case SQLITE_FULL:
        return kn_err_set(err, KN_E_IO, "catalog %s: %s: the disk is full", st->file, what);
    default:
        return kn_err_set(err, KN_E_IO, "catalog %s: %s: %s", st->file, what,
                          sqlite3_errmsg(st->db));
    }
}

/* A prepared statement with its text parameters bound, NULL-terminated. */
static KnCode prepare(SqliteStore *st, const char *sql, const char *const *params,
                      sqlite3_stmt **ret, KnErr *err)
{
    sqlite3_stmt *stmt = NULL;
    if (sqlite3_prepare_v2(st->db, sql, -1, &stmt, NULL) != SQLITE_OK)
        return failed(st, "preparing a statement", err);
    for (int i = 0; params[i]; i++) {
        if (sqlite3_bind_text(stmt, i + 1, params[i], -1, SQLITE_STATIC) != SQLITE_OK) {
            (void)sqlite3_finalize(stmt);
            return failed(st, "binding a value", err);
        }
    }
    *ret = stmt;
    return KN_OK;
}

/* One changing statement; *ret_changed rows were changed. */
static KnCode change(SqliteStore *st, const char *sql, const char *const *params, int *ret_changed,
                     KnErr *err)
{
    sqlite3_stmt *stmt = NULL;
    KN_TRY(prepare(st, sql, params, &stmt, err));
    KnCode rc = KN_OK;
    int step = sqlite3_step(stmt);
    if (step == SQLITE_DONE)
        *ret_changed = sqlite3_changes(st->db);
    else if ((step & 0xff) == SQLITE_CONSTRAINT)
        rc = kn_err_set(err, KN_E_EXISTS, "already exists");
    else
        rc = failed(st, "writing", err);
    (void)sqlite3_finalize(stmt);
    return rc;
}

static KnCode sqlite_find(KnStore *base, KnArena *arena, const char *ns, const char *name,
                          const char **ret_location, KnErr *err)
{
    SqliteStore *st = (SqliteStore *)base;
    const char *sql = st->has_type
                          ? "SELECT metadata_location FROM iceberg_tables WHERE catalog_name=?1 "
                            "AND table_namespace=?2"
                            " AND table_name=?3 AND (iceberg_type='TABLE' OR iceberg_type IS NULL)"
                          : "SELECT metadata_location FROM iceberg_tables WHERE catalog_name=?1 "
                            "AND table_namespace=?2"
                            " AND table_name=?3";
    const char *params[] = {st->catalog, ns, name, NULL};
    sqlite3_stmt *stmt = NULL;
    KN_TRY(prepare(st, sql, params, &stmt, err));
    KnCode rc = KN_OK;
    int step = sqlite3_step(stmt);
    const char *text = step == SQLITE_ROW ? (const char *)sqlite3_column_text(stmt, 0) : NULL;
    if (step == SQLITE_DONE)
        rc = kn_err_set(err, KN_E_NOTFOUND, "Table does not exist: %s.%s (catalog '%s' in %s)", ns,
                        name, st->catalog, st->file);
    else if (step != SQLITE_ROW)
        rc = failed(st, "looking up a table", err);
    else if (!text)
        rc = kn_err_set(err, KN_E_CORRUPT, "catalog %s: table %s.%s has no metadata_location",
                        st->file, ns, name);
    else
        *ret_location = kn_arena_strdup(arena, text);
    (void)sqlite3_finalize(stmt);
    return rc;
}

static KnCode sqlite_insert(KnStore *base, const char *ns, const char *name, const char *location,
                            KnErr *err)
{
    SqliteStore *st = (SqliteStore *)base;
    const char *sql = st->has_type
                          ? "INSERT INTO iceberg_tables (catalog_name, table_namespace, table_name,"
                            " metadata_location, iceberg_type) VALUES (?1, ?2, ?3, ?4, 'TABLE')"
                          : "INSERT INTO iceberg_tables (catalog_name, table_namespace, table_name,"
                            " metadata_location) VALUES (?1, ?2, ?3, ?4)";
    const char *params[] = {st->catalog, ns, name, location, NULL};
    int changed = 0;
    KnCode rc = change(st, sql, params, &changed, err);
    if (rc == KN_E_EXISTS)
        return kn_err_set(err, KN_E_EXISTS, "Table already exists: %s.%s", ns, name);
    return rc;
}

/* A statement that could not even begin has changed nothing. */
static KnCode swap_failed(const SqliteStore *st, KnCode rc, KnErr *err)
{
    int code = sqlite3_errcode(st->db) & 0xff;
    bool untouched = code == SQLITE_BUSY || code == SQLITE_LOCKED || code == SQLITE_READONLY ||
                     code == SQLITE_NOTADB || code == SQLITE_CANTOPEN;
    if (untouched)
        return rc;
    if (err)
        err->code = KN_E_UNKNOWN;
    return KN_E_UNKNOWN;
}

/* Points for answers that are lost before and after the pointer has moved. */
static KnCode swap_faults(const char *point, KnErr *err)
{
    KnCode rc = kn_fault_at(point, err);
    if (rc != KN_OK && err)
        err->code = KN_E_UNKNOWN;
    return rc == KN_OK ? rc : KN_E_UNKNOWN;
}

static KnCode sqlite_swap(KnStore *base, const char *ns, const char *name, const char *from,
                          const char *to, KnErr *err)
{
    SqliteStore *st = (SqliteStore *)base;
    const char *params[] = {to, from, st->catalog, ns, name, NULL};
    int changed = 0;
    KN_TRY(swap_faults("catalog-pointer-not-moved", err));
    KnCode rc = change(
        st,
        "UPDATE iceberg_tables SET metadata_location=?1, previous_metadata_location=?2"
        " WHERE catalog_name=?3 AND table_namespace=?4 AND table_name=?5 AND metadata_location=?2",
        params, &changed, err);
    if (rc != KN_OK)
        return swap_failed(st, rc, err);
    KN_TRY(swap_faults("catalog-pointer-moved", err));
    if (!changed)
        return kn_err_set(err, KN_E_CONFLICT, "another commit of %s.%s came first", ns, name);
    return KN_OK;
}

static KnCode sqlite_remove(KnStore *base, const char *ns, const char *name, KnErr *err)
{
    SqliteStore *st = (SqliteStore *)base;
    const char *params[] = {st->catalog, ns, name, NULL};
    int changed = 0;
    KN_TRY(change(
        st,
        "DELETE FROM iceberg_tables WHERE catalog_name=?1 AND table_namespace=?2 AND table_name=?3",
        params, &changed, err));
    if (!changed)
        return kn_err_set(err, KN_E_NOTFOUND, "Table does not exist: %s.%s", ns, name);
    return KN_OK;
}

static KnCode sqlite_rename(KnStore *base, const KnStoreName *from, const KnStoreName *to,
                            KnErr *err)
{
    SqliteStore *st = (SqliteStore *)base;
    const char *params[] = {to->ns, to->name, st->catalog, from->ns, from->name, NULL};
    const char *sql =
        st->has_type
            ? "UPDATE iceberg_tables SET table_namespace=?1, table_name=?2 WHERE catalog_name=?3 "
              "AND"
              " table_namespace=?4 AND table_name=?5 AND (iceberg_type='TABLE' OR iceberg_type IS "
              "NULL)"
            : "UPDATE iceberg_tables SET table_namespace=?1, table_name=?2 WHERE catalog_name=?3 "
              "AND"
              " table_namespace=?4 AND table_name=?5";
    int changed = 0;
    KnCode rc = change(st, sql, params, &changed, err);
    if (rc == KN_E_EXISTS)
        return kn_err_set(err, KN_E_EXISTS, "Table already exists: %s.%s", to->ns, to->name);
    if (rc == KN_OK && !changed)
        return kn_err_set(err, KN_E_NOTFOUND, "Table does not exist: %s.%s", from->ns, from->name);
    return rc;
}

static KnCode sqlite_list(KnStore *base, KnStoreListFn fn, void *arg, KnErr *err)
{
    SqliteStore *st = (SqliteStore *)base;
    const char *sql =
        st->has_type
            ? "SELECT table_namespace, table_name FROM iceberg_tables WHERE catalog_name=?1 AND"
              " (iceberg_type='TABLE' OR iceberg_type IS NULL) ORDER BY 1, 2"
            : "SELECT table_namespace, table_name FROM iceberg_tables WHERE catalog_name=?1 ORDER "
              "BY 1, 2";
    const char *params[] = {st->catalog, NULL};
    sqlite3_stmt *stmt = NULL;
    KN_TRY(prepare(st, sql, params, &stmt, err));
    KnCode rc = KN_OK;
    int step = SQLITE_DONE;
    while (rc == KN_OK && (step = sqlite3_step(stmt)) == SQLITE_ROW) {
        const char *ns = (const char *)sqlite3_column_text(stmt, 0);
        const char *name = (const char *)sqlite3_column_text(stmt, 1);
        rc = fn(arg, ns ? ns : "", name ? name : "", err);
    }
    if (rc == KN_OK && step != SQLITE_DONE)
        rc = failed(st, "listing tables", err);
    (void)sqlite3_finalize(stmt);
    return rc;
}

static KnCode sqlite_namespace_exists(KnStore *base, const char *ns, bool *ret, KnErr *err)
{
    SqliteStore *st = (SqliteStore *)base;
    const char *params[] = {st->catalog, ns, NULL};
    sqlite3_stmt *stmt = NULL;
    KN_TRY(prepare(
        st,
        "SELECT 1 FROM iceberg_namespace_properties WHERE catalog_name=?1 AND namespace=?2 UNION "
        "ALL"
        " SELECT 1 FROM iceberg_tables WHERE catalog_name=?1 AND table_namespace=?2 LIMIT 1",
        params, &stmt, err));
    int step = sqlite3_step(stmt);
    KnCode rc = step == SQLITE_ROW || step == SQLITE_DONE
                    ? KN_OK
                    : failed(st, "looking up a namespace", err);
    if (rc == KN_OK)
        *ret = step == SQLITE_ROW;
    (void)sqlite3_finalize(stmt);
    return rc;
}

static KnCode sqlite_namespace_add(KnStore *base, const char *ns, KnErr *err)
{
    SqliteStore *st = (SqliteStore *)base;
    const char *params[] = {st->catalog, ns, NULL};
    int changed = 0;
    return change(
        st,
        "INSERT OR IGNORE INTO iceberg_namespace_properties (catalog_name, namespace, property_key,"
        " property_value) VALUES (?1, ?2, 'exists', 'true')",
        params, &changed, err);
}

static void sqlite_close(KnStore *base)
{
    SqliteStore *st = (SqliteStore *)base;
    (void)sqlite3_close(st->db);
    free(st->file);
    free(st->catalog);
    free(st);
}

static const KnStoreOps sqlite_ops = {
    .find = sqlite_find,
    .insert = sqlite_insert,
    .swap = sqlite_swap,
    .remove = sqlite_remove,
    .rename = sqlite_rename,
    .list = sqlite_list,
    .namespace_exists = sqlite_namespace_exists,
    .namespace_add = sqlite_namespace_add,
    .close = sqlite_close,
};

static KnCode look_at_schema(SqliteStore *st, KnErr *err)
{
    static const char *const none[] = {NULL};
    sqlite3_stmt *stmt = NULL;
    KN_TRY(prepare(
        st, "SELECT count(*), max(name='iceberg_type') FROM pragma_table_info('iceberg_tables')",
        none, &stmt, err));
    KnCode rc = KN_OK;
    if (sqlite3_step(stmt) != SQLITE_ROW)
        rc = failed(st, "reading its schema", err);
    else if (!sqlite3_column_int(stmt, 0))
        rc = kn_err_set(err, KN_E_NOTFOUND,
                        "catalog %s: a SQLite database without the tables of a catalog; check "
                        "--db, or make a table "
                        "first with 'knut table create'",
                        st->file);
    else
        st->has_type = sqlite3_column_int(stmt, 1) == 1;
    (void)sqlite3_finalize(stmt);
    return rc;
}

static KnCode open_file(SqliteStore *st, bool create, KnErr *err)
{
    struct stat info;
    if (!create && stat(st->file, &info) != 0)
        return kn_err_set(err, KN_E_NOTFOUND, "no catalog at %s: check --warehouse or --db",
                          st->file);
    int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_FULLMUTEX | (create ? SQLITE_OPEN_CREATE : 0);
    if (sqlite3_open_v2(st->file, &st->db, flags, NULL) != SQLITE_OK)
        return failed(st, "opening it", err);
    (void)sqlite3_busy_timeout(st->db, BUSY_MS);
    if (sqlite3_exec(st->db, "PRAGMA synchronous=FULL", NULL, NULL, NULL) != SQLITE_OK)
        return failed(st, "opening it", err);
    if (create && sqlite3_exec(st->db, schema_sql, NULL, NULL, NULL) != SQLITE_OK)
        return failed(st, "making the catalog's tables", err);
    return look_at_schema(st, err);
}

KnCode kn_store_sqlite_open(const char *file, const char *catalog, bool create, KnStore **ret,
                            KnErr *err)
{
    SqliteStore *st = calloc(1, sizeof(*st));
    if (!st)
        abort();
    st->base.ops = &sqlite_ops;
    st->file = strdup(file);
    st->catalog = strdup(catalog);
    if (!st->file || !st->catalog)
        abort();
    KnCode rc = open_file(st, create, err);
    if (rc != KN_OK) {
        sqlite_close(&st->base);
        return rc;
    }
    *ret = &st->base;
    return KN_OK;
}
