/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rest_table.c - load, create, drop, register and rename.
 *
 * What was loaded is kept with its ETag: the next load of the table asks whether it is still so,
 * and 304 costs no document. The namespace of a new table is made when the server misses it.
 */
#include <stdlib.h>
#include <string.h>

#include "catalog/rest/rest_internal.h"

static char *copy_text(const char *text)
{
    char *copy = text ? strdup(text) : NULL;
    if (text && !copy)
        abort();
    return copy;
}

/* ---- what was seen ---- */

static KnRemoteSeen *find_seen(KnRemote *rest, const KnTableIdent *ident)
{
    KN_ARENA_AUTO arena = kn_arena_new(0);
    return kn_map_find(rest->seen, kn_str(kn_table_ident_format(arena, ident)));
}

static KnRemoteSeen *need_seen(KnRemote *rest, const KnTableIdent *ident)
{
    KN_ARENA_AUTO arena = kn_arena_new(0);
    bool is_new = false;
    void **slot =
        kn_map_get_or_add(rest->seen, kn_str(kn_table_ident_format(arena, ident)), &is_new);
    if (is_new) {
        *slot = calloc(1, sizeof(KnRemoteSeen));
        if (!*slot)
            abort();
    }
    return *slot;
}

const char *kn_remote_token_of(KnRemote *rest, const KnTableIdent *ident)
{
    return kn_remote_table_token(find_seen(rest, ident));
}

void kn_remote_seen_clear(KnRemoteSeen *seen)
{
    kn_metadata_unref(seen->md);
    free(seen->etag);
    free(seen->location);
    kn_json_freep(&seen->config);
    kn_json_freep(&seen->credentials);
    *seen = (KnRemoteSeen){.loan = seen->loan};
}

static void forget(KnRemote *rest, const KnTableIdent *ident)
{
    KnRemoteSeen *seen = find_seen(rest, ident);
    if (seen)
        kn_remote_seen_clear(seen);
}

/* An answer without credentials (to a commit) leaves those of the load in force. */
KnRemoteSeen *kn_remote_see(KnRemote *rest, const KnTableIdent *ident, const KnRemoteTable *table,
                            const char *etag)
{
    KnRemoteSeen *seen = need_seen(rest, ident);
    kn_metadata_unref(seen->md);
    free(seen->etag);
    free(seen->location);
    seen->md = kn_metadata_ref(table->md);
    seen->etag = *etag ? copy_text(etag) : NULL;
    seen->location = copy_text(table->location);
    if (table->config || table->credentials) {
        kn_json_freep(&seen->config);
        kn_json_freep(&seen->credentials);
        seen->config = json_incref((json_t *)(uintptr_t)table->config);
        seen->credentials = json_incref((json_t *)(uintptr_t)table->credentials);
        kn_remote_loan_update(seen->loan, table->config, table->credentials);
    }
    return seen;
}

/* ---- load ---- */

static KnCode handle(KnRemote *rest, const KnTableIdent *ident, KnRemoteSeen *seen, KnTable **ret,
                     KnErr *err)
{
    KnFileIO *io = NULL;
    KN_TRY(kn_remote_io(rest, ident, seen, &io, err));
    *ret = kn_table_new(&rest->base, ident, io, kn_metadata_ref(seen->md), seen->location);
    return KN_OK;
}

/* The answer to a load, a create or a register: its table, seen and handed on. */
static KnCode take_table(KnRemote *rest, const KnTableIdent *ident, const char *what,
                         KnRemoteAnswer *answer, KnTable **ret, KnErr *err)
{
    KnRemoteTable table = {0};
    KN_TRY(kn_remote_table_parse(answer->doc, what, &table, err));
    KnCode rc = KN_OK;
    if (!table.location)
        rc = kn_err_set(err, KN_E_CORRUPT,
                        "%s: the catalog's answer has no 'metadata-location': the table is staged "
                        "only",
                        what);
    else
        rc = handle(rest, ident, kn_remote_see(rest, ident, &table, answer->etag), ret, err);
    kn_metadata_unref(table.md);
    return rc;
}

