/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rest_config.c - GET /v1/config: what the server wants its clients to use.
 *
 * Properties: the server's defaults, over them --rest-option, over them the server's overrides. An
 * address that it names must be its own: our token would go there. A server that lists no endpoints
 * is taken to have those of the first specification.
 */
#include <string.h>

#include "catalog/rest/rest_internal.h"
#include "net/url.h"

static const struct {
    const char *text;
    const char *name; /* in messages */
    bool assumed;     /* where the server lists none */
} endpoints[KN_REMOTE_N_ENDPOINTS] = {
    [KN_REMOTE_LIST_NAMESPACES] = {"GET /v1/{prefix}/namespaces", "list namespaces", true},
    [KN_REMOTE_CREATE_NAMESPACE] = {"POST /v1/{prefix}/namespaces", "create namespaces", true},
    [KN_REMOTE_LIST_TABLES] = {"GET /v1/{prefix}/namespaces/{namespace}/tables", "list tables",
                               true},
    [KN_REMOTE_CREATE_TABLE] = {"POST /v1/{prefix}/namespaces/{namespace}/tables", "create tables",
                                true},
    [KN_REMOTE_LOAD_TABLE] = {"GET /v1/{prefix}/namespaces/{namespace}/tables/{table}",
                              "load tables", true},
    [KN_REMOTE_COMMIT_TABLE] = {"POST /v1/{prefix}/namespaces/{namespace}/tables/{table}",
                                "change tables", true},
    [KN_REMOTE_DROP_TABLE] = {"DELETE /v1/{prefix}/namespaces/{namespace}/tables/{table}",
                              "drop tables", true},
    [KN_REMOTE_REGISTER_TABLE] = {"POST /v1/{prefix}/namespaces/{namespace}/register",
                                  "register tables", true},
    [KN_REMOTE_RENAME_TABLE] = {"POST /v1/{prefix}/tables/rename", "rename tables", true},
    [KN_REMOTE_COMMIT_ALL] = {"POST /v1/{prefix}/transactions/commit",
                              "change several tables at once", true},
    [KN_REMOTE_LOAD_CREDENTIALS] =
        {"GET /v1/{prefix}/namespaces/{namespace}/tables/{table}/credentials",
         "give new credentials", false},
};

const char *kn_remote_property(const KnRemote *rest, const char *key)
{
    return json_string_value(json_object_get(rest->properties, key));
}

KnCode kn_remote_need(const KnRemote *rest, KnRemoteEndpoint endpoint, KnErr *err)
{
    if (rest->endpoints & (1U << endpoint))
        return KN_OK;
    return kn_err_set(err, KN_E_UNSUPPORTED, "the catalog %s does not %s: it does not offer '%s'",
                      rest->set.uri, endpoints[endpoint].name, endpoints[endpoint].text);
}

/* Values that are no texts are passed over, as unknown keys are. */
static void merge(json_t *into, const json_t *from)
{
    const char *key = NULL;
    json_t *value = NULL;
    json_object_foreach((json_t *)(uintptr_t)from, key, value)
    {
        if (json_is_string(value))
            (void)json_object_set(into, key, value);
    }
}

static void read_endpoints(KnRemote *rest, const json_t *list)
{
    rest->endpoints = 0;
    for (size_t e = 0; e < KN_REMOTE_N_ENDPOINTS; e++) {
        bool has = !json_is_array(list) && endpoints[e].assumed;
        for (size_t i = 0; i < json_array_size(list); i++) {
            const char *text = json_string_value(json_array_get(list, i));
            has |= text && !strcmp(text, endpoints[e].text);
        }
        rest->endpoints |= has ? 1U << e : 0;
    }
}

/* An empty prefix is none; slashes inside are steps of the path, each is encoded by itself. */
static const char *prefix_path(KnArena *arena, const char *prefix)
{
    size_t start = prefix ? strspn(prefix, "/") : 0;
    size_t len = prefix ? strlen(prefix) : 0;
    while (len > start && prefix[len - 1] == '/')
        len--;
    if (len <= start)
        return "";
    KN_BUF_AUTO buf = {0};
    kn_buf_init(&buf, 1 << 16);
    kn_buf_char(&buf, '/');
    kn_url_encode(&buf, (KnStr){prefix + start, len - start}, true);
    return kn_arena_strndup(arena, buf.data, buf.len);
}

