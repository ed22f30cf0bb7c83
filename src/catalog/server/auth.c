/* SPDX-License-Identifier: Apache-2.0 */
/*
 * auth.c - see auth.h.
 *
 * Principals live in sets; a changed file makes a new set. Old sets are kept until the end, as
 * requests in flight point into them; a file changes seldom and a set is small.
 */
#include "catalog/server/auth.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>
#include <sys/random.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/log.h"
#include "catalog/server/auth_internal.h"
#include "net/digest.h"

enum { KEY_LEN = 32, LOOK_EVERY_US = 1000000, SIGNED_MAX = 1024 };

static const char signed_prefix[] = "knuts_";

struct KnAuth {
    const char *file;
    uint8_t key[KEY_LEN];
    int64_t lifetime_s;
    pthread_mutex_t lock;    /* around reading the file anew */
    _Atomic int64_t look_us; /* when to look at the file again */
    struct timespec mtime;
    off_t size;
    _Atomic(KnAuthSet *) set;
};

static const KnPrincipal everybody = {
    .name = "anonymous",
    .n_grants = 1,
    .grants = &(const KnGrant){.right = KN_RIGHT_ADMIN},
};

/* ---- the file ---------------------------------------------------------------------------------
 */

static KnCode read_file(KnAuth *auth, KnErr *err)
{
    struct stat st;
    KnAuthSet *set = NULL;
    if (stat(auth->file, &st) != 0)
        return kn_err_set(err, KN_E_INVAL, "token file %s: it is not there", auth->file);
    if (st.st_mode & (S_IWOTH | S_IWGRP))
        return kn_err_set(err, KN_E_REFUSED,
                          "token file %s: others than its owner may write it; chmod go-w it",
                          auth->file);
    KN_TRY(kn_auth_set_read(auth->file, &set, err));
    set->older = atomic_load(&auth->set);
    auth->mtime = st.st_mtim;
    auth->size = st.st_size;
    atomic_store(&auth->set, set);
    return KN_OK;
}

static bool file_changed(const KnAuth *auth)
{
    struct stat st;
    return stat(auth->file, &st) == 0 &&
           (st.st_mtim.tv_sec != auth->mtime.tv_sec || st.st_mtim.tv_nsec != auth->mtime.tv_nsec ||
            st.st_size != auth->size);
}

/* The newest set. A file that became unreadable or wrong leaves the one before in force. */
static const KnAuthSet *current_set(KnAuth *auth)
{
    int64_t now = kn_clock_mono_us();
    int64_t due = atomic_load_explicit(&auth->look_us, memory_order_relaxed);
    if (now >= due && atomic_compare_exchange_strong(&auth->look_us, &due, now + LOOK_EVERY_US)) {
        KnErr err = {0};
        (void)pthread_mutex_lock(&auth->lock);
        if (file_changed(auth) && read_file(auth, &err) != KN_OK)
            kn_log(KN_LOG_ERROR, "catalog", "token-file", KN_F("message", err.msg));
        (void)pthread_mutex_unlock(&auth->lock);
    }
    return atomic_load_explicit(&auth->set, memory_order_acquire);
}

KnCode kn_auth_open(const KnAuthOptions *opts, KnAuth **ret, KnErr *err)
{
    KnAuth *auth = calloc(1, sizeof(*auth));
    if (!auth)
        abort();
    (void)pthread_mutex_init(&auth->lock, NULL);
    auth->file = opts->token_file;
    auth->lifetime_s = opts->lifetime_s ? opts->lifetime_s : 3600;
    auth->look_us = kn_clock_mono_us() + LOOK_EVERY_US;
    if (opts->key)
        kn_sha256(kn_str(opts->key), auth->key);
    else if (getrandom(auth->key, KEY_LEN, 0) != KEY_LEN)
        abort();
    KnCode rc = auth->file ? read_file(auth, err) : KN_OK;
    if (rc != KN_OK) {
        (void)kn_auth_close(auth);
        return rc;
    }
    *ret = auth;
    return KN_OK;
}

KnAuth *kn_auth_close(KnAuth *auth)
{
    if (!auth)
        return NULL;
    for (KnAuthSet *set = atomic_load(&auth->set), *older; set; set = older) {
        older = set->older;
        (void)kn_arena_free(set->arena);
    }
    (void)pthread_mutex_destroy(&auth->lock);
    free(auth);
    return NULL;
}

bool kn_auth_is_on(const KnAuth *auth)
{
    return auth->file != NULL;
}

/* ---- tokens -----------------------------------------------------------------------------------
 */

static KnCode refuse(KnErr *err)
{
    return kn_err_set(err, KN_E_REFUSED, "the token is missing, unknown or expired");
}

/* Every principal is looked at, found or not. */
static const KnPrincipal *by_hash(const KnAuthSet *set, KnStr token)
{
    uint8_t hash[KN_SHA256_LEN];
    const KnPrincipal *found = NULL;
    kn_sha256(token, hash);
    for (size_t i = 0; i < set->n; i++) {
        if (kn_equal_secret((KnStr){(const char *)hash, sizeof(hash)},
                            (KnStr){(const char *)set->items[i].hash, sizeof(hash)}))
            found = &set->items[i];
    }
    return found;
}

static const KnPrincipal *by_name(const KnAuthSet *set, KnStr name)
{
    for (size_t i = 0; i < set->n; i++) {
        if (kn_str_eq(kn_str(set->items[i].name), name))
            return &set->items[i];
    }
    return NULL;
}

