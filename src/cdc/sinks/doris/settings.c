/* SPDX-License-Identifier: Apache-2.0 */
/*
 * settings.c - "http://fe1:8030,fe2:8030?name=value&...": what the text behind "doris:" says.
 *
 * User and password come from the environment only (doris.c); a place that holds them is refused
 * without being repeated. Names keep to those of Doris's own connectors where they have one.
 */
#include <string.h>

#include "base/str.h"
#include "base/vec.h"
#include "doris_internal.h"
#include "net/url.h"

enum { MAX_LIST = 256 };

typedef enum SetKind {
    SET_TEXT,
    SET_SECONDS_MS,
    SET_SECONDS,
    SET_NUMBER,
    SET_BOOL,
    SET_FORMAT, /* json, arrow */
    SET_ZONE,   /* hours: 0 or 8 */
} SetKind;

typedef struct SetRow {
    const char *name;
    SetKind kind;
    size_t offset;
} SetRow;

#define ROW(n, k, f)                                                                               \
    {                                                                                              \
        (n), (k), offsetof(KnDorisSettings, f)                                                     \
    }
static const SetRow ROWS[] = {
    ROW("cluster", SET_TEXT, cluster),
    ROW("redirect-policy", SET_TEXT, redirect_policy),
    ROW("be-scheme", SET_TEXT, be_scheme),
    ROW("allow-downgrade", SET_BOOL, allow_downgrade),
    ROW("ca", SET_TEXT, ca_file),
    ROW("format", SET_FORMAT, arrow),
    ROW("arrow-zone", SET_ZONE, arrow_zone),
    ROW("connect-timeout", SET_SECONDS_MS, connect_ms),
    ROW("read-timeout", SET_SECONDS_MS, answer_ms),
    ROW("stall-timeout", SET_SECONDS_MS, stall_ms),
    ROW("load-timeout", SET_SECONDS, load_timeout_s),
    ROW("grace", SET_SECONDS_MS, grace_ms),
    ROW("retry-wait", SET_SECONDS_MS, retry_ms),
    ROW("max-retries", SET_NUMBER, max_retries),
    ROW("label-keep", SET_SECONDS, label_keep_s),
    ROW("two-phase-commit", SET_BOOL, two_phase),
    ROW("create-table", SET_BOOL, create_table),
    ROW("buckets", SET_NUMBER, buckets),
    ROW("replication", SET_NUMBER, replication),
};
#define N_ROWS (sizeof(ROWS) / sizeof(ROWS[0]))

static KnCode add_host(KnArena *arena, const char *scheme, KnStr host, const char **ret, KnErr *err)
{
    KnUrl url;
    *ret = kn_arena_printf(arena, "%s://%.*s", scheme, (int)host.len, host.ptr);
    KnCode rc = host.len > 300 ? kn_err_set(err, KN_E_INVAL, "a host is longer than 300 bytes")
                               : kn_url_parse(kn_str(*ret), &url, err);
    if (rc == KN_OK && (url.path.len || url.query.len))
        rc = kn_err_set(err, KN_E_INVAL, "expected HOST:PORT");
    return rc == KN_OK ? rc : kn_err_wrap(err, rc, "sink doris");
}

static KnCode parse_hosts(KnArena *arena, const char *scheme, KnStr text, const char ***ret,
                          size_t *ret_n, KnErr *err)
{
    const char **hosts = kn_arena_zalloc(arena, MAX_LIST * sizeof(*hosts));
    size_t n = 0;
    while (text.len) {
        if (n == MAX_LIST)
            return kn_err_set(err, KN_E_INVAL, "sink doris: more than %d hosts", MAX_LIST);
        KN_TRY(add_host(arena, scheme, kn_sink_next_part(&text, ','), &hosts[n++], err));
    }
    *ret = hosts;
    *ret_n = n;
    return KN_OK;
}

/* "10.0.0.1:8040=be1:8040,..." */
static KnCode parse_rewrites(KnArena *arena, KnStr text, KnDorisSettings *set, KnErr *err)
{
    set->rewrites = kn_arena_zalloc(arena, MAX_LIST * sizeof(*set->rewrites));
    while (text.len) {
        KnStr to = kn_sink_next_part(&text, ','), from = kn_sink_next_part(&to, '=');
        if (from.len == 0 || to.len == 0 || set->n_rewrites == MAX_LIST)
            return kn_err_set(err, KN_E_INVAL,
                              "sink doris: rewrite: expected HOST:PORT=HOST:PORT,...");
        set->rewrites[set->n_rewrites++] = (KnDorisRewrite){
            kn_arena_strndup(arena, from.ptr, from.len), kn_arena_strndup(arena, to.ptr, to.len)};
    }
    return KN_OK;
}

