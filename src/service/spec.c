/* SPDX-License-Identifier: Apache-2.0 */
/* spec.c - see spec.h: the description is made from knut.yaml, this program and the environment. */
#include "service/spec.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/path.h"
#include "base/vec.h"
#include "service/secrets.h"

typedef KN_VEC(const char *) TextVec;

/* A DNS label: what Kubernetes takes everywhere, and systemd too. */
static KnCode check_name(const char *name, KnErr *err)
{
    size_t len = strlen(name);
    bool good = len > 0 && len <= 50 && isalpha((unsigned char)name[0]) && name[len - 1] != '-';
    for (const char *p = name; good && *p; p++)
        good = islower((unsigned char)*p) || isdigit((unsigned char)*p) || *p == '-';
    return good ? KN_OK
                : kn_err_set(
                      err, KN_E_INVAL,
                      "--name '%.60s': expected at most 50 of a-z, 0-9 and '-', a letter first",
                      name);
}

/* Paths stand in units and manifests, where a line is a line. */
static KnCode check_path(const char *what, const char *path, KnErr *err)
{
    for (const char *p = path; *p; p++)
        if ((unsigned char)*p < ' ' || *p == 127)
            return kn_err_set(err, KN_E_INVAL, "%s: a path with control characters", what);
    return KN_OK;
}

static KnCode real_path(KnArena *arena, const char *path, const char **ret, KnErr *err)
{
    char full[PATH_MAX];
    if (!realpath(path, full))
        return kn_err_set(err, errno == ENOENT ? KN_E_NOTFOUND : KN_E_IO, "%s: %s", path,
                          kn_errno_text(errno));
    *ret = kn_arena_strdup(arena, full);
    return check_path(path, full, err);
}

/* Against the folder of the configuration, textually: it need not be there yet. */
static KnCode full_path(KnArena *arena, const char *folder, const char *path, const char **ret,
                        KnErr *err)
{
    if (path[0] != '/')
        path = kn_path_join(arena, kn_str(folder), kn_str(path));
    KN_TRY(kn_path_local(arena, kn_str(path), ret, err));
    return check_path(path, *ret, err);
}

static const char *folder_of(KnArena *arena, const char *path)
{
    KnStr dir = kn_path_dirname(kn_str(path));
    return dir.len ? kn_arena_strndup(arena, dir.ptr, dir.len) : ".";
}

static void add_once(TextVec *list, const char *text)
{
    for (size_t i = 0; i < list->len; i++)
        if (!strcmp(list->items[i], text))
            return;
    *kn_vec_push(list) = text;
}

static const char *const *take_list(KnArena *arena, const TextVec *list)
{
    const char **copy = kn_arena_zalloc(arena, (list->len + 1) * sizeof(*copy));
    if (list->len)
        memcpy(copy, list->items, list->len * sizeof(*copy));
    return copy;
}

/* The folders of the journal and of destinations that are files here. */
static KnCode find_writable(const KnServiceConfig *config, const char *folder, KnArena *arena,
                            TextVec *list, KnServiceSpec *spec, KnErr *err)
{
    KN_TRY(full_path(arena, folder, config->opts.state, &spec->state, err));
    add_once(list, folder_of(arena, spec->state));
    for (size_t i = 0; i < config->n; i++) {
        const KnServiceDelivery *def = &config->deliveries[i];
        const char *place = strchr(def->set.sink, ':') + 1, *full = NULL;
        if (strcmp(def->sink_ops->kind, "duckdb") != 0)
            continue;
        KN_TRY(full_path(arena, folder, place, &full, err));
        add_once(list, folder_of(arena, full));
    }
    if (config->opts.lineage && !strncmp(config->opts.lineage, "file:", 5)) {
        const char *full = NULL;
        KN_TRY(full_path(arena, folder, config->opts.lineage + 5, &full, err));
        add_once(list, folder_of(arena, full));
    }
    return KN_OK;
}

