/* SPDX-License-Identifier: Apache-2.0 */
/*
 * credentials_local.c - keys from the environment and from AWS profile files.
 *
 * Half a pair of keys is an error that names the missing half: going on to the next source would
 * sign with keys that nobody meant.
 */
#include <stdlib.h>
#include <string.h>

#include "storage/s3/credentials.h"

enum { MAX_FILE = 1 << 20 };

const char *kn_s3_env(const char *name)
{
    const char *value = getenv(name);
    return value && *value ? value : NULL;
}

const char *kn_s3_env_first(const char *const *names)
{
    for (; *names; ++names)
        if (kn_s3_env(*names))
            return kn_s3_env(*names);
    return NULL;
}

/* ---- environment ------------------------------------------------------------------------ */

typedef struct EnvNames {
    const char *key, *secret, *token;
} EnvNames;

static const EnvNames environments[] = {
    {"KNUT_S3_ACCESS_KEY_ID", "KNUT_S3_SECRET_ACCESS_KEY", "KNUT_S3_SESSION_TOKEN"},
    {"SKADE_S3_ACCESS_KEY_ID", "SKADE_S3_SECRET_ACCESS_KEY", "SKADE_S3_SESSION_TOKEN"},
    {"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"},
    {"MINIO_ACCESS_KEY", "MINIO_SECRET_KEY", "MINIO_SESSION_TOKEN"},
};

KnCode kn_s3_keys_environment(KnArena *arena, KnS3Keys *ret, KnS3Found *ret_found, KnErr *err)
{
    for (size_t i = 0; i < sizeof(environments) / sizeof(environments[0]); ++i) {
        const EnvNames *names = &environments[i];
        const char *key = kn_s3_env(names->key), *secret = kn_s3_env(names->secret);
        if (!key && !secret)
            continue;
        if (!key || !secret)
            return kn_err_set(err, KN_E_INVAL,
                              "the environment has %s but not %s: set both, or neither",
                              key ? names->key : names->secret, key ? names->secret : names->key);
        const char *token = kn_s3_env(names->token);
        *ret = (KnS3Keys){kn_arena_strdup(arena, key), kn_arena_strdup(arena, secret),
                          token ? kn_arena_strdup(arena, token) : NULL, 0};
        *ret_found = KN_S3_KEYS;
        return KN_OK;
    }
    return KN_OK;
}

/* ---- profile files ---------------------------------------------------------------------- */

static KnStr trim(KnStr s)
{
    while (s.len && strchr(" \t\r\n", s.ptr[0]))
        ++s.ptr, --s.len;
    while (s.len && strchr(" \t\r\n", s.ptr[s.len - 1]))
        --s.len;
    return s;
}

static KnStr next_line(KnStr *rest)
{
    const char *end = rest->len ? memchr(rest->ptr, '\n', rest->len) : NULL;
    KnStr line = {rest->ptr, end ? (size_t)(end - rest->ptr) : rest->len};
    size_t used = line.len + (end ? 1 : 0);
    *rest = (KnStr){rest->ptr + used, rest->len - used};
    return line;
}

/* "[name]" and "[profile name]". */
static bool is_section(KnStr line, KnStr section)
{
    const char *close = line.len ? memchr(line.ptr, ']', line.len) : NULL;
    if (!close || line.ptr[0] != '[')
        return false;
    KnStr name = trim((KnStr){line.ptr + 1, (size_t)(close - line.ptr - 1)});
    if (kn_str_starts_with(name, KN_STR_LIT("profile ")))
        name = trim((KnStr){name.ptr + 8, name.len - 8});
    return kn_str_eq(name, section);
}

