/* SPDX-License-Identifier: Apache-2.0 */
/* names.c - see names.h. No state. */
#include "catalog/core/names.h"

#include <string.h>

enum { NAMESPACE_MAX = 255 }; /* the column's width in the JDBC schema */

static bool is_dots(const char *part, size_t len)
{
    return (len == 1 && part[0] == '.') || (len == 2 && part[0] == '.' && part[1] == '.');
}

KnCode kn_name_check(KnStr name, const char *what, KnErr *err)
{
    if (!name.len)
        return kn_err_set(err, KN_E_INVAL, "a %s is empty", what);
    if (name.len > NAMESPACE_MAX)
        return kn_err_set(err, KN_E_INVAL, "a %s is longer than %d bytes: '%.40s…'", what,
                          NAMESPACE_MAX, name.ptr);
    if (!kn_str_is_utf8(name))
        return kn_err_set(err, KN_E_INVAL, "a %s is not UTF-8", what);
    for (size_t i = 0; i < name.len; i++) {
        if ((unsigned char)name.ptr[i] < 0x20 || name.ptr[i] == 0x7f)
            return kn_err_set(err, KN_E_INVAL, "a %s has a control character", what);
    }
    for (size_t from = 0; from <= name.len;) {
        size_t len = 0;
        while (from + len < name.len && name.ptr[from + len] != '/' && name.ptr[from + len] != '\\')
            len++;
        if (is_dots(name.ptr + from, len))
            return kn_err_set(err, KN_E_INVAL, "the %s '" KN_STR_FMT "' leads out of its folder",
                              what, KN_STR_ARG(name));
        from += len + 1;
    }
    return KN_OK;
}

static bool is_escape(const char *at)
{
    return at[0] == '%' && at[1] == '2' && (at[2] == 'E' || at[2] == '5');
}

static void put_level(KnBuf *out, const char *level)
{
    for (; *level; level++) {
        if (*level == '.')
            kn_buf_text(out, "%2E");
        else if (is_escape(level))
            kn_buf_text(out, "%25");
        else
            kn_buf_char(out, *level);
    }
}

KnCode kn_names_join(KnArena *arena, const char *const *levels, size_t n, const char **ret,
                     KnErr *err)
{
    if (!n)
        return kn_err_set(err, KN_E_INVAL, "a table's name needs a namespace: NS.NAME");
    KN_BUF_AUTO text = {0};
    kn_buf_init(&text, (size_t)1 << 20);
    for (size_t i = 0; i < n; i++) {
        KN_TRY(kn_name_check(kn_str(levels[i]), "namespace level", err));
        if (i)
            kn_buf_char(&text, '.');
        put_level(&text, levels[i]);
    }
    KN_TRY(kn_buf_check(&text, err));
    if (text.len > NAMESPACE_MAX)
        return kn_err_set(err, KN_E_INVAL, "a namespace is longer than %d bytes: '%.40s…'",
                          NAMESPACE_MAX, text.data);
    *ret = kn_arena_strndup(arena, text.data, text.len);
    return KN_OK;
}

/* In place: what is read is never shorter than what is written. */
static void unescape(char *level)
{
    char *out = level;
    for (const char *at = level; *at; at++) {
        if (!is_escape(at)) {
            *out++ = *at;
            continue;
        }
        *out++ = at[2] == 'E' ? '.' : '%';
        at += 2;
    }
    *out = '\0';
}

void kn_names_split(KnArena *arena, const char *text, const char *const **ret, size_t *ret_n)
{
    size_t n = 1;
    for (const char *at = text; *at; at++)
        n += *at == '.';
    const char **levels = kn_arena_alloc(arena, n * sizeof(*levels));
    char *copy = kn_arena_strdup(arena, text);
    for (size_t i = 0; i < n; i++) {
        char *level = copy;
        copy += strcspn(copy, ".");
        if (*copy)
            *copy++ = '\0';
        unescape(level);
        levels[i] = level;
    }
    *ret = levels;
    *ret_n = n;
}

const char *kn_name_folder(KnArena *arena, const char *name)
{
    char *out = kn_arena_alloc(arena, strlen(name) * 3 + 1), *at = out;
    for (; *name; name++) {
        bool escape = name[0] == '%' && name[1] == '2' && (name[2] == 'F' || name[2] == '5');
        if (*name != '/' && !escape) {
            *at++ = *name;
            continue;
        }
        memcpy(at, escape ? "%25" : "%2F", 3);
        at += 3;
    }
    *at = '\0';
    return out;
}
