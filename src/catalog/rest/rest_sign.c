/* SPDX-License-Identifier: Apache-2.0 */
/* rest_sign.c - what a request carries of us beside a token: Basic, SigV4. */
#include <string.h>

#include "base/clock.h"
#include "catalog/rest/rest_internal.h"
#include "net/digest.h"
#include "net/sigv4.h"

const char *kn_remote_basic(KnArena *arena, const char *id_and_secret)
{
    size_t len = strlen(id_and_secret);
    char *text = kn_arena_alloc(arena, 4 * ((len + 2) / 3) + 1);
    (void)kn_base64((const uint8_t *)id_and_secret, len, text);
    return kn_arena_printf(arena, "Basic %s", text);
}

/* The catalog's own region may differ from the store's. */
static const char *signing_region(const KnRemote *rest)
{
    static const char *const names[] = {"AWS_REGION", "AWS_DEFAULT_REGION", "KNUT_S3_REGION", NULL};
    const char *region = kn_remote_property(rest, "rest.signing-region");
    if (!region)
        region = rest->s3->region;
    if (!region)
        region = kn_s3_env_first(names);
    return region ? region : "us-east-1";
}

KnCode kn_remote_sign(KnRemote *rest, KnArena *arena, KnHttpRequest *req, KnErr *err)
{
    const char *region = signing_region(rest);
    if (!rest->aws)
        rest->aws = kn_s3_credentials_new(rest->s3, rest->http, region);
    KnS3Keys keys = {0};
    KnCode rc = kn_s3_credentials_get(rest->aws, arena, &keys, err);
    if (rc != KN_OK)
        return kn_err_wrap(err, rc, "--sigv4 %s", rest->set.sigv4);
    KnSigV4 sig = {.access_key_id = keys.access_key_id,
                   .secret_access_key = keys.secret_access_key,
                   .session_token = keys.session_token,
                   .region = region,
                   .service = rest->set.sigv4,
                   .now_ms = kn_clock_wall_ms() + rest->skew_ms};
    KnHttpHeader *headers = NULL;
    size_t n = 0;
    KN_TRY(kn_sigv4_sign(arena, &sig, req, &headers, &n, err));
    req->headers = headers;
    req->n_headers = n;
    return KN_OK;
}
