/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rest_credentials.c - with what a table's files are read and written.
 *
 * A server lends keys by `storage-credentials` (the longest prefix of the location wins) or, as
 * older ones do, in `config`; what neither has comes from the catalog's properties (defaults,
 * --rest-option, overrides). Keys are renewed before they end, and when the store refuses them: the
 * FileIO asks (KnS3KeysFn), through the credentials endpoint where the server has one.
 */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "catalog/rest/rest_internal.h"
#include "storage/s3/credentials.h"

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

/* ---- a loan ---- */

/* The keys that a server lends for one table, and the FileIO that signs with them. Asked for from
 * any thread that reads or writes: `lock` guards what is lent. */
struct KnRemoteLoan {
    KnRemote *rest;
    const char *location; /* of the table */
    const char *table_url, *what;
    KnFileIO *io;
    KnArena *arena;
    pthread_mutex_t lock;
    json_t *config, *credentials; /* newest answer */
    bool fresh;                   /* not handed to the FileIO yet */
    KnRemoteLoan *older;          /* of a table that had the name before, elsewhere */
};

/* What applies to the table's files, nearest first. */
static const char *setting(const KnRemoteLoan *loan, const char *key)
{
    const json_t *lent = kn_remote_lent(loan->credentials, kn_str(loan->location));
    const char *text = json_string_value(json_object_get(lent, key));
    if (!text)
        text = json_string_value(json_object_get(loan->config, key));
    if (!text)
        text = kn_remote_property(loan->rest, key);
    return text && *text ? text : NULL;
}

static bool has_keys(const KnRemoteLoan *loan)
{
    return loan->rest->set.delegation && setting(loan, "s3.access-key-id") &&
           setting(loan, "s3.secret-access-key");
}

static void keys_of(const KnRemoteLoan *loan, KnArena *arena, KnS3Keys *ret)
{
    const char *token = setting(loan, "s3.session-token");
    const char *expires = setting(loan, "s3.session-token-expires-at-ms");
    int64_t expires_ms = 0;
    if (expires && !kn_str_to_i64(kn_str(expires), &expires_ms))
        expires_ms = 0;
    *ret = (KnS3Keys){.access_key_id = kn_arena_strdup(arena, setting(loan, "s3.access-key-id")),
                      .secret_access_key =
                          kn_arena_strdup(arena, setting(loan, "s3.secret-access-key")),
                      .session_token = token ? kn_arena_strdup(arena, token) : NULL,
                      .expires_ms = expires_ms > 0 ? expires_ms : 0};
}

static void take_loan(KnRemoteLoan *loan, const json_t *config, const json_t *credentials)
{
    if (config) {
        kn_json_freep(&loan->config);
        loan->config = json_incref((json_t *)(uintptr_t)config);
    }
    if (credentials) {
        kn_json_freep(&loan->credentials);
        loan->credentials = json_incref((json_t *)(uintptr_t)credentials);
    }
    loan->fresh = true;
}

/* ---- renewal ---- */

/* The address that the server names, when it is its own; else the one of the specification. */
static const char *credentials_url(const KnRemoteLoan *loan, KnArena *arena)
{
    const char *named = setting(loan, "client.refresh-credentials-endpoint");
    const KnRemote *rest = loan->rest;
    const char *origin = NULL;
    if (named && strstr(named, "://"))
        return kn_remote_origin(arena, named, &origin, NULL) == KN_OK &&
                       !strcmp(origin, rest->set.origin)
                   ? named
                   : NULL;
    if (named) /* relative to the catalog's address, with or without /v1 */
        return kn_arena_printf(arena, "%s/%s", rest->set.uri, named + (named[0] == '/'));
    if (kn_remote_need(rest, KN_REMOTE_LOAD_CREDENTIALS, NULL) == KN_OK)
        return kn_arena_printf(arena, "%s/credentials", loan->table_url);
    return NULL;
}

/* With the lock held: by the endpoint for it, else by loading the table once more. */
static KnCode renew(KnRemoteLoan *loan, KnErr *err)
{
    KN_ARENA_AUTO arena = kn_arena_new(0);
    const char *url = credentials_url(loan, arena);
    KnRemoteCall call = {.method = "GET",
                         .url = url ? url : loan->table_url,
                         .what = loan->what,
                         .safety = KN_REMOTE_READS,
                         .delegated = true,
                         .max = url ? KN_REMOTE_SMALL_MAX : KN_REMOTE_ANSWER_MAX};
    const char *token = json_string_value(json_object_get(loan->config, "token"));
    if (token && *token && !strpbrk(token, "\r\n"))
        call.token = token;
    KN_REMOTE_ANSWER_AUTO answer = {0};
    KN_TRY(kn_remote_send(loan->rest, &call, &answer, err));
    json_t *config = NULL, *credentials = NULL;
    if (!json_is_object(answer.doc))
        return kn_err_set(err, KN_E_CORRUPT, "%s: the answer is no JSON object", loan->what);
    KN_TRY(
        kn_err_wrap(err, kn_json_opt_object(answer.doc, "config", &config, err), "%s", loan->what));
    KN_TRY(kn_err_wrap(err, kn_json_opt_array(answer.doc, "storage-credentials", &credentials, err),
                       "%s", loan->what));
    take_loan(loan, config, credentials);
    return KN_OK;
}

