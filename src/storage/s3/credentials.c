/* SPDX-License-Identifier: Apache-2.0 */
/*
 * credentials.c - the chain, and keeping its keys fresh.
 *
 * One mutex is held while keys are fetched, so that many threads make one refresh. The keys at hand
 * live in an arena of their own, which is replaced with them; its secrets are overwritten first.
 */
#include "storage/s3/credentials.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

enum { EARLY_MS = 5 * 60 * 1000 };

typedef KnCode (*SourceFn)(const KnS3Remote *remote, KnArena *arena, KnS3Keys *ret,
                           KnS3Found *ret_found, KnErr *err);

struct KnS3Credentials {
    pthread_mutex_t mutex;
    KnS3Remote remote;
    char *region;
    KnS3KeysFn provide;
    void *provide_arg;
    bool fixed;     /* keys were given; no chain */
    KnArena *arena; /* of keys; NULL = none yet */
    KnS3Keys keys;
    int64_t got_ms;  /* when they came */
    SourceFn source; /* that had keys, asked again when they expire */
};

static KnCode from_environment(const KnS3Remote *remote, KnArena *arena, KnS3Keys *ret,
                               KnS3Found *ret_found, KnErr *err)
{
    (void)remote;
    return kn_s3_keys_environment(arena, ret, ret_found, err);
}

static KnCode from_profile(const KnS3Remote *remote, KnArena *arena, KnS3Keys *ret,
                           KnS3Found *ret_found, KnErr *err)
{
    (void)remote;
    return kn_s3_keys_profile(arena, ret, ret_found, err);
}

static const SourceFn chain[] = {from_environment, from_profile, kn_s3_keys_web_identity,
                                 kn_s3_keys_container, kn_s3_keys_instance};

static KnCode nothing_found(KnErr *err)
{
    return kn_err_set(err, KN_E_INVAL,
                      "no S3 credentials: set KNUT_S3_ACCESS_KEY_ID and KNUT_S3_SECRET_ACCESS_KEY "
                      "(or AWS_...), or a profile (AWS_PROFILE); nothing was found there, nor by "
                      "web identity, a container's endpoint or instance metadata");
}

static KnCode ask_chain(KnS3Credentials *creds, KnArena *arena, KnS3Keys *ret, KnErr *err)
{
    for (size_t i = 0; i < sizeof(chain) / sizeof(chain[0]); ++i) {
        KnS3Found found = KN_S3_NO_KEYS;
        SourceFn source = creds->source ? creds->source : chain[i];
        KN_TRY(source(&creds->remote, arena, ret, &found, err));
        if (found == KN_S3_KEYS) {
            creds->source = source;
            return KN_OK;
        }
        if (creds->source)
            break;
    }
    return nothing_found(err);
}

static KnCode fetch(KnS3Credentials *creds, KnArena *arena, KnS3Keys *ret, KnErr *err)
{
    if (creds->provide)
        return kn_err_wrap(err, creds->provide(creds->provide_arg, arena, ret, err),
                           "new S3 credentials from the catalog");
    if (creds->fixed)
        return kn_err_set(err, KN_E_INVAL, "the S3 credentials that were given have expired");
    return ask_chain(creds, arena, ret, err);
}

static void wipe(const char *text)
{
    if (text)
        explicit_bzero((char *)(uintptr_t)text, strlen(text));
}

void kn_s3_keys_wipe(KnS3Keys *keys)
{
    wipe(keys->secret_access_key);
    wipe(keys->session_token);
    *keys = (KnS3Keys){0};
}

static void forget(KnS3Credentials *creds)
{
    if (!creds->arena)
        return;
    kn_s3_keys_wipe(&creds->keys);
    creds->arena = kn_arena_free(creds->arena);
}

static const char *copy(KnArena *arena, const char *text)
{
    return text && *text ? kn_arena_strdup(arena, text) : NULL;
}

void kn_s3_keys_copy(KnArena *arena, const KnS3Keys *from, KnS3Keys *ret)
{
    *ret = (KnS3Keys){copy(arena, from->access_key_id), copy(arena, from->secret_access_key),
                      copy(arena, from->session_token), from->expires_ms};
}

static void keep(KnS3Credentials *creds, const KnS3Keys *keys)
{
    KnArena *arena = kn_arena_new(0);
    KnS3Keys mine;
    kn_s3_keys_copy(arena, keys, &mine);
    forget(creds);
    creds->arena = arena;
    creds->keys = mine;
    creds->got_ms = kn_clock_wall_ms();
}

static KnCode check_keys(const KnS3Keys *keys, KnErr *err)
{
    if (keys->access_key_id && *keys->access_key_id && keys->secret_access_key &&
        *keys->secret_access_key)
        return KN_OK;
    return kn_err_set(err, KN_E_INVAL, "S3 credentials without access key or secret key");
}

/* How long before the end new keys are wanted. */
static int64_t early_ms(const KnS3Credentials *creds)
{
    int64_t half = (creds->keys.expires_ms - creds->got_ms) / 2;
    return half < EARLY_MS ? half : EARLY_MS;
}

static KnCode freshen(KnS3Credentials *creds, KnErr *err)
{
    int64_t now = kn_clock_wall_ms();
    int64_t expires = creds->keys.expires_ms;
    if (creds->arena && (!expires || now < expires - early_ms(creds)))
        return KN_OK;
    KN_ARENA_AUTO arena = kn_arena_new(0);
    KnS3Keys keys = {0};
    KnErr why = {0};
    KnCode rc = fetch(creds, arena, &keys, &why);
    if (rc == KN_OK)
        rc = check_keys(&keys, &why);
    if (rc == KN_OK) {
        keep(creds, &keys);
        return KN_OK;
    }
    if (creds->arena && now < expires)
        return KN_OK; /* they still hold: the next call tries again */
    if (err)
        *err = why;
    return rc;
}

KnCode kn_s3_credentials_get(KnS3Credentials *creds, KnArena *arena, KnS3Keys *ret, KnErr *err)
{
    (void)pthread_mutex_lock(&creds->mutex);
    KnCode rc = freshen(creds, err);
    if (rc == KN_OK)
        kn_s3_keys_copy(arena, &creds->keys, ret);
    (void)pthread_mutex_unlock(&creds->mutex);
    return rc;
}

bool kn_s3_credentials_refused(KnS3Credentials *creds, const char *access_key_id)
{
    (void)pthread_mutex_lock(&creds->mutex);
    bool renewable = creds->provide || (!creds->fixed && creds->source != from_environment);
    if (renewable && creds->arena && strcmp(creds->keys.access_key_id, access_key_id) == 0)
        forget(creds); /* unless another thread has new ones already */
    (void)pthread_mutex_unlock(&creds->mutex);
    return renewable;
}

KnS3Credentials *kn_s3_credentials_new(const KnS3Options *options, KnHttpClient *http,
                                       const char *region)
{
    KnS3Credentials *creds = calloc(1, sizeof(*creds));
    if (!creds || pthread_mutex_init(&creds->mutex, NULL) != 0 || !(creds->region = strdup(region)))
        abort();
    creds->remote = (KnS3Remote){.http = http, .region = creds->region};
    creds->provide = options->provide;
    creds->provide_arg = options->provide_arg;
    creds->fixed = options->keys || options->provide;
    if (options->keys)
        keep(creds, options->keys);
    return creds;
}

KnS3Credentials *kn_s3_credentials_free(KnS3Credentials *creds)
{
    if (!creds)
        return NULL;
    forget(creds);
    free(creds->region);
    (void)pthread_mutex_destroy(&creds->mutex);
    free(creds);
    return NULL;
}
