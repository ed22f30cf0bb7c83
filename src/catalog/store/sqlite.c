/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sqlite.c - the driver for a SQLite file.
 *
 * The first change switches the file to write-ahead logging: readers do not wait for a writer, and
 * a commit is one fsync (synchronous=FULL). Any other program that knows SQLite may share the file.
 * Statements wait up to BUSY_MS for another writer. SQLite says of most failures that nothing has
 * changed; a COMMIT that fails otherwise is told as one with a lost answer.
 *
 * The generation is read from the wal-index, the memory that SQLite's processes share to tell one
 * another of commits: 48 bytes of header of which bytes 8-11 count commits (SQLite's file format,
 * "WAL-index format"). It is mapped by SQLite itself (xShmMap), never by us: closing a descriptor
 * of our own would drop SQLite's locks. The connection that it belongs to stays open as long as the
 * driver.
 */
#include <pthread.h>
#include <sqlite3.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/path.h"
#include "catalog/store/sql.h"

enum { BUSY_MS = 30000, SHM_REGION = 32768, SHM_COMMITS_AT = 8, SHM_FRAMES_AT = 16 };

typedef struct Driver {
    KnSqlDriver base;
    char *file;
    bool immutable; /* in a folder where SQLite could not make its files */
    KnSqlConn *anchor;
    const _Atomic uint32_t *commits, *frames; /* in the wal-index; NULL = not there */
} Driver;

typedef struct Conn {
    KnSqlConn base;
    sqlite3 *db;
    sqlite3_stmt *stmts[KN_N_SQL];
    int index[KN_N_SQL][KN_SQL_PARAMS_MAX]; /* SQLite's numbers of $1, $2, … */
    int n_params[KN_N_SQL];
} Conn;

static KnCode failed(const Conn *conn, const char *what, KnErr *err)
{
    const char *file = conn->base.driver->name;
    switch (sqlite3_errcode(conn->db) & 0xff) {
    case SQLITE_NOTADB:
    case SQLITE_CORRUPT:
        return kn_err_set(err, KN_E_CORRUPT,
                          "catalog %s: %s: it is not a SQLite database, or is damaged (%s)", file,
                          what, sqlite3_errmsg(conn->db));
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return kn_err_set(err, KN_E_BUSY,
                          "catalog %s: %s: another process has held it locked for %d s", file, what,
                          BUSY_MS / 1000);
    case SQLITE_READONLY:
    case SQLITE_PERM:
    case SQLITE_CANTOPEN:
        return kn_err_set(err, KN_E_IO,
                          "catalog %s: %s: no right to write the file or its folder (%s)", file,
                          what, sqlite3_errmsg(conn->db));
    case SQLITE_FULL:
        return kn_err_set(err, KN_E_IO, "catalog %s: %s: the disk is full", file, what);
    default:
        return kn_err_set(err, KN_E_IO, "catalog %s: %s: %s", file, what, sqlite3_errmsg(conn->db));
    }
}

/* ---- statements ---- */

static KnCode statement(Conn *conn, KnSqlStatement which, sqlite3_stmt **ret, KnErr *err)
{
    if (!conn->stmts[which]) {
        char *text = kn_statement_text(which, &conn->base.driver->dialect, &conn->n_params[which]);
        int rc = sqlite3_prepare_v3(conn->db, text, -1, SQLITE_PREPARE_PERSISTENT,
                                    &conn->stmts[which], NULL);
        free(text);
        if (rc != SQLITE_OK)
            return failed(conn, "preparing a statement", err);
        for (int i = 0; i < conn->n_params[which]; i++) {
            char name[8];
            (void)sqlite3_snprintf(sizeof(name), name, "$%d", i + 1);
            conn->index[which][i] = sqlite3_bind_parameter_index(conn->stmts[which], name);
        }
    }
    *ret = conn->stmts[which];
    return KN_OK;
}

static KnCode bind(Conn *conn, const KnSqlCall *call, sqlite3_stmt *stmt, KnErr *err)
{
    for (int i = 0; i < conn->n_params[call->which]; i++) {
        int rc = sqlite3_bind_text(stmt, conn->index[call->which][i], call->params[i], -1,
                                   SQLITE_STATIC);
        if (rc != SQLITE_OK)
            return failed(conn, "binding a value", err);
    }
    return KN_OK;
}