static KnCode provide_locked(KnRemoteLoan *loan, KnArena *arena, KnS3Keys *ret, KnErr *err)
{
    if (!loan->fresh)
        KN_TRY(renew(loan, err));
    if (!has_keys(loan))
        return kn_err_set(err, KN_E_REFUSED, "%s: the catalog lends no keys for %s any more",
                          loan->what, loan->location);
    keys_of(loan, arena, ret);
    loan->fresh = false;
    return KN_OK;
}

static KnCode provide(void *arg, KnArena *arena, KnS3Keys *ret, KnErr *err)
{
    KnRemoteLoan *loan = arg;
    (void)pthread_mutex_lock(&loan->lock);
    KnCode rc = provide_locked(loan, arena, ret, err);
    (void)pthread_mutex_unlock(&loan->lock);
    return rc;
}

/* ---- the FileIO ---- */

static bool says_true(const char *text)
{
    return text && !strcasecmp(text, "true");
}

static const char *region_of(const KnRemoteLoan *loan)
{
    static const char *const keys[] = {"s3.region", "client.region", "region"};
    const char *region = NULL;
    for (size_t i = 0; !region && i < sizeof(keys) / sizeof(keys[0]); i++)
        region = setting(loan, keys[i]);
    return region;
}

/* With our own keys an endpoint that the operator chose, by flag or variable, stands. */
static KnS3Options s3_options(KnRemoteLoan *loan, bool lent)
{
    static const char *const chosen[] = {"KNUT_S3_ENDPOINT", "SKADE_S3_ENDPOINT",
                                         "AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", NULL};
    KnS3Options opts = *loan->rest->s3;
    const char *path_style = setting(loan, "s3.path-style-access");
    if (!opts.endpoint && (lent || !kn_s3_env_first(chosen)))
        opts.endpoint = setting(loan, "s3.endpoint");
    if (!opts.region)
        opts.region = region_of(loan);
    if (path_style && !opts.virtual_hosted) {
        opts.path_style = says_true(path_style);
        opts.virtual_hosted = !opts.path_style;
    }
    if (lent) {
        opts.provide = provide;
        opts.provide_arg = loan;
    }
    return opts;
}

static KnCode open_s3(KnRemoteLoan *loan, KnErr *err)
{
    bool lent = has_keys(loan);
    if (!lent && loan->rest->set.must_lend)
        return kn_err_set(err, KN_E_REFUSED,
                          "--rest-credentials vended: the catalog lends no keys for %s",
                          loan->location);
    KnS3Options opts = s3_options(loan, lent);
    return kn_io_open_with(kn_str(loan->location), &opts, &loan->io, err);
}

static KnRemoteLoan *loan_new(KnRemote *rest, const KnTableIdent *ident, const char *location)
{
    KnRemoteLoan *loan = calloc(1, sizeof(*loan));
    if (!loan)
        abort();
    loan->rest = rest;
    loan->arena = kn_arena_new(0);
    loan->location = kn_arena_strdup(loan->arena, location);
    loan->table_url = kn_remote_table_url(rest, loan->arena, ident);
    loan->what =
        kn_arena_printf(loan->arena, "get keys for %s", kn_table_ident_format(loan->arena, ident));
    (void)pthread_mutex_init(&loan->lock, NULL);
    return loan;
}

KnRemoteLoan *kn_remote_loan_free(KnRemoteLoan *loan)
{
    if (!loan)
        return NULL;
    kn_remote_loan_free(loan->older);
    kn_io_close(loan->io);
    kn_json_freep(&loan->config);
    kn_json_freep(&loan->credentials);
    (void)pthread_mutex_destroy(&loan->lock);
    kn_arena_free(loan->arena);
    free(loan);
    return NULL;
}

static KnCode lent_io(KnRemote *rest, const KnTableIdent *ident, KnRemoteSeen *seen, KnErr *err)
{
    KnRemoteLoan *loan = loan_new(rest, ident, seen->md->location);
    take_loan(loan, seen->config, seen->credentials);
    KnCode rc = open_s3(loan, err);
    if (rc != KN_OK) {
        kn_remote_loan_free(loan);
        return rc;
    }
    loan->older = seen->loan;
    seen->loan = loan;
    return KN_OK;
}

void kn_remote_loan_update(KnRemoteLoan *loan, const json_t *config, const json_t *credentials)
{
    if (!loan)
        return;
    (void)pthread_mutex_lock(&loan->lock);
    take_loan(loan, config, credentials);
    (void)pthread_mutex_unlock(&loan->lock);
}

KnCode kn_remote_io(KnRemote *rest, const KnTableIdent *ident, KnRemoteSeen *seen, KnFileIO **ret,
                    KnErr *err)
{
    if (kn_s3_is_location(kn_str(seen->md->location))) {
        if (!seen->loan || strcmp(seen->loan->location, seen->md->location) != 0)
            KN_TRY(lent_io(rest, ident, seen, err));
        *ret = seen->loan->io;
        return KN_OK;
    }
    if (!rest->io)
        KN_TRY(kn_io_open_for(kn_str(seen->md->location), &rest->io, err));
    *ret = rest->io;
    return KN_OK;
}
