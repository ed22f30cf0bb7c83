/* SPDX-License-Identifier: Apache-2.0 */
/* rest_answer.c - LoadTableResult, CommitTableResponse: bytes of a server, so each field is looked
 * at. No state. */
#include <string.h>

#include "catalog/rest/rest_internal.h"

enum { LOCATION_MAX = 64 << 10 };

/* Objects whose values are texts; other values are left out by whoever reads them. */
static KnCode optional_object(const json_t *doc, const char *key, const json_t **ret, KnErr *err)
{
    json_t *value = NULL;
    KN_TRY(kn_json_opt_object(doc, key, &value, err));
    *ret = value;
    return KN_OK;
}

static KnCode fields(const json_t *doc, KnRemoteTable *ret, json_t **ret_md, KnErr *err)
{
    json_t *credentials = NULL;
    KN_TRY(kn_json_get_object(doc, "metadata", ret_md, err));
    KN_TRY(kn_json_opt_str(doc, "metadata-location", &ret->location, err));
    KN_TRY(optional_object(doc, "config", &ret->config, err));
    KN_TRY(kn_json_opt_array(doc, "storage-credentials", &credentials, err));
    ret->credentials = credentials;
    if (ret->location && (!*ret->location || strlen(ret->location) > LOCATION_MAX))
        return kn_err_set(err, KN_E_CORRUPT, "field 'metadata-location' is no location");
    return KN_OK;
}

KnCode kn_remote_table_parse(json_t *doc, const char *what, KnRemoteTable *ret, KnErr *err)
{
    KnRemoteTable table = {0};
    json_t *md = NULL;
    if (!json_is_object(doc))
        return kn_err_set(err, KN_E_CORRUPT, "%s: the catalog's answer has no table in it", what);
    KN_TRY(kn_err_wrap(err, fields(doc, &table, &md, err), "%s: the catalog's answer", what));
    KN_TRY(kn_metadata_parse_json(md, table.location ? table.location : what, &table.md, err));
    *ret = table;
    return KN_OK;
}
