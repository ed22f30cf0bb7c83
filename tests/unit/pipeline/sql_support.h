/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* sql_support.h - what the tests of the SQL surface share: an engine, scripts read and written. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "pipeline/surface/surfaces.h"
#include "unit/engine/support.h"

typedef struct Script {
    KnArena *arena;
    KnSession *session;
    KnNotes notes;
    const KnPipeline *p;
    KnErr err;
} Script;

/* cmocka set-up and tear-down of a test: *state is a Script. */
int script_setup(void **state);
int script_teardown(void **state);
/* Tear-down of the group: before exit(), which takes the engine's own statics away. */
int script_close_engine(void **state);

/** Reads, or fails the test with the message. */
const KnPipeline *script_read(Script *s, const char *text);
/** Must not be read: the message. */
const char *script_fails(Script *s, const char *text);
/** The text; notes are in s->notes. */
char *script_write(Script *s, const KnPipeline *p);
/** All notes, a line each: "3:14: text" or "text". */
const char *script_notes(Script *s);

#define assert_pipeline(got, want)                                                                 \
    do {                                                                                           \
        KN_BUF_AUTO why_ = {.max = 4000};                                                          \
        if (!kn_pipeline_equal((got), (want), &why_))                                              \
            fail_msg("%s", why_.data);                                                             \
    } while (0)
#define assert_has(text, part)                                                                     \
    do {                                                                                           \
        if (!strstr((text), (part)))                                                               \
            fail_msg("'%s' is not in '%s'", (part), (text));                                       \
    } while (0)
