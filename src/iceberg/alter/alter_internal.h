/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* alter_internal.h - what the files of ALTER share: the schema and the spec under change. */
#include "iceberg/alter/alter.h"
#include "iceberg/metadata/metadata.h"

/* ---- alter_schema.c: columns ---- */

/* Where the columns begin, and what new ones may be. */
typedef struct KnSchemaBase {
    const KnSchema *schema;
    int32_t last_column_id;
    int32_t format_version; /* after the changes */
    bool allow_incompatible;
    size_t n_specs; /* whose transforms a promotion must not disturb */
    KnPartitionSpec *const *specs;
} KnSchemaBase;

typedef struct KnSchemaEdit KnSchemaEdit;
KnSchemaEdit *kn_schema_edit_new(KnArena *arena, const KnSchemaBase *base);
/** A change of a column or of identifier fields. *ret_id: the existing column that it names, -1 =
 * none (or several). */
KN_NODISCARD KnCode kn_schema_edit_apply(KnSchemaEdit *edit, const KnChange *change,
                                         int32_t *ret_id, KnErr *err);
/** The columns as they are now, not checked. */
const KnSchema *kn_schema_edit_now(const KnSchemaEdit *edit);
/** The schema that comes out, checked as a whole; the base's own when nothing was changed. */
KN_NODISCARD KnCode kn_schema_edit_finish(const KnSchemaEdit *edit, const KnSchema **ret,
                                          KnErr *err);

/* ---- alter_spec.c: partition fields ---- */

typedef struct KnSpecEdit KnSpecEdit;
KN_NODISCARD KnCode kn_spec_edit_new(KnArena *arena, const KnMetadata *md, int32_t format_version,
                                     KnSpecEdit **ret, KnErr *err);
KN_NODISCARD KnCode kn_spec_edit_apply(KnSpecEdit *edit, const KnSchema *schema,
                                       const KnChange *change, KnErr *err);
KN_NODISCARD KnCode kn_spec_edit_finish(const KnSpecEdit *edit, const KnPartitionSpec **ret,
                                        KnErr *err);

/* ---- alter_properties.c ---- */

/** Properties named after columns that went or have another name now, and the name mapping, as
 * changes of properties (an object; null = remove). */
KN_NODISCARD KnCode kn_alter_follow_columns(KnArena *arena, const KnMetadata *md,
                                            const KnSchema *now, json_t *properties, KnErr *err);
/** Java's MappingUtil.update: new names are added, new columns too, names that now mean another
 * column are taken away. A new reference; NULL when mapping is no name mapping. (alter_mapping.c)
 */
json_t *kn_name_mapping_update(KnArena *arena, KnStr mapping, const KnSchema *before,
                               const KnSchema *now);

/* ---- alter_plan.c ---- */

typedef struct KnAlterPlan {
    size_t n_updates;
    const KnUpdate *updates;
    size_t n_requirements;
    const KnRequirement *requirements;
    const int32_t *bound; /* one a change: as kn_schema_edit_apply() says */
} KnAlterPlan;
/** What the changes are for this metadata. */
KN_NODISCARD KnCode kn_alter_plan(KnArena *arena, const KnMetadata *md, const KnChanges *changes,
                                  const KnAlterOptions *opts, KnAlterPlan *ret, KnErr *err);
