/* SPDX-License-Identifier: Apache-2.0 */
/*
 * place.c - where the database is: "postgresql://HOST:PORT/DATABASE?option=value", without secrets.
 *
 * libpq reads the text; who connects, with which password and certificate, comes from where all
 * programs over libpq take it (PGUSER, PGPASSWORD, PGPASSFILE, PGSERVICE, PGSSLCERT ...). A user or
 * a password in the text is refused, since the text is seen in process lists, reports and the
 * journal; and libpq's own messages about a bad text are not shown, since they repeat it.
 */
#include "postgres/place.h"

#include <postgresql/libpq-fe.h>
#include <stdlib.h>
#include <string.h>

#define FORM  "postgresql://HOST:PORT/DATABASE"
#define NANOS "nanoseconds="

/* Options of the connection that may stand in the text; the rest has environment variables. */
static const char *const ALLOWED[] = {
    "host",       "hostaddr",         "port",    "dbname",          "connect_timeout",
    "sslmode",    "sslrootcert",      "service", "channel_binding", "target_session_attrs",
    "gssencmode", "application_name",
};

static bool is_allowed(const char *keyword)
{
    for (size_t i = 0; i < sizeof(ALLOWED) / sizeof(ALLOWED[0]); ++i)
        if (strcmp(keyword, ALLOWED[i]) == 0)
            return true;
    return false;
}

/* Our own option leaves the text before libpq reads it. */
static KnCode take_nanos(char *uri, KnPgNanos *ret, KnErr *err)
{
    char *at = strchr(uri, '?');
    *ret = KN_PG_NANOS_REFUSE;
    while (at) {
        char *next = strchr(at + 1, '&');
        size_t len = next ? (size_t)(next - at) : strlen(at);
        if (strncmp(at + 1, NANOS, sizeof(NANOS) - 1) != 0) {
            at = next;
            continue;
        }
        KN_TRY(kn_pg_nanos_parse((KnStr){at + sizeof(NANOS), len - sizeof(NANOS)}, ret, err));
        if (next)
            memmove(at + 1, next + 1, strlen(next + 1) + 1);
        else
            *at = '\0';
        at = next ? at : NULL;
    }
    return KN_OK;
}

static KnCode refuse_user(const char *uri, KnErr *err)
{
    const char *start = uri + strlen("postgresql://");
    size_t len = strcspn(start, "/?");
    if (!memchr(start, '@', len))
        return KN_OK;
    return kn_err_set(err, KN_E_INVAL,
                      "postgresql: a user or password in the URL is seen by everyone on the "
                      "machine: write " FORM " and set PGUSER and PGPASSWORD (or a password file, "
                      "PGPASSFILE)");
}

static const char *find_value(const PQconninfoOption *opts, const char *keyword)
{
    for (; opts && opts->keyword; ++opts)
        if (strcmp(opts->keyword, keyword) == 0)
            return opts->val && opts->val[0] ? opts->val : NULL;
    return NULL;
}

static KnCode check_options(const PQconninfoOption *opts, KnErr *err)
{
    for (; opts->keyword; ++opts)
        if (opts->val && !is_allowed(opts->keyword))
            return kn_err_set(err, KN_E_INVAL,
                              "postgresql: option %s has no place in the URL: use libpq's "
                              "environment variables (PGUSER, PGPASSWORD, PGSSLCERT, PGOPTIONS, "
                              "...) or a service file",
                              opts->keyword);
    return KN_OK;
}

/* The stable half: where the environment fills in what the text leaves out, its answer counts. */
static KnCode name_place(KnArena *arena, const PQconninfoOption *given, KnPgPlace *ret, KnErr *err)
{
    PQconninfoOption *defaults = PQconndefaults();
    const char *host = find_value(given, "host"), *port = find_value(given, "port"),
               *dbname = find_value(given, "dbname");
    host = host ? host : find_value(given, "hostaddr");
    host = host ? host : find_value(given, "service"); /* it names a host, we need not know which */
    host = host ? host : find_value(defaults, "host");
    port = port ? port : find_value(defaults, "port");
    dbname = dbname ? dbname : find_value(given, "service");
    dbname = dbname ? dbname : find_value(defaults, "dbname");
    KnCode rc = KN_OK;
    if (!dbname)
        rc = kn_err_set(err, KN_E_INVAL, "postgresql: which database? expected " FORM);
    else
        ret->where = kn_arena_printf(arena, "postgresql://%s:%s/%s", host ? host : "localhost",
                                     port ? port : "5432", dbname);
    PQconninfoFree(defaults);
    return rc;
}

static void copy_options(KnArena *arena, const PQconninfoOption *opts, KnPgPlace *ret)
{
    /* What the text says, then ours, which the text may have said already (the last one wins in
     * libpq, so ours are only given where it did not). */
    static const char *const OURS[][2] = {
        {"connect_timeout", "10"},    {"application_name", "knut"},  {"client_encoding", "UTF8"},
        {"keepalives_idle", "30"},    {"keepalives_interval", "10"}, {"keepalives_count", "3"},
        {"tcp_user_timeout", "60000"}};
    const size_t n_ours = sizeof(OURS) / sizeof(OURS[0]),
                 n_allowed = sizeof(ALLOWED) / sizeof(ALLOWED[0]);
    const char **keywords = kn_arena_zalloc(arena, (n_ours + n_allowed + 1) * sizeof(*keywords));
    const char **values = kn_arena_zalloc(arena, (n_ours + n_allowed + 1) * sizeof(*values));
    size_t n = 0;
    for (const PQconninfoOption *opt = opts; opt->keyword; ++opt)
        if (opt->val) {
            keywords[n] = kn_arena_strdup(arena, opt->keyword);
            values[n++] = kn_arena_strdup(arena, opt->val);
        }
    for (size_t i = 0; i < n_ours; ++i)
        if (!find_value(opts, OURS[i][0])) {
            keywords[n] = OURS[i][0];
            values[n++] = OURS[i][1];
        }
    ret->keywords = keywords;
    ret->values = values;
}

KnCode kn_pg_place_parse(KnArena *arena, const char *place, KnPgPlace *ret, KnErr *err)
{
    KnPgPlace out = {0};
    char *uri = kn_arena_printf(arena, "postgresql:%s", place);
    if (strncmp(place, "//", 2) != 0)
        return kn_err_set(err, KN_E_INVAL, "postgresql: expected " FORM);
    KN_TRY(refuse_user(uri, err));
    KN_TRY(take_nanos(uri, &out.nanos, err));
    char *why = NULL;
    PQconninfoOption *opts = PQconninfoParse(uri, &why);
    if (why)
        PQfreemem(why);
    if (!opts)
        return kn_err_set(err, KN_E_INVAL,
                          "postgresql: the URL cannot be read: expected " FORM
                          " with percent-escapes where a name has special characters");
    KnCode rc = check_options(opts, err);
    if (rc == KN_OK)
        rc = name_place(arena, opts, &out, err);
    if (rc == KN_OK)
        copy_options(arena, opts, &out);
    PQconninfoFree(opts);
    KN_TRY(rc);
    *ret = out;
    return KN_OK;
}