/* Names of ${NAME} in the file, also in its comments. */
static void find_variables(const char *text, KnArena *arena, TextVec *names)
{
    for (const char *p = strstr(text, "${"); p; p = strstr(p, "${")) {
        p += 2;
        size_t len = strspn(p, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_");
        if (len)
            add_once(names, kn_arena_strndup(arena, p, len));
    }
}

/* Secrets by name, and whatever the file refers to: that may be one too. */
static void find_secrets(KnArena *arena, KnServiceSpec *spec)
{
    TextVec names = {0};
    for (const char *const *name = kn_secret_names; *name; name++)
        add_once(&names, *name);
    find_variables(spec->config_text, arena, &names);
    KnSecretValue *found = kn_arena_zalloc(arena, (names.len + 1) * sizeof(*found));
    for (size_t i = 0; i < names.len; i++) {
        const char *value = getenv(names.items[i]);
        if (value)
            found[spec->n_secrets++] =
                (KnSecretValue){names.items[i], kn_arena_strdup(arena, value)};
    }
    kn_vec_done(&names);
    spec->secrets = found;
}

/* "HOST:PORT", ":PORT", "PORT". */
static KnCode find_port(const char *listen, KnServiceSpec *spec, KnErr *err)
{
    int64_t port = 0;
    if (!listen)
        return KN_OK;
    const char *colon = strrchr(listen, ':');
    if (!kn_str_to_i64(kn_str(colon ? colon + 1 : listen), &port) || port < 1 || port > 65535)
        return kn_err_set(err, KN_E_INVAL, "listen '%.100s': a service needs a port of its own",
                          listen);
    spec->port = (int)port;
    spec->loopback = !colon || !strncmp(listen, "127.", 4) || !strncmp(listen, "[::1]", 5) ||
                     !strncmp(listen, "localhost:", 10);
    return KN_OK;
}

static void make_args(const KnSpecOptions *opts, KnArena *arena, KnServiceSpec *spec)
{
    TextVec args = {0};
    const char *const words[] = {"cdc",         "run",  "--config",     spec->config,
                                 "--log-level", "info", "--log-format", "json"};
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        *kn_vec_push(&args) = words[i];
    if (opts->listen) {
        *kn_vec_push(&args) = "--listen";
        *kn_vec_push(&args) = opts->listen;
    }
    spec->args = take_list(arena, &args);
    kn_vec_done(&args);
}

static KnCode read_text(const char *path, KnArena *arena, const char **ret, KnErr *err)
{
    KN_BUF_AUTO text;
    kn_buf_init(&text, (size_t)4 << 20);
    char block[4096];
    size_t n;
    FILE *file = fopen(path, "re");
    if (!file)
        return kn_err_set(err, KN_E_IO, "%s: %s", path, kn_errno_text(errno));
    while ((n = fread(block, 1, sizeof(block), file)) > 0)
        kn_buf_append(&text, block, n);
    (void)fclose(file);
    KN_TRY(kn_buf_check(&text, err));
    *ret = kn_arena_strndup(arena, text.data ? text.data : "", text.len);
    return KN_OK;
}

static KnCode describe(const KnSpecOptions *opts, const KnServiceConfig *config, KnArena *arena,
                       KnServiceSpec *spec, KnErr *err)
{
    TextVec writable = {0};
    const char *listen = opts->listen ? opts->listen : config->opts.listen;
    KnCode rc = find_writable(config, folder_of(arena, spec->config), arena, &writable, spec, err);
    spec->writable = take_list(arena, &writable);
    kn_vec_done(&writable);
    KN_TRY(rc);
    find_secrets(arena, spec);
    make_args(opts, arena, spec);
    return find_port(listen ? kn_arena_strdup(arena, listen) : NULL, spec, err);
}

KnCode kn_service_spec_make(const KnSpecOptions *opts, KnArena *arena, KnServiceSpec *ret,
                            KnErr *err)
{
    KnServiceConfig *config = NULL;
    KnServiceSpec spec = {.name = opts->name,
                          .program = opts->program,
                          .env_file = opts->env_file,
                          .credentials = opts->credentials,
                          .run_as = opts->run_as,
                          .system = opts->system,
                          .image = opts->image,
                          .namespace = opts->namespace,
                          .state_size = opts->state_size};
    KN_TRY(check_name(spec.name, err));
    KN_TRY(real_path(arena, opts->config, &spec.config, err));
    if (!spec.program)
        KN_TRY(real_path(arena, "/proc/self/exe", &spec.program, err));
    KN_TRY(read_text(spec.config, arena, &spec.config_text, err));
    KN_TRY(kn_service_config_load(spec.config, &config, err));
    KnCode rc = describe(opts, config, arena, &spec, err);
    config = kn_service_config_unref(config);
    KN_TRY(rc);
    *ret = spec;
    return KN_OK;
}
