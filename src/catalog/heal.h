/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * heal.h - a table whose current metadata is damaged goes back to the newest that is intact.
 *
 * Intact: the document parses, is of the same table, and the snapshots that its refs name can be
 * read: their manifest lists, their manifests and, when asked, their files. Looked at, newest
 * first: the document that the pointer names, then those before it that lie beside it. What later
 * commits had done is lost to the table; their files stay (`knut table orphans` finds them). One
 * thread at a time.
 */
#include "catalog/core/core.h"
#include "iceberg/maintain/verify.h"

typedef enum KnHealState {
    KN_HEAL_INTACT, /* nothing to do */
    KN_HEAL_HEALED, /* the pointer was moved; with dry_run: it would be */
    KN_HEAL_LOST,   /* no intact document was found */
} KnHealState;

typedef struct KnHealOptions {
    bool files, dry_run;
    KnFindingFn fn; /* told of what was found in documents that were passed over */
    void *arg;
    bool (*cancelled)(void);
} KnHealOptions;

typedef struct KnHealed {
    KnHealState state;
    const char *from, *to; /* documents, in arena; to NULL = none */
    int64_t snapshot_id;   /* current in `to`; -1 = none */
    int64_t tried;         /* documents that were passed over */
} KnHealed;

KN_NODISCARD KnCode kn_table_heal(KnCatalogCore *core, const KnTableIdent *ident,
                                  const KnHealOptions *opts, KnArena *arena, KnHealed *ret,
                                  KnErr *err);
