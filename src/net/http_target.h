/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * http_target.h - the target of an HTTP request, taken apart: path segments and query.
 *
 * The path is cut at '/' before anything is decoded, so that an encoded separator ("%2F") stays
 * within its segment. `%XX` and '+' (a space: Java's clients form-encode path segments) are
 * decoded. Empty segments in front ("//v1") and one at the end ("/v1/") are dropped. A target with
 * a broken escape, a NUL, or bytes that are not UTF-8 is refused. (RFC 3986 §2.1, §3.3; RFC 9112
 * §3.2.) Thread-safe.
 */
#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"

enum { KN_HTTP_SEGMENTS_MAX = 16, KN_HTTP_QUERY_MAX = 32 };

typedef struct KnHttpPair {
    KnStr name, value;
} KnHttpPair;

typedef struct KnHttpTarget {
    KnStr path; /* as sent, without the query */
    size_t n_segments;
    KnStr segments[KN_HTTP_SEGMENTS_MAX]; /* decoded, NUL-terminated */
    size_t n_query;
    const KnHttpPair *query; /* decoded, NUL-terminated */
} KnHttpTarget;

/** Origin form ("/a/b?c=d") or absolute form ("http://host/a"). Texts live in arena, path in text.
 * KN_E_INVAL says what is wrong with it. */
KN_NODISCARD KnCode kn_http_target_parse(KnArena *arena, KnStr text, KnHttpTarget *ret, KnErr *err);
/** The pairs of a query or of a form body (application/x-www-form-urlencoded). */
KN_NODISCARD KnCode kn_http_form_parse(KnArena *arena, KnStr text, const KnHttpPair **ret,
                                       size_t *ret_n, KnErr *err);
/** The first value of a name; NULL = absent. */
const KnStr *kn_http_pair_find(const KnHttpPair *pairs, size_t n, const char *name);
