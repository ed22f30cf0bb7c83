/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* lib_internal.h - what the files of the public library share. */
#include "knut/delivery.h"
#include "knut/table.h"
#include "knut/version.h"

#include "catalog/catalog.h"
#include "engine/arrow.h"
#include "iceberg/changes/changelog.h"
#include "iceberg/scan/read.h"

struct KnutTable {
    KnArena *arena;
    KnCatalog *catalog;
    KnTable *tbl;
    KnEngineOptions engine_opts;
    KnEngine *engine; /* opened when first needed */
};

/** Texts are copied into arena. */
KnLocator knut_locator(KnArena *arena, const KnutOpen *open);
KN_NODISCARD KnCode knut_table_engine(KnutTable *table, KnEngine **ret, KnErr *err);

/* What an exported stream reads from. Members are filled by whoever opens it, and closed together.
 */
typedef struct KnutRows {
    KnArena *arena;
    KnTable *tbl; /* a handle of its own on the metadata of the moment */
    KnSession *session;
    KnPlan *plan;
    KnRead *read;
    KnWindow *window;
    KnChangeRows *changes;
    KnStream *stream;
    KnErr err; /* of the last call, for get_last_error */
} KnutRows;

KN_NODISCARD KnCode knut_rows_new(KnutTable *table, KnutRows **ret, KnErr *err);
void knut_rows_free(KnutRows *rows);
/** Hands rows (with its open stream) over to ret. */
void knut_rows_export(KnutRows *rows, struct ArrowArrayStream *ret);
