/* SPDX-License-Identifier: Apache-2.0 */
/*
 * api.c - the frontend's small requests, and the states of labels.
 *
 * Each request goes to the frontends in turn until one answers. User and password are sent with
 * every one of them and appear nowhere else. Where a redirect leads is decided here too: host,
 * port, path and query of the Location count; the user and password that Doris writes into it do
 * not, and are shown nowhere.
 */
#include <stdlib.h>

#include "base/str.h"
#include "doris_internal.h"
#include "net/url.h"

#define MAX_ANSWER ((size_t)4 << 20)

const char *kn_doris_path(KnArena *arena, const char *const *parts, size_t n)
{
    KN_BUF_AUTO out;
    kn_buf_init(&out, 65536);
    kn_buf_text(&out, "/api");
    for (size_t i = 0; i < n; ++i) {
        kn_buf_char(&out, '/');
        kn_url_encode(&out, kn_str(parts[i]), false);
    }
    return kn_arena_strndup(arena, out.data, out.len);
}

/* ---- redirects ---- */

static const char *rewritten(const KnDorisSettings *set, KnArena *arena, KnStr authority)
{
    for (size_t i = 0; i < set->n_rewrites; ++i)
        if (kn_str_eq(kn_str(set->rewrites[i].from), authority))
            return set->rewrites[i].to;
    return kn_arena_strndup(arena, authority.ptr, authority.len);
}

static KnCode check_scheme(const KnDorisSettings *set, bool base_tls, bool tls, const char *host,
                           KnErr *err)
{
    if (!base_tls || tls || set->allow_downgrade)
        return KN_OK;
    return kn_err_set(err, KN_E_REFUSED,
                      "the frontend sends loads from https to http://%s, where user, password and "
                      "rows could be read on the way: use be-scheme=https, or allow-downgrade=true",
                      host);
}

KnCode kn_doris_redirect(KnArena *arena, const KnDorisSettings *set, const char *base,
                         KnStr location, const char **ret, KnErr *err)
{
    KnUrl from;
    KN_TRY(kn_url_parse(kn_str(base), &from, err));
    const char *scheme = from.tls ? "https" : "http";
    bool absolute = true;
    KnStr rest = location;
    if (kn_str_starts_with(rest, KN_STR_LIT("http://")))
        scheme = "http", rest = (KnStr){rest.ptr + 7, rest.len - 7};
    else if (kn_str_starts_with(rest, KN_STR_LIT("https://")))
        scheme = "https", rest = (KnStr){rest.ptr + 8, rest.len - 8};
    else if (rest.len && rest.ptr[0] == '/')
        absolute = false;
    else
        return kn_err_set(err, KN_E_CORRUPT, "a redirect without a place to go to");
    size_t end = 0;
    while (absolute && end < rest.len && rest.ptr[end] != '/' && rest.ptr[end] != '?')
        ++end;
    KnStr authority = absolute ? (KnStr){rest.ptr, end} : from.authority;
    for (size_t i = authority.len; absolute && i-- > 0;)
        if (authority.ptr[i] == '@') {
            authority = (KnStr){authority.ptr + i + 1, authority.len - i - 1};
            break;
        }
    KnStr path = {rest.ptr + end, rest.len - end};
    if (path.len && path.ptr[path.len - 1] == '?')
        --path.len;
    const char *host = rewritten(set, arena, authority);
    if (set->be_scheme && absolute)
        scheme = set->be_scheme;
    KN_TRY(check_scheme(set, from.tls, strcmp(scheme, "https") == 0, host, err));
    const char *url = kn_arena_printf(arena, "%s://%s%.*s", scheme, host, (int)path.len, path.ptr);
    KN_TRY(kn_url_parse(kn_str(url), &from, err));
    *ret = url;
    return KN_OK;
}

/* ---- requests ---- */

