/* SPDX-License-Identifier: Apache-2.0 */
/*
 * parquet_nanos.c - a walk through a footer's Thrift (compact protocol) that flips single bits.
 *
 * FileMetaData.schema (2) is a list of SchemaElement; logicalType (10) is a union whose TIMESTAMP
 * (8) holds isAdjustedToUTC (1) and unit (2), itself a union with NANOS (3). A bool lives in its
 * field's header: type 1 is true, 2 is false, so that clearing it moves nothing.
 *
 * What is not looked for is skipped by type.
 */
#include "engine/parquet_nanos.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/parquet_meta.h"
#include "engine/parquet_thrift.h"

typedef struct Walk {
    KnThrift t;
    uint8_t *footer; /* the bytes that t walks through, to be changed */
    size_t patched;
} Walk;

/* TimeUnit: true for NANOS. */
static bool unit_is_nanos(KnThrift *t)
{
    bool nanos = false;
    KnThriftField f = {0};
    while (kn_thrift_field_next(t, &f)) {
        nanos |= f.id == 3;
        kn_thrift_skip(t, f.type);
    }
    return nanos;
}

static void timestamp_patch(Walk *w)
{
    const uint8_t *adjusted = NULL;
    bool nanos = false;
    KnThriftField f = {0};
    while (kn_thrift_field_next(&w->t, &f)) {
        if (f.id == 1 && (f.type == KN_THRIFT_TRUE || f.type == KN_THRIFT_FALSE))
            adjusted = f.type == KN_THRIFT_TRUE ? f.header : NULL; /* of two, the last counts */
        else if (f.id == 2 && f.type == KN_THRIFT_STRUCT)
            nanos = unit_is_nanos(&w->t);
        else
            kn_thrift_skip(&w->t, f.type);
    }
    if (!w->t.bad && adjusted && nanos) {
        w->footer[adjusted - w->footer] = (uint8_t)((*adjusted & 0xf0) | KN_THRIFT_FALSE);
        w->patched++;
    }
}

static void logical_type_patch(Walk *w)
{
    KnThriftField f = {0};
    while (kn_thrift_field_next(&w->t, &f)) {
        if (f.id == 8 && f.type == KN_THRIFT_STRUCT)
            timestamp_patch(w);
        else
            kn_thrift_skip(&w->t, f.type);
    }
}

static void element_patch(Walk *w)
{
    KnThriftField f = {0};
    while (kn_thrift_field_next(&w->t, &f)) {
        if (f.id == 10 && f.type == KN_THRIFT_STRUCT)
            logical_type_patch(w);
        else
            kn_thrift_skip(&w->t, f.type);
    }
}

KnCode kn_parquet_nanos_patch(uint8_t *footer, size_t len, size_t *ret_patched, KnErr *err)
{
    Walk w = {.t = {.at = footer, .end = footer + len}, .footer = footer};
    bool found = false;
    KnThriftField f = {0};
    while (!found && kn_thrift_field_next(&w.t, &f)) {
        found = f.id == 2 && f.type == KN_THRIFT_LIST;
        if (!found) {
            kn_thrift_skip(&w.t, f.type);
            continue;
        }
        uint64_t n = kn_thrift_structs_open(&w.t, &f);
        for (uint64_t i = 0; i < n && !w.t.bad; i++)
            element_patch(&w);
    }
    if (w.t.bad || !found)
        return kn_err_set(err, KN_E_CORRUPT, "Parquet footer: damaged at byte %zu of %zu",
                          (size_t)(w.t.at - footer), len);
    *ret_patched = w.patched;
    return KN_OK;
}

static KnCode sys_error(KnErr *err, const char *what, const char *path)
{
    KnCode code = errno == ENOENT ? KN_E_NOTFOUND : KN_E_IO;
    return kn_err_set(err, code, "%s %s: %s", what, path, strerror(errno));
}

static KnCode blocks_copy(int in, int out, off_t size, const char *to, KnErr *err)
{
    char chunk[1 << 16];
    off_t done = 0;
    while (done < size) {
        ssize_t n = copy_file_range(in, NULL, out, NULL, (size_t)(size - done), 0);
        if (n < 0 &&
            (errno == EXDEV || errno == EINVAL || errno == ENOSYS || errno == EOPNOTSUPP)) {
            n = pread(in, chunk, sizeof(chunk), done);
            if (n > 0)
                n = pwrite(out, chunk, (size_t)n, done);
            /* The next copy_file_range() would start at the files' own positions. */
            if (n > 0 && (lseek(in, done + n, SEEK_SET) < 0 || lseek(out, done + n, SEEK_SET) < 0))
                n = -1;
        }
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0) {
            if (n == 0)
                errno = EIO;
            return sys_error(err, "cannot copy to", to);
        }
        done += n;
    }
    return KN_OK;
}

static KnCode footer_patch(int fd, off_t size, const char *path, size_t *ret_patched, KnErr *err)
{
    KN_BUF_AUTO footer = {0};
    int64_t at = 0;
    KnCode code = kn_pq_footer_read(fd, size, &footer, &at, err);
    if (code == KN_OK)
        code = kn_parquet_nanos_patch((uint8_t *)footer.data, footer.len, ret_patched, err);
    if (code != KN_OK)
        return kn_err_wrap(err, code, "%s", path);
    if (pwrite(fd, footer.data, footer.len, at) != (ssize_t)footer.len)
        return sys_error(err, "cannot write the footer of", path);
    return KN_OK;
}

KnCode kn_parquet_nanos_patch_file(const char *path, size_t *ret_patched, KnErr *err)
{
    struct stat st;
    int fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0)
        return sys_error(err, "cannot open", path);
    KnCode code = fstat(fd, &st) < 0 ? sys_error(err, "cannot stat", path)
                                     : footer_patch(fd, st.st_size, path, ret_patched, err);
    if (close(fd) < 0 && code == KN_OK)
        code = sys_error(err, "cannot write", path);
    return code;
}

KnCode kn_parquet_nanos_copy(const char *from, const char *to, size_t *ret_patched, KnErr *err)
{
    struct stat st;
    int in = open(from, O_RDONLY | O_CLOEXEC);
    if (in < 0)
        return sys_error(err, "cannot open", from);
    KnCode code = KN_OK;
    int out = -1;
    if (fstat(in, &st) < 0)
        code = sys_error(err, "cannot stat", from);
    else if ((out = open(to, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600)) < 0)
        code = sys_error(err, "cannot create", to);
    size_t patched = 0;
    if (code == KN_OK)
        code = blocks_copy(in, out, st.st_size, to, err);
    if (code == KN_OK)
        code = footer_patch(out, st.st_size, from, &patched, err);
    close(in);
    if (out >= 0 && close(out) < 0 && code == KN_OK)
        code = sys_error(err, "cannot write", to);
    if (out >= 0 && code != KN_OK)
        (void)unlink(to);
    if (code == KN_OK)
        *ret_patched = patched;
    return code;
}