/* The property is percent-encoded already. */
static KnCode take_separator(KnRemote *rest, KnErr *err)
{
    const char *separator = kn_remote_property(rest, "namespace-separator");
    rest->separator = "%1F";
    if (!separator || !*separator)
        return KN_OK;
    KN_BUF_AUTO plain = {0};
    kn_buf_init(&plain, 64);
    KnCode rc = kn_url_decode(&plain, kn_str(separator), NULL);
    if (rc != KN_OK || kn_buf_check(&plain, NULL) != KN_OK || !plain.len)
        return kn_err_set(err, KN_E_CORRUPT,
                          "%s/v1/config: the namespace-separator '%.60s' is not percent-encoded",
                          rest->set.uri, separator);
    KN_BUF_AUTO encoded = {0};
    kn_buf_init(&encoded, 256);
    kn_url_encode(&encoded, (KnStr){plain.data, plain.len}, false);
    /* '.' needs no encoding; encoded it cannot be taken for a step in the path. */
    rest->separator = plain.len == 1 && plain.data[0] == '.'
                          ? "%2E"
                          : kn_arena_strndup(rest->arena, encoded.data, encoded.len);
    return KN_OK;
}

static KnCode take_uri(KnRemote *rest, KnErr *err)
{
    const char *uri = kn_remote_property(rest, "uri");
    rest->base_uri = kn_arena_printf(rest->arena, "%s/v1", rest->set.uri);
    if (!uri || !*uri)
        return KN_OK;
    const char *origin = NULL;
    if (kn_remote_origin(rest->arena, uri, &origin, NULL) != KN_OK ||
        strcmp(origin, rest->set.origin) != 0)
        return kn_err_set(err, KN_E_REFUSED,
                          "the catalog %s sends its clients to '%.150s': give that address with "
                          "--rest-uri if it is to be trusted",
                          rest->set.uri, uri);
    size_t len = strlen(uri);
    while (len && uri[len - 1] == '/')
        len--;
    rest->base_uri = kn_arena_printf(rest->arena, "%.*s/v1", (int)len, uri);
    return KN_OK;
}

static KnCode read_config(KnRemote *rest, const json_t *doc, KnErr *err)
{
    json_t *defaults = NULL, *overrides = NULL;
    if (!json_is_object(doc))
        return kn_err_set(err, KN_E_CORRUPT,
                          "%s/v1/config: the answer is no configuration of a catalog",
                          rest->set.uri);
    KN_TRY(kn_err_wrap(err, kn_json_opt_object(doc, "defaults", &defaults, err), "%s/v1/config",
                       rest->set.uri));
    KN_TRY(kn_err_wrap(err, kn_json_opt_object(doc, "overrides", &overrides, err), "%s/v1/config",
                       rest->set.uri));
    json_t *all = json_object();
    merge(all, defaults);
    merge(all, rest->set.properties);
    merge(all, overrides);
    kn_json_freep(&rest->properties);
    rest->properties = all;
    read_endpoints(rest, json_object_get(doc, "endpoints"));
    rest->idempotent = json_is_string(json_object_get(doc, "idempotency-key-lifetime"));
    rest->prefix = prefix_path(rest->arena, kn_remote_property(rest, "prefix"));
    const char *size = kn_remote_property(rest, "rest-page-size");
    int64_t n = 0;
    rest->page_size = size && kn_str_to_i64(kn_str(size), &n) && n > 0 ? size : NULL;
    KN_TRY(take_separator(rest, err));
    return take_uri(rest, err);
}

KnCode kn_remote_configure(KnRemote *rest, KnErr *err)
{
    KN_BUF_AUTO url = {0};
    kn_buf_init(&url, 1 << 16);
    rest->properties = json_deep_copy(rest->set.properties);
    kn_buf_printf(&url, "%s/v1/config", rest->set.uri);
    if (rest->set.warehouse) {
        kn_buf_text(&url, "?warehouse=");
        kn_url_encode(&url, kn_str(rest->set.warehouse), false);
    }
    KN_TRY(kn_buf_check(&url, err));
    KnRemoteCall call = {.method = "GET",
                         .url = url.data,
                         .what = "ask the catalog for its configuration",
                         .safety = KN_REMOTE_READS};
    KN_REMOTE_ANSWER_AUTO answer = {0};
    KN_TRY(kn_remote_send(rest, &call, &answer, err));
    return read_config(rest, answer.doc, err);
}
