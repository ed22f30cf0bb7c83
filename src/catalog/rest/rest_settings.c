/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rest_settings.c - how to reach a REST catalog: flags, what vendors differ in, and secrets, which
 * come from the environment only.
 *
 * A vendor is a row of `vendors`. Nothing of a secret reaches a message, a key or the log.
 */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/path.h"
#include "catalog/rest/rest_internal.h"

/* In the order of --rest-vendor's choices. */
static const KnRemoteVendor vendors[] = {
    {.name = "rest"},
    {.name = "aistor",
     .path = "/_iceberg",
     .sigv4 = "s3tables",
     .own_keys = true,
     .wants_warehouse = true},
    {.name = "polaris",
     .path = "/api/catalog",
     .scope = "PRINCIPAL_ROLE:ALL",
     .wants_warehouse = true},
    {.name = "unity",
     .path = "/api/2.1/unity-catalog/iceberg",
     .token_only = true,
     .read_only = true,
     .wants_warehouse = true},
    {.name = "gravitino", .path = "/iceberg"},
};

/* ---- the server's address ---- */

static KnCode bad_uri(const char *uri, const char *why, KnErr *err)
{
    return kn_err_set(err, KN_E_INVAL,
                      "--rest-uri '%.200s' %s: give it as http://HOST[:PORT][/PATH] or https://…",
                      uri, why);
}

/* The host and port of a URI: what lies between "://" and the path. */
static KnCode authority(const char *uri, KnStr *ret_scheme, KnStr *ret, KnErr *err)
{
    const char *host = strstr(uri, "://");
    if (!host || (strncasecmp(uri, "http://", 7) != 0 && strncasecmp(uri, "https://", 8) != 0))
        return bad_uri(uri, "is no HTTP address", err);
    *ret_scheme = (KnStr){uri, (size_t)(host - uri)};
    host += 3;
    *ret = (KnStr){host, strcspn(host, "/?#")};
    if (memchr(host, '@', ret->len))
        return kn_err_set(
            err, KN_E_INVAL,
            "--rest-uri has a user before '@': secrets come from the environment, see "
            "KNUT_REST_TOKEN and KNUT_REST_CREDENTIAL");
    if (!ret->len)
        return bad_uri(uri, "names no host", err);
    return KN_OK;
}

KnCode kn_remote_origin(KnArena *arena, const char *uri, const char **ret, KnErr *err)
{
    KnStr scheme = {0}, at = {0};
    KN_TRY(authority(uri, &scheme, &at, err));
    bool tls = scheme.len == 5;
    size_t after_name = at.ptr[0] == '[' ? strcspn(at.ptr, "]") : 0; /* IPv6 has colons itself */
    bool has_port =
        after_name < at.len && memchr(at.ptr + after_name, ':', at.len - after_name) != NULL;
    char *origin =
        kn_arena_printf(arena, "%s://%.*s%s", tls ? "https" : "http", (int)at.len, at.ptr,
                        has_port ? ""
                        : tls    ? ":443"
                                 : ":80");
    for (char *p = origin; *p; p++)
        *p = (char)(*p >= 'A' && *p <= 'Z' ? *p + 32 : *p);
    *ret = origin;
    return KN_OK;
}

static const char *without_end(KnArena *arena, const char *uri)
{
    size_t len = strlen(uri);
    while (len && uri[len - 1] == '/')
        len--;
    if (len > 3 && !strncmp(uri + len - 3, "/v1", 3))
        len -= 3;
    while (len && uri[len - 1] == '/')
        len--;
    return kn_arena_strndup(arena, uri, len);
}

static KnCode take_uri(KnArena *arena, const KnLocator *loc, KnRemoteSettings *set, KnErr *err)
{
    KN_TRY(kn_remote_origin(arena, loc->rest.uri, &set->origin, err));
    if (strpbrk(loc->rest.uri, "?# \t\r\n"))
        return bad_uri(loc->rest.uri, "has more than a path behind the host", err);
    set->uri = without_end(arena, loc->rest.uri);
    const char *path = set->vendor->path;
    if (path && !kn_str_ends_with(kn_str(set->uri), kn_str(path)))
        set->uri = kn_arena_printf(arena, "%s%s", set->uri, path);
    return KN_OK;
}

