/* SPDX-License-Identifier: Apache-2.0 */
/*
 * parquet_nanos.c - a walk through a footer's Thrift (compact protocol) that flips single bits.
 *
 * FileMetaData.schema (2) is a list of SchemaElement; logicalType (10) is a union whose TIMESTAMP
 * (8) holds isAdjustedToUTC (1) and unit (2), itself a union with NANOS (3). A bool lives in its
 * field's header: type 1 is true, 2 is false, so that clearing it moves nothing.
 *
 * The bytes come from outside: every read is checked against the end, nesting is limited, and what
 * is not looked for is skipped by type. A list of n elements needs at least n bytes except for
 * empty structs, which are one byte too, so counts cannot make the walk longer than the footer.
 */
#include "engine/parquet_nanos.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"

enum { MAX_DEPTH = 32, MAX_FOOTER = 1 << 30, TAIL = 8 };

typedef enum ThriftType {
    T_STOP = 0,
    T_TRUE = 1,
    T_FALSE = 2,
    T_BYTE = 3,
    T_I16 = 4,
    T_I32 = 5,
    T_I64 = 6,
    T_DOUBLE = 7,
    T_BINARY = 8,
    T_LIST = 9,
    T_SET = 10,
    T_MAP = 11,
    T_STRUCT = 12,
} ThriftType;

typedef struct Walk {
    uint8_t *at;
    uint8_t *end;
    size_t patched;
    bool bad;
} Walk;

typedef struct Field {
    uint8_t *header; /* where its type nibble is */
    int type;
    int id;
} Field;

static uint8_t byte_next(Walk *w)
{
    if (w->bad || w->at == w->end) {
        w->bad = true;
        return 0;
    }
    return *w->at++;
}

static uint64_t varint_next(Walk *w)
{
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
        uint8_t b = byte_next(w);
        value |= (uint64_t)(b & 0x7f) << shift;
        if (!(b & 0x80))
            return value;
    }
    w->bad = true;
    return 0;
}

static void bytes_skip(Walk *w, uint64_t n)
{
    if (w->bad || n > (uint64_t)(w->end - w->at))
        w->bad = true;
    else
        w->at += n;
}

/* The next field of a struct; false at its end. id: that of the field before, 0 at first. */
static bool field_next(Walk *w, Field *f)
{
    uint8_t *header = w->at;
    uint8_t b = byte_next(w);
    if (w->bad || (b & 0x0f) == T_STOP)
        return false;
    f->header = header;
    f->type = b & 0x0f;
    if (b >> 4) {
        f->id += b >> 4;
    } else {
        uint64_t zigzag = varint_next(w);
        f->id = (int)(int16_t)((zigzag >> 1) ^ (~(zigzag & 1) + 1));
    }
    return !w->bad;
}

static void value_skip(Walk *w, int type, int depth);

static void struct_skip(Walk *w, int depth)
{
    Field f = {0};
    while (field_next(w, &f))
        value_skip(w, f.type, depth);
}

static uint64_t list_open(Walk *w, int *ret_type)
{
    uint8_t b = byte_next(w);
    *ret_type = b & 0x0f;
    uint64_t n = b >> 4;
    return n == 15 ? varint_next(w) : n;
}

/* A bool in a list or map is a byte of its own, in a field it is part of the header. */
static void element_skip(Walk *w, int type, int depth)
{
    if (type == T_TRUE || type == T_FALSE)
        bytes_skip(w, 1);
    else
        value_skip(w, type, depth);
}

static void map_skip(Walk *w, int depth)
{
    uint64_t n = varint_next(w);
    uint8_t types = n ? byte_next(w) : 0;
    for (uint64_t i = 0; i < n && !w->bad; i++) {
        element_skip(w, types >> 4, depth);
        element_skip(w, types & 0x0f, depth);
    }
}

