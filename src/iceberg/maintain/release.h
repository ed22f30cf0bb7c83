/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * release.h - what was staged in several tables becomes current in all of them at once.
 *
 * Staged means: a snapshot under a wap.id (written with --wap-id), or a branch. Readers of any two
 * of the tables see both before or both after. One commit of the catalog over all tables
 * (transaction.h); a lost race is decided anew on the newest metadata, as often as the first
 * table's commit.retry properties allow.
 */
#include "iceberg/maintain/refs.h"

typedef struct KnRelease {
    const KnTableIdent *tables; /* each once */
    size_t n_tables;
    const char *wap_id; /* the snapshots staged under this id are published (kn_table_publish) */
    const char *branch; /* or main goes forward to this branch (kn_table_fast_forward) */
    const char *tag;    /* and what is current then gets this tag, moved where it exists; or NULL */
    bool skip_missing;  /* a table without that staged snapshot or branch is left as it is */
    bool dry_run;       /* decide, and change nothing */
} KnRelease;

/** moves: n_tables, main of each. KN_E_INVAL: neither or both of wap_id and branch; nothing in any
 * table to release. KN_E_NOTFOUND: a table has nothing staged there. */
KN_NODISCARD KnCode kn_release(KnCatalog *cat, const KnRelease *release, KnRefMove *moves,
                               KnErr *err);
