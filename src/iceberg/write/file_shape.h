/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * file_shape.h - columns as Parquet files hold them (spec: appendix A, "Parquet"), for whoever
 * writes files of a schema: tables, and sinks.
 */
#include "base/arena.h"
#include "base/buf.h"
#include "engine/parquet.h"
#include "iceberg/schema/type.h"

/** KN_E_UNSUPPORTED for a column of a type that is not written: variant, geometry, geography, and
 * unknown where a file would need something (a list's element, a map's value, all of a struct). */
KN_NODISCARD KnCode kn_file_shape_check(const char *table, const KnSchema *schema, KnErr *err);
/** expr, a value of the type, as files hold it: fields of type unknown are gone, nanoseconds are
 * numbers. A column of type unknown is not written at all. */
void kn_file_shape_sql(KnArena *arena, KnBuf *buf, const KnType *type, const char *expr);
/** "shape(c0) AS name, ...": the columns of rows whose values are called c0, c1, ... under the
 * names that files have. KN_E_UNSUPPORTED: names that differ in case only, or nothing to hold. */
KN_NODISCARD KnCode kn_file_shape_columns(KnArena *arena, const char *table, const KnSchema *schema,
                                          KnBuf *buf, KnErr *err);
/** The columns whose type the engine does not write, for KnPqWriteOptions; in arena. */
const KnPqColumnType *kn_file_shape_types(KnArena *arena, const KnSchema *schema, size_t *ret_n);
/** `{'id': 1, 'st': {__duckdb_field_id: 5, 'a': 6}}`: field ids for COPY. */
void kn_file_shape_ids(KnBuf *buf, const KnSchema *schema, bool lineage);
