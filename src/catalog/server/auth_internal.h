/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* auth_internal.h - principals as they come from the token file (auth_file.c reads it). */
#include "catalog/server/auth.h"
#include "net/digest.h"

typedef struct KnGrant {
    KnRight right;
    KnNamespace ns; /* without levels: the whole catalog */
} KnGrant;

struct KnPrincipal {
    const char *name;
    uint8_t hash[KN_SHA256_LEN];
    size_t n_grants;
    const KnGrant *grants;
};

typedef struct KnAuthSet {
    KnArena *arena; /* owns all of it */
    size_t n;
    KnPrincipal *items;
    struct KnAuthSet *older;
} KnAuthSet;

/* KN_E_INVAL names file and line. */
KN_NODISCARD KnCode kn_auth_set_read(const char *file, KnAuthSet **ret, KnErr *err);
/* The text of a token file; source is for messages. (Fuzzed.) */
KN_NODISCARD KnCode kn_auth_set_parse(KnStr text, const char *source, KnAuthSet **ret, KnErr *err);
