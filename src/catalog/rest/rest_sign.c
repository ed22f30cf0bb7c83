/* SPDX-License-Identifier: Apache-2.0 */
/* rest_sign.c - what a request carries of us beside a token: Basic, SigV4. */
#include <stdlib.h>
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

KnCode kn_remote_sign(KnRemote *rest, KnArena *arena, KnHttpRequest *req, KnErr *err)
{
    const char *region = kn_remote_property(rest, "rest.signing-region");
    KnSigV4 sig = {.access_key_id = getenv("AWS_ACCESS_KEY_ID"),
                   .secret_access_key = getenv("AWS_SECRET_ACCESS_KEY"),
                   .session_token = getenv("AWS_SESSION_TOKEN"),
                   .region = region ? region : "us-east-1",
                   .service = rest->set.sigv4,
                   .now_ms = kn_clock_wall_ms() + rest->skew_ms};
    if (!sig.access_key_id || !sig.secret_access_key)
        return kn_err_set(err, KN_E_INVAL,
                          "--sigv4 needs AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY in the "
                          "environment");
    KnHttpHeader *headers = NULL;
    size_t n = 0;
    KN_TRY(kn_sigv4_sign(arena, &sig, req, &headers, &n, err));
    req->headers = headers;
    req->n_headers = n;
    return KN_OK;
}
