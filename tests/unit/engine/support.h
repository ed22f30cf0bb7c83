/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* support.h - what the engine's tests share: an engine with a session, a folder that goes away. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "engine/engine.h"

typedef struct Bench {
    KnEngine *eng;
    KnSession *ses;
    char dir[64]; /* a fresh folder */
    KnErr err;
} Bench;

/* cmocka set-up and tear-down: *state is a Bench. */
int bench_setup(void **state);
int bench_teardown(void **state);

/** Run sql and fail the test with the engine's message when it fails. */
void bench_exec(Bench *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
KnStream *bench_query(Bench *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/** The first value as text, in a static buffer. */
const char *bench_text(Bench *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/** A value of a vector as canonical text, nested values included; appended to buf. */
void value_text(KnBuf *buf, const KnVector *vec, size_t row);
/** Rows as lines of `a|b|c`. */
void batch_text(KnBuf *buf, const KnBatch *batch);

#define assert_ok(b, expr)                                                                         \
    do {                                                                                           \
        if ((expr) != KN_OK)                                                                       \
            fail_msg("%s: %s", #expr, (b)->err.msg);                                               \
    } while (0)
#define assert_code(b, expr, want)                                                                 \
    do {                                                                                           \
        KnCode got_ = (expr);                                                                      \
        if (got_ != (want))                                                                        \
            fail_msg("%s gave %s (%s)", #expr, kn_code_name(got_), (b)->err.msg);                  \
        assert_null(strchr((b)->err.msg, '\n'));                                                   \
    } while (0)