static const char *saying(KnArena *arena, const char *verb, const KnTableIdent *ident)
{
    return kn_arena_printf(arena, "%s %s", verb, kn_table_ident_format(arena, ident));
}

KnCode kn_remote_load(KnCatalog *cat, const KnTableIdent *ident, KnTable **ret, KnErr *err)
{
    KnRemote *rest = (KnRemote *)cat;
    KN_ARENA_AUTO arena = kn_arena_new(0);
    KN_TRY(kn_remote_need(rest, KN_REMOTE_LOAD_TABLE, err));
    KnRemoteSeen *seen = find_seen(rest, ident);
    KnRemoteCall call = {.method = "GET",
                         .url = kn_remote_table_url(rest, arena, ident),
                         .what = saying(arena, "load table", ident),
                         .safety = KN_REMOTE_READS,
                         .etag = seen && seen->md ? seen->etag : NULL,
                         .token = kn_remote_table_token(seen),
                         .delegated = true,
                         .max = KN_REMOTE_ANSWER_MAX};
    KN_REMOTE_ANSWER_AUTO answer = {0};
    KN_TRY(kn_remote_send(rest, &call, &answer, err));
    if (answer.status != 304)
        return take_table(rest, ident, call.what, &answer, ret, err);
    if (!call.etag)
        return kn_err_set(err, KN_E_CORRUPT,
                          "%s: the catalog answers 304 (not modified) to a first request",
                          call.what);
    return handle(rest, ident, seen, ret, err);
}

/* ---- create, register ---- */

static KnCode namespace_body(const char *const *levels, size_t n, json_t **ret, KnErr *err)
{
    json_t *array = json_array();
    for (size_t i = 0; i < n; i++)
        (void)json_array_append_new(array, json_string(levels[i]));
    if (json_array_size(array) != n) {
        json_decref(array);
        return kn_err_set(err, KN_E_INVAL, "the name of a namespace is not UTF-8");
    }
    *ret = json_pack("{s:o, s:{}}", "namespace", array, "properties");
    return KN_OK;
}

static KnCode add_namespace(KnRemote *rest, const char *const *levels, size_t n, KnErr *err)
{
    KN_ARENA_AUTO arena = kn_arena_new(0);
    KN_JSON_AUTO body = NULL;
    KN_TRY(namespace_body(levels, n, &body, err));
    KnTableIdent shown = {.levels = levels, .n_levels = n - 1, .name = levels[n - 1]};
    KnRemoteCall call = {.method = "POST",
                         .url = kn_remote_url(rest, arena, "/namespaces"),
                         .what = saying(arena, "create namespace", &shown),
                         .safety = KN_REMOTE_CHANGES,
                         .body = body};
    KN_REMOTE_ANSWER_AUTO answer = {0};
    return kn_remote_send(rest, &call, &answer, err);
}

/* Outer levels first: servers with nested namespaces want them to exist. */
KnCode kn_remote_create_namespace(KnCatalog *cat, const char *const *levels, size_t n, KnErr *err)
{
    KnRemote *rest = (KnRemote *)cat;
    KN_TRY(kn_remote_need(rest, KN_REMOTE_CREATE_NAMESPACE, err));
    for (size_t i = 1; i <= n; i++) {
        KnErr why = {0};
        KnCode rc = add_namespace(rest, levels, i, &why);
        if (rc != KN_OK && rc != KN_E_EXISTS) {
            if (err)
                *err = why;
            return rc;
        }
    }
    return KN_OK;
}

