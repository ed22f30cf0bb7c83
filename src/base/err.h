/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * err.h - how a failure is made, wrapped and handed on (the public part is knut/err.h).
 *
 * The message is written once, where the failure is first seen; callers add context with
 * kn_err_wrap(). All of it works with err == NULL and allocates nothing.
 */
#include <assert.h>
#include <stdarg.h>

#include "knut/err.h"

/* First in a declaration. A result is dropped on purpose with (void), which gcc honours only so. */
#ifdef __clang__
#define KN_NODISCARD __attribute__((warn_unused_result))
#else
#define KN_NODISCARD [[nodiscard]]
#endif

/** True when the same call may succeed later with nothing changed (io, conflict, busy). */
bool kn_code_retriable(KnCode code);

/** What an errno means ("No space left on device"). Never NULL. Thread-safe. */
const char *kn_errno_text(int sys_errno);

/** Fill err and return code; errno is kept for KN_E_IO. Use the macro below. */
KnCode kn_err_set_at(KnErr *err, const char *file, int line, KnCode code, const char *fmt, ...)
    __attribute__((format(printf, 5, 6)));

/** Prefix the message with "context: " and return code unchanged; a long message loses its tail. */
KnCode kn_err_wrap(KnErr *err, KnCode code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* Whoever sets an error returns a failure: said here, where compilers and analysers can see it. */
static inline KnCode kn_code_failed_(KnCode code)
{
    assert(code != KN_OK);
    return code;
}

/* Likewise: wrapping returns the code that it was given. */
#define kn_err_wrap(err, code, ...)                                                                \
    ({                                                                                             \
        KnCode kn_wrap_code_ = (code);                                                             \
        (void)(kn_err_wrap)((err), kn_wrap_code_, __VA_ARGS__);                                    \
        kn_wrap_code_;                                                                             \
    })

#define kn_err_set(err, code, ...)                                                                 \
    kn_code_failed_(kn_err_set_at((err), __FILE__, __LINE__, (code), __VA_ARGS__))

/** The same, and what it is about. */
#define kn_err_about(err, code, subject, ...)                                                      \
    ({                                                                                             \
        KnErr *kn_about_err_ = (err);                                                              \
        KnCode kn_about_code_ = kn_err_set(kn_about_err_, (code), __VA_ARGS__);                    \
        if (kn_about_err_)                                                                         \
            kn_about_err_->about = (subject);                                                      \
        kn_about_code_;                                                                            \
    })

/** The failure is another kind to those above: its message stays. Returns code. */
static inline KnCode kn_err_recode(KnErr *err, KnCode code)
{
    if (err)
        err->code = code;
    return code;
}

/* Hand a failure to the caller unchanged. The only macro in the tree that returns. */
#define KN_TRY(expr)                                                                               \
    do {                                                                                           \
        KnCode kn_try_code_ = (expr);                                                              \
        if (kn_try_code_ != KN_OK)                                                                 \
            return kn_try_code_;                                                                   \
    } while (0)

/* Drop a failure on purpose: the line above says why it does not matter. */
#define KN_IGNORE(expr)                                                                            \
    do {                                                                                           \
        KnCode kn_ignored_ = (expr);                                                               \
        (void)kn_ignored_;                                                                         \
    } while (0)
