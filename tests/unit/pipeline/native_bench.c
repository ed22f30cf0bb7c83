/* SPDX-License-Identifier: Apache-2.0 */
/* native_bench.c - see native_bench.h. */
#include "unit/pipeline/native_bench.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "support/tempdir.h"

void bench_open(Bench *b)
{
    b->arena = kn_arena_new(0);
    (void)test_tempdir_make(b->dir);
    assert_int_equal(kn_engine_open(&(KnEngineOptions){.threads = 1}, &b->engine, NULL), KN_OK);
    assert_int_equal(kn_session_open(b->engine, &b->session, NULL), KN_OK);
}

void bench_close(Bench *b)
{
    kn_session_close(b->session);
    kn_engine_close(b->engine);
    test_tempdir_remove(b->dir);
    kn_arena_free(b->arena);
}

int bench_set_up(void **state)
{
    Bench *b = calloc(1, sizeof(*b));
    assert_non_null(b);
    bench_open(b);
    *state = b;
    return 0;
}

int bench_tear_down(void **state)
{
    Bench *b = *state;
    bench_close(b);
    free(b);
    return 0;
}

const char *bench_path(const Bench *b, const char *name)
{
    return kn_arena_printf(b->arena, "%s/%s", b->dir, name);
}

void bench_exec(const Bench *b, const char *sql)
{
    KnErr err = {0};
    if (kn_session_exec(b->session, sql, NULL, &err) != KN_OK)
        fail_msg("%s: %s", sql, err.msg);
}

const char *bench_value(const Bench *b, const char *fmt, ...)
{
    KnErr err = {0};
    KN_BUF_AUTO out = {.max = 1 << 20};
    char query[4096];
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(query, sizeof(query), fmt, args);
    va_end(args);
    if (kn_session_query_text(b->session, query, &out, &err) != KN_OK)
        fail_msg("%s: %s", query, err.msg);
    return kn_arena_strndup(b->arena, out.data, out.len);
}
