/* SPDX-License-Identifier: Apache-2.0 */
/*
 * postgres.c - the driver for PostgreSQL, over libpq.
 *
 * Statements are prepared on each connection at their first use: a pooler between must keep
 * sessions. Every transaction that writes notes its number (txid_current), so that after a lost
 * answer to COMMIT a new connection can ask the server what became of it (txid_status).
 *
 * Nothing that the address holds beside host, port and database gets into a message: user and
 * password are struck out of what the server says.
 */
#include <postgresql/libpq-fe.h>
#include <stdlib.h>
#include <string.h>

#include "base/fault.h"
#include "base/stop.h"
#include "catalog/store/sql.h"

enum { SETTLE_TRIES = 12, SETTLE_WAIT_US = 50000, SETTLE_WAIT_MAX_US = 2000000 };

typedef struct Driver {
    KnSqlDriver base;
    char *uri;
    char *user, *password;      /* to be struck out; or NULL */
    _Atomic(KnSqlConn *) spare; /* the one that looked at the schema */
} Driver;

typedef struct Conn {
    KnSqlConn base;
    PGconn *pg;
    bool prepared[KN_N_SQL];
    int n_params[KN_N_SQL];
    char txid[32]; /* of the transaction that writes */
} Conn;

/* ---- failures ---- */

static void strike_out(char *text, const char *secret)
{
    size_t len = secret ? strlen(secret) : 0;
    if (!len)
        return;
    for (char *at = strstr(text, secret); at; at = strstr(at, secret)) {
        memset(at, '*', len);
        at += len;
    }
}

/* What libpq says, without its line ends and without secrets; in arena. */
static const char *said(const Driver *drv, KnArena *arena, const char *text)
{
    char *out = kn_arena_strdup(arena, text ? text : "");
    size_t len = strlen(out);
    while (len && (out[len - 1] == '\n' || out[len - 1] == ' '))
        out[--len] = '\0';
    strike_out(out, drv->password);
    strike_out(out, getenv("PGPASSWORD"));
    if (drv->user) {
        strike_out(out, kn_arena_printf(arena, "\"%s\"", drv->user));
        strike_out(out, kn_arena_printf(arena, "%s:", drv->user));
        strike_out(out, kn_arena_printf(arena, "%s@", drv->user));
    }
    return out;
}

static const struct {
    const char *state; /* an SQLSTATE, or its class */
    KnCode code;
    const char *hint;
} states[] = {
    {"55P03", KN_E_BUSY, "another process has held it locked for 30 s"},
    {"40001", KN_E_BUSY, "it stood in the way of another transaction"},
    {"40P01", KN_E_BUSY, "it stood in the way of another transaction"},
    {"53300", KN_E_BUSY, "it has no connection left"},
    {"53100", KN_E_IO, "the disk is full"},
    {"42501", KN_E_IO, "no right to do this there"},
    {"22001", KN_E_INVAL, "a name or location is longer than its column"},
    {"28", KN_E_INVAL, "it does not let this user in"},
    {"3D000", KN_E_NOTFOUND, "there is no such database"},
};

static KnCode pg_failed(const Conn *conn, const PGresult *res, const char *what, KnErr *err)
{
    const Driver *drv = (const Driver *)conn->base.driver;
    KN_ARENA_AUTO arena = kn_arena_new(0);
    const char *state = res ? PQresultErrorField(res, PG_DIAG_SQLSTATE) : NULL;
    const char *text = res ? PQresultErrorField(res, PG_DIAG_MESSAGE_PRIMARY) : NULL;
    text = said(drv, arena, text ? text : PQerrorMessage(conn->pg));
    for (size_t i = 0; state && i < sizeof(states) / sizeof(states[0]); i++) {
        if (!strncmp(state, states[i].state, strlen(states[i].state)))
            return kn_err_set(err, states[i].code, "catalog %s: %s: %s (%s)", drv->base.name, what,
                              states[i].hint, text);
    }
    return kn_err_set(err, KN_E_IO, "catalog %s: %s: %s", drv->base.name, what, text);
}

