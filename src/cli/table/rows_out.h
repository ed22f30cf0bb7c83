/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* rows_out.h - batches of table rows on stdout, as an aligned table or JSON lines. */
#include "cli/command.h"
#include "iceberg/schema/type.h"

typedef struct KnRowsOut {
    KnOutputFormat format;
    const KnSchema *schema;                               /* of the batches' first columns */
    int64_t limit;                                        /* -1 = all */
    KnCode (*next)(void *arg, KnBatch **ret, KnErr *err); /* NULL = there are none */
    /* The types of the batch that next() gave last, where they may differ from schema (names are
     * the same); NULL = they never do. */
    const KnSchema *(*batch_schema)(void *arg);
    void *arg;
} KnRowsOut;

KN_NODISCARD KnCode kn_rows_out(const KnRowsOut *print, KnErr *err);
/** schema, with v3's lineage columns behind it when asked. */
const KnSchema *kn_rows_out_schema(KnArena *arena, const KnSchema *schema, bool lineage);
