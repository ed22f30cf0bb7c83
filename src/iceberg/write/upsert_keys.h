/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* upsert_keys.h - the key columns of an upsert, and what its rows' keys say (write_upsert.c's own).
 */
#include "iceberg/write/write_internal.h"

typedef struct KnUpsertKeys {
    const KnSchema *schema;
    size_t n;
    const size_t *columns; /* indexes of top-level columns */
} KnUpsertKeys;

/** The columns named, or the table's identifier fields. Each must be a column of a primitive type
 * that the rows have. */
KN_NODISCARD KnCode kn_upsert_keys_choose(KnWriter *w, const KnUpsert *upsert, const bool *given,
                                          KnUpsertKeys *ret, KnErr *err);
/** KN_E_INVAL, naming one, when a key in the table of rows (columns c0, ...) has a NULL or comes
 * twice. */
KN_NODISCARD KnCode kn_upsert_keys_check(KnWriter *w, const KnUpsertKeys *keys, const char *table,
                                         KnErr *err);
/** A filter on the schema that every row with a key of the table of rows passes: the keys
 * themselves where they are few, else their least and greatest. */
KN_NODISCARD KnCode kn_upsert_keys_filter(KnWriter *w, const KnUpsertKeys *keys, const char *table,
                                          const KnExpr **ret, KnErr *err);
/** `a.c0 = b.c0 AND ...` */
void kn_upsert_keys_put_match(KnBuf *buf, const KnUpsertKeys *keys, const char *a, const char *b);
bool kn_upsert_keys_has(const KnUpsertKeys *keys, size_t column);
