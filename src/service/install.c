/* SPDX-License-Identifier: Apache-2.0 */
/*
 * install.c - see install.h. systemd is spoken to by `systemctl` only, without a shell. What an
 * installed unit belongs to (configuration, journal, environment) is read from its section X-Knut,
 * which systemd passes over.
 */
#include "service/install.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/path.h"

KnCode kn_unit_place(KnArena *arena, const char *name, bool system, KnUnitPlace *ret, KnErr *err)
{
    const char *config = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");
    *ret = (KnUnitPlace){.system = system, .name = kn_arena_printf(arena, "%s.service", name)};
    if (system) {
        ret->unit = kn_arena_printf(arena, "/etc/systemd/system/%s.service", name);
        ret->env = kn_arena_printf(arena, "/etc/knut/%s.env", name);
        return KN_OK;
    }
    if (!config || *config != '/') {
        if (!home || *home != '/')
            return kn_err_set(err, KN_E_INVAL, "HOME is not set: where are the user's units?");
        config = kn_arena_printf(arena, "%s/.config", home);
    }
    ret->unit = kn_arena_printf(arena, "%s/systemd/user/%s.service", config, name);
    ret->env = kn_arena_printf(arena, "%s/knut/%s.env", config, name);
    return KN_OK;
}

/* ---- files ---- */

static KnCode make_folders(const char *path, KnErr *err)
{
    KN_ARENA_AUTO arena = kn_arena_new(512);
    char *folder = kn_arena_strdup(arena, path);
    for (char *p = folder + 1; *p; p++) {
        if (*p != '/')
            continue;
        *p = '\0';
        if (mkdir(folder, 0755) != 0 && errno != EEXIST)
            return kn_err_set(err, KN_E_IO, "%s: %s", folder, kn_errno_text(errno));
        *p = '/';
    }
    return KN_OK;
}

/* Its text is this one and its mode that one. */
static bool is_so(const char *path, KnStr text, unsigned mode)
{
    struct stat st;
    bool same = false;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    char *found = fd >= 0 ? malloc(text.len + 1) : NULL;
    if (found && fstat(fd, &st) == 0 && (st.st_mode & 07777) == mode &&
        (size_t)st.st_size == text.len && read(fd, found, text.len + 1) == (ssize_t)text.len)
        same = memcmp(found, text.ptr, text.len) == 0;
    free(found);
    if (fd >= 0)
        (void)close(fd);
    return same;
}

static KnCode write_new(const char *path, int fd, KnStr text, unsigned mode, KnErr *err)
{
    for (size_t at = 0; at < text.len;) {
        ssize_t n = write(fd, text.ptr + at, text.len - at);
        if (n < 0)
            return kn_err_set(err, KN_E_IO, "%s: %s", path, kn_errno_text(errno));
        at += (size_t)n;
    }
    if (fchmod(fd, mode) != 0 || fsync(fd) != 0)
        return kn_err_set(err, KN_E_IO, "%s: %s", path, kn_errno_text(errno));
    return KN_OK;
}

KnCode kn_file_put(const char *path, KnStr text, unsigned mode, bool *ret_changed, KnErr *err)
{
    KN_ARENA_AUTO arena = kn_arena_new(512);
    if (is_so(path, text, mode)) {
        *ret_changed = false;
        return KN_OK;
    }
    KN_TRY(make_folders(path, err));
    char *temporary = kn_arena_printf(arena, "%s.XXXXXX", path);
    int fd = mkostemp(temporary, O_CLOEXEC); /* mode 0600 from the first byte on */
    if (fd < 0)
        return kn_err_set(err, KN_E_IO, "%s: %s", path, kn_errno_text(errno));
    KnCode rc = write_new(path, fd, text, mode, err);
    (void)close(fd);
    if (rc == KN_OK && rename(temporary, path) != 0)
        rc = kn_err_set(err, KN_E_IO, "%s: %s", path, kn_errno_text(errno));
    if (rc != KN_OK) {
        (void)unlink(temporary);
        return rc;
    }
    *ret_changed = true;
    return KN_OK;
}

/* ---- systemctl ---- */

static KnCode systemctl(const KnUnitPlace *place, const char *verb, const char *unit, KnErr *err)
{
    const char *words[6] = {"systemctl"};
    size_t n = 1;
    pid_t pid;
    int status = 0;
    if (!place->system)
        words[n++] = "--user";
    words[n++] = verb;
    if (!strcmp(verb, "disable"))
        words[n++] = "--now";
    words[n] = unit;
    int failed = posix_spawnp(&pid, "systemctl", NULL, NULL, (char *const *)words, environ);
    if (failed)
        return kn_err_set(err, KN_E_IO, "systemctl: %s", kn_errno_text(failed));
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return kn_err_set(err, KN_E_IO, "systemctl: %s", kn_errno_text(errno));
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return KN_OK;
    return kn_err_set(err, KN_E_IO, "systemctl %s %s ended with %s %d", verb, unit ? unit : "",
                      WIFEXITED(status) ? "status" : "signal",
                      WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status));
}

