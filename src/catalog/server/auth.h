/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * auth.h - who a bearer token belongs to, and what its owner may do in which namespace.
 *
 * The token file has a line for each principal: NAME sha256:HEX GRANT...
 *
 *     etl      sha256:9f86d0…  write:sales  read:*
 *     finance  sha256:2c26b4…  admin:finance  read:"a.b".c
 *
 * The hash is SHA-256 of the token. A token is 32 random bytes (`knut catalog token` makes it), so
 * it cannot be guessed from its hash, and a slow hash would only slow the server. A grant holds for
 * the namespace and everything below it; `*` is the whole catalog. READ lists, loads and plans;
 * WRITE also commits, creates, renames and drops tables and views; ADMIN also makes, changes and
 * drops namespaces, registers, unregisters and purges. The file is read again when it changes.
 *
 * The OAuth2 token endpoint exchanges a principal's name and token, or a token, for a signed token
 * that expires. Its key is random unless KNUT_TOKEN_KEY is set (for several servers behind one
 * name). A principal that is no longer in the file has no valid tokens of either kind.
 *
 * All comparisons take a time that does not depend on where texts differ. Thread-safe.
 */
#include "base/option.h"
#include "catalog/core/core.h"

typedef struct KnAuth KnAuth;
/** Valid as long as its KnAuth. */
typedef struct KnPrincipal KnPrincipal;

typedef enum KnRight { KN_RIGHT_NONE, KN_RIGHT_READ, KN_RIGHT_WRITE, KN_RIGHT_ADMIN } KnRight;

typedef struct KnAuthOptions {
    const char *token_file; /* NULL: anybody may do anything */
    const char *key;        /* of signed tokens; NULL = random */
    int64_t lifetime_s;     /* of signed tokens; 0 = 3600 */
} KnAuthOptions;

KN_NODISCARD KnCode kn_auth_open(const KnAuthOptions *opts, KnAuth **ret, KnErr *err);
KnAuth *kn_auth_close(KnAuth *auth); /* accepts NULL, returns NULL */
/** False when anybody may do anything. */
bool kn_auth_is_on(const KnAuth *auth);

/** The owner of an `Authorization` header ("Bearer …"; NULL = none was sent). KN_E_REFUSED: no,
 * malformed, unknown or expired token; the message does not tell which token was wrong how. */
KN_NODISCARD KnCode kn_auth_check(KnAuth *auth, const char *authorization, const KnPrincipal **ret,
                                  KnErr *err);
/** The same for a bare token. */
KN_NODISCARD KnCode kn_auth_token(KnAuth *auth, KnStr token, const KnPrincipal **ret, KnErr *err);
/** A principal by name and token (client id and secret; the name may be empty). */
KN_NODISCARD KnCode kn_auth_secret(KnAuth *auth, KnStr name, KnStr secret, const KnPrincipal **ret,
                                   KnErr *err);
/** A signed token for the principal, in arena, and for how many seconds. */
const char *kn_auth_issue(KnAuth *auth, KnArena *arena, const KnPrincipal *who,
                          int64_t *ret_seconds);

const char *kn_principal_name(const KnPrincipal *who);
/** What it may do in the namespace; ns NULL or without levels: in the whole catalog. */
KnRight kn_principal_right(const KnPrincipal *who, const KnNamespace *ns);
/** True when it may read the namespace or something below it: it is shown in lists. */
bool kn_principal_sees(const KnPrincipal *who, const KnNamespace *ns);

typedef struct KnTokenLine {
    const char *token; /* for its owner */
    const char *line;  /* for the file; without the token */
} KnTokenLine;
/** A new token and its line, both in arena; grants are checked. */
KN_NODISCARD KnCode kn_auth_make_line(KnArena *arena, const char *name, const KnOptList *grants,
                                      KnTokenLine *ret, KnErr *err);