/* ---- statements ---- */

static KnCode prepare_statement(Conn *conn, KnSqlStatement which, const char *name, KnErr *err)
{
    enum { TEXT_OID = 25 };
    static const Oid types[KN_SQL_PARAMS_MAX] = {TEXT_OID, TEXT_OID, TEXT_OID, TEXT_OID,
                                                 TEXT_OID, TEXT_OID, TEXT_OID, TEXT_OID,
                                                 TEXT_OID, TEXT_OID, TEXT_OID};
    char *text = kn_statement_text(which, &conn->base.driver->dialect, &conn->n_params[which]);
    PGresult *res = PQprepare(conn->pg, name, text, conn->n_params[which], types);
    free(text);
    KnCode rc = KN_OK;
    if (PQresultStatus(res) != PGRES_COMMAND_OK)
        rc = pg_failed(conn, res, "preparing a statement", err);
    else
        conn->prepared[which] = true;
    PQclear(res);
    return rc;
}

static KnCode each_row(const PGresult *res, const KnSqlCall *call, KnErr *err)
{
    int n = PQnfields(res);
    for (int row = 0; call->fn && row < PQntuples(res); row++) {
        const char *values[KN_SQL_COLUMNS_MAX] = {NULL};
        for (int i = 0; i < n && i < KN_SQL_COLUMNS_MAX; i++)
            values[i] = PQgetisnull(res, row, i) ? NULL : PQgetvalue(res, row, i);
        KN_TRY(call->fn(call->arg, values, err));
    }
    return KN_OK;
}

static KnCode pg_run(KnSqlConn *base, KnSqlCall *call, KnErr *err)
{
    Conn *conn = (Conn *)base;
    KnBuf name = {0};
    kn_buf_init(&name, 32);
    kn_buf_printf(&name, "s%d", (int)call->which);
    KnCode rc = KN_OK;
    if (!conn->prepared[call->which])
        rc = prepare_statement(conn, call->which, name.data, err);
    if (rc != KN_OK) {
        kn_buf_done(&name);
        return rc;
    }
    PGresult *res = PQexecPrepared(conn->pg, name.data, conn->n_params[call->which], call->params,
                                   NULL, NULL, 0);
    ExecStatusType status = PQresultStatus(res);
    int64_t changed = 0;
    if (status == PGRES_TUPLES_OK)
        rc = each_row(res, call, err);
    else if (status == PGRES_COMMAND_OK && kn_str_to_i64(kn_str(PQcmdTuples(res)), &changed))
        call->changed = changed;
    else if (status != PGRES_COMMAND_OK)
        rc = pg_failed(conn, res, "running a statement", err);
    PQclear(res);
    kn_buf_done(&name);
    return rc;
}

/* A text of several statements; the first value of the last one's answer into out. */
static KnCode run_text(Conn *conn, const char *sql, char *out, size_t room, KnErr *err)
{
    PGresult *res = PQexec(conn->pg, sql);
    ExecStatusType status = PQresultStatus(res);
    KnCode rc = KN_OK;
    if (status != PGRES_TUPLES_OK && status != PGRES_COMMAND_OK)
        rc = pg_failed(conn, res, "running a statement", err);
    else if (out && status == PGRES_TUPLES_OK && PQntuples(res) > 0) {
        KnStr value = kn_str(PQgetisnull(res, 0, 0) ? "" : PQgetvalue(res, 0, 0));
        size_t len = value.len < room - 1 ? value.len : room - 1;
        memcpy(out, value.ptr, len);
        out[len] = '\0';
    }
    PQclear(res);
    return rc;
}

static KnCode pg_exec(KnSqlConn *base, const char *sql, KnErr *err)
{
    return run_text((Conn *)base, sql, NULL, 0, err);
}

/* ---- transactions ---- */

