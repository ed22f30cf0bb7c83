/* SPDX-License-Identifier: Apache-2.0 */
/*
 * body.c - the bytes of one load, whose number must be known before the first is sent.
 *
 * Small ones stay in memory. What is larger goes to a file without a name in the spill folder,
 * readable by nobody else and gone with the process; so memory is bounded and the same bytes can be
 * sent again.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "doris_internal.h"

#define MEMORY ((size_t)2 << 20)

void kn_doris_body_init(KnDorisBody *body, const char *folder)
{
    *body = (KnDorisBody){.folder = folder, .fd = -1};
}

void kn_doris_body_done(KnDorisBody *body)
{
    free(body->mem);
    body->mem = NULL;
    if (body->fd >= 0)
        (void)close(body->fd);
    body->fd = -1;
}

static KnCode failed(const KnDorisBody *body, const char *what, KnErr *err)
{
    int saved = errno;
    KnCode rc = kn_err_set(err, KN_E_IO, "a file in %s cannot be %s: %s", body->folder, what,
                           strerror(saved));
    if (err)
        err->sys_errno = saved;
    return rc;
}

static KnCode open_file(KnDorisBody *body, KnErr *err)
{
    body->fd = open(body->folder, O_TMPFILE | O_RDWR | O_CLOEXEC | O_EXCL, 0600);
    if (body->fd >= 0)
        return KN_OK;
    char path[4096];
    int n = snprintf(path, sizeof(path), "%s/knut-load-XXXXXX", body->folder);
    if (n < 0 || (size_t)n >= sizeof(path))
        return kn_err_set(err, KN_E_INVAL, "the spill folder's name is too long");
    body->fd = mkostemp(path, O_CLOEXEC);
    if (body->fd < 0)
        return failed(body, "made", err);
    (void)unlink(path);
    return KN_OK;
}

static KnCode write_all(KnDorisBody *body, const char *bytes, size_t len, KnErr *err)
{
    while (len) {
        ssize_t n = write(body->fd, bytes, len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return failed(body, "written", err);
        bytes += n;
        len -= (size_t)n;
    }
    return KN_OK;
}

KnCode kn_doris_body_append(KnDorisBody *body, const void *bytes, size_t len, KnErr *err)
{
    if (!body->mem && !(body->mem = malloc(MEMORY)))
        abort();
    if (body->fd < 0 && body->mem_len + len <= MEMORY) {
        memcpy(body->mem + body->mem_len, bytes, len);
        body->mem_len += len;
        body->len += len;
        return KN_OK;
    }
    if (body->fd < 0) {
        KN_TRY(open_file(body, err));
        KN_TRY(write_all(body, body->mem, body->mem_len, err));
        body->mem_len = 0;
    }
    KN_TRY(write_all(body, bytes, len, err));
    body->len += len;
    return KN_OK;
}

KnCode kn_doris_body_read(void *arg, uint64_t offset, void *out, size_t cap, size_t *ret_n,
                          KnErr *err)
{
    KnDorisBody *body = arg;
    if (body->fd < 0) {
        size_t left = offset < body->mem_len ? body->mem_len - (size_t)offset : 0;
        *ret_n = left < cap ? left : cap;
        memcpy(out, body->mem + offset, *ret_n);
        return KN_OK;
    }
    ssize_t n;
    do
        n = pread(body->fd, out, cap, (off_t)offset);
    while (n < 0 && errno == EINTR);
    if (n < 0)
        return failed(body, "read", err);
    *ret_n = (size_t)n;
    return KN_OK;
}
