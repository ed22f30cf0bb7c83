/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* unchanged.h - what must be as it was after an operation that rewrites without changing rows. */
#include "unit/iceberg/lake.h"

typedef struct UnchangedTable {
    KnMetadata *md;
    char **rows; /* of some snapshots, in v3 with their lineage; NULL = not looked at */
    char *now;
} UnchangedTable;

UnchangedTable unchanged_look(Lake *lake);
/** Rows of old snapshots and of the head, history, identity, references; whatever came since is a
 * `replace` without a change. Frees was. */
void unchanged_check(Lake *lake, UnchangedTable *was);
/** The changelog from one snapshot to another is empty. */
void unchanged_window(Lake *lake, int64_t from_id, const KnSnapshot *to);

/** A branch or tag at the head. */
void lake_make_ref(Lake *lake, const char *name, bool is_branch);
