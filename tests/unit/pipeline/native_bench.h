/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* native_bench.h - a folder for a case, and an engine to make and look at files with. */
#include "base/arena.h"
#include "engine/engine.h"

typedef struct Bench {
    KnEngine *engine;
    KnSession *session;
    KnArena *arena;
    char dir[256];
} Bench;

void bench_open(Bench *b);
void bench_close(Bench *b);
/** A case's setup and teardown: *state is an open Bench. */
int bench_set_up(void **state);
int bench_tear_down(void **state);
/** A file's path in the folder; in the arena. */
const char *bench_path(const Bench *b, const char *name);
/** Runs the statement; the test fails when it does. */
void bench_exec(const Bench *b, const char *sql);
/** The one value of a query, as text in the arena. */
__attribute__((format(printf, 2, 3))) const char *bench_value(const Bench *b, const char *fmt, ...);
