/* SPDX-License-Identifier: Apache-2.0 */
/* surface.c - the list of surfaces; notes about documents. */
#include "pipeline/surface/surface.h"

#include <stdio.h>

#include "base/str.h"
#include "pipeline/surface/surfaces.h"

const KnSurface *const kn_surfaces[] = {&kn_surface_ron, &kn_surface_json, &kn_surface_sql, NULL};

void kn_notes_add(KnNotes *notes, size_t line, size_t column, const char *fmt, ...)
{
    char text[512];
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    *kn_vec_push(&notes->list) =
        (KnNote){.line = line, .column = column, .text = kn_arena_strdup(notes->arena, text)};
}

void kn_notes_done(KnNotes *notes)
{
    kn_vec_done(&notes->list);
}

/* True when word is one of those in list, which bars separate. */
static bool lists(const char *list, KnStr word)
{
    for (const char *at = list; *at;) {
        size_t len = strcspn(at, "|");
        if (kn_str_eq_nocase((KnStr){at, len}, word))
            return true;
        at += len + (at[len] == '|');
    }
    return false;
}

static KnCode none_such(const char *what, const char *given, KnErr *err)
{
    KN_BUF_AUTO names = {.max = 200};
    for (const KnSurface *const *s = kn_surfaces; *s; s++)
        kn_buf_printf(&names, "%s%s", s == kn_surfaces ? "" : ", ", (*s)->name);
    return kn_err_set(err, KN_E_INVAL, "%s '%.200s': expected one of %s", what, given,
                      names.data ? names.data : "none");
}

KnCode kn_surface_find(const char *name, const KnSurface **ret, KnErr *err)
{
    for (const KnSurface *const *s = kn_surfaces; *s; s++)
        if (kn_str_eq_nocase(kn_str((*s)->name), kn_str(name))) {
            *ret = *s;
            return KN_OK;
        }
    return none_such("form of pipeline", name, err);
}

KnCode kn_surface_of_file(const char *file, const KnSurface **ret, KnErr *err)
{
    const char *slash = strrchr(file, '/'), *dot = strrchr(slash ? slash : file, '.');
    for (const KnSurface *const *s = kn_surfaces; dot && *s; s++)
        if (lists((*s)->extensions, kn_str(dot + 1))) {
            *ret = *s;
            return KN_OK;
        }
    return none_such("the name does not say the form of pipeline", file, err);
}