static bool set_value(KnArena *arena, KnDorisSettings *set, const SetRow *row, KnStr value)
{
    void *at = (char *)set + row->offset;
    double seconds;
    switch (row->kind) {
    case SET_TEXT:
        *(const char **)at = kn_arena_strndup(arena, value.ptr, value.len);
        return value.len > 0;
    case SET_SECONDS_MS:
        if (!kn_str_to_double(value, &seconds) || seconds <= 0 || seconds > 1e6)
            return false;
        *(int64_t *)at = (int64_t)(seconds * 1000);
        return *(int64_t *)at > 0;
    case SET_SECONDS:
    case SET_NUMBER:
        return kn_str_to_i64(value, at) && *(int64_t *)at >= 0 && *(int64_t *)at <= 259200;
    case SET_BOOL:
        *(bool *)at = kn_str_eq(value, KN_STR_LIT("true"));
        return *(bool *)at || kn_str_eq(value, KN_STR_LIT("false"));
    case SET_FORMAT:
        *(bool *)at = kn_str_eq(value, KN_STR_LIT("arrow"));
        return *(bool *)at || kn_str_eq(value, KN_STR_LIT("json"));
    case SET_ZONE:
        return kn_str_to_i64(value, at) && (*(int64_t *)at == 0 || *(int64_t *)at == 8);
    }
    return false;
}

static KnCode unknown_setting(KnStr name, KnErr *err)
{
    const char *known[N_ROWS + 2] = {"benodes", "rewrite"};
    for (size_t i = 0; i < N_ROWS; ++i)
        known[i + 2] = ROWS[i].name;
    return kn_sink_unknown_setting("doris", name, known, N_ROWS + 2, err);
}

static KnCode parse_setting(KnArena *arena, KnStr name, KnStr value, KnDorisSettings *set,
                            KnErr *err)
{
    KN_BUF_AUTO plain;
    kn_buf_init(&plain, 65536);
    KN_TRY(kn_url_decode(&plain, value, err));
    KN_TRY(kn_buf_check(&plain, err));
    value = (KnStr){kn_arena_strndup(arena, plain.data ? plain.data : "", plain.len), plain.len};
    if (kn_str_eq(name, KN_STR_LIT("benodes")))
        return parse_hosts(arena, set->be_scheme ? set->be_scheme : "http", value, &set->be,
                           &set->n_be, err);
    if (kn_str_eq(name, KN_STR_LIT("rewrite")))
        return parse_rewrites(arena, value, set, err);
    for (size_t i = 0; i < N_ROWS; ++i)
        if (kn_str_eq(name, kn_str(ROWS[i].name)))
            return set_value(arena, set, &ROWS[i], value)
                       ? KN_OK
                       : kn_err_set(err, KN_E_INVAL,
                                    "sink doris: setting %s cannot be '" KN_STR_FMT "'",
                                    ROWS[i].name, KN_STR_ARG(value));
    return unknown_setting(name, err);
}

static KnCode parse_scheme(KnStr *rest, const char **ret, KnErr *err)
{
    static const char *const SCHEMES[] = {"http", "https"};
    for (size_t i = 0; i < 2; ++i) {
        size_t len = strlen(SCHEMES[i]);
        if (rest->len < len + 3 || memcmp(rest->ptr, SCHEMES[i], len) != 0 ||
            memcmp(rest->ptr + len, "://", 3) != 0)
            continue;
        *rest = (KnStr){rest->ptr + len + 3, rest->len - len - 3};
        *ret = SCHEMES[i];
        return KN_OK;
    }
    return kn_err_set(err, KN_E_INVAL,
                      "sink doris: expected doris:http://FE-HOST:8030[,HOST:PORT...][?SETTING=VALUE"
                      "&...]");
}

static KnCode check_settings(const KnDorisSettings *set, KnErr *err)
{
    if (set->n_fe == 0)
        return kn_err_set(err, KN_E_INVAL,
                          "sink doris: no frontend is named: doris:http://FE:8030");
    if (set->be_scheme && strcmp(set->be_scheme, "http") != 0 &&
        strcmp(set->be_scheme, "https") != 0)
        return kn_err_set(err, KN_E_INVAL, "sink doris: be-scheme: expected http or https");
    if (set->load_timeout_s < 1)
        return kn_err_set(err, KN_E_INVAL, "sink doris: load-timeout must be at least 1");
    return KN_OK;
}

KnCode kn_doris_settings_parse(KnArena *arena, const char *place, KnDorisSettings *ret, KnErr *err)
{
    KnDorisSettings set = {.arrow_zone = -1,
                           .connect_ms = 10000,
                           .answer_ms = 300000,
                           .stall_ms = 60000,
                           .load_timeout_s = 1200,
                           .grace_ms = 60000,
                           .retry_ms = 1000,
                           .max_retries = 8,
                           .label_keep_s = 39600};
    KnStr rest = kn_str(place);
    const char *scheme;
    if (strchr(place, '@'))
        return kn_err_set(err, KN_E_INVAL,
                          "sink doris: credentials do not belong into the address: set DORIS_USER "
                          "and DORIS_PASSWORD");
    KN_TRY(parse_scheme(&rest, &scheme, err));
    KnStr hosts = kn_sink_next_part(&rest, '?');
    if (hosts.len && hosts.ptr[hosts.len - 1] == '/')
        --hosts.len;
    KN_TRY(parse_hosts(arena, scheme, hosts, &set.fe, &set.n_fe, err));
    while (rest.len) {
        KnStr value = kn_sink_next_part(&rest, '&'), name = kn_sink_next_part(&value, '=');
        KN_TRY(parse_setting(arena, name, value, &set, err));
    }
    KN_TRY(check_settings(&set, err));
    if (!set.cluster)
        set.cluster = kn_arena_printf(arena, "%s", set.fe[0]);
    *ret = set;
    return KN_OK;
}