static KnCode each_row(Conn *conn, KnSqlCall *call, sqlite3_stmt *stmt, KnErr *err)
{
    int step = SQLITE_DONE;
    while ((step = sqlite3_step(stmt)) == SQLITE_ROW) {
        if (!call->fn)
            continue;
        const char *values[KN_SQL_COLUMNS_MAX] = {NULL};
        int n = sqlite3_column_count(stmt);
        for (int i = 0; i < n && i < KN_SQL_COLUMNS_MAX; i++)
            values[i] = (const char *)sqlite3_column_text(stmt, i);
        KN_TRY(call->fn(call->arg, values, err));
    }
    if (step != SQLITE_DONE)
        return failed(conn, "running a statement", err);
    call->changed = sqlite3_changes(conn->db);
    return KN_OK;
}

static KnCode sqlite_run(KnSqlConn *base, KnSqlCall *call, KnErr *err)
{
    Conn *conn = (Conn *)base;
    sqlite3_stmt *stmt = NULL;
    KN_TRY(statement(conn, call->which, &stmt, err));
    KnCode rc = bind(conn, call, stmt, err);
    if (rc == KN_OK)
        rc = each_row(conn, call, stmt, err);
    (void)sqlite3_reset(stmt); /* its failure was told by the step */
    (void)sqlite3_clear_bindings(stmt);
    return rc;
}

static KnCode sqlite_exec(KnSqlConn *base, const char *sql, KnErr *err)
{
    Conn *conn = (Conn *)base;
    if (sqlite3_exec(conn->db, sql, NULL, NULL, NULL) != SQLITE_OK)
        return failed(conn, "writing", err);
    return KN_OK;
}

/* ---- transactions ---- */

static KnCode sqlite_begin(KnSqlConn *base, KnErr *err)
{
    return sqlite_exec(base, "BEGIN IMMEDIATE", err);
}

static void sqlite_rollback(KnSqlConn *base)
{
    Conn *conn = (Conn *)base;
    if (!sqlite3_get_autocommit(conn->db)) /* a failure may have ended it already */
        (void)sqlite3_exec(conn->db, "ROLLBACK", NULL, NULL, NULL);
}

static KnCode sqlite_commit(KnSqlConn *base, KnErr *err)
{
    Conn *conn = (Conn *)base;
    KnCode rc = sqlite_exec(base, "COMMIT", err);
    if (rc == KN_OK)
        return rc;
    int code = sqlite3_errcode(conn->db) & 0xff;
    bool untouched = code == SQLITE_BUSY || code == SQLITE_LOCKED || code == SQLITE_READONLY ||
                     code == SQLITE_NOTADB || code == SQLITE_CANTOPEN;
    sqlite_rollback(base);
    if (untouched)
        return rc;
    base->doubtful = true;
    return kn_err_recode(err, KN_E_UNKNOWN);
}

static bool sqlite_broken(const KnSqlConn *base)
{
    (void)base;
    return false;
}

/* The pointer tells. */
static KnCode sqlite_settle(KnSqlDriver *drv, KnSqlConn **conn, KnErr *err)
{
    (void)drv, (void)conn, (void)err;
    return KN_E_UNKNOWN;
}

/* ---- opening ---- */

static void sqlite_disconnect(KnSqlConn *base)
{
    Conn *conn = (Conn *)base;
    for (int i = 0; i < KN_N_SQL; i++)
        (void)sqlite3_finalize(conn->stmts[i]);
    (void)sqlite3_close(conn->db);
    free(conn);
}

/* A path as SQLite's URIs spell it. */
static char *immutable_uri(const char *file)
{
    KnBuf uri;
    kn_buf_init(&uri, 1 << 16);
    kn_buf_text(&uri, "file:");
    for (; *file; file++) {
        if (strchr("%?#", *file))
            kn_buf_printf(&uri, "%%%02X", (unsigned)*file);
        else
            kn_buf_char(&uri, *file);
    }
    kn_buf_text(&uri, "?immutable=1");
    return kn_buf_steal(&uri, NULL);
}