static KnCode ask_one(KnDoris *dor, const KnHttpRequest *what, const char *fe, KnBuf *ret,
                      KnErr *err)
{
    KN_ARENA_AUTO arena = kn_arena_new(1024);
    KN_HTTP_RESPONSE_AUTO resp = {0};
    const KnHttpHeader headers[] = {{"Authorization", dor->authorization},
                                    {"Content-Type", "application/json"},
                                    {"X-Doris-Stream", "false"}};
    KnHttpRequest req = *what;
    req.url = kn_arena_printf(arena, "%s%s", fe, what->url);
    req.headers = headers;
    req.n_headers = 3;
    req.max_response = MAX_ANSWER;
    req.connect_ms = dor->set.connect_ms;
    req.stall_ms = dor->set.answer_ms;
    KnCode rc = kn_http_perform(dor->http, &req, &resp, err);
    if (rc == KN_OK && resp.status != 200) {
        rc = kn_err_set(err, KN_E_IO, "%s answers HTTP %d%s", fe, resp.status,
                        resp.status == 404 ? ": is this the frontend's http_port?" : "");
        if (err)
            err->retriable = true;
    }
    KN_TRY(rc);
    kn_buf_append(ret, resp.body.data, resp.body.len);
    return kn_buf_check(ret, err);
}

static KnCode ask(KnDoris *dor, const KnHttpRequest *what, KnBuf *ret, KnErr *err)
{
    KnCode rc = KN_E_IO;
    unsigned turn = atomic_fetch_add(&dor->turn, 1);
    for (size_t i = 0; i < dor->set.n_fe && rc != KN_OK; ++i) {
        kn_buf_reset(ret);
        rc = ask_one(dor, what, dor->set.fe[(turn + i) % dor->set.n_fe], ret, err);
    }
    return rc == KN_OK ? rc : kn_err_wrap(err, kn_http_settle(rc, err), "%s", dor->where);
}

KnCode kn_doris_get(KnDoris *dor, const char *path, KnBuf *ret, KnErr *err)
{
    const KnHttpRequest req = {.method = "GET", .url = path};
    return ask(dor, &req, ret, err);
}

/* {"code": 0, "data": ...}: the data, borrowed. */
static KnCode data_of(const json_t *doc, const json_t **ret, KnErr *err)
{
    int64_t code = -1;
    const char *msg = "", *data = "";
    KN_IGNORE(kn_json_opt_i64(doc, "code", &code, NULL));
    KN_IGNORE(kn_json_opt_str(doc, "msg", &msg, NULL));
    if (json_is_string(json_object_get(doc, "data")))
        data = json_string_value(json_object_get(doc, "data"));
    *ret = json_object_get(doc, "data");
    if (code == 0 && *ret)
        return KN_OK;
    if (code == 401)
        return kn_err_set(err, KN_E_REFUSED, "%s: %s (DORIS_USER, DORIS_PASSWORD)", msg, data);
    return kn_err_set(err, KN_E_REFUSED, "the frontend says: %s %s", msg, data);
}

KnCode kn_doris_statement(KnDoris *dor, KnArena *arena, const char *sql, json_t **ret_rows,
                          KnErr *err)
{
    KN_BUF_AUTO body, answer;
    kn_buf_init(&body, MAX_ANSWER);
    kn_buf_init(&answer, MAX_ANSWER);
    kn_buf_text(&body, "{\"stmt\":");
    kn_json_quote(&body, kn_str(sql));
    kn_buf_text(&body, ",\"limit\":10}");
    KN_TRY(kn_buf_check(&body, err));
    const char *parts[] = {"query", "internal", dor->db};
    const KnHttpRequest req = {
        .method = "POST", .url = kn_doris_path(arena, parts, 3), .body = {body.data, body.len}};
    KN_TRY(ask(dor, &req, &answer, err));
    KN_JSON_AUTO doc = NULL;
    const json_t *data;
    KN_TRY(kn_json_parse(answer.data, answer.len, &doc, err));
    KnCode rc = data_of(doc, &data, err);
    if (rc != KN_OK)
        return kn_err_wrap(err, rc, "%s", dor->where);
    if (ret_rows)
        *ret_rows = json_incref(json_object_get(data, "data"));
    return KN_OK;
}

