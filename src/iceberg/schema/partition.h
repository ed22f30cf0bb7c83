/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* partition.h - transforms, partition specs and sort orders (spec: "Partitioning", "Sorting"). */
#include "iceberg/schema/type.h"
#include "iceberg/schema/value.h"

typedef enum KnTransformKind {
    KN_TRANSFORM_IDENTITY,
    KN_TRANSFORM_BUCKET,
    KN_TRANSFORM_TRUNCATE,
    KN_TRANSFORM_YEAR,
    KN_TRANSFORM_MONTH,
    KN_TRANSFORM_DAY,
    KN_TRANSFORM_HOUR,
    KN_TRANSFORM_VOID,
    KN_TRANSFORM_UNKNOWN, /* v2+: kept by name, never pruned on, refused for writing */
} KnTransformKind;
typedef struct KnTransform {
    KnTransformKind kind;
    int32_t param;    /* bucket count, truncate width */
    const char *text; /* "bucket[16]" */
} KnTransform;

typedef struct KnPartitionField {
    int32_t source_id, field_id;
    const char *name;
    KnTransform transform;
} KnPartitionField;
typedef struct KnPartitionSpec {
    int32_t spec_id;
    size_t n_fields;
    const KnPartitionField *fields;
} KnPartitionSpec;

typedef struct KnSortField {
    int32_t source_id;
    KnTransform transform;
    bool descending, nulls_last;
} KnSortField;
typedef struct KnSortOrder {
    int32_t order_id;
    size_t n_fields;
    const KnSortField *fields;
} KnSortOrder;

KN_NODISCARD KnCode kn_transform_parse(KnArena *arena, KnStr text, KnTransform *ret, KnErr *err);
/** The type of transformed values (year/month/hour -> int, day -> date as Java and the spec's table
 * write it, bucket -> int, truncate/identity -> source). KN_E_INVAL when the source type does not
 * take the transform. */
KN_NODISCARD KnCode kn_transform_result_type(KnArena *arena, const KnTransform *t,
                                             const KnType *source, const KnType **ret, KnErr *err);
/** Apply to one value (bytes of truncated text are views or in arena). NULL gives NULL (bucket
 * too). */
KN_NODISCARD KnCode kn_transform_apply(KnArena *arena, const KnTransform *t, const KnType *source,
                                       const KnValue *value, KnValue *ret, KnErr *err);
/** SQL that computes it from SQL expression `expr` of the engine type of source. bucket uses the
 * engine functions that kn_transform_register() adds. */
KN_NODISCARD KnCode kn_transform_sql(KnBuf *buf, const KnTransform *t, const KnType *source,
                                     KnStr expr, KnErr *err);
struct KnEngine;
KN_NODISCARD KnCode kn_transform_register(struct KnEngine *eng, KnErr *err);

/** A field without a field-id (a REST client's new spec) has id 0 here: kn_metadata_apply() gives
 * it one. */
KN_NODISCARD KnCode kn_partition_spec_parse(KnArena *arena, const json_t *json,
                                            KnPartitionSpec **ret, KnErr *err);
/** v1's "partition-spec": a bare array of fields; ids from 1000 when absent. */
KN_NODISCARD KnCode kn_partition_fields_parse(KnArena *arena, const json_t *array,
                                              KnPartitionSpec **ret, KnErr *err);
json_t *kn_partition_spec_to_json(const KnPartitionSpec *spec);
json_t *kn_partition_fields_to_json(const KnPartitionSpec *spec);
/** "day(ts), bucket(16, id), truncate(4, name), region": the CLI's form, bound to schema; fields
 * 1000… */
KN_NODISCARD KnCode kn_partition_spec_parse_text(KnArena *arena, const KnSchema *schema, KnStr text,
                                                 KnPartitionSpec **ret, KnErr *err);
/** The struct type of the spec's partition tuple; a dropped source column gives unknown->int for
 * its transform's own type where known. */
KN_NODISCARD KnCode kn_partition_type(KnArena *arena, const KnPartitionSpec *spec,
                                      const KnSchema *schema, const KnType **ret, KnErr *err);
/** "day=2026-01-31/id_bucket=3" with URL-encoded values, null as "null" (spec is silent: Java's
 * PartitionSpec). */
KN_NODISCARD KnCode kn_partition_path(KnBuf *buf, const KnPartitionSpec *spec, const KnType *type,
                                      const KnValue *values, KnErr *err);
bool kn_partition_is_unpartitioned(const KnPartitionSpec *spec); /* no field, or only void */

KN_NODISCARD KnCode kn_sort_order_parse(KnArena *arena, const json_t *json, KnSortOrder **ret,
                                        KnErr *err);
json_t *kn_sort_order_to_json(const KnSortOrder *order);
/** "id, ts desc nulls last": the CLI's form. */
KN_NODISCARD KnCode kn_sort_order_parse_text(KnArena *arena, const KnSchema *schema, KnStr text,
                                             KnSortOrder **ret, KnErr *err);
