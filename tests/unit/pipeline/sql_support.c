/* SPDX-License-Identifier: Apache-2.0 */
/* sql_support.c - see sql_support.h. */
#include "unit/pipeline/sql_support.h"

#include <stdlib.h>

#include "pipeline/sql/sql_internal.h"

static KnEngine *engine; /* one for the program */

int script_close_engine(void **state)
{
    (void)state;
    engine = kn_engine_close(engine);
    return 0;
}

int script_setup(void **state)
{
    KnErr err;
    Script *s = calloc(1, sizeof(*s));
    if (!engine && kn_engine_open(&(KnEngineOptions){.threads = 1}, &engine, &err) != KN_OK)
        fail_msg("%s", err.msg);
    if (kn_session_open(engine, &s->session, &err) != KN_OK)
        fail_msg("%s", err.msg);
    s->arena = kn_arena_new(4096);
    s->notes.arena = s->arena;
    *state = s;
    return 0;
}

int script_teardown(void **state)
{
    Script *s = *state;
    s->session = kn_session_close(s->session);
    kn_notes_done(&s->notes);
    s->arena = kn_arena_free(s->arena);
    free(s);
    return 0;
}

static KnCode read(Script *s, const char *text)
{
    KnDocument doc = {.text = kn_str(text), .origin = "p.sql", .name = "p", .session = s->session};
    return kn_surface_sql.read(s->arena, &doc, &s->notes, &s->p, &s->err);
}

const KnPipeline *script_read(Script *s, const char *text)
{
    if (read(s, text) != KN_OK)
        fail_msg("%s\n%s", s->err.msg, text);
    return s->p;
}

const char *script_fails(Script *s, const char *text)
{
    s->err = (KnErr){0};
    if (read(s, text) == KN_OK)
        fail_msg("was read: %s", text);
    assert_null(strchr(s->err.msg, '\n'));
    return s->err.msg;
}

char *script_write(Script *s, const KnPipeline *p)
{
    KN_BUF_AUTO out = {.max = (size_t)16 << 20};
    if (kn_sdp_write(p, s->session, &out, &s->notes, &s->err) != KN_OK)
        fail_msg("%s", s->err.msg);
    return kn_arena_strndup(s->arena, out.data, out.len);
}

const char *script_notes(Script *s)
{
    KN_BUF_AUTO out = {.max = 1 << 20};
    kn_vec_foreach (&s->notes.list, note) {
        if (note->line > 0)
            kn_buf_printf(&out, "%zu:%zu: ", note->line, note->column);
        kn_buf_printf(&out, "%s\n", note->text);
    }
    return kn_arena_strndup(s->arena, out.data ? out.data : "", out.len);
}