KnCode kn_doris_health(KnDoris *dor, KnErr *err)
{
    KN_BUF_AUTO answer;
    kn_buf_init(&answer, MAX_ANSWER);
    KN_TRY(kn_doris_get(dor, "/api/health", &answer, err));
    KN_JSON_AUTO doc = NULL;
    const json_t *data;
    int64_t online = -1;
    KN_TRY(kn_json_parse(answer.data, answer.len, &doc, err));
    KN_TRY(data_of(doc, &data, err));
    KN_IGNORE(kn_json_opt_i64(data, "online_backend_num", &online, NULL));
    if (online != 0)
        return KN_OK;
    KnCode rc = kn_err_set(err, KN_E_IO, "%s: no backend is alive", dor->where);
    if (err)
        err->retriable = true;
    return rc;
}

/* Does _schema know the table? Its answer tells an absent table from an absent right. */
static KnCode is_there(KnDoris *dor, bool *ret, KnErr *err)
{
    KN_ARENA_AUTO arena = kn_arena_new(1024);
    KN_BUF_AUTO answer;
    kn_buf_init(&answer, MAX_ANSWER);
    const char *parts[] = {dor->db, dor->table, "_schema"};
    KN_TRY(kn_doris_get(dor, kn_doris_path(arena, parts, 3), &answer, err));
    KN_JSON_AUTO doc = NULL;
    const json_t *data;
    KN_TRY(kn_json_parse(answer.data, answer.len, &doc, err));
    KnErr why = {0};
    KnCode rc = data_of(doc, &data, &why);
    *ret = rc == KN_OK;
    if (rc == KN_OK || strcasestr(why.msg, "table not found") ||
        strcasestr(why.msg, "unknown table"))
        return KN_OK;
    if (err)
        *err = why;
    return kn_err_wrap(err, rc, "%s", dor->where);
}

KnCode kn_doris_read_table(KnDoris *dor, bool *ret_there, KnErr *err)
{
    KN_TRY(is_there(dor, ret_there, err));
    if (!*ret_there)
        return KN_OK;
    KN_BUF_AUTO sql;
    kn_buf_init(&sql, 65536);
    kn_buf_text(&sql, "SHOW CREATE TABLE ");
    kn_doris_ident(&sql, dor->db);
    kn_buf_char(&sql, '.');
    kn_doris_ident(&sql, dor->table);
    KN_JSON_AUTO rows = NULL;
    KN_TRY(kn_doris_statement(dor, dor->win_arena, sql.data, &rows, err));
    const json_t *text = json_array_get(json_array_get(rows, 0), 1);
    if (!json_is_string(text))
        return kn_err_set(err, KN_E_CORRUPT, "%s: SHOW CREATE TABLE has no text", dor->where);
    KnStr ddl = {json_string_value(text), json_string_length(text)};
    KnCode rc = kn_doris_table_parse(dor->win_arena, ddl, &dor->target, err);
    return rc == KN_OK ? rc : kn_err_wrap(err, rc, "%s", dor->where);
}

/* ---- states of labels ---- */

KnCode kn_doris_state(KnDoris *dor, const char *label, KnDorisState *ret, KnErr *err)
{
    KN_ARENA_AUTO arena = kn_arena_new(1024);
    KN_BUF_AUTO answer;
    kn_buf_init(&answer, MAX_ANSWER);
    const char *parts[] = {dor->db, "get_load_state"};
    const char *path = kn_arena_printf(arena, "%s?label=%s", kn_doris_path(arena, parts, 2), label);
    KN_TRY(kn_doris_get(dor, path, &answer, err));
    KnCode rc = kn_doris_state_parse((KnStr){answer.data, answer.len}, ret, err);
    if (rc != KN_OK && err)
        err->retriable = true;
    return rc == KN_OK ? rc : kn_err_wrap(err, rc, "%s, label %s", dor->where, label);
}
