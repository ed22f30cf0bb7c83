/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* place.h - where a database is, read from a text without secrets. */
#include "base/arena.h"
#include "base/err.h"
#include "postgres/encode.h"

/* In an arena. */
typedef struct KnPgPlace {
    const char *where;           /* "postgresql://host:port/db": identity and messages */
    const char *const *keywords; /* for PQconnectdbParams(), NULL at the end */
    const char *const *values;   /* beside them */
    KnPgNanos nanos;
} KnPgPlace;

/** "//HOST:PORT/DB?sslmode=...&nanoseconds=...": KN_E_INVAL when it holds a user or a password, an
 * option that is not one of those allowed, or names no database (PGDATABASE and a service count).
 * Messages repeat nothing that may be secret. */
KN_NODISCARD KnCode kn_pg_place_parse(KnArena *arena, const char *place, KnPgPlace *ret,
                                      KnErr *err);
