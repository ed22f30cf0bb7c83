/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rest_credentials.c - with what a table's files are read and written.
 *
 * A server lends keys by `storage-credentials` (the longest prefix of the location wins) or, as
 * older ones do, in `config`; what neither has comes from the catalog's properties (defaults,
 * --rest-option, overrides).
 */
#include <string.h>

#include "base/path.h"
#include "catalog/rest/rest_internal.h"

const char *kn_remote_table_token(const KnRemoteSeen *seen)
{
    const char *token = seen ? json_string_value(json_object_get(seen->config, "token")) : NULL;
    return token && *token && !strpbrk(token, "\r\n") ? token : NULL;
}

/* "s3://b/x" is a prefix of "s3://b/x" and "s3://b/x/y", as a text; servers give folders. */
static bool covers(const char *prefix, KnStr location)
{
    return kn_str_starts_with(location, kn_str(prefix));
}

const json_t *kn_remote_lent(const json_t *credentials, KnStr location)
{
    const json_t *best = NULL;
    size_t best_len = 0;
    for (size_t i = 0; i < json_array_size(credentials); i++) {
        const json_t *item = json_array_get(credentials, i);
        const char *prefix = json_string_value(json_object_get(item, "prefix"));
        const json_t *config = json_object_get(item, "config");
        if (!prefix || !json_is_object(config) || !covers(prefix, location))
            continue;
        if (!best || strlen(prefix) > best_len) {
            best = config;
            best_len = strlen(prefix);
        }
    }
    return best;
}

KnCode kn_remote_io(KnRemote *rest, const KnTableIdent *ident, const KnRemoteSeen *seen,
                    KnFileIO **ret, KnErr *err)
{
    (void)ident;
    (void)seen;
    if (!rest->io)
        KN_TRY(kn_io_open_for(kn_str(seen->location), &rest->io, err));
    *ret = rest->io;
    return KN_OK;
}

void kn_remote_ios_close(KnRemote *rest)
{
    rest->io = kn_io_close(rest->io);
}
