/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * buf.h - a growing byte buffer with a maximum that its maker declares.
 *
 * Appending never fails on the spot: passing the maximum, or running out of memory, makes the
 * buffer "failed" (sticky, later appends are no-ops) and kn_buf_check() reports it once. data is
 * always NUL-terminated behind len. One thread at a time.
 */
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"

typedef struct KnBuf {
    char *data;
    size_t len;
    size_t cap;
    size_t max;
    bool failed;
} KnBuf;

void kn_buf_init(KnBuf *buf, size_t max);
void kn_buf_done(KnBuf *buf);  /* accepts a zeroed buffer */
void kn_buf_reset(KnBuf *buf); /* empty and not failed; keeps the memory */
void kn_buf_append(KnBuf *buf, const void *bytes, size_t len);
void kn_buf_str(KnBuf *buf, KnStr s);
void kn_buf_text(KnBuf *buf, const char *s);
void kn_buf_char(KnBuf *buf, char c);
void kn_buf_printf(KnBuf *buf, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/** Room for len more bytes at data+len, or NULL (failed); commit with buf->len += n. When n < len
 * the final NUL is missing until the next append or kn_buf_steal(). */
void *kn_buf_reserve(KnBuf *buf, size_t len);
KN_NODISCARD KnCode kn_buf_check(const KnBuf *buf, KnErr *err);
/** Take the bytes: the caller frees with free(); the buffer is empty after. */
char *kn_buf_steal(KnBuf *buf, size_t *ret_len);

#define KN_BUF_AUTO __attribute__((cleanup(kn_buf_done))) KnBuf
