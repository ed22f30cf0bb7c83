/* SPDX-License-Identifier: Apache-2.0 */
/*
 * remote.c - the extension, and a secret for each scope.
 *
 * What was told is remembered as a hash for each scope, so that a read costs no statement when
 * nothing has changed, and keys that were refreshed replace the old ones. Texts of statements hold
 * keys here: they go to the engine and nowhere else, and its messages about them are not repeated.
 */
#include "engine/remote.h"

#include <dlfcn.h>
#include <libgen.h>
#include <unistd.h>

#include "base/hash.h"
#include "engine/engine_internal.h"

enum { MAX_STATEMENT = 1 << 20 };

static KnCode run(KnEngine *eng, const char *sql, KnErr *err)
{
    duckdb_result res;
    KnCode code = KN_OK;
    if (duckdb_query(eng->admin, sql, &res) != DuckDBSuccess)
        code = kn_engine_error(err, duckdb_result_error(&res));
    duckdb_destroy_result(&res);
    return code;
}

/* ---- the extension ---- */

static const char *library_folder(KnArena *arena)
{
    Dl_info info;
    if (!dladdr((void *)(uintptr_t)duckdb_library_version, &info) || !info.dli_fname)
        return NULL;
    char *real = realpath(info.dli_fname, NULL);
    const char *folder = kn_arena_strdup(arena, dirname(real ? real : (char[]){"."}));
    free(real);
    return folder;
}

static KnCode find_extension(KnArena *arena, const char **ret, KnErr *err)
{
    static const char name[] = "httpfs.duckdb_extension";
    const char *named = getenv("KNUT_DUCKDB_EXTENSIONS"), *lib = library_folder(arena);
    const char *paths[3] = {NULL};
    if (named && *named)
        paths[0] = kn_arena_printf(arena, "%s/%s", named, name);
    if (lib) {
        paths[1] = kn_arena_printf(arena, "%s/knut/%s", lib, name);
        paths[2] = kn_arena_printf(arena, "%s/../ext/%s", lib, name);
    }
    for (size_t i = 0; i < 3; i++) {
        if (paths[i] && access(paths[i], R_OK) == 0) {
            *ret = paths[i];
            return KN_OK;
        }
    }
    return kn_err_set(err, KN_E_NOTFOUND,
                      "the engine's extension %s, which reads object stores, is neither in "
                      "%s/knut nor in %s/../ext: put it there, or set KNUT_DUCKDB_EXTENSIONS to "
                      "its folder",
                      name, lib ? lib : "?", lib ? lib : "?");
}

static KnCode load_extension(KnEngine *eng, KnErr *err)
{
    KN_ARENA_AUTO arena = kn_arena_new(0);
    const char *path = NULL;
    KN_TRY(find_extension(arena, &path, err));
    KN_BUF_AUTO sql;
    kn_buf_init(&sql, MAX_STATEMENT);
    kn_buf_text(&sql, "LOAD ");
    kn_sql_text(&sql, kn_str(path));
    kn_buf_text(&sql, "; SET GLOBAL enable_global_s3_configuration = false;"
                      " SET GLOBAL enable_server_cert_verification = true;"
                      " SET GLOBAL http_retries = 5;"
                      /* Footers are looked at several times; data files never change. */
                      " SET GLOBAL enable_external_file_cache = true;"
                      " SET GLOBAL validate_external_file_cache = 'NO_VALIDATION';"
                      " SET GLOBAL enable_http_metadata_cache = true;");
    KnCode rc = run(eng, sql.data, err);
    if (rc != KN_OK)
        return kn_err_wrap(err, rc, "extension %s", path);
    eng->has_httpfs = true;
    return KN_OK;
}

/* ---- secrets ---- */

static void put_option(KnBuf *sql, const char *name, const char *value)
{
    kn_buf_printf(sql, ", %s ", name);
    kn_sql_text(sql, kn_str(value));
}

static void secret_sql(KnBuf *sql, const KnRemoteS3 *s3)
{
    char hex[17];
    kn_buf_printf(sql, "CREATE OR REPLACE TEMPORARY SECRET knut_%s (TYPE s3",
                  kn_hex64(kn_hash64(s3->scope, strlen(s3->scope), 0), hex));
    put_option(sql, "SCOPE", s3->scope);
    put_option(sql, "KEY_ID", s3->access_key_id);
    put_option(sql, "SECRET", s3->secret_access_key);
    if (s3->session_token)
        put_option(sql, "SESSION_TOKEN", s3->session_token);
    put_option(sql, "REGION", s3->region);
    put_option(sql, "ENDPOINT", s3->endpoint);
    put_option(sql, "URL_STYLE", s3->path_style ? "path" : "vhost");
    kn_buf_printf(sql, ", USE_SSL %s);", s3->tls ? "true" : "false");
    if (s3->tls && s3->ca_file) {
        kn_buf_text(sql, " SET GLOBAL ca_cert_file = ");
        kn_sql_text(sql, kn_str(s3->ca_file));
        kn_buf_char(sql, ';');
    }
}

static KnEngineSecret *secret_of(KnEngine *eng, const char *scope)
{
    kn_vec_foreach (&eng->secrets, secret)
        if (strcmp(secret->scope, scope) == 0)
            return secret;
    KnEngineSecret *secret = kn_vec_push(&eng->secrets);
    secret->scope = strdup(scope);
    if (!secret->scope)
        abort();
    return secret;
}

static KnCode reach(KnEngine *eng, const KnRemoteS3 *s3, KnErr *err)
{
    KN_BUF_AUTO sql;
    kn_buf_init(&sql, MAX_STATEMENT);
    secret_sql(&sql, s3);
    KN_TRY(kn_buf_check(&sql, err));
    KnEngineSecret *secret = secret_of(eng, s3->scope);
    uint64_t hash = kn_hash64(sql.data, sql.len, 1);
    KnCode rc = KN_OK;
    if (secret->hash != hash) {
        if (!eng->has_httpfs)
            rc = load_extension(eng, err);
        if (rc == KN_OK && run(eng, sql.data, NULL) != KN_OK)
            rc = kn_err_set(err, KN_E_INVAL,
                            "the engine does not accept the access to %s (endpoint %s, region %s)",
                            s3->scope, s3->endpoint, s3->region);
        if (rc == KN_OK)
            secret->hash = hash;
    }
    explicit_bzero(sql.data, sql.len);
    return rc;
}

KnCode kn_engine_reach_s3(KnEngine *eng, const KnRemoteS3 *s3, KnErr *err)
{
    (void)pthread_mutex_lock(&eng->lock);
    KnCode rc = reach(eng, s3, err);
    (void)pthread_mutex_unlock(&eng->lock);
    return rc;
}