/* ---- headers and options ---- */

static bool is_token(KnStr name)
{
    static const char others[] = "!#$%&'*+-.^_`|~";
    for (size_t i = 0; i < name.len; i++) {
        char c = name.ptr[i];
        bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
        if (!letter && (!c || !strchr(others, c)))
            return false;
    }
    return name.len > 0;
}

/* "env:NAME" is what the variable holds. */
static KnCode header_value(const char *flag, const char *given, const char **ret, KnErr *err)
{
    *ret = given;
    if (!strncmp(given, "env:", 4)) {
        *ret = getenv(given + 4);
        if (!*ret)
            return kn_err_set(err, KN_E_INVAL, "%s: the variable %.100s is not set", flag,
                              given + 4);
    }
    if (strpbrk(*ret, "\r\n"))
        return kn_err_set(err, KN_E_INVAL, "%s: the value has a line break", flag);
    return KN_OK;
}

static KnCode take_headers(KnArena *arena, const KnOptList *words, KnRemoteSettings *set,
                           KnErr *err)
{
    KnRemoteHeader *headers = kn_arena_zalloc(arena, (words->len + 1) * sizeof(*headers));
    for (size_t i = 0; i < words->len; i++) {
        KnStr name = {words->items[i], strcspn(words->items[i], "=")};
        if (!words->items[i][name.len] || !is_token(name))
            return kn_err_set(err, KN_E_INVAL,
                              "--rest-header '" KN_STR_FMT "': expected NAME=VALUE",
                              KN_STR_ARG(name));
        if (kn_str_eq_nocase(name, KN_STR_LIT("authorization")))
            return kn_err_set(err, KN_E_INVAL,
                              "--rest-header Authorization: secrets come from the environment, "
                              "KNUT_REST_TOKEN or KNUT_REST_CREDENTIAL");
        headers[i].name = kn_arena_strndup(arena, name.ptr, name.len);
        const char *value = NULL;
        KN_TRY(header_value("--rest-header", name.ptr + name.len + 1, &value, err));
        headers[i].value = kn_arena_strdup(arena, value);
    }
    set->headers = headers;
    set->n_headers = words->len;
    return KN_OK;
}

static bool is_secret(const char *key)
{
    static const char *const parts[] = {"secret", "password", "session-token", "authorization"};
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        if (strcasestr(key, parts[i]))
            return true;
    }
    return !strcasecmp(key, "token") || !strcasecmp(key, "credential");
}

static KnCode take_options(KnArena *arena, const KnOptList *words, KnRemoteSettings *set,
                           KnErr *err)
{
    set->properties = json_object();
    for (size_t i = 0; i < words->len; i++) {
        size_t len = strcspn(words->items[i], "=");
        const char *key = kn_arena_strndup(arena, words->items[i], len);
        if (!words->items[i][len] || !len)
            return kn_err_set(err, KN_E_INVAL, "--rest-option '%.100s': expected KEY=VALUE", key);
        if (is_secret(key))
            return kn_err_set(err, KN_E_INVAL,
                              "--rest-option %.100s: secrets come from the environment", key);
        if (json_object_set_new(set->properties, key, json_string(words->items[i] + len + 1)))
            return kn_err_set(err, KN_E_INVAL, "--rest-option %.100s is not UTF-8", key);
    }
    return KN_OK;
}

/* ---- secrets ---- */

/* The first of the variables that is set and not empty; ours, then those of programs before us. */
static const char *variable(const char *name, const char *older)
{
    const char *value = getenv(name);
    if ((!value || !*value) && older)
        value = getenv(older);
    return value && *value ? value : NULL;
}

static KnCode check_secret(const char *variable_name, const char *value, KnErr *err)
{
    if (value && strpbrk(value, "\r\n"))
        return kn_err_set(err, KN_E_INVAL, "%s has a line break", variable_name);
    return KN_OK;
}