static KnCode pg_begin(KnSqlConn *base, KnErr *err)
{
    Conn *conn = (Conn *)base;
    return run_text(conn, "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE; SELECT txid_current()",
                    conn->txid, sizeof(conn->txid), err);
}

static void pg_rollback(KnSqlConn *base)
{
    Conn *conn = (Conn *)base;
    if (PQstatus(conn->pg) == CONNECTION_OK && PQtransactionStatus(conn->pg) != PQTRANS_IDLE)
        PQclear(PQexec(conn->pg, "ROLLBACK"));
}

static bool pg_broken(const KnSqlConn *base)
{
    return PQstatus(((const Conn *)base)->pg) != CONNECTION_OK;
}

static KnCode pg_commit(KnSqlConn *base, KnErr *err)
{
    Conn *conn = (Conn *)base;
    PGresult *res = PQexec(conn->pg, "COMMIT");
    KnCode rc = KN_OK;
    if (PQresultStatus(res) != PGRES_COMMAND_OK) {
        rc = pg_failed(conn, res, "the answer to COMMIT was lost", err);
        if (pg_broken(base)) {
            rc = kn_err_recode(err, KN_E_UNKNOWN);
        }
    } else if (strcmp(PQcmdStatus(res), "COMMIT") != 0) {
        rc = kn_err_set(err, KN_E_IO, "catalog %s: the transaction was rolled back",
                        base->driver->name);
    }
    PQclear(res);
    return rc;
}

typedef enum Fate { COMMITTED, ABORTED, LATER, NO_IDEA } Fate;

static KnCode pg_connect(KnSqlDriver *base, KnSqlConn **ret, KnErr *err);
static void pg_disconnect(KnSqlConn *base);

/* What became of a transaction; LATER: it is under way still, or nobody answers. */
static Fate ask_fate(KnSqlDriver *drv, KnSqlConn **conn, const char *txid)
{
    char status[32] = "", sql[80] = "SELECT txid_status(";
    if (kn_fault_at("catalog-status-check", NULL) != KN_OK)
        return LATER;
    if (*conn && pg_broken(*conn)) {
        pg_disconnect(*conn);
        *conn = NULL;
    }
    if (!*conn && pg_connect(drv, conn, NULL) != KN_OK)
        return LATER;
    (void)strncat(sql, txid, sizeof(((Conn *)*conn)->txid));
    (void)strncat(sql, ")", 2);
    if (run_text((Conn *)*conn, sql, status, sizeof(status), NULL) != KN_OK)
        return pg_broken(*conn) ? LATER : NO_IDEA;
    if (!strcmp(status, "committed"))
        return COMMITTED;
    if (!strcmp(status, "aborted"))
        return ABORTED;
    return !strcmp(status, "in progress") ? LATER : NO_IDEA;
}

static KnCode pg_settle(KnSqlDriver *drv, KnSqlConn **conn, KnErr *err)
{
    KN_ARENA_AUTO arena = kn_arena_new(0);
    const char *txid = kn_arena_strdup(arena, ((Conn *)*conn)->txid);
    Fate fate = LATER;
    int64_t wait = SETTLE_WAIT_US;
    for (int i = 0; i < SETTLE_TRIES; i++) {
        fate = ask_fate(drv, conn, txid);
        if (fate != LATER || kn_stop_wait(wait))
            break;
        wait = wait * 2 > SETTLE_WAIT_MAX_US ? SETTLE_WAIT_MAX_US : wait * 2;
    }
    if (fate == COMMITTED)
        return KN_OK;
    if (fate == ABORTED)
        return kn_err_set(err, KN_E_IO, "catalog %s: the commit was not applied: %s", drv->name,
                          "the connection was lost before the server had it");
    return kn_err_recode(err, KN_E_UNKNOWN);
}

/* ---- opening ---- */

static void pg_disconnect(KnSqlConn *base)
{
    Conn *conn = (Conn *)base;
    PQfinish(conn->pg);
    free(conn);
}

