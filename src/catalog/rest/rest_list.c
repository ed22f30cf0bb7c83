/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rest_list.c - all tables of the catalog: namespaces from the top down, the tables of each, page
 * by page.
 *
 * A server that gives the same page token twice, or namespaces that are not below the one asked
 * for, would keep us going for ever: the first is an error, the second are passed over.
 */
#include <stdlib.h>
#include <string.h>

#include "catalog/rest/rest_internal.h"
#include "net/url.h"

typedef struct Listing {
    KnRemote *rest;
    KnArena *arena; /* of one namespace */
    KnTableListFn fn;
    void *arg;
} Listing;

typedef struct Pages {
    KnRemote *rest;
    const char *url;    /* without a query */
    const char *parent; /* value of `parent`, or NULL */
    const char *what;
    const char *key; /* of the array in the answers */
} Pages;

static KnCode page_url(const Pages *pages, const char *token, KnBuf *url, KnErr *err)
{
    kn_buf_init(url, 1 << 20);
    /* An empty token asks the server to answer in pages at all. */
    kn_buf_printf(url, "%s?pageToken=", pages->url);
    kn_url_encode(url, kn_str(token), false);
    if (pages->rest->page_size)
        kn_buf_printf(url, "&pageSize=%s", pages->rest->page_size);
    if (pages->parent)
        kn_buf_printf(url, "&parent=%s", pages->parent);
    return kn_buf_check(url, err);
}

static KnCode page_parts(const Pages *pages, const json_t *doc, json_t **ret_items,
                         const char **ret_next, KnErr *err)
{
    KnCode rc = json_is_object(doc) ? kn_json_opt_array(doc, pages->key, ret_items, err)
                                    : kn_err_set(err, KN_E_CORRUPT, "it is no list");
    if (rc == KN_OK)
        rc = kn_json_opt_str(doc, "next-page-token", ret_next, err);
    return kn_err_wrap(err, rc, "%s: the catalog's answer", pages->what);
}

/* One page is appended to all. token: in, of this page; out, of the next, empty after the last. */
static KnCode one_page(const Pages *pages, KnBuf *token, json_t *all, KnErr *err)
{
    KN_BUF_AUTO url = {0};
    const char *from = token->len ? token->data : "";
    KN_TRY(page_url(pages, from, &url, err));
    KnRemoteCall call = {
        .method = "GET", .url = url.data, .what = pages->what, .safety = KN_REMOTE_READS};
    KN_REMOTE_ANSWER_AUTO answer = {0};
    KN_TRY(kn_remote_send(pages->rest, &call, &answer, err));
    json_t *items = NULL;
    const char *next = NULL;
    KN_TRY(page_parts(pages, answer.doc, &items, &next, err));
    if (items)
        (void)json_array_extend(all, items);
    if (next && *next && !strcmp(next, from))
        return kn_err_set(err, KN_E_CORRUPT,
                          "%s: the catalog gives the same page token again and again", pages->what);
    kn_buf_reset(token);
    kn_buf_text(token, next ? next : "");
    return kn_buf_check(token, err);
}

static KnCode all_pages(const Pages *pages, json_t **ret, KnErr *err)
{
    json_t *all = json_array();
    KN_BUF_AUTO token = {0};
    kn_buf_init(&token, 1 << 16);
    KnCode rc = KN_OK;
    int n = 0;
    do {
        rc = ++n > KN_REMOTE_PAGES_MAX ? kn_err_set(err, KN_E_CORRUPT, "%s: over %d pages",
                                                    pages->what, KN_REMOTE_PAGES_MAX)
                                       : one_page(pages, &token, all, err);
    } while (rc == KN_OK && token.len);
    if (rc == KN_OK)
        *ret = all;
    else
        json_decref(all);
    return rc;
}

/* ---- what is in the pages ---- */

static bool is_levels(const json_t *item)
{
    for (size_t i = 0; i < json_array_size(item); i++) {
        if (!json_is_string(json_array_get(item, i)))
            return false;
    }
    return json_array_size(item) > 0 && json_array_size(item) <= KN_REMOTE_DEPTH_MAX;
}

static const char *const *levels_of(KnArena *arena, const json_t *item)
{
    size_t n = json_array_size(item);
    const char **levels = kn_arena_alloc(arena, (n + 1) * sizeof(*levels));
    for (size_t i = 0; i < n; i++)
        levels[i] = json_string_value(json_array_get(item, i));
    return levels;
}

/* item is exactly one level below parent. */
static bool is_child(const json_t *parent, const json_t *item)
{
    if (!is_levels(item) || json_array_size(item) != json_array_size(parent) + 1)
        return false;
    for (size_t i = 0; i < json_array_size(parent); i++) {
        if (!json_equal(json_array_get(parent, i), json_array_get(item, i)))
            return false;
    }
    return true;
}

