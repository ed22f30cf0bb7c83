/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * store.h - the pointers of a catalog, in a database with the JDBC-catalog schema.
 *
 * Tables `iceberg_tables` and `iceberg_namespace_properties` are those of Java's JdbcCatalog
 * (JdbcUtil, both its versions: with and without iceberg_type) and of PyIceberg's SqlCatalog, so
 * that all three open the same database. A namespace is its levels joined by dots. One thread at a
 * time; many processes may share the database.
 */
#include "base/arena.h"
#include "base/err.h"

typedef struct KnStore KnStore;
typedef KnCode (*KnStoreListFn)(void *arg, const char *ns, const char *name, KnErr *err);

typedef struct KnStoreName {
    const char *ns, *name;
} KnStoreName;

/* Every callback is required. Each call is one transaction. */
typedef struct KnStoreOps {
    /* KN_E_NOTFOUND: no such table. */
    KnCode (*find)(KnStore *store, KnArena *arena, const char *ns, const char *name,
                   const char **ret_location, KnErr *err);
    /* KN_E_EXISTS: the name is taken. */
    KnCode (*insert)(KnStore *store, const char *ns, const char *name, const char *location,
                     KnErr *err);
    /* Compare-and-set. KN_E_CONFLICT: the pointer is not `from` any more. KN_E_UNKNOWN: the answer
     * was lost (commit_status.h finds out). Any other code: the pointer has not moved. */
    KnCode (*swap)(KnStore *store, const char *ns, const char *name, const char *from,
                   const char *to, KnErr *err);
    KnCode (*remove)(KnStore *store, const char *ns, const char *name, KnErr *err);
    /* KN_E_NOTFOUND: there is no from; KN_E_EXISTS: to is taken. */
    KnCode (*rename)(KnStore *store, const KnStoreName *from, const KnStoreName *to, KnErr *err);
    KnCode (*list)(KnStore *store, KnStoreListFn fn, void *arg,
                   KnErr *err); /* by namespace, then name */
    KnCode (*namespace_exists)(KnStore *store, const char *ns, bool *ret, KnErr *err);
    KnCode (*namespace_add)(KnStore *store, const char *ns, KnErr *err); /* exists = ok */
    void (*close)(KnStore *store);
} KnStoreOps;
/** First member of every implementation's struct. */
struct KnStore {
    const KnStoreOps *ops;
};

/** create: make file and schema when absent, else a missing one is KN_E_NOTFOUND. */
KN_NODISCARD KnCode kn_store_sqlite_open(const char *file, const char *catalog, bool create,
                                         KnStore **ret, KnErr *err);
