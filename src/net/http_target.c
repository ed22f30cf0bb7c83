/* SPDX-License-Identifier: Apache-2.0 */
/* http_target.c - see http_target.h. */
#include "net/http_target.h"

static int hex(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

static KnCode decode(KnArena *arena, KnStr text, KnStr *ret, KnErr *err)
{
    char *out = kn_arena_try_alloc(arena, text.len + 1);
    if (!out)
        return kn_err_set(err, KN_E_NOMEM, "request target: out of memory");
    size_t n = 0;
    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i];
        if (c == '%') {
            bool whole = text.len - i > 2;
            int high = whole ? hex(text.ptr[i + 1]) : -1, low = whole ? hex(text.ptr[i + 2]) : -1;
            if (high < 0 || low < 0)
                return kn_err_set(err, KN_E_INVAL,
                                  "request target: '%%' without two hexadecimal digits");
            c = (char)(high << 4 | low);
            i += 2;
        } else if (c == '+') {
            c = ' ';
        }
        if (c == '\0')
            return kn_err_set(err, KN_E_INVAL, "request target: a NUL byte");
        out[n++] = c;
    }
    out[n] = '\0';
    if (!kn_str_is_utf8((KnStr){out, n}))
        return kn_err_set(err, KN_E_INVAL, "request target: not valid UTF-8");
    *ret = (KnStr){out, n};
    return KN_OK;
}

/* The text up to the first c, which is cut off from rest with it. */
static KnStr cut_at(KnStr *rest, char c)
{
    const char *end = rest->len ? memchr(rest->ptr, c, rest->len) : NULL;
    KnStr part = {rest->ptr, end ? (size_t)(end - rest->ptr) : rest->len};
    size_t taken = end ? part.len + 1 : part.len;
    rest->ptr += taken;
    rest->len -= taken;
    return part;
}

KnCode kn_http_form_parse(KnArena *arena, KnStr text, const KnHttpPair **ret, size_t *ret_n,
                          KnErr *err)
{
    KnHttpPair *pairs =
        text.len ? kn_arena_zalloc(arena, KN_HTTP_QUERY_MAX * sizeof(*pairs)) : NULL;
    size_t n = 0;
    while (text.len) {
        KnStr value = cut_at(&text, '&');
        if (!value.len)
            continue;
        if (n == KN_HTTP_QUERY_MAX)
            return kn_err_set(err, KN_E_INVAL, "more than %d parameters", KN_HTTP_QUERY_MAX);
        KnStr name = cut_at(&value, '=');
        KN_TRY(decode(arena, name, &pairs[n].name, err));
        KN_TRY(decode(arena, value, &pairs[n].value, err));
        n++;
    }
    *ret = pairs;
    *ret_n = n;
    return KN_OK;
}

/* "http://host/a/b" is "/a/b". */
static KnStr without_authority(KnStr text)
{
    static const char *const schemes[] = {"http://", "https://"};
    for (size_t i = 0; i < 2; i++) {
        KnStr scheme = kn_str(schemes[i]);
        if (!kn_str_starts_with(text, scheme))
            continue;
        const char *slash = memchr(text.ptr + scheme.len, '/', text.len - scheme.len);
        size_t skip = slash ? (size_t)(slash - text.ptr) : text.len;
        return (KnStr){text.ptr + skip, text.len - skip};
    }
    return text;
}

KnCode kn_http_target_parse(KnArena *arena, KnStr text, KnHttpTarget *ret, KnErr *err)
{
    KnHttpTarget target = {0};
    KnStr query = without_authority(text);
    KnStr path = cut_at(&query, '?');
    target.path = path;
    if (path.len && path.ptr[0] != '/')
        return kn_err_set(err, KN_E_INVAL, "request target: the path does not begin with '/'");
    while (path.len && path.ptr[0] == '/') {
        path.ptr++;
        path.len--;
    }
    while (path.len) {
        if (target.n_segments == KN_HTTP_SEGMENTS_MAX)
            return kn_err_set(err, KN_E_INVAL, "request target: more than %d path segments",
                              KN_HTTP_SEGMENTS_MAX);
        KnStr part = cut_at(&path, '/');
        KN_TRY(decode(arena, part, &target.segments[target.n_segments++], err));
    }
    KN_TRY(kn_http_form_parse(arena, query, &target.query, &target.n_query, err));
    *ret = target;
    return KN_OK;
}

const KnStr *kn_http_pair_find(const KnHttpPair *pairs, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++) {
        if (kn_str_eq(pairs[i].name, kn_str(name)))
            return &pairs[i].value;
    }
    return NULL;
}