static void value_skip(Walk *w, int type, int depth)
{
    int element;
    if (depth > MAX_DEPTH)
        w->bad = true;
    if (w->bad)
        return;
    switch (type) {
    case T_TRUE:
    case T_FALSE:
        break;
    case T_BYTE:
        bytes_skip(w, 1);
        break;
    case T_I16:
    case T_I32:
    case T_I64:
        (void)varint_next(w);
        break;
    case T_DOUBLE:
        bytes_skip(w, 8);
        break;
    case T_BINARY:
        bytes_skip(w, varint_next(w));
        break;
    case T_LIST:
    case T_SET: {
        uint64_t n = list_open(w, &element);
        for (uint64_t i = 0; i < n && !w->bad; i++)
            element_skip(w, element, depth + 1);
        break;
    }
    case T_MAP:
        map_skip(w, depth + 1);
        break;
    case T_STRUCT:
        struct_skip(w, depth + 1);
        break;
    default:
        w->bad = true;
    }
}

/* TimeUnit: true for NANOS. */
static bool unit_is_nanos(Walk *w)
{
    bool nanos = false;
    Field f = {0};
    while (field_next(w, &f)) {
        nanos |= f.id == 3;
        value_skip(w, f.type, 1);
    }
    return nanos;
}

static void timestamp_patch(Walk *w)
{
    uint8_t *adjusted = NULL;
    bool nanos = false;
    Field f = {0};
    while (field_next(w, &f)) {
        if (f.id == 1 && f.type == T_TRUE)
            adjusted = f.header;
        else if (f.id == 2 && f.type == T_STRUCT)
            nanos = unit_is_nanos(w);
        else
            value_skip(w, f.type, 1);
    }
    if (!w->bad && adjusted && nanos) {
        *adjusted = (uint8_t)((*adjusted & 0xf0) | T_FALSE);
        w->patched++;
    }
}

static void logical_type_patch(Walk *w)
{
    Field f = {0};
    while (field_next(w, &f)) {
        if (f.id == 8 && f.type == T_STRUCT)
            timestamp_patch(w);
        else
            value_skip(w, f.type, 1);
    }
}

static void element_patch(Walk *w)
{
    Field f = {0};
    while (field_next(w, &f)) {
        if (f.id == 10 && f.type == T_STRUCT)
            logical_type_patch(w);
        else
            value_skip(w, f.type, 1);
    }
}

KnCode kn_parquet_nanos_patch(uint8_t *footer, size_t len, size_t *ret_patched, KnErr *err)
{
    Walk w = {.at = footer, .end = footer + len};
    bool found = false;
    Field f = {0};
    while (!found && field_next(&w, &f)) {
        if (f.id == 2 && f.type == T_LIST) {
            int type;
            uint64_t n = list_open(&w, &type);
            w.bad |= type != T_STRUCT;
            for (uint64_t i = 0; i < n && !w.bad; i++)
                element_patch(&w);
            found = true;
        } else {
            value_skip(&w, f.type, 1);
        }
    }
    if (w.bad || !found)
        return kn_err_set(err, KN_E_CORRUPT, "Parquet footer: damaged at byte %zu of %zu",
                          (size_t)(w.at - footer), len);
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

static KnCode footer_patch(int fd, off_t size, const char *from, size_t *ret_patched, KnErr *err)
{
    uint8_t tail[TAIL];
    if (size < TAIL + 4 || pread(fd, tail, TAIL, size - TAIL) != TAIL ||
        memcmp(tail + 4, "PAR1", 4) != 0)
        return kn_err_set(err, KN_E_CORRUPT, "%s is not a Parquet file (no PAR1 at its end)", from);
    uint32_t len = (uint32_t)tail[0] | (uint32_t)tail[1] << 8 | (uint32_t)tail[2] << 16 |
                   (uint32_t)tail[3] << 24;
    if (len > MAX_FOOTER || (off_t)len > size - TAIL - 4)
        return kn_err_set(err, KN_E_CORRUPT, "%s: footer of %u bytes in a file of %lld", from, len,
                          (long long)size);
    KN_BUF_AUTO buf;
    kn_buf_init(&buf, MAX_FOOTER);
    uint8_t *footer = kn_buf_reserve(&buf, len);
    if (!footer)
        return kn_buf_check(&buf, err);
    off_t at = size - TAIL - (off_t)len;
    if (pread(fd, footer, len, at) != (ssize_t)len)
        return sys_error(err, "cannot read", from);
    KnCode code = kn_parquet_nanos_patch(footer, len, ret_patched, err);
    if (code != KN_OK)
        return kn_err_wrap(err, code, "%s", from);
    if (pwrite(fd, footer, len, at) != (ssize_t)len)
        return sys_error(err, "cannot write the copy of", from);
    return KN_OK;
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
