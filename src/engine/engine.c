/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine.c - instances of the embedded engine: configuration, the spill folder, the version check.
 *
 * Everything is configured before the database opens, so that no statement ever runs with the
 * engine's own defaults (which look for extensions on the network, keep secrets in the home folder
 * and spill into the working directory).
 *
 * An instance keeps one administrative connection for registering functions and resolving type
 * names; it is guarded by the instance's lock. The spill folder is ours unless the caller names
 * one.
 */
#include <assert.h>
#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "engine/engine_internal.h"
#include "engine/open_files.h"

enum { SETTINGS_MAX = 16, NUMBER_MAX = 32, OPEN_FDS = 16 };
#define DEFAULT_MEMORY ((uint64_t)256 << 20)

typedef struct Settings {
    const char *keys[SETTINGS_MAX];
    const char *values[SETTINGS_MAX];
    size_t n;
    char memory[NUMBER_MAX];
    char spill[NUMBER_MAX];
    char threads[NUMBER_MAX];
} Settings;

static void set(Settings *cfg, const char *key, const char *value)
{
    assert(cfg->n < SETTINGS_MAX);
    cfg->keys[cfg->n] = key;
    cfg->values[cfg->n++] = value;
}

static const char *number(char out[NUMBER_MAX], uint64_t value, const char *unit)
{
    (void)snprintf(out, NUMBER_MAX, "%llu%s", (unsigned long long)value, unit);
    return out;
}

static void settings_fill(Settings *cfg, const KnEngineOptions *opts, const char *spill_dir)
{
    set(cfg, "autoinstall_known_extensions", "false");
    set(cfg, "autoload_known_extensions", "false");
    set(cfg, "allow_persistent_secrets", "false");
    set(cfg, "allow_community_extensions", "false");
    set(cfg, "preserve_insertion_order", opts->any_order ? "false" : "true");
    /* The file cache copies what is read once into the buffer pool; our files are read once. */
    set(cfg, "enable_external_file_cache", "false");
    set(cfg, "temp_directory", spill_dir);
    set(cfg, "memory_limit",
        number(cfg->memory, opts->memory_limit ? opts->memory_limit : DEFAULT_MEMORY, "B"));
    if (opts->threads > 0)
        set(cfg, "threads", number(cfg->threads, (uint64_t)opts->threads, ""));
    if (opts->max_spill)
        set(cfg, "max_temp_directory_size", number(cfg->spill, opts->max_spill, "B"));
    if (opts->read_only)
        set(cfg, "access_mode", "READ_ONLY");
}

static KnCode database_open(KnEngine *eng, const KnEngineOptions *opts, const Settings *cfg,
                            KnErr *err)
{
    duckdb_config config;
    if (duckdb_create_config(&config) != DuckDBSuccess)
        abort();
    KnCode code = KN_OK;
    for (size_t i = 0; i < cfg->n && code == KN_OK; i++) {
        if (duckdb_set_config(config, cfg->keys[i], cfg->values[i]) != DuckDBSuccess)
            code = kn_err_set(err, KN_E_INVAL, "engine setting %s = '%s' is not accepted",
                              cfg->keys[i], cfg->values[i]);
    }
    char *why = NULL;
    if (code == KN_OK && duckdb_open_ext(opts->database, &eng->db, config, &why) != DuckDBSuccess)
        code = kn_err_wrap(err, kn_engine_error(err, why), "database %s",
                           opts->database ? opts->database : "in memory");
    duckdb_free(why);
    duckdb_destroy_config(&config);
    return code;
}

static KnCode admin_open(KnEngine *eng, KnErr *err)
{
    if (duckdb_connect(eng->db, &eng->admin) != DuckDBSuccess)
        return kn_err_set(err, KN_E_NOMEM, "the engine accepts no connection");
    duckdb_result res;
    KnCode code = KN_OK;
    if (duckdb_query(eng->admin, "SET GLOBAL TimeZone = 'UTC'", &res) != DuckDBSuccess)
        code = kn_engine_error(err, duckdb_result_error(&res));
    duckdb_destroy_result(&res);
    return code;
}

