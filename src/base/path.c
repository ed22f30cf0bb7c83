/* SPDX-License-Identifier: Apache-2.0 */
/*
 * path.c - locations as text. No file system is looked at: symbolic links are the storage's matter.
 *
 * A scheme is what stands before the first ':' when no '/' comes earlier and it is spelled as RFC
 * 3986 wants (letter, then letters, digits, '+', '-', '.'). `file:` is taken with one slash (Java
 * writes `file:/x`), three (everybody else) or the host `localhost`; other schemes need `://`.
 */
#include "base/path.h"

#include <stdint.h>

static bool is_alpha(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool is_scheme_char(char c)
{
    return is_alpha(c) || (c >= '0' && c <= '9') || c == '+' || c == '-' || c == '.';
}

/* Length of the text before the ':' of a scheme; 0 = a plain path; SIZE_MAX = malformed. */
static size_t scheme_len(KnStr s)
{
    size_t n = 0;
    while (n < s.len && s.ptr[n] != ':' && s.ptr[n] != '/')
        ++n;
    if (n == s.len || s.ptr[n] == '/')
        return 0;
    if (n == 0 || !is_alpha(s.ptr[0]))
        return SIZE_MAX;
    for (size_t i = 1; i < n; ++i)
        if (!is_scheme_char(s.ptr[i]))
            return SIZE_MAX;
    return n;
}

KnCode kn_path_scheme(KnStr location, char out[16], KnErr *err)
{
    if (location.len == 0)
        return kn_err_set(err, KN_E_INVAL, "location is empty");
    size_t n = scheme_len(location);
    if (n == SIZE_MAX || n >= 16)
        return kn_err_set(err, KN_E_INVAL,
                          "location '" KN_STR_FMT "': what stands before ':' is not a scheme",
                          KN_STR_ARG(location));
    if (n == 0) {
        memcpy(out, "file", 5);
        return KN_OK;
    }
    char scheme[16] = "";
    for (size_t i = 0; i < n; ++i)
        scheme[i] = (char)(location.ptr[i] | (is_alpha(location.ptr[i]) ? 0x20 : 0));
    KnStr rest = {location.ptr + n + 1, location.len - n - 1};
    bool is_file = strcmp(scheme, "file") == 0;
    if (!is_file && !kn_str_starts_with(rest, KN_STR_LIT("//")))
        return kn_err_set(err, KN_E_INVAL, "location '" KN_STR_FMT "': '//' is missing after '%s:'",
                          KN_STR_ARG(location), scheme);
    memcpy(out, scheme, sizeof(scheme));
    return KN_OK;
}

/* The path inside a file location, starting with '/'; empty when it does not. */
static KnStr file_path(KnStr s)
{
    size_t n = scheme_len(s);
    if (n) {
        s = (KnStr){s.ptr + n + 1, s.len - n - 1};
        KnStr local = KN_STR_LIT("//localhost/");
        if (kn_str_starts_with(s, local))
            s = (KnStr){s.ptr + local.len - 1, s.len - local.len + 1};
        else if (kn_str_starts_with(s, KN_STR_LIT("//")))
            s = (KnStr){s.ptr + 2, s.len - 2};
    }
    return s.len && s.ptr[0] == '/' ? s : (KnStr){NULL, 0};
}

/* Appends one component to out[0..len), or takes the last one off for ".."; returns the new length.
 */
static size_t component_add(char *out, size_t len, KnStr part)
{
    if (part.len == 0 || kn_str_eq(part, KN_STR_LIT(".")))
        return len;
    if (kn_str_eq(part, KN_STR_LIT(".."))) {
        while (len && out[len - 1] != '/')
            --len;
        return len ? len - 1 : 0;
    }
    out[len] = '/';
    memcpy(out + len + 1, part.ptr, part.len);
    return len + 1 + part.len;
}

KnCode kn_path_local(KnArena *arena, KnStr location, const char **ret, KnErr *err)
{
    char scheme[16];
    KN_TRY(kn_path_scheme(location, scheme, err));
    if (strcmp(scheme, "file") != 0)
        return kn_err_set(err, KN_E_UNSUPPORTED,
                          "location '" KN_STR_FMT "': '%s' is not a local file",
                          KN_STR_ARG(location), scheme);
    KnStr path = file_path(location);
    if (path.len == 0)
        return kn_err_set(err, KN_E_INVAL,
                          "location '" KN_STR_FMT "': give an absolute path (/dir/file or "
                          "file:///dir/file)",
                          KN_STR_ARG(location));
    if (memchr(path.ptr, '\0', path.len))
        return kn_err_set(err, KN_E_INVAL, "location '" KN_STR_FMT "': holds a NUL byte",
                          KN_STR_ARG(location));
    char *out = kn_arena_try_alloc(arena, path.len + 2);
    if (!out)
        return kn_err_set(err, KN_E_NOMEM, "no memory for a path of %zu bytes", path.len);
    size_t len = 0;
    for (size_t start = 0, end; start < path.len; start = end + 1) {
        const char *slash = memchr(path.ptr + start, '/', path.len - start);
        end = slash ? (size_t)(slash - path.ptr) : path.len;
        len = component_add(out, len, (KnStr){path.ptr + start, end - start});
    }
    if (len == 0)
        out[len++] = '/';
    out[len] = '\0';
    *ret = out;
    return KN_OK;
}

bool kn_path_is_within(KnStr path, KnStr dir)
{
    while (dir.len > 1 && dir.ptr[dir.len - 1] == '/')
        --dir.len;
    if (dir.len == 0 || !kn_str_starts_with(path, dir))
        return false;
    return path.len == dir.len || dir.ptr[dir.len - 1] == '/' || path.ptr[dir.len] == '/';
}

const char *kn_path_join(KnArena *arena, KnStr dir, KnStr name)
{
    while (name.len && name.ptr[0] == '/') {
        ++name.ptr;
        --name.len;
    }
    bool slash = dir.len && dir.ptr[dir.len - 1] != '/';
    char *out = kn_arena_alloc(arena, dir.len + slash + name.len + 1);
    char *p = out;
    if (dir.len)
        p = mempcpy(p, dir.ptr, dir.len);
    if (slash)
        *p++ = '/';
    if (name.len)
        p = mempcpy(p, name.ptr, name.len);
    *p = '\0';
    return out;
}

static KnStr without_final_slashes(KnStr path)
{
    while (path.len > 1 && path.ptr[path.len - 1] == '/')
        --path.len;
    return path;
}

KnStr kn_path_basename(KnStr path)
{
    path = without_final_slashes(path);
    const char *slash = path.len ? memrchr(path.ptr, '/', path.len) : NULL;
    if (!slash)
        return path;
    size_t at = (size_t)(slash - path.ptr) + 1;
    return (KnStr){path.ptr + at, path.len - at};
}

KnStr kn_path_dirname(KnStr path)
{
    path = without_final_slashes(path);
    const char *slash = path.len ? memrchr(path.ptr, '/', path.len) : NULL;
    if (!slash)
        return (KnStr){path.ptr, 0};
    KnStr dir = without_final_slashes((KnStr){path.ptr, (size_t)(slash - path.ptr) + 1});
    if (kn_str_ends_with(dir, KN_STR_LIT(":"))) /* "s3://bucket" lies in nothing */
        dir.len = 0;
    return dir;
}
