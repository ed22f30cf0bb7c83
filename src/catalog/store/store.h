/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * store.h - the pointers of a catalog, in a database with the JDBC-catalog schema.
 *
 * Tables `iceberg_tables` and `iceberg_namespace_properties` are those of Java's JdbcCatalog
 * (JdbcUtil, schema V1 with iceberg_type for views, and V0 without) and of PyIceberg's SqlCatalog,
 * so that all of them open the same database. Beside them we keep `knut_commits`, the log of what
 * was changed through us, and `knut_commit_seq`, its counter; other programs pass those over.
 *
 * A namespace is its levels joined by dots (core/names.h spells dots inside a level). Everything
 * here is thread-safe, and many processes may share a database.
 *
 * The SQL is written once (sql_text.c, store_sql*.c) over the drivers sqlite.c and postgres.c.
 */
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/json.h"

typedef struct KnStore KnStore;

typedef struct KnStoreName {
    const char *ns, *name;
} KnStoreName;

typedef struct KnStoreEntry {
    bool is_view;
    const char *location; /* NULL: there is none of that name */
} KnStoreEntry;

/* ---- changes ---- */
typedef enum KnChangeKind {
    KN_CHANGE_REQUIRE_NS, /* KN_E_NOTFOUND unless the namespace exists */
    KN_CHANGE_ADD_NS,     /* made when absent */
    KN_CHANGE_CREATE_NS,  /* with properties; KN_E_EXISTS */
    KN_CHANGE_DROP_NS,    /* KN_E_NOTFOUND, KN_E_REFUSED when something is in it */
    KN_CHANGE_UPDATE_NS,  /* removals, then properties; KN_E_NOTFOUND */
    KN_CHANGE_INSERT,     /* an entry at `to`; KN_E_EXISTS */
    KN_CHANGE_SWAP,       /* its pointer from `from` to `to`; KN_E_CONFLICT, KN_E_NOTFOUND */
    KN_CHANGE_REMOVE,     /* KN_E_NOTFOUND */
    KN_CHANGE_RENAME,     /* to `to_name`; KN_E_NOTFOUND, KN_E_EXISTS */
    KN_CHANGE_LOG,        /* a row of the log and nothing else */
} KnChangeKind;
typedef struct KnChange {
    KnChangeKind kind;
    bool is_view;
    int event;        /* KnEventKind of the log's row; -1 = not logged */
    KnStoreName name; /* a namespace: name.ns */
    KnStoreName to_name;
    const char *from, *to;
    int64_t snapshot_id; /* for the log; -1 = none */
    const json_t *properties, *removals;
} KnChange;

/* What happens whole or not at all, with a verdict of its own. */
typedef struct KnUnit {
    const KnChange *changes;
    size_t n;
    KnCode code; /* verdict */
    KnErr err;
    bool doubtful; /* it was not applied, and may come back when the database is recovered */
    /* used by group.c */
    bool done;
    pthread_cond_t *wake;
} KnUnit;

/* ---- the log ---- */
typedef struct KnStoreEvent {
    int64_t seq, timestamp_ms, snapshot_id;
    int kind;
    bool is_view;
    KnStoreName name, from;
    const char *location;
} KnStoreEvent;
typedef KnCode (*KnStoreEventFn)(void *arg, const KnStoreEvent *event, KnErr *err);
typedef KnCode (*KnStoreNameFn)(void *arg, const char *ns, const char *name, KnErr *err);

typedef struct KnStoreList {
    const char *ns;
    bool views;
    const char *after; /* names after this one in byte order; "" = from the first */
    size_t limit;      /* 0 = all */
} KnStoreList;

typedef struct KnStoreOptions {
    const char *db;      /* file, or postgresql://… */
    const char *catalog; /* catalog_name */
    bool create;         /* make what is absent; else KN_E_NOTFOUND */
    int connections;     /* for reading */
    int64_t keep_events; /* at least so many stay in the log, older ones go; 0 = all stay */
} KnStoreOptions;

/** db says which kind. Messages never hold user or password of it. */
KN_NODISCARD KnCode kn_store_open(const KnStoreOptions *opts, KnStore **ret, KnErr *err);
KnStore *kn_store_close(KnStore *store); /* accepts NULL, returns NULL */
/** True for what --db takes to be PostgreSQL. */
bool kn_store_is_postgres(const char *db);
/** "jdbc:/path/catalog.db#knut" or "jdbc:postgresql://host:port/db#knut". */
const char *kn_store_id(const KnStore *store);
/** The database, without secrets, for messages. */
const char *kn_store_name(const KnStore *store);
bool kn_store_is_sqlite(const KnStore *store);
/** A number that changes with every change of the database by whomever; 0 = cannot be told without
 * asking. A load from memory. Grows by exactly 1<<32 with each commit of ours (mirror.c). */
uint64_t kn_store_generation(const KnStore *store);
KN_NODISCARD KnCode kn_store_ping(KnStore *store, KnErr *err);

/** KN_OK also when there is none of that name. */
KN_NODISCARD KnCode kn_store_find(KnStore *store, KnArena *arena, const KnStoreName *name,
                                  KnStoreEntry *ret, KnErr *err);
/** In byte order of names. */
KN_NODISCARD KnCode kn_store_list(KnStore *store, const KnStoreList *list, KnStoreNameFn fn,
                                  void *arg, KnErr *err);
/** All tables of the catalog, by namespace, then name. */
KN_NODISCARD KnCode kn_store_list_all(KnStore *store, KnStoreNameFn fn, void *arg, KnErr *err);
/** Every namespace that has properties or entries and begins with prefix ("" or "a.b."), in byte
 * order; name is NULL. */
KN_NODISCARD KnCode kn_store_namespaces(KnStore *store, const char *prefix, KnStoreNameFn fn,
                                        void *arg, KnErr *err);
KN_NODISCARD KnCode kn_store_namespace_exists(KnStore *store, const char *ns, bool *ret,
                                              KnErr *err);
/** A new object of strings. KN_OK and an empty one also when there is no such namespace. */
KN_NODISCARD KnCode kn_store_namespace_get(KnStore *store, const char *ns, json_t **ret,
                                           KnErr *err);
/** All units in one transaction of the database; the verdict of each is in it. KN_E_UNKNOWN: the
 * answer was lost and asking did not help. One call at a time (group.h sees to that). */
void kn_store_commit(KnStore *store, KnUnit *const *units, size_t n);
/** Oldest first. */
KN_NODISCARD KnCode kn_store_events(KnStore *store, int64_t after, size_t limit, KnStoreEventFn fn,
                                    void *arg, KnErr *err);
KN_NODISCARD KnCode kn_store_last_event(KnStore *store, int64_t *ret, KnErr *err);
/** A copy of the whole database as it is at one moment, in a file that is not there yet; others may
 * go on using it. KN_E_UNSUPPORTED for PostgreSQL. */
KN_NODISCARD KnCode kn_store_backup(KnStore *store, const char *file, KnErr *err);
