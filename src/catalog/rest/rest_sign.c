/* SPDX-License-Identifier: Apache-2.0 */
/* rest_sign.c - what a request carries of us beside a token: Basic, SigV4, the program's name. */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "catalog/rest/rest_internal.h"
#include "net/digest.h"
#include "net/sigv4.h"

const char *kn_rest_user_agent(void)
{
    return "knut";
}

const char *kn_rest_basic(KnArena *arena, const char *id_and_secret)
{
    size_t len = strlen(id_and_secret);
    char *text = kn_arena_alloc(arena, 4 * ((len + 2) / 3) + 1);
    (void)kn_base64((const uint8_t *)id_and_secret, len, text);
    return kn_arena_printf(arena, "Basic %s", text);
}
