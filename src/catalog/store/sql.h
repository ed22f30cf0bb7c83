/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * sql.h - what a database driver does for store_sql.c: connections that run the statements of
 * sql_text.c. A connection belongs to one thread at a time.
 *
 * Statements are written so that both databases take them: parameters are $1, $2, … in order of
 * their first place, all texts (NULL = SQL null), numbers are cast. A driver replaces
 * `COLLATE BINARY` and the mark of a row lock (kn_statement_text()).
 */
#include <stdatomic.h>

#include "catalog/store/store.h"

typedef enum KnSqlStatement {
    KN_SQL_FIND,
    KN_SQL_LIST,
    KN_SQL_LIST_ALL,
    KN_SQL_NAMESPACES,
    KN_SQL_NS_EXACT,
    KN_SQL_NS_BELOW,
    KN_SQL_NS_ENTRIES,
    KN_SQL_NS_GET,
    KN_SQL_NS_ADD,
    KN_SQL_NS_PUT,
    KN_SQL_NS_UNSET,
    KN_SQL_NS_DELETE,
    KN_SQL_INSERT,
    KN_SQL_SWAP,
    KN_SQL_REMOVE,
    KN_SQL_RENAME,
    KN_SQL_SEQ_LOCK,
    KN_SQL_SEQ_GET,
    KN_SQL_SEQ_INIT,
    KN_SQL_SEQ_SET,
    KN_SQL_LOG_ADD,
    KN_SQL_LOG_SINCE,
    KN_SQL_LOG_PRUNE,
    KN_SQL_PING,
    KN_SQL_SAVEPOINT,
    KN_SQL_RELEASE,
    KN_SQL_ROLLBACK_TO,
    KN_N_SQL,
} KnSqlStatement;

enum { KN_SQL_PARAMS_MAX = 11, KN_SQL_COLUMNS_MAX = 10 };

typedef struct KnSqlDialect {
    const char *collate; /* "BINARY", "\"C\"" */
    const char *lock;    /* "", " FOR UPDATE" */
    bool no_type;        /* schema V0: there is no column iceberg_type */
} KnSqlDialect;

/** The statement's text in a dialect (malloc'ed) and the number of its parameters. */
char *kn_statement_text(KnSqlStatement which, const KnSqlDialect *dialect, int *ret_n_params);
/** Schema: statements that make what is absent, separated by ';'. */
extern const char kn_sql_schema[];     /* the JDBC catalog's, V1 */
extern const char kn_sql_log_schema[]; /* ours */
extern const char kn_sql_log_schema_sqlite[];

typedef KnCode (*KnSqlRowFn)(void *arg, const char *const *values, KnErr *err);
typedef struct KnSqlCall {
    KnSqlStatement which;
    const char *params[KN_SQL_PARAMS_MAX];
    KnSqlRowFn fn; /* told of every row; or NULL */
    void *arg;
    int64_t changed; /* out: rows that were changed */
} KnSqlCall;

typedef struct KnSqlConn KnSqlConn;
typedef struct KnSqlDriver KnSqlDriver;

/* Every callback is required. */
typedef struct KnSqlOps {
    /* --- the driver --- */
    /* What is there: KN_E_NOTFOUND without the tables of a catalog (made when create). Sets
     * driver->dialect.no_type and driver->has_log. */
    KnCode (*prepare)(KnSqlDriver *drv, bool create, KnErr *err);
    KnCode (*connect)(KnSqlDriver *drv, KnSqlConn **ret, KnErr *err);
    uint64_t (*generation)(const KnSqlDriver *drv);
    void (*close)(KnSqlDriver *drv);
    /* --- a connection --- */
    KnCode (*run)(KnSqlConn *conn, KnSqlCall *call, KnErr *err);
    KnCode (*exec)(KnSqlConn *conn, const char *sql, KnErr *err); /* several statements */
    KnCode (*begin)(KnSqlConn *conn, KnErr *err);                 /* to write */
    /* KN_E_UNKNOWN: the answer was lost. Other failures: nothing was changed. */
    KnCode (*commit)(KnSqlConn *conn, KnErr *err);
    void (*rollback)(KnSqlConn *conn);
    bool (*broken)(const KnSqlConn *conn); /* of no use any more; another may be made */
    /* After KN_E_UNKNOWN: whether that transaction took effect; KN_E_UNKNOWN stays when it cannot
     * be told, KN_E_IO is a definite no. conn is replaced when it is broken. */
    KnCode (*settle)(KnSqlDriver *drv, KnSqlConn **conn, KnErr *err);
    void (*disconnect)(KnSqlConn *conn);
} KnSqlOps;

/* First members of every driver's structs. */
struct KnSqlDriver {
    const KnSqlOps *ops;
    KnSqlDialect dialect;
    atomic_bool has_log; /* knut_commits is there */
    bool prepared;       /* dialect is known and stays */
    char *name;          /* the database, for messages */
    char *id;            /* without "jdbc:" and without "#catalog" */
    bool read_only;
};
struct KnSqlConn {
    const KnSqlOps *ops;
    KnSqlDriver *driver;
    bool doubtful; /* what a COMMIT that failed has written may come back at recovery */
};

KN_NODISCARD KnCode kn_sql_sqlite_new(const char *file, bool create, KnSqlDriver **ret, KnErr *err);
KN_NODISCARD KnCode kn_sql_postgres_new(const char *uri, KnSqlDriver **ret, KnErr *err);
