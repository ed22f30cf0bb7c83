/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* partition_internal.h - transforms as numbers, shared by SQL functions, specs and tests. */
#include "iceberg/schema/partition.h"

/* Partition field ids count from here (spec: "Partition Specs"). */
#define KN_PARTITION_ID_FIRST 1000

/** "source-id", or v3's "source-ids" of one column: no transform of several is known. */
KN_NODISCARD KnCode kn_source_id_parse(const json_t *json, int32_t *ret, KnErr *err);

/** The type of a transform that does not depend on its source; NULL where it does. */
const KnType *kn_transform_own_type(const KnTransform *t);
bool kn_transform_takes(const KnTransform *t, const KnType *source);

int64_t kn_timestamp_to_us(KnTypeKind kind, int64_t value);
int32_t kn_bucket_hash(const KnValue *value); /* not null; spec appendix B */
int32_t kn_bucket_of(int32_t hash, int32_t count);
/** year, month, day, hour of a date or timestamp. */
int64_t kn_time_transform(KnTransformKind kind, KnTypeKind source, int64_t value);
int64_t kn_truncate_long(int64_t value, int32_t width);

/** Same source, transform (by text), and name of every field: Java's compatibleWith. */
bool kn_partition_spec_compatible(const KnPartitionSpec *a, const KnPartitionSpec *b);
/** Gives fields without an id (0) the ids 1000, 1001, ... by position: what v1 means by none. spec
 * must come from kn_partition_spec_parse(). */
void kn_partition_spec_number(KnPartitionSpec *spec);
/** v1 needs field ids 1000, 1001, ... */
bool kn_partition_spec_sequential(const KnPartitionSpec *spec);
int32_t kn_partition_last_id(const KnPartitionSpec *spec);            /* 999 without a field */
bool kn_sort_order_equal(const KnSortOrder *a, const KnSortOrder *b); /* order_id aside */

/** KN_E_INVAL unless every field's source is a primitive column that takes the transform, and names
 * do not clash with columns they are not the identity of (Java's checkCompatibility, checkName). */
KN_NODISCARD KnCode kn_partition_spec_check(const KnPartitionSpec *spec, const KnSchema *schema,
                                            KnErr *err);
/** The part of it that must hold for the default spec after the schema changed. */
KN_NODISCARD KnCode kn_partition_sources_check(const KnPartitionSpec *spec, const KnSchema *schema,
                                               KnErr *err);
KN_NODISCARD KnCode kn_sort_order_check(const KnSortOrder *order, const KnSchema *schema,
                                        KnErr *err);