static void sign(const KnAuth *auth, KnStr text, char out[2 * KN_SHA256_LEN + 1])
{
    uint8_t mac[KN_SHA256_LEN];
    kn_hmac_sha256((KnStr){(const char *)auth->key, KEY_LEN}, text, mac);
    (void)kn_hex(mac, sizeof(mac), out);
}

/* knuts_NAME:EXPIRY:NONCE:MAC, where expiry is in seconds and the rest is covered by the mac. */
static const KnPrincipal *by_signature(const KnAuth *auth, const KnAuthSet *set, KnStr token)
{
    char mac[2 * KN_SHA256_LEN + 1];
    size_t tail = sizeof(mac); /* ':' and the hex digits */
    if (token.len > SIGNED_MAX || token.len < sizeof(signed_prefix) + tail)
        return NULL;
    KnStr text = {token.ptr, token.len - tail};
    sign(auth, text, mac);
    if (token.ptr[text.len] != ':' ||
        !kn_equal_secret((KnStr){token.ptr + text.len + 1, tail - 1}, (KnStr){mac, tail - 1}))
        return NULL;
    KnStr rest = {text.ptr + sizeof(signed_prefix) - 1, text.len - (sizeof(signed_prefix) - 1)};
    const char *nonce = memrchr(rest.ptr, ':', rest.len);
    const char *expiry = nonce ? memrchr(rest.ptr, ':', (size_t)(nonce - rest.ptr)) : NULL;
    int64_t until = 0;
    if (!expiry || !kn_str_to_i64((KnStr){expiry + 1, (size_t)(nonce - expiry - 1)}, &until) ||
        until <= kn_clock_wall_ms() / 1000)
        return NULL;
    return by_name(set, (KnStr){rest.ptr, (size_t)(expiry - rest.ptr)});
}

const char *kn_auth_issue(KnAuth *auth, KnArena *arena, const KnPrincipal *who,
                          int64_t *ret_seconds)
{
    uint64_t nonce = 0;
    char mac[2 * KN_SHA256_LEN + 1];
    if (getrandom(&nonce, sizeof(nonce), 0) != (ssize_t)sizeof(nonce))
        abort();
    const char *text =
        kn_arena_printf(arena, "%s%s:%lld:%016llx", signed_prefix, who->name,
                        (long long)kn_clock_wall_ms() / 1000 + (long long)auth->lifetime_s,
                        (unsigned long long)nonce);
    sign(auth, kn_str(text), mac);
    *ret_seconds = auth->lifetime_s;
    return kn_arena_printf(arena, "%s:%s", text, mac);
}

KnCode kn_auth_token(KnAuth *auth, KnStr token, const KnPrincipal **ret, KnErr *err)
{
    if (!kn_auth_is_on(auth)) {
        *ret = &everybody;
        return KN_OK;
    }
    const KnAuthSet *set = current_set(auth);
    const KnPrincipal *who = kn_str_starts_with(token, kn_str(signed_prefix))
                                 ? by_signature(auth, set, token)
                                 : by_hash(set, token);
    if (!who)
        return refuse(err);
    *ret = who;
    return KN_OK;
}

KnCode kn_auth_check(KnAuth *auth, const char *authorization, const KnPrincipal **ret, KnErr *err)
{
    if (!kn_auth_is_on(auth)) {
        *ret = &everybody;
        return KN_OK;
    }
    if (!authorization || strncasecmp(authorization, "Bearer ", 7) != 0)
        return refuse(err);
    const char *token = authorization + 7 + strspn(authorization + 7, " ");
    return kn_auth_token(auth, kn_str(token), ret, err);
}

KnCode kn_auth_secret(KnAuth *auth, KnStr name, KnStr secret, const KnPrincipal **ret, KnErr *err)
{
    if (!kn_auth_is_on(auth)) {
        *ret = &everybody;
        return KN_OK;
    }
    const KnPrincipal *who = by_hash(current_set(auth), secret);
    if (!who || (name.len && !kn_equal_secret(kn_str(who->name), name)))
        return refuse(err);
    *ret = who;
    return KN_OK;
}

/* ---- rights -----------------------------------------------------------------------------------
 */

const char *kn_principal_name(const KnPrincipal *who)
{
    return who->name;
}

/* True when the first n levels of both are the same. */
static bool same_levels(const KnNamespace *a, const KnNamespace *b, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (strcmp(a->levels[i], b->levels[i]) != 0)
            return false;
    }
    return true;
}

KnRight kn_principal_right(const KnPrincipal *who, const KnNamespace *ns)
{
    static const KnNamespace root = {0};
    KnRight right = KN_RIGHT_NONE;
    if (!ns)
        ns = &root;
    for (size_t i = 0; i < who->n_grants; i++) {
        const KnGrant *grant = &who->grants[i];
        if (grant->right > right && grant->ns.n_levels <= ns->n_levels &&
            same_levels(&grant->ns, ns, grant->ns.n_levels))
            right = grant->right;
    }
    return right;
}

bool kn_principal_sees(const KnPrincipal *who, const KnNamespace *ns)
{
    for (size_t i = 0; i < who->n_grants; i++) {
        const KnNamespace *granted = &who->grants[i].ns;
        size_t n = granted->n_levels < ns->n_levels ? granted->n_levels : ns->n_levels;
        if (same_levels(granted, ns, n))
            return true;
    }
    return false;
}
