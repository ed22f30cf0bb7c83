/* SPDX-License-Identifier: Apache-2.0 */
/* expand.c - ${NAME} in values of knut.yaml. Messages name variables, never what they hold. */
#include <ctype.h>
#include <stdlib.h>

#include "service/config.h"

enum { MAX_VALUE = 1 << 20 };

static bool is_name(KnStr name)
{
    if (!name.len || isdigit((unsigned char)name.ptr[0]))
        return false;
    for (size_t i = 0; i < name.len; i++)
        if (!isalnum((unsigned char)name.ptr[i]) && name.ptr[i] != '_')
            return false;
    return true;
}

/* text stands behind "${"; *ret_end behind its "}". */
static KnCode take_reference(KnArena *arena, const char *text, KnBuf *out, const char **ret_end,
                             KnErr *err)
{
    const char *close = strchr(text, '}');
    if (!close)
        return kn_err_set(err, KN_E_INVAL, "'${' without its '}' (a dollar sign is written $$)");
    KnStr inner = {text, (size_t)(close - text)}, name = inner;
    const char *colon = memchr(text, ':', inner.len);
    if (colon)
        name.len = (size_t)(colon - text);
    bool has_default = colon && colon[1] == '-';
    if (!is_name(name) || (colon && !has_default))
        return kn_err_set(err, KN_E_INVAL,
                          "'${" KN_STR_FMT "}': expected ${NAME} or ${NAME:-default}",
                          KN_STR_ARG(inner));
    const char *value = getenv(kn_arena_strndup(arena, name.ptr, name.len));
    if ((!value || !*value) && has_default)
        kn_buf_str(out, (KnStr){colon + 2, (size_t)(close - colon - 2)});
    else if (!value)
        return kn_err_set(err, KN_E_INVAL,
                          "the environment variable " KN_STR_FMT " is not set (${" KN_STR_FMT
                          ":-} would do without it)",
                          KN_STR_ARG(name), KN_STR_ARG(name));
    else
        kn_buf_text(out, value);
    *ret_end = close + 1;
    return KN_OK;
}

KnCode kn_config_expand(KnArena *arena, const char *text, const char **ret, KnErr *err)
{
    KN_BUF_AUTO out;
    kn_buf_init(&out, MAX_VALUE);
    for (const char *p = text; *p;) {
        if (p[0] == '$' && p[1] == '$') {
            kn_buf_char(&out, '$');
            p += 2;
        } else if (p[0] == '$' && p[1] == '{') {
            KN_TRY(take_reference(arena, p + 2, &out, &p, err));
        } else {
            kn_buf_char(&out, *p++);
        }
    }
    KN_TRY(kn_buf_check(&out, err));
    *ret = kn_arena_strndup(arena, out.data ? out.data : "", out.len);
    return KN_OK;
}