const char *kn_s3_ini_find(KnArena *arena, KnStr text, const char *section, const char *key)
{
    bool inside = false;
    while (text.len) {
        KnStr raw = next_line(&text), line = trim(raw);
        if (!line.len || line.ptr[0] == '#' || line.ptr[0] == ';')
            continue;
        if (line.ptr[0] == '[') {
            inside = is_section(line, kn_str(section));
            continue;
        }
        const char *equals = memchr(line.ptr, '=', line.len);
        if (!inside || !equals || raw.ptr[0] == ' ' || raw.ptr[0] == '\t') /* nested: "s3 =" */
            continue;
        KnStr name = trim((KnStr){line.ptr, (size_t)(equals - line.ptr)});
        KnStr value = trim((KnStr){equals + 1, line.len - (size_t)(equals + 1 - line.ptr)});
        if (kn_str_eq_nocase(name, kn_str(key)) && value.len)
            return kn_arena_strndup(arena, value.ptr, value.len);
    }
    return NULL;
}

KnCode kn_s3_read_text(KnArena *arena, const char *path, const char **ret, KnErr *err)
{
    KnFileIO *io = NULL;
    KN_TRY(kn_io_local_open(&io, err));
    KN_BUF_AUTO buf;
    kn_buf_init(&buf, MAX_FILE);
    KnCode rc = kn_io_read_all(io, kn_str(path), MAX_FILE, &buf, err);
    io = kn_io_close(io);
    KN_TRY(rc);
    KnStr text = trim((KnStr){buf.data, buf.len});
    *ret = kn_arena_strndup(arena, text.ptr, text.len);
    return KN_OK;
}

static const char *file_path(KnArena *arena, const char *variable, const char *name)
{
    const char *given = kn_s3_env(variable), *home = kn_s3_env("HOME");
    if (given && given[0] != '/') {
        char *real = realpath(given, NULL);
        if (!real)
            return given;
        given = kn_arena_strdup(arena, real);
        free(real);
    }
    return given ? given : home ? kn_arena_printf(arena, "%s/.aws/%s", home, name) : NULL;
}

static const char *profile_name(void)
{
    static const char *const names[] = {"AWS_PROFILE", "AWS_DEFAULT_PROFILE", NULL};
    const char *name = kn_s3_env_first(names);
    return name ? name : "default";
}

/* The value of key in the profile, of the credentials file or else the config file; NULL = none. */
static const char *profile_value(KnArena *arena, const char *key)
{
    const char *paths[] = {file_path(arena, "AWS_SHARED_CREDENTIALS_FILE", "credentials"),
                           file_path(arena, "AWS_CONFIG_FILE", "config")};
    for (size_t i = 0; i < 2; ++i) {
        const char *text = NULL;
        if (!paths[i] || kn_s3_read_text(arena, paths[i], &text, NULL) != KN_OK)
            continue; /* not there: that is usual */
        const char *value = kn_s3_ini_find(arena, kn_str(text), profile_name(), key);
        if (value)
            return value;
    }
    return NULL;
}

const char *kn_s3_profile_region(KnArena *arena)
{
    return profile_value(arena, "region");
}

KnCode kn_s3_keys_profile(KnArena *arena, KnS3Keys *ret, KnS3Found *ret_found, KnErr *err)
{
    const char *key = profile_value(arena, "aws_access_key_id");
    const char *secret = profile_value(arena, "aws_secret_access_key");
    if (key && secret) {
        *ret = (KnS3Keys){key, secret, profile_value(arena, "aws_session_token"), 0};
        *ret_found = KN_S3_KEYS;
        return KN_OK;
    }
    if (key || secret)
        return kn_err_set(err, KN_E_INVAL, "AWS profile '%s' has %s but not %s", profile_name(),
                          key ? "aws_access_key_id" : "aws_secret_access_key",
                          key ? "aws_secret_access_key" : "aws_access_key_id");
    if (kn_s3_env("AWS_PROFILE") && !kn_s3_env("AWS_WEB_IDENTITY_TOKEN_FILE"))
        return kn_err_set(err, KN_E_INVAL,
                          "AWS_PROFILE is '%s', and no aws_access_key_id of that profile is in the "
                          "credentials file or the config file (roles, SSO and processes of a "
                          "profile are not supported: export their keys as AWS_ACCESS_KEY_ID, ...)",
                          profile_name());
    return KN_OK;
}