KnCode kn_unit_control(const KnUnitPlace *place, const char *verb, KnErr *err)
{
    return systemctl(place, verb, place->name, err);
}

/* ---- install ---- */

static KnCode put_files(const KnUnitPlace *place, const KnServiceSpec *spec, KnFileChangeFn tell,
                        void *arg, bool *ret_changed, KnErr *err)
{
    KN_BUF_AUTO unit, env;
    bool unit_changed = false, env_changed = false;
    kn_buf_init(&unit, 1 << 20);
    kn_buf_init(&env, (size_t)16 << 20);
    kn_service_unit_write(spec, &unit);
    kn_service_env_write(spec, &env);
    KN_TRY(kn_buf_check(&unit, err));
    KN_TRY(kn_buf_check(&env, err));
    if (spec->n_secrets && !spec->credentials) {
        KN_TRY(kn_file_put(place->env, (KnStr){env.data, env.len}, 0600, &env_changed, err));
        tell(arg, place->env, env_changed ? "written" : "unchanged");
    }
    KN_TRY(kn_file_put(place->unit, (KnStr){unit.data, unit.len}, 0644, &unit_changed, err));
    tell(arg, place->unit, unit_changed ? "written" : "unchanged");
    *ret_changed = unit_changed || env_changed;
    return KN_OK;
}

KnCode kn_unit_install(const KnUnitPlace *place, const KnServiceSpec *spec, KnFileChangeFn tell,
                       void *arg, KnErr *err)
{
    bool changed = false;
    KN_TRY(put_files(place, spec, tell, arg, &changed, err));
    if (!changed)
        return KN_OK;
    KN_TRY(systemctl(place, "daemon-reload", NULL, err));
    KN_TRY(systemctl(place, "enable", place->name, err));
    return systemctl(place, "restart", place->name, err);
}

/* ---- uninstall ---- */

/* The value of a key of the section X-Knut; NULL = it has none. */
static const char *read_key(KnArena *arena, const char *unit, const char *key)
{
    const char *section = strstr(unit, "\n[X-Knut]\n");
    char *wanted = kn_arena_printf(arena, "\n%s=", key);
    const char *at = section ? strstr(section, wanted) : NULL;
    if (!at)
        return NULL;
    at += strlen(wanted);
    char *value = kn_arena_strndup(arena, at, strcspn(at, "\n")), *to = value;
    for (const char *from = value; *from; from++) { /* specifiers were doubled */
        from += from[0] == '%' && from[1] == '%';
        *to++ = *from;
    }
    *to = '\0';
    return value;
}

static KnCode remove_file(const char *path, KnFileChangeFn tell, void *arg, KnErr *err)
{
    if (unlink(path) == 0)
        tell(arg, path, "removed");
    else if (errno != ENOENT)
        return kn_err_set(err, KN_E_IO, "%s: %s", path, kn_errno_text(errno));
    return KN_OK;
}

static KnCode purge_all(KnArena *arena, const char *config, const char *state, KnFileChangeFn tell,
                        void *arg, KnErr *err)
{
    static const char *const suffixes[] = {"", "-wal", "-shm", ".lock"};
    for (size_t i = 0; state && i < sizeof(suffixes) / sizeof(suffixes[0]); i++)
        KN_TRY(remove_file(kn_arena_printf(arena, "%s%s", state, suffixes[i]), tell, arg, err));
    return config ? remove_file(config, tell, arg, err) : KN_OK;
}

static KnCode read_unit(const char *path, KnBuf *out, KnErr *err)
{
    char block[4096];
    size_t n;
    FILE *file = fopen(path, "re");
    if (!file)
        return errno == ENOENT
                   ? kn_err_set(err, KN_E_NOTFOUND, "%s is not there: nothing is installed", path)
                   : kn_err_set(err, KN_E_IO, "%s: %s", path, kn_errno_text(errno));
    while ((n = fread(block, 1, sizeof(block), file)) > 0)
        kn_buf_append(out, block, n);
    (void)fclose(file);
    return kn_buf_check(out, err);
}

KnCode kn_unit_uninstall(const KnUnitPlace *place, bool purge, KnFileChangeFn tell, void *arg,
                         KnErr *err)
{
    KN_ARENA_AUTO arena = kn_arena_new(4096);
    KN_BUF_AUTO unit;
    kn_buf_init(&unit, 1 << 20);
    KN_TRY(read_unit(place->unit, &unit, err));
    const char *text = unit.data ? unit.data : "";
    const char *config = read_key(arena, text, "Config"), *state = read_key(arena, text, "State"),
               *env = read_key(arena, text, "Environment");
    KN_TRY(systemctl(place, "disable", place->name, err));
    KN_TRY(remove_file(place->unit, tell, arg, err));
    if (env)
        KN_TRY(remove_file(env, tell, arg, err));
    KN_TRY(systemctl(place, "daemon-reload", NULL, err));
    if (purge)
        return purge_all(arena, config, state, tell, arg, err);
    if (config)
        tell(arg, config, "kept");
    if (state)
        tell(arg, state, "kept");
    return KN_OK;
}