static KnCode open_db(const Driver *drv, Conn *conn, KnErr *err)
{
    char *uri = NULL;
    int flags = SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE;
    if (drv->immutable) {
        uri = immutable_uri(drv->file);
        flags |= SQLITE_OPEN_READONLY | SQLITE_OPEN_URI;
    } else {
        flags |= SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE;
    }
    int rc = sqlite3_open_v2(uri ? uri : drv->file, &conn->db, flags, NULL);
    free(uri);
    if (rc != SQLITE_OK)
        return failed(conn, "opening it", err);
    (void)sqlite3_busy_timeout(conn->db, BUSY_MS);
    if (sqlite3_exec(conn->db, "PRAGMA synchronous=FULL", NULL, NULL, NULL) != SQLITE_OK)
        return failed(conn, "opening it", err);
    return KN_OK;
}

static KnCode sqlite_connect(KnSqlDriver *base, KnSqlConn **ret, KnErr *err)
{
    Conn *conn = calloc(1, sizeof(*conn));
    if (!conn)
        abort();
    conn->base = (KnSqlConn){.ops = base->ops, .driver = base};
    KnCode rc = open_db((Driver *)base, conn, err);
    if (rc != KN_OK) {
        sqlite_disconnect(&conn->base);
        return rc;
    }
    *ret = &conn->base;
    return KN_OK;
}

/* The wal-index as SQLite has it mapped; without one there is no generation. */
static void find_generation(Driver *drv, Conn *conn)
{
    sqlite3_file *file = NULL;
    volatile void *shm = NULL;
    if (sqlite3_file_control(conn->db, "main", SQLITE_FCNTL_FILE_POINTER, &file) != SQLITE_OK ||
        !file || !file->pMethods || file->pMethods->iVersion < 2 || !file->pMethods->xShmMap)
        return;
    if (file->pMethods->xShmMap(file, 0, SHM_REGION, 0, &shm) != SQLITE_OK || !shm)
        return;
    const char *at = (const char *)(uintptr_t)shm;
    drv->commits = (const _Atomic uint32_t *)(uintptr_t)(at + SHM_COMMITS_AT);
    drv->frames = (const _Atomic uint32_t *)(uintptr_t)(at + SHM_FRAMES_AT);
}

static KnCode note_mode(void *arg, int n, char **values, char **names)
{
    (void)names;
    *(bool *)arg = n == 1 && values[0] && !strcmp(values[0], "wal");
    return 0;
}

/* Best effort: a file that another program holds, or that lies where memory cannot be shared, stays
 * in its mode, and works, without a generation. */
static void use_wal(Driver *drv, Conn *conn)
{
    bool wal = false;
    (void)sqlite3_busy_timeout(conn->db, 2000);
    if (!drv->immutable)
        (void)sqlite3_exec(conn->db, "PRAGMA journal_mode=WAL",
                           (int (*)(void *, int, char **, char **))note_mode, &wal, NULL);
    (void)sqlite3_busy_timeout(conn->db, BUSY_MS);
    /* A first read attaches the connection to the wal-index. */
    if (wal && sqlite3_exec(conn->db, "SELECT 1 FROM sqlite_master", NULL, NULL, NULL) == SQLITE_OK)
        find_generation(drv, conn);
}

typedef struct Shape {
    bool tables, type, log;
} Shape;

static int note_shape(void *arg, int n, char **values, char **names)
{
    (void)names;
    Shape *shape = arg;
    if (n != 3 || !values[0] || !values[1] || !values[2])
        return 1;
    *shape = (Shape){values[0][0] != '0', values[1][0] != '0', values[2][0] != '0'};
    return 0;
}

static KnCode look_at_schema(Driver *drv, Conn *conn, Shape *ret, KnErr *err)
{
    (void)drv;
    static const char sql[] =
        "SELECT (SELECT count(*) FROM pragma_table_info('iceberg_tables')),"
        " (SELECT count(*) FROM pragma_table_info('iceberg_tables') WHERE name='iceberg_type'),"
        " (SELECT count(*) FROM pragma_table_info('knut_commits'))";
    if (sqlite3_exec(conn->db, sql, note_shape, ret, NULL) != SQLITE_OK)
        return failed(conn, "reading its schema", err);
    return KN_OK;
}

