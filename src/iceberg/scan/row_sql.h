/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * row_sql.h - when are two rows the same, and which bucket is a row's: as SQL over columns.
 *
 * The engine's own equality is not Iceberg's: it takes 0.0 and -0.0 for one value and the entries
 * of a map for an ordered list. Here NULL is NULL, NaN is NaN whatever its bits, 0.0 is not -0.0,
 * and a map is a set of entries, at any depth.
 */
#include "iceberg/schema/type.h"

/** Expressions, separated by ", ", that are equal (IS NOT DISTINCT FROM, GROUP BY, PARTITION BY)
 * exactly when two values of type are the same. expr is evaluated more than once. */
void kn_row_identity_sql(KnBuf *buf, const KnType *type, KnStr expr);
/** One expression that is equal exactly when two values are the same but for the sign of zeros: for
 * rows that lie in tables of the engine, whose compression of floats takes 0.0 and -0.0 for one. */
void kn_row_stored_identity_sql(KnBuf *buf, const KnType *type, KnStr expr);
/** True when the identity is the value itself, so that a group's key is the value. */
bool kn_row_identity_is_plain(const KnType *type);

/** True when a value holds floats below its top level: the engine's aggregates and sorts that take
 * such a value apart give it back with 0.0 for -0.0. */
bool kn_row_has_nested_float(const KnType *type);

/** Appends a condition that is true when a value holds a -0.0 at any depth, else false or NULL;
 * false = the type has no floats, nothing was appended. */
bool kn_row_negative_zero_sql(KnBuf *buf, const KnType *type, KnStr expr);

/** One column of a row: its type and the SQL that yields it. */
typedef struct KnRowColumn {
    const KnType *type;
    const char *expr;
} KnRowColumn;

/* The hash that spreads rows over buckets, by name, for records of plans: the last 8 bytes
 * (little-endian) of the MD5 of all columns' texts, each with its byte length before it ("3:abc";
 * "n" for NULL). */
#define KN_ROW_HASH_VERSION "md5-v1"
/** An expression that is 0..n_buckets-1: the same for rows with the same values, on every machine,
 * with any number of threads. The session's time zone must be UTC. */
void kn_row_bucket_sql(KnBuf *buf, const KnRowColumn *columns, size_t n, uint32_t n_buckets);
