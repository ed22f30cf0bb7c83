/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* alter_support.h - changes in words against a table's metadata, and what came out as text. */
#include "iceberg/alter/alter_internal.h"
#include "unit/iceberg/meta_support.h"

/** A table without snapshots. The caller drops it. */
KnMetadata *alter_table(Meta *m, int32_t version, const char *schema, const char *spec);
/** base with the changes; takes over base. */
KnMetadata *alter(Meta *m, KnMetadata *base, const char *changes);
KnMetadata *alter_anyhow(Meta *m, KnMetadata *base, const char *changes); /* --allow-incompatible */
/** The changes are KN_E_INVAL, and the message begins so. */
void alter_refused(Meta *m, const KnMetadata *base, const char *changes, const char *message);

/** "1 id long required", with default and doc in braces; "none" where there is no such column. */
const char *alter_column(Meta *m, const KnMetadata *md, const char *path);
/** Names of a struct's fields; NULL = the top level. */
const char *alter_names(Meta *m, const KnMetadata *md, const char *path);
/** "1000 ts_day=day(2), ..." */
const char *alter_spec(Meta *m, const KnMetadata *md);
