/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* partition_internal.h - transforms as numbers, shared by SQL functions, specs and tests. */
#include "iceberg/partition.h"

/* Partition field ids count from here (spec: "Partition Specs"). */
#define KN_PARTITION_ID_FIRST 1000

/** The type of a transform that does not depend on its source; NULL where it does. */
const KnType *kn_transform_own_type(const KnTransform *t);
bool kn_transform_takes(const KnTransform *t, const KnType *source);

int64_t kn_timestamp_to_us(KnTypeKind kind, int64_t value);
int32_t kn_bucket_hash(const KnValue *value); /* not null; spec appendix B */
int32_t kn_bucket_of(int32_t hash, int32_t count);
int64_t kn_truncate_long(int64_t value, int32_t width);

/** Same source, transform (by text), and name of every field: Java's compatibleWith. */
bool kn_partition_spec_compatible(const KnPartitionSpec *a, const KnPartitionSpec *b);
/** v1 needs field ids 1000, 1001, ... */
bool kn_partition_spec_sequential(const KnPartitionSpec *spec);
int32_t kn_partition_last_id(const KnPartitionSpec *spec);            /* 999 without a field */
bool kn_sort_order_equal(const KnSortOrder *a, const KnSortOrder *b); /* order_id aside */

/** KN_E_INVAL unless every field's source is a primitive column that takes the transform, and names
 * do not clash with columns they are not the identity of (Java's checkCompatibility, checkName). */
KN_NODISCARD KnCode kn_partition_spec_check(const KnPartitionSpec *spec, const KnSchema *schema,
                                            KnErr *err);
KN_NODISCARD KnCode kn_sort_order_check(const KnSortOrder *order, const KnSchema *schema,
                                        KnErr *err);

/** A word of the CLI's spec and order texts: "name", "`a b`", "st.a" (ret_len bytes of text eaten).
 */
typedef struct KnTermText {
    const char *fn; /* NULL = bare column */
    const char *column;
    int64_t param; /* 0 = none */
} KnTermText;
typedef struct KnTextCursor {
    KnArena *arena;
    KnStr text;
    size_t at;
} KnTextCursor;
/** "day(ts)", "bucket(16, id)", "region"; messages give the position, counted from 1. */
KN_NODISCARD KnCode kn_term_parse(KnTextCursor *cur, KnTermText *ret, KnErr *err);
/** A term's transform and source field in schema. */
KN_NODISCARD KnCode kn_term_bind(KnArena *arena, const KnTermText *term, const KnSchema *schema,
                                 KnTransform *ret, const KnField **ret_source, KnErr *err);
bool kn_cursor_eat(KnTextCursor *cur, char c);                /* after blanks */
bool kn_cursor_eat_word(KnTextCursor *cur, const char *word); /* any case, whole word */
bool kn_cursor_at_end(KnTextCursor *cur);
KN_NODISCARD KnCode kn_cursor_fail(const KnTextCursor *cur, KnErr *err, const char *expected);
/** A bare or backquoted name. */
KN_NODISCARD KnCode kn_cursor_name(KnTextCursor *cur, const char **ret, KnErr *err);
KN_NODISCARD KnCode kn_cursor_number(KnTextCursor *cur, int64_t *ret, KnErr *err);
