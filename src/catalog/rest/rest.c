/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rest.c - a catalog behind Iceberg's REST protocol: opened, named, closed. rest_internal.h says
 * where the rest is.
 */
#include <stdlib.h>
#include <string.h>

#include "catalog/rest/rest_internal.h"

static const char *rest_id(const KnCatalog *cat)
{
    return ((const KnRemote *)cat)->id;
}

static void free_seen(KnRemote *rest)
{
    for (size_t i = 0; i < kn_map_count(rest->seen); i++) {
        KnStr key = {0};
        void *value = NULL;
        if (kn_map_entry(rest->seen, i, &key, &value) && value) {
            kn_remote_seen_clear(value);
            kn_remote_loan_free(((KnRemoteSeen *)value)->loan);
            free(value);
        }
    }
    rest->seen = kn_map_free(rest->seen);
}

static void rest_close(KnCatalog *cat)
{
    KnRemote *rest = (KnRemote *)cat;
    free_seen(rest);
    kn_io_close(rest->io);
    kn_s3_credentials_free(rest->aws);
    kn_http_client_free(rest->http);
    kn_remote_auth_done(&rest->auth);
    kn_json_freep(&rest->properties);
    kn_json_freep(&rest->set.properties);
    kn_arena_free(rest->arena);
    free(rest);
}

/* Of a vendor's catalog that is for reading only, and of all others. */
#define REST_OPS(is_read_only)                                                                     \
    {                                                                                              \
        .kind = "rest", .read_only = (is_read_only), .id = rest_id, .load = kn_remote_load,        \
        .create = kn_remote_create, .commit = kn_remote_commit,                                    \
        .commit_all = kn_remote_commit_all, .drop = kn_remote_drop, .purge = kn_remote_purge,      \
        .register_table = kn_remote_register, .rename = kn_remote_rename, .list = kn_remote_list,  \
        .create_namespace = kn_remote_create_namespace, .close = rest_close,                       \
    }
static const KnCatalogOps rest_ops = REST_OPS(false);
static const KnCatalogOps read_only_ops = REST_OPS(true);

static const KnS3Options *copy_s3(KnArena *arena, const KnS3Options *given)
{
    KnS3Options *copy = kn_arena_alloc(arena, sizeof(*copy));
    *copy = *given;
    copy->endpoint = given->endpoint ? kn_arena_strdup(arena, given->endpoint) : NULL;
    copy->region = given->region ? kn_arena_strdup(arena, given->region) : NULL;
    copy->ca_file = given->ca_file ? kn_arena_strdup(arena, given->ca_file) : NULL;
    copy->bucket = given->bucket ? kn_arena_strdup(arena, given->bucket) : NULL;
    return copy;
}

static KnCode fill(KnRemote *rest, const KnLocator *loc, KnErr *err)
{
    KN_TRY(kn_remote_settings(rest->arena, loc, &rest->set, err));
    if (rest->set.vendor->read_only)
        rest->base.ops = &read_only_ops;
    KnHttpClientOptions http = {
        .ca_file = loc->rest.ca, .client_cert = loc->rest.cert, .client_key = loc->rest.key};
    KN_TRY(kn_http_client_new(&http, &rest->http, err));
    rest->s3 = copy_s3(rest->arena, &loc->s3);
    rest->id = kn_arena_printf(rest->arena, "rest:%s#%s", rest->set.uri,
                               rest->set.warehouse ? rest->set.warehouse : "");
    return kn_remote_configure(rest, err);
}

KnCode kn_catalog_rest_open(const KnLocator *loc, KnCatalog **ret, KnErr *err)
{
    KnRemote *rest = calloc(1, sizeof(*rest));
    if (!rest)
        abort();
    rest->base.ops = &rest_ops;
    rest->arena = kn_arena_new(0);
    rest->seen = kn_map_new();
    rest->prefix = "";
    rest->separator = "%1F";
    kn_remote_auth_init(&rest->auth);
    KnCode rc = fill(rest, loc, err);
    if (rc != KN_OK) {
        rest_close(&rest->base);
        return rc;
    }
    *ret = &rest->base;
    return KN_OK;
}
