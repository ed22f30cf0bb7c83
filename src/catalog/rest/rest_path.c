/* SPDX-License-Identifier: Apache-2.0 */
/* rest_path.c - names of namespaces and tables in paths: each level percent-encoded by itself,
 * levels joined by the separator that the server advertises. Thread-safe. */
#include "catalog/rest/rest_internal.h"
#include "net/url.h"

enum { URL_MAX = 1 << 20 };

static void put_levels(const KnRemote *rest, KnBuf *buf, const char *const *levels, size_t n_levels)
{
    for (size_t i = 0; i < n_levels; i++) {
        if (i)
            kn_buf_text(buf, rest->separator);
        kn_url_encode(buf, kn_str(levels[i]), false);
    }
}

const char *kn_remote_url(const KnRemote *rest, KnArena *arena, const char *tail)
{
    return kn_arena_printf(arena, "%s%s%s", rest->base_uri, rest->prefix, tail);
}

const char *kn_remote_namespace_url(const KnRemote *rest, KnArena *arena, const char *const *levels,
                                    size_t n_levels)
{
    return kn_arena_printf(arena, "%s%s/namespaces/%s", rest->base_uri, rest->prefix,
                           kn_remote_namespace_text(rest, arena, levels, n_levels));
}

const char *kn_remote_table_url(const KnRemote *rest, KnArena *arena, const KnTableIdent *ident)
{
    KN_BUF_AUTO buf = {0};
    kn_buf_init(&buf, URL_MAX);
    kn_url_encode(&buf, kn_str(ident->name), false);
    const char *ns = kn_remote_namespace_url(rest, arena, ident->levels, ident->n_levels);
    return kn_arena_printf(arena, "%s/tables/%s", ns, buf.len ? buf.data : "");
}

const char *kn_remote_namespace_text(const KnRemote *rest, KnArena *arena,
                                     const char *const *levels, size_t n_levels)
{
    KN_BUF_AUTO buf = {0};
    kn_buf_init(&buf, URL_MAX);
    put_levels(rest, &buf, levels, n_levels);
    return kn_arena_strndup(arena, buf.len ? buf.data : "", buf.len);
}

json_t *kn_remote_ident_json(const KnTableIdent *ident)
{
    json_t *levels = json_array();
    for (size_t i = 0; i < ident->n_levels; i++)
        (void)json_array_append_new(levels, json_string(ident->levels[i]));
    json_t *obj = json_object();
    (void)json_object_set_new(obj, "namespace", levels);
    (void)json_object_set_new(obj, "name", json_string(ident->name));
    return obj;
}