static KnCode spill_make(KnEngine *eng, KnErr *err)
{
    const char *base = getenv("TMPDIR");
    if (!base || !*base)
        base = "/tmp";
    char *path = NULL;
    if (asprintf(&path, "%s/knut-spill-XXXXXX", base) < 0)
        abort();
    if (!mkdtemp(path)) {
        KnCode code = kn_err_set(err, KN_E_IO, "cannot make a folder for spilled data in %s: %s",
                                 base, strerror(errno));
        free(path);
        return code;
    }
    eng->own_spill = path;
    return KN_OK;
}

static int remove_entry(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
    (void)st;
    (void)flag;
    (void)ftw;
    (void)remove(path);
    return 0;
}

KnEngine *kn_engine_close(KnEngine *eng)
{
    if (!eng)
        return NULL;
    assert(atomic_load(&eng->n_sessions) == 0);
    duckdb_disconnect(&eng->admin);
    duckdb_close(&eng->db);
    kn_open_file_forget(eng->open_file);
    if (eng->own_spill)
        (void)nftw(eng->own_spill, remove_entry, OPEN_FDS, FTW_DEPTH | FTW_PHYS);
    free(eng->own_spill);
    kn_vec_done(&eng->scalars);
    kn_vec_foreach (&eng->secrets, secret)
        free(secret->scope);
    kn_vec_done(&eng->secrets);
    pthread_mutex_destroy(&eng->lock);
    free(eng);
    return NULL;
}

static KnCode engine_start(KnEngine *eng, const KnEngineOptions *opts, KnErr *err)
{
    if (!opts->spill_dir)
        KN_TRY(spill_make(eng, err));
    Settings cfg = {0};
    settings_fill(&cfg, opts, opts->spill_dir ? opts->spill_dir : eng->own_spill);
    if (opts->database)
        KN_TRY(kn_open_file_begin(opts->database, opts->read_only, err));
    KnCode code = database_open(eng, opts, &cfg, err);
    if (opts->database)
        eng->open_file = kn_open_file_end(opts->database, opts->read_only, code == KN_OK);
    KN_TRY(code);
    return admin_open(eng, err);
}

KnCode kn_engine_open(const KnEngineOptions *opts, KnEngine **ret, KnErr *err)
{
    if (strcmp(duckdb_library_version(), KN_ENGINE_VERSION) != 0)
        return kn_err_set(err, KN_E_UNSUPPORTED,
                          "libduckdb is %s and must be %s: install the library that knut came with",
                          duckdb_library_version(), KN_ENGINE_VERSION);
    KnEngine *eng = kn_engine_zalloc(sizeof(*eng));
    pthread_mutex_init(&eng->lock, NULL);
    KnCode code = engine_start(eng, opts, err);
    if (code != KN_OK) {
        kn_engine_close(eng);
        return code;
    }
    *ret = eng;
    return KN_OK;
}

KnCode kn_engine_type_parse(KnEngine *eng, const char *name, duckdb_logical_type *ret, KnErr *err)
{
    KN_BUF_AUTO sql;
    kn_buf_init(&sql, KN_ENGINE_MAX_SQL);
    kn_buf_printf(&sql, "SELECT CAST(NULL AS %s)", name);
    KN_TRY(kn_buf_check(&sql, err));
    duckdb_result res;
    KnCode code = KN_OK;
    pthread_mutex_lock(&eng->lock);
    if (duckdb_query(eng->admin, sql.data, &res) == DuckDBSuccess)
        *ret = duckdb_column_logical_type(&res, 0);
    else
        code = kn_engine_error(err, duckdb_result_error(&res));
    duckdb_destroy_result(&res);
    pthread_mutex_unlock(&eng->lock);
    return code == KN_OK ? code : kn_err_wrap(err, code, "type %s", name);
}
