/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rest_auth.c - OAuth2: the bearer token, where it comes from and when it is renewed (RFC 6749
 * client credentials, RFC 8693 token exchange; the specification's /v1/oauth/tokens).
 *
 * A token is renewed five minutes before it ends, or at half of its life when that is shorter, and
 * once when the server refuses it. One renewal serves all threads: the lock is held while it is
 * under way, and whoever was refused with a token that is not the current one any more takes the
 * current one.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "catalog/rest/rest_internal.h"
#include "net/url.h"

enum { EARLY_S = 300, FORM_MAX = 1 << 20 };
static const double LIFE_MAX_S = 10.0 * 365 * 86400;

void kn_remote_auth_init(KnRemoteAuth *auth)
{
    (void)pthread_mutex_init(&auth->lock, NULL);
}

static void wipe(char *secret)
{
    if (secret)
        explicit_bzero(secret, strlen(secret));
    free(secret);
}

void kn_remote_auth_done(KnRemoteAuth *auth)
{
    wipe(auth->token);
    auth->token = NULL;
    (void)pthread_mutex_destroy(&auth->lock);
}

static void put_field(KnBuf *form, const char *name, const char *value)
{
    if (!value)
        return;
    if (form->len)
        kn_buf_char(form, '&');
    kn_buf_text(form, name);
    kn_buf_char(form, '=');
    kn_url_encode(form, kn_str(value), false);
}

static const char *scope_of(const KnRemote *rest)
{
    const char *scope = kn_remote_property(rest, "scope");
    if (rest->set.scope)
        return rest->set.scope;
    return scope ? scope : "catalog";
}

static void put_client_credentials(const KnRemote *rest, KnBuf *form)
{
    put_field(form, "grant_type", "client_credentials");
    if (*rest->set.client_id)
        put_field(form, "client_id", rest->set.client_id);
    put_field(form, "client_secret", rest->set.client_secret);
}

static void put_exchange(const KnRemote *rest, KnBuf *form)
{
    static const char access_token[] = "urn:ietf:params:oauth:token-type:access_token";
    put_field(form, "grant_type", "urn:ietf:params:oauth:grant-type:token-exchange");
    put_field(form, "subject_token", rest->auth.token);
    put_field(form, "subject_token_type", access_token);
}

/* expires_in may be a number or, from some servers, a text of one. */
static double life_of(const json_t *doc)
{
    const json_t *value = json_object_get(doc, "expires_in");
    double seconds = json_number_value(value);
    if (json_is_string(value) && !kn_str_to_double(kn_str(json_string_value(value)), &seconds))
        return 0;
    return seconds > 0 && seconds < LIFE_MAX_S ? seconds : 0;
}

static void take_token(KnRemoteAuth *auth, const char *token, double life_s)
{
    int64_t now = kn_clock_mono_us();
    wipe(auth->token);
    auth->token = strdup(token);
    if (!auth->token)
        abort();
    auth->expires_us = auth->renew_us = 0;
    if (life_s <= 0)
        return;
    double early = fmin(EARLY_S, life_s / 2);
    auth->expires_us = now + (int64_t)(life_s * 1e6);
    auth->renew_us = now + (int64_t)((life_s - early) * 1e6);
}

static KnCode read_token(KnRemoteAuth *auth, const json_t *doc, KnErr *err)
{
    const char *token = NULL;
    if (!json_is_object(doc))
        return kn_err_set(err, KN_E_CORRUPT, "the answer is not a JSON object");
    KN_TRY(kn_json_get_str(doc, "access_token", &token, err));
    if (!*token || strpbrk(token, "\r\n"))
        return kn_err_set(err, KN_E_CORRUPT, "field 'access_token' is no token");
    take_token(auth, token, life_of(doc));
    return KN_OK;
}

/* With the lock held. */
static KnCode ask_for_token(KnRemote *rest, bool exchange, KnErr *err)
{
    KN_ARENA_AUTO arena = kn_arena_new(0);
    KN_BUF_AUTO form = {0};
    kn_buf_init(&form, FORM_MAX);
    if (exchange)
        put_exchange(rest, &form);
    else
        put_client_credentials(rest, &form);
    put_field(&form, "scope", scope_of(rest));
    put_field(&form, "audience", kn_remote_property(rest, "audience"));
    put_field(&form, "resource", kn_remote_property(rest, "resource"));
    KN_TRY(kn_buf_check(&form, err));
    KnRemoteCall call = {
        .method = "POST",
        .url = rest->set.oauth2_uri ? rest->set.oauth2_uri
                                    : kn_arena_printf(arena, "%s/v1/oauth/tokens", rest->set.uri),
        .what = exchange ? "exchange the token" : "get a token",
        .safety = KN_REMOTE_READS, /* two tokens do no harm */
        .form = {form.data, form.len},
        .no_auth = true,
        .max = KN_REMOTE_SMALL_MAX,
    };
    if (exchange && rest->set.client_secret)
        call.basic = kn_arena_printf(arena, "%s:%s", rest->set.client_id, rest->set.client_secret);
    KN_REMOTE_ANSWER_AUTO answer = {0};
    KnCode rc = kn_remote_send(rest, &call, &answer, err);
    explicit_bzero(form.data, form.len);
    KN_TRY(rc);
    return kn_err_wrap(err, read_token(&rest->auth, answer.doc, err), "get a token from %s",
                       call.url);
}

static bool may_exchange(const KnRemote *rest)
{
    const char *on = kn_remote_property(rest, "token-exchange-enabled");
    return rest->auth.token && on && !strcmp(on, "true");
}

/* With the lock held: another token, by exchange where that is asked for and works. */
static KnCode renew(KnRemote *rest, KnErr *err)
{
    if (may_exchange(rest)) {
        KnCode rc = ask_for_token(rest, true, err);
        if (rc == KN_OK || !rest->set.client_secret)
            return rc;
    }
    return ask_for_token(rest, false, err);
}

static bool can_renew(const KnRemote *rest)
{
    return rest->set.client_secret || (rest->set.token && may_exchange(rest));
}

static KnCode token_locked(KnRemote *rest, KnErr *err)
{
    KnRemoteAuth *auth = &rest->auth;
    if (!auth->token && rest->set.token)
        take_token(auth, rest->set.token, 0);
    if (!can_renew(rest))
        return KN_OK;
    int64_t now = kn_clock_mono_us();
    if (auth->token && (!auth->renew_us || now < auth->renew_us))
        return KN_OK;
    KnCode rc = renew(rest, err);
    /* Renewed early: while the old one is good, a token server that is away does no harm. */
    return rc != KN_OK && auth->token && now < auth->expires_us ? KN_OK : rc;
}

KnCode kn_remote_auth_token(KnRemote *rest, KnArena *arena, const char **ret, KnErr *err)
{
    (void)pthread_mutex_lock(&rest->auth.lock);
    KnCode rc = token_locked(rest, err);
    if (rc == KN_OK)
        *ret = rest->auth.token ? kn_arena_strdup(arena, rest->auth.token) : NULL;
    (void)pthread_mutex_unlock(&rest->auth.lock);
    return rc;
}

KnCode kn_remote_auth_renew(KnRemote *rest, const char *refused, KnErr *err)
{
    (void)pthread_mutex_lock(&rest->auth.lock);
    bool renewed_since = rest->auth.token && refused && strcmp(rest->auth.token, refused) != 0;
    KnCode rc = KN_OK;
    if (!renewed_since)
        rc = can_renew(rest) ? renew(rest, err)
                             : kn_err_set(err, KN_E_REFUSED, "there is no other token to try");
    (void)pthread_mutex_unlock(&rest->auth.lock);
    return rc;
}