static int by_levels(const void *a, const void *b)
{
    const json_t *x = *(const json_t *const *)a, *y = *(const json_t *const *)b;
    for (size_t i = 0; i < json_array_size(x) && i < json_array_size(y); i++) {
        int order = strcmp(json_string_value(json_array_get(x, i)),
                           json_string_value(json_array_get(y, i)));
        if (order)
            return order;
    }
    return (json_array_size(x) > json_array_size(y)) - (json_array_size(x) < json_array_size(y));
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static KnCode fail(const KnErr *why, KnErr *err)
{
    if (err)
        *err = *why;
    return why->code;
}

static KnCode list_tables(const Listing *listing, const json_t *ns, KnErr *err)
{
    KN_ARENA_AUTO arena = kn_arena_new(0);
    size_t n_levels = json_array_size(ns);
    const char *const *levels = levels_of(arena, ns);
    KN_JSON_AUTO all = NULL;
    Pages pages = {
        .rest = listing->rest,
        .url = kn_arena_printf(arena, "%s/tables",
                               kn_remote_namespace_url(listing->rest, arena, levels, n_levels)),
        .what = "list tables",
        .key = "identifiers"};
    KnErr why = {0};
    KnCode rc = all_pages(&pages, &all, &why);
    if (rc == KN_E_NOTFOUND) /* dropped since it was listed */
        return KN_OK;
    if (rc != KN_OK)
        return fail(&why, err);
    size_t n = 0;
    const char **names = kn_arena_alloc(arena, (json_array_size(all) + 1) * sizeof(*names));
    for (size_t i = 0; i < json_array_size(all); i++) {
        const char *name = json_string_value(json_object_get(json_array_get(all, i), "name"));
        if (name)
            names[n++] = name;
    }
    qsort(names, n, sizeof(*names), by_text);
    for (size_t i = 0; i < n; i++) {
        KnTableIdent ident = {.levels = levels, .n_levels = n_levels, .name = names[i]};
        KN_TRY(listing->fn(listing->arg, &ident, err));
    }
    return KN_OK;
}

static KnCode children(KnRemote *rest, const json_t *parent, json_t **ret, KnErr *err)
{
    KN_ARENA_AUTO arena = kn_arena_new(0);
    Pages pages = {.rest = rest,
                   .url = kn_remote_url(rest, arena, "/namespaces"),
                   .what = "list namespaces",
                   .key = "namespaces"};
    if (json_array_size(parent))
        pages.parent = kn_remote_namespace_text(rest, arena, levels_of(arena, parent),
                                                json_array_size(parent));
    return all_pages(&pages, ret, err);
}

/* Depth first; depth is bounded by is_levels(). */
static KnCode visit(const Listing *listing, const json_t *parent, KnErr *err)
{
    KN_JSON_AUTO all = NULL;
    KnErr why = {0};
    KnCode rc = children(listing->rest, parent, &all, &why);
    /* Catalogs without nested namespaces refuse the question in several ways. */
    bool refused = rc == KN_E_NOTFOUND || rc == KN_E_INVAL || rc == KN_E_UNSUPPORTED;
    if (refused && json_array_size(parent))
        return KN_OK;
    if (rc != KN_OK)
        return fail(&why, err);
    KN_ARENA_AUTO arena = kn_arena_new(0);
    const json_t **found = kn_arena_alloc(arena, (json_array_size(all) + 1) * sizeof(*found));
    size_t n = 0;
    for (size_t i = 0; i < json_array_size(all); i++) {
        if (is_child(parent, json_array_get(all, i)))
            found[n++] = json_array_get(all, i);
    }
    qsort((void *)found, n, sizeof(*found), by_levels);
    for (size_t i = 0; i < n; i++) {
        if (i && json_equal(found[i - 1], found[i]))
            continue;
        KN_TRY(list_tables(listing, found[i], err));
        KN_TRY(visit(listing, found[i], err));
    }
    return KN_OK;
}

KnCode kn_remote_list(KnCatalog *cat, KnTableListFn fn, void *arg, KnErr *err)
{
    KnRemote *rest = (KnRemote *)cat;
    Listing listing = {.rest = rest, .fn = fn, .arg = arg};
    KN_TRY(kn_remote_need(rest, KN_REMOTE_LIST_NAMESPACES, err));
    KN_TRY(kn_remote_need(rest, KN_REMOTE_LIST_TABLES, err));
    KN_JSON_AUTO top = json_array();
    return visit(&listing, top, err);
}
