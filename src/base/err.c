/* SPDX-License-Identifier: Apache-2.0 */
/*
 * err.c - filling and wrapping KnErr.
 *
 * The text is formatted into a buffer on the stack first and copied after, so that arguments may
 * point into the KnErr itself. A message stays one line of UTF-8: control characters become spaces,
 * bytes that are no text question marks. What does not fit loses its tail, and "..." says so.
 * Thread-safe: only the caller's KnErr is touched.
 */
#include "base/err.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"

static const char *const code_names[KN_E_MAX_] = {
    [KN_OK] = "ok",
    [KN_E_NOMEM] = "out-of-memory",
    [KN_E_INVAL] = "invalid-argument",
    [KN_E_NOTFOUND] = "not-found",
    [KN_E_EXISTS] = "already-exists",
    [KN_E_CONFLICT] = "commit-conflict",
    [KN_E_UNKNOWN] = "commit-state-unknown",
    [KN_E_IO] = "io",
    [KN_E_CORRUPT] = "corrupt",
    [KN_E_UNSUPPORTED] = "unsupported",
    [KN_E_REFUSED] = "refused",
    [KN_E_CANCELLED] = "cancelled",
    [KN_E_BUSY] = "busy",
};

const char *kn_code_name(KnCode code)
{
    if ((unsigned)code >= KN_E_MAX_)
        return "?";
    return code_names[code];
}

int kn_code_exit_status(KnCode code)
{
    switch (code) {
    case KN_OK:
        return 0;
    case KN_E_INVAL:
        return 2;
    case KN_E_REFUSED:
    case KN_E_UNSUPPORTED:
        return 3;
    default:
        return 1;
    }
}

bool kn_code_retriable(KnCode code)
{
    return code == KN_E_CONFLICT || code == KN_E_IO || code == KN_E_BUSY;
}

const char *kn_errno_text(int sys_errno)
{
    const char *text = strerrordesc_np(sys_errno);
    return text ? text : "unknown system error";
}

/* `wanted` is what the formatted text needs (vsnprintf's answer); the text in msg is cut to size.
 */
static void msg_tidy(char *msg, size_t cap, int wanted)
{
    if (wanted >= 0 && (size_t)wanted >= cap)
        memcpy(msg + cap - 4, "...", 4);
    const char *end = msg + strlen(msg);
    for (char *p = msg; p < end;) {
        size_t n = kn_str_utf8_len((KnStr){p, (size_t)(end - p)});
        if (n == 0)
            *p = '?';
        else if ((unsigned char)*p < 0x20 || *p == 0x7f)
            *p = ' ';
        p += n ? n : 1;
    }
}

KnCode kn_err_set_at(KnErr *err, const char *file, int line, KnCode code, const char *fmt, ...)
{
    if (!err)
        return code;
    int sys_errno = code == KN_E_IO ? errno : 0;
    char msg[sizeof(err->msg)] = "";
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(msg, sizeof(msg), fmt, ap);
    va_end(ap);
    msg_tidy(msg, sizeof(msg), n);
    *err = (KnErr){
        .code = code,
        .retriable = kn_code_retriable(code),
        .sys_errno = sys_errno,
        .file = file,
        .line = line,
    };
    memcpy(err->msg, msg, sizeof(msg));
    return code;
}

KnCode(kn_err_wrap)(KnErr *err, KnCode code, const char *fmt, ...)
{
    if (!err || code == KN_OK)
        return code;
    char head[sizeof(err->msg)] = "";
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(head, sizeof(head), fmt, ap);
    va_end(ap);
    if (n < 0 || (size_t)n >= sizeof(head))
        return code; /* a context that leaves no room for the cause is worth less than the cause */
    int m = snprintf(head + n, sizeof(head) - (size_t)n, ": %s", err->msg);
    msg_tidy(head, sizeof(head), n + m);
    memcpy(err->msg, head, sizeof(head));
    return code;
}