static const char session_sql[] =
    "SET lock_timeout='30s'; SET idle_in_transaction_session_timeout='60s';"
    "SELECT set_config('synchronous_commit','on',false) WHERE"
    " current_setting('synchronous_commit')='off'";

static void pass_over(void *arg, const char *message)
{
    (void)arg, (void)message;
}

static KnCode new_connection(Driver *drv, Conn **ret, KnErr *err)
{
    /* What stands before dbname may be overridden by the address. */
    static const char *const keys[] = {"connect_timeout", "application_name", "tcp_user_timeout",
                                       "dbname",          "client_encoding",  NULL};
    const char *const values[] = {"10", "knut", "30000", drv->uri, "UTF8", NULL};
    Conn *conn = calloc(1, sizeof(*conn));
    if (!conn)
        abort();
    conn->base = (KnSqlConn){.ops = drv->base.ops, .driver = &drv->base};
    conn->pg = PQconnectdbParams(keys, values, 1);
    KnCode rc = KN_OK;
    if (PQstatus(conn->pg) != CONNECTION_OK) {
        KN_ARENA_AUTO arena = kn_arena_new(0);
        rc = kn_err_set(err, KN_E_IO, "catalog %s: no connection: %s", drv->base.name,
                        said(drv, arena, PQerrorMessage(conn->pg)));
    }
    if (rc == KN_OK) {
        (void)PQsetNoticeProcessor(conn->pg, pass_over, NULL);
        rc = run_text(conn, session_sql, NULL, 0, err);
    }
    if (rc != KN_OK) {
        pg_disconnect(&conn->base);
        return rc;
    }
    *ret = conn;
    return KN_OK;
}

static KnCode pg_connect(KnSqlDriver *base, KnSqlConn **ret, KnErr *err)
{
    Driver *drv = (Driver *)base;
    KnSqlConn *spare = atomic_exchange(&drv->spare, NULL);
    if (spare) {
        *ret = spare;
        return KN_OK;
    }
    Conn *conn = NULL;
    KN_TRY(new_connection(drv, &conn, err));
    *ret = &conn->base;
    return KN_OK;
}

static KnCode look_at_schema(Conn *conn, char shape[8], KnErr *err)
{
    static const char sql[] =
        "SELECT (CASE WHEN to_regclass('iceberg_tables') IS NULL THEN '-' ELSE 't' END) ||"
        " (CASE WHEN EXISTS (SELECT 1 FROM pg_attribute WHERE attname='iceberg_type' AND NOT"
        " attisdropped AND attrelid=to_regclass('iceberg_tables')) THEN 't' ELSE '-' END) ||"
        " (CASE WHEN to_regclass('knut_commits') IS NULL THEN '-' ELSE 't' END)";
    return run_text(conn, sql, shape, 8, err);
}

/* Under a lock: CREATE TABLE IF NOT EXISTS fails when two do it at once. */
static KnCode make_schema(Conn *conn, KnErr *err)
{
    KN_BUF_AUTO sql = {0};
    kn_buf_init(&sql, 1 << 16);
    kn_buf_printf(&sql, "SELECT pg_advisory_xact_lock(1802401140); %s; %s", kn_sql_schema,
                  kn_sql_log_schema);
    KN_TRY(kn_buf_check(&sql, err));
    return pg_exec(&conn->base, sql.data, err);
}

static KnCode prepare_with(Driver *drv, Conn *conn, bool create, KnErr *err)
{
    char shape[8] = "---";
    KN_TRY(look_at_schema(conn, shape, err));
    if (create && (shape[0] != 't' || shape[2] != 't')) {
        KN_TRY(make_schema(conn, err));
        KN_TRY(look_at_schema(conn, shape, err));
    }
    if (shape[0] != 't')
        return kn_err_set(err, KN_E_NOTFOUND,
                          "catalog %s: a database without the tables of a catalog; check --db, or "
                          "make a table first with 'knut table create'",
                          drv->base.name);
    if (!drv->base.prepared) /* a column that is added later may be passed over */
        drv->base.dialect.no_type = shape[1] != 't';
    drv->base.prepared = true;
    atomic_store(&drv->base.has_log, shape[2] == 't');
    return KN_OK;
}