/* Sends call; where the namespace is missing, makes it and sends again. */
static KnCode send_into_namespace(KnRemote *rest, const KnRemoteCall *call,
                                  const KnTableIdent *ident, KnRemoteAnswer *answer, KnErr *err)
{
    KnErr why = {0};
    KnCode rc = kn_remote_send(rest, call, answer, &why);
    if (rc == KN_E_NOTFOUND && why.about == KN_ABOUT_NAMESPACE) {
        KN_TRY(kn_remote_create_namespace(&rest->base, ident->levels, ident->n_levels, err));
        return kn_remote_send(rest, call, answer, err);
    }
    if (rc != KN_OK && err)
        *err = why;
    return rc;
}

KnCode kn_remote_refuse_read_only(const KnRemote *rest, KnErr *err)
{
    if (!rest->base.ops->read_only)
        return KN_OK;
    return kn_err_set(err, KN_E_UNSUPPORTED, "--rest-vendor %s is for reading only",
                      rest->set.vendor->name);
}

/* The format version is a property in this protocol. */
static json_t *create_properties(const KnCreateTable *create)
{
    json_t *properties =
        create->properties ? json_copy((json_t *)(uintptr_t)create->properties) : json_object();
    if (create->format_version && !json_object_get(properties, "format-version"))
        (void)json_object_set_new(properties, "format-version",
                                  json_sprintf("%d", create->format_version));
    return properties;
}

static KnCode create_body(const KnTableIdent *ident, const KnCreateTable *create, json_t **ret,
                          KnErr *err)
{
    json_t *body = json_object();
    int failed = json_object_set_new(body, "name", json_string(ident->name));
    if (create->location)
        failed |= json_object_set_new(body, "location", json_string(create->location));
    failed |= json_object_set_new(body, "schema", kn_schema_to_json(create->schema));
    if (create->spec)
        failed |=
            json_object_set_new(body, "partition-spec", kn_partition_spec_to_json(create->spec));
    if (create->sort_order)
        failed |=
            json_object_set_new(body, "write-order", kn_sort_order_to_json(create->sort_order));
    failed |= json_object_set_new(body, "stage-create", json_false());
    failed |= json_object_set_new(body, "properties", create_properties(create));
    if (failed) {
        json_decref(body);
        return kn_err_set(err, KN_E_INVAL, "create table: a text is not UTF-8");
    }
    *ret = body;
    return KN_OK;
}

/* A create whose answer was lost and a table that is there now: ours or another's cannot be told.
 */
static KnCode unknown_create(KnRemote *rest, const KnTableIdent *ident, KnErr *err)
{
    KnTable *tbl = NULL;
    KnErr look = {0};
    KnCode rc = kn_remote_load(&rest->base, ident, &tbl, &look);
    kn_table_free(tbl);
    if (rc == KN_E_NOTFOUND && err)
        return kn_err_wrap(err, KN_E_UNKNOWN, "the table is not there now, and may yet appear");
    if (rc == KN_OK && err)
        return kn_err_wrap(err, KN_E_UNKNOWN, "a table of that name is there now");
    return KN_E_UNKNOWN;
}

KnCode kn_remote_create(KnCatalog *cat, const KnTableIdent *ident, const KnCreateTable *create,
                        KnTable **ret, KnErr *err)
{
    KnRemote *rest = (KnRemote *)cat;
    KN_ARENA_AUTO arena = kn_arena_new(0);
    KN_JSON_AUTO body = NULL;
    KN_TRY(kn_remote_refuse_read_only(rest, err));
    KN_TRY(kn_remote_need(rest, KN_REMOTE_CREATE_TABLE, err));
    KN_TRY(create_body(ident, create, &body, err));
    const char *ns = kn_remote_namespace_url(rest, arena, ident->levels, ident->n_levels);
    KnRemoteCall call = {.method = "POST",
                         .url = kn_arena_printf(arena, "%s/tables", ns),
                         .what = saying(arena, "create table", ident),
                         .safety = KN_REMOTE_CHANGES,
                         .delegated = true,
                         .body = body,
                         .max = KN_REMOTE_ANSWER_MAX};
    KN_REMOTE_ANSWER_AUTO answer = {0};
    KnCode rc = send_into_namespace(rest, &call, ident, &answer, err);
    if (rc == KN_E_UNKNOWN)
        return unknown_create(rest, ident, err);
    KN_TRY(rc);
    return take_table(rest, ident, call.what, &answer, ret, err);
}

