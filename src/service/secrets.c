/* SPDX-License-Identifier: Apache-2.0 */
/* secrets.c - see secrets.h. Values are copied into the environment and overwritten here. */
#include "service/secrets.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_SECRET = 1 << 20 };

const char *const kn_secret_names[] = {
    "AWS_ACCESS_KEY_ID",    "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN",    "MINIO_ACCESS_KEY",
    "MINIO_SECRET_KEY",     "PGUSER",
    "PGPASSWORD",           "DORIS_USER",
    "DORIS_PASSWORD",       "KNUT_REST_TOKEN",
    "KNUT_REST_CREDENTIAL", "KNUT_REST_PASSWORD",
    "KNUT_GRPC_TOKEN",      "KNUT_AIRFLOW_TOKEN",
    "OPENLINEAGE_API_KEY",  NULL,
};

static KnCode read_all(int fd, const char *path, char *text, size_t *ret_len, KnErr *err)
{
    size_t len = 0;
    ssize_t n;
    while ((n = read(fd, text + len, MAX_SECRET - len)) > 0)
        len += (size_t)n;
    if (n < 0)
        return kn_err_set(err, KN_E_IO, "credential %s: %s", path, kn_errno_text(errno));
    if (len == MAX_SECRET || memchr(text, 0, len))
        return kn_err_set(err, KN_E_INVAL, "credential %s: it is no text of less than 1 MiB", path);
    len -= len && text[len - 1] == '\n';
    text[len] = '\0';
    *ret_len = len;
    return KN_OK;
}

static KnCode take(const char *name, int fd, const char *path, KnErr *err)
{
    size_t len = 0;
    char *text = calloc(1, MAX_SECRET + 1);
    if (!text)
        abort();
    KnCode rc = read_all(fd, path, text, &len, err);
    if (rc == KN_OK && setenv(name, text, 0) != 0)
        rc = kn_err_set(err, KN_E_NOMEM, "credential %s: %s", path, kn_errno_text(errno));
    explicit_bzero(text, MAX_SECRET);
    free(text);
    return rc;
}

static KnCode take_named(const char *folder, const char *name, KnErr *err)
{
    char path[4096];
    int n = snprintf(path, sizeof(path), "%s/%s", folder, name);
    if (getenv(name) || n < 0 || (size_t)n >= sizeof(path))
        return KN_OK;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return kn_err_set(err, KN_E_IO, "credential %s: %s", path, kn_errno_text(errno));
    KnCode rc = take(name, fd, path, err);
    (void)close(fd);
    return rc;
}

static bool is_variable(const char *name)
{
    size_t len = strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_");
    return len > 0 && name[len] == '\0' && !(name[0] >= '0' && name[0] <= '9');
}

KnCode kn_secrets_take(KnErr *err)
{
    const char *folder = getenv("CREDENTIALS_DIRECTORY");
    if (!folder || !*folder)
        return KN_OK;
    DIR *dir = opendir(folder);
    if (!dir)
        return kn_err_set(err, KN_E_IO, "CREDENTIALS_DIRECTORY %s: %s", folder,
                          kn_errno_text(errno));
    KnCode rc = KN_OK;
    const struct dirent *entry;
    while (rc == KN_OK && (entry = readdir(dir)) != NULL)
        if (is_variable(entry->d_name))
            rc = take_named(folder, entry->d_name, err);
    (void)closedir(dir);
    return rc;
}