static KnCode pg_prepare(KnSqlDriver *base, bool create, KnErr *err)
{
    Driver *drv = (Driver *)base;
    Conn *conn = NULL;
    KN_TRY(new_connection(drv, &conn, err));
    KnCode rc = prepare_with(drv, conn, create, err);
    KnSqlConn *none = NULL;
    if (rc != KN_OK || !atomic_compare_exchange_strong(&drv->spare, &none, &conn->base))
        pg_disconnect(&conn->base);
    return rc;
}

static uint64_t pg_generation(const KnSqlDriver *drv)
{
    (void)drv;
    return 0;
}

static void pg_close(KnSqlDriver *base)
{
    Driver *drv = (Driver *)base;
    KnSqlConn *spare = atomic_exchange(&drv->spare, NULL);
    if (spare)
        pg_disconnect(spare);
    free(drv->uri);
    free(drv->user);
    free(drv->password);
    free(drv->base.name);
    free(drv->base.id);
    free(drv);
}

static const KnSqlOps pg_ops = {
    .prepare = pg_prepare,
    .connect = pg_connect,
    .generation = pg_generation,
    .close = pg_close,
    .run = pg_run,
    .exec = pg_exec,
    .begin = pg_begin,
    .commit = pg_commit,
    .rollback = pg_rollback,
    .broken = pg_broken,
    .settle = pg_settle,
    .disconnect = pg_disconnect,
};

static char *copy(const char *text)
{
    char *out = strdup(text);
    if (!out)
        abort();
    return out;
}

/* The last word on a keyword that the address or the environment has; NULL = none. */
static const char *option(const PQconninfoOption *opts, const char *keyword)
{
    for (; opts && opts->keyword; opts++) {
        if (!strcmp(opts->keyword, keyword) && opts->val && *opts->val)
            return opts->val;
    }
    return NULL;
}

static const char *either(const char *a, const char *b, const char *c)
{
    return a ? a : b ? b : c;
}

static void name_it(Driver *drv, const PQconninfoOption *given, const PQconninfoOption *dflt)
{
    KnBuf name = {0};
    kn_buf_init(&name, 1 << 16);
    const char *host = either(option(given, "host"), option(given, "hostaddr"), NULL);
    kn_buf_printf(&name, "postgresql://%s:%s/%s", either(host, option(dflt, "host"), "localhost"),
                  either(option(given, "port"), option(dflt, "port"), "5432"),
                  either(option(given, "dbname"), option(dflt, "dbname"), ""));
    drv->base.id = copy(name.data);
    drv->base.name = kn_buf_steal(&name, NULL);
    drv->user = option(given, "user") ? copy(option(given, "user")) : NULL;
    drv->password = option(given, "password") ? copy(option(given, "password")) : NULL;
}

KnCode kn_sql_postgres_new(const char *uri, KnSqlDriver **ret, KnErr *err)
{
    char *why = NULL;
    PQconninfoOption *given = PQconninfoParse(uri, &why);
    PQfreemem(why); /* not shown: it may quote a password */
    if (!given)
        return kn_err_set(
            err, KN_E_INVAL,
            "--db is no valid postgresql:// address (postgresql://HOST:PORT/DATABASE; "
            "the password comes from PGPASSWORD or ~/.pgpass)");
    PQconninfoOption *dflt = PQconndefaults();
    Driver *drv = calloc(1, sizeof(*drv));
    if (!drv)
        abort();
    drv->base.ops = &pg_ops;
    drv->base.dialect = (KnSqlDialect){.collate = "\"C\"", .lock = " FOR UPDATE"};
    drv->uri = copy(uri);
    name_it(drv, given, dflt);
    PQconninfoFree(given);
    PQconninfoFree(dflt);
    *ret = &drv->base;
    return KN_OK;
}