KnCode kn_remote_register(KnCatalog *cat, const KnTableIdent *ident, const char *location,
                          KnTable **ret, KnErr *err)
{
    KnRemote *rest = (KnRemote *)cat;
    KN_ARENA_AUTO arena = kn_arena_new(0);
    KN_TRY(kn_remote_refuse_read_only(rest, err));
    KN_TRY(kn_remote_need(rest, KN_REMOTE_REGISTER_TABLE, err));
    KN_JSON_AUTO body = json_pack("{s:s, s:s}", "name", ident->name, "metadata-location", location);
    if (!body)
        return kn_err_set(err, KN_E_INVAL, "register table: a text is not UTF-8");
    const char *ns = kn_remote_namespace_url(rest, arena, ident->levels, ident->n_levels);
    KnRemoteCall call = {.method = "POST",
                         .url = kn_arena_printf(arena, "%s/register", ns),
                         .what = saying(arena, "register table", ident),
                         .safety = KN_REMOTE_CHANGES,
                         .delegated = true,
                         .body = body,
                         .max = KN_REMOTE_ANSWER_MAX};
    KN_REMOTE_ANSWER_AUTO answer = {0};
    KN_TRY(send_into_namespace(rest, &call, ident, &answer, err));
    return take_table(rest, ident, call.what, &answer, ret, err);
}

/* ---- drop, rename ---- */

static KnCode drop(KnCatalog *cat, const KnTableIdent *ident, bool purge, KnErr *err)
{
    KnRemote *rest = (KnRemote *)cat;
    KN_ARENA_AUTO arena = kn_arena_new(0);
    KN_TRY(kn_remote_refuse_read_only(rest, err));
    KN_TRY(kn_remote_need(rest, KN_REMOTE_DROP_TABLE, err));
    KnRemoteCall call = {.method = "DELETE",
                         .url = kn_arena_printf(arena, "%s?purgeRequested=%s",
                                                kn_remote_table_url(rest, arena, ident),
                                                purge ? "true" : "false"),
                         .what = saying(arena, purge ? "purge table" : "drop table", ident),
                         .safety = KN_REMOTE_CHANGES,
                         .gone_is_done = true};
    KN_REMOTE_ANSWER_AUTO answer = {0};
    KN_TRY(kn_remote_send(rest, &call, &answer, err));
    forget(rest, ident);
    return KN_OK;
}

KnCode kn_remote_drop(KnCatalog *cat, const KnTableIdent *ident, KnErr *err)
{
    return drop(cat, ident, false, err);
}

KnCode kn_remote_purge(KnCatalog *cat, const KnTableIdent *ident, KnErr *err)
{
    return drop(cat, ident, true, err);
}

KnCode kn_remote_rename(KnCatalog *cat, const KnTableIdent *from, const KnTableIdent *to,
                        KnErr *err)
{
    KnRemote *rest = (KnRemote *)cat;
    KN_ARENA_AUTO arena = kn_arena_new(0);
    KN_TRY(kn_remote_refuse_read_only(rest, err));
    KN_TRY(kn_remote_need(rest, KN_REMOTE_RENAME_TABLE, err));
    KN_JSON_AUTO body = json_pack("{s:o, s:o}", "source", kn_remote_ident_json(from), "destination",
                                  kn_remote_ident_json(to));
    KnRemoteCall call = {.method = "POST",
                         .url = kn_remote_url(rest, arena, "/tables/rename"),
                         .what = saying(arena, "rename table", from),
                         .safety = KN_REMOTE_CHANGES,
                         .body = body};
    KN_REMOTE_ANSWER_AUTO answer = {0};
    KN_TRY(send_into_namespace(rest, &call, to, &answer, err));
    forget(rest, from);
    forget(rest, to);
    return KN_OK;
}
