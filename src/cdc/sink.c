/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sink.c - the registry of sinks, and the small texts that all of them share.
 *
 * A new sink is a folder under sinks/ and one line in SINKS.
 */
#include "cdc/sink.h"

#include <stdio.h>
#include <string.h>

#include "base/str.h"

static const KnSinkOps *const SINKS[] = {
    &kn_sink_doris, &kn_sink_duckdb, &kn_sink_null, &kn_sink_parquet, &kn_sink_postgres,
};
#define N_SINKS (sizeof(SINKS) / sizeof(SINKS[0]))

const char *kn_sink_mode_name(KnSinkMode mode)
{
    return mode == KN_SINK_APPEND ? "append" : "upsert";
}

KnCode kn_sink_mode_parse(KnStr text, KnSinkMode *ret, KnErr *err)
{
    if (kn_str_eq(text, KN_STR_LIT("append")))
        *ret = KN_SINK_APPEND;
    else if (kn_str_eq(text, KN_STR_LIT("upsert")))
        *ret = KN_SINK_UPSERT;
    else
        return kn_err_set(err, KN_E_INVAL, "mode '" KN_STR_FMT "': expected append or upsert",
                          KN_STR_ARG(text));
    return KN_OK;
}

const char *kn_chunk_op_name(KnChunkOp op)
{
    return op == KN_CHUNK_DELETE ? "delete" : "insert";
}

const char *kn_verdict_name(KnVerdictKind kind)
{
    static const char *const NAMES[] = {"loaded", "duplicate", "unknown",
                                        "failed", "wrong",     "held"};
    return NAMES[kind];
}

KnCode kn_sink_find(const char *spec, const KnSinkOps **ret, const char **ret_place, KnErr *err)
{
    const char *colon = strchr(spec, ':');
    KnStr kind = {spec, colon ? (size_t)(colon - spec) : strlen(spec)};
    for (size_t i = 0; colon && i < N_SINKS; ++i) {
        if (!kn_str_eq(kind, kn_str(SINKS[i]->kind)))
            continue;
        *ret = SINKS[i];
        *ret_place = colon + 1;
        return KN_OK;
    }
    char known[128] = "";
    for (size_t i = 0; i < N_SINKS; ++i) {
        size_t len = strlen(known);
        (void)snprintf(known + len, sizeof(known) - len, "%s%s:", i ? ", " : "", SINKS[i]->kind);
    }
    /* What follows the colon may hold a password: it is not repeated. */
    return kn_err_set(err, KN_E_INVAL,
                      "sink '" KN_STR_FMT "': expected one of %s followed by its place",
                      KN_STR_ARG(kind), known);
}

/* One part of a target at *pos, quoted or plain; *pos moves behind it. */
static KnCode parse_part(KnArena *arena, const char *target, const char **pos, const char **ret,
                         KnErr *err)
{
    const char *p = *pos;
    size_t len = 0;
    char *out = kn_arena_zalloc(arena, strlen(target) + 1);
    if (*p == '"') {
        for (++p; *p && (*p != '"' || p[1] == '"'); ++p) {
            out[len++] = *p;
            p += *p == '"';
        }
        if (*p++ != '"')
            return kn_err_set(err, KN_E_INVAL, "target %s: a quote is not closed", target);
    } else {
        while (*p && *p != '.' && *p != '"')
            out[len++] = *p++;
    }
    if (len == 0 || !kn_str_is_utf8((KnStr){out, len}))
        return kn_err_set(err, KN_E_INVAL, "target '%s': expected TABLE or SCHEMA.TABLE", target);
    *pos = p;
    *ret = out;
    return KN_OK;
}

KnCode kn_sink_target_parse(KnArena *arena, const char *target, const char **ret_schema,
                            const char **ret_table, KnErr *err)
{
    const char *pos = target, *first, *second = NULL;
    KN_TRY(parse_part(arena, target, &pos, &first, err));
    if (*pos == '.') {
        ++pos;
        KN_TRY(parse_part(arena, target, &pos, &second, err));
    }
    if (*pos)
        return kn_err_set(err, KN_E_INVAL, "target '%s': expected TABLE or SCHEMA.TABLE", target);
    *ret_schema = second ? first : "main";
    *ret_table = second ? second : first;
    return KN_OK;
}

KnStr kn_sink_next_part(KnStr *rest, char separator)
{
    const char *end = rest->len ? memchr(rest->ptr, separator, rest->len) : NULL;
    KnStr part = {rest->ptr, end ? (size_t)(end - rest->ptr) : rest->len};
    size_t taken = end ? part.len + 1 : part.len;
    *rest = (KnStr){rest->ptr + taken, rest->len - taken};
    return part;
}

KnCode kn_sink_unknown_setting(const char *kind, KnStr name, const char *const *known, size_t n,
                               KnErr *err)
{
    const char *nearest = known[0];
    for (size_t i = 1; i < n; ++i)
        if (kn_str_distance(name, kn_str(known[i])) < kn_str_distance(name, kn_str(nearest)))
            nearest = known[i];
    return kn_err_set(err, KN_E_INVAL,
                      "sink %s: setting '" KN_STR_FMT "' is not known; did you mean '%s'?", kind,
                      KN_STR_ARG(name), nearest);
}

const char *const *kn_sink_copy_keys(KnArena *arena, const KnSinkWindow *win)
{
    const char **keys = kn_arena_zalloc(arena, (win->n_keys + 1) * sizeof(*keys));
    for (size_t i = 0; i < win->n_keys; ++i)
        keys[i] = kn_arena_strdup(arena, win->keys[i]);
    return keys;
}

void kn_sink_add_difference(KnBuf *out, const char *column, const char *here, const char *there)
{
    kn_buf_printf(out, "%scolumn %s: %s in the source, %s in the target", out->len ? "; " : "",
                  column, here, there);
}

KnSink *kn_sink_close(KnSink *sink)
{
    if (sink)
        sink->ops->close(sink);
    return NULL;
}