static KnCode sqlite_prepare(KnSqlDriver *base, bool create, KnErr *err)
{
    Driver *drv = (Driver *)base;
    if (!drv->anchor)
        KN_TRY(sqlite_connect(base, &drv->anchor, err));
    Conn *conn = (Conn *)drv->anchor;
    Shape shape = {0};
    KN_TRY(look_at_schema(drv, conn, &shape, err));
    if (create && (!shape.tables || !shape.log)) {
        use_wal(drv, conn);
        KN_TRY(sqlite_exec(drv->anchor, kn_sql_schema, err));
        KN_TRY(sqlite_exec(drv->anchor, kn_sql_log_schema_sqlite, err));
        KN_TRY(look_at_schema(drv, conn, &shape, err));
    } else if (create) {
        use_wal(drv, conn);
    }
    if (!shape.tables)
        return kn_err_set(err, KN_E_NOTFOUND,
                          "catalog %s: a SQLite database without the tables of a catalog; check "
                          "--db, or make a table first with 'knut table create'",
                          drv->file);
    if (!base->prepared) /* a column that is added later may be passed over */
        base->dialect.no_type = !shape.type;
    base->prepared = true;
    atomic_store(&base->has_log, shape.log);
    return KN_OK;
}

/* Our commits add one to the upper half; a checkpoint that starts the log anew changes the lower.
 */
static uint64_t sqlite_generation(const KnSqlDriver *base)
{
    const Driver *drv = (const Driver *)base;
    if (!drv->commits)
        return 0;
    uint64_t commits =
        atomic_load_explicit((_Atomic uint32_t *)(uintptr_t)drv->commits, memory_order_acquire);
    uint64_t frames =
        atomic_load_explicit((_Atomic uint32_t *)(uintptr_t)drv->frames, memory_order_acquire);
    return (commits << 32 | frames) + 1; /* never 0 */
}

static void sqlite_close(KnSqlDriver *base)
{
    Driver *drv = (Driver *)base;
    if (drv->anchor)
        sqlite_disconnect(drv->anchor);
    free(drv->file);
    free(drv->base.name);
    free(drv->base.id);
    free(drv);
}

static const KnSqlOps sqlite_ops = {
    .prepare = sqlite_prepare,
    .connect = sqlite_connect,
    .generation = sqlite_generation,
    .close = sqlite_close,
    .run = sqlite_run,
    .exec = sqlite_exec,
    .begin = sqlite_begin,
    .commit = sqlite_commit,
    .rollback = sqlite_rollback,
    .broken = sqlite_broken,
    .settle = sqlite_settle,
    .disconnect = sqlite_disconnect,
};

static char *copy(const char *text)
{
    char *out = strdup(text);
    if (!out)
        abort();
    return out;
}

/* In a folder where SQLite cannot make its files a database can be read all the same, when nothing
 * of it is in a log. */
static bool is_immutable(const char *file)
{
    KN_ARENA_AUTO arena = kn_arena_new(0);
    KnStr folder = kn_path_dirname(kn_str(file));
    const char *dir = folder.len ? kn_arena_strndup(arena, folder.ptr, folder.len) : ".";
    return access(dir, W_OK) != 0 && access(kn_arena_printf(arena, "%s-wal", file), F_OK) != 0;
}

KnCode kn_sql_sqlite_new(const char *file, bool create, KnSqlDriver **ret, KnErr *err)
{
    struct stat info;
    if (!create && stat(file, &info) != 0)
        return kn_err_set(err, KN_E_NOTFOUND, "no catalog at %s: check --warehouse or --db", file);
    Driver *drv = calloc(1, sizeof(*drv));
    if (!drv)
        abort();
    drv->base.ops = &sqlite_ops;
    drv->base.dialect = (KnSqlDialect){.collate = "BINARY", .lock = ""};
    drv->file = copy(file);
    drv->base.name = copy(file);
    drv->immutable = !create && is_immutable(file);
    drv->base.read_only = drv->immutable;
    *ret = &drv->base;
    return KN_OK;
}
