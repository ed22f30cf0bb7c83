/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* database.h - tables of PostgreSQL as inputs and targets of the native backend. */
#include "pipeline/native/native.h"
#include "postgres/link.h"

/* "postgresql://HOST:PORT/DATABASE?table=SCHEMA.TABLE&...": a place, and a table there. In an
 * arena. */
typedef struct KnDatabasePlace {
    KnPgPlace place;
    const char *schema; /* quoted, with a dot behind; "" = as the server's search path says */
    const char *table;  /* quoted; NULL = none is named */
} KnDatabasePlace;
/** table: from elsewhere (an option), instead of the one in uri; NULL = none. */
KN_NODISCARD KnCode kn_database_place_parse(KnArena *arena, const char *uri, const char *table,
                                            KnDatabasePlace *ret, KnErr *err);
/** The value of a key among an input's options or a dataset's properties; NULL = none. */
const char *kn_database_setting(const KnutPairs *pairs, const char *key);