static KnCode take_secrets(KnArena *arena, const KnLocator *loc, KnRemoteSettings *set, KnErr *err)
{
    const char *token = variable("KNUT_REST_TOKEN", "BIFROST_CATALOG_TOKEN");
    const char *credential = variable("KNUT_REST_CREDENTIAL", "BIFROST_CATALOG_CREDENTIAL");
    KN_TRY(check_secret("KNUT_REST_TOKEN", token, err));
    KN_TRY(check_secret("KNUT_REST_CREDENTIAL", credential, err));
    if (token)
        set->token = kn_arena_strdup(arena, token);
    if (credential) {
        const char *colon = strchr(credential, ':');
        size_t id_len = colon ? (size_t)(colon - credential) : 0;
        set->client_id = kn_arena_strndup(arena, credential, id_len);
        set->client_secret = kn_arena_strdup(arena, colon ? colon + 1 : credential);
    }
    set->user = loc->rest.user;
    if (!set->user)
        return KN_OK;
    const char *password = variable("KNUT_REST_PASSWORD", NULL);
    KN_TRY(check_secret("KNUT_REST_PASSWORD", password, err));
    /* Gravitino's simple authentication looks at the name alone. */
    set->password = password ? kn_arena_strdup(arena, password) : "dummy";
    return KN_OK;
}

static KnCode check_secrets(const KnRemoteSettings *set, KnErr *err)
{
    if (set->client_secret && set->vendor->token_only)
        return kn_err_set(
            err, KN_E_INVAL,
            "--rest-vendor %s takes a token, KNUT_REST_TOKEN; KNUT_REST_CREDENTIAL is "
            "set",
            set->vendor->name);
    int ways = (set->user != NULL) + (set->sigv4 != NULL) + (set->token || set->client_secret);
    if (ways > 1)
        return kn_err_set(err, KN_E_INVAL,
                          "more than one way to prove who asks: give one of --sigv4, --rest-user "
                          "and KNUT_REST_TOKEN or KNUT_REST_CREDENTIAL");
    if (set->oauth2_uri && !set->client_secret && !set->token)
        return kn_err_set(err, KN_E_INVAL,
                          "--rest-oauth2-uri needs KNUT_REST_CREDENTIAL=ID:SECRET in the "
                          "environment");
    return KN_OK;
}

KnCode kn_remote_settings(KnArena *arena, const KnLocator *loc, KnRemoteSettings *set, KnErr *err)
{
    set->vendor = &vendors[loc->rest.vendor];
    set->warehouse = loc->rest.warehouse;
    set->sigv4 = loc->rest.sigv4 ? loc->rest.sigv4 : set->vendor->sigv4;
    set->scope = loc->rest.scope ? loc->rest.scope : set->vendor->scope;
    set->oauth2_uri = loc->rest.oauth2_uri;
    set->delegation = loc->rest.delegation == KN_REMOTE_DELEGATION_AUTO
                          ? !set->vendor->own_keys
                          : loc->rest.delegation == KN_REMOTE_DELEGATION_VENDED;
    set->must_lend = loc->rest.delegation == KN_REMOTE_DELEGATION_VENDED;
    KN_TRY(take_uri(arena, loc, set, err));
    if (set->vendor->wants_warehouse && !set->warehouse)
        return kn_err_set(err, KN_E_INVAL, "--rest-vendor %s needs --rest-warehouse NAME",
                          set->vendor->name);
    if (set->oauth2_uri) {
        const char *origin = NULL;
        KN_TRY(kn_err_wrap(err, kn_remote_origin(arena, set->oauth2_uri, &origin, err),
                           "--rest-oauth2-uri"));
    }
    KN_TRY(take_headers(arena, &loc->rest.headers, set, err));
    KN_TRY(take_options(arena, &loc->rest.options, set, err));
    KN_TRY(take_secrets(arena, loc, set, err));
    return check_secrets(set, err);
}
