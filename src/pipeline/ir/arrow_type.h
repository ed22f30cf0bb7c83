/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * arrow_type.h - the types of declared schemas: text as Arrow displays them, and the engine's type
 * that holds them.
 *
 * Both displays of arrow-rs are read: `Timestamp(Microsecond, None)`, `Timestamp(Microsecond,
 * Some("UTC"))` and `Timestamp(µs, "UTC")`; nested: `List(Int32)`, `List(non-null Int32, field:
 * 'element')`, `Struct("a": Int32, "b": non-null Utf8)`, `Map("entries": non-null Struct("key":
 * non-null Utf8, "value": Int32), unsorted)`, `Dictionary(Int32, Utf8)`.
 */
#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"

/** Append the engine's type: "BIGINT", "DECIMAL(10,2)", "STRUCT("a" INTEGER)[]". KN_E_INVAL says
 * where the text is no type; KN_E_UNSUPPORTED names one that the engine cannot hold. */
KN_NODISCARD KnCode kn_arrow_type_sql(KnStr text, KnBuf *sql, KnErr *err);
