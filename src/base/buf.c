/* SPDX-License-Identifier: Apache-2.0 */
/*
 * buf.c - the growing byte buffer.
 *
 * An empty buffer points at a shared "" (cap 0), which is never written nor freed, so that data can
 * be read as a C string from the start and a buffer nobody appended to owns nothing. cap counts the
 * bytes of the block without the final NUL.
 */
#include "base/buf.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

enum { FIRST_CAP = 63 };

static char nothing[1];

void kn_buf_init(KnBuf *buf, size_t max)
{
    assert(max < SIZE_MAX);
    *buf = (KnBuf){.data = nothing, .max = max};
}

void kn_buf_done(KnBuf *buf)
{
    if (buf->cap)
        free(buf->data);
    *buf = (KnBuf){.data = nothing, .max = buf->max};
}

void kn_buf_reset(KnBuf *buf)
{
    buf->len = 0;
    buf->failed = false;
    if (buf->cap)
        buf->data[0] = '\0';
}

void *kn_buf_reserve(KnBuf *buf, size_t len)
{
    if (buf->failed || len > buf->max - buf->len) {
        buf->failed = true;
        return NULL;
    }
    size_t need = buf->len + len;
    if (need > buf->cap || buf->cap == 0) {
        size_t cap = buf->cap < FIRST_CAP ? FIRST_CAP : buf->cap;
        while (cap < need)
            cap = cap > buf->max / 2 ? buf->max : cap * 2;
        char *data = realloc(buf->cap ? buf->data : NULL, cap + 1);
        if (!data) {
            buf->failed = true;
            return NULL;
        }
        buf->data = data;
        buf->cap = cap;
        data[buf->len] = '\0';
    }
    buf->data[need] = '\0';
    return buf->data + buf->len;
}

void kn_buf_append(KnBuf *buf, const void *bytes, size_t len)
{
    void *p = len ? kn_buf_reserve(buf, len) : NULL;
    if (!p)
        return;
    memcpy(p, bytes, len);
    buf->len += len;
}

void kn_buf_str(KnBuf *buf, KnStr s)
{
    kn_buf_append(buf, s.ptr, s.len);
}

void kn_buf_text(KnBuf *buf, const char *s)
{
    kn_buf_append(buf, s, strlen(s));
}

void kn_buf_char(KnBuf *buf, char c)
{
    kn_buf_append(buf, &c, 1);
}

void kn_buf_printf(KnBuf *buf, const char *fmt, ...)
{
    char small[256];
    va_list ap;
    va_start(ap, fmt);
    va_list again;
    va_copy(again, ap);
    int n = vsnprintf(small, sizeof(small), fmt, ap);
    va_end(ap);
    assert(n >= 0);
    if (n >= 0 && (size_t)n < sizeof(small)) {
        kn_buf_append(buf, small, (size_t)n);
    } else if (n >= 0) {
        char *p = kn_buf_reserve(buf, (size_t)n);
        if (p) {
            (void)vsnprintf(p, (size_t)n + 1, fmt, again);
            buf->len += (size_t)n;
        }
    }
    va_end(again);
}

KnCode kn_buf_check(const KnBuf *buf, KnErr *err)
{
    if (!buf->failed)
        return KN_OK;
    return kn_err_set(err, KN_E_NOMEM, "text or data grew beyond its limit of %zu bytes", buf->max);
}

char *kn_buf_steal(KnBuf *buf, size_t *ret_len)
{
    char *data = buf->cap ? buf->data : calloc(1, 1);
    if (!data)
        abort();
    data[buf->len] = '\0';
    if (ret_len)
        *ret_len = buf->len;
    *buf = (KnBuf){.data = nothing, .max = buf->max};
    return data;
}
